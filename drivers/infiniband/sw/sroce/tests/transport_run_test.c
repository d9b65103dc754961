// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where work runs, and for how long: doorbells of processes, turns that end, what is
 * left of a QP for who still holds it, and queues that are resized.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ktime.h>
#include <linux/skbuff.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "lock.h"
#include "sending.h"
#include "tests/transport_pair.h"
#include "transport/internal.h"
#include "transport/run.h"
#include "turn.h"

/* --- doorbells ----------------------------------------------------------- */

/* As a process posts: RDMA WRITEs of nothing, without a doorbell */
static void post_quietly(struct side *s, u32 n)
{
	struct sroce_ring *r = &s->qp->req.ring;
	u32 prod = r->hdr->prod;
	struct sroce_send_wqe *wqe;
	u32 i;

	for (i = 0; i < n; i++) {
		wqe = sroce_ring_entry(r, prod + i);
		*wqe = (struct sroce_send_wqe){
			.opcode = SROCE_WR_RDMA_WRITE,
			.flags = SROCE_SEND_SIGNALED,
		};
	}
	/* Pairs with sroce_ring_pending() */
	smp_store_release(&r->hdr->prod, prod + n);
}

/*
 * A pair whose first side is a process that begins a batch, which only it ends. The
 * rings of its completion queues could be gone any moment (a resize): the doorbell
 * must not look there.
 */
static struct pair *batching(struct kunit *test)
{
	struct pair_config c = { .depth = 64 };
	struct pair *p = pair_create(test, &c);
	struct side *s = &p->side[0];
	struct sroce_ring_hdr *scq = s->scq.ring.hdr;
	struct sroce_ring_hdr *rcq = s->rcq.ring.hdr;

	s->qp->user = true;
	post_quietly(s, 32);
	s->scq.ring.hdr = NULL;
	s->rcq.ring.hdr = NULL;
	/* The timer would fire on this CPU */
	local_bh_disable();
	sroce_qp_doorbell(s->qp);
	sroce_timer_delete(&s->qp->req.batch.timer);
	local_bh_enable();
	s->scq.ring.hdr = scq;
	s->rcq.ring.hdr = rcq;
	KUNIT_ASSERT_TRUE(test, s->qp->req.batch.waiting);
	return p;
}

/* Who rings may have found the QP just before it is destroyed */
static void doorbell_of_dead(struct kunit *test)
{
	struct pair *p = batching(test);
	struct side *a = &p->side[0];
	struct sroce_qp *qp = a->qp;

	sroce_qp_get(qp);
	a->qp = NULL;
	sroce_qp_destroy(qp);
	KUNIT_EXPECT_TRUE(test, qp->dead);
	sroce_qp_doorbell(qp);
	sroce_qp_doorbell(qp);
	sroce_qp_put(qp);
}

/* A doorbell ends the wait for more, and the work is done then */
static void doorbell_ends_batch(struct kunit *test)
{
	struct pair *p = batching(test);
	struct side *a = &p->side[0];
	struct ib_wc wc;
	int n;

	sroce_qp_doorbell(a->qp);
	KUNIT_EXPECT_TRUE(test, pair_wait(p, &a->scq, 32));
	for (n = 0; side_poll(&a->scq, &wc); n++)
		KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, 32, n);
	a->qp->user = false;
}

/* As many as begin a batch, and its end; and that of one that may have begun behind it */
static void expect_stream(struct side *s)
{
	int patience = 1000;
	int i;

	sroce_qp_doorbell(s->qp);
	for (i = 0; i < 32; i++)
		side_expect_send(s, 0, IB_WC_SUCCESS);
	while (READ_ONCE(s->qp->req.batch.waiting) && --patience)
		usleep_range(1000, 1500);
	KUNIT_ASSERT_GT(s->pair->test, patience, 0);
}

