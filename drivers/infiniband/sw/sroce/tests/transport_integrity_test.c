// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions with protection information at one end of each operation, over a network that
 * loses, repeats and reorders packets, and directly: right bytes on the wire, right bytes
 * in memory, errors found once.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/string.h>

#include "memory/users.h"
#include "tests/sig_region.h"
#include "tests/transport_pair.h"
#include "transport/gather.h"
#include "transport/run.h"
#include "turn.h"

#define PLACE 0x80003		/* of what is on the wire, in the peer's memory */

/* How bytes pass: in the first three cases out of the region, which is side 0's */
enum way {
	WRITE_FROM,
	READ_OF,
	SEND_FROM,
	WRITE_INTO,
	READ_INTO,
	SEND_INTO,
	WAYS
};

static const char *const way_names[] = {
	"WRITE from", "READ of", "SEND from", "WRITE into", "READ into", "SEND into"
};

static bool goes_out(enum way way)
{
	return way <= SEND_FROM;
}

/* The region in place of the local memory */
static void from_region(struct work *w, const struct sig_region *r)
{
	w->sge[0] = (struct sroce_sge){
		.length = sig_wire_bytes(r),
		.lkey = r->mr->key,
	};
	w->wqe.num_sge = 1;
}

static void own_work(struct side *s, const struct sig_region *r, u8 opcode, struct work *w)
{
	work_init(w, opcode, 1);
	from_region(w, r);
	work_remote(s, w, PLACE);
}

static void own_request(struct side *s, const struct sig_region *r, u8 opcode)
{
	struct work w;

	own_work(s, r, opcode, &w);
	side_post(s, &w);
}

static void peer_work(struct side *peer, const struct sig_region *r, u8 opcode, struct work *w)
{
	work_rdma(peer, w, opcode, 1, PLACE, 0, sig_wire_bytes(r));
	w->wqe.rdma.remote_addr = 0;
	w->wqe.rdma.rkey = r->mr->key;
}

static void peer_request(struct side *peer, const struct sig_region *r, u8 opcode)
{
	struct work w;

	peer_work(peer, r, opcode, &w);
	side_post(peer, &w);
}

static void receive_into(struct side *s, const struct sig_region *r)
{
	struct recv recv;

	recv_init(&recv, s, 1, 0, sig_wire_bytes(r));
	recv.sge.addr = 0;
	recv.sge.lkey = r->mr->key;
	KUNIT_ASSERT_EQ(s->pair->test, side_try_recv(s, &recv.wr), 0);
}

/* Who has posted */
static struct side *pass(struct pair *p, const struct sig_region *r, enum way way)
{
	struct side *s = &p->side[0], *peer = &p->side[1];
	struct work w;

	switch (way) {
	case WRITE_FROM:
		own_request(s, r, SROCE_WR_RDMA_WRITE);
		return s;
	case READ_INTO:
		own_request(s, r, SROCE_WR_RDMA_READ);
		return s;
	case READ_OF:
		peer_request(peer, r, SROCE_WR_RDMA_READ);
		return peer;
	case WRITE_INTO:
		peer_request(peer, r, SROCE_WR_RDMA_WRITE);
		return peer;
	case SEND_FROM:
		side_recv(peer, 1, PLACE, sig_wire_bytes(r));
		own_request(s, r, SROCE_WR_SEND);
		return s;
	default:
		receive_into(s, r);
		side_post(peer, work_send(peer, &w, 1, PLACE, sig_wire_bytes(r)));
		return peer;
	}
}

static void pass_all(struct pair *p, const struct sig_region *r, enum way way)
{
	struct side *s = pass(p, r, way);

	side_expect_send(s, 1, IB_WC_SUCCESS);
	if (way == SEND_FROM || way == SEND_INTO)
		side_expect_recv(pair_peer(s), 1, IB_WC_SUCCESS);
	/* What is sent again once more than necessary must change nothing */
	pair_settle(p);
}

/* --- nothing is wrong ------------------------------------------------------------------ */

