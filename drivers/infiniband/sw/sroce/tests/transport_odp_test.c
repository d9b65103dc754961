// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages that meet memory on demand whose pages are missing. A half of a QP stops
 * there and does the same again later, so each message goes twice: first to pages
 * that are missing, then to the same ones, which are there now. But for what stands
 * for the repetition itself, both must leave the same traces.
 */
#include <kunit/test.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mman.h>

#include "tests/side_demand.h"
#include "tests/transport_pair.h"
#include "tests/waiter.h"
#include "transport/answers.h"
#include "transport/fault.h"
#include "transport/gather.h"
#include "transport/rnr.h"
#include "transport/run.h"

#define DEMAND_PAGES 32
#define DEMAND_BYTES (DEMAND_PAGES * PAGE_SIZE)
/* The region begins so many bytes behind the mapping */
#define DEMAND_SKEW 0x120

/* Nothing takes so long, on a machine that may be slow */
#define SOON (20 * HZ)

/* Receive work requests of one message; one would be enough */
#define RECVS 3

/**
 * struct missing - a kind of message
 * @name: for messages
 * @opcode: work request
 * @len: bytes
 * @own: the sender's own memory is on demand, otherwise the receiver's
 * @recv: it uses up a receive work request
 */
struct missing {
	const char *name;
	u8 opcode;
	u32 len;
	bool own;
	bool recv;
};

static const struct missing kinds[] = {
	{ "WRITE of a packet", SROCE_WR_RDMA_WRITE, 100 },
	{ "WRITE", SROCE_WR_RDMA_WRITE, 5000 },
	{ "WRITE of trains", SROCE_WR_RDMA_WRITE, 100000 },
	{ "WRITE with immediate", SROCE_WR_RDMA_WRITE_IMM, 5000, false, true },
	{ "WRITE from", SROCE_WR_RDMA_WRITE, 100000, true },
	{ "SEND", SROCE_WR_SEND, 5000, false, true },
	{ "SEND of trains", SROCE_WR_SEND_IMM, 100000, false, true },
	{ "SEND from", SROCE_WR_SEND, 100000, true, true },
	{ "READ", SROCE_WR_RDMA_READ, 10000 },
	{ "READ into", SROCE_WR_RDMA_READ, 10000, true },
	{ "FETCH ADD", SROCE_WR_FETCH_ADD, 8 },
	{ "FETCH ADD into", SROCE_WR_FETCH_ADD, 8, true },
	{ "CMP SWAP", SROCE_WR_CMP_SWAP, 8 },
	{ "ATOMIC WRITE", SROCE_WR_ATOMIC_WRITE, 8 },
	{ "ATOMIC WRITE from", SROCE_WR_ATOMIC_WRITE, 8, true },
};

/*
 * What a repetition counts: that pages were missing, that it was asked for, and the
 * packets. Nothing that says what was asked of a QP, or failed.
 */
static bool counts_repetition(enum sroce_counter id)
{
	switch (id) {
	case SROCE_CNT_PAGE_FAULTS:
	case SROCE_CNT_DUPLICATE_REQUEST:
	case SROCE_CNT_RNR_NAK_RETRY_ERR:
	case SROCE_CNT_PACKET_SEQ_ERR:
	case SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR:
	case SROCE_CNT_RETRANS_PACKETS:
	case SROCE_CNT_RX_DISCARDS:
		return true;
	default:
		return id >= SROCE_CNT_TX_PACKETS;
	}
}

/* --- memory on demand ------------------------------------------------------------ */

/* Bytes of the process, as it sees them */
static u64 demand_word(struct kunit *test, const struct sroce_mr *mr)
{
	u64 word = 0;

	KUNIT_EXPECT_EQ(test, 0, copy_from_user(&word,
						u64_to_user_ptr(mr->iova), 8));
	return word;
}

/* Has the process there what is in @mem? */
static bool demand_equals(struct kunit *test, const struct sroce_mr *mr,
			  const u8 *mem, u32 len)
{
	u8 *copy = kunit_kmalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_EQ(test, 0, copy_from_user(copy, u64_to_user_ptr(mr->iova),
						len));
	return !memcmp(copy, mem, len);
}

/* --- a message ------------------------------------------------------------------- */

static void post(struct pair *p, const struct missing *k,
		 const struct sroce_mr *mr, u64 wr_id)
{
	struct side *a = &p->side[0];
	struct work w;

	work_init(&w, k->opcode, wr_id);
	work_local(a, &w, 0, k->len);
	if (k->own) {
		w.sge[0].addr = mr->iova;
		w.sge[0].lkey = mr->key;
	}
	if (k->opcode == SROCE_WR_FETCH_ADD || k->opcode == SROCE_WR_CMP_SWAP) {
		work_atomic(a, &w, 0, k->opcode == SROCE_WR_CMP_SWAP &&
			    wr_id == 1 ? 0 : 5, 5);
		if (!k->own)
			w.wqe.atomic.remote_addr = mr->iova;
		if (!k->own)
			w.wqe.atomic.rkey = mr->key;
	} else {
		work_remote(a, &w, 0);
		if (!k->own && !(k->recv && k->opcode != SROCE_WR_RDMA_WRITE_IMM)) {
			w.wqe.rdma.remote_addr = mr->iova;
			w.wqe.rdma.rkey = mr->key;
		}
	}
	side_post(a, &w);
}

