// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended reliable connections, the receiving side (IBA A14). The target QP
 * has neither a receive queue nor a protection domain of its own: each request
 * names a shared receive queue, whose entries, completion queue and domain are
 * used for it. The QP borrows them for as long as it handles a packet, under
 * its responder lock, and not for longer: a peer that never goes on must not
 * keep anybody from destroying the queue.
 *
 * Sending is as on a reliable connection, with a number more in each request.
 *
 * responder.c comes here with each request, responder_reply.c with the answers of READs.
 */
#include "transport/responder.h"
#include "transport/responder_recv.h"
#include "transport/responder_verdict.h"
#include "transport/xrc.h"

bool sroce_xrc_borrow(struct sroce_qp *qp, u32 srqn)
{
	struct sroce_srq *srq = sroce_srq_get(srqn, qp->xrcd);

	if (!srq)
		return false;
	qp->srq = srq;
	qp->rcq = srq->cq;
	qp->pd = srq->ibsrq.pd;
	qp->max_recv_sge = srq->max_sge;
	return true;
}

bool sroce_xrc_borrow_again(struct sroce_qp *qp)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;

	if (!sroce_xrc_borrow(qp, msg->srqn))
		return false;
	if (likely(qp->srq->entry->id == msg->srq_id))
		return true;
	sroce_xrc_return(qp);
	return false;
}

void sroce_xrc_return(struct sroce_qp *qp)
{
	struct sroce_srq *srq = qp->srq;

	qp->srq = NULL;
	qp->rcq = NULL;
	qp->pd = NULL;
	sroce_srq_put(srq);
}

/* Complete the receive work request of a message that goes no further */
static void sroce_xrc_fail(struct sroce_qp *qp, enum ib_wc_status status)
{
	struct sroce_responder *resp = &qp->resp;

	if (resp->msg.have_wqe && sroce_xrc_borrow_again(qp)) {
		sroce_recv_fail(qp, status);
		sroce_xrc_return(qp);
	}
	/* Where the queue is gone nobody waits for a completion */
	resp->msg.have_wqe = false;
}

/* A message stays with one queue, which must be of this QP's domain */
static bool sroce_xrc_borrow_for(struct sroce_qp *qp, u32 srqn)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;

	if (msg->state != SROCE_RESP_IDLE || msg->inv_wait || msg->have_wqe)
		return srqn == msg->srqn && sroce_xrc_borrow_again(qp);
	if (!sroce_xrc_borrow(qp, srqn))
		return false;
	msg->srqn = srqn;
	msg->srq_id = qp->srq->entry->id;
	return true;
}

void sroce_xrc_execute(struct sroce_qp *qp, struct sroce_train *t)
{
	if (!sroce_xrc_borrow_for(qp, t->srqn)) {
		sroce_xrc_fail(qp, IB_WC_REM_INV_REQ_ERR);
		sroce_responder_refuse_request(qp);
		return;
	}
	sroce_responder_execute(qp, t);
	sroce_xrc_return(qp);
}

void sroce_xrc_flush(struct sroce_qp *qp)
{
	sroce_xrc_fail(qp, IB_WC_WR_FLUSH_ERR);
}
