// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Lost, late and repeated packets, one event at a time: what is sent because
 * of it by go-back-N, how often, and that nothing is done twice.
 */
#include <linux/delay.h>

#include "tests/transport_pair.h"
#include "transport/answers.h"
#include "transport/requester_response.h"
#include "transport/run.h"

#define SRC SIDE_FROM
#define DST SIDE_TO

/* Packets arrive one by one, so that nothing depends on what comes together */
static struct pair *loss_pair(struct kunit *test, struct pair_config *c)
{
	c->mtu = c->mtu ?: IB_MTU_256;
	c->plain = true;
	c->batch = 1;
	return pair_create(test, c);
}

/* A WRITE of 20 packets arrives, whatever @rules do to these and their answers */
static void write_arrives(struct pair *p, struct rule *rules)
{
	struct side *a = &p->side[0];

	pair_rules(p, rules);
	side_write(a, 1, 20 * 256);
	side_expect_written(a, 1, 20 * 256);
}

static void post_read(struct side *a, u64 id, u32 len)
{
	struct work w;

	side_fill(pair_peer(a), SRC, len, id);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, id, DST, SRC, len));
}

static void post_send(struct side *a, u64 id, u32 len)
{
	struct work w;

	side_fill(a, SRC, len, id);
	side_post(a, work_send(a, &w, id, SRC, len));
}

static void post_add(struct side *a, u64 id, u32 local, u32 cell)
{
	struct work w;

	work_init(&w, SROCE_WR_FETCH_ADD, id);
	work_local(a, &w, local, 8);
	work_atomic(a, &w, cell, 1, 0);
	side_post(a, &w);
}

/* --- sequence NAK -------------------------------------------------------- */

static void one_nak_for_a_gap(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, psn + 5, 1, FAKE_DROP), {}
	};
	const struct fake_log *l;

	write_arrives(p, rules);
	KUNIT_EXPECT_EQ(test, 0, p->expired);

	KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_ACK, SROCE_NAK_PSN_SEQ));
	l = side_sent_nth(b, SROCE_OP_ACK, SROCE_NAK_PSN_SEQ, 0);
	KUNIT_EXPECT_EQ(test, l->psn, psn + 5);
	/* All of the first time, then from the lost one on */
	KUNIT_EXPECT_EQ(test, 20 + 15, side_sent(a, SROCE_OP_WRITE, -1));
	l = side_sent_nth(a, SROCE_OP_WRITE, -1, 20);
	KUNIT_EXPECT_EQ(test, l->psn, psn + 5);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 15, side_count(a, SROCE_CNT_RETRANS_PACKETS));
}

static void repeated_packet_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a) + 5, 4, FAKE_DROP), {}
	};

	write_arrives(p, rules);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 4, side_sent(b, SROCE_OP_ACK, SROCE_NAK_PSN_SEQ));
}

static void nak_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a) + 5, 1, FAKE_DROP),
		rule_nth(b, SROCE_OP_ACK, 0, 1, FAKE_DROP), {}
	};

	write_arrives(p, rules);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR));
}

/* A NAK that arrives twice must not make the sender start over twice */
static void nak_twice(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a) + 5, 1, FAKE_DROP),
		rule_nth(b, SROCE_OP_ACK, 0, 1, FAKE_TWICE), {}
	};

	write_arrives(p, rules);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_LE(test, side_sent(a, SROCE_OP_WRITE, -1), 20 + 15 + 15);
}

static void last_packet_lost(struct kunit *test)
{
	struct pair_config c = { .psn = 0xfffffa };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a) + 19, 2, FAKE_DROP), {}
	};

	write_arrives(p, rules);
	KUNIT_EXPECT_EQ(test, 2, p->expired);
}

static void gap_across_psn_wrap(struct kunit *test)
{
	struct pair_config c = { .psn = 0xfffff8 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, 0xffffff, 1, FAKE_DROP),
		rule_psn(a, SROCE_OP_WRITE, 0, 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 20 * 256);
	post_read(a, 2, 20 * 256);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 20 * 256, 1) ||
			  side_filled(b, SRC, 20 * 256, 2));
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 20 * 256, 2));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* --- duplicates ---------------------------------------------------------- */

static void ack_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(b, SROCE_OP_ACK, 0, 1, FAKE_DROP), {} };
	struct ib_wc wc;

	pair_rules(p, rules);
	side_recv(b, 1, DST, 300);
	side_recv(b, 2, DST, 300);
	post_send(a, 3, 300);
	pair_deliver(p);
	/* The data has arrived; whoever has seen it may overwrite it */
	side_expect_recv(b, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 300, 3));
	side_fill(b, DST, 300, 99);
	KUNIT_EXPECT_FALSE(test, side_poll(&a->scq, &wc));

	side_expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 300, 99));
	KUNIT_EXPECT_EQ(test, 2, side_count(b, SROCE_CNT_DUPLICATE_REQUEST));
	side_expect_none(b);
	/* The second one is still there for the next message */
	post_send(a, 4, 300);
	side_expect_send(a, 4, IB_WC_SUCCESS);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
	/* Duplicates do not count as messages */
	KUNIT_EXPECT_EQ(test, 2, b->qp->resp.msn);
}

