// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Objects on the board, and their rings in the memory of each worker.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

/* --- choosing ----------------------------------------------------------------- */

struct fz_ctx *fz_some_ctx(struct fz_thread *t)
{
	uint32_t dev = fz_below(t, board->ndevs);
	uint32_t i = fz_once(t, 3) ? FZ_OWN + dev : t->user * FZ_DEVS + dev;

	return &board->ctx[i];
}

struct fz_obj *fz_some(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind)
{
	uint32_t i, at = fz_below(t, FZ_SLOTS);
	struct fz_obj *o;

	for (i = 0; i < FZ_SLOTS; i++) {
		o = &c->obj[kind][(at + i) % FZ_SLOTS];
		if (atomic_load_explicit(&o->life, memory_order_relaxed) > 1)
			return o;
	}
	return NULL;
}

struct fz_obj *fz_anyone(struct fz_thread *t, enum fz_kind kind)
{
	return fz_some(t, &board->ctx[fz_below(t, FZ_CTXS)], kind);
}

struct fz_obj *fz_some_of(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, uint32_t pd)
{
	struct fz_obj *o = NULL;
	int tries = 5;

	while (tries-- && (!o || o->pd != pd))
		o = fz_some(t, c, kind);
	return o;
}

struct fz_ctx *fz_ctx_of(const struct fz_obj *o)
{
	return &board->ctx[((const char *)o - (const char *)board->ctx) / sizeof(struct fz_ctx)];
}

void fz_part_of(struct fz_thread *t, const struct fz_obj *mr, uint64_t *iova, uint64_t *length)
{
	*iova = mr->iova;
	*length = mr->length;
	if (fz_is_implicit(mr->start, mr->length))
		fz_some_range(t, iova, length);
}

bool fz_is_mine(const struct fz_thread *t, const struct fz_obj *o)
{
	long i = fz_ctx_of(o) - board->ctx;

	return i >= FZ_OWN || i / FZ_DEVS == t->user;
}

uint64_t fz_borderline(struct fz_thread *t, uint64_t good)
{
	switch (fz_below(t, 12)) {
	case 0: return 0;
	case 1: return ~0ull;
	case 2: return good + 1;
	case 3: return good - 1;
	case 4: return good ^ 1ull << fz_below(t, 64);
	case 5: return 0x7fffffff;
	case 6: return 0x80000000 + fz_below(t, 2);
	case 7: return 0xffffffff;
	case 8: return 1ull << fz_below(t, 64);
	case 9: return (1ull << fz_below(t, 64)) - 1;
	case 10: return fz_below(t, 256);
	default: return fz_rand(t);
	}
}

uint64_t fz_bad_pointer(struct fz_thread *t)
{
	static const uint64_t kernel[] = {
		0, 8, 4095, 0x7ffffffff000, 0x7fffffffffff, 0x800000000000, 0xffff800000000000, 0xffff888000001000,
		0xffffffff80000000, 0xffffffffff5fd000, ~0ull - 15, 1ull << 63,
	};
	static const char constant[] = "read-only";
	uint32_t i = fz_below(t, ARRAY_SIZE(kernel) + 1);

	return i < ARRAY_SIZE(kernel) ? kernel[i] : (uintptr_t)constant;
}

uint32_t fz_handle(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind)
{
	struct fz_obj *o = NULL;

	/* most things of a context in one domain, or they had nothing to do with each other */
	if (kind == FZ_PD && !fz_once(t, 4))
		o = atomic_load(&c->obj[FZ_PD][0].life) > 1 ? &c->obj[FZ_PD][0] : fz_some(t, c, kind);
	else if (fz_below(t, 256) >= t->wild / 4)
		o = fz_some(t, c, kind);
	else if (fz_once(t, 2))
		o = fz_anyone(t, kind);
	else if (fz_once(t, 2))
		o = fz_some(t, c, 1 + fz_below(t, FZ_KINDS - 1));
	return o ? o->handle : fz_below(t, 64);
}

