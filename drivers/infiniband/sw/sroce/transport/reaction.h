/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The rate that congestion leaves to a QP: how it is cut, and how it rises again.
 * All of it depends on nothing but what is given to it.
 */
#ifndef SROCE_TRANSPORT_REACTION_H
#define SROCE_TRANSPORT_REACTION_H

#include "transport/qp.h"

/**
 * struct sroce_reaction_at - the circumstances of a look at the rate
 * @set: what the administrator has set
 * @now: in ns
 * @rtt: round trip in ns
 * @packet: bytes of a full packet, from the IP header on
 * @psn: that is sent next
 * @una: the oldest that is not acknowledged; @psn where there are no ACKs
 * @sent: bytes that the QP has sent so far, of a count that wraps
 */
struct sroce_reaction_at {
	const struct sroce_congestion *set;
	u64 now;
	u64 rtt;
	u32 packet;
	u32 psn;
	u32 una;
	unsigned long sent;
};

/* No rate; as for a new QP */
void sroce_reaction_end(struct sroce_reaction *r);

/**
 * sroce_reaction_cut() - packets have met congestion
 * @r: rate
 * @at: circumstances
 *
 * Does nothing when the rate was cut less than a round trip ago, or what was in flight then
 * is not acknowledged yet. A QP without a rate
 * gets one: from what it has sent in the last round trip, which may begin here.
 *
 * Return: whether the rate is another one.
 */
bool sroce_reaction_cut(struct sroce_reaction *r,
			const struct sroce_reaction_at *at);

/**
 * sroce_reaction_advance() - something is about to be sent
 * @r: rate, @r->limited
 * @at: circumstances
 *
 * Catches up with what time has done to the rate since the last call. It ends when it
 * is no limit any more, or when nothing was sent for a second.
 */
void sroce_reaction_advance(struct sroce_reaction *r,
			    const struct sroce_reaction_at *at);

#endif
