// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The end of what was sent is asked after when nobody says anything, once, and without
 * a timeout.
 */
#include "tests/transport_pair.h"
#include "transport/requester.h"

#define MTU 256
#define LEN (20 * MTU)

/* So long a round trip that no real timer fires while a test runs */
#define PROBE_RTT (500 * NSEC_PER_MSEC)

static void probe_rtt(struct side *s)
{
	s->qp->req.rtt.srtt = PROBE_RTT;
	s->qp->req.rtt.rttvar = 0;
}

/* Packets arrive one by one */
static struct pair *probe_pair(struct kunit *test, struct pair_config *c)
{
	struct pair *p;

	c->mtu = IB_MTU_256;
	c->batch = 1;
	c->probes = true;
	p = pair_create(test, c);
	probe_rtt(&p->side[0]);
	probe_rtt(&p->side[1]);
	return p;
}

static u64 probes(struct side *s)
{
	return side_count(s, SROCE_CNT_ROCE_ADP_RETRANS);
}

/* A WRITE of 20 packets arrives, of which the first time @n are lost, from @first on */
static void arrives_without(struct kunit *test, u32 first, u32 n, u64 sent_again)
{
	struct pair_config c = { .psn = 0xfffff8 };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, first, n, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, LEN);
	pair_deliver(p);
	KUNIT_EXPECT_NE(test, 0, a->qp->req.probe.at);
	side_expect_written(a, 1, LEN);
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	KUNIT_EXPECT_EQ(test, sent_again, side_count(a, SROCE_CNT_RETRANS_PACKETS));
	KUNIT_EXPECT_EQ(test, a->qp->attr.retry_cnt, a->qp->req.retries);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void last_packet(struct kunit *test)
{
	arrives_without(test, 19, 1, 1);
}

/* The last one tells that others are missing, and is kept: 15 to 18 are sent again, and 19 */
static void last_packets(struct kunit *test)
{
	arrives_without(test, 15, 5, 6);
}

/* What is lost is all that a small window lets out of a message, and so not its end */
static void middle_of_message(struct kunit *test)
{
	struct pair_config c = { .window = 4 };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 0, 4, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, LEN);
	side_expect_written(a, 1, LEN);
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* All of it is lost but the first packet's way there */
static void all_packets(struct kunit *test)
{
	struct pair_config c = { .plain = true };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 0, 20, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, LEN);
	side_expect_written(a, 1, LEN);
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	KUNIT_EXPECT_EQ(test, 21, side_count(a, SROCE_CNT_RETRANS_PACKETS));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* What was lost is the answer: the packet comes as a duplicate, and changes nothing */
static void lost_answer(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(b, SROCE_OP_ACK, 0, 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 100);
	pair_deliver(p);
	b->mem[SIDE_TO] ^= 1;
	side_expect_send(a, 1, IB_WC_SUCCESS);
	b->mem[SIDE_TO] ^= 1;
	KUNIT_EXPECT_TRUE(test, side_filled(b, SIDE_TO, 100, 1));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_DUPLICATE_REQUEST));
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* The NAK was lost: nothing comes behind what the peer has seen, which would tell it */
static void without_nak(struct kunit *test, u32 batch, bool plain)
{
	struct pair_config c = { .plain = plain };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 3, 1, FAKE_DROP),
		rule_nth(b, SROCE_OP_ACK, 0, 1, FAKE_DROP), {}
	};

	p->net.batch = batch;
	pair_rules(p, rules);
	side_write(a, 1, LEN);
	side_expect_written(a, 1, LEN);
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	pair_exit(test);
}

static void lost_nak(struct kunit *test)
{
	without_nak(test, 1, false);
	without_nak(test, 1, true);
	/* In trains of several packets */
	without_nak(test, 16, false);
	without_nak(test, 16, true);
}

