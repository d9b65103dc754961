// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Implicit regions: the tables of the pieces that a process's memory is in, who makes
 * them, and which one gives way (memory/implicit.h). odp.c comes here; a message only where
 * its memory is such a region.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "compat.h"
#include "memory/implicit.h"
#include "memory/odp_table.h"
#include "memory/pager.h"
#include "memory/pinned.h"

/* How long who needs room for a table waits for another one to end before he comes again */
#define IMPLICIT_PATIENCE msecs_to_jiffies(10)

/**
 * struct sroce_implicit - tables of an implicit region
 * @tables: by number of the piece; readers find them without a lock
 * @lock: of all below, and of who changes @tables. Not held while memory is allocated,
 *	nor for a page: who deregisters the region takes it
 * @order: tables, in about the order in which they were used last
 * @n: how many there are, are about to be, or have yet to end
 * @more: of these beyond SROCE_IMPLICIT_OWN there may be so many
 * @closed: the region goes: there are no more tables
 * @limit: as long as the process has no more pages pinned there may be more tables: half of
 *	what it might have had when it made the region, because a peer makes them, and the
 *	rest is for what the process registers itself
 */
struct sroce_implicit {
	struct xarray tables;
	struct mutex lock; /* see above */
	struct list_head order;
	unsigned int n;
	unsigned int more;
	bool closed;
	unsigned long limit;
};

/* --- which there may be --------------------------------------------------------- */

static size_t sroce_implicit_table_bytes(void)
{
	return max(sroce_odp_table_bytes(SROCE_IMPLICIT_PAGES), PAGE_SIZE);
}

/* One more beyond the region's own. Context: the lock held */
static bool sroce_implicit_ask(struct sroce_odp *odp)
{
	struct sroce_implicit *im = odp->implicit;

	if (!sroce_pager_table_begin(odp->pager))
		return false;
	if (sroce_pinned_charge_more(&odp->pinned, sroce_implicit_table_bytes(),
				     im->limit)) {
		sroce_pager_tables_end(odp->pager, 1);
		return false;
	}
	im->more++;
	return true;
}

/*
 * The first that was not used since it was at the front last; when all were, the one that
 * has been there the longest. Context: the lock held
 */
static struct sroce_odp_table *sroce_implicit_oldest(struct sroce_implicit *im)
{
	struct sroce_odp_table *table;
	unsigned int i;

	for (i = 0; i <= im->n; i++) {
		table = list_first_entry_or_null(&im->order,
						 struct sroce_odp_table, node);
		if (!table || !READ_ONCE(table->used))
			break;
		WRITE_ONCE(table->used, false);
		list_move_tail(&table->node, &im->order);
	}
	return table;
}

/* Nobody finds it any more. Context: the lock held */
static void sroce_implicit_remove(struct sroce_implicit *im,
				  struct sroce_odp_table *table)
{
	list_del(&table->node);
	xa_erase(&im->tables, table->number);
}

static void sroce_implicit_end_table(struct sroce_odp_table *table)
{
	sroce_odp_table_close(table);
	sroce_odp_table_put(table);
}

/* It is in no list, and none but its readers find it. NULL: there is none */
static struct sroce_odp_table *sroce_implicit_choose(struct sroce_implicit *im)
{
	struct sroce_odp_table *table;

	mutex_lock(&im->lock);
	table = sroce_implicit_oldest(im);
	if (table) {
		table->leaving = true;
		list_del_init(&table->node);
	}
	mutex_unlock(&im->lock);
	return table;
}

/*
 * A reader looks a table up twice, for whether pages are there and for which. So it stays
 * until those have ended who have found pages in it, and then there may be another one.
 *
 * Return: false when there is none that could give way.
 */
static bool sroce_implicit_evict(struct sroce_odp *odp)
{
	struct sroce_implicit *im = odp->implicit;
	struct sroce_odp_table *table = sroce_implicit_choose(im);

	if (!table)
		return false;
	sroce_odp_table_hide(table);
	mutex_lock(&im->lock);
	sroce_implicit_remove(im, table);
	mutex_unlock(&im->lock);
	atomic64_inc(&odp->stats.evictions);
	sroce_implicit_end_table(table);
	return true;
}

