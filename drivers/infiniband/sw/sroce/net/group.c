// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups as the host's IP sees them. A group is joined on the netdev,
 * like one that a socket joins: IGMP or MLD tell switches and routers, the
 * netdev's filter lets its MAC address in, and what this host sends to the
 * group comes back to its other members.
 */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>

#include "compat.h"
#include "net/internal.h"

/**
 * struct sroce_member - a netdev that is member of a group
 * @in_dev: its IPv4, held; NULL when it is not a member
 * @idev: its IPv6, likewise
 *
 * That of a netdev which is gone, or has moved to another namespace, is not the
 * one that is there now.
 */
struct sroce_member {
	struct in_device *in_dev;
	struct inet6_dev *idev;
};

/* The device's netdev, and its master (bond, bridge), which is IP's */
#define SROCE_JOIN_NETDEVS 2

struct sroce_join {
	struct in6_addr group;
	struct sroce_member member[SROCE_JOIN_NETDEVS];
};

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

	if (!IS_ENABLED(CONFIG_IPV6))
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
		/* Of one that is gone the list is empty */
		ip_mc_dec_group(m->in_dev, group->s6_addr32[3]);
		in_dev_put(m->in_dev);
	}
	if (IS_ENABLED(CONFIG_IPV6) && m->idev) {
		if (__in6_dev_get(m->idev->dev) == m->idev)
			ipv6_dev_mc_dec(m->idev->dev, group);
		in6_dev_put(m->idev);
	}
}

static void sroce_join_end(struct sroce_join *join)
{
	int i;

	for (i = 0; i < SROCE_JOIN_NETDEVS; i++)
		sroce_member_leave(&join->member[i], &join->group);
}

static int sroce_join_begin(struct sroce_join *join, struct net_device *ndev)
{
	struct net_device *dev = ndev;
	int i, err = 0;

	if (ndev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	for (i = 0; i < SROCE_JOIN_NETDEVS && dev && !err; i++) {
		err = sroce_member_join(&join->member[i], dev, &join->group);
		dev = netdev_master_upper_dev_get(dev);
	}
	if (err)
		sroce_join_end(join);
	return err;
}

struct sroce_join *sroce_net_join(struct net_device *ndev,
				  const union ib_gid *mgid)
{
	struct sroce_join *join = kzalloc_obj(*join, GFP_KERNEL_ACCOUNT);
	int err;

	if (!join)
		return ERR_PTR(-ENOMEM);
	memcpy(&join->group, mgid, sizeof(join->group));
	rtnl_lock();
	err = sroce_join_begin(join, ndev);
	rtnl_unlock();
	if (!err)
		return join;
	kfree(join);
	return ERR_PTR(err);
}

void sroce_net_leave(struct sroce_join *join)
{
	rtnl_lock();
	sroce_join_end(join);
	rtnl_unlock();
	kfree(join);
}