/* What a process has posted before RESET does not keep the first request after it waiting */
static void no_stream_after_reset(struct kunit *test)
{
	struct pair *p = batching(test);
	struct side *a = &p->side[0];
	int i;

	expect_stream(a);
	/* That it has looked at its completions is learned with the next ones */
	for (i = 0; i < 3; i++) {
		post_quietly(a, 32);
		sroce_qp_doorbell(a->qp);
		expect_stream(a);
	}
	KUNIT_ASSERT_GE(test, a->qp->req.batch.mark, 32);
	pair_reconnect(p);
	post_quietly(a, 1);
	local_bh_disable();
	sroce_qp_doorbell(a->qp);
	KUNIT_EXPECT_FALSE(test, a->qp->req.batch.waiting);
	KUNIT_EXPECT_EQ(test, 1, a->qp->req.fetched);
	local_bh_enable();
	side_expect_send(a, 0, IB_WC_SUCCESS);
	a->qp->user = false;
}

/**
 * struct witness - what a timer finds that expires behind that of a batch
 * @timer: it
 * @qp: whose batch it is
 * @waiting: the batch had not ended
 * @fetched: so far the requester was
 * @called: the timer was
 */
struct witness {
	struct sroce_timer timer;
	struct sroce_qp *qp;
	bool waiting;
	u32 fetched;
	bool called;
};

static void witness(struct sroce_timer *t)
{
	struct witness *w = container_of(t, struct witness, timer);

	w->waiting = w->qp->req.batch.waiting;
	w->fetched = w->qp->req.fetched;
	/* Pairs with timers_come_first() */
	smp_store_release(&w->called, true);
}

/* What a timer has to be sent waits until those of others were called */
static void timers_come_first(struct kunit *test)
{
	struct pair *p = batching(test);
	struct side *a = &p->side[0];
	struct witness w = { .qp = a->qp };
	u32 fetched = a->qp->req.fetched;
	int patience = 20000;
	u64 now;

	sroce_timer_init(&w.timer, witness);
	local_bh_disable();
	now = ktime_get_ns();
	sroce_timer_start(&a->qp->req.batch.timer, now);
	sroce_timer_start(&w.timer, now + 1);
	udelay(5);
	local_bh_enable();
	/* Pairs with witness() */
	while (!smp_load_acquire(&w.called) && --patience)
		usleep_range(1000, 1500);
	sroce_timer_delete_sync(&w.timer);
	KUNIT_EXPECT_TRUE(test, w.called);
	KUNIT_EXPECT_FALSE(test, w.waiting);
	KUNIT_EXPECT_EQ(test, fetched, w.fetched);
	KUNIT_EXPECT_TRUE(test, pair_wait(p, &a->scq, 32));
	a->qp->user = false;
}

/* --- turns --------------------------------------------------------------- */

#define BULK 8
#define BULK_LEN SZ_1M

static struct pair *bulk_pair(struct kunit *test, bool direct)
{
	struct pair_config c = { .direct = direct, .mtu = IB_MTU_4096, .window = 256 };

	return pair_create(test, &c);
}

/* Large RDMA WRITEs or READs, without a doorbell */
static void post_bulk(struct side *s, u8 opcode)
{
	struct sroce_ring *r = &s->qp->req.ring;
	u32 prod = r->hdr->prod;
	struct sroce_send_wqe *wqe;
	struct work w;
	u32 i;

	for (i = 0; i < BULK; i++) {
		work_rdma(s, &w, opcode, i, 0, 0, BULK_LEN);
		wqe = sroce_ring_entry(r, prod + i);
		*wqe = w.wqe;
		memcpy(wqe + 1, w.sge, sizeof(w.sge[0]));
	}
	/* Pairs with sroce_ring_pending() */
	smp_store_release(&r->hdr->prod, prod + BULK);
}

static u32 completions(const struct sroce_cq *cq)
{
	return READ_ONCE(cq->ring.index) - READ_ONCE(cq->cons);
}

