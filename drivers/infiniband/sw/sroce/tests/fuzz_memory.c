// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of the two ends: what a peer may change, what it may only read, and
 * all the rest, which must stay as it is.
 */
#include <linux/mman.h>

#include "compat.h"
#include "memory/mw.h"
#include "memory/odp.h"
#include "tests/fuzz_pen.h"

/* What may be read by a peer has no byte from 0x80 on, all other memory has no other */
#define READABLE 0x3c
#define CANARY PEN_CANARY

/* Of a slot what is most likely to be hit is looked at always, the rest sometimes */
#define NEAR 128

#define LOCAL 0x1000
#define RECV 0x2a000
#define END 0x95000
#define TAGGED END
#define END_TAGGED (TAGGED + PEN_TAGS * PEN_SLOT)
#define DEMAND_BYTES (8 * PAGE_SIZE)
#define DEMAND_SKIP 0x123

static const struct {
	u32 off;
	u32 len;
	int access;
	bool changes;	/* by whoever has the key */
} places[] = {
	[PEN_OPEN] = { 0x53123, 0x20000, PEN_RW | IB_ACCESS_FLUSH_GLOBAL, true },
	[PEN_READ] = { 0x76055, 0x3001, IB_ACCESS_REMOTE_READ },
	[PEN_WRITE] = { 0x7b000, 0x4000, IB_ACCESS_LOCAL_WRITE |
			IB_ACCESS_REMOTE_WRITE, true },
	[PEN_WORDS] = { 0x81000, 64, IB_ACCESS_LOCAL_WRITE |
			IB_ACCESS_REMOTE_ATOMIC, true },
	[PEN_SECRET] = { 0x83000, 0x2000, IB_ACCESS_LOCAL_WRITE },
	[PEN_FOREIGN] = { 0x87000, 0x1000, PAIR_ALL_ACCESS },
	[PEN_FAST] = { 0x8a000, 0x3000, PEN_RW, true },
	[PEN_PARENT] = { 0x8f080, 0x4000, IB_ACCESS_LOCAL_WRITE |
			 IB_ACCESS_MW_BIND },
};

/* The part of PEN_PARENT that the window is of */
#define WINDOW_OFF 0x8ff80
#define WINDOW_LEN 0x2000

static u32 word(u32 seed, u32 i)
{
	return (seed + i * 0x9e3779b1) & 0x7f7f7f7f;
}

void pen_fill(struct pen_side *ps, u32 off, u32 len, u32 seed)
{
	u32 i, w;

	for (i = 0; i < len; i += 4) {
		w = word(seed, i);
		memcpy(ps->s->mem + off + i, &w, min(len - i, 4U));
	}
}

bool pen_filled_from(struct pen_side *ps, u32 off, u32 len, u32 seed, u32 from)
{
	u32 i, w;

	for (i = 0; i < len; i += 4) {
		w = word(seed, from + i);
		if (memcmp(ps->s->mem + off + i, &w, min(len - i, 4U)))
			return false;
	}
	return true;
}

bool pen_filled(struct pen_side *ps, u32 off, u32 len, u32 seed)
{
	return pen_filled_from(ps, off, len, seed, 0);
}

bool pen_is_readable(struct pen_side *ps, u32 off, u32 len)
{
	return !memchr_inv(ps->s->mem + off, READABLE, len);
}

u32 pen_local_slot(u32 number)
{
	return LOCAL + number % PEN_DEPTH * PEN_SLOT;
}

u32 pen_recv_slot(u32 number)
{
	return RECV + number % PEN_DEPTH * PEN_SLOT;
}

u32 pen_open_slot(u32 number)
{
	return places[PEN_OPEN].off + number % PEN_DEPTH * PEN_MESSAGE;
}

u32 pen_tag_slot(u32 i)
{
	return TAGGED + i * PEN_SLOT;
}

