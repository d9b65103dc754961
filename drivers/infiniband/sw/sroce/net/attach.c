// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Devices of a network namespace: which one a packet is for, and what holds
 * when one of them or the whole namespace goes away.
 *
 * Paths keep no reference to the namespace (it would never end) and none to a
 * netdev. Instead they are cut off, with their route, when their device is
 * detached; the namespace's end detaches what is still there. Readers of
 * path->net have bottom halves off, and whoever cuts waits for them.
 */
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/bonding.h>
#include <net/ip6_route.h>
#include <net/l3mdev.h>
#include <net/netns/generic.h>

#include "compat.h"
#include "net/attach.h"
#include "net/net.h"
#include "net/socket.h"
#include "net/v1.h"

/**
 * struct sroce_attachment - a device and its namespace
 * @node: in sroce_netns.ports; written under sroce_attachments_mutex
 * @all: in sroce_attachments; written under sroce_attachments_mutex and
 *	sroce_paths_lock
 * @paths: paths of the device, under sroce_paths_lock
 * @port: device
 * @net: namespace; its end comes after that of the attachment
 */
struct sroce_attachment {
	struct list_head node;
	struct list_head all;
	struct list_head paths;
	struct sroce_netport *port;
	struct net *net;
};

static DEFINE_MUTEX(sroce_attachments_mutex);
static DEFINE_SPINLOCK(sroce_paths_lock);
static LIST_HEAD(sroce_attachments);
static unsigned int sroce_netns_id __read_mostly;

struct sroce_netns *sroce_netns(const struct net *net)
{
	return net_generic(net, sroce_netns_id);
}

struct sroce_netport *sroce_port_of_ifindex(const struct net *net, int ifindex)
{
	struct sroce_attachment *a;

	list_for_each_entry_rcu(a, &sroce_netns(net)->ports, node)
		if (a->port->ifindex == ifindex)
			return a->port;
	return NULL;
}

/* Is it a slave, but not the active one, whose device has the bond's GIDs? */
static bool sroce_netdev_is_idle_slave(struct net_device *dev)
{
	struct net_device *master = netdev_master_upper_dev_get_rcu(dev);
	const struct net_device *active;

	if (!master || !netif_is_bond_master(master))
		return false;
	active = bond_option_active_slave_get_rcu(netdev_priv(master));
	return active && active != dev;
}

/* Whoever may put netdevs into a bond or VRF can put thousands there: no more are looked at */
#define SROCE_NETDEV_LOWERS 1024

/**
 * struct sroce_lower_search - for a netdev below another one
 * @dev: it
 * @looked: netdevs that were looked at
 */
struct sroce_lower_search {
	const struct net_device *dev;
	u32 looked;
};

/* For each netdev below; all but 0 end the walk, 1 as it is the one */
static int sroce_netdev_is_sought(struct net_device *dev,
				  struct netdev_nested_priv *priv)
{
	struct sroce_lower_search *s = priv->data;

	if (dev == s->dev)
		return 1;
	return ++s->looked < SROCE_NETDEV_LOWERS ? 0 : -1;
}

/*
 * Does the netdev stand on top of the one of the device? Looked for from above: below a
 * netdev there are few, but on top of one there may be thousands of VLANs.
 */
static bool sroce_port_is_below(struct net *net,
				const struct sroce_netport *port,
				struct net_device *dev)
{
	struct sroce_lower_search s = {
		.dev = dev_get_by_index_rcu(net, port->ifindex),
	};
	struct netdev_nested_priv priv = { .data = &s };

	return s.dev &&
	       netdev_walk_all_lower_dev_rcu(dev, sroce_netdev_is_sought, &priv) == 1;
}

bool sroce_netdev_is_of_port(struct net *net, struct net_device *dev,
			     const struct sroce_netport *port)
{
	return dev->ifindex == port->ifindex ||
	       sroce_port_is_below(net, port, dev);
}

static bool sroce_port_is_idle(struct net *net,
			       const struct sroce_netport *port)
{
	struct net_device *dev = dev_get_by_index_rcu(net, port->ifindex);

	return !dev || sroce_netdev_is_idle_slave(dev);
}

/*
 * The device of a netdev below this one. Of several, if not @unique, it is the first that
 * was added: rdma_cm takes the same one.
 */