static void post_recvs(struct pair *p, const struct missing *k,
		       const struct sroce_mr *mr)
{
	struct side *b = &p->side[1];
	struct ib_sge sge = {
		.addr = k->own ? (uintptr_t)b->mem : mr->iova,
		.length = k->len,
		.lkey = k->own ? b->mr->key : mr->key,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	int i;

	for (i = 1; i <= RECVS; i++) {
		wr.wr_id = i;
		KUNIT_ASSERT_EQ(p->test, 0, side_try_recv(b, &wr));
	}
}

static bool side_waits(const struct side *s)
{
	const struct sroce_half *req = &s->qp->req.half;
	const struct sroce_half *resp = &s->qp->resp.half;

	return sroce_fault_is_running(req) || READ_ONCE(req->fault.waiting) ||
	       sroce_fault_is_running(resp) || READ_ONCE(resp->fault.waiting);
}

/*
 * The next completion of a queue. Pages come when they come: until then no timer
 * fires, so that nobody runs out of retries. The last of those who wait may be about
 * to run again, in another thread, when nothing is left to happen here.
 */
static void expect(struct pair *p, struct sroce_cq *cq, u64 wr_id,
		   const char *name)
{
	unsigned long end = jiffies + SOON;
	struct ib_wc wc = {};
	bool came;

	while (!(came = side_poll(cq, &wc)) && time_before(jiffies, end)) {
		if (side_waits(&p->side[0]) || side_waits(&p->side[1]))
			pair_deliver(p);
		else if (!pair_step(p))
			usleep_range(100, 200);
	}
	KUNIT_ASSERT_TRUE_MSG(p->test, came, "%s: no completion", name);
	KUNIT_EXPECT_EQ_MSG(p->test, wc.status, IB_WC_SUCCESS, "%s", name);
	KUNIT_EXPECT_EQ_MSG(p->test, wc.wr_id, wr_id, "%s", name);
}

static void expect_message(struct pair *p, const struct missing *k, u64 wr_id)
{
	if (k->recv)
		expect(p, &p->side[1].rcq, wr_id, k->name);
	expect(p, &p->side[0].scq, wr_id, k->name);
	pair_settle(p);
	side_expect_none(&p->side[0]);
	side_expect_none(&p->side[1]);
}

/* --- what it leaves behind ----------------------------------------------------------- */

/* Of both sides: as if they were QPs of one device */
static u64 pair_count(struct pair *p, enum sroce_counter id)
{
	return side_count(&p->side[0], id) + side_count(&p->side[1], id);
}

static void pair_counts(struct pair *p, u64 *v)
{
	enum sroce_counter id;

	for (id = 0; id < SROCE_CNT_NUM; id++)
		v[id] = pair_count(p, id);
}

static void expect_same(struct kunit *test, const struct missing *k,
			const u64 *before, const u64 *between, const u64 *after)
{
	enum sroce_counter id;

	for (id = 0; id < SROCE_CNT_NUM; id++)
		if (!counts_repetition(id))
			KUNIT_EXPECT_EQ_MSG(test, between[id] - before[id],
					    after[id] - between[id], "%s: %s",
					    k->name, sroce_counter_names[id]);
	KUNIT_EXPECT_GT_MSG(test, between[SROCE_CNT_PAGE_FAULTS],
			    before[SROCE_CNT_PAGE_FAULTS], "%s", k->name);
}

static void expect_no_events(struct pair *p, const struct missing *k)
{
	int i, e;

	for (i = 0; i < 2; i++)
		for (e = 0; e < ARRAY_SIZE(p->side[i].events); e++)
			KUNIT_EXPECT_EQ_MSG(p->test, 0,
					    side_events(&p->side[i], e),
					    "%s: event %d", k->name, e);
}

/*
 * Pages do not come while their process's memory is locked. Meanwhile the sender
 * finds that nothing happens, and sends again.
 */
static void impatient(struct pair *p)
{
	int i;

	for (i = 0; i < 3; i++) {
		side_expire(&p->side[0]);
		pair_deliver(p);
	}
}

static void goes_twice(struct kunit *test, const struct missing *k, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	u64 before[SROCE_CNT_NUM], between[SROCE_CNT_NUM], after[SROCE_CNT_NUM];
	struct sroce_mr *mr = side_demand_create(&p->side[!k->own], DEMAND_BYTES, DEMAND_SKEW);

	if (k->recv)
		post_recvs(p, k, mr);
	pair_counts(p, before);
	mmap_write_lock(current->mm);
	post(p, k, mr, 1);
	pair_deliver(p);
	impatient(p);
	/* It has waited once, however often it was sent */
	pair_counts(p, between);
	KUNIT_EXPECT_EQ_MSG(test, between[SROCE_CNT_PAGE_FAULTS],
			    before[SROCE_CNT_PAGE_FAULTS] + 1, "%s", k->name);
	mmap_write_unlock(current->mm);
	/* Timeouts have made the window small, and READs are cut by it */
	p->side[0].qp->req.window = DEMAND_PAGES * PAGE_SIZE / p->mtu;
	expect_message(p, k, 1);
	pair_counts(p, between);
	post(p, k, mr, 2);
	expect_message(p, k, 2);
	pair_counts(p, after);
	expect_same(test, k, before, between, after);
	expect_no_events(p, k);
	if (k->opcode == SROCE_WR_FETCH_ADD && !k->own)
		KUNIT_EXPECT_EQ(test, demand_word(test, mr), 10);
	side_demand_free(mr);
	pair_exit(test);
}

/* Try kinds of messages, over the network and on one host */
static void each_way(struct kunit *test, const struct missing *k, int n,
		     void (*one)(struct kunit *test, const struct missing *k,
				 bool direct))
{
	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	for (; n; n--, k++) {
		one(test, k, false);
		one(test, k, true);
	}
}

static void missing_pages(struct kunit *test)
{
	each_way(test, kinds, ARRAY_SIZE(kinds), goes_twice);
}

/* --- where some pages are there ------------------------------------------------------- */

/* Far fewer than a long message takes, whatever the size of a page */
#define THERE_PAGES DIV_ROUND_UP(SZ_16K, PAGE_SIZE)

static const struct missing long_kinds[] = {
	{ "long WRITE", SROCE_WR_RDMA_WRITE, 100000 },
	{ "long WRITE from", SROCE_WR_RDMA_WRITE, 100000, true },
	{ "long SEND", SROCE_WR_SEND_IMM, 100000, false, true },
	{ "long SEND from", SROCE_WR_SEND, 100000, true, true },
	{ "long READ", SROCE_WR_RDMA_READ, 100000 },
	{ "long READ into", SROCE_WR_RDMA_READ, 100000, true },
};

/* Packets of a message that are through: taken by the peer, or answered by it */
static u32 packets_through(struct pair *p, const struct missing *k)
{
	if (k->opcode == SROCE_WR_RDMA_READ)
		return p->side[0].qp->req.una_psn;
	return p->side[1].qp->resp.epsn;
}

/*
 * The first pages are there, the others do not come: the packets that have theirs are
 * through. So a message gets on while its process loses pages again and again, as long
 * as the next one is there now and then.
 */
static void gets_as_far(struct kunit *test, const struct missing *k, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	u32 there = THERE_PAGES * PAGE_SIZE - DEMAND_SKEW;
	struct sroce_mr *mr = side_demand_create(&p->side[!k->own], DEMAND_BYTES, DEMAND_SKEW);
	u8 *pinned = p->side[k->own].mem;
	u32 before, i;

	for (i = 0; i < k->len; i++)
		pinned[i] = i * 7 + i / 251;
	KUNIT_ASSERT_EQ(test, 0, waiter_bring(mr, mr->iova, there, 0, SROCE_ODP_WRITE));
	if (k->recv)
		post_recvs(p, k, mr);
	before = packets_through(p, k);
	mmap_write_lock(current->mm);
	post(p, k, mr, 1);
	pair_deliver(p);
	impatient(p);
	KUNIT_EXPECT_EQ_MSG(test, sroce_psn_add(before, there / p->side[0].qp->mtu),
			    packets_through(p, k), "%s%s", k->name,
			    direct ? ", same host" : "");
	mmap_write_unlock(current->mm);
	expect_message(p, k, 1);
	KUNIT_EXPECT_TRUE_MSG(test, demand_equals(test, mr, pinned, k->len), "%s",
			      k->name);
	expect_no_events(p, k);
	side_demand_free(mr);
	pair_exit(test);
}

static void some_pages_missing(struct kunit *test)
{
	each_way(test, long_kinds, ARRAY_SIZE(long_kinds), gets_as_far);
}

/* Of an unreliable connection the message is lost, and was none */
static void missing_pages_unreliable(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UC };
	const struct missing write = { "WRITE", SROCE_WR_RDMA_WRITE_IMM, 5000, false,
				       true };
	struct sroce_mr *mr;
	struct pair *p;
	struct side *b;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	p = pair_create(test, &c);
	b = &p->side[1];
	mr = side_demand_create(b, DEMAND_BYTES, DEMAND_SKEW);
	post_recvs(p, &write, mr);
	mmap_write_lock(current->mm);
	post(p, &write, mr, 1);
	pair_deliver(p);
	mmap_write_unlock(current->mm);
	expect(p, &p->side[0].scq, 1, write.name);
	while (side_waits(b))
		usleep_range(100, 200);
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_RX_WRITE_REQUESTS));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	post(p, &write, mr, 2);
	expect(p, &b->rcq, 1, write.name);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_WRITE_REQUESTS));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	side_demand_free(mr);
}

