// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the two ends say to each other: posting, and what completions must be.
 */
#include "compat.h"
#include "tests/fuzz_pen.h"

/* --- posting --------------------------------------------------------------- */

void pen_post_recv(struct pen *pen, struct pen_side *ps)
{
	u32 off = pen_recv_slot(ps->recvs), len = PEN_MESSAGE;
	struct ib_sge sge[2] = {
		{ .addr = (uintptr_t)ps->s->mem + off, .lkey = ps->s->mr->key },
	};
	struct ib_recv_wr wr = {
		.wr_id = ps->recvs,
		.sg_list = sge,
		.num_sge = 2,
	};

	if (!pen->calm && fuzz_one_in(&pen->f->rnd, 4))
		len = fuzz_below(&pen->f->rnd, PEN_MESSAGE);
	sge[1] = sge[0];
	sge[0].length = fuzz_below(&pen->f->rnd, len + 1);
	sge[1].addr += sge[0].length;
	sge[1].length = len - sge[0].length;
	/* Since it was completed the memory is its owner's alone */
	pen_check_slot(pen, ps, off, 0);
	ps->recv_len[ps->recvs % PEN_DEPTH] = len;
	if (!side_try_recv(ps->s, &wr))
		ps->recvs++;
}

static void promise(struct pen *pen, struct pen_side *to,
		    const struct pen_op *op)
{
	if (pen->calm)
		to->messages[to->promised++ % PEN_MESSAGES] = *op;
}

/* What the peer names; in a pen that is not calm also what it must not have */
static void aim_remote(struct pen *pen, struct pen_side *ps, struct work *w,
		       const struct pen_op *op)
{
	struct pen_side *peer = pen_other(pen, ps);
	struct sroce_mr *mr = peer->mr[PEN_OPEN];
	u64 at = mr->iova + ps->posted % PEN_DEPTH * PEN_MESSAGE;

	if (!pen->calm && fuzz_one_in(&pen->f->rnd, 4)) {
		mr = peer->mr[fuzz_below(&pen->f->rnd, PEN_REGIONS)] ?: mr;
		at = mr->iova + fuzz_below(&pen->f->rnd, mr->length + 2);
	}
	if (op->opcode == SROCE_WR_FLUSH) {
		w->wqe.flush.remote_addr = at;
		w->wqe.flush.rkey = mr->key;
		w->wqe.flush.length = op->len + 1;
		w->wqe.flush.placement = SROCE_FETH_GLOBAL;
	} else {
		w->wqe.rdma.remote_addr = at;
		w->wqe.rdma.rkey = mr->key;
	}
}

static void build_atomic(struct pen *pen, struct pen_side *ps,
			 struct work *w, struct pen_op *op)
{
	struct sroce_mr *mr = pen_other(pen, ps)->mr[PEN_WORDS];
	u64 arg = prandom_u32_state(&pen->f->rnd);

	op->len = 8;
	op->expect = ps->sum;
	w->wqe.atomic.remote_addr = mr->iova;
	w->wqe.atomic.rkey = mr->key;
	w->wqe.atomic.compare_add = arg;
	if (pen->calm)
		ps->sum += arg;
	else
		w->wqe.atomic.remote_addr += fuzz_below(&pen->f->rnd, 72);
}

static void build_data(struct pen *pen, struct pen_side *ps, struct work *w,
		       struct pen_op *op)
{
	/* What an operation does not use is refused */
	if (op->opcode != SROCE_WR_SEND && op->opcode != SROCE_WR_SEND_IMM &&
	    op->opcode != SROCE_WR_SEND_INV)
		aim_remote(pen, ps, w, op);
	if (op->opcode == SROCE_WR_SEND_IMM ||
	    op->opcode == SROCE_WR_RDMA_WRITE_IMM)
		w->wqe.imm_data = cpu_to_be32(op->seed);
	if (op->opcode == SROCE_WR_RDMA_READ) {
		if (pen->calm)
			pen_fill(pen_other(pen, ps), pen_open_slot(ps->posted), op->len,
				 op->seed);
	} else {
		pen_fill(ps, pen_local_slot(ps->posted), op->len, op->seed);
	}
}

