// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions on demand, explicit ones and implicit ones: making and ending, and which table
 * knows about a page (memory/odp.h). On the way of a message only where its memory is such
 * a region.
 */
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "memory/implicit.h"
#include "memory/odp.h"
#include "memory/odp_table.h"
#include "memory/pager.h"

/* How long a process that frees a region waits for its tables to end */
#define ODP_PATIENCE (HZ / 10)

/* For how long a worker looks for pages that are there, in a piece of advice */
#define ODP_LOOK (5 * HZ)

/* --- making and ending -------------------------------------------------------- */

static struct sroce_odp *sroce_odp_alloc(u64 start)
{
	struct sroce_odp *odp = kzalloc_obj(*odp, GFP_KERNEL_ACCOUNT);
	struct sroce_pager *pager;

	if (!odp)
		return ERR_PTR(-ENOMEM);
	pager = sroce_pager_get();
	if (IS_ERR(pager)) {
		kfree(odp);
		return ERR_CAST(pager);
	}
	if (sroce_pager_is_behind(pager)) {
		sroce_pager_put(pager);
		kfree(odp);
		return ERR_PTR(-EBUSY);
	}
	odp->pager = pager;
	refcount_set(&odp->refs, 1);
	refcount_set(&odp->keeps, 1);
	INIT_LIST_HEAD(&odp->wants);
	odp->mm = current->mm;
	odp->address = start;
	/* A fault that does not end may keep this alive for longer than its process */
	__module_get(THIS_MODULE);
	return odp;
}

/* Pages that nobody has taken */
static void sroce_odp_unpin(struct sroce_odp *odp)
{
	unpin_user_pages(odp->pages, odp->n_pages);
	odp->n_pages = 0;
}

/* The pager last: who waits for it to settle finds that nothing counts any more */
static void sroce_odp_free(struct sroce_odp *odp)
{
	struct sroce_pager *pager = odp->pager;

	if (odp->implicit)
		sroce_implicit_free(odp);
	sroce_odp_unpin(odp);
	free_page((unsigned long)odp->pages);
	sroce_pinned_uncharge(&odp->pinned);
	kfree(odp);
	sroce_pager_put(pager);
	module_put(THIS_MODULE);
}

void sroce_odp_keep(struct sroce_odp *odp)
{
	refcount_inc(&odp->keeps);
}

void sroce_odp_release(struct sroce_odp *odp)
{
	if (refcount_dec_and_test(&odp->keeps))
		sroce_odp_free(odp);
}

static int sroce_odp_follow(struct sroce_odp *odp, u64 length)
{
	unsigned long nr = PFN_UP(offset_in_page(odp->address) + length);
	size_t bytes = sroce_odp_table_bytes(nr);
	struct sroce_odp_table *table;

	/* A small table counts as a page: each makes munmap() and reclaim slower */
	if (sroce_pinned_charge(&odp->pinned, max(bytes, PAGE_SIZE)))
		return -ENOMEM;
	table = sroce_odp_table_create(odp, odp->address & PAGE_MASK, nr);
	if (IS_ERR(table))
		return PTR_ERR(table);
	odp->table = table;
	return 0;
}

struct sroce_odp *sroce_odp_create(u64 start, u64 length)
{
	struct sroce_odp *odp;
	u64 last;
	int err;

	/* The kernel looks pages up without a pointer's tag, and tells of their loss without one */
	start = untagged_addr(start);
	if (check_add_overflow(start, length + PAGE_SIZE, &last))
		return ERR_PTR(-EOVERFLOW);
	odp = sroce_odp_alloc(start);
	if (IS_ERR(odp))
		return odp;
	err = sroce_odp_follow(odp, length);
	if (!err)
		return odp;
	sroce_odp_release(odp);
	return ERR_PTR(err);
}

struct sroce_odp *sroce_odp_create_bare(u64 start)
{
	struct sroce_odp *odp = sroce_odp_alloc(untagged_addr(start));

