// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups: which QPs get a datagram, and that none of them depends on
 * another one.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/etherdevice.h>

#include "tests/fuzz_skb.h"
#include "tests/transport_pair.h"
#include "transport/group.h"
#include "transport/internal.h"

#define MEMBERS 4
#define QKEY 0x1234
#define LEN 300
#define GRH 40
#define PLACE(i) (0x10000 * ((i) + 1))

/**
 * struct club - QPs of one device
 * @p: the pair whose side 0 lends device, queues and memory
 * @ibqp: what ib_core would know of each
 * @qp: each
 * @bv: payload of club_train()
 */
struct club {
	struct pair *p;
	struct ib_qp ibqp[MEMBERS];
	struct sroce_qp *qp[MEMBERS];
	struct bio_vec bv;
};

static const union ib_gid group_a = { .raw = { 0xff, 0x0e, [15] = 1 } };
static const union ib_gid group_b = { .raw = { 0xff, 0x0e, [15] = 2 } };

static void club_ready(struct sroce_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR, .qkey = QKEY };

	sroce_qp_modify(qp, &attr, IB_QP_STATE | IB_QP_QKEY, NULL);
}

static void club_join(struct club *c, int i)
{
	struct side *s = &c->p->side[0];
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_UD,
		.cap = { .max_recv_wr = 4, .max_recv_sge = 1 },
	};

	c->qp[i] = side_another_qp(s, &c->ibqp[i], &init);
	club_ready(c->qp[i]);
}

/* Too large for the stack, and there is one at a time */
static struct club the_club;

static struct club *club_open(struct kunit *test)
{
	struct pair_config config = {};
	struct club *c = &the_club;
	int i;

	memset(c, 0, sizeof(*c));
	c->p = pair_create(test, &config);
	for (i = 0; i < MEMBERS; i++)
		club_join(c, i);
	return c;
}

static void club_close(struct club *c)
{
	struct sroce_port *port = &c->p->side[0].port;
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (c->qp[i])
			sroce_qp_destroy(c->qp[i]);
	KUNIT_EXPECT_EQ(c->p->test, 0, port->ngroups);
}

static void club_recv(struct club *c, int i, u32 len)
{
	struct side *s = &c->p->side[0];
	const struct ib_recv_wr *bad;
	struct recv r;

	recv_init(&r, s, i, PLACE(i), len);
	KUNIT_ASSERT_EQ(c->p->test, 0, sroce_qp_post_recv(c->qp[i], &r.wr, &bad));
}

/* A message of LEN bytes, as each member may get it */
static struct sroce_train club_train(struct club *c)
{
	struct side *s = &c->p->side[0];

	side_fill(s, 0, LEN, 7);
	bvec_set_virt(&c->bv, s->mem, LEN);
	return (struct sroce_train){
		.op = SROCE_OP_SEND,
		.service = SROCE_UD,
		.flags = SROCE_START | SROCE_END,
		.pkey = 0xffff,
		.dqpn = SROCE_QPN_MULTICAST,
		.npkts = 1,
		.qkey = QKEY,
		.sqpn = 0x4711,
		.bv = &c->bv,
		.bi = { .bi_size = LEN },
	};
}

static void club_receive_from(struct club *c, const struct sroce_train *t,
			      const union ib_gid *group, bool looped)
{
	struct sroce_rx_info info = {
		.dgid = *group,
		.looped = looped,
		.net_cookie = FAKE_NET_COOKIE,
		.vlan_id = 0xffff,
	};
	struct sroce_rx rx = { .t = *t, .info = &info };

	local_bh_disable();
	sroce_receive_group(&c->p->side[0].port.net, &rx);
	local_bh_enable();
	KUNIT_EXPECT_EQ(c->p->test, t->bi.bi_size, rx.t.bi.bi_size);
}

static void club_receive(struct club *c, const struct sroce_train *t,
			 const union ib_gid *group)
{
	club_receive_from(c, t, group, false);
}

