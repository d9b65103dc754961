/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The entry of trains into a QP, behind which they go to the requester or the
 * responder. That of the network's packets, sroce_receive(), is in seam.h.
 */
#ifndef SROCE_TRANSPORT_RECEIVE_H
#define SROCE_TRANSPORT_RECEIVE_H

#include "transport/qp.h"

struct sroce_parcel;

/* Take one train of a QP of this host. Context: the half's lock held. */
void sroce_receive_parcel(struct sroce_qp *qp, struct sroce_parcel *p);

/* Index of the first P_Key of the table that matches, or -1 */
int sroce_pkey_index(const struct sroce_port *port, u16 pkey);

#endif
