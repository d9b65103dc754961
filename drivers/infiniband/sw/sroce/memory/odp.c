// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions on demand: the table of pages that are mapped, those who read it, and
 * what happens when a process loses a page (memory/odp.h). On the way of a message
 * only where its memory is such a region; the pages that it misses are fetched by
 * memory/pager.c.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/pfn.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory/odp.h"
#include "memory/pager.h"

/* What an entry has besides the pointer to a struct page */
#define ODP_PRESENT 1UL
#define ODP_WRITABLE 2UL
#define ODP_FLAGS 3UL

/* Entries looked at before others may run */
#define ODP_BATCH 4096

/*
 * Pages asked of the process at once, at most. All of them are given up when the process
 * loses any page of the region meanwhile: then half as many are asked for.
 */
#define ODP_STEP 32

/* Times that pages are asked for anew when some were lost meanwhile */
#define ODP_TRIES 16

/* Looks at another processor before we sleep: a copy takes microseconds */
#define ODP_SPINS 200

static struct page *sroce_odp_entry_page(unsigned long entry)
{
	return (struct page *)(entry & ~ODP_FLAGS);
}

/* --- readers ------------------------------------------------------------------ */

/**
 * struct sroce_odp_reader - what a processor does
 * @lock: there is one reader per processor: a lock only where those who have
 *	bottom halves off can be preempted
 * @seq: odd while it reads
 */
struct sroce_odp_reader {
	local_lock_t lock; /* see above */
	unsigned int seq;
};

static DEFINE_PER_CPU_SHARED_ALIGNED(struct sroce_odp_reader,
				     sroce_odp_readers) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

static void sroce_odp_count_reader(void)
{
	unsigned int *seq = this_cpu_ptr(&sroce_odp_readers.seq);

	WRITE_ONCE(*seq, *seq + 1);
}

void sroce_odp_enter(void)
{
	local_lock_nested_bh(&sroce_odp_readers.lock);
	sroce_odp_count_reader();
	/* Seen reading, then it looks; pairs with sroce_odp_await_readers() */
	smp_mb();
	/* The lock is kept until the end, for which sparse has no annotation */
	__release(&sroce_odp_readers.lock);
}

void sroce_odp_leave(void)
{
	__acquire(&sroce_odp_readers.lock);
	/* Its copies come before the count; pairs with sroce_odp_await_reader() */
	smp_mb();
	sroce_odp_count_reader();
	local_unlock_nested_bh(&sroce_odp_readers.lock);
}

static void sroce_odp_await_reader(const unsigned int *seq)
{
	unsigned int was = READ_ONCE(*seq);
	unsigned int spins = 0;

	if (!(was & 1))
		return;
	/* The CPU may never be idle, but another odd number means another reader */
	while (READ_ONCE(*seq) == was) {
		if (spins++ < ODP_SPINS)
			cpu_relax();
		else
			usleep_range(10, 50);
	}
}

/* On return no reader uses an entry any more that was hidden before the call */
static void sroce_odp_await_readers(void)
{
	int cpu;

	/* First the entry is hidden, then we look; pairs with sroce_odp_enter() */
	smp_mb();
	for_each_possible_cpu(cpu)
		sroce_odp_await_reader(per_cpu_ptr(&sroce_odp_readers.seq, cpu));
	/* What readers have copied comes before what the process does with the page */
	smp_mb();
}

/* --- when the process loses pages ------------------------------------------- */

/* Readers find nothing in this range from here on. Return: was there anything? */
static bool sroce_odp_hide_pages(struct sroce_odp *odp, unsigned long i,
				 unsigned long end)
{
	unsigned long found = 0;

	for (; i < end; i++) {
		unsigned long entry = odp->entries[i];

		if (entry) {
			found |= entry;
			WRITE_ONCE(odp->entries[i], entry & ~ODP_PRESENT);
		}
		if (!(i % ODP_BATCH))
			cond_resched();
	}
	return found;
}

/*
 * Empty the entries. A page that we may have written to is marked dirty, or the data
 * would be lost when it goes to swap: no dirty bit of a page table knows of our writes.
 */
