// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a device has only so many of, the calls that make these, and events that nobody
 * reads.
 */
#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/mman.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netlink.h>

#include "compat.h"
#include "device.h"
#include "raw/raw.h"
#include "transport/ah.h"
#include "transport/events.h"
#include "turn.h"
#include "verbs/limits.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

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
	{ SROCE_OBJECT_DM, SROCE_MAX_DM },
	{ SROCE_OBJECT_IND_TABLE, SROCE_MAX_IND_TABLE },
	{ SROCE_OBJECT_COUNTERS, SROCE_MAX_COUNTERS },
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

/* --- who makes an object asks --------------------------------------------------- */

/**
 * struct made - objects as ib_core has them when it calls the driver
 * @pd: protection domain
 * @xrcd: XRC domain
 * @cq: completion queue
 * @srq: shared receive queue
 * @qp: queue pair
 * @mw: memory window
 * @mr: memory region
 * @table: table of work queues
 * @counters: counters of flows
 */
struct made {
	struct sroce_pd pd;
	struct sroce_xrcd xrcd;
	struct sroce_cq_obj cq;
	struct sroce_srq_obj srq;
	struct sroce_qp_obj qp;
	struct sroce_mw_obj mw;
	struct ib_mr *mr;
	struct ib_rwq_ind_table table;
	struct sroce_counters_obj counters;
};

static int make_pd(struct made *m, struct ib_udata *udata)
{
	return sroce_ib_alloc_pd(&m->pd.ibpd, udata);
}

static void end_pd(struct made *m)
{
	sroce_ib_dealloc_pd(&m->pd.ibpd, NULL);
}

static int make_xrcd(struct made *m, struct ib_udata *udata)
{
	return sroce_ib_alloc_xrcd(&m->xrcd.ibxrcd, udata);
}

static void end_xrcd(struct made *m)
{
	sroce_ib_dealloc_xrcd(&m->xrcd.ibxrcd, NULL);
}

static int make_cq(struct made *m, struct ib_udata *udata)
{
	struct ib_cq_init_attr attr = { .cqe = 16 };

	return sroce_ib_create_cq(&m->cq.cq.ibcq, &attr, NULL);
}

static void end_cq(struct made *m)
{
	sroce_ib_destroy_cq(&m->cq.cq.ibcq, NULL);
}

static int make_srq(struct made *m, struct ib_udata *udata)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = 16, .max_sge = 1 },
	};

	return sroce_ib_create_srq(&m->srq.srq.ibsrq, &init, udata);
}

static void end_srq(struct made *m)
{
	sroce_ib_destroy_srq(&m->srq.srq.ibsrq, NULL);
}

/* Packets can name it from then on */
static int make_xrc_srq(struct made *m)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_XRC,
		.attr = { .max_wr = 16, .max_sge = 1 },
		.ext = { .cq = &m->cq.cq.ibcq, .xrc.xrcd = &m->xrcd.ibxrcd },
	};
	int err = sroce_ib_create_srq(&m->srq.srq.ibsrq, &init, NULL);

	if (!err && !m->srq.srq.ibsrq.ext.xrc.srq_num)
		err = -ENOENT;
	return err;
}

static int made_xrc_srq(struct made *m, struct ib_udata *udata)
{
	int err = make_cq(m, udata);

	if (err)
		return err;
	err = make_xrc_srq(m);
	if (err)
		end_cq(m);
	return err;
}

static void end_xrc_srq(struct made *m)
{
	end_srq(m);
	end_cq(m);
}

static int made_qp(struct made *m, struct ib_udata *udata)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.send_cq = &m->cq.cq.ibcq,
		.recv_cq = &m->cq.cq.ibcq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16 },
	};
	int err;

	err = make_cq(m, udata);
	if (err)
		return err;
	err = sroce_ib_create_qp(&m->qp.ibqp, &init, udata);
	if (err)
		end_cq(m);
	return err;
}

