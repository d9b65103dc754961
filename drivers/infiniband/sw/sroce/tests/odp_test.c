// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory on demand: which pages a region has, who brings them in, and that nobody
 * waits for a page that does not come.
 */
#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "memory/mr.h"
#include "memory/odp.h"
#include "memory/odp_table.h"
#include "memory/pd.h"
#include "memory/pager.h"
#include "memory/workers.h"
#include "tests/waiter.h"

#define DEMAND_PAGES 16
#define DEMAND_IOVA 0x5000000123
/* The region begins so many bytes behind the mapping */
#define DEMAND_SKEW 0x123

/* Whatever is not to wait has this long, on a machine that may be slow */
#define SOON (5 * HZ)
#define SOON_SLICES 50

/* In slices: while the whole machine stands still, time passes and nobody waits */
static bool soon(struct completion *done)
{
	int i;

	for (i = 0; i < SOON_SLICES; i++)
		if (wait_for_completion_timeout(done, SOON / SOON_SLICES))
			return true;
	return false;
}

struct world {
	struct sroce_mr_table table;
	union {
		struct sroce_pd domain;
		struct ib_pd pd;
	};
};

static int world_init(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	if (!w)
		return -ENOMEM;
	sroce_mr_table_init(&w->table);
	test->priv = w;
	return 0;
}

static void world_exit(struct kunit *test)
{
	struct world *w = test->priv;

	if (w)
		sroce_mr_table_destroy(&w->table);
}

/* --- a region ------------------------------------------------------------------- */

struct demand {
	struct sroce_mr *mr;
	unsigned long start;	/* of the mapping */
};

static void demand_register_pages(struct kunit *test, struct demand *d,
				  unsigned long start, unsigned long pages)
{
	struct world *w = test->priv;

	d->start = start;
	KUNIT_ASSERT_NE(test, d->start, 0);
	d->mr = sroce_mr_alloc(&w->table, &w->pd, SROCE_MR_ON_DEMAND, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, d->mr);
	d->mr->odp = sroce_odp_create(d->start + DEMAND_SKEW,
				      pages * PAGE_SIZE - DEMAND_SKEW);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, d->mr->odp);
	d->mr->offset = sroce_odp_offset(d->mr->odp);
	d->mr->iova = DEMAND_IOVA;
	d->mr->length = pages * PAGE_SIZE - DEMAND_SKEW;
	d->mr->access = IB_ACCESS_LOCAL_WRITE;
	sroce_mr_publish(d->mr);
}

static void demand_register(struct kunit *test, struct demand *d,
			    unsigned long start)
{
	demand_register_pages(test, d, start, DEMAND_PAGES);
}

/* Memory of a process of the test's own, and a region on demand in it */
static void demand_init(struct kunit *test, struct demand *d)
{
	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	demand_register(test, d,
			kunit_vm_mmap(test, NULL, 0, DEMAND_PAGES * PAGE_SIZE,
				      PROT_READ | PROT_WRITE,
				      MAP_ANONYMOUS | MAP_PRIVATE, 0));
}

static void demand_exit(struct demand *d)
{
	struct sroce_odp *odp = d->mr->odp;

	sroce_mr_free(d->mr);
	sroce_odp_destroy(odp, true);
}

/* Address of the first byte of the region in a page of the mapping */
static u64 page_va(u64 page)
{
	return DEMAND_IOVA + (page ? page * PAGE_SIZE - DEMAND_SKEW : 0);
}

static u64 page_bytes(u64 first, u64 n)
{
	return page_va(first + n) - page_va(first);
}

/* Is a range there? By page numbers of the mapping. */
static bool there(const struct demand *d, u64 first, u64 n, bool write)
{
	return pages_are_there(d->mr, page_va(first), page_bytes(first, n), write);
}

/* It was told; if not, say in what state it is */
static bool waited(struct kunit *test, struct waiter *w)
{
	bool told = soon(&w->done);

	if (!told)
		kunit_info(test, "waits: pending %d, %s\n", w->want.pending,
			   w->want.slot ? "a fault is under way" : "in the queue");
	return told;
}

/* Bring in what is needed, and wait for it */
static int bring(const struct demand *d, u64 va, u64 len, u64 ahead,
		 enum sroce_odp_fault how)
{
	return waiter_bring(d->mr, va, len, ahead, how);
}

static int bring_all(const struct demand *d, enum sroce_odp_fault how)
{
	return bring(d, DEMAND_IOVA, d->mr->length, 0, how);
}

/* --- what is there ---------------------------------------------------------------- */

static void demand_faults(struct kunit *test)
{
	struct demand d;

	demand_init(test, &d);
	KUNIT_EXPECT_EQ(test, d.mr->offset, DEMAND_SKEW);
	KUNIT_EXPECT_EQ(test, sroce_odp_start(d.mr->odp), d.start + DEMAND_SKEW);
	KUNIT_EXPECT_TRUE(test, sroce_odp_is_ours(d.mr->odp));
	KUNIT_EXPECT_FALSE(test, there(&d, 0, 1, false));
	/* one byte: its page, and no other */
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(1), 1, 0, SROCE_ODP_WRITE), 0);
	KUNIT_EXPECT_FALSE(test, there(&d, 0, 1, false));
	KUNIT_EXPECT_TRUE(test, there(&d, 1, 1, true));
	KUNIT_EXPECT_FALSE(test, there(&d, 1, 2, true));
	/* for reading is not for writing */
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(2), PAGE_SIZE, 0, SROCE_ODP_READ),
			0);
	KUNIT_EXPECT_TRUE(test, there(&d, 1, 2, false));
	KUNIT_EXPECT_FALSE(test, there(&d, 2, 1, true));
	KUNIT_EXPECT_TRUE(test, there(&d, 1, 1, true));
	/* what will be wanted next, as far as there is any */
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(14), 1, U64_MAX, SROCE_ODP_READ),
			0);
	KUNIT_EXPECT_TRUE(test, there(&d, 14, 2, false));
	KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), 0);
	KUNIT_EXPECT_TRUE(test, there(&d, 0, DEMAND_PAGES, true));
	demand_exit(&d);
}

