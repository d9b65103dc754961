// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * QPs for datagrams among hostile packets, and the checks of what they receive.
 */
#include "compat.h"
#include "tests/fuzz_datagram.h"
#include "transport/internal.h"

#define QKEY 0x1234
#define GSI_QKEY 0x80010000
#define GRH 40
/* QP 1 takes datagrams of this size only */
#define MAD 256
#define SLOT 0x1400
#define CANARY 0xc5

static const union ib_gid host = { .raw = { [10] = 0xff, 0xff, 10, 9, 0, 1 } };
static const union ib_gid host6 = { .raw = { 0xfd, 9, [15] = 1 } };
static const union ib_gid group = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } };
static const union ib_gid group6 = { .raw = { 0xff, 0x0e, [15] = 3 } };

enum { TALKS, LISTENS, DEAF, GSI };

static void check(struct hall *h, bool ok, const char *what, u64 a, u64 b)
{
	fuzz_check(h->f, ok, "datagrams", what, a, b);
}

static u32 slot(u32 i, u32 number)
{
	return (i * HALL_DEPTH + number % HALL_DEPTH) * SLOT;
}

static u32 qkey_of(u32 i)
{
	return i == GSI ? GSI_QKEY : QKEY;
}

/* --- receiving ------------------------------------------------------------- */

static void post(struct hall *h, u32 i, u32 room)
{
	struct hall_qp *q = &h->q[i];
	struct ib_sge sge = {
		.addr = (uintptr_t)h->s->mem + slot(i, q->recvs),
		.length = room,
		.lkey = h->s->mr->key,
	};
	struct ib_recv_wr wr = {
		.wr_id = (u64)i << 32 | q->recvs,
		.sg_list = &sge,
		.num_sge = 1,
	};
	const struct ib_recv_wr *bad;

	q->room[q->recvs % HALL_DEPTH] = room;
	if (!sroce_qp_post_recv(q->qp, &wr, &bad))
		q->recvs++;
}

static u32 choose_room(struct hall *h, u32 i)
{
	if (i == GSI)
		return GRH + MAD;
	return fuzz_one_in(&h->f->rnd, 8) ? GRH + fuzz_below(&h->f->rnd, 4096) :
					    GRH + 4096;
}

static void post_all(struct hall *h)
{
	u32 i;

	for (i = 0; i < HALL_QPS; i++)
		while (h->q[i].recvs - h->q[i].seen < HALL_DEPTH &&
		       !h->f->failed)
			post(h, i, choose_room(h, i));
}

/* Zeros that a wrong pad count, or a length, makes part of a datagram */
#define ZEROS 20

/*
 * All its bytes are the sender's one, but for zeros at the end, and behind them
 * nothing has changed.
 */
static void check_bytes(struct hall *h, u32 off, u32 len)
{
	const u8 *mem = h->s->mem + off + GRH;
	u32 n;

	for (n = len; n && len - n < ZEROS && !mem[n - 1]; n--)
		;
	check(h, !n || (mem[0] < 0x80 && !memchr_inv(mem, mem[0], n)),
	      "wrong datagram", len, mem[0]);
	check(h, !memchr_inv(mem + len, CANARY, SLOT - GRH - len),
	      "written behind the datagram", len, 0);
}

static void received(struct hall *h, const struct ib_wc *wc)
{
	u32 i = wc->wr_id >> 32, number = wc->wr_id, off = slot(i, number);
	struct hall_qp *q = &h->q[i];
	u32 room = q->room[number % HALL_DEPTH];

	check(h, wc->qp == &q->ibqp && i != DEAF, "completion of another QP",
	      i, 0);
	check(h, number == q->seen && q->seen != q->recvs,
	      "receives complete out of order", number, q->seen);
	check(h, wc->status == IB_WC_SUCCESS, "receive failed", wc->status, i);
	check(h, wc->byte_len >= GRH && wc->byte_len <= room,
	      "more than there was room for", wc->byte_len, room);
	if (h->f->failed)
		return;
	check_bytes(h, off, wc->byte_len - GRH);
	memset(h->s->mem + off, CANARY, SLOT);
	q->seen++;
	h->got++;
}

static u32 poll(struct hall *h)
{
	struct ib_wc wc;
	u32 n = 0;

	for (; !h->f->failed && side_poll(&h->cq, &wc); n++)
		received(h, &wc);
	return n;
}

static void check_states(struct hall *h)
{
	static const u8 states[] = {
		[TALKS] = IB_QPS_RTS,
		[LISTENS] = IB_QPS_RTR,
		[DEAF] = IB_QPS_INIT,
		[GSI] = IB_QPS_RTS,
	};
	u32 i;

	for (i = 0; i < HALL_QPS; i++)
		check(h, sroce_qp_state(h->q[i].qp) == states[i],
		      "a datagram has changed a QP's state", i,
		      sroce_qp_state(h->q[i].qp));
}

/* --- sending --------------------------------------------------------------- */

static struct fuzz_envelope envelope(struct hall *h, bool to_group)
{
	bool ipv6 = fuzz_one_in(&h->f->rnd, 2);
	struct fuzz_envelope env = {
		.src = ipv6 ? host6 : host,
		.pkt_type = to_group ? PACKET_MULTICAST : PACKET_HOST,
		.v1 = fuzz_one_in(&h->f->rnd, 4),
	};

	env.src.raw[15] = fuzz_below(&h->f->rnd, 256);
	if (to_group)
		env.dst = ipv6 ? group6 : group;
	else
		env.dst = ipv6 ? host6 : host;
	return env;
}

