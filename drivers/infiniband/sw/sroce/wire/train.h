/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A train: a run of consecutive packets of one message of one QP, in decoded
 * form, and its translation from and to the bytes of each packet. The
 * transport makes and takes trains; only this directory knows how their
 * packets look.
 */
#ifndef SROCE_WIRE_TRAIN_H
#define SROCE_WIRE_TRAIN_H

#include <linux/bvec.h>
#include <linux/types.h>

#include "wire/opcode.h"

#define SROCE_PSN_MASK 0xffffff
#define SROCE_QPN_MASK 0xffffff
#define SROCE_QPN_GSI 1
#define SROCE_QPN_MULTICAST 0xffffff

#define SROCE_BTH_LEN 12
#define SROCE_ICRC_LEN 4
/* Zeros after the BTH of a congestion notification: a header, not a payload */
#define SROCE_CNP_LEN 16
/* BTH, XRCETH, FETH or RETH, AtomicETH, ImmDt: no packet has all of them */
#define SROCE_MAX_HDR_LEN 48

/* AETH syndrome: bits 7..5 are the kind (IBA table 45), 4..0 its value */
#define SROCE_AETH_KIND 0xe0
#define SROCE_AETH_VALUE 0x1f
#define SROCE_AETH_ACK 0x00
#define SROCE_AETH_RNR 0x20
#define SROCE_AETH_NAK 0x60
/* ACK with "no credit limit" */
#define SROCE_AETH_ACK_UNLIMITED (SROCE_AETH_ACK | 0x1f)
#define SROCE_NAK_PSN_SEQ 0x60
#define SROCE_NAK_INV_REQ 0x61
#define SROCE_NAK_REM_ACCESS 0x62
#define SROCE_NAK_REM_OP 0x63

/* FETH (IBA A19): which memory, and how far its contents must have come */
#define SROCE_FETH_GLOBAL BIT(0)
#define SROCE_FETH_PERSISTENT BIT(1)
#define SROCE_FETH_PLT 0xf
#define SROCE_FETH_WHOLE_MR BIT(4)
#define SROCE_FETH_SEL 0x30

/* Do the bits of both fit into the fields that a FETH has for them? */
static inline bool sroce_feth_fits(u32 placement, u32 selectivity)
{
	return !(placement & ~SROCE_FETH_PLT) &&
	       !(selectivity & ~(SROCE_FETH_SEL >> 4));
}

static inline u32 sroce_feth(u32 placement, u32 selectivity)
{
	return (placement & SROCE_FETH_PLT) |
	       ((selectivity << 4) & SROCE_FETH_SEL);
}

/**
 * struct sroce_train - consecutive packets of one message
 * @op: what the packets ask for
 * @service: transport service of the QP
 * @flags: SROCE_START: the first packet begins the message; SROCE_END: the
 *	last one ends it; SROCE_IMM, SROCE_INV: the message ends with that
 *	header; SROCE_SOLICITED and SROCE_ACKREQ belong to the last packet.
 *	The remaining flags follow from @op and need not be set by a sender.
 * @pkey: partition key
 * @mtu: payload bytes in every packet but the last (path MTU); 0 in a received
 *	train of one packet
 * @dqpn: destination QP
 * @psn: PSN of the first packet
 * @npkts: number of packets, at least 1; a READ request is one packet however
 *	many PSNs its responses take
 * @va: RETH or AtomicETH address
 * @rkey: RETH or AtomicETH R_Key
 * @dma_len: RETH length
 * @compare: AtomicETH compare, or AtomicAckETH original value (@op decides)
 * @swap_add: AtomicETH swap or add
 * @imm: immediate data, as on the wire
 * @inv_rkey: IETH key
 * @feth: FETH word
 * @syndrome: AETH
 * @msn: AETH
 * @qkey: DETH
 * @sqpn: DETH source QP
 * @srqn: XRCETH
 * @bv: payload of all packets, one after another
 * @bi: position in @bv; @bi.bi_size is the number of payload bytes
 */
