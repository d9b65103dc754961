/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Lost packets, as the requester sees it: going back, how often, and the timer.
 */
#ifndef SROCE_TRANSPORT_RETRANSMIT_H
#define SROCE_TRANSPORT_RETRANSMIT_H

#include "transport/qp.h"

/**
 * sroce_requester_restart() - go back to the oldest unacknowledged PSN
 * @qp: QP
 * @why: counter of the reason
 *
 * Takes one from the retry count, but not for every one of a burst of NAKs; when
 * that is used up the QP fails. Does nothing while the QP waits for a receiver
 * that is not ready.
 *
 * Context: requester lock held.
 */
void sroce_requester_restart(struct sroce_qp *qp, enum sroce_counter why);

/**
 * sroce_requester_may_ask_again() - may a lost response be asked for again now?
 * @req: requester; what is missing has a moment to come by itself, or was asked for before
 *
 * If it is too soon it is asked for when it is time, unless it has come by then.
 *
 * Context: requester lock held.
 */
bool sroce_requester_may_ask_again(struct sroce_requester *req);

/* So long after a restart its answers may come, in ns: two round trips. Requester lock held */
u64 sroce_requester_ask_least_ns(const struct sroce_requester *req);

/* A lost response is asked for again at @at, in ns, unless it comes. Requester lock held */
void sroce_requester_ask_later(struct sroce_requester *req, u64 at);

/*
 * A lost response may have been lost again. Where no timeout would find that out, it is asked
 * for again by and by. Requester lock held
 */
void sroce_requester_ask_without_timeout(struct sroce_qp *qp);

/* A response was lost (IBA 9.7.5, implied NAK): go back to its request. Requester lock held */
void sroce_requester_ask_again(struct sroce_qp *qp);

/* The peer misses the oldest unacknowledged packet: sent again, without counting a retry */
void sroce_requester_go_back(struct sroce_qp *qp);

/* Put the send cursor to @una_psn: all is sent again */
void sroce_requester_rewind(struct sroce_qp *qp);

/* A response made progress: reload the retry counts and the timer */
void sroce_requester_progress(struct sroce_qp *qp);

/*
 * Something is in flight, or waits until the queues below have room: see that the
 * timer runs
 */
void sroce_requester_arm(struct sroce_qp *qp);

/* See that the timer fires at @at, in ns, or before. Context: requester lock held. */
void sroce_requester_wake_at(struct sroce_requester *req, u64 at);

/* Stop sending for the time an RNR NAK asks for */
void sroce_requester_rnr_wait(struct sroce_qp *qp, u8 code);

void sroce_requester_timer_init(struct sroce_requester *req);

#endif