/* However much is wanted next, what is wanted now does not wait for all of that */
static void demand_ahead_ends(struct kunit *test)
{
	const unsigned long pages = 4 * SROCE_PAGER_AHEAD / PAGE_SIZE;
	struct sroce_odp_counts counts;
	struct demand d;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	demand_register_pages(test, &d,
			      kunit_vm_mmap(test, NULL, 0, pages * PAGE_SIZE,
					    PROT_READ | PROT_WRITE,
					    MAP_ANONYMOUS | MAP_PRIVATE, 0), pages);
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(1), 1, U64_MAX, SROCE_ODP_WRITE), 0);
	sroce_odp_count(d.mr->odp, &counts);
	KUNIT_EXPECT_EQ(test, counts.faults, SROCE_PAGER_AHEAD / PAGE_SIZE);
	/* what is wanted now is never too much */
	KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), 0);
	KUNIT_EXPECT_TRUE(test, there(&d, 0, pages, true));
	demand_exit(&d);
}

static void demand_loses(struct kunit *test)
{
	struct bio_vec bv[DEMAND_PAGES];
	char byte = 0;
	struct demand d;
	u32 done;

	demand_init(test, &d);
	KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), 0);
	/* what is copied there is what the process sees */
	local_bh_disable();
	sroce_odp_enter();
	KUNIT_EXPECT_EQ(test, 9000, sroce_odp_present(d.mr, DEMAND_IOVA + 5000,
						      9000, true));
	sroce_mr_bvecs(d.mr, DEMAND_IOVA + 5000, 9000, bv, ARRAY_SIZE(bv), &done);
	KUNIT_EXPECT_EQ(test, done, 9000);
	memset(page_address(bv[0].bv_page) + bv[0].bv_offset, 0x5a, 1);
	sroce_odp_leave();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, copy_from_user(&byte, (void __user *)d.start +
					     DEMAND_SKEW + 5000, 1), 0);
	KUNIT_EXPECT_EQ(test, byte, 0x5a);

	/* the middle goes, the rest stays */
	KUNIT_EXPECT_EQ(test, vm_munmap(d.start + 3 * PAGE_SIZE, 2 * PAGE_SIZE), 0);
	KUNIT_EXPECT_TRUE(test, there(&d, 0, 3, true));
	KUNIT_EXPECT_FALSE(test, there(&d, 3, 1, false));
	KUNIT_EXPECT_FALSE(test, there(&d, 4, 1, false));
	KUNIT_EXPECT_TRUE(test, there(&d, 5, DEMAND_PAGES - 5, true));
	KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), -EFAULT);
	/* what is only likely to be wanted may be missing */
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(2), 1, 3 * PAGE_SIZE,
				    SROCE_ODP_WRITE), 0);
	demand_exit(&d);
}

/*
 * Memory whose address has a tag: on some architectures the kernel finds its pages, and then has
 * to tell of their loss as well
 */
static void demand_tagged(struct kunit *test)
{
	struct demand d;
	u64 start, tagged, bare;
	char byte = 1;

	demand_init(test, &d);
	start = d.start;
	demand_exit(&d);
	KUNIT_ASSERT_EQ(test, copy_to_user((void __user *)start, &byte, 1), 0);
	tagged = start | 1ULL << 56;
	bare = untagged_addr(tagged);
	demand_register(test, &d, tagged);
	if (bare == tagged) {
		KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), -EFAULT);
		demand_exit(&d);
		return;
	}
	KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), 0);
	KUNIT_EXPECT_TRUE(test, there(&d, 0, DEMAND_PAGES, true));
	KUNIT_EXPECT_EQ(test, vm_munmap(start, DEMAND_PAGES * PAGE_SIZE), 0);
	KUNIT_EXPECT_FALSE(test, there(&d, 0, 1, false));
	demand_exit(&d);
}

static int look_all(const struct demand *d, unsigned long until)
{
	return sroce_odp_look(d->mr->odp, d->mr->offset, d->mr->length, until);
}

/* Those that are there are found, with the right that they have; none is made */
static void demand_snapshot(struct kunit *test)
{
	char byte = 1;
	struct demand d;

	demand_init(test, &d);
	KUNIT_EXPECT_EQ(test, copy_to_user((void __user *)d.start + 5 * PAGE_SIZE,
					   &byte, 1), 0);
	KUNIT_EXPECT_EQ(test, copy_from_user(&byte, (void __user *)d.start +
					     7 * PAGE_SIZE, 1), 0);
	KUNIT_EXPECT_EQ(test, look_all(&d, jiffies + SOON), 0);
	KUNIT_EXPECT_TRUE(test, there(&d, 5, 1, true));
	KUNIT_EXPECT_TRUE(test, there(&d, 7, 1, false));
	KUNIT_EXPECT_FALSE(test, there(&d, 7, 1, true));
	KUNIT_EXPECT_FALSE(test, there(&d, 4, 1, false));
	KUNIT_EXPECT_FALSE(test, there(&d, 6, 1, false));
	demand_exit(&d);
}

/* Who looks for what is there has so long, however much there is */
static void demand_snapshot_ends(struct kunit *test)
{
	char byte = 1;
	struct demand d;

	demand_init(test, &d);
	KUNIT_EXPECT_EQ(test, copy_to_user((void __user *)d.start, &byte, 1), 0);
	KUNIT_EXPECT_EQ(test, look_all(&d, jiffies - 1), -ETIMEDOUT);
	KUNIT_EXPECT_FALSE(test, there(&d, 0, 1, false));
	demand_exit(&d);
}

/* --- pages that do not come ------------------------------------------------------------ */

/**
 * struct slow - a file whose pages come when they are let
 * @file: file
 * @page: each of its pages
 * @inside: faults that wait
 * @answer: ends all waits
 * @stubborn: they do not end for any other reason
 * @no_memory: so many faults find no memory
 */
struct slow {
	struct file *file;
	struct page *page;
	atomic_t inside;
	struct completion answer;
	bool stubborn;
	atomic_t no_memory;
};

/* Return: false when it has been broken off */
static bool slow_wait(struct slow *s)
{
	bool done = true;

	atomic_inc(&s->inside);
	if (s->stubborn)
		wait_for_completion(&s->answer);
	else
		done = !wait_for_completion_killable(&s->answer);
	atomic_dec(&s->inside);
	return done;
}

/* As a userfaultfd does: nobody keeps the lock of the process's memory */
static vm_fault_t slow_retry(struct slow *s, struct vm_fault *vmf)
{
	mmap_read_unlock(vmf->vma->vm_mm);
	slow_wait(s);
	return VM_FAULT_RETRY;
}

