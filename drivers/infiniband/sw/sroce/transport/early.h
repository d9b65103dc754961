/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Responses that have come before one that is missing, and how long that is waited for
 * before it is asked for again.
 */
#ifndef SROCE_TRANSPORT_EARLY_H
#define SROCE_TRANSPORT_EARLY_H

#include "transport/held.h"
#include "transport/lateness.h"
#include "transport/qp.h"

/**
 * sroce_early_keep() - a response has come, and one before it is missing
 * @qp: QP
 * @t: response, behind the one that is expected
 *
 * It is kept if there is room.
 *
 * Context: requester lock held.
 * Return: whether all of it was kept before. Then it is of a stream that was sent again.
 */
bool sroce_early_keep(struct sroce_qp *qp, struct sroce_train *t);

/*
 * An ACK or NAK has come about @psn: all before @end has arrived, but a response before it is
 * missing. Requester lock held
 */
void sroce_early_ack(struct sroce_qp *qp, u32 psn, u32 end);

/* For sroce_early_again(): something of what is sent again has come */
void sroce_early_goes_on(struct sroce_requester *req, u32 psn);

/* A train of responses, of which at least the first has been taken already. Requester lock held */
static inline void sroce_early_again(struct sroce_qp *qp, const struct sroce_train *t)
{
	sroce_lateness_again(qp, &qp->req.early.lateness, t);
	if (unlikely(qp->req.early.open))
		sroce_early_goes_on(&qp->req, t->psn);
}

/*
 * Something is missing at @una_psn, as an answer about @psn tells, and it was not asked for
 * again yet: note when that may be. Requester lock held
 */
void sroce_early_open(struct sroce_qp *qp, u32 psn);

/* What is missing is asked for again: if it was waited for, in vain. Requester lock held */
void sroce_early_ask(struct sroce_requester *req);

/* What is in flight is sent again, or the first part of it. Requester lock held */
void sroce_early_restart(struct sroce_requester *req);

/* For sroce_early_look_for_gap(): has what was told of come by now? */
void sroce_early_find_gap(struct sroce_qp *qp);

/*
 * What was missing has come, and what was kept behind it was taken: is there another gap, of
 * which nothing else will tell? Requester lock held
 */
static inline void sroce_early_look_for_gap(struct sroce_qp *qp)
{
	if (unlikely(qp->req.early.told))
		sroce_early_find_gap(qp);
}

/* For sroce_early_progress(): it has come */
void sroce_early_filled(struct sroce_qp *qp);

/* @una_psn has moved. Requester lock held */
static inline void sroce_early_progress(struct sroce_qp *qp)
{
	if (unlikely(qp->req.early.open))
		sroce_early_filled(qp);
}

/*
 * An answer skips over what was asked for again. Is it of the stream before that, because the new
 * one cannot be here yet? Requester lock held
 */
bool sroce_early_is_rest(const struct sroce_requester *req);

/* Does anything wait for its turn? */
static inline bool sroce_early_waits(const struct sroce_requester *req)
{
	return req->early.acked || req->early.held.n;
}

/* RESET, or the end: drop everything, and forget what is missing. Requester lock held */
void sroce_early_reset(struct sroce_qp *qp);

/* ERR: likewise */
static inline void sroce_early_drop(struct sroce_qp *qp)
{
	if (unlikely(qp->req.early.told || sroce_early_waits(&qp->req)))
		sroce_early_reset(qp);
}

void sroce_early_init(struct sroce_qp *qp);

#endif
