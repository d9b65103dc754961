// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who uses regions, and who waits for that to end (memory/users.h). On the way of every
 * message that has a payload.
 *
 * Why nobody uses memory that its owner has got back: a user writes the region's name into
 * his table, and then looks whether it is @gone. Whoever ends it takes its key away, sets
 * @gone, and then looks at all tables. There is a full barrier on both sides, so that one
 * of the two sees what the other one has written: the user that the region is gone, and
 * takes his name back without having touched its memory; or the other one the name, and
 * waits until it is no longer there. The struct itself stays for a grace period, and a user
 * finds it under RCU.
 *
 * A table outlives everything, also when its processor is taken off-line: then nobody has
 * bottom halves off there (on PREEMPT_RT: nor has been preempted with these off, because
 * whoever has them off does not migrate), and it is empty.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/xarray.h>

#include "memory/internal.h"
#include "memory/pd.h"
#include "memory/users.h"

/*
 * Who holds a region that is to go is asked to let go of it when he has not after so long:
 * most do so by themselves.
 */
#define RECALL_JIFFIES (msecs_to_jiffies(4) + 1)

/* Looks at a name in a table before we sleep: a copy takes microseconds */
#define USE_SPINS 200

/* --- users ------------------------------------------------------------------------- */

static DEFINE_PER_CPU_SHARED_ALIGNED(struct sroce_mr_uses, sroce_mr_tables) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

struct sroce_mr_uses *sroce_mr_uses_begin(void)
{
	struct sroce_mr_uses *u;

	local_lock_nested_bh(&sroce_mr_tables.lock);
	u = this_cpu_ptr(&sroce_mr_tables);
	/* Whoever ends the inner use would end those of the outer one */
	WARN_ON_ONCE(u->n);
	/* The lock is kept until the end, for which sparse has no annotation */
	__release(&sroce_mr_tables.lock);
	return u;
}

/* From here on the region may be freed */
static void sroce_mr_end_use(struct sroce_mr **place)
{
	struct sroce_mr *mr = *place;
	bool counted = sroce_mr_is_counted(mr);

	/* Its copies come before; pairs with sroce_mr_await_place() */
	smp_store_release(place, NULL);
	if (unlikely(counted))
		sroce_mr_put(mr);
}

void sroce_mr_uses_end(struct sroce_mr_uses *u)
{
	while (u->n)
		sroce_mr_end_use(&u->mr[--u->n]);
	__acquire(&sroce_mr_tables.lock);
	local_unlock_nested_bh(&sroce_mr_tables.lock);
}

/* Return: false when the region has just lost its key. Context: RCU */
static bool sroce_mr_try_hold(struct sroce_mr *mr)
{
	if (unlikely(!refcount_inc_not_zero(&mr->users)))
		return false;
	/* The user is counted before it looks at the region; see sroce_mr_quiet() */
	smp_mb__after_atomic();
	return true;
}

/* Likewise */
static bool sroce_mr_try_use(struct sroce_mr **place, struct sroce_mr *mr)
{
	if (unlikely(sroce_mr_is_counted(mr)) && !sroce_mr_try_hold(mr))
		return false;
	/*
	 * A release because sroce_mr_await_place() may see this name, and not the NULL
	 * before it, in the place of one that it waits for
	 */
	smp_store_release(place, mr);
	if (unlikely(sroce_mr_is_counted(mr)))
		return true;
	/* Named, then looked at; pairs with sroce_mr_await_uses() */
	smp_mb();
	/* Who sees that it is gone sees that it has lost its key, too */
	if (likely(!smp_load_acquire(&mr->gone)))
		return true;
	WRITE_ONCE(*place, NULL);
	return false;
}

/* Before a name is written to the next place, so that who does not see the mark sees no name */
static void sroce_mr_mark(struct sroce_mr_uses *u)
{
	if (unlikely(u->n == u->used))
		WRITE_ONCE(u->used, u->n + 1);
}

/*
 * A region that cannot be used has just lost its key, to none or to the region that has
 * taken its place: so the key is looked up again, and traffic does not meet one that is
 * not there.
 */
static struct sroce_mr *sroce_mr_use_key(struct sroce_mr_uses *u,
					 struct sroce_mr_table *table, u32 key)
{
	struct sroce_mr *mr;

	rcu_read_lock();
	do {
		mr = xa_load(&table->xa, key >> SROCE_KEY_INDEX_SHIFT);
	} while (mr && unlikely(!sroce_mr_try_use(&u->mr[u->n], mr)));
	rcu_read_unlock();
	return mr;
}

