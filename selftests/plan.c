// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rounds of verify (plan.h): a queue pair's operations and the places of their messages, drawn from the seed, and
 * what memory looks like before and after them.
 */
#include "plan.h"

const char *const op_names[OP_KINDS] = {
	"send", "send_imm", "send_inv", "write", "write_imm", "read", "cas", "fadd", "count",
};

/* around and between messages: never to be touched */
#define GUARD 16

bool op_is_atomic(const struct op *op)
{
	return op->kind == OP_CAS || op->kind == OP_FADD || op->kind == OP_COUNT;
}

bool op_takes_recv(const struct op *op)
{
	return op->kind <= OP_SEND_INV || op->kind == OP_WRITE_IMM;
}

bool op_is_inline(const struct op *op, uint32_t max_inline)
{
	return op->want_inline && op->len <= max_inline &&
	       op->kind != OP_READ && !op_is_atomic(op);
}

struct piece op_piece(uint32_t offset, uint32_t len, uint8_t gap, int n, int i)
{
	uint32_t each = n ? len / n : 0;
	struct piece p = {
		.offset = offset + i * (each + gap),
		.pos = i * each,
		.len = i == n - 1 ? len - each * (n - 1) : each,
	};

	return p;
}

/* a message of size_max with all its gaps, or a batch of small ones */
uint32_t plan_area(const struct plan_cfg *cfg)
{
	uint32_t one = cfg->size_max + cfg->sges * 64 + 4 * GUARD + 256;

	return min(max(one, 1u << 20), one * cfg->batch) + cfg->batch * 64;
}

static uint32_t pick_len(struct vt_rng *rng, uint32_t size_max, uint32_t mtu)
{
	uint32_t len, bits = 0;

	switch (vt_below(rng, 8)) {
	case 0:
		len = vt_below(rng, 9);
		break;
	case 1:
	case 2:
		len = vt_below(rng, 257);
		break;
	case 3:
	case 4: /* around a multiple of the path MTU */
		len = mtu * (1 + vt_below(rng, 20)) + vt_below(rng, 5) - 2;
		break;
	case 5: /* many packets */
		len = vt_below(rng, size_max + 1);
		break;
	default: /* every magnitude */
		while (size_max >> bits)
			bits++;
		len = vt_rand(rng) & ((1ull << vt_below(rng, bits + 1)) - 1);
	}
	return min(len, size_max);
}

static enum op_kind pick_kind(struct vt_rng *rng, uint32_t kinds)
{
	uint32_t nth = vt_below(rng, __builtin_popcount(kinds));
	enum op_kind kind = 0;

	while (!(kinds & (1u << kind)) || nth--)
		kind++;
	return kind;
}

static uint8_t pick_sges(struct vt_rng *rng, uint32_t len, uint32_t sges)
{
	uint32_t n = vt_below(rng, 2) ? 1 : 1 + vt_below(rng, sges);

	if (!len)
		return vt_below(rng, 2);
	return min(n, len);
}

static void draw(struct op *op, struct vt_rng *rng, const struct plan_cfg *cfg,
		 uint32_t kinds, uint32_t mtu)
{
	memset(op, 0, sizeof(*op));
	op->kind = pick_kind(rng, kinds);
	op->len = op_is_atomic(op) ? 8 : pick_len(rng, cfg->size_max, mtu);
	if (op->kind == OP_READ)
		op->len = max(op->len, cfg->read_min);
	op->local_sges = op_is_atomic(op) ? 1 : pick_sges(rng, op->len, cfg->sges);
	op->remote_sges = op->kind <= OP_SEND_INV ? pick_sges(rng, op->len, cfg->sges) : 1;
	op->gap = vt_below(rng, 18);
	op->spare = op->remote_sges && vt_below(rng, 2) ? vt_below(rng, 64) : 0;
	op->signaled = vt_below(rng, 2);
	op->want_inline = vt_below(rng, 2);
	op->solicited = vt_below(rng, 2);
	op->fence = !vt_below(rng, 8);
	op->imm = vt_rand(rng);
	op->key = vt_rand(rng);
	op->add = vt_rand(rng);
	op->swap = vt_rand(rng);
	op->old = vt_rand(rng);
	op->compare = vt_below(rng, 2) ? op->old : vt_rand(rng);
}

static uint64_t atomic_result(const struct op *op)
{
	if (op->kind == OP_FADD)
		return op->old + op->add;
	return op->compare == op->old ? op->swap : op->old;
}

/* half of the atomics go to the place of the one before */
static void chain_atomic(struct op *op, const struct op *before, struct vt_rng *rng)
{
	bool hit = op->compare == op->old;

	if (!before || vt_below(rng, 2))
		return;
	op->remote = before->remote;
	op->old = atomic_result(before);
	op->reread = true;
	if (hit)
		op->compare = op->old;
}

