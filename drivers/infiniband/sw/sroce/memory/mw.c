// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/rcupdate.h>

#include "memory/internal.h"
#include "memory/mw.h"

/* Consumers that mean a region's rights give the local one as well: no harm */
#define MW_ACCESS (IB_ACCESS_LOCAL_WRITE | REMOTE_ACCESS | IB_ZERO_BASED | \
		   IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_OPTIONAL)

/* The registration, and the look-up of whoever asks */
#define USERS_WHEN_QUIET 2

struct sroce_mr *sroce_mw_alloc(struct sroce_mr_table *table, struct ib_pd *pd,
				bool type2)
{
	struct sroce_mr *mw = sroce_mr_alloc(table, pd, SROCE_MR_WINDOW, 0);

	if (!IS_ERR(mw))
		mw->type2 = type2;
	return mw;
}

static int check_window(const struct sroce_mr *mw,
			const struct sroce_mw_bind *bind)
{
	if (mw->kind != SROCE_MR_WINDOW || mw->ibmr.pd != bind->pd)
		return -EINVAL;
	if ((bind->new_key ^ mw->key) & ~KEY_BYTE || bind->access & ~MW_ACCESS)
		return -EINVAL;
	if (mw->type2)
		return mw->valid || !bind->length ? -EINVAL : 0;
	return bind->access & IB_ZERO_BASED ? -EINVAL : 0;
}

static int check_parent(const struct sroce_mr *mr,
			const struct sroce_mw_bind *bind)
{
	if (mr->kind != SROCE_MR_USER || mr->access & IB_ZERO_BASED)
		return -EINVAL;
	if (bind->access & REMOTE_CHANGE && !(mr->access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (bind->access & IB_ACCESS_FLUSH_GLOBAL & ~mr->access)
		return -EINVAL;
	return sroce_mr_check_range(mr, 0, bind->addr, bind->length) ?
	       -EINVAL : 0;
}

/* The region to bind to, counting the window; it needs no more holding then */
static struct sroce_mr *get_parent(struct sroce_mr_table *table,
				   const struct sroce_mw_bind *bind)
{
	struct sroce_mr *mr;
	int err;

	if (!bind->length)
		return NULL;
	mr = sroce_mr_get_whole(table, bind->lkey, bind->pd, IB_ACCESS_MW_BIND);
	if (IS_ERR(mr))
		return ERR_PTR(-EINVAL);
	err = check_parent(mr, bind);
	if (!err && !atomic_inc_unless_negative(&mr->windows))
		err = -EINVAL;
	sroce_mr_put(mr);
	return err ? ERR_PTR(err) : mr;
}

static void put_parent(struct sroce_mr *parent)
{
	if (parent)
		atomic_dec(&parent->windows);
}

void sroce_mw_unbind(struct sroce_mr *mw)
{
	put_parent(mw->parent);
	mw->parent = NULL;
	mw->pages = NULL;
	mw->nr_pages = 0;
	mw->length = 0;
}

/* Make the key fail, and see whether somebody is still using it */
static bool end_use(struct sroce_mr *mw)
{
	bool quiet;

	WRITE_ONCE(mw->valid, false);
	/* Invalid, then the users are counted; pairs with sroce_mr_find() */
	smp_mb();
	quiet = refcount_read(&mw->users) <= USERS_WHEN_QUIET;
	/* What the users did comes before what the owner does */
	smp_mb();
	return quiet;
}

static void describe(struct sroce_mr *mw, struct sroce_mr *parent,
		     const struct sroce_mw_bind *bind)
{
	mw->parent = parent;
	mw->owner = bind->qp;
	mw->access = bind->access & ~IB_ACCESS_LOCAL_WRITE;
	mw->iova = bind->access & IB_ZERO_BASED ? 0 : bind->addr;
	mw->length = bind->length;
	mw->offset = parent->offset + (bind->addr - parent->iova);
	mw->page_shift = parent->page_shift;
	mw->nr_pages = parent->nr_pages;
	mw->pages = parent->pages;
}

static int bind_locked(struct sroce_mr *mw, const struct sroce_mw_bind *bind)
{
	struct sroce_mr *parent;
	int err;

	err = check_window(mw, bind);
	if (err)
		return err;
	parent = get_parent(mw->table, bind);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	if (!end_use(mw)) {
		put_parent(parent);
		return -EAGAIN;
	}
	sroce_mw_unbind(mw);
	WRITE_ONCE(mw->key, bind->new_key);
	if (parent) {
		describe(mw, parent, bind);
		sroce_mr_publish(mw);
	}
	return 0;
}

int sroce_mw_bind(struct sroce_mr_table *table,
		  const struct sroce_mw_bind *bind)
{
	struct sroce_mr *mw = sroce_mr_find(table, bind->key);
	int err;

	if (!mw)
		return -EINVAL;
	spin_lock_bh(&mw->lock);
	err = bind_locked(mw, bind);
	spin_unlock_bh(&mw->lock);
	sroce_mr_put(mw);
	return err;
}

void sroce_mw_disown(struct sroce_mr_table *table, const void *qp)
{
	unsigned long index;
	struct sroce_mr *mw;

	rcu_read_lock();
	xa_for_each(&table->xa, index, mw) {
		if (mw->kind != SROCE_MR_WINDOW)
			continue;
		spin_lock_bh(&mw->lock);
		if (mw->type2 && mw->owner == qp) {
			WRITE_ONCE(mw->valid, false);
			mw->owner = NULL;
		}
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
}

/* --- the region's side ------------------------------------------------------- */

/* The next window from @index on, held */
static struct sroce_mr *next_window(struct sroce_mr_table *table,
				    unsigned long *index)
{
	struct sroce_mr *mw;

	rcu_read_lock();
	mw = xa_find(&table->xa, index, ULONG_MAX, XA_PRESENT);
	while (mw && (mw->kind != SROCE_MR_WINDOW ||
		      !refcount_inc_not_zero(&mw->users)))
		mw = xa_find_after(&table->xa, index, ULONG_MAX, XA_PRESENT);
	rcu_read_unlock();
	return mw;
}

/* False: it is invalid, but somebody is still using it */
static bool release_if_invalid(struct sroce_mr *mw, const struct sroce_mr *mr)
{
	bool done = true;

	spin_lock_bh(&mw->lock);
	if (mw->parent == mr && !mw->valid) {
		done = end_use(mw);
		if (done)
			sroce_mw_unbind(mw);
	}
	spin_unlock_bh(&mw->lock);
	return done;
}

/* Windows that were invalidated are counted still */
static void release_invalid(struct sroce_mr *mr)
{
	unsigned long index = 0;
	struct sroce_mr *mw;

	while ((mw = next_window(mr->table, &index))) {
		while (!release_if_invalid(mw, mr))
			usleep_range(50, 100);
		sroce_mr_put(mw);
		index++;
	}
}

bool sroce_mr_seal(struct sroce_mr *mr)
{
	if (!atomic_cmpxchg(&mr->windows, 0, -1))
		return true;
	release_invalid(mr);
	return !atomic_cmpxchg(&mr->windows, 0, -1);
}
