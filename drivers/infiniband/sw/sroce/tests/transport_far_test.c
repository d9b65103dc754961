// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Losses on a path that is said to be long: how much is sent again for each gap, what
 * the window loses for which kind, and that it is spread over a round trip. Packets take no
 * time here, so all that comes does so long before a round trip has passed.
 */
#include "tests/transport_pair.h"
#include "transport/far.h"
#include "transport/repair.h"
#include "transport/requester.h"
#include "transport/rtt.h"
#include "transport/window.h"

#define SRC SIDE_FROM
#define DST SIDE_TO
#define MTU 256
#define PACKETS 600
#define WINDOW 1000
#define RTT (10 * NSEC_PER_MSEC)

/* The path is long, whatever was measured before */
static void make_far(struct side *a)
{
	struct sroce_rtt *rtt = &a->qp->req.rtt;

	rtt->min = RTT;
	rtt->min_next = RTT;
	rtt->min_since = jiffies;
	rtt->srtt = RTT;
	sroce_rtt_cancel(rtt);
	a->port.recovery.adp_retrans_en = 1;
}

/* All of a message may be under way; packets arrive one by one */
static struct pair *far_pair(struct kunit *test, struct pair_config *c)
{
	struct pair *p;

	c->mtu = IB_MTU_256;
	c->window = WINDOW;
	c->batch = 1;
	p = pair_create(test, c);
	make_far(&p->side[0]);
	return p;
}

/* A message with gaps, of one packet each */
static void lose(struct side *a, u64 id, const u32 *gaps, u32 n)
{
	struct sroce_requester *req = &a->qp->req;
	struct pair *p = a->pair;
	struct rule rules[9] = {};
	u32 i;

	for (i = 0; i < n; i++)
		rules[i] = rule_psn(a, SROCE_OP_WRITE,
				    sroce_psn_add(req->next_psn, gaps[i]), 1, FAKE_DROP);
	make_far(a);
	/* What is sent again arrives at once here, and is not to be taken for what was overtaken */
	req->far.resent = true;
	req->far.again = sroce_psn_add(req->next_psn, PACKETS);
	req->window = WINDOW;
	pair_rules(p, rules);
	side_write(a, id, PACKETS * MTU);
	side_expect_written(a, id, PACKETS * MTU);
	pair_deliver(p);
	pair_rules(p, NULL);
	KUNIT_EXPECT_EQ(p->test, 0, p->expired);
	KUNIT_EXPECT_FALSE(p->test, req->repair.lossy);
}

/* The peer misses the packet that is so much further, behind all that was sent again */
static void next_gap(struct side *a, u32 further)
{
	struct sroce_requester *req = &a->qp->req;

	req->una_psn = sroce_psn_add(req->una_psn, further);
	sroce_far_next_gap(a->qp, req->una_psn);
	sroce_far_part_begins(req);
}

/* Twice as much with each gap as from the last one to it, and not much less for the next loss */
static void more_with_each_gap(struct kunit *test)
{
	struct pair_config c = { .psn = 0xffff00 };
	struct side *a = &far_pair(test, &c)->side[0];
	struct sroce_requester *req = &a->qp->req;
	u32 una = req->una_psn;

	sroce_far_new_loss(req, WINDOW);
	req->far.sure = false;
	KUNIT_EXPECT_EQ(test, 8, sroce_far_part(req, 8, PACKETS));
	sroce_far_part_begins(req);
	next_gap(a, 40);
	KUNIT_EXPECT_EQ(test, 80, sroce_far_part(req, 8, PACKETS));
	next_gap(a, 120);
	KUNIT_EXPECT_EQ(test, 240, sroce_far_part(req, 8, PACKETS));
	KUNIT_EXPECT_EQ(test, 100, sroce_far_part(req, 8, 100));
	req->repair.lost_until = req->una_psn;
	sroce_far_progress(a->qp);
	KUNIT_EXPECT_EQ(test, 180, sroce_far_part(req, 8, PACKETS));
	req->una_psn = una;
}

/*
 * However many gaps of a loss were in vain, the next one is answered with a part (and so costs the
 * window nothing): only after some losses in vain does the peer count as one that keeps nothing
 */
