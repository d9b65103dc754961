// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups as the host's IP sees them. A group is joined on the netdev,
 * like one that a socket joins: IGMP or MLD tell switches and routers, the
 * netdev's filter lets its MAC address in, and what this host sends to the
 * group comes back to its other members.
 *
 * The netdev's masters are members as well, because a slave's packets are theirs.
 * A membership holds what IP knows of a netdev, and with it the netdev. So it is
 * given up when IP lets go of that (the netdev, or its namespace, ends or it moves
 * to another one), however long the processes stay that wanted it, and it is
 * taken up again where IP begins anew: on another master, or in another namespace.
 *
 * RoCE v1 needs no IP, and IP may be switched off on a netdev. So a device that speaks it
 * tells the netdev's filter itself, too; both count.
 *
 * All of it is done under RTNL.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/list.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ip.h>

#include "compat.h"
#include "net/group.h"
#include "net/net.h"

/**
 * struct sroce_member - a netdev that is member of a group
 * @in_dev: its IPv4, held; NULL when it is not a member
 * @idev: its IPv6, likewise
 * @filter: the netdev whose filter was told for RoCE v1; NULL: none. Not held: it goes with
 *	a notification
 *
 * That of a netdev which is gone, or has moved to another namespace, is not the
 * one that is there now.
 */
struct sroce_member {
	struct in_device *in_dev;
	struct inet6_dev *idev;
	struct net_device *filter;
};

/* The device's netdev, its master (a bond, say), and that one's (a bridge) */
#define SROCE_JOIN_NETDEVS 3

/**
 * struct sroce_joins - groups that one netdev has joined for its device
 * @node: in sroce_all_joins
 * @joins: struct sroce_join
 * @ndev: the netdev, which the device holds
 * @on: itself and its masters as they were last seen; masters are not held
 */
struct sroce_joins {
	struct list_head node;
	struct list_head joins;
	struct net_device *ndev;
	struct net_device *on[SROCE_JOIN_NETDEVS];
};

/**
 * struct sroce_join - one of them
 * @node: in @of->joins
 * @of: where it belongs
 * @users: how often it was asked for
 * @group: its address
 * @v1: frames of RoCE v1 are wanted, too
 * @member: the memberships, in the order of @of->on
 */
struct sroce_join {
	struct list_head node;
	struct sroce_joins *of;
	unsigned int users;
	struct in6_addr group;
	bool v1;
	struct sroce_member member[SROCE_JOIN_NETDEVS];
};

static LIST_HEAD(sroce_all_joins);

/* --- one netdev ------------------------------------------------------------- */

static int sroce_member_join_ipv4(struct sroce_member *m,
				  struct net_device *dev, __be32 group)
{
	struct in_device *in_dev = __in_dev_get_rtnl(dev);

	if (!in_dev)
		return -ENODEV;
	ip_mc_inc_group(in_dev, group);
	in_dev_hold(in_dev);
	m->in_dev = in_dev;
	return 0;
}

static int sroce_member_join_ipv6(struct sroce_member *m,
				  struct net_device *dev,
				  const struct in6_addr *group)
{
	struct inet6_dev *idev;
	int err;

	if (!ipv6_mod_enabled())
		return -EAFNOSUPPORT;
	idev = __in6_dev_get(dev);
	if (!idev)
		return -ENODEV;
	err = ipv6_dev_mc_inc(dev, group);
	if (err)
		return err;
	in6_dev_hold(idev);
	m->idev = idev;
	return 0;
}

static int sroce_member_join(struct sroce_member *m, struct net_device *dev,
			     const struct in6_addr *group)
{
	if (ipv6_addr_v4mapped(group))
		return sroce_member_join_ipv4(m, dev, group->s6_addr32[3]);
	return sroce_member_join_ipv6(m, dev, group);
}

static void sroce_member_leave(struct sroce_member *m,
			       const struct in6_addr *group)
{
	if (m->in_dev) {
		/* Harmless when IP has let go of the netdev: its list is empty then */
		ip_mc_dec_group(m->in_dev, group->s6_addr32[3]);
		in_dev_put(m->in_dev);
	}
	if (IS_ENABLED(CONFIG_IPV6) && m->idev) {
		if (__in6_dev_get(m->idev->dev) == m->idev)
			ipv6_dev_mc_dec(m->idev->dev, group);
		in6_dev_put(m->idev);
	}
	m->in_dev = NULL;
	m->idev = NULL;
}

/* Is the membership on this netdev, and of the state that IP keeps for it now? */
static bool sroce_member_is_on(const struct sroce_member *m,
			       const struct net_device *dev)
{
	if (m->in_dev)
		return __in_dev_get_rtnl(dev) == m->in_dev;
	return IS_ENABLED(CONFIG_IPV6) && m->idev &&
	       __in6_dev_get(dev) == m->idev;
}