static bool sroce_implicit_reserve(struct sroce_odp *odp)
{
	struct sroce_implicit *im = odp->implicit;
	bool room;

	mutex_lock(&im->lock);
	room = im->n < SROCE_IMPLICIT_OWN + im->more || sroce_implicit_ask(odp);
	if (room)
		WRITE_ONCE(im->n, im->n + 1);
	mutex_unlock(&im->lock);
	return room;
}

void sroce_implicit_table_ended(struct sroce_implicit *im)
{
	mutex_lock(&im->lock);
	WRITE_ONCE(im->n, im->n - 1);
	mutex_unlock(&im->lock);
}

/*
 * Room for one more table. One that has given way has to end first, which takes a moment, or
 * longer. When that is so, or others are about to make all that there may be, the caller
 * comes again.
 */
static int sroce_implicit_make_room(struct sroce_odp *odp)
{
	bool goes_on = true;

	while (!sroce_implicit_reserve(odp)) {
		if (!goes_on)
			return -EAGAIN;
		if (sroce_pager_is_ending(odp->pager))
			goes_on = sroce_pager_settle(odp->pager,
						     IMPLICIT_PATIENCE);
		else
			goes_on = sroce_implicit_evict(odp);
	}
	return 0;
}

/* --- making them ------------------------------------------------------------------- */

/* NULL; or ERR_PTR(-EAGAIN) until one has left that gives way. Context: the lock held */
static struct sroce_odp_table *sroce_implicit_hold(struct sroce_implicit *im,
						   unsigned long number)
{
	struct sroce_odp_table *table = xa_load(&im->tables, number);

	if (!table)
		return NULL;
	if (table->leaving)
		return ERR_PTR(-EAGAIN);
	refcount_inc(&table->refs);
	/* Whoever has it filled will read it, and it must not give way before */
	WRITE_ONCE(table->used, true);
	return table;
}

/*
 * There is a place for it already, unless another one of the same number has been made and
 * has left meanwhile: then the caller comes again. Context: the lock held
 */
static struct sroce_odp_table *sroce_implicit_add(struct sroce_implicit *im,
						  struct sroce_odp_table *fresh)
{
	fresh->used = true;
	if (xa_err(xa_store(&im->tables, fresh->number, fresh,
			    GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT)))
		return ERR_PTR(-EAGAIN);
	refcount_inc(&fresh->refs);
	list_add_tail(&fresh->node, &im->order);
	return fresh;
}

/*
 * A new table is there from now on, and held for the caller. Somebody else may have been
 * faster: then it is that one, and @fresh is to be freed.
 */
static struct sroce_odp_table *
sroce_implicit_enter(struct sroce_implicit *im, struct sroce_odp_table *fresh)
{
	struct sroce_odp_table *table = ERR_PTR(-ESHUTDOWN);

	mutex_lock(&im->lock);
	/* First: a hold on the one that is there would be nobody's to put */
	if (!im->closed) {
		table = sroce_implicit_hold(im, fresh->number);
		if (!table)
			table = sroce_implicit_add(im, fresh);
	}
	mutex_unlock(&im->lock);
	return table;
}

/* The room that the caller has reserved goes with the table, or at once if there is none */
static struct sroce_odp_table *sroce_implicit_new(struct sroce_odp *odp,
						  unsigned long number)
{
	struct sroce_implicit *im = odp->implicit;
	struct sroce_odp_table *fresh, *table;
	int err;

	err = xa_reserve(&im->tables, number, SROCE_GFP_CHOSEN);
	if (err) {
		fresh = ERR_PTR(err);
		goto no_table;
	}
	fresh = sroce_odp_table_create(odp, number * SROCE_IMPLICIT_BYTES,
				       SROCE_IMPLICIT_PAGES);
	if (IS_ERR(fresh)) {
		xa_release(&im->tables, number);
		goto no_table;
	}
	fresh->number = number;
	table = sroce_implicit_enter(im, fresh);
	if (table != fresh) {
		xa_release(&im->tables, number);
		/* One that others have made has its room already, and this one gives its back */
		sroce_odp_table_put(fresh);
	}
	return table;

no_table:
	sroce_implicit_table_ended(im);
	return fresh;
}

