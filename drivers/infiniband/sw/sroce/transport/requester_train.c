// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From a work request of a connected QP to trains: it gets its PSNs, its data is
 * gathered (gather.c), headers are made, and the train goes on to send.c.
 *
 * requester.c comes here for one train at a time. Nothing of a train depends on what
 * was sent before but the PSN (@send_psn): a repetition, which retransmit.c begins by
 * putting that back, is made here in the same way.
 */
#include "transport/congestion.h"
#include "transport/far.h"
#include "transport/gather.h"
#include "transport/internal.h"
#include "transport/pace.h"
#include "transport/repair.h"
#include "transport/requester.h"
#include "transport/requester_complete.h"
#include "transport/requester_fetch.h"
#include "transport/requester_train.h"
#include "transport/retransmit.h"
#include "transport/send.h"
#include "transport/window.h"

/* So many packets each READ request asks for, if there are as many */
#define SROCE_READ_LEAST 16U

/*
 * PSNs of one READ request: several together fill the window. How large these are stays
 * for all of a work request, so they are not tiny because the window was.
 */
static u32 sroce_requester_read_chunk(const struct sroce_qp *qp)
{
	u32 requests = clamp_t(u32, qp->attr.max_rd_atomic, 1, 4);
	u32 window = qp->req.window;

	return max3(window / requests, min_t(u32, window, SROCE_TRAIN_PACKETS),
		    SROCE_READ_LEAST);
}

/* First packet of a work request: it gets its PSNs */
static enum sroce_step sroce_requester_begin(struct sroce_qp *qp,
					     struct sroce_swqe *slot)
{
	struct sroce_requester *req = &qp->req;

	/* The QP may have none of these outstanding: it would wait for ever */
	if (sroce_swqe_has_response(slot) && !qp->attr.max_rd_atomic)
		return sroce_requester_fail_in_turn(qp, slot,
						    IB_WC_LOC_QP_OP_ERR);
	if ((slot->wqe.flags & SROCE_SEND_FENCE) && req->rd_outstanding)
		return SROCE_STEP_WAIT;
	slot->first_psn = req->send_psn;
	slot->npsn = 1;
	if (slot->op == SROCE_OP_SEND || slot->op == SROCE_OP_WRITE ||
	    slot->op == SROCE_OP_READ)
		slot->npsn = sroce_message_packets(slot->length, qp->mtu);
	slot->chunk = min(slot->npsn, sroce_requester_read_chunk(qp));
	slot->state = SROCE_SWQE_SENT;
	return SROCE_STEP_ON;
}

static void sroce_requester_train_init(struct sroce_qp *qp,
				       struct sroce_train *t,
				       const struct sroce_swqe *slot)
{
	*t = (struct sroce_train){
		.op = slot->op,
		.service = qp->kind->service,
		.pkey = sroce_qp_pkey(qp),
		.mtu = qp->mtu,
		.dqpn = qp->attr.dest_qp_num,
		.psn = qp->req.send_psn,
		.npkts = 1,
		.srqn = slot->wqe.remote_srqn,
	};
}

/* A type without ACKs: what was sent counts as acknowledged */
static void sroce_requester_sent_for_good(struct sroce_requester *req, u32 npsn)
{
	req->send_psn = sroce_psn_add(req->send_psn, npsn);
	WRITE_ONCE(req->next_psn, req->send_psn);
	WRITE_ONCE(req->una_psn, req->send_psn);
}

static void sroce_requester_sent(struct sroce_qp *qp, u32 npsn)
{
	struct sroce_requester *req = &qp->req;

	if (!qp->kind->acked) {
		sroce_requester_sent_for_good(req, npsn);
		return;
	}
	if (sroce_psn_diff(req->send_psn, req->next_psn) < 0) {
		sroce_qp_count(qp, SROCE_CNT_RETRANS_PACKETS, npsn);
		req->probe.back = false;
	}
	req->send_psn = sroce_psn_add(req->send_psn, npsn);
	if (sroce_psn_diff(req->send_psn, req->next_psn) > 0) {
		WRITE_ONCE(req->next_psn, req->send_psn);
		sroce_window_sent(req);
	}
	sroce_requester_arm(qp);
}

/* Gather payload; *n is cut to the packets that fit, and whose pages are there */
static int sroce_requester_gather(struct sroce_qp *qp, struct sroce_gather *g,
				  struct sroce_swqe *slot, u32 k, u32 *n)
{
	u32 rest = slot->length - k * qp->mtu;
	u32 wanted = min_t(u32, rest, *n * qp->mtu);
	u32 len = wanted;
	int err;