static void expect_passes(struct pair *p, struct sig_region *r, enum way way)
{
	u8 *there = p->side[1].mem + PLACE;
	u32 bytes = sig_wire_bytes(r);
	struct ib_sig_err err = {};

	sig_to_memory(r, !goes_out(way));
	if (goes_out(way)) {
		memset(there, 0, bytes);
		sig_make_wire(r, r->wire);
	} else {
		sig_make_wire(r, there);
	}
	pass_all(p, r, way);
	if (goes_out(way))
		KUNIT_EXPECT_EQ_MSG(p->test, memcmp(there, r->wire, bytes), 0, "%s",
				    way_names[way]);
	KUNIT_EXPECT_TRUE_MSG(p->test, sig_memory_is_right(r), "%s", way_names[way]);
	KUNIT_EXPECT_FALSE_MSG(p->test, sroce_integrity_status(r->mr, &err),
			       "%s: type %d expected %x actual %x at %llx", way_names[way],
			       err.err_type, err.expected, err.actual, err.sig_err_offset);
	KUNIT_EXPECT_EQ(p->test, sig_register(r), 0);
}

/* --- an error ---------------------------------------------------------------------------- */

/* Data of one block is not what its tuple says; everything arrives all the same */
static void expect_error(struct pair *p, struct sig_region *r, enum way way, u32 block)
{
	u8 *there = p->side[1].mem + PLACE;
	bool has_tuple = goes_out(way) ? r->c.mem != SIG_NONE : r->c.wire != SIG_NONE;
	struct ib_sig_err err = {};

	sig_to_memory(r, !goes_out(way));
	sig_make_wire(r, there);
	if (goes_out(way))
		sig_damage(r, block, 77);
	else
		there[sig_wire_bytes(r) / r->c.blocks * block + 77] ^= 0x21;
	pass_all(p, r, way);
	KUNIT_EXPECT_EQ_MSG(p->test, sroce_integrity_status(r->mr, &err), has_tuple, "%s",
			    way_names[way]);
	if (has_tuple) {
		KUNIT_EXPECT_EQ(p->test, err.err_type, IB_SIG_BAD_GUARD);
		KUNIT_EXPECT_EQ(p->test, err.sig_err_offset, (u64)block * (r->c.interval + 8));
		KUNIT_EXPECT_EQ(p->test, err.key, r->mr->key);
	}
	KUNIT_EXPECT_FALSE(p->test, sroce_integrity_status(r->mr, &err));
	KUNIT_EXPECT_EQ(p->test, sig_register(r), 0);
}

/* --- all of it ------------------------------------------------------------------------------ */

static const struct sig_case cases[] = {
	{ SIG_NONE, SIG_CRC, 1, 512, 60, false, SIG_CHECK_ALL },
	{ SIG_CRC, SIG_NONE, 3, 4096, 7, false, SIG_CHECK_ALL },
	{ SIG_CRC, SIG_CRC, 2, 4096, 9, false, SIG_CHECK_ALL },
	{ SIG_CSUM, SIG_CRC, 1, 512, 71, true, SIG_CHECK_ALL },
	{ SIG_CRC, SIG_CSUM, 3, 520, 33, true, SIG_CHECK_ALL },
};

static void every_way(struct pair *p)
{
	struct sig_region *r;
	unsigned int i;
	enum way way;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		r = sig_new(p->test, &p->side[0].port.mrs, &p->side[0].pd, &cases[i]);
		sig_fill(r, i);
		for (way = 0; way < WAYS; way++) {
			expect_passes(p, r, way);
			expect_error(p, r, way, r->c.blocks / 2);
			expect_error(p, r, way, r->c.blocks - 1);
		}
		sig_free(r);
	}
}

static const enum ib_mtu mtus[] = {
	IB_MTU_256, IB_MTU_512, IB_MTU_1024, IB_MTU_2048, IB_MTU_4096
};

static void by_network(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mtus); i++) {
		every_way(pair_create(test, &(struct pair_config){ .mtu = mtus[i] }));
		pair_exit(test);
	}
}

static void directly(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mtus); i++) {
		every_way(pair_create(test, &(struct pair_config){
			.mtu = mtus[i],
			.direct = true,
		}));
		pair_exit(test);
	}
}

