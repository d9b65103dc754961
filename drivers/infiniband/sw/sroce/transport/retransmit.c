// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Lost packets: when to go back, how often, and the requester's timer, which also has it
 * run when a rate lets it send again (pace.c).
 *
 * The timer is set while something is in flight. Each ACK sets it to a later time, which
 * is a store (timer.c).
 */
#include <linux/ktime.h>

#include "compat.h"
#include "transport/early.h"
#include "transport/far.h"
#include "transport/gap.h"
#include "transport/internal.h"
#include "transport/probe.h"
#include "transport/repair.h"
#include "transport/requester_complete.h"
#include "transport/retransmit.h"
#include "transport/rnr.h"
#include "transport/rtt.h"
#include "transport/run.h"
#include "transport/trace.h"
#include "transport/window.h"
#include "turn.h"

/*
 * Below this a timeout would fire because the scheduler held a peer's softirq
 * back, not because a packet was lost (IBA allows T to 4T anyway).
 */
#define SROCE_MIN_TIMEOUT_NS (4 * NSEC_PER_MSEC)

/* Delays below this grow while a peer stays not ready */
#define SROCE_RNR_GROWN_NS NSEC_PER_MSEC

/*
 * Restarts for one lost response that need not wait for one another. The others wait for two
 * round trips at first, which are at least so long, then for twice as long each time, at most
 * so long
 */
#define SROCE_ASK_AT_ONCE 4
#define SROCE_ASK_LEAST_NS NSEC_PER_MSEC
#define SROCE_ASK_MOST_NS NSEC_PER_SEC

/* A tail is asked after so much later than it could be: a timer is seldom set for it */
#define SROCE_PROBE_SLACK_NS (4 * NSEC_PER_MSEC)

/*
 * How long a type of QP without ACKs waits for a queue below that lets go of nothing,
 * before its packets are lost as in any queue that is full
 */
#define SROCE_STALL_NS NSEC_PER_SEC

/* Local ACK timeout in ns: 4.096 us * 2^t, 0 for none (IBA 9.7.6.1.3) */
static u64 sroce_requester_timeout_ns(const struct sroce_qp *qp)
{
	u8 t = qp->attr.timeout & 0x1f;

	return t ? max_t(u64, 4096ULL << t, SROCE_MIN_TIMEOUT_NS) : 0;
}

void sroce_requester_wake_at(struct sroce_requester *req, u64 at)
{
	if (sroce_timer_latest(&req->timer) > at)
		sroce_timer_start(&req->timer, at);
}

/*
 * Fire for the deadline, and before that for @probe, which is in no hurry: slack saves
 * interrupts. What stands for a rate or a restart stays as it is, unless this comes first.
 */
static void sroce_requester_wake_for(struct sroce_requester *req, u64 probe)
{
	u64 at = min(probe, req->deadline);

	if (unlikely(req->pace.wake || req->ask_due))
		sroce_requester_wake_at(req, at);
	else
		sroce_timer_start_range(&req->timer, at,
					min(SROCE_PROBE_SLACK_NS,
					    (req->deadline - at) / 2));
}

static bool sroce_requester_in_flight(const struct sroce_requester *req)
{
	return req->send_psn != req->una_psn;
}

/*
 * How long to wait for the next ACK: the more timeouts came in a row the longer, within
 * the T to 4T that IBA 9.7.6.1.3 allows. An ACK that is late because a machine is
 * overloaded does not come sooner for more packets.
 */
static u64 sroce_requester_next_timeout_ns(const struct sroce_qp *qp)
{
	u8 used = qp->attr.retry_cnt - min(qp->req.retries, qp->attr.retry_cnt);

	if (!qp->kind->acked)
		return SROCE_STALL_NS;
	return sroce_requester_timeout_ns(qp) << min_t(u8, used, 2);
}

void sroce_requester_arm(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u64 ns = sroce_requester_next_timeout_ns(qp);
	u64 now;

	if (req->deadline || !ns)
		return;
	now = ktime_get_ns();
	req->deadline = now + ns;
	sroce_requester_wake_for(req, sroce_probe_arm(qp, now));
}

void sroce_requester_progress(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->rnr_naks = 0;
	sroce_early_progress(qp);
	req->asked = 0;
	req->ask_at = 0;
	req->ask_due = false;
	/* The peer has taken what it was not ready for: the wait is over */
	req->rnr_wait = false;
	if (req->recovering &&
	    sroce_psn_diff(req->una_psn, req->recover) > 0)
		req->recovering = false;
	sroce_repair_progress(qp);
	sroce_window_acked(qp);
	sroce_probe_cancel(req);
	req->deadline = 0;
	if (sroce_requester_in_flight(req))
		sroce_requester_arm(qp);
}

