// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A dma-buf that its exporter takes back while messages go to it and come from it: from then
 * on its bytes are the exporter's, whatever is under way, held or to be sent again, and who
 * asked for them is told.
 */
#include <kunit/test.h>
#include <linux/fcntl.h>
#include <linux/mm.h>

#include "memory/dmabuf.h"
#include "tests/exporter.h"
#include "tests/transport_pair.h"

/* The buffer is a part of the side's memory, so that its bytes can be filled and compared */
#define BUF 0x100000
#define LEN (EXPORTER_BYTES - 0x2000)
#define IOVA 0x7000000000ULL
/* The other side's */
#define THERE 0x40000

/* What its owner does with the buffer afterwards */
#define OWNERS 0x33

/**
 * struct taken - a region of a buffer that may be taken back
 * @s: side whose region it is
 * @x: exporter
 * @mr: region, of all of the buffer, with PAIR_MR_ACCESS
 */
struct taken {
	struct side *s;
	struct exporter x;
	struct sroce_mr *mr;
};

static void taken_begin(struct taken *t, struct side *s)
{
	struct kunit *test = s->pair->test;
	struct page *pages[EXPORTER_PAGES];
	int i;

	t->s = s;
	for (i = 0; i < EXPORTER_PAGES; i++)
		pages[i] = virt_to_page(s->mem + BUF + i * PAGE_SIZE);
	exporter_create(test, &t->x, &exporter_moving, O_RDWR, pages);
	t->mr = sroce_mr_alloc(&s->port.mrs, &s->pd, SROCE_MR_USER, EXPORTER_PAGES);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t->mr));
	t->mr->dmabuf = sroce_dmabuf_create(t->x.ibdev, t->x.buf, true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t->mr->dmabuf));
	KUNIT_ASSERT_EQ(test, 0, sroce_dmabuf_set_blocks(t->mr, 0, EXPORTER_BYTES));
	t->mr->iova = IOVA;
	t->mr->length = EXPORTER_BYTES;
	t->mr->access = PAIR_MR_ACCESS;
	KUNIT_ASSERT_EQ(test, 0, sroce_dmabuf_publish(t->mr));
}

static void taken_end(struct taken *t)
{
	struct sroce_dmabuf *d = t->mr->dmabuf;

	sroce_dmabuf_leave(d);
	sroce_mr_free(t->mr);
	sroce_dmabuf_destroy(d);
	exporter_exit(&t->x);
}

/* In a thread: it must not wait for anything that only this one could go on with */
static void take(struct taken *t)
{
	struct taker taker = { .x = &t->x };

	taker_begin(&taker);
	KUNIT_ASSERT_TRUE(t->s->pair->test,
			  wait_for_completion_timeout(&taker.done, 30 * HZ));
	memset(t->s->mem + BUF, OWNERS, EXPORTER_BYTES);
}

static void expect_untouched(const struct taken *t)
{
	KUNIT_EXPECT_PTR_EQ(t->s->pair->test, NULL,
			    memchr_inv(t->s->mem + BUF, OWNERS, EXPORTER_BYTES));
}

/* A request of the peer's that is about the region; an atomic about its first word */
static void post_to(struct taken *t, u8 opcode, u64 wr_id, u32 len)
{
	struct side *a = pair_peer(t->s);
	struct work w;

	if (opcode == SROCE_WR_FETCH_ADD) {
		work_init(&w, opcode, wr_id);
		work_local(a, &w, THERE, len);
		work_atomic(a, &w, 0, 1, 0);
		w.wqe.atomic.remote_addr = IOVA;
		w.wqe.atomic.rkey = t->mr->key;
	} else {
		work_rdma(a, &w, opcode, wr_id, THERE, 0, len);
		w.wqe.rdma.remote_addr = IOVA;
		w.wqe.rdma.rkey = t->mr->key;
	}
	side_post(a, &w);
}

/* One of the owner of the region, whose memory here it is */
static void post_own(struct taken *t, u8 opcode, u64 wr_id, u32 len)
{
	struct side *a = t->s;
	struct work w;

	if (opcode == SROCE_WR_SEND)
		work_send(a, &w, wr_id, 0, len);
	else
		work_rdma(a, &w, opcode, wr_id, 0, THERE, len);
	w.sge[0].addr = IOVA;
	w.sge[0].lkey = t->mr->key;
	side_post(a, &w);
}

static struct pair *taken_pair(struct kunit *test, enum ib_qp_type type)
{
	const struct pair_config c = { .type = type, .batch = 1, .mtu = IB_MTU_256 };

