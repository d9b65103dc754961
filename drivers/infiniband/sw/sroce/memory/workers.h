/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Workers that bring pages of memory on demand in: each user has so many.
 *
 * A worker whose page does not come cannot always be stopped, and goes on being there
 * when its process has ended and counts nowhere any more. A user who has all workers
 * wait like that waits for them, too, in all processes that run as this user, or as
 * one of those that he has in a namespace of users; others have their own.
 */
#ifndef SROCE_MEMORY_WORKERS_H
#define SROCE_MEMORY_WORKERS_H

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

/* Faults of one user under way, of all processes together */
#define SROCE_USER_SLOTS 64

/* When all are under way, and none has ended for so long, nobody new is let in */
#define SROCE_USER_PATIENCE (10 * HZ)

/**
 * struct sroce_workers - those of a user
 * @node: in sroce_all_workers
 * @uid: user, see sroce_owner()
 * @refs: processes that use them; under sroce_workers_mutex
 * @wq: runs them. The kernel may divide what it runs at once among memory nodes by
 *	their processors: a node that has one in 8 still has one for each slot
 * @ends: ends tables, one of a process at a time: apart, because that may last
 * @lock: for all below; with bottom halves off, taken inside a pager's
 * @busy: under way
 * @moved: jiffies when one has begun or ended last
 * @waiting: those who want one, in the order of their turns. Whenever there is one to
 *	be had, the first has been kicked
 */
struct sroce_workers {
	struct list_head node;
	kuid_t uid;
	unsigned int refs;
	struct workqueue_struct *wq;
	struct workqueue_struct *ends;
	spinlock_t lock; /* see above */
	unsigned int busy;
	unsigned long moved;
	struct list_head waiting;
};

/**
 * struct sroce_worker_turn - who may be waiting for a worker
 * @node: in the user's queue, if so; under the lock of the workers
 * @kick: runs when it is this one's turn
 */
struct sroce_worker_turn {
	struct list_head node;
	struct work_struct kick;
};

/**
 * sroce_workers_get() - the workers of the calling user
 *
 * Context: process.
 * Return: held workers; -ENOMEM; -EBUSY when all of them have been waiting for pages
 * for SROCE_USER_PATIENCE.
 */
struct sroce_workers *sroce_workers_get(void);

/* Context: process; also one of these workers */
void sroce_workers_put(struct sroce_workers *workers);

/**
 * sroce_worker_take() - may one more fault begin?
 * @workers: held
 * @turn: whose; waits from now on if it may not: @kick runs, and may try again
 *
 * Context: any but hard interrupts.
 * Return: true: sroce_worker_run() it, and then sroce_worker_give() back.
 */
bool sroce_worker_take(struct sroce_workers *workers,
		       struct sroce_worker_turn *turn);
void sroce_worker_run(struct sroce_workers *workers, struct work_struct *work);
void sroce_worker_give(struct sroce_workers *workers);

/* Run what may last and is no fault: it takes no slot. Context: any */
void sroce_worker_end(struct sroce_workers *workers, struct work_struct *work);

/*
 * Wait no more: there is nothing to begin. @kick may be under way.
 * Context: any but hard interrupts.
 */
void sroce_worker_leave(struct sroce_workers *workers,
			struct sroce_worker_turn *turn);

/* Module end: nobody has any */
void sroce_workers_stop(void);

#endif
