// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>

#include "memory/copy.h"
#include "memory/internal.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/pd.h"
#include "memory/ring.h"

#define MAX_PAGES 16

/* All that a region needs besides itself */
struct world {
	struct sroce_mr_table table;
	union {
		struct sroce_pd domain;
		struct ib_pd pd;
	};
	union {
		struct sroce_pd other_domain;
		struct ib_pd other_pd;
	};
	struct sroce_mw_list qp;	/* what two QPs have bound */
	struct sroce_mw_list other_qp;
	struct page *pages[MAX_PAGES];
};

static int world_init(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	int i;

	if (!w)
		return -ENOMEM;
	sroce_mr_table_init(&w->table);
	sroce_mw_list_init(&w->qp);
	sroce_mw_list_init(&w->other_qp);
	test->priv = w;
	for (i = 0; i < MAX_PAGES; i++) {
		w->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!w->pages[i])
			return -ENOMEM;
	}
	return 0;
}

static void world_exit(struct kunit *test)
{
	struct world *w = test->priv;
	unsigned long index;
	struct sroce_mr *mr;
	int i;

	if (!w)
		return;
	xa_for_each(&w->table.xa, index, mr)
		sroce_mr_free(mr);
	sroce_mr_table_destroy(&w->table);
	for (i = 0; i < MAX_PAGES; i++)
		if (w->pages[i])
			__free_page(w->pages[i]);
}

/*
 * A region of single pages in an order in which no two are neighbours, as far
 * as that is up to us: every second page, then the others.
 */
static struct sroce_mr *new_mr(struct kunit *test, enum sroce_mr_kind kind,
			       u64 iova, u64 offset, u64 length)
{
	struct world *w = test->priv;
	u32 n = DIV_ROUND_UP(offset + length, PAGE_SIZE);
	struct sroce_mr *mr;
	u32 i;

	KUNIT_ASSERT_LE(test, n, MAX_PAGES);
	mr = sroce_mr_alloc(&w->table, &w->pd, kind, MAX_PAGES);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	for (i = 0; i < n; i++)
		mr->pages[i] = w->pages[i * 2 % MAX_PAGES + i * 2 / MAX_PAGES];
	mr->nr_pages = n;
	mr->offset = offset;
	mr->iova = iova;
	mr->ibmr.iova = iova;
	mr->length = length;
	return mr;
}

static struct sroce_mr *new_user_mr(struct kunit *test, int access, u64 iova,
				    u64 offset, u64 length)
{
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, iova, offset, length);

	mr->access = access;
	sroce_mr_publish(mr);
	return mr;
}

/* The errno of a key check; the region is let go */
static int check(struct kunit *test, u32 key, const struct ib_pd *pd,
		 int access, u64 va, u64 len)
{
	struct world *w = test->priv;
	struct sroce_mr *mr;

	mr = sroce_mr_get(&w->table, key, pd, access, va, len);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	sroce_mr_put(mr);
	return 0;
}

static void *byte_at(const struct sroce_mr *mr, u64 va)
{
	u64 at = va - mr->iova + mr->offset;
	struct page *page = mr->pages[at >> mr->page_shift];

	return page_address(page) + (at & ((1ULL << mr->page_shift) - 1));
}

/* --- keys ---------------------------------------------------------------- */

static void keys_lookup(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 0, 4096);
	u32 key = mr->key;

	KUNIT_EXPECT_NE(test, key >> 8, 0);
	KUNIT_EXPECT_EQ(test, mr->ibmr.lkey, key);
	KUNIT_EXPECT_EQ(test, mr->ibmr.rkey, key);

	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, 0, 0x1000, 1), 0);
	KUNIT_EXPECT_EQ(test, check(test, key ^ 1, &w->pd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, key ^ 0x80, &w->pd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, key ^ 0x100, &w->pd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, key ^ 0x80000000, &w->pd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, 0, &w->pd, 0, 0x1000, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->other_pd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->users), 1);

	sroce_mr_free(mr);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, 0, 0x1000, 1), -EINVAL);
}

static void keys_unpublished(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, 0, 0, 4096);

	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, 0, 0, 1), -EINVAL);
	sroce_mr_publish(mr);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, 0, 0, 1), 0);
}

static void keys_random(struct kunit *test)
{
	struct sroce_mr *first = new_user_mr(test, 0, 0, 0, 1);
	u32 index_bits = 0, byte_bits = 0;
	int i;

	/* Some bit stays the same with a chance of 2^-55 */
	for (i = 0; i < 64; i++) {
		struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 1);

		index_bits |= (mr->key ^ first->key) >> 8;
		byte_bits |= (mr->key ^ first->key) & 0xff;
	}
	KUNIT_EXPECT_EQ(test, index_bits, 0xffffff);
	KUNIT_EXPECT_EQ(test, byte_bits, 0xff);
}

static u32 taken_key;

static u32 choose_taken(void)
{
	return taken_key;
}

/* When no key is free it is an error, and not an endless search */
static void keys_none_free(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 1);
	struct sroce_mr *late;

	late = sroce_mr_alloc_heir(mr, &w->pd, SROCE_MR_USER, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, late);
	taken_key = mr->key;
	KUNIT_EXPECT_EQ(test, sroce_mr_insert(late, choose_taken), -ENOSPC);
	taken_key += 1 << KEY_INDEX_SHIFT;
	KUNIT_EXPECT_EQ(test, sroce_mr_insert(late, choose_taken), 0);
	KUNIT_EXPECT_EQ(test, late->ibmr.lkey, taken_key);
}