/*
 * READs wait for pages, more of them than the responder can note answers for. What is
 * asked for beyond that is dropped before anybody looks for its page.
 */
static void missing_pages_beyond_depth(struct kunit *test)
{
	struct pair_config c = { .rd_atomic = 1 };
	const struct missing read = { "READ", SROCE_WR_RDMA_READ, 10000 };
	const struct missing add = { "FETCH ADD", SROCE_WR_FETCH_ADD, 8 };
	struct sroce_mr *mr;
	struct pair *p;
	struct side *b;
	u32 i, n;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	p = pair_create(test, &c);
	b = &p->side[1];
	mr = side_demand_create(b, DEMAND_BYTES, DEMAND_SKEW);
	n = b->qp->resp.answers.njobs;
	p->side[0].qp->attr.max_rd_atomic = n + 1;
	mmap_write_lock(current->mm);
	for (i = 1; i <= n; i++)
		post(p, &read, mr, i);
	post(p, &add, mr, n + 1);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, n, b->qp->resp.answers.job_tail - b->qp->resp.answers.job_head);
	KUNIT_EXPECT_FALSE(test, b->qp->resp.ack.rnr_sent);
	mmap_write_unlock(current->mm);
	for (i = 1; i <= n; i++)
		expect(p, &p->side[0].scq, i, read.name);
	expect(p, &p->side[0].scq, n + 1, add.name);
	KUNIT_EXPECT_EQ(test, demand_word(test, mr), 5);
	side_demand_free(mr);
}

/* A pair whose receiver has memory on demand, of which no page is there, or is coming */
static struct pair *slow_pair(struct kunit *test, struct pair_config *c,
			      struct sroce_mr **mr)
{
	struct pair *p;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	p = pair_create(test, c);
	*mr = side_demand_create(&p->side[1], DEMAND_BYTES, DEMAND_SKEW);
	mmap_write_lock(current->mm);
	return p;
}

static void missing_since(struct side *b, u64 since)
{
	struct sroce_responder *resp = &b->qp->resp;

	if (!sroce_answers_all_sent(&resp->answers))
		sroce_answers_next(&resp->answers)->since = since;
	else
		resp->half.fault.since = since;
}

/* From now on the receiver has waited for pages for long; or, on a slow machine, not yet */
static void patience_ends(struct side *b)
{
	missing_since(b, 1);
}

static void patience_lasts(struct side *b)
{
	missing_since(b, ktime_get_ns() + NSEC_PER_SEC);
}

/* The sender hears nothing for a timeout, and asks again */
static void ask_again(struct pair *p)
{
	KUNIT_EXPECT_TRUE(p->test, side_expire(&p->side[0]));
	pair_deliver(p);
}

/* A message whose pages do not come: the sender asks again when the receiver is impatient */
static void post_until_late(struct pair *p, const struct missing *k,
			    const struct sroce_mr *mr)
{
	post(p, k, mr, 1);
	pair_deliver(p);
	patience_ends(&p->side[1]);
	ask_again(p);
}

