// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * States of a QP, and the queues around it: draining, flushing, resetting,
 * destroying; completion queues that overrun or are resized; shared receive
 * queues.
 */
#include <linux/debug_locks.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>

#include "tests/transport_pair.h"
#include "transport/number.h"
#include "transport/run.h"

#define SRC SIDE_FROM
#define DST SIDE_TO

/* Each count has its number, and counting on tells nothing about the next one */
static void numbers(struct kunit *test)
{
	u32 i, near = 0;

	for (i = 0; i < 100000; i++) {
		u32 qpn = sroce_qpn_from_index(i), next = sroce_qpn_from_index(i + 1);

		KUNIT_ASSERT_LE(test, qpn, SROCE_QPN_MASK);
		KUNIT_ASSERT_EQ(test, sroce_qpn_to_index(qpn), i);
		KUNIT_ASSERT_EQ(test, sroce_qpn_from_index(sroce_qpn_to_index(SROCE_QPN_MASK - i)),
				SROCE_QPN_MASK - i);
		near += abs((int)(next - qpn)) < 4096;
	}
	/* 49 are to be expected of random numbers */
	KUNIT_EXPECT_LT(test, near, 1000);
}

/* Whoever has more than 24 bits is not taken for somebody else */
static void numbers_of_nobody(struct kunit *test)
{
	u32 i;

	for (i = SROCE_QPN_MASK; i < U32_MAX - 9973 * 41; i += 9973 * 41)
		KUNIT_ASSERT_NULL(test, sroce_qp_find(i | BIT(24)));
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_NULL(test, sroce_qp_find(i));
	KUNIT_ASSERT_NULL(test, sroce_qp_find(SROCE_QPN_MULTICAST));
}

/* Numbers that mean something else, whichever counts they have */
static void numbers_of_no_qp(struct kunit *test)
{
	static const u32 special[] = { 0, SROCE_QPN_GSI, SROCE_QPN_MULTICAST };
	u32 i, count, next, index;

	for (i = 0; i < ARRAY_SIZE(special); i++) {
		count = sroce_qpn_to_index(special[i]);
		next = count;
		KUNIT_ASSERT_EQ(test, 0, sroce_number_take(&next, &index));
		KUNIT_EXPECT_NE(test, count, index);
		KUNIT_EXPECT_NULL(test, sroce_qp_find(special[i]));
		KUNIT_EXPECT_NULL(test, sroce_qp_find(sroce_qpn_from_index(index)));
		sroce_number_give(index);
	}
}

static void post_read(struct side *a, u64 id, u32 len)
{
	struct work w;

	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, id, SRC, DST, len));
}

static void post_send(struct side *a, u64 id, u32 len)
{
	struct work w;

	side_post(a, work_send(a, &w, id, SRC, len));
}

static void to_rts_again(struct side *s)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };

	side_modify(s, &attr, IB_QP_STATE);
}

static bool draining(struct side *s)
{
	struct ib_qp_attr attr;

	sroce_qp_query(s->qp, &attr);
	return attr.sq_draining;
}

/* --- SQD ----------------------------------------------------------------- */

/* Two have begun, of wr_id 1 and 2: the queue is drained with the second one, not before */
static void expect_two_drained(struct side *a)
{
	struct kunit *test = a->pair->test;

	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, side_events(a, IB_EVENT_SQ_DRAINED));
	side_expect_send(a, 2, IB_WC_SUCCESS);
	pair_settle(a->pair);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
}

static void drain(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256, .window = 8 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];

	/* The second one has begun when the queue is told to drain */
	side_write(a, 1, 5 * 256);
	side_write(a, 2, 20 * 256);
	side_write(a, 3, 10);
	side_to_sqd(a, true);
	KUNIT_EXPECT_TRUE(test, draining(a));
	side_write(a, 4, 10);
	expect_two_drained(a);
	KUNIT_EXPECT_FALSE(test, draining(a));
	side_expect_none(a);

	to_rts_again(a);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	side_expect_send(a, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void drain_idle(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };

	side_to_sqd(a, true);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
	side_write(a, 1, 10);
	pair_settle(p);
	side_expect_none(a);
	to_rts_again(a);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	/* The event is for who asks for it this time */
	side_modify(a, &attr, IB_QP_STATE);
	KUNIT_EXPECT_FALSE(test, draining(a));
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
}

