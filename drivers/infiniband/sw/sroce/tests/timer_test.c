// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Timers: when they are called, what a later time and a deletion leave behind, and that a
 * turn ends while many have expired.
 */
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/prandom.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "timer.h"
#include "turn.h"

#define MANY 256

/* So long a timer is waited for on a busy machine */
#define PATIENCE_MS 20000

/**
 * struct bell - a timer, and what became of it
 * @timer: it
 * @at: what it was set to last
 * @calls: of its function
 * @early: calls before @at
 * @place: its place among all calls, the last time
 * @again: so often it sets itself again
 * @slow: ms that its function takes
 * @spends: bytes that its function does
 * @late: ns after @at, the last time
 * @begun: its function has
 * @ended: likewise
 */
struct bell {
	struct sroce_timer timer;
	u64 at;
	u32 calls;
	u32 early;
	u32 place;
	u32 again;
	u32 slow;
	u32 spends;
	u64 late;
	bool begun;
	bool ended;
};

static struct sroce_turn_limits limits;
static atomic_t places;

/* The most that a turn had spent when a function was called */
static unsigned long most_spent;

static int timer_init(struct kunit *test)
{
	limits = sroce_turn_limits;
	sroce_turn_limits.bytes = SZ_256M;
	sroce_turn_limits.ns = U64_MAX;
	atomic_set(&places, 0);
	most_spent = 0;
	return 0;
}

static void timer_exit(struct kunit *test)
{
	sroce_turn_limits = limits;
}

static void set(struct bell *a, u64 at)
{
	WRITE_ONCE(a->at, at);
	sroce_timer_start(&a->timer, at);
}

static void set_in(struct bell *a, u32 us)
{
	set(a, ktime_get_ns() + us * NSEC_PER_USEC);
}

static void rings(struct sroce_timer *t)
{
	struct bell *a = container_of(t, struct bell, timer);

	WRITE_ONCE(a->begun, true);
	a->late = ktime_get_ns() - READ_ONCE(a->at);
	a->early += (s64)a->late < 0;
	a->place = atomic_inc_return(&places);
	most_spent = max(most_spent, sroce_turn_spent());
	mdelay(a->slow);
	sroce_turn_spend(a->spends);
	if (a->again) {
		a->again--;
		set_in(a, 100);
	}
	WRITE_ONCE(a->ended, true);
	/* Pairs with rang() */
	smp_store_release(&a->calls, a->calls + 1);
}

static struct bell *bells(struct kunit *test, u32 n)
{
	struct bell *a = kunit_kcalloc(test, n, sizeof(*a), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	for (i = 0; i < n; i++)
		sroce_timer_init(&a[i].timer, rings);
	return a;
}

/* Wait for so many calls */
static bool rang(struct bell *a, u32 calls)
{
	u32 ms;

	/* Pairs with rings() */
	for (ms = 0; ms < PATIENCE_MS && smp_load_acquire(&a->calls) < calls; ms++)
		usleep_range(1000, 1500);
	return a->calls >= calls;
}

static void ends(struct bell *a, u32 n)
{
	while (n--)
		sroce_timer_delete_sync(&a[n].timer);
}

/* Let all of a queue that has expired by now be called */
static void let_pass(struct kunit *test)
{
	struct bell *last = bells(test, 1);

	set_in(last, 0);
	KUNIT_EXPECT_TRUE(test, rang(last, 1));
	ends(last, 1);
}

/* --- time -------------------------------------------------------------------------- */

static void in_order(struct kunit *test)
{
	static const u32 ms[] = { 8, 2, 6, 4, 2, 0 };
	static const u32 places_of[] = { 6, 2, 5, 4, 3, 1 };
	struct bell *a = bells(test, ARRAY_SIZE(ms));
	u64 now;
	u32 i;

	local_bh_disable();
	now = ktime_get_ns() + NSEC_PER_MSEC;
	for (i = 0; i < ARRAY_SIZE(ms); i++)
		set(&a[i], now + ms[i] * NSEC_PER_MSEC);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, rang(&a[0], 1));
	for (i = 0; i < ARRAY_SIZE(ms); i++) {
		KUNIT_EXPECT_EQ(test, 1, a[i].calls);
		KUNIT_EXPECT_EQ(test, 0, a[i].early);
		KUNIT_EXPECT_EQ(test, places_of[i], a[i].place);
		KUNIT_EXPECT_FALSE(test, sroce_timer_is_set(&a[i].timer));
	}
	ends(a, ARRAY_SIZE(ms));
}