static vm_fault_t slow_fault(struct vm_fault *vmf)
{
	struct slow *s = vmf->vma->vm_file->private_data;

	if (atomic_add_unless(&s->no_memory, -1, 0))
		return VM_FAULT_OOM;
	if (!completion_done(&s->answer)) {
		if (vmf->flags & FAULT_FLAG_ALLOW_RETRY)
			return slow_retry(s, vmf);
		if (!slow_wait(s))
			return VM_FAULT_SIGBUS;
	}
	get_page(s->page);
	vmf->page = s->page;
	return 0;
}

static const struct vm_operations_struct slow_vm_ops = {
	.fault = slow_fault,
};

static int slow_mmap(struct file *file, struct vm_area_struct *vma)
{
	vma->vm_ops = &slow_vm_ops;
	return 0;
}

static const struct file_operations slow_ops = {
	.owner = THIS_MODULE,
	.mmap = slow_mmap,
};

static void slow_init(struct kunit *test, struct slow *s, bool stubborn)
{
	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	atomic_set(&s->inside, 0);
	atomic_set(&s->no_memory, 0);
	init_completion(&s->answer);
	s->stubborn = stubborn;
	s->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, s->page);
	s->file = anon_inode_getfile("sroce_slow", &slow_ops, s, O_RDWR);
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->file));
}

/* Wait until as many faults as that wait. Return: how many do in the end. */
static int slow_inside(const struct slow *s, int n)
{
	unsigned long end = jiffies + SOON;

	while (atomic_read(&s->inside) != n && time_before(jiffies, end))
		usleep_range(10000, 20000);
	return atomic_read(&s->inside);
}

static unsigned long slow_map(struct kunit *test, const struct slow *s)
{
	return kunit_vm_mmap(test, s->file, 0, DEMAND_PAGES * PAGE_SIZE,
			     PROT_READ | PROT_WRITE, MAP_SHARED, 0);
}

/* Let the pages come, and see that nothing is left of those that waited for them */
static void slow_exit(struct kunit *test, struct slow *s, unsigned long start)
{
	complete_all(&s->answer);
	KUNIT_EXPECT_EQ(test, slow_inside(s, 0), 0);
	if (start)
		KUNIT_EXPECT_EQ(test, vm_munmap(start, DEMAND_PAGES * PAGE_SIZE), 0);
	fput(s->file);
	/* a task of the kernel's own closes files later */
	flush_delayed_fput();
	put_page(s->page);
}

/* A region of pages that come when it is said. Return: where the process has them. */
static unsigned long slow_region(struct kunit *test, struct slow *s,
				 struct demand *d, bool stubborn)
{
	unsigned long start;

	slow_init(test, s, stubborn);
	start = slow_map(test, s);
	demand_register(test, d, start);
	return start;
}

/* So many faults wait for a page, and there will not be more of them */
static void slow_expect_most(struct kunit *test, const struct slow *s, int n)
{
	KUNIT_EXPECT_EQ(test, slow_inside(s, n), n);
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&s->inside), n);
}

/* Page @page of the region is asked for */
static void ask_page(struct kunit *test, struct waiter *w, struct demand *d, u64 page)
{
	KUNIT_ASSERT_EQ(test, waiter_begin(w, d->mr, page_va(page), 1, 0, SROCE_ODP_READ), 0);
}

/* Each page from @first on is asked for, by the waiter of its number */
static void ask_pages(struct kunit *test, struct waiter *w, struct demand *d, u64 first)
{
	u64 i;

	for (i = first; i < DEMAND_PAGES; i++)
		ask_page(test, &w[i], d, i);
}

/* The first @n that asked have their pages */
static void expect_answered(struct kunit *test, struct waiter *w, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_TRUE(test, waited(test, &w[i]));
		KUNIT_EXPECT_EQ(test, w[i].err, 0);
	}
}

/* The module is held by memory on demand as often as that */
static bool module_held(unsigned long wanted)
{
	unsigned long end = jiffies + SOON;

	while (module_refcount(THIS_MODULE) != wanted && time_before(jiffies, end))
		usleep_range(10000, 20000);
	return module_refcount(THIS_MODULE) == wanted;
}

/* The region goes while a page of it cannot be had: what waits is told, who frees does not wait */
static void stuck_region_goes(struct kunit *test, bool stubborn)
{
	unsigned long began, start;
	struct waiter w;
	struct demand d;
	struct slow s;
	int held;

	slow_init(test, &s, stubborn);
	start = slow_map(test, &s);
	held = module_refcount(THIS_MODULE);
	demand_register(test, &d, start);
	KUNIT_ASSERT_EQ(test, waiter_begin(&w, d.mr, page_va(3), 1, 0,
					   SROCE_ODP_WRITE), 0);
	KUNIT_EXPECT_EQ(test, slow_inside(&s, 1), 1);
	began = jiffies;
	demand_exit(&d);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, began + SOON));
	KUNIT_EXPECT_TRUE(test, completion_done(&w.done));
	KUNIT_EXPECT_EQ(test, w.err, -ESHUTDOWN);
	if (stubborn) {
		KUNIT_EXPECT_EQ(test, atomic_read(&s.inside), 1);
		KUNIT_EXPECT_GT(test, module_refcount(THIS_MODULE), held);
		complete_all(&s.answer);
	}
	/* given up, or answered */
	KUNIT_EXPECT_EQ(test, slow_inside(&s, 0), 0);
	KUNIT_EXPECT_TRUE(test, module_held(held));
	slow_exit(test, &s, start);
}

static void stuck_and_freed(struct kunit *test)
{
	stuck_region_goes(test, false);
}

static void stuck_for_good_and_freed(struct kunit *test)
{
	stuck_region_goes(test, true);
}

/* Who does not want pages any more has them given up, and nobody else's */
static void stuck_and_cancelled(struct kunit *test)
{
	struct waiter w[2];
	unsigned long start;
	struct demand d;
	struct slow s;

	start = slow_region(test, &s, &d, false);
	ask_page(test, &w[0], &d, 3);
	ask_page(test, &w[1], &d, 5);
	KUNIT_EXPECT_EQ(test, slow_inside(&s, 2), 2);
	KUNIT_EXPECT_TRUE(test, sroce_want_cancel(&w[0].want));
	KUNIT_EXPECT_FALSE(test, sroce_want_cancel(&w[0].want));
	KUNIT_EXPECT_EQ(test, slow_inside(&s, 1), 1);
	complete_all(&s.answer);
	KUNIT_EXPECT_TRUE(test, waited(test, &w[1]));
	KUNIT_EXPECT_EQ(test, w[1].err, 0);
	KUNIT_EXPECT_TRUE(test, there(&d, 5, 1, false));
	KUNIT_EXPECT_FALSE(test, completion_done(&w[0].done));
	demand_exit(&d);
	slow_exit(test, &s, start);
}

