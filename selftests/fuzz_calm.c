// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests that can be carried out, up to the last byte: a part of the queues is spared from everything else, so
 * that there is traffic which the rest can go wrong under. They go from one region to another that allows it, and
 * their receivers have room. What becomes of these objects meanwhile is up to the other steps.
 */
#include "fuzz.h"

/* the largest message, and what each receive work request has room for, if the region is that long */
#define MOST (1u << 17)

bool fz_calm(const struct fz_obj *o)
{
	const struct fz_obj *first = &fz_ctx_of(o)->obj[0][0];

	return (o - first) % FZ_SLOTS < FZ_SLOTS * 2 / 3;
}

/* A region of a domain with these rights, if one is found soon */
static struct fz_obj *region(struct fz_thread *t, struct fz_ctx *c, uint32_t pd, uint32_t access)
{
	struct fz_obj *o;
	int tries = 24;

	while (tries--) {
		o = fz_some(t, c, FZ_MR);
		if (o && o->pd == pd && o->length && !(access & ~o->access))
			return o;
	}
	return NULL;
}

static uint32_t some_length(struct fz_thread *t, uint64_t most)
{
	uint64_t len = fz_once(t, 3) ? 1ull << fz_below(t, 18) : fz_once(t, 16) ? 0 : 1 + fz_below(t, 9000);

	return min(min(len, most), (uint64_t)MOST);
}

/* addresses of a region, which the other threads may change meanwhile */
struct part {
	uint64_t iova, length;
	uint32_t key;
};

static struct part part_of(struct fz_thread *t, const struct fz_obj *mr)
{
	struct part p = { .key = mr->number };

	fz_part_of(t, mr, &p.iova, &p.length);
	return p;
}

/* Where @len bytes are in it: anywhere, or at one of its ends */
static uint64_t place(struct fz_thread *t, const struct part *p, uint32_t len)
{
	uint64_t room = p->length - min((uint64_t)len, p->length);

	switch (fz_below(t, 8)) {
	case 0: return p->iova;
	case 1: return p->iova + room;
	default: return p->iova + (room ? fz_rand(t) % room : 0);
	}
}

static uint8_t some_opcode(struct fz_thread *t, uint32_t type)
{
	static const uint8_t opcodes[] = {
		SROCE_WR_SEND, SROCE_WR_SEND_IMM, SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_WRITE_IMM,
		SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_READ, SROCE_WR_RDMA_READ, SROCE_WR_CMP_SWAP, SROCE_WR_FETCH_ADD,
		SROCE_WR_ATOMIC_WRITE, SROCE_WR_FLUSH, SROCE_WR_SEND_INV, SROCE_WR_BIND_MW, SROCE_WR_LOCAL_INV,
	};

	if (type == IB_UVERBS_QPT_UD)
		return opcodes[fz_below(t, 2)];
	/* an initiator's windows would be no queue's that it sends to */
	if (type == IB_UVERBS_QPT_XRC_INI)
		return opcodes[fz_below(t, 11)];
	return opcodes[fz_below(t, type == IB_UVERBS_QPT_UC ? 5 : ARRAY_SIZE(opcodes))];
}

/* One element, or as many as the queue has, of which the last gets the rest */
static void split(struct fz_thread *t, struct sroce_send_wqe *w, struct sroce_sge *sge, uint32_t most, uint32_t len)
{
	uint32_t i, part, n = fz_once(t, 3) ? 1 + fz_below(t, max(min(most, 4u), 1u)) : 1;

	for (i = 1; i < n; i++) {
		part = fz_below(t, sge[i - 1].length + 1);
		sge[i] = sge[i - 1];
		sge[i].addr += part;
		sge[i].length -= part;
		sge[i - 1].length = part;
	}
	w->num_sge = n;
}

