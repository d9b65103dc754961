// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that come again: their PSN is before the one that the responder expects,
 * because an answer was lost, or was late.
 *
 * responder.c comes here with them. Nothing is carried out: a SEND or RDMA WRITE is
 * acknowledged once more, and a READ or atomic gets the answer that answers.c has
 * kept, which responder_reply.c sends in its place.
 */
#include "transport/ack_delay.h"
#include "transport/answers.h"
#include "transport/internal.h"
#include "transport/lateness.h"
#include "transport/responder_dup.h"

/* Does the request ask for the same READ, or for a part of it from some packet on? */
static bool sroce_duplicate_same_read(const struct sroce_qp *qp,
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
		.npsn = sroce_message_packets(t->dma_len, qp->mtu),
		.end = old->end,
		.srqn = old->srqn,
		.va = t->va,
		.rkey = t->rkey,
		.len = t->dma_len,
	};

	if (sroce_duplicate_same_read(qp, old, t))
		sroce_answers_repeat(&qp->resp.answers, &res);
}

void sroce_responder_duplicate(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_res *res;

	sroce_qp_count(qp, SROCE_CNT_DUPLICATE_REQUEST, 1);
	sroce_lateness_again(qp, &resp->hold.lateness, t);
	sroce_ack_hurry(resp);
	if (t->op == SROCE_OP_SEND || t->op == SROCE_OP_WRITE) {
		if ((t->flags & SROCE_ACKREQ) && resp->ack.state == SROCE_ACK_NONE)
			resp->ack.state = SROCE_ACK_OWED;
		return;
	}
	res = sroce_answers_find(&resp->answers, t->psn);
	if (!res)
		return;
	if (t->op == SROCE_OP_READ)
		sroce_duplicate_read(qp, t, res);
	else if (t->op == res->op)
		sroce_answers_repeat(&resp->answers, res);
}
