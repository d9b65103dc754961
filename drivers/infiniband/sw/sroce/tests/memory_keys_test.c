// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keys of regions: how they are chosen, what a check of one refuses and in which order,
 * and what becomes of a key when its region is freed or registered again.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/limits.h>

#include "memory/internal.h"
#include "memory/mr.h"
#include "memory/users.h"
#include "tests/memory_world.h"

static void keys_lookup(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 0, 4096);
	u32 key = mr->key;

	KUNIT_EXPECT_NE(test, key >> 8, 0);
	KUNIT_EXPECT_EQ(test, mr->ibmr.lkey, key);
	KUNIT_EXPECT_EQ(test, mr->ibmr.rkey, key);

	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, 0, 0x1000, 1), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, key ^ 1, &w->pd.ibpd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, key ^ 0x80, &w->pd.ibpd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, key ^ 0x100, &w->pd.ibpd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, key ^ 0x80000000, &w->pd.ibpd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, 0, &w->pd.ibpd, 0, 0x1000, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->other_pd.ibpd, 0, 0x1000, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, refcount_read(&mr->users), 1);

	sroce_mr_free(mr);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, 0, 0x1000, 1), -EINVAL);
}

static void keys_unpublished(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, 0, 0, 4096);

	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, 0, 0, 1), -EINVAL);
	sroce_mr_publish(mr);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, 0, 0, 1), 0);
}

static void keys_random(struct kunit *test)
{
	struct sroce_mr *first = new_user_mr(test, 0, 0, 0, 1);
	u32 index_bits = 0, byte_bits = 0;
	int i;

	/* Some bit stays the same with a chance of 2^-55 */
	for (i = 0; i < 64; i++) {
		struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 1);

		index_bits |= (mr->key ^ first->key) >> 8;
		byte_bits |= (mr->key ^ first->key) & 0xff;
	}
	KUNIT_EXPECT_EQ(test, index_bits, 0xffffff);
	KUNIT_EXPECT_EQ(test, byte_bits, 0xff);
}

static u32 taken_key;

static u32 choose_taken(void)
{
	return taken_key;
}

/* When no key is free it is an error, and not an endless search */
static void keys_none_free(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 1);
	struct sroce_mr *late;

	late = sroce_mr_alloc_heir(mr, &w->pd.ibpd, SROCE_MR_USER, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, late);
	taken_key = mr->key;
	KUNIT_EXPECT_EQ(test, sroce_mr_insert(late, choose_taken), -ENOSPC);
	taken_key += 1 << SROCE_KEY_INDEX_SHIFT;
	KUNIT_EXPECT_EQ(test, sroce_mr_insert(late, choose_taken), 0);
	KUNIT_EXPECT_EQ(test, late->ibmr.lkey, taken_key);
}

static void keys_rights(struct kunit *test)
{
	static const int rights[] = {
		IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_WRITE,
		IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_ATOMIC,
		IB_ACCESS_MW_BIND,
	};
	struct memory_world *w = test->priv;
	int has, wants;

	for (has = 0; has < ARRAY_SIZE(rights); has++) {
		struct sroce_mr *mr = new_user_mr(test, rights[has], 0, 0, 8);

		KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, 0, 0, 8), 0);
		for (wants = 0; wants < ARRAY_SIZE(rights); wants++)
			KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd,
							rights[wants], 0, 8),
					has == wants ? 0 : -EACCES);
		KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd,
						rights[has] | rights[(has + 1) % 5],
						0, 8), -EACCES);
	}
}

/* Which error comes first when there are several */
static void keys_check_order(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, 0, 0, 8);
	const int want = IB_ACCESS_REMOTE_WRITE;

	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, want, 9, 1), -EINVAL);
	sroce_mr_publish(mr);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key ^ 1, &w->pd.ibpd, want, 9, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->other_pd.ibpd, want, 9, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, want, 9, 1), -EACCES);
	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, 0, 9, 1), -ERANGE);
}

