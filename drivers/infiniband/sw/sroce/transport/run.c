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
#include "memory/odp.h"
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
 * @gather: see sroce_gather_begin()
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
	struct sroce_gather gather;
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

struct sroce_gather *sroce_gather_begin(void)
{
	struct sroce_gather *g = &this_cpu_ptr(&sroce_runqs)->gather;

	g->nbv = 0;
	g->nmrs = 0;
	g->len = 0;
	g->inlined = false;
	g->reserved = false;
	g->on_demand = false;
	return g;
}

static void sroce_gather_end_on_demand(struct sroce_gather *g)
{
	sroce_odp_leave();
	if (g->miss.mr)
		sroce_mr_put(g->miss.mr);
	g->miss.mr = NULL;
}

void sroce_gather_end(struct sroce_gather *g)
{
	if (unlikely(g->on_demand))
		sroce_gather_end_on_demand(g);
	while (g->nmrs)
		sroce_mr_put(g->mrs[--g->nmrs]);
}

/* The hold on a region that is not there passes to @g->miss */
static int sroce_gather_begin_on_demand(struct sroce_gather *g,
					struct sroce_mr *mr, int access,
					u64 va, u32 len)
{
	bool write = access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);

	if (!g->on_demand)
		sroce_odp_enter();
	g->on_demand = true;
	if (sroce_odp_present(mr, va, len, write))
		return 0;
	g->miss = (struct sroce_miss){
		.mr = mr,
		.va = va,
		.len = len,
		.write = write,
	};
	return -EAGAIN;
}

/* Add a range of a region that was found by its key, and is held for us */
static int sroce_gather_mr(struct sroce_gather *g, struct sroce_mr *mr,
			   int access, u64 va, u32 len)
{
	u32 done;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	if (unlikely(mr->kind == SROCE_MR_ON_DEMAND) &&
	    sroce_gather_begin_on_demand(g, mr, access, va, len))
		return -EAGAIN;
	g->mrs[g->nmrs++] = mr;
	g->nbv += sroce_mr_bvecs(mr, va, len, g->bv + g->nbv,
				 ARRAY_SIZE(g->bv) - g->nbv, &done);
	g->len += done;
	return done == len ? 0 : -ENOSPC;
}

int sroce_gather_key(struct sroce_gather *g, struct sroce_qp *qp, u32 key,
		     int access, u64 va, u32 len)
{
	if (g->nmrs == ARRAY_SIZE(g->mrs))
		return -ENOSPC;
	return sroce_gather_mr(g, sroce_rkey_get(qp, key, access, va, len),
			       access, va, len);
}

static int sroce_gather_kernel(struct sroce_gather *g, u64 va, u32 len)
{
	u32 done;

	g->nbv += sroce_kernel_bvecs(va, len, g->bv + g->nbv,
				     ARRAY_SIZE(g->bv) - g->nbv, &done);
	g->len += done;
	g->reserved = true;
	return done == len ? 0 : -ENOSPC;
}

/*
 * The reserved key needs no look-up: all memory that the kernel has. It is one
 * only where the kernel itself has written it; whose QP carries it out does not
 * matter.
 */
static int sroce_gather_sge(struct sroce_gather *g, struct sroce_qp *qp,
			    const struct sroce_sgl *l, u32 lkey, int access,
			    u64 va, u32 len)
{
	struct sroce_mr *mr;

	if (lkey == SROCE_LOCAL_DMA_LKEY && !l->user)
		return sroce_gather_kernel(g, va, len);
	if (g->nmrs == ARRAY_SIZE(g->mrs))
		return -ENOSPC;
	mr = sroce_mr_get(&qp->port->mrs, lkey, l->pd, access, va, len);
	return sroce_gather_mr(g, sroce_rkey_check(qp, mr), access, va, len);
}

int sroce_gather_sges(struct sroce_gather *g, struct sroce_qp *qp,
		      const struct sroce_sgl *l, int access, u32 off, u32 len)
{
	const struct sroce_sge *sge = l->sge;
	u32 n = l->n;
	u32 part;
	int err;

	for (; n && len; n--, sge++) {
		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = min(sge->length - off, len);
		err = sroce_gather_sge(g, qp, l, sge->lkey, access,
				       sge->addr + off, part);
		if (err)
			return err;
		len -= part;
		off = 0;
	}
	return 0;
}

static void sroce_runqs_init(void)
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

int __init sroce_transport_init(void)
{
	int err;

	sroce_runqs_init();
	err = sroce_numbers_start();
	if (err)
		return err;
	err = sroce_qps_start();
	if (err)
		sroce_numbers_stop();
	return err;
}

void sroce_transport_exit(void)
{
	int cpu;

	/* A fault that has ended may start a tasklet, but not the reverse: no
	 * QP is left that could want something
	 */
	sroce_pagers_stop();
	for_each_possible_cpu(cpu)
		while (test_bit(0, &per_cpu_ptr(&sroce_runqs, cpu)->called))
			usleep_range(1000, 2000);
	/* Interrupts that were taking a call have ended */
	synchronize_rcu();
	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&sroce_runqs, cpu)->tasklet);
	/* QPs are freed after a grace period, by code of this module */
	rcu_barrier();
	sroce_qps_stop();
	sroce_numbers_stop();
}
