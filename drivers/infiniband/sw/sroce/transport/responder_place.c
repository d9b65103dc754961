// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SENDs and RDMA WRITEs on the responder's side: data to memory.
 *
 * responder.c comes here with a request that is the next in order. What is left of
 * the checks of IBA 9.7.4.1 is made (length, resources, key), then the payload is
 * copied to the receive work request (responder_recv.c) or to the region that the
 * peer has named, and the request is accepted or refused (responder_verdict.c). A
 * message that ends completes its receive work request.
 *
 * The checks and the copies are also those of uc.c.
 */
#include "memory/copy.h"
#include "transport/gather.h"
#include "transport/internal.h"
#include "transport/responder.h"
#include "transport/responder_place.h"
#include "transport/responder_recv.h"
#include "transport/responder_tag.h"
#include "transport/responder_verdict.h"
#include "transport/xrc.h"

/* IBA 9.7.4.1.6: all packets but the last are full, the last is not empty */
bool sroce_place_length_ok(const struct sroce_qp *qp,
			   const struct sroce_train *t)
{
	u32 most = t->npkts * qp->mtu;
	u32 len = t->bi.bi_size;

	if (!(t->flags & SROCE_END))
		return len == most;
	if (t->npkts == 1 && (t->flags & SROCE_START))
		return len <= most;
	return len > most - qp->mtu && len <= most;
}

/*
 * How long a SEND is nobody says before its end. Where that has come, nothing more will be
 * wanted of the receive, however long it is: a peer must not have all of it brought in.
 */
static u32 sroce_place_ahead(const struct sroce_resp_msg *msg,
			     const struct sroce_train *t)
{
	return t->flags & SROCE_END ? 0 : msg->recv_len - msg->recv_off;
}

int sroce_place_sges(struct sroce_qp *qp, struct sroce_train *t, u32 least)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_resp_msg *msg = &resp->msg;
	u32 len = t->bi.bi_size;
	struct bvec_iter di = { .bi_size = len };
	struct sroce_gather *g = sroce_gather_begin(&resp->half);
	struct sroce_sgl l = sroce_sgl_of_recv(qp);
	int err;

	g->least = least;
	err = sroce_gather_sges(g, &l, IB_ACCESS_LOCAL_WRITE, msg->recv_off,
				&len, sroce_place_ahead(msg, t));
	if (!err) {
		sroce_bvec_copy(g->bv, &di, t->bv, &t->bi, len);
		g->placed = len;
		msg->recv_off += len;
	}
	sroce_gather_end(g);
	return err;
}

int sroce_place_rkey(struct sroce_qp *qp, struct sroce_train *t, u32 least)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_resp_write *write = &resp->write;
	u32 len = t->bi.bi_size;
	struct bvec_iter di = { .bi_size = len };
	struct sroce_gather *g = sroce_gather_begin(&resp->half);
	int err;

	g->least = least;
	err = sroce_gather_rkey(g, write->rkey, IB_ACCESS_REMOTE_WRITE, write->va,
				&len, write->left);
	if (!err) {
		sroce_bvec_copy(g->bv, &di, t->bv, &t->bi, len);
		g->placed = len;
		write->va += len;
		write->left -= len;
	}
	sroce_gather_end(g);
	return err;
}

void sroce_place_send_done(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;

	msg->state = t->flags & SROCE_END ? SROCE_RESP_IDLE : SROCE_RESP_SEND;
	if (t->flags & SROCE_END) {
		msg->inv_wait = 0;
		if (unlikely(qp->kind->tags))
			sroce_responder_complete_tagged(qp, t);
		else
			sroce_recv_complete_message(qp, t, IB_WC_RECV,
						    msg->recv_off);
	}
	sroce_responder_accept(qp, t, t->npkts);
}

/*
 * The first packets of a train are in place; pages of memory on demand are missing for
 * the rest. These packets are accepted, and the rest becomes a train of its own.
 */
