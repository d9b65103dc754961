// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Puts hostile packets into buffers of every layout that the stack knows, and
 * hands them to the driver.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "compat.h"
#include "net/net.h"
#include "net/receive.h"
#include "tests/fuzz_skb.h"
#include "wire/icrc.h"

/**
 * struct cut - some packets of a train, on their way into a buffer
 * @v1: RoCE v1: a GRH, no UDP header, and one packet
 * @ipv4: IPv4
 * @fixed_id: the identification does not count up
 * @id: IPv4 identification
 * @hlen: bytes of IP and UDP header, or GRH
 * @len: bytes of the packets
 * @stride: gso_size; 0: one packet
 * @n: packets
 */
struct cut {
	bool v1;
	bool ipv4;
	bool fixed_id;
	u16 id;
	u32 hlen;
	u32 len;
	u32 stride;
	u32 n;
};

bool fuzz_train_add(struct fuzz_train *t, const u8 *packet, u32 len,
		    bool bad_icrc)
{
	if (t->n == FUZZ_PACKETS || len > sizeof(t->bytes) - t->len)
		return false;
	memcpy(t->bytes + t->len, packet, len);
	t->size[t->n] = len;
	t->bad_icrc[t->n++] = bad_icrc;
	t->len += len;
	return true;
}

/* --- headers --------------------------------------------------------------- */

static void make_ipv4(u8 *to, const struct fuzz_envelope *env, u16 id, u32 len)
{
	struct iphdr *ip = (struct iphdr *)to;

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.tot_len = htons(sizeof(*ip) + sizeof(struct udphdr) + len),
		.id = htons(id),
		.frag_off = htons(IP_DF),
		.protocol = IPPROTO_UDP,
	};
	memcpy(&ip->saddr, env->src.raw + 12, 4);
	memcpy(&ip->daddr, env->dst.raw + 12, 4);
}

static void make_ipv6(u8 *to, const struct fuzz_envelope *env, u8 nexthdr,
		      u32 len)
{
	struct ipv6hdr *ip = (struct ipv6hdr *)to;

	*ip = (struct ipv6hdr){
		.version = 6,
		.hop_limit = 64,
		.nexthdr = nexthdr,
		.payload_len = htons(len),
	};
	memcpy(&ip->saddr, &env->src, sizeof(ip->saddr));
	memcpy(&ip->daddr, &env->dst, sizeof(ip->daddr));
}

static void make_headers(u8 *to, const struct fuzz_envelope *env,
			 const struct cut *c, u16 id, u32 len)
{
	struct udphdr *udp = (struct udphdr *)(to + c->hlen - sizeof(*udp));

	if (c->v1) {
		make_ipv6(to, env, SROCE_GRH_NEXT_HDR, len);
		return;
	}
	if (c->ipv4)
		make_ipv4(to, env, id, len);
	else
		make_ipv6(to, env, IPPROTO_UDP, sizeof(*udp) + len);
	*udp = (struct udphdr){
		.source = htons(0xc123),
		.dest = htons(SROCE_UDP_PORT),
		.len = htons(sizeof(*udp) + len),
	};
}

static __le32 icrc(const u8 *headers, const struct cut *c, const u8 *packet,
		   u32 len)
{
	const void *udp = headers + c->hlen - sizeof(struct udphdr);
	u32 crc;

	if (c->v1)
		crc = sroce_icrc_grh((const void *)headers);
	else if (c->ipv4)
		crc = sroce_icrc_ipv4((const void *)headers, udp);
	else
		crc = sroce_icrc_ipv6((const void *)headers, udp);
	return sroce_icrc_final(sroce_icrc_bth(crc, packet, len));
}

/* The headers in front of each packet are those that it would have alone */
static void seal(struct fuzz_stage *st, const struct fuzz_envelope *env,
		 const struct cut *c, const u16 *size, const bool *bad)
{
	u8 *headers = st->bytes + ETH_HLEN;
	u8 *packet = headers + c->hlen;
	__le32 sum;
	u32 k;

	for (k = 0; k < c->n; packet += size[k++]) {
		if (size[k] < SROCE_BTH_LEN + SROCE_ICRC_LEN)
			continue;
		make_headers(headers, env, c, c->id + (c->fixed_id ? 0 : k),
			     size[k]);
		sum = icrc(headers, c, packet, size[k] - SROCE_ICRC_LEN);
		if (bad[k])
			sum ^= cpu_to_le32(BIT(k));
		memcpy(packet + size[k] - SROCE_ICRC_LEN, &sum, sizeof(sum));
	}
	make_headers(headers, env, c, c->id, c->len);
}

/* --- layouts --------------------------------------------------------------- */