/* Keys come and go through the send queue, too */
static void build_key(struct pen *pen, struct pen_side *ps, struct work *w,
		      struct pen_op *op)
{
	struct sroce_mr *window = ps->mr[PEN_WINDOW];
	struct sroce_mr *fast = ps->mr[PEN_FAST];
	struct sroce_mr *parent = ps->mr[PEN_PARENT];
	bool one = fuzz_one_in(&pen->f->rnd, 2);

	op->len = 0;
	switch (op->opcode) {
	case SROCE_WR_BIND_MW:
		w->wqe.bind.mw_rkey = window->key;
		w->wqe.bind.new_rkey = (window->key & ~0xff) |
				       ((window->key + 1) & 0xff);
		w->wqe.bind.lkey = parent->key;
		w->wqe.bind.addr = pen_window_addr(ps);
		w->wqe.bind.length = pen_window_len();
		w->wqe.bind.access = IB_ACCESS_REMOTE_READ |
				     IB_ACCESS_REMOTE_WRITE;
		break;
	case SROCE_WR_REG_MR:
		w->wqe.reg.mr = (uintptr_t)fast;
		w->wqe.reg.key = (fast->key & ~0xff) | ((fast->key + 1) & 0xff);
		w->wqe.reg.access = PEN_RW;
		break;
	default:
		w->wqe.invalidate_rkey = one ? window->key : fast->key;
	}
}

static void build_local(struct pen *pen, struct pen_side *ps, struct work *w,
			const struct pen_op *op)
{
	u32 off = pen_local_slot(ps->posted);
	u32 cut = fuzz_below(&pen->f->rnd, op->len + 1);

	if (op->len <= 64 && op->opcode != SROCE_WR_RDMA_READ &&
	    op->opcode != SROCE_WR_FETCH_ADD && fuzz_one_in(&pen->f->rnd, 2)) {
		w->wqe.flags |= SROCE_SEND_INLINE;
		w->wqe.inline_len = op->len;
		w->inline_data = ps->s->mem + off;
		return;
	}
	work_local(ps->s, w, off, cut);
	work_local(ps->s, w, off + cut, op->len - cut);
}

static u8 choose_op(struct pen *pen, const struct pen_side *ps)
{
	static const u8 ops[] = {
		SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_WRITE_IMM, SROCE_WR_SEND,
		SROCE_WR_SEND_IMM,
		/* up to here UC */
		SROCE_WR_RDMA_READ, SROCE_WR_RDMA_READ, SROCE_WR_FETCH_ADD,
		SROCE_WR_FLUSH, SROCE_WR_ATOMIC_WRITE,
		/* up to here calm */
		SROCE_WR_SEND_INV, SROCE_WR_BIND_MW, SROCE_WR_REG_MR,
		SROCE_WR_BIND_MW, SROCE_WR_REG_MR, SROCE_WR_LOCAL_INV,
	};
	u32 n = ps->s->qp->type == IB_QPT_UC ? 4 : pen->calm ? 9 :
						   ARRAY_SIZE(ops);

	return ops[fuzz_below(&pen->f->rnd, n)];
}

static void build_work(struct pen *pen, struct pen_side *ps, struct work *w,
		       struct pen_op *op)
{
	switch (op->opcode) {
	case SROCE_WR_FETCH_ADD:
		build_atomic(pen, ps, w, op);
		break;
	case SROCE_WR_BIND_MW:
	case SROCE_WR_REG_MR:
	case SROCE_WR_LOCAL_INV:
		build_key(pen, ps, w, op);
		return;
	case SROCE_WR_FLUSH:
		op->len = 0;
		aim_remote(pen, ps, w, op);
		return;
	case SROCE_WR_SEND_INV:
		build_data(pen, ps, w, op);
		w->wqe.invalidate_rkey = fuzz_one_in(&pen->f->rnd, 2) ?
			pen_other(pen, ps)->mr[PEN_WINDOW]->key :
			pen_other(pen, ps)->mr[PEN_FAST]->key;
		break;
	case SROCE_WR_ATOMIC_WRITE:
		op->len = 8;
		fallthrough;
	default:
		build_data(pen, ps, w, op);
	}
	build_local(pen, ps, w, op);
}