static u64 times_told(struct pair *p)
{
	return side_count(&p->side[0], SROCE_CNT_RNR_NAK_RETRY_ERR);
}

static u64 times_asked(struct pair *p)
{
	return side_count(&p->side[0], SROCE_CNT_PACKET_SEQ_ERR);
}

static void asked_again(struct kunit *test, const struct missing *k)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];

	post(p, k, mr, 1);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, sroce_fault_is_running(&b->qp->resp.half));
	patience_lasts(b);
	ask_again(p);
	KUNIT_EXPECT_EQ_MSG(test, 0, times_told(p), "%s", k->name);
	patience_ends(b);
	/* Something else has the half run, which a READ must not be answered by */
	sroce_half_run(&b->qp->resp.half);
	pair_deliver(p);
	KUNIT_EXPECT_EQ_MSG(test, 0, times_told(p), "%s", k->name);
	ask_again(p);
	KUNIT_EXPECT_EQ_MSG(test, 1, times_told(p), "%s", k->name);
	mmap_write_unlock(current->mm);
	expect(p, &p->side[0].scq, 1, k->name);
	side_demand_free(mr);
	pair_exit(test);
}

static const struct missing quick_write = { "WRITE", SROCE_WR_RDMA_WRITE, 100 };
static const struct missing quick_read = { "READ", SROCE_WR_RDMA_READ, 100 };

/*
 * A request that comes again while its pages are being brought in: soon, as when a network
 * repeats it, which is no reason to tell the peer to wait for its timer; and long after
 */
static void missing_pages_asked_again(struct kunit *test)
{
	asked_again(test, &quick_write);
	asked_again(test, &quick_read);
}

/* To whom a receiver has to be ready the connection is worth more than its retries */
static void missing_pages_never_told(struct kunit *test)
{
	const struct missing *k[] = { &quick_write, &quick_read };
	struct pair_config c = { .rnr_retry = -1 };
	struct sroce_mr *mr;
	struct pair *p;
	int i;

	for (i = 0; i < ARRAY_SIZE(k); i++) {
		p = slow_pair(test, &c, &mr);
		post_until_late(p, k[i], mr);
		mmap_write_unlock(current->mm);
		expect(p, &p->side[0].scq, 1, k[i]->name);
		KUNIT_EXPECT_EQ(test, 0, times_told(p));
		side_demand_free(mr);
		pair_exit(test);
	}
}

/* Of a READ some packets are through: rdma_rxe has no ears for "not ready" then */
static void read_is_under_way(struct kunit *test)
{
	const struct missing read = { "READ", SROCE_WR_RDMA_READ, 100000 };
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	int i;

	mmap_write_unlock(current->mm);
	KUNIT_ASSERT_EQ(test, 0, waiter_bring(mr, mr->iova, THERE_PAGES * PAGE_SIZE - DEMAND_SKEW,
					      0, SROCE_ODP_WRITE));
	mmap_write_lock(current->mm);
	post(p, &read, mr, 1);
	pair_deliver(p);
	for (i = 0; i < 3; i++) {
		patience_ends(&p->side[1]);
		ask_again(p);
	}
	mmap_write_unlock(current->mm);
	expect(p, &p->side[0].scq, 1, read.name);
	KUNIT_EXPECT_EQ(test, 0, times_told(p));
	side_demand_free(mr);
}

#define LIST_SGES 4
#define LIST_STEP (5 * PAGE_SIZE)

static const struct missing list_send = { "SEND to a list", SROCE_WR_SEND, LIST_SGES * 100,
					  false, true };

/* A receive whose elements lie in pages apart, and in none next to the other */
static void post_list(struct pair *p, const struct sroce_mr *mr)
{
	struct ib_sge sge[LIST_SGES];
	struct ib_recv_wr wr = { .sg_list = sge, .num_sge = LIST_SGES, .wr_id = 1 };
	int i;

	for (i = 0; i < LIST_SGES; i++)
		sge[i] = (struct ib_sge){
			.addr = mr->iova + (LIST_SGES - 1 - i) * LIST_STEP,
			.length = 100,
			.lkey = mr->key,
		};
	KUNIT_ASSERT_EQ(p->test, 0, side_try_recv(&p->side[1], &wr));
}

/* The peer is asked for its SEND once, whatever kind of receive queue the list is in */
static void missing_pages_of_list(struct kunit *test)
{
	static const struct pair_config ways[] = {
		{}, { .direct = true }, { .srq = true }, { .type = IB_QPT_XRC_INI },
	};
	struct pair_config c;
	struct sroce_mr *mr;
	struct pair *p;
	int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		c = ways[i];
		p = slow_pair(test, &c, &mr);
		post_list(p, mr);
		mmap_write_unlock(current->mm);
		post(p, &list_send, mr, 1);
		expect(p, &p->side[1].rcq, 1, list_send.name);
		expect(p, &p->side[0].scq, 1, list_send.name);
		KUNIT_EXPECT_EQ_MSG(test, 0, times_told(p), "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, 1, times_asked(p), "%d", i);
		side_demand_free(mr);
		pair_exit(test);
	}
}

/* All elements' pages come while the peer waits as it was told: it need not be told again */
static void told_to_wait_for_list(struct kunit *test)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];
	unsigned long end = jiffies + SOON;

	post_list(p, mr);
	post_until_late(p, &list_send, mr);
	KUNIT_EXPECT_EQ(test, 1, times_told(p));
	mmap_write_unlock(current->mm);
	while (READ_ONCE(b->qp->resp.msg.looks) && time_before(jiffies, end))
		usleep_range(100, 200);
	KUNIT_EXPECT_EQ(test, LIST_SGES, side_count(b, SROCE_CNT_PAGE_FAULTS));
	ask_again(p);
	expect(p, &b->rcq, 1, list_send.name);
	expect(p, &p->side[0].scq, 1, list_send.name);
	KUNIT_EXPECT_EQ(test, 1, times_told(p));
	KUNIT_EXPECT_EQ(test, 0, times_asked(p));
	side_demand_free(mr);
}

