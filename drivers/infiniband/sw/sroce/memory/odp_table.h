/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A table of the pages of one range of a process that are known to be mapped. A region on
 * demand has one (odp.c), an implicit one several (implicit.c).
 */
#ifndef SROCE_MEMORY_ODP_TABLE_H
#define SROCE_MEMORY_ODP_TABLE_H

#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "memory/odp.h"

struct mm_struct;
struct sroce_odp;
struct sroce_odp_stats;

/**
 * struct sroce_odp_table - pages of a range
 * @refs: one of the region, one of each who brings pages in
 * @notifier: calls when the process loses pages
 * @odp: its region's, kept until the table has ended: with it goes what counts the table
 * @mm: whose memory; kept from being freed, but not from being emptied
 * @closing: its region's: nobody may want pages any more
 * @stats: its region's
 * @base: address of the first page
 * @nr: pages
 * @lock: who changes @entries; held for a short time, because it may be anybody who takes a
 *	page away, and never with memory to be allocated
 * @gone: it is not the region's any more: no page is taken; under @lock
 * @filled: entries that are not empty; under @lock
 * @node: in the list of an implicit region, and where it is there: under that one's lock.
 *	Afterwards in that of the pager, of tables that end
 * @number: where an implicit region has it, in units of SROCE_IMPLICIT_BYTES
 * @used: likewise: somebody has read it since this was cleared
 * @leaving: likewise: it gives way, and is found by its readers only
 * @entries: for each page a pointer and flags; 0: not there
 */
struct sroce_odp_table {
	refcount_t refs;
	struct mmu_interval_notifier notifier;
	struct sroce_odp *odp;
	struct mm_struct *mm;
	const bool *closing;
	struct sroce_odp_stats *stats;
	u64 base;
	unsigned long nr;
	spinlock_t lock; /* see above */
	bool gone;
	unsigned long filled;
	struct list_head node;
	unsigned long number;
	bool used;
	bool leaving;
	unsigned long *entries;
};

/* Bytes that a table of so many pages takes */
size_t sroce_odp_table_bytes(unsigned long nr);

/**
 * sroce_odp_table_create() - follow a range of a process's memory
 * @odp: region, with its pager; the caller keeps the memory from being emptied
 * @base: address of the first page
 * @nr: pages, not 0; the range does not wrap
 *
 * The caller has counted its memory.
 *
 * Context: process.
 * Return: the table, or an ERR_PTR: -ENOMEM.
 */
struct sroce_odp_table *sroce_odp_table_create(struct sroce_odp *odp, u64 base,
					       unsigned long nr);

/*
 * The last one has the pager end it, see sroce_pager_end_table(). Context: process, does not
 * wait
 */
void sroce_odp_table_put(struct sroce_odp_table *table);

/*
 * No reference is left. Waits as long as any thread of the process is about to lose memory,
 * wherever; threads that take turns can keep it waiting. Context: process, of the pager's own
 */
void sroce_odp_table_end(struct sroce_odp_table *table);

/**
 * sroce_odp_table_hide() - let no reader find a page any more
 * @table: no page is taken from now on, either
 *
 * On return nobody uses a page that he has found before. Until then a reader who has may
 * find it again, so the table is to be found until then.
 *
 * Context: process, may sleep, but waits for no page.
 */
void sroce_odp_table_hide(struct sroce_odp_table *table);

/**
 * sroce_odp_table_close() - let go of all pages, for good
 * @table: nobody finds it any more; readers may have found it before, and have let go of
 *	it on return
 *
 * Context: process, may sleep, but waits for no page.
 */
void sroce_odp_table_close(struct sroce_odp_table *table);

/* sroce_odp_present() and sroce_odp_bvecs(); @at counts from @base, and is in bounds */
u64 sroce_odp_table_present(const struct sroce_odp_table *table, u64 at,
			    u64 len, bool write);
unsigned int sroce_odp_table_bvecs(const struct sroce_odp_table *table, u64 at,
				   u32 len, struct bio_vec *bv,
				   unsigned int max, u32 *done);

/**
 * sroce_odp_table_bring() - bring pages in, and take them into the table
 * @table: held
 * @at: first byte, from @base
 * @len: bytes; there are as many
 * @how: what to do
 * @count: counts the pages that were not there before
 *
 * Context: process, the memory kept from being emptied; otherwise as sroce_odp_bring().
 * Return: as sroce_odp_bring(), or -ESHUTDOWN when the region is going.
 */
int sroce_odp_table_bring(struct sroce_odp_table *table, u64 at, u64 len,
			  enum sroce_odp_fault how, atomic64_t *count);

/* As sroce_odp_look(), the memory kept from being emptied */
int sroce_odp_table_look(struct sroce_odp_table *table, u64 at, u64 len,
			 unsigned long until);

/*
 * Get at pages of a process. A caller that only looks (FOLL_NOFAULT) waits for no lock:
 * -EAGAIN. Return: pages got, to be put by the caller; or an errno.
 */
long sroce_odp_get_pages(struct mm_struct *mm, u64 addr, unsigned long n,
			 unsigned int flags, struct page **pages);

#endif
