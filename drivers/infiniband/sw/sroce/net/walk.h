/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The bytes of a packet buffer.
 */
#ifndef SROCE_NET_WALK_H
#define SROCE_NET_WALK_H

#include <linux/bvec.h>
#include <linux/types.h>

struct sk_buff;

/**
 * struct sroce_walk - position in a packet buffer of any layout
 * @head: buffer
 * @skb: @head or a member of its frag_list
 * @frag: index in @skb's frags, -1 for its linear part
 * @off: offset in that
 */
struct sroce_walk {
	struct sk_buff *head;
	struct sk_buff *skb;
	int frag;
	u32 off;
};

/**
 * sroce_walk_start() - begin
 * @w: position
 * @skb: buffer; may be linearised
 * @off: bytes to skip
 *
 * Return: 0 or a negative errno when its bytes cannot be reached.
 */
int sroce_walk_start(struct sroce_walk *w, struct sk_buff *skb, u32 off);

static inline void sroce_walk_skip(struct sroce_walk *w, u32 len)
{
	w->off += len;
}

/**
 * sroce_walk_whole() - describe the next bytes, if they are in one piece
 * @w: position, which stays in front of them: sroce_walk_skip() moves on behind them
 * @bv: filled in, of no use when false is returned
 * @len: bytes
 *
 * Return: false when they are in several pieces, or the buffer ends early.
 */
bool sroce_walk_whole(struct sroce_walk *w, struct bio_vec *bv, u32 len);

/**
 * sroce_walk_map() - describe the next bytes and move on behind them
 * @w: position
 * @bv: filled in
 * @max: entries of @bv
 * @len: bytes
 *
 * Return: entries used; -EMSGSIZE when @max is too few, -EFAULT when the buffer
 * ends early; @w is then of no use.
 */
int sroce_walk_map(struct sroce_walk *w, struct bio_vec *bv, int max, u32 len);

#endif