/* Somebody goes on with it, whom nobody calls */
static bool done_by_itself(const struct sroce_cq *cq, u32 n)
{
	int patience = 600000;

	while (completions(cq) < n && --patience)
		usleep_range(50, 100);
	return patience;
}

/* What one turn does, as a process begins it: bytes, and completions of the side */
static u32 one_turn(struct side *s, unsigned long *spent)
{
	u32 n;

	local_bh_disable();
	sroce_turn_begin(true);
	sroce_half_run(&s->qp->req.half);
	*spent = sroce_turn_spent();
	n = completions(&s->scq);
	sroce_turn_end();
	local_bh_enable();
	return n;
}

static void expect_done(struct side *s)
{
	struct kunit *test = s->pair->test;
	struct ib_wc wc;
	u32 i;

	KUNIT_ASSERT_TRUE(test, done_by_itself(&s->scq, BULK));
	for (i = 0; i < BULK; i++) {
		KUNIT_ASSERT_TRUE(test, side_poll(&s->scq, &wc));
		KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
		KUNIT_EXPECT_EQ(test, i, wc.wr_id);
	}
}

/* Without limits all of it is one turn: so nothing but they end it */
static void turn_without_end(struct kunit *test)
{
	struct side *a = &bulk_pair(test, true)->side[0];
	unsigned long spent;

	post_bulk(a, SROCE_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, BULK, one_turn(a, &spent));
	KUNIT_EXPECT_GE(test, spent, BULK * BULK_LEN);
	expect_done(a);
}

static void turn_ends(struct kunit *test, u8 opcode)
{
	struct side *a = &bulk_pair(test, true)->side[0];
	unsigned long spent;

	side_fill(pair_peer(a), 0, BULK_LEN, 3);
	side_fill(a, 0, BULK_LEN, 3);
	sroce_turn_limits.bytes = SZ_2M;
	post_bulk(a, opcode);
	/* How many are done says nothing: another processor goes on with them at once */
	one_turn(a, &spent);
	/* The last half may have begun just before the end */
	KUNIT_EXPECT_LE(test, spent, SZ_1M + 3 * SROCE_HALF_BYTES);
	expect_done(a);
	KUNIT_EXPECT_TRUE(test, side_filled(pair_peer(a), 0, BULK_LEN, 3));
	KUNIT_EXPECT_TRUE(test, side_filled(a, 0, BULK_LEN, 3));
}

/* Many trains to a QP of this host */
static void turn_ends_writing(struct kunit *test)
{
	turn_ends(test, SROCE_WR_RDMA_WRITE);
}

/* Large READs from one */
static void turn_ends_reading(struct kunit *test)
{
	turn_ends(test, SROCE_WR_RDMA_READ);
}

/* Time is over at the first look at the clock */
static void turn_ends_in_time(struct kunit *test)
{
	struct side *a = &bulk_pair(test, true)->side[0];
	unsigned long spent;

	sroce_turn_limits.ns = 0;
	post_bulk(a, SROCE_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, 0, one_turn(a, &spent));
	expect_done(a);
}

/* Nothing is done in a turn that is over but what cannot wait; and then it is */
static void turn_was_over(struct kunit *test)
{
	struct side *a = &bulk_pair(test, true)->side[0];
	unsigned long spent;

	post_bulk(a, SROCE_WR_RDMA_WRITE);
	local_bh_disable();
	sroce_turn_begin(true);
	sroce_turn_spend(SZ_256M);
	sroce_half_run(&a->qp->req.half);
	spent = sroce_turn_spent();
	sroce_turn_end();
	local_bh_enable();
	KUNIT_EXPECT_LT(test, spent, SZ_256M + SROCE_TURN_RUN);
	expect_done(a);
}

