// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended reliable connections: every operation, and what the shared receive
 * queue that a request names decides.
 */
#include "tests/transport_pair.h"

#define SRC 0x1003
#define DST 0x80008
#define MTU 256

static const bool ways[] = { false, true };

static void way_name(const bool *direct, char *desc)
{
	strscpy(desc, *direct ? "direct" : "packets", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(way, ways, way_name);

static struct pair *xrc_pair(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_XRC_INI, .mtu = IB_MTU_256 };

	return pair_create(test, &c);
}

/* Another queue of the target's host: of this domain, these keys */
static struct sroce_srq *xrc_srq(struct side *s, struct ib_pd *pd,
				 struct ib_xrcd *xrcd)
{
	struct kunit *test = s->pair->test;
	struct sroce_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, srq);
	srq->port = &s->port;
	srq->ibsrq.pd = pd;
	srq->xrcd = xrcd;
	srq->cq = &s->scq;
	srq->max_sge = SROCE_MAX_SGE;
	spin_lock_init(&srq->lock);
	KUNIT_ASSERT_EQ(test, 0,
			sroce_ring_alloc(&srq->ring, 16,
					 sizeof(struct sroce_recv_wqe) +
					 SROCE_MAX_SGE *
					 sizeof(struct sroce_sge), false));
	KUNIT_ASSERT_EQ(test, 0, sroce_srq_publish(srq));
	return srq;
}

static void xrc_srq_end(struct sroce_srq *srq)
{
	sroce_srq_unpublish(srq);
	sroce_ring_free(&srq->ring);
}

static void xrc_srq_recv(struct side *s, struct sroce_srq *srq, u64 wr_id,
			 u32 off, u32 len)
{
	struct recv r;

	KUNIT_ASSERT_EQ(s->pair->test, 0,
			srq_try_recv(srq, recv_init(&r, s, wr_id, off, len)));
}

/* --- what arrives ---------------------------------------------------------- */

static void xrc_messages_of(struct pair *p, u32 len)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct kunit *test = p->test;
	struct ib_wc wc;
	struct work w;

	side_recv(b, 1, DST, len);
	side_fill(a, SRC, len, len + 1);
	side_post(a, work_send(a, &w, 10, SRC, len));
	side_expect_send(a, 10, IB_WC_SUCCESS);
	side_expect(b, &b->rcq, 1, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, len, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, len + 1));

	side_recv(b, 2, 0, 0);
	side_fill(a, SRC, len, len + 2);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, 11, SRC, DST, len);
	w.wqe.imm_data = cpu_to_be32(4711);
	side_post(a, &w);
	side_expect_send(a, 11, IB_WC_SUCCESS);
	side_expect(b, &b->rcq, 2, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, 4711, be32_to_cpu(wc.ex.imm_data));
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, len + 2));

	side_fill(b, SRC, len, len + 3);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 12, DST, SRC, len));
	side_expect_send(a, 12, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, len, len + 3));
	side_expect_none(a);
	side_expect_none(b);
}

static void xrc_atomic(struct pair *p)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 *there = (u64 *)(b->mem + DST), *here = (u64 *)(a->mem + SRC - 3);
	struct work w;

	*there = 40;
	work_init(&w, SROCE_WR_FETCH_ADD, 20);
	work_local(a, &w, SRC - 3, 8);
	work_atomic(a, &w, DST, 2, 0);
	side_post(a, &w);
	side_expect_send(a, 20, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(p->test, 40, *here);
	KUNIT_EXPECT_EQ(p->test, 42, *there);
}

static void xrc_operations(struct kunit *test)
{
	struct pair_config c = {
		.type = IB_QPT_XRC_INI,
		.mtu = IB_MTU_256,
		.direct = *(const bool *)test->param_value,
	};
	struct pair *p = pair_create(test, &c);

	xrc_messages_of(p, 0);
	xrc_messages_of(p, 1);
	xrc_messages_of(p, MTU);
	xrc_messages_of(p, 100 * MTU + 1);
	xrc_atomic(p);
	/* Nothing is left borrowed */
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&p->side[1].srq.entry->users));
	KUNIT_EXPECT_NULL(test, p->side[1].qp->srq);
	KUNIT_EXPECT_NULL(test, p->side[1].qp->pd);
}

