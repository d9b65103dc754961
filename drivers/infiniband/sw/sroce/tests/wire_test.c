// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Opcodes, headers and ICRC: packets of the standard to trains and back, and what
 * is refused. Needs neither QP nor network.
 */
#include <kunit/test.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kernel.h>
#include <linux/random.h>
#include <linux/string.h>
#include <linux/udp.h>

#include "compat.h"
#include "tests/wire_vectors.h"
#include "wire/icrc.h"

#define ETHERTYPE_ROCE_V1 0x8915
#define MAX_FRAME 128

/* A vector taken apart; the headers are copied to where they are aligned */
struct frame {
	u8 bytes[MAX_FRAME];
	u32 len;
	u16 ethertype;
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} l3;
	u32 l3_len;
	struct udphdr udp;
	u32 bth;	/* offset */
	u32 bth_len;	/* to the ICRC inclusive */
};

/* Fill in all but bytes and len, from them */
static void frame_parse(struct frame *f)
{
	f->ethertype = get_unaligned_be16(f->bytes + 12);
	f->l3_len = f->ethertype == ETH_P_IP ? sizeof(f->l3.v4) :
					       sizeof(f->l3.v6);
	memcpy(&f->l3, f->bytes + ETH_HLEN, f->l3_len);
	f->bth = ETH_HLEN + f->l3_len;
	if (f->ethertype != ETHERTYPE_ROCE_V1) {
		memcpy(&f->udp, f->bytes + f->bth, sizeof(f->udp));
		f->bth += sizeof(f->udp);
	}
	f->bth_len = f->len - f->bth;
}

