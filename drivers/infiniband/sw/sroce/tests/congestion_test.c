// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rate that congestion leaves to a QP: how it is worked out, with a clock that the
 * test sets; and that QPs keep to it, whatever they send.
 */
#include "tests/transport_pair.h"
#include "transport/reaction.h"

#define SRC 0x1003
#define DST 0x80005
#define GRH 40
#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC

/* 1 Gbit/s, in bytes per second */
#define GBIT 125000000ULL
#define MBIT_S (GBIT / 1000)
#define RTT (100 * US)
#define PACKET 1100

/* --- the arithmetic ------------------------------------------------------------ */

/**
 * struct world - a QP that sends at a rate, and its clock
 * @set: settings
 * @at: circumstances
 * @r: rate
 */
struct world {
	struct sroce_congestion set;
	struct sroce_reaction_at at;
	struct sroce_reaction r;
};

static void world_begin(struct world *w)
{
	*w = (struct world){
		.set = pair_congestion,
		.at = { .set = &w->set, .now = 5 * NSEC_PER_SEC, .rtt = RTT,
			.packet = PACKET, .sent = -1000UL },
	};
}

/* So much time passes; it sends as much as the rate, or else the link, lets it */
static void world_send(struct world *w, u64 ns, u64 link)
{
	u64 rate = w->r.limited ? min(w->r.rate, link) : link;

	w->at.now += ns;
	w->at.sent += div_u64(rate * ns, NSEC_PER_SEC);
	if (w->r.limited)
		sroce_reaction_advance(&w->r, &w->at);
}

static bool world_cut(struct world *w)
{
	return sroce_reaction_cut(&w->r, &w->at);
}

/* The first notification begins a measurement, the next one a rate; the PSNs are in flight then */
static void world_meet_with(struct kunit *test, struct world *w, u32 una, u32 psn)
{
	world_begin(w);
	w->at.una = una;
	w->at.psn = psn;
	KUNIT_EXPECT_FALSE(test, world_cut(w));
	world_send(w, 500 * US, GBIT);
	KUNIT_ASSERT_TRUE(test, world_cut(w));
	KUNIT_ASSERT_TRUE(test, w->r.limited);
}

static void world_meet(struct kunit *test, struct world *w)
{
	world_meet_with(test, w, 0, 0);
}

static void expect_near(struct kunit *test, u64 got, u64 want)
{
	KUNIT_EXPECT_GE(test, got, want - want / 50);
	KUNIT_EXPECT_LE(test, got, want + want / 50);
}

/* Half of what was sent: alpha is 1 when nothing is known */
static void begins_with_what_was_sent(struct kunit *test)
{
	struct world w;

	world_meet(test, &w);
	expect_near(test, w.r.rate, GBIT / 2);
	expect_near(test, w.r.target, GBIT);

	world_begin(&w);
	w.set.rp_rate_to_set_on_first_cnp = 100;
	world_cut(&w);
	world_send(&w, 500 * US, GBIT);
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
	KUNIT_EXPECT_EQ(test, 12500000, w.r.rate);
}

/* What was sent long ago, or just now, says nothing; nor does nothing */
static void needs_a_measurement(struct kunit *test)
{
	struct world w;

	world_begin(&w);
	KUNIT_EXPECT_FALSE(test, world_cut(&w));
	world_send(&w, 50 * US, GBIT);
	KUNIT_EXPECT_FALSE(test, world_cut(&w));
	world_send(&w, NSEC_PER_SEC, GBIT);
	KUNIT_EXPECT_FALSE(test, world_cut(&w));
	w.at.now += MS;
	KUNIT_EXPECT_FALSE(test, world_cut(&w));
	KUNIT_EXPECT_FALSE(test, w.r.limited);
	world_send(&w, MS, GBIT);
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
}

