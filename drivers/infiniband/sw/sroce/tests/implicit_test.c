// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Implicit regions: which tables they have, and which of them give way.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pfn.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "memory/implicit.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/odp.h"
#include "memory/odp_table.h"
#include "memory/pager.h"
#include "memory/pd.h"
#include "memory/users.h"
#include "tests/waiter.h"

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/* More pieces than a region has tables of its own */
#define PIECES (SROCE_IMPLICIT_OWN + 16)

/**
 * struct all - an implicit region, and memory that is in many pieces
 * @table: keys
 * @pd: protection domain
 * @mr: region
 * @start: the first piece begins here
 * @filled: tables that the process may not have, see all_fill()
 */
struct all {
	struct sroce_mr_table table;
	struct sroce_pd pd;
	struct sroce_mr *mr;
	unsigned long start;
	unsigned int filled;
};

static int all_init(struct kunit *test)
{
	struct all *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	unsigned long at;

	if (!a)
		return -ENOMEM;
	test->priv = a;
	sroce_mr_table_init(&a->table);
	at = kunit_vm_mmap(test, NULL, 0, (PIECES + 1) * SROCE_IMPLICIT_BYTES,
			   PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, 0);
	KUNIT_ASSERT_NE(test, at, 0);
	a->start = roundup(at, SROCE_IMPLICIT_BYTES);
	a->mr = sroce_mr_alloc(&a->table, &a->pd.ibpd, SROCE_MR_ON_DEMAND, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, a->mr);
	a->mr->odp = sroce_odp_create_implicit();
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, a->mr->odp);
	a->mr->offset = sroce_odp_offset(a->mr->odp);
	a->mr->length = U64_MAX;
	a->mr->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	sroce_mr_publish(a->mr);
	return 0;
}

static void all_exit(struct kunit *test)
{
	struct all *a = test->priv;
	struct sroce_odp *odp;

	if (!a)
		return;
	odp = a->mr->odp;
	sroce_pager_tables_end(odp->pager, a->filled);
	sroce_mr_free(a->mr);
	sroce_odp_destroy(odp, true);
	sroce_mr_table_destroy(&a->table);
}

static struct all *all_of(struct kunit *test)
{
	return test->priv;
}

/* From here on there are no more tables than the region's own */
static void all_fill(struct all *a)
{
	while (sroce_pager_table_begin(a->mr->odp->pager))
		a->filled++;
}

static u64 piece(const struct all *a, unsigned int i)
{
	return a->start + i * SROCE_IMPLICIT_BYTES;
}

static struct sroce_odp_counts counts(const struct all *a)
{
	struct sroce_odp_counts c;

	sroce_odp_count(a->mr->odp, &c);
	return c;
}

static bool there(const struct all *a, u64 va, u64 len, bool write)
{
	return pages_are_there(a->mr, va, len, write);
}

static int bring(const struct all *a, u64 va, u64 len, u64 ahead,
		 enum sroce_odp_fault how)
{
	return waiter_bring(a->mr, va, len, ahead, how);
}

/* --- what is there -------------------------------------------------------------------- */

static void implicit_faults(struct kunit *test)
{
	struct all *a = all_of(test);
	u64 va = piece(a, 1) - 5000;

	KUNIT_EXPECT_FALSE(test, there(a, va, 1, false));
	KUNIT_EXPECT_EQ(test, 0, bring(a, va, 10000, 10000, SROCE_ODP_READ));
	KUNIT_EXPECT_TRUE(test, there(a, va, 10000, false));
	KUNIT_EXPECT_FALSE(test, there(a, va, 10000, true));
	KUNIT_EXPECT_EQ(test, (va + 9999) / PAGE_SIZE - va / PAGE_SIZE + 1, counts(a).faults);
	KUNIT_EXPECT_EQ(test, 0, bring(a, va, 10000, 10000, SROCE_ODP_WRITE));
	KUNIT_EXPECT_TRUE(test, there(a, va, 10000, true));
	/* the first one, which every region has, and two */
	KUNIT_EXPECT_EQ(test, 3, counts(a).tables);
	KUNIT_EXPECT_EQ(test, 0, counts(a).evictions);
	KUNIT_EXPECT_EQ(test, 0, counts(a).prefetches);
}

