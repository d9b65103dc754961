// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes the packets of a hostile peer, byte by byte and not by the functions of
 * wire/ that are tested with them.
 */
#include <linux/string.h>

#include "compat.h"
#include "tests/fuzz_packet.h"

/* --- bytes ----------------------------------------------------------------- */

static u8 *put_word(u8 *to, u32 word)
{
	put_unaligned_be32(word, to);
	return to + 4;
}

static u8 *put_double(u8 *to, u64 value)
{
	put_unaligned_be64(value, to);
	return to + 8;
}

static u8 *encode_bth(const struct fuzz_packet *p, u8 *to)
{
	u8 pad = p->pad == FUZZ_PAD_RIGHT ? -p->payload & 3 : p->pad & 3;

	to = put_word(to, (u32)p->opcode << 24 | (u32)p->solicited << 23 |
			  (u32)p->migreq << 22 | pad << 20 |
			  (p->version & 0xf) << 16 | p->pkey);
	to = put_word(to, (u32)p->reserved << 24 |
			  (p->dqpn & SROCE_QPN_MASK));
	return put_word(to, (u32)p->ackreq << 31 | (p->psn & SROCE_PSN_MASK));
}

static u8 *encode_extended(const struct fuzz_packet *p, u8 *to, u16 headers)
{
	if (headers & SROCE_XRCETH)
		to = put_word(to, p->srqn);
	if (headers & SROCE_DETH) {
		to = put_word(to, p->qkey);
		to = put_word(to, p->sqpn);
	}
	if (headers & SROCE_FETH)
		to = put_word(to, p->feth);
	if (headers & (SROCE_RETH | SROCE_ATOMICETH)) {
		to = put_double(to, p->va);
		to = put_word(to, p->rkey);
	}
	if (headers & SROCE_RETH)
		to = put_word(to, p->dma_len);
	if (headers & SROCE_ATOMICETH) {
		to = put_double(to, p->swap);
		to = put_double(to, p->compare);
	}
	if (headers & SROCE_AETH)
		to = put_word(to, (u32)p->syndrome << 24 |
				  (p->msn & SROCE_PSN_MASK));
	if (headers & SROCE_ATOMICACK)
		to = put_double(to, p->orig);
	if (headers & (SROCE_IMM | SROCE_INV))
		to = put_word(to, p->tail);
	return to;
}

u32 fuzz_packet_encode(const struct fuzz_packet *p, u8 *to)
{
	u32 len = min_t(u32, p->payload, FUZZ_PAYLOAD);
	u8 *at = encode_extended(p, encode_bth(p, to),
				 sroce_opcode_info(p->opcode)->flags);
	int whole;

	if (p->data)
		memcpy(at, p->data, len);
	else
		memset(at, p->fill & 0x7f, len);
	memcpy(at, p->head, min_t(u32, p->head_len, len));
	/* Pad, ICRC, and what it is longer than it says */
	memset(at + len, 0, 32);
	whole = at - to + ALIGN(len, 4) + SROCE_ICRC_LEN;
	return clamp(whole + p->stretch, 0, FUZZ_PACKET_LEN);
}

void fuzz_packet_parse(struct fuzz_packet *p, const u8 *from, u32 len)
{
	struct sroce_train t = {};
	int hdr = sroce_packet_decode(&t, from, len, len);

	*p = (struct fuzz_packet){
		.opcode = from[0],
		.pad = FUZZ_PAD_RIGHT,
		.solicited = t.flags & SROCE_SOLICITED,
		.migreq = true,
		.ackreq = t.flags & SROCE_ACKREQ,
		.pkey = t.pkey,
		.dqpn = t.dqpn,
		.psn = t.psn,
		.srqn = t.srqn,
		.qkey = t.qkey,
		.sqpn = t.sqpn,
		.feth = t.feth,
		.va = t.va,
		.rkey = t.rkey,
		.dma_len = t.dma_len,
		.swap = t.swap_add,
		.compare = t.compare,
		.orig = t.compare,
		.syndrome = t.syndrome,
		.msn = t.msn,
		.tail = t.flags & SROCE_IMM ? be32_to_cpu(t.imm) : t.inv_rkey,
		.payload = t.bi.bi_size,
		.data = from + hdr,
	};
}

/* --- right ones ------------------------------------------------------------ */

