// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rings: work requests of which most can be carried out, and everything else that can be written there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fuzz.h"

/* a ring and whose it is; where the kernel looks at it, the number to ring for */
struct target {
	struct fz_thread *t;
	struct fz_ctx *ctx;
	struct fz_obj *o;
	struct sroce_ring_hdr *hdr;
	enum fz_kind kind;
	int which;
};

static bool some_ring(struct fz_thread *t, struct target *g)
{
	static const enum fz_kind kinds[] = { FZ_QP, FZ_QP, FZ_QP, FZ_QP, FZ_QP, FZ_QP, FZ_SRQ, FZ_SRQ, FZ_CQ, FZ_CQ, FZ_WQ };
	int tries = 3;

	g->t = t;
	g->ctx = fz_some_ctx(t);
	g->kind = kinds[fz_below(t, ARRAY_SIZE(kinds))];
	g->o = fz_some(t, g->ctx, g->kind);
	while (g->kind == FZ_QP && tries-- && g->o && !g->o->ready)
		g->o = fz_some(t, g->ctx, g->kind);
	g->which = g->kind == FZ_QP && fz_once(t, 3);
	g->hdr = g->o ? fz_ring(t, g->ctx, g->kind, g->o, g->which) : NULL;
	return g->hdr;
}

static void ring_bell(struct fz_thread *t, const struct fz_ctx *c, uint32_t qpn)
{
	if (!FZ_CALL(t, "doorbell", qpn, ioctl(c->doorbell, SROCE_IOC_DOORBELL, qpn) ? -errno : 0))
		t->beat->rung++;
}

/* --- completions --------------------------------------------------------------------------- */

/* Of no use until it is connected anew */
static void mark_failed(struct fz_ctx *c, uint32_t qpn)
{
	int i;

	for (i = 0; i < FZ_SLOTS; i++)
		if (c->obj[FZ_QP][i].number == qpn)
			c->obj[FZ_QP][i].ready = false;
}

/* Of a QP, or of a work queue as if it were one; 0: it is neither any more */
static uint32_t type_of(const struct fz_ctx *c, uint32_t qpn)
{
	int i;

	for (i = 0; i < FZ_SLOTS; i++) {
		if (c->obj[FZ_WQ][i].number == qpn)
			return IB_UVERBS_QPT_RAW_PACKET;
		if (c->obj[FZ_QP][i].number == qpn)
			return c->obj[FZ_QP][i].type % FZ_TYPES;
	}
	return 0;
}

/* how many of the work requests had an effect is what this program is to be judged by */
static void look_at_completions(struct target *g)
{
	uint32_t i, n = min(g->hdr->prod - g->hdr->cons, g->o->ring[0].entries), type;
	struct fz_beat *b = g->t->beat;
	const struct sroce_cqe *e;

	for (i = 0; i < n; i++) {
		e = (const void *)fz_ring_entry(g->hdr, g->o, 0, g->hdr->cons + i);
		/* some are only what has been scribbled there */
		if (e->status) {
			mark_failed(g->ctx, e->qpn);
			b->failed += e->status < 31;
			continue;
		}
		type = type_of(g->ctx, e->qpn);
		b->frames += e->opcode == IBV_WC_RECV && type == IB_UVERBS_QPT_RAW_PACKET;
		if (!e->wr_id || !fz_calm(g->o))
			continue;
		b->completed[e->opcode]++;
		b->types[type]++;
	}
}

static void consume(void *arg)
{
	struct target *g = arg;

	look_at_completions(g);
	__atomic_store_n(&g->hdr->cons, g->hdr->prod, __ATOMIC_RELEASE);
	if (fz_once(g->t, 2))
		g->hdr->flags = SROCE_CQ_ARM_ANY;
}

static void consume_all(struct fz_thread *t, struct fz_ctx *c)
{
	struct target g = { .t = t, .ctx = c, .kind = FZ_CQ };
	int i;

	for (i = 0; i < FZ_SLOTS; i++) {
		g.o = &c->obj[FZ_CQ][i];
		g.hdr = fz_ring(t, c, FZ_CQ, g.o, 0);
		if (g.hdr)
			fz_try(consume, &g);
	}
}

