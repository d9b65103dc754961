// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The notification point of RoCE's congestion control (IBA A17.9.3): queues of the
 * network mark packets (ECN), and whoever receives a marked one sends the QP that it
 * came from a congestion notification packet (CNP), so that it slows down. One
 * stands for all marked packets of a while: a rate that is cut takes a round trip to
 * show, and notifications meet the same network.
 *
 * A CNP has a class of its own, is not acknowledged and not sent again, and waits
 * behind nothing of its QP: it is sent at once, before what the packet is answered with.
 *
 * receive.c and datagram.c come here with marked packets.
 */
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/once.h>

#include "path.h"
#include "transport/internal.h"
#include "transport/notify.h"
#include "turn.h"
#include "txq.h"

/*
 * A stranger may have notifications sent to hosts that are not there, whose packets wait
 * for their MAC address. They must not take the room that the QP's own need.
 */
#define SROCE_NOTIFY_BYTES SZ_256K

static bool sroce_notify_due(struct sroce_qp *qp, u32 peer)
{
	const struct sroce_congestion *c = &qp->port->net.congestion;
	u32 at = READ_ONCE(qp->notify.at[peer]);
	u32 now = (u32)ktime_to_us(ktime_get()) ?: 1;

	if (!READ_ONCE(c->np_enable) ||
	    (at && now - at < READ_ONCE(c->np_min_time_between_cnps)))
		return false;
	WRITE_ONCE(qp->notify.at[peer], now);
	return true;
}

/* With the QP's own P_Key, as an ACK: of two members one may be a limited one */
static void sroce_notify_send(struct sroce_qp *qp, struct sroce_path *path,
			      u32 dqpn)
{
	const struct sroce_xmit_ops *xmit = qp->port->xmit;
	struct sroce_train cnp = {
		.op = SROCE_OP_NOTIFY,
		.service = SROCE_CNP,
		.flags = SROCE_START | SROCE_END,
		.pkey = sroce_qp_pkey(qp),
		.dqpn = dqpn,
		.sqpn = qp->qpn,
		.npkts = 1,
	};
	struct sroce_tx tx = {};

	sroce_turn_spend(SROCE_TURN_TRAIN);
	xmit->send(&tx, path, &cnp, qp->txq);
	xmit->flush(&tx);
	sroce_qp_count(qp, SROCE_CNT_NP_CNP_SENT, 1);
}

void sroce_notify_peer(struct sroce_qp *qp, const struct sroce_train *t)
{
	if (!sroce_qp_hears(qp))
		return;
	sroce_qp_count(qp, SROCE_CNT_NP_ECN_MARKED, t->npkts);
	if (!sroce_txq_full(qp->txq) && sroce_notify_due(qp, 0))
		sroce_notify_send(qp, qp->path, qp->attr.dest_qp_num);
}

/* With a secret: or a sender could choose whose notifications are to count as its own */
static u32 sroce_notify_hash(const struct sroce_train *t,
			     const struct sroce_rx_info *info)
{
	static u32 secret __read_mostly;

	get_random_once(&secret, sizeof(secret));
	return jhash(&info->sgid, sizeof(info->sgid), t->sqpn ^ secret) %
	       SROCE_NOTIFY_PEERS;
}

void sroce_notify_sender(struct sroce_qp *qp, const struct sroce_train *t,
			 const struct sroce_rx_info *info)
{
	struct sroce_path *path;

	if (t->dqpn == SROCE_QPN_MULTICAST)
		return;
	sroce_qp_count(qp, SROCE_CNT_NP_ECN_MARKED, t->npkts);
	if (qp->type == IB_QPT_GSI ||
	    sroce_txq_bytes(qp->txq) > SROCE_NOTIFY_BYTES ||
	    !sroce_notify_due(qp, sroce_notify_hash(t, info)))
		return;
	path = qp->port->xmit->path_back(&qp->port->net, info);
	if (!path)
		return;
	sroce_notify_send(qp, path, t->sqpn);
	sroce_path_put(path);
}
