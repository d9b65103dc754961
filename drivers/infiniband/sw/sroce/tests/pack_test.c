// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packet buffers as they leave: each packet is compared byte by byte with what train.c and icrc.c
 * make of it alone, wherever a run of packets that are alike has ended: with a large page, what
 * the netdev takes, the room behind the headers, or the route.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/route.h>

#include "compat.h"
#include "counters.h"
#include "net/attach.h"
#include "net/net.h"
#include "net/paths.h"
#include "transport/seam.h"
#include "txq.h"
#include "wire/icrc.h"
#include "wire/train.h"

#define MOST_DATA SZ_64K
#define HEADERS (sizeof(struct iphdr) + sizeof(struct udphdr))
#define TEST_PSN 0xffffe0

/**
 * struct pack_case - trains of one QP, one after another
 * @name: case
 * @service: of the QP
 * @op: what they carry
 * @mtu: bytes of each packet
 * @npkts: packets of each train
 * @last: bytes of the last one
 * @trains: their number
 * @max_segs: packets of a buffer that the netdev takes, 0: any
 * @max_size: bytes of it, 0: any
 * @buffers: that are to leave, 0: it is not said
 * @lost_after: buffers after which there is no route, 0: there is always one
 * @crowded: much hangs in the stack's queues, and each train is sent by itself
 */
struct pack_case {
	const char *name;
	u8 service;
	u8 op;
	u32 mtu;
	u32 npkts;
	u32 last;
	u32 trains;
	u32 max_segs;
	u32 max_size;
	u32 buffers;
	u32 lost_after;
	bool crowded;
};

static const struct pack_case pack_cases[] = {
	{ "SEND", SROCE_RC, SROCE_OP_SEND, 1024, 60, 1024, 5 },
	{ "SEND, last one short", SROCE_RC, SROCE_OP_SEND, 1024, 60, 1, 5 },
	{ "SEND, MTU 4096", SROCE_RC, SROCE_OP_SEND, 4096, 15, 4096, 5 },
	{ "WRITE, last one short", SROCE_RC, SROCE_OP_WRITE, 1024, 61, 3, 5 },
	{ "READ response", SROCE_RC, SROCE_OP_READ_RESP, 1024, 61, 1024, 5 },
	{ "XRC SEND", SROCE_XRC, SROCE_OP_SEND, 1024, 60, 1024, 5 },
	{ "XRC WRITE, last one short", SROCE_XRC, SROCE_OP_WRITE, 1024, 60, 2, 5 },
	{ "64 packets for a buffer", SROCE_RC, SROCE_OP_SEND, 256, 130, 256, 1, .buffers = 3 },
	{ "5 packets for a buffer", SROCE_RC, SROCE_OP_SEND, 1024, 59, 1024, 1,
	  .max_segs = 5, .buffers = 12 },
	{ "one for a buffer", SROCE_RC, SROCE_OP_WRITE, 1024, 9, 1024, 1,
	  .max_segs = 1, .buffers = 9 },
	/* 8 of 1040 bytes beside the headers, whatever the architecture's MAX_HEADER */
	{ "9000 bytes for a buffer", SROCE_RC, SROCE_OP_SEND, 1024, 16, 1024, 1,
	  .max_size = 9000, .buffers = 2 },
	{ "behind the headers, and further", SROCE_RC, SROCE_OP_SEND, 128, 3, 128, 9,
	  .buffers = 1 },
	{ "route lost", SROCE_RC, SROCE_OP_SEND, 1024, 59, 1024, 1,
	  .max_segs = 5, .buffers = 4, .lost_after = 4 },
	{ "crowded, behind the headers", SROCE_RC, SROCE_OP_SEND, 1024, 6, 1000, 3,
	  .buffers = 3, .crowded = true },
	{ "crowded", SROCE_RC, SROCE_OP_SEND, 1024, 60, 1024, 5, .crowded = true },
};

static void pack_to_desc(const struct pack_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pack, pack_cases, pack_to_desc);

