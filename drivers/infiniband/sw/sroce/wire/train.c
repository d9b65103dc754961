// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Trains to the bytes of their packets and back. The sender's side makes headers
 * here, the receiver's reads them, before anything else looks at a packet.
 */
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "compat.h"
#include "wire/alike.h"
#include "wire/train.h"

/* The first four bytes of a BTH as one number, below the opcode */
#define BTH_SOLICITED	BIT(23)
#define BTH_MIGREQ	BIT(22)
#define BTH_PAD_SHIFT	20
#define BTH_PAD_MASK	3
#define BTH_VERSION	0xf0000
#define BTH_PKEY	0xffff
/* The second four */
#define BTH_BECN	BIT(30)
/* The third four */
#define BTH_ACKREQ	BIT(31)

static u16 sroce_packet_flags(const struct sroce_train *t, u32 k)
{
	u16 flags = t->flags;

	if (k)
		flags &= ~SROCE_START;
	if (k + 1 < t->npkts)
		flags &= ~SROCE_TRAIN_TAIL;
	/* These headers end a message, and the train may end before its message does */
	if (!(flags & SROCE_END))
		flags &= ~(SROCE_IMM | SROCE_INV);
	return flags;
}

u32 sroce_train_hdr_len(const struct sroce_train *t, u32 k)
{
	int opcode = sroce_opcode_find(t->service, t->op,
				       sroce_packet_flags(t, k));

	return opcode < 0 ? 0 : sroce_opcode_info(opcode)->hdr_len;
}

static void *sroce_train_put_word(u8 *p, u32 word)
{
	put_unaligned_be32(word, p);
	return p + 4;
}

static void *sroce_train_put_double(u8 *p, u64 value)
{
	put_unaligned_be64(value, p);
	return p + 8;
}

static void *sroce_train_encode_bth(u8 *p, const struct sroce_train *t, u32 k,
				    u8 opcode, u16 flags)
{
	u32 pad = -sroce_train_payload(t, k) & BTH_PAD_MASK;

	p = sroce_train_put_word(p, (u32)opcode << 24 | BTH_MIGREQ |
				    pad << BTH_PAD_SHIFT |
				    (flags & SROCE_SOLICITED ? BTH_SOLICITED : 0) |
				    t->pkey);
	p = sroce_train_put_word(p, (t->dqpn & SROCE_QPN_MASK) |
				    (flags & SROCE_BECN ? BTH_BECN : 0));
	return sroce_train_put_word(p, sroce_psn_add(t->psn, k) |
				       (flags & SROCE_ACKREQ ? BTH_ACKREQ : 0));
}

static void sroce_train_encode_notify(u8 *p, const struct sroce_train *t,
				      u8 opcode)
{
	p = sroce_train_put_word(p, (u32)opcode << 24 | t->pkey);
	p = sroce_train_put_word(p, BTH_BECN | (t->dqpn & SROCE_QPN_MASK));
	memset(p, 0, 4 + SROCE_CNP_LEN);
}

/* Extended headers, in the order of the wire; @headers are those that the opcode has */
static void sroce_train_encode_extended(u8 *p, const struct sroce_train *t,
					u16 headers)
{
	if (headers & SROCE_XRCETH)
		p = sroce_train_put_word(p, t->srqn & SROCE_QPN_MASK);
	if (headers & SROCE_DETH) {
		p = sroce_train_put_word(p, t->qkey);
		p = sroce_train_put_word(p, t->sqpn & SROCE_QPN_MASK);
	}
	if (headers & SROCE_FETH)
		p = sroce_train_put_word(p, t->feth);
	if (headers & (SROCE_RETH | SROCE_ATOMICETH)) {
		p = sroce_train_put_double(p, t->va);
		p = sroce_train_put_word(p, t->rkey);
	}
	if (headers & SROCE_RETH)
		p = sroce_train_put_word(p, t->dma_len);
	if (headers & SROCE_ATOMICETH) {
		p = sroce_train_put_double(p, t->swap_add);
		p = sroce_train_put_double(p, t->compare);
	}
	if (headers & SROCE_AETH)
		p = sroce_train_put_word(p, (u32)t->syndrome << 24 |
					    (t->msn & SROCE_PSN_MASK));
	if (headers & SROCE_ATOMICACK)
		p = sroce_train_put_double(p, t->compare);
	if (headers & SROCE_IMM)
		sroce_train_put_word(p, be32_to_cpu(t->imm));
	if (headers & SROCE_INV)
		sroce_train_put_word(p, t->inv_rkey);
}

u32 sroce_train_encode(const struct sroce_train *t, u32 k, void *buf)
{
	u16 flags = sroce_packet_flags(t, k);
	int opcode = sroce_opcode_find(t->service, t->op, flags);
	const struct sroce_opcode *info;
	void *p;

	if (WARN_ON_ONCE(opcode < 0))
		return 0;

	info = sroce_opcode_info(opcode);
	p = sroce_train_encode_bth(buf, t, k, opcode, flags);
	if (info->hdr_len == SROCE_BTH_LEN)
		return SROCE_BTH_LEN;

	if (unlikely(info->op == SROCE_OP_NOTIFY))
		sroce_train_encode_notify(buf, t, opcode);
	else
		sroce_train_encode_extended(p, t, info->flags);
	return info->hdr_len;
}