/* No memory for a moment is no reason to fail: only when it lasts */
static void demand_no_memory(struct kunit *test)
{
	unsigned long start;
	struct demand d;
	struct slow s;

	start = slow_region(test, &s, &d, false);
	complete_all(&s.answer);
	atomic_set(&s.no_memory, 5);
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(1), 1, 0, SROCE_ODP_READ), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&s.no_memory), 0);
	KUNIT_EXPECT_TRUE(test, there(&d, 1, 1, false));
	atomic_set(&s.no_memory, INT_MAX);
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(2), 1, 0, SROCE_ODP_READ), -ENOMEM);
	KUNIT_EXPECT_FALSE(test, there(&d, 2, 1, false));
	demand_exit(&d);
	slow_exit(test, &s, start);
}

/* Who goes while there is no memory does not wait until there is, and nobody tries again for him */
static void no_memory_and_freed(struct kunit *test)
{
	unsigned long start;
	struct waiter w;
	struct demand d;
	struct slow s;
	int left;

	start = slow_region(test, &s, &d, false);
	complete_all(&s.answer);
	atomic_set(&s.no_memory, INT_MAX);
	ask_page(test, &w, &d, 1);
	demand_exit(&d);
	KUNIT_EXPECT_TRUE(test, completion_done(&w.done));
	/* one may be trying, or about to */
	msleep(100);
	left = atomic_read(&s.no_memory);
	msleep(200);
	KUNIT_EXPECT_EQ(test, left, atomic_read(&s.no_memory));
	slow_exit(test, &s, start);
}

/* A process has so many faults under way; the others wait for their turn, or go */
static void stuck_queue(struct kunit *test)
{
	struct waiter *w = kunit_kcalloc(test, DEMAND_PAGES, sizeof(*w), GFP_KERNEL);
	unsigned long start;
	struct demand d;
	struct slow s;

	KUNIT_ASSERT_NOT_NULL(test, w);
	start = slow_region(test, &s, &d, true);
	ask_pages(test, w, &d, 0);
	slow_expect_most(test, &s, SROCE_PAGER_SLOTS);
	KUNIT_EXPECT_TRUE(test, sroce_want_cancel(&w[DEMAND_PAGES - 1].want));
	complete_all(&s.answer);
	expect_answered(test, w, DEMAND_PAGES - 1);
	KUNIT_EXPECT_TRUE(test, there(&d, 0, DEMAND_PAGES - 1, false));
	KUNIT_EXPECT_FALSE(test, there(&d, DEMAND_PAGES - 1, 1, false));
	demand_exit(&d);
	slow_exit(test, &s, start);
}

/* Advice on a page */
static int waiter_advise(struct waiter *w, const struct demand *d, u64 page)
{
	init_completion(&w->done);
	w->want = (struct sroce_want){
		.done = waiter_done,
		.odp = d->mr->odp,
		.at = page * PAGE_SIZE,
		.len = 1,
		.how = SROCE_ODP_READ,
		.hint = true,
	};
	return sroce_want_submit(&w->want);
}

/* Pages that do not come and nobody asks for keep no others away */
static void stuck_advice(struct kunit *test)
{
	struct waiter *w = kunit_kcalloc(test, DEMAND_PAGES, sizeof(*w), GFP_KERNEL);
	const int n = SROCE_PAGER_SLOTS;
	unsigned long start;
	struct demand d;
	struct slow s;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	start = slow_region(test, &s, &d, true);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, waiter_advise(&w[i], &d, i), 0);
	slow_expect_most(test, &s, SROCE_PAGER_HINT_SLOTS);
	/* those that are asked for take all the others */
	ask_pages(test, w, &d, n);
	KUNIT_EXPECT_EQ(test, slow_inside(&s, n), n);
	complete_all(&s.answer);
	expect_answered(test, w, DEMAND_PAGES);
	demand_exit(&d);
	slow_exit(test, &s, start);
}

/* So many of a process, and again when they have ended */
static void advice_limit(struct kunit *test)
{
	struct demand d;
	int i;

	demand_init(test, &d);
	for (i = 0; i < SROCE_PAGER_HINTS; i++)
		KUNIT_EXPECT_TRUE(test, sroce_hint_begin(d.mr->odp));
	KUNIT_EXPECT_FALSE(test, sroce_hint_begin(d.mr->odp));
	sroce_hint_end(d.mr->odp);
	KUNIT_EXPECT_TRUE(test, sroce_hint_begin(d.mr->odp));
	while (i--)
		sroce_hint_end(d.mr->odp);
	demand_exit(&d);
}

/* More wants than are told at once; another region's stay */
static void stuck_crowd(struct kunit *test)
{
	const int n = 300;
	struct waiter *w = kunit_kcalloc(test, n, sizeof(*w), GFP_KERNEL);
	struct demand d, other;
	unsigned long start;
	struct slow s;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	start = slow_region(test, &s, &d, false);
	demand_register(test, &other, start);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, waiter_begin(&w[i], i % 2 ? d.mr : other.mr,
						   page_va(3), 1, 0,
						   SROCE_ODP_READ), 0);
	demand_exit(&d);
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_EQ(test, completion_done(&w[i].done), i % 2 == 1);
		KUNIT_EXPECT_EQ(test, w[i].err, i % 2 ? -ESHUTDOWN : 0);
	}
	complete_all(&s.answer);
	for (i = 0; i < n; i += 2) {
		KUNIT_EXPECT_TRUE(test, waited(test, &w[i]));
		KUNIT_EXPECT_EQ(test, w[i].err, 0);
	}
	demand_exit(&other);
	slow_exit(test, &s, start);
}

struct mortal {
	struct kunit *test;
	struct slow *s;
	struct demand d;
	struct waiter w[2];
};