/* A hundred notifications for one queue are one */
static void one_cut_in_a_round_trip(struct kunit *test)
{
	struct world w;
	u64 rate;
	int i;

	world_meet(test, &w);
	rate = w.r.rate;
	for (i = 0; i < 9; i++) {
		world_send(&w, 10 * US, GBIT);
		KUNIT_EXPECT_FALSE(test, world_cut(&w));
	}
	KUNIT_EXPECT_EQ(test, rate, w.r.rate);
	world_send(&w, 10 * US, GBIT);
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
	KUNIT_EXPECT_LT(test, w.r.rate, rate);
	/* Nor is a QP cut that has sent nothing since */
	w.at.now += MS;
	KUNIT_EXPECT_FALSE(test, world_cut(&w));
}

/*
 * A queue is longer than the round trip that was measured before it was there: whoever tells
 * of packets that were sent before the last cut tells nothing new.
 */
static void one_cut_for_what_flies(struct kunit *test)
{
	struct world w;
	u64 rate;
	int i;

	world_meet_with(test, &w, 0xffff00, 0xffffff);
	w.at.psn = 0x000100;
	for (i = 0; i < 7; i++) {
		w.at.una += 0x20;
		world_send(&w, 5 * RTT, GBIT);
		KUNIT_EXPECT_FALSE(test, world_cut(&w));
	}
	/* All that was in flight has arrived, and some that was not */
	w.at.una = 0;
	rate = w.r.rate;
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
	KUNIT_EXPECT_LT(test, w.r.rate, rate);
	/* Nobody waits for an ACK for ever */
	world_send(&w, 5 * MS, GBIT);
	KUNIT_EXPECT_FALSE(test, world_cut(&w));
	world_send(&w, 6 * MS, GBIT);
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
}

/* Nor is it known what a cut was good for before something sent after it has arrived */
static void no_rise_for_what_flies(struct kunit *test)
{
	struct world w;
	u64 rate;
	int i;

	world_meet_with(test, &w, 0, 0x100);
	rate = w.r.rate;
	/* The queue takes 9 ms, and the round trip that was measured is 0.1 */
	for (i = 0; i < 9; i++) {
		w.at.psn += 0x10;
		w.at.una += 0x10;
		world_send(&w, MS, GBIT);
		KUNIT_EXPECT_EQ(test, rate, w.r.rate);
	}
	w.at.una = 0x100;
	world_send(&w, 300 * US, GBIT);
	KUNIT_EXPECT_GT(test, w.r.rate, rate);
	/* Where nothing is acknowledged that is not waited for */
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
	rate = w.r.rate;
	world_send(&w, 10 * MS, GBIT);
	KUNIT_EXPECT_EQ(test, rate, w.r.rate);
	world_send(&w, MS, GBIT);
	KUNIT_EXPECT_GT(test, w.r.rate, rate);
}

/* Seldom notifications cut little, and never more than half at a time */
static void alpha_is_how_often(struct kunit *test)
{
	struct world w;
	u64 rate;
	int i;

	world_meet(test, &w);
	for (i = 0; i < 100; i++) {
		rate = w.r.rate;
		world_send(&w, RTT, GBIT);
		world_cut(&w);
		KUNIT_EXPECT_GE(test, w.r.rate, rate / 2 - 1);
	}
	KUNIT_EXPECT_GE(test, w.r.alpha, SROCE_ALPHA_ONE * 9 / 10);
	w.set.rp_time_reset = 1000000;
	for (i = 0; i < 100; i++)
		world_send(&w, RTT, GBIT);
	KUNIT_EXPECT_LE(test, w.r.alpha, SROCE_ALPHA_ONE / 100);
	/* So many cuts have left the least rate, from where no cut would be seen */
	w.r.rate = GBIT / 2;
	w.r.speed = GBIT;
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
	KUNIT_EXPECT_GE(test, w.r.rate, GBIT / 200 * 99);
	world_send(&w, RTT, GBIT);
	w.r.rate = GBIT / 2;
	w.r.speed = GBIT;
	w.set.rp_min_dec_fac = 90;
	w.r.alpha = SROCE_ALPHA_ONE;
	rate = w.r.rate;
	KUNIT_EXPECT_TRUE(test, world_cut(&w));
	KUNIT_EXPECT_GE(test, w.r.rate, rate / 100 * 89);
}

