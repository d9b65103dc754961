/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * For unit tests of memory on demand: whoever wants pages and is told when they are there, and
 * a look whether they are.
 */
#ifndef SROCE_TESTS_WAITER_H
#define SROCE_TESTS_WAITER_H

#include <linux/bottom_half.h>
#include <linux/completion.h>

#include "memory/mr.h"
#include "memory/odp.h"
#include "memory/pager.h"

/**
 * struct waiter - somebody who wants pages
 * @want: which
 * @done: was told
 * @err: what
 */
struct waiter {
	struct sroce_want want;
	struct completion done;
	int err;
};

static inline void waiter_done(struct sroce_want *want, int err)
{
	struct waiter *w = container_of(want, struct waiter, want);

	w->err = err;
	complete(&w->done);
}

/* As a message that misses pages of @mr begins to have them brought in */
static inline int waiter_begin(struct waiter *w, struct sroce_mr *mr, u64 va, u64 len, u64 ahead,
			       enum sroce_odp_fault how)
{
	init_completion(&w->done);
	w->want.done = waiter_done;
	return sroce_want_pages(&w->want, mr, va, len, ahead, how);
}

/* The same, to the end */
static inline int waiter_bring(struct sroce_mr *mr, u64 va, u64 len, u64 ahead,
			       enum sroce_odp_fault how)
{
	struct waiter w;
	int err = waiter_begin(&w, mr, va, len, ahead, how);

	if (err)
		return err;
	wait_for_completion(&w.done);
	return w.err;
}

/* Are all of the bytes there? As readers ask */
static inline bool pages_are_there(struct sroce_mr *mr, u64 va, u64 len, bool write)
{
	bool there;

	local_bh_disable();
	sroce_odp_enter();
	there = sroce_odp_present(mr, va, len, write) == len;
	sroce_odp_leave();
	local_bh_enable();
	return there;
}

#endif