/* Duplicate requests that would do harm if anything of them were looked at */
static void hostile_duplicates(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a), acks;
	struct bio_vec bv;
	struct sroce_train t;

	side_write(a, 1, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_fill(b, DST, 10, 99);
	acks = side_sent(b, SROCE_OP_ACK, SROCE_AETH_ACK_UNLIMITED);

	t = side_train(a, SROCE_OP_WRITE, psn);
	t.va += DST;
	t.dma_len = 10;
	bvec_set_virt(&bv, a->mem, 10);
	t.bv = &bv;
	t.bi.bi_size = 10;
	side_inject(a, &t);
	t.rkey = 0x1234;
	side_inject(a, &t);
	t.psn = psn - 1000;
	side_inject(a, &t);
	t = side_train(a, SROCE_OP_READ, psn);
	t.dma_len = 10;
	side_inject(a, &t);
	t = side_train(a, SROCE_OP_FETCH_ADD, psn);
	t.va += DST - 5;
	t.swap_add = 1;
	side_inject(a, &t);
	fake_net_settle(&p->net);

	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 10, 99));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	KUNIT_EXPECT_EQ(test, acks + 3, side_sent(b, SROCE_OP_ACK, -1));
	KUNIT_EXPECT_EQ(test, 0, side_sent(b, SROCE_OP_READ_RESP, -1));
	KUNIT_EXPECT_EQ(test, 0, side_sent(b, SROCE_OP_ATOMIC_ACK, -1));
	/* Every answer is about the newest */
	KUNIT_EXPECT_EQ(test, psn, side_sent_nth(b, SROCE_OP_ACK, -1,
						 acks + 2)->psn);
}

static void every_request_twice(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_SEND, 0, 0, FAKE_TWICE),
		rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_TWICE),
		rule_nth(a, SROCE_OP_READ, 0, 0, FAKE_TWICE),
		rule_nth(a, SROCE_OP_FETCH_ADD, 0, 0, FAKE_TWICE), {}
	};
	u64 *cell = (u64 *)(b->mem + 0x40000);
	u32 i;

	pair_rules(p, rules);
	for (i = 0; i < 10; i++) {
		side_recv(b, i, DST, 1000);
		post_send(a, 10 * i, 1000);
		side_write(a, 10 * i + 1, 1000);
		post_add(a, 10 * i + 2, 0x40000 + 8 * i, 0x40000);
		side_expect_send(a, 10 * i, IB_WC_SUCCESS);
		side_expect_send(a, 10 * i + 1, IB_WC_SUCCESS);
		side_expect_send(a, 10 * i + 2, IB_WC_SUCCESS);
		side_expect_recv(b, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, i, ((u64 *)(a->mem + 0x40000))[i]);
		post_read(a, 10 * i + 3, 1000);
		side_expect_send(a, 10 * i + 3, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 1000, 10 * i + 3));
	}
	KUNIT_EXPECT_EQ(test, 10, *cell);
	pair_settle(p);
	side_expect_none(a);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
}

/* Additions to one cell, whatever @rules do to their answers: each is done once, and in turn */
static void adds_arrive(struct pair *p, struct rule *rules, u32 n)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 *cell = (u64 *)(b->mem + 0x40000);
	u64 *got = (u64 *)(a->mem + 0x40000);
	u32 i;

	pair_rules(p, rules);
	for (i = 0; i < n; i++)
		post_add(a, i, 0x40000 + 8 * i, 0x40000);
	for (i = 0; i < n; i++) {
		side_expect_send(a, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(p->test, i, got[i]);
	}
	KUNIT_EXPECT_EQ(p->test, n, *cell);
	KUNIT_EXPECT_EQ(p->test, n, side_count(b, SROCE_CNT_RX_ATOMIC_REQUESTS));
}

/* The answer to a repeated atomic is the old one; the atomic is not done again */
static void atomic_response_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct rule rules[] = {
		rule_nth(&p->side[1], SROCE_OP_ATOMIC_ACK, 2, 3, FAKE_DROP), {}
	};

	adds_arrive(p, rules, 6);
}

/*
 * rdma_rxe rounds the number that was agreed on up to a power of two. Responses to all of these are
 * lost: whatever it may have outstanding is remembered.
 */
static void more_outstanding_than_agreed(struct kunit *test)
{
	struct pair_config c = { .rd_atomic = 5 };
	struct pair *p = loss_pair(test, &c);
	struct rule rules[] = {
		rule_nth(&p->side[1], SROCE_OP_ATOMIC_ACK, 0, 8, FAKE_DROP), {}
	};

	p->side[0].qp->attr.max_rd_atomic = 8;
	adds_arrive(p, rules, 8);
	KUNIT_EXPECT_EQ(test, 8, rules[0].hits);
}

static void post_atomic_write(struct side *a, u64 id, u64 value)
{
	struct work w;

	work_init(&w, SROCE_WR_ATOMIC_WRITE, id);
	work_remote(a, &w, 0x40000);
	w.wqe.flags |= SROCE_SEND_INLINE;
	w.wqe.inline_len = 8;
	w.inline_data = &value;
	side_post(a, &w);
}