/* Notifications without end leave one packet in 10 ms, or what is set */
static void never_below_the_floor(struct kunit *test)
{
	struct world w;
	int i;

	world_meet(test, &w);
	for (i = 0; i < 1000; i++) {
		world_send(&w, RTT, GBIT);
		w.at.sent += 1;
		world_cut(&w);
		KUNIT_ASSERT_GE(test, w.r.rate, PACKET * 100);
	}
	KUNIT_EXPECT_LE(test, w.r.rate, 2 * PACKET * 100);
	w.set.rp_min_rate = 10;
	world_send(&w, RTT, GBIT);
	w.at.sent += 1;
	world_cut(&w);
	KUNIT_EXPECT_GE(test, w.r.rate, 1250000);
}

/* Once; the QP makes use of all that it may */
static void world_rise(struct world *w)
{
	w->at.now += 300 * US;
	w->at.sent += 2 * 300 * GBIT / 1000000;
	sroce_reaction_advance(&w->r, &w->at);
}

/* Half of the way back each time, then beyond, then ever faster */
static void rises_in_three_ways(struct kunit *test)
{
	u64 left, target;
	struct world w;
	int i;

	world_meet(test, &w);
	target = w.r.target;
	left = target - w.r.rate;
	for (i = 0; i < 5; i++) {
		world_rise(&w);
		KUNIT_EXPECT_EQ(test, target, w.r.target);
		left /= 2;
		expect_near(test, w.r.rate, target - left);
	}
	world_rise(&w);
	left = w.r.target - target;
	expect_near(test, left, 5 * MBIT_S);
	for (i = 0; i < 19; i++)
		world_rise(&w);
	KUNIT_EXPECT_EQ(test, w.r.target, target + 20 * left);
	for (i = 0; i < 3; i++)
		world_rise(&w);
	/* Ten times as much would be too much at 2 Gbit/s */
	KUNIT_EXPECT_GE(test, w.r.target, target + (20 + 3 * 6) * left);
	KUNIT_EXPECT_LE(test, w.r.target, target + 20 * left + 3 * w.r.speed / 64);
}

/* Without ticks: who looks seldom sees what he would have seen */
static void catches_up(struct kunit *test)
{
	struct world often, seldom;
	int i;

	world_meet(test, &often);
	world_meet(test, &seldom);
	for (i = 0; i < 2400; i++)
		world_send(&often, US, GBIT / 2);
	world_send(&seldom, 2400 * US, GBIT / 2);
	expect_near(test, seldom.r.rate, often.r.rate);
	/* (decays, too, in whole round trips) */
	expect_near(test, seldom.r.alpha, often.r.alpha);
}

/* Two that share a link come to the same, whatever they began with */
static void becomes_fair(struct kunit *test)
{
	struct world w[2];
	u64 queue = 0;
	int i, k;

	world_meet(test, &w[0]);
	world_meet(test, &w[1]);
	w[1].r.rate = GBIT / 20;
	w[1].r.target = GBIT / 20;
	for (i = 0; i < 20000; i++) {
		for (k = 0; k < 2; k++) {
			world_send(&w[k], RTT, GBIT);
			queue += div_u64(w[k].r.rate * RTT, NSEC_PER_SEC);
		}
		queue -= min(queue, div_u64(GBIT * RTT, NSEC_PER_SEC));
		for (k = 0; k < 2 && queue > 30000; k++)
			world_cut(&w[k]);
	}
	KUNIT_EXPECT_GE(test, w[1].r.rate, w[0].r.rate * 8 / 10);
	KUNIT_EXPECT_LE(test, w[1].r.rate, w[0].r.rate * 12 / 10);
	KUNIT_EXPECT_GE(test, w[0].r.rate + w[1].r.rate, GBIT * 8 / 10);
}

