// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester's engine: which work request is next, and whether it may go.
 *
 * The send queue is a ring of work requests. Three indices walk over it, always
 * in this order: ring.index (oldest not completed), send (being sent), fetched
 * (next to copy from shared memory). PSNs are given out as sending goes; going
 * back after a loss moves only the cursor (send, send_psn).
 *
 * The half comes here when it runs, because something was posted, has arrived, or is
 * late. A work request is fetched (requester_fetch.c) and sent train by train
 * (requester_train.c, datagram.c, raw.c), or carried out (requester_local.c); what is done
 * completes (requester_complete.c). Responses are taken by requester_response.c, lost
 * packets are found by retransmit.c.
 */
#include "transport/ack_delay.h"
#include "transport/congestion.h"
#include "transport/datagram.h"
#include "transport/early.h"
#include "transport/far.h"
#include "transport/fault.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/pace.h"
#include "transport/raw.h"
#include "transport/receive.h"
#include "transport/repair.h"
#include "transport/requester.h"
#include "transport/requester_complete.h"
#include "transport/requester_fetch.h"
#include "transport/requester_local.h"
#include "transport/requester_response.h"
#include "transport/requester_train.h"
#include "transport/retransmit.h"
#include "transport/run.h"
#include "transport/send.h"
#include "turn.h"

static enum sroce_step sroce_step_datagram(struct sroce_qp *qp,
					   struct sroce_tx *tx,
					   struct sroce_swqe *slot)
{
	if (!(qp->kind->raw ? sroce_raw_send(qp, slot) :
			      sroce_datagram_send(qp, tx, slot)))
		return SROCE_STEP_WAIT;
	qp->req.send++;
	sroce_requester_retire(qp);
	return SROCE_STEP_ON;
}

/*
 * Have the queues below room? Whoever waits for it does so against the same timer
 * as for an ACK: a queue may be stuck for ever.
 */
static bool sroce_requester_has_space(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (unlikely(req->half.starved && !req->half.stalled)) {
		sroce_requester_arm(qp);
		return false;
	}
	/*
	 * With nothing outstanding the deadline was that of a wait for room, now over. (But
	 * for what a probe sends again: it was waited for.)
	 */
	if (!sroce_requester_outstanding(req) && likely(!req->probe.back))
		req->deadline = 0;
	return true;
}

/*
 * Is it too early for the lower of the QP's rates, its limit and what congestion leaves
 * to it? The timer will tell when it is time
 */
static bool sroce_requester_too_early(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	bool early = false;
	u64 wake = 0;

	if (unlikely(!sroce_congestion_due(&req->half, &wake)))
		early = true;
	if (unlikely(req->pace.rate) &&
	    !sroce_pace_due(&req->pace, ktime_get_ns())) {
		wake = max(wake, req->pace.wake);
		early = true;
	}
	if (unlikely(sroce_far_is_early(req, &wake)))
		early = true;
	if (likely(!early))
		return false;
	req->pace.wake = wake;
	sroce_requester_wake_at(req, wake);
	return true;
}

static enum sroce_step sroce_requester_step(struct sroce_qp *qp,
					    struct sroce_tx *tx)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot;

	if (req->rnr_wait)
		return SROCE_STEP_WAIT;
	sroce_repair_step(qp);
	if (req->send == req->fetched &&
	    sroce_requester_begun(req) >= SROCE_BEGUN_MOST)
		return SROCE_STEP_WAIT;
	slot = req->send != req->fetched ? sroce_swqe_at(req, req->send) :
					   sroce_requester_fetch(qp);
	if (!slot)
		return SROCE_STEP_IDLE;
	if (slot->status != IB_WC_SUCCESS) {
		sroce_requester_retire(qp);
		return SROCE_STEP_WAIT;
	}
	if (slot->state == SROCE_SWQE_DONE) {
		req->send++;
		return SROCE_STEP_ON;
	}
	/* In SQD only what was begun goes on */
	if (slot->state == SROCE_SWQE_READY &&
	    sroce_qp_state(qp) != IB_QPS_RTS)
		return SROCE_STEP_WAIT;
	if (slot->op == SROCE_OP_NONE)
		return sroce_requester_local(qp, slot);
	if (!sroce_requester_has_space(qp) || sroce_requester_too_early(qp))
		return SROCE_STEP_WAIT;
	if (sroce_qp_is_datagram(qp) || qp->kind->raw)
		return sroce_step_datagram(qp, tx, slot);
	return sroce_requester_train(qp, tx, slot);
}

/* What a process writes where nobody may post is nothing */
static bool sroce_requester_may_send(const struct sroce_qp *qp)
{
	enum ib_qp_state state = sroce_qp_state(qp);

	return qp->kind->posts &&
	       (state == IB_QPS_RTS || state == IB_QPS_SQD);
}

