// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tag matching: the list of tagged buffers, the operations on it, and messages that match
 * or do not.
 */
#include <linux/delay.h>
#include <linux/mm.h>

#include "compat.h"
#include "tests/side_demand.h"
#include "tests/transport_pair.h"
#include "transport/fault.h"
#include "transport/run.h"
#include "transport/tags.h"

#define SRC 0x1003
#define DST 0x80008
/* Where a buffer of the second kind is */
#define OTHER 0x100005
#define MTU 256
#define TAGS 8
#define APP_CTX 0x1badcafe
#define ALL_BITS U64_MAX

/* --- the list ------------------------------------------------------------------- */

static u32 list_append(struct sroce_tags *tags, u64 tag, u64 mask)
{
	const struct sroce_tag_op op = {
		.opcode = SROCE_TAG_ADD,
		.recv_wr_id = tag,
		.tag = tag,
		.mask = mask,
	};

	return sroce_tags_add(tags, &op);
}

/* Which of its buffers, by work request, does a message take? 0: none */
static u64 list_take(struct sroce_tags *tags, u64 tag)
{
	struct {
		struct sroce_recv_wqe wqe;
		struct sroce_sge sge[SROCE_MAX_TAG_SGE];
	} to = {};
	u32 looked;
	u16 i = sroce_tags_match(tags, tag, &looked);

	if (i == SROCE_TAG_NONE)
		return 0;
	sroce_tags_take(tags, i, &to.wqe);
	return to.wqe.wr_id;
}

static struct sroce_tags *list_make(struct kunit *test, u32 max)
{
	struct sroce_tags *tags = sroce_tags_create(max);

	KUNIT_ASSERT_NOT_NULL(test, tags);
	return tags;
}

static void list_order(struct kunit *test)
{
	struct sroce_tags *tags = list_make(test, TAGS);
	u32 looked;

	KUNIT_EXPECT_EQ(test, SROCE_TAG_NONE, sroce_tags_match(tags, 1, &looked));
	list_append(tags, 0x11, 0xff);
	list_append(tags, 0x12, 0xff);
	list_append(tags, 0x1f, 0xf0);
	list_append(tags, 0x12, ALL_BITS);
	/* The first that was added, though the last one says more */
	KUNIT_EXPECT_EQ(test, 0x12, list_take(tags, 0x12));
	KUNIT_EXPECT_EQ(test, 0x1f, list_take(tags, 0x12));
	KUNIT_EXPECT_EQ(test, 0x12, list_take(tags, 0x12));
	KUNIT_EXPECT_EQ(test, 0, list_take(tags, 0x12));
	/* Bits outside of the mask do not count, on either side */
	KUNIT_EXPECT_EQ(test, 0x11, list_take(tags, 0xabcd11));
	list_append(tags, 7, 0);
	KUNIT_EXPECT_EQ(test, 7, list_take(tags, ALL_BITS));
	KUNIT_EXPECT_EQ(test, SROCE_TAG_NONE, tags->first);
	KUNIT_EXPECT_EQ(test, SROCE_TAG_NONE, tags->last);
	sroce_tags_free(tags);
}

static void list_deletes(struct kunit *test)
{
	struct sroce_tags *tags = list_make(test, 4);
	u32 h[4];
	int i;

	for (i = 0; i < 4; i++)
		h[i] = list_append(tags, i + 1, ALL_BITS);
	KUNIT_EXPECT_TRUE(test, sroce_tags_full(tags));
	/* In the middle, the first, the last */
	sroce_tags_del(tags, h[1]);
	sroce_tags_del(tags, h[0]);
	sroce_tags_del(tags, h[3]);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, i == 2, sroce_tags_has(tags, h[i]));
	KUNIT_EXPECT_EQ(test, 0, list_take(tags, 1));
	KUNIT_EXPECT_EQ(test, 0, list_take(tags, 4));
	KUNIT_EXPECT_EQ(test, 3, list_take(tags, 3));
	KUNIT_EXPECT_FALSE(test, sroce_tags_has(tags, h[2]));
	sroce_tags_free(tags);
}

/* A handle that was in use leads to nothing, though its entry is in use again */
static void list_handles(struct kunit *test)
{
	struct sroce_tags *tags = list_make(test, 1);
	u32 old, new, i;

	old = list_append(tags, 1, ALL_BITS);
	KUNIT_EXPECT_NE(test, 0, old);
	KUNIT_EXPECT_EQ(test, 1, list_take(tags, 1));
	new = list_append(tags, 1, ALL_BITS);
	KUNIT_EXPECT_NE(test, old, new);
	KUNIT_EXPECT_FALSE(test, sroce_tags_has(tags, old));
	KUNIT_EXPECT_TRUE(test, sroce_tags_has(tags, new));
	for (i = 1; i < 32; i++)
		KUNIT_EXPECT_FALSE(test, sroce_tags_has(tags, new ^ 1U << i));
	KUNIT_EXPECT_FALSE(test, sroce_tags_has(tags, 0));
	KUNIT_EXPECT_FALSE(test, sroce_tags_has(tags, U32_MAX));
	/* The count in it comes round, and is never 0 */
	for (i = 0; i < 0x20000; i++) {
		sroce_tags_del(tags, new);
		new = list_append(tags, 1, ALL_BITS);
		KUNIT_ASSERT_NE(test, 0, new);
	}
	sroce_tags_free(tags);
}

/* What was added while the counts differ is not matched before they do not */
static void list_dormant(struct kunit *test)
{
	struct sroce_tags *tags = list_make(test, TAGS);
	u32 h;

	list_append(tags, 1, ALL_BITS);
	KUNIT_EXPECT_FALSE(test, sroce_tags_unexpected(tags));
	list_append(tags, 2, ALL_BITS);
	h = list_append(tags, 3, ALL_BITS);
	list_append(tags, 4, ALL_BITS);
	KUNIT_EXPECT_EQ(test, 0, list_take(tags, 2));
	KUNIT_EXPECT_EQ(test, 1, list_take(tags, 1));
	sroce_tags_unexpected(tags);
	sroce_tags_sync(tags, 1);
	KUNIT_EXPECT_EQ(test, 0, list_take(tags, 2));
	/* The first of them goes, and the others stay what they are */
	KUNIT_EXPECT_TRUE(test, sroce_tags_has(tags, h));
	sroce_tags_del(tags, h);
	KUNIT_EXPECT_EQ(test, 0, list_take(tags, 4));
	sroce_tags_sync(tags, 2);
	KUNIT_EXPECT_EQ(test, 4, list_take(tags, 4));
	KUNIT_EXPECT_EQ(test, 2, list_take(tags, 2));
	list_append(tags, 5, ALL_BITS);
	KUNIT_EXPECT_EQ(test, 5, list_take(tags, 5));
	sroce_tags_free(tags);
}

