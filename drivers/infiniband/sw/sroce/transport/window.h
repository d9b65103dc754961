/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How much the requester may have in flight, and in this host's queues.
 */
#ifndef SROCE_TRANSPORT_WINDOW_H
#define SROCE_TRANSPORT_WINDOW_H

#include "transport/qp.h"

/* Bytes of one QP in the stack's queues; more where the window is larger */
#define SROCE_TXQ_BYTES (2 * 1024 * 1024)

/* A new path: start over */
void sroce_window_init(struct sroce_qp *qp);

/* Packets up to @send_psn were sent for the first time */
void sroce_window_sent(struct sroce_requester *req);

/*
 * Of @sent packets in flight the peer misses some, which are sent again: its answer to those up to
 * @psn ends a round trip
 */
void sroce_window_repairs(struct sroce_requester *req, u32 psn, u32 sent);

/* On a long path: losses say that it is too large */
void sroce_window_too_large(struct sroce_qp *qp);

/* ... or it was not lost what it was made smaller for */
void sroce_window_restore(struct sroce_qp *qp, u32 window);

/* ... or it is not too large: all has arrived that was lost */
void sroce_window_survived(struct sroce_qp *qp);

/* @una_psn moved */
void sroce_window_acked(struct sroce_qp *qp);

/* Packets have to be sent again: a part of what was in flight (@partly), or all of it */
void sroce_window_lost(struct sroce_qp *qp, bool partly);

/* ... because nobody has answered until the ACK timeout */
void sroce_window_silent(struct sroce_qp *qp);

/* Packets that may leave at once where packets were lost */
u32 sroce_window_train(const struct sroce_requester *req);

/* The window is what keeps the requester from sending */
static inline void sroce_window_note_limit(struct sroce_requester *req)
{
	req->growth.limited = true;
}

#endif
