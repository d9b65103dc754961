// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder: requests of a connected QP, in PSN order (IBA 9.7.4).
 *
 * Each request is checked in the order of IBA 9.7.4.1: sequence, opcode
 * sequence, rights of the QP, resources, length, key. Only then is anything
 * placed in memory or any state changed.
 */
#include <linux/nospec.h>

#include "compat.h"
#include "memory/copy.h"
#include "transport/ack_delay.h"
#include "transport/direct.h"
#include "transport/fault.h"
#include "transport/gap.h"
#include "transport/gather.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/patience.h"
#include "transport/receive.h"
#include "transport/responder.h"
#include "transport/responder_reply.h"
#include "transport/run.h"
#include "transport/xrc.h"
#include "turn.h"

bool sroce_takes_requests(const struct sroce_qp *qp)
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

/* --- receive work requests -------------------------------------------------- */

/* What was copied from a queue is checked before anybody looks at its elements */
static int sroce_recv_check(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;

	resp->recv_off = 0;
	resp->recv_len = 0;
	if (resp->wqe->num_sge > qp->max_recv_sge || resp->wqe->reserved) {
		resp->wqe->num_sge = 0;
		return -EINVAL;
	}
	resp->wqe->num_sge = array_index_nospec(resp->wqe->num_sge,
						qp->max_recv_sge + 1);
	resp->recv_len = sroce_recv_room(resp->wqe, qp->max_recv_sge);
	return 0;
}

int sroce_recv_take_for(struct sroce_qp *qp, u32 len)
{
	struct sroce_responder *resp = &qp->resp;
	int err;

	if (qp->srq) {
		err = sroce_srq_take(qp->srq, resp->wqe, len);
		resp->wqe_user = qp->srq->user;
	} else {
		err = sroce_ring_take_recv(&resp->ring, resp->wqe,
					   qp->max_recv_sge, len);
		resp->wqe_user = qp->user;
	}
	if (err)
		return err;
	resp->have_wqe = true;
	return sroce_recv_check(qp);
}

int sroce_recv_look_for(struct sroce_qp *qp, u32 len)
{
	struct sroce_responder *resp = &qp->resp;
	int err;

	if (!qp->srq)
		return sroce_recv_take_for(qp, len);
	err = sroce_srq_look(qp->srq, resp->wqe, len, &resp->srq_index);
	resp->wqe_user = qp->srq->user;
	return err ?: sroce_recv_check(qp);
}

bool sroce_recv_claim(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;

	if (!resp->have_wqe)
		resp->have_wqe = sroce_srq_claim(qp->srq, resp->srq_index,
						 &resp->srq_limit);
	return resp->have_wqe;
}

void sroce_recv_complete(struct sroce_qp *qp, struct sroce_cqe *cqe,
			 bool solicited)
{
	struct sroce_responder *resp = &qp->resp;

	cqe->wr_id = resp->wqe->wr_id;
	resp->have_wqe = false;
	if (cqe->status == IB_WC_WR_FLUSH_ERR)
		sroce_qp_count(qp, SROCE_CNT_RESP_CQE_FLUSH_ERROR, 1);
	else if (cqe->status != IB_WC_SUCCESS)
		sroce_qp_count(qp, SROCE_CNT_RESP_CQE_ERROR, 1);
	if (!sroce_cq_add(qp->rcq, qp->ibqp, cqe,
			  solicited || cqe->status != IB_WC_SUCCESS))
		sroce_qp_fatal(qp);
}

void sroce_recv_fail(struct sroce_qp *qp, enum ib_wc_status status)
{
	struct sroce_cqe cqe = {
		.status = status,
		.opcode = IB_WC_RECV,
	};

	sroce_recv_complete(qp, &cqe, true);
}

/* What was taken has been taken, whatever happened to the QP since */
static void sroce_last_ack(struct sroce_qp *qp)
{
	struct sroce_tx tx = {};

	sroce_reply_ack(qp, &qp->resp.half, &tx);
	qp->port->xmit->flush(&tx);
}