static void end_qp(struct made *m)
{
	sroce_ib_destroy_qp(&m->qp.ibqp, NULL);
	end_cq(m);
}

static int make_mw(struct made *m, struct ib_udata *udata)
{
	return sroce_ib_alloc_mw(&m->mw.ibmw, udata);
}

static void end_mw(struct made *m)
{
	sroce_ib_dealloc_mw(&m->mw.ibmw);
}

/* What ib_core fills in afterwards */
static int make_mr(struct made *m, struct ib_mr *mr)
{
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	mr->device = m->pd.ibpd.device;
	m->mr = mr;
	return 0;
}

static int make_dma_mr(struct made *m, struct ib_udata *udata)
{
	return make_mr(m, sroce_ib_get_dma_mr(&m->pd.ibpd, 0));
}

static int make_fast_mr(struct made *m, struct ib_udata *udata)
{
	return make_mr(m, sroce_ib_alloc_mr(&m->pd.ibpd, IB_MR_TYPE_MEM_REG, 16));
}

static void end_mr(struct made *m)
{
	sroce_ib_dereg_mr(m->mr, NULL);
}

static int make_table(struct made *m, struct ib_udata *udata)
{
	struct ib_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 1 };

	return sroce_ib_create_rwq_ind_table(&m->table, &init, udata);
}

static void end_table(struct made *m)
{
	sroce_ib_destroy_rwq_ind_table(&m->table);
}

static int make_counters(struct made *m, struct ib_udata *udata)
{
	return sroce_ib_create_counters(&m->counters.ibcounters, NULL);
}

static void end_counters(struct made *m)
{
	sroce_ib_destroy_counters(&m->counters.ibcounters);
}

/*
 * struct maker - a call that makes an object
 * @name: case
 * @kind: as what it counts
 * @make: the call; 0 or a negative errno
 * @end: the call that undoes it
 * @bare: a process makes it without driver data, which a test cannot have
 */
static const struct maker {
	const char *name;
	enum sroce_object kind;
	int (*make)(struct made *m, struct ib_udata *udata);
	void (*end)(struct made *m);
	bool bare;
} makers[] = {
	{ "alloc_pd", SROCE_OBJECT_PD, make_pd, end_pd, true },
	{ "alloc_xrcd", SROCE_OBJECT_XRCD, make_xrcd, end_xrcd, true },
	{ "create_cq", SROCE_OBJECT_CQ, make_cq, end_cq },
	{ "create_srq", SROCE_OBJECT_SRQ, make_srq, end_srq },
	{ "create_srq of XRC", SROCE_OBJECT_SRQ, made_xrc_srq, end_xrc_srq },
	{ "create_qp", SROCE_OBJECT_QP, made_qp, end_qp },
	{ "alloc_mw", SROCE_OBJECT_MW, make_mw, end_mw, true },
	{ "get_dma_mr", SROCE_OBJECT_MR, make_dma_mr, end_mr },
	{ "alloc_mr", SROCE_OBJECT_MR, make_fast_mr, end_mr },
	{ "create_rwq_ind_table", SROCE_OBJECT_IND_TABLE, make_table, end_table, true },
	{ "create_counters", SROCE_OBJECT_COUNTERS, make_counters, end_counters, true },
};

