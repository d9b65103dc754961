// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * No half overtakes itself: as long as the stack may have packets of it in the queue of
 * a CPU, it sends from there.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "tests/transport_pair.h"
#include "transport/run.h"
#include "transport/send.h"
#include "turn.h"
#include "txq.h"

/* More than the window, so that the requester is run again and again */
#define LEN SZ_2M

/* Some times what a responder sends in a run */
#define ATOMICS 64

static bool (*order_passed)(unsigned int cpu);
static unsigned long order_patience;

static bool never(unsigned int cpu)
{
	return false;
}

static bool always(unsigned int cpu)
{
	return true;
}

static u64 order_passes_at;

static bool later(unsigned int cpu)
{
	return ktime_get_ns() >= READ_ONCE(order_passes_at);
}

static int order_init(struct kunit *test)
{
	order_passed = sroce_stack_passed;
	order_patience = sroce_send_patience;
	/* However slow the machine is */
	WRITE_ONCE(sroce_send_patience, 60 * HZ);
	return 0;
}

static void order_exit(struct kunit *test)
{
	WRITE_ONCE(sroce_stack_passed, order_passed);
	WRITE_ONCE(sroce_send_patience, order_patience);
	pair_exit(test);
}

/* One that is not this one, which we keep */
static unsigned int other_cpu(struct kunit *test)
{
	unsigned int cpu;

	migrate_disable();
	cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
	if (cpu >= nr_cpu_ids) {
		migrate_enable();
		kunit_skip(test, "it takes two CPUs");
	}
	return cpu;
}

static struct pair *order_pair(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_4096 };
	struct pair *p = pair_create(test, &c);

	side_fill(&p->side[0], 0, LEN, 5);
	return p;
}

static void sent_before(struct sroce_half *half, unsigned int cpu)
{
	spin_lock_bh(&half->lock);
	half->sent_on = cpu;
	half->sent_at = jiffies;
	spin_unlock_bh(&half->lock);
}

/* Deliver until the first side has its completion, and whatever runs elsewhere is done */
static bool carried(struct pair *p)
{
	struct sroce_cq *cq = &p->side[0].scq;
	int patience = 600000;

	while (READ_ONCE(cq->ring.index) == READ_ONCE(cq->cons) && --patience)
		if (!fake_net_deliver(&p->net))
			usleep_range(50, 100);
	return patience;
}

/* Wait for the completion, then end what other_cpu() began: the test may leave its CPU again */
static void carry(struct pair *p)
{
	KUNIT_EXPECT_TRUE(p->test, carried(p));
	migrate_enable();
}

/* Packets of a side that were not sent from @cpu, among the last ones */
static u32 strayed(struct side *s, unsigned int cpu)
{
	struct fake_net *net = &s->pair->net;
	u32 i, n = 0;

	for (i = 0; i < min(net->sent, FAKE_NET_LOG); i++)
		n += net->log[i].path == &s->path && net->log[i].cpu != cpu;
	return n;
}

static void write_all(struct side *s)
{
	struct work w;

	side_post(s, work_rdma(s, &w, SROCE_WR_RDMA_WRITE, 1, 0, 0, LEN));
}

/* What write_all() posted is complete, and at the peer */
static void expect_written(struct side *s)
{
	side_expect_send(s, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(s->pair->test, side_filled(pair_peer(s), 0, LEN, 5));
}

/* The first side's requester has sent from another CPU. Return: which */
static unsigned int sent_elsewhere(struct pair *p,
				   bool (*passed)(unsigned int cpu))
{
	unsigned int cpu = other_cpu(p->test);

	sent_before(&p->side[0].qp->req.half, cpu);
	WRITE_ONCE(sroce_stack_passed, passed);
	return cpu;
}

/* A doorbell here, when packets are under way there */
static void requester_goes_back(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0];
	unsigned int cpu = sent_elsewhere(p, never);

	write_all(a);
	carry(p);
	KUNIT_EXPECT_GT(test, p->net.sent, LEN / 4096);
	KUNIT_EXPECT_EQ(test, 0, strayed(a, cpu));
	expect_written(a);
}

/* The same when they have arrived: it sends here, and at once */
static void requester_moves(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0];
	unsigned int cpu = sent_elsewhere(p, always);
	u32 sent;

	write_all(a);
	sent = p->net.sent;
	cpu = smp_processor_id();
	carry(p);
	KUNIT_EXPECT_GT(test, sent, 0);
	KUNIT_EXPECT_EQ(test, 0, strayed(a, cpu));
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

