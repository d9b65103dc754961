// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How much may be in flight.
 *
 * The window starts small, and doubles per round trip while it is what holds the sender
 * back and the round trip has not grown, that is, while packets do not queue. That alone
 * would make it as large as can be where a processor is the slowest on the way: it takes as
 * long for each packet whatever the window is, but longer for one whose data have left its
 * cache. So beyond what is tried in any case more has to arrive in the same time as well.
 * What is in flight shows only a round trip later, and one may mislead, so it goes on for a few
 * more (as BBR does in its startup, Cardwell et al. 2016), up to eight times as much, and then
 * back to what it was when it paid last. Paths change, and noise looks like success: it
 * begins anew now and then.
 *
 * From the first loss on it is the round trip that tells what losses are, and how fast the window
 * may grow (as TCP Veno, Fu and Liew 2003): near its minimum no packets queue, so what
 * was lost was lost for another reason, and there is room for much more; far from it,
 * queues are filling, a loss halves the window, and it grows by little, so that all who
 * share a queue that is shallow come to fair shares of it and seldom overrun it.
 *
 * Who comes to a queue that others fill never sees a round trip without one, and takes it
 * for a path that is free. What all of them see alike is how long a round trip is when the
 * queue overflows (@full). Where that is known, and much longer than the shortest one, only
 * who is far from it may take a loss for a stray one, or grow fast; near it everybody grows
 * by the same few bytes a round trip, with which rates become equal (Chiu and Jain 1989), and
 * of which there are many until the next overflow. Where there are so many that four
 * packets are more than a share, a share is less. And trains are small there, so that not one of
 * them alone overruns what has room for all windows.
 *
 * A path that is long has round trips that are longer for many reasons, and a queue that
 * stays there is seen in all of the last ones (as CoDel sees it, Nichols and Jacobson 2012).
 * And there may be a loss in each flight, and so no round trip without one: then the time
 * until the peer answers what it is sent again is as good.
 *
 * Where everything behind a loss is sent again, because the peer needs it or nobody knows
 * what it needs, not much is to be in flight while losses are frequent: such a loss halves
 * the window.
 *
 * requester_train.c keeps to it; retransmit.c tells of what was acknowledged or lost.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>

#include "transport/congestion.h"
#include "transport/requester.h"
#include "transport/rtt.h"
#include "transport/trace.h"
#include "transport/window.h"
#include "txq.h"

#define SROCE_WINDOW_START (64 * 1024)
/* So much is tried whatever the round trip: a processor that is slow likes long trains */
#define SROCE_WINDOW_TRIED (256 * 1024)
#define SROCE_WINDOW_MOST (16 * 1024 * 1024)

/* More arrives if it is more by this part, and that is waited for so many round trips */
#define SROCE_WINDOW_FASTER 8
#define SROCE_WINDOW_VAIN_MOST 2
/* It begins anew after so long, and so many round trips: then it costs next to nothing */
#define SROCE_WINDOW_ANEW_JIFFIES (10 * HZ)
#define SROCE_WINDOW_ANEW_ROUND_TRIPS 1024

/* Half of them can be sent again, and the other half tell of that (repair.c) */
#define SROCE_WINDOW_LEAST_PACKETS 4U
/* Round trips that are longer by less than this, and by an eighth, are no queue's for sure */
#define SROCE_WINDOW_NOISE_NS (50 * NSEC_PER_USEC)
/* How long one is when a queue is full is forgotten by this part with each that comes */
#define SROCE_WINDOW_FORGET 1024

/* Where packets were lost: part of the window that it grows by per round trip */
#define SROCE_WINDOW_GROW_FAST 8
#define SROCE_WINDOW_GROW_SLOW 32
/* ... or bytes, or this part, if it is more, while a queue is nearly full */
#define SROCE_WINDOW_GROW_BYTES 96
#define SROCE_WINDOW_GROW_PART 128
/* ... and that it gives up for a loss that is none of a queue */
#define SROCE_WINDOW_LOSE_LITTLE 8
/* ... as often as no newer round trip was measured meanwhile */
#define SROCE_WINDOW_BLIND_MOST 4
/* Trains that a window has at the least where a queue is known */
#define SROCE_WINDOW_TRAINS 8
/* So much in queues is little */
#define SROCE_WINDOW_QUEUE_BYTES (32 * 1024)
/* Queues longer than this are somebody else's, or too long to be filled */
#define SROCE_WINDOW_QUEUE_NS (2 * NSEC_PER_MSEC)

