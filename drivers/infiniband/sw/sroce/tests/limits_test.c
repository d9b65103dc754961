// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a device has only so many of, and events that nobody reads.
 */
#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/cred.h>

#include "transport/ah.h"
#include "transport/events.h"
#include "verbs/limits.h"
#include "verbs/quota.h"

/* @n are there; can one more be made? It is given back */
static int take(struct kunit *test, enum sroce_object kind, int n, bool user)
{
	struct sroce_device *dev = test->priv;
	int err;

	atomic_set(&dev->objects[kind], n);
	err = sroce_quota_take(dev, kind, user);
	KUNIT_EXPECT_EQ(test, atomic_read(&dev->objects[kind]), n + !err);
	if (!err)
		sroce_quota_give(dev, kind);
	atomic_set(&dev->objects[kind], 0);
	return err;
}

static const struct {
	enum sroce_object kind;
	int most;
} kinds[] = {
	{ SROCE_OBJECT_PD, SROCE_MAX_PD },
	{ SROCE_OBJECT_XRCD, SROCE_MAX_XRCD },
	{ SROCE_OBJECT_CQ, SROCE_MAX_CQ },
	{ SROCE_OBJECT_SRQ, SROCE_MAX_SRQ },
	{ SROCE_OBJECT_QP, SROCE_MAX_QP },
	{ SROCE_OBJECT_MR, SROCE_MAX_MR },
	{ SROCE_OBJECT_MW, SROCE_MAX_MW },
	{ SROCE_OBJECT_AH, SROCE_MAX_AH },
};

static void limits_kernel(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		KUNIT_EXPECT_EQ(test, take(test, kinds[i].kind, 0, false), 0);
		KUNIT_EXPECT_EQ(test, take(test, kinds[i].kind,
					   kinds[i].most - 1, false), 0);
		KUNIT_EXPECT_EQ(test, take(test, kinds[i].kind,
					   kinds[i].most, false), -ENOSPC);
	}
	KUNIT_EXPECT_EQ(test, i, SROCE_OBJECTS);
}

/* What just any process leaves to others, whatever it does */
static void expect_reserved(struct kunit *test, bool privileged)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		int open = kinds[i].most - kinds[i].most / SROCE_RESERVED_PART;

		KUNIT_EXPECT_EQ(test, take(test, kinds[i].kind, open - 1,
					   true), 0);
		KUNIT_EXPECT_EQ(test, take(test, kinds[i].kind, open, true),
				privileged ? 0 : -ENOSPC);
		KUNIT_EXPECT_EQ(test, take(test, kinds[i].kind,
					   kinds[i].most, true), -ENOSPC);
	}
}

static void limits_process(struct kunit *test)
{
	struct cred *cred = prepare_creds();
	const struct cred *mine;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	expect_reserved(test, true);
	cap_lower(cred->cap_effective, CAP_SYS_RESOURCE);
	mine = override_creds(cred);
	expect_reserved(test, false);
	revert_creds(mine);
	put_cred(cred);
}

/* One table of keys for two kinds, in which a random key is mostly free */
static void limits_keys_sparse(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, SROCE_MAX_MR + SROCE_MAX_MW, (1 << 24) / 4);
}

/* --- events that nobody reads ------------------------------------------------- */

static int raise_events(struct sroce_events *e, struct list_head *unread, int n)
{
	int raised = 0;

	while (n--)
		raised += sroce_events_may_wait(e, unread);
	return raised;
}

static void limits_unread(struct kunit *test)
{
	struct sroce_events e = {};
	struct list_head event;
	LIST_HEAD(unread);

	KUNIT_EXPECT_EQ(test, raise_events(&e, &unread, 1), 1);
	list_add_tail(&event, &unread);
	KUNIT_EXPECT_EQ(test, raise_events(&e, &unread, 1000),
			SROCE_MAX_UNREAD - 1);
	/* read at last: as many again, however often */
	list_del(&event);
	KUNIT_EXPECT_EQ(test, raise_events(&e, &unread, 1000), 1000);
	list_add_tail(&event, &unread);
	KUNIT_EXPECT_EQ(test, raise_events(&e, &unread, 1000),
			SROCE_MAX_UNREAD - 1);
}

/* A kernel that has something else where the list should be: all are raised */
static void limits_unread_unknown(struct kunit *test)
{
	struct list_head odd[] = {
		{}, { &odd[0], &odd[0] }, { &odd[2], &odd[1] },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(odd); i++) {
		struct sroce_events e = {};

		KUNIT_EXPECT_EQ(test, raise_events(&e, &odd[i], 1000), 1000);
	}
}

/* What stands behind a handle of an XRC target: a uobject of a QP, as in events.c */
struct handle {
	struct ib_qp qp;
	struct {
		struct ib_uobject uobject;
		void *event_file;
		struct list_head event_list;
		u32 events_reported;
	} obj;
};

static struct handle *open_handle(struct kunit *test, struct ib_qp *real,
				  void *event_file)
{
	struct handle *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, h);
	INIT_LIST_HEAD(&h->obj.event_list);
	h->obj.event_file = event_file;
	h->qp.uobject = (void *)&h->obj;
	list_add(&h->qp.open_list, &real->open_list);
	return h;
}

static int raise_of_target(struct sroce_events *e, struct ib_qp *real, int n)
{
	int raised = 0;

	while (n--)
		raised += sroce_events_may_raise_target(e, real);
	return raised;
}

/* The QP itself has no uobject, though it is a process's: its maker's handle counts */
static void limits_unread_target(struct kunit *test)
{
	struct sroce_device *dev = test->priv;
	struct sroce_events e = {}, none = {};
	struct ib_qp *real = kunit_kzalloc(test, sizeof(*real), GFP_KERNEL);
	struct list_head event;
	struct handle *maker;

	KUNIT_ASSERT_NOT_NULL(test, real);
	spin_lock_init(&dev->ibdev.qp_open_list_lock);
	real->device = &dev->ibdev;
	INIT_LIST_HEAD(&real->open_list);
	KUNIT_EXPECT_EQ(test, raise_of_target(&none, real, 1000), 1000);
	open_handle(test, real, NULL);
	maker = open_handle(test, real, test);
	open_handle(test, real, NULL);
	KUNIT_EXPECT_EQ(test, raise_of_target(&e, real, 1), 1);
	list_add_tail(&event, &maker->obj.event_list);
	KUNIT_EXPECT_EQ(test, raise_of_target(&e, real, 1000),
			SROCE_MAX_UNREAD - 1);
	list_del(&event);
	KUNIT_EXPECT_EQ(test, raise_of_target(&e, real, 1000), 1000);
}

static int limits_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct sroce_device),
				   GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static struct kunit_case limits_cases[] = {
	KUNIT_CASE(limits_kernel),
	KUNIT_CASE(limits_process),
	KUNIT_CASE(limits_keys_sparse),
	KUNIT_CASE(limits_unread),
	KUNIT_CASE(limits_unread_unknown),
	KUNIT_CASE(limits_unread_target),
	{}
};

static struct kunit_suite limits_suite = {
	.name = "sroce_limits",
	.init = limits_init,
	.test_cases = limits_cases,
};

kunit_test_suite(limits_suite);