static const struct fuzz_key *some_key(struct rnd_state *rnd,
				       const struct fuzz_aim *aim)
{
	static const struct fuzz_key none = { .key = 0x1234, .len = 64 };

	return aim->nkeys ? &aim->keys[fuzz_below(rnd, aim->nkeys)] : &none;
}

/* Mostly one that an atomic may have */
static const struct fuzz_key *fitting_key(struct rnd_state *rnd, const struct fuzz_aim *aim,
					  enum sroce_op op)
{
	bool atomic = op == SROCE_OP_CMP_SWAP || op == SROCE_OP_FETCH_ADD;

	return atomic && aim->words.len && !fuzz_one_in(rnd, 4) ? &aim->words :
								  some_key(rnd, aim);
}

static struct fuzz_packet plain_packet(struct rnd_state *rnd,
				       const struct fuzz_aim *aim)
{
	return (struct fuzz_packet){
		.pad = FUZZ_PAD_RIGHT,
		.migreq = true,
		.pkey = 0xffff,
		.fill = fuzz_below(rnd, 128),
		.dqpn = aim->qpn,
		.srqn = aim->srqn,
		.qkey = aim->qkey,
		.sqpn = aim->strangers[0],
		.msn = fuzz_below(rnd, 1 << 24),
	};
}

/* Mostly short, often near a border */
static u32 some_length(struct rnd_state *rnd, u32 mtu, u32 most)
{
	u32 len;

	switch (fuzz_below(rnd, 4)) {
	case 0:
		len = fuzz_below(rnd, 20);
		break;
	case 1:
		len = mtu * (1 + fuzz_below(rnd, 4)) - 2 + fuzz_below(rnd, 5);
		break;
	case 2:
		len = fuzz_below(rnd, 2 * mtu);
		break;
	default:
		len = fuzz_below(rnd, 8192);
	}
	return min(len, most);
}

static void set_opcode(struct fuzz_packet *p, const struct fuzz_aim *aim,
		       enum sroce_op op, u16 flags)
{
	int opcode = sroce_opcode_find(aim->service, op, flags);

	if (opcode < 0)
		opcode = sroce_opcode_find(aim->service, op,
					   flags & ~(SROCE_IMM | SROCE_INV));
	p->opcode = opcode < 0 ? op : opcode;
}

void fuzz_send_only(struct rnd_state *rnd, const struct fuzz_aim *aim,
		    struct fuzz_packet *p)
{
	*p = plain_packet(rnd, aim);
	set_opcode(p, aim, SROCE_OP_SEND, SROCE_START | SROCE_END);
	p->psn = aim->epsn;
}

u32 fuzz_tag_header(struct rnd_state *rnd, u8 op, const struct fuzz_key *lent, u32 len,
		    u8 *to)
{
	u8 *at = put_word(to, (u32)op << 24 | fuzz_below(rnd, 1 << 24));

	at = put_word(at, prandom_u32_state(rnd));
	at = put_double(at, fuzz_below(rnd, FUZZ_TAGS));
	if (op == FUZZ_RNDV) {
		at = put_double(at, lent->iova);
		at = put_word(at, lent->key);
		at = put_word(at, len);
	}
	return at - to;
}

/* A message to a QP that matches tags: mostly one that may, or something else in its header */
static void tag_message(struct rnd_state *rnd, const struct fuzz_aim *aim,
			struct fuzz_packet *p)
{
	static const u8 ops[] = {
		FUZZ_EAGER, FUZZ_EAGER, FUZZ_EAGER, FUZZ_RNDV, FUZZ_RNDV, FUZZ_FIN,
		FUZZ_NO_TAG,
	};

	if (!aim->tags || fuzz_one_in(rnd, 8))
		return;
	p->head_len = fuzz_tag_header(rnd, ops[fuzz_below(rnd, ARRAY_SIZE(ops))],
				      &aim->lent, fuzz_below(rnd, aim->lent.len + 9),
				      p->head);
	if (fuzz_one_in(rnd, 8))
		p->head[fuzz_below(rnd, p->head_len)] ^= 1 << fuzz_below(rnd, 8);
}

/* The request of a rendezvous is short */
static u32 message_length(struct rnd_state *rnd, const struct fuzz_aim *aim, u32 most)
{
	if (aim->tags && fuzz_one_in(rnd, 2))
		return min_t(u32, FUZZ_HEAD - 1 + fuzz_below(rnd, FUZZ_HEAD + 4), most);
	return some_length(rnd, aim->mtu, most);
}

