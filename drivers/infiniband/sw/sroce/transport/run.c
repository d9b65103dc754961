// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where work runs: per-CPU lists of QP halves and completion queues.
 *
 * Every entry into the transport (doorbell, packet, timer) locks one half,
 * lets it work and unlocks it. What that made necessary elsewhere (a train for
 * a QP of this host, a completion handler) was queued on this CPU meanwhile and
 * is run afterwards with no lock held. So no two QPs' locks nest, a completion
 * handler may call any verb, and a long exchange between two local QPs is a
 * loop, not a recursion. Completion handlers that a call of a kernel user has made
 * necessary wait for a tasklet: the user may hold locks that they want.
 *
 * Bottom halves must not be off for long. When the turn is over (turn.h), what is
 * left on the list goes on elsewhere, in turns of its own: a process that has rung
 * its doorbell pays for some of them itself, everything else is for a worker, which
 * the scheduler treats as it does processes.
 *
 * A half that goes on elsewhere must not overtake what it has sent, which may be in the
 * queue that the stack has for each CPU (send.c). So the tasklet, which runs after the
 * packets of its CPU have been received, starts the worker: anywhere when that queue is
 * empty, on this CPU otherwise. A half that is about to run where it may not send is put
 * on the list of the CPU where it may.
 *
 * The handler of a completion queue, too, may be wanted on another CPU. An interrupt
 * starts the tasklet of a CPU on whose list another one has put something (on PREEMPT_RT
 * it is a worker, and no interrupt). A CPU may go off-line with things on its list: its
 * tasklet or its worker runs on another CPU then, and takes them along. And it may be
 * held by a task with real-time priority: then a timer of another CPU, set before,
 * starts a worker.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/sched/isolation.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "lock.h"
#include "timer.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/run.h"
#include "transport/send.h"
#include "turn.h"
#include "txq.h"

/*
 * Turns that a doorbell goes on for in the context of its process: with its own QP's
 * work, and with that of others
 */
#define SROCE_DOORBELL_TURNS 64
#define SROCE_OTHERS_TURNS 8

/*
 * Jiffies for which a process that is going on with the list may be kept from that by
 * others, before a worker does it
 */
#define SROCE_ATTENDED_JIFFIES (msecs_to_jiffies(4) + 1)

/*
 * The longest that sroce_half_run_here() waits until the stack has passed on what the
 * half has sent from another CPU
 */
#define SROCE_HERE_NS (4 * NSEC_PER_MSEC)

/**
 * struct sroce_runq - work of one CPU
 * @cpu: that one
 * @lock: protects the lists; taken with bottom halves off
 * @kicked: halves that were queued from any context, until the tasklet runs
 * @halves: halves to run
 * @cqs: completion queues whose handler is to be called
 * @running: somebody is going through the lists
 * @tasklet: goes through them when nobody else does
 * @call: from another CPU, to schedule @tasklet
 * @called: bit 0: @call is in use
 * @rest: goes on with what a turn has left behind, on any CPU
 * @stay: likewise, on this one
 * @urgent: @rest is about to run
 * @late: @tasklet is running: packets of this CPU have had their time
 * @attended: a process is going to go on
 * @attended_at: when its last turn ended, in jiffies
 * @insurance: a timer of another CPU: whoever is to go on with the lists may be kept
 *	from that. @lock is held when it is started
 */
struct sroce_runq {
	unsigned int cpu;
	spinlock_t lock; /* see above */
	struct llist_head kicked;
	struct list_head halves;
	struct list_head cqs;
	unsigned int running;
	struct tasklet_struct tasklet;
	call_single_data_t call;
	unsigned long called;
	struct work_struct rest;
	struct work_struct stay;
	bool urgent;
	bool late;
	bool attended;
	unsigned long attended_at;
	struct timer_list insurance;
};

static DEFINE_PER_CPU(struct sroce_runq, sroce_runqs);

/* How often lists were moved from a CPU to another one */
static atomic_t sroce_runq_moves;

