// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the requester does with responses (IBA 9.7.5). una_psn moves forward
 * over what is acknowledged or, for READs and atomics, has arrived.
 *
 * They come from receive.c. What they complete is for requester_complete.c, what
 * they tell to be lost for retransmit.c; requester.c goes on sending afterwards.
 */
#include "memory/copy.h"
#include "transport/early.h"
#include "transport/far.h"
#include "transport/gap.h"
#include "transport/gather.h"
#include "transport/internal.h"
#include "transport/repair.h"
#include "transport/requester.h"
#include "transport/requester_complete.h"
#include "transport/requester_response.h"
#include "transport/retransmit.h"
#include "transport/trace.h"
#include "turn.h"

/*
 * How far the search for the oldest READ or atomic that waits for responses comes, if
 * that is before @before_psn: a ring index.
 */
static u32 sroce_response_look(const struct sroce_requester *req, u32 i,
			       u32 before_psn)
{
	const struct sroce_swqe *slot;

	for (; i != req->fetched; i++) {
		slot = sroce_swqe_at(req, i);
		if (slot->state == SROCE_SWQE_DONE)
			continue;
		if (slot->state == SROCE_SWQE_READY ||
		    sroce_swqe_offset(slot, before_psn) < 0 ||
		    sroce_swqe_has_response(slot))
			break;
	}
	return i;
}

/*
 * The oldest work request that waits for READ or atomic responses, or NULL. A peer may
 * send as many responses as it likes while thousands of WRITEs are in flight before the
 * READ, so it is remembered how far was looked: what is before that never begins to
 * wait for a response.
 */
static struct sroce_swqe *
sroce_response_oldest_read(struct sroce_requester *req, u32 before_psn)
{
	u32 from = req->reads;
	struct sroce_swqe *slot;

	/* The work requests that were looked at last time have all completed since */
	if (from - req->ring.index > req->fetched - req->ring.index)
		from = req->ring.index;
	req->reads = sroce_response_look(req, from, before_psn);
	if (req->reads == req->fetched)
		return NULL;
	slot = sroce_swqe_at(req, req->reads);
	if (slot->state == SROCE_SWQE_READY ||
	    sroce_swqe_offset(slot, before_psn) < 0)
		return NULL;
	return slot;
}

/* Where the next response to the oldest READ or atomic begins */
static u32 sroce_response_psn(const struct sroce_requester *req,
			      const struct sroce_swqe *slot)
{
	return sroce_swqe_offset(slot, req->una_psn) > 0 ? req->una_psn :
							    slot->first_psn;
}

static void sroce_response_advance(struct sroce_qp *qp, u32 una)
{
	WRITE_ONCE(qp->req.una_psn, una & SROCE_PSN_MASK);
	sroce_requester_retire(qp);
	if (sroce_qp_state(qp) != IB_QPS_ERR)
		sroce_requester_progress(qp);
}

/* A request's last response has come: it no longer counts as outstanding */
static void sroce_response_read_answered(struct sroce_requester *req,
					 const struct sroce_swqe *slot, u32 end)
{
	u32 k = (end - slot->first_psn) & SROCE_PSN_MASK;

	if ((k == slot->npsn || k % slot->chunk == 0) && req->rd_outstanding)
		req->rd_outstanding--;
}

/*
 * An answer that skips over a response, after a restart for that. The stream before the
 * restart still brings such answers for a while, which must not start another one; and
 * all are of that stream as long as nothing has been sent again. @again: it has come before.
 * Return: whether that was lost again.
 */
static bool sroce_response_lost_again(struct sroce_qp *qp, u32 psn, bool again)
{
	struct sroce_requester *req = &qp->req;

	if (req->send_psn == req->una_psn) {
		sroce_gap_see(&req->gap, psn);
		return false;
	}
	if (!again && sroce_early_is_rest(req))
		sroce_gap_see(&req->gap, psn);
	else if (sroce_gap_again(&req->gap, psn))
		return sroce_requester_may_ask_again(req);
	/* It may be of the new one: who posts meanwhile has an ACK from further ahead come first */
	sroce_requester_ask_without_timeout(qp);
	return false;
}

