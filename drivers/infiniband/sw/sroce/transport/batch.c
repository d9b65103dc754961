// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbells of processes that are not in a hurry. post.c asks here before it answers
 * one.
 *
 * A message that somebody waits for is sent at once. A process that posts one
 * message after the other without looking at its completion queues is not
 * waiting: its doorbell only starts a timer of some microseconds, and until
 * that fires it need not ring again (SROCE_SQ_ACTIVE). Small messages that gather
 * meanwhile leave as one train, and of large ones several share a system call;
 * but not so many that their data leaves the cache before it is sent. A process
 * that has posted so much, or starts to wait, rings to say so
 * (SROCE_SQ_GATHERING). Ping-pong never gets there, because each round consumes
 * a completion.
 */
#include <linux/ktime.h>

#include "compat.h"
#include "transport/batch.h"
#include "transport/internal.h"
#include "transport/run.h"

/* Posts between two looks at the completion queues that make a stream */
#define SROCE_STREAM_POSTS 8

/* ... or so many bytes in two posts or more */
#define SROCE_STREAM_BYTES (256 * 1024)

/* For larger messages the doorbell is a small part of the cost */
#define SROCE_BATCH_LEN (64 * 1024)

/* Bytes that may gather */
#define SROCE_BATCH_BYTES (512 * 1024)

/* The longest that a stream is held back, should its process not ring first */
#define SROCE_BATCH_NS (50 * NSEC_PER_USEC)

/* Work requests that must have gathered for the wait to have been worth it */
#define SROCE_BATCH_MIN 4

/*
 * How many completions the process had consumed when its newest ones came. It may lie:
 * only its own speed depends on that. (The rings themselves are not read here: a resize
 * takes them away, under the locks of their queues.)
 */
static u32 sroce_batch_consumed(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->scq->seen) + READ_ONCE(qp->rcq->seen);
}

/*
 * Does the process post without looking at its completion queues? The posts since its
 * last look count, or, if they are more, the average between two looks.
 */
static bool sroce_batch_is_stream(struct sroce_qp *qp)
{
	struct sroce_batch *b = &qp->req.batch;
	u32 prod = READ_ONCE(qp->req.ring.hdr->prod);
	u32 consumed = sroce_batch_consumed(qp);
	u32 posts = min(prod - b->mark, sroce_ring_entries(&qp->req.ring));

	if (consumed != b->consumed) {
		b->average = (3 * b->average + posts) / 4;
		b->consumed = consumed;
		b->mark = prod;
		posts = 0;
	}
	posts = max(posts, b->average);
	return posts >= SROCE_STREAM_POSTS ||
	       (posts > 1 && (u64)posts * b->last_len >= SROCE_STREAM_BYTES);
}

/* A work queue is rung for, too, so that it flushes: there is nothing that could gather */
static bool sroce_batch_may_begin(struct sroce_qp *qp)
{
	return qp->kind->posts && !qp->dead &&
	       sroce_qp_state(qp) == IB_QPS_RTS &&
	       qp->req.batch.last_len <= SROCE_BATCH_LEN &&
	       sroce_batch_is_stream(qp);
}

/*
 * The ring index at which the process is to ring, SROCE_BATCH_BYTES from here if the next
 * messages are as long as the last one.
 */
static u32 sroce_batch_until(const struct sroce_requester *req)
{
	u32 n = SROCE_BATCH_BYTES / max(req->batch.last_len, 1U);

	return READ_ONCE(req->ring.hdr->prod) +
	       min(n, sroce_ring_entries(&req->ring)) - 1;
}

static void sroce_batch_begin_locked(struct sroce_requester *req)
{
	WRITE_ONCE(req->ring.hdr->until, sroce_batch_until(req));
	WRITE_ONCE(req->ring.hdr->flags, SROCE_SQ_ACTIVE | SROCE_SQ_GATHERING);
	req->batch.waiting = true;
	sroce_timer_start(&req->batch.timer, ktime_get_ns() + SROCE_BATCH_NS);
}

/* The process rang: it has nothing more to post, or has posted enough */
static void sroce_batch_end_locked(struct sroce_requester *req)
{
	u32 ahead = req->fetched - req->ring.index;

	req->batch.waiting = false;
	/* Where the timer has just fired, sroce_batch_timer() finds @waiting false */
	sroce_timer_delete(&req->batch.timer);
	if (sroce_ring_pending(&req->ring) - ahead < SROCE_BATCH_MIN)
		req->batch.average /= 2;
}

/* The caller holds the QP, which may be destroyed all the same: @dead is asked first */
bool sroce_batch_end(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	bool waiting;

	spin_lock_bh(&req->half.lock);
	waiting = !qp->dead && req->batch.waiting;
	if (waiting)
		sroce_batch_end_locked(req);
	spin_unlock_bh(&req->half.lock);
	return waiting;
}

bool sroce_batch_begin(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	bool batch;

	spin_lock_bh(&req->half.lock);
	batch = !req->batch.waiting && sroce_batch_may_begin(qp);
	if (batch)
		sroce_batch_begin_locked(req);
	spin_unlock_bh(&req->half.lock);
	return batch;
}

static void sroce_batch_timer(struct sroce_timer *timer)
{
	struct sroce_requester *req =
		container_of(timer, struct sroce_requester, batch.timer);

	spin_lock(&req->half.lock);
	if (req->batch.waiting)
		sroce_half_queue(&req->half);
	req->batch.waiting = false;
	spin_unlock(&req->half.lock);
}

/* Indices begin at 0 again, so posts would count from a mark that is far ahead of them */
void sroce_batch_reset(struct sroce_requester *req)
{
	req->batch.mark = 0;
	req->batch.average = 0;
	req->batch.last_len = 0;
}

void sroce_batch_init(struct sroce_requester *req)
{
	sroce_timer_init(&req->batch.timer, sroce_batch_timer);
}