static bool sroce_runq_empty(const struct sroce_runq *rq)
{
	return list_empty(&rq->halves) && list_empty(&rq->cqs);
}

/* False when it is on a list already */
static bool sroce_half_list(struct sroce_half *half, struct sroce_runq *rq)
{
	if (test_and_set_bit(0, &half->queued))
		return false;
	sroce_qp_get(half->qp);
	spin_lock(&rq->lock);
	list_add_tail(&half->node, &rq->halves);
	spin_unlock(&rq->lock);
	return true;
}

void sroce_half_queue(struct sroce_half *half)
{
	sroce_half_list(half, this_cpu_ptr(&sroce_runqs));
}

/* Have a worker go through the lists of a CPU */
static void sroce_runq_hurry(struct sroce_runq *rq)
{
	/*
	 * Pairs with sroce_runq_rest(): if we find @urgent set, its worker has not begun
	 * yet and will see what is on the list
	 */
	smp_mb();
	if (READ_ONCE(rq->urgent))
		return;
	WRITE_ONCE(rq->urgent, true);
	queue_work(sroce_turn_wq, &rq->rest);
}

/* From any context, so the list has no lock: an interrupt may come while that is held */
void sroce_half_kick(struct sroce_half *half)
{
	struct sroce_runq *rq;

	if (test_and_set_bit(0, &half->queued))
		return;
	sroce_qp_get(half->qp);
	rq = get_cpu_ptr(&sroce_runqs);
	llist_add(&half->kicked, &rq->kicked);
	tasklet_schedule(&rq->tasklet);
	/* There tasklets run in a thread, which a task with real-time priority may keep away */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		sroce_runq_hurry(rq);
	put_cpu_ptr(&sroce_runqs);
}

static void sroce_runq_take_kicked(struct sroce_runq *rq)
{
	struct llist_node *first = llist_del_all(&rq->kicked);
	struct sroce_half *half, *next;

	if (!first)
		return;
	spin_lock(&rq->lock);
	llist_for_each_entry_safe(half, next, llist_reverse_order(first),
				  kicked)
		list_add_tail(&half->node, &rq->halves);
	spin_unlock(&rq->lock);
}

static void sroce_runq_called(void *info)
{
	struct sroce_runq *rq = info;

	/* Who puts something on the lists from here on has to call again */
	clear_bit(0, &rq->called);
	tasklet_schedule(&rq->tasklet);
}

/*
 * Have another CPU go through its lists. On PREEMPT_RT a worker does: a call there must
 * not raise a softirq, because an idle CPU takes it without an interrupt.
 */
static void sroce_runq_call(struct sroce_runq *rq)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		sroce_runq_hurry(rq);
		return;
	}
	if (test_and_set_bit(0, &rq->called))
		return;
	/* The other CPU has gone off-line: its tasklet runs here */
	if (smp_call_function_single_async(rq->cpu, &rq->call))
		sroce_runq_called(rq);
}

#if IS_ENABLED(CONFIG_KUNIT)
void sroce_run_for_cpu(unsigned int cpu)
{
	tasklet_schedule(&per_cpu_ptr(&sroce_runqs, cpu)->tasklet);
}
#endif

/*
 * A completion vector is a CPU, as where a device would raise its interrupt. One that
 * the administrator keeps for something else is none that a process may interrupt.
 */
static unsigned int sroce_cq_cpu(const struct sroce_cq *cq)
{
	if (!cq->vector || cq->vector >= nr_cpu_ids || !cpu_online(cq->vector) ||
	    !housekeeping_test_cpu(cq->vector, HK_TYPE_DOMAIN) ||
	    !housekeeping_test_cpu(cq->vector, HK_TYPE_TIMER))
		return smp_processor_id();
	return cq->vector;
}

void sroce_cq_queue(struct sroce_cq *cq)
{
	unsigned int cpu = sroce_cq_cpu(cq);
	struct sroce_runq *rq = per_cpu_ptr(&sroce_runqs, cpu);

	spin_lock(&rq->lock);
	list_add_tail(&cq->notify, &rq->cqs);
	spin_unlock(&rq->lock);
	if (cpu != smp_processor_id())
		sroce_runq_call(rq);
}