/* Does it take a receive of the peer's? */
static bool is_message(u8 opcode)
{
	return opcode == SROCE_WR_SEND || opcode == SROCE_WR_SEND_IMM ||
	       opcode == SROCE_WR_SEND_INV || opcode == SROCE_WR_RDMA_WRITE_IMM;
}

static u32 choose_length(struct pen *pen)
{
	struct rnd_state *rnd = &pen->f->rnd;
	u32 mtu = pen->p->mtu;

	switch (fuzz_below(rnd, 3)) {
	case 0:
		return fuzz_below(rnd, 100);
	case 1:
		return min_t(u32, mtu * (1 + fuzz_below(rnd, 3)) - 1 +
			     fuzz_below(rnd, 3), PEN_MESSAGE);
	default:
		return fuzz_below(rnd, PEN_MESSAGE + 1);
	}
}

static void post_send(struct pen *pen, struct pen_side *ps)
{
	struct pen_op *op = &ps->ops[ps->posted % PEN_DEPTH];
	struct pen_side *peer = pen_other(pen, ps);
	struct work w;

	*op = (struct pen_op){
		.opcode = choose_op(pen, ps),
		.len = choose_length(pen),
		.seed = prandom_u32_state(&pen->f->rnd),
	};
	/* On UC a message without a receive is lost */
	if (pen->calm && is_message(op->opcode) &&
	    peer->promised - peer->arrived >= peer->recvs - peer->seen)
		op->opcode = SROCE_WR_RDMA_WRITE;
	work_init(&w, op->opcode, ps->posted);
	build_work(pen, ps, &w, op);
	if (fuzz_one_in(&pen->f->rnd, 8))
		w.wqe.flags |= SROCE_SEND_FENCE;
	if (side_try_post(ps->s, &w))
		return;
	ps->posted++;
	if (is_message(op->opcode))
		promise(pen, peer, op);
}

void pen_post_some(struct pen *pen)
{
	struct pen_side *ps = &pen->side[fuzz_below(&pen->f->rnd, 2)];
	enum ib_qp_state state = side_state(ps->s);

	if (pen_receives(ps) && ps->recvs - ps->seen < PEN_DEPTH &&
	    (pen->calm || !fuzz_one_in(&pen->f->rnd, 8)) &&
	    (state != IB_QPS_RESET || ps->s->qp->srq))
		pen_post_recv(pen, ps);
	if (pen_sends(ps) && ps->posted - ps->done < PEN_DEPTH &&
	    state == IB_QPS_RTS)
		post_send(pen, ps);
}

/* --- completions ----------------------------------------------------------- */

static void check_op(struct pen *pen, struct pen_side *ps,
		     const struct pen_op *op, u32 number)
{
	u32 off = pen_local_slot(number);
	bool ok = true;

	switch (op->opcode) {
	case SROCE_WR_RDMA_WRITE:
	case SROCE_WR_RDMA_WRITE_IMM:
	case SROCE_WR_ATOMIC_WRITE:
		/* Not acknowledged, it may still be on its way */
		if (ps->s->qp->kind->acked)
			ok = pen_filled(pen_other(pen, ps), pen_open_slot(number), op->len,
					op->seed);
		break;
	case SROCE_WR_RDMA_READ:
		ok = pen_filled(ps, off, op->len, op->seed);
		break;
	case SROCE_WR_FETCH_ADD:
		ok = get_unaligned((u64 *)(ps->s->mem + off)) == op->expect;
		break;
	}
	pen_check(pen, ok, "wrong data", number, op->opcode);
}