/* The packets of a message that are like @one, but for what differs; returns how many */
static u32 cut_message(struct rnd_state *rnd, const struct fuzz_aim *aim, enum sroce_op op,
		       u16 tail, const struct fuzz_packet *one, struct fuzz_packet *p)
{
	u32 k, len = one->dma_len, n = sroce_message_packets(len, aim->mtu);

	for (k = 0; k < n; k++) {
		u16 flags = (k ? 0 : SROCE_START) |
			    (k + 1 < n ? 0 : SROCE_END | tail);

		p[k] = *one;
		p[k].psn = one->psn + k;
		p[k].payload = min(len - k * aim->mtu, aim->mtu);
		p[k].ackreq = k + 1 == n || fuzz_one_in(rnd, 8);
		p[k].solicited = k + 1 == n && fuzz_one_in(rnd, 4);
		set_opcode(&p[k], aim, op, flags);
	}
	if (op == SROCE_OP_SEND)
		tag_message(rnd, aim, &p[0]);
	return n;
}

/* A SEND or RDMA WRITE; returns its packets */
static u32 make_message(struct rnd_state *rnd, const struct fuzz_aim *aim,
			enum sroce_op op, u32 psn, struct fuzz_packet *p,
			u32 room)
{
	static const u16 tails[] = { 0, 0, 0, SROCE_IMM, SROCE_INV };
	const struct fuzz_key *key = some_key(rnd, aim);
	u32 most = op == SROCE_OP_WRITE ? key->len : 8192;
	u32 len = message_length(rnd, aim, min(most, room * aim->mtu));
	struct fuzz_packet one = plain_packet(rnd, aim);
	u16 tail = tails[fuzz_below(rnd, ARRAY_SIZE(tails))];

	one.psn = psn;
	one.rkey = key->key;
	one.va = key->iova + fuzz_below(rnd, key->len - min(len, key->len) + 1);
	one.dma_len = len;
	one.tail = fuzz_one_in(rnd, 2) ? aim->inv : some_key(rnd, aim)->key;
	return cut_message(rnd, aim, op, tail, &one, p);
}

/* The others are one packet. How many PSNs they take is added to @psn. */
static void make_single(struct rnd_state *rnd, const struct fuzz_aim *aim,
			enum sroce_op op, u32 *psn, struct fuzz_packet *p)
{
	const struct fuzz_key *key = fitting_key(rnd, aim, op);
	u32 len = 8;

	*p = plain_packet(rnd, aim);
	if (op == SROCE_OP_READ)
		len = some_length(rnd, aim->mtu, key->len);
	set_opcode(p, aim, op, SROCE_START | SROCE_END);
	p->psn = *psn;
	p->ackreq = true;
	p->rkey = key->key;
	p->va = key->iova + fuzz_below(rnd, key->len - min(len, key->len) + 1);
	if (op != SROCE_OP_READ && op != SROCE_OP_FLUSH)
		p->va = ALIGN_DOWN(p->va, 8);
	p->dma_len = len;
	p->feth = sroce_feth(SROCE_FETH_GLOBAL, fuzz_below(rnd, 2));
	p->swap = prandom_u32_state(rnd);
	p->compare = fuzz_one_in(rnd, 2) ? 0 : prandom_u32_state(rnd);
	p->payload = op == SROCE_OP_ATOMIC_WRITE ? 8 : 0;
	*psn += op == SROCE_OP_READ ? sroce_message_packets(len, aim->mtu) : 1;
}

/* Where the attacker's stream goes on, or seems to */
static u32 request_psn(struct rnd_state *rnd, const struct fuzz_aim *aim)
{
	switch (fuzz_below(rnd, 16)) {
	case 0:
		return aim->epsn + 1 + fuzz_below(rnd, 20);
	case 1:
		return aim->epsn - 1 - fuzz_below(rnd, 20);
	case 2:
		return aim->epsn + (1 << 23) - 2 + fuzz_below(rnd, 5);
	case 3:
		return prandom_u32_state(rnd);
	default:
		return aim->epsn;
	}
}

