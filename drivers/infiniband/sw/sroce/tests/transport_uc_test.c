// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Unreliable connections: what arrives, what is dropped and what that leaves
 * behind (IBA 9.8.2).
 */
#include "tests/transport_pair.h"

#define SRC 0x1003
#define DST 0x80005
#define MTU 256

static const bool ways[] = { false, true };

static void way_name(const bool *direct, char *desc)
{
	strscpy(desc, *direct ? "direct" : "packets", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(way, ways, way_name);

static struct pair *uc_pair(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UC, .mtu = IB_MTU_256 };

	return pair_create(test, &c);
}

static struct pair *uc_pair_srq(struct kunit *test)
{
	struct pair_config c = {
		.type = IB_QPT_UC,
		.mtu = IB_MTU_256,
		.srq = true,
	};

	return pair_create(test, &c);
}

/* Nobody ever answers, and nothing waits for an answer */
static void expect_silence(struct pair *p)
{
	struct side *b = &p->side[1];

	KUNIT_EXPECT_EQ(p->test, 0, side_sent(b, SROCE_OP_ACK, -1));
	KUNIT_EXPECT_EQ(p->test, 0, p->side[0].qp->req.deadline);
	KUNIT_EXPECT_EQ(p->test, 0, p->expired);
}

static void post_message(struct side *from, u8 opcode, u64 wr_id, u32 len)
{
	struct work w;

	side_fill(from, SRC, len, wr_id);
	work_rdma(from, &w, opcode, wr_id, SRC, DST, len);
	if (opcode == SROCE_WR_SEND_IMM || opcode == SROCE_WR_RDMA_WRITE_IMM)
		w.wqe.imm_data = cpu_to_be32(wr_id);
	side_post(from, &w);
}

/* Complete at once, whatever becomes of it */
static void post_sent(struct side *from, u8 opcode, u64 wr_id, u32 len)
{
	struct ib_wc wc;

	post_message(from, opcode, wr_id, len);
	KUNIT_ASSERT_TRUE(from->pair->test, side_poll(&from->scq, &wc));
	KUNIT_EXPECT_EQ(from->pair->test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(from->pair->test, wr_id, wc.wr_id);
}

static void expect_message(struct side *to, u64 wr_id, u32 len, u32 seed)
{
	struct kunit *test = to->pair->test;
	struct ib_wc wc;

	side_expect(to, &to->rcq, wr_id, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, len, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, side_filled(to, DST, len, seed));
}

/* --- what arrives ---------------------------------------------------------- */

static void one_size(struct pair *p, u32 len)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct kunit *test = p->test;
	struct ib_wc wc;

	side_recv(b, 1, DST, len);
	post_sent(a, SROCE_WR_SEND, len + 1, len);
	expect_message(b, 1, len, len + 1);

	side_recv(b, 2, DST, len);
	post_sent(a, SROCE_WR_SEND_IMM, len + 2, len);
	side_expect(b, &b->rcq, 2, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, IB_WC_WITH_IMM, wc.wc_flags);
	KUNIT_EXPECT_EQ(test, len + 2, be32_to_cpu(wc.ex.imm_data));
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, len + 2));

	post_sent(a, SROCE_WR_RDMA_WRITE, len + 3, len);
	pair_settle(p);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, len + 3));

	side_recv(b, 4, 0, 0);
	post_sent(a, SROCE_WR_RDMA_WRITE_IMM, len + 4, len);
	side_expect(b, &b->rcq, 4, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	KUNIT_EXPECT_EQ(test, len, wc.byte_len);
	KUNIT_EXPECT_EQ(test, len + 4, be32_to_cpu(wc.ex.imm_data));
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, len + 4));
	side_expect_none(a);
	side_expect_none(b);
}

static void uc_sizes(struct kunit *test)
{
	enum ib_mtu mtu;

	for (mtu = IB_MTU_256; mtu <= IB_MTU_4096; mtu++) {
		struct pair_config c = {
			.type = IB_QPT_UC,
			.mtu = mtu,
			.direct = *(const bool *)test->param_value,
		};
		struct pair *p = pair_create(test, &c);

		one_size(p, 0);
		one_size(p, 1);
		one_size(p, p->mtu);
		one_size(p, p->mtu + 1);
		one_size(p, 64 * p->mtu + 1);
		expect_silence(p);
		KUNIT_EXPECT_EQ(test, 0, side_count(&p->side[1],
						    SROCE_CNT_OUT_OF_SEQUENCE));
		pair_exit(test);
	}
}

