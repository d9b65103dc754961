/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The end of send work requests: done, failed or flushed.
 */
#ifndef SROCE_TRANSPORT_REQUESTER_COMPLETE_H
#define SROCE_TRANSPORT_REQUESTER_COMPLETE_H

#include "transport/requester.h"

/**
 * sroce_requester_retire() - complete what is done at the head of the queue
 * @qp: QP
 *
 * Everything before @una_psn is acknowledged. Completes in order, in the end
 * also a work request that failed locally.
 *
 * Context: requester lock held.
 */
void sroce_requester_retire(struct sroce_qp *qp);

/* Fail the work request at the head; the QP goes to ERR, or only to SQE */
void sroce_requester_fail(struct sroce_qp *qp, enum ib_wc_status status);

/**
 * sroce_requester_fail_in_turn() - a work request cannot be carried out
 * @qp: QP
 * @slot: work request
 * @status: why
 *
 * It fails as soon as everything before it is complete; nothing is sent after it.
 *
 * Context: requester lock held.
 * Return: SROCE_STEP_WAIT.
 */
enum sroce_step sroce_requester_fail_in_turn(struct sroce_qp *qp,
					     struct sroce_swqe *slot,
					     enum ib_wc_status status);

/**
 * sroce_requester_flush() - complete what is left of the send queue of a QP in ERR
 * or SQE
 * @qp: QP
 *
 * Every work request, fetched or not, signaled or not; but none before the memory is
 * given back that trains to QPs of this host point to: the half runs again then.
 *
 * Context: requester lock held.
 * Return: true when there is more, because one half may flush so many only before
 * others run.
 */
bool sroce_requester_flush(struct sroce_qp *qp);

#endif
