// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: bound and invalidated by requests of the send queue, by their
 * peers, or with the region or QP that they belong to. A message that uses one
 * comes through memory/mr.c, as with any key.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "memory/internal.h"
#include "memory/mw.h"
#include "memory/users.h"

/* Consumers that copy a region's rights give a local one, too: it means nothing here */
#define MW_ACCESS (IB_ACCESS_LOCAL_WRITE | SROCE_REMOTE_ACCESS | \
		   IB_ZERO_BASED | IB_ACCESS_FLUSH_GLOBAL | \
		   IB_ACCESS_OPTIONAL)

struct sroce_mr *sroce_mw_alloc(struct sroce_mr_table *table, struct ib_pd *pd,
				bool type2)
{
	struct sroce_mr *mw = sroce_mr_alloc(table, pd, SROCE_MR_WINDOW, 0);

	if (!IS_ERR(mw))
		mw->type2 = type2;
	return mw;
}

static int sroce_mw_check(const struct sroce_mr *mw,
			  const struct sroce_mw_bind *bind)
{
	if (mw->kind != SROCE_MR_WINDOW || mw->going ||
	    mw->ibmr.pd != bind->pd)
		return -EINVAL;
	if ((bind->new_key ^ mw->key) & ~SROCE_KEY_BYTE ||
	    bind->access & ~MW_ACCESS)
		return -EINVAL;
	if (mw->type2)
		return mw->valid || !bind->length ? -EINVAL : 0;
	return bind->access & IB_ZERO_BASED ? -EINVAL : 0;
}

