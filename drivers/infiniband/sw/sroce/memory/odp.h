/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Regions on demand: memory of a process that is not pinned.
 *
 * The data path runs in softirq and may neither wait for a page nor walk page
 * tables. So such a region has a table of the pages that are known to be
 * mapped. Whoever copies is a reader: it finds all pages there, or asks process
 * context to bring them in (struct sroce_want) and comes again. When the process
 * loses a page, its kernel says so before the page is given to anybody else: the
 * entry goes, and whoever may have seen it is waited for. So whatever was copied
 * before is in the page, and nothing is copied after.
 *
 * Readers take no lock. They say on their processor that they are reading, and a
 * writer waits until each processor has been seen outside what it was in: readers
 * that keep coming do not keep a writer waiting, nor one another.
 */
#ifndef SROCE_MEMORY_ODP_H
#define SROCE_MEMORY_ODP_H

#include <linux/list.h>

#include "memory/mr.h"

/* What a process's pager is to do about pages */
enum sroce_odp_fault {
	SROCE_ODP_READ,		/* bring them in */
	SROCE_ODP_WRITE,	/* likewise, for writing */
	SROCE_ODP_LOOK,		/* take those that are there into the table, see sroce_odp_look() */
	SROCE_ODP_PIN_READ,	/* pin them, see sroce_odp_create_bare() */
	SROCE_ODP_PIN_WRITE,	/* likewise, for writing */
};

/**
 * struct sroce_odp_counts - numbers of a region
 * @faults: pages brought in for messages
 * @invalidations: pages that the process has lost
 * @prefetches: pages brought in, or found there, for advice
 * @evictions: tables of an implicit region that gave way to others
 * @tables: that it has now
 */
struct sroce_odp_counts {
	u64 faults;
	u64 invalidations;
	u64 prefetches;
	u64 evictions;
	u32 tables;
};

/* Pages that a worker pins for a want, at most: pointers to so many fill a page */
#define SROCE_ODP_PINNED (PAGE_SIZE / sizeof(struct page *))

struct sroce_pager_slot;

/**
 * struct sroce_want - pages that somebody waits for
 * @done: called when they are there or cannot be had, in process context without
 *	locks; the caller of sroce_want_pages() sets it. @err is 0, an errno of the
 *	page fault, or -ESHUTDOWN when the region is going
 * @odp: their region's
 * @at: first byte, from the beginning of the region's first page
 * @len: bytes that are needed
 * @ahead: bytes from @at on that will be needed next; their absence is no error
 * @how: what to do
 * @hint: it is advice: its turn comes after all that is none, and few are under way at
 *	once
 * @pending: @done is still to be called; under the pager's lock
 * @slot: what is bringing them in; NULL while they wait for their turn
 * @node: in a queue of the pager's
 * @mate: among all wants of that region
 */
