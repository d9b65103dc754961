// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What completion queues do about events beyond the plain rule, partitions, where a
 * QP counts, and what kernel users alone can post.
 */
#include <linux/delay.h>
#include <linux/percpu.h>

#include "tests/transport_pair.h"
#include "transport/receive.h"
#include "transport/run.h"
#include "verbs/verbs.h"

#define SRC 0
#define DST 65536

/* A completion that comes from nowhere */
static bool add(struct side *s, u64 wr_id, enum ib_wc_status status,
		bool solicited)
{
	struct sroce_cqe cqe = { .wr_id = wr_id, .status = status };
	bool ok;

	local_bh_disable();
	ok = sroce_cq_add(&s->scq, &s->ibqp, &cqe, solicited);
	sroce_run_pending();
	local_bh_enable();
	return ok;
}

static void arm(struct side *s, enum ib_cq_notify_flags flags)
{
	atomic_set(&s->notified, 0);
	sroce_cq_arm(&s->scq, flags);
}

static bool is_notified(struct side *s)
{
	int i;

	for (i = 0; i < 5000; i++) {
		if (atomic_read(&s->notified))
			return true;
		usleep_range(1000, 2000);
	}
	return false;
}

/* --- moderation ----------------------------------------------------------- */

#define MOD_PERIOD U16_MAX

/* Add @n; false when that took so long that the time may be over */
static bool add_quickly(struct side *s, int n)
{
	u64 start = ktime_get_ns();

	while (n--)
		add(s, n, IB_WC_SUCCESS, false);
	return ktime_get_ns() - start < MOD_PERIOD * NSEC_PER_USEC / 2;
}

static void moderated_by_count(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 1024 };
	struct side *s = &pair_create(test, &c)->side[0];

	sroce_cq_moderate(&s->scq, 4, MOD_PERIOD);
	arm(s, IB_CQ_NEXT_COMP);
	if (add_quickly(s, 3))
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->notified));
	add(s, 4, IB_WC_SUCCESS, false);
	if (!atomic_read(&s->notified))
		kunit_skip(test, "too slow a machine");
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->notified));
	/* It has disarmed the queue */
	add_quickly(s, 20);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->notified));
	KUNIT_EXPECT_EQ(test, 0, s->scq.mod_held);
}

static void moderated_by_time(struct kunit *test)
{
	struct pair_config c = {};
	struct side *s = &pair_create(test, &c)->side[0];
	u64 start;

	sroce_cq_moderate(&s->scq, 100, 20000);
	arm(s, IB_CQ_NEXT_COMP);
	start = ktime_get_ns();
	add(s, 1, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_TRUE(test, is_notified(s));
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 20000 * NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->notified));
}

/* Errors, what nobody is armed for, and rules that are none */
static void moderated_or_not(struct kunit *test)
{
	struct pair_config c = {};
	struct side *s = &pair_create(test, &c)->side[0];

	sroce_cq_moderate(&s->scq, 100, MOD_PERIOD);
	arm(s, IB_CQ_NEXT_COMP);
	add(s, 1, IB_WC_WR_FLUSH_ERR, true);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->notified));
	add(s, 2, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, 0, s->scq.mod_held);
	arm(s, IB_CQ_SOLICITED);
	add(s, 3, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, 0, s->scq.mod_held);
	/* Whose event waits gets it when the rule changes */
	add(s, 4, IB_WC_SUCCESS, true);
	sroce_cq_moderate(&s->scq, 1, MOD_PERIOD);
	KUNIT_EXPECT_TRUE(test, is_notified(s));
	arm(s, IB_CQ_NEXT_COMP);
	add(s, 5, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->notified));
	sroce_cq_moderate(&s->scq, 100, 0);
	arm(s, IB_CQ_NEXT_COMP);
	add(s, 6, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->notified));
}

