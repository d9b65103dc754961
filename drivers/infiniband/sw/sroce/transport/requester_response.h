/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Responses, which have come from receive.c: what the requester does with them.
 */
#ifndef SROCE_TRANSPORT_REQUESTER_RESPONSE_H
#define SROCE_TRANSPORT_REQUESTER_RESPONSE_H

#include "transport/qp.h"

/**
 * sroce_requester_response() - take one response
 * @qp: connected QP
 * @t: response
 *
 * Context: requester lock held. The caller runs the engine afterwards.
 */
void sroce_requester_response(struct sroce_qp *qp, struct sroce_train *t);

/**
 * sroce_response_replay() - take responses that came too early and whose turn it is now
 * @qp: QP for which sroce_early_waits() is true
 *
 * As many as one half may before others run.
 *
 * Context: requester lock held.
 * Return: true when there are more.
 */
bool sroce_response_replay(struct sroce_qp *qp);

#endif
