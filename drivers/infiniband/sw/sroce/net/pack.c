// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets into a packet buffer. All packets of a buffer share one IP and UDP
 * header and have the same size, but for the last one, which may be shorter:
 * a UDP GSO buffer, segmented late or never. Each packet lies in one piece, so
 * that its ICRC is computed in one go while the payload just copied is still in
 * the cache; it is computed for the header that the packet has after
 * segmentation.
 *
 * Of RoCE v1 each buffer is one packet: no device and no stack would cut it.
 *
 * xmit.c comes here; buffers leave by ip_local_out(), or v1.c.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/percpu.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/udp.h>

#include "compat.h"
#include "counters.h"
#include "memory/copy.h"
#include "net/init.h"
#include "net/net.h"
#include "net/pack.h"
#include "net/paths.h"
#include "net/v1.h"
#include "sending.h"
#include "txq.h"
#include "wire/alike.h"
#include "wire/icrc.h"

/* Receivers (virtio-net) of old kernels take no more */
#define SROCE_GSO_SEGS 64

/**
 * struct sroce_pack - an open buffer, in skb->cb
 * @path: where it goes; not held, because bottom halves are off until the buffer has left
 * @txq: who pays
 * @net: namespace, valid as long as bottom halves are off
 * @room: bytes that it may still take
 * @crc: ICRC state after the headers in front of the first packet
 * @size: of the first packet
 * @id: IPv4 identification of the first packet
 * @segs: packets in it
 * @max_segs: most packets
 * @tclass: traffic class or TOS of its packets
 * @linear: packets may go behind the headers
 * @closed: the last packet was shorter
 */
struct sroce_pack {
	struct sroce_path *path;
	struct sroce_txq *txq;
	struct net *net;
	u32 room;
	u32 crc;
	u16 size;
	u16 id;
	u16 segs;
	u16 max_segs;
	u8 tclass;
	bool linear;
	bool closed;
};

/* 512 KiB: what a stream has in the stack at a time, or 40 us at 100 Gbit/s */
#define SROCE_CHUNKS 16

/* Of each, at least: what skb_page_frag_refill() gets unless memory is short */
#define SROCE_CHUNK_SIZE SZ_32K

/**
 * struct sroce_chunks - memory of a CPU for packets, used with bottom halves off
 * @lock: a lock only where those who have bottom halves off can be preempted;
 *	innermost
 * @chunk: large pages, each filled from its beginning to its end
 * @filling: index of the one that is being filled
 *
 * A chunk whose packets are all freed when its turn comes again is used again:
 * it costs no allocation and no zeroing, and it is likely to be in the cache.
 */
struct sroce_chunks {
	local_lock_t lock; /* see above */
	struct page_frag chunk[SROCE_CHUNKS];
	unsigned int filling;
};

static DEFINE_PER_CPU(struct sroce_chunks, sroce_chunks) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

static struct sroce_pack *sroce_pack(const struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct sroce_pack) > sizeof(skb->cb));
	return (struct sroce_pack *)skb->cb;
}

static bool sroce_pack_is_ipv4(const struct sroce_pack *p)
{
	return sroce_path_is_ipv4(p->path);
}

static bool sroce_pack_is_v1(const struct sroce_pack *p)
{
	return sroce_path_is_v1(p->path);
}

/* Bytes of the headers in front of the BTH, without Ethernet's */
static u32 sroce_pack_hdrs_len(const struct sroce_path *path)
{
	switch (path->network_type) {
	case RDMA_NETWORK_IPV4:
		return sizeof(struct iphdr) + sizeof(struct udphdr);
	case RDMA_NETWORK_IPV6:
		return sizeof(struct ipv6hdr) + sizeof(struct udphdr);
	case RDMA_NETWORK_ROCE_V1:
	default:
		return sizeof(struct ipv6hdr);
	}
}

/* --- open ----------------------------------------------------------------- */

