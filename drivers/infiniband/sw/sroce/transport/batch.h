/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Doorbells of processes that the requester need not answer at once.
 */
#ifndef SROCE_TRANSPORT_BATCH_H
#define SROCE_TRANSPORT_BATCH_H

#include "transport/qp.h"

/**
 * sroce_batch_end() - a process rings: what it has posted is enough
 * @qp: QP, which may be dead, and its rings gone
 *
 * Context: process, no locks held.
 * Return: true when a batch was waiting, which is to be sent now.
 */
bool sroce_batch_end(struct sroce_qp *qp);

/**
 * sroce_batch_begin() - may what a process has posted wait for more?
 * @qp: QP, which may be dead
 *
 * Context: process, no locks held.
 * Return: true when it does: the process may go on and need not ring for the next
 * ones; a timer ends the wait.
 */
bool sroce_batch_begin(struct sroce_qp *qp);

void sroce_batch_init(struct sroce_requester *req);

/**
 * sroce_batch_reset() - a QP goes to RESET: how it was posted to before says nothing any more
 * @req: its requester
 *
 * A batch that waits may go on doing so: all that its timer does is to run the half.
 *
 * Context: the requester's lock held.
 */
void sroce_batch_reset(struct sroce_requester *req);

#endif
