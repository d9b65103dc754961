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

/* --- tagged buffers -------------------------------------------------------- */

static bool has_tags(const struct pen *pen)
{
	return pen->kind->config.tags;
}

static u64 some_mask(struct rnd_state *rnd)
{
	static const u64 masks[] = { U64_MAX, U64_MAX, U64_MAX, ~3ULL, 0 };

	return masks[fuzz_below(rnd, ARRAY_SIZE(masks))];
}

static void cut_buffer(struct pen *pen, struct pen_side *ps, struct sroce_tag_op *op,
		       u32 off, u32 len)
{
	u32 cut = fuzz_below(&pen->f->rnd, len + 1), part[] = { cut, len - cut };
	int i;

	for (i = 0; i < 2; i++) {
		if (!part[i])
			continue;
		op->sge[op->num_sge++] = (struct sroce_sge){
			.addr = (uintptr_t)ps->s->mem + off,
			.length = part[i],
			.lkey = ps->s->mr->key,
		};
		off += part[i];
	}
}

static void add_tag(struct pen *pen, struct pen_side *ps, u32 i)
{
	struct rnd_state *rnd = &pen->f->rnd;
	struct pen_tag *t = &ps->tags[i];
	struct sroce_tag_op op = {
		.opcode = SROCE_TAG_ADD,
		.recv_wr_id = PEN_TAGGED | i,
		.tag = fuzz_below(rnd, FUZZ_TAGS),
		.mask = some_mask(rnd),
	};
	u32 len = PEN_MESSAGE;

	if (!pen->calm && fuzz_one_in(rnd, 2))
		len = fuzz_below(rnd, fuzz_one_in(rnd, 2) ? 64 : PEN_MESSAGE);
	cut_buffer(pen, ps, &op, pen_tag_slot(i), len);
	pen_check_slot(pen, ps, pen_tag_slot(i), 0);
	/* Full: rendezvous whose READ was never posted still have entries */
	if (sroce_srq_tag_op(&ps->s->srq, &op, &t->handle))
		return;
	t->state = PEN_TAG_LISTED;
	t->tag = op.tag;
	t->mask = op.mask;
	t->len = len;
}

/* All that are its process's: a message takes one at a time, and few come before a QP fails */
static void add_tags(struct pen *pen, struct pen_side *ps)
{
	u32 i;

	for (i = 0; i < PEN_TAGS; i++)
		if (ps->tags[i].state == PEN_TAG_FREE)
			add_tag(pen, ps, i);
}

/* Its completion says whether nothing has matched it before */
static void del_tag(struct pen_side *ps, u32 i)
{
	const struct sroce_tag_op op = {
		.wr_id = PEN_TAG_DEL | i,
		.opcode = SROCE_TAG_DEL,
		.flags = SROCE_TAG_SIGNALED,
		.handle = ps->tags[i].handle,
	};
	u32 handle;

	if (ps->tags[i].state == PEN_TAG_LISTED)
		sroce_srq_tag_op(&ps->s->srq, &op, &handle);
}

/* A process that lies about its count harms itself: nothing matches */
static void sync_tags(struct pen *pen, struct pen_side *ps)
{
	bool lies = !pen->calm && fuzz_one_in(&pen->f->rnd, 8);
	const struct sroce_tag_op op = {
		.opcode = SROCE_TAG_SYNC,
		.flags = SROCE_TAG_SYNCS,
		.unexpected_cnt = lies ? fuzz_below(&pen->f->rnd, 1 << 16) : ps->unexpected,
	};
	u32 handle;

	sroce_srq_tag_op(&ps->s->srq, &op, &handle);
	ps->told = !lies;
}

/* Until it has told of what it has got nothing matches, so mostly it does so soon */
static void tell_soon(struct pen *pen, struct pen_side *ps)
{
	if (!ps->told && !fuzz_one_in(&pen->f->rnd, 4))
		sync_tags(pen, ps);
}