/* The counts are of 16 bits, and one that is far behind is told */
static void list_counts(struct kunit *test)
{
	struct sroce_tags *tags = list_make(test, TAGS);
	u32 i;

	for (i = 1; i <= SROCE_TAG_SYNC_LATE; i++)
		KUNIT_ASSERT_FALSE(test, sroce_tags_unexpected(tags));
	KUNIT_EXPECT_TRUE(test, sroce_tags_unexpected(tags));
	sroce_tags_sync(tags, SROCE_TAG_SYNC_LATE);
	KUNIT_EXPECT_FALSE(test, sroce_tags_unexpected(tags));
	while (tags->unexpected)
		sroce_tags_unexpected(tags);
	sroce_tags_sync(tags, 0);
	list_append(tags, 5, ALL_BITS);
	KUNIT_EXPECT_EQ(test, 5, list_take(tags, 5));
	sroce_tags_free(tags);
}

static void list_reserves(struct kunit *test)
{
	const struct sroce_tag from = { .va = 10, .rkey = 11, .len = 12, .qpn = 13 };
	struct sroce_tags *tags = list_make(test, 2);
	struct sroce_tag to = {};
	u32 looked, h;

	list_append(tags, 1, ALL_BITS);
	h = sroce_tags_reserve(tags, sroce_tags_match(tags, 1, &looked), &from);
	/* It is not in the list any more, and not free */
	KUNIT_EXPECT_EQ(test, 0, list_take(tags, 1));
	KUNIT_EXPECT_FALSE(test, sroce_tags_has(tags, h));
	list_append(tags, 2, ALL_BITS);
	KUNIT_EXPECT_TRUE(test, sroce_tags_full(tags));
	KUNIT_EXPECT_FALSE(test, sroce_tags_claim(tags, h, 14, &to));
	KUNIT_EXPECT_FALSE(test, sroce_tags_claim(tags, h + 1, 13, &to));
	KUNIT_EXPECT_TRUE(test, sroce_tags_claim(tags, h, 13, &to));
	KUNIT_EXPECT_EQ(test, 1, to.wr_id);
	KUNIT_EXPECT_EQ(test, 10, to.va);
	KUNIT_EXPECT_EQ(test, 12, to.len);
	KUNIT_EXPECT_FALSE(test, sroce_tags_claim(tags, h, 13, &to));
	/* One whose QP goes */
	h = sroce_tags_reserve(tags, sroce_tags_match(tags, 2, &looked), &from);
	sroce_tags_forget(tags, 14);
	list_append(tags, 3, ALL_BITS);
	KUNIT_EXPECT_TRUE(test, sroce_tags_full(tags));
	sroce_tags_forget(tags, 13);
	KUNIT_EXPECT_FALSE(test, sroce_tags_full(tags));
	KUNIT_EXPECT_FALSE(test, sroce_tags_claim(tags, h, 13, &to));
	sroce_tags_free(tags);
}

/* --- operations --------------------------------------------------------------- */

/* Another one, if the test has had one */
static struct pair *tag_pair(struct kunit *test, bool direct)
{
	struct pair_config c = { .mtu = IB_MTU_256, .tags = TAGS, .direct = direct };

	if (test->priv)
		pair_exit(test);
	return pair_create(test, &c);
}

static struct sroce_tag_op op_add(struct side *s, u64 tag, u64 mask, u32 off, u32 len)
{
	return (struct sroce_tag_op){
		.wr_id = tag + 1000,
		.recv_wr_id = tag + 2000,
		.opcode = SROCE_TAG_ADD,
		.flags = SROCE_TAG_SIGNALED,
		.tag = tag,
		.mask = mask,
		.num_sge = len ? 1 : 0,
		.sge[0] = {
			.addr = len ? (uintptr_t)s->mem + off : 0,
			.length = len,
			.lkey = len ? s->mr->key : 0,
		},
	};
}

/* Carry out an operation; its completion has this status and flags */
static u32 op_do(struct side *s, const struct sroce_tag_op *op, u8 status, u32 flags)
{
	struct kunit *test = s->pair->test;
	struct sroce_cqe cqe = {};
	u32 handle = 0;

	KUNIT_ASSERT_EQ(test, 0, sroce_srq_tag_op(&s->srq, op, &handle));
	if (!(op->flags & SROCE_TAG_SIGNALED)) {
		KUNIT_EXPECT_FALSE(test, side_poll_cqe(&s->rcq, &cqe));
		return handle;
	}
	KUNIT_ASSERT_TRUE(test, side_poll_cqe(&s->rcq, &cqe));
	KUNIT_EXPECT_EQ(test, op->wr_id, cqe.wr_id);
	KUNIT_EXPECT_EQ(test, status, cqe.status);
	KUNIT_EXPECT_EQ(test, SROCE_WC_TAG_ADD + op->opcode, cqe.opcode);
	KUNIT_EXPECT_EQ(test, flags, cqe.flags);
	KUNIT_EXPECT_EQ(test, SROCE_QPN_NONE, cqe.qpn);
	return handle;
}

/* A buffer for one tag */
static u32 side_add_tag(struct side *s, u64 tag, u32 off, u32 len)
{
	struct sroce_tag_op op = op_add(s, tag, ALL_BITS, off, len);

	return op_do(s, &op, IB_WC_SUCCESS, 0);
}

static void side_sync(struct side *s, u32 count, u32 flags)
{
	const struct sroce_tag_op op = {
		.opcode = SROCE_TAG_SYNC,
		.flags = SROCE_TAG_SIGNALED | SROCE_TAG_SYNCS,
		.unexpected_cnt = count,
	};

	op_do(s, &op, IB_WC_SUCCESS, flags);
}

static struct sroce_tag_op op_del(u32 handle)
{
	return (struct sroce_tag_op){
		.wr_id = 77,
		.opcode = SROCE_TAG_DEL,
		.flags = SROCE_TAG_SIGNALED,
		.handle = handle,
	};
}

static void op_expect(struct side *s, struct sroce_tag_op op, int err)
{
	struct sroce_cqe cqe;
	u32 handle;

	KUNIT_EXPECT_EQ(s->pair->test, err, sroce_srq_tag_op(&s->srq, &op, &handle));
	KUNIT_EXPECT_FALSE(s->pair->test, side_poll_cqe(&s->rcq, &cqe));
}