void sroce_requester_rewind(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	sroce_rtt_cancel(&req->rtt);
	sroce_probe_cancel(req);
	req->ask_due = false;
	sroce_early_restart(req);
	req->repair.active = false;
	req->repair.end = req->una_psn;
	req->repair.asked = false;
	req->repair.expected = false;
	req->send = req->ring.index;
	req->send_psn = req->una_psn;
	req->rd_outstanding = 0;
}

/*
 * A packet that is lost again and again uses the retries up, but with NAKs no
 * faster than with a silent peer: one loss on a network that reorders or repeats
 * packets may cause a burst of them, and a peer that sends NAKs is alive.
 */
static bool sroce_requester_may_retry(struct sroce_qp *qp,
				      enum sroce_counter why)
{
	struct sroce_requester *req = &qp->req;
	u64 pace = sroce_requester_timeout_ns(qp) ?: SROCE_MIN_TIMEOUT_NS;
	u64 now = ktime_get_ns();

	if (why != SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR &&
	    now - req->retried < pace)
		return true;
	if (!req->retries)
		return false;
	req->retries--;
	req->retried = now;
	return true;
}

/* From here on a gap is one of the repeated stream (gap.h) */
static void sroce_requester_recover(struct sroce_requester *req)
{
	req->recovering = true;
	req->recover = req->una_psn;
	sroce_gap_begin(&req->gap, req->next_psn);
	req->deadline = 0;
}

void sroce_requester_go_back(struct sroce_qp *qp)
{
	sroce_repair_begin(qp);
	sroce_requester_recover(&qp->req);
}