/* Exactly the members of @who have these bytes, each in its own place */
static void club_expect_len(struct club *c, u32 who, u32 len)
{
	struct side *s = &c->p->side[0];
	struct kunit *test = c->p->test;
	struct ib_wc wc;
	u32 got = 0;
	int i;

	while (side_poll(&s->rcq, &wc)) {
		KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
		KUNIT_EXPECT_EQ(test, GRH + len, wc.byte_len);
		KUNIT_EXPECT_PTR_EQ(test, &c->ibqp[wc.wr_id], wc.qp);
		KUNIT_EXPECT_TRUE(test, side_filled(s, PLACE(wc.wr_id) + GRH,
						    len, 7));
		got |= BIT(wc.wr_id);
	}
	KUNIT_EXPECT_EQ(test, who, got);
	for (i = 0; i < MEMBERS; i++)
		memset(s->mem + PLACE(i), 0, PLACE(1) - PLACE(0));
}

static void club_expect(struct club *c, u32 who)
{
	club_expect_len(c, who, LEN);
}

static void club_recv_all(struct club *c)
{
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (c->qp[i])
			club_recv(c, i, GRH + LEN);
}

/* The first @n become members */
static void club_attach(struct club *c, const union ib_gid *group, int n)
{
	int i;

	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(c->p->test, 0, sroce_group_attach(c->qp[i], group));
}

/* Each has a receive, and exactly the members of @who get this message */
static void club_hear(struct club *c, const struct sroce_train *t,
		      const union ib_gid *group, bool looped, u32 who)
{
	club_recv_all(c);
	club_receive_from(c, t, group, looped);
	club_expect(c, who);
}

/* --- members --------------------------------------------------------------- */

static void group_members(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_train t = club_train(c);

	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[0], &group_a));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[1], &group_a));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[1], &group_b));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[2], &group_b));
	KUNIT_EXPECT_EQ(test, -EEXIST, sroce_group_attach(c->qp[2], &group_b));
	KUNIT_EXPECT_EQ(test, 2, c->p->side[0].port.ngroups);
	club_hear(c, &t, &group_a, false, BIT(0) | BIT(1));
	club_hear(c, &t, &group_b, false, BIT(1) | BIT(2));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_detach(c->qp[1], &group_a));
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_group_detach(c->qp[1], &group_a));
	club_hear(c, &t, &group_a, false, BIT(0));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_detach(c->qp[0], &group_a));
	club_receive(c, &t, &group_a);
	club_expect(c, 0);
	KUNIT_EXPECT_EQ(test, 1, side_count(&c->p->side[0], SROCE_CNT_RX_NO_QP));
	club_close(c);
}

/* A member tells nobody of congestion: all of them would */
static void group_marked(struct kunit *test)
{
	struct club *c = club_open(test);
	struct side *s = &c->p->side[0];
	struct sroce_train t = club_train(c);

	s->port.net.congestion.np_enable = true;
	t.flags |= SROCE_CE;
	club_attach(c, &group_a, MEMBERS);
	club_hear(c, &t, &group_a, false, BIT(MEMBERS) - 1);
	KUNIT_EXPECT_EQ(test, 0, side_count(s, SROCE_CNT_NP_ECN_MARKED));
	KUNIT_EXPECT_EQ(test, 0, side_count(s, SROCE_CNT_NP_CNP_SENT));
	KUNIT_EXPECT_EQ(test, 0, c->p->net.sent);
	club_close(c);
}

/* A QP that ends is in no group any more */
static void group_of_destroyed(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_train t = club_train(c);

	sroce_group_attach(c->qp[0], &group_a);
	sroce_group_attach(c->qp[0], &group_b);
	sroce_group_attach(c->qp[1], &group_a);
	sroce_qp_destroy(c->qp[0]);
	c->qp[0] = NULL;
	KUNIT_EXPECT_EQ(test, 1, c->p->side[0].port.ngroups);
	club_recv_all(c);
	club_receive(c, &t, &group_a);
	club_receive(c, &t, &group_b);
	club_expect(c, BIT(1));
	club_close(c);
}

