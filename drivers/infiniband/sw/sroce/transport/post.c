// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting: where the send queue's work begins. A process has put its work requests
 * into the ring and rings the doorbell (verbs/doorbell.c); a kernel user's are put
 * there by us. Then the half runs, which is requester.c, by way of run.c.
 */
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

#include "lock.h"
#include "transport/batch.h"
#include "transport/internal.h"
#include "transport/run.h"

/* --- processes ---------------------------------------------------------------- */

static void sroce_qp_doorbell_now(struct sroce_qp *qp)
{
	sroce_half_run_doorbell(&qp->req.half);
	if (sroce_qp_state(qp) == IB_QPS_ERR)
		sroce_half_run(&qp->resp.half);
}

void sroce_qp_doorbell(struct sroce_qp *qp)
{
	/* One without queues has nothing to ring for, and no completion queues to look at */
	if (!qp->kind->posts && !qp->kind->receives)
		return;
	if (sroce_batch_end(qp)) {
		sroce_qp_doorbell_now(qp);
		/* The next batch of a stream need not begin with a doorbell */
		sroce_batch_begin(qp);
	} else if (!sroce_batch_begin(qp)) {
		sroce_qp_doorbell_now(qp);
	}
}

/* --- kernel users ------------------------------------------------------------- */

static bool sroce_post_full(const struct sroce_ring *r, u32 posted)
{
	return posted - READ_ONCE(r->index) > r->mask;
}

/*
 * May the caller, a kernel user, hold a spinlock that its completion handlers take? Then
 * no softirq may run here, and turning BHs on again could run one. Such a lock is held
 * with interrupts off (or with BHs off, and turning them on once more runs nothing). On
 * PREEMPT_RT it leaves both on, but a task that holds any spinlock is in an RCU read
 * section.
 */
static bool sroce_post_locks_held(void)
{
	if (irqs_disabled())
		return true;
	return IS_ENABLED(CONFIG_PREEMPT_RT) && !in_softirq() &&
	       rcu_preempt_depth();
}

static void sroce_post_run_half(struct sroce_half *half)
{
	if (sroce_post_locks_held())
		sroce_half_kick(half);
	else
		sroce_half_run(half);
}

static bool sroce_post_may_send(const struct sroce_qp *qp)
{
	switch (sroce_qp_state(qp)) {
	case IB_QPS_RESET:
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		return false;
	default:
		return true;
	}
}

int sroce_qp_post_send(struct sroce_qp *qp, const struct ib_send_wr *wr,
		       const struct ib_send_wr **bad_wr,
		       int (*fill)(struct sroce_qp *qp,
				   struct sroce_send_wqe *wqe,
				   const struct ib_send_wr *wr))
{
	struct sroce_requester *req = &qp->req;
	unsigned long irq;
	int err = 0;

	if (!sroce_post_may_send(qp) || !qp->kind->posts) {
		*bad_wr = wr;
		return -EINVAL;
	}
	irq = sroce_lock(&req->post_lock, false);
	for (; wr; wr = wr->next) {
		err = sroce_post_full(&req->ring, req->posted) ? -ENOMEM :
		      fill(qp, sroce_ring_entry(&req->ring, req->posted), wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		req->posted++;
	}
	/* Pairs with sroce_ring_pending(): the entries come first */
	smp_store_release(&req->ring.hdr->prod, req->posted);
	sroce_unlock(&req->post_lock, false, irq);

	sroce_post_run_half(&req->half);
	return err;
}

int sroce_qp_post_recv(struct sroce_qp *qp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct sroce_responder *resp = &qp->resp;
	unsigned long irq;
	int err = 0;

	if (qp->srq || !qp->kind->receives ||
	    sroce_qp_state(qp) == IB_QPS_RESET) {
		*bad_wr = wr;
		return -EINVAL;
	}
	irq = sroce_lock(&resp->post_lock, false);
	for (; wr; wr = wr->next) {
		err = sroce_post_full(&resp->ring, resp->posted) ? -ENOMEM :
		      sroce_recv_ring_write(&resp->ring, resp->posted,
					    qp->max_recv_sge, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		resp->posted++;
	}
	/* Pairs with sroce_ring_pending(): the entries come first */
	smp_store_release(&resp->ring.hdr->prod, resp->posted);
	sroce_unlock(&resp->post_lock, false, irq);

	/* A message that comes reads the queue; in ERR it has to be flushed from here */
	smp_mb();
	if (sroce_qp_state(qp) == IB_QPS_ERR)
		sroce_post_run_half(&resp->half);
	return err;
}
