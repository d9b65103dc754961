// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The workers of each user who bring pages of memory on demand in. They run in
 * process context, for memory/pager.c, while the message waits.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>

#include "compat.h"
#include "memory/owner.h"
#include "memory/workers.h"

/* Workqueues that nobody uses stay for so long, for who comes again */
#define WORKERS_IDLE (10 * HZ)

static DEFINE_MUTEX(sroce_workers_mutex);
static LIST_HEAD(sroce_all_workers);

/* --- turns ---------------------------------------------------------------------- */

/* Context: the lock held */
static void sroce_workers_kick_first(struct sroce_workers *workers)
{
	struct sroce_worker_turn *first;

	first = list_first_entry_or_null(&workers->waiting,
					 struct sroce_worker_turn, node);
	if (first && workers->busy < SROCE_USER_SLOTS)
		schedule_work(&first->kick);
}

/* Context: the lock held */
static bool sroce_workers_is_next(const struct sroce_workers *workers,
				  const struct sroce_worker_turn *turn)
{
	return list_empty(&workers->waiting) ||
	       list_first_entry(&workers->waiting, struct sroce_worker_turn,
				node) == turn;
}

bool sroce_worker_take(struct sroce_workers *workers,
		       struct sroce_worker_turn *turn)
{
	bool taken;

	spin_lock_bh(&workers->lock);
	taken = workers->busy < SROCE_USER_SLOTS &&
		sroce_workers_is_next(workers, turn);
	if (taken) {
		workers->busy++;
		workers->moved = jiffies;
		list_del_init(&turn->node);
		sroce_workers_kick_first(workers);
	} else if (list_empty(&turn->node)) {
		list_add_tail(&turn->node, &workers->waiting);
	}
	spin_unlock_bh(&workers->lock);
	return taken;
}

void sroce_worker_run(struct sroce_workers *workers, struct work_struct *work)
{
	queue_work(workers->wq, work);
}

void sroce_worker_end(struct sroce_workers *workers, struct work_struct *work)
{
	queue_work(workers->ends, work);
}

void sroce_worker_give(struct sroce_workers *workers)
{
	spin_lock_bh(&workers->lock);
	workers->busy--;
	workers->moved = jiffies;
	sroce_workers_kick_first(workers);
	spin_unlock_bh(&workers->lock);
}

void sroce_worker_leave(struct sroce_workers *workers,
			struct sroce_worker_turn *turn)
{
	spin_lock_bh(&workers->lock);
	if (!list_empty(&turn->node)) {
		list_del_init(&turn->node);
		sroce_workers_kick_first(workers);
	}
	spin_unlock_bh(&workers->lock);
}

/* --- users ------------------------------------------------------------------------ */

/*
 * Context: the mutex not held, so that nobody else waits meanwhile. destroy_workqueue()
 * waits for its workers, and the one that has called sroce_workers_put() last may not
 * have returned from there yet.
 */
static void sroce_workers_free_all(struct list_head *idle)
{
	struct sroce_workers *workers, *next;

	list_for_each_entry_safe(workers, next, idle, node) {
		destroy_workqueue(workers->wq);
		destroy_workqueue(workers->ends);
		kfree(workers);
	}
}

static void sroce_workers_reap(struct work_struct *work)
{
	struct sroce_workers *workers, *next;
	LIST_HEAD(idle);

	mutex_lock(&sroce_workers_mutex);
	list_for_each_entry_safe(workers, next, &sroce_all_workers, node)
		if (!workers->refs)
			list_move(&workers->node, &idle);
	mutex_unlock(&sroce_workers_mutex);
	sroce_workers_free_all(&idle);
}

static DECLARE_DELAYED_WORK(sroce_workers_reaper, sroce_workers_reap);

static struct sroce_workers *sroce_workers_new(kuid_t uid)
{
	struct sroce_workers *workers = kzalloc_obj(*workers, GFP_KERNEL);

	if (!workers)
		return NULL;
	workers->wq = alloc_workqueue("sroce_pager", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!workers->wq)
		goto err_workers;
	workers->ends = alloc_workqueue("sroce_ends", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!workers->ends)
		goto err_wq;
	workers->uid = uid;
	workers->moved = jiffies;
	spin_lock_init(&workers->lock);
	INIT_LIST_HEAD(&workers->waiting);
	list_add(&workers->node, &sroce_all_workers);
	return workers;

err_wq:
	destroy_workqueue(workers->wq);
err_workers:
	kfree(workers);
	return NULL;
}

static struct sroce_workers *sroce_workers_find(kuid_t uid)
{
	struct sroce_workers *workers;

	list_for_each_entry(workers, &sroce_all_workers, node)
		if (uid_eq(workers->uid, uid))
			return workers;
	return NULL;
}

static bool sroce_workers_stuck(struct sroce_workers *workers)
{
	bool stuck;

	spin_lock_bh(&workers->lock);
	stuck = workers->busy == SROCE_USER_SLOTS &&
		time_after(jiffies, workers->moved + SROCE_USER_PATIENCE);
	spin_unlock_bh(&workers->lock);
	return stuck;
}

struct sroce_workers *sroce_workers_get(void)
{
	kuid_t uid = sroce_owner();
	struct sroce_workers *workers;

	mutex_lock(&sroce_workers_mutex);
	workers = sroce_workers_find(uid) ?: sroce_workers_new(uid);
	if (!workers)
		workers = ERR_PTR(-ENOMEM);
	else if (sroce_workers_stuck(workers))
		workers = ERR_PTR(-EBUSY);
	else
		workers->refs++;
	mutex_unlock(&sroce_workers_mutex);
	return workers;
}

void sroce_workers_put(struct sroce_workers *workers)
{
	mutex_lock(&sroce_workers_mutex);
	if (!--workers->refs)
		schedule_delayed_work(&sroce_workers_reaper, WORKERS_IDLE);
	mutex_unlock(&sroce_workers_mutex);
}

void sroce_workers_stop(void)
{
	cancel_delayed_work_sync(&sroce_workers_reaper);
	sroce_workers_reap(&sroce_workers_reaper.work);
}
