// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which packets the network's queues may mark instead of dropping them (ECN, RFC 3168).
 *
 * Whoever sends such packets must hear of the marks, or fills those queues without ever
 * being slowed down, to the harm of all who share them. RoCE has no way to agree on it: NICs
 * send notifications (CNPs) for marked packets, rdma_rxe and many an administrator's NIC do
 * not. So a peer is asked: a QP that sends much sends a train that is marked already, as if it
 * had met congestion. When a notification comes back the peer tells, and the network leaves
 * marks in place; packets may be marked from then on. A peer that is silent a few times is
 * asked no more, and its packets are dropped by full queues, as those of anybody who does
 * not know ECN.
 *
 * Nobody is asked for little traffic, nor on behalf of datagram QPs, which have many peers:
 * their packets may be marked only where an administrator says so (SROCE_RP_ON).
 *
 * send.c comes here with each train, and congestion.c with notifications.
 */
#include <linux/ktime.h>

#include "path.h"
#include "transport/ecn.h"
#include "transport/internal.h"

/* A peer is asked when so much was sent, and after as much again */
#define SROCE_ECN_ASK_BYTES SZ_256K
/* ... but no sooner: the answer has to come back, and may be limited in number */
#define SROCE_ECN_ASK_NS (250ULL * NSEC_PER_MSEC)
/* ... and so often: questions and answers may be lost */
#define SROCE_ECN_ASK_MOST 4
/* All notifications of so long after a question, or of two round trips, are for its train */
#define SROCE_ECN_ANSWER_NS (2ULL * NSEC_PER_MSEC)

static unsigned long sroce_ecn_sent(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->req.half.sent_bytes) + READ_ONCE(qp->resp.half.sent_bytes);
}

void sroce_ecn_reset(struct sroce_qp *qp)
{
	qp->congestion.ecn = (struct sroce_ecn){ .asked_sent = sroce_ecn_sent(qp) };
}

/* Both halves come here. Context: the lock of qp->congestion held. */
static bool sroce_ecn_ask(struct sroce_qp *qp, struct sroce_ecn *ecn)
{
	u64 now = ktime_get_ns();

	if (ecn->peer == SROCE_ECN_ASKED && now - ecn->asked_at < SROCE_ECN_ASK_NS)
		return false;
	if (ecn->asked == SROCE_ECN_ASK_MOST) {
		WRITE_ONCE(ecn->peer, SROCE_ECN_SILENT);
		return false;
	}
	ecn->asked++;
	ecn->asked_at = now;
	WRITE_ONCE(ecn->asked_sent, sroce_ecn_sent(qp));
	WRITE_ONCE(ecn->peer, SROCE_ECN_ASKED);
	return true;
}

/* Is the peer to be asked with the train that leaves? */
static bool sroce_ecn_asks(struct sroce_qp *qp)
{
	struct sroce_qp_congestion *c = &qp->congestion;
	bool ask = false;

	if (sroce_ecn_sent(qp) - READ_ONCE(c->ecn.asked_sent) < SROCE_ECN_ASK_BYTES)
		return false;
	spin_lock(&c->lock);
	if (c->ecn.peer < SROCE_ECN_TELLS)
		ask = sroce_ecn_ask(qp, &c->ecn);
	spin_unlock(&c->lock);
	return ask;
}

/*
 * Would a notification have an effect? Those who answer to a mark by none are not marked,
 * nor those whom it would not reach. An ACK is little and comes of itself, so that it is not
 * marked either, unless it goes with a request: packets of one buffer have one class.
 */
static bool sroce_ecn_is_for(const struct sroce_half *half, const struct sroce_path *path,
			     const struct sroce_train *t)
{
	const struct sroce_qp *qp = half->qp;

	if (path->group || qp->type == IB_QPT_GSI)
		return false;
	return (t->op != SROCE_OP_ACK && t->op != SROCE_OP_ATOMIC_ACK) ||
	       half == &qp->req.half;
}

u32 sroce_ecn_of_train(struct sroce_half *half, const struct sroce_path *path,
		       const struct sroce_train *t)
{
	struct sroce_qp *qp = half->qp;

	if (!sroce_ecn_is_for(half, path, t))
		return 0;
	if (READ_ONCE(qp->port->net.congestion.rp_enable) == SROCE_RP_ON)
		return SROCE_ECT;
	if (sroce_qp_is_datagram(qp))
		return 0;
	switch (READ_ONCE(qp->congestion.ecn.peer)) {
	case SROCE_ECN_TELLS:
		return SROCE_ECT;
	case SROCE_ECN_SILENT:
		return 0;
	default:
		return sroce_ecn_asks(qp) ? SROCE_CE : 0;
	}
}

static bool sroce_ecn_is_answer(const struct sroce_qp *qp, const struct sroce_ecn *ecn)
{
	u64 ns = max(2 * READ_ONCE(qp->req.rtt.srtt), SROCE_ECN_ANSWER_NS);

	/* A late one is an answer, too; of a peer that was not asked it is congestion */
	if (ecn->peer != SROCE_ECN_TELLS)
		return ecn->peer != SROCE_ECN_UNKNOWN;
	return ecn->asked && ktime_get_ns() - ecn->asked_at < ns;
}

bool sroce_ecn_answered(struct sroce_qp *qp)
{
	struct sroce_qp_congestion *c = &qp->congestion;
	bool answer;

	spin_lock(&c->lock);
	answer = sroce_ecn_is_answer(qp, &c->ecn);
	WRITE_ONCE(c->ecn.peer, SROCE_ECN_TELLS);
	spin_unlock(&c->lock);
	return answer;
}