/* A rate above what the QP sends is none; nor is one that nobody has used for long */
static void ends(struct kunit *test)
{
	struct world w;
	int i;

	world_meet(test, &w);
	for (i = 0; i < 300; i++)
		world_send(&w, 300 * US, GBIT);
	/* It does not run away meanwhile */
	KUNIT_EXPECT_TRUE(test, w.r.limited);
	KUNIT_EXPECT_LE(test, w.r.rate, GBIT * 12 / 10);
	for (i = 0; i < 50; i++)
		world_send(&w, 300 * US, GBIT);
	KUNIT_EXPECT_FALSE(test, w.r.limited);

	world_meet(test, &w);
	w.set.rp_max_rate = 990;
	for (i = 0; i < 20 && w.r.limited; i++)
		world_send(&w, 300 * US, GBIT);
	KUNIT_EXPECT_FALSE(test, w.r.limited);

	world_meet(test, &w);
	world_send(&w, 999 * MS, 0);
	/* It was sending, but nothing */
	w.r.limited = true;
	world_send(&w, 1001 * MS, 0);
	KUNIT_EXPECT_FALSE(test, w.r.limited);
}

/* Whatever is set, whenever: there is a rate, and an end of the arithmetic */
static void bears_any_setting(struct kunit *test)
{
	static const u32 values[] = { 0, 1, 1023, U32_MAX };
	struct rnd_state rnd;
	struct world w;
	u32 *v;
	int i;

	prandom_seed_state(&rnd, 14);
	world_meet(test, &w);
	for (i = 0; i < 20000; i++) {
		v = (u32 *)&w.set + prandom_u32_state(&rnd) %
		    (sizeof(w.set) / sizeof(u32));
		*v = values[prandom_u32_state(&rnd) % ARRAY_SIZE(values)];
		w.at.rtt = prandom_u32_state(&rnd) % 3 * 400 * US;
		world_send(&w, prandom_u32_state(&rnd) % 3000000,
			   prandom_u32_state(&rnd));
		/* Another processor's clock is read earlier */
		w.at.now -= prandom_u32_state(&rnd) % 1000;
		world_cut(&w);
		if (!w.r.limited)
			continue;
		KUNIT_ASSERT_GE(test, w.r.rate, PACKET * 100);
		KUNIT_ASSERT_LE(test, w.r.rate, 1ULL << 40);
		KUNIT_ASSERT_LE(test, w.r.alpha, SROCE_ALPHA_ONE);
	}
}

/* --- a queue that marks ------------------------------------------------------------ */

#define QUEUE_STEP (25 * US)
/* Bytes that leave the queue in a step */
#define QUEUE_OUT ((u32)(GBIT / (NSEC_PER_SEC / QUEUE_STEP)))
/* Marked from here on: 240 us of it */
#define QUEUE_MARK 30000
#define QUEUE_SENDERS 16
/* Bytes that each may have in it */
#define QUEUE_WINDOW (256 * 1024)
/* A notification is back after so many steps: a round trip without the queue */
#define QUEUE_BACK (RTT / QUEUE_STEP)

/**
 * struct sender - one of those who share a queue
 * @w: its rate
 * @told_at: when the receiver has notified it last
 * @told: notifications under way
 * @sent: bytes in the second that counts
 */
struct sender {
	struct world w;
	u64 told_at;
	bool told[QUEUE_BACK];
	u64 sent;
};

/**
 * struct queue - of 1 Gbit/s, that marks
 * @bytes: in it
 * @steps: of time that have passed
 * @out: bytes that have left
 * @longest: most that there was
 * @n: senders
 * @s: senders
 */
struct queue {
	u64 bytes;
	u32 steps;
	u64 out;
	u64 longest;
	u32 n;
	struct sender s[QUEUE_SENDERS];
};

/*
 * What a sender would send if it had no rate: all of them together twice what the link takes,
 * while its window has room
 */
