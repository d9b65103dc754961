// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What two connected QPs do when nothing goes wrong: every operation, with its
 * data, over the network and directly.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "tests/transport_pair.h"
#include "transport/gather.h"

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

/* --- sizes --------------------------------------------------------------- */

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

/* --- where the data comes from ------------------------------------------- */

static void inline_data(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	static const u32 sizes[] = { 0, 1, 28, 256, 257, SROCE_MAX_INLINE };
	struct work w;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		prepare(a, b, sizes[i], i);
		work_init(&w, SROCE_WR_RDMA_WRITE, i);
		work_remote(a, &w, DST);
		w.wqe.flags |= SROCE_SEND_INLINE;
		w.wqe.inline_len = sizes[i];
		w.inline_data = a->mem + SRC;
		side_post(a, &w);
		/* It is the work request's own from here on */
		memset(a->mem + SRC, 0, sizes[i]);
		side_expect_send(a, i, IB_WC_SUCCESS);
		expect_placed(b, sizes[i], i);
	}
}

/* Elements of odd lengths, empty ones among them */
static u32 cut_into_elements(struct side *s, struct work *w, u32 off, u32 n)
{
	u32 done = 0;
	u32 i, len;

	for (i = 0; i < n; i++) {
		len = i % 5 == 2 ? 0 : 1 + i * 97 % 700;
		work_local(s, w, off + done, len);
		done += len;
	}
	return done;
}

static void several_elements(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	u32 n, len;

	for (n = 0; n <= SROCE_MAX_SGE; n++) {
		work_init(&w, SROCE_WR_RDMA_WRITE, n);
		len = cut_into_elements(a, &w, SRC, n);
		work_remote(a, &w, DST);
		prepare(a, b, len, n);
		side_post(a, &w);
		side_expect_send(a, n, IB_WC_SUCCESS);
		expect_placed(b, len, n);

		work_init(&w, SROCE_WR_RDMA_READ, n);
		len = cut_into_elements(a, &w, DST, n);
		work_remote(a, &w, SRC);
		prepare(b, a, len, n + 50);
		side_post(a, &w);
		side_expect_send(a, n, IB_WC_SUCCESS);
		expect_placed(a, len, n + 50);
	}
}

