/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the transport knows of the device it works for.
 */
#ifndef SROCE_TRANSPORT_PORT_H
#define SROCE_TRANSPORT_PORT_H

#include <linux/container_of.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "memory/mr.h"
#include "netport.h"
#include "txq.h"

#define SROCE_GROUP_BUCKETS 64
#define SROCE_PKEYS 16
#define SROCE_DEFAULT_PKEY 0xffff
/* A P_Key without the bit that says full member */
#define SROCE_PKEY_BASE 0x7fff

struct sroce_qp;
struct sroce_raw_tx;
struct sroce_xmit_ops;

/**
 * struct sroce_recovery - how a device's connections recover from loss, as an
 * administrator has set it (verbs/recovery.c)
 * @selective_repeat_en: keep what comes before something that is missing (held.c), and send
 *	again what a peer misses only (repair.c); 0: go-back-N
 * @adp_retrans_en: ask after a tail that may be lost before the ACK timeout (probe.c)
 *
 * Each changes at any time.
 */
struct sroce_recovery {
	u32 selective_repeat_en;
	u32 adp_retrans_en;
};

/**
 * struct sroce_port - the device as the transport sees it
 * @net: what the network knows of it, too
 * @xmit: the network
 * @raw_xmit: send an Ethernet frame; NULL: there are none. Its bytes are read before it returns:
 *	0, also when it was lost, which is counted; -EMSGSIZE when it is too long, or -EINVAL
 *	when it is no frame. Called as those of @xmit
 * @mrs: keys of this device
 * @ahs: address handles by number (ah.c)
 * @ah_turn: of the next one; under the lock of @ahs
 * @ibdev: for messages and events; NULL in unit tests
 * @recovery: settings
 * @held: bytes that its QPs hold behind a gap (held.c)
 * @waiting: bytes that wait for receives of its QPs (patience.c)
 * @queued: what all of its QPs have in the stack's queues
 * @gsi: QP 1
 * @groups: multicast groups that QPs are attached to, by address
 * @ngroups: their number
 * @mtu: active MTU in bytes: the most that a datagram carries
 * @pkeys: P_Key table, 0 where it is empty; changes at any time (verbs/pkey.c)
 */
struct sroce_port {
	struct sroce_netport net;
	const struct sroce_xmit_ops *xmit;
	int (*raw_xmit)(struct sroce_netport *net,
			const struct sroce_raw_tx *tx, struct sroce_txq *txq);
	struct sroce_mr_table mrs;
	struct xarray ahs;
	u32 ah_turn;
	struct ib_device *ibdev;
	struct sroce_recovery recovery;
	atomic_long_t held ____cacheline_aligned_in_smp;
	atomic_long_t waiting;
	struct sroce_txq_pool queued;
	struct sroce_qp __rcu *gsi;
	struct hlist_head groups[SROCE_GROUP_BUCKETS];
	u32 ngroups;
	u32 mtu;
	u16 pkeys[SROCE_PKEYS];
};

static inline struct sroce_port *to_sroce_port(struct sroce_netport *net)
{
	return container_of(net, struct sroce_port, net);
}

#endif
