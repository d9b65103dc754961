// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Responses that come before one that is missing: that they are kept, for how long what is
 * missing is waited for before it is asked for again, and that memory is as if all had come in
 * order.
 */
#include <kunit/test.h>
#include <linux/unaligned.h>

#include "tests/transport_pair.h"
#include "transport/early.h"
#include "transport/lateness.h"
#include "turn.h"

#define SRC 0x1000
/* Not where side_write() writes to */
#define DST 0xa0000
#define PACKETS 20
#define LEN (PACKETS * 256 - 7)
/* The one that is missing */
#define MISSING 5

static struct pair *early_pair(struct kunit *test, bool plain)
{
	const struct pair_config c = { .mtu = IB_MTU_256, .batch = 1, .plain = plain };

	return pair_create(test, &c);
}

static void post_read(struct side *a, u64 id)
{
	struct work w;

	side_fill(pair_peer(a), SRC, LEN, id);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, id, DST, SRC, LEN));
}

static void post_fetch_add(struct side *a, u64 id, u32 local)
{
	struct work w;

	work_init(&w, SROCE_WR_FETCH_ADD, id);
	work_local(a, &w, local, 8);
	work_atomic(a, &w, SRC, 1, 0);
	side_post(a, &w);
}

static void expect_read(struct side *a, u64 id)
{
	side_expect_send(a, id, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(a->pair->test, side_filled(a, DST, LEN, id));
}

/*
 * As if responses had come late before, so late that only the test's loop lets the time be up, also
 * for what is missing now
 */
static void waits_long(struct side *a)
{
	struct sroce_requester *req = &a->qp->req;
	u64 ns = 1000 * (u64)NSEC_PER_SEC;

	spin_lock_bh(&req->half.lock);
	req->early.lateness.wait = ns;
	if (req->ask_due)
		req->ask_at = ktime_get_ns() + ns;
	spin_unlock_bh(&req->half.lock);
}

/* A READ whose packets meet these rules */
static void late_read(struct side *a, struct rule *rules)
{
	waits_long(a);
	pair_rules(a->pair, rules);
	post_read(a, 1);
}

static void round_trip(struct side *a, u64 ns)
{
	a->qp->req.rtt.srtt = ns;
	a->qp->req.rtt.min = ns;
}

/* Nor does any other time pass but the test's */
static void no_timeout(struct side *a)
{
	a->qp->attr.timeout = 0;
	round_trip(a, 1000 * (u64)NSEC_PER_SEC);
}

/* Was a READ asked for from this PSN on? */
static bool was_asked(struct side *a, u32 psn)
{
	const struct fake_log *log;
	u32 i;

	for (i = 0; (log = side_sent_nth(a, SROCE_OP_READ, -1, i)); i++)
		if (log->psn == (psn & SROCE_PSN_MASK))
			return true;
	return false;
}

static void expect_waits(struct side *a)
{
	struct kunit *test = a->pair->test;

	KUNIT_EXPECT_TRUE(test, a->qp->req.early.open);
	KUNIT_EXPECT_EQ(test, 0, a->pair->expired);
}

static u32 asked_again(struct side *a)
{
	return side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR);
}

static void expect_nothing_left(struct side *a)
{
	struct kunit *test = a->pair->test;

	pair_settle(a->pair);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.early.held.n);
	KUNIT_EXPECT_FALSE(test, a->qp->req.early.open);
	KUNIT_EXPECT_FALSE(test, a->qp->req.early.acked);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.rd_outstanding);
	KUNIT_EXPECT_EQ(test, 0, a->pair->expired);
	side_expect_none(a);
}

/* The first time it is asked for at once; that it comes twice then tells that it was late */
static void first_is_asked_for(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 1, FAKE_HOLD), {}
	};
	const struct sroce_early *early = &a->qp->req.early;

	pair_rules(p, rules);
	post_read(a, 1);
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	KUNIT_EXPECT_EQ(test, 0, early->lateness.wait);
	KUNIT_EXPECT_TRUE(test, early->lateness.asked);
	fake_net_release(&p->net);
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, early->lateness.asked);
	if (early->lateness.took < SROCE_LATE_MOST_NS)
		KUNIT_EXPECT_GE(test, early->lateness.wait, early->lateness.took);
	expect_nothing_left(a);
}

