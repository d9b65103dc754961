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

/* Queue the answer to a READ or atomic; false when there is no room */
bool sroce_job_push(struct sroce_responder *resp,
		    const struct sroce_rd_res *res);

bool sroce_job_room(const struct sroce_responder *resp);

/* Has every response to a READ or atomic left? */
static inline bool sroce_reply_all_sent(const struct sroce_responder *resp)
{
	return resp->job_head == resp->job_tail;
}

/*
 * Queue an answer once more, because the peer asks for it again: before those
 * to later requests, and instead of the same one when that has not left yet.
 */
void sroce_job_repeat(struct sroce_responder *resp,
		      const struct sroce_rd_res *res);

#endif
