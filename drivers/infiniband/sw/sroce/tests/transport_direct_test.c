// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Trains between two QPs of this host that lie in an inbox for a while: the memory
 * that they point to is their sender's again when they have been taken, and that is
 * when it is told so.
 */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "tests/transport_pair.h"
#include "transport/direct.h"
#include "transport/gather.h"
#include "transport/run.h"

#define SRC 0x1003
#define DST 0x80005
#define GRH 40

static struct pair *direct_pair(struct kunit *test, enum ib_qp_type type)
{
	struct pair_config c = { .type = type, .direct = true };

	return pair_create(test, &c);
}

/* --- a half that does not run ------------------------------------------------- */

/* As if it were on the list of a CPU that does not get to it */
static void hold(struct sroce_half *half)
{
	while (test_and_set_bit(0, &half->queued))
		usleep_range(10, 100);
}

static void let_go(struct sroce_half *half)
{
	clear_bit(0, &half->queued);
	sroce_half_run(half);
}

static struct sroce_half *taker(struct side *s)
{
	return &s->qp->resp.half;
}

/* --- messages ----------------------------------------------------------------- */

static void post_keyed(struct side *from, u64 wr_id, u32 off, u32 len, u32 lkey)
{
	struct work w;

	side_fill(from, off, len, wr_id);
	work_send(from, &w, wr_id, off, len);
	w.sge[0].lkey = lkey;
	if (from->qp->type == IB_QPT_UD) {
		w.wqe.ud.ahn = PAIR_AHN;
		w.wqe.ud.remote_qpn = pair_peer(from)->qp->qpn;
	}
	side_post(from, &w);
}

static void post(struct side *from, u64 wr_id, u32 off, u32 len)
{
	post_keyed(from, wr_id, off, len, from->mr->key);
}

/* Where the payload of a receive at @off begins */
static u32 payload(const struct side *s, u32 off)
{
	return off + (s->qp->type == IB_QPT_UD ? GRH : 0);
}

