// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an administrator sets of how a device's connections recover from lost packets,
 * in ports/1/roce_accl, with the names that ConnectX has for the same in its register
 * ROCE_ACCL (Documentation/congestion.md):
 *
 *	echo 0 >ports/1/roce_accl/selective_repeat_en
 *	echo 0 >ports/1/roce_accl/adp_retrans_en
 */
#include <linux/kstrtox.h>
#include <rdma/ib_sysfs.h>

#include "verbs/verbs.h"

/* All of it is within the standard, and harmless to a peer that knows go-back-N only */
void sroce_recovery_setup(struct sroce_device *dev)
{
	dev->port.recovery = (struct sroce_recovery){
		.selective_repeat_en = 1,
		.adp_retrans_en = 1,
	};
}

/**
 * struct sroce_recovery_param - a setting, as a file
 * @attr: the file
 * @offset: of a u32 in struct sroce_recovery
 */
struct sroce_recovery_param {
	struct ib_port_attribute attr;
	size_t offset;
};

static u32 *sroce_recovery_value(struct ib_device *ibdev,
				 struct ib_port_attribute *attr)
{
	struct sroce_recovery_param *p = container_of(attr, struct sroce_recovery_param,
						      attr);

	return (void *)&to_sroce_device(ibdev)->port.recovery + p->offset;
}

static ssize_t sroce_recovery_show(struct ib_device *ibdev, u32 port,
				   struct ib_port_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(*sroce_recovery_value(ibdev, attr)));
}

static ssize_t sroce_recovery_store(struct ib_device *ibdev, u32 port,
				    struct ib_port_attribute *attr,
				    const char *buf, size_t count)
{
	bool value;
	int err;

	err = kstrtobool(buf, &value);
	if (err)
		return err;
	WRITE_ONCE(*sroce_recovery_value(ibdev, attr), value);
	return count;
}

#define SROCE_RECOVERY_PARAM(_name) {					\
	.attr = __ATTR(_name, 0644, sroce_recovery_show, sroce_recovery_store),	\
	.offset = offsetof(struct sroce_recovery, _name),		\
}

static struct sroce_recovery_param sroce_recovery_params[] = {
	SROCE_RECOVERY_PARAM(selective_repeat_en),
	SROCE_RECOVERY_PARAM(adp_retrans_en),
};

static struct attribute *sroce_recovery_attrs[] = {
	&sroce_recovery_params[0].attr.attr,
	&sroce_recovery_params[1].attr.attr,
	NULL
};

const struct attribute_group sroce_recovery_group = {
	.name = "roce_accl",
	.attrs = sroce_recovery_attrs,
};
