// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Paths: what an address vector says, and the route that is found with it.
 *
 * verbs/ah.c has paths made here; pack.c asks for the route of each buffer.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>
#include <rdma/ib_cache.h>

#include "compat.h"
#include "net/attach.h"
#include "net/group.h"
#include "net/init.h"
#include "net/net.h"
#include "net/paths.h"

/* --- route ---------------------------------------------------------------- */

/*
 * Addresses of this host are reached through lo, whatever netdev has them; with
 * the netdev given only its own would be. A VRF is still to be respected.
 */
static int sroce_path_oif(const struct sroce_path *path)
{
	struct net_device *dev = dev_get_by_index_rcu(path->net, path->ifindex);
	const struct in6_addr *dst = sroce_gid_addr(&path->dgid);

	if (!(ipv6_addr_type(dst) & IPV6_ADDR_LINKLOCAL) &&
	    sroce_netdev_of_address(path->net, dst, dev))
		return l3mdev_master_ifindex_by_index(path->net, path->ifindex);
	return path->ifindex;
}

/*
 * Port for the route's look-up: an address handle has none, so the lowest stands for all
 */
static __be16 sroce_path_route_sport(const struct sroce_path *path)
{
	return path->sport ?: htons(IB_ROCE_UDP_ENCAP_VALID_PORT_MIN);
}

static struct dst_entry *sroce_path_lookup_ipv4(const struct sroce_path *path)
{
	struct flowi4 fl4 = {};
	struct rtable *rt;

	flowi4_init_output(&fl4, sroce_path_oif(path), 0,
			   path->tclass & INET_DSCP_MASK, RT_SCOPE_UNIVERSE,
			   IPPROTO_UDP, 0, sroce_gid_ipv4(&path->dgid),
			   sroce_gid_ipv4(&path->sgid), htons(SROCE_UDP_PORT),
			   sroce_path_route_sport(path), GLOBAL_ROOT_UID);
	rt = ip_route_output_flow(path->net, &fl4, NULL);
	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *sroce_path_lookup_ipv6(const struct sroce_path *path)
{
	struct flowi6 fl6 = {
		.flowi6_oif = sroce_path_oif(path),
		.flowi6_proto = IPPROTO_UDP,
		.flowlabel = ip6_make_flowinfo(path->tclass,
					       htonl(path->flow_label)),
		.daddr = *sroce_gid_addr(&path->dgid),
		.saddr = *sroce_gid_addr(&path->sgid),
		.fl6_sport = sroce_path_route_sport(path),
		.fl6_dport = htons(SROCE_UDP_PORT),
	};
	struct dst_entry *dst;

	if (!ipv6_mod_enabled())
		return NULL;
	dst = ip6_dst_lookup_flow(path->net, NULL, &fl6, NULL);
	return IS_ERR(dst) ? NULL : dst;
}

static u32 sroce_path_cookie(const struct sroce_path *path,
			     struct dst_entry *dst)
{
	if (sroce_path_is_ipv4(path))
		return 0;
	return rt6_get_cookie(container_of(dst, struct rt6_info, dst));
}

/* @dst is held: that passes to the route. Return: NULL without memory, and it is dropped. */
static struct sroce_route *sroce_route_new(const struct sroce_path *path,
					   struct dst_entry *dst)
{
	struct sroce_route *route;

	route = kmalloc_obj(*route, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!route) {
		dst_release(dst);
		return NULL;
	}
	route->dst = dst;
	route->cookie = sroce_path_cookie(path, dst);
	return route;
}

/* Context: @path->lock held; it has no route. Return: that; NULL: there is none now. */
static struct sroce_route *sroce_path_lookup(struct sroce_path *path)
{
	struct sroce_route *route;
	struct dst_entry *dst;

