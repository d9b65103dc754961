// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets from the network, and trains from QPs of this host, on their way to
 * the requester or the responder. What is checked here is the same for both:
 * that the packet may belong to this QP at all (IBA 9.6.1, silently dropped
 * otherwise).
 */
#include "path.h"
#include "transport/congestion.h"
#include "transport/datagram.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/notify.h"
#include "transport/patience.h"
#include "transport/receive.h"
#include "transport/requester_response.h"
#include "transport/responder.h"
#include "transport/run.h"
#include "transport/send.h"
#include "transport/trace.h"
#include "transport/uc.h"
#include "turn.h"

/* IBA 10.9.3: equal but for the membership bit, and one of them full member */
static bool sroce_pkey_match(u16 a, u16 b)
{
	return !((a ^ b) & SROCE_PKEY_BASE) && ((a | b) & ~SROCE_PKEY_BASE) &&
	       (a & SROCE_PKEY_BASE);
}

int sroce_pkey_index(const struct sroce_port *port, u16 pkey)
{
	int i;

	for (i = 0; i < SROCE_PKEYS; i++)
		if (sroce_pkey_match(pkey, READ_ONCE(port->pkeys[i])))
			return i;
	return -1;
}

/* QP 1 listens to every partition of its port */
static bool sroce_pkey_ok(const struct sroce_qp *qp, u16 pkey)
{
	return sroce_pkey_match(pkey, sroce_qp_pkey(qp)) ||
	       (qp->type == IB_QPT_GSI &&
		sroce_pkey_index(qp->port, pkey) >= 0);
}

/**
 * struct sroce_ends - between whom a packet is, as its receiver sees it
 * @sgid: sender
 * @dgid: this host
 * @network_type: as in struct sroce_path
 * @link: link that it came through; 0: from this host
 * @from_ifindex: netdev that it came through
 * @net_cookie: network namespace
 */
struct sroce_ends {
	u64 net_cookie;
	const union ib_gid *sgid;
	const union ib_gid *dgid;
	u8 network_type;
	int link;
	int from_ifindex;
};

/*
 * Whoever is on another link, another VLAN for instance, may use the same addresses. A link
 * is called by the netdev of the device that a packet is for. Below a bond there may be several,
 * and it need not be the queue pair's; the bond is the same.
 */
static bool sroce_receive_from_link(const struct sroce_path *path,
				    const struct sroce_ends *ends)
{
	if (likely(!path->link) || !ends->link || ends->link == path->link)
		return true;
	return path->link != SROCE_LINK_NONE &&
	       ends->from_ifindex == path->ifindex;
}

/*
 * A connected QP listens to its peer only, and in one version of RoCE (A17, CA17-41).
 * When the device has moved, others have the addresses: QPs of before hear nobody any more.
 */
static bool sroce_receive_from_peer(const struct sroce_qp *qp,
				    const struct sroce_ends *ends)
{
	const struct sroce_path *path = qp->path;

	return path && path->net_cookie == ends->net_cookie &&
	       path->network_type == ends->network_type &&
	       !memcmp(&path->dgid, ends->sgid, sizeof(path->dgid)) &&
	       !memcmp(&path->sgid, ends->dgid, sizeof(path->sgid)) &&
	       sroce_receive_from_link(path, ends);
}

static bool sroce_receive_may_take(struct sroce_qp *qp,
				   const struct sroce_train *t,
				   const struct sroce_ends *ends)
{
	if (t->service != qp->kind->service && t->op != SROCE_OP_NOTIFY) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		return false;
	}
	if (!sroce_qp_is_datagram(qp) &&
	    !sroce_receive_from_peer(qp, ends)) {
		sroce_qp_count(qp, SROCE_CNT_RX_WRONG_PATH, t->npkts);
		return false;
	}
	if (!sroce_pkey_ok(qp, t->pkey)) {
		sroce_qp_count(qp, SROCE_CNT_RX_BAD_PKEY, t->npkts);
		return false;
	}
	return true;
}

static void sroce_receive_request(struct sroce_qp *qp, struct sroce_train *t,
				  const struct sroce_rx_info *info)
{
	switch (qp->type) {
	case IB_QPT_RC:
	case IB_QPT_XRC_TGT:
		sroce_responder_request(qp, t);
		break;
	case IB_QPT_UC:
		sroce_uc_request(qp, t);
		break;
	case IB_QPT_XRC_INI:
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, t->npkts);
		break;
	default:
		sroce_datagram_receive(qp, t, info);
	}
}

/*
 * Take a request, if none before it waits for a receive. It is kept behind that one
 * otherwise; and so it is when it begins to wait itself.
 */
static void sroce_receive_request_in_turn(struct sroce_qp *qp,
					  struct sroce_train *t,
					  const struct sroce_rx_info *info)
{
	if (likely(qp->resp.patience.state == SROCE_RESP_READY))
		sroce_receive_request(qp, t, info);
	if (unlikely(qp->resp.patience.state != SROCE_RESP_READY))
		sroce_patience_keep(qp, t);
}

