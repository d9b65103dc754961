// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A request that finds no receive work request waits a moment for one, before the
 * peer is told that the receiver is not ready.
 *
 * On one host, or on a fast link, a sender learns that its message has arrived,
 * and sends the next one, before the receiver's process has been woken up and has
 * posted its next receive. A NIC's latency hides that race. Where the sender
 * tolerates no RNR NAK (fio) it would end the connection; and after one, rdma_cm's
 * connections wait for 655 ms.
 *
 * The request stays in the inbox, and what comes after it queues up there: trains
 * of QPs of this host are in it anyway, those from the network are copied. A timer
 * tries it again after 15 us, and then each time after as long as it has waited
 * already, or after a millisecond. (Posting a receive tells nobody: it is a store to
 * shared memory.) When the time is up the RNR NAK leaves, and what has queued up is
 * dropped in silence, as always after that.
 *
 * Of the network's trains only some are kept. The peer is asked for the rest when
 * the wait is over, with one NAK.
 *
 * Those of this host point to memory that their sender has lent (direct.c). A process
 * that posts a receive now and then, so that each message waits anew, must not keep
 * what others wait for: when the sender wants its memory back, the time is up at the
 * next look.
 *
 * What waits takes memory of the kernel that nobody is charged for, a megabyte and more
 * for one QP. A process may have thousands that wait on and on, so everybody has a share of
 * it (uncharged.c): beyond that a request waits for one look only.
 *
 * responder_verdict.c comes here before an RNR NAK, receive.c and hold.c with trains that
 * are to queue up.
 */
#include <linux/ktime.h>

#include "compat.h"
#include "transport/gap.h"
#include "transport/gather.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/patience.h"
#include "transport/responder.h"
#include "transport/responder_verdict.h"
#include "transport/run.h"

/* Time between two looks for a receive work request: the shortest and the longest */
#define SROCE_PATIENCE_LOOK_NS ((u64)15 * NSEC_PER_USEC)
#define SROCE_PATIENCE_LOOK_MOST_NS ((u64)NSEC_PER_MSEC)

/*
 * All of the time that a request may wait: as long as a process that has been woken up
 * may wait for a processor. And where the peer's ACK timeout cannot be guessed.
 */
#define SROCE_PATIENCE_NS ((u64)16 * NSEC_PER_MSEC)
#define SROCE_PATIENCE_UNSURE_NS ((u64)2 * NSEC_PER_MSEC)

/* Bytes of the network's trains that a QP keeps while a request waits: one train's */
#define SROCE_PATIENCE_BYTES SROCE_TRAIN_BYTES

/* Memory that a train in an inbox counts as; many take less */
#define SROCE_PATIENCE_TRAIN SZ_1K

struct sroce_uncharged sroce_waiting_memory;

/* Nothing waits any more */
static void sroce_patience_forget(struct sroce_patience *w)
{
	if (w->memory.bytes)
		sroce_uncharged_add(&w->memory, -w->memory.bytes);
}

/* Is there memory for what waits for this QP? It is counted anew each time. */
static bool sroce_patience_admit(struct sroce_responder *resp)
{
	struct sroce_patience *w = &resp->patience;
	long trains = READ_ONCE(resp->half.inbox_len) + 1;
	long more = trains * SROCE_PATIENCE_TRAIN + w->kept - w->memory.bytes;

	if (more > 0 && !sroce_uncharged_admits(&w->memory, more)) {
		sroce_patience_forget(w);
		return false;
	}
	sroce_uncharged_add(&w->memory, more);
	return true;
}

/* The peer's timeout is not known here: ours is the best guess there is */
u64 sroce_patience_limit_ns(const struct sroce_qp *qp)
{
	u8 timeout = qp->attr.timeout & 0x1f;

	if (!timeout)
		return SROCE_PATIENCE_UNSURE_NS;
	return min_t(u64, SROCE_PATIENCE_NS, (4096ULL << timeout) / 4);
}

