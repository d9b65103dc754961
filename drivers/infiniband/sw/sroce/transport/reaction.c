// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The reaction point of RoCE's congestion control: how a rate follows from the
 * notifications (CNPs) that the peer sends for marked packets. It is DCQCN (Zhu et al.,
 * SIGCOMM 2015, section 3.2), as NICs have it:
 *
 * A notification cuts the rate by half of alpha, which is an average of how often there
 * are notifications. Afterwards the rate rises once in a while: at first half of the way
 * back to what it was each time, then further by a constant, then faster and faster.
 *
 * What is different, because software is slower than NICs and has no link of a known
 * speed:
 *
 * - A QP has no rate before the first notification. Then it starts from what it has sent.
 * - There is one cut for what is in flight (as TCP reacts to ECN, RFC 3168, 6.1.2): what a cut
 *   does is seen when the first packet after it has arrived, and a queue of some milliseconds
 *   tells of itself a hundred times before. Where there are no ACKs it is one in a round trip.
 * - Nor is there a rise before that: a queue that grows makes round trips longer than the one
 *   that was measured, and rises by that would come more often than cuts.
 * - Nothing ticks. Times are kept, and what they have done to the rate is worked out
 *   when the next train is about to leave.
 *
 * congestion.c asks here, which has the QP keep to the rate.
 */
#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "transport/reaction.h"
#include "wire/train.h"

/* More than any network has; 2^40 * 500 us and the like fit into 64 bits */
#define SROCE_RATE_MOST BIT_ULL(40)
/* Shorter times than this are not told apart */
#define SROCE_REACTION_LEAST_NS (10ULL * NSEC_PER_USEC)
/* A rate that has not been used for so long says nothing of the path */
#define SROCE_REACTION_IDLE_NS NSEC_PER_SEC
/* Nor does one that, for so long, was not what limited the QP */
#define SROCE_REACTION_UNUSED_NS (100ULL * NSEC_PER_MSEC)
/* What is in flight is hardly there for longer, beyond two round trips */
#define SROCE_REACTION_FLIGHT_NS (10ULL * NSEC_PER_MSEC)
/* What a QP sends is measured over a round trip, but over no less */
#define SROCE_METER_LEAST_NS (500ULL * NSEC_PER_USEC)
/* ... and over no less than this while there is a rate */
#define SROCE_METER_LONG_NS (2ULL * NSEC_PER_MSEC)
/* ... and never over more than this: what a QP sent before is history */
#define SROCE_METER_MOST_NS (100ULL * NSEC_PER_MSEC)
#define SROCE_METER_BYTES BIT_ULL(34)
/* So many rises and decays are caught up with in one call; any more are skipped */
#define SROCE_REACTION_STEPS 64
/* What the rate rises by at least, as a part of what the QP sends */
#define SROCE_RISE_PART 500
/* The rate stays below what the QP sends, a 16th of that, and ten rises */
#define SROCE_RISE_USED 16
#define SROCE_RISE_AHEAD 10
/* Rises by the same after which the network is taken for another one */
#define SROCE_RISE_HYPER 20
/* ... and which are found out about by more than this part of what the QP sends at a time */
#define SROCE_RISE_HYPER_PART 64

static u64 sroce_reaction_since(const struct sroce_reaction_at *at, u64 then)
{
	/* The other half may have looked at the clock a bit later */
	return at->now > then ? at->now - then : 0;
}

static u64 sroce_reaction_us(u32 us)
{
	return max_t(u64, us * (u64)NSEC_PER_USEC, SROCE_REACTION_LEAST_NS);
}

static u64 sroce_reaction_mbit(u32 mbit)
{
	return mbit * 125000ULL;
}

static u64 sroce_reaction_clamp(u64 rate, const struct sroce_reaction_at *at)
{
	u64 least = max(at->packet * 100ULL,
			sroce_reaction_mbit(READ_ONCE(at->set->rp_min_rate)));

	return clamp(rate, min(least, SROCE_RATE_MOST), SROCE_RATE_MOST);
}

void sroce_reaction_end(struct sroce_reaction *r)
{
	WRITE_ONCE(r->limited, false);
	r->mark_at = 0;
}

/* --- what the QP sends ------------------------------------------------------------- */

