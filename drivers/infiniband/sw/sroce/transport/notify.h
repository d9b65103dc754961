/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Congestion notifications: senders are told that their packets have met congestion.
 */
#ifndef SROCE_TRANSPORT_NOTIFY_H
#define SROCE_TRANSPORT_NOTIFY_H

#include "transport/qp.h"

/**
 * sroce_notify_peer() - a packet of a connected QP's peer has met congestion
 * @qp: QP
 * @t: train of such packets, valid, whether in order or not
 *
 * Counts them, and tells the peer, if it has not been told just now (IBA A17.9.3).
 *
 * Context: the lock of one of @qp's halves held.
 */
void sroce_notify_peer(struct sroce_qp *qp, const struct sroce_train *t);

/**
 * sroce_notify_sender() - likewise a datagram
 * @qp: receiver
 * @t: datagram that it takes
 * @info: where it came from
 *
 * Senders to a multicast group are not told, nor are their packets counted: each member
 * would. Nor are managers told, at their QP 1.
 *
 * Context: responder lock held.
 */
void sroce_notify_sender(struct sroce_qp *qp, const struct sroce_train *t,
			 const struct sroce_rx_info *info);

#endif