static void keys_rights(struct kunit *test)
{
	static const int rights[] = {
		IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_WRITE,
		IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_ATOMIC,
		IB_ACCESS_MW_BIND,
	};
	struct world *w = test->priv;
	int has, wants;

	for (has = 0; has < ARRAY_SIZE(rights); has++) {
		struct sroce_mr *mr = new_user_mr(test, rights[has], 0, 0, 8);

		KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, 0, 0, 8), 0);
		for (wants = 0; wants < ARRAY_SIZE(rights); wants++)
			KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, rights[wants], 0, 8),
					has == wants ? 0 : -EACCES);
		KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd,
					    rights[has] | rights[(has + 1) % 5],
					    0, 8), -EACCES);
	}
}

/* Which error comes first when there are several */
static void keys_check_order(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, 0, 0, 8);
	const int want = IB_ACCESS_REMOTE_WRITE;

	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, want, 9, 1), -EINVAL);
	sroce_mr_publish(mr);
	KUNIT_EXPECT_EQ(test, check(test, mr->key ^ 1, &w->pd, want, 9, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->other_pd, want, 9, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, want, 9, 1), -EACCES);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, 0, 9, 1), -ERANGE);
}

static void expect_bounds(struct kunit *test, u64 iova, u64 length)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, iova, 0, length);
	const struct {
		u64 va, len;
		int want;
	} cases[] = {
		{ iova, 1, 0 },
		{ iova, length, 0 },
		{ iova + length - 1, 1, 0 },
		{ iova + 1, length - 1, 0 },
		{ iova, length + 1, -ERANGE },
		{ iova + 1, length, -ERANGE },
		{ iova - 1, 1, -ERANGE },
		{ iova - 1, 2, -ERANGE },
		{ iova + length, 1, -ERANGE },
		{ iova + length, U64_MAX, -ERANGE },
		{ iova, U64_MAX, -ERANGE },
		{ iova + 1, U64_MAX, -ERANGE },
		{ U64_MAX - iova, U64_MAX, -ERANGE },
		{ iova + (1ULL << 63), 1, -ERANGE },
		{ iova - (1ULL << 63), 1ULL << 63, -ERANGE },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int err = check(test, mr->key, &w->pd, 0, cases[i].va,
				cases[i].len);

		KUNIT_EXPECT_EQ_MSG(test, err, cases[i].want,
				    "iova %llx length %llx case %d", iova,
				    length, i);
	}
	sroce_mr_free(mr);
}

static void keys_bounds(struct kunit *test)
{
	expect_bounds(test, 0x7f0012345678, 5000);
	expect_bounds(test, 0, 4096);			/* zero based */
	expect_bounds(test, U64_MAX - 4999, 5000);	/* up to the last byte */
	expect_bounds(test, U64_MAX - 5000, 5000);
	expect_bounds(test, 1ULL << 63, 4097);
}

static void keys_of_nothing(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 0, 0);

	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, 0, 0x1000, 1),
			-ERANGE);
}

struct freeing {
	struct sroce_mr *mr;
	struct sroce_mr *heir;
	struct completion done;
};

static int free_region(void *arg)
{
	struct freeing *f = arg;

	sroce_mr_free(f->mr);
	complete(&f->done);
	return 0;
}

/* sroce_mr_free() must wait for users, and give the key up before it waits */
static void keys_free_waits(struct kunit *test)
{
	struct world *w = test->priv;
	struct freeing f = { .mr = new_user_mr(test, 0, 0, 0, 8) };
	u32 key = f.mr->key;
	int tries;

	KUNIT_ASSERT_PTR_EQ(test, sroce_mr_get(&w->table, key, &w->pd, 0, 0, 8),
			    f.mr);
	sroce_mr_hold(f.mr);
	init_completion(&f.done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(free_region, &f, "free")));

	for (tries = 0; tries < 100 && xa_load(&w->table.xa, key >> 8); tries++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, 0, 0, 8), -EINVAL);
	sroce_mr_put(f.mr);
	KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&f.done, HZ / 10), 0);
	sroce_mr_put(f.mr);
	wait_for_completion(&f.done);
}

/* A region with the rights, address and domain of a re-registration */
static struct sroce_mr *new_heir(struct kunit *test, struct sroce_mr *old)
{
	struct world *w = test->priv;
	struct sroce_mr *mr;

	mr = sroce_mr_alloc_heir(old, &w->other_pd, SROCE_MR_USER, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	mr->pages[0] = w->pages[1];
	mr->nr_pages = 1;
	mr->access = IB_ACCESS_REMOTE_READ;
	mr->iova = 0x5000;
	mr->length = 16;
	return mr;
}

static void keys_heir_unused(struct kunit *test)
{
	struct sroce_mr *old = new_user_mr(test, 0, 0, 0, 8);
	struct sroce_mr *heir = new_heir(test, old);
	struct world *w = test->priv;

	KUNIT_EXPECT_EQ(test, heir->ibmr.rkey, old->key);
	KUNIT_EXPECT_EQ(test, heir->ibmr.lkey, old->key);
	KUNIT_EXPECT_EQ(test, check(test, old->key, &w->other_pd, 0, 0x5000, 1),
			-EINVAL);
	sroce_mr_free(heir);
	KUNIT_EXPECT_EQ(test, check(test, old->key, &w->pd, 0, 0, 8), 0);
}

static int replace_region(void *arg)
{
	struct freeing *f = arg;

	sroce_mr_replace(f->mr, f->heir);
	complete(&f->done);
	return 0;
}

/* The key means the new region at once; the old one is given up without users */
static void keys_replace(struct kunit *test)
{
	struct freeing f = { .mr = new_user_mr(test, 0, 0, 0, 8) };
	const int right = IB_ACCESS_REMOTE_READ;
	struct world *w = test->priv;
	u32 key = f.mr->key;
	int tries;

	f.heir = new_heir(test, f.mr);
	KUNIT_ASSERT_PTR_EQ(test, sroce_mr_get(&w->table, key, &w->pd, 0, 0, 8),
			    f.mr);
	init_completion(&f.done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(replace_region, &f, "replace")));
	for (tries = 0; tries < 100 &&
	     xa_load(&w->table.xa, key >> 8) != f.heir; tries++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, 0, 0, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->other_pd, right, 0x5000, 16),
			0);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->other_pd, right, 0x5000, 17),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&f.done, HZ / 10), 0);
	sroce_mr_put(f.mr);
	wait_for_completion(&f.done);
	sroce_mr_free(f.mr);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->other_pd, right, 0x5000, 16),
			0);
}