/* --- what work requests name ------------------------------------------------------- */

/* A piece of memory with a key: nearly always a region of the right domain, and within it */
static void some_place(struct fz_thread *t, struct fz_ctx *c, uint32_t pd, uint64_t *addr, uint32_t *len,
		       uint32_t *key)
{
	bool bad = fz_below(t, 256) < t->wild / 2;
	const struct fz_dev *dev = &board->dev[fz_below(t, board->ndevs)];
	struct fz_obj *o = bad && fz_once(t, 3) ? fz_anyone(t, FZ_MR) : fz_some_of(t, c, FZ_MR, pd);
	uint64_t iova = 0, length = 0, at;

	if (o)
		fz_part_of(t, o, &iova, &length);
	*key = o ? o->number : 0;
	at = length ? fz_rand(t) % length : 0;
	*addr = iova + at;
	*len = min(length - at, fz_once(t, 8) ? 1ull << fz_below(t, 19) : 1 + (uint64_t)fz_below(t, 6000));
	if (!bad)
		return;
	switch (fz_below(t, 8)) {
	case 0: *key = SROCE_NULL_LKEY + fz_below(t, 2); *addr = fz_bad_pointer(t); break;
	case 1: *key = fz_borderline(t, *key); break;
	case 2: *addr = fz_borderline(t, *addr); break;
	case 3: *len = fz_borderline(t, *len); break;
	case 4: *addr = iova + length - *len / 2; break;
	case 5: *addr = ~0ull - fz_below(t, 4096); *len = fz_below(t, 8192); break;
	case 6: *key = dev->victim_key; *addr = dev->victim_addr + fz_below(t, 60000); break;
	default: *addr = fz_bad_pointer(t);
	}
}

static uint32_t some_number(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind)
{
	struct fz_obj *o = fz_once(t, 4) ? fz_anyone(t, kind) : fz_some(t, c, kind);

	return o && fz_below(t, 256) >= t->wild / 8 ? o->number : fz_borderline(t, 1);
}

/* --- work requests ------------------------------------------------------------------- */

static uint8_t some_opcode(struct fz_thread *t, uint32_t type)
{
	static const uint8_t common[] = { SROCE_WR_SEND, SROCE_WR_SEND_IMM, SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_WRITE_IMM };
	static const uint8_t reliable[] = {
		SROCE_WR_RDMA_READ, SROCE_WR_RDMA_READ, SROCE_WR_CMP_SWAP, SROCE_WR_FETCH_ADD, SROCE_WR_FLUSH,
		SROCE_WR_ATOMIC_WRITE,
	};
	/* whatever is wrong with its key is the end of a QP */
	static const uint8_t of_keys[] = { SROCE_WR_LOCAL_INV, SROCE_WR_BIND_MW, SROCE_WR_BIND_MW, SROCE_WR_SEND_INV };

	if (fz_below(t, 256) < t->wild / 8)
		return fz_once(t, 2) ? SROCE_WR_REG_MR : fz_rand(t);
	if (type == IB_UVERBS_QPT_UD || type == IB_UVERBS_QPT_UC || fz_once(t, 2))
		return common[fz_below(t, type == IB_UVERBS_QPT_UD ? 2 : ARRAY_SIZE(common))];
	return fz_once(t, 8) ? of_keys[fz_below(t, ARRAY_SIZE(of_keys))] : reliable[fz_below(t, ARRAY_SIZE(reliable))];
}

