// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Datagrams: what becomes of them when the port or the queues below change while they
 * are sent, or pages of the receiver's memory are missing; and what a number finds.
 */
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "tests/side_demand.h"
#include "tests/transport_pair.h"
#include "transport/ah.h"

#define SRC 0x1003
#define DST 0x80005
#define GRH 40

static struct pair *ud_pair(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UD };
	struct pair *p = pair_create(test, &c);

	p->net.batch = 1;
	return p;
}

static void post_datagram(struct side *from, u64 wr_id, u32 len)
{
	struct work w;

	side_fill(from, SRC, len, wr_id);
	work_send(from, &w, wr_id, SRC, len);
	w.wqe.ud.ahn = PAIR_AHN;
	w.wqe.ud.remote_qpn = pair_peer(from)->qp->qpn;
	side_post(from, &w);
}

static void expect_datagram(struct side *to, u64 wr_id, u32 len, u32 seed)
{
	struct kunit *test = to->pair->test;
	struct ib_wc wc;

	side_expect(to, &to->rcq, wr_id, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, GRH + len, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, side_filled(to, DST + GRH, len, seed));
}

static void sent_and_received(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	for (i = 0; i < 3; i++) {
		side_recv(b, i, DST, GRH + 4096);
		post_datagram(a, i, i * 2048);
		side_expect_send(a, i, IB_WC_SUCCESS);
		expect_datagram(b, i, i * 2048, i);
	}
	post_datagram(a, 3, 4097);
	side_expect_send(a, 3, IB_WC_LOC_LEN_ERR);
}

/* The MTU shrinks while a datagram waits: it leaves as it was posted, or not at all */
static void mtu_shrinks(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_recv(b, 1, DST, GRH + 4096);
	side_to_sqd(a, false);
	post_datagram(a, 1, 4000);
	a->port.mtu = 1024;
	KUNIT_EXPECT_EQ(test, 0, p->net.sent);
	side_to_rts(a);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	expect_datagram(b, 1, 4000, 1);
	/* The next one meets the new MTU */
	post_datagram(a, 2, 1025);
	side_expect_send(a, 2, IB_WC_LOC_LEN_ERR);
}

static void hold_all(struct pair *p, struct rule *rules)
{
	rules[0] = (struct rule){
		.from = &p->side[0],
		.op = SROCE_OP_SEND,
		.verdict = FAKE_HOLD,
	};
	pair_rules(p, rules);
}

/*
 * A queue below takes more than it sends, and then nothing any more: the QP waits for
 * it, but not for ever. What it cannot take is lost, until there is room again.
 */
static void stuck_below(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_half *half = &a->qp->req.half;
	struct rule rules[2] = {};
	u64 lost;
	u32 i, sent;

	hold_all(p, rules);
	sroce_txq_set_limit(a->qp->txq, 10000);
	for (i = 0; i < 20; i++)
		post_datagram(a, i, 1000);
	pair_deliver(p);
	sent = p->net.sent;
	KUNIT_EXPECT_TRUE(test, half->starved);
	KUNIT_EXPECT_LT(test, sent, 20);
	for (i = 0; i < 20; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, p->expired);
	KUNIT_EXPECT_EQ(test, sent, p->net.sent);
	lost = side_count(a, SROCE_CNT_TX_DROPS);
	KUNIT_EXPECT_EQ(test, 20 - sent, lost);

	pair_rules(p, NULL);
	fake_net_release(&p->net);
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, half->starved);
	side_recv(b, 50, DST, GRH + 4096);
	post_datagram(a, 30, 1000);
	side_expect_send(a, 30, IB_WC_SUCCESS);
	expect_datagram(b, 50, 1000, 30);
	KUNIT_EXPECT_EQ(test, lost, side_count(a, SROCE_CNT_TX_DROPS));
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.deadline);
}

/* One wait that was long is none of the next one's business */
static void each_wait_by_itself(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0];
	struct sroce_half *half = &a->qp->req.half;
	struct rule rules[2] = {};
	u32 i;

	sroce_txq_set_limit(a->qp->txq, 2000);
	for (i = 0; i < 3; i++) {
		hold_all(p, rules);
		post_datagram(a, 2 * i, 3000);
		post_datagram(a, 2 * i + 1, 3000);
		KUNIT_EXPECT_TRUE(test, half->starved);
		KUNIT_EXPECT_NE(test, 0, a->qp->req.deadline);
		pair_deliver(p);
		pair_rules(p, NULL);
		fake_net_release(&p->net);
		pair_deliver(p);
		side_expect_send(a, 2 * i, IB_WC_SUCCESS);
		side_expect_send(a, 2 * i + 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, 0, a->qp->req.deadline);
	}
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_TX_DROPS));
}

/* --- shared receive queues --------------------------------------------------------- */

#define DEMAND_BYTES (4 * PAGE_SIZE)

