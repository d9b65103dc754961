/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The devices of a network namespace, and how one is found by its netdev or by an
 * address.
 */
#ifndef SROCE_NET_ATTACH_H
#define SROCE_NET_ATTACH_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <net/ipv6.h>

struct dst_entry;
struct net;
struct socket;
struct sroce_netport;
struct sroce_path;

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

/**
 * struct sroce_route - the route of a path
 * @rcu: freed after a grace period
 * @dst: what the network stack knows it by, held
 * @cookie: its validity
 *
 * Who has found it sends without a reference of his own, so that ours lasts for a grace
 * period after the path has dropped the route. That of @dst itself does not do: it begins
 * when the last reference goes, and where others hold the route as well (the next hop does)
 * they may have had theirs already, and free it at once.
 */
struct sroce_route {
	struct rcu_head rcu;
	struct dst_entry *dst;
	u32 cookie;
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
 * @dev: where a link-local address is looked for, and in the VRF of which another IPv6
 *	address; NULL: in none, and a link-local one anywhere
 *
 * Context: RCU.
 * Return: the netdev or NULL.
 */
struct net_device *sroce_netdev_of_address(struct net *net,
					   const struct in6_addr *addr,
					   struct net_device *dev);

/*
 * Have packets that come from it been sent by this host to itself: is it lo, or a VRF? What
 * comes from elsewhere to a netdev in a VRF is handed on as coming from that netdev.
 */
static inline bool sroce_netdev_is_inside(const struct net_device *dev)
{
	return dev->flags & IFF_LOOPBACK || netif_is_l3_master(dev);
}

/*
 * The netdev that an address belongs to which a packet was for that has come from @dev,
 * sroce_netdev_is_inside(). Context: RCU. Return: the netdev or NULL.
 */
struct net_device *sroce_netdev_of_own(struct net *net,
				       const struct in6_addr *addr,
				       struct net_device *dev);

/* Has just this netdev the address, IPv6 or v4-mapped? Context: RCU. */
bool sroce_netdev_has_address(struct net *net, struct net_device *dev,
			      const struct in6_addr *addr);

/* Is it the netdev of the device, or does it stand on that? Context: RCU. */
bool sroce_netdev_is_of_port(struct net *net, struct net_device *dev,
			     const struct sroce_netport *port);

/*
 * The VLAN of a netdev's GIDs as ib_core sees it (rdma_read_gid_l2_fields()):
 * its own, or that of what it stands on; 0xffff for none. Context: RCU.
 */
u16 sroce_netdev_vlan_id(struct net_device *dev);

/*
 * Is it the netdev of the device or its master, which has its frames? Not a VLAN on top, nor
 * a VRF.
 * Context: RCU read section.
 */
bool sroce_netdev_is_own(struct net *net, const struct sroce_netport *port,
			 const struct net_device *dev);

/**
 * sroce_netdev_link() - which link a netdev is on, as far as a device is concerned
 * @net: namespace of both
 * @port: device
 * @dev: netdev of the device, or on top of it
 *
 * A link-local address is one of a link. The device's netdev and its master (bond, bridge)
 * are on one; a VLAN is another one, in the same VRF, too.
 *
 * Context: RCU read section.
 * Return: a number, not 0, that both ends of a comparison have from here.
 */
int sroce_netdev_link(struct net *net, const struct sroce_netport *port,
		      const struct net_device *dev);

static inline bool sroce_is_group(const struct in6_addr *addr)
{
	return ipv6_addr_is_multicast(addr) ||
	       (ipv6_addr_v4mapped(addr) &&
		ipv4_is_multicast(addr->s6_addr32[3]));
}

/**
 * sroce_attachment_add_path() - have a path cut off when its device is detached
 * @path: @path->port and @path->net_cookie are set; @path->net is set on success
 *
 * Return: 0, or -ENODEV when the device is not attached, or in another namespace by now.
 */
int sroce_attachment_add_path(struct sroce_path *path);

/* Forget a path and its route; nobody else uses it any more. Context: any. */
void sroce_attachment_del_path(struct sroce_path *path);

/*
 * Forget the route of a path; it is still held for a grace period. Context: any, with the
 * path's lock held, or when nobody looks for a route any more.
 */
void sroce_path_drop_route(struct sroce_path *path);

int sroce_attachments_init(void);
void sroce_attachments_exit(void);

#endif