/* Many small messages of one size, which fill a buffer */
static u32 make_stream(struct rnd_state *rnd, const struct fuzz_aim *aim,
		       struct fuzz_packet *p)
{
	u32 size = 16 + 4 * fuzz_below(rnd, 20);
	u32 n = FUZZ_PACKETS - fuzz_below(rnd, 16);
	const struct fuzz_key *one = fuzz_one_in(rnd, 2) ? some_key(rnd, aim) : NULL;
	u32 k, psn = request_psn(rnd, aim);

	for (k = 0; k < n; k++) {
		const struct fuzz_key *key = one ?: some_key(rnd, aim);
		/* Where messages are matched most are messages */
		bool write = fuzz_one_in(rnd, aim->tags ? 8 : 2);

		p[k] = plain_packet(rnd, aim);
		p[k].psn = psn + k;
		p[k].ackreq = fuzz_one_in(rnd, 8);
		p[k].payload = write ? size - 16 : size;
		p[k].rkey = key->key;
		p[k].va = key->iova + fuzz_below(rnd, key->len);
		p[k].dma_len = p[k].payload;
		set_opcode(&p[k], aim, write ? SROCE_OP_WRITE : SROCE_OP_SEND,
			   SROCE_START | SROCE_END);
		if (!write)
			tag_message(rnd, aim, &p[k]);
	}
	return n;
}

static u32 make_requests(struct rnd_state *rnd, const struct fuzz_aim *aim,
			 struct fuzz_packet *p)
{
	static const u8 ops[] = {
		SROCE_OP_SEND, SROCE_OP_SEND, SROCE_OP_SEND, SROCE_OP_WRITE,
		SROCE_OP_WRITE, SROCE_OP_WRITE, SROCE_OP_READ, SROCE_OP_READ,
		SROCE_OP_CMP_SWAP, SROCE_OP_FETCH_ADD, SROCE_OP_FLUSH,
		SROCE_OP_ATOMIC_WRITE,
	};
	u32 messages = 1 + (fuzz_one_in(rnd, 2) ? fuzz_below(rnd, 16) : 0);
	u32 known = aim->service == SROCE_UC ? 6 : ARRAY_SIZE(ops);
	u32 psn = request_psn(rnd, aim);
	u32 n = 0;

	while (messages-- && n < FUZZ_PACKETS) {
		u8 op = ops[fuzz_below(rnd, known)];

		if (op == SROCE_OP_SEND || op == SROCE_OP_WRITE) {
			u32 k = make_message(rnd, aim, op, psn, p + n,
					     FUZZ_PACKETS - n);

			n += k;
			psn += k;
		} else {
			make_single(rnd, aim, op, &psn, p + n++);
		}
	}
	return n;
}

static u32 make_datagrams(struct rnd_state *rnd, const struct fuzz_aim *aim,
			  struct fuzz_packet *p)
{
	u32 n = 1 + (fuzz_one_in(rnd, 2) ? fuzz_below(rnd, 24) : 0);
	u32 len = fuzz_one_in(rnd, 2) ? fuzz_below(rnd, 300) :
					fuzz_below(rnd, 4097);
	u32 k;

	for (k = 0; k < n; k++) {
		p[k] = plain_packet(rnd, aim);
		p[k].psn = prandom_u32_state(rnd);
		p[k].payload = len;
		p[k].tail = prandom_u32_state(rnd);
		p[k].solicited = fuzz_one_in(rnd, 4);
		set_opcode(&p[k], aim, SROCE_OP_SEND, SROCE_START | SROCE_END |
			   (fuzz_one_in(rnd, 4) ? SROCE_IMM : 0));
	}
	return n;
}

static u8 some_syndrome(struct rnd_state *rnd)
{
	static const u8 usual[] = {
		SROCE_AETH_ACK_UNLIMITED, SROCE_AETH_ACK_UNLIMITED,
		SROCE_AETH_ACK_UNLIMITED, SROCE_AETH_ACK, SROCE_NAK_PSN_SEQ,
		SROCE_NAK_PSN_SEQ, SROCE_AETH_RNR | 1,
	};

	if (fuzz_one_in(rnd, 12))
		return prandom_u32_state(rnd);
	return usual[fuzz_below(rnd, ARRAY_SIZE(usual))];
}

