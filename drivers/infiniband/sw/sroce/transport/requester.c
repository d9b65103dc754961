// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester's engine: from work requests to trains.
 *
 * The send queue is a ring of work requests. Three indices walk over it, always
 * in this order: ring.index (oldest not completed), send (being sent), fetched
 * (next to copy from shared memory). PSNs are given out as sending goes; going
 * back after a loss moves only the cursor (send, send_psn).
 */
#include <linux/nospec.h>

#include "compat.h"
#include "memory/copy.h"
#include "memory/mw.h"
#include "transport/ack_delay.h"
#include "transport/datagram.h"
#include "transport/direct.h"
#include "transport/fault.h"
#include "transport/gather.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/receive.h"
#include "transport/requester.h"
#include "transport/retransmit.h"
#include "transport/run.h"
#include "transport/send.h"
#include "transport/window.h"
#include "turn.h"

/* What a work request may ask for besides */
#define SROCE_WR_FLAGS (SROCE_SEND_FENCE | SROCE_SEND_SIGNALED | \
			SROCE_SEND_SOLICITED | SROCE_SEND_INLINE)

/* Arguments of an operation that are not its data: bytes of sroce_send_wqe.room */
#define SROCE_ARGS(field) sizeof_field(struct sroce_send_wqe, field)
#define SROCE_ARGS_END(field, last)					\
	(offsetofend(struct sroce_send_wqe, field.last) -		\
	 offsetof(struct sroce_send_wqe, room))
#define SROCE_ARGS_RDMA SROCE_ARGS_END(rdma, rkey)
#define SROCE_ARGS_ATOMIC SROCE_ARGS_END(atomic, rkey)

/* Of a posted operation: what it is on the wire and when complete, and its arguments */
static const struct {
	u8 op;
	u8 wc;
	u16 flags;
	u8 args;
	bool word;		/* imm_data or invalidate_rkey */
} sroce_wr_table[] = {
	[SROCE_WR_RDMA_WRITE] = { SROCE_OP_WRITE, IB_WC_RDMA_WRITE, 0,
				  SROCE_ARGS_RDMA },
	[SROCE_WR_RDMA_WRITE_IMM] = { SROCE_OP_WRITE, IB_WC_RDMA_WRITE,
				      SROCE_IMM, SROCE_ARGS_RDMA, true },
	[SROCE_WR_SEND] = { SROCE_OP_SEND, IB_WC_SEND },
	[SROCE_WR_SEND_IMM] = { SROCE_OP_SEND, IB_WC_SEND, SROCE_IMM, 0, true },
	[SROCE_WR_RDMA_READ] = { SROCE_OP_READ, IB_WC_RDMA_READ, 0,
				 SROCE_ARGS_RDMA },
	[SROCE_WR_CMP_SWAP] = { SROCE_OP_CMP_SWAP, IB_WC_COMP_SWAP, 0,
				SROCE_ARGS_ATOMIC },
	[SROCE_WR_FETCH_ADD] = { SROCE_OP_FETCH_ADD, IB_WC_FETCH_ADD, 0,
				 SROCE_ARGS_ATOMIC },
	[SROCE_WR_LOCAL_INV] = { SROCE_OP_NONE, IB_WC_LOCAL_INV, 0, 0, true },
	[SROCE_WR_BIND_MW] = { SROCE_OP_NONE, IB_WC_BIND_MW, 0,
			       SROCE_ARGS(bind) },
	[SROCE_WR_SEND_INV] = { SROCE_OP_SEND, IB_WC_SEND, SROCE_INV, 0, true },
	[SROCE_WR_FLUSH] = { SROCE_OP_FLUSH, IB_WC_FLUSH, 0,
			     SROCE_ARGS_END(flush, selectivity) },
	[SROCE_WR_ATOMIC_WRITE] = { SROCE_OP_ATOMIC_WRITE, IB_WC_ATOMIC_WRITE,
				    0, SROCE_ARGS_RDMA },
	[SROCE_WR_REG_MR] = { SROCE_OP_NONE, IB_WC_REG_MR, 0, SROCE_ARGS(reg) },
};

