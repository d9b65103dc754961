// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: life and death.
 *
 * A QP is found by number under RCU and held by a count. Whoever found it takes
 * the lock of one half and looks at @dead before anything else; once
 * sroce_qp_destroy() has set that under both locks, nobody touches rings,
 * completion queues or regions any more, and the struct itself waits for the
 * last holder (a run list, say).
 */
#include <linux/slab.h>

#include "memory/mw.h"
#include "path.h"
#include "transport/ack_delay.h"
#include "transport/answers.h"
#include "transport/batch.h"
#include "transport/congestion.h"
#include "transport/direct.h"
#include "transport/early.h"
#include "transport/fault.h"
#include "transport/group.h"
#include "transport/hold.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/kind.h"
#include "transport/number.h"
#include "transport/patience.h"
#include "transport/qp.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/responder_tag.h"
#include "transport/retransmit.h"
#include "transport/run.h"
#include "transport/send.h"
#include "transport/trace.h"
#include "transport/window.h"
#include "txq.h"

/* QPs have a cache of their own: aligned to lines, without what kmalloc() rounds up */
static struct kmem_cache *sroce_qp_cache;

int sroce_qps_start(void)
{
	sroce_qp_cache = KMEM_CACHE(sroce_qp, 0);
	return sroce_qp_cache ? 0 : -ENOMEM;
}

void sroce_qps_stop(void)
{
	kmem_cache_destroy(sroce_qp_cache);
}

struct sroce_qp *sroce_qp_find_gsi(struct sroce_netport *net)
{
	struct sroce_qp *qp;

	rcu_read_lock();
	qp = rcu_dereference(to_sroce_port(net)->gsi);
	if (qp && !refcount_inc_not_zero(&qp->refs))
		qp = NULL;
	rcu_read_unlock();
	return qp;
}

static void sroce_qp_free(struct rcu_head *rcu)
{
	kmem_cache_free(sroce_qp_cache, container_of(rcu, struct sroce_qp, rcu));
}

void sroce_qp_hold(struct sroce_qp *qp)
{
	sroce_qp_get(qp);
}

void sroce_qp_put(struct sroce_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		call_rcu(&qp->rcu, sroce_qp_free);
}

static int sroce_qp_publish(struct sroce_qp *qp)
{
	if (qp->type != IB_QPT_GSI)
		return sroce_qp_add_number(qp);
	qp->qpn = SROCE_QPN_GSI;
	if (rcu_access_pointer(qp->port->gsi))
		return -EBUSY;
	rcu_assign_pointer(qp->port->gsi, qp);
	return 0;
}

static void sroce_qp_unpublish(struct sroce_qp *qp)
{
	if (qp->type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->port->gsi, NULL);
	else
		sroce_qp_remove_number(qp);
}

/* --- the stack's buffers ------------------------------------------------------ */

static int sroce_qp_alloc_txq(struct sroce_qp *qp)
{
	qp->txq = sroce_txq_alloc(&qp->port->queued, sroce_send_room, qp);
	if (!qp->txq)
		return -ENOMEM;
	/* All of a host share one QP 1: it must not wait because of one destination */
	sroce_txq_set_limit(qp->txq, qp->type == IB_QPT_GSI ? INT_MAX :
							      SROCE_TXQ_BYTES);
	sroce_txq_count_in(qp->txq, qp->counters);
	return 0;
}

/* --- making ---------------------------------------------------------------------- */

static void sroce_half_init(struct sroce_half *half, struct sroce_qp *qp,
			    bool (*run)(struct sroce_half *half))
{
	INIT_LIST_HEAD(&half->inbox);
	INIT_LIST_HEAD(&half->inbox_lent);
	spin_lock_init(&half->inbox_lock);
	half->run = run;
	half->sent_on = nr_cpu_ids;
	half->qp = qp;
	sroce_fault_init(half);
}

static int sroce_qp_alloc_slots(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	size_t n = sroce_ring_entries(&req->ring);

	if (qp->user && sroce_pinned_charge(&req->pinned, n * req->slot_size))
		return -ENOMEM;
	req->slots = kvcalloc(n, req->slot_size, SROCE_GFP_CHOSEN);
	return req->slots ? 0 : -ENOMEM;
}

