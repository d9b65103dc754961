// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What two connected QPs do when nothing goes wrong: every operation, with its
 * data, over the network and directly.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "tests/transport_pair.h"

/* Places in the sides' memory */
#define SRC 0x1003
#define DST 0x80005
#define GUARD 16

static const bool ways[] = { false, true };

static void way_name(const bool *direct, char *desc)
{
	strscpy(desc, *direct ? "direct" : "packets", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(way, ways, way_name);

static struct pair *way_pair(struct kunit *test, struct pair_config *c)
{
	c->direct = *(const bool *)test->param_value;
	return pair_create(test, c);
}

/* --- sizes ------------------------------------------------------------------------ */

/* Neither a byte too few nor one too many */
static void expect_placed(struct side *to, u32 len, u32 seed)
{
	struct kunit *test = to->pair->test;
	int i;

	KUNIT_EXPECT_TRUE_MSG(test, side_filled(to, DST, len, seed),
			      "wrong data, len %u mtu %u", len, to->pair->mtu);
	for (i = 1; i <= GUARD; i++) {
		KUNIT_EXPECT_EQ(test, to->mem[DST - i], 0xee);
		KUNIT_EXPECT_EQ(test, to->mem[DST + len + i - 1], 0xee);
	}
}

static void prepare(struct side *from, struct side *to, u32 len, u32 seed)
{
	memset(to->mem + DST - GUARD, 0xee, len + 2 * GUARD);
	side_fill(from, SRC, len, seed);
}

static void do_write(struct pair *p, u32 len)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	prepare(a, b, len, len + 1);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, len, SRC, DST, len));
	side_expect_send(a, len, IB_WC_SUCCESS);
	expect_placed(b, len, len + 1);
}

static void do_read(struct pair *p, u32 len)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_wc wc;
	struct work w;

	prepare(b, a, len, len + 2);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, len, DST, SRC, len));
	side_expect(a, &a->scq, len, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(p->test, wc.byte_len, len);
	KUNIT_EXPECT_EQ(p->test, wc.opcode, IB_WC_RDMA_READ);
	expect_placed(a, len, len + 2);
}

static void do_send(struct pair *p, u32 len)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_wc wc;
	struct work w;

	prepare(a, b, len, len + 3);
	side_recv(b, len + 7, DST, len);
	side_post(a, work_send(a, &w, len, SRC, len));
	side_expect_send(a, len, IB_WC_SUCCESS);
	side_expect(b, &b->rcq, len + 7, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(p->test, wc.byte_len, len);
	KUNIT_EXPECT_EQ(p->test, wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(p->test, wc.wc_flags, 0);
	expect_placed(b, len, len + 3);
}

static void do_write_imm(struct pair *p, u32 len)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_wc wc;
	struct work w;

	prepare(a, b, len, len + 4);
	side_recv(b, len + 8, 0, 0);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, len, SRC, DST, len);
	w.wqe.imm_data = cpu_to_be32(0x12345678);
	side_post(a, &w);
	side_expect(a, &a->scq, len, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(p->test, wc.opcode, IB_WC_RDMA_WRITE);
	side_expect(b, &b->rcq, len + 8, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(p->test, wc.byte_len, len);
	KUNIT_EXPECT_EQ(p->test, wc.opcode, IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_EQ(p->test, wc.wc_flags, IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(p->test, be32_to_cpu(wc.ex.imm_data), 0x12345678);
	expect_placed(b, len, len + 4);
}

static void do_all(struct pair *p, u32 len)
{
	do_write(p, len);
	do_read(p, len);
	do_send(p, len);
	do_write_imm(p, len);
	side_expect_none(&p->side[0]);
	side_expect_none(&p->side[1]);
}

static void sizes_of_mtu(struct kunit *test, enum ib_mtu mtu)
{
	struct pair_config c = { .mtu = mtu };
	struct pair *p = way_pair(test, &c);
	u32 mtu_bytes = p->mtu;

	do_all(p, 0);
	do_all(p, 1);
	do_all(p, 3);
	do_all(p, mtu_bytes - 1);
	do_all(p, mtu_bytes);
	do_all(p, mtu_bytes + 1);
	do_all(p, 2 * mtu_bytes);
	do_all(p, 3 * mtu_bytes + 7);
	do_all(p, 64 * mtu_bytes);
	do_all(p, 64 * mtu_bytes + 1);
	pair_exit(test);
}

static void transfer_sizes(struct kunit *test)
{
	enum ib_mtu mtu;

	for (mtu = IB_MTU_256; mtu <= IB_MTU_4096; mtu++)
		sizes_of_mtu(test, mtu);
}

static struct kunit_case transport_cases[] = {
	KUNIT_CASE_PARAM(transfer_sizes, way_gen_params),
	{}
};

static struct kunit_suite transport_suite = {
	.name = "sroce_transport",
	.exit = pair_exit,
	.test_cases = transport_cases,
};

kunit_test_suite(transport_suite);