/* Done again it would undo what was written since */
static void atomic_write_response_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(b, SROCE_OP_READ_RESP, 0, 2, FAKE_DROP), {}
	};
	u64 *cell = (u64 *)(b->mem + 0x40000);

	pair_rules(p, rules);
	post_atomic_write(a, 1, 1);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, *cell);
	*cell = 5;
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 5, *cell);
	KUNIT_EXPECT_EQ(test, 2, p->expired);
	post_atomic_write(a, 2, 7);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 7, *cell);
}

/* A READ of half the PSNs that there are is asked for again, and answered once */
static void duplicates_of_longest_read(struct kunit *test)
{
	struct sroce_rd_res res = { .op = SROCE_OP_READ, .npsn = BIT(23) };
	struct sroce_resp_answers a = {};
	int i;

	KUNIT_ASSERT_EQ(test, 0, sroce_answers_alloc(&a, 4, false));
	KUNIT_EXPECT_TRUE(test, sroce_answers_add(&a, &res));
	for (i = 0; i < 3; i++)
		sroce_answers_repeat(&a, &res);
	KUNIT_EXPECT_EQ(test, 1, a.job_tail - a.job_head);
	res.psn = BIT(23);
	KUNIT_EXPECT_TRUE(test, sroce_answers_add(&a, &res));
	sroce_answers_repeat(&a, &res);
	KUNIT_EXPECT_EQ(test, 2, a.job_tail - a.job_head);
	sroce_answers_free(&a);
}

/* The responder sends later answers even if an earlier request comes again */
static void late_duplicate_of_read(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_READ, 0, 1, FAKE_TWICE), {}
	};
	u32 i;

	pair_rules(p, rules);
	/* Its device is full, so that answers wait */
	sroce_txq_set_limit(b->qp->txq, 300);
	for (i = 0; i < 4; i++)
		post_read(a, i, 1000);
	for (i = 0; i < 4; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 1000, 3));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* PSNs come round: an older READ, still remembered, had the one that is repeated */
static void repeated_read_after_wrap(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(b, SROCE_OP_READ_RESP, 0, 1, FAKE_DROP), {}
	};
	u32 psn = side_first_psn(a);
	struct work w;

	post_read(a, 1, 100);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	/* As if all the others had been used meanwhile */
	a->qp->req.una_psn = psn;
	a->qp->req.send_psn = psn;
	a->qp->req.next_psn = psn;
	b->qp->resp.epsn = psn;
	pair_rules(p, rules);
	side_fill(b, SRC + 4096, 200, 9);
	work_rdma(a, &w, SROCE_WR_RDMA_READ, 2, DST, SRC + 4096, 200);
	side_post(a, &w);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 200, 9));
}

/* The region may be gone when a READ comes again that was answered long ago */
static void duplicate_of_read_without_region(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t;

	/* As an example of one: the right to read is taken away */
	post_read(a, 1, 100);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	b->mr->access = IB_ACCESS_LOCAL_WRITE;
	t = side_train(a, SROCE_OP_READ, side_first_psn(a));
	t.va += SRC;
	t.dma_len = 100;
	side_inject(a, &t);
	fake_net_settle(&p->net);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	KUNIT_EXPECT_EQ(test, 0, side_sent(b, SROCE_OP_ACK, -1));
	KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_READ_RESP, -1));
	post_send(a, 2, 0);
	side_recv(b, 3, DST, 0);
	side_expect_send(a, 2, IB_WC_SUCCESS);
}

/* The READ came twice, but nothing has been answered yet: it fails, as one that came once */
static void region_lost_before_read(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_half *half = &b->qp->resp.half;
	u32 bytes = fake_txq_fill(b->qp->txq);
	struct sroce_train t;

	half->starved = true;
	t = side_train(a, SROCE_OP_READ, side_first_psn(a));
	t.va += SRC;
	t.dma_len = 100;
	post_read(a, 1, 100);
	side_inject(a, &t);
	fake_net_settle(&p->net);
	KUNIT_EXPECT_EQ(test, 0, side_sent(b, SROCE_OP_READ_RESP, -1));
	b->mr->access = IB_ACCESS_LOCAL_WRITE;
	fake_txq_give(b->qp->txq, bytes);
	sroce_half_run(half);
	side_expect_send(a, 1, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
}

/* It goes away while the answers are being sent: the READ fails */
static void region_lost_while_read(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	sroce_txq_set_limit(b->qp->txq, 3000);
	side_write(a, 1, 10);
	/* More than one train of answers */
	work_rdma(a, &w, SROCE_WR_RDMA_READ, 2, DST, SRC, 100 * 256);
	side_post(a, &w);
	side_write(a, 3, 10);
	while (!side_sent(b, SROCE_OP_READ_RESP, -1))
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_TRUE(test, b->qp->resp.half.starved);
	b->mr->access = IB_ACCESS_LOCAL_WRITE;
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_REM_ACCESS_ERR);
	side_expect_send(a, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_QP_ACCESS_ERR));
}

