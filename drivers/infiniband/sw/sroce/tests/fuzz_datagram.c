// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * QPs for datagrams among hostile packets, and the checks of what they receive.
 */
#include <linux/mutex.h>
#include <linux/xarray.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "compat.h"
#include "device.h"
#include "tests/fuzz_datagram.h"
#include "transport/internal.h"
#include "verbs/verbs.h"

#define QKEY 0x1234
#define GSI_QKEY 0x80010000
#define GRH 40
#define MAD HALL_MAD
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

/* --- management datagrams ------------------------------------------------- */

/* In the transaction ID, before the number that all the rest is made from */
#define MAGIC 0x7a3c5e19

/* Those of ib_cm, whose numbers are from 0x0010 on */
#define CM_FIRST 0x0010
#define CM_KINDS 11
#define CM_VERSION 2

/* Bodies are of these fields, wherever each kind has them; numbers are few, so they meet */
static void mad_body(struct rnd_state *rnd, u8 *body, u32 len)
{
	u32 at;

	prandom_bytes_state(rnd, body, len);
	for (at = 0; at + 4 <= len; at += 4)
		if (fuzz_one_in(rnd, 2))
			put_unaligned_be32(fuzz_below(rnd, 8), body + at);
}

/* Something of the header is not what it must be */
static void mad_mutate(struct rnd_state *rnd, struct ib_mad_hdr *hdr)
{
	switch (fuzz_below(rnd, 7)) {
	case 0:
		hdr->base_version = prandom_u32_state(rnd);
		break;
	case 1:
		hdr->mgmt_class = prandom_u32_state(rnd);
		break;
	case 2:
		hdr->class_version = prandom_u32_state(rnd);
		break;
	case 3:
		hdr->method = fuzz_one_in(rnd, 2) ? hdr->method ^ IB_MGMT_METHOD_RESP :
						    prandom_u32_state(rnd);
		break;
	case 4:
		hdr->status = cpu_to_be16(prandom_u32_state(rnd));
		break;
	case 5:
		hdr->attr_id = cpu_to_be16(prandom_u32_state(rnd));
		break;
	default:
		hdr->attr_mod = cpu_to_be32(prandom_u32_state(rnd));
	}
}

/* All of it follows from a number, by which the receiver knows what it must be */
static void make_mad(u32 number, u8 *mad)
{
	struct ib_mad_hdr *hdr = (struct ib_mad_hdr *)mad;
	struct rnd_state rnd;
	bool cm;

	prandom_seed_state(&rnd, number);
	cm = !fuzz_one_in(&rnd, 4);
	mad_body(&rnd, mad, MAD);
	*hdr = (struct ib_mad_hdr){
		.base_version = IB_MGMT_BASE_VERSION,
		.mgmt_class = cm ? IB_MGMT_CLASS_CM : IB_MGMT_CLASS_PERF_MGMT,
		.class_version = cm ? CM_VERSION : 1,
		.method = cm ? IB_MGMT_METHOD_SEND : fuzz_one_in(&rnd, 4) ?
			  IB_MGMT_METHOD_SET : IB_MGMT_METHOD_GET,
		.attr_id = cm ? cpu_to_be16(CM_FIRST + fuzz_below(&rnd, CM_KINDS)) :
			   fuzz_one_in(&rnd, 3) ? IB_PMA_CLASS_PORT_INFO :
			   fuzz_one_in(&rnd, 2) ? IB_PMA_PORT_COUNTERS :
						  IB_PMA_PORT_COUNTERS_EXT,
		.tid = cpu_to_be64((u64)MAGIC << 32 | number),
	};
	if (fuzz_one_in(&rnd, 2))
		mad_mutate(&rnd, hdr);
}

static bool is_mad(const u8 *mem, u32 len)
{
	return len == MAD && get_unaligned_be32(mem + 8) == MAGIC;
}

/* What ib_mad would do with one that is not for ib_cm */
static void answer_mad(struct hall *h, const u8 *mem)
{
	struct ib_mad in, out;
	size_t out_size = sizeof(out);
	u16 pkey_index = 0;
	int ret;

	memcpy(&in, mem, sizeof(in));
	memset(&out, CANARY, sizeof(out));
	ret = sroce_ib_process_mad(&h->dev->ibdev, 0, 1, NULL, NULL, &in, &out, &out_size,
				   &pkey_index);
	check(h, ret & IB_MAD_RESULT_SUCCESS, "a MAD that cannot be answered", ret, 0);
	if (!(ret & IB_MAD_RESULT_REPLY))
		return;
	h->answered++;
	check(h, in.mad_hdr.mgmt_class == IB_MGMT_CLASS_PERF_MGMT, "another class is answered",
	      in.mad_hdr.mgmt_class, in.mad_hdr.method);
	check(h, !(in.mad_hdr.method & IB_MGMT_METHOD_RESP), "an answer is answered",
	      in.mad_hdr.method, 0);
	check(h, out.mad_hdr.method == IB_MGMT_METHOD_GET_RESP, "not an answer",
	      out.mad_hdr.method, 0);
	check(h, out.mad_hdr.tid == in.mad_hdr.tid, "another answer", 0, 0);
}

