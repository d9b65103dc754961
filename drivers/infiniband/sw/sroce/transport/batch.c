// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbells of processes, and when not to hurry.
 *
 * A message that somebody waits for is sent at once. A process that posts one
 * small message after the other without looking at its completion queues is
 * not waiting: its doorbell only starts a timer of some microseconds, and until
 * that fires it need not ring again (SROCE_SQ_ACTIVE). What gathers meanwhile
 * leaves as one train. Ping-pong never gets there, because each round consumes
 * a completion.
 */
#include "compat.h"
#include "transport/internal.h"

/* Posts between two looks at the completion queues that make a stream */
#define SROCE_STREAM_POSTS 8

/* Larger messages are trains by themselves */
#define SROCE_BATCH_LEN 1024

#define SROCE_BATCH_NS (8 * NSEC_PER_USEC)

/* What the process has consumed. It may lie; only its own speed depends on it */
static u32 sroce_consumed(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->scq->ring.hdr->cons) +
	       READ_ONCE(qp->rcq->ring.hdr->cons);
}

/* Average number of posts between two looks, and those since the last one */
static bool sroce_is_stream(struct sroce_qp *qp)
{
	struct sroce_batch *b = &qp->req.batch;
	u32 prod = READ_ONCE(qp->req.ring.hdr->prod);
	u32 consumed = sroce_consumed(qp);
	u32 posts = min(prod - b->mark, sroce_ring_entries(&qp->req.ring));

	if (consumed != b->consumed) {
		b->average = (3 * b->average + posts) / 4;
		b->consumed = consumed;
		b->mark = prod;
		posts = 0;
	}
	return max(posts, b->average) >= SROCE_STREAM_POSTS;
}

static bool sroce_may_batch(struct sroce_qp *qp)
{
	return !qp->dead && sroce_qp_state(qp) == IB_QPS_RTS &&
	       qp->req.batch.last_len <= SROCE_BATCH_LEN &&
	       sroce_is_stream(qp);
}

static bool sroce_batch(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	bool batch;

	spin_lock_bh(&req->half.lock);
	batch = sroce_may_batch(qp);
	if (batch) {
		WRITE_ONCE(req->ring.hdr->flags, SROCE_SQ_ACTIVE);
		if (!req->batch.waiting)
			hrtimer_start(&req->batch.timer, SROCE_BATCH_NS,
				      HRTIMER_MODE_REL_SOFT);
		req->batch.waiting = true;
	}
	spin_unlock_bh(&req->half.lock);
	return batch;
}

void sroce_qp_doorbell(struct sroce_qp *qp)
{
	if (sroce_batch(qp))
		return;
	sroce_half_run(&qp->req.half);
	if (sroce_qp_state(qp) == IB_QPS_ERR)
		sroce_half_run(&qp->resp.half);
}

static enum hrtimer_restart sroce_batch_over(struct hrtimer *timer)
{
	struct sroce_requester *req =
		container_of(timer, struct sroce_requester, batch.timer);

	spin_lock_bh(&req->half.lock);
	req->batch.waiting = false;
	spin_unlock_bh(&req->half.lock);
	sroce_half_run(&req->half);
	return HRTIMER_NORESTART;
}

void sroce_batch_init(struct sroce_requester *req)
{
	hrtimer_setup(&req->batch.timer, sroce_batch_over, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
}