/* --- from ranges to pages ------------------------------------------------ */

/* Every byte of a range must be where byte_at() says, in order */
static void expect_bvecs(struct kunit *test, const struct sroce_mr *mr, u64 va,
			 u32 len, unsigned int max)
{
	struct bio_vec bv[MAX_PAGES + 1];
	unsigned int n, i;
	u32 done, sum = 0;

	n = sroce_mr_bvecs(mr, va, len, bv, max, &done);
	KUNIT_ASSERT_LE(test, n, max);
	for (i = 0; i < n; i++) {
		void *first = page_address(bv[i].bv_page) + bv[i].bv_offset;
		u32 at;

		KUNIT_EXPECT_LT(test, bv[i].bv_offset, PAGE_SIZE);
		KUNIT_EXPECT_NE(test, bv[i].bv_len, 0);
		for (at = 0; at < bv[i].bv_len; at++)
			if (byte_at(mr, va + sum + at) != first + at)
				break;
		KUNIT_EXPECT_EQ_MSG(test, at, bv[i].bv_len,
				    "va +%llx len %x entry %u", va - mr->iova,
				    len, i);
		sum += bv[i].bv_len;
		/* Neighbours in memory must have been coupled */
		if (i)
			KUNIT_EXPECT_PTR_NE(test, first,
					    page_address(bv[i - 1].bv_page) +
					    bv[i - 1].bv_offset +
					    bv[i - 1].bv_len);
	}
	KUNIT_EXPECT_EQ(test, done, sum);
	if (n < max)
		KUNIT_EXPECT_EQ(test, done, len);
	else
		KUNIT_EXPECT_LE(test, done, len);
}

static void expect_ranges(struct kunit *test, const struct sroce_mr *mr)
{
	const u64 block = 1ULL << mr->page_shift;
	const u64 step[] = { 0, 1, 7, block / 2, block - 1, block, block + 1,
			     2 * block - 1, 2 * block, 3 * block };
	unsigned int i, j, max;

	for (i = 0; i < ARRAY_SIZE(step); i++)
		for (j = 0; j < ARRAY_SIZE(step); j++) {
			if (!step[j] || step[i] + step[j] > mr->length)
				continue;
			for (max = 1; max < 5; max++)
				expect_bvecs(test, mr, mr->iova + step[i],
					     step[j], max);
			expect_bvecs(test, mr, mr->iova + step[i], step[j],
				     MAX_PAGES);
		}
	expect_bvecs(test, mr, mr->iova, mr->length, MAX_PAGES);
	expect_bvecs(test, mr, mr->iova + mr->length - 1, 1, MAX_PAGES);
}

static void bvecs_pages(struct kunit *test)
{
	expect_ranges(test, new_user_mr(test, 0, 0x10000, 0, 4 * PAGE_SIZE));
	expect_ranges(test, new_user_mr(test, 0, 0x10123, 0x123, 4 * PAGE_SIZE));
	/* iova and offset need not agree in the low bits (zero based) */
	expect_ranges(test, new_user_mr(test, 0, 0, 0xabc, 4 * PAGE_SIZE + 5));
	expect_ranges(test, new_user_mr(test, 0, U64_MAX - 3 * PAGE_SIZE + 1, 1,
					3 * PAGE_SIZE));
}

static void bvecs_neighbours(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 100, 6 * PAGE_SIZE);
	struct page *pages = alloc_pages(GFP_KERNEL | __GFP_COMP, 2);
	struct bio_vec bv[4];
	u32 done;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	/* lone, three in a row, one backwards, one twice */
	mr->pages[0] = w->pages[0];
	mr->pages[1] = pages + 1;
	mr->pages[2] = pages + 2;
	mr->pages[3] = pages + 3;
	mr->pages[4] = pages;
	mr->pages[5] = pages;
	mr->pages[6] = w->pages[1];
	mr->nr_pages = 7;
	KUNIT_EXPECT_EQ(test, sroce_mr_bvecs(mr, PAGE_SIZE, 2 * PAGE_SIZE, bv, 4, &done),
			1);
	KUNIT_EXPECT_EQ(test, done, 2 * PAGE_SIZE);
	KUNIT_EXPECT_PTR_EQ(test, bv[0].bv_page, pages + 1);
	KUNIT_EXPECT_EQ(test, bv[0].bv_offset, 100);
	expect_ranges(test, mr);
	sroce_mr_free(mr);
	__free_pages(pages, 2);
}

#define BIG_ORDER 2

