/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Trains between two QPs of this host, and the memory that a QP has lent to trains
 * in inboxes.
 */
#ifndef SROCE_TRANSPORT_DIRECT_H
#define SROCE_TRANSPORT_DIRECT_H

#include "transport/qp.h"

struct sroce_gather;

/**
 * sroce_direct_send() - put a train into the inbox of a QP of this host
 * @from: sender
 * @path: to an address of this host (@direct_ifindex)
 * @t: train; its payload is in @g
 * @g: pages of the payload, or NULL when there is none
 *
 * Like a packet it may be lost: there is no such QP, or it listens to somebody else,
 * or its inbox is full. This is counted.
 *
 * Context: the lock of the sending half held.
 */
void sroce_direct_send(struct sroce_qp *from, struct sroce_path *path,
		       const struct sroce_train *t, const struct sroce_gather *g);

/*
 * Do trains in inboxes point to memory that the QP has sent from? In ERR and SQE
 * both halves run when the last one has been taken.
 */
static inline bool sroce_qp_has_lent(const struct sroce_qp *qp)
{
	return atomic_read_acquire(&qp->lent);
}

/*
 * Wait until none does. The QP has been reset, or is dead; the one that it was connected
 * to has the number @peer. Context: process.
 */
void sroce_qp_wait_lent(struct sroce_qp *qp, u32 peer);

#endif