/* An element whose page cannot be had is an error of the SEND, as if it were the first */
static void list_with_a_hole(struct kunit *test)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];
	struct ib_wc wc;

	post_list(p, mr);
	mmap_write_unlock(current->mm);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(mr->iova - DEMAND_SKEW + 2 * LIST_STEP, PAGE_SIZE));
	post(p, &list_send, mr, 1);
	while (side_waits(b))
		pair_deliver(p);
	side_expect(b, &b->rcq, 1, IB_WC_LOC_PROT_ERR, &wc);
	side_expect_send(&p->side[0], 1, IB_WC_REM_OP_ERR);
	KUNIT_EXPECT_EQ(test, 0, times_told(p));
	side_demand_free(mr);
}

/* A half misses pages at @va: waits until they are there, or cannot be had */
static int miss_at(struct side *s, struct sroce_mr *mr, u64 va)
{
	struct sroce_half *half = &s->qp->resp.half;
	struct sroce_miss miss = { .mr = mr, .va = va, .len = 8, .write = true };
	int err;

	spin_lock_bh(&half->lock);
	err = sroce_fault_start(half, &miss);
	spin_unlock_bh(&half->lock);
	while (READ_ONCE(half->fault.running))
		usleep_range(100, 200);
	return err;
}

/*
 * Pages cannot be had, and before the peer's request for them is back others are missing,
 * those of its READ: the request is an error when it comes, once.
 */
static void failed_before_others(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *b = &p->side[1];
	struct sroce_mr *mr = side_demand_create(b, DEMAND_BYTES, 0);
	u64 hole = mr->iova + 2 * PAGE_SIZE;

	KUNIT_EXPECT_EQ(test, 0, vm_munmap(hole, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, -EAGAIN, miss_at(b, mr, hole));
	KUNIT_EXPECT_EQ(test, -EAGAIN, miss_at(b, mr, mr->iova));
	KUNIT_EXPECT_EQ(test, -EFAULT, miss_at(b, mr, hole));
	KUNIT_EXPECT_EQ(test, -EAGAIN, miss_at(b, mr, hole));
	side_demand_free(mr);
}

/*
 * Pages cannot be had, but are there when the request comes again: somebody else has brought
 * them in. When they are gone another time, they are brought in.
 */
static void failed_but_there(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *b = &p->side[1];
	struct sroce_half *half = &b->qp->resp.half;
	struct sroce_mr *mr = side_demand_create(b, DEMAND_BYTES, 0);
	u64 hole = mr->iova + 2 * PAGE_SIZE;
	struct sroce_word w;

	KUNIT_EXPECT_EQ(test, 0, vm_munmap(hole, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, -EAGAIN, miss_at(b, mr, hole));
	KUNIT_EXPECT_EQ(test, hole, vm_mmap(NULL, hole, PAGE_SIZE, PROT_READ | PROT_WRITE,
					    MAP_ANONYMOUS | MAP_PRIVATE | MAP_FIXED, 0));
	KUNIT_ASSERT_EQ(test, 0, waiter_bring(mr, hole, 8, 0, SROCE_ODP_WRITE));
	spin_lock_bh(&half->lock);
	KUNIT_EXPECT_EQ(test, 0, sroce_word_begin(&w, half, mr->key, IB_ACCESS_REMOTE_WRITE, hole));
	sroce_word_end(&w);
	spin_unlock_bh(&half->lock);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(hole, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, -EAGAIN, miss_at(b, mr, hole));
	side_demand_free(mr);
}

/* Whichever half waits for pages: until that is over no time passes */
static bool comes_to_an_end(struct pair *p, struct ib_wc *wc)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	unsigned long end = jiffies + SOON;

	while (!side_poll(&a->scq, wc)) {
		if (time_after(jiffies, end))
			return false;
		if (sroce_fault_is_running(&a->qp->req.half) ||
		    sroce_fault_is_running(&b->qp->resp.half))
			usleep_range(100, 200);
		else
			pair_step(p);
	}
	return true;
}

/*
 * A message whose first bytes are there and the others cannot be had, in either's memory: an
 * error, and soon
 */
static void begins_before_a_hole(struct kunit *test)
{
	const struct missing kinds[] = {
		{ "WRITE into", SROCE_WR_RDMA_WRITE, 1000 },
		{ "READ of", SROCE_WR_RDMA_READ, 1000 },
		{ "WRITE from", SROCE_WR_RDMA_WRITE, 1000, true },
		{ "READ into", SROCE_WR_RDMA_READ, 1000, true },
	};
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p;
	struct ib_wc wc;
	u64 hole;
	int i;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		p = pair_create(test, &c);
		mr = side_demand_create(&p->side[!kinds[i].own], DEMAND_BYTES, PAGE_SIZE - 100);
		hole = mr->iova + 100;
		KUNIT_EXPECT_EQ(test, 0, vm_munmap(hole, PAGE_SIZE));
		post(p, &kinds[i], mr, 1);
		KUNIT_ASSERT_TRUE_MSG(test, comes_to_an_end(p, &wc), "%s", kinds[i].name);
		KUNIT_EXPECT_EQ_MSG(test, kinds[i].own ? IB_WC_LOC_PROT_ERR : IB_WC_REM_ACCESS_ERR,
				    wc.status, "%s", kinds[i].name);
		KUNIT_EXPECT_GE(test, 2,
				side_count(&p->side[!kinds[i].own], SROCE_CNT_PAGE_FAULTS));
		side_demand_free(mr);
		pair_exit(test);
	}
}

/* The process loses all pages of the region, as memory that goes to swap */
static void lose_pages(struct kunit *test, const struct sroce_mr *mr)
{
	unsigned long start = mr->iova - DEMAND_SKEW;

	KUNIT_EXPECT_EQ(test, start, vm_mmap(NULL, start, DEMAND_BYTES,
					     PROT_READ | PROT_WRITE, MAP_ANONYMOUS |
					     MAP_PRIVATE | MAP_FIXED, 0));
}

