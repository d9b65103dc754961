// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions with protection information, without queue pairs: each pair of domains, each
 * error, cut into packets everywhere.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "memory/copy.h"
#include "memory/users.h"
#include "tests/memory_world.h"
#include "tests/sig_region.h"

#define BVECS SROCE_PACKET_PIECES

/* What packets have: the standard's, what is small, what fits to nothing, and all */
static const u32 cuts[] = { 256, 512, 1024, 2048, 4096, 7, 509, 520, 4104, 1000 };

static const u32 intervals[] = { 512, 520, 4096, 4224 };

static struct sig_region *region(struct kunit *test, const struct sig_case *c)
{
	struct memory_world *w = test->priv;

	return sig_new(test, &w->table, &w->pd.ibpd, c);
}

static struct sig_case usual(enum sig_side mem, enum sig_side wire)
{
	return (struct sig_case){
		.mem = mem,
		.wire = wire,
		.type = 1,
		.interval = 512,
		.blocks = 11,
		.mask = SIG_CHECK_ALL,
	};
}

/* --- as packets do it ----------------------------------------------------------------- */

/* Tests run one after the other, and the stack is small */
static struct bio_vec bv[BVECS];

static void describe(struct sig_region *r, u32 off, u32 len)
{
	u32 done;

	sroce_integrity_bvecs(r->mr->sig, off, len, bv, BVECS, &done);
	KUNIT_ASSERT_EQ(r->test, done, len);
}

/* Send a range */
static void leave(struct sig_region *r, u32 off, u32 len)
{
	struct bvec_iter si = { .bi_size = len };

	describe(r, off, len);
	sroce_integrity_leave(r->mr, off, len);
	sroce_bvec_read(r->wire + off, bv, &si, len);
}

/* Receive one */
static void arrive(struct sig_region *r, u32 off, u32 len)
{
	struct bvec_iter di = { .bi_size = len };

	describe(r, off, len);
	sroce_bvec_write(bv, &di, r->wire + off, len);
	sroce_integrity_placed(r->mr, off, len);
}

static void in_packets(struct sig_region *r, u32 cut,
		       void (*packet)(struct sig_region *, u32, u32))
{
	u32 bytes = sig_wire_bytes(r), off;

	for (off = 0; off < bytes; off += cut)
		packet(r, off, min(cut, bytes - off));
}

static void expect_clean(struct sig_region *r)
{
	struct ib_sig_err err = {};

	KUNIT_EXPECT_FALSE_MSG(r->test, sroce_integrity_status(r->mr, &err),
			       "type %d expected %x actual %x at %llx", err.err_type,
			       err.expected, err.actual, err.sig_err_offset);
}

static void expect_failure(struct sig_region *r, enum ib_sig_err_type type, u32 block,
			   u32 expected, u32 actual)
{
	struct ib_sig_err err = {};

	KUNIT_EXPECT_TRUE(r->test, sroce_integrity_status(r->mr, &err));
	KUNIT_EXPECT_EQ(r->test, err.err_type, type);
	KUNIT_EXPECT_EQ(r->test, err.sig_err_offset, (u64)block * (r->c.interval + 8));
	KUNIT_EXPECT_EQ(r->test, err.expected, expected);
	KUNIT_EXPECT_EQ(r->test, err.actual, actual);
	KUNIT_EXPECT_EQ(r->test, err.key, r->mr->key);
	/* It is told of once */
	expect_clean(r);
}

/* --- nothing is wrong ----------------------------------------------------------------- */

