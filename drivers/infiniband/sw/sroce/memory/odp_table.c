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
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/pfn.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "memory/implicit.h"
#include "memory/odp.h"
#include "memory/odp_table.h"
#include "memory/pager.h"
#include "memory/pinned.h"

/* What an entry has besides the pointer to a struct page */
#define ODP_PRESENT 1UL
#define ODP_WRITABLE 2UL
#define ODP_FLAGS 3UL

/*
 * Entries looked at under one hold of the lock: microseconds, or some more where all of them
 * are pages to be marked dirty
 */
#define ODP_BATCH 512UL

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

/*
 * Who wants to take a page away may be anybody: reclaim, compaction and writeback come here
 * for one page of the process's. So the lock is a spinlock, held for a batch of entries,
 * and readers are waited for without it. Meanwhile nothing is entered into the range: the
 * notifier's sequence was set, or the table is gone, under the lock and before the first
 * batch. Another one who loses the same pages meanwhile finds them hidden, and waits for
 * their readers as well.
 */

/* Context: the lock held */
static unsigned long sroce_odp_hide_batch(struct sroce_odp_table *table,
					  unsigned long i, unsigned long end)
{
	unsigned long found = 0;

	for (; i < end; i++) {
		unsigned long entry = table->entries[i];

		if (entry) {
			found++;
			WRITE_ONCE(table->entries[i], entry & ~ODP_PRESENT);
		}
	}
	return found;
}

/*
 * Empty the entries. A page that we may have written to is marked dirty, or the data
 * would be lost when it goes to swap: no dirty bit of a page table knows of our writes.
 * That is done with the lock held: an entry that is there is not unmapped yet, because who
 * unmaps it has to empty it first.
 *
 * Context: the lock held
 */
static unsigned long sroce_odp_drop_batch(struct sroce_odp_table *table,
					  unsigned long i, unsigned long end)
{
	unsigned long found = 0;

	for (; i < end; i++) {
		unsigned long entry = table->entries[i];
		struct page *page = sroce_odp_entry_page(entry);

		if (entry & ODP_WRITABLE)
			set_page_dirty(compound_head(page));
		if (entry) {
			WRITE_ONCE(table->entries[i], 0);
			found++;
		}
	}
	table->filled -= found;
	return found;
}

/* As long as there is any page in the table. Return: pages that @batch has found */
static unsigned long
sroce_odp_for_batches(struct sroce_odp_table *table, unsigned long i,
		      unsigned long end,
		      unsigned long (*batch)(struct sroce_odp_table *table,
					     unsigned long i,
					     unsigned long end))
{
	unsigned long found = 0, next;
	bool filled = true;

	for (; filled && i < end; i = next) {
		next = min(i + ODP_BATCH, end);
		spin_lock(&table->lock);
		/* A process may have thousands of tables, and unmap what all of them are about */
		filled = table->filled;
		if (filled)
			found += batch(table, i, next);
		spin_unlock(&table->lock);
		cond_resched();
	}
	return found;
}

/* Readers find nothing in this range from here on. Return: pages that were there */
static unsigned long sroce_odp_hide_pages(struct sroce_odp_table *table,
					  unsigned long i, unsigned long end)
{
	return sroce_odp_for_batches(table, i, end, sroce_odp_hide_batch);
}

/* Nobody reads these any more. Return: pages that were there */
static unsigned long sroce_odp_drop_pages(struct sroce_odp_table *table,
					  unsigned long i, unsigned long end)
{
	return sroce_odp_for_batches(table, i, end, sroce_odp_drop_batch);
}

/* No page of the range is entered from here on, see above */
static void sroce_odp_forget_pages(struct sroce_odp_table *table,
				   unsigned long i, unsigned long end)
{
	unsigned long found;

	if (!sroce_odp_hide_pages(table, i, end))
		return;
	sroce_odp_await_readers();
	found = sroce_odp_drop_pages(table, i, end);
	if (found)
		atomic64_add(found, &table->stats->invalidations);
}

/*
 * The OOM reaper must not wait, neither for the lock, which sleeps where kernels are
 * preemptible everywhere, nor for readers. Where there is no page there is nothing to wait
 * for, and it can have the memory. Return: false when we would wait.
 */
