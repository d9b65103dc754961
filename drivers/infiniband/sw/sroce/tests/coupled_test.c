// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that GRO has coupled, whose identifications do not count up: each packet's
 * ICRC is that of the identification it was sent with, and the buffer has but the
 * first one's.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include "compat.h"
#include "counters.h"
#include "net/backlog.h"
#include "net/net.h"
#include "net/receive.h"
#include "tests/pieces.h"
#include "turn.h"
#include "wire/icrc.h"

#define PACKETS 48
#define PAYLOAD 256
#define STRIDE (SROCE_BTH_LEN + PAYLOAD + SROCE_ICRC_LEN)
#define HEADERS (sizeof(struct iphdr) + sizeof(struct udphdr))
/* Nobody's: that the packets are right is seen before it is looked for */
#define NO_QPN 2

/*
 * struct coupled - how the packets were sent
 * @name: case
 * @id: identification of the first one
 * @per: packets in each of the sender's buffers
 * @step: from the last packet of a buffer to the first one of the next
 * @within: from one packet of a buffer to the next
 * @good: packets that are received; PACKETS if it is not said
 */
static const struct coupled {
	const char *name;
	u16 id;
	u32 per;
	int step;
	int within;
	u32 good;
} coupled_cases[] = {
	{ "they count up", 100, PACKETS, 1, 1 },
	{ "64 for each buffer of 16", 100, 16, 49, 1 },
	{ "64 for each buffer of one", 100, 1, 64, 1 },
	{ "64 for each buffer of one, around the end", 0xff00, 1, 64, 1 },
	{ "one left out after each third", 100, 3, 2, 1 },
	{ "buffers that were opened at the same time", 100, 8, -7, 1 },
	{ "the same one for all", 100, PACKETS, 0, 0 },
	{ "the same one for each buffer of 16", 100, 16, 64, 0 },
	{ "backwards", 100, PACKETS, -1, -1 },
	{ "one that cannot be meant", 100, 16, 6000, 1, 16 },
};

static u16 coupled_id(const struct coupled *c, u32 k)
{
	return c->id + (int)(k / c->per) * c->step +
	       (int)(k - k / c->per) * c->within;
}

/* Each packet is a message of its own, so that no two of them are one train */
static bool coupled_apart;

/* FIRST, MIDDLE, LAST or ONLY */
static u8 coupled_opcode(u32 k)
{
	if (coupled_apart)
		return 4;
	return k == 0 ? 0 : k == PACKETS - 1 ? 2 : 1;
}

/* SENDs of a reliable connection, with @headers alone */
static void coupled_packet(u8 *to, const u8 *headers, u32 k)
{
	const u8 bth[SROCE_BTH_LEN] = {
		coupled_opcode(k), 0x40, 0xff, 0xff,
		0, 0, 0, NO_QPN, 0, 0, 0, k,
	};
	__le32 icrc;
	u32 crc;

	memcpy(to, bth, sizeof(bth));
	memset(to + sizeof(bth), k, PAYLOAD);
	crc = sroce_icrc_ipv4((const void *)headers,
			      (const void *)(headers + sizeof(struct iphdr)));
	crc = sroce_icrc_bth(crc, to, STRIDE - SROCE_ICRC_LEN);
	icrc = sroce_icrc_final(crc);
	memcpy(to + STRIDE - SROCE_ICRC_LEN, &icrc, sizeof(icrc));
}

static struct sk_buff *coupled_skb(struct kunit *test, struct net_device *dev,
				   const struct coupled *c, const struct pieces *pieces)
{
	u8 *headers = kunit_kzalloc(test, HEADERS + PACKETS * STRIDE, GFP_KERNEL);
	u8 *packets = headers + HEADERS;
	struct sk_buff *skb;
	u32 k;

	KUNIT_ASSERT_NOT_NULL(test, headers);
	for (k = 0; k < PACKETS; k++) {
		pieces_headers(headers, coupled_id(c, k), STRIDE);
		coupled_packet(packets + k * STRIDE, headers, k);
	}
	pieces_headers(headers, c->id, PACKETS * STRIDE);
	skb = pieces_skb(pieces, headers, HEADERS, HEADERS + PACKETS * STRIDE);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_size = STRIDE;
	skb_shinfo(skb)->gso_segs = PACKETS;
	return skb;
}