static void aim(struct fz_thread *t, struct sroce_send_wqe *w, const struct part *p, uint32_t len)
{
	uint64_t addr = place(t, p, len);

	switch (w->opcode) {
	case SROCE_WR_SEND:
	case SROCE_WR_SEND_IMM:
	case SROCE_WR_SEND_INV:
		break;
	case SROCE_WR_CMP_SWAP:
	case SROCE_WR_FETCH_ADD:
		w->atomic.remote_addr = (addr + 7) & ~7ull;
		w->atomic.compare_add = fz_below(t, 2);
		w->atomic.swap = w->opcode == SROCE_WR_CMP_SWAP ? fz_rand(t) : 0;
		w->atomic.rkey = p->key;
		break;
	case SROCE_WR_FLUSH:
		w->flush.remote_addr = addr;
		w->flush.length = len;
		w->flush.rkey = p->key;
		/* that it can be seen everywhere, of these bytes or of all of the region */
		w->flush.placement = 1;
		w->flush.selectivity = fz_below(t, 2);
		break;
	case SROCE_WR_ATOMIC_WRITE:
		w->rdma.remote_addr = (addr + 7) & ~7ull;
		w->rdma.rkey = p->key;
		break;
	default:
		w->rdma.remote_addr = addr;
		w->rdma.rkey = p->key;
	}
}

/* what a request of a kind wants to be allowed by the region of its own, and by the other one */
static uint32_t local_access(uint8_t opcode)
{
	switch (opcode) {
	case SROCE_WR_RDMA_READ:
	case SROCE_WR_CMP_SWAP:
	case SROCE_WR_FETCH_ADD: return IBV_ACCESS_LOCAL_WRITE;
	default: return 0;
	}
}

static uint32_t remote_access(uint8_t opcode)
{
	switch (opcode) {
	case SROCE_WR_RDMA_READ: return IBV_ACCESS_REMOTE_READ;
	case SROCE_WR_FLUSH: return FZ_ACCESS_FLUSH;
	default: return IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS;
	}
}

/* --- windows ------------------------------------------------------------------------------ */

/*
 * A window of type 2 that @qp is to bind, or has bound, if one is found soon. Who is first does it, and what comes of that nobody
 * waits for: a failure makes it the other way round, and the next one is right again.
 */
static struct fz_obj *window(struct fz_thread *t, const struct fz_obj *qp, bool bound)
{
	struct fz_obj *o;
	int tries = 12;

	while (tries--) {
		o = fz_some(t, fz_ctx_of(qp), FZ_MW);
		if (o && o->pd == qp->pd && o->type == IBV_MW_TYPE_2 && o->ready == bound && (!bound || o->peer == qp))
			return o;
	}
	return NULL;
}

static bool bind(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, struct sroce_send_wqe *w)
{
	struct fz_obj *mw = window(t, o, false);
	const struct fz_obj *mr = mw ? region(t, c, o->pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND) : NULL;
	struct part part;

	if (!mr || mr->access & IBV_ACCESS_ZERO_BASED)
		return false;
	part = part_of(t, mr);
	w->opcode = SROCE_WR_BIND_MW;
	w->bind.length = 1 + fz_below(t, min(part.length, (uint64_t)MOST));
	w->bind.addr = place(t, &part, w->bind.length);
	w->bind.lkey = part.key;
	w->bind.mw_rkey = mw->number;
	w->bind.new_rkey = mw->number ^ fz_below(t, 256);
	w->bind.access = VT_REMOTE_ACCESS;
	mw->number = w->bind.new_rkey;
	mw->peer = (struct fz_obj *)o;
	mw->ready = true;
	return true;
}

/* that of the peer, or of this queue itself */
static bool invalidate(struct fz_thread *t, const struct fz_obj *whose, struct sroce_send_wqe *w)
{
	struct fz_obj *mw = window(t, whose, true);

	if (!mw)
		return false;
	w->invalidate_rkey = mw->number;
	mw->ready = false;
	return true;
}

/* --- datagrams ---------------------------------------------------------------------------- */

/* what fits into a packet of the smallest MTU that the devices get */
#define DATAGRAM 1024

static bool datagram(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, struct sroce_send_wqe *w)
{
	struct fz_obj *ah;
	int tries = 12;

	while (tries--) {
		ah = fz_some(t, c, FZ_AH);
		if (!ah || ah->pd != o->pd || ah->type != (uint32_t)fz_ctx_of(o->peer)->dev)
			continue;
		w->ud.ahn = ah->number;
		w->ud.remote_qpn = o->peer->number;
		w->ud.remote_qkey = VT_QKEY;
		return true;
	}
	return false;
}

/* --- work requests ------------------------------------------------------------------------ */

