// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What must not be carried out: who is told of it and how (IBA 9.9, 10.10.2),
 * and what must not even be noticed.
 */
#include "tests/transport_pair.h"
#include "transport/pace.h"
#include "transport/requester.h"

#define SRC 0x1003
#define DST 0x80005
#define MTU 256

static struct pair *error_pair_way(struct kunit *test, bool direct)
{
	struct pair_config c = { .mtu = IB_MTU_256, .direct = direct };

	return pair_create(test, &c);
}

static struct pair *error_pair(struct kunit *test)
{
	return error_pair_way(test, false);
}

/* Places of the peer's memory stay as they were */
static bool untouched(struct side *s)
{
	return side_filled(s, DST, 5000, 4711);
}

static void post_good(struct side *a, u64 id)
{
	struct work w;

	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, id, SRC, 0, 10));
}

/* Request @first fails, those behind it up to @last are flushed, and that was the QP's end */
static void expect_failure(struct side *a, u64 first, u64 last,
			   enum ib_wc_status status)
{
	u64 id;

	side_expect_send(a, first, status);
	for (id = first + 1; id <= last; id++)
		side_expect_send(a, id, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(a->pair->test, IB_QPS_ERR, side_state(a));
}

/* --- requests that the peer refuses -------------------------------------- */

/**
 * struct refusal - a request that is refused
 * @name: of the case
 * @opcode: of the work request
 * @len: bytes
 * @spoil: makes it bad: changes the request, or something at the peer
 * @status: of the request at the sender
 * @recv: a receive is posted, and this is its status; 0: none is posted
 * @event: raised at the peer instead
 */
struct refusal {
	const char *name;
	u8 opcode;
	u32 len;
	void (*spoil)(struct side *peer, struct work *w);
	enum ib_wc_status status;
	enum ib_wc_status recv;
	enum ib_event_type event;
};

static void no_key(struct side *peer, struct work *w)
{
	w->wqe.rdma.rkey ^= 0x100;
}

static void no_key_byte(struct side *peer, struct work *w)
{
	w->wqe.rdma.rkey ^= 1;
}

static void no_atomic_key(struct side *peer, struct work *w)
{
	w->wqe.atomic.rkey ^= 1;
}

static void no_right(struct side *peer, struct work *w)
{
	peer->mr->access = IB_ACCESS_LOCAL_WRITE;
}

static void other_pd(struct side *peer, struct work *w)
{
	peer->qp->pd = &peer->other_pd;
}

static void out_of_bounds(struct side *peer, struct work *w)
{
	peer->mr->iova = (uintptr_t)peer->mem;
	peer->mr->length = DST + w->sge[0].length - 1;
}

static void before_bounds(struct side *peer, struct work *w)
{
	peer->mr->iova = (uintptr_t)peer->mem + DST + 1;
	peer->mr->length = 10000;
}

static void wraps(struct side *peer, struct work *w)
{
	peer->mr->iova = U64_MAX - 5000;
	peer->mr->length = 5000;
	w->wqe.rdma.remote_addr = U64_MAX - 10;
}

static void not_enabled(struct side *peer, struct work *w)
{
	peer->qp->attr.qp_access_flags = IB_ACCESS_LOCAL_WRITE;
}

static void no_resources(struct side *peer, struct work *w)
{
	peer->qp->attr.max_dest_rd_atomic = 0;
}

static void misaligned(struct side *peer, struct work *w)
{
	w->wqe.atomic.remote_addr += 4;
}

static void no_invalidate(struct side *peer, struct work *w)
{
	w->wqe.invalidate_rkey = peer->mr->key;
}

static const struct refusal refusals[] = {
	{ "write, unknown key", SROCE_WR_RDMA_WRITE, 10, no_key,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "write, old key", SROCE_WR_RDMA_WRITE, 1000, no_key_byte,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "write, region without right", SROCE_WR_RDMA_WRITE, 1000, no_right,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "write, other PD", SROCE_WR_RDMA_WRITE, 10, other_pd,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "write, one byte too far", SROCE_WR_RDMA_WRITE, 1000, out_of_bounds,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "write, before the region", SROCE_WR_RDMA_WRITE, 1000, before_bounds,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "write, around the end of memory", SROCE_WR_RDMA_WRITE, 20, wraps,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "write, not enabled", SROCE_WR_RDMA_WRITE, 1000, not_enabled,
	  IB_WC_REM_INV_REQ_ERR, 0, IB_EVENT_QP_REQ_ERR },
	{ "empty write, not enabled", SROCE_WR_RDMA_WRITE, 0, not_enabled,
	  IB_WC_REM_INV_REQ_ERR, 0, IB_EVENT_QP_REQ_ERR },
	{ "write with immediate, unknown key", SROCE_WR_RDMA_WRITE_IMM, 10,
	  no_key, IB_WC_REM_ACCESS_ERR, IB_WC_LOC_ACCESS_ERR },
	{ "read, unknown key", SROCE_WR_RDMA_READ, 10, no_key,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "read, region without right", SROCE_WR_RDMA_READ, 1000, no_right,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "read, other PD", SROCE_WR_RDMA_READ, 1000, other_pd,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "read, one byte too far", SROCE_WR_RDMA_READ, 1000, out_of_bounds,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "read, not enabled", SROCE_WR_RDMA_READ, 0, not_enabled,
	  IB_WC_REM_INV_REQ_ERR, 0, IB_EVENT_QP_REQ_ERR },
	{ "read, no resources", SROCE_WR_RDMA_READ, 10, no_resources,
	  IB_WC_REM_INV_REQ_ERR, 0, IB_EVENT_QP_REQ_ERR },
	{ "atomic, unknown key", SROCE_WR_FETCH_ADD, 8, no_atomic_key,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "atomic, region without right", SROCE_WR_CMP_SWAP, 8, no_right,
	  IB_WC_REM_ACCESS_ERR, 0, IB_EVENT_QP_ACCESS_ERR },
	{ "atomic, not enabled", SROCE_WR_FETCH_ADD, 8, not_enabled,
	  IB_WC_REM_INV_REQ_ERR, 0, IB_EVENT_QP_REQ_ERR },
	{ "atomic, no resources", SROCE_WR_CMP_SWAP, 8, no_resources,
	  IB_WC_REM_INV_REQ_ERR, 0, IB_EVENT_QP_REQ_ERR },
	{ "atomic, misaligned", SROCE_WR_FETCH_ADD, 8, misaligned,
	  IB_WC_REM_INV_REQ_ERR, 0, IB_EVENT_QP_REQ_ERR },
	{ "send, nothing to invalidate", SROCE_WR_SEND_INV, 10, no_invalidate,
	  IB_WC_REM_ACCESS_ERR, IB_WC_LOC_ACCESS_ERR },
};

static void refusal_name(const struct refusal *r, char *desc)
{
	strscpy(desc, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refusal, refusals, refusal_name);

static void refuse_build(struct side *a, struct work *w,
			 const struct refusal *r)
{
	if (r->opcode == SROCE_WR_SEND_INV) {
		work_send(a, w, 2, SRC, r->len);
		w->wqe.opcode = r->opcode;
		return;
	}
	work_rdma(a, w, r->opcode, 2, SRC, DST, r->len);
	if (r->opcode == SROCE_WR_CMP_SWAP || r->opcode == SROCE_WR_FETCH_ADD)
		work_atomic(a, w, DST + 3, 1, 1);
}

/* What came before is complete, what comes after is flushed, on both sides */
static void refused_way(struct kunit *test, bool direct)
{
	const struct refusal *r = test->param_value;
	struct pair *p = error_pair_way(test, direct);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_fill(b, DST, 5000, 4711);
	post_good(a, 1);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_recv(a, 10, 0, 10);
	if (r->recv)
		side_recv(b, 20, 0, 2000);
	post_good(b, 30);
	side_expect_send(b, 30, IB_WC_SUCCESS);

	refuse_build(a, &w, r);
	r->spoil(b, &w);
	side_post(a, &w);
	post_good(a, 3);
	work_send(a, &w, 4, SRC, 10);
	w.wqe.flags = 0;
	side_post(a, &w);
	expect_failure(a, 2, 4, r->status);
	side_expect_recv(a, 10, IB_WC_WR_FLUSH_ERR);
	if (r->recv)
		side_expect_recv(b, 20, r->recv);
	pair_settle(p);
	side_expect_none(a);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	if (r->opcode != SROCE_WR_SEND_INV)
		KUNIT_EXPECT_TRUE(test, untouched(b));
	if (!r->recv)
		KUNIT_EXPECT_EQ(test, 1, side_events(b, r->event));
	KUNIT_EXPECT_EQ(test, !r->recv, side_events(b, IB_EVENT_QP_REQ_ERR) +
			side_events(b, IB_EVENT_QP_ACCESS_ERR));
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_QP_FATAL));
	pair_exit(test);
}

