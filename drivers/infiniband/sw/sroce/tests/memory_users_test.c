// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who uses regions on one processor, and who ends them on another: it waits for those who use
 * the region, for all of them, and for nobody else.
 */
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "memory/internal.h"
#include "memory/mr.h"
#include "memory/users.h"
#include "tests/memory_world.h"

/* Who ends a region; with an heir its key passes to that one */
struct ender {
	struct sroce_mr *mr;
	struct sroce_mr *heir;
	struct completion done;
};

static int ender_thread(void *arg)
{
	struct ender *e = arg;

	if (e->heir)
		sroce_mr_replace(e->mr, e->heir);
	else
		sroce_mr_free(e->mr);
	complete(&e->done);
	return 0;
}

/* Anywhere but on the processor of who spins there */
static void ender_begin(struct kunit *test, struct ender *e)
{
	struct task_struct *task;

	init_completion(&e->done);
	task = kthread_create(ender_thread, e, "sroce_ender");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	run_here(task);
}

static bool ender_waits(struct ender *e)
{
	return !wait_for_completion_timeout(&e->done, HZ / 10);
}

static bool ender_ends(struct ender *e)
{
	return wait_for_completion_timeout(&e->done, 30 * HZ);
}

static void free_waits(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 8);
	struct memory_world *w = test->priv;
	struct copier copier = { .times = 3 };
	struct ender e = { .mr = mr };
	u32 key = mr->key;

	copier_begin(test, &copier, key);
	ender_begin(test, &e);
	KUNIT_EXPECT_TRUE(test, ender_waits(&e));
	KUNIT_EXPECT_PTR_EQ(test, mr, copier.mr);
	KUNIT_EXPECT_EQ(test, -EINVAL, check_key(test, key, &w->pd.ibpd, 0, 0, 8));
	/* the user is in nobody's count */
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&mr->users));
	copier_end(&copier);
	KUNIT_EXPECT_TRUE(test, ender_ends(&e));
}

/* Other regions are nobody's matter, nor is who was refused, once he has let go */
static void free_does_not_wait(struct kunit *test)
{
	struct sroce_mr *used = new_user_mr(test, 0, 0, 0, 8);
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 8);
	struct memory_world *w = test->priv;
	struct ender e = { .mr = mr };
	struct copier copier = {};

	copier_begin(test, &copier, used->key);
	KUNIT_EXPECT_EQ(test, -EACCES, check_key(test, mr->key, &w->pd.ibpd,
						 IB_ACCESS_REMOTE_READ, 0, 8));
	ender_begin(test, &e);
	KUNIT_EXPECT_TRUE(test, ender_ends(&e));
	copier_end(&copier);
	KUNIT_EXPECT_PTR_EQ(test, used, copier.mr);
}

/* What has become of a use that lasts longer */
static void free_waits_for_holder(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 8);
	struct copier copier = { .hold = true };
	struct ender e = { .mr = mr };

	copier_begin(test, &copier, mr->key);
	ender_begin(test, &e);
	KUNIT_EXPECT_TRUE(test, ender_waits(&e));
	copier_end(&copier);
	KUNIT_EXPECT_TRUE(test, ender_waits(&e));
	KUNIT_EXPECT_TRUE(test, READ_ONCE(mr->recalled));
	sroce_mr_put(mr);
	KUNIT_EXPECT_TRUE(test, ender_ends(&e));
}

/* The key means the heir at once, but the old region is not given up */
static void replace_waits(struct kunit *test)
{
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 8);
	struct memory_world *w = test->priv;
	struct ender e = { .mr = mr };
	struct copier copier = {};

	e.heir = sroce_mr_alloc_heir(mr, &w->pd.ibpd, SROCE_MR_USER, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, e.heir);
	e.heir->length = 16;
	copier_begin(test, &copier, mr->key);
	ender_begin(test, &e);
	KUNIT_EXPECT_TRUE(test, ender_waits(&e));
	KUNIT_EXPECT_EQ(test, 0, check_key(test, mr->key, &w->pd.ibpd, 0, 0, 16));
	copier_end(&copier);
	KUNIT_EXPECT_PTR_EQ(test, mr, copier.mr);
	KUNIT_EXPECT_TRUE(test, ender_ends(&e));
	sroce_mr_free(mr);
}

