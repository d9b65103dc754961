// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How much may be in flight after round trips and losses. The round trips are what the
 * test says, and not what packets took.
 */
#include "tests/transport_pair.h"
#include "transport/rtt.h"
#include "transport/window.h"

#define US 1000ULL
#define MS NSEC_PER_MSEC
#define MTU 1024
/* The first window, and the one that is tried whatever the round trip, in packets */
#define START (64 * 1024 / MTU)
#define TRIED (256 * 1024 / MTU)
#define MOST ((u32)SZ_16M / MTU)

static struct side *window_side(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_1024 };

	return &pair_create(test, &c)->side[0];
}

/* A round trip of @ns, in which so many packets were acknowledged; the test itself adds little */
static u32 arrived(struct side *s, u64 ns, u32 packets)
{
	struct sroce_requester *req = &s->qp->req;

	sroce_rtt_begin(&req->rtt, req->una_psn, ktime_get_ns() - ns);
	req->trial.una = sroce_psn_add(req->una_psn, -(s32)packets);
	req->growth.used = true;
	req->growth.again = false;
	req->growth.limited = true;
	sroce_window_acked(s->qp);
	return req->window;
}

/* All that the window had room for was acknowledged */
static u32 round_trip(struct side *s, u64 ns)
{
	return arrived(s, ns, s->qp->req.window);
}

static u32 loss(struct side *s, bool partly)
{
	sroce_window_lost(s->qp, partly);
	return s->qp->req.window;
}

/* A side that has lost something, and whose window is @window since */
static struct side *lossy_side(struct kunit *test, u64 min, u32 window)
{
	struct side *s = window_side(test);

	round_trip(s, min);
	loss(s, true);
	s->qp->req.window = window;
	return s;
}

/* While nothing is lost: doubled as long as packets do not queue, and up to a bound even then */
static void without_loss(struct kunit *test)
{
	struct side *s = window_side(test);

	KUNIT_EXPECT_EQ(test, START, s->qp->req.window);
	KUNIT_EXPECT_EQ(test, 2 * START, round_trip(s, 10 * MS));
	KUNIT_EXPECT_EQ(test, TRIED, round_trip(s, 50 * MS));
	KUNIT_EXPECT_EQ(test, TRIED, round_trip(s, 50 * MS));
	KUNIT_EXPECT_EQ(test, 2 * TRIED, round_trip(s, 15 * MS));
}

/* A long path: what is in flight arrives a round trip later, and twice as much each time */
static void faster_with_it(struct kunit *test)
{
	struct side *s = window_side(test);
	u32 window = START, before = START;
	int i;

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, min(2 * window, MOST), arrived(s, 10 * MS, before));
		before = window;
		window = min(2 * window, MOST);
	}
	/* It was worth it, and there is no more */
	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_EQ(test, MOST, arrived(s, 10 * MS, MOST));
}

/* A side that has found out that @packets in a round trip of @ns are all that there will be */
static struct side *enough_side(struct kunit *test, u64 ns, u32 packets)
{
	struct side *s = window_side(test);
	u32 most = 0;
	int i;

	for (i = 0; i < 20; i++)
		most = max(most, arrived(s, ns, packets));
	KUNIT_EXPECT_EQ(test, 8 * TRIED, most);
	return s;
}

/* A processor that is busy takes as long for each packet of any window */
static void no_faster_with_it(struct kunit *test)
{
	struct side *s = enough_side(test, MS, TRIED);
	int i;

	for (i = 0; i < 1000; i++)
		KUNIT_EXPECT_EQ(test, TRIED, arrived(s, MS, TRIED));
}

/* The path may be another one after a while */
static void tried_anew(struct kunit *test)
{
	struct side *s = enough_side(test, MS, TRIED);
	struct sroce_requester *req = &s->qp->req;
	u32 window = TRIED;

	req->trial.tried -= 11 * HZ;
	KUNIT_EXPECT_EQ(test, TRIED, arrived(s, 10 * MS, TRIED));
	req->growth.min = 10 * MS;
	while (window < MOST) {
		KUNIT_EXPECT_EQ(test, 2 * window, round_trip(s, 10 * MS));
		window *= 2;
	}
	pair_exit(test);

	/* ... but not so soon that it would cost something where a round trip is long */
	s = enough_side(test, 100 * MS, TRIED);
	req = &s->qp->req;
	req->trial.tried -= 50 * HZ;
	arrived(s, 100 * MS, TRIED);
	KUNIT_EXPECT_EQ(test, TRIED, arrived(s, 100 * MS, TRIED));
	req->trial.tried -= 60 * HZ;
	arrived(s, 100 * MS, TRIED);
	KUNIT_EXPECT_EQ(test, 2 * TRIED, arrived(s, 100 * MS, TRIED));
}

