// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packets: what is seen of a frame, which flows it is for, and what it is hashed to.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/in6.h>
#include <linux/inet.h>

#include "compat.h"
#include "raw/flow.h"
#include "raw/frame.h"
#include "raw/later.h"
#include "raw/rss.h"
#include "tests/transport_pair.h"

/* --- hash: the verification suite of Microsoft's RSS ------------------------------ */

static const u8 raw_key[SROCE_RX_HASH_KEY_LEN] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

struct raw_vector {
	const char *dst;
	u16 dport;
	const char *src;
	u16 sport;
	u32 with_ports;
	u32 addresses;
};

static const struct raw_vector raw_ipv4[] = {
	{ "161.142.100.80", 1766, "66.9.149.187", 2794, 0x51ccc178, 0x323e8fc2 },
	{ "65.69.140.83", 4739, "199.92.111.2", 14230, 0xc626b0ea, 0xd718262a },
	{ "12.22.207.184", 38024, "24.19.198.95", 12898, 0x5c2b394a, 0xd2d0a5de },
	{ "209.142.163.6", 2217, "38.27.205.30", 48228, 0xafc7327f, 0x82989176 },
	{ "202.188.127.2", 1303, "153.39.163.191", 44251, 0x10e828a2, 0x5d1809c5 },
};

static const struct raw_vector raw_ipv6[] = {
	{ "3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794,
	  0x40207d3d, 0x2cc18cd5 },
	{ "ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230,
	  0xdde51bbf, 0x0f0c461c },
	{ "fe80::200:f8ff:fe21:67cf", 38024,
	  "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251,
	  0x02d1feef, 0x4b61e985 },
};

static void raw_address(struct kunit *test, __be32 *to, const char *text,
			bool v6)
{
	int ok = v6 ? in6_pton(text, -1, (u8 *)to, -1, NULL) :
		      in4_pton(text, -1, (u8 *)&to[3], -1, NULL);

	KUNIT_ASSERT_EQ(test, ok, 1);
}

static void raw_check_vector(struct kunit *test, const struct raw_vector *v,
			     bool v6, u8 l4)
{
	struct sroce_flow_key key = {
		.has = (v6 ? SROCE_HAS_IPV6 : SROCE_HAS_IPV4) | l4,
		.sport = htons(v->sport),
		.dport = htons(v->dport),
	};
	u64 addresses = SROCE_RX_HASH_SRC_IPV4 | SROCE_RX_HASH_DST_IPV4 |
			SROCE_RX_HASH_SRC_IPV6 | SROCE_RX_HASH_DST_IPV6;
	u64 ports = SROCE_RX_HASH_SRC_PORT_TCP | SROCE_RX_HASH_DST_PORT_TCP |
		    SROCE_RX_HASH_SRC_PORT_UDP | SROCE_RX_HASH_DST_PORT_UDP;
	struct sroce_rss *rss;

	raw_address(test, key.saddr, v->src, v6);
	raw_address(test, key.daddr, v->dst, v6);
	rss = sroce_rss_create(addresses, raw_key, 1);
	KUNIT_ASSERT_NOT_NULL(test, rss);
	KUNIT_EXPECT_EQ(test, sroce_rss_hash(rss, &key), v->addresses);
	sroce_rss_free(rss);
	rss = sroce_rss_create(addresses | ports, raw_key, 1);
	KUNIT_ASSERT_NOT_NULL(test, rss);
	KUNIT_EXPECT_EQ(test, sroce_rss_hash(rss, &key), v->with_ports);
	/* Without ports it is the addresses that are left */
	key.has &= ~(SROCE_HAS_TCP | SROCE_HAS_UDP);
	KUNIT_EXPECT_EQ(test, sroce_rss_hash(rss, &key), v->addresses);
	sroce_rss_free(rss);
}

static void toeplitz_ipv4(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(raw_ipv4); i++)
		raw_check_vector(test, &raw_ipv4[i], false, SROCE_HAS_TCP);
}

static void toeplitz_ipv6(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(raw_ipv6); i++)
		raw_check_vector(test, &raw_ipv6[i], true, SROCE_HAS_UDP);
}

