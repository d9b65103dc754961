// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counts memory that a process makes the kernel hold, against its limit. Asked
 * when queues and regions on demand are made, and when a QP is made ready; not on
 * the way of a message.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "memory/pinned.h"

static bool sroce_pinned_fits(u64 pages)
{
	return pages <= rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT ||
	       capable(CAP_IPC_LOCK);
}

int sroce_pinned_charge(struct sroce_pinned *p, size_t bytes)
{
	unsigned long pages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct mm_struct *mm = current->mm;

	*p = (struct sroce_pinned){};
	if (!mm || bytes < PAGE_SIZE)
		return 0;
	if (!sroce_pinned_fits(atomic64_add_return(pages, &mm->pinned_vm))) {
		atomic64_sub(pages, &mm->pinned_vm);
		pr_debug("sroce: %lu more pages are above RLIMIT_MEMLOCK\n",
			 pages);
		return -ENOMEM;
	}
	mmgrab(mm);
	p->mm = mm;
	p->pages = pages;
	return 0;
}

unsigned long sroce_pinned_limit(void)
{
	return capable(CAP_IPC_LOCK) ? ULONG_MAX :
				       rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
}

int sroce_pinned_charge_more(struct sroce_pinned *p, size_t bytes,
			     unsigned long limit)
{
	unsigned long pages = DIV_ROUND_UP(bytes, PAGE_SIZE);

	if (!p->mm)
		return 0;
	if (atomic64_add_return(pages, &p->mm->pinned_vm) > limit) {
		atomic64_sub(pages, &p->mm->pinned_vm);
		return -ENOMEM;
	}
	p->pages += pages;
	return 0;
}

void sroce_pinned_uncharge(struct sroce_pinned *p)
{
	if (!p->mm)
		return;
	atomic64_sub(p->pages, &p->mm->pinned_vm);
	mmdrop(p->mm);
	p->mm = NULL;
}