static void by_bad_network(struct kunit *test, bool plain)
{
	struct pair *p;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mtus); i++) {
		p = pair_create(test, &(struct pair_config){
			.mtu = mtus[i],
			.plain = plain,
			.seed = 7 + i,
		});
		p->net.drop = 30;
		p->net.twice = 50;
		p->net.swap = 50;
		every_way(p);
		pair_exit(test);
	}
}

/* Sent again from the gap on, and kept what was early */
static void go_back_n(struct kunit *test)
{
	by_bad_network(test, true);
}

static void selective_repeat(struct kunit *test)
{
	by_bad_network(test, false);
}

/* --- registrations that wait ------------------------------------------------------------------ */

/* A registration, and a WRITE from the region behind it */
static void post_registration(struct side *s, const struct sig_region *r, u32 key)
{
	struct work w;

	work_init(&w, SROCE_WR_REG_MR, 1);
	w.wqe.reg.mr = (uintptr_t)r->mr;
	w.wqe.reg.key = key;
	w.wqe.reg.access = SIG_ACCESS;
	side_post(s, &w);
	own_work(s, r, SROCE_WR_RDMA_WRITE, &w);
	w.wqe.wr_id = 2;
	w.sge[0].lkey = key;
	side_post(s, &w);
}

/*
 * A registration ends while somebody uses the region, and the next one, which would change
 * what he finds, is posted. Return: the user
 */
static struct sroce_mr *register_in_use(struct side *s, struct sig_region *r, u32 key)
{
	struct kunit *test = s->pair->test;
	struct sroce_requester *req = &s->qp->req;
	struct sroce_mr *mr = r->mr, *user = sroce_mr_find(mr->table, mr->key, mr->ibmr.pd);
	unsigned long end = jiffies + 5 * HZ;

	KUNIT_ASSERT_PTR_EQ(test, user, mr);
	KUNIT_ASSERT_EQ(test, sroce_mr_invalidate(mr->table, mr->key, mr->ibmr.pd, NULL, false),
			0);
	KUNIT_ASSERT_EQ(test, sroce_integrity_prepare(mr->sig, &r->attrs), 0);
	post_registration(s, r, key);
	/* Some looks at once, and from then on a timer's */
	while (!READ_ONCE(req->pace.wake) && time_before(jiffies, end))
		usleep_range(10, 20);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, end));
	KUNIT_EXPECT_GT(test, req->key_looks, 0);
	pair_deliver(s->pair);
	side_expect_none(s);
	KUNIT_EXPECT_FALSE(test, mr->valid);
	return user;
}

/* By the requester's own timer, which pair_wait() would take away */
static void wait_for_registration(const struct sig_region *r)
{
	unsigned long end = jiffies + 5 * HZ;

	while (!READ_ONCE(r->mr->valid) && time_before(jiffies, end))
		usleep_range(10, 20);
	KUNIT_EXPECT_TRUE(r->test, r->mr->valid);
}

static void registration_waits(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct side *s = &p->side[0];
	struct sig_region *r = sig_new(test, &s->port.mrs, &s->pd, &cases[3]);
	u32 key = r->mr->key ^ 2;
	struct sroce_mr *user;
	struct ib_sig_err err;

	sig_fill(r, 2);
	sig_to_memory(r, false);
	user = register_in_use(s, r, key);
	sroce_mr_put(user);
	wait_for_registration(r);
	KUNIT_EXPECT_EQ(test, r->mr->key, key);
	side_expect_send(s, 1, IB_WC_SUCCESS);
	side_expect_send(s, 2, IB_WC_SUCCESS);
	pair_settle(p);
	sig_make_wire(r, r->wire);
	KUNIT_EXPECT_EQ(test, memcmp(p->side[1].mem + PLACE, r->wire, sig_wire_bytes(r)), 0);
	KUNIT_EXPECT_FALSE(test, sroce_integrity_status(r->mr, &err));
	KUNIT_EXPECT_EQ(test, s->qp->req.key_looks, 0);
	sig_free(r);
}