static void sroce_pack_ipv4(struct sk_buff *skb, const struct sroce_flow *flow)
{
	const struct sroce_path *path = flow->path;
	struct iphdr *ip = ip_hdr(skb);

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tos = flow->tclass,
		.frag_off = htons(IP_DF),
		.ttl = path->hop_limit,
		.protocol = IPPROTO_UDP,
	};
	memcpy(&ip->saddr, path->sgid.raw + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, path->dgid.raw + 12, sizeof(ip->daddr));
	skb->protocol = htons(ETH_P_IP);
}

/* IPv6, or a GRH, which looks the same */
static void sroce_pack_ipv6(struct sk_buff *skb, const struct sroce_flow *flow,
			    u8 nexthdr)
{
	const struct sroce_path *path = flow->path;
	struct ipv6hdr *ip = ipv6_hdr(skb);

	ip6_flow_hdr(ip, flow->tclass, htonl(path->flow_label));
	ip->nexthdr = nexthdr;
	ip->hop_limit = path->hop_limit;
	memcpy(&ip->saddr, path->sgid.raw, sizeof(ip->saddr));
	memcpy(&ip->daddr, path->dgid.raw, sizeof(ip->daddr));
}

static void sroce_pack_udp(struct sk_buff *skb, const struct sroce_flow *flow)
{
	struct udphdr *uh = udp_hdr(skb);

	*uh = (struct udphdr){
		.source = flow->sport,
		.dest = htons(SROCE_UDP_PORT),
	};
}

static u32 sroce_pack_hash(const struct sroce_flow *flow)
{
	if (flow->path->sport)
		return flow->path->hash;
	return jhash_1word((__force u16)flow->sport, flow->path->hash) ?: 1;
}

static void sroce_pack_headers(struct sk_buff *skb,
			       const struct sroce_flow *flow)
{
	skb_reset_network_header(skb);
	skb_put(skb, sroce_pack_hdrs_len(flow->path));
	switch (flow->path->network_type) {
	case RDMA_NETWORK_IPV4:
		skb_set_transport_header(skb, sizeof(struct iphdr));
		sroce_pack_ipv4(skb, flow);
		sroce_pack_udp(skb, flow);
		break;
	case RDMA_NETWORK_IPV6:
		skb_set_transport_header(skb, sizeof(struct ipv6hdr));
		sroce_pack_ipv6(skb, flow, IPPROTO_UDP);
		skb->protocol = htons(ETH_P_IPV6);
		sroce_pack_udp(skb, flow);
		break;
	case RDMA_NETWORK_ROCE_V1:
		skb_set_transport_header(skb, sizeof(struct ipv6hdr));
		sroce_pack_ipv6(skb, flow, SROCE_GRH_NEXT_HDR);
		skb->protocol = htons(ETH_P_IBOE);
		break;
	}
	skb->priority = flow->priority;
	__skb_set_hash(skb, sroce_pack_hash(flow), true, true);
}

/* IP datagrams end at 64 KiB, and a device counts its own headers as well */
static u32 sroce_pack_max_len(const struct sk_buff *skb,
			      const struct net_device *dev)
{
	u32 max = min_t(u32, netif_get_gso_max_size(dev, skb), U16_MAX);

	return max - min_t(u32, max, MAX_HEADER + skb->len);
}

static void sroce_pack_limit(struct sk_buff *skb, const struct net_device *dev,
			     u32 size)
{
	struct sroce_pack *p = sroce_pack(skb);

	p->max_segs = 1;
	if (READ_ONCE(sroce_gso) && skb->protocol != htons(ETH_P_IBOE))
		p->max_segs = clamp_t(u32, READ_ONCE(dev->gso_max_segs), 1,
				      SROCE_GSO_SEGS);
	/* The first packet always fits */
	p->room = max(sroce_pack_max_len(skb, dev), size);
}

