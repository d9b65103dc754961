// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Routes, which senders use without a reference, whoever keeps what is sent on them, and its
 * identifications.
 */
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "counters.h"
#include "net/attach.h"
#include "net/net.h"
#include "net/pack.h"
#include "net/paths.h"
#include "txq.h"

#define ADDRESS 0x7f000001
#define ID 0xfffc
#define BUFFERS 40
/* In each; it takes fewer than a device may limit a buffer to */
#define PACKETS 2

/**
 * struct route_world - a path to ourselves, of no device
 * @port: as far as senders ask for it
 * @path: path
 * @pool: of @txq
 * @txq: who sends
 * @counters: of that
 */
struct route_world {
	struct sroce_netport port;
	struct sroce_path *path;
	struct sroce_txq_pool pool;
	struct sroce_txq *txq;
	struct sroce_counters __percpu *counters;
};

static void no_room_wanted(void *owner)
{
}

static void set_address(union ib_gid *gid)
{
	ipv6_addr_set_v4mapped(htonl(ADDRESS), (struct in6_addr *)gid->raw);
}

static int open_loopback(void)
{
	int err;

	rtnl_lock();
	err = dev_open(init_net.loopback_dev, NULL);
	rtnl_unlock();
	return err;
}

static int route_world_init(struct kunit *test)
{
	struct route_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	if (!w)
		return -ENOMEM;
	test->priv = w;
	sroce_txq_pool_init(&w->pool);
	w->path = sroce_path_alloc(GFP_KERNEL);
	w->txq = sroce_txq_alloc(&w->pool, no_room_wanted, w);
	w->counters = alloc_percpu(struct sroce_counters);
	if (!w->path || !w->txq || !w->counters)
		return -ENOMEM;
	sroce_txq_count_in(w->txq, w->counters);
	w->path->port = &w->port;
	w->path->net = &init_net;
	w->path->network_type = RDMA_NETWORK_IPV4;
	w->path->hop_limit = 1;
	w->path->hash = 1;
	w->path->id = ID;
	set_address(&w->path->sgid);
	set_address(&w->path->dgid);
	return open_loopback();
}

static void route_world_exit(struct kunit *test)
{
	struct route_world *w = test->priv;

	if (!w)
		return;
	sroce_path_put(w->path);
	if (w->txq)
		sroce_txq_free(w->txq);
	free_percpu(w->counters);
	/* The route is let go of by then */
	rcu_barrier();
	sroce_txq_pool_end(&w->pool);
}

static unsigned int refs(struct dst_entry *dst)
{
	return rcuref_read(&dst->__rcuref);
}

/* Context: bottom halves off */
static struct dst_entry *find_route(struct kunit *test)
{
	struct route_world *w = test->priv;
	struct net *net = NULL;
	struct dst_entry *dst;

	dst = sroce_path_route(w->path, &net);
	KUNIT_EXPECT_NOT_NULL(test, dst);
	KUNIT_EXPECT_PTR_EQ(test, &init_net, net);
	return dst;
}

static void dropped_route_stays(struct kunit *test)
{
	struct route_world *w = test->priv;
	unsigned int before = 0, then = 0;
	struct dst_entry *dst;

	local_bh_disable();
	dst = find_route(test);
	if (dst) {
		/* it is found again without a reference */
		KUNIT_EXPECT_PTR_EQ(test, dst, find_route(test));
		dst_hold(dst);
		before = refs(dst);
		sroce_path_drop_route(w->path);
		then = refs(dst);
	}
	local_bh_enable();
	KUNIT_ASSERT_NOT_NULL(test, dst);
	KUNIT_EXPECT_EQ(test, before, then);
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, before - 1, refs(dst));
	dst_release(dst);
}

/*
 * All routes are invalid from here on, and a sender on another processor finds another one.
 * The next hop lets go of the old one at once, and we did as well: it was nobody's.
 */
static void stale_route_stays(struct kunit *test)
{
	struct dst_entry *dst, *anew = NULL;
	unsigned int then = 0;

	local_bh_disable();
	dst = find_route(test);
	if (dst) {
		rt_genid_bump_ipv4(&init_net);
		anew = find_route(test);
		then = refs(dst);
	}
	local_bh_enable();
	KUNIT_EXPECT_NOT_NULL(test, anew);
	KUNIT_EXPECT_PTR_NE(test, dst, anew);
	KUNIT_EXPECT_EQ(test, 1, then);
}

/* --- identifications ------------------------------------------------------------------- */