static void sroce_packet_decode_extended(struct sroce_train *t, const u8 *p,
					 u16 headers)
{
	if (headers & SROCE_XRCETH) {
		t->srqn = get_unaligned_be32(p) & SROCE_QPN_MASK;
		p += 4;
	}
	if (headers & SROCE_DETH) {
		t->qkey = get_unaligned_be32(p);
		t->sqpn = get_unaligned_be32(p + 4) & SROCE_QPN_MASK;
		p += 8;
	}
	if (headers & SROCE_FETH) {
		t->feth = get_unaligned_be32(p);
		p += 4;
	}
	if (headers & (SROCE_RETH | SROCE_ATOMICETH)) {
		t->va = get_unaligned_be64(p);
		t->rkey = get_unaligned_be32(p + 8);
		p += 12;
	}
	if (headers & SROCE_RETH) {
		t->dma_len = get_unaligned_be32(p);
		p += 4;
	}
	if (headers & SROCE_ATOMICETH) {
		t->swap_add = get_unaligned_be64(p);
		t->compare = get_unaligned_be64(p + 8);
		p += 16;
	}
	if (headers & SROCE_AETH) {
		t->syndrome = *p;
		t->msn = get_unaligned_be32(p) & SROCE_PSN_MASK;
		p += 4;
	}
	if (headers & SROCE_ATOMICACK) {
		t->compare = get_unaligned_be64(p);
		p += 8;
	}
	if (headers & SROCE_IMM)
		t->imm = cpu_to_be32(get_unaligned_be32(p));
	if (headers & SROCE_INV)
		t->inv_rkey = get_unaligned_be32(p);
}

static void sroce_packet_decode_bth(struct sroce_train *t, const u8 *p)
{
	u32 first = get_unaligned_be32(p);
	u32 second = get_unaligned_be32(p + 4);
	u32 third = get_unaligned_be32(p + 8);

	t->pkey = first & BTH_PKEY;
	t->dqpn = second & SROCE_QPN_MASK;
	t->psn = third & SROCE_PSN_MASK;
	t->flags |= (first & BTH_SOLICITED ? SROCE_SOLICITED : 0) |
		    (second & BTH_BECN ? SROCE_BECN : 0) |
		    (third & BTH_ACKREQ ? SROCE_ACKREQ : 0);
}

int sroce_packet_decode(struct sroce_train *t, const void *buf, u32 avail,
			u32 len)
{
	const struct sroce_opcode *info;
	u32 first, pad;

	if (min(avail, len) < SROCE_BTH_LEN || len & 3)
		return -EBADMSG;

	first = get_unaligned_be32(buf);
	/* Read once: the owner of a frame that came over a veth may be writing to it */
	OPTIMIZER_HIDE_VAR(first);
	pad = first >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	info = sroce_opcode_info(first >> 24);
	if (info->op == SROCE_OP_NONE || first & BTH_VERSION ||
	    avail < info->hdr_len || len < info->hdr_len + pad + SROCE_ICRC_LEN)
		return -EBADMSG;

	t->op = info->op;
	t->service = first >> 29;
	t->flags = info->flags;
	t->mtu = 0;
	t->npkts = 1;
	t->bi.bi_size = len - info->hdr_len - pad - SROCE_ICRC_LEN;
	sroce_packet_decode_bth(t, buf);
	if (info->hdr_len != SROCE_BTH_LEN)
		sroce_packet_decode_extended(t, buf + SROCE_BTH_LEN,
					     info->flags);
	return info->hdr_len;
}

/* Are both of one message, as far as the headers that every packet has can tell? */
static bool sroce_train_same_message(const struct sroce_train *t,
				     const struct sroce_train *next)
{
	return next->op == t->op && next->service == t->service &&
	       next->dqpn == t->dqpn && next->pkey == t->pkey &&
	       (!(t->flags & SROCE_XRCETH) || next->srqn == t->srqn);
}

static bool sroce_train_in_order(const struct sroce_train *t,
				 const struct sroce_train *next)
{
	u32 full = t->npkts > 1 ? t->mtu : t->bi.bi_size;
	u32 len = next->bi.bi_size;

	return !(t->flags & SROCE_END) && !(next->flags & SROCE_START) &&
	       next->psn == sroce_psn_add(t->psn, t->npkts) && len &&
	       (next->flags & SROCE_END ? len <= full : len == full);
}

/*
 * Does the packet take a receive work request? A QP that has none refuses it, and must
 * not refuse with it what comes before it.
 */
static bool sroce_train_needs_receive(const struct sroce_train *next)
{
	return next->op == SROCE_OP_WRITE && next->flags & SROCE_IMM;
}

bool sroce_train_goes_on(const struct sroce_train *t,
			 const struct sroce_train *next)
{
	return sroce_train_in_order(t, next) &&
	       sroce_train_same_message(t, next) &&
	       !sroce_train_needs_receive(next);
}

void sroce_train_couple(struct sroce_train *t, const struct sroce_train *next)
{
	if (t->npkts++ == 1)
		t->mtu = t->bi.bi_size;
	t->flags |= next->flags;
	if (next->flags & SROCE_IMM)
		t->imm = next->imm;
	else if (next->flags & SROCE_INV)
		t->inv_rkey = next->inv_rkey;
	if (next->flags & SROCE_AETH) {
		t->syndrome = next->syndrome;
		t->msn = next->msn;
	}
}

void sroce_train_trim(struct sroce_train *t, u32 n)
{
	if (!n)
		return;

	t->flags &= ~SROCE_START;
	t->psn = sroce_psn_add(t->psn, n);
	t->npkts -= n;
	bvec_iter_advance(t->bv, &t->bi, n * t->mtu);
}
