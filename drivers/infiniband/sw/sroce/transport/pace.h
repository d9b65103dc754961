/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A rate that is kept to.
 */
#ifndef SROCE_TRANSPORT_PACE_H
#define SROCE_TRANSPORT_PACE_H

#include <linux/ktime.h>

#include "transport/qp.h"

/* Of each packet, in front of its BTH: IPv4 and UDP */
#define SROCE_PACE_HDRS 28
/* Trains of a rate limit */
#define SROCE_PACE_TRAIN_US 500

/**
 * sroce_pace_set() - have a rate, or none
 * @p: pacer
 * @rate: bytes per second, from the IP header on; 0: no limit
 *
 * Context: the lock of @p's owner held, as for all of these.
 */
void sroce_pace_set(struct sroce_pacer *p, u64 rate);

/**
 * sroce_pace_due() - is it time for the next train?
 * @p: pacer with a rate
 * @now: in ns
 *
 * Return: false when it is not; @p->wake is when it will be.
 */
bool sroce_pace_due(struct sroce_pacer *p, u64 now);

/* Packets of @mtu bytes that the next train may have, at least 1; with a rate */
u32 sroce_pace_packets(const struct sroce_pacer *p, u32 mtu);

/* What a train counts as: bytes from the IP header on, of all its packets */
u64 sroce_pace_bytes(const struct sroce_train *t);

/* A train is about to leave; with a rate */
void sroce_pace_sent(struct sroce_pacer *p, const struct sroce_train *t,
		     u64 now);

/* A train of a requester is about to leave */
static inline void sroce_requester_pace(struct sroce_requester *req,
					const struct sroce_train *t)
{
	if (unlikely(req->pace.rate))
		sroce_pace_sent(&req->pace, t, ktime_get_ns());
}

#endif