/* Packets that lie there for ever do not keep it */
static void requester_loses_patience(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0];

	sent_elsewhere(p, never);
	WRITE_ONCE(sroce_send_patience, 0);
	a->qp->req.half.sent_at = jiffies - 1;
	write_all(a);
	KUNIT_EXPECT_EQ(test, smp_processor_id(), a->qp->req.half.sent_on);
	KUNIT_EXPECT_TRUE(test, carried(p));
	migrate_enable();
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

/* What has arrived is taken where it arrives; the answer goes where answers went before */
static void responder_goes_back(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0], *b = pair_peer(a);
	unsigned int cpu = other_cpu(test), here = smp_processor_id();

	sent_before(&b->qp->resp.half, cpu);
	sent_before(&a->qp->req.half, here);
	WRITE_ONCE(sroce_stack_passed, never);
	write_all(a);
	carry(p);
	KUNIT_EXPECT_EQ(test, 0, strayed(a, here));
	KUNIT_EXPECT_EQ(test, 0, strayed(b, cpu));
	expect_written(a);
}

/* What a turn has left is done on its CPU, by a worker */
static void left_stays(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0];
	unsigned int here;

	other_cpu(test);
	here = smp_processor_id();
	WRITE_ONCE(sroce_stack_passed, never);
	sroce_turn_limits.bytes = SZ_64K;
	write_all(a);
	carry(p);
	KUNIT_EXPECT_EQ(test, 0, strayed(a, here));
	expect_written(a);
}

/* Both ends want it: nobody hands over for ever */
static void both_at_once(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0], *b = pair_peer(a);
	unsigned int cpu = other_cpu(test);
	struct work w;

	sent_before(&a->qp->req.half, cpu);
	sent_before(&b->qp->resp.half, cpu);
	WRITE_ONCE(sroce_stack_passed, never);
	sroce_turn_limits.bytes = SZ_64K;
	side_fill(b, 0, LEN, 6);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, 0, 0, LEN));
	carry(p);
	KUNIT_EXPECT_EQ(test, 0, strayed(a, cpu));
	KUNIT_EXPECT_EQ(test, 0, strayed(b, cpu));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, 0, LEN, 6));
}

/* --- what cannot wait for another CPU ------------------------------------- */

/*
 * A task that keeps a CPU from its softirqs, for some seconds at most: at once, or as
 * soon as @waits says no more. It begins with @first.
 */
struct hog {
	struct task_struct *task;
	struct side *side;
	void (*first)(struct side *s);
	bool waits;
	bool holds;
	u32 sent;
};

static int hog_run(void *arg)
{
	struct hog *hog = arg;
	unsigned long end;

	while (READ_ONCE(hog->waits) && !kthread_should_stop())
		usleep_range(50, 100);
	end = jiffies + 20 * HZ;
	local_bh_disable();
	if (hog->first)
		hog->first(hog->side);
	if (hog->side)
		hog->sent = READ_ONCE(hog->side->pair->net.sent);
	WRITE_ONCE(hog->holds, true);
	while (!kthread_should_stop() && time_before(jiffies, end))
		cpu_relax();
	WRITE_ONCE(hog->holds, false);
	local_bh_enable();
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

static void hog_start(struct kunit *test, struct hog *hog, unsigned int cpu)
{
	hog->task = kthread_create_on_cpu(hog_run, hog, cpu, "sroce_hog");
	KUNIT_ASSERT_FALSE(test, IS_ERR(hog->task));
	sched_set_fifo(hog->task);
	wake_up_process(hog->task);
	while (!hog->waits && !READ_ONCE(hog->holds))
		usleep_range(50, 100);
}

/*
 * Packets of a half are in the queue of a CPU that comes to nothing any more: what
 * the half sends from another one would overtake them
 */
static void hog_keeps(struct kunit *test, struct hog *hog, unsigned int cpu,
		      struct sroce_half *half)
{
	sent_before(half, cpu);
	WRITE_ONCE(sroce_stack_passed, never);
	hog_start(test, hog, cpu);
}

static void hog_stop(struct hog *hog)
{
	kthread_stop(hog->task);
	migrate_enable();
}

static void post_add(struct side *a, u64 id)
{
	struct work w;

	work_init(&w, SROCE_WR_FETCH_ADD, id);
	work_local(a, &w, 0, 8);
	work_atomic(a, &w, 64, 5, 0);
	side_post(a, &w);
}

/*
 * The second side has taken a SEND, and its ACK waits for a CPU that does not come to
 * it. Then @end happens to its QP, which sends the ACK first.
 */
static void ack_is_settled(struct kunit *test, void (*end)(struct side *s))
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0], *b = pair_peer(a);
	unsigned int cpu = other_cpu(test);
	struct hog hog = {};
	struct work w;

	side_recv(b, 1, 0, 64);
	side_post(a, work_send(a, &w, 1, 0, 64));
	hog_keeps(test, &hog, cpu, &b->qp->resp.half);
	fake_net_deliver(&p->net);
	KUNIT_EXPECT_TRUE(test, test_bit(0, &b->qp->resp.half.queued));
	end(b);
	KUNIT_EXPECT_TRUE(test, carried(p));
	/* Not when the CPU comes to it at last */
	KUNIT_EXPECT_TRUE(test, READ_ONCE(hog.holds));
	hog_stop(&hog);
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

