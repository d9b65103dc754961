// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whom QP 1 hears. Who handles its datagrams (ib_cm, ib_mad) looks for the way back to the
 * sender first. Where the neighbour is not known, that waits for it, up to a second, and
 * with it waits all that QP 1 has received since, or even all connection requests of the
 * host. Where there is no route, or the datagram was for an address that is no GID of the
 * device, ib_mad writes a line to the kernel's log. For neither does a stranger need more
 * than a datagram with a source that he has made up.
 *
 * So QP 1 gets only what can be answered at once. The others wait here, for a second at
 * most, until the sender's neighbour has answered. What waits has a bound, of which neither
 * one device nor one netdev that leads to it ever leaves nothing for the others, holds its
 * netdev only, and is looked at a hundred times a second: it goes when its device has gone.
 *
 * receive.c asks here for each train for QP 1.
 */
#include <linux/etherdevice.h>
#include <linux/hash.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>
#include <net/dst.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/neighbour.h>
#include <net/route.h>
#include <rdma/ib_addr.h>

#include "compat.h"
#include "counters.h"
#include "net/attach.h"
#include "net/backlog.h"
#include "net/gsi.h"
#include "net/net.h"
#include "net/socket.h"

/* So often those who wait are looked at, and so long they wait */
#define SROCE_GSI_TICK max(1, HZ / 100)
#define SROCE_GSI_PATIENCE HZ

/* Those who wait, and their memory: some hundred hosts that connect for the first time */
#define SROCE_GSI_BUFFERS 512
#define SROCE_GSI_BYTES SZ_2M

/* Devices are told apart as far as so many numbers go, and so are netdevs */
#define SROCE_GSI_NUMBERS 64

/**
 * struct sroce_gsi_cb - in a buffer that waits
 * @net_cookie: of the namespace that it came to; the netdev may go to another one
 * @until: jiffies; then it is lost
 * @bytes: of memory that it counts as
 * @device: number of the device that it was for
 * @netdev: number of the netdev that it came through
 */
struct sroce_gsi_cb {
	u64 net_cookie;
	unsigned long until;
	u32 bytes;
	u8 device;
	u8 netdev;
};

/**
 * struct sroce_gsi_taken - room that is taken
 * @buffers: their number
 * @bytes: their memory
 */
struct sroce_gsi_taken {
	u32 buffers;
	u32 bytes;
};

/*
 * Where they wait.
 *
 * @list: its lock protects all, with bottom halves off
 * @taken: by the buffers in @list, and by those that the worker has at hand
 * @devices: by those for a device, by its number
 * @netdevs: by those through a netdev, by its number
 * @work: looks at them
 */
static struct {
	struct sk_buff_head list;
	struct sroce_gsi_taken taken;
	struct sroce_gsi_taken devices[SROCE_GSI_NUMBERS];
	struct sroce_gsi_taken netdevs[SROCE_GSI_NUMBERS];
	struct delayed_work work;
} sroce_gsi_room;

/**
 * struct sroce_gsi_way - from here to who has sent a packet
 * @net: namespace
 * @here: the address that it was for
 * @there: its sender's
 * @oif: index of the netdev that has @here
 */
struct sroce_gsi_way {
	struct net *net;
	struct in6_addr here;
	struct in6_addr there;
	int oif;
};

/* --- the way back -------------------------------------------------------------- */

static enum sroce_gsi_verdict sroce_gsi_neighbour(const struct dst_entry *dst,
						  const void *there)
{
	struct neighbour *n = dst_neigh_lookup(dst, there);
	bool known;

	/*
	 * The neighbours' table is full: each try goes through all of it, and no neighbour is
	 * asked. The sender repeats what is lost, after seconds.
	 */
	if (!n)
		return SROCE_GSI_DROP;
	known = READ_ONCE(n->nud_state) & NUD_VALID;
	if (!known)
		neigh_event_send(n, NULL);
	neigh_release(n);
	return known ? SROCE_GSI_HEAR : SROCE_GSI_WAIT;
}