/* Move the membership to a netdev; NULL: end it */
static int sroce_member_follow_ip(struct sroce_member *m,
				  struct net_device *dev,
				  const struct in6_addr *group)
{
	if (dev && sroce_member_is_on(m, dev))
		return 0;
	sroce_member_leave(m, group);
	return dev ? sroce_member_join(m, dev, group) : 0;
}

void sroce_group_mac(const struct in6_addr *group, u8 *mac)
{
	if (ipv6_addr_v4mapped(group))
		ip_eth_mc_map(group->s6_addr32[3], mac);
	else
		ipv6_eth_mc_map(group, mac);
}

static int sroce_member_follow_filter(struct sroce_member *m,
				      struct net_device *dev,
				      const struct in6_addr *group)
{
	/* The netdev knows how many bytes its addresses have, and reads as many */
	u8 mac[MAX_ADDR_LEN] = {};
	int err;

	/* RoCE v1 has no frames on others; a tap or a bond may change what it is */
	if (dev && (dev->type != ARPHRD_ETHER || dev->addr_len != ETH_ALEN))
		dev = NULL;
	if (m->filter == dev)
		return 0;
	sroce_group_mac(group, mac);
	if (m->filter)
		dev_mc_del(m->filter, mac);
	err = dev ? dev_mc_add(dev, mac) : 0;
	m->filter = err ? NULL : dev;
	return err;
}

/* Without IP on the netdev there are still the frames of RoCE v1 */
static int sroce_member_follow(struct sroce_member *m, struct net_device *dev,
			       const struct sroce_join *join)
{
	int err = sroce_member_follow_ip(m, dev, &join->group);

	if (!join->v1)
		return err;
	if (err == -ENODEV || err == -EAFNOSUPPORT)
		err = 0;
	return sroce_member_follow_filter(m, dev, &join->group) ?: err;
}

/* --- a group ----------------------------------------------------------------- */

static void sroce_join_end(struct sroce_join *join)
{
	int i;

	for (i = 0; i < SROCE_JOIN_NETDEVS; i++)
		sroce_member_follow(&join->member[i], NULL, join);
}

/*
 * Have a group joined on the netdev and its masters as they are now.
 * Return: 0, or the first error; the other netdevs are members all the same.
 */
static int sroce_join_follow(struct sroce_join *join)
{
	int i, e, err = 0;

	for (i = 0; i < SROCE_JOIN_NETDEVS; i++) {
		e = sroce_member_follow(&join->member[i], join->of->on[i],
					join);
		err = err ?: e;
	}
	return err;
}

static struct sroce_join *sroce_join_find(const struct sroce_joins *joins,
					  const struct in6_addr *group)
{
	struct sroce_join *join;

	list_for_each_entry(join, &joins->joins, node)
		if (ipv6_addr_equal(&join->group, group))
			return join;
	return NULL;
}

/*
 * What a membership may need, allocated before RTNL is taken: a process at the limit of
 * its memory cgroup may wait for memory, but not everybody who configures the network.
 */
struct sroce_join_room {
	struct sroce_joins *joins;
	struct sroce_join *join;
	bool v1;
};

static struct sroce_join *sroce_join_make(struct sroce_joins *joins,
					  const struct in6_addr *group,
					  struct sroce_join_room *room)
{
	struct sroce_join *join = room->join;
	int err;

	join->of = joins;
	join->group = *group;
	join->v1 = room->v1;
	err = sroce_join_follow(join);
	if (err) {
		sroce_join_end(join);
		return ERR_PTR(err);
	}
	list_add(&join->node, &joins->joins);
	room->join = NULL;
	return join;
}

/* --- the netdev of a device ------------------------------------------------------ */

/* Note the netdev and its masters. One that is being unregistered, or @gone, does not count */
static void sroce_joins_look(struct sroce_joins *joins,
			     const struct net_device *gone)
{
	struct net_device *dev = joins->ndev;
	int i;

	for (i = 0; i < SROCE_JOIN_NETDEVS; i++) {
		if (dev && (dev == gone || dev->reg_state != NETREG_REGISTERED))
			dev = NULL;
		joins->on[i] = dev;
		dev = dev ? netdev_master_upper_dev_get(dev) : NULL;
	}
}

static struct sroce_joins *sroce_joins_find(const struct net_device *ndev)
{
	struct sroce_joins *joins;

	list_for_each_entry(joins, &sroce_all_joins, node)
		if (joins->ndev == ndev)
			return joins;
	return NULL;
}

