// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Frames that wait for a worker: two queues, each with an end of its own, so that whoever
 * looks on at what a host sends costs nobody a frame from the wire.
 *
 * A frame is work for as many copies as are to be made of it: some tens of thousands, of a
 * coupled one for all flows. So it is those that have an end, too.
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

/* --- both -------------------------------------------------------------------- */

void sroce_raw_later_init(struct sroce_raw_later *later)
{
	sroce_raw_queue_init(&later->received);
	sroce_raw_queue_init(&later->sent);
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
	return cb->way == SROCE_RAW_IN ?
		       sroce_raw_queue_put(&later->received, skb,
					   &later->waiting) :
		       sroce_raw_queue_put(&later->sent, skb, NULL);
}

struct sk_buff *sroce_raw_later_next(struct sroce_raw_later *later,
				     struct sroce_raw_cb *cb)
{
	struct sk_buff *skb = sroce_raw_queue_next(&later->received);

	if (!skb)
		skb = sroce_raw_queue_next(&later->sent);
	if (!skb)
		return NULL;
	*cb = *sroce_raw_cb(skb);
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

void sroce_raw_later_purge(struct sroce_raw_later *later)
{
	struct sroce_raw_cb cb;
	struct sk_buff *skb;

	while ((skb = sroce_raw_later_next(later, &cb))) {
		sroce_raw_later_done(later, &cb);
		kfree_skb(skb);
	}
}