/* --- what one member lacks, the others have ---------------------------------- */

static void group_unequal(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .qkey = QKEY + 1 };
	struct club *c = club_open(test);
	struct sroce_train t = club_train(c);
	struct side *s = &c->p->side[0];

	club_attach(c, &group_a, MEMBERS);
	/* No receive, another Q_Key, in error */
	club_recv(c, 1, GRH + LEN);
	sroce_qp_modify(c->qp[1], &attr, IB_QP_STATE | IB_QP_QKEY, NULL);
	attr.qp_state = IB_QPS_ERR;
	sroce_qp_modify(c->qp[2], &attr, IB_QP_STATE, NULL);
	club_recv(c, 3, GRH + LEN);
	club_receive(c, &t, &group_a);
	club_expect(c, BIT(3));
	KUNIT_EXPECT_EQ(test, 1, side_count(s, SROCE_CNT_OUT_OF_BUFFER));
	KUNIT_EXPECT_EQ(test, 1, side_count(s, SROCE_CNT_RX_BAD_QKEY));
	KUNIT_EXPECT_EQ(test, 1, side_count(s, SROCE_CNT_RX_DISCARDS));
	club_close(c);
}

/* Whoever sends to a group must not be able to end its members */
static void group_too_short(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_train t = club_train(c);
	struct side *s = &c->p->side[0];

	club_attach(c, &group_a, 2);
	club_recv(c, 0, GRH + LEN - 1);
	club_recv(c, 1, GRH + LEN);
	club_receive(c, &t, &group_a);
	club_expect(c, BIT(1));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTR, sroce_qp_state(c->qp[0]));
	KUNIT_EXPECT_EQ(test, 1, side_count(s, SROCE_CNT_RESP_LOCAL_LENGTH_ERROR));
	/* The receive is there for one that fits */
	t.bi.bi_size = LEN - 1;
	club_receive_from(c, &t, &group_a, false);
	club_expect_len(c, BIT(0), LEN - 1);
	club_close(c);
}

/* What it has sent itself, not what another host's QP of that number sends */
static void group_block_self(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_train t = club_train(c);

	club_attach(c, &group_a, 2);
	t.sqpn = c->qp[0]->qpn;
	club_hear(c, &t, &group_a, true, BIT(0) | BIT(1));
	c->qp[0]->block_self = true;
	club_hear(c, &t, &group_a, true, BIT(1));
	club_recv(c, 1, GRH + LEN);
	club_receive_from(c, &t, &group_a, false);
	club_expect(c, BIT(0) | BIT(1));
	t.sqpn = c->qp[1]->qpn;
	club_hear(c, &t, &group_a, true, BIT(0) | BIT(1));
	club_close(c);
}

/* --- packets that are for no group ------------------------------------------- */

static void group_odd_packets(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_train t = club_train(c);
	struct side *s = &c->p->side[0];

	sroce_group_attach(c->qp[0], &group_a);
	club_recv(c, 0, GRH + LEN);
	t.dqpn = c->qp[0]->qpn;
	club_receive(c, &t, &group_a);
	t.dqpn = SROCE_QPN_MULTICAST;
	t.service = SROCE_RC;
	club_receive(c, &t, &group_a);
	club_expect(c, 0);
	KUNIT_EXPECT_EQ(test, 2, side_count(s, SROCE_CNT_RX_DISCARDS));
	t.service = SROCE_UD;
	t.pkey = 0x8001;
	club_receive(c, &t, &group_a);
	club_expect(c, 0);
	KUNIT_EXPECT_EQ(test, 1, side_count(s, SROCE_CNT_RX_BAD_PKEY));
	t.pkey = 0xffff;
	club_receive(c, &t, &group_a);
	club_expect(c, BIT(0));
	club_close(c);
}

