// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that find no receive wait a moment for one, and what comes after them
 * waits behind them. Time stands still here: whoever waits looks when the test says so.
 */
#include <linux/completion.h>
#include <linux/kthread.h>

#include "tests/transport_pair.h"
#include "transport/direct.h"
#include "transport/gather.h"
#include "transport/patience.h"
#include "transport/run.h"

#define SRC 0x1000
#define DST 0x80000
#define SLOT 0x1000
#define LEN 1000

/* More looks than a request is given, whatever the intervals are */
#define LOOKS_MOST 32

/* What the network's trains may take in an inbox, and what a train takes at most */
#define KEPT_MOST SROCE_TRAIN_BYTES

struct way {
	const char *name;
	struct pair_config config;
};

static const struct way ways[] = {
	{ "packets", { .rnr_retry = -1 } },
	{ "direct", { .rnr_retry = -1, .direct = true } },
	{ "shared queue", { .rnr_retry = -1, .srq = true } },
	{ "shared queue, direct", { .rnr_retry = -1, .srq = true, .direct = true } },
	{ "XRC", { .rnr_retry = -1, .type = IB_QPT_XRC_INI } },
	{ "XRC, direct", { .rnr_retry = -1, .type = IB_QPT_XRC_INI,
			   .direct = true } },
};

static void way_name(const struct way *way, char *desc)
{
	strscpy(desc, way->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(way, ways, way_name);

/* Where nobody looks but the test */
static struct pair *still_pair(struct kunit *test, const struct pair_config *c)
{
	struct pair *p = pair_create(test, c);

	p->net.idle = NULL;
	return p;
}

static struct pair *way_pair(struct kunit *test)
{
	const struct way *way = test->param_value;

	return still_pair(test, &way->config);
}

static bool waits(const struct side *s)
{
	return s->qp->resp.patience.state == SROCE_RESP_WAITS;
}

static void post_send(struct side *a, u64 id)
{
	struct work w;

	side_fill(a, SRC + id * SLOT, LEN, id);
	side_post(a, work_send(a, &w, id, SRC + id * SLOT, LEN));
}

static void post_recv(struct side *b, u64 id)
{
	side_recv(b, id, DST + id * SLOT, LEN);
}

static void expect_message(struct side *a, u64 id)
{
	struct side *b = pair_peer(a);

	side_expect_send(a, id, IB_WC_SUCCESS);
	side_expect_recv(b, id, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(a->pair->test,
			  side_filled(b, DST + id * SLOT, LEN, id));
}

/* So many SENDs come before their receives: the first one waits, the others behind it */
static void send_too_early(struct side *a, u64 n)
{
	u64 i;

	for (i = 0; i < n; i++)
		post_send(a, i);
	pair_deliver(a->pair);
	KUNIT_ASSERT_TRUE(a->pair->test, waits(pair_peer(a)));
}

/* Nothing waits any more, and nothing is kept for later */
static void expect_forgotten(struct side *b)
{
	struct kunit *test = b->pair->test;

	KUNIT_EXPECT_FALSE(test, waits(b));
	KUNIT_EXPECT_TRUE(test, list_empty(&b->qp->resp.half.inbox));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.patience.kept);
}

/* Until it has been told that there is no receive. Returns how often it looked. */
static u32 look_in_vain(struct side *s)
{
	u32 n = 0;

	while (n < LOOKS_MOST && side_look(s))
		n++;
	return n;
}

/* Neither the peer's retries nor its window have suffered */
static void expect_unharmed(struct side *a)
{
	struct side *b = pair_peer(a);
	struct kunit *test = a->pair->test;

	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_RETRANS_PACKETS));
	KUNIT_EXPECT_EQ(test, 0, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, a->pair->expired);
}