static void sroce_odp_drop_pages(struct sroce_odp *odp, unsigned long i,
				 unsigned long end)
{
	for (; i < end; i++) {
		unsigned long entry = odp->entries[i];
		struct page *page = sroce_odp_entry_page(entry);

		if (entry & ODP_WRITABLE)
			set_page_dirty(compound_head(page));
		if (entry)
			WRITE_ONCE(odp->entries[i], 0);
		if (!(i % ODP_BATCH))
			cond_resched();
	}
}

/* Context: @odp->mutex held */
static void sroce_odp_forget_pages(struct sroce_odp *odp, unsigned long i,
				   unsigned long end)
{
	if (!sroce_odp_hide_pages(odp, i, end))
		return;
	sroce_odp_await_readers();
	sroce_odp_drop_pages(odp, i, end);
}

static u64 sroce_odp_base(const struct sroce_odp *odp)
{
	return odp->address & PAGE_MASK;
}

static bool sroce_odp_invalidate(struct mmu_interval_notifier *mni,
				 const struct mmu_notifier_range *range,
				 unsigned long seq)
{
	struct sroce_odp *odp = container_of(mni, struct sroce_odp, notifier);
	u64 base = sroce_odp_base(odp);
	u64 start = max_t(u64, base, range->start);
	u64 end = min_t(u64, base + odp->nr * PAGE_SIZE, range->end);

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&odp->mutex);
	mmu_interval_set_seq(mni, seq);
	sroce_odp_forget_pages(odp, PFN_DOWN(start - base), PFN_UP(end - base));
	mutex_unlock(&odp->mutex);
	return true;
}

static const struct mmu_interval_notifier_ops sroce_odp_notifier_ops = {
	.invalidate = sroce_odp_invalidate,
};

/* --- making and ending -------------------------------------------------------- */

/*
 * Reclaim calls sroce_odp_invalidate(), which takes the mutex: so nobody may allocate
 * with it held. Show lockdep that order.
 */
static void sroce_odp_teach_lockdep(struct sroce_odp *odp)
{
	if (!IS_ENABLED(CONFIG_LOCKDEP))
		return;
	fs_reclaim_acquire(GFP_KERNEL);
	mutex_lock(&odp->mutex);
	mutex_unlock(&odp->mutex);
	fs_reclaim_release(GFP_KERNEL);
}

static struct sroce_odp *sroce_odp_alloc(u64 start, u64 length)
{
	unsigned long nr = PFN_UP(offset_in_page(start) + length);
	struct sroce_pinned pinned;
	struct sroce_odp *odp;
	size_t len = struct_size(odp, entries, nr);

	/* A small table counts as a page: each makes munmap() and reclaim slower */
	if (sroce_pinned_charge(&pinned, max(len, PAGE_SIZE)))
		return NULL;
	odp = kvzalloc(len, SROCE_GFP_CHOSEN);
	if (!odp) {
		sroce_pinned_uncharge(&pinned);
		return NULL;
	}
	odp->pinned = pinned;
	refcount_set(&odp->refs, 1);
	INIT_LIST_HEAD(&odp->wants);
	mutex_init(&odp->mutex);
	sroce_odp_teach_lockdep(odp);
	odp->mm = current->mm;
	odp->address = start;
	odp->nr = nr;
	return odp;
}

static void sroce_odp_free(struct sroce_odp *odp)
{
	struct sroce_pinned pinned = odp->pinned;

	kvfree(odp);
	sroce_pinned_uncharge(&pinned);
}

struct sroce_odp *sroce_odp_create(u64 start, u64 length)
{
	struct sroce_odp *odp;
	u64 last;
	int err;

	if (check_add_overflow(start, length + PAGE_SIZE, &last))
		return ERR_PTR(-EOVERFLOW);
	odp = sroce_odp_alloc(start, length);
	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->pager = sroce_pager_get();
	if (IS_ERR(odp->pager)) {
		err = PTR_ERR(odp->pager);
		goto err_odp;
	}
	err = mmu_interval_notifier_insert(&odp->notifier, current->mm,
					   sroce_odp_base(odp),
					   odp->nr * PAGE_SIZE,
					   &sroce_odp_notifier_ops);
	if (err)
		goto err_pager;
	/* A fault that does not end may keep this alive for longer than its process */
	__module_get(THIS_MODULE);
	return odp;

err_pager:
	sroce_pager_put(odp->pager);
err_odp:
	sroce_odp_free(odp);
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
	mmu_interval_notifier_remove(&odp->notifier);
	sroce_pager_put(odp->pager);
	sroce_odp_free(odp);
	module_put(THIS_MODULE);
}