static u8 nibble(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void frame_init(struct kunit *test, struct frame *f,
		       const struct wire_vector *v)
{
	u32 i;

	f->len = strlen(v->frame) / 2;
	KUNIT_ASSERT_LE(test, f->len, MAX_FRAME);
	for (i = 0; i < f->len; i++)
		f->bytes[i] = nibble(v->frame[2 * i]) << 4 |
			      nibble(v->frame[2 * i + 1]);
	frame_parse(f);
}

static u32 crc_by_bits(u32 crc, const u8 *p, size_t len)
{
	int i;

	while (len--) {
		crc ^= *p++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

static __le32 frame_icrc(const struct frame *f, u32 hdr_len)
{
	const u8 *bth = f->bytes + f->bth;
	u32 crc;

	switch (f->ethertype) {
	case ETH_P_IP:
		crc = sroce_icrc_ipv4(&f->l3.v4, &f->udp);
		break;
	case ETH_P_IPV6:
		crc = sroce_icrc_ipv6(&f->l3.v6, &f->udp);
		break;
	default:
		crc = sroce_icrc_grh(&f->l3.v6);
	}
	crc = sroce_icrc_bth(crc, bth, hdr_len);
	crc = sroce_icrc_data(crc, bth + hdr_len,
			      f->bth_len - hdr_len - SROCE_ICRC_LEN);
	return sroce_icrc_final(crc);
}

static __le32 frame_wire_icrc(const struct frame *f)
{
	return cpu_to_le32(get_unaligned_le32(f->bytes + f->len -
					      SROCE_ICRC_LEN));
}

static bool frame_icrc_ok(const struct frame *f, u32 hdr_len)
{
	return frame_icrc(f, hdr_len) == frame_wire_icrc(f);
}

static void vector_name(const struct wire_vector *v, char *name)
{
	strscpy(name, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wire_vector, wire_vectors, vector_name);

static void expect_headers(struct kunit *test, const struct sroce_train *a,
			   const struct sroce_train *b)
{
	u16 flags = b->flags;

	if (flags & SROCE_XRCETH)
		KUNIT_EXPECT_EQ(test, a->srqn, b->srqn);
	if (flags & SROCE_DETH) {
		KUNIT_EXPECT_EQ(test, a->qkey, b->qkey);
		KUNIT_EXPECT_EQ(test, a->sqpn, b->sqpn);
	}
	if (flags & SROCE_FETH)
		KUNIT_EXPECT_EQ(test, a->feth, b->feth);
	if (flags & (SROCE_RETH | SROCE_ATOMICETH)) {
		KUNIT_EXPECT_EQ(test, a->va, b->va);
		KUNIT_EXPECT_EQ(test, a->rkey, b->rkey);
	}
	if (flags & SROCE_RETH)
		KUNIT_EXPECT_EQ(test, a->dma_len, b->dma_len);
	if (flags & SROCE_ATOMICETH)
		KUNIT_EXPECT_EQ(test, a->swap_add, b->swap_add);
	if (flags & (SROCE_ATOMICETH | SROCE_ATOMICACK))
		KUNIT_EXPECT_EQ(test, a->compare, b->compare);
	if (flags & SROCE_AETH) {
		KUNIT_EXPECT_EQ(test, a->syndrome, b->syndrome);
		KUNIT_EXPECT_EQ(test, a->msn, b->msn);
	}
	if (flags & SROCE_IMM)
		KUNIT_EXPECT_EQ(test, (__force u32)a->imm, (__force u32)b->imm);
	if (flags & SROCE_INV)
		KUNIT_EXPECT_EQ(test, a->inv_rkey, b->inv_rkey);
}

/* @b was put together by the test, @a came out of sroce_packet_decode() */
static void expect_packet(struct kunit *test, const struct sroce_train *a,
			  const struct sroce_train *b)
{
	KUNIT_EXPECT_EQ(test, a->op, b->op);
	KUNIT_EXPECT_EQ(test, a->service, b->service);
	KUNIT_EXPECT_EQ(test, a->flags, b->flags);
	KUNIT_EXPECT_EQ(test, a->pkey, b->pkey);
	KUNIT_EXPECT_EQ(test, a->dqpn, b->dqpn);
	KUNIT_EXPECT_EQ(test, a->psn, b->psn);
	KUNIT_EXPECT_EQ(test, a->bi.bi_size, b->bi.bi_size);
	KUNIT_EXPECT_EQ(test, a->npkts, 1);
	KUNIT_EXPECT_EQ(test, a->mtu, 0);
	expect_headers(test, a, b);
}

static void vector_decode(struct kunit *test)
{
	const struct wire_vector *v = test->param_value;
	struct sroce_train t;
	struct frame f;

	frame_init(test, &f, v);
	memset(&t, 0xa5, sizeof(t));
	KUNIT_EXPECT_EQ(test, sroce_packet_decode(&t, f.bytes + f.bth,
						  f.bth_len, f.bth_len),
			v->hdr_len);
	expect_packet(test, &t, &v->t);
}

static void vector_encode(struct kunit *test)
{
	const struct wire_vector *v = test->param_value;
	struct sroce_train t = v->t;
	u8 buf[SROCE_MAX_HDR_LEN];
	struct frame f;
	u8 *bth;

	frame_init(test, &f, v);
	bth = f.bytes + f.bth;
	/* As older adapters and rxe send it; sroce says "migrated" */
	if (t.op != SROCE_OP_NOTIFY)
		bth[1] |= 0x40;

	t.npkts = 1;
	t.mtu = 4096;
	KUNIT_EXPECT_EQ(test, sroce_train_hdr_len(&t, 0), v->hdr_len);
	KUNIT_EXPECT_EQ(test, sroce_train_encode(&t, 0, buf), v->hdr_len);
	KUNIT_EXPECT_MEMEQ(test, buf, bth, v->hdr_len);
}

static void vector_icrc(struct kunit *test)
{
	const struct wire_vector *v = test->param_value;
	struct frame f;
	u32 len;

	frame_init(test, &f, v);
	KUNIT_EXPECT_EQ(test, (__force u32)frame_icrc(&f, v->hdr_len),
			(__force u32)frame_wire_icrc(&f));
	/* Wherever the border between headers and payload is drawn */
	for (len = SROCE_BTH_LEN; len <= f.bth_len - SROCE_ICRC_LEN; len++)
		KUNIT_EXPECT_TRUE(test, frame_icrc_ok(&f, len));
}

/* Bits that a router may change, by offset in the frame */
static u8 masked_bits(const struct frame *f, u32 offset)
{
	u32 l3 = offset - ETH_HLEN;

	if (offset == f->bth + 4)
		return 0xff;
	if (f->ethertype != ETHERTYPE_ROCE_V1 &&
	    (offset == f->bth - 1 || offset == f->bth - 2))
		return 0xff;
	if (f->ethertype == ETH_P_IP)
		return l3 == 1 || l3 == 8 || l3 == 10 || l3 == 11 ? 0xff : 0;
	if (l3 == 0)
		return 0x0f;
	return l3 <= 3 || l3 == 7 ? 0xff : 0;
}

/* Each bit of a packet either is masked or makes the ICRC another one */
static void vector_icrc_mask(struct kunit *test)
{
	const struct wire_vector *v = test->param_value;
	u32 bit, last;
	struct frame f;

	frame_init(test, &f, v);
	last = (f.len - SROCE_ICRC_LEN) * 8;
	for (bit = ETH_HLEN * 8; bit < last; bit++) {
		bool masked = masked_bits(&f, bit / 8) & BIT(bit % 8);

		f.bytes[bit / 8] ^= BIT(bit % 8);
		frame_parse(&f);
		KUNIT_EXPECT_EQ_MSG(test, frame_icrc_ok(&f, v->hdr_len),
				    masked, "byte %u bit %u", bit / 8, bit % 8);
		f.bytes[bit / 8] ^= BIT(bit % 8);
	}
}

/* The state behind each header, as a second implementation has computed it */
static void icrc_states(struct kunit *test)
{
	struct frame f;
	u32 crc;

	frame_init(test, &f, &wire_vectors[0]);
	KUNIT_ASSERT_EQ(test, f.ethertype, ETH_P_IP);
	crc = sroce_icrc_ipv4(&f.l3.v4, &f.udp);
	KUNIT_EXPECT_EQ(test, crc, 0xbd3bbb2b);
	crc = sroce_icrc_bth(crc, f.bytes + f.bth, SROCE_BTH_LEN);
	KUNIT_EXPECT_EQ(test, crc, 0xe2ccc4ca);
	crc = sroce_icrc_data(crc, "hello\0\0", 8);
	KUNIT_EXPECT_EQ(test, crc, 0x7d3bc063);

	frame_init(test, &f, &wire_vectors[3]);
	KUNIT_ASSERT_EQ(test, f.ethertype, ETH_P_IPV6);
	crc = sroce_icrc_ipv6(&f.l3.v6, &f.udp);
	KUNIT_EXPECT_EQ(test, crc, 0x07cc0af0);
	KUNIT_EXPECT_EQ(test, sroce_icrc_bth(crc, f.bytes + f.bth, SROCE_BTH_LEN),
			0x51e72f61);

	frame_init(test, &f, &wire_vectors[5]);
	KUNIT_ASSERT_EQ(test, f.ethertype, ETHERTYPE_ROCE_V1);
	crc = sroce_icrc_grh(&f.l3.v6);
	KUNIT_EXPECT_EQ(test, crc, 0xd5f7bdc2);
	KUNIT_EXPECT_EQ(test, sroce_icrc_bth(crc, f.bytes + f.bth, SROCE_BTH_LEN),
			0xfa2d0d64);
}

/* The state for another identification is what the whole header gives */
static void icrc_other_id(struct kunit *test)
{
	static const u16 changes[] = { 0, 1, 2, 0x80, 0xff, 0x100, 0x1234, 0x8000, 0xffff };
	struct iphdr ip = { .version = 4, .ihl = 5, .id = htons(0xbeef), .tot_len = htons(1088) };
	struct udphdr udp = { .dest = htons(4791), .len = htons(1068) };
	u32 crc = sroce_icrc_ipv4(&ip, &udp);
	int i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		ip.id = htons(0xbeef ^ changes[i]);
		KUNIT_EXPECT_EQ_MSG(test, sroce_icrc_change_id(crc, changes[i]),
				    sroce_icrc_ipv4(&ip, &udp), "change %#x", changes[i]);
	}
}

/* The identification that a packet must have had follows from its ICRC */
static void icrc_finds_id(struct kunit *test)
{
	static const u16 changes[] = { 1, 0x8000, 0x0100, 0xffff, 0x1234 };
	static const u32 lens[] = { 12, 16, 1024 + 12, 4096 + 48 };
	struct iphdr ip = { .version = 4, .ihl = 5, .id = htons(0xbeef) };
	struct udphdr udp = { .dest = htons(4791) };
	u8 *p = kunit_kzalloc(test, 5000, GFP_KERNEL);
	u32 i, k, a, b, mistaken = 0;
	u16 change;

	KUNIT_ASSERT_NOT_NULL(test, p);
	get_random_bytes(p, 5000);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		ip.id = htons(0xbeef);
		a = sroce_icrc_bth(sroce_icrc_ipv4(&ip, &udp), p, lens[i]);
		for (k = 0; k < ARRAY_SIZE(changes); k++) {
			ip.id = htons(0xbeef ^ changes[k]);
			b = sroce_icrc_bth(sroce_icrc_ipv4(&ip, &udp), p,
					   lens[i]);
			KUNIT_EXPECT_TRUE(test, sroce_icrc_find_id(a ^ b,
								   lens[i], &change));
			KUNIT_EXPECT_EQ(test, change, changes[k]);
		}
		/* A bit of the packet itself is another matter */
		for (k = 0; k < 8 * lens[i]; k += 7)
			if (k / 8 != 4) {
				p[k / 8] ^= 1 << k % 8;
				b = sroce_icrc_bth(sroce_icrc_ipv4(&ip, &udp), p,
						   lens[i]);
				mistaken += sroce_icrc_find_id(a ^ b, lens[i],
							       &change);
				p[k / 8] ^= 1 << k % 8;
			}
	}
	KUNIT_EXPECT_LT(test, mistaken, 3);
}

/* The fast code of each kernel has its own borders: all lengths, unaligned */
static void icrc_lengths(struct kunit *test)
{
	const size_t size = 4200;
	u8 *buf = kunit_kmalloc(test, size + 16, GFP_KERNEL);
	u32 seed = 0x12345678;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	get_random_bytes(buf, size + 16);
	for (len = 0; len < size; len += len < 600 ? 1 : 397) {
		const u8 *p = buf + len % 16;

		KUNIT_EXPECT_EQ_MSG(test, sroce_icrc_data(seed, p, len),
				    crc_by_bits(seed, p, len), "%zu bytes",
				    len);
	}
}

static void psn_arithmetic(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0, 0xffffff), 1);
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0xffffff, 0), -1);
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0x7fffff, 0), 8388607);
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0x800000, 0), -8388608);
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(5, 5), 0);
	/* upper bits do not matter */
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0xab000003, 0xcdffffff), 4);

	KUNIT_EXPECT_EQ(test, sroce_psn_add(0xffffff, 1), 0);
	KUNIT_EXPECT_EQ(test, sroce_psn_add(0xfffffe, 13), 0xb);
	KUNIT_EXPECT_EQ(test, sroce_psn_add(0, 0), 0);
}