/* Is the path longer than the queues that are to be filled? */
static bool sroce_window_path_is_long(const struct sroce_requester *req)
{
	return req->rtt.min > SROCE_WINDOW_QUEUE_NS;
}

/* The shortest of the last round trips; 0: none is known */
static u64 sroce_window_least_last(const struct sroce_requester *req)
{
	const struct sroce_growth *growth = &req->growth;
	u64 ns = growth->last[growth->turn];
	int i;

	for (i = 0; i < SROCE_GROWTH_LAST; i++)
		if (growth->last[i])
			ns = min(ns, growth->last[i]);
	return ns;
}

/* The round trip that tells whether packets queue; 0: none is known */
static u64 sroce_window_last(const struct sroce_requester *req)
{
	if (sroce_window_path_is_long(req))
		return sroce_window_least_last(req);
	return req->growth.last[req->growth.turn];
}

/*
 * By the last round trips, do hardly any packets queue? Then they are longer than the shortest
 * one by less than @parts sixteenths, or by less than four times that, if it is few bytes
 * that were in queues then (as TCP Vegas counts them, Brakmo and Peterson 1995): a quarter
 * of a long path is more than many queues have room for.
 */
static bool sroce_window_path_is_free(const struct sroce_qp *qp, u32 parts)
{
	const struct sroce_requester *req = &qp->req;
	u64 last = sroce_window_last(req), min = req->rtt.min;

	if (!last || last >= min + min / 4 * parts)
		return false;
	return last < min + min / 16 * parts ||
	       (last - min) * req->window * qp->mtu < SROCE_WINDOW_QUEUE_BYTES * last;
}

/* Is there a queue that overflows, and is it known how long a round trip is then? */
static bool sroce_window_knows_queue(const struct sroce_requester *req)
{
	u64 min = req->rtt.min;

	return !sroce_window_path_is_long(req) &&
	       req->growth.full > min + min / 8 + SROCE_WINDOW_NOISE_NS;
}

/* Was that queue nearly full? */
static bool sroce_window_queue_is_full(const struct sroce_requester *req)
{
	return sroce_window_knows_queue(req) &&
	       sroce_window_last(req) >= req->growth.full / 4 * 3;
}

/* Was it more than half full, as far as one can see who may have never seen it empty? */
static bool sroce_window_queue_is_filling(const struct sroce_requester *req)
{
	return sroce_window_knows_queue(req) &&
	       sroce_window_last(req) >= (req->rtt.min + req->growth.full) / 2;
}

/*
 * What comes as one train is answered as one, and leaves again as one: so of several senders
 * one or the other would find a queue full that has room for all windows. Small trains are
 * answered, and so sent, as fast as the queue is emptied.
 */
