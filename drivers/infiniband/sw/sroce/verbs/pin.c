// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pinning the memory of a region.
 *
 * A page that is not there may be a long time coming, or not come at all: it may belong to
 * a file system in user space that does not answer, or be awaited from a userfaultfd that
 * nobody reads. ib_umem_get() waits for it inside a call of the process, and as long as one
 * of these lasts nobody can take the device away. So a caller pins only memory here for which
 * nobody has to be waited for. Any other its pager pins (memory/pager.c), and the caller waits
 * for that until somebody wants the device to go. It does not pin by itself what the pager has
 * brought in: that may be gone again, or have to be moved, which may be as long a wait.
 *
 * What is made here is a umem like those that ib_umem_get() makes, and ib_umem_release()
 * ends it.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/hugetlb_inline.h>
#include <linux/jiffies.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/userfaultfd_k.h>
#include <asm/mmu_context.h>
#include <rdma/ib_umem.h>

#include "device.h"
#include "memory/odp.h"
#include "memory/pinned.h"
#include "verbs/compat.h"
#include "verbs/verbs.h"

/* Bytes that the pager is asked for at a time */
#define SROCE_PIN_AHEAD SZ_1M

/*
 * For so long the device is awaited before a caller gives up. It is so for a moment, too,
 * when any network namespace ends.
 */
#define SROCE_PIN_PATIENCE (2 * HZ)

/* Time after which a caller that waits looks again whether it is */
#define SROCE_PIN_LOOK (HZ / 10)

/**
 * struct sroce_pin - memory that is being pinned
 * @umem: what is pinned
 * @at: address of the next page
 * @left: pages to be pinned
 * @alike: pages from @at on that are memory of one kind, as was seen last
 * @flags: FOLL_*, of all
 * @pages: room for SROCE_ODP_PINNED of them, which are pinned at a time
 * @calm: jiffies when nobody was seen to await the device
 */
struct sroce_pin {
	struct ib_umem *umem;
	unsigned long at;
	unsigned long left;
	unsigned long alike;
	unsigned int flags;
	struct page **pages;
	unsigned long calm;
};

/* Is it too late to go on? Return: 0, or an errno */
static int sroce_pin_is_late(struct sroce_pin *pin)
{
	if (fatal_signal_pending(current))
		return -EINTR;
	if (!sroce_device_awaited(pin->umem->ibdev))
		pin->calm = jiffies;
	return time_after(jiffies, pin->calm + SROCE_PIN_PATIENCE) ? -EIO : 0;
}

/* The next pages are pinned */
static int sroce_pin_append(struct sroce_pin *pin, unsigned long n)
{
	struct ib_umem *umem = pin->umem;
	int err;

	err = sg_alloc_append_table_from_pages(&umem->sgt_append, pin->pages, n,
					       0, n << PAGE_SHIFT,
					       ib_dma_max_seg_size(umem->ibdev),
					       pin->left - n, SROCE_GFP_CHOSEN);
	if (err) {
		unpin_user_pages(pin->pages, n);
		return err;
	}
	pin->at += n << PAGE_SHIFT;
	pin->left -= n;
	return 0;
}

/* --- pages that have to be waited for ------------------------------------------- */

/**
 * struct sroce_pin_want - a page that the caller waits for
 * @want: what the pager is asked for
 * @done: it is there, or cannot be had
 * @err: the latter
 */
struct sroce_pin_want {
	struct sroce_want want;
	struct completion done;
	int err;
};

static void sroce_pin_done(struct sroce_want *want, int err)
{
	struct sroce_pin_want *w = container_of(want, struct sroce_pin_want,
						want);

	w->err = err;
	complete(&w->done);
}

static int sroce_pin_wait(struct sroce_pin *pin, struct sroce_pin_want *w)
{
	long left;
	int err;

	do {
		left = wait_for_completion_killable_timeout(&w->done,
							    SROCE_PIN_LOOK);
		if (left > 0)
			return w->err;
		err = sroce_pin_is_late(pin);
	} while (!left && !err);
	/* Too late to cancel: sroce_pin_done() is being called */
	if (!sroce_want_cancel(&w->want))
		wait_for_completion(&w->done);
	return err ?: -EINTR;
}

/* Have the next page pinned, and some behind it */
static int sroce_pin_ask(struct sroce_pin *pin)
{
	struct sroce_pin_want w = {
		.want.done = sroce_pin_done,
		.want.len = PAGE_SIZE,
		.want.ahead = min_t(u64, (u64)pin->alike << PAGE_SHIFT,
				    SROCE_PIN_AHEAD),
		.want.how = pin->umem->writable ? SROCE_ODP_PIN_WRITE :
						  SROCE_ODP_PIN_READ,
	};
	int err;

	init_completion(&w.done);
	w.want.odp = sroce_odp_create_bare(pin->at);
	if (IS_ERR(w.want.odp))
		return PTR_ERR(w.want.odp);
	err = sroce_want_submit(&w.want);
	if (!err)
		err = sroce_pin_wait(pin, &w);
	/* That is what the kernel says of some pages that cannot be pinned; no worker was busy */
	if (err == -EBUSY)
		err = -EFAULT;
	if (!err)
		err = sroce_pin_append(pin, sroce_odp_take_pinned(w.want.odp,
								  pin->pages));
	sroce_odp_close(w.want.odp);
	sroce_odp_destroy(w.want.odp, false);
	return err;
}