static void toeplitz_of_nothing(struct kunit *test)
{
	struct sroce_rss *rss = sroce_rss_create(SROCE_RX_HASH_SRC_IPV4,
						 raw_key, 1);
	struct sroce_flow_key key = { .type = htons(ETH_P_ARP) };

	KUNIT_ASSERT_NOT_NULL(test, rss);
	KUNIT_EXPECT_EQ(test, sroce_rss_hash(rss, &key), 0);
	sroce_rss_free(rss);
}

/* --- frames ---------------------------------------------------------------------- */

static const u8 raw_udp[] = {
	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00,
	0x45, 0x10, 0, 28, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
	0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0,
};

static void frame_of_udp(struct kunit *test)
{
	struct sroce_frame f;

	sroce_frame_parse(&f, raw_udp, sizeof(raw_udp), false);
	KUNIT_EXPECT_EQ(test, f.key.has, SROCE_HAS_IPV4 | SROCE_HAS_UDP);
	KUNIT_EXPECT_EQ(test, f.network, 14);
	KUNIT_EXPECT_EQ(test, f.transport, 34);
	KUNIT_EXPECT_EQ(test, ntohs(f.key.sport), 0x1234);
	KUNIT_EXPECT_EQ(test, ntohs(f.key.dport), 0x5678);
	KUNIT_EXPECT_EQ(test, ntohl(f.key.daddr[3]), 0x0a000002);
	KUNIT_EXPECT_EQ(test, f.key.tos, 0x10);
	KUNIT_EXPECT_EQ(test, f.key.ip_flags, SROCE_IP_DONT_FRAG);
}

static void frame_with_tag(struct kunit *test)
{
	static const u8 tag[] = { 0x81, 0x00, 0x20, 0x05 };
	u8 bytes[sizeof(raw_udp) + 4];
	struct sroce_frame f;

	memcpy(bytes, raw_udp, 12);
	memcpy(bytes + 12, tag, 4);
	memcpy(bytes + 16, raw_udp + 12, sizeof(raw_udp) - 12);
	sroce_frame_parse(&f, bytes, sizeof(bytes), false);
	KUNIT_EXPECT_EQ(test, f.key.has,
			SROCE_HAS_VLAN | SROCE_HAS_IPV4 | SROCE_HAS_UDP);
	KUNIT_EXPECT_EQ(test, ntohs(f.key.tci), 0x2005);
	KUNIT_EXPECT_EQ(test, ntohs(f.key.type), ETH_P_IP);
	KUNIT_EXPECT_EQ(test, f.transport, 38);
}

/* Of every length: a header counts only when all of it is there */
static void frame_cut_short(struct kunit *test)
{
	struct sroce_frame f;
	u8 *bytes;
	u32 len;

	for (len = 0; len <= sizeof(raw_udp); len++) {
		/* Of just that size, so that KASAN sees who reads behind it */
		bytes = kmemdup(raw_udp, len, GFP_KERNEL);
		sroce_frame_parse(&f, bytes, len, false);
		kfree(bytes);
		KUNIT_EXPECT_EQ(test, !f.network, len < 34);
		KUNIT_EXPECT_EQ(test, !f.transport, len < 42);
	}
}

/* Of one that is longer than 64 KiB, IPv4 says no length */
static void frame_coupled(struct kunit *test)
{
	u8 bytes[sizeof(raw_udp)];
	struct sroce_frame f;

	memcpy(bytes, raw_udp, sizeof(bytes));
	bytes[16] = 0;
	bytes[17] = 0;
	sroce_frame_parse(&f, bytes, sizeof(bytes), false);
	KUNIT_EXPECT_EQ(test, f.key.has, 0);
	sroce_frame_parse(&f, bytes, sizeof(bytes), true);
	KUNIT_EXPECT_EQ(test, f.key.has, SROCE_HAS_IPV4 | SROCE_HAS_UDP);
}