/* What a process may write that makes no sense: nothing happens */
static void ops_hostile(struct kunit *test)
{
	struct side *s = &tag_pair(test, true)->side[1];
	struct sroce_tag_op good = op_add(s, 1, ALL_BITS, DST, 64), op;
	int i;

#define REFUSED(base, field, value) do {				\
	op = base;							\
	op.field = value;						\
	op_expect(s, op, -EINVAL);					\
} while (0)
	REFUSED(good, opcode, 3);
	REFUSED(good, opcode, U32_MAX);
	REFUSED(good, flags, 1 << 2);
	REFUSED(good, flags, 1U << 31);
	REFUSED(good, num_sge, SROCE_MAX_TAG_SGE + 1);
	REFUSED(good, num_sge, U32_MAX);
	REFUSED(good, num_sge, 0);
	REFUSED(good, reserved, 1);
	REFUSED(good, handle, 1);
	REFUSED(good, unexpected_cnt, 1);
	for (i = 1; i < SROCE_MAX_TAG_SGE; i++)
		REFUSED(good, sge[i].length, 1);
	good = op_del(1);
	REFUSED(good, tag, 1);
	REFUSED(good, mask, 1);
	REFUSED(good, recv_wr_id, 1);
	REFUSED(good, num_sge, 1);
	REFUSED(good, sge[0].addr, 1);
	good.opcode = SROCE_TAG_SYNC;
	REFUSED(good, handle, 1);
#undef REFUSED
	KUNIT_EXPECT_EQ(test, SROCE_TAG_NONE, s->srq.tags->first);
}

static void ops_delete(struct kunit *test)
{
	struct side *s = &tag_pair(test, true)->side[1];
	u32 handle = side_add_tag(s, 1, DST, 64);
	struct sroce_tag_op op = op_del(handle);

	op_do(s, &op, IB_WC_SUCCESS, 0);
	op_do(s, &op, SROCE_WC_STATUS_TAG, 0);
	op.handle = handle ^ 1 << 20;
	op_do(s, &op, SROCE_WC_STATUS_TAG, 0);
	/* Without a completion nobody hears of it */
	op.flags = 0;
	op_do(s, &op, 0, 0);
}

/* The list, and then the completion queue, is full: refused, and nothing has changed */
static void ops_full(struct kunit *test)
{
	struct pair_config c = { .tags = TAGS, .cq_depth = 4, .depth = 4, .direct = true };
	struct side *s = &pair_create(test, &c)->side[1];
	struct sroce_tag_op op = op_add(s, 1, ALL_BITS, DST, 64);
	struct sroce_cqe cqe;
	u32 handle, i;

	op.flags = 0;
	for (i = 0; i < TAGS; i++)
		op_do(s, &op, 0, 0);
	op_expect(s, op, -ENOMEM);

	op = op_del(0);
	for (i = 0; i < sroce_ring_entries(&s->rcq.ring); i++)
		KUNIT_EXPECT_EQ(test, 0, sroce_srq_tag_op(&s->srq, &op, &handle));
	op = op_del(s->srq.tags->tags[0].uses << 16);
	KUNIT_EXPECT_TRUE(test, sroce_tags_has(s->srq.tags, op.handle));
	KUNIT_EXPECT_EQ(test, -ENOMEM, sroce_srq_tag_op(&s->srq, &op, &handle));
	KUNIT_EXPECT_TRUE(test, sroce_tags_has(s->srq.tags, op.handle));
	KUNIT_EXPECT_EQ(test, 0, side_events(s, IB_EVENT_CQ_ERR));
	while (side_poll_cqe(&s->rcq, &cqe))
		;
	op_do(s, &op, IB_WC_SUCCESS, 0);
}

static void op_sync(struct side *s, u32 flags)
{
	const struct sroce_tag_op op = { .opcode = SROCE_TAG_SYNC, .flags = flags };
	u32 handle;

	KUNIT_EXPECT_EQ(s->pair->test, 0, sroce_srq_tag_op(&s->srq, &op, &handle));
}

/* ... without anybody's doing anything for it. A second or two */
static bool side_is_notified(struct side *s, int wanted)
{
	int patience = 20000;

	while (atomic_read(&s->notified) != wanted && --patience)
		usleep_range(50, 100);
	return patience;
}

/*
 * An operation has its event, though no QP has anything to do on its CPU; and the queue can
 * go then, which waits for a handler that is to be called
 */
static void ops_event(struct kunit *test)
{
	struct side *s = &tag_pair(test, true)->side[1];
	int before = atomic_read(&s->notified);
	struct sroce_cqe cqe;
	bool called;
	int i, cpu;

	for (i = 1; i <= 3; i++) {
		sroce_cq_arm(&s->rcq, IB_CQ_NEXT_COMP);
		op_sync(s, SROCE_TAG_SIGNALED);
		called = side_is_notified(s, before + i);
		KUNIT_EXPECT_TRUE(test, called);
		KUNIT_EXPECT_TRUE(test, side_poll_cqe(&s->rcq, &cqe));
		if (called)
			continue;
		/* The test does not hang where it finds something */
		for_each_online_cpu(cpu)
			sroce_run_for_cpu(cpu);
		side_is_notified(s, before + i);
	}
	/* Nobody has asked for one, or there is nothing to tell */
	op_sync(s, SROCE_TAG_SIGNALED);
	sroce_cq_arm(&s->rcq, IB_CQ_NEXT_COMP);
	op_sync(s, 0);
	usleep_range(1000, 2000);
	KUNIT_EXPECT_EQ(test, before + 3, atomic_read(&s->notified));
}

/* --- messages ------------------------------------------------------------------ */

/* Write the header of a message, and behind it bytes that can be told apart */
static void side_fill_tagged(struct side *s, u8 opcode, u64 tag, u32 len, u32 seed)
{
	u8 *h = s->mem + SRC;

	side_fill(s, SRC + SROCE_TMH_LEN, len, seed);
	/* What is reserved is nobody's business */
	memset(h, 0xff, 4);
	h[0] = opcode;
	put_unaligned_be32(APP_CTX, h + 4);
	put_unaligned_be64(tag, h + 8);
}

static void side_send_tagged(struct side *s, u8 opcode, u64 tag, u32 len, u32 seed)
{
	struct work w;

	side_fill_tagged(s, opcode, tag, len, seed);
	side_post(s, work_send(s, &w, seed, SRC, SROCE_TMH_LEN + len));
}