static void check_mad(struct hall *h, u32 i, const u8 *mem)
{
	u8 right[MAD];

	make_mad(get_unaligned_be32(mem + 12), right);
	check(h, !memcmp(mem, right, MAD), "another MAD than was sent",
	      get_unaligned_be32(mem + 12), 0);
	if (i != GSI)
		return;
	h->mads_got++;
	answer_mad(h, mem);
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
static void check_bytes(struct hall *h, u32 i, u32 off, u32 len)
{
	const u8 *mem = h->s->mem + off + GRH;
	u32 n;

	check(h, !memchr_inv(mem + len, CANARY, SLOT - GRH - len),
	      "written behind the datagram", len, 0);
	if (is_mad(mem, len)) {
		check_mad(h, i, mem);
		return;
	}
	for (n = len; n && len - n < ZEROS && !mem[n - 1]; n--)
		;
	check(h, !n || (mem[0] < 0x80 && !memchr_inv(mem, mem[0], n)),
	      "wrong datagram", len, mem[0]);
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
	check_bytes(h, i, off, wc->byte_len - GRH);
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
	/* Only IPv4 is there at once: an IPv6 address is looked for first */
	bool ipv6 = fuzz_one_in(&h->f->rnd, h->there ? 8 : 2);
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

/* Send what is in the train */
static void send(struct hall *h, const struct fuzz_envelope *env)
{
	struct fuzz *f = h->f;
	struct net_device *ndev = f->stage.ndev;
	bool alone = f->train.n == 1 && f->train.len >= SROCE_BTH_LEN && !f->stage.wait;
	u8 opcode = f->train.bytes[0];
	u64 got = h->got;

	if (h->there)
		f->stage.ndev = h->there;
	f->packets += fuzz_send(&f->stage, &h->s->port, env, &f->train);
	f->stage.ndev = ndev;
	poll(h);
	if (h->there)
		h->got_there += h->got - got;
	if (!alone)
		return;
	if (h->got != got)
		f->taken[opcode]++;
	else
		f->refused[opcode]++;
}

/* Mostly of the size that QP 1 would take, and half of them something that it is there for */
static void make_mads(struct hall *h, u32 n)
{
	struct fuzz *f = h->f;
	u32 k;

	for (k = 0; k < n; k++) {
		if (fuzz_one_in(&f->rnd, 8))
			continue;
		f->p[k].payload = MAD;
		if (fuzz_one_in(&f->rnd, 2))
			continue;
		make_mad(prandom_u32_state(&f->rnd), h->mads[k]);
		f->p[k].data = h->mads[k];
	}
}

void hall_step(struct hall *h)
{
	struct fuzz *f = h->f;
	bool to_group = !h->there && fuzz_one_in(&f->rnd, 4);
	struct fuzz_envelope env = envelope(h, to_group);
	u32 i = to_group ? TALKS : h->there ? GSI : fuzz_below(&f->rnd, HALL_QPS);
	struct fuzz_aim a = aim(h, i, to_group);
	u32 n;

	post_all(h);
	n = fuzz_attack(&f->rnd, &a, f->p);
	if (i == GSI)
		make_mads(h, n);
	load(h, f->p, n);
	env.faults = fuzz_one_in(&f->rnd, 2);
	if (env.faults && fuzz_one_in(&f->rnd, 16))
		env.pkt_type = fuzz_below(&f->rnd, 8);
	send(h, &env);
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

/* As much of a device as answers for its port */
static void make_device(struct hall *h)
{
	struct sroce_device *dev = kunit_kzalloc(h->f->test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(h->f->test, dev);
	mutex_init(&dev->bound_lock);
	xa_init_flags(&dev->bound, XA_FLAGS_ALLOC1);
	dev->port.net.counters = h->s->port.net.counters;
	h->dev = dev;
}

static void end_device(struct hall *h)
{
	xa_destroy(&h->dev->bound);
	mutex_destroy(&h->dev->bound_lock);
	kunit_kfree(h->f->test, h->dev);
}

void hall_open(struct hall *h, struct fuzz *f)
{
	struct pair_config config = {};
	u32 i;

	h->f = f;
	h->p = pair_create(f->test, &config);
	h->s = &h->p->side[0];
	h->s->port.net.net_cookie = init_net.net_cookie;
	make_device(h);
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
	end_device(h);
	h->f->test->priv = h->p;
	pair_exit(h->f->test);
}
