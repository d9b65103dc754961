// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: what may be bound, by whom, and who may invalidate it. What happens when
 * regions and QPs go before their windows is in window_test.c.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/mm.h>

#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/users.h"
#include "tests/memory_world.h"

#define WINDOW_MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND)

/* A bind that is allowed, of bytes 100 to 4099 of @mr */
static struct sroce_mw_bind good_bind(struct kunit *test,
				      const struct sroce_mr *mw,
				      const struct sroce_mr *mr)
{
	struct memory_world *w = test->priv;

	return (struct sroce_mw_bind){
		.key = mw->key,
		.new_key = (mw->key & ~0xff) | ((mw->key + 1) & 0xff),
		.lkey = mr->key,
		.addr = mr->iova + 100,
		.length = 4000,
		.access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		.pd = &w->pd.ibpd,
		.owner = &w->qp,
	};
}

static int bind(struct kunit *test, struct sroce_mw_bind b)
{
	struct memory_world *w = test->priv;

	return sroce_mw_bind(&w->table, &b);
}

/* Three pages that windows may be bound to; the memory begins @offset bytes into a page */
static struct sroce_mr *three_pages(struct kunit *test, u64 offset)
{
	return new_user_mr(test, WINDOW_MR_ACCESS, 0x12345000, offset,
			   3 * PAGE_SIZE);
}

/* The errno when a peer of the first domain reads through a region or window */
static int read_through(struct kunit *test, const struct sroce_mr *mr, u64 va,
			u64 len)
{
	struct memory_world *w = test->priv;

	return check_key(test, mr->key, &w->pd.ibpd, IB_ACCESS_REMOTE_READ, va, len);
}

static void window_bounds(struct kunit *test)
{
	struct sroce_mr *mr = three_pages(test, 7);
	struct sroce_mr *mw = new_window(test, false);
	struct sroce_mw_bind b = good_bind(test, mw, mr);
	const int read = IB_ACCESS_REMOTE_READ;
	struct memory_world *w = test->priv;

	KUNIT_EXPECT_EQ(test, read_through(test, mw, b.addr, 1), -EINVAL);
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, mw->key, b.new_key);
	KUNIT_EXPECT_EQ(test, check_key(test, b.key, &w->pd.ibpd, read, b.addr, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, mw->key, &w->other_pd.ibpd, read, b.addr, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, b.addr, 4000), 0);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, b.addr - 1, 1), -ERANGE);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, b.addr, 4001), -ERANGE);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, b.addr, U64_MAX), -ERANGE);
	KUNIT_EXPECT_EQ(test, check_key(test, mw->key, &w->pd.ibpd,
					IB_ACCESS_REMOTE_ATOMIC, b.addr, 8), -EACCES);
	/* the region itself grants none of this, and a window has no L_Key */
	KUNIT_EXPECT_EQ(test, read_through(test, mr, b.addr, 1), -EACCES);
	KUNIT_EXPECT_EQ(test, check_key(test, mw->key, &w->pd.ibpd, 0, b.addr, 1), -EINVAL);
	b.access |= IB_ACCESS_LOCAL_WRITE;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_NE(test, check_key(test, mw->key, &w->pd.ibpd, IB_ACCESS_LOCAL_WRITE,
					b.addr, 1), 0);
	KUNIT_EXPECT_EQ(test, byte_at(mw, b.addr) == byte_at(mr, b.addr), true);
	expect_ranges(test, mw);
	/* the whole of it, and then nothing */
	b.addr = mr->iova;
	b.length = mr->length;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	expect_ranges(test, mw);
	b.length = 0;
	b.lkey = 0;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, b.new_key, &w->pd.ibpd, read, b.addr, 1),
			-EINVAL);
	sroce_mr_free(mw);
}

static void window_zero_based(struct kunit *test)
{
	struct sroce_mr *mr = three_pages(test, 0);
	struct sroce_mr *mw = new_window(test, true);
	struct sroce_mw_bind b = good_bind(test, mw, mr);

	b.access |= IB_ZERO_BASED;
	KUNIT_ASSERT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, 0, 4000), 0);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, 0, 4001), -ERANGE);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, b.addr, 1), -ERANGE);
	KUNIT_EXPECT_PTR_EQ(test, byte_at(mw, 0), byte_at(mr, b.addr));
	expect_ranges(test, mw);
	sroce_mr_free(mw);
}

/* What is no obstacle, though it may look like one: both windows end bound to @read_only */
static void window_liberties(struct kunit *test, struct sroce_mw_bind b,
			     struct sroce_mr *read_only, struct sroce_mr *one)
{
	/* reading needs no local write right */
	b.lkey = read_only->key;
	b.addr = 0;
	b.access = IB_ACCESS_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	/* type 2 is to be free first, type 1 may be bound again */
	KUNIT_EXPECT_EQ(test, bind(test, b), -EINVAL);
	b.key = one->key;
	b.new_key = one->key;
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&read_only->windows), 2);
}