static void maker_name(const struct maker *maker, char *desc)
{
	strscpy(desc, maker->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(maker, makers, maker_name);

static struct made *made_of(struct kunit *test)
{
	struct made *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct sroce_device *dev = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->pd.ibpd.device = &dev->ibdev;
	m->xrcd.ibxrcd.device = &dev->ibdev;
	m->cq.cq.ibcq.device = &dev->ibdev;
	m->srq.srq.ibsrq.device = &dev->ibdev;
	m->srq.srq.ibsrq.pd = &m->pd.ibpd;
	m->qp.ibqp.device = &dev->ibdev;
	m->qp.ibqp.pd = &m->pd.ibpd;
	m->qp.ibqp.qp_type = IB_QPT_RC;
	m->mw.ibmw.device = &dev->ibdev;
	m->mw.ibmw.pd = &m->pd.ibpd;
	m->mw.ibmw.type = IB_MW_TYPE_2;
	m->table.device = &dev->ibdev;
	m->counters.ibcounters.device = &dev->ibdev;
	return m;
}

static int most_of(enum sroce_object kind)
{
	int i = 0;

	while (kinds[i].kind != kind)
		i++;
	return kinds[i].most;
}

/* @n are there: what comes of one more, which is ended; all counts are as before */
static void expect_made(struct kunit *test, const struct maker *maker, int n,
			struct ib_udata *udata, int expected)
{
	struct sroce_device *dev = test->priv;
	struct made *m = made_of(test);
	int err, kind;

	atomic_set(&dev->objects[maker->kind], n);
	err = maker->make(m, udata);
	KUNIT_EXPECT_EQ(test, expected, err);
	KUNIT_EXPECT_EQ(test, n + !err, atomic_read(&dev->objects[maker->kind]));
	if (!err)
		maker->end(m);
	KUNIT_EXPECT_EQ(test, n, atomic_read(&dev->objects[maker->kind]));
	atomic_set(&dev->objects[maker->kind], 0);
	for (kind = 0; kind < SROCE_OBJECTS; kind++)
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&dev->objects[kind]));
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->port.mrs.xa));
}

/* (Address handles and work queues: limits_ah(), limits_wq()) */
static void limits_made(struct kunit *test)
{
	const struct maker *maker = test->param_value;
	int most = most_of(maker->kind);

	expect_made(test, maker, most, NULL, -ENOSPC);
	expect_made(test, maker, most - 1, NULL, 0);
}

/* Tags are posted by a method of ib_uverbs, which the kernel has no call for */
static void limits_tags_of_kernel(struct kunit *test)
{
	struct made *m = made_of(test);
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_TM,
		.attr = { .max_wr = 16, .max_sge = 1 },
		.ext = { .cq = &m->cq.cq.ibcq, .tag_matching.max_num_tags = 1 },
	};
	struct sroce_device *dev = test->priv;

	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, sroce_ib_create_srq(&m->srq.srq.ibsrq, &init, NULL));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&dev->objects[SROCE_OBJECT_SRQ]));
}

/* One needs a GID of a device that is registered, which a test has not: only what is refused */
static void limits_ah(struct kunit *test)
{
	struct sroce_device *dev = test->priv;
	struct ib_gid_attr gid = { .device = &dev->ibdev, .port_num = SROCE_PORT };
	struct rdma_ah_attr attr = {
		.type = RDMA_AH_ATTR_TYPE_ROCE,
		.ah_flags = IB_AH_GRH,
		.port_num = SROCE_PORT,
		.grh.sgid_attr = &gid,
	};
	struct rdma_ah_init_attr init = {
		.ah_attr = &attr,
		.flags = RDMA_CREATE_AH_SLEEPABLE,
	};
	struct sroce_ah ah = { .ibah.device = &dev->ibdev };

	atomic_set(&dev->objects[SROCE_OBJECT_AH], SROCE_MAX_AH);
	KUNIT_EXPECT_EQ(test, -ENOSPC, sroce_ib_create_ah(&ah.ibah, &init, NULL));
	attr.sl = 16;
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_ib_create_ah(&ah.ibah, &init, NULL));
	KUNIT_EXPECT_EQ(test, SROCE_MAX_AH, atomic_read(&dev->objects[SROCE_OBJECT_AH]));
	atomic_set(&dev->objects[SROCE_OBJECT_AH], 0);
}

/* What a process asks for without driver data: a page of zeros */
static unsigned long map_zeros(struct kunit *test)
{
	unsigned long at;

	if (!current->mm)
		KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	at = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, at, 0);
	return at;
}

/*
 * A work queue belongs to a process, which a test has not, and counts as a queue pair: only
 * what is refused
 */
