// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Losses on a long path, one whose round trip is longer than queues are (queueing.h).
 *
 * A peer tells of one gap, and of the next when that is filled. So each takes a round trip, if
 * no more is sent again than is missing there, and in a flight over a long path there may be
 * dozens. Therefore what is sent again becomes more with each gap of a loss, and less from one
 * loss to the next: by and by it is as much as losses need there. What the peer asks for may be
 * among it, and on its way.
 *
 * Round trips tell little of why packets are lost here: the queue of a switch is a tenth of one,
 * or less. What tells is how close gaps are to each other. Who sends more than there is room for
 * loses one packet in ten or twenty for as long as he does; what a cable or a radio loses is far
 * apart. So losses that are dense make the window smaller, and it is remembered at which size
 * they were: up to near that it comes back soon, and then grows by little. Any others cost it
 * next to nothing (window.c).
 *
 * When a gap is filled, a flight may be acknowledged at once, and as much be sent at once would
 * overrun any queue. So from the first loss on the window is spread over a round trip: trains
 * leave at the rate that it stands for.
 *
 * repair.c comes here with gaps, window.c with each new window.
 */
#include <linux/ktime.h>
#include <linux/math64.h>

#include "transport/far.h"
#include "transport/internal.h"
#include "transport/window.h"

/* Losses are dense with so many gaps behind the first, and fewer packets for each on average */
#define SROCE_FAR_DENSE_GAPS 4
#define SROCE_FAR_DENSE 24
/* They count as that, too, when they are not repaired after so many round trips */
#define SROCE_FAR_LASTS 5
/* They are no queue's for sure with so many gaps and as many packets for each */
#define SROCE_FAR_SPARSE_GAPS 6
#define SROCE_FAR_SPARSE 64

/* Trains of a window that is spread */
#define SROCE_FAR_TRAIN_US 60

/* At which window losses were dense is forgotten by and by: it counts as larger by this part */
#define SROCE_FAR_FORGET 512
#define SROCE_FAR_FULL_MOST BIT(24)

/* Headers of a packet, as pace.c counts them, with a RETH */
#define SROCE_FAR_HDRS (SROCE_PACE_HDRS + SROCE_BTH_LEN + SROCE_ICRC_LEN + 16)

void sroce_far_reset(struct sroce_requester *req)
{
	memset(&req->far, 0, sizeof(req->far));
	req->far.pace.train_us = SROCE_FAR_TRAIN_US;
}

/*
 * A little faster, so that it is the window that has the last word. A path that has become shorter
 * is seen in the mean first: the window is too little used then for another minimum (window.c).
 */
void sroce_far_spread(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u64 bytes = (u64)req->window * (qp->mtu + SROCE_FAR_HDRS);
	u64 rtt = min(req->rtt.min, req->rtt.srtt);

	/* A peer holds 2048 trains behind a gap (held.c): a flight has fewer */
	req->far.pace.train_us = max_t(u64, SROCE_FAR_TRAIN_US, div_u64(rtt, 512 * NSEC_PER_USEC));
	req->far.pace.rate = 0;
	if (req->far.resent && sroce_psn_diff(req->una_psn, req->far.again) >= 0)
		req->far.resent = false;
	if (req->growth.lossy && sroce_queueing_path_is_long(req))
		req->far.pace.rate = div64_u64(bytes * NSEC_PER_SEC, max(rtt, 1ULL)) / 16 * 17;
}

void sroce_far_forget(struct sroce_requester *req)
{
	u32 full = req->far.full;

	if (full)
		req->far.full = min(full + full / SROCE_FAR_FORGET + 1, SROCE_FAR_FULL_MOST);
}

/* --- gaps -------------------------------------------------------------------------- */

void sroce_far_new_loss(struct sroce_requester *req, u32 sent)
{
	struct sroce_far *far = &req->far;

	far->first = req->una_psn;
	far->told = req->una_psn;
	far->gaps = 0;
	far->dense = false;
	far->whole = false;
	far->late = false;
	far->sure = !far->resent || sroce_psn_diff(far->first, far->again) >= 0;
	far->used = sent >= req->window / 2;
	far->lost_at = ktime_get_ns();
}

/* Packets from the first gap of the loss to what the peer misses now */
static u32 sroce_far_way(const struct sroce_requester *req)
{
	return (req->una_psn - req->far.first) & SROCE_PSN_MASK;
}

/*
 * Was the first gap of the loss filled long before what was sent again because of it can have
 * arrived? Then nothing was lost, but overtaken (as Ludwig and Katz 2000 find out). It says nothing
 * if that was sent for another loss, too.
 */
static void sroce_far_look_if_late(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_far *far = &req->far;

	if (!far->sure || !sroce_far_way(req))
		return;
	far->sure = false;
	far->late = ktime_get_ns() < far->lost_at + req->rtt.min / 2;
	if (far->late)
		sroce_window_restore(qp, far->before);
}