static bool sroce_wr_known(const struct sroce_qp *qp,
			   const struct sroce_swqe *slot)
{
	u64 posts = qp->kind->posts | (slot->user ? 0 : qp->kind->kernel_posts);
	u8 opcode = slot->wqe.opcode;

	return opcode < 64 && (posts >> opcode & 1);
}

static u32 sroce_wr_args(const struct sroce_qp *qp, u8 opcode)
{
	if (!sroce_qp_is_datagram(qp))
		return sroce_wr_table[opcode].args;
	return qp->type == IB_QPT_GSI ? SROCE_ARGS(ud) :
					SROCE_ARGS_END(ud, remote_qkey);
}

/*
 * Flags that nobody knows, reserved fields, and arguments of other operations: what
 * is refused today can get a meaning tomorrow (sroce-abi.h).
 */
static bool sroce_wr_reserved(const struct sroce_qp *qp,
			      const struct sroce_send_wqe *wqe)
{
	u32 rest = wqe->reserved | wqe->reserved2;
	const u32 *arg = (const u32 *)wqe->room;
	u32 i;

	for (i = sroce_wr_args(qp, wqe->opcode) / sizeof(*arg);
	     i < sizeof(wqe->room) / sizeof(*arg); i++)
		rest |= arg[i];
	if (!(wqe->flags & SROCE_SEND_INLINE))
		rest |= wqe->inline_len;
	if (!sroce_wr_table[wqe->opcode].word)
		rest |= wqe->invalidate_rkey;
	if (qp->kind->service != SROCE_XRC)
		rest |= wqe->remote_srqn;
	return rest || wqe->flags & ~SROCE_WR_FLAGS;
}

/* Bytes of the message, or more than 2^31 when the list is too long */
static u64 sroce_swqe_length(const struct sroce_swqe *slot)
{
	u64 sum = 0;
	int i;

	if (slot->wqe.flags & SROCE_SEND_INLINE)
		return slot->wqe.inline_len;
	for (i = 0; i < slot->wqe.num_sge; i++)
		sum += slot->sge[i].length;
	return sum;
}

/* What single operations ask of their data */
static u8 sroce_swqe_check_op(const struct sroce_swqe *slot)
{
	bool is_inline = slot->wqe.flags & SROCE_SEND_INLINE;

	switch (slot->op) {
	case SROCE_OP_NONE:
		return is_inline || slot->wqe.num_sge ? IB_WC_LOC_QP_OP_ERR :
							IB_WC_SUCCESS;
	case SROCE_OP_READ:
		return is_inline ? IB_WC_LOC_QP_OP_ERR : IB_WC_SUCCESS;
	case SROCE_OP_CMP_SWAP:
	case SROCE_OP_FETCH_ADD:
		if (is_inline)
			return IB_WC_LOC_QP_OP_ERR;
		fallthrough;
	case SROCE_OP_ATOMIC_WRITE:
		return slot->length == 8 ? IB_WC_SUCCESS : IB_WC_LOC_LEN_ERR;
	case SROCE_OP_FLUSH:
		if (!sroce_feth_fits(slot->wqe.flush.placement,
				     slot->wqe.flush.selectivity))
			return IB_WC_LOC_QP_OP_ERR;
		if (slot->wqe.flush.length > U32_MAX)
			return IB_WC_LOC_LEN_ERR;
		return slot->length ? IB_WC_LOC_LEN_ERR : IB_WC_SUCCESS;
	default:
		return IB_WC_SUCCESS;
	}
}

static u8 sroce_swqe_check(struct sroce_qp *qp, struct sroce_swqe *slot)
{
	struct sroce_send_wqe *wqe = &slot->wqe;
	u64 len;

	if (!sroce_wr_known(qp, slot))
		return IB_WC_LOC_QP_OP_ERR;
	wqe->opcode = array_index_nospec(wqe->opcode,
					 ARRAY_SIZE(sroce_wr_table));
	if (sroce_wr_reserved(qp, wqe) || wqe->num_sge > qp->max_send_sge ||
	    ((wqe->flags & SROCE_SEND_INLINE) &&
	     (wqe->num_sge || wqe->inline_len > qp->max_inline)))
		return IB_WC_LOC_QP_OP_ERR;
	wqe->num_sge = array_index_nospec(wqe->num_sge, qp->max_send_sge + 1);
	slot->op = sroce_wr_table[wqe->opcode].op;

	len = sroce_swqe_length(slot);
	if (len > (sroce_qp_is_datagram(qp) ? READ_ONCE(qp->port->mtu) :
					      1U << 31))
		return IB_WC_LOC_LEN_ERR;
	slot->length = len;
	return sroce_swqe_check_op(slot);
}

