// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that have come too early: one before them was lost, or is late.
 *
 * responder.c comes here with them. The missing one is asked for, and where
 * selective_repeat_en is set they are held until it is here, and are then carried out
 * in the order of their PSNs, as if they had come only now (responder.c again). So
 * nothing is done before its time, a receive work request is waited for in the same
 * place (patience.c), and the peer sees no more of it than an ACK for all of it. That
 * ACK saves a peer which knows how to use it from sending again what has arrived.
 * (Where pages are missing it is told "not ready" as ever, and sends all that comes
 * behind again: then what is held is dropped.)
 *
 * A gap is reported by one NAK. The rest of the stream that has the gap must not
 * cause another; how the repeated stream is told from it is in gap.h, and a request
 * of the repeated stream is also one that is held already.
 *
 * Where a network brings packets in another order, the missing one is only late, and
 * what is sent again because of a NAK is sent in vain: it comes as a duplicate. Whoever
 * has seen that asks later from then on (lateness.c).
 *
 * When only a part of what is missing has come, the rest may be right behind it (a peer
 * that repeats everything), or it waits for our answer (a peer that repeats what is
 * missing). So the answer waits for a moment.
 */
#include <linux/ktime.h>

#include "compat.h"
#include "transport/ack_delay.h"
#include "transport/answers.h"
#include "transport/gap.h"
#include "transport/held.h"
#include "transport/hold.h"
#include "transport/internal.h"
#include "transport/lateness.h"
#include "transport/patience.h"
#include "transport/responder.h"
#include "transport/responder_verdict.h"
#include "transport/run.h"
#include "turn.h"

/* A packet that comes once more is answered no sooner: less than a probe waits for (probe.c) */
#define SROCE_HOLD_ANSWER_NS ((u64)500 * NSEC_PER_USEC)

/* --- what is held -------------------------------------------------------------- */

/* Is what comes next held? */
static bool sroce_hold_ready(const struct sroce_responder *resp)
{
	return sroce_held_ready(&resp->hold.held, resp->epsn);
}

static void sroce_hold_wake_at(struct sroce_hold *hold, u64 at)
{
	if (hold->wake && hold->wake <= at)
		return;
	hold->wake = at;
	sroce_timer_start(&hold->timer, at);
}

/* Return: true when it is held now, and nothing of it was before */
static bool sroce_hold_add(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_hold *hold = &qp->resp.hold;
	enum sroce_held_how how;

	/* The peer was told "not ready", and sends everything behind that request again */
	if (!sroce_held_is_on(qp) || qp->resp.ack.rnr_sent)
		return false;
	how = sroce_held_add(qp, &hold->held, t, qp->resp.epsn);
	if (how == SROCE_HELD_NO_ROOM)
		hold->lost = true;
	if (how < SROCE_HELD_PART)
		return false;
	if (hold->held.n == 1)
		sroce_hold_wake_at(hold, ktime_get_ns() + SROCE_HELD_LOOK_NS);
	return how == SROCE_HELD_WHOLE;
}

static void sroce_hold_clear(struct sroce_qp *qp)
{
	struct sroce_hold *hold = &qp->resp.hold;

	sroce_held_clear(qp, &hold->held);
	/* The timer may still fire, and finds nothing to do */
	hold->ask_at = 0;
	hold->look_at = 0;
	hold->open = false;
	hold->repairing = false;
	hold->lost = false;
	sroce_lateness_forget(&hold->lateness);
}

/* --- when to ask ----------------------------------------------------------------- */

static void sroce_hold_ask(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;

	resp->hold.ask_at = 0;
	resp->hold.answered_at = ktime_get_ns();
	resp->hold.repairing = false;
	sroce_qp_count(qp, SROCE_CNT_OUT_OF_SEQUENCE, 1);
	sroce_responder_owe_nak(resp, SROCE_NAK_PSN_SEQ);
	resp->ack.nak_sent = true;
}

/* A gap has opened before @psn. The peer is asked for what is missing in so many ns */
static void sroce_hold_open(struct sroce_qp *qp, u32 psn, u64 wait)
{
	struct sroce_hold *hold = &qp->resp.hold;

	sroce_gap_begin(&qp->resp.ack.gap, psn);
	hold->opened_at = ktime_get_ns();
	hold->open = true;
	if (!wait) {
		sroce_hold_ask(qp);
		return;
	}
	hold->ask_at = hold->opened_at + wait;
	sroce_hold_wake_at(hold, hold->ask_at);
}