static void frame_that_lies(struct kunit *test)
{
	u8 bytes[sizeof(raw_udp)];
	struct sroce_frame f;

	memcpy(bytes, raw_udp, sizeof(bytes));
	bytes[14] = 0x4f;
	sroce_frame_parse(&f, bytes, sizeof(bytes), false);
	KUNIT_EXPECT_EQ(test, f.key.has, 0);
	bytes[14] = 0x44;
	sroce_frame_parse(&f, bytes, sizeof(bytes), false);
	KUNIT_EXPECT_EQ(test, f.key.has, 0);
	bytes[14] = 0x65;
	sroce_frame_parse(&f, bytes, sizeof(bytes), false);
	KUNIT_EXPECT_EQ(test, f.key.has, 0);
	/* Not the first fragment: what follows are no ports */
	bytes[14] = 0x45;
	bytes[21] = 1;
	sroce_frame_parse(&f, bytes, sizeof(bytes), false);
	KUNIT_EXPECT_EQ(test, f.key.has, SROCE_HAS_IPV4);
	KUNIT_EXPECT_EQ(test, f.transport, 0);
}

/* --- flows ------------------------------------------------------------------------- */

struct raw_world {
	struct sroce_flow_table table;
	struct sroce_flows_found found;
};

static struct raw_world *raw_world(struct kunit *test)
{
	struct raw_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	sroce_flow_table_init(&w->table);
	return w;
}

/* A flow that looks at the destination port, if that is not 0 */
static struct sroce_flow *raw_flow(struct kunit *test, struct raw_world *w,
				   u16 priority, u16 dport, bool dont_trap)
{
	struct sroce_flow *flow = kunit_kzalloc(test, sizeof(*flow),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, flow);
	flow->rule.type = SROCE_FLOW_NORMAL;
	flow->rule.priority = priority;
	flow->rule.dont_trap = dont_trap;
	if (dport) {
		flow->rule.key.dport = htons(dport);
		flow->rule.mask.dport = htons(0xffff);
	}
	KUNIT_ASSERT_EQ(test, sroce_flow_prepare(flow), 0);
	KUNIT_ASSERT_EQ(test, sroce_flow_table_add(&w->table, flow, true),
			0);
	return flow;
}

static struct sroce_flow *raw_other(struct kunit *test, struct raw_world *w,
				    enum sroce_flow_type type)
{
	struct sroce_flow *flow = kunit_kzalloc(test, sizeof(*flow),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, flow);
	flow->rule.type = type;
	KUNIT_ASSERT_EQ(test, sroce_flow_table_add(&w->table, flow, true),
			0);
	return flow;
}

static u32 raw_match(struct raw_world *w, u16 dport, bool group,
		     const void *sender)
{
	struct sroce_flow_key key = {
		.dmac = { group, 1, 2, 3, 4, 5 },
		.dport = htons(dport),
	};

	memset(&w->found, 0, sizeof(w->found));
	rcu_read_lock();
	sroce_flow_match(&w->table, &key, sender, &w->found);
	rcu_read_unlock();
	return w->found.n;
}

static void flows_by_priority(struct kunit *test)
{
	struct raw_world *w = raw_world(test);
	struct sroce_flow *late = raw_flow(test, w, 9, 0, false);
	struct sroce_flow *early = raw_flow(test, w, 3, 80, false);

	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], early);
	KUNIT_EXPECT_EQ(test, raw_match(w, 81, false, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], late);
	sroce_flow_table_del(&w->table, early);
	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], late);
	sroce_flow_table_del(&w->table, late);
	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, NULL), 0);
	KUNIT_EXPECT_EQ(test, w->table.nshapes, 0);
	KUNIT_EXPECT_EQ(test, w->table.flows, 0);
	sroce_flow_table_end(&w->table);
}

static void flows_that_do_not_trap(struct kunit *test)
{
	struct raw_world *w = raw_world(test);
	struct sroce_flow *flow[4];
	int i;

	flow[0] = raw_flow(test, w, 1, 80, true);
	flow[1] = raw_flow(test, w, 2, 0, true);
	flow[2] = raw_flow(test, w, 3, 80, false);
	flow[3] = raw_flow(test, w, 4, 0, false);
	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, NULL), 3);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_PTR_EQ(test, w->found.flow[i], flow[i]);
	for (i = 0; i < 4; i++)
		sroce_flow_table_del(&w->table, flow[i]);
	sroce_flow_table_end(&w->table);
}