/*
 * Copy the next posted work request. The entry may change under us when a
 * process owns it, so only the copy is looked at. Inline data stays where it is:
 * it means nothing to us, and a process that changes it sends something else.
 */
static struct sroce_swqe *sroce_fetch(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 ahead = req->fetched - req->ring.index;
	const struct sroce_send_wqe *entry;
	struct sroce_swqe *slot;

	if (sroce_ring_pending(&req->ring) <= ahead)
		return NULL;
	entry = sroce_ring_entry(&req->ring, req->fetched);
	slot = sroce_slot(req, req->fetched);
	slot->wqe = *entry;
	/* From here on the compiler must not look at the entry instead of the copy */
	barrier();
	slot->user = qp->user;
	slot->inline_data = entry + 1;
	memcpy(slot->sge, entry + 1, sizeof(slot->sge[0]) *
	       min_t(u32, slot->wqe.num_sge, qp->max_send_sge));
	req->fetched++;
	slot->state = SROCE_SWQE_READY;
	slot->op = SROCE_OP_NONE;
	slot->length = 0;
	slot->npsn = 0;
	slot->status = sroce_swqe_check(qp, slot);
	req->batch.last_len = slot->length;
	return slot;
}

/* --- completion ------------------------------------------------------------ */

static void sroce_send_complete(struct sroce_qp *qp, struct sroce_swqe *slot,
				enum ib_wc_status status)
{
	struct sroce_cqe cqe = {
		.wr_id = slot->wqe.wr_id,
		.status = status,
	};

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
	if (!sroce_cq_add(qp->scq, qp->ibqp, &cqe, status != IB_WC_SUCCESS))
		sroce_qp_fatal(qp);
}

void sroce_requester_fail(struct sroce_qp *qp, enum ib_wc_status status)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot = sroce_slot(req, req->ring.index);

	req->failed = req->ring.index != req->fetched && sroce_has_lent(qp);
	if (req->failed) {
		slot->status = status;
	} else if (req->ring.index != req->fetched) {
		sroce_ring_consumed(&req->ring, 1);
		sroce_send_complete(qp, slot, status);
	}
	if (qp->kind->acked)
		sroce_qp_error(qp);
	else
		sroce_qp_send_error(qp);
}

static bool sroce_swqe_done(const struct sroce_requester *req,
			    const struct sroce_swqe *slot)
{
	/* Behind its beginning; far behind means before it, as PSNs wrap */
	u32 behind = (req->una_psn - slot->first_psn) & SROCE_PSN_MASK;

	/* Pairs with whoever has read its data (direct.c) */
	if (atomic_read_acquire(&slot->lent))
		return false;
	if (slot->state != SROCE_SWQE_SENT)
		return slot->state == SROCE_SWQE_DONE;
	return behind >= slot->npsn && behind < SROCE_MAX_NPSN * 3 / 2;
}

static u32 sroce_done_at_head(const struct sroce_requester *req)
{
	const struct sroce_swqe *slot;
	u32 i;

	for (i = req->ring.index; i != req->fetched; i++) {
		slot = sroce_slot(req, i);
		if (slot->status != IB_WC_SUCCESS ||
		    !sroce_swqe_done(req, slot))
			break;
	}
	return i - req->ring.index;
}

void sroce_requester_retire(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 n = sroce_done_at_head(req);
	struct sroce_swqe *slot;

	/*
	 * Room first: whoever sees a completion may post another request. The
	 * slots stay as they are until the next one is fetched.
	 */
	if (n)
		sroce_ring_consumed(&req->ring, n);
	for (; n; n--)
		sroce_send_complete(qp, sroce_slot(req, req->ring.index - n),
				    IB_WC_SUCCESS);
	/* Acknowledged faster than resent: go on behind what is complete */
	if ((s32)(req->send - req->ring.index) < 0)
		req->send = req->ring.index;
	if (sroce_psn_diff(req->send_psn, req->una_psn) < 0)
		req->send_psn = req->una_psn;

	if (req->ring.index != req->fetched) {
		slot = sroce_slot(req, req->ring.index);
		if (slot->status != IB_WC_SUCCESS)
			sroce_requester_fail(qp, slot->status);
	}
}