/* Pages come and go again before the peer, which was told to wait, is back: it is asked */
static void pages_gone_again(struct kunit *test)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];
	int i;

	post_until_late(p, &quick_write, mr);
	KUNIT_EXPECT_EQ(test, 1, times_told(p));
	mmap_write_unlock(current->mm);
	for (i = 0; i < 2; i++) {
		while (side_waits(b))
			usleep_range(100, 200);
		lose_pages(test, mr);
		mmap_write_lock(current->mm);
		patience_lasts(b);
		ask_again(p);
		KUNIT_EXPECT_EQ(test, 1, times_told(p));
		KUNIT_EXPECT_TRUE(test, READ_ONCE(b->qp->resp.half.fault.waiting));
		mmap_write_unlock(current->mm);
	}
	expect(p, &p->side[0].scq, 1, quick_write.name);
	KUNIT_EXPECT_EQ(test, 1, times_told(p));
	side_demand_free(mr);
}

#define LOST_TIMES 12

/*
 * A process that loses its pages each time before the peer is back: between two times that
 * it is told to wait, which is when they are gone, the peer is asked while they are there
 */
static void pages_always_gone(struct kunit *test)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];
	int i, asks = 0;

	post(p, &quick_write, mr, 1);
	pair_deliver(p);
	mmap_write_unlock(current->mm);
	for (i = 0; i < LOST_TIMES; i++) {
		while (sroce_fault_is_running(&b->qp->resp.half))
			usleep_range(100, 200);
		lose_pages(test, mr);
		mmap_write_lock(current->mm);
		ask_again(p);
		asks += READ_ONCE(b->qp->resp.half.fault.waiting);
		mmap_write_unlock(current->mm);
	}
	KUNIT_EXPECT_GE(test, asks, LOST_TIMES / 2);
	KUNIT_EXPECT_GE(test, times_told(p), 1);
	expect(p, &p->side[0].scq, 1, quick_write.name);
	side_demand_free(mr);
}

/* Whoever has not come to RTS has set no rnr_retry, and tells all the same */
static void told_in_rtr(struct kunit *test)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];

	side_to_reset(b);
	side_to_init(b);
	side_to_rtr(b);
	post_until_late(p, &quick_write, mr);
	KUNIT_EXPECT_EQ(test, 1, times_told(p));
	mmap_write_unlock(current->mm);
	expect(p, &p->side[0].scq, 1, quick_write.name);
	side_demand_free(mr);
}

/*
 * What the peer is told of a WRITE leaves behind the responses to the READ before it. The
 * WRITE's page is there by then: the peer is asked for it instead
 */
static void told_behind_a_read(struct kunit *test)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];
	struct work w;

	post(p, &quick_read, mr, 1);
	work_init(&w, SROCE_WR_RDMA_WRITE, 2);
	work_local(&p->side[0], &w, 0, 100);
	w.wqe.rdma.remote_addr = mr->iova + 4 * PAGE_SIZE;
	w.wqe.rdma.rkey = mr->key;
	side_post(&p->side[0], &w);
	pair_deliver(p);
	patience_lasts(b);
	b->qp->resp.half.fault.since = 1;
	ask_again(p);
	KUNIT_EXPECT_TRUE(test, b->qp->resp.half.fault.told);
	KUNIT_EXPECT_EQ(test, 0, times_told(p));
	mmap_write_unlock(current->mm);
	expect(p, &p->side[0].scq, 1, quick_read.name);
	expect(p, &p->side[0].scq, 2, quick_write.name);
	KUNIT_EXPECT_EQ(test, 0, times_told(p));
	side_demand_free(mr);
}

/* The answer to a READ waits for pages: what came before is acknowledged, also in ERR */
static void acked_before_a_read(struct kunit *test)
{
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_recv(b, 1, 0, 64);
	side_recv(b, 3, 64, 64);
	side_post(a, work_send(a, &w, 1, 0, 64));
	post(p, &quick_read, mr, 2);
	side_post(a, work_send(a, &w, 3, 64, 64));
	pair_deliver(p);
	side_expect_recv(b, 1, IB_WC_SUCCESS);
	side_to_error(b);
	pair_deliver(p);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_none(a);
	mmap_write_unlock(current->mm);
	side_demand_free(mr);
}

static const struct missing read_into = { "READ into", SROCE_WR_RDMA_READ, 100000, true };

/* The requester has the memory on demand, where a READ puts its data */
static struct pair *sink_pair(struct kunit *test, struct pair_config *c, struct sroce_mr **mr)
{
	struct pair *p;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	p = pair_create(test, c);
	*mr = side_demand_create(&p->side[0], DEMAND_BYTES, DEMAND_SKEW);
	return p;
}

/* Its page is there, and the READ is asked for again */
static void sink_comes(const struct pair *p)
{
	while (READ_ONCE(p->side[0].qp->req.half.fault.waiting))
		usleep_range(100, 200);
}

/*
 * The sink of a READ has no page: what is under way of its responses when the page has come is
 * no loss, and nothing is asked for a third time.
 */
static void read_asked_again(struct kunit *test)
{
	struct pair_config c = { .retry = -1 };
	struct sroce_mr *mr;
	struct pair *p = sink_pair(test, &c, &mr);
	struct side *a = &p->side[0];
	struct rule rules[] = { rule_nth(&p->side[1], SROCE_OP_READ_RESP, 10, 0, FAKE_HOLD), {} };

	/* However slow this machine is, nothing is asked for because of that */
	a->qp->req.early.lateness.wait = 1000 * (u64)NSEC_PER_SEC;
	pair_rules(p, rules);
	post(p, &read_into, mr, 1);
	pair_deliver(p);
	sink_comes(p);
	pair_rules(p, NULL);
	fake_net_release(&p->net);
	expect(p, &a->scq, 1, read_into.name);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	side_demand_free(mr);
}