static u64 sender_most(const struct queue *q)
{
	return q->bytes / q->n < QUEUE_WINDOW ? 2 * GBIT / q->n : 0;
}

static void sender_step(struct queue *q, struct sender *s)
{
	bool *told = &s->told[q->steps % QUEUE_BACK];
	struct world *w = &s->w;
	unsigned long before = w->at.sent;

	w->at.rtt = RTT + div_u64(q->bytes * NSEC_PER_SEC, GBIT);
	world_send(w, QUEUE_STEP, sender_most(q));
	if (*told)
		world_cut(w);
	*told = q->bytes > QUEUE_MARK && w->at.now - s->told_at >= 50 * US;
	if (*told)
		s->told_at = w->at.now;
	s->sent += w->at.sent - before;
	q->bytes += w->at.sent - before;
}

static void queue_step(struct queue *q)
{
	u64 out;
	u32 i;

	/* Nobody is always the last, who finds most of the queue before him */
	for (i = 0; i < q->n; i++)
		sender_step(q, &q->s[(q->steps + i) % q->n]);
	out = min_t(u64, q->bytes, QUEUE_OUT);
	q->bytes -= out;
	q->out += out;
	q->longest = max(q->longest, q->bytes);
	q->steps++;
}

static void queue_pass(struct queue *q, u64 ns)
{
	u32 steps = div_u64(ns, QUEUE_STEP), i;

	q->out = 0;
	q->longest = 0;
	for (i = 0; i < q->n; i++)
		q->s[i].sent = 0;
	for (i = 0; i < steps; i++)
		queue_step(q);
}

/* Jain's index of what each has sent, in per cent */
static u64 queue_fairness(const struct queue *q)
{
	u64 sum = 0, squares = 0, kib;
	u32 i;

	for (i = 0; i < q->n; i++) {
		kib = q->s[i].sent / 1024;
		sum += kib;
		squares += kib * kib;
	}
	return div64_u64(100 * sum * sum, q->n * squares);
}

struct load {
	const char *name;
	u32 n;
};

static const struct load loads[] = {
	{ "one sender", 1 },
	{ "four senders", 4 },
	{ "sixteen senders", 16 },
};

