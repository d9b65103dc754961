// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where work runs: per-CPU lists of QP halves and completion queues.
 *
 * Every entry into the transport (doorbell, packet, timer) locks one half,
 * lets it work and unlocks it. What that made necessary elsewhere (a train for
 * a QP of this host, a completion handler) was queued on this CPU meanwhile and
 * is run afterwards with no lock held. So no two QPs' locks nest, a completion
 * handler may call any verb, and a long exchange between two local QPs is a
 * loop, not a recursion. What is left when the budget runs out goes on in a
 * tasklet, behind the network's softirqs. So do completion handlers that a call
 * of a kernel user has made necessary: it may hold locks that they want.
 *
 * The handler of a completion queue may be wanted on another CPU. It is put on that
 * one's list, and an interrupt starts the tasklet there.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/smp.h>

#include "lock.h"
#include "transport/internal.h"

#define SROCE_RUN_BUDGET 64

/**
 * struct sroce_runq - work of one CPU
 * @lock: protects the lists; taken with bottom halves off
 * @kicked: halves that were queued from any context, until the tasklet runs
 * @halves: halves to run
 * @cqs: completion queues whose handler is to be called
 * @running: somebody is going through the lists
 * @tasklet: goes through them when nobody else does
 * @call: from another CPU, to schedule @tasklet
 * @called: bit 0: @call is in use
 */
struct sroce_runq {
	spinlock_t lock; /* see above */
	struct llist_head kicked;
	struct list_head halves;
	struct list_head cqs;
	bool running;
	struct tasklet_struct tasklet;
	call_single_data_t call;
	unsigned long called;
};

static DEFINE_PER_CPU(struct sroce_runq, sroce_runqs);

void sroce_half_queue(struct sroce_half *half)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);

	if (test_and_set_bit(0, &half->queued))
		return;
	sroce_qp_hold(half->qp);
	spin_lock(&rq->lock);
	list_add_tail(&half->node, &rq->halves);
	spin_unlock(&rq->lock);
}

/* An interrupt may come while the lock is held: it uses a list without */
void sroce_half_kick(struct sroce_half *half)
{
	struct sroce_runq *rq;

	if (test_and_set_bit(0, &half->queued))
		return;
	sroce_qp_hold(half->qp);
	rq = get_cpu_ptr(&sroce_runqs);
	llist_add(&half->kicked, &rq->kicked);
	tasklet_schedule(&rq->tasklet);
	put_cpu_ptr(&sroce_runqs);
}

static void sroce_take_kicked(struct sroce_runq *rq)
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

static void sroce_called(void *info)
{
	struct sroce_runq *rq = info;

	/* Whoever comes later calls again */
	clear_bit(0, &rq->called);
	tasklet_schedule(&rq->tasklet);
}

static void sroce_call(struct sroce_runq *rq, unsigned int cpu)
{
	if (test_and_set_bit(0, &rq->called))
		return;
	/* It went offline: the work is done here */
	if (smp_call_function_single_async(cpu, &rq->call))
		sroce_called(rq);
}

/* A completion vector is a CPU, as where a device would raise its interrupt */
static unsigned int sroce_cq_cpu(const struct sroce_cq *cq)
{
	if (!cq->vector || cq->vector >= nr_cpu_ids || !cpu_online(cq->vector))
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
		sroce_call(rq, cpu);
}

static struct sroce_half *sroce_next_half(struct sroce_runq *rq)
{
	struct sroce_half *half;

	if (list_empty(&rq->halves))
		return NULL;
	spin_lock(&rq->lock);
	half = list_first_entry_or_null(&rq->halves, struct sroce_half, node);
	if (half)
		list_del(&half->node);
	spin_unlock(&rq->lock);
	return half;
}

static struct sroce_cq *sroce_next_cq(struct sroce_runq *rq)
{
	struct sroce_cq *cq;

	if (list_empty(&rq->cqs))
		return NULL;
	spin_lock(&rq->lock);
	cq = list_first_entry_or_null(&rq->cqs, struct sroce_cq, notify);
	if (cq)
		list_del(&cq->notify);
	spin_unlock(&rq->lock);
	return cq;
}