/* One round trip that tells nothing does not end it */
static void one_misleads(struct kunit *test)
{
	struct side *s = window_side(test);
	int i;

	s->qp->req.window = TRIED;
	for (i = 1; i <= 4; i++)
		KUNIT_EXPECT_EQ(test, (u32)TRIED << i,
				arrived(s, MS, i % 2 ? i * TRIED : 1));
}

/* What did not wait for the window says nothing about it */
static void unused_window(struct kunit *test)
{
	struct side *s = window_side(test);
	struct sroce_requester *req = &s->qp->req;

	sroce_rtt_begin(&req->rtt, req->una_psn, ktime_get_ns() - MS);
	req->growth.used = true;
	req->growth.limited = false;
	sroce_window_acked(s->qp);
	KUNIT_EXPECT_EQ(test, START, req->window);
}

static void grows_by_round_trip(struct kunit *test)
{
	struct side *s = lossy_side(test, 10 * MS, 320);

	/* No queue: by half */
	KUNIT_EXPECT_EQ(test, 480, round_trip(s, 10 * MS));
	/* Now and then packets are held up on a long way */
	round_trip(s, 23 * MS / 2);
	round_trip(s, 23 * MS / 2);
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, 480, round_trip(s, 23 * MS / 2));
	/* Again and again: forty are in a queue, which is little of a long way: by 2 KiB */
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, 322, round_trip(s, 23 * MS / 2));
	/* Twice as long is too long */
	KUNIT_EXPECT_EQ(test, 322, round_trip(s, 25 * MS));
	/* A small window grows all the same */
	s->qp->req.window = 5;
	KUNIT_EXPECT_EQ(test, 7, round_trip(s, 11 * MS));
}

/* Where much was lost before, a window comes near to that at once, and then grows by little */
static void grows_to_what_was_lost(struct kunit *test)
{
	struct side *s = lossy_side(test, 10 * MS, 300);

	s->qp->req.far.full = 400;
	KUNIT_EXPECT_EQ(test, 350, round_trip(s, 10 * MS));
	KUNIT_EXPECT_EQ(test, 352, round_trip(s, 10 * MS));
	/* What is lost there is lost because of that, and it is not to be more than that */
	KUNIT_EXPECT_EQ(test, 308, loss(s, true));
	KUNIT_EXPECT_EQ(test, 352, s->qp->req.far.full);
}

/* Where the way is short a shallow queue may be filled */
static void fills_a_shallow_queue(struct kunit *test)
{
	struct side *s = lossy_side(test, 200 * US, 320);

	KUNIT_EXPECT_EQ(test, 330, round_trip(s, 1500 * US));
	KUNIT_EXPECT_EQ(test, 330, round_trip(s, 3 * MS));
}

/* Somebody else's queue, or a peer that takes its time: after a while that is how it is here */
static void long_for_a_while(struct kunit *test)
{
	struct side *s = lossy_side(test, 50 * US, 4);
	int i;

	for (i = 0; i < 500 && round_trip(s, 5 * MS) == 4; i++)
		;
	KUNIT_EXPECT_GT(test, i, 50);
	KUNIT_EXPECT_LT(test, i, 400);
	KUNIT_EXPECT_EQ(test, 6, round_trip(s, 5 * MS));
	/* ... which is no reason to fill it */
	for (i = 0; i < 300; i++)
		round_trip(s, 5 * MS);
	KUNIT_EXPECT_EQ(test, START, s->qp->req.window);
}

struct cost {
	const char *name;
	u64 last;	/* round trips before the loss, in ns; the shortest one was 10 ms */
	int times;	/* so many of them */
	bool partly;
	u32 window;	/* that remains of 320 packets */
};

static const struct cost costs[] = {
	{ "no queue", 10 * MS, 1, true, 310 },
	{ "held up for a while", 12 * MS, 3, true, 310 },
	{ "a queue", 12 * MS, 4, true, 160 },
	{ "everything is sent again", 10 * MS, 1, false, 160 },
};

