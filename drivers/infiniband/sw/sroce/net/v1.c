// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RoCE v1: frames of EtherType 0x8915 in and out. IP has no part in them. No firewall
 * rule for IP sees them, no route and no neighbour entry is asked: the source GID says
 * through which netdev a frame leaves, and the address vector has the peer's MAC
 * address. So what IP does for RoCE v2 is done here: that a frame for an address of
 * this host comes back, that a member of a group hears what its own host sends, and
 * that what is for another host is not taken.
 */
#include <linux/etherdevice.h>
#include <linux/if_ether.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>

#include "net/attach.h"
#include "net/backlog.h"
#include "net/v1.h"
#include "netport.h"
#include "path.h"

/* --- in --------------------------------------------------------------------- */

/* The link-local address that ib_core makes of a MAC address, whether IP has it or not */
static bool sroce_v1_is_default_gid(const struct net_device *dev,
				    const struct in6_addr *addr)
{
	struct in6_addr own = { .s6_addr32[0] = htonl(0xfe800000) };

	if (dev->addr_len != ETH_ALEN)
		return false;
	addrconf_addr_eui48(own.s6_addr + 8, (const char *)dev->dev_addr);
	return ipv6_addr_equal(addr, &own);
}

static bool sroce_v1_is_for_us(struct net *net, struct net_device *dev,
			       const struct in6_addr *addr)
{
	return sroce_is_group(addr) ||
	       sroce_netdev_of_address(net, addr, dev) ||
	       sroce_v1_is_default_gid(dev, addr);
}

struct sroce_netport *sroce_v1_port(struct net *net, const struct sk_buff *skb)
{
	struct sroce_netport *port;

	port = sroce_port_of_netdev(net, skb->dev, false);
	if (!port || !port->roce_v1 ||
	    !sroce_v1_is_for_us(net, skb->dev, &ipv6_hdr(skb)->daddr))
		return NULL;
	return port;
}

/* Nobody makes such frames as parts of a larger one, or could cut that up */
static bool sroce_v1_is_frame(struct sk_buff *skb)
{
	return skb->pkt_type != PACKET_OTHERHOST && !skb_is_gso(skb) &&
	       pskb_may_pull(skb, sizeof(struct ipv6hdr));
}

static int sroce_v1_receive(struct sk_buff *skb, struct net_device *dev,
			    struct packet_type *pt, struct net_device *orig_dev)
{
	struct net *net = dev_net(dev);
	struct sroce_netport *port;

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

struct net_device *sroce_v1_netdev(const struct sroce_path *path,
				   struct net **net)
{
	*net = READ_ONCE(path->net);
	return *net ? dev_get_by_index_rcu(*net, path->ifindex) : NULL;
}

static int sroce_v1_put_header(const struct sroce_path *path,
			       struct sk_buff *skb)
{
	int err = dev_hard_header(skb, skb->dev, ETH_P_IBOE, path->dmac, NULL,
				  skb->len);

	return err < 0 ? err : 0;
}

/* To the host that it is from, as if it had come through @dev: what lo is for IP */
static int sroce_v1_loop(struct sk_buff *skb, struct net_device *dev,
			 u8 pkt_type)
{
	skb_orphan(skb);
	skb->dev = dev;
	skb_reset_mac_header(skb);
	__skb_pull(skb, skb_network_offset(skb));
	skb->pkt_type = pkt_type;
	return netif_rx(skb) == NET_RX_SUCCESS ? 0 : NET_XMIT_DROP;
}

/* What a group's members on this host get of it; without memory they miss it */
static void sroce_v1_loop_copy(struct sk_buff *skb)
{
	struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);

	if (copy)
		sroce_v1_loop(copy, skb->dev, PACKET_LOOPBACK);
}

int sroce_v1_output(struct net *net, const struct sroce_path *path,
		    struct sk_buff *skb)
{
	const struct in6_addr *dst = sroce_gid_addr(&path->dgid);
	struct net_device *owner;

	if (sroce_v1_put_header(path, skb)) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	if (path->group) {
		sroce_v1_loop_copy(skb);
		return dev_queue_xmit(skb);
	}
	owner = sroce_netdev_of_address(net, dst, skb->dev);
	if (!owner && sroce_v1_is_default_gid(skb->dev, dst))
		owner = skb->dev;
	return owner ? sroce_v1_loop(skb, owner, PACKET_HOST) :
		       dev_queue_xmit(skb);
}