#define RNDV 1
#define FIN 2
#define EAGER 3

static struct sroce_cqe side_expect_cqe(struct side *s, u64 wr_id, u8 opcode, u32 flags)
{
	struct kunit *test = s->pair->test;
	struct sroce_cqe cqe = {};

	KUNIT_ASSERT_TRUE(test, pair_wait(s->pair, &s->rcq, 1));
	KUNIT_ASSERT_TRUE(test, side_poll_cqe(&s->rcq, &cqe));
	KUNIT_EXPECT_EQ(test, wr_id, cqe.wr_id);
	KUNIT_EXPECT_EQ(test, 0, cqe.status);
	KUNIT_EXPECT_EQ(test, opcode, cqe.opcode);
	KUNIT_EXPECT_EQ(test, flags, cqe.flags);
	return cqe;
}

#define MATCHED (SROCE_CQE_TAG_MATCH | SROCE_CQE_TAG_DATA)

static const u32 lengths[] = {
	0, 1, MTU - SROCE_TMH_LEN - 1, MTU - SROCE_TMH_LEN, MTU - SROCE_TMH_LEN + 1,
	MTU, 2 * MTU - SROCE_TMH_LEN, 3 * MTU + 5, 100 * MTU, 0x10001,
};

static void eager_of(struct pair *p, u32 len, u32 seed)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct kunit *test = p->test;
	struct sroce_cqe cqe;

	/* Matched: the data, and nothing in front of or behind it */
	b->mem[DST - 1] = 0x77;
	b->mem[DST + len] = 0x78;
	side_add_tag(b, 5, DST, len);
	side_send_tagged(a, EAGER, 5, len, seed);
	cqe = side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, MATCHED);
	KUNIT_EXPECT_EQ(test, len, cqe.byte_len);
	KUNIT_EXPECT_EQ(test, 5, cqe.tm.tag);
	KUNIT_EXPECT_EQ(test, APP_CTX, cqe.tm.app_ctx);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, seed));
	KUNIT_EXPECT_EQ(test, 0x77, b->mem[DST - 1]);
	KUNIT_EXPECT_EQ(test, 0x78, b->mem[DST + len]);
	side_expect_send(a, seed, IB_WC_SUCCESS);

	/* Not matched: header and all, in an ordinary receive */
	side_recv(b, 9, OTHER, SROCE_TMH_LEN + len);
	side_send_tagged(a, EAGER, 6, len, seed + 1);
	cqe = side_expect_cqe(b, 9, SROCE_WC_TAG_RECV, 0);
	KUNIT_EXPECT_EQ(test, SROCE_TMH_LEN + len, cqe.byte_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(a->mem + SRC, b->mem + OTHER, SROCE_TMH_LEN));
	KUNIT_EXPECT_TRUE(test, side_filled(b, OTHER + SROCE_TMH_LEN, len, seed + 1));
	side_expect_send(a, seed + 1, IB_WC_SUCCESS);
	side_sync(b, b->srq.tags->unexpected, 0);
}

static void eager(struct kunit *test)
{
	struct pair *p = NULL;
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		if (i % ARRAY_SIZE(lengths) == 0)
			p = tag_pair(test, i);
		eager_of(p, lengths[i % ARRAY_SIZE(lengths)], 3 * i + 1);
	}
}

/* The same while packets are lost, repeated and overtaken */
static void eager_with_losses(struct kunit *test)
{
	struct pair *p = tag_pair(test, false);
	struct rule rules[] = {
		rule_nth(&p->side[0], SROCE_OP_SEND, 0, 1, FAKE_DROP),
		rule_nth(&p->side[0], SROCE_OP_SEND, 3, 1, FAKE_DROP),
		rule_nth(&p->side[0], SROCE_OP_SEND, 8, 2, FAKE_DROP),
		{}
	};

	pair_rules(p, rules);
	eager_of(p, 6 * MTU, 1);
	KUNIT_EXPECT_LT(test, 0, rules[0].hits);
	KUNIT_EXPECT_LT(test, 0, rules[2].hits);
}

/* What has no tag is nobody's match, and does not count */
static void no_tag(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];
	const u8 opcodes[] = { 0, FIN, 4, 0xff };
	struct sroce_tag_op any = op_add(b, 0, 0, DST, 64);
	struct work w;
	u32 i;

	op_do(b, &any, IB_WC_SUCCESS, 0);
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		side_recv(b, 9, OTHER, 200);
		side_send_tagged(a, opcodes[i], 5, 100, i);
		side_expect_cqe(b, 9, SROCE_WC_NO_TAG, 0);
		KUNIT_EXPECT_TRUE(test, side_filled(b, OTHER + SROCE_TMH_LEN, 100, i));
		side_expect_send(a, i, IB_WC_SUCCESS);
	}
	/* One that is too short for a header, and one of nothing */
	for (i = 0; i < SROCE_TMH_LEN; i += SROCE_TMH_LEN - 1) {
		side_recv(b, 9, OTHER, 200);
		a->mem[SRC] = EAGER;
		side_post(a, work_send(a, &w, i, SRC, i));
		KUNIT_EXPECT_EQ(test, i, side_expect_cqe(b, 9, SROCE_WC_NO_TAG, 0).byte_len);
		side_expect_send(a, i, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, 0, b->srq.tags->unexpected);
	/* An RDMA WRITE with immediate data takes an ordinary receive */
	side_recv(b, 9, 0, 0);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, 50, SRC, OTHER, 64);
	side_post(a, &w);
	side_expect_cqe(b, 9, IB_WC_RECV_RDMA_WITH_IMM, SROCE_CQE_IMM);
	side_expect_send(a, 50, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, SROCE_TAG_NONE, b->srq.tags->first);
}

/* Added too late: the message that it could be for is with the process already */
static void added_out_of_step(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_tag_op op = op_add(b, 5, ALL_BITS, DST, 64);

	side_recv(b, 1, OTHER, 200);
	side_recv(b, 2, OTHER, 200);
	side_send_tagged(a, EAGER, 5, 64, 1);
	side_expect_cqe(b, 1, SROCE_WC_TAG_RECV, 0);
	op_do(b, &op, IB_WC_SUCCESS, SROCE_CQE_TAG_SYNC_REQ);
	side_send_tagged(a, EAGER, 5, 64, 2);
	side_expect_cqe(b, 2, SROCE_WC_TAG_RECV, 0);
	side_sync(b, 1, SROCE_CQE_TAG_SYNC_REQ);
	side_sync(b, 2, 0);
	side_send_tagged(a, EAGER, 5, 64, 3);
	side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, MATCHED);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 64, 3));
}

