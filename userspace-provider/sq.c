/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Send queues: ibv_post_send() and ibv_bind_mw().
 *
 * A list is written entry by entry and becomes visible with one store at its
 * end. Only when the kernel is not already busy with this queue does posting
 * cost a system call, and that call is made without the lock, because the
 * kernel sends from within it.
 */
#include "cq.h"
#include "wqe.h"

int sroce_sq_init(struct sroce_sq *sq, struct ibv_context *ctx,
		  const struct sroce_ring_info *info,
		  const struct ibv_qp_init_attr_ex *attr, bool needs_lock)
{
	int err;

	err = sroce_lock_init(&sq->lock, needs_lock);
	if (err)
		return err;

	err = sroce_ring_map(&sq->ring, ctx, info);
	if (err) {
		sroce_lock_destroy(&sq->lock);
		return err;
	}

	sq->max_sge = attr->cap.max_send_sge;
	sq->max_inline = attr->cap.max_inline_data;
	sq->ops = info->entries ? sroce_ops_of(attr->qp_type) : 0;
	sq->flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
		    IBV_SEND_INLINE;
	if (attr->qp_type == IBV_QPT_RAW_PACKET)
		sq->flags |= IBV_SEND_IP_CSUM;
	sq->sig_all = attr->sq_sig_all;
	sroce_sq_restart(sq);
	return 0;
}

void sroce_sq_fini(struct sroce_sq *sq)
{
	sroce_ring_unmap(&sq->ring);
	sroce_lock_destroy(&sq->lock);
}

void sroce_sq_restart(struct sroce_sq *sq)
{
	sroce_lock(&sq->lock);
	sroce_ring_restart(&sq->ring, &sq->prod, &sq->cons);
	if (sq->rndvs)
		sroce_sq_keep(sq);
	sq->rndvs = 0;
	sroce_unlock(&sq->lock);
}

void sroce_sq_keep(struct sroce_sq *sq)
{
	sq->kept = SROCE_RNDV_MOST * SROCE_RNDV_WQES;
}

/* What is not there any more makes room for others of the kind, one by one */
void sroce_sq_look(struct sroce_sq *sq)
{
	sq->cons = sroce_load_index(&sq->ring.hdr->cons);
	if (!sq->rndvs)
		return;
	while (sq->rndvs &&
	       (int32_t)(sq->cons - sq->rndv_end[sq->first_rndv]) >= 0) {
		sq->first_rndv = (sq->first_rndv + 1) % SROCE_RNDV_MOST;
		sq->rndvs--;
	}
	sq->kept = (SROCE_RNDV_MOST - sq->rndvs) * SROCE_RNDV_WQES;
	if (sq->rndvs && sq->rndv_end[sq->first_rndv] - sq->cons < SROCE_RNDV_WQES)
		sq->kept++;
}

bool sroce_qp_may_send(struct ibv_qp *qp)
{
	switch (qp->state) {
	case IBV_QPS_RESET:
	case IBV_QPS_INIT:
	case IBV_QPS_RTR:
		return false;
	default:
		return true;
	}
}

/* In these states requests are posted only to be flushed. */
static bool sroce_qp_flushes(struct ibv_qp *qp)
{
	return qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE;
}

bool sroce_sq_publish(struct sroce_qp *qp, uint32_t next)
{
	struct sroce_sq *sq = &qp->sq;
	uint32_t flags;

	if (next == sq->prod)
		return false;

	flags = sroce_ring_publish(&sq->ring, &sq->prod, next);
	if (flags & SROCE_SQ_GATHERING) {
		if ((int32_t)(next -
			      sroce_load_flags(&sq->ring.hdr->until)) >= 0)
			return true;
		cq_note_gathering(&qp->vqp.qp);
	}
	return !(flags & SROCE_SQ_ACTIVE) || sroce_qp_flushes(&qp->vqp.qp);
}

static int write_inline(struct sroce_sq *sq, const struct ibv_send_wr *wr)
{
	int err = 0;
	int i;

	if (!sroce_op_in(wr->opcode, SROCE_OPS_INLINE))
		return EINVAL;

	for (i = 0; i < wr->num_sge && !err; i++)
		err = wqe_append_inline(sq,
					(void *)(uintptr_t)wr->sg_list[i].addr,
					wr->sg_list[i].length);
	return err;
}

