// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ACKs that wait for a request to go with.
 *
 * Where both ends take turns (a storage target and its initiator, a call and
 * its answer) the ACK of each message is followed by a request in the same
 * direction. Sent together they cost one passage through the network's stack
 * instead of two, and often share a packet buffer. IBA 9.7.5.1.2 lets a
 * responder coalesce ACKs and sets no time for them but the requester's timeout.
 *
 * An ACK is held back only when requests of ours have followed the last ones
 * soon; for a few messages and packets, fewer than a window has at first (one that
 * losses have made tiny may be full meanwhile); and never for long. When a hold was
 * in vain it takes twice as many turns until the next one: two ends that each wait
 * for the other's ACK would wait for the timer each time.
 *
 * For kernel users only. A process mostly looks at its completion queues without
 * rest: it has its answer ready while the CPU that has received the message still
 * sends the ACK, which would come on top of the answer then (12 % more latency).
 *
 * The timer runs on while ACKs are being held, and is not set anew for each:
 * what it has met twice is late. It has much slack, so that it seldom causes an
 * interrupt of its own.
 */
#include <linux/ktime.h>

#include "compat.h"
#include "transport/ack_delay.h"
#include "transport/answers.h"
#include "transport/internal.h"
#include "transport/responder.h"
#include "transport/responder_reply.h"
#include "transport/run.h"
#include "transport/send.h"

/* An ACK is held for one to two periods */
#define SROCE_ACK_DELAY_NS NSEC_PER_MSEC
#define SROCE_ACK_DELAY_SLACK_NS (4 * NSEC_PER_MSEC)

/*
 * Only with a local ACK timeout of 67 ms or more. It is the peer's that counts; ours is
 * the best guess at it.
 */
#define SROCE_ACK_DELAY_TIMEOUT 14

/* Messages, and packets, that may wait for one ACK */
#define SROCE_ACK_MESSAGES 16
#define SROCE_ACK_PACKETS 8

/* Turns that must have been taken before an ACK is held, at first and at most */
#define SROCE_ACK_TURNS 32
#define SROCE_ACK_TURNS_MOST 8192

/* So many messages without an answer may pass before ACKs are not held any more */
#define SROCE_ACK_TURNS_SPARE 64

/* So long what a QP has sent last may be on its way in this host, in jiffies */
#define SROCE_ACK_LEAVES (msecs_to_jiffies(4) + 1)

/* Runs of the responder that are enough for all answers of one packet each */
#define SROCE_ACK_SETTLE_RUNS \
	(2 * SROCE_MAX_RD_ATOMIC / SROCE_SEND_BUDGET + 1)

static bool sroce_ack_is_held(const struct sroce_ack_delay *d)
{
	return d->state == SROCE_ACK_HELD || d->state == SROCE_ACK_AGED;
}

/* Is the peer likely to take turns with us, and to have patience? */
static bool sroce_ack_expects_turn(const struct sroce_qp *qp)
{
	const struct sroce_ack_delay *d = &qp->resp.ack.delay;
	u8 timeout = qp->attr.timeout & 0x1f;

	return d->turns >= d->wanted && sroce_qp_state(qp) == IB_QPS_RTS &&
	       (!timeout || timeout >= SROCE_ACK_DELAY_TIMEOUT);
}

static bool sroce_ack_may_hold(const struct sroce_qp *qp)
{
	const struct sroce_responder *resp = &qp->resp;
	const struct sroce_ack_delay *d = &resp->ack.delay;
	u32 packets = (resp->epsn - d->acked) & SROCE_PSN_MASK;

	return (d->state == SROCE_ACK_PROMPT || sroce_ack_is_held(d)) &&
	       resp->msg.state == SROCE_RESP_IDLE &&
	       d->messages <= SROCE_ACK_MESSAGES &&
	       packets <= SROCE_ACK_PACKETS && sroce_ack_expects_turn(qp);
}

static void sroce_ack_start_timer(struct sroce_ack_delay *d)
{
	d->armed = true;
	sroce_timer_start_range(&d->timer, ktime_get_ns() + SROCE_ACK_DELAY_NS,
				SROCE_ACK_DELAY_SLACK_NS);
}

static void sroce_ack_begin_hold(struct sroce_ack_delay *d)
{
	if (sroce_ack_is_held(d))
		return;
	d->state = SROCE_ACK_HELD;
	if (!d->armed)
		sroce_ack_start_timer(d);
}

bool sroce_ack_hold(struct sroce_qp *qp)
{
	struct sroce_ack_delay *d = &qp->resp.ack.delay;
	bool hold;

	if (qp->user)
		return false;
	WRITE_ONCE(d->messages, min(d->messages + 1, SROCE_ACK_MESSAGES + 1));
	if (d->turns)
		d->turns--;
	hold = sroce_ack_may_hold(qp);
	if (hold)
		sroce_ack_begin_hold(d);
	else if (d->state != SROCE_ACK_OFF)
		d->state = SROCE_ACK_PROMPT;
	return hold;
}

