/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packet buffers that become trains.
 */
#ifndef SROCE_NET_RECEIVE_H
#define SROCE_NET_RECEIVE_H

struct net;
struct sk_buff;
struct sroce_netport;

/* Largest path MTU of RoCE */
#define SROCE_MAX_PAYLOAD 4096

/**
 * sroce_net_receive() - take a packet buffer from the stack
 * @net: namespace
 * @port: device it is for
 * @skb: IP header, or GRH of RoCE v1, at skb->data and linear; consumed
 *
 * Context: RCU, softirq or bottom halves off.
 */
void sroce_net_receive(struct net *net, struct sroce_netport *port,
		       struct sk_buff *skb);

#endif