/* A sender that tolerates no RNR NAK, and a receiver that is a moment late */
static void receive_comes(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	send_too_early(a, 1);
	side_look(b);
	KUNIT_EXPECT_TRUE(test, waits(b));
	post_recv(b, 0);
	KUNIT_EXPECT_TRUE(test, waits(b));
	side_look(b);
	KUNIT_EXPECT_FALSE(test, waits(b));
	expect_message(a, 0);
	expect_unharmed(a);
}

/* Nothing is waited for where a receive is */
static void receive_is_there(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 i;

	for (i = 0; i < 4; i++)
		post_recv(b, i);
	for (i = 0; i < 4; i++)
		post_send(a, i);
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, waits(b));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.patience.waited);
	for (i = 0; i < 4; i++)
		expect_message(a, i);
	expect_unharmed(a);
}

/* The time is bounded, the peer is told once, and by nothing but an RNR NAK */
static void receive_never_comes(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 i;

	send_too_early(a, 4);
	KUNIT_EXPECT_GT(test, look_in_vain(b), 1);
	KUNIT_EXPECT_FALSE(test, waits(b));
	KUNIT_EXPECT_LE(test, b->qp->resp.patience.waited, 16 * NSEC_PER_MSEC);
	pair_deliver(p);
	side_expect_send(a, 0, IB_WC_RNR_RETRY_EXC_ERR);
	for (i = 1; i < 4; i++)
		side_expect_send(a, i, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_OUT_OF_SEQUENCE));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.patience.kept);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
}

/* Whatever comes meanwhile is carried out afterwards, in order */
static void others_wait_behind(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	u64 i;

	for (i = 0; i < 3; i++)
		post_send(a, i);
	/* What the WRITE puts there the READ finds */
	side_fill(a, SRC + 3 * SLOT, LEN, 3);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 3, SRC + 3 * SLOT,
			       DST + 3 * SLOT, LEN));
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 4, SRC + 4 * SLOT,
			       DST + 3 * SLOT, LEN));
	pair_deliver(p);
	KUNIT_ASSERT_TRUE(test, waits(b));
	KUNIT_EXPECT_FALSE(test, side_filled(b, DST + 3 * SLOT, LEN, 3));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, waits(b));
		post_recv(b, i);
		side_look(b);
		expect_message(a, i);
	}
	KUNIT_EXPECT_FALSE(test, waits(b));
	side_expect_send(a, 3, IB_WC_SUCCESS);
	side_expect_send(a, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, SRC + 4 * SLOT, LEN, 3));
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.patience.kept);
	expect_unharmed(a);
}

/* Of an RDMA WRITE only the end waits */
static void immediate_waits(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 len = 5 * p->mtu;
	struct work w;

	side_fill(a, SRC, len, 1);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, 1, SRC, DST, len));
	pair_deliver(p);
	KUNIT_ASSERT_TRUE(test, waits(b));
	side_recv(b, 2, 0, 0);
	side_look(b);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, 1));
	expect_unharmed(a);
}

/* The peer has lost patience: what it repeats is carried out once */
static void repeated_meanwhile(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 i;

	send_too_early(a, 3);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	pair_deliver(p);
	for (i = 0; i < 3; i++)
		post_recv(b, i);
	side_look(b);
	for (i = 0; i < 3; i++)
		expect_message(a, i);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, 3, b->qp->resp.msn);
}

/* ERR: all is flushed, and nobody looks any more */
static void error_meanwhile(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	send_too_early(a, 3);
	side_to_error(b);
	expect_forgotten(b);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
}

/* RESET: the next connection knows nothing of it, even if the timer fires late */
static void reset_meanwhile(struct kunit *test)
{
	const struct way *way = test->param_value;
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 i;

	send_too_early(a, 3);
	side_to_reset(b);
	expect_forgotten(b);
	KUNIT_EXPECT_FALSE(test, side_look(b));
	side_to_reset(a);
	/* An XRC queue lives on; what was sent and not taken is not there */
	if (way->config.type == IB_QPT_XRC_INI)
		return;
	for (i = 0; i < 2; i++) {
		side_to_init(&p->side[i]);
		side_to_rtr(&p->side[i]);
		side_to_rts(&p->side[i]);
	}
	post_send(a, 5);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, waits(b));
	post_recv(b, 5);
	side_look(b);
	expect_message(a, 5);
	side_expect_none(b);
}

