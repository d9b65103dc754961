/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packet buffers whose bytes are in one piece, in page fragments, or in a list of buffers.
 */
#ifndef SROCE_TESTS_PIECES_H
#define SROCE_TESTS_PIECES_H

#include <linux/skbuff.h>

/**
 * struct pieces - layout of a buffer
 * @bytes: of each piece but the last; 0: all of it is linear
 * @list: each piece is a buffer of its own, in a list; otherwise a page fragment, of which
 *	there are MAX_SKB_FRAGS at most, of a page each
 */
struct pieces {
	u32 bytes;
	bool list;
};

/**
 * pieces_skb() - make a packet buffer
 * @p: layout of what is behind the headers
 * @from: bytes
 * @head: of these the headers, which are linear
 * @len: of all
 *
 * Return: the buffer, or NULL without memory.
 */
struct sk_buff *pieces_skb(const struct pieces *p, const u8 *from, u32 head, u32 len);

/* IPv4 and UDP headers of one QP's packets: @id is the identification, @len bytes follow */
void pieces_headers(u8 *to, u16 id, u32 len);

#endif
