// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder: requests of a connected QP, in PSN order (IBA 9.7.4).
 *
 * Each request is checked in the order of IBA 9.7.4.1: sequence, opcode
 * sequence, rights of the QP, resources, length, key. Only then is anything
 * placed in memory or any state changed.
 *
 * Here is the order: requests come from receive.c, or from the inbox when the half
 * runs, and go on by their PSN. The next one is carried out, by its opcode
 * (responder_place.c, responder_read.c); one from before is a duplicate
 * (responder_dup.c); a later one tells that some are missing (hold.c). Then the answers
 * leave (responder_reply.c).
 */
#include "transport/ack_delay.h"
#include "transport/answers.h"
#include "transport/direct.h"
#include "transport/fault.h"
#include "transport/hold.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/patience.h"
#include "transport/receive.h"
#include "transport/responder.h"
#include "transport/responder_dup.h"
#include "transport/responder_place.h"
#include "transport/responder_read.h"
#include "transport/responder_recv.h"
#include "transport/responder_reply.h"
#include "transport/responder_verdict.h"
#include "transport/run.h"
#include "transport/send.h"
#include "transport/xrc.h"
#include "turn.h"

bool sroce_qp_takes_requests(const struct sroce_qp *qp)
{
	switch (sroce_qp_state(qp)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* IBA 9.7.4.1.2: FIRST and ONLY between messages, MIDDLE and LAST within one */
bool sroce_responder_sequence_ok(const struct sroce_responder *resp,
				 const struct sroce_train *t)
{
	switch (resp->msg.state) {
	case SROCE_RESP_SEND:
		return t->op == SROCE_OP_SEND && !(t->flags & SROCE_START);
	case SROCE_RESP_WRITE:
		return t->op == SROCE_OP_WRITE && !(t->flags & SROCE_START);
	default:
		return t->flags & SROCE_START;
	}
}

/* The SEND that has invalidated a key is asked for again until nobody uses that */
static bool sroce_responder_keeps_inv(const struct sroce_responder *resp,
				      const struct sroce_train *t)
{
	if (likely(!resp->msg.inv_wait))
		return true;
	if (t->op != SROCE_OP_SEND)
		return false;
	return !(t->flags & SROCE_END) ||
	       (t->flags & SROCE_INV && t->inv_rkey == resp->msg.inv_wait);
}

void sroce_responder_execute(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	if (unlikely(resp->hold.open))
		sroce_hold_gap_filled(qp);
	resp->ack.nak_sent = false;
	resp->ack.rnr_sent = false;
	resp->half.fault.waiting = false;
	if (unlikely(resp->half.fault.since) && resp->half.fault.psn != t->psn)
		sroce_fault_forget(&resp->half);
	if (resp->ack.state == SROCE_ACK_NAK)
		resp->ack.state = SROCE_ACK_NONE;
	if (!sroce_responder_sequence_ok(resp, t) ||
	    !sroce_responder_keeps_inv(resp, t)) {
		sroce_responder_refuse_request(qp);
		return;
	}
	switch (t->op) {
	case SROCE_OP_SEND:
		sroce_responder_execute_send(qp, t);
		break;
	case SROCE_OP_WRITE:
		sroce_responder_execute_write(qp, t);
		break;
	case SROCE_OP_READ:
		sroce_responder_execute_read(qp, t);
		break;
	case SROCE_OP_CMP_SWAP:
	case SROCE_OP_FETCH_ADD:
		sroce_responder_execute_atomic(qp, t);
		break;
	case SROCE_OP_ATOMIC_WRITE:
		sroce_responder_execute_atomic_write(qp, t);
		break;
	case SROCE_OP_FLUSH:
		sroce_responder_execute_flush(qp, t);
		break;
	default:
		sroce_responder_refuse_request(qp);
	}
}

void sroce_responder_established(struct sroce_qp *qp)
{
	if (sroce_qp_state(qp) != IB_QPS_RTR || qp->resp.comm_est)
		return;
	qp->resp.comm_est = true;
	sroce_qp_event(qp, IB_EVENT_COMM_EST);
}

void sroce_responder_request(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	s32 ahead = sroce_psn_diff(t->psn, resp->epsn);

	if (!sroce_qp_takes_requests(qp) || resp->ack.fatal) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		return;
	}
	/* A repeated train may be new in its second part */
	if (ahead < 0 && t->npkts > -ahead) {
		sroce_train_trim(t, -ahead);
		ahead = 0;
	}
	if (ahead > 0) {
		sroce_hold_missed(qp, t);
	} else if (ahead < 0) {
		sroce_responder_duplicate(qp, t);
	} else {
		/* Whoever does not know the PSN has not established anything */
		sroce_responder_established(qp);
		if (qp->xrcd)
			sroce_xrc_execute(qp, t);
		else
			sroce_responder_execute(qp, t);
	}
}

void sroce_responder_reset(struct sroce_responder *resp)
{
	sroce_hold_reset(container_of(resp, struct sroce_qp, resp));
	sroce_fault_reset(&resp->half);
	resp->msg.state = SROCE_RESP_IDLE;
	resp->ack.state = SROCE_ACK_NONE;
	resp->ack.fatal = false;
	resp->ack.nak_sent = false;
	resp->ack.rnr_sent = false;
	resp->comm_est = false;
	resp->last_wqe = false;
	resp->msg.inv_wait = 0;
	resp->msg.have_wqe = false;
	sroce_ack_reset(&resp->ack.delay);
	sroce_patience_reset(resp);
	resp->msn = 0;
	sroce_answers_reset(&resp->answers);
}

/*
 * In ERR the peer is still told which of its requests were carried out before, as far as their
 * answers have left: an ACK must not be about a READ that has none, nor come in the middle of one
 * (responder_reply.c says why), and what has left of that tells as much. The NAK that ends
 * the connection says why it does.
 */
static void sroce_responder_last_ack(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_job *job;
	struct sroce_tx tx = {};

	if (!sroce_answers_all_sent(&resp->answers)) {
		job = sroce_answers_next(&resp->answers);
		resp->epsn = job->res.psn;
		resp->ack.end = job->res.end;
		resp->ack.state = job->sent ? SROCE_ACK_NONE : SROCE_ACK_OWED;
	}
	/* What is asked for again would not be taken; what came before it was */
	if (resp->ack.state == SROCE_ACK_NAK && !resp->ack.fatal)
		resp->ack.state = SROCE_ACK_OWED;
	if (resp->ack.state == SROCE_ACK_NONE)
		return;
	sroce_reply_ack(qp, &resp->half, &tx);
	sroce_send_flush(&resp->half, &tx);
}

/* In ERR: every receive work request completes; those of an SRQ stay there */
static bool sroce_responder_flush(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	int budget = SROCE_FLUSH_BUDGET;

	sroce_responder_last_ack(qp);
	sroce_answers_drop(&resp->answers);
	resp->ack.state = SROCE_ACK_NONE;
	/* Pairs with sroce_parcel_give_back(): it sees ERR, or we see its count */
	smp_mb();
	/*
	 * Whoever waits for the last receive to be flushed takes the memory back that
	 * READ responses may still point to
	 */
	if (sroce_qp_has_lent(qp))
		return false;
	if (qp->xrcd)
		sroce_xrc_flush(qp);
	if (resp->msg.have_wqe)
		sroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
	if (qp->srq) {
		if (!resp->last_wqe)
			sroce_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		resp->last_wqe = true;
		return false;
	}
	/* What a process writes where nobody may post is nothing; there may be no queue for it */
	if (!qp->kind->receives)
		return false;
	/* From now on every poster rings */
	WRITE_ONCE(resp->ring.hdr->flags, SROCE_RQ_DOORBELL);
	/* We set the flag, then read prod; posters store prod, then read the flag */
	smp_mb();
	while (budget-- && sroce_recv_take(qp) != -ENOENT)
		sroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
	return budget < 0;
}

/* A request waits for a receive, but its sender wants back what is in the inbox */
static bool sroce_responder_hurries(struct sroce_qp *qp, struct sroce_parcel *p)
{
	if (!sroce_inbox_recalled(&qp->resp.half, p))
		return false;
	sroce_patience_deny(&qp->resp);
	/* Try the request once more; if there is no receive, its sender is told */
	sroce_receive_parcel(qp, p);
	sroce_patience_allow(&qp->resp);
	return true;
}

/*
 * Take trains from the inbox, up to a request that waits for a receive, and as many as
 * one half may before others run.
 * Return: true when there are more.
 */
static bool sroce_responder_inbox(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	unsigned long begin = sroce_turn_spent();
	struct sroce_parcel *p;

	/* In ERR a request that waits is dropped like all others */
	if (resp->patience.state == SROCE_RESP_WAITS && !sroce_qp_takes_requests(qp))
		resp->patience.state = SROCE_RESP_LOOKS;
	while (resp->patience.state != SROCE_RESP_WAITS &&
	       (p = sroce_inbox_next(&resp->half))) {
		sroce_turn_spend(sroce_parcel_cost(p));
		sroce_receive_parcel(qp, p);
		if (unlikely(resp->patience.state == SROCE_RESP_WAITS) &&
		    !sroce_responder_hurries(qp, p)) {
			sroce_inbox_return(&resp->half, p);
			break;
		}
		resp->patience.kept -= sroce_parcel_kept(p);
		sroce_parcel_free(p);
		if (sroce_turn_half_over(begin) &&
		    !list_empty(&resp->half.inbox))
			return true;
	}
	if (unlikely(resp->patience.state == SROCE_RESP_LOOKS))
		sroce_patience_over(qp);
	return false;
}

bool sroce_responder_run(struct sroce_half *half)
{
	struct sroce_qp *qp = half->qp;
	bool more;

	sroce_half_unstarve(half);
	more = sroce_responder_inbox(qp);
	if (unlikely(qp->resp.hold.held.n || qp->resp.hold.lost) && !more)
		more = sroce_hold_replay(qp);
	if (unlikely(half->fault.waiting || half->fault.told) &&
	    !sroce_fault_is_running(half) && !sroce_place_misses_more(qp))
		sroce_responder_pages_come(&qp->resp);
	if (sroce_qp_takes_requests(qp))
		more |= sroce_responder_reply(qp);
	if (!more && sroce_qp_state(qp) == IB_QPS_ERR)
		return sroce_responder_flush(qp);
	return more;
}