/* How much is there, at either side of the border between two tables */
static void implicit_border(struct kunit *test)
{
	struct all *a = all_of(test);
	u64 border = piece(a, 1);
	u64 present;

	KUNIT_EXPECT_EQ(test, 0, bring(a, border - PAGE_SIZE, PAGE_SIZE, 0, SROCE_ODP_WRITE));
	local_bh_disable();
	sroce_odp_enter();
	present = sroce_odp_present(a->mr, border - 100, 300, true);
	sroce_odp_leave();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, 100, present);
	KUNIT_EXPECT_EQ(test, 0, bring(a, border, 1, 0, SROCE_ODP_WRITE));
	local_bh_disable();
	sroce_odp_enter();
	present = sroce_odp_present(a->mr, border - 100, 2 * PAGE_SIZE, true);
	sroce_odp_leave();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, 100 + PAGE_SIZE, present);
}

/* What is copied there is what the process sees, across a border */
static void implicit_copies(struct kunit *test)
{
	struct all *a = all_of(test);
	u64 va = piece(a, 2) - 2500;
	struct bio_vec bv[4];
	unsigned int n, i;
	u8 *seen;
	u32 done;

	seen = kunit_kzalloc(test, 5000, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_EQ(test, 0, bring(a, va, 5000, 0, SROCE_ODP_WRITE));
	local_bh_disable();
	sroce_odp_enter();
	KUNIT_EXPECT_EQ(test, 5000, sroce_odp_present(a->mr, va, 5000, true));
	n = sroce_mr_bvecs(a->mr, va, 5000, bv, ARRAY_SIZE(bv), &done);
	KUNIT_EXPECT_EQ(test, 5000, done);
	for (i = 0; i < n; i++)
		memset(bvec_virt(&bv[i]), 0x5a, bv[i].bv_len);
	sroce_mr_bvecs(a->mr, va, 5000, bv, 1, &done);
	KUNIT_EXPECT_LE(test, done, 2500);
	sroce_odp_leave();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, 0, copy_from_user(seen, (void __user *)va, 5000));
	KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(seen, 0x5a, 5000));
}

static void implicit_loses(struct kunit *test)
{
	struct all *a = all_of(test);
	u64 va = piece(a, 1) - 4 * PAGE_SIZE;

	KUNIT_EXPECT_EQ(test, 0, bring(a, va, 8 * PAGE_SIZE, 0, SROCE_ODP_WRITE));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(va + 2 * PAGE_SIZE, 4 * PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, there(a, va, 2 * PAGE_SIZE, true));
	KUNIT_EXPECT_FALSE(test, there(a, va + 2 * PAGE_SIZE, 1, false));
	KUNIT_EXPECT_FALSE(test, there(a, va + 5 * PAGE_SIZE, 1, false));
	KUNIT_EXPECT_TRUE(test, there(a, va + 6 * PAGE_SIZE, 2 * PAGE_SIZE, true));
	KUNIT_EXPECT_EQ(test, 4, counts(a).invalidations);
	KUNIT_EXPECT_EQ(test, -EFAULT, bring(a, va, 8 * PAGE_SIZE, 0, SROCE_ODP_WRITE));
	/* what goes elsewhere is of no interest */
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(piece(a, 3), SROCE_IMPLICIT_BYTES));
	KUNIT_EXPECT_TRUE(test, there(a, va, 2 * PAGE_SIZE, true));
}