/* The queue ends while its event waits: pair_exit() must not hang, nor crash */
static void moderated_end(struct kunit *test)
{
	struct pair_config c = {};
	int i;

	for (i = 0; i < 100; i++) {
		struct side *s = &pair_create(test, &c)->side[0];

		sroce_cq_moderate(&s->scq, 100, 1 + i);
		arm(s, IB_CQ_NEXT_COMP);
		add(s, 1, IB_WC_SUCCESS, false);
		if (i & 1)
			udelay(i);
		pair_exit(test);
	}
}

/* --- vectors -------------------------------------------------------------- */

static void note_cpu(struct ib_cq *ibcq, void *cpu)
{
	WRITE_ONCE(*(int *)cpu, smp_processor_id());
}

static void handler_cpu(struct kunit *test)
{
	struct pair_config c = {};
	struct side *s = &pair_create(test, &c)->side[0];
	int cpu, seen, i;

	s->scq.ibcq.comp_handler = note_cpu;
	s->scq.ibcq.cq_context = &seen;
	for_each_online_cpu(cpu) {
		if (!cpu)
			continue;
		for (i = 0; i < 100; i++) {
			WRITE_ONCE(seen, -1);
			s->scq.vector = cpu;
			arm(s, IB_CQ_NEXT_COMP);
			add(s, i, IB_WC_SUCCESS, false);
			while (READ_ONCE(seen) < 0)
				usleep_range(50, 100);
			KUNIT_EXPECT_EQ(test, cpu, seen);
		}
	}
	/* The end of a queue waits for a handler on its way: it has run, or will not */
	arm(s, IB_CQ_NEXT_COMP);
	add(s, 0, IB_WC_SUCCESS, false);
	sroce_cq_cleanup(&s->scq);
	KUNIT_EXPECT_EQ(test, 0, sroce_cq_init(&s->scq, &s->port, 8));
}

/* The default: at once, before whoever adds it goes on */
static void handler_here(struct kunit *test)
{
	struct pair_config c = {};
	struct side *s = &pair_create(test, &c)->side[0];
	int seen = -1;

	s->scq.ibcq.comp_handler = note_cpu;
	s->scq.ibcq.cq_context = &seen;
	arm(s, IB_CQ_NEXT_COMP);
	migrate_disable();
	add(s, 1, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, smp_processor_id(), seen);
	migrate_enable();
	s->scq.ibcq.comp_handler = NULL;
}

static void overrun_ignored(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 4 };
	struct side *s = &pair_create(test, &c)->side[0];
	struct ib_wc wc;
	int i;

	s->scq.ignore_overrun = true;
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_TRUE(test, add(s, i, IB_WC_SUCCESS, false));
	KUNIT_EXPECT_EQ(test, 0, side_events(s, IB_EVENT_CQ_ERR));
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_TRUE(test, side_poll(&s->scq, &wc));
		KUNIT_EXPECT_EQ(test, i, wc.wr_id);
	}
	KUNIT_EXPECT_FALSE(test, side_poll(&s->scq, &wc));
	add(s, 11, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_TRUE(test, side_poll(&s->scq, &wc));
	KUNIT_EXPECT_EQ(test, 11, wc.wr_id);
}

/* --- partitions ----------------------------------------------------------- */

static void pkey_table(struct kunit *test)
{
	struct pair_config c = {};
	struct side *s = &pair_create(test, &c)->side[0];
	struct sroce_port *port = &s->port;

	port->pkeys[3] = 0x8005;
	port->pkeys[4] = 0x0006;
	port->pkeys[15] = 0x8007;
	KUNIT_EXPECT_EQ(test, 0, sroce_pkey_index(port, 0xffff));
	KUNIT_EXPECT_EQ(test, 0, sroce_pkey_index(port, 0x7fff));
	KUNIT_EXPECT_EQ(test, 3, sroce_pkey_index(port, 0x8005));
	KUNIT_EXPECT_EQ(test, 3, sroce_pkey_index(port, 0x0005));
	KUNIT_EXPECT_EQ(test, 4, sroce_pkey_index(port, 0x8006));
	KUNIT_EXPECT_EQ(test, -1, sroce_pkey_index(port, 0x0006));
	KUNIT_EXPECT_EQ(test, 15, sroce_pkey_index(port, 0x8007));
	KUNIT_EXPECT_EQ(test, -1, sroce_pkey_index(port, 0x8008));
	/* What is empty matches nothing, not even a key of 0 */
	KUNIT_EXPECT_EQ(test, -1, sroce_pkey_index(port, 0));
	KUNIT_EXPECT_EQ(test, -1, sroce_pkey_index(port, 0x8000));
}