/* One at a time; @sent are the buffers that have left */
static struct {
	struct sroce_netport port;
	struct sroce_path path;
	struct sroce_txq_pool pool;
	struct sroce_txq *txq;
	struct net_device *dev;
	struct sk_buff_head sent;
	u32 lost_after;
	bool crowded;
	u8 *data;
	u8 want[SROCE_MAX_HDR_LEN + 4096 + 4];
} w;

/* --- what is around ----------------------------------------------------------- */

static void lose_route(void)
{
	w.path.net = NULL;
	sroce_path_drop_route(&w.path);
}

static int leave(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	/* It is kept, as by a queue */
	skb_dst_force(skb);
	skb_queue_tail(&w.sent, skb);
	if (w.lost_after && skb_queue_len(&w.sent) == w.lost_after)
		lose_route();
	/* There is much room really, and whoever asks for it finds that out */
	WRITE_ONCE(w.pool.crowded, w.crowded);
	return 0;
}

static void ignore_room(void *owner)
{
}

static void keep_path(struct sroce_path *path)
{
}

static void make_path(void)
{
	spin_lock_init(&w.path.lock);
	refcount_set(&w.path.refs, 1);
	w.path.release = keep_path;
	w.path.port = &w.port;
	w.path.net = &init_net;
	w.path.network_type = RDMA_NETWORK_IPV4;
	w.path.hop_limit = 64;
	w.path.sport = htons(0xc123);
	w.path.id = 0xfff0;
	ipv6_addr_set_v4mapped(htonl(0x0a4d0001), (struct in6_addr *)&w.path.sgid);
	ipv6_addr_set_v4mapped(htonl(0x0a4d0002), (struct in6_addr *)&w.path.dgid);
}

static int make_route(void)
{
	struct sroce_route *route = kmalloc_obj(*route, GFP_KERNEL);
	struct rtable *rt = rt_dst_alloc(w.dev, 0, RTN_UNICAST, true);

	if (!rt || !route) {
		kfree(route);
		return -ENOMEM;
	}
	rt->dst.output = leave;
	route->dst = &rt->dst;
	route->cookie = 0;
	RCU_INIT_POINTER(w.path.route, route);
	return 0;
}

static int pack_init(struct kunit *test)
{
	u32 i;

	memset(&w, 0, sizeof(w));
	skb_queue_head_init(&w.sent);
	sroce_txq_pool_init(&w.pool);
	w.data = kunit_kmalloc(test, MOST_DATA, GFP_KERNEL);
	if (!w.data)
		return -ENOMEM;
	for (i = 0; i < MOST_DATA; i++)
		w.data[i] = i ^ i >> 8;
	make_path();
	w.dev = alloc_etherdev(0);
	w.port.counters = alloc_percpu(struct sroce_counters);
	w.txq = sroce_txq_alloc(&w.pool, ignore_room, NULL);
	if (!w.dev || !w.port.counters || !w.txq)
		return -ENOMEM;
	sroce_txq_count_in(w.txq, w.port.counters);
	sroce_txq_set_limit(w.txq, 4 * SZ_1M);
	return make_route();
}

static void pack_exit(struct kunit *test)
{
	skb_queue_purge(&w.sent);
	sroce_path_drop_route(&w.path);
	sroce_txq_free(w.txq);
	sroce_txq_pool_end(&w.pool);
	/* Routes go after a grace period, and what they hold after another one */
	rcu_barrier();
	rcu_barrier();
	free_percpu(w.port.counters);
	if (w.dev)
		free_netdev(w.dev);
}

static u64 count_of(enum sroce_counter id)
{
	return sroce_counter_read(w.port.counters, id);
}

/* --- what is sent, and what has left -------------------------------------------- */

static struct sroce_train make_train(const struct pack_case *c, u32 n, struct bio_vec *bv)
{
	u32 len = (c->npkts - 1) * c->mtu + c->last;