static void bvecs_big_blocks(struct kunit *test)
{
	const u64 block = PAGE_SIZE << BIG_ORDER;
	struct sroce_mr *mr;
	int i;

	mr = new_mr(test, SROCE_MR_USER, 0x7f0000000000, 0, 1);
	mr->page_shift = PAGE_SHIFT + BIG_ORDER;
	mr->nr_pages = 4;
	mr->offset = PAGE_SIZE + 50;
	mr->length = 4 * block - mr->offset;
	for (i = 0; i < 4; i++) {
		mr->pages[i] = alloc_pages(GFP_KERNEL | __GFP_COMP, BIG_ORDER);
		KUNIT_ASSERT_NOT_NULL(test, mr->pages[i]);
	}
	sroce_mr_publish(mr);
	expect_ranges(test, mr);
	for (i = 0; i < 4; i++)
		__free_pages(mr->pages[i], BIG_ORDER);
}

/* What the table does not reach is not touched, whatever the caller says */
static void bvecs_outside(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 2 * PAGE_SIZE);
	struct bio_vec bv[4];
	u32 done;

	KUNIT_EXPECT_EQ(test, sroce_mr_bvecs(mr, 2 * PAGE_SIZE, 1, bv, 4, &done),
			0);
	KUNIT_EXPECT_EQ(test, done, 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_bvecs(mr, U64_MAX, 1, bv, 4, &done), 0);
	KUNIT_EXPECT_EQ(test, done, 0);
	sroce_mr_bvecs(mr, PAGE_SIZE, 2 * PAGE_SIZE, bv, 4, &done);
	KUNIT_EXPECT_EQ(test, done, PAGE_SIZE);
	sroce_mr_bvecs(mr, 0, 8, bv, 0, &done);
	KUNIT_EXPECT_EQ(test, done, 0);
}

static struct sroce_mr *new_dma_mr(struct kunit *test, int access)
{
	struct world *w = test->priv;
	struct sroce_mr *mr;

	mr = sroce_mr_alloc(&w->table, &w->pd, SROCE_MR_DMA, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	mr->access = access;
	sroce_mr_publish(mr);
	return mr;
}

static void dma_region(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *mr = new_dma_mr(test, IB_ACCESS_LOCAL_WRITE);
	u64 va = (uintptr_t)page_address(w->pages[0]) + 10;
	struct bio_vec bv[2];
	u32 done;

	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd,
				    IB_ACCESS_LOCAL_WRITE, va, 100), 0);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd,
				    IB_ACCESS_REMOTE_READ, va, 100), -EACCES);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, 0, U64_MAX - 5, 8),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, sroce_mr_bvecs(mr, va, 100, bv, 2, &done), 1);
	KUNIT_EXPECT_EQ(test, done, 100);
	KUNIT_EXPECT_PTR_EQ(test, bv[0].bv_page, w->pages[0]);
	KUNIT_EXPECT_EQ(test, bv[0].bv_offset, 10);
}

/* A peer's address must not lead to where no memory is */
static void dma_region_remote(struct kunit *test)
{
	const int access = IB_ACCESS_REMOTE_READ;
	struct world *w = test->priv;
	struct sroce_mr *mr = new_dma_mr(test, access);
	u64 va = (uintptr_t)page_address(w->pages[0]);

	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, access, va, 4096), 0);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, access, 0x10, 8),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, access, va, 1ULL << 46),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, access,
				    0xdead000000000000, 8), -ERANGE);
}

static void from_virt(struct kunit *test)
{
	const size_t size = 3 * PAGE_SIZE;
	u8 *v = vmalloc(size), *k = kmalloc(size, GFP_KERNEL);
	struct bio_vec bv[8];
	u8 *linear = kunit_kmalloc(test, size, GFP_KERNEL);
	struct bvec_iter it = { .bi_size = size - 200 };
	unsigned int n;

	KUNIT_ASSERT_TRUE(test, v && k && linear);
	get_random_bytes(v, size);
	get_random_bytes(k, size);

	n = sroce_bvec_from_virt(bv, 8, v + 100, size - 200);
	KUNIT_EXPECT_EQ(test, n, 3);
	sroce_bvec_read(linear, bv, &it, size - 200);
	KUNIT_EXPECT_MEMEQ(test, linear, v + 100, size - 200);
	KUNIT_EXPECT_EQ(test, sroce_bvec_from_virt(bv, 2, v + 100, size - 200), 2);
	KUNIT_EXPECT_EQ(test, bv[0].bv_len + bv[1].bv_len, 2 * PAGE_SIZE - 100);

	it = (struct bvec_iter){ .bi_size = size - 200 };
	n = sroce_bvec_from_virt(bv, 8, k + 100, size - 200);
	KUNIT_EXPECT_EQ(test, n, 1);
	sroce_bvec_read(linear, bv, &it, size - 200);
	KUNIT_EXPECT_MEMEQ(test, linear, k + 100, size - 200);
	KUNIT_EXPECT_EQ(test, sroce_bvec_from_virt(bv, 8, k, 0), 0);

	vfree(v);
	kfree(k);
}

/* --- pinned user memory -------------------------------------------------- */

/* An umem over pieces of memory; the first begins @offset bytes in */
static void make_umem(struct kunit *test, struct ib_umem *umem,
		      void *const *ptr, const u32 *len, int n, u32 offset)
{
	struct sg_table *sgt = &umem->sgt_append.sgt;
	struct scatterlist *sg;
	u64 sum = 0;
	int i;

	memset(umem, 0, sizeof(*umem));
	KUNIT_ASSERT_EQ(test, sg_alloc_table(sgt, n, GFP_KERNEL), 0);
	for_each_sgtable_sg(sgt, sg, i) {
		sg_set_buf(sg, ptr[i], len[i]);
		sg_dma_address(sg) = (uintptr_t)ptr[i];
		sg_dma_len(sg) = len[i];
		sum += len[i];
	}
	umem->address = offset;
	umem->length = sum - offset;
}

