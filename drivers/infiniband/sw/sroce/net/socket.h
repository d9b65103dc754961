/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ways in: the UDP sockets of a namespace, and whose packets those are that come.
 */
#ifndef SROCE_NET_SOCKET_H
#define SROCE_NET_SOCKET_H

#include <linux/types.h>

struct net;
struct netlink_ext_ack;
struct sk_buff;
struct sroce_netns;
struct sroce_netport;

/* Context: process, serialised. Nothing is left behind on failure. */
int sroce_sockets_open(struct net *net, struct sroce_netns *ns,
		       struct netlink_ext_ack *extack);
/* On return no packet is on its way in through them */
void sroce_sockets_close(struct net *net, struct sroce_netns *ns);

/**
 * sroce_port_of_packet() - the device that a packet is for
 * @net: namespace that it has come to
 * @skb: IP header, or GRH of RoCE v1, at skb->data and linear
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

#endif
