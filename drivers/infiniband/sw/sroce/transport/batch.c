// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbells of processes, and when not to hurry.
 *
 * A message that somebody waits for is sent at once. A process that posts one
 * small message after the other without looking at its completion queues is
 * not waiting: its doorbell only starts a timer of some microseconds, and until
 * that fires it need not ring again (SROCE_SQ_ACTIVE). What gathers meanwhile
 * leaves as one train; a process that starts to wait rings to say so
 * (SROCE_SQ_GATHERING). Ping-pong never gets there, because each round consumes
 * a completion.
 */
#include "compat.h"
#include "transport/internal.h"

/* Posts between two looks at the completion queues that make a stream */
#define SROCE_STREAM_POSTS 8

/* Larger messages are trains by themselves */
#define SROCE_BATCH_LEN 1024

/* The longest that a stream is held back, should its process not ring first */
#define SROCE_BATCH_NS (50 * NSEC_PER_USEC)

/* Fewer than this were not worth the wait */
#define SROCE_BATCH_MIN 4

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

static void sroce_batch_begin(struct sroce_requester *req)
{
	WRITE_ONCE(req->ring.hdr->flags, SROCE_SQ_ACTIVE | SROCE_SQ_GATHERING);
	req->batch.waiting = true;
	if (!hrtimer_active(&req->batch.timer))
		hrtimer_start(&req->batch.timer, SROCE_BATCH_NS,
			      HRTIMER_MODE_REL_SOFT);
}

/* The process rang: it has nothing more to post. The timer finds nothing */
static void sroce_batch_end(struct sroce_requester *req)
{
	u32 ahead = req->fetched - req->ring.index;

	req->batch.waiting = false;
	if (sroce_ring_pending(&req->ring) - ahead < SROCE_BATCH_MIN)
		req->batch.average /= 2;
}

/* True when the doorbell has been answered by waiting for more */
static bool sroce_batch(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	bool batch = false;

	spin_lock_bh(&req->half.lock);
	if (req->batch.waiting)
		sroce_batch_end(req);
	else
		batch = sroce_may_batch(qp);
	if (batch)
		sroce_batch_begin(req);
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
