/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the network layer knows of a device. The transport has it in struct sroce_port.
 */
#ifndef SROCE_NETPORT_H
#define SROCE_NETPORT_H

#include <linux/types.h>

struct sroce_counters;
struct sroce_raw;

/* rp_enable: never; like a NIC, whoever the peer is; if the peer tells of marked packets */
enum {
	SROCE_RP_OFF,
	SROCE_RP_ON,
	SROCE_RP_ASK,
};

/**
 * struct sroce_congestion - what an administrator has set of a device's answers to
 * congestion (verbs/congestion.c)
 * @np_enable: tell the senders of packets that have met congestion (notify.c)
 * @np_cnp_dscp: DSCP of what tells them
 * @np_cnp_prio: its priority, as packet buffers have it and VLANs and queues map it
 * @np_min_time_between_cnps: in us; so long one sender is not told again
 * @rp_enable: slow down when told (congestion.c), and say that packets may be marked (ecn.c):
 *	SROCE_RP_x
 * @rp_initial_alpha_value: alpha of the first cut, in 1/1024
 * @rp_dce_tcp_g: what alpha keeps of itself each time, in 1/1024
 * @rp_dce_tcp_rtt: in us; so often it is less when nobody tells anything
 * @rp_rate_reduce_monitor_period: in us; so long a rate is not cut again
 * @rp_min_dec_fac: in percent; a cut leaves as much at least
 * @rp_time_reset: in us; so often the rate rises
 * @rp_threshold: so many times it rises towards the rate before the cut only
 * @rp_ai_rate: what it rises by from then on, in Mbit/s, if that is not too little
 *	for what the QP sends
 * @rp_hai_rate: likewise when it has risen for long
 * @rp_min_rate: in Mbit/s; 0: one packet in 10 ms, which is the least anyhow
 * @rp_max_rate: above it the QP has no rate any more, in Mbit/s; 0: when it has not needed
 *	one for a while
 * @rp_rate_to_set_on_first_cnp: in Mbit/s; 0: half of what it has sent
 *
 * Each changes at any time, and may be 0.
 */
struct sroce_congestion {
	u32 np_enable;
	u32 np_cnp_dscp;
	u32 np_cnp_prio;
	u32 np_min_time_between_cnps;
	u32 rp_enable;
	u32 rp_initial_alpha_value;
	u32 rp_dce_tcp_g;
	u32 rp_dce_tcp_rtt;
	u32 rp_rate_reduce_monitor_period;
	u32 rp_min_dec_fac;
	u32 rp_time_reset;
	u32 rp_threshold;
	u32 rp_ai_rate;
	u32 rp_hai_rate;
	u32 rp_min_rate;
	u32 rp_max_rate;
	u32 rp_rate_to_set_on_first_cnp;
};

/**
 * struct sroce_netport - the device as the network layer sees it
 * @net_cookie: network namespace, in the form of path->net_cookie
 * @ifindex: netdev; of a path to another device of this host, its direct_ifindex
 * @counters: SROCE_CNT_*, of the device and of QPs that have none of their own
 * @congestion: settings
 * @roce_v1: speaks RoCE v1 besides RoCE v2; does not change
 * @raw: Ethernet frames, of raw/; NULL in unit tests only. Does not change
 * @traffic_class: of address vectors that say 0 (verbs/qos.c); changes at any time
 *
 * @net_cookie and @ifindex change only while the device is not attached.
 */
struct sroce_netport {
	u64 net_cookie;
	int ifindex;
	struct sroce_counters __percpu *counters;
	struct sroce_congestion congestion;
	bool roce_v1;
	struct sroce_raw *raw;
	u8 traffic_class;
};

#endif