void sroce_odp_close(struct sroce_odp *odp)
{
	sroce_pager_close(odp);
}

void sroce_odp_destroy(struct sroce_odp *odp)
{
	mutex_lock(&odp->mutex);
	odp->gone = true;
	sroce_odp_forget_pages(odp, 0, odp->nr);
	mutex_unlock(&odp->mutex);
	sroce_odp_put(odp);
}

u64 sroce_odp_start(const struct sroce_odp *odp)
{
	return odp->address;
}

bool sroce_odp_is_ours(const struct sroce_odp *odp)
{
	return odp->mm == current->mm;
}

u64 sroce_odp_offset(const struct sroce_odp *odp)
{
	return offset_in_page(odp->address);
}

/* --- copying --------------------------------------------------------------------- */

/* Index of the entry for an address that is within the bounds */
static unsigned long sroce_odp_index(const struct sroce_mr *mr, u64 va)
{
	unsigned long i = (va - mr->iova + mr->offset) >> PAGE_SHIFT;

	return array_index_nospec(i, mr->odp->nr);
}

u64 sroce_odp_present(const struct sroce_mr *mr, u64 va, u64 len, bool write)
{
	unsigned long want = ODP_PRESENT | (write ? ODP_WRITABLE : 0);
	unsigned long first = sroce_odp_index(mr, va);
	unsigned long last = sroce_odp_index(mr, va + len - 1);
	unsigned long i;

	for (i = first; i <= last; i++)
		if ((READ_ONCE(mr->odp->entries[i]) & want) != want)
			break;
	if (i > last)
		return len;
	/* Of the first page only what lies behind @va */
	return i == first ? 0 : (i - first) * PAGE_SIZE -
				((va - mr->iova + mr->offset) & ~PAGE_MASK);
}

unsigned int sroce_odp_bvecs(const struct sroce_mr *mr, u64 va, u32 len,
			     struct bio_vec *bv, unsigned int max, u32 *done)
{
	unsigned long i = sroce_odp_index(mr, va);
	u32 start = (va - mr->iova + mr->offset) & ~PAGE_MASK;
	struct page *next = NULL;	/* physically behind the last entry */
	unsigned int n = 0;
	u32 left = len;

	for (; left; i++) {
		struct page *page =
			sroce_odp_entry_page(READ_ONCE(mr->odp->entries[i]));
		u32 chunk = min_t(u32, left, PAGE_SIZE - start);

		if (n && page == next) {
			bv[n - 1].bv_len += chunk;
		} else {
			if (n == max)
				break;
			bvec_set_page(&bv[n++], page, chunk, start);
		}
		next = page + 1;
		start = 0;
		left -= chunk;
	}

	*done = len - left;
	return n;
}

/* --- bringing pages in -------------------------------------------------------------- */

/*
 * The kernel's own way of getting at a process's pages, because it says no to all
 * that is not ordinary memory: memfd_secret(), devices' registers, whatever has no
 * mapping of the kernel's. We keep none of these references: the notifier tells us.
 */
static long sroce_odp_get_pages(struct sroce_odp *odp, unsigned long i,
				unsigned long n, unsigned int flags,
				struct page **pages)
{
	int locked = 1;
	long got;

	/* A caller that only looks does not wait for the lock, and comes again */
	if (flags & FOLL_NOFAULT) {
		if (!mmap_read_trylock(odp->mm))
			return -EAGAIN;
	} else if (mmap_read_lock_killable(odp->mm)) {
		return -EINTR;
	}
	got = get_user_pages_remote(odp->mm,
				    sroce_odp_base(odp) + i * PAGE_SIZE, n,
				    flags, pages, &locked);
	if (locked)
		mmap_read_unlock(odp->mm);
	return got ?: -EFAULT;
}

static void sroce_odp_put_pages(struct page **pages, long n)
{
	while (n > 0)
		put_page(pages[--n]);
}

/*
 * Enter pages into the table. False, with nothing entered, when the process may have lost
 * some of them since @seq.
 */
