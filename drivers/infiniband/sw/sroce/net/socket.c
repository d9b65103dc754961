// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ways in. Packets for UDP port 4791 arrive at a netfilter hook, behind the
 * host's own rules, where GSO buffers are still whole: the stack cuts them up
 * before it hands them to an encapsulation socket. The sockets reserve the port,
 * keep the stack from saying that it is unreachable, have GRO couple what a NIC
 * receives, and take what the hooks cannot tell to be ours (IPv6 behind extension
 * headers).
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/netlink.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/udp_tunnel.h>
#include <net/xfrm.h>

#include "compat.h"
#include "net/attach.h"
#include "net/backlog.h"
#include "net/guard.h"
#include "net/net.h"
#include "net/socket.h"
#include "net/v1.h"

static struct sroce_netport *sroce_port_of_address(struct net *net,
						   const struct in6_addr *addr,
						   struct net_device *dev)
{
	struct net_device *owner = sroce_netdev_of_address(net, addr, dev);

	return owner ? sroce_port_of_netdev(net, owner, false) : NULL;
}

/*
 * The device of the netdev, else the one that the address belongs to. On lo, and in a VRF, it
 * is the other way round: packets for any address of this host come there.
 */
static struct sroce_netport *sroce_port_of_skb(struct net *net,
					       const struct sk_buff *skb,
					       const struct in6_addr *daddr)
{
	bool inside = sroce_netdev_is_inside(skb->dev);
	struct sroce_netport *port = NULL;

	if (sroce_is_group(daddr))
		return sroce_port_of_netdev(net, skb->dev, false);
	if (!inside)
		port = sroce_port_of_ifindex(net, skb->dev->ifindex);
	port = port ?: sroce_port_of_address(net, daddr, skb->dev);
	port = port ?: sroce_port_of_address(net, daddr, NULL);
	return port || !inside ? port :
				 sroce_port_of_ifindex(net, skb->dev->ifindex);
}

static void sroce_skb_daddr(const struct sk_buff *skb, struct in6_addr *daddr)
{
	if (ip_hdr(skb)->version == 6)
		*daddr = ipv6_hdr(skb)->daddr;
	else
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, daddr);
}

/*
 * Has this host sent it to itself, within the VRF? IPv6 says of such a packet, too, that it
 * has come through a netdev: the one that has the address. But it has a frame that is for the
 * MAC address of the VRF. Of what has really come to the netdev IP takes only what is for the
 * netdev's. (For netdevs without frames, a tunnel's, the VRF makes one up as soon as somebody
 * looks at its packets.)
 */
static bool sroce_skb_is_within_vrf(const struct sk_buff *skb,
				    const struct net_device *vrf,
				    const struct net_device *dev)
{
	return dev_has_header(dev) && skb_mac_header_was_set(skb) &&
	       skb_mac_header_len(skb) == ETH_HLEN &&
	       ether_addr_equal(eth_hdr(skb)->h_dest, vrf->dev_addr) &&
	       !ether_addr_equal(dev->dev_addr, vrf->dev_addr);
}

/* An address of the VRF itself is that of the first device below it */
static struct net_device *sroce_netdev_below_vrf(struct net *net, struct net_device *vrf)
{
	const struct sroce_netport *port = sroce_port_of_netdev(net, vrf, false);

	return port ? dev_get_by_index_rcu(net, port->ifindex) : NULL;
}

/*
 * What was unwrapped into a VRF (SRv6, IPsec without an interface) has come through no netdev
 * there. It counts as having come through the one that has the address, and never as sent by this
 * host: who has wrapped it can say so.
 * Return: false when there is none.
 */
static bool sroce_skb_was_unwrapped(struct net *net, struct sk_buff *skb,
				    struct net_device *vrf)
{
	struct net_device *dev;
	struct in6_addr daddr;

	sroce_skb_daddr(skb, &daddr);
	dev = sroce_netdev_of_address(net, &daddr, vrf);
	if (dev == vrf)
		dev = sroce_netdev_below_vrf(net, vrf);
	if (!dev || l3mdev_master_dev_rcu(dev) != vrf)
		return false;
	skb->dev = dev;
	return true;
}

/*
 * Of what this host has sent, IPv6 says that it has come through the netdev with the address,
 * if that is not the VRF itself, and IPv4 that through the VRF.
 */
static bool sroce_skb_is_from_nowhere(struct net *net, struct sk_buff *skb,
				      struct net_device *vrf)
{
	const struct in6_addr *daddr = &ipv6_hdr(skb)->daddr;