/* What is done now and then is no long turn, however long that goes on */
static void turn_was_left(struct kunit *test)
{
	bool over;

	sroce_turn_limits.ns = 100 * NSEC_PER_USEC;
	migrate_disable();
	local_bh_disable();
	sroce_turn_begin(true);
	sroce_turn_spend(SZ_128K);
	over = sroce_turn_over();
	sroce_turn_end();
	local_bh_enable();
	usleep_range(300, 600);
	local_bh_disable();
	sroce_turn_begin(false);
	sroce_turn_spend(SZ_64K);
	over |= sroce_turn_over();
	sroce_turn_end();
	local_bh_enable();
	migrate_enable();
	KUNIT_EXPECT_FALSE(test, over);
}

/* By the clock that a turn has; what udelay() takes for so long may be less */
static void spin(u32 us)
{
	u64 end = ktime_get_mono_fast_ns() + us * NSEC_PER_USEC;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

/* A turn begins when it begins, and not when somebody looks at the clock for the first time */
static void turn_has_begun(struct kunit *test)
{
	bool early, late;

	pair_create(test, &(struct pair_config){});
	sroce_turn_limits.ns = 200 * NSEC_PER_USEC;
	local_bh_disable();
	sroce_turn_begin(true);
	early = sroce_turn_over();
	spin(250);
	sroce_turn_spend(SZ_64K);
	late = sroce_turn_over();
	sroce_turn_end();
	local_bh_enable();
	KUNIT_EXPECT_FALSE(test, early);
	KUNIT_EXPECT_TRUE(test, late);
}

/* In a softirq, which looks at the clock when it begins, and must not take work for a pause */
static void turn_of_slow_steps(struct kunit *test)
{
	bool over = false;
	int i;

	pair_create(test, &(struct pair_config){});
	sroce_turn_limits.ns = 200 * NSEC_PER_USEC;
	sroce_turn_limits.gap = 20 * NSEC_PER_USEC;
	local_bh_disable();
	sroce_turn_begin(true);
	sroce_turn_end();
	for (i = 0; i < 7; i++) {
		sroce_turn_begin(false);
		over = sroce_turn_over();
		spin(50);
		sroce_turn_end();
	}
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, over);
}

/* A half returns by itself before it has done too much: with packets, sending */
static void half_ends(struct kunit *test, u8 opcode, struct sroce_half *half,
		      struct pair *p)
{
	struct side *a = &p->side[0];
	unsigned long begin, spent;
	bool more;

	post_bulk(a, opcode);
	if (half != &a->qp->req.half) {
		sroce_half_run(&a->qp->req.half);
		fake_net_deliver(&p->net);
	}
	local_bh_disable();
	spin_lock(&half->lock);
	begin = sroce_turn_spent();
	more = half->run(half);
	spent = sroce_turn_spent() - begin;
	spin_unlock(&half->lock);
	sroce_half_queue(half);
	sroce_run_pending();
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, more);
	KUNIT_EXPECT_GE(test, spent, SROCE_HALF_BYTES);
	KUNIT_EXPECT_LE(test, spent, 2 * SROCE_HALF_BYTES + SZ_4K);
	KUNIT_EXPECT_TRUE(test, pair_wait(p, &a->scq, BULK));
	expect_done(a);
}

static void requester_ends(struct kunit *test)
{
	struct pair *p = bulk_pair(test, false);

	half_ends(test, SROCE_WR_RDMA_WRITE, &p->side[0].qp->req.half, p);
}

/* ... and when time is over, after one look at the clock */
static void requester_ends_in_time(struct kunit *test)
{
	struct pair_config c = { .window = 256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct sroce_half *half = &a->qp->req.half;
	u32 first = a->qp->req.next_psn;
	bool more;

	post_bulk(a, SROCE_WR_RDMA_WRITE);
	sroce_turn_limits.ns = 0;
	local_bh_disable();
	sroce_turn_begin(true);
	spin_lock(&half->lock);
	more = half->run(half);
	spin_unlock(&half->lock);
	sroce_turn_end();
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, more);
	KUNIT_EXPECT_GT(test, sroce_psn_diff(a->qp->req.next_psn, first), 0);
	KUNIT_EXPECT_LE(test, sroce_psn_diff(a->qp->req.next_psn, first),
			SZ_128K / 1024);
	sroce_turn_limits.ns = U64_MAX;
	sroce_half_run(half);
	KUNIT_EXPECT_TRUE(test, pair_wait(p, &a->scq, BULK));
	expect_done(a);
}