/* A process that ends while it has wants; its region is left to others */
static int mortal_process(void *arg)
{
	struct mortal *m = arg;
	int i;

	if (kunit_attach_mm())
		return -ENOMEM;
	demand_register(m->test, &m->d,
			vm_mmap(m->s->file, 0, DEMAND_PAGES * PAGE_SIZE,
				PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	for (i = 0; i < ARRAY_SIZE(m->w); i++)
		if (waiter_begin(&m->w[i], m->d.mr, page_va(i), 1, 0,
				 SROCE_ODP_READ))
			return -EINVAL;
	return slow_inside(m->s, 2) == 2 ? 0 : -EBUSY;
}

/* Faults do not keep the memory of a process that has ended, if they can be given up */
static void stuck_process_ends(struct kunit *test)
{
	struct mortal *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct task_struct *task;
	struct slow s;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	slow_init(test, &s, false);
	m->test = test;
	m->s = &s;
	task = kthread_create(mortal_process, m, "sroce_mortal");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	KUNIT_EXPECT_EQ(test, slow_inside(&s, 2), 2);
	KUNIT_EXPECT_EQ(test, kthread_stop_put(task), 0);
	for (i = 0; i < ARRAY_SIZE(m->w); i++) {
		KUNIT_EXPECT_TRUE(test, waited(test, &m->w[i]));
		KUNIT_EXPECT_EQ(test, m->w[i].err, -EFAULT);
	}
	KUNIT_EXPECT_EQ(test, slow_inside(&s, 0), 0);
	demand_exit(&m->d);
	slow_exit(test, &s, 0);
}

/* --- all that one user has ------------------------------------------------------------- */

/* More processes than a user has workers for */
#define CROWD (SROCE_USER_SLOTS / SROCE_PAGER_SLOTS + 2)

struct member {
	struct kunit *test;
	struct slow *s;
	struct task_struct *task;
	struct completion ready;
	int err;
	struct demand d;
	struct waiter w[SROCE_PAGER_SLOTS];
};

static int member_begin(struct member *m)
{
	int i, err = kunit_attach_mm();

	if (err)
		return err;
	demand_register(m->test, &m->d,
			vm_mmap(m->s->file, 0, DEMAND_PAGES * PAGE_SIZE,
				PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	for (i = 0; !err && i < ARRAY_SIZE(m->w); i++)
		err = waiter_begin(&m->w[i], m->d.mr, page_va(i), 1, 0,
				   SROCE_ODP_READ);
	return err;
}

static int member_process(void *arg)
{
	struct member *m = arg;

	m->err = member_begin(m);
	complete(&m->ready);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 100);
	return 0;
}

static void member_start(struct kunit *test, struct member *m, struct slow *s)
{
	m->test = test;
	m->s = s;
	init_completion(&m->ready);
	m->task = kthread_create(member_process, m, "sroce_member");
	KUNIT_ASSERT_FALSE(test, IS_ERR(m->task));
	get_task_struct(m->task);
	wake_up_process(m->task);
	wait_for_completion(&m->ready);
	KUNIT_ASSERT_EQ(test, m->err, 0);
}

static void member_end(struct kunit *test, struct member *m)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(m->w); i++)
		KUNIT_EXPECT_TRUE(test, waited(test, &m->w[i]));
	demand_exit(&m->d);
}

/*
 * Processes of a user that end one after the other leave faults behind that nothing
 * ends: so many, and no more, whatever there are of processes. What waits begins when
 * they have ended.
 */
static void stuck_user(struct kunit *test)
{
	struct member *m = kunit_kcalloc(test, CROWD, sizeof(*m), GFP_KERNEL);
	struct slow s;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	slow_init(test, &s, true);
	for (i = 0; i < CROWD; i++)
		member_start(test, &m[i], &s);
	KUNIT_EXPECT_EQ(test, slow_inside(&s, SROCE_USER_SLOTS),
			SROCE_USER_SLOTS);
	for (i = 0; i < CROWD / 2; i++)
		KUNIT_EXPECT_EQ(test, kthread_stop_put(m[i].task), 0);
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&s.inside), SROCE_USER_SLOTS);
	complete_all(&s.answer);
	for (i = 0; i < CROWD; i++)
		member_end(test, &m[i]);
	for (i = CROWD / 2; i < CROWD; i++)
		KUNIT_EXPECT_EQ(test, kthread_stop_put(m[i].task), 0);
	slow_exit(test, &s, 0);
}

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
struct queuer {
	struct sroce_workers *workers;
	struct sroce_worker_turn turn;
	struct completion kicked;
};

static void queuer_kick(struct work_struct *work)
{
	struct queuer *q = container_of(work, struct queuer, turn.kick);

	complete(&q->kicked);
}

static void queuer_init(struct queuer *q, struct sroce_workers *workers)
{
	q->workers = workers;
	INIT_LIST_HEAD(&q->turn.node);
	INIT_WORK(&q->turn.kick, queuer_kick);
	init_completion(&q->kicked);
}

static bool queuer_take(struct queuer *q)
{
	return sroce_worker_take(q->workers, &q->turn);
}

static bool queuer_kicked(struct queuer *q)
{
	return soon(&q->kicked);
}

/* The workers that a user in a namespace of users has, or an ERR_PTR */
static struct sroce_workers *try_workers_of(struct kunit *test, uid_t uid,
					    struct user_namespace *ns)
{
	struct cred *cred = prepare_creds();
	struct sroce_workers *workers;
	struct user_namespace *held;
	const struct cred *mine;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	held = cred->user_ns;
	cred->uid = KUIDT_INIT(uid);
	cred->user_ns = ns;
	mine = override_creds(cred);
	workers = sroce_workers_get();
	revert_creds(mine);
	cred->user_ns = held;
	put_cred(cred);
	return workers;
}

static struct sroce_workers *workers_of(struct kunit *test, uid_t uid,
					struct user_namespace *ns)
{
	struct sroce_workers *workers = try_workers_of(test, uid, ns);

	KUNIT_ASSERT_FALSE(test, IS_ERR(workers));
	return workers;
}

/* Those of a user that nobody else is */
static struct sroce_workers *strangers_workers(struct kunit *test)
{
	return workers_of(test, 4711, &init_user_ns);
}