static void load_name(const struct load *l, char *desc)
{
	strscpy(desc, l->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(load, loads, load_name);

/*
 * With the settings of a new device the link is used, the queue is short, and all get the same.
 * (The queue is longest just after a rate was too high for a round trip; one sender's is then
 * more than twice what is marked.)
 */
static void fills_the_link(struct kunit *test)
{
	const struct load *l = test->param_value;
	struct queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, q);
	q->n = l->n;
	for (i = 0; i < q->n; i++) {
		world_begin(&q->s[i].w);
		q->s[i].w.set.rp_threshold = 1;
		/* They do not begin together */
		q->s[i].w.at.now += i * 10 * US;
	}
	queue_pass(q, 200 * MS);
	queue_pass(q, NSEC_PER_SEC);
	KUNIT_EXPECT_GE(test, q->out, GBIT * 94 / 100);
	KUNIT_EXPECT_LE(test, q->longest, 3 * QUEUE_MARK);
	KUNIT_EXPECT_GE(test, queue_fairness(q), 95);
}

/* --- QPs ------------------------------------------------------------------------- */

/* 64 packets at the rate that a first notification sets, 16 Mbit/s, are 34 ms */
#define MBIT 16
#define PACKETS 64
#define LEAST_US 30000

static struct pair *congestion_pair(struct kunit *test, enum ib_qp_type type)
{
	struct pair_config c = { .type = type };
	struct pair *p = pair_create(test, &c);
	struct sroce_congestion *set;
	int i;

	for (i = 0; i < 2; i++) {
		set = &p->side[i].port.net.congestion;
		*set = pair_congestion;
		set->rp_rate_to_set_on_first_cnp = MBIT;
		/* It stays there as long as a test takes, also if that is long */
		set->rp_time_reset = 1000000;
		set->rp_ai_rate = 1000;
	}
	return p;
}

static void notify(struct side *s)
{
	struct sroce_train t = {
		.op = SROCE_OP_NOTIFY,
		.service = SROCE_CNP,
		.pkey = 0xffff,
		.npkts = 1,
		.dqpn = s->qp->qpn,
	};

	side_inject(pair_peer(s), &t);
	pair_deliver(s->pair);
}

static void post_message(struct side *s, u8 op, u32 len)
{
	struct side *to = pair_peer(s);
	struct work w;

	if (op == SROCE_WR_RDMA_READ) {
		side_post(s, work_rdma(s, &w, op, 1, SRC, DST, len));
		return;
	}
	side_recv(to, 2, DST, GRH + len);
	work_send(s, &w, 1, SRC, len);
	if (s->qp->type == IB_QPT_UD) {
		w.wqe.ud.ahn = PAIR_AHN;
		w.wqe.ud.remote_qpn = to->qp->qpn;
	}
	side_post(s, &w);
}

/* Return: how long so many packets took, in us */
static u64 message_took(struct side *s, u8 op, u32 packets)
{
	u32 mtu = s->pair->mtu;
	u32 n = s->qp->type == IB_QPT_UD ? packets : 1;
	u64 begin = ktime_get_ns();
	u32 i;

	for (i = 0; i < n; i++)
		post_message(s, op, packets / n * mtu);
	for (i = 0; i < n; i++)
		side_expect_send(s, 1, IB_WC_SUCCESS);
	pair_deliver(s->pair);
	begin = div_u64(ktime_get_ns() - begin, NSEC_PER_USEC);
	for (i = 0; op == SROCE_WR_SEND && i < n; i++)
		side_expect_recv(pair_peer(s), 2, IB_WC_SUCCESS);
	return begin;
}

/* @sender's packets have met congestion while @by had something done by @op */
static void meet_congestion(struct side *sender, struct side *by, u8 op)
{
	struct kunit *test = sender->pair->test;
	u64 first = side_count(sender, SROCE_CNT_RP_CNP_HANDLED);
	int tries;

	for (tries = 0; tries < 50 && !sender->qp->congested; tries++) {
		notify(sender);
		message_took(by, op, 8);
		fsleep(500);
	}
	KUNIT_ASSERT_TRUE(test, sender->qp->congested);
	KUNIT_EXPECT_EQ(test, tries,
			side_count(sender, SROCE_CNT_RP_CNP_HANDLED) - first);
	KUNIT_EXPECT_EQ(test, 0, side_count(sender, SROCE_CNT_RP_CNP_IGNORED));
}

static void slows_down(struct kunit *test, enum ib_qp_type type)
{
	struct pair *p = congestion_pair(test, type);
	struct side *a = &p->side[0];

	meet_congestion(a, a, SROCE_WR_SEND);
	KUNIT_EXPECT_GE(test, message_took(a, SROCE_WR_SEND, PACKETS), LEAST_US);
	KUNIT_EXPECT_FALSE(test, pair_peer(a)->qp->congested);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	/* Nobody waits for a rate that was switched off */
	a->port.net.congestion.rp_enable = 0;
	message_took(a, SROCE_WR_SEND, 1);
	KUNIT_EXPECT_FALSE(test, a->qp->congested);
}

static void connected_slows_down(struct kunit *test)
{
	slows_down(test, IB_QPT_RC);
}

static void unacknowledged_slows_down(struct kunit *test)
{
	slows_down(test, IB_QPT_UC);
}

static void datagrams_slow_down(struct kunit *test)
{
	slows_down(test, IB_QPT_UD);
}

/* It is the responder that a notification for READ responses is for */
static void responses_slow_down(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 len = PACKETS * p->mtu;

	meet_congestion(b, a, SROCE_WR_RDMA_READ);
	side_fill(b, DST, len, 6);
	KUNIT_EXPECT_GE(test, message_took(a, SROCE_WR_RDMA_READ, PACKETS),
			LEAST_US);
	KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, len, 6));
	KUNIT_EXPECT_FALSE(test, a->qp->congested);
	/* Its own requests share the rate, which comes back */
	KUNIT_EXPECT_GE(test, message_took(b, SROCE_WR_SEND, PACKETS), LEAST_US);
	b->port.net.congestion.rp_time_reset = 300;
	message_took(b, SROCE_WR_SEND, PACKETS);
	message_took(b, SROCE_WR_SEND, PACKETS);
	KUNIT_EXPECT_GT(test, b->qp->congestion.reaction.rate,
			2 * MBIT * 125000ULL);
}