/* In ERR and SQE: every work request completes, fetched or not, signaled or not */
static bool sroce_requester_flush(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot;
	int budget = SROCE_FLUSH_BUDGET;

	req->deadline = 0;
	req->rnr_wait = false;
	/* From now on every poster rings */
	WRITE_ONCE(req->ring.hdr->flags, 0);
	/* Pairs with the poster's, between its index and our flags */
	smp_mb();
	/* We come back when the last train has been taken, which sees our state */
	if (sroce_has_lent(qp))
		return false;
	if (unlikely(req->failed))
		sroce_requester_retire(qp);
	while (budget--) {
		if (req->ring.index == req->fetched && !sroce_fetch(qp))
			break;
		sroce_ring_consumed(&req->ring, 1);
		slot = sroce_slot(req, req->ring.index - 1);
		sroce_send_complete(qp, slot, IB_WC_WR_FLUSH_ERR);
	}
	req->send = req->ring.index;
	return budget < 0;
}

/* --- sending ---------------------------------------------------------------- */

/* Why the engine stopped at a work request */
enum sroce_step {
	SROCE_STEP_ON,		/* go on */
	SROCE_STEP_WAIT,	/* an ACK, response or timer will come */
	SROCE_STEP_IDLE,	/* nothing is posted */
};

/* It fails as soon as everything before it is complete; nothing is sent after it */
static enum sroce_step sroce_step_fail(struct sroce_qp *qp,
				       struct sroce_swqe *slot,
				       enum ib_wc_status status)
{
	slot->status = status;
	sroce_requester_retire(qp);
	return SROCE_STEP_WAIT;
}

/* Its data cannot be read: not yet, or never */
static enum sroce_step sroce_step_no_data(struct sroce_qp *qp,
					  struct sroce_swqe *slot, int err)
{
	if (err == -EAGAIN)
		return SROCE_STEP_WAIT;
	return sroce_step_fail(qp, slot, IB_WC_LOC_PROT_ERR);
}

static int sroce_bind(struct sroce_qp *qp, const struct sroce_send_wqe *wqe)
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
		return sroce_bind(qp, wqe);
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

/* Copies with a key that is going are under way: look again soon */
static enum sroce_step sroce_step_later(struct sroce_qp *qp)
{
	sroce_half_kick(&qp->req.half);
	return SROCE_STEP_WAIT;
}

static enum sroce_step sroce_step_local(struct sroce_qp *qp,
					struct sroce_swqe *slot)
{
	u8 opcode = slot->wqe.opcode;
	int err;

	if (sroce_local_waits(&qp->req, slot))
		return SROCE_STEP_WAIT;
	if (slot->state == SROCE_SWQE_READY) {
		err = sroce_local_op(qp, slot);
		if (err == -EAGAIN)
			return sroce_step_later(qp);
		if (err)
			return sroce_step_fail(qp, slot,
					       opcode == SROCE_WR_BIND_MW ?
					       IB_WC_MW_BIND_ERR :
					       IB_WC_LOC_QP_OP_ERR);
		slot->state = SROCE_SWQE_QUIET;
	}
	if (opcode == SROCE_WR_LOCAL_INV &&
	    !sroce_mr_quiet(&qp->port->mrs, slot->wqe.invalidate_rkey))
		return sroce_step_later(qp);
	slot->state = SROCE_SWQE_DONE;
	qp->req.send++;
	sroce_requester_retire(qp);
	return SROCE_STEP_ON;
}

/* PSNs of one READ request: several together fill the window */
static u32 sroce_read_chunk(const struct sroce_qp *qp)
{
	u32 requests = clamp_t(u32, qp->attr.max_rd_atomic, 1, 4);
	u32 window = qp->req.window;

	return max(window / requests, min_t(u32, window, SROCE_TRAIN_PACKETS));
}

/* First packet of a work request: it gets its PSNs */
static enum sroce_step sroce_begin(struct sroce_qp *qp,
				   struct sroce_swqe *slot)
{
	struct sroce_requester *req = &qp->req;

