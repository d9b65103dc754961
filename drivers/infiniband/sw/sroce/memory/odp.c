// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/err.h>
#include <linux/hmm.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_umem_odp.h>

#include "compat.h"
#include "memory/odp.h"

/* What an entry has besides the pointer to a struct page */
#define ODP_PRESENT 1UL
#define ODP_WRITABLE 2UL
#define ODP_FLAGS 3UL

/* Entries changed with bottom halves off */
#define ODP_BATCH 1024

/* Pages asked of the process at once: less is given up when one is lost */
#define ODP_FAULT_BYTES (2 * 1024 * 1024)

/**
 * struct sroce_odp - pages of a region on demand
 * @lock: readers copy; writers take entries away; with bottom halves off
 * @faults: held for reading by who brings pages in, for writing by who only looks
 *	which are there: older kernels warn when one comes between that look and
 *	the use of what was seen
 * @umem: the kernel's part: its mutex serialises who changes @entries
 * @entries: for each page a pointer and flags; 0: not there
 */
struct sroce_odp {
	rwlock_t lock;
	struct rw_semaphore faults;
	struct ib_umem_odp *umem;
	unsigned long entries[];
};

static struct page *entry_page(unsigned long entry)
{
	return (struct page *)(entry & ~ODP_FLAGS);
}

/* --- when the process loses pages ------------------------------------------- */

static void forget_batch(struct sroce_odp *odp, unsigned long i,
			 unsigned long end)
{
	write_lock_bh(&odp->lock);
	for (; i < end; i++)
		odp->entries[i] &= ~ODP_PRESENT;
	write_unlock_bh(&odp->lock);
}

/*
 * Nobody copies to these pages any more. What was written must not be lost
 * when the page goes to swap: the processor's own dirty bit knows nothing of it.
 */
static void release_batch(struct sroce_odp *odp, unsigned long i,
			  unsigned long end)
{
	for (; i < end; i++) {
		unsigned long entry = odp->entries[i];

		if (entry & ODP_WRITABLE)
			set_page_dirty(compound_head(entry_page(entry)));
		odp->entries[i] = 0;
	}
}

/* Context: the umem's mutex held */
static void forget_pages(struct sroce_odp *odp, unsigned long i,
			 unsigned long end)
{
	while (i < end) {
		unsigned long stop = min(end, i + ODP_BATCH);

		forget_batch(odp, i, stop);
		release_batch(odp, i, stop);
		i = stop;
		cond_resched();
	}
}

static bool odp_invalidate(struct mmu_interval_notifier *mni,
			   const struct mmu_notifier_range *range,
			   unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp,
						notifier);
	u64 start = max_t(u64, ib_umem_start(umem), range->start);
	u64 end = min_t(u64, ib_umem_end(umem), range->end);

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	/* not set before the first page is there, which takes the mutex */
	if (umem->private)
		forget_pages(umem->private,
			     (start - ib_umem_start(umem)) >> PAGE_SHIFT,
			     (end - ib_umem_start(umem)) >> PAGE_SHIFT);
	ib_umem_odp_unmap_dma_pages(umem, start, end);
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops odp_notifier_ops = {
	.invalidate = odp_invalidate,
};

/* --- making and ending -------------------------------------------------------- */

static unsigned long odp_nr_pages(struct ib_umem_odp *umem)
{
	return (ib_umem_end(umem) - ib_umem_start(umem)) >> PAGE_SHIFT;
}

