// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Unreliable connections, the receiving side (IBA 9.8.2). Nothing is answered.
 * A message in which a packet is missing or wrong is dropped, and so is the
 * rest of it; the next one begins with the next FIRST or ONLY, whatever its
 * PSN. Only what is wrong with the receive queue itself ends the QP.
 *
 * Requests come from receive.c, and this stands where responder.c stands for other
 * connections: receive work requests are taken, and data is placed, as there
 * (responder_recv.c, responder_place.c).
 *
 * Sending is the requester's business, as for all connected QPs: it completes a
 * message when its last packet was handed to the network, or taken by a QP of this
 * host.
 */
#include "transport/internal.h"
#include "transport/responder.h"
#include "transport/responder_place.h"
#include "transport/responder_recv.h"
#include "transport/uc.h"

/*
 * Forget what has come of the message. Its receive work request waits for the
 * next one. Not so one of a shared receive queue: it might wait for ever for
 * a message that this QP never gets, so it completes with an error.
 */
static void sroce_uc_abandon(struct sroce_qp *qp, enum ib_wc_status status)
{
	struct sroce_responder *resp = &qp->resp;

	resp->msg.state = SROCE_RESP_IDLE;
	if (resp->msg.have_wqe && qp->srq)
		sroce_recv_fail(qp, status);
}

/* The receive queue cannot be trusted (IBA 9.9.3, class A) */
static void sroce_uc_fail(struct sroce_qp *qp, enum ib_wc_status status)
{
	sroce_recv_fail(qp, status);
	sroce_qp_error(qp);
}

/* Take a receive work request for the message. False when there is none: it is dropped */
static bool sroce_uc_take(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	int err;

	if (resp->msg.have_wqe) {
		resp->msg.recv_off = 0;
		return true;
	}
	err = sroce_recv_take(qp);
	if (err == -ENOENT) {
		sroce_qp_count(qp, SROCE_CNT_OUT_OF_BUFFER, 1);
		sroce_uc_abandon(qp, IB_WC_REM_INV_REQ_ERR);
	} else if (err) {
		sroce_uc_fail(qp, IB_WC_LOC_QP_OP_ERR);
	}
	return !err;
}

/* Memory on demand that is not there yet: the message is lost */
static void sroce_uc_no_pages(struct sroce_qp *qp)
{
	sroce_qp_count(qp, SROCE_CNT_OUT_OF_BUFFER, 1);
	sroce_uc_abandon(qp, IB_WC_REM_INV_REQ_ERR);
}

static void sroce_uc_send(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	int err;

	if (!sroce_place_length_ok(qp, t)) {
		sroce_uc_abandon(qp, IB_WC_REM_INV_REQ_ERR);
		return;
	}
	if ((t->flags & SROCE_START) && !sroce_uc_take(qp))
		return;
	if (t->bi.bi_size > resp->msg.recv_len - resp->msg.recv_off) {
		sroce_qp_count(qp, SROCE_CNT_RESP_LOCAL_LENGTH_ERROR, 1);
		sroce_uc_abandon(qp, IB_WC_LOC_LEN_ERR);
		return;
	}
	err = t->bi.bi_size ? sroce_place_sges(qp, t, U32_MAX) : 0;
	if (err == -EAGAIN) {
		sroce_uc_no_pages(qp);
		return;
	}
	if (err) {
		sroce_uc_fail(qp, IB_WC_LOC_PROT_ERR);
		return;
	}
	resp->msg.state = t->flags & SROCE_END ? SROCE_RESP_IDLE : SROCE_RESP_SEND;
	if (t->flags & SROCE_END)
		sroce_recv_complete_message(qp, t, IB_WC_RECV, resp->msg.recv_off);
}

static bool sroce_uc_write_ok(struct sroce_qp *qp, struct sroce_train *t)
{
	if (!sroce_place_length_ok(qp, t) ||
	    !sroce_place_write_length_ok(&qp->resp, t))
		return false;
	return !(t->flags & SROCE_START) ||
	       !sroce_place_write_begin(qp, t, t->dma_len);
}

static void sroce_uc_write(struct sroce_qp *qp, struct sroce_train *t)
{
	int err;

	if (!sroce_uc_write_ok(qp, t)) {
		sroce_uc_abandon(qp, IB_WC_REM_INV_REQ_ERR);
		return;
	}
	if ((t->flags & SROCE_IMM) && !sroce_uc_take(qp))
		return;
	err = t->bi.bi_size ? sroce_place_rkey(qp, t, U32_MAX) : 0;
	if (err == -EAGAIN) {
		sroce_uc_no_pages(qp);
		return;
	}
	if (err) {
		sroce_uc_abandon(qp, IB_WC_LOC_ACCESS_ERR);
		return;
	}
	sroce_place_write_done(qp, t);
}

/* See whether the packet goes on with what came before */
static void sroce_uc_sequence(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	bool gap = t->psn != resp->epsn;

	if (gap)
		sroce_qp_count(qp, SROCE_CNT_OUT_OF_SEQUENCE, 1);
	if (resp->msg.state != SROCE_RESP_IDLE &&
	    (gap || !sroce_responder_sequence_ok(resp, t)))
		sroce_uc_abandon(qp, IB_WC_REM_INV_REQ_ERR);
	resp->epsn = sroce_psn_add(t->psn, t->npkts);
}

void sroce_uc_request(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	if (!sroce_qp_takes_requests(qp)) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		return;
	}
	sroce_responder_established(qp);
	sroce_uc_sequence(qp, t);
	/* The rest of a message whose beginning is lost */
	if (resp->msg.state == SROCE_RESP_IDLE && !(t->flags & SROCE_START)) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		return;
	}
	if (t->op == SROCE_OP_SEND)
		sroce_uc_send(qp, t);
	else
		sroce_uc_write(qp, t);
}
