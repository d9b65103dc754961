// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows, their regions and QPs: each may go before the others, at any
 * moment, and what its end costs depends on what it has and not on what others have.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "memory/internal.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/users.h"
#include "tests/memory_world.h"

#define REGION_IOVA 0x12345000
#define REGION_PAGES 2

static struct sroce_mr *make_region(struct memory_world *w)
{
	struct sroce_mr *mr = sroce_mr_alloc(&w->table, &w->pd.ibpd, SROCE_MR_USER,
					     REGION_PAGES);
	int i;

	if (IS_ERR(mr))
		return NULL;
	for (i = 0; i < REGION_PAGES; i++)
		mr->blocks[i] = page_address(w->pages[i]);
	mr->nr_blocks = REGION_PAGES;
	mr->iova = REGION_IOVA;
	mr->length = REGION_PAGES * PAGE_SIZE;
	mr->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND;
	sroce_mr_publish(mr);
	return mr;
}

static struct sroce_mr *new_region(struct kunit *test)
{
	struct sroce_mr *mr = make_region(test->priv);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	return mr;
}

/* By their keys, as a work request does it */
static int bind_keys(struct memory_world *w, u32 window, u32 region,
		     struct sroce_mw_list *qp)
{
	struct sroce_mw_bind b = {
		.key = window,
		.new_key = window,
		.lkey = region,
		.addr = REGION_IOVA + 100,
		.length = 4000,
		.access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		.pd = &w->pd.ibpd,
		.owner = qp,
	};
	int err;

	local_bh_disable();
	err = sroce_mw_bind(&w->table, &b);
	local_bh_enable();
	return err;
}

static int bind(struct kunit *test, const struct sroce_mr *mw,
		const struct sroce_mr *mr, struct sroce_mw_list *qp)
{
	return bind_keys(test->priv, mw->key, mr->key, qp);
}

static int invalidate(struct kunit *test, const struct sroce_mr *mw,
		      const struct sroce_mw_list *qp)
{
	struct memory_world *w = test->priv;

	return sroce_mr_invalidate(&w->table, mw->key, &w->pd.ibpd, qp, false);
}

static void expect_windows(struct kunit *test, const struct sroce_mr *mr, int n)
{
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), n);
	KUNIT_EXPECT_EQ(test, list_count_nodes((struct list_head *)&mr->bound.list),
			n);
}

static void expect_owned(struct kunit *test, struct sroce_mw_list *qp, int n)
{
	KUNIT_EXPECT_EQ(test, list_count_nodes(&qp->list), n);
}

/* --- what an end looks at ------------------------------------------------------- */

static void out_of_table(struct kunit *test, const struct sroce_mr *mr)
{
	struct memory_world *w = test->priv;

	KUNIT_ASSERT_PTR_EQ(test, xa_erase(&w->table.xa,
					   mr->key >> SROCE_KEY_INDEX_SHIFT), mr);
}

/*
 * A stranger's window that says it belongs to the QP and the region, but is in the
 * table of keys only: whoever walks that takes it for theirs. The windows of the QP
 * and the region are not in the table any more: whoever walks that misses them.
 */
static void ends_look_at_their_own(struct kunit *test)
{
	struct sroce_mr *mr = new_region(test);
	struct sroce_mr *stranger = new_window(test, true);
	struct sroce_mr *mw[3];
	struct sroce_mw_list qp;
	int i;

	sroce_mw_list_init(&qp);
	for (i = 0; i < ARRAY_SIZE(mw); i++) {
		mw[i] = new_window(test, true);
		KUNIT_ASSERT_EQ(test, bind(test, mw[i], mr, &qp), 0);
		out_of_table(test, mw[i]);
	}
	stranger->owner = &qp;
	sroce_mr_publish(stranger);
	sroce_mw_disown(&qp);
	KUNIT_EXPECT_TRUE(test, stranger->valid);
	KUNIT_EXPECT_PTR_EQ(test, stranger->owner, &qp);
	for (i = 0; i < ARRAY_SIZE(mw); i++)
		KUNIT_EXPECT_FALSE(test, mw[i]->valid);
	expect_owned(test, &qp, 0);

	stranger->owner = NULL;
	stranger->valid = false;
	stranger->parent = mr;
	expect_windows(test, mr, ARRAY_SIZE(mw));
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(mr));
	KUNIT_EXPECT_PTR_EQ(test, stranger->parent, mr);
	KUNIT_EXPECT_TRUE(test, list_empty(&mr->bound.list));

	stranger->parent = NULL;
	sroce_mr_free(stranger);
	for (i = 0; i < ARRAY_SIZE(mw); i++)
		sroce_mr_free(mw[i]);
	sroce_mr_free(mr);
}