/* --- lost READ responses ------------------------------------------------- */

static void read_response_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + 5, 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	post_read(a, 1, 20 * 256 - 1);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 20 * 256 - 1, 1));
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 2, side_sent(a, SROCE_OP_READ, -1));
	KUNIT_EXPECT_EQ(test, psn + 5,
			side_sent_nth(a, SROCE_OP_READ, -1, 1)->psn);
	KUNIT_EXPECT_EQ(test, 20 + 15, side_sent(b, SROCE_OP_READ_RESP, -1));
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.rd_outstanding);
}

/* Also that of the second time, without waiting for the timer */
static void repeated_response_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + 5, 3, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	post_read(a, 1, 20 * 256);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 20 * 256, 1));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 3, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
}

static void response_after_timeout_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_READ, 0, 1, FAKE_DROP),
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a), 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	post_read(a, 1, 20 * 256);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 20 * 256, 1));
	KUNIT_EXPECT_EQ(test, 1, p->expired);
}

static void read_request_lost(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_READ, 0, 1, FAKE_DROP), {} };

	pair_rules(p, rules);
	post_read(a, 1, 1000);
	side_write(a, 2, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_ACK, SROCE_NAK_PSN_SEQ));
}

/* The request for a later piece of one READ is lost: an explicit NAK */
static void chunk_request_lost(struct kunit *test)
{
	struct pair_config c = { .window = 16 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = { rule_nth(a, SROCE_OP_READ, 1, 1, FAKE_DROP), {} };

	pair_rules(p, rules);
	post_read(a, 1, 64 * 256);
	/* The pieces stay as they are, but there is room for several now */
	a->qp->req.window = 64;
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 64 * 256, 1));
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.rd_outstanding);
}

/* The ACK of a later WRITE tells that the READ's last response is lost */
static void implied_by_ack(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a) + 3, 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	post_read(a, 1, 4 * 256);
	side_write(a, 2, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 4 * 256, 1));
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
}

/*
 * A peer that goes on acknowledging what comes behind a READ, and does not answer that: it is
 * asked again, but not for each of its ACKs
 */
static void never_answered(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_READ, 0, 0, FAKE_DROP),
		rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_DROP), {}
	};
	u32 psn = side_first_psn(a), restarts, most, i;
	u64 begin = ktime_get_ns();

	pair_rules(p, rules);
	post_read(a, 1, 10);
	for (i = 2; i < 6; i++)
		side_write(a, i, 10);
	for (i = 0; i < 500; i++) {
		side_inject_ack(b, 0, psn + 4);
		pair_deliver(p);
	}
	restarts = side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR);
	/* Four at once, and then after 1, 2, 4 ... ms, or more where a round trip is longer */
	most = 5 + fls(div_u64(ktime_get_ns() - begin, NSEC_PER_MSEC));
	kunit_info(test, "%u restarts of %u\n", restarts, most);
	KUNIT_EXPECT_GE(test, restarts, 4);
	KUNIT_EXPECT_LE(test, restarts, most);
	pair_rules(p, NULL);
	for (i = 1; i < 6; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.rd_outstanding);
}

/* ACKs of the peer, all before the requester runs again */
static void acks_come(struct side *a, u32 psn, u32 n)
{
	struct sroce_train t = side_train(pair_peer(a), SROCE_OP_ACK, psn);

	t.flags = SROCE_START | SROCE_END;
	spin_lock_bh(&a->qp->req.half.lock);
	while (n--)
		sroce_requester_response(a->qp, &t);
	spin_unlock_bh(&a->qp->req.half.lock);
	sroce_half_run(&a->qp->req.half);
	pair_deliver(a->pair);
}

/* Nothing that a side sends arrives */
static void silence(struct side *a, struct rule *rules)
{
	rules[0] = rule_nth(a, SROCE_OP_READ, 0, 0, FAKE_DROP);
	rules[1] = rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_DROP);
	rules[2] = (struct rule){};
	pair_rules(a->pair, rules);
}

/* Answers that come several times before anything is sent again tell of one loss */
static void told_several_times(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[3];

	silence(a, rules);
	post_read(a, 1, 10);
	side_write(a, 2, 10);
	acks_come(a, side_first_psn(a) + 1, 6);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	pair_rules(p, NULL);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
}

/*
 * Who posts meanwhile has an ACK come that might be of the stream before the restart: where no
 * timeout would help, the response is asked for once more
 */
static void lost_while_posting(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	unsigned long end = jiffies + 20 * HZ;
	u32 psn = side_first_psn(a);
	struct rule rules[3];
	struct ib_wc wc = {};

	a->qp->attr.timeout = 0;
	silence(a, rules);
	post_read(a, 1, 10);
	side_write(a, 2, 10);
	acks_come(a, psn + 1, 1);
	side_write(a, 3, 10);
	acks_come(a, psn + 2, 1);
	pair_rules(p, NULL);
	while (!side_poll(&a->scq, &wc) && time_before(jiffies, end))
		pair_deliver(p);
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, 1, wc.wr_id);
}

