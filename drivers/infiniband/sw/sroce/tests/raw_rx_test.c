// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packets that arrive: what is received at once and what waits, for how many copies
 * that counts, and what is lost before it makes anybody work.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "counters.h"
#include "raw/internal.h"
#include "sending.h"
#include "tests/transport_pair.h"

enum { FLOWS = 2, HEADERS = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct tcphdr) };

/**
 * struct raw_rx - a device with flows that count
 * @ndev: its netdev
 * @raw: its frames
 * @counters: its own
 * @flow: each takes all frames, and gives them to nobody
 * @counts: frames that each has seen
 */
struct raw_rx {
	struct net_device *ndev;
	struct sroce_raw *raw;
	struct sroce_counters __percpu *counters;
	struct sroce_flow *flow[FLOWS];
	struct sroce_flow_counts *counts;
};

static void raw_rx_nothing(struct work_struct *work)
{
}

static void raw_rx_flow(struct kunit *test, struct raw_rx *r,
			struct sroce_flow **flow, struct sroce_qp *qp)
{
	struct sroce_flow_rule rule = {
		.type = SROCE_FLOW_DEFAULT,
		.drop = true,
		.qp = qp,
		.counts = r->counts,
	};

	*flow = sroce_flow_alloc(&rule);
	KUNIT_ASSERT_NOT_NULL(test, *flow);
	KUNIT_ASSERT_EQ(test, 0, sroce_flow_table_add(&r->raw->table, *flow,
						      true));
}

static struct raw_rx *raw_rx(struct kunit *test, bool held)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct raw_rx *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct sroce_netport *net = &p->side[0].port.net;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->ndev = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(test, r->ndev);
	r->raw = sroce_raw_create(r->ndev, net);
	KUNIT_ASSERT_NOT_NULL(test, r->raw);
	r->counters = net->counters;
	r->counts = sroce_flow_counts_alloc();
	KUNIT_ASSERT_NOT_NULL(test, r->counts);
	sroce_raw_attach(r->raw);
	for (i = 0; i < FLOWS; i++)
		raw_rx_flow(test, r, &r->flow[i], p->side[0].qp);
	if (held)
		INIT_WORK(&r->raw->work, raw_rx_nothing);
	return r;
}

static void raw_rx_end(struct raw_rx *r)
{
	u32 i;

	for (i = 0; i < FLOWS; i++) {
		sroce_flow_table_del(&r->raw->table, r->flow[i]);
		sroce_flow_free(r->flow[i]);
	}
	synchronize_rcu();
	rcu_barrier();
	flush_work(&r->raw->work);
	sroce_raw_later_purge(&r->raw->later);
	sroce_raw_destroy(r->raw);
	sroce_flow_counts_put(r->counts);
	free_netdev(r->ndev);
}

static u64 raw_rx_lost(const struct raw_rx *r)
{
	return sroce_counter_read(r->counters, SROCE_CNT_RX_DISCARDS);
}

/* Copies that the flows have been given so far */
static u64 raw_rx_given(const struct raw_rx *r)
{
	return atomic64_read(&r->counts->packets);
}

/* --- frames ------------------------------------------------------------------------ */

static void raw_rx_headers(struct sk_buff *skb, u8 proto, u32 len)
{
	struct ethhdr *eth = skb_put_zero(skb, sizeof(*eth));
	struct iphdr *ip;
	struct tcphdr *th;

	eth->h_proto = htons(ETH_P_IP);
	skb->protocol = eth->h_proto;
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	ip = skb_put_zero(skb, sizeof(*ip));
	*ip = (struct iphdr){
		.version = 4, .ihl = 5, .ttl = 64, .protocol = proto,
		.tot_len = htons(HEADERS - ETH_HLEN + len),
	};
	ip->check = ip_fast_csum(ip, ip->ihl);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*ip));
	th = skb_put_zero(skb, sizeof(*th));
	th->doff = 5;
	/* UDP's are shorter: the rest is payload */
	if (proto == IPPROTO_UDP)
		((struct udphdr *)th)->len =
			htons(len + HEADERS - skb_transport_offset(skb));
}

