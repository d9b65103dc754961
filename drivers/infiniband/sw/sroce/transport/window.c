// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How much may be in flight.
 *
 * Go-back-N repeats everything behind a loss, so the window should be no larger
 * than the path needs: it starts small, and doubles per round trip while it is
 * what holds the sender back and the round trip has not grown, that is, while
 * packets do not queue. A loss halves it, and from there it grows slowly: where
 * losses are frequent a large window is mostly sent in vain. (Round trip against
 * its minimum: as TCP Vegas, Brakmo and Peterson 1995.)
 *
 * requester_train.c keeps to it; retransmit.c tells of what was acknowledged or lost.
 */
#include <linux/ktime.h>

#include "transport/congestion.h"
#include "transport/requester.h"
#include "transport/rtt.h"
#include "transport/trace.h"
#include "transport/window.h"
#include "txq.h"

#define SROCE_WINDOW_START (256 * 1024)
#define SROCE_WINDOW_MOST (16 * 1024 * 1024)
#define SROCE_WINDOW_LEAST_PACKETS 16

/* The window after a round trip that has shown that there is room for more */
static u32 sroce_window_larger(const struct sroce_requester *req)
{
	if (!req->growth.lossy)
		return 2 * req->window;
	return req->window + max_t(u32, SROCE_TRAIN_STUMP, req->window / 8);
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
	if (growth->limited && ns < 2 * growth->min)
		sroce_window_set(qp, sroce_window_larger(req));
}

void sroce_window_lost(struct sroce_qp *qp)
{
	sroce_window_set(qp, qp->req.window / 2);
	qp->req.growth.lossy = true;
	sroce_congestion_lost(qp);
}