/* They come in turns: who has one and wants another goes behind those who have none */
static void user_turns(struct kunit *test)
{
	struct sroce_workers *workers = strangers_workers(test);
	struct queuer *q = kunit_kcalloc(test, 3, sizeof(*q), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, q);
	for (i = 0; i < 3; i++)
		queuer_init(&q[i], workers);
	for (i = 0; i < SROCE_USER_SLOTS; i++)
		KUNIT_EXPECT_TRUE(test, queuer_take(&q[0]));
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_FALSE(test, queuer_take(&q[(i + 1) % 3]));
	/* the queue is 1, 2, 0 */
	sroce_worker_give(workers);
	KUNIT_EXPECT_FALSE(test, queuer_take(&q[0]));
	KUNIT_EXPECT_FALSE(test, queuer_take(&q[2]));
	KUNIT_EXPECT_TRUE(test, queuer_kicked(&q[1]));
	/* it has changed its mind: the next one's turn */
	sroce_worker_leave(workers, &q[1].turn);
	KUNIT_EXPECT_TRUE(test, queuer_kicked(&q[2]));
	KUNIT_EXPECT_TRUE(test, queuer_take(&q[2]));
	sroce_worker_give(workers);
	KUNIT_EXPECT_TRUE(test, queuer_kicked(&q[0]));
	KUNIT_EXPECT_FALSE(test, queuer_take(&q[1]));
	KUNIT_EXPECT_TRUE(test, queuer_take(&q[0]));
	sroce_worker_leave(workers, &q[1].turn);
	for (i = 0; i < SROCE_USER_SLOTS; i++)
		sroce_worker_give(workers);
	sroce_workers_put(workers);
	for (i = 0; i < 3; i++)
		cancel_work_sync(&q[i].turn.kick);
}

/* Is a process of the user refused that has had none of the workers yet? */
static bool newcomer_refused(struct kunit *test)
{
	struct sroce_workers *workers = try_workers_of(test, 4711, &init_user_ns);

	if (!IS_ERR(workers)) {
		sroce_workers_put(workers);
		return false;
	}
	KUNIT_EXPECT_EQ(test, PTR_ERR(workers), -EBUSY);
	return true;
}

/* All are busy at once after a time in which there was nothing to do: none of them is stuck */
static void user_wakes_up(struct kunit *test)
{
	struct sroce_workers *workers = strangers_workers(test);
	struct queuer *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, q);
	queuer_init(q, workers);
	workers->moved = jiffies - SROCE_USER_PATIENCE - 1;
	for (i = 0; i < SROCE_USER_SLOTS; i++)
		KUNIT_EXPECT_TRUE(test, queuer_take(q));
	KUNIT_EXPECT_FALSE(test, newcomer_refused(test));
	/* none has ended in so long */
	workers->moved = jiffies - SROCE_USER_PATIENCE - 1;
	KUNIT_EXPECT_TRUE(test, newcomer_refused(test));
	for (i = 0; i < SROCE_USER_SLOTS; i++)
		sroce_worker_give(workers);
	KUNIT_EXPECT_FALSE(test, newcomer_refused(test));
	sroce_workers_put(workers);
}

#define USERS_MAPPED 65536

static struct user_namespace *namespace_of(struct kunit *test, uid_t owner,
					   uid_t first,
					   struct user_namespace *parent)
{
	struct user_namespace *ns = kunit_kzalloc(test, sizeof(*ns), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ns);
	ns->owner = KUIDT_INIT(owner);
	ns->parent = parent;
	ns->uid_map.nr_extents = 1;
	ns->uid_map.extent[0] = (struct uid_gid_extent){
		.lower_first = first,
		.count = USERS_MAPPED,
	};
	return ns;
}

/**
 * struct namesake - a user, as its namespace knows it, and whose workers it has
 * @uid: it
 * @ns: its namespace
 * @same: index of the first one that has the same workers
 */
struct namesake {
	uid_t uid;
	struct user_namespace *ns;
	int same;
};

#define NAMESAKES 4

static void expect_workers(struct kunit *test, const struct namesake *who)
{
	struct sroce_workers *w[NAMESAKES];
	int i, first;

	for (i = 0; i < NAMESAKES; i++) {
		w[i] = workers_of(test, who[i].uid, who[i].ns);
		for (first = 0; w[first] != w[i]; first++)
			;
		KUNIT_EXPECT_EQ_MSG(test, who[i].same, first, "user %d", i);
	}
	for (i = 0; i < NAMESAKES; i++)
		sroce_workers_put(w[i]);
}

/*
 * As many users as one can be in a namespace of one's own have one user's workers. Root's
 * namespaces are containers, and do not get in each other's way. Where root has mapped
 * users to themselves, as for a service, they are the host's.
 */
static void user_in_namespace(struct kunit *test)
{
	struct user_namespace *root = &init_user_ns;
	struct user_namespace *own, *inner, *one, *same, *other, *service, *served;

	if (!IS_ENABLED(CONFIG_USER_NS))
		kunit_skip(test, "no namespaces of users");
	own = namespace_of(test, 4711, 100000, root);
	inner = namespace_of(test, 100007, 100000, own);
	expect_workers(test, (const struct namesake[NAMESAKES]) {
		{ 4711, root, 0 }, { 100007, own, 0 },
		{ 100008, own, 0 }, { 100009, inner, 0 },
	});
	one = namespace_of(test, 0, 100000, root);
	same = namespace_of(test, 0, 100000, root);
	other = namespace_of(test, 0, 200000, root);
	expect_workers(test, (const struct namesake[NAMESAKES]) {
		{ 100001, one, 0 }, { 100002, same, 0 },
		{ 200001, other, 2 }, { 0, root, 3 },
	});
	service = namespace_of(test, 0, 0, root);
	served = namespace_of(test, 4711, 100000, service);
	expect_workers(test, (const struct namesake[NAMESAKES]) {
		{ 4711, root, 0 }, { 4711, service, 0 },
		{ 100003, served, 0 }, { 0, service, 3 },
	});
}
#endif

/* --- readers and writers ------------------------------------------------------------------ */

/**
 * struct relay - readers that take turns so that there is always one
 * @inside: those that read
 * @stop: end
 * @turns: of all
 */
struct relay {
	atomic_t inside;
	bool stop;
	atomic_t turns;
};

/* Goes only when the other one has come */
static int relay_reader(void *arg)
{
	struct relay *r = arg;

	while (!READ_ONCE(r->stop)) {
		local_bh_disable();
		sroce_odp_enter();
		atomic_inc(&r->inside);
		while (atomic_read(&r->inside) < 2 && !READ_ONCE(r->stop))
			cpu_relax();
		udelay(5);
		atomic_dec(&r->inside);
		sroce_odp_leave();
		local_bh_enable();
		atomic_inc(&r->turns);
		cond_resched();
	}
	return 0;
}