/* What is added from here on has room for anything, and is matched */
void pen_clear_tags(struct pen *pen, struct pen_side *ps)
{
	u32 i;

	if (!has_tags(pen))
		return;
	for (i = 0; i < PEN_TAGS; i++)
		del_tag(ps, i);
	pen_poll(pen);
	sync_tags(pen, ps);
}

static bool post_tag_read(struct pen_side *ps, u64 wr_id, u32 handle)
{
	struct work w;

	work_init(&w, SROCE_WR_TAG_READ, wr_id);
	w.wqe.tag.handle = handle;
	if (side_try_post(ps->s, &w))
		return false;
	ps->reads++;
	return true;
}

void pen_read_tagged(struct pen *pen, struct pen_side *ps)
{
	u32 i;

	for (i = 0; i < PEN_TAGS; i++)
		if (ps->tags[i].state == PEN_TAG_MATCHED &&
		    post_tag_read(ps, PEN_TAGGED | i, ps->tags[i].handle))
			ps->tags[i].state = PEN_TAG_READING;
}

static void change_tags(struct pen *pen, struct pen_side *ps)
{
	struct rnd_state *rnd = &pen->f->rnd;
	u32 i = fuzz_below(rnd, PEN_TAGS);

	switch (fuzz_below(rnd, pen->calm ? 10 : 11)) {
	case 0 ... 4:
		add_tags(pen, ps);
		break;
	case 5:
		del_tag(ps, i);
		break;
	case 6 ... 7:
		sync_tags(pen, ps);
		break;
	case 8 ... 9:
		pen_read_tagged(pen, ps);
		break;
	default:
		/* A handle that nobody has given */
		if (fuzz_one_in(rnd, 8))
			post_tag_read(ps, PEN_TAG_NONE, prandom_u32_state(rnd));
	}
}

/* It is its process's again, with nothing behind its @len bytes that was not there */
static void end_tag(struct pen *pen, struct pen_side *ps, u32 i)
{
	struct pen_tag *t = &ps->tags[i];

	pen_check_slot(pen, ps, pen_tag_slot(i), t->len);
	memset(ps->s->mem + pen_tag_slot(i), PEN_CANARY, t->len);
	t->state = PEN_TAG_FREE;
}

/* What a message had taken when it ended in the middle is nobody's, and never completes */
void pen_forget_tags(struct pen *pen, struct pen_side *ps)
{
	struct sroce_tags *tags = ps->s->srq.tags;
	u32 i, lost = 0;

	if (!has_tags(pen))
		return;
	for (i = 0; i < PEN_TAGS; i++) {
		if (ps->tags[i].state == PEN_TAG_FREE)
			continue;
		if (ps->tags[i].state == PEN_TAG_LISTED) {
			if (sroce_tags_has(tags, ps->tags[i].handle))
				continue;
			lost++;
		}
		end_tag(pen, ps, i);
	}
	ps->reads = 0;
	pen_check(pen, lost <= 1, "tagged buffers are lost", lost, 0);
	pen_check(pen, tags->unexpected == ps->unexpected,
		  "messages are counted that nobody has got", tags->unexpected,
		  ps->unexpected);
}

struct fuzz_key pen_lent(struct pen *pen, struct pen_side *ps)
{
	struct sroce_mr *mr = ps->mr[PEN_READ];

	if (!pen->calm && fuzz_one_in(&pen->f->rnd, 2))
		mr = ps->mr[fuzz_below(&pen->f->rnd, PEN_REGIONS)] ?: mr;
	return (struct fuzz_key){
		.key = mr->key,
		.iova = mr->iova,
		.len = min_t(u64, mr->length, PEN_MESSAGE),
	};
}

