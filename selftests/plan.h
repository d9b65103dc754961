/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * plan: what one queue pair does in one round, computed alike on both sides
 * from the seed. It gives every message its place in memory, and says what all
 * of that memory must look like when the round is over: bytes that no message
 * may touch are part of the picture.
 */
#ifndef PLAN_H
#define PLAN_H

#include "vt.h"

enum op_kind {
	OP_SEND,
	OP_SEND_IMM,
	OP_SEND_INV,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_READ,
	OP_CAS,
	OP_FADD,
	OP_COUNT, /* FETCH_ADD of 1 to a counter that all queue pairs share */
	OP_KINDS,
};

extern const char *const op_names[OP_KINDS];

struct op {
	enum op_kind kind;
	uint32_t len;
	/* where the message is in the requester's and in the responder's area */
	uint32_t local, remote;
	uint8_t local_sges, remote_sges;
	/* untouched bytes between two scatter/gather elements */
	uint8_t gap;
	/* the receive is larger than the message by this much */
	uint8_t spare;
	bool signaled, want_inline, solicited, fence;
	/* reads back what an earlier WRITE of this round has written */
	bool reread;
	uint32_t imm;
	/* names the pattern in the message */
	uint64_t key;
	/* atomics: operands, and the value before */
	uint64_t add, compare, swap, old;
};

struct plan {
	struct op *ops;
	uint32_t n, max;
};

/* the same on both sides; the client's command line decides */
struct plan_cfg {
	uint64_t seed;
	/* bit mask of 1 << enum op_kind */
	uint32_t kinds;
	uint32_t size_max;
	/* bytes of an RDMA READ, at least */
	uint32_t read_min;
	uint32_t batch;
	uint32_t sges;
};

/* bytes of one area (all messages of one queue pair in one direction) */
uint32_t plan_area(const struct plan_cfg *cfg);

/* @stream: differs by round, queue pair and direction; @mtu: of the path */
void plan_make(struct plan *plan, const struct plan_cfg *cfg, uint64_t stream, uint32_t mtu);

/*
 * Fill @mem as it must be at the start of a round, @want as it must be at its
 * end; @max_inline: of the requester's queue pair.
 */
void plan_local(const struct plan *plan, const struct plan_cfg *cfg, uint32_t max_inline,
		uint8_t *mem, uint8_t *want);
void plan_remote(const struct plan *plan, const struct plan_cfg *cfg, uint8_t *mem, uint8_t *want);

bool op_is_inline(const struct op *op, uint32_t max_inline);
bool op_takes_recv(const struct op *op);
bool op_is_atomic(const struct op *op);

/* scatter/gather element @i of @n over @len bytes at @offset */
struct piece {
	uint32_t offset, pos, len;
};
struct piece op_piece(uint32_t offset, uint32_t len, uint8_t gap, int n, int i);

/* what the source of an inline message is overwritten with once it is posted */
#define INLINE_SCRIBBLE 0xee

#endif
