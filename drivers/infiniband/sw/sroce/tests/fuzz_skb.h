/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * From packets to packet buffers of every layout that the stack knows, and into
 * the driver.
 */
#ifndef SROCE_TESTS_FUZZ_SKB_H
#define SROCE_TESTS_FUZZ_SKB_H

#include <linux/netdevice.h>
#include <linux/prandom.h>

#include "tests/fuzz_packet.h"
#include "tests/fuzz_wait.h"
#include "transport/port.h"

#define FUZZ_TRAIN_BYTES 61440

/* Parts of a buffer, so that it has the 17 fragments that there may be at most */
#define FUZZ_PARTS 12

/**
 * struct fuzz_train - packets that are sent to one port, one after another
 * @n: their number
 * @len: their bytes
 * @size: of each
 * @bad_icrc: its ICRC is wrong
 * @bytes: BTH to ICRC of each
 */
struct fuzz_train {
	u32 n;
	u32 len;
	u16 size[FUZZ_PACKETS];
	bool bad_icrc[FUZZ_PACKETS];
	u8 bytes[FUZZ_TRAIN_BYTES];
};

/**
 * struct fuzz_envelope - what is around the packets
 * @src: sender's address, IPv4 is v4-mapped
 * @dst: receiver's address
 * @pkt_type: how the frame was addressed
 * @v1: RoCE v1; otherwise v2 over the IP of @dst
 * @faults: IP and UDP headers, and the cut into packets, may be wrong too
 */
struct fuzz_envelope {
	union ib_gid src;
	union ib_gid dst;
	u8 pkt_type;
	bool v1;
	bool faults;
};

/* Buffers are made here, one at a time */
struct fuzz_stage {
	struct rnd_state *rnd;
	struct net_device *ndev;
	struct fuzz_wait *wait;	/* NULL: nothing waits */
	bool stuck;	/* what waits has no end */
	u64 buffers;
	u64 parts;	/* in which they were received */
	u64 trains;	/* buffers of several packets */
	u64 in_parts;	/* buffers with page fragments, or a list of buffers */
	u8 bytes[ETH_HLEN + 40 + 8 + FUZZ_TRAIN_BYTES + 64];
};

/* Add a packet; false when there is no room. Packets without a whole BTH have no ICRC. */
bool fuzz_train_add(struct fuzz_train *t, const u8 *packet, u32 len,
		    bool bad_icrc);

/**
 * fuzz_send() - have the driver receive a train
 * @st: stage
 * @port: device that it arrives at
 * @env: envelope
 * @t: packets; empty afterwards
 *
 * Equal packets share a buffer, mostly. Unless bottom halves are off, buffers may wait
 * for their turn, and wrong ones come twice; at the end all have been received.
 *
 * Return: packets that the driver got; 0 when memory ran out.
 */
u32 fuzz_send(struct fuzz_stage *st, struct sroce_port *port,
	      const struct fuzz_envelope *env, struct fuzz_train *t);

/* --- layouts; what is half-made when there is no memory is whole enough to be freed ---------- */

struct sk_buff *fuzz_linear(const u8 *from, u32 len);
/* @len: FUZZ_PARTS pages at most. Return: false without memory, as below */
bool fuzz_add_frags(struct rnd_state *rnd, struct sk_buff *skb, const u8 *from,
		    u32 len, u32 parts);
/* A list of buffers of any length, with or without fragments */
bool fuzz_add_list(struct rnd_state *rnd, struct sk_buff *skb, const u8 *from,
		   u32 len);

#endif