static void cost_name(const struct cost *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cost, costs, cost_name);

static void a_loss_costs(struct kunit *test)
{
	const struct cost *c = test->param_value;
	struct side *s = lossy_side(test, 10 * MS, 320);
	int i;

	for (i = 0; i < c->times; i++)
		round_trip(s, c->last);
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, c->window, loss(s, c->partly));
}

/* Whoever has doubled until now has overrun something */
static void the_first_loss(struct kunit *test)
{
	struct side *s = window_side(test);

	KUNIT_EXPECT_EQ(test, 2 * START, round_trip(s, 10 * MS));
	KUNIT_EXPECT_EQ(test, START, loss(s, true));
	pair_exit(test);

	/* It was large enough, and then something was lost */
	s = window_side(test);
	s->qp->req.window = 2 * TRIED;
	round_trip(s, 10 * MS);
	s->qp->req.growth.min = 5 * MS;
	KUNIT_EXPECT_EQ(test, 4 * TRIED, round_trip(s, 21 * MS / 2));
	KUNIT_EXPECT_EQ(test, 31 * TRIED / 8, loss(s, true));
}

/* Nothing is known of the way while each flight loses something */
static void losses_in_a_row(struct kunit *test)
{
	struct side *s = lossy_side(test, 10 * MS, 320);

	round_trip(s, 10 * MS);
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, 310, loss(s, true));
	KUNIT_EXPECT_EQ(test, 301, loss(s, true));
	KUNIT_EXPECT_EQ(test, 292, loss(s, true));
	KUNIT_EXPECT_EQ(test, 283, loss(s, true));
	KUNIT_EXPECT_EQ(test, 142, loss(s, true));
}

/* The peer has answered what it was sent again after @ns */
static u32 repair(struct side *s, u64 ns, bool goes_on)
{
	struct sroce_requester *req = &s->qp->req;

	req->repair.end = req->una_psn;
	req->repair.lossy = goes_on;
	sroce_window_repairs(req, req->una_psn, req->window);
	req->rtt.at -= ns;
	req->growth.limited = true;
	sroce_window_acked(s->qp);
	return req->window;
}

/* Where each flight loses something it is repairs that tell how long the way is */
static void repairs_measure(struct kunit *test)
{
	struct side *s = lossy_side(test, 10 * MS, 320);
	struct sroce_requester *req = &s->qp->req;

	KUNIT_EXPECT_EQ(test, 310, loss(s, true));
	KUNIT_EXPECT_EQ(test, 465, repair(s, 10 * MS, false));
	KUNIT_EXPECT_EQ(test, 0, req->growth.blind);
	/* Other gaps of the same flight are not repaired yet */
	KUNIT_EXPECT_EQ(test, 465, repair(s, 10 * MS, true));
	/* What was missing was late only */
	KUNIT_EXPECT_EQ(test, 697, repair(s, 10 * US, false));
	KUNIT_EXPECT_GE(test, req->rtt.min, 10 * MS);
	KUNIT_EXPECT_GE(test, req->queueing.last[req->queueing.turn], 10 * MS);
}

/* Where the way is short a queue is what loses packets, and full when it has */
static void repairs_nearby(struct kunit *test)
{
	struct side *s = lossy_side(test, 200 * US, 320);

	sroce_window_repairs(&s->qp->req, s->qp->req.una_psn, 320);
	KUNIT_EXPECT_FALSE(test, sroce_rtt_measures(&s->qp->req.rtt));
}

/* However much is lost, something can be sent again, and something else tell of it */
static void the_least(struct kunit *test)
{
	struct side *s = lossy_side(test, 10 * MS, 320);
	u32 before;
	int i;

	for (i = 0; i < 100; i++) {
		before = s->qp->req.window;
		KUNIT_EXPECT_TRUE(test, loss(s, true) < before || before == 4);
	}
	KUNIT_EXPECT_EQ(test, 4, s->qp->req.window);
	KUNIT_EXPECT_EQ(test, 4, loss(s, false));
}

/* A side that knows a queue which takes round trips from @min to 1300 us, with @window packets */
static struct side *queue_side(struct kunit *test, u64 min, u32 window)
{
	struct side *s = lossy_side(test, min, 320);
	int i;

	for (i = 0; i < SROCE_QUEUEING_LAST; i++)
		round_trip(s, 1300 * US);
	loss(s, true);
	s->qp->req.window = window;
	return s;
}