/* What is lost is repeated: READs find their queue again */
static void xrc_losses(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	u32 i;

	p->net.drop = 50;
	p->net.twice = 20;
	p->net.swap = 20;
	for (i = 0; i < 30; i++)
		xrc_messages_of(p, 10 * MTU + i);
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&p->side[1].srq.entry->users));
}

/* --- which queue ------------------------------------------------------------- */

static void xrc_two_queues(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_srq *other;
	struct work w;
	u32 i;

	other = xrc_srq(b, &b->pd, &b->xrcd);
	for (i = 0; i < 10; i++) {
		side_recv(b, i, DST, 3 * MTU);
		xrc_srq_recv(b, other, 100 + i, DST, 3 * MTU);
		work_send(a, &w, i, SRC, 3 * MTU);
		w.wqe.remote_srqn = i % 3 ? 0 : other->srqn;
		side_post(a, &w);
		side_expect_send(a, i, IB_WC_SUCCESS);
	}
	/* Each completes where its queue completes */
	for (i = 0; i < 6; i++)
		side_expect_recv(b, i, IB_WC_SUCCESS);
	for (i = 0; i < 4; i++)
		side_expect_send(b, 100 + i, IB_WC_SUCCESS);
	side_expect_none(b);
	xrc_srq_end(other);
}

static void xrc_not_ready(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_post(a, work_send(a, &w, 1, SRC, 3 * MTU));
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	side_recv(b, 2, DST, 3 * MTU);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
}

static void xrc_refused(struct pair *p, u64 wr_id, enum ib_wc_status status,
			enum ib_event_type event)
{
	struct side *a = &p->side[0], *b = &p->side[1];

	side_expect_send(a, wr_id, status);
	KUNIT_EXPECT_EQ(p->test, IB_QPS_ERR, side_state(a));
	KUNIT_EXPECT_EQ(p->test, IB_QPS_ERR, side_state(b));
	KUNIT_EXPECT_EQ(p->test, 1, side_events(b, event));
	side_expect_none(b);
}

