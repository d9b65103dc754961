// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whether a larger window makes a stream faster.
 *
 * That the round trip does not grow would make the window as large as can be where a processor
 * is the slowest on the way: it takes as long for each packet whatever the window is, but
 * longer for one whose data have left its cache. So more has to arrive in the same time.
 * What is in flight shows only a round trip later, and one may mislead, so it goes on for a few
 * more (as BBR does in its startup, Cardwell et al. 2016), up to eight times as much, and then
 * back to what it was when it paid last. Paths change, and noise looks like success: it
 * begins anew now and then.
 */
#include <linux/jiffies.h>
#include <linux/math64.h>

#include "transport/trial.h"

/* More arrives if it is more by this part, and that is waited for so many round trips */
#define SROCE_TRIAL_FASTER 8
#define SROCE_TRIAL_VAIN_MOST 2
/* It begins anew after so long, and so many round trips: then it costs next to nothing */
#define SROCE_TRIAL_ANEW_JIFFIES (10 * HZ)
#define SROCE_TRIAL_ANEW_ROUND_TRIPS 1024

/* Packets per 2^26 ns that were acknowledged in the round trip of @ns which ends now */
static u32 sroce_trial_speed(const struct sroce_requester *req, u64 ns)
{
	u32 packets = (req->una_psn - req->trial.una) & SROCE_PSN_MASK;

	return min_t(u64, div64_u64((u64)packets << 26, ns), U32_MAX / 2);
}

bool sroce_trial_pays(struct sroce_requester *req, u64 ns)
{
	struct sroce_trial *trial = &req->trial;
	u32 speed = sroce_trial_speed(req, ns);

	if (trial->vain > SROCE_TRIAL_VAIN_MOST)
		return false;
	if (speed >= trial->speed + trial->speed / SROCE_TRIAL_FASTER) {
		trial->speed = speed;
		trial->paid = req->window;
		trial->vain = 0;
		return true;
	}
	trial->vain++;
	trial->tried = jiffies;
	return trial->vain <= SROCE_TRIAL_VAIN_MOST;
}

/* Is it so long ago that it was given up? */
static bool sroce_trial_is_due(const struct sroce_requester *req)
{
	u64 wait = SROCE_TRIAL_ANEW_ROUND_TRIPS * req->growth.min;

	return time_after(jiffies, req->trial.tried +
			  max_t(unsigned long, SROCE_TRIAL_ANEW_JIFFIES,
				nsecs_to_jiffies(wait)));
}

u32 sroce_trial_window(struct sroce_requester *req, u32 least)
{
	struct sroce_trial *trial = &req->trial;
	u32 window = req->window;

	if (trial->vain <= SROCE_TRIAL_VAIN_MOST)
		return window;
	if (trial->paid)
		window = min(window, trial->paid);
	if (!sroce_trial_is_due(req))
		return window;
	trial->vain = 0;
	trial->speed = 0;
	return min(window, least);
}