/* What has slack comes with others, or at its end */
static void with_slack(struct kunit *test)
{
	struct bell *a = bells(test, 2);
	u64 now;

	local_bh_disable();
	now = ktime_get_ns();
	set(&a[1], now + 20 * NSEC_PER_MSEC);
	a[0].at = now + 5 * NSEC_PER_MSEC;
	sroce_timer_start_range(&a[0].timer, a[0].at, 30 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, sroce_timer_latest(&a[0].timer), a[0].at + 30 * NSEC_PER_MSEC);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, rang(&a[1], 1));
	KUNIT_EXPECT_TRUE(test, rang(&a[0], 1));
	KUNIT_EXPECT_EQ(test, 2, a[0].place);
	KUNIT_EXPECT_EQ(test, 0, a[0].early + a[1].early);
	ends(a, 2);
}

/* Its place in the tree stays; it does not expire there */
static void later(struct kunit *test)
{
	struct bell *a = bells(test, 1);
	u64 key;

	local_bh_disable();
	set_in(a, 2000);
	key = a->timer.key;
	set_in(a, 30000);
	KUNIT_EXPECT_EQ(test, key, a->timer.key);
	set_in(a, 10000);
	KUNIT_EXPECT_EQ(test, key, a->timer.key);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, rang(a, 1));
	KUNIT_EXPECT_EQ(test, 0, a->early);
	let_pass(test);
	KUNIT_EXPECT_EQ(test, 1, a->calls);
	ends(a, 1);
}

static void sooner(struct kunit *test)
{
	struct bell *a = bells(test, 1);

	set(a, ktime_get_ns() + 3600 * NSEC_PER_SEC);
	set_in(a, 1000);
	KUNIT_EXPECT_TRUE(test, rang(a, 1));
	KUNIT_EXPECT_EQ(test, 0, a->early);
	ends(a, 1);
}

static void again(struct kunit *test)
{
	struct bell *a = bells(test, 1);

	a->again = 50;
	set(a, 0);
	KUNIT_EXPECT_TRUE(test, rang(a, 51));
	KUNIT_EXPECT_EQ(test, 0, a->early);
	ends(a, 1);
	KUNIT_EXPECT_EQ(test, 51, a->calls);
}

/* --- the end ------------------------------------------------------------------------ */

static void never_set(struct kunit *test)
{
	struct bell *a = bells(test, 1);

	KUNIT_EXPECT_FALSE(test, sroce_timer_is_set(&a->timer));
	sroce_timer_delete(&a->timer);
	ends(a, 1);
	KUNIT_EXPECT_EQ(test, 0, a->calls);
}

/* It stays in the tree, from which its time takes it; and may be set meanwhile */
static void deleted(struct kunit *test)
{
	struct bell *a = bells(test, 3);

	local_bh_disable();
	set_in(&a[0], 1000);
	set_in(&a[1], 1000);
	set_in(&a[2], 2000);
	sroce_timer_delete(&a[0].timer);
	sroce_timer_delete(&a[1].timer);
	KUNIT_EXPECT_FALSE(test, sroce_timer_is_set(&a[0].timer));
	KUNIT_EXPECT_TRUE(test, a[0].timer.queued);
	set_in(&a[1], 1500);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, rang(&a[2], 1));
	KUNIT_EXPECT_EQ(test, 0, a[0].calls);
	KUNIT_EXPECT_FALSE(test, a[0].timer.queued);
	KUNIT_EXPECT_TRUE(test, rang(&a[1], 1));
	KUNIT_EXPECT_EQ(test, 0, a[1].early);
	ends(a, 3);
}