/* Does the loss last, because what is sent again is lost, too? Once in so many round trips */
static bool sroce_far_lasts(struct sroce_requester *req)
{
	u64 now = ktime_get_ns();

	if (now < req->far.lost_at + SROCE_FAR_LASTS * req->rtt.min)
		return false;
	req->far.lost_at = now;
	req->far.sure = false;
	return true;
}

static bool sroce_far_is_dense(const struct sroce_requester *req)
{
	const struct sroce_far *far = &req->far;

	return !far->late && !far->dense && far->gaps >= SROCE_FAR_DENSE_GAPS &&
	       sroce_far_way(req) < far->gaps * SROCE_FAR_DENSE;
}

static void sroce_far_count_gap(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_far *far = &req->far;

	/* It may be told of more than once */
	if (far->told != req->una_psn)
		far->gaps++;
	far->told = req->una_psn;
	if (!sroce_far_is_dense(req) && !sroce_far_lasts(req))
		return;
	far->dense = true;
	far->whole = true;
	far->full = req->window;
	sroce_window_too_large(qp);
}

void sroce_far_next_gap(struct sroce_qp *qp, u32 end)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_far *far = &req->far;
	u32 apart = (req->una_psn - far->from) & SROCE_PSN_MASK;

	sroce_far_count_gap(qp);
	/* If it is one in what was sent again, that was enough */
	if (!far->late && sroce_psn_diff(req->una_psn, end) >= 0)
		far->span = min(2 * max(far->span, apart), SROCE_PSN_MASK);
}

static void sroce_far_loss_over(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_far *far = &req->far;

	far->span -= far->span / 4;
	if (far->dense)
		return;
	if (!far->late && far->gaps >= SROCE_FAR_SPARSE_GAPS &&
	    sroce_far_way(req) >= far->gaps * SROCE_FAR_SPARSE)
		far->full = 0;
	if (far->used)
		sroce_window_survived(qp);
}

void sroce_far_progress(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	sroce_far_look_if_late(qp);
	if (sroce_psn_diff(req->una_psn, req->repair.lost_until) >= 0)
		sroce_far_loss_over(qp);
}

/* --- what is sent again -------------------------------------------------------------- */

u32 sroce_far_part(const struct sroce_requester *req, u32 size, u32 sent)
{
	return min(req->far.whole ? sent : max(size, req->far.span), sent);
}

static void sroce_far_resent(struct sroce_far *far, u32 end)
{
	if (!far->resent || sroce_psn_diff(end, far->again) > 0)
		far->again = end;
	far->resent = true;
}

void sroce_far_part_begins(struct sroce_requester *req)
{
	struct sroce_far *far = &req->far;

	far->from = req->una_psn;
	far->whole = false;
	far->began = ktime_get_ns();
	far->last = far->began;
	far->behind = far->from;
	sroce_far_resent(far, req->repair.end);
}

void sroce_far_all_again(struct sroce_requester *req)
{
	sroce_far_resent(&req->far, req->next_psn);
	req->far.used = false;
}

void sroce_far_part_sent(struct sroce_requester *req, const struct sroce_train *t, u64 now)
{
	struct sroce_far *far = &req->far;

	/* It was held up, and when what is before it was sent does not follow from the rest */
	if (now > far->last + req->rtt.min / 8) {
		far->from = t->psn;
		far->began = now;
	}
	far->last = now;
	far->behind = sroce_psn_add(t->psn, t->npkts);
}

/* When what the peer misses was sent again, as trains of a part leave one after the other */
static u64 sroce_far_when(const struct sroce_far *far, u32 una)
{
	u32 n = (far->behind - far->from) & SROCE_PSN_MASK;
	u32 i = (una - far->from) & SROCE_PSN_MASK;

	return far->began + div_u64((far->last - far->began) * i, max(n, 1));
}

/*
 * Is what the peer misses part of what was just sent again, or the next to leave, so that the peer
 * cannot have seen it when it asked?
 */
static bool sroce_far_was_just_sent(const struct sroce_requester *req)
{
	const struct sroce_far *far = &req->far;

	if (!(req->repair.active || req->repair.lossy) ||
	    sroce_psn_diff(req->una_psn, req->repair.end) >= 0 ||
	    sroce_psn_diff(req->una_psn, far->from) < 0)
		return false;
	if (sroce_psn_diff(req->una_psn, far->behind) >= 0)
		return req->repair.active;
	return ktime_get_ns() < sroce_far_when(far, req->una_psn) + req->rtt.min / 8 * 7;
}

/* If it is lost once more, is there a probe that finds out (probe.c)? */
static bool sroce_far_has_probe(const struct sroce_qp *qp)
{
	return qp->attr.timeout & 0x1f && READ_ONCE(qp->port->recovery.adp_retrans_en) &&
	       !qp->req.rd_outstanding;
}

/* A peer that keeps nothing asks for what it has dropped, whatever is on its way */
bool sroce_far_is_under_way(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (!sroce_queueing_path_is_long(req) || req->repair.vain ||
	    !sroce_far_has_probe(qp) || !sroce_far_was_just_sent(req))
		return false;
	if (req->repair.lossy)
		sroce_far_count_gap(qp);
	return true;
}
