/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Flows: which frames a queue receives.
 */
#ifndef SROCE_RAW_FLOW_H
#define SROCE_RAW_FLOW_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/siphash.h>
#include <linux/types.h>

#include "raw/frame.h"

struct sroce_qp;
struct sroce_rss;

/* Flows of a device */
#define SROCE_FLOWS_MOST 32768
/*
 * Combinations of a priority and a choice of fields: each is a look-up for each frame that
 * no flow before it takes
 */
#define SROCE_FLOW_SHAPES 64
/*
 * Flows of each class that one frame is for at most; those behind do not see it. So there
 * are no more that say just the same
 */
#define SROCE_FLOW_COPIES 16
/* Of flows, shapes and flows that say the same, one in so many is kept for CAP_SYS_RESOURCE */
#define SROCE_FLOW_RESERVED 8

/* Whoever has many flows of one class keeps no frame from those of the others */
enum sroce_flow_class {
	SROCE_FLOW_SEES,	/* a sniffer */
	SROCE_FLOW_PASSES,	/* one that does not trap */
	SROCE_FLOW_TAKES,
	SROCE_FLOW_CLASSES
};

/**
 * struct sroce_flow_counts - what the flows of an application have seen
 * @refs: of its object, and one for each flow
 * @packets: frames
 * @bytes: of them
 */
struct sroce_flow_counts {
	struct kref refs;
	atomic64_t packets;
	atomic64_t bytes;
};

/* Return: counts with one reference, or NULL. Context: process. */
struct sroce_flow_counts *sroce_flow_counts_alloc(void);
/* NULL is fine. Context: any. */
void sroce_flow_counts_put(struct sroce_flow_counts *c);

/* Which frames a flow is for, in the order in which a frame meets them */
enum sroce_flow_type {
	SROCE_FLOW_SNIFFER,	/* all, and nobody else notices */
	SROCE_FLOW_NORMAL,	/* what @key and @mask say */
	SROCE_FLOW_MULTICAST,	/* groups' and broadcasts that no flow has taken */
	SROCE_FLOW_DEFAULT,	/* all that no flow has taken */
	SROCE_FLOW_TYPES
};

/**
 * struct sroce_flow_rule - what an application asks for
 * @type: an enum sroce_flow_type
 * @priority: flows with a lower one come first
 * @key: what the fields are to be; 0 where they do not matter
 * @mask: bits that matter
 * @tag: for the completion
 * @drop: the frames are for nobody
 * @dont_trap: they are for others, too
 * @qp: whose they are
 * @rss: or a table of work queues that share them
 * @owner: of the QP: its own frames do not come back to it
 * @counts: where they count; NULL: nowhere. The flow takes a reference
 */
struct sroce_flow_rule {
	enum sroce_flow_type type;
	u16 priority;
	struct sroce_flow_key key;
	struct sroce_flow_key mask;
	u32 tag;
	bool drop;
	bool dont_trap;
	struct sroce_qp *qp;
	struct sroce_rss *rss;
	const void *owner;
	struct sroce_flow_counts *counts;
};

/**
 * struct sroce_flow_shape - flows that have priority and fields in common
 * @node: in the table, in the order of priorities; RCU
 * @priority: theirs
 * @mask: their fields
 * @salt: of their hash, so that shapes do not share buckets
 * @flows: their number
 * @rcu: freed after a grace period
 */
struct sroce_flow_shape {
	struct list_head node;
	u16 priority;
	struct sroce_flow_key mask;
	u32 salt;
	u32 flows;
	struct rcu_head rcu;
};

/**
 * struct sroce_flow - a flow
 * @rule: what was asked for
 * @spare: SROCE_FLOW_NORMAL: for @shape, if there is none yet that it could have
 * @shape: SROCE_FLOW_NORMAL: what it has in common with others
 * @hash: SROCE_FLOW_NORMAL: in the table's buckets; RCU
 * @other: else in one of the table's lists; RCU
 * @listed: it is in the table
 * @device: in the list of all flows of the device
 * @filter: what the netdev's filter was told for it
 * @rcu: freed after a grace period
 */