static void expect_leaves_right(struct sig_region *r, u32 cut)
{
	u32 bytes = sig_wire_bytes(r);
	u8 *right = kunit_kzalloc(r->test, bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(r->test, right);
	sig_make_wire(r, right);
	sig_to_memory(r, false);
	memset(r->wire, 0xee, bytes);
	in_packets(r, cut, leave);
	KUNIT_EXPECT_EQ_MSG(r->test, memcmp(r->wire, right, bytes), 0,
			    "%d to %d, type %d, %u bytes, packets of %u", r->c.mem,
			    r->c.wire, r->c.type, r->c.interval, cut);
	KUNIT_EXPECT_TRUE(r->test, sig_memory_is_right(r));
	expect_clean(r);
	kunit_kfree(r->test, right);
}

static void expect_arrives_right(struct sig_region *r, u32 cut)
{
	sig_make_wire(r, r->wire);
	sig_to_memory(r, true);
	in_packets(r, cut, arrive);
	KUNIT_EXPECT_TRUE_MSG(r->test, sig_memory_is_right(r),
			      "%d from %d, type %d, %u bytes, packets of %u", r->c.mem,
			      r->c.wire, r->c.type, r->c.interval, cut);
	expect_clean(r);
}

static void expect_case_right(struct kunit *test, const struct sig_case *c)
{
	struct sig_region *r = region(test, c);
	unsigned int i;

	sig_fill(r, c->interval + c->type);
	/* Where tags are different packets are cut as elsewhere */
	for (i = 0; i < ARRAY_SIZE(cuts); i += c->type == 1 ? 1 : 4) {
		expect_leaves_right(r, cuts[i]);
		expect_arrives_right(r, cuts[i]);
		KUNIT_EXPECT_EQ(test, sig_register(r), 0);
	}
	sig_free(r);
}

static void each_type(struct kunit *test, struct sig_case c)
{
	for (c.type = 1; c.type <= 3; c.type++) {
		expect_case_right(test, &c);
		c.retag = true;
		expect_case_right(test, &c);
		c.retag = false;
	}
}

/* What memory has, what the wire has, types, tags that change, blocks, packets */
static void every_pair_of_domains(struct kunit *test)
{
	struct sig_case c = usual(SIG_NONE, SIG_NONE);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(intervals); i++) {
		c.interval = intervals[i];
		c.blocks = c.interval < 1024 ? 23 : 5;
		for (c.mem = SIG_NONE; c.mem <= SIG_CSUM; c.mem++)
			for (c.wire = SIG_NONE; c.wire <= SIG_CSUM; c.wire++)
				each_type(test, c);
	}
}

/* Each place where two packets can meet, and all of it in one */
static void every_cut(struct kunit *test)
{
	const struct sig_case c = {
		.mem = SIG_CSUM,
		.wire = SIG_CRC,
		.type = 1,
		.interval = 512,
		.blocks = 3,
		.mask = SIG_CHECK_ALL,
	};
	struct sig_region *r = region(test, &c);
	u32 cut;

	sig_fill(r, 99);
	for (cut = 1; cut <= sig_wire_bytes(r); cut++) {
		expect_leaves_right(r, cut);
		expect_arrives_right(r, cut);
	}
	sig_free(r);
}

/* --- something is --------------------------------------------------------------------- */

/**
 * struct fault - one thing that is wrong with a block
 * @type: what is found
 * @guard: flipped in the tuple, as are
 * @app: this
 * @ref: and this
 * @check: the mask that finds it, nothing else
 */
struct fault {
	enum ib_sig_err_type type;
	u16 guard;
	u16 app;
	u32 ref;
	u8 check;
};

static const struct fault faults[] = {
	{ .type = IB_SIG_BAD_GUARD, .guard = 0x8000, .check = 0x80 },
	{ .type = IB_SIG_BAD_GUARD, .guard = 0x0001, .check = 0x40 },
	{ .type = IB_SIG_BAD_APPTAG, .app = 0x0100, .check = 0x20 },
	{ .type = IB_SIG_BAD_APPTAG, .app = 0x0080, .check = 0x10 },
	{ .type = IB_SIG_BAD_REFTAG, .ref = 0x40000000, .check = 0x08 },
	{ .type = IB_SIG_BAD_REFTAG, .ref = 0x00010000, .check = 0x04 },
	{ .type = IB_SIG_BAD_REFTAG, .ref = 0x00000200, .check = 0x02 },
	{ .type = IB_SIG_BAD_REFTAG, .ref = 0x00000001, .check = 0x01 },
};

static void apply(const struct fault *f, struct sroce_pi *pi)
{
	pi->guard ^= cpu_to_be16(f->guard);
	pi->app ^= cpu_to_be16(f->app);
	pi->ref ^= cpu_to_be32(f->ref);
}

static u32 value(enum ib_sig_err_type type, const struct sroce_pi *pi)
{
	switch (type) {
	case IB_SIG_BAD_GUARD:
		return be16_to_cpu(pi->guard);
	case IB_SIG_BAD_APPTAG:
		return be16_to_cpu(pi->app);
	default:
		return be32_to_cpu(pi->ref);
	}
}

