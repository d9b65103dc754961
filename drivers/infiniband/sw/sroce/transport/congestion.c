// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The sending side of congestion control: a QP whose packets have met congestion gets a
 * rate (reaction.c works it out) and keeps to it (pace.c).
 *
 * Whose packets are marked by a queue of the network is told so by the receiver's
 * notification point (notify.c is ours). receive.c brings it here. From then on
 * requester.c and responder_reply.c ask before each train, and send.c says what has left:
 * the queues do not know requests from READ responses, so both halves share one rate.
 *
 * Without congestion there is no rate, and all that is asked is qp->congested.
 */
#include <linux/ktime.h>

#include "compat.h"
#include "transport/congestion.h"
#include "transport/ecn.h"
#include "transport/internal.h"
#include "transport/pace.h"
#include "transport/reaction.h"
#include "transport/run.h"
#include "transport/trace.h"

/* Trains are short: queues that mark are, too */
#define SROCE_CONGESTION_TRAIN_US 125

/* The round trip that is assumed of QPs without ACKs, which cannot measure it */
#define SROCE_CONGESTION_RTT_NS NSEC_PER_MSEC

/* Headers of a full packet, from IPv4 on */
#define SROCE_CONGESTION_HDRS (SROCE_PACE_HDRS + SROCE_BTH_LEN + SROCE_ICRC_LEN)

static enum sroce_side sroce_congestion_side(const struct sroce_half *half)
{
	return half == &half->qp->resp.half ? SROCE_RESPONDER : SROCE_REQUESTER;
}

static struct sroce_reaction_at sroce_congestion_at(const struct sroce_qp *qp)
{
	u64 rtt = READ_ONCE(qp->req.rtt.srtt);

	return (struct sroce_reaction_at){
		.set = &qp->port->net.congestion,
		.now = ktime_get_ns(),
		.rtt = min_t(u64, rtt ?: SROCE_CONGESTION_RTT_NS, NSEC_PER_SEC),
		.packet = (qp->mtu ?: READ_ONCE(qp->port->mtu)) + SROCE_CONGESTION_HDRS,
		.psn = READ_ONCE(qp->req.next_psn),
		.una = READ_ONCE(qp->req.una_psn),
		.sent = READ_ONCE(qp->req.half.sent_bytes) +
			READ_ONCE(qp->resp.half.sent_bytes),
	};
}

/* The rate may be another one, or there may be none any more. Context: @c->lock held. */
static void sroce_congestion_keep_to(struct sroce_qp *qp)
{
	struct sroce_qp_congestion *c = &qp->congestion;

	c->pace.rate = c->reaction.rate;
	if (qp->congested == c->reaction.limited)
		return;
	c->pace.next = 0;
	WRITE_ONCE(qp->congested, c->reaction.limited);
	if (!c->reaction.limited)
		trace_sroce_rate(qp);
}

static void sroce_congestion_cut(struct sroce_qp *qp)
{
	struct sroce_qp_congestion *c = &qp->congestion;
	struct sroce_reaction_at at;

	spin_lock(&c->lock);
	at = sroce_congestion_at(qp);
	if (sroce_reaction_cut(&c->reaction, &at))
		trace_sroce_rate(qp);
	sroce_congestion_keep_to(qp);
	spin_unlock(&c->lock);
}

/* Managers' datagrams are few, and nobody must be able to hold them up */
static bool sroce_congestion_is_for(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->port->net.congestion.rp_enable) &&
	       qp->type != IB_QPT_GSI && sroce_qp_hears(qp);
}

void sroce_congestion_notified(struct sroce_qp *qp)
{
	if (!sroce_congestion_is_for(qp)) {
		sroce_qp_count(qp, SROCE_CNT_RP_CNP_IGNORED, 1);
		return;
	}
	sroce_qp_count(qp, SROCE_CNT_RP_CNP_HANDLED, 1);
	if (!sroce_ecn_answered(qp))
		sroce_congestion_cut(qp);
}