static void load(struct hall *h, const struct fuzz_packet *p, u32 n)
{
	struct fuzz *f = h->f;
	u32 len;

	for (; n; n--, p++) {
		len = fuzz_packet_encode(p, f->bytes);
		if (!len || !fuzz_train_add(&f->train, f->bytes, len, p->bad_icrc))
			break;
		h->hits[p->opcode]++;
		f->log[f->nlog++ % FUZZ_LOG] = (struct fuzz_log){
			.pen = "datagrams",
			.p = *p,
		};
	}
}

static struct fuzz_aim aim(struct hall *h, u32 i, bool to_group)
{
	struct fuzz_aim aim = {
		.service = SROCE_UD,
		.mtu = 4096,
		.qpn = to_group ? SROCE_QPN_MULTICAST : h->q[i].qp->qpn,
		.qkey = qkey_of(i),
	};

	memcpy(aim.strangers, h->f->strangers, sizeof(aim.strangers));
	return aim;
}

void hall_step(struct hall *h)
{
	struct fuzz *f = h->f;
	bool to_group = fuzz_one_in(&f->rnd, 4);
	struct fuzz_envelope env = envelope(h, to_group);
	u32 i = to_group ? TALKS : fuzz_below(&f->rnd, HALL_QPS);
	struct fuzz_aim a = aim(h, i, to_group);
	u32 k, n;

	post_all(h);
	n = fuzz_attack(&f->rnd, &a, f->p);
	/* Mostly of the size that QP 1 would take */
	for (k = 0; i == GSI && k < n; k++)
		if (!fuzz_one_in(&f->rnd, 8))
			f->p[k].payload = MAD;
	load(h, f->p, n);
	env.faults = fuzz_one_in(&f->rnd, 2);
	if (env.faults && fuzz_one_in(&f->rnd, 16))
		env.pkt_type = fuzz_below(&f->rnd, 8);
	f->packets += fuzz_send(&f->stage, &h->s->port, &env, &f->train);
	poll(h);
	check_states(h);
}

/* One that fits, whatever room was posted */
static void send_small(struct hall *h, u32 i)
{
	struct fuzz_envelope env = envelope(h, false);
	struct fuzz_aim a = aim(h, i, false);
	struct fuzz *f = h->f;

	fuzz_send_only(&f->rnd, &a, f->p);
	f->p->payload = i == GSI ? MAD : 0;
	load(h, f->p, 1);
	f->packets += fuzz_send(&f->stage, &h->s->port, &env, &f->train);
	check(h, poll(h) == (i != DEAF), "datagram lost", i,
	      h->q[i].recvs - h->q[i].seen);
}

void hall_prove(struct hall *h)
{
	u32 i, k;

	post_all(h);
	for (i = 0; i < HALL_QPS; i++)
		for (k = 0; k < HALL_DEPTH && !h->f->failed; k++)
			send_small(h, i);
	check_states(h);
}

/* --- making and ending ----------------------------------------------------- */

static void hall_make_qp(struct hall *h, u32 i)
{
	struct ib_qp_init_attr init = {
		.qp_type = i == GSI ? IB_QPT_GSI : IB_QPT_UD,
		.send_cq = &h->cq.ibcq,
		.recv_cq = &h->cq.ibcq,
		.cap = { .max_recv_wr = HALL_DEPTH, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qkey = QKEY };
	struct hall_qp *q = &h->q[i];
	int state, last;

	q->ibqp.pd = &h->s->pd;
	q->qp = sroce_qp_create(&h->s->port, &q->ibqp, &init, NULL, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(h->f->test, q->qp);
	q->ibqp.qp_num = q->qp->qpn;
	last = i == DEAF ? IB_QPS_INIT : i == LISTENS ? IB_QPS_RTR : IB_QPS_RTS;
	for (state = IB_QPS_INIT; state <= last; state++) {
		attr.qp_state = state;
		KUNIT_ASSERT_EQ(h->f->test, 0,
				sroce_qp_modify(q->qp, &attr,
						IB_QP_STATE | IB_QP_QKEY, NULL));
	}
	if (i == GSI || i == DEAF)
		return;
	KUNIT_ASSERT_EQ(h->f->test, 0, sroce_group_attach(q->qp, &group));
	KUNIT_ASSERT_EQ(h->f->test, 0, sroce_group_attach(q->qp, &group6));
}

void hall_open(struct hall *h, struct fuzz *f)
{
	struct pair_config config = {};
	u32 i;

	h->f = f;
	h->p = pair_create(f->test, &config);
	h->s = &h->p->side[0];
	h->s->port.net.net_cookie = init_net.net_cookie;
	for (i = 0; i < HALL_QPS * HALL_DEPTH; i++)
		memset(h->s->mem + i * SLOT, CANARY, SLOT);
	KUNIT_ASSERT_EQ(f->test, 0,
			sroce_cq_init(&h->cq, &h->s->port,
				      2 * HALL_QPS * HALL_DEPTH));
	for (i = 0; i < HALL_QPS; i++)
		hall_make_qp(h, i);
}

void hall_close(struct hall *h)
{
	u32 i;

	for (i = 0; i < HALL_QPS; i++)
		sroce_qp_destroy(h->q[i].qp);
	check(h, !h->s->port.ngroups, "a group is left", h->s->port.ngroups, 0);
	check(h, refcount_read(&h->s->mr->users) == 1, "a region is still used",
	      refcount_read(&h->s->mr->users), 0);
	sroce_cq_cleanup(&h->cq);
	h->f->test->priv = h->p;
	pair_exit(h->f->test);
}