/* A device has only so many groups, but room for more members of each */
static void group_limit(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_port *port = &c->p->side[0].port;

	port->ngroups = SROCE_MAX_GROUPS - 1;
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[0], &group_a));
	KUNIT_EXPECT_EQ(test, -ENOSPC, sroce_group_attach(c->qp[0], &group_b));
	KUNIT_EXPECT_EQ(test, -EEXIST, sroce_group_attach(c->qp[0], &group_a));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[1], &group_a));
	KUNIT_EXPECT_EQ(test, SROCE_MAX_GROUPS, port->ngroups);
	sroce_group_detach(c->qp[0], &group_a);
	sroce_group_detach(c->qp[1], &group_a);
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[0], &group_b));
	port->ngroups = 1;
	club_close(c);
}

/* The last ones are for the kernel's own users; a test is a privileged process */
static void group_reserve(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_port *port = &c->p->side[0].port;
	struct cred *cred = prepare_creds();
	const struct cred *mine;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cap_lower(cred->cap_effective, CAP_SYS_RESOURCE);
	port->ngroups = SROCE_MAX_GROUPS - SROCE_RESERVED_GROUPS;
	mine = override_creds(cred);
	c->qp[0]->user = true;
	KUNIT_EXPECT_EQ(test, -ENOSPC, sroce_group_attach(c->qp[0], &group_a));
	c->qp[0]->user = false;
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[0], &group_a));
	revert_creds(mine);
	put_cred(cred);
	c->qp[0]->user = true;
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[0], &group_b));
	c->qp[0]->user = false;
	port->ngroups = 2;
	club_close(c);
}

/* --- many packets to many members ---------------------------------------------- */

static const union ib_gid group_ipv4 = {
	.raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 },
};

static const union ib_gid crowd_address = {
	.raw = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
};

#define CROWD 3
#define CROWD_PACKETS 8

/* Too large for the stack */
static struct fuzz_stage crowd_stage;
static struct fuzz_train crowd_train;
static u8 crowd_packet[FUZZ_PACKET_LEN];

/* What makes fuzz_send() put all of them into one buffer */
static void crowd_choose(struct rnd_state *rnd)
{
	struct rnd_state next;

	prandom_seed_state(rnd, 1);
	for (next = *rnd; fuzz_one_in(&next, 3); next = *rnd)
		prandom_u32_state(rnd);
}

/* Datagrams of @payload bytes to the group; or to one member after the other */
static void crowd_fill(struct club *c, u32 payload, bool alone)
{
	struct fuzz_packet packet = {
		.opcode = 0x64, /* UD SEND only */
		.pad = FUZZ_PAD_RIGHT,
		.migreq = true,
		.pkey = 0xffff,
		.dqpn = SROCE_QPN_MULTICAST,
		.qkey = QKEY,
		.sqpn = 0x4711,
		.payload = payload,
	};
	u32 len;
	int i;

	memset(&crowd_train, 0, sizeof(crowd_train));
	for (i = 0; i < CROWD_PACKETS; i++) {
		if (alone)
			packet.dqpn = c->qp[i % CROWD]->qpn;
		len = fuzz_packet_encode(&packet, crowd_packet);
		fuzz_train_add(&crowd_train, crowd_packet, len, false);
	}
}

/* A buffer of CROWD_PACKETS of them. Return: in how many parts it was received */
static u32 crowd_receive(struct club *c, u32 payload, bool alone)
{
	struct fuzz_envelope env = {
		.src = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
		.dst = alone ? crowd_address : group_ipv4,
		.pkt_type = alone ? PACKET_HOST : PACKET_MULTICAST,
	};
	struct fuzz_stage *st = &crowd_stage;
	struct rnd_state rnd;

	crowd_choose(&rnd);
	st->rnd = &rnd;
	st->buffers = 0;
	st->ndev = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(c->p->test, st->ndev);
	st->parts = 0;
	crowd_fill(c, payload, alone);
	local_bh_disable();
	sroce_turn_begin(true);
	fuzz_send(st, &c->p->side[0].port, &env, &crowd_train);
	sroce_turn_end();
	local_bh_enable();
	KUNIT_EXPECT_EQ(c->p->test, 1, st->buffers);
	free_netdev(st->ndev);
	return st->parts;
}