static void psn_consumption(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sroce_message_packets(0, 1024), 1);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(1, 1024), 1);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(1024, 1024), 1);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(1025, 1024), 2);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(0x3001, 1024), 13);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(1 << 20, 4096), 256);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(1U << 31, 4096), 524288);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(1U << 31, 256), 8388608);
	KUNIT_EXPECT_EQ(test, sroce_message_packets(U32_MAX, 256), 16777216);
}

/* The table of opcodes (IBA 9.2.1, table 38), written down a second time */
#define OP(c, o, n, h, u) \
	{ .code = (c), .op = SROCE_OP_##o, .hdr_len = (n), .flags = (h), .uc = (u) }

static const struct {
	u8 code, op, hdr_len;
	u16 flags;
	bool uc;
} connected_ops[] = {
	OP(0x00, SEND, 12, SROCE_START, true),
	OP(0x01, SEND, 12, 0, true),
	OP(0x02, SEND, 12, SROCE_END, true),
	OP(0x03, SEND, 16, SROCE_END | SROCE_IMM, true),
	OP(0x04, SEND, 12, ONLY, true),
	OP(0x05, SEND, 16, ONLY | SROCE_IMM, true),
	OP(0x06, WRITE, 28, SROCE_START | SROCE_RETH, true),
	OP(0x07, WRITE, 12, 0, true),
	OP(0x08, WRITE, 12, SROCE_END, true),
	OP(0x09, WRITE, 16, SROCE_END | SROCE_IMM, true),
	OP(0x0a, WRITE, 28, ONLY | SROCE_RETH, true),
	OP(0x0b, WRITE, 32, ONLY | SROCE_RETH | SROCE_IMM, true),
	OP(0x0c, READ, 28, ONLY | SROCE_RETH, false),
	OP(0x0d, READ_RESP, 16, SROCE_START | SROCE_AETH, false),
	OP(0x0e, READ_RESP, 12, 0, false),
	OP(0x0f, READ_RESP, 16, SROCE_END | SROCE_AETH, false),
	OP(0x10, READ_RESP, 16, ONLY | SROCE_AETH, false),
	OP(0x11, ACK, 16, ONLY | SROCE_AETH, false),
	OP(0x12, ATOMIC_ACK, 24, ONLY | SROCE_AETH | SROCE_ATOMICACK, false),
	OP(0x13, CMP_SWAP, 40, ONLY | SROCE_ATOMICETH, false),
	OP(0x14, FETCH_ADD, 40, ONLY | SROCE_ATOMICETH, false),
	OP(0x16, SEND, 16, SROCE_END | SROCE_INV, false),
	OP(0x17, SEND, 16, ONLY | SROCE_INV, false),
	OP(0x1c, FLUSH, 32, ONLY | SROCE_FETH | SROCE_RETH, false),
	OP(0x1d, ATOMIC_WRITE, 28, ONLY | SROCE_RETH, false),
};

/* What table 1.6 says of one opcode */
static void expected_row(u8 opcode, struct sroce_opcode *row)
{
	u8 service = opcode >> 5;
	size_t i;

	memset(row, 0, sizeof(*row));
	if (opcode == 0x64)
		*row = (struct sroce_opcode){ SROCE_OP_SEND, 20,
					      ONLY | SROCE_DETH };
	if (opcode == 0x65)
		*row = (struct sroce_opcode){ SROCE_OP_SEND, 24,
					      ONLY | SROCE_DETH | SROCE_IMM };
	if (opcode == 0x81)
		*row = (struct sroce_opcode){ SROCE_OP_NOTIFY, 28, ONLY };
	if (service != SROCE_RC && service != SROCE_UC && service != SROCE_XRC)
		return;

	for (i = 0; i < ARRAY_SIZE(connected_ops); i++) {
		if (connected_ops[i].code != (opcode & 0x1f) ||
		    (service == SROCE_UC && !connected_ops[i].uc))
			continue;
		row->op = connected_ops[i].op;
		row->hdr_len = connected_ops[i].hdr_len;
		row->flags = connected_ops[i].flags;
		if (service == SROCE_XRC && !sroce_op_is_response(row->op)) {
			row->hdr_len += 4;
			row->flags |= SROCE_XRCETH;
		}
	}
}

static void opcode_table(struct kunit *test)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct sroce_opcode *row = sroce_opcode_info(opcode);
		struct sroce_opcode want;

		expected_row(opcode, &want);
		KUNIT_ASSERT_NOT_NULL(test, row);
		KUNIT_EXPECT_EQ_MSG(test, row->op, want.op, "opcode %02x",
				    opcode);
		KUNIT_EXPECT_EQ_MSG(test, row->hdr_len, want.hdr_len,
				    "opcode %02x", opcode);
		KUNIT_EXPECT_EQ_MSG(test, row->flags, want.flags, "opcode %02x",
				    opcode);
		KUNIT_EXPECT_LE(test, row->hdr_len, SROCE_MAX_HDR_LEN);
	}
}