struct sk_buff *fuzz_linear(const u8 *from, u32 len)
{
	struct sk_buff *skb = alloc_skb(len, GFP_ATOMIC);

	if (skb)
		skb_put_data(skb, from, len);
	return skb;
}

/* At the end of its page, so that whoever reads too far is noticed */
static bool add_frag(struct sk_buff *skb, const u8 *from, u32 len)
{
	struct page *page = alloc_page(GFP_ATOMIC);
	u32 off = PAGE_SIZE - len;

	if (!page)
		return false;
	memcpy(page_address(page) + off, from, len);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, off, len,
			PAGE_SIZE);
	return true;
}

bool fuzz_add_frags(struct rnd_state *rnd, struct sk_buff *skb, const u8 *from,
		    u32 len, u32 parts)
{
	while (len) {
		u32 least = DIV_ROUND_UP(len, parts);
		u32 n = min3(len, least + fuzz_below(rnd, 64), (u32)PAGE_SIZE);

		if (!add_frag(skb, from, n))
			return false;
		from += n;
		len -= n;
		parts -= parts > 1;
	}
	return true;
}

bool fuzz_add_list(struct rnd_state *rnd, struct sk_buff *skb, const u8 *from,
		   u32 len)
{
	struct sk_buff **next = &skb_shinfo(skb)->frag_list;

	while (len) {
		u32 n = min(len, 1 + fuzz_below(rnd, 2 * len));
		u32 head = fuzz_one_in(rnd, 2) || n > 32768 ?
			   n : fuzz_below(rnd, n);

		*next = fuzz_linear(from, head);
		if (!*next || !fuzz_add_frags(rnd, *next, from + head, n - head,
					      FUZZ_PARTS))
			return false;
		skb->data_len += n;
		skb->len += n;
		skb->truesize += (*next)->truesize;
		next = &(*next)->next;
		from += n;
		len -= n;
	}
	return true;
}

/* IP header and more in the linear part, as the stack guarantees */
static struct sk_buff *lay_out_parts(struct fuzz_stage *st, const struct cut *c)
{
	u32 all = ETH_HLEN + c->hlen + c->len;
	u32 least = ETH_HLEN + c->hlen - (c->v1 ? 0 : sizeof(struct udphdr));
	u32 head = least + fuzz_below(st->rnd, 80);
	u32 layout = fuzz_below(st->rnd, 8);
	struct sk_buff *skb;
	bool ok = true;

	if (layout < 4 || head >= all)
		head = all;
	else
		st->in_parts++;
	if (layout < 6 && head < all)
		head = max(head, all - min(all, (u32)(FUZZ_PARTS * PAGE_SIZE)));
	skb = fuzz_linear(st->bytes, head);
	if (!skb)
		return NULL;
	if (head < all)
		ok = layout < 6 ?
		     fuzz_add_frags(st->rnd, skb, st->bytes + head, all - head,
				    FUZZ_PARTS) :
		     fuzz_add_list(st->rnd, skb, st->bytes + head, all - head);
	if (ok)
		return skb;
	kfree_skb(skb);
	return NULL;
}

/* --- faults ---------------------------------------------------------------- */

static void break_ipv4(struct rnd_state *rnd, struct iphdr *ip)
{
	switch (fuzz_below(rnd, 5)) {
	case 0:
		ip->ihl = fuzz_below(rnd, 16);
		break;
	case 1:
		ip->frag_off = htons(prandom_u32_state(rnd));
		break;
	case 2:
		ip->tot_len = htons(ntohs(ip->tot_len) +
				    fuzz_below(rnd, 41) - 20);
		break;
	case 3:
		ip->tot_len = htons(prandom_u32_state(rnd));
		break;
	case 4:
		ip->tos = prandom_u32_state(rnd);
		break;
	}
}

/* IP has looked at its version, nobody at that of a GRH */
static void break_ipv6(struct rnd_state *rnd, struct ipv6hdr *ip, bool v1)
{
	switch (fuzz_below(rnd, v1 ? 4 : 3)) {
	case 0:
		ip->nexthdr = prandom_u32_state(rnd);
		break;
	case 1:
		ip->payload_len = htons(ntohs(ip->payload_len) +
					fuzz_below(rnd, 41) - 20);
		break;
	case 2:
		ip->payload_len = htons(prandom_u32_state(rnd));
		break;
	case 3:
		ip->version = fuzz_below(rnd, 16);
		break;
	}
}

