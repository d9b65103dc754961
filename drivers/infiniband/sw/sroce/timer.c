// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Timers of queue pairs and completion queues: each CPU has a queue of those that were
 * set on it, and one of the kernel's timers for the first of them.
 *
 * That one calls what has expired, and leaves the rest to a worker when the turn is over
 * (turn.h): the kernel's own queue has no such end, and the timers of a process's queue
 * pairs kept bottom halves off for ever. As long as somebody goes through a queue, nobody
 * else does. Each gets its turn in the order of time, so what is late is late for all of
 * that CPU, but others than timers run in between.
 *
 * So functions are short: what they find to be done they put on the run list, which is
 * gone through after the last of them. Else each could have a turn for itself, and others
 * would wait for as many turns as there are timers before theirs.
 *
 * The worker is a process and may have to wait for others. Therefore the kernel's timer is
 * set again as well, a bit later, and goes on if the worker has not begun by then.
 *
 * Most timers are for what does not happen: they are set to a later time again and again,
 * or deleted, and seldom expire. Only @at is written then, with no lock; whoever goes
 * through the queue comes to the place where the timer still is, and moves it. So one that
 * is set and deleted again and again, as that of the batches of a stream, has an interrupt
 * for nothing, but no more than one in the time that it is set to.
 *
 * A queue is not bound to its CPU. The kernel's timer may be another CPU's: of an idle
 * one, or one that is kept for a single task, or that has gone off-line, it takes care.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "timer.h"
#include "turn.h"

/* A timer that is looked at counts as so many bytes: mostly it is in nobody's cache */
#define SROCE_TIMER_BYTES SZ_2K

/* So long a worker may take until it goes on: about as long as a turn */
#define SROCE_TIMER_PAUSE_NS ((u64)NSEC_PER_MSEC)

/**
 * enum sroce_timer_state - who goes through a queue
 * @SROCE_TIMERS_WAIT: nobody, until the kernel's timer fires for the first of them
 * @SROCE_TIMERS_RUN: somebody
 * @SROCE_TIMERS_PAUSE: a turn was over: the worker or the kernel's timer, whoever is first
 */
enum sroce_timer_state {
	SROCE_TIMERS_WAIT,
	SROCE_TIMERS_RUN,
	SROCE_TIMERS_PAUSE,
};

/**
 * struct sroce_timer_queue - timers that were set on a CPU
 * @lock: innermost, with interrupts off: some who set a timer hold locks that interrupts
 *	take
 * @timers: by @key
 * @running: its function is being called
 * @state: who goes through the queue
 * @programmed: when @hrtimer fires at the latest; SROCE_TIMER_NEVER: it does not
 * @hrtimer: for the first of @timers, or for the end of a pause
 * @rest: goes on when a turn was over
 * @idle: those who wait for @running
 */
struct sroce_timer_queue {
	spinlock_t lock; /* see above */
	struct rb_root_cached timers;
	struct sroce_timer *running;
	enum sroce_timer_state state;
	u64 programmed;
	struct hrtimer hrtimer;
	struct work_struct rest;
	wait_queue_head_t idle;
};

static DEFINE_PER_CPU(struct sroce_timer_queue, sroce_timer_queues);

/* Goes through the run list */
static void (*sroce_timers_after)(void);

/* --- the tree; context: the lock held -------------------------------------------- */

static struct sroce_timer *sroce_timer_of(struct rb_node *node)
{
	return rb_entry(node, struct sroce_timer, node);
}

static struct sroce_timer *sroce_timer_first(const struct sroce_timer_queue *q)
{
	struct rb_node *node = rb_first_cached(&q->timers);

	return node ? sroce_timer_of(node) : NULL;
}

/* What has the same key comes behind */
static bool sroce_timer_is_before(struct rb_node *a, const struct rb_node *b)
{
	return sroce_timer_of(a)->key < sroce_timer_of((struct rb_node *)b)->key;
}

static void sroce_timer_add(struct sroce_timer_queue *q, struct sroce_timer *t, u64 at)
{
	WRITE_ONCE(t->key, at + READ_ONCE(t->slack));
	rb_add_cached(&t->node, &q->timers, sroce_timer_is_before);
	/* Pairs with sroce_timer_start_range(), which looks at @key then */
	smp_store_release(&t->queued, true);
}

static void sroce_timer_remove(struct sroce_timer_queue *q, struct sroce_timer *t)
{
	rb_erase_cached(&t->node, &q->timers);
	WRITE_ONCE(t->queued, false);
}

/* Have the kernel's timer fire, if it does not before. What it stands at may be too soon. */
static void sroce_timer_program_at(struct sroce_timer_queue *q, u64 at, u64 latest)
{
	if (latest >= q->programmed)
		return;
	q->programmed = latest;
	hrtimer_start_range_ns(&q->hrtimer, ns_to_ktime(at), latest - at,
			       HRTIMER_MODE_ABS_SOFT);
}