/* A QP ends at once, although its responses would have taken 34 ms */
static void ends_while_it_replies(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];

	meet_congestion(b, a, SROCE_WR_RDMA_READ);
	post_message(a, SROCE_WR_RDMA_READ, PACKETS * p->mtu);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, sroce_timer_is_set(&b->qp->congestion.timer));
	side_to_reset(b);
	KUNIT_EXPECT_FALSE(test, b->qp->congested);
	side_to_error(a);
	side_expect_send(a, 1, IB_WC_WR_FLUSH_ERR);
}

/* A peer that does nothing but notify is not waited for longer than for the floor */
static void storm_leaves_the_floor(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0];
	struct sroce_reaction *r = &a->qp->congestion.reaction;
	int i;

	a->port.net.congestion.rp_rate_to_set_on_first_cnp = 0;
	meet_congestion(a, a, SROCE_WR_SEND);
	for (i = 0; i < 40; i++) {
		notify(a);
		notify(a);
		message_took(a, SROCE_WR_SEND, 1);
	}
	KUNIT_EXPECT_GE(test, r->rate, p->mtu * 100);
	/* None is lost for it, and no retry is used up */
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RETRANS_PACKETS));
}

/* ACKs leave when they are due, and do not put off what waits for its time */
static void acks_are_no_debt(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 next;

	meet_congestion(a, a, SROCE_WR_SEND);
	next = a->qp->congestion.pace.next;
	KUNIT_EXPECT_LT(test, message_took(b, SROCE_WR_SEND, PACKETS), LEAST_US);
	KUNIT_EXPECT_GT(test, side_sent(a, SROCE_OP_ACK, -1), 0);
	KUNIT_EXPECT_EQ(test, next, a->qp->congestion.pace.next);
}

/* Who sends without end leaves the other half its turn */
static void halves_take_turns(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn, i;

	meet_congestion(b, b, SROCE_WR_SEND);
	psn = b->qp->req.next_psn;
	for (i = 0; i < 4; i++)
		post_message(b, SROCE_WR_SEND, PACKETS * p->mtu);
	post_message(a, SROCE_WR_RDMA_READ, PACKETS / 4 * p->mtu);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_LT(test, sroce_psn_diff(b->qp->req.next_psn, psn), PACKETS);
	for (i = 0; i < 4; i++) {
		side_expect_send(b, 1, IB_WC_SUCCESS);
		side_expect_recv(a, 2, IB_WC_SUCCESS);
	}
}

/* What a rate is about is what is on the wire, also of a message without payload */
static void headers_count(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0];
	unsigned long before = a->qp->req.half.sent_bytes;

	post_message(a, SROCE_WR_SEND, 0);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(pair_peer(a), 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 28 + 12 + 4, a->qp->req.half.sent_bytes - before);
}

static void off_means_ignored(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0];
	int i;

	a->port.net.congestion.rp_enable = 0;
	for (i = 0; i < 5; i++) {
		notify(a);
		message_took(a, SROCE_WR_SEND, 8);
		fsleep(500);
	}
	KUNIT_EXPECT_FALSE(test, a->qp->congested);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RP_CNP_HANDLED));
	KUNIT_EXPECT_EQ(test, 5, side_count(a, SROCE_CNT_RP_CNP_IGNORED));
}

