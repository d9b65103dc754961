// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The estimate of the round trip: the arithmetic, with a clock that the test sets, and
 * which packets are measured.
 */
#include "tests/transport_pair.h"
#include "transport/rtt.h"

#define SRC SIDE_FROM
#define DST SIDE_TO
#define MS NSEC_PER_MSEC

static void measure(struct kunit *test, struct sroce_rtt *rtt, u64 ns)
{
	u64 now = 5 * NSEC_PER_SEC;

	sroce_rtt_begin(rtt, 7, now);
	KUNIT_EXPECT_EQ(test, ns, sroce_rtt_end(rtt, now + ns));
	sroce_rtt_find_min(rtt, ns);
}

static void expect_near(struct kunit *test, u64 got, u64 want)
{
	KUNIT_EXPECT_LE(test, got, want + 8);
	KUNIT_EXPECT_GE(test, got + 8, want);
}

/* The numbers of RFC 6298 2.2 and 2.3 */
static void follows_the_rfc(struct kunit *test)
{
	struct sroce_rtt rtt;

	sroce_rtt_reset(&rtt);
	KUNIT_EXPECT_EQ(test, 0, rtt.srtt);
	measure(test, &rtt, 8 * MS);
	expect_near(test, rtt.srtt, 8 * MS);
	expect_near(test, rtt.rttvar, 4 * MS);
	measure(test, &rtt, 16 * MS);
	/* 3/4 * 4 + 1/4 * |8 - 16|; 7/8 * 8 + 1/8 * 16 */
	expect_near(test, rtt.rttvar, 5 * MS);
	expect_near(test, rtt.srtt, 9 * MS);
	measure(test, &rtt, MS);
	expect_near(test, rtt.rttvar, 15 * MS / 4 + 2 * MS);
	expect_near(test, rtt.srtt, 8 * MS);
	KUNIT_EXPECT_EQ(test, MS, rtt.min);
}

/* From either side, and the deviation goes */
static void settles(struct kunit *test)
{
	static const u64 first[] = { 1, 100 * MS };
	struct sroce_rtt rtt;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(first); i++) {
		sroce_rtt_reset(&rtt);
		measure(test, &rtt, first[i]);
		for (k = 0; k < 200; k++)
			measure(test, &rtt, MS);
		KUNIT_EXPECT_GE(test, rtt.srtt, MS - 100);
		KUNIT_EXPECT_LE(test, rtt.srtt, MS + 100);
		KUNIT_EXPECT_LE(test, rtt.rttvar, 100);
	}
	/* A clock that does not tell two moments apart */
	for (k = 0; k < 200; k++) {
		sroce_rtt_begin(&rtt, 7, 5);
		KUNIT_EXPECT_EQ(test, 1, sroce_rtt_end(&rtt, 5));
	}
	KUNIT_EXPECT_NE(test, 0, rtt.srtt);
}

/* A route becomes longer: after a while the minimum is that of the new one */
static void minimum_is_forgotten(struct kunit *test)
{
	struct sroce_rtt rtt;

	sroce_rtt_reset(&rtt);
	measure(test, &rtt, MS);
	measure(test, &rtt, 3 * MS);
	KUNIT_EXPECT_EQ(test, MS, rtt.min);
	rtt.min_since -= 9 * HZ;
	measure(test, &rtt, 4 * MS);
	KUNIT_EXPECT_EQ(test, MS, rtt.min);
	measure(test, &rtt, 3 * MS);
	rtt.min_since -= 9 * HZ;
	measure(test, &rtt, 5 * MS);
	KUNIT_EXPECT_EQ(test, 3 * MS, rtt.min);
	measure(test, &rtt, 2 * MS);
	KUNIT_EXPECT_EQ(test, 2 * MS, rtt.min);
}

static void ends_with_its_psn(struct kunit *test)
{
	struct sroce_rtt rtt;

	sroce_rtt_reset(&rtt);
	KUNIT_EXPECT_FALSE(test, sroce_rtt_ends(&rtt, 3));
	sroce_rtt_begin(&rtt, 3, 1);
	KUNIT_EXPECT_FALSE(test, sroce_rtt_ends(&rtt, 0xfffffd));
	KUNIT_EXPECT_FALSE(test, sroce_rtt_ends(&rtt, 2));
	KUNIT_EXPECT_TRUE(test, sroce_rtt_ends(&rtt, 3));
	KUNIT_EXPECT_TRUE(test, sroce_rtt_ends(&rtt, 4));
	sroce_rtt_cancel(&rtt);
	KUNIT_EXPECT_FALSE(test, sroce_rtt_ends(&rtt, 4));
}

/* --- packets ------------------------------------------------------------------- */

static struct sroce_rtt *rtt_of(struct side *s)
{
	return &s->qp->req.rtt;
}

/* One small message at a time says how long the way is */
static void few_packets_are_enough(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	u64 begin = ktime_get_ns();
	struct work w;

	side_write(a, 1, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, 0, rtt_of(a)->srtt);
	KUNIT_EXPECT_LE(test, rtt_of(a)->srtt, ktime_get_ns() - begin);
	/* It does not make the window larger, which nobody needs */
	KUNIT_EXPECT_FALSE(test, a->qp->req.growth.used);

	/* So does a READ, which nothing but its response acknowledges */
	sroce_rtt_reset(rtt_of(a));
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 2, DST, SRC, 3000));
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, 0, rtt_of(a)->srtt);
}

/* An ACK may be for a packet or for its repetition */
static void repeated_packets_do_not_count(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		{ .from = a, .op = SROCE_OP_WRITE, .count = 1,
		  .verdict = FAKE_DROP }, {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
	KUNIT_EXPECT_EQ(test, 0, rtt_of(a)->srtt);
	side_write(a, 2, 10);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, 0, rtt_of(a)->srtt);
}

/* Nor does the time that the peer asks for because it has no receive */
static void not_ready_does_not_count(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_post(a, work_send(a, &w, 1, SRC, 10));
	pair_deliver(p);
	KUNIT_ASSERT_TRUE(test, a->qp->req.rnr_wait);
	side_recv(b, 2, DST, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, rtt_of(a)->srtt);
}

static void another_path(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];

	side_write(a, 1, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, 0, rtt_of(a)->srtt);
	side_to_reset(a);
	side_to_init(a);
	side_to_rtr(a);
	KUNIT_EXPECT_EQ(test, 0, rtt_of(a)->srtt);
}

static struct kunit_case rtt_cases[] = {
	KUNIT_CASE(follows_the_rfc),
	KUNIT_CASE(settles),
	KUNIT_CASE(minimum_is_forgotten),
	KUNIT_CASE(ends_with_its_psn),
	KUNIT_CASE(few_packets_are_enough),
	KUNIT_CASE(repeated_packets_do_not_count),
	KUNIT_CASE(not_ready_does_not_count),
	KUNIT_CASE(another_path),
	{}
};

static struct kunit_suite rtt_suite = {
	.name = "sroce_rtt",
	.test_cases = rtt_cases,
	.exit = pair_exit,
};

kunit_test_suite(rtt_suite);
