/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the network layer knows of a device. The transport has it in struct sroce_port.
 */
#ifndef SROCE_NETPORT_H
#define SROCE_NETPORT_H

#include <linux/types.h>

struct sroce_counters;

/**
 * struct sroce_netport - the device as the network layer sees it
 * @net_cookie: network namespace, in the form of path->net_cookie
 * @ifindex: netdev; of a path to another device of this host, its direct_ifindex
 * @counters: SROCE_CNT_*, of the device and of QPs that have none of their own
 *
 * @net_cookie and @ifindex change only while the device is not attached.
 */
struct sroce_netport {
	u64 net_cookie;
	int ifindex;
	struct sroce_counters __percpu *counters;
};

#endif
