// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packet pacing: a QP that was given a rate, by its owner (IB_QP_RATE_LIMIT) or by
 * congestion (congestion.c), sends a train, and the next one when the rate has time for
 * it. requester.c asks before each; the QP's timer (retransmit.c) has the requester run
 * again.
 *
 * Trains are as long as the rate makes them in a fraction of a millisecond, so that what
 * comes to a queue of the network at a time is little, and a train of one packet has
 * its time to itself. A timer may be late, and a QP that sleeps has none: what was
 * missed is made up for, but no more than two such trains.
 */
#include <linux/math64.h>

#include "transport/pace.h"

void sroce_pace_set(struct sroce_pacer *p, u64 rate)
{
	p->rate = rate;
	p->train_us = SROCE_PACE_TRAIN_US;
	p->next = 0;
}

bool sroce_pace_due(struct sroce_pacer *p, u64 now)
{
	if (p->next <= now) {
		p->wake = 0;
		return true;
	}
	/* A timer costs more than a datagram takes: after half a train several go at once */
	p->wake = max(p->next, now + p->train_us * NSEC_PER_USEC / 2);
	return false;
}

u32 sroce_pace_packets(const struct sroce_pacer *p, u32 mtu)
{
	u64 bytes = div_u64(p->rate * p->train_us, USEC_PER_SEC);

	return clamp_t(u64, div_u64(bytes, mtu), 1, U32_MAX);
}

u64 sroce_pace_bytes(const struct sroce_train *t)
{
	u32 hdrs = SROCE_PACE_HDRS + SROCE_BTH_LEN + SROCE_ICRC_LEN;
	/* Headers that only the first packet has, as a RETH */
	u32 extended = sroce_train_hdr_len(t, 0) - SROCE_BTH_LEN;

	return t->bi.bi_size + extended + (u64)t->npkts * hdrs;
}

void sroce_pace_sent(struct sroce_pacer *p, const struct sroce_train *t,
		     u64 now)
{
	u64 credit = 2 * p->train_us * NSEC_PER_USEC;
	u64 earliest = now - min(now, credit);
	u64 takes = div64_u64(sroce_pace_bytes(t) * NSEC_PER_SEC, p->rate);

	p->next = max(p->next, earliest) + takes;
	/* However much has left without asking, as repetitions do: a train is the longest wait */
	p->next = min(p->next, now + max(takes, credit));
}