/* Also where there were several: what the first one has told counts */
static void first_of_several_is_asked_for(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + MISSING, 1, FAKE_HOLD),
		rule_psn(b, SROCE_OP_READ_RESP, psn + MISSING + 4, 1, FAKE_HOLD),
		rule_nth(b, SROCE_OP_READ_RESP, PACKETS - 1, 0, FAKE_HOLD), {}
	};
	const struct sroce_early *early = &a->qp->req.early;

	pair_rules(p, rules);
	post_read(a, 1);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, early->open && early->partly);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	expect_read(a, 1);
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, early->lateness.asked);
	if (early->lateness.took < SROCE_LATE_MOST_NS)
		KUNIT_EXPECT_GE(test, early->lateness.wait, early->lateness.took);
	expect_nothing_left(a);
}

/**
 * struct way - how responses may come to be late
 * @name: for messages
 * @config: of the pair
 * @short_turns: others run after each train
 * @sqd: the send queue is drained meanwhile
 */
struct way {
	const char *name;
	struct pair_config config;
	bool short_turns;
	bool sqd;
};

#define LATE .mtu = IB_MTU_256, .batch = 1

static const struct way ways[] = {
	{ "one by one", { LATE } },
	{ "in trains", { .mtu = IB_MTU_256, .batch = 8 } },
	{ "PSNs come round", { LATE, .psn = SROCE_PSN_MASK - 7 } },
	{ "PSNs come round behind the missing one", { LATE, .psn = SROCE_PSN_MASK - MISSING } },
	{ "XRC", { LATE, .type = IB_QPT_XRC_INI } },
	{ "in short turns", { LATE }, .short_turns = true },
	{ "SQD", { LATE }, .sqd = true },
};

KUNIT_ARRAY_PARAM_DESC(way, ways, name);

/* One that is only late is waited for, and nothing is sent twice */
static void late_is_waited_for(struct kunit *test)
{
	const struct way *way = test->param_value;
	struct pair_config c = way->config;
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 1, FAKE_HOLD), {}
	};
	struct sroce_turn_limits limits = sroce_turn_limits;
	u32 i;

	late_read(a, rules);
	pair_deliver(p);
	expect_waits(a);
	KUNIT_EXPECT_TRUE(test, a->qp->req.ask_due);
	KUNIT_EXPECT_GT(test, a->qp->req.early.held.n, 0);
	if (way->sqd)
		side_to_sqd(a, true);
	if (way->short_turns)
		sroce_turn_limits.bytes = 2;
	fake_net_release(&p->net);
	/* What a turn leaves is done by somebody else, sooner or later */
	for (i = 0; i < 10000 && a->qp->req.early.held.n; i++)
		pair_deliver(p);
	expect_read(a, 1);
	sroce_turn_limits = limits;
	KUNIT_EXPECT_EQ(test, 0, asked_again(a));
	KUNIT_EXPECT_EQ(test, 1, side_sent(a, SROCE_OP_READ, -1));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_REORDERED));
	expect_nothing_left(a);
	KUNIT_EXPECT_EQ(test, way->sqd, side_events(a, IB_EVENT_SQ_DRAINED));
}

/* One that is lost is asked for when the time is up; in vain so often, and none waits any more */
static void lost_is_asked_for(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a), i;
	struct rule rules[] = { rule_psn(b, SROCE_OP_READ_RESP, psn + MISSING, 1, FAKE_DROP), {} };

	waits_long(a);
	for (i = 0; i < SROCE_LATE_VAIN_MOST; i++) {
		KUNIT_EXPECT_NE(test, 0, a->qp->req.early.lateness.wait);
		rules[0] = rule_psn(b, SROCE_OP_READ_RESP, psn + i * PACKETS + MISSING, 1,
				    FAKE_DROP);
		pair_rules(p, rules);
		post_read(a, i);
		expect_read(a, i);
		KUNIT_EXPECT_EQ(test, i + 1, asked_again(a));
		KUNIT_EXPECT_TRUE(test, was_asked(a, psn + i * PACKETS + MISSING));
	}
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.early.lateness.wait);
	expect_nothing_left(a);
}