static void side_destroy_now(struct side *s)
{
	struct sroce_qp *qp = s->qp;

	s->qp = NULL;
	sroce_qp_destroy(qp);
}

static void destroy_settles(struct kunit *test)
{
	ack_is_settled(test, side_destroy_now);
}

static void reset_settles(struct kunit *test)
{
	ack_is_settled(test, side_to_reset);
}

static void error_settles(struct kunit *test)
{
	ack_is_settled(test, side_to_error);
}

/* What a half has sent last is not out of the host yet */
static void error_waits_for(struct kunit *test, struct side *b, struct sroce_half *half)
{
	sent_before(half, other_cpu(test));
	WRITE_ONCE(order_passes_at, ktime_get_ns() + 2 * NSEC_PER_MSEC);
	WRITE_ONCE(sroce_stack_passed, later);
	side_to_error(b);
	KUNIT_EXPECT_GE(test, ktime_get_ns(), order_passes_at);
	migrate_enable();
}

/* The ACK has left */
static void error_waits(struct kunit *test)
{
	struct side *b = &order_pair(test)->side[1];

	error_waits_for(test, b, &b->qp->resp.half);
}

/* ... with a request */
static void error_waits_for_ride(struct kunit *test)
{
	struct side *b = &order_pair(test)->side[1];

	error_waits_for(test, b, &b->qp->req.half);
}

/* The peer is told why its request has ended the connection, however soon the QP is in ERR */
static void refusal_settles(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0], *b = pair_peer(a);
	unsigned int cpu = other_cpu(test);
	struct hog hog = {};
	struct work w;

	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, 0, 0, 64);
	w.wqe.rdma.rkey ^= 1;
	side_post(a, &w);
	hog_keeps(test, &hog, cpu, &b->qp->resp.half);
	fake_net_deliver(&p->net);
	side_to_error(b);
	KUNIT_EXPECT_TRUE(test, carried(p));
	KUNIT_EXPECT_TRUE(test, READ_ONCE(hog.holds));
	hog_stop(&hog);
	side_expect_send(a, 1, IB_WC_REM_ACCESS_ERR);
}

/*
 * The answer to an atomic waits for packets that went before it from another CPU: destroy
 * does not go before these have been passed on
 */
static void destroy_keeps_order(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0], *b = pair_peer(a);
	unsigned int cpu = other_cpu(test);
	struct hog hog = {};

	post_add(a, 1);
	hog_keeps(test, &hog, cpu, &b->qp->resp.half);
	fake_net_deliver(&p->net);
	KUNIT_EXPECT_TRUE(test, test_bit(0, &b->qp->resp.half.queued));
	WRITE_ONCE(order_passes_at, ktime_get_ns() + 2 * NSEC_PER_MSEC);
	WRITE_ONCE(sroce_stack_passed, later);
	side_destroy_now(b);
	KUNIT_EXPECT_GE(test, ktime_get_ns(), order_passes_at);
	KUNIT_EXPECT_TRUE(test, carried(p));
	hog_stop(&hog);
	side_expect_send(a, 1, IB_WC_SUCCESS);
}

/* More answers wait than the responder sends in one run: destroy sends all of them */
static void destroy_answers_all(struct kunit *test)
{
	struct pair_config c = { .rd_atomic = ATOMICS, .depth = ATOMICS };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = pair_peer(a);
	unsigned int cpu = other_cpu(test);
	struct hog hog = {};
	u32 i;

	for (i = 0; i < ATOMICS; i++)
		post_add(a, i);
	hog_keeps(test, &hog, cpu, &b->qp->resp.half);
	pair_deliver(p);
	WRITE_ONCE(sroce_stack_passed, always);
	side_destroy_now(b);
	hog_stop(&hog);
	pair_deliver(p);
	for (i = 0; i < ATOMICS; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
}

static void side_flush(struct side *s)
{
	sroce_qp_flush(s->qp);
}

static void flush_settles(struct kunit *test)
{
	ack_is_settled(test, side_flush);
}

/* All that is posted has been flushed when that returns, wherever the half has sent */
static void flush_is_complete(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0];
	unsigned int cpu = other_cpu(test);
	struct hog hog = {};

	write_all(a);
	hog_keeps(test, &hog, cpu, &a->qp->req.half);
	sroce_qp_flush(a->qp);
	KUNIT_EXPECT_EQ(test, 1, a->scq.ring.index - a->scq.cons);
	hog_stop(&hog);
	side_expect_send(a, 1, IB_WC_WR_FLUSH_ERR);
}

