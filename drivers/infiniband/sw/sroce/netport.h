/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the network layer knows of a device. The transport has it in struct sroce_port.
 */
#ifndef SROCE_NETPORT_H
#define SROCE_NETPORT_H

#include <linux/types.h>

struct sroce_counters;

/**
 * struct sroce_congestion - what an administrator has set of a device's answers to
 * congestion (verbs/congestion.c)
 * @np_enable: tell the senders of packets that have met congestion (notify.c)
 * @np_cnp_dscp: DSCP of what tells them
 * @np_cnp_prio: its priority, as packet buffers have it and VLANs and queues map it
 * @np_min_time_between_cnps: in us; so long one sender is not told again
 *
 * Each changes at any time.
 */
struct sroce_congestion {
	u32 np_enable;
	u32 np_cnp_dscp;
	u32 np_cnp_prio;
	u32 np_min_time_between_cnps;
};

/**
 * struct sroce_netport - the device as the network layer sees it
 * @net_cookie: network namespace, in the form of path->net_cookie
 * @ifindex: netdev; of a path to another device of this host, its direct_ifindex
 * @counters: SROCE_CNT_*, of the device and of QPs that have none of their own
 * @congestion: settings
 *
 * @net_cookie and @ifindex change only while the device is not attached.
 */
struct sroce_netport {
	u64 net_cookie;
	int ifindex;
	struct sroce_counters __percpu *counters;
	struct sroce_congestion congestion;
};

#endif