/* Nothing of it is left behind, whether it was going to be called or not */
static void deleted_for_good(struct kunit *test)
{
	struct bell *a = bells(test, 2);

	set_in(&a[0], 5000);
	set_in(&a[1], 5000);
	sroce_timer_delete(&a[1].timer);
	ends(a, 2);
	KUNIT_EXPECT_FALSE(test, a[0].timer.queued);
	KUNIT_EXPECT_FALSE(test, a[1].timer.queued);
	usleep_range(6000, 8000);
	let_pass(test);
	KUNIT_EXPECT_EQ(test, 0, a[0].calls + a[1].calls);
}

/* Whoever deletes it for good waits for its function, which sets it once more */
static void deleted_while_it_rings(struct kunit *test)
{
	struct bell *a = bells(test, 1);
	u32 ms;

	a->slow = 10;
	a->again = 1;
	set_in(a, 100);
	for (ms = 0; ms < PATIENCE_MS && !READ_ONCE(a->begun); ms++)
		usleep_range(500, 1000);
	KUNIT_ASSERT_TRUE(test, READ_ONCE(a->begun));
	ends(a, 1);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(a->ended));
	KUNIT_EXPECT_FALSE(test, a->timer.queued);
	a->calls = 0;
	usleep_range(1000, 2000);
	let_pass(test);
	KUNIT_EXPECT_EQ(test, 0, a->calls);
}

static atomic_t freed;

static void rings_and_goes(struct sroce_timer *t)
{
	kfree(container_of(t, struct bell, timer));
	atomic_inc(&freed);
}

static void freed_while_it_rings(struct kunit *test)
{
	struct bell *a;
	u32 i;

	atomic_set(&freed, 0);
	for (i = 0; i < 16; i++) {
		a = kzalloc_obj(*a, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, a);
		sroce_timer_init(&a->timer, rings_and_goes);
		set_in(a, 500);
	}
	for (i = 0; i < PATIENCE_MS && atomic_read(&freed) < 16; i++)
		usleep_range(1000, 1500);
	KUNIT_EXPECT_EQ(test, 16, atomic_read(&freed));
}

/* --- CPUs --------------------------------------------------------------------------- */

static int set_here(void *arg)
{
	set_in(arg, 2000);
	return 0;
}

/* What is set on another CPU to an earlier time goes there, and is called once */
static void from_other_cpus(struct kunit *test)
{
	struct bell *a = bells(test, 1);
	struct sroce_timer_queue *last = NULL;
	unsigned int cpu;
	u32 n = 0;

	for_each_online_cpu(cpu) {
		set(a, ktime_get_ns() + 3600 * NSEC_PER_SEC);
		KUNIT_ASSERT_EQ(test, 0, smp_call_on_cpu(cpu, set_here, a, false));
		KUNIT_EXPECT_PTR_NE(test, last, a->timer.queue);
		last = a->timer.queue;
		KUNIT_EXPECT_TRUE(test, rang(a, ++n));
		ends(a, 1);
		KUNIT_EXPECT_EQ(test, n, a->calls);
	}
	KUNIT_EXPECT_EQ(test, 0, a->early);
}

/**
 * struct crowd - timers that several tasks set and delete
 * @lock: keeps them apart, as a queue pair's lock does
 * @bell: they
 * @ends_at: of the tasks, in ns
 */
struct crowd {
	spinlock_t lock; /* see above */
	struct bell *bell;
	u64 ends_at;
};