	return pair_create(test, &c);
}

/**
 * struct target - what a peer does with a region
 * @name: for messages
 * @opcode: work request
 * @len: bytes
 */
struct target {
	const char *name;
	u8 opcode;
	u32 len;
};

static const struct target targets[] = {
	{ "WRITE", SROCE_WR_RDMA_WRITE, LEN },
	{ "READ", SROCE_WR_RDMA_READ, LEN },
	{ "FETCH ADD", SROCE_WR_FETCH_ADD, 8 },
	{ "ATOMIC WRITE", SROCE_WR_ATOMIC_WRITE, 8 },
};

KUNIT_ARRAY_PARAM_DESC(target, targets, name);

/* Between two messages */
static void taken_before_request(struct kunit *test)
{
	const struct target *k = test->param_value;
	struct pair *p = taken_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct taken t;

	taken_begin(&t, b);
	post_to(&t, k->opcode, 1, k->len);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	take(&t);
	memset(a->mem + THERE, 0x77, LEN);
	post_to(&t, k->opcode, 2, k->len);
	side_expect_send(a, 2, IB_WC_REM_ACCESS_ERR);
	expect_untouched(&t);
	KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(a->mem + THERE, 0x77, LEN));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	/* For a second time, and when nobody has the region any more */
	exporter_take_back(&t.x);
	taken_end(&t);
}

/* Packets of one WRITE that have not come yet write nothing */
static void taken_within_write(struct kunit *test)
{
	struct pair *p = taken_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 10, 0, FAKE_HOLD), {} };
	struct taken t;

	taken_begin(&t, b);
	side_fill(a, THERE, LEN, 1);
	pair_rules(p, rules);
	post_to(&t, SROCE_WR_RDMA_WRITE, 1, LEN);
	pair_deliver(p);
	KUNIT_EXPECT_PTR_NE(test, NULL, memchr_inv(b->mem + BUF, 0, 256));
	take(&t);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_REM_ACCESS_ERR);
	expect_untouched(&t);
	taken_end(&t);
}

/* Those that were held behind a lost one do not either, when that comes again */
static void taken_while_held(struct kunit *test)
{
	struct pair *p = taken_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(a, SROCE_OP_WRITE, side_first_psn(a) + 3, 0, FAKE_HOLD), {}
	};
	struct taken t;

	taken_begin(&t, b);
	side_fill(a, THERE, LEN, 1);
	pair_rules(p, rules);
	post_to(&t, SROCE_WR_RDMA_WRITE, 1, LEN);
	pair_deliver(p);
	KUNIT_EXPECT_GT(test, b->qp->resp.hold.held.n, 0);
	take(&t);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_REM_ACCESS_ERR);
	expect_untouched(&t);
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.hold.held.n);
	taken_end(&t);
}

/*
 * Responses to a READ that are lost are not made anew. To the responder a READ that comes
 * again may be an old packet, which must not end a connection: it has no answer, and the
 * retries of who asks end.
 */
static void taken_within_read(struct kunit *test)
{
	struct pair *p = taken_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(b, SROCE_OP_READ_RESP, 5, 0, FAKE_DROP), {} };
	struct taken t;

	taken_begin(&t, b);
	side_fill(b, BUF, LEN, 1);
	memset(a->mem + THERE, 0x77, LEN);
	pair_rules(p, rules);
	post_to(&t, SROCE_WR_RDMA_READ, 1, LEN);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, !memcmp(a->mem + THERE, b->mem + BUF, 5 * 256));
	take(&t);
	pair_rules(p, NULL);
	side_expect_send(a, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_PTR_EQ(test, NULL,
			    memchr_inv(a->mem + THERE + 5 * 256, 0x77, LEN - 5 * 256));
	expect_untouched(&t);
	taken_end(&t);
}

/* A peer without ACKs hears nothing, and writes nothing */
static void taken_unacknowledged(struct kunit *test)
{
	struct pair *p = taken_pair(test, IB_QPT_UC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_WRITE, 10, 0, FAKE_HOLD), {} };
	struct taken t;

	taken_begin(&t, b);
	side_fill(a, THERE, LEN, 1);
	pair_rules(p, rules);
	post_to(&t, SROCE_WR_RDMA_WRITE, 1, LEN);
	pair_deliver(p);
	take(&t);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	post_to(&t, SROCE_WR_RDMA_WRITE, 2, LEN);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	pair_settle(p);
	expect_untouched(&t);
	taken_end(&t);
}