static void receive_into_elements(struct kunit *test)
{
	struct ib_sge sge[SROCE_MAX_SGE];
	struct ib_recv_wr wr = { .wr_id = 5, .sg_list = sge };
	struct pair_config c = { .mtu = IB_MTU_512 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	u32 len = 0;
	int i;

	for (i = 0; i < SROCE_MAX_SGE; i++) {
		sge[i].addr = (uintptr_t)b->mem + DST + len;
		sge[i].length = i % 7 ? i * 31 : 0;
		sge[i].lkey = b->mr->key;
		len += sge[i].length;
	}
	wr.num_sge = SROCE_MAX_SGE;
	KUNIT_ASSERT_EQ(test, 0, side_try_recv(b, &wr));
	prepare(a, b, len, 9);
	side_post(a, work_send(a, &w, 1, SRC, len));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_recv(b, 5, IB_WC_SUCCESS);
	expect_placed(b, len, 9);
}

/*
 * The most pieces that a list can have: no two pages are neighbours, and every
 * element touches one page more than its length needs, twice.
 */
#define SCATTERED_BYTES (140 * PAGE_SIZE)

static u32 scattered_off(u32 i)
{
	return (i ? 34 + 3 * i : 0) * PAGE_SIZE + PAGE_SIZE - 1;
}

static u32 scattered_len(u32 i)
{
	return (i ? 1 : 32) * PAGE_SIZE + 2;
}

static void scattered_receive(struct side *s, u64 id, u8 *mem)
{
	struct ib_sge sge[SROCE_MAX_SGE];
	struct ib_recv_wr wr = {
		.wr_id = id,
		.sg_list = sge,
		.num_sge = SROCE_MAX_SGE,
	};
	u32 i;

	for (i = 0; i < SROCE_MAX_SGE; i++) {
		sge[i].addr = (uintptr_t)mem + scattered_off(i);
		sge[i].length = scattered_len(i);
		sge[i].lkey = s->mr->key;
	}
	KUNIT_EXPECT_EQ(s->pair->test, 0, side_try_recv(s, &wr));
}

/* One train when it is sent directly, from memory in one piece */
static u32 scattered_send(struct side *s, u64 id)
{
	struct work w;
	u32 len = 0;
	u32 i;

	for (i = 0; i < SROCE_MAX_SGE; i++)
		len += scattered_len(i);
	side_fill(s, SRC, len, 8);
	KUNIT_EXPECT_EQ(s->pair->test, 0,
			side_try_post(s, work_send(s, &w, id, SRC, len)));
	return len;
}

static bool scattered_same(const u8 *mem, const u8 *data)
{
	u32 i;

	for (i = 0; i < SROCE_MAX_SGE; i++) {
		if (memcmp(mem + scattered_off(i), data, scattered_len(i)))
			return false;
		data += scattered_len(i);
	}
	return true;
}

static void scattered_pages(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_4096 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u8 *to = vzalloc(SCATTERED_BYTES);
	struct ib_wc wc[2] = {};
	u32 len;

	if (!to)
		return;
	scattered_receive(b, 3, to);
	len = scattered_send(a, 4);
	pair_settle(p);
	KUNIT_EXPECT_TRUE(test, side_poll(&a->scq, &wc[0]));
	KUNIT_EXPECT_TRUE(test, side_poll(&b->rcq, &wc[1]));
	KUNIT_EXPECT_EQ(test, wc[0].status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc[1].status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc[1].byte_len, len);
	KUNIT_EXPECT_TRUE(test, scattered_same(to, a->mem + SRC));
	vfree(to);
}

/* --- completions --------------------------------------------------------- */

static void post_numbered(struct side *s, u32 from, u32 n, u32 signal_every)
{
	struct work w;
	u32 i;

	for (i = from; i < from + n; i++) {
		work_rdma(s, &w, SROCE_WR_RDMA_WRITE, i, SRC, DST, 100);
		if (i % signal_every)
			w.wqe.flags &= ~SROCE_SEND_SIGNALED;
		side_post(s, &w);
	}
}

static void unsignaled(struct kunit *test)
{
	struct pair_config c = { .depth = 32 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0];
	u32 i;

	/* More than the queue has places: unsignaled ones give theirs back */
	for (i = 1; i < 200; i += 10) {
		post_numbered(a, i, 10, 10);
		side_expect_send(a, i + 9, IB_WC_SUCCESS);
	}
	side_expect_none(a);
}

static void signal_all(struct kunit *test)
{
	struct pair_config c = { .sig_all = true };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0];
	u32 i;

	post_numbered(a, 1, 20, 1000);
	for (i = 1; i <= 20; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
}

static void queue_full(struct kunit *test)
{
	struct pair_config c = { .depth = 16 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_recv_wr wr = {};
	struct work w;
	int i;

	/* Nothing is delivered, so nothing completes */
	post_numbered(a, 0, 16, 1);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 16, SRC, DST, 1);
	KUNIT_EXPECT_EQ(test, -ENOMEM, side_try_post(a, &w));
	for (i = 0; i < 16; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, side_try_post(a, &w));
	side_expect_send(a, 16, IB_WC_SUCCESS);

	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, 0, side_try_recv(b, &wr));
	KUNIT_EXPECT_EQ(test, -ENOMEM, side_try_recv(b, &wr));
	wr.num_sge = SROCE_MAX_SGE + 1;
	KUNIT_EXPECT_NE(test, 0, side_try_recv(b, &wr));
}

static void post_send_now(struct side *a, u32 id, u16 flags)
{
	struct work w;

	work_send(a, &w, id, SRC, 10);
	w.wqe.flags |= flags;
	side_recv(pair_peer(a), id, DST, 10);
	side_post(a, &w);
	side_expect_send(a, id, IB_WC_SUCCESS);
	side_expect_recv(pair_peer(a), id, IB_WC_SUCCESS);
}

static void solicited_events(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];

	post_send_now(a, 1, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->notified), 0);

	sroce_cq_arm(&b->rcq, IB_CQ_NEXT_COMP);
	post_send_now(a, 2, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->notified), 1);
	post_send_now(a, 3, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->notified), 1);

	sroce_cq_arm(&b->rcq, IB_CQ_SOLICITED);
	post_send_now(a, 4, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->notified), 1);
	post_send_now(a, 5, SROCE_SEND_SOLICITED);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->notified), 2);

	/* An error is worth an event whatever was asked for */
	sroce_cq_arm(&b->rcq, IB_CQ_SOLICITED);
	side_recv(b, 6, DST, 10);
	side_to_error(b);
	side_expect_recv(b, 6, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->notified), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&a->notified), 0);
}