/* ... and what comes too soon is only put off: also where no timeout would help */
static void put_off(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(b, SROCE_OP_READ_RESP, 0, 7, FAKE_DROP), {} };
	unsigned long end = jiffies + 20 * HZ;
	struct ib_wc wc = {};

	a->qp->attr.timeout = 0;
	pair_rules(p, rules);
	post_read(a, 1, 10);
	side_write(a, 2, 10);
	while (!side_poll(&a->scq, &wc) && time_before(jiffies, end))
		pair_deliver(p);
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, 1, wc.wr_id);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 7, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_FALSE(test, a->qp->req.ask_due);
}

/*
 * The response to a READ of nothing has no data that could be missing: an answer to what was
 * sent behind it, whether an ACK or a response, tells as much
 */
static void empty_read_unanswered(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, psn + 1, 0, FAKE_DROP),
		rule_psn(b, SROCE_OP_READ_RESP, psn + 3, 0, FAKE_DROP),
		rule_psn(b, SROCE_OP_READ_RESP, psn + 4, 0, FAKE_DROP), {}
	};
	u32 i;

	pair_rules(p, rules);
	side_write(a, 1, 10);
	post_read(a, 2, 0);
	side_write(a, 3, 10);
	post_read(a, 4, 0);
	post_read(a, 5, 0);
	post_read(a, 6, 300);
	for (i = 1; i <= 6; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 300, 6));
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 4, side_sent(a, SROCE_OP_READ, -1));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.rd_outstanding);
}

/* Also when the receiver is not ready for what comes behind it, and says so */
static void empty_read_before_rnr(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = 7 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(b, SROCE_OP_READ_RESP, 0, 0, FAKE_DROP), {} };

	pair_rules(p, rules);
	post_read(a, 1, 0);
	post_send(a, 2, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	side_recv(b, 1, DST, 10);
	side_expect_send(a, 2, IB_WC_SUCCESS);
}

/* One that the window had no room for has not been carried out, whatever PSN a response has */
static void empty_read_not_sent(struct kunit *test)
{
	struct pair_config c = { .window = 16 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_HOLD), {} };
	struct sroce_train t;
	u32 una, next, i;

	pair_rules(p, rules);
	side_write(a, 1, 16 * 256);
	post_read(a, 2, 0);
	pair_deliver(p);
	una = a->qp->req.una_psn;
	next = a->qp->req.next_psn;
	KUNIT_EXPECT_EQ(test, 16, (next - una) & SROCE_PSN_MASK);
	for (i = 0; i < 4; i++) {
		t = side_train(b, SROCE_OP_READ_RESP, next + 0x7fffff + i);
		side_inject(b, &t);
		pair_deliver(p);
	}
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, una, a->qp->req.una_psn);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
}

/* ... but the last one, with nothing behind it, is asked for again */
static void empty_read_is_last(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(b, SROCE_OP_READ_RESP, 0, 1, FAKE_DROP), {} };

	pair_rules(p, rules);
	side_write(a, 1, 10);
	post_read(a, 2, 0);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
	KUNIT_EXPECT_EQ(test, 2, side_sent(a, SROCE_OP_READ, -1));
}

/* --- receiver not ready -------------------------------------------------- */

static void not_ready(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = 3 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	for (i = 0; i < 4; i++)
		post_send(a, i, 1000);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	/* What follows is dropped in silence */
	KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_ACK, -1));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE));
	for (i = 0; i < 4; i++)
		side_recv(b, i + 10, DST, 1000);
	for (i = 0; i < 4; i++) {
		side_expect_send(a, i, IB_WC_SUCCESS);
		side_expect_recv(b, i + 10, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 1000, 3));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RNR_NAK_RETRY_ERR));
}

/* What needs no receive has been taken, however the packets were coupled */
static void not_ready_immediate(struct kunit *test)
{
	struct pair_config c = {};
	struct work w;
	struct pair *p;
	u64 seed;

	for (seed = 1; seed <= 8; seed++) {
		c.seed = seed;
		p = loss_pair(test, &c);
		side_fill(&p->side[0], SRC, 5 * p->mtu, seed);
		work_rdma(&p->side[0], &w, SROCE_WR_RDMA_WRITE_IMM, 1,
			  SRC, DST, 5 * p->mtu);
		side_post(&p->side[0], &w);
		pair_deliver(p);
		KUNIT_EXPECT_TRUE(test, p->side[0].qp->req.rnr_wait);
		side_recv(&p->side[1], 2, 0, 0);
		side_expect_send(&p->side[0], 1, IB_WC_SUCCESS);
		side_expect_recv(&p->side[1], 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, side_filled(&p->side[1], DST,
						    5 * p->mtu, seed));
		KUNIT_EXPECT_EQ(test, 1, side_count(&p->side[0],
						    SROCE_CNT_RETRANS_PACKETS));
		pair_exit(test);
	}
}