static void flows_that_say_the_same(struct kunit *test)
{
	struct raw_world *w = raw_world(test);
	struct sroce_flow *flow[SROCE_FLOW_COPIES], one_more = {};
	int i;

	for (i = 0; i < SROCE_FLOW_COPIES; i++)
		flow[i] = raw_flow(test, w, 1, 80, false);
	one_more.rule = flow[0]->rule;
	KUNIT_EXPECT_EQ(test, sroce_flow_table_add(&w->table, &one_more, true),
			-ENOSPC);
	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, NULL), SROCE_FLOW_COPIES);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], flow[0]);
	for (i = 0; i < SROCE_FLOW_COPIES; i++)
		sroce_flow_table_del(&w->table, flow[i]);
	sroce_flow_table_end(&w->table);
}

static void flows_of_other_types(struct kunit *test)
{
	struct raw_world *w = raw_world(test);
	struct sroce_flow *all = raw_other(test, w, SROCE_FLOW_DEFAULT);
	struct sroce_flow *group = raw_other(test, w, SROCE_FLOW_MULTICAST);
	struct sroce_flow *sniffer = raw_other(test, w, SROCE_FLOW_SNIFFER);
	struct sroce_flow *normal = raw_flow(test, w, 1, 80, false);

	KUNIT_EXPECT_EQ(test, raw_match(w, 80, true, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], normal);
	KUNIT_EXPECT_EQ(test, raw_match(w, 81, true, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], group);
	KUNIT_EXPECT_EQ(test, raw_match(w, 81, false, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], all);
	memset(&w->found, 0, sizeof(w->found));
	rcu_read_lock();
	sroce_flow_sniffers(&w->table, &w->found);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, w->found.n, 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], sniffer);
	sroce_flow_table_del(&w->table, normal);
	sroce_flow_table_del(&w->table, sniffer);
	sroce_flow_table_del(&w->table, group);
	sroce_flow_table_del(&w->table, all);
	sroce_flow_table_end(&w->table);
}

/* What somebody sends does not come back to him, and is not kept from others by that */
static void flows_of_the_sender(struct kunit *test)
{
	struct raw_world *w = raw_world(test);
	struct sroce_flow *own = raw_flow(test, w, 1, 80, false);
	struct sroce_flow *other = raw_flow(test, w, 2, 80, false);

	own->rule.owner = own;
	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, own), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], other);
	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], own);
	sroce_flow_table_del(&w->table, own);
	sroce_flow_table_del(&w->table, other);
	sroce_flow_table_end(&w->table);
}

static void flows_of_many_shapes(struct kunit *test)
{
	struct raw_world *w = raw_world(test);
	struct sroce_flow *flow[SROCE_FLOW_SHAPES], one_more = {
		.rule = { .type = SROCE_FLOW_NORMAL, .priority = 1000 },
	};
	int i;

	for (i = 0; i < SROCE_FLOW_SHAPES; i++)
		flow[i] = raw_flow(test, w, i, 80, false);
	KUNIT_EXPECT_EQ(test, sroce_flow_table_add(&w->table, &one_more, true),
			-ENOSPC);
	KUNIT_EXPECT_EQ(test, raw_match(w, 80, false, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[0], flow[0]);
	for (i = 0; i < SROCE_FLOW_SHAPES; i++)
		sroce_flow_table_del(&w->table, flow[i]);
	sroce_flow_table_end(&w->table);
}

/* Many that look on do not keep a frame from the flow that takes it, nor each other */
static void flows_behind_many(struct kunit *test)
{
	struct raw_world *w = raw_world(test);
	struct sroce_flow *sees[SROCE_FLOW_COPIES], *passes[SROCE_FLOW_COPIES];
	struct sroce_flow *one, *takes;
	int i;

	for (i = 0; i < SROCE_FLOW_COPIES; i++) {
		sees[i] = raw_other(test, w, SROCE_FLOW_SNIFFER);
		passes[i] = raw_flow(test, w, 1, 80, true);
	}
	one = raw_flow(test, w, 2, 80, true);
	takes = raw_flow(test, w, 3, 80, false);
	memset(&w->found, 0, sizeof(w->found));
	rcu_read_lock();
	sroce_flow_sniffers(&w->table, &w->found);
	KUNIT_EXPECT_EQ(test, w->found.n, SROCE_FLOW_COPIES);
	sroce_flow_match(&w->table, &(struct sroce_flow_key){
			 .dport = htons(80) }, NULL, &w->found);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, w->found.n, 2 * SROCE_FLOW_COPIES + 1);
	KUNIT_EXPECT_PTR_EQ(test, w->found.flow[w->found.n - 1], takes);
	for (i = 0; i < SROCE_FLOW_COPIES; i++) {
		sroce_flow_table_del(&w->table, sees[i]);
		sroce_flow_table_del(&w->table, passes[i]);
	}
	sroce_flow_table_del(&w->table, one);
	sroce_flow_table_del(&w->table, takes);
	sroce_flow_table_end(&w->table);
}