/* Longer than the buffer: as any SEND that is longer than its receive */
static void eager_too_long(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_add_tag(b, 5, DST, 63);
	side_send_tagged(a, EAGER, 5, 64, 1);
	side_expect_send(a, 1, IB_WC_REM_INV_REQ_ERR);
	side_expect_recv(b, 2005, IB_WC_LOC_LEN_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
}

/* No match, and no receive either: the peer waits, and a buffer that comes is its */
static void not_ready(struct kunit *test)
{
	struct pair *p = tag_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_send_tagged(a, EAGER, 5, 3 * MTU, 1);
	pair_deliver(p);
	side_add_tag(b, 5, DST, 3 * MTU);
	side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, MATCHED);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, 3 * MTU, 1));
	KUNIT_EXPECT_EQ(test, 0, b->srq.tags->unexpected);
}

/* --- a message that has to come again, and another one that comes instead -------------- */

#define WAIT_BYTES (4 * PAGE_SIZE)

/*
 * A pair whose side 1 has a region on demand, of which no page comes before wait_over().
 * What wants one waits with the receive that it has taken.
 */
static struct pair *wait_pair(struct kunit *test, struct sroce_mr **mr)
{
	struct pair *p;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		kunit_skip(test, "no memory on demand in this kernel");
	p = tag_pair(test, false);
	*mr = side_demand_create(&p->side[1], WAIT_BYTES, 0);
	mmap_write_lock(current->mm);
	return p;
}

static void wait_over(struct pair *p, struct sroce_mr *mr)
{
	struct side *b = &p->side[1];

	mmap_write_unlock(current->mm);
	while (sroce_fault_is_running(&b->qp->resp.half))
		usleep_range(100, 200);
	side_demand_free(mr);
}

static void side_waits_with_receive(struct side *s)
{
	struct kunit *test = s->pair->test;

	pair_deliver(s->pair);
	KUNIT_ASSERT_TRUE(test, s->qp->resp.msg.have_wqe);
	KUNIT_ASSERT_EQ(test, SROCE_RESP_IDLE, s->qp->resp.msg.state);
}

/* The QP is as new, and the next that it sends is to its peer the one that waits */
static void side_send_instead(struct side *s)
{
	side_to_reset(s);
	s->pair->config.psn = pair_peer(s)->qp->resp.epsn;
	side_to_init(s);
	side_to_rtr(s);
	side_to_rts(s);
}

/* The receive that was taken ends with an error, and nothing is made of either message */
static void side_expect_refused(struct side *s, u64 wr_id)
{
	struct kunit *test = s->pair->test;
	struct sroce_cqe cqe = {};

	/* Nothing is asserted: the end of the test would wait for the lock that we have */
	KUNIT_EXPECT_TRUE(test, pair_wait(s->pair, &s->rcq, 1) && side_poll_cqe(&s->rcq, &cqe));
	KUNIT_EXPECT_EQ(test, wr_id, cqe.wr_id);
	KUNIT_EXPECT_EQ(test, IB_WC_REM_INV_REQ_ERR, cqe.status);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(s));
	KUNIT_EXPECT_FALSE(test, side_poll_cqe(&s->rcq, &cqe));
}

static void side_recv_demand(struct side *s, u64 wr_id, struct sroce_mr *mr, u32 len)
{
	struct ib_sge sge = { .addr = mr->iova, .length = len, .lkey = mr->key };
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	KUNIT_ASSERT_EQ(s->pair->test, 0, side_try_recv(s, &wr));
}

static void side_add_demand(struct side *s, u64 tag, struct sroce_mr *mr, u32 len)
{
	struct sroce_tag_op op = op_add(s, tag, ALL_BITS, DST, len);

	op.sge[0].addr = mr->iova;
	op.sge[0].lkey = mr->key;
	op_do(s, &op, IB_WC_SUCCESS, 0);
}

static void side_write_imm_demand(struct side *s, u64 wr_id, struct sroce_mr *mr)
{
	struct work w;

	work_rdma(s, &w, SROCE_WR_RDMA_WRITE_IMM, wr_id, SRC, 0, 100);
	w.wqe.rdma.remote_addr = mr->iova;
	w.wqe.rdma.rkey = mr->key;
	side_post(s, &w);
}

/*
 * An RDMA WRITE with immediate data has taken a receive without elements, after a SEND
 * that nothing has matched. The SEND that comes instead has nothing of either: not the
 * header of the older one, for which there would be no room.
 */
static void send_instead_of_write(struct kunit *test)
{
	struct sroce_mr *mr;
	struct pair *p = wait_pair(test, &mr);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_recv(b, 1, OTHER, 64);
	side_recv(b, 2, 0, 0);
	side_send_tagged(a, EAGER, 5, 0, 1);
	side_expect_cqe(b, 1, SROCE_WC_TAG_RECV, 0);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_write_imm_demand(a, 2, mr);
	side_waits_with_receive(b);
	side_send_instead(a);
	side_post(a, work_send(a, &w, 3, SRC, 0));
	side_expect_refused(b, 2);
	wait_over(p, mr);
	side_expect_send(a, 3, IB_WC_REM_INV_REQ_ERR);
}

/* The older SEND has matched: the ordinary receive is not that of a tagged buffer */
static void eager_instead_of_write(struct kunit *test)
{
	struct sroce_mr *mr;
	struct pair *p = wait_pair(test, &mr);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_add_tag(b, 5, DST, 64);
	side_recv(b, 2, OTHER, 200);
	side_send_tagged(a, EAGER, 5, 64, 1);
	side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, MATCHED);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_write_imm_demand(a, 2, mr);
	side_waits_with_receive(b);
	side_send_instead(a);
	side_send_tagged(a, EAGER, 5, 64, 3);
	side_expect_refused(b, 2);
	wait_over(p, mr);
}

/* The other way: a tagged buffer is not the receive of an RDMA WRITE with immediate data */
static void write_instead_of_eager(struct kunit *test)
{
	struct sroce_mr *mr;
	struct pair *p = wait_pair(test, &mr);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;

	side_recv(b, 2, OTHER, 200);
	side_add_demand(b, 5, mr, 64);
	side_send_tagged(a, EAGER, 5, 64, 1);
	side_waits_with_receive(b);
	side_send_instead(a);
	work_rdma(a, &w, SROCE_WR_RDMA_WRITE_IMM, 3, SRC, OTHER, 64);
	side_post(a, &w);
	side_expect_refused(b, 2005);
	wait_over(p, mr);
}

