// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packet pacing: a QP that was given a rate (IB_QP_RATE_LIMIT) sends a train, and the
 * next one when the rate has time for it. requester.c asks before each; the QP's timer
 * (retransmit.c) has the requester run again.
 *
 * Trains are as long as the rate makes them in half a millisecond, so that what
 * comes to a queue of the network at a time is little, and a train of one packet has
 * its time to itself. A timer may be late, and a QP that sleeps has none: what was
 * missed is made up for, but no more than a millisecond's.
 */
#include <linux/math64.h>

#include "transport/pace.h"

#define SROCE_PACE_TRAIN_US 500
#define SROCE_PACE_CREDIT_NS NSEC_PER_MSEC
/* Many datagrams take less time than a timer: they go together, after as long a rest */
#define SROCE_PACE_REST_NS (NSEC_PER_MSEC / 4)
/* Of each packet, in front of its BTH: IPv4 and UDP */
#define SROCE_PACE_HDRS 28

void sroce_pace_set(struct sroce_pacer *p, u64 rate)
{
	p->rate = rate;
	p->next = 0;
}

bool sroce_pace_due(struct sroce_pacer *p, u64 now)
{
	if (p->next <= now) {
		p->wake = 0;
		return true;
	}
	p->wake = max(p->next, now + SROCE_PACE_REST_NS);
	return false;
}

u32 sroce_pace_packets(const struct sroce_pacer *p, u32 mtu)
{
	u64 bytes = div_u64(p->rate * SROCE_PACE_TRAIN_US, USEC_PER_SEC);

	return clamp_t(u64, div_u64(bytes, mtu), 1, U32_MAX);
}

static u64 sroce_pace_bytes(const struct sroce_train *t)
{
	u32 hdrs = SROCE_PACE_HDRS + SROCE_BTH_LEN + SROCE_ICRC_LEN;
	/* What the first packet has more: a RETH or DETH */
	u32 extended = sroce_train_hdr_len(t, 0) - SROCE_BTH_LEN;

	return t->bi.bi_size + extended + (u64)t->npkts * hdrs;
}

void sroce_pace_sent(struct sroce_pacer *p, const struct sroce_train *t,
		     u64 now)
{
	u64 earliest = now - min(now, SROCE_PACE_CREDIT_NS);
	u64 bytes = sroce_pace_bytes(t);

	p->next = max(p->next, earliest) +
		  div64_u64(bytes * NSEC_PER_SEC, p->rate);
}