static bool op_is_single(u8 op)
{
	return op != SROCE_OP_SEND && op != SROCE_OP_WRITE &&
	       op != SROCE_OP_READ_RESP;
}

/* What sroce_opcode_find() must say, found the slow way */
static int slow_find(u8 service, u8 op, u16 flags)
{
	const u16 key = ONLY | SROCE_IMM | SROCE_INV;
	struct sroce_opcode row;
	unsigned int opcode;

	if (op == SROCE_OP_NONE)
		return -EINVAL;
	if (op_is_single(op))
		flags |= ONLY;

	for (opcode = service << 5; opcode < (service + 1) << 5; opcode++) {
		expected_row(opcode, &row);
		if (row.op == op && (row.flags & key) == (flags & key))
			return opcode;
	}
	return -EINVAL;
}

static void opcode_find(struct kunit *test)
{
	unsigned int service, op, i;

	for (service = 0; service < 8; service++)
		for (op = 0; op < SROCE_OP_COUNT; op++)
			for (i = 0; i < 16; i++) {
				u16 flags = (i & 3) | (i & 4 ? SROCE_IMM : 0) |
					    (i & 8 ? SROCE_INV : 0);

				KUNIT_EXPECT_EQ_MSG(test, sroce_opcode_find(service, op, flags),
						    slow_find(service, op, flags),
						    "service %u op %u flags %x",
						    service, op, flags);
				/* the rest is ignored */
				flags |= ~(ONLY | SROCE_IMM | SROCE_INV);
				KUNIT_EXPECT_EQ(test, sroce_opcode_find(service, op, flags),
						slow_find(service, op, flags));
			}

	KUNIT_EXPECT_EQ(test, sroce_opcode_find(SROCE_RC, SROCE_OP_COUNT, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_opcode_find(8, SROCE_OP_SEND, 0), -EINVAL);
}

/* Decode @len bytes from a buffer of just that size, for KASAN to watch */
static int decode_exactly(struct kunit *test, const void *packet, u32 avail,
			  u32 len)
{
	void *copy = kmemdup(packet, avail ?: 1, GFP_KERNEL);
	struct sroce_train t;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	ret = sroce_packet_decode(&t, copy, avail, len);
	kfree(copy);
	return ret;
}

/* Every opcode with every length, pad count and number of readable bytes */
static void decode_lengths(struct kunit *test)
{
	unsigned int opcode, pad, len;
	u8 packet[80] = {};

	for (opcode = 0; opcode < 256; opcode++)
		for (pad = 0; pad < 4; pad++)
			for (len = 0; len <= sizeof(packet); len++) {
				struct sroce_opcode row;
				int want = -EBADMSG;

				expected_row(opcode, &row);
				packet[0] = opcode;
				packet[1] = pad << 4;
				if (row.op && len % 4 == 0 &&
				    len >= row.hdr_len + pad + SROCE_ICRC_LEN)
					want = row.hdr_len;
				KUNIT_EXPECT_EQ_MSG(test, decode_exactly(test, packet, len, len),
						    want,
						    "opcode %02x, %u bytes, pad %u",
						    opcode, len, pad);
			}
}

static void decode_short_buffer(struct kunit *test)
{
	u8 packet[SROCE_MAX_HDR_LEN] = {};
	unsigned int opcode, avail;

	for (opcode = 0; opcode < 256; opcode++)
		for (avail = 0; avail <= sizeof(packet); avail++) {
			struct sroce_opcode row;

			expected_row(opcode, &row);
			packet[0] = opcode;
			KUNIT_EXPECT_EQ(test, decode_exactly(test, packet, avail, 4096),
					row.op && avail >= row.hdr_len ?
					row.hdr_len : -EBADMSG);
		}
}

static void decode_version(struct kunit *test)
{
	u8 packet[16] = { 0x04 };
	u8 version;

	KUNIT_EXPECT_EQ(test, decode_exactly(test, packet, 16, 16), 12);
	for (version = 1; version < 16; version++) {
		packet[1] = version;
		KUNIT_EXPECT_EQ(test, decode_exactly(test, packet, 16, 16),
				-EBADMSG);
	}
}

static void decode_ignores_reserved(struct kunit *test)
{
	u8 packet[16] = { 0x04, 0, 0xff, 0xff, 0xbf, 0, 0, 1, 0x7f, 0, 0, 2 };
	struct sroce_train t = {};

	KUNIT_EXPECT_EQ(test, sroce_packet_decode(&t, packet, 16, 16), 12);
	KUNIT_EXPECT_EQ(test, t.flags, ONLY);
	KUNIT_EXPECT_EQ(test, t.dqpn, 1);
	KUNIT_EXPECT_EQ(test, t.psn, 2);
}

static void random_train(struct sroce_train *t)
{
	get_random_bytes(t, sizeof(*t));
	/* not in any packet */
	t->bv = NULL;
	t->bi = (struct bvec_iter){};
	t->npkts = 1;
	t->mtu = 4096;
	/* what does not fit into its header is not sent */
	t->dqpn |= 0xff000000;
	t->psn |= 0xff000000;
}

static void clip_train(struct sroce_train *t)
{
	t->dqpn &= 0xffffff;
	t->psn &= 0xffffff;
	t->srqn &= 0xffffff;
	t->msn &= 0xffffff;
	if (t->flags & SROCE_DETH)
		t->sqpn &= 0xffffff;
}

/* Random contents through every opcode and back */
static void encode_decode(struct kunit *test)
{
	const u16 bits = SROCE_SOLICITED | SROCE_ACKREQ | SROCE_BECN;
	unsigned int opcode, round;

	for (opcode = 0; opcode < 256; opcode++)
		for (round = 0; round < 32; round++) {
			u8 packet[SROCE_MAX_HDR_LEN + 8];
			struct sroce_train in, out;
			struct sroce_opcode row;
			u32 len;

			expected_row(opcode, &row);
			if (!row.op || row.op == SROCE_OP_NOTIFY)
				continue;
			random_train(&in);
			in.op = row.op;
			in.service = opcode >> 5;
			in.flags = row.flags | (in.flags & bits);
			in.bi.bi_size = round % 5;

			len = sroce_train_encode(&in, 0, packet);
			KUNIT_EXPECT_EQ(test, len, row.hdr_len);
			KUNIT_EXPECT_EQ(test, packet[0], opcode);
			len += ALIGN(in.bi.bi_size, 4) + SROCE_ICRC_LEN;
			KUNIT_EXPECT_EQ(test, sroce_packet_decode(&out, packet, len, len),
					row.hdr_len);
			clip_train(&in);
			expect_packet(test, &out, &in);
		}
}

/* --- trains -------------------------------------------------------------- */

#define TRAIN_MTU 256
#define TRAIN_PACKETS 5
#define TRAIN_LAST 77	/* bytes in the last packet: pad 3 */

static void make_train(struct sroce_train *t, u8 service, u8 op, u16 flags,
		       const struct bio_vec *bv)
{
	random_train(t);
	t->service = service;
	t->op = op;
	t->flags = flags;
	t->psn = 0xfffffe;
	t->npkts = TRAIN_PACKETS;
	t->mtu = TRAIN_MTU;
	t->bv = bv;
	t->bi.bi_size = (TRAIN_PACKETS - 1) * TRAIN_MTU + TRAIN_LAST;
}

/* What packet @k of a train must look like */
static void expected_packet(const struct sroce_train *t, u32 k,
			    struct sroce_train *want)
{
	bool last = k == t->npkts - 1;
	struct sroce_opcode row;
	u16 flags = 0;
	int opcode;

	if (k == 0)
		flags |= t->flags & SROCE_START;
	if (last)
		flags |= t->flags & SROCE_END;
	if (flags & SROCE_END)
		flags |= t->flags & (SROCE_IMM | SROCE_INV);
	opcode = slow_find(t->service, t->op, flags);
	expected_row(opcode, &row);

	*want = *t;
	want->flags = row.flags | (t->flags & SROCE_BECN);
	if (last)
		want->flags |= t->flags & (SROCE_SOLICITED | SROCE_ACKREQ);
	want->psn = t->psn + k;
	want->bi.bi_size = last ? TRAIN_LAST : TRAIN_MTU;
	clip_train(want);
}

static void expect_train(struct kunit *test, const struct sroce_train *t)
{
	u8 packet[SROCE_MAX_HDR_LEN];
	struct sroce_train got, want;
	u32 k, len, hdr_len;

	for (k = 0; k < t->npkts; k++) {
		expected_packet(t, k, &want);
		KUNIT_EXPECT_EQ(test, sroce_train_payload(t, k),
				want.bi.bi_size);
		hdr_len = sroce_train_encode(t, k, packet);
		KUNIT_EXPECT_EQ(test, sroce_train_hdr_len(t, k), hdr_len);
		len = hdr_len + ALIGN(want.bi.bi_size, 4) + SROCE_ICRC_LEN;
		KUNIT_EXPECT_EQ(test, sroce_packet_decode(&got, packet, sizeof(packet), len),
				hdr_len);
		expect_packet(test, &got, &want);
	}
}

static const struct {
	u8 service, op;
	u16 tails[3];
	u8 ntails;
} train_ops[] = {
	{ SROCE_RC, SROCE_OP_SEND, { 0, SROCE_IMM, SROCE_INV }, 3 },
	{ SROCE_RC, SROCE_OP_WRITE, { 0, SROCE_IMM }, 2 },
	{ SROCE_RC, SROCE_OP_READ_RESP, { 0 }, 1 },
	{ SROCE_UC, SROCE_OP_SEND, { 0, SROCE_IMM }, 2 },
	{ SROCE_UC, SROCE_OP_WRITE, { 0, SROCE_IMM }, 2 },
	{ SROCE_XRC, SROCE_OP_SEND, { 0, SROCE_IMM, SROCE_INV }, 3 },
	{ SROCE_XRC, SROCE_OP_WRITE, { 0, SROCE_IMM }, 2 },
	{ SROCE_XRC, SROCE_OP_READ_RESP, { 0 }, 1 },
};

/* A stand-in: nothing here looks at the payload */
static const struct bio_vec train_bv = { .bv_len = TRAIN_PACKETS * TRAIN_MTU };

typedef void train_check(struct kunit *test, const struct sroce_train *t);

static void check_trains(struct kunit *test, train_check *check)
{
	const u16 bits = SROCE_SOLICITED | SROCE_ACKREQ | SROCE_BECN;
	struct sroce_train t;
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(train_ops); i++)
		for (j = 0; j < train_ops[i].ntails; j++)
			/* any part of a message, with all bits and none */
			for (k = 0; k < 8; k++) {
				make_train(&t, train_ops[i].service,
					   train_ops[i].op,
					   train_ops[i].tails[j] | (k & ONLY) |
					   (k & 4 ? bits : 0), &train_bv);
				check(test, &t);
			}
}

