/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The rate that a requester keeps to.
 */
#ifndef SROCE_TRANSPORT_PACE_H
#define SROCE_TRANSPORT_PACE_H

#include <linux/ktime.h>

#include "transport/qp.h"

/**
 * sroce_pace_set() - have a rate, or none
 * @p: pacer
 * @rate: bytes per second, from the IP header on; 0: no limit
 *
 * Context: requester lock held.
 */
void sroce_pace_set(struct sroce_pacer *p, u64 rate);

/**
 * sroce_pace_due() - is it time for the next train?
 * @p: pacer with a rate
 * @now: in ns
 *
 * Context: requester lock held.
 * Return: false when it is not; @p->wake is when it will be.
 */
bool sroce_pace_due(struct sroce_pacer *p, u64 now);

/* Packets of @mtu bytes that the next train may have, at least 1; with a rate */
u32 sroce_pace_packets(const struct sroce_pacer *p, u32 mtu);

/* A train of a requester with a rate is about to leave. Context: requester lock held. */
void sroce_pace_sent(struct sroce_pacer *p, const struct sroce_train *t,
		     u64 now);

/* A train is about to leave. Context: requester lock held. */
static inline void sroce_requester_pace(struct sroce_requester *req,
					const struct sroce_train *t)
{
	if (unlikely(req->pace.rate))
		sroce_pace_sent(&req->pace, t, ktime_get_ns());
}

#endif
