// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests of the send queue that send nothing: a region is registered, a window
 * bound, a key invalidated. requester.c comes here when it is their turn.
 */
#include "memory/mw.h"
#include "transport/internal.h"
#include "transport/requester.h"
#include "transport/requester_complete.h"
#include "transport/requester_local.h"
#include "transport/retransmit.h"
#include "transport/run.h"

/* Looks at once for the end of a key's use, and the time between later ones */
#define SROCE_KEY_LOOKS 8
#define SROCE_KEY_LOOK_NS (50 * NSEC_PER_USEC)

static int sroce_local_bind(struct sroce_qp *qp,
			    const struct sroce_send_wqe *wqe)
{
	struct sroce_mw_bind bind = {
		.key = wqe->bind.mw_rkey,
		.new_key = wqe->bind.new_rkey,
		.lkey = wqe->bind.lkey,
		.addr = wqe->bind.addr,
		.length = wqe->bind.length,
		.access = wqe->bind.access,
		.pd = qp->pd,
		.owner = &qp->windows,
	};

	return sroce_mw_bind(&qp->port->mrs, &bind);
}

static int sroce_local_op(struct sroce_qp *qp, const struct sroce_swqe *slot)
{
	const struct sroce_send_wqe *wqe = &slot->wqe;

	switch (wqe->opcode) {
	case SROCE_WR_REG_MR:
		return sroce_mr_register((void *)(uintptr_t)wqe->reg.mr, qp->pd,
					 wqe->reg.key, wqe->reg.access);
	case SROCE_WR_BIND_MW:
		return sroce_local_bind(qp, wqe);
	default:
		return sroce_mr_invalidate(&qp->port->mrs, wqe->invalidate_rkey,
					   qp->pd, &qp->windows, false);
	}
}

static bool sroce_local_waits(const struct sroce_requester *req,
			      const struct sroce_swqe *slot)
{
	/* A key must not vanish under a request that may be sent again */
	if (slot->wqe.opcode == SROCE_WR_LOCAL_INV)
		return req->ring.index != req->send;
	return slot->wqe.flags & SROCE_SEND_FENCE && req->rd_outstanding;
}

/*
 * Somebody is still copying with the key that is to become invalid, or to or from the region
 * with protection information that is to be registered anew: look again soon. Most have ended
 * by then; after some looks the region may be with a receiver that has to wait.
 */
static enum sroce_step sroce_local_later(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (req->key_looks < SROCE_KEY_LOOKS) {
		req->key_looks++;
		sroce_half_kick(&req->half);
	} else {
		req->pace.wake = ktime_get_ns() + SROCE_KEY_LOOK_NS;
		sroce_requester_wake_at(req, req->pace.wake);
	}
	return SROCE_STEP_WAIT;
}

enum sroce_step sroce_requester_local(struct sroce_qp *qp,
				      struct sroce_swqe *slot)
{
	u8 opcode = slot->wqe.opcode;
	int err;

	if (sroce_local_waits(&qp->req, slot))
		return SROCE_STEP_WAIT;
	if (slot->state == SROCE_SWQE_READY) {
		err = sroce_local_op(qp, slot);
		if (err == -EAGAIN)
			return sroce_local_later(qp);
		if (err)
			return sroce_requester_fail_in_turn(qp, slot,
				opcode == SROCE_WR_BIND_MW ? IB_WC_MW_BIND_ERR :
							     IB_WC_LOC_QP_OP_ERR);
		slot->state = SROCE_SWQE_QUIET;
	}
	if (opcode == SROCE_WR_LOCAL_INV &&
	    !sroce_mr_quiet(&qp->port->mrs, slot->wqe.invalidate_rkey, qp->pd))
		return sroce_local_later(qp);
	slot->state = SROCE_SWQE_DONE;
	qp->req.key_looks = 0;
	qp->req.send++;
	sroce_requester_retire(qp);
	return SROCE_STEP_ON;
}
