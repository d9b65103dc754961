/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the opcode byte of a BTH means (IBA 9.2.1, table 38).
 */
#ifndef SROCE_WIRE_OPCODE_H
#define SROCE_WIRE_OPCODE_H

#include <linux/bits.h>
#include <linux/types.h>

/* Transport services: bits 7..5 of the opcode */
enum sroce_service {
	SROCE_RC = 0,
	SROCE_UC = 1,
	SROCE_RD = 2,
	SROCE_UD = 3,
	SROCE_CNP = 4,
	SROCE_XRC = 5,
	/* no packet has it */
	SROCE_NO_SERVICE = 8,
};

/* What a packet asks for, whatever its place in the message */
enum sroce_op {
	SROCE_OP_NONE,
	/* requests */
	SROCE_OP_SEND,
	SROCE_OP_WRITE,
	SROCE_OP_READ,
	SROCE_OP_CMP_SWAP,
	SROCE_OP_FETCH_ADD,
	SROCE_OP_FLUSH,
	SROCE_OP_ATOMIC_WRITE,
	/* responses */
	SROCE_OP_READ_RESP,
	SROCE_OP_ACK,
	SROCE_OP_ATOMIC_ACK,
	/* neither */
	SROCE_OP_NOTIFY,
	SROCE_OP_COUNT,
};

/* sroce_opcode.flags and sroce_train.flags: place in the message ... */
#define SROCE_START	BIT(0)	/* FIRST or ONLY */
#define SROCE_END	BIT(1)	/* LAST or ONLY */
/* ... and which extended headers it has */
#define SROCE_RETH	BIT(2)
#define SROCE_AETH	BIT(3)
#define SROCE_ATOMICETH	BIT(4)
#define SROCE_ATOMICACK	BIT(5)
#define SROCE_IMM	BIT(6)
#define SROCE_INV	BIT(7)
#define SROCE_DETH	BIT(8)
#define SROCE_XRCETH	BIT(9)
#define SROCE_FETH	BIT(10)
/* bits of the BTH, in sroce_train.flags only */
#define SROCE_SOLICITED	BIT(11)
#define SROCE_ACKREQ	BIT(12)
#define SROCE_BECN	BIT(13)
/*
 * the packet arrived with congestion experienced, or is sent as if it had met some (ecn.c),
 * in sroce_train.flags only
 */
#define SROCE_CE	BIT(14)
/* a train that is sent, and that queues may mark so (ECT), in sroce_train.flags only */
#define SROCE_ECT	BIT(15)

/**
 * struct sroce_opcode - one row of the opcode table
 * @op: what is asked for, SROCE_OP_NONE for a reserved opcode
 * @hdr_len: bytes of BTH and extended headers together
 * @flags: SROCE_START .. SROCE_FETH
 */
struct sroce_opcode {
	u8 op;
	u8 hdr_len;
	u16 flags;
};

/**
 * sroce_opcode_info() - look an opcode byte up
 * @opcode: first byte of the BTH, all 256 values allowed
 *
 * Return: the row, never NULL; op is SROCE_OP_NONE when the opcode is reserved.
 */
const struct sroce_opcode *sroce_opcode_info(u8 opcode);

/**
 * sroce_opcode_find() - the opcode byte for an operation
 * @service: transport service
 * @op: operation
 * @flags: place in the message (of no meaning for an operation that is always
 *	one packet) and SROCE_IMM or SROCE_INV; the rest is ignored
 *
 * Return: the opcode byte, or -EINVAL where there is no such packet.
 */
int sroce_opcode_find(enum sroce_service service, enum sroce_op op, u16 flags);

static inline bool sroce_op_is_response(enum sroce_op op)
{
	return op == SROCE_OP_READ_RESP || op == SROCE_OP_ACK ||
	       op == SROCE_OP_ATOMIC_ACK;
}

#endif
