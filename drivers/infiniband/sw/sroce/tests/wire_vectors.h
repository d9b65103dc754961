/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whole Ethernet frames and what is in them. A to M were computed by a second
 * implementation; X1 to X3 were captured from ConnectX adapters, S is in
 * scapy's tests.
 */
#ifndef SROCE_TESTS_WIRE_VECTORS_H
#define SROCE_TESTS_WIRE_VECTORS_H

#include "wire/train.h"

#define ONLY (SROCE_START | SROCE_END)
#define IMM(x) cpu_to_be32(x)

struct wire_vector {
	const char *name;
	const char *frame;
	u32 hdr_len;
	struct sroce_train t;
};

static const struct wire_vector wire_vectors[] = {
	{
		.name = "A: RC SEND_ONLY over IPv4, solicited, pad 3",
		.frame =
			"0200000000020200000000010800456a0034123440004011a417c0000201c0000202c12312b70020000004f0ffff00000012800000ff68656c6c6f0000009c3fc482",
		.hdr_len = 12,
		.t = {
			.op = SROCE_OP_SEND, .service = SROCE_RC,
			.flags = ONLY | SROCE_SOLICITED | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 5,
			.dqpn = 0x12, .psn = 0xff,
		},
	},
	{
		.name = "B: RC ACKNOWLEDGE over IPv4",
		.frame =
			"020000000001020000000002080045680030000140004011b650c0000202c0000201c12312b7001c00001140ffff00000011000000ff1f000001b295398b",
		.hdr_len = 16,
		.t = {
			.op = SROCE_OP_ACK, .service = SROCE_RC,
			.flags = ONLY | SROCE_AETH,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x11, .psn = 0xff, .syndrome = 0x1f,
			.msn = 1,
		},
	},
	{
		.name = "C: NAK of a sequence error",
		.frame =
			"020000000001020000000002080045680030000240004011b64fc0000202c0000201c12312b7001c00001140ffff000000110000010060000001aa2dc66a",
		.hdr_len = 16,
		.t = {
			.op = SROCE_OP_ACK, .service = SROCE_RC,
			.flags = ONLY | SROCE_AETH,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x11, .psn = 0x100, .syndrome = 0x60,
			.msn = 1,
		},
	},
	{
		.name = "D: RC WRITE_ONLY_IMM over IPv6",
		.frame =
			"02000000000202000000000186dd66a123450034114020010db800000000000000000000000120010db8000000000000000000000002fedc12b7003400000b40ffff00abcdef80fffffe00007f001234500000001a2b00000008deadbeef0001020304050607ec7c49ce",
		.hdr_len = 32,
		.t = {
			.op = SROCE_OP_WRITE, .service = SROCE_RC,
			.flags = ONLY | SROCE_RETH | SROCE_IMM | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 8,
			.dqpn = 0xabcdef, .psn = 0xfffffe,
			.va = 0x7f0012345000, .rkey = 0x1a2b, .dma_len = 8,
			.imm = IMM(0xdeadbeef),
		},
	},
	{
		.name = "D2: the same with its UDP checksum",
		.frame =
			"02000000000202000000000186dd66a123450034114020010db800000000000000000000000120010db8000000000000000000000002fedc12b700345c430b40ffff00abcdef80fffffe00007f001234500000001a2b00000008deadbeef0001020304050607ec7c49ce",
		.hdr_len = 32,
		.t = {
			.op = SROCE_OP_WRITE, .service = SROCE_RC,
			.flags = ONLY | SROCE_RETH | SROCE_IMM | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 8,
			.dqpn = 0xabcdef, .psn = 0xfffffe,
			.va = 0x7f0012345000, .rkey = 0x1a2b, .dma_len = 8,
			.imm = IMM(0xdeadbeef),
		},
	},
	{
		.name = "E: UD SEND_ONLY over RoCE v1 between QPs 1",
		.frame =
			"020000000002020000000001891560000000001c1b01fe80000000000000000000fffe000001fe80000000000000000000fffe0000026450ffff00000001000000078001000000000001414243004bc78fb1",
		.hdr_len = 20,
		.t = {
			.op = SROCE_OP_SEND, .service = SROCE_UD,
			.flags = ONLY | SROCE_DETH,
			.pkey = 0xffff, .bi.bi_size = 3,
			.dqpn = 1, .psn = 7, .qkey = 0x80010000, .sqpn = 1,
		},
	},
	{
		.name = "F: empty RC SEND_ONLY over RoCE v1",
		.frame =
			"0200000000020200000000018915668abcde00101b01fe80000000000000000000fffe000001fe80000000000000000000fffe0000020440ffff00000100800000013ccfcff2",
		.hdr_len = 12,
		.t = {
			.op = SROCE_OP_SEND, .service = SROCE_RC,
			.flags = ONLY | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x100, .psn = 1,
		},
	},
	{
		.name = "G: CNP over IPv4",
		.frame =
			"020000000001020000000002080045c2003c000340004011b5e8c0000202c0000201c12312b7002800008100ffff40000012000000000000000000000000000000000000000036310e73",
		.hdr_len = 28,
		.t = {
			.op = SROCE_OP_NOTIFY, .service = SROCE_CNP,
			.flags = ONLY | SROCE_BECN,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x12, .psn = 0,
		},
	},
	{
		.name = "H: FLUSH",
		.frame =
			"020000000002020000000001080045000040000440004011b6a5c0000201c0000202c12312b7002c00001c40ffff00000012800000050000000100000000000010000000010000000040bbe574b3",
		.hdr_len = 32,
		.t = {
			.op = SROCE_OP_FLUSH, .service = SROCE_RC,
			.flags = ONLY | SROCE_FETH | SROCE_RETH | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x12, .psn = 5, .feth = 1, .va = 0x1000,
			.rkey = 0x100, .dma_len = 64,
		},
	},
	{
		.name = "I: ATOMIC_WRITE",
		.frame =
			"020000000002020000000001080045000044000540004011b6a0c0000201c0000202c12312b7003000001d40ffff0000001280000006000000000000100000000100000000080102030405060708a51b4d6f",
		.hdr_len = 28,
		.t = {
			.op = SROCE_OP_ATOMIC_WRITE, .service = SROCE_RC,
			.flags = ONLY | SROCE_RETH | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 8,
			.dqpn = 0x12, .psn = 6, .va = 0x1000, .rkey = 0x100,
			.dma_len = 8,
		},
	},
	{
		.name = "J: CNP over IPv6",
		.frame =
			"02000000000102000000000286dd6c2000000028114020010db800000000000000000000000220010db8000000000000000000000001fedc12b7002800008100ffff40abcdef00000000000000000000000000000000000000002841f3b4",
		.hdr_len = 28,
		.t = {
			.op = SROCE_OP_NOTIFY, .service = SROCE_CNP,
			.flags = ONLY | SROCE_BECN,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0xabcdef, .psn = 0,
		},
	},
	{
		.name = "K: READ_REQUEST",
		.frame =
			"02000000000202000000000108004500003c000640004011b6a7c0000201c0000202c12312b7002800000c40ffff0000001280fffffe000000000001000000000155000030012e82207a",
		.hdr_len = 28,
		.t = {
			.op = SROCE_OP_READ, .service = SROCE_RC,
			.flags = ONLY | SROCE_RETH | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x12, .psn = 0xfffffe, .va = 0x10000,
			.rkey = 0x155, .dma_len = 0x3001,
		},
	},
	{
		.name = "L: XRC SEND_ONLY",
		.frame =
			"020000000002020000000001080045000038000740004011b6aac0000201c0000202c12312b700240000a470ffff00000012800000070000003368656c6c6f0000006dbc9b09",
		.hdr_len = 16,
		.t = {
			.op = SROCE_OP_SEND, .service = SROCE_XRC,
			.flags = ONLY | SROCE_XRCETH | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 5,
			.dqpn = 0x12, .psn = 7, .srqn = 0x33,
		},
	},
	{
		.name = "M: COMPARE_SWAP",
		.frame =
			"020000000002020000000001080045000048000840004011b699c0000201c0000202c12312b7003400001340ffff000000128000000800000000000100080000015511111111222222223333333344444444c2884b8d",
		.hdr_len = 40,
		.t = {
			.op = SROCE_OP_CMP_SWAP, .service = SROCE_RC,
			.flags = ONLY | SROCE_ATOMICETH | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x12, .psn = 8, .va = 0x10008, .rkey = 0x155,
			.swap_add = 0x1111111122222222,
			.compare = 0x3333333344444444,
		},
	},
	{
		.name = "X1: CNP of a ConnectX-4 Lx",
		.frame =
			"e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff40000118000000000000000000000000000000000000000082fd002a",
		.hdr_len = 28,
		.t = {
			.op = SROCE_OP_NOTIFY, .service = SROCE_CNP,
			.flags = ONLY | SROCE_BECN,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x118, .psn = 0,
		},
	},
	{
		.name = "X2: RC WRITE_ONLY of a ConnectX over RoCE v1",
		.frame =
			"7cfe90753cd87cfe90753cd889156020000000281b4000000000000000000000ffff0f00000200000000000000000000ffff0f0000020a70ffff0000010a80a788bc000055d4c0726000000047b3000000050000000001000000e3d856bb",
		.hdr_len = 28,
		.t = {
			.op = SROCE_OP_WRITE, .service = SROCE_RC,
			.flags = ONLY | SROCE_RETH | SROCE_ACKREQ,
			.pkey = 0xffff, .bi.bi_size = 5,
			.dqpn = 0x10a, .psn = 0xa788bc, .va = 0x55d4c0726000,
			.rkey = 0x47b3, .dma_len = 5,
		},
	},
	{
		.name = "X3: RC ACKNOWLEDGE of a ConnectX over RoCE v1",
		.frame =
			"7cfe90753cd87cfe90753cd889156020000000141b4000000000000000000000ffff0f00000200000000000000000000ffff0f0000021140ffff0000010900a788c00000000525f0c038",
		.hdr_len = 16,
		.t = {
			.op = SROCE_OP_ACK, .service = SROCE_RC,
			.flags = ONLY | SROCE_AETH,
			.pkey = 0xffff, .bi.bi_size = 0,
			.dqpn = 0x109, .psn = 0xa788c0, .syndrome = 0,
			.msn = 5,
		},
	},
	{
		.name = "S: UC SEND_ONLY of scapy's tests",
		.frame =
			"248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007c00012b7002c00002460ffff000000d300cf17104630818be28935d90e9a95505401be885e50000078f353f3",
		.hdr_len = 12,
		.t = {
			.op = SROCE_OP_SEND, .service = SROCE_UC,
			.flags = ONLY,
			.pkey = 0xffff, .bi.bi_size = 18,
			.dqpn = 211, .psn = 13571856,
		},
	},
};

#endif
