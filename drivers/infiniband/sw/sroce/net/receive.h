/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packet buffers that become trains.
 */
#ifndef SROCE_NET_RECEIVE_H
#define SROCE_NET_RECEIVE_H

#include "transport/seam.h"

struct net;
struct sk_buff;
struct sroce_netport;

/* Largest path MTU of RoCE */
#define SROCE_MAX_PAYLOAD 4096

/*
 * For unit tests: where packets are counted that were known by the one before them, NULL for
 * nowhere. It is set while nothing is received.
 */
extern unsigned int *sroce_rx_alike;

/**
 * struct sroce_rx_place - how far a buffer was received; all 0: not yet
 * @packets: that were dealt with
 * @fixed_id: as in struct sroce_skb_rx
 * @id: likewise, if there are @packets
 * @spread: what was delivered to a multicast group, also of the next packet
 */
struct sroce_rx_place {
	u8 packets;
	bool fixed_id;
	u16 id;
	struct sroce_rx_spread spread;
};

/**
 * sroce_net_receive() - take a packet buffer from the stack, or a part of it
 * @net: namespace
 * @port: device it is for
 * @skb: IP header, or GRH of RoCE v1, at skb->data and linear; consumed
 * @place: where in it to begin
 *
 * When the turn is overdue (turn.h) packets for other QPs than the first one are left.
 *
 * Context: RCU, softirq or bottom halves off.
 * Return: true; or false when @skb is the caller's still, and the rest of it, from @place
 *	on, is to be received later. There is less of it each time.
 */
bool sroce_net_receive(struct net *net, struct sroce_netport *port,
		       struct sk_buff *skb, struct sroce_rx_place *place);

#endif