struct sroce_flow {
	struct sroce_flow_rule rule;
	struct sroce_flow_shape *spare;
	struct sroce_flow_shape *shape;
	struct hlist_node hash;
	struct list_head other;
	bool listed;
	struct list_head device;
	u8 filter;
	struct rcu_head rcu;
};

/**
 * struct sroce_flow_table - the flows of a device
 * @shapes: struct sroce_flow_shape by priority; the older one first among equals
 * @nshapes: their number
 * @others: flows of the types that have no shape, the oldest first
 * @nothers: their numbers
 * @flows: number of all
 * @buckets: flows by their shape and fields; NULL before the first flow of any type
 * @secret: of the hash, so that nobody can fill one bucket
 *
 * One at a time changes it; anybody looks at it under RCU.
 */
struct sroce_flow_table {
	struct list_head shapes;
	u32 nshapes;
	struct list_head others[SROCE_FLOW_TYPES];
	u32 nothers[SROCE_FLOW_TYPES];
	u32 flows;
	struct hlist_head *buckets;
	hsiphash_key_t secret;
};

void sroce_flow_table_init(struct sroce_flow_table *t);
/* Context: process; no flow is left, and nobody looks */
void sroce_flow_table_end(struct sroce_flow_table *t);

/**
 * sroce_flow_alloc() - make a flow
 * @rule: what it is to do
 *
 * Context: process.
 * Return: a flow in no table, or NULL.
 */
struct sroce_flow *sroce_flow_alloc(const struct sroce_flow_rule *rule);

/**
 * sroce_flow_prepare() - allocate what it may take to put a flow into a table
 * @flow: with its rule. sroce_flow_alloc() has done it for those that it has made
 *
 * Flows come into the table under a lock that the whole host may wait for (RTNL), and memory
 * that a process is charged for can take as long as its memory cgroup likes.
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int sroce_flow_prepare(struct sroce_flow *flow);

/* The flow is in no table any more; who has found it under RCU goes on. NULL is fine. */
void sroce_flow_free(struct sroce_flow *flow);

/**
 * sroce_flow_table_add() - put a flow into the table
 * @t: table
 * @flow: from sroce_flow_alloc()
 * @last: also of what is kept for the administrator
 *
 * Context: process, serialised by the caller.
 * Return: 0, -ENOSPC for too many flows, shapes or flows that say just the same, or -ENOMEM
 * for the first flow of all.
 */
int sroce_flow_table_add(struct sroce_flow_table *t, struct sroce_flow *flow,
			 bool last);

/* Take one out, if it is there. Context: as above. */
void sroce_flow_table_del(struct sroce_flow_table *t, struct sroce_flow *flow);

/**
 * struct sroce_flows_found - whom a frame is for
 * @flow: flows, in their order; valid under RCU
 * @n: their number
 * @of: of each class
 */
struct sroce_flows_found {
	struct sroce_flow *flow[SROCE_FLOW_CLASSES * SROCE_FLOW_COPIES];
	u32 n;
	u8 of[SROCE_FLOW_CLASSES];
};

/**
 * sroce_flow_sniffers() - find the flows that see all frames
 * @t: table
 * @found: they are added there
 *
 * Context: RCU.
 */
void sroce_flow_sniffers(const struct sroce_flow_table *t,
			 struct sroce_flows_found *found);

/**
 * sroce_flow_match() - find the flows that a frame is for, but the sniffers
 * @t: table
 * @key: of the frame
 * @sender: whose own flows do not see it; NULL: it was received
 * @found: they are added there. The last of them may say that it is dropped
 *
 * Flows are met in the order of their priorities, and those of one priority in the order
 * in which the first of their shape was made. The first takes the frame, together with all
 * others that say just the same; one that does not trap lets it go on.
 *
 * Context: RCU.
 */
void sroce_flow_match(const struct sroce_flow_table *t,
		      const struct sroce_flow_key *key, const void *sender,
		      struct sroce_flows_found *found);

#endif