/* In ERR: every receive work request completes; those of an SRQ stay there */
static bool sroce_responder_flush(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	int budget = SROCE_FLUSH_BUDGET;

	if (resp->ack == SROCE_ACK_OWED && sroce_replied(resp))
		sroce_last_ack(qp);
	resp->job_head = resp->job_tail;
	resp->ack = SROCE_ACK_NONE;
	/* Pairs with sroce_give_back(): it sees our state, or we its count */
	smp_mb();
	/*
	 * Whoever waits for the last receive to be flushed takes the memory back that
	 * READ responses may still point to
	 */
	if (sroce_has_lent(qp))
		return false;
	if (qp->xrcd)
		sroce_xrc_flush(qp);
	if (resp->have_wqe)
		sroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
	if (qp->srq) {
		if (!resp->last_wqe)
			sroce_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		resp->last_wqe = true;
		return false;
	}
	/* From now on every poster rings */
	WRITE_ONCE(resp->ring.hdr->flags, SROCE_RQ_DOORBELL);
	/* Pairs with the poster's, between its index and our flags */
	smp_mb();
	while (budget-- && sroce_recv_take(qp) != -ENOENT)
		sroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
	return budget < 0;
}

/* --- answers ------------------------------------------------------------------ */

static void sroce_owe_nak(struct sroce_responder *resp, u8 syndrome)
{
	resp->ack = SROCE_ACK_NAK;
	resp->syndrome = syndrome;
}

/*
 * A request that cannot be carried out: NAK, and ERR once that has left. The
 * receive work request in use, if any, says why; otherwise an event does
 * (IBA 9.9.3, C9-222.1).
 */
static void sroce_refuse(struct sroce_qp *qp, u8 syndrome,
			 enum ib_wc_status status)
{
	struct sroce_responder *resp = &qp->resp;

	sroce_owe_nak(resp, syndrome);
	resp->fatal = true;
	if (syndrome == SROCE_NAK_REM_ACCESS)
		sroce_qp_count(qp, SROCE_CNT_RESP_REMOTE_ACCESS_ERRORS, 1);
	if (status == IB_WC_LOC_LEN_ERR)
		sroce_qp_count(qp, SROCE_CNT_RESP_LOCAL_LENGTH_ERROR, 1);
	if (resp->have_wqe)
		sroce_recv_fail(qp, status);
	else
		sroce_qp_event(qp, syndrome == SROCE_NAK_REM_ACCESS ?
			       IB_EVENT_QP_ACCESS_ERR : IB_EVENT_QP_REQ_ERR);
}

void sroce_ask_again(struct sroce_responder *resp)
{
	sroce_gap_begin(&resp->gap, resp->epsn);
	sroce_owe_nak(resp, SROCE_NAK_PSN_SEQ);
	resp->nak_sent = true;
}

void sroce_refuse_request(struct sroce_qp *qp)
{
	sroce_refuse(qp, SROCE_NAK_INV_REQ, IB_WC_REM_INV_REQ_ERR);
}

static void sroce_refuse_access(struct sroce_qp *qp)
{
	sroce_refuse(qp, SROCE_NAK_REM_ACCESS, IB_WC_LOC_ACCESS_ERR);
}

static void sroce_not_ready(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	if (sroce_patience_begin(qp, t->psn))
		return;
	sroce_qp_count(qp, SROCE_CNT_OUT_OF_BUFFER, 1);
	sroce_owe_nak(resp, SROCE_AETH_RNR | (qp->attr.min_rnr_timer & 0x1f));
	resp->rnr_sent = true;
	sroce_gap_begin(&resp->gap, t->psn);
}

/*
 * The pages that a request is about are being brought in. It is dropped, as is
 * what comes behind it, and the peer is asked for it when they are there. A
 * peer that sends it again before gets told to wait.
 */
static void sroce_paging(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_fault *f = &resp->half.fault;

	resp->rnr_sent = true;
	sroce_gap_begin(&resp->gap, t->psn);
	f->waiting = !f->met;
	if (f->met)
		sroce_owe_nak(resp, SROCE_AETH_RNR |
			      (qp->attr.min_rnr_timer & 0x1f));
	f->met = true;
}

/* They are there, or will be an error. Context: responder lock held. */
static void sroce_paged(struct sroce_responder *resp)
{
	resp->half.fault.waiting = false;
	if (!resp->fatal)
		sroce_owe_nak(resp, SROCE_NAK_PSN_SEQ);
}

/* The request was carried out */
static void sroce_accepted(struct sroce_qp *qp, const struct sroce_train *t,
			   u32 npsn)
{
	struct sroce_responder *resp = &qp->resp;

	resp->epsn = sroce_psn_add(resp->epsn, npsn);
	if (t->flags & SROCE_END)
		resp->msn = (resp->msn + 1) & SROCE_PSN_MASK;
	if (t->flags & SROCE_ACKREQ)
		resp->ack = SROCE_ACK_OWED;
}