/* What the stack cuts up costs as much as its packets, and what the netdev does, nothing */
static void stack_cuts(struct kunit *test)
{
	struct net_device *dev = alloc_etherdev(0);
	struct sk_buff *skb = alloc_skb(128, GFP_KERNEL);
	unsigned long begin, whole, cut;

	KUNIT_ASSERT_TRUE(test, dev && skb);
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4 | SKB_GSO_DODGY;
	skb_shinfo(skb)->gso_size = 256;
	local_bh_disable();
	dev->features |= NETIF_F_GSO_UDP_L4;
	begin = sroce_turn_spent();
	sroce_sending_spend(skb, dev, 64);
	whole = sroce_turn_spent() - begin;
	dev->features &= ~NETIF_F_GSO_UDP_L4;
	begin = sroce_turn_spent();
	sroce_sending_spend(skb, dev, 64);
	cut = sroce_turn_spent() - begin;
	local_bh_enable();
	kfree_skb(skb);
	free_netdev(dev);
	KUNIT_EXPECT_EQ(test, SROCE_TURN_TRAIN, whole);
	KUNIT_EXPECT_EQ(test, 64 * SROCE_TURN_TRAIN, cut);
}

/* --- completion handlers ------------------------------------------------- */

#define WATCHED 4

/**
 * struct watch - what handlers have done
 * @me: the test
 * @here: called by it, within its turn
 * @all: called by anybody
 */
struct watch {
	struct task_struct *me;
	atomic_t here;
	atomic_t all;
};

static void watch_handler(struct ib_cq *ibcq, void *context)
{
	struct watch *w = context;

	if (current == w->me)
		atomic_inc(&w->here);
	atomic_inc(&w->all);
}

static void watch_cq(struct watch *w, struct sroce_cq *cq)
{
	cq->ibcq.comp_handler = watch_handler;
	cq->ibcq.cq_context = w;
	sroce_cq_arm(cq, IB_CQ_NEXT_COMP);
}

/* In a turn whose time is up after one of them, as when that wakes thousands of waiters */
static void handlers_end_in_time(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct watch w = { .me = current };
	struct sroce_cq *cqs[WATCHED] = {
		&p->side[0].scq, &p->side[0].rcq,
		&p->side[1].scq, &p->side[1].rcq,
	};
	int patience = 60000;
	int i;

	for (i = 0; i < WATCHED; i++)
		watch_cq(&w, cqs[i]);
	local_bh_disable();
	sroce_turn_begin(true);
	sroce_turn_limits.ns = 0;
	for (i = 0; i < WATCHED; i++) {
		sroce_cq_add(cqs[i], p->side[0].qp->ibqp,
			     &(struct sroce_cqe){}, false);
		sroce_run_pending();
	}
	sroce_turn_end();
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w.here));
	local_bh_enable();
	/* Workers call the others, each of them at least one in a turn of its own */
	while (atomic_read(&w.all) < WATCHED && --patience)
		usleep_range(50, 100);
	KUNIT_EXPECT_EQ(test, WATCHED, atomic_read(&w.all));
	flush_workqueue(sroce_turn_wq);
	for (i = 0; i < WATCHED; i++)
		cqs[i]->ibcq.comp_handler = NULL;
}

