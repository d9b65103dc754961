// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Peers that are asked whether they tell of marked packets: when, how often, and what comes
 * of the answer.
 */
#include "tests/transport_pair.h"

#define SRC 0x1000
#define DST 0x80000
#define LEN SZ_64K
/* With the message behind so many, the headers of which count as well, a peer is asked */
#define MANY 3

static struct pair *ecn_pair(struct kunit *test, enum ib_qp_type type, bool tells)
{
	struct pair_config c = { .type = type };
	struct pair *p = pair_create(test, &c);
	int i;

	for (i = 0; i < 2; i++) {
		p->side[i].port.net.congestion = pair_congestion;
		p->side[i].port.net.congestion.rp_enable = SROCE_RP_ASK;
		p->side[i].port.net.congestion.np_enable = tells;
		/* One answer: on a slow machine the train takes longer than others may */
		p->side[i].port.net.congestion.np_min_time_between_cnps = USEC_PER_SEC;
	}
	return p;
}

static u8 peer_of(struct side *s)
{
	return s->qp->congestion.ecn.peer;
}

/* The newest packet of a kind that a side has sent; NULL: there is none */
static const struct fake_log *newest(struct side *s, u8 op)
{
	const struct fake_log *log, *found = NULL;
	u32 n;

	for (n = 0; (log = side_sent_nth(s, op, -1, n)); n++)
		found = log;
	return found;
}

/* One message, all of its packets alike */
static void expect_message(struct side *s, u8 op, u32 flags)
{
	bool read = op == SROCE_WR_RDMA_READ;
	struct side *by = read ? pair_peer(s) : s;
	struct kunit *test = s->pair->test;
	const struct fake_log *log;
	struct work w;

	s->pair->net.sent = 0;
	side_post(s, work_rdma(s, &w, op, 1, SRC, DST, LEN));
	side_expect_send(s, 1, IB_WC_SUCCESS);
	pair_settle(s->pair);
	log = newest(by, read ? SROCE_OP_READ_RESP : SROCE_OP_WRITE);
	KUNIT_ASSERT_NOT_NULL(test, log);
	KUNIT_EXPECT_EQ(test, flags, log->flags & (SROCE_ECT | SROCE_CE));
}

static void send_much(struct side *s, u8 op)
{
	int i;

	for (i = 0; i < MANY; i++)
		expect_message(s, op, 0);
}

static void is_asked(struct kunit *test, enum ib_qp_type type)
{
	struct side *a = &ecn_pair(test, type, true)->side[0];

	send_much(a, SROCE_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_UNKNOWN, peer_of(a));
	expect_message(a, SROCE_WR_RDMA_WRITE, SROCE_CE);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_TELLS, peer_of(a));
	expect_message(a, SROCE_WR_RDMA_WRITE, SROCE_ECT);
	/* The answer was no congestion */
	KUNIT_EXPECT_FALSE(test, a->qp->congested);
	KUNIT_EXPECT_EQ(test, 0, a->qp->congestion.reaction.mark_at);
	KUNIT_EXPECT_GT(test, side_count(a, SROCE_CNT_RP_CNP_HANDLED), 0);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_UNKNOWN, peer_of(pair_peer(a)));
}

static void connected_is_asked(struct kunit *test)
{
	is_asked(test, IB_QPT_RC);
}

static void unacknowledged_is_asked(struct kunit *test)
{
	is_asked(test, IB_QPT_UC);
}

/* Whoever sends the data asks, which is the responder of a READ */
static void reader_is_asked(struct kunit *test)
{
	struct side *a = &ecn_pair(test, IB_QPT_RC, true)->side[0];

	send_much(a, SROCE_WR_RDMA_READ);
	expect_message(a, SROCE_WR_RDMA_READ, SROCE_CE);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_TELLS, peer_of(pair_peer(a)));
	expect_message(a, SROCE_WR_RDMA_READ, SROCE_ECT);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_UNKNOWN, peer_of(a));
}