/* Many flows, of which each gives the others time to see that the queue is nearly full */
static void grows_by_little_near_the_end(struct kunit *test)
{
	struct side *s = queue_side(test, 100 * US, 8);
	int i;

	/* 96 bytes each time are a packet of 1024 after eleven times */
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, 8, round_trip(s, 1200 * US));
	KUNIT_EXPECT_EQ(test, 9, round_trip(s, 1200 * US));
	/* Few flows have much each: 256 packets are 2 more each time */
	s->qp->req.window = 256;
	s->qp->req.growth.part = 0;
	KUNIT_EXPECT_EQ(test, 258, round_trip(s, 1200 * US));
	/* Far from the end, where nothing can be lost, there is no need for that */
	s->qp->req.window = 256;
	KUNIT_EXPECT_EQ(test, 264, round_trip(s, 500 * US));
	s->qp->req.window = 256;
	KUNIT_EXPECT_EQ(test, 288, round_trip(s, 105 * US));
}

/* What is lost far from where the queue overflows was lost for another reason, at any round trip */
static void losses_far_from_the_end(struct kunit *test)
{
	struct side *s = queue_side(test, 100 * US, 320);

	round_trip(s, 800 * US);
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, 280, loss(s, true));
	pair_exit(test);

	s = queue_side(test, 100 * US, 320);
	round_trip(s, 1200 * US);
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, 160, loss(s, true));
}

/* Who comes to a queue that others fill takes 1 ms for the shortest round trip */
static void comes_late(struct kunit *test)
{
	struct side *s = queue_side(test, 1000 * US, 8);

	KUNIT_EXPECT_EQ(test, 8, round_trip(s, 1250 * US));
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, 160, loss(s, true));
}

/* A path that is as long as three quarters of that: one without a queue is not full for it */
static void path_is_long_beside_queue(struct kunit *test)
{
	struct side *s = queue_side(test, 1000 * US, 320);

	round_trip(s, 1050 * US);
	s->qp->req.window = 320;
	KUNIT_EXPECT_EQ(test, 280, loss(s, true));
}

/* How long a round trip is when it overflows changes: others come and go */
static void the_end_is_forgotten(struct kunit *test)
{
	struct side *s = queue_side(test, 100 * US, 320);
	int i;

	for (i = 0; i < 100; i++) {
		round_trip(s, 400 * US);
		s->qp->req.window = 320;
		if (loss(s, true) == 160)
			break;
	}
	KUNIT_EXPECT_GT(test, i, 8);
	KUNIT_EXPECT_LT(test, i, 30);
}

/* A fair share may be less than four packets, of which not even a part could be sent again */
static void less_than_four(struct kunit *test)
{
	struct side *s = queue_side(test, 100 * US, 8);
	int i;

	round_trip(s, 1250 * US);
	for (i = 0; i < 10; i++)
		loss(s, true);
	KUNIT_EXPECT_EQ(test, 1, s->qp->req.window);
	/* A loss of another kind makes it no larger */
	round_trip(s, 110 * US);
	s->qp->req.window = 2;
	KUNIT_EXPECT_EQ(test, 2, loss(s, true));
	KUNIT_EXPECT_EQ(test, 3, round_trip(s, 110 * US));
}

/* What comes as one train is lost as one, too */
static void small_trains_fill_a_queue(struct kunit *test)
{
	struct side *s = lossy_side(test, 100 * US, 320);

	KUNIT_EXPECT_EQ(test, U32_MAX, sroce_window_train(&s->qp->req));
	pair_exit(test);

	s = queue_side(test, 100 * US, 320);
	KUNIT_EXPECT_EQ(test, 40, sroce_window_train(&s->qp->req));
	s->qp->req.window = 3;
	KUNIT_EXPECT_EQ(test, 1, sroce_window_train(&s->qp->req));
}

