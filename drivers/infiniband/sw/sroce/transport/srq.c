// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: responder_recv.c empties them, and xrc.c finds those of XRC by
 * number.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "compat.h"
#include "lock.h"
#include "transport/srq.h"
#include "wire/train.h"

static DEFINE_XARRAY(sroce_srqs);

static atomic64_t sroce_srq_ids;

/*
 * Numbers must not be guessed, as those of QPs. 0 is given to none: it is what a work
 * request has whose number nobody has set.
 */
static int sroce_srq_add_number(struct sroce_srq *srq)
{
	int tries = 64;
	u32 srqn;
	int err;

	do {
		srqn = get_random_u32() & SROCE_QPN_MASK;
		if (!srqn)
			continue;
		srq->srqn = srqn;
		err = xa_insert(&sroce_srqs, srqn, srq->entry,
				GFP_KERNEL_ACCOUNT);
		if (err != -EBUSY)
			return err;
	} while (--tries);
	return -ENOSPC;
}

int sroce_srq_publish(struct sroce_srq *srq)
{
	struct sroce_srq_entry *entry = kmalloc_obj(*entry, GFP_KERNEL_ACCOUNT);
	int err;

	if (!entry)
		return -ENOMEM;
	entry->srq = srq;
	entry->xrcd = srq->xrcd;
	entry->id = atomic64_inc_return(&sroce_srq_ids);
	refcount_set(&entry->users, 1);
	init_completion(&srq->idle);
	srq->entry = entry;
	err = sroce_srq_add_number(srq);
	if (err)
		kfree(entry);
	return err;
}

void sroce_srq_unpublish(struct sroce_srq *srq)
{
	xa_erase(&sroce_srqs, srq->srqn);
	sroce_srq_put(srq);
	wait_for_completion(&srq->idle);
	kfree_rcu(srq->entry, rcu);
}

struct sroce_srq *sroce_srq_get(u32 srqn, const struct ib_xrcd *xrcd)
{
	struct sroce_srq *srq = NULL;
	struct sroce_srq_entry *entry;

	rcu_read_lock();
	entry = xa_load(&sroce_srqs, srqn);
	if (entry && entry->xrcd == xrcd &&
	    refcount_inc_not_zero(&entry->users))
		srq = entry->srq;
	rcu_read_unlock();
	return srq;
}

void sroce_srq_put(struct sroce_srq *srq)
{
	if (refcount_dec_and_test(&srq->entry->users))
		complete(&srq->idle);
}

void sroce_srq_limit_event(struct sroce_srq *srq)
{
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = &srq->ibsrq,
	};

	if (srq->ibsrq.event_handler &&
	    sroce_events_may_raise_async(&srq->events, srq->ibsrq.uobject))
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

/* True when the limit event is to be raised. Context: the queue's lock held. */
static bool sroce_srq_taken(struct sroce_srq *srq)
{
	if (sroce_ring_pending(&srq->ring) >= srq->limit)
		return false;
	srq->limit = 0;
	return true;
}

int sroce_srq_take(struct sroce_srq *srq, struct sroce_recv_wqe *wqe, u32 len)
{
	bool limit = false;
	unsigned long irq;
	int err;

	irq = sroce_lock(&srq->lock, srq->user);
	err = sroce_recv_ring_take(&srq->ring, wqe, srq->max_sge, len);
	if (!err)
		limit = sroce_srq_taken(srq);
	sroce_unlock(&srq->lock, srq->user, irq);
	if (limit)
		sroce_srq_limit_event(srq);
	return err;
}

int sroce_srq_look(struct sroce_srq *srq, struct sroce_recv_wqe *wqe, u32 len,
		   u32 *index)
{
	unsigned long irq;
	int err;

	irq = sroce_lock(&srq->lock, srq->user);
	*index = srq->ring.index;
	err = sroce_recv_ring_look(&srq->ring, wqe, srq->max_sge, len);
	sroce_unlock(&srq->lock, srq->user, irq);
	return err;
}

bool sroce_srq_claim(struct sroce_srq *srq, u32 index, bool *limit)
{
	unsigned long irq;
	bool ours;

	irq = sroce_lock(&srq->lock, srq->user);
	ours = srq->ring.index == index && sroce_ring_pending(&srq->ring);
	if (ours) {
		sroce_ring_consumed(&srq->ring, 1);
		*limit = sroce_srq_taken(srq);
	}
	sroce_unlock(&srq->lock, srq->user, irq);
	return ours;
}
