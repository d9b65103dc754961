// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The end of send work requests: done, failed or flushed, and always in order.
 *
 * requester_response.c comes here with what is acknowledged, requester.c with what
 * needs no answer or has an error. Completions go to the completion queue (cq.c).
 */
#include "transport/direct.h"
#include "transport/early.h"
#include "transport/internal.h"
#include "transport/requester.h"
#include "transport/requester_complete.h"
#include "transport/requester_fetch.h"
#include "transport/run.h"

/*
 * A process has not posted the end of a rendezvous itself, and hears nothing of it; unless
 * that is what has failed the QP
 */
static void sroce_requester_fin_done(struct sroce_qp *qp, enum ib_wc_status status)
{
	if (status != IB_WC_SUCCESS && status != IB_WC_WR_FLUSH_ERR)
		sroce_qp_event(qp, IB_EVENT_QP_FATAL);
}

static void sroce_requester_complete(struct sroce_qp *qp,
				     struct sroce_swqe *slot,
				     enum ib_wc_status status)
{
	struct sroce_cqe cqe = {
		.wr_id = slot->wqe.wr_id,
		.status = status,
	};
	struct sroce_cq *cq = qp->scq;

	if (status == IB_WC_SUCCESS) {
		if (!qp->sig_all && !(slot->wqe.flags & SROCE_SEND_SIGNALED))
			return;
		cqe.opcode = sroce_wr_table[slot->wqe.opcode].wc;
		cqe.byte_len = slot->length;
	} else {
		sroce_qp_count(qp, status == IB_WC_WR_FLUSH_ERR ?
			       SROCE_CNT_REQ_CQE_FLUSH_ERROR :
			       SROCE_CNT_REQ_CQE_ERROR, 1);
	}
	/* What is above these nobody knows: it has failed, as any other */
	if (unlikely(slot->wqe.opcode >= SROCE_WR_TAG_READ) && qp->kind->tags) {
		if (slot->wqe.opcode == SROCE_WR_TAG_FIN) {
			sroce_requester_fin_done(qp, status);
			return;
		}
		if (slot->wqe.opcode == SROCE_WR_TAG_READ) {
			/* To the process it is the end of a receive, and no send at all */
			cqe.flags = SROCE_CQE_TAG_DATA;
			cq = qp->rcq;
		}
	}
	if (!sroce_cq_add(cq, qp->ibqp, &cqe, status != IB_WC_SUCCESS))
		sroce_qp_fatal(qp);
}

void sroce_requester_fail(struct sroce_qp *qp, enum ib_wc_status status)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot = sroce_swqe_at(req, req->ring.index);

	req->failed = req->ring.index != req->fetched && sroce_qp_has_lent(qp);
	if (req->failed) {
		slot->status = status;
	} else if (req->ring.index != req->fetched) {
		sroce_ring_consumed(&req->ring, 1);
		sroce_requester_complete(qp, slot, status);
	}
	if (qp->kind->acked)
		sroce_qp_error(qp);
	else
		sroce_qp_send_error(qp);
}

static bool sroce_swqe_done(const struct sroce_requester *req,
			    const struct sroce_swqe *slot)
{
	/* Pairs with sroce_parcel_give_back(): who has read its data is done with it */
	if (atomic_read_acquire(&slot->lent))
		return false;
	if (slot->state != SROCE_SWQE_SENT)
		return slot->state == SROCE_SWQE_DONE;
	return sroce_swqe_offset(slot, req->una_psn) >= (s32)slot->npsn;
}

static u32 sroce_requester_done_at_head(const struct sroce_requester *req)
{
	const struct sroce_swqe *slot;
	u32 i;

	for (i = req->ring.index; i != req->fetched; i++) {
		slot = sroce_swqe_at(req, i);
		if (slot->status != IB_WC_SUCCESS ||
		    !sroce_swqe_done(req, slot))
			break;
	}
	return i - req->ring.index;
}

void sroce_requester_retire(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 n = sroce_requester_done_at_head(req);
	struct sroce_swqe *slot;

	/*
	 * First the entries are given back: whoever sees a completion may post
	 * another request. The copies stay as they are until one is fetched.
	 */
	if (n)
		sroce_ring_consumed(&req->ring, n);
	for (; n; n--) {
		slot = sroce_swqe_at(req, req->ring.index - n);
		sroce_requester_complete(qp, slot, IB_WC_SUCCESS);
	}
	/* ACKs have overtaken a repetition: go on sending behind what is complete */
	if ((s32)(req->send - req->ring.index) < 0)
		req->send = req->ring.index;
	if (sroce_psn_diff(req->send_psn, req->una_psn) < 0)
		req->send_psn = req->una_psn;

	if (req->ring.index != req->fetched) {
		slot = sroce_swqe_at(req, req->ring.index);
		if (slot->status != IB_WC_SUCCESS)
			sroce_requester_fail(qp, slot->status);
	}
}

enum sroce_step sroce_requester_fail_in_turn(struct sroce_qp *qp,
					     struct sroce_swqe *slot,
					     enum ib_wc_status status)
{
	slot->status = status;
	sroce_requester_retire(qp);
	return SROCE_STEP_WAIT;
}

bool sroce_requester_flush(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot;
	int budget = SROCE_FLUSH_BUDGET;

	req->deadline = 0;
	req->rnr_wait = false;
	sroce_early_drop(qp);
	/* From now on whoever posts rings the doorbell */
	WRITE_ONCE(req->ring.hdr->flags, 0);
	/* We clear the flags, then read prod; posters store prod, then read the flags */
	smp_mb();
	/*
	 * Whoever takes the last of these trains finds the QP in ERR or SQE, and has this
	 * half run again (sroce_qp_all_given_back())
	 */
	if (sroce_qp_has_lent(qp))
		return false;
	if (unlikely(req->failed)) {
		sroce_requester_retire(qp);
		/* The responder has lent memory meanwhile: as above */
		if (req->failed)
			return false;
	}
	while (budget--) {
		if (req->ring.index == req->fetched && !sroce_requester_fetch(qp))
			break;
		sroce_ring_consumed(&req->ring, 1);
		slot = sroce_swqe_at(req, req->ring.index - 1);
		sroce_requester_complete(qp, slot, IB_WC_WR_FLUSH_ERR);
	}
	req->send = req->ring.index;
	return budget < 0;
}