/* Attributes may change on the way and afterwards: the event comes once */
static void drain_and_modify(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD, .timeout = 18 };
	struct side *a = &p->side[0];

	side_write(a, 1, 5000);
	side_to_sqd(a, true);
	side_modify(a, &attr, IB_QP_STATE | IB_QP_TIMEOUT);
	KUNIT_EXPECT_TRUE(test, draining(a));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
	side_modify(a, &attr, IB_QP_STATE | IB_QP_TIMEOUT);
	KUNIT_EXPECT_FALSE(test, draining(a));
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
}

/* What has begun is not complete while it waits to be sent again */
static void drain_while_not_ready(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	post_send(a, 1, 10);
	pair_deliver(p);
	side_to_sqd(a, true);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	KUNIT_EXPECT_TRUE(test, draining(a));
	KUNIT_EXPECT_EQ(test, 0, side_events(a, IB_EVENT_SQ_DRAINED));
	side_recv(b, 2, DST, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
}

static void drain_with_losses(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		{ .from = a, .op = SROCE_OP_WRITE, .skip = 3, .count = 2,
		  .verdict = FAKE_DROP },
		{ .from = &p->side[1], .op = SROCE_OP_READ_RESP, .skip = 3,
		  .count = 2, .verdict = FAKE_DROP }, {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 20 * 256);
	post_read(a, 2, 20 * 256);
	side_to_sqd(a, true);
	side_write(a, 3, 10);
	expect_two_drained(a);
	side_expect_none(a);
}

/*
 * A SEND of one side is received, and a READ of one, which may be the same, answered.
 * @id is the first of three IDs.
 */
static void send_and_read(struct side *sender, struct side *reader, u64 id)
{
	struct side *receiver = pair_peer(sender);

	side_recv(receiver, id, DST, 1000);
	post_send(sender, id + 1, 1000);
	post_read(reader, id + 2, 1000);
	side_expect_send(sender, id + 1, IB_WC_SUCCESS);
	side_expect_recv(receiver, id, IB_WC_SUCCESS);
	side_expect_send(reader, id + 2, IB_WC_SUCCESS);
}

/* The other direction does not care */
static void drain_receives(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_to_sqd(a, false);
	send_and_read(b, b, 1);
	KUNIT_EXPECT_EQ(test, 0, side_events(a, IB_EVENT_SQ_DRAINED));
}

/* --- the number of READs and atomics changes in SQD ---------------------------- */

static int change_reads(struct side *s, u8 n)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_SQD,
		.max_dest_rd_atomic = n,
	};

	return sroce_qp_modify(s->qp, &attr,
			       IB_QP_STATE | IB_QP_MAX_DEST_RD_ATOMIC, NULL);
}

/* What was answered before is answered again, and not done again */
static void change_and_repeat(struct kunit *test)
{
	static const u8 numbers[] = { 16, 3 };
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		{ .from = b, .op = SROCE_OP_ATOMIC_ACK, .count = 1,
		  .verdict = FAKE_DROP }, {}
	};
	u64 *cell = (u64 *)(b->mem + 64);
	struct work w;
	u32 i;

	*cell = 40;
	side_to_sqd(b, false);
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		rules[0].hits = 0;
		pair_rules(p, rules);
		work_init(&w, SROCE_WR_FETCH_ADD, i);
		work_local(a, &w, SRC + 5, 8);
		work_atomic(a, &w, 64, 1, 0);
		side_post(a, &w);
		pair_deliver(p);
		KUNIT_EXPECT_EQ(test, 1, rules[0].hits);
		KUNIT_EXPECT_EQ(test, 0, change_reads(b, numbers[i]));
		side_expect_send(a, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, 40 + i, *(u64 *)(a->mem + SRC + 5));
		KUNIT_EXPECT_EQ(test, 41 + i, *cell);
		KUNIT_EXPECT_EQ(test, i + 1, p->expired);
	}
}