/* A frame whose checksum is to be filled in; not coupled, unless @size */
static struct sk_buff *raw_rx_frame(struct kunit *test, u8 proto, u32 len,
				    u32 size, u32 gso_type)
{
	struct sk_buff *skb = alloc_skb(HEADERS + len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	raw_rx_headers(skb, proto, len);
	skb_put_zero(skb, len);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_headroom(skb) + skb_transport_offset(skb);
	skb->csum_offset = proto == IPPROTO_TCP ? offsetof(struct tcphdr, check) :
						  offsetof(struct udphdr, check);
	skb_shinfo(skb)->gso_size = size;
	skb_shinfo(skb)->gso_type = size ? gso_type : 0;
	__skb_pull(skb, ETH_HLEN);
	return skb;
}

static void raw_rx_receive(struct raw_rx *r, struct sk_buff *skb, bool sending)
{
	skb->dev = r->ndev;
	local_bh_disable();
	rcu_read_lock();
	if (sending)
		sroce_sending_begin();
	r->raw->hook.func(skb, r->ndev, &r->raw->hook, r->ndev);
	if (sending)
		sroce_sending_end();
	rcu_read_unlock();
	local_bh_enable();
}

/* Return: copies that the flows have got of a coupled frame */
static u64 raw_rx_parts(struct kunit *test, struct raw_rx *r, u8 proto,
			u32 len, u32 size, u32 gso_type)
{
	u64 before = raw_rx_given(r);

	raw_rx_receive(r, raw_rx_frame(test, proto, len, size, gso_type), false);
	flush_work(&r->raw->work);
	return raw_rx_given(r) - before;
}

/* --- tests ------------------------------------------------------------------------- */

/* What short-circuits a queue pair's packet to the tap holds its lock */
static void from_within_sending(struct kunit *test)
{
	struct raw_rx *r = raw_rx(test, true);

	raw_rx_receive(r, raw_rx_frame(test, IPPROTO_TCP, 100, 0, 0), false);
	KUNIT_EXPECT_FALSE(test, sroce_raw_later_waits(&r->raw->later));
	KUNIT_EXPECT_EQ(test, raw_rx_given(r), FLOWS);
	raw_rx_receive(r, raw_rx_frame(test, IPPROTO_TCP, 100, 0, 0), true);
	KUNIT_EXPECT_TRUE(test, sroce_raw_later_waits(&r->raw->later));
	KUNIT_EXPECT_EQ(test, raw_rx_given(r), FLOWS);
	KUNIT_EXPECT_EQ(test, r->raw->later.received.copies, FLOWS);
	raw_rx_end(r);
}

/* A stranger who makes one frame stand for two thousand, again and again */
static void parts_without_end(struct kunit *test)
{
	struct raw_rx *r = raw_rx(test, true);
	struct sroce_raw_queue *q = &r->raw->later.received;
	u32 i, n;

	for (i = 0; i < 512; i++)
		raw_rx_receive(r, raw_rx_frame(test, IPPROTO_TCP, 16000, 8,
					       SKB_GSO_TCPV4 | SKB_GSO_DODGY),
			       false);
	n = skb_queue_len(&q->list);
	KUNIT_EXPECT_GT(test, n, 0);
	KUNIT_EXPECT_GE(test, q->copies, n * FLOWS * 2000);
	KUNIT_EXPECT_LE(test, q->copies, SROCE_RAW_LATER_COPIES);
	KUNIT_EXPECT_EQ(test, raw_rx_lost(r), 512 - n);
	/* ... keeps nobody else's out */
	for (i = 0; i < 512; i++)
		raw_rx_receive(r, raw_rx_frame(test, IPPROTO_TCP, 100, 0, 0),
			       false);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&q->list), n + 512);
	KUNIT_EXPECT_EQ(test, raw_rx_lost(r), 512 - n);
	raw_rx_end(r);
}

/* What is lost in the end takes no place from what is not */
static void parts_too_many(struct kunit *test)
{
	struct raw_rx *r = raw_rx(test, true);

	raw_rx_receive(r, raw_rx_frame(test, IPPROTO_TCP, 8 * 2100, 8,
				       SKB_GSO_TCPV4), false);
	KUNIT_EXPECT_EQ(test, raw_rx_lost(r), 1);
	KUNIT_EXPECT_FALSE(test, sroce_raw_later_waits(&r->raw->later));
	raw_rx_end(r);
}

/* Parts that TCP would not make are lost, of those only who are not trusted */
static void parts_too_short(struct kunit *test)
{
	static const u32 few = 10, many = 200;
	struct raw_rx *r = raw_rx(test, false);
	u32 type;

	type = SKB_GSO_TCPV4 | SKB_GSO_DODGY;
	KUNIT_EXPECT_EQ(test, 0, raw_rx_parts(test, r, IPPROTO_TCP, 7 * few, 7,
					      type));
	KUNIT_EXPECT_EQ(test, 0, raw_rx_parts(test, r, IPPROTO_TCP, 7 * many, 7,
					      type));
	KUNIT_EXPECT_EQ(test, raw_rx_lost(r), 2);
	KUNIT_EXPECT_EQ(test, FLOWS * many,
			raw_rx_parts(test, r, IPPROTO_TCP, 8 * many, 8, type));
	/* GRO couples what has come from the wire */
	type = SKB_GSO_TCPV4;
	KUNIT_EXPECT_EQ(test, FLOWS * many,
			raw_rx_parts(test, r, IPPROTO_TCP, many, 1, type));
	/* UDP's have any length; here 12 bytes of them are where TCP's header would end */
	type = SKB_GSO_UDP_L4 | SKB_GSO_DODGY;
	KUNIT_EXPECT_EQ(test, FLOWS * (few + 12),
			raw_rx_parts(test, r, IPPROTO_UDP, few, 1, type));
	KUNIT_EXPECT_EQ(test, raw_rx_lost(r), 2);
	raw_rx_end(r);
}