/* The queue pair ends first: then nothing was registered, and nothing will be */
static void registration_is_flushed(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct side *s = &p->side[0];
	struct sig_region *r = sig_new(test, &s->port.mrs, &s->pd, &cases[3]);
	u32 old = r->mr->key;
	struct sroce_mr *user = register_in_use(s, r, old ^ 2);

	side_to_error(s);
	side_expect_send(s, 1, IB_WC_WR_FLUSH_ERR);
	side_expect_send(s, 2, IB_WC_WR_FLUSH_ERR);
	sroce_mr_put(user);
	pair_settle(p);
	side_expect_none(s);
	KUNIT_EXPECT_FALSE(test, r->mr->valid);
	KUNIT_EXPECT_EQ(test, r->mr->key, old);
	side_to_reset(s);
	KUNIT_EXPECT_EQ(test, s->qp->req.key_looks, 0);
	KUNIT_EXPECT_EQ(test, sig_register(r), 0);
	sig_free(r);
}

/* --- several regions in one list ----------------------------------------------------------- */

/* A block of each */
static const struct sig_case one_block = { SIG_CRC, SIG_CRC, 1, 512, 1, false, SIG_CHECK_ALL };

static void expect_all_right(struct sig_region **r, u32 n)
{
	struct ib_sig_err err;
	u32 i;

	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_TRUE_MSG(r[i]->test, sig_memory_is_right(r[i]), "region %u", i);
		KUNIT_EXPECT_FALSE_MSG(r[i]->test, sroce_integrity_status(r[i]->mr, &err),
				       "region %u", i);
	}
}

/* A READ into @n regions */
static void read_into_all(struct kunit *test, enum ib_mtu mtu, u32 n, enum ib_wc_status status)
{
	struct pair *p = pair_create(test, &(struct pair_config){ .mtu = mtu });
	struct side *s = &p->side[0];
	struct sig_region *r[SROCE_GATHER_SIGS + 1];
	u8 *from = p->side[1].mem + PLACE;
	struct work w;
	u32 i;

	work_init(&w, SROCE_WR_RDMA_READ, 1);
	for (i = 0; i < n; i++) {
		r[i] = sig_new(test, &s->port.mrs, &s->pd, &one_block);
		sig_fill(r[i], i);
		sig_to_memory(r[i], true);
		sig_make_wire(r[i], from);
		from += sig_wire_bytes(r[i]);
		w.sge[i].length = sig_wire_bytes(r[i]);
		w.sge[i].lkey = r[i]->mr->key;
	}
	w.wqe.num_sge = n;
	work_remote(s, &w, PLACE);
	side_post(s, &w);
	side_expect_send(s, 1, status);
	pair_settle(p);
	if (status == IB_WC_SUCCESS)
		expect_all_right(r, n);
	for (i = 0; i < n; i++)
		sig_free(r[i]);
	pair_exit(test);
}

/* A packet may be in some, and a train, which is cut, in more */
static void several_regions(struct kunit *test)
{
	read_into_all(test, IB_MTU_4096, SROCE_GATHER_SIGS, IB_WC_SUCCESS);
	read_into_all(test, IB_MTU_512, SROCE_GATHER_SIGS + 1, IB_WC_SUCCESS);
	read_into_all(test, IB_MTU_4096, SROCE_GATHER_SIGS + 1, IB_WC_LOC_PROT_ERR);
}

/* --- what does not go ------------------------------------------------------------------------- */

/* Packets may be in more pieces than there is room for: where that cannot be helped, never */
static void not_without_acks(struct kunit *test)
{
	const struct sig_case c = { SIG_CRC, SIG_CRC, 1, 512, 4, false, SIG_CHECK_ALL };
	struct pair *p = pair_create(test, &(struct pair_config){ .type = IB_QPT_UC });
	struct side *s = &p->side[0], *peer = &p->side[1];
	struct sig_region *r = sig_new(test, &s->port.mrs, &s->pd, &c);
	struct ib_sig_err err;

	sig_fill(r, 1);
	sig_to_memory(r, false);
	sig_make_wire(r, peer->mem + PLACE);
	peer->mem[PLACE] ^= 1;
	peer_request(peer, r, SROCE_WR_RDMA_WRITE);
	side_expect_send(peer, 1, IB_WC_SUCCESS);
	pair_settle(p);
	KUNIT_EXPECT_TRUE(test, sig_memory_is_right(r));
	KUNIT_EXPECT_FALSE(test, sroce_integrity_status(r->mr, &err));

	/* Trains are cut where that is needed: to send is no question of ACKs */
	memset(peer->mem + PLACE, 0, sig_wire_bytes(r));
	own_request(s, r, SROCE_WR_RDMA_WRITE);
	side_expect_send(s, 1, IB_WC_SUCCESS);
	pair_settle(p);
	sig_make_wire(r, r->wire);
	KUNIT_EXPECT_EQ(test, memcmp(peer->mem + PLACE, r->wire, sig_wire_bytes(r)), 0);
	sig_free(r);
}

