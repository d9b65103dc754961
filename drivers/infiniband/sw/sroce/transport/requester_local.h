/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests of the send queue that send nothing.
 */
#ifndef SROCE_TRANSPORT_REQUESTER_LOCAL_H
#define SROCE_TRANSPORT_REQUESTER_LOCAL_H

#include "transport/requester.h"

/**
 * sroce_requester_local() - carry out a local operation
 * @qp: QP
 * @slot: work request; all before it have been sent
 *
 * It waits for those that it must not overtake, and for copies under way with a key
 * that it invalidates.
 *
 * Context: requester lock held.
 * Return: SROCE_STEP_ON when it is done; SROCE_STEP_WAIT, also when it has failed.
 */
enum sroce_step sroce_requester_local(struct sroce_qp *qp,
				      struct sroce_swqe *slot);

#endif
