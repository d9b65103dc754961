/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the responder sends, behind the requests that it has carried out.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_REPLY_H
#define SROCE_TRANSPORT_RESPONDER_REPLY_H

#include "transport/qp.h"

/**
 * sroce_responder_reply() - send READ responses, then the ACK or NAK owed
 * @qp: QP
 *
 * Context: responder lock held.
 * Return: true when the budget ran out before the work did.
 */
bool sroce_responder_reply(struct sroce_qp *qp);

/* Send the ACK or NAK owed, on behalf of @half. Context: responder lock held. */
void sroce_reply_ack(struct sroce_qp *qp, struct sroce_half *half,
		     struct sroce_tx *tx);

#endif