static void refused(struct kunit *test)
{
	refused_way(test, false);
	refused_way(test, true);
}

/* Nothing is wrong with a transfer of nothing, whatever its key */
static void empty_needs_no_key(struct kunit *test)
{
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0];
	struct work w;

	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 0);
	w.wqe.rdma.rkey = 0;
	w.sge[0].lkey = 0;
	side_post(a, &w);
	work_rdma(a, &w, SROCE_WR_RDMA_READ, 2, SRC, DST, 0);
	w.wqe.rdma.rkey = 0;
	w.sge[0].lkey = 0;
	side_post(a, &w);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
}

/* A region that goes away in the middle of a WRITE */
static void key_lost_in_message(struct kunit *test)
{
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	p->net.batch = 1;
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 1000));
	fake_net_deliver(&p->net);
	fake_net_deliver(&p->net);
	side_fill(b, DST, 5000, 4711);
	b->mr->access = IB_ACCESS_LOCAL_WRITE;
	side_expect_send(a, 1, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, untouched(b));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_QP_ACCESS_ERR));
}

/* --- receives that do not fit -------------------------------------------- */

static void send_into(struct kunit *test, u32 len, struct ib_recv_wr *wr,
		      enum ib_wc_status status, enum ib_wc_status recv)
{
	struct side *b = &((struct pair *)test->priv)->side[1];
	struct side *a = pair_peer(b);
	struct work w;

