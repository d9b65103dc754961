/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Doorbells of processes that the requester need not answer at once.
 */
#ifndef SROCE_TRANSPORT_BATCH_H
#define SROCE_TRANSPORT_BATCH_H

#include "transport/qp.h"

void sroce_batch_init(struct sroce_requester *req);

#endif