static void missed_events(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0];

	post_numbered(a, 1, 1, 1);
	KUNIT_ASSERT_TRUE(test, pair_wait(p, &a->scq, 1));
	KUNIT_EXPECT_EQ(test, 1, sroce_cq_arm(&a->scq, IB_CQ_NEXT_COMP |
					      IB_CQ_REPORT_MISSED_EVENTS));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, sroce_cq_arm(&a->scq, IB_CQ_NEXT_COMP |
					      IB_CQ_REPORT_MISSED_EVENTS));
}

/* --- keys ---------------------------------------------------------------- */

/* A fast-register region over a piece of a side's memory */
static struct sroce_mr *map_region(struct side *s, u32 off, u32 len)
{
	struct kunit *test = s->pair->test;
	struct sroce_mr *mr;
	u32 i;

	mr = sroce_mr_alloc(&s->port.mrs, &s->pd, SROCE_MR_FAST_REG, 64);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	for (i = 0; i * PAGE_SIZE < len; i++)
		mr->blocks[i] = s->mem + off + i * PAGE_SIZE;
	mr->nr_blocks = i;
	mr->length = len;
	mr->ibmr.iova = 0x10000;
	return mr;
}

static void post_reg(struct side *s, struct sroce_mr *mr, u64 id, u32 key,
		     int access)
{
	struct work w;

	work_init(&w, SROCE_WR_REG_MR, id);
	w.wqe.reg.mr = (uintptr_t)mr;
	w.wqe.reg.key = key;
	w.wqe.reg.access = access;
	side_post(s, &w);
}

static void post_inv(struct side *s, u64 id, u8 opcode, u32 key)
{
	struct work w;

	work_init(&w, opcode, id);
	w.wqe.invalidate_rkey = key;
	side_post(s, &w);
}

static void post_write_to(struct side *s, u64 id, u64 va, u32 key, u32 len)
{
	struct work w;

	work_rdma(s, &w, SROCE_WR_RDMA_WRITE, id, SRC, 0, len);
	w.wqe.rdma.remote_addr = va;
	w.wqe.rdma.rkey = key;
	side_post(s, &w);
}

static void fast_register(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_mr *mr = map_region(b, 0x40000, 10000);
	struct ib_wc wc;
	u32 key;

	key = mr->key ^ 1;
	side_fill(a, SRC, 8192, 77);
	post_reg(b, mr, 1, key, PAIR_MR_ACCESS);
	side_expect(b, &b->scq, 1, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_REG_MR);
	post_write_to(a, 2, 0x10000 + 5, key, 8192);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, 0x40005, 8192, 77));

	/* Away, and there again with another key, in one go */
	post_inv(b, 3, SROCE_WR_LOCAL_INV, key);
	post_reg(b, mr, 4, key ^ 6, PAIR_MR_ACCESS);
	side_expect(b, &b->scq, 3, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_LOCAL_INV);
	side_expect_send(b, 4, IB_WC_SUCCESS);
	key ^= 6;

	/* The peer takes it away */
	side_recv(b, 5, DST, 10);
	post_inv(a, 6, SROCE_WR_SEND_INV, key);
	side_expect_send(a, 6, IB_WC_SUCCESS);
	side_expect(b, &b->rcq, 5, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, key);
	KUNIT_EXPECT_FALSE(test, mr->valid);

	post_write_to(a, 7, 0x10000, key, 1);
	side_expect_send(a, 7, IB_WC_REM_ACCESS_ERR);
	pair_settle(p);
	sroce_mr_free(mr);
}

/* Invalidation waits for what was posted before it and may be sent again */
static void invalidate_in_order(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_mr *mr = map_region(a, 0x40000, 40960);
	struct work w;

	side_fill(a, 0x40000, 40960, 3);
	post_reg(a, mr, 1, mr->key, IB_ACCESS_LOCAL_WRITE);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, 0, DST, 40960);
	w.sge[0].addr = 0x10000;
	w.sge[0].lkey = mr->key;
	side_post(a, &w);
	post_inv(a, 3, SROCE_WR_LOCAL_INV, mr->key);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 40960, 3));
	sroce_mr_free(mr);
}

