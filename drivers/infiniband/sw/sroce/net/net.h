/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * UDP port 4791 in and out: sockets and hooks per network namespace, routes,
 * packet buffers, GSO and GRO; and the frames of RoCE v1. Nothing here knows the state of a QP.
 */
#ifndef SROCE_NET_NET_H
#define SROCE_NET_NET_H

#include <linux/netdevice.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

#include "netport.h"
#include "path.h"
#include "transport/seam.h"

#define SROCE_UDP_PORT 4791

struct netlink_ext_ack;

/**
 * sroce_path_alloc() - make a path that leads nowhere yet
 * @gfp: how to get the memory
 *
 * Context: what @gfp says.
 * Return: the path with one reference, or NULL.
 */
struct sroce_path *sroce_path_alloc(gfp_t gfp);

/**
 * sroce_path_set() - let a new path follow an address vector
 * @path: from sroce_path_alloc()
 * @port: device
 * @ndev: netdev of the source GID
 * @attr: address vector with a checked GRH (grh.sgid_attr set)
 * @lqpn: local QP number, for the UDP source port; 0 for an address handle
 * @rqpn: remote QP number
 *
 * No route is looked up yet: a destination that cannot be reached now is a lost
 * packet later, repaired by the retry engine.
 *
 * The device must be attached. When it is detached, its paths lead nowhere.
 *
 * Context: RCU.
 * Return: 0, -EINVAL for an address that is not of RoCE, or of a version that the device
 * does not speak, -EOPNOTSUPP for a GID of
 * another network namespace, -ENODEV when the device is not attached.
 */
int sroce_path_set(struct sroce_path *path, struct sroce_netport *port,
		   struct net_device *ndev, const struct rdma_ah_attr *attr,
		   u32 lqpn, u32 rqpn);

/* The network below every real device; for struct sroce_port */
extern const struct sroce_xmit_ops sroce_net_xmit_ops;

/**
 * sroce_net_attach() - let a device receive
 * @net: namespace of its netdev
 * @port: device; @port->ifindex and @port->net_cookie are set
 * @extack: told what went wrong, may be NULL
 *
 * The first device of a namespace opens UDP port 4791 (IPv4, and IPv6 where
 * there is any) and the netfilter hooks that see whole GSO packets. From then
 * on packets that arrive on netdev @port->ifindex are found for this device.
 *
 * Context: process.
 * Return: 0, -EADDRINUSE when another driver has the port, or another errno;
 * nothing is left behind on failure.
 */
int sroce_net_attach(struct net *net, struct sroce_netport *port,
		     struct netlink_ext_ack *extack);

/**
 * sroce_net_detach() - stop receiving for a device
 * @net: namespace it was attached in
 * @port: device
 *
 * On return no packet is being handled for it, and its paths lead nowhere. The last
 * device of a namespace closes the sockets, and no route is held any more. The end of the
 * namespace does the same; then @net is not looked at and nothing is left to do.
 *
 * Context: process, may sleep.
 */
void sroce_net_detach(struct net *net, struct sroce_netport *port);

struct sroce_join;

/**
 * sroce_net_join() - make a netdev and its masters members of a multicast group
 * @ndev: netdev, held by the caller until it has left
 * @mgid: address of the group; IPv4 is v4-mapped
 * @v1: members want frames of RoCE v1, which come also where IP does not
 *
 * Memberships are counted, together with those of others. They follow the netdev
 * to other masters and namespaces, and keep none of these from ending.
 *
 * Context: process, takes RTNL.
 * Return: what sroce_net_leave() ends; or an ERR_PTR, when the netdev is being
 * unregistered or has no such protocol.
 */
struct sroce_join *sroce_net_join(struct net_device *ndev,
				  const union ib_gid *mgid, bool v1);
/* The netdev may be unregistered. Context: process, takes RTNL. */
void sroce_net_leave(struct sroce_join *join);

/* Module start; per-namespace state */
int sroce_net_init(void);

/*
 * Module end: no device and no sender is left. Packets that still are in some
 * queue are not waited for: they need nothing of the module.
 */
void sroce_net_exit(void);

#endif