void sroce_congestion_lost(struct sroce_qp *qp)
{
	if (unlikely(READ_ONCE(qp->congested)))
		sroce_congestion_cut(qp);
}

/*
 * When both halves wait for the same time, the one whose timer is the first would always
 * go first. So who has sent last lets the other one go first, if that has waited, too: once, as
 * it may have nothing to send any more.
 */
static bool sroce_congestion_yields(struct sroce_qp_congestion *c,
				    enum sroce_side side, u64 now)
{
	if (c->last != side || !c->waits[!side])
		return false;
	c->waits[!side] = false;
	c->pace.wake = now + c->pace.train_us * NSEC_PER_USEC / 2;
	return true;
}

bool sroce_congestion_is_due(struct sroce_half *half, u64 *wake)
{
	struct sroce_qp *qp = half->qp;
	struct sroce_qp_congestion *c = &qp->congestion;
	enum sroce_side side = sroce_congestion_side(half);
	struct sroce_reaction_at at;
	bool due;

	spin_lock(&c->lock);
	at = sroce_congestion_at(qp);
	if (c->reaction.limited)
		sroce_reaction_advance(&c->reaction, &at);
	/* Whoever switches it off does not wait for rates to rise */
	if (!READ_ONCE(at.set->rp_enable))
		sroce_reaction_end(&c->reaction);
	sroce_congestion_keep_to(qp);
	due = !c->reaction.limited ||
	      (sroce_pace_due(&c->pace, at.now) &&
	       !sroce_congestion_yields(c, side, at.now));
	c->waits[side] = !due;
	*wake = c->pace.wake;
	spin_unlock(&c->lock);
	return due;
}

u32 sroce_congestion_packets(struct sroce_qp *qp)
{
	struct sroce_qp_congestion *c = &qp->congestion;
	u32 n = U32_MAX;

	spin_lock(&c->lock);
	if (c->reaction.limited)
		n = sroce_pace_packets(&c->pace, qp->mtu);
	spin_unlock(&c->lock);
	return n;
}

void sroce_congestion_sent(struct sroce_half *half, const struct sroce_train *t)
{
	struct sroce_qp_congestion *c = &half->qp->congestion;

	spin_lock(&c->lock);
	c->last = sroce_congestion_side(half);
	if (c->reaction.limited)
		sroce_pace_sent(&c->pace, t, ktime_get_ns());
	spin_unlock(&c->lock);
}

/* A QP that ends sends what it owes and waits for nothing (sroce_ack_settle()) */
bool sroce_congestion_is_reply_due(struct sroce_qp *qp)
{
	u64 wake;

	if (qp->resp.ack.delay.state == SROCE_ACK_OFF ||
	    sroce_congestion_is_due(&qp->resp.half, &wake))
		return true;
	sroce_timer_start(&qp->congestion.timer, wake);
	return false;
}

static void sroce_congestion_timer(struct sroce_timer *timer)
{
	struct sroce_qp *qp = container_of(timer, struct sroce_qp,
					   congestion.timer);

	sroce_half_queue(&qp->resp.half);
}

void sroce_congestion_reset(struct sroce_qp *qp)
{
	struct sroce_qp_congestion *c = &qp->congestion;

	spin_lock(&c->lock);
	sroce_ecn_reset(qp);
	memset(&c->reaction, 0, sizeof(c->reaction));
	memset(c->waits, 0, sizeof(c->waits));
	sroce_congestion_keep_to(qp);
	spin_unlock(&c->lock);
}

void sroce_congestion_init(struct sroce_qp *qp)
{
	struct sroce_qp_congestion *c = &qp->congestion;

	spin_lock_init(&c->lock);
	c->pace.train_us = SROCE_CONGESTION_TRAIN_US;
	sroce_timer_init(&c->timer, sroce_congestion_timer);
}