/* Two trains */
#define READ_LEN 100000

/* A READ that takes several requests goes on when none is allowed any more */
static void no_reads_any_more(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };
	struct pair_config c = { .window = 16 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];

	post_read(a, 1, READ_LEN);
	side_to_sqd(a, false);
	side_modify(a, &attr, IB_QP_STATE | IB_QP_MAX_QP_RD_ATOMIC);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* READs of which the responder has begun to answer the first one */
static void half_answered(struct pair *p, struct rule *rules, u32 n)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	rules[0] = (struct rule){
		.from = b,
		.op = SROCE_OP_READ_RESP,
		.verdict = FAKE_HOLD,
	};
	pair_rules(p, rules);
	sroce_txq_set_limit(b->qp->txq, 20000);
	side_fill(b, DST, READ_LEN, 3);
	for (i = 0; i < n; i++)
		post_read(a, i, READ_LEN);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(p->test, b->qp->resp.half.starved);
	KUNIT_EXPECT_EQ(p->test, n, b->qp->resp.answers.job_tail - b->qp->resp.answers.job_head);
}

static void rest_arrives(struct pair *p, u32 n)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	pair_rules(p, NULL);
	fake_net_release(&p->net);
	/* No timer is needed for it */
	for (i = 0; i < 1000 && a->scq.ring.index - a->scq.cons < n; i++) {
		pair_deliver(p);
		sroce_half_run(&b->qp->resp.half);
	}
	for (i = 0; i < n; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(p->test, side_filled(a, SRC, READ_LEN, 3));
	KUNIT_EXPECT_EQ(p->test, 0, p->expired);
	KUNIT_EXPECT_EQ(p->test, 0, side_count(a, SROCE_CNT_RETRANS_PACKETS));
}

/* half_answered() with a responder in SQD, whose number of READs may be changed */
static struct pair *changeable_pair(struct kunit *test, struct rule *rules, u32 n)
{
	struct pair_config c = { .window = 1024 };
	struct pair *p = pair_create(test, &c);

	side_to_sqd(&p->side[1], false);
	half_answered(p, rules, n);
	return p;
}

static void change_and_go_on(struct kunit *test)
{
	struct rule rules[2] = {};
	struct pair *p = changeable_pair(test, rules, 5);
	struct side *b = &p->side[1];

	KUNIT_EXPECT_EQ(test, 0, change_reads(b, 12));
	KUNIT_EXPECT_EQ(test, 0, change_reads(b, 5));
	rest_arrives(p, 5);
}

/* Not while more answers are under way than there would be room for */
static void change_too_early(struct kunit *test)
{
	struct rule rules[2] = {};
	struct pair *p = changeable_pair(test, rules, 5);
	struct side *b = &p->side[1];

	KUNIT_EXPECT_EQ(test, -EINVAL, change_reads(b, 1));
	rest_arrives(p, 5);
	KUNIT_EXPECT_EQ(test, 0, change_reads(b, 1));
}

/* --- ERR ----------------------------------------------------------------- */

static void flush_in_order(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct work w;
	u32 i;

	for (i = 0; i < 20; i++) {
		work_rdma(a, &w, SROCE_WR_RDMA_WRITE, i, SRC, DST, 3000);
		if (i % 3)
			w.wqe.flags = 0;
		side_post(a, &w);
		side_recv(a, 100 + i, DST, 10);
	}
	side_to_error(a);
	/* Posting goes on to work: drain relies on it */
	side_write(a, 20, 10);
	side_recv(a, 120, DST, 10);
	for (i = 0; i <= 20; i++) {
		side_expect_send(a, i, IB_WC_WR_FLUSH_ERR);
		side_expect_recv(a, 100 + i, IB_WC_WR_FLUSH_ERR);
	}
	/* Late ACKs are for nobody */
	pair_settle(p);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	KUNIT_EXPECT_EQ(test, 21, side_count(a, SROCE_CNT_REQ_CQE_FLUSH_ERROR));
	KUNIT_EXPECT_EQ(test, 21, side_count(a,
					     SROCE_CNT_RESP_CQE_FLUSH_ERROR));
}

