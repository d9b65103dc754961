/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QPs for datagrams, which anybody may send to: two that listen, both members of a
 * multicast group, one that does not listen yet, and QP 1. Whatever comes, none of
 * them changes its state, and a datagram is received as it was sent or not at all.
 */
#ifndef SROCE_TESTS_FUZZ_DATAGRAM_H
#define SROCE_TESTS_FUZZ_DATAGRAM_H

#include "tests/fuzz.h"
#include "tests/transport_pair.h"

#define HALL_QPS 4
#define HALL_DEPTH 16
/* QP 1 takes datagrams of this size only */
#define HALL_MAD 256

/**
 * struct hall_qp - one of them
 * @ibqp: what ib_core would know
 * @qp: the QP
 * @recvs: receive work requests posted
 * @seen: completed
 * @room: bytes of each
 */
struct hall_qp {
	struct ib_qp ibqp;
	struct sroce_qp *qp;
	u32 recvs;
	u32 seen;
	u32 room[HALL_DEPTH];
};

/**
 * struct hall - all of them
 * @f: who runs it
 * @p: a pair whose side 0 lends port, memory and protection domain
 * @s: that side
 * @cq: their completions
 * @q: the QPs
 * @there: netdev that has the address of the host, for whoever asks (net/gsi.c); what comes
 *	through it is sent to QP 1 only. NULL: all comes through that of the stage
 * @dev: who answers management datagrams that are not for ib_cm
 * @mads: what is sent next
 * @got: datagrams received
 * @got_there: of those, through @there
 * @mads_got: of all, management datagrams
 * @answered: of those
 * @hits: packets by opcode
 */
struct hall {
	struct fuzz *f;
	struct pair *p;
	struct side *s;
	struct sroce_cq cq;
	struct hall_qp q[HALL_QPS];
	struct net_device *there;
	struct sroce_device *dev;
	u8 mads[FUZZ_PACKETS][HALL_MAD];
	u64 got;
	u64 got_there;
	u64 mads_got;
	u64 answered;
	u64 hits[256];
};

/* Everybody may send to QP 1 from 10.9.0.0/24, which is reached through a netdev like this */
#define HALL_ADDRESS 0x0a090001

void hall_open(struct hall *h, struct fuzz *f);
void hall_close(struct hall *h);

/* A few datagrams more */
void hall_step(struct hall *h);

/* A datagram to each still arrives, whatever has come before */
void hall_prove(struct hall *h);

#endif
