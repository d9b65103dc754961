/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A stream of packets in which one is missing: what tells its rest, which must not
 * be answered again, from the repeated stream. The responder looks at requests so,
 * the requester at responses.
 */
#ifndef SROCE_TRANSPORT_GAP_H
#define SROCE_TRANSPORT_GAP_H

#include "transport/qp.h"

/* How many packets the network may bring a packet forward or back */
#define SROCE_REORDERING 16

/* A packet was seen that tells of a gap before it */
static inline void sroce_gap_begin(struct sroce_gap *gap, u32 psn)
{
	gap->first = psn;
	gap->high = psn;
}

/* Another packet of the same stream was seen */
static inline void sroce_gap_see(struct sroce_gap *gap, u32 psn)
{
	if (sroce_psn_diff(psn, gap->high) > 0)
		gap->high = psn;
}

/**
 * sroce_gap_again() - see whether a gap was left by a repeated stream too
 * @gap: what was seen of the first stream
 * @psn: of a packet that is still not the missing one
 *
 * The rest of a stream in which a packet is missing must not be answered
 * again, even when it is out of order. But the stream begins anew with the
 * missing packet; PSNs that fall back to the beginning tell that it was lost again.
 *
 * Return: true when the stream has begun anew.
 */
static inline bool sroce_gap_again(struct sroce_gap *gap, u32 psn)
{
	if (sroce_psn_diff(psn, gap->first) <= 0 ||
	    sroce_psn_diff(gap->high, psn) > SROCE_REORDERING) {
		sroce_gap_begin(gap, psn);
		return true;
	}
	sroce_gap_see(gap, psn);
	return false;
}

#endif