/* Likewise when they have waited for one that was late, and are kept */
static void read_kept(struct kunit *test)
{
	struct pair_config c = { .retry = -1, .batch = 1 };
	struct sroce_mr *mr;
	struct pair *p = sink_pair(test, &c, &mr);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct rule rules[] = {
		rule_psn(b, SROCE_OP_READ_RESP, side_first_psn(a), 1, FAKE_HOLD), {}
	};

	a->qp->req.early.lateness.wait = 1000 * (u64)NSEC_PER_SEC;
	pair_rules(p, rules);
	post(p, &read_into, mr, 1);
	pair_deliver(p);
	KUNIT_EXPECT_GT(test, a->qp->req.early.held.n, 50);
	fake_net_release(&p->net);
	expect(p, &a->scq, 1, read_into.name);
	pair_deliver(p);
	KUNIT_EXPECT_GT(test, side_count(a, SROCE_CNT_PAGE_FAULTS), 0);
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, a->qp->req.early.held.n);
	side_demand_free(mr);
}

/* ... but the loss of the first of what comes then is one, and is seen by the next */
static void read_lost_again(struct kunit *test)
{
	struct pair_config c = { .batch = 1 };
	struct sroce_mr *mr;
	struct pair *p = sink_pair(test, &c, &mr);
	struct side *a = &p->side[0];
	struct rule rules[] = { rule_nth(&p->side[1], SROCE_OP_READ_RESP, 0, 1, FAKE_DROP), {} };

	/* All of the first stream is there before the page is */
	mmap_write_lock(current->mm);
	post(p, &read_into, mr, 1);
	pair_deliver(p);
	pair_rules(p, rules);
	mmap_write_unlock(current->mm);
	sink_comes(p);
	expect(p, &a->scq, 1, read_into.name);
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_IMPLIED_NAK_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	pair_rules(p, NULL);
	side_demand_free(mr);
}

/* Of a READ some packets have left: no ACK comes in its middle, also in ERR */
static void no_ack_within_a_read(struct kunit *test)
{
	const struct missing read = { "READ", SROCE_WR_RDMA_READ, 100000 };
	struct pair_config c = {};
	struct sroce_mr *mr;
	struct pair *p = slow_pair(test, &c, &mr);
	struct side *b = &p->side[1];

	mmap_write_unlock(current->mm);
	KUNIT_ASSERT_EQ(test, 0, waiter_bring(mr, mr->iova, THERE_PAGES * PAGE_SIZE - DEMAND_SKEW,
					      0, SROCE_ODP_WRITE));
	mmap_write_lock(current->mm);
	post(p, &read, mr, 1);
	pair_deliver(p);
	KUNIT_ASSERT_NE(test, 0, side_sent(b, SROCE_OP_READ_RESP, -1));
	side_to_error(b);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 0, side_sent(b, SROCE_OP_ACK, -1));
	mmap_write_unlock(current->mm);
	side_demand_free(mr);
}

/* --- what a message has brought in, and what not ----------------------------------------- */

/* As one that begins a message whose data lies elsewhere */
#define HEADER 100

/* Pages of a region that were brought in for messages */
static u64 brought(const struct sroce_mr *mr)
{
	struct sroce_odp_counts counts;

	sroce_odp_count(mr->odp, &counts);
	return counts.faults;
}

/* A receive of two elements, the first of them in the first page of a region on demand */
static void post_header(struct pair *p, const struct sroce_mr *mr, const struct sroce_mr *rest,
			u64 va, u32 len)
{
	struct ib_sge sge[] = {
		{ .addr = mr->iova, .length = HEADER, .lkey = mr->key },
		{ .addr = va, .length = len, .lkey = rest->key },
	};
	struct ib_recv_wr wr = { .sg_list = sge, .num_sge = 2, .wr_id = 1 };

	KUNIT_ASSERT_EQ(p->test, 0, side_try_recv(&p->side[1], &wr));
}

/* Behind a header in memory on demand there is as much as the region has, but pinned */
static void header_to(struct kunit *test, const struct missing *k, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	struct side *b = &p->side[1];
	struct sroce_mr *mr = side_demand_create(b, DEMAND_BYTES, DEMAND_SKEW);

	post_header(p, mr, b->mr, (uintptr_t)b->mem, k->len - HEADER);
	post(p, k, mr, 1);
	expect_message(p, k, 1);
	KUNIT_EXPECT_EQ_MSG(test, 1, brought(mr), "%s", k->name);
	side_demand_free(mr);
	pair_exit(test);
}

static void header_from(struct kunit *test, const struct missing *k, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct sroce_mr *mr = side_demand_create(a, DEMAND_BYTES, DEMAND_SKEW);
	struct work w;

	if (k->recv)
		side_recv(&p->side[1], 1, 0, k->len);
	work_rdma(a, &w, k->opcode, 1, 0, 0, k->len);
	w.wqe.num_sge = 2;
	w.sge[1] = w.sge[0];
	w.sge[1].length -= HEADER;
	w.sge[0].addr = mr->iova;
	w.sge[0].lkey = mr->key;
	w.sge[0].length = HEADER;
	side_post(a, &w);
	expect_message(p, k, 1);
	KUNIT_EXPECT_EQ_MSG(test, 1, brought(mr), "%s", k->name);
	side_demand_free(mr);
	pair_exit(test);
}

/*
 * What a message will want of the list's other elements says nothing about the pages that lie
 * behind this one: nobody has named those
 */
static void brings_named_only(struct kunit *test)
{
	static const struct missing to = { "SEND to a header", SROCE_WR_SEND, 80000, false, true };
	static const struct missing from[] = {
		{ "SEND of a header", SROCE_WR_SEND, 80000, true, true },
		{ "WRITE of a header", SROCE_WR_RDMA_WRITE, 80000, true },
		{ "READ into a header", SROCE_WR_RDMA_READ, 80000, true },
	};

	each_way(test, &to, 1, header_to);
	each_way(test, from, ARRAY_SIZE(from), header_from);
}

