// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that are alike are made, and taken, in a shorter way than others. Here each way is
 * compared with the other one: the same bytes, and the same verdict on each packet, also
 * where a packet is almost like the one before it.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include "compat.h"
#include "counters.h"
#include "net/net.h"
#include "net/receive.h"
#include "tests/pieces.h"
#include "turn.h"
#include "wire/alike.h"
#include "wire/icrc.h"

#define PACKETS 48
#define MTU 256
/* The PSN after the second packet's is 0 */
#define FIRST_PSN 0xfffffe
/* Nobody's: that the packets are right is seen before it is looked for */
#define NO_QPN 2
#define HEADERS (sizeof(struct iphdr) + sizeof(struct udphdr))
#define MOST (SROCE_MAX_HDR_LEN + MTU + SROCE_ICRC_LEN)

static const struct alike_kind {
	const char *name;
	u8 service;
	u8 op;
	u16 tail;
} alike_kinds[] = {
	{ "SEND", SROCE_RC, SROCE_OP_SEND },
	{ "SEND with immediate", SROCE_RC, SROCE_OP_SEND, SROCE_IMM },
	{ "SEND with invalidate", SROCE_RC, SROCE_OP_SEND, SROCE_INV },
	{ "WRITE", SROCE_RC, SROCE_OP_WRITE },
	{ "WRITE with immediate", SROCE_RC, SROCE_OP_WRITE, SROCE_IMM },
	{ "READ response", SROCE_RC, SROCE_OP_READ_RESP },
	{ "UC SEND", SROCE_UC, SROCE_OP_SEND },
	{ "UC WRITE", SROCE_UC, SROCE_OP_WRITE },
	{ "XRC SEND", SROCE_XRC, SROCE_OP_SEND },
	{ "XRC WRITE", SROCE_XRC, SROCE_OP_WRITE },
};

