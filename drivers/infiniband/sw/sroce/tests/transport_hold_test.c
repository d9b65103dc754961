// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that come before one that is missing: they are held, carried out once and
 * in order, and the peer is asked for no more than is missing, and not for what is
 * only late.
 */
#include <linux/cred.h>

#include "tests/transport_pair.h"
#include "transport/held.h"
#include "transport/hold.h"
#include "turn.h"

#define SRC SIDE_FROM
#define DST SIDE_TO
#define CELL 0x40000
#define MTU 256

/* Packets arrive one by one, so that nothing depends on what comes together */
static struct pair *hold_pair(struct kunit *test, struct pair_config *c)
{
	c->mtu = IB_MTU_256;
	c->batch = 1;
	return pair_create(test, c);
}

static u32 naks(struct side *s)
{
	return side_sent(s, SROCE_OP_ACK, SROCE_NAK_PSN_SEQ);
}

/* Until side 1 holds so many */
static void deliver_until_held(struct pair *p, u32 n)
{
	while (p->side[1].qp->resp.hold.held.n < n)
		KUNIT_ASSERT_TRUE(p->test, fake_net_deliver(&p->net));
}

/* --- one gap --------------------------------------------------------------------- */

/* What came behind the lost packet is there as soon as that is: one ACK tells so */
static void what_is_held_counts(struct kunit *test)
{
	struct pair_config c = { .psn = 0xfffff8 };
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = { rule_psn(a, SROCE_OP_WRITE, psn + 5, 1, FAKE_DROP),
				{} };
	const struct fake_log *l;

	pair_rules(p, rules);
	side_write(a, 1, 20 * MTU);
	while (!naks(b))
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	while (side_sent(a, SROCE_OP_WRITE, -1) < 21)
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_EQ(test, 14, side_count(b, SROCE_CNT_RX_HELD));
	KUNIT_EXPECT_EQ(test, 14, b->qp->resp.hold.held.n);
	/* The lost one comes first, and then no other one is needed */
	while (b->qp->resp.hold.held.n)
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_EQ(test, (psn + 20) & SROCE_PSN_MASK, b->qp->resp.epsn);
	l = side_sent_nth(b, SROCE_OP_ACK, SROCE_AETH_ACK_UNLIMITED,
			  side_sent(b, SROCE_OP_ACK, SROCE_AETH_ACK_UNLIMITED) - 1);
	KUNIT_EXPECT_EQ(test, (psn + 19) & SROCE_PSN_MASK, l->psn);
	side_expect_written(a, 1, 20 * MTU);
	KUNIT_EXPECT_EQ(test, 1, naks(b));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_RX_HELD_DROPS));
}

/* Each gap is asked for when the one before has been filled */
static void several_gaps(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, psn + 5, 1, FAKE_DROP),
		rule_psn(a, SROCE_OP_WRITE, psn + 8, 2, FAKE_DROP),
		rule_psn(a, SROCE_OP_WRITE, psn + 9, 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 20 * MTU);
	side_expect_written(a, 1, 20 * MTU);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_GE(test, naks(b), 2);
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
}

/* A packet that is held already is not held again, and not worth a NAK */
static void held_twice(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, psn, 1, FAKE_HOLD),
		{ .from = a, .op = SROCE_OP_WRITE, .verdict = FAKE_TWICE }, {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 4 * MTU);
	deliver_until_held(p, 3);
	KUNIT_EXPECT_EQ(test, 3, side_count(b, SROCE_CNT_RX_HELD));
	fake_net_release(&p->net);
	side_expect_written(a, 1, 4 * MTU);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/*
 * Where GRO has coupled what is repeated, it is another train than the one that is held,
 * and tells all the same that the missing one was lost again
 */
static void repeated_in_one_train(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a), 2, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 20 * MTU);
	while (!naks(b))
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	deliver_until_held(p, 19);
	p->net.batch = 32;
	side_expect_written(a, 1, 20 * MTU);
	KUNIT_EXPECT_EQ(test, 2, naks(b));
	KUNIT_EXPECT_EQ(test, 19, side_count(b, SROCE_CNT_RX_HELD));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* --- whatever is lost ------------------------------------------------------------ */

