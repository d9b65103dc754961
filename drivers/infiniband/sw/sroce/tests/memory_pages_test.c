// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From the bytes of a region to its pages: what a range of addresses is taken apart into,
 * for memory of processes (umem), of kernel users, and the region of all DMA memory.
 */
#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>

#include "memory/copy.h"
#include "memory/mr.h"
#include "tests/memory_world.h"

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
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 100, 6 * PAGE_SIZE);
	u8 *pages = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_COMP, 2);
	struct bio_vec bv[4];
	u32 done;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	/* lone, three in a row, one backwards, one twice */
	mr->blocks[0] = page_address(w->pages[0]);
	mr->blocks[1] = pages + PAGE_SIZE;
	mr->blocks[2] = pages + 2 * PAGE_SIZE;
	mr->blocks[3] = pages + 3 * PAGE_SIZE;
	mr->blocks[4] = pages;
	mr->blocks[5] = pages;
	mr->blocks[6] = page_address(w->pages[1]);
	mr->nr_blocks = 7;
	KUNIT_EXPECT_EQ(test, sroce_mr_bvecs(mr, PAGE_SIZE, 2 * PAGE_SIZE, bv, 4, &done),
			1);
	KUNIT_EXPECT_EQ(test, done, 2 * PAGE_SIZE);
	KUNIT_EXPECT_PTR_EQ(test, bv[0].bv_page, virt_to_page(pages + PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, bv[0].bv_offset, 100);
	expect_ranges(test, mr);
	sroce_mr_free(mr);
	free_pages((unsigned long)pages, 2);
}

#define BIG_ORDER 2

static void bvecs_big_blocks(struct kunit *test)
{
	const u64 block = PAGE_SIZE << BIG_ORDER;
	struct sroce_mr *mr;
	int i;

	mr = new_mr(test, SROCE_MR_USER, 0x7f0000000000, 0, 1);
	mr->block_shift = PAGE_SHIFT + BIG_ORDER;
	mr->nr_blocks = 4;
	mr->offset = PAGE_SIZE + 50;
	mr->length = 4 * block - mr->offset;
	for (i = 0; i < 4; i++) {
		mr->blocks[i] = (void *)__get_free_pages(GFP_KERNEL | __GFP_COMP,
							 BIG_ORDER);
		KUNIT_ASSERT_NOT_NULL(test, mr->blocks[i]);
	}
	sroce_mr_publish(mr);
	expect_ranges(test, mr);
	for (i = 0; i < 4; i++)
		free_pages((unsigned long)mr->blocks[i], BIG_ORDER);
}

#define SMALL_SHIFT (PAGE_SHIFT - 2)

/* As of initiators that register in units of 4 KiB on a machine with larger pages */
static void bvecs_small_blocks(struct kunit *test)
{
	/* quarters of four pages: neighbours, also over pages, backwards, and twice */
	static const u32 quarters[] = { 5, 6, 7, 8, 9, 3, 2, 2, 12, 15 };
	u8 *pages = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_COMP, 2);
	const u32 small = 1U << SMALL_SHIFT;
	struct bio_vec bv[4];
	struct sroce_mr *mr;
	u32 done;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	mr = new_mr(test, SROCE_MR_USER, 0x7f0000000000, 0, 1);
	mr->block_shift = SMALL_SHIFT;
	mr->nr_blocks = ARRAY_SIZE(quarters);
	mr->offset = 50;
	mr->length = ARRAY_SIZE(quarters) * small - mr->offset;
	for (i = 0; i < ARRAY_SIZE(quarters); i++)
		mr->blocks[i] = pages + quarters[i] * small;
	sroce_mr_publish(mr);
	KUNIT_EXPECT_EQ(test, 1, sroce_mr_bvecs(mr, mr->iova, 5 * small - 50, bv, 4, &done));
	KUNIT_EXPECT_PTR_EQ(test, bv[0].bv_page, virt_to_page(pages + PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, bv[0].bv_offset, small + 50);
	KUNIT_EXPECT_EQ(test, done, 5 * small - 50);
	expect_ranges(test, mr);
	sroce_mr_free(mr);
	free_pages((unsigned long)pages, 2);
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

static void dma_region(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_dma_mr(test, IB_ACCESS_LOCAL_WRITE);
	u64 va = (uintptr_t)page_address(w->pages[0]) + 10;
	struct bio_vec bv[2];
	u32 done;

	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd,
					IB_ACCESS_LOCAL_WRITE, va, 100), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd,
					IB_ACCESS_REMOTE_READ, va, 100), -EACCES);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, 0, U64_MAX - 5, 8),
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
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_dma_mr(test, access);
	u64 va = (uintptr_t)page_address(w->pages[0]);

	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, access, va, 4096), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, access, 0x10, 8),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, access, va, 1ULL << 46),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, access,
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
	mr->block_shift = page_shift;
	sroce_mr_set_blocks(mr);
	KUNIT_EXPECT_EQ(test, mr->length, umem->length);
	for_each_sgtable_dma_sg(sgt, sg, i)
		for (at = i ? 0 : skip; at < sg_dma_len(sg); at++, va++)
			if (byte_at(mr, va) != sg_virt(sg) + at) {
				KUNIT_FAIL(test, "piece %d byte %u", i, at);
				break;
			}
	KUNIT_EXPECT_EQ(test, mr->nr_blocks,
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

static struct kunit_case pages_cases[] = {
	KUNIT_CASE(bvecs_pages),
	KUNIT_CASE(bvecs_neighbours),
	KUNIT_CASE(bvecs_big_blocks),
	KUNIT_CASE(bvecs_small_blocks),
	KUNIT_CASE(bvecs_outside),
	KUNIT_CASE(dma_region),
	KUNIT_CASE(dma_region_remote),
	KUNIT_CASE(from_virt),
	KUNIT_CASE(umem_pages),
	{}
};

static struct kunit_suite pages_suite = {
	.name = "sroce_memory_pages",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = pages_cases,
};

kunit_test_suite(pages_suite);
