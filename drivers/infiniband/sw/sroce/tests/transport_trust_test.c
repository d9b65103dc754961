// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who may say what: a process's work requests are a process's, by whatever queue
 * they come and whichever QP carries them out; and a stranger's datagrams end no QP.
 */
#include "lock.h"
#include "tests/transport_pair.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/run.h"
#include "turn.h"

#define SRC 0x1000
#define DST 0x80000
#define LEN 600

static struct ib_sge all_of_kernel(struct side *s, u32 off, u32 len)
{
	return (struct ib_sge){
		.addr = (uintptr_t)s->mem + off,
		.length = len,
		.lkey = SROCE_LOCAL_DMA_LKEY,
	};
}

static const bool shared_or_not[] = { false, true };

static void shared_name(const bool *srq, char *desc)
{
	strscpy(desc, *srq ? "shared queue" : "own queue",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shared, shared_or_not, shared_name);

/* --- the reserved key in a receive work request ------------------------------ */

/* @qp: whose the receiving QP is; @srq: with a shared queue; @queue: whose that is */
struct receiver {
	const char *name;
	enum ib_qp_type type;
	bool srq;
	bool user_qp;
	bool user_queue;
};

static const struct receiver receivers[] = {
	{ "RC, kernel's", IB_QPT_RC },
	{ "RC, process's", IB_QPT_RC, .user_qp = true, .user_queue = true },
	{ "UC, process's", IB_QPT_UC, .user_qp = true, .user_queue = true },
	{ "RC, kernel's shared queue", IB_QPT_RC, .srq = true },
	{ "RC, process's shared queue", IB_QPT_RC, .srq = true, .user_qp = true,
	  .user_queue = true },
	{ "RC, the QP is the kernel's", IB_QPT_RC, .srq = true,
	  .user_queue = true },
	{ "RC, the queue is the kernel's", IB_QPT_RC, .srq = true,
	  .user_qp = true },
	{ "UC, process's shared queue", IB_QPT_UC, .srq = true, .user_qp = true,
	  .user_queue = true },
	/* ib_core makes the target, as if it were the kernel's */
	{ "XRC, process's queue", IB_QPT_XRC_INI, .srq = true, .user_qp = true,
	  .user_queue = true },
};

static void receiver_name(const struct receiver *r, char *desc)
{
	strscpy(desc, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(receiver, receivers, receiver_name);

static void reserved_key_received(struct kunit *test)
{
	const struct receiver *r = test->param_value;
	struct pair_config c = { .type = r->type, .srq = r->srq };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_sge sge = all_of_kernel(b, DST, LEN);
	struct ib_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };
	struct work w;

	if (r->type != IB_QPT_XRC_INI)
		b->qp->user = r->user_qp;
	KUNIT_EXPECT_EQ(test, r->user_qp, b->qp->user);
	b->srq.user = r->user_queue;
	sroce_lock_init(&b->srq.lock, b->srq.user);
	KUNIT_ASSERT_EQ(test, 0, side_try_recv(b, &wr));
	side_fill(a, SRC, LEN, 1);
	side_post(a, work_send(a, &w, 1, SRC, LEN));
	side_expect_recv(b, 7, r->user_queue ? IB_WC_LOC_PROT_ERR :
					       IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, !r->user_queue, side_filled(b, DST, LEN, 1));
}

/* --- in a send work request ---------------------------------------------------- */

static const u8 sends[] = {
	SROCE_WR_SEND, SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_READ,
	SROCE_WR_FETCH_ADD, SROCE_WR_ATOMIC_WRITE,
};

static void reserved_key_sent(struct kunit *test)
{
	struct pair_config c = {};
	struct work w;
	int i;

	for (i = 0; i < 2 * ARRAY_SIZE(sends); i++) {
		struct pair *p = pair_create(test, &c);
		struct side *a = &p->side[0], *b = &p->side[1];
		u8 op = sends[i / 2];

		a->qp->user = i & 1;
		side_recv(b, 1, DST, 8);
		side_fill(b, DST, 8, 3);
		side_fill(a, SRC, 8, 4);
		work_rdma(a, &w, op, 9, SRC, DST, 8);
		if (op == SROCE_WR_FETCH_ADD)
			work_atomic(a, &w, DST, 0, 0);
		w.sge[0].lkey = SROCE_LOCAL_DMA_LKEY;
		side_post(a, &w);
		side_expect_send(a, 9, a->qp->user ? IB_WC_LOC_PROT_ERR :
						     IB_WC_SUCCESS);
		/* Neither read nor written */
		if (a->qp->user) {
			KUNIT_EXPECT_TRUE(test, side_filled(a, SRC, 8, 4));
			KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 8, 3));
		}
		pair_exit(test);
	}
}