/* Readers that keep coming must not keep a process from getting rid of its pages */
static void readers_let_writer(struct kunit *test)
{
	struct task_struct *task[2];
	unsigned long began;
	struct relay r = {};
	struct demand d;
	int i;

	if (num_online_cpus() < 3)
		kunit_skip(test, "needs three processors");
	demand_init(test, &d);
	KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), 0);
	for (i = 0; i < 2; i++) {
		task[i] = kthread_run(relay_reader, &r, "sroce_reader");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task[i]));
		get_task_struct(task[i]);
	}
	while (atomic_read(&r.turns) < 10)
		usleep_range(1000, 2000);
	began = jiffies;
	for (i = 0; i < DEMAND_PAGES; i++)
		KUNIT_EXPECT_EQ(test, vm_munmap(d.start + i * PAGE_SIZE, PAGE_SIZE),
				0);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, began + SOON));
	WRITE_ONCE(r.stop, true);
	for (i = 0; i < 2; i++)
		kthread_stop_put(task[i]);
	demand_exit(&d);
}

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
/* --- who loses pages ------------------------------------------------------------------------ */

/**
 * struct loser - somebody, of whatever process, who takes pages away from a table
 * @d: region
 * @page: first page of the mapping
 * @n: pages
 * @done: it has returned
 */
struct loser {
	struct demand *d;
	unsigned long page;
	unsigned long n;
	struct completion done;
};

/* As the kernel does before it unmaps the pages */
static int lose(void *arg)
{
	struct loser *l = arg;
	struct mmu_interval_notifier *mni = &l->d->mr->odp->table->notifier;
	struct mmu_notifier_range range = {
		.start = l->d->start + l->page * PAGE_SIZE,
		.end = l->d->start + (l->page + l->n) * PAGE_SIZE,
		.flags = MMU_NOTIFIER_RANGE_BLOCKABLE,
	};

	mni->ops->invalidate(mni, &range, mni->invalidate_seq);
	complete(&l->done);
	return 0;
}

static void loser_init(struct loser *l, struct demand *d, unsigned long page, unsigned long n)
{
	*l = (struct loser){ .d = d, .page = page, .n = n };
	init_completion(&l->done);
}

static void task_start(struct kunit *test, int (*fn)(void *arg), void *arg)
{
	struct task_struct *task = kthread_run(fn, arg, "sroce_odp_test");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
}

/* On a processor of its own: one that never leaves it keeps all others from it */
static void task_start_on(struct kunit *test, int (*fn)(void *arg), void *arg, unsigned int cpu)
{
	struct task_struct *task = kthread_create(fn, arg, "sroce_odp_test");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, cpu);
	wake_up_process(task);
}

/**
 * struct stayer - a reader who does not leave soon
 * @inside: reads
 * @until: jiffies at which it leaves
 * @gone: is no reader any more
 * @left: has left
 */
struct stayer {
	struct completion inside;
	unsigned long until;
	bool gone;
	struct completion left;
};

static int stayer(void *arg)
{
	struct stayer *s = arg;

	local_bh_disable();
	sroce_odp_enter();
	complete(&s->inside);
	while (time_before(jiffies, READ_ONCE(s->until)))
		cpu_relax();
	WRITE_ONCE(s->gone, true);
	sroce_odp_leave();
	local_bh_enable();
	complete(&s->left);
	return 0;
}

static void stayer_start(struct kunit *test, struct stayer *s, unsigned int cpu)
{
	*s = (struct stayer){ .until = jiffies + SOON };
	init_completion(&s->inside);
	init_completion(&s->left);
	task_start_on(test, stayer, s, cpu);
	wait_for_completion(&s->inside);
}

/* Pages 2 and 3 are hidden, and wait for a reader */
static bool hidden(const struct demand *d)
{
	const unsigned long *entries = d->mr->odp->table->entries;
	unsigned long end = jiffies + SOON;

	while ((READ_ONCE(entries[2]) | READ_ONCE(entries[3])) & 1 && time_before(jiffies, end))
		usleep_range(1000, 2000);
	return !((READ_ONCE(entries[2]) | READ_ONCE(entries[3])) & 1);
}

/*
 * One takes pages away and waits for a reader. Who takes a range without any meanwhile waits
 * neither for him nor for the reader; who takes the same waits for the reader, too.
 */
static void losers_do_not_queue(struct kunit *test)
{
	unsigned int first = cpumask_first(cpu_online_mask);
	unsigned int second = cpumask_next(first, cpu_online_mask);
	unsigned int third = cpumask_next(second, cpu_online_mask);
	struct loser *l = kunit_kcalloc(test, 3, sizeof(*l), GFP_KERNEL);
	struct stayer s;
	struct demand d;

	if (num_online_cpus() < 3)
		kunit_skip(test, "needs three processors");
	KUNIT_ASSERT_NOT_NULL(test, l);
	demand_init(test, &d);
	KUNIT_EXPECT_EQ(test, bring(&d, page_va(2), page_bytes(2, 3), 0, SROCE_ODP_WRITE), 0);
	loser_init(&l[0], &d, 2, 2);
	loser_init(&l[1], &d, 6, 8);
	loser_init(&l[2], &d, 3, 1);
	set_cpus_allowed_ptr(current, cpumask_of(first));
	stayer_start(test, &s, third);
	task_start_on(test, lose, &l[0], second);
	KUNIT_EXPECT_TRUE(test, hidden(&d));
	lose(&l[1]);
	KUNIT_EXPECT_FALSE_MSG(test, READ_ONCE(s.gone), "an empty range waits for others' readers");
	KUNIT_EXPECT_FALSE(test, completion_done(&l[0].done));
	WRITE_ONCE(s.until, jiffies + HZ / 20);
	lose(&l[2]);
	KUNIT_EXPECT_TRUE_MSG(test, READ_ONCE(s.gone), "a page is given to others under a reader");
	wait_for_completion(&s.left);
	KUNIT_EXPECT_TRUE(test, soon(&l[0].done));
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_EXPECT_FALSE(test, there(&d, 2, 1, false));
	KUNIT_EXPECT_FALSE(test, there(&d, 3, 1, false));
	KUNIT_EXPECT_TRUE(test, there(&d, 4, 1, true));
	/* each page has been lost once */
	KUNIT_EXPECT_EQ(test, atomic64_read(&d.mr->odp->stats.invalidations), 2);
	demand_exit(&d);
}

/**
 * struct holdup - memory that a thread of the process is about to lose, until it is let
 * @notifier: of that memory
 * @mm: the process's
 * @start: a page
 * @inside: it is about to lose it
 * @go: it may
 * @done: it has
 */
