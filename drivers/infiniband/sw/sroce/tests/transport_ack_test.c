// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ACKs that wait for a request to go with: when they do, and that they never wait
 * where nothing is going to come.
 */
#include "tests/transport_pair.h"
#include "transport/requester.h"
#include "transport/run.h"

#define SRC 0x1000
#define DST 0x80000
#define LEN 100

/* More than the turns that must have been taken */
#define ROUNDS 80

static const struct sroce_ack_delay *delay_of(const struct side *s)
{
	return &s->qp->resp.ack.delay;
}

/* A message, whose receive work request completes */
static void say(struct side *from, u64 wr_id)
{
	struct side *to = pair_peer(from);
	struct work w;

	side_recv(to, wr_id, DST, LEN);
	side_post(from, work_send(from, &w, wr_id, SRC, LEN));
	side_expect_recv(to, wr_id, IB_WC_SUCCESS);
}

static void take_turns(struct pair *p, u32 rounds)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	for (i = 0; i < rounds; i++) {
		say(a, i);
		say(b, i);
		side_expect_send(a, i, IB_WC_SUCCESS);
	}
	/* Each of b's was acknowledged with a's next, but the last one */
	for (i = 0; i < rounds - 1; i++)
		side_expect_send(b, i, IB_WC_SUCCESS);
}

static struct pair *turns_pair(struct kunit *test, bool direct)
{
	struct pair_config c = { .direct = direct, .depth = 256 };
	struct pair *p = pair_create(test, &c);

	take_turns(p, ROUNDS);
	return p;
}

static const bool ways[] = { false, true };