/* One of each, so that whatever is done twice, or not in its turn, shows */
static u32 post_all(struct pair *p)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	bool xrc = p->config.type == IB_QPT_XRC_INI;
	u32 off = SRC, id = 0;
	struct work w;

	side_fill(a, SRC, 16 * MTU, 7);
	side_fill(b, 0x60003, 2 * MTU, 8);
	side_recv(b, 100, DST, 3 * MTU);
	side_recv(b, 101, 0, 0);
	side_recv(b, 102, DST + 3 * MTU, MTU);
	work_send(a, &w, id++, off, 3 * MTU);
	w.wqe.opcode = SROCE_WR_SEND_IMM;
	w.wqe.imm_data = cpu_to_be32(1);
	side_post(a, &w);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, id++, off + 3 * MTU,
		  DST + 4 * MTU, 3 * MTU);
	w.wqe.imm_data = cpu_to_be32(2);
	side_post(a, &w);
	work_init(&w, SROCE_WR_FETCH_ADD, id++);
	work_local(a, &w, CELL, 8);
	work_atomic(a, &w, CELL, 3, 0);
	side_post(a, &w);
	work_rdma(a, &w, SROCE_WR_RDMA_READ, id++, DST, 0x60003, 2 * MTU);
	side_post(a, &w);
	side_post(a, work_send(a, &w, id++, off + 6 * MTU, MTU - xrc));
	work_init(&w, SROCE_WR_CMP_SWAP, id++);
	work_local(a, &w, CELL + 8, 8);
	work_atomic(a, &w, CELL, 3, 5);
	side_post(a, &w);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, id++, off + 7 * MTU,
		  DST + 7 * MTU, 2 * MTU);
	side_post(a, &w);
	return id;
}

static void expect_received(struct side *b, u64 id, u32 len, u32 imm)
{
	struct kunit *test = b->pair->test;
	struct ib_wc wc;

	side_expect(b, &b->rcq, id, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, len, wc.byte_len);
	KUNIT_EXPECT_EQ(test, imm ? IB_WC_WITH_IMM : 0, wc.wc_flags);
	KUNIT_EXPECT_TRUE(test, !imm || wc.ex.imm_data == cpu_to_be32(imm));
}

static void expect_all(struct pair *p, u32 n)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct kunit *test = p->test;
	bool xrc = p->config.type == IB_QPT_XRC_INI;
	u32 i;

	for (i = 0; i < n; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	expect_received(b, 100, 3 * MTU, 1);
	expect_received(b, 101, 3 * MTU, 2);
	expect_received(b, 102, MTU - xrc, 0);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, 0, memcmp(a->mem + SRC, b->mem + DST, 3 * MTU));
	KUNIT_EXPECT_EQ(test, 0, memcmp(a->mem + SRC + 3 * MTU,
					b->mem + DST + 4 * MTU, 3 * MTU));
	KUNIT_EXPECT_EQ(test, 0, memcmp(a->mem + SRC + 7 * MTU,
					b->mem + DST + 7 * MTU, 2 * MTU));
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 2 * MTU, 8));
	KUNIT_EXPECT_EQ(test, 5, *(u64 *)(b->mem + CELL));
	KUNIT_EXPECT_EQ(test, 0, *(u64 *)(a->mem + CELL));
	KUNIT_EXPECT_EQ(test, 3, *(u64 *)(a->mem + CELL + 8));
	KUNIT_EXPECT_EQ(test, 7, b->qp->resp.msn);
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
}

/* Something happens to the packet @arg of those of side 0, and only there */
struct event {
	u32 nth;
	u32 seen;
	enum fake_verdict verdict;
};

static enum fake_verdict happen(struct fake_net *net,
				const struct fake_packet *p)
{
	struct event *e = net->arg;

	if (sroce_op_is_response(p->t.op))
		return FAKE_PASS;
	return e->seen++ == e->nth ? e->verdict : FAKE_PASS;
}

static void everywhere(struct kunit *test, enum ib_qp_type type, bool plain,
		       enum fake_verdict verdict)
{
	struct pair_config c = { .type = type, .psn = 0xfffffa };
	struct event e = { .verdict = verdict };
	struct pair *p;
	u32 n;

