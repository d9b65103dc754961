/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What all parts of a round of attacks share.
 */
#ifndef SROCE_TESTS_FUZZ_H
#define SROCE_TESTS_FUZZ_H

#include <kunit/test.h>
#include <linux/prandom.h>

#include "tests/fuzz_skb.h"

#define FUZZ_LOG 16

/* Module parameters: how many packets, 0: a few; seed of the first round, 0: any */
extern ulong fuzz_packets, fuzz_seed;

/* A packet of the attack, for whoever looks for the cause of a failure */
struct fuzz_log {
	const char *pen;
	u8 side;
	u8 state;
	struct fuzz_packet p;
};

/**
 * struct fuzz - a round
 * @test: whose
 * @rnd: decides everything
 * @seed: of @rnd
 * @failed: something was wrong: the round ends
 * @packets: that the driver got in this round
 * @slowed: notifications of congestion that a QP has heeded
 * @taken: packets that came alone and that a QP went on with, by opcode
 * @refused: likewise those that it did not go on with, or ended with an error
 * @taken_before: @taken of all rounds before, when what is missing is to come; or NULL
 * @refused_before: likewise
 * @strangers: numbers of QPs, to send to the wrong one
 * @ibdev: of memory on demand
 * @stage: where buffers are made
 * @train: what is sent next
 * @p: packets that are made up
 * @bytes: one of them
 * @log: the last packets of the attack, a circle
 * @nlog: how many there were
 */
struct fuzz {
	struct kunit *test;
	struct rnd_state rnd;
	u64 seed;
	bool failed;
	u64 packets;
	u64 slowed;
	u64 taken[256];
	u64 refused[256];
	const u64 *taken_before;
	const u64 *refused_before;
	u32 strangers[FUZZ_STRANGERS];
	struct ib_device *ibdev;
	struct fuzz_stage stage;
	struct fuzz_train train;
	struct fuzz_packet p[FUZZ_PACKETS];
	u8 bytes[FUZZ_PACKET_LEN];
	struct fuzz_log log[FUZZ_LOG];
	u32 nlog;
};

/* Something that must be true is not: say it once, with the last packets */
void fuzz_fail(struct fuzz *f, const char *who, const char *what, u64 a, u64 b);

static inline void fuzz_check(struct fuzz *f, bool ok, const char *who,
			      const char *what, u64 a, u64 b)
{
	if (unlikely(!ok) && !f->failed)
		fuzz_fail(f, who, what, a, b);
}

#endif
