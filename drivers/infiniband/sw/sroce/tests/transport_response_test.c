// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which READ a response answers, when many WRITEs are in flight before it: a peer sends
 * as many responses as it likes, so it is looked once. What is remembered of that holds
 * when the queue comes round, when all is sent again, and not in the next life of the QP.
 * And of the longest READ the end is found, too.
 */
#include "tests/transport_pair.h"
#include "transport/requester.h"
#include "transport/run.h"

#define SRC 0x1000
#define DST 0x80000
#define LEN 600
#define WRITES 60
#define WINDOW 128
/* Responses that answer nothing */
#define FLOOD 200

/* Go-back-N; a READ takes three responses */
static struct pair *response_pair(struct kunit *test)
{
	struct pair_config c = {
		.mtu = IB_MTU_256,
		.depth = 64,
		.window = WINDOW,
		.plain = true,
	};

	return pair_create(test, &c);
}

static void post_write(struct side *a, u64 id)
{
	struct work w;

	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, id, SRC, DST, 10));
}

static void post_read(struct side *a, u64 id, u32 seed)
{
	struct work w;

	side_fill(pair_peer(a), SRC, LEN, seed);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, id, DST, SRC, LEN));
}

/* WRITEs in flight, and a READ behind them. They stay where they are */
static void post_behind(struct side *a, u32 seed)
{
	struct rule rules[] = {
		{ .from = a, .op = SROCE_OP_WRITE, .verdict = FAKE_HOLD },
		{ .from = a, .op = SROCE_OP_READ, .verdict = FAKE_HOLD },
		{},
	};
	u64 id;

	/* A loss makes the window smaller */
	a->qp->req.window = WINDOW;
	pair_rules(a->pair, rules);
	for (id = 0; id < WRITES; id++)
		post_write(a, id);
	post_read(a, WRITES, seed);
	pair_deliver(a->pair);
	pair_rules(a->pair, NULL);
	KUNIT_ASSERT_EQ(a->pair->test, WRITES + 3,
			sroce_requester_outstanding(&a->qp->req));
}

/* They arrive, but the second response is lost; all is done, once and in order */
static void expect_arrival(struct side *a, u32 seed)
{
	struct rule rules[] = {
		{ .from = pair_peer(a), .op = SROCE_OP_READ_RESP, .skip = 1,
		  .count = 1, .verdict = FAKE_DROP },
		{},
	};
	u64 id;

	pair_rules(a->pair, rules);
	fake_net_release(&a->pair->net);
	for (id = 0; id <= WRITES; id++)
		side_expect_send(a, id, IB_WC_SUCCESS);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(a->pair->test, 1, rules[0].hits);
	KUNIT_EXPECT_TRUE(a->pair->test, side_filled(a, DST, LEN, seed));
	pair_settle(a->pair);
	pair_rules(a->pair, NULL);
}

/*
 * Responses to the last WRITE, which has none. To find that the READ has a later PSN is
 * to look at all that is before it.
 */
static void flood(struct side *a, u32 n)
{
	struct sroce_train t = side_train(pair_peer(a), SROCE_OP_READ_RESP,
					  a->qp->req.una_psn + WRITES - 1);

	while (n--)
		side_inject(pair_peer(a), &t);
	pair_deliver(a->pair);
	side_expect_none(a);
}

/* Let a work request that is in flight seem to be another operation; which it was */
static u8 disguise(struct side *s, u32 index, u8 op)
{
	struct sroce_requester *req = &s->qp->req;

	spin_lock_bh(&req->half.lock);
	swap(sroce_swqe_at(req, index)->op, op);
	spin_unlock_bh(&req->half.lock);
	return op;
}

/*
 * What was looked at for the first response seems to wait for one afterwards: who looks
 * at it again takes all that come for the end of a gap, and sends again.
 */
static void looked_at_once(struct kunit *test)
{
	struct side *a = &response_pair(test)->side[0];
	int i;

	post_behind(a, 1);
	flood(a, 1);
	for (i = 0; i < WRITES; i++)
		KUNIT_EXPECT_EQ(test, SROCE_OP_WRITE,
				disguise(a, i, SROCE_OP_FETCH_ADD));
	flood(a, FLOOD);
	for (i = 0; i < WRITES; i++)
		disguise(a, i, SROCE_OP_WRITE);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	expect_arrival(a, 1);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
}