/* More than one run's budget */
static void flush_many(struct kunit *test)
{
	struct pair_config c = { .depth = 2048, .window = 1 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	u32 i;

	for (i = 0; i < 2000; i++) {
		side_write(a, i, 1);
		side_recv(a, i, DST, 1);
	}
	side_to_error(a);
	for (i = 0; i < 2000; i++) {
		side_expect_send(a, i, IB_WC_WR_FLUSH_ERR);
		side_expect_recv(a, i, IB_WC_WR_FLUSH_ERR);
	}
	side_expect_none(a);
}

/* A message of more than one packet has begun to fill the first of two receives */
static void receive_first_packet(struct pair *p)
{
	struct side *b = &p->side[1];

	p->net.batch = 1;
	side_recv(b, 1, DST, 1000);
	side_recv(b, 2, DST, 1000);
	post_send(&p->side[0], 3, 1000);
	fake_net_deliver(&p->net);
}

/* A receive that a message has begun to fill is flushed too, once */
static void flush_partly_filled(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	receive_first_packet(p);
	fake_net_deliver(&p->net);
	side_to_error(b);
	side_expect_recv(b, 1, IB_WC_WR_FLUSH_ERR);
	side_expect_recv(b, 2, IB_WC_WR_FLUSH_ERR);
	/* The sender finds out when it gives up */
	side_expect_send(a, 3, IB_WC_RETRY_EXC_ERR);
	side_expect_none(b);
}

/* --- RESET --------------------------------------------------------------- */

static void connect(struct side *s)
{
	side_to_init(s);
	side_to_rtr(s);
	side_to_rts(s);
}

static void reset_and_again(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_recv_wr wr = {};
	int i;

	for (i = 0; i < 5; i++) {
		side_recv(b, 1, DST, 1000);
		side_recv(a, 1, DST, 1000);
		side_write(a, 2, 10);
		KUNIT_ASSERT_TRUE(test, pair_wait(p, &a->scq, 1));
		/* In the middle of everything */
		post_read(b, 3, 100000);
		post_send(a, 4, 1000);
		post_read(a, 5, 10000);
		p->net.batch = i;
		while (p->net.sent % 7 && fake_net_deliver(&p->net))
			;
		if (i == 2)
			side_to_error(a);
		side_to_reset(a);
		side_to_reset(b);
		/* No completion, and no packet of old */
		side_expect_none(a);
		side_expect_none(b);
		fake_net_purge(&p->net);
		KUNIT_EXPECT_NE(test, 0, side_try_recv(a, &wr));
		p->config.psn += 0x3000;
		connect(a);
		connect(b);
		send_and_read(a, b, 6);
	}
}

static void destroy_in_flight(struct kunit *test)
{
	struct pair_config c = {};
	bool direct;
	int i;

	for (i = 0; i < 20; i++) {
		struct pair *p;
		struct side *a, *b;

		direct = i & 1;
		c.direct = direct;
		p = pair_create(test, &c);
		a = &p->side[0];
		b = &p->side[1];
		side_recv(b, 1, DST, 1000);
		post_send(a, 2, 1000);
		post_read(a, 3, 50000);
		side_write(b, 4, 50000);
		if (i & 2)
			fake_net_deliver(&p->net);
		if (i & 4)
			side_expire(a);
		sroce_qp_destroy(b->qp);
		b->qp = NULL;
		fake_net_settle(&p->net);
		if (i & 8)
			side_expire(a);
		pair_exit(test);
	}
}

/* --- completion queues --------------------------------------------------- */

static void cq_overrun(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 8 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct ib_wc wc;
	u32 i;

	for (i = 0; i < 20; i++)
		side_write(a, i, 10);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_CQ_ERR));
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_QP_FATAL));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	/* Nothing that was there is overwritten, nothing is added any more */
	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_TRUE(test, side_poll(&a->scq, &wc));
		KUNIT_EXPECT_EQ(test, i, wc.wr_id);
		KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	}
	side_write(a, 20, 10);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_CQ_ERR));
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_QP_FATAL));
}