static int sroce_qp_alloc_sq(struct sroce_qp *qp, struct ib_qp_cap *cap)
{
	struct sroce_requester *req = &qp->req;
	u32 data = max_t(u32, cap->max_send_sge * sizeof(struct sroce_sge),
			 cap->max_inline_data);
	int err;

	err = sroce_ring_shape(&req->ring, max(cap->max_send_wr, 1U),
			       sizeof(struct sroce_send_wqe) + data);
	if (err)
		return err;
	req->slot_size = sizeof(struct sroce_swqe) +
			 cap->max_send_sge * sizeof(struct sroce_sge);
	err = sroce_qp_alloc_slots(qp);
	if (err)
		return err;
	qp->max_send_sge = cap->max_send_sge;
	/* An entry that has room for elements has that much for inline data */
	cap->max_inline_data = data;
	qp->max_inline = data;
	cap->max_send_wr = sroce_ring_entries(&req->ring);
	return 0;
}

/*
 * A QP that does not receive has a ring all the same, to which nobody posts; and what an
 * XRC target takes comes from queues that vary. @cap tells what the user can post.
 */
static int sroce_qp_alloc_rq(struct sroce_qp *qp, struct ib_qp_cap *cap)
{
	struct sroce_responder *resp = &qp->resp;
	bool own = qp->kind->receives && !qp->srq;
	u32 size;
	int err;

	if (qp->srq) {
		qp->max_recv_sge = qp->srq->max_sge;
		size = qp->srq->ring.stride;
	} else {
		qp->max_recv_sge = own ? cap->max_recv_sge : SROCE_MAX_SGE;
		size = sizeof(struct sroce_recv_wqe) +
		       qp->max_recv_sge * sizeof(struct sroce_sge);
		err = sroce_ring_shape(&resp->ring,
				       own ? max(cap->max_recv_wr, 1U) : 1,
				       size);
		if (err)
			return err;
	}
	cap->max_recv_wr = own ? sroce_ring_entries(&resp->ring) : 0;
	cap->max_recv_sge = own ? qp->max_recv_sge : 0;
	resp->msg.wqe = kmalloc(size, GFP_KERNEL_ACCOUNT);
	return resp->msg.wqe ? 0 : -ENOMEM;
}

static void sroce_qp_free_queues(struct sroce_qp *qp)
{
	sroce_ring_free_pair(&qp->req.ring, &qp->resp.ring);
	kvfree(qp->req.slots);
	sroce_pinned_uncharge(&qp->req.pinned);
	kfree(qp->resp.msg.wqe);
	sroce_answers_free(&qp->resp.answers);
}

/*
 * XRC targets and tables of work queues have none. A type that does not receive may have
 * been given no receive CQ, and a work queue no send CQ.
 */
static void sroce_qp_set_cqs(struct sroce_qp *qp,
			     const struct ib_qp_init_attr *init)
{
	struct ib_cq *scq = init->send_cq ?: init->recv_cq;
	struct ib_cq *rcq = init->recv_cq ?: init->send_cq;

	if (qp->type == IB_QPT_XRC_TGT) {
		qp->xrcd = init->xrcd;
	} else if (scq) {
		qp->scq = to_sroce_cq(scq);
		qp->rcq = to_sroce_cq(rcq);
	}
	if (qp->kind->tags)
		qp->rcq = to_sroce_srq(init->srq)->cq;
}

static struct sroce_qp *sroce_qp_alloc(struct sroce_port *port,
				       struct ib_qp *ibqp,
				       struct ib_qp_init_attr *init,
				       void *owner)
{
	struct sroce_qp *qp = kmem_cache_zalloc(sroce_qp_cache, GFP_KERNEL_ACCOUNT);

	if (!qp)
		return NULL;
	refcount_set(&qp->refs, 1);
	qp->ibqp = ibqp;
	qp->port = port;
	qp->counters = port->net.counters;
	qp->pd = ibqp->pd;
	qp->type = init->qp_type;
	qp->kind = sroce_qp_kind(init);
	qp->owner = owner;
	/* XRC targets are processes' alone: kernel users get no SRQ of that type */
	qp->user = owner || qp->type == IB_QPT_XRC_TGT;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	spin_lock_init(&qp->state_lock);
	INIT_LIST_HEAD(&qp->groups);
	sroce_mw_list_init(&qp->windows);
	qp->block_self = init->create_flags &
			 IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	qp->strip_vlan = init->create_flags & IB_QP_CREATE_CVLAN_STRIPPING;
	sroce_qp_set_cqs(qp, init);
	qp->srq = init->srq ? to_sroce_srq(init->srq) : NULL;
	/* One line for each, so that lockdep sees two classes of locks */
	spin_lock_init(&qp->req.half.lock);
	spin_lock_init(&qp->resp.half.lock);
	sroce_half_init(&qp->req.half, qp, sroce_requester_run);
	sroce_half_init(&qp->resp.half, qp, sroce_responder_run);
	spin_lock_init(&qp->req.post_lock);
	spin_lock_init(&qp->resp.post_lock);
	sroce_requester_timer_init(&qp->req);
	sroce_batch_init(&qp->req);
	sroce_ack_delay_init(&qp->resp.ack.delay);
	sroce_patience_init(qp);
	sroce_congestion_init(qp);
	sroce_hold_init(qp);
	sroce_early_init(qp);
	return qp;
}