/* A response was lost, as one about @psn tells. @again: that has come before */
static void sroce_response_implied_nak(struct sroce_qp *qp, u32 psn, bool again)
{
	struct sroce_requester *req = &qp->req;

	if (sroce_qp_state(qp) == IB_QPS_ERR || req->rnr_wait)
		return;
	/* What comes next is here, and waits for its turn: what is missing is looked for then */
	if (unlikely(sroce_held_ready(&req->early.held, req->una_psn)))
		return;
	if (req->recovering && req->recover == req->una_psn) {
		if (!sroce_response_lost_again(qp, psn, again))
			return;
	} else {
		/* Where responses have come late before, it has a moment for that */
		sroce_early_open(qp, psn);
		if (!sroce_requester_may_ask_again(req))
			return;
	}
	sroce_requester_ask_again(qp);
	sroce_gap_begin(&req->gap, psn);
}

/* A READ of nothing that has left, and @psn is of something behind it */
static bool sroce_response_is_empty(const struct sroce_requester *req,
				    const struct sroce_swqe *slot, u32 psn)
{
	u32 end = sroce_swqe_end(slot);

	return slot->op == SROCE_OP_READ && !slot->length &&
	       sroce_psn_diff(end, psn) <= 0 &&
	       sroce_psn_diff(end, req->next_psn) <= 0;
}

/*
 * The oldest READ or atomic that waits, with an answer about @psn come: NULL for none. READs of
 * nothing before that have been carried out (requests are, in order), and their responses would
 * bring no data. They count as having come: rdma_rxe answers no such READ that is sent again.
 */
static struct sroce_swqe *sroce_response_waiting(struct sroce_qp *qp, u32 psn)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot = sroce_response_oldest_read(req, psn);

	while (unlikely(slot && sroce_response_is_empty(req, slot, psn))) {
		u32 end = sroce_swqe_end(slot);

		sroce_response_read_answered(req, slot, end);
		sroce_response_advance(qp, end);
		if (sroce_qp_state(qp) == IB_QPS_ERR)
			return NULL;
		slot = sroce_response_oldest_read(req, psn);
	}
	return slot;
}

/*
 * Acknowledge everything before @end, but no READ or atomic, by an answer about
 * @psn. Returns false when one of those is in the way: then its response was lost.
 */
static bool sroce_response_ack_until(struct sroce_qp *qp, u32 end, u32 psn)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot = sroce_response_waiting(qp, psn);
	u32 limit = end;

	if (unlikely(sroce_qp_state(qp) == IB_QPS_ERR))
		return true;
	/* Of a READ that is partly answered only the rest is in the way */
	if (slot)
		limit = sroce_response_psn(req, slot);
	if (sroce_psn_diff(limit, end) > 0)
		limit = end;
	if (sroce_psn_diff(limit, req->una_psn) > 0)
		sroce_response_advance(qp, limit);
	return limit == end;
}

static void sroce_response_nak(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_requester *req = &qp->req;
	bool expected = sroce_repair_take_expected(req);

	if (req->una_psn != t->psn)
		return;
	switch (t->syndrome) {
	case SROCE_NAK_PSN_SEQ:
		/* One restart for each PSN; when its packets are lost the timer helps */
		if (req->recovering && req->recover == t->psn &&
		    (sroce_psn_diff(req->send_psn, t->psn) <= 0 || expected))
			break;
		if (sroce_far_is_under_way(qp))
			break;
		sroce_requester_restart(qp, SROCE_CNT_PACKET_SEQ_ERR);
		break;
	case SROCE_NAK_INV_REQ:
		sroce_qp_count(qp, SROCE_CNT_REQ_REMOTE_INVALID_REQUEST, 1);
		sroce_requester_fail(qp, IB_WC_REM_INV_REQ_ERR);
		break;
	case SROCE_NAK_REM_ACCESS:
		sroce_qp_count(qp, SROCE_CNT_REQ_REMOTE_ACCESS_ERRORS, 1);
		sroce_requester_fail(qp, IB_WC_REM_ACCESS_ERR);
		break;
	case SROCE_NAK_REM_OP:
		sroce_requester_fail(qp, IB_WC_REM_OP_ERR);
		break;
	}
}