/* Regions that are invalidated are counted: sroce_mr_quiet() knows at once */
static void counted_is_not_quiet(struct kunit *test)
{
	struct sroce_mr *mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 8);
	struct memory_world *w = test->priv;
	struct copier copier = { .times = 2 };

	KUNIT_ASSERT_EQ(test, 0, sroce_mr_register(mr, &w->pd.ibpd, mr->key, 0));
	copier_begin(test, &copier, mr->key);
	KUNIT_EXPECT_PTR_EQ(test, mr, copier.mr);
	KUNIT_EXPECT_EQ(test, 3, refcount_read(&mr->users));
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_invalidate(&w->table, mr->key, &w->pd.ibpd, &w->qp,
						     false));
	KUNIT_EXPECT_FALSE(test, sroce_mr_quiet(&w->table, mr->key, mr->ibmr.pd));
	copier_end(&copier);
	KUNIT_EXPECT_TRUE(test, sroce_mr_quiet(&w->table, mr->key, mr->ibmr.pd));
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&mr->users));
}

/* Nobody has ever been let use it: whoever was refused is not waited for */
static void unpublished_does_not_wait(struct kunit *test)
{
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, 0, 0, 8);
	struct ender e = { .mr = mr };
	struct copier copier = {};

	copier_begin(test, &copier, mr->key);
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(copier.mr));
	ender_begin(test, &e);
	KUNIT_EXPECT_TRUE(test, ender_ends(&e));
	copier_end(&copier);
}

/* As many as a work request has elements; at the end no name is left */
static void table_is_full(struct kunit *test)
{
	const u32 key = new_user_mr(test, 0, 0, 0, 8)->key;
	struct memory_world *w = test->priv;
	struct sroce_mr_uses *u;
	int i, used = 0, left = 0;
	struct sroce_mr *more;

	local_bh_disable();
	u = sroce_mr_uses_begin();
	for (i = 0; i < SROCE_MR_USES; i++)
		used += !IS_ERR(sroce_mr_use(u, &w->table, key, &w->pd.ibpd, 0, 0, 8));
	more = sroce_mr_use(u, &w->table, key, &w->pd.ibpd, 0, 0, 8);
	sroce_mr_uses_end(u);
	for (i = 0; i < SROCE_MR_USES; i++)
		left += !!u->mr[i];
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, SROCE_MR_USES, used);
	KUNIT_EXPECT_EQ(test, -ENOSPC, PTR_ERR_OR_ZERO(more));
	KUNIT_EXPECT_EQ(test, 0, left);
}

/* Whoever ends a region need not look farther, and must not look less far */
static void table_has_a_mark(struct kunit *test)
{
	const u32 key = new_user_mr(test, 0, 0, 0, 8)->key;
	struct memory_world *w = test->priv;
	unsigned int i, before, mark[3];
	struct sroce_mr_uses *u;

	local_bh_disable();
	u = sroce_mr_uses_begin();
	before = u->used;
	/* there is no name in it, so that nobody misses one */
	u->used = 0;
	for (i = 0; i < ARRAY_SIZE(mark); i++) {
		sroce_mr_use(u, &w->table, key, &w->pd.ibpd, 0, 0, 8);
		mark[i] = u->used;
	}
	sroce_mr_uses_end(u);
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(mark), u->used);
	u->used = max(before, u->used);
	local_bh_enable();
	for (i = 0; i < ARRAY_SIZE(mark); i++)
		KUNIT_EXPECT_EQ(test, i + 1, mark[i]);
}

/* --- many at once ------------------------------------------------------------------------- */

#define RACE_USERS 2
#define RACE_ROUNDS 300

