// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies to and from ranges of pages, and atomics, which processors race for.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "memory/copy.h"
#include "tests/memory_world.h"

#define COPY_SIZE 5000
#define MAX_CUTS 40

/*
 * Cut a buffer into entries of odd lengths, none of them empty unless @empty.
 * Each lies before its predecessor, so that to run over an end is an error.
 */
static void cut(struct bio_vec *bv, u8 *buf, u32 longest, bool empty)
{
	u32 size = COPY_SIZE;
	unsigned int n;

	for (n = 0; size; n++) {
		u32 len = min(size, get_random_u32() % longest + !empty);

		if (n == MAX_CUTS - 1)
			len = size;
		size -= len;
		bvec_set_page(&bv[n], virt_to_page(buf + size), len,
			      offset_in_page(buf + size));
	}
}

/* All bytes of a vector in order, found the slow way */
static void flatten(u8 *flat, const struct bio_vec *bv)
{
	u32 done = 0, at;

	for (; done < COPY_SIZE; bv++)
		for (at = 0; at < bv->bv_len; at++)
			flat[done++] = ((u8 *)page_address(bv->bv_page))
				       [bv->bv_offset + at];
}

struct buffers {
	u8 src[COPY_SIZE];
	u8 dst[COPY_SIZE];
	u8 want[COPY_SIZE];
	u8 got[COPY_SIZE];
	struct bio_vec sv[MAX_CUTS];
	struct bio_vec dv[MAX_CUTS];
};

static struct buffers *new_buffers(struct kunit *test)
{
	struct buffers *b = kunit_kmalloc(test, sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	return b;
}

/* Copy a random range in random steps, compare everything with memcpy() */
static void copy_once(struct kunit *test, struct buffers *b, bool empty)
{
	u32 from = get_random_u32() % 1000, to = get_random_u32() % 1000;
	u32 left = get_random_u32() % (COPY_SIZE - 1000) + 1;
	struct bvec_iter si = { .bi_size = COPY_SIZE };
	struct bvec_iter di = { .bi_size = COPY_SIZE };

	get_random_bytes(b->src, sizeof(b->src));
	cut(b->sv, b->src, 500, empty);
	cut(b->dv, b->dst, 700, empty);
	flatten(b->want, b->dv);
	flatten(b->got, b->sv);
	memcpy(b->want + to, b->got + from, left);

	bvec_iter_advance(b->sv, &si, from);
	bvec_iter_advance(b->dv, &di, to);
	while (left) {
		u32 len = min(left, get_random_u32() % 2000 + 1);
		u32 before = si.bi_size;

		sroce_bvec_copy(b->dv, &di, b->sv, &si, len);
		KUNIT_EXPECT_EQ(test, before - si.bi_size, len);
		KUNIT_EXPECT_EQ(test, si.bi_size - di.bi_size, to - from);
		left -= len;
	}
	flatten(b->got, b->dv);
	KUNIT_EXPECT_MEMEQ(test, b->got, b->want, COPY_SIZE);
}

static void copy_segments(struct kunit *test)
{
	struct buffers *b = new_buffers(test);
	int round;

	get_random_bytes(b->dst, sizeof(b->dst));
	for (round = 0; round < 200; round++)
		copy_once(test, b, round % 2);
}

static void copy_linear(struct kunit *test)
{
	struct buffers *b = new_buffers(test);
	int round;

	for (round = 0; round < 50; round++) {
		struct bvec_iter in = { .bi_size = COPY_SIZE };
		struct bvec_iter out = { .bi_size = COPY_SIZE };

		get_random_bytes(b->src, sizeof(b->src));
		cut(b->dv, b->dst, 400, round % 2);
		sroce_bvec_write(b->dv, &in, b->src, 1234);
		KUNIT_EXPECT_EQ(test, in.bi_size, COPY_SIZE - 1234);
		sroce_bvec_write(b->dv, &in, b->src + 1234, COPY_SIZE - 1234);
		KUNIT_EXPECT_EQ(test, in.bi_size, 0);
		flatten(b->got, b->dv);
		KUNIT_EXPECT_MEMEQ(test, b->got, b->src, COPY_SIZE);

		sroce_bvec_read(b->want, b->dv, &out, 777);
		KUNIT_EXPECT_EQ(test, out.bi_size, COPY_SIZE - 777);
		sroce_bvec_read(b->want + 777, b->dv, &out, COPY_SIZE - 777);
		KUNIT_EXPECT_EQ(test, out.bi_size, 0);
		KUNIT_EXPECT_MEMEQ(test, b->want, b->src, COPY_SIZE);
	}
}

/* A message to oneself */
static void copy_onto_itself(struct kunit *test)
{
	struct buffers *b = new_buffers(test);
	struct bvec_iter si = { .bi_size = COPY_SIZE };
	struct bvec_iter di = { .bi_size = COPY_SIZE };

	get_random_bytes(b->src, sizeof(b->src));
	memcpy(b->want, b->src, COPY_SIZE);
	cut(b->sv, b->src, 500, false);
	sroce_bvec_copy(b->sv, &di, b->sv, &si, COPY_SIZE);
	KUNIT_EXPECT_MEMEQ(test, b->src, b->want, COPY_SIZE);
}

/* --- atomics ------------------------------------------------------------- */

static u64 load(const struct sroce_mr *mr, u64 va)
{
	u64 value = 0;
	int i;

	/* byte by byte: the eight may be on two pages */
	for (i = 0; i < 8; i++)
		((u8 *)&value)[i] = *(u8 *)byte_at(mr, va + i);
	return value;
}

static void store(const struct sroce_mr *mr, u64 va, u64 value)
{
	int i;

	for (i = 0; i < 8; i++)
		*(u8 *)byte_at(mr, va + i) = ((u8 *)&value)[i];
}

static u64 atomic_at(struct kunit *test, const struct sroce_mr *mr, u64 va, bool cas,
		     u64 compare, u64 swap_add)
{
	u64 old = 0;

	KUNIT_EXPECT_TRUE(test, sroce_mr_atomic(mr, va, cas, compare, swap_add, &old));
	return old;
}

static void expect_atomics(struct kunit *test, const struct sroce_mr *mr,
			   u64 va)
{
	const u64 a = 0x1122334455667788, b = 0xfedcba9876543210;

	store(mr, va, a);
	KUNIT_EXPECT_EQ(test, atomic_at(test, mr, va, true, b, 5), a);
	KUNIT_EXPECT_EQ(test, load(mr, va), a);
	KUNIT_EXPECT_EQ(test, atomic_at(test, mr, va, true, a, b), a);
	KUNIT_EXPECT_EQ(test, load(mr, va), b);

	KUNIT_EXPECT_EQ(test, atomic_at(test, mr, va, false, 99, a), b);
	KUNIT_EXPECT_EQ(test, load(mr, va), a + b);
	store(mr, va, U64_MAX);
	KUNIT_EXPECT_EQ(test, atomic_at(test, mr, va, false, 0, 3), U64_MAX);
	KUNIT_EXPECT_EQ(test, load(mr, va), 2);

	KUNIT_EXPECT_TRUE(test, sroce_mr_atomic_write(mr, va, a));
	KUNIT_EXPECT_EQ(test, load(mr, va), a);
}

static void atomics(struct kunit *test)
{
	struct memory_world *w = test->priv;
	u64 va;

	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 0, 2 * PAGE_SIZE);