static struct sroce_odp_table *sroce_implicit_make(struct sroce_odp *odp,
						   unsigned long number)
{
	int err = sroce_implicit_make_room(odp);

	return err ? ERR_PTR(err) : sroce_implicit_new(odp, number);
}

static struct sroce_odp_table *sroce_implicit_find(struct sroce_implicit *im,
						   unsigned long number)
{
	struct sroce_odp_table *table;

	mutex_lock(&im->lock);
	table = sroce_implicit_hold(im, number);
	mutex_unlock(&im->lock);
	return table;
}

/* --- making and ending -------------------------------------------------------------- */

static struct sroce_implicit *sroce_implicit_alloc(void)
{
	struct sroce_implicit *im = kzalloc_obj(*im, GFP_KERNEL_ACCOUNT);

	if (!im)
		return NULL;
	xa_init_flags(&im->tables, XA_FLAGS_ACCOUNT);
	mutex_init(&im->lock);
	INIT_LIST_HEAD(&im->order);
	im->limit = sroce_pinned_limit() / 2;
	return im;
}

/*
 * The first table is made here, whatever it is about: the first notifier of a process takes
 * the lock of its memory, for which a worker would wait, and could not be stopped.
 */
int sroce_implicit_create(struct sroce_odp *odp)
{
	struct sroce_odp_table *table;

	if (sroce_pinned_charge(&odp->pinned, SROCE_IMPLICIT_OWN *
				sroce_implicit_table_bytes()))
		return -ENOMEM;
	odp->implicit = sroce_implicit_alloc();
	if (!odp->implicit)
		return -ENOMEM;
	table = sroce_implicit_make(odp, 0);
	if (IS_ERR(table))
		return PTR_ERR(table);
	sroce_odp_table_put(table);
	return 0;
}

static struct sroce_odp_table *sroce_implicit_take_any(struct sroce_implicit *im)
{
	struct sroce_odp_table *table;

	mutex_lock(&im->lock);
	im->closed = true;
	table = list_first_entry_or_null(&im->order, struct sroce_odp_table,
					 node);
	if (table)
		sroce_implicit_remove(im, table);
	mutex_unlock(&im->lock);
	return table;
}

void sroce_implicit_close(struct sroce_implicit *im)
{
	struct sroce_odp_table *table;

	while ((table = sroce_implicit_take_any(im))) {
		sroce_implicit_end_table(table);
		cond_resched();
	}
}

void sroce_implicit_free(struct sroce_odp *odp)
{
	struct sroce_implicit *im = odp->implicit;

	sroce_pager_tables_end(odp->pager, im->more);
	WARN_ON(!xa_empty(&im->tables));
	xa_destroy(&im->tables);
	kfree(im);
}

unsigned int sroce_implicit_tables(const struct sroce_implicit *im)
{
	return READ_ONCE(im->n);
}

/* --- copying ---------------------------------------------------------------------------- */

/* What of a range is in the piece that it begins in */
static u64 sroce_implicit_part(u64 at, u64 len)
{
	return min_t(u64, len, SROCE_IMPLICIT_BYTES - at % SROCE_IMPLICIT_BYTES);
}

/* Context: a reader, which keeps the table */
static struct sroce_odp_table *sroce_implicit_read(struct sroce_implicit *im,
						   u64 at)
{
	struct sroce_odp_table *table = xa_load(&im->tables,
						at / SROCE_IMPLICIT_BYTES);

	/* Others read, too: the line is written to when it has to be */
	if (table && !READ_ONCE(table->used))
		WRITE_ONCE(table->used, true);
	return table;
}

u64 sroce_implicit_present(struct sroce_implicit *im, u64 at, u64 len,
			   bool write)
{
	u64 done = 0, part, there = 0;

	for (; done < len; at += there, done += there) {
		struct sroce_odp_table *table = sroce_implicit_read(im, at);

		if (!table)
			break;
		part = sroce_implicit_part(at, len - done);
		there = sroce_odp_table_present(table,
						at % SROCE_IMPLICIT_BYTES, part,
						write);
		if (there < part)
			return done + there;
	}
	return done;
}