/* --- SEND and RDMA WRITE -------------------------------------------------------- */

/* IBA 9.7.4.1.6: all packets but the last are full, the last is not empty */
bool sroce_length_ok(const struct sroce_qp *qp, const struct sroce_train *t)
{
	u32 most = t->npkts * qp->mtu;
	u32 len = t->bi.bi_size;

	if (!(t->flags & SROCE_END))
		return len == most;
	if (t->npkts == 1 && (t->flags & SROCE_START))
		return len <= most;
	return len > most - qp->mtu && len <= most;
}

int sroce_place_sges(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	u32 len = t->bi.bi_size;
	struct bvec_iter di = { .bi_size = len };
	struct sroce_gather *g = sroce_gather_begin();
	struct sroce_sgl l = sroce_recv_sgl(qp);
	int err;

	err = sroce_gather_sges(g, qp, &l, IB_ACCESS_LOCAL_WRITE,
				resp->recv_off, len);
	if (err == -EAGAIN)
		err = sroce_fault_gather(&resp->half, g,
					 resp->recv_len - resp->recv_off);
	if (!err) {
		sroce_bvec_copy(g->bv, &di, t->bv, &t->bi, len);
		resp->recv_off += len;
	}
	sroce_gather_end(g);
	return err;
}

int sroce_place_rkey(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	u32 len = t->bi.bi_size;
	struct bvec_iter di = { .bi_size = len };
	struct sroce_gather *g = sroce_gather_begin();
	int err;

	err = sroce_gather_key(g, qp, resp->rkey, IB_ACCESS_REMOTE_WRITE,
			       resp->va, len);
	if (err == -EAGAIN)
		err = sroce_fault_gather(&resp->half, g, resp->left);
	if (!err) {
		sroce_bvec_copy(g->bv, &di, t->bv, &t->bi, len);
		resp->va += len;
		resp->left -= len;
	}
	sroce_gather_end(g);
	return err;
}

void sroce_message_received(struct sroce_qp *qp, const struct sroce_train *t,
			    u8 opcode, u32 len)
{
	struct sroce_cqe cqe = {
		.opcode = opcode,
		.byte_len = len,
	};

	if (t->flags & SROCE_IMM) {
		cqe.flags = SROCE_CQE_IMM;
		cqe.imm_data = t->imm;
	} else if (t->flags & SROCE_INV) {
		cqe.flags = SROCE_CQE_INV;
		cqe.invalidate_rkey = t->inv_rkey;
	}
	sroce_recv_complete(qp, &cqe, t->flags & SROCE_SOLICITED);
}

static void sroce_send_received(struct sroce_qp *qp, struct sroce_train *t)
{
	if (t->flags & SROCE_END) {
		qp->resp.inv_wait = 0;
		sroce_message_received(qp, t, IB_WC_RECV, qp->resp.recv_off);
	}
	sroce_accepted(qp, t, t->npkts);
}

/*
 * While the region is still being copied to or from the message is not
 * complete: the peer is asked for this train again, which is placed again, in
 * whatever pieces it comes then. The key is invalidated once.
 */
static bool sroce_invalidated(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_mr_table *mrs = &qp->port->mrs;
	bool again = resp->inv_wait && resp->inv_wait == t->inv_rkey;

	if (!again &&
	    sroce_mr_invalidate(mrs, t->inv_rkey, qp->pd, &qp->windows,
				true)) {
		sroce_refuse_access(qp);
		return false;
	}
	resp->inv_wait = t->inv_rkey;
	if (sroce_mr_quiet(mrs, t->inv_rkey))
		return true;
	sroce_owe_nak(resp, SROCE_NAK_PSN_SEQ);
	return false;
}