/* The first of a list of the CPU, taken off it; NULL when there is none */
static struct list_head *sroce_runq_pop(struct sroce_runq *rq,
					struct list_head *list)
{
	struct list_head *first = NULL;

	if (list_empty(list))
		return NULL;
	spin_lock(&rq->lock);
	if (!list_empty(list)) {
		first = list->next;
		list_del(first);
	}
	spin_unlock(&rq->lock);
	return first;
}

/* Another CPU, rather one that is not kept for a single task */
static unsigned int sroce_runq_other_cpu(unsigned int cpu)
{
	const struct cpumask *keep = housekeeping_cpumask(HK_TYPE_TIMER);
	unsigned int other = cpumask_next_and(cpu, cpu_online_mask, keep);

	if (other >= nr_cpu_ids)
		other = cpumask_first_and(cpu_online_mask, keep);
	if (other >= nr_cpu_ids || other == cpu)
		other = cpumask_any_but(cpu_online_mask, cpu);
	return other < nr_cpu_ids ? other : cpu;
}

/*
 * A CPU is to go on with its list. Somebody may keep it from its tasklets, workers and
 * timers, a task with real-time priority for instance: then another one does, after
 * @patience jiffies. Context: bottom halves off.
 */
static void sroce_runq_insure(struct sroce_runq *rq, unsigned long patience)
{
	struct timer_list *t = &rq->insurance;
	unsigned long at = jiffies + patience;

	spin_lock(&rq->lock);
	/* The other CPU stays on-line until its timer is set */
	preempt_disable();
	if (timer_pending(t) && time_before(at, t->expires))
		timer_delete(t);
	if (!timer_pending(t)) {
		t->expires = at;
		add_timer_on(t, sroce_runq_other_cpu(rq->cpu));
	}
	preempt_enable();
	spin_unlock(&rq->lock);
}

static void sroce_runq_insured(struct timer_list *t)
{
	struct sroce_runq *rq = container_of(t, struct sroce_runq, insurance);
	unsigned long at = READ_ONCE(rq->attended_at) + SROCE_ATTENDED_JIFFIES;

	if (sroce_runq_empty(rq) && llist_empty(&rq->kicked))
		return;
	if (READ_ONCE(rq->attended) && time_before(jiffies, at))
		sroce_runq_insure(rq, at - jiffies);
	else
		sroce_runq_hurry(rq);
}

static void sroce_runq_stay(struct sroce_runq *rq)
{
	queue_work_on(rq->cpu, sroce_turn_cpu_wq, &rq->stay);
	sroce_runq_insure(rq, sroce_send_patience + 1);
}

/* The half goes on where it has sent before. Context: bottom halves off. */
static void sroce_half_hand_over(struct sroce_half *half, unsigned int cpu)
{
	struct sroce_runq *rq = per_cpu_ptr(&sroce_runqs, cpu);

	if (!sroce_half_list(half, rq))
		return;
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		sroce_runq_stay(rq);
		return;
	}
	sroce_runq_insure(rq, sroce_send_patience + 1);
	sroce_runq_call(rq);
}

/* The caller has BHs off */
static void sroce_half_run_now(struct sroce_half *half)
{
	unsigned int cpu = smp_processor_id();
	bool more;

	sroce_turn_spend(SROCE_TURN_RUN);
	spin_lock(&half->lock);
	if (half->qp->dead) {
		more = sroce_half_purge_some(half);
	} else if (likely(sroce_send_allowed(half))) {
		more = half->run(half);
	} else {
		cpu = half->sent_on;
		more = true;
	}
	spin_unlock(&half->lock);
	if (unlikely(cpu != smp_processor_id()))
		sroce_half_hand_over(half, cpu);
	else if (more)
		sroce_half_queue(half);
}