/* The PSN wraps in the middle of a message; no window holds it back */
static void uc_long_message(struct kunit *test)
{
	struct pair_config c = {
		.type = IB_QPT_UC,
		.mtu = IB_MTU_256,
		.psn = 0xffff80,
		.window = 1,
	};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_recv(b, 1, DST, 1000 * MTU);
	post_message(a, SROCE_WR_SEND, 2, 1000 * MTU);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	expect_message(b, 1, 1000 * MTU, 2);
	expect_silence(p);
}

/* --- what is lost ---------------------------------------------------------- */

/* Lose the packet @k of a message of four, and see that the next one arrives */
static void lose_one(struct kunit *test, u32 k)
{
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_SEND, k, 1, FAKE_DROP), {} };

	pair_rules(p, rules);
	side_recv(b, 1, DST, 4 * MTU);
	side_recv(b, 2, DST, 4 * MTU);
	post_sent(a, SROCE_WR_SEND, 10, 4 * MTU);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 1, rules[0].hits);
	side_expect_none(b);
	/* It finds the receive work request that the lost one has used */
	post_sent(a, SROCE_WR_SEND, 11, 3 * MTU + 5);
	expect_message(b, 1, 3 * MTU + 5, 11);
	post_sent(a, SROCE_WR_SEND, 12, 5);
	expect_message(b, 2, 5, 12);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	expect_silence(p);
	pair_exit(test);
}

static void uc_packet_lost(struct kunit *test)
{
	u32 k;

	for (k = 0; k < 4; k++)
		lose_one(test, k);
}

static void uc_message_lost(struct kunit *test)
{
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_SEND, 0, 4, FAKE_DROP), {} };

	pair_rules(p, rules);
	side_recv(b, 1, DST, 4 * MTU);
	post_sent(a, SROCE_WR_SEND, 10, 4 * MTU);
	post_sent(a, SROCE_WR_SEND, 11, 4 * MTU);
	expect_message(b, 1, 4 * MTU, 11);
	expect_silence(p);
}

/* A work request of a shared queue says what has become of it */
static void uc_lost_with_srq(struct kunit *test)
{
	struct pair *p = uc_pair_srq(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_SEND, 1, 1, FAKE_DROP), {} };

	pair_rules(p, rules);
	side_recv(b, 1, DST, 4 * MTU);
	side_recv(b, 2, DST, 4 * MTU);
	post_sent(a, SROCE_WR_SEND, 10, 4 * MTU);
	side_expect_recv(b, 1, IB_WC_REM_INV_REQ_ERR);
	post_sent(a, SROCE_WR_SEND, 11, 4 * MTU);
	expect_message(b, 2, 4 * MTU, 11);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_QP_REQ_ERR));
}

static void uc_write_lost(struct kunit *test)
{
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 2, 1, FAKE_DROP), {} };

	pair_rules(p, rules);
	side_recv(b, 1, 0, 0);
	side_fill(b, DST, 4 * MTU, 77);
	post_sent(a, SROCE_WR_RDMA_WRITE_IMM, 10, 4 * MTU);
	pair_settle(p);
	side_expect_none(b);
	/* Nothing behind the gap */
	KUNIT_EXPECT_FALSE(test, side_filled(b, DST, 4 * MTU, 10));
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 2 * MTU, 10));
	post_sent(a, SROCE_WR_RDMA_WRITE_IMM, 11, 4 * MTU);
	side_expect_recv(b, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 4 * MTU, 11));
	expect_silence(p);
}