struct sroce_want {
	void (*done)(struct sroce_want *want, int err);
	struct sroce_odp *odp;
	u64 at;
	u64 len;
	u64 ahead;
	enum sroce_odp_fault how;
	bool hint;
	bool pending;
	struct sroce_pager_slot *slot;
	struct list_head node;
	struct list_head mate;
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
/**
 * sroce_odp_create() - follow a range of the calling process's memory
 * @start: address
 * @length: bytes, not 0
 *
 * Context: process.
 * Return: what goes into sroce_mr.odp, or an ERR_PTR.
 */
struct sroce_odp *sroce_odp_create(u64 start, u64 length);

/**
 * sroce_odp_create_implicit() - follow all of the calling process's memory
 *
 * Context: process.
 * Return: as sroce_odp_create(). Its first byte is that of address 0.
 */
struct sroce_odp *sroce_odp_create_implicit(void);

/**
 * sroce_odp_create_bare() - have pages of the calling process pinned by its pager
 * @start: address of the first one
 *
 * For one want: SROCE_ODP_PIN_READ or SROCE_ODP_PIN_WRITE, from the first page on. When that is
 * done without an error some pages are pinned, the first one at least, for
 * sroce_odp_take_pinned(); what is not taken is let go of in the end. There is no table. The
 * pages are the caller's to count.
 *
 * Context: process.
 * Return: as sroce_odp_create(); -EBUSY also while all workers of the user wait for pages.
 */
struct sroce_odp *sroce_odp_create_bare(u64 start);

/**
 * sroce_odp_take_pinned() - take pages that were pinned
 * @odp: bare; its want is done
 * @pages: room for SROCE_ODP_PINNED
 *
 * Return: how many; from now on the caller's to unpin.
 */
unsigned long sroce_odp_take_pinned(struct sroce_odp *odp, struct page **pages);

/**
 * sroce_odp_close() - let nobody wait for pages of a region any more
 * @odp: region's pages; nobody finds the region any more
 *
 * A fault that is under way goes on by itself if it cannot be given up: nobody
 * waits for whoever has the page.
 *
 * Context: process.
 */
void sroce_odp_close(struct sroce_odp *odp);

/**
 * sroce_odp_destroy() - end what sroce_odp_create() or sroce_odp_create_bare() has begun
 * @odp: closed, and nobody uses its region any more
 * @settle: wait for a moment, in the region's process, until it does not count any more. Not
 *	where somebody waits for the end of many of them, who takes the device away.
 *
 * Context: process, may sleep, but waits for no page.
 */
void sroce_odp_destroy(struct sroce_odp *odp, bool settle);

/* Keep it for one who may want pages when the region is gone; then put it */
void sroce_odp_hold(struct sroce_odp *odp);
/* Context: process, may sleep */
void sroce_odp_put(struct sroce_odp *odp);

/* Address in the process that it was made for, and whether by the caller */
u64 sroce_odp_start(const struct sroce_odp *odp);
bool sroce_odp_is_ours(const struct sroce_odp *odp);

/* Is it that of all memory? */
bool sroce_odp_is_implicit(const struct sroce_odp *odp);

/* What has been counted for a region, at a glance. Context: any */
void sroce_odp_count(const struct sroce_odp *odp,
		     struct sroce_odp_counts *counts);

/* Bytes from the beginning of the first page to that of the region */
u64 sroce_odp_offset(const struct sroce_odp *odp);

/**
 * sroce_odp_enter() - become a reader
 *
 * Pages that are found present from here on stay where they are until
 * sroce_odp_leave(). This does not nest.
 *
 * Context: bottom halves off until sroce_odp_leave(); short, the process may be
 * waiting.
 */
void sroce_odp_enter(void);
void sroce_odp_leave(void);

/**
 * sroce_odp_present() - how much of a range is there?
 * @mr: region on demand that is used or held; the range was checked
 * @va: first byte
 * @len: bytes
 * @write: to be written to
 *
 * Context: between sroce_odp_enter() and sroce_odp_leave().
 * Return: bytes from @va on up to the first page that is missing; @len when none is.
 */
u64 sroce_odp_present(const struct sroce_mr *mr, u64 va, u64 len, bool write);

/* sroce_mr_bvecs() of a region on demand, of a range that is present */
unsigned int sroce_odp_bvecs(const struct sroce_mr *mr, u64 va, u32 len,
			     struct bio_vec *bv, unsigned int max, u32 *done);

/**
 * sroce_want_pages() - have pages brought in
 * @want: all but @done is set here; to be kept until that is called
 * @mr: region on demand that is used or held
 * @va: first byte, in bounds
 * @len: bytes, in bounds
 * @ahead: bytes that will be wanted next from @va on, in bounds or not: there is an end to what
 *	is brought in at once, and who wants more comes again (SROCE_PAGER_AHEAD)
 * @how: what to do
 *
 * Each process has as many faults under way as pager.c allows; more wait for
 * their turn, behind those of the same process only.
 *
 * Context: any but hard interrupts. @want->done is not called from here.
 * Return: 0, or -ESHUTDOWN when the region is going (@want->done is not called).
 */
int sroce_want_pages(struct sroce_want *want, const struct sroce_mr *mr, u64 va,
		     u64 len, u64 ahead, enum sroce_odp_fault how);

/* The same for what the caller has set in @want; it holds @want->odp */
int sroce_want_submit(struct sroce_want *want);

/**
 * sroce_hint_begin() - may there be one more advice that nobody waits for?
 * @odp: held until sroce_hint_end(): pages that it is about
 *
 * What a process leaves behind for its pager to do takes memory and somebody else's
 * processor time, so it has SROCE_PAGER_HINTS of them.
 *
 * Context: any.
 * Return: false when the process has to wait until one has ended.
 */
bool sroce_hint_begin(struct sroce_odp *odp);
void sroce_hint_end(struct sroce_odp *odp);

/**
 * sroce_odp_look() - take those pages into the table that are there
 * @odp: held
 * @at: first byte, from the beginning of the first page
 * @len: bytes; there are as many
 * @until: jiffies at which to give up
 *
 * No page is brought in, and no lock of the process's memory waited for. But when the process
 * is about to lose memory here, that has to end first: threads that take turns at it
 * keep this waiting for as long as they like.
 *
 * Context: process, may sleep; nobody waits for it who must not wait for the process.
 * Return: 0; -ETIMEDOUT, -EINTR after a fatal signal or -ESHUTDOWN (the region is
 * going) before the end; -EFAULT when the process has ended.
 */
int sroce_odp_look(struct sroce_odp *odp, u64 at, u64 len, unsigned long until);

/**
 * sroce_want_cancel() - want pages no more
 * @want: wanted, and its @done has not returned
 *
 * Context: any but hard interrupts.
 * Return: false when it is too late: @want->done is being called.
 */
bool sroce_want_cancel(struct sroce_want *want);

/* Module end: none is under way. The module is held as long as one is. */
void sroce_pagers_stop(void);
#else
static inline struct sroce_odp *sroce_odp_create(u64 start, u64 length)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline struct sroce_odp *sroce_odp_create_implicit(void)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void sroce_odp_close(struct sroce_odp *odp)
{
}

static inline void sroce_odp_destroy(struct sroce_odp *odp, bool settle)
{
}

static inline void sroce_odp_hold(struct sroce_odp *odp)
{
}

static inline void sroce_odp_put(struct sroce_odp *odp)
{
}

static inline u64 sroce_odp_start(const struct sroce_odp *odp)
{
	return 0;
}

static inline bool sroce_odp_is_ours(const struct sroce_odp *odp)
{
	return false;
}

static inline bool sroce_odp_is_implicit(const struct sroce_odp *odp)
{
	return false;
}

static inline void sroce_odp_count(const struct sroce_odp *odp,
				   struct sroce_odp_counts *counts)
{
	*counts = (struct sroce_odp_counts){};
}

static inline u64 sroce_odp_offset(const struct sroce_odp *odp)
{
	return 0;
}

static inline void sroce_odp_enter(void)
{
}

static inline void sroce_odp_leave(void)
{
}

static inline u64 sroce_odp_present(const struct sroce_mr *mr, u64 va, u64 len,
				    bool write)
{
	return 0;
}

static inline unsigned int
sroce_odp_bvecs(const struct sroce_mr *mr, u64 va, u32 len, struct bio_vec *bv,
		unsigned int max, u32 *done)
{
	*done = 0;
	return 0;
}

static inline int
sroce_want_pages(struct sroce_want *want, const struct sroce_mr *mr, u64 va,
		 u64 len, u64 ahead, enum sroce_odp_fault how)
{
	return -ESHUTDOWN;
}

static inline int sroce_want_submit(struct sroce_want *want)
{
	return -ESHUTDOWN;
}

static inline bool sroce_hint_begin(struct sroce_odp *odp)
{
	return false;
}

static inline void sroce_hint_end(struct sroce_odp *odp)
{
}

static inline int sroce_odp_look(struct sroce_odp *odp, u64 at, u64 len,
				 unsigned long until)
{
	return -EOPNOTSUPP;
}

static inline bool sroce_want_cancel(struct sroce_want *want)
{
	return false;
}

static inline void sroce_pagers_stop(void)
{
}
#endif

#endif
