/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Frames of a device, for the files of this directory.
 */
#ifndef SROCE_RAW_INTERNAL_H
#define SROCE_RAW_INTERNAL_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "raw/flow.h"
#include "raw/later.h"
#include "raw/raw.h"

/**
 * struct sroce_raw_rest - what is left of a frame that was cut up; the worker's own
 * @parts: frames that have not been received yet; NULL: none
 * @cb: what was said of all
 * @f: headers of all, as they were before
 * @sums_ok: somebody says that their checksums are right
 */
struct sroce_raw_rest {
	struct sk_buff *parts;
	struct sroce_raw_cb cb;
	struct sroce_frame f;
	bool sums_ok;
};

/**
 * struct sroce_raw - frames of a device
 * @ndev: its netdev, which the device holds
 * @port: what the network layer knows of it
 * @open: frames may pass; changes under RTNL, is read under RCU
 * @net_cookie: network namespace, while @open
 * @table: flows; changes under RTNL
 * @hook: what the stack calls; registered from the first flow until a while after the last
 * @hooked: it is
 * @idle: takes it away
 * @flows: all of them, struct sroce_flow.device; under RTNL
 * @naddresses: that the netdev's filter was told of for them; under RTNL
 * @later: frames that wait for @work
 * @work: receives them
 * @rest: of the one that it has begun with
 */
struct sroce_raw {
	struct net_device *ndev;
	struct sroce_netport *port;
	bool open;
	u64 net_cookie;
	struct sroce_flow_table table;
	struct packet_type hook;
	bool hooked;
	struct delayed_work idle;
	struct list_head flows;
	u32 naddresses;
	struct sroce_raw_later later;
	struct work_struct work;
	struct sroce_raw_rest rest;
};

/* --- rx.c ------------------------------------------------------------------- */

/* For a new device */
void sroce_raw_rx_init(struct sroce_raw *raw);
/* Begin to receive; the first flow is about to be there. Context: RTNL. */
void sroce_raw_hook(struct sroce_raw *raw);
/* No frame is received any more on return. Context: RTNL, may sleep. */
void sroce_raw_unhook(struct sroce_raw *raw);

/**
 * sroce_raw_wanted() - is what a QP sends for flows of others on its device?
 * @raw: frames of a device that has flows
 * @skb: frame
 * @owner: of the QP
 *
 * Context: RCU; a QP's lock may be held.
 * Return: for how many.
 */
u32 sroce_raw_wanted(const struct sroce_raw *raw, const struct sk_buff *skb,
		     const void *owner);

/**
 * sroce_raw_loop() - offer what a QP has sent to the flows of others on its device
 * @raw: frames of a device that has flows
 * @skb: frame, the caller's alone; consumed
 * @owner: of the QP
 * @flows: of sroce_raw_wanted()
 *
 * Context: bottom halves off; a QP's lock may be held.
 */
void sroce_raw_loop(struct sroce_raw *raw, struct sk_buff *skb,
		    const void *owner, u32 flows);

#endif
