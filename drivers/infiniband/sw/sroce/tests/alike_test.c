// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that are alike are made, and taken, in a shorter way than others. Here each way is
 * compared with the other one: the same bytes, and the same verdict on each packet, also
 * where a packet is almost like the one before it.
 */
#include <kunit/test.h>

#include "compat.h"
#include "wire/alike.h"

#define MTU 256
/* The PSN after the second packet's is 0 */
#define FIRST_PSN 0xfffffe
/* Nobody's */
#define NO_QPN 2
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

static struct kunit_case alike_cases[] = {
	KUNIT_CASE_PARAM(alike_made, alike_kind_gen_params),
	KUNIT_CASE_PARAM(alike_taken, alike_kind_gen_params),
	KUNIT_CASE_PARAM(alike_not_behind_end, alike_kind_gen_params),
	{}
};

static struct kunit_suite alike_suite = {
	.name = "sroce_alike",
	.test_cases = alike_cases,
};

kunit_test_suite(alike_suite);