/* The first gap, or one behind it that has nothing to do with what was repaired */
static void sroce_hold_open_first(struct sroce_qp *qp, u32 psn)
{
	struct sroce_hold *hold = &qp->resp.hold;

	hold->answer = false;
	sroce_lateness_forget(&hold->lateness);
	sroce_hold_open(qp, psn, sroce_held_is_on(qp) ? hold->lateness.wait : 0);
}

/*
 * Does a packet ask for an answer? The newest one does, when it comes once more (probe.c):
 * the NAK was lost, or what was sent again because of it. A network that repeats packets
 * does so at once.
 */
static bool sroce_hold_is_probe(struct sroce_hold *hold,
				const struct sroce_train *t)
{
	u32 last = sroce_psn_add(t->psn, t->npkts - 1);
	bool again = hold->newest == last;

	hold->newest = last;
	return again && hold->open &&
	       ktime_get_ns() - hold->answered_at >= SROCE_HOLD_ANSWER_NS;
}

void sroce_hold_missed(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_hold *hold = &resp->hold;
	u32 psn = t->psn;
	bool probe = sroce_hold_is_probe(hold, t);
	bool added = sroce_hold_add(qp, t);

	/* sroce_hold_replay() looks what is missing when it has come to the end */
	if (sroce_hold_ready(resp) || hold->ask_at)
		sroce_gap_see(&resp->ack.gap, psn);
	else if (!resp->ack.nak_sent && !resp->ack.rnr_sent)
		sroce_hold_open_first(qp, psn);
	else if (added)
		sroce_gap_see(&resp->ack.gap, psn);
	else if (sroce_gap_again(&resp->ack.gap, psn) ||
		 (probe && !resp->ack.rnr_sent))
		sroce_hold_ask(qp);
}

void sroce_hold_gap_filled(struct sroce_qp *qp)
{
	struct sroce_hold *hold = &qp->resp.hold;
	u64 took = ktime_get_ns() - hold->opened_at;

	hold->open = false;
	if (!sroce_held_is_on(qp)) {
		hold->ask_at = 0;
		hold->repairing = false;
		/* It is taken back before it has left, but what came too early was dropped */
		if (qp->resp.ack.state == SROCE_ACK_NAK)
			hold->lost = true;
		return;
	}
	if (!hold->ask_at) {
		/* Was it what we have asked for? If not, that will come as well */
		sroce_lateness_asked(&hold->lateness, qp->resp.epsn, took);
		return;
	}
	hold->ask_at = 0;
	if (hold->repairing) {
		hold->repairing = false;
		/* One that was owed before does not wait for what comes behind this as well */
		hold->answer = qp->resp.ack.state == SROCE_ACK_OWED;
		return;
	}
	sroce_lateness_by_itself(qp, &hold->lateness, took);
}

/*
 * The time is up, and it has not come by itself. An answer that waits for it leaves
 * first, because it might be all that the peer wants: what comes behind the gap may be
 * no request of its own.
 */
static void sroce_hold_time_is_up(struct sroce_qp *qp, u64 now)
{
	struct sroce_hold *hold = &qp->resp.hold;

	if (hold->repairing && !hold->answer &&
	    qp->resp.ack.state == SROCE_ACK_OWED) {
		hold->answer = true;
		hold->ask_at = now + SROCE_LATE_REST_NS;
		sroce_hold_wake_at(hold, hold->ask_at);
		return;
	}
	if (!hold->repairing)
		sroce_lateness_in_vain(&hold->lateness);
	sroce_hold_ask(qp);
}

/* --- replay ---------------------------------------------------------------------- */

/* Carry out a held request, of which a part may have come again meanwhile */
static void sroce_hold_execute(struct sroce_qp *qp, struct sroce_held *h)
{
	struct sroce_responder *resp = &qp->resp;

	if (sroce_psn_diff(sroce_held_end(h), resp->epsn) <= 0)
		return;
	sroce_turn_spend(h->t.bi.bi_size + SROCE_TURN_TRAIN);
	resp->hold.data = h->t.op == SROCE_OP_SEND || h->t.op == SROCE_OP_WRITE;
	sroce_responder_request(qp, &h->t);
	/* It waits for a receive work request: in the inbox, as if it had just come */
	if (unlikely(resp->patience.state != SROCE_RESP_READY))
		sroce_patience_keep(qp, &h->t);
}

/* What is held is of no use: it comes again, or is not wanted any more */
static bool sroce_hold_is_void(struct sroce_qp *qp)
{
	const struct sroce_resp_ack *ack = &qp->resp.ack;

	return !sroce_qp_takes_requests(qp) || ack->fatal || ack->rnr_sent;
}