/* Half of the packets go, some come late, some twice: whole messages or none */
static void uc_bad_network(struct kunit *test)
{
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_wc wc;
	u32 i, n = 0;

	p->net.drop = 100;
	p->net.twice = 50;
	p->net.swap = 50;
	for (i = 0; i < 500; i++) {
		side_recv(b, i, DST, 4 * MTU);
		memset(b->mem + DST, 0, 4 * MTU);
		post_sent(a, SROCE_WR_SEND, i, i % (4 * MTU) + 1);
		pair_settle(p);
		while (side_poll(&b->rcq, &wc)) {
			KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
			KUNIT_EXPECT_EQ(test, i % (4 * MTU) + 1, wc.byte_len);
			KUNIT_EXPECT_TRUE(test, side_filled(b, DST,
							    wc.byte_len, i));
			n++;
		}
		/* The queue must not fill up with what was not used */
		while (sroce_ring_pending(&b->qp->resp.ring) > 32)
			sroce_ring_consumed(&b->qp->resp.ring, 1);
	}
	KUNIT_EXPECT_GT(test, n, 200);
	KUNIT_EXPECT_LT(test, n, 500);
	KUNIT_EXPECT_GT(test, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE), 50);
	expect_silence(p);
}

/* --- what is refused ------------------------------------------------------- */

/* Nothing came of it, nobody noticed, and the next message arrives */
static void expect_dropped(struct pair *p)
{
	struct side *a = &p->side[0], *b = &p->side[1];

	pair_settle(p);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(p->test, 0, side_events(b, IB_EVENT_QP_REQ_ERR));
	KUNIT_EXPECT_EQ(p->test, 0, side_events(b, IB_EVENT_QP_ACCESS_ERR));
	post_sent(a, SROCE_WR_SEND, 99, 2 * MTU);
	expect_message(b, 1, 2 * MTU, 99);
	expect_silence(p);
	pair_exit(p->test);
}

static void uc_too_long(struct kunit *test)
{
	struct pair *p = uc_pair(test);

	side_recv(&p->side[1], 1, DST, 2 * MTU);
	post_sent(&p->side[0], SROCE_WR_SEND, 10, 2 * MTU + 1);
	expect_dropped(p);

	p = uc_pair_srq(test);
	side_recv(&p->side[1], 2, DST, 2 * MTU);
	side_recv(&p->side[1], 1, DST, 2 * MTU);
	post_sent(&p->side[0], SROCE_WR_SEND, 10, 2 * MTU + 1);
	side_expect_recv(&p->side[1], 2, IB_WC_LOC_LEN_ERR);
	expect_dropped(p);
}

static void uc_not_ready(struct kunit *test)
{
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	post_sent(a, SROCE_WR_SEND, 10, 4 * MTU);
	post_sent(a, SROCE_WR_RDMA_WRITE_IMM, 11, MTU);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 2, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	side_recv(b, 1, DST, 2 * MTU);
	expect_dropped(p);
}

static void write_to(struct side *from, u32 rkey, u32 len)
{
	struct work w;

	work_rdma(from, &w, SROCE_WR_RDMA_WRITE, 10, SRC, DST, len);
	w.wqe.rdma.rkey = rkey;
	side_post(from, &w);
	side_expect_send(from, 10, IB_WC_SUCCESS);
}

static void uc_no_right(struct kunit *test)
{
	struct pair_config c = {
		.type = IB_QPT_UC,
		.mtu = IB_MTU_256,
		.access = -1,
	};
	struct pair *p = uc_pair(test);
	struct side *b = &p->side[1];

	side_fill(b, DST, 4 * MTU, 77);
	write_to(&p->side[0], b->mr->key + 1, 4 * MTU);
	pair_settle(p);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 4 * MTU, 77));
	side_recv(b, 1, DST, 2 * MTU);
	expect_dropped(p);

	p = pair_create(test, &c);
	b = &p->side[1];
	side_fill(b, DST, 4 * MTU, 77);
	write_to(&p->side[0], b->mr->key, 4 * MTU);
	pair_settle(p);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 4 * MTU, 77));
	side_recv(b, 1, DST, 2 * MTU);
	expect_dropped(p);
}

/**
 * struct odd - packets that make no message
 * @op: of each
 * @flags: their places
 * @len: their payloads
 * @dma_len: of a RETH
 */
struct odd {
	u8 op;
	u16 flags[3];
	u32 len[3];
	u32 dma_len;
};