static bool sroce_odp_take_pages(struct sroce_odp *odp, unsigned long i,
				 struct page **pages, long n, unsigned long seq,
				 unsigned long flags)
{
	bool taken;
	long k;

	mutex_lock(&odp->mutex);
	taken = !mmu_interval_read_retry(&odp->notifier, seq) && !odp->gone;
	for (k = 0; taken && k < n; k++, i++) {
		/* An entry that is there stays, unless its page may be written to from now on */
		if (!odp->entries[i] || flags & ODP_WRITABLE)
			WRITE_ONCE(odp->entries[i],
				   (unsigned long)pages[k] | flags);
	}
	mutex_unlock(&odp->mutex);
	return taken;
}

/* Return: pages taken into the table; 0: they were lost meanwhile; or an errno */
static long sroce_odp_bring_step(struct sroce_odp *odp, unsigned long i,
				 unsigned long n, unsigned int flags)
{
	unsigned long entry = ODP_PRESENT |
			      (flags & FOLL_WRITE ? ODP_WRITABLE : 0);
	unsigned long seq = mmu_interval_read_begin(&odp->notifier);
	struct page *pages[ODP_STEP];
	long got;

	got = sroce_odp_get_pages(odp, i, min(n, ODP_STEP), flags, pages);
	if (got < 0)
		return got;
	n = sroce_odp_take_pages(odp, i, pages, got, seq, entry) ? got : 0;
	sroce_odp_put_pages(pages, got);
	return n;
}

static int sroce_odp_bring_range(struct sroce_odp *odp, unsigned long i,
				 unsigned long end, enum sroce_odp_fault how)
{
	unsigned int flags = how == SROCE_ODP_WRITE ? FOLL_WRITE : 0;
	unsigned long step = ODP_STEP;
	unsigned int tries = 0;
	long n;

	while (i < end && tries < ODP_TRIES) {
		if (READ_ONCE(odp->closing))
			return -ESHUTDOWN;
		n = sroce_odp_bring_step(odp, i, min(end - i, step), flags);
		if (n < 0)
			return n;
		i += n;
		step = n ? min(2 * step, ODP_STEP) : max(step / 2, 1);
		tries = n ? 0 : tries + 1;
		cond_resched();
	}
	return 0;
}

int sroce_odp_bring(struct sroce_odp *odp, u64 at, u64 len,
		    enum sroce_odp_fault how)
{
	struct mem_cgroup *theirs, *ours;
	int err;

	if (!mmget_not_zero(odp->mm))
		return -EFAULT;
	/* A worker is in the root's group: page tables and page cache would be charged to that */
	theirs = get_mem_cgroup_from_mm(odp->mm);
	ours = set_active_memcg(theirs);
	err = sroce_odp_bring_range(odp, PFN_DOWN(at), PFN_UP(at + len), how);
	set_active_memcg(ours);
	mem_cgroup_put(theirs);
	mmput(odp->mm);
	return err;
}

/* Pages that are there; one that is not is passed over */
static long sroce_odp_look_step(struct sroce_odp *odp, unsigned long i,
				unsigned long n)
{
	long got = sroce_odp_bring_step(odp, i, n, FOLL_NOFAULT | FOLL_WRITE);

	if (got < 0 && got != -EAGAIN)
		got = sroce_odp_bring_step(odp, i, 1, FOLL_NOFAULT);
	if (got == -EAGAIN) {
		usleep_range(50, 200);
		return 0;
	}
	return got < 0 ? 1 : got;
}

static int sroce_odp_look_range(struct sroce_odp *odp, unsigned long i,
				unsigned long end, unsigned long until)
{
	while (i < end) {
		if (READ_ONCE(odp->closing))
			return -ESHUTDOWN;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, until))
			return -ETIMEDOUT;
		i += sroce_odp_look_step(odp, i, end - i);
		cond_resched();
	}
	return 0;
}

int sroce_odp_look(struct sroce_odp *odp, u64 at, u64 len, unsigned long until)
{
	int err;

	if (!mmget_not_zero(odp->mm))
		return -EFAULT;
	err = sroce_odp_look_range(odp, PFN_DOWN(at), PFN_UP(at + len), until);
	mmput(odp->mm);
	return err;
}
