/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The route of a path, which route.c finds, and the flow of a train. (The network stack
 * has a net/route.h itself.)
 */
#ifndef SROCE_NET_PATHS_H
#define SROCE_NET_PATHS_H

#include <linux/types.h>
#include <net/inet_ecn.h>
#include <rdma/ib_verbs.h>

#include "netport.h"
#include "path.h"
#include "wire/train.h"

struct dst_entry;
struct net;
struct sroce_netport;
struct sroce_rx_info;
struct sroce_txq;

static inline bool sroce_path_is_ipv4(const struct sroce_path *path)
{
	return path->network_type == RDMA_NETWORK_IPV4;
}

static inline bool sroce_path_is_v1(const struct sroce_path *path)
{
	return path->network_type == RDMA_NETWORK_ROCE_V1;
}

/**
 * sroce_path_route() - route of a path, looked up again when it has gone stale
 * @path: path
 * @net: set to its namespace, valid as long as bottom halves are off
 *
 * Context: bottom halves off.
 * Return: the route, valid as long as these are off, or NULL when there is none now. It is
 * not held: the count of a route is shared by all paths that lead the same way.
 */
struct dst_entry *sroce_path_route(struct sroce_path *path, struct net **net);

/* For struct sroce_xmit_ops. Context: RCU, bottom halves off. */
struct sroce_path *sroce_path_back(struct sroce_netport *port,
				   const struct sroce_rx_info *info);

/**
 * struct sroce_flow - whose packets may share a packet buffer
 * @path: where they go
 * @txq: who will be charged
 * @sport: their UDP source port
 * @tclass: their traffic class or TOS
 * @priority: of the buffer
 */
struct sroce_flow {
	struct sroce_path *path;
	struct sroce_txq *txq;
	__be16 sport;
	u8 tclass;
	u32 priority;
};

/**
 * sroce_path_flow() - the flow of a train
 * @path: path it is sent on
 * @t: train
 * @txq: who will be charged
 *
 * Return: the flow; its port is the same for everything between two QPs. Congestion
 * notifications have a class of their own.
 */
static inline struct sroce_flow sroce_path_flow(struct sroce_path *path,
						const struct sroce_train *t,
						struct sroce_txq *txq)
{
	const struct sroce_congestion *c = &path->port->congestion;
	struct sroce_flow f = {
		.path = path,
		.txq = txq,
		.sport = path->sport,
		.tclass = path->tclass,
		.priority = path->priority,
	};

	/* The path of an address handle has no port; its trains have @sqpn */
	if (!f.sport)
		f.sport = htons(rdma_get_udp_sport(0, t->sqpn, t->dqpn));
	/* Only IP has bits that say so */
	if (unlikely(t->flags & SROCE_CE) && !sroce_path_is_v1(path))
		f.tclass |= INET_ECN_CE;
	else if (t->flags & SROCE_ECT && !sroce_path_is_v1(path))
		f.tclass |= INET_ECN_ECT_0;
	if (unlikely(t->op == SROCE_OP_NOTIFY)) {
		f.tclass = READ_ONCE(c->np_cnp_dscp) << 2;
		f.priority = READ_ONCE(c->np_cnp_prio);
	}
	return f;
}

#endif
