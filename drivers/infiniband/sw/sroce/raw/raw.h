/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ethernet frames of processes: what the rest of the driver may ask of raw/.
 */
#ifndef SROCE_RAW_RAW_H
#define SROCE_RAW_RAW_H

#include <linux/netdevice.h>

#include "raw/flow.h"
#include "raw/rss.h"
#include "transport/seam.h"

struct sroce_netport;
struct sroce_raw;

/**
 * sroce_raw_create() - frames for a device
 * @ndev: its netdev, held until after sroce_raw_destroy()
 * @port: what the network layer knows of it
 *
 * Nothing is sent or received before sroce_raw_attach().
 *
 * Context: process.
 * Return: what @port->raw is to be, or NULL without memory.
 */
struct sroce_raw *sroce_raw_create(struct net_device *ndev,
				   struct sroce_netport *port);

/* No queue and no flow is left. NULL is fine. Context: process, may sleep. */
void sroce_raw_destroy(struct sroce_raw *raw);

/**
 * sroce_raw_attach() - frames may pass, in the network namespace that @port names
 * @raw: frames of a device
 *
 * Context: RTNL held, or nobody knows the device yet.
 */
void sroce_raw_attach(struct sroce_raw *raw);

/**
 * sroce_raw_detach() - the netdev goes, or leaves its namespace
 * @raw: frames of a device; attached or not
 *
 * On return no frame is being received or sent. Flows that there are do nothing any more,
 * also when the netdev comes to another namespace: whoever has made them may not be
 * allowed to see what passes there.
 *
 * Context: RTNL held, may sleep.
 */
void sroce_raw_detach(struct sroce_raw *raw);

/* Are the netdev's frames such of Ethernet? Of another one's nothing can be made. */
bool sroce_raw_possible(const struct sroce_raw *raw);

/**
 * sroce_raw_allowed() - may the calling process see and send frames?
 * @raw: frames of a device
 * @net_cookie: the network namespace in which it may
 *
 * It takes what a packet socket takes there: CAP_NET_RAW in the network namespace of the
 * netdev. That may go to another one as soon as this has returned: what the process makes
 * then is good for frames of @net_cookie.
 *
 * Context: process, takes RTNL.
 * Return: 0, -EPERM, -EOPNOTSUPP when frames of the device are none of Ethernet, or
 * -ENODEV when it is going.
 */
int sroce_raw_allowed(struct sroce_raw *raw, u64 *net_cookie);

/**
 * sroce_raw_add_flow() - steer frames to a queue
 * @raw: frames of a device
 * @rule: which, and to whom
 * @net_cookie: of the QP; it has to be where the netdev is now
 *
 * The netdev's filter is told of addresses and groups that it would not take otherwise.
 *
 * Context: process, takes RTNL.
 * Return: the flow, or an ERR_PTR: of sroce_raw_allowed() and sroce_flow_table_add(), and
 * -ENOMEM.
 */
struct sroce_flow *sroce_raw_add_flow(struct sroce_raw *raw,
				      const struct sroce_flow_rule *rule,
				      u64 net_cookie);

/* End that. A frame that is just being received may still come. Context: process, takes RTNL. */
void sroce_raw_del_flow(struct sroce_raw *raw, struct sroce_flow *flow);

/* For struct sroce_port */
int sroce_raw_xmit(struct sroce_netport *port, const struct sroce_raw_tx *tx,
		   struct sroce_txq *txq);

/* Module end: no device is left */
void sroce_raw_exit(void);

#endif