/* --- what is reserved -------------------------------------------------------------- */

#define WORDS (sizeof(struct sroce_send_wqe) / sizeof(u32))
#define WORD(field) (offsetof(struct sroce_send_wqe, field) / sizeof(u32))
#define ARGS(n) (BIT(WORD(room) + (n)) - BIT(WORD(room)))

/* An operation of a type of QP, and which words it uses: all have the first three */
struct operation {
	enum ib_qp_type type;
	u8 opcode;
	u32 used;
};

static const struct operation operations[] = {
	{ IB_QPT_RC, SROCE_WR_RDMA_WRITE, ARGS(3) },
	{ IB_QPT_RC, SROCE_WR_RDMA_WRITE_IMM, ARGS(3) | BIT(WORD(imm_data)) },
	{ IB_QPT_RC, SROCE_WR_SEND, 0 },
	{ IB_QPT_RC, SROCE_WR_SEND_IMM, BIT(WORD(imm_data)) },
	{ IB_QPT_RC, SROCE_WR_RDMA_READ, ARGS(3) },
	{ IB_QPT_RC, SROCE_WR_CMP_SWAP, ARGS(7) },
	{ IB_QPT_RC, SROCE_WR_FETCH_ADD, ARGS(7) },
	{ IB_QPT_RC, SROCE_WR_LOCAL_INV, BIT(WORD(invalidate_rkey)) },
	{ IB_QPT_RC, SROCE_WR_BIND_MW, ARGS(8) },
	{ IB_QPT_RC, SROCE_WR_SEND_INV, BIT(WORD(invalidate_rkey)) },
	{ IB_QPT_RC, SROCE_WR_FLUSH, ARGS(7) },
	{ IB_QPT_RC, SROCE_WR_ATOMIC_WRITE, ARGS(3) },
	{ IB_QPT_UC, SROCE_WR_SEND, 0 },
	{ IB_QPT_UD, SROCE_WR_SEND, ARGS(3) },
	{ IB_QPT_UD, SROCE_WR_SEND_IMM, ARGS(3) | BIT(WORD(imm_data)) },
	{ IB_QPT_XRC_INI, SROCE_WR_SEND, BIT(WORD(remote_srqn)) },
};

