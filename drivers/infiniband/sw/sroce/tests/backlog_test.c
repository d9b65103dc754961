// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that wait because the turn of their CPU is overdue: they come out as they
 * went in, there is an end to them, and they go with their netdev.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "counters.h"
#include "net/backlog.h"
#include "net/net.h"
#include "net/receive.h"
#include "turn.h"

#define MANY 4096

/**
 * struct flow - what the tests of this file share
 * @port: device, of which only counters are needed
 * @dev: netdevs that packets come from
 * @limits: the real ones
 * @sink: the real one
 * @lock: protects what is below
 * @n: buffers that came out
 * @in_order: each with the next mark
 * @strange: what came out was not from the first netdev
 */
static struct flow {
	struct sroce_netport port;
	struct net_device *dev[2];
	struct sroce_turn_limits limits;
	void (*sink)(struct sk_buff *skb, struct sroce_rx_place place);
	spinlock_t lock;
	u32 n;
	bool in_order;
	bool strange;
} flow;

static void flow_sink(struct sk_buff *skb, struct sroce_rx_place place)
{
	spin_lock(&flow.lock);
	flow.in_order &= skb->mark == flow.n++;
	flow.strange |= skb->dev != flow.dev[0];
	spin_unlock(&flow.lock);
	kfree_skb(skb);
}

static struct sk_buff *flow_packet(struct kunit *test, int dev, u32 mark)
{
	struct sk_buff *skb = alloc_skb(128, GFP_KERNEL);
	struct iphdr *ip;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	ip = skb_put_zero(skb, sizeof(*ip) + sizeof(struct udphdr));
	ip->version = 4;
	ip->ihl = 5;
	skb_reset_network_header(skb);
	skb->dev = flow.dev[dev];
	skb->mark = mark;
	return skb;
}

/* With a UDP port of its own */
static struct sk_buff *flow_packet_ipv4(struct kunit *test, u32 port)
{
	struct sk_buff *skb = flow_packet(test, 0, 0);

	((struct udphdr *)(skb->data + sizeof(struct iphdr)))->source = htons(port);
	return skb;
}

/* From one of the addresses of a network whose four words have the same exclusive or */
static struct sk_buff *flow_packet_ipv6(struct kunit *test, u32 n)
{
	struct sk_buff *skb = alloc_skb(128, GFP_KERNEL);
	struct ipv6hdr *ip;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	ip = skb_put_zero(skb, sizeof(*ip) + sizeof(struct udphdr));
	ip->version = 6;
	ip->saddr.s6_addr32[0] = htonl(0xfd000000);
	ip->saddr.s6_addr32[2] = htonl(n);
	ip->saddr.s6_addr32[3] = htonl(n);
	skb_reset_network_header(skb);
	skb->dev = flow.dev[0];
	return skb;
}

/* In a turn that has spent so much already */
static void flow_take(struct sk_buff *skb, u32 spent)
{
	local_bh_disable();
	rcu_read_lock();
	sroce_turn_begin(true);
	sroce_turn_spend(spent);
	sroce_net_input(&init_net, &flow.port, skb);
	sroce_turn_end();
	rcu_read_unlock();
	local_bh_enable();
}

static bool flow_ends(u32 n)
{
	unsigned long end = jiffies + 20 * HZ;

	while (READ_ONCE(flow.n) < n && time_before(jiffies, end))
		usleep_range(500, 1000);
	return READ_ONCE(flow.n) == n;
}

static u64 flow_lost(void)
{
	u64 lost = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		lost += per_cpu_ptr(flow.port.counters, cpu)->v[SROCE_CNT_RX_DISCARDS];
	return lost;
}

/* What comes when there is time again goes behind what has waited */
static void backlog_in_order(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 3; i++)
		flow_take(flow_packet(test, 0, i), SZ_1K);
	KUNIT_EXPECT_EQ(test, 0, READ_ONCE(flow.n));
	/* No worker has time with this, but a turn that has spent nothing has */
	sroce_turn_limits.bytes = 1;
	flow_take(flow_packet(test, 0, 3), 0);
	sroce_turn_limits = flow.limits;
	KUNIT_EXPECT_TRUE(test, flow_ends(4));
	KUNIT_EXPECT_TRUE(test, flow.in_order);
	KUNIT_EXPECT_EQ(test, 0, flow_lost());
}

static void backlog_has_end(struct kunit *test)
{
	u32 i;

	for (i = 0; i < MANY + 2; i++)
		flow_take(flow_packet(test, 0, i), SZ_1K);
	KUNIT_EXPECT_EQ(test, 2, flow_lost());
	KUNIT_EXPECT_EQ(test, 0, READ_ONCE(flow.n));
	sroce_turn_limits = flow.limits;
	KUNIT_EXPECT_TRUE(test, flow_ends(MANY));
	KUNIT_EXPECT_TRUE(test, flow.in_order);
}

/* Buffers of a flow, in parts of the memory for all, until one is lost. Return: how many wait */
static u32 flow_fill(struct kunit *test,
		     struct sk_buff *(*make)(struct kunit *test, u32 n),
		     u32 flow_number, u32 truesize)
{
	u64 lost = flow_lost();
	struct sk_buff *skb;
	u32 n = 0;

	for (;;) {
		skb = make(test, flow_number);
		skb->truesize = truesize;
		flow_take(skb, SZ_1K);
		if (flow_lost() != lost)
			return n;
		n++;
	}
}