/* @turns grows by one for each message that is answered, and by one for the answer */
static void sroce_ack_count_turn(struct sroce_ack_delay *d)
{
	d->turns = min(d->turns + d->messages + 1,
		       d->wanted + SROCE_ACK_TURNS_SPARE);
	WRITE_ONCE(d->messages, 0);
}

/* The ACK went with a request. After enough of these an earlier failure is forgotten */
static void sroce_ack_rode(struct sroce_ack_delay *d)
{
	d->state = SROCE_ACK_PROMPT;
	if (++d->rides < d->wanted)
		return;
	d->rides = 0;
	d->wanted = max(d->wanted / 2, SROCE_ACK_TURNS);
}

void sroce_ack_ride_along(struct sroce_qp *qp, struct sroce_tx *tx)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_ack_delay *d = &resp->ack.delay;

	/* The responder is busy with the next message, whose ACK will cover this one */
	if (!spin_trylock(&resp->half.lock))
		return;
	sroce_ack_count_turn(d);
	/* No ACK overtakes the response to a READ that has come since the last one */
	if (sroce_ack_is_held(d) && sroce_answers_all_sent(&resp->answers) &&
	    sroce_send_allowed(&resp->half)) {
		if (resp->ack.state == SROCE_ACK_OWED)
			sroce_reply_ack(qp, &qp->req.half, tx);
		sroce_ack_rode(d);
	}
	spin_unlock(&resp->half.lock);
}

/* True when the ACK has waited long enough */
static bool sroce_ack_age(struct sroce_ack_delay *d)
{
	d->armed = false;
	switch (d->state) {
	case SROCE_ACK_HELD:
		d->state = SROCE_ACK_AGED;
		sroce_ack_start_timer(d);
		return false;
	case SROCE_ACK_AGED:
		d->state = SROCE_ACK_LATE;
		d->turns = 0;
		d->rides = 0;
		d->wanted = min(2 * d->wanted, SROCE_ACK_TURNS_MOST);
		return true;
	default:
		return false;
	}
}

static void sroce_ack_timer(struct sroce_timer *timer)
{
	struct sroce_responder *resp =
		container_of(timer, struct sroce_responder, ack.delay.timer);

	spin_lock(&resp->half.lock);
	if (sroce_ack_age(&resp->ack.delay))
		sroce_half_queue(&resp->half);
	spin_unlock(&resp->half.lock);
}

/* Is the responder going to send an answer: an ACK, or one to a READ or atomic? */
static bool sroce_ack_owes(const struct sroce_half *half)
{
	const struct sroce_responder *resp =
		container_of(half, struct sroce_responder, half);

	return sroce_qp_takes_requests(half->qp) &&
	       (resp->ack.state != SROCE_ACK_NONE ||
		!sroce_answers_all_sent(&resp->answers));
}

static bool sroce_ack_still_owes(struct sroce_half *half)
{
	bool owes;

	spin_lock_bh(&half->lock);
	owes = sroce_ack_owes(half);
	spin_unlock_bh(&half->lock);
	return owes;
}

/* May what a half has sent last still be on its way in this host? */
static bool sroce_ack_is_leaving(const struct sroce_half *half)
{
	return sroce_qp_takes_requests(half->qp) &&
	       time_before(jiffies, READ_ONCE(half->sent_at) + SROCE_ACK_LEAVES);
}

static bool sroce_ack_owes_or_is_leaving(const struct sroce_half *half)
{
	return sroce_ack_owes(half) || sroce_ack_is_leaving(half);
}

/* No ACK waits for a request any more */
static void sroce_ack_off(struct sroce_responder *resp)
{
	spin_lock_bh(&resp->half.lock);
	resp->ack.delay.state = SROCE_ACK_OFF;
	spin_unlock_bh(&resp->half.lock);
}

void sroce_ack_settle_once(struct sroce_qp *qp)
{
	if (!qp->kind->acked)
		return;
	sroce_ack_off(&qp->resp);
	sroce_half_run_here(&qp->resp.half, sroce_ack_owes_or_is_leaving);
	/* ACKs of processes' QPs never go with a request */
	if (!qp->user)
		sroce_half_run_here(&qp->req.half, sroce_ack_is_leaving);
}

void sroce_ack_settle(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	int runs = SROCE_ACK_SETTLE_RUNS;

	if (!qp->kind->acked)
		return;
	sroce_ack_off(resp);
	do
		sroce_half_run_here(&resp->half, sroce_ack_owes);
	while (--runs && sroce_ack_still_owes(&resp->half));
}

void sroce_ack_reset(struct sroce_ack_delay *d)
{
	d->state = SROCE_ACK_PROMPT;
	WRITE_ONCE(d->messages, 0);
	d->turns = 0;
	d->rides = 0;
	d->wanted = SROCE_ACK_TURNS;
}

void sroce_ack_delay_init(struct sroce_ack_delay *d)
{
	sroce_timer_init(&d->timer, sroce_ack_timer);
	sroce_ack_reset(d);
}