/* What comes of the first stream when the time is up already is no second loss */
static void rest_of_the_stream(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + MISSING, 1, FAKE_DROP),
		rule_nth(b, SROCE_OP_READ_RESP, MISSING + 4, 0, FAKE_HOLD),
		rule_nth(a, SROCE_OP_READ, 1, 1, FAKE_HOLD), {}
	};

	late_read(a, rules);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, side_ask_again(a));
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	KUNIT_EXPECT_EQ(test, 2, side_sent(a, SROCE_OP_READ, -1));
	KUNIT_EXPECT_EQ(test, 1, a->qp->req.early.lateness.vain);
	expect_nothing_left(a);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RX_REORDERED));
}

/**
 * struct gap - two responses that are missing: one is late, one is lost
 * @name: for messages
 * @late: number of the packet
 * @lost: likewise
 */
struct gap {
	const char *name;
	u32 late;
	u32 lost;
};

static const struct gap gaps[] = {
	{ "apart", 3, 10 },
	{ "side by side", 3, 4 },
	{ "the last", 3, PACKETS - 2 },
};

KUNIT_ARRAY_PARAM_DESC(gap, gaps, name);

/* Of the second nothing else tells, when the first has come by itself */
static void second_gap(struct kunit *test)
{
	const struct gap *g = test->param_value;
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + g->late, 1, FAKE_HOLD),
		rule_psn(b, SROCE_OP_READ_RESP, psn + g->lost, 1, FAKE_DROP), {}
	};

	no_timeout(a);
	late_read(a, rules);
	pair_deliver(p);
	fake_net_release(&p->net);
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	KUNIT_EXPECT_TRUE(test, was_asked(a, psn + g->lost));
	KUNIT_EXPECT_EQ(test, 1, a->qp->req.early.lateness.vain);
	expect_nothing_left(a);
}

/* A long READ, of which two packets are lost; that the first is, is known, and it is asked for */
static struct pair *two_lost(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + 3, 1, FAKE_DROP),
		rule_psn(b, SROCE_OP_READ_RESP, psn + 10, 1, FAKE_DROP), {}
	};

	no_timeout(a);
	late_read(a, rules);
	pair_deliver(p);
	pair_rules(p, NULL);
	return p;
}

/* A repeated stream brings both. Nothing is asked for as long as it comes, however slowly */
static void repeated_stream(struct kunit *test)
{
	struct pair *p = two_lost(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_requester *req = &a->qp->req;
	u32 psn = side_first_psn(a);
	struct rule rules[] = { rule_nth(b, SROCE_OP_READ_RESP, 1, 0, FAKE_HOLD), {} };
	struct sroce_train t;
	u64 at;
	u32 i;

	pair_rules(p, rules);
	KUNIT_EXPECT_TRUE(test, side_ask_again(a));
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, (psn + 10) & SROCE_PSN_MASK, req->una_psn);
	KUNIT_EXPECT_TRUE(test, req->early.open && req->ask_due);
	pair_rules(p, NULL);
	/* The second that there is for that would be over before what the test waits for */
	req->early.from_at += 1000000 * (u64)NSEC_PER_SEC;
	for (i = 4; i < 7; i++) {
		at = req->ask_at;
		fsleep(10);
		t = side_train(b, SROCE_OP_READ_RESP, psn + i);
		side_inject(b, &t);
		pair_deliver(p);
		KUNIT_EXPECT_GT(test, req->ask_at, at);
	}
	/* A stranger's, or one that was repeated by the network, puts nothing off */
	at = req->ask_at;
	t = side_train(b, SROCE_OP_READ_RESP, psn + 2);
	side_inject(b, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, at, req->ask_at);
	/* Nor does anything when the second is over */
	req->early.from_at = 1;
	t = side_train(b, SROCE_OP_READ_RESP, psn + 4);
	side_inject(b, &t);
	pair_deliver(p);
	KUNIT_EXPECT_LT(test, req->ask_at, at);
	req->ask_at = at;
	fake_net_release(&p->net);
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	expect_nothing_left(a);
}