/* What is named is the peer's, but for what is done here */
static void fill_op(struct fz_thread *t, struct target *g, struct sroce_send_wqe *w)
{
	bool here = w->opcode == SROCE_WR_BIND_MW || w->opcode == SROCE_WR_LOCAL_INV || !g->o->peer;
	const struct fz_obj *whose = here ? g->o : g->o->peer;
	struct fz_ctx *c = fz_ctx_of(whose);
	uint64_t addr;
	uint32_t len, key;

	some_place(t, c, whose->pd, &addr, &len, &key);
	if (fz_once(t, 32))
		key = some_number(t, c, FZ_MW);
	switch (w->opcode) {
	case SROCE_WR_SEND:
	case SROCE_WR_SEND_IMM:
		break;
	case SROCE_WR_CMP_SWAP:
	case SROCE_WR_FETCH_ADD:
		w->atomic.remote_addr = fz_once(t, 8) ? addr : addr & ~7ull;
		w->atomic.compare_add = fz_below(t, 2);
		w->atomic.swap = fz_rand(t);
		w->atomic.rkey = key;
		break;
	case SROCE_WR_LOCAL_INV:
	case SROCE_WR_SEND_INV:
		w->invalidate_rkey = fz_once(t, 4) ? key : some_number(t, c, FZ_MW);
		break;
	case SROCE_WR_BIND_MW:
		w->bind.addr = addr;
		w->bind.length = fz_once(t, 8) ? 0 : len;
		w->bind.lkey = key;
		w->bind.mw_rkey = some_number(t, c, FZ_MW);
		w->bind.new_rkey = w->bind.mw_rkey ^ fz_below(t, 256);
		w->bind.access = fz_once(t, 8) ? fz_rand(t) : 14;
		break;
	case SROCE_WR_FLUSH:
		w->flush.remote_addr = addr;
		w->flush.length = len;
		w->flush.rkey = key;
		w->flush.placement = fz_below(t, 4);
		w->flush.selectivity = fz_below(t, 3);
		break;
	default:
		w->rdma.remote_addr = addr;
		w->rdma.rkey = key;
	}
}

static void fill_datagram(struct fz_thread *t, struct target *g, struct sroce_send_wqe *w)
{
	struct fz_obj *ah = fz_some_of(t, g->ctx, FZ_AH, g->o->pd);
	/* the partner that everybody has: what manages connections */
	bool manager = fz_once(t, 16);

	w->ud.ahn = ah && fz_below(t, 256) >= t->wild / 8 ? ah->number : fz_below(t, 100);
	w->ud.remote_qpn = manager ? 1 : g->o->peer && !fz_once(t, 4) ? g->o->peer->number : some_number(t, g->ctx, FZ_QP);
	w->ud.remote_qkey = manager ? 0x80010000 : fz_once(t, 16) ? fz_rand(t) : VT_QKEY;
}

/* What an operation or a type of QP does not use is reserved: whatever stands there, the rest is not looked at any more */
static void fill_rest(struct fz_thread *t, struct target *g, struct sroce_send_wqe *w)
{
	bool wild = fz_below(t, 256) < t->wild / 8;

	if (wild || w->opcode == SROCE_WR_SEND_IMM || w->opcode == SROCE_WR_RDMA_WRITE_IMM)
		w->imm_data = fz_rand(t);
	if (wild || g->o->type == IB_UVERBS_QPT_XRC_INI)
		w->remote_srqn = some_number(t, g->ctx, FZ_SRQ);
}

static void fill_send(struct fz_thread *t, struct target *g, struct sroce_send_wqe *w)
{
	memset(w, 0, sizeof(*w));
	w->wr_id = fz_rand(t);
	w->opcode = some_opcode(t, g->o->type);
	w->num_sge = 1 + (fz_once(t, 3) ? fz_below(t, max(g->o->sges, 1u)) : 0);
	w->flags = fz_below(t, 8);
	fill_rest(t, g, w);
	fill_op(t, g, w);
	if (w->opcode == SROCE_WR_LOCAL_INV || w->opcode == SROCE_WR_BIND_MW || w->opcode == SROCE_WR_FLUSH)
		w->num_sge = 0;
	if (g->o->type == IB_UVERBS_QPT_UD)
		fill_datagram(t, g, w);
	if (w->opcode <= SROCE_WR_SEND_IMM && fz_once(t, 5)) {
		w->flags |= SROCE_SEND_INLINE;
		w->num_sge = 0;
		w->inline_len = fz_below(t, g->o->inlined + 1);
	}
	if (fz_below(t, 256) >= t->wild / 2)
		return;
	switch (fz_below(t, 5)) {
	case 0: w->num_sge = fz_borderline(t, w->num_sge); break;
	case 1: w->inline_len = fz_borderline(t, w->inline_len); break;
	case 2: w->flags = fz_rand(t); break;
	case 3: w->reserved = fz_rand(t); w->reserved2 = fz_rand(t); break;
	default: ((uint8_t *)w)[fz_below(t, sizeof(*w))] = fz_rand(t);
	}
}

