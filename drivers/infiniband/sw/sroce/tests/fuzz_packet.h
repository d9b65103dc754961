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

/**
 * struct fuzz_packet - all that a packet is made of, right or wrong
 * @opcode: which headers it has
 * @version: header version
 * @pad: pad count, or FUZZ_PAD_RIGHT for that of @payload
 * @reserved: FECN, BECN and six reserved bits
 * @tail: immediate data, or key to invalidate
 * @payload: bytes of payload
 * @data: the payload; NULL: all bytes are @fill, below 0x80
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

/* An empty SEND that is as the QP expects it */
void fuzz_send_only(struct rnd_state *rnd, const struct fuzz_aim *aim,
		    struct fuzz_packet *p);

/* Change something in a packet that is right */
void fuzz_mutate(struct rnd_state *rnd, const struct fuzz_aim *aim,
		 struct fuzz_packet *p);

#endif