	*bv = (struct bio_vec){
		.bv_page = virt_to_page(w.data),
		.bv_offset = offset_in_page(w.data),
		.bv_len = len,
	};
	return (struct sroce_train){
		.op = c->op,
		.service = c->service,
		.flags = SROCE_START | SROCE_END | SROCE_ACKREQ,
		.pkey = 0xffff,
		.mtu = c->mtu,
		.dqpn = 0x123456,
		.psn = sroce_psn_add(TEST_PSN, n * c->npkts),
		.npkts = c->npkts,
		.rkey = 0x12345678,
		.dma_len = len,
		.srqn = 0x456789,
		.va = 0x123456789abcdef0,
		.syndrome = SROCE_AETH_ACK_UNLIMITED,
		.bv = bv,
		.bi.bi_size = len,
	};
}

static void send_all(const struct pack_case *c)
{
	struct sroce_tx tx = {};
	struct sroce_train t;
	struct bio_vec bv;
	u32 n;

	local_bh_disable();
	for (n = 0; n < c->trains; n++) {
		t = make_train(c, n, &bv);
		sroce_net_xmit_ops.send(&tx, &w.path, &t, w.txq);
		if (c->crowded)
			sroce_net_xmit_ops.flush(&tx);
	}
	sroce_net_xmit_ops.flush(&tx);
	local_bh_enable();
}

/* Packet @k of all, as it is to be; without the ICRC. Return: its length with that */
static u32 make_want(const struct pack_case *c, u32 k)
{
	struct bio_vec bv;
	struct sroce_train t = make_train(c, k / c->npkts, &bv);
	u32 len, hdr_len;

	k %= c->npkts;
	len = sroce_train_payload(&t, k);
	hdr_len = sroce_train_encode(&t, k, w.want);
	memcpy(w.want + hdr_len, w.data + k * c->mtu, len);
	memset(w.want + hdr_len + len, 0, ALIGN(len, 4) - len);
	return hdr_len + ALIGN(len, 4) + SROCE_ICRC_LEN;
}

/* The ICRC of the packet when it has been cut off, the @nth of a buffer */
static __le32 want_icrc(const struct sk_buff *skb, u32 nth, u32 len)
{
	struct iphdr ip = *ip_hdr(skb);
	struct udphdr udp = *udp_hdr(skb);
	u32 crc;

	ip.tot_len = htons(HEADERS + len);
	ip.id = htons(ntohs(ip.id) + nth);
	udp.len = htons(sizeof(udp) + len);
	crc = sroce_icrc_ipv4(&ip, &udp);
	return sroce_icrc_final(sroce_icrc_bth(crc, w.want, len - SROCE_ICRC_LEN));
}

/* Where it is crowded what is short has no page, and a page counts as all of it */
static void expect_crowded(struct kunit *test, const struct pack_case *c,
			   const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 i, bytes = skb_end_offset(skb);

	for (i = 0; i < info->nr_frags; i++)
		bytes += page_size(skb_frag_page(&info->frags[i]));
	KUNIT_EXPECT_GE(test, skb->truesize, bytes);
	KUNIT_EXPECT_EQ(test, !info->nr_frags, c->npkts * c->mtu < 7 * 1024);
}

/* Return: packets in the buffer, of which the first is packet @k of all */
static u32 expect_buffer(struct kunit *test, const struct pack_case *c, struct sk_buff *skb,
			 u32 k)
{
	u32 stride = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len - HEADERS;
	u32 at, len, n = 0;
	__le32 icrc;

	if (c->crowded)
		expect_crowded(test, c, skb);
	KUNIT_ASSERT_EQ(test, skb_linearize(skb), 0);
	for (at = HEADERS; at < skb->len; at += len) {
		len = make_want(c, k + n);
		icrc = want_icrc(skb, n, len);
		memcpy(w.want + len - SROCE_ICRC_LEN, &icrc, sizeof(icrc));
		KUNIT_ASSERT_EQ(test, len, min(stride, skb->len - at));
		KUNIT_EXPECT_TRUE_MSG(test, !memcmp(skb->data + at, w.want, len),
				      "packet %u", k + n);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1);
	KUNIT_EXPECT_LE(test, n, c->max_segs ?: 64);
	KUNIT_EXPECT_LE(test, skb->len, c->max_size ?: U16_MAX);
	return n;
}

