/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ibv_wr_*: send requests, built call by call.
 *
 * Between wr_start and wr_complete the lock is held and requests are written
 * after the ones already posted, where the kernel does not look yet. So
 * wr_abort has nothing to undo, and neither has wr_complete after an error:
 * then nothing of the batch is posted.
 */
#include <ccan/array_size.h>

#include "wqe.h"

static void fail(struct sroce_sq *sq, int err)
{
	if (!sq->err)
		sq->err = err;
	sq->entry = NULL;
}

/*
 * Start a request; the one before is complete. NULL after an error: the batch is
 * lost anyway.
 */
static struct sroce_send_wqe *begin(struct ibv_qp_ex *qp_ex, uint8_t opcode)
{
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;
	/* That data is inline is said by whoever gives it */
	uint16_t flags = qp_ex->wr_flags & sq->flags & ~IBV_SEND_INLINE;

	if (sq->err)
		return NULL;
	if (!sroce_op_in(opcode, sq->ops)) {
		fail(sq, EINVAL);
		return NULL;
	}
	if (!sroce_sq_has_room(sq, sq->next)) {
		fail(sq, ENOMEM);
		return NULL;
	}
	if (sq->sig_all)
		flags |= SROCE_SEND_SIGNALED;

	wqe_end(sq);
	wqe_begin(sq, sq->next++, qp_ex->wr_id, opcode, flags);
	return &sq->wqe;
}

/* the same, for an operation that names memory of the peer */
static struct sroce_send_wqe *begin_rdma(struct ibv_qp_ex *qp_ex, uint8_t opcode,
					 uint32_t rkey, uint64_t remote_addr)
{
	struct sroce_send_wqe *wqe = begin(qp_ex, opcode);

	if (wqe)
		wqe_rdma(wqe, rkey, remote_addr);
	return wqe;
}

/* the same, for an operation that invalidates a key */
static void begin_inv(struct ibv_qp_ex *qp_ex, uint8_t opcode, uint32_t rkey)
{
	struct sroce_send_wqe *wqe = begin(qp_ex, opcode);

	if (wqe)
		wqe->invalidate_rkey = rkey;
}

/* @wqe is what begin() or begin_rdma() has returned */
static void set_imm(struct sroce_send_wqe *wqe, __be32 imm_data)
{
	if (wqe)
		wqe->imm_data = imm_data;
}

/* --- the batch --- */

static void sroce_wr_start(struct ibv_qp_ex *qp_ex)
{
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;

	sroce_lock(&sq->lock);
	sq->next = sq->prod;
	sq->entry = NULL;
	sq->err = sroce_qp_may_send(&qp_ex->qp_base) ? 0 : EINVAL;
}

static int sroce_wr_complete(struct ibv_qp_ex *qp_ex)
{
	struct sroce_qp *qp = to_sqp_ex(qp_ex);
	uint32_t begin = qp->sq.prod;
	uint32_t next = qp->sq.next;
	bool ring_doorbell = false, rings;
	int err = qp->sq.err, lost;
	uint32_t taken;

	if (!err) {
		wqe_end(&qp->sq);
		ring_doorbell = sroce_sq_publish(qp, next);
	}
	sroce_unlock(&qp->sq.lock);
	rings = qp->sq.tags && sroce_tags_sq_unlocked(qp);
	if (!ring_doorbell && !rings)
		return err;

	lost = sroce_doorbell(&qp_ex->qp_base);
	if (!lost || !ring_doorbell)
		return err;
	/* The device is gone, but it had taken the whole batch before. */
	taken = sroce_ring_taken(&qp->sq.ring, begin, next);
	return taken == next - begin ? 0 : lost;
}

static void sroce_wr_abort(struct ibv_qp_ex *qp_ex)
{
	struct sroce_qp *qp = to_sqp_ex(qp_ex);

	sroce_unlock(&qp->sq.lock);
	if (qp->sq.tags && sroce_tags_sq_unlocked(qp))
		sroce_doorbell(&qp_ex->qp_base);
}

/* --- builders: one for each operation --- */

static void sroce_wr_send(struct ibv_qp_ex *qp_ex)
{
	begin(qp_ex, SROCE_WR_SEND);
}

static void sroce_wr_send_tso(struct ibv_qp_ex *qp_ex, void *header,
			      uint16_t length, uint16_t mss)
{
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;

	if (begin(qp_ex, SROCE_WR_TSO) && wqe_tso(sq, header, length, mss))
		fail(sq, EINVAL);
}

static void sroce_wr_send_imm(struct ibv_qp_ex *qp_ex, __be32 imm_data)
{
	set_imm(begin(qp_ex, SROCE_WR_SEND_IMM), imm_data);
}

static void sroce_wr_send_inv(struct ibv_qp_ex *qp_ex, uint32_t rkey)
{
	begin_inv(qp_ex, SROCE_WR_SEND_INV, rkey);
}