static void fill_list(struct fz_thread *t, struct target *g, struct sroce_sge *sge, uint32_t n, bool word)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		some_place(t, g->ctx, g->o->pd, (uint64_t *)&sge[i].addr, &sge[i].length, &sge[i].lkey);
		if (word && !fz_once(t, 16))
			sge[i].length = 8;
		/* a datagram has to fit into a packet, and a frame is one */
		if (g->kind == FZ_QP && !g->which && !fz_once(t, 16) &&
		    (g->o->type == IB_UVERBS_QPT_UD || g->o->type == IB_UVERBS_QPT_RAW_PACKET))
			sge[i].length = min(sge[i].length, 250u);
	}
}

/* both are made before they are written: whoever reads the ring meanwhile sees them half done */
struct entry {
	union {
		struct sroce_send_wqe send;
		struct sroce_recv_wqe recv;
	};
	/* or inline data, or headers behind the elements */
	struct sroce_sge sge[12];
};

static void write_send(struct target *g, struct entry *e)
{
	struct fz_thread *t = g->t;
	bool word;

	if (fz_calm(g->o) && fz_calm_send(t, g->ctx, g->o, &e->send, e->sge)) {
		t->beat->calm++;
		return;
	}
	fill_send(t, g, &e->send);
	if (g->o->type == IB_UVERBS_QPT_RAW_PACKET) {
		fill_list(t, g, e->sge, 4, false);
		fz_frame(t, g->o, &e->send, (uint8_t *)e->sge, sizeof(e->sge));
		return;
	}
	word = e->send.opcode == SROCE_WR_CMP_SWAP || e->send.opcode == SROCE_WR_FETCH_ADD ||
	       e->send.opcode == SROCE_WR_ATOMIC_WRITE;
	if (word)
		e->send.num_sge = min(e->send.num_sge, 1u);
	fill_list(t, g, e->sge, 4, word);
}

static void write_recv(struct target *g, struct entry *e)
{
	struct fz_thread *t = g->t;

	if (fz_calm(g->o) && fz_calm_recv(t, g->ctx, g->o, &e->recv, e->sge))
		return;
	e->recv.wr_id = fz_rand(t);
	e->recv.num_sge = fz_below(t, 256) < t->wild / 4 ? fz_borderline(t, 1) : (fz_once(t, 32) ? 2u : 1u);
	e->recv.reserved = fz_below(t, 256) < t->wild / 8 ? fz_rand(t) : 0;
	fill_list(t, g, e->sge, 4, false);
}

static void write_entry(struct target *g, uint32_t i)
{
	uint8_t *at = fz_ring_entry(g->hdr, g->o, g->which, i);
	uint32_t stride = g->o->ring[g->which].stride, len;
	bool send = g->kind == FZ_QP && !g->which;
	struct entry e = {};

	if (send)
		write_send(g, &e);
	else
		write_recv(g, &e);
	len = min(stride, (uint32_t)(send ? sizeof(e.send) : sizeof(e.recv)));
	memcpy(at, &e, len);
	memcpy(at + len, e.sge, min(stride - len, (uint32_t)sizeof(e.sge)));
}