/* While there is time it does not matter that the turn's bytes are used up: somebody waits */
static void handlers_after_bytes(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct watch w = { .me = current };
	struct sroce_cq *cqs[] = { &p->side[0].scq, &p->side[0].rcq };
	int i;

	for (i = 0; i < 2; i++)
		watch_cq(&w, cqs[i]);
	local_bh_disable();
	sroce_turn_begin(true);
	sroce_turn_spend(SZ_256M);
	for (i = 0; i < 2; i++)
		sroce_cq_add(cqs[i], p->side[0].qp->ibqp,
			     &(struct sroce_cqe){}, false);
	sroce_run_pending();
	sroce_turn_end();
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w.here));
	local_bh_enable();
	for (i = 0; i < 2; i++)
		cqs[i]->ibcq.comp_handler = NULL;
}

/**
 * struct lone - a handler that arms its queue, and is still there when there is more
 * @work: adds the first completion, on another CPU
 * @side: whose send completion queue it is
 * @inside: handlers that are under way
 * @most: of them at once
 * @calls: that have returned
 * @entered: the first one is under way
 * @added: the second completion is in the queue
 */
struct lone {
	struct work_struct work;
	struct side *side;
	atomic_t inside;
	int most;
	atomic_t calls;
	bool entered;
	bool added;
};

static bool lone_waits_for(const bool *what)
{
	u64 end = ktime_get_mono_fast_ns() + 5 * NSEC_PER_SEC;

	while (!READ_ONCE(*what) && ktime_get_mono_fast_ns() < end)
		cpu_relax();
	return READ_ONCE(*what);
}

static void lone_handler(struct ib_cq *ibcq, void *context)
{
	struct lone *l = context;
	bool first = !READ_ONCE(l->entered);

	l->most = max(l->most, atomic_inc_return(&l->inside));
	if (first) {
		sroce_cq_arm(&l->side->scq, IB_CQ_NEXT_COMP);
		WRITE_ONCE(l->entered, true);
		lone_waits_for(&l->added);
	}
	atomic_dec(&l->inside);
	atomic_inc(&l->calls);
}

static void lone_add(struct lone *l)
{
	local_bh_disable();
	sroce_cq_add(&l->side->scq, l->side->qp->ibqp, &(struct sroce_cqe){}, false);
	sroce_run_pending();
	local_bh_enable();
}

static void lone_work(struct work_struct *work)
{
	lone_add(container_of(work, struct lone, work));
}

/* A handler that arms its queue is not called by a second CPU before it has returned, but after */
static void handler_is_alone(struct kunit *test)
{
	struct lone *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	unsigned int cpu;
	int patience = 1000;

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->side = &pair_create(test, &(struct pair_config){})->side[0];
	l->side->scq.ibcq.cq_context = l;
	l->side->scq.ibcq.comp_handler = lone_handler;
	sroce_cq_arm(&l->side->scq, IB_CQ_NEXT_COMP);
	INIT_WORK(&l->work, lone_work);
	migrate_disable();
	cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
	if (cpu < nr_cpu_ids) {
		schedule_work_on(cpu, &l->work);
		KUNIT_EXPECT_TRUE(test, lone_waits_for(&l->entered));
		lone_add(l);
		WRITE_ONCE(l->added, true);
	}
	migrate_enable();
	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "it takes two CPUs");
	flush_work(&l->work);
	while (atomic_read(&l->calls) < 2 && --patience)
		usleep_range(1000, 1500);
	KUNIT_EXPECT_EQ(test, 1, l->most);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&l->calls));
	l->side->scq.ibcq.comp_handler = NULL;
}

/* --- CPUs that go -------------------------------------------------------- */

static int queue_there(void *half)
{
	local_bh_disable();
	sroce_half_queue(half);
	local_bh_enable();
	return 0;
}

/*
 * What lies on the list of another CPU when that goes is run here, with all that
 * follows from it.
 */