static void sroce_send_request(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	u32 len = t->bi.bi_size;
	int err;

	if (!sroce_length_ok(qp, t)) {
		sroce_refuse_request(qp);
		return;
	}
	/* It is taken already when its pages were missing the first time */
	if ((t->flags & SROCE_START) && !resp->have_wqe) {
		err = sroce_recv_take(qp);
		if (err == -ENOENT) {
			sroce_not_ready(qp, t);
			return;
		}
		if (err) {
			sroce_refuse(qp, SROCE_NAK_REM_OP,
				     IB_WC_LOC_QP_OP_ERR);
			return;
		}
	}
	if (len > resp->recv_len - resp->recv_off) {
		sroce_refuse(qp, SROCE_NAK_INV_REQ, IB_WC_LOC_LEN_ERR);
		return;
	}
	err = len ? sroce_place_sges(qp, t) : 0;
	if (err == -EAGAIN) {
		sroce_paging(qp, t);
		return;
	}
	if (err) {
		sroce_refuse(qp, SROCE_NAK_REM_OP, IB_WC_LOC_PROT_ERR);
		return;
	}
	if (t->flags & SROCE_INV && !sroce_invalidated(qp, t)) {
		resp->recv_off -= len;
		return;
	}
	resp->state = t->flags & SROCE_END ? SROCE_RESP_IDLE : SROCE_RESP_SEND;
	sroce_send_received(qp, t);
}

int sroce_write_begin(struct sroce_qp *qp, const struct sroce_train *t,
		      u32 check)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_mr *mr;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    t->dma_len > 1U << 31)
		return -EBADMSG;
	if (check) {
		mr = sroce_rkey_get(qp, t->rkey, IB_ACCESS_REMOTE_WRITE,
				    t->va, check);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		sroce_mr_put(mr);
	}
	resp->va = t->va;
	resp->rkey = t->rkey;
	resp->left = t->dma_len;
	resp->write_len = t->dma_len;
	return 0;
}

void sroce_write_taken(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	resp->state = t->flags & SROCE_END ? SROCE_RESP_IDLE : SROCE_RESP_WRITE;
	if (t->flags & SROCE_START)
		sroce_qp_count(qp, SROCE_CNT_RX_WRITE_REQUESTS, 1);
	if (t->flags & SROCE_IMM)
		sroce_message_received(qp, t, IB_WC_RECV_RDMA_WITH_IMM,
				       resp->write_len);
}

/* Payload against what the RETH announced (IBA 9.7.4.1.6) */
bool sroce_write_length_ok(const struct sroce_responder *resp,
			   const struct sroce_train *t)
{
	u32 left = t->flags & SROCE_START ? t->dma_len : resp->left;
	u32 len = t->bi.bi_size;

	return t->flags & SROCE_END ? len == left : len < left;
}

static void sroce_write_request(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	int err = 0;

	if (!sroce_length_ok(qp, t) || !sroce_write_length_ok(resp, t)) {
		sroce_refuse_request(qp);
		return;
	}
	/* Nothing is placed before the receive work request is there */
	if (t->flags & SROCE_IMM && !resp->have_wqe)
		err = sroce_recv_take(qp);
	if (err == -ENOENT) {
		sroce_not_ready(qp, t);
		return;
	}
	if (err) {
		sroce_refuse(qp, SROCE_NAK_REM_OP, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	/* The whole range is checked before the first byte is placed */
	if (t->flags & SROCE_START)
		err = sroce_write_begin(qp, t, t->flags & SROCE_END ?
					0 : t->dma_len);
	if (err == -EBADMSG) {
		sroce_refuse_request(qp);
		return;
	}
	if (!err && t->bi.bi_size)
		err = sroce_place_rkey(qp, t);
	if (err == -EAGAIN) {
		sroce_paging(qp, t);
		return;
	}
	if (err) {
		sroce_refuse_access(qp);
		return;
	}
	sroce_write_taken(qp, t);
	sroce_accepted(qp, t, t->npkts);
}

/* --- READ and atomics ------------------------------------------------------------ */

/* Queue the answer and remember it for duplicates; false: no room */
static bool sroce_answer(struct sroce_responder *resp,
			 const struct sroce_rd_res *res)
{
	if (!sroce_job_push(resp, res))
		return false;
	resp->res[resp->res_next] = *res;
	resp->res_next = (resp->res_next + 1) % resp->nres;
	return true;
}

static void sroce_read_request(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_res res = {
		.op = SROCE_OP_READ,
		.psn = t->psn,
		.npsn = sroce_packets(t->dma_len, qp->mtu),
		.srqn = resp->srqn,
		.va = t->va,
		.rkey = t->rkey,
		.len = t->dma_len,
	};
	struct sroce_mr *mr;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) ||
	    !qp->attr.max_dest_rd_atomic || t->dma_len > 1U << 31 ||
	    t->bi.bi_size) {
		sroce_refuse_request(qp);
		return;
	}
	if (t->dma_len) {
		mr = sroce_rkey_get(qp, t->rkey, IB_ACCESS_REMOTE_READ,
				    t->va, t->dma_len);
		if (IS_ERR(mr)) {
			sroce_refuse_access(qp);
			return;
		}
		sroce_mr_put(mr);
	}
	/* More than was agreed on: as good as lost, the peer asks again */
	if (!sroce_answer(resp, &res))
		return;
	sroce_qp_count(qp, SROCE_CNT_RX_READ_REQUESTS, 1);
	sroce_accepted(qp, t, res.npsn);
	resp->ack = SROCE_ACK_NONE;
}