/* How many of them each member has got; the same for all */
static u32 crowd_got(struct club *c, u32 payload)
{
	u32 got[CROWD] = {};
	struct ib_wc wc;
	int i;

	while (side_poll(&c->p->side[0].rcq, &wc)) {
		KUNIT_EXPECT_EQ(c->p->test, IB_WC_SUCCESS, wc.status);
		KUNIT_EXPECT_EQ(c->p->test, GRH + payload, wc.byte_len);
		got[wc.wr_id]++;
	}
	for (i = 1; i < CROWD; i++)
		KUNIT_EXPECT_EQ(c->p->test, got[0], got[i]);
	return got[0];
}

/* Each member has receives for @wanted datagrams, and gets so many */
static void crowd_try(struct club *c, u32 limit, u32 payload, u32 wanted)
{
	u32 usual = sroce_group_most;
	u32 i;

	for (i = 0; i < CROWD * wanted; i++)
		club_recv(c, i % CROWD, GRH + payload);
	sroce_group_most = limit;
	KUNIT_EXPECT_EQ(c->p->test, 1, crowd_receive(c, payload, false));
	sroce_group_most = usual;
	KUNIT_EXPECT_EQ(c->p->test, wanted, crowd_got(c, payload));
}

static struct club *crowd_open(struct kunit *test)
{
	struct club *c = club_open(test);
	int i;

	c->p->side[0].port.net.net_cookie = init_net.net_cookie;
	for (i = 0; i < CROWD; i++)
		sroce_group_attach(c->qp[i], &group_ipv4);
	return c;
}

/* A buffer keeps the CPU busy for so many bytes; each datagram is for all or for none */
static void group_crowd(struct kunit *test)
{
	struct club *c = crowd_open(test);
	struct side *s = &c->p->side[0];

	/* Small ones count as 2 KiB each */
	crowd_try(c, 2048 * (3 * CROWD + 2), 24, 3);
	KUNIT_EXPECT_EQ(test, 5, side_count(s, SROCE_CNT_RX_DISCARDS));
	crowd_try(c, 0, 24, 1);
	KUNIT_EXPECT_EQ(test, 12, side_count(s, SROCE_CNT_RX_DISCARDS));
	/* Large ones count as what they are, with their headers */
	crowd_try(c, CROWD * 2 * 4096, 4096 - 24, 2);
	KUNIT_EXPECT_EQ(test, 18, side_count(s, SROCE_CNT_RX_DISCARDS));
	crowd_try(c, CROWD * 2 * 4096 - 1, 4096 - 24, 1);
	KUNIT_EXPECT_EQ(test, 25, side_count(s, SROCE_CNT_RX_DISCARDS));
	crowd_try(c, sroce_group_most, 24, 4);
	KUNIT_EXPECT_EQ(test, 25, side_count(s, SROCE_CNT_RX_DISCARDS));
	KUNIT_EXPECT_EQ(test, CROWD * 4,
			side_count(s, SROCE_CNT_OUT_OF_BUFFER));
	club_close(c);
}

/*
 * In a turn that is overdue each member gets a datagram in a part of its own. There is
 * no limit for the rest that is not for the whole, nobody gets one twice, and each is
 * counted once.
 */
static void group_in_parts(struct kunit *test)
{
	struct club *c = crowd_open(test);
	struct side *s = &c->p->side[0];
	u32 usual = sroce_group_most;
	int i;

	for (i = 0; i < CROWD * 4; i++)
		club_recv(c, i % CROWD, GRH + 24);
	sroce_group_most = 2048 * CROWD * 3;
	sroce_turn_limits.bytes = 0;
	KUNIT_EXPECT_EQ(test, CROWD * 3 + CROWD_PACKETS - 3,
			crowd_receive(c, 24, false));
	sroce_turn_limits.bytes = SZ_256M;
	sroce_group_most = usual;
	KUNIT_EXPECT_EQ(test, 3, crowd_got(c, 24));
	KUNIT_EXPECT_EQ(test, CROWD_PACKETS, side_count(s, SROCE_CNT_RX_PACKETS));
	KUNIT_EXPECT_EQ(test, CROWD_PACKETS, side_count(s, SROCE_CNT_RX_MCAST_PACKETS));
	KUNIT_EXPECT_EQ(test, CROWD_PACKETS - 3, side_count(s, SROCE_CNT_RX_DISCARDS));
	club_close(c);
}