static void coupled_to_desc(const struct coupled *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(coupled, coupled_cases, coupled_to_desc);

/* Parts that a buffer was received in */
static u32 coupled_parts;

static void coupled_give(struct sroce_netport *port, struct sk_buff *skb)
{
	struct sroce_rx_place place = {};

	coupled_parts = 1;
	local_bh_disable();
	rcu_read_lock();
	sroce_turn_begin(true);
	while (!sroce_net_receive(&init_net, port, skb, &place))
		coupled_parts++;
	sroce_turn_end();
	rcu_read_unlock();
	local_bh_enable();
}

/* Receive a buffer at a device that exists for that only; @seen looks at its counters */
static void coupled_receive(struct kunit *test, const struct pieces *pieces,
			    struct sk_buff *(*make)(struct kunit *test,
						    struct net_device *dev,
						    const struct pieces *pieces),
			    void (*give)(struct sroce_netport *port,
					 struct sk_buff *skb),
			    void (*seen)(struct kunit *test,
					 struct sroce_netport *port))
{
	struct sroce_netport *port;
	struct net_device *dev;
	struct sk_buff *skb;

	port = kunit_kzalloc(test, sizeof(*port), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, port);
	dev = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	port->counters = alloc_percpu(struct sroce_counters);
	if (port->counters) {
		skb = make(test, dev, pieces);
		give(port, skb);
		seen(test, port);
	} else {
		KUNIT_FAIL(test, "no memory");
	}
	free_percpu(port->counters);
	free_netdev(dev);
}

static struct sk_buff *coupled_case_skb(struct kunit *test,
					struct net_device *dev,
					const struct pieces *pieces)
{
	return coupled_skb(test, dev, test->param_value, pieces);
}

static void coupled_case_seen(struct kunit *test, struct sroce_netport *port)
{
	const struct coupled *c = test->param_value;
	u64 good = c->good ?: PACKETS;

	KUNIT_EXPECT_EQ(test, good,
			sroce_counter_read(port->counters, SROCE_CNT_RX_PACKETS));
	KUNIT_EXPECT_EQ(test, PACKETS - good,
			sroce_counter_read(port->counters,
					   SROCE_CNT_RX_ICRC_ENCAPSULATED));
}

static void coupled_ids(struct kunit *test)
{
	/* In one piece, in fragments and in a list; they end within packets, or with them */
	static const struct pieces pieces[] = {
		{}, { 800 }, { 3 * STRIDE }, { 800, true }, { STRIDE, true },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		coupled_receive(test, &pieces[i], coupled_case_skb, coupled_give,
				coupled_case_seen);
		KUNIT_EXPECT_EQ(test, 1, coupled_parts);
	}
}

static void coupled_parts_seen(struct kunit *test, struct sroce_netport *port)
{
	const struct coupled *c = test->param_value;

	coupled_case_seen(test, port);
	KUNIT_EXPECT_EQ(test, c->good ?: PACKETS, coupled_parts);
}

/* Nobody has time for more than one packet at once: each part goes on where one has ended */
static void coupled_in_parts(struct kunit *test)
{
	struct sroce_turn_limits limits = sroce_turn_limits;

	sroce_turn_limits.bytes = 0;
	coupled_apart = true;
	coupled_receive(test, &(struct pieces){}, coupled_case_skb, coupled_give,
			coupled_parts_seen);
	coupled_apart = false;
	sroce_turn_limits = limits;
}

/* --- the rest of a buffer ----------------------------------------------------- */

/* Who takes the rest, and what he saw */
static struct {
	struct sroce_netport *port;
	struct sroce_rx_place place;
	u64 before;
	u32 n;
} coupled_rest;

static void coupled_sink(struct sk_buff *skb, struct sroce_rx_place place)
{
	struct sroce_netport *port = coupled_rest.port;

	coupled_rest.place = place;
	coupled_rest.before = sroce_counter_read(port->counters,
						 SROCE_CNT_RX_NO_QP);
	coupled_rest.n++;
	sroce_net_receive(&init_net, port, skb, &place);
}

/* The turn has time for one packet and no more */
static void coupled_input(struct sroce_netport *port, struct sk_buff *skb)
{
	coupled_rest.port = port;
	local_bh_disable();
	rcu_read_lock();
	sroce_turn_begin(true);
	sroce_turn_spend(2 * sroce_turn_limits.bytes - SZ_2K);
	sroce_net_input(&init_net, port, skb);
	sroce_turn_end();
	rcu_read_unlock();
	local_bh_enable();
	flush_workqueue(sroce_turn_wq);
}

static void coupled_rest_seen(struct kunit *test, struct sroce_netport *port)
{
	u32 n = coupled_rest.place.packets;

	KUNIT_EXPECT_EQ(test, 1, coupled_rest.n);
	KUNIT_EXPECT_GT(test, n, 0);
	KUNIT_EXPECT_LE(test, n, 2);
	KUNIT_EXPECT_EQ(test, n, coupled_rest.before);
	KUNIT_EXPECT_EQ(test, PACKETS,
			sroce_counter_read(port->counters, SROCE_CNT_RX_NO_QP));
	KUNIT_EXPECT_EQ(test, PACKETS,
			sroce_counter_read(port->counters, SROCE_CNT_RX_PACKETS));
	KUNIT_EXPECT_EQ(test, 0,
			sroce_counter_read(port->counters, SROCE_CNT_RX_DISCARDS));
}

/* What there is no time for is received by a worker, and nothing twice */
static void coupled_rest_waits(struct kunit *test)
{
	void (*sink)(struct sk_buff *skb, struct sroce_rx_place place) =
		sroce_backlog_sink;
	struct sroce_turn_limits limits = sroce_turn_limits;

	memset(&coupled_rest, 0, sizeof(coupled_rest));
	test->param_value = &coupled_cases[0];
	sroce_backlog_sink = coupled_sink;
	sroce_turn_limits.bytes = SZ_1M;
	sroce_turn_limits.ns = NSEC_PER_SEC;
	coupled_apart = true;
	coupled_receive(test, &(struct pieces){}, coupled_case_skb, coupled_input,
			coupled_rest_seen);
	coupled_apart = false;
	sroce_turn_limits = limits;
	sroce_backlog_sink = sink;
}

/* As nobody couples them: a frame's sender may say that its packets are this short */
static struct sk_buff *short_skb(struct kunit *test, struct net_device *dev,
				 const struct pieces *pieces)
{
	struct sk_buff *skb = coupled_skb(test, dev, &coupled_cases[0], pieces);

	skb_shinfo(skb)->gso_size = PACKETS * STRIDE / 129;
	return skb;
}

static void short_seen(struct kunit *test, struct sroce_netport *port)
{
	KUNIT_EXPECT_EQ(test, 1,
			sroce_counter_read(port->counters,
					   SROCE_CNT_RX_MALFORMED));
	KUNIT_EXPECT_EQ(test, 0,
			sroce_counter_read(port->counters,
					   SROCE_CNT_RX_ICRC_ENCAPSULATED));
}

static void coupled_too_many(struct kunit *test)
{
	coupled_receive(test, &(struct pieces){}, short_skb, coupled_give,
			short_seen);
}

static struct kunit_case coupled_suite_cases[] = {
	KUNIT_CASE_PARAM(coupled_ids, coupled_gen_params),
	KUNIT_CASE_PARAM(coupled_in_parts, coupled_gen_params),
	KUNIT_CASE(coupled_rest_waits),
	KUNIT_CASE(coupled_too_many),
	{}
};

static struct kunit_suite coupled_suite = {
	.name = "sroce_coupled",
	.test_cases = coupled_suite_cases,
};

kunit_test_suite(coupled_suite);