/*
 * A SEND invalidates a region that is in use: it is asked for again until it no
 * longer is, and comes in other pieces each time.
 */
static void invalidate_busy(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_mr *user, *mr = map_region(b, 0x40000, 10000);
	const u32 len = 24 * p->mtu - 5, key = mr->key ^ 1;
	struct ib_wc wc;
	struct work w;
	u32 i;

	p->net.batch = 16;
	post_reg(b, mr, 1, key, PAIR_MR_ACCESS);
	side_expect_send(b, 1, IB_WC_SUCCESS);
	side_fill(a, SRC, len, 5);
	side_recv(b, 2, DST, len);
	user = sroce_mr_find(&b->port.mrs, key, mr->ibmr.pd);
	work_send(a, &w, 3, SRC, len);
	w.wqe.opcode = SROCE_WR_SEND_INV;
	w.wqe.invalidate_rkey = key;
	side_post(a, &w);
	for (i = 0; i < 400; i++) {
		a->qp->req.window = 1 + i % 24;
		pair_step(p);
	}
	side_expect_none(a);
	side_expect_none(b);
	KUNIT_EXPECT_EQ(test, b->qp->resp.msg.inv_wait, key);
	KUNIT_EXPECT_FALSE(test, mr->valid);

	sroce_mr_put(user);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	side_expect(b, &b->rcq, 2, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, key);
	KUNIT_EXPECT_EQ(test, wc.byte_len, len);
	KUNIT_EXPECT_EQ(test, b->qp->resp.msg.inv_wait, 0);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, 5));
	sroce_mr_free(mr);
}

/*
 * A SEND that has invalidated a key in use is asked for again. What comes in its place must
 * not complete without that key, of which the consumer would not be told.
 */
static void invalidate_forgotten(struct kunit *test)
{
	static const u32 others[] = { 0, 0x100 };
	struct sroce_mr *user, *mr;
	struct sroce_train t;
	struct side *a, *b;
	struct pair *p;
	int i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		p = pair_create(test, &(struct pair_config){});
		a = &p->side[0];
		b = &p->side[1];
		mr = map_region(b, 0x40000, 10000);
		post_reg(b, mr, 1, mr->key, PAIR_MR_ACCESS);
		side_expect_send(b, 1, IB_WC_SUCCESS);
		side_recv(b, 2, DST, 10);
		user = sroce_mr_find(&b->port.mrs, mr->key, mr->ibmr.pd);
		t = side_train(a, SROCE_OP_SEND, side_first_psn(a));
		t.flags |= SROCE_INV;
		t.inv_rkey = mr->key;
		side_inject(a, &t);
		fake_net_settle(&p->net);
		side_expect_none(b);
		KUNIT_EXPECT_EQ(test, b->qp->resp.msg.inv_wait, mr->key);
		t = side_train(a, SROCE_OP_SEND, side_first_psn(a));
		if (others[i])
			t.flags |= SROCE_INV;
		t.inv_rkey = mr->key ^ others[i];
		side_inject(a, &t);
		fake_net_settle(&p->net);
		side_expect_recv(b, 2, IB_WC_REM_INV_REQ_ERR);
		KUNIT_EXPECT_EQ(test, 1, side_sent(b, SROCE_OP_ACK,
						   SROCE_NAK_INV_REQ));
		sroce_mr_put(user);
		sroce_mr_free(mr);
		pair_exit(test);
	}
}

/* The owner's invalidation waits for whoever uses the key, and not by running without end */
static void invalidate_looks_seldom(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *b = &p->side[1];
	struct sroce_mr *user, *mr = map_region(b, 0x40000, 10000);
	struct sroce_requester *req = &b->qp->req;
	unsigned long end = jiffies + 5 * HZ;

	post_reg(b, mr, 1, mr->key, PAIR_MR_ACCESS);
	side_expect_send(b, 1, IB_WC_SUCCESS);
	user = sroce_mr_find(&b->port.mrs, mr->key, mr->ibmr.pd);
	post_inv(b, 2, SROCE_WR_LOCAL_INV, mr->key);
	while (!READ_ONCE(req->pace.wake) && time_before(jiffies, end))
		usleep_range(10, 20);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, end));
	side_expect_none(b);
	KUNIT_EXPECT_GT(test, req->key_looks, 0);
	sroce_mr_put(user);
	KUNIT_EXPECT_TRUE(test, pair_wait(p, &b->scq, 1));
	side_expect_send(b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, req->key_looks);
	sroce_mr_free(mr);
}

