/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a process makes the kernel hold counts in its memory cgroup, if it has
 * one with a limit. Most have none. So all pieces of a page or more count as
 * well where the memory counts that ib_core pins for a process (VmPin in
 * /proc/PID/status), and together with that have the limit RLIMIT_MEMLOCK. The
 * queues of NICs are pinned memory of the process and count there, too.
 */
#ifndef SROCE_MEMORY_PINNED_H
#define SROCE_MEMORY_PINNED_H

#include <linux/gfp.h>
#include <linux/types.h>

struct mm_struct;

/*
 * For memory of a size that a process chooses, and in the end its limits: when there
 * is none, the process learns it, and the log need not.
 */
#define SROCE_GFP_CHOSEN (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/**
 * struct sroce_pinned - memory that counts as pinned by a process
 * @mm: whose, kept until the memory is freed; NULL: it does not count
 * @pages: how much
 */
struct sroce_pinned {
	struct mm_struct *mm;
	unsigned long pages;
};

/**
 * sroce_pinned_charge() - count memory that is about to be allocated for the caller
 * @p: filled in; nothing to undo on failure
 * @bytes: how much; less than a page does not count
 *
 * Context: process. The kernel's own threads have no memory that it could count in.
 * Return: 0, or -ENOMEM above RLIMIT_MEMLOCK without CAP_IPC_LOCK.
 */
int sroce_pinned_charge(struct sroce_pinned *p, size_t bytes);

/**
 * sroce_pinned_limit() - what the calling process may have pinned
 *
 * Return: pages; ULONG_MAX with CAP_IPC_LOCK.
 */
unsigned long sroce_pinned_limit(void);

/**
 * sroce_pinned_charge_more() - count more for a process that has counted before
 * @p: charged by sroce_pinned_charge(), by the process that it counts for
 * @bytes: how much
 * @limit: what the process may have pinned; it need not be the caller
 *
 * Context: any.
 * Return: 0, or -ENOMEM above @limit.
 */
int sroce_pinned_charge_more(struct sroce_pinned *p, size_t bytes,
			     unsigned long limit);

/* The memory was freed, by whomever. One that is zeroed counts nothing. */
void sroce_pinned_uncharge(struct sroce_pinned *p);

#endif
