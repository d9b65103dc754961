// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How many objects of each kind a device may have (verbs/quota.h says why there is
 * an end). Asked when an object is made, and told when it is gone; not on the way
 * of a message.
 */
#include <linux/capability.h>

#include "transport/ah.h"
#include "verbs/limits.h"
#include "verbs/quota.h"

/**
 * struct sroce_object_limit - most objects of a kind
 * @name: as it is called in messages
 * @most: how many a device has
 */
struct sroce_object_limit {
	const char *name;
	int most;
};

static const struct sroce_object_limit sroce_limits[SROCE_OBJECTS] = {
	[SROCE_OBJECT_PD] = { "protection domain", SROCE_MAX_PD },
	[SROCE_OBJECT_XRCD] = { "XRC domain", SROCE_MAX_XRCD },
	[SROCE_OBJECT_CQ] = { "completion queue", SROCE_MAX_CQ },
	[SROCE_OBJECT_SRQ] = { "shared receive queue", SROCE_MAX_SRQ },
	[SROCE_OBJECT_QP] = { "queue pair", SROCE_MAX_QP },
	[SROCE_OBJECT_MR] = { "memory region", SROCE_MAX_MR },
	[SROCE_OBJECT_MW] = { "memory window", SROCE_MAX_MW },
	[SROCE_OBJECT_AH] = { "address handle", SROCE_MAX_AH },
	[SROCE_OBJECT_DM] = { "device memory", SROCE_MAX_DM },
	[SROCE_OBJECT_IND_TABLE] = { "table of work queues", SROCE_MAX_IND_TABLE },
	[SROCE_OBJECT_COUNTERS] = { "counters of flows", SROCE_MAX_COUNTERS },
};

/* May one more be made when there are @used? capable() is asked of the last ones only */
static bool sroce_quota_allows(int used, int most, bool user)
{
	if (used < most - most / SROCE_RESERVED_PART)
		return true;
	return used < most && (!user || capable(CAP_SYS_RESOURCE));
}

int sroce_quota_take(struct sroce_device *dev, enum sroce_object kind,
		     bool user)
{
	const struct sroce_object_limit *limit = &sroce_limits[kind];
	atomic_t *objects = &dev->objects[kind];
	int used = atomic_read(objects);

	do {
		if (!sroce_quota_allows(used, limit->most, user)) {
			ibdev_dbg(&dev->ibdev, "no %s left: there are %d of %d\n",
				  limit->name, used, limit->most);
			return -ENOSPC;
		}
	} while (!atomic_try_cmpxchg(objects, &used, used + 1));
	return 0;
}

void sroce_quota_give(struct sroce_device *dev, enum sroce_object kind)
{
	WARN_ON_ONCE(atomic_dec_return(&dev->objects[kind]) < 0);
}

void sroce_quota_end(struct sroce_device *dev)
{
	int kind;

	for (kind = 0; kind < SROCE_OBJECTS; kind++)
		WARN(atomic_read(&dev->objects[kind]),
		     "sroce: %d times %s left\n",
		     atomic_read(&dev->objects[kind]), sroce_limits[kind].name);
}