static void limits_wq(struct kunit *test)
{
	struct sroce_device *dev = test->priv;
	struct net_device *ndev = alloc_etherdev(0);
	struct ib_pd pd = { .device = &dev->ibdev };
	struct ib_cq cq = { .device = &dev->ibdev };
	struct ib_wq_init_attr init = {
		.wq_type = IB_WQT_RQ,
		.cq = &cq,
		.max_wr = 16,
		.max_sge = 1,
	};
	struct ib_udata udata = {
		.inbuf = (void __user *)map_zeros(test),
		.inlen = sizeof(struct sroce_create_wq_req),
	};

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	dev->port.net.net_cookie = init_net.net_cookie;
	dev->port.net.raw = sroce_raw_create(ndev, &dev->port.net);
	KUNIT_EXPECT_NOT_NULL(test, dev->port.net.raw);
	if (dev->port.net.raw) {
		sroce_raw_attach(dev->port.net.raw);
		atomic_set(&dev->objects[SROCE_OBJECT_QP], SROCE_MAX_QP);
		KUNIT_EXPECT_EQ(test, -ENOSPC,
				PTR_ERR_OR_ZERO(sroce_ib_create_wq(&pd, &init, &udata)));
		init.max_wr = SROCE_MAX_QP_WR + 1;
		KUNIT_EXPECT_EQ(test, -EINVAL,
				PTR_ERR_OR_ZERO(sroce_ib_create_wq(&pd, &init, &udata)));
		KUNIT_EXPECT_EQ(test, SROCE_MAX_QP,
				atomic_read(&dev->objects[SROCE_OBJECT_QP]));
		atomic_set(&dev->objects[SROCE_OBJECT_QP], 0);
		sroce_raw_destroy(dev->port.net.raw);
		dev->port.net.raw = NULL;
	}
	free_netdev(ndev);
}

/* --- many at once ---------------------------------------------------------------- */

#define RACERS 8
#define TRIES 16
/* For all of them together */
#define PLACES 37
static_assert(PLACES < RACERS * TRIES);

/**
 * struct race - calls that are made on several CPUs at once
 * @dev: device
 * @maker: call; NULL: only counting, of @kind
 * @kind: what is made
 * @most: how many there may be
 * @ready: those who make objects
 * @go: they may
 * @made: objects
 * @over: somebody has seen more than there may be
 */
struct race {
	struct sroce_device *dev;
	const struct maker *maker;
	enum sroce_object kind;
	int most;
	atomic_t ready;
	struct completion go;
	atomic_t made;
	atomic_t over;
};

struct racer {
	struct work_struct work;
	struct race *race;
	struct made *m[TRIES];
	bool has[TRIES];
};

static int race_make(struct race *race, struct made *m)
{
	return race->maker ? race->maker->make(m, NULL) :
			     sroce_quota_take(race->dev, race->kind, true);
}

static void race_end(struct race *race, struct made *m)
{
	if (race->maker)
		race->maker->end(m);
	else
		sroce_quota_give(race->dev, race->kind);
}

static void race_work(struct work_struct *work)
{
	struct racer *r = container_of(work, struct racer, work);
	struct race *race = r->race;
	int i;

	atomic_inc(&race->ready);
	wait_for_completion(&race->go);
	for (i = 0; i < TRIES; i++) {
		r->has[i] = !race_make(race, r->m[i]);
		if (r->has[i])
			atomic_inc(&race->made);
		if (atomic_read(&race->dev->objects[race->kind]) > race->most)
			atomic_inc(&race->over);
	}
}