	wr->wr_id = 7;
	KUNIT_ASSERT_EQ(test, 0, side_try_recv(b, wr));
	side_recv(b, 8, 0, 10);
	side_post(a, work_send(a, &w, 1, SRC, len));
	side_expect_send(a, 1, status);
	side_expect_recv(b, 7, recv);
	side_expect_recv(b, 8, IB_WC_WR_FLUSH_ERR);
	pair_settle(a->pair);
	side_expect_none(a);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_QP_REQ_ERR));
	KUNIT_EXPECT_TRUE(test, untouched(b));
	pair_exit(test);
}

static struct ib_sge recv_sge(struct pair *p, u32 len)
{
	return (struct ib_sge){
		.addr = (uintptr_t)p->side[1].mem + DST - len,
		.length = len,
		.lkey = p->side[1].mr->key,
	};
}

static void send_too_long(struct kunit *test)
{
	static const u32 lens[][2] = {
		{ 11, 10 }, { 1, 0 }, { MTU + 1, MTU }, { 1000, 10 },
		{ 1000, 999 }, { 4 * MTU, 3 * MTU },
	};
	struct ib_sge sge;
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		struct pair *p = error_pair(test);

		side_fill(&p->side[1], DST, 5000, 4711);
		sge = recv_sge(p, lens[i][1]);
		send_into(test, lens[i][0], &wr, IB_WC_REM_INV_REQ_ERR,
			  IB_WC_LOC_LEN_ERR);
	}
}

static void receive_with_bad_key(struct kunit *test)
{
	struct pair *p = error_pair(test);
	struct ib_sge sge = recv_sge(p, 1000);
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	side_fill(&p->side[1], DST, 5000, 4711);
	sge.lkey ^= 1;
	send_into(test, 1000, &wr, IB_WC_REM_OP_ERR, IB_WC_LOC_PROT_ERR);

	p = error_pair(test);
	sge = recv_sge(p, 1000);
	side_fill(&p->side[1], DST, 5000, 4711);
	p->side[1].mr->access = 0;
	send_into(test, 10, &wr, IB_WC_REM_OP_ERR, IB_WC_LOC_PROT_ERR);
}