static void train_encode(struct kunit *test)
{
	check_trains(test, expect_train);
}

static void expect_trimmed(struct kunit *test, const struct sroce_train *t)
{
	u32 n;

	for (n = 0; n < TRAIN_PACKETS; n++) {
		struct sroce_train s = *t;
		u32 payload = s.bi.bi_size;

		sroce_train_trim(&s, n);
		KUNIT_EXPECT_EQ(test, s.npkts, TRAIN_PACKETS - n);
		KUNIT_EXPECT_EQ(test, s.bi.bi_size, payload - n * TRAIN_MTU);
		KUNIT_EXPECT_EQ(test, mp_bvec_iter_offset(s.bv, s.bi),
				t->bv->bv_offset + n * TRAIN_MTU);
		KUNIT_EXPECT_EQ(test, s.psn, sroce_psn_add(t->psn, n));
		KUNIT_EXPECT_EQ(test, s.flags, n ? t->flags & ~SROCE_START :
						   t->flags);
		expect_train(test, &s);
	}
}

static void train_trim(struct kunit *test)
{
	check_trains(test, expect_trimmed);
}

/* As it comes in: packet by packet */
static void decode_kth(const struct sroce_train *t, u32 k,
		       struct sroce_train *got)
{
	u8 packet[SROCE_MAX_HDR_LEN];
	u32 len = sroce_train_encode(t, k, packet);

