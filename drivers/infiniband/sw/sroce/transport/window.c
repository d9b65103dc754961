// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How much may be in flight.
 *
 * The window starts small, and doubles per round trip while it is what holds the sender
 * back and the round trip has not grown, that is, while packets do not queue. From the
 * first loss on it is the round trip that tells what losses are, and how fast the window
 * may grow (as TCP Veno, Fu and Liew 2003): near its minimum no packets queue, so what
 * was lost was lost for another reason, and there is room for much more; far from it,
 * queues are filling, a loss halves the window, and it grows by little, so that all who
 * share a queue that is shallow come to fair shares of it and seldom overrun it.
 *
 * A peer that needs everything behind a loss again is not to have much in flight where
 * losses are frequent: with it each loss halves the window.
 *
 * requester_train.c keeps to it; retransmit.c tells of what was acknowledged or lost.
 */
#include <linux/ktime.h>

#include "transport/congestion.h"
#include "transport/repair.h"
#include "transport/requester.h"
#include "transport/rtt.h"
#include "transport/trace.h"
#include "transport/window.h"
#include "txq.h"

#define SROCE_WINDOW_START (64 * 1024)
/* So much is tried whatever the round trip: a processor that is slow likes long trains */
#define SROCE_WINDOW_TRIED (256 * 1024)
#define SROCE_WINDOW_MOST (16 * 1024 * 1024)
/* Half of them can be sent again, and the other half tell of that (repair.c) */
#define SROCE_WINDOW_LEAST_PACKETS 4

/* Where packets were lost: part of the window that it grows by per round trip */
#define SROCE_WINDOW_GROW_FAST 8
#define SROCE_WINDOW_GROW_SLOW 32
/* ... and that it gives up for a loss that is none of a queue */
#define SROCE_WINDOW_LOSE_LITTLE 8
/* Queues longer than this are somebody else's, or too long to be filled */
#define SROCE_WINDOW_QUEUE_NS (2 * NSEC_PER_MSEC)

/*
 * By the newest round trip, do packets queue for less than that part of the shortest one?
 * On a long path that part would be more than a shallow queue is: half a millisecond is
 * the end of a quarter.
 */
static bool sroce_window_path_is_free(const struct sroce_requester *req, u32 quarters)
{
	u64 quarter = min(req->rtt.min / 4, NSEC_PER_MSEC / 2);

	return req->growth.last && req->growth.last < req->rtt.min + quarters * quarter;
}

/* The window after a round trip that has shown that there is room for more */
static u32 sroce_window_larger(const struct sroce_requester *req)
{
	u32 part = SROCE_WINDOW_GROW_SLOW;

	if (!req->growth.lossy)
		return 2 * req->window;
	if (sroce_window_path_is_free(req, 1))
		part = SROCE_WINDOW_GROW_FAST;
	return req->window + max(req->window / part, 1);
}

/*
 * Is the round trip one that leaves room for more? Where it has been long for a while,
 * because of others, or because the peer takes its time, that is what it is compared with.
 */
static bool sroce_window_may_grow(const struct sroce_qp *qp, u64 ns)
{
	const struct sroce_requester *req = &qp->req;

	if (!req->growth.limited)
		return false;
	if (ns < 2 * req->growth.min)
		return true;
	if (!req->growth.lossy)
		return req->window < SROCE_WINDOW_TRIED / qp->mtu;
	return ns < req->rtt.min + SROCE_WINDOW_QUEUE_NS;
}

static void sroce_window_set(struct sroce_qp *qp, u32 packets)
{
	struct sroce_requester *req = &qp->req;

	req->window = clamp_t(u32, packets, SROCE_WINDOW_LEAST_PACKETS,
			      SROCE_WINDOW_MOST / qp->mtu);
	/* Behind netem or a slow link all that is on its way may be in a queue here */
	sroce_txq_set_limit(qp->txq, max_t(u32, SROCE_TXQ_BYTES,
					   4 * req->window * qp->mtu));
	trace_sroce_window(qp);
}

void sroce_window_init(struct sroce_qp *qp)
{
	memset(&qp->req.growth, 0, sizeof(qp->req.growth));
	sroce_rtt_reset(&qp->req.rtt);
	sroce_window_set(qp, SROCE_WINDOW_START / qp->mtu);
}

/* Is a measurement to begin? One that does not count for the window gives way to one that does */
static bool sroce_window_wants_rtt(const struct sroce_requester *req, bool used)
{
	if (sroce_rtt_measures(&req->rtt))
		return used && !req->growth.used;
	return used || sroce_rtt_due(&req->rtt);
}

void sroce_window_sent(struct sroce_requester *req)
{
	/* With less than half of the window under way its size does not matter */
	bool used = sroce_requester_outstanding(req) >= req->window / 2;

	if (!sroce_window_wants_rtt(req, used))
		return;
	sroce_rtt_begin(&req->rtt, req->send_psn, ktime_get_ns());
	req->growth.used = used;
	req->growth.limited = false;
}

void sroce_window_acked(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_growth *growth = &req->growth;
	u64 ns;

	if (!sroce_rtt_ends(&req->rtt, req->una_psn))
		return;
	ns = sroce_rtt_end(&req->rtt, ktime_get_ns());
	if (!growth->used)
		return;
	/* A route may become longer: forget the minimum slowly */
	growth->min += growth->min / 64;
	if (!growth->min || ns < growth->min)
		growth->min = ns;
	growth->last = ns;
	if (sroce_window_may_grow(qp, ns))
		sroce_window_set(qp, sroce_window_larger(req));
}

void sroce_window_lost(struct sroce_qp *qp, bool told)
{
	struct sroce_requester *req = &qp->req;
	u32 part = 2;

	if (told && sroce_repair_helps(qp) && sroce_window_path_is_free(req, 2))
		part = SROCE_WINDOW_LOSE_LITTLE;
	sroce_window_set(qp, req->window - max(req->window / part, 1));
	req->growth.lossy = true;
	sroce_congestion_lost(qp);
}
