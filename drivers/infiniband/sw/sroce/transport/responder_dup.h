/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Requests that come again.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_DUP_H
#define SROCE_TRANSPORT_RESPONDER_DUP_H

#include "transport/qp.h"

/**
 * sroce_responder_duplicate() - answer a request once more
 * @qp: QP of a type that is acknowledged
 * @t: request; all of it is before the PSN expected
 *
 * A READ or atomic of which nothing is known any more, or which is not what it was,
 * is dropped.
 *
 * Context: responder lock held.
 */
void sroce_responder_duplicate(struct sroce_qp *qp, struct sroce_train *t);

#endif