bool sroce_patience_begin(struct sroce_qp *qp, u32 psn)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_patience *w = &resp->patience;
	u64 limit = sroce_patience_limit_ns(qp);
	u64 delay;

	if (w->psn != psn)
		w->waited = 0;
	w->psn = psn;
	if (w->waited >= limit)
		return false;
	/* Most requests wait for one look only: these are not counted */
	if (w->waited && !sroce_patience_admit(resp))
		return false;
	delay = clamp(w->waited, SROCE_PATIENCE_LOOK_NS,
		      SROCE_PATIENCE_LOOK_MOST_NS);
	delay = min(delay, limit - w->waited);
	w->waited += delay;
	resp->patience.state = SROCE_RESP_WAITS;
	sroce_timer_start(&w->timer, ktime_get_ns() + delay);
	return true;
}

void sroce_patience_deny(struct sroce_responder *resp)
{
	resp->patience.state = SROCE_RESP_LOOKS;
	resp->patience.waited = U64_MAX;
}

void sroce_patience_allow(struct sroce_responder *resp)
{
	resp->patience.waited = 0;
}

/* After a train that was not kept none is: the peer will repeat everything from it on */
void sroce_patience_keep(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_patience *w = &qp->resp.patience;
	u32 bytes = 0;

	if (!w->lost)
		bytes = sroce_inbox_keep(&qp->resp.half, t,
					 SROCE_PATIENCE_BYTES - w->kept);
	w->kept += bytes;
	if (bytes)
		return;
	sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
	/* A duplicate need not come again */
	if (sroce_psn_diff(t->psn, qp->resp.epsn) < 0)
		return;
	if (!qp->resp.ack.nak_sent && !qp->resp.hold.open)
		sroce_gap_begin(&qp->resp.ack.gap, t->psn);
	sroce_gap_see(&qp->resp.ack.gap, t->psn);
	w->lost = true;
}

void sroce_patience_over(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	bool lost = resp->patience.lost;

	resp->patience.state = SROCE_RESP_READY;
	resp->patience.lost = false;
	sroce_patience_forget(&resp->patience);
	if (!lost || resp->ack.rnr_sent || resp->ack.fatal || !sroce_qp_takes_requests(qp))
		return;
	/* What is held, or was asked for, comes first: hold.c looks then what else is missing */
	if (resp->hold.held.n || resp->ack.nak_sent)
		resp->hold.lost = true;
	else
		sroce_responder_ask_again(resp);
}

/* Return: whether it has waited, and is to look now */
static bool sroce_patience_ends(struct sroce_responder *resp)
{
	bool waits;

	spin_lock_bh(&resp->half.lock);
	waits = resp->patience.state == SROCE_RESP_WAITS;
	if (waits)
		resp->patience.state = SROCE_RESP_LOOKS;
	spin_unlock_bh(&resp->half.lock);
	return waits;
}

void sroce_patience_look(struct sroce_responder *resp)
{
	if (sroce_patience_ends(resp))
		sroce_half_run(&resp->half);
}

static void sroce_patience_timer(struct sroce_timer *timer)
{
	struct sroce_responder *resp =
		container_of(timer, struct sroce_responder, patience.timer);

	if (sroce_patience_ends(resp))
		sroce_half_queue(&resp->half);
}

void sroce_patience_reset(struct sroce_responder *resp)
{
	/* The timer may still fire, and does nothing when @state is READY */
	resp->patience.state = SROCE_RESP_READY;
	resp->patience.waited = 0;
	resp->patience.lost = false;
	sroce_patience_forget(&resp->patience);
}

void sroce_patience_init(struct sroce_qp *qp)
{
	struct sroce_patience *w = &qp->resp.patience;

	sroce_uncharged_part_init(&w->memory, &sroce_waiting_memory,
				  &qp->port->waiting, qp);
	sroce_timer_init(&w->timer, sroce_patience_timer);
}

void __init sroce_patience_start(void)
{
	sroce_uncharged_start(&sroce_waiting_memory);
}