	return ip_hdr(skb)->version != 6 || ipv6_addr_is_multicast(daddr) ||
	       (ipv6_chk_addr(net, daddr, vrf, 1) && !skb_sec_path(skb)) ||
	       sroce_skb_was_unwrapped(net, skb, vrf);
}

/*
 * IP takes what comes to a netdev in a VRF for something that comes from the VRF. Device,
 * group, VLAN and link are those of the netdev: make it that again. Only here is it known
 * which one it was; a buffer that has waited has lost what IP noted in it.
 * Return: false when the netdev has gone meanwhile, or the packet is for nobody.
 */
static bool sroce_skb_leave_vrf(struct net *net, struct sk_buff *skb)
{
	bool ipv6 = ip_hdr(skb)->version == 6;
	struct net_device *vrf = skb->dev, *dev;
	int sdif = ipv6 ? inet6_sdif(skb) : inet_sdif(skb);

	if (!sdif || sdif == vrf->ifindex)
		return sroce_skb_is_from_nowhere(net, skb, vrf);
	dev = dev_get_by_index_rcu(net, sdif);
	if (!dev)
		return false;
	/* What SRv6 has unwrapped says through which netdev the wrapping came */
	if (l3mdev_master_dev_rcu(dev) != vrf)
		return sroce_skb_was_unwrapped(net, skb, vrf);
	if (!ipv6 || !sroce_skb_is_within_vrf(skb, vrf, dev))
		skb->dev = dev;
	return true;
}

/*
 * The device that a packet is for which comes from IP. If it has come through a VRF, @skb->dev
 * may be another one afterwards, whether there is a device or not.
 */
static struct sroce_netport *sroce_port_of_arrival(struct net *net,
						   struct sk_buff *skb)
{
	if (unlikely(netif_is_l3_master(skb->dev)) &&
	    !sroce_skb_leave_vrf(net, skb))
		return NULL;
	return sroce_port_of_packet(net, skb);
}

struct sroce_netport *sroce_port_of_packet(struct net *net,
					   const struct sk_buff *skb)
{
	struct in6_addr daddr;

	if (skb->protocol == htons(ETH_P_IBOE))
		return sroce_v1_port(net, skb);
	sroce_skb_daddr(skb, &daddr);
	return sroce_port_of_skb(net, skb, &daddr);
}

bool sroce_skb_is_roce(const struct sk_buff *skb, unsigned int off)
{
	const struct udphdr *uh;
	struct udphdr buf;

	uh = skb_header_pointer(skb, off, sizeof(buf), &buf);
	return uh && uh->dest == htons(SROCE_UDP_PORT);
}

/*
 * Connection tracking confirms with the same priority, and which of the two
 * hooks comes first is chance. An entry that is never confirmed would be made
 * anew for every packet.
 */
static unsigned int sroce_hook_confirm(struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
	const struct nf_ct_hook *hook;
	enum ip_conntrack_info info;
	const struct nf_conn *ct;

	ct = nf_ct_get(skb, &info);
	hook = rcu_dereference(nf_ct_hook);
	if (ct && hook && !nf_ct_is_confirmed(ct))
		return sroce_ct_confirm(hook, skb);
#endif
	return NF_ACCEPT;
}

/* ipvlan in mode l3s: it is for a child's namespace, whose policies and socket get it */
static bool sroce_hook_is_childs(const struct sk_buff *skb, const struct net *net)
{
	return unlikely(!net_eq(dev_net(skb_dst(skb)->dev), net));
}

/* Takes the packet from the stack. Bottom halves are on when nfqueue has reinjected it */
static unsigned int sroce_hook_steal(struct sk_buff *skb, struct net *net)
{
	struct net_device *dev = skb->dev;
	struct sroce_netport *port;

	port = sroce_port_of_arrival(net, skb);
	if (!port) {
		skb->dev = dev;
		return NF_ACCEPT;
	}
	if (sroce_hook_confirm(skb) != NF_ACCEPT)
		return NF_DROP;
	local_bh_disable();
	sroce_net_input(net, port, skb);
	local_bh_enable();
	return NF_STOLEN;
}

static unsigned int sroce_hook_ipv4(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	const struct iphdr *ip = ip_hdr(skb);

	if (ip->protocol != IPPROTO_UDP || ip_is_fragment(ip) ||
	    !sroce_skb_is_roce(skb, ip_hdrlen(skb)) ||
	    sroce_hook_is_childs(skb, state->net))
		return NF_ACCEPT;
	/* UDP asks IPsec behind this hook, and will not see the packet */
	if (!xfrm4_policy_check(NULL, XFRM_POLICY_IN, skb))
		return NF_DROP;
	return sroce_hook_steal(skb, state->net);
}

