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
#define SROCE_CC_MOST_US 1000000
/* 1 Tbit/s */
#define SROCE_CC_MOST_MBIT 1000000
#define SROCE_DSCP_MAX 63
#define SROCE_PRIO_MAX 7

/*
 * Name, value at first, and most that it may be. CNPs are as most NICs send them: once in
 * 50 us for a QP, in a class of their own (CS6). What differs from NICs where they are
 * told is explained in Documentation/congestion.md.
 */
#define SROCE_CC_PARAMS(X)						\
	X(np_enable, 1, 1)						\
	X(np_cnp_dscp, 48, SROCE_DSCP_MAX)				\
	X(np_cnp_prio, 6, SROCE_PRIO_MAX)				\
	X(np_min_time_between_cnps, 50, SROCE_CC_MOST_US)		\
	X(rp_enable, SROCE_RP_ASK, SROCE_RP_ASK)				\
	X(rp_initial_alpha_value, 1023, 1023)				\
	X(rp_dce_tcp_g, 1019, 1023)					\
	X(rp_dce_tcp_rtt, 55, SROCE_CC_MOST_US)				\
	X(rp_rate_reduce_monitor_period, 50, SROCE_CC_MOST_US)		\
	X(rp_min_dec_fac, 50, 100)					\
	X(rp_time_reset, 300, SROCE_CC_MOST_US)				\
	X(rp_threshold, 1, 31)						\
	X(rp_ai_rate, 5, SROCE_CC_MOST_MBIT)				\
	X(rp_hai_rate, 50, SROCE_CC_MOST_MBIT)				\
	X(rp_min_rate, 0, SROCE_CC_MOST_MBIT)				\
	X(rp_max_rate, 0, SROCE_CC_MOST_MBIT)				\
	X(rp_rate_to_set_on_first_cnp, 0, SROCE_CC_MOST_MBIT)

void sroce_congestion_setup(struct sroce_device *dev)
{
	dev->port.net.congestion = (struct sroce_congestion){
#define X(name, value, limit) .name = (value),
		SROCE_CC_PARAMS(X)
#undef X
	};
}

/**
 * struct sroce_congestion_param - a setting, as a file
 * @attr: the file
 * @offset: of a u32 in struct sroce_congestion
 * @most: that it may be
 */
struct sroce_congestion_param {
	struct ib_port_attribute attr;
	size_t offset;
	u32 most;
};

static u32 *sroce_congestion_value(struct ib_device *ibdev,
				   const struct sroce_congestion_param *p)
{
	return (void *)&to_sroce_device(ibdev)->port.net.congestion + p->offset;
}

static ssize_t sroce_congestion_show(struct ib_device *ibdev, u32 port,
				     struct ib_port_attribute *attr, char *buf)
{
	struct sroce_congestion_param *p = container_of(attr, struct sroce_congestion_param,
							attr);

	return sysfs_emit(buf, "%u\n", READ_ONCE(*sroce_congestion_value(ibdev, p)));
}

static ssize_t sroce_congestion_store(struct ib_device *ibdev, u32 port,
				      struct ib_port_attribute *attr,
				      const char *buf, size_t count)
{
	struct sroce_congestion_param *p = container_of(attr, struct sroce_congestion_param,
							attr);
	u32 value;
	int err;

	err = kstrtou32(buf, 0, &value);
	if (err)
		return err;
	if (value > p->most)
		return -ERANGE;
	WRITE_ONCE(*sroce_congestion_value(ibdev, p), value);
	return count;
}

enum {
#define X(name, value, limit) SROCE_CC_##name,
	SROCE_CC_PARAMS(X)
#undef X
	SROCE_CC_NUM
};

static struct sroce_congestion_param sroce_congestion_params[SROCE_CC_NUM] = {
#define X(name, value, limit) {						\
	.attr = __ATTR(name, 0644, sroce_congestion_show, sroce_congestion_store),	\
	.offset = offsetof(struct sroce_congestion, name),		\
	.most = (limit),						\
},
	SROCE_CC_PARAMS(X)
#undef X
};

static struct attribute *sroce_congestion_attrs[] = {
#define X(name, value, limit) &sroce_congestion_params[SROCE_CC_##name].attr.attr,
	SROCE_CC_PARAMS(X)
#undef X
	NULL
};

const struct attribute_group sroce_congestion_group = {
	.name = "cc_params",
	.attrs = sroce_congestion_attrs,
};
