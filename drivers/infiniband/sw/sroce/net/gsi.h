/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whom QP 1 hears.
 */
#ifndef SROCE_NET_GSI_H
#define SROCE_NET_GSI_H

struct net;
struct sk_buff;
struct sroce_netport;

enum sroce_gsi_verdict {
	SROCE_GSI_HEAR,		/* its sender can be answered at once */
	SROCE_GSI_WAIT,		/* soon, if the sender's neighbour answers */
	SROCE_GSI_DROP,		/* never */
};

/*
 * May QP 1 have a packet for @port that has come to @net? @skb has its IP header, or GRH of
 * RoCE v1, at skb->data and linear. The sender's neighbour is asked for, if that is not known.
 * Context: RCU, softirq or bottom halves off. Tests change it.
 */
extern enum sroce_gsi_verdict (*sroce_gsi_judge)(struct net *net,
						 const struct sroce_netport *port,
						 struct sk_buff *skb);

/**
 * sroce_gsi_wait() - keep a packet until its sender's neighbour is known
 * @net: namespace that it has come to
 * @port: device it is for; nobody waits for the packet when that goes
 * @skb: as for sroce_net_receive(), of which nothing was received; consumed
 *
 * It comes to sroce_net_input() then, or is lost: after a second, or at once where too many
 * wait.
 *
 * Context: RCU, softirq or bottom halves off.
 */
void sroce_gsi_wait(struct net *net, struct sroce_netport *port,
		    struct sk_buff *skb);

void sroce_gsi_init(void);
/* Module end: nothing comes from the network any more */
void sroce_gsi_exit(void);

#endif
