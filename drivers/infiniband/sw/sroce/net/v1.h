/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RoCE v1: Ethernet frames of a type of their own, with a GRH in place of IP and UDP.
 */
#ifndef SROCE_NET_V1_H
#define SROCE_NET_V1_H

struct net;
struct net_device;
struct sk_buff;
struct sroce_netport;
struct sroce_path;

/* A device that speaks RoCE v1 is attached, or goes. Context: process, serialised. */
void sroce_v1_listen(void);
/* On return of the last one no frame is on its way in */
void sroce_v1_unlisten(void);

/**
 * sroce_v1_port() - the device that a frame is for
 * @net: namespace that it has come to
 * @skb: GRH at skb->data and linear
 *
 * That of the netdev that it has come through, if the frame is for one of this netdev's
 * addresses, or for a group, and is not from an address of this host, unless this host has
 * sent it.
 *
 * Context: RCU.
 * Return: the device, or NULL when there is none, or none that speaks RoCE v1.
 */
struct sroce_netport *sroce_v1_port(struct net *net, const struct sk_buff *skb);

/**
 * sroce_v1_netdev() - the netdev that frames of a path leave through
 * @path: path, of RoCE v1
 * @net: set to its namespace, valid as long as bottom halves are off
 *
 * Context: bottom halves off.
 * Return: the netdev, valid for as long; NULL when it is gone, or no Ethernet any more.
 */
struct net_device *sroce_v1_netdev(const struct sroce_path *path,
				   struct net **net);

/**
 * sroce_v1_output() - send a frame, to the network or to this host
 * @net: namespace
 * @path: where it goes
 * @skb: GRH at skb->data, @skb->dev is the netdev it leaves through; consumed
 *
 * Context: RCU, bottom halves off.
 * Return: as dev_queue_xmit().
 */
int sroce_v1_output(struct net *net, const struct sroce_path *path,
		    struct sk_buff *skb);

#endif