/* A process may write anything into its ring */
static void receive_malformed(struct kunit *test)
{
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_recv_wqe *wqe;
	struct work w;

	side_recv(b, 7, DST, 100);
	wqe = sroce_ring_entry(&b->qp->resp.ring, 0);
	wqe->num_sge = 1000;
	side_post(a, work_send(a, &w, 1, SRC, 10));
	side_expect_send(a, 1, IB_WC_REM_OP_ERR);
	side_expect_recv(b, 7, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
}

/* --- packets that no sound sender sends ---------------------------------- */

/**
 * struct packet - one of a sequence of requests
 * @op: kind; 0 ends the sequence
 * @flags: place in the message
 * @len: payload
 * @dma_len: of its RETH
 */
struct packet {
	u8 op;
	u16 flags;
	u32 len;
	u32 dma_len;
};

#define ONLY (SROCE_START | SROCE_END)

/**
 * struct invalid - packets of which the last one is an invalid request
 * @name: of the case
 * @recv: a receive is posted, which the message is using
 * @packets: what is sent
 */
struct invalid {
	const char *name;
	bool recv;
	struct packet packets[4];
};

static const struct invalid invalids[] = {
	{ "middle of no send", false, { { SROCE_OP_SEND, 0, MTU } } },
	{ "end of no send", false, { { SROCE_OP_SEND, SROCE_END, 10 } } },
	{ "middle of no write", false, { { SROCE_OP_WRITE, 0, MTU } } },
	{ "end of no write", false, { { SROCE_OP_WRITE, SROCE_END, 10 } } },
	{ "send in send", true, { { SROCE_OP_SEND, SROCE_START, MTU },
				  { SROCE_OP_SEND, SROCE_START, MTU } } },
	{ "short send in send", true, { { SROCE_OP_SEND, SROCE_START, MTU },
					{ SROCE_OP_SEND, ONLY, 10 } } },
	{ "write in send", true, { { SROCE_OP_SEND, SROCE_START, MTU },
				   { SROCE_OP_WRITE, 0, MTU } } },
	{ "read in send", true, { { SROCE_OP_SEND, SROCE_START, MTU },
				  { SROCE_OP_READ, ONLY, 0, 10 } } },
	{ "send in write", false, { { SROCE_OP_WRITE, SROCE_START, MTU, 1000 },
				    { SROCE_OP_SEND, SROCE_END, 10 } } },
	{ "write in write", false, { { SROCE_OP_WRITE, SROCE_START, MTU, 1000 },
				     { SROCE_OP_WRITE, ONLY, 10, 10 } } },
	{ "atomic in write", false, { { SROCE_OP_WRITE, SROCE_START, MTU, 999 },
				      { SROCE_OP_FETCH_ADD, ONLY } } },
	{ "short first", false, { { SROCE_OP_SEND, SROCE_START, MTU - 1 } } },
	{ "long first", false, { { SROCE_OP_SEND, SROCE_START, MTU + 4 } } },
	{ "long only", false, { { SROCE_OP_SEND, ONLY, MTU + 1 } } },
	{ "short middle", true, { { SROCE_OP_SEND, SROCE_START, MTU },
				  { SROCE_OP_SEND, 0, MTU - 4 } } },
	{ "empty last", true, { { SROCE_OP_SEND, SROCE_START, MTU },
				{ SROCE_OP_SEND, SROCE_END, 0 } } },
	{ "long last", true, { { SROCE_OP_SEND, SROCE_START, MTU },
			       { SROCE_OP_SEND, SROCE_END, MTU + 1 } } },
	{ "write too short", false, { { SROCE_OP_WRITE, ONLY, 10, 11 } } },
	{ "write too long", false, { { SROCE_OP_WRITE, ONLY, 10, 9 } } },
	{ "write of one packet in two", false, {
		{ SROCE_OP_WRITE, SROCE_START, MTU, MTU } } },
	{ "write ends early", false, {
		{ SROCE_OP_WRITE, SROCE_START, MTU, 1000 },
		{ SROCE_OP_WRITE, SROCE_END, 100 } } },
	{ "write ends late", false, {
		{ SROCE_OP_WRITE, SROCE_START, MTU, 300 },
		{ SROCE_OP_WRITE, SROCE_END, 100 } } },
	{ "write goes on", false, {
		{ SROCE_OP_WRITE, SROCE_START, MTU, 300 },
		{ SROCE_OP_WRITE, 0, MTU } } },
	{ "write of more than 2 GiB", false, {
		{ SROCE_OP_WRITE, SROCE_START, MTU, 0x80000001 } } },
	{ "read of more than 2 GiB", false, {
		{ SROCE_OP_READ, ONLY, 0, 0x80000001 } } },
	{ "read with payload", false, { { SROCE_OP_READ, ONLY, 4, 4 } } },
	{ "atomic with payload", false, { { SROCE_OP_FETCH_ADD, ONLY, 8 } } },
	{ "flush of nothing named", false, { { SROCE_OP_FLUSH, ONLY, 0, 10 } } },
	{ "atomic write of seven", false, {
		{ SROCE_OP_ATOMIC_WRITE, ONLY, 7, 7 } } },
	{ "atomic write of nine", false, {
		{ SROCE_OP_ATOMIC_WRITE, ONLY, 9, 9 } } },
	{ "atomic write, one length wrong", false, {
		{ SROCE_OP_ATOMIC_WRITE, ONLY, 8, 16 } } },
	{ "atomic write, other length wrong", false, {
		{ SROCE_OP_ATOMIC_WRITE, ONLY, 16, 8 } } },
};

static void invalid_name(const struct invalid *i, char *desc)
{
	strscpy(desc, i->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(invalid, invalids, invalid_name);

static void inject_packet(struct side *from, const struct packet *packet,
			  u32 psn)
{
	struct sroce_train t = side_train(from, packet->op, psn);
	struct bio_vec bv;

	t.flags = packet->flags | SROCE_ACKREQ;
	t.dma_len = packet->dma_len;
	t.mtu = 2 * MTU;
	bvec_set_virt(&bv, from->mem, packet->len + 4);
	t.bv = &bv;
	t.bi.bi_size = packet->len;
	side_inject(from, &t);
}

static u32 inject_packets(struct side *from, const struct packet *packets)
{
	u32 psn = side_first_psn(from);

	while (packets->op) {
		inject_packet(from, packets++, psn++);
		fake_net_settle(&from->pair->net);
	}
	return psn - 1;
}

static void invalid_request(struct kunit *test)
{
	const struct invalid *i = test->param_value;
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	const struct fake_log *nak;
	u32 psn;

	side_fill(b, DST, 5000, 4711);
	if (i->recv)
		side_recv(b, 1, 0, 2000);
	post_good(b, 2);
	psn = inject_packets(a, i->packets);
	nak = side_sent_nth(b, SROCE_OP_ACK, SROCE_NAK_INV_REQ, 0);
	KUNIT_ASSERT_NOT_NULL(test, nak);
	KUNIT_EXPECT_EQ(test, psn, nak->psn);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	if (i->recv)
		side_expect_recv(b, 1, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, !i->recv, side_events(b, IB_EVENT_QP_REQ_ERR));
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_QP_ACCESS_ERR));
	/* A QP in error answers nothing */
	inject_packet(a, &(struct packet){ SROCE_OP_SEND, ONLY, 10 }, psn);
	fake_net_settle(&p->net);
	KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_ACK, SROCE_NAK_INV_REQ));
	KUNIT_EXPECT_TRUE(test, untouched(b));
}