/* Write a header in front of a message, which has room for it; or there is none */
static void build_head(struct pen *pen, struct pen_side *ps, struct pen_op *op)
{
	static const u8 ops[] = { FUZZ_EAGER, FUZZ_EAGER, FUZZ_RNDV, FUZZ_NO_TAG };
	struct rnd_state *rnd = &pen->f->rnd;
	struct fuzz_key lent = pen_lent(pen, ps);
	u8 head[FUZZ_HEAD];

	op->tmh = ops[fuzz_below(rnd, ARRAY_SIZE(ops))];
	op->lent = fuzz_below(rnd, lent.len + 1);
	op->head = fuzz_tag_header(rnd, op->tmh, &lent, op->lent, head);
	if (op->len < op->head || (op->tmh == FUZZ_RNDV && op->len > SROCE_MAX_RNDV_HEADER)) {
		/* Its first byte says that it has no tag */
		op->tmh = FUZZ_NO_TAG;
		op->head = min(op->len, 1U);
		head[0] = FUZZ_NO_TAG;
	}
	memcpy(ps->s->mem + pen_local_slot(ps->posted), head, op->head);
}

/* --- what is posted -------------------------------------------------------- */

/* What the peer names; in a pen that is not calm also what it must not have */
static void aim_remote(struct pen *pen, struct pen_side *ps, struct work *w,
		       struct pen_op *op)
{
	struct pen_side *peer = pen_other(pen, ps);
	struct sroce_mr *mr = peer->mr[PEN_OPEN];
	u64 at = mr->iova + ps->posted % PEN_DEPTH * PEN_MESSAGE;

	if (!pen->calm && fuzz_one_in(&pen->f->rnd, 4)) {
		mr = peer->mr[fuzz_below(&pen->f->rnd, PEN_REGIONS)] ?: mr;
		at = mr->iova + fuzz_below(&pen->f->rnd, mr->length + 2);
	}
	if (!pen->calm && peer->sig && op->len <= peer->sig->mr->length &&
	    fuzz_one_in(&pen->f->rnd, 2)) {
		mr = peer->sig->mr;
		at = mr->iova + fuzz_below(&pen->f->rnd, mr->length - op->len + 1);
	}
	op->remote_sig = mr == peer->mr[PEN_SIG];
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

static bool is_send(u8 opcode)
{
	return opcode == SROCE_WR_SEND || opcode == SROCE_WR_SEND_IMM ||
	       opcode == SROCE_WR_SEND_INV;
}

static void build_data(struct pen *pen, struct pen_side *ps, struct work *w,
		       struct pen_op *op)
{
	/* What an operation does not use is refused */
	if (!is_send(op->opcode))
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
	if (has_tags(pen) && is_send(op->opcode))
		build_head(pen, ps, op);
}

static u32 next_key(u32 key)
{
	return (key & ~0xff) | ((key + 1) & 0xff);
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
		w->wqe.bind.new_rkey = next_key(window->key);
		w->wqe.bind.lkey = parent->key;
		w->wqe.bind.addr = pen_window_addr(ps);
		w->wqe.bind.length = pen_window_len();
		w->wqe.bind.access = IB_ACCESS_REMOTE_READ |
				     IB_ACCESS_REMOTE_WRITE;
		break;
	case SROCE_WR_REG_MR:
		w->wqe.reg.mr = (uintptr_t)fast;
		w->wqe.reg.key = next_key(fast->key);
		w->wqe.reg.access = PEN_RW;
		break;
	default:
		w->wqe.invalidate_rkey = one ? window->key : fast->key;
	}
}

/*
 * Some of what is sent and read is in protected memory, unless somebody looks at it later; an
 * atomic's word is not
 */
static bool build_local_sig(struct pen *pen, struct pen_side *ps, struct work *w,
			    const struct pen_op *op)
{
	if (!ps->sig || pen->calm || op->len > ps->sig->mr->length || op->len < 9 ||
	    op->opcode == SROCE_WR_FETCH_ADD || fuzz_one_in(&pen->f->rnd, 2))
		return false;
	w->sge[w->wqe.num_sge++] = (struct sroce_sge){
		.addr = fuzz_below(&pen->f->rnd, ps->sig->mr->length - op->len + 1),
		.length = op->len,
		.lkey = ps->sig->mr->key,
	};
	return true;
}