	dst = sroce_path_is_ipv4(path) ? sroce_path_lookup_ipv4(path) :
					 sroce_path_lookup_ipv6(path);
	route = dst ? sroce_route_new(path, dst) : NULL;
	rcu_assign_pointer(path->route, route);
	return route;
}

static bool sroce_route_is_valid(const struct sroce_route *route)
{
	return route && dst_check(route->dst, route->cookie);
}

/* The route has gone stale, or there is none yet */
static struct dst_entry *sroce_path_route_anew(struct sroce_path *path,
					       struct net **net)
{
	const struct sroce_route *route;

	spin_lock(&path->lock);
	route = rcu_dereference_protected(path->route,
					  lockdep_is_held(&path->lock));
	if (!sroce_route_is_valid(route)) {
		sroce_path_drop_route(path);
		route = NULL;
	}
	if (!route && path->net) {
		rcu_read_lock();
		route = sroce_path_lookup(path);
		rcu_read_unlock();
	}
	*net = path->net;
	spin_unlock(&path->lock);
	return route ? route->dst : NULL;
}

struct dst_entry *sroce_path_route(struct sroce_path *path, struct net **net)
{
	const struct sroce_route *route = rcu_dereference_bh(path->route);

	*net = READ_ONCE(path->net);
	if (likely(*net && sroce_route_is_valid(route)))
		return route->dst;
	return sroce_path_route_anew(path, net);
}

/* --- from an address vector ----------------------------------------------- */

static int sroce_path_set_gids(struct sroce_path *path,
			       const struct ib_global_route *grh)
{
	bool to_ipv4 = ipv6_addr_v4mapped(sroce_gid_addr(&grh->dgid));

	if (!grh->sgid_attr)
		return -EINVAL;
	path->sgid = grh->sgid_attr->gid;
	path->dgid = grh->dgid;
	path->group = sroce_is_group(sroce_gid_addr(&path->dgid));
	path->network_type = rdma_gid_attr_network_type(grh->sgid_attr);
	switch (path->network_type) {
	case RDMA_NETWORK_IPV4:
		return to_ipv4 ? 0 : -EINVAL;
	case RDMA_NETWORK_IPV6:
		return to_ipv4 ? -EINVAL : 0;
	case RDMA_NETWORK_ROCE_V1:
		return path->port->roce_v1 ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static bool sroce_path_vlan_maps(struct net_device *vlan, u32 priority, u8 sl)
{
	return vlan_dev_get_egress_qos_mask(vlan, priority) ==
	       (u16)(sl << VLAN_PRIO_SHIFT);
}

/*
 * The tag's priority is what the VLAN's egress map makes of the packet's. The
 * service level is meant to be the former, so the map is followed backwards;
 * rdma_cm has followed it forwards from the TOS.
 */
static u32 sroce_path_vlan_priority(struct net_device *vlan, u8 tclass, u8 sl)
{
	u32 priority = rt_tos2priority(tclass);

	if (sroce_path_vlan_maps(vlan, priority, sl))
		return priority;
	if (sroce_path_vlan_maps(vlan, sl, sl))
		return sl;
	for (priority = 0; priority <= TC_PRIO_MAX; priority++)
		if (sroce_path_vlan_maps(vlan, priority, sl))
			return priority;
	return sl;
}

/*
 * The service level; without one the priority that sockets with this TOS have.
 * Ethernet has eight, and so more than that in a completion says that there was
 * none (abi.md); it comes back in the address of an answer.
 */
static u32 sroce_path_priority(struct net_device *ndev, u8 tclass, u8 sl)
{
	if (!sl || sl > 7)
		return rt_tos2priority(tclass);
	return is_vlan_dev(ndev) ? sroce_path_vlan_priority(ndev, tclass, sl) :
				   sl;
}

static u8 sroce_path_hop_limit(const struct sroce_path *path,
			       const struct net *net, u8 given)
{
	if (given)
		return given;
	return sroce_path_is_ipv4(path) ?
	       READ_ONCE(net->ipv4.sysctl_ip_default_ttl) :
	       IPV6_DEFAULT_HOPLIMIT;
}

static void sroce_path_set_hash(struct sroce_path *path)
{
	path->hash = jhash(&path->dgid, sizeof(path->dgid),
			   jhash2((u32 *)&path->sgid, 4,
				  (__force u16)path->sport)) ?: 1;
}

static void sroce_path_set_flow(struct sroce_path *path,
				const struct rdma_ah_attr *attr, u32 lqpn,
				u32 rqpn)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	/* Whether packets may be marked instead of dropped is not for users to say */
	path->tclass = (grh->traffic_class & ~INET_ECN_MASK) ?:
		       READ_ONCE(path->port->traffic_class);
	path->flow_label = grh->flow_label & 0xfffff;
	/* An address handle without a flow label has no port: see sroce_path_flow() */
	if (path->flow_label || lqpn)
		path->sport = htons(rdma_get_udp_sport(path->flow_label, lqpn,
						       rqpn));
	sroce_path_set_hash(path);
	if (attr->type == RDMA_AH_ATTR_TYPE_ROCE)
		memcpy(path->dmac, attr->roce.dmac, sizeof(path->dmac));
	if (path->group)
		sroce_group_mac(sroce_gid_addr(&path->dgid), path->dmac);
	path->id = get_random_u32();
}

static void sroce_path_set_direct(struct sroce_path *path, struct net *net,
				  struct net_device *ndev)
{
	const struct in6_addr *dst = sroce_gid_addr(&path->dgid);
	struct net_device *owner;
	struct sroce_netport *port;

	if (!READ_ONCE(sroce_direct))
		return;
	owner = sroce_netdev_of_address(net, dst, ndev);
	port = owner ? sroce_port_of_netdev(net, owner, true) : NULL;
	if (!port || (sroce_path_is_v1(path) && !port->roce_v1))
		return;
	path->direct_ifindex = port->ifindex;
	path->direct_vlan_id = sroce_netdev_vlan_id(owner);
}

/*
 * The core has GIDs of netdevs in other namespaces too (a VLAN that was moved
 * into a container). Nobody listens there for this device.
 */
static int sroce_path_set_netdev(struct sroce_path *path,
				 struct net_device *ndev,
				 const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	struct net *net = dev_net(ndev);

	if (net->net_cookie != READ_ONCE(path->port->net_cookie))
		return -EOPNOTSUPP;
	path->net_cookie = net->net_cookie;
	path->hop_limit = sroce_path_hop_limit(path, net, grh->hop_limit);
	path->ifindex = ndev->ifindex;
	if (ipv6_addr_type(sroce_gid_addr(&path->sgid)) & IPV6_ADDR_LINKLOCAL)
		path->link = sroce_netdev_link(net, path->port, ndev);
	path->priority = sroce_path_priority(ndev, path->tclass,
					     rdma_ah_get_sl(attr));
	sroce_path_set_direct(path, net, ndev);
	return 0;
}

/*
 * IPv6 does not ask whether a packet that comes through a link is from an address of this
 * host, so somebody there could speak for the peer of a QP that is connected to another one
 * of this host. It is the route that tells: an administrator may have this host's packets
 * go to itself through a cable.
 */
static void sroce_path_set_within_host(struct sroce_path *path)
{
	struct dst_entry *dst;
	struct net *net;

	if (sroce_path_is_v1(path) || path->group)
		return;
	local_bh_disable();
	dst = sroce_path_route(path, &net);
	if (dst && sroce_netdev_is_inside(dst->dev))
		path->link = SROCE_LINK_NONE;
	local_bh_enable();
}

static void sroce_path_release(struct sroce_path *path)
{
	sroce_attachment_del_path(path);
	kfree_rcu(path, rcu);
}

struct sroce_path *sroce_path_alloc(gfp_t gfp)
{
	struct sroce_path *path = kzalloc_obj(*path, gfp);

	if (!path)
		return NULL;
	refcount_set(&path->refs, 1);
	path->release = sroce_path_release;
	spin_lock_init(&path->lock);
	INIT_LIST_HEAD(&path->node);
	path->direct_vlan_id = 0xffff;
	return path;
}

int sroce_path_set(struct sroce_path *path, struct sroce_netport *port,
		   struct net_device *ndev, const struct rdma_ah_attr *attr,
		   u32 lqpn, u32 rqpn)
{
	int err;

	path->port = port;
	err = sroce_path_set_gids(path, rdma_ah_read_grh(attr));
	if (err)
		return err;
	sroce_path_set_flow(path, attr, lqpn, rqpn);
	/* A link-local GID is its own MAC address, and so anything that a process likes */
	if (sroce_path_is_v1(path) && !path->group &&
	    !is_valid_ether_addr(path->dmac))
		return -EINVAL;
	err = sroce_path_set_netdev(path, ndev, attr);
	err = err ?: sroce_attachment_add_path(path);
	/* Address handles, which have no QPN, do not say from whom anything may come */
	if (!err && lqpn)
		sroce_path_set_within_host(path);
	return err;
}

/* --- back to a sender ------------------------------------------------------ */

/* Answers go to one host, wherever a packet says that it is from */
static bool sroce_path_is_to_host(const struct sroce_path *path,
				  struct net *net)
{
	const struct in6_addr *dst = sroce_gid_addr(&path->dgid);
	bool ipv4 = sroce_path_is_ipv4(path);

	if (ipv6_addr_v4mapped(dst) != ipv4)
		return false;
	if (ipv4)
		return inet_addr_type(net, sroce_gid_ipv4(&path->dgid)) !=
		       RTN_BROADCAST && !ipv4_is_multicast(dst->s6_addr32[3]);
	return !ipv6_addr_any(dst) && !ipv6_addr_is_multicast(dst);
}

/* The netdev that packets came through: rx_info names the device below, and the VLAN */
static struct net_device *sroce_path_back_netdev(const struct sroce_rx_info *info,
						 struct net *net)
{
	struct net_device *dev = dev_get_by_index_rcu(net, info->ifindex);
	struct net_device *vlan = NULL;

	if (dev && info->vlan_id < 0xffff)
		vlan = __vlan_find_dev_deep_rcu(dev, htons(ETH_P_8021Q),
						info->vlan_id);
	return vlan ?: dev;
}

/*
 * What has come through a VLAN or a bond goes back through it. A link-local address may be
 * that of several netdevs.
 */
static int sroce_path_back_ifindex(const struct sroce_path *path,
				   const struct sroce_rx_info *info,
				   struct net *net)
{
	const struct in6_addr *src = sroce_gid_addr(&path->sgid);
	struct net_device *owner = sroce_path_back_netdev(info, net);

	if (!(ipv6_addr_type(src) & IPV6_ADDR_LINKLOCAL))
		owner = sroce_netdev_of_address(net, src, owner);
	return owner ? owner->ifindex : path->port->ifindex;
}

struct sroce_path *sroce_path_back(struct sroce_netport *port,
				   const struct sroce_rx_info *info)
{
	struct net *net = NULL;
	struct sroce_path *path;

	/* Nothing is answered that way: no network marks packets of RoCE v1 */
	if (info->network_hdr_type == RDMA_NETWORK_ROCE_V1)
		return NULL;
	path = sroce_path_alloc(GFP_ATOMIC | __GFP_NOWARN);
	if (!path)
		return NULL;
	path->port = port;
	path->net_cookie = info->net_cookie;
	path->sgid = info->dgid;
	path->dgid = info->sgid;
	path->network_type = info->network_hdr_type;
	sroce_path_set_hash(path);
	/* The device may be detached meanwhile; whoever does waits for us before @net goes */
	if (!sroce_attachment_add_path(path))
		net = READ_ONCE(path->net);
	if (!net || !sroce_path_is_to_host(path, net)) {
		sroce_path_put(path);
		return NULL;
	}
	path->hop_limit = sroce_path_hop_limit(path, net, 0);
	path->ifindex = sroce_path_back_ifindex(path, info, net);
	return path;
}