static int sroce_mw_check_parent(const struct sroce_mr *mr,
				 const struct sroce_mw_bind *bind)
{
	if (mr->kind != SROCE_MR_USER && mr->kind != SROCE_MR_ON_DEMAND)
		return -EINVAL;
	if (mr->access & IB_ZERO_BASED)
		return -EINVAL;
	if (bind->access & SROCE_REMOTE_CHANGE &&
	    !(mr->access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (bind->access & IB_ACCESS_FLUSH_GLOBAL & ~mr->access)
		return -EINVAL;
	return sroce_mr_check_range(mr, 0, bind->addr, bind->length) ?
	       -EINVAL : 0;
}

/*
 * The region to bind to, NULL for a bind of no length, or an ERR_PTR. The region counts
 * the window from here on, which keeps it without a hold.
 */
static struct sroce_mr *sroce_mw_get_parent(struct sroce_mr_table *table,
					    const struct sroce_mw_bind *bind)
{
	struct sroce_mr *mr;
	int err;

	if (!bind->length)
		return NULL;
	rcu_read_lock();
	mr = sroce_mr_look_whole(table, bind->lkey, bind->pd, IB_ACCESS_MW_BIND);
	err = IS_ERR(mr) ? -EINVAL : sroce_mw_check_parent(mr, bind);
	/* One that is about to be freed is sealed, and so counts no more windows */
	if (!err && !atomic_inc_unless_negative(&mr->windows))
		err = -EINVAL;
	rcu_read_unlock();
	return err ? ERR_PTR(err) : mr;
}

static void sroce_mw_put_parent(struct sroce_mr *parent)
{
	if (parent)
		atomic_dec(&parent->windows);
}

/* --- lists of windows -------------------------------------------------------- */

/*
 * A window is in the list of its region and, if it is of type 2, in that of its
 * QP. It gets there and leaves under its own lock, in which the list's nests.
 * Whoever comes from the list cannot hold that, so it takes the first window
 * there under RCU, locks it, and looks whether it belongs there still.
 */
static void sroce_mw_list_enter(struct sroce_mw_list *l,
				struct list_head *place)
{
	spin_lock(&l->lock);
	list_add_tail(place, &l->list);
	spin_unlock(&l->lock);
}

static void sroce_mw_list_leave(struct sroce_mw_list *l,
				struct list_head *place)
{
	spin_lock(&l->lock);
	list_del(place);
	spin_unlock(&l->lock);
}

static void sroce_mw_leave_owner(struct sroce_mr *mw)
{
	if (!mw->owner)
		return;
	sroce_mw_list_leave(mw->owner, &mw->in_owned);
	WRITE_ONCE(mw->owner, NULL);
}

/* From sroce_mw_put_parent() on the region may be freed */
static void sroce_mw_leave_parent(struct sroce_mr *mw)
{
	if (!mw->parent)
		return;
	sroce_mw_list_leave(&mw->parent->bound, &mw->in_bound);
	sroce_mw_put_parent(mw->parent);
	mw->parent = NULL;
}

/* Nobody uses the window. Context: its lock held. */
static void sroce_mw_unbind_locked(struct sroce_mr *mw)
{
	sroce_mw_leave_owner(mw);
	sroce_mw_leave_parent(mw);
	mw->blocks = NULL;
	mw->odp = NULL;
	mw->nr_blocks = 0;
	mw->length = 0;
}

/*
 * Make the key fail, and see whether somebody is still using it. @known are the
 * users that the caller knows: the registration, and its own look-up.
 */
static bool sroce_mw_end_use(struct sroce_mr *mw, unsigned int known)
{
	bool quiet;

	WRITE_ONCE(mw->valid, false);
	/* Invalid, then the users are counted; pairs with sroce_mr_try_hold() */
	smp_mb();
	quiet = refcount_read(&mw->users) <= known;
	/* Copies of the former users come before what the owner does with the memory */
	smp_mb();
	return quiet;
}

static void sroce_mw_describe(struct sroce_mr *mw, struct sroce_mr *parent,
			      const struct sroce_mw_bind *bind)
{
	mw->parent = parent;
	sroce_mw_list_enter(&parent->bound, &mw->in_bound);
	if (mw->type2) {
		WRITE_ONCE(mw->owner, bind->owner);
		sroce_mw_list_enter(mw->owner, &mw->in_owned);
	}
	mw->access = bind->access & ~IB_ACCESS_LOCAL_WRITE;
	mw->iova = bind->access & IB_ZERO_BASED ? 0 : bind->addr;
	mw->length = bind->length;
	mw->offset = parent->offset + (bind->addr - parent->iova);
	mw->block_shift = parent->block_shift;
	mw->nr_blocks = parent->nr_blocks;
	mw->blocks = parent->blocks;
	mw->odp = parent->odp;
}

static int sroce_mw_bind_locked(struct sroce_mr *mw,
				const struct sroce_mw_bind *bind)
{
	struct sroce_mr *parent;
	int err;

	err = sroce_mw_check(mw, bind);
	if (err)
		return err;
	parent = sroce_mw_get_parent(mw->table, bind);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	if (!sroce_mw_end_use(mw, 2)) {
		sroce_mw_put_parent(parent);
		return -EAGAIN;
	}
	sroce_mw_unbind_locked(mw);
	WRITE_ONCE(mw->key, bind->new_key);
	if (parent) {
		sroce_mw_describe(mw, parent, bind);
		sroce_mr_publish(mw);
	}
	return 0;
}

int sroce_mw_bind(struct sroce_mr_table *table,
		  const struct sroce_mw_bind *bind)
{
	struct sroce_mr *mw = sroce_mr_find(table, bind->key, bind->pd);
	int err;

	if (!mw)
		return -EINVAL;
	spin_lock_bh(&mw->lock);
	err = sroce_mw_bind_locked(mw, bind);
	spin_unlock_bh(&mw->lock);
	sroce_mr_put(mw);
	return err;
}

/* --- the end of a window ----------------------------------------------------- */

void sroce_mw_close(struct sroce_mr *mw)
{
	spin_lock_bh(&mw->lock);
	mw->going = true;
	spin_unlock_bh(&mw->lock);
}

void sroce_mw_unbind(struct sroce_mr *mw)
{
	spin_lock_bh(&mw->lock);
	sroce_mw_unbind_locked(mw);
	spin_unlock_bh(&mw->lock);
}

/* --- the QP's side ----------------------------------------------------------- */

/*
 * Context: RCU, which keeps the memory of the window; the window itself may leave the
 * list and end as soon as this returns.
 */
static struct sroce_mr *sroce_mw_first_owned(struct sroce_mw_list *owned)
{
	struct sroce_mr *mw;

	spin_lock_bh(&owned->lock);
	mw = list_first_entry_or_null(&owned->list, struct sroce_mr, in_owned);
	spin_unlock_bh(&owned->lock);
	return mw;
}

static bool sroce_mw_disown_first(struct sroce_mw_list *owned)
{
	struct sroce_mr *mw;

	rcu_read_lock();
	mw = sroce_mw_first_owned(owned);
	if (mw) {
		spin_lock_bh(&mw->lock);
		if (mw->owner == owned) {
			WRITE_ONCE(mw->valid, false);
			sroce_mw_leave_owner(mw);
		}
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
	return mw;
}

void sroce_mw_disown(struct sroce_mw_list *owned)
{
	while (sroce_mw_disown_first(owned))
		cond_resched();
}

/* --- the region's side ------------------------------------------------------- */

enum sroce_mw_release {
	SROCE_MW_RELEASE_NONE,		/* there is no window */
	SROCE_MW_RELEASE_BOUND,		/* one that is valid */
	SROCE_MW_RELEASE_LATER,		/* somebody is still using it, or freeing it */
	SROCE_MW_RELEASE_DONE,
};

static struct sroce_mr *sroce_mw_first_bound(struct sroce_mr *mr)
{
	struct sroce_mr *mw;

	spin_lock_bh(&mr->bound.lock);
	mw = list_first_entry_or_null(&mr->bound.list, struct sroce_mr, in_bound);
	spin_unlock_bh(&mr->bound.lock);
	return mw;
}

static enum sroce_mw_release sroce_mw_release_locked(struct sroce_mr *mw,
						     const struct sroce_mr *mr)
{
	if (mw->parent != mr)
		return SROCE_MW_RELEASE_DONE;
	if (mw->going)
		return SROCE_MW_RELEASE_LATER;
	if (mw->valid)
		return SROCE_MW_RELEASE_BOUND;
	/* Who frees it needs this lock, so the registration is still a user */
	if (!sroce_mw_end_use(mw, 1))
		return SROCE_MW_RELEASE_LATER;
	sroce_mw_unbind_locked(mw);
	return SROCE_MW_RELEASE_DONE;
}

static enum sroce_mw_release sroce_mw_release_first(struct sroce_mr *mr)
{
	enum sroce_mw_release done = SROCE_MW_RELEASE_NONE;
	struct sroce_mr *mw;

	rcu_read_lock();
	mw = sroce_mw_first_bound(mr);
	if (mw) {
		spin_lock_bh(&mw->lock);
		done = sroce_mw_release_locked(mw, mr);
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
	return done;
}

/*
 * Let go of the windows that are not valid any more, which the region still counts. Those
 * that are bound meanwhile stay.
 */
static void sroce_mw_release_invalid(struct sroce_mr *mr)
{
	int most = atomic_read(&mr->windows);
	enum sroce_mw_release done;

	do {
		done = sroce_mw_release_first(mr);
		if (done == SROCE_MW_RELEASE_LATER)
			usleep_range(50, 100);
		cond_resched();
	} while (done == SROCE_MW_RELEASE_LATER ||
		 (done == SROCE_MW_RELEASE_DONE && --most > 0));
}

bool sroce_mr_seal(struct sroce_mr *mr)
{
	if (!atomic_cmpxchg(&mr->windows, 0, -1))
		return true;
	sroce_mw_release_invalid(mr);
	return !atomic_cmpxchg(&mr->windows, 0, -1);
}