static void way_name(const bool *direct, char *desc)
{
	strscpy(desc, *direct ? "direct" : "packets", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(way, ways, way_name);

/* Both sides learn it, and no timer was needed for the ACK of any message */
static void ack_rides(struct kunit *test)
{
	struct pair *p = turns_pair(test, *(const bool *)test->param_value);
	struct side *a = &p->side[0], *b = &p->side[1];

	KUNIT_EXPECT_GT(test, delay_of(a)->rides, 10);
	KUNIT_EXPECT_GT(test, delay_of(b)->rides, 10);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	side_expect_send(b, ROUNDS - 1, IB_WC_SUCCESS);
	side_expect_none(a);
	side_expect_none(b);
}

/* The ACK is in the log behind the request that it went with */
static void ack_behind_request(struct kunit *test)
{
	struct pair *p = turns_pair(test, false);
	struct side *b = &p->side[1];
	const struct fake_log *ack, *send;
	u32 last = side_sent(b, SROCE_OP_ACK, -1) - 1;

	ack = side_sent_nth(b, SROCE_OP_ACK, -1, last);
	send = side_sent_nth(b, SROCE_OP_SEND, -1, ROUNDS - 1);
	KUNIT_ASSERT_NOT_NULL(test, ack);
	KUNIT_ASSERT_NOT_NULL(test, send);
	KUNIT_EXPECT_PTR_EQ(test, ack, send + 1);
}

/* No answer comes: the ACK leaves by itself, and the next ones wait less easily */
static void ack_late(struct kunit *test)
{
	struct pair *p = turns_pair(test, *(const bool *)test->param_value);
	struct side *a = &p->side[0], *b = &p->side[1];
	u16 wanted = delay_of(b)->wanted;

	say(a, 1000);
	KUNIT_EXPECT_TRUE(test, side_holds_ack(b));
	side_expect_send(a, 1000, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, side_holds_ack(b));
	KUNIT_EXPECT_EQ(test, 2 * wanted, delay_of(b)->wanted);
	KUNIT_EXPECT_EQ(test, 0, p->expired);

	say(a, 1001);
	KUNIT_EXPECT_FALSE(test, side_holds_ack(b));
	side_expect_send(a, 1001, IB_WC_SUCCESS);
}

/* A failure is forgotten when enough turns have been taken since */
static void ack_forgives(struct kunit *test)
{
	struct pair *p = turns_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u16 wanted = delay_of(b)->wanted;

	side_expect_send(b, ROUNDS - 1, IB_WC_SUCCESS);
	say(a, 1000);
	side_expect_send(a, 1000, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 2 * wanted, delay_of(b)->wanted);
	take_turns(p, 5 * wanted);
	KUNIT_EXPECT_EQ(test, wanted, delay_of(b)->wanted);
}

/* So many messages are acknowledged at once, however much the ACKs may wait */
static void ack_of_many(struct kunit *test)
{
	struct pair *p = turns_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i, acks = side_sent(b, SROCE_OP_ACK, -1);

	for (i = 0; side_sent(b, SROCE_OP_ACK, -1) == acks && i < 100; i++)
		say(a, 1000 + i);
	KUNIT_EXPECT_GT(test, i, 1);
	KUNIT_EXPECT_LE(test, i, 17);
	KUNIT_EXPECT_FALSE(test, side_holds_ack(b));
}

/* A long message needs its ACK: the sender's window may be full */
static void ack_of_long(struct kunit *test)
{
	struct pair *p = turns_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_recv(b, 1000, DST, 32 * p->mtu);
	side_post(a, work_send(a, &w, 1000, SRC, 32 * p->mtu));
	side_expect_recv(b, 1000, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, side_holds_ack(b));
	side_expect_send(a, 1000, IB_WC_SUCCESS);
}

/* Messages in one direction only, or in both with nothing to do with each other */
static void ack_of_stream(struct kunit *test)
{
	struct pair_config c = { .depth = 256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	for (i = 0; i < 3 * ROUNDS; i++) {
		say(a, i);
		KUNIT_ASSERT_FALSE(test, side_holds_ack(b));
		side_expect_send(a, i, IB_WC_SUCCESS);
		if (i % 20 == 0) {
			say(b, i);
			side_expect_send(b, i, IB_WC_SUCCESS);
		}
	}
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* The peer has asked again: it waits for the ACK */
static void ack_of_duplicate(struct kunit *test)
{
	struct pair *p = turns_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];

	say(a, 1000);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	fake_net_settle(&p->net);
	KUNIT_EXPECT_FALSE(test, side_holds_ack(b));
	side_expect_send(a, 1000, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_DUPLICATE_REQUEST));
}

/* A response that waits for buffer space: the ACK of what came later waits as well */
static void ack_behind_response(struct kunit *test)
{
	struct pair *p = turns_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_half *half = &b->qp->resp.half;
	struct work w;
	u32 bytes;

	say(a, 1000);
	KUNIT_EXPECT_TRUE(test, side_holds_ack(b));
	bytes = fake_txq_fill(b->qp->txq);
	half->starved = true;
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1001, DST, SRC, LEN));
	say(a, 1002);
	say(b, 1003);
	fake_net_settle(&p->net);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	fake_txq_give(b->qp->txq, bytes);
	sroce_half_run(half);
	side_expect_send(a, 1000, IB_WC_SUCCESS);
	side_expect_send(a, 1001, IB_WC_SUCCESS);
	side_expect_send(a, 1002, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* A peer of little patience never waits longer than before */
static void ack_of_hasty_peer(struct kunit *test)
{
	struct pair_config c = { .timeout = 12, .depth = 256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	take_turns(p, ROUNDS);
	say(a, 1000);
	KUNIT_EXPECT_FALSE(test, side_holds_ack(b));
	KUNIT_EXPECT_EQ(test, 0, delay_of(b)->rides);
}

/* Whoever has seen the message may end the QP: the peer learns of it still */
static void ack_before(struct kunit *test, void (*end)(struct side *s))
{
	struct pair *p = turns_pair(test, *(const bool *)test->param_value);
	struct side *a = &p->side[0];

	say(a, 1000);
	end(pair_peer(a));
	side_expect_send(a, 1000, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void ack_before_error(struct kunit *test)
{
	ack_before(test, side_to_error);
}

static void ack_before_reset(struct kunit *test)
{
	ack_before(test, side_to_reset);
}

/* A new connection knows nothing of the last one */
static void ack_after_reset(struct kunit *test)
{
	struct pair *p = turns_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];

	pair_reconnect(p);
	say(a, 1);
	KUNIT_EXPECT_FALSE(test, side_holds_ack(b));
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

#define MANY (SROCE_BEGUN_MOST + 100)

/* Lose all that is sent, and post MANY small WRITEs, of which the last one is signaled */
static void write_many(struct side *s, struct rule *lost)
{
	struct work w;
	u32 i;

	pair_rules(s->pair, lost);
	for (i = 0; i < MANY; i++) {
		work_rdma(s, &w, SROCE_WR_RDMA_WRITE, i, SRC, DST, 8);
		if (i != MANY - 1)
			w.wqe.flags &= ~SROCE_SEND_SIGNALED;
		side_post(s, &w);
	}
	pair_deliver(s->pair);
}

/* A peer that keeps its ACKs back makes one of them complete so much, and not more */
static void ack_of_too_many(struct kunit *test)
{
	struct pair_config c = {
		.depth = 2 * SROCE_BEGUN_MOST, .mtu = IB_MTU_256,
		.window = 2 * SROCE_BEGUN_MOST,
	};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule lost[] = {
		{ .from = a, .op = SROCE_OP_WRITE, .verdict = FAKE_DROP },
		{}
	};
	u32 first = side_first_psn(a);

	write_many(a, lost);
	KUNIT_EXPECT_EQ(test, SROCE_BEGUN_MOST,
			sroce_psn_diff(a->qp->req.send_psn, first));
	side_inject_ack(b, 0, first + SROCE_BEGUN_MOST - 1);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, MANY, sroce_psn_diff(a->qp->req.send_psn, first));
	side_expect_none(a);
	side_inject_ack(b, 0, first + MANY - 1);
	side_expect_send(a, MANY - 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static struct kunit_case ack_cases[] = {
	KUNIT_CASE_PARAM(ack_rides, way_gen_params),
	KUNIT_CASE(ack_behind_request),
	KUNIT_CASE_PARAM(ack_late, way_gen_params),
	KUNIT_CASE(ack_forgives),
	KUNIT_CASE(ack_of_many),
	KUNIT_CASE(ack_of_long),
	KUNIT_CASE(ack_of_stream),
	KUNIT_CASE(ack_of_duplicate),
	KUNIT_CASE(ack_behind_response),
	KUNIT_CASE(ack_of_hasty_peer),
	KUNIT_CASE_PARAM(ack_before_error, way_gen_params),
	KUNIT_CASE_PARAM(ack_before_reset, way_gen_params),
	KUNIT_CASE(ack_after_reset),
	KUNIT_CASE(ack_of_too_many),
	{}
};

static struct kunit_suite ack_suite = {
	.name = "sroce_ack",
	.exit = pair_exit,
	.test_cases = ack_cases,
};

kunit_test_suite(ack_suite);