/* --- a CPU that is held keeps nobody from going on ----------------------------------- */

/* What is under way is done while @hog still holds its CPU, not all of it by then */
static void expect_others_go_on(struct pair *p, struct hog *hog)
{
	KUNIT_EXPECT_TRUE(p->test, carried(p));
	KUNIT_EXPECT_TRUE(p->test, READ_ONCE(hog->holds));
	KUNIT_EXPECT_LT(p->test, hog->sent, p->net.sent);
	kthread_stop(hog->task);
	migrate_enable();
	pair_deliver(p);
	expect_written(&p->side[0]);
}

/* It is handed over to a CPU that does not come to it */
static void held_when_handed_over(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0];
	unsigned int cpu = other_cpu(test);
	struct hog hog = { .side = a };

	WRITE_ONCE(sroce_send_patience, HZ / 20);
	hog_start(test, &hog, cpu);
	sent_before(&a->qp->req.half, cpu);
	WRITE_ONCE(sroce_stack_passed, never);
	write_all(a);
	expect_others_go_on(p, &hog);
}

/* A turn has left something on the list of its CPU, which comes to nothing more */
static void held_after_turn(struct kunit *test)
{
	struct pair *p = order_pair(test);
	struct side *a = &p->side[0];
	unsigned int cpu = other_cpu(test);
	struct hog hog = { .side = a, .first = write_all };

	WRITE_ONCE(sroce_send_patience, HZ / 20);
	WRITE_ONCE(sroce_stack_passed, never);
	sroce_turn_limits.bytes = SZ_64K;
	hog_start(test, &hog, cpu);
	expect_others_go_on(p, &hog);
}

struct ringer {
	struct hog *hog;
	struct sroce_half *half;
	struct completion done;
};

static int ringer_run(void *arg)
{
	struct ringer *r = arg;

	WRITE_ONCE(r->hog->waits, false);
	sroce_half_run_doorbell(r->half);
	complete(&r->done);
	return 0;
}

/* A process that goes on with what its doorbell has begun is kept from that */
static void held_between_turns(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UC, .mtu = IB_MTU_4096 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	unsigned int cpu = other_cpu(test);
	struct hog hog = { .side = a, .waits = true };
	struct ringer r = { .hog = &hog, .half = &a->qp->req.half };
	u32 bytes = fake_txq_fill(a->qp->txq);

	side_fill(a, 0, LEN, 5);
	init_completion(&r.done);
	hog_start(test, &hog, cpu);
	/* There is no room for it until the doorbell */
	a->qp->req.half.starved = true;
	write_all(a);
	KUNIT_EXPECT_EQ(test, 0, p->net.sent);
	fake_txq_give(a->qp->txq, bytes);
	sroce_turn_limits.bytes = SZ_8K;
	kthread_run_on_cpu(ringer_run, &r, cpu, "sroce_ringer");
	expect_others_go_on(p, &hog);
	wait_for_completion(&r.done);
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE(requester_goes_back),
	KUNIT_CASE(requester_moves),
	KUNIT_CASE(requester_loses_patience),
	KUNIT_CASE(responder_goes_back),
	KUNIT_CASE(left_stays),
	KUNIT_CASE(both_at_once),
	KUNIT_CASE(destroy_settles),
	KUNIT_CASE(destroy_keeps_order),
	KUNIT_CASE(destroy_answers_all),
	KUNIT_CASE(reset_settles),
	KUNIT_CASE(error_settles),
	KUNIT_CASE(error_waits),
	KUNIT_CASE(error_waits_for_ride),
	KUNIT_CASE(refusal_settles),
	KUNIT_CASE(flush_settles),
	KUNIT_CASE(flush_is_complete),
	KUNIT_CASE(held_when_handed_over),
	KUNIT_CASE(held_after_turn),
	KUNIT_CASE(held_between_turns),
	{}
};

static struct kunit_suite order_suite = {
	.name = "sroce_transport_order",
	.init = order_init,
	.exit = order_exit,
	.test_cases = order_cases,
};

kunit_test_suite(order_suite);
