// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rate of a queue pair: the arithmetic, with a clock that the test sets, and
 * messages that keep to it.
 */
#include "tests/transport_pair.h"
#include "transport/pace.h"

#define MTU 1024
#define SRC 0x1003
#define DST 0x80005

/* What a packet has beside its payload: IPv4, UDP, BTH, ICRC */
#define HDRS 44

/* Trains as long as may be */
static u32 send_train(struct sroce_pacer *p, u64 now)
{
	u32 n = min(sroce_pace_packets(p, MTU), 64U);
	struct sroce_train t = { .npkts = n, .mtu = MTU, .bi.bi_size = n * MTU };

	sroce_pace_sent(p, &t, now);
	return n * (MTU + HDRS);
}

/*
 * Send for a second of the test's clock, with a timer that is so much too late each
 * time. Return: bytes.
 */
static u64 send_second(struct kunit *test, struct sroce_pacer *p, u64 late)
{
	u64 begin = 5 * NSEC_PER_SEC, now = begin, sum = 0;
	u32 rests = 0;

	while (now < begin + NSEC_PER_SEC) {
		if (sroce_pace_due(p, now)) {
			sum += send_train(p, now);
			continue;
		}
		KUNIT_ASSERT_GT(test, p->wake, now);
		now = p->wake + late;
		rests++;
	}
	KUNIT_EXPECT_LE(test, rests, 4000);
	return sum;
}

/* Within a hundredth, and a train, of what is asked for, if the timer is not too late */
static void keeps_the_rate(struct kunit *test)
{
	static const u64 rates[] = { 12500, 125000, 12500000, 125000000,
				     1250000000, 12500000000ULL };
	static const u64 late[] = { 0, 50 * NSEC_PER_USEC, 400 * NSEC_PER_USEC };
	struct sroce_pacer p = {};
	u64 sum, slack;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (k = 0; k < ARRAY_SIZE(late); k++) {
			sroce_pace_set(&p, rates[i]);
			sum = send_second(test, &p, late[k]);
			slack = div_u64(rates[i], 100) + 64 * (MTU + HDRS);
			KUNIT_EXPECT_GE_MSG(test, sum + slack, rates[i],
					    "%llu, %llu", rates[i], late[k]);
			KUNIT_EXPECT_LE_MSG(test, sum, rates[i] + slack,
					    "%llu, %llu", rates[i], late[k]);
		}
	}
}

/* What was not sent in time is not sent all at once */
static void sleep_is_no_credit(struct kunit *test)
{
	u64 rate = 125000000, now = NSEC_PER_SEC, sum = 0;
	struct sroce_pacer p = {};

	sroce_pace_set(&p, rate);
	while (sroce_pace_due(&p, now))
		sum += send_train(&p, now);
	now += NSEC_PER_SEC;
	for (sum = 0; sroce_pace_due(&p, now);)
		sum += send_train(&p, now);
	/* A millisecond's, and a train */
	KUNIT_EXPECT_GE(test, sum, rate / 1000);
	KUNIT_EXPECT_LE(test, sum, rate / 1000 + 64 * (MTU + HDRS));
}

static void trains_follow_the_rate(struct kunit *test)
{
	struct sroce_pacer p = {};

	sroce_pace_set(&p, 12500);
	KUNIT_EXPECT_EQ(test, 1, sroce_pace_packets(&p, 4096));
	sroce_pace_set(&p, 12500000);
	KUNIT_EXPECT_EQ(test, 6, sroce_pace_packets(&p, 1024));
	sroce_pace_set(&p, U32_MAX * 125ULL);
	KUNIT_EXPECT_GE(test, sroce_pace_packets(&p, 256), 64);
}

/* --- messages ---------------------------------------------------------------- */

static void set_rate(struct side *s, u32 kbit)
{
	struct ib_qp_attr attr = { .rate_limit = kbit };

	side_modify(s, &attr, IB_QP_RATE_LIMIT);
}

/* Return: how long a WRITE took, in us */
static u64 write_took(struct side *a, u32 len)
{
	u64 begin = ktime_get_ns();
	struct work w;

	side_fill(a, SRC, len, 5);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, len));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(a->pair->test, side_filled(pair_peer(a), DST, len, 5));
	return div_u64(ktime_get_ns() - begin, NSEC_PER_USEC);
}

/* 64 packets at 2 MB/s are 34 ms, of which the first train and a ms come for nothing */
#define KBIT 16000
#define LEN (64 * MTU)
#define LEAST_US (33000 - 2000)

static void message_takes_its_time(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct ib_qp_attr attr;

	set_rate(a, KBIT);
	sroce_qp_query(a->qp, &attr);
	KUNIT_EXPECT_EQ(test, KBIT, attr.rate_limit);
	KUNIT_EXPECT_GE(test, write_took(a, LEN), LEAST_US);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	/* Losses are made up for at the same rate */
	p->net.drop = 50;
	KUNIT_EXPECT_GE(test, write_took(a, LEN), LEAST_US);
	p->net.drop = 0;
	/* A QP that is reset has no rate */
	side_to_reset(a);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.pace.rate);
	sroce_qp_query(a->qp, &attr);
	KUNIT_EXPECT_EQ(test, 0, attr.rate_limit);
}

/* Datagrams have no acknowledgements to wait for, and are no faster either */
static void datagrams_take_their_time(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UD };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	u64 begin = ktime_get_ns();
	struct work w;
	u32 i;

	set_rate(a, KBIT);
	for (i = 0; i < 64; i++) {
		work_send(a, &w, i, SRC, MTU);
		w.wqe.ud.ahn = PAIR_AHN;
		w.wqe.ud.remote_qpn = pair_peer(a)->qp->qpn;
		side_post(a, &w);
	}
	for (i = 0; i < 64; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, div_u64(ktime_get_ns() - begin, NSEC_PER_USEC),
			LEAST_US);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 64, side_sent(a, SROCE_OP_SEND, -1));
}

/* Whoever waits at a low rate goes on at once when it is lifted */
static void lifted_while_it_waits(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct work w;

	/* 64 packets would take 5 s */
	set_rate(a, 100);
	side_fill(a, SRC, LEN, 5);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, LEN));
	pair_deliver(p);
	KUNIT_EXPECT_NE(test, 0, a->qp->req.pace.wake);
	KUNIT_EXPECT_LE(test, side_sent(a, SROCE_OP_WRITE, -1), 3);
	set_rate(a, 0);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 64, side_sent(a, SROCE_OP_WRITE, -1));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(pair_peer(a), DST, LEN, 5));
}

/* A QP that ends does not wait for its time */
static void ended_while_it_waits(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct work w;

	set_rate(a, 100);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, LEN));
	pair_deliver(p);
	KUNIT_EXPECT_NE(test, 0, a->qp->req.pace.wake);
	side_to_error(a);
	side_expect_send(a, 1, IB_WC_WR_FLUSH_ERR);
}

static struct kunit_case pace_cases[] = {
	KUNIT_CASE(keeps_the_rate),
	KUNIT_CASE(sleep_is_no_credit),
	KUNIT_CASE(trains_follow_the_rate),
	KUNIT_CASE(message_takes_its_time),
	KUNIT_CASE(datagrams_take_their_time),
	KUNIT_CASE(lifted_while_it_waits),
	KUNIT_CASE(ended_while_it_waits),
	{}
};

static struct kunit_suite pace_suite = {
	.name = "sroce_pace",
	.test_cases = pace_cases,
	.exit = pair_exit,
};

kunit_test_suite(pace_suite);
