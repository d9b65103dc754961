// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rings that are shared with a process: sizes, several in one page, and indices that the
 * other side may have set to anything.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/mm.h>

#include "memory/ring.h"

static void ring_sizes(struct kunit *test)
{
	static const struct {
		u32 entries, size, want_entries, want_stride;
	} cases[] = {
		{ 1, 1, 1, 16 },
		{ 1, 16, 1, 16 },
		{ 3, 17, 4, 32 },
		{ 64, 64, 64, 64 },
		{ 65, 0, 128, 16 },
		{ 4097, 88, 8192, 96 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sroce_ring r = {};
		void *last;

		KUNIT_ASSERT_EQ(test, sroce_ring_alloc(&r, cases[i].entries, cases[i].size, false),
				0);
		KUNIT_EXPECT_EQ(test, sroce_ring_entries(&r),
				cases[i].want_entries);
		KUNIT_EXPECT_EQ(test, r.stride, cases[i].want_stride);
		KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(r.hdr));
		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(r.len, 64));
		last = sroce_ring_entry(&r, r.mask) + r.stride;
		KUNIT_EXPECT_LE(test, last - (void *)r.hdr, r.len);
		KUNIT_EXPECT_NULL(test, memchr_inv(r.hdr, 0, r.len));
		memset(r.hdr, 0xff, r.len);
		sroce_ring_free(&r);
		sroce_ring_free(&r);
	}
}

/* Both in one page as long as they fit, one behind the other in any case */
static void ring_pairs(struct kunit *test)
{
	static const u32 entries[][2] = {
		{ 1, 1 }, { 16, 16 }, { 16, 64 }, { 1, 256 }, { 256, 1 }, { 4096, 4096 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(entries); i++) {
		struct sroce_ring a = {}, b = {};
		void *last;

		KUNIT_ASSERT_EQ(test, sroce_ring_shape(&a, entries[i][0], 96), 0);
		KUNIT_ASSERT_EQ(test, sroce_ring_shape(&b, entries[i][1], 32), 0);
		KUNIT_ASSERT_EQ(test, sroce_ring_alloc_pair(&a, &b, NULL, false), 0);
		KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(a.hdr));
		last = sroce_ring_entry(&a, a.mask) + a.stride;
		KUNIT_EXPECT_TRUE(test, last <= (void *)b.hdr);
		KUNIT_EXPECT_PTR_EQ(test, (void *)a.hdr + a.len, (void *)b.hdr);
		last = sroce_ring_entry(&b, b.mask) + b.stride;
		KUNIT_EXPECT_LE(test, last - (void *)a.hdr, PAGE_ALIGN(a.len + b.len));
		KUNIT_EXPECT_NULL(test, memchr_inv(a.hdr, 0, a.len + b.len));
		memset(a.hdr, 0xff, a.len + b.len);
		sroce_ring_page(a.mem, a.len + b.len - 1);
		sroce_ring_free_pair(&a, &b);
		KUNIT_EXPECT_NULL(test, a.hdr);
		KUNIT_EXPECT_NULL(test, b.hdr);
	}
}

static void ring_pool_alloc(struct kunit *test, struct sroce_ring_pool *pool,
			    struct sroce_ring r[2], u32 entries)
{
	KUNIT_ASSERT_EQ(test, sroce_ring_shape(&r[0], entries, 96), 0);
	KUNIT_ASSERT_EQ(test, sroce_ring_shape(&r[1], entries, 32), 0);
	KUNIT_ASSERT_EQ(test, sroce_ring_alloc_pair(&r[0], &r[1], pool, true), 0);
}

/* Small pairs share pages and nothing else; the pages live as long as one of them */
static void ring_pool(struct kunit *test)
{
	struct sroce_ring r[8][2] = {};
	struct sroce_ring_pool pool;
	size_t len;
	int i, shared = 0;

	sroce_ring_pool_init(&pool);
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		ring_pool_alloc(test, &pool, r[i], 4);
		len = r[i][0].len + r[i][1].len;
		KUNIT_EXPECT_NULL(test, memchr_inv(r[i][0].hdr, 0, len));
		KUNIT_EXPECT_LE(test, sroce_ring_start(&r[i][0]) + len, PAGE_SIZE);
		memset(r[i][0].hdr, i + 1, len);
		shared += sroce_ring_start(&r[i][0]) != 0;
	}
	KUNIT_EXPECT_GT(test, shared, 0);
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		len = r[i][0].len + r[i][1].len;
		KUNIT_EXPECT_NULL(test, memchr_inv(r[i][0].hdr, i + 1, len));
	}
	/* in another order than they were made, and the pool in between */
	for (i = 1; i <= ARRAY_SIZE(r); i++) {
		if (i == 4)
			sroce_ring_pool_drop(&pool);
		sroce_ring_free_pair(&r[i * 3 % 8][0], &r[i * 3 % 8][1]);
	}
}

