// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Responses that have come too early: one before them was lost, or is late.
 *
 * requester_response.c comes here with them. Where selective_repeat_en is set they are kept
 * until the missing one is here, and are then taken in the order of their PSNs, as if they had
 * come only now: memory is written in the order that it always is. (What is missing is asked for
 * with all that was sent behind it. Of that, what is kept comes twice, and is dropped.)
 *
 * Where a network brings packets in another order, the missing one is only late, and comes
 * twice when it is asked for again. Whoever has seen that asks later from then on (lateness.c).
 *
 * How far an ACK or NAK says that the peer has come is remembered, too. So when the missing one
 * is here no other one need come for that, and it is known whether another gap is left, of which
 * nothing else may tell. (What a NAK complains of is not: it counts at the oldest PSN only, and
 * remembered it would at any.)
 *
 * retransmit.c, which has the requester's timer, asks again.
 */
#include <linux/ktime.h>

#include "compat.h"
#include "transport/early.h"
#include "transport/gap.h"
#include "transport/internal.h"
#include "transport/lateness.h"
#include "transport/retransmit.h"
#include "transport/rtt.h"

/* A stream that is repeated is waited for no longer than that */
#define SROCE_EARLY_REPEATED_NS ((u64)NSEC_PER_SEC)
/* What was sent again more than once may come twice, however late it was */
#define SROCE_EARLY_REPEATS_MOST 2

static void sroce_early_look_soon(struct sroce_early *early)
{
	if (early->armed)
		return;
	early->armed = true;
	sroce_timer_start(&early->timer, ktime_get_ns() + SROCE_HELD_LOOK_NS);
}

/* An answer has come about @psn, and one before it is missing */
static void sroce_early_tell(struct sroce_requester *req, u32 psn)
{
	struct sroce_early *early = &req->early;
	u64 now = ktime_get_ns();

	if (!early->told || sroce_psn_diff(early->high, req->una_psn) < 0) {
		early->told = true;
		early->partly = false;
		early->first = psn;
		early->first_at = now;
		sroce_lateness_new_gap(&early->lateness);
	} else if (sroce_psn_diff(psn, early->high) <= 0) {
		return;
	}
	early->high = psn;
	early->high_at = now;
}

/*
 * Is what comes early to be noted? Where that is switched off only while what comes next is still
 * kept: sroce_response_implied_nak() asks for nothing then, and this is all that remembers it
 */
static bool sroce_early_counts(const struct sroce_qp *qp)
{
	return sroce_held_is_on(qp) || sroce_held_ready(&qp->req.early.held, qp->req.una_psn);
}

/* Return: whether all of it was kept before */
static bool sroce_early_add(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_early *early = &req->early;
	enum sroce_held_how how = sroce_held_add(qp, &early->held, t, req->una_psn);

	if (how >= SROCE_HELD_PART)
		sroce_early_look_soon(early);
	/* The repeated stream is further than what is missing, and has not brought it */
	if (how == SROCE_HELD_ALREADY && early->open && early->repeats == 1 && req->ask_due &&
	    !req->asked)
		req->ask_at = min(req->ask_at, ktime_get_ns() + early->lateness.wait);
	return how == SROCE_HELD_ALREADY;
}

bool sroce_early_keep(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_requester *req = &qp->req;
	u32 end = sroce_psn_add(t->psn, t->npkts);
	bool again = false;

	if (!sroce_early_counts(qp) || sroce_psn_diff(end, req->next_psn) > 0)
		return false;
	if (sroce_held_is_on(qp))
		again = sroce_early_add(qp, t);
	sroce_early_tell(req, sroce_psn_add(end, -1));
	return again;
}

void sroce_early_ack(struct sroce_qp *qp, u32 psn, u32 end)
{
	struct sroce_early *early = &qp->req.early;

	if (!sroce_early_counts(qp))
		return;
	sroce_early_tell(&qp->req, psn);
	if (early->acked && sroce_psn_diff(end, early->ack_end) < 0)
		return;
	early->acked = true;
	early->ack_psn = psn;
	early->ack_end = end;
}

/* What was sent again counts as long as the oldest in flight is a part of it */
static void sroce_early_check_repeats(struct sroce_requester *req)
{
	u32 again = (req->early.again - req->una_psn) & SROCE_PSN_MASK;

	if (!again || again > ((req->next_psn - req->una_psn) & SROCE_PSN_MASK))
		req->early.repeats = 0;
}

void sroce_early_restart(struct sroce_requester *req)
{
	struct sroce_early *early = &req->early;

	sroce_early_check_repeats(req);
	early->repeats = min(early->repeats + 1, SROCE_EARLY_REPEATS_MOST);
	early->from = req->una_psn;
	early->from_at = ktime_get_ns();
	early->again = req->next_psn;
}

/* What has told of a gap is behind by now: the newest one tells of what is missing next */
static void sroce_early_check_told(struct sroce_requester *req)
{
	struct sroce_early *early = &req->early;

	if (sroce_psn_diff(early->first, req->una_psn) >= 0)
		return;
	early->first = early->high;
	early->first_at = early->high_at;
}