	/* There will never be a turn for it */
	if (sroce_swqe_has_response(slot) && !qp->attr.max_rd_atomic)
		return sroce_step_fail(qp, slot, IB_WC_LOC_QP_OP_ERR);
	if ((slot->wqe.flags & SROCE_SEND_FENCE) && req->rd_outstanding)
		return SROCE_STEP_WAIT;
	slot->first_psn = req->send_psn;
	slot->npsn = 1;
	if (slot->op == SROCE_OP_SEND || slot->op == SROCE_OP_WRITE ||
	    slot->op == SROCE_OP_READ)
		slot->npsn = sroce_packets(slot->length, qp->mtu);
	slot->chunk = min(slot->npsn, sroce_read_chunk(qp));
	slot->state = SROCE_SWQE_SENT;
	return SROCE_STEP_ON;
}

static void sroce_train_init(struct sroce_qp *qp, struct sroce_train *t,
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

/* Nothing will ever be acknowledged: what was sent is done with */
static void sroce_sent_for_good(struct sroce_requester *req, u32 npsn)
{
	req->send_psn = sroce_psn_add(req->send_psn, npsn);
	req->next_psn = req->send_psn;
	req->una_psn = req->send_psn;
}

static void sroce_sent(struct sroce_qp *qp, u32 npsn)
{
	struct sroce_requester *req = &qp->req;

	if (!qp->kind->acked) {
		sroce_sent_for_good(req, npsn);
		return;
	}
	if (sroce_psn_diff(req->send_psn, req->next_psn) < 0)
		sroce_qp_count(qp, SROCE_CNT_RETRANS_PACKETS, npsn);
	req->send_psn = sroce_psn_add(req->send_psn, npsn);
	if (sroce_psn_diff(req->send_psn, req->next_psn) > 0) {
		req->next_psn = req->send_psn;
		sroce_window_sent(req);
	}
	sroce_requester_arm(qp);
}

/* Gather payload; *n is cut to the packets that fit */
static int sroce_gather_packets(struct sroce_qp *qp, struct sroce_gather *g,
				struct sroce_swqe *slot, u32 k, u32 *n)
{
	u32 rest = slot->length - k * qp->mtu;
	int err = sroce_gather_send(g, slot, k * qp->mtu,
				    min_t(u32, rest, *n * qp->mtu), rest);

	if (err != -ENOSPC)
		return err;
	*n = g->len / qp->mtu;
	return *n ? 0 : -EINVAL;
}

/*
 * Packets that the next train may have: none when the window has room for only
 * a stump of what is there, while ACKs that will make more are on their way.
 */
static u32 sroce_train_room(struct sroce_requester *req, u32 wanted)
{
	u32 out = sroce_requester_outstanding(req);
	u32 room = req->window - min(req->window, out);

	if (room >= wanted || room >= SROCE_TRAIN_STUMP || !out)
		return min(room, wanted);
	sroce_window_full(req);
	return 0;
}

/* May a request go out that has responses? */
static bool sroce_request_room(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (req->rd_outstanding >= qp->attr.max_rd_atomic)
		return false;
	if (sroce_requester_outstanding(req) < req->window)
		return true;
	sroce_window_full(req);
	return false;
}

/* One train of a SEND or RDMA WRITE */
static enum sroce_step sroce_step_data(struct sroce_qp *qp,
				       struct sroce_tx *tx,
				       struct sroce_swqe *slot)
{
	struct sroce_requester *req = &qp->req;
	u32 k = (req->send_psn - slot->first_psn) & SROCE_PSN_MASK;
	u32 n = sroce_train_room(req, min_t(u32, slot->npsn - k,
					    SROCE_TRAIN_PACKETS));
	struct sroce_gather *g;
	struct sroce_train t;
	int err = 0;

	if (!n)
		return SROCE_STEP_WAIT;
	g = sroce_gather_begin(&req->half);
	g->swqe = qp->kind->acked ? NULL : slot;
	n = min_t(u32, n, SROCE_TRAIN_BYTES / qp->mtu);
	if (slot->length)
		err = sroce_gather_packets(qp, g, slot, k, &n);
	if (err) {
		sroce_gather_end(g);
		return sroce_step_no_data(qp, slot, err);
	}

	sroce_train_init(qp, &t, slot);
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
	sroce_send_train(&req->half, tx, qp->path, &t, g);
	sroce_gather_end(g);
	sroce_sent(qp, n);
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
	u32 n = sroce_chunk_rest(slot, k);
	struct sroce_train t;

	if (!sroce_request_room(qp))
		return SROCE_STEP_WAIT;
	sroce_train_init(qp, &t, slot);
	t.flags = SROCE_START | SROCE_END | SROCE_ACKREQ;
	t.va = slot->wqe.rdma.remote_addr + (u64)k * qp->mtu;
	t.rkey = slot->wqe.rdma.rkey;
	t.dma_len = min(slot->length - k * qp->mtu, n * qp->mtu);
	sroce_send_train(&req->half, tx, qp->path, &t, NULL);
	req->rd_outstanding++;
	sroce_sent(qp, n);
	return SROCE_STEP_ON;
}

/* The part of the train that the operation decides */
static void sroce_single_headers(struct sroce_train *t,
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

	if (!sroce_request_room(qp))
		return SROCE_STEP_WAIT;
	g = sroce_gather_begin(&req->half);
	if (len)
		err = sroce_gather_packets(qp, g, slot, 0, &one);
	if (err) {
		sroce_gather_end(g);
		return sroce_step_no_data(qp, slot, err);
	}
	sroce_train_init(qp, &t, slot);
	t.flags = SROCE_START | SROCE_END | SROCE_ACKREQ;
	sroce_single_headers(&t, slot);
	sroce_gather_train(g, &t, len);
	sroce_send_train(&req->half, tx, qp->path, &t, g);
	sroce_gather_end(g);
	req->rd_outstanding++;
	sroce_sent(qp, 1);
	return SROCE_STEP_ON;
}

static enum sroce_step sroce_step_send(struct sroce_qp *qp,
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

static enum sroce_step sroce_step_connected(struct sroce_qp *qp,
					    struct sroce_tx *tx,
					    struct sroce_swqe *slot)
{
	struct sroce_requester *req = &qp->req;
	enum sroce_step step;

	if (slot->state == SROCE_SWQE_READY) {
		step = sroce_begin(qp, slot);
		if (step != SROCE_STEP_ON)
			return step;
	}
	step = sroce_step_send(qp, tx, slot);
	if (step == SROCE_STEP_ON && req->send_psn == sroce_swqe_end(slot)) {
		req->send++;
		if (!qp->kind->acked)
			sroce_requester_retire(qp);
	}
	return step;
}

static enum sroce_step sroce_step_datagram(struct sroce_qp *qp,
					   struct sroce_tx *tx,
					   struct sroce_swqe *slot)
{
	if (!sroce_datagram_send(qp, tx, slot))
		return SROCE_STEP_WAIT;
	qp->req.send++;
	sroce_requester_retire(qp);
	return SROCE_STEP_ON;
}

/*
 * Have the queues below room? Whoever waits for it does so against the same timer
 * as for an ACK: a queue may be stuck for ever.
 */
static bool sroce_has_space(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (unlikely(req->half.starved && !req->half.stalled)) {
		sroce_requester_arm(qp);
		return false;
	}
	/* That of a wait that is over */
	if (!sroce_requester_outstanding(req))
		req->deadline = 0;
	return true;
}

static enum sroce_step sroce_step(struct sroce_qp *qp, struct sroce_tx *tx)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *slot;

	if (req->rnr_wait)
		return SROCE_STEP_WAIT;
	if (req->send != req->fetched) {
		slot = sroce_slot(req, req->send);
	} else if (sroce_begun(req) >= SROCE_BEGUN_MOST) {
		return SROCE_STEP_WAIT;
	} else {
		slot = sroce_fetch(qp);
		if (!slot)
			return SROCE_STEP_IDLE;
	}
	if (slot->status != IB_WC_SUCCESS) {
		sroce_requester_retire(qp);
		return SROCE_STEP_WAIT;
	}
	if (slot->state == SROCE_SWQE_DONE) {
		req->send++;
		return SROCE_STEP_ON;
	}
	/* In SQD only what was begun goes on */
	if (slot->state == SROCE_SWQE_READY &&
	    sroce_qp_state(qp) != IB_QPS_RTS)
		return SROCE_STEP_WAIT;
	if (slot->op == SROCE_OP_NONE)
		return sroce_step_local(qp, slot);
	if (!sroce_has_space(qp))
		return SROCE_STEP_WAIT;
	if (sroce_qp_is_datagram(qp))
		return sroce_step_datagram(qp, tx, slot);
	return sroce_step_connected(qp, tx, slot);
}

static bool sroce_may_send(const struct sroce_qp *qp)
{
	enum ib_qp_state state = sroce_qp_state(qp);

	return state == IB_QPS_RTS || state == IB_QPS_SQD;
}

/*
 * While ACTIVE is set posters need not ring. It stays set when something is
 * certain to come back here: an ACK, a response, a timer, buffer space.
 */
static bool sroce_sq_rest(struct sroce_requester *req)
{
	struct sroce_ring_hdr *hdr = req->ring.hdr;

	WRITE_ONCE(hdr->flags, 0);
	/* Clear, then look; the poster stores prod, then reads the flag */
	smp_mb();
	return sroce_ring_pending(&req->ring) <= req->fetched - req->ring.index;
}

static bool sroce_requester_send(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	enum sroce_step step = SROCE_STEP_WAIT;
	unsigned long begin = sroce_turn_spent();
	int budget = SROCE_SEND_BUDGET;
	bool over = false;
	u32 next_psn = req->next_psn;
	struct sroce_tx tx = {};

	WRITE_ONCE(req->ring.hdr->flags, SROCE_SQ_ACTIVE);
	while (sroce_may_send(qp)) {
		over = !budget-- || sroce_half_over(begin);
		if (over)
			break;
		step = sroce_step(qp, &tx);
		if (step == SROCE_STEP_ON)
			continue;
		if (step == SROCE_STEP_WAIT || sroce_sq_rest(req))
			break;
		WRITE_ONCE(req->ring.hdr->flags, SROCE_SQ_ACTIVE);
	}
	if (req->next_psn != next_psn)
		sroce_ack_ride(qp, &tx);
	qp->port->xmit->flush(&tx);
	if (!sroce_may_send(qp))
		WRITE_ONCE(req->ring.hdr->flags, 0);
	return over;
}

/* Everything that was begun is complete, also what is to be sent again */
static bool sroce_drained(const struct sroce_requester *req)
{
	return req->ring.index == req->fetched ||
	       sroce_slot(req, req->ring.index)->state == SROCE_SWQE_READY;
}

static void sroce_check_drained(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (!req->draining || !sroce_drained(req))
		return;
	req->draining = false;
	if (req->drained_event)
		sroce_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

/* As much as one half may before others run. True: there is more. */
static bool sroce_requester_inbox(struct sroce_qp *qp)
{
	struct sroce_half *half = &qp->req.half;
	unsigned long begin = sroce_turn_spent();
	struct sroce_parcel *p;

	while ((p = sroce_inbox_next(half))) {
		sroce_turn_spend(sroce_parcel_cost(p));
		sroce_receive_parcel(qp, p);
		sroce_parcel_free(p);
		if (sroce_half_over(begin))
			return !list_empty(&half->inbox);
	}
	return false;
}

/* The pages of a READ's sink are there, or will be an error: ask once more */
static void sroce_read_again(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	req->half.fault.waiting = false;
	req->rnr_wait = false;
	sroce_requester_rewind(qp);
}

bool sroce_requester_run(struct sroce_half *half)
{
	struct sroce_qp *qp = half->qp;
	bool more;

	sroce_half_unstarve(half);
	if (unlikely(half->fault.waiting) && !sroce_faulting(half))
		sroce_read_again(qp);
	/* What has come is taken before anything is flushed */
	more = sroce_requester_inbox(qp);
	/* Trains of theirs may have been taken meanwhile */
	if (!qp->kind->acked)
		sroce_requester_retire(qp);
	if (sroce_may_send(qp))
		more |= sroce_requester_send(qp);
	if (more)
		return true;
	if (sroce_qp_state(qp) == IB_QPS_ERR || sroce_qp_state(qp) == IB_QPS_SQE)
		return sroce_requester_flush(qp);
	sroce_check_drained(qp);
	return more;
}