static void build_local(struct pen *pen, struct pen_side *ps, struct work *w,
			struct pen_op *op)
{
	u32 off = pen_local_slot(ps->posted);
	u32 cut = fuzz_below(&pen->f->rnd, op->len + 1);

	op->local_sig = build_local_sig(pen, ps, w, op);
	if (op->local_sig)
		return;
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

/* Are responses of several packets rare, which a READ has to come before? */
static bool wants_read(struct pen *pen, const struct pen_side *ps)
{
	static const u16 places[] = { SROCE_START, 0, SROCE_END };
	const struct fuzz *f = pen->f;
	int i, opcode;

	for (i = 0; f->taken_before && i < ARRAY_SIZE(places); i++) {
		opcode = sroce_opcode_find(ps->s->qp->kind->service, SROCE_OP_READ_RESP,
					   places[i]);
		if (ps->s->qp->kind->acked && !f->taken_before[opcode] && !f->taken[opcode])
			return fuzz_one_in(&pen->f->rnd, 2);
	}
	return false;
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
	u8 op = ops[fuzz_below(&pen->f->rnd, n)];

	if (wants_read(pen, ps))
		return SROCE_WR_RDMA_READ;
	/* Those who match tags are processes, whom that is denied */
	return has_tags(pen) && op == SROCE_WR_REG_MR ? SROCE_WR_SEND : op;
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
	return is_send(opcode) || opcode == SROCE_WR_RDMA_WRITE_IMM;
}

static u32 choose_length(struct pen *pen)
{
	struct rnd_state *rnd = &pen->f->rnd;
	u32 mtu = pen->p->mtu;

	if (has_tags(pen) && fuzz_one_in(rnd, 3))
		return FUZZ_HEAD + fuzz_below(rnd, FUZZ_HEAD);
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
	if (side_try_post(ps->s, &w)) {
		memset(ps->s->mem + pen_local_slot(ps->posted), PEN_CANARY, op->len);
		return;
	}
	ps->posted++;
	if (is_message(op->opcode))
		promise(pen, peer, op);
}

/*
 * An XRC target posts nothing: its process registers the region again by another QP, once a
 * peer has invalidated it
 */
static void register_again(struct pen_side *ps)
{
	struct sroce_mr *fast = ps->mr[PEN_FAST];

	sroce_mr_register(fast, fast->ibmr.pd, next_key(fast->key), PEN_RW);
}

/* An attack takes all that it finds, so there are many; in a calm pen one after the other */
static void post_recvs(struct pen *pen, struct pen_side *ps, enum ib_qp_state state)
{
	u32 n = pen->calm ? 1 : fuzz_below(&pen->f->rnd, PEN_DEPTH + 1);

	if (!pen_receives(ps) || (state == IB_QPS_RESET && !ps->s->qp->srq))
		return;
	while (n-- && ps->recvs - ps->seen < PEN_DEPTH)
		pen_post_recv(pen, ps);
}

void pen_post_some(struct pen *pen)
{
	struct pen_side *ps = &pen->side[fuzz_below(&pen->f->rnd, 2)];
	enum ib_qp_state state = side_state(ps->s);

	post_recvs(pen, ps, state);
	/* READs of rendezvous have their places in the same queue */
	if (pen_sends(ps) && ps->posted - ps->done + ps->reads < PEN_DEPTH &&
	    state == IB_QPS_RTS)
		post_send(pen, ps);
	if (!pen_sends(ps))
		register_again(ps);
	if (has_tags(pen)) {
		change_tags(pen, &pen->side[0]);
		change_tags(pen, &pen->side[1]);
	}
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
	if (!wc->status && op->len) {
		pen->protected[0] += op->local_sig;
		pen->protected[1] += op->remote_sig;
	}
	memset(ps->s->mem + off, PEN_CANARY, op->len);
	ps->done++;
}

/* A message is there as it was sent: behind its header, where it has one */
static bool is_message_at(struct pen_side *ps, u32 off, const struct pen_op *op)
{
	u32 from = ALIGN(op->head, 4);

	if (op->opcode == SROCE_WR_RDMA_WRITE_IMM || op->len <= from)
		return true;
	return pen_filled_from(ps, off + from, op->len - from, op->seed, from);
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
	pen_check(pen, is_message_at(ps, pen_recv_slot(ps->seen), op),
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

/* Calm: it is the next message, and has what the buffer wants. What is asked for comes later */
static void check_match(struct pen *pen, struct pen_side *ps, u32 i,
			const struct sroce_cqe *cqe)
{
	const struct pen_op *op = &ps->messages[ps->arrived % PEN_MESSAGES];
	bool rndv = !(cqe->flags & SROCE_CQE_TAG_DATA);
	u32 len = rndv ? op->lent : op->len - min_t(u32, op->len, SROCE_TMH_LEN);

	pen_check(pen, ps->arrived != ps->promised, "never sent", i, cqe->byte_len);
	pen_check(pen, op->tmh == (rndv ? FUZZ_RNDV : FUZZ_EAGER), "matches without a tag",
		  op->tmh, cqe->flags);
	pen_check(pen, cqe->byte_len == len, "wrong length of a match", cqe->byte_len, len);
	pen_check(pen, rndv || pen_filled_from(ps, pen_tag_slot(i), len, op->seed,
					       SROCE_TMH_LEN),
		  "wrong message in a tagged buffer", i, len);
	ps->arrived++;
}

static void matched(struct pen *pen, struct pen_side *ps, u32 i, const struct sroce_cqe *cqe)
{
	struct pen_tag *t = &ps->tags[i];
	bool rndv = !(cqe->flags & SROCE_CQE_TAG_DATA);

	pen_check(pen, t->state == PEN_TAG_LISTED, "matches what is not there", i, t->state);
	pen_check(pen, !((cqe->tm.tag ^ t->tag) & t->mask), "another tag", cqe->tm.tag, t->tag);
	pen_check(pen, cqe->byte_len <= t->len, "more than there was room for", cqe->byte_len,
		  t->len);
	if (pen->calm)
		check_match(pen, ps, i, cqe);
	pen->matches[rndv]++;
	if (!rndv) {
		end_tag(pen, ps, i);
		return;
	}
	pen_check_slot(pen, ps, pen_tag_slot(i), 0);
	t->state = PEN_TAG_MATCHED;
	t->handle = cqe->tag_handle;
	t->data = cqe->byte_len;
}

static void tag_was_read(struct pen *pen, struct pen_side *ps, u32 i,
			 const struct sroce_cqe *cqe)
{
	struct pen_tag *t = &ps->tags[i];

	pen_check(pen, cqe->status || cqe->byte_len == t->data, "wrong length of a rendezvous",
		  cqe->byte_len, t->data);
	pen_check(pen, !pen->calm || (!cqe->status &&
				      pen_is_readable(ps, pen_tag_slot(i), t->data)),
		  "wrong data of a rendezvous", cqe->status, t->data);
	end_tag(pen, ps, i);
}

/* Nothing has matched it, or has written to it; or it is too late */
static void tag_deleted(struct pen *pen, struct pen_side *ps, const struct sroce_cqe *cqe)
{
	u32 i = cqe->wr_id & (PEN_TAGGED - 1);

	if (cqe->status)
		return;
	pen_check(pen, ps->tags[i].state == PEN_TAG_LISTED, "deleted what is not there", i,
		  ps->tags[i].state);
	pen_check_slot(pen, ps, pen_tag_slot(i), 0);
	ps->tags[i].state = PEN_TAG_FREE;
}

/* Something has become of a tagged buffer */
static void tag_completed(struct pen *pen, struct pen_side *ps, const struct sroce_cqe *cqe)
{
	u32 i = cqe->wr_id & (PEN_TAGGED - 1);
	struct pen_tag *t = &ps->tags[i];

	pen_check(pen, i <= PEN_TAGS && (i == PEN_TAGS || t->state != PEN_TAG_FREE),
		  "completion of what is not there", cqe->wr_id, cqe->status);
	if (pen->f->failed)
		return;
	if (i == PEN_TAGS || t->state == PEN_TAG_READING)
		ps->reads--;
	if (i == PEN_TAGS)
		pen_check(pen, cqe->status, "a made-up handle was taken", i, 0);
	else if (t->state == PEN_TAG_READING)
		tag_was_read(pen, ps, i, cqe);
	else if (!cqe->status)
		matched(pen, ps, i, cqe);
	else
		end_tag(pen, ps, i);
	pen_check(pen, !pen->calm || !cqe->status, "tagged receive failed", i, cqe->status);
}

/* What a process finds that has tagged buffers */
static void received_tagged(struct pen *pen, struct pen_side *ps, const struct sroce_cqe *cqe)
{
	struct ib_wc wc = {
		.wr_id = cqe->wr_id,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.byte_len = cqe->byte_len,
		.qp = cqe->qpn == ps->s->qp->qpn ? &ps->s->ibqp : NULL,
	};

	if (cqe->wr_id & PEN_TAG_DEL) {
		tag_deleted(pen, ps, cqe);
		return;
	}
	if (cqe->wr_id & PEN_TAGGED) {
		tag_completed(pen, ps, cqe);
		return;
	}
	pen_check(pen, !(cqe->flags & (SROCE_CQE_TAG_MATCH | SROCE_CQE_TAG_DATA)),
		  "an ordinary receive matches", cqe->wr_id, cqe->flags);
	if (!cqe->status && cqe->opcode == SROCE_WC_TAG_RECV) {
		ps->unexpected++;
		ps->told = false;
	}
	/* RESET came before this look, and has forgotten it; it counts as a message all the same */
	if (cqe->qpn)
		received(pen, ps, &wc);
}

/* A look that takes no lock comes first: it is mostly in vain */
static bool may_poll(const struct pen *pen, const struct sroce_cq *cq)
{
	return READ_ONCE(cq->ring.index) != cq->cons && !pen->f->failed;
}

static bool poll_sends(struct pen *pen, struct pen_side *ps)
{
	struct ib_wc wc;

	if (!may_poll(pen, &ps->s->scq) || !side_poll(&ps->s->scq, &wc))
		return false;
	sent(pen, ps, &wc);
	return true;
}

static bool poll_recvs(struct pen *pen, struct pen_side *ps)
{
	struct sroce_cqe cqe;
	struct ib_wc wc;

	if (!may_poll(pen, &ps->s->rcq))
		return false;
	if (has_tags(pen)) {
		if (!side_poll_cqe(&ps->s->rcq, &cqe))
			return false;
		received_tagged(pen, ps, &cqe);
	} else {
		if (!side_poll(&ps->s->rcq, &wc))
			return false;
		received(pen, ps, &wc);
	}
	return true;
}

bool pen_poll(struct pen *pen)
{
	bool any = false;
	int i;

	for (i = 0; i < 2; i++) {
		while (poll_sends(pen, &pen->side[i]))
			any = true;
		while (poll_recvs(pen, &pen->side[i]))
			any = true;
		if (has_tags(pen) && !pen->f->failed)
			tell_soon(pen, &pen->side[i]);
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
	return ps->done == ps->posted && !ps->reads && ps->recvs - ps->seen == pen_recvs_left(ps);
}