static void parts_of_one_loss(struct kunit *test)
{
	struct pair_config c = {};
	struct side *a = &far_pair(test, &c)->side[0];
	struct sroce_requester *req = &a->qp->req;
	u32 una = req->una_psn, i;

	sroce_far_new_loss(req, WINDOW);
	req->repair.lossy = true;
	req->repair.lost_until = sroce_psn_add(una, PACKETS);
	req->window = WINDOW;
	for (i = 0; i < 12; i++) {
		req->repair.tries = i;
		req->repair.vain = 1;
		KUNIT_EXPECT_TRUE(test, sroce_repair_may(a->qp));
	}
	req->repair.vain = 8;
	KUNIT_EXPECT_FALSE(test, sroce_repair_may(a->qp));
	sroce_repair_reset(req);
}

/* What is missing within what is sent again is not asked for twice */
static void one_round_trip(struct kunit *test)
{
	struct pair_config c = {};
	struct side *a = &far_pair(test, &c)->side[0];

	a->qp->req.far.span = 300;
	lose(a, 1, (u32 []){ 20, 70, 200, 300 }, 4);
	/* A machine may be slower than the path is long */
	KUNIT_EXPECT_LT(test, side_count(a, SROCE_CNT_PACKET_SEQ_ERR), 4);
	KUNIT_EXPECT_FALSE(test, a->qp->req.far.dense);
}

/* Is the gap one that may be on its way, @ns after it was sent again? */
static bool on_its_way(struct side *a, u32 i, u64 ns)
{
	struct sroce_requester *req = &a->qp->req;
	struct sroce_requester was = *req;
	bool on;

	req->repair.lossy = true;
	req->repair.active = false;
	req->repair.end = sroce_psn_add(req->una_psn, 100);
	sroce_far_new_loss(req, 0);
	sroce_far_part_begins(req);
	req->far.began -= ns;
	req->far.behind = req->repair.end;
	req->una_psn = sroce_psn_add(req->una_psn, i);
	on = sroce_far_is_under_way(a->qp);
	req->una_psn = was.una_psn;
	req->repair = was.repair;
	req->far = was.far;
	return on;
}

/* The end of what is sent again in 10 ms is sent so much later than its begin */
static void on_its_way_in_time(struct kunit *test)
{
	struct pair_config c = {};
	struct side *a = &far_pair(test, &c)->side[0];

	KUNIT_EXPECT_TRUE(test, on_its_way(a, 1, RTT / 4));
	KUNIT_EXPECT_FALSE(test, on_its_way(a, 1, RTT));
	KUNIT_EXPECT_TRUE(test, on_its_way(a, 90, RTT));
	KUNIT_EXPECT_FALSE(test, on_its_way(a, 50, 2 * RTT));
	KUNIT_EXPECT_FALSE(test, on_its_way(a, 100, 0));
}

/* A loss with gaps so many packets apart, ten of which the peer tells of */
static void tell_of_gaps(struct side *a, u32 apart)
{
	struct sroce_requester *req = &a->qp->req;
	u32 una = req->una_psn;
	int i;

	req->window = WINDOW;
	sroce_far_all_again(req);
	sroce_far_new_loss(req, WINDOW);
	req->far.sure = false;
	for (i = 0; i < 10; i++) {
		req->una_psn = sroce_psn_add(req->una_psn, apart);
		sroce_far_next_gap(a->qp, req->una_psn);
	}
	req->repair.lost_until = req->una_psn;
	sroce_far_progress(a->qp);
	req->una_psn = una;
}

/*
 * Gaps that are close to each other are a queue's: the window becomes less, once, and what it was
 * is known, until they are far apart
 */
static void dense_losses(struct kunit *test)
{
	struct pair_config c = {};
	struct side *a = &far_pair(test, &c)->side[0];
	struct sroce_requester *req = &a->qp->req;

	tell_of_gaps(a, 20);
	KUNIT_EXPECT_EQ(test, WINDOW - WINDOW / 3, req->window);
	KUNIT_EXPECT_GE(test, req->far.full, WINDOW);
	tell_of_gaps(a, 40);
	KUNIT_EXPECT_GE(test, req->far.full, WINDOW);
	tell_of_gaps(a, 80);
	KUNIT_EXPECT_EQ(test, 0, req->far.full);
	KUNIT_EXPECT_GE(test, req->window, WINDOW);
}