struct sroce_odp *sroce_odp_create(struct ib_device *ibdev, u64 start,
				   u64 length, int access)
{
	struct ib_umem_odp *umem;
	struct sroce_odp *odp;

	/* pages of every size are followed in small ones */
	umem = ib_umem_odp_get(ibdev, start, length,
			       access & ~IB_ACCESS_HUGETLB, &odp_notifier_ops);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	odp = kvzalloc(struct_size(odp, entries, odp_nr_pages(umem)),
		       GFP_KERNEL_ACCOUNT);
	if (!odp) {
		ib_umem_odp_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	rwlock_init(&odp->lock);
	init_rwsem(&odp->faults);
	odp->umem = umem;
	mutex_lock(&umem->umem_mutex);
	umem->private = odp;
	mutex_unlock(&umem->umem_mutex);
	return odp;
}

void sroce_odp_destroy(struct sroce_odp *odp)
{
	struct ib_umem_odp *umem = odp->umem;

	mutex_lock(&umem->umem_mutex);
	forget_pages(odp, 0, odp_nr_pages(umem));
	umem->private = NULL;
	mutex_unlock(&umem->umem_mutex);
	ib_umem_odp_release(umem);
	kvfree(odp);
}

u64 sroce_odp_start(const struct sroce_odp *odp)
{
	return odp->umem->umem.address;
}

bool sroce_odp_is_ours(const struct sroce_odp *odp)
{
	return odp->umem->umem.owning_mm == current->mm;
}

u64 sroce_odp_offset(const struct sroce_odp *odp)
{
	return odp->umem->umem.address - ib_umem_start(odp->umem);
}

/* --- copying --------------------------------------------------------------------- */

static unsigned long odp_index(const struct sroce_mr *mr, u64 va)
{
	return (va - mr->iova + mr->offset) >> PAGE_SHIFT;
}

int sroce_odp_begin(const struct sroce_mr *mr, u64 va, u64 len, bool write)
{
	unsigned long want = ODP_PRESENT | (write ? ODP_WRITABLE : 0);
	unsigned long last = odp_index(mr, va + len - 1);
	unsigned long i = odp_index(mr, va);

	read_lock(&mr->odp->lock);
	for (; i <= last; i++) {
		if ((READ_ONCE(mr->odp->entries[i]) & want) != want) {
			read_unlock(&mr->odp->lock);
			return -EAGAIN;
		}
	}
	/* It stays locked, which sparse has no words for in a result of 0 */
	__release(&mr->odp->lock);
	return 0;
}

void sroce_odp_end(const struct sroce_mr *mr)
{
	__acquire(&mr->odp->lock);
	read_unlock(&mr->odp->lock);
}

unsigned int sroce_odp_bvecs(const struct sroce_mr *mr, u64 va, u32 len,
			     struct bio_vec *bv, unsigned int max, u32 *done)
{
	unsigned long i = odp_index(mr, va);
	u32 start = (va - mr->iova + mr->offset) & ~PAGE_MASK;
	struct page *next = NULL;	/* physically behind the last entry */
	unsigned int n = 0;
	u32 left = len;

	for (; left; i++) {
		struct page *page = entry_page(READ_ONCE(mr->odp->entries[i]));
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

/* Context: the umem's mutex held, so none of these pages is going */
static void take_pages(struct sroce_odp *odp, unsigned long i,
		       unsigned long end)
{
	unsigned long *pfns = sroce_umem_odp_pfns(odp->umem);

	for (; i < end; i++) {
		unsigned long entry;

		if (!(pfns[i] & HMM_PFN_VALID))
			continue;
		entry = (unsigned long)hmm_pfn_to_page(pfns[i]) | ODP_PRESENT;
		if (pfns[i] & HMM_PFN_WRITE)
			entry |= ODP_WRITABLE;
		/* what is known already may be in use, and is no worse */
		if (!(odp->entries[i] & ODP_PRESENT) || entry & ODP_WRITABLE)
			WRITE_ONCE(odp->entries[i], entry);
	}
}

static int fault_piece(struct sroce_odp *odp, u64 at, u64 len,
		       enum sroce_odp_fault how)
{
	u64 base = ib_umem_start(odp->umem);
	int ret;

	ret = ib_umem_odp_map_dma_and_lock(odp->umem, base + at, len,
					   sroce_umem_odp_access(how ==
								 SROCE_ODP_WRITE),
					   how != SROCE_ODP_SNAPSHOT);
	if (ret < 0)
		return ret;
	take_pages(odp, at >> PAGE_SHIFT,
		   (at + len + PAGE_SIZE - 1) >> PAGE_SHIFT);
	mutex_unlock(&odp->umem->umem_mutex);
	return 0;
}

/*
 * Nobody may have to wait for a process that lets a page wait (userfaultfd): whoever
 * only looks is told that there is nothing new while others bring pages in.
 */
static bool begin_faults(struct sroce_odp *odp, enum sroce_odp_fault how)
{
	if (how == SROCE_ODP_SNAPSHOT)
		return down_write_trylock(&odp->faults);
	down_read(&odp->faults);
	return true;
}

static void end_faults(struct sroce_odp *odp, enum sroce_odp_fault how)
{
	if (how == SROCE_ODP_SNAPSHOT)
		up_write(&odp->faults);
	else
		up_read(&odp->faults);
}

int sroce_odp_fault(const struct sroce_mr *mr, u64 va, u64 len,
		    enum sroce_odp_fault how)
{
	u64 at = va - mr->iova;
	u64 end = at + min(len, mr->length - at);
	int err = 0;

	for (; at < end && !err; at = ALIGN_DOWN(at, ODP_FAULT_BYTES) +
				      ODP_FAULT_BYTES) {
		u64 stop = min(end, ALIGN_DOWN(at, ODP_FAULT_BYTES) +
			       ODP_FAULT_BYTES);

		/* sroce_mr_free() waits for us */
		if (READ_ONCE(mr->closing))
			return -ESHUTDOWN;
		if (!begin_faults(mr->odp, how))
			return 0;
		err = fault_piece(mr->odp, at + mr->offset, stop - at, how);
		end_faults(mr->odp, how);
	}
	return err;
}
