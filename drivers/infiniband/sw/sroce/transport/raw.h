/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ethernet frames of a process. What is received comes by seam.h.
 */
#ifndef SROCE_TRANSPORT_RAW_H
#define SROCE_TRANSPORT_RAW_H

#include "transport/qp.h"

/**
 * sroce_raw_send() - send the frame of a work request
 * @qp: QP of raw packets
 * @slot: work request; afterwards done or, with @slot->status, to be failed
 *
 * Context: requester lock held.
 * Return: false when it has to wait for pages.
 */
bool sroce_raw_send(struct sroce_qp *qp, struct sroce_swqe *slot);

#endif