static void check_canary(struct pen *pen, struct pen_side *ps, u32 from,
			 u32 to, u8 byte)
{
	const u8 *bad = memchr_inv(ps->s->mem + from, byte, to - from);

	pen_check(pen, !bad, "memory was changed that nobody may write",
		  bad ? bad - ps->s->mem : 0, bad ? *bad : 0);
}

void pen_check_slot(struct pen *pen, struct pen_side *ps, u32 off, u32 used)
{
	u32 n = fuzz_one_in(&pen->f->rnd, 16) ? PEN_SLOT : used + NEAR;

	check_canary(pen, ps, off + used, off + min_t(u32, n, PEN_SLOT), CANARY);
}

/* A buffer that nobody has is as it was, and so is what is behind it */
static void check_tagged(struct pen *pen, struct pen_side *ps)
{
	u32 i, used;

	for (i = 0; i < PEN_TAGS; i++) {
		used = ps->tags[i].state == PEN_TAG_FREE ? 0 : ps->tags[i].len;
		check_canary(pen, ps, pen_tag_slot(i) + used, pen_tag_slot(i) + PEN_SLOT,
			     CANARY);
	}
}

void pen_check_memory(struct pen *pen, struct pen_side *ps)
{
	u32 at = RECV + PEN_DEPTH * PEN_SLOT, end;
	int i;

	check_canary(pen, ps, 0, LOCAL, CANARY);
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		check_canary(pen, ps, at, places[i].off, CANARY);
		end = places[i].off + places[i].len;
		if (i == PEN_READ)
			check_canary(pen, ps, places[i].off, end, READABLE);
		at = places[i].changes || i == PEN_READ || i == PEN_PARENT ?
		     end : places[i].off;
	}
	check_canary(pen, ps, at, END, CANARY);
	check_canary(pen, ps, places[PEN_PARENT].off, WINDOW_OFF, CANARY);
	check_canary(pen, ps, WINDOW_OFF + WINDOW_LEN,
		     places[PEN_PARENT].off + places[PEN_PARENT].len, CANARY);
	check_tagged(pen, ps);
	pen_check(pen, !ps->sig || sig_gaps_are(ps->sig, CANARY),
		  "memory between pieces was changed", 0, 0);
}

void pen_make_memory(struct pen_side *ps)
{
	u8 *mem = ps->s->mem;
	u32 at;
	int i;

	for (at = 0; at < END_TAGGED; at += PAGE_SIZE)
		memset(mem + at, CANARY, min_t(u32, PAGE_SIZE, END_TAGGED - at));
	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (places[i].access & IB_ACCESS_REMOTE_READ && i != PEN_FOREIGN)
			memset(mem + places[i].off, READABLE, places[i].len);
	memset(mem + places[PEN_WORDS].off, 0, places[PEN_WORDS].len);
	memset(mem + WINDOW_OFF, READABLE, WINDOW_LEN);
}

u64 pen_word(const struct pen_side *ps)
{
	return get_unaligned((u64 *)(ps->s->mem + places[PEN_WORDS].off));
}

/* --- regions --------------------------------------------------------------- */

static void make_region(struct pen *pen, struct pen_side *ps, int i)
{
	u32 first = places[i].off >> PAGE_SHIFT;
	u32 offset = offset_in_page(places[i].off);
	u32 k, n = DIV_ROUND_UP(offset + places[i].len, PAGE_SIZE);
	struct sroce_mr *mr;

	mr = sroce_mr_alloc(&ps->s->port.mrs,
			    i == PEN_FOREIGN ? &ps->s->other_pd : &ps->s->pd,
			    i == PEN_FAST ? SROCE_MR_FAST_REG : SROCE_MR_USER, n);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(pen->f->test, mr);
	for (k = 0; k < n; k++)
		mr->blocks[k] = ps->s->mem + (first + k) * PAGE_SIZE;
	mr->nr_blocks = n;
	mr->offset = offset;
	mr->length = places[i].len;
	mr->iova = i == PEN_READ ? -(u64)places[i].len :
				   ((u64)(i + 1) << 32) + ALIGN(places[i].off, 8);
	mr->ibmr.iova = mr->iova;
	mr->access = places[i].access;
	if (i != PEN_FAST)
		sroce_mr_publish(mr);
	ps->mr[i] = mr;
}