/* Into a queue that others keep full one packet gets sooner than four */
static void nothing_comes_back(struct kunit *test)
{
	struct side *s = queue_side(test, 100 * US, 320);

	sroce_window_silent(s->qp);
	KUNIT_EXPECT_EQ(test, 320, s->qp->req.window);
	/* An answer in between: it is no silence */
	round_trip(s, 1300 * US);
	sroce_window_silent(s->qp);
	KUNIT_EXPECT_GE(test, s->qp->req.window, 320);
	sroce_window_silent(s->qp);
	KUNIT_EXPECT_EQ(test, 1, s->qp->req.window);
	pair_exit(test);

	/* Who has never heard anything */
	s = window_side(test);
	sroce_window_silent(s->qp);
	sroce_window_silent(s->qp);
	KUNIT_EXPECT_EQ(test, 1, s->qp->req.window);
	pair_exit(test);

	/* A long path that is away: all that was in flight is to be sent again soon */
	s = lossy_side(test, 10 * MS, 320);
	sroce_window_silent(s->qp);
	sroce_window_silent(s->qp);
	KUNIT_EXPECT_EQ(test, 320, s->qp->req.window);
}

/* One round trip that was held up when something was lost tells of no queue */
static void one_that_was_held_up(struct kunit *test)
{
	struct side *s = lossy_side(test, 100 * US, 320);

	round_trip(s, 1300 * US);
	loss(s, true);
	KUNIT_EXPECT_EQ(test, U32_MAX, sroce_window_train(&s->qp->req));
}

/* A lost tail that was asked after is no path that has become so long, at first */
static void asked_after(struct kunit *test)
{
	struct side *s = window_side(test);
	struct sroce_requester *req = &s->qp->req;
	int i;

	for (i = 0; i < 50; i++)
		round_trip(s, MS);
	sroce_rtt_begin(&req->rtt, req->una_psn, ktime_get_ns() - 100 * MS);
	req->growth.probed = true;
	sroce_window_acked(s->qp);
	KUNIT_EXPECT_LE(test, req->rtt.srtt, 5 * MS / 4);
	KUNIT_EXPECT_LE(test, req->rtt.rttvar, MS);
	/* ... but in the end it is believed */
	for (i = 0; i < 100; i++) {
		sroce_rtt_begin(&req->rtt, req->una_psn, ktime_get_ns() - 100 * MS);
		req->growth.probed = true;
		sroce_window_acked(s->qp);
	}
	KUNIT_EXPECT_GE(test, req->rtt.srtt, 80 * MS);
}

/* A window of one packet is enough to come to an end, and to grow */
static void one_packet(struct kunit *test)
{
	struct pair_config c = { .window = 1 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];

	a->qp->req.growth.lossy = true;
	side_write(a, 1, 100 * MTU);
	side_expect_written(a, 1, 100 * MTU);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_GT(test, a->qp->req.window, 1);
}

/* One READ at a time: when it asks for all of the window, that is what holds it back */
static void one_read_at_a_time(struct kunit *test)
{
	struct pair_config c = { .rd_atomic = 1, .window = 16 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct work w;

	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, SIDE_TO, SIDE_FROM, 100 * MTU));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_GT(test, a->qp->req.window, 16);
}

static struct kunit_case window_cases[] = {
	KUNIT_CASE(without_loss),
	KUNIT_CASE(faster_with_it),
	KUNIT_CASE(no_faster_with_it),
	KUNIT_CASE(tried_anew),
	KUNIT_CASE(one_misleads),
	KUNIT_CASE(unused_window),
	KUNIT_CASE(grows_by_round_trip),
	KUNIT_CASE(grows_to_what_was_lost),
	KUNIT_CASE(fills_a_shallow_queue),
	KUNIT_CASE(long_for_a_while),
	KUNIT_CASE_PARAM(a_loss_costs, cost_gen_params),
	KUNIT_CASE(the_first_loss),
	KUNIT_CASE(losses_in_a_row),
	KUNIT_CASE(repairs_measure),
	KUNIT_CASE(repairs_nearby),
	KUNIT_CASE(the_least),
	KUNIT_CASE(grows_by_little_near_the_end),
	KUNIT_CASE(losses_far_from_the_end),
	KUNIT_CASE(comes_late),
	KUNIT_CASE(path_is_long_beside_queue),
	KUNIT_CASE(the_end_is_forgotten),
	KUNIT_CASE(less_than_four),
	KUNIT_CASE(small_trains_fill_a_queue),
	KUNIT_CASE(nothing_comes_back),
	KUNIT_CASE(one_that_was_held_up),
	KUNIT_CASE(asked_after),
	KUNIT_CASE(one_packet),
	KUNIT_CASE(one_read_at_a_time),
	{}
};

static struct kunit_suite window_suite = {
	.name = "sroce_transport_window",
	.exit = pair_exit,
	.test_cases = window_cases,
};

kunit_test_suite(window_suite);
