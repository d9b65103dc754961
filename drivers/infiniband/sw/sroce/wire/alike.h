/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packets that are alike. One in the middle of a message looks as the one before it, but
 * for the next PSN, and in a long train nearly all are such. Of these the sender makes
 * headers once, and the receiver takes them apart once, which is for train.c; all others
 * follow here from the first.
 */
#ifndef SROCE_WIRE_ALIKE_H
#define SROCE_WIRE_ALIKE_H

#include <linux/types.h>

#include "compat.h"
#include "wire/train.h"

/* Flags that only the last packet of a train has */
#define SROCE_TRAIN_TAIL (SROCE_END | SROCE_IMM | SROCE_INV | SROCE_SOLICITED | \
			  SROCE_ACKREQ)

/**
 * sroce_train_alike() - packets of one size and with the same headers but for the PSN
 * @t: train to send
 * @k: packet number, below @t->npkts
 *
 * Return: how many there are from @k on, at least 1. Where there are several, each has
 * @t->mtu bytes of payload.
 */
u32 sroce_train_alike(const struct sroce_train *t, u32 k);

/**
 * sroce_alike_encode() - write the headers of the next one of packets that are alike
 * @t: train to send
 * @k: packet number; for the one before it sroce_train_alike() is at least 2
 * @before: headers of that one, whichever of the two functions has written them
 * @hdr_len: their length
 * @buf: at least @hdr_len bytes, apart from @before
 */
void sroce_alike_encode(const struct sroce_train *t, u32 k, const void *before,
			u32 hdr_len, void *buf);

/**
 * struct sroce_alike - how the last packet of a train looked that was received
 * @bytes: those of its BTH in front of the PSN
 * @len: bytes from BTH to ICRC; 0: no other one can look like it
 */
struct sroce_alike {
	u64 bytes;
	u32 len;
};

/**
 * sroce_alike_remember() - how a packet looks that a train goes on with
 * @a: filled in
 * @next: decoded packet, after sroce_train_goes_on()
 * @packet: its bytes
 * @hdr_len: length of its headers
 * @len: bytes from BTH to ICRC
 *
 * Only packets in the middle of a message, with nothing behind the BTH, are alike.
 *
 * Its bytes are read once more than decoding has read them. The owner of a frame that came
 * over a veth may have written to it in between; then packets are alike that have what he
 * wrote, and go on with the message that was decoded.
 */
static inline void sroce_alike_remember(struct sroce_alike *a,
					const struct sroce_train *next,
					const void *packet, u32 hdr_len, u32 len)
{
	bool middle = hdr_len == SROCE_BTH_LEN && !(next->flags & SROCE_END);

	a->bytes = get_unaligned((const u64 *)packet);
	a->len = middle ? len : 0;
}

/**
 * sroce_alike_is_next() - does a packet look like the one before it?
 * @a: that one
 * @packet: bytes, of which there are @a->len
 * @psn: PSN that follows
 *
 * Return: true when sroce_packet_decode(), sroce_train_goes_on() and
 * sroce_train_couple() would do with it what they did with the one before, unless that
 * was written to while it was looked at (see above). One that asks for an ACK is not alike:
 * that bit is where the PSN is.
 */
static inline bool sroce_alike_is_next(const struct sroce_alike *a,
				       const void *packet, u32 psn)
{
	return get_unaligned((const u64 *)packet) == a->bytes &&
	       get_unaligned_be32(packet + sizeof(a->bytes)) == psn;
}

#endif
