/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory windows: keys for a part of a region, given and taken by the send
 * queue.
 *
 * A window is a region of the kind SROCE_MR_WINDOW: bound, it has the rights,
 * bounds and addresses that the bind asked for, and the pages of the region it
 * is bound to. So whoever uses a key does not know one from the other.
 *
 * Taking a window away makes its key fail. The region counts it until the
 * window is bound anew or freed, or until the region itself is to go.
 */
#ifndef SROCE_MEMORY_MW_H
#define SROCE_MEMORY_MW_H

#include "memory/mr.h"

/**
 * struct sroce_mw_bind - what a bind asks for
 * @key: a key of the window; which one of its binds it is from is of no
 *	interest, because the library does not follow those of type 2
 * @new_key: key from now on; may differ in its low byte
 * @lkey: region
 * @addr: first byte, an address of the region
 * @length: bytes; 0 takes a window of type 1 away
 * @access: remote rights, and IB_ZERO_BASED to count addresses from @addr
 * @pd: protection domain of the QP
 * @owner: what the QP has bound: a window of type 2 becomes part of it
 */
struct sroce_mw_bind {
	u32 key;
	u32 new_key;
	u32 lkey;
	u64 addr;
	u64 length;
	int access;
	const struct ib_pd *pd;
	struct sroce_mw_list *owner;
};

static inline void sroce_mw_list_init(struct sroce_mw_list *l)
{
	spin_lock_init(&l->lock);
	INIT_LIST_HEAD(&l->list);
}

/**
 * sroce_mw_alloc() - make a window that is not bound
 * @table: keys of the device
 * @pd: protection domain
 * @type2: its type, 2B or 1
 *
 * Freed by sroce_mr_free().
 *
 * Context: process.
 * Return: the window, or ERR_PTR(-ENOMEM).
 */
struct sroce_mr *sroce_mw_alloc(struct sroce_mr_table *table, struct ib_pd *pd,
				bool type2);

/**
 * sroce_mw_bind() - carry out a bind
 * @table: keys of the device
 * @bind: what is asked for
 *
 * The rules of IBA 10.6.7.2: C10-72 (one PD), C10-73 (the region allows it),
 * C10-74 (no remote change without the local write right), C10-75 (bounds),
 * o10-36.2.2 (type 1 is not zero-based), o10-37.2.30 (type 2 is free),
 * o10-37.2.40 (type 2 has a length).
 *
 * Context: bottom halves off.
 * Return: 0, -EINVAL when it is not allowed, -EAGAIN while somebody still
 * copies with the key that the window had.
 */
int sroce_mw_bind(struct sroce_mr_table *table,
		  const struct sroce_mw_bind *bind);

/* A window that is going to be freed is not bound any more; process context */
void sroce_mw_close(struct sroce_mr *mw);

/* A closed window without a key and users gives its region up; process context */
void sroce_mw_unbind(struct sroce_mr *mw);

/**
 * sroce_mw_disown() - invalidate the windows of type 2 that a QP has bound
 * @owned: what a QP has bound that is going to be destroyed and binds no more
 *
 * On return @owned is empty and nobody touches it any more. Takes as long as the
 * QP has windows; those of others are not looked at.
 *
 * Context: process, may sleep.
 */
void sroce_mw_disown(struct sroce_mw_list *owned);

/**
 * sroce_mr_seal() - have no more windows bound to a region
 * @mr: region that is to be freed or replaced
 *
 * Looks at the region's own windows only.
 *
 * Context: process, may sleep: waits for users of windows that are not valid.
 * Return: false when a window is bound to it: nothing has changed.
 */
bool sroce_mr_seal(struct sroce_mr *mr);

/* A sealed region is not freed after all: windows may be bound to it again */
static inline void sroce_mr_unseal(struct sroce_mr *mr)
{
	atomic_set(&mr->windows, 0);
}

#endif