	for (e.nth = 0; e.nth < 14; e.nth++) {
		p = hold_pair(test, &c);
		p->side[1].port.recovery.selective_repeat_en = !plain;
		e.seen = 0;
		p->net.arg = &e;
		p->net.filter = happen;
		n = post_all(p);
		pair_deliver(p);
		fake_net_release(&p->net);
		expect_all(p, n);
		if (verdict != FAKE_DROP)
			KUNIT_EXPECT_EQ(test, 0, p->expired);
		pair_exit(test);
	}
}

static void lost_anywhere(struct kunit *test)
{
	everywhere(test, IB_QPT_RC, false, FAKE_DROP);
	everywhere(test, IB_QPT_RC, true, FAKE_DROP);
}

static void late_anywhere(struct kunit *test)
{
	everywhere(test, IB_QPT_RC, false, FAKE_HOLD);
}

static void twice_anywhere(struct kunit *test)
{
	everywhere(test, IB_QPT_RC, false, FAKE_TWICE);
}

static void lost_anywhere_xrc(struct kunit *test)
{
	everywhere(test, IB_QPT_XRC_INI, false, FAKE_DROP);
	everywhere(test, IB_QPT_XRC_INI, false, FAKE_HOLD);
}

/* --- what waits, fails or ends meanwhile -------------------------------------------- */

/* A held SEND has no receive: its sender waits, and sends what is behind it again */
static void held_and_not_ready(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a), 1, FAKE_HOLD), {}
	};
	struct work w;

	pair_rules(p, rules);
	side_write(a, 1, 10);
	side_post(a, work_send(a, &w, 2, SRC, 10));
	side_post(a, work_send(a, &w, 3, SRC, 10));
	deliver_until_held(p, 2);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	while (!a->qp->req.rnr_wait)
		KUNIT_ASSERT_TRUE(test, pair_step(p));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	side_recv(b, 4, DST, 10);
	side_recv(b, 5, DST, 10);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	side_expect_recv(b, 4, IB_WC_SUCCESS);
	side_expect_recv(b, 5, IB_WC_SUCCESS);
	side_expect_none(b);
}

/* It comes while the request waits: nothing is sent again */
static void held_until_ready(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a), 1, FAKE_HOLD), {}
	};
	struct work w;

	p->net.idle = NULL;
	pair_rules(p, rules);
	side_write(a, 1, 10);
	side_post(a, work_send(a, &w, 2, SRC, 10));
	side_write(a, 3, 20);
	deliver_until_held(p, 2);
	fake_net_release(&p->net);
	KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_EQ(test, SROCE_RESP_WAITS, b->qp->resp.patience.state);
	KUNIT_EXPECT_EQ(test, 1, b->qp->resp.hold.held.n);
	side_recv(b, 4, DST, 10);
	KUNIT_EXPECT_TRUE(test, side_look(b));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	side_expect_recv(b, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, side_sent(b, SROCE_OP_ACK, SROCE_AETH_RNR));
}

/* A held request is refused: what is behind it is not carried out */
static void held_and_refused(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a), 1, FAKE_HOLD), {}
	};
	struct work w;

	pair_rules(p, rules);
	side_write(a, 1, 10);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, SRC, DST, 10);
	w.wqe.rdma.rkey ^= 0x55500;
	side_post(a, &w);
	work_init(&w, SROCE_WR_FETCH_ADD, 3);
	work_local(a, &w, CELL, 8);
	work_atomic(a, &w, CELL, 1, 0);
	side_post(a, &w);
	deliver_until_held(p, 2);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_REM_ACCESS_ERR);
	side_expect_send(a, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, *(u64 *)(b->mem + CELL));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
}

/* Hold something at side 1 for ever */
static struct pair *holding_pair(struct kunit *test, struct pair_config *c)
{
	struct pair *p = hold_pair(test, c);
	struct rule rules[] = {
		rule_psn(&p->side[0], SROCE_OP_WRITE, side_first_psn(&p->side[0]),
			 0, FAKE_DROP),
		/* Who is told of it would send all of it again and again */
		{ .from = &p->side[1], .op = SROCE_OP_ACK, .verdict = FAKE_DROP },
		{}
	};