/* ... and if it has not brought the second one it is asked for */
static void lost_from_both_streams(struct kunit *test)
{
	const u32 lost = 10;
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + 3, 1, FAKE_DROP),
		rule_psn(b, SROCE_OP_READ_RESP, psn + lost, 2, FAKE_DROP), {}
	};

	no_timeout(a);
	late_read(a, rules);
	pair_deliver(p);
	/* What the repeated stream brings behind it was here before, and tells that at once */
	KUNIT_EXPECT_TRUE(test, side_ask_again(a));
	a->qp->req.early.lateness.wait = 0;
	pair_deliver(p);
	local_bh_disable();
	a->qp->req.timer.func(&a->qp->req.timer);
	local_bh_enable();
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 2, asked_again(a));
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 2, asked_again(a));
	KUNIT_EXPECT_TRUE(test, was_asked(a, psn + lost));
	expect_nothing_left(a);
}

/*
 * A gap that nothing has told of, but that the first of two has come by itself, is asked for. What
 * comes sooner than the peer can have answered is no second loss; what comes later is.
 */
static void rest_behind_a_found_gap(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule lose[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + 3, 1, FAKE_HOLD),
		rule_psn(b, SROCE_OP_READ_RESP, psn + 10, 1, FAKE_DROP),
		rule_psn(b, SROCE_OP_READ_RESP, psn + 12, 1, FAKE_DROP), {}
	};
	struct rule hold[] = { rule_nth(b, SROCE_OP_READ_RESP, 0, 0, FAKE_HOLD), {} };
	struct sroce_train t = side_train(b, SROCE_OP_READ_RESP, psn + 12);

	no_timeout(a);
	waits_long(a);
	pair_rules(p, lose);
	post_read(a, 1);
	pair_deliver(p);
	fake_net_release(&p->net);
	while (a->qp->req.una_psn != ((psn + 10) & SROCE_PSN_MASK))
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	waits_long(a);
	KUNIT_EXPECT_TRUE(test, a->qp->req.early.open);
	round_trip(a, 1000 * (u64)NSEC_PER_SEC);
	pair_rules(p, hold);
	KUNIT_EXPECT_TRUE(test, side_ask_again(a));
	pair_deliver(p);
	pair_rules(p, NULL);
	/* Nor does all depend on what comes later */
	KUNIT_EXPECT_TRUE(test, a->qp->req.ask_due);
	side_inject(b, &t);
	fake_net_settle(&p->net);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	round_trip(a, NSEC_PER_USEC);
	a->qp->req.ask_at = 1;
	t = side_train(b, SROCE_OP_READ_RESP, psn + 11);
	side_inject(b, &t);
	KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_EQ(test, 2, asked_again(a));
	fake_net_release(&p->net);
	expect_read(a, 1);
	expect_nothing_left(a);
}

/* The rest of the first stream in an order of its own is no second loss either */
static void rest_out_of_order(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a) + MISSING;
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn, 1, FAKE_DROP),
		rule_psn(b, SROCE_OP_READ_RESP, psn + 1, 1, FAKE_HOLD),
		rule_psn(b, SROCE_OP_READ_RESP, psn + 2, 1, FAKE_HOLD),
		rule_nth(a, SROCE_OP_READ, 1, 1, FAKE_DROP), {}
	};

	round_trip(a, 1000 * (u64)NSEC_PER_SEC);
	pair_rules(p, rules);
	post_read(a, 1);
	pair_deliver(p);
	fake_net_release(&p->net);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	KUNIT_EXPECT_EQ(test, PACKETS - MISSING - 1, a->qp->req.early.held.n);
	pair_rules(p, NULL);
	/* Its READ was lost: the peer is silent */
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, LEN, 1));
}