static enum sroce_gsi_verdict sroce_gsi_way_ipv4(const struct sroce_gsi_way *w)
{
	struct flowi4 fl4 = {
		.flowi4_oif = w->oif,
		.daddr = w->there.s6_addr32[3],
		.saddr = w->here.s6_addr32[3],
	};
	enum sroce_gsi_verdict verdict = SROCE_GSI_DROP;
	struct rtable *rt = ip_route_output_key(w->net, &fl4);

	if (IS_ERR(rt))
		return SROCE_GSI_DROP;
	if (rt->rt_type == RTN_LOCAL)
		verdict = SROCE_GSI_HEAR;
	else if (rt->rt_type == RTN_UNICAST)
		verdict = sroce_gsi_neighbour(&rt->dst, &fl4.daddr);
	ip_rt_put(rt);
	return verdict;
}

static enum sroce_gsi_verdict sroce_gsi_way_ipv6(const struct sroce_gsi_way *w)
{
	struct flowi6 fl6 = {
		.flowi6_oif = w->oif,
		.daddr = w->there,
		.saddr = w->here,
	};
	enum sroce_gsi_verdict verdict;
	struct dst_entry *dst;

	if (!ipv6_mod_enabled() || ipv6_addr_is_multicast(&w->there))
		return SROCE_GSI_DROP;
	dst = ip6_dst_lookup_flow(w->net, NULL, &fl6, NULL);
	if (IS_ERR(dst))
		return SROCE_GSI_DROP;
	if (container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_LOCAL)
		verdict = SROCE_GSI_HEAR;
	else
		verdict = sroce_gsi_neighbour(dst, &w->there);
	dst_release(dst);
	return verdict;
}

/*
 * In RoCE v1 nobody is asked for the neighbour, whose MAC address the link-local one has in it.
 * ib_core looks for it in fe80::/64 only, and there is no path to one that is a group's or zero.
 */
static enum sroce_gsi_verdict sroce_gsi_way_link_local(struct in6_addr *there)
{
	u8 mac[ETH_ALEN];

	rdma_get_ll_mac(there, mac);
	return rdma_link_local_addr(there) && is_valid_ether_addr(mac) ?
	       SROCE_GSI_HEAR : SROCE_GSI_DROP;
}

static enum sroce_gsi_verdict sroce_gsi_way(const struct sroce_gsi_way *w)
{
	return ipv6_addr_v4mapped(&w->there) ? sroce_gsi_way_ipv4(w) :
					       sroce_gsi_way_ipv6(w);
}

/* --- packets -------------------------------------------------------------------- */

static bool sroce_gsi_is_v1(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IBOE);
}

static void sroce_gsi_addresses(struct sroce_gsi_way *w,
				const struct sk_buff *skb)
{
	/* A GRH has the addresses where IPv6 has them */
	if (sroce_gsi_is_v1(skb) || ip_hdr(skb)->version == 6) {
		w->here = ipv6_hdr(skb)->daddr;
		w->there = ipv6_hdr(skb)->saddr;
	} else {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &w->here);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &w->there);
	}
}

/* The netdev that has the address, of several the one that the packet has come through */
static struct net_device *sroce_gsi_owner(const struct sroce_gsi_way *w,
					  struct net_device *dev)
{
	/* Addresses of this host come through lo or a VRF, which have none of them, mostly */
	if (sroce_netdev_is_inside(dev))
		return sroce_netdev_of_own(w->net, &w->here, dev);
	if (sroce_netdev_has_address(w->net, dev, &w->here))
		return dev;
	return sroce_netdev_of_address(w->net, &w->here, dev);
}

/* Is it an address of the device, on the VLAN that the packet has come from? */
static bool sroce_gsi_is_ours(const struct sroce_gsi_way *w,
			      const struct sroce_netport *port,
			      const struct sk_buff *skb, struct net_device *owner)
{
	if (!owner || !sroce_netdev_is_of_port(w->net, owner, port))
		return false;
	return sroce_netdev_is_inside(skb->dev) ||
	       sroce_netdev_vlan_id(owner) == sroce_netdev_vlan_id(skb->dev);
}