static void ring_pool_large(struct kunit *test)
{
	struct sroce_ring r[3][2] = {};
	struct sroce_ring_pool pool;
	int i;

	sroce_ring_pool_init(&pool);
	ring_pool_alloc(test, &pool, r[0], 1);
	ring_pool_alloc(test, &pool, r[1], 256);
	ring_pool_alloc(test, &pool, r[2], 1);
	KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(r[1][0].hdr));
	KUNIT_EXPECT_PTR_EQ(test, sroce_ring_page(r[0][0].mem, 0), sroce_ring_page(r[2][0].mem, 0));
	sroce_ring_pool_drop(&pool);
	for (i = 0; i < ARRAY_SIZE(r); i++)
		sroce_ring_free_pair(&r[i][0], &r[i][1]);
}

static void ring_too_big(struct kunit *test)
{
	static const u32 cases[][2] = {
		{ 0, 16 }, { U32_MAX, 16 }, { 0x80000000, 16 },
		{ 0x80000001, 1 }, { 0x40000001, 1 }, { 1, U32_MAX },
		{ 1, 0xfffffff0 }, { 0x10000, 0x10000 }, { U32_MAX, U32_MAX },
		{ 0x7fffffff, 0x7fffffff }, { 1, 0x7fffffff },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sroce_ring r = {};

		KUNIT_EXPECT_EQ_MSG(test, sroce_ring_alloc(&r, cases[i][0], cases[i][1], false),
				    -EINVAL, "%x entries of %x", cases[i][0],
				    cases[i][1]);
		KUNIT_EXPECT_NULL(test, r.hdr);
		sroce_ring_free(&r);
	}
}

/* Indices run through all 32 bits, and the other side may lie */
static void ring_indices(struct kunit *test)
{
	static const u32 starts[] = { 0, 1, 7, 8, 0x7fffffff, 0x80000000,
				      0xfffffff8, 0xfffffffd, U32_MAX };
	struct sroce_ring r = {};
	u32 i, other;

	KUNIT_ASSERT_EQ(test, sroce_ring_alloc(&r, 8, 32, false), 0);
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		r.index = starts[i];
		for (other = 0; other <= 8; other++) {
			r.hdr->prod = r.index + other;
			KUNIT_EXPECT_EQ(test, sroce_ring_pending(&r), other);
		}
		for (other = 9; other; other <<= 1) {
			r.hdr->prod = r.index + other;
			KUNIT_EXPECT_EQ(test, sroce_ring_pending(&r), 0);
		}
		r.hdr->prod = r.index - 1;
		KUNIT_EXPECT_EQ(test, sroce_ring_pending(&r), 0);

		KUNIT_EXPECT_PTR_EQ(test, sroce_ring_entry(&r, starts[i]),
				    (void *)r.hdr + SROCE_RING_ENTRIES_OFFSET +
				    starts[i] % 8 * 32);
	}
	sroce_ring_free(&r);
}

static void ring_progress(struct kunit *test)
{
	struct sroce_ring r = {};

	KUNIT_ASSERT_EQ(test, sroce_ring_alloc(&r, 4, 16, false), 0);
	r.index = 0xfffffffe;
	sroce_ring_produced(&r, 3);
	KUNIT_EXPECT_EQ(test, r.index, 1);
	KUNIT_EXPECT_EQ(test, r.hdr->prod, 1);
	KUNIT_EXPECT_EQ(test, r.hdr->cons, 0);
	sroce_ring_consumed(&r, 2);
	KUNIT_EXPECT_EQ(test, r.index, 3);
	KUNIT_EXPECT_EQ(test, r.hdr->cons, 3);
	/* what the other side writes there changes nothing here */
	r.hdr->cons = 0x1234;
	sroce_ring_consumed(&r, 1);
	KUNIT_EXPECT_EQ(test, r.hdr->cons, 4);
	sroce_ring_free(&r);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(ring_sizes),
	KUNIT_CASE(ring_pairs),
	KUNIT_CASE(ring_pool),
	KUNIT_CASE(ring_pool_large),
	KUNIT_CASE(ring_too_big),
	KUNIT_CASE(ring_indices),
	KUNIT_CASE(ring_progress),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "sroce_ring",
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