/* A peer names addresses where there is nothing, or nothing can be */
static void implicit_nowhere(struct kunit *test)
{
	struct all *a = all_of(test);
	const u64 where[] = { 0, PAGE_SIZE, TASK_SIZE, TASK_SIZE - 1, 1ULL << 63,
			      U64_MAX - 100, U64_MAX - SROCE_IMPLICIT_BYTES,
			      /* what is there, with a tag, which some architectures ignore */
			      piece(a, 1) | 1ULL << 56, piece(a, 1) | 0xffULL << 56 };
	unsigned int i, before = counts(a).tables;

	KUNIT_EXPECT_EQ(test, 0, vm_munmap(piece(a, 0), SROCE_IMPLICIT_BYTES));
	KUNIT_EXPECT_EQ(test, -EFAULT, bring(a, piece(a, 0), 1, 1000, SROCE_ODP_READ));
	for (i = 0; i < ARRAY_SIZE(where); i++) {
		KUNIT_EXPECT_EQ_MSG(test, -EFAULT, bring(a, where[i], 8, 64, SROCE_ODP_WRITE),
				    "%#llx", where[i]);
		KUNIT_EXPECT_FALSE(test, there(a, where[i], 8, false));
	}
	KUNIT_EXPECT_EQ(test, before, counts(a).tables);
	KUNIT_EXPECT_EQ(test, -EFAULT, sroce_odp_look(a->mr->odp, U64_MAX - 100, 50,
						      jiffies + HZ));
}

/* Advice counts as such, and finds what is there */
static void implicit_advice(struct kunit *test)
{
	struct all *a = all_of(test);
	u64 va = piece(a, 1) - 2 * PAGE_SIZE;
	char byte = 1;

	KUNIT_EXPECT_EQ(test, 0, copy_to_user((void __user *)va, &byte, 1));
	KUNIT_EXPECT_EQ(test, 0, copy_to_user((void __user *)va + 3 * PAGE_SIZE, &byte, 1));
	KUNIT_EXPECT_EQ(test, 0, sroce_odp_look(a->mr->odp, va, 4 * PAGE_SIZE,
						jiffies + 60 * HZ));
	KUNIT_EXPECT_TRUE(test, there(a, va, PAGE_SIZE, true));
	KUNIT_EXPECT_FALSE(test, there(a, va + PAGE_SIZE, PAGE_SIZE, false));
	KUNIT_EXPECT_TRUE(test, there(a, va + 3 * PAGE_SIZE, PAGE_SIZE, true));
	KUNIT_EXPECT_EQ(test, 2, counts(a).prefetches);
	KUNIT_EXPECT_EQ(test, 0, counts(a).faults);
}

/* --- what the kernel may ask --------------------------------------------------------- */

/* The OOM reaper gets the memory of a table without pages, and waits for nobody */
static void implicit_reaped(struct kunit *test)
{
	u64 start = piece(all_of(test), 0);
	struct sroce_odp *odp = sroce_odp_create(start, 4 * PAGE_SIZE);
	struct mmu_notifier_range range = {
		.mm = current->mm,
		.start = start,
		.end = start + 4 * PAGE_SIZE,
	};
	struct mmu_interval_notifier *notifier;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, odp);
	notifier = &odp->table->notifier;
	KUNIT_EXPECT_TRUE(test, notifier->ops->invalidate(notifier, &range, 1));
	KUNIT_EXPECT_EQ(test, 0, sroce_odp_bring(odp, 0, PAGE_SIZE, SROCE_ODP_WRITE, false));
	KUNIT_EXPECT_FALSE(test, notifier->ops->invalidate(notifier, &range, 1));
	range.flags = MMU_NOTIFIER_RANGE_BLOCKABLE;
	KUNIT_EXPECT_TRUE(test, notifier->ops->invalidate(notifier, &range, 1));
	range.flags = 0;
	KUNIT_EXPECT_TRUE(test, notifier->ops->invalidate(notifier, &range, 1));
	spin_lock(&odp->table->lock);
	KUNIT_EXPECT_FALSE(test, notifier->ops->invalidate(notifier, &range, 1));
	spin_unlock(&odp->table->lock);
	sroce_odp_destroy(odp, true);
}

/* --- windows -------------------------------------------------------------------------- */