/* As if so many work requests had been posted before the next one */
static void begin_at(struct side *s, u32 index)
{
	struct sroce_requester *req = &s->qp->req;

	spin_lock_bh(&req->half.lock);
	req->posted = index;
	req->fetched = index;
	req->send = index;
	req->ring.index = index;
	req->ring.hdr->cons = index;
	req->ring.hdr->prod = index;
	spin_unlock_bh(&req->half.lock);
	/* It has an ACK, and so the QP has looked from there on */
	post_write(s, 0);
	side_expect_send(s, 0, IB_WC_SUCCESS);
}

/* The ring comes round with each time, and the index itself as well */
static void found_behind_the_end(struct kunit *test)
{
	struct side *a = &response_pair(test)->side[0];
	u32 seed;

	begin_at(a, U32_MAX - 100);
	for (seed = 1; seed <= 4; seed++) {
		post_behind(a, seed);
		flood(a, FLOOD);
		expect_arrival(a, seed);
	}
	KUNIT_EXPECT_LT(test, a->qp->req.ring.index, 4 * WRITES);
}

/* Two READs, of which the first is answered: the second is found behind it */
static void found_behind_another(struct kunit *test)
{
	struct side *a = &response_pair(test)->side[0];

	post_read(a, 0, 1);
	side_expect_send(a, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, LEN, 1));
	post_behind(a, 2);
	flood(a, FLOOD);
	expect_arrival(a, 2);
}

/* All is sent again, with the same PSNs; and once more from the middle of the READ */
static void found_again(struct kunit *test)
{
	struct side *a = &response_pair(test)->side[0];

	post_behind(a, 1);
	flood(a, FLOOD);
	fake_net_purge(&a->pair->net);
	side_inject_ack(pair_peer(a), SROCE_NAK_PSN_SEQ, a->qp->req.una_psn);
	KUNIT_EXPECT_TRUE(test, fake_net_deliver(&a->pair->net));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	expect_arrival(a, 1);
	KUNIT_EXPECT_EQ(test, 3, side_sent(a, SROCE_OP_READ, -1));
}

static void begin_anew(struct pair *p)
{
	int i;

	fake_net_purge(&p->net);
	for (i = 0; i < 2; i++)
		side_to_reset(&p->side[i]);
	for (i = 0; i < 2; i++) {
		side_to_init(&p->side[i]);
		side_to_rtr(&p->side[i]);
	}
	for (i = 0; i < 2; i++)
		side_to_rts(&p->side[i]);
}

/*
 * A QP that begins anew begins to look anew. Otherwise the ACK of a WRITE would end the
 * READ before it, whose data have not come.
 */
static void found_after_reset(struct kunit *test)
{
	struct pair *p = response_pair(test);
	struct side *a = &p->side[0];
	u64 id;

	post_behind(a, 1);
	flood(a, 1);
	begin_anew(p);
	side_expect_none(a);
	post_read(a, 0, 2);
	for (id = 1; id <= WRITES; id++)
		post_write(a, id);
	for (id = 0; id <= WRITES; id++)
		side_expect_send(a, id, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, LEN, 2));
}

/* --- a READ of all that a message may have ------------------------------- */

/* Packets that its last request asks for; the others are there */
#define REST 4
#define TAKEN ((u32)SROCE_MAX_NPSN - REST)

/* As if a READ in flight were the last part of one that takes half of all PSNs */
static void lengthen(struct side *s, u32 index)
{
	struct sroce_requester *req = &s->qp->req;
	u32 mtu = s->pair->mtu;
	struct sroce_swqe *slot;

	spin_lock_bh(&req->half.lock);
	slot = sroce_swqe_at(req, index);
	slot->first_psn = sroce_psn_add(slot->first_psn, -TAKEN);
	slot->npsn += TAKEN;
	slot->length += TAKEN * mtu;
	slot->wqe.rdma.remote_addr -= TAKEN * mtu;
	/* Nobody looks at the element that is full */
	slot->sge[1] = slot->sge[0];
	slot->sge[0] = (struct sroce_sge){ .length = TAKEN * mtu };
	slot->wqe.num_sge = 2;
	spin_unlock_bh(&req->half.lock);
}

/* The end of such a READ, and a WRITE behind it: the peer is about to get both */
static void post_longest(struct side *a, u32 write_len)
{
	struct rule rules[] = {
		{ .from = a, .op = SROCE_OP_READ, .verdict = FAKE_HOLD },
		{ .from = a, .op = SROCE_OP_WRITE, .verdict = FAKE_HOLD },
		{},
	};
	u32 len = REST * a->pair->mtu;
	struct work w;

	side_fill(pair_peer(a), SRC, len, 1);
	pair_rules(a->pair, rules);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 0, DST, SRC, len));
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, write_len));
	pair_deliver(a->pair);
	pair_rules(a->pair, NULL);
	lengthen(a, a->qp->req.ring.index);
}

