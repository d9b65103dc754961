/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What round trips tell of queues on the way.
 */
#ifndef SROCE_TRANSPORT_QUEUEING_H
#define SROCE_TRANSPORT_QUEUEING_H

#include "transport/qp.h"

/* Queues longer than this are somebody else's, or too long to be filled; so are paths */
#define SROCE_QUEUEING_LONG_NS (2 * NSEC_PER_MSEC)

/* A round trip of @ns has ended. Context: requester lock held, as for all of these. */
void sroce_queueing_add(struct sroce_queueing *queueing, u64 ns);

/* Packets were lost: if it was because a queue is full, a round trip is as long as the last ones */
void sroce_queueing_overflows(struct sroce_queueing *queueing);

/* Is the path longer than the queues that are to be filled? */
static inline bool sroce_queueing_path_is_long(const struct sroce_requester *req)
{
	return req->rtt.min > SROCE_QUEUEING_LONG_NS;
}

/**
 * sroce_queueing_path_is_free() - do hardly any packets queue?
 * @qp: queue pair
 * @parts: sixteenths by which a round trip may be longer than the shortest one
 *
 * Or by four times that, if it is few bytes that were in queues then (as TCP Vegas counts
 * them, Brakmo and Peterson 1995): a quarter of a long path is more than many queues have
 * room for.
 *
 * Return: true if the last round trips say so.
 */
bool sroce_queueing_path_is_free(const struct sroce_qp *qp, u32 parts);

/* Is there a queue that overflows, and is it known how long a round trip is then? */
bool sroce_queueing_is_known(const struct sroce_requester *req);

/* Was that queue nearly full? */
bool sroce_queueing_is_full(const struct sroce_requester *req);

/* Was it more than half full, as far as one can see who may have never seen it empty? */
bool sroce_queueing_is_filling(const struct sroce_requester *req);

#endif
