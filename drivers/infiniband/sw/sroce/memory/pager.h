/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What odp.c (which pages a region has) and pager.c (who brings them in) share.
 */
#ifndef SROCE_MEMORY_PAGER_H
#define SROCE_MEMORY_PAGER_H

#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include "memory/odp.h"
#include "memory/pinned.h"

/* Faults of one process under way */
#define SROCE_PAGER_SLOTS 8

/* Of these, the most that may be busy with advice */
#define SROCE_PAGER_HINT_SLOTS 2

/* Advices of one process that nobody waits for */
#define SROCE_PAGER_HINTS 16

struct sroce_pager;

/**
 * struct sroce_odp - pages of a region on demand
 * @refs: one of the region, one of each pager's slot that brings pages in for it
 * @notifier: calls when the process loses pages
 * @mm: whose memory; kept from being freed, but not from being emptied
 * @pager: brings pages in for that process
 * @address: first byte, in the process
 * @nr: pages
 * @mutex: who changes @entries
 * @gone: the region has been freed: no page is taken any more; under @mutex
 * @closing: nobody may want pages any more; under the pager's lock
 * @wants: all that are pending; under the pager's lock
 * @pinned: counts the table as memory that the process has pinned
 * @entries: for each page a pointer and flags; 0: not there
 */
struct sroce_odp {
	refcount_t refs;
	struct mmu_interval_notifier notifier;
	struct mm_struct *mm;
	struct sroce_pager *pager;
	u64 address;
	unsigned long nr;
	struct mutex mutex; /* see above */
	bool gone;
	bool closing;
	struct list_head wants;
	struct sroce_pinned pinned;
	unsigned long entries[];
};

/**
 * sroce_odp_bring() - bring pages in, and take them into the table
 * @odp: held
 * @at: first byte, from the beginning of the first page
 * @len: bytes; there are as many
 * @how: what to do
 *
 * A page may be gone again when this returns.
 *
 * Context: process, may sleep for as long as whoever has the pages likes; a fatal
 * signal may end that.
 * Return: 0; -EINTR after a fatal signal; -EFAULT and the like when the memory is
 * not there, is not for us, or its process has ended.
 */
int sroce_odp_bring(struct sroce_odp *odp, u64 at, u64 len,
		    enum sroce_odp_fault how);

/**
 * sroce_pager_get() - the pager of the calling process
 *
 * Context: process.
 * Return: the pager, held; -ENOMEM; -EBUSY when the user has too many faults that do
 * not end.
 */
struct sroce_pager *sroce_pager_get(void);
void sroce_pager_put(struct sroce_pager *pager);

/**
 * sroce_pager_close() - let nobody wait for pages of a region any more
 * @odp: region's pages
 *
 * Whoever does is told -ESHUTDOWN before this returns. What is being brought in
 * goes on without anybody waiting, or is given up where that is possible.
 *
 * Context: process.
 */
void sroce_pager_close(struct sroce_odp *odp);

#endif