/* Keep the 8 bytes in place; false when they are not there, which is dealt with */
static bool sroce_atomic_enter(struct sroce_qp *qp, const struct sroce_train *t,
			       struct sroce_mr *mr)
{
	int err = sroce_fault_enter(&qp->resp.half, mr, t->va);

	if (err == -EAGAIN)
		sroce_paging(qp, t);
	else if (err)
		sroce_refuse_access(qp);
	return !err;
}

static void sroce_atomic_request(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_res res = {
		.op = t->op,
		.psn = t->psn,
		.npsn = 1,
	};
	struct sroce_mr *mr;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC) ||
	    !qp->attr.max_dest_rd_atomic || t->bi.bi_size || t->va & 7) {
		sroce_refuse_request(qp);
		return;
	}
	mr = sroce_rkey_get(qp, t->rkey, IB_ACCESS_REMOTE_ATOMIC,
			    t->va, sizeof(u64));
	if (IS_ERR(mr)) {
		sroce_refuse_access(qp);
		return;
	}
	if (!sroce_job_room(resp) || !sroce_atomic_enter(qp, t, mr)) {
		sroce_mr_put(mr);
		return;
	}
	res.orig = sroce_atomic(mr, t->va, t->op == SROCE_OP_CMP_SWAP,
				t->compare, t->swap_add);
	sroce_fault_leave(mr);
	sroce_mr_put(mr);
	sroce_answer(resp, &res);
	sroce_qp_count(qp, SROCE_CNT_RX_ATOMIC_REQUESTS, 1);
	sroce_accepted(qp, t, 1);
	resp->ack = SROCE_ACK_NONE;
}

static void sroce_atomic_write_request(struct sroce_qp *qp,
				       struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_res res = {
		.op = t->op,
		.psn = t->psn,
		.npsn = 1,
	};
	struct sroce_mr *mr;
	u64 value;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    !qp->attr.max_dest_rd_atomic || t->dma_len != sizeof(value) ||
	    t->bi.bi_size != sizeof(value) || t->va & 7) {
		sroce_refuse_request(qp);
		return;
	}
	mr = sroce_rkey_get(qp, t->rkey, IB_ACCESS_REMOTE_WRITE,
			    t->va, sizeof(value));
	if (IS_ERR(mr)) {
		sroce_refuse_access(qp);
		return;
	}
	if (sroce_job_room(resp) && sroce_atomic_enter(qp, t, mr)) {
		sroce_bvec_read(&value, t->bv, &t->bi, sizeof(value));
		sroce_atomic_write(mr, t->va, value);
		sroce_fault_leave(mr);
		sroce_answer(resp, &res);
		sroce_qp_count(qp, SROCE_CNT_RX_ATOMIC_REQUESTS, 1);
		sroce_accepted(qp, t, 1);
		resp->ack = SROCE_ACK_NONE;
	}
	sroce_mr_put(mr);
}

/* Rights that the placement type asks of QP and region; 0: a reserved one */
static int sroce_flush_rights(u32 feth)
{
	u32 plt = feth & SROCE_FETH_PLT;
	int rights = 0;

	if (plt & ~(SROCE_FETH_GLOBAL | SROCE_FETH_PERSISTENT) ||
	    feth & SROCE_FETH_SEL & ~SROCE_FETH_WHOLE_MR)
		return 0;
	if (plt & SROCE_FETH_GLOBAL)
		rights |= IB_ACCESS_FLUSH_GLOBAL;
	if (plt & SROCE_FETH_PERSISTENT)
		rights |= IB_ACCESS_FLUSH_PERSISTENT;
	return rights;
}

/*
 * Whatever was written before is in memory already, where every CPU sees it:
 * global visibility takes a barrier. Persistence is refused when the region is
 * registered.
 */