/* --- packets that are nobody's ------------------------------------------- */

static void expect_unnoticed(struct pair *p)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 sent = p->net.sent;

	fake_net_settle(&p->net);
	KUNIT_EXPECT_EQ(p->test, sent, p->net.sent);
	KUNIT_EXPECT_EQ(p->test, IB_QPS_RTS, side_state(b));
	KUNIT_EXPECT_EQ(p->test, side_first_psn(a), b->qp->resp.epsn);
	KUNIT_EXPECT_EQ(p->test, 0, b->qp->resp.msn);
	side_expect_none(a);
	side_expect_none(b);
}

/* From another host, and to another of our addresses */
static void inject_strays(struct side *s, const struct sroce_train *t)
{
	struct fake_net *net = &s->pair->net;
	struct fake_path stray = {};

	fake_path_init(&stray, net, &s->port, 3, 2);
	KUNIT_EXPECT_TRUE(s->pair->test, fake_net_inject(&stray, t));
	fake_net_settle(net);
	fake_path_init(&stray, net, &s->port, 1, 3);
	KUNIT_EXPECT_TRUE(s->pair->test, fake_net_inject(&stray, t));
	fake_net_settle(net);
}

static void dropped_unnoticed(struct kunit *test)
{
	static const u8 others[] = { SROCE_UC, SROCE_XRC, SROCE_UD };
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_train good = side_train(a, SROCE_OP_SEND,
					     side_first_psn(a));
	struct sroce_train t;
	int i;

	side_recv(b, 1, 0, 10);
	/* Another service */
	t = good;
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		t.service = others[i];
		side_inject(a, &t);
	}
	expect_unnoticed(p);
	KUNIT_EXPECT_EQ(test, 3, side_count(b, SROCE_CNT_RX_DISCARDS));
	/* Another partition */
	t = good;
	t.pkey = 0x8001;
	side_inject(a, &t);
	t.pkey = 0;
	side_inject(a, &t);
	expect_unnoticed(p);
	KUNIT_EXPECT_EQ(test, 2, side_count(b, SROCE_CNT_RX_BAD_PKEY));
	inject_strays(a, &good);
	expect_unnoticed(p);
	KUNIT_EXPECT_EQ(test, 2, side_count(b, SROCE_CNT_RX_WRONG_PATH));
	/* Answers to what was never asked */
	side_inject_ack(a, SROCE_AETH_ACK_UNLIMITED, side_first_psn(b));
	side_inject_ack(a, SROCE_NAK_INV_REQ, side_first_psn(b));
	t = side_train(a, SROCE_OP_READ_RESP, side_first_psn(b));
	side_inject(a, &t);
	t.op = SROCE_OP_ATOMIC_ACK;
	side_inject(a, &t);
	expect_unnoticed(p);

	/* A limited member may talk to a full one */
	t = good;
	t.pkey = 0x7fff;
	side_inject(a, &t);
	side_expect_recv(b, 1, IB_WC_SUCCESS);
}

static void side_inject_write_at(struct side *s, u32 psn)
{
	struct sroce_train t = side_train(s, SROCE_OP_WRITE, psn & SROCE_PSN_MASK);

	t.flags = SROCE_START | SROCE_END;
	side_inject(s, &t);
}

/* Before it is connected a QP hears nothing */
static void not_connected(struct kunit *test)
{
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_to_reset(b);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, 0, 10));
	pair_deliver(p);
	side_to_init(b);
	KUNIT_EXPECT_TRUE(test, side_expire(a));
	pair_deliver(p);
	KUNIT_EXPECT_EQ(test, 2, p->net.sent);
	side_to_rtr(b);
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_COMM_EST));
	/* Nor does it learn of somebody who knows its number only */
	side_inject_write_at(a, side_first_psn(a) + 1000);
	side_inject_write_at(a, side_first_psn(a) - 1000);
	fake_net_deliver(&p->net);
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_COMM_EST));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	/* It must not send yet, but the consumer learns of the peer */
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_COMM_EST));
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, SRC, 0, 10));
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_COMM_EST));
	KUNIT_EXPECT_EQ(test, -EINVAL, side_try_post(b, &w));
	side_to_rts(b);
	side_post(b, work_rdma(b, &w, SROCE_WR_RDMA_WRITE, 3, SRC, 0, 10));
	side_expect_send(b, 3, IB_WC_SUCCESS);
}

/* --- work requests that cannot be sent ----------------------------------- */

struct local_error {
	const char *name;
	u8 opcode;
	u32 len;
	void (*spoil)(struct side *s, struct work *w);
	enum ib_wc_status status;
};

static void bad_lkey(struct side *s, struct work *w)
{
	w->sge[0].lkey ^= 0x100;
}