/* Walk a region and the pieces it was made of side by side */
static void expect_umem(struct kunit *test, struct ib_umem *umem, u8 page_shift)
{
	struct sg_table *sgt = &umem->sgt_append.sgt;
	u32 skip = ib_umem_offset(umem);
	struct scatterlist *sg;
	struct sroce_mr *mr;
	u64 va = 0x7000;
	u32 at;
	int i;

	mr = new_mr(test, SROCE_MR_USER, va, 0, 1);
	mr->umem = umem;
	mr->length = umem->length;
	mr->page_shift = page_shift;
	sroce_mr_set_pages(mr);
	KUNIT_EXPECT_EQ(test, mr->length, umem->length);
	for_each_sgtable_dma_sg(sgt, sg, i)
		for (at = i ? 0 : skip; at < sg_dma_len(sg); at++, va++)
			if (byte_at(mr, va) != sg_virt(sg) + at) {
				KUNIT_FAIL(test, "piece %d byte %u", i, at);
				break;
			}
	KUNIT_EXPECT_EQ(test, mr->nr_pages,
			(mr->offset + mr->length + (1 << page_shift) - 1) >>
			page_shift);
	sroce_mr_free(mr);
	sg_free_table(sgt);
}

static void umem_pages(struct kunit *test)
{
	const u32 big = PAGE_SIZE << 2;
	u8 *a = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_COMP, 2);
	u8 *b = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_COMP, 2);
	u8 *c = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_COMP, 2);
	struct ib_umem umem;

	KUNIT_ASSERT_TRUE(test, a && b && c);

	/* single pages, one of them twice running */
	make_umem(test, &umem,
		  (void *[]){ a, a, c + PAGE_SIZE, b },
		  (u32 []){ PAGE_SIZE, PAGE_SIZE, PAGE_SIZE, PAGE_SIZE }, 4, 77);
	expect_umem(test, &umem, PAGE_SHIFT);

	/* pieces of several pages, cut into single ones */
	make_umem(test, &umem, (void *[]){ a + PAGE_SIZE, c, b },
		  (u32 []){ 3 * PAGE_SIZE, 2 * PAGE_SIZE, PAGE_SIZE }, 3, 4095);
	expect_umem(test, &umem, PAGE_SHIFT);

	/* blocks of four pages; begins and ends inside one */
	make_umem(test, &umem, (void *[]){ a + 2 * PAGE_SIZE, c, b },
		  (u32 []){ 2 * PAGE_SIZE, big, PAGE_SIZE }, 3, 123);
	expect_umem(test, &umem, PAGE_SHIFT + 2);

	/* a block that arrives in two pieces, and one twice running */
	make_umem(test, &umem, (void *[]){ b, b + PAGE_SIZE, a, a },
		  (u32 []){ PAGE_SIZE, 3 * PAGE_SIZE, big, big }, 4, 0);
	expect_umem(test, &umem, PAGE_SHIFT + 2);

	free_pages((unsigned long)a, 2);
	free_pages((unsigned long)b, 2);
	free_pages((unsigned long)c, 2);
}

/* --- copies -------------------------------------------------------------- */

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

static void expect_atomics(struct kunit *test, const struct sroce_mr *mr,
			   u64 va)
{
	const u64 a = 0x1122334455667788, b = 0xfedcba9876543210;

	store(mr, va, a);
	KUNIT_EXPECT_EQ(test, sroce_atomic(mr, va, true, b, 5), a);
	KUNIT_EXPECT_EQ(test, load(mr, va), a);
	KUNIT_EXPECT_EQ(test, sroce_atomic(mr, va, true, a, b), a);
	KUNIT_EXPECT_EQ(test, load(mr, va), b);

	KUNIT_EXPECT_EQ(test, sroce_atomic(mr, va, false, 99, a), b);
	KUNIT_EXPECT_EQ(test, load(mr, va), a + b);
	store(mr, va, U64_MAX);
	KUNIT_EXPECT_EQ(test, sroce_atomic(mr, va, false, 0, 3), U64_MAX);
	KUNIT_EXPECT_EQ(test, load(mr, va), 2);

	sroce_atomic_write(mr, va, a);
	KUNIT_EXPECT_EQ(test, load(mr, va), a);
}

static void atomics(struct kunit *test)
{
	struct world *w = test->priv;
	u64 va;

	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 0, 2 * PAGE_SIZE);

	for (va = 0x1000; va < 0x1000 + 2 * PAGE_SIZE; va += 8)
		expect_atomics(test, mr, va);
	/* Neighbours are left alone */
	memset(page_address(mr->pages[0]), 0xa5, PAGE_SIZE);
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
	KUNIT_EXPECT_EQ(test, sroce_atomic(mr, va, false, 0, 3), 7);
	KUNIT_EXPECT_EQ(test, *(u64 *)(uintptr_t)va, 10);
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
	u64 n = 0;

	wait_for_completion(&r->start);
	/* Long enough that the racers do meet */
	for (end = jiffies + HZ / 10; time_before(jiffies, end); n++)
		sroce_atomic(r->mr, 8, false, 0, 1);
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

/* --- fast registration --------------------------------------------------- */

static void fast_register(struct kunit *test)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	struct world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096);
	u32 old = mr->key, key = mr->key ^ 0x5a;

	KUNIT_EXPECT_EQ(test, check(test, old, &w->pd, 0, 0, 8), -EINVAL);
	/* not valid yet: nothing to invalidate */
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, old, &w->pd, &w->qp, false),
			-EINVAL);

	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->other_pd, key, access),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key ^ 0x100, access),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key, IB_ACCESS_REMOTE_WRITE),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key, IB_ACCESS_REMOTE_ATOMIC),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key, access | BIT(15)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key, access | IB_ACCESS_ON_DEMAND),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, 0, 0, 8), -EINVAL);

	/* the consumer may choose another address after mapping (xprtrdma) */
	mr->ibmr.iova = 0x500000000;
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key, access), 0);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, access, 0x500000000, 8),
			0);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, 0, 0, 8), -ERANGE);
	KUNIT_EXPECT_EQ(test, check(test, old, &w->pd, 0, 0x500000000, 8),
			-EINVAL);
	/* valid already */
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key, access),
			-EINVAL);
}