/* as many as there is room for, as far as this can be known */
static void post(void *arg)
{
	struct target *g = arg;
	struct fz_thread *t = g->t;
	uint32_t n = 1 + (fz_once(t, 3) ? fz_below(t, 32) : fz_below(t, 3));
	uint32_t prod = __atomic_load_n(&g->hdr->prod, __ATOMIC_ACQUIRE);

	while (n-- && (prod - g->hdr->cons < g->o->ring[g->which].entries ||
		       (!fz_calm(g->o) && fz_below(t, 256) < t->wild / 4))) {
		write_entry(g, prod++);
		t->beat->posted++;
	}
	__atomic_store_n(&g->hdr->prod, prod, __ATOMIC_RELEASE);
}

/* what a receive queue has at the most */
#define STOCK 24

static void stock(void *arg)
{
	struct target *g = arg;
	uint32_t prod = __atomic_load_n(&g->hdr->prod, __ATOMIC_ACQUIRE);

	while (prod - g->hdr->cons < min(g->o->ring[g->which].entries, (uint32_t)STOCK)) {
		write_entry(g, prod++);
		g->t->beat->posted++;
	}
	__atomic_store_n(&g->hdr->prod, prod, __ATOMIC_RELEASE);
}

void fz_stock(struct fz_thread *t, enum fz_kind kind, struct fz_obj *o)
{
	struct target g = { .t = t, .ctx = fz_ctx_of(o), .o = o, .kind = kind, .which = kind == FZ_QP };

	g.hdr = fz_is_mine(t, o) ? fz_ring(t, g.ctx, kind, o, g.which) : NULL;
	if (g.hdr)
		fz_try(stock, &g);
}

void fz_send(struct fz_thread *t, struct fz_obj *o)
{
	struct target g = { .t = t, .ctx = fz_ctx_of(o), .o = o, .kind = FZ_QP };

	g.hdr = fz_ring(t, g.ctx, FZ_QP, o, 0);
	if (!g.hdr)
		return;
	fz_try(post, &g);
	ring_bell(t, g.ctx, o->number);
	if (fz_once(t, 4))
		consume_all(t, g.ctx);
}

void fz_post_step(struct fz_thread *t)
{
	struct target g;

	/* a queue of completions that overflows ends its QPs */
	if (fz_once(t, 4))
		consume_all(t, fz_some_ctx(t));
	if (!some_ring(t, &g) || g.kind == FZ_CQ)
		return;
	if (g.kind == FZ_QP && fz_calm(g.o) && g.o->peer)
		fz_stock(t, FZ_QP, g.o->peer);
	fz_try(post, &g);
	if (g.kind == FZ_QP && (!g.which || fz_once(t, 8)) && !fz_once(t, 16))
		ring_bell(t, g.ctx, g.o->number);
	if (g.kind == FZ_WQ && fz_once(t, 8))
		ring_bell(t, g.ctx, g.o->number);
}

/* --- nonsense ------------------------------------------------------------------------ */

static void scribble_index(struct fz_thread *t, struct target *g, uint32_t *index, uint32_t other)
{
	switch (fz_below(t, 8)) {
	case 0: *index += 1u << fz_below(t, 32); break;
	case 1: *index -= 1u << fz_below(t, 32); break;
	case 2: *index = other + g->o->ring[g->which].entries + fz_below(t, 3) - 1; break;
	case 3: *index = other - 1 - fz_below(t, 3); break;
	case 4: *index += 0x80000000; break;
	case 5: *index = other; break;
	case 6: *index = 0; break;
	default: *index = fz_rand(t);
	}
}

static void scribble_entries(struct fz_thread *t, struct target *g)
{
	uint32_t n = g->o->ring[g->which].entries, stride = g->o->ring[g->which].stride;
	uint8_t *at = fz_ring_entry(g->hdr, g->o, g->which, fz_rand(t)), *from;
	uint32_t i, len = min(stride, 512u);

	switch (fz_below(t, 5)) {
	case 0: memset(at, fz_once(t, 2) ? 0 : 0xff, len); break;
	case 1:
		from = fz_ring_entry(g->hdr, g->o, g->which, fz_rand(t));
		memmove(at, from, len);
		break;
	case 2:
		for (i = 0; i < min(n, 64u); i++)
			fz_ring_entry(g->hdr, g->o, g->which, i)[fz_below(t, max(len, 1u))] ^= 1 << fz_below(t, 8);
		break;
	default: at[fz_below(t, max(len, 1u))] = fz_rand(t);
	}
}

