/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Losses on a long path: what they tell, and how much is sent again.
 */
#ifndef SROCE_TRANSPORT_FAR_H
#define SROCE_TRANSPORT_FAR_H

#include "transport/pace.h"
#include "transport/qp.h"
#include "transport/queueing.h"

/* A new path: nothing is known of it */
void sroce_far_reset(struct sroce_requester *req);

/**
 * sroce_far_spread() - spread the window over a round trip
 * @qp: QP, whose window has changed, or whose round trip was measured
 *
 * Where nothing was lost yet, or the path is short, ACKs do that.
 *
 * Context: requester lock held, as for all of these.
 */
void sroce_far_spread(struct sroce_qp *qp);

/**
 * sroce_far_is_early() - is it too early for the next train?
 * @req: requester
 * @wake: moved to when it will not be
 */
static inline bool sroce_far_is_early(struct sroce_requester *req, u64 *wake)
{
	struct sroce_pacer *p = &req->far.pace;

	if (likely(!p->rate) || sroce_pace_due(p, ktime_get_ns()))
		return false;
	*wake = max(*wake, p->wake);
	return true;
}

/* Of @n packets so many may be in the next train */
static inline u32 sroce_far_room(const struct sroce_qp *qp, u32 n)
{
	if (likely(!qp->req.far.pace.rate))
		return n;
	return min(n, sroce_pace_packets(&qp->req.far.pace, qp->mtu));
}

/* A first gap, with @sent packets in flight: others before their end belong to the same loss */
void sroce_far_new_loss(struct sroce_requester *req, u32 sent);

/**
 * sroce_far_next_gap() - one more gap of a loss, of which a part is sent again
 * @qp: QP, whose oldest unacknowledged packet the peer misses
 * @end: PSN behind what was sent again last
 */
void sroce_far_next_gap(struct sroce_qp *qp, u32 end);

/* Of @sent packets in flight so many are sent again for a gap: @size or more */
u32 sroce_far_part(const struct sroce_requester *req, u32 size, u32 sent);

/* All that is in flight is sent again */
void sroce_far_all_again(struct sroce_requester *req);

/* A part is, from @una_psn to @repair.end */
void sroce_far_part_begins(struct sroce_requester *req);

/* A train of that part is about to leave */
void sroce_far_part_sent(struct sroce_requester *req, const struct sroce_train *t, u64 now);

/* A train is about to leave */
static inline void sroce_far_sent(struct sroce_requester *req, const struct sroce_train *t)
{
	if (unlikely(req->far.pace.rate))
		sroce_pace_sent(&req->far.pace, t, ktime_get_ns());
	if (unlikely(req->repair.active))
		sroce_far_part_sent(req, t, ktime_get_ns());
}

/**
 * sroce_far_is_under_way() - is what the peer misses on its way again, for all it can know?
 * @qp: QP, to whose oldest unacknowledged packet a NAK has come
 *
 * If so it counts as a gap of the loss all the same.
 */
bool sroce_far_is_under_way(struct sroce_qp *qp);

/* @una_psn has moved in a loss */
void sroce_far_progress(struct sroce_qp *qp);

/* The window grows: that losses were dense is the longer ago */
void sroce_far_forget(struct sroce_requester *req);

/* Where much was lost before: a window up to which there is room for sure; else U32_MAX */
static inline u32 sroce_far_known(const struct sroce_requester *req)
{
	return req->far.full ? req->far.full / 8 * 7 : U32_MAX;
}

#endif