/* --- memory that is lent to a request that waits --------------------------------- */

struct reset {
	struct side *s;
	struct completion done;
};

static int reset_thread(void *arg)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct reset *r = arg;

	sroce_qp_modify(r->s->qp, &attr, IB_QP_STATE, NULL);
	complete(&r->done);
	return 0;
}

static void begin_reset(struct reset *r, struct side *s)
{
	struct task_struct *t;

	r->s = s;
	init_completion(&r->done);
	t = kthread_run(reset_thread, r, "reset");
	KUNIT_ASSERT_FALSE(s->pair->test, IS_ERR(t));
}

/* However busy the machine is: it takes no longer than that, or for ever */
static void expect_reset(struct reset *r)
{
	struct kunit *test = r->s->pair->test;

	if (!wait_for_completion_timeout(&r->done, 60 * HZ)) {
		KUNIT_FAIL(test, "a reset waits for what nobody takes");
		sroce_half_run(&r->s->qp->resp.half);
		sroce_half_run(&pair_peer(r->s)->qp->resp.half);
		wait_for_completion(&r->done);
	}
	KUNIT_EXPECT_FALSE(test, sroce_qp_has_lent(r->s->qp));
	KUNIT_EXPECT_TRUE(test, list_empty(&r->s->qp->resp.half.inbox));
}

static void connect_to_itself(struct side *s)
{
	s->path.path.direct_ifindex = s->port.net.ifindex;
	s->path.path.dgid = s->path.path.sgid;
	s->qp->attr.dest_qp_num = s->qp->qpn;
	s->qp->resp.epsn = s->qp->req.next_psn;
}

/* Its own request waits for a receive when it is reset, and is dropped with that */
static void reset_of_itself(struct kunit *test)
{
	struct pair_config c = { .direct = true };
	struct pair *p = still_pair(test, &c);
	struct side *a = &p->side[0];
	struct reset reset;

	connect_to_itself(a);
	post_send(a, 0);
	pair_deliver(p);
	KUNIT_ASSERT_TRUE(test, waits(a));
	KUNIT_ASSERT_TRUE(test, sroce_qp_has_lent(a->qp));
	begin_reset(&reset, a);
	expect_reset(&reset);
}

/* Each has memory of the other one, and neither keeps that until it has its own back */
static void reset_of_both(struct kunit *test)
{
	struct pair_config c = { .direct = true };
	struct pair *p = still_pair(test, &c);
	struct reset resets[2];
	int i;

	for (i = 0; i < 2; i++)
		post_send(&p->side[i], 0);
	pair_deliver(p);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_TRUE(test, waits(&p->side[i]));
	for (i = 0; i < 2; i++)
		begin_reset(&resets[i], &p->side[i]);
	for (i = 0; i < 2; i++)
		expect_reset(&resets[i]);
}

static int destroy_thread(void *arg)
{
	struct reset *r = arg;

	sroce_qp_destroy(r->s->qp);
	r->s->qp = NULL;
	complete(&r->done);
	return 0;
}

/* Who is destroyed gets its memory back at once, and not when the receiver looks */
static void sender_is_destroyed(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct reset r = { .s = a };
	struct task_struct *t;

	send_too_early(a, 3);
	init_completion(&r.done);
	t = kthread_run(destroy_thread, &r, "destroy");
	KUNIT_ASSERT_FALSE(test, IS_ERR(t));
	if (wait_for_completion_timeout(&r.done, 60 * HZ))
		return;
	KUNIT_FAIL(test, "a sender that is destroyed waits for the receiver's next look");
	side_look(b);
	wait_for_completion(&r.done);
}