static void expect_bounds(struct kunit *test, u64 iova, u64 length)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, iova, 0, length);
	const struct {
		u64 va, len;
		int want;
	} cases[] = {
		{ iova, 1, 0 },
		{ iova, length, 0 },
		{ iova + length - 1, 1, 0 },
		{ iova + 1, length - 1, 0 },
		{ iova, length + 1, -ERANGE },
		{ iova + 1, length, -ERANGE },
		{ iova - 1, 1, -ERANGE },
		{ iova - 1, 2, -ERANGE },
		{ iova + length, 1, -ERANGE },
		{ iova + length, U64_MAX, -ERANGE },
		{ iova, U64_MAX, -ERANGE },
		{ iova + 1, U64_MAX, -ERANGE },
		{ U64_MAX - iova, U64_MAX, -ERANGE },
		{ iova + (1ULL << 63), 1, -ERANGE },
		{ iova - (1ULL << 63), 1ULL << 63, -ERANGE },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int err = check_key(test, mr->key, &w->pd.ibpd, 0, cases[i].va,
				    cases[i].len);

		KUNIT_EXPECT_EQ_MSG(test, err, cases[i].want,
				    "iova %llx length %llx case %d", iova,
				    length, i);
	}
	sroce_mr_free(mr);
}

static void keys_bounds(struct kunit *test)
{
	expect_bounds(test, 0x7f0012345678, 5000);
	expect_bounds(test, 0, 4096);			/* zero based */
	expect_bounds(test, U64_MAX - 4999, 5000);	/* up to the last byte */
	expect_bounds(test, U64_MAX - 5000, 5000);
	expect_bounds(test, 1ULL << 63, 4097);
}

static void keys_of_nothing(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0x1000, 0, 0);

	KUNIT_EXPECT_EQ(test, check_key(test, mr->key, &w->pd.ibpd, 0, 0x1000, 1),
			-ERANGE);
}

struct freeing {
	struct sroce_mr *mr;
	struct sroce_mr *heir;
	struct completion done;
};

static int free_region(void *arg)
{
	struct freeing *f = arg;

	sroce_mr_free(f->mr);
	complete(&f->done);
	return 0;
}

/* Somebody of another domain is no user, not even while he is told so: the owner would wait */
static void keys_find_own(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_user_mr(test, 0, 0, 0, 8);

	KUNIT_EXPECT_PTR_EQ(test, NULL, sroce_mr_find(&w->table, mr->key, &w->other_pd.ibpd));
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&mr->users));
	KUNIT_EXPECT_PTR_EQ(test, mr, sroce_mr_find(&w->table, mr->key, &w->pd.ibpd));
	KUNIT_EXPECT_EQ(test, 2, refcount_read(&mr->users));
	sroce_mr_put(mr);
	sroce_mr_free(mr);
}

/* sroce_mr_free() must wait for who holds the region, and give the key up before it waits */
static void keys_free_waits(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct freeing f = { .mr = new_user_mr(test, 0, 0, 0, 8) };
	u32 key = f.mr->key;
	int tries;

	KUNIT_ASSERT_PTR_EQ(test, sroce_mr_find(&w->table, key, f.mr->ibmr.pd), f.mr);
	sroce_mr_hold(f.mr);
	init_completion(&f.done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(free_region, &f, "free")));

	for (tries = 0; tries < 100 && xa_load(&w->table.xa, key >> 8); tries++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, 0, 0, 8), -EINVAL);
	sroce_mr_put(f.mr);
	KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&f.done, HZ / 10), 0);
	sroce_mr_put(f.mr);
	wait_for_completion(&f.done);
}

/* A region with the rights, address and domain of a re-registration */
static struct sroce_mr *new_heir(struct kunit *test, struct sroce_mr *old)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr;

	mr = sroce_mr_alloc_heir(old, &w->other_pd.ibpd, SROCE_MR_USER, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	mr->blocks[0] = page_address(w->pages[1]);
	mr->nr_blocks = 1;
	mr->access = IB_ACCESS_REMOTE_READ;
	mr->iova = 0x5000;
	mr->length = 16;
	return mr;
}