/* --- who goes first --------------------------------------------------------------- */

static void windows_change_hands(struct kunit *test)
{
	struct sroce_mr *mr[2] = { new_region(test), new_region(test) };
	struct sroce_mr *two = new_window(test, true);
	struct sroce_mr *one = new_window(test, false);
	struct sroce_mw_list qp[2];

	sroce_mw_list_init(&qp[0]);
	sroce_mw_list_init(&qp[1]);
	KUNIT_EXPECT_EQ(test, bind(test, one, mr[0], &qp[0]), 0);
	KUNIT_EXPECT_EQ(test, bind(test, two, mr[0], &qp[0]), 0);
	expect_windows(test, mr[0], 2);
	expect_owned(test, &qp[0], 1);
	/* from one QP and region to another */
	KUNIT_EXPECT_EQ(test, bind(test, one, mr[1], &qp[1]), 0);
	KUNIT_EXPECT_EQ(test, invalidate(test, two, &qp[0]), 0);
	KUNIT_EXPECT_EQ(test, bind(test, two, mr[1], &qp[1]), 0);
	expect_windows(test, mr[0], 0);
	expect_windows(test, mr[1], 2);
	expect_owned(test, &qp[0], 0);
	expect_owned(test, &qp[1], 1);
	/* the QP goes, which has nothing, then the one which has */
	sroce_mw_disown(&qp[0]);
	KUNIT_EXPECT_TRUE(test, two->valid);
	sroce_mw_disown(&qp[1]);
	KUNIT_EXPECT_FALSE(test, two->valid);
	KUNIT_EXPECT_TRUE(test, one->valid);
	expect_owned(test, &qp[1], 0);
	expect_windows(test, mr[1], 2);
	/* a window of type 1 is in its region's way, whatever became of the QP */
	KUNIT_EXPECT_FALSE(test, sroce_mr_seal(mr[1]));
	sroce_mr_free(one);
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(mr[1]));
	sroce_mr_free(mr[1]);
	/* the window goes first */
	KUNIT_EXPECT_EQ(test, bind(test, two, mr[0], &qp[0]), 0);
	expect_owned(test, &qp[0], 1);
	sroce_mr_free(two);
	expect_owned(test, &qp[0], 0);
	expect_windows(test, mr[0], 0);
	KUNIT_EXPECT_TRUE(test, sroce_mr_seal(mr[0]));
	sroce_mr_free(mr[0]);
}

/**
 * struct job - what another thread does
 * @fn: does it
 * @arg: for @fn
 * @task: thread
 * @done: @fn has returned
 */
struct job {
	int (*fn)(void *arg);
	void *arg;
	struct task_struct *task;
	struct completion done;
};

static int job_thread(void *arg)
{
	struct job *job = arg;
	int ret = job->fn(job->arg);

	complete(&job->done);
	return ret;
}

static void job_begin(struct kunit *test, struct job *job, int (*fn)(void *arg),
		      void *arg)
{
	job->fn = fn;
	job->arg = arg;
	init_completion(&job->done);
	job->task = kthread_create(job_thread, job, "sroce_window");
	KUNIT_ASSERT_FALSE(test, IS_ERR(job->task));
	get_task_struct(job->task);
	wake_up_process(job->task);
}

/* A thread that is stopped before it has begun does nothing: so wait first */
static int job_end(struct job *job)
{
	wait_for_completion(&job->done);
	return kthread_stop_put(job->task);
}

