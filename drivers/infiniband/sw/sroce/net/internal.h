/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of this directory call of each other.
 */
#ifndef SROCE_NET_INTERNAL_H
#define SROCE_NET_INTERNAL_H

#include <linux/bvec.h>
#include <linux/in.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/wait.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>

#include "counters.h"
#include "net/net.h"

struct socket;

/* Largest path MTU of RoCE */
#define SROCE_MAX_PAYLOAD 4096

/* --- init.c: module parameters -------------------------------------------- */

extern bool sroce_direct;
extern bool sroce_gso;

/* --- attach.c: devices of a namespace ------------------------------------- */

/**
 * struct sroce_netns - what a network namespace has
 * @ports: attached devices (struct sroce_attachment), RCU
 * @sock4: UDP socket, NULL when there is no device
 * @sock6: the same for IPv6, NULL also where there is no IPv6
 */
struct sroce_netns {
	struct list_head ports;
	struct socket *sock4;
	struct socket *sock6;
};

struct sroce_netns *sroce_netns(const struct net *net);

/* The device of a netdev. Context: RCU. Return: NULL when it has none. */
struct sroce_netport *sroce_port_of_ifindex(const struct net *net, int ifindex);

/**
 * sroce_port_of_netdev() - the device that has the GIDs of a netdev
 * @net: namespace
 * @dev: netdev
 * @unique: find nothing when several devices share them (slaves of one bond,
 *	members of one bridge)
 *
 * That is the device of the netdev, or of one below it (of a VLAN, bond, bridge
 * or macvlan): ib_core puts the addresses into the GID tables of both.
 *
 * Context: RCU.
 * Return: the device or NULL.
 */
struct sroce_netport *sroce_port_of_netdev(struct net *net,
					   struct net_device *dev, bool unique);

/**
 * sroce_netdev_of_address() - the netdev that an address of this host belongs to
 * @net: namespace
 * @addr: IPv6 or v4-mapped address
 * @dev: where a link-local address is looked for; NULL: anywhere
 *
 * Context: RCU.
 * Return: the netdev or NULL.
 */
struct net_device *sroce_netdev_of_address(struct net *net,
					   const struct in6_addr *addr,
					   struct net_device *dev);

/*
 * The VLAN of a netdev's GIDs as ib_core sees it (rdma_read_gid_l2_fields()):
 * its own, or that of what it stands on; 0xffff for none. Context: RCU.
 */
u16 sroce_netdev_vlan_id(struct net_device *dev);

static inline bool sroce_is_group(const struct in6_addr *addr)
{
	return ipv6_addr_is_multicast(addr) ||
	       (ipv6_addr_v4mapped(addr) &&
		ipv4_is_multicast(addr->s6_addr32[3]));
}

/**
 * sroce_attachment_add_path() - have a path cut off when its device is detached
 * @path: @path->port is set; @path->net is set on success
 *
 * Return: 0, or -ENODEV when the device is not attached.
 */
int sroce_attachment_add_path(struct sroce_path *path);

/* Forget a path and its route; nobody else uses it any more. Context: any. */
void sroce_attachment_del_path(struct sroce_path *path);

int sroce_attachments_init(void);
void sroce_attachments_exit(void);

/* --- group.c: multicast groups ---------------------------------------------- */

/* Memberships follow their netdevs from here on. Return: 0 or a negative errno. */
int sroce_joins_init(void);
/* Module end: no netdev is member of a group for a device any more */
void sroce_joins_exit(void);

/* --- socket.c: ways in ---------------------------------------------------- */

/* Context: process, serialised. Nothing is left behind on failure. */
int sroce_sockets_open(struct net *net, struct sroce_netns *ns,
		       struct netlink_ext_ack *extack);
/* On return no packet is on its way in through them */
void sroce_sockets_close(struct net *net, struct sroce_netns *ns);

/**
 * sroce_port_of_packet() - the device that a packet is for
 * @net: namespace that it has come to
 * @skb: IP header at skb->data and linear
 *
 * Context: RCU.
 * Return: the device or NULL.
 */
struct sroce_netport *sroce_port_of_packet(struct net *net,
					   const struct sk_buff *skb);

/**
 * sroce_skb_is_roce() - is a packet for the UDP port of RoCE?
 * @skb: UDP packet
 * @off: bytes from skb->data to its UDP header
 */
bool sroce_skb_is_roce(const struct sk_buff *skb, unsigned int off);

/* --- guard.c: netfilter hooks at NF_INET_LOCAL_OUT ------------------------ */

struct nf_hook_state;

unsigned int sroce_guard_ipv4(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state);
unsigned int sroce_guard_ipv6(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state);

/* --- backlog.c: packets that wait ------------------------------------------ */

