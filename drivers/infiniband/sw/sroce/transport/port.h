/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the transport knows of the device it works for, and the two seams to
 * the network: trains go out through struct sroce_xmit_ops and come in through
 * sroce_receive().
 */
#ifndef SROCE_TRANSPORT_PORT_H
#define SROCE_TRANSPORT_PORT_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "counters.h"
#include "memory/mr.h"
#include "wire/train.h"

#define SROCE_GROUP_BUCKETS 64
#define SROCE_PKEYS 16
#define SROCE_DEFAULT_PKEY 0xffff
/* A P_Key without the bit that says full member */
#define SROCE_PKEY_BASE 0x7fff

struct sroce_path;
struct sroce_qp;
struct sroce_rx_info;
struct sroce_txq;

/**
 * struct sroce_tx - trains on their way into one packet buffer
 * @open: the buffer that the next train may join; belongs to the network layer
 *
 * Lives on the stack of whoever sends; zeroed before the first send, flushed
 * after the last.
 */
struct sroce_tx {
	void *open;
};

/**
 * struct sroce_xmit_ops - the network below the transport
 * @send: take one train. May keep it in @tx to couple it with the next one, or
 *	send what is there first. The payload is read before it returns.
 *	A failure to transmit is a lost packet: it is counted, not returned.
 * @flush: send what @tx still holds
 *
 * Both are called with bottom halves off and a QP's requester or responder
 * lock held.
 */
struct sroce_xmit_ops {
	void (*send)(struct sroce_tx *tx, struct sroce_path *path,
		     const struct sroce_train *t, struct sroce_txq *txq);
	void (*flush)(struct sroce_tx *tx);
};

/**
 * struct sroce_port - the device as the transport sees it
 * @xmit: the network
 * @mrs: keys of this device
 * @ahs: address handles by number (ah.c)
 * @counters: SROCE_CNT_*
 * @ibdev: for messages and events; NULL in unit tests
 * @gsi: QP 1
 * @groups: multicast groups that QPs are attached to, by address
 * @ngroups: their number
 * @net_cookie: network namespace, in the form of path->net_cookie
 * @ifindex: netdev, for the direct path between QPs of one host
 * @mtu: active MTU in bytes: the most that a datagram carries
 * @pkeys: P_Key table, 0 where it is empty; changes at any time (verbs/pkey.c)
 */
struct sroce_port {
	const struct sroce_xmit_ops *xmit;
	struct sroce_mr_table mrs;
	struct xarray ahs;
	struct sroce_counters __percpu *counters;
	struct ib_device *ibdev;
	struct sroce_qp __rcu *gsi;
	struct hlist_head groups[SROCE_GROUP_BUCKETS];
	u32 ngroups;
	u64 net_cookie;
	int ifindex;
	u32 mtu;
	u16 pkeys[SROCE_PKEYS];
};

/**
 * struct sroce_rx - packets that arrived together
 * @t: the current packet, or train of such: checked (lengths, ICRC) and decoded
 * @info: where all of them came from
 * @len: bytes of the current train, from BTH to ICRC of each packet
 * @packets: that the port counts: the good ones so far, but for those that a QP
 *	has counted, because it has counters of its own
 * @bytes: their bytes
 * @delivered: bytes to members of multicast groups so far, or what counts as such
 * @next: move on to the next train; false when there is none (then @t is no
 *	longer valid)
 *
 * The network layer embeds this in what it needs to walk its buffer.
 */
struct sroce_rx {
	struct sroce_train t;
	const struct sroce_rx_info *info;
	u32 len;
	u32 packets;
	u32 bytes;
	u32 delivered;
	bool (*next)(struct sroce_rx *rx);
};

/**
 * sroce_receive() - take packets from the network
 * @qp: held by the caller, QP of @rx->t.dqpn
 * @rx: at its first packet for this QP
 *
 * Handles the trains of @rx one after another under one lock, as long as they
 * are for this QP; copies their payload, sends at most one ACK.
 *
 * Context: softirq or bottom halves off.
 * Return: true when @rx->t is for another QP, false at the end.
 */
bool sroce_receive(struct sroce_qp *qp, struct sroce_rx *rx);

/**
 * sroce_receive_group() - take a packet that was sent to a multicast group
 * @port: device it arrived at
 * @rx: at the packet, and still there afterwards
 *
 * Every QP of the device that is attached to the group gets it, unless that would be
 * too much for one buffer (@rx->delivered).
 *
 * Context: softirq or bottom halves off.
 */
void sroce_receive_group(struct sroce_port *port, struct sroce_rx *rx);

/**
 * sroce_qp_find() - look a QP number up
 * @qpn: number
 *
 * QP numbers are unique over all devices of the module; 1 is in no table
 * (@gsi of the port).
 *
 * Context: any.
 * Return: the QP, held (sroce_qp_put()), or NULL.
 */
struct sroce_qp *sroce_qp_find(u32 qpn);

/* QP 1 of a port, held, or NULL */
struct sroce_qp *sroce_qp_find_gsi(struct sroce_port *port);

void sroce_qp_put(struct sroce_qp *qp);

#endif