static void sroce_receive_packet(struct sroce_qp *qp, struct sroce_rx *rx)
{
	const struct sroce_rx_info *info = rx->info;
	const struct sroce_ends ends = {
		.sgid = &info->sgid,
		.dgid = &info->dgid,
		.network_type = info->network_hdr_type,
		.link = info->link,
		.from_ifindex = info->from_ifindex,
		.net_cookie = info->net_cookie,
	};
	struct sroce_train *t = &rx->t;

	if (qp->dead ||
	    info->net_cookie != READ_ONCE(qp->port->net.net_cookie) ||
	    !sroce_receive_may_take(qp, t, &ends))
		return;
	trace_sroce_train_received(qp, t, false);
	if (unlikely(t->flags & SROCE_CE) && t->op != SROCE_OP_NOTIFY &&
	    !sroce_qp_is_datagram(qp))
		sroce_notify_peer(qp, t);
	if (sroce_op_is_response(t->op))
		sroce_requester_response(qp, t);
	else if (unlikely(t->op == SROCE_OP_NOTIFY))
		sroce_congestion_notified(qp);
	else
		sroce_receive_request_in_turn(qp, t, info);
}

/*
 * A QP with counters of its own counts a train there. The port counts when the buffer has
 * been gone through, and must leave this one out.
 */
static void sroce_receive_count_own(struct sroce_qp *qp, struct sroce_rx *rx)
{
	sroce_qp_count(qp, SROCE_CNT_RX_PACKETS, rx->t.npkts);
	sroce_qp_count(qp, SROCE_CNT_RX_BYTES, rx->len);
	rx->packets -= rx->t.npkts;
	rx->bytes -= rx->len;
}

/*
 * Give a half all trains for it that follow each other. Return: true when @rx is at one
 * for somebody else, false at the end of the buffer.
 */
static bool sroce_receive_half(struct sroce_qp *qp, struct sroce_half *half,
			       struct sroce_rx *rx, bool responses)
{
	bool again = false;
	bool more, own;

	spin_lock(&half->lock);
	/* The port of a dead QP may be gone */
	own = !qp->dead && qp->counters != qp->port->net.counters;
	if (unlikely(own))
		sroce_qp_count(qp, SROCE_CNT_RX_TRAINS, 1);
	do {
		if (unlikely(own))
			sroce_receive_count_own(qp, rx);
		sroce_turn_spend(rx->len + rx->t.npkts * SROCE_TURN_PACKET);
		sroce_receive_packet(qp, rx);
		more = rx->next(rx);
	} while (more && rx->t.dqpn == qp->qpn &&
		 sroce_op_is_response(rx->t.op) == responses);
	/* What was received cannot wait, but the answer can */
	if (!qp->dead)
		again = unlikely(sroce_turn_over() ||
				 !sroce_send_allowed(half)) ||
			half->run(half);
	spin_unlock(&half->lock);
	if (again)
		sroce_half_queue(half);
	return more;
}

bool sroce_receive(struct sroce_qp *qp, struct sroce_rx *rx)
{
	bool fresh = !softirq_count();
	bool responses, more;

	local_bh_disable();
	sroce_turn_begin(fresh);
	do {
		responses = sroce_op_is_response(rx->t.op);
		more = sroce_receive_half(qp, responses ? &qp->req.half :
					  &qp->resp.half, rx, responses);
	} while (more && rx->t.dqpn == qp->qpn);
	sroce_run_pending();
	sroce_turn_end();
	local_bh_enable();
	return more;
}

/* Bytes of a train of one packet, had it been sent */
static u32 sroce_receive_size(const struct sroce_train *t)
{
	return sroce_train_hdr_len(t, 0) + ALIGN(t->bi.bi_size, 4) +
	       SROCE_ICRC_LEN;
}

void sroce_receive_parcel(struct sroce_qp *qp, struct sroce_parcel *p)
{
	struct sroce_path *path = sroce_parcel_path(p);
	struct sroce_train *t = sroce_parcel_train(p);
	struct sroce_rx_info info;
	struct sroce_ends ends;

	/* Without a path: from the network, checked when it came, and kept since */
	if (!path) {
		sroce_responder_request(qp, t);
		return;
	}
	if (!sroce_parcel_from_peer(qp, p)) {
		sroce_qp_count(qp, SROCE_CNT_RX_WRONG_PATH, t->npkts);
		return;
	}
	/* The peer's destination is our source */
	ends = (struct sroce_ends){
		.sgid = &path->sgid,
		.dgid = &path->dgid,
		.network_type = path->network_type,
		.net_cookie = path->net_cookie,
	};
	if (!sroce_receive_may_take(qp, t, &ends))
		return;
	trace_sroce_train_received(qp, t, true);
	if (sroce_op_is_response(t->op)) {
		sroce_requester_response(qp, t);
		return;
	}
	if (sroce_qp_is_datagram(qp))
		sroce_path_rx_info(path, sroce_receive_size(t), &info);
	sroce_receive_request(qp, t, &info);
}
