/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Requests that have come before one that is missing, and how long that is waited for
 * before the peer is asked for it.
 */
#ifndef SROCE_TRANSPORT_HOLD_H
#define SROCE_TRANSPORT_HOLD_H

#include "transport/qp.h"

/**
 * sroce_hold_missed() - a request has come, and one before it is missing
 * @qp: QP of a type that is acknowledged
 * @t: request, whose PSN is behind the one that is expected
 *
 * It is held if there is room. The peer is asked for what is missing, once for each
 * gap: at once, or soon, where packets have come late before.
 *
 * Context: responder lock held.
 */
void sroce_hold_missed(struct sroce_qp *qp, struct sroce_train *t);

/* The request that was missing is here, and about to be carried out */
void sroce_hold_gap_filled(struct sroce_qp *qp);

/**
 * sroce_hold_replay() - carry out held requests whose turn it is
 * @qp: QP that holds some
 *
 * As many as one half may before others run. In a state that takes no requests, and
 * when one was refused, they are dropped.
 *
 * Context: responder lock held; the inbox is empty, or its first request waits.
 * Return: true when there are more.
 */
bool sroce_hold_replay(struct sroce_qp *qp);

/*
 * Is an answer to come as soon as it is known what else is missing? Not when the QP goes,
 * which sends what it owes and waits for nothing (sroce_ack_settle())
 */
static inline bool sroce_hold_keeps_ack(const struct sroce_responder *resp)
{
	const struct sroce_hold *hold = &resp->hold;

	return unlikely(hold->ask_at && hold->repairing && !hold->answer) &&
	       resp->ack.delay.state != SROCE_ACK_OFF;
}

/* Drop everything, and forget what is missing. Context: responder lock held. */
void sroce_hold_reset(struct sroce_qp *qp);

void sroce_hold_init(struct sroce_qp *qp);

#endif