static int write_data(struct sroce_sq *sq, const struct ibv_send_wr *wr)
{
	if (sroce_op_in(wr->opcode, SROCE_OPS_NO_DATA)) {
		sq->wqe.flags &= ~SROCE_SEND_INLINE;
		return 0;
	}
	if (wr->num_sge < 0)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE)
		return write_inline(sq, wr);
	return wqe_sges(sq, wr->sg_list, wr->num_sge);
}

/* What the operation itself wants to know, other than its data */
static int write_operation(struct sroce_sq *sq, const struct ibv_send_wr *wr)
{
	struct sroce_send_wqe *wqe = &sq->wqe;

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		wqe->imm_data = wr->imm_data;
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->invalidate_rkey = wr->invalidate_rkey;
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm_data = wr->imm_data;
		SWITCH_FALLTHROUGH;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		wqe_rdma(wqe, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe_atomic(wqe, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
			   wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		return 0;
	case IBV_WR_BIND_MW:
		if (!wr->bind_mw.mw)
			return EINVAL;
		wqe_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
			 &wr->bind_mw.bind_info);
		return 0;
	case IBV_WR_TSO:
		return wqe_tso(sq, wr->tso.hdr, wr->tso.hdr_sz, wr->tso.mss);
	case IBV_WR_SEND:
		return 0;
	default:
		/* struct ibv_send_wr has no place for a FLUSH's arguments */
		return EINVAL;
	}
}

/* Whom it goes to, where the QP is not connected to one peer queue */
static int write_destination(struct sroce_send_wqe *wqe, struct ibv_qp *qp,
			     const struct ibv_send_wr *wr)
{
	if (qp->qp_type == IBV_QPT_UD) {
		if (!wr->wr.ud.ah)
			return EINVAL;
		wqe_ud(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
		       wr->wr.ud.remote_qkey);
	} else if (qp->qp_type == IBV_QPT_XRC_SEND) {
		wqe->remote_srqn = wr->qp_type.xrc.remote_srqn;
	}
	return 0;
}

static int write_request(struct sroce_qp *qp, uint32_t index,
			 const struct ibv_send_wr *wr)
{
	struct sroce_sq *sq = &qp->sq;
	unsigned int flags = wr->send_flags;
	int err;

	if (!sroce_op_in(wr->opcode, sq->ops) || flags & ~sq->flags)
		return EINVAL;
	if (sq->sig_all)
		flags |= IBV_SEND_SIGNALED;

	wqe_begin(sq, index, wr->wr_id, wr->opcode, flags);
	err = write_operation(sq, wr);
	if (!err)
		err = write_destination(&sq->wqe, &qp->vqp.qp, wr);
	if (!err)
		err = write_data(sq, wr);
	if (!err)
		wqe_end(sq);
	return err;
}

int sroce_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad)
{
	struct sroce_qp *qp = to_sqp(ibqp);
	struct sroce_sq *sq = &qp->sq;
	struct ibv_send_wr *first = wr;
	bool ring_doorbell, rings;
	uint32_t begin;
	uint32_t taken;
	uint32_t next;
	int err = 0;
	int lost;

	if (!sroce_qp_may_send(ibqp) || !sq->ops) {
		*bad = wr;
		return EINVAL;
	}

	sroce_lock(&sq->lock);
	begin = sq->prod;
	for (next = begin; wr; wr = wr->next, next++) {
		if (!sroce_sq_has_room(sq, next))
			err = ENOMEM;
		else
			err = write_request(qp, next, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	ring_doorbell = sroce_sq_publish(qp, next);
	sroce_unlock(&sq->lock);
	rings = sq->tags && sroce_tags_sq_unlocked(qp);

	lost = ring_doorbell || rings ? sroce_doorbell(ibqp) : 0;
	if (!lost || !ring_doorbell)
		return err;

	/* The device is gone, and with it what was not taken before. */
	taken = sroce_ring_taken(&sq->ring, begin, next);
	if (taken == next - begin)
		return err;
	while (taken--)
		first = first->next;
	*bad = first;
	return lost;
}

/* For windows of type 1 only: libibverbs has checked that. */
int sroce_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		  struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	struct ibv_send_wr *bad;
	int err;

	err = sroce_post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