static void not_ready_too_often(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = 3 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_write(a, 1, 300);
	post_send(a, 2, 1000);
	side_write(a, 3, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_RNR_RETRY_EXC_ERR);
	side_expect_send(a, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	KUNIT_EXPECT_EQ(test, 4, side_sent(b, SROCE_OP_ACK, SROCE_AETH_RNR));
	KUNIT_EXPECT_EQ(test, 1,
			side_count(a, SROCE_CNT_REQ_RNR_RETRIES_EXCEEDED));
	pair_settle(p);
	side_expect_none(b);
}

static void not_ready_never_tolerated(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = -1 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];

	post_send(a, 1, 10);
	side_expect_send(a, 1, IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* 7 is not seven but for ever */
static void not_ready_for_ever(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = 7 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	int i;

	post_send(a, 1, 10);
	for (i = 0; i < 50; i++) {
		pair_deliver(p);
		KUNIT_EXPECT_TRUE(test, side_expire(a));
	}
	pair_deliver(p);
	side_recv(b, 2, DST, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
}

/* A WRITE with immediate lacks its receive at its end only */
static void not_ready_for_immediate(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_fill(a, SRC, 1000, 5);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, 1, SRC, DST,
			       1000));
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 768, 5));
	side_recv(b, 2, 0, 0);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 1000, 5));
	KUNIT_EXPECT_EQ(test, 5, side_sent(a, SROCE_OP_WRITE, -1));
}

/* An old RNR NAK makes the sender wait for what is acknowledged meanwhile */
static void old_rnr_then_ack(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(b, SROCE_OP_ACK, 0, 1, FAKE_HOLD), {} };

	side_recv(b, 1, DST, 10);
	pair_rules(p, rules);
	post_send(a, 2, 10);
	pair_deliver(p);
	side_inject_ack(b, SROCE_AETH_RNR, side_first_psn(a));
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	fake_net_release(&p->net);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_recv(b, 1, IB_WC_SUCCESS);

	side_write(a, 3, 10);
	side_expect_send(a, 3, IB_WC_SUCCESS);
}

static void nak_while_waiting(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 sent;

	post_send(a, 1, 10);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	sent = p->net.sent;
	side_inject_ack(b, SROCE_NAK_PSN_SEQ, side_first_psn(a));
	pair_deliver(p);
	/* The wait goes on */
	KUNIT_EXPECT_EQ(test, sent + 1, p->net.sent);
	side_recv(b, 2, DST, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
}

/* --- giving up ----------------------------------------------------------- */

static void peer_dead(struct kunit *test, int retry)
{
	enum sroce_counter exceeded = SROCE_CNT_REQ_TRANSPORT_RETRIES_EXCEEDED;
	struct pair_config c = { .retry = retry ?: -1 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	u32 i;

	p->net.drop = 1000;
	side_recv(a, 100, DST, 10);
	side_write(a, 0, 10);
	post_read(a, 1, 10);
	work_init(&w, SROCE_WR_SEND, 2);
	w.wqe.flags = 0;
	side_post(a, &w);
	post_add(a, 3, DST, 0);
	side_expect_send(a, 0, IB_WC_RETRY_EXC_ERR);
	for (i = 1; i < 4; i++)
		side_expect_send(a, i, IB_WC_WR_FLUSH_ERR);
	side_expect_recv(a, 100, IB_WC_WR_FLUSH_ERR);
	pair_settle(p);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, retry + 1, p->expired);
	KUNIT_EXPECT_EQ(test, retry + 1, side_sent(a, SROCE_OP_WRITE, -1));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, exceeded));
	pair_exit(test);
}

static void retries_exhausted(struct kunit *test)
{
	peer_dead(test, 0);
	peer_dead(test, 1);
	peer_dead(test, 7);
}

static void naks_exhaust_retries(struct kunit *test)
{
	struct pair_config c = { .retry = 3, .timeout = 8 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a) + 5, 0, FAKE_DROP), {}
	};
	u64 start = ktime_get_ns();

	pair_rules(p, rules);
	side_write(a, 1, 20 * 256);
	side_expect_send(a, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_GE(test, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE), 4);
	/* A burst of NAKs is one retry */
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 3 * 4 * NSEC_PER_MSEC);
}

/* Whatever makes progress may be retried as often again */
/*
 * A queue of this host lets go of nothing. With every retry the window, and with it
 * what the QP may have in such queues, becomes smaller, until it may not even
 * send again: it must not wait for that queue without end.
 */
static void stuck_below(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_4096, .window = 1024 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_HOLD), {}
	};
	u32 i;

	pair_rules(p, rules);
	for (i = 0; i < 8; i++)
		side_write(a, i, 1024 * 1024);
	side_expect_send(a, 0, IB_WC_RETRY_EXC_ERR);
	for (i = 1; i < 8; i++)
		side_expect_send(a, i, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, a->qp->req.half.starved);
	KUNIT_EXPECT_EQ(test, 8, side_count(a, SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR));
	fake_net_purge(&p->net);
}