struct sroce_train {
	u8 op;
	u8 service;
	u16 flags;
	u16 pkey;
	u16 mtu;
	u32 dqpn;
	u32 psn;
	u32 npkts;
	u32 rkey;
	u32 dma_len;
	u32 srqn;
	u64 va;
	union {
		struct {
			u64 compare;
			u64 swap_add;
		};
		struct {
			u32 qkey;
			u32 sqpn;
		};
	};
	union {
		__be32 imm;
		u32 inv_rkey;
		u32 feth;
	};
	u32 msn;
	const struct bio_vec *bv;
	struct bvec_iter bi;
	u8 syndrome;
};

/**
 * sroce_psn_diff() - distance between two PSNs
 * @a: PSN, any upper bits
 * @b: PSN, any upper bits
 *
 * Return: @a - @b as a signed 24-bit number.
 */
static inline s32 sroce_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

static inline u32 sroce_psn_add(u32 psn, u32 n)
{
	return (psn + n) & SROCE_PSN_MASK;
}

/**
 * sroce_message_packets() - packets that a message takes
 * @len: bytes
 * @mtu: path MTU in bytes, a power of two
 *
 * Return: at least 1: an empty message is one packet.
 */
static inline u32 sroce_message_packets(u32 len, u32 mtu)
{
	return len ? (len - 1) / mtu + 1 : 1;
}

/**
 * sroce_train_payload() - payload bytes of one packet
 * @t: train
 * @k: packet number, below @t->npkts
 */
static inline u32 sroce_train_payload(const struct sroce_train *t, u32 k)
{
	return min_t(u32, t->mtu, t->bi.bi_size - k * t->mtu);
}

/**
 * sroce_train_hdr_len() - length of BTH and extended headers of one packet
 * @t: train
 * @k: packet number, below @t->npkts
 *
 * Return: bytes, at most SROCE_MAX_HDR_LEN.
 */
u32 sroce_train_hdr_len(const struct sroce_train *t, u32 k);

/**
 * sroce_train_encode() - write BTH and extended headers of one packet
 * @t: train to send
 * @k: packet number, below @t->npkts
 * @buf: at least SROCE_MAX_HDR_LEN bytes
 *
 * The pad count is that of the packet's payload; MigReq is set, because that
 * is the state of a path that never migrates (IBA 17.2.8). A congestion
 * notification has BECN set instead, and all its reserved bytes zero (A17.9.3).
 *
 * Return: bytes written, as sroce_train_hdr_len(); 0 when the service has no
 * such packet, which is a bug of the caller.
 */
u32 sroce_train_encode(const struct sroce_train *t, u32 k, void *buf);

/**
 * sroce_packet_decode() - read BTH and extended headers of one packet
 * @t: filled in, with npkts 1; @t->bv is left alone and @t->bi.bi_size is set
 *	to the number of payload bytes; @t->mtu is not known and set to 0;
 *	fields of headers that the packet does not have are left alone
 * @buf: the packet from the BTH on
 * @avail: bytes that may be read at @buf; SROCE_MAX_HDR_LEN or the whole packet
 * @len: bytes from BTH to ICRC inclusive
 *
 * Return: length of the headers (the payload follows, then 0..3 bytes of pad
 * and the ICRC), or -EBADMSG when the opcode is reserved, the header version
 * is not 0, the length is no multiple of 4, or the packet is too short for its
 * headers and pad.
 */
int sroce_packet_decode(struct sroce_train *t, const void *buf, u32 avail,
			u32 len);

/**
 * sroce_train_goes_on() - may a packet be coupled to the train before it?
 * @t: decoded packet, or train made of such; with payload
 * @next: decoded packet
 *
 * The packets must be of one message and in order, and full but for the last. The
 * end of an RDMA WRITE with immediate stays by itself: only it takes a receive.
 */
bool sroce_train_goes_on(const struct sroce_train *t,
			 const struct sroce_train *next);

/**
 * sroce_train_couple() - let a train go on with the packet behind it
 * @t: train
 * @next: decoded packet, after sroce_train_goes_on()
 *
 * Flags and fields of @next's headers become those of @t; its payload is the
 * caller's to append, to @t->bi.bi_size as well.
 */
void sroce_train_couple(struct sroce_train *t, const struct sroce_train *next);

/**
 * sroce_train_trim() - forget packets at the front of a train
 * @t: train of more than @n packets
 * @n: packets to drop, may be 0
 *
 * For a train that a go-back-N sender repeated and whose first packets the
 * receiver has already. Headers of the first packet are gone with it.
 */
void sroce_train_trim(struct sroce_train *t, u32 n);

#endif
