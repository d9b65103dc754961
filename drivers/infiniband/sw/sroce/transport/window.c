// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How much may be in flight.
 *
 * The window starts small, and doubles per round trip while it is what holds the sender
 * back and the round trip has not grown, that is, while packets do not queue; beyond what is
 * tried in any case, while that makes a stream faster as well (trial.c).
 *
 * From the first loss on it is the round trip that tells what losses are, and how fast the window
 * may grow (as TCP Veno, Fu and Liew 2003): near its minimum no packets queue, so what
 * was lost was lost for another reason, and there is room for much more; far from it,
 * queues are filling, a loss halves the window, and it grows by little, so that all who
 * share a queue that is shallow come to fair shares of it and seldom overrun it.
 *
 * Where a queue is known that overflows (queueing.c), only who is far from its end may take a
 * loss for a stray one, or grow fast; near it everybody grows by the same few bytes a round
 * trip, with which rates become equal (Chiu and Jain 1989), and of which there are many until
 * the next overflow. Where there are so many senders that four packets are more than a share, a
 * share is less. And trains are small there, so that not one of them alone overruns what has
 * room for all windows.
 *
 * There may be a loss in each flight of a long path, and so no round trip without one: then the
 * time until the peer answers what it is sent again is as good. What losses are there far.c finds
 * out: the window loses next to nothing for them, or a third, and grows by half, or by little.
 *
 * Where everything behind a loss is sent again, because the peer needs it or nobody knows
 * what it needs, not much is to be in flight while losses are frequent: such a loss halves
 * the window.
 *
 * requester_train.c keeps to it; retransmit.c tells of what was acknowledged or lost.
 */
#include <linux/ktime.h>

#include "transport/congestion.h"
#include "transport/far.h"
#include "transport/queueing.h"
#include "transport/requester.h"
#include "transport/rtt.h"
#include "transport/trace.h"
#include "transport/trial.h"
#include "transport/window.h"
#include "txq.h"

#define SROCE_WINDOW_START (64 * 1024)
/* So much is tried whatever the round trip: a processor that is slow likes long trains */
#define SROCE_WINDOW_TRIED (256 * 1024)
#define SROCE_WINDOW_MOST (16 * 1024 * 1024)

/* Half of them can be sent again, and the other half tell of that (repair.c) */
#define SROCE_WINDOW_LEAST_PACKETS 4U

/* Where packets were lost: part of the window that it grows by per round trip */
#define SROCE_WINDOW_GROW_FAST 8
#define SROCE_WINDOW_GROW_SLOW 32
/* ... or bytes, or this part, if it is more, while a queue is nearly full */
#define SROCE_WINDOW_GROW_BYTES 96
#define SROCE_WINDOW_GROW_PART 128
/* ... on a long path */
#define SROCE_WINDOW_GROW_FAR 512
#define SROCE_WINDOW_GROW_FAR_BYTES 2048
/* ... and that it gives up for a loss that is none of a queue */
#define SROCE_WINDOW_LOSE_LITTLE 8
/* ... on a long path */
#define SROCE_WINDOW_LOSE_LEAST 32
/* ... where much was lost there */
#define SROCE_WINDOW_LOSE_FAR 3
/* ... as often as no newer round trip was measured meanwhile */
#define SROCE_WINDOW_BLIND_MOST 4
/* Trains that a window has at the least where a queue is known */
#define SROCE_WINDOW_TRAINS 8

/*
 * What comes as one train is answered as one, and leaves again as one: so of several senders
 * one or the other would find a queue full that has room for all windows. Small trains are
 * answered, and so sent, as fast as the queue is emptied.
 */
u32 sroce_window_train(const struct sroce_requester *req)
{
	if (!sroce_queueing_is_known(req))
		return U32_MAX;
	return max(req->window / SROCE_WINDOW_TRAINS, 1);
}

/* Packets by which it grows for all that has been given to it by and by */
static u32 sroce_window_grow_by(struct sroce_qp *qp, u32 bytes)
{
	struct sroce_growth *growth = &qp->req.growth;
	u32 n = (growth->part + bytes) / qp->mtu;

	growth->part += bytes - n * qp->mtu;
	return n;
}

/*
 * ... on a long path after losses: by little, each of those who share a queue by the same. But by
 * half while nothing queues, up to near the size at which losses were dense.
 */
