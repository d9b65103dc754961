// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RoCE v1: frames of EtherType 0x8915 in and out. IP has no part in them. No firewall
 * rule for IP sees them, no route and no neighbour entry is asked: the source GID says
 * through which netdev a frame leaves, and the address vector has the peer's MAC
 * address. So what IP does for RoCE v2 is done here: that a frame for an address of
 * this host comes back, that a member of a group hears what its own host sends, and
 * that neither what is for another netdev nor what only says that it is from this host
 * is taken.
 *
 * receive.c takes the frames on, and pack.c makes them.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>

#include "compat.h"
#include "net/attach.h"
#include "net/backlog.h"
#include "net/v1.h"
#include "netport.h"
#include "path.h"

/* --- in --------------------------------------------------------------------- */

/* Is it the GID that would be made of a netdev's MAC address, whether IP has it or not? */
static bool sroce_v1_is_default_gid(struct net_device *dev,
				    const struct in6_addr *addr)
{
	struct in6_addr own = { .s6_addr32[0] = htonl(0xfe800000) };

	return !addrconf_ifid_eui48(own.s6_addr + 8, dev) &&
	       ipv6_addr_equal(addr, &own);
}

/*
 * One that only the device itself has: ib_core makes it of the MAC address of its netdev, or
 * of the bond that this is a slave of; not of other masters, as a bridge.
 * A netdev that goes loses its number first, and the device hears of it later.
 */
static bool sroce_v1_is_own_default(struct net *net,
				    const struct sroce_netport *port,
				    struct net_device *dev,
				    const struct in6_addr *addr)
{
	struct net_device *own = dev_get_by_index_rcu(net, port->ifindex);

	return own && sroce_netdev_is_own(net, port, dev) &&
	       (sroce_v1_is_default_gid(own, addr) ||
		(netif_is_bond_master(dev) &&
		 sroce_v1_is_default_gid(dev, addr)));
}

/*
 * Is a frame that has come through a netdev for an address that just this one has? On
 * another VLAN there are others, whom the peers of this one do not trust. Groups are
 * joined for the device.
 */
static bool sroce_v1_is_for_us(struct net *net,
			       const struct sroce_netport *port,
			       struct net_device *dev,
			       const struct in6_addr *addr)
{
	if (sroce_is_group(addr))
		return sroce_netdev_is_own(net, port, dev);
	return sroce_netdev_has_address(net, dev, addr) ||
	       sroce_v1_is_own_default(net, port, dev, addr);
}

/* Is it what another host may say to be? Not a group's address, nor one of this host */
static bool sroce_v1_is_from_peer(struct net *net,
				  const struct sroce_netport *port,
				  struct net_device *dev,
				  const struct in6_addr *addr)
{
	return !sroce_is_group(addr) && !ipv6_addr_any(addr) &&
	       !sroce_netdev_of_address(net, addr, dev) &&
	       !sroce_v1_is_own_default(net, port, dev, addr);
}

/* What this host has sent itself (sroce_v1_loop()) comes with its own address */
static bool sroce_v1_may_come(struct net *net, const struct sroce_netport *port,
			      const struct sk_buff *skb)
{
	const struct ipv6hdr *grh = ipv6_hdr(skb);

	return sroce_v1_is_for_us(net, port, skb->dev, &grh->daddr) &&
	       (skb->pkt_type == PACKET_LOOPBACK ||
		sroce_v1_is_from_peer(net, port, skb->dev, &grh->saddr));
}

struct sroce_netport *sroce_v1_port(struct net *net, const struct sk_buff *skb)
{
	struct sroce_netport *port = sroce_port_of_netdev(net, skb->dev, false);

	return port && port->roce_v1 && sroce_v1_may_come(net, port, skb) ?
	       port : NULL;
}

/* Nobody makes such frames as parts of a larger one, or could cut that up */
static bool sroce_v1_is_frame(struct sk_buff *skb)
{
	return !skb_is_gso(skb) && pskb_may_pull(skb, sizeof(struct ipv6hdr));
}