static const struct {
	u16 mine, its;
	bool heard;
} partitions[] = {
	{ 0x8005, 0x8005, true },
	{ 0x8005, 0x0005, true },
	{ 0x0005, 0x8005, true },
	{ 0x0005, 0x0005, false },
	{ 0x8005, 0x8006, false },
	{ 0xffff, 0x8005, false },
	{ 0x8005, 0x0000, false },
	{ 0x8000, 0x8000, false },
};

static void partition(struct kunit *test, u16 mine, u16 its, bool heard)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train t;

	side_recv(b, 1, DST, 100);
	b->port.pkeys[7] = mine;
	b->qp->attr.pkey_index = 7;
	t = side_train(a, SROCE_OP_SEND, side_first_psn(a));
	t.pkey = its;
	side_inject(a, &t);
	pair_deliver(p);
	if (heard)
		side_expect_recv(b, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, !heard, side_count(b, SROCE_CNT_RX_BAD_PKEY));
	pair_exit(test);
}

static void partitions_kept(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(partitions); i++)
		partition(test, partitions[i].mine, partitions[i].its,
			  partitions[i].heard);
}

/* Requests and answers have the key of who sends them */
static void partition_of_both(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	a->port.pkeys[1] = 0x8005;
	a->qp->attr.pkey_index = 1;
	b->port.pkeys[2] = 0x0005;
	b->qp->attr.pkey_index = 2;
	side_fill(b, DST, 5000, 1);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, SRC, DST, 5000));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, 5000, 1));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RX_BAD_PKEY));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_RX_BAD_PKEY));
}

/* --- counters ------------------------------------------------------------- */

static void counts_elsewhere(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_counters __percpu *own = sroce_counters_alloc();
	struct work w;

	KUNIT_ASSERT_TRUE(test, !!own);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 5000));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_WRITE_REQUESTS));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_RX_PACKETS));

	sroce_qp_count_in(b->qp, own);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, SRC, DST, 5000));
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_WRITE_REQUESTS));
	KUNIT_EXPECT_EQ(test, 1,
			sroce_counter_read(own, SROCE_CNT_RX_WRITE_REQUESTS));
	KUNIT_EXPECT_EQ(test, 5, sroce_counter_read(own, SROCE_CNT_RX_PACKETS));
	KUNIT_EXPECT_TRUE(test, own == b->qp->txq->counters);

	sroce_qp_count_in(b->qp, b->port.net.counters);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 3, SRC, DST, 5000));
	side_expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 2, side_count(b, SROCE_CNT_RX_WRITE_REQUESTS));
	KUNIT_EXPECT_EQ(test, 1,
			sroce_counter_read(own, SROCE_CNT_RX_WRITE_REQUESTS));
	free_percpu(own);
}

/* --- the kernel's own key ------------------------------------------------- */

static void recv_reserved(struct side *s, u64 wr_id, u32 off, u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)s->mem + off,
		.length = len,
		.lkey = SROCE_LOCAL_DMA_LKEY,
	};
	struct ib_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
	};

	KUNIT_ASSERT_EQ(s->pair->test, 0, side_try_recv(s, &wr));
}