	g->least = qp->mtu;
	err = sroce_gather_send(g, slot, k * qp->mtu, &len, rest);
	if (unlikely(len != wanted))
		*n = len / qp->mtu;
	return err;
}

/*
 * Packets that the next train may have: none when the window has room for only
 * a stump of what is there, while ACKs that will make more are on their way.
 */
static u32 sroce_requester_train_room(struct sroce_requester *req, u32 wanted)
{
	u32 out = sroce_requester_outstanding(req);
	u32 room = req->window - min(req->window, out);

	/* RFC 8985 7.3: a probe may leave however small the window has become */
	if (unlikely(req->probe.back))
		return 1;
	if (unlikely(req->growth.lossy))
		wanted = min(wanted, sroce_window_train(req));
	if (room >= wanted || !out || !sroce_requester_window_ends(req, out))
		return min(room, wanted);
	sroce_window_note_limit(req);
	return 0;
}

/*
 * May a request go out that has responses? Where none is allowed any more, since the
 * last change in SQD, what was begun goes on one by one.
 */
static bool sroce_requester_read_room(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 out = sroce_requester_outstanding(req);

	if (req->rd_outstanding >= max(qp->attr.max_rd_atomic, 1)) {
		/* With more in the window each of them asks for more */
		if (out >= req->window / 2)
			sroce_window_note_limit(req);
		return false;
	}
	if (out < req->window)
		return true;
	sroce_window_note_limit(req);
	return false;
}

/* The data of a work request cannot be read: not yet (-EAGAIN), or not at all */
static enum sroce_step sroce_step_no_data(struct sroce_qp *qp,
					  struct sroce_swqe *slot, int err)
{
	if (err == -EAGAIN)
		return SROCE_STEP_WAIT;
	return sroce_requester_fail_in_turn(qp, slot, IB_WC_LOC_PROT_ERR);
}

/* One train of a SEND or RDMA WRITE */
static enum sroce_step sroce_step_data(struct sroce_qp *qp,
				       struct sroce_tx *tx,
				       struct sroce_swqe *slot)
{
	struct sroce_requester *req = &qp->req;
	u32 k = (req->send_psn - slot->first_psn) & SROCE_PSN_MASK;
	u32 n = sroce_requester_train_room(req, min_t(u32, slot->npsn - k,
						      SROCE_TRAIN_PACKETS));
	struct sroce_gather *g;
	struct sroce_train t;
	int err = 0;

	if (!n)
		return SROCE_STEP_WAIT;
	g = sroce_gather_begin(&req->half);
	g->swqe = qp->kind->acked ? NULL : slot;
	n = min_t(u32, n, SROCE_TRAIN_BYTES / qp->mtu);
	if (unlikely(req->pace.rate))
		n = min(n, sroce_pace_packets(&req->pace, qp->mtu));
	n = sroce_far_room(qp, n);
	n = sroce_repair_room(req, sroce_congestion_room(qp, n));
	if (slot->length)
		err = sroce_requester_gather(qp, g, slot, k, &n);
	if (err) {
		sroce_gather_end(g);
		return sroce_step_no_data(qp, slot, err);
	}

	sroce_requester_train_init(qp, &t, slot);
	t.npkts = n;
	t.flags = qp->kind->train_flags;
	if (!k) {
		t.flags |= SROCE_START;
		t.va = slot->wqe.rdma.remote_addr;
		t.rkey = slot->wqe.rdma.rkey;
		t.dma_len = slot->length;
	}
	if (k + n == slot->npsn) {
		t.flags |= SROCE_END | sroce_wr_table[slot->wqe.opcode].flags;
		if (slot->wqe.flags & SROCE_SEND_SOLICITED)
			t.flags |= SROCE_SOLICITED;
		t.imm = slot->wqe.imm_data;
	}
	sroce_gather_train(g, &t, min_t(u32, slot->length - k * qp->mtu,
					n * qp->mtu));
	sroce_requester_pace(req, &t);
	sroce_far_sent(req, &t);
	sroce_send_train(&req->half, tx, qp->path, &t, g);
	sroce_gather_end(g);
	sroce_requester_sent(qp, n);
	return SROCE_STEP_ON;
}

/*
 * One READ request: for a chunk of the message, so that no single request
 * makes the peer send more than the window. To the peer chunks are READs.
 */
static enum sroce_step sroce_step_read(struct sroce_qp *qp,
				       struct sroce_tx *tx,
				       struct sroce_swqe *slot)
{
	struct sroce_requester *req = &qp->req;
	u32 k = (req->send_psn - slot->first_psn) & SROCE_PSN_MASK;
	u32 n = sroce_swqe_chunk_rest(slot, k);
	struct sroce_train t;