static void sroce_response_rnr_nak(struct sroce_qp *qp,
				   const struct sroce_train *t)
{
	struct sroce_requester *req = &qp->req;

	if (req->una_psn != t->psn || req->rnr_wait)
		return;
	sroce_qp_count(qp, SROCE_CNT_RNR_NAK_RETRY_ERR, 1);
	if (!req->rnr_retries) {
		sroce_qp_count(qp, SROCE_CNT_REQ_RNR_RETRIES_EXCEEDED, 1);
		sroce_requester_fail(qp, IB_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	/* 7: for ever (IBA 9.7.5.2.8) */
	if (req->rnr_retries != 7)
		req->rnr_retries--;
	sroce_requester_rnr_wait(qp, t->syndrome & SROCE_AETH_VALUE);
}

static void sroce_response_ack(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_requester *req = &qp->req;
	u8 kind = t->syndrome & SROCE_AETH_KIND;
	u32 end = sroce_psn_add(t->psn, kind == SROCE_AETH_ACK);

	/*
	 * Drop reserved kinds, and PSNs that were never sent or are acknowledged already
	 */
	if (kind != SROCE_AETH_ACK && kind != SROCE_AETH_RNR &&
	    kind != SROCE_AETH_NAK)
		return;
	if (sroce_psn_diff(t->psn, req->next_psn) >= 0 ||
	    sroce_psn_diff(end, req->una_psn) < 0)
		return;

	if (kind == SROCE_AETH_ACK)
		trace_sroce_ack(qp, t);
	else
		trace_sroce_nak(qp, t);
	if (!sroce_response_ack_until(qp, end, t->psn)) {
		sroce_early_ack(qp, t->psn, end);
		sroce_response_implied_nak(qp, t->psn, false);
		return;
	}
	if (sroce_qp_state(qp) == IB_QPS_ERR ||
	    sroce_repair_acked(qp, kind))
		return;
	if (kind == SROCE_AETH_NAK)
		sroce_response_nak(qp, t);
	else if (kind == SROCE_AETH_RNR)
		sroce_response_rnr_nak(qp, t);
}

/*
 * Translate the result of gathering the sink's pages to an ib_wc_status. -EAGAIN stays:
 * then the response has nowhere to go and counts as lost. Nothing is sent or taken until
 * the pages are there; then the request is sent again.
 */
static int sroce_response_sink_status(struct sroce_requester *req, int err)
{
	if (likely(!err))
		return IB_WC_SUCCESS;
	if (err != -EAGAIN)
		return IB_WC_LOC_PROT_ERR;
	req->half.fault.waiting = true;
	req->rnr_wait = true;
	req->deadline = 0;
	return err;
}

/* Copy what a response to a READ has to where pages are there. Return: 0 or an errno */
static int sroce_response_place(struct sroce_qp *qp, struct sroce_swqe *slot,
				struct sroce_train *t)
{
	u32 k = (t->psn - slot->first_psn) & SROCE_PSN_MASK;
	u32 len = t->bi.bi_size;
	struct bvec_iter di = { .bi_size = len };
	struct sroce_gather *g = sroce_gather_begin(&qp->req.half);
	int err;

	g->least = qp->mtu;
	err = sroce_gather_sink(g, slot, k * qp->mtu, &len);
	if (!err) {
		sroce_bvec_copy(g->bv, &di, t->bv, &t->bi, len);
		g->placed = len;
	}
	sroce_gather_end(g);
	return err;
}

/* Pages of the sink are there for the first packets only: the rest is a train of its own */
static void sroce_response_placed_head(struct sroce_qp *qp,
				       struct sroce_train *t)
{
	u32 rest = sroce_message_packets(t->bi.bi_size, qp->mtu);

	t->flags &= ~SROCE_START;
	t->psn = sroce_psn_add(t->psn, t->npkts - rest);
	t->npkts = rest;
	sroce_response_advance(qp, t->psn);
}

/*
 * An ib_wc_status, or -EAGAIN when the sink's pages are not there; @t is what was not
 * taken before that
 */
static int sroce_response_read(struct sroce_qp *qp, struct sroce_swqe *slot,
			       struct sroce_train *t)
{
	u32 k = (t->psn - slot->first_psn) & SROCE_PSN_MASK;
	u32 len = t->bi.bi_size;
	int err = 0;

	/*
	 * A response answers one request. What goes on behind its end would count
	 * as the answer to the next one, or to one that was never sent.
	 */
	if (t->npkts > sroce_swqe_chunk_rest(slot, k) ||
	    len != min(slot->length - k * qp->mtu, t->npkts * qp->mtu))
		return IB_WC_BAD_RESP_ERR;
	while (t->bi.bi_size) {
		err = sroce_response_place(qp, slot, t);
		if (err || likely(!t->bi.bi_size))
			break;
		sroce_response_placed_head(qp, t);
	}
	return sroce_response_sink_status(&qp->req, err);
}

static int sroce_response_atomic(struct sroce_qp *qp, struct sroce_swqe *slot,
				 const struct sroce_train *t)
{
	struct bvec_iter di = { .bi_size = sizeof(u64) };
	struct sroce_gather *g = sroce_gather_begin(&qp->req.half);
	u64 orig = t->compare;
	u32 len = sizeof(orig);
	int err;

	err = sroce_gather_sink(g, slot, 0, &len);
	if (!err)
		sroce_bvec_write(g->bv, &di, &orig, sizeof(orig));
	sroce_gather_end(g);
	return sroce_response_sink_status(&qp->req, err);
}

static bool sroce_response_fits(const struct sroce_swqe *slot, u8 op)
{
	if (slot->op == SROCE_OP_CMP_SWAP || slot->op == SROCE_OP_FETCH_ADD)
		return op == SROCE_OP_ATOMIC_ACK;
	/* FLUSH and ATOMIC WRITE are answered as a READ of nothing */
	return op == SROCE_OP_READ_RESP;
}

static int sroce_response_take(struct sroce_qp *qp, struct sroce_swqe *slot,
			       struct sroce_train *t)
{
	if (!sroce_response_fits(slot, t->op))
		return IB_WC_BAD_RESP_ERR;
	switch (slot->op) {
	case SROCE_OP_READ:
		return sroce_response_read(qp, slot, t);
	case SROCE_OP_CMP_SWAP:
	case SROCE_OP_FETCH_ADD:
		return sroce_response_atomic(qp, slot, t);
	default:
		return t->bi.bi_size ? IB_WC_BAD_RESP_ERR : IB_WC_SUCCESS;
	}
}

/*
 * A response has been taken, up to @end. It is an answer to what was sent again before its
 * READ, too; an ACK that comes later may find PSNs come round.
 */
static void sroce_response_taken(struct sroce_qp *qp, struct sroce_swqe *slot, u32 end)
{
	sroce_response_read_answered(&qp->req, slot, end);
	sroce_response_advance(qp, end);
	if (sroce_qp_state(qp) != IB_QPS_ERR)
		sroce_repair_acked(qp, SROCE_AETH_ACK);
}

/*
 * @kept: it has waited for its turn. A stranger's would have been kept as well: one that does not
 * fit fails nothing, and what is missing then is asked for
 */
static void sroce_response_data(struct sroce_qp *qp, struct sroce_train *t, bool kept)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot;
	u32 expected, psn;
	s32 behind;
	bool again;
	int status;

	if (sroce_psn_diff(t->psn, req->next_psn) >= 0)
		return;
	if (sroce_psn_diff(t->psn, req->una_psn) < 0) {
		sroce_early_again(qp, t);
		if (sroce_psn_diff(sroce_psn_add(t->psn, t->npkts), req->una_psn) <= 0)
			return;
	}
	slot = sroce_response_waiting(qp, t->psn);
	if (!slot)
		return;
	expected = sroce_response_psn(req, slot);
	behind = sroce_psn_diff(expected, t->psn);
	if (behind > 0) {
		if (t->npkts <= behind)
			return;
		sroce_train_trim(t, behind);
		/* What is new in it may be the answer to a request that was never sent */
		if (sroce_psn_diff(t->psn, req->next_psn) >= 0)
			return;
	}
	if (t->psn != expected) {
		psn = t->psn;
		sroce_response_ack_until(qp, expected, expected - 1);
		again = sroce_early_keep(qp, t);
		sroce_response_implied_nak(qp, psn, again);
		return;
	}

	/* The response acknowledges what was sent before the READ */
	if (expected != req->una_psn)
		sroce_response_advance(qp, expected);
	/* Completing the work requests in front of the READ may have failed the QP */
	if (sroce_qp_state(qp) == IB_QPS_ERR)
		return;
	status = sroce_response_take(qp, slot, t);
	if (status == -EAGAIN) {
		psn = sroce_psn_add(t->psn, t->npkts - 1);
		if (req->early.told && sroce_psn_diff(req->early.high, psn) > 0)
			psn = req->early.high;
		sroce_gap_begin(&req->gap, psn);
		return;
	}
	if (kept && status == IB_WC_BAD_RESP_ERR) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		return;
	}
	if (status != IB_WC_SUCCESS) {
		sroce_requester_fail(qp, status);
		return;
	}
	sroce_response_taken(qp, slot, sroce_psn_add(t->psn, t->npkts));
}