/* A SEND with everything at its end is received once, also when the end comes twice */
static void end_comes_twice(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(b, SROCE_OP_ACK, 0, 1, FAKE_DROP), {}
	};
	struct work w;

	side_recv(b, 10, SIDE_TO, LEN);
	side_recv(b, 11, SIDE_TO, LEN);
	side_fill(a, SIDE_FROM, LEN, 5);
	pair_rules(p, rules);
	side_post(a, work_send(a, &w, 1, SIDE_FROM, LEN));
	side_expect_recv(b, 10, IB_WC_SUCCESS);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	side_post(a, work_send(a, &w, 2, SIDE_FROM, LEN));
	side_expect_recv(b, 11, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/*
 * A peer that says nothing is asked with twice the patience each time, as long as that is
 * less than the timeout: 1, 2 and 4 of 4.3 s (the test does not let them pass), then 8 of
 * 8.6, and 16 of 17.2
 */
static void expect_silence(struct kunit *test, u32 len)
{
	struct pair_config c = { .retry = 2 };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, len);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 2 * PROBE_RTT, a->qp->req.probe.wait);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 4 * PROBE_RTT, a->qp->req.probe.wait);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, side_probe(a));
	side_expect_send(a, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, 3, p->expired);
	KUNIT_EXPECT_EQ(test, 3 + 4 + 5, probes(a));
	pair_exit(test);
}

/* A probe that waits until its rate lets it leave does not make the timeout wait, too */
static void probe_waits_for_its_rate(struct kunit *test)
{
	struct pair_config c = { .retry = 2 };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct ib_qp_attr attr = { .rate_limit = 100 };
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_modify(a, &attr, IB_QP_RATE_LIMIT);
	side_write(a, 1, 100);
	pair_deliver(p);
	spin_lock_bh(&a->qp->req.half.lock);
	a->qp->req.pace.next = ktime_get_ns() + 20ULL * NSEC_PER_SEC;
	spin_unlock_bh(&a->qp->req.half.lock);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, a->qp->req.probe.back);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	KUNIT_EXPECT_EQ(test, 1, a->qp->req.retries);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR));
	side_to_error(a);
	side_expect_send(a, 1, IB_WC_WR_FLUSH_ERR);
}

/*
 * While something is sent again and the window has room for less than a train, nobody sends: that
 * is asked after, too
 */
static void window_has_a_stump(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct sroce_requester *req = &a->qp->req;
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 0, 100, FAKE_DROP),
		/* Of what the window lets leave again 3 arrive */
		rule_nth(a, SROCE_OP_WRITE, 3, 13, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 3 * MTU);
	side_write(a, 2, 97 * MTU);
	pair_deliver(p);
	KUNIT_ASSERT_EQ(test, 100, sroce_requester_outstanding(req));
	spin_lock_bh(&req->half.lock);
	req->window = 32;
	spin_unlock_bh(&req->half.lock);
	KUNIT_ASSERT_TRUE(test, side_expire(a));
	pair_deliver(p);
	KUNIT_ASSERT_EQ(test, 16, req->window);
	KUNIT_ASSERT_EQ(test, 13, sroce_requester_outstanding(req));
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_written(a, 2, 97 * MTU);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
}

static void silent_peer(struct kunit *test)
{
	expect_silence(test, LEN);
	/* All that is in flight is what is sent once more */
	expect_silence(test, 100);
}

/* However small the window has become meanwhile */
static void small_window(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, LEN);
	pair_deliver(p);
	a->qp->req.window = 1;
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RETRANS_PACKETS));
	KUNIT_EXPECT_EQ(test, a->qp->req.next_psn, a->qp->req.send_psn);
	pair_rules(p, NULL);
	side_expect_written(a, 1, LEN);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* A network that repeats each packet at once is asked for what is missing once */
static void repeating_network(struct kunit *test)
{
	struct pair_config c = { .plain = true };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 3, 1, FAKE_DROP),
		rule_nth(a, SROCE_OP_WRITE, 4, 16, FAKE_TWICE), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, LEN);
	side_expect_written(a, 1, LEN);
	KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_ACK, SROCE_NAK_PSN_SEQ));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* What has just been sent is waited for as long as what was sent first */
static void more_was_sent(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];

	side_write(a, 1, 100);
	KUNIT_EXPECT_NE(test, 0, a->qp->req.probe.at);
	side_write(a, 2, 100);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	KUNIT_EXPECT_EQ(test, 0, probes(a));
	KUNIT_EXPECT_GT(test, a->qp->req.probe.at, 1);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	KUNIT_EXPECT_EQ(test, 1, probes(a));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_written(a, 2, 100);
}

static void silence_about_read(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct work w;

	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, SIDE_FROM, SIDE_TO, 100));
	side_write(a, 2, 100);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	side_probe(a);
	side_probe(a);
	KUNIT_EXPECT_EQ(test, 0, probes(a));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_written(a, 2, 100);
}