static void expect_fault(struct sig_region *r, const struct fault *f, u32 block,
			 const struct ib_sig_domain *from)
{
	struct sroce_pi right = sig_tuple(r, from, block), wrong = right;

	apply(f, &wrong);
	expect_failure(r, f->type, block, value(f->type, &right), value(f->type, &wrong));
}

/* Twice, as when all of it is sent again, and it is one error all the same */
static void leave_faulty(struct sig_region *r, const struct fault *f, u32 block, u32 cut)
{
	struct sroce_pi pi;

	sig_to_memory(r, false);
	pi = sig_read_tuple(r, block);
	apply(f, &pi);
	sig_write_tuple(r, block, &pi);
	in_packets(r, cut, leave);
	in_packets(r, cut, leave);
}

static void arrive_faulty(struct sig_region *r, const struct fault *f, u32 block, u32 cut)
{
	struct sroce_pi pi, *at;

	sig_make_wire(r, r->wire);
	at = sig_wire_tuple(r, r->wire, block);
	memcpy(&pi, at, sizeof(pi));
	apply(f, &pi);
	memcpy(at, &pi, sizeof(pi));
	sig_to_memory(r, true);
	in_packets(r, cut, arrive);
}

static void fault_is_found(struct sig_region *r, const struct fault *f, u32 cut)
{
	u32 block = f->check % r->c.blocks;

	r->attrs.check_mask = f->check;
	KUNIT_ASSERT_EQ(r->test, sig_register(r), 0);
	if (r->c.mem != SIG_NONE) {
		leave_faulty(r, f, block, cut);
		expect_fault(r, f, block, &r->attrs.mem);
	}
	if (r->c.wire != SIG_NONE) {
		arrive_faulty(r, f, block, cut);
		expect_fault(r, f, block, &r->attrs.wire);
	}
	r->attrs.check_mask = SIG_CHECK_ALL & ~f->check;
	KUNIT_ASSERT_EQ(r->test, sig_register(r), 0);
	if (r->c.mem != SIG_NONE)
		leave_faulty(r, f, block, cut);
	expect_clean(r);
	if (r->c.wire != SIG_NONE)
		arrive_faulty(r, f, block, cut);
	expect_clean(r);
}

/* Each byte of a tuple, in each direction of each pair of domains; each only if asked for */
static void every_error(struct kunit *test)
{
	struct sig_case c = usual(SIG_NONE, SIG_NONE);
	struct sig_region *r;
	unsigned int i;

	for (c.mem = SIG_NONE; c.mem <= SIG_CSUM; c.mem++)
		for (c.wire = SIG_NONE; c.wire <= SIG_CSUM; c.wire++) {
			r = region(test, &c);
			sig_fill(r, c.mem + 3 * c.wire);
			for (i = 0; i < ARRAY_SIZE(faults); i++)
				fault_is_found(r, &faults[i], cuts[i]);
			sig_free(r);
		}
}

/* Data that is wrong, in memory and on the wire; at either end of a block */
static void damaged_data(struct kunit *test)
{
	const u32 bytes[] = { 0, 1, 300, 511 };
	const struct sig_case c = usual(SIG_CRC, SIG_CSUM);
	struct sig_region *r = region(test, &c);
	struct ib_sig_err err;
	struct sroce_pi was;
	unsigned int i;

	sig_fill(r, 5);
	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		sig_to_memory(r, false);
		was = sig_read_tuple(r, 4);
		sig_damage(r, 4, bytes[i]);
		in_packets(r, 1024, leave);
		KUNIT_EXPECT_TRUE(test, sroce_integrity_status(r->mr, &err));
		KUNIT_EXPECT_EQ(test, err.err_type, IB_SIG_BAD_GUARD);
		KUNIT_EXPECT_EQ(test, err.sig_err_offset, 4 * 520);
		KUNIT_EXPECT_EQ(test, err.actual, be16_to_cpu(was.guard));
		KUNIT_EXPECT_NE(test, err.expected, err.actual);
		expect_clean(r);

		/* Its guard is of another type now, and no more right than it was */
		sig_to_memory(r, true);
		in_packets(r, 1024, arrive);
		KUNIT_EXPECT_TRUE(test, sroce_integrity_status(r->mr, &err));
		KUNIT_EXPECT_EQ(test, err.err_type, IB_SIG_BAD_GUARD);
		KUNIT_EXPECT_EQ(test, err.sig_err_offset, 4 * 520);
	}
	sig_free(r);
}