static void expect_message(struct side *to, u64 wr_id, u32 off, u32 len,
			   u32 seed)
{
	side_expect_recv(to, wr_id, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(to->pair->test,
			  side_filled(to, payload(to, off), len, seed));
}

/*
 * What gives the last train back may leave the rest to a tasklet, of which
 * pair_wait() knows nothing.
 */
static bool has_completion(struct sroce_cq *cq)
{
	int i;

	for (i = 0; i < 10000; i++) {
		if (READ_ONCE(cq->ring.index) != cq->cons)
			return true;
		usleep_range(100, 200);
	}
	return false;
}

static void expect_sent(struct side *s, u64 wr_id, enum ib_wc_status status)
{
	struct kunit *test = s->pair->test;
	struct ib_wc wc;

	KUNIT_EXPECT_TRUE(test, has_completion(&s->scq));
	KUNIT_ASSERT_TRUE(test, side_poll(&s->scq, &wc));
	KUNIT_EXPECT_EQ(test, wr_id, wc.wr_id);
	KUNIT_EXPECT_EQ(test, status, wc.status);
	KUNIT_EXPECT_PTR_EQ(test, &s->ibqp, wc.qp);
}

/* Whatever is going to complete has had time for that */
static void expect_lent(struct side *s)
{
	usleep_range(2000, 3000);
	side_expect_none(s);
	KUNIT_EXPECT_TRUE(s->pair->test, sroce_qp_has_lent(s->qp));
}

/* @to is as busy as hold() makes it when a message comes that it has a receive for */
static void ready_but_held(struct side *to, u64 wr_id, u32 len)
{
	hold(taker(to));
	side_recv(to, wr_id, DST, len);
}

/*
 * The peer goes on and takes message @wr_id with its receive @recv_id. That ends the
 * request with @status, and the memory is the sender's again.
 */
static void expect_taken(struct side *from, u64 wr_id,
			 enum ib_wc_status status, u64 recv_id, u32 len)
{
	struct side *to = pair_peer(from);

	let_go(taker(to));
	expect_sent(from, wr_id, status);
	expect_message(to, recv_id, DST, len, wr_id);
	KUNIT_EXPECT_FALSE(from->pair->test, sroce_qp_has_lent(from->qp));
}

/* --- no ACK --------------------------------------------------------------------- */

static const enum ib_qp_type unacked[] = { IB_QPT_UD, IB_QPT_UC };

static void type_name(const enum ib_qp_type *type, char *desc)
{
	strscpy(desc, *type == IB_QPT_UD ? "UD" : "UC", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(unacked, unacked, type_name);

static struct pair *unacked_pair(struct kunit *test)
{
	const enum ib_qp_type *type = test->param_value;

	return direct_pair(test, *type);
}

/* A message of 1024 bytes that the peer does not take, which is as busy as hold() makes it */
static void post_untaken(struct side *a)
{
	hold(taker(pair_peer(a)));
	post(a, 1, SRC, 1024);
	expect_lent(a);
}

/* The sender may change its buffer when it is told that the message was sent */
static void sent_when_taken(struct kunit *test)
{
	struct pair *p = unacked_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	ready_but_held(b, 1, GRH + 1024);
	post(a, 10, SRC, 1024);
	expect_lent(a);
	expect_taken(a, 10, IB_WC_SUCCESS, 1, 1024);
	side_expect_none(a);
}

/* What needs nobody's memory is done at once, but not before what went before it */
static void sent_in_order(struct kunit *test)
{
	struct pair *p = unacked_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	hold(taker(b));
	for (i = 0; i < 4; i++)
		side_recv(b, i, DST + i * 0x1000, GRH + 1024);
	post(a, 0, SRC, 100);
	expect_sent(a, 0, IB_WC_SUCCESS);
	post(a, 1, SRC, 1024);
	post(a, 2, SRC + 0x1000, 100);
	post(a, 3, SRC + 0x2000, 600);
	expect_lent(a);
	let_go(taker(b));
	for (i = 1; i < 4; i++)
		expect_sent(a, i, IB_WC_SUCCESS);
	side_expect_recv(b, 0, IB_WC_SUCCESS);
	expect_message(b, 1, DST + 0x1000, 1024, 1);
	expect_message(b, 2, DST + 0x2000, 100, 2);
	expect_message(b, 3, DST + 0x3000, 600, 3);
}

/* A receiver that will never take it keeps nobody waiting */
static void receiver_dies(struct kunit *test)
{
	struct pair *p = unacked_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	post_untaken(a);
	sroce_qp_destroy(b->qp);
	b->qp = NULL;
	expect_sent(a, 1, IB_WC_SUCCESS);
}

static void receiver_fails(struct kunit *test)
{
	struct pair *p = unacked_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	post_untaken(a);
	side_to_error(b);
	expect_sent(a, 1, IB_WC_SUCCESS);
	let_go(taker(b));
}

/* What was sent is sent, also in ERR; what was not is flushed behind it */
static void sender_fails(struct kunit *test)
{
	struct pair *p = unacked_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	ready_but_held(b, 1, GRH + 1024);
	post(a, 1, SRC, 1024);
	side_to_error(a);
	post(a, 2, SRC + 0x1000, 1024);
	expect_lent(a);
	expect_taken(a, 1, IB_WC_SUCCESS, 1, 1024);
	expect_sent(a, 2, IB_WC_WR_FLUSH_ERR);
}

/* SQD: what waits to be taken is not drained */
static void not_drained(struct kunit *test)
{
	struct pair *p = unacked_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	hold(taker(b));
	post(a, 1, SRC, 1024);
	side_to_sqd(a, true);
	expect_lent(a);
	KUNIT_EXPECT_EQ(test, 0, side_events(a, IB_EVENT_SQ_DRAINED));
	let_go(taker(b));
	expect_sent(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_events(a, IB_EVENT_SQ_DRAINED));
}

/* The first part of a message is on its way, the second one cannot be read */
static void broken_message(struct kunit *test)
{
	struct pair *p = direct_pair(test, IB_QPT_UC);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 len = SROCE_TRAIN_PACKETS * 1024;
	struct work w;

	ready_but_held(b, 1, 2 * len);
	work_send(a, &w, 1, SRC, len);
	work_local(a, &w, SRC, 1000);
	w.sge[1].lkey ^= 1;
	side_post(a, &w);
	expect_lent(a);
	KUNIT_EXPECT_EQ(test, IB_QPS_SQE, side_state(a));
	let_go(taker(b));
	expect_sent(a, 1, IB_WC_LOC_PROT_ERR);
	side_expect_none(a);
	side_expect_none(b);
}

/* --- by force --------------------------------------------------------------------- */

/* Of a region, and of memory that none holds: read before the sender has it again */
static void flushed_when_taken(struct kunit *test)
{
	u32 keys[2] = { SROCE_LOCAL_DMA_LKEY };
	struct side *a, *b;
	struct pair *p;
	int i;

	for (i = 0; i < 2; i++) {
		p = direct_pair(test, IB_QPT_RC);
		a = &p->side[0];
		b = &p->side[1];
		keys[1] = a->mr->key;
		ready_but_held(b, 2, 5000);
		post_keyed(a, 1, SRC, 5000, keys[i]);
		side_to_error(a);
		expect_lent(a);
		expect_taken(a, 1, IB_WC_WR_FLUSH_ERR, 2, 5000);
		pair_exit(test);
	}
}

/* A peer that does not come to its answer, and is given up */
static void failed_when_taken(struct kunit *test)
{
	struct pair_config c = { .direct = true, .retry = -1 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	ready_but_held(b, 3, 5000);
	side_recv(b, 4, DST, 5000);
	post(a, 1, SRC, 5000);
	post(a, 2, SRC, 5000);
	side_expire(a);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	expect_lent(a);
	let_go(taker(b));
	expect_sent(a, 1, IB_WC_RETRY_EXC_ERR);
	expect_sent(a, 2, IB_WC_WR_FLUSH_ERR);
	side_expect_none(a);
}

/* A message whose answer has come, but is not looked at yet */
static void post_answered(struct side *a)
{
	struct side *b = pair_peer(a);

	hold(&a->qp->req.half);
	side_recv(b, 2, DST, 5000);
	post(a, 1, SRC, 5000);
	KUNIT_EXPECT_TRUE(a->pair->test, has_completion(&b->rcq));
	KUNIT_EXPECT_FALSE(a->pair->test, has_completion(&a->scq));
}

static void answered_before_error(struct kunit *test)
{
	struct side *a = &direct_pair(test, IB_QPT_RC)->side[0];

	post_answered(a);
	side_to_error(a);
	let_go(&a->qp->req.half);
	expect_sent(a, 1, IB_WC_SUCCESS);
}

static void answered_before_timeout(struct kunit *test)
{
	struct pair_config c = { .direct = true, .retry = -1 };
	struct side *a = &pair_create(test, &c)->side[0];

	post_answered(a);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR));
	let_go(&a->qp->req.half);
	expect_sent(a, 1, IB_WC_SUCCESS);
}

/*
 * READ responses point to the responder's memory. Who drains both queues may free
 * that without having invalidated a key.
 */
static void drained_when_read(struct kunit *test)
{
	struct pair *p = direct_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	hold(&a->qp->req.half);
	side_fill(b, DST, 5000, 7);
	work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, SRC, DST, 5000);
	side_post(a, &w);
	KUNIT_EXPECT_TRUE(test, sroce_qp_has_lent(b->qp));
	side_recv(b, 2, DST, 5000);
	side_to_error(b);
	post(b, 3, SRC, 5000);
	expect_lent(b);
	let_go(&a->qp->req.half);
	expect_sent(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, 5000, 7));
	expect_sent(b, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, has_completion(&b->rcq));
	side_expect_recv(b, 2, IB_WC_WR_FLUSH_ERR);
	side_expect_none(b);
}