	pair_rules(p, rules);
	side_write(&p->side[0], 1, 20 * MTU);
	fake_net_settle(&p->net);
	pair_rules(p, NULL);
	KUNIT_EXPECT_EQ(test, 19, p->side[1].qp->resp.hold.held.n);
	KUNIT_EXPECT_NE(test, 0, atomic_long_read(&sroce_held_memory.bytes));
	return p;
}

static void ends_with_the_connection(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = holding_pair(test, &c);

	side_to_reset(&p->side[1]);
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_held_memory.bytes));
	pair_exit(test);
	p = holding_pair(test, &c);
	side_to_error(&p->side[1]);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_held_memory.bytes));
	KUNIT_EXPECT_EQ(test, 19, side_count(&p->side[1],
					     SROCE_CNT_RX_HELD_DROPS));
	pair_exit(test);
	/* pair_exit() looks whether anything is left */
	holding_pair(test, &c);
}

/* An answer that waits for the rest of what is missing leaves before the QP goes */
static void last_answer_is_sent(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 psn = side_first_psn(a);
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, psn, 1, FAKE_HOLD),
		rule_psn(a, SROCE_OP_WRITE, psn + 1, 0, FAKE_DROP), {}
	};
	u32 i;

	pair_rules(p, rules);
	for (i = 1; i < 4; i++)
		side_write(a, i, 10);
	while (!b->qp->resp.hold.held.n)
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	fake_net_release(&p->net);
	while (b->qp->resp.epsn == psn)
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_TRUE(test, b->qp->resp.hold.repairing);
	KUNIT_EXPECT_EQ(test, SROCE_ACK_OWED, b->qp->resp.ack.state);
	side_to_reset(b);
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

/* A gap that is far ahead keeps no answer back for long, though others come */
static void answers_are_not_put_off(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		{ .from = a, .op = SROCE_OP_WRITE, .count = 20, .verdict = FAKE_HOLD },
		{ .from = b, .op = SROCE_OP_ACK, .count = 1, .verdict = FAKE_DROP }, {}
	};
	u32 end = sroce_psn_add(side_first_psn(a), 19);
	u32 i;

	pair_rules(p, rules);
	for (i = 1; i <= 22; i++)
		side_write(a, i, 10);
	deliver_until_held(p, 2);
	fake_net_release(&p->net);
	while (b->qp->resp.epsn != end)
		KUNIT_ASSERT_TRUE(test, fake_net_deliver(&p->net));
	KUNIT_EXPECT_GE(test, side_sent(b, SROCE_OP_ACK, -1), 8);
	for (i = 1; i <= 22; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void ends_when_it_is_old(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = holding_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	KUNIT_EXPECT_TRUE(test, side_grow_old(b));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	KUNIT_EXPECT_FALSE(test, side_grow_old(b));
	side_expect_written(a, 1, 20 * MTU);
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	KUNIT_EXPECT_FALSE(test, b->qp->resp.hold.lost);
}

/* It takes time to drop what is held: the timers of others wait for another turn */
static void old_ones_take_time(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = holding_pair(test, &c);
	struct side *b = &p->side[1];
	unsigned long spent;

	side_look_held(b);
	local_bh_disable();
	b->qp->resp.hold.look_at = 1;
	sroce_turn_begin(true);
	spent = sroce_turn_spent();
	side_look_held(b);
	spent = sroce_turn_spent() - spent;
	sroce_turn_end();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	KUNIT_EXPECT_GE(test, spent, 19 * SROCE_TURN_CQE);
}

/* --- memory ------------------------------------------------------------------------ */

/*
 * The first of 40 packets is lost while everything that is held may take @most bytes.
 * Return: the side that holds.
 */
static struct side *hold_at_most(struct kunit *test, long most)
{
	long usual = sroce_held_memory.most;
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a), 1, FAKE_DROP), {}
	};

	sroce_held_memory.most = most;
	pair_rules(p, rules);
	side_write(a, 1, 40 * MTU);
	side_expect_written(a, 1, 40 * MTU);
	sroce_held_memory.most = usual;
	pair_rules(p, NULL);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	return &p->side[1];
}