static int change_often(void *arg)
{
	struct crowd *c = arg;
	struct rnd_state rnd;
	struct bell *a;
	u32 what;

	prandom_seed_state(&rnd, (unsigned long)current);
	while (ktime_get_ns() < c->ends_at) {
		what = prandom_u32_state(&rnd);
		a = &c->bell[what % 8];
		spin_lock_bh(&c->lock);
		if (what & 0x100)
			set_in(a, what >> 9 & 0xff);
		else
			sroce_timer_delete(&a->timer);
		spin_unlock_bh(&c->lock);
		cond_resched();
	}
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

/* What was set last is called, or it was deleted */
static bool comes_to_rest(const struct bell *b)
{
	u32 ms;

	for (ms = 0; ms < PATIENCE_MS && READ_ONCE(b->timer.at) != SROCE_TIMER_NEVER; ms++)
		usleep_range(1000, 1500);
	return READ_ONCE(b->timer.at) == SROCE_TIMER_NEVER;
}

/* However often they are set, by whom and where, none is to be forgotten in the end */
static void change_by_many(struct kunit *test)
{
	struct crowd c = { .ends_at = ktime_get_ns() + 300 * NSEC_PER_MSEC };
	struct task_struct *task[3];
	u32 i, calls;

	spin_lock_init(&c.lock);
	c.bell = bells(test, 8);
	for (i = 0; i < ARRAY_SIZE(task); i++) {
		task[i] = kthread_run(change_often, &c, "sroce_timer_test");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task[i]));
	}
	msleep(300);
	for (i = 0; i < ARRAY_SIZE(task); i++)
		kthread_stop(task[i]);
	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_TRUE(test, comes_to_rest(&c.bell[i]));
		sroce_timer_delete_sync(&c.bell[i].timer);
		calls = READ_ONCE(c.bell[i].calls);
		set_in(&c.bell[i], 1000);
		KUNIT_EXPECT_TRUE(test, rang(&c.bell[i], calls + 1));
	}
	ends(c.bell, 8);
}

static void none_is_forgotten(struct kunit *test)
{
	change_by_many(test);
}

/* Also when most turns end before all that has expired was called */
static void none_is_left_behind(struct kunit *test)
{
	sroce_turn_limits.bytes = SZ_4K;
	change_by_many(test);
}

/* --- many --------------------------------------------------------------------------- */

/* Others run when the turn is over, and the rest is called in its order */
static void turn_ends(struct kunit *test)
{
	struct bell *a = bells(test, MANY);
	u64 at;
	u32 i;

	sroce_turn_limits.bytes = SZ_64K;
	local_bh_disable();
	at = ktime_get_ns() + 2 * NSEC_PER_MSEC;
	for (i = 0; i < MANY; i++)
		set(&a[i], at);
	local_bh_enable();
	for (i = 0; i < MANY; i++) {
		KUNIT_EXPECT_TRUE(test, rang(&a[i], 1));
		KUNIT_EXPECT_EQ(test, i + 1, a[i].place);
		KUNIT_EXPECT_EQ(test, 0, a[i].early);
	}
	KUNIT_EXPECT_LE(test, most_spent, SZ_64K + SZ_4K);
	ends(a, MANY);
}

/* Also when none of them is called, as most are not */
static void turn_ends_without_calls(struct kunit *test)
{
	struct bell *a = bells(test, MANY + 1);
	u64 at;
	u32 i;

	sroce_turn_limits.bytes = SZ_64K;
	local_bh_disable();
	at = ktime_get_ns() + 2 * NSEC_PER_MSEC;
	for (i = 0; i <= MANY; i++)
		set(&a[i], at);
	for (i = 0; i < MANY; i++)
		if (i % 2)
			sroce_timer_delete(&a[i].timer);
		else
			set(&a[i], at + 3600 * NSEC_PER_SEC);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, rang(&a[MANY], 1));
	KUNIT_EXPECT_LE(test, most_spent, SZ_64K + SZ_4K);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&places));
	ends(a, MANY + 1);
}

/* A turn that is over when they expire is no reason to forget them */
static void turn_was_over(struct kunit *test)
{
	struct bell *a = bells(test, 2);

	sroce_turn_limits.bytes = 0;
	set_in(&a[0], 100);
	usleep_range(5000, 6000);
	set_in(&a[1], 100);
	usleep_range(5000, 6000);
	KUNIT_EXPECT_EQ(test, 0, READ_ONCE(a[0].calls));
	sroce_turn_limits.bytes = SZ_256M;
	KUNIT_EXPECT_TRUE(test, rang(&a[0], 1));
	KUNIT_EXPECT_TRUE(test, rang(&a[1], 1));
	ends(a, 2);
}

