/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a QP does when its packets meet congestion: it sends at a rate.
 */
#ifndef SROCE_TRANSPORT_CONGESTION_H
#define SROCE_TRANSPORT_CONGESTION_H

#include "transport/qp.h"

/* With the QP. Its timer is to be cancelled when the QP is dead. */
void sroce_congestion_init(struct sroce_qp *qp);

/* A new path: nothing is known of it. Context: both halves' locks held. */
void sroce_congestion_reset(struct sroce_qp *qp);

/**
 * sroce_congestion_notified() - the peer tells that a QP's packets have met congestion
 * @qp: QP
 *
 * Counts it as handled (IBA A17.9.3), or as ignored where nobody slows down.
 *
 * Context: a half's lock held.
 */
void sroce_congestion_notified(struct sroce_qp *qp);

/*
 * Packets of a QP were lost because queues were full: a rate is cut, if there is one.
 * Context: requester lock held.
 */
void sroce_congestion_lost(struct sroce_qp *qp);

/* sroce_congestion_due() of a QP that has a rate */
bool sroce_congestion_is_due(struct sroce_half *half, u64 *wake);

/**
 * sroce_congestion_due() - is it time for the next train of a half?
 * @half: half
 * @wake: when not, the time when it will be, in ns
 *
 * Context: @half's lock held.
 */
static inline bool sroce_congestion_due(struct sroce_half *half, u64 *wake)
{
	return likely(!READ_ONCE(half->qp->congested)) ||
	       sroce_congestion_is_due(half, wake);
}

/* Packets that a train may have at the rate of a QP that has one, at least 1 */
u32 sroce_congestion_packets(struct sroce_qp *qp);

/* Of @n packets so many may go in one train. Context: a half's lock held. */
static inline u32 sroce_congestion_room(struct sroce_qp *qp, u32 n)
{
	if (likely(!READ_ONCE(qp->congested)))
		return n;
	return min(n, sroce_congestion_packets(qp));
}

/* sroce_congestion_may_reply() of a QP that has a rate */
bool sroce_congestion_is_reply_due(struct sroce_qp *qp);

/*
 * May the responder send the next train of READ responses? When not, a timer has it run
 * again. Context: responder lock held.
 */
static inline bool sroce_congestion_may_reply(struct sroce_qp *qp)
{
	return likely(!READ_ONCE(qp->congested)) ||
	       sroce_congestion_is_reply_due(qp);
}

/* A train leaves that has waited for its time. Context: @half's lock held. */
void sroce_congestion_sent(struct sroce_half *half, const struct sroce_train *t);

#endif