/* --- a receiver without receives --------------------------------------------------- */

#define TRICKLE_JIFFIES (20 * HZ)

/**
 * struct trickle - a process that has its QP wait on and on
 * @s: receiver, of which something waits for a receive
 * @task: looks, as the timer would, and has it wait anew, as if there had been a
 *	receive for the message before
 * @end: in jiffies: then there is none
 */
struct trickle {
	struct side *s;
	struct task_struct *task;
	unsigned long end;
};

static bool trickle_over(const struct trickle *t)
{
	return time_after(jiffies, t->end);
}

static int trickle(void *arg)
{
	struct trickle *t = arg;
	struct sroce_responder *resp = &t->s->qp->resp;

	while (!kthread_should_stop()) {
		spin_lock_bh(&resp->half.lock);
		if (!trickle_over(t))
			resp->patience.waited = 0;
		spin_unlock_bh(&resp->half.lock);
		side_look(t->s);
		usleep_range(50, 100);
	}
	return 0;
}

static struct trickle trickle_now;

static void trickle_stop(void)
{
	if (trickle_now.task)
		kthread_stop(trickle_now.task);
	trickle_now.task = NULL;
}

static void trickle_begin(struct side *s)
{
	struct task_struct *task;

	trickle_now.s = s;
	trickle_now.end = jiffies + TRICKLE_JIFFIES;
	task = kthread_run(trickle, &trickle_now, "trickle");
	KUNIT_ASSERT_FALSE(s->pair->test, IS_ERR(task));
	trickle_now.task = task;
}

/* It would have gone on */
static void trickle_end(struct pair *p)
{
	KUNIT_EXPECT_FALSE(p->test, trickle_over(&trickle_now));
	trickle_stop();
}

/* It looks at a QP, also when a test has given up */
static void direct_exit(struct kunit *test)
{
	trickle_stop();
	pair_exit(test);
}

/* Messages that point to memory, alone or behind one that does not */
static const u32 first_lengths[] = { 5000, 100 };

static void first_name(const u32 *len, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "first %u", *len);
}

KUNIT_ARRAY_PARAM(first, first_lengths, first_name);

