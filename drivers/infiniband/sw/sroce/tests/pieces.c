// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packet buffers whose bytes are in one piece, in page fragments (as many NICs and their GRO
 * leave them), or in a list of buffers (as GRO leaves those of the other NICs).
 */
#include <linux/ip.h>
#include <linux/mm.h>
#include <linux/udp.h>

#include "compat.h"
#include "net/net.h"
#include "tests/pieces.h"

static struct sk_buff *linear(const u8 *from, u32 len)
{
	struct sk_buff *skb = alloc_skb(len, GFP_KERNEL);

	if (skb)
		skb_put_data(skb, from, len);
	return skb;
}

static bool add_fragment(struct sk_buff *skb, const u8 *from, u32 len)
{
	struct page *page = alloc_page(GFP_KERNEL);

	if (!page)
		return false;
	memcpy(page_address(page), from, len);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, len, PAGE_SIZE);
	return true;
}

static bool add_member(struct sk_buff *skb, struct sk_buff **last, const u8 *from, u32 len)
{
	struct sk_buff *member = linear(from, len);

	if (!member)
		return false;
	if (*last)
		(*last)->next = member;
	else
		skb_shinfo(skb)->frag_list = member;
	*last = member;
	skb->len += len;
	skb->data_len += len;
	skb->truesize += member->truesize;
	return true;
}

struct sk_buff *pieces_skb(const struct pieces *p, const u8 *from, u32 head, u32 len)
{
	struct sk_buff *skb = linear(from, p->bytes ? head : len), *last = NULL;
	u32 at, n;

	if (!skb || !p->bytes)
		return skb;
	for (at = head; at < len; at += n) {
		n = min(p->bytes, len - at);
		if (p->list ? add_member(skb, &last, from + at, n) :
			      add_fragment(skb, from + at, n))
			continue;
		kfree_skb(skb);
		return NULL;
	}
	return skb;
}

void pieces_headers(u8 *to, u16 id, u32 len)
{
	struct udphdr *udp = (struct udphdr *)(to + sizeof(struct iphdr));
	struct iphdr *ip = (struct iphdr *)to;

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.tot_len = htons(sizeof(*ip) + sizeof(*udp) + len),
		.id = htons(id),
		.frag_off = htons(IP_DF),
		.protocol = IPPROTO_UDP,
		.saddr = htonl(0x0a4d0001),
		.daddr = htonl(0x0a4d0002),
	};
	*udp = (struct udphdr){
		.source = htons(0xc123),
		.dest = htons(SROCE_UDP_PORT),
		.len = htons(sizeof(*udp) + len),
	};
}