/* A window on it is for a part of it, and misses pages under its own addresses */
static void implicit_window(struct kunit *test)
{
	struct all *a = all_of(test);
	struct sroce_mw_list qp;
	struct sroce_mr *mw = sroce_mw_alloc(&a->table, &a->pd.ibpd, true);
	struct sroce_mw_bind bind = {
		.key = mw->key,
		.new_key = mw->key,
		.lkey = a->mr->key,
		.addr = piece(a, 1) - 3000,
		.length = 6000,
		.access = IB_ACCESS_REMOTE_WRITE | IB_ZERO_BASED,
		.pd = &a->pd.ibpd,
		.owner = &qp,
	};
	struct waiter w = { .want.done = waiter_done };
	struct bio_vec bv[4];
	struct sroce_mr *mr;
	u32 done;

	sroce_mw_list_init(&qp);
	init_completion(&w.done);
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_mw_bind(&a->table, &bind));
	a->mr->access |= IB_ACCESS_MW_BIND;
	KUNIT_ASSERT_EQ(test, 0, sroce_mw_bind(&a->table, &bind));
	KUNIT_EXPECT_FALSE(test, sroce_mr_seal(a->mr));
	mr = sroce_mr_find(&a->table, mw->key, mw->ibmr.pd);
	KUNIT_ASSERT_PTR_EQ(test, mr, mw);
	KUNIT_EXPECT_EQ(test, 0, sroce_want_pages(&w.want, mr, 0, 6000, U64_MAX,
						  SROCE_ODP_WRITE));
	wait_for_completion(&w.done);
	KUNIT_EXPECT_EQ(test, 0, w.err);
	KUNIT_EXPECT_TRUE(test, there(a, bind.addr, 6000, true));
	/* what is behind its end is not asked for */
	KUNIT_EXPECT_FALSE(test, there(a, bind.addr + 6000 + PAGE_SIZE, 1, false));
	local_bh_disable();
	sroce_odp_enter();
	KUNIT_EXPECT_EQ(test, 6000, sroce_odp_present(mr, 0, 6000, true));
	sroce_mr_bvecs(mr, 10, 5000, bv, ARRAY_SIZE(bv), &done);
	KUNIT_EXPECT_EQ(test, 5000, done);
	*(u8 *)bvec_virt(&bv[0]) = 0x77;
	sroce_odp_leave();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, 0, copy_from_user(&done, (void __user *)bind.addr + 10, 1));
	KUNIT_EXPECT_EQ(test, 0x77, (u8)done);
	sroce_mr_put(mr);
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, mw,
			    sroce_mr_look(&a->table, mw->key, &a->pd.ibpd,
					  IB_ACCESS_REMOTE_WRITE, 0, 6000));
	KUNIT_EXPECT_TRUE(test, IS_ERR(sroce_mr_look(&a->table, mw->key, &a->pd.ibpd,
						     IB_ACCESS_REMOTE_WRITE, 0, 6001)));
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_invalidate(&a->table, mw->key, &a->pd.ibpd, &qp,
						     false));
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(a->mr));
	KUNIT_EXPECT_PTR_EQ(test, NULL, mw->odp);
	sroce_mr_free(mw);
	/* the region is as it was */
	KUNIT_EXPECT_EQ(test, 0, bring(a, bind.addr, 6000, 0, SROCE_ODP_WRITE));
}

/* --- which give way ------------------------------------------------------------------- */

static void implicit_evicts(struct kunit *test)
{
	struct all *a = all_of(test);
	unsigned int i;

	all_fill(a);
	for (i = 0; i < PIECES; i++) {
		KUNIT_EXPECT_EQ(test, 0, bring(a, piece(a, i), 1, 0, SROCE_ODP_WRITE));
		/* one that is used stays */
		KUNIT_EXPECT_TRUE(test, there(a, piece(a, 0), 1, true));
	}
	KUNIT_EXPECT_EQ(test, SROCE_IMPLICIT_OWN, counts(a).tables);
	KUNIT_EXPECT_EQ(test, PIECES + 1 - SROCE_IMPLICIT_OWN, counts(a).evictions);
	KUNIT_EXPECT_FALSE(test, there(a, piece(a, 1), 1, true));
	KUNIT_EXPECT_TRUE(test, there(a, piece(a, PIECES - 1), 1, true));
	/* one that gave way comes again */
	KUNIT_EXPECT_EQ(test, 0, bring(a, piece(a, 1), 1, 0, SROCE_ODP_WRITE));
	KUNIT_EXPECT_TRUE(test, there(a, piece(a, 1), 1, true));
	KUNIT_EXPECT_EQ(test, SROCE_IMPLICIT_OWN, counts(a).tables);
}