static void kind_to_desc(const struct alike_kind *kind, char *desc)
{
	strscpy(desc, kind->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(alike_kind, alike_kinds, kind_to_desc);

/* Part of a message, or all of it; the last packet has @last bytes */
static struct sroce_train make_train(const struct alike_kind *kind, u16 flags,
				     u32 npkts, u32 last)
{
	if (flags & SROCE_END)
		flags |= kind->tail;
	return (struct sroce_train){
		.op = kind->op,
		.service = kind->service,
		.flags = flags,
		.pkey = 0x8123,
		.mtu = MTU,
		.dqpn = NO_QPN,
		.psn = FIRST_PSN,
		.npkts = npkts,
		.rkey = 0x12345678,
		.dma_len = npkts * MTU,
		.srqn = 0x456789,
		.va = 0x123456789abcdef0,
		.imm = cpu_to_be32(0x89abcdef),
		.msn = 0x345678,
		.syndrome = SROCE_AETH_ACK_UNLIMITED,
		.bi.bi_size = (npkts - 1) * MTU + last,
	};
}

/* --- made ------------------------------------------------------------------ */

/* Is one like the other, but for the PSN, as far as a receiver can see? */
static bool same_but_psn(const struct sroce_train *t, u32 a, u32 b)
{
	u8 x[SROCE_MAX_HDR_LEN] = {}, y[SROCE_MAX_HDR_LEN] = {};
	u32 len = sroce_train_encode(t, a, x);

	if (sroce_train_encode(t, b, y) != len ||
	    sroce_train_payload(t, a) != sroce_train_payload(t, b))
		return false;
	memset(x + 9, 0, 3);
	memset(y + 9, 0, 3);
	return !memcmp(x, y, len);
}

static void expect_alike_from(struct kunit *test, const struct sroce_train *t, u32 k)
{
	u8 made[2][SROCE_MAX_HDR_LEN], want[SROCE_MAX_HDR_LEN];
	u32 n = sroce_train_alike(t, k);
	u32 len = sroce_train_encode(t, k, made[k % 2]);
	u32 i;

	KUNIT_ASSERT_GE(test, n, 1);
	KUNIT_ASSERT_LE(test, k + n, t->npkts);
	for (i = k + 1; i < k + n; i++) {
		sroce_alike_encode(t, i, made[(i - 1) % 2], len, made[i % 2]);
		KUNIT_EXPECT_EQ(test, sroce_train_encode(t, i, want), len);
		KUNIT_EXPECT_MEMEQ(test, made[i % 2], want, len);
		KUNIT_EXPECT_EQ(test, sroce_train_payload(t, i), MTU);
	}
	if (n > 1)
		KUNIT_EXPECT_EQ(test, sroce_train_payload(t, k), MTU);
	/* ... and no more are */
	if (k + n < t->npkts)
		KUNIT_EXPECT_FALSE(test, same_but_psn(t, k + n - 1, k + n));
}

static void alike_made(struct kunit *test)
{
	const u16 bits[] = { 0, SROCE_BECN, SROCE_ACKREQ, SROCE_SOLICITED };
	const u32 lasts[] = { MTU, MTU - 1, 1 };
	u32 flags, b, l, npkts, k;
	struct sroce_train t;

	for (flags = 0; flags <= (SROCE_START | SROCE_END); flags++)
		for (b = 0; b < ARRAY_SIZE(bits); b++)
			for (l = 0; l < ARRAY_SIZE(lasts); l++)
				for (npkts = 1; npkts < 7; npkts++) {
					t = make_train(test->param_value,
						       flags | bits[b], npkts,
						       lasts[l]);
					for (k = 0; k < npkts; k++)
						expect_alike_from(test, &t, k);
				}
}

/* --- taken apart ------------------------------------------------------------ */

static u32 make_packet(const struct sroce_train *t, u32 k, u8 *to)
{
	u32 hdr_len = sroce_train_encode(t, k, to);

	return hdr_len + ALIGN(sroce_train_payload(t, k), 4) + SROCE_ICRC_LEN;
}

/* The longer way: let @train go on with the packet. Return: length of its headers, or 0 */
static u32 go_on(struct sroce_train *train, struct sroce_train *next,
		 const u8 *packet, u32 len)
{
	int hdr_len;

	*next = (struct sroce_train){};
	hdr_len = sroce_packet_decode(next, packet, SROCE_MAX_HDR_LEN, len);
	if (hdr_len < 0 || train->flags & SROCE_END ||
	    !sroce_train_goes_on(train, next))
		return 0;
	sroce_train_couple(train, next);
	train->bi.bi_size += next->bi.bi_size;
	return hdr_len;
}

/* A packet behind two others: if it is known by its bytes, the longer way takes it as well */
static bool expect_same_verdict(struct kunit *test, const struct sroce_alike *alike,
				const struct sroce_train *two, const u8 *packet,
				u32 len)
{
	struct sroce_train train = *two, next;

	if (len != alike->len ||
	    !sroce_alike_is_next(alike, packet, sroce_psn_add(two->psn, 2)))
		return false;
	KUNIT_EXPECT_GT(test, go_on(&train, &next, packet, len), 0);
	KUNIT_EXPECT_EQ(test, train.npkts, 3);
	KUNIT_EXPECT_EQ(test, train.bi.bi_size, two->bi.bi_size + two->mtu);
	train.npkts = two->npkts;
	train.bi = two->bi;
	KUNIT_EXPECT_MEMEQ(test, (u8 *)&train, (u8 *)two, sizeof(train));
	return true;
}

/* What the first two packets of a train are; and how the second one looks */
static u32 take_two(struct kunit *test, const struct sroce_train *t,
		    struct sroce_train *two, struct sroce_alike *alike)
{
	u8 packet[MOST] = {};
	u32 len = make_packet(t, 0, packet), hdr_len;
	struct sroce_train next;

	*two = (struct sroce_train){};
	KUNIT_ASSERT_GT(test, sroce_packet_decode(two, packet, sizeof(packet), len), 0);
	len = make_packet(t, 1, packet);
	hdr_len = go_on(two, &next, packet, len);
	KUNIT_ASSERT_GT(test, hdr_len, 0);
	sroce_alike_remember(alike, &next, packet, hdr_len, len);
	return hdr_len;
}

/* With any bit of the header changed a packet is not alike, whatever else it is */
static void alike_taken(struct kunit *test)
{
	struct sroce_train t = make_train(test->param_value, SROCE_START, 4, MTU), two;
	struct sroce_alike alike;
	u8 packet[MOST] = {};
	u32 hdr_len, len, bit;

	/* Not a multiple of four: each packet is padded */
	t.mtu = MTU - 3;
	t.bi.bi_size = 4 * t.mtu;
	hdr_len = take_two(test, &t, &two, &alike);
	len = make_packet(&t, 2, packet);
	KUNIT_EXPECT_EQ(test, expect_same_verdict(test, &alike, &two, packet, len),
			hdr_len == SROCE_BTH_LEN);
	KUNIT_EXPECT_FALSE(test, expect_same_verdict(test, &alike, &two, packet, len - 4));
	for (bit = 0; bit < 8 * SROCE_BTH_LEN; bit++) {
		packet[bit / 8] ^= BIT(bit % 8);
		KUNIT_EXPECT_FALSE_MSG(test,
				       expect_same_verdict(test, &alike, &two, packet, len),
				       "bit %u", bit);
		packet[bit / 8] ^= BIT(bit % 8);
	}
	/* Its twin, and the one after it */
	len = make_packet(&t, 1, packet);
	KUNIT_EXPECT_FALSE(test, expect_same_verdict(test, &alike, &two, packet, len));
	len = make_packet(&t, 3, packet);
	KUNIT_EXPECT_FALSE(test, expect_same_verdict(test, &alike, &two, packet, len));
}

/* The end of a message is like nothing behind it */
static void alike_not_behind_end(struct kunit *test)
{
	struct sroce_train t = make_train(test->param_value, SROCE_START | SROCE_END, 2, MTU);
	struct sroce_train two, next;
	struct sroce_alike alike;
	u8 packet[MOST] = {};
	u32 len = make_packet(&t, 0, packet), hdr_len;

	sroce_packet_decode(&two, packet, sizeof(packet), len);
	len = make_packet(&t, 1, packet);
	hdr_len = sroce_packet_decode(&next, packet, sizeof(packet), len);
	sroce_alike_remember(&alike, &next, packet, hdr_len, len);
	KUNIT_EXPECT_EQ(test, alike.len, 0);
}

/* --- received -------------------------------------------------------------- */

/**
 * struct buffer - packets of SENDs in one buffer
 * @pieces: layout
 * @n: number of packets
 * @message: packets of each SEND; 0: all are of one
 * @changed: packet with another bit
 * @bit: of its header; 96: of its ICRC; 97: none
 * @packets: that the receiver is to find good
 * @trains: and what it is to make of them
 * @alike: packets that it is to know by the one before
 * @malformed: packets that are to be no RoCE
 * @broken: packets whose ICRC is to be wrong
 */
struct buffer {
	struct pieces pieces;
	u32 n;
	u32 message;
	u32 changed;
	u32 bit;
	u64 packets;
	u64 trains;
	u64 alike;
	u64 malformed;
	u64 broken;
};

#define BIT_ICRC (8 * SROCE_BTH_LEN)
#define BIT_NONE (BIT_ICRC + 1)
#define STRIDE (SROCE_BTH_LEN + MTU + SROCE_ICRC_LEN)
/* What a buffer may have at most */
#define MOST_PACKETS 128
/* With more parts a train takes no more packets */
#define TRAIN_PARTS 62

/* Packet @k of the buffer is packet @i of @t */
static void buffer_packet(const struct buffer *b, const struct sroce_train *t,
			  u32 k, u32 i, u8 *to)
{
	u8 headers[HEADERS];
	__le32 icrc;
	u32 crc;

	make_packet(t, i, to);
	if (k == b->changed && b->bit < BIT_ICRC)
		to[b->bit / 8] ^= BIT(b->bit % 8);
	memset(to + SROCE_BTH_LEN, k, MTU);
	pieces_headers(headers, k, STRIDE);
	crc = sroce_icrc_ipv4((const void *)headers,
			      (const void *)(headers + sizeof(struct iphdr)));
	crc = sroce_icrc_bth(crc, to, STRIDE - SROCE_ICRC_LEN);
	/* A bit that no other identification explains */
	icrc = sroce_icrc_final(crc ^ (k == b->changed && b->bit == BIT_ICRC));
	memcpy(to + STRIDE - SROCE_ICRC_LEN, &icrc, sizeof(icrc));
}

/* Pieces that @len bytes at @at are in */
static u32 buffer_parts(const struct buffer *b, u32 at, u32 len)
{
	u32 piece = b->pieces.bytes;

	return piece ? (at + len - 1) / piece - at / piece + 1 : 1;
}

/* Is a packet in one piece, and the same in front of the PSN, and asks for no ACK? */
static bool buffer_alike(const struct buffer *b, u32 k, const u8 *before, const u8 *packet)
{
	return buffer_parts(b, k * STRIDE, STRIDE) == 1 && !memcmp(before, packet, 8) &&
	       !packet[8];
}

/**
 * struct expected - the train as far as it has come
 * @begun: there is one
 * @train: the longer way
 * @parts: pieces that its payload is in
 * @before: the packet before, if one can be alike
 */
struct expected {
	bool begun;
	struct sroce_train train;
	u32 parts;
	const u8 *before;
};

static bool expect_coupled(struct buffer *b, struct expected *e, u32 k, const u8 *packet)
{
	struct sroce_train next;
	u32 hdr_len;

	if (!e->begun || e->parts > TRAIN_PARTS)
		return false;
	hdr_len = go_on(&e->train, &next, packet, STRIDE);
	if (!hdr_len)
		return false;
	b->alike += e->before && buffer_alike(b, k, e->before, packet);
	e->parts += buffer_parts(b, k * STRIDE + SROCE_BTH_LEN, MTU);
	e->before = hdr_len == SROCE_BTH_LEN && !(next.flags & SROCE_END) ? packet : NULL;
	return true;
}

static void expect_packet(struct buffer *b, struct expected *e, u32 k, const u8 *packet)
{
	if (expect_coupled(b, e, k, packet)) {
		b->packets++;
		return;
	}
	*e = (struct expected){};
	e->begun = sroce_packet_decode(&e->train, packet, SROCE_MAX_HDR_LEN, STRIDE) > 0;
	e->parts = buffer_parts(b, k * STRIDE + SROCE_BTH_LEN, MTU);
	b->packets += e->begun;
	b->trains += e->begun;
	b->malformed += !e->begun;
}

/* What the longer way makes of the packets */
static void buffer_expect(struct buffer *b, const u8 *packets)
{
	struct expected e = {};
	u32 k;

	for (k = 0; k < b->n; k++, packets += STRIDE) {
		if (k != b->changed || b->bit != BIT_ICRC) {
			expect_packet(b, &e, k, packets);
			continue;
		}
		e.begun = false;
		b->broken++;
	}
}

static struct sk_buff *buffer_skb(struct kunit *test, const struct buffer *b, u8 *bytes)
{
	u32 len = b->n * STRIDE;
	struct sk_buff *skb;

	pieces_headers(bytes, 0, len);
	skb = pieces_skb(&b->pieces, bytes, HEADERS, HEADERS + len);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IP);
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_size = STRIDE;
	skb_shinfo(skb)->gso_segs = b->n;
	return skb;
}

/* @bytes: of a buffer, and what decoding may read behind its last packet */
struct receiver {
	struct sroce_netport *port;
	struct net_device *dev;
	u8 bytes[HEADERS + MOST_PACKETS * STRIDE + SROCE_MAX_HDR_LEN];
};

static unsigned int alike_count;

/* Of the last buffer: what its turn has spent, and parts that it was received in */
static struct {
	unsigned long spent;
	u32 parts;
} taken;

static void buffer_give(const struct receiver *r, struct sk_buff *skb)
{
	struct sroce_rx_place place = {};

	taken.parts = 1;
	local_bh_disable();
	rcu_read_lock();
	sroce_turn_begin(true);
	while (!sroce_net_receive(&init_net, r->port, skb, &place))
		taken.parts++;
	taken.spent = sroce_turn_spent();
	sroce_turn_end();
	rcu_read_unlock();
	local_bh_enable();
}

static u64 count_of(const struct receiver *r, enum sroce_counter id)
{
	return sroce_counter_read(r->port->counters, id);
}

static void buffer_make(struct receiver *r, struct buffer *b)
{
	u32 k, i, message = b->message ?: b->n;
	u8 *packets = r->bytes + HEADERS;
	struct sroce_train t;

	t = make_train(&alike_kinds[0], SROCE_START | SROCE_END, message, MTU);
	for (k = 0; k < b->n; k++) {
		i = k % message;
		if (k && !i)
			t.psn = sroce_psn_add(t.psn, message);
		buffer_packet(b, &t, k, i, packets + k * STRIDE);
	}
	buffer_expect(b, packets);
}

static void buffer_receive(struct kunit *test, struct receiver *r, struct buffer *b)
{
	u64 packets = count_of(r, SROCE_CNT_RX_PACKETS);
	u64 bytes = count_of(r, SROCE_CNT_RX_BYTES);
	u64 trains = count_of(r, SROCE_CNT_RX_NO_QP);
	u64 malformed = count_of(r, SROCE_CNT_RX_MALFORMED);
	u64 broken = count_of(r, SROCE_CNT_RX_ICRC_ENCAPSULATED);
	struct sk_buff *skb;

	buffer_make(r, b);
	skb = buffer_skb(test, b, r->bytes);
	skb->dev = r->dev;
	alike_count = 0;
	buffer_give(r, skb);
	KUNIT_EXPECT_EQ(test, count_of(r, SROCE_CNT_RX_PACKETS) - packets, b->packets);
	KUNIT_EXPECT_EQ_MSG(test, count_of(r, SROCE_CNT_RX_NO_QP) - trains, b->trains,
			    "packet %u bit %u piece %u", b->changed, b->bit, b->pieces.bytes);
	KUNIT_EXPECT_EQ(test, count_of(r, SROCE_CNT_RX_MALFORMED) - malformed,
			b->malformed);
	KUNIT_EXPECT_EQ(test, count_of(r, SROCE_CNT_RX_ICRC_ENCAPSULATED) - broken,
			b->broken);
	KUNIT_EXPECT_EQ(test, count_of(r, SROCE_CNT_RX_BYTES) - bytes, b->packets * STRIDE);
	/* Whatever a packet is, and however it was known, it costs the turn as much */
	KUNIT_EXPECT_EQ(test, taken.spent, taken.parts * SROCE_TURN_TRAIN +
					   b->n * (STRIDE + SROCE_TURN_PACKET));
}

static void buffer_receive_at_once(struct kunit *test, struct receiver *r, struct buffer *b)
{
	buffer_receive(test, r, b);
	KUNIT_EXPECT_EQ(test, taken.parts, 1);
	KUNIT_EXPECT_EQ_MSG(test, alike_count, b->alike, "packet %u bit %u piece %u",
			    b->changed, b->bit, b->pieces.bytes);
}

/* In one piece; in pieces that end within packets, or where packets end */
static const struct pieces alike_pieces[] = {
	{}, { 800 }, { 13 * STRIDE }, { 3 * STRIDE },
	{ 100, true }, { 800, true }, { STRIDE, true }, { 3 * STRIDE, true },
};

static void buffers_receive(struct kunit *test, struct receiver *r)
{
	const u32 changed[] = { 1, 2, 3, 20, PACKETS - 1 };
	u32 p, c, bit;

	for (p = 0; p < ARRAY_SIZE(alike_pieces); p++)
		for (c = 0; c < ARRAY_SIZE(changed); c++)
			for (bit = 0; bit <= BIT_NONE; bit++) {
				struct buffer b = {
					.pieces = alike_pieces[p],
					.n = PACKETS,
					.changed = changed[c],
					.bit = bit,
				};

				buffer_receive_at_once(test, r, &b);
			}
}

static void receive_with(struct kunit *test,
			 void (*receive)(struct kunit *test, struct receiver *r))
{
	struct receiver *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->port = kunit_kzalloc(test, sizeof(*r->port), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->port);
	r->dev = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(test, r->dev);
	r->port->counters = alloc_percpu(struct sroce_counters);
	if (r->port->counters)
		receive(test, r);
	else
		KUNIT_FAIL(test, "no memory");
	free_percpu(r->port->counters);
	free_netdev(r->dev);
}

static void alike_received(struct kunit *test)
{
	receive_with(test, buffers_receive);
}

/* As many as there may be: the first 63 are a train, and the next, and two are left */
static void longest_receive(struct kunit *test, struct receiver *r)
{
	const struct pieces layouts[] = { {}, { STRIDE, true } };
	u32 p;

	for (p = 0; p < ARRAY_SIZE(layouts); p++) {
		struct buffer b = {
			.pieces = layouts[p],
			.n = MOST_PACKETS,
			.bit = BIT_NONE,
		};

		buffer_receive_at_once(test, r, &b);
		KUNIT_EXPECT_EQ(test, b.packets, MOST_PACKETS);
		KUNIT_EXPECT_EQ(test, b.trains, 3);
		/* Not the first two of a train, nor the end of the message */
		KUNIT_EXPECT_EQ(test, b.alike, 2 * (TRAIN_PARTS - 1));
	}
}

static void alike_longest(struct kunit *test)
{
	receive_with(test, longest_receive);
}

/*
 * Nobody has time for more than one message at once. The one that is left for the next part
 * is looked at there again, with nothing remembered of the packets before it.
 */
static void parts_receive(struct kunit *test, struct receiver *r)
{
	struct sroce_turn_limits limits = sroce_turn_limits;
	u32 p;

	sroce_turn_limits.bytes = 0;
	for (p = 0; p < ARRAY_SIZE(alike_pieces); p++) {
		struct buffer b = {
			.pieces = alike_pieces[p],
			.n = PACKETS,
			.message = 8,
			.bit = BIT_NONE,
		};

		buffer_receive(test, r, &b);
		KUNIT_EXPECT_EQ(test, b.packets, PACKETS);
		KUNIT_EXPECT_EQ(test, taken.parts, PACKETS / b.message);
		if (!b.pieces.bytes)
			KUNIT_EXPECT_EQ(test, alike_count,
					(2 * taken.parts - 1) * (b.message - 3));
	}
	sroce_turn_limits = limits;
}

static void alike_in_parts(struct kunit *test)
{
	receive_with(test, parts_receive);
}

static int alike_init(struct kunit *test)
{
	sroce_rx_alike = &alike_count;
	return 0;
}

static void alike_exit(struct kunit *test)
{
	sroce_rx_alike = NULL;
}

static struct kunit_case alike_cases[] = {
	KUNIT_CASE_PARAM(alike_made, alike_kind_gen_params),
	KUNIT_CASE_PARAM(alike_taken, alike_kind_gen_params),
	KUNIT_CASE_PARAM(alike_not_behind_end, alike_kind_gen_params),
	KUNIT_CASE(alike_received),
	KUNIT_CASE(alike_longest),
	KUNIT_CASE(alike_in_parts),
	{}
};

static struct kunit_suite alike_suite = {
	.name = "sroce_alike",
	.init = alike_init,
	.exit = alike_exit,
	.test_cases = alike_cases,
};

kunit_test_suite(alike_suite);