/* A queue for targets, if one is found soon */
static const struct fz_obj *shared(struct fz_thread *t, struct fz_ctx *c)
{
	const struct fz_obj *o = NULL;
	int tries = 12;

	while (tries-- && (!o || o->type != IB_UVERBS_SRQT_XRC))
		o = fz_some(t, c, FZ_SRQ);
	return o;
}

static bool is_word(uint8_t opcode)
{
	return opcode == SROCE_WR_CMP_SWAP || opcode == SROCE_WR_FETCH_ADD || opcode == SROCE_WR_ATOMIC_WRITE;
}

static void begin(struct fz_thread *t, struct sroce_send_wqe *w, uint8_t opcode)
{
	memset(w, 0, sizeof(*w));
	w->wr_id = fz_rand(t) | 1;
	w->opcode = opcode;
	w->flags = fz_below(t, 8) | (fz_once(t, 2) ? SROCE_SEND_SIGNALED : 0);
	if (opcode == SROCE_WR_SEND_IMM || opcode == SROCE_WR_RDMA_WRITE_IMM)
		w->imm_data = fz_rand(t);
}

/* What it is, but for its data; one for which there is no window sends without */
static bool choose(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, struct sroce_send_wqe *w)
{
	begin(t, w, some_opcode(t, o->type));
	if (w->opcode == SROCE_WR_BIND_MW && !bind(t, c, o, w))
		w->opcode = SROCE_WR_SEND;
	if (w->opcode == SROCE_WR_SEND_INV && !invalidate(t, o->peer, w))
		w->opcode = SROCE_WR_SEND;
	if (w->opcode == SROCE_WR_LOCAL_INV && !invalidate(t, o, w))
		w->opcode = SROCE_WR_SEND;
	return o->type != IB_UVERBS_QPT_UD || datagram(t, c, o, w);
}

bool fz_calm_send(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, struct sroce_send_wqe *w,
		  struct sroce_sge *sge)
{
	const struct fz_obj *peer = o->peer, *mine, *other, *srq;
	struct part from, to;
	uint32_t len, most;
	bool word;

	if (!peer || o->type == IB_UVERBS_QPT_XRC_TGT || o->type == IB_UVERBS_QPT_RAW_PACKET || !choose(t, c, o, w))
		return false;
	/* done here, and without data */
	if (w->opcode == SROCE_WR_BIND_MW || w->opcode == SROCE_WR_LOCAL_INV)
		return true;
	/* a target's is that of the queue that is named */
	srq = o->type == IB_UVERBS_QPT_XRC_INI ? shared(t, fz_ctx_of(peer)) : NULL;
	mine = region(t, c, o->pd, local_access(w->opcode));
	other = region(t, fz_ctx_of(peer), srq ? srq->pd : peer->pd, remote_access(w->opcode));
	if (!mine || !other)
		return false;
	from = part_of(t, mine);
	to = part_of(t, other);
	w->remote_srqn = srq ? srq->number : 0;
	word = is_word(w->opcode);
	most = min(min(from.length, to.length), (uint64_t)(o->type == IB_UVERBS_QPT_UD ? DATAGRAM : MOST));
	if (word && most < 16)
		return false;
	len = word ? 8 : some_length(t, most);
	sge[0] = (struct sroce_sge){ .addr = place(t, &from, len), .length = len, .lkey = from.key };
	split(t, w, sge, word ? 1 : o->sges, len);
	/* room for the address to be rounded up */
	if (o->type != IB_UVERBS_QPT_UD)
		aim(t, w, &to, word ? 15 : len);
	if (w->opcode == SROCE_WR_FLUSH)
		w->num_sge = 0;
	return true;
}

bool fz_calm_recv(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, struct sroce_recv_wqe *w,
		  struct sroce_sge *sge)
{
	const struct fz_obj *into = NULL;
	struct part part;
	int tries = 4;

	/* the longest of some */
	while (tries--) {
		const struct fz_obj *mr = region(t, c, o->pd, IBV_ACCESS_LOCAL_WRITE);

		if (mr && (!into || mr->length > into->length))
			into = mr;
	}
	if (!into)
		return false;
	memset(w, 0, sizeof(*w));
	w->wr_id = fz_rand(t) | 1;
	w->num_sge = 1;
	part = part_of(t, into);
	sge[0].length = min(part.length, (uint64_t)MOST);
	sge[0].addr = place(t, &part, sge[0].length);
	sge[0].lkey = part.key;
	return true;
}
