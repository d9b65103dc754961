// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of opcodes: what each says about its packet. On the way of every
 * packet, both when one is made and when one is read.
 */
#include <linux/bits.h>
#include <linux/errno.h>

#include "wire/opcode.h"
#include "wire/train.h"

#define ONLY (SROCE_START | SROCE_END)

#define ROW(_op, _hdr_len, _flags) {		\
		.op = SROCE_OP_##_op,		\
		.hdr_len = (_hdr_len),		\
		.flags = (_flags),		\
	}

static const struct sroce_opcode sroce_opcodes[256] = {
	[0x00] = ROW(SEND, 12, SROCE_START),
	[0x01] = ROW(SEND, 12, 0),
	[0x02] = ROW(SEND, 12, SROCE_END),
	[0x03] = ROW(SEND, 16, SROCE_END | SROCE_IMM),
	[0x04] = ROW(SEND, 12, ONLY),
	[0x05] = ROW(SEND, 16, ONLY | SROCE_IMM),
	[0x06] = ROW(WRITE, 28, SROCE_START | SROCE_RETH),
	[0x07] = ROW(WRITE, 12, 0),
	[0x08] = ROW(WRITE, 12, SROCE_END),
	[0x09] = ROW(WRITE, 16, SROCE_END | SROCE_IMM),
	[0x0a] = ROW(WRITE, 28, ONLY | SROCE_RETH),
	[0x0b] = ROW(WRITE, 32, ONLY | SROCE_RETH | SROCE_IMM),
	[0x0c] = ROW(READ, 28, ONLY | SROCE_RETH),
	[0x0d] = ROW(READ_RESP, 16, SROCE_START | SROCE_AETH),
	[0x0e] = ROW(READ_RESP, 12, 0),
	[0x0f] = ROW(READ_RESP, 16, SROCE_END | SROCE_AETH),
	[0x10] = ROW(READ_RESP, 16, ONLY | SROCE_AETH),
	[0x11] = ROW(ACK, 16, ONLY | SROCE_AETH),
	[0x12] = ROW(ATOMIC_ACK, 24, ONLY | SROCE_AETH | SROCE_ATOMICACK),
	[0x13] = ROW(CMP_SWAP, 40, ONLY | SROCE_ATOMICETH),
	[0x14] = ROW(FETCH_ADD, 40, ONLY | SROCE_ATOMICETH),
	[0x16] = ROW(SEND, 16, SROCE_END | SROCE_INV),
	[0x17] = ROW(SEND, 16, ONLY | SROCE_INV),
	[0x1c] = ROW(FLUSH, 32, ONLY | SROCE_FETH | SROCE_RETH),
	[0x1d] = ROW(ATOMIC_WRITE, 28, ONLY | SROCE_RETH),

	[0x20] = ROW(SEND, 12, SROCE_START),
	[0x21] = ROW(SEND, 12, 0),
	[0x22] = ROW(SEND, 12, SROCE_END),
	[0x23] = ROW(SEND, 16, SROCE_END | SROCE_IMM),
	[0x24] = ROW(SEND, 12, ONLY),
	[0x25] = ROW(SEND, 16, ONLY | SROCE_IMM),
	[0x26] = ROW(WRITE, 28, SROCE_START | SROCE_RETH),
	[0x27] = ROW(WRITE, 12, 0),
	[0x28] = ROW(WRITE, 12, SROCE_END),
	[0x29] = ROW(WRITE, 16, SROCE_END | SROCE_IMM),
	[0x2a] = ROW(WRITE, 28, ONLY | SROCE_RETH),
	[0x2b] = ROW(WRITE, 32, ONLY | SROCE_RETH | SROCE_IMM),

	[0x64] = ROW(SEND, 20, ONLY | SROCE_DETH),
	[0x65] = ROW(SEND, 24, ONLY | SROCE_DETH | SROCE_IMM),

	[0x81] = ROW(NOTIFY, SROCE_BTH_LEN + SROCE_CNP_LEN, ONLY),

	[0xa0] = ROW(SEND, 16, SROCE_START | SROCE_XRCETH),
	[0xa1] = ROW(SEND, 16, SROCE_XRCETH),
	[0xa2] = ROW(SEND, 16, SROCE_END | SROCE_XRCETH),
	[0xa3] = ROW(SEND, 20, SROCE_END | SROCE_XRCETH | SROCE_IMM),
	[0xa4] = ROW(SEND, 16, ONLY | SROCE_XRCETH),
	[0xa5] = ROW(SEND, 20, ONLY | SROCE_XRCETH | SROCE_IMM),
	[0xa6] = ROW(WRITE, 32, SROCE_START | SROCE_XRCETH | SROCE_RETH),
	[0xa7] = ROW(WRITE, 16, SROCE_XRCETH),
	[0xa8] = ROW(WRITE, 16, SROCE_END | SROCE_XRCETH),
	[0xa9] = ROW(WRITE, 20, SROCE_END | SROCE_XRCETH | SROCE_IMM),
	[0xaa] = ROW(WRITE, 32, ONLY | SROCE_XRCETH | SROCE_RETH),
	[0xab] = ROW(WRITE, 36, ONLY | SROCE_XRCETH | SROCE_RETH | SROCE_IMM),
	[0xac] = ROW(READ, 32, ONLY | SROCE_XRCETH | SROCE_RETH),
	[0xad] = ROW(READ_RESP, 16, SROCE_START | SROCE_AETH),
	[0xae] = ROW(READ_RESP, 12, 0),
	[0xaf] = ROW(READ_RESP, 16, SROCE_END | SROCE_AETH),
	[0xb0] = ROW(READ_RESP, 16, ONLY | SROCE_AETH),
	[0xb1] = ROW(ACK, 16, ONLY | SROCE_AETH),
	[0xb2] = ROW(ATOMIC_ACK, 24, ONLY | SROCE_AETH | SROCE_ATOMICACK),
	[0xb3] = ROW(CMP_SWAP, 44, ONLY | SROCE_XRCETH | SROCE_ATOMICETH),
	[0xb4] = ROW(FETCH_ADD, 44, ONLY | SROCE_XRCETH | SROCE_ATOMICETH),
	[0xb6] = ROW(SEND, 20, SROCE_END | SROCE_XRCETH | SROCE_INV),
	[0xb7] = ROW(SEND, 20, ONLY | SROCE_XRCETH | SROCE_INV),
	[0xbc] = ROW(FLUSH, 36, ONLY | SROCE_XRCETH | SROCE_FETH | SROCE_RETH),
	[0xbd] = ROW(ATOMIC_WRITE, 32, ONLY | SROCE_XRCETH | SROCE_RETH),
};

