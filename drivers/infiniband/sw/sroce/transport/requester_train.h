/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * From a work request of a connected QP to trains.
 */
#ifndef SROCE_TRANSPORT_REQUESTER_TRAIN_H
#define SROCE_TRANSPORT_REQUESTER_TRAIN_H

#include "transport/requester.h"

/**
 * sroce_requester_train() - send the next train of a work request
 * @qp: QP of a connected type
 * @tx: coupling buffer of this run
 * @slot: work request that is not a local operation; the next to send
 *
 * The queue moves on behind its last train.
 *
 * Context: requester lock held.
 * Return: SROCE_STEP_ON, or SROCE_STEP_WAIT when the window, the answers outstanding,
 * a fence or missing pages keep it from being sent, and when it has failed.
 */
enum sroce_step sroce_requester_train(struct sroce_qp *qp, struct sroce_tx *tx,
				      struct sroce_swqe *slot);

#endif