static void race_all(struct kunit *test, struct race *race, struct racer *racers)
{
	int i, k;

	for (i = 0; i < RACERS; i++)
		queue_work(sroce_turn_wq, &racers[i].work);
	for (i = 0; i < 5000 && atomic_read(&race->ready) < RACERS; i++)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_EQ(test, RACERS, atomic_read(&race->ready));
	complete_all(&race->go);
	for (i = 0; i < RACERS; i++)
		flush_work(&racers[i].work);
	KUNIT_EXPECT_EQ(test, PLACES, atomic_read(&race->made));
	KUNIT_EXPECT_EQ(test, race->most, atomic_read(&race->dev->objects[race->kind]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&race->over));
	for (i = 0; i < RACERS; i++)
		for (k = 0; k < TRIES; k++)
			if (racers[i].has[k])
				race_end(race, racers[i].m[k]);
}

/* There are a few places left, and more who want one: as many are made, and never more */
static void race_for(struct kunit *test, enum sroce_object kind, const struct maker *maker)
{
	struct race race = {
		.dev = test->priv,
		.maker = maker,
		.kind = kind,
		.most = most_of(kind),
	};
	struct racer *racers = kunit_kcalloc(test, RACERS, sizeof(*racers), GFP_KERNEL);
	int i, k;

	KUNIT_ASSERT_NOT_NULL(test, racers);
	init_completion(&race.go);
	for (i = 0; i < RACERS; i++) {
		racers[i].race = &race;
		INIT_WORK(&racers[i].work, race_work);
		for (k = 0; k < TRIES && maker; k++)
			racers[i].m[k] = made_of(test);
	}
	atomic_set(&race.dev->objects[kind], race.most - PLACES);
	race_all(test, &race, racers);
	KUNIT_EXPECT_EQ(test, race.most - PLACES, atomic_read(&race.dev->objects[kind]));
	atomic_set(&race.dev->objects[kind], 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&race.dev->port.mrs.xa));
}

static void limits_made_at_once(struct kunit *test)
{
	const struct maker *maker = test->param_value;

	race_for(test, maker->kind, maker);
}

/* Those of the kinds that no test can make, too */
static void limits_counted_at_once(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		race_for(test, kinds[i].kind, NULL);
}

static int dm_refused(struct sroce_device *dev, u64 length, u32 alignment)
{
	struct ib_dm_alloc_attr attr = {
		.length = length,
		.alignment = alignment,
	};

	return PTR_ERR(sroce_ib_alloc_dm(&dev->ibdev, NULL, &attr, NULL));
}