static void sroce_half_run_dequeued(struct sroce_half *half)
{
	struct sroce_qp *qp = half->qp;

	/* From here on a new arrival queues the half again */
	clear_bit(0, &half->queued);
	/* Pairs with the test_and_set_bit() of who has put it there */
	smp_mb__after_atomic();
	sroce_half_run_now(half);
	sroce_qp_put(qp);
}

static void sroce_cq_call_handler(struct sroce_cq *cq)
{
	sroce_cq_handler_begins(cq);
	if (cq->ibcq.comp_handler &&
	    sroce_events_may_raise_cq(&cq->events, &cq->ibcq))
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	if (sroce_cq_handler_ends(cq))
		sroce_cq_queue(cq);
	else if (refcount_dec_and_test(&cq->users))
		complete(&cq->idle);
}

/* --- whose turn it is -------------------------------------------------------- */

/*
 * The turn is over. A process that goes on by itself may be kept from that, and the
 * work on this list is also others'.
 */
static void sroce_runq_leave(struct sroce_runq *rq)
{
	if (READ_ONCE(rq->attended) && !READ_ONCE(rq->urgent)) {
		WRITE_ONCE(rq->attended_at, jiffies);
		sroce_runq_insure(rq, SROCE_ATTENDED_JIFFIES);
	} else if (sroce_stack_passed(rq->cpu)) {
		sroce_runq_hurry(rq);
	} else if (rq->late) {
		sroce_runq_stay(rq);
	} else {
		tasklet_schedule(&rq->tasklet);
		sroce_runq_insure(rq, sroce_send_patience + 1);
	}
}

/*
 * Go through the lists, if nobody does. A completion handler that posts comes here
 * again; on PREEMPT_RT also another task, which leaves its work to the first one:
 * that one looks once more after sroce_runq_exit().
 */
static bool sroce_runq_enter(struct sroce_runq *rq)
{
	if (rq->running)
		return false;
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return !xchg(&rq->running, 1);
	rq->running = 1;
	return true;
}

static void sroce_runq_exit(struct sroce_runq *rq)
{
	WRITE_ONCE(rq->running, 0);
}

static bool sroce_runq_run_half(struct sroce_runq *rq)
{
	struct list_head *node;

	if (sroce_turn_over())
		return false;
	node = sroce_runq_pop(rq, &rq->halves);
	if (!node)
		return false;
	sroce_half_run_dequeued(list_entry(node, struct sroce_half, node));
	return true;
}

static bool sroce_runq_run_cq(struct sroce_runq *rq)
{
	struct list_head *node;

	if (list_empty(&rq->cqs) || !sroce_turn_may_notify())
		return false;
	node = sroce_runq_pop(rq, &rq->cqs);
	if (!node)
		return false;
	sroce_turn_spend(SROCE_TURN_TRAIN);
	sroce_cq_call_handler(list_entry(node, struct sroce_cq, notify));
	return true;
}

static void sroce_runq_run(struct sroce_runq *rq)
{
	bool more;

	if (!sroce_runq_enter(rq))
		return;
	/* On PREEMPT_RT whoever goes through the lists may be kept from that, too */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		sroce_runq_insure(rq, sroce_send_patience + 1);
	do {
		more = sroce_runq_run_half(rq);
		more |= sroce_runq_run_cq(rq);
	} while (more);
	sroce_runq_exit(rq);
	if (!sroce_runq_empty(rq))
		sroce_runq_leave(rq);
}

void sroce_run_pending(void)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);

	if (!sroce_runq_empty(rq))
		sroce_runq_run(rq);
}

void sroce_run_soon(void)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);

	if (!sroce_runq_empty(rq))
		tasklet_schedule(&rq->tasklet);
}

/* Run what a call of a kernel user has queued, but for completion handlers */
static void sroce_runq_run_halves(void)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);

	if (!sroce_runq_enter(rq))
		return;
	while (sroce_runq_run_half(rq))
		;
	sroce_runq_exit(rq);
	if (!list_empty(&rq->halves))
		sroce_runq_leave(rq);
	if (!list_empty(&rq->cqs))
		tasklet_schedule(&rq->tasklet);
}