static void make_demand(struct pen *pen, struct pen_side *ps)
{
	struct kunit *test = pen->f->test;
	struct sroce_mr *mr;

	ps->demand = kunit_vm_mmap(test, NULL, 0, DEMAND_BYTES,
				   PROT_READ | PROT_WRITE,
				   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, ps->demand, 0);
	mr = sroce_mr_alloc(&ps->s->port.mrs, &ps->s->pd, SROCE_MR_ON_DEMAND, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	mr->odp = sroce_odp_create(ps->demand + DEMAND_SKIP,
				   DEMAND_BYTES - DEMAND_SKIP);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr->odp);
	mr->offset = sroce_odp_offset(mr->odp);
	mr->iova = ps->demand + DEMAND_SKIP;
	mr->length = DEMAND_BYTES - DEMAND_SKIP;
	mr->access = PEN_RW;
	sroce_mr_publish(mr);
	ps->mr[PEN_DEMAND] = mr;
}

/* What is read of it has no byte from 0x80 on, unless tuples are on the wire */
static void make_sig(struct pen *pen, struct pen_side *ps)
{
	ps->sig = sig_new(pen->f->test, &ps->s->port.mrs, &ps->s->pd, pen->kind->sig);
	sig_fill_gaps(ps->sig, CANARY);
	sig_fill_byte(ps->sig, READABLE);
	sig_to_memory(ps->sig, false);
	ps->mr[PEN_SIG] = ps->sig->mr;
}

void pen_renew_sig(struct pen_side *ps)
{
	if (ps->sig)
		KUNIT_ASSERT_EQ(ps->sig->test, sig_register(ps->sig), 0);
}

void pen_make_regions(struct pen *pen, struct pen_side *ps)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(places); i++)
		make_region(pen, ps, i);
	ps->mr[PEN_WINDOW] = sroce_mw_alloc(&ps->s->port.mrs, &ps->s->pd, true);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(pen->f->test, ps->mr[PEN_WINDOW]);
	if (pen->kind->demand)
		make_demand(pen, ps);
	if (pen->kind->sig)
		make_sig(pen, ps);
	/* The pair's own key is for all memory: not for peers */
	ps->s->mr->access = IB_ACCESS_LOCAL_WRITE;
}

/* A region without users can be freed at once */
void pen_end_regions(struct pen *pen, struct pen_side *ps)
{
	struct sroce_odp *odp = NULL;
	struct sroce_mr *mr;
	int i;

	for (i = PEN_REGIONS - 1; i >= 0; i--) {
		mr = ps->mr[i];
		if (!mr)
			continue;
		pen_check(pen, refcount_read(&mr->users) == 1,
			  "a region is still used", i, refcount_read(&mr->users));
		if (i == PEN_DEMAND)
			odp = mr->odp;
		if (i == PEN_SIG)
			sig_free(ps->sig);
		else
			sroce_mr_free(mr);
	}
	if (odp)
		sroce_odp_destroy(odp, true);
}

void pen_lose_pages(struct pen *pen, struct pen_side *ps)
{
	unsigned long at = ps->demand +
			   fuzz_below(&pen->f->rnd, 8) * PAGE_SIZE;

	if (!ps->demand)
		return;
	pen_check(pen, vm_mmap(NULL, at, PAGE_SIZE, PROT_READ | PROT_WRITE,
			       MAP_FIXED | MAP_ANONYMOUS | MAP_PRIVATE, 0) == at,
	      "no memory", at, 0);
}

u64 pen_window_addr(const struct pen_side *ps)
{
	return ps->mr[PEN_PARENT]->iova + WINDOW_OFF - places[PEN_PARENT].off;
}

u32 pen_window_len(void)
{
	return WINDOW_LEN;
}