/* Device memory has a context, which a test has not: only what is refused */
static void limits_dm(struct kunit *test)
{
	struct sroce_device *dev = test->priv;

	KUNIT_EXPECT_EQ(test, -EINVAL, dm_refused(dev, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, dm_refused(dev, SROCE_MAX_DM_SIZE + 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, dm_refused(dev, 1, PAGE_SHIFT + 1));
	atomic_set(&dev->objects[SROCE_OBJECT_DM], SROCE_MAX_DM);
	KUNIT_EXPECT_EQ(test, -ENOSPC, dm_refused(dev, 1, 0));
	KUNIT_EXPECT_EQ(test, SROCE_MAX_DM,
			atomic_read(&dev->objects[SROCE_OBJECT_DM]));
	atomic_set(&dev->objects[SROCE_OBJECT_DM], 0);
}

static void expect_made_for_process(struct kunit *test, const struct maker *maker)
{
	int most = most_of(maker->kind);
	int open = most - most / SROCE_RESERVED_PART;
	struct ib_udata udata = {};

	if (!maker->bare)
		return;
	expect_made(test, maker, open, &udata, -ENOSPC);
	expect_made(test, maker, open - 1, &udata, 0);
}

/* A call that is a process's leaves the last ones to others */
static void limits_made_for_process(struct kunit *test)
{
	struct cred *cred = prepare_creds();
	const struct cred *mine;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cap_lower(cred->cap_effective, CAP_SYS_RESOURCE);
	mine = override_creds(cred);
	for (i = 0; i < ARRAY_SIZE(makers); i++)
		expect_made_for_process(test, &makers[i]);
	revert_creds(mine);
	put_cred(cred);
}

/* --- who asks waits for nobody's memory ---------------------------------------- */

/**
 * struct asker - somebody who asks what a queue pair is
 * @work: asks
 * @qp: whom
 * @msg: for "rdma resource"
 * @done: has been told
 * @err: what
 */
struct asker {
	struct work_struct work;
	struct ib_qp *qp;
	struct sk_buff *msg;
	struct completion done;
	int err;
};

static void ask(struct work_struct *work)
{
	struct asker *asker = container_of(work, struct asker, work);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	asker->err = sroce_ib_query_qp(asker->qp, &attr, 0, &init) ?:
		     sroce_ib_fill_res_qp_entry(asker->msg, asker->qp);
	complete(&asker->done);
}

/* While a process's modify waits for memory, or for RTNL in the middle of a group */
static void limits_asked(struct kunit *test)
{
	struct asker asker = { .msg = nlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL) };
	struct made *m = made_of(test);

	KUNIT_ASSERT_NOT_NULL(test, asker.msg);
	KUNIT_ASSERT_EQ(test, made_qp(m, NULL), 0);
	asker.qp = &m->qp.ibqp;
	init_completion(&asker.done);
	INIT_WORK_ONSTACK(&asker.work, ask);
	mutex_lock(&m->qp.lock);
	schedule_work(&asker.work);
	KUNIT_EXPECT_NE(test, 0, wait_for_completion_timeout(&asker.done, 5 * HZ));
	mutex_unlock(&m->qp.lock);
	flush_work(&asker.work);
	destroy_work_on_stack(&asker.work);
	KUNIT_EXPECT_EQ(test, 0, asker.err);
	KUNIT_EXPECT_GT(test, asker.msg->len, 0);
	nlmsg_free(asker.msg);
	end_qp(m);
}

/* --- counters of queue pairs that end while somebody reads them --------------------- */

/**
 * struct reader - somebody who reads a counter
 * @work: reads
 * @counter: which
 * @done: has been told
 * @err: what
 */
struct reader {
	struct work_struct work;
	struct rdma_counter *counter;
	struct completion done;
	int err;
};

static void read_counter(struct work_struct *work)
{
	struct reader *reader = container_of(work, struct reader, work);

	reader->err = sroce_ib_counter_update_stats(reader->counter);
	complete(&reader->done);
}

/* A counter that a queue pair is bound to, as ib_core has it */
static void counter_init(struct kunit *test, struct rdma_counter *counter, struct made *m)
{
	counter->device = m->qp.ibqp.device;
	counter->stats = sroce_ib_counter_alloc_stats(counter);
	KUNIT_ASSERT_NOT_NULL(test, counter->stats);
	KUNIT_ASSERT_EQ(test, 0, sroce_ib_counter_bind_qp(counter, &m->qp.ibqp, 1));
}

/*
 * The core may end a counter that somebody else has found and is about to read: who ends one
 * holds a lock, and who reads one does not do so beside it. What has ended is not found any more.
 */
static void limits_counter_ends(struct kunit *test)
{
	struct sroce_device *dev = test->priv;
	struct rdma_counter *counter = kunit_kzalloc(test, sizeof(*counter), GFP_KERNEL);
	struct reader reader = { .counter = counter };
	struct made *m = made_of(test);

	KUNIT_ASSERT_NOT_NULL(test, counter);
	KUNIT_ASSERT_EQ(test, made_qp(m, NULL), 0);
	sroce_bound_init(dev);
	counter_init(test, counter, m);
	init_completion(&reader.done);
	INIT_WORK_ONSTACK(&reader.work, read_counter);
	mutex_lock(&dev->bound_lock);
	schedule_work(&reader.work);
	KUNIT_EXPECT_EQ_MSG(test, 0, wait_for_completion_timeout(&reader.done, HZ / 10),
			    "a counter is read while it ends");
	mutex_unlock(&dev->bound_lock);
	flush_work(&reader.work);
	destroy_work_on_stack(&reader.work);
	KUNIT_EXPECT_EQ(test, 0, reader.err);
	KUNIT_EXPECT_EQ(test, 0, sroce_ib_counter_unbind_qp(&m->qp.ibqp, 1));
	KUNIT_EXPECT_EQ(test, 0, sroce_ib_counter_dealloc(counter));
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_ib_counter_update_stats(counter));
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_ib_counter_bind_qp(counter, &m->qp.ibqp, 1));
	rdma_free_hw_stats_struct(counter->stats);
	sroce_bound_destroy(dev);
	end_qp(m);
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