/*
 * The way back: operation, tail (IMM, INV) and place (START, END) to the low
 * five bits of the opcode. 0x1f is reserved in every service, and stored as 0
 * so that cells left out mean just that.
 */
#define NO_CODE 0x1f
#define CODE(x) ((x) ^ NO_CODE)
#define TAIL_IMM 1
#define TAIL_INV 2
#define PLACES(middle, first, last, only) {	\
		[0] = CODE(middle),		\
		[SROCE_START] = CODE(first),	\
		[SROCE_END] = CODE(last),	\
		[ONLY] = CODE(only),		\
	}
/* An operation of one packet, whatever place the sender gives it */
#define SINGLE(x) { { [0 ... ONLY] = CODE(x) } }

static const u8 sroce_opcode_codes[SROCE_OP_COUNT][4][ONLY + 1] = {
	[SROCE_OP_SEND] = {
		PLACES(0x01, 0x00, 0x02, 0x04),
		[TAIL_IMM] = PLACES(NO_CODE, NO_CODE, 0x03, 0x05),
		[TAIL_INV] = PLACES(NO_CODE, NO_CODE, 0x16, 0x17),
	},
	[SROCE_OP_WRITE] = {
		PLACES(0x07, 0x06, 0x08, 0x0a),
		[TAIL_IMM] = PLACES(NO_CODE, NO_CODE, 0x09, 0x0b),
	},
	[SROCE_OP_READ] = SINGLE(0x0c),
	[SROCE_OP_READ_RESP] = { PLACES(0x0e, 0x0d, 0x0f, 0x10) },
	[SROCE_OP_ACK] = SINGLE(0x11),
	[SROCE_OP_ATOMIC_ACK] = SINGLE(0x12),
	[SROCE_OP_CMP_SWAP] = SINGLE(0x13),
	[SROCE_OP_FETCH_ADD] = SINGLE(0x14),
	[SROCE_OP_FLUSH] = SINGLE(0x1c),
	[SROCE_OP_ATOMIC_WRITE] = SINGLE(0x1d),
	[SROCE_OP_NOTIFY] = SINGLE(0x01),
};

const struct sroce_opcode *sroce_opcode_info(u8 opcode)
{
	return &sroce_opcodes[opcode];
}

int sroce_opcode_find(enum sroce_service service, enum sroce_op op, u16 flags)
{
	u8 tail = (flags & SROCE_IMM ? TAIL_IMM : 0) |
		  (flags & SROCE_INV ? TAIL_INV : 0);
	u8 place = flags & ONLY;
	u8 opcode;

	if (service > SROCE_XRC || op == SROCE_OP_NONE || op >= SROCE_OP_COUNT)
		return -EINVAL;

	opcode = service << 5 | CODE(sroce_opcode_codes[op][tail][place]);
	return sroce_opcodes[opcode].op == op ? opcode : -EINVAL;
}