	len += ALIGN(sroce_train_payload(t, k), 4) + SROCE_ICRC_LEN;
	*got = (struct sroce_train){};
	sroce_packet_decode(got, packet, sizeof(packet), len);
}

static void expect_coupled(struct kunit *test, const struct sroce_train *sent)
{
	struct sroce_train copy = *sent, *t = &copy;
	struct sroce_train all, next, want;
	u16 flags = 0;
	u32 k;

	/* Only the end of a message may be short */
	if (!(t->flags & SROCE_END))
		t->bi.bi_size = TRAIN_PACKETS * TRAIN_MTU;
	for (k = 0; k < t->npkts; k++) {
		expected_packet(t, k, &want);
		flags |= want.flags;
		decode_kth(t, k, &next);
		if (!k) {
			all = next;
			continue;
		}
		if (next.op == SROCE_OP_WRITE && next.flags & SROCE_IMM) {
			KUNIT_EXPECT_FALSE(test,
					   sroce_train_goes_on(&all, &next));
			return;
		}
		KUNIT_EXPECT_TRUE(test, sroce_train_goes_on(&all, &next));
		sroce_train_couple(&all, &next);
		all.bi.bi_size += next.bi.bi_size;
	}
	KUNIT_EXPECT_EQ(test, all.npkts, t->npkts);
	KUNIT_EXPECT_EQ(test, all.mtu, TRAIN_MTU);
	KUNIT_EXPECT_EQ(test, all.psn, t->psn & 0xffffff);
	KUNIT_EXPECT_EQ(test, all.bi.bi_size, t->bi.bi_size);
	KUNIT_EXPECT_EQ(test, all.flags, flags);
	want = *t;
	want.flags = flags;
	want.bi = all.bi;
	clip_train(&want);
	expect_headers(test, &all, &want);
	if (flags & SROCE_END)
		KUNIT_EXPECT_FALSE(test, sroce_train_goes_on(&all, &next));
}