/* The last ones of everything are for the administrator */
static void flows_in_reserve(struct kunit *test)
{
	static const enum sroce_flow_type types[] = { SROCE_FLOW_NORMAL,
						      SROCE_FLOW_SNIFFER };
	struct sroce_flow *flow[SROCE_FLOW_COPIES];
	struct raw_world *w = raw_world(test);
	int i, t;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (i = 0; i < SROCE_FLOW_COPIES; i++) {
			flow[i] = kunit_kzalloc(test, sizeof(*flow[i]),
						GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, flow[i]);
			flow[i]->rule.type = types[t];
			KUNIT_ASSERT_EQ(test, sroce_flow_prepare(flow[i]), 0);
			KUNIT_EXPECT_EQ(test,
					sroce_flow_table_add(&w->table, flow[i],
							     false),
					i < SROCE_FLOW_COPIES -
					SROCE_FLOW_COPIES / SROCE_FLOW_RESERVED ?
					0 : -ENOSPC);
		}
		i = SROCE_FLOW_COPIES - 1;
		KUNIT_EXPECT_EQ(test, sroce_flow_table_add(&w->table, flow[i],
							   true), 0);
		for (i = 0; i < SROCE_FLOW_COPIES; i++) {
			sroce_flow_table_del(&w->table, flow[i]);
			kfree(flow[i]->spare);
		}
	}
	sroce_flow_table_end(&w->table);
}

/* --- queue pairs that lack a queue ------------------------------------------------- */

/*
 * A process's queue pair of a table of work queues, or a work queue, together with a
 * neighbour in the page of its pool. What the process writes there are its own prod
 * indices: whether those of @qp are among them is what the tests are about.
 */
struct raw_lacking {
	struct side *s;
	struct sroce_ring_pool pool;
	struct ib_qp ibqp;
	struct sroce_qp *qp;
};

static struct raw_lacking *raw_lacking(struct kunit *test, struct side *s,
				       struct ib_qp_init_attr *init)
{
	struct raw_lacking *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->s = s;
	sroce_ring_pool_init(&l->pool);
	l->ibqp.pd = &l->s->pd;
	init->qp_type = IB_QPT_RAW_PACKET;
	l->qp = sroce_qp_create(&l->s->port, &l->ibqp, init, l, &l->pool);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l->qp));
	return l;
}

static struct raw_lacking *raw_lacking_all(struct kunit *test)
{
	static struct ib_rwq_ind_table table;
	struct ib_qp_init_attr init = { .rwq_ind_tbl = &table };
	struct pair *p = pair_create(test, &(struct pair_config){});

	return raw_lacking(test, &p->side[0], &init);
}

static void raw_lacking_end(struct raw_lacking *l)
{
	sroce_qp_destroy(l->qp);
	sroce_ring_pool_drop(&l->pool);
}

static void raw_lacking_to(struct kunit *test, struct raw_lacking *l,
			   enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	KUNIT_ASSERT_EQ(test, 0, sroce_qp_modify(l->qp, &attr, IB_QP_STATE,
						 NULL));
}