/* Move what is on the lists of a CPU, which may be off-line, to the lists of this one */
static void sroce_runq_adopt(struct sroce_runq *from)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);
	LIST_HEAD(halves);
	LIST_HEAD(cqs);

	sroce_runq_take_kicked(from);
	if (from == rq || sroce_runq_empty(from))
		return;
	atomic_inc(&sroce_runq_moves);
	spin_lock(&from->lock);
	list_splice_init(&from->halves, &halves);
	list_splice_init(&from->cqs, &cqs);
	spin_unlock(&from->lock);
	spin_lock(&rq->lock);
	list_splice_tail(&halves, &rq->halves);
	list_splice_tail(&cqs, &rq->cqs);
	spin_unlock(&rq->lock);
}

static void sroce_runq_tasklet(struct tasklet_struct *t)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);

	sroce_turn_begin(false);
	sroce_runq_adopt(container_of(t, struct sroce_runq, tasklet));
	rq->late = true;
	sroce_runq_run(rq);
	rq->late = false;
	sroce_turn_end();
}

/* The task, tasklet or worker that was to go on with the lists of a CPU was kept from it */
static void sroce_run_left(struct sroce_runq *rq)
{
	local_bh_disable();
	WRITE_ONCE(rq->attended, false);
	sroce_turn_begin(true);
	sroce_runq_adopt(rq);
	sroce_runq_run(this_cpu_ptr(&sroce_runqs));
	sroce_turn_end();
	local_bh_enable();
}

static void sroce_runq_rest(struct work_struct *work)
{
	struct sroce_runq *rq = container_of(work, struct sroce_runq, rest);

	WRITE_ONCE(rq->urgent, false);
	/* Pairs with sroce_runq_hurry() */
	smp_mb();
	sroce_run_left(rq);
}

static void sroce_run_stay(struct work_struct *work)
{
	sroce_run_left(container_of(work, struct sroce_runq, stay));
}

static void sroce_half_enter(struct sroce_half *half, bool fresh)
{
	sroce_turn_begin(fresh);
	if (unlikely(sroce_turn_over()))
		sroce_half_queue(half);
	else
		sroce_half_run_now(half);
	if (half->qp->user)
		sroce_run_pending();
	else
		sroce_runq_run_halves();
	sroce_turn_end();
}

void sroce_half_run(struct sroce_half *half)
{
	bool fresh = !softirq_count();

	local_bh_disable();
	sroce_half_enter(half, fresh);
	local_bh_enable();
}

/* Has it something to send that would overtake what it has sent elsewhere? */
static bool sroce_half_is_kept(struct sroce_half *half,
			       bool (*owes)(const struct sroce_half *half))
{
	bool kept;

	spin_lock_bh(&half->lock);
	kept = !half->qp->dead && owes(half) && !sroce_send_allowed(half);
	spin_unlock_bh(&half->lock);
	return kept;
}

static void sroce_half_forget_cpu(struct sroce_half *half)
{
	spin_lock_bh(&half->lock);
	if (half->sent_on != smp_processor_id())
		WRITE_ONCE(half->sent_on, nr_cpu_ids);
	spin_unlock_bh(&half->lock);
}

void sroce_half_run_here(struct sroce_half *half,
			 bool (*owes)(const struct sroce_half *half))
{
	u64 end = ktime_get_ns() + SROCE_HERE_NS;

	migrate_disable();
	while (owes && sroce_half_is_kept(half, owes) && ktime_get_ns() < end) {
		/* Whoever sleeps may be wanted on another CPU */
		migrate_enable();
		usleep_range(100, 200);
		migrate_disable();
	}
	sroce_half_forget_cpu(half);
	sroce_half_run(half);
	migrate_enable();
}

/* Others may run now. False when we have been taken to another CPU meanwhile. */
static bool sroce_runq_breathe(struct sroce_runq *rq)
{
	local_bh_enable();
	cond_resched();
	local_bh_disable();
	return rq == this_cpu_ptr(&sroce_runqs);
}