/* What hangs there was acknowledged: the same, though nothing is in flight */
static void stuck_when_idle(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	struct sroce_half *half = &a->qp->req.half;
	u32 bytes;

	side_write(a, 1, 1000);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	bytes = fake_txq_fill(a->qp->txq);
	half->starved = true;
	side_write(a, 2, 1000);
	side_expect_send(a, 2, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	fake_txq_give(a->qp->txq, bytes);
}

/* It goes on letting go of them, slowly: retries are for what is lost */
static void drains_slowly(struct kunit *test)
{
	struct pair_config c = { .retry = 2 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	u32 i, bytes = fake_txq_fill(a->qp->txq);

	a->qp->req.half.starved = true;
	side_write(a, 1, 1000);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_TRUE(test, side_expire(a));
		fake_txq_give(a->qp->txq, 1000);
		bytes -= 1000;
	}
	KUNIT_EXPECT_EQ(test, 0, p->net.sent);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR));
	fake_txq_give(a->qp->txq, bytes);
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

/* It lets go of them after all: whoever waited has a full timeout for an ACK */
static void stuck_for_a_while(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	struct sroce_half *half = &a->qp->req.half;
	u32 bytes;

	bytes = fake_txq_fill(a->qp->txq);
	half->starved = true;
	side_write(a, 1, 1000);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	KUNIT_EXPECT_EQ(test, 0, p->net.sent);
	fake_txq_give(a->qp->txq, bytes);
	a->qp->req.deadline = 1;
	sroce_half_run(half);
	KUNIT_EXPECT_NE(test, 0, p->net.sent);
	KUNIT_EXPECT_GT(test, a->qp->req.deadline, ktime_get_ns());
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR));
	KUNIT_EXPECT_EQ(test, a->qp->attr.retry_cnt, a->qp->req.retries);
}

static void progress_reloads_retries(struct kunit *test)
{
	struct pair_config c = { .retry = 2 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, psn + 2, 2, FAKE_DROP),
		rule_psn(a, SROCE_OP_WRITE, psn + 5, 2, FAKE_DROP),
		rule_psn(a, SROCE_OP_WRITE, psn + 8, 2, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 20 * 256);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 2, a->qp->req.retries);
}

/* --- strange responses --------------------------------------------------- */

static void ignored_acks(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 0, 1, FAKE_HOLD), {} };

	pair_rules(p, rules);
	side_write(a, 1, 10);
	fake_net_settle(&p->net);
	/* For what was never sent, for what was long ago, of unknown kinds */
	side_inject_ack(b, SROCE_AETH_ACK_UNLIMITED, psn + 1);
	side_inject_ack(b, SROCE_AETH_ACK_UNLIMITED, psn + 1000);
	side_inject_ack(b, SROCE_AETH_ACK_UNLIMITED, psn - 1);
	side_inject_ack(b, SROCE_AETH_ACK_UNLIMITED, psn - 1000);
	side_inject_ack(b, SROCE_NAK_REM_ACCESS, psn - 1);
	side_inject_ack(b, SROCE_NAK_REM_ACCESS, psn + 1);
	side_inject_ack(b, SROCE_NAK_PSN_SEQ, psn + 1);
	side_inject_ack(b, SROCE_AETH_RNR, psn - 1);
	side_inject_ack(b, SROCE_AETH_RNR, psn + 1);
	side_inject_ack(b, 0x40, psn);
	side_inject_ack(b, 0x80, psn);
	side_inject_ack(b, 0xff, psn);
	side_inject_ack(b, 0x65, psn);
	fake_net_settle(&p->net);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, psn, a->qp->req.una_psn);
	KUNIT_EXPECT_EQ(test, 1, side_sent(a, SROCE_OP_WRITE, -1));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* An ACK of a whole train acknowledges all of it, also unasked packets */
static void one_ack_for_all(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	p->net.batch = 1000;
	for (i = 0; i < 10; i++)
		side_write(a, i, 10);
	fake_net_deliver(&p->net);
	while (side_sent(b, SROCE_OP_ACK, -1) == 0)
		fake_net_deliver(&p->net);
	for (i = 0; i < 10; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_LT(test, side_sent(b, SROCE_OP_ACK, -1), 10);
}

/* --- the clock ----------------------------------------------------------- */

static bool wait_really(struct pair *p, struct sroce_cq *cq, struct ib_wc *wc)
{
	int i;

	for (i = 0; i < 2000; i++) {
		fake_net_settle(&p->net);
		if (side_poll(cq, wc))
			return true;
		usleep_range(500, 1000);
	}
	return false;
}

static void real_timers(struct kunit *test)
{
	struct pair_config c = { .timeout = 8 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 0, 3, FAKE_DROP), {} };
	struct ib_wc wc;
	u64 start;

	pair_rules(p, rules);
	start = ktime_get_ns();
	side_write(a, 1, 10);
	KUNIT_ASSERT_TRUE(test, wait_really(p, &a->scq, &wc));
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	/* Not before the shortest timeout, three times */
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 3 * 4 * NSEC_PER_MSEC);

	b->qp->attr.min_rnr_timer = 0x18;
	start = ktime_get_ns();
	post_send(a, 2, 10);
	fake_net_settle(&p->net);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	side_recv(b, 3, DST, 10);
	KUNIT_ASSERT_TRUE(test, wait_really(p, &a->scq, &wc));
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 40960 * NSEC_PER_USEC);

	/* And with nobody there, all of it */
	p->net.drop = 1000;
	side_write(a, 4, 10);
	KUNIT_ASSERT_TRUE(test, wait_really(p, &a->scq, &wc));
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 4);
}