/**
 * sroce_net_input() - take a packet buffer from the stack, now or soon
 * @net: namespace
 * @port: device it is for
 * @skb: as for sroce_net_receive(), which gets it, from a worker if the turn is overdue
 *
 * Context: RCU, softirq or bottom halves off.
 */
void sroce_net_input(struct net *net, struct sroce_netport *port,
		     struct sk_buff *skb);

/* Return: 0 or a negative errno */
int sroce_backlog_init(void);
/* Module end: no socket and no hook is left through which packets come */
void sroce_backlog_exit(void);

/* Whom a buffer that has waited is given to: RCU, bottom halves off. Tests change it. */
extern void (*sroce_backlog_sink)(struct sk_buff *skb);

/* Memory of all that waits or is being taken: what was taken by 0 has been received */
u32 sroce_backlog_bytes(void);

/* Drop the buffers that wait and have come from @dev; NULL: all. Context: process. */
void sroce_backlogs_forget(const struct net_device *dev);

/* --- receive.c ------------------------------------------------------------ */

/**
 * sroce_net_receive() - take a packet buffer from the stack
 * @net: namespace
 * @port: device it is for
 * @skb: IP header at skb->data and linear; consumed
 *
 * Context: RCU, softirq or bottom halves off.
 */
void sroce_net_receive(struct net *net, struct sroce_netport *port,
		       struct sk_buff *skb);

/* --- walk.c: the bytes of a packet buffer --------------------------------- */

/**
 * struct sroce_walk - position in a packet buffer of any layout
 * @head: buffer
 * @skb: @head or a member of its frag_list
 * @frag: index in @skb's frags, -1 for its linear part
 * @off: offset in that
 */
struct sroce_walk {
	struct sk_buff *head;
	struct sk_buff *skb;
	int frag;
	u32 off;
};

/**
 * sroce_walk_start() - begin
 * @w: position
 * @skb: buffer; may be linearised
 * @off: bytes to skip
 *
 * Return: 0 or a negative errno when its bytes cannot be reached.
 */
int sroce_walk_start(struct sroce_walk *w, struct sk_buff *skb, u32 off);

static inline void sroce_walk_skip(struct sroce_walk *w, u32 len)
{
	w->off += len;
}

/**
 * sroce_walk_map() - describe the next bytes and move on behind them
 * @w: position
 * @bv: filled in
 * @max: entries of @bv
 * @len: bytes
 *
 * Return: entries used; -EMSGSIZE when @max is too few, -EFAULT when the buffer
 * ends early; @w is then of no use.
 */
int sroce_walk_map(struct sroce_walk *w, struct bio_vec *bv, int max, u32 len);

/* --- route.c -------------------------------------------------------------- */

/**
 * sroce_path_route() - route of a path, looked up again when it has gone stale
 * @path: path
 * @net: set to its namespace, valid as long as bottom halves are off
 *
 * Context: bottom halves off.
 * Return: the route, held, or NULL when there is none now.
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
	if (t->flags & SROCE_ECT)
		f.tclass |= INET_ECN_ECT_0;
	if (unlikely(t->op == SROCE_OP_NOTIFY)) {
		f.tclass = READ_ONCE(c->np_cnp_dscp) << 2;
		f.priority = READ_ONCE(c->np_cnp_prio);
	}
	return f;
}

/* --- pack.c: packets into a packet buffer --------------------------------- */

/**
 * sroce_pack_open() - make an empty packet buffer
 * @flow: of its packets
 * @size: bytes of the first packet, BTH to ICRC
 * @linear: bytes to make room for behind the headers; 0: packets go into page
 *	fragments
 *
 * Context: bottom halves off.
 * Return: the buffer, or NULL when there is no route or no memory.
 */
struct sk_buff *sroce_pack_open(const struct sroce_flow *flow, u32 size,
				u32 linear);

/* May a packet of @size bytes of a flow be added? */
bool sroce_pack_fits(const struct sk_buff *skb, const struct sroce_flow *flow,
		     u32 size);

/* Can nothing more be added? */
bool sroce_pack_full(const struct sk_buff *skb);

/**
 * sroce_pack_add() - add one packet
 * @skb: buffer, sroce_pack_fits()
 * @t: train
 * @k: packet of it
 * @bi: position of its payload in @t->bv, moved on behind it
 * @size: bytes, BTH to ICRC
 *
 * Return: false when there is no room after all; nothing was changed.
 */
bool sroce_pack_add(struct sk_buff *skb, const struct sroce_train *t, u32 k,
		    struct bvec_iter *bi, u32 size);

/* Send the buffer if there is anything in it; gone in any case */
void sroce_pack_send(struct sk_buff *skb);

/* Was this called by sroce_pack_send()? Context: bottom halves off. */
bool sroce_pack_sending(void);

void sroce_pack_exit(void);

#endif