static int free_window(void *mw)
{
	sroce_mr_free(mw);
	return 0;
}

static int seal_region(void *mr)
{
	return sroce_mr_seal(mr);
}

/*
 * A window that is being freed while somebody copies with its key: its QP does not
 * wait for that, its region does.
 */
static void window_goes_in_use(struct kunit *test)
{
	struct sroce_mr *mr = new_region(test);
	struct sroce_mr *mw = new_window(test, true);
	struct memory_world *w = test->priv;
	struct job freer, sealer;
	struct sroce_mw_list qp;
	struct sroce_mr *held;
	u32 key = mw->key;

	sroce_mw_list_init(&qp);
	KUNIT_ASSERT_EQ(test, bind(test, mw, mr, &qp), 0);
	held = sroce_mr_find(&w->table, key, mw->ibmr.pd);
	KUNIT_ASSERT_PTR_EQ(test, held, mw);
	job_begin(test, &freer, free_window, mw);
	while (xa_load(&w->table.xa, key >> SROCE_KEY_INDEX_SHIFT))
		usleep_range(1000, 2000);
	expect_owned(test, &qp, 1);
	sroce_mw_disown(&qp);
	expect_owned(test, &qp, 0);
	memset(&qp, 0x5a, sizeof(qp));
	job_begin(test, &sealer, seal_region, mr);
	msleep(20);
	/* the region is still used through the window */
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
	sroce_mr_put(held);
	KUNIT_EXPECT_EQ(test, job_end(&freer), 0);
	KUNIT_EXPECT_EQ(test, job_end(&sealer), true);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), -1);
	sroce_mr_free(mr);
}

/* --- all at once ------------------------------------------------------------------ */

#define RACE_TURNS 1000
#define RACE_WINDOWS 4
#define RACE_REGIONS 2

/**
 * struct race - everybody at the same few windows, regions and QPs
 * @w: keys
 * @lock: as that of a requester: who binds holds it, and sees the QP alive
 * @qp: what the QP of the moment has bound; NULL at the end
 * @window: keys, of which those with an even index are of type 2
 * @region: keys
 */
struct race {
	struct memory_world *w;
	spinlock_t lock; /* see above */
	struct sroce_mw_list *qp;
	u32 window[RACE_WINDOWS];
	u32 region[RACE_REGIONS];
};

static int race_bind(void *arg)
{
	struct race *r = arg;
	u32 i, window;

	for (i = 0; i < 4 * RACE_TURNS; i++) {
		window = READ_ONCE(r->window[i % RACE_WINDOWS]);
		spin_lock_bh(&r->lock);
		if (r->qp)
			bind_keys(r->w, window, READ_ONCE(r->region[i / 3 % 2]),
				  r->qp);
		if (r->qp && i % 5)
			sroce_mr_invalidate(&r->w->table, window, &r->w->pd.ibpd,
					    r->qp, false);
		spin_unlock_bh(&r->lock);
		cond_resched();
	}
	return 0;
}

/* Copies with the keys */
static int race_use(void *arg)
{
	struct race *r = arg;
	struct sroce_mr_uses *u;
	struct sroce_mr *mr;
	u64 old;
	u32 i;

	for (i = 0; i < 4 * RACE_TURNS; i++) {
		local_bh_disable();
		u = sroce_mr_uses_begin();
		mr = sroce_mr_use(u, &r->w->table,
				  READ_ONCE(r->window[i % RACE_WINDOWS]),
				  &r->w->pd.ibpd, IB_ACCESS_REMOTE_READ,
				  REGION_IOVA + 100, 8);
		if (!IS_ERR(mr) && sroce_mr_serves(mr, READ_ONCE(r->qp)))
			sroce_mr_atomic(mr, REGION_IOVA + 104, false, 0, 1, &old);
		sroce_mr_uses_end(u);
		local_bh_enable();
		cond_resched();
	}
	return 0;
}