static void fast_invalidate(struct kunit *test)
{
	const int access = IB_ACCESS_REMOTE_READ;
	struct world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096);
	u32 key = mr->key;

	KUNIT_ASSERT_EQ(test, sroce_mr_register(mr, &w->pd, key, access), 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 1, &w->pd, &w->qp, false),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 0x100, &w->pd, &w->qp, false),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key, &w->other_pd, &w->qp, false),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, access, 0, 8), 0);

	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key, &w->pd, &w->qp, true),
			0);
	KUNIT_EXPECT_EQ(test, check(test, key, &w->pd, access, 0, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key, &w->pd, &w->qp, true),
			-EINVAL);

	/* again, without a right for the peer */
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd, key ^ 0xff, 0), 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 0xff, &w->pd, &w->qp, true),
			-EACCES);
	KUNIT_EXPECT_EQ(test, check(test, key ^ 0xff, &w->pd, 0, 0, 8), 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 0xff, &w->pd, &w->qp, false),
			0);
	KUNIT_EXPECT_EQ(test, check(test, key ^ 0xff, &w->pd, 0, 0, 8), -EINVAL);
}

/**
 * struct registrar - who registers a region for its next life
 * @w: world
 * @mr: region
 * @key: its next key
 * @here: it has begun
 * @go: it may register
 * @done: it has registered
 * @err: what came of it
 */
struct registrar {
	struct world *w;
	struct sroce_mr *mr;
	u32 key;
	struct completion here;
	bool go;
	struct completion done;
	int err;
};

static int registrar_thread(void *arg)
{
	struct registrar *r = arg;

	complete(&r->here);
	while (!READ_ONCE(r->go))
		cpu_relax();
	r->err = sroce_mr_register(r->mr, &r->w->pd, r->key,
				   IB_ACCESS_REMOTE_READ);
	complete(&r->done);
	return 0;
}

/*
 * A peer invalidates the key of a region's last life while the region is registered
 * for the next. Had it seen the old key, and then the new life, it would end that: so
 * there is no new life as long as it looks.
 */
static void fast_register_waits(struct kunit *test)
{
	struct world *w = test->priv;
	struct registrar r = {
		.w = w,
		.mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096),
	};
	u32 old = r.mr->key;
	struct task_struct *task;
	bool valid;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two processors");
	r.key = old ^ 1;
	init_completion(&r.here);
	init_completion(&r.done);
	KUNIT_ASSERT_EQ(test, 0, sroce_mr_register(r.mr, &w->pd, old,
						   IB_ACCESS_REMOTE_READ));
	KUNIT_ASSERT_EQ(test, 0, sroce_mr_invalidate(&w->table, old, &w->pd,
						     &w->qp, true));
	task = kthread_create(registrar_thread, &r, "sroce_registrar");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	wait_for_completion(&r.here);
	/* as the peer's invalidation does it */
	spin_lock_bh(&r.mr->lock);
	WRITE_ONCE(r.go, true);
	mdelay(5);
	valid = READ_ONCE(r.mr->valid);
	spin_unlock_bh(&r.mr->lock);
	KUNIT_EXPECT_FALSE(test, valid);
	wait_for_completion(&r.done);
	kthread_stop_put(task);
	KUNIT_EXPECT_EQ(test, r.err, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_mr_invalidate(&w->table, old, &w->pd,
							   &w->qp, true));
	KUNIT_EXPECT_EQ(test, check(test, r.key, &w->pd, IB_ACCESS_REMOTE_READ, 0,
				    8), 0);
}

/* Neither is possible with a region of another kind */
static void fast_other_kinds(struct kunit *test)
{
	struct world *w = test->priv;
	struct sroce_mr *user = new_user_mr(test, IB_ACCESS_REMOTE_READ, 0, 0, 8);
	struct sroce_mr *fresh = new_mr(test, SROCE_MR_USER, 0, 0, 8);
	struct sroce_mr *dma = new_dma_mr(test, IB_ACCESS_REMOTE_READ);

	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, user->key, &w->pd, &w->qp, true),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, dma->key, &w->pd, &w->qp, false),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(fresh, &w->pd, fresh->key, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, user->key, &w->pd, 0, 0, 8), 0);
}

/* --- windows --------------------------------------------------------------- */

#define WINDOW_MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND)

static struct sroce_mr *new_window(struct kunit *test, bool type2)
{
	struct world *w = test->priv;
	struct sroce_mr *mw = sroce_mw_alloc(&w->table, &w->pd, type2);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mw);
	return mw;
}

/* A bind that is allowed, of bytes 100 to 4099 of @mr */
static struct sroce_mw_bind good_bind(struct kunit *test,
				      const struct sroce_mr *mw,
				      const struct sroce_mr *mr)
{
	struct world *w = test->priv;

	return (struct sroce_mw_bind){
		.key = mw->key,
		.new_key = (mw->key & ~0xff) | ((mw->key + 1) & 0xff),
		.lkey = mr->key,
		.addr = mr->iova + 100,
		.length = 4000,
		.access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		.pd = &w->pd,
		.owner = &w->qp,
	};
}

