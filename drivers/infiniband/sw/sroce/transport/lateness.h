/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How long a packet that is missing is waited for, where a network brings packets in another
 * order than they were sent in: about twice as long as the last late one took.
 */
#ifndef SROCE_TRANSPORT_LATENESS_H
#define SROCE_TRANSPORT_LATENESS_H

#include "transport/qp.h"

/* The longest time that a late packet is waited for */
#define SROCE_LATE_MOST_NS ((u64)2 * NSEC_PER_MSEC)
/* So long after a part of what is missing the rest may come */
#define SROCE_LATE_REST_NS ((u64)200 * NSEC_PER_USEC)
/* Gaps in a row that did not fill by themselves, until none is waited for any more */
#define SROCE_LATE_VAIN_MOST 8

/**
 * sroce_lateness_by_itself() - what was missing has come, and was not asked for
 * @qp: QP
 * @l: what is known of one of its halves
 * @took: how long that took, in ns
 *
 * Context of all that follows: lock of the half held.
 */
void sroce_lateness_by_itself(struct sroce_qp *qp, struct sroce_lateness *l, u64 took);

/* Another gap of the same loss, likewise: none is counted, and the wait becomes no shorter */
void sroce_lateness_rest(struct sroce_lateness *l, u64 took);

/*
 * What was missing has come after it was asked for, in @took ns. @psn: which that was. Of one loss
 * the one that took longest is remembered
 */
void sroce_lateness_asked(struct sroce_lateness *l, u32 psn, u64 took);

/* It was waited for, and is asked for now */
void sroce_lateness_in_vain(struct sroce_lateness *l);

/* For sroce_lateness_again(): what was asked for was only late */
void sroce_lateness_asked_in_vain(struct sroce_qp *qp, struct sroce_lateness *l);

/* A train has come twice. If it is what was asked for last, that was only late */
static inline void sroce_lateness_again(struct sroce_qp *qp, struct sroce_lateness *l,
					const struct sroce_train *t)
{
	if (unlikely(l->asked) && ((l->psn - t->psn) & SROCE_PSN_MASK) < t->npkts)
		sroce_lateness_asked_in_vain(qp, l);
}

/* Another loss: what is asked for now is remembered instead of what was before */
static inline void sroce_lateness_new_gap(struct sroce_lateness *l)
{
	l->newest = false;
}

/* What was asked for says nothing any more */
static inline void sroce_lateness_forget(struct sroce_lateness *l)
{
	l->asked = false;
}

/* Another connection */
static inline void sroce_lateness_reset(struct sroce_lateness *l)
{
	*l = (struct sroce_lateness){};
}

#endif
