/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which packets the network's queues may mark instead of dropping them.
 */
#ifndef SROCE_TRANSPORT_ECN_H
#define SROCE_TRANSPORT_ECN_H

#include "transport/qp.h"

/* Another path: nothing is known of the peer. Context: the lock of qp->congestion held. */
void sroce_ecn_reset(struct sroce_qp *qp);

/**
 * sroce_ecn_of_train() - may queues mark a train?
 * @half: half that sends it
 * @path: on this path
 * @t: train
 *
 * Context: @half's lock held.
 * Return: what to add to its flags: SROCE_ECT; SROCE_CE, to ask the peer; or nothing.
 */
u32 sroce_ecn_of_train(struct sroce_half *half, const struct sroce_path *path,
		       const struct sroce_train *t);

/**
 * sroce_ecn_answered() - the peer tells that packets were marked
 * @qp: QP
 *
 * Context: a half's lock held.
 * Return: whether that is the answer to a question, and no congestion.
 */
bool sroce_ecn_answered(struct sroce_qp *qp);

#endif
