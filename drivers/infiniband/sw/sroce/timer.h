/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Timers of queue pairs and completion queues, of which a process may have thousands.
 *
 * As precise as the kernel's, and called from a softirq like them. But the kernel calls
 * all that have expired without a break: here they have their part of the CPU's turn
 * (turn.h), and a worker goes on with the rest.
 *
 * Setting one to a later time, deleting it, and setting it again are stores.
 */
#ifndef SROCE_TIMER_H
#define SROCE_TIMER_H

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/rbtree.h>
#include <linux/types.h>

struct sroce_timer_queue;

/* It is not set */
#define SROCE_TIMER_NEVER U64_MAX

/**
 * struct sroce_timer - calls a function at a time
 * @node: in the tree of @queue
 * @at: when it expires, in ns of CLOCK_MONOTONIC; SROCE_TIMER_NEVER: it is not set, or
 *	@func is being called
 * @key: its place in the tree: when it is looked at by, if not before. Never later
 *	than @at and @slack, often sooner
 * @func: called with bottom halves off, in a turn. It may set the timer again, and may
 *	free it. Halves and completion queues it only queues: their time comes when all
 *	that has expired was called
 * @queue: a CPU's. Changes with its lock held
 * @slack: ns that it may be late by, to save an interrupt
 * @queued: in the tree; written with the queue's lock held
 *
 * Calls that set and delete it are kept apart by its owner, mostly by the lock that @func
 * takes. @func may be called for a time before that if it was about to be: it looks what
 * there is to be done.
 */
struct sroce_timer {
	struct rb_node node;
	u64 at;
	u64 key;
	void (*func)(struct sroce_timer *t);
	struct sroce_timer_queue *queue;
	u32 slack;
	bool queued;
};

/**
 * sroce_timers_start() - module start
 * @after: called with bottom halves off, in a turn, when functions have been
 */
void sroce_timers_start(void (*after)(void));

/* Module end: no timer is set */
void sroce_timers_stop(void);

/**
 * sroce_timer_init() - before anything else
 * @t: timer
 * @func: what it calls
 *
 * Context: any.
 */
void sroce_timer_init(struct sroce_timer *t, void (*func)(struct sroce_timer *t));

/**
 * sroce_timer_start_range() - set a timer, whether it is set already or not
 * @t: timer
 * @at: ns of CLOCK_MONOTONIC; a time that has passed is now
 * @slack: ns that it may be later, below a second
 *
 * A later time than before is only stored.
 *
 * Context: any but hard interrupts; the lock of a queue pair or completion queue may
 * be held.
 */
void sroce_timer_start_range(struct sroce_timer *t, u64 at, u32 slack);

static inline void sroce_timer_start(struct sroce_timer *t, u64 at)
{
	sroce_timer_start_range(t, at, 0);
}

/* It is not set any more; its function may be about to be called. Context: any. */
static inline void sroce_timer_delete(struct sroce_timer *t)
{
	WRITE_ONCE(t->at, SROCE_TIMER_NEVER);
}

/**
 * sroce_timer_delete_sync() - delete a timer, and wait for its function
 * @t: timer, which nobody sets any more, but for its function
 *
 * Context: process, may sleep; nothing held that the function wants.
 */
void sroce_timer_delete_sync(struct sroce_timer *t);

/* When it expires at the latest. Context: that of those who set it. */
static inline u64 sroce_timer_latest(const struct sroce_timer *t)
{
	u64 at = READ_ONCE(t->at);

	return at == SROCE_TIMER_NEVER ? at : at + t->slack;
}

/* Is it set? */
static inline bool sroce_timer_is_set(const struct sroce_timer *t)
{
	return sroce_timer_latest(t) != SROCE_TIMER_NEVER;
}

#endif