static unsigned int sroce_hook_ipv6(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	if (ipv6_hdr(skb)->nexthdr != IPPROTO_UDP ||
	    !sroce_skb_is_roce(skb, sizeof(struct ipv6hdr)) ||
	    sroce_hook_is_childs(skb, state->net))
		return NF_ACCEPT;
	if (!xfrm6_policy_check(NULL, XFRM_POLICY_IN, skb))
		return NF_DROP;
	return sroce_hook_steal(skb, state->net);
}

static const struct nf_hook_ops sroce_hooks[] = {
	{
		.hook = sroce_hook_ipv4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	}, {
		.hook = sroce_hook_ipv6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP6_PRI_LAST,
	}, {
		.hook = sroce_guard_ipv4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_LAST,
	}, {
		.hook = sroce_guard_ipv6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP6_PRI_LAST,
	},
};

/* Never returns the packet to UDP: nobody reads from the socket */
static int sroce_encap_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct net *net = sock_net(sk);
	struct sroce_netport *port;

	port = sroce_port_of_arrival(net, skb);
	if (!port) {
		kfree_skb(skb);
		return 0;
	}
	__skb_push(skb, -skb_network_offset(skb));
	local_bh_disable();
	sroce_net_input(net, port, skb);
	local_bh_enable();
	return 0;
}

static struct socket *sroce_socket_open(struct net *net, u8 family)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.encap_type = 1,
		.encap_rcv = sroce_encap_rcv,
	};
	struct udp_port_cfg port = {
		.family = family,
		.local_udp_port = htons(SROCE_UDP_PORT),
		.ipv6_v6only = family == AF_INET6,
	};
	struct socket *sock;
	int err;

	err = udp_sock_create(net, &port, &sock);
	if (err)
		return ERR_PTR(err);
	setup_udp_tunnel_sock(net, sroce_tunnel_setup_sock(sock), &tunnel);
	udp_set_bit(GRO_ENABLED, sock->sk);
	return sock;
}

/*
 * A packet that somebody keeps (nfnetlink_queue) has a reference to the socket, and may
 * come back when the module is gone.
 */
static void sroce_socket_close(struct socket **sock)
{
	if (!*sock)
		return;
	WRITE_ONCE(udp_sk((*sock)->sk)->encap_rcv, NULL);
	udp_tunnel_sock_release(sroce_tunnel_release_sock(*sock));
	*sock = NULL;
}

static int sroce_socket_open_ipv4(struct net *net, struct sroce_netns *ns)
{
	struct socket *sock = sroce_socket_open(net, AF_INET);

	if (IS_ERR(sock))
		return PTR_ERR(sock);
	ns->sock4 = sock;
	return 0;
}

static int sroce_socket_open_ipv6(struct net *net, struct sroce_netns *ns)
{
	struct socket *sock;

	/* Not built in, or booted with ipv6.disable=1: then IPv6 is not to be asked anything */
	if (!ipv6_mod_enabled())
		return 0;
	sock = sroce_socket_open(net, AF_INET6);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	ns->sock6 = sock;
	return 0;
}

int sroce_sockets_open(struct net *net, struct sroce_netns *ns,
		       struct netlink_ext_ack *extack)
{
	int err;

	err = sroce_socket_open_ipv4(net, ns);
	if (!err)
		err = sroce_socket_open_ipv6(net, ns);
	if (err == -EADDRINUSE)
		NL_SET_ERR_MSG_MOD(extack,
				   "UDP port 4791 is in use in this network namespace");
	else if (err)
		NL_SET_ERR_MSG_MOD(extack, "cannot open UDP port 4791");
	if (err)
		goto close;
	err = nf_register_net_hooks(net, sroce_hooks, ARRAY_SIZE(sroce_hooks));
	if (!err)
		return 0;
	NL_SET_ERR_MSG_MOD(extack, "cannot register netfilter hooks");
close:
	sroce_socket_close(&ns->sock6);
	sroce_socket_close(&ns->sock4);
	return err;
}

void sroce_sockets_close(struct net *net, struct sroce_netns *ns)
{
	nf_unregister_net_hooks(net, sroce_hooks, ARRAY_SIZE(sroce_hooks));
	sroce_socket_close(&ns->sock6);
	sroce_socket_close(&ns->sock4);
	synchronize_net();
}