static struct sroce_joins *sroce_joins_make(struct net_device *ndev,
					    struct sroce_join_room *room)
{
	struct sroce_joins *joins = room->joins;

	room->joins = NULL;
	INIT_LIST_HEAD(&joins->joins);
	joins->ndev = ndev;
	sroce_joins_look(joins, NULL);
	list_add(&joins->node, &sroce_all_joins);
	return joins;
}

static void sroce_joins_drop(struct sroce_joins *joins)
{
	if (!list_empty(&joins->joins))
		return;
	list_del(&joins->node);
	kfree(joins);
}

/* Takes from @room what it needs, and leaves NULL there; the caller frees the rest */
static struct sroce_join *sroce_join_get(struct net_device *ndev,
					 const struct in6_addr *group,
					 struct sroce_join_room *room)
{
	struct sroce_joins *joins;
	struct sroce_join *join;

	if (ndev->reg_state != NETREG_REGISTERED)
		return ERR_PTR(-ENODEV);
	joins = sroce_joins_find(ndev) ?: sroce_joins_make(ndev, room);
	join = sroce_join_find(joins, group) ?:
	       sroce_join_make(joins, group, room);
	if (IS_ERR(join))
		sroce_joins_drop(joins);
	else
		join->users++;
	return join;
}

static void sroce_join_put(struct sroce_join *join)
{
	if (--join->users)
		return;
	sroce_join_end(join);
	list_del(&join->node);
	sroce_joins_drop(join->of);
	kfree(join);
}

struct sroce_join *sroce_net_join(struct net_device *ndev,
				  const union ib_gid *mgid, bool v1)
{
	struct sroce_join *join = ERR_PTR(-ENOMEM);
	struct sroce_join_room room = {
		.joins = kzalloc_obj(*room.joins, GFP_KERNEL_ACCOUNT),
		.join = kzalloc_obj(*room.join, GFP_KERNEL_ACCOUNT),
		.v1 = v1,
	};
	struct in6_addr group;

	memcpy(&group, mgid, sizeof(group));
	if (room.joins && room.join) {
		rtnl_lock();
		join = sroce_join_get(ndev, &group, &room);
		rtnl_unlock();
	}
	kfree(room.joins);
	kfree(room.join);
	return join;
}

void sroce_net_leave(struct sroce_join *join)
{
	rtnl_lock();
	sroce_join_put(join);
	rtnl_unlock();
}

/* --- what happens to netdevs ------------------------------------------------------ */

static bool sroce_joins_concern(const struct sroce_joins *joins,
				const struct net_device *dev)
{
	int i;

	for (i = 0; i < SROCE_JOIN_NETDEVS; i++)
		if (joins->on[i] == dev)
			return true;
	return joins->ndev == dev;
}

/* Errors are ignored: where a join fails now it is tried again at the next event */
static void sroce_joins_follow(struct sroce_joins *joins,
			       const struct net_device *gone)
{
	struct sroce_join *join;

	sroce_joins_look(joins, gone);
	list_for_each_entry(join, &joins->joins, node)
		sroce_join_follow(join);
}

/* The filter of a netdev finds an address only as long as it is of the same kind as that */
static void sroce_joins_drop_filter(struct sroce_joins *joins,
				    const struct net_device *dev)
{
	struct sroce_join *join;
	int i;

	list_for_each_entry(join, &joins->joins, node)
		for (i = 0; i < SROCE_JOIN_NETDEVS; i++)
			if (join->member[i].filter == dev)
				sroce_member_follow_filter(&join->member[i],
							   NULL, &join->group);
}

static int sroce_joins_event(struct notifier_block *nb, unsigned long event,
			     void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct net_device *gone = event == NETDEV_UNREGISTER ? dev : NULL;
	struct sroce_joins *joins;

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_UNREGISTER:
	case NETDEV_UP:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEUPPER:
	case NETDEV_POST_TYPE_CHANGE:
		list_for_each_entry(joins, &sroce_all_joins, node)
			if (sroce_joins_concern(joins, dev))
				sroce_joins_follow(joins, gone);
		break;
	case NETDEV_PRE_TYPE_CHANGE:
		list_for_each_entry(joins, &sroce_all_joins, node)
			sroce_joins_drop_filter(joins, dev);
		break;
	}
	return NOTIFY_DONE;
}

/* Called after IP's notifiers: IP has let go of the netdev then, or begun with it */
static struct notifier_block sroce_joins_notifier = {
	.notifier_call = sroce_joins_event,
	.priority = -1,
};

int sroce_joins_init(void)
{
	return register_netdevice_notifier(&sroce_joins_notifier);
}

void sroce_joins_exit(void)
{
	unregister_netdevice_notifier(&sroce_joins_notifier);
}