	if (!sroce_requester_read_room(qp))
		return SROCE_STEP_WAIT;
	sroce_requester_train_init(qp, &t, slot);
	t.flags = SROCE_START | SROCE_END | SROCE_ACKREQ;
	t.va = slot->wqe.rdma.remote_addr + (u64)k * qp->mtu;
	t.rkey = slot->wqe.rdma.rkey;
	t.dma_len = min(slot->length - k * qp->mtu, n * qp->mtu);
	sroce_requester_pace(req, &t);
	sroce_far_sent(req, &t);
	sroce_send_train(&req->half, tx, qp->path, &t, NULL);
	req->rd_outstanding++;
	sroce_requester_sent(qp, n);
	return SROCE_STEP_ON;
}

/* The part of the train that the operation decides */
static void sroce_step_single_headers(struct sroce_train *t,
				      const struct sroce_swqe *slot)
{
	const struct sroce_send_wqe *wqe = &slot->wqe;

	switch (slot->op) {
	case SROCE_OP_CMP_SWAP:
		t->compare = wqe->atomic.compare_add;
		t->swap_add = wqe->atomic.swap;
		fallthrough;
	case SROCE_OP_FETCH_ADD:
		t->va = wqe->atomic.remote_addr;
		t->rkey = wqe->atomic.rkey;
		if (slot->op == SROCE_OP_FETCH_ADD)
			t->swap_add = wqe->atomic.compare_add;
		break;
	case SROCE_OP_FLUSH:
		t->va = wqe->flush.remote_addr;
		t->rkey = wqe->flush.rkey;
		t->dma_len = wqe->flush.length;
		t->feth = sroce_feth(wqe->flush.placement,
				     wqe->flush.selectivity);
		break;
	default:
		t->va = wqe->rdma.remote_addr;
		t->rkey = wqe->rdma.rkey;
		t->dma_len = slot->length;
	}
}

/* Atomics, ATOMIC WRITE and FLUSH: one packet, and a response to wait for */
static enum sroce_step sroce_step_single(struct sroce_qp *qp,
					 struct sroce_tx *tx,
					 struct sroce_swqe *slot)
{
	u32 len = slot->op == SROCE_OP_ATOMIC_WRITE ? slot->length : 0;
	struct sroce_requester *req = &qp->req;
	struct sroce_gather *g;
	struct sroce_train t;
	u32 one = 1;
	int err = 0;

	if (!sroce_requester_read_room(qp))
		return SROCE_STEP_WAIT;
	g = sroce_gather_begin(&req->half);
	if (len)
		err = sroce_requester_gather(qp, g, slot, 0, &one);
	if (err) {
		sroce_gather_end(g);
		return sroce_step_no_data(qp, slot, err);
	}
	sroce_requester_train_init(qp, &t, slot);
	t.flags = SROCE_START | SROCE_END | SROCE_ACKREQ;
	sroce_step_single_headers(&t, slot);
	sroce_gather_train(g, &t, len);
	sroce_requester_pace(req, &t);
	sroce_far_sent(req, &t);
	sroce_send_train(&req->half, tx, qp->path, &t, g);
	sroce_gather_end(g);
	req->rd_outstanding++;
	sroce_requester_sent(qp, 1);
	return SROCE_STEP_ON;
}

static enum sroce_step sroce_step_op(struct sroce_qp *qp,
				     struct sroce_tx *tx,
				     struct sroce_swqe *slot)
{
	switch (slot->op) {
	case SROCE_OP_READ:
		return sroce_step_read(qp, tx, slot);
	case SROCE_OP_SEND:
	case SROCE_OP_WRITE:
		return sroce_step_data(qp, tx, slot);
	default:
		return sroce_step_single(qp, tx, slot);
	}
}

enum sroce_step sroce_requester_train(struct sroce_qp *qp, struct sroce_tx *tx,
				      struct sroce_swqe *slot)
{
	struct sroce_requester *req = &qp->req;
	enum sroce_step step;

	if (slot->state == SROCE_SWQE_READY) {
		step = sroce_requester_begin(qp, slot);
		if (step != SROCE_STEP_ON)
			return step;
	}
	step = sroce_step_op(qp, tx, slot);
	if (step == SROCE_STEP_ON && req->send_psn == sroce_swqe_end(slot)) {
		req->send++;
		if (!qp->kind->acked)
			sroce_requester_retire(qp);
	}
	return step;
}