/*
 * The QP itself has no uobject, though it is a process's: its maker's handle counts. There
 * may be any number of handles since, which nobody has the time to look at.
 */
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
	/* Whoever looks at this one follows a pointer to nowhere */
	open_handle(test, real, NULL)->qp.uobject = (void *)sizeof(long);
	KUNIT_EXPECT_EQ(test, raise_of_target(&e, real, 1), 1);
	list_add_tail(&event, &maker->obj.event_list);
	KUNIT_EXPECT_EQ(test, raise_of_target(&e, real, 1000),
			SROCE_MAX_UNREAD - 1);
	list_del(&event);
	KUNIT_EXPECT_EQ(test, raise_of_target(&e, real, 1000), 1000);
}

static int limits_init(struct kunit *test)
{
	struct sroce_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return -ENOMEM;
	dev->ibdev.num_comp_vectors = 1;
	sroce_mr_table_init(&dev->port.mrs);
	sroce_txq_pool_init(&dev->port.queued);
	test->priv = dev;
	return 0;
}

static void limits_exit(struct kunit *test)
{
	struct sroce_device *dev = test->priv;

	if (!dev)
		return;
	sroce_mr_table_destroy(&dev->port.mrs);
	sroce_txq_pool_end(&dev->port.queued);
}

/* All netdevs of the host are not looked at back to back, and at once after a pause */
static void addresses_pause(struct kunit *test)
{
	struct sroce_device *dev = test->priv;

	sroce_addresses_setup(dev);
	KUNIT_EXPECT_EQ(test, sroce_addresses_delay(dev), 0);
	dev->gids_next = jiffies + HZ / 10;
	KUNIT_EXPECT_GT(test, sroce_addresses_delay(dev), 0);
	KUNIT_EXPECT_LE(test, sroce_addresses_delay(dev), HZ / 10);
	dev->gids_next = jiffies - 1;
	KUNIT_EXPECT_EQ(test, sroce_addresses_delay(dev), 0);
	/* after so long that jiffies have come round */
	dev->gids_next = jiffies + LONG_MAX;
	KUNIT_EXPECT_EQ(test, sroce_addresses_delay(dev), 0);
}

static struct kunit_case limits_cases[] = {
	KUNIT_CASE(limits_kernel),
	KUNIT_CASE(limits_process),
	KUNIT_CASE(limits_dm),
	KUNIT_CASE(limits_tags_of_kernel),
	KUNIT_CASE(limits_ah),
	KUNIT_CASE(limits_wq),
	KUNIT_CASE(limits_keys_sparse),
	KUNIT_CASE_PARAM(limits_made, maker_gen_params),
	KUNIT_CASE(limits_made_for_process),
	KUNIT_CASE_PARAM(limits_made_at_once, maker_gen_params),
	KUNIT_CASE(limits_counted_at_once),
	KUNIT_CASE(limits_asked),
	KUNIT_CASE(limits_counter_ends),
	KUNIT_CASE(limits_unread),
	KUNIT_CASE(limits_unread_unknown),
	KUNIT_CASE(limits_unread_target),
	KUNIT_CASE(addresses_pause),
	{}
};

static struct kunit_suite limits_suite = {
	.name = "sroce_limits",
	.init = limits_init,
	.exit = limits_exit,
	.test_cases = limits_cases,
};

kunit_test_suite(limits_suite);
