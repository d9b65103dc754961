// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sending datagrams: what becomes of them when the port or the queues below change
 * meanwhile.
 */
#include "tests/transport_pair.h"

#define SRC 0x1003
#define DST 0x80005
#define GRH 40

static struct pair *ud_pair(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UD };
	struct pair *p = pair_create(test, &c);

	p->net.batch = 1;
	return p;
}

static void post_datagram(struct side *from, u64 wr_id, u32 len)
{
	struct work w;

	side_fill(from, SRC, len, wr_id);
	work_send(from, &w, wr_id, SRC, len);
	w.wqe.ud.ahn = PAIR_AHN;
	w.wqe.ud.remote_qpn = pair_peer(from)->qp->qpn;
	side_post(from, &w);
}

static void expect_datagram(struct side *to, u64 wr_id, u32 len, u32 seed)
{
	struct kunit *test = to->pair->test;
	struct ib_wc wc;

	side_expect(to, &to->rcq, wr_id, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, GRH + len, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, side_filled(to, DST + GRH, len, seed));
}

static void sent_and_received(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	for (i = 0; i < 3; i++) {
		side_recv(b, i, DST, GRH + 4096);
		post_datagram(a, i, i * 2048);
		side_expect_send(a, i, IB_WC_SUCCESS);
		expect_datagram(b, i, i * 2048, i);
	}
	post_datagram(a, 3, 4097);
	side_expect_send(a, 3, IB_WC_LOC_LEN_ERR);
}

/* The MTU shrinks while a datagram waits: it leaves as it was posted, or not at all */
static void mtu_shrinks(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_recv(b, 1, DST, GRH + 4096);
	side_to_sqd(a, false);
	post_datagram(a, 1, 4000);
	a->port.mtu = 1024;
	KUNIT_EXPECT_EQ(test, 0, p->net.sent);
	side_to_rts(a);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	expect_datagram(b, 1, 4000, 1);
	/* The next one meets the new MTU */
	post_datagram(a, 2, 1025);
	side_expect_send(a, 2, IB_WC_LOC_LEN_ERR);
}

static void hold_all(struct pair *p, struct rule *rules)
{
	rules[0] = (struct rule){
		.from = &p->side[0],
		.op = SROCE_OP_SEND,
		.verdict = FAKE_HOLD,
	};
	pair_rules(p, rules);
}

/*
 * A queue below takes more than it sends, and then nothing any more: the QP waits for
 * it, but not for ever. What it cannot take is lost, until there is room again.
 */
static void stuck_below(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_half *half = &a->qp->req.half;
	struct rule rules[2] = {};
	u64 lost;
	u32 i, sent;

	hold_all(p, rules);
	half->txq.limit = 10000;
	for (i = 0; i < 20; i++)
		post_datagram(a, i, 1000);
	pair_deliver(p);
	sent = p->net.sent;
	KUNIT_EXPECT_TRUE(test, half->starved);
	KUNIT_EXPECT_LT(test, sent, 20);
	for (i = 0; i < 20; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
	KUNIT_EXPECT_EQ(test, sent, p->net.sent);
	lost = side_count(a, SROCE_CNT_TX_DROPS);
	KUNIT_EXPECT_EQ(test, 20 - sent, lost);

	pair_rules(p, NULL);
	fake_net_release(&p->net);
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, half->starved);
	side_recv(b, 50, DST, GRH + 4096);
	post_datagram(a, 30, 1000);
	side_expect_send(a, 30, IB_WC_SUCCESS);
	expect_datagram(b, 50, 1000, 30);
	KUNIT_EXPECT_EQ(test, lost, side_count(a, SROCE_CNT_TX_DROPS));
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.deadline);
}

/* One wait that was long is none of the next one's business */
static void each_wait_by_itself(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0];
	struct sroce_half *half = &a->qp->req.half;
	struct rule rules[2] = {};
	u32 i;

	half->txq.limit = 2000;
	for (i = 0; i < 3; i++) {
		hold_all(p, rules);
		post_datagram(a, 2 * i, 3000);
		post_datagram(a, 2 * i + 1, 3000);
		KUNIT_EXPECT_TRUE(test, half->starved);
		KUNIT_EXPECT_NE(test, 0, a->qp->req.deadline);
		pair_deliver(p);
		pair_rules(p, NULL);
		fake_net_release(&p->net);
		pair_deliver(p);
		side_expect_send(a, 2 * i, IB_WC_SUCCESS);
		side_expect_send(a, 2 * i + 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, 0, a->qp->req.deadline);
	}
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_TX_DROPS));
}

static struct kunit_case ud_cases[] = {
	KUNIT_CASE(sent_and_received),
	KUNIT_CASE(mtu_shrinks),
	KUNIT_CASE(stuck_below),
	KUNIT_CASE(each_wait_by_itself),
	{}
};

static struct kunit_suite ud_suite = {
	.name = "sroce_transport_ud",
	.exit = pair_exit,
	.test_cases = ud_cases,
};

kunit_test_suite(ud_suite);