/* Is it on this CPU's list, and not on that of one where it has sent before? */
static bool sroce_half_waits_here(const struct sroce_half *half)
{
	return test_bit(0, &half->queued) && sroce_send_allowed(half);
}

/*
 * In the process's context: what it has begun, as long as that takes within reason, and
 * for a while what others have on this CPU
 */
static void sroce_runq_run_on(struct sroce_runq *rq,
			      const struct sroce_half *half)
{
	int turn;

	for (turn = 1; turn < SROCE_DOORBELL_TURNS; turn++) {
		if (!sroce_runq_breathe(rq) || sroce_runq_empty(rq) ||
		    signal_pending(current))
			break;
		if (turn >= SROCE_OTHERS_TURNS && !sroce_half_waits_here(half))
			break;
		sroce_turn_begin(true);
		sroce_runq_run(rq);
		sroce_turn_end();
	}
}

void sroce_half_run_doorbell(struct sroce_half *half)
{
	struct sroce_runq *rq;

	local_bh_disable();
	rq = this_cpu_ptr(&sroce_runqs);
	WRITE_ONCE(rq->attended, true);
	sroce_half_enter(half, true);
	if (unlikely(sroce_turn_is_long()))
		sroce_runq_run_on(rq, half);
	WRITE_ONCE(rq->attended, false);
	if (sroce_runq_empty(rq))
		;
	else if (rq == this_cpu_ptr(&sroce_runqs))
		sroce_runq_leave(rq);
	else
		sroce_runq_hurry(rq);
	local_bh_enable();
}

/* --- begin and end ----------------------------------------------------------- */

void __init sroce_runqs_start(void)
{
	struct sroce_runq *rq;
	int cpu;

	for_each_possible_cpu(cpu) {
		rq = per_cpu_ptr(&sroce_runqs, cpu);
		rq->cpu = cpu;
		spin_lock_init(&rq->lock);
		init_llist_head(&rq->kicked);
		INIT_LIST_HEAD(&rq->halves);
		INIT_LIST_HEAD(&rq->cqs);
		tasklet_setup(&rq->tasklet, sroce_runq_tasklet);
		INIT_CSD(&rq->call, sroce_runq_called, rq);
		INIT_WORK(&rq->rest, sroce_runq_rest);
		INIT_WORK(&rq->stay, sroce_run_stay);
		timer_setup(&rq->insurance, sroce_runq_insured, 0);
	}
	sroce_timers_start(sroce_run_pending);
}

/* Return: whether there was something to be done */
static bool sroce_runq_flush(struct sroce_runq *rq)
{
	bool left = !sroce_runq_empty(rq) || !llist_empty(&rq->kicked);

	/* A tasklet that was started during tasklet_kill() may never run */
	if (left)
		sroce_runq_hurry(rq);
	tasklet_kill(&rq->tasklet);
	left |= flush_work(&rq->rest);
	left |= flush_work(&rq->stay);
	return left || !sroce_runq_empty(rq);
}

/* What is moved meanwhile may come to a CPU that has been flushed before */
static bool sroce_runqs_flush(void)
{
	int moves = atomic_read(&sroce_runq_moves);
	bool left = false;
	int cpu;

	for_each_possible_cpu(cpu)
		left |= sroce_runq_flush(per_cpu_ptr(&sroce_runqs, cpu));
	return left || moves != atomic_read(&sroce_runq_moves);
}

void sroce_runqs_stop(void)
{
	int cpu;

	sroce_timers_stop();
	for_each_possible_cpu(cpu)
		while (test_bit(0, &per_cpu_ptr(&sroce_runqs, cpu)->called))
			usleep_range(1000, 2000);
	/* Interrupts that were taking a call have ended */
	synchronize_rcu();
	/* What is left of dead QPs goes on in tasklets and workers of any of them */
	while (sroce_runqs_flush())
		cond_resched();
	for_each_possible_cpu(cpu)
		timer_delete_sync(&per_cpu_ptr(&sroce_runqs, cpu)->insurance);
}
