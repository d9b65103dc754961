/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The responder: requests of a connected QP in their order, from receive.c to memory
 * and completions. Its parts have headers of their own, responder_*.h.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_H
#define SROCE_TRANSPORT_RESPONDER_H

#include "transport/qp.h"

/**
 * sroce_responder_request() - take one request of a connected QP
 * @qp: QP
 * @t: request
 *
 * Context: responder lock held. The caller runs sroce_responder_reply()
 * afterwards.
 */
void sroce_responder_request(struct sroce_qp *qp, struct sroce_train *t);

/* sroce_half.run of the responder */
bool sroce_responder_run(struct sroce_half *half);

/* Carry out a request that is the next in order */
void sroce_responder_execute(struct sroce_qp *qp, struct sroce_train *t);

/* Does its state let the QP take requests? */
bool sroce_qp_takes_requests(const struct sroce_qp *qp);

/* A request has come: raise IB_EVENT_COMM_EST when that is news */
void sroce_responder_established(struct sroce_qp *qp);

/* Does the train go on with the current message, or begin one between two? */
bool sroce_responder_sequence_ok(const struct sroce_responder *resp,
				 const struct sroce_train *t);

/* Forget the message in progress and every queued answer */
void sroce_responder_reset(struct sroce_responder *resp);

#endif
