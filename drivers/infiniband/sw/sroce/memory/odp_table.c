// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tables of the pages of regions on demand: those who read them, and what happens when
 * a process loses a page (memory/odp.h). On the way of a message only where its memory
 * is such a region; the pages that it misses are brought in for memory/pager.c.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/pfn.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory/odp.h"
#include "memory/odp_table.h"
#include "memory/pager.h"
#include "memory/pinned.h"

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

/* Readers find nothing in this range from here on. Return: pages that were there */
static unsigned long sroce_odp_hide_pages(struct sroce_odp_table *table,
					  unsigned long i, unsigned long end)
{
	unsigned long found = 0;

	for (; i < end; i++) {
		unsigned long entry = table->entries[i];

		if (entry) {
			found++;
			WRITE_ONCE(table->entries[i], entry & ~ODP_PRESENT);
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
static void sroce_odp_drop_pages(struct sroce_odp_table *table, unsigned long i,
				 unsigned long end)
{
	for (; i < end; i++) {
		unsigned long entry = table->entries[i];
		struct page *page = sroce_odp_entry_page(entry);

		if (entry & ODP_WRITABLE)
			set_page_dirty(compound_head(page));
		if (entry) {
			WRITE_ONCE(table->entries[i], 0);
			table->filled--;
		}
		if (!(i % ODP_BATCH))
			cond_resched();
	}
}

/* Context: @table->mutex held. Return: pages that were there */
static unsigned long sroce_odp_forget_pages(struct sroce_odp_table *table,
					    unsigned long i, unsigned long end)
{
	unsigned long found;

	/* A process may have thousands of tables, and unmap what all of them are about */
	if (!table->filled)
		return 0;
	found = sroce_odp_hide_pages(table, i, end);
	if (found) {
		sroce_odp_await_readers();
		sroce_odp_drop_pages(table, i, end);
	}
	return found;
}

/*
 * The OOM reaper must not wait, neither for the mutex nor for readers. Where there is no
 * page there is nothing to wait for, and it can have the memory. Return: false when we would.
 */
static bool sroce_odp_lock_to_lose(struct sroce_odp_table *table,
				   const struct mmu_notifier_range *range)
{
	if (mmu_notifier_range_blockable(range)) {
		mutex_lock(&table->mutex);
		return true;
	}
	if (!mutex_trylock(&table->mutex))
		return false;
	if (!table->filled)
		return true;
	mutex_unlock(&table->mutex);
	return false;
}

static bool sroce_odp_invalidate(struct mmu_interval_notifier *mni,
				 const struct mmu_notifier_range *range,
				 unsigned long seq)
{
	struct sroce_odp_table *table = container_of(mni, struct sroce_odp_table,
						     notifier);
	u64 start = max_t(u64, table->base, range->start);
	u64 end = min_t(u64, table->base + table->nr * PAGE_SIZE, range->end);
	unsigned long found;

	if (!sroce_odp_lock_to_lose(table, range))
		return false;
	mmu_interval_set_seq(mni, seq);
	found = sroce_odp_forget_pages(table, PFN_DOWN(start - table->base),
				       PFN_UP(end - table->base));
	mutex_unlock(&table->mutex);
	if (found)
		atomic64_add(found, &table->stats->invalidations);
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
static void sroce_odp_teach_lockdep(struct sroce_odp_table *table)
{
	if (!IS_ENABLED(CONFIG_LOCKDEP))
		return;
	fs_reclaim_acquire(GFP_KERNEL);
	mutex_lock(&table->mutex);
	mutex_unlock(&table->mutex);
	fs_reclaim_release(GFP_KERNEL);
}

size_t sroce_odp_table_bytes(unsigned long nr)
{
	return sizeof(struct sroce_odp_table) + nr * sizeof(unsigned long);
}

/* The entries apart: for those of an implicit region that is a whole number of pages */
static struct sroce_odp_table *sroce_odp_table_alloc(unsigned long nr)
{
	struct sroce_odp_table *table = kzalloc_obj(*table, GFP_KERNEL_ACCOUNT);

	if (!table)
		return NULL;
	table->entries = kvcalloc(nr, sizeof(*table->entries),
				  SROCE_GFP_CHOSEN);
	if (table->entries)
		return table;
	kfree(table);
	return NULL;
}

static void sroce_odp_table_free(struct sroce_odp_table *table)
{
	kvfree(table->entries);
	kfree(table);
}

struct sroce_odp_table *sroce_odp_table_create(struct mm_struct *mm, u64 base,
					       unsigned long nr,
					       const bool *closing,
					       struct sroce_odp_stats *stats)
{
	struct sroce_odp_table *table = sroce_odp_table_alloc(nr);
	int err;

	if (!table)
		return ERR_PTR(-ENOMEM);
	refcount_set(&table->refs, 1);
	mutex_init(&table->mutex);
	sroce_odp_teach_lockdep(table);
	table->mm = mm;
	table->closing = closing;
	table->stats = stats;
	table->base = base;
	table->nr = nr;
	err = mmu_interval_notifier_insert(&table->notifier, mm, base,
					   nr * PAGE_SIZE,
					   &sroce_odp_notifier_ops);
	if (!err)
		return table;
	sroce_odp_table_free(table);
	return ERR_PTR(err);
}

void sroce_odp_table_put(struct sroce_odp_table *table)
{
	if (!refcount_dec_and_test(&table->refs))
		return;
	mmu_interval_notifier_remove(&table->notifier);
	sroce_odp_table_free(table);
}

void sroce_odp_table_hide(struct sroce_odp_table *table)
{
	mutex_lock(&table->mutex);
	table->gone = true;
	if (sroce_odp_hide_pages(table, 0, table->nr))
		sroce_odp_await_readers();
	mutex_unlock(&table->mutex);
}

/* Also where no page is there: a reader may be looking for one */
void sroce_odp_table_close(struct sroce_odp_table *table)
{
	mutex_lock(&table->mutex);
	table->gone = true;
	sroce_odp_hide_pages(table, 0, table->nr);
	sroce_odp_await_readers();
	sroce_odp_drop_pages(table, 0, table->nr);
	mutex_unlock(&table->mutex);
}

/* --- copying --------------------------------------------------------------------- */

/* Index of the entry for a byte that is within the bounds */
static unsigned long sroce_odp_index(const struct sroce_odp_table *table,
				     u64 at)
{
	return array_index_nospec(at >> PAGE_SHIFT, table->nr);
}

u64 sroce_odp_table_present(const struct sroce_odp_table *table, u64 at,
			    u64 len, bool write)
{
	unsigned long want = ODP_PRESENT | (write ? ODP_WRITABLE : 0);
	unsigned long first = sroce_odp_index(table, at);
	unsigned long last = sroce_odp_index(table, at + len - 1);
	unsigned long i;

	for (i = first; i <= last; i++)
		if ((READ_ONCE(table->entries[i]) & want) != want)
			break;
	if (i > last)
		return len;
	/* Of the first page only what lies behind @at */
	return i == first ? 0 : (i - first) * PAGE_SIZE - (at & ~PAGE_MASK);
}

unsigned int sroce_odp_table_bvecs(const struct sroce_odp_table *table, u64 at,
				   u32 len, struct bio_vec *bv,
				   unsigned int max, u32 *done)
{
	unsigned long i = sroce_odp_index(table, at);
	u32 start = at & ~PAGE_MASK;
	struct page *next = NULL;	/* physically behind the last entry */
	unsigned int n = 0;
	u32 left = len;

	for (; left; i++) {
		struct page *page =
			sroce_odp_entry_page(READ_ONCE(table->entries[i]));
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
long sroce_odp_get_pages(struct mm_struct *mm, u64 addr, unsigned long n,
			 unsigned int flags, struct page **pages)
{
	int locked = 1;
	long got;

	/* A caller that only looks does not wait for the lock, and comes again */
	if (flags & FOLL_NOFAULT) {
		if (!mmap_read_trylock(mm))
			return -EAGAIN;
	} else if (mmap_read_lock_killable(mm)) {
		return -EINTR;
	}
	got = get_user_pages_remote(mm, addr, n, flags, pages, &locked);
	if (locked)
		mmap_read_unlock(mm);
	return got ?: -EFAULT;
}

static void sroce_odp_put_pages(struct page **pages, long n)
{
	while (n > 0)
		put_page(pages[--n]);
}

/*
 * Enter pages into the table. False, with nothing entered, when the process may have lost
 * some of them since @seq. @fresh is set to the number of those that were not there.
 */
static bool sroce_odp_take_pages(struct sroce_odp_table *table, unsigned long i,
				 struct page **pages, long n, unsigned long seq,
				 unsigned long flags, long *fresh)
{
	bool taken;
	long k;

	*fresh = 0;
	mutex_lock(&table->mutex);
	taken = !mmu_interval_read_retry(&table->notifier, seq) && !table->gone;
	for (k = 0; taken && k < n; k++, i++) {
		*fresh += !table->entries[i];
		/* An entry that is there stays, unless its page may be written to from now on */
		if (!table->entries[i] || flags & ODP_WRITABLE)
			WRITE_ONCE(table->entries[i],
				   (unsigned long)pages[k] | flags);
	}
	table->filled += *fresh;
	mutex_unlock(&table->mutex);
	return taken;
}

/* Return: pages taken into the table; 0: they were lost meanwhile; or an errno */
static long sroce_odp_bring_step(struct sroce_odp_table *table, unsigned long i,
				 unsigned long n, unsigned int flags,
				 atomic64_t *count)
{
	unsigned long entry = ODP_PRESENT |
			      (flags & FOLL_WRITE ? ODP_WRITABLE : 0);
	unsigned long seq = mmu_interval_read_begin(&table->notifier);
	struct page *pages[ODP_STEP];
	long got, fresh;

	got = sroce_odp_get_pages(table->mm, table->base + i * PAGE_SIZE,
				  min(n, ODP_STEP), flags, pages);
	if (got < 0)
		return got;
	n = got;
	if (!sroce_odp_take_pages(table, i, pages, got, seq, entry, &fresh))
		n = 0;
	atomic64_add(fresh, count);
	sroce_odp_put_pages(pages, got);
	return n;
}

static int sroce_odp_bring_range(struct sroce_odp_table *table, unsigned long i,
				 unsigned long end, unsigned int flags,
				 atomic64_t *count)
{
	unsigned long step = ODP_STEP;
	unsigned int tries = 0;
	long n;

	while (i < end && tries < ODP_TRIES) {
		if (READ_ONCE(*table->closing))
			return -ESHUTDOWN;
		n = sroce_odp_bring_step(table, i, min(end - i, step), flags,
					 count);
		if (n < 0)
			return n;
		i += n;
		step = n ? min(2 * step, ODP_STEP) : max(step / 2, 1);
		tries = n ? 0 : tries + 1;
		cond_resched();
	}
	return 0;
}

int sroce_odp_table_bring(struct sroce_odp_table *table, u64 at, u64 len,
			  enum sroce_odp_fault how, atomic64_t *count)
{
	return sroce_odp_bring_range(table, PFN_DOWN(at), PFN_UP(at + len),
				     how == SROCE_ODP_WRITE ? FOLL_WRITE : 0,
				     count);
}

/* Pages that are there; one that is not is passed over */
static long sroce_odp_look_step(struct sroce_odp_table *table, unsigned long i,
				unsigned long n)
{
	atomic64_t *count = &table->stats->prefetches;
	long got = sroce_odp_bring_step(table, i, n, FOLL_NOFAULT | FOLL_WRITE,
					count);

	if (got < 0 && got != -EAGAIN)
		got = sroce_odp_bring_step(table, i, 1, FOLL_NOFAULT, count);
	if (got == -EAGAIN) {
		usleep_range(50, 200);
		return 0;
	}
	return got < 0 ? 1 : got;
}

int sroce_odp_table_look(struct sroce_odp_table *table, u64 at, u64 len,
			 unsigned long until)
{
	unsigned long end = PFN_UP(at + len);
	unsigned long i = PFN_DOWN(at);

	while (i < end) {
		if (READ_ONCE(*table->closing))
			return -ESHUTDOWN;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, until))
			return -ETIMEDOUT;
		i += sroce_odp_look_step(table, i, end - i);
		cond_resched();
	}
	return 0;
}