/* What is wanted at once is there, however much will be wanted later */
static void implicit_ahead(struct kunit *test)
{
	struct all *a = all_of(test);

	all_fill(a);
	KUNIT_EXPECT_EQ(test, 0, bring(a, piece(a, 0), PAGE_SIZE, PIECES * SROCE_IMPLICIT_BYTES,
				       SROCE_ODP_READ));
	KUNIT_EXPECT_TRUE(test, there(a, piece(a, 0), PAGE_SIZE, false));
	KUNIT_EXPECT_LE(test, counts(a).tables, 3);
}

/* One that is new, or filled anew, is not the first to give way */
static void implicit_fresh(struct kunit *test)
{
	struct all *a = all_of(test);
	unsigned int i, j;

	all_fill(a);
	for (i = 0; i < PIECES; i++) {
		KUNIT_EXPECT_EQ(test, 0, bring(a, piece(a, i), 1, 0, SROCE_ODP_WRITE));
		/* all but the newest are used */
		for (j = 0; j < i; j++)
			there(a, piece(a, j), 1, true);
		if (i)
			KUNIT_EXPECT_TRUE(test, there(a, piece(a, i - 1), 1, true));
	}
	KUNIT_EXPECT_EQ(test, SROCE_IMPLICIT_OWN, counts(a).tables);
}

/* Those beyond the region's own are given back with it */
static void implicit_counts(struct kunit *test)
{
	struct all *a = all_of(test);
	struct sroce_pager *pager = a->mr->odp->pager;
	unsigned int i;

	for (i = 0; i < PIECES; i++)
		KUNIT_EXPECT_EQ(test, 0, bring(a, piece(a, i), 1, 0, SROCE_ODP_WRITE));
	KUNIT_EXPECT_EQ(test, PIECES + 1, counts(a).tables);
	KUNIT_EXPECT_EQ(test, 0, counts(a).evictions);
	all_fill(a);
	KUNIT_EXPECT_EQ(test, SROCE_IMPLICIT_MOST - (PIECES + 1 - SROCE_IMPLICIT_OWN),
			a->filled);
	KUNIT_EXPECT_FALSE(test, sroce_pager_table_begin(pager));
}

/* What a peer asks for leaves half of the limit to the process */
static void implicit_limit(struct kunit *test)
{
	struct all *a = all_of(test);
	size_t bytes = sroce_odp_table_bytes(SROCE_IMPLICIT_PAGES);
	/* that of two regions' own tables, each a page at the least, and as much again */
	u64 half = 4 * SROCE_IMPLICIT_OWN * PFN_UP(bytes);
	struct cred *cred = prepare_creds();
	struct sroce_odp_counts c;
	const struct cred *mine;
	struct sroce_odp *odp;
	unsigned int i;
	u64 other;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	/* of this test's thread alone */
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = 2 * half << PAGE_SHIFT;
	cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	mine = override_creds(cred);
	odp = sroce_odp_create_implicit();
	revert_creds(mine);
	put_cred(cred);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, odp);
	/* until three more */
	other = half - 3 * PFN_UP(bytes) - atomic64_read(&current->mm->pinned_vm);
	KUNIT_ASSERT_LT(test, other, half);
	atomic64_add(other, &current->mm->pinned_vm);
	for (i = 0; i < PIECES; i++)
		KUNIT_EXPECT_EQ(test, 0, sroce_odp_bring(odp, piece(a, i), 1, SROCE_ODP_WRITE,
							 false));
	KUNIT_EXPECT_EQ(test, half, atomic64_read(&current->mm->pinned_vm));
	sroce_odp_count(odp, &c);
	KUNIT_EXPECT_EQ(test, SROCE_IMPLICIT_OWN + 3, c.tables);
	KUNIT_EXPECT_EQ(test, PIECES + 1 - c.tables, c.evictions);
	sroce_odp_destroy(odp, true);
	atomic64_sub(other, &current->mm->pinned_vm);
}