/* --- remembering -------------------------------------------------------------- */

bool fz_add(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, const struct fz_obj *from)
{
	uint32_t i, at = fz_below(t, FZ_SLOTS), life, none;
	struct fz_obj *o;

	for (i = 0; i < FZ_SLOTS; i++) {
		o = &c->obj[kind][(at + i) % FZ_SLOTS];
		none = 0;
		if (!atomic_compare_exchange_strong(&o->life, &none, 1))
			continue;
		life = atomic_fetch_add(&board->lives, 1) + 2;
		memcpy((char *)o + sizeof(o->life), (const char *)from + sizeof(o->life), sizeof(*o) - sizeof(o->life));
		atomic_store(&o->life, life);
		return true;
	}
	return false;
}

void fz_drop(struct fz_ctx *c, enum fz_kind kind, uint32_t handle)
{
	struct fz_obj *o;
	int i;

	for (i = 0; i < FZ_SLOTS; i++) {
		o = &c->obj[kind][i];
		if (atomic_load(&o->life) > 1 && o->handle == handle)
			atomic_store(&o->life, 0);
	}
}

/* --- rings ---------------------------------------------------------------------- */

/*
 * Each slot has a place of its own for its mapping: so a ring that one thread maps anew under the hands of another
 * is at worst not there, but never some other memory of this process.
 */
#define WINDOW ((size_t)1 << 21)
#define SLOTS_OF_CTX (FZ_KINDS * FZ_SLOTS)

static uint8_t *ring_space;
/* which life of the slot is mapped */
static _Atomic uint32_t mapped[FZ_CTXS * SLOTS_OF_CTX];

void fz_rings_reserve(void)
{
	ring_space = mmap(NULL, (FZ_CTXS * SLOTS_OF_CTX + 2) * WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			  -1, 0);
	if (ring_space == MAP_FAILED)
		vt_die(VT_SETUP, "no room for rings: %s", strerror(errno));
}

static bool map_ring(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, uint32_t index)
{
	size_t len = o->ring[0].mmap_len;
	uint8_t *at = ring_space + index * WINDOW;
	int64_t rc;

	if (!len || len > WINDOW)
		return false;
	/* it may be mapped twice at a time, or become shorter or longer than it was */
	if (fz_once(t, 2))
		mmap(at, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	rc = FZ_CALL(t, "mmap of a ring", o->ring[0].mmap_offset,
		     mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, c->fd, o->ring[0].mmap_offset) ==
		     MAP_FAILED ? -errno : 0);
	/* Another process of this user has made it. What was here may be gone, and nothing else is to come here */
	if (rc)
		mmap(at, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return !rc;
}

struct sroce_ring_hdr *fz_ring(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, struct fz_obj *o, int which)
{
	uint32_t life = atomic_load(&o->life), index;

	index = (c - board->ctx) * SLOTS_OF_CTX + kind * FZ_SLOTS + (o - c->obj[kind]);
	if (life < 2 || !o->ring[which].entries)
		return NULL;
	if (atomic_load(&mapped[index]) != life) {
		atomic_store(&mapped[index], life);
		if (!map_ring(t, c, o, index))
			return NULL;
	}
	if (o->ring[which].start > WINDOW - sizeof(struct sroce_ring_hdr))
		return NULL;
	return (struct sroce_ring_hdr *)(ring_space + index * WINDOW + o->ring[which].start);
}

uint8_t *fz_ring_entry(const struct sroce_ring_hdr *hdr, const struct fz_obj *o, int which, uint32_t i)
{
	const struct sroce_ring_info *info = &o->ring[which];
	size_t at = SROCE_RING_ENTRIES_OFFSET + (size_t)(i & (info->entries - 1)) * info->stride;

	/* what is read of an object may have changed meanwhile */
	return (uint8_t *)hdr + at % WINDOW;
}