/* Everybody may have a part of what is left, and what finds no room comes again */
static void memory_has_a_bound(struct kunit *test)
{
	struct side *b = hold_at_most(test, SZ_64K);

	KUNIT_EXPECT_GT(test, side_count(b, SROCE_CNT_RX_HELD), 0);
	KUNIT_EXPECT_LE(test, side_count(b, SROCE_CNT_RX_HELD) * 512,
			SZ_64K / 2);
	KUNIT_EXPECT_FALSE(test, b->qp->resp.hold.lost);
}

static atomic_long_t *held_of_owner(struct side *b)
{
	return b->qp->resp.hold.held.memory.owner;
}

static atomic_long_t *held_of_device(struct side *b)
{
	return &b->qp->port->held;
}

/* Packets that a side holds while others hold @others, of its owner and device too if so */
static u32 held_beside(struct kunit *test, long others, bool owner, bool device)
{
	long usual = sroce_held_memory.most;
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a), 1, FAKE_DROP), {}
	};
	long of_owner = owner ? others : 0, of_device = device ? others : 0;
	u32 n;

	sroce_held_memory.most = SZ_4M;
	atomic_long_add(others, &sroce_held_memory.bytes);
	atomic_long_add(of_owner, held_of_owner(b));
	atomic_long_add(of_device, held_of_device(b));
	pair_rules(p, rules);
	side_write(a, 1, 200 * MTU);
	side_expect_written(a, 1, 200 * MTU);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	atomic_long_sub(of_device, held_of_device(b));
	atomic_long_sub(of_owner, held_of_owner(b));
	atomic_long_sub(others, &sroce_held_memory.bytes);
	sroce_held_memory.most = usual;
	n = side_count(b, SROCE_CNT_RX_HELD);
	pair_exit(test);
	return n;
}

/* All that came too early, or the few packets that are held whatever others of the owner hold */
static void expect_held(struct kunit *test, u32 n, bool all)
{
	if (all) {
		KUNIT_EXPECT_EQ(test, 199, n);
		return;
	}
	KUNIT_EXPECT_GT(test, n, SZ_64K / 512 / 2);
	KUNIT_EXPECT_LE(test, n, SZ_64K / MTU);
}

/*
 * Who has many QPs leaves others something, also on his own device, and has no more for
 * the next one himself. With a fifth held by one owner, and with a third held on one device,
 * neither gets more than the first few packets. With four tenths held by one owner, it gets
 * nothing any more, however many QPs it spreads that over.
 */
static void owners_have_a_bound(struct kunit *test)
{
	expect_held(test, held_beside(test, SZ_4M / 5, false, true), true);
	expect_held(test, held_beside(test, SZ_4M / 5, true, true), false);
	expect_held(test, held_beside(test, SZ_4M / 3, false, false), true);
	expect_held(test, held_beside(test, SZ_4M / 3, false, true), false);
	KUNIT_EXPECT_EQ(test, 0, held_beside(test, SZ_4M / 10 * 4, true, true));
	expect_held(test, held_beside(test, SZ_4M / 10 * 4, false, true), false);
}

/* Where what a QP of a user's holds counts, or of the kernel's */
static atomic_long_t *owner_of(struct kunit *test, uid_t uid, bool user)
{
	struct sroce_uncharged_part part;
	struct sroce_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct cred *cred = prepare_creds();
	const struct cred *mine;
	atomic_long_t device;

	KUNIT_ASSERT_NOT_NULL(test, qp);
	KUNIT_ASSERT_NOT_NULL(test, cred);
	qp->user = user;
	cred->uid = KUIDT_INIT(uid);
	mine = override_creds(cred);
	sroce_uncharged_part_init(&part, &sroce_held_memory, &device, qp);
	revert_creds(mine);
	put_cred(cred);
	return part.owner;
}

/*
 * It is the user who has a share, not each of his processes, of which he can have many. The
 * kernel's QPs have one of their own, whoever has asked for the connection.
 */