static bool sroce_qp_takes_responses(const struct sroce_qp *qp)
{
	switch (sroce_qp_state(qp)) {
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		return qp->type == IB_QPT_RC || qp->type == IB_QPT_XRC_INI;
	default:
		return false;
	}
}

/*
 * The READ is sent again when pages of its sink are there: responses are dropped. What comes behind
 * the newest of them afterwards is of the same stream, and what comes before it of the new one.
 */
static void sroce_response_drop(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_gap *gap = &qp->req.gap;
	u32 last = sroce_psn_add(t->psn, t->npkts - 1);

	sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
	if (t->op != SROCE_OP_ACK && sroce_psn_diff(last, gap->first) > 0 &&
	    sroce_psn_diff(last, qp->req.next_psn) < 0)
		sroce_gap_begin(gap, last);
}

void sroce_requester_response(struct sroce_qp *qp, struct sroce_train *t)
{
	if (!sroce_qp_takes_responses(qp)) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		return;
	}
	if (qp->req.half.fault.waiting) {
		sroce_response_drop(qp, t);
		return;
	}
	if (t->op == SROCE_OP_ACK)
		sroce_response_ack(qp, t);
	else
		sroce_response_data(qp, t, false);
}

/* A response acknowledges what was sent before the oldest READ that waits, also one that is kept */
static void sroce_response_kept_acks(struct sroce_qp *qp, const struct sroce_held *h)
{
	struct sroce_swqe *slot = sroce_response_waiting(qp, h->t.psn);
	u32 expected;

	if (!slot)
		return;
	/* A stranger's acknowledges nothing if the peer's would not look like that */
	if (sroce_swqe_offset(slot, h->t.psn) < slot->npsn && !sroce_response_fits(slot, h->t.op))
		return;
	expected = sroce_response_psn(&qp->req, slot);
	sroce_response_ack_until(qp, expected, expected - 1);
}