	if (IS_ERR(odp))
		return odp;
	odp->pages = (struct page **)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (odp->pages)
		return odp;
	sroce_odp_release(odp);
	return ERR_PTR(-ENOMEM);
}

unsigned long sroce_odp_take_pinned(struct sroce_odp *odp, struct page **pages)
{
	unsigned long n = odp->n_pages;

	memcpy(pages, odp->pages, n * sizeof(*pages));
	odp->n_pages = 0;
	return n;
}

struct sroce_odp *sroce_odp_create_implicit(void)
{
	struct sroce_odp *odp = sroce_odp_alloc(0);
	int err;

	if (IS_ERR(odp))
		return odp;
	err = sroce_implicit_create(odp);
	if (!err)
		return odp;
	sroce_odp_release(odp);
	return ERR_PTR(err);
}

void sroce_odp_hold(struct sroce_odp *odp)
{
	refcount_inc(&odp->refs);
}

void sroce_odp_put(struct sroce_odp *odp)
{
	if (!refcount_dec_and_test(&odp->refs))
		return;
	if (odp->table)
		sroce_odp_table_put(odp->table);
	sroce_odp_release(odp);
}

void sroce_odp_close(struct sroce_odp *odp)
{
	sroce_pager_close(odp);
}

static void sroce_odp_end(struct sroce_odp *odp)
{
	if (odp->implicit)
		sroce_implicit_close(odp->implicit);
	else if (odp->table)
		sroce_odp_table_close(odp->table);
	sroce_odp_put(odp);
}

/*
 * A process that makes another region at once should find that this one does not count any
 * more.
 */
void sroce_odp_destroy(struct sroce_odp *odp, bool settle)
{
	struct sroce_pager *pager = odp->pager;

	if (!settle || !sroce_odp_is_ours(odp)) {
		sroce_odp_end(odp);
		return;
	}
	sroce_pager_hold(pager);
	sroce_odp_end(odp);
	sroce_pager_settle(pager, ODP_PATIENCE);
	sroce_pager_put(pager);
}

u64 sroce_odp_start(const struct sroce_odp *odp)
{
	return odp->address;
}

bool sroce_odp_is_ours(const struct sroce_odp *odp)
{
	return odp->mm == current->mm;
}

bool sroce_odp_is_implicit(const struct sroce_odp *odp)
{
	return odp->implicit;
}

u64 sroce_odp_offset(const struct sroce_odp *odp)
{
	return offset_in_page(odp->address);
}

void sroce_odp_count(const struct sroce_odp *odp,
		     struct sroce_odp_counts *counts)
{
	*counts = (struct sroce_odp_counts){
		.faults = atomic64_read(&odp->stats.faults),
		.invalidations = atomic64_read(&odp->stats.invalidations),
		.prefetches = atomic64_read(&odp->stats.prefetches),
		.evictions = atomic64_read(&odp->stats.evictions),
		.tables = odp->implicit ? sroce_implicit_tables(odp->implicit) :
					  1,
	};
}

/* --- copying --------------------------------------------------------------------- */

u64 sroce_odp_present(const struct sroce_mr *mr, u64 va, u64 len, bool write)
{
	const struct sroce_odp *odp = mr->odp;
	u64 at = va - mr->iova + mr->offset;

	if (odp->implicit)
		return sroce_implicit_present(odp->implicit, at, len, write);
	return sroce_odp_table_present(odp->table, at, len, write);
}

unsigned int sroce_odp_bvecs(const struct sroce_mr *mr, u64 va, u32 len,
			     struct bio_vec *bv, unsigned int max, u32 *done)
{
	const struct sroce_odp *odp = mr->odp;
	u64 at = va - mr->iova + mr->offset;

	if (odp->implicit)
		return sroce_implicit_bvecs(odp->implicit, at, len, bv, max,
					    done);
	return sroce_odp_table_bvecs(odp->table, at, len, bv, max, done);
}