static void owners_are_users(struct kunit *test)
{
	atomic_long_t *one = owner_of(test, 4711, true);

	KUNIT_EXPECT_PTR_EQ(test, one, owner_of(test, 4711, true));
	KUNIT_EXPECT_PTR_NE(test, one, owner_of(test, 4712, true));
	KUNIT_EXPECT_PTR_NE(test, one, owner_of(test, 4711, false));
	KUNIT_EXPECT_PTR_EQ(test, owner_of(test, 0, false), owner_of(test, 4711, false));
}

/* What is held, and given back, counts at each of those who have a bound */
static void owners_are_counted(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = holding_pair(test, &c);
	struct side *b = &p->side[1];
	u32 bytes = b->qp->resp.hold.held.memory.bytes;

	KUNIT_EXPECT_GT(test, bytes, 0);
	KUNIT_EXPECT_EQ(test, bytes, atomic_long_read(held_of_owner(b)));
	KUNIT_EXPECT_EQ(test, bytes, atomic_long_read(held_of_device(b)));
	side_grow_old(b);
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(held_of_owner(b)));
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(held_of_device(b)));
}

static void no_memory(struct kunit *test)
{
	struct side *b = hold_at_most(test, 0);

	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_RX_HELD));
}

/* A peer that sends gaps without end */
static void gaps_without_end(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t = side_train(a, SROCE_OP_WRITE, 0);
	u32 i;

	for (i = 0; i < 6000; i++) {
		t.psn = sroce_psn_add(side_first_psn(a),
				      3 + 2 * ((i * 7919) % 8000));
		side_inject(a, &t);
		fake_net_settle(&p->net);
		KUNIT_ASSERT_LE(test, b->qp->resp.hold.held.n, 2048);
	}
	KUNIT_EXPECT_EQ(test, 2048, b->qp->resp.hold.held.n);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	/* Its own requests are answered all the same, which nothing is missing behind */
	side_write(a, 1, 10);
	side_expect_written(a, 1, 10);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* A pair whose side 1 has got a request that is @ahead of what it expects */
static struct pair *ahead_pair(struct kunit *test, struct pair_config *c,
			       u32 ahead)
{
	struct pair *p = hold_pair(test, c);
	struct side *a = &p->side[0];
	struct sroce_train t = side_train(a, SROCE_OP_WRITE,
					  side_first_psn(a) + ahead);

	side_inject(a, &t);
	fake_net_settle(&p->net);
	return p;
}

/* What could come only after more than can be held is not held itself */
static void too_far_ahead(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = ahead_pair(test, &c, 20000);
	struct side *a = &p->side[0], *b = &p->side[1];

	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	side_write(a, 1, 10);
	side_expect_written(a, 1, 10);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* It grows old also while others come and go */
static void old_on_a_busy_connection(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = ahead_pair(test, &c, 50);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_look_held(b);
	side_write(a, 1, 10);
	side_expect_written(a, 1, 10);
	KUNIT_EXPECT_EQ(test, 1, b->qp->resp.hold.held.n);
	KUNIT_EXPECT_TRUE(test, side_grow_old(b));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void switched_off(struct kunit *test)
{
	struct pair_config c = { .plain = true };
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a), 1, FAKE_DROP), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 20 * MTU);
	side_expect_written(a, 1, 20 * MTU);
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_RX_HELD));
	KUNIT_EXPECT_EQ(test, 20 + 20, side_sent(a, SROCE_OP_WRITE, -1));
}

/* Two packets come at once, the second one first, and are told of nothing but that */
static void exchanged_and_switched_off(struct kunit *test)
{
	struct pair_config c = { .plain = true, .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	p->net.swap = 1000;
	side_write(a, 1, 2 * MTU);
	pair_deliver(p);
	p->net.swap = 0;
	side_expect_written(a, 1, 2 * MTU);
	KUNIT_EXPECT_EQ(test, 1, naks(b));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* --- packets that are only late ----------------------------------------------------- */

/* A message whose second packet is late; @asks: the peer is asked for it meanwhile */
static void late_packet(struct pair *p, u64 id, bool asks)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, a->qp->req.next_psn + 1, 1, FAKE_HOLD),
		{}
	};
	u32 before = naks(b);

	pair_rules(p, rules);
	side_write(a, id, 6 * MTU);
	deliver_until_held(p, 4);
	KUNIT_EXPECT_EQ(p->test, before + asks, naks(b));
	fake_net_release(&p->net);
	side_expect_written(a, id, 6 * MTU);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(p->test, before + asks, naks(b));
	pair_rules(p, NULL);
}

