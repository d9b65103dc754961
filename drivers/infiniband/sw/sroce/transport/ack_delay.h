/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ACKs of the responder that wait for a request of the requester to go with.
 */
#ifndef SROCE_TRANSPORT_ACK_DELAY_H
#define SROCE_TRANSPORT_ACK_DELAY_H

#include "transport/qp.h"

/**
 * sroce_ack_hold() - may the ACK that is owed wait for a request to go with?
 * @qp: QP
 *
 * For some milliseconds at most; and only that of a kernel user.
 *
 * Context: responder lock held; everything before the ACK has left.
 * Return: true when it is not to be sent now.
 */
bool sroce_ack_hold(struct sroce_qp *qp);

/* The peer repeats a request: it is not to wait for its ACK */
static inline void sroce_ack_hurry(struct sroce_responder *resp)
{
	resp->ack.delay.turns = 0;
}

/* sroce_ack_ride() where an ACK waits */
void sroce_ack_ride_along(struct sroce_qp *qp, struct sroce_tx *tx);

/**
 * sroce_ack_ride() - a request was sent: let the ACK that waits go with it
 * @qp: QP
 * @tx: coupling buffer of the run that has sent the request
 *
 * Context: requester lock held, not the responder's.
 */
static inline void sroce_ack_ride(struct sroce_qp *qp, struct sroce_tx *tx)
{
	/* An ACK that is missed here leaves with the next request, or by the timer */
	if (!qp->user && READ_ONCE(qp->resp.ack.delay.messages))
		sroce_ack_ride_along(qp, tx);
}

/**
 * sroce_ack_settle() - send the ACK that waits, and let no other wait
 * @qp: QP that ends, or is reset
 *
 * Whoever has seen a message may end the QP. The peer must know by then.
 *
 * Context: process.
 */
void sroce_ack_settle(struct sroce_qp *qp);

/**
 * sroce_ack_settle_once() - send what the peer is owed as far as one run of the responder can
 * @qp: QP that goes to ERR
 *
 * Whoever has seen a message may have a datagram tell the peer next that the connection ends
 * (rdma_disconnect()): the ACK is to be there before that, and so it waits, for some
 * milliseconds at most, until the stack has passed on what the QP has just sent.
 *
 * Context: process.
 */
void sroce_ack_settle_once(struct sroce_qp *qp);

/* A new connection: nothing is known. Context: responder lock held. */
void sroce_ack_reset(struct sroce_ack_delay *d);

void sroce_ack_delay_init(struct sroce_ack_delay *d);

#endif
