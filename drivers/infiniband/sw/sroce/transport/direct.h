/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The way of a train out of a half: to the network, or into the inbox of a QP of
 * this host; and the memory that a QP has lent to trains in inboxes.
 */
#ifndef SROCE_TRANSPORT_DIRECT_H
#define SROCE_TRANSPORT_DIRECT_H

#include "transport/qp.h"

struct sroce_gather;

/**
 * sroce_send_train() - send one train to the network or to a QP of this host
 * @half: sender
 * @tx: coupling buffer of this run
 * @path: where to
 * @t: train; its payload is in @g
 * @g: pages of the payload, or NULL when there is none
 *
 * Context: @half's lock held.
 */
void sroce_send_train(struct sroce_half *half, struct sroce_tx *tx,
		      struct sroce_path *path, struct sroce_train *t,
		      struct sroce_gather *g);

/*
 * Do trains in inboxes point to memory that the QP has sent from? In ERR and SQE
 * both halves run when the last one has been taken.
 */
static inline bool sroce_has_lent(const struct sroce_qp *qp)
{
	return atomic_read_acquire(&qp->lent);
}

/* A QP has been reset, or is dead: wait until none does. Context: process. */
void sroce_wait_lent(struct sroce_qp *qp);

/* See whether there is buffer space again. Context: @half's lock held. */
void sroce_half_unstarve(struct sroce_half *half);

#endif