/* --- atomics ------------------------------------------------------------- */

static u64 do_atomic(struct side *s, u8 opcode, u32 off, u64 compare_add,
		     u64 swap)
{
	struct ib_wc wc;
	struct work w;

	work_init(&w, opcode, off);
	work_local(s, &w, DST, 8);
	work_atomic(s, &w, off, compare_add, swap);
	side_post(s, &w);
	side_expect(s, &s->scq, off, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(s->pair->test, wc.byte_len, 8);
	KUNIT_EXPECT_EQ(s->pair->test, wc.opcode,
			opcode == SROCE_WR_CMP_SWAP ? IB_WC_COMP_SWAP :
						      IB_WC_FETCH_ADD);
	return get_unaligned((u64 *)(s->mem + DST));
}

static void atomics(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 *cell = (u64 *)(b->mem + 0x40000);
	int i;

	*cell = 0x1122334455667788;
	KUNIT_EXPECT_EQ(test, 0x1122334455667788,
			do_atomic(a, SROCE_WR_FETCH_ADD, 0x40000, 1, 0));
	KUNIT_EXPECT_EQ(test, 0x1122334455667789, *cell);
	/* Compares unequal */
	KUNIT_EXPECT_EQ(test, 0x1122334455667789,
			do_atomic(a, SROCE_WR_CMP_SWAP, 0x40000, 5, 6));
	KUNIT_EXPECT_EQ(test, 0x1122334455667789, *cell);
	KUNIT_EXPECT_EQ(test, 0x1122334455667789,
			do_atomic(a, SROCE_WR_CMP_SWAP, 0x40000,
				  0x1122334455667789, U64_MAX));
	KUNIT_EXPECT_EQ(test, U64_MAX, *cell);
	for (i = 0; i < 30; i++)
		KUNIT_EXPECT_EQ(test, (u64)i - 1,
				do_atomic(a, SROCE_WR_FETCH_ADD, 0x40000, 1,
					  0));
}

static void atomic_writes(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u64 *cell = (u64 *)(b->mem + 0x40000);
	u64 value = 0x0123456789abcdef;
	struct ib_wc wc;
	struct work w;

	memcpy(a->mem + SRC, &value, 8);
	side_post(a, work_rdma(a, &w, SROCE_WR_ATOMIC_WRITE, 1, SRC, 0x40000,
			       8));
	side_expect(a, &a->scq, 1, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_ATOMIC_WRITE);
	KUNIT_EXPECT_EQ(test, *cell, value);

	work_init(&w, SROCE_WR_ATOMIC_WRITE, 2);
	work_remote(a, &w, 0x40008);
	w.wqe.flags |= SROCE_SEND_INLINE;
	w.wqe.inline_len = 8;
	w.inline_data = &value;
	side_post(a, &w);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cell[1], value);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void post_flush(struct side *s, u64 id, u32 placement, u32 selectivity,
		       u32 len)
{
	struct side *peer = pair_peer(s);
	struct work w;

	work_init(&w, SROCE_WR_FLUSH, id);
	w.wqe.flush.remote_addr = (uintptr_t)peer->mem;
	w.wqe.flush.length = len;
	w.wqe.flush.rkey = peer->mr->key;
	w.wqe.flush.placement = placement;
	w.wqe.flush.selectivity = selectivity;
	side_post(s, &w);
}

static void flushes(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct ib_wc wc;
	struct work w;

	side_fill(a, SRC, 3000, 1);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 3000));
	post_flush(a, 2, SROCE_FETH_GLOBAL, 0, 3000);
	post_flush(a, 3, SROCE_FETH_GLOBAL, 1, 0);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect(a, &a->scq, 2, IB_WC_SUCCESS, &wc);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_FLUSH);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 3000, 1));
	side_expect_send(a, 3, IB_WC_SUCCESS);
	/* Nobody has given the right to this */
	post_flush(a, 4, SROCE_FETH_PERSISTENT, 0, 3000);
	side_expect_send(a, 4, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* --- READs --------------------------------------------------------------- */

static void read_in_chunks(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256, .window = 16 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	static const u32 packets[] = { 15, 16, 17, 32, 33, 200, 17 };
	struct work w;
	u32 len, i;

	for (i = 0; i < ARRAY_SIZE(packets); i++) {
		len = packets[i] * 256 - 3;
		prepare(b, a, len, i);
		/* The last one is no smaller because the window is */
		a->qp->req.window = i + 1 < ARRAY_SIZE(packets) ? c.window : 4;
		side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, i, DST, SRC,
				       len));
		side_expect_send(a, i, IB_WC_SUCCESS);
		expect_placed(a, len, i);
		KUNIT_EXPECT_EQ(test, 0, a->qp->req.rd_outstanding);
	}
	/* 1 + 1 + 2 + 2 + 3 + 13, and 2 */
	KUNIT_EXPECT_EQ(test, 24, side_count(b, SROCE_CNT_RX_READ_REQUESTS));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* More than the window, in the pieces that the driver chooses */