/* Of a READ, from where its answers have come to; rightly cut or not */
static u32 make_read_responses(struct rnd_state *rnd,
			       const struct fuzz_aim *aim, struct fuzz_packet *p)
{
	u32 all = sroce_message_packets(aim->read_len, aim->mtu);
	u32 k, n = min_t(u32, all, 1 + fuzz_below(rnd, FUZZ_PACKETS));

	if (fuzz_one_in(rnd, 8))
		n = min_t(u32, n + 1 + fuzz_below(rnd, 8), FUZZ_PACKETS);
	for (k = 0; k < n; k++) {
		u32 off = k * aim->mtu;
		u16 flags = (k ? 0 : SROCE_START) |
			    (k + 1 == all || fuzz_one_in(rnd, 64) ?
			     SROCE_END : 0);

		p[k] = plain_packet(rnd, aim);
		p[k].psn = aim->read_psn + k;
		p[k].syndrome = SROCE_AETH_ACK_UNLIMITED;
		p[k].payload = off < aim->read_len ?
			       min(aim->read_len - off, aim->mtu) : aim->mtu;
		set_opcode(&p[k], aim, SROCE_OP_READ_RESP, flags);
	}
	return n;
}

static u32 make_responses(struct rnd_state *rnd, const struct fuzz_aim *aim,
			  struct fuzz_packet *p)
{
	u32 k, n = 1 + (fuzz_one_in(rnd, 4) ? fuzz_below(rnd, FUZZ_PACKETS) : 0);
	u32 out = (aim->next - aim->una) & SROCE_PSN_MASK;
	enum sroce_op op = SROCE_OP_ACK;

	if (aim->waits_for == SROCE_OP_READ && !fuzz_one_in(rnd, 4))
		return make_read_responses(rnd, aim, p);
	if (aim->waits_for == SROCE_OP_CMP_SWAP && !fuzz_one_in(rnd, 4))
		op = SROCE_OP_ATOMIC_ACK;
	for (k = 0; k < n; k++) {
		p[k] = plain_packet(rnd, aim);
		set_opcode(&p[k], aim, op, SROCE_START | SROCE_END);
		p[k].syndrome = some_syndrome(rnd);
		p[k].orig = prandom_u32_state(rnd);
		p[k].psn = aim->una + fuzz_below(rnd, out + 1);
		if (fuzz_one_in(rnd, 16))
			p[k].psn = aim->una - 1 - fuzz_below(rnd, 9);
		else if (fuzz_one_in(rnd, 16))
			p[k].psn = aim->next + fuzz_below(rnd, 9);
	}
	return n;
}

static u32 make_notification(struct rnd_state *rnd, const struct fuzz_aim *aim,
			     struct fuzz_packet *p)
{
	*p = plain_packet(rnd, aim);
	p->opcode = sroce_opcode_find(SROCE_CNP, SROCE_OP_NOTIFY, 0);
	p->payload = SROCE_CNP_LEN;
	return 1;
}

/* As many packets as have to come before the wanted one, where it is the last */
static u32 wanted_length(const struct fuzz_aim *aim, u16 flags)
{
	u32 packets = flags & SROCE_START ? !(flags & SROCE_END) : flags & SROCE_END ? 1 : 2;

	return packets * aim->mtu + FUZZ_HEAD;
}

/* What the QP should go on with, and nothing wrong in it */
static u32 make_wanted(struct rnd_state *rnd, const struct fuzz_aim *aim,
		       struct fuzz_packet *p)
{
	const struct sroce_opcode *info = sroce_opcode_info(aim->wanted);
	struct fuzz_packet one = plain_packet(rnd, aim);
	const struct fuzz_key *key = &aim->keys[0];
	u32 psn = aim->epsn;

	if (info->op == SROCE_OP_NOTIFY)
		return make_notification(rnd, aim, p);
	if (sroce_op_is_response(info->op))
		return make_responses(rnd, aim, p);
	if (info->op != SROCE_OP_SEND && info->op != SROCE_OP_WRITE) {
		make_single(rnd, aim, info->op, &psn, p);
		return 1;
	}
	one.psn = psn;
	one.rkey = key->key;
	one.va = key->iova;
	one.dma_len = wanted_length(aim, info->flags);
	one.tail = aim->inv;
	return cut_message(rnd, aim, info->op, info->flags & (SROCE_IMM | SROCE_INV), &one, p);
}

/* Any opcode there is */
static u32 make_junk(struct rnd_state *rnd, const struct fuzz_aim *aim,
		     struct fuzz_packet *p)
{
	u32 psn = aim->epsn;