static void reread(struct op *op, const struct op *before, struct vt_rng *rng)
{
	if (!before || vt_below(rng, 3))
		return;
	op->remote = before->remote;
	op->len = before->len;
	op->key = before->key;
	op->local_sges = min((uint32_t)op->local_sges, op->len);
	if (op->len && !op->local_sges)
		op->local_sges = 1;
	op->reread = true;
}

static uint32_t footprint(uint32_t len, uint8_t sges, uint8_t gap)
{
	return len + sges * gap + GUARD;
}

void plan_make(struct plan *plan, const struct plan_cfg *cfg, uint64_t stream, uint32_t mtu)
{
	struct vt_rng rng = { vt_mix(cfg->seed ^ vt_mix(stream)) };
	uint32_t local = GUARD, remote = GUARD, area = plan_area(cfg), kinds = cfg->kinds;
	const struct op *atomic = NULL, *write = NULL;

	for (plan->n = 0; plan->n < cfg->batch; plan->n++) {
		struct op *op = &plan->ops[plan->n];

		draw(op, &rng, cfg, kinds, mtu);
		/* odd addresses, but for the operands of atomics */
		local += op_is_atomic(op) ? -local & 7 : vt_below(&rng, 4);
		remote += op_is_atomic(op) ? -remote & 7 : vt_below(&rng, 4);
		op->local = local;
		op->remote = remote;
		if (op->kind == OP_CAS || op->kind == OP_FADD)
			chain_atomic(op, atomic, &rng);
		if (op->kind == OP_READ)
			reread(op, write, &rng);
		local += footprint(op->len, op->local_sges, op->gap);
		if (op->remote == remote)
			remote += footprint(op->len + op->spare, op->remote_sges, op->gap);
		if (local > area || remote > area)
			break;
		if (op->kind == OP_CAS || op->kind == OP_FADD)
			atomic = op;
		if (op->kind == OP_WRITE || op->kind == OP_WRITE_IMM)
			write = op;
		/* each queue pair has one window to invalidate a round */
		if (op->kind == OP_SEND_INV && kinds != 1u << OP_SEND_INV)
			kinds &= ~(1u << OP_SEND_INV);
		else if (op->kind == OP_SEND_INV) {
			plan->n++;
			break;
		}
	}
	if (plan->n)
		plan->ops[plan->n - 1].signaled = true;
}

static void put(uint8_t *buf, const struct op *op, uint32_t offset, uint32_t room, int sges)
{
	int i;

	for (i = 0; i < sges; i++) {
		struct piece p = op_piece(offset, room, op->gap, sges, i);

		if (p.pos < op->len)
			vt_pattern(buf + p.offset, op->key, p.pos, min(p.len, op->len - p.pos));
	}
}

static void scribbled(uint8_t *buf, const struct op *op)
{
	int i;

	for (i = 0; i < op->local_sges; i++) {
		struct piece p = op_piece(op->local, op->len, op->gap, op->local_sges, i);

		memset(buf + p.offset, INLINE_SCRIBBLE, p.len);
	}
}

void plan_local(const struct plan *plan, const struct plan_cfg *cfg, uint32_t max_inline,
		uint8_t *mem, uint8_t *want)
{
	uint32_t i, area = plan_area(cfg);

	memset(mem, 0xa5, area);
	memset(want, 0xa5, area);
	for (i = 0; i < plan->n; i++) {
		const struct op *op = &plan->ops[i];

		/* a counter's old value is only known to be unlike all others */
		if (op->kind == OP_COUNT)
			continue;
		if (op_is_atomic(op)) {
			memcpy(want + op->local, &op->old, 8);
			continue;
		}
		if (op->kind != OP_READ)
			put(mem, op, op->local, op->len, op->local_sges);
		put(want, op, op->local, op->len, op->local_sges);
		if (op_is_inline(op, max_inline))
			scribbled(want, op);
	}
}

void plan_remote(const struct plan *plan, const struct plan_cfg *cfg, uint8_t *mem, uint8_t *want)
{
	uint32_t i, area = plan_area(cfg);

	memset(mem, 0x5a, area);
	memset(want, 0x5a, area);
	for (i = 0; i < plan->n; i++) {
		const struct op *op = &plan->ops[i];
		uint64_t result = atomic_result(op);

		if (op->kind == OP_COUNT)
			continue;
		if (op_is_atomic(op)) {
			if (!op->reread)
				memcpy(mem + op->remote, &op->old, 8);
			memcpy(want + op->remote, &result, 8);
			continue;
		}
		if (op->kind == OP_READ && !op->reread)
			put(mem, op, op->remote, op->len, 1);
		put(want, op, op->remote, op->len + (op->kind <= OP_SEND_INV ? op->spare : 0),
		    op->remote_sges);
	}
}