unsigned int sroce_implicit_bvecs(struct sroce_implicit *im, u64 at, u32 len,
				  struct bio_vec *bv, unsigned int max,
				  u32 *done)
{
	unsigned int n = 0;
	u32 part, got;

	for (*done = 0; *done < len && n < max; *done += got, at += got) {
		struct sroce_odp_table *table = sroce_implicit_read(im, at);

		if (!table)
			break;
		part = sroce_implicit_part(at, len - *done);
		n += sroce_odp_table_bvecs(table, at % SROCE_IMPLICIT_BYTES,
					   part, bv + n, max - n, &got);
		if (!got)
			break;
	}
	return n;
}

/* --- bringing pages in -------------------------------------------------------------------- */

/* Is there memory of the process for which a table is worth while? */
static int sroce_implicit_probe(struct sroce_odp *odp, u64 at,
				enum sroce_odp_fault how)
{
	unsigned int flags = how == SROCE_ODP_WRITE ? FOLL_WRITE : 0;
	struct page *page;
	long got;

	got = sroce_odp_get_pages(odp->mm, at & PAGE_MASK, 1, flags, &page);
	if (got < 0)
		return got;
	put_page(page);
	return 0;
}

static struct sroce_odp_table *sroce_implicit_get(struct sroce_odp *odp, u64 at,
						  enum sroce_odp_fault how)
{
	unsigned long number = at / SROCE_IMPLICIT_BYTES;
	struct sroce_odp_table *table;
	int err;

	table = sroce_implicit_find(odp->implicit, number);
	if (table)
		return table;
	err = sroce_implicit_probe(odp, at, how);
	return err ? ERR_PTR(err) : sroce_implicit_make(odp, number);
}

/* Not now: no error, and time for others */
static int sroce_implicit_again(int err)
{
	if (err != -EAGAIN)
		return err;
	usleep_range(50, 100);
	return 0;
}

/*
 * A table that was brought in may have given way to others again, and one may not be had
 * because others are being made: as with pages that are lost, the message asks once more.
 *
 * What it will want later may be in more pieces than there are tables, and the first would
 * give way to the last before it is used: no more than two are brought in at once. What it
 * wants now is less (SROCE_TRAIN_BYTES).
 */
int sroce_implicit_bring(struct sroce_odp *odp, u64 at, u64 len,
			 enum sroce_odp_fault how, atomic64_t *count)
{
	struct sroce_odp_table *table;
	u64 part;
	int err = 0;

	len = min_t(u64, len, SROCE_IMPLICIT_BYTES);
	for (; len && !err; at += part, len -= part) {
		table = sroce_implicit_get(odp, at, how);
		if (IS_ERR(table))
			return sroce_implicit_again(PTR_ERR(table));
		part = sroce_implicit_part(at, len);
		err = sroce_odp_table_bring(table, at % SROCE_IMPLICIT_BYTES,
					    part, how, count);
		sroce_odp_table_put(table);
	}
	return err;
}

/* The process asks for it itself: a table of its own may be for nothing */
static int sroce_implicit_look_part(struct sroce_odp *odp, u64 at, u64 len,
				    unsigned long until)
{
	unsigned long number = at / SROCE_IMPLICIT_BYTES;
	struct sroce_odp_table *table;
	int err;

	table = sroce_implicit_find(odp->implicit, number);
	if (!table)
		table = sroce_implicit_make(odp, number);
	if (IS_ERR(table))
		return sroce_implicit_again(PTR_ERR(table));
	err = sroce_odp_table_look(table, at % SROCE_IMPLICIT_BYTES, len,
				   until);
	sroce_odp_table_put(table);
	return err;
}

int sroce_implicit_look(struct sroce_odp *odp, u64 at, u64 len,
			unsigned long until)
{
	u64 part;
	int err = 0;

	if (at >= odp->mm->task_size || len > odp->mm->task_size - at)
		return -EFAULT;
	for (; len && !err; at += part, len -= part) {
		part = sroce_implicit_part(at, len);
		err = sroce_implicit_look_part(odp, at, part, until);
	}
	return err;
}
