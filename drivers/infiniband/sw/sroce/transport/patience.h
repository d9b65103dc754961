/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Requests that wait for a receive work request before the peer is told that there
 * is none.
 */
#ifndef SROCE_TRANSPORT_PATIENCE_H
#define SROCE_TRANSPORT_PATIENCE_H

#include "transport/qp.h"

/* What waits in the inboxes of all QPs: an estimate of the memory that it takes */
extern struct sroce_uncharged sroce_waiting_memory;

/**
 * sroce_patience_limit_ns() - how long a request may wait in silence
 * @qp: QP that it came to
 *
 * A peer that waits for an ACK must not think that its request was lost.
 *
 * Return: ns
 */
u64 sroce_patience_limit_ns(const struct sroce_qp *qp);

/**
 * sroce_patience_begin() - may a request wait for a receive work request?
 * @qp: QP that has none
 * @psn: first PSN of the request
 *
 * Whoever has brought the request puts it back into the inbox, where it is tried
 * again soon: sroce_inbox_return() or sroce_patience_keep().
 *
 * Context: responder lock held.
 * Return: false when it has waited long enough: the peer is to be told.
 */
bool sroce_patience_begin(struct sroce_qp *qp, u32 psn);

/*
 * The sender wants its memory back. Until sroce_patience_allow() a request that is tried
 * again and finds no receive does not go on waiting: the peer is told.
 * Context: responder lock held.
 */
void sroce_patience_deny(struct sroce_responder *resp);
void sroce_patience_allow(struct sroce_responder *resp);

/*
 * Is there a receive for the request that waits, or does somebody want back what waits?
 * The timer asks now and then. Context: no locks held.
 */
void sroce_patience_look(struct sroce_responder *resp);

/* Keep a train from the network while one waits. Context: responder lock held. */
void sroce_patience_keep(struct sroce_qp *qp, const struct sroce_train *t);

/* The inbox is empty, and nothing waits. Context: responder lock held. */
void sroce_patience_over(struct sroce_qp *qp);

/* A new connection, or none any more: nothing waits. Context: responder lock held. */
void sroce_patience_reset(struct sroce_responder *resp);

void sroce_patience_init(struct sroce_qp *qp);

/* Module start */
void sroce_patience_start(void);

#endif