/*
 * When it may be asked for. When a part of what was missing has come the rest may be right behind
 * it. What is sent again brings all of it: then each gap has two round trips, and anew with each
 * duplicate that shows that it is coming (sroce_early_goes_on()).
 */
static u64 sroce_early_ask_at(const struct sroce_requester *req)
{
	const struct sroce_early *early = &req->early;
	u64 at = early->opened_at + early->lateness.wait, now = ktime_get_ns();

	if (!early->partly)
		return at;
	if (!early->repeats)
		return max(at, now + SROCE_LATE_REST_NS);
	return now + max(early->lateness.wait, sroce_requester_ask_least_ns(req));
}

static void sroce_early_begin(struct sroce_requester *req, u32 psn)
{
	struct sroce_early *early = &req->early;

	sroce_early_check_repeats(req);
	sroce_early_check_told(req);
	early->open = true;
	early->psn = req->una_psn;
	early->opened_at = early->told ? early->first_at : ktime_get_ns();
	sroce_gap_begin(&req->gap, psn);
	/* What it ends with will have waited for something else */
	sroce_rtt_cancel(&req->rtt);
}

void sroce_early_open(struct sroce_qp *qp, u32 psn)
{
	struct sroce_requester *req = &qp->req;

	if (req->early.open) {
		sroce_gap_see(&req->gap, psn);
		return;
	}
	sroce_early_begin(req, psn);
	req->ask_at = sroce_held_is_on(qp) ? sroce_early_ask_at(req) : 0;
}

void sroce_early_find_gap(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_early *early = &req->early;
	struct sroce_held *h = sroce_held_first(&early->held);

	if (sroce_psn_diff(early->high, req->una_psn) < 0) {
		early->told = false;
		return;
	}
	if (early->open || req->rnr_wait || sroce_qp_state(qp) == IB_QPS_ERR ||
	    sroce_held_ready(&early->held, req->una_psn) ||
	    (req->recovering && req->recover == req->una_psn))
		return;
	sroce_early_check_repeats(req);
	/* What has told was not kept, or no longer is, and comes with what is sent again */
	if (!h && early->repeats && qp->attr.timeout & 0x1f)
		return;
	sroce_early_begin(req, h ? h->t.psn : early->high);
	sroce_gap_see(&req->gap, early->high);
	sroce_requester_ask_later(req, sroce_early_ask_at(req));
}

/*
 * Duplicates of what was sent again tell that the repeated stream is coming; whose they are nobody
 * knows, and they do not put it off for ever
 */
void sroce_early_goes_on(struct sroce_requester *req, u32 psn)
{
	struct sroce_early *early = &req->early;

	if (req->ask_due && early->partly && early->repeats &&
	    sroce_psn_diff(psn, early->from) >= 0)
		req->ask_at = min(sroce_early_ask_at(req),
				  early->from_at + SROCE_EARLY_REPEATED_NS);
}

bool sroce_early_is_rest(const struct sroce_requester *req)
{
	const struct sroce_early *early = &req->early;

	return early->open && req->asked == 1 &&
	       ktime_get_ns() < early->asked_at + min(req->rtt.min, req->rtt.srtt) / 2;
}

void sroce_early_ask(struct sroce_requester *req)
{
	struct sroce_early *early = &req->early;

	early->asked_at = ktime_get_ns();
	if (early->open && !early->repeats && early->lateness.wait)
		sroce_lateness_in_vain(&early->lateness);
}

void sroce_early_filled(struct sroce_qp *qp)
{
	struct sroce_early *early = &qp->req.early;
	u64 took = ktime_get_ns() - early->opened_at;

	early->open = false;
	if (!sroce_held_is_on(qp))
		return;
	if (early->repeats == 1)
		sroce_lateness_asked(&early->lateness, early->psn, took);
	else if (!early->repeats && early->partly)
		sroce_lateness_rest(&early->lateness, took);
	else if (!early->repeats)
		sroce_lateness_by_itself(qp, &early->lateness, took);
	early->partly = true;
}

/* Return: whether there is more to look at */
static bool sroce_early_look(struct sroce_qp *qp)
{
	sroce_held_drop_old(qp, &qp->req.early.held);
	return qp->req.early.held.n;
}

static void sroce_early_timer_fired(struct sroce_timer *timer)
{
	struct sroce_early *early = container_of(timer, struct sroce_early, timer);
	struct sroce_requester *req = container_of(early, struct sroce_requester, early);
	struct sroce_qp *qp = container_of(req, struct sroce_qp, req);

	spin_lock(&req->half.lock);
	early->armed = false;
	if (!qp->dead && sroce_early_look(qp))
		sroce_early_look_soon(early);
	spin_unlock(&req->half.lock);
}

void sroce_early_reset(struct sroce_qp *qp)
{
	struct sroce_early *early = &qp->req.early;

	sroce_held_clear(qp, &early->held);
	early->open = false;
	early->acked = false;
	early->told = false;
	early->repeats = 0;
	sroce_lateness_reset(&early->lateness);
}

void sroce_early_init(struct sroce_qp *qp)
{
	struct sroce_early *early = &qp->req.early;

	sroce_held_init(&early->held, qp);
	sroce_timer_init(&early->timer, sroce_early_timer_fired);
}
