// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The event counters in ports/1/hw_counters and in "rdma statistic".
 */
#include "transport/counters.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

static const struct rdma_stat_desc sroce_stat_descs[SROCE_CNT_NUM] = {
#define X(id, label)				\
	[SROCE_CNT_##id] = { .name = label },
	SROCE_COUNTERS(X)
#undef X
};

struct rdma_hw_stats *sroce_alloc_hw_port_stats(struct ib_device *ibdev,
						u32 port)
{
	return rdma_alloc_hw_stats_struct(sroce_stat_descs, SROCE_CNT_NUM,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* Always all of them: they cost a few loads each */
int sroce_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		       u32 port, int index)
{
	struct sroce_counters __percpu *counters =
		to_sroce_device(ibdev)->port.counters;
	int i;

	if (port != SROCE_PORT || !stats)
		return -EINVAL;
	for (i = 0; i < SROCE_CNT_NUM; i++)
		stats->value[i] = sroce_counter_read(counters, i);
	return SROCE_CNT_NUM;
}