u32 sroce_window_train(const struct sroce_requester *req)
{
	if (!sroce_window_knows_queue(req))
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

/* The window after a round trip that has shown that there is room for more */
static u32 sroce_window_larger(struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;
	u32 window = req->window;
	u32 part = SROCE_WINDOW_GROW_SLOW;

	if (!req->growth.lossy)
		return 2 * window;
	if (sroce_window_queue_is_filling(req))
		return window + sroce_window_grow_by(qp,
			max_t(u32, window * qp->mtu / SROCE_WINDOW_GROW_PART,
			      SROCE_WINDOW_GROW_BYTES));
	if (sroce_window_path_is_free(qp, 1))
		part = SROCE_WINDOW_GROW_FAST;
	return window + max(window / part, 1);
}

/* Packets per 2^26 ns that were acknowledged in the round trip of @ns which ends now */
static u32 sroce_window_speed(const struct sroce_requester *req, u64 ns)
{
	u32 packets = (req->una_psn - req->growth.una) & SROCE_PSN_MASK;

	return min_t(u64, div64_u64((u64)packets << 26, ns), U32_MAX / 2);
}

/* Does it pay that the window was made larger, or may it still? */
static bool sroce_window_pays(struct sroce_requester *req, u64 ns)
{
	struct sroce_growth *growth = &req->growth;
	u32 speed = sroce_window_speed(req, ns);

	if (growth->vain > SROCE_WINDOW_VAIN_MOST)
		return false;
	if (speed >= growth->speed + growth->speed / SROCE_WINDOW_FASTER) {
		growth->speed = speed;
		growth->paid = req->window;
		growth->vain = 0;
		return true;
	}
	growth->vain++;
	growth->tried = jiffies;
	return growth->vain <= SROCE_WINDOW_VAIN_MOST;
}

static bool sroce_window_begins_anew(const struct sroce_growth *growth)
{
	u64 wait = SROCE_WINDOW_ANEW_ROUND_TRIPS * growth->min;

	return growth->vain > SROCE_WINDOW_VAIN_MOST &&
	       time_after(jiffies, growth->tried +
			  max_t(unsigned long, SROCE_WINDOW_ANEW_JIFFIES,
				nsecs_to_jiffies(wait)));
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
		       (ns < 2 * req->growth.min && sroce_window_pays(req, ns));
	if (ns < min + max(min, SROCE_WINDOW_QUEUE_NS))
		return true;
	return ns < 2 * req->growth.min && req->window < SROCE_WINDOW_START / qp->mtu;
}

static void sroce_window_set(struct sroce_qp *qp, u32 packets)
{
	struct sroce_requester *req = &qp->req;

	req->window = clamp_t(u32, packets, 1, SROCE_WINDOW_MOST / qp->mtu);
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

static void sroce_window_measure(struct sroce_requester *req, u32 psn, bool used, bool again)
{
	sroce_rtt_begin(&req->rtt, psn, ktime_get_ns());
	req->growth.una = req->una_psn;
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

void sroce_window_repairs(struct sroce_requester *req, u32 sent)
{
	if (sroce_window_path_is_long(req))
		sroce_window_measure(req, req->repair.end, sent >= req->window / 2, true);
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
	struct sroce_growth *growth = &qp->req.growth;

	if (growth->lossy || growth->vain <= SROCE_WINDOW_VAIN_MOST)
		return;
	if (growth->paid && growth->paid < qp->req.window)
		sroce_window_set(qp, growth->paid);
	if (!sroce_window_begins_anew(growth))
		return;
	growth->vain = 0;
	growth->speed = 0;
	sroce_window_set(qp, min_t(u32, qp->req.window, SROCE_WINDOW_TRIED / qp->mtu));
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
	if (!growth->used)
		return;
	if (!growth->again)
		sroce_window_find_min(req, ns);
	growth->turn = (growth->turn + 1) % SROCE_GROWTH_LAST;
	growth->last[growth->turn] = ns;
	growth->blind = 0;
	growth->doubled = false;
	growth->full -= growth->full / SROCE_WINDOW_FORGET;
	/* Of several gaps each takes a round trip, in which not more is sent than in one */
	if (!sroce_window_may_grow(qp, ns) || (growth->again && req->repair.lossy)) {
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

	if (sroce_window_knows_queue(req))
		return !sroce_window_queue_is_full(req);
	return sroce_window_path_is_free(qp, 2);
}

/* One round trip that was held up is no queue: it is seen in all of the last ones */
static void sroce_window_find_full(struct sroce_requester *req)
{
	struct sroce_growth *growth = &req->growth;

	growth->full = max(growth->full - growth->full / 16, sroce_window_least_last(req));
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

	if (sroce_window_queue_is_full(req))
		least = 1;
	if (partly && !growth->doubled && growth->blind < SROCE_WINDOW_BLIND_MOST &&
	    sroce_window_loss_is_stray(qp))
		part = SROCE_WINDOW_LOSE_LITTLE;
	/* A timeout says nothing about a queue, and who sends all of it again overruns many */
	if (partly)
		sroce_window_find_full(req);
	growth->blind = min(growth->blind + 1, SROCE_WINDOW_BLIND_MOST);
	growth->doubled = false;
	growth->lossy = true;
	sroce_window_set(qp, max(req->window - max(req->window / part, 1), least));
	sroce_congestion_lost(qp);
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
	    (!qp->req.rtt.srtt || sroce_window_knows_queue(&qp->req)))
		sroce_window_set(qp, 1);
}