/* Nothing takes so long, on a machine that may be slow */
#define SOON (20 * HZ)

static void demand_recv(struct side *s, u64 wr_id, const struct sroce_mr *mr)
{
	struct ib_sge sge = {
		.addr = mr->iova,
		.length = mr->length,
		.lkey = mr->key,
	};
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	KUNIT_ASSERT_EQ(s->pair->test, 0, side_try_recv(s, &wr));
}

/* Another QP that receives from the same queue */
static struct sroce_qp *sibling_create(struct side *s, struct ib_qp *ibqp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_UD,
		.srq = &s->srq.ibsrq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct sroce_qp *qp = side_another_qp(s, ibqp, &init);

	sroce_qp_modify(qp, &attr, IB_QP_STATE, NULL);
	return qp;
}

static void datagram_to(struct side *from, u32 qpn)
{
	struct work w;

	side_fill(from, SRC, 100, 5);
	work_send(from, &w, 1, SRC, 100);
	w.wqe.ud.ahn = PAIR_AHN;
	w.wqe.ud.remote_qpn = qpn;
	side_post(from, &w);
	side_expect_send(from, 1, IB_WC_SUCCESS);
	pair_deliver(from->pair);
}

/* Send until pages are there; false when that is never */
static bool datagram_received(struct side *from, u32 qpn, struct ib_wc *wc)
{
	unsigned long end = jiffies + SOON;

	do {
		datagram_to(from, qpn);
		if (side_poll(&pair_peer(from)->rcq, wc))
			return true;
	} while (time_before(jiffies, end));
	return false;
}

/*
 * The only receive is for memory whose pages are missing when the first QP gets a
 * datagram, which is lost. The receive is there for the second one.
 */
static void receive_stays_shared(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UD, .srq = true };
	struct ib_qp ibqp = {};
	struct sroce_qp *sibling;
	struct sroce_mr *mr;
	struct ib_wc wc = {};
	struct side *a, *b;
	struct pair *p;
	u8 got[100];

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	p = pair_create(test, &c);
	a = &p->side[0];
	b = &p->side[1];
	mr = side_demand_create(b, DEMAND_BYTES, 0);
	sibling = sibling_create(b, &ibqp);
	demand_recv(b, 77, mr);
	b->srq.limit = 1;
	datagram_to(a, b->qp->qpn);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_PAGE_FAULTS));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	KUNIT_EXPECT_EQ(test, 1, sroce_ring_pending(&b->srq.ring));
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_SRQ_LIMIT_REACHED));
	KUNIT_EXPECT_TRUE(test, datagram_received(a, sibling->qpn, &wc));
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_SRQ_LIMIT_REACHED));
	KUNIT_EXPECT_EQ(test, 77, wc.wr_id);
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_PTR_EQ(test, &ibqp, wc.qp);
	KUNIT_EXPECT_EQ(test, 0, copy_from_user(got, u64_to_user_ptr(mr->iova + GRH),
						sizeof(got)));
	KUNIT_EXPECT_EQ(test, 0, memcmp(got, a->mem + SRC, sizeof(got)));
	KUNIT_EXPECT_EQ(test, 0, sroce_ring_pending(&b->srq.ring));
	sroce_qp_destroy(sibling);
	sroce_qp_destroy(b->qp);
	b->qp = NULL;
	side_demand_free(mr);
}

/* Two have looked at the same receive: it is for one of them */
static void claimed_once(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UD, .srq = true };
	struct pair *p = pair_create(test, &c);
	struct side *b = &p->side[1];
	struct sroce_srq *srq = &b->srq;
	struct sroce_recv_wqe *wqe = kunit_kzalloc(test, srq->ring.stride,
						   GFP_KERNEL);
	bool limit = false;
	u32 first, second;

	KUNIT_ASSERT_NOT_NULL(test, wqe);
	srq->limit = 1;
	side_recv(b, 8, DST, 1000);
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, -EMSGSIZE, sroce_srq_look(srq, wqe, 1001, &first));
	KUNIT_EXPECT_EQ(test, 0, sroce_srq_look(srq, wqe, 1000, &first));
	KUNIT_EXPECT_EQ(test, 0, sroce_srq_look(srq, wqe, 0, &second));
	KUNIT_EXPECT_EQ(test, 8, wqe->wr_id);
	KUNIT_EXPECT_EQ(test, 1, sroce_ring_pending(&srq->ring));
	KUNIT_EXPECT_TRUE(test, sroce_srq_claim(srq, first, &limit));
	KUNIT_EXPECT_TRUE(test, limit);
	limit = false;
	KUNIT_EXPECT_FALSE(test, sroce_srq_claim(srq, second, &limit));
	KUNIT_EXPECT_EQ(test, -ENOENT, sroce_srq_look(srq, wqe, 0, &first));
	KUNIT_EXPECT_FALSE(test, sroce_srq_claim(srq, first, &limit));
	KUNIT_EXPECT_FALSE(test, limit);
	local_bh_enable();
}