static struct sroce_netport *sroce_port_below(struct net *net,
					      struct net_device *dev,
					      bool unique)
{
	struct sroce_netport *found = NULL;
	struct sroce_attachment *a;

	list_for_each_entry_rcu(a, &sroce_netns(net)->ports, node) {
		if (!sroce_port_is_below(net, a->port, dev))
			continue;
		if (found && unique)
			return NULL;
		if (!unique && !sroce_port_is_idle(net, a->port))
			return a->port;
		found = found ?: a->port;
	}
	return found;
}

struct sroce_netport *sroce_port_of_netdev(struct net *net,
					   struct net_device *dev, bool unique)
{
	struct sroce_netport *port = sroce_port_of_ifindex(net, dev->ifindex);

	return port ?: sroce_port_below(net, dev, unique);
}

bool sroce_netdev_is_own(struct net *net, const struct sroce_netport *port,
			 const struct net_device *dev)
{
	struct net_device *own;

	if (likely(dev->ifindex == port->ifindex))
		return true;
	/* All that is in a VRF has that as its master, be it on whatever link */
	own = dev_get_by_index_rcu(net, port->ifindex);
	return own && !netif_is_l3_master(dev) &&
	       netdev_master_upper_dev_get_rcu(own) == dev;
}

int sroce_netdev_link(struct net *net, const struct sroce_netport *port,
		      const struct net_device *dev)
{
	return sroce_netdev_is_own(net, port, dev) ? port->ifindex :
						     dev->ifindex;
}

/* For each lower netdev; the first one ends the walk */
static int sroce_netdev_lower_vlan_id(struct net_device *lower,
				      struct netdev_nested_priv *priv)
{
	if (is_vlan_dev(lower))
		*(u16 *)priv->data = vlan_dev_vlan_id(lower);
	return 1;
}

u16 sroce_netdev_vlan_id(struct net_device *dev)
{
	u16 vlan_id = 0xffff;
	struct netdev_nested_priv priv = { .data = &vlan_id };

	if (is_vlan_dev(dev))
		return vlan_dev_vlan_id(dev);
	netdev_walk_all_lower_dev_rcu(dev, sroce_netdev_lower_vlan_id, &priv);
	return vlan_id;
}

/*
 * IPv6 tells whether a netdev in the VRF of @dev has the address, but not which one. The
 * route to it does, which there is while it is not asked whether others have it. (It is not looked
 * for among the netdevs: these, and those with the same address, may be thousands.)
 */
static struct net_device *sroce_netdev_of_vrf(struct net *net,
					      const struct in6_addr *addr,
					      struct net_device *dev,
					      struct net_device *vrf)
{
	struct flowi6 fl6 = { .flowi6_oif = vrf->ifindex, .daddr = *addr };
	struct net_device *found = NULL;
	const struct inet6_dev *idev;
	struct dst_entry *dst;

	if (!ipv6_chk_addr_and_flags(net, addr, vrf, true, 1, IFA_F_TENTATIVE))
		return NULL;
	if (ipv6_chk_addr(net, addr, dev, 1))
		return dev;
	if (ipv6_chk_addr(net, addr, vrf, 1))
		return vrf;
	dst = ip6_route_output(net, NULL, &fl6);
	/* Where the netdev goes the route has none, or one of another namespace */
	idev = dst->error ? NULL : ip6_dst_idev(dst);
	if (idev && l3mdev_master_dev_rcu(idev->dev) == vrf &&
	    container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_LOCAL)
		found = idev->dev;
	dst_release(dst);
	return found;
}

static struct net_device *sroce_netdev_of_ipv6(struct net *net,
					       const struct in6_addr *addr,
					       struct net_device *dev)
{
	struct net_device *vrf;

	if (!ipv6_mod_enabled())
		return NULL;
	if (dev && (ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL))
		return ipv6_chk_addr(net, addr, dev, 1) ? dev : NULL;
	vrf = dev ? l3mdev_master_dev_rcu(dev) : NULL;
	return vrf ? sroce_netdev_of_vrf(net, addr, dev, vrf) :
		     ipv6_dev_find(net, addr, NULL);
}