/* Too many wait already: the peer is told at the first look, and comes again */
static void too_many(struct kunit *test)
{
	long most = sroce_waiting_memory.most;
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	send_too_early(a, 1);
	sroce_waiting_memory.most = SZ_1K - 1;
	KUNIT_EXPECT_EQ(test, 1, look_in_vain(b));
	sroce_waiting_memory.most = most;
	pair_deliver(p);
	side_expect_send(a, 0, IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_waiting_memory.bytes));
}

/* Looks that a request is given while those of other QPs take @others, of its owner if so */
static u32 looks_beside(struct kunit *test, long others, bool owner)
{
	struct pair_config c = { .rnr_retry = -1 };
	struct pair *p = still_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_uncharged_part *part = &b->qp->resp.patience.memory;
	long most = sroce_waiting_memory.most, own = owner ? others : 0;
	u32 n;

	send_too_early(a, 1);
	sroce_waiting_memory.most = SZ_1M;
	atomic_long_add(others, &sroce_waiting_memory.bytes);
	atomic_long_add(own, part->owner);
	n = look_in_vain(b);
	atomic_long_sub(own, part->owner);
	atomic_long_sub(others, &sroce_waiting_memory.bytes);
	sroce_waiting_memory.most = most;
	KUNIT_EXPECT_EQ(test, 0, part->bytes);
	pair_exit(test);
	return n;
}

/* Who has many QPs whose requests wait leaves time to those of others */
static void owners_have_a_bound(struct kunit *test)
{
	u32 usual = looks_beside(test, 0, false);

	KUNIT_EXPECT_GT(test, usual, 1);
	KUNIT_EXPECT_EQ(test, usual, looks_beside(test, SZ_1M / 2, false));
	KUNIT_EXPECT_EQ(test, usual, looks_beside(test, SZ_1M / 4, true));
	KUNIT_EXPECT_EQ(test, 1, looks_beside(test, SZ_1M / 2, true));
}

/* Each that waits behind it is counted, and none when they have been taken */
static void counted(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	long bytes;
	int i;

	for (i = 0; i < 4; i++)
		post_send(a, i);
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_waiting_memory.bytes));
	KUNIT_EXPECT_TRUE(test, side_look(b));
	KUNIT_EXPECT_TRUE(test, waits(b));
	bytes = b->qp->resp.patience.memory.bytes;
	KUNIT_EXPECT_GE(test, bytes, 4 * SZ_1K);
	KUNIT_EXPECT_EQ(test, bytes, atomic_long_read(&sroce_waiting_memory.bytes));
	KUNIT_EXPECT_EQ(test, bytes, atomic_long_read(&b->qp->port->waiting));
	for (i = 0; i < 4; i++)
		post_recv(b, i);
	KUNIT_EXPECT_TRUE(test, side_look(b));
	KUNIT_EXPECT_FALSE(test, waits(b));
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_waiting_memory.bytes));
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&b->qp->port->waiting));
	pair_deliver(p);
	for (i = 0; i < 4; i++)
		expect_message(a, i);
}

/* pair_exit() finds that neither memory nor a path is held any more */
static void destroyed_meanwhile(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];

	send_too_early(a, 3);
	sroce_qp_destroy(b->qp);
	b->qp = NULL;
	pair_deliver(p);
	sroce_qp_destroy(a->qp);
	a->qp = NULL;
}

/*
 * More than is kept of a network's trains. The rest is asked for, once and after
 * what was kept has been taken.
 */