/* --- bringing pages in -------------------------------------------------------------- */

/* What is missing may come; what has to be copied or moved before it is pinned is so here */
static int sroce_odp_pin(struct sroce_odp *odp, u64 len, unsigned int flags)
{
	unsigned long n = min_t(u64, PFN_UP(len), SROCE_ODP_PINNED);
	int locked = 1;
	long got;

	sroce_odp_unpin(odp);
	if (mmap_read_lock_killable(odp->mm))
		return -EINTR;
	got = pin_user_pages_remote(odp->mm, odp->address, n,
				    flags | FOLL_LONGTERM, odp->pages, &locked);
	if (locked)
		mmap_read_unlock(odp->mm);
	if (got <= 0)
		return got ?: -EFAULT;
	odp->n_pages = got;
	return 0;
}

static int sroce_odp_bring_in(struct sroce_odp *odp, u64 at, u64 len,
			      enum sroce_odp_fault how, bool hint)
{
	atomic64_t *count = hint ? &odp->stats.prefetches : &odp->stats.faults;

	if (how == SROCE_ODP_LOOK)
		return sroce_odp_look(odp, at, len, jiffies + ODP_LOOK);
	if (how == SROCE_ODP_PIN_READ)
		return sroce_odp_pin(odp, len, SROCE_PIN_READ);
	if (how == SROCE_ODP_PIN_WRITE)
		return sroce_odp_pin(odp, len, FOLL_WRITE);
	if (odp->implicit)
		return sroce_implicit_bring(odp, at, len, how, count);
	return sroce_odp_table_bring(odp->table, at, len, how, count);
}

#if defined(CONFIG_MEMCG) && defined(CONFIG_BLK_CGROUP)
/* What a worker reads counts in the group of IO that goes with a memory group, from here on */
static struct cgroup_subsys_state *sroce_odp_count_io(struct mem_cgroup *memcg)
{
	struct cgroup_subsys_state *io;

	if (!memcg)
		return NULL;
	io = cgroup_get_e_css(memcg->css.cgroup, &io_cgrp_subsys);
	kthread_associate_blkcg(io);
	return io;
}

static void sroce_odp_uncount_io(struct cgroup_subsys_state *io)
{
	if (!io)
		return;
	kthread_associate_blkcg(NULL);
	css_put(io);
}
#else
static struct cgroup_subsys_state *sroce_odp_count_io(struct mem_cgroup *memcg)
{
	return NULL;
}

static void sroce_odp_uncount_io(struct cgroup_subsys_state *io)
{
}
#endif

int sroce_odp_bring(struct sroce_odp *odp, u64 at, u64 len,
		    enum sroce_odp_fault how, bool hint)
{
	struct mem_cgroup *theirs, *ours;
	struct cgroup_subsys_state *io;
	int err;

	if (!mmget_not_zero(odp->mm))
		return -EFAULT;
	/*
	 * A worker is in the root's groups: page tables, page cache, and what is read from
	 * disk, would be charged to those
	 */
	theirs = get_mem_cgroup_from_mm(odp->mm);
	ours = set_active_memcg(theirs);
	io = sroce_odp_count_io(theirs);
	err = sroce_odp_bring_in(odp, at, len, how, hint);
	sroce_odp_uncount_io(io);
	set_active_memcg(ours);
	mem_cgroup_put(theirs);
	mmput(odp->mm);
	return err;
}

int sroce_odp_look(struct sroce_odp *odp, u64 at, u64 len, unsigned long until)
{
	int err;

	if (!mmget_not_zero(odp->mm))
		return -EFAULT;
	if (odp->implicit)
		err = sroce_implicit_look(odp, at, len, until);
	else
		err = sroce_odp_table_look(odp->table, at, len, until);
	mmput(odp->mm);
	return err;
}