/*
 * Whoever else has the buffer finds it as it was. To cut up a coupled frame whose
 * checksum somebody says is right, the stack writes to its header first.
 */
static void parts_change_nothing(struct kunit *test)
{
	enum { PARTS = 4, SIZE = 100 };
	struct raw_rx *r = raw_rx(test, false);
	u8 *before = kunit_kzalloc(test, HEADERS + PARTS * SIZE, GFP_KERNEL);
	struct sk_buff *skb = raw_rx_frame(test, IPPROTO_TCP, PARTS * SIZE,
					   SIZE, SKB_GSO_TCPV4);

	KUNIT_ASSERT_NOT_NULL(test, before);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	tcp_hdr(skb)->check = (__force __sum16)htons(0x1234);
	memcpy(before, skb_mac_header(skb), HEADERS + PARTS * SIZE);
	raw_rx_receive(r, skb_get(skb), false);
	flush_work(&r->raw->work);
	KUNIT_EXPECT_EQ(test, raw_rx_given(r), FLOWS * PARTS);
	KUNIT_EXPECT_EQ(test, 0, memcmp(before, skb_mac_header(skb),
					HEADERS + PARTS * SIZE));
	KUNIT_EXPECT_TRUE(test, skb->ip_summed == CHECKSUM_UNNECESSARY);
	kfree_skb(skb);
	raw_rx_end(r);
}

/* --- the netdev's filter ------------------------------------------------------------- */

enum { ADDRESSES = 64, MORE_ADDRESSES = 3 };

/* A flow for an address of its own */
static struct sroce_flow *raw_rx_address(struct kunit *test, struct raw_rx *r,
					 struct sroce_qp *qp, bool group, u8 n)
{
	struct sroce_flow_rule rule = {
		.type = SROCE_FLOW_NORMAL,
		.key.dmac = { group ? 3 : 2, 0, 0, 0, 0, n },
		.qp = qp,
	};
	struct sroce_flow *flow;

	eth_broadcast_addr(rule.mask.dmac);
	flow = sroce_raw_add_flow(r->raw, &rule, r->raw->net_cookie);
	KUNIT_ASSERT_FALSE(test, IS_ERR(flow));
	return flow;
}

static const struct net_device_ops raw_rx_ops;

/* A netdev goes through all addresses that it has for each that is added */
static void addresses_without_end(struct kunit *test)
{
	struct sroce_flow *flow[ADDRESSES + MORE_ADDRESSES];
	struct raw_rx *r = raw_rx(test, false);
	struct sroce_qp *qp = r->flow[0]->rule.qp;
	u32 i;

	/* What registering a netdev does */
	spin_lock_init(&r->ndev->addr_list_lock);
	r->ndev->netdev_ops = &raw_rx_ops;
	r->raw->net_cookie = dev_net(r->ndev)->net_cookie;
	for (i = 0; i < ARRAY_SIZE(flow); i++)
		flow[i] = raw_rx_address(test, r, qp, i % 2, i);
	KUNIT_EXPECT_EQ(test, netdev_uc_count(r->ndev), ADDRESSES / 2);
	KUNIT_EXPECT_EQ(test, netdev_mc_count(r->ndev), ADDRESSES / 2);
	KUNIT_EXPECT_EQ(test, r->ndev->promiscuity, MORE_ADDRESSES - 1);
	KUNIT_EXPECT_EQ(test, r->ndev->allmulti, 1);
	for (i = 0; i < ARRAY_SIZE(flow); i++)
		sroce_raw_del_flow(r->raw, flow[i]);
	KUNIT_EXPECT_TRUE(test, netdev_uc_empty(r->ndev));
	KUNIT_EXPECT_TRUE(test, netdev_mc_empty(r->ndev));
	KUNIT_EXPECT_EQ(test, r->ndev->promiscuity, 0);
	KUNIT_EXPECT_EQ(test, r->ndev->allmulti, 0);
	flow[0] = raw_rx_address(test, r, qp, false, 0);
	KUNIT_EXPECT_EQ(test, netdev_uc_count(r->ndev), 1);
	sroce_raw_del_flow(r->raw, flow[0]);
	raw_rx_end(r);
}

static struct kunit_case raw_rx_cases[] = {
	KUNIT_CASE(from_within_sending),
	KUNIT_CASE(parts_without_end),
	KUNIT_CASE(parts_too_many),
	KUNIT_CASE(parts_too_short),
	KUNIT_CASE(parts_change_nothing),
	KUNIT_CASE(addresses_without_end),
	{}
};

static struct kunit_suite raw_rx_suite = {
	.name = "sroce_raw_rx",
	.exit = pair_exit,
	.test_cases = raw_rx_cases,
};

kunit_test_suite(raw_rx_suite);