/* --- many at once --------------------------------------------------------------------- */

/**
 * struct reader - who copies while tables come and go
 * @a: region
 * @stop: the end
 * @hits: pages were there
 * @wrong: they were not those of the process
 */
struct reader {
	struct all *a;
	bool stop;
	unsigned long hits;
	unsigned long wrong;
};

/* Each piece begins with its number */
static int reader_thread(void *arg)
{
	struct reader *r = arg;
	struct bio_vec bv;
	unsigned int i;
	u32 done;

	for (i = 0; !READ_ONCE(r->stop); i = (i + 1) % PIECES) {
		cond_resched();
		local_bh_disable();
		sroce_odp_enter();
		if (sroce_odp_present(r->a->mr, piece(r->a, i), 4, false) == 4) {
			/* time for it to give way, and for another one to be made */
			udelay(9);
			sroce_mr_bvecs(r->a->mr, piece(r->a, i), 4, &bv, 1, &done);
			r->wrong += done != 4 || *(u32 *)bvec_virt(&bv) != i;
			r->hits++;
		}
		sroce_odp_leave();
		local_bh_enable();
	}
	return 0;
}

static void implicit_race(struct kunit *test)
{
	struct all *a = all_of(test);
	struct reader r = { .a = a };
	struct task_struct *task;
	unsigned int i, n, bad = 0;

	all_fill(a);
	for (i = 0; i < PIECES; i++)
		KUNIT_EXPECT_EQ(test, 0, copy_to_user((void __user *)piece(a, i), &i, 4));
	task = kthread_create(reader_thread, &r, "sroce_reader");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	for (n = 0; n < 20; n++)
		for (i = 0; i < PIECES; i++)
			bad += !!bring(a, piece(a, i), 4, 0, SROCE_ODP_READ);
	WRITE_ONCE(r.stop, true);
	kthread_stop_put(task);
	KUNIT_EXPECT_EQ(test, 0, bad);
	KUNIT_EXPECT_EQ(test, 0, r.wrong);
	KUNIT_EXPECT_GT(test, r.hits, 0);
	KUNIT_EXPECT_GE(test, counts(a).evictions, 100);
}

/* As a message does: it asks again when the page has not come, or is gone again */
static bool bring_until_there(const struct all *a, u64 va)
{
	unsigned int tries;

	for (tries = 0; tries < 100; tries++)
		if (!bring(a, va, 1, 0, SROCE_ODP_WRITE) && there(a, va, 1, true))
			return true;
	return false;
}

/* Several bring the same pieces in, with fewer tables than there are pieces */
static void implicit_makers(struct kunit *test)
{
	struct all *a = all_of(test);
	struct waiter *w;
	unsigned int i, n;

	all_fill(a);
	w = kunit_kcalloc(test, 4 * PIECES, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w);
	for (i = 0; i < PIECES; i++)
		for (n = 0; n < 4; n++) {
			struct waiter *one = &w[n * PIECES + i];

			init_completion(&one->done);
			one->want.done = waiter_done;
			KUNIT_EXPECT_EQ(test, 0, sroce_want_pages(&one->want, a->mr,
								  piece(a, i), 1, 0,
								  SROCE_ODP_WRITE));
		}
	for (n = 0; n < 4 * PIECES; n++) {
		wait_for_completion(&w[n].done);
		KUNIT_EXPECT_EQ(test, 0, w[n].err);
	}
	/* All askers of a piece may have been told to come again: its table may never have been */
	for (i = 0; i < PIECES; i++)
		KUNIT_EXPECT_TRUE(test, bring_until_there(a, piece(a, i)));
	KUNIT_EXPECT_LE(test, counts(a).tables, SROCE_IMPLICIT_OWN);
	KUNIT_EXPECT_GE(test, counts(a).evictions, PIECES + 1 - SROCE_IMPLICIT_OWN);
}