struct net_device *sroce_netdev_of_address(struct net *net,
					   const struct in6_addr *addr,
					   struct net_device *dev)
{
	if (ipv6_addr_v4mapped(addr))
		return __ip_dev_find(net, addr->s6_addr32[3], false);
	return sroce_netdev_of_ipv6(net, addr, dev);
}

/* Whoever may configure a netdev can give it a hundred thousand: no more are looked at */
#define SROCE_NETDEV_ADDRESSES 1024

/* The hash knows, but where several netdevs have the address, it tells of one */
static bool sroce_netdev_lists_ipv4(const struct in_device *in_dev, __be32 addr)
{
	const struct in_ifaddr *ifa;
	u32 n = 0;

	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		if (ifa->ifa_local == addr)
			return true;
		if (++n == SROCE_NETDEV_ADDRESSES)
			break;
	}
	return false;
}

static bool sroce_netdev_has_ipv4(struct net *net, struct net_device *dev,
				  __be32 addr)
{
	const struct net_device *found = __ip_dev_find(net, addr, false);
	const struct in_device *in_dev = __in_dev_get_rcu(dev);

	if (!found || !in_dev)
		return false;
	return found == dev || sroce_netdev_lists_ipv4(in_dev, addr);
}

struct net_device *sroce_netdev_of_own(struct net *net,
				       const struct in6_addr *addr,
				       struct net_device *dev)
{
	return sroce_netdev_of_address(net, addr,
				       netif_is_l3_master(dev) ? dev : NULL);
}

bool sroce_netdev_has_address(struct net *net, struct net_device *dev,
			      const struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return sroce_netdev_has_ipv4(net, dev, addr->s6_addr32[3]);
	return ipv6_mod_enabled() && ipv6_chk_addr(net, addr, dev, 1);
}

/* Caller holds sroce_attachments_mutex or sroce_paths_lock */
static struct sroce_attachment *
sroce_attachment_of(const struct sroce_netport *p)
{
	struct sroce_attachment *a;

	list_for_each_entry(a, &sroce_attachments, all)
		if (a->port == p)
			return a;
	return NULL;
}

int sroce_attachment_add_path(struct sroce_path *path)
{
	struct sroce_attachment *a;
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&sroce_paths_lock, flags);
	a = sroce_attachment_of(path->port);
	/* It may have moved since the caller looked for netdevs and their numbers */
	ok = a && a->net->net_cookie == path->net_cookie;
	if (ok) {
		path->net = a->net;
		list_add(&path->node, &a->paths);
	}
	spin_unlock_irqrestore(&sroce_paths_lock, flags);
	return ok ? 0 : -ENODEV;
}

static void sroce_route_free(struct rcu_head *rcu)
{
	struct sroce_route *route = container_of(rcu, struct sroce_route, rcu);

	dst_release(route->dst);
	kfree(route);
}

void sroce_path_drop_route(struct sroce_path *path)
{
	struct sroce_route *route = unrcu_pointer(xchg(&path->route, NULL));

	if (route)
		call_rcu(&route->rcu, sroce_route_free);
}

void sroce_attachment_del_path(struct sroce_path *path)
{
	unsigned long flags;

	/*
	 * The route goes under the lock: whoever detaches the device waits for the
	 * routes that were dropped until then.
	 */
	spin_lock_irqsave(&sroce_paths_lock, flags);
	list_del_init(&path->node);
	sroce_path_drop_route(path);
	spin_unlock_irqrestore(&sroce_paths_lock, flags);
}

/*
 * Take a path off the list. It is held, so that it can be cut when the lock is dropped.
 * Context: sroce_paths_lock held. Return: NULL when the list is empty.
 */
static struct sroce_path *
sroce_attachment_pop_path_locked(struct sroce_attachment *a)
{
	struct sroce_path *path;

	while ((path = list_first_entry_or_null(&a->paths, struct sroce_path,
						node))) {
		list_del_init(&path->node);
		if (refcount_inc_not_zero(&path->refs))
			return path;
		/* Its last user is about to call sroce_attachment_del_path() */
		sroce_path_drop_route(path);
	}
	return NULL;
}

static struct sroce_path *sroce_attachment_pop_path(struct sroce_attachment *a)
{
	struct sroce_path *path;
	unsigned long flags;

	spin_lock_irqsave(&sroce_paths_lock, flags);
	path = sroce_attachment_pop_path_locked(a);
	if (!path)
		list_del(&a->all);
	spin_unlock_irqrestore(&sroce_paths_lock, flags);
	return path;
}

