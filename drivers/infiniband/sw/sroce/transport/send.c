// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sending a train, of whichever half: to the network, or to a QP of this host
 * (direct.c).
 *
 * What a QP may have in this host's queues has a limit (its account is txq.c's). The
 * half that has reached it is starved: whoever makes trains asks for that first, and
 * makes none. When the queues have let go of enough, both halves run. A queue that
 * lets go of nothing is a matter for the timer of retransmit.c: types of QPs without
 * ACKs are stalled then, and what they send is lost here.
 *
 * Packets must not overtake each other in the stack: for UC that is a loss, for RC it
 * looks like one. So a half sends where it has sent before, until these packets have
 * been passed on; run.c hands it over. But one that has come to nothing there for
 * sroce_send_patience goes on anywhere: a task with real-time priority can keep a CPU
 * from its packets. (One that does come to send there stays, also while that CPU is busy
 * with what strangers send.)
 */
#include <linux/jiffies.h>

#include "path.h"
#include "transport/congestion.h"
#include "transport/direct.h"
#include "transport/ecn.h"
#include "transport/internal.h"
#include "transport/pace.h"
#include "transport/run.h"
#include "transport/send.h"
#include "transport/trace.h"
#include "turn.h"
#include "txq.h"

unsigned long sroce_send_patience __read_mostly = HZ / 4;

void sroce_half_look_for_room(struct sroce_half *half)
{
	if (sroce_txq_wait(half->qp->txq))
		return;
	WRITE_ONCE(half->starved, false);
	half->stalled = false;
}

/* Both halves have one account, so that a call when there is room is for both */
static void sroce_half_check_room(struct sroce_half *half)
{
	if (likely(!sroce_txq_full(half->qp->txq)))
		return;
	WRITE_ONCE(half->starved, true);
	sroce_half_look_for_room(half);
}

/*
 * The account has room again: have the halves run that wait for it. None is missed: a
 * half sets @starved before it looks for room a last time.
 */
void sroce_send_room(void *owner)
{
	struct sroce_qp *qp = owner;

	if (READ_ONCE(qp->req.half.starved))
		sroce_half_kick(&qp->req.half);
	if (READ_ONCE(qp->resp.half.starved))
		sroce_half_kick(&qp->resp.half);
}

/* QP 1 is in no table of numbers, and gets packets through the stack */
static bool sroce_send_is_direct(const struct sroce_path *path, u32 dqpn)
{
	return READ_ONCE(path->direct_ifindex) && dqpn != SROCE_QPN_GSI &&
	       dqpn != SROCE_QPN_MULTICAST;
}

/* What congestion control, which is on, wants of a train that leaves */
static void sroce_send_in_congestion(struct sroce_half *half,
				     const struct sroce_path *path,
				     struct sroce_train *t)
{
	/* ACKs do not wait for their time, and so must not put off what does */
	if (t->op != SROCE_OP_ACK) {
		WRITE_ONCE(half->sent_bytes,
			   half->sent_bytes + sroce_pace_bytes(t));
		if (READ_ONCE(half->qp->congested))
			sroce_congestion_sent(half, t);
	}
	t->flags |= sroce_ecn_of_train(half, path, t);
}

void sroce_send_train(struct sroce_half *half, struct sroce_tx *tx,
		      struct sroce_path *path, struct sroce_train *t,
		      struct sroce_gather *g)
{
	struct sroce_qp *qp = half->qp;

	sroce_turn_spend(t->bi.bi_size + SROCE_TURN_TRAIN);
	if (sroce_send_is_direct(path, t->dqpn)) {
		trace_sroce_train_sent(qp, t, true);
		sroce_direct_send(qp, path, t, g);
		return;
	}
	if (unlikely(half->stalled)) {
		sroce_qp_count(qp, SROCE_CNT_TX_DROPS, t->npkts);
		return;
	}
	WRITE_ONCE(half->sent_on, smp_processor_id());
	WRITE_ONCE(half->sent_at, jiffies);
	if (READ_ONCE(qp->port->net.congestion.rp_enable))
		sroce_send_in_congestion(half, path, t);
	trace_sroce_train_sent(qp, t, false);
	qp->port->xmit->send(tx, path, t, qp->txq);
	sroce_half_check_room(half);
}

int sroce_send_raw(struct sroce_half *half, const struct sroce_raw_tx *tx)
{
	struct sroce_qp *qp = half->qp;
	int err;

	sroce_turn_spend(tx->header_len + tx->len + SROCE_TURN_TRAIN);
	if (unlikely(half->stalled) || !qp->port->raw_xmit) {
		sroce_qp_count(qp, SROCE_CNT_TX_DROPS, 1);
		return 0;
	}
	WRITE_ONCE(half->sent_on, smp_processor_id());
	WRITE_ONCE(half->sent_at, jiffies);
	err = qp->port->raw_xmit(&qp->port->net, tx, qp->txq);
	sroce_half_check_room(half);
	return err;
}

void sroce_send_flush(struct sroce_half *half, struct sroce_tx *tx)
{
	unsigned int cpu = smp_processor_id();

	half->qp->port->xmit->flush(tx);
	/*
	 * Does nothing wait in this CPU's queue? Packets to a NIC never do. Then the
	 * next ones may leave from any CPU.
	 */
	if (half->sent_on == cpu && sroce_stack_passed(cpu))
		WRITE_ONCE(half->sent_on, nr_cpu_ids);
}