static void foreign_lkey(struct side *s, struct work *w)
{
	struct sroce_mr *mr = sroce_mr_alloc(&s->port.mrs, &s->other_pd,
					     SROCE_MR_DMA, 0);

	KUNIT_ASSERT_FALSE(s->pair->test, IS_ERR(mr));
	mr->access = PAIR_MR_ACCESS;
	sroce_mr_publish(mr);
	w->sge[0].lkey = mr->key;
	/* Its key may be named although it is gone */
	sroce_mr_free(mr);
}

static void bad_second_lkey(struct side *s, struct work *w)
{
	work_local(s, w, 0, 1000);
	w->sge[1].lkey ^= 1;
}

static void no_local_write(struct side *s, struct work *w)
{
	s->mr->access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
}

static void too_many_elements(struct side *s, struct work *w)
{
	w->wqe.num_sge = SROCE_MAX_SGE + 1;
}

static void inline_too_long(struct side *s, struct work *w)
{
	w->wqe.num_sge = 0;
	w->wqe.flags |= SROCE_SEND_INLINE;
	w->wqe.inline_len = SROCE_MAX_INLINE + 1;
	w->inline_data = s->mem;
}

static void inline_and_elements(struct side *s, struct work *w)
{
	w->wqe.flags |= SROCE_SEND_INLINE;
	w->wqe.inline_len = 10;
	w->inline_data = s->mem;
}

static void inline_read(struct side *s, struct work *w)
{
	inline_and_elements(s, w);
	w->wqe.num_sge = 0;
}

static void too_long(struct side *s, struct work *w)
{
	w->sge[0].length = 1U << 31;
	work_local(s, w, 0, 1);
}

static void far_too_long(struct side *s, struct work *w)
{
	w->sge[0].length = U32_MAX;
	work_local(s, w, 0, U32_MAX);
	work_local(s, w, 0, 2);
}

static void not_eight(struct side *s, struct work *w)
{
	w->sge[0].length = 7;
}

static void nothing(struct side *s, struct work *w)
{
}

static void long_flush(struct side *s, struct work *w)
{
	w->wqe.flush.length = 1ULL << 32;
}

static void no_initiator_depth(struct side *s, struct work *w)
{
	s->qp->attr.max_rd_atomic = 0;
}

static void foreign_region(struct side *s, struct work *w)
{
	w->wqe.reg.mr = (uintptr_t)s->mr;
	w->wqe.reg.key = s->mr->key;
}

static void unknown_region(struct side *s, struct work *w)
{
	w->wqe.invalidate_rkey = 0x1234567;
}

static const struct local_error local_errors[] = {
	{ "unknown key", SROCE_WR_RDMA_WRITE, 10, bad_lkey,
	  IB_WC_LOC_PROT_ERR },
	{ "freed key", SROCE_WR_SEND, 10, foreign_lkey, IB_WC_LOC_PROT_ERR },
	{ "second element's key", SROCE_WR_RDMA_WRITE, 1000, bad_second_lkey,
	  IB_WC_LOC_PROT_ERR },
	{ "no right to write", SROCE_WR_RDMA_READ, 10, no_local_write,
	  IB_WC_LOC_PROT_ERR },
	{ "no right to write an atomic", SROCE_WR_FETCH_ADD, 8, no_local_write,
	  IB_WC_LOC_PROT_ERR },
	{ "too many elements", SROCE_WR_SEND, 10, too_many_elements,
	  IB_WC_LOC_QP_OP_ERR },
	{ "too much inline", SROCE_WR_SEND, 10, inline_too_long,
	  IB_WC_LOC_QP_OP_ERR },
	{ "inline and elements", SROCE_WR_SEND, 10, inline_and_elements,
	  IB_WC_LOC_QP_OP_ERR },
	{ "inline read", SROCE_WR_RDMA_READ, 10, inline_read,
	  IB_WC_LOC_QP_OP_ERR },
	{ "more than 2 GiB", SROCE_WR_RDMA_WRITE, 10, too_long,
	  IB_WC_LOC_LEN_ERR },
	{ "more than 4 GiB", SROCE_WR_RDMA_READ, 10, far_too_long,
	  IB_WC_LOC_LEN_ERR },
	{ "atomic of seven", SROCE_WR_CMP_SWAP, 8, not_eight,
	  IB_WC_LOC_LEN_ERR },
	{ "unknown operation", 99, 10, nothing, IB_WC_LOC_QP_OP_ERR },
	{ "bind of what is no window", SROCE_WR_BIND_MW, 0, nothing,
	  IB_WC_MW_BIND_ERR },
	{ "flush of elements", SROCE_WR_FLUSH, 10, nothing,
	  IB_WC_LOC_LEN_ERR },
	{ "flush of too much", SROCE_WR_FLUSH, 0, long_flush,
	  IB_WC_LOC_LEN_ERR },
	{ "atomic write of nine", SROCE_WR_ATOMIC_WRITE, 9, nothing,
	  IB_WC_LOC_LEN_ERR },
	{ "atomic write, unknown key", SROCE_WR_ATOMIC_WRITE, 8, bad_lkey,
	  IB_WC_LOC_PROT_ERR },
	{ "atomic write at depth 0", SROCE_WR_ATOMIC_WRITE, 8,
	  no_initiator_depth, IB_WC_LOC_QP_OP_ERR },
	{ "read at depth 0", SROCE_WR_RDMA_READ, 10, no_initiator_depth,
	  IB_WC_LOC_QP_OP_ERR },
	{ "atomic at depth 0", SROCE_WR_FETCH_ADD, 8, no_initiator_depth,
	  IB_WC_LOC_QP_OP_ERR },
	{ "registering what is no region", SROCE_WR_REG_MR, 0, foreign_region,
	  IB_WC_LOC_QP_OP_ERR },
	{ "invalidating what is no region", SROCE_WR_LOCAL_INV, 0,
	  unknown_region, IB_WC_LOC_QP_OP_ERR },
};