/* Its rings are where no process can write */
static void rings_of_nobody(struct kunit *test)
{
	struct raw_lacking *l = raw_lacking_all(test);

	KUNIT_EXPECT_NULL(test, l->pool.mem);
	raw_lacking_end(l);
}

/* There are no completion queues that a doorbell could look at */
static void doorbell_without_queues(struct kunit *test)
{
	struct raw_lacking *l = raw_lacking_all(test);

	raw_lacking_to(test, l, IB_QPS_INIT);
	raw_lacking_to(test, l, IB_QPS_RTR);
	raw_lacking_to(test, l, IB_QPS_RTS);
	sroce_qp_doorbell(l->qp);
	raw_lacking_to(test, l, IB_QPS_ERR);
	sroce_qp_doorbell(l->qp);
	raw_lacking_end(l);
}

/* ... and none for what is in the rings, however it has come there */
static void flush_without_queues(struct kunit *test)
{
	struct raw_lacking *l = raw_lacking_all(test);

	l->qp->req.ring.hdr->prod = 1;
	l->qp->resp.ring.hdr->prod = 1;
	sroce_qp_flush(l->qp);
	KUNIT_EXPECT_EQ(test, l->qp->req.ring.index, 0);
	KUNIT_EXPECT_EQ(test, l->qp->resp.ring.index, 0);
	raw_lacking_end(l);
}

/* Nothing that could be sent is no reason to look again and again */
static void work_without_queues(struct kunit *test)
{
	struct raw_lacking *l = raw_lacking_all(test);
	struct sroce_half *half = &l->qp->req.half;

	l->qp->req.ring.hdr->prod = 1;
	raw_lacking_to(test, l, IB_QPS_INIT);
	raw_lacking_to(test, l, IB_QPS_RTR);
	raw_lacking_to(test, l, IB_QPS_RTS);
	spin_lock_bh(&half->lock);
	KUNIT_EXPECT_FALSE(test, half->run(half));
	spin_unlock_bh(&half->lock);
	raw_lacking_end(l);
}

/* A work queue's send ring is mapped, and what is written there means nothing */
static void sends_to_work_queue(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct ib_qp_init_attr init = {
		.recv_cq = &p->side[0].rcq.ibcq,
		.cap = { .max_recv_wr = 4, .max_recv_sge = 1 },
	};
	struct raw_lacking *l = raw_lacking(test, &p->side[0], &init);
	struct sroce_half *half = &l->qp->req.half;

	KUNIT_EXPECT_NOT_NULL(test, l->pool.mem);
	l->qp->req.ring.hdr->prod = 1;
	raw_lacking_to(test, l, IB_QPS_RTR);
	sroce_qp_doorbell(l->qp);
	spin_lock_bh(&half->lock);
	KUNIT_EXPECT_FALSE(test, half->run(half));
	spin_unlock_bh(&half->lock);
	sroce_qp_flush(l->qp);
	KUNIT_EXPECT_EQ(test, l->qp->req.ring.index, 0);
	raw_lacking_end(l);
}

/* --- frames that wait ---------------------------------------------------------------- */

/* A frame that is work for so many copies */
static bool raw_put_much(struct kunit *test, struct sroce_raw_later *later,
			 enum sroce_raw_way way, u8 mark, u32 copies)
{
	struct sroce_raw_cb cb = { .way = way, .copies = copies };
	struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_u8(skb, mark);
	if (sroce_raw_later_put(later, skb, &cb))
		return true;
	kfree_skb(skb);
	return false;
}

static bool raw_put(struct kunit *test, struct sroce_raw_later *later,
		    enum sroce_raw_way way, u8 mark)
{
	return raw_put_much(test, later, way, mark, 1);
}

/* Until there is no room for more. Return: how many */
static u32 raw_fill(struct kunit *test, struct sroce_raw_later *later,
		    enum sroce_raw_way way, u32 copies)
{
	u32 n = 0;

	while (n <= SROCE_RAW_LATER_FRAMES &&
	       raw_put_much(test, later, way, 1, copies))
		n++;
	return n;
}

