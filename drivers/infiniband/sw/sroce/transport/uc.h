/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Unreliable connections, the receiving side: beside the responder of RC, and with
 * the same parts.
 */
#ifndef SROCE_TRANSPORT_UC_H
#define SROCE_TRANSPORT_UC_H

#include "transport/qp.h"

/* Take one request of an unreliable connection. Context: responder lock held. */
void sroce_uc_request(struct sroce_qp *qp, struct sroce_train *t);

#endif