static void recv_cq_overrun(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 4 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_wc wc;
	u32 i;

	for (i = 0; i < 10; i++)
		side_recv(b, i, DST, 10);
	for (i = 0; i < 4; i++) {
		post_send(a, i, 10);
		side_expect_send(a, i, IB_WC_SUCCESS);
	}
	post_send(a, 4, 10);
	KUNIT_ASSERT_TRUE(test, pair_wait(p, &a->scq, 1));
	KUNIT_ASSERT_TRUE(test, side_poll(&a->scq, &wc));
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_CQ_ERR));
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_QP_FATAL));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	for (i = 0; i < 4; i++)
		side_expect_recv(b, i, IB_WC_SUCCESS);
	side_expect_none(b);
}

/* The queue is one completion short of full all the time */
static void cq_just_enough(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 8 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	u32 i;

	for (i = 0; i < 8; i++)
		side_write(a, i, 10);
	for (i = 8; i < 200; i++) {
		KUNIT_ASSERT_TRUE(test, pair_wait(p, &a->scq, 8));
		side_expect_send(a, i - 8, IB_WC_SUCCESS);
		side_write(a, i, 10);
	}
	KUNIT_EXPECT_EQ(test, 0, side_events(a, IB_EVENT_CQ_ERR));
}

static void resize(struct side *s, u32 entries, int expect)
{
	struct sroce_ring ring = {};

	KUNIT_ASSERT_EQ(s->pair->test, 0,
			sroce_ring_alloc(&ring, entries, s->scq.ring.stride,
					 false));
	KUNIT_EXPECT_EQ(s->pair->test, expect,
			sroce_cq_resize(&s->scq, &ring));
	sroce_ring_free(&ring);
}

static void cq_resize(struct kunit *test)
{
	static const u32 sizes[] = { 16, 8, 64, 32, 8, 128, 8 };
	struct pair_config c = { .cq_depth = 8 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	u32 got = 0, posted = 0, i;

	for (i = 0; i < 8 * ARRAY_SIZE(sizes); i++) {
		while (posted - got < 8)
			side_write(a, posted++, 10);
		KUNIT_ASSERT_TRUE(test, pair_wait(p, &a->scq, 8));
		/* All of the 8 are outstanding */
		resize(a, 4, -EINVAL);
		resize(a, sizes[i % ARRAY_SIZE(sizes)], 0);
		KUNIT_EXPECT_EQ(test, sizes[i % ARRAY_SIZE(sizes)],
				sroce_ring_entries(&a->scq.ring));
		side_expect_send(a, got++, IB_WC_SUCCESS);
		if (i % 3 == 0)
			side_expect_send(a, got++, IB_WC_SUCCESS);
	}
	while (got != posted)
		side_expect_send(a, got++, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, side_events(a, IB_EVENT_CQ_ERR));
}

/* A handler may post, poll and arm the queue that called it */
struct ping {
	struct side *s;
	u32 left;
};

static void ping_handler(struct ib_cq *ibcq, void *arg)
{
	struct ping *ping = arg;
	struct sroce_cq *cq = to_sroce_cq(ibcq);
	struct ib_wc wc;

	do {
		while (side_poll(cq, &wc))
			if (ping->left && ping->left--)
				side_write(ping->s, 1, 10);
	} while (sroce_cq_arm(cq, IB_CQ_NEXT_COMP |
			      IB_CQ_REPORT_MISSED_EVENTS));
}

static void handler_posts(struct kunit *test)
{
	int direct;

	for (direct = 0; direct < 2; direct++) {
		struct pair_config c = { .direct = direct };
		struct pair *p = pair_create(test, &c);
		struct ping ping = { .s = &p->side[0], .left = 1000 };
		int i;

		ping.s->scq.ibcq.comp_handler = ping_handler;
		ping.s->scq.ibcq.cq_context = &ping;
		sroce_cq_arm(&ping.s->scq, IB_CQ_NEXT_COMP);
		side_write(ping.s, 0, 10);
		for (i = 0; i < 5000 && READ_ONCE(ping.left); i++) {
			fake_net_settle(&p->net);
			usleep_range(10, 100);
		}
		fake_net_settle(&p->net);
		KUNIT_EXPECT_EQ(test, 0, ping.left);
		pair_exit(test);
	}
}

static void wait_for_tasklet(struct pair *p)
{
	struct side *a = &p->side[0];
	int i;

	for (i = 0; i < 1000; i++) {
		if (p->net.sent || side_count(a, SROCE_CNT_DIRECT_PACKETS))
			return;
		usleep_range(1000, 2000);
	}
}

/* Nothing is sent with interrupts off, but soon after */
static void post_with_interrupts_off(struct kunit *test)
{
	int direct;

	for (direct = 0; direct < 2; direct++) {
		struct pair_config c = { .direct = direct };
		struct pair *p = pair_create(test, &c);
		struct side *a = &p->side[0];
		unsigned long flags;
		struct work w;

		work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 10000);
		local_irq_save(flags);
		side_try_post(a, &w);
		local_irq_restore(flags);
		wait_for_tasklet(p);
		side_expect_send(a, 1, IB_WC_SUCCESS);
		pair_exit(test);
	}
}

