/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What all files of this directory ask of a QP: its state, what moves it to an
 * error, who is told, where it counts. Everything else has a header of its own.
 */
#ifndef SROCE_TRANSPORT_INTERNAL_H
#define SROCE_TRANSPORT_INTERNAL_H

#include "compat.h"
#include "counters.h"
#include "transport/qp.h"

/* Where QPs are allocated; module start. Return: 0 or -ENOMEM. */
int sroce_qps_start(void);
/* Module end: no QP is left, and none that waits to be freed */
void sroce_qps_stop(void);

static inline void sroce_qp_get(struct sroce_qp *qp)
{
	refcount_inc(&qp->refs);
}

/**
 * sroce_qp_error() - move a QP to ERR; both halves flush their queues soon
 * @qp: QP in any state
 *
 * Context: bottom halves off; either half's lock may be held.
 */
void sroce_qp_error(struct sroce_qp *qp);

/*
 * Likewise, because a completion was lost: with an event, once, however many
 * more will be lost while the queues are flushed.
 */
void sroce_qp_fatal(struct sroce_qp *qp);

/* The send side of a datagram QP failed: SQE, the receive side goes on */
void sroce_qp_send_error(struct sroce_qp *qp);

/* Drop the QP's completions from a kernel user's queues, who must not see it any more */
void sroce_qp_forget_completions(struct sroce_qp *qp);

/* Raise an affiliated asynchronous event. Context: a half's lock held. */
void sroce_qp_event(struct sroce_qp *qp, enum ib_event_type type);

static inline enum ib_qp_state sroce_qp_state(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->state);
}

/* Does it take packets? */
static inline bool sroce_qp_hears(const struct sroce_qp *qp)
{
	enum ib_qp_state state = sroce_qp_state(qp);

	return state == IB_QPS_RTR || state == IB_QPS_RTS ||
	       state == IB_QPS_SQD || state == IB_QPS_SQE;
}

/* Context: the lock of one of its halves held */
static inline void sroce_qp_count(struct sroce_qp *qp, enum sroce_counter id,
				  u64 n)
{
	sroce_count(qp->counters, id, n);
}

#endif