/* Bytes that a turn counts for one byte out of the region, or into it */
static unsigned long spent_on(struct pair *p, const struct sig_region *r, u32 byte, bool out)
{
	struct side *s = &p->side[!out];
	unsigned long spent;
	struct work w;

	if (out) {
		own_work(s, r, SROCE_WR_RDMA_WRITE, &w);
		w.sge[0].addr = byte;
		w.sge[0].length = 1;
	} else {
		peer_work(s, r, SROCE_WR_RDMA_WRITE, &w);
		w.sge[0].length = 1;
		w.wqe.rdma.remote_addr = byte;
	}
	local_bh_disable();
	sroce_turn_begin(false);
	spent = sroce_turn_spent();
	KUNIT_EXPECT_EQ(p->test, side_try_post(s, &w), 0);
	sroce_run_pending();
	spent = sroce_turn_spent() - spent;
	sroce_turn_end();
	local_bh_enable();
	side_expect_send(s, 1, IB_WC_SUCCESS);
	pair_settle(p);
	return spent;
}

/* Who asks for one byte of a tuple, or changes one, has the guards of its block made */
static void guards_are_work(struct kunit *test)
{
	const struct sig_case c = { SIG_CSUM, SIG_CRC, 1, 4096, 4, false, SIG_CHECK_ALL };
	struct pair *p = pair_create(test, &(struct pair_config){ .direct = true });
	struct side *s = &p->side[0];
	struct sig_region *r = sig_new(test, &s->port.mrs, &s->pd, &c);

	sig_fill(r, 1);
	sig_to_memory(r, false);
	KUNIT_EXPECT_EQ(test, spent_on(p, r, 4103, true) - spent_on(p, r, 1, true), 2 * 4096);
	sig_make_wire(r, p->side[1].mem + PLACE);
	pass_all(p, r, WRITE_INTO);
	/* Of a block that is there each byte but the first; of one that is not, none */
	KUNIT_EXPECT_EQ(test, spent_on(p, r, 1, false) - spent_on(p, r, 4104, false), 2 * 4096);
	sig_free(r);
}

/* The peer sees no more of it than there is on the wire, and not after it was invalidated */
static void bounds(struct kunit *test)
{
	const struct sig_case c = { SIG_CRC, SIG_NONE, 1, 512, 4, false, SIG_CHECK_ALL };
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct side *s = &p->side[0], *peer = &p->side[1];
	struct sig_region *r = sig_new(test, &s->port.mrs, &s->pd, &c);
	struct work w;

	work_rdma(peer, &w, SROCE_WR_RDMA_READ, 1, PLACE, 0, 4 * 512 + 1);
	w.wqe.rdma.remote_addr = 0;
	w.wqe.rdma.rkey = r->mr->key;
	side_post(peer, &w);
	side_expect_send(peer, 1, IB_WC_REM_ACCESS_ERR);
	pair_settle(p);
	sig_free(r);
}

static struct kunit_case transport_integrity_cases[] = {
	KUNIT_CASE(by_network),
	KUNIT_CASE(directly),
	KUNIT_CASE(go_back_n),
	KUNIT_CASE(selective_repeat),
	KUNIT_CASE(registration_waits),
	KUNIT_CASE(registration_is_flushed),
	KUNIT_CASE(several_regions),
	KUNIT_CASE(not_without_acks),
	KUNIT_CASE(guards_are_work),
	KUNIT_CASE(bounds),
	{}
};

static struct kunit_suite transport_integrity_suite = {
	.name = "sroce_transport_integrity",
	.exit = pair_exit,
	.test_cases = transport_integrity_cases,
};

kunit_test_suite(transport_integrity_suite);