/* What a stream has brought that was repeated for another reason was not late */
static void repeated_before_that(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING + 1, 1, FAKE_DROP),
		rule_nth(b, SROCE_OP_READ_RESP, MISSING, 0, FAKE_HOLD), {}
	};

	late_read(a, rules);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 2, side_sent(a, SROCE_OP_READ, -1));
	fake_net_release(&p->net);
	pair_rules(p, NULL);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, LEN, 1));
	KUNIT_EXPECT_EQ(test, 2, side_sent(a, SROCE_OP_READ, -1));
	KUNIT_EXPECT_EQ(test, 0, asked_again(a));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RX_REORDERED));
}

/* An ACK that comes right behind the late one tells of no loss: what it misses is here */
static void ack_right_behind(struct kunit *test)
{
	const struct pair_config c = { .mtu = IB_MTU_256, .batch = 8 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 1, FAKE_HOLD),
		rule_nth(b, SROCE_OP_ACK, 0, 0, FAKE_HOLD), {}
	};

	late_read(a, rules);
	side_write(a, 2, 10);
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, a->qp->req.early.acked);
	fake_net_release(&p->net);
	expect_read(a, 1);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, asked_again(a));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_REORDERED));
	expect_nothing_left(a);
}

/* A NAK tells how far the peer has come, and need not come twice for that */
static void nak_is_remembered(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a) + PACKETS;
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn - 1, 1, FAKE_HOLD),
		rule_psn(a, SROCE_OP_WRITE, psn + 1, 1, FAKE_DROP),
		rule_nth(b, SROCE_OP_ACK, 0, 0, FAKE_DROP), {}
	};

	no_timeout(a);
	late_read(a, rules);
	side_write(a, 2, 10);
	side_write(a, 3, 10);
	pair_deliver(p);
	pair_rules(p, NULL);
	side_inject_ack(b, SROCE_AETH_NAK | SROCE_NAK_PSN_SEQ, psn + 1);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, a->qp->req.early.acked);
	fake_net_release(&p->net);
	pair_deliver(p);
	/* The other one may have been asked for by now, for that takes a moment only */
	KUNIT_EXPECT_GE(test, sroce_psn_diff(a->qp->req.una_psn, psn + 1), 0);
	expect_read(a, 1);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RETRANS_PACKETS));
	expect_nothing_left(a);
}

/* What finds no room comes again, with what is missing */
static void no_room(struct kunit *test)
{
	long usual = sroce_held_memory.most;
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 1, FAKE_DROP), {}
	};

	no_timeout(a);
	waits_long(a);
	sroce_held_memory.most = 8 * 1024;
	pair_rules(p, rules);
	post_read(a, 1);
	expect_read(a, 1);
	sroce_held_memory.most = usual;
	KUNIT_EXPECT_GT(test, side_count(a, SROCE_CNT_RX_HELD), 0);
	KUNIT_EXPECT_LT(test, side_count(a, SROCE_CNT_RX_HELD), PACKETS - MISSING - 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	expect_nothing_left(a);
}

/* A response acknowledges what was sent before its request, also one that had to wait */
static void acknowledges_before(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + PACKETS - 1, 1, FAKE_HOLD),
		rule_nth(b, SROCE_OP_ACK, 0, 0, FAKE_DROP), {}
	};

	no_timeout(a);
	late_read(a, rules);
	side_write(a, 2, 10);
	post_read(a, 3);
	pair_deliver(p);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	expect_read(a, 3);
	KUNIT_EXPECT_EQ(test, 0, asked_again(a));
	expect_nothing_left(a);
}

/*
 * A response that was kept and fits no request is not the peer's: it fails nothing, and the peer's,
 * for which it was taken, is asked for
 */