static void not_ready(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_post(a, work_send(a, &w, 1, SIDE_FROM, 100));
	while (!a->qp->req.rnr_wait)
		KUNIT_ASSERT_TRUE(test, pair_step(p));
	KUNIT_EXPECT_FALSE(test, side_probe(a));
	side_recv(b, 10, SIDE_TO, LEN);
	side_expect_recv(b, 10, IB_WC_SUCCESS);
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

/* Nor where it is switched off, nothing is known of the way, or an answer may take as long */
static void no_probe(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct sroce_rtt *rtt = &a->qp->req.rtt;

	a->port.recovery.adp_retrans_en = 0;
	side_write(a, 1, 100);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.probe.at);
	side_expect_written(a, 1, 100);
	a->port.recovery.adp_retrans_en = 1;
	rtt->srtt = 0;
	side_write(a, 2, 100);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.probe.at);
	side_expect_written(a, 2, 100);
	rtt->srtt = 60 * NSEC_PER_SEC;
	side_write(a, 3, 100);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.probe.at);
	side_expect_written(a, 3, 100);
}

/* A sixteenth of the second timeout, which is twice the first one, 4.3 s */
#define NEVER_HEARD_WAIT_NS (2 * (4096ULL << 20) / 16)

/*
 * Who has never heard anything asks after the first timeout: all that was sent may have come to
 * a queue that others fill. That is soon, but not sooner than the peer may need.
 */
static void never_heard(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 0, 40, FAKE_DROP), {} };
	struct sroce_requester *req = &a->qp->req;

	req->rtt.srtt = 0;
	pair_rules(p, rules);
	side_write(a, 1, LEN);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 0, req->probe.at);
	KUNIT_ASSERT_TRUE(test, side_expire(a));
	pair_deliver(p);
	KUNIT_ASSERT_NE(test, 0, req->probe.at);
	KUNIT_EXPECT_LE(test, req->probe.wait, NEVER_HEARD_WAIT_NS);
	KUNIT_EXPECT_GT(test, req->probe.wait, NEVER_HEARD_WAIT_NS * 9 / 10);
	KUNIT_EXPECT_TRUE(test, side_probe(a));
	side_expect_written(a, 1, LEN);
	KUNIT_EXPECT_GE(test, probes(a), 1);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
}

static void same_host(struct kunit *test)
{
	struct pair_config c = { .direct = true };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];

	side_write(a, 1, LEN);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.probe.at);
	side_expect_written(a, 1, LEN);
}

/* Whatever is lost, and however often: all messages arrive. Return: how many timeouts it took */
static u32 count_timeouts(struct kunit *test, bool probing)
{
	struct pair_config c = { .seed = 7, .retry = 7 };
	struct pair *p = probe_pair(test, &c);
	struct side *a = &p->side[0];
	u32 expired;
	u64 id;

	a->port.recovery.adp_retrans_en = probing;
	p->net.drop = 100;
	p->net.twice = 20;
	p->net.swap = 50;
	for (id = 1; id <= 300; id++) {
		probe_rtt(a);
		side_write(a, id, 1 + id * 17 % LEN);
		side_expect_written(a, id, 1 + id * 17 % LEN);
	}
	expired = p->expired;
	kunit_info(test, "%llu tails asked after, %u timeouts", probes(a), expired);
	pair_exit(test);
	return expired;
}

static void much_is_lost(struct kunit *test)
{
	u32 plain = count_timeouts(test, false);

	KUNIT_EXPECT_LT(test, count_timeouts(test, true), plain / 3);
}

static struct kunit_case probe_cases[] = {
	KUNIT_CASE(last_packet),
	KUNIT_CASE(last_packets),
	KUNIT_CASE(middle_of_message),
	KUNIT_CASE(all_packets),
	KUNIT_CASE(lost_answer),
	KUNIT_CASE(lost_nak),
	KUNIT_CASE(end_comes_twice),
	KUNIT_CASE(silent_peer),
	KUNIT_CASE(small_window),
	KUNIT_CASE(repeating_network),
	KUNIT_CASE(more_was_sent),
	KUNIT_CASE(silence_about_read),
	KUNIT_CASE(not_ready),
	KUNIT_CASE(no_probe),
	KUNIT_CASE(probe_waits_for_its_rate),
	KUNIT_CASE(window_has_a_stump),
	KUNIT_CASE(never_heard),
	KUNIT_CASE(same_host),
	KUNIT_CASE(much_is_lost),
	{}
};

static struct kunit_suite probe_suite = {
	.name = "sroce_transport_probe",
	.exit = pair_exit,
	.test_cases = probe_cases,
};

kunit_test_suite(probe_suite);