/* The caller has BHs off */
static void sroce_half_work(struct sroce_half *half)
{
	bool more = false;

	spin_lock(&half->lock);
	if (half->qp->dead)
		sroce_half_purge(half);
	else
		more = half->run(half);
	spin_unlock(&half->lock);
	if (more)
		sroce_half_queue(half);
}

static void sroce_half_dequeued(struct sroce_half *half)
{
	struct sroce_qp *qp = half->qp;

	/* From here on a new arrival queues the half again */
	clear_bit(0, &half->queued);
	/* Pairs with the test_and_set_bit() of who has put it there */
	smp_mb__after_atomic();
	sroce_half_work(half);
	sroce_qp_put(qp);
}

static void sroce_cq_dequeued(struct sroce_cq *cq)
{
	unsigned long irq = sroce_lock(&cq->lock, cq->user);

	cq->notify_queued = false;
	sroce_unlock(&cq->lock, cq->user, irq);
	if (cq->ibcq.comp_handler &&
	    sroce_events_of_cq(&cq->events, &cq->ibcq))
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	if (refcount_dec_and_test(&cq->users))
		complete(&cq->idle);
}

static bool sroce_run_one(struct sroce_runq *rq)
{
	struct sroce_half *half = sroce_next_half(rq);
	struct sroce_cq *cq = sroce_next_cq(rq);

	if (half)
		sroce_half_dequeued(half);
	if (cq)
		sroce_cq_dequeued(cq);
	return half || cq;
}

static void sroce_runq_run(struct sroce_runq *rq)
{
	int budget = SROCE_RUN_BUDGET;

	/* A completion handler that posts comes back here */
	if (rq->running)
		return;
	rq->running = true;
	while (sroce_run_one(rq)) {
		if (!--budget) {
			tasklet_schedule(&rq->tasklet);
			break;
		}
	}
	rq->running = false;
}

void sroce_run_pending(void)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);

	if (!list_empty(&rq->halves) || !list_empty(&rq->cqs))
		sroce_runq_run(rq);
}

void sroce_run_soon(void)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);

	if (!list_empty(&rq->halves))
		tasklet_schedule(&rq->tasklet);
}

static void sroce_run_tasklet(struct tasklet_struct *t)
{
	struct sroce_runq *rq = container_of(t, struct sroce_runq, tasklet);

	sroce_take_kicked(rq);
	sroce_runq_run(rq);
}

/* What a call of a kernel user leads to, but for the completion handlers */
static void sroce_run_halves(void)
{
	struct sroce_runq *rq = this_cpu_ptr(&sroce_runqs);
	int budget = SROCE_RUN_BUDGET;
	struct sroce_half *half;

	if (rq->running)
		return;
	rq->running = true;
	while (budget-- && (half = sroce_next_half(rq)))
		sroce_half_dequeued(half);
	rq->running = false;
	if (!list_empty(&rq->halves) || !list_empty(&rq->cqs))
		tasklet_schedule(&rq->tasklet);
}

void sroce_half_run(struct sroce_half *half)
{
	local_bh_disable();
	sroce_half_work(half);
	if (half->qp->user)
		sroce_run_pending();
	else
		sroce_run_halves();
	local_bh_enable();
}

void __init sroce_runqs_start(void)
{
	struct sroce_runq *rq;
	int cpu;

	for_each_possible_cpu(cpu) {
		rq = per_cpu_ptr(&sroce_runqs, cpu);
		spin_lock_init(&rq->lock);
		init_llist_head(&rq->kicked);
		INIT_LIST_HEAD(&rq->halves);
		INIT_LIST_HEAD(&rq->cqs);
		tasklet_setup(&rq->tasklet, sroce_run_tasklet);
		INIT_CSD(&rq->call, sroce_called, rq);
	}
}

void sroce_runqs_stop(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		while (test_bit(0, &per_cpu_ptr(&sroce_runqs, cpu)->called))
			usleep_range(1000, 2000);
	/* Interrupts that were taking a call have ended */
	synchronize_rcu();
	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&sroce_runqs, cpu)->tasklet);
}