static void short_send(struct kunit *test, const struct missing *k, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	struct sroce_mr *mr = side_demand_create(&p->side[1], DEMAND_BYTES, DEMAND_SKEW);
	u64 second = mr->iova + 2 * PAGE_SIZE;
	bool list = k->len > HEADER;

	if (list)
		post_header(p, mr, mr, second, DEMAND_BYTES / 2);
	else
		post_recvs(p, &(struct missing){ .len = mr->length }, mr);
	post(p, k, mr, 1);
	expect_message(p, k, 1);
	KUNIT_EXPECT_EQ_MSG(test, 1 + list, brought(mr), "%s", k->name);
	side_demand_free(mr);
	pair_exit(test);
}

/* A short SEND does not have the whole of a long receive brought in, nor of any element */
static void brings_sent_only(struct kunit *test)
{
	static const struct missing sends[] = {
		{ "SEND", SROCE_WR_SEND, 50, false, true },
		{ "SEND to two elements", SROCE_WR_SEND, HEADER + 50, false, true },
	};

	each_way(test, sends, ARRAY_SIZE(sends), short_send);
}

static void write_to(struct kunit *test, const struct missing *k, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	struct side *b = &p->side[1];
	struct sroce_mr *mr = side_demand_create(b, DEMAND_BYTES, DEMAND_SKEW);

	post(p, k, mr, 1);
	expect_message(p, k, 1);
	KUNIT_EXPECT_EQ(test, PFN_UP(DEMAND_SKEW + k->len), brought(mr));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_PAGE_FAULTS));
	side_demand_free(mr);
	pair_exit(test);
}

/* What a message has named comes at once, in one piece */
static void brings_ahead(struct kunit *test)
{
	static const struct missing write = { "WRITE", SROCE_WR_RDMA_WRITE, 100000 };

	each_way(test, &write, 1, write_to);
}

/* The delay that an RNR NAK names is as long as both that are asked for */
static void not_ready_for(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 10000ULL, sroce_rnr_ns(1));
	KUNIT_EXPECT_EQ(test, 655360000ULL, sroce_rnr_ns(0));
	KUNIT_EXPECT_EQ(test, 1, sroce_rnr_at_least(1, 0));
	KUNIT_EXPECT_EQ(test, 1, sroce_rnr_at_least(1, 10000));
	KUNIT_EXPECT_EQ(test, 2, sroce_rnr_at_least(1, 10001));
	KUNIT_EXPECT_EQ(test, 22, sroce_rnr_at_least(12, 16 * NSEC_PER_MSEC));
	KUNIT_EXPECT_EQ(test, 25, sroce_rnr_at_least(25, 16 * NSEC_PER_MSEC));
	KUNIT_EXPECT_EQ(test, 0, sroce_rnr_at_least(1, 10ULL * NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, 0, sroce_rnr_at_least(0, 1));
}

static void slow_pages_of(struct kunit *test, const struct missing *k, bool direct)
{
	struct pair_config c = { .direct = direct };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct side *b = &p->side[1];
	struct sroce_mr *mr;
	int i;

	mr = side_demand_create(b, DEMAND_BYTES, DEMAND_SKEW);
	post_recvs(p, k, mr);
	mmap_write_lock(current->mm);
	post(p, k, mr, 1);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, sroce_fault_is_running(&b->qp->resp.half));
	/* From now on its patience is over */
	usleep_range(17000, 18000);
	for (i = 0; i < 40; i++) {
		p->net.drop = i & 1 ? 1000 : 0;
		KUNIT_EXPECT_TRUE(test, side_expire(a));
		pair_deliver(p);
	}
	p->net.drop = 0;
	KUNIT_EXPECT_GE_MSG(test, side_count(a, SROCE_CNT_RNR_NAK_RETRY_ERR), 20, "%s", k->name);
	mmap_write_unlock(current->mm);
	expect(p, &a->scq, 1, k->name);
	side_demand_free(mr);
	pair_exit(test);
}

/*
 * Pages that take longer than all of the peer's timeouts: it is told that they are missing,
 * and does not give up, even when every second time its network loses what it sends
 */
static void slow_pages(struct kunit *test)
{
	static const struct missing slow[] = {
		{ "WRITE", SROCE_WR_RDMA_WRITE, 5000 },
		{ "SEND", SROCE_WR_SEND, 5000, false, true },
		{ "READ", SROCE_WR_RDMA_READ, 10000 },
		{ "FETCH ADD", SROCE_WR_FETCH_ADD, 8 },
	};

	each_way(test, slow, ARRAY_SIZE(slow), slow_pages_of);
}

static struct kunit_case transport_odp_cases[] = {
	KUNIT_CASE_SLOW(missing_pages),
	KUNIT_CASE_SLOW(some_pages_missing),
	KUNIT_CASE(missing_pages_unreliable),
	KUNIT_CASE(missing_pages_beyond_depth),
	KUNIT_CASE(missing_pages_asked_again),
	KUNIT_CASE(missing_pages_never_told),
	KUNIT_CASE(read_is_under_way),
	KUNIT_CASE(missing_pages_of_list),
	KUNIT_CASE(told_to_wait_for_list),
	KUNIT_CASE(list_with_a_hole),
	KUNIT_CASE(failed_before_others),
	KUNIT_CASE(failed_but_there),
	KUNIT_CASE(begins_before_a_hole),
	KUNIT_CASE(pages_gone_again),
	KUNIT_CASE(pages_always_gone),
	KUNIT_CASE(told_in_rtr),
	KUNIT_CASE(told_behind_a_read),
	KUNIT_CASE(acked_before_a_read),
	KUNIT_CASE(no_ack_within_a_read),
	KUNIT_CASE(read_asked_again),
	KUNIT_CASE(read_kept),
	KUNIT_CASE(read_lost_again),
	KUNIT_CASE(brings_named_only),
	KUNIT_CASE(brings_sent_only),
	KUNIT_CASE(brings_ahead),
	KUNIT_CASE(not_ready_for),
	KUNIT_CASE_SLOW(slow_pages),
	{}
};

static struct kunit_suite transport_odp_suite = {
	.name = "sroce_transport_odp",
	.exit = pair_exit,
	.test_cases = transport_odp_cases,
};

kunit_test_suite(transport_odp_suite);
