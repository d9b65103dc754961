// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an administrator sets of a device's answers to congestion, in
 * ports/1/cc_params, with the names that mlx5 has for the same in its debugfs
 * (Documentation/congestion.md):
 *
 *	echo 4 >ports/1/cc_params/np_min_time_between_cnps
 *
 * As for P_Keys (pkey.c) there is no netlink command for it.
 */
#include <linux/kstrtox.h>
#include <rdma/ib_sysfs.h>

#include "verbs/verbs.h"

/* Longer than any network remembers */
#define SROCE_NP_MOST_US 1000000
#define SROCE_DSCP_MAX 63
#define SROCE_PRIO_MAX 7

/* CNPs as most NICs send them: once in 50 us for a QP, in a class of their own (CS6) */
void sroce_congestion_setup(struct sroce_device *dev)
{
	dev->port.net.congestion = (struct sroce_congestion){
		.np_enable = true,
		.np_cnp_dscp = 48,
		.np_cnp_prio = 6,
		.np_min_time_between_cnps = 50,
	};
}

/**
 * struct sroce_cc_param - a setting, as a file
 * @attr: the file
 * @offset: of a u32 in struct sroce_congestion
 * @most: that it may be
 */
struct sroce_cc_param {
	struct ib_port_attribute attr;
	size_t offset;
	u32 most;
};

static u32 *sroce_cc_value(struct ib_device *ibdev,
			   const struct sroce_cc_param *p)
{
	return (void *)&to_sroce_device(ibdev)->port.net.congestion + p->offset;
}

static ssize_t sroce_cc_show(struct ib_device *ibdev, u32 port,
			     struct ib_port_attribute *attr, char *buf)
{
	struct sroce_cc_param *p = container_of(attr, struct sroce_cc_param,
						attr);

	return sysfs_emit(buf, "%u\n", READ_ONCE(*sroce_cc_value(ibdev, p)));
}

static ssize_t sroce_cc_store(struct ib_device *ibdev, u32 port,
			      struct ib_port_attribute *attr,
			      const char *buf, size_t count)
{
	struct sroce_cc_param *p = container_of(attr, struct sroce_cc_param,
						attr);
	u32 value;
	int err;

	err = kstrtou32(buf, 0, &value);
	if (err)
		return err;
	if (value > p->most)
		return -ERANGE;
	WRITE_ONCE(*sroce_cc_value(ibdev, p), value);
	return count;
}

#define SROCE_CC_PARAM(_name, _most) {					\
	.attr = __ATTR(_name, 0644, sroce_cc_show, sroce_cc_store),	\
	.offset = offsetof(struct sroce_congestion, _name),		\
	.most = (_most),						\
}

static struct sroce_cc_param sroce_cc_params[] = {
	SROCE_CC_PARAM(np_enable, 1),
	SROCE_CC_PARAM(np_cnp_dscp, SROCE_DSCP_MAX),
	SROCE_CC_PARAM(np_cnp_prio, SROCE_PRIO_MAX),
	SROCE_CC_PARAM(np_min_time_between_cnps, SROCE_NP_MOST_US),
};

static struct attribute *sroce_congestion_attrs[] = {
	&sroce_cc_params[0].attr.attr,
	&sroce_cc_params[1].attr.attr,
	&sroce_cc_params[2].attr.attr,
	&sroce_cc_params[3].attr.attr,
	NULL
};

const struct attribute_group sroce_congestion_group = {
	.name = "cc_params",
	.attrs = sroce_congestion_attrs,
};
