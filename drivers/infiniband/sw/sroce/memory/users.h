/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Who uses regions, and who waits for that to end.
 *
 * A use lasts as long as somebody copies, or sends: microseconds, with bottom halves off.
 * What many queue pairs use at a time, a process's large region, must not have a count that
 * each of them changes: processors would do nothing but pass that around. So a processor
 * names the regions that it uses in a table of its own (hazard pointers), and whoever ends
 * a region looks at the tables of all.
 *
 * Counted all the same are
 * - uses that last longer: of a train that waits in an inbox, of whoever is not on the data
 *   path (sroce_mr_find(), sroce_mr_hold());
 * - uses of fast-register regions and windows (sroce_mr_is_counted()): these are mostly one
 *   queue pair's, and are invalidated, maybe with each message, by somebody who has to know
 *   at once whether they are in use. A count tells that without a look at all processors.
 */
#ifndef SROCE_MEMORY_USERS_H
#define SROCE_MEMORY_USERS_H

#include <linux/cache.h>
#include <linux/refcount.h>

#include "compat.h"
#include "memory/mr.h"

/* Regions that a processor can use at a time: one for each element of a work request */
#define SROCE_MR_USES 32

/**
 * struct sroce_mr_uses - regions that a processor uses
 * @lock: there is one user per processor: a lock only where those who have bottom halves
 *	off can be preempted. Taken with a half's lock held, outside all of those that
 *	copying and sending take
 * @n: entries of @mr in use; of no interest to others
 * @mr: the regions; NULL behind these. Whoever ends a region looks for it here
 * @used: so many entries of @mr were in use at a time, ever; whoever ends a region looks at no
 *	more of them. On a line of its own, which is hardly ever written to
 */
struct sroce_mr_uses {
	local_lock_t lock; /* see above */
	unsigned int n;
	struct sroce_mr *mr[SROCE_MR_USES];
	unsigned int used ____cacheline_aligned_in_smp;
};

/* Are all uses of the region counted? */
static inline bool sroce_mr_is_counted(const struct sroce_mr *mr)
{
	return mr->kind == SROCE_MR_FAST_REG || mr->kind == SROCE_MR_WINDOW;
}

/**
 * sroce_mr_uses_begin() - begin to use regions
 *
 * Context: bottom halves off until sroce_mr_uses_end(); short. This does not nest.
 * Return: this processor's table, empty; there is a warning when it is not.
 */
struct sroce_mr_uses *sroce_mr_uses_begin(void);

/* All that is used in between may be freed, and the table is somebody else's */
void sroce_mr_uses_end(struct sroce_mr_uses *u);

/**
 * sroce_mr_use() - check a key, and use its region until sroce_mr_uses_end()
 * @u: table
 * @table: keys of the device
 * @key: L_Key or R_Key
 * @pd: protection domain of the QP that uses it
 * @access: rights needed, IB_ACCESS_*; 0 for local read
 * @va: first byte
 * @len: bytes; not 0 (a transfer of nothing checks no key, C9-88)
 *
 * The checks of IBA 10.6.3, in this order: index, whole key, PD,
 * state, rights, bounds (without wrapping near 2^64).
 *
 * Context: between sroce_mr_uses_begin() and sroce_mr_uses_end().
 * Return: the region, ERR_PTR(-EINVAL) for an unknown, invalid or foreign
 * key, ERR_PTR(-EACCES) for missing rights, ERR_PTR(-ERANGE) for bounds,
 * ERR_PTR(-ENOSPC) when SROCE_MR_USES keys were looked up already.
 */
struct sroce_mr *sroce_mr_use(struct sroce_mr_uses *u,
			      struct sroce_mr_table *table, u32 key,
			      const struct ib_pd *pd, int access, u64 va,
			      u64 len);

/**
 * sroce_mr_find() - hold the region of a key, whatever it allows
 * @table: keys of the device
 * @key: L_Key or R_Key
 * @pd: domain of whoever asks. A region of another one is not held, not even for a moment: its
 *	owner would wait for somebody who may be kept from running
 *
 * Context: any.
 * Return: the region, to be put; NULL when there is none in that domain.
 */
struct sroce_mr *sroce_mr_find(struct sroce_mr_table *table, u32 key,
			       const struct ib_pd *pd);

/**
 * sroce_mr_hold() - hold a region, for longer than it is being used
 * @mr: region that the caller holds or uses
 */
static inline void sroce_mr_hold(struct sroce_mr *mr)
{
	refcount_inc(&mr->users);
}

/* Let go of what was held. Context: any. */
void sroce_mr_put(struct sroce_mr *mr);

/**
 * sroce_mr_await_users() - wait until nobody uses a region
 * @mr: region that no key leads to any more
 *
 * The registration is no user from here on. Who holds the region for a train in an inbox is
 * told to let go of it, after some milliseconds (memory/pd.h). What the users have copied
 * comes before what the caller does next.
 *
 * Context: process, may sleep.
 */
void sroce_mr_await_users(struct sroce_mr *mr);

/* The same for a region that stays registered, and is held for that; they are told at once */
void sroce_mr_await_other_users(struct sroce_mr *mr);

#endif
