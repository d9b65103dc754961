// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who uses regions on one processor for what a peer has asked for, while their owner ends
 * them on another.
 */
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/uaccess.h>

#include "memory/odp.h"
#include "tests/side_demand.h"
#include "tests/transport_pair.h"
#include "transport/gather.h"

#define DEMAND_BYTES (16 * PAGE_SIZE)

/**
 * struct usage - a responder on another processor, until it is told to stop
 * @s: its side
 * @begin: how it begins to use the region; 0 or an errno
 * @end: and ends
 * @key: of the region
 * @va: first byte
 * @gather: its own
 * @word: likewise
 * @err: of @begin
 * @begun: it has
 * @stop: it is to stop
 * @ended: it has
 */
struct usage {
	struct side *s;
	int (*begin)(struct usage *usage);
	void (*end)(struct usage *usage);
	u32 key;
	u64 va;
	struct sroce_gather *gather;
	struct sroce_word word;
	int err;
	struct completion begun;
	bool stop;
	struct completion ended;
};

static int word_begin(struct usage *usage)
{
	return sroce_word_begin(&usage->word, &usage->s->qp->resp.half, usage->key,
				IB_ACCESS_REMOTE_ATOMIC, usage->va);
}

static void word_end(struct usage *usage)
{
	if (!usage->err)
		sroce_word_end(&usage->word);
}

static int gather_begin(struct usage *usage)
{
	u32 len = 8;

	usage->gather = sroce_gather_begin(&usage->s->qp->resp.half);
	return sroce_gather_rkey(usage->gather, usage->key, IB_ACCESS_REMOTE_WRITE,
				 usage->va, &len, len);
}

static void gather_end(struct usage *usage)
{
	sroce_gather_end(usage->gather);
}

static int user_thread(void *arg)
{
	struct usage *usage = arg;

	local_bh_disable();
	usage->err = usage->begin(usage);
	complete(&usage->begun);
	while (!READ_ONCE(usage->stop))
		cpu_relax();
	usage->end(usage);
	local_bh_enable();
	complete(&usage->ended);
	return 0;
}

/* It is at it on return */
static void user_begin(struct kunit *test, struct usage *usage, struct sroce_mr *mr, u64 va)
{
	struct task_struct *task;
	unsigned int other;

	usage->key = mr->key;
	usage->va = va;
	init_completion(&usage->begun);
	init_completion(&usage->ended);
	migrate_disable();
	other = cpumask_any_but(cpu_online_mask, smp_processor_id());
	migrate_enable();
	if (other >= nr_cpu_ids)
		kunit_skip(test, "one processor");
	task = kthread_create(user_thread, usage, "sroce_user");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, other);
	wake_up_process(task);
	wait_for_completion(&usage->begun);
}

static void user_end(struct usage *usage)
{
	WRITE_ONCE(usage->stop, true);
	wait_for_completion(&usage->ended);
}

/**
 * struct owner - who ends a region
 * @mr: region
 * @done: it is gone
 */
struct owner {
	struct sroce_mr *mr;
	struct completion done;
};

static int owner_thread(void *arg)
{
	struct owner *owner = arg;

	if (owner->mr->odp)
		side_demand_free(owner->mr);
	else
		sroce_mr_free(owner->mr);
	complete(&owner->done);
	return 0;
}

/* It waits for the user, and for no longer */
static void expect_awaited(struct kunit *test, struct usage *usage, struct sroce_mr *mr)
{
	struct owner owner = { .mr = mr };
	struct task_struct *task;

	KUNIT_EXPECT_EQ(test, 0, usage->err);
	init_completion(&owner.done);
	task = kthread_create(owner_thread, &owner, "sroce_owner");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	migrate_disable();
	kthread_bind(task, smp_processor_id());
	migrate_enable();
	wake_up_process(task);
	KUNIT_EXPECT_EQ(test, 0, wait_for_completion_timeout(&owner.done, HZ / 10));
	user_end(usage);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&owner.done, 30 * HZ), 0);
}

static void atomic_is_awaited(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct side *b = &p->side[1];
	struct usage usage = { .s = b, .begin = word_begin, .end = word_end };
	struct sroce_mr *mr = b->mr;

	user_begin(test, &usage, mr, (uintptr_t)b->mem);
	b->mr = NULL;
	expect_awaited(test, &usage, mr);
}

static void write_is_awaited(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct side *b = &p->side[1];
	struct usage usage = { .s = b, .begin = gather_begin, .end = gather_end };
	struct sroce_mr *mr = b->mr;

	user_begin(test, &usage, mr, (uintptr_t)b->mem);
	b->mr = NULL;
	expect_awaited(test, &usage, mr);
}

/* Its pages are there: the process has just written to them */
static struct sroce_mr *demand_mr(struct kunit *test, struct side *s)
{
	struct sroce_mr *mr = side_demand_create(s, DEMAND_BYTES, 0);
	u64 word = 1;

	KUNIT_ASSERT_EQ(test, 0, copy_to_user(u64_to_user_ptr(mr->iova), &word, sizeof(word)));
	return mr;
}

static bool demand_bring_in(struct usage *usage)
{
	int tries = 1000;
	int err;

	do {
		local_bh_disable();
		err = usage->begin(usage);
		if (usage->begin == gather_begin || !err)
			usage->end(usage);
		local_bh_enable();
		if (err == -EAGAIN)
			msleep(20);
	} while (err == -EAGAIN && --tries);
	return !err;
}

static void expect_demand_awaited(struct kunit *test, struct usage *usage)
{
	struct sroce_mr *mr = demand_mr(test, usage->s);

	usage->key = mr->key;
	usage->va = mr->iova;
	KUNIT_EXPECT_TRUE(test, demand_bring_in(usage));
	user_begin(test, usage, mr, mr->iova);
	expect_awaited(test, usage, mr);
}

static void atomic_on_demand_is_awaited(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct usage usage = { .s = &p->side[1], .begin = word_begin, .end = word_end };

	expect_demand_awaited(test, &usage);
}

static void write_on_demand_is_awaited(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct usage usage = { .s = &p->side[1], .begin = gather_begin, .end = gather_end };

	expect_demand_awaited(test, &usage);
}

/* One more than there is room for is refused, and whoever names it finds out */
static void keys_have_an_end(struct kunit *test)
{
	struct pair *p = pair_create(test, &(struct pair_config){});
	struct side *b = &p->side[1];
	int err[SROCE_MR_USES + 1];
	struct sroce_gather *g;
	u32 len;
	int i;

	local_bh_disable();
	g = sroce_gather_begin(&b->qp->resp.half);
	for (i = 0; i <= SROCE_MR_USES; i++) {
		len = 1;
		err[i] = sroce_gather_rkey(g, b->mr->key, IB_ACCESS_REMOTE_WRITE,
					   (uintptr_t)b->mem, &len, len);
	}
	sroce_gather_end(g);
	local_bh_enable();
	for (i = 0; i < SROCE_MR_USES; i++)
		KUNIT_EXPECT_EQ(test, 0, err[i]);
	KUNIT_EXPECT_EQ(test, -ENOSPC, err[i]);
}

static struct kunit_case use_cases[] = {
	KUNIT_CASE(atomic_is_awaited),
	KUNIT_CASE(write_is_awaited),
	KUNIT_CASE(atomic_on_demand_is_awaited),
	KUNIT_CASE(write_on_demand_is_awaited),
	KUNIT_CASE(keys_have_an_end),
	{}
};

static struct kunit_suite use_suite = {
	.name = "sroce_transport_use",
	.exit = pair_exit,
	.test_cases = use_cases,
};

kunit_test_suite(use_suite);