/* ... for the first of ours */
static void sroce_timer_program(struct sroce_timer_queue *q)
{
	const struct sroce_timer *first = sroce_timer_first(q);

	if (q->state == SROCE_TIMERS_WAIT && first)
		sroce_timer_program_at(q, min(READ_ONCE(first->at), first->key), first->key);
}

/* --- setting and deleting --------------------------------------------------------- */

/* The queue that a timer belongs to, locked */
static struct sroce_timer_queue *sroce_timer_lock(const struct sroce_timer *t,
						  unsigned long *flags)
	__acquires(&t->queue->lock)
{
	struct sroce_timer_queue *q;

	for (;;) {
		q = READ_ONCE(t->queue);
		spin_lock_irqsave(&q->lock, *flags);
		if (likely(q == READ_ONCE(t->queue)))
			return q;
		spin_unlock_irqrestore(&q->lock, *flags);
	}
}

/* To the queue of this CPU, unless its function is being called: then it stays there */
static void sroce_timer_insert(struct sroce_timer *t, u64 at)
{
	struct sroce_timer_queue *here = raw_cpu_ptr(&sroce_timer_queues);
	struct sroce_timer_queue *q;
	unsigned long flags;

	q = sroce_timer_lock(t, &flags);
	if (t->queued)
		sroce_timer_remove(q, t);
	if (q != here && q->running != t) {
		WRITE_ONCE(t->queue, here);
		spin_unlock(&q->lock);
		q = here;
		spin_lock(&q->lock);
	}
	sroce_timer_add(q, t, at);
	sroce_timer_program(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

void sroce_timer_start_range(struct sroce_timer *t, u64 at, u32 slack)
{
	WRITE_ONCE(t->slack, slack);
	/*
	 * Pairs with sroce_timer_take(): either @at is found there, or we find that the
	 * timer is in no tree
	 */
	smp_store_mb(t->at, at);
	/* Pairs with sroce_timer_add() */
	if (smp_load_acquire(&t->queued) && READ_ONCE(t->key) <= at + slack)
		return;
	sroce_timer_insert(t, at);
}

void sroce_timer_delete_sync(struct sroce_timer *t)
{
	struct sroce_timer_queue *q;
	unsigned long flags;

	might_sleep();
	q = sroce_timer_lock(t, &flags);
	/* Interrupts were on */
	wait_event_lock_irq(q->idle, q->running != t, q->lock);
	sroce_timer_delete(t);
	if (t->queued)
		sroce_timer_remove(q, t);
	spin_unlock_irqrestore(&q->lock, flags);
}

void sroce_timer_init(struct sroce_timer *t, void (*func)(struct sroce_timer *t))
{
	*t = (struct sroce_timer){
		.at = SROCE_TIMER_NEVER,
		.func = func,
		.queue = raw_cpu_ptr(&sroce_timer_queues),
	};
}

/* --- expiry ------------------------------------------------------------------------ */

/*
 * Take a timer off the tree whose time has come, or seemed to: it may have been set to a
 * later one, or deleted. Context: the lock held. Return: whether it has.
 */
static bool sroce_timer_take(struct sroce_timer_queue *q, struct sroce_timer *t, u64 now)
{
	u64 at;

	sroce_timer_remove(q, t);
	/* Pairs with sroce_timer_start_range() */
	smp_mb();
	/* Also @slack, which was written before it */
	at = smp_load_acquire(&t->at);
	while (at <= now)
		if (try_cmpxchg(&t->at, &at, SROCE_TIMER_NEVER))
			return true;
	if (at != SROCE_TIMER_NEVER)
		sroce_timer_add(q, t, at);
	return false;
}

/* The function that was called has returned; its timer may be gone. Context: the lock held */
static void sroce_timer_returned(struct sroce_timer_queue *q)
{
	q->running = NULL;
	/* Those who wait hold the lock from their last look at @running until they are on it */
	if (waitqueue_active(&q->idle))
		wake_up_all(&q->idle);
}

static bool sroce_timer_is_due(const struct sroce_timer *t, u64 now)
{
	return t->key <= now || READ_ONCE(t->at) <= now;
}

/* Nothing is left to be called now. Context: the lock held. */
static void sroce_timer_leave(struct sroce_timer_queue *q)
{
	q->state = SROCE_TIMERS_WAIT;
	sroce_timer_program(q);
}

/* Look at the first one. Return: false when it is not due; then the queue is left. */
static bool sroce_timer_step(struct sroce_timer_queue *q, u64 now)
{
	struct sroce_timer *t;
	unsigned long flags;
	bool more;

	spin_lock_irqsave(&q->lock, flags);
	sroce_timer_returned(q);
	t = sroce_timer_first(q);
	more = t && sroce_timer_is_due(t, now);
	if (more && sroce_timer_take(q, t, now))
		q->running = t;
	if (!more)
		sroce_timer_leave(q);
	t = q->running;
	spin_unlock_irqrestore(&q->lock, flags);
	if (t)
		t->func(t);
	return more;
}

/* The turn is over, which matters only if something is due */
static void sroce_timer_pause(struct sroce_timer_queue *q)
{
	const struct sroce_timer *first;
	u64 now = ktime_get_ns();
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	sroce_timer_returned(q);
	first = sroce_timer_first(q);
	if (first && sroce_timer_is_due(first, now)) {
		q->state = SROCE_TIMERS_PAUSE;
		sroce_timer_program_at(q, now + SROCE_TIMER_PAUSE_NS,
				       now + SROCE_TIMER_PAUSE_NS);
		queue_work(sroce_turn_wq, &q->rest);
	} else {
		sroce_timer_leave(q);
	}
	spin_unlock_irqrestore(&q->lock, flags);
}

/* Call what has expired, until the turn is over */
static void sroce_timer_call(struct sroce_timer_queue *q)
{
	u64 now = ktime_get_ns();

	do {
		if (sroce_turn_over()) {
			sroce_timer_pause(q);
			return;
		}
		sroce_turn_spend(SROCE_TIMER_BYTES);
	} while (sroce_timer_step(q, now));
}

/* Context: bottom halves off; the caller has set SROCE_TIMERS_RUN */
static void sroce_timer_run(struct sroce_timer_queue *q, bool fresh)
{
	sroce_turn_begin(fresh);
	sroce_timer_call(q);
	sroce_timers_after();
	sroce_turn_end();
}

/* The kernel's timer has fired. Return: whether the caller is to go through the queue. */
static bool sroce_timer_begin(struct sroce_timer_queue *q)
{
	unsigned long flags;
	bool begin;

	spin_lock_irqsave(&q->lock, flags);
	q->programmed = SROCE_TIMER_NEVER;
	begin = q->state != SROCE_TIMERS_RUN;
	q->state = SROCE_TIMERS_RUN;
	spin_unlock_irqrestore(&q->lock, flags);
	return begin;
}

/* The worker comes to a queue, where it may not be needed any more. Return: likewise. */
static bool sroce_timer_resume(struct sroce_timer_queue *q)
{
	unsigned long flags;
	bool resume;

	spin_lock_irqsave(&q->lock, flags);
	resume = q->state == SROCE_TIMERS_PAUSE;
	if (resume)
		q->state = SROCE_TIMERS_RUN;
	spin_unlock_irqrestore(&q->lock, flags);
	return resume;
}

static enum hrtimer_restart sroce_timer_fired(struct hrtimer *hrtimer)
{
	struct sroce_timer_queue *q =
		container_of(hrtimer, struct sroce_timer_queue, hrtimer);

	local_bh_disable();
	if (sroce_timer_begin(q))
		sroce_timer_run(q, false);
	local_bh_enable();
	return HRTIMER_NORESTART;
}

/* Its turn is a new one, so that something is done in it */
static void sroce_timer_rest(struct work_struct *work)
{
	struct sroce_timer_queue *q = container_of(work, struct sroce_timer_queue, rest);

	local_bh_disable();
	if (sroce_timer_resume(q))
		sroce_timer_run(q, true);
	local_bh_enable();
}

/* --- begin and end ------------------------------------------------------------------ */

void __init sroce_timers_start(void (*after)(void))
{
	struct sroce_timer_queue *q;
	int cpu;

	sroce_timers_after = after;
	for_each_possible_cpu(cpu) {
		q = per_cpu_ptr(&sroce_timer_queues, cpu);
		spin_lock_init(&q->lock);
		q->timers = RB_ROOT_CACHED;
		q->programmed = SROCE_TIMER_NEVER;
		hrtimer_setup(&q->hrtimer, sroce_timer_fired, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_SOFT);
		INIT_WORK(&q->rest, sroce_timer_rest);
		init_waitqueue_head(&q->idle);
	}
}

void sroce_timers_stop(void)
{
	struct sroce_timer_queue *q;
	int cpu;

	for_each_possible_cpu(cpu) {
		q = per_cpu_ptr(&sroce_timer_queues, cpu);
		/* Both come for nothing, if at all: without a timer neither starts the other */
		hrtimer_cancel(&q->hrtimer);
		flush_work(&q->rest);
		WARN_ON(!RB_EMPTY_ROOT(&q->timers.rb_root));
	}
}