/*
 * Identifications go on where those of the last buffer have ended, as receivers want
 * it that couple packets (GRO): not all of them look for a gap. The ICRC depends on
 * them, so they are given when a buffer is opened, and how many are used up is known
 * when it is sent. Two that are open at once have the same ones, which is legal for
 * packets that are never fragmented (RFC 6864).
 *
 * So processors that send through one address handle count together, although it costs
 * them a line: counts of their own would drift apart, and the same identification for all
 * would not survive a host in between that couples packets and cuts them again.
 */
static void sroce_pack_use_ids(const struct sroce_pack *p)
{
	if (sroce_pack_is_ipv4(p))
		WRITE_ONCE(p->path->id, p->id + p->segs);
}

static void sroce_pack_init(struct sk_buff *skb, const struct sroce_flow *flow,
			    struct net *net, const struct net_device *dev,
			    u32 size)
{
	struct sroce_pack *p = sroce_pack(skb);

	sroce_pack_headers(skb, flow);
	sroce_pack_limit(skb, dev, size);
	p->path = flow->path;
	p->txq = flow->txq;
	p->net = net;
	p->tclass = flow->tclass;
	p->size = size;
	p->id = READ_ONCE(flow->path->id);
}

/* @extra: bytes in front that the netdev does not know of */
static struct sk_buff *sroce_pack_alloc(const struct sroce_path *path,
					struct net_device *dev, u32 extra,
					u32 linear)
{
	u32 head = LL_RESERVED_SPACE(dev) + extra;
	struct sk_buff *skb;

	skb = alloc_skb(head + sroce_pack_hdrs_len(path) + linear +
			dev->needed_tailroom, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, head);
	return skb;
}

static struct sk_buff *sroce_pack_alloc_ip(struct sroce_path *path, u32 linear,
					   struct net **net)
{
	struct dst_entry *dst = sroce_path_route(path, net);
	struct sk_buff *skb;

	if (!dst)
		return NULL;
	skb = sroce_pack_alloc(path, dst->dev, dst->header_len, linear);
	/* Who keeps the buffer for longer than bottom halves are off takes a reference first */
	if (skb)
		skb_dst_set_noref(skb, dst);
	return skb;
}

static struct sk_buff *sroce_pack_alloc_v1(struct sroce_path *path, u32 linear,
					   struct net **net)
{
	struct net_device *dev = sroce_v1_netdev(path, net);
	struct sk_buff *skb;

	skb = dev ? sroce_pack_alloc(path, dev, 0, linear) : NULL;
	if (skb)
		skb->dev = dev;
	return skb;
}

struct sk_buff *sroce_pack_open(const struct sroce_flow *flow, u32 size,
				u32 linear)
{
	bool v1 = sroce_path_is_v1(flow->path);
	struct sk_buff *skb;
	struct net *net;

	skb = v1 ? sroce_pack_alloc_v1(flow->path, linear, &net) :
		   sroce_pack_alloc_ip(flow->path, linear, &net);
	if (!skb)
		return NULL;
	sroce_pack_init(skb, flow, net, v1 ? skb->dev : skb_dst(skb)->dev, size);
	sroce_pack(skb)->linear = linear;
	return skb;
}

/* --- add ------------------------------------------------------------------ */

bool sroce_pack_full(const struct sk_buff *skb)
{
	const struct sroce_pack *p = sroce_pack(skb);

	return p->closed || p->segs >= p->max_segs;
}

bool sroce_pack_fits(const struct sk_buff *skb, const struct sroce_flow *flow,
		     u32 size)
{
	const struct sroce_pack *p = sroce_pack(skb);

	return !sroce_pack_full(skb) && p->path == flow->path &&
	       p->txq == flow->txq && p->tclass == flow->tclass &&
	       udp_hdr(skb)->source == flow->sport && size <= p->size &&
	       size <= p->room;
}

static void sroce_chunk_drop(struct page_frag *pf)
{
	if (pf->page)
		put_page(pf->page);
	pf->page = NULL;
}

