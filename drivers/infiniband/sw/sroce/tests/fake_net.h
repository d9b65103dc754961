/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A network in memory for the transport's tests. Trains become single packets
 * of real bytes at once and wait in a queue, because they are sent under a lock
 * of their QP. The test's loop delivers them, or loses, repeats and reorders
 * them, by chance or by order of a filter.
 */
#ifndef SROCE_TESTS_FAKE_NET_H
#define SROCE_TESTS_FAKE_NET_H

#include <linux/list.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>

#include "path.h"
#include "transport/port.h"
#include "transport/seam.h"
#include "txq.h"

#define FAKE_NET_COOKIE 4711
#define FAKE_NET_LOG 512

struct fake_net;

/* A path of the transport, and the network that it leads into */
struct fake_path {
	struct sroce_path path;
	struct fake_net *net;
};

/**
 * struct fake_packet - a packet under way
 * @node: in @queue or @held of the network
 * @path: path it was sent on, held
 * @payer: socket of the sender's account, NULL for a copy or an injected packet
 * @charge: bytes charged to @payer
 * @len: bytes from BTH to ICRC
 * @judged: filter and chance have had their say
 * @marked: it has met congestion
 * @t: decoded again from @data, for filters
 * @data: BTH, headers, payload, pad, and four bytes instead of an ICRC
 */
struct fake_packet {
	struct list_head node;
	struct fake_path *path;
	struct sock *payer;
	u32 charge;
	u32 len;
	bool judged;
	bool marked;
	struct sroce_train t;
	u8 data[];
};

enum fake_verdict {
	FAKE_PASS,
	FAKE_DROP,
	FAKE_TWICE,
	FAKE_HOLD,	/* until fake_net_release() */
	FAKE_MARK,	/* passes, and has met congestion */
};

/* What was sent, before anything happened to it */
struct fake_log {
	const struct fake_path *path;
	unsigned int cpu;
	u8 op;
	u8 syndrome;
	u16 flags;
	u16 pkey;
	u32 dqpn;
	u32 psn;
	u32 len;
	u32 msn;
};

/**
 * struct fake_net - the network
 * @lock: protects @queue, @held, @log
 * @queue: packets in the order they were sent
 * @held: packets that a filter put aside
 * @rnd: decides everything that happens by chance
 * @drop: packets lost, per mille
 * @twice: packets delivered a second time later, per mille
 * @swap: packets that a younger one overtakes, per mille
 * @calm: nothing happens by chance for the moment
 * @batch: most packets that arrive together
 * @filter: decides about each packet before chance does, may be NULL
 * @arg: for @filter
 * @idle: time passes while no packet is under way; true when that has changed
 *	something. May be NULL
 * @open: buffers with trains that were not flushed
 * @sent: packets sent
 * @log: the last of them, a circle
 */
struct fake_net {
	spinlock_t lock;	/* of the lists and the log */
	struct list_head queue;
	struct list_head held;
	struct rnd_state rnd;
	u32 drop;
	u32 twice;
	u32 swap;
	bool calm;
	u32 batch;
	enum fake_verdict (*filter)(struct fake_net *net,
				    const struct fake_packet *p);
	void *arg;
	bool (*idle)(struct fake_net *net);
	atomic_t open;
	u32 sent;
	struct fake_log log[FAKE_NET_LOG];
};

extern const struct sroce_xmit_ops fake_net_xmit_ops;

void fake_net_init(struct fake_net *net, u64 seed);

/* Drop every packet there still is */
void fake_net_purge(struct fake_net *net);

/* Paths between two addresses, made of the numbers 1 to 255 */
void fake_path_init(struct fake_path *path, struct fake_net *net,
		    struct sroce_port *port, u8 from, u8 to);

/**
 * fake_net_next() - take the next packet off the network, whatever chance says
 * @net: network
 * @path: only if it was sent there; NULL: anywhere
 *
 * Return: the packet, for fake_packet_free(), or NULL.
 */
struct fake_packet *fake_net_next(struct fake_net *net,
				  const struct fake_path *path);
void fake_packet_free(struct fake_packet *p);

/*
 * As if there were so many bytes more of a QP in the stack's queues, until they are
 * given back. Nobody is told that there is room.
 */
void fake_txq_take(struct sroce_txq *txq, u32 bytes);
void fake_txq_give(struct sroce_txq *txq, u32 bytes);

/* More than it may have */
u32 fake_txq_fill(struct sroce_txq *txq);

/* Put a packet on its way that no QP sends; false without memory */
bool fake_net_inject(struct fake_path *path, const struct sroce_train *t);

/* Let what was held go, in front of everything else */
void fake_net_release(struct fake_net *net);

/**
 * fake_net_deliver() - deliver one batch of packets
 * @net: network
 *
 * Return: false when no packet was there, and nothing waited for a moment to pass.
 */
bool fake_net_deliver(struct fake_net *net);

/* No packet is under way: let a moment pass. False when nothing came of it. */
static inline bool fake_net_idle(struct fake_net *net)
{
	return net->idle && net->idle(net);
}

/* Deliver until nothing is under way any more */
void fake_net_settle(struct fake_net *net);

#endif