static void sroce_flush_request(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	int rights = sroce_flush_rights(t->feth);
	struct sroce_rd_res res = {
		.op = t->op,
		.psn = t->psn,
		.npsn = 1,
	};
	struct sroce_mr *mr;

	if (!rights || (qp->attr.qp_access_flags & rights) != rights ||
	    !qp->attr.max_dest_rd_atomic || t->bi.bi_size) {
		sroce_refuse_request(qp);
		return;
	}
	if (t->feth & SROCE_FETH_WHOLE_MR)
		mr = sroce_rkey_check(qp, sroce_mr_get_whole(&qp->port->mrs,
							     t->rkey, qp->pd,
							     rights));
	else
		mr = sroce_rkey_get(qp, t->rkey, rights, t->va, t->dma_len);
	if (IS_ERR(mr)) {
		sroce_refuse_access(qp);
		return;
	}
	if (sroce_job_room(resp)) {
		/* What was placed is visible to all before the answer leaves */
		wmb();
		sroce_answer(resp, &res);
		sroce_accepted(qp, t, 1);
		resp->ack = SROCE_ACK_NONE;
	}
	sroce_mr_put(mr);
}

/* --- duplicates and gaps ------------------------------------------------------------ */

/*
 * From the newest back: of PSNs that have come round since, an older one tells of
 * another time.
 */
static struct sroce_rd_res *sroce_find_res(struct sroce_responder *resp,
					   u32 psn)
{
	struct sroce_rd_res *res;
	u32 i;

	for (i = 1; i <= resp->nres; i++) {
		res = &resp->res[(resp->res_next + resp->nres - i) %
				 resp->nres];
		if (res->op != SROCE_OP_NONE &&
		    ((psn - res->psn) & SROCE_PSN_MASK) < res->npsn)
			return res;
	}
	return NULL;
}

/* A READ again, as a whole or from some packet on: nothing but what it was */
static bool sroce_same_read(const struct sroce_qp *qp,
			    const struct sroce_rd_res *res,
			    const struct sroce_train *t)
{
	u32 off = ((t->psn - res->psn) & SROCE_PSN_MASK) * qp->mtu;

	return res->op == SROCE_OP_READ && t->rkey == res->rkey &&
	       t->va == res->va + off && t->dma_len <= res->len - off;
}

static void sroce_duplicate_read(struct sroce_qp *qp, struct sroce_train *t,
				 const struct sroce_rd_res *old)
{
	struct sroce_rd_res res = {
		.op = SROCE_OP_READ,
		.psn = t->psn,
		.npsn = sroce_packets(t->dma_len, qp->mtu),
		.srqn = old->srqn,
		.va = t->va,
		.rkey = t->rkey,
		.len = t->dma_len,
	};

	if (sroce_same_read(qp, old, t))
		sroce_job_repeat(&qp->resp, &res);
}

static void sroce_duplicate(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_res *res;

	sroce_qp_count(qp, SROCE_CNT_DUPLICATE_REQUEST, 1);
	sroce_ack_hurry(resp);
	if (t->op == SROCE_OP_SEND || t->op == SROCE_OP_WRITE) {
		if ((t->flags & SROCE_ACKREQ) && resp->ack == SROCE_ACK_NONE)
			resp->ack = SROCE_ACK_OWED;
		return;
	}
	res = sroce_find_res(resp, t->psn);
	if (!res)
		return;
	if (t->op == SROCE_OP_READ)
		sroce_duplicate_read(qp, t, res);
	else if (t->op == res->op)
		sroce_job_repeat(resp, res);
}

/* Packets are missing. One NAK says so; the rest of the stream is dropped. */
static void sroce_gap(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	if (!resp->nak_sent && !resp->rnr_sent)
		sroce_gap_begin(&resp->gap, t->psn);
	else if (!sroce_gap_again(&resp->gap, t->psn))
		return;
	sroce_qp_count(qp, SROCE_CNT_OUT_OF_SEQUENCE, 1);
	sroce_owe_nak(resp, SROCE_NAK_PSN_SEQ);
	resp->nak_sent = true;
}

/* --- dispatch --------------------------------------------------------------------------- */

/* IBA 9.7.4.1.2: FIRST and ONLY between messages, MIDDLE and LAST within one */
bool sroce_sequence_ok(const struct sroce_responder *resp,
		       const struct sroce_train *t)
{
	switch (resp->state) {
	case SROCE_RESP_SEND:
		return t->op == SROCE_OP_SEND && !(t->flags & SROCE_START);
	case SROCE_RESP_WRITE:
		return t->op == SROCE_OP_WRITE && !(t->flags & SROCE_START);
	default:
		return t->flags & SROCE_START;
	}
}