/*
 * Small queues lie in one page, and so do those that nobody is to see: whatever in that page is the header of a ring.
 * Calm queues may be among them, so it is done seldom.
 */
static void scribble_page(struct fz_thread *t, struct target *g)
{
	uint8_t *page = (uint8_t *)((uintptr_t)g->hdr & ~(uintptr_t)4095);
	uint32_t *at = (uint32_t *)(page + 64 * fz_below(t, 64));

	at[fz_below(t, 2)] = fz_once(t, 2) ? 1 + fz_below(t, 4) : fz_rand(t);
}

static void scribble(void *arg)
{
	struct target *g = arg;
	struct fz_thread *t = g->t;
	struct sroce_ring_hdr *hdr = g->hdr;
	uint32_t n;

	switch (fz_below(t, 16)) {
	case 0: scribble_index(t, g, &hdr->prod, hdr->cons); break;
	case 1: scribble_index(t, g, &hdr->cons, hdr->prod); break;
	case 2: hdr->flags = fz_once(t, 2) ? fz_rand(t) : fz_below(t, 4); break;
	case 3:
		if (fz_once(t, 8))
			scribble_page(t, g);
		else
			hdr->until = fz_rand(t);
		break;
	case 4: ((uint32_t *)hdr)[fz_below(t, sizeof(*hdr) / 4)] = fz_rand(t); break;
	case 5: /* while the kernel reads it, over and over */
		for (n = 0; n < 200; n++)
			scribble_entries(t, g);
		break;
	default: scribble_entries(t, g);
	}
}

void fz_scribble_step(struct fz_thread *t)
{
	struct target g;

	if (some_ring(t, &g) && !fz_calm(g.o))
		fz_try(scribble, &g);
}

/* --- events and bells ------------------------------------------------------------------ */

static void read_events(struct fz_thread *t, struct fz_ctx *c)
{
	struct fz_obj *o = fz_some(t, c, fz_once(t, 2) ? FZ_CHANNEL : FZ_ASYNC);
	char buf[64];
	int i;

	/* in this process the number may stand for another file: that of missing pages, or one that would wait */
	if (!o || o->handle < FZ_LOW_FILES)
		return;
	fcntl(o->handle, F_SETFL, O_NONBLOCK);
	for (i = 0; i < 8; i++)
		if (FZ_CALL(t, "read events", o->handle, read(o->handle, buf, 8 << fz_below(t, 3))) <= 0)
			break;
	if (fz_once(t, 8)) {
		fz_destroy(t, c, FZ_CHANNEL, o->handle);
		fz_drop(c, FZ_CHANNEL, o->handle);
		fz_drop(c, FZ_ASYNC, o->handle);
	}
}

static void random_bells(struct fz_thread *t, struct fz_ctx *c)
{
	const struct fz_dev *dev = &board->dev[fz_below(t, board->ndevs)];
	struct fz_obj *o = fz_anyone(t, fz_once(t, 4) ? FZ_WQ : FZ_QP);

	ring_bell(t, c, o ? o->number : fz_rand(t));
	ring_bell(t, c, dev->victim_qpn[fz_below(t, 2)]);
	FZ_CALL(t, "bad doorbell", 0, ioctl(c->doorbell, fz_rand(t), fz_rand(t)) ? -errno : 0);
}

void fz_consume_step(struct fz_thread *t)
{
	struct fz_ctx *c = fz_some_ctx(t);

	switch (fz_below(t, 8)) {
	case 0: read_events(t, c); break;
	case 1: random_bells(t, c); break;
	/* files of which nobody has learnt the number: those that matter are below */
	case 2: close_range(400, ~0u, 0); break;
	default: consume_all(t, c);
	}
}