/* Of several the first block, and in it the guard before the tags */
static void first_error(struct kunit *test)
{
	const struct fault all = { .guard = 1, .app = 1, .ref = 1 };
	const struct sig_case c = usual(SIG_CRC, SIG_NONE);
	struct sig_region *r = region(test, &c);
	struct sroce_pi right, pi;
	u32 block;

	sig_fill(r, 6);
	sig_to_memory(r, false);
	for (block = 2; block < 6; block++) {
		pi = sig_tuple(r, &r->attrs.mem, block);
		apply(&all, &pi);
		sig_write_tuple(r, block, &pi);
	}
	right = sig_tuple(r, &r->attrs.mem, 2);
	/* The last one passes first */
	for (block = r->c.blocks; block--;)
		leave(r, block * 512, 512);
	expect_failure(r, IB_SIG_BAD_GUARD, 2, be16_to_cpu(right.guard),
		       be16_to_cpu(right.guard) ^ 1);
	/* With the next registration it is forgotten */
	in_packets(r, 1024, leave);
	KUNIT_EXPECT_EQ(test, sig_register(r), 0);
	expect_clean(r);
	sig_free(r);
}

static void apptag_mask(struct kunit *test)
{
	const struct sig_case c = usual(SIG_CRC, SIG_CRC);
	const struct fault low = { .app = 0x000f };
	struct sig_region *r = region(test, &c);

	sig_fill(r, 7);
	r->attrs.mem.sig.dif.apptag_check_mask = 0xfff0;
	r->attrs.wire.sig.dif.apptag_check_mask = 0x0001;
	KUNIT_ASSERT_EQ(test, sig_register(r), 0);
	leave_faulty(r, &low, 3, 4096);
	expect_clean(r);
	arrive_faulty(r, &low, 3, 4096);
	expect_failure(r, IB_SIG_BAD_APPTAG, 3, SIG_APP, SIG_APP ^ 0xf);
	sig_free(r);
}

/* --- blocks that nobody has written --------------------------------------------------- */

static void expect_escape(struct kunit *test, int type, bool app, bool ref, bool escaped)
{
	struct sig_case c = usual(SIG_CRC, SIG_CSUM);
	struct sig_region *r;
	struct ib_sig_err err;
	struct sroce_pi pi;

	c.type = type;
	c.retag = true;
	r = region(test, &c);
	sig_fill(r, 8);
	sig_to_memory(r, false);
	pi = sig_read_tuple(r, 1);
	pi.guard ^= cpu_to_be16(0x1111);
	if (app)
		pi.app = cpu_to_be16(0xffff);
	if (ref)
		pi.ref = cpu_to_be32(0xffffffff);
	sig_write_tuple(r, 1, &pi);
	in_packets(r, 512, leave);
	KUNIT_EXPECT_EQ(test, sroce_integrity_status(r->mr, &err), !escaped);
	/* Still so at the other end, though its guard and its tags are others */
	if (escaped)
		KUNIT_EXPECT_EQ(test, memcmp(sig_wire_tuple(r, r->wire, 1), &pi, sizeof(pi)), 0);
	sig_to_memory(r, true);
	in_packets(r, 512, arrive);
	KUNIT_EXPECT_EQ(test, sroce_integrity_status(r->mr, &err), !escaped);
	sig_free(r);
}

static void escapes(struct kunit *test)
{
	expect_escape(test, 1, true, false, true);
	expect_escape(test, 2, true, true, true);
	expect_escape(test, 1, false, true, false);
	expect_escape(test, 3, true, false, false);
	expect_escape(test, 3, false, true, false);
	expect_escape(test, 3, true, true, true);
}

static void no_escape(struct kunit *test)
{
	const struct sig_case c = usual(SIG_CRC, SIG_NONE);
	struct sig_region *r = region(test, &c);
	struct ib_sig_err err;
	struct sroce_pi pi;

	sig_fill(r, 9);
	r->attrs.mem.sig.dif.app_escape = false;
	KUNIT_ASSERT_EQ(test, sig_register(r), 0);
	sig_to_memory(r, false);
	pi = sig_read_tuple(r, 0);
	pi.app = cpu_to_be16(0xffff);
	sig_write_tuple(r, 0, &pi);
	in_packets(r, 512, leave);
	KUNIT_EXPECT_TRUE(test, sroce_integrity_status(r->mr, &err));
	KUNIT_EXPECT_EQ(test, err.err_type, IB_SIG_BAD_APPTAG);

	/* A reference tag alone, if that is asked for */
	r->attrs.mem.sig.dif.ref_escape = true;
	KUNIT_ASSERT_EQ(test, sig_register(r), 0);
	pi.ref = cpu_to_be32(0xffffffff);
	sig_write_tuple(r, 0, &pi);
	in_packets(r, 512, leave);
	expect_clean(r);
	sig_free(r);
}

