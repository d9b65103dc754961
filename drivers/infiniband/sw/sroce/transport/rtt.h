/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How long it takes to the peer and back.
 */
#ifndef SROCE_TRANSPORT_RTT_H
#define SROCE_TRANSPORT_RTT_H

#include <linux/jiffies.h>

#include "transport/qp.h"

/* Is a measurement under way? */
static inline bool sroce_rtt_measures(const struct sroce_rtt *rtt)
{
	return rtt->at;
}

/* Is it time for another measurement, because the last one is a jiffy old? */
static inline bool sroce_rtt_due(const struct sroce_rtt *rtt)
{
	return !rtt->at &&
	       (!rtt->srtt || time_is_before_jiffies(rtt->sampled));
}

/* Another path: nothing is known */
void sroce_rtt_reset(struct sroce_rtt *rtt);

/**
 * sroce_rtt_begin() - measure how long it takes until packets are acknowledged
 * @rtt: estimate; no measurement is under way
 * @psn: PSN after the newest packet, which leaves now, for the first time, and asks
 *	for an ACK
 * @now: in ns
 *
 * Context: requester lock held.
 */
void sroce_rtt_begin(struct sroce_rtt *rtt, u32 psn, u64 now);

/*
 * Packets are sent again: an ACK may be for either, and measures nothing (Karn and
 * Partridge 1987). Context: requester lock held.
 */
static inline void sroce_rtt_cancel(struct sroce_rtt *rtt)
{
	rtt->at = 0;
}

/* Does the measurement under way, if any, end when @una is the oldest PSN in flight? */
static inline bool sroce_rtt_ends(const struct sroce_rtt *rtt, u32 una)
{
	return rtt->at && sroce_psn_diff(una, rtt->psn) >= 0;
}

/**
 * sroce_rtt_end() - the measurement has ended
 * @rtt: estimate
 * @now: in ns
 *
 * Context: requester lock held.
 * Return: the round trip in ns, at least 1.
 */
u64 sroce_rtt_end(struct sroce_rtt *rtt, u64 now);

/*
 * A round trip that took @ns may be the shortest one. Context: requester lock held.
 */
void sroce_rtt_find_min(struct sroce_rtt *rtt, u64 ns);

#endif
