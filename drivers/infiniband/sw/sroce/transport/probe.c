// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A tail that is lost. A gap tells of itself: the peer sends a NAK when something comes
 * behind it. When what is missing is the end of all that was sent, or the NAK was lost,
 * nobody says anything, and only the ACK timeout helps, which consumers choose a thousand
 * times as long as a round trip. So the last packet is sent once more, after about two
 * round trips without an answer (TCP's tail loss probe, RFC 8985 section 7). The standard
 * has an answer to it in each case: an ACK, when all of it had come (IBA 9.7.5.1.1, a
 * duplicate); an ACK, when just this one was missing; a NAK, when more was.
 *
 * Each next one waits twice as long, until the timeout comes first: TCP has one only, but
 * its timeout is a few round trips. There is none where a packet more could say nothing
 * new: while something is being sent again anyhow and the window has room, or the peer has
 * to answer READs or atomics first, which take their time. They do not use up retries, and
 * the timeout is what it was.
 *
 * retransmit.c, which has the requester's timer, comes here.
 */
#include "path.h"
#include "transport/internal.h"
#include "transport/probe.h"
#include "transport/requester.h"
#include "transport/run.h"
#include "transport/trace.h"

/* Below this a softirq of the peer that was held back would count as a loss */
#define SROCE_PROBE_LEAST_NS NSEC_PER_MSEC

/* RFC 8985 7.2 has 2 * SRTT and a peer's longest delay of ACKs; that one is in the deviation */
static u64 sroce_probe_wait_ns(const struct sroce_rtt *rtt)
{
	return max(2 * rtt->srtt + 4 * rtt->rttvar, SROCE_PROBE_LEAST_NS);
}

/* Return: when the timer is to fire for it, or U64_MAX, because the timeout comes first */
static u64 sroce_probe_after(struct sroce_requester *req, u64 now, u64 wait)
{
	struct sroce_probe *p = &req->probe;

	if (now + wait >= req->deadline)
		return U64_MAX;
	p->psn = req->next_psn;
	p->wait = wait;
	p->at = now + wait;
	return p->at;
}

u64 sroce_probe_plan(struct sroce_qp *qp, u64 now)
{
	struct sroce_requester *req = &qp->req;

	/* What goes to a QP of this host is not lost */
	if (!qp->kind->acked || READ_ONCE(qp->path->direct_ifindex))
		return U64_MAX;
	if (req->rtt.srtt)
		return sroce_probe_after(req, now, sroce_probe_wait_ns(&req->rtt));
	/* Nothing has ever come back, of several tries: others may fill a queue on the way */
	if (req->growth.silent)
		return sroce_probe_after(req, now, max((req->deadline - now) / 16,
						       SROCE_PROBE_LEAST_NS));
	return U64_MAX;
}

static bool sroce_probe_is_of(const struct sroce_swqe *slot)
{
	return slot->state == SROCE_SWQE_SENT && slot->status == IB_WC_SUCCESS &&
	       (slot->op == SROCE_OP_SEND || slot->op == SROCE_OP_WRITE);
}

/* Was the last packet one in the middle of a work request, where the window had no room? */
static bool sroce_probe_is_within(const struct sroce_requester *req)
{
	const struct sroce_swqe *slot;

	if (req->send == req->fetched)
		return false;
	slot = sroce_swqe_at(req, req->send);
	return sroce_probe_is_of(slot) && slot->first_psn != req->send_psn;
}

/* Was it the end of a work request? */
static bool sroce_probe_is_end(const struct sroce_requester *req)
{
	const struct sroce_swqe *slot;

	if (req->send == req->ring.index)
		return false;
	slot = sroce_swqe_at(req, req->send - 1);
	return sroce_probe_is_of(slot) && sroce_swqe_end(slot) == req->send_psn;
}

/* Is nothing left to send, or nothing of what is sent again while that is not answered? */
static bool sroce_probe_waits(const struct sroce_requester *req)
{
	u32 out = sroce_requester_outstanding(req);

	return req->send_psn == req->next_psn ||
	       (out && sroce_requester_window_ends(req, out));
}

static bool sroce_probe_may(const struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;

	return sroce_probe_waits(req) && !req->probe.back &&
	       req->una_psn != req->next_psn && !req->rnr_wait &&
	       !req->rd_outstanding && !req->half.starved &&
	       (!req->repair.active || req->send_psn != req->next_psn);
}

/*
 * A measurement goes on: of an answer to the probe it finds a round trip that is too long,
 * never one too short, and where round trips have become longer it is what finds out, by
 * and by: most often something was lost (window.c).
 */
static void sroce_probe_go_back(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	req->probe.back = true;
	req->growth.probed = true;
	if (!sroce_probe_is_within(req))
		req->send--;
	req->send_psn = sroce_psn_add(req->send_psn, -1);
	sroce_qp_count(qp, SROCE_CNT_ROCE_ADP_RETRANS, 1);
	trace_sroce_retransmit(qp, SROCE_CNT_ROCE_ADP_RETRANS);
	sroce_half_queue(&req->half);
}

u64 sroce_probe_look(struct sroce_qp *qp, u64 now)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_probe *p = &req->probe;

	if (!p->at)
		return U64_MAX;
	if (now < p->at)
		return p->at;
	p->at = 0;
	/* The last packet has not been under way for as long as that */
	if (p->psn != req->next_psn)
		return sroce_probe_after(req, now, p->wait);
	if (sroce_probe_may(qp) &&
	    (sroce_probe_is_within(req) || sroce_probe_is_end(req)))
		sroce_probe_go_back(qp);
	return sroce_probe_after(req, now, 2 * p->wait);
}