static void list_of_other_cpu(struct kunit *test)
{
	struct side *a = &bulk_pair(test, true)->side[0];
	unsigned int cpu;

	migrate_disable();
	cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
	if (cpu < nr_cpu_ids) {
		post_bulk(a, SROCE_WR_RDMA_WRITE);
		smp_call_on_cpu(cpu, queue_there, &a->qp->req.half, false);
		KUNIT_EXPECT_EQ(test, 0, completions(&a->scq));
		sroce_run_for_cpu(cpu);
	}
	migrate_enable();
	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "it takes two CPUs");
	expect_done(a);
}

/**
 * struct keeper - a CPU that nobody else gets
 * @half: what is on its list
 * @cq: of that
 * @done: others have done it meanwhile
 */
struct keeper {
	struct sroce_half *half;
	struct sroce_cq *cq;
	bool done;
};

/*
 * Leave something on the list of this CPU, as at the end of a turn, and let nobody run here
 * until it was done. Seconds, if it never is.
 */
static int leave_and_keep(void *arg)
{
	u64 end = ktime_get_mono_fast_ns() + 5 * NSEC_PER_SEC;
	struct keeper *k = arg;

	local_bh_disable();
	sroce_turn_begin(true);
	sroce_turn_spend(SZ_256M);
	sroce_half_queue(k->half);
	sroce_run_pending();
	sroce_turn_end();
	do {
		cpu_relax();
		k->done = completions(k->cq) == BULK;
	} while (!k->done && ktime_get_mono_fast_ns() < end);
	local_bh_enable();
	return 0;
}

/*
 * The worker that goes on with the list of a CPU finds it from any other one: when that CPU
 * has gone off-line, or is held, as here, it cannot run there.
 */
static void worker_of_other_cpu(struct kunit *test)
{
	struct side *a = &bulk_pair(test, true)->side[0];
	struct keeper k = { .half = &a->qp->req.half, .cq = &a->scq };
	unsigned int cpu;

	migrate_disable();
	cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
	if (cpu < nr_cpu_ids) {
		post_bulk(a, SROCE_WR_RDMA_WRITE);
		smp_call_on_cpu(cpu, leave_and_keep, &k, false);
		KUNIT_EXPECT_TRUE(test, k.done);
	}
	migrate_enable();
	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "it takes two CPUs");
	expect_done(a);
}

/* --- queues that are resized --------------------------------------------- */

/* What lies in a queue of a process that does not look */
static void fill_cq(struct side *s, u32 first, u32 n)
{
	struct sroce_cq *cq = &s->scq;
	struct sroce_cqe *cqe;
	u32 i;

	cq->ring.index = first + n;
	cq->cons = first;
	for (i = first; i != first + n; i++) {
		cqe = sroce_ring_entry(&cq->ring, i);
		*cqe = (struct sroce_cqe){ .wr_id = i, .qpn = 1 };
	}
}

static int resize(struct side *s, u32 entries)
{
	struct sroce_ring ring = {};
	int err;

	err = sroce_ring_alloc(&ring, entries, s->scq.ring.stride, false);
	if (err)
		return err;
	err = sroce_cq_resize(&s->scq, &ring);
	sroce_ring_free(&ring);
	return err;
}

/* Nothing is lost of what is moved in parts, wherever the indices are */
static void resize_in_parts(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 8192 };
	struct side *s = &pair_create(test, &c)->side[0];
	u32 first = U32_MAX - 3000;
	struct ib_wc wc;
	u32 i;

	fill_cq(s, first, 7000);
	KUNIT_EXPECT_EQ(test, -EINVAL, resize(s, 4096));
	KUNIT_EXPECT_EQ(test, 0, resize(s, 16384));
	KUNIT_EXPECT_EQ(test, 0, resize(s, 8192));
	for (i = 0; i < 7000; i++) {
		KUNIT_ASSERT_TRUE(test, side_poll(&s->scq, &wc));
		KUNIT_ASSERT_EQ(test, first + i, wc.wr_id);
	}
	side_expect_none(s);
}