static void forged(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a), i;
	struct rule rules[MISSING + 1] = { rule_nth(a, SROCE_OP_READ, 0, 1, FAKE_HOLD) };
	struct sroce_train t = side_train(b, SROCE_OP_ATOMIC_ACK, psn + MISSING);

	for (i = 1; i < MISSING; i++)
		rules[i] = rule_psn(b, SROCE_OP_READ_RESP, psn + i - 1, 1, FAKE_HOLD);
	late_read(a, rules);
	side_inject(b, &t);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, a->qp->req.early.held.n);
	/* Nor is one kept that goes beyond what was sent */
	t = side_train(b, SROCE_OP_READ_RESP, psn + PACKETS - 1);
	t.npkts = 2;
	spin_lock_bh(&a->qp->req.half.lock);
	sroce_early_keep(a->qp, &t);
	spin_unlock_bh(&a->qp->req.half.lock);
	KUNIT_EXPECT_EQ(test, 1, a->qp->req.early.held.n);
	fake_net_release(&p->net);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, PACKETS - MISSING + 1, a->qp->req.early.held.n);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_DISCARDS));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	expect_nothing_left(a);
}

/* ERR leaves nothing */
static void error_drops(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 0, FAKE_DROP), {}
	};

	late_read(a, rules);
	side_write(a, 2, 10);
	pair_deliver(p);
	KUNIT_EXPECT_GT(test, a->qp->req.early.held.n, 0);
	KUNIT_EXPECT_TRUE(test, a->qp->req.early.acked);
	side_to_error(a);
	side_expect_send(a, 1, IB_WC_WR_FLUSH_ERR);
	side_expect_send(a, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.early.held.n);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.early.held.memory.bytes);
	pair_rules(p, NULL);
	pair_reconnect(p);
	KUNIT_EXPECT_FALSE(test, a->qp->req.early.acked);
	post_read(a, 3);
	expect_read(a, 3);
	expect_nothing_left(a);
}

/* ... as RESET does, and the end of a QP */
static void reset_drops(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 0, FAKE_DROP), {}
	};
	int i;

	for (i = 0; i < 2; i++) {
		waits_long(a);
		pair_rules(p, rules);
		post_read(a, 1);
		side_write(a, 2, 10);
		pair_deliver(p);
		KUNIT_EXPECT_GT(test, a->qp->req.early.held.n, 0);
		KUNIT_EXPECT_TRUE(test, a->qp->req.early.acked);
		if (i)
			break;
		pair_rules(p, NULL);
		pair_reconnect(p);
		KUNIT_EXPECT_EQ(test, 0, a->qp->req.early.held.memory.bytes);
		KUNIT_EXPECT_EQ(test, 0, a->qp->req.early.lateness.wait);
		post_read(a, 3);
		expect_read(a, 3);
		expect_nothing_left(a);
		pair_reconnect(p);
	}
	pair_exit(test);
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_held_memory.bytes));
}

/* Several, in two READs, and atomics behind */
static void several_are_late(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn, 1, FAKE_HOLD),
		rule_psn(b, SROCE_OP_READ_RESP, psn + PACKETS - 1, 1, FAKE_HOLD),
		rule_psn(b, SROCE_OP_ATOMIC_ACK, psn + PACKETS, 1, FAKE_HOLD), {}
	};

	late_read(a, rules);
	post_fetch_add(a, 2, DST + LEN + 1);
	post_fetch_add(a, 3, DST + LEN + 9);
	pair_deliver(p);
	expect_waits(a);
	side_expect_none(a);
	fake_net_release(&p->net);
	while (a->qp->req.una_psn == (psn & SROCE_PSN_MASK))
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	/* What is learned of the first is less, and time is real */
	waits_long(a);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	waits_long(a);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, LEN, 1));
	KUNIT_EXPECT_EQ(test, get_unaligned((u64 *)(a->mem + DST + LEN + 1)) + 1,
			get_unaligned((u64 *)(a->mem + DST + LEN + 9)));
	KUNIT_EXPECT_EQ(test, 0, asked_again(a));
	expect_nothing_left(a);
}