static void sroce_place_head_done(struct sroce_qp *qp, struct sroce_train *t)
{
	u32 rest = sroce_message_packets(t->bi.bi_size, qp->mtu);
	struct sroce_train head = *t;

	head.npkts = t->npkts - rest;
	head.flags &= SROCE_START;
	if (t->op == SROCE_OP_SEND) {
		sroce_place_send_done(qp, &head);
	} else {
		sroce_place_write_done(qp, &head);
		sroce_responder_accept(qp, &head, head.npkts);
	}
	t->flags &= ~SROCE_START;
	t->psn = sroce_psn_add(t->psn, head.npkts);
	t->npkts = rest;
}

/*
 * Copy the payload of a train to its place. Where that does not succeed, @t is what was
 * not accepted of it.
 * Return: 0; -EAGAIN when pages are being brought in; another errno of gather.h.
 */
static int sroce_place_payload(struct sroce_qp *qp, struct sroce_train *t)
{
	int err = 0;

	while (t->bi.bi_size) {
		if (t->op == SROCE_OP_SEND)
			err = sroce_place_sges(qp, t, qp->mtu);
		else
			err = sroce_place_rkey(qp, t, qp->mtu);
		if (err || likely(!t->bi.bi_size))
			break;
		sroce_place_head_done(qp, t);
	}
	return err;
}

bool sroce_place_invalidated(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_mr_table *mrs = &qp->port->mrs;
	bool again = resp->msg.inv_wait && resp->msg.inv_wait == t->inv_rkey;

	if (!again &&
	    sroce_mr_invalidate(mrs, t->inv_rkey, qp->pd, &qp->windows,
				true)) {
		sroce_responder_refuse_access(qp);
		return false;
	}
	resp->msg.inv_wait = t->inv_rkey;
	if (sroce_mr_quiet(mrs, t->inv_rkey, qp->pd))
		return true;
	sroce_responder_owe_nak(resp, SROCE_NAK_PSN_SEQ);
	return false;
}

void sroce_place_no_receive(struct sroce_qp *qp, struct sroce_train *t, int err)
{
	if (err == -ENOENT)
		sroce_responder_not_ready(qp, t);
	else if (err == -EBADMSG)
		sroce_responder_refuse_request(qp);
	else
		sroce_responder_refuse(qp, SROCE_NAK_REM_OP,
				       IB_WC_LOC_QP_OP_ERR);
}

void sroce_place_awaits(struct sroce_resp_msg *msg,
			const struct sroce_train *t)
{
	bool send = t->op == SROCE_OP_SEND;

	msg->awaited = send ? t->bi.bi_size : 0;
	msg->looks = send ? msg->wqe->num_sge : 0;
}

/* Are the pages of a packet there, or are others being brought in (-EAGAIN)? */
static int sroce_place_try_sges(struct sroce_qp *qp, u32 len)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;
	struct sroce_gather *g = sroce_gather_begin(&qp->resp.half);
	struct sroce_sgl l = sroce_sgl_of_recv(qp);
	int err;

	g->least = qp->mtu;
	err = sroce_gather_sges(g, &l, IB_ACCESS_LOCAL_WRITE, msg->recv_off,
				&len, 0);
	sroce_gather_end(g);
	return err;
}

static bool sroce_place_looks(struct sroce_qp *qp)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;
	int err;

	/* Pages that could not be had are an error of the SEND, when that comes again */
	if (!msg->looks || !msg->have_wqe || qp->resp.ack.fatal ||
	    qp->resp.half.fault.failed.key ||
	    !sroce_qp_takes_requests(qp))
		return false;
	if (qp->xrcd && !sroce_xrc_borrow_again(qp))
		return false;
	msg->looks--;
	err = sroce_place_try_sges(qp, msg->awaited);
	if (qp->xrcd)
		sroce_xrc_return(qp);
	return err == -EAGAIN;
}

bool sroce_place_misses_more(struct sroce_qp *qp)
{
	bool more = sroce_place_looks(qp);

	/* It is not the peer that has found these missing */
	qp->resp.half.fault.fresh = false;
	if (!more)
		qp->resp.msg.looks = 0;
	return more;
}