	if (fuzz_one_in(rnd, 8))
		return make_notification(rnd, aim, p);
	make_single(rnd, aim, SROCE_OP_READ, &psn, p);
	p->opcode = prandom_u32_state(rnd);
	if (!fuzz_one_in(rnd, 4))
		p->opcode = aim->service << 5 | (p->opcode & 0x1f);
	if (aim->unwanted)
		p->opcode = aim->unwanted;
	p->syndrome = some_syndrome(rnd);
	p->payload = some_length(rnd, aim->mtu, 4096);
	p->psn = fuzz_one_in(rnd, 2) ? aim->una : aim->epsn;
	return 1;
}

/* --- wrong ones ------------------------------------------------------------ */

static u32 some_qpn(struct rnd_state *rnd, const struct fuzz_aim *aim)
{
	static const u32 special[] = { 0, SROCE_QPN_GSI, SROCE_QPN_MULTICAST };

	if (fuzz_one_in(rnd, 3))
		return special[fuzz_below(rnd, ARRAY_SIZE(special))];
	if (fuzz_one_in(rnd, 2))
		return prandom_u32_state(rnd) & SROCE_QPN_MASK;
	return aim->strangers[fuzz_below(rnd, FUZZ_STRANGERS)];
}

static void mutate_bth(struct rnd_state *rnd, const struct fuzz_aim *aim,
		       struct fuzz_packet *p)
{
	static const u16 pkeys[] = { 0, 0x7fff, 0x8000, 0x8001, 0xfffe };

	switch (fuzz_below(rnd, 12)) {
	case 0:
		p->version = 1 + fuzz_below(rnd, 15);
		break;
	case 1:
		p->pad = fuzz_below(rnd, 4);
		break;
	case 2:
		p->pkey = pkeys[fuzz_below(rnd, ARRAY_SIZE(pkeys))];
		break;
	case 3:
		p->dqpn = some_qpn(rnd, aim);
		break;
	case 4:
		p->ackreq = !p->ackreq;
		break;
	case 5:
		p->solicited = !p->solicited;
		break;
	case 6:
		p->migreq = !p->migreq;
		break;
	case 7:
		p->reserved = prandom_u32_state(rnd);
		break;
	case 8:
		p->opcode = prandom_u32_state(rnd);
		break;
	case 9:
		p->opcode = (p->opcode & 0xe0) | fuzz_below(rnd, 32);
		break;
	case 10:
		p->psn += fuzz_below(rnd, 5) - 2;
		break;
	case 11:
		p->psn = request_psn(rnd, aim);
		break;
	}
}

/* Over an end of the region, or of the address space */
static u64 some_va(struct rnd_state *rnd, const struct fuzz_key *key, u32 len)
{
	switch (fuzz_below(rnd, 6)) {
	case 0:
		return key->iova - 1 - fuzz_below(rnd, 16);
	case 1:
		return key->iova + key->len - len + 1 + fuzz_below(rnd, 16);
	case 2:
		return key->iova + key->len;
	case 3:
		return -(u64)fuzz_below(rnd, 2 * len + 2);
	case 4:
		return key->iova + ((u64)prandom_u32_state(rnd) << 12);
	default:
		return key->iova + fuzz_below(rnd, 8);
	}
}

static void mutate_memory(struct rnd_state *rnd, const struct fuzz_aim *aim,
			  struct fuzz_packet *p)
{
	static const u32 lengths[] = { 0, 1, 7, 8, 9, 0x7fffffff, 0x80000000,
				       0x80000001, 0xffffffff };
	const struct fuzz_key *key = some_key(rnd, aim);

	switch (fuzz_below(rnd, 7)) {
	case 0:
		p->rkey = key->key;
		break;
	case 1:
		p->rkey ^= 1 << fuzz_below(rnd, 32);
		break;
	case 2:
		p->rkey = fuzz_one_in(rnd, 2) ? 0xff : prandom_u32_state(rnd);
		break;
	case 3:
		p->rkey = key->key;
		p->va = some_va(rnd, key, p->dma_len);
		break;
	case 4:
		p->dma_len = lengths[fuzz_below(rnd, ARRAY_SIZE(lengths))];
		break;
	case 5:
		p->dma_len += fuzz_below(rnd, 9) - 4;
		break;
	case 6:
		p->va ^= 1ULL << fuzz_below(rnd, 64);
		break;
	}
}