void sroce_requester_restart(struct sroce_qp *qp, enum sroce_counter why)
{
	struct sroce_requester *req = &qp->req;

	/* Everything is sent again anyhow when the receiver has had its time */
	if (req->rnr_wait)
		return;
	sroce_qp_count(qp, why, 1);
	trace_sroce_retransmit(qp, why);
	if (!sroce_requester_may_retry(qp, why)) {
		sroce_qp_count(qp, SROCE_CNT_REQ_TRANSPORT_RETRIES_EXCEEDED, 1);
		sroce_requester_fail(qp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	/* Gaps of one round trip are one loss */
	if (why == SROCE_CNT_PACKET_SEQ_ERR) {
		if (!sroce_repair_goes_on(qp))
			sroce_window_lost(qp, sroce_repair_may(qp));
		sroce_requester_go_back(qp);
		return;
	}
	sroce_window_lost(qp, false);
	if (why == SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR)
		sroce_window_silent(qp);
	sroce_far_all_again(req);
	sroce_requester_rewind(qp);
	sroce_requester_recover(req);
}

u64 sroce_requester_ask_least_ns(const struct sroce_requester *req)
{
	return max(2 * req->rtt.srtt, SROCE_ASK_LEAST_NS);
}

/*
 * Each ACK of a request that was sent again may tell of the lost response anew, and each
 * restart bring several such ACKs: with a peer that does not answer the READ at all they
 * would multiply until retries are used up.
 */
static u64 sroce_requester_ask_wait_ns(const struct sroce_requester *req)
{
	u64 ns = sroce_requester_ask_least_ns(req);

	if (req->asked < SROCE_ASK_AT_ONCE)
		return 0;
	return min(ns << min(req->asked - SROCE_ASK_AT_ONCE, 10), SROCE_ASK_MOST_NS);
}

void sroce_requester_ask_later(struct sroce_requester *req, u64 at)
{
	req->ask_at = at;
	req->ask_due = true;
	sroce_requester_wake_at(req, at);
}

bool sroce_requester_may_ask_again(struct sroce_requester *req)
{
	if (ktime_get_ns() >= req->ask_at)
		return true;
	sroce_requester_ask_later(req, req->ask_at);
	return false;
}

void sroce_requester_ask_without_timeout(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u64 at = ktime_get_ns() + sroce_requester_ask_least_ns(req);

	if (!sroce_requester_timeout_ns(qp) && !req->ask_due)
		sroce_requester_ask_later(req, max(req->ask_at, at));
}

void sroce_requester_ask_again(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_gap gap = req->gap;

	sroce_early_ask(req);
	req->asked = min(req->asked + 1, U8_MAX);
	req->ask_at = ktime_get_ns() + sroce_requester_ask_wait_ns(req);
	sroce_requester_restart(qp, SROCE_CNT_IMPLIED_NAK_SEQ_ERR);
	/* The rest of the stream that has the gap may still come */
	if (req->early.open)
		req->gap = gap;
	/* Nothing else may be under way that would tell that this is lost, too */
	if (req->asked == 1 && sroce_qp_state(qp) != IB_QPS_ERR)
		sroce_requester_ask_without_timeout(qp);
}

/*
 * The peer names the shortest delay. One of 10 us again and again would keep
 * this CPU in softirqs, and on the same host keep the peer's process from
 * posting at all, so each in a row is twice the last: at worst the message waits
 * as long again as it had to.
 */
static u64 sroce_requester_rnr_ns(const struct sroce_requester *req, u8 code)
{
	u64 ns = sroce_rnr_ns(code);

	return max(ns, min_t(u64, ns << req->rnr_naks, SROCE_RNR_GROWN_NS));
}

void sroce_requester_rnr_wait(struct sroce_qp *qp, u8 code)
{
	struct sroce_requester *req = &qp->req;
	u64 ns = sroce_requester_rnr_ns(req, code);

	if (req->rnr_naks < 7)
		req->rnr_naks++;
	/* Retries are for a peer that is silent. This one is not, and counts for itself. */
	req->retries = qp->attr.retry_cnt;
	sroce_far_all_again(req);
	sroce_requester_rewind(qp);
	req->rnr_wait = true;
	req->deadline = ktime_get_ns() + ns;
	sroce_requester_wake_at(req, req->deadline);
	trace_sroce_rnr_wait(qp, ns);
}

/*
 * Do packets go on leaving the queues of this host? What stands behind them is late, and not
 * lost; nor could it be sent again before these have gone.
 */
static bool sroce_requester_drains(struct sroce_qp *qp)
{
	int bytes = sroce_txq_bytes(qp->txq);
	bool less = bytes < qp->req.queued;

	qp->req.queued = bytes;
	return less;
}

/*
 * The deadline has passed. Packets that hang in a queue of this host are as lost
 * as those that no ACK comes for.
 */
static void sroce_requester_timed_out(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	/* What a probe is about to send once more, when its rate lets it, was sent before */
	bool silent = sroce_requester_in_flight(req) || req->probe.back;

	req->deadline = 0;
	if (req->rnr_wait)
		req->rnr_wait = false;
	else if (!qp->kind->acked)
		req->half.stalled = req->half.starved;
	else if (!list_empty(&req->half.inbox))
		sroce_requester_arm(qp); /* a peer on this host has answered */
	else if (req->half.starved && sroce_requester_drains(qp))
		sroce_requester_arm(qp);
	else if (silent || req->half.starved)
		sroce_requester_restart(qp, SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR);
	sroce_half_queue(&req->half);
}

/* A restart was put off: is it time for it? */
static void sroce_requester_look_to_ask(struct sroce_qp *qp, u64 now)
{
	struct sroce_requester *req = &qp->req;

	/* A peer on this host has answered, or what was sent again has not left yet */
	if (now >= req->ask_at &&
	    (!list_empty(&req->half.inbox) || req->half.starved))
		req->ask_at = now + SROCE_ASK_LEAST_NS;
	if (now < req->ask_at) {
		sroce_requester_wake_at(req, req->ask_at);
		return;
	}
	req->ask_due = false;
	/* All is sent again anyhow when pages, or the receiver, are there */
	if (req->rnr_wait || sroce_qp_state(qp) == IB_QPS_ERR)
		return;
	sroce_requester_ask_again(qp);
	sroce_half_queue(&req->half);
}

/* One timer for several: see what it has fired for, and when it is to fire again */
static void sroce_requester_timer_look(struct sroce_qp *qp, u64 now)
{
	struct sroce_requester *req = &qp->req;

	if (req->deadline && now >= req->deadline)
		sroce_requester_timed_out(qp);
	else if (req->deadline)
		sroce_requester_wake_for(req, sroce_probe_look(qp, now));
	if (req->ask_due)
		sroce_requester_look_to_ask(qp, now);
	if (!req->pace.wake)
		return;
	if (now < req->pace.wake) {
		sroce_requester_wake_at(req, req->pace.wake);
		return;
	}
	req->pace.wake = 0;
	sroce_half_queue(&req->half);
}

static void sroce_requester_timer_fired(struct sroce_timer *timer)
{
	struct sroce_qp *qp = container_of(timer, struct sroce_qp, req.timer);
	struct sroce_requester *req = &qp->req;

	spin_lock(&req->half.lock);
	if (!qp->dead)
		sroce_requester_timer_look(qp, ktime_get_ns());
	spin_unlock(&req->half.lock);
}

void sroce_requester_timer_init(struct sroce_requester *req)
{
	sroce_timer_init(&req->timer, sroce_requester_timer_fired);
}