/*
 * What was held has been carried out as far as possible. The peer is told how far; an
 * ACK must not be about a READ, which is acknowledged by its response.
 */
static void sroce_hold_tell(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;

	sroce_ack_hurry(resp);
	if (resp->ack.state == SROCE_ACK_NONE && resp->hold.data &&
	    sroce_answers_all_sent(&resp->answers))
		resp->ack.state = SROCE_ACK_OWED;
}

/* Something is missing still, and nothing is under way that says so */
static void sroce_hold_look_for_gap(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_hold *hold = &resp->hold;
	const struct sroce_held *h = sroce_held_first(&hold->held);
	bool lost = hold->lost &&
		    sroce_psn_diff(resp->ack.gap.high, resp->epsn) >= 0;

	if (resp->ack.nak_sent || hold->ask_at)
		return;
	hold->lost = false;
	if (!h && !lost)
		return;
	sroce_hold_open(qp, h ? h->t.psn : sroce_psn_add(resp->epsn, 1),
			max(hold->lateness.wait, SROCE_LATE_REST_NS));
	hold->repairing = true;
}

bool sroce_hold_replay(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	unsigned long begin = sroce_turn_spent();
	u32 epsn = resp->epsn;
	struct sroce_held *h;

	/* What waits in the inbox is to be the next, in its order */
	while (resp->patience.state == SROCE_RESP_READY &&
	       list_empty(&resp->half.inbox) &&
	       !sroce_hold_is_void(qp) && sroce_hold_ready(resp) &&
	       !sroce_turn_half_over(begin)) {
		h = sroce_held_first(&resp->hold.held);
		sroce_held_remove(&resp->hold.held, h);
		sroce_hold_execute(qp, h);
		sroce_held_free(h);
	}
	if (sroce_hold_is_void(qp)) {
		sroce_hold_clear(qp);
		return false;
	}
	if (resp->epsn != epsn)
		sroce_hold_tell(qp);
	if (resp->patience.state != SROCE_RESP_READY)
		return false;
	if (sroce_hold_ready(resp))
		return true;
	sroce_hold_look_for_gap(qp);
	return false;
}

/* --- time ------------------------------------------------------------------------ */

/* Drop what was there at the last look: its peer has given up, or is no peer */
static void sroce_hold_drop_old(struct sroce_qp *qp)
{
	struct sroce_hold *hold = &qp->resp.hold;

	if (!sroce_held_drop_old(qp, &hold->held))
		return;
	hold->lost = true;
	/* What was asked for has not come either: it may be asked for again */
	if (!qp->resp.ack.rnr_sent)
		qp->resp.ack.nak_sent = false;
}

static void sroce_hold_look_for_old(struct sroce_qp *qp, u64 now)
{
	struct sroce_hold *hold = &qp->resp.hold;

	if (!hold->look_at || now >= hold->look_at) {
		sroce_hold_drop_old(qp);
		hold->look_at = hold->held.n ? now + SROCE_HELD_LOOK_NS : 0;
	}
	if (hold->look_at)
		sroce_hold_wake_at(hold, hold->look_at);
}

/* Return: true when the half has something to send */
static bool sroce_hold_timer_look(struct sroce_qp *qp, u64 now)
{
	struct sroce_hold *hold = &qp->resp.hold;

	hold->wake = 0;
	sroce_hold_look_for_old(qp, now);
	if (!hold->ask_at)
		return false;
	if (now < hold->ask_at) {
		sroce_hold_wake_at(hold, hold->ask_at);
		return false;
	}
	/* The answer to that is owed, and must not become another one */
	if (sroce_hold_is_void(qp)) {
		sroce_hold_clear(qp);
		return false;
	}
	sroce_hold_time_is_up(qp, now);
	return true;
}

static void sroce_hold_timer_fired(struct sroce_timer *timer)
{
	struct sroce_responder *resp =
		container_of(timer, struct sroce_responder, hold.timer);
	struct sroce_qp *qp = container_of(resp, struct sroce_qp, resp);

	spin_lock(&resp->half.lock);
	if (!qp->dead && sroce_hold_timer_look(qp, ktime_get_ns()))
		sroce_half_queue(&resp->half);
	spin_unlock(&resp->half.lock);
}

void sroce_hold_reset(struct sroce_qp *qp)
{
	sroce_hold_clear(qp);
	sroce_lateness_reset(&qp->resp.hold.lateness);
}

void sroce_hold_init(struct sroce_qp *qp)
{
	struct sroce_hold *hold = &qp->resp.hold;

	sroce_held_init(&hold->held, qp);
	sroce_timer_init(&hold->timer, sroce_hold_timer_fired);
}