static void sroce_qp_drop_send_cap(struct ib_qp_cap *cap)
{
	cap->max_send_wr = 0;
	cap->max_send_sge = 0;
	cap->max_inline_data = 0;
}

struct sroce_qp *sroce_qp_create(struct sroce_port *port, struct ib_qp *ibqp,
				 struct ib_qp_init_attr *init, void *owner,
				 struct sroce_ring_pool *pool)
{
	struct sroce_qp *qp = sroce_qp_alloc(port, ibqp, init, owner);
	int err;

	if (!qp)
		return ERR_PTR(-ENOMEM);
	/* Nobody posts to an XRC target, whatever he has asked for */
	if (!qp->kind->posts)
		sroce_qp_drop_send_cap(&init->cap);
	if (!qp->kind->posts && !qp->kind->receives) {
		init->cap = (struct ib_qp_cap){};
		/* Whoever may map a ring that is in the pool may write to all that are */
		pool = NULL;
	}
	err = sroce_qp_alloc_txq(qp);
	if (!err)
		err = sroce_qp_alloc_sq(qp, &init->cap);
	if (!err)
		err = sroce_qp_alloc_rq(qp, &init->cap);
	if (!err)
		err = sroce_ring_alloc_pair(&qp->req.ring, &qp->resp.ring,
					    pool, qp->user);
	if (!err)
		err = sroce_qp_publish(qp);
	if (err) {
		sroce_txq_free(qp->txq);
		sroce_qp_free_queues(qp);
		kmem_cache_free(sroce_qp_cache, qp);
		return ERR_PTR(err);
	}
	return qp;
}

void sroce_qp_count_in(struct sroce_qp *qp,
		       struct sroce_counters __percpu *counters)
{
	spin_lock_bh(&qp->req.half.lock);
	spin_lock(&qp->resp.half.lock);
	qp->counters = counters;
	sroce_txq_count_in(qp->txq, counters);
	spin_unlock(&qp->resp.half.lock);
	spin_unlock_bh(&qp->req.half.lock);
}

/* --- ending ------------------------------------------------------------------------ */

/* An XRC target has no completion queues of its own: scq and rcq are NULL */
void sroce_qp_forget_completions(struct sroce_qp *qp)
{
	if (qp->scq && !qp->scq->user)
		sroce_cq_forget(qp->scq, qp->ibqp);
	if (qp->rcq && !qp->rcq->user)
		sroce_cq_forget(qp->rcq, qp->ibqp);
}

/* Has the half flushed as many entries as the ring could hold when it was at @begin? */
static bool sroce_half_flushed(struct sroce_half *half,
			       const struct sroce_ring *ring, u32 begin)
{
	bool flushed;

	spin_lock_bh(&half->lock);
	/* The ring goes when the QP is dead */
	flushed = half->qp->dead || !sroce_ring_pending(ring) ||
		  ring->index - begin >= sroce_ring_entries(ring);
	spin_unlock_bh(&half->lock);
	return flushed;
}

/*
 * Have a half flush what its ring holds now. Each run takes what the inbox has, or a
 * part of it, and then flushes a part. What somebody goes on sending or posting
 * meanwhile is not waited for, nor what a process has written to a ring that is not
 * @used: nobody takes that.
 */
static void sroce_half_flush(struct sroce_half *half,
			     const struct sroce_ring *ring, bool used)
{
	u32 runs = SROCE_INBOX_MAX +
		   sroce_ring_entries(ring) / SROCE_FLUSH_BUDGET + 1;
	u32 begin = READ_ONCE(ring->index);

	do {
		sroce_half_run_here(half, NULL);
		cond_resched();
	} while (used && --runs && !sroce_half_flushed(half, ring, begin));
}

void sroce_qp_flush(struct sroce_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (sroce_qp_modify(qp, &attr, IB_QP_STATE, NULL))
		return;
	sroce_qp_wait_lent(qp, READ_ONCE(qp->attr.dest_qp_num));
	/* The last ACK of what was received is part of it */
	sroce_ack_settle(qp);
	sroce_half_flush(&qp->req.half, &qp->req.ring, qp->kind->posts);
	if (!qp->srq)
		sroce_half_flush(&qp->resp.half, &qp->resp.ring,
				 qp->kind->receives);
}