static void window_rules(struct kunit *test)
{
	struct sroce_mr *mr = three_pages(test, 0);
	struct sroce_mr *closed = new_user_mr(test, IB_ACCESS_LOCAL_WRITE, 0, 0,
					      8192);
	struct sroce_mr *read_only = new_user_mr(test, IB_ACCESS_MW_BIND, 0, 0,
						 8192);
	struct sroce_mr *zero = new_user_mr(test, WINDOW_MR_ACCESS |
					    IB_ZERO_BASED, 0, 0, 8192);
	struct sroce_mr *one = new_window(test, false);
	struct sroce_mr *two = new_window(test, true);
	struct memory_world *w = test->priv;
	const struct sroce_mw_bind good = good_bind(test, two, mr);
	struct sroce_mw_bind b = good;

#define REFUSED(change)							\
	do {								\
		b = good;						\
		change;							\
		KUNIT_EXPECT_EQ_MSG(test, bind(test, b), -EINVAL, #change); \
	} while (0)

	REFUSED(b.key = mr->key);
	REFUSED(b.key ^= 0x100);
	REFUSED(b.new_key ^= 0x100);
	REFUSED(b.pd = &w->other_pd.ibpd);
	REFUSED(b.lkey ^= 1);
	REFUSED(b.lkey = two->key);
	REFUSED(b.lkey = closed->key; b.addr = 0);
	REFUSED(b.lkey = read_only->key; b.addr = 0);
	REFUSED(b.lkey = zero->key; b.addr = 0);
	REFUSED(b.length = 0);
	REFUSED(b.addr = mr->iova - 1);
	REFUSED(b.length = 3 * PAGE_SIZE - 99);
	REFUSED(b.length = U64_MAX);
	REFUSED(b.access |= IB_ACCESS_MW_BIND);
	REFUSED(b.access |= IB_ACCESS_ON_DEMAND);
	REFUSED(b.access |= IB_ACCESS_FLUSH_GLOBAL);
	REFUSED(b = good_bind(test, one, mr); b.access |= IB_ZERO_BASED);
#undef REFUSED
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 0);

	window_liberties(test, good, read_only, one);
	sroce_mr_free(one);
	sroce_mr_free(two);
	KUNIT_EXPECT_EQ(test, atomic_read(&read_only->windows), 0);
}

static int invalidate(struct kunit *test, u32 key,
		      const struct sroce_mw_list *owned)
{
	struct memory_world *w = test->priv;

	return sroce_mr_invalidate(&w->table, key, &w->pd.ibpd, owned, true);
}

static void window_owner(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0, 0, 8192);
	struct sroce_mr *one = new_window(test, false);
	struct sroce_mr *two = new_window(test, true);
	struct memory_world *w = test->priv;

	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->qp), -EINVAL);
	KUNIT_ASSERT_EQ(test, bind(test, good_bind(test, one, mr)), 0);
	KUNIT_ASSERT_EQ(test, bind(test, good_bind(test, two, mr)), 0);
	KUNIT_EXPECT_TRUE(test, sroce_mr_serves(one, &w->other_qp));
	KUNIT_EXPECT_TRUE(test, sroce_mr_serves(two, &w->qp));
	KUNIT_EXPECT_FALSE(test, sroce_mr_serves(two, &w->other_qp));

	KUNIT_EXPECT_EQ(test, invalidate(test, one->key, &w->qp), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->other_qp), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key ^ 1, &w->qp), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->qp), 0);
	KUNIT_EXPECT_EQ(test, invalidate(test, two->key, &w->qp), -EINVAL);

	KUNIT_ASSERT_EQ(test, bind(test, good_bind(test, two, mr)), 0);
	sroce_mw_disown(&w->other_qp);
	KUNIT_EXPECT_TRUE(test, two->valid);
	sroce_mw_disown(&w->qp);
	KUNIT_EXPECT_FALSE(test, two->valid);
	KUNIT_EXPECT_TRUE(test, one->valid);
	sroce_mr_free(one);
	sroce_mr_free(two);
}

/* A window of a new region, bound as @b says afterwards */
static struct sroce_mr *bound_window(struct kunit *test, bool type2,
				     struct sroce_mw_bind *b)
{
	struct sroce_mr *mr = new_user_mr(test, WINDOW_MR_ACCESS, 0, 0, 8192);
	struct sroce_mr *mw = new_window(test, type2);

	*b = good_bind(test, mw, mr);
	KUNIT_ASSERT_EQ(test, bind(test, *b), 0);
	return mw;
}

/* A key that somebody copies with is not given to other memory */
static void window_in_use(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mw_bind b;
	struct sroce_mr *mw = bound_window(test, false, &b);
	struct sroce_mr *mr = mw->parent;
	struct sroce_mr *held;

	held = sroce_mr_find(&w->table, mw->key, mw->ibmr.pd);
	KUNIT_ASSERT_PTR_EQ(test, held, mw);
	b.addr += 8;
	KUNIT_EXPECT_EQ(test, bind(test, b), -EAGAIN);
	KUNIT_EXPECT_EQ(test, read_through(test, mw, b.addr, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
	sroce_mr_put(held);
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	KUNIT_EXPECT_EQ(test, mw->iova, b.addr);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
	sroce_mr_free(mw);
}

/* A region with a window must not go; an invalid window is in nobody's way */
static void window_seals(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mw_bind b;
	struct sroce_mr *mw = bound_window(test, true, &b);
	struct sroce_mr *mr = mw->parent;

	KUNIT_EXPECT_FALSE(test, sroce_mr_seal(mr));
	KUNIT_EXPECT_EQ(test, invalidate(test, mw->key, &w->qp), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(mr));
	KUNIT_EXPECT_PTR_EQ(test, mw->parent, NULL);
	KUNIT_EXPECT_EQ(test, bind(test, b), -EINVAL);
	sroce_mr_unseal(mr);
	KUNIT_EXPECT_EQ(test, bind(test, b), 0);
	sroce_mr_free(mw);
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(mr));
}

static struct kunit_case mw_cases[] = {
	KUNIT_CASE(window_bounds),
	KUNIT_CASE(window_zero_based),
	KUNIT_CASE(window_rules),
	KUNIT_CASE(window_owner),
	KUNIT_CASE(window_in_use),
	KUNIT_CASE(window_seals),
	{}
};

static struct kunit_suite mw_suite = {
	.name = "sroce_memory_mw",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = mw_cases,
};

kunit_test_suite(mw_suite);