/* The ACK of what is behind the READ is not needed twice */
static void ack_is_remembered(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + PACKETS - 1, 1, FAKE_HOLD), {}
	};

	late_read(a, rules);
	side_write(a, 2, 10);
	pair_deliver(p);
	expect_waits(a);
	KUNIT_EXPECT_TRUE(test, a->qp->req.early.acked);
	fake_net_release(&p->net);
	expect_read(a, 1);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, asked_again(a));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RETRANS_PACKETS));
	expect_nothing_left(a);
}

/* Where it is switched off nothing is kept */
static void switched_off(struct kunit *test)
{
	struct pair *p = early_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 1, FAKE_DROP), {}
	};

	late_read(a, rules);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RX_HELD));
	expect_nothing_left(a);
}

/* What nobody comes for is dropped, and asked for again with what is missing */
static void too_old(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + MISSING, 1, FAKE_DROP), {}
	};
	struct sroce_early *early = &a->qp->req.early;
	int i;

	late_read(a, rules);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, PACKETS - MISSING - 1, early->held.n);
	for (i = 0; i < 2; i++) {
		local_bh_disable();
		early->timer.func(&early->timer);
		local_bh_enable();
	}
	KUNIT_EXPECT_EQ(test, 0, early->held.n);
	KUNIT_EXPECT_EQ(test, PACKETS - MISSING - 1, side_count(a, SROCE_CNT_RX_HELD_DROPS));
	expect_read(a, 1);
	KUNIT_EXPECT_EQ(test, 1, asked_again(a));
	expect_nothing_left(a);
}

/* What answers nothing is dropped when its turn comes, and what was never asked for at once */
static void answers_nothing(struct kunit *test)
{
	struct pair *p = early_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a), i;
	struct rule rules[] = { rule_psn(b, SROCE_OP_READ_RESP, psn, 1, FAKE_HOLD), {} };
	struct sroce_train t;

	late_read(a, rules);
	for (i = 2; i < 6; i++)
		side_write(a, i, 10);
	for (i = 0; i < 8; i++) {
		t = side_train(b, i & 1 ? SROCE_OP_ATOMIC_ACK : SROCE_OP_READ_RESP,
			       psn + PACKETS + i);
		side_inject(b, &t);
	}
	pair_deliver(p);
	KUNIT_EXPECT_LE(test, a->qp->req.early.held.n, PACKETS - 1 + 4);
	fake_net_release(&p->net);
	expect_read(a, 1);
	for (i = 2; i < 6; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	expect_nothing_left(a);
}

static struct kunit_case early_cases[] = {
	KUNIT_CASE(first_is_asked_for),
	KUNIT_CASE(first_of_several_is_asked_for),
	KUNIT_CASE_PARAM(late_is_waited_for, way_gen_params),
	KUNIT_CASE(lost_is_asked_for),
	KUNIT_CASE(rest_of_the_stream),
	KUNIT_CASE_PARAM(second_gap, gap_gen_params),
	KUNIT_CASE(repeated_stream),
	KUNIT_CASE(lost_from_both_streams),
	KUNIT_CASE(rest_behind_a_found_gap),
	KUNIT_CASE(rest_out_of_order),
	KUNIT_CASE(repeated_before_that),
	KUNIT_CASE(ack_right_behind),
	KUNIT_CASE(nak_is_remembered),
	KUNIT_CASE(no_room),
	KUNIT_CASE(acknowledges_before),
	KUNIT_CASE(forged),
	KUNIT_CASE(error_drops),
	KUNIT_CASE(reset_drops),
	KUNIT_CASE(several_are_late),
	KUNIT_CASE(ack_is_remembered),
	KUNIT_CASE(switched_off),
	KUNIT_CASE(too_old),
	KUNIT_CASE(answers_nothing),
	{}
};

static struct kunit_suite early_suite = {
	.name = "sroce_transport_early",
	.exit = pair_exit,
	.test_cases = early_cases,
};

kunit_test_suite(early_suite);