static void local_error_name(const struct local_error *e, char *desc)
{
	strscpy(desc, e->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(local_error, local_errors, local_error_name);

/* Earlier requests complete first; nothing of later ones is sent */
static void local_failure(struct kunit *test)
{
	const struct local_error *e = test->param_value;
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_recv(a, 10, 0, 10);
	side_fill(b, DST, 5000, 4711);
	post_good(a, 1);
	if (e->len || e->opcode == SROCE_WR_BIND_MW)
		work_rdma(a, &w, e->opcode, 2, SRC, 0, e->len);
	else
		work_init(&w, e->opcode, 2);
	if (e->opcode == SROCE_WR_CMP_SWAP || e->opcode == SROCE_WR_FETCH_ADD)
		work_atomic(a, &w, 0, 0, 0);
	e->spoil(a, &w);
	side_post(a, &w);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 3, SRC, DST, 10));
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 4, SRC, DST, 10);
	w.wqe.flags = 0;
	side_post(a, &w);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	expect_failure(a, 2, 4, e->status);
	side_expect_recv(a, 10, IB_WC_WR_FLUSH_ERR);
	pair_settle(p);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	/* A READ was on its way already, and so was what followed it */
	if (e->opcode != SROCE_WR_RDMA_READ && e->opcode != SROCE_WR_FETCH_ADD)
		KUNIT_EXPECT_TRUE(test, untouched(b));
}

/* --- responses that are wrong -------------------------------------------- */

static void answer(struct kunit *test, u8 opcode, u32 len, u8 response,
		   u32 response_len)
{
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct packet packet = { response, ONLY, response_len };
	struct work w;

	work_rdma(a, &w, opcode, 1, DST, 0, len);
	if (opcode == SROCE_WR_FETCH_ADD)
		work_atomic(a, &w, 0, 1, 0);
	side_post(a, &w);
	post_good(a, 2);
	fake_net_purge(&p->net);
	inject_packet(b, &packet, side_first_psn(a));
	expect_failure(a, 1, 2, IB_WC_BAD_RESP_ERR);
	pair_exit(test);
}

static void bad_responses(struct kunit *test)
{
	answer(test, SROCE_WR_RDMA_READ, 100, SROCE_OP_READ_RESP, 99);
	answer(test, SROCE_WR_RDMA_READ, 100, SROCE_OP_READ_RESP, 101);
	answer(test, SROCE_WR_RDMA_READ, 100, SROCE_OP_READ_RESP, 0);
	answer(test, SROCE_WR_RDMA_READ, 1000, SROCE_OP_READ_RESP, 100);
	answer(test, SROCE_WR_RDMA_READ, 100, SROCE_OP_ATOMIC_ACK, 0);
	answer(test, SROCE_WR_FETCH_ADD, 8, SROCE_OP_READ_RESP, 8);
}

static bool no_more(struct sroce_rx *rx)
{
	return false;
}

/* Packets @k to @k + @n - 1 of the response to a READ, as one train */
static void respond(struct side *to, u32 k, u32 n)
{
	struct side *from = pair_peer(to);
	struct sroce_rx_info info = {
		.sgid = from->path.path.sgid,
		.dgid = from->path.path.dgid,
		.net_cookie = FAKE_NET_COOKIE,
		.network_hdr_type = RDMA_NETWORK_IPV4,
	};
	struct sroce_rx rx = {
		.t = side_train(from, SROCE_OP_READ_RESP,
				side_first_psn(to) + k),
		.info = &info,
		.next = no_more,
	};
	struct bio_vec bv;

	bvec_set_virt(&bv, from->mem, n * MTU);
	rx.t.bv = &bv;
	rx.t.bi.bi_size = n * MTU;
	rx.t.npkts = n;
	rx.t.flags = k ? 0 : SROCE_START;
	sroce_receive(to->qp, &rx);
}

/*
 * A long READ is asked for in requests of 64 packets. A response that goes on behind
 * the end of the first one would be taken for that of the second, which is on its
 * way as well (@depth 2) or was not even sent (1).
 */