static void late_packets_are_waited_for(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_hold *hold = &b->qp->resp.hold;
	u64 retrans;

	/* The first one is taken for lost; what is sent again tells that it was not */
	late_packet(p, 1, true);
	KUNIT_EXPECT_NE(test, 0, hold->lateness.wait);
	KUNIT_EXPECT_LE(test, hold->lateness.wait, 2 * NSEC_PER_MSEC);
	retrans = side_count(a, SROCE_CNT_RETRANS_PACKETS);
	late_packet(p, 2, false);
	late_packet(p, 3, false);
	KUNIT_EXPECT_EQ(test, retrans, side_count(a, SROCE_CNT_RETRANS_PACKETS));
	KUNIT_EXPECT_EQ(test, 3, side_count(b, SROCE_CNT_RX_REORDERED));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* Packets are lost after all: they are not waited for again and again */
static void lost_packets_are_not_waited_for(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_hold *hold = &b->qp->resp.hold;
	u32 i;

	hold->lateness.wait = NSEC_PER_MSEC;
	for (i = 0; i < 9; i++) {
		struct rule rules[] = {
			rule_psn(a, SROCE_OP_WRITE, a->qp->req.next_psn + 1, 1,
				 FAKE_DROP), {}
		};

		pair_rules(p, rules);
		a->qp->req.window = 16;
		side_write(a, i, 6 * MTU);
		deliver_until_held(p, 4);
		/* Eight times in vain */
		KUNIT_EXPECT_EQ(test, i < 8 ? i : 9, naks(b));
		KUNIT_EXPECT_EQ(test, i < 8, side_ask(b));
		side_expect_written(a, i, 6 * MTU);
		pair_deliver(p);
	}
	KUNIT_EXPECT_EQ(test, 0, hold->lateness.wait);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* Later than anybody should wait */
static void much_too_late(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = hold_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a) + 1, 1, FAKE_HOLD), {}
	};

	pair_rules(p, rules);
	side_write(a, 1, 6 * MTU);
	deliver_until_held(p, 4);
	b->qp->resp.hold.opened_at -= 5 * NSEC_PER_MSEC;
	fake_net_release(&p->net);
	side_expect_written(a, 1, 6 * MTU);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.lateness.wait);
}

static struct kunit_case hold_cases[] = {
	KUNIT_CASE(what_is_held_counts),
	KUNIT_CASE(several_gaps),
	KUNIT_CASE(held_twice),
	KUNIT_CASE(repeated_in_one_train),
	KUNIT_CASE(lost_anywhere),
	KUNIT_CASE(late_anywhere),
	KUNIT_CASE(twice_anywhere),
	KUNIT_CASE(lost_anywhere_xrc),
	KUNIT_CASE(held_and_not_ready),
	KUNIT_CASE(held_until_ready),
	KUNIT_CASE(held_and_refused),
	KUNIT_CASE(ends_with_the_connection),
	KUNIT_CASE(last_answer_is_sent),
	KUNIT_CASE(answers_are_not_put_off),
	KUNIT_CASE(ends_when_it_is_old),
	KUNIT_CASE(old_ones_take_time),
	KUNIT_CASE(old_on_a_busy_connection),
	KUNIT_CASE(too_far_ahead),
	KUNIT_CASE(memory_has_a_bound),
	KUNIT_CASE(owners_have_a_bound),
	KUNIT_CASE(owners_are_users),
	KUNIT_CASE(owners_are_counted),
	KUNIT_CASE(no_memory),
	KUNIT_CASE(gaps_without_end),
	KUNIT_CASE(switched_off),
	KUNIT_CASE(exchanged_and_switched_off),
	KUNIT_CASE(late_packets_are_waited_for),
	KUNIT_CASE(lost_packets_are_not_waited_for),
	KUNIT_CASE(much_too_late),
	{}
};

static struct kunit_suite hold_suite = {
	.name = "sroce_transport_hold",
	.exit = pair_exit,
	.test_cases = hold_cases,
};

kunit_test_suite(hold_suite);