/* Another header, or none, than that by which the buffer, or the receive, was chosen */
static void other_header(struct kunit *test)
{
	static const struct {
		bool matched;
		u32 len;
		u8 opcode;
		u64 tag;
	} cases[] = {
		{ false, 5 }, { true, 5 }, { true, 0 },
		{ false, 80, EAGER, 6 }, { true, 80, EAGER, 6 }, { true, 80, FIN, 5 },
		{ true, 80, RNDV, 5 }, { false, 80, RNDV, 5 }, { false, 80, 0, 5 },
	};
	struct sroce_mr *mr;
	struct side *a, *b;
	struct pair *p;
	struct work w;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		p = wait_pair(test, &mr);
		a = &p->side[0];
		b = &p->side[1];
		if (cases[i].matched)
			side_add_demand(b, 5, mr, 100);
		else
			side_recv_demand(b, 2005, mr, 100);
		side_send_tagged(a, EAGER, 5, 64, 1);
		side_waits_with_receive(b);
		side_send_instead(a);
		side_fill_tagged(a, cases[i].opcode, cases[i].tag, 64, 2);
		side_post(a, work_send(a, &w, 2, SRC, cases[i].len));
		side_expect_refused(b, 2005);
		wait_over(p, mr);
	}
}

/* The same message, of as many packets, comes again when the pages are there */
static void waits_for_pages_of(struct kunit *test, u32 len, bool matched)
{
	struct sroce_mr *mr;
	struct pair *p = wait_pair(test, &mr);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 skip = matched ? SROCE_TMH_LEN : 0;
	struct sroce_cqe cqe;
	u8 *got;

	if (matched)
		side_add_demand(b, 5, mr, len);
	else
		side_recv_demand(b, 2005, mr, SROCE_TMH_LEN + len);
	side_send_tagged(a, EAGER, 5, len, 1);
	side_waits_with_receive(b);
	mmap_write_unlock(current->mm);
	while (sroce_fault_is_running(&b->qp->resp.half) ||
	       READ_ONCE(b->qp->resp.half.fault.waiting))
		pair_deliver(p);
	cqe = side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, matched ? MATCHED : 0);
	KUNIT_EXPECT_EQ(test, SROCE_TMH_LEN + len - skip, cqe.byte_len);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	got = kunit_kmalloc(test, cqe.byte_len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, 0, copy_from_user(got, u64_to_user_ptr(mr->iova), cqe.byte_len));
	KUNIT_EXPECT_EQ(test, 0, memcmp(got, a->mem + SRC + skip, cqe.byte_len));
	KUNIT_EXPECT_EQ(test, !matched, b->srq.tags->unexpected);
	side_demand_free(mr);
}

/* A short message does not have the whole of a long buffer brought in, nor does its header */
static void brings_no_more(struct kunit *test)
{
	struct sroce_odp_counts counts;
	struct sroce_mr *mr;
	struct pair *p;
	struct side *b;
	int matched;

	for (matched = 0; matched < 2; matched++) {
		p = wait_pair(test, &mr);
		b = &p->side[1];
		if (matched)
			side_add_demand(b, 5, mr, WAIT_BYTES);
		else
			side_recv_demand(b, 2005, mr, WAIT_BYTES);
		side_send_tagged(&p->side[0], EAGER, 5, 64, 1);
		side_waits_with_receive(b);
		mmap_write_unlock(current->mm);
		while (sroce_fault_is_running(&b->qp->resp.half) ||
		       READ_ONCE(b->qp->resp.half.fault.waiting))
			pair_deliver(p);
		side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, matched ? MATCHED : 0);
		side_expect_send(&p->side[0], 1, IB_WC_SUCCESS);
		sroce_odp_count(mr->odp, &counts);
		KUNIT_EXPECT_EQ_MSG(test, 1, counts.faults, "matched %d", matched);
		side_demand_free(mr);
	}
}

static void waits_for_pages(struct kunit *test)
{
	const u32 lens[] = { 1, 64, MTU, 5 * MTU + 3 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		waits_for_pages_of(test, lens[i], false);
		waits_for_pages_of(test, lens[i], true);
	}
}

/* --- messages that are counted, and never complete ------------------------------------ */

/* Nothing is counted, and what was added out of step is matched */
static void side_in_step(struct side *s)
{
	struct kunit *test = s->pair->test;

	KUNIT_EXPECT_EQ(test, s->srq.tags->handled, s->srq.tags->unexpected);
	KUNIT_EXPECT_EQ(test, SROCE_TAG_NONE, s->srq.tags->dormant);
}

static void pair_begin_anew(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		side_to_reset(&p->side[i]);
	for (i = 0; i < 2; i++) {
		side_to_init(&p->side[i]);
		side_to_rtr(&p->side[i]);
		side_to_rts(&p->side[i]);
	}
}

/* A buffer of tag 7 is matched by the next message to it */
static void pair_matches(struct pair *p)
{
	struct side *a = &p->side[0], *b = &p->side[1];

	side_send_tagged(a, EAGER, 7, 64, 70);
	side_expect_cqe(b, 2007, SROCE_WC_TAG_RECV, MATCHED);
	side_expect_send(a, 70, IB_WC_SUCCESS);
}

/* Too long for its receive, or with a receive that nothing can be written to */
static void counted_and_failed(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct recv r;
	int i;

	for (i = 0; i < 2; i++) {
		recv_init(&r, b, 1, OTHER, i ? 200 : 79);
		if (i)
			r.sge.lkey ^= 1 << 8;
		KUNIT_ASSERT_EQ(test, 0, side_try_recv(b, &r.wr));
		side_send_tagged(a, EAGER, 5, 64, 1);
		side_expect_recv(b, 1, i ? IB_WC_LOC_PROT_ERR : IB_WC_LOC_LEN_ERR);
		side_expect_send(a, 1, i ? IB_WC_REM_OP_ERR : IB_WC_REM_INV_REQ_ERR);
		KUNIT_EXPECT_EQ(test, 0, b->srq.tags->unexpected);
		pair_begin_anew(p);
		side_add_tag(b, 7, DST, 64);
		pair_matches(p);
	}
}