static void long_response(struct kunit *test, u32 depth)
{
	struct pair_config c = {
		.mtu = IB_MTU_256,
		.window = 64 * depth,
		.rd_atomic = depth,
	};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct work w;

	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, DST, SRC,
			       128 * MTU));
	post_good(a, 2);
	KUNIT_EXPECT_EQ(test, depth, a->qp->req.rd_outstanding);
	fake_net_purge(&p->net);
	respond(a, 0, 40);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, depth, a->qp->req.rd_outstanding);
	respond(a, 40, 30);
	expect_failure(a, 1, 2, IB_WC_BAD_RESP_ERR);
	pair_exit(test);
}

/*
 * The second request waits for its time. Its answer may not come before it, not even
 * behind the end of a train that is nothing new in its first packet.
 */
static void response_to_nothing(struct kunit *test)
{
	struct pair_config c = {
		.mtu = IB_MTU_256,
		.window = 64,
		.rd_atomic = 1,
	};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct sroce_requester *req = &a->qp->req;
	struct work w;

	sroce_pace_set(&req->pace, 1);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, DST, SRC,
			       128 * MTU));
	fake_net_purge(&p->net);
	respond(a, 0, 64);
	KUNIT_EXPECT_EQ(test, side_first_psn(a) + 64, req->una_psn);
	KUNIT_EXPECT_EQ(test, req->next_psn, req->una_psn);
	respond(a, 63, 20);
	KUNIT_EXPECT_EQ(test, req->next_psn, req->una_psn);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	side_expect_none(a);
}

static void responses_too_long(struct kunit *test)
{
	long_response(test, 2);
	long_response(test, 1);
}

/* Whatever a NAK says, what was sent before it has arrived */
static void naks_acknowledge(struct kunit *test)
{
	static const u8 syndromes[][2] = {
		{ SROCE_NAK_INV_REQ, IB_WC_REM_INV_REQ_ERR },
		{ SROCE_NAK_REM_ACCESS, IB_WC_REM_ACCESS_ERR },
		{ SROCE_NAK_REM_OP, IB_WC_REM_OP_ERR },
	};
	int i, k;

	for (i = 0; i < ARRAY_SIZE(syndromes); i++) {
		struct pair *p = error_pair(test);
		struct side *a = &p->side[0], *b = &p->side[1];

		for (k = 0; k < 5; k++)
			post_good(a, k);
		fake_net_purge(&p->net);
		side_inject_ack(b, syndromes[i][0], side_first_psn(a) + 2);
		side_expect_send(a, 0, IB_WC_SUCCESS);
		side_expect_send(a, 1, IB_WC_SUCCESS);
		expect_failure(a, 2, 4, syndromes[i][1]);
		pair_exit(test);
	}
}

/*
 * A request was sent well, but its memory has gone when it must be sent again.
 * Responses to later ones must not complete these.
 */
static void cannot_send_again(struct kunit *test)
{
	struct pair *p = error_pair(test);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_mr *mr;
	struct work w;

	mr = sroce_mr_alloc(&a->port.mrs, &a->pd, SROCE_MR_DMA, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mr->access = PAIR_MR_ACCESS;
	sroce_mr_publish(mr);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 10);
	w.sge[0].lkey = mr->key;
	side_post(a, &w);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 2, SRC, DST, 10));
	sroce_mr_free(mr);
	fake_net_purge(&p->net);
	/* The response comes, as if nothing had been lost; so does a restart */
	spin_lock_bh(&a->qp->req.half.lock);
	sroce_swqe_at(&a->qp->req, 0)->status = IB_WC_LOC_PROT_ERR;
	spin_unlock_bh(&a->qp->req.half.lock);
	inject_packet(b, &(struct packet){ SROCE_OP_READ_RESP, ONLY, 10 },
		      side_first_psn(a) + 1);
	expect_failure(a, 1, 2, IB_WC_LOC_PROT_ERR);
}

static struct kunit_case error_cases[] = {
	KUNIT_CASE_PARAM(refused, refusal_gen_params),
	KUNIT_CASE(empty_needs_no_key),
	KUNIT_CASE(key_lost_in_message),
	KUNIT_CASE(send_too_long),
	KUNIT_CASE(receive_with_bad_key),
	KUNIT_CASE(receive_malformed),
	KUNIT_CASE_PARAM(invalid_request, invalid_gen_params),
	KUNIT_CASE(dropped_unnoticed),
	KUNIT_CASE(not_connected),
	KUNIT_CASE_PARAM(local_failure, local_error_gen_params),
	KUNIT_CASE(bad_responses),
	KUNIT_CASE(responses_too_long),
	KUNIT_CASE(response_to_nothing),
	KUNIT_CASE(naks_acknowledge),
	KUNIT_CASE(cannot_send_again),
	{}
};

static struct kunit_suite error_suite = {
	.name = "sroce_transport_errors",
	.exit = pair_exit,
	.test_cases = error_cases,
};

kunit_test_suite(error_suite);