static void too_much_to_keep(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = -1, .mtu = IB_MTU_4096,
				 .window = 1024 };
	struct pair *p = still_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 len = 3 * KEPT_MOST;
	struct work w;

	side_fill(a, SRC, 10, 1);
	side_post(a, work_send(a, &w, 1, SRC, 10));
	side_fill(a, SRC, len, 2);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, SRC, DST, len));
	pair_deliver(p);
	KUNIT_ASSERT_TRUE(test, waits(b));
	KUNIT_EXPECT_LE(test, b->qp->resp.patience.kept, KEPT_MOST);
	KUNIT_EXPECT_GT(test, b->qp->resp.patience.kept, KEPT_MOST / 2);
	KUNIT_EXPECT_TRUE(test, b->qp->resp.patience.lost);
	side_recv(b, 3, DST + len, 10);
	side_look(b);
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.patience.kept);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_recv(b, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, 2));
	KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_PACKET_SEQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* A stream whose receiver is late each time keeps no more than is waiting */
static void late_each_time(struct kunit *test)
{
	struct pair *p = way_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 i;

	for (i = 0; i < 300; i++) {
		post_send(a, i % 8);
		pair_deliver(p);
		KUNIT_ASSERT_TRUE(test, waits(b));
		post_recv(b, i % 8);
		side_look(b);
		expect_message(a, i % 8);
	}
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.patience.kept);
	expect_unharmed(a);
}

/* The peer's ACK timeout, as far as it can be guessed, is four times as long */
static void short_timeout(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = -1, .timeout = 5 };
	struct pair *p = still_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	post_send(a, 0);
	fake_net_settle(&p->net);
	KUNIT_ASSERT_TRUE(test, waits(b));
	look_in_vain(b);
	KUNIT_EXPECT_LE(test, b->qp->resp.patience.waited, (4096 << 5) / 4);
}

/* After the RNR NAK it is not waited for the same request again */
static void told_at_once(struct kunit *test)
{
	struct pair_config c = { .rnr_retry = 3 };
	struct pair *p = still_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	post_send(a, 0);
	pair_deliver(p);
	look_in_vain(b);
	pair_deliver(p);
	KUNIT_ASSERT_TRUE(test, a->qp->req.rnr_wait);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, waits(b));
	KUNIT_EXPECT_TRUE(test, a->qp->req.rnr_wait);
	KUNIT_EXPECT_EQ(test, 2, side_count(b, SROCE_CNT_OUT_OF_BUFFER));
	post_recv(b, 0);
	expect_message(a, 0);
	/* ... but for the next one it is */
	post_send(a, 1);
	pair_deliver(p);
	KUNIT_EXPECT_TRUE(test, waits(b));
	post_recv(b, 1);
	side_look(b);
	expect_message(a, 1);
}

static struct kunit_case patience_cases[] = {
	KUNIT_CASE_PARAM(receive_comes, way_gen_params),
	KUNIT_CASE_PARAM(receive_is_there, way_gen_params),
	KUNIT_CASE_PARAM(receive_never_comes, way_gen_params),
	KUNIT_CASE_PARAM(others_wait_behind, way_gen_params),
	KUNIT_CASE_PARAM(immediate_waits, way_gen_params),
	KUNIT_CASE_PARAM(repeated_meanwhile, way_gen_params),
	KUNIT_CASE_PARAM(error_meanwhile, way_gen_params),
	KUNIT_CASE_PARAM(reset_meanwhile, way_gen_params),
	KUNIT_CASE_PARAM(destroyed_meanwhile, way_gen_params),
	KUNIT_CASE_PARAM(sender_is_destroyed, way_gen_params),
	KUNIT_CASE_PARAM(too_many, way_gen_params),
	KUNIT_CASE(owners_have_a_bound),
	KUNIT_CASE_PARAM(counted, way_gen_params),
	KUNIT_CASE_PARAM(late_each_time, way_gen_params),
	KUNIT_CASE(reset_of_itself),
	KUNIT_CASE(reset_of_both),
	KUNIT_CASE(too_much_to_keep),
	KUNIT_CASE(short_timeout),
	KUNIT_CASE(told_at_once),
	{}
};

static struct kunit_suite patience_suite = {
	.name = "sroce_patience",
	.exit = pair_exit,
	.test_cases = patience_cases,
};

kunit_test_suite(patience_suite);