/* --- the order in which bytes come ---------------------------------------------------- */

/* The parts of a block in this order; a digit is a third of it */
static void thirds(struct sig_region *r, u32 block, const char *order)
{
	u32 stride = r->c.interval + 8, third = stride / 3;
	u32 i;

	for (; *order; order++) {
		i = *order - '1';
		arrive(r, block * stride + i * third, i == 2 ? stride - 2 * third : third);
	}
}

static bool tuple_is_right(const struct sig_region *r, u32 block)
{
	struct sroce_pi right = sig_tuple(r, &r->attrs.mem, block);
	struct sroce_pi pi = sig_read_tuple(r, block);

	return !memcmp(&pi, &right, sizeof(pi));
}

static void order_of_parts(struct kunit *test)
{
	const char *const orders[] = { "123", "321", "213", "231", "1233", "12323", "123123" };
	struct sig_case c = usual(SIG_CSUM, SIG_CRC);
	struct sig_region *r = region(test, &c);
	u32 i;

	sig_fill(r, 10);
	sig_make_wire(r, r->wire);
	sig_to_memory(r, true);
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		thirds(r, i, orders[i]);
		KUNIT_EXPECT_TRUE_MSG(test, tuple_is_right(r, i), "%s", orders[i]);
		expect_clean(r);
	}
	/* New data in the place of the old one is checked when it is there, not before */
	sig_fill(r, 11);
	sig_make_wire(r, r->wire);
	for (i = 0; i < ARRAY_SIZE(orders); i++)
		thirds(r, i, "123");
	expect_clean(r);
	sig_free(r);
}

static void invalidate(struct sig_region *r)
{
	KUNIT_ASSERT_EQ(r->test, sroce_mr_invalidate(r->mr->table, r->mr->key, r->mr->ibmr.pd,
						     NULL, false), 0);
}

/* A new life, in which only some parts come */
static void only(struct sig_region *r, u32 block, const char *parts)
{
	KUNIT_ASSERT_EQ(r->test, sig_register(r), 0);
	thirds(r, block, parts);
}

/* Nobody who has let a registration end is told that such a block is right */
static void parts_only(struct kunit *test)
{
	const char *const orders[] = { "1", "2", "3", "12", "23", "13", "31" };
	struct sig_case c = usual(SIG_CRC, SIG_CRC);
	struct sig_region *r = region(test, &c);
	u32 i;

	sig_fill(r, 12);
	sig_make_wire(r, r->wire);
	sig_to_memory(r, true);
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		only(r, 6, orders[i]);
		invalidate(r);
		expect_failure(r, IB_SIG_BAD_GUARD, 6, 0, 0);
	}
	/* A gap in the middle is never closed unseen */
	only(r, 7, "132");
	invalidate(r);
	expect_failure(r, IB_SIG_BAD_GUARD, 7, 0, 0);
	only(r, 7, "123");
	invalidate(r);
	expect_clean(r);
	KUNIT_EXPECT_TRUE(test, tuple_is_right(r, 7));
	sig_free(r);
}

/* The connection has gone in the middle of a message: no wrong data, but no data */
static void cancelled(struct kunit *test)
{
	const struct fault guard = { .type = IB_SIG_BAD_GUARD, .guard = 1 };
	struct sig_case c = usual(SIG_CRC, SIG_CRC);
	struct sig_region *r = region(test, &c);
	struct sroce_pi pi;

	sig_fill(r, 14);
	sig_make_wire(r, r->wire);
	only(r, 3, "12");
	expect_clean(r);
	/* What has been found wrong before is */
	memcpy(&pi, sig_wire_tuple(r, r->wire, 2), sizeof(pi));
	apply(&guard, &pi);
	memcpy(sig_wire_tuple(r, r->wire, 2), &pi, sizeof(pi));
	thirds(r, 2, "123");
	expect_fault(r, &guard, 2, &r->attrs.wire);
	/* To ask early takes nothing away */
	invalidate(r);
	expect_failure(r, IB_SIG_BAD_GUARD, 3, 0, 0);
	sig_free(r);
}

