/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packets that wait until the turn of their CPU is over.
 */
#ifndef SROCE_NET_BACKLOG_H
#define SROCE_NET_BACKLOG_H

#include <linux/types.h>

struct net;
struct net_device;
struct sk_buff;
struct sroce_netport;
struct sroce_rx_place;

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

/* A buffer that waits keeps no socket, route or tracked connection. Context: any. */
void sroce_backlog_strip(struct sk_buff *skb);

/* Return: 0 or a negative errno */
int sroce_backlog_init(void);
/* Module end: no socket and no hook is left through which packets come */
void sroce_backlog_exit(void);

/*
 * Whom a buffer that has waited is given to, and from where on it is to be received: RCU,
 * bottom halves off. Tests change it.
 */
extern void (*sroce_backlog_sink)(struct sk_buff *skb,
				  struct sroce_rx_place place);

/* Memory of all that waits or is being taken: what was taken by 0 has been received */
u32 sroce_backlog_bytes(void);

/* Drop the buffers that wait and have come from @dev; NULL: all. Context: process. */
void sroce_backlogs_forget(const struct net_device *dev);

#endif