/* Return: the mark of the next one, or -1 */
static int raw_taken(struct sroce_raw_later *later, struct sroce_raw_cb *cb)
{
	struct sk_buff *skb = sroce_raw_later_next(later, cb);
	int mark;

	if (!skb)
		return -1;
	mark = skb->data[0];
	consume_skb(skb);
	return mark;
}

static void later_from_the_host_last(struct kunit *test)
{
	static const u8 order[] = { 2, 3, 4, 1, 5 };
	struct sroce_raw_later later;
	struct sroce_raw_cb cb;
	int i;

	sroce_raw_later_init(&later);
	raw_put(test, &later, SROCE_RAW_OUT, 1);
	KUNIT_EXPECT_FALSE(test, sroce_raw_later_waits(&later));
	raw_put(test, &later, SROCE_RAW_IN, 2);
	raw_put(test, &later, SROCE_RAW_LOOP, 3);
	raw_put(test, &later, SROCE_RAW_IN, 4);
	raw_put(test, &later, SROCE_RAW_OUT, 5);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		KUNIT_EXPECT_EQ(test, sroce_raw_later_waits(&later), i < 3);
		KUNIT_EXPECT_EQ(test, raw_taken(&later, &cb), order[i]);
		/* Until it is done with, another one would overtake it */
		KUNIT_EXPECT_EQ(test, sroce_raw_later_waits(&later), i < 3);
		sroce_raw_later_done(&later, &cb);
	}
	KUNIT_EXPECT_EQ(test, raw_taken(&later, &cb), -1);
}

/*
 * Have a new frame of @way wait as soon as there is none, and one from the wire as well.
 * Return: how many of that way are taken with @n from the wire.
 */
static u32 raw_taken_beside(struct kunit *test, enum sroce_raw_way way,
			    u32 copies, u32 wire_copies, u32 n)
{
	struct sroce_raw_later later;
	struct sroce_raw_cb cb;
	u32 taken = 0;

	sroce_raw_later_init(&later);
	while (n) {
		if (skb_queue_empty(&later.received.list))
			raw_put_much(test, &later, SROCE_RAW_IN, SROCE_RAW_IN,
				     wire_copies);
		if (skb_queue_empty(&later.looped.list) &&
		    skb_queue_empty(&later.sent.list))
			raw_put_much(test, &later, way, way, copies);
		if (raw_taken(&later, &cb) == way)
			taken++;
		else
			n--;
		sroce_raw_later_done(&later, &cb);
	}
	sroce_raw_later_purge(&later);
	return taken;
}

static void raw_check_share(struct kunit *test, u32 copies, u32 wire_copies)
{
	u32 n = raw_taken_beside(test, SROCE_RAW_LOOP, copies, wire_copies,
				 160);

	/* But for one frame of the other kind */
	KUNIT_EXPECT_GE(test, (n + 1) * copies, 159 * wire_copies);
	KUNIT_EXPECT_LE(test, (n - 1) * copies, 161 * wire_copies);
}

/* Frames between queue pairs have half of the worker, however much work theirs and others are */
static void later_between_queue_pairs(struct kunit *test)
{
	raw_check_share(test, 1, 1);
	raw_check_share(test, 1, 16);
	raw_check_share(test, 16, 1);
	KUNIT_EXPECT_EQ(test, 0, raw_taken_beside(test, SROCE_RAW_OUT, 1, 1,
						  160));
}

/* Whoever was alone for long has not had what others did not want */
static void later_without_credit(struct kunit *test)
{
	struct sroce_raw_later later;
	struct sroce_raw_cb cb;
	u32 i;

	sroce_raw_later_init(&later);
	for (i = 0; i < 100; i++) {
		raw_put(test, &later, SROCE_RAW_IN, 1);
		raw_taken(&later, &cb);
		sroce_raw_later_done(&later, &cb);
	}
	for (i = 0; i < 3; i++) {
		raw_put(test, &later, SROCE_RAW_LOOP, 2);
		raw_put(test, &later, SROCE_RAW_IN, 1);
	}
	/* The debt is that of the last one */
	KUNIT_EXPECT_EQ(test, raw_taken(&later, &cb), 2);
	KUNIT_EXPECT_EQ(test, raw_taken(&later, &cb), 1);
	sroce_raw_later_purge(&later);
}