/* Of wrong blocks and of parts the lowest one, and then none */
static void lowest_of_both(struct kunit *test)
{
	const struct fault guard = { .type = IB_SIG_BAD_GUARD, .guard = 1 };
	struct sig_case c = usual(SIG_CRC, SIG_CRC);
	struct sig_region *r = region(test, &c);
	struct sroce_pi pi;

	sig_fill(r, 15);
	sig_make_wire(r, r->wire);
	memcpy(&pi, sig_wire_tuple(r, r->wire, 4), sizeof(pi));
	apply(&guard, &pi);
	memcpy(sig_wire_tuple(r, r->wire, 4), &pi, sizeof(pi));
	only(r, 4, "123");
	thirds(r, 3, "12");
	thirds(r, 8, "1");
	invalidate(r);
	expect_failure(r, IB_SIG_BAD_GUARD, 3, 0, 0);

	only(r, 4, "123");
	thirds(r, 5, "23");
	thirds(r, 9, "2");
	invalidate(r);
	expect_fault(r, &guard, 4, &r->attrs.wire);
	sig_free(r);
}

/* --- what may be registered ----------------------------------------------------------- */

static int prepare(struct sig_region *r, const struct ib_sig_attrs *attrs)
{
	return sroce_integrity_prepare(r->mr->sig, attrs);
}

static void refused_domains(struct kunit *test)
{
	const struct sig_case c = usual(SIG_CRC, SIG_CRC);
	struct sig_region *r = region(test, &c);
	struct ib_sig_attrs a;

	a = r->attrs;
	a.mem.sig_type = 7;
	KUNIT_EXPECT_EQ(test, prepare(r, &a), -EOPNOTSUPP);
	a = r->attrs;
	a.wire.sig.dif.bg_type = 2;
	KUNIT_EXPECT_EQ(test, prepare(r, &a), -EOPNOTSUPP);
	a = r->attrs;
	a.wire.sig.dif.pi_interval = 0;
	KUNIT_EXPECT_EQ(test, prepare(r, &a), -EOPNOTSUPP);
	a.wire.sig.dif.pi_interval = 511;
	KUNIT_EXPECT_EQ(test, prepare(r, &a), -EOPNOTSUPP);
	a.wire.sig.dif.pi_interval = SROCE_BLOCK_MOST + 8;
	KUNIT_EXPECT_EQ(test, prepare(r, &a), -EOPNOTSUPP);
	/* One size on the wire and another one in memory */
	a.wire.sig.dif.pi_interval = 1024;
	KUNIT_EXPECT_EQ(test, prepare(r, &a), -EINVAL);
	/* Half a block */
	a.mem.sig.dif.pi_interval = 1024;
	KUNIT_EXPECT_EQ(test, prepare(r, &a), -EINVAL);
	/* Nothing of that can be registered */
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(r->mr->table, r->mr->key, r->mr->ibmr.pd,
						  NULL, false), 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(r->mr, r->mr->ibmr.pd, r->mr->key, SIG_ACCESS),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sig_register(r), 0);
	sig_free(r);
}

static void refused_lists(struct kunit *test)
{
	const struct sig_case c = usual(SIG_CRC, SIG_CRC);
	struct sig_region *r = region(test, &c);
	struct sroce_pieces *l = &r->mr->sig->next.data;
	struct sroce_pieces *meta = &r->mr->sig->next.meta;
	u32 i;

	/* A tuple is missing */
	KUNIT_ASSERT_TRUE(test, meta->n > 0);
	meta->n--;
	KUNIT_EXPECT_EQ(test, prepare(r, &r->attrs), -EINVAL);
	/* ... which nobody asks for where memory has none */
	r->attrs.mem.sig_type = IB_SIG_TYPE_NONE;
	KUNIT_EXPECT_EQ(test, prepare(r, &r->attrs), 0);

	sroce_pieces_reset(r->mr->sig, l);
	KUNIT_EXPECT_EQ(test, prepare(r, &r->attrs), -EINVAL);
	/* Empty pieces are none, neighbours are one */
	KUNIT_EXPECT_TRUE(test, sroce_pieces_add(l, r->data, 0));
	KUNIT_EXPECT_EQ(test, l->n, 0);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_TRUE(test, sroce_pieces_add(l, r->data + i * 8, 8));
	KUNIT_EXPECT_EQ(test, l->n, 1);
	KUNIT_EXPECT_EQ(test, prepare(r, &r->attrs), 0);
	KUNIT_EXPECT_FALSE(test, sroce_pieces_add(l, r->data, U32_MAX - 511));

	/* More pieces, and more blocks, than the region was made for */
	sroce_pieces_reset(r->mr->sig, l);
	for (i = 0; i < l->max; i++)
		KUNIT_EXPECT_TRUE(test, sroce_pieces_add(l, r->data + i * 48, 41));
	KUNIT_EXPECT_FALSE(test, sroce_pieces_add(l, r->data + i * 48, 41));
	sroce_pieces_reset(r->mr->sig, l);
	KUNIT_EXPECT_TRUE(test, sroce_pieces_add(l, r->data, (r->mr->sig->max_blocks + 1) * 512));
	KUNIT_EXPECT_EQ(test, prepare(r, &r->attrs), -EINVAL);
	sig_free(r);
}

