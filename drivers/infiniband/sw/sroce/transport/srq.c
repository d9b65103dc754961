// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: responder_recv.c empties them, and xrc.c finds those of XRC by
 * number.
 */
#include <linux/nospec.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "compat.h"
#include "lock.h"
#include "transport/cq.h"
#include "transport/run.h"
#include "transport/srq.h"
#include "turn.h"
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

/* --- tag matching ------------------------------------------------------------- */

int sroce_srq_match_tags(struct sroce_srq *srq, struct sroce_cq *cq, u32 max)
{
	srq->tags = sroce_tags_create(max);
	srq->cq = cq;
	return srq->tags ? 0 : -ENOMEM;
}

void sroce_srq_end_tags(struct sroce_srq *srq)
{
	sroce_tags_free(srq->tags);
}

/* A process may have written anything; what an operation does not use is zero */
static bool sroce_tag_op_ok(const struct sroce_tag_op *op)
{
	u32 used = op->opcode == SROCE_TAG_ADD ? op->num_sge : 0;

	if (op->flags & ~(SROCE_TAG_SIGNALED | SROCE_TAG_SYNCS) ||
	    op->reserved || used > SROCE_MAX_TAG_SGE ||
	    (!(op->flags & SROCE_TAG_SYNCS) && op->unexpected_cnt))
		return false;
	used = array_index_nospec(used, SROCE_MAX_TAG_SGE + 1);
	if (memchr_inv(&op->sge[used], 0,
		       (SROCE_MAX_TAG_SGE - used) * sizeof(op->sge[0])))
		return false;
	switch (op->opcode) {
	case SROCE_TAG_ADD:
		return !op->handle;
	case SROCE_TAG_DEL:
		return !op->recv_wr_id && !op->tag && !op->mask && !op->num_sge;
	case SROCE_TAG_SYNC:
		return !op->recv_wr_id && !op->tag && !op->mask &&
		       !op->num_sge && !op->handle;
	default:
		return false;
	}
}

/* Return: false when its completion does not fit. Context: the queue's lock held. */
static bool sroce_tag_op_complete(struct sroce_srq *srq,
				  const struct sroce_tag_op *op, bool found)
{
	struct sroce_tags *tags = srq->tags;
	struct sroce_cqe cqe = {
		.wr_id = op->wr_id,
		.opcode = SROCE_WC_TAG_ADD + op->opcode,
	};

	if (!(op->flags & SROCE_TAG_SIGNALED))
		return true;
	if (!found)
		cqe.status = SROCE_WC_STATUS_TAG;
	if (sroce_tags_handled_by(tags, op) != tags->unexpected)
		cqe.flags = SROCE_CQE_TAG_SYNC_REQ;
	return sroce_cq_add_op(srq->cq, &cqe);
}

/* Context: the queue's lock held */
static int sroce_tag_op_do(struct sroce_srq *srq, const struct sroce_tag_op *op,
			   u32 *handle)
{
	struct sroce_tags *tags = srq->tags;
	bool found = op->opcode != SROCE_TAG_DEL ||
		     sroce_tags_has(tags, op->handle);

	if (op->opcode == SROCE_TAG_ADD && sroce_tags_full(tags))
		return -ENOMEM;
	if (!sroce_tag_op_complete(srq, op, found))
		return -ENOMEM;
	if (op->flags & SROCE_TAG_SYNCS)
		sroce_tags_sync(tags, op->unexpected_cnt);
	if (op->opcode == SROCE_TAG_ADD)
		*handle = sroce_tags_add(tags, op);
	else if (op->opcode == SROCE_TAG_DEL && found)
		sroce_tags_del(tags, op->handle);
	return 0;
}

int sroce_srq_tag_op(struct sroce_srq *srq, const struct sroce_tag_op *op, u32 *handle)
{
	unsigned long irq;
	int err;

	if (!sroce_tag_op_ok(op))
		return -EINVAL;
	local_bh_disable();
	irq = sroce_lock(&srq->lock, srq->user);
	err = sroce_tag_op_do(srq, op, handle);
	sroce_unlock(&srq->lock, srq->user, irq);
	/* The completion queue's handler, if it is armed */
	sroce_run_soon();
	local_bh_enable();
	return err;
}

/* The message has its buffer, @i. Context: the queue's lock held. */
static void sroce_srq_take_match(struct sroce_srq *srq, u16 i, u32 qpn,
				 struct sroce_recv_wqe *wqe, struct sroce_tag_msg *m)
{
	const struct sroce_tag from = {
		.va = m->va,
		.rkey = m->rkey,
		.len = m->len,
		.qpn = qpn,
	};
	struct sroce_tags *tags = srq->tags;

	if (!m->rndv || m->len > sroce_tags_room(tags, i)) {
		sroce_tags_take(tags, i, wqe);
		return;
	}
	wqe->wr_id = tags->tags[i].wr_id;
	wqe->num_sge = 0;
	wqe->reserved = 0;
	m->handle = sroce_tags_reserve(tags, i, &from);
}

int sroce_srq_take_tagged(struct sroce_srq *srq, u32 qpn, struct sroce_recv_wqe *wqe,
			  struct sroce_tag_msg *m)
{
	u16 i = SROCE_TAG_NONE;
	bool limit = false;
	unsigned long irq;
	u32 looked = 0;
	int err = 0;

	m->handle = 0;
	m->late = false;
	irq = sroce_lock(&srq->lock, srq->user);
	if (m->tagged)
		i = sroce_tags_match(srq->tags, m->tag, &looked);
	m->matched = i != SROCE_TAG_NONE;
	if (m->matched)
		sroce_srq_take_match(srq, i, qpn, wqe, m);
	else
		err = sroce_recv_ring_take(&srq->ring, wqe, srq->max_sge, 0);
	if (!err && !m->matched) {
		limit = sroce_srq_taken(srq);
		if (m->tagged)
			m->late = sroce_tags_unexpected(srq->tags);
	}
	sroce_unlock(&srq->lock, srq->user, irq);
	sroce_turn_spend(looked * SROCE_TURN_TAG);
	if (limit)
		sroce_srq_limit_event(srq);
	return err;
}

void sroce_srq_untake_tagged(struct sroce_srq *srq, u32 qpn, const struct sroce_tag_msg *m)
{
	struct sroce_tag unread;
	unsigned long irq;

	irq = sroce_lock(&srq->lock, srq->user);
	if (m->matched && m->handle)
		sroce_tags_claim(srq->tags, m->handle, qpn, &unread);
	else if (m->tagged && !m->matched)
		sroce_tags_uncount(srq->tags);
	sroce_unlock(&srq->lock, srq->user, irq);
}

bool sroce_srq_claim_tag(struct sroce_srq *srq, u32 handle, u32 qpn, struct sroce_tag *t)
{
	unsigned long irq;
	bool found;

	irq = sroce_lock(&srq->lock, srq->user);
	found = sroce_tags_claim(srq->tags, handle, qpn, t);
	sroce_unlock(&srq->lock, srq->user, irq);
	return found;
}

void sroce_srq_forget_tags(struct sroce_srq *srq, u32 qpn)
{
	unsigned long irq;

	irq = sroce_lock(&srq->lock, srq->user);
	sroce_tags_forget(srq->tags, qpn);
	sroce_unlock(&srq->lock, srq->user, irq);
}
