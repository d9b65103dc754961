// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests of kernel users, translated into ring entries. Processes write
 * their entries themselves; both are checked again where they are carried out.
 */
#include <linux/string.h>

#include "memory/integrity.h"
#include "memory/mr.h"
#include "verbs/verbs.h"

#define SROCE_SEND_FLAGS						\
	(IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | IB_SEND_INLINE)

static void sroce_wr_fill_rdma(struct sroce_send_wqe *wqe,
			       const struct ib_send_wr *wr)
{
	const struct ib_rdma_wr *rdma = rdma_wr(wr);

	wqe->rdma.remote_addr = rdma->remote_addr;
	wqe->rdma.rkey = rdma->rkey;
}

static void sroce_wr_fill_atomic(struct sroce_send_wqe *wqe,
				 const struct ib_send_wr *wr)
{
	const struct ib_atomic_wr *atomic = atomic_wr(wr);

	wqe->atomic.remote_addr = atomic->remote_addr;
	wqe->atomic.compare_add = atomic->compare_add;
	wqe->atomic.swap = atomic->swap;
	wqe->atomic.rkey = atomic->rkey;
}

static int sroce_wr_fill_ud(struct sroce_qp *qp, struct sroce_send_wqe *wqe,
			    const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah || ud->ah->device != qp->port->ibdev)
		return -EINVAL;
	if (qp->type == IB_QPT_GSI && ud->pkey_index >= SROCE_PKEYS)
		return -EINVAL;
	wqe->ud.ahn = sroce_ah_number(ud->ah);
	wqe->ud.remote_qpn = ud->remote_qpn;
	wqe->ud.remote_qkey = ud->remote_qkey;
	if (qp->type == IB_QPT_GSI)
		wqe->ud.pkey_index = ud->pkey_index;
	return 0;
}

static void sroce_wr_fill_reg_args(struct sroce_send_wqe *wqe,
				   const struct ib_reg_wr *reg)
{
	wqe->reg.mr = (uintptr_t)to_sroce_mr(reg->mr);
	wqe->reg.key = reg->key;
	wqe->reg.access = reg->access;
}

static int sroce_wr_fill_reg(struct sroce_send_wqe *wqe,
			     const struct ib_send_wr *wr)
{
	const struct ib_reg_wr *reg = reg_wr(wr);

	if (!reg->mr || to_sroce_mr(reg->mr)->sig)
		return -EINVAL;
	sroce_wr_fill_reg_args(wqe, reg);
	return 0;
}

/* A registration as any other, once it is known what the region is to be */
static int sroce_wr_fill_reg_integrity(struct sroce_qp *qp,
				       struct sroce_send_wqe *wqe,
				       const struct ib_send_wr *wr)
{
	const struct ib_reg_wr *reg = reg_wr(wr);
	struct sroce_integrity *sig = reg->mr ? to_sroce_mr(reg->mr)->sig : NULL;
	int err;

	if (!sig || !qp->ibqp->integrity_en)
		return -EINVAL;
	err = sroce_integrity_prepare(sig, reg->mr->sig_attrs);
	if (err) {
		ibdev_dbg(qp->port->ibdev, "reg_mr_integrity: domains: %d\n",
			  err);
		return err;
	}
	wqe->opcode = SROCE_WR_REG_MR;
	sroce_wr_fill_reg_args(wqe, reg);
	return 0;
}

/* Fill in what the operation needs; whether its type may post it is checked later */
static int sroce_wr_fill_op(struct sroce_qp *qp, struct sroce_send_wqe *wqe,
			    const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		wqe->imm_data = wr->ex.imm_data;
		fallthrough;
	case IB_WR_SEND:
		return sroce_qp_is_datagram(qp) ?
		       sroce_wr_fill_ud(qp, wqe, wr) : 0;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm_data = wr->ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
		sroce_wr_fill_rdma(wqe, wr);
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		sroce_wr_fill_atomic(wqe, wr);
		return 0;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		wqe->invalidate_rkey = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_REG_MR:
		return sroce_wr_fill_reg(wqe, wr);
	case IB_WR_REG_MR_INTEGRITY:
		return sroce_wr_fill_reg_integrity(qp, wqe, wr);
	default:
		return -EINVAL;
	}
}

static int sroce_wr_fill_inline(struct sroce_qp *qp, struct sroce_send_wqe *wqe,
				const struct ib_send_wr *wr)
{
	u8 *data = (u8 *)(wqe + 1);
	u32 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - len)
			return -EINVAL;
		/* no key: kernel users give kernel addresses */
		memcpy(data + len, (void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	wqe->inline_len = len;
	return 0;
}

static int sroce_wr_fill_sge(struct sroce_qp *qp, struct sroce_send_wqe *wqe,
			     const struct ib_send_wr *wr)
{
	struct sroce_sge *sge = (struct sroce_sge *)(wqe + 1);
	int i;

	if (wr->num_sge < 0 || wr->num_sge > qp->max_send_sge)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		sge[i].addr = wr->sg_list[i].addr;
		sge[i].length = wr->sg_list[i].length;
		sge[i].lkey = wr->sg_list[i].lkey;
	}
	wqe->num_sge = wr->num_sge;
	return 0;
}

/*
 * Does the operation send nothing? Consumers do not fill in the fields for its data then
 */
static bool sroce_wr_is_local(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_REG_MR || wr->opcode == IB_WR_LOCAL_INV ||
	       wr->opcode == IB_WR_REG_MR_INTEGRITY;
}

static int sroce_wr_fill_data(struct sroce_qp *qp, struct sroce_send_wqe *wqe,
			      const struct ib_send_wr *wr)
{
	if (sroce_wr_is_local(wr))
		return 0;
	if (wr->send_flags & IB_SEND_INLINE)
		return sroce_wr_fill_inline(qp, wqe, wr);
	return sroce_wr_fill_sge(qp, wqe, wr);
}

static int sroce_wr_fill_send(struct sroce_qp *qp, struct sroce_send_wqe *wqe,
			      const struct ib_send_wr *wr)
{
	int err;

	if (wr->send_flags & ~SROCE_SEND_FLAGS)
		return -EINVAL;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	if (sroce_wr_is_local(wr))
		wqe->flags &= ~(SROCE_SEND_INLINE | SROCE_SEND_SOLICITED);
	err = sroce_wr_fill_op(qp, wqe, wr);
	if (err)
		return err;
	return sroce_wr_fill_data(qp, wqe, wr);
}

int sroce_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		       const struct ib_send_wr **bad_wr)
{
	struct sroce_qp *qp = to_sroce_qp_obj(ibqp)->qp;

	if (qp->user) {
		*bad_wr = wr;
		return -EOPNOTSUPP;
	}
	return sroce_qp_post_send(qp, wr, bad_wr, sroce_wr_fill_send);
}

int sroce_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct sroce_qp *qp = to_sroce_qp_obj(ibqp)->qp;

	if (qp->user || qp->srq) {
		*bad_wr = wr;
		return qp->user ? -EOPNOTSUPP : -EINVAL;
	}
	return sroce_qp_post_recv(qp, wr, bad_wr);
}
