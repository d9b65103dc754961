// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An estimate of the round trip to the peer: mean, deviation (both by RFC 6298, with its
 * 1/8 and 1/4), and minimum. A requester measures it from a packet that it sends to the
 * ACK or response that covers that one.
 *
 * It contains what the peer takes: how long it holds an ACK back (ack_delay.c), how long
 * a request waits there for a receive work request (patience.c), and the data of a READ.
 * What needs the way alone looks at the minimum, which is that of whole trains: one small
 * packet is faster than they are (window.c).
 *
 * One packet is measured at a time, and where a round trip is short, one per jiffy: a
 * clock is read twice for each. (window.c has more measured while that is of use to it.)
 *
 * A route may change, so the minimum is that of the last eight to sixteen seconds: it
 * is found anew every eight, and then takes the place of the one before.
 */
#include "transport/rtt.h"

#define SROCE_RTT_MIN_JIFFIES (8 * HZ)

void sroce_rtt_reset(struct sroce_rtt *rtt)
{
	*rtt = (struct sroce_rtt){};
}

void sroce_rtt_begin(struct sroce_rtt *rtt, u32 psn, u64 now)
{
	rtt->at = now;
	rtt->psn = psn;
}

static void sroce_rtt_smooth(struct sroce_rtt *rtt, u64 ns)
{
	u64 off = ns > rtt->srtt ? ns - rtt->srtt : rtt->srtt - ns;

	/* The other half looks at @srtt, too */
	if (!rtt->srtt) {
		WRITE_ONCE(rtt->srtt, ns);
		rtt->rttvar = ns / 2;
		return;
	}
	/* With the mean as it was before: RFC 6298 2.3 */
	rtt->rttvar += off / 4 - rtt->rttvar / 4;
	WRITE_ONCE(rtt->srtt, max(rtt->srtt + ns / 8 - rtt->srtt / 8, 1ULL));
}

void sroce_rtt_find_min(struct sroce_rtt *rtt, u64 ns)
{
	if (!rtt->min) {
		rtt->min = ns;
		rtt->min_next = ns;
		rtt->min_since = jiffies;
		return;
	}
	rtt->min = min(rtt->min, ns);
	rtt->min_next = min(rtt->min_next, ns);
	if (time_before(jiffies, rtt->min_since + SROCE_RTT_MIN_JIFFIES))
		return;
	rtt->min = rtt->min_next;
	rtt->min_next = ns;
	rtt->min_since = jiffies;
}

u64 sroce_rtt_end(struct sroce_rtt *rtt, u64 now)
{
	u64 ns = max(now - rtt->at, 1ULL);

	rtt->at = 0;
	rtt->sampled = jiffies;
	sroce_rtt_smooth(rtt, ns);
	return ns;
}
