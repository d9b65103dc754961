// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The events that are counted per CPU, and their sums and names for verbs/stats.c.
 * Counting itself is in the header, on the way of every message.
 */
#include "counters.h"

const char *const sroce_counter_names[SROCE_CNT_NUM] = {
#define X(id, name) [SROCE_CNT_##id] = name,
	SROCE_COUNTERS(X)
#undef X
};

u64 sroce_counter_read(struct sroce_counters __percpu *c,
		       enum sroce_counter id)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(c, cpu)->v[id]);
	return sum;
}
