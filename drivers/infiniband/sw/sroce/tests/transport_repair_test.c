// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the peer misses is sent again, and little more than that, where it keeps what
 * comes early; and all of it where it does not.
 */
#include "tests/transport_pair.h"

#define SRC SIDE_FROM
#define DST SIDE_TO
#define MTU 256
#define PACKETS 400

/* Packets arrive one by one; all of a message may be under way */
static struct pair *repair_pair(struct kunit *test, struct pair_config *c)
{
	c->mtu = IB_MTU_256;
	c->window = 2 * PACKETS;
	c->batch = 1;
	return pair_create(test, c);
}

/* Packets of a message that were sent again when @n of them, from @first on, were lost */
static u64 sent_again(struct side *a, u64 id, u32 first, u32 n)
{
	struct pair *p = a->pair;
	u64 before = side_count(a, SROCE_CNT_RETRANS_PACKETS);
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, first, n, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	/* However much the losses of before have left of it on a slow machine */
	a->qp->req.window = 2 * PACKETS;
	side_write(a, id, PACKETS * MTU);
	side_expect_written(a, id, PACKETS * MTU);
	pair_deliver(p);
	pair_rules(p, NULL);
	return side_count(a, SROCE_CNT_RETRANS_PACKETS) - before;
}

/* The more often one packet is lost alone, the less is sent with it */
static void one_packet(struct kunit *test)
{
	struct pair_config c = { .psn = 0xffff00 };
	struct pair *p = repair_pair(test, &c);
	struct side *a = &p->side[0];
	u32 i;

	KUNIT_EXPECT_EQ(test, 8, sent_again(a, 1, 30, 1));
	KUNIT_EXPECT_FALSE(test, a->qp->req.repair.lossy);
	for (i = 2; i < 12; i++)
		KUNIT_EXPECT_LT(test, sent_again(a, i, 20 * i, 1), 8);
	KUNIT_EXPECT_EQ(test, 2, sent_again(a, i, 7, 1));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* A gap that is larger takes some round trips at first, and one when that is known */
static void many_packets(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = repair_pair(test, &c);
	struct side *a = &p->side[0];
	u64 naks;

	/* 8, 16, 32 and 64 */
	KUNIT_EXPECT_EQ(test, 120, sent_again(a, 1, 50, 60));
	naks = side_count(a, SROCE_CNT_PACKET_SEQ_ERR);
	KUNIT_EXPECT_LT(test, sent_again(a, 2, 50, 50), 60);
	KUNIT_EXPECT_EQ(test, naks + 1, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* Several gaps of one message are one loss for the window */
static void several_gaps(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = repair_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 50, 1, FAKE_DROP),
		rule_nth(a, SROCE_OP_WRITE, 99, 1, FAKE_DROP),
		rule_nth(a, SROCE_OP_WRITE, 198, 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, PACKETS * MTU);
	side_expect_written(a, 1, PACKETS * MTU);
	KUNIT_EXPECT_EQ(test, 3, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	KUNIT_EXPECT_LE(test, side_count(a, SROCE_CNT_RETRANS_PACKETS), 24);
	KUNIT_EXPECT_GE(test, a->qp->req.window, PACKETS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* What is sent again may be lost again: then all of it is sent */
static void lost_again(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = repair_pair(test, &c);
	struct side *a = &p->side[0];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, psn + 40, 2, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, PACKETS * MTU);
	side_expect_written(a, 1, PACKETS * MTU);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* A peer that keeps nothing is found out, and then everything is sent at once */
static void peer_that_goes_back(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = repair_pair(test, &c);
	struct side *a = &p->side[0];
	u32 i;

	p->side[1].port.recovery.selective_repeat_en = 0;
	for (i = 1; a->qp->req.repair.vain < 8; i++) {
		KUNIT_ASSERT_LT(test, i, 12);
		sent_again(a, i, 10 * i, 1);
	}
	a->qp->req.window = PACKETS;
	KUNIT_EXPECT_EQ(test, PACKETS - 30, sent_again(a, i, 30, 1));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* With a READ in flight everything is sent again, and answered in its order */
static void read_in_flight(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = repair_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 30, 1, FAKE_DROP), {}
	};
	struct work w;

	pair_rules(p, rules);
	side_write(a, 1, PACKETS * MTU);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 2, SRC, DST, 1000));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, 1000, 1));
	KUNIT_EXPECT_GE(test, side_count(a, SROCE_CNT_RETRANS_PACKETS), PACKETS - 30);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* As if all PSNs had been used since, up to the one before @psn */
static void come_round(struct pair *p, u32 psn)
{
	struct sroce_requester *req = &p->side[0].qp->req;

	spin_lock_bh(&req->half.lock);
	req->una_psn = sroce_psn_add(psn, -1);
	req->send_psn = req->una_psn;
	req->next_psn = req->una_psn;
	spin_unlock_bh(&req->half.lock);
	p->side[1].qp->resp.epsn = req->una_psn;
}

/*
 * The ACKs for what was sent again are lost, and it is a READ's response that tells of it.
 * What the next ACK tells, when PSNs have come round meanwhile, is nothing about that.
 */
static void answered_by_response(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = repair_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule lose[] = { rule_nth(a, SROCE_OP_WRITE, 30, 1, FAKE_DROP), {} };
	struct rule mute[] = { rule_nth(b, SROCE_OP_ACK, 0, 0, FAKE_DROP), {} };
	struct sroce_repair *r = &a->qp->req.repair;
	struct work w;

	pair_rules(p, lose);
	side_write(a, 1, PACKETS * MTU);
	while (!side_count(a, SROCE_CNT_PACKET_SEQ_ERR))
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	pair_rules(p, mute);
	pair_deliver(p);
	side_expect_none(a);
	KUNIT_EXPECT_TRUE(test, r->asked);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 2, SRC, DST, 1000));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, 1000, 1));
	pair_rules(p, NULL);
	come_round(p, r->end);
	side_write(a, 3, MTU);
	side_expect_written(a, 3, MTU);
	KUNIT_EXPECT_LT(test, r->size, 8);
	KUNIT_EXPECT_EQ(test, 0, r->tries);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static struct kunit_case repair_cases[] = {
	KUNIT_CASE(one_packet),
	KUNIT_CASE(many_packets),
	KUNIT_CASE(several_gaps),
	KUNIT_CASE(lost_again),
	KUNIT_CASE(peer_that_goes_back),
	KUNIT_CASE(read_in_flight),
	KUNIT_CASE(answered_by_response),
	{}
};

static struct kunit_suite repair_suite = {
	.name = "sroce_transport_repair",
	.exit = pair_exit,
	.test_cases = repair_cases,
};

kunit_test_suite(repair_suite);