/* So is a loss that is not repaired for long */
static void lasting_loss(struct kunit *test)
{
	struct pair_config c = {};
	struct side *a = &far_pair(test, &c)->side[0];
	struct sroce_requester *req = &a->qp->req;
	int i;

	sroce_far_new_loss(req, WINDOW);
	for (i = 0; i < 3; i++) {
		req->far.lost_at -= 6 * RTT;
		sroce_far_next_gap(a->qp, req->una_psn);
	}
	KUNIT_EXPECT_LT(test, req->window, WINDOW / 3);
	KUNIT_EXPECT_TRUE(test, req->far.whole);
	/* However small it is, it does not become larger by that */
	req->window = 1;
	req->far.lost_at -= 6 * RTT;
	sroce_far_next_gap(a->qp, req->una_psn);
	KUNIT_EXPECT_EQ(test, 1, req->window);
}

/* A NAK is believed where nobody else asks: of who keeps nothing, without probes, or timeout */
static void on_its_way_and_believed(struct kunit *test)
{
	struct pair_config c = {};
	struct side *a = &far_pair(test, &c)->side[0];

	a->qp->req.repair.vain = 1;
	KUNIT_EXPECT_FALSE(test, on_its_way(a, 1, RTT / 4));
	a->qp->req.repair.vain = 0;
	a->port.recovery.adp_retrans_en = 0;
	KUNIT_EXPECT_FALSE(test, on_its_way(a, 1, RTT / 4));
	a->port.recovery.adp_retrans_en = 1;
	a->qp->attr.timeout = 0;
	KUNIT_EXPECT_FALSE(test, on_its_way(a, 1, RTT / 4));
}

/* A packet that is overtaken is none that was lost: what the window has given up it gets back */
static void overtaken(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = far_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, sroce_psn_add(side_first_psn(a), 20), 1, FAKE_HOLD), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, PACKETS * MTU);
	while (!a->qp->req.repair.lossy)
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_LT(test, a->qp->req.window, WINDOW);
	/* However slow the machine is */
	a->qp->req.far.lost_at += NSEC_PER_SEC;
	fake_net_release(&p->net);
	side_expect_written(a, 1, PACKETS * MTU);
	KUNIT_EXPECT_GE(test, a->qp->req.window, WINDOW);
	KUNIT_EXPECT_TRUE(test, a->qp->req.far.late);
}

/* From the first loss on, while the path is long */
static void spread(struct kunit *test)
{
	struct pair_config c = {};
	struct side *a = &far_pair(test, &c)->side[0];
	struct sroce_requester *req = &a->qp->req;
	u64 rate;

	sroce_far_spread(a->qp);
	KUNIT_EXPECT_EQ(test, 0, req->far.pace.rate);
	req->growth.lossy = true;
	sroce_far_spread(a->qp);
	/* With headers: of RoCE v2 over IPv4, BTH, ICRC and RETH */
	rate = req->window * (MTU + 28 + 12 + 4 + 16) * 100ULL;
	KUNIT_EXPECT_EQ(test, rate / 16 * 17, req->far.pace.rate);
	/* It has become shorter, and nobody has measured that with the whole window */
	req->rtt.srtt = RTT / 100;
	sroce_far_spread(a->qp);
	KUNIT_EXPECT_EQ(test, 100 * rate / 16 * 17, req->far.pace.rate);
	req->rtt.min = RTT / 100;
	sroce_far_spread(a->qp);
	KUNIT_EXPECT_EQ(test, 0, req->far.pace.rate);
}

static struct kunit_case far_cases[] = {
	KUNIT_CASE(more_with_each_gap),
	KUNIT_CASE(parts_of_one_loss),
	KUNIT_CASE(one_round_trip),
	KUNIT_CASE(on_its_way_in_time),
	KUNIT_CASE(on_its_way_and_believed),
	KUNIT_CASE(dense_losses),
	KUNIT_CASE(lasting_loss),
	KUNIT_CASE(overtaken),
	KUNIT_CASE(spread),
	{}
};

static struct kunit_suite far_suite = {
	.name = "sroce_transport_far",
	.exit = pair_exit,
	.test_cases = far_cases,
};

kunit_test_suite(far_suite);
