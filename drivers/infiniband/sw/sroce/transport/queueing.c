// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What round trips tell of queues on the way.
 *
 * One that is longer than the shortest of a path has waited in a queue. But who comes to a queue
 * that others fill never sees a round trip without one, and takes it for a path that is free.
 * What all of them see alike is how long a round trip is when the queue overflows (@full).
 * Where that is known, and much longer than the shortest one, it tells how far the queue is
 * from its end.
 *
 * A path that is long has round trips that are longer for many reasons, and a queue that
 * stays there is seen in all of the last ones (as CoDel sees it, Nichols and Jacobson 2012).
 *
 * window.c makes of it how much may be in flight.
 */
#include "transport/queueing.h"

/* Round trips that are longer by less than this, and by an eighth, are no queue's for sure */
#define SROCE_QUEUEING_NOISE_NS (50 * NSEC_PER_USEC)
/* How long one is when a queue is full is forgotten by this part with each that comes */
#define SROCE_QUEUEING_FORGET 1024
/* So much in queues is little */
#define SROCE_QUEUEING_LITTLE_BYTES (32 * 1024)

void sroce_queueing_add(struct sroce_queueing *queueing, u64 ns)
{
	queueing->turn = (queueing->turn + 1) % SROCE_QUEUEING_LAST;
	queueing->last[queueing->turn] = ns;
	queueing->full -= queueing->full / SROCE_QUEUEING_FORGET;
}

/* The shortest of the last round trips; 0: none is known */
static u64 sroce_queueing_least_last(const struct sroce_queueing *queueing)
{
	u64 ns = queueing->last[queueing->turn];
	int i;

	for (i = 0; i < SROCE_QUEUEING_LAST; i++)
		if (queueing->last[i])
			ns = min(ns, queueing->last[i]);
	return ns;
}

/* One round trip that was held up is no queue: it is seen in all of the last ones */
void sroce_queueing_overflows(struct sroce_queueing *queueing)
{
	queueing->full = max(queueing->full - queueing->full / 16,
			     sroce_queueing_least_last(queueing));
}

/* The round trip that tells whether packets queue; 0: none is known */
static u64 sroce_queueing_last(const struct sroce_requester *req)
{
	const struct sroce_queueing *queueing = &req->queueing;

	if (sroce_queueing_path_is_long(req))
		return sroce_queueing_least_last(queueing);
	return queueing->last[queueing->turn];
}

bool sroce_queueing_path_is_free(const struct sroce_qp *qp, u32 parts)
{
	const struct sroce_requester *req = &qp->req;
	u64 last = sroce_queueing_last(req), min = req->rtt.min;

	if (!last || last >= min + min / 4 * parts)
		return false;
	return last < min + min / 16 * parts ||
	       (last - min) * req->window * qp->mtu < SROCE_QUEUEING_LITTLE_BYTES * last;
}

/* The longest round trip of which it is not said that it has waited */
static u64 sroce_queueing_none(const struct sroce_requester *req)
{
	return req->rtt.min + req->rtt.min / 8;
}

bool sroce_queueing_is_known(const struct sroce_requester *req)
{
	return !sroce_queueing_path_is_long(req) &&
	       req->queueing.full > sroce_queueing_none(req) + SROCE_QUEUEING_NOISE_NS;
}

/* Where the queue is shorter than the path, three quarters may be the path alone */
bool sroce_queueing_is_full(const struct sroce_requester *req)
{
	u64 last = sroce_queueing_last(req);

	return sroce_queueing_is_known(req) && last > sroce_queueing_none(req) &&
	       last >= req->queueing.full / 4 * 3;
}

bool sroce_queueing_is_filling(const struct sroce_requester *req)
{
	return sroce_queueing_is_known(req) &&
	       sroce_queueing_last(req) >= (req->rtt.min + req->queueing.full) / 2;
}