/*
 * Its last responses are lost, and the ACK for what follows it comes: it is more than half
 * of all PSNs behind the READ's first one, and is not to end the READ.
 */
static void longest_read_ends_with_data(struct kunit *test)
{
	struct side *a = &response_pair(test)->side[0];
	struct rule rules[] = {
		{ .from = pair_peer(a), .op = SROCE_OP_READ_RESP, .skip = REST - 1,
		  .count = 1, .verdict = FAKE_DROP },
		{},
	};
	struct ib_wc wc;

	post_longest(a, 3 * a->pair->mtu);
	pair_rules(a->pair, rules);
	fake_net_release(&a->pair->net);
	side_expect(a, &a->scq, 0, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, BIT(31), wc.byte_len);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, rules[0].hits);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, REST * a->pair->mtu, 1));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 2, side_sent(a, SROCE_OP_READ, -1));
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.rd_outstanding);
	KUNIT_EXPECT_EQ(test, 0, a->pair->expired);
	pair_rules(a->pair, NULL);
}

/* --- what an ACK is about -------------------------------------------------------------- */

/* A READ or atomic behind a SEND, of which all answers are lost */
static void lose_answers(struct side *a, u8 opcode, u32 len)
{
	struct side *b = pair_peer(a);
	struct rule rules[] = {
		rule_nth(b, SROCE_OP_ACK, 0, 0, FAKE_DROP),
		rule_nth(b, SROCE_OP_READ_RESP, 0, 0, FAKE_DROP),
		rule_nth(b, SROCE_OP_ATOMIC_ACK, 0, 0, FAKE_DROP),
		{},
	};
	struct work w;

	pair_rules(a->pair, rules);
	side_recv(b, 0, DST, 64);
	side_post(a, work_send(a, &w, 0, SRC, 64));
	work_init(&w, opcode, 1);
	work_local(a, &w, SRC, len);
	if (opcode == SROCE_WR_FETCH_ADD)
		work_atomic(a, &w, DST, 1, 0);
	else
		work_remote(a, &w, DST);
	side_post(a, &w);
	pair_deliver(a->pair);
	pair_rules(a->pair, NULL);
}

/*
 * The SEND comes once more, and is acknowledged, but not what is behind it: rdma_rxe would take an
 * ACK with that PSN for an answer, and complete the READ or atomic without data.
 */
static void expect_no_more_than_send(struct kunit *test, u8 opcode, u32 len)
{
	struct side *a = &response_pair(test)->side[0];
	struct side *b = pair_peer(a);
	struct sroce_train t = side_train(a, SROCE_OP_SEND, side_first_psn(a));
	const struct fake_log *ack;
	u32 before;

	lose_answers(a, opcode, len);
	before = side_sent(b, SROCE_OP_ACK, -1);
	t.flags |= SROCE_ACKREQ;
	fake_net_purge(&a->pair->net);
	side_inject(a, &t);
	fake_net_deliver(&a->pair->net);
	sroce_half_run(&b->qp->resp.half);
	KUNIT_ASSERT_EQ(test, before + 1, side_sent(b, SROCE_OP_ACK, -1));
	ack = side_sent_nth(b, SROCE_OP_ACK, -1, before);
	KUNIT_EXPECT_EQ(test, side_first_psn(a), ack->psn);
	side_expect_send(a, 0, IB_WC_SUCCESS);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	pair_exit(test);
}

static void ack_is_of_no_read(struct kunit *test)
{
	expect_no_more_than_send(test, SROCE_WR_RDMA_READ, 64);
	expect_no_more_than_send(test, SROCE_WR_RDMA_READ, LEN);
}

static void ack_is_of_no_atomic(struct kunit *test)
{
	expect_no_more_than_send(test, SROCE_WR_FETCH_ADD, 8);
	expect_no_more_than_send(test, SROCE_WR_ATOMIC_WRITE, 8);
}

static struct kunit_case response_cases[] = {
	KUNIT_CASE(looked_at_once),
	KUNIT_CASE(found_behind_the_end),
	KUNIT_CASE(found_behind_another),
	KUNIT_CASE(found_again),
	KUNIT_CASE(found_after_reset),
	KUNIT_CASE(longest_read_ends_with_data),
	KUNIT_CASE(ack_is_of_no_read),
	KUNIT_CASE(ack_is_of_no_atomic),
	{}
};

static struct kunit_suite response_suite = {
	.name = "sroce_transport_response",
	.exit = pair_exit,
	.test_cases = response_cases,
};

kunit_test_suite(response_suite);