static void mutate_rest(struct rnd_state *rnd, const struct fuzz_aim *aim,
			struct fuzz_packet *p)
{
	switch (fuzz_below(rnd, 7)) {
	case 0:
		p->syndrome = prandom_u32_state(rnd);
		break;
	case 1:
		p->msn = prandom_u32_state(rnd);
		break;
	case 2:
		p->qkey = fuzz_one_in(rnd, 2) ? 0x80010000 :
						prandom_u32_state(rnd);
		break;
	case 3:
		p->srqn = fuzz_one_in(rnd, 2) ? 0 : prandom_u32_state(rnd);
		break;
	case 4:
		p->feth = fuzz_one_in(rnd, 2) ? prandom_u32_state(rnd) :
						fuzz_below(rnd, 64);
		break;
	case 5:
		p->tail = fuzz_one_in(rnd, 2) ? prandom_u32_state(rnd) :
						some_key(rnd, aim)->key;
		break;
	case 6:
		p->swap = ((u64)p->swap << 32) | prandom_u32_state(rnd);
		break;
	}
}

static void mutate_length(struct rnd_state *rnd, const struct fuzz_aim *aim,
			  struct fuzz_packet *p)
{
	static const int bytes[] = { -64, -16, -12, -8, -4, 4, 8, 16 };

	p->data = NULL;
	switch (fuzz_below(rnd, 6)) {
	case 0:
		p->payload = 0;
		break;
	case 1:
		p->payload = aim->mtu - 4 + fuzz_below(rnd, 9);
		break;
	case 2:
		p->payload = fuzz_below(rnd, FUZZ_PAYLOAD);
		break;
	case 3:
		p->payload += fuzz_below(rnd, 9);
		break;
	case 4:
		p->stretch = bytes[fuzz_below(rnd, ARRAY_SIZE(bytes))];
		break;
	case 5:
		p->stretch = fuzz_below(rnd, 7) - 3;
		break;
	}
}

void fuzz_mutate(struct rnd_state *rnd, const struct fuzz_aim *aim,
		 struct fuzz_packet *p)
{
	switch (fuzz_below(rnd, 8)) {
	case 0:
	case 1:
		mutate_bth(rnd, aim, p);
		break;
	case 2:
	case 3:
		mutate_memory(rnd, aim, p);
		break;
	case 4:
		mutate_length(rnd, aim, p);
		break;
	case 5:
		p->bad_icrc = fuzz_one_in(rnd, 4);
		break;
	default:
		mutate_rest(rnd, aim, p);
	}
}

/* One is missing, comes twice, or comes before its turn */
static u32 mutate_order(struct rnd_state *rnd, struct fuzz_packet *p, u32 n)
{
	u32 i = fuzz_below(rnd, n);

	switch (fuzz_below(rnd, 4)) {
	case 0:
		memmove(&p[i], &p[i + 1], (n - i - 1) * sizeof(*p));
		return n - 1;
	case 1:
		if (n == FUZZ_PACKETS)
			return n;
		memmove(&p[i + 1], &p[i], (n - i) * sizeof(*p));
		return n + 1;
	case 2:
		if (i + 1 < n)
			swap(p[i], p[i + 1]);
		return n;
	default:
		return i + 1;
	}
}

u32 fuzz_attack(struct rnd_state *rnd, const struct fuzz_aim *aim,
		struct fuzz_packet *p)
{
	u32 n, faults;

	if (aim->wanted)
		return make_wanted(rnd, aim, p);
	if (aim->unwanted || fuzz_one_in(rnd, 20))
		n = make_junk(rnd, aim, p);
	else if (aim->service == SROCE_UD)
		n = make_datagrams(rnd, aim, p);
	else if (aim->service != SROCE_UC && fuzz_one_in(rnd, 4))
		n = make_responses(rnd, aim, p);
	else if (fuzz_one_in(rnd, 2))
		n = make_stream(rnd, aim, p);
	else
		n = make_requests(rnd, aim, p);
	for (faults = fuzz_below(rnd, 3); n && faults; faults--) {
		if (n > 1 && fuzz_one_in(rnd, 3))
			n = mutate_order(rnd, p, n);
		else
			fuzz_mutate(rnd, aim, &p[fuzz_below(rnd, n)]);
	}
	return n;
}