/* No kind of frames takes a place from those of another one */
static void later_without_end(struct kunit *test)
{
	static const enum sroce_raw_way ways[] = { SROCE_RAW_OUT, SROCE_RAW_LOOP,
						   SROCE_RAW_IN };
	struct sroce_raw_later later;
	int i;

	sroce_raw_later_init(&later);
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		KUNIT_EXPECT_EQ(test, raw_fill(test, &later, ways[i], 1),
				SROCE_RAW_LATER_FRAMES);
	sroce_raw_later_purge(&later);
	KUNIT_EXPECT_EQ(test, later.sent.bytes + later.looped.bytes +
			later.received.bytes, 0);
	KUNIT_EXPECT_EQ(test, later.sent.copies + later.looped.copies +
			later.received.copies, 0);
	KUNIT_EXPECT_FALSE(test, sroce_raw_later_waits(&later));
}

/* A few buffers that are to be cut up into thousands, for all flows or for one */
static void later_with_much_work(struct kunit *test)
{
	static const u32 flows[] = { 1, 12, SROCE_FLOW_CLASSES *
				     SROCE_FLOW_COPIES };
	struct sroce_raw_later later;
	int i;

	sroce_raw_later_init(&later);
	for (i = 0; i < ARRAY_SIZE(flows); i++) {
		KUNIT_EXPECT_GT(test, raw_fill(test, &later, SROCE_RAW_IN,
					       2048 * flows[i]), 0);
		KUNIT_EXPECT_LE(test, later.received.copies,
				SROCE_RAW_LATER_COPIES / 8 * 7);
		/* There is room for a common one of 64 KiB, and for hundreds of plain ones */
		KUNIT_EXPECT_TRUE(test, raw_put_much(test, &later, SROCE_RAW_IN,
						     1, 46 * flows[i]));
		KUNIT_EXPECT_GE(test, raw_fill(test, &later, SROCE_RAW_IN,
					       flows[i]), 256);
		KUNIT_EXPECT_LE(test, later.received.copies,
				SROCE_RAW_LATER_COPIES);
		sroce_raw_later_purge(&later);
	}
}

static struct kunit_case raw_cases[] = {
	KUNIT_CASE(toeplitz_ipv4),
	KUNIT_CASE(toeplitz_ipv6),
	KUNIT_CASE(toeplitz_of_nothing),
	KUNIT_CASE(frame_of_udp),
	KUNIT_CASE(frame_with_tag),
	KUNIT_CASE(frame_cut_short),
	KUNIT_CASE(frame_coupled),
	KUNIT_CASE(frame_that_lies),
	KUNIT_CASE(flows_by_priority),
	KUNIT_CASE(flows_that_do_not_trap),
	KUNIT_CASE(flows_that_say_the_same),
	KUNIT_CASE(flows_of_other_types),
	KUNIT_CASE(flows_of_the_sender),
	KUNIT_CASE(flows_of_many_shapes),
	KUNIT_CASE(flows_behind_many),
	KUNIT_CASE(flows_in_reserve),
	KUNIT_CASE(later_from_the_host_last),
	KUNIT_CASE(later_between_queue_pairs),
	KUNIT_CASE(later_without_credit),
	KUNIT_CASE(later_without_end),
	KUNIT_CASE(later_with_much_work),
	{}
};

static struct kunit_suite raw_suite = {
	.name = "sroce_raw",
	.test_cases = raw_cases,
};

static struct kunit_case raw_lacking_cases[] = {
	KUNIT_CASE(rings_of_nobody),
	KUNIT_CASE(doorbell_without_queues),
	KUNIT_CASE(flush_without_queues),
	KUNIT_CASE(work_without_queues),
	KUNIT_CASE(sends_to_work_queue),
	{}
};

static struct kunit_suite raw_lacking_suite = {
	.name = "sroce_raw_lacking",
	.exit = pair_exit,
	.test_cases = raw_lacking_cases,
};

kunit_test_suites(&raw_suite, &raw_lacking_suite);