/* The QP is destroyed, and another one comes */
static int race_destroy(void *arg)
{
	struct race *r = arg;
	struct sroce_mw_list *next, *old;
	u32 i;

	for (i = 0; i < RACE_TURNS; i++) {
		next = kzalloc_obj(*next, GFP_KERNEL);
		if (!next)
			return -ENOMEM;
		sroce_mw_list_init(next);
		spin_lock_bh(&r->lock);
		old = r->qp;
		r->qp = next;
		spin_unlock_bh(&r->lock);
		sroce_mw_disown(old);
		memset(old, 0x5a, sizeof(*old));
		kfree(old);
		cond_resched();
	}
	return 0;
}

/* Windows are freed, and others come */
static int race_free(void *arg)
{
	struct race *r = arg;
	struct sroce_mr *mw;
	u32 i, n;

	for (i = 0; i < RACE_TURNS; i++) {
		n = i % RACE_WINDOWS;
		mw = xa_load(&r->w->table.xa, r->window[n] >> SROCE_KEY_INDEX_SHIFT);
		sroce_mr_free(mw);
		mw = sroce_mw_alloc(&r->w->table, &r->w->pd.ibpd, !(n & 1));
		if (IS_ERR(mw))
			return PTR_ERR(mw);
		WRITE_ONCE(r->window[n], mw->key);
		cond_resched();
	}
	return 0;
}

/* Regions are freed if nothing is bound to them, and others come */
static int race_seal(void *arg)
{
	struct race *r = arg;
	struct sroce_mr *mr;
	u32 i, n;

	for (i = 0; i < RACE_TURNS; i++) {
		n = i % RACE_REGIONS;
		mr = xa_load(&r->w->table.xa, r->region[n] >> SROCE_KEY_INDEX_SHIFT);
		if (!sroce_mr_seal(mr))
			continue;
		sroce_mr_free(mr);
		mr = make_region(r->w);
		if (!mr)
			return -ENOMEM;
		WRITE_ONCE(r->region[n], mr->key);
		cond_resched();
	}
	return 0;
}

static void race_begin(struct kunit *test, struct race *r)
{
	int i;

	r->w = test->priv;
	spin_lock_init(&r->lock);
	r->qp = kzalloc_obj(*r->qp, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->qp);
	sroce_mw_list_init(r->qp);
	for (i = 0; i < RACE_WINDOWS; i++)
		r->window[i] = new_window(test, !(i & 1))->key;
	for (i = 0; i < RACE_REGIONS; i++)
		r->region[i] = new_region(test)->key;
}

/* Nothing is left of what went */
static void race_end(struct kunit *test, struct race *r)
{
	struct sroce_mr *mr;
	int i;

	for (i = 0; i < RACE_WINDOWS; i++)
		sroce_mr_free(xa_load(&r->w->table.xa,
				      r->window[i] >> SROCE_KEY_INDEX_SHIFT));
	expect_owned(test, r->qp, 0);
	kfree(r->qp);
	for (i = 0; i < RACE_REGIONS; i++) {
		mr = xa_load(&r->w->table.xa, r->region[i] >> SROCE_KEY_INDEX_SHIFT);
		expect_windows(test, mr, 0);
		sroce_mr_free(mr);
	}
}

static void ends_race(struct kunit *test)
{
	static int (*const threads[])(void *arg) = {
		race_bind, race_bind, race_use, race_destroy, race_free, race_seal,
	};
	struct race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct job jobs[ARRAY_SIZE(threads)];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	race_begin(test, r);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		job_begin(test, &jobs[i], threads[i], r);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		KUNIT_EXPECT_EQ(test, job_end(&jobs[i]), 0);
	race_end(test, r);
}

static struct kunit_case window_cases[] = {
	KUNIT_CASE(ends_look_at_their_own),
	KUNIT_CASE(windows_change_hands),
	KUNIT_CASE(window_goes_in_use),
	KUNIT_CASE(ends_race),
	{}
};

static struct kunit_suite window_suite = {
	.name = "sroce_window",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = window_cases,
};

kunit_test_suite(window_suite);