static void keys_heir_unused(struct kunit *test)
{
	struct sroce_mr *old = new_user_mr(test, 0, 0, 0, 8);
	struct sroce_mr *heir = new_heir(test, old);
	struct memory_world *w = test->priv;

	KUNIT_EXPECT_EQ(test, heir->ibmr.rkey, old->key);
	KUNIT_EXPECT_EQ(test, heir->ibmr.lkey, old->key);
	KUNIT_EXPECT_EQ(test, check_key(test, old->key, &w->other_pd.ibpd, 0, 0x5000, 1),
			-EINVAL);
	sroce_mr_free(heir);
	KUNIT_EXPECT_EQ(test, check_key(test, old->key, &w->pd.ibpd, 0, 0, 8), 0);
}

static int replace_region(void *arg)
{
	struct freeing *f = arg;

	sroce_mr_replace(f->mr, f->heir);
	complete(&f->done);
	return 0;
}

/* The key means the new region at once; the old one is given up without users */
static void keys_replace(struct kunit *test)
{
	struct freeing f = { .mr = new_user_mr(test, 0, 0, 0, 8) };
	const int right = IB_ACCESS_REMOTE_READ;
	struct memory_world *w = test->priv;
	u32 key = f.mr->key;
	int tries;

	f.heir = new_heir(test, f.mr);
	KUNIT_ASSERT_PTR_EQ(test, sroce_mr_find(&w->table, key, f.mr->ibmr.pd), f.mr);
	init_completion(&f.done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(replace_region, &f, "replace")));
	for (tries = 0; tries < 100 &&
	     xa_load(&w->table.xa, key >> 8) != f.heir; tries++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, 0, 0, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->other_pd.ibpd, right, 0x5000, 16),
			0);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->other_pd.ibpd, right, 0x5000, 17),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&f.done, HZ / 10), 0);
	sroce_mr_put(f.mr);
	wait_for_completion(&f.done);
	sroce_mr_free(f.mr);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->other_pd.ibpd, right, 0x5000, 16),
			0);
}

static int pass_key_soon(void *arg)
{
	struct freeing *f = arg;

	usleep_range(5000, 6000);
	xa_store(&f->mr->table->xa, f->mr->key >> SROCE_KEY_INDEX_SHIFT, f->heir,
		 GFP_KERNEL);
	complete(&f->done);
	return 0;
}

/*
 * Somebody has loaded the old region, and by the time he wants to use it, it is gone: he
 * finds the new one. (As seen by him the key still leads to the old one.)
 */
static void keys_replaced_meanwhile(struct kunit *test)
{
	struct freeing f = { .mr = new_user_mr(test, 0, 0, 0, 8) };
	struct memory_world *w = test->priv;
	struct task_struct *task;
	u32 key = f.mr->key;
	unsigned int other;
	int err;

	f.heir = new_heir(test, f.mr);
	sroce_mr_publish(f.heir);
	init_completion(&f.done);
	task = kthread_create(pass_key_soon, &f, "sroce_pass_key");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	migrate_disable();
	other = cpumask_any_but(cpu_online_mask, smp_processor_id());
	kthread_bind(task, other < nr_cpu_ids ? other : 0);
	WRITE_ONCE(f.mr->gone, other < nr_cpu_ids);
	wake_up_process(task);
	err = check_key(test, key, &w->other_pd.ibpd, IB_ACCESS_REMOTE_READ, 0x5000, 16);
	migrate_enable();
	wait_for_completion(&f.done);
	f.mr->replaced = true;
	sroce_mr_free(f.mr);
	if (other >= nr_cpu_ids)
		kunit_skip(test, "one processor");
	KUNIT_EXPECT_EQ(test, 0, err);
}

static struct kunit_case keys_cases[] = {
	KUNIT_CASE(keys_lookup),
	KUNIT_CASE(keys_unpublished),
	KUNIT_CASE(keys_random),
	KUNIT_CASE(keys_none_free),
	KUNIT_CASE(keys_rights),
	KUNIT_CASE(keys_check_order),
	KUNIT_CASE(keys_bounds),
	KUNIT_CASE(keys_of_nothing),
	KUNIT_CASE(keys_find_own),
	KUNIT_CASE(keys_free_waits),
	KUNIT_CASE(keys_heir_unused),
	KUNIT_CASE(keys_replace),
	KUNIT_CASE(keys_replaced_meanwhile),
	{}
};

static struct kunit_suite keys_suite = {
	.name = "sroce_memory_keys",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = keys_cases,
};

kunit_test_suite(keys_suite);