/*
 * One flow alone may fill half of the memory, and one that comes later has half of what is
 * free. (Some of them share a list with an earlier one, and have nothing.)
 */
static void backlog_is_shared(struct kunit *test)
{
	u32 alone = flow_fill(test, flow_packet_ipv4, 1, SZ_1M);
	u32 other, most = 0;
	u32 port;

	KUNIT_EXPECT_GE(test, alone, SZ_16M / SZ_1M / 2);
	for (port = 2; port < 10 && !most; port++) {
		other = flow_fill(test, flow_packet_ipv4, port, SZ_1M);
		most = max(most, other);
	}
	KUNIT_EXPECT_GE(test, most, alone / 2);
	KUNIT_EXPECT_LE(test, most, (alone + 1) / 2);
	sroce_turn_limits = flow.limits;
	KUNIT_EXPECT_TRUE(test, flow_ends(alone + most));
}

/* Nobody fills somebody else's list because he has chosen an address for that */
static void backlog_is_secret(struct kunit *test)
{
	u32 n, most = 0, all = flow_fill(test, flow_packet_ipv6, 1, SZ_1M);

	for (n = 2; n < 10 && !most; n++) {
		most = flow_fill(test, flow_packet_ipv6, n, SZ_1M);
		all += most;
	}
	KUNIT_EXPECT_GT(test, most, 0);
	sroce_turn_limits = flow.limits;
	KUNIT_EXPECT_TRUE(test, flow_ends(all));
}

static void backlog_of_netdev(struct kunit *test)
{
	int refs = netdev_refcnt_read(flow.dev[1]);
	u32 i;

	for (i = 0; i < 64; i++)
		flow_take(flow_packet(test, i & 1, i / 2), SZ_1K);
	KUNIT_EXPECT_EQ(test, refs + 32, netdev_refcnt_read(flow.dev[1]));
	sroce_backlogs_forget(flow.dev[1]);
	KUNIT_EXPECT_EQ(test, refs, netdev_refcnt_read(flow.dev[1]));
	sroce_turn_limits = flow.limits;
	KUNIT_EXPECT_TRUE(test, flow_ends(32));
	KUNIT_EXPECT_TRUE(test, flow.in_order);
	KUNIT_EXPECT_FALSE(test, flow.strange);
}

/*
 * A turn that is over takes what arrives for a while. When that has to wait as well,
 * it does not make a new turn of the same one, however long that takes.
 */
static void backlog_turn_goes_on(struct kunit *test)
{
	bool early, late;
	int i;

	sroce_turn_limits.bytes = SZ_1M;
	sroce_turn_limits.ns = NSEC_PER_SEC;
	sroce_turn_limits.gap = NSEC_PER_SEC;
	local_bh_disable();
	sroce_turn_begin(true);
	sroce_turn_spend(SZ_1M);
	early = sroce_turn_over() && !sroce_turn_overdue();
	sroce_turn_spend(SZ_1M);
	late = sroce_turn_overdue();
	sroce_turn_end();
	for (i = 0; i < 4; i++) {
		/* As if so much time had passed */
		this_cpu_ptr(&sroce_turns)->seen -= NSEC_PER_SEC / 2;
		late &= sroce_turn_overdue();
	}
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, early);
	KUNIT_EXPECT_TRUE(test, late);
}

static int backlog_begin(struct kunit *test)
{
	int i;

	memset(&flow, 0, sizeof(flow));
	spin_lock_init(&flow.lock);
	flow.in_order = true;
	flow.limits = sroce_turn_limits;
	flow.port.counters = alloc_percpu(struct sroce_counters);
	KUNIT_ASSERT_TRUE(test, !!flow.port.counters);
	for (i = 0; i < 2; i++) {
		flow.dev[i] = alloc_etherdev(0);
		KUNIT_ASSERT_NOT_NULL(test, flow.dev[i]);
	}
	flow.sink = sroce_backlog_sink;
	sroce_backlog_sink = flow_sink;
	/* Nobody ever has time for anything */
	sroce_turn_limits.bytes = 0;
	return 0;
}

static void backlog_end(struct kunit *test)
{
	int i;

	sroce_turn_limits = flow.limits;
	for (i = 0; i < 2; i++) {
		if (!flow.dev[i])
			continue;
		sroce_backlogs_forget(flow.dev[i]);
		/* A worker may have one at hand */
		flush_workqueue(sroce_turn_wq);
		free_netdev(flow.dev[i]);
	}
	free_percpu(flow.port.counters);
	if (flow.sink)
		sroce_backlog_sink = flow.sink;
}

static struct kunit_case backlog_cases[] = {
	KUNIT_CASE(backlog_in_order),
	KUNIT_CASE(backlog_has_end),
	KUNIT_CASE(backlog_is_shared),
	KUNIT_CASE(backlog_is_secret),
	KUNIT_CASE(backlog_of_netdev),
	KUNIT_CASE(backlog_turn_goes_on),
	{}
};

static struct kunit_suite backlog_suite = {
	.name = "sroce_backlog",
	.init = backlog_begin,
	.exit = backlog_end,
	.test_cases = backlog_cases,
};

kunit_test_suite(backlog_suite);