/* Some members of the group, in a turn that is overdue. Return: whether it was all of them */
static bool crowd_receive_some(struct club *c, struct sroce_rx *rx)
{
	bool all;

	local_bh_disable();
	sroce_turn_begin(true);
	all = sroce_receive_group(&c->p->side[0].port.net, rx);
	sroce_turn_end();
	local_bh_enable();
	return all;
}

/*
 * The first member, which has got a datagram, leaves and comes again before the others have
 * got it: none of them misses it, and nobody gets it twice.
 */
static void group_changes_between_parts(struct kunit *test)
{
	struct club *c = club_open(test);
	struct sroce_train t = club_train(c);
	struct sroce_rx_info info = {
		.dgid = group_a,
		.net_cookie = FAKE_NET_COOKIE,
		.vlan_id = 0xffff,
	};
	struct sroce_rx rx = { .t = t, .info = &info };
	struct ib_wc wc;
	u32 got = 0;
	int n = 0;

	club_attach(c, &group_a, CROWD);
	club_recv_all(c);
	club_recv(c, 0, GRH + LEN);
	sroce_turn_limits.bytes = 0;
	KUNIT_EXPECT_FALSE(test, crowd_receive_some(c, &rx));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_detach(c->qp[0], &group_a));
	KUNIT_EXPECT_EQ(test, 0, sroce_group_attach(c->qp[0], &group_a));
	while (!crowd_receive_some(c, &rx))
		;
	sroce_turn_limits.bytes = SZ_256M;
	for (; side_poll(&c->p->side[0].rcq, &wc); n++)
		got |= BIT(wc.wr_id);
	KUNIT_EXPECT_EQ(test, CROWD, n);
	KUNIT_EXPECT_EQ(test, BIT(CROWD) - 1, got);
	club_close(c);
}

/* A buffer has packets for many QPs: the clock is asked before each but the first one */
static void qps_in_parts(struct kunit *test)
{
	struct club *c = crowd_open(test);
	struct ib_wc wc;
	int i;

	for (i = 0; i < CROWD_PACKETS; i++)
		club_recv(c, i % CROWD, GRH + 24);
	sroce_turn_limits.bytes = 0;
	KUNIT_EXPECT_EQ(test, CROWD_PACKETS, crowd_receive(c, 24, true));
	sroce_turn_limits.bytes = SZ_256M;
	for (i = 0; side_poll(&c->p->side[0].rcq, &wc); i++)
		KUNIT_EXPECT_EQ(test, i % CROWD, wc.wr_id);
	KUNIT_EXPECT_EQ(test, CROWD_PACKETS, i);
	club_close(c);
}

static struct kunit_case group_cases[] = {
	KUNIT_CASE(group_crowd),
	KUNIT_CASE(group_in_parts),
	KUNIT_CASE(group_changes_between_parts),
	KUNIT_CASE(qps_in_parts),
	KUNIT_CASE(group_limit),
	KUNIT_CASE(group_reserve),
	KUNIT_CASE(group_members),
	KUNIT_CASE(group_marked),
	KUNIT_CASE(group_of_destroyed),
	KUNIT_CASE(group_unequal),
	KUNIT_CASE(group_too_short),
	KUNIT_CASE(group_block_self),
	KUNIT_CASE(group_odd_packets),
	{}
};

static struct kunit_suite group_suite = {
	.name = "sroce_groups",
	.exit = pair_exit,
	.test_cases = group_cases,
};

kunit_test_suite(group_suite);