/* --- what may be marked ------------------------------------------------------------ */

/* How many packets of a kind a side has sent that may be marked, and how many not */
static void expect_ect(struct side *s, u8 op, bool ect)
{
	struct kunit *test = s->pair->test;
	const struct fake_log *log;
	u32 n;

	for (n = 0; (log = side_sent_nth(s, op, -1, n)); n++)
		KUNIT_EXPECT_EQ_MSG(test, ect, !!(log->flags & SROCE_ECT),
				    "operation %u", op);
	KUNIT_EXPECT_GT(test, n, 0);
}

static void send_all_kinds(struct side *a)
{
	struct work w;

	message_took(a, SROCE_WR_SEND, 4);
	message_took(a, SROCE_WR_RDMA_READ, 4);
	work_init(&w, SROCE_WR_FETCH_ADD, 1);
	work_local(a, &w, 0, 8);
	work_atomic(a, &w, 0, 1, 0);
	side_post(a, &w);
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

static void only_data_may_be_marked(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];

	b->port.net.congestion.np_enable = 1;
	send_all_kinds(a);
	expect_ect(a, SROCE_OP_SEND, true);
	expect_ect(a, SROCE_OP_READ, true);
	expect_ect(a, SROCE_OP_FETCH_ADD, true);
	expect_ect(b, SROCE_OP_READ_RESP, true);
	expect_ect(b, SROCE_OP_ACK, false);
	expect_ect(b, SROCE_OP_ATOMIC_ACK, false);
}

static void off_may_not_be_marked(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];

	a->port.net.congestion.rp_enable = 0;
	b->port.net.congestion.rp_enable = 0;
	send_all_kinds(a);
	expect_ect(a, SROCE_OP_SEND, false);
	expect_ect(a, SROCE_OP_READ, false);
	expect_ect(b, SROCE_OP_READ_RESP, false);
}

static void datagrams_to_groups_may_not(struct kunit *test)
{
	struct pair *p = congestion_pair(test, IB_QPT_UD);
	struct side *a = &p->side[0];

	a->path.path.group = true;
	message_took(a, SROCE_WR_SEND, 1);
	expect_ect(a, SROCE_OP_SEND, false);
	a->path.path.group = false;
}

static struct kunit_case congestion_cases[] = {
	KUNIT_CASE(begins_with_what_was_sent),
	KUNIT_CASE(needs_a_measurement),
	KUNIT_CASE(one_cut_in_a_round_trip),
	KUNIT_CASE(one_cut_for_what_flies),
	KUNIT_CASE(no_rise_for_what_flies),
	KUNIT_CASE(alpha_is_how_often),
	KUNIT_CASE(never_below_the_floor),
	KUNIT_CASE(rises_in_three_ways),
	KUNIT_CASE(catches_up),
	KUNIT_CASE(becomes_fair),
	KUNIT_CASE(ends),
	KUNIT_CASE(bears_any_setting),
	KUNIT_CASE_PARAM(fills_the_link, load_gen_params),
	KUNIT_CASE(connected_slows_down),
	KUNIT_CASE(unacknowledged_slows_down),
	KUNIT_CASE(datagrams_slow_down),
	KUNIT_CASE(responses_slow_down),
	KUNIT_CASE(ends_while_it_replies),
	KUNIT_CASE(storm_leaves_the_floor),
	KUNIT_CASE(acks_are_no_debt),
	KUNIT_CASE(halves_take_turns),
	KUNIT_CASE(headers_count),
	KUNIT_CASE(off_means_ignored),
	KUNIT_CASE(only_data_may_be_marked),
	KUNIT_CASE(off_may_not_be_marked),
	KUNIT_CASE(datagrams_to_groups_may_not),
	{}
};

static struct kunit_suite congestion_suite = {
	.name = "sroce_congestion",
	.test_cases = congestion_cases,
	.exit = pair_exit,
};

kunit_test_suite(congestion_suite);
