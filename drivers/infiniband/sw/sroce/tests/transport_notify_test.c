// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that have met congestion: who is told of them, how often, and who is not.
 */
#include "tests/transport_pair.h"

#define SRC 0x1003
#define DST 0x80005
#define GRH 40
#define PACKETS 10

/* So seldom that no test comes to a second one */
#define SELDOM 1000000

static struct pair *notify_pair(struct kunit *test, enum ib_qp_type type,
				u32 period)
{
	struct pair_config c = { .type = type };
	struct pair *p = pair_create(test, &c);
	int i;

	for (i = 0; i < 2; i++) {
		p->side[i].port.net.congestion.np_enable = true;
		p->side[i].port.net.congestion.np_min_time_between_cnps = period;
	}
	return p;
}

/* All packets of this kind from a side meet congestion */
static void mark(struct rule *rules, struct side *from, u8 op)
{
	rules[0] = (struct rule){ .from = from, .op = op, .verdict = FAKE_MARK };
	rules[1] = (struct rule){};
	pair_rules(from->pair, rules);
}

/* The @n-th notification that anybody has sent, or NULL */
static const struct fake_log *cnp(struct pair *p, u32 n)
{
	u32 i;

	for (i = 0; i < p->net.sent && i < FAKE_NET_LOG; i++)
		if (p->net.log[i].op == SROCE_OP_NOTIFY && !n--)
			return &p->net.log[i];
	return NULL;
}

/* So many of a side's packets were marked, and it has sent so many notifications */
static void expect_told(struct side *by, u32 marked, u32 cnps)
{
	struct kunit *test = by->pair->test;
	u32 n;

	KUNIT_EXPECT_EQ(test, marked, side_count(by, SROCE_CNT_NP_ECN_MARKED));
	KUNIT_EXPECT_EQ(test, cnps, side_count(by, SROCE_CNT_NP_CNP_SENT));
	for (n = 0; n < cnps; n++) {
		KUNIT_ASSERT_NOT_NULL(test, cnp(by->pair, n));
		KUNIT_EXPECT_EQ(test, pair_peer(by)->qp->qpn,
				cnp(by->pair, n)->dqpn);
		KUNIT_EXPECT_EQ(test, 0xffff, cnp(by->pair, n)->pkey);
		KUNIT_EXPECT_EQ(test, 0, cnp(by->pair, n)->psn);
		KUNIT_EXPECT_EQ(test, 0, cnp(by->pair, n)->len);
	}
	KUNIT_EXPECT_NULL(test, cnp(by->pair, cnps));
	pair_deliver(by->pair);
	KUNIT_EXPECT_EQ(test, cnps,
			side_count(pair_peer(by), SROCE_CNT_RP_CNP_IGNORED));
	KUNIT_EXPECT_EQ(test, 0,
			side_count(pair_peer(by), SROCE_CNT_RX_DISCARDS));
}

static void send_message(struct side *from, u32 len)
{
	struct side *to = pair_peer(from);
	struct work w;

	side_recv(to, 1, DST, GRH + len);
	side_fill(from, SRC, len, 3);
	work_send(from, &w, 2, SRC, len);
	if (from->qp->type == IB_QPT_UD) {
		w.wqe.ud.ahn = PAIR_AHN;
		w.wqe.ud.remote_qpn = to->qp->qpn;
	}
	side_post(from, &w);
	side_expect_send(from, 2, IB_WC_SUCCESS);
	side_expect_recv(to, 1, IB_WC_SUCCESS);
}

/* A message of PACKETS packets, all of them marked, and the same again without marks */
static void send_marked(struct side *from)
{
	struct rule rules[2];

	mark(rules, from, SROCE_OP_SEND);
	send_message(from, PACKETS * from->pair->mtu);
	KUNIT_EXPECT_EQ(from->pair->test, PACKETS, rules[0].hits);
	KUNIT_EXPECT_TRUE(from->pair->test,
			  side_filled(pair_peer(from), DST,
				      PACKETS * from->pair->mtu, 3));
	pair_rules(from->pair, NULL);
	send_message(from, PACKETS * from->pair->mtu);
}

/* One notification stands for all marked packets of a while */
static void peer_is_told_once(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_RC, SELDOM);

	send_marked(&p->side[0]);
	expect_told(&p->side[1], PACKETS, 1);
	expect_told(&p->side[1], PACKETS, 1);
}

/* Without a while each train is answered, here each packet */
static void peer_is_told_each_time(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_RC, 0);

	p->net.batch = 1;
	send_marked(&p->side[0]);
	expect_told(&p->side[1], PACKETS, PACKETS);
}

static void unacknowledged_sender_is_told(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_UC, SELDOM);

	send_marked(&p->side[0]);
	expect_told(&p->side[1], PACKETS, 1);
}