/* A number of no queue, and that of one in another domain */
static void xrc_wrong_queue(struct kunit *test)
{
	static struct ib_xrcd elsewhere;
	struct sroce_srq *other;
	struct pair *p;
	struct side *a;
	struct work w;

	p = xrc_pair(test);
	a = &p->side[0];
	work_send(a, &w, 1, SRC, 10);
	w.wqe.remote_srqn = p->side[1].srq.srqn ^ 1;
	side_post(a, &w);
	xrc_refused(p, 1, IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	pair_exit(test);

	p = xrc_pair(test);
	a = &p->side[0];
	other = xrc_srq(&p->side[1], &p->side[1].pd, &elsewhere);
	xrc_srq_recv(&p->side[1], other, 5, DST, 100);
	work_send(a, &w, 1, SRC, 10);
	w.wqe.remote_srqn = other->srqn;
	side_post(a, &w);
	xrc_refused(p, 1, IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	KUNIT_EXPECT_EQ(test, 1, sroce_ring_pending(&other->ring));
	xrc_srq_end(other);
}

/* Its domain is the one that keys are checked against */
static void xrc_keys(struct kunit *test)
{
	static const u8 ops[] = { SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_READ };
	struct sroce_srq *other;
	struct pair *p;
	struct side *a;
	struct work w;
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		p = xrc_pair(test);
		a = &p->side[0];
		other = xrc_srq(&p->side[1], &p->side[1].other_pd,
				&p->side[1].xrcd);
		side_post(a, work_rdma(a, &w, ops[i], 1, SRC, DST, 1000));
		side_expect_send(a, 1, IB_WC_SUCCESS);
		work_rdma(a, &w, ops[i], 2, SRC, DST, 1000);
		w.wqe.remote_srqn = other->srqn;
		side_post(a, &w);
		xrc_refused(p, 2, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
		xrc_srq_end(other);
		pair_exit(test);
	}
}

/* --- queues that go away --------------------------------------------------------- */

/* In the middle of a message: nobody waits for the peer to finish it */
static void xrc_queue_gone(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_srq *other;
	struct work w;

	p->net.batch = 1;
	other = xrc_srq(b, &b->pd, &b->xrcd);
	xrc_srq_recv(b, other, 5, DST, 4 * MTU);
	work_send(a, &w, 1, SRC, 4 * MTU);
	w.wqe.remote_srqn = other->srqn;
	side_post(a, &w);
	fake_net_deliver(&p->net);
	fake_net_deliver(&p->net);
	KUNIT_EXPECT_TRUE(test, b->qp->resp.msg.have_wqe);
	xrc_srq_end(other);
	xrc_refused(p, 1, IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
}

static void xrc_queue_gone_while_read(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		{ .from = b, .op = SROCE_OP_READ_RESP, .count = 1,
		  .verdict = FAKE_DROP },
		{}
	};
	struct sroce_srq *other;
	struct work w;

	pair_rules(p, rules);
	other = xrc_srq(b, &b->pd, &b->xrcd);
	work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, DST, SRC, 4 * MTU);
	w.wqe.remote_srqn = other->srqn;
	side_post(a, &w);
	fake_net_deliver(&p->net);
	xrc_srq_end(other);
	/* The repeated READ is not answered, like one of a region that is gone */
	KUNIT_EXPECT_TRUE(test, pair_wait(p, &a->scq, 1));
	side_expect_send(a, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
}

/* A queue that changes in the middle of a message */
static void xrc_queue_changed(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t = side_train(a, SROCE_OP_SEND, side_first_psn(a));
	struct sroce_srq *other;
	struct bio_vec bv;

	other = xrc_srq(b, &b->pd, &b->xrcd);
	side_recv(b, 1, DST, 4 * MTU);
	xrc_srq_recv(b, other, 5, DST, 4 * MTU);
	bvec_set_virt(&bv, a->mem, MTU);
	t.bv = &bv;
	t.bi.bi_size = MTU;
	t.flags = SROCE_START;
	side_inject(a, &t);
	t.flags = SROCE_END;
	t.psn++;
	t.srqn = other->srqn;
	side_inject(a, &t);
	fake_net_settle(&p->net);
	side_expect_recv(b, 1, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_ACK, SROCE_NAK_INV_REQ));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	KUNIT_EXPECT_EQ(test, 1, sroce_ring_pending(&other->ring));
	xrc_srq_end(other);
}

/*
 * A queue that goes in the middle of a message, and another one that is given its number:
 * the message neither goes on in that nor completes there.
 */
static void xrc_queue_namesake(struct kunit *test)
{
	static const bool flushed[] = { false, true };
	struct sroce_srq *other, *namesake;
	struct sroce_train t;
	struct side *a, *b;
	struct bio_vec bv;
	struct pair *p;
	int i;

	for (i = 0; i < ARRAY_SIZE(flushed); i++) {
		p = xrc_pair(test);
		a = &p->side[0];
		b = &p->side[1];
		t = side_train(a, SROCE_OP_SEND, side_first_psn(a));
		other = xrc_srq(b, &b->pd, &b->xrcd);
		xrc_srq_recv(b, other, 5, DST, 4 * MTU);
		bvec_set_virt(&bv, a->mem, MTU);
		t.bv = &bv;
		t.bi.bi_size = MTU;
		t.flags = SROCE_START;
		t.srqn = other->srqn;
		side_inject(a, &t);
		fake_net_settle(&p->net);
		KUNIT_EXPECT_TRUE(test, b->qp->resp.msg.have_wqe);
		xrc_srq_end(other);
		namesake = xrc_srq(b, &b->pd, &b->xrcd);
		xrc_srq_recv(b, namesake, 6, DST, 4 * MTU);
		/* As if chance had given it the same number */
		b->qp->resp.msg.srqn = namesake->srqn;
		t.flags = SROCE_END;
		t.psn++;
		t.srqn = namesake->srqn;
		if (flushed[i])
			side_to_error(b);
		else
			side_inject(a, &t);
		fake_net_settle(&p->net);
		side_expect_none(b);
		KUNIT_EXPECT_EQ(test, !flushed[i],
				side_sent(b, SROCE_OP_ACK, SROCE_NAK_INV_REQ));
		KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
		KUNIT_EXPECT_EQ(test, 1, sroce_ring_pending(&namesake->ring));
		xrc_srq_end(namesake);
		pair_exit(test);
	}
}

static void xrc_flush(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	p->net.batch = 1;
	side_recv(b, 1, DST, 4 * MTU);
	side_recv(b, 2, DST, 4 * MTU);
	side_post(a, work_send(a, &w, 1, SRC, 4 * MTU));
	fake_net_deliver(&p->net);
	side_to_error(b);
	side_expect_recv(b, 1, IB_WC_WR_FLUSH_ERR);
	side_expect_none(b);
	/* The other one is the queue's, not the QP's */
	KUNIT_EXPECT_EQ(test, 1, sroce_ring_pending(&b->srq.ring));
	side_to_reset(b);
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&b->srq.entry->users));
}