static void post_with(struct kunit *test, const struct operation *o, u32 word,
		      u16 flags)
{
	struct pair_config c = { .type = o->type };
	struct pair *p = pair_create(test, &c);
	struct work w;

	work_init(&w, o->opcode, 1);
	w.wqe.flags |= flags;
	if (word)
		((u32 *)&w.wqe)[word] = 1;
	side_post(&p->side[0], &w);
	side_expect_send(&p->side[0], 1, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ_MSG(test, 0, p->net.sent, "opcode %u, word %u",
			    o->opcode, word);
	pair_exit(test);
}

/* What means nothing today is refused today: or it could never mean anything */
static void reserved_fields(struct kunit *test)
{
	u32 i, word;

	for (i = 0; i < ARRAY_SIZE(operations); i++)
		for (word = WORD(imm_data); word < WORDS; word++)
			if (!(operations[i].used & BIT(word)))
				post_with(test, &operations[i], word, 0);
}

static void reserved_flags(struct kunit *test)
{
	u16 flag;

	for (flag = SROCE_SEND_INLINE << 1; flag; flag <<= 1)
		post_with(test, &operations[0], 0, flag);
}

/* What a FLUSH has no room for on the wire, and data where there is none */
static void reserved_values(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p;
	struct work w;
	int i;

	for (i = 0; i < 4; i++) {
		p = pair_create(test, &c);
		work_init(&w, i < 2 ? SROCE_WR_FLUSH : SROCE_WR_LOCAL_INV, 1);
		if (i == 0)
			w.wqe.flush.placement = 0x11;
		else if (i == 1)
			w.wqe.flush.selectivity = 4;
		else if (i == 2)
			work_local(&p->side[0], &w, SRC, 1);
		else
			w.wqe.flags |= SROCE_SEND_INLINE;
		side_post(&p->side[0], &w);
		side_expect_send(&p->side[0], 1, IB_WC_LOC_QP_OP_ERR);
		pair_exit(test);
	}
}

static void reserved_in_receive(struct kunit *test)
{
	const bool *srq = test->param_value;
	struct pair_config c = { .srq = *srq };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_recv_wqe *wqe;
	struct work w;

	side_recv(b, 2, DST, LEN);
	wqe = sroce_ring_entry(*srq ? &b->srq.ring : &b->qp->resp.ring, 0);
	wqe->reserved = 1;
	side_post(a, work_send(a, &w, 1, SRC, LEN));
	side_expect_recv(b, 2, IB_WC_LOC_QP_OP_ERR);
	side_expect_send(a, 1, IB_WC_REM_OP_ERR);
}

/* --- datagrams, which anybody may send ------------------------------------------ */

#define GRH 40
#define MAD 256

static struct sroce_train datagram(struct side *from, struct bio_vec *bv,
				   u32 len)
{
	struct sroce_train t = side_train(from, SROCE_OP_SEND, 0);

	side_fill(from, SRC, len, len);
	bvec_set_virt(bv, from->mem + SRC, len);
	t.bv = bv;
	t.bi.bi_size = len;
	return t;
}

static void send_datagram(struct side *from, u32 len)
{
	struct bio_vec bv;
	struct sroce_train t = datagram(from, &bv, len);

	side_inject(from, &t);
	fake_net_settle(&from->pair->net);
}

/* The keys are of the queue's domain, not of that of whoever receives from it */
static void domain_of_queue(struct kunit *test)
{
	struct pair_config c = { .srq = true };
	struct work w;
	int i;

	for (i = 0; i < 2; i++) {
		struct pair *p = pair_create(test, &c);
		struct side *a = &p->side[0], *b = &p->side[1];

		if (i)
			b->srq.ibsrq.pd = &b->other_pd;
		else
			b->qp->pd = &b->other_pd;
		side_recv(b, 7, DST, LEN);
		side_post(a, work_send(a, &w, 1, SRC, LEN));
		side_expect_recv(b, 7, i ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS);
		pair_exit(test);
	}
}

/* Nobody is connected to it: what it must not believe it must not believe anybody */
static void reserved_key_of_datagram(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_UD };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_sge sge = all_of_kernel(b, DST, GRH + LEN);
	struct ib_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };

	KUNIT_ASSERT_EQ(test, 0, side_try_recv(b, &wr));
	send_datagram(a, LEN);
	side_expect_recv(b, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST + GRH, LEN, LEN));

	memset(b->mem + DST, 0, GRH + LEN);
	b->qp->user = true;
	KUNIT_ASSERT_EQ(test, 0, side_try_recv(b, &wr));
	send_datagram(a, LEN);
	side_expect_recv(b, 7, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_NULL(test, memchr_inv(b->mem + DST, 0, GRH + LEN));
}

/* The receive work request stays, wherever it came from, and so does the QP */
static void datagram_too_long(struct kunit *test)
{
	const bool *srq = test->param_value;
	struct pair_config c = { .type = IB_QPT_UD, .srq = *srq };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	b->srq.limit = 2;
	side_recv(b, 1, DST, GRH + LEN);
	side_recv(b, 2, DST, GRH + 2 * LEN);
	for (i = 1; i < 1000; i += 99) {
		send_datagram(a, LEN + i);
		side_expect_none(b);
	}
	KUNIT_EXPECT_EQ(test, 11,
			side_count(b, SROCE_CNT_RESP_LOCAL_LENGTH_ERROR));
	KUNIT_EXPECT_EQ(test, 0, side_count(b, SROCE_CNT_RESP_CQE_ERROR));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	KUNIT_EXPECT_EQ(test, 0, side_events(b, IB_EVENT_SRQ_LIMIT_REACHED));
	send_datagram(a, LEN);
	side_expect_recv(b, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST + GRH, LEN, LEN));
	KUNIT_EXPECT_EQ(test, *srq, side_events(b, IB_EVENT_SRQ_LIMIT_REACHED));
	send_datagram(a, LEN + 1);
	side_expect_recv(b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST + GRH, LEN + 1, LEN + 1));
}

static bool no_rx_next(struct sroce_rx *rx)
{
	return false;
}

