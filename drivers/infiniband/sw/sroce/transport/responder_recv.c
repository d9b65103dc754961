// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder's receive work requests: taken from the QP's own queue or from a
 * shared one, checked, and completed.
 *
 * responder_place.c takes one when a SEND begins, or an RDMA WRITE with immediate
 * data is to be placed; uc.c and datagram.c do so for their types. It is the QP's
 * until it completes here, behind the last byte of its message, with the entry that
 * the consumer finds in the completion queue.
 */
#include <linux/nospec.h>

#include "transport/internal.h"
#include "transport/responder_recv.h"
#include "transport/responder_tag.h"

/* What was copied from a queue is checked before anybody looks at its elements */
static int sroce_recv_check(struct sroce_qp *qp)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;

	msg->recv_off = 0;
	msg->recv_len = 0;
	if (msg->wqe->num_sge > qp->max_recv_sge || msg->wqe->reserved) {
		msg->wqe->num_sge = 0;
		return -EINVAL;
	}
	msg->wqe->num_sge = array_index_nospec(msg->wqe->num_sge,
					       qp->max_recv_sge + 1);
	msg->recv_len = sroce_recv_room(msg->wqe, qp->max_recv_sge);
	return 0;
}

int sroce_recv_take_for(struct sroce_qp *qp, u32 len)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_resp_msg *msg = &resp->msg;
	int err;

	if (qp->srq) {
		err = sroce_srq_take(qp->srq, msg->wqe, len);
		msg->wqe_user = qp->srq->user;
		msg->wqe_tagged = false;
	} else {
		err = sroce_recv_ring_take(&resp->ring, msg->wqe,
					   qp->max_recv_sge, len);
		msg->wqe_user = qp->user;
	}
	if (err)
		return err;
	msg->have_wqe = true;
	return sroce_recv_check(qp);
}

int sroce_recv_look_for(struct sroce_qp *qp, u32 len)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;
	int err;

	if (!qp->srq)
		return sroce_recv_take_for(qp, len);
	err = sroce_srq_look(qp->srq, msg->wqe, len, &msg->srq_index);
	msg->wqe_user = qp->srq->user;
	return err ?: sroce_recv_check(qp);
}

int sroce_recv_take_tagged(struct sroce_qp *qp)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;
	int err;

	err = sroce_srq_take_tagged(qp->srq, qp->qpn, msg->wqe, &qp->tag);
	if (err)
		return err;
	msg->wqe_user = qp->srq->user;
	msg->wqe_tagged = true;
	msg->have_wqe = true;
	return sroce_recv_check(qp);
}

bool sroce_recv_claim(struct sroce_qp *qp)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;

	if (!msg->have_wqe)
		msg->have_wqe = sroce_srq_claim(qp->srq, msg->srq_index,
						&msg->srq_limit);
	return msg->have_wqe;
}

void sroce_recv_complete(struct sroce_qp *qp, struct sroce_cqe *cqe,
			 bool solicited)
{
	struct sroce_responder *resp = &qp->resp;

	cqe->wr_id = resp->msg.wqe->wr_id;
	resp->msg.have_wqe = false;
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

	if (unlikely(qp->kind->tags))
		sroce_responder_drop_tagged(qp);
	sroce_recv_complete(qp, &cqe, true);
}

void sroce_recv_complete_message(struct sroce_qp *qp,
				 const struct sroce_train *t, u8 opcode,
				 u32 len)
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