/* Something around the packets, or their lengths, is wrong */
static void break_buffer(struct fuzz_stage *st, struct cut *c)
{
	u8 *ip = st->bytes + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + c->hlen - sizeof(*udp));

	switch (fuzz_below(st->rnd, 6)) {
	case 0:
		if (!c->v1)
			udp->len = htons(prandom_u32_state(st->rnd));
		break;
	case 1:
		c->stride = 1 + fuzz_below(st->rnd, c->len + 1);
		break;
	case 2:
		c->len = fuzz_below(st->rnd, c->len + 1);
		break;
	default:
		if (c->ipv4)
			break_ipv4(st->rnd, (struct iphdr *)ip);
		else
			break_ipv6(st->rnd, (struct ipv6hdr *)ip, c->v1);
	}
}

/* --- into the driver ------------------------------------------------------- */

static u16 ethertype(const struct cut *c)
{
	if (c->v1)
		return ETH_P_IBOE;
	return c->ipv4 ? ETH_P_IP : ETH_P_IPV6;
}

static void address(struct fuzz_stage *st, struct sk_buff *skb,
		    const struct cut *c, u8 pkt_type)
{
	skb_reset_mac_header(skb);
	__skb_pull(skb, ETH_HLEN);
	skb_reset_network_header(skb);
	skb_reset_mac_len(skb);
	skb->dev = st->ndev;
	skb->pkt_type = pkt_type;
	skb->protocol = htons(ethertype(c));
	if (!c->stride || c->stride >= c->len)
		return;
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_size = c->stride;
	skb_shinfo(skb)->gso_segs = DIV_ROUND_UP(c->len, c->stride);
	st->trains++;
}

static struct sk_buff *lay_out(struct fuzz_stage *st, const struct cut *c,
			       u8 pkt_type)
{
	struct sk_buff *skb = lay_out_parts(st, c);

	if (!skb)
		return NULL;
	st->buffers++;
	address(st, skb, c, pkt_type);
	return skb;
}

static void receive(struct fuzz_stage *st, struct sroce_port *port,
		    struct sk_buff *skb)
{
	local_bh_disable();
	rcu_read_lock();
	st->parts += fuzz_receive(&port->net, skb,
				  (struct sroce_rx_place){});
	rcu_read_unlock();
	local_bh_enable();
}

static bool may_wait(const struct fuzz_stage *st)
{
	return st->wait && !softirq_count();
}

/* Return: how often it comes */
static u32 deliver(struct fuzz_stage *st, struct sroce_port *port,
		   const struct fuzz_envelope *env, const struct cut *c)
{
	struct sk_buff *skb = lay_out(st, c, env->pkt_type), *twice;

	if (!skb)
		return 0;
	if (!may_wait(st)) {
		receive(st, port, skb);
		return 1;
	}
	twice = env->faults && fuzz_one_in(st->rnd, 4) ?
		lay_out(st, c, env->pkt_type) : NULL;
	if (twice)
		fuzz_wait_echo(st->wait, port, &env->src, twice);
	fuzz_wait_send(st->wait, port, &env->src, skb, fuzz_one_in(st->rnd, 2));
	return twice ? 2 : 1;
}

/* As many as may share a buffer: of one size, and the last one shorter */
static void choose(struct fuzz_stage *st, const struct fuzz_train *t, u32 first,
		   struct cut *c)
{
	const u16 *size = t->size + first;
	u32 most = fuzz_one_in(st->rnd, 3) || c->v1 ? 1 : FUZZ_PACKETS;

	c->n = 1;
	c->len = size[0];
	while (c->n < most && first + c->n < t->n && size[c->n] <= size[0] &&
	       size[c->n - 1] == size[0])
		c->len += size[c->n++];
	c->stride = c->n > 1 ? size[0] : 0;
	c->id = prandom_u32_state(st->rnd);
	c->fixed_id = fuzz_one_in(st->rnd, 8);
}

u32 fuzz_send(struct fuzz_stage *st, struct sroce_port *port,
	      const struct fuzz_envelope *env, struct fuzz_train *t)
{
	struct cut c = {
		.v1 = env->v1,
		.ipv4 = !env->v1 &&
			ipv6_addr_v4mapped((struct in6_addr *)&env->dst),
	};
	u32 first, sent = 0;
	const u8 *from = t->bytes;

	c.hlen = (c.ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) +
		 (c.v1 ? 0 : sizeof(struct udphdr));
	memset(st->bytes, 0x22, ETH_HLEN);
	for (first = 0; first < t->n; first += c.n) {
		choose(st, t, first, &c);
		memcpy(st->bytes + ETH_HLEN + c.hlen, from, c.len);
		from += c.len;
		seal(st, env, &c, t->size + first, t->bad_icrc + first);
		if (env->faults && fuzz_one_in(st->rnd, 16))
			break_buffer(st, &c);
		sent += c.n * deliver(st, port, env, &c);
	}
	if (may_wait(st) && !fuzz_wait_settle(st->wait))
		st->stuck = true;
	t->n = 0;
	t->len = 0;
	return sent;
}