struct holdup {
	struct mmu_interval_notifier notifier;
	struct mm_struct *mm;
	unsigned long start;
	struct completion inside;
	struct completion go;
	struct completion done;
};

static bool holdup_invalidate(struct mmu_interval_notifier *mni,
			      const struct mmu_notifier_range *range, unsigned long seq)
{
	struct holdup *h = container_of(mni, struct holdup, notifier);

	mmu_interval_set_seq(mni, seq);
	complete(&h->inside);
	wait_for_completion(&h->go);
	return true;
}

static const struct mmu_interval_notifier_ops holdup_ops = {
	.invalidate = holdup_invalidate,
};

static int holdup_thread(void *arg)
{
	struct holdup *h = arg;

	kthread_use_mm(h->mm);
	vm_munmap(h->start, PAGE_SIZE);
	kthread_unuse_mm(h->mm);
	complete(&h->done);
	return 0;
}

static void holdup_start(struct kunit *test, struct holdup *h)
{
	h->mm = current->mm;
	h->start = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, h->start, 0);
	KUNIT_ASSERT_EQ(test, put_user(1, (char __user *)h->start), 0);
	init_completion(&h->inside);
	init_completion(&h->go);
	init_completion(&h->done);
	KUNIT_ASSERT_EQ(test, mmu_interval_notifier_insert(&h->notifier, h->mm, h->start, PAGE_SIZE,
							   &holdup_ops), 0);
	task_start(test, holdup_thread, h);
	KUNIT_ASSERT_TRUE(test, soon(&h->inside));
}

static void holdup_end(struct kunit *test, struct holdup *h)
{
	complete_all(&h->go);
	KUNIT_EXPECT_TRUE(test, soon(&h->done));
	mmu_interval_notifier_remove(&h->notifier);
}

/**
 * struct remover - who destroys a region, and is of another process
 * @d: region
 * @done: it is gone
 */
struct remover {
	struct demand *d;
	struct completion done;
};

static int remover(void *arg)
{
	struct remover *r = arg;

	demand_exit(r->d);
	complete(&r->done);
	return 0;
}

/* What the process has pinned, when the tables that ended have been let go of */
static bool pinned_is(u64 pages)
{
	unsigned long end = jiffies + SOON;

	while (atomic64_read(&current->mm->pinned_vm) != pages && time_before(jiffies, end))
		usleep_range(1000, 2000);
	return atomic64_read(&current->mm->pinned_vm) == pages;
}

/*
 * A process that does not stop to lose memory keeps notifiers from being removed. Who takes its
 * regions away does not wait for it, the process itself not for long, and what is left counts,
 * and keeps the module, until it has gone.
 */
static void removal_does_not_wait(struct kunit *test)
{
	struct holdup *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	unsigned long began, held = module_refcount(THIS_MODULE);
	struct demand d, own;
	struct remover r;
	u64 pinned;
	bool gone;

	KUNIT_ASSERT_NOT_NULL(test, h);
	demand_init(test, &d);
	pinned = atomic64_read(&current->mm->pinned_vm) - 1;
	demand_init(test, &own);
	KUNIT_EXPECT_EQ(test, bring_all(&d, SROCE_ODP_WRITE), 0);
	holdup_start(test, h);
	r.d = &d;
	init_completion(&r.done);
	task_start(test, remover, &r);
	gone = soon(&r.done);
	KUNIT_EXPECT_TRUE_MSG(test, gone, "who removes a region waits for its process");
	if (gone) {
		began = jiffies;
		demand_exit(&own);
		KUNIT_EXPECT_TRUE(test, time_before(jiffies, began + SOON));
		KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm), pinned + 2);
		/* Each of them, and the work */
		KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), held + 3);
		holdup_end(test, h);
	} else {
		holdup_end(test, h);
		wait_for_completion(&r.done);
		demand_exit(&own);
	}
	KUNIT_EXPECT_TRUE(test, pinned_is(pinned));
	KUNIT_EXPECT_TRUE(test, module_held(held));
}

/* A process cannot leave tables behind without end */
static void removal_has_a_limit(struct kunit *test)
{
	struct holdup *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	unsigned long held = module_refcount(THIS_MODULE);
	struct sroce_odp *odp = NULL;
	struct remover r;
	struct demand d;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, h);
	demand_init(test, &d);
	holdup_start(test, h);
	r.d = &d;
	init_completion(&r.done);
	task_start(test, remover, &r);
	KUNIT_ASSERT_TRUE(test, soon(&r.done));
	for (i = 0; i <= SROCE_PAGER_ENDING; i++) {
		odp = sroce_odp_create(d.start, PAGE_SIZE);
		if (IS_ERR(odp))
			break;
		sroce_odp_close(odp);
		sroce_odp_put(odp);
	}
	KUNIT_EXPECT_EQ(test, i, SROCE_PAGER_ENDING - 1);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(odp), -EBUSY);
	holdup_end(test, h);
	KUNIT_EXPECT_TRUE(test, module_held(held));
}
#endif

static struct kunit_case odp_cases[] = {
	KUNIT_CASE(demand_faults),
	KUNIT_CASE(demand_ahead_ends),
	KUNIT_CASE(demand_loses),
	KUNIT_CASE(demand_tagged),
	KUNIT_CASE(demand_snapshot),
	KUNIT_CASE(demand_snapshot_ends),
	KUNIT_CASE(stuck_and_freed),
	KUNIT_CASE(stuck_for_good_and_freed),
	KUNIT_CASE(stuck_and_cancelled),
	KUNIT_CASE(demand_no_memory),
	KUNIT_CASE(no_memory_and_freed),
	KUNIT_CASE(stuck_queue),
	KUNIT_CASE(stuck_advice),
	KUNIT_CASE(advice_limit),
	KUNIT_CASE(stuck_crowd),
	KUNIT_CASE(stuck_process_ends),
	KUNIT_CASE(stuck_user),
#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
	KUNIT_CASE(user_turns),
	KUNIT_CASE(user_wakes_up),
	KUNIT_CASE(user_in_namespace),
#endif
	KUNIT_CASE(readers_let_writer),
#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
	KUNIT_CASE(losers_do_not_queue),
	KUNIT_CASE(removal_does_not_wait),
	KUNIT_CASE(removal_has_a_limit),
#endif
	{}
};

static struct kunit_suite odp_suite = {
	.name = "sroce_odp",
	.init = world_init,
	.exit = world_exit,
	.test_cases = odp_cases,
};

kunit_test_suite(odp_suite);
