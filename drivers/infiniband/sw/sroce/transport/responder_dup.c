// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that come again: their PSN is before the one that the responder expects,
 * because an answer was lost, or was late.
 *
 * responder.c comes here with them. Nothing is carried out: a SEND or RDMA WRITE is
 * acknowledged once more, and a READ or atomic gets the answer that responder_read.c
 * has kept, which responder_reply.c sends in its place.
 */
#include "transport/ack_delay.h"
#include "transport/internal.h"
#include "transport/responder_dup.h"
#include "transport/responder_reply.h"

/*
 * The answer that was kept for a PSN. The newest is looked at first: PSNs come round,
 * and an older entry with the same one may be from the last time.
 */
static struct sroce_rd_res *sroce_duplicate_find(struct sroce_responder *resp,
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
		.srqn = old->srqn,
		.va = t->va,
		.rkey = t->rkey,
		.len = t->dma_len,
	};

	if (sroce_duplicate_same_read(qp, old, t))
		sroce_job_repeat(&qp->resp, &res);
}

void sroce_responder_duplicate(struct sroce_qp *qp, struct sroce_train *t)
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
	res = sroce_duplicate_find(resp, t->psn);
	if (!res)
		return;
	if (t->op == SROCE_OP_READ)
		sroce_duplicate_read(qp, t, res);
	else if (t->op == res->op)
		sroce_job_repeat(resp, res);
}