/* Map data in pieces of @len bytes and in a last one of @last, that are no neighbours */
static void map_data(struct sig_region *r, u32 n, u32 len, u32 last)
{
	struct sroce_pieces *l = &r->mr->sig->next.data;
	u32 i;

	sroce_pieces_reset(r->mr->sig, l);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_TRUE(r->test, sroce_pieces_add(l, r->data + i * (len + 1),
							    i < n - 1 ? len : last));
}

/* No packet of the region has a byte that is left out */
static void expect_packets_fit(struct sig_region *r)
{
	u32 packet = min_t(u32, 4096, r->mr->length), off;

	KUNIT_ASSERT_EQ(r->test, sig_register(r), 0);
	for (off = 0; off + packet <= r->mr->length; off++)
		describe(r, off, packet);
}

/* The largest packet in the smallest pieces */
static void thin_data(struct kunit *test)
{
	const struct sig_case c = usual(SIG_NONE, SIG_CRC);
	struct sig_region *r = region(test, &c);
	struct sroce_pieces *l = &r->mr->sig->next.data;

	/* So many may be of any length, as in a region with gaps */
	map_data(r, SROCE_MR_GAP_FREE, 4, 4);
	KUNIT_EXPECT_FALSE(test, sroce_pieces_are_thin(l));
	expect_packets_fit(r);
	/* ... and no more; but neighbours are one */
	KUNIT_ASSERT_TRUE(test, sroce_pieces_add(l, r->data + 640, 4));
	KUNIT_EXPECT_TRUE(test, sroce_pieces_are_thin(l));
	sroce_pieces_reset(r->mr->sig, l);
	map_data(r, SROCE_MR_GAP_FREE, 4, 4);
	KUNIT_ASSERT_TRUE(test, sroce_pieces_add(l, r->data + 639, 4));
	KUNIT_EXPECT_FALSE(test, sroce_pieces_are_thin(l));

	/* 126 of 32 bytes are not the bytes of a packet, 126 of 33 are */
	map_data(r, 140, 32, 32);
	KUNIT_EXPECT_TRUE(test, sroce_pieces_are_thin(l));
	map_data(r, 140, 33, 9 * 512 - 139 * 33);
	KUNIT_EXPECT_FALSE(test, sroce_pieces_are_thin(l));
	expect_packets_fit(r);
	sig_free(r);
}

/* One request of many small ones: a buffer for each tuple, none beside the next */
static void scattered_tuples(struct kunit *test)
{
	struct sig_case c = usual(SIG_CRC, SIG_CSUM);
	struct sig_region *r;
	u32 i;

	c.blocks = 150;
	r = region(test, &c);
	KUNIT_ASSERT_EQ(test, sig_scatter_tuples(r), 0);
	KUNIT_EXPECT_EQ(test, r->mr->sig->now.meta.n, c.blocks);
	sig_fill(r, 13);
	for (i = 0; i < ARRAY_SIZE(cuts); i++) {
		expect_leaves_right(r, cuts[i]);
		expect_arrives_right(r, cuts[i]);
	}
	sig_free(r);
}

/* More pieces than there is memory in a row for; about 160 bytes each */
#define LARGE SZ_32K

static void copy_pieces(struct kunit *test, struct sroce_pieces *to,
			const struct sroce_pieces *from)
{
	const struct sroce_piece *p;
	u32 i;

	for (i = 0; i < from->n; i++) {
		p = &from->piece[i];
		KUNIT_ASSERT_TRUE(test, sroce_pieces_add(to, p->addr, p->end - p->begin));
	}
}