void sroce_execute(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	resp->nak_sent = false;
	resp->rnr_sent = false;
	resp->half.fault.waiting = false;
	if (resp->ack == SROCE_ACK_NAK)
		resp->ack = SROCE_ACK_NONE;
	if (!sroce_sequence_ok(resp, t) ||
	    (resp->inv_wait && t->op != SROCE_OP_SEND)) {
		sroce_refuse_request(qp);
		return;
	}
	switch (t->op) {
	case SROCE_OP_SEND:
		sroce_send_request(qp, t);
		break;
	case SROCE_OP_WRITE:
		sroce_write_request(qp, t);
		break;
	case SROCE_OP_READ:
		sroce_read_request(qp, t);
		break;
	case SROCE_OP_CMP_SWAP:
	case SROCE_OP_FETCH_ADD:
		sroce_atomic_request(qp, t);
		break;
	case SROCE_OP_ATOMIC_WRITE:
		sroce_atomic_write_request(qp, t);
		break;
	case SROCE_OP_FLUSH:
		sroce_flush_request(qp, t);
		break;
	default:
		sroce_refuse_request(qp);
	}
}

void sroce_established(struct sroce_qp *qp)
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

	if (!sroce_takes_requests(qp) || resp->fatal) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		return;
	}
	sroce_established(qp);
	/* A repeated train may be new in its second part */
	if (ahead < 0 && t->npkts > -ahead) {
		sroce_train_trim(t, -ahead);
		ahead = 0;
	}
	if (ahead > 0)
		sroce_gap(qp, t);
	else if (ahead < 0)
		sroce_duplicate(qp, t);
	else if (qp->xrcd)
		sroce_xrc_execute(qp, t);
	else
		sroce_execute(qp, t);
}

void sroce_responder_reset(struct sroce_responder *resp)
{
	sroce_fault_reset(&resp->half);
	resp->state = SROCE_RESP_IDLE;
	resp->ack = SROCE_ACK_NONE;
	resp->fatal = false;
	resp->nak_sent = false;
	resp->rnr_sent = false;
	resp->comm_est = false;
	resp->last_wqe = false;
	resp->inv_wait = 0;
	resp->have_wqe = false;
	sroce_ack_reset(&resp->delay);
	sroce_patience_reset(resp);
	resp->msn = 0;
	resp->res_next = 0;
	resp->job_head = 0;
	resp->job_tail = 0;
	if (resp->res)
		memset(resp->res, 0, resp->nres * sizeof(*resp->res));
}

/*
 * Up to a request that waits for a receive, and as much as one half may before others
 * run. True: there is more.
 */
static bool sroce_responder_inbox(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	unsigned long begin = sroce_turn_spent();
	struct sroce_parcel *p;

	/* In ERR it is dropped as all others are */
	if (resp->wait == SROCE_RESP_WAITS && !sroce_takes_requests(qp))
		resp->wait = SROCE_RESP_LOOKS;
	while (resp->wait != SROCE_RESP_WAITS &&
	       (p = sroce_inbox_next(&resp->half))) {
		sroce_turn_spend(sroce_parcel_cost(p));
		sroce_receive_parcel(qp, p);
		if (unlikely(resp->wait == SROCE_RESP_WAITS)) {
			sroce_inbox_return(&resp->half, p);
			break;
		}
		resp->patience.kept -= sroce_parcel_kept(p);
		sroce_parcel_free(p);
		if (sroce_half_over(begin) && !list_empty(&resp->half.inbox))
			return true;
	}
	if (unlikely(resp->wait == SROCE_RESP_LOOKS))
		sroce_patience_over(qp);
	return false;
}

bool sroce_responder_run(struct sroce_half *half)
{
	struct sroce_qp *qp = half->qp;
	bool more;

	sroce_half_unstarve(half);
	more = sroce_responder_inbox(qp);
	if (unlikely(half->fault.waiting) && !sroce_faulting(half))
		sroce_paged(&qp->resp);
	if (sroce_takes_requests(qp))
		more |= sroce_responder_reply(qp);
	if (!more && sroce_qp_state(qp) == IB_QPS_ERR)
		return sroce_responder_flush(qp);
	return more;
}