/*
 * Is it not to be filled again? Refilling takes what has come back as it is: a single page, got
 * when there was nothing larger, or memory from the reserve for freeing memory. That belongs
 * there, and whoever meets it takes the packet for one that frees memory.
 */
static bool sroce_chunk_is_makeshift(const struct page_frag *pf)
{
	return pf->page &&
	       (pf->size < SROCE_CHUNK_SIZE || page_is_pfmemalloc(pf->page));
}

/*
 * Return: the chunk to put @size bytes into, or NULL without memory. Context: the
 * chunks' lock held.
 */
static struct page_frag *sroce_chunk_get(u32 size)
{
	struct sroce_chunks *c = this_cpu_ptr(&sroce_chunks);
	struct page_frag *pf = &c->chunk[c->filling];

	if (likely(pf->page && pf->size - pf->offset >= size))
		return pf;
	c->filling = (c->filling + 1) % SROCE_CHUNKS;
	pf = &c->chunk[c->filling];
	if (unlikely(sroce_chunk_is_makeshift(pf)))
		sroce_chunk_drop(pf);
	if (!skb_page_frag_refill(size, pf, GFP_ATOMIC | __GFP_NOWARN))
		return NULL;
	if (likely(pf->size - pf->offset >= size))
		return pf;
	/* No large page, and a single one is too small: try again at the next packet */
	sroce_chunk_drop(pf);
	return NULL;
}

/* Does the buffer's last fragment end where the free space begins? */
static bool sroce_pack_frag_continues(struct sk_buff *skb,
				      const struct page_frag *pf)
{
	int n = skb_shinfo(skb)->nr_frags;

	return n && skb_can_coalesce(skb, n, pf->page, pf->offset);
}

/* A free piece of a chunk becomes part of the buffer. Context: the chunks' lock held */
static void *sroce_pack_chunk(struct sk_buff *skb, struct page_frag *pf, u32 len)
{
	int n = skb_shinfo(skb)->nr_frags;
	void *p;

	if (sroce_pack_frag_continues(skb, pf)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[n - 1], len);
	} else {
		if (n >= MAX_SKB_FRAGS)
			return NULL;
		get_page(pf->page);
		skb_fill_page_desc(skb, n, pf->page, pf->offset, len);
		/* The page stays as long as this piece of it, whoever has used the rest */
		if (unlikely(sroce_txq_is_crowded(sroce_pack(skb)->txq)))
			skb->truesize += pf->size - len;
	}
	p = page_address(pf->page) + pf->offset;
	pf->offset += len;
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
	return p;
}

/* As many of @n packets as there is room for in @room bytes; for one there is, always */
static u32 sroce_pack_cut(u32 n, u32 room, u32 size)
{
	/* Most are alone, and a division is not for nothing */
	return n > 1 ? min(n, room / size) : n;
}

/*
 * Room for packets in a fragment; *@n is cut to those that there is room for. It is the
 * caller's, who fills it without the lock
 */
static void *sroce_pack_frag(struct sk_buff *skb, u32 size, u32 *n)
{
	struct page_frag *pf;
	void *p = NULL;

	local_lock_nested_bh(&sroce_chunks.lock);
	pf = sroce_chunk_get(size);
	if (pf) {
		*n = sroce_pack_cut(*n, pf->size - pf->offset, size);
		p = sroce_pack_chunk(skb, pf, *n * size);
	}
	local_unlock_nested_bh(&sroce_chunks.lock);
	return p;
}

/*
 * As many of @n packets of @size bytes as the buffer may still take; sroce_pack_fits() has
 * seen that it is one. One that is shorter ends the buffer.
 */
static u32 sroce_pack_most(const struct sroce_pack *p, u32 n, u32 size)
{
	if (size < p->size)
		return 1;
	return min(sroce_pack_cut(n, p->room, size), (u32)p->max_segs - p->segs);
}