static int bind(struct kunit *test, struct sroce_mw_bind b)
{
	struct world *w = test->priv;

	return sroce_mw_bind(&w->table, &b);
}

static void window_bounds(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0x12345000,
					  7, 3 * PAGE_SIZE);
	struct sroce_mr *mw = new_window(test, false);
	struct sroce_mw_bind b = good_bind(test, mw, mr);
	const int read = IB_ACCESS_REMOTE_READ;
	struct world *w = test->priv;

	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read, b.addr, 1),
			-EINVAL);
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, mw->key, b.new_key);
	KUNIT_EXPECT_EQ(test, check(test, b.key, &w->pd, read, b.addr, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->other_pd, read, b.addr, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read, b.addr, 4000), 0);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read, b.addr - 1, 1),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read, b.addr, 4001),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read,
				    b.addr, U64_MAX), -ERANGE);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd,
				    IB_ACCESS_REMOTE_ATOMIC, b.addr, 8), -EACCES);
	/* the region itself grants none of this, and a window has no L_Key */
	KUNIT_EXPECT_EQ(test, check(test, mr->key, &w->pd, read, b.addr, 1),
			-EACCES);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, 0, b.addr, 1), -EINVAL);
	b.access |= IB_ACCESS_LOCAL_WRITE;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_NE(test, check(test, mw->key, &w->pd, IB_ACCESS_LOCAL_WRITE,
				    b.addr, 1), 0);
	KUNIT_EXPECT_EQ(test, byte_at(mw, b.addr) == byte_at(mr, b.addr), true);
	expect_ranges(test, mw);
	/* the whole of it, and then nothing */
	b.addr = mr->iova;
	b.length = mr->length;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	expect_ranges(test, mw);
	b.length = 0;
	b.lkey = 0;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, check(test, b.new_key, &w->pd, read, b.addr, 1),
			-EINVAL);
	sroce_mr_free(mw);
}

static void window_zero_based(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0x12345000,
					  0, 3 * PAGE_SIZE);
	struct sroce_mr *mw = new_window(test, true);
	struct sroce_mw_bind b = good_bind(test, mw, mr);
	const int read = IB_ACCESS_REMOTE_READ;
	struct world *w = test->priv;

	b.access |= IB_ZERO_BASED;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read, 0, 4000), 0);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read, 0, 4001), -ERANGE);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, read, b.addr, 1),
			-ERANGE);
	KUNIT_EXPECT_PTR_EQ(test, byte_at(mw, 0), byte_at(mr, b.addr));
	expect_ranges(test, mw);
	sroce_mr_free(mw);
}

static void window_rules(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0x12345000,
					  0, 3 * PAGE_SIZE);
	struct sroce_mr *closed = new_user_mr(test, IB_ACCESS_LOCAL_WRITE, 0, 0,
					      8192);
	struct sroce_mr *read_only = new_user_mr(test, IB_ACCESS_MW_BIND, 0, 0,
						 8192);
	struct sroce_mr *zero = new_user_mr(test, WINDOW_MR_ACCESS |
					    IB_ZERO_BASED, 0, 0, 8192);
	struct sroce_mr *one = new_window(test, false);
	struct sroce_mr *two = new_window(test, true);
	struct world *w = test->priv;
	const struct sroce_mw_bind good = good_bind(test, two, mr);
	struct sroce_mw_bind b = good;

#define REFUSED(change)							\
	do {								\
		b = good;						\
		change;							\
		KUNIT_EXPECT_EQ_MSG(test, bind(test, b), -EINVAL, #change); \
	} while (0)

	REFUSED(b.key = mr->key);
	REFUSED(b.key ^= 0x100);
	REFUSED(b.new_key ^= 0x100);
	REFUSED(b.pd = &w->other_pd);
	REFUSED(b.lkey ^= 1);
	REFUSED(b.lkey = two->key);
	REFUSED(b.lkey = closed->key; b.addr = 0);
	REFUSED(b.lkey = read_only->key; b.addr = 0);
	REFUSED(b.lkey = zero->key; b.addr = 0);
	REFUSED(b.length = 0);
	REFUSED(b.addr = mr->iova - 1);
	REFUSED(b.length = 3 * PAGE_SIZE - 99);
	REFUSED(b.length = U64_MAX);
	REFUSED(b.access |= IB_ACCESS_MW_BIND);
	REFUSED(b.access |= IB_ACCESS_ON_DEMAND);
	REFUSED(b.access |= IB_ACCESS_FLUSH_GLOBAL);
	REFUSED(b = good_bind(test, one, mr); b.access |= IB_ZERO_BASED);
#undef REFUSED
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 0);

	/* reading needs no local write right */
	b = good;
	b.lkey = read_only->key;
	b.addr = 0;
	b.access = IB_ACCESS_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	/* type 2 is to be free first, type 1 may be bound again */
	KUNIT_EXPECT_EQ(test, bind(test, b), -EINVAL);
	b.key = one->key;
	b.new_key = one->key;
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&read_only->windows), 2);
	sroce_mr_free(one);
	sroce_mr_free(two);
	KUNIT_EXPECT_EQ(test, atomic_read(&read_only->windows), 0);
}

static int invalidate(struct kunit *test, u32 key,
		      const struct sroce_mw_list *owned)
{
	struct world *w = test->priv;

	return sroce_mr_invalidate(&w->table, key, &w->pd, owned, true);
}