static enum sroce_gsi_verdict sroce_gsi_ask(struct net *net,
					    const struct sroce_netport *port,
					    struct sk_buff *skb)
{
	struct sroce_gsi_way w = { .net = net };
	struct net_device *owner;
	bool v1 = sroce_gsi_is_v1(skb);

	sroce_gsi_addresses(&w, skb);
	if (v1 && (ipv6_addr_type(&w.there) & IPV6_ADDR_LINKLOCAL))
		return sroce_gsi_way_link_local(&w.there);
	/* IPv6 lets sources ::ffff:a.b.c.d in, to which nobody would answer by IPv4 */
	if (ipv6_addr_v4mapped(&w.here) != ipv6_addr_v4mapped(&w.there))
		return SROCE_GSI_DROP;
	owner = sroce_gsi_owner(&w, skb->dev);
	/* net/v1.c has looked whose address it is, and knows more: of a bridge's port, say */
	if (!v1 && !sroce_gsi_is_ours(&w, port, skb, owner))
		return SROCE_GSI_DROP;
	w.oif = owner ? owner->ifindex : port->ifindex;
	return sroce_gsi_way(&w);
}

enum sroce_gsi_verdict (*sroce_gsi_judge)(struct net *net,
					  const struct sroce_netport *port,
					  struct sk_buff *skb) __read_mostly = sroce_gsi_ask;

/* --- those who wait ---------------------------------------------------------------- */

static struct sroce_gsi_cb *sroce_gsi_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct sroce_gsi_cb) > sizeof(skb->cb));
	return (struct sroce_gsi_cb *)skb->cb;
}

static u8 sroce_gsi_number(const void *of)
{
	return hash_ptr(of, ilog2(SROCE_GSI_NUMBERS));
}

/* So many more wait, or fewer. Context: the lock of the list held */
static void sroce_gsi_add(const struct sroce_gsi_cb *cb, int n)
{
	struct sroce_gsi_taken *taken[] = {
		&sroce_gsi_room.taken, &sroce_gsi_room.devices[cb->device],
		&sroce_gsi_room.netdevs[cb->netdev],
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		taken[i]->buffers += n;
		taken[i]->bytes += n * (int)cb->bytes;
	}
}

/* The wait of one has an end */
static void sroce_gsi_leave(const struct sroce_gsi_cb *cb)
{
	spin_lock_bh(&sroce_gsi_room.list.lock);
	sroce_gsi_add(cb, -1);
	spin_unlock_bh(&sroce_gsi_room.list.lock);
}

/* With the buffer, one has no more of a @part of the room than all leave free (as in backlog.c) */
static bool sroce_gsi_leaves_room(const struct sroce_gsi_taken *all,
				  const struct sroce_gsi_taken *one, u32 bytes, u32 part)
{
	return all->buffers + one->buffers + 2 <= SROCE_GSI_BUFFERS / part &&
	       all->bytes + one->bytes + 2 * bytes <= SROCE_GSI_BYTES / part;
}

/*
 * Who sends what cannot be answered keeps out hosts of his own network at most. A device has a
 * share of all, which are made by the administrator only, and a netdev has one of a device's: of
 * VLANs and the like there may be as many as somebody likes.
 */
static bool sroce_gsi_has_room(const struct sroce_gsi_cb *cb)
{
	const struct sroce_gsi_taken *device = &sroce_gsi_room.devices[cb->device];
	const struct sroce_gsi_taken *netdev = &sroce_gsi_room.netdevs[cb->netdev];

	return sroce_gsi_leaves_room(&sroce_gsi_room.taken, device, cb->bytes, 1) &&
	       sroce_gsi_leaves_room(device, netdev, cb->bytes, 2);
}

/* Begin to wait, if there is room */
static bool sroce_gsi_push(struct sk_buff *skb)
{
	const struct sroce_gsi_cb *cb = sroce_gsi_cb(skb);
	bool ok;

	spin_lock_bh(&sroce_gsi_room.list.lock);
	ok = sroce_gsi_has_room(cb);
	if (ok) {
		sroce_gsi_add(cb, 1);
		__skb_queue_tail(&sroce_gsi_room.list, skb);
	}
	spin_unlock_bh(&sroce_gsi_room.list.lock);
	return ok;
}