/* Where all workers of the user wait for pages it is our turn when one of them has ended */
static int sroce_pin_bring(struct sroce_pin *pin)
{
	int err, late = 0;

	while ((err = sroce_pin_ask(pin)) == -EBUSY && !late) {
		schedule_timeout_killable(SROCE_PIN_LOOK);
		late = sroce_pin_is_late(pin);
	}
	return late ?: err;
}

/* --- pages that need not be waited for -------------------------------------------- */

/*
 * Does whoever touches such memory wait for nobody, but for the machine's own disks at most? It
 * should be the process itself, then, whose limits and policies are for whoever does. (A device
 * file in a tmpfs is no memory of that.)
 */
static bool sroce_pin_is_plain(struct vm_area_struct *vma)
{
	const struct inode *inode;

	if (userfaultfd_armed(vma))
		return false;
	if (vma_is_anonymous(vma) || is_vm_hugetlb_page(vma))
		return true;
	inode = vma->vm_file ? file_inode(vma->vm_file) : NULL;
	return inode && S_ISREG(inode->i_mode) &&
	       inode->i_sb->s_magic == TMPFS_MAGIC;
}

/*
 * Pin pages if nobody has to be waited for. What kind of memory it is stays true as long as the
 * lock is held.
 * Return: how many, or an errno; 0: it is for the pager.
 */
static long sroce_pin_plain(struct sroce_pin *pin)
{
	bool write = pin->umem->writable;
	struct vm_area_struct *vma;
	long got = 0;

	if (mmap_read_lock_killable(current->mm))
		return -EINTR;
	vma = vma_lookup(current->mm, pin->at);
	/* Protection keys are this thread's, and the pager does not know them */
	if (vma && arch_vma_access_permitted(vma, write, false, false))
		pin->alike = min(pin->left,
				 (vma->vm_end - pin->at) >> PAGE_SHIFT);
	else
		got = -EFAULT;
	if (!got && sroce_pin_is_plain(vma))
		got = pin_user_pages(pin->at, min(pin->alike, SROCE_ODP_PINNED),
				     pin->flags | FOLL_NOWAIT, pin->pages);
	mmap_read_unlock(current->mm);
	return got;
}

static int sroce_pin_step(struct sroce_pin *pin)
{
	long got = sroce_pin_plain(pin);

	if (!got)
		return sroce_pin_bring(pin);
	return got < 0 ? got : sroce_pin_append(pin, got);
}

static int sroce_pin_all(struct sroce_pin *pin)
{
	int err = 0;

	while (pin->left && !err) {
		cond_resched();
		err = sroce_pin_is_late(pin) ?: sroce_pin_step(pin);
	}
	if (err)
		return err;
	return ib_dma_map_sgtable_attrs(pin->umem->ibdev,
					&pin->umem->sgt_append.sgt,
					DMA_BIDIRECTIONAL, 0);
}

/* --- umems ----------------------------------------------------------------------------- */

/* Nothing is pinned yet, and all is counted, for ib_umem_release() to undo */
static struct ib_umem *sroce_pin_umem(struct ib_device *ibdev, u64 start,
				      u64 length, int access)
{
	struct sroce_pinned pinned;
	struct ib_umem *umem;
	int err;

	umem = kzalloc_obj(*umem, GFP_KERNEL_ACCOUNT);
	if (!umem)
		return ERR_PTR(-ENOMEM);
	umem->ibdev = ibdev;
	umem->address = start;
	umem->iova = start;
	umem->length = length;
	umem->writable = ib_access_writable(access);
	err = sroce_pinned_charge(&pinned, ib_umem_num_pages(umem) << PAGE_SHIFT);
	if (err) {
		kfree(umem);
		return ERR_PTR(err);
	}
	umem->owning_mm = pinned.mm;
	return umem;
}

static int sroce_pin_check(u64 start, u64 length)
{
	unsigned long last;

	if (check_add_overflow(start, length + PAGE_SIZE, &last))
		return -EINVAL;
	return can_do_mlock() ? 0 : -EPERM;
}

struct ib_umem *sroce_pin(struct ib_device *ibdev, u64 start, u64 length,
			  int access)
{
	struct sroce_pin pin = {
		.at = untagged_addr(start) & PAGE_MASK,
		.flags = FOLL_LONGTERM,
		.calm = jiffies,
	};
	int err;

	err = sroce_pin_check(start, length);
	if (err)
		return ERR_PTR(err);
	pin.pages = (struct page **)__get_free_page(GFP_KERNEL);
	if (!pin.pages)
		return ERR_PTR(-ENOMEM);
	pin.umem = sroce_pin_umem(ibdev, start, length, access);
	if (!IS_ERR(pin.umem)) {
		pin.left = ib_umem_num_pages(pin.umem);
		pin.flags |= pin.umem->writable ? FOLL_WRITE : SROCE_PIN_READ;
		err = sroce_pin_all(&pin);
	}
	free_page((unsigned long)pin.pages);
	if (!err)
		return pin.umem;
	/* Nobody has written to it */
	pin.umem->writable = 0;
	ib_umem_release(pin.umem);
	return ERR_PTR(err);
}
