/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What odp.c (which pages a region has) and pager.c (who brings them in) share.
 */
#ifndef SROCE_MEMORY_PAGER_H
#define SROCE_MEMORY_PAGER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "memory/odp.h"
#include "memory/pinned.h"

struct sroce_implicit;
struct sroce_odp_table;

/* Faults of one process under way */
#define SROCE_PAGER_SLOTS 8

/* Of these, the most that may be busy with advice */
#define SROCE_PAGER_HINT_SLOTS 2

/* Tables of a process that may have to end yet when it makes one more region */
#define SROCE_PAGER_ENDING 4096

/*
 * What is brought in for a message at a time: it goes on when this is there. Memory that does not
 * hold all of a message is enough for this, and who waits behind it waits for no more.
 */
#define SROCE_PAGER_AHEAD SZ_8M

/* Advices of one process that nobody waits for */
#define SROCE_PAGER_HINTS 16

struct sroce_pager;

/**
 * struct sroce_odp_stats - what a region on demand has counted
 * @faults: pages brought in for messages
 * @invalidations: pages that the process has lost
 * @prefetches: pages brought in, or found there, for advice
 * @evictions: tables of an implicit region that gave way to others
 */
struct sroce_odp_stats {
	atomic64_t faults;
	atomic64_t invalidations;
	atomic64_t prefetches;
	atomic64_t evictions;
};

/**
 * struct sroce_odp - pages of a region on demand
 * @refs: one of the region, one of each pager's slot that brings pages in for it
 * @keeps: one of all who have @refs, one of each table until it has ended
 * @mm: whose memory; kept from being freed, but not from being emptied
 * @pager: brings pages in for that process
 * @address: first byte, in the process
 * @table: its pages, and NULL for an implicit region
 * @implicit: tables of an implicit region, or NULL
 * @stats: what it has counted
 * @closing: nobody may want pages any more; under the pager's lock
 * @wants: all that are pending; under the pager's lock
 * @pinned: counts the tables as memory that the process has pinned
 * @pages: of a bare one: those that a worker has pinned, for its want; SROCE_ODP_PINNED at most
 * @n_pages: how many
 */
struct sroce_odp {
	refcount_t refs;
	refcount_t keeps;
	struct mm_struct *mm;
	struct sroce_pager *pager;
	u64 address;
	struct sroce_odp_table *table;
	struct sroce_implicit *implicit;
	struct sroce_odp_stats stats;
	bool closing;
	struct list_head wants;
	struct sroce_pinned pinned;
	struct page **pages;
	unsigned long n_pages;
};

/**
 * sroce_odp_bring() - bring pages in, and take them into the table
 * @odp: held
 * @at: first byte, from the beginning of the first page
 * @len: bytes; there are as many
 * @how: what to do
 * @hint: it is advice, which counts as such
 *
 * A page may be gone again when this returns.
 *
 * Context: process, may sleep for as long as whoever has the pages likes; a fatal
 * signal may end that.
 * Return: 0; -EINTR after a fatal signal; -EFAULT and the like when the memory is
 * not there, is not for us, or its process has ended.
 */
int sroce_odp_bring(struct sroce_odp *odp, u64 at, u64 len,
		    enum sroce_odp_fault how, bool hint);

/* Tables need it until they have ended, when nobody else does. Context: process */
void sroce_odp_keep(struct sroce_odp *odp);
void sroce_odp_release(struct sroce_odp *odp);

/**
 * sroce_pager_get() - the pager of the calling process
 *
 * Context: process.
 * Return: the pager, held; -ENOMEM; -EBUSY when the user has too many faults that do
 * not end.
 */
struct sroce_pager *sroce_pager_get(void);
void sroce_pager_put(struct sroce_pager *pager);

/* One more reference, for who has one. Context: process */
void sroce_pager_hold(struct sroce_pager *pager);

/**
 * sroce_pager_end_table() - end a table, some time
 * @pager: its process's
 * @table: nobody has a reference
 *
 * The kernel takes a notifier out of its tree only when no thread of the process is about
 * to lose memory, and waits for that. Threads that take turns at it keep it waiting for as
 * long as they like. So a worker of the user's does that, for one table of a process after
 * the other. Until then the table counts as it did before, and keeps the module.
 *
 * Context: process. Does not wait.
 */
void sroce_pager_end_table(struct sroce_pager *pager,
			   struct sroce_odp_table *table);

/* Are there tables that have not ended? At a glance */
bool sroce_pager_is_ending(const struct sroce_pager *pager);

/* Are there so many of them that there should be no more regions? At a glance */
bool sroce_pager_is_behind(const struct sroce_pager *pager);

/**
 * sroce_pager_settle() - wait for tables to end, for a moment
 * @pager: held
 * @patience: jiffies, at most
 *
 * Context: process.
 * Return: false when some have not ended.
 */
bool sroce_pager_settle(struct sroce_pager *pager, unsigned long patience);

/*
 * May the process have one more table of an implicit region than each of these has of its
 * own? Given back by sroce_pager_tables_end(). Context: any.
 */
bool sroce_pager_table_begin(struct sroce_pager *pager);
void sroce_pager_tables_end(struct sroce_pager *pager, unsigned int n);

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