static bool sroce_odp_invalidate(struct mmu_interval_notifier *mni,
				 const struct mmu_notifier_range *range,
				 unsigned long seq)
{
	struct sroce_odp_table *table = container_of(mni, struct sroce_odp_table,
						     notifier);
	u64 start = max_t(u64, table->base, range->start);
	u64 end = min_t(u64, table->base + table->nr * PAGE_SIZE, range->end);
	bool may = mmu_notifier_range_blockable(range), filled;

	if (may)
		spin_lock(&table->lock);
	else if (!spin_trylock(&table->lock))
		return false;
	filled = table->filled;
	may = may || !filled;
	if (may)
		mmu_interval_set_seq(mni, seq);
	spin_unlock(&table->lock);
	if (may && filled)
		sroce_odp_forget_pages(table, PFN_DOWN(start - table->base),
				       PFN_UP(end - table->base));
	return may;
}

static const struct mmu_interval_notifier_ops sroce_odp_notifier_ops = {
	.invalidate = sroce_odp_invalidate,
};

/* --- making and ending -------------------------------------------------------- */

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

struct sroce_odp_table *sroce_odp_table_create(struct sroce_odp *odp, u64 base,
					       unsigned long nr)
{
	struct sroce_odp_table *table = sroce_odp_table_alloc(nr);
	int err;

	if (!table)
		return ERR_PTR(-ENOMEM);
	refcount_set(&table->refs, 1);
	spin_lock_init(&table->lock);
	INIT_LIST_HEAD(&table->node);
	table->odp = odp;
	table->mm = odp->mm;
	table->closing = &odp->closing;
	table->stats = &odp->stats;
	table->base = base;
	table->nr = nr;
	err = mmu_interval_notifier_insert(&table->notifier, table->mm, base,
					   nr * PAGE_SIZE,
					   &sroce_odp_notifier_ops);
	if (err) {
		sroce_odp_table_free(table);
		return ERR_PTR(err);
	}
	sroce_odp_keep(odp);
	return table;
}

void sroce_odp_table_put(struct sroce_odp_table *table)
{
	if (refcount_dec_and_test(&table->refs))
		sroce_pager_end_table(table->odp->pager, table);
}

void sroce_odp_table_end(struct sroce_odp_table *table)
{
	struct sroce_odp *odp = table->odp;

	mmu_interval_notifier_remove(&table->notifier);
	sroce_odp_table_free(table);
	if (odp->implicit)
		sroce_implicit_table_ended(odp->implicit);
	sroce_odp_release(odp);
}

/* No page is entered from here on */
static void sroce_odp_table_go(struct sroce_odp_table *table)
{
	spin_lock(&table->lock);
	table->gone = true;
	spin_unlock(&table->lock);
}

void sroce_odp_table_hide(struct sroce_odp_table *table)
{
	sroce_odp_table_go(table);
	if (sroce_odp_hide_pages(table, 0, table->nr))
		sroce_odp_await_readers();
}

/* Also where no page is there: a reader may be looking for one */
void sroce_odp_table_close(struct sroce_odp_table *table)
{
	sroce_odp_table_go(table);
	sroce_odp_hide_pages(table, 0, table->nr);
	sroce_odp_await_readers();
	sroce_odp_drop_pages(table, 0, table->nr);
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
 *
 * It would not tell of an address with a tag in its upper bits, which a peer may name in an
 * implicit region: pages are found there all the same, but lost at the address without it.
 */
long sroce_odp_get_pages(struct mm_struct *mm, u64 addr, unsigned long n,
			 unsigned int flags, struct page **pages)
{
	int locked = 1;
	long got;

	if (addr >= mm->task_size)
		return -EFAULT;
	n = min_t(u64, n, PFN_UP(mm->task_size - addr));
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
	spin_lock(&table->lock);
	taken = !mmu_interval_read_retry(&table->notifier, seq) && !table->gone;
	for (k = 0; taken && k < n; k++, i++) {
		*fresh += !table->entries[i];
		/* An entry that is there stays, unless its page may be written to from now on */
		if (!table->entries[i] || flags & ODP_WRITABLE)
			WRITE_ONCE(table->entries[i],
				   (unsigned long)pages[k] | flags);
	}
	table->filled += *fresh;
	spin_unlock(&table->lock);
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