static void train_couple(struct kunit *test)
{
	check_trains(test, expect_coupled);
}

/* Whatever is wrong with the third packet, it stays by itself */
static void train_couple_not(struct kunit *test)
{
	enum { OP, SERVICE, QPN, PKEY, SRQN, PSN, EARLY, START, SHORT, LONG,
	       EMPTY, HOW_MANY } i;
	struct sroce_train two, next, t;

	make_train(&t, SROCE_XRC, SROCE_OP_WRITE, SROCE_START, &train_bv);
	t.bi.bi_size = TRAIN_PACKETS * TRAIN_MTU;
	for (i = 0; i < HOW_MANY; i++) {
		decode_kth(&t, 0, &two);
		decode_kth(&t, 1, &next);
		KUNIT_EXPECT_TRUE(test, sroce_train_goes_on(&two, &next));
		sroce_train_couple(&two, &next);
		two.bi.bi_size += next.bi.bi_size;
		decode_kth(&t, 2, &next);
		next.op = i == OP ? SROCE_OP_SEND : next.op;
		next.service = i == SERVICE ? SROCE_RC : next.service;
		next.dqpn += i == QPN;
		next.pkey ^= (i == PKEY) << 15;
		next.srqn += i == SRQN;
		next.psn = sroce_psn_add(next.psn, i == PSN);
		next.psn -= i == EARLY;
		next.flags |= i == START ? SROCE_START : 0;
		next.flags |= i == LONG || i == EMPTY ? SROCE_END : 0;
		next.bi.bi_size -= i == SHORT;
		next.bi.bi_size += i == LONG;
		next.bi.bi_size *= i != EMPTY;
		KUNIT_EXPECT_FALSE_MSG(test, sroce_train_goes_on(&two, &next),
				       "case %d", i);
	}
}