/* The first doorbell may only begin a batch: with the second all has been sent */
static void post_and_ring(struct side *s, u32 n)
{
	post_quietly(s, n);
	sroce_qp_doorbell(s->qp);
	sroce_qp_doorbell(s->qp);
}

/*
 * A doorbell takes no lock of a completion queue, whose ring may be going away just then.
 * So it looks at neither the old ring nor the new one, whatever a process writes there:
 * what has been consumed it learns with the next completion.
 */
static void doorbell_beside_resize(struct kunit *test)
{
	struct pair_config c = {};
	struct side *s = &pair_create(test, &c)->side[0];
	struct sroce_batch *b = &s->qp->req.batch;
	int i;

	post_and_ring(s, 8);
	KUNIT_EXPECT_EQ(test, 0, b->consumed);
	s->scq.ring.hdr->cons = 1000;
	KUNIT_ASSERT_EQ(test, 0, resize(s, 1024));
	s->scq.ring.hdr->cons = 2000;
	post_and_ring(s, 8);
	KUNIT_EXPECT_EQ(test, 0, b->consumed);
	for (i = 0; i < 16; i++)
		side_expect_send(s, 0, IB_WC_SUCCESS);
	post_and_ring(s, 1);
	side_expect_send(s, 0, IB_WC_SUCCESS);
	sroce_qp_doorbell(s->qp);
	KUNIT_EXPECT_EQ(test, 16, b->consumed);
}

/* A process may say anything about what it has consumed */
static void resize_for_liar(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 8192 };
	struct side *s = &pair_create(test, &c)->side[0];
	struct sroce_cq *cq = &s->scq;

	cq->user = true;
	/* The kind of lock belongs to the kind of queue */
	sroce_lock_init(&cq->lock, true);
	fill_cq(s, 0, 100);
	cq->ring.hdr->cons = 101;
	KUNIT_EXPECT_EQ(test, -EINVAL, resize(s, 16384));
	cq->ring.hdr->cons = 100 - 8193;
	KUNIT_EXPECT_EQ(test, -EINVAL, resize(s, 16384));
	cq->ring.hdr->cons = 100 - 8192;
	KUNIT_EXPECT_EQ(test, 0, resize(s, 16384));
	KUNIT_EXPECT_EQ(test, 100, cq->ring.index);
	KUNIT_EXPECT_EQ(test, 100 - 8192, cq->ring.hdr->cons);
	cq->user = false;
	sroce_lock_init(&cq->lock, false);
	cq->cons = cq->ring.index;
}

static struct kunit_case run_cases[] = {
	KUNIT_CASE(doorbell_of_dead),
	KUNIT_CASE(doorbell_ends_batch),
	KUNIT_CASE(no_stream_after_reset),
	KUNIT_CASE(timers_come_first),
	KUNIT_CASE(turn_without_end),
	KUNIT_CASE(turn_was_left),
	KUNIT_CASE(turn_ends_writing),
	KUNIT_CASE(turn_ends_reading),
	KUNIT_CASE(turn_ends_in_time),
	KUNIT_CASE(turn_was_over),
	KUNIT_CASE(turn_has_begun),
	KUNIT_CASE(turn_of_slow_steps),
	KUNIT_CASE(requester_ends),
	KUNIT_CASE(requester_ends_in_time),
	KUNIT_CASE(stack_cuts),
	KUNIT_CASE(handlers_end_in_time),
	KUNIT_CASE(handlers_after_bytes),
	KUNIT_CASE(handler_is_alone),
	KUNIT_CASE(list_of_other_cpu),
	KUNIT_CASE(worker_of_other_cpu),
	KUNIT_CASE(doorbell_beside_resize),
	KUNIT_CASE(resize_in_parts),
	KUNIT_CASE(resize_for_liar),
	{}
};

static struct kunit_suite run_suite = {
	.name = "sroce_transport_run",
	.exit = pair_exit,
	.test_cases = run_cases,
};

kunit_test_suite(run_suite);