#define MAKERS 3

/**
 * struct makers - who have tables of a region made that goes
 * @a: memory
 * @odp: region, held by each
 * @ready: one is there
 * @go: all are
 * @done: one has ended
 */
struct makers {
	struct all *a;
	struct sroce_odp *odp;
	struct completion ready;
	bool go;
	struct completion done;
};

static int maker_thread(void *arg)
{
	struct makers *m = arg;
	unsigned int i;
	int err = 0;

	complete(&m->ready);
	while (!READ_ONCE(m->go))
		cond_resched();
	for (i = 0; err != -ESHUTDOWN; i = (i + 1) % PIECES) {
		err = sroce_odp_bring(m->odp, piece(m->a, i), 1, SROCE_ODP_WRITE, false);
		cond_resched();
	}
	sroce_odp_put(m->odp);
	complete(&m->done);
	return 0;
}

static void makers_begin(struct kunit *test, struct makers *m, struct task_struct **task)
{
	unsigned int i;

	m->odp = sroce_odp_create_implicit();
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, m->odp);
	init_completion(&m->ready);
	init_completion(&m->done);
	for (i = 0; i < MAKERS; i++) {
		task[i] = kthread_create(maker_thread, m, "sroce_maker");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task[i]));
		get_task_struct(task[i]);
		sroce_odp_hold(m->odp);
		wake_up_process(task[i]);
	}
	for (i = 0; i < MAKERS; i++)
		wait_for_completion(&m->ready);
}

/* They make the same tables, while the region goes */
static void makers_closed(struct kunit *test, struct all *a, unsigned int us)
{
	struct makers m = { .a = a };
	struct task_struct *task[MAKERS];
	unsigned int i;

	makers_begin(test, &m, task);
	WRITE_ONCE(m.go, true);
	udelay(us);
	sroce_odp_destroy(m.odp, true);
	for (i = 0; i < MAKERS; i++)
		wait_for_completion(&m.done);
	for (i = 0; i < MAKERS; i++)
		kthread_stop_put(task[i]);
}

/* Each table holds the process's memory by its notifier: none is left behind */
static void implicit_closed(struct kunit *test)
{
	struct all *a = all_of(test);
	int before = atomic_read(&current->mm->mm_count), most;
	unsigned int i;

	for (i = 0; i < 50; i++)
		makers_closed(test, a, 2 * i);
	/* processors that are idle may hold it, too */
	most = before + num_online_cpus();
	/* and whoever destroys a region does not wait for ever for the pager */
	for (i = 0; i < 500 && atomic_read(&current->mm->mm_count) > most; i++)
		msleep(20);
	KUNIT_EXPECT_LE(test, atomic_read(&current->mm->mm_count), most);
}

static struct kunit_case implicit_cases[] = {
	KUNIT_CASE(implicit_faults),
	KUNIT_CASE(implicit_border),
	KUNIT_CASE(implicit_copies),
	KUNIT_CASE(implicit_loses),
	KUNIT_CASE(implicit_nowhere),
	KUNIT_CASE(implicit_advice),
	KUNIT_CASE(implicit_reaped),
	KUNIT_CASE(implicit_window),
	KUNIT_CASE(implicit_evicts),
	KUNIT_CASE(implicit_ahead),
	KUNIT_CASE(implicit_fresh),
	KUNIT_CASE(implicit_counts),
	KUNIT_CASE(implicit_limit),
	KUNIT_CASE(implicit_race),
	KUNIT_CASE(implicit_makers),
	KUNIT_CASE(implicit_closed),
	{}
};

static struct kunit_suite implicit_suite = {
	.name = "sroce_implicit",
	.init = all_init,
	.exit = all_exit,
	.test_cases = implicit_cases,
};

kunit_test_suite(implicit_suite);
#endif