/* A receive that makes no sense, which is taken all the same */
static void counted_without_receive(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_recv(b, 1, OTHER, 200);
	((struct sroce_recv_wqe *)sroce_ring_entry(&b->srq.ring, b->srq.ring.index))->reserved = 1;
	side_send_tagged(a, EAGER, 5, 64, 1);
	side_expect_recv(b, 1, IB_WC_LOC_QP_OP_ERR);
	side_in_step(b);
}

/* The first packets of a message have come, and no others; and a buffer was added meanwhile */
static struct pair *half_a_message(struct kunit *test)
{
	static struct rule rules[2];
	struct pair *p = tag_pair(test, false);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_tag_op op = op_add(b, 7, ALL_BITS, DST, 64);

	rules[0] = rule_nth(a, SROCE_OP_SEND, 1, 0, FAKE_DROP);
	pair_rules(p, rules);
	side_recv(b, 1, OTHER, 4 * MTU);
	side_send_tagged(a, EAGER, 5, 3 * MTU, 1);
	pair_deliver(p);
	KUNIT_ASSERT_EQ(test, SROCE_RESP_SEND, b->qp->resp.msg.state);
	KUNIT_ASSERT_EQ(test, 1, b->srq.tags->unexpected);
	/* It may be for this one, as far as anybody knows */
	op_do(b, &op, IB_WC_SUCCESS, SROCE_CQE_TAG_SYNC_REQ);
	KUNIT_ASSERT_NE(test, SROCE_TAG_NONE, b->srq.tags->dormant);
	return p;
}

static void counted_until_reset(struct kunit *test)
{
	struct pair *p = half_a_message(test);

	side_to_reset(&p->side[1]);
	side_in_step(&p->side[1]);
	pair_rules(p, NULL);
	pair_begin_anew(p);
	pair_matches(p);
}

static void counted_until_error(struct kunit *test)
{
	struct pair *p = half_a_message(test);
	struct side *b = &p->side[1];

	side_to_error(b);
	side_expect_recv(b, 1, IB_WC_WR_FLUSH_ERR);
	side_in_step(b);
	/* Once */
	side_to_reset(b);
	side_in_step(b);
}

static void counted_until_destroyed(struct kunit *test)
{
	struct pair *p = half_a_message(test);
	struct side *b = &p->side[1];

	sroce_qp_destroy(b->qp);
	b->qp = NULL;
	side_in_step(b);
}

/* What has completed stays counted, until the process says otherwise */
static void counted_and_completed(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_recv(b, 1, OTHER, 200);
	side_send_tagged(a, EAGER, 5, 64, 1);
	side_expect_cqe(b, 1, SROCE_WC_TAG_RECV, 0);
	side_to_error(b);
	side_to_reset(b);
	KUNIT_EXPECT_EQ(test, 1, b->srq.tags->unexpected);
	side_sync(b, 1, 0);
	side_in_step(b);
}

/* --- rendezvous --------------------------------------------------------------------- */

/* Data that is to be read; the header with its address is in another place */
#define DATA 0x40000

static void side_ask_rndv(struct side *s, u64 tag, u32 len, u32 extra, u32 seed)
{
	u8 *rvh = s->mem + SRC + SROCE_TMH_LEN;
	struct work w;

	side_fill(s, DATA, len, seed);
	side_fill_tagged(s, RNDV, tag, 0, 0);
	put_unaligned_be64((uintptr_t)s->mem + DATA, rvh);
	put_unaligned_be32(s->mr->key, rvh + 8);
	put_unaligned_be32(len, rvh + 12);
	side_post(s, work_send(s, &w, seed, SRC,
			       SROCE_TMH_LEN + SROCE_RVH_LEN + extra));
}

/* What the library does when the completion of the match is polled */
static void side_read_rndv(struct side *s, u32 handle)
{
	struct work w;

	work_init(&w, SROCE_WR_TAG_READ, 0);
	w.wqe.tag.handle = handle;
	side_post(s, &w);
}

static void side_send_fin(struct side *s, u64 tag)
{
	struct work w;

	side_fill_tagged(s, FIN, tag, 0, 0);
	work_init(&w, SROCE_WR_TAG_FIN, 0);
	work_local(s, &w, SRC, SROCE_TMH_LEN);
	w.wqe.flags = SROCE_SEND_FENCE;
	side_post(s, &w);
}

static void rndv_of(struct pair *p, u32 len, u32 seed)
{
	struct side *a = &p->side[0], *b = &p->side[1];
	struct kunit *test = p->test;
	struct sroce_cqe cqe;

	side_add_tag(b, 5, DST, len + 3);
	side_recv(a, 30, OTHER, 64);
	side_ask_rndv(a, 5, len, 0, seed);
	cqe = side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, SROCE_CQE_TAG_MATCH);
	KUNIT_EXPECT_EQ(test, len, cqe.byte_len);
	KUNIT_EXPECT_EQ(test, 5, cqe.tm.tag);
	KUNIT_EXPECT_EQ(test, APP_CTX, cqe.tm.app_ctx);
	side_read_rndv(b, cqe.tag_handle);
	side_send_fin(b, 5);
	cqe = side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, SROCE_CQE_TAG_DATA);
	KUNIT_EXPECT_EQ(test, len, cqe.byte_len);
	KUNIT_EXPECT_TRUE(test, side_filled(b, DST, len, seed));
	/* The peer's queue matches tags as well: this is none */
	cqe = side_expect_cqe(a, 30, SROCE_WC_NO_TAG, 0);
	KUNIT_EXPECT_EQ(test, SROCE_TMH_LEN, cqe.byte_len);
	KUNIT_EXPECT_EQ(test, FIN, a->mem[OTHER]);
	side_expect_send(a, seed, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, side_poll_cqe(&b->scq, &cqe));
}

static void rendezvous(struct kunit *test)
{
	struct pair *p = NULL;
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		if (i % ARRAY_SIZE(lengths) == 0)
			p = tag_pair(test, i);
		rndv_of(p, lengths[i % ARRAY_SIZE(lengths)], i + 1);
		KUNIT_EXPECT_FALSE(test, sroce_tags_full(p->side[1].srq.tags));
	}
}

/* Every work request completes: what has no completion has none all the same */
static void rendezvous_sig_all(struct kunit *test)
{
	struct pair_config c = { .mtu = IB_MTU_256, .tags = TAGS, .sig_all = true };

	rndv_of(pair_create(test, &c), 5 * MTU, 1);
}