static void read_large(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_4096 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 len = 1300001;
	struct work w;

	side_fill(b, 0, len, 4);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, 1001, 0, len));
	side_expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, 1001, len, 4));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void many_reads(struct kunit *test)
{
	struct pair_config c = { .rd_atomic = 3 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	u32 i;

	side_fill(b, SRC, 40 * 3000, 6);
	for (i = 0; i < 40; i++) {
		side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, i,
				       DST + i * 3000, SRC + i * 3000, 3000));
		KUNIT_EXPECT_LE(test, a->qp->req.rd_outstanding, 3);
	}
	for (i = 0; i < 40; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, side_filled(a, DST, 40 * 3000, 6));
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* --- order --------------------------------------------------------------- */

/* Without a fence the WRITE may leave before the READ has been answered */
static void fence(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct work w;
	u32 sent;

	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 1, DST, SRC, 5000));
	sent = p->net.sent;
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, SRC, DST, 10));
	KUNIT_EXPECT_EQ(test, sent + 1, p->net.sent);

	sent = p->net.sent;
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 3, SRC, DST, 10);
	w.wqe.flags |= SROCE_SEND_FENCE;
	side_post(a, &w);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 4, SRC, DST, 10));
	KUNIT_EXPECT_EQ(test, sent, p->net.sent);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_send(a, 2, IB_WC_SUCCESS);
	side_expect_send(a, 3, IB_WC_SUCCESS);
	side_expect_send(a, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void psn_wrap(struct kunit *test)
{
	struct pair_config c = { .psn = 0xfffff0, .mtu = IB_MTU_256 };
	struct pair *p = way_pair(test, &c);

	do_all(p, 256 * 7);
	do_all(p, 256 * 5);
	do_all(p, 256 * 40);
	KUNIT_EXPECT_LT(test, p->side[0].qp->req.una_psn, 0xfffff0);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

static void both_ways(struct kunit *test)
{
	struct pair_config c = { .psn = 0xfff000 };
	struct pair *p = way_pair(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	int i;

	for (i = 0; i < 20; i++) {
		side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, i, SRC,
				       DST, 20000));
		side_post(b, work_rdma(b, &w, SROCE_WR_RDMA_READ, i, DST, SRC,
				       20000));
	}
	for (i = 0; i < 20; i++) {
		side_expect_send(a, i, IB_WC_SUCCESS);
		side_expect_send(b, i, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* --- bounds -------------------------------------------------------------- */

static void window_bound(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct sroce_requester *req = &a->qp->req;
	struct work w;
	u32 most = 0;
	u32 out;
	int i;

	KUNIT_EXPECT_GE(test, req->window, SROCE_TRAIN_PACKETS);
	req->window = 40;
	for (i = 0; i < 10; i++)
		side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, i, SRC,
				       DST, 256 * 15));
	do {
		out = (req->send_psn - req->una_psn) & SROCE_PSN_MASK;
		KUNIT_EXPECT_LE(test, out, req->window);
		most = max(most, out);
	} while (fake_net_deliver(&p->net));
	KUNIT_EXPECT_GE(test, most, 40);
	for (i = 0; i < 10; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
}

/* 2 GiB in packets of 256 bytes take half of all PSNs there are */
static void largest_message(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256 };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0];
	struct sroce_requester *req = &a->qp->req;
	struct work w;

	req->window = 64;
	p->net.batch = 1;
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, 0, 1));
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 2, 0, 0, 1);
	w.sge[0].length = 1U << 31;
	side_post(a, &w);
	fake_net_deliver(&p->net);
	fake_net_purge(&p->net);
	/* The ACK of the first one is where the second begins */
	side_inject_ack(&p->side[1], SROCE_AETH_ACK_UNLIMITED,
			side_first_psn(a));
	fake_net_deliver(&p->net);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_expect_none(a);
	KUNIT_EXPECT_EQ(test, 1, req->fetched - req->ring.index);
	/* All but the last packet, and then that one too */
	req->send_psn = sroce_psn_add(req->send_psn, (1U << 23) - 100);
	req->next_psn = sroce_psn_add(req->una_psn, 1U << 23);
	req->una_psn = sroce_psn_add(req->una_psn, (1U << 23) - 1);
	fake_net_purge(&p->net);
	side_inject_ack(&p->side[1], SROCE_AETH_ACK_UNLIMITED,
			req->una_psn - 1);
	fake_net_deliver(&p->net);
	side_expect_none(a);
	side_inject_ack(&p->side[1], SROCE_AETH_ACK_UNLIMITED, req->una_psn);
	side_expect_send(a, 2, IB_WC_SUCCESS);
}