static void send_to_gsi(struct sroce_qp *gsi, struct side *from, u32 len)
{
	struct sroce_rx_info info = {
		.net_cookie = FAKE_NET_COOKIE,
		.vlan_id = 0xffff,
	};
	struct sroce_rx rx = { .info = &info, .next = no_rx_next };
	struct bio_vec bv;

	rx.t = datagram(from, &bv, len);
	rx.t.qkey = 0x80010000;
	rx.t.dqpn = SROCE_QPN_GSI;
	sroce_receive(gsi, &rx);
}

/* One receive for a MAD is posted; @less bytes are lacking */
static void gsi_recv(struct sroce_qp *gsi, struct side *s, u32 less)
{
	struct ib_sge sge = all_of_kernel(s, DST, GRH + MAD - less);
	struct ib_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	KUNIT_ASSERT_EQ(s->pair->test, 0, sroce_qp_post_recv(gsi, &wr, &bad));
}

static struct sroce_qp *gsi_make(struct side *s)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_GSI,
		.cap = { .max_recv_wr = 4, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	struct sroce_qp *gsi = side_another_qp(s, NULL, &init);

	KUNIT_EXPECT_EQ(s->pair->test, 0,
			sroce_qp_modify(gsi, &attr, IB_QP_STATE, NULL));
	return gsi;
}

/*
 * The management queue pair of a device lives as long as the device: without it
 * nobody connects. What is no MAD is nothing to it, and of one too short the
 * consumer would read the end of an older one.
 */
static void gsi_survives(struct kunit *test)
{
	static const u32 lens[] = { 0, 1, 24, MAD - 1, MAD + 1, 1024, 4096 };
	struct pair_config c = { .type = IB_QPT_UD };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_qp *gsi = gsi_make(b);
	struct ib_wc wc;
	int i;

	gsi_recv(gsi, b, 0);
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		send_to_gsi(gsi, a, lens[i]);
	KUNIT_EXPECT_FALSE(test, side_poll(&b->rcq, &wc));
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(lens),
			side_count(b, SROCE_CNT_RX_DISCARDS));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTR, sroce_qp_state(gsi));
	send_to_gsi(gsi, a, MAD);
	KUNIT_EXPECT_TRUE(test, side_poll(&b->rcq, &wc));
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, GRH + MAD, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST + GRH, MAD, MAD));
	/* A mistake of its own consumer, but not its end */
	gsi_recv(gsi, b, 1);
	send_to_gsi(gsi, a, MAD);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTR, sroce_qp_state(gsi));
	sroce_qp_destroy(gsi);
}

/* --- another process of this host ------------------------------------------------ */

/* Another QP of a side's host, connected to the peer of the side's own one */
static struct sroce_qp *impostor_make(struct side *s, enum ib_qp_type type)
{
	struct ib_qp_init_attr init = {
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_send_sge = SROCE_MAX_SGE },
	};
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.path_mtu = s->pair->config.mtu,
		.dest_qp_num = pair_peer(s)->qp->qpn,
		.sq_psn = side_first_psn(s),
		.rq_psn = side_first_psn(pair_peer(s)),
		.timeout = 20,
		.max_rd_atomic = 1,
	};
	struct sroce_qp *qp = side_another_qp(s, NULL, &init);

	KUNIT_EXPECT_EQ(s->pair->test, 0,
			sroce_qp_modify(qp, &attr, IB_QP_STATE | IB_QP_AV |
					IB_QP_PATH_MTU | IB_QP_DEST_QPN |
					IB_QP_SQ_PSN | IB_QP_RQ_PSN |
					IB_QP_TIMEOUT | IB_QP_MAX_QP_RD_ATOMIC,
					sroce_path_get(&s->path.path)));
	return qp;
}

/* With the right PSN, key and address, but not the peer */
static void direct_impostor(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC };
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct pair_config c = { .type = types[i], .direct = true };
		struct pair *p = pair_create(test, &c);
		struct side *a = &p->side[0], *b = &p->side[1];
		struct sroce_qp *own = a->qp, *other;
		struct work w;

		other = impostor_make(a, types[i]);
		side_fill(a, SRC, LEN, 1);
		/* Posted as by the side's own QP, but to the other one */
		a->qp = other;
		side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST,
				       LEN));
		a->qp = own;
		pair_deliver(p);
		KUNIT_EXPECT_FALSE(test, side_filled(b, DST, LEN, 1));
		KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_WRONG_PATH));
		KUNIT_EXPECT_EQ(test, 0, b->qp->resp.half.inbox_len);
		sroce_qp_destroy(other);

		side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, SRC, DST,
				       LEN));
		pair_deliver(p);
		KUNIT_EXPECT_TRUE(test, side_filled(b, DST, LEN, 1));
		KUNIT_EXPECT_EQ(test, 1, side_count(a, SROCE_CNT_RX_WRONG_PATH));
		pair_exit(test);
	}
}