/* The shortest delay again and again would be a storm */
static void not_ready_slows_down(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = 7 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 start = ktime_get_ns(), ms = 0;
	u32 naks = 0;

	b->qp->attr.min_rnr_timer = 1;
	post_send(a, 1, 10);
	/* A busy machine may not come to it for as long */
	while (ms < 30 || (naks < 3 && ms < 10000)) {
		fake_net_settle(&p->net);
		cond_resched();
		naks = side_sent(b, SROCE_OP_ACK, SROCE_AETH_RNR | 1);
		ms = div_u64(ktime_get_ns() - start, NSEC_PER_MSEC);
	}
	/* 10 us, 20 us, ... 640 us, then once per millisecond */
	KUNIT_EXPECT_LE(test, naks, 20 + ms);
	KUNIT_EXPECT_GE(test, naks, 3);
	side_recv(b, 2, DST, 10);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.rnr_naks);
}

/* After RESET the next connection's timeout counts, not what is left of the old */
static void timeout_after_reset(struct kunit *test)
{
	struct pair_config c = { .timeout = 20 };
	struct pair *p = loss_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 0, 0, FAKE_DROP), {} };
	struct ib_wc wc;

	pair_rules(p, rules);
	side_write(a, 1, 10);
	fake_net_settle(&p->net);
	side_to_reset(a);
	p->config.timeout = 8;
	side_to_init(a);
	side_to_rtr(a);
	side_to_rts(a);
	side_write(a, 2, 10);
	fake_net_settle(&p->net);
	pair_rules(p, NULL);
	KUNIT_ASSERT_TRUE(test, wait_really(p, &a->scq, &wc));
	KUNIT_EXPECT_EQ(test, wc.wr_id, 2);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_QP_FATAL));
}

static struct kunit_case loss_cases[] = {
	KUNIT_CASE(one_nak_for_a_gap),
	KUNIT_CASE(repeated_packet_lost),
	KUNIT_CASE(nak_lost),
	KUNIT_CASE(nak_twice),
	KUNIT_CASE(last_packet_lost),
	KUNIT_CASE(gap_across_psn_wrap),
	KUNIT_CASE(ack_lost),
	KUNIT_CASE(hostile_duplicates),
	KUNIT_CASE(every_request_twice),
	KUNIT_CASE(atomic_response_lost),
	KUNIT_CASE(more_outstanding_than_agreed),
	KUNIT_CASE(atomic_write_response_lost),
	KUNIT_CASE(duplicates_of_longest_read),
	KUNIT_CASE(late_duplicate_of_read),
	KUNIT_CASE(repeated_read_after_wrap),
	KUNIT_CASE(duplicate_of_read_without_region),
	KUNIT_CASE(region_lost_before_read),
	KUNIT_CASE(region_lost_while_read),
	KUNIT_CASE(read_response_lost),
	KUNIT_CASE(repeated_response_lost),
	KUNIT_CASE(response_after_timeout_lost),
	KUNIT_CASE(read_request_lost),
	KUNIT_CASE(chunk_request_lost),
	KUNIT_CASE(implied_by_ack),
	KUNIT_CASE(never_answered),
	KUNIT_CASE(told_several_times),
	KUNIT_CASE(lost_while_posting),
	KUNIT_CASE(put_off),
	KUNIT_CASE(empty_read_unanswered),
	KUNIT_CASE(empty_read_before_rnr),
	KUNIT_CASE(empty_read_not_sent),
	KUNIT_CASE(empty_read_is_last),
	KUNIT_CASE(not_ready),
	KUNIT_CASE(not_ready_immediate),
	KUNIT_CASE(not_ready_too_often),
	KUNIT_CASE(not_ready_never_tolerated),
	KUNIT_CASE(not_ready_for_ever),
	KUNIT_CASE(not_ready_for_immediate),
	KUNIT_CASE(old_rnr_then_ack),
	KUNIT_CASE(nak_while_waiting),
	KUNIT_CASE(retries_exhausted),
	KUNIT_CASE(naks_exhaust_retries),
	KUNIT_CASE(stuck_below),
	KUNIT_CASE(stuck_when_idle),
	KUNIT_CASE(drains_slowly),
	KUNIT_CASE(stuck_for_a_while),
	KUNIT_CASE(progress_reloads_retries),
	KUNIT_CASE(ignored_acks),
	KUNIT_CASE(one_ack_for_all),
	KUNIT_CASE(real_timers),
	KUNIT_CASE(not_ready_slows_down),
	KUNIT_CASE(timeout_after_reset),
	{}
};

static struct kunit_suite loss_suite = {
	.name = "sroce_transport_loss",
	.exit = pair_exit,
	.test_cases = loss_cases,
};

kunit_test_suite(loss_suite);
