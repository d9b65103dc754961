/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packets that a hostile peer would send: right ones as it knows how to make
 * them, and then with something wrong in them.
 */
#ifndef SROCE_TESTS_FUZZ_PACKET_H
#define SROCE_TESTS_FUZZ_PACKET_H

#include <linux/prandom.h>
#include <linux/types.h>

#include "wire/train.h"

#define FUZZ_PACKETS 64
#define FUZZ_KEYS 32
#define FUZZ_STRANGERS 4
#define FUZZ_PAYLOAD 4608
#define FUZZ_PACKET_LEN (SROCE_MAX_HDR_LEN + FUZZ_PAYLOAD + 64)
#define FUZZ_PAD_RIGHT 0xff
/* The longest header of tag matching, with what a rendezvous has behind it */
#define FUZZ_HEAD 32
/* So many tags there are */
#define FUZZ_TAGS 8

/* Opcodes of the header of tag matching (infiniband/tm_types.h) */
enum { FUZZ_NO_TAG, FUZZ_RNDV, FUZZ_FIN, FUZZ_EAGER };

/*
 * struct fuzz_packet - all that a packet is made of, right or wrong
 * @opcode: which headers it has
 * @version: header version
 * @pad: pad count, or FUZZ_PAD_RIGHT for that of @payload
 * @reserved: FECN, BECN and six reserved bits
 * @tail: immediate data, or key to invalidate
 * @payload: bytes of payload
 * @data: the payload; NULL: all bytes are @fill, below 0x80
 * @head: instead of the first bytes of the payload
 * @head_len: so many of it
 * @stretch: bytes that are there in addition, or missing at the end
 * @bad_icrc: the ICRC is wrong
 */
struct fuzz_packet {
	u8 opcode;
	u8 version;
	u8 pad;
	u8 reserved;
	bool solicited;
	bool migreq;
	bool ackreq;
	bool bad_icrc;
	u16 pkey;
	u8 syndrome;
	u8 fill;
	u32 dqpn;
	u32 psn;
	u32 srqn;
	u32 qkey;
	u32 sqpn;
	u32 feth;
	u64 va;
	u32 rkey;
	u32 dma_len;
	u64 swap;
	u64 compare;
	u64 orig;
	u32 msn;
	u32 tail;
	u32 payload;
	int stretch;
	const u8 *data;
	u8 head_len;
	u8 head[FUZZ_HEAD];
};

/* Memory that a peer may know of */
struct fuzz_key {
	u32 key;
	u32 len;
	u64 iova;
};

/**
 * struct fuzz_aim - what an attacker knows of a QP
 * @service: its transport service
 * @qpn: its number
 * @mtu: path MTU
 * @epsn: request that it expects next
 * @una: oldest request of its own without an answer
 * @next: its next new request
 * @waits_for: what it waits for first: SROCE_OP_READ, SROCE_OP_CMP_SWAP or
 *	SROCE_OP_SEND for anything that is answered by an ACK; SROCE_OP_NONE: it
 *	takes no answers
 * @read_psn: READ: first PSN of the responses still to come
 * @read_len: READ: their bytes
 * @srqn: XRC: shared receive queue
 * @qkey: datagrams: its Q_Key
 * @tags: messages are matched by tags
 * @lent: with those: memory of its peer's, for it to read
 * @inv: key that may be invalidated by a peer
 * @words: what atomics may change
 * @wanted: opcode of a packet that it should go on with; 0: any
 * @unwanted: opcode of a packet that it should not go on with; 0: any
 * @nkeys: entries of @keys
 * @keys: of its memory
 * @strangers: numbers of other QPs
 */
struct fuzz_aim {
	u8 service;
	u8 waits_for;
	u32 qpn;
	u32 mtu;
	u32 epsn;
	u32 una;
	u32 next;
	u32 read_psn;
	u32 read_len;
	u32 srqn;
	u32 qkey;
	bool tags;
	struct fuzz_key lent;
	u32 inv;
	struct fuzz_key words;
	u8 wanted;
	u8 unwanted;
	u32 nkeys;
	struct fuzz_key keys[FUZZ_KEYS];
	u32 strangers[FUZZ_STRANGERS];
};

static inline u32 fuzz_below(struct rnd_state *rnd, u32 n)
{
	return ((u64)prandom_u32_state(rnd) * n) >> 32;
}

static inline bool fuzz_one_in(struct rnd_state *rnd, u32 n)
{
	return !fuzz_below(rnd, n);
}

/**
 * fuzz_packet_encode() - make the bytes of a packet
 * @p: packet
 * @to: FUZZ_PACKET_LEN bytes
 *
 * Return: bytes, with four at the end for the ICRC.
 */
u32 fuzz_packet_encode(const struct fuzz_packet *p, u8 *to);

/* The other way round, for packets that the driver has made */
void fuzz_packet_parse(struct fuzz_packet *p, const u8 *from, u32 len);

/**
 * fuzz_attack() - make up what to send to a QP
 * @rnd: decides
 * @aim: the QP
 * @p: FUZZ_PACKETS packets
 *
 * Return: how many there are.
 */
u32 fuzz_attack(struct rnd_state *rnd, const struct fuzz_aim *aim,
		struct fuzz_packet *p);

/**
 * fuzz_tag_header() - make the header of a message that may match
 * @rnd: decides
 * @op: its opcode
 * @lent: the data of a rendezvous
 * @len: bytes of that
 * @to: FUZZ_HEAD bytes
 *
 * Return: bytes of the header.
 */
u32 fuzz_tag_header(struct rnd_state *rnd, u8 op, const struct fuzz_key *lent, u32 len,
		    u8 *to);

/* An empty SEND that is as the QP expects it */
void fuzz_send_only(struct rnd_state *rnd, const struct fuzz_aim *aim,
		    struct fuzz_packet *p);

/* Change something in a packet that is right */
void fuzz_mutate(struct rnd_state *rnd, const struct fuzz_aim *aim,
		 struct fuzz_packet *p);

#endif