static const struct odd odds[] = {
	{ SROCE_OP_SEND, { SROCE_START }, { MTU - 4 } },
	{ SROCE_OP_SEND, { SROCE_START, 0 }, { MTU, MTU - 4 } },
	{ SROCE_OP_SEND, { SROCE_START, SROCE_END }, { MTU, 0 } },
	{ SROCE_OP_SEND, { SROCE_START | SROCE_END }, { MTU + 4 } },
	{ SROCE_OP_SEND, { SROCE_START, SROCE_START }, { MTU, MTU } },
	{ SROCE_OP_SEND, { 0, SROCE_END }, { MTU, 5 } },
	{ SROCE_OP_WRITE, { SROCE_START | SROCE_END }, { 10 }, 11 },
	{ SROCE_OP_WRITE, { SROCE_START, SROCE_END }, { MTU, 9 }, MTU + 8 },
	{ SROCE_OP_WRITE, { SROCE_START }, { MTU }, 0x80000001 },
	{ SROCE_OP_WRITE, { 0, SROCE_END }, { MTU, 5 } },
};

static void inject_odd(struct side *from, const struct odd *o, u32 i)
{
	struct sroce_train t = side_train(from, o->op,
					  side_first_psn(from) + i);
	struct bio_vec bv;

	t.flags = o->flags[i];
	t.dma_len = o->dma_len;
	t.mtu = 2 * MTU;
	bvec_set_virt(&bv, from->mem, o->len[i] + 4);
	t.bv = &bv;
	t.bi.bi_size = o->len[i];
	side_inject(from, &t);
}

static void uc_odd_packets(struct kunit *test)
{
	struct pair *p;
	u32 n, i;

	for (n = 0; n < ARRAY_SIZE(odds); n++) {
		p = uc_pair(test);
		side_recv(&p->side[1], 1, DST, 2 * MTU);
		for (i = 0; i < 3 && (odds[n].len[i] || odds[n].flags[i]); i++)
			inject_odd(&p->side[0], &odds[n], i);
		expect_dropped(p);
	}
}

static void uc_other_service(struct kunit *test)
{
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t = side_train(a, SROCE_OP_SEND, side_first_psn(a));

	side_recv(b, 1, DST, 2 * MTU);
	t.service = SROCE_RC;
	side_inject(a, &t);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_DISCARDS));
	expect_dropped(p);

	p = uc_pair(test);
	a = &p->side[0];
	b = &p->side[1];
	t = side_train(b, SROCE_OP_ACK, side_first_psn(a));
	t.service = SROCE_RC;
	side_inject(b, &t);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_DISCARDS));
	side_recv(b, 1, DST, 2 * MTU);
	post_sent(a, SROCE_WR_SEND, 10, 2 * MTU);
	expect_message(b, 1, 2 * MTU, 10);
}

/* --- errors of one's own --------------------------------------------------- */

/* The send queue stops in SQE and can be set going again */
static void expect_sqe(struct pair *p, enum ib_wc_status status)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	struct side *a = &p->side[0], *b = &p->side[1];

	side_expect_send(a, 10, status);
	KUNIT_EXPECT_EQ(p->test, IB_QPS_SQE, side_state(a));
	/* It still receives */
	side_recv(a, 1, DST, 100);
	post_sent(b, SROCE_WR_SEND, 11, 100);
	expect_message(a, 1, 100, 11);
	post_message(a, SROCE_WR_SEND, 12, 10);
	side_expect_send(a, 12, IB_WC_WR_FLUSH_ERR);
	side_modify(a, &attr, IB_QP_STATE);
	side_recv(b, 1, DST, 2 * MTU);
	expect_dropped(p);
}

static void uc_bad_posts(struct kunit *test)
{
	static const u8 bad[] = {
		SROCE_WR_RDMA_READ, SROCE_WR_CMP_SWAP, SROCE_WR_FETCH_ADD,
		SROCE_WR_SEND_INV, SROCE_WR_FLUSH, SROCE_WR_ATOMIC_WRITE, 63,
		200,
	};
	struct work w;
	struct pair *p;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		p = uc_pair(test);
		work_rdma(&p->side[0], &w, bad[i], 10, SRC, DST, 8);
		side_post(&p->side[0], &w);
		expect_sqe(p, IB_WC_LOC_QP_OP_ERR);
	}
	p = uc_pair(test);
	work_send(&p->side[0], &w, 10, SRC, 1000);
	w.sge[0].lkey++;
	side_post(&p->side[0], &w);
	expect_sqe(p, IB_WC_LOC_PROT_ERR);
}