void sroce_responder_execute_send(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	u32 len = t->bi.bi_size;
	u32 psn = t->psn;
	int err;

	if (!sroce_place_length_ok(qp, t)) {
		sroce_responder_refuse_request(qp);
		return;
	}
	if (t->flags & SROCE_START) {
		if (unlikely(qp->kind->tags)) {
			sroce_responder_begin_tagged(qp, t);
			return;
		}
		/* One is taken already when its pages were missing the first time */
		err = resp->msg.have_wqe ? 0 : sroce_recv_take(qp);
		if (err) {
			sroce_place_no_receive(qp, t, err);
			return;
		}
	}
	if (len > resp->msg.recv_len - resp->msg.recv_off) {
		sroce_responder_refuse(qp, SROCE_NAK_INV_REQ,
				       IB_WC_LOC_LEN_ERR);
		return;
	}
	err = sroce_place_payload(qp, t);
	if (err == -EAGAIN) {
		sroce_responder_await_pages(qp, t);
		return;
	}
	if (err) {
		sroce_responder_refuse(qp, SROCE_NAK_REM_OP,
				       IB_WC_LOC_PROT_ERR);
		return;
	}
	if (t->flags & SROCE_INV && !sroce_place_invalidated(qp, t)) {
		resp->msg.recv_off -= len - sroce_psn_diff(t->psn, psn) * qp->mtu;
		return;
	}
	sroce_place_send_done(qp, t);
}

int sroce_place_write_begin(struct sroce_qp *qp, const struct sroce_train *t,
			    u32 check)
{
	struct sroce_resp_write *write = &qp->resp.write;
	int err = 0;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    t->dma_len > 1U << 31)
		return -EBADMSG;
	if (check)
		err = sroce_rkey_check(qp, t->rkey, IB_ACCESS_REMOTE_WRITE,
				       t->va, check);
	if (err)
		return err;
	write->va = t->va;
	write->rkey = t->rkey;
	write->left = t->dma_len;
	write->len = t->dma_len;
	return 0;
}

void sroce_place_write_done(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	resp->msg.state = t->flags & SROCE_END ? SROCE_RESP_IDLE : SROCE_RESP_WRITE;
	if (t->flags & SROCE_START)
		sroce_qp_count(qp, SROCE_CNT_RX_WRITE_REQUESTS, 1);
	if (t->flags & SROCE_IMM)
		sroce_recv_complete_message(qp, t, IB_WC_RECV_RDMA_WITH_IMM,
					    resp->write.len);
}

/* Payload against what the RETH announced (IBA 9.7.4.1.6) */
bool sroce_place_write_length_ok(const struct sroce_responder *resp,
				 const struct sroce_train *t)
{
	u32 left = t->flags & SROCE_START ? t->dma_len : resp->write.left;
	u32 len = t->bi.bi_size;

	return t->flags & SROCE_END ? len == left : len < left;
}

/* As sroce_recv_take(); -EBADMSG: a SEND of this PSN has it: this is another message */
static int sroce_place_take_for_imm(struct sroce_qp *qp)
{
	const struct sroce_resp_msg *msg = &qp->resp.msg;

	/* One is taken already when its pages were missing the first time */
	if (msg->have_wqe)
		return unlikely(msg->wqe_tagged) ? -EBADMSG : 0;
	return sroce_recv_take(qp);
}

void sroce_responder_execute_write(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	int err = 0;

	if (!sroce_place_length_ok(qp, t) ||
	    !sroce_place_write_length_ok(resp, t)) {
		sroce_responder_refuse_request(qp);
		return;
	}
	/* Nothing is placed before the receive work request is there */
	if (t->flags & SROCE_IMM)
		err = sroce_place_take_for_imm(qp);
	if (err) {
		sroce_place_no_receive(qp, t, err);
		return;
	}
	/* The whole range is checked before the first byte is placed */
	if (t->flags & SROCE_START)
		err = sroce_place_write_begin(qp, t, t->flags & SROCE_END ?
					      0 : t->dma_len);
	if (err == -EBADMSG) {
		sroce_responder_refuse_request(qp);
		return;
	}
	if (!err)
		err = sroce_place_payload(qp, t);
	if (err == -EAGAIN) {
		sroce_responder_await_pages(qp, t);
		return;
	}
	if (err) {
		sroce_responder_refuse_access(qp);
		return;
	}
	sroce_place_write_done(qp, t);
	sroce_responder_accept(qp, t, t->npkts);
}