/* An empty message, and a READ request whose length is that of its responses */
static void train_empty(struct kunit *test)
{
	u8 buf[SROCE_MAX_HDR_LEN];
	struct sroce_train t;

	make_train(&t, SROCE_RC, SROCE_OP_WRITE, ONLY, NULL);
	t.npkts = 1;
	t.bi.bi_size = 0;
	KUNIT_EXPECT_EQ(test, sroce_train_encode(&t, 0, buf), 28);
	KUNIT_EXPECT_EQ(test, buf[0], 0x0a);
	KUNIT_EXPECT_EQ(test, buf[1], 0x40);

	/* START and END follow from the operation */
	make_train(&t, SROCE_RC, SROCE_OP_READ, 0, NULL);
	t.npkts = 1;
	t.bi.bi_size = 0;
	t.dma_len = 0x3001;
	KUNIT_EXPECT_EQ(test, sroce_train_encode(&t, 0, buf), 28);
	KUNIT_EXPECT_EQ(test, buf[0], 0x0c);
	KUNIT_EXPECT_EQ(test, buf[1], 0x40);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(buf + 24), 0x3001);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE_PARAM(vector_decode, wire_vector_gen_params),
	KUNIT_CASE_PARAM(vector_encode, wire_vector_gen_params),
	KUNIT_CASE_PARAM(vector_icrc, wire_vector_gen_params),
	KUNIT_CASE_PARAM(vector_icrc_mask, wire_vector_gen_params),
	KUNIT_CASE(icrc_states),
	KUNIT_CASE(icrc_other_id),
	KUNIT_CASE(icrc_finds_id),
	KUNIT_CASE(icrc_lengths),
	KUNIT_CASE(psn_arithmetic),
	KUNIT_CASE(psn_consumption),
	KUNIT_CASE(opcode_table),
	KUNIT_CASE(opcode_find),
	KUNIT_CASE(decode_lengths),
	KUNIT_CASE(decode_short_buffer),
	KUNIT_CASE(decode_version),
	KUNIT_CASE(decode_ignores_reserved),
	KUNIT_CASE(encode_decode),
	KUNIT_CASE(train_encode),
	KUNIT_CASE(train_trim),
	KUNIT_CASE(train_couple),
	KUNIT_CASE(train_couple_not),
	KUNIT_CASE(train_empty),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "sroce_wire",
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);