/* A device has moved to another network namespace, where somebody has the peer's address */
static void moved_device(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_fill(a, SRC, LEN, 1);
	/* The QP is of before, and packets and device are there */
	b->qp->path->net_cookie = FAKE_NET_COOKIE + 1;
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, LEN));
	pair_deliver(p);
	KUNIT_EXPECT_FALSE(test, side_filled(b, DST, LEN, 1));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_WRONG_PATH));
	b->qp->path->net_cookie = FAKE_NET_COOKIE;
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, LEN, 1));
}

/* What waits from the peer of before is not from the peer of now */
static void direct_former_peer(struct kunit *test)
{
	struct pair_config c = { .direct = true };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_fill(a, SRC, LEN, 1);
	/* It finds the train in its inbox when it runs the next time */
	spin_lock_bh(&b->qp->resp.half.lock);
	set_bit(0, &b->qp->resp.half.queued);
	spin_unlock_bh(&b->qp->resp.half.lock);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, LEN));
	KUNIT_EXPECT_EQ(test, 1, b->qp->resp.half.inbox_len);
	clear_bit(0, &b->qp->resp.half.queued);
	b->qp->attr.dest_qp_num ^= 1;
	sroce_half_run(&b->qp->resp.half);
	KUNIT_EXPECT_EQ(test, 0, b->qp->resp.half.inbox_len);
	KUNIT_EXPECT_FALSE(test, side_filled(b, DST, LEN, 1));
	KUNIT_EXPECT_EQ(test, 1, side_count(b, SROCE_CNT_RX_WRONG_PATH));
}

/* What waits when a QP is reset is gone then, however much it is */
static void inbox_reset(struct kunit *test)
{
	struct sroce_turn_limits limits = sroce_turn_limits;
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_half *half = &b->qp->resp.half;
	struct sroce_train t = side_train(a, SROCE_OP_SEND, side_first_psn(a));
	int i, kept = 0;

	t.flags = SROCE_START | SROCE_END;
	spin_lock_bh(&half->lock);
	for (i = 0; i < 700; i++)
		kept += !!sroce_inbox_keep(half, &t, SZ_64K);
	spin_unlock_bh(&half->lock);
	KUNIT_EXPECT_EQ(test, 700, kept);
	sroce_turn_limits.bytes = SROCE_TURN_TRAIN * 64;
	side_to_reset(b);
	sroce_turn_limits = limits;
	KUNIT_EXPECT_EQ(test, 0, half->inbox_len);
}

/* --- with the device --------------------------------------------------------- */

/* What processes have ends with their device, targets that ib_core made for them too */
static void abandoned(struct kunit *test)
{
	struct pair_config c = { .type = IB_QPT_XRC_INI };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	sroce_port_abandon(&a->port);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(b));
	sroce_port_abandon(&b->port);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, side_state(a));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	a->qp->user = true;
	sroce_port_abandon(&a->port);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(a));
}

static struct kunit_case trust_cases[] = {
	KUNIT_CASE_PARAM(reserved_key_received, receiver_gen_params),
	KUNIT_CASE(reserved_key_of_datagram),
	KUNIT_CASE(domain_of_queue),
	KUNIT_CASE(reserved_key_sent),
	KUNIT_CASE(reserved_fields),
	KUNIT_CASE(reserved_flags),
	KUNIT_CASE(reserved_values),
	KUNIT_CASE_PARAM(reserved_in_receive, shared_gen_params),
	KUNIT_CASE_PARAM(datagram_too_long, shared_gen_params),
	KUNIT_CASE(gsi_survives),
	KUNIT_CASE(direct_impostor),
	KUNIT_CASE(moved_device),
	KUNIT_CASE(direct_former_peer),
	KUNIT_CASE(inbox_reset),
	KUNIT_CASE(abandoned),
	{}
};

static struct kunit_suite trust_suite = {
	.name = "sroce_trust",
	.exit = pair_exit,
	.test_cases = trust_cases,
};

kunit_test_suite(trust_suite);
