// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an administrator sets of the class that a device's packets are in, in
 * ports/1/qos (Documentation/networks.md):
 *
 *	echo 104 >ports/1/qos/traffic_class
 *
 * Applications say the class of each address, but many cannot be told to.
 */
#include <linux/kstrtox.h>
#include <net/inet_ecn.h>
#include <rdma/ib_sysfs.h>

#include "verbs/verbs.h"

static ssize_t traffic_class_show(struct ib_device *ibdev, u32 port,
				  struct ib_port_attribute *attr, char *buf)
{
	struct sroce_netport *net = &to_sroce_device(ibdev)->port.net;

	return sysfs_emit(buf, "%u\n", READ_ONCE(net->traffic_class));
}

/* Queue pairs and address handles that are there already keep theirs */
static ssize_t traffic_class_store(struct ib_device *ibdev, u32 port,
				   struct ib_port_attribute *attr,
				   const char *buf, size_t count)
{
	struct sroce_netport *net = &to_sroce_device(ibdev)->port.net;
	u8 value;
	int err;

	err = kstrtou8(buf, 0, &value);
	if (err)
		return err;
	WRITE_ONCE(net->traffic_class, value & ~INET_ECN_MASK);
	return count;
}

static IB_PORT_ATTR_RW(traffic_class);

static struct attribute *sroce_qos_attrs[] = {
	&ib_port_attr_traffic_class.attr,
	NULL
};

const struct attribute_group sroce_qos_group = {
	.name = "qos",
	.attrs = sroce_qos_attrs,
};