void sroce_gsi_wait(struct net *net, struct sroce_netport *port,
		    struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	sroce_backlog_strip(skb);
	*sroce_gsi_cb(skb) = (struct sroce_gsi_cb){
		.net_cookie = net->net_cookie,
		.until = jiffies + SROCE_GSI_PATIENCE,
		.bytes = skb->truesize,
		.device = sroce_gsi_number(port),
		.netdev = sroce_gsi_number(dev),
	};
	dev_hold(dev);
	if (!skb_pfmemalloc(skb) && sroce_gsi_push(skb)) {
		schedule_delayed_work(&sroce_gsi_room.work, SROCE_GSI_TICK);
		return;
	}
	sroce_count(port->counters, SROCE_CNT_RX_DISCARDS, 1);
	kfree_skb(skb);
	dev_put(dev);
}

/*
 * Look at one again. Context: RCU, bottom halves off.
 * Return: whether it is to wait on; else it is gone.
 */
static bool sroce_gsi_look(struct sk_buff *skb)
{
	enum sroce_gsi_verdict verdict = SROCE_GSI_DROP;
	struct sroce_netport *port = NULL;
	struct net *net = dev_net(skb->dev);

	if (sroce_gsi_cb(skb)->net_cookie == net->net_cookie)
		port = sroce_port_of_packet(net, skb);
	if (port)
		verdict = sroce_gsi_judge(net, port, skb);
	if (verdict == SROCE_GSI_HEAR) {
		sroce_net_input(net, port, skb);
		return false;
	}
	if (verdict == SROCE_GSI_WAIT &&
	    time_before(jiffies, sroce_gsi_cb(skb)->until))
		return true;
	if (port)
		sroce_count(port->counters, SROCE_CNT_RX_DISCARDS, 1);
	kfree_skb(skb);
	return false;
}

static void sroce_gsi_look_held(struct sk_buff *skb)
{
	struct sroce_gsi_cb cb = *sroce_gsi_cb(skb);
	struct net_device *dev = skb->dev;
	bool waits;

	local_bh_disable();
	rcu_read_lock();
	waits = sroce_gsi_look(skb);
	rcu_read_unlock();
	local_bh_enable();
	if (waits) {
		/* In the place that it has had all the time, however many have come */
		skb_queue_tail(&sroce_gsi_room.list, skb);
		return;
	}
	sroce_gsi_leave(&cb);
	dev_put(dev);
}

static void sroce_gsi_take_all(struct sk_buff_head *list)
{
	__skb_queue_head_init(list);
	spin_lock_bh(&sroce_gsi_room.list.lock);
	skb_queue_splice_tail_init(&sroce_gsi_room.list, list);
	spin_unlock_bh(&sroce_gsi_room.list.lock);
}

static void sroce_gsi_work(struct work_struct *work)
{
	struct sk_buff_head list;
	struct sk_buff *skb;

	sroce_gsi_take_all(&list);
	while ((skb = __skb_dequeue(&list))) {
		sroce_gsi_look_held(skb);
		cond_resched();
	}
	if (!skb_queue_empty_lockless(&sroce_gsi_room.list))
		schedule_delayed_work(&sroce_gsi_room.work, SROCE_GSI_TICK);
}

void sroce_gsi_init(void)
{
	skb_queue_head_init(&sroce_gsi_room.list);
	INIT_DELAYED_WORK(&sroce_gsi_room.work, sroce_gsi_work);
}

void sroce_gsi_exit(void)
{
	struct net_device *dev;
	struct sk_buff_head list;
	struct sk_buff *skb;

	cancel_delayed_work_sync(&sroce_gsi_room.work);
	sroce_gsi_take_all(&list);
	while ((skb = __skb_dequeue(&list))) {
		dev = skb->dev;
		kfree_skb(skb);
		dev_put(dev);
	}
}