struct sroce_mr *sroce_mr_use(struct sroce_mr_uses *u,
			      struct sroce_mr_table *table, u32 key,
			      const struct ib_pd *pd, int access, u64 va,
			      u64 len)
{
	struct sroce_mr *mr;
	int err;

	if (unlikely(u->n == ARRAY_SIZE(u->mr)))
		return ERR_PTR(-ENOSPC);
	sroce_mr_mark(u);
	mr = sroce_mr_use_key(u, table, key);
	if (!mr)
		return ERR_PTR(-EINVAL);
	/* Also when it is refused: let go of with the others */
	u->n++;
	err = sroce_mr_check(mr, key, pd, access, va, len);
	return unlikely(err) ? ERR_PTR(err) : mr;
}

/* The region is not held yet; its domain never changes */
static struct sroce_mr *sroce_mr_of_pd(struct sroce_mr_table *table, u32 key,
				       const struct ib_pd *pd)
{
	struct sroce_mr *mr = xa_load(&table->xa, key >> SROCE_KEY_INDEX_SHIFT);

	return mr && mr->ibmr.pd == pd ? mr : NULL;
}

struct sroce_mr *sroce_mr_find(struct sroce_mr_table *table, u32 key,
			       const struct ib_pd *pd)
{
	struct sroce_mr *mr;

	rcu_read_lock();
	/* As in sroce_mr_use_key() */
	do {
		mr = sroce_mr_of_pd(table, key, pd);
	} while (mr && unlikely(!sroce_mr_try_hold(mr)));
	rcu_read_unlock();
	return mr;
}

void sroce_mr_put(struct sroce_mr *mr)
{
	if (refcount_dec_and_test(&mr->users))
		complete(&mr->idle);
}

/* --- who waits for them -------------------------------------------------------------- */

static void sroce_mr_await_place(struct sroce_mr *const *place,
				 const struct sroce_mr *mr)
{
	unsigned int spins = 0;

	/* Pairs with sroce_mr_end_use() */
	while (smp_load_acquire(place) == mr) {
		if (spins++ < USE_SPINS)
			cpu_relax();
		else
			usleep_range(10, 50);
	}
}

/* On return no processor uses the region, nor will any */
static void sroce_mr_await_uses(struct sroce_mr *mr)
{
	struct sroce_mr_uses *u;
	unsigned int i, used;
	int cpu;

	/* The key comes first: whoever looks it up again finds something else */
	smp_store_release(&mr->gone, true);
	/* Pairs with sroce_mr_try_use() */
	smp_mb();
	if (sroce_mr_is_counted(mr))
		return;
	for_each_possible_cpu(cpu) {
		u = per_cpu_ptr(&sroce_mr_tables, cpu);
		used = READ_ONCE(u->used);
		for (i = 0; i < used; i++)
			sroce_mr_await_place(&u->mr[i], mr);
	}
}

/* A train that waits in the inbox of a QP of this host is given back when that sees this */
static void sroce_mr_recall(struct sroce_mr *mr)
{
	WRITE_ONCE(mr->recalled, true);
	atomic_inc(&to_sroce_pd(mr->ibmr.pd)->recalls);
}

static void sroce_mr_recall_end(struct sroce_mr *mr)
{
	atomic_dec(&to_sroce_pd(mr->ibmr.pd)->recalls);
}

/*
 * Uses come first, because a region that is used may be held as well, and what is held by
 * nobody must not be.
 */
void sroce_mr_await_users(struct sroce_mr *mr)
{
	/*
	 * What is not valid was refused to everybody: it was never published, or was revoked,
	 * and its uses were awaited then. A name that is left leads to the struct only.
	 */
	if (READ_ONCE(mr->valid))
		sroce_mr_await_uses(mr);
	sroce_mr_put(mr);
	if (wait_for_completion_timeout(&mr->idle, RECALL_JIFFIES))
		return;
	sroce_mr_recall(mr);
	wait_for_completion(&mr->idle);
	sroce_mr_recall_end(mr);
}

void sroce_mr_await_other_users(struct sroce_mr *mr)
{
	sroce_mr_recall(mr);
	sroce_mr_await_uses(mr);
	while (refcount_read(&mr->users) > 1)
		usleep_range(50, 100);
	sroce_mr_recall_end(mr);
	/* Copies of the former users come before what the owner does with the memory */
	smp_mb();
}