/* A sender whose packets are not freed stops, and goes on when they are */
static void full_device(struct kunit *test)
{
	struct pair_config c = {};
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	u32 sent, i;

	sroce_txq_set_limit(a->qp->txq, 10000);
	sroce_txq_set_limit(b->qp->txq, 10000);
	side_fill(a, SRC, 200000, 1);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, 1, SRC, DST, 1000));
	for (i = 2; i < 20; i++)
		side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_WRITE, i, SRC, DST,
				       5000));
	sent = p->net.sent;
	KUNIT_EXPECT_LT(test, sent, 20);
	KUNIT_EXPECT_TRUE(test, a->qp->req.half.starved);
	for (i = 1; i < 20; i++)
		side_expect_send(a, i, IB_WC_SUCCESS);
	side_post(a, work_rdma(a, &w, SROCE_WR_RDMA_READ, 20, SRC, DST,
			       200000));
	side_expect_send(a, 20, IB_WC_SUCCESS);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, 0, p->expired);
	KUNIT_EXPECT_EQ(test, 0, sroce_txq_bytes(a->qp->txq));
	KUNIT_EXPECT_EQ(test, 0, sroce_txq_bytes(b->qp->txq));
}

static struct kunit_case transport_cases[] = {
	KUNIT_CASE_PARAM(transfer_sizes, way_gen_params),
	KUNIT_CASE_PARAM(inline_data, way_gen_params),
	KUNIT_CASE_PARAM(several_elements, way_gen_params),
	KUNIT_CASE_PARAM(receive_into_elements, way_gen_params),
	KUNIT_CASE_PARAM(scattered_pages, way_gen_params),
	KUNIT_CASE_PARAM(unsignaled, way_gen_params),
	KUNIT_CASE_PARAM(signal_all, way_gen_params),
	KUNIT_CASE(queue_full),
	KUNIT_CASE_PARAM(solicited_events, way_gen_params),
	KUNIT_CASE_PARAM(missed_events, way_gen_params),
	KUNIT_CASE_PARAM(fast_register, way_gen_params),
	KUNIT_CASE_PARAM(invalidate_in_order, way_gen_params),
	KUNIT_CASE(invalidate_busy),
	KUNIT_CASE(invalidate_forgotten),
	KUNIT_CASE(invalidate_looks_seldom),
	KUNIT_CASE_PARAM(atomics, way_gen_params),
	KUNIT_CASE_PARAM(atomic_writes, way_gen_params),
	KUNIT_CASE_PARAM(flushes, way_gen_params),
	KUNIT_CASE_PARAM(read_in_chunks, way_gen_params),
	KUNIT_CASE_PARAM(read_large, way_gen_params),
	KUNIT_CASE_PARAM(many_reads, way_gen_params),
	KUNIT_CASE(fence),
	KUNIT_CASE_PARAM(psn_wrap, way_gen_params),
	KUNIT_CASE_PARAM(both_ways, way_gen_params),
	KUNIT_CASE(window_bound),
	KUNIT_CASE(largest_message),
	KUNIT_CASE(full_device),
	{}
};

static struct kunit_suite transport_suite = {
	.name = "sroce_transport",
	.exit = pair_exit,
	.test_cases = transport_cases,
};

kunit_test_suite(transport_suite);