static bool sroce_requester_must_flush(const struct sroce_qp *qp)
{
	enum ib_qp_state state = sroce_qp_state(qp);

	return qp->kind->posts &&
	       (state == IB_QPS_ERR || state == IB_QPS_SQE);
}

/*
 * Nothing is left to send: posters have to ring again, so SROCE_SQ_ACTIVE is cleared. (It
 * stays set where something is certain to have the requester run: an ACK, a response, a
 * timer, room in the queues below.)
 * Return: false when something was posted just before: the caller goes on.
 */
static bool sroce_requester_rest(struct sroce_requester *req)
{
	struct sroce_ring_hdr *hdr = req->ring.hdr;

	WRITE_ONCE(hdr->flags, 0);
	/* We clear the flag, then read prod; posters store prod, then read the flag */
	smp_mb();
	return sroce_ring_pending(&req->ring) <= req->fetched - req->ring.index;
}

static bool sroce_requester_send(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	enum sroce_step step = SROCE_STEP_WAIT;
	unsigned long begin = sroce_turn_spent();
	int budget = SROCE_SEND_BUDGET;
	bool over = false;
	u32 next_psn = req->next_psn;
	struct sroce_tx tx = {};

	WRITE_ONCE(req->ring.hdr->flags, SROCE_SQ_ACTIVE);
	while (sroce_requester_may_send(qp)) {
		over = !budget-- || sroce_turn_half_over(begin);
		if (over)
			break;
		step = sroce_requester_step(qp, &tx);
		if (step == SROCE_STEP_ON)
			continue;
		if (step == SROCE_STEP_WAIT || sroce_requester_rest(req))
			break;
		WRITE_ONCE(req->ring.hdr->flags, SROCE_SQ_ACTIVE);
	}
	if (req->next_psn != next_psn)
		sroce_ack_ride(qp, &tx);
	sroce_send_flush(&qp->req.half, &tx);
	if (!sroce_requester_may_send(qp))
		WRITE_ONCE(req->ring.hdr->flags, 0);
	return over;
}

/* Is everything complete that was begun, also what has to be sent once more? */
static bool sroce_requester_drained(const struct sroce_requester *req)
{
	return req->ring.index == req->fetched ||
	       sroce_swqe_at(req, req->ring.index)->state == SROCE_SWQE_READY;
}

static void sroce_requester_check_drained(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (!req->draining || !sroce_requester_drained(req))
		return;
	req->draining = false;
	if (req->drained_event)
		sroce_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

/*
 * Take trains from the inbox, as many as one half may before others run.
 * Return: true when there are more.
 */
static bool sroce_requester_inbox(struct sroce_qp *qp)
{
	struct sroce_half *half = &qp->req.half;
	unsigned long begin = sroce_turn_spent();
	struct sroce_parcel *p;

	while ((p = sroce_inbox_next(half))) {
		sroce_turn_spend(sroce_parcel_cost(p));
		sroce_receive_parcel(qp, p);
		sroce_parcel_free(p);
		if (sroce_turn_half_over(begin))
			return !list_empty(&half->inbox);
	}
	return false;
}

/*
 * The pages of a READ's sink are there, or will be an error: ask once more. What was under way
 * meanwhile still comes, behind what has come (requester_response.c), and says nothing of a loss.
 */
static void sroce_requester_read_again(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	req->half.fault.waiting = false;
	req->rnr_wait = false;
	sroce_requester_rewind(qp);
	req->recovering = true;
	req->recover = req->una_psn;
}

bool sroce_requester_run(struct sroce_half *half)
{
	struct sroce_qp *qp = half->qp;
	bool more;

	sroce_half_unstarve(half);
	if (unlikely(half->fault.waiting) && !sroce_fault_is_running(half))
		sroce_requester_read_again(qp);
	/* Responses that have come are taken before work requests are flushed */
	more = sroce_requester_inbox(qp);
	/* What is kept is taken before it might be asked for again */
	if (unlikely(sroce_early_waits(&qp->req)) && !more && sroce_response_replay(qp))
		return true;
	if (!more)
		sroce_early_look_for_gap(qp);
	/* Without ACKs it is inboxes that tell what is done: see direct.c */
	if (!qp->kind->acked)
		sroce_requester_retire(qp);
	if (sroce_requester_may_send(qp))
		more |= sroce_requester_send(qp);
	if (more)
		return true;
	if (sroce_requester_must_flush(qp))
		return sroce_requester_flush(qp);
	sroce_requester_check_drained(qp);
	return more;
}