static void window_owner(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0, 0, 8192);
	struct sroce_mr *one = new_window(test, false);
	struct sroce_mr *two = new_window(test, true);
	struct world *w = test->priv;

	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->qp), -EINVAL);
	KUNIT_ASSERT_EQ(test, bind(test, good_bind(test, one, mr)), 0);
	KUNIT_ASSERT_EQ(test, bind(test, good_bind(test, two, mr)), 0);
	KUNIT_EXPECT_TRUE(test, sroce_mr_serves(one, &w->other_qp));
	KUNIT_EXPECT_TRUE(test, sroce_mr_serves(two, &w->qp));
	KUNIT_EXPECT_FALSE(test, sroce_mr_serves(two, &w->other_qp));

	KUNIT_EXPECT_EQ(test, invalidate(test, one->key, &w->qp), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->other_qp), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key ^ 1, &w->qp), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->qp), 0);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->qp), -EINVAL);

	KUNIT_ASSERT_EQ(test, bind(test, good_bind(test, two, mr)), 0);
	sroce_mw_disown(&w->other_qp);
	KUNIT_EXPECT_TRUE(test, two->valid);
	sroce_mw_disown(&w->qp);
	KUNIT_EXPECT_FALSE(test, two->valid);
	KUNIT_EXPECT_TRUE(test, one->valid);
	sroce_mr_free(one);
	sroce_mr_free(two);
}

/* A key that somebody copies with is not given to other memory */
static void window_in_use(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0, 0, 8192);
	struct sroce_mr *mw = new_window(test, false);
	struct sroce_mw_bind b = good_bind(test, mw, mr);
	struct world *w = test->priv;
	struct sroce_mr *held;

	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	held = sroce_mr_get(&w->table, mw->key, &w->pd, IB_ACCESS_REMOTE_READ,
			    b.addr, 1);
	KUNIT_ASSERT_PTR_EQ(test, held, mw);
	b.addr += 8;
	KUNIT_EXPECT_EQ(test, bind(test, b), -EAGAIN);
	KUNIT_EXPECT_EQ(test, check(test, mw->key, &w->pd, IB_ACCESS_REMOTE_READ,
				    b.addr, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
	sroce_mr_put(held);
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, mw->iova, b.addr);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
	sroce_mr_free(mw);
}

/* A region with a window must not go; an invalid window is in nobody's way */
static void window_seals(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0, 0, 8192);
	struct sroce_mr *mw = new_window(test, true);
	struct sroce_mw_bind b = good_bind(test, mw, mr);
	struct world *w = test->priv;

	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_FALSE(test, sroce_mr_seal(mr));
	KUNIT_EXPECT_EQ(test, invalidate(test, mw->key, &w->qp), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(mr));
	KUNIT_EXPECT_PTR_EQ(test, mw->parent, NULL);
	KUNIT_EXPECT_EQ(test, bind(test, b), -EINVAL);
	sroce_mr_unseal(mr);
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	sroce_mr_free(mw);
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(mr));
}

/* --- rings --------------------------------------------------------------- */

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
			r.hdr->cons = r.index - other;
			KUNIT_EXPECT_EQ(test, sroce_ring_room(&r), 8 - other);
		}
		for (other = 9; other; other <<= 1) {
			r.hdr->prod = r.index + other;
			KUNIT_EXPECT_EQ(test, sroce_ring_pending(&r), 0);
			r.hdr->cons = r.index - other;
			KUNIT_EXPECT_EQ(test, sroce_ring_room(&r), 0);
		}
		r.hdr->prod = r.index - 1;
		KUNIT_EXPECT_EQ(test, sroce_ring_pending(&r), 0);
		r.hdr->cons = r.index + 1;
		KUNIT_EXPECT_EQ(test, sroce_ring_room(&r), 0);

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

static struct kunit_case memory_cases[] = {
	KUNIT_CASE(keys_lookup),
	KUNIT_CASE(keys_unpublished),
	KUNIT_CASE(keys_random),
	KUNIT_CASE(keys_none_free),
	KUNIT_CASE(keys_rights),
	KUNIT_CASE(keys_check_order),
	KUNIT_CASE(keys_bounds),
	KUNIT_CASE(keys_of_nothing),
	KUNIT_CASE(keys_free_waits),
	KUNIT_CASE(keys_heir_unused),
	KUNIT_CASE(keys_replace),
	KUNIT_CASE(bvecs_pages),
	KUNIT_CASE(bvecs_neighbours),
	KUNIT_CASE(bvecs_big_blocks),
	KUNIT_CASE(bvecs_outside),
	KUNIT_CASE(dma_region),
	KUNIT_CASE(dma_region_remote),
	KUNIT_CASE(from_virt),
	KUNIT_CASE(umem_pages),
	KUNIT_CASE(copy_segments),
	KUNIT_CASE(copy_linear),
	KUNIT_CASE(copy_onto_itself),
	KUNIT_CASE(atomics),
	KUNIT_CASE(atomic_races),
	KUNIT_CASE(fast_register),
	KUNIT_CASE(fast_invalidate),
	KUNIT_CASE(fast_register_waits),
	KUNIT_CASE(fast_other_kinds),
	KUNIT_CASE(window_bounds),
	KUNIT_CASE(window_zero_based),
	KUNIT_CASE(window_rules),
	KUNIT_CASE(window_owner),
	KUNIT_CASE(window_in_use),
	KUNIT_CASE(window_seals),
	KUNIT_CASE(ring_sizes),
	KUNIT_CASE(ring_pairs),
	KUNIT_CASE(ring_pool),
	KUNIT_CASE(ring_pool_large),
	KUNIT_CASE(ring_too_big),
	KUNIT_CASE(ring_indices),
	KUNIT_CASE(ring_progress),
	{}
};

static struct kunit_suite memory_suite = {
	.name = "sroce_memory",
	.init = world_init,
	.exit = world_exit,
	.test_cases = memory_cases,
};

kunit_test_suites(&memory_suite);