static void post_two(struct pair *p, u32 key)
{
	const u32 *first = p->test->param_value;
	struct side *a = &p->side[0];

	trickle_begin(&p->side[1]);
	post_keyed(a, 1, SRC, *first, key);
	post_keyed(a, 2, SRC + 0x2000, 5000, key);
	expect_lent(a);
}

static void recalled_by_failed(struct kunit *test)
{
	struct pair *p = direct_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0];

	post_two(p, a->mr->key);
	side_to_error(a);
	expect_sent(a, 1, IB_WC_WR_FLUSH_ERR);
	expect_sent(a, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_FALSE(test, sroce_qp_has_lent(a->qp));
	trickle_end(p);
}

static void recalled_by_reset(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct pair *p = direct_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0];

	post_two(p, a->mr->key);
	KUNIT_EXPECT_EQ(test, 0, sroce_qp_modify(a->qp, &attr, IB_QP_STATE,
						 NULL));
	KUNIT_EXPECT_FALSE(test, sroce_qp_has_lent(a->qp));
	trickle_end(p);
}

static void recalled_by_dead(struct kunit *test)
{
	struct pair *p = direct_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0];

	post_two(p, a->mr->key);
	sroce_qp_destroy(a->qp);
	a->qp = NULL;
	trickle_end(p);
}

static struct sroce_mr *another_region(struct side *s)
{
	struct sroce_mr *mr;

	mr = sroce_mr_alloc(&s->port.mrs, &s->pd, SROCE_MR_DMA, 0);
	KUNIT_ASSERT_FALSE(s->pair->test, IS_ERR(mr));
	sroce_mr_publish(mr);
	return mr;
}

/* Who deregisters memory that is being sent cannot hope for more than an end */
static void recalled_by_region(struct kunit *test)
{
	struct pair *p = direct_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0];
	struct sroce_mr *mr = another_region(a);

	post_two(p, mr->key);
	sroce_mr_free(mr);
	trickle_end(p);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->domain.recalls));
}

static int free_region(void *arg)
{
	sroce_mr_free(arg);
	return 0;
}

static void expect_recalls(struct side *s, int n)
{
	int i;

	for (i = 0; i < 10000 && atomic_read(&s->domain.recalls) != n; i++)
		usleep_range(100, 200);
	KUNIT_EXPECT_EQ(s->pair->test, n, atomic_read(&s->domain.recalls));
}

/* Somebody waits for a region of the same domain that has nothing to do with it */
static void not_recalled(struct kunit *test)
{
	struct pair *p = direct_pair(test, IB_QPT_RC);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_mr *mr = another_region(a);

	sroce_mr_hold(mr);
	post_two(p, a->mr->key);
	if (IS_ERR(kthread_run(free_region, mr, "free_region")))
		KUNIT_FAIL(test, "no thread");
	expect_recalls(a, 1);
	expect_lent(a);
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	sroce_mr_put(mr);
	expect_recalls(a, 0);
	side_recv(b, 3, DST, 5000);
	side_recv(b, 4, DST + 0x2000, 5000);
	expect_sent(a, 1, IB_WC_SUCCESS);
	expect_sent(a, 2, IB_WC_SUCCESS);
	side_expect_recv(b, 3, IB_WC_SUCCESS);
	side_expect_recv(b, 4, IB_WC_SUCCESS);
	trickle_end(p);
}

static struct kunit_case direct_cases[] = {
	KUNIT_CASE_PARAM(sent_when_taken, unacked_gen_params),
	KUNIT_CASE_PARAM(sent_in_order, unacked_gen_params),
	KUNIT_CASE_PARAM(receiver_dies, unacked_gen_params),
	KUNIT_CASE_PARAM(receiver_fails, unacked_gen_params),
	KUNIT_CASE_PARAM(sender_fails, unacked_gen_params),
	KUNIT_CASE_PARAM(not_drained, unacked_gen_params),
	KUNIT_CASE(broken_message),
	KUNIT_CASE(flushed_when_taken),
	KUNIT_CASE(failed_when_taken),
	KUNIT_CASE(answered_before_error),
	KUNIT_CASE(answered_before_timeout),
	KUNIT_CASE(drained_when_read),
	KUNIT_CASE_PARAM(recalled_by_failed, first_gen_params),
	KUNIT_CASE_PARAM(recalled_by_reset, first_gen_params),
	KUNIT_CASE_PARAM(recalled_by_dead, first_gen_params),
	KUNIT_CASE_PARAM(recalled_by_region, first_gen_params),
	KUNIT_CASE_PARAM(not_recalled, first_gen_params),
	{}
};

static struct kunit_suite direct_suite = {
	.name = "sroce_transport_direct",
	.exit = direct_exit,
	.test_cases = direct_cases,
};

kunit_test_suite(direct_suite);