#define INTERRUPTS 300

struct interrupts {
	struct hrtimer timer;
	struct side *s;
	atomic_t done;
	int posted;
};

static void count_done(struct interrupts *in)
{
	struct ib_wc wc;

	while (sroce_cq_poll(&in->s->scq, 1, &wc))
		if (wc.status == IB_WC_SUCCESS)
			atomic_inc(&in->done);
	sroce_cq_arm(&in->s->scq, IB_CQ_NEXT_COMP);
}

static enum hrtimer_restart interrupted(struct hrtimer *timer)
{
	struct interrupts *in = container_of(timer, struct interrupts, timer);
	struct work w;

	count_done(in);
	work_rdma(in->s, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 10);
	if (!side_try_post(in->s, &w))
		in->posted++;
	if (in->posted == INTERRUPTS)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, us_to_ktime(30));
	return HRTIMER_RESTART;
}

/*
 * A hard interrupt posts, polls and arms, as the target of a disk does, while
 * its user does the same
 */
static void post_in_interrupts(struct kunit *test)
{
	struct pair_config c = { .direct = true };
	struct pair *p = pair_create(test, &c);
	struct interrupts *in;
	int i, posted = 0;
	struct work w;

	in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, in);
	in->s = &p->side[0];
	hrtimer_setup(&in->timer, interrupted, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&in->timer, us_to_ktime(30), HRTIMER_MODE_REL_HARD);
	for (i = 0; i < 20000; i++) {
		work_rdma(in->s, &w, SROCE_WR_RDMA_WRITE, 2, SRC, DST, 10);
		if (posted < INTERRUPTS && !side_try_post(in->s, &w))
			posted++;
		count_done(in);
		if (atomic_read(&in->done) == 2 * INTERRUPTS)
			break;
		if (i % 16 == 15)
			usleep_range(50, 100);
	}
	hrtimer_cancel(&in->timer);
	KUNIT_EXPECT_EQ(test, INTERRUPTS, in->posted);
	KUNIT_EXPECT_EQ(test, 2 * INTERRUPTS, atomic_read(&in->done));
}

/* --- locks ----------------------------------------------------------------- */

struct in_interrupt {
	struct hrtimer timer;
	struct side *s;
	bool done;
};

static enum hrtimer_restart poll_in_interrupt(struct hrtimer *timer)
{
	struct in_interrupt *in = container_of(timer, struct in_interrupt,
					       timer);
	struct ib_wc wc;

	sroce_cq_poll(&in->s->scq, 1, &wc);
	WRITE_ONCE(in->done, true);
	return HRTIMER_NORESTART;
}