/* Room for packets of @size bytes in one piece, for *@n of them at most */
static void *sroce_pack_room(struct sk_buff *skb, u32 size, u32 *n)
{
	*n = sroce_pack_most(sroce_pack(skb), *n, size);
	if (sroce_pack(skb)->linear && !skb_is_nonlinear(skb) &&
	    skb_tailroom(skb) >= size) {
		*n = sroce_pack_cut(*n, skb_tailroom(skb), size);
		return skb_put(skb, *n * size);
	}
	return sroce_pack_frag(skb, size, n);
}

/* CRC state after the headers that the next packet will have when it is cut off */
static u32 sroce_pack_icrc_headers(struct sk_buff *skb, u32 size)
{
	const struct sroce_pack *p = sroce_pack(skb);
	struct udphdr *uh = udp_hdr(skb);

	if (sroce_pack_is_v1(p)) {
		ipv6_hdr(skb)->payload_len = htons(size);
		return sroce_icrc_grh(ipv6_hdr(skb));
	}
	uh->len = htons(sizeof(*uh) + size);
	if (!sroce_pack_is_ipv4(p)) {
		ipv6_hdr(skb)->payload_len = uh->len;
		return sroce_icrc_ipv6(ipv6_hdr(skb), uh);
	}
	ip_hdr(skb)->tot_len = htons(sizeof(struct iphdr) + sizeof(*uh) + size);
	ip_hdr(skb)->id = htons(p->id + p->segs);
	return sroce_icrc_ipv4(ip_hdr(skb), uh);
}

/*
 * CRC state after the next packet's headers. For one as large as the first it follows
 * from that one's: only the identification differs.
 */
static u32 sroce_pack_icrc_start(struct sk_buff *skb, u32 size)
{
	struct sroce_pack *p = sroce_pack(skb);
	u16 id = p->id + p->segs;
	u32 crc;

	if (p->segs && size == p->size)
		return sroce_pack_is_ipv4(p) ?
		       sroce_icrc_change_id(p->crc, p->id ^ id) : p->crc;
	crc = sroce_pack_icrc_headers(skb, size);
	if (!p->segs)
		p->crc = crc;
	return crc;
}

static void sroce_pack_icrc(struct sk_buff *skb, void *pkt, u32 size)
{
	u32 len = size - SROCE_ICRC_LEN;
	__le32 icrc;
	u32 crc;

	crc = sroce_icrc_bth(sroce_pack_icrc_start(skb, size), pkt, len);
	icrc = sroce_icrc_final(crc);
	memcpy(pkt + len, &icrc, sizeof(icrc));
}

/* Payload, pad and ICRC of the next packet, whose headers are there; its end */
static void *sroce_pack_fill(struct sk_buff *skb, void *pkt, u32 hlen,
			     const struct sroce_train *t, u32 len,
			     struct bvec_iter *bi, u32 size)
{
	u32 pad = size - SROCE_ICRC_LEN - hlen - len;

	if (len)
		sroce_bvec_read(pkt + hlen, t->bv, bi, len);
	if (pad)
		memset(pkt + hlen + len, 0, pad);
	sroce_pack_icrc(skb, pkt, size);
	sroce_pack(skb)->segs++;
	return pkt + size;
}

u32 sroce_pack_add(struct sk_buff *skb, const struct sroce_train *t, u32 k,
		   u32 n, struct bvec_iter *bi, u32 size)
{
	struct sroce_pack *p = sroce_pack(skb);
	u32 len = sroce_train_payload(t, k);
	void *pkt = sroce_pack_room(skb, size, &n);
	u32 hlen, i;

	if (!pkt)
		return 0;
	hlen = sroce_train_encode(t, k, pkt);
	pkt = sroce_pack_fill(skb, pkt, hlen, t, len, bi, size);
	for (i = 1; i < n; i++) {
		sroce_alike_encode(t, k + i, pkt - size, hlen, pkt);
		pkt = sroce_pack_fill(skb, pkt, hlen, t, len, bi, size);
	}
	p->room -= n * size;
	p->closed = size < p->size;
	return n;
}