static void sroce_meter_mark(struct sroce_reaction *r,
			     const struct sroce_reaction_at *at)
{
	r->mark_at = at->now;
	r->mark_sent = at->sent;
}

/* Bytes per second since the mark, which is renewed; 0: not known yet */
static u64 sroce_meter_read(struct sroce_reaction *r,
			    const struct sroce_reaction_at *at, u64 least)
{
	u64 ns = sroce_reaction_since(at, r->mark_at);
	u64 bytes = min_t(u64, at->sent - r->mark_sent, SROCE_METER_BYTES);

	least = max(least, at->rtt);
	if (r->mark_at && ns < least)
		return 0;
	if (!r->mark_at || ns > max(2 * least, SROCE_METER_MOST_NS))
		bytes = 0;
	sroce_meter_mark(r, at);
	return bytes ? min(div64_u64(bytes * NSEC_PER_SEC, ns),
			   SROCE_RATE_MOST) : 0;
}

/* --- cuts ---------------------------------------------------------------------------- */

/* All who share a queue rise by as much, so that their rates become the same */
static u64 sroce_reaction_step(const struct sroce_reaction *r, u32 mbit)
{
	return max(sroce_reaction_mbit(mbit), r->speed / SROCE_RISE_PART) + 1;
}

/* The highest rate that what the QP sends can justify: above it something else limits it */
static u64 sroce_reaction_most(const struct sroce_reaction *r,
			       const struct sroce_reaction_at *at)
{
	u64 step = sroce_reaction_step(r, READ_ONCE(at->set->rp_ai_rate));

	return r->speed + r->speed / SROCE_RISE_USED + SROCE_RISE_AHEAD * step;
}

static void sroce_reaction_take(struct sroce_reaction *r,
				const struct sroce_reaction_at *at)
{
	u32 keep = min(READ_ONCE(at->set->rp_dce_tcp_g), 1024U);
	u32 least = min(READ_ONCE(at->set->rp_min_dec_fac), 100U);
	u32 share = max(SROCE_ALPHA_ONE - r->alpha / 2,
			SROCE_ALPHA_ONE / 100 * least);

	r->target = min(r->rate, sroce_reaction_most(r, at));
	r->rate = sroce_reaction_clamp(r->target * share / SROCE_ALPHA_ONE, at);
	r->alpha = (r->alpha * keep + SROCE_ALPHA_ONE * (1024 - keep)) / 1024;
	r->stage = 0;
	r->cut_at = at->now;
	r->cut_sent = at->sent;
	r->cut_psn = at->psn;
	r->cut_flies = true;
	/* If there is no other notification by when it could come */
	r->decay_at = at->now + at->rtt;
	r->stage_at = at->now;
}

static bool sroce_reaction_begin(struct sroce_reaction *r,
				 const struct sroce_reaction_at *at)
{
	u32 first = READ_ONCE(at->set->rp_rate_to_set_on_first_cnp);
	u64 sent = sroce_meter_read(r, at, SROCE_METER_LEAST_NS);

	if (!sent)
		return false;
	r->speed = sent;
	r->rate = sent;
	r->alpha = min(READ_ONCE(at->set->rp_initial_alpha_value), 1024U) *
		   (SROCE_ALPHA_ONE / 1024);
	r->used_at = at->now;
	sroce_reaction_take(r, at);
	if (first)
		r->rate = sroce_reaction_clamp(sroce_reaction_mbit(first), at);
	WRITE_ONCE(r->limited, true);
	return true;
}

/* --- what time does ---------------------------------------------------------------- */

/*
 * How often has something happened since @then that happens once in @ns? @then is when it
 * did the last time
 */
static u32 sroce_reaction_times(const struct sroce_reaction_at *at, u64 *then,
				u64 ns)
{
	u64 n = div64_u64(sroce_reaction_since(at, *then), ns);

	if (n > SROCE_REACTION_STEPS) {
		*then = at->now;
		return SROCE_REACTION_STEPS;
	}
	*then += n * ns;
	return n;
}

static void sroce_reaction_decay(struct sroce_reaction *r,
				 const struct sroce_reaction_at *at)
{
	u64 ns = max(sroce_reaction_us(READ_ONCE(at->set->rp_dce_tcp_rtt)),
		     at->rtt);
	u32 keep = min(READ_ONCE(at->set->rp_dce_tcp_g), 1024U);
	u32 n = sroce_reaction_times(at, &r->decay_at, ns);

	while (n--)
		r->alpha = r->alpha * keep / 1024;
}

