// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the tests of memory/ begin with: a table of keys, two protection domains and some
 * pages, and regions that are made of these.
 */
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/math.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "memory/internal.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/users.h"
#include "tests/memory_world.h"

int memory_world_init(struct kunit *test)
{
	struct memory_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
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

void memory_world_exit(struct kunit *test)
{
	struct memory_world *w = test->priv;
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

struct sroce_mr *new_mr(struct kunit *test, enum sroce_mr_kind kind,
			u64 iova, u64 offset, u64 length)
{
	struct memory_world *w = test->priv;
	u32 n = DIV_ROUND_UP(offset + length, PAGE_SIZE);
	struct sroce_mr *mr;
	u32 i;

	KUNIT_ASSERT_LE(test, n, MAX_PAGES);
	mr = sroce_mr_alloc(&w->table, &w->pd.ibpd, kind, MAX_PAGES);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	for (i = 0; i < n; i++)
		mr->blocks[i] = page_address(w->pages[i * 2 % MAX_PAGES +
						      i * 2 / MAX_PAGES]);
	mr->nr_blocks = n;
	mr->offset = offset;
	mr->iova = iova;
	mr->ibmr.iova = iova;
	mr->length = length;
	return mr;
}

struct sroce_mr *new_user_mr(struct kunit *test, int access, u64 iova,
			     u64 offset, u64 length)
{
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, iova, offset, length);

	mr->access = access;
	sroce_mr_publish(mr);
	return mr;
}

struct sroce_mr *new_dma_mr(struct kunit *test, int access)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr;

	mr = sroce_mr_alloc(&w->table, &w->pd.ibpd, SROCE_MR_DMA, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	mr->access = access;
	sroce_mr_publish(mr);
	return mr;
}

struct sroce_mr *new_window(struct kunit *test, bool type2)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mw = sroce_mw_alloc(&w->table, &w->pd.ibpd, type2);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mw);
	return mw;
}

int check_key(struct kunit *test, u32 key, const struct ib_pd *pd,
	      int access, u64 va, u64 len)
{
	struct memory_world *w = test->priv;
	struct sroce_mr_uses *u;
	int err, look;

	local_bh_disable();
	u = sroce_mr_uses_begin();
	err = PTR_ERR_OR_ZERO(sroce_mr_use(u, &w->table, key, pd, access, va, len));
	sroce_mr_uses_end(u);
	local_bh_enable();
	rcu_read_lock();
	look = PTR_ERR_OR_ZERO(sroce_mr_look(&w->table, key, pd, access, va, len));
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, look, err);
	return err;
}

void *byte_at(const struct sroce_mr *mr, u64 va)
{
	u64 at = va - mr->iova + mr->offset;
	u8 *block = mr->blocks[at >> mr->block_shift];

	return block + (at & ((1ULL << mr->block_shift) - 1));
}

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

void expect_ranges(struct kunit *test, const struct sroce_mr *mr)
{
	const u64 block = 1ULL << mr->block_shift;
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

static int copier_thread(void *arg)
{
	struct copier *copier = arg;
	struct sroce_mr_uses *u;
	int i;

	local_bh_disable();
	u = sroce_mr_uses_begin();
	for (i = 0; i < copier->times; i++)
		copier->mr = sroce_mr_use(u, &copier->w->table, copier->key,
					  &copier->w->pd.ibpd, 0, copier->va, 8);
	complete(&copier->begun);
	while (!READ_ONCE(copier->stop))
		cpu_relax();
	if (copier->hold)
		sroce_mr_hold(copier->mr);
	sroce_mr_uses_end(u);
	local_bh_enable();
	complete(&copier->ended);
	return 0;
}

void copier_begin(struct kunit *test, struct copier *copier, u32 key)
{
	struct task_struct *task;
	unsigned int other;

	copier->w = test->priv;
	copier->key = key;
	copier->times = copier->times ?: 1;
	init_completion(&copier->begun);
	init_completion(&copier->ended);
	migrate_disable();
	other = cpumask_any_but(cpu_online_mask, smp_processor_id());
	migrate_enable();
	if (other >= nr_cpu_ids)
		kunit_skip(test, "one processor");
	task = kthread_create(copier_thread, copier, "sroce_copier");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, other);
	wake_up_process(task);
	wait_for_completion(&copier->begun);
}

void copier_end(struct copier *copier)
{
	WRITE_ONCE(copier->stop, true);
	wait_for_completion(&copier->ended);
}

void run_here(struct task_struct *task)
{
	migrate_disable();
	kthread_bind(task, smp_processor_id());
	migrate_enable();
	wake_up_process(task);
}