/* As rdma_rxe: a few questions, and then never again */
static void silent_peer(struct kunit *test)
{
	struct side *a = &ecn_pair(test, IB_QPT_RC, false)->side[0];
	struct sroce_ecn *ecn = &a->qp->congestion.ecn;
	int i;

	for (i = 1; i <= 4; i++) {
		send_much(a, SROCE_WR_RDMA_WRITE);
		expect_message(a, SROCE_WR_RDMA_WRITE, SROCE_CE);
		KUNIT_EXPECT_EQ(test, i, ecn->asked);
		/* Not again before there was time for an answer */
		ecn->asked_at = ktime_get_ns();
		send_much(a, SROCE_WR_RDMA_WRITE);
		expect_message(a, SROCE_WR_RDMA_WRITE, 0);
		KUNIT_EXPECT_EQ(test, i, ecn->asked);
		ecn->asked_at = ktime_get_ns() - NSEC_PER_SEC;
		ecn->asked_sent = a->qp->req.half.sent_bytes;
	}
	send_much(a, SROCE_WR_RDMA_WRITE);
	expect_message(a, SROCE_WR_RDMA_WRITE, 0);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_SILENT, peer_of(a));
	KUNIT_EXPECT_EQ(test, 4, ecn->asked);
	KUNIT_EXPECT_GT(test, side_count(pair_peer(a), SROCE_CNT_NP_ECN_MARKED), 3);
	KUNIT_EXPECT_EQ(test, 0, side_count(pair_peer(a), SROCE_CNT_NP_CNP_SENT));
}

/* Another path may lead to another peer */
static void asked_anew(struct kunit *test)
{
	struct side *a = &ecn_pair(test, IB_QPT_RC, true)->side[0];

	send_much(a, SROCE_WR_RDMA_WRITE);
	expect_message(a, SROCE_WR_RDMA_WRITE, SROCE_CE);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_TELLS, peer_of(a));
	side_to_reset(a);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_UNKNOWN, peer_of(a));
}

/* A notification that nobody has asked for is what it says */
static void not_asked(struct kunit *test)
{
	struct side *a = &ecn_pair(test, IB_QPT_RC, true)->side[0];
	struct sroce_train t = {
		.op = SROCE_OP_NOTIFY,
		.service = SROCE_CNP,
		.pkey = 0xffff,
		.npkts = 1,
		.dqpn = a->qp->qpn,
	};

	side_inject(pair_peer(a), &t);
	pair_deliver(a->pair);
	KUNIT_EXPECT_EQ(test, SROCE_ECN_TELLS, peer_of(a));
	KUNIT_EXPECT_NE(test, 0, a->qp->congestion.reaction.mark_at);
}

static void as_the_administrator_says(struct kunit *test)
{
	struct side *a = &ecn_pair(test, IB_QPT_RC, true)->side[0];

	a->port.net.congestion.rp_enable = SROCE_RP_ON;
	expect_message(a, SROCE_WR_RDMA_WRITE, SROCE_ECT);
	a->port.net.congestion.rp_enable = SROCE_RP_OFF;
	send_much(a, SROCE_WR_RDMA_WRITE);
	expect_message(a, SROCE_WR_RDMA_WRITE, 0);
	KUNIT_EXPECT_EQ(test, 0, a->qp->congestion.ecn.asked);
}

static struct kunit_case ecn_cases[] = {
	KUNIT_CASE(connected_is_asked),
	KUNIT_CASE(unacknowledged_is_asked),
	KUNIT_CASE(reader_is_asked),
	KUNIT_CASE(silent_peer),
	KUNIT_CASE(asked_anew),
	KUNIT_CASE(not_asked),
	KUNIT_CASE(as_the_administrator_says),
	{}
};

static struct kunit_suite ecn_suite = {
	.name = "sroce_transport_ecn",
	.test_cases = ecn_cases,
	.exit = pair_exit,
};

kunit_test_suite(ecn_suite);