static int sroce_v1_receive(struct sk_buff *skb, struct net_device *dev,
			    struct packet_type *pt, struct net_device *orig_dev)
{
	struct net *net = dev_net(dev);
	struct sroce_netport *port;

	if (skb->pkt_type == PACKET_OTHERHOST) {
		kfree_skb_reason(skb, SKB_DROP_REASON_OTHERHOST);
		return NET_RX_DROP;
	}
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return NET_RX_DROP;
	port = sroce_v1_is_frame(skb) ? sroce_v1_port(net, skb) : NULL;
	if (!port) {
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	sroce_net_input(net, port, skb);
	return NET_RX_SUCCESS;
}

static struct packet_type sroce_v1_type = {
	.type = cpu_to_be16(ETH_P_IBOE),
	.func = sroce_v1_receive,
};

/* Devices that speak RoCE v1 */
static unsigned int sroce_v1_listeners;

void sroce_v1_listen(void)
{
	if (!sroce_v1_listeners++)
		dev_add_pack(&sroce_v1_type);
}

void sroce_v1_unlisten(void)
{
	if (!--sroce_v1_listeners)
		dev_remove_pack(&sroce_v1_type);
}

/* --- out -------------------------------------------------------------------- */

/* A VLAN may have gone to another namespace, and its index to another netdev */
struct net_device *sroce_v1_netdev(const struct sroce_path *path,
				   struct net **net)
{
	struct net_device *dev;

	*net = READ_ONCE(path->net);
	dev = *net ? dev_get_by_index_rcu(*net, path->ifindex) : NULL;
	if (!dev || dev->type != ARPHRD_ETHER ||
	    !sroce_netdev_is_of_port(*net, dev, path->port))
		return NULL;
	return dev;
}

/* Longer ones are lost, as what does not fit is elsewhere: nobody below looks */
static int sroce_v1_transmit(const struct sroce_path *path, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	if (skb->len > READ_ONCE(dev->mtu) ||
	    skb_cow_head(skb, LL_RESERVED_SPACE(dev)) ||
	    dev_hard_header(skb, dev, ETH_P_IBOE, path->dmac, NULL, skb->len) < 0) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	return dev_queue_xmit(skb);
}

/*
 * To the host that it is from, as if it had come through @dev: what lo is for IP. Bridges
 * and the like leave it alone. A netdev may want other headers than a receiver gets, so it
 * is not asked for them.
 */
static int sroce_v1_loop(const struct sroce_path *path, struct sk_buff *skb,
			 struct net_device *dev)
{
	if (skb_cow_head(skb, ETH_HLEN)) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	skb_orphan(skb);
	eth_header(skb, skb->dev, ETH_P_IBOE, path->dmac, NULL, skb->len);
	skb->dev = dev;
	skb_reset_mac_header(skb);
	__skb_pull(skb, ETH_HLEN);
	skb->pkt_type = PACKET_LOOPBACK;
	return netif_rx(skb) == NET_RX_SUCCESS ? 0 : NET_XMIT_DROP;
}

/* What a group's members on this host get of it; without memory they miss it */
static void sroce_v1_loop_copy(const struct sroce_path *path,
			       struct sk_buff *skb)
{
	struct sk_buff *copy = pskb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);

	if (copy)
		sroce_v1_loop(path, copy, skb->dev);
}

/* The netdev of this host that has an address; NULL: another host has it */
static struct net_device *sroce_v1_owner(struct net *net,
					 const struct sroce_path *path,
					 struct net_device *dev)
{
	const struct in6_addr *dst = sroce_gid_addr(&path->dgid);
	struct net_device *owner = sroce_netdev_of_address(net, dst, dev);

	if (!owner && sroce_v1_is_own_default(net, path->port, dev, dst))
		owner = dev;
	return owner;
}

int sroce_v1_output(struct net *net, const struct sroce_path *path,
		    struct sk_buff *skb)
{
	struct net_device *owner;

	if (path->group) {
		sroce_v1_loop_copy(path, skb);
		return sroce_v1_transmit(path, skb);
	}
	owner = sroce_v1_owner(net, path, skb->dev);
	return owner ? sroce_v1_loop(path, skb, owner) :
		       sroce_v1_transmit(path, skb);
}
