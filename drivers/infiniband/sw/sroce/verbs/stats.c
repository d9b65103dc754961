// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The event counters in ports/1/hw_counters and in "rdma statistic", of the port and
 * of QPs that are bound to a counter ("rdma statistic qp").
 *
 * A QP counts where it is told to (sroce_qp_count_in()): in the port's set or in that
 * of the counter it is bound to, never in both. Reading the port's, ib_core adds what
 * its counters have; what the driver itself wants to know of the port, it adds up
 * with sroce_port_count().
 */
#include <linux/slab.h>

#include "counters.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

static const struct rdma_stat_desc sroce_stat_descs[SROCE_CNT_NUM] = {
#define X(id, label)				\
	[SROCE_CNT_##id] = { .name = label },
	SROCE_COUNTERS(X)
#undef X
};

static struct rdma_hw_stats *sroce_stats_alloc(void)
{
	return rdma_alloc_hw_stats_struct(sroce_stat_descs, SROCE_CNT_NUM,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

struct rdma_hw_stats *sroce_ib_alloc_hw_port_stats(struct ib_device *ibdev,
						   u32 port)
{
	return sroce_stats_alloc();
}

static void sroce_stats_read(struct rdma_hw_stats *stats,
			     struct sroce_counters __percpu *counters)
{
	int i;

	for (i = 0; i < SROCE_CNT_NUM; i++)
		stats->value[i] = sroce_counter_read(counters, i);
}

/* Always all of them: they cost a few loads each */
int sroce_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			  u32 port, int index)
{
	if (port != SROCE_PORT || !stats)
		return -EINVAL;
	sroce_stats_read(stats, to_sroce_device(ibdev)->port.net.counters);
	return SROCE_CNT_NUM;
}

/* --- counters of QPs ---------------------------------------------------------- */

struct sroce_bound {
	struct sroce_counters __percpu *counters;
};

void sroce_bound_init(struct sroce_device *dev)
{
	xa_init_flags(&dev->bound, XA_FLAGS_ALLOC1);
	mutex_init(&dev->bound_lock);
}

static void sroce_bound_free(struct sroce_bound *b)
{
	free_percpu(b->counters);
	kfree(b);
}

/* Old kernels may leave a counter that was bound while the device was going */
void sroce_bound_destroy(struct sroce_device *dev)
{
	struct sroce_bound *b;
	unsigned long id;

	xa_for_each(&dev->bound, id, b)
		sroce_bound_free(b);
	xa_destroy(&dev->bound);
}

static int sroce_bound_add(struct sroce_device *dev, u32 *id)
{
	struct sroce_bound *b = kzalloc_obj(*b, GFP_KERNEL_ACCOUNT);
	int err;

	if (!b)
		return -ENOMEM;
	b->counters = sroce_counters_alloc();
	err = b->counters ? xa_alloc(&dev->bound, id, b, xa_limit_31b,
				     GFP_KERNEL_ACCOUNT) : -ENOMEM;
	if (err)
		sroce_bound_free(b);
	return err;
}

static void sroce_bound_del(struct sroce_device *dev, u32 id)
{
	struct sroce_bound *b;
	int i;

	mutex_lock(&dev->bound_lock);
	b = xa_erase(&dev->bound, id);
	for (i = 0; b && i < SROCE_CNT_NUM; i++)
		dev->bound_past[i] += sroce_counter_read(b->counters, i);
	mutex_unlock(&dev->bound_lock);
	if (b)
		sroce_bound_free(b);
}

u64 sroce_port_count(struct sroce_device *dev, enum sroce_counter id)
{
	u64 sum = sroce_counter_read(dev->port.net.counters, id);
	struct sroce_bound *b;
	unsigned long i;

	mutex_lock(&dev->bound_lock);
	sum += dev->bound_past[id];
	xa_for_each(&dev->bound, i, b)
		sum += sroce_counter_read(b->counters, id);
	mutex_unlock(&dev->bound_lock);
	return sum;
}

struct rdma_hw_stats *
sroce_ib_counter_alloc_stats(struct rdma_counter *counter)
{
	return sroce_stats_alloc();
}

static int sroce_bound_set_qp(struct ib_qp *ibqp,
			      struct sroce_counters __percpu *counters)
{
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	int err = -ENODEV;

	mutex_lock(&obj->asked_lock);
	if (obj->qp) {
		sroce_qp_count_in(obj->qp, counters);
		err = 0;
	}
	mutex_unlock(&obj->asked_lock);
	return err;
}

/*
 * The first QP makes the set, because when that fails, nobody tells the driver that
 * the counter goes away.
 */
int sroce_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp,
			     u32 port)
{
	struct sroce_device *dev = to_sroce_device(ibqp->device);
	bool first = !counter->id;
	struct sroce_bound *b;
	int err;

	if (first) {
		err = sroce_bound_add(dev, &counter->id);
		if (err)
			return err;
	}
	b = xa_load(&dev->bound, counter->id);
	/* Old kernels find a counter by its number that has ended */
	if (!b)
		return -EINVAL;
	err = sroce_bound_set_qp(ibqp, b->counters);
	if (!err) {
		ibqp->counter = counter;
	} else if (first) {
		sroce_bound_del(dev, counter->id);
		counter->id = 0;
	}
	return err;
}

int sroce_ib_counter_unbind_qp(struct ib_qp *ibqp, u32 port)
{
	struct sroce_device *dev = to_sroce_device(ibqp->device);

	sroce_bound_set_qp(ibqp, dev->port.net.counters);
	ibqp->counter = NULL;
	return 0;
}

int sroce_ib_counter_dealloc(struct rdma_counter *counter)
{
	sroce_bound_del(to_sroce_device(counter->device), counter->id);
	return 0;
}

/*
 * Old kernels let go of a counter while somebody who has found it is about to read it: what is
 * read must not be freed meanwhile.
 */
int sroce_ib_counter_update_stats(struct rdma_counter *counter)
{
	struct sroce_device *dev = to_sroce_device(counter->device);
	struct sroce_bound *b;

	mutex_lock(&dev->bound_lock);
	b = xa_load(&dev->bound, counter->id);
	if (b)
		sroce_stats_read(counter->stats, b->counters);
	mutex_unlock(&dev->bound_lock);
	return b ? 0 : -EINVAL;
}