static u32 sroce_window_larger_far(struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;
	u32 window = req->window, most = window + window / 2;
	u32 slow = window + sroce_window_grow_by(qp,
		max_t(u32, window * qp->mtu / SROCE_WINDOW_GROW_FAR,
		      SROCE_WINDOW_GROW_FAR_BYTES));

	sroce_far_forget(&qp->req);
	if (!sroce_queueing_path_is_free(qp, 1))
		return slow;
	return max(min(sroce_far_known(req), most), slow);
}

/* The window after a round trip that has shown that there is room for more */
static u32 sroce_window_larger(struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;
	u32 window = req->window;
	u32 part = SROCE_WINDOW_GROW_SLOW;

	if (!req->growth.lossy)
		return 2 * window;
	if (sroce_queueing_is_filling(req))
		return window + sroce_window_grow_by(qp,
			max_t(u32, window * qp->mtu / SROCE_WINDOW_GROW_PART,
			      SROCE_WINDOW_GROW_BYTES));
	if (sroce_queueing_path_is_long(req))
		return sroce_window_larger_far(qp);
	if (sroce_queueing_path_is_free(qp, 1))
		part = SROCE_WINDOW_GROW_FAST;
	return window + max(window / part, 1);
}

/*
 * Is the round trip one that leaves room for more? Where it has been long for a while,
 * because of others, or because the peer takes its time, there is for what is little anyhow.
 */
static bool sroce_window_may_grow(struct sroce_qp *qp, u64 ns)
{
	struct sroce_requester *req = &qp->req;
	u64 min = req->rtt.min;

	if (!req->growth.limited)
		return false;
	if (!req->growth.lossy)
		return req->window < SROCE_WINDOW_TRIED / qp->mtu ||
		       (ns < 2 * req->growth.min && sroce_trial_pays(req, ns));
	if (ns < min + max(min, SROCE_QUEUEING_LONG_NS))
		return true;
	return ns < 2 * req->growth.min && req->window < SROCE_WINDOW_START / qp->mtu;
}

static void sroce_window_set(struct sroce_qp *qp, u32 packets)
{
	struct sroce_requester *req = &qp->req;

	req->window = clamp_t(u32, packets, 1, SROCE_WINDOW_MOST / qp->mtu);
	sroce_far_spread(qp);
	/* Behind netem or a slow link all that is on its way may be in a queue here */
	sroce_txq_set_limit(qp->txq, max_t(u32, SROCE_TXQ_BYTES,
					   4 * req->window * qp->mtu));
	trace_sroce_window(qp);
}