/*
 * What answers that have come too early acknowledge by now. They have told of a loss then, and tell
 * nothing new of it.
 * Return: whether that is anything
 */
static bool sroce_response_replay_acks(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_early *early = &req->early;
	struct sroce_held *h = sroce_held_first(&early->held);
	u32 una = req->una_psn;

	if (h)
		sroce_response_kept_acks(qp, h);
	if (early->acked && (sroce_psn_diff(early->ack_end, req->una_psn) <= 0 ||
			     sroce_response_ack_until(qp, early->ack_end, early->ack_psn)))
		early->acked = false;
	if (req->una_psn == una)
		return false;
	if (sroce_qp_state(qp) != IB_QPS_ERR)
		sroce_repair_acked(qp, SROCE_AETH_ACK);
	return true;
}

static void sroce_response_replay_first(struct sroce_qp *qp)
{
	struct sroce_held_trains *held = &qp->req.early.held;
	struct sroce_held *h = sroce_held_first(held);

	sroce_held_remove(held, h);
	sroce_turn_spend(h->t.bi.bi_size + SROCE_TURN_TRAIN);
	if (sroce_psn_diff(sroce_held_end(h), qp->req.una_psn) > 0)
		sroce_response_data(qp, &h->t, true);
	sroce_held_free(h);
}

bool sroce_response_replay(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	unsigned long begin = sroce_turn_spent();

	while (sroce_qp_takes_responses(qp) && !req->half.fault.waiting) {
		if (sroce_turn_half_over(begin))
			return true;
		if (sroce_held_ready(&req->early.held, req->una_psn))
			sroce_response_replay_first(qp);
		else if (!sroce_response_replay_acks(qp))
			break;
	}
	return false;
}