/* It stands for all memory, at both ends, in pieces and as a whole */
static void reserved_key_moves(struct kunit *test, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	static const u32 lens[] = { 1, 300, 5000, 100000 };
	struct work w;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		side_fill(a, SRC + 3, lens[i], i);
		recv_reserved(b, i, DST + 1, lens[i]);
		work_send(a, &w, i, SRC + 3, lens[i]);
		w.sge[0].lkey = SROCE_LOCAL_DMA_LKEY;
		side_post(a, &w);
		side_expect_recv(b, i, IB_WC_SUCCESS);
		side_expect_send(a, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, side_filled(b, DST + 1, lens[i], i));
		work_rdma(a, &w, SROCE_WR_RDMA_READ, i, 0x40000, DST + 1, lens[i]);
		w.sge[0].lkey = SROCE_LOCAL_DMA_LKEY;
		side_post(a, &w);
		side_expect_send(a, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, side_filled(a, 0x40000, lens[i], i));
	}
	pair_exit(test);
}

static void reserved_key(struct kunit *test)
{
	reserved_key_moves(test, false);
	reserved_key_moves(test, true);
}

/* It is no key for the peer */
static void reserved_key_is_local(struct kunit *test)
{
	static const u8 opcodes[] = { SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_READ };
	struct pair_config c = {};
	struct work w;
	struct pair *p;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		p = pair_create(test, &c);
		work_rdma(&p->side[0], &w, opcodes[i], 1, SRC, DST, 100);
		w.wqe.rdma.rkey = SROCE_LOCAL_DMA_LKEY;
		side_post(&p->side[0], &w);
		side_expect_send(&p->side[0], 1, IB_WC_REM_ACCESS_ERR);
		pair_exit(test);
	}
}

/* It is none for a process */
static void reserved_key_of_process(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct work w;

	work_send(a, &w, 1, SRC, 100);
	w.sge[0].lkey = SROCE_LOCAL_DMA_LKEY;
	/* Posted as a kernel user, looked at as a process's */
	a->qp->user = true;
	side_post(a, &w);
	side_expect_send(a, 1, IB_WC_LOC_PROT_ERR);
	a->qp->user = false;
}

/* --- the key of nothing ------------------------------------------------------ */

static bool side_all_zero(struct side *s, u32 off, u32 len)
{
	return !memchr_inv((u8 *)s->mem + off, 0, len);
}

/* Zeros are sent from there, and what is received there is gone, whoever posts */
static void null_key_moves(struct kunit *test, bool direct, bool user)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	static const u32 lens[] = { 1, 300, 5000, 100000 };
	struct work w;
	u32 i;

	a->qp->user = user;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		side_fill(b, DST, lens[i], i);
		side_recv(b, i, DST, lens[i]);
		work_send(a, &w, i, 0, lens[i]);
		w.sge[0].addr = U64_MAX - 7;
		w.sge[0].lkey = SROCE_NULL_LKEY;
		side_post(a, &w);
		side_expect_recv(b, i, IB_WC_SUCCESS);
		side_expect_send(a, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, side_all_zero(b, DST, lens[i]));
		side_fill(b, DST, lens[i], i);
		side_fill(a, SRC, lens[i], i + 1);
		work_rdma(a, &w, SROCE_WR_RDMA_READ, i, SRC, DST, lens[i]);
		w.sge[0].lkey = SROCE_NULL_LKEY;
		side_post(a, &w);
		side_expect_send(a, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, lens[i], i + 1));
	}
	a->qp->user = false;
	pair_exit(test);
}

static void null_key(struct kunit *test)
{
	null_key_moves(test, false, false);
	null_key_moves(test, false, true);
	null_key_moves(test, true, false);
}

static void null_key_is_local(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct work w;

	work_rdma(&p->side[0], &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 100);
	w.wqe.rdma.rkey = SROCE_NULL_LKEY;
	side_post(&p->side[0], &w);
	side_expect_send(&p->side[0], 1, IB_WC_REM_ACCESS_ERR);
}

/* --- masked atomics --------------------------------------------------------- */

#define CELL 0x40000

