// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Frames that wait for a worker: three queues, each with an end of its own, so that whoever
 * looks on at what a host sends costs nobody a frame from the wire or from another queue
 * pair.
 *
 * A frame is work for as many copies as are to be made of it: some tens of thousands, of a
 * coupled one for all flows. So it is those that have an end, too, and by which the queues
 * share the worker.
 */
#include <linux/sizes.h>
#include <net/dst.h>

#include "raw/later.h"

/* A frame leaves room for so many more of its kind, but no more than a part of all */
#define SROCE_RAW_LATER_SPARE 16
#define SROCE_RAW_LATER_SPARE_PART 4

static struct sroce_raw_cb *sroce_raw_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct sroce_raw_cb) > sizeof(skb->cb));
	return (struct sroce_raw_cb *)skb->cb;
}

/* --- one queue --------------------------------------------------------------- */

static void sroce_raw_queue_init(struct sroce_raw_queue *q)
{
	skb_queue_head_init(&q->list);
	q->bytes = 0;
	q->copies = 0;
}

static bool sroce_raw_queue_full(const struct sroce_raw_queue *q,
				 const struct sk_buff *skb, u32 copies)
{
	u32 spare = min_t(u32, copies * SROCE_RAW_LATER_SPARE,
			  SROCE_RAW_LATER_COPIES / SROCE_RAW_LATER_SPARE_PART);

	return skb_queue_len(&q->list) >= SROCE_RAW_LATER_FRAMES ||
	       q->bytes + skb->truesize > SROCE_RAW_LATER_BYTES ||
	       q->copies + copies + spare > SROCE_RAW_LATER_COPIES;
}

static bool sroce_raw_queue_put(struct sroce_raw_queue *q, struct sk_buff *skb,
				atomic_t *waiting)
{
	u32 copies = sroce_raw_cb(skb)->copies;
	bool full;

	spin_lock_bh(&q->list.lock);
	full = sroce_raw_queue_full(q, skb, copies);
	if (!full) {
		__skb_queue_tail(&q->list, skb);
		q->bytes += skb->truesize;
		q->copies += copies;
		if (waiting)
			atomic_inc(waiting);
	}
	spin_unlock_bh(&q->list.lock);
	return !full;
}

static struct sk_buff *sroce_raw_queue_next(struct sroce_raw_queue *q)
{
	struct sk_buff *skb;

	spin_lock_bh(&q->list.lock);
	skb = __skb_dequeue(&q->list);
	if (skb) {
		q->bytes -= skb->truesize;
		q->copies -= sroce_raw_cb(skb)->copies;
	}
	spin_unlock_bh(&q->list.lock);
	return skb;
}

/* --- all -------------------------------------------------------------------- */

void sroce_raw_later_init(struct sroce_raw_later *later)
{
	sroce_raw_queue_init(&later->received);
	sroce_raw_queue_init(&later->looped);
	sroce_raw_queue_init(&later->sent);
	later->ahead = 0;
	atomic_set(&later->waiting, 0);
}

bool sroce_raw_later_put(struct sroce_raw_later *later, struct sk_buff *skb,
			 const struct sroce_raw_cb *cb)
{
	skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	skb_ext_reset(skb);
	*sroce_raw_cb(skb) = *cb;
	switch (cb->way) {
	case SROCE_RAW_IN:
		return sroce_raw_queue_put(&later->received, skb,
					   &later->waiting);
	case SROCE_RAW_LOOP:
		return sroce_raw_queue_put(&later->looped, skb, NULL);
	default:
		return sroce_raw_queue_put(&later->sent, skb, NULL);
	}
}

/* Which one has had less; one that is empty has nothing coming to it */
static struct sroce_raw_queue *
sroce_raw_later_choose(struct sroce_raw_later *later)
{
	bool received = !skb_queue_empty_lockless(&later->received.list);
	bool looped = !skb_queue_empty_lockless(&later->looped.list);

	if (!received)
		later->ahead = max(later->ahead, 0);
	if (!looped)
		later->ahead = min(later->ahead, 0);
	if (received && (!looped || later->ahead <= 0))
		return &later->received;
	return looped ? &later->looped : &later->sent;
}

struct sk_buff *sroce_raw_later_next(struct sroce_raw_later *later,
				     struct sroce_raw_cb *cb)
{
	struct sk_buff *skb = sroce_raw_queue_next(sroce_raw_later_choose(later));

	if (!skb)
		return NULL;
	*cb = *sroce_raw_cb(skb);
	if (cb->way == SROCE_RAW_IN)
		later->ahead += cb->copies;
	else if (cb->way == SROCE_RAW_LOOP)
		later->ahead -= cb->copies;
	memset(skb->cb, 0, sizeof(skb->cb));
	return skb;
}

void sroce_raw_later_done(struct sroce_raw_later *later,
			  const struct sroce_raw_cb *cb)
{
	if (cb->way != SROCE_RAW_IN)
		return;
	/* Pairs with sroce_raw_later_waits(): who need not wait comes behind this frame */
	smp_mb__before_atomic();
	atomic_dec(&later->waiting);
}

bool sroce_raw_later_waits(const struct sroce_raw_later *later)
{
	return atomic_read_acquire(&later->waiting);
}

/* The worker may be at it as well: what is its own is left alone */
static void sroce_raw_queue_purge(struct sroce_raw_later *later,
				  struct sroce_raw_queue *q)
{
	struct sk_buff *skb;

	while ((skb = sroce_raw_queue_next(q))) {
		sroce_raw_later_done(later, sroce_raw_cb(skb));
		kfree_skb(skb);
	}
}

void sroce_raw_later_purge(struct sroce_raw_later *later)
{
	sroce_raw_queue_purge(later, &later->received);
	sroce_raw_queue_purge(later, &later->looped);
	sroce_raw_queue_purge(later, &later->sent);
}