/* The peer gets half a message, and then another one */
static void uc_fails_halfway(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UC, .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	work_send(a, &w, 10, SRC, 64 * MTU);
	work_local(a, &w, SRC, 64 * MTU);
	w.sge[1].lkey++;
	side_recv(b, 1, DST, 200 * MTU);
	side_post(a, &w);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 64, side_sent(a, SROCE_OP_SEND, -1));
	expect_sqe(p, IB_WC_LOC_PROT_ERR);
}

static void uc_bad_receive(struct kunit *test)
{
	struct ib_sge sge = { .length = 100, .lkey = 1 };
	struct ib_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	KUNIT_ASSERT_EQ(test, 0, side_try_recv(b, &wr));
	side_recv(b, 2, DST, 100);
	post_sent(a, SROCE_WR_SEND, 10, 100);
	side_expect_recv(b, 1, IB_WC_LOC_PROT_ERR);
	side_expect_recv(b, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	expect_silence(p);
}

/*
 * A region that its owner has mapped anew, with less memory, while the peer still writes
 * to it: the message is lost as a whole, and nobody is told that it has arrived.
 */
static void uc_region_shrinks(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UC, .mtu = IB_MTU_4096,
				 .direct = *(const bool *)test->param_value };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 len = 2 * PAGE_SIZE;
	struct sroce_mr *mr;
	struct work w;

	mr = sroce_mr_alloc(&b->port.mrs, &b->pd, SROCE_MR_FAST_REG, 2);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mr->blocks[0] = b->mem;
	mr->nr_blocks = 1;
	mr->length = len;
	mr->access = PAIR_MR_ACCESS;
	sroce_mr_publish(mr);
	side_recv(b, 1, 0, 0);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, 10, SRC, 0, len);
	w.wqe.rdma.remote_addr = 0;
	w.wqe.rdma.rkey = mr->key;
	side_post(a, &w);
	side_expect_send(a, 10, IB_WC_SUCCESS);
	pair_settle(p);
	side_expect_none(b);
	sroce_mr_free(mr);
}

/* The receive work request of half a message is the first to be flushed */
static void uc_flush(struct kunit *test)
{
	struct pair *p = uc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_SEND, 2, 0, FAKE_DROP), {} };

	pair_rules(p, rules);
	side_recv(b, 1, DST, 4 * MTU);
	side_recv(b, 2, DST, 4 * MTU);
	post_sent(a, SROCE_WR_SEND, 10, 4 * MTU);
	pair_deliver(p);
	side_to_error(b);
	side_expect_recv(b, 1, IB_WC_WR_FLUSH_ERR);
	side_expect_recv(b, 2, IB_WC_WR_FLUSH_ERR);
	side_expect_none(b);
}

static struct kunit_case uc_cases[] = {
	KUNIT_CASE_PARAM(uc_sizes, way_gen_params),
	KUNIT_CASE(uc_long_message),
	KUNIT_CASE(uc_packet_lost),
	KUNIT_CASE(uc_message_lost),
	KUNIT_CASE(uc_lost_with_srq),
	KUNIT_CASE(uc_write_lost),
	KUNIT_CASE(uc_bad_network),
	KUNIT_CASE(uc_too_long),
	KUNIT_CASE(uc_not_ready),
	KUNIT_CASE(uc_no_right),
	KUNIT_CASE(uc_odd_packets),
	KUNIT_CASE(uc_other_service),
	KUNIT_CASE(uc_bad_posts),
	KUNIT_CASE(uc_fails_halfway),
	KUNIT_CASE(uc_bad_receive),
	KUNIT_CASE_PARAM(uc_region_shrinks, way_gen_params),
	KUNIT_CASE(uc_flush),
	{}
};

static struct kunit_suite uc_suite = {
	.name = "sroce_uc",
	.exit = pair_exit,
	.test_cases = uc_cases,
};

kunit_test_suite(uc_suite);