static void sroce_wr_rdma_write(struct ibv_qp_ex *qp_ex, uint32_t rkey,
				uint64_t remote_addr)
{
	begin_rdma(qp_ex, SROCE_WR_RDMA_WRITE, rkey, remote_addr);
}

static void sroce_wr_rdma_write_imm(struct ibv_qp_ex *qp_ex, uint32_t rkey,
				    uint64_t remote_addr, __be32 imm_data)
{
	set_imm(begin_rdma(qp_ex, SROCE_WR_RDMA_WRITE_IMM, rkey, remote_addr),
		imm_data);
}

static void sroce_wr_rdma_read(struct ibv_qp_ex *qp_ex, uint32_t rkey,
			       uint64_t remote_addr)
{
	begin_rdma(qp_ex, SROCE_WR_RDMA_READ, rkey, remote_addr);
}

static void sroce_wr_atomic_cmp_swp(struct ibv_qp_ex *qp_ex, uint32_t rkey,
				    uint64_t remote_addr, uint64_t compare,
				    uint64_t swap)
{
	struct sroce_send_wqe *wqe = begin(qp_ex, SROCE_WR_CMP_SWAP);

	if (wqe)
		wqe_atomic(wqe, rkey, remote_addr, compare, swap);
}

static void sroce_wr_atomic_fetch_add(struct ibv_qp_ex *qp_ex, uint32_t rkey,
				      uint64_t remote_addr, uint64_t add)
{
	struct sroce_send_wqe *wqe = begin(qp_ex, SROCE_WR_FETCH_ADD);

	if (wqe)
		wqe_atomic(wqe, rkey, remote_addr, add, 0);
}

static void sroce_wr_atomic_write(struct ibv_qp_ex *qp_ex, uint32_t rkey,
				  uint64_t remote_addr, const void *value)
{
	struct sroce_send_wqe *wqe = begin_rdma(qp_ex, SROCE_WR_ATOMIC_WRITE,
						rkey, remote_addr);
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;
	int err;

	if (!wqe)
		return;
	wqe->flags |= SROCE_SEND_INLINE;
	err = wqe_append_inline(sq, value, sizeof(uint64_t));
	if (err)
		fail(sq, err);
}

static void sroce_wr_flush(struct ibv_qp_ex *qp_ex, uint32_t rkey,
			   uint64_t remote_addr, size_t length, uint8_t type,
			   uint8_t level)
{
	struct sroce_send_wqe *wqe = begin(qp_ex, SROCE_WR_FLUSH);

	if (wqe)
		wqe_flush(wqe, rkey, remote_addr, length, type, level);
}

static void sroce_wr_bind_mw(struct ibv_qp_ex *qp_ex, struct ibv_mw *mw,
			     uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct sroce_send_wqe *wqe = begin(qp_ex, SROCE_WR_BIND_MW);

	if (wqe)
		wqe_bind(wqe, mw, rkey, info);
}

static void sroce_wr_local_inv(struct ibv_qp_ex *qp_ex, uint32_t rkey)
{
	begin_inv(qp_ex, SROCE_WR_LOCAL_INV, rkey);
}

/* --- setters: the rest of the request that was begun last --- */

static void sroce_wr_set_ud_addr(struct ibv_qp_ex *qp_ex, struct ibv_ah *ah,
				 uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;

	if (sq->entry)
		wqe_ud(&sq->wqe, ah, remote_qpn, remote_qkey);
}

static void sroce_wr_set_xrc_srqn(struct ibv_qp_ex *qp_ex, uint32_t srqn)
{
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;

	if (sq->entry)
		sq->wqe.remote_srqn = srqn;
}

static void sroce_wr_set_sge_list(struct ibv_qp_ex *qp_ex, size_t num_sge,
				  const struct ibv_sge *sge)
{
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;
	int err;

	if (!sq->entry)
		return;
	err = wqe_sges(sq, sge, num_sge);
	if (err)
		fail(sq, err);
}

static void sroce_wr_set_sge(struct ibv_qp_ex *qp_ex, uint32_t lkey,
			     uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	sroce_wr_set_sge_list(qp_ex, 1, &sge);
}

static int set_inline(struct sroce_sq *sq, size_t num_buf,
		      const struct ibv_data_buf *buf)
{
	struct sroce_send_wqe *wqe = &sq->wqe;
	int err = 0;
	size_t i;

	if (!sroce_op_in(wqe->opcode, SROCE_OPS_INLINE))
		return EINVAL;

	wqe->flags |= SROCE_SEND_INLINE;
	wqe->num_sge = 0;
	wqe->inline_len = 0;
	for (i = 0; i < num_buf && !err; i++)
		err = wqe_append_inline(sq, buf[i].addr, buf[i].length);
	return err;
}