/* Tuples that are in vmalloc memory, of whose pages none is beside the next */
static void large_tables(struct kunit *test)
{
	struct sig_case c = usual(SIG_CSUM, SIG_CRC);
	struct sroce_integrity *small, *large;
	struct sig_region *r;
	unsigned int i;

	/* On more than a page */
	c.blocks = 600;
	r = region(test, &c);
	small = r->mr->sig;
	large = sroce_integrity_alloc(LARGE, LARGE);
	KUNIT_ASSERT_NOT_NULL(test, large);
	copy_pieces(test, &large->next.data, &small->next.data);
	copy_pieces(test, &large->next.meta, &small->next.meta);
	KUNIT_ASSERT_EQ(test, sroce_mr_invalidate(r->mr->table, r->mr->key, r->mr->ibmr.pd, NULL,
						  false), 0);
	r->mr->sig = large;
	sroce_integrity_free(small);
	KUNIT_EXPECT_EQ(test, sig_register(r), 0);
	sig_fill(r, 16);
	for (i = 0; i < ARRAY_SIZE(cuts); i++) {
		expect_leaves_right(r, cuts[i]);
		expect_arrives_right(r, cuts[i]);
	}
	if (!is_vmalloc_addr(large->wire))
		kunit_mark_skipped(test, "there are as many pages in a row");
	sig_free(r);
}

/* No windows, no atomics; and nobody who still copies finds another region under his hands */
static void registration(struct kunit *test)
{
	const struct sig_case c = usual(SIG_CRC, SIG_CRC);
	struct sig_region *r = region(test, &c);
	struct sroce_mr *mr = r->mr;
	struct sroce_mr *held;

	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(mr->table, mr->key, mr->ibmr.pd, NULL, true),
			0);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, mr->ibmr.pd, mr->key,
						SIG_ACCESS | IB_ACCESS_REMOTE_ATOMIC), -EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, mr->ibmr.pd, mr->key,
						SIG_ACCESS | IB_ACCESS_MW_BIND), -EINVAL);
	held = sroce_mr_find(mr->table, mr->key, mr->ibmr.pd);
	KUNIT_ASSERT_PTR_EQ(test, held, mr);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, mr->ibmr.pd, mr->key, SIG_ACCESS), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, mr->valid);
	sroce_mr_put(held);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, mr->ibmr.pd, mr->key, SIG_ACCESS), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, mr->ibmr.pd, IB_ACCESS_REMOTE_WRITE, 0,
					11 * 520), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, mr->ibmr.pd, IB_ACCESS_REMOTE_WRITE, 0,
					11 * 520 + 1), -ERANGE);
	sig_free(r);
}

/* Its bytes are not those of its memory: who does not know of that gets none */
static void no_words(struct kunit *test)
{
	const struct sig_case c = usual(SIG_CRC, SIG_CRC);
	struct sig_region *r = region(test, &c);
	u64 old;

	KUNIT_EXPECT_FALSE(test, sroce_mr_atomic(r->mr, 0, false, 0, 1, &old));
	KUNIT_EXPECT_FALSE(test, sroce_mr_atomic_write(r->mr, 0, 1));
	sig_free(r);
}

static struct kunit_case integrity_cases[] = {
	KUNIT_CASE(every_pair_of_domains),
	KUNIT_CASE(every_cut),
	KUNIT_CASE(every_error),
	KUNIT_CASE(damaged_data),
	KUNIT_CASE(first_error),
	KUNIT_CASE(apptag_mask),
	KUNIT_CASE(escapes),
	KUNIT_CASE(no_escape),
	KUNIT_CASE(order_of_parts),
	KUNIT_CASE(parts_only),
	KUNIT_CASE(cancelled),
	KUNIT_CASE(lowest_of_both),
	KUNIT_CASE(refused_domains),
	KUNIT_CASE(refused_lists),
	KUNIT_CASE(thin_data),
	KUNIT_CASE(scattered_tuples),
	KUNIT_CASE(large_tables),
	KUNIT_CASE(registration),
	KUNIT_CASE(no_words),
	{}
};

static struct kunit_suite integrity_suite = {
	.name = "sroce_integrity",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = integrity_cases,
};

kunit_test_suite(integrity_suite);
