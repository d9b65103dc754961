/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Datagrams, both ways: beside requester and responder of connected QPs.
 */
#ifndef SROCE_TRANSPORT_DATAGRAM_H
#define SROCE_TRANSPORT_DATAGRAM_H

#include "transport/qp.h"

/*
 * Send one UD work request; sets its state and status. False when it has to
 * wait for the pages of its data.
 */
bool sroce_datagram_send(struct sroce_qp *qp, struct sroce_tx *tx,
			 struct sroce_swqe *slot);

/* Take one UD packet. Context: responder lock held. */
void sroce_datagram_receive(struct sroce_qp *qp, struct sroce_train *t,
			    const struct sroce_rx_info *info);

#endif