void sroce_window_init(struct sroce_qp *qp)
{
	memset(&qp->req.growth, 0, sizeof(qp->req.growth));
	memset(&qp->req.trial, 0, sizeof(qp->req.trial));
	memset(&qp->req.queueing, 0, sizeof(qp->req.queueing));
	sroce_far_reset(&qp->req);
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

static void sroce_window_measure(struct sroce_requester *req, u32 psn, bool used, bool again)
{
	sroce_rtt_begin(&req->rtt, psn, ktime_get_ns());
	sroce_trial_begin(req);
	req->growth.used = used;
	req->growth.again = again;
	req->growth.probed = false;
	req->growth.limited = false;
}

void sroce_window_sent(struct sroce_requester *req)
{
	/* With less than half of the window under way its size does not matter */
	bool used = sroce_requester_outstanding(req) >= req->window / 2;

	if (sroce_window_wants_rtt(req, used))
		sroce_window_measure(req, req->send_psn, used, false);
}

void sroce_window_repairs(struct sroce_requester *req, u32 psn, u32 sent)
{
	if (sroce_queueing_path_is_long(req))
		sroce_window_measure(req, psn, sent >= req->window / 2, true);
}

/*
 * The round trip that ends now. If it is of packets that were sent again, the first ones may
 * have been late only, and then it looks shorter than any (Karn and Partridge 1987). If what it
 * waits for was asked after, it looks longer than any where that was lost, and would
 * have the next tail wait for as long; only where round trips have become longer it
 * is true. So it counts as twice the mean at most.
 */
static u64 sroce_window_round_trip(struct sroce_requester *req)
{
	u64 now = ktime_get_ns();

	if (req->growth.again)
		now = max(now, req->rtt.at + req->rtt.min);
	if (req->growth.probed && req->rtt.srtt)
		now = min(now, req->rtt.at + 2 * req->rtt.srtt);
	return sroce_rtt_end(&req->rtt, now);
}

static void sroce_window_find_min(struct sroce_requester *req, u64 ns)
{
	struct sroce_growth *growth = &req->growth;

	/* A route may become longer: forget the minimum slowly */
	growth->min += growth->min / 64;
	if (!growth->min || ns < growth->min)
		growth->min = ns;
	sroce_rtt_find_min(&req->rtt, ns);
}

/* To what was enough, when more has not made it faster; or to the beginning */
static void sroce_window_go_back(struct sroce_qp *qp)
{
	u32 window = sroce_trial_window(&qp->req, SROCE_WINDOW_TRIED / qp->mtu);

	if (window != qp->req.window)
		sroce_window_set(qp, window);
}

void sroce_window_acked(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_growth *growth = &req->growth;
	u64 ns;

	growth->silent = 0;
	if (!sroce_rtt_ends(&req->rtt, req->una_psn))
		return;
	ns = sroce_window_round_trip(req);
	sroce_far_spread(qp);
	if (!growth->used)
		return;
	if (!growth->again)
		sroce_window_find_min(req, ns);
	sroce_queueing_add(&req->queueing, ns);
	growth->blind = 0;
	growth->doubled = false;
	/* Of several gaps each takes a round trip, in which not more is sent than in one */
	if (!sroce_window_may_grow(qp, ns) || req->repair.lossy) {
		if (!growth->lossy)
			sroce_window_go_back(qp);
		return;
	}
	growth->doubled = !growth->lossy;
	sroce_window_set(qp, sroce_window_larger(qp));
}

/* Was it lost for another reason than a queue that is full? */
static bool sroce_window_loss_is_stray(const struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;

	if (sroce_queueing_is_known(req))
		return !sroce_queueing_is_full(req);
	return sroce_queueing_path_is_free(qp, 2);
}

/* Is it a long path, and the window one at which much was lost there? */
static bool sroce_window_is_near_full(const struct sroce_requester *req)
{
	return req->window > sroce_far_known(req);
}

/*
 * What the newest round trip says is true no more of a window that was doubled then, nor
 * after many losses: while each flight loses something, none is measured.
 */
void sroce_window_lost(struct sroce_qp *qp, bool partly)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_growth *growth = &req->growth;
	u32 least = min(req->window, SROCE_WINDOW_LEAST_PACKETS);
	u32 part = 2;

	req->far.before = req->window;
	/* Lost at less than where much was lost: it is no more that there is room for */
	if (partly)
		req->far.full = min(req->far.full, req->window);
	if (sroce_queueing_is_full(req))
		least = 1;
	if (partly && !growth->doubled && growth->blind < SROCE_WINDOW_BLIND_MOST &&
	    sroce_window_loss_is_stray(qp))
		part = sroce_queueing_path_is_long(req) && !sroce_window_is_near_full(req) ?
		       SROCE_WINDOW_LOSE_LEAST : SROCE_WINDOW_LOSE_LITTLE;
	/* A timeout says nothing about a queue, and who sends all of it again overruns many */
	if (partly)
		sroce_queueing_overflows(&req->queueing);
	growth->blind = min(growth->blind + 1, SROCE_WINDOW_BLIND_MOST);
	growth->doubled = false;
	growth->lossy = true;
	sroce_window_set(qp, max(req->window - max(req->window / part, 1), least));
	sroce_congestion_lost(qp);
}

void sroce_window_too_large(struct sroce_qp *qp)
{
	u32 window = qp->req.window;
	u32 least = min(window, SROCE_WINDOW_LEAST_PACKETS);

	sroce_window_set(qp, max(window - window / SROCE_WINDOW_LOSE_FAR, least));
}

void sroce_window_restore(struct sroce_qp *qp, u32 window)
{
	if (window > qp->req.window)
		sroce_window_set(qp, window);
}

void sroce_window_survived(struct sroce_qp *qp)
{
	if (!sroce_window_is_near_full(&qp->req) &&
	    sroce_queueing_path_is_free(qp, 1))
		sroce_window_set(qp, sroce_window_larger_far(qp));
	/* Whether it was larger or not, that was the growth of this round trip */
	qp->req.growth.limited = false;
}

/*
 * A queue that others keep full has room for one packet sooner than for four (RFC 5681 3.1).
 * Not where it is the path that is away: all that was in flight would then be sent again
 * one by one.
 */
void sroce_window_silent(struct sroce_qp *qp)
{
	struct sroce_growth *growth = &qp->req.growth;

	growth->silent = min(growth->silent + 1, 2);
	if (growth->silent > 1 &&
	    (!qp->req.rtt.srtt || sroce_queueing_is_known(&qp->req)))
		sroce_window_set(qp, 1);
}