/* Interrupts take the locks of kernel users' queues, and never those of processes' */
static void locks_of_two_kinds(struct kunit *test)
{
	struct sroce_cq *of_process;
	struct pair_config c = {};
	struct in_interrupt *in;

	if (!IS_ENABLED(CONFIG_LOCKDEP))
		kunit_skip(test, "needs lockdep");
	in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	of_process = kunit_kzalloc(test, sizeof(*of_process), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, in && of_process);
	in->s = &pair_create(test, &c)->side[0];
	of_process->user = true;
	KUNIT_ASSERT_EQ(test, 0, sroce_cq_init(of_process, &in->s->port, 8));
	sroce_cq_moderate(of_process, 0, 0);
	hrtimer_setup(&in->timer, poll_in_interrupt, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&in->timer, us_to_ktime(30), HRTIMER_MODE_REL_HARD);
	while (!READ_ONCE(in->done))
		usleep_range(50, 100);
	hrtimer_cancel(&in->timer);
	/* It goes off with the first complaint */
	KUNIT_EXPECT_TRUE(test, debug_locks);
	sroce_cq_cleanup(of_process);
}

/* --- shared receive queues ----------------------------------------------- */

static void srq_messages(struct kunit *test)
{
	struct pair_config c = { .srq = true, .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	b->srq.limit = 5;
	for (i = 0; i < 10; i++)
		side_recv(b, i, DST, 1000);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, i > 5,
				side_events(b, IB_EVENT_SRQ_LIMIT_REACHED));
		side_fill(a, SRC, 900, i);
		post_send(a, i, 900);
		side_expect_send(a, i, IB_WC_SUCCESS);
		side_expect_recv(b, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 900, i));
	}
	post_send(a, 10, 10);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	side_recv(b, 11, DST, 10);
	side_expect_send(a, 10, IB_WC_SUCCESS);
	side_expect_recv(b, 11, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_SRQ_LIMIT_REACHED));
}

/* What was taken out of it is flushed, the rest stays for others */
static void srq_last_one(struct kunit *test)
{
	struct pair_config c = { .srq = true, .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *b = &p->side[1];

	receive_first_packet(p);
	side_to_error(b);
	side_expect_recv(b, 1, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_QP_LAST_WQE_REACHED));
	pair_settle(p);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, 1, sroce_ring_pending(&b->srq.ring));
	side_to_error(b);
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_QP_LAST_WQE_REACHED));
}

static struct kunit_case state_cases[] = {
	KUNIT_CASE(numbers),
	KUNIT_CASE(numbers_of_nobody),
	KUNIT_CASE(numbers_of_no_qp),
	KUNIT_CASE(drain),
	KUNIT_CASE(drain_idle),
	KUNIT_CASE(drain_and_modify),
	KUNIT_CASE(drain_while_not_ready),
	KUNIT_CASE(drain_with_losses),
	KUNIT_CASE(drain_receives),
	KUNIT_CASE(change_and_repeat),
	KUNIT_CASE(no_reads_any_more),
	KUNIT_CASE(change_and_go_on),
	KUNIT_CASE(change_too_early),
	KUNIT_CASE(flush_in_order),
	KUNIT_CASE(flush_many),
	KUNIT_CASE(flush_partly_filled),
	KUNIT_CASE(reset_and_again),
	KUNIT_CASE(destroy_in_flight),
	KUNIT_CASE(cq_overrun),
	KUNIT_CASE(recv_cq_overrun),
	KUNIT_CASE(cq_just_enough),
	KUNIT_CASE(cq_resize),
	KUNIT_CASE(handler_posts),
	KUNIT_CASE(post_with_interrupts_off),
	KUNIT_CASE(post_in_interrupts),
	KUNIT_CASE(locks_of_two_kinds),
	KUNIT_CASE(srq_messages),
	KUNIT_CASE(srq_last_one),
	{}
};

static struct kunit_suite state_suite = {
	.name = "sroce_transport_states",
	.exit = pair_exit,
	.test_cases = state_cases,
};

kunit_test_suite(state_suite);