/* Have some buffers more than one fragment? */
static bool some_in_parts(void)
{
	const struct sk_buff *skb;

	skb_queue_walk(&w.sent, skb)
		if (skb_shinfo(skb)->nr_frags > 1)
			return true;
	return false;
}

static void pack_sent(struct kunit *test)
{
	const struct pack_case *c = test->param_value;
	struct sk_buff *skb;
	u32 k = 0, all = c->trains * c->npkts;

	if (c->max_segs)
		netif_set_tso_max_segs(w.dev, c->max_segs);
	if (c->max_size)
		netif_set_tso_max_size(w.dev, c->max_size);
	w.lost_after = c->lost_after;
	w.crowded = c->crowded;
	WRITE_ONCE(w.pool.crowded, w.crowded);
	send_all(c);
	if (c->buffers)
		KUNIT_EXPECT_EQ(test, skb_queue_len(&w.sent), c->buffers);
	else if (PAGE_SIZE < SZ_32K)
		KUNIT_EXPECT_TRUE(test, some_in_parts());
	KUNIT_EXPECT_EQ(test, count_of(SROCE_CNT_TX_TRAINS), skb_queue_len(&w.sent));
	skb_queue_walk(&w.sent, skb)
		k += expect_buffer(test, c, skb, k);
	KUNIT_EXPECT_EQ(test, k, c->lost_after ? c->lost_after * c->max_segs : all);
	KUNIT_EXPECT_EQ(test, count_of(SROCE_CNT_TX_PACKETS), k);
	KUNIT_EXPECT_EQ(test, count_of(SROCE_CNT_TX_DROPS), all - k);
}

/* --- memory that is used again ------------------------------------------------------ */

/* More than a CPU has chunks for, so that each of them is filled anew */
static const struct pack_case pack_round = {
	.service = SROCE_RC, .op = SROCE_OP_SEND, .mtu = 4096, .npkts = 15, .last = 4096,
	.trains = 20,
};

/* Return: buffers with memory from the reserve */
static u32 count_from_reserve(void)
{
	const struct sk_buff *skb;
	u32 n = 0;

	skb_queue_walk(&w.sent, skb)
		n += skb_pfmemalloc(skb);
	return n;
}

/* As if there had been nothing but the reserve when their memory was got */
static void take_from_reserve(void)
{
	const struct skb_shared_info *info;
	const struct sk_buff *skb;
	u32 i;

	skb_queue_walk(&w.sent, skb) {
		info = skb_shinfo(skb);
		for (i = 0; i < info->nr_frags; i++)
			set_page_pfmemalloc(compound_head(skb_frag_page(&info->frags[i])));
	}
}

/* Memory from the reserve is given back, and not used for what comes later */
static void pack_from_reserve(struct kunit *test)
{
	migrate_disable();
	send_all(&pack_round);
	take_from_reserve();
	skb_queue_purge(&w.sent);
	/* Begins with what is left of a chunk */
	send_all(&pack_round);
	KUNIT_EXPECT_LE(test, count_from_reserve(), 1);
	skb_queue_purge(&w.sent);
	send_all(&pack_round);
	migrate_enable();
	KUNIT_EXPECT_GT(test, skb_queue_len(&w.sent), 0);
	KUNIT_EXPECT_EQ(test, count_from_reserve(), 0);
}

static struct kunit_case pack_suite_cases[] = {
	KUNIT_CASE_PARAM(pack_sent, pack_gen_params),
	KUNIT_CASE(pack_from_reserve),
	{}
};

static struct kunit_suite pack_suite = {
	.name = "sroce_pack",
	.init = pack_init,
	.exit = pack_exit,
	.test_cases = pack_suite_cases,
};

kunit_test_suite(pack_suite);