static void sroce_path_cut(struct sroce_path *path)
{
	spin_lock_bh(&path->lock);
	sroce_path_drop_route(path);
	WRITE_ONCE(path->net, NULL);
	WRITE_ONCE(path->direct_ifindex, 0);
	spin_unlock_bh(&path->lock);
}

/*
 * Routes point into the namespace, so that none must be left when its last device has gone.
 * What was dropped is held for a grace period more.
 */
static void sroce_attachment_await_routes(const struct sroce_netns *ns)
{
	if (list_empty(&ns->ports))
		rcu_barrier();
}

/*
 * The order: nothing finds the device; its paths are cut; their routes are let go of;
 * whoever found one of them before has finished, and the stack has freed those that were
 * nobody else's; nobody listens any more.
 */
static void sroce_attachment_end(struct sroce_attachment *a)
{
	struct sroce_netns *ns = sroce_netns(a->net);
	struct sroce_path *path;

	list_del_rcu(&a->node);
	while ((path = sroce_attachment_pop_path(a))) {
		sroce_path_cut(path);
		sroce_path_put(path);
		cond_resched();
	}
	sroce_attachment_await_routes(ns);
	synchronize_net();
	if (a->port->roce_v1)
		sroce_v1_unlisten();
	if (list_empty(&ns->ports))
		sroce_sockets_close(a->net, ns);
	kfree(a);
}

static void sroce_attachment_begin(struct sroce_attachment *a)
{
	unsigned long flags;

	INIT_LIST_HEAD(&a->paths);
	spin_lock_irqsave(&sroce_paths_lock, flags);
	list_add(&a->all, &sroce_attachments);
	spin_unlock_irqrestore(&sroce_paths_lock, flags);
	list_add_tail_rcu(&a->node, &sroce_netns(a->net)->ports);
	if (a->port->roce_v1)
		sroce_v1_listen();
}

static int sroce_attachment_start(struct sroce_attachment *a,
				  struct netlink_ext_ack *extack)
{
	struct sroce_netns *ns = sroce_netns(a->net);
	int err;

	if (list_empty(&ns->ports)) {
		err = sroce_sockets_open(a->net, ns, extack);
		if (err)
			return err;
	}
	sroce_attachment_begin(a);
	return 0;
}

int sroce_net_attach(struct net *net, struct sroce_netport *port,
		     struct netlink_ext_ack *extack)
{
	struct sroce_attachment *a;
	int err;

	a = kzalloc_obj(*a, GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	a->port = port;
	a->net = net;
	mutex_lock(&sroce_attachments_mutex);
	err = sroce_attachment_start(a, extack);
	mutex_unlock(&sroce_attachments_mutex);
	if (err)
		kfree(a);
	return err;
}

/* @net may be gone, and is not looked at */
void sroce_net_detach(struct net *net, struct sroce_netport *port)
{
	struct sroce_attachment *a;

	mutex_lock(&sroce_attachments_mutex);
	a = sroce_attachment_of(port);
	if (a)
		sroce_attachment_end(a);
	mutex_unlock(&sroce_attachments_mutex);
}

static int __net_init sroce_netns_start(struct net *net)
{
	INIT_LIST_HEAD(&sroce_netns(net)->ports);
	return 0;
}

/* The namespace's netdevs have left it, but a device may not have been detached yet */
static void __net_exit sroce_netns_end(struct net *net)
{
	struct sroce_netns *ns = sroce_netns(net);
	struct sroce_attachment *a;

	mutex_lock(&sroce_attachments_mutex);
	while ((a = list_first_entry_or_null(&ns->ports,
					     struct sroce_attachment, node)))
		sroce_attachment_end(a);
	mutex_unlock(&sroce_attachments_mutex);
}

static struct pernet_operations sroce_netns_ops = {
	.init = sroce_netns_start,
	.exit = sroce_netns_end,
	.id = &sroce_netns_id,
	.size = sizeof(struct sroce_netns),
};

int sroce_attachments_init(void)
{
	return register_pernet_subsys(&sroce_netns_ops);
}

void sroce_attachments_exit(void)
{
	unregister_pernet_subsys(&sroce_netns_ops);
}