static void sroce_wr_set_inline_data_list(struct ibv_qp_ex *qp_ex,
					  size_t num_buf,
					  const struct ibv_data_buf *buf)
{
	struct sroce_sq *sq = &to_sqp_ex(qp_ex)->sq;
	int err;

	if (!sq->entry)
		return;
	err = set_inline(sq, num_buf, buf);
	if (err)
		fail(sq, err);
}

static void sroce_wr_set_inline_data(struct ibv_qp_ex *qp_ex, void *addr,
				     size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	sroce_wr_set_inline_data_list(qp_ex, 1, &buf);
}

/* --- what a QP can do --- */

static const struct {
	uint64_t flag;
	uint8_t opcode;
} send_ops[] = {
	{ IBV_QP_EX_WITH_RDMA_WRITE, SROCE_WR_RDMA_WRITE },
	{ IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, SROCE_WR_RDMA_WRITE_IMM },
	{ IBV_QP_EX_WITH_SEND, SROCE_WR_SEND },
	{ IBV_QP_EX_WITH_SEND_WITH_IMM, SROCE_WR_SEND_IMM },
	{ IBV_QP_EX_WITH_RDMA_READ, SROCE_WR_RDMA_READ },
	{ IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, SROCE_WR_CMP_SWAP },
	{ IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, SROCE_WR_FETCH_ADD },
	{ IBV_QP_EX_WITH_LOCAL_INV, SROCE_WR_LOCAL_INV },
	{ IBV_QP_EX_WITH_BIND_MW, SROCE_WR_BIND_MW },
	{ IBV_QP_EX_WITH_SEND_WITH_INV, SROCE_WR_SEND_INV },
	{ IBV_QP_EX_WITH_TSO, SROCE_WR_TSO },
	{ IBV_QP_EX_WITH_FLUSH, SROCE_WR_FLUSH },
	{ IBV_QP_EX_WITH_ATOMIC_WRITE, SROCE_WR_ATOMIC_WRITE },
};

int sroce_wr_check_ops(enum ibv_qp_type type, uint64_t send_ops_flags)
{
	uint32_t ops = sroce_ops_of(type);
	uint64_t supported = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(send_ops); i++)
		if (sroce_op_in(send_ops[i].opcode, ops))
			supported |= send_ops[i].flag;

	return check_comp_mask(send_ops_flags, supported) ? 0 : EOPNOTSUPP;
}

/*
 * Builders are set whatever the application asked for: one that does not fit
 * the type of QP fails the batch rather than the program. But those of FLUSH
 * and ATOMIC WRITE are looked for by applications (librpma) that do without,
 * and did not ask for them where the device has not all that they want of it.
 */
void sroce_wr_init(struct sroce_qp *qp, uint64_t send_ops_flags)
{
	struct ibv_qp_ex *qp_ex = &qp->vqp.qp_ex;

	qp_ex->wr_start = sroce_wr_start;
	qp_ex->wr_complete = sroce_wr_complete;
	qp_ex->wr_abort = sroce_wr_abort;

	qp_ex->wr_send = sroce_wr_send;
	qp_ex->wr_send_imm = sroce_wr_send_imm;
	qp_ex->wr_send_inv = sroce_wr_send_inv;
	qp_ex->wr_send_tso = sroce_wr_send_tso;
	qp_ex->wr_rdma_write = sroce_wr_rdma_write;
	qp_ex->wr_rdma_write_imm = sroce_wr_rdma_write_imm;
	qp_ex->wr_rdma_read = sroce_wr_rdma_read;
	qp_ex->wr_atomic_cmp_swp = sroce_wr_atomic_cmp_swp;
	qp_ex->wr_atomic_fetch_add = sroce_wr_atomic_fetch_add;
	if (send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		qp_ex->wr_atomic_write = sroce_wr_atomic_write;
	if (send_ops_flags & IBV_QP_EX_WITH_FLUSH)
		sroce_set_wr_flush(qp_ex, sroce_wr_flush);
	qp_ex->wr_bind_mw = sroce_wr_bind_mw;
	qp_ex->wr_local_inv = sroce_wr_local_inv;

	qp_ex->wr_set_ud_addr = sroce_wr_set_ud_addr;
	qp_ex->wr_set_xrc_srqn = sroce_wr_set_xrc_srqn;
	qp_ex->wr_set_sge = sroce_wr_set_sge;
	qp_ex->wr_set_sge_list = sroce_wr_set_sge_list;
	qp_ex->wr_set_inline_data = sroce_wr_set_inline_data;
	qp_ex->wr_set_inline_data_list = sroce_wr_set_inline_data_list;

	/* Tells libibverbs that ibv_qp_to_qp_ex() has an answer. */
	qp->vqp.comp_mask |= VERBS_QP_EX;
}