/* Handles that a process makes up, or has used already */
static void rendezvous_hostile(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct sroce_cqe cqe;
	u32 listed;

	listed = side_add_tag(b, 6, DST, 64);
	side_add_tag(b, 5, DST, 64);
	side_ask_rndv(a, 5, 64, 0, 1);
	cqe = side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, SROCE_CQE_TAG_MATCH);
	side_read_rndv(b, cqe.tag_handle);
	side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, SROCE_CQE_TAG_DATA);
	side_read_rndv(b, cqe.tag_handle);
	side_expect_recv(b, 0, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, side_state(b));
	/* One that nothing has matched stays where it is, also when all is flushed */
	side_read_rndv(b, listed);
	side_expect_recv(b, 0, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, sroce_tags_has(b->srq.tags, listed));
}

/* What comes behind the work requests of tag matching is unknown, and a send that fails */
static void rendezvous_unknown(struct kunit *test)
{
	struct side *s = &tag_pair(test, true)->side[0];
	struct sroce_cqe cqe;
	struct work w;

	work_init(&w, SROCE_WR_TAG_FIN + 1, 3);
	side_post(s, &w);
	side_expect_send(s, 3, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_FALSE(test, side_poll_cqe(&s->rcq, &cqe));
}

/* A QP without tag matching knows no such work request */
static void rendezvous_elsewhere(struct kunit *test)
{
	struct pair_config c = { .srq = true, .direct = true };
	struct side *s = &pair_create(test, &c)->side[0];

	side_read_rndv(s, 1);
	side_expect_send(s, 0, IB_WC_LOC_QP_OP_ERR);
}

/* The QP goes to RESET before its process has begun what was asked for: buffers are free */
static void rendezvous_forgotten(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];
	u32 i;

	for (i = 0; i < TAGS; i++) {
		side_add_tag(b, 5, DST, 64);
		side_ask_rndv(a, 5, 64, 0, i);
		side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, SROCE_CQE_TAG_MATCH);
		side_expect_send(a, i, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, sroce_tags_full(b->srq.tags));
	side_to_reset(b);
	KUNIT_EXPECT_FALSE(test, sroce_tags_full(b->srq.tags));
}

/* It matches, and has a buffer, but invalidates a key that it must not: the buffer is free */
static void rendezvous_fails(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct work w;
	u32 i;

	side_add_tag(b, 5, DST, 64);
	side_fill_tagged(a, RNDV, 5, SROCE_RVH_LEN, 0);
	memset(a->mem + SRC + SROCE_TMH_LEN, 0, SROCE_RVH_LEN);
	work_send(a, &w, 1, SRC, SROCE_TMH_LEN + SROCE_RVH_LEN);
	w.wqe.opcode = SROCE_WR_SEND_INV;
	w.wqe.invalidate_rkey = 0x12345678;
	side_post(a, &w);
	side_expect_recv(b, 2005, IB_WC_LOC_ACCESS_ERR);
	for (i = 0; i < TAGS; i++)
		KUNIT_EXPECT_EQ(test, SROCE_TAG_FREE, b->srq.tags->tags[i].state);
}

/* What is longer than the buffer, or no request of a rendezvous at all */
static void rendezvous_refused(struct kunit *test)
{
	struct pair *p = tag_pair(test, true);
	struct side *a = &p->side[0], *b = &p->side[1];

	side_add_tag(b, 5, DST, 63);
	side_ask_rndv(a, 5, 64, 0, 1);
	side_expect_send(a, 1, IB_WC_REM_INV_REQ_ERR);
	side_expect_recv(b, 2005, IB_WC_LOC_LEN_ERR);
	KUNIT_EXPECT_EQ(test, SROCE_TAG_NONE, b->srq.tags->first);

	p = tag_pair(test, true);
	a = &p->side[0];
	b = &p->side[1];
	side_add_tag(b, 5, DST, 64);
	side_ask_rndv(a, 5, 64, SROCE_MAX_RNDV_HEADER - 2 * SROCE_TMH_LEN, 1);
	side_expect_cqe(b, 2005, SROCE_WC_TAG_RECV, SROCE_CQE_TAG_MATCH);
	side_expect_send(a, 1, IB_WC_SUCCESS);
	side_add_tag(b, 5, DST, 64);
	side_ask_rndv(a, 5, 64, SROCE_MAX_RNDV_HEADER - 2 * SROCE_TMH_LEN + 1, 2);
	side_expect_send(a, 2, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, 1, side_events(b, IB_EVENT_QP_REQ_ERR));

	p = tag_pair(test, true);
	a = &p->side[0];
	side_send_tagged(a, RNDV, 5, SROCE_RVH_LEN - 1, 1);
	side_expect_send(a, 1, IB_WC_REM_INV_REQ_ERR);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(list_order),
	KUNIT_CASE(list_deletes),
	KUNIT_CASE(list_handles),
	KUNIT_CASE(list_dormant),
	KUNIT_CASE(list_counts),
	KUNIT_CASE(list_reserves),
	KUNIT_CASE(ops_hostile),
	KUNIT_CASE(ops_delete),
	KUNIT_CASE(ops_full),
	KUNIT_CASE(ops_event),
	KUNIT_CASE(eager),
	KUNIT_CASE(eager_with_losses),
	KUNIT_CASE(no_tag),
	KUNIT_CASE(added_out_of_step),
	KUNIT_CASE(eager_too_long),
	KUNIT_CASE(not_ready),
	KUNIT_CASE(send_instead_of_write),
	KUNIT_CASE(eager_instead_of_write),
	KUNIT_CASE(write_instead_of_eager),
	KUNIT_CASE(other_header),
	KUNIT_CASE(waits_for_pages),
	KUNIT_CASE(brings_no_more),
	KUNIT_CASE(counted_and_failed),
	KUNIT_CASE(counted_without_receive),
	KUNIT_CASE(counted_until_reset),
	KUNIT_CASE(counted_until_error),
	KUNIT_CASE(counted_until_destroyed),
	KUNIT_CASE(counted_and_completed),
	KUNIT_CASE(rendezvous),
	KUNIT_CASE(rendezvous_sig_all),
	KUNIT_CASE(rendezvous_hostile),
	KUNIT_CASE(rendezvous_unknown),
	KUNIT_CASE(rendezvous_elsewhere),
	KUNIT_CASE(rendezvous_forgotten),
	KUNIT_CASE(rendezvous_fails),
	KUNIT_CASE(rendezvous_refused),
	{}
};

static struct kunit_suite suite = {
	.name = "sroce_tags",
	.exit = pair_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
