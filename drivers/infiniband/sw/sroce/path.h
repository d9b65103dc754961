/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Where packets go, and where they came from. A path is made by the network layer,
 * which alone knows its route and namespace (net/route.c); the transport holds it,
 * compares its addresses and hands it back with each train.
 */
#ifndef SROCE_PATH_H
#define SROCE_PATH_H

#include <linux/cache.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct net;
struct sroce_netport;
struct sroce_route;

/* Next header of a GRH in front of a BTH (IBA 8.3.5) */
#define SROCE_GRH_NEXT_HDR 0x1b

/* That of a path within this host: what has come through a link is from somebody else */
#define SROCE_LINK_NONE -1

/**
 * struct sroce_path - from one of our addresses to one peer
 * @refs: one for the owner, one for each user
 * @rcu: freed after a grace period
 * @release: called by whoever is the last to put it; in any context
 * @node: in the list of the device's paths
 * @lock: of who looks for a route, and of who changes @net
 * @id: IPv4 identification that follows the one last sent; no lock protects it. What senders
 *	write to, of which an address handle may have many at once, is in the first line;
 *	what they read begins with the next one
 * @port: device; outlives the path's last use by a QP
 * @net: namespace the route is looked up in; NULL once the device is detached;
 *	private to the network layer; changes under @lock, and senders read it without
 * @net_cookie: the same, comparable
 * @ifindex: netdev of the source GID: that of the device, or one on top of it
 *	(VLAN, bond); packets leave through it
 * @link: the only link that packets of the peer come through, or else through the very netdev
 *	@ifindex; 0: any. There is one where @sgid is a link-local address, which other links may
 *	have as well (a VLAN mostly has that of the netdev below it), and SROCE_LINK_NONE where
 *	@dgid is this host's
 * @sgid: source address; IPv4 is v4-mapped
 * @dgid: destination address
 * @network_type: what is in front of the BTH: RDMA_NETWORK_IPV4 or _IPV6 (RoCE v2), or
 *	RDMA_NETWORK_ROCE_V1
 * @group: the destination is a multicast group
 * @tclass: traffic class or TOS
 * @hop_limit: TTL, never 0
 * @flow_label: 20 bits; 0: none was given
 * @sport: UDP source port, spread by flow label or QP numbers; 0: by those of each
 *	datagram
 * @priority: skb priority from the service level, or else from the TOS
 * @dmac: destination MAC from the address handle, zero when not given; RoCE v1 goes there
 * @direct_ifindex: netdev of the sroce device of this namespace that owns
 *	@dgid, so that its QPs are reached without a packet; 0 when there is none
 *	(any more)
 * @direct_vlan_id: VLAN of @dgid there, 0xffff for none
 * @route: cached, checked at each use; found under RCU
 * @hash: of the addresses and @sport, for queues of qdiscs and NICs
 */
struct sroce_path {
	refcount_t refs;
	struct rcu_head rcu;
	void (*release)(struct sroce_path *path);
	struct list_head node;
	spinlock_t lock;	/* bottom halves off */
	u16 id;
	struct sroce_netport *port ____cacheline_aligned_in_smp;
	struct net *net;
	u64 net_cookie;
	int ifindex;
	int link;
	union ib_gid sgid;
	union ib_gid dgid;
	u8 network_type;
	bool group;
	u8 tclass;
	u8 hop_limit;
	u32 flow_label;
	__be16 sport;
	u32 priority;
	u8 dmac[6];
	int direct_ifindex;
	u16 direct_vlan_id;
	struct sroce_route __rcu *route;
	u32 hash;
};

static inline struct sroce_path *sroce_path_get(struct sroce_path *path)
{
	refcount_inc(&path->refs);
	return path;
}

/* NULL is fine. Context: any. */
static inline void sroce_path_put(struct sroce_path *path)
{
	if (path && refcount_dec_and_test(&path->refs))
		path->release(path);
}

/**
 * struct sroce_rx_info - where packets came from
 * @sgid: sender; an IPv4 address is v4-mapped
 * @dgid: this host
 * @net_cookie: network namespace they arrived in
 * @ifindex: netdev of the device that they are for
 * @link: link they came through, as in struct sroce_path; 0: from this host
 * @from_ifindex: netdev they came through
 * @network_hdr_type: as network_type of a path
 * @sl: service level (VLAN priority)
 * @looped: this host has sent them, to a multicast group or a queue pair of its own
 * @has_smac: @smac is known
 * @vlan_id: VLAN tag, 0xffff for none
 * @smac: Ethernet source
 * @grh: the 40 bytes that a UD receiver finds before the payload: zeros and
 *	the IPv4 header, or the IPv6 header (A17.4.5.2), or the GRH of RoCE v1
 */
struct sroce_rx_info {
	union ib_gid sgid;
	union ib_gid dgid;
	u64 net_cookie;
	int ifindex;
	int link;
	int from_ifindex;
	u8 network_hdr_type;
	u8 sl;
	bool looped;
	bool has_smac;
	u16 vlan_id;
	u8 smac[6];
	u8 grh[40];
};

/**
 * sroce_path_rx_info() - what a receiver would see of a packet on this path
 * @path: path of the sender
 * @len: bytes from BTH to ICRC
 * @info: filled in
 *
 * For packets that are never made because the receiver is on this host.
 */
void sroce_path_rx_info(const struct sroce_path *path, u32 len,
			struct sroce_rx_info *info);

static inline const struct in6_addr *sroce_gid_addr(const union ib_gid *gid)
{
	return (const struct in6_addr *)gid->raw;
}

/* The IPv4 address in a v4-mapped GID */
static inline __be32 sroce_gid_ipv4(const union ib_gid *gid)
{
	return sroce_gid_addr(gid)->s6_addr32[3];
}

#endif