/* What is added to the rate that is aimed at */
static u64 sroce_reaction_more(const struct sroce_reaction *r,
			       const struct sroce_reaction_at *at)
{
	u32 fast = min(READ_ONCE(at->set->rp_threshold), 1024U);
	u32 hyper = fast + SROCE_RISE_HYPER;
	u64 more = sroce_reaction_step(r, READ_ONCE(at->set->rp_ai_rate));

	if (r->stage > hyper)
		return min(min(r->stage - hyper, 1024U) *
			   sroce_reaction_step(r, READ_ONCE(at->set->rp_hai_rate)),
			   max(r->speed / SROCE_RISE_HYPER_PART, more));
	return r->stage > fast ? more : 0;
}

static void sroce_reaction_rise(struct sroce_reaction *r,
				const struct sroce_reaction_at *at)
{
	if (r->target <= sroce_reaction_most(r, at)) {
		r->stage++;
		r->target += sroce_reaction_more(r, at);
	}
	r->target = sroce_reaction_clamp(r->target, at);
	r->rate = sroce_reaction_clamp((r->rate + r->target) / 2, at);
}

static bool sroce_reaction_is_over(const struct sroce_reaction *r,
				   const struct sroce_reaction_at *at)
{
	u64 most = sroce_reaction_mbit(READ_ONCE(at->set->rp_max_rate));

	if (most && r->rate > most)
		return true;
	return sroce_reaction_since(at, r->used_at) > SROCE_REACTION_IDLE_NS ||
	       (r->target > sroce_reaction_most(r, at) &&
		sroce_reaction_since(at, r->cut_at) > SROCE_REACTION_UNUSED_NS);
}

/*
 * Has nothing arrived yet that was sent after the last cut? An ACK may wait for a receive or
 * a page, while READ responses are sent and marked: not for long.
 */
static bool sroce_reaction_cut_flies(const struct sroce_reaction *r,
				     const struct sroce_reaction_at *at)
{
	return r->cut_flies && sroce_reaction_since(at, r->cut_at) <
	       SROCE_REACTION_FLIGHT_NS + 2 * at->rtt;
}

static void sroce_reaction_catch_up(struct sroce_reaction *r,
				    const struct sroce_reaction_at *at)
{
	u64 ns = max(sroce_reaction_us(READ_ONCE(at->set->rp_time_reset)),
		     at->rtt);
	u32 n;

	/* Noted here because later the PSN would be another packet's */
	if (sroce_psn_diff(at->una, r->cut_psn) >= 0)
		r->cut_flies = false;
	r->speed = sroce_meter_read(r, at, SROCE_METER_LONG_NS) ?: r->speed;
	sroce_reaction_decay(r, at);
	if (sroce_reaction_cut_flies(r, at))
		r->stage_at = at->now;
	for (n = sroce_reaction_times(at, &r->stage_at, ns); n; n--)
		sroce_reaction_rise(r, at);
	if (sroce_reaction_is_over(r, at))
		sroce_reaction_end(r);
}

void sroce_reaction_advance(struct sroce_reaction *r,
			    const struct sroce_reaction_at *at)
{
	sroce_reaction_catch_up(r, at);
	r->used_at = max(r->used_at, at->now);
}

/* Is the marked packet older than the last cut? */
static bool sroce_reaction_is_of_before(const struct sroce_reaction *r,
					const struct sroce_reaction_at *at)
{
	u32 us = READ_ONCE(at->set->rp_rate_reduce_monitor_period);
	u64 ns = sroce_reaction_since(at, r->cut_at);

	if (at->sent == r->cut_sent || ns < max(sroce_reaction_us(us), at->rtt))
		return true;
	return sroce_reaction_cut_flies(r, at);
}

bool sroce_reaction_cut(struct sroce_reaction *r,
			const struct sroce_reaction_at *at)
{
	if (r->limited)
		sroce_reaction_catch_up(r, at);
	if (!r->limited)
		return sroce_reaction_begin(r, at);
	if (sroce_reaction_is_of_before(r, at))
		return false;
	sroce_reaction_take(r, at);
	return true;
}
