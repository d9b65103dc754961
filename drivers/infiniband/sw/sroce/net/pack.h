/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packets into a packet buffer.
 */
#ifndef SROCE_NET_PACK_H
#define SROCE_NET_PACK_H

#include <linux/bvec.h>

#include "wire/train.h"

struct sk_buff;
struct sroce_flow;

/**
 * sroce_pack_open() - make an empty packet buffer
 * @flow: of its packets
 * @size: bytes of the first packet, BTH to ICRC
 * @linear: bytes to make room for behind the headers; 0: packets go into page
 *	fragments
 *
 * Context: bottom halves off.
 * Return: the buffer, or NULL when there is no route or no memory.
 */
struct sk_buff *sroce_pack_open(const struct sroce_flow *flow, u32 size,
				u32 linear);

/* May a packet of @size bytes of a flow be added? */
bool sroce_pack_fits(const struct sk_buff *skb, const struct sroce_flow *flow,
		     u32 size);

/* Can nothing more be added? */
bool sroce_pack_full(const struct sk_buff *skb);

/**
 * sroce_pack_add() - add packets
 * @skb: buffer, sroce_pack_fits()
 * @t: train
 * @k: first packet
 * @n: number of packets; all are alike (wire/alike.h)
 * @bi: position of their payload in @t->bv, moved on behind what was added
 * @size: bytes of each, BTH to ICRC
 *
 * Return: how many were added: fewer than @n where there is no room for more in one piece,
 * 0 when there is none after all, and nothing was changed.
 */
u32 sroce_pack_add(struct sk_buff *skb, const struct sroce_train *t, u32 k,
		   u32 n, struct bvec_iter *bi, u32 size);

/* Send the buffer if there is anything in it; gone in any case */
void sroce_pack_send(struct sk_buff *skb);

void sroce_pack_exit(void);

#endif