/* Send a buffer. Context: bottom halves off. Return: its first identification; -1 for none. */
static int send_buffer(struct route_world *w)
{
	const struct sroce_train t = {
		.op = SROCE_OP_SEND,
		.service = SROCE_UD,
		.flags = SROCE_START | SROCE_END,
		.npkts = 1,
	};
	const u32 size = sroce_train_hdr_len(&t, 0) + SROCE_ICRC_LEN;
	const struct sroce_flow flow = sroce_path_flow(w->path, &t, w->txq);
	struct sk_buff *skb = sroce_pack_open(&flow, size, PACKETS * size);
	struct bvec_iter bi = t.bi;
	int i, id = -1;

	for (i = 0; skb && i < PACKETS; i++)
		if (sroce_pack_add(skb, &t, 0, 1, &bi, size) && !i)
			id = ntohs(ip_hdr(skb)->id);
	if (skb)
		sroce_pack_send(skb);
	return id;
}

/*
 * They are one row, whichever processors send in turn, as threads do that have an address
 * handle in common
 */
static void ids_count_together(struct kunit *test)
{
	struct route_world *w = test->priv;
	unsigned int cpu = 0, other;
	int i, id;

	for (i = 0; i < BUFFERS; i++) {
		KUNIT_EXPECT_EQ(test, 0, set_cpus_allowed_ptr(current, cpumask_of(cpu)));
		other = cpumask_any_but(cpu_online_mask, cpu);
		if (other < nr_cpu_ids)
			cpu = other;
		local_bh_disable();
		id = send_buffer(w);
		local_bh_enable();
		KUNIT_EXPECT_EQ(test, (u16)(ID + i * PACKETS), id);
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_EXPECT_EQ(test, BUFFERS * PACKETS,
			sroce_counter_read(w->counters, SROCE_CNT_TX_PACKETS));
}

/* --- somebody keeps what is sent --------------------------------------------------------- */

/**
 * struct keeper - who keeps a buffer, as a queue of netfilter does
 * @skb: buffer
 * @noref: it came without a reference to its route
 */
struct keeper {
	struct sk_buff *skb;
	bool noref;
};

static unsigned int keep(void *priv, struct sk_buff *skb,
			 const struct nf_hook_state *state)
{
	struct keeper *k = priv;

	if (k->skb || ip_hdr(skb)->protocol != IPPROTO_UDP ||
	    udp_hdr(skb)->dest != htons(SROCE_UDP_PORT))
		return NF_ACCEPT;
	k->noref = skb_dst_is_noref(skb);
	if (!skb_dst_force(skb))
		return NF_DROP;
	k->skb = skb;
	return NF_STOLEN;
}

/* Return: 0, or an errno; a buffer that was sent is kept, or not */
static int send_to_keeper(struct route_world *w, struct keeper *k)
{
	const struct nf_hook_ops ops = {
		.hook = keep,
		.priv = k,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_FIRST,
	};
	int err = nf_register_net_hook(&init_net, &ops);

	if (err)
		return err;
	local_bh_disable();
	send_buffer(w);
	local_bh_enable();
	nf_unregister_net_hook(&init_net, &ops);
	/* Somebody else's packet may be in the hook */
	synchronize_net();
	return 0;
}

/* The path's reference was enough until the keeper had his own, which is for longer */
static void kept_buffer_has_route(struct kunit *test)
{
	struct route_world *w = test->priv;
	struct keeper k = {};
	struct dst_entry *dst;
	unsigned int before;

	KUNIT_ASSERT_EQ(test, 0, send_to_keeper(w, &k));
	KUNIT_ASSERT_NOT_NULL(test, k.skb);
	KUNIT_EXPECT_TRUE(test, k.noref);
	KUNIT_EXPECT_FALSE(test, skb_dst_is_noref(k.skb));
	dst = skb_dst(k.skb);
	before = refs(dst);
	sroce_path_drop_route(w->path);
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, before - 1, refs(dst));
	KUNIT_EXPECT_GE(test, refs(dst), 1);
	kfree_skb(k.skb);
}

static struct kunit_case route_cases[] = {
	KUNIT_CASE(dropped_route_stays),
	KUNIT_CASE(stale_route_stays),
	KUNIT_CASE(ids_count_together),
	KUNIT_CASE(kept_buffer_has_route),
	{}
};

static struct kunit_suite route_suite = {
	.name = "sroce_route",
	.init = route_world_init,
	.exit = route_world_exit,
	.test_cases = route_cases,
};

kunit_test_suite(route_suite);