static void post_recv(struct taken *t, u64 wr_id)
{
	struct ib_sge sge = { .addr = IOVA, .length = EXPORTER_BYTES, .lkey = t->mr->key };
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	KUNIT_ASSERT_EQ(t->s->pair->test, 0, t->s->qp->srq ? srq_try_recv(&t->s->srq, &wr) :
							     side_try_recv(t->s, &wr));
}

static const bool shared[] = { false, true };

static void shared_name(const bool *srq, char *name)
{
	strscpy(name, *srq ? "shared" : "own", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(queue, shared, shared_name);

/* A receive that stands in the buffer: its message ends as an error at both ends */
static void taken_receive(struct kunit *test)
{
	const bool *srq = test->param_value;
	const struct pair_config c = { .srq = *srq, .batch = 1, .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(a, SROCE_OP_SEND, 10, 0, FAKE_HOLD), {} };
	struct taken t;
	struct work w;

	taken_begin(&t, b);
	post_recv(&t, 1);
	post_recv(&t, 2);
	side_post(a, work_send(a, &w, 1, THERE, LEN));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 1, IB_WC_SUCCESS);
	pair_rules(p, rules);
	side_post(a, work_send(a, &w, 2, THERE, LEN));
	pair_deliver(p);
	take(&t);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	side_expect_recv(b, 2, IB_WC_LOC_PROT_ERR);
	side_expect_send(a, 2, IB_WC_REM_OP_ERR);
	expect_untouched(&t);
	taken_end(&t);
}

static const struct target sources[] = {
	{ "WRITE from", SROCE_WR_RDMA_WRITE },
	{ "SEND from", SROCE_WR_SEND },
};

KUNIT_ARRAY_PARAM_DESC(source, sources, name);

/* A message whose end was lost is not sent again with what its owner has there now */
static void taken_source(struct kunit *test)
{
	const struct target *k = test->param_value;
	struct pair *p = taken_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	u8 op = k->opcode == SROCE_WR_SEND ? SROCE_OP_SEND : SROCE_OP_WRITE;
	struct rule rules[] = { rule_nth(a, op, 10, 0, FAKE_DROP), {} };
	struct taken t;

	taken_begin(&t, a);
	side_fill(a, BUF, LEN, 1);
	memset(b->mem + THERE, 0x77, LEN);
	side_recv(b, 9, THERE, LEN);
	pair_rules(p, rules);
	post_own(&t, k->opcode, 1, LEN);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, !memcmp(b->mem + THERE, a->mem + BUF, 10 * 256));
	take(&t);
	pair_rules(p, NULL);
	side_expect_send(a, 1, IB_WC_LOC_PROT_ERR);
	pair_settle(p);
	KUNIT_EXPECT_PTR_EQ(test, NULL,
			    memchr_inv(b->mem + THERE + 10 * 256, 0x77, LEN - 10 * 256));
	expect_untouched(&t);
	taken_end(&t);
}

/* Responses that come to where the buffer was */
static void taken_sink(struct kunit *test)
{
	struct pair *p = taken_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = { rule_nth(b, SROCE_OP_READ_RESP, 5, 0, FAKE_HOLD), {} };
	struct taken t;

	taken_begin(&t, a);
	side_fill(b, THERE, LEN, 1);
	pair_rules(p, rules);
	post_own(&t, SROCE_WR_RDMA_READ, 1, LEN);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, !memcmp(b->mem + THERE, a->mem + BUF, 5 * 256));
	take(&t);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	side_expect_send(a, 1, IB_WC_LOC_PROT_ERR);
	expect_untouched(&t);
	taken_end(&t);
}

static int taken_init(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU))
		kunit_skip(test, "devices may not be coherent here");
	return 0;
}

static struct kunit_case taken_cases[] = {
	KUNIT_CASE_PARAM(taken_before_request, target_gen_params),
	KUNIT_CASE(taken_within_write),
	KUNIT_CASE(taken_while_held),
	KUNIT_CASE(taken_within_read),
	KUNIT_CASE(taken_unacknowledged),
	KUNIT_CASE_PARAM(taken_receive, queue_gen_params),
	KUNIT_CASE_PARAM(taken_source, source_gen_params),
	KUNIT_CASE(taken_sink),
	{}
};

static struct kunit_suite taken_suite = {
	.name = "sroce_transport_dmabuf",
	.init = taken_init,
	.exit = pair_exit,
	.test_cases = taken_cases,
};

kunit_test_suite(taken_suite);