/* --- the worker is late --------------------------------------------------------------- */

static struct workqueue_struct *workers;
static DECLARE_COMPLETION(freed_worker);

static void keep_worker(struct work_struct *work)
{
	wait_for_completion(&freed_worker);
}

static DECLARE_WORK(kept_worker, keep_worker);

/* Nobody goes on with what a turn leaves, as where tasks of real-time priority run */
static void no_worker(struct kunit *test)
{
	struct workqueue_struct *one = alloc_ordered_workqueue("sroce_timer_test", 0);

	KUNIT_ASSERT_NOT_NULL(test, one);
	reinit_completion(&freed_worker);
	queue_work(one, &kept_worker);
	workers = sroce_turn_wq;
	WRITE_ONCE(sroce_turn_wq, one);
}

static void worker_comes(void)
{
	struct workqueue_struct *one = sroce_turn_wq;

	WRITE_ONCE(sroce_turn_wq, workers);
	/* Those who have found the other one have queued their work */
	synchronize_rcu();
	complete(&freed_worker);
	destroy_workqueue(one);
}

/* The rest is called all the same, and the worker finds nothing */
static void without_worker(struct kunit *test)
{
	struct bell *a = bells(test, MANY);
	u64 at;
	u32 i;

	sroce_turn_limits.bytes = SZ_64K;
	no_worker(test);
	local_bh_disable();
	at = ktime_get_ns() + 2 * NSEC_PER_MSEC;
	for (i = 0; i < MANY; i++)
		set(&a[i], at);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, rang(&a[MANY - 1], 1));
	worker_comes();
	let_pass(test);
	for (i = 0; i < MANY; i++) {
		KUNIT_EXPECT_EQ(test, 1, a[i].calls);
		KUNIT_EXPECT_EQ(test, i + 1, a[i].place);
	}
	KUNIT_EXPECT_LE(test, most_spent, SZ_64K + SZ_4K);
	ends(a, MANY);
}

/* A turn that ends when nothing is due is no reason to wait for anybody. Best of many. */
static void nothing_is_due(struct kunit *test)
{
	struct bell *a = bells(test, 2);
	u64 best = U64_MAX;
	u64 at;
	u32 i;

	sroce_turn_limits.bytes = SZ_64K;
	no_worker(test);
	a[0].spends = SZ_64K;
	for (i = 1; i <= 100 && best > NSEC_PER_MSEC / 2; i++) {
		local_bh_disable();
		at = ktime_get_ns() + 100 * NSEC_PER_USEC;
		set(&a[0], at);
		set(&a[1], at + 200 * NSEC_PER_USEC);
		local_bh_enable();
		KUNIT_EXPECT_TRUE(test, rang(&a[1], i));
		best = min(best, a[1].late);
	}
	worker_comes();
	KUNIT_EXPECT_LE(test, best, NSEC_PER_MSEC / 2);
	ends(a, 2);
}

static struct kunit_case timer_cases[] = {
	KUNIT_CASE(in_order),
	KUNIT_CASE(with_slack),
	KUNIT_CASE(later),
	KUNIT_CASE(sooner),
	KUNIT_CASE(again),
	KUNIT_CASE(never_set),
	KUNIT_CASE(deleted),
	KUNIT_CASE(deleted_for_good),
	KUNIT_CASE(deleted_while_it_rings),
	KUNIT_CASE(freed_while_it_rings),
	KUNIT_CASE(from_other_cpus),
	KUNIT_CASE(none_is_forgotten),
	KUNIT_CASE(none_is_left_behind),
	KUNIT_CASE(turn_ends),
	KUNIT_CASE(turn_ends_without_calls),
	KUNIT_CASE(turn_was_over),
	KUNIT_CASE(without_worker),
	KUNIT_CASE(nothing_is_due),
	{}
};

static struct kunit_suite timer_suite = {
	.name = "sroce_timer",
	.init = timer_init,
	.exit = timer_exit,
	.test_cases = timer_cases,
};

kunit_test_suite(timer_suite);