static void counts_without_telling(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_RC, 0);

	p->side[1].port.net.congestion.np_enable = false;
	send_marked(&p->side[0]);
	expect_told(&p->side[1], PACKETS, 0);
}

/* Responses are answered by the requester */
static void responder_is_told(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_RC, SELDOM);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 len = PACKETS * p->mtu;
	struct rule rules[2];
	struct work w;

	mark(rules, b, SROCE_OP_READ_RESP);
	side_fill(b, DST, len, 4);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, SRC, DST, len));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, len, 4));
	pair_rules(p, NULL);
	expect_told(a, PACKETS, 1);
}

/* What comes again, or too early, has met congestion all the same */
static void repeated_packets_count(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_RC, SELDOM);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t = side_train(a, SROCE_OP_WRITE,
					  side_first_psn(a) + 100);
	struct rule rules[2];

	send_message(a, p->mtu);
	mark(rules, a, SROCE_OP_WRITE);
	side_inject(a, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE));
	t.psn = side_first_psn(a);
	side_inject(a, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_DUPLICATE_REQUEST));
	expect_told(b, 2, 1);
}

/* Nobody hears of packets that the QP does not take */
static void strangers_are_not_told(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_RC, 0);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t = side_train(a, SROCE_OP_WRITE, side_first_psn(a));
	struct fake_path stranger = {};
	struct rule rules[2];

	t.pkey = 0x8005;
	mark(rules, a, SROCE_OP_WRITE);
	side_inject(a, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_BAD_PKEY));

	side_to_error(b);
	t.pkey = 0xffff;
	side_inject(a, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 2, rules[0].hits);
	expect_told(b, 0, 0);

	/* ... nor is a stranger believed */
	fake_path_init(&stranger, &p->net, &a->port, 77, 2);
	t = (struct sroce_train){
		.op = SROCE_OP_NOTIFY,
		.service = SROCE_CNP,
		.pkey = 0xffff,
		.npkts = 1,
		.dqpn = a->qp->qpn,
	};
	KUNIT_EXPECT_TRUE(test, fake_net_inject(&stranger, &t));
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_WRONG_PATH));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RP_CNP_IGNORED));
}

/* A notification that is marked itself is not answered: there would be no end */
static void notifications_are_not_answered(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_RC, 0);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[2];
	struct sroce_train t = {
		.op = SROCE_OP_NOTIFY,
		.service = SROCE_CNP,
		.pkey = 0xffff,
		.npkts = 1,
		.dqpn = b->qp->qpn,
	};

	mark(rules, a, SROCE_OP_NOTIFY);
	side_inject(a, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, rules[0].hits);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RP_CNP_IGNORED));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_NP_ECN_MARKED));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_NP_CNP_SENT));
}

/* Whoever may be a stranger does not take the room of the QP's own packets */
static void full_account_tells_nobody(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_UD, 0);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[2];

	p->net.batch = 1;
	mark(rules, a, SROCE_OP_SEND);
	fake_txq_take(b->qp->txq, SZ_256K + 1);
	send_message(a, 1000);
	expect_told(b, 1, 0);
	fake_txq_give(b->qp->txq, SZ_256K + 1);
	send_message(a, 1000);
	expect_told(b, 2, 1);
}

/* A datagram's sender is told whoever it is, if the datagram was for this QP */
static void datagram_sender_is_told(struct kunit *test)
{
	struct pair *p = notify_pair(test, IB_QPT_UD, SELDOM);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t = side_train(a, SROCE_OP_SEND, 0);
	struct rule rules[2];

	p->net.batch = 1;
	mark(rules, a, SROCE_OP_SEND);
	t.qkey = b->qp->attr.qkey + 1;
	t.sqpn = a->qp->qpn;
	side_inject(a, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_BAD_QKEY));
	expect_told(b, 0, 0);
	send_message(a, 1000);
	send_message(a, 1000);
	KUNIT_EXPECT_EQ(test, 3, rules[0].hits);
	expect_told(b, 2, 1);
}

static struct kunit_case notify_cases[] = {
	KUNIT_CASE(peer_is_told_once),
	KUNIT_CASE(peer_is_told_each_time),
	KUNIT_CASE(unacknowledged_sender_is_told),
	KUNIT_CASE(counts_without_telling),
	KUNIT_CASE(responder_is_told),
	KUNIT_CASE(repeated_packets_count),
	KUNIT_CASE(strangers_are_not_told),
	KUNIT_CASE(notifications_are_not_answered),
	KUNIT_CASE(datagram_sender_is_told),
	KUNIT_CASE(full_account_tells_nobody),
	{}
};

static struct kunit_suite notify_suite = {
	.name = "sroce_notify",
	.test_cases = notify_cases,
	.exit = pair_exit,
};

kunit_test_suite(notify_suite);