static void sroce_port_for_users(struct sroce_port *port,
				 void (*end)(struct sroce_qp *qp))
{
	unsigned long next = 0;
	struct sroce_qp *qp;

	while ((qp = sroce_qp_find_next(&next))) {
		if (qp->user && qp->port == port)
			end(qp);
		sroce_qp_put(qp);
		cond_resched();
	}
}

/*
 * One of the locks keeps sroce_qp_modify() away, which holds both from its look at the
 * state until it has changed that.
 */
static void sroce_qp_abandon(struct sroce_qp *qp)
{
	spin_lock_bh(&qp->resp.half.lock);
	sroce_qp_error(qp);
	spin_unlock(&qp->resp.half.lock);
	sroce_run_soon();
	local_bh_enable();
}

void sroce_port_abandon(struct sroce_port *port)
{
	/*
	 * First all go to ERR: each flushes what it can while another one is waited for
	 */
	sroce_port_for_users(port, sroce_qp_abandon);
	sroce_port_for_users(port, sroce_qp_flush);
}

void sroce_qp_destroy(struct sroce_qp *qp)
{
	struct sroce_path *path;

	sroce_qp_unpublish(qp);
	sroce_group_detach_all(qp);
	sroce_ack_settle(qp);
	spin_lock_bh(&qp->req.half.lock);
	spin_lock(&qp->resp.half.lock);
	WRITE_ONCE(qp->dead, true);
	path = qp->path;
	qp->path = NULL;
	sroce_fault_reset(&qp->req.half);
	sroce_fault_reset(&qp->resp.half);
	sroce_patience_reset(&qp->resp);
	sroce_hold_reset(qp);
	sroce_early_reset(qp);
	spin_unlock(&qp->resp.half.lock);
	spin_unlock_bh(&qp->req.half.lock);

	/* Nobody starts a timer of a dead QP, nor do they start themselves */
	sroce_timer_delete_sync(&qp->req.timer);
	sroce_timer_delete_sync(&qp->req.batch.timer);
	sroce_timer_delete_sync(&qp->req.early.timer);
	sroce_timer_delete_sync(&qp->resp.ack.delay.timer);
	sroce_timer_delete_sync(&qp->resp.patience.timer);
	sroce_timer_delete_sync(&qp->congestion.timer);
	sroce_timer_delete_sync(&qp->resp.hold.timer);
	sroce_half_purge(&qp->req.half);
	sroce_half_purge(&qp->resp.half);
	sroce_qp_wait_lent(qp, READ_ONCE(qp->attr.dest_qp_num));
	sroce_txq_free(qp->txq);
	sroce_qp_forget_completions(qp);
	sroce_responder_forget_tags(qp);
	sroce_mw_disown(&qp->windows);
	sroce_path_put(path);
	sroce_qp_free_queues(qp);
	sroce_qp_put(qp);
}

/* --- errors and events ------------------------------------------------------------------ */

static bool sroce_qp_may_raise(struct sroce_qp *qp)
{
	if (qp->type == IB_QPT_XRC_TGT)
		return sroce_events_may_raise_target(&qp->events, qp->ibqp);
	return sroce_events_may_raise_async(&qp->events, qp->ibqp->uobject);
}

void sroce_qp_event(struct sroce_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ibqp->device,
		.event = type,
		.element.qp = qp->ibqp,
	};

	if (qp->ibqp->event_handler && sroce_qp_may_raise(qp))
		qp->ibqp->event_handler(&event, qp->ibqp->qp_context);
}

static bool sroce_qp_move(struct sroce_qp *qp, enum ib_qp_state to)
{
	enum ib_qp_state from;
	bool moved;

	spin_lock(&qp->state_lock);
	from = qp->state;
	moved = from != to && from != IB_QPS_RESET && from != IB_QPS_ERR;
	if (moved)
		WRITE_ONCE(qp->state, to);
	spin_unlock(&qp->state_lock);
	if (moved)
		trace_sroce_qp_state(qp, from, to);
	return moved;
}

void sroce_qp_error(struct sroce_qp *qp)
{
	if (!sroce_qp_move(qp, IB_QPS_ERR))
		return;
	sroce_half_queue(&qp->req.half);
	sroce_half_queue(&qp->resp.half);
}

void sroce_qp_fatal(struct sroce_qp *qp)
{
	if (!sroce_qp_move(qp, IB_QPS_ERR))
		return;
	sroce_qp_event(qp, IB_EVENT_QP_FATAL);
	sroce_half_queue(&qp->req.half);
	sroce_half_queue(&qp->resp.half);
}

void sroce_qp_send_error(struct sroce_qp *qp)
{
	if (sroce_qp_move(qp, IB_QPS_SQE))
		sroce_half_queue(&qp->req.half);
}