/* Neither takes what is for the other */
static void xrc_wrong_way(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_sge sge = { .lkey = 1 };
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;
	struct sroce_train t;
	struct work w;

	t = side_train(b, SROCE_OP_SEND, side_first_psn(b));
	t.srqn = a->srq.srqn;
	side_recv(a, 1, DST, 100);
	side_inject(b, &t);
	side_inject_ack(a, SROCE_AETH_ACK_UNLIMITED, side_first_psn(b));
	fake_net_settle(&p->net);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_DISCARDS));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_DISCARDS));
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			side_try_post(b, work_send(b, &w, 1, SRC, 10)));
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_qp_post_recv(a->qp, &wr, &bad));
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_qp_post_recv(b->qp, &wr, &bad));
}

/* A target posts nothing: it has no room for what its maker says, which nobody counts */
static void xrc_target_rings(struct kunit *test)
{
	struct pair_config c = {
		.type = IB_QPT_XRC_INI,
		.depth = 4096,
	};
	struct pair *p = pair_create(test, &c);

	KUNIT_EXPECT_EQ(test, 4096, sroce_ring_entries(&p->side[0].qp->req.ring));
	KUNIT_EXPECT_EQ(test, 1, sroce_ring_entries(&p->side[1].qp->req.ring));
	KUNIT_EXPECT_EQ(test, 0, p->side[1].qp->max_inline);
	KUNIT_EXPECT_EQ(test, PAGE_SIZE, p->side[1].qp->req.ring.mem->len);
}

/*
 * The end of a queue does not wait for a grace period, of which each takes long: a
 * process has thousands of queues. In some of the tries one may end by itself.
 */
static void xrc_queue_ends_at_once(struct kunit *test)
{
	struct pair *p = xrc_pair(test);
	struct side *s = &p->side[1];
	bool waited = true;
	unsigned long gp;
	int i;

	for (i = 0; i < 1000 && waited; i++) {
		struct sroce_srq *srq = xrc_srq(s, &s->pd, &s->xrcd);

		gp = get_state_synchronize_rcu();
		xrc_srq_end(srq);
		waited = poll_state_synchronize_rcu(gp);
	}
	KUNIT_EXPECT_FALSE(test, waited);
}

static struct kunit_case xrc_cases[] = {
	KUNIT_CASE_PARAM(xrc_operations, way_gen_params),
	KUNIT_CASE(xrc_losses),
	KUNIT_CASE(xrc_two_queues),
	KUNIT_CASE(xrc_not_ready),
	KUNIT_CASE(xrc_wrong_queue),
	KUNIT_CASE(xrc_keys),
	KUNIT_CASE(xrc_queue_gone),
	KUNIT_CASE(xrc_queue_gone_while_read),
	KUNIT_CASE(xrc_queue_changed),
	KUNIT_CASE(xrc_queue_namesake),
	KUNIT_CASE(xrc_flush),
	KUNIT_CASE(xrc_wrong_way),
	KUNIT_CASE(xrc_target_rings),
	KUNIT_CASE(xrc_queue_ends_at_once),
	{}
};

static struct kunit_suite xrc_suite = {
	.name = "sroce_xrc",
	.exit = pair_exit,
	.test_cases = xrc_cases,
};

kunit_test_suite(xrc_suite);