/* --- send ----------------------------------------------------------------- */

/* UDP length and checksum; the IP length is set by ip_local_out() */
static void sroce_pack_finish_udp(struct sk_buff *skb, bool ipv4)
{
	u32 len = skb->len - skb_transport_offset(skb);
	struct udphdr *uh = udp_hdr(skb);

	uh->len = htons(len);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	if (ipv4)
		uh->check = ~udp_v4_check(len, ip_hdr(skb)->saddr,
					  ip_hdr(skb)->daddr, 0);
	else
		uh->check = ~udp_v6_check(len, &ipv6_hdr(skb)->saddr,
					  &ipv6_hdr(skb)->daddr, 0);
}

static void sroce_pack_finish_gso(struct sk_buff *skb,
				  const struct sroce_pack *p)
{
	if (p->segs == 1)
		return;
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_size = p->size;
	skb_shinfo(skb)->gso_segs = p->segs;
}

static int sroce_pack_finish(struct sk_buff *skb, const struct sroce_pack *p)
{
	if (sroce_pack_is_ipv4(p))
		ip_hdr(skb)->id = htons(p->id);
	/* Of RoCE v1 there is nothing to do: the one packet is as it was added */
	if (!sroce_pack_is_v1(p)) {
		sroce_pack_finish_udp(skb, sroce_pack_is_ipv4(p));
		sroce_pack_finish_gso(skb, p);
	}
	/* The layers below expect it clean */
	memset(skb->cb, 0, sizeof(skb->cb));
	return sroce_txq_charge(skb, p->txq);
}

/* Return: 0, or not 0 when the packets are lost */
static int sroce_pack_output(struct sk_buff *skb, const struct sroce_pack *p)
{
	int err;

	sroce_sending_begin();
	rcu_read_lock();
	if (sroce_pack_is_v1(p))
		err = sroce_v1_output(p->net, p->path, skb);
	else if (sroce_pack_is_ipv4(p) || !ipv6_mod_enabled())
		err = ip_local_out(p->net, sroce_txq_sender(), skb);
	else
		err = ip6_local_out(p->net, NULL, skb);
	rcu_read_unlock();
	sroce_sending_end();
	return net_xmit_eval(err);
}

static void sroce_pack_count(const struct sroce_pack *p, u32 bytes)
{
	struct sroce_counters __percpu *c = p->txq->counters;

	sroce_count(c, SROCE_CNT_TX_TRAINS, 1);
	sroce_count(c, SROCE_CNT_TX_PACKETS, p->segs);
	sroce_count(c, SROCE_CNT_TX_BYTES, bytes);
	if (unlikely(p->path->group))
		sroce_count(c, SROCE_CNT_TX_MCAST_PACKETS, p->segs);
}

static int sroce_pack_transmit(struct sk_buff *skb, const struct sroce_pack *p)
{
	int err = sroce_pack_finish(skb, p);

	sroce_pack_use_ids(p);
	if (err) {
		kfree_skb(skb);
		return err;
	}
	sroce_sending_spend(skb, sroce_pack_is_v1(p) ? skb->dev :
			    skb_dst(skb)->dev, p->segs);
	return sroce_pack_output(skb, p);
}

void sroce_pack_send(struct sk_buff *skb)
{
	struct sroce_pack p = *sroce_pack(skb);
	u32 bytes = skb->len - sroce_pack_hdrs_len(p.path);

	if (!p.segs)
		kfree_skb(skb);
	else if (sroce_pack_transmit(skb, &p))
		sroce_count(p.txq->counters, SROCE_CNT_TX_DROPS, p.segs);
	else
		sroce_pack_count(&p, bytes);
}

void sroce_pack_exit(void)
{
	struct sroce_chunks *c;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(&sroce_chunks, cpu);
		for (i = 0; i < SROCE_CHUNKS; i++)
			sroce_chunk_drop(&c->chunk[i]);
	}
}