static void sent(struct pen *pen, struct pen_side *ps, const struct ib_wc *wc)
{
	const struct pen_op *op = &ps->ops[ps->done % PEN_DEPTH];
	u32 off = pen_local_slot(ps->done);

	pen_check(pen, wc->wr_id == ps->done && ps->done != ps->posted,
		  "sends complete out of order", wc->wr_id, ps->done);
	pen_check(pen, wc->qp == &ps->s->ibqp, "completion of another QP", 0, 0);
	pen_check(pen, !pen->calm || wc->status == IB_WC_SUCCESS, "send failed",
		  wc->wr_id, wc->status);
	pen_check_slot(pen, ps, off, op->len);
	if (pen->calm)
		check_op(pen, ps, op, ps->done);
	memset(ps->s->mem + off, PEN_CANARY, op->len);
	ps->done++;
}

static void check_message(struct pen *pen, struct pen_side *ps,
			  const struct ib_wc *wc)
{
	const struct pen_op *op = &ps->messages[ps->arrived % PEN_MESSAGES];

	pen_check(pen, ps->arrived != ps->promised, "never sent", wc->status,
		  wc->opcode << 24 | wc->byte_len);
	pen_check(pen, wc->status == IB_WC_SUCCESS, "receive failed", wc->wr_id,
		  wc->status);
	pen_check(pen, wc->byte_len == op->len, "wrong length", wc->byte_len,
		  op->len);
	pen_check(pen, op->opcode == SROCE_WR_RDMA_WRITE_IMM ||
		  pen_filled(ps, pen_recv_slot(ps->seen), op->len, op->seed),
	      "wrong message", wc->wr_id, op->len);
	ps->arrived++;
}

static void received(struct pen *pen, struct pen_side *ps,
		     const struct ib_wc *wc)
{
	u32 off = pen_recv_slot(ps->seen), room = ps->recv_len[ps->seen % PEN_DEPTH];

	pen_check(pen, wc->wr_id == ps->seen && ps->seen != ps->recvs,
		  "receives complete out of order", wc->wr_id, ps->seen);
	pen_check(pen, wc->qp == &ps->s->ibqp, "completion of another QP", 1, 0);
	pen_check(pen, wc->status != IB_WC_SUCCESS ||
		  wc->opcode == IB_WC_RECV_RDMA_WITH_IMM || wc->byte_len <= room,
	      "more than there was room for", wc->byte_len, room);
	pen_check_slot(pen, ps, off, room);
	if (pen->calm && wc->status != IB_WC_WR_FLUSH_ERR)
		check_message(pen, ps, wc);
	memset(ps->s->mem + off, PEN_CANARY, room);
	ps->seen++;
}

/* A look that takes no lock comes first: it is mostly in vain */
static bool poll_one(struct pen *pen, struct sroce_cq *cq, struct ib_wc *wc)
{
	return READ_ONCE(cq->ring.index) != cq->cons && !pen->f->failed &&
	       side_poll(cq, wc);
}

bool pen_poll(struct pen *pen)
{
	bool any = false;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		while (poll_one(pen, &pen->side[i].s->scq, &wc)) {
			sent(pen, &pen->side[i], &wc);
			any = true;
		}
		while (poll_one(pen, &pen->side[i].s->rcq, &wc)) {
			received(pen, &pen->side[i], &wc);
			any = true;
		}
	}
	return any;
}

u32 pen_recvs_left(const struct pen_side *ps)
{
	return ps->s->qp->srq || ps->s->srq.xrcd ?
	       sroce_ring_pending(&ps->s->srq.ring) : 0;
}

bool pen_is_flushed(const struct pen_side *ps)
{
	return ps->done == ps->posted && ps->recvs - ps->seen == pen_recvs_left(ps);
}