/* As a kernel user posts them, RDS for one; a plain one adds 1 */
static struct ib_atomic_wr atomic_of(struct side *s, enum ib_wr_opcode opcode,
				     struct ib_sge *sge, u64 wr_id)
{
	struct side *peer = pair_peer(s);

	*sge = (struct ib_sge){ (uintptr_t)s->mem + DST, 8, s->mr->key };
	return (struct ib_atomic_wr){
		.wr = {
			.wr_id = wr_id,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = sge,
			.num_sge = 1,
		},
		.remote_addr = (uintptr_t)peer->mem + CELL,
		.rkey = peer->mr->key,
		.compare_add = 1,
		.swap = 7,
		.compare_add_mask = U64_MAX,
		.swap_mask = U64_MAX,
	};
}

/*
 * Refused, also with masks that leave nothing out: what stands in front of one in the
 * list is done, neither it nor what is behind it is queued, and the QP works on
 */
static void masked_atomics(struct kunit *test)
{
	static const enum ib_wr_opcode masked[] = {
		IB_WR_MASKED_ATOMIC_CMP_AND_SWP,
		IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
	};
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct sroce_qp_obj *obj = kunit_kzalloc(test, sizeof(*obj), GFP_KERNEL);
	u64 *cell = (u64 *)(p->side[1].mem + CELL);
	struct ib_atomic_wr front, wr, behind;
	const struct ib_send_wr *bad;
	struct ib_sge sge;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, obj);
	obj->qp = a->qp;
	*cell = 0;
	for (i = 0; i < ARRAY_SIZE(masked); i++) {
		u32 posted = a->qp->req.posted;

		front = atomic_of(a, IB_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
		wr = atomic_of(a, masked[i], &sge, 2);
		behind = atomic_of(a, IB_WR_ATOMIC_FETCH_AND_ADD, &sge, 3);
		wr.wr.next = &behind.wr;
		bad = NULL;
		KUNIT_EXPECT_EQ(test, -EINVAL, sroce_ib_post_send(&obj->ibqp, &wr.wr, &bad));
		KUNIT_EXPECT_PTR_EQ(test, &wr.wr, bad);
		KUNIT_EXPECT_EQ(test, posted, a->qp->req.posted);
		pair_settle(p);
		side_expect_none(a);

		front.wr.next = &wr.wr;
		KUNIT_EXPECT_EQ(test, -EINVAL, sroce_ib_post_send(&obj->ibqp, &front.wr, &bad));
		KUNIT_EXPECT_PTR_EQ(test, &wr.wr, bad);
		KUNIT_EXPECT_EQ(test, posted + 1, a->qp->req.posted);
		side_expect_send(a, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, 0, sroce_ib_post_send(&obj->ibqp, &behind.wr, &bad));
		side_expect_send(a, 3, IB_WC_SUCCESS);
		pair_settle(p);
		side_expect_none(a);
		KUNIT_EXPECT_EQ(test, 2 * i + 2, *cell);
		KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	}
}

static struct kunit_case verbs_cases[] = {
	KUNIT_CASE(masked_atomics),
	KUNIT_CASE(null_key),
	KUNIT_CASE(null_key_is_local),
	KUNIT_CASE(reserved_key),
	KUNIT_CASE(reserved_key_is_local),
	KUNIT_CASE(reserved_key_of_process),
	KUNIT_CASE(moderated_by_count),
	KUNIT_CASE(moderated_by_time),
	KUNIT_CASE(moderated_or_not),
	KUNIT_CASE(moderated_end),
	KUNIT_CASE(handler_cpu),
	KUNIT_CASE(handler_here),
	KUNIT_CASE(overrun_ignored),
	KUNIT_CASE(pkey_table),
	KUNIT_CASE(partitions_kept),
	KUNIT_CASE(partition_of_both),
	KUNIT_CASE(counts_elsewhere),
	{}
};

static struct kunit_suite verbs_suite = {
	.name = "sroce_transport_verbs",
	.exit = pair_exit,
	.test_cases = verbs_cases,
};

kunit_test_suite(verbs_suite);