/**
 * struct race - who writes while regions come and go
 * @w: world
 * @key: of the region that there is, or was
 * @stop: the end
 * @users: number of those who have begun
 * @hits: so often each of them had the region
 * @wrong: so often its memory was not there
 */
struct race {
	struct memory_world *w;
	u32 key;
	bool stop;
	atomic_t users;
	atomic_t hits[RACE_USERS];
	atomic_t wrong;
};

static void race_use(struct race *r, struct sroce_mr_uses *u, int i)
{
	struct bio_vec bv;
	struct sroce_mr *mr;
	u32 done;

	mr = sroce_mr_use(u, &r->w->table, READ_ONCE(r->key), &r->w->pd.ibpd, 0, 0x1000, 64);
	if (IS_ERR(mr))
		return;
	if (sroce_mr_bvecs(mr, 0x1000, 64, &bv, 1, &done) == 1 && done == 64)
		memset(bvec_virt(&bv), 0xff, 64);
	else
		atomic_inc(&r->wrong);
	atomic_inc(&r->hits[i]);
}

static int race_thread(void *arg)
{
	struct race *r = arg;
	int i = atomic_inc_return(&r->users) - 1;
	struct sroce_mr_uses *u;

	while (!READ_ONCE(r->stop)) {
		cond_resched();
		local_bh_disable();
		u = sroce_mr_uses_begin();
		race_use(r, u, i);
		sroce_mr_uses_end(u);
		local_bh_enable();
	}
	return 0;
}

/* Its memory is its owner's again: nobody writes to it any more */
static void race_expect_alone(struct kunit *test, struct page *page, int i)
{
	void *p = page_address(page);

	memset(p, i % 255, 64);
	if (i % 3)
		usleep_range(10, 50);
	KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(p, i % 255, 64));
}

static void race_round(struct kunit *test, struct race *r, int i)
{
	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 0, 64), *heir;
	struct memory_world *w = test->priv;

	WRITE_ONCE(r->key, mr->key);
	if (i % 4)
		usleep_range(10, 100);
	if (i & 1) {
		heir = sroce_mr_alloc_heir(mr, &w->pd.ibpd, SROCE_MR_USER, 1);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, heir);
		heir->blocks[0] = page_address(w->pages[1]);
		heir->nr_blocks = 1;
		heir->iova = 0x1000;
		heir->length = 64;
		sroce_mr_replace(mr, heir);
		race_expect_alone(test, w->pages[0], i);
		sroce_mr_free(mr);
		mr = heir;
	}
	sroce_mr_free(mr);
	race_expect_alone(test, w->pages[i & 1], i);
}

static void users_race(struct kunit *test)
{
	struct task_struct *task[RACE_USERS];
	struct race r = { .w = test->priv };
	int i;

	for (i = 0; i < RACE_USERS; i++) {
		task[i] = kthread_create(race_thread, &r, "sroce_race");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task[i]));
		get_task_struct(task[i]);
		wake_up_process(task[i]);
	}
	for (i = 0; i < RACE_ROUNDS; i++)
		race_round(test, &r, i);
	WRITE_ONCE(r.stop, true);
	for (i = 0; i < RACE_USERS; i++) {
		kthread_stop_put(task[i]);
		KUNIT_EXPECT_GT(test, atomic_read(&r.hits[i]), 0);
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r.wrong));
}

static struct kunit_case users_cases[] = {
	KUNIT_CASE(free_waits),
	KUNIT_CASE(free_does_not_wait),
	KUNIT_CASE(free_waits_for_holder),
	KUNIT_CASE(replace_waits),
	KUNIT_CASE(counted_is_not_quiet),
	KUNIT_CASE(unpublished_does_not_wait),
	KUNIT_CASE(table_is_full),
	KUNIT_CASE(table_has_a_mark),
	KUNIT_CASE(users_race),
	{}
};

static struct kunit_suite users_suite = {
	.name = "sroce_memory_users",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = users_cases,
};

kunit_test_suite(users_suite);
