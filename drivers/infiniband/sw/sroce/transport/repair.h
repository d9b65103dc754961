/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the peer misses is sent again, and no more than that.
 */
#ifndef SROCE_TRANSPORT_REPAIR_H
#define SROCE_TRANSPORT_REPAIR_H

#include "transport/qp.h"

/* Another peer, or another way there: whether it keeps what comes early is not known */
void sroce_repair_reset(struct sroce_requester *req);

/**
 * sroce_repair_begin() - put the send cursor back, after a NAK
 * @qp: QP, whose oldest unacknowledged packet the peer misses
 *
 * For a part of what was sent since; or for all of it, if the peer is one that keeps
 * nothing, or if something in between cannot be left out.
 *
 * Context: requester lock held.
 */
void sroce_repair_begin(struct sroce_qp *qp);

/* sroce_repair_step() of a requester that sends again what is missing */
void sroce_repair_go_on(struct sroce_qp *qp);

/* Before each train: behind what is missing the cursor goes to where it was */
static inline void sroce_repair_step(struct sroce_qp *qp)
{
	if (unlikely(qp->req.repair.active))
		sroce_repair_go_on(qp);
}

/* Of @n packets so many belong to what is missing, if that is sent; at least 1 */
static inline u32 sroce_repair_room(const struct sroce_requester *req, u32 n)
{
	if (likely(!req->repair.active))
		return n;
	return min(n, (req->repair.end - req->send_psn) & SROCE_PSN_MASK);
}

/* sroce_repair_acked() of a requester that has sent again what was missing */
bool sroce_repair_answered(struct sroce_qp *qp, u8 kind);

/**
 * sroce_repair_acked() - an answer tells whether what was sent again was enough
 * @qp: QP, whose @una_psn has moved
 * @kind: SROCE_AETH_*; a NAK says what is missing now. A response counts as an ACK
 *
 * Context: requester lock held.
 * Return: true when the cursor was put back, because more was missing than was sent.
 */
static inline bool sroce_repair_acked(struct sroce_qp *qp, u8 kind)
{
	return unlikely(qp->req.repair.asked) && sroce_repair_answered(qp, kind);
}

/* sroce_repair_progress() of a requester that has lost something */
void sroce_repair_loss_goes_on(struct sroce_qp *qp);

/* @una_psn has moved: is what was in flight at the first gap through? */
static inline void sroce_repair_progress(struct sroce_qp *qp)
{
	if (unlikely(qp->req.repair.lossy))
		sroce_repair_loss_goes_on(qp);
}

/* Is a NAK one that says what an ACK has told already? True of one NAK only, so this clears it */
static inline bool sroce_repair_take_expected(struct sroce_requester *req)
{
	bool expected = req->repair.expected;

	req->repair.expected = false;
	return expected;
}

/* When the peer tells of a gap now, is it worth while to send a part only again? */
bool sroce_repair_may(const struct sroce_qp *qp);

/*
 * Is a gap one of a loss that is being repaired, so that it has had its effect on how
 * much may be in flight?
 */
bool sroce_repair_goes_on(const struct sroce_qp *qp);

#endif