	for (va = 0x1000; va < 0x1000 + 2 * PAGE_SIZE; va += 8)
		expect_atomics(test, mr, va);
	/* Neighbours are left alone */
	memset(mr->blocks[0], 0xa5, PAGE_SIZE);
	expect_atomics(test, mr, 0x1010);
	KUNIT_EXPECT_EQ(test, load(mr, 0x1008), 0xa5a5a5a5a5a5a5a5);
	KUNIT_EXPECT_EQ(test, load(mr, 0x1018), 0xa5a5a5a5a5a5a5a5);

	/* The address is aligned, the memory is not: also over two pages */
	mr = new_user_mr(test, 0, 0x1000, 3, 2 * PAGE_SIZE);
	for (va = 0x1000; va < 0x1000 + 2 * PAGE_SIZE; va += 8)
		expect_atomics(test, mr, va);

	mr = new_dma_mr(test, IB_ACCESS_LOCAL_WRITE);
	va = (uintptr_t)page_address(w->pages[3]) + 16;
	*(u64 *)(uintptr_t)va = 7;
	KUNIT_EXPECT_EQ(test, atomic_at(test, mr, va, false, 0, 3), 7);
	KUNIT_EXPECT_EQ(test, *(u64 *)(uintptr_t)va, 10);
}

/* A word of which a part is not there any more is left alone, and that is told */
static void atomics_gone(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 3, 2 * PAGE_SIZE);
	const u64 va = 0x1000 + PAGE_SIZE - 8;
	u64 old = 0;

	store(mr, va, 99);
	mr->nr_blocks = 1;
	KUNIT_EXPECT_FALSE(test, sroce_mr_atomic(mr, va, false, 0, 1, &old));
	KUNIT_EXPECT_FALSE(test, sroce_mr_atomic(mr, va, true, 99, 1, &old));
	KUNIT_EXPECT_FALSE(test, sroce_mr_atomic_write(mr, va, 1));
	KUNIT_EXPECT_FALSE(test, sroce_mr_atomic(mr, va + 8, false, 0, 1, &old));
	mr->nr_blocks = 3;
	KUNIT_EXPECT_EQ(test, load(mr, va), 99);
}

#define RACERS 4

struct race {
	const struct sroce_mr *mr;
	struct completion start;
	struct completion done;
	atomic64_t count;
};

static int race_thread(void *arg)
{
	struct race *r = arg;
	unsigned long end;
	u64 n = 0, old;

	wait_for_completion(&r->start);
	/* Long enough that the racers do meet */
	for (end = jiffies + HZ / 10; time_before(jiffies, end); n++)
		sroce_mr_atomic(r->mr, 8, false, 0, 1, &old);
	atomic64_add(n, &r->count);
	complete(&r->done);
	return 0;
}

static void expect_race(struct kunit *test, u64 offset)
{
	struct race race = { .mr = new_user_mr(test, 0, 0, offset, 64) };
	int i, started = 0;

	init_completion(&race.start);
	init_completion(&race.done);
	store(race.mr, 8, 0);
	for (i = 0; i < RACERS; i++)
		if (!IS_ERR(kthread_run_on_cpu(race_thread, &race,
					       i % num_online_cpus(),
					       "race/%u")))
			started++;
	complete_all(&race.start);
	for (i = 0; i < started; i++)
		wait_for_completion(&race.done);
	KUNIT_EXPECT_EQ(test, started, RACERS);
	KUNIT_EXPECT_EQ(test, load(race.mr, 8), atomic64_read(&race.count));
}

static void atomic_races(struct kunit *test)
{
	expect_race(test, 0);
	expect_race(test, 1);
}

static struct kunit_case copy_cases[] = {
	KUNIT_CASE(copy_segments),
	KUNIT_CASE(copy_linear),
	KUNIT_CASE(copy_onto_itself),
	KUNIT_CASE(atomics),
	KUNIT_CASE(atomics_gone),
	KUNIT_CASE(atomic_races),
	{}
};

static struct kunit_suite copy_suite = {
	.name = "sroce_memory_copy",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = copy_cases,
};

kunit_test_suite(copy_suite);