/* Is that where a side's address handle leads, for whoever has this domain? */
static void expect_path(struct side *s, u32 ahn, const struct ib_pd *pd,
			struct sroce_path *expected)
{
	struct sroce_path *path;

	local_bh_disable();
	path = sroce_ah_path(&s->port, ahn, pd);
	local_bh_enable();
	KUNIT_EXPECT_PTR_EQ(s->pair->test, expected, path);
}

static void replace_path(struct side *s, struct sroce_path *path)
{
	struct sroce_ah_entry *e = sroce_ah_replace(&s->port, s->ah,
						    sroce_path_get(path));

	KUNIT_ASSERT_FALSE(s->pair->test, IS_ERR(e));
	s->ah = e;
}

/* Of others, and of none, nothing is found; a new path takes the number */
static void handles_by_number(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	expect_path(a, PAIR_AHN, &a->pd, &a->path.path);
	expect_path(a, PAIR_AHN, &a->other_pd, NULL);
	expect_path(a, PAIR_AHN + 1, &a->pd, NULL);
	replace_path(a, &b->path.path);
	expect_path(a, PAIR_AHN, &a->pd, &b->path.path);
	replace_path(a, &a->path.path);
	sroce_ah_remove(&a->port, a->ah);
	a->ah = NULL;
	expect_path(a, PAIR_AHN, &a->pd, NULL);
}

/*
 * A work request may wait longer than its address handle is there. The next one takes the
 * place in the table, but must not be found by the number of one that is gone
 */
static void numbers_of_old_handles(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	for (i = 0; i < 2047; i++) {
		sroce_ah_remove(&a->port, a->ah);
		a->ah = sroce_ah_add(&a->port, &a->pd, sroce_path_get(&b->path.path),
				     GFP_KERNEL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(a->ah));
		KUNIT_ASSERT_NE(test, PAIR_AHN, a->ah->ahn);
		expect_path(a, PAIR_AHN, &a->pd, NULL);
		expect_path(a, a->ah->ahn, &a->pd, &b->path.path);
	}
	replace_path(a, &a->path.path);
	expect_path(a, a->ah->ahn, &a->pd, &a->path.path);
	rcu_barrier();
}

/* Somebody on another processor who has found where an address handle leads */
struct finder {
	struct side *s;
	struct sroce_path *path;
	struct completion begun;
	bool stop;
	struct completion ended;
};

static int finder_thread(void *arg)
{
	struct finder *f = arg;

	local_bh_disable();
	f->path = sroce_ah_path(&f->s->port, PAIR_AHN, &f->s->pd);
	complete(&f->begun);
	while (!READ_ONCE(f->stop))
		cpu_relax();
	local_bh_enable();
	complete(&f->ended);
	return 0;
}

/* A sender needs no reference: that of an address handle lasts until he has done */
static void handle_goes_while_found(struct kunit *test)
{
	struct pair *p = ud_pair(test);
	struct side *a = &p->side[0];
	const unsigned int before = refcount_read(&a->path.path.refs);
	struct finder f = { .s = a };
	struct task_struct *task;
	unsigned int other;

	init_completion(&f.begun);
	init_completion(&f.ended);
	migrate_disable();
	other = cpumask_any_but(cpu_online_mask, smp_processor_id());
	migrate_enable();
	if (other >= nr_cpu_ids)
		kunit_skip(test, "one processor");
	task = kthread_create(finder_thread, &f, "sroce_finder");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, other);
	wake_up_process(task);
	wait_for_completion(&f.begun);
	KUNIT_EXPECT_PTR_EQ(test, &a->path.path, f.path);
	KUNIT_EXPECT_EQ(test, before, refcount_read(&a->path.path.refs));
	sroce_ah_remove(&a->port, a->ah);
	a->ah = NULL;
	msleep(100);
	KUNIT_EXPECT_EQ(test, before, refcount_read(&a->path.path.refs));
	WRITE_ONCE(f.stop, true);
	wait_for_completion(&f.ended);
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, before - 1, refcount_read(&a->path.path.refs));
}

static struct kunit_case ud_cases[] = {
	KUNIT_CASE(receive_stays_shared),
	KUNIT_CASE(claimed_once),
	KUNIT_CASE(sent_and_received),
	KUNIT_CASE(mtu_shrinks),
	KUNIT_CASE(stuck_below),
	KUNIT_CASE(each_wait_by_itself),
	KUNIT_CASE(handles_by_number),
	KUNIT_CASE(numbers_of_old_handles),
	KUNIT_CASE(handle_goes_while_found),
	{}
};

static struct kunit_suite ud_suite = {
	.name = "sroce_transport_ud",
	.exit = pair_exit,
	.test_cases = ud_cases,
};

kunit_test_suite(ud_suite);
