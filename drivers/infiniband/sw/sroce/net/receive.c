// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From a packet buffer to the QPs. A buffer holds one packet, or a train that
 * was never cut up or that GRO put together again: one IP and UDP header, then
 * packets of gso_size bytes, the last one may be shorter. (Of RoCE v1 it is always
 * one packet, behind a GRH.) Each is looked at in place. Its ICRC comes first: nothing
 * in a packet is believed before that.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "counters.h"
#include "memory/copy.h"
#include "net/attach.h"
#include "net/gsi.h"
#include "net/net.h"
#include "net/receive.h"
#include "net/walk.h"
#include "sending.h"
#include "turn.h"
#include "wire/alike.h"
#include "wire/icrc.h"

/* A packet of the largest MTU seldom has more parts than this */
#define SROCE_RX_PARTS 8

/*
 * A train takes one more packet as long as it has no more parts than this: 62 packets of
 * 1024 bytes are what a buffer of 64 KiB holds. So 63 at most are coupled.
 */
#define SROCE_RX_COUPLED 62

/* Parts of the packets of one train, and room for one more packet */
#define SROCE_RX_BVECS (SROCE_RX_COUPLED + SROCE_RX_PARTS)

/*
 * Packets of one buffer. Drivers, GRO and sockets couple no more; who may send frames
 * (a container over its veth) can say that a buffer has thousands, which would all be
 * taken without a break.
 */
#define SROCE_RX_MOST_PACKETS 128

/*
 * How far an identification may be from the expected one. A larger gap is not worth
 * that a broken packet is the more often taken for one with another identification.
 */
#define SROCE_RX_ID_GAP 128

#define SROCE_MIN_PACKET (SROCE_BTH_LEN + SROCE_ICRC_LEN)
#define SROCE_MAX_PACKET (SROCE_MAX_HDR_LEN + SROCE_MAX_PAYLOAD + SROCE_ICRC_LEN)

/**
 * struct sroce_skb_rx - walk over the packets of one buffer
 * @rx: what the transport sees
 * @info: where they come from
 * @skb: buffer
 * @port: device it is for
 * @walk: position in @skb
 * @pos: the same as an offset
 * @left: bytes of packets not yet looked at
 * @stride: bytes of each packet but the last
 * @k: number of the current packet, from 1
 * @id: IPv4 identification of the first one, as the current one's follows from it
 * @crc: ICRC state after headers with @id, in front of @crc_len bytes
 * @crc_len: 0 as long as there is none
 * @fixed_id: all packets have the same identification
 * @train: there is more than one packet
 * @group: they were sent to a multicast group
 * @ce: congestion experienced
 * @stop: the rest of the buffer is for later
 * @wait: so is all of it: it begins with something for QP 1
 * @first_fixed_id: @fixed_id as it was behind the first packet of the train
 * @first_id: likewise
 * @alike: how the last packet looked that was coupled to others
 * @ip4: header of the current packet
 * @ip6: header of the current packet; of RoCE v1 its GRH
 * @udp: header of the current packet; none in RoCE v1
 * @hdr: BTH and extended headers, when they are not in one piece
 * @part: the next packet to look at, in @bv
 * @bv: payload of the packets before it that make a train, and itself: SROCE_RX_BVECS. Not
 *	here, because all that is here is cleared for each buffer
 */
struct sroce_skb_rx {
	struct sroce_rx rx;
	struct sroce_rx_info info;
	struct sk_buff *skb;
	struct sroce_netport *port;
	struct sroce_walk walk;
	u32 pos;
	u32 left;
	u32 stride;
	u32 k;
	u32 crc;
	u32 crc_len;
	u16 id;
	bool fixed_id;
	bool train;
	bool group;
	bool ce;
	bool stop;
	bool wait;
	bool first_fixed_id;
	u16 first_id;
	struct sroce_alike alike;
	union {
		struct iphdr ip4;
		struct ipv6hdr ip6;
	};
	struct udphdr udp;
	u8 hdr[SROCE_MAX_HDR_LEN];
	struct bio_vec *part;
	struct bio_vec *bv;
};

static bool sroce_rx_is(const struct sroce_skb_rx *r,
			enum rdma_network_type type)
{
	return r->info.network_hdr_type == type;
}

static void sroce_rx_count(const struct sroce_skb_rx *r, enum sroce_counter id)
{
	sroce_count(r->port->counters, id, 1);
}

/* --- one packet ----------------------------------------------------------- */

/* CRC state after the headers that the packet had before it was coupled */
static u32 sroce_rx_icrc_ipv4(struct sroce_skb_rx *r, u32 len)
{
	u16 id = r->id + (r->fixed_id ? 0 : r->k - 1);

	r->ip4.tot_len = htons(sizeof(r->ip4) + sizeof(r->udp) + len);
	r->ip4.id = htons(id);
	if (len != r->crc_len) {
		r->crc = sroce_icrc_change_id(sroce_icrc_ipv4(&r->ip4, &r->udp),
					      id ^ r->id);
		r->crc_len = len;
	}
	return sroce_icrc_change_id(r->crc, id ^ r->id);
}

static u32 sroce_rx_icrc_ipv6(struct sroce_skb_rx *r, u32 len)
{
	r->ip6.payload_len = r->udp.len;
	if (len != r->crc_len) {
		r->crc = sroce_icrc_ipv6(&r->ip6, &r->udp);
		r->crc_len = len;
	}
	return r->crc;
}

static u32 sroce_rx_icrc_start(struct sroce_skb_rx *r, u32 len)
{
	if (sroce_rx_is(r, RDMA_NETWORK_ROCE_V1))
		return sroce_icrc_grh(&r->ip6);
	r->udp.len = htons(sizeof(r->udp) + len);
	return sroce_rx_is(r, RDMA_NETWORK_IPV4) ?
	       sroce_rx_icrc_ipv4(r, len) : sroce_rx_icrc_ipv6(r, len);
}

/* The same as sroce_rx_icrc_diff(), of a packet in one piece */
static u32 sroce_rx_icrc_diff_whole(struct sroce_skb_rx *r, const u8 *hdr,
				    u32 len)
{
	u32 n = len - SROCE_ICRC_LEN;
	u32 crc = sroce_icrc_bth(sroce_rx_icrc_start(r, len), hdr, n);

	return get_unaligned_le32(hdr + n) ^
	       le32_to_cpu(sroce_icrc_final(crc));
}

/*
 * What is wrong with the ICRC of the packet, 0 for nothing. @hdr is its beginning,
 * its BTH in one piece.
 */
static u32 sroce_rx_icrc_diff(struct sroce_skb_rx *r, const u8 *hdr, u32 len)
{
	struct bvec_iter bi = { .bi_size = len };
	struct bio_vec part;
	u32 crc, n = SROCE_BTH_LEN;
	__le32 icrc;

	if (likely(r->part->bv_len >= len))
		return sroce_rx_icrc_diff_whole(r, hdr, len);
	if (hdr != r->hdr)
		n = min_t(u32, r->part->bv_len, len - SROCE_ICRC_LEN);
	crc = sroce_icrc_bth(sroce_rx_icrc_start(r, len), hdr, n);
	bvec_iter_advance(r->part, &bi, n);
	while (bi.bi_size > SROCE_ICRC_LEN) {
		part = mp_bvec_iter_bvec(r->part, bi);
		part.bv_len = min_t(u32, part.bv_len,
				    bi.bi_size - SROCE_ICRC_LEN);
		crc = sroce_icrc_data(crc, page_address(part.bv_page) +
				      part.bv_offset, part.bv_len);
		bvec_iter_advance(r->part, &bi, part.bv_len);
	}
	sroce_bvec_read(&icrc, r->part, &bi, sizeof(icrc));
	return le32_to_cpu(icrc ^ sroce_icrc_final(crc));
}

/*
 * Of packets that GRO has coupled only the first one's identification is left. Most
 * count it up; RFC 6864 lets DF packets keep it as well; and older kernels did not
 * look for gaps when they coupled UDP. The ICRC says which one a packet had, if that is all
 * that is wrong: one that is likely is believed, and the next ones follow it.
 */
static bool sroce_rx_other_id(struct sroce_skb_rx *r, u32 diff, u32 len)
{
	u16 change, id, expected = ntohs(r->ip4.id);

	if (!sroce_rx_is(r, RDMA_NETWORK_IPV4) || r->k == 1 ||
	    !sroce_icrc_find_id(diff, len - SROCE_ICRC_LEN, &change))
		return false;
	id = expected ^ change;
	if (abs((s16)(id - expected)) > SROCE_RX_ID_GAP && id != r->id)
		return false;
	if (r->k == 2 && id == r->id)
		r->fixed_id = true;
	else
		r->id += id - expected;
	r->crc_len = 0;
	r->ip4.id = htons(id);
	return true;
}

static bool sroce_rx_icrc_ok(struct sroce_skb_rx *r, const u8 *hdr, u32 len)
{
	u32 diff = sroce_rx_icrc_diff(r, hdr, len);

	return !diff || sroce_rx_other_id(r, diff, len);
}

static const u8 *sroce_rx_header(struct sroce_skb_rx *r, u32 len)
{
	struct bvec_iter bi = { .bi_size = len };

	if (r->part->bv_len >= len)
		return page_address(r->part->bv_page) + r->part->bv_offset;
	sroce_bvec_read(r->hdr, r->part, &bi, len);
	return r->hdr;
}

static int sroce_rx_map(struct sroce_skb_rx *r, u32 pos, u32 len)
{
	int n = sroce_walk_map(&r->walk, r->part, SROCE_RX_PARTS, len);

	if (n != -EMSGSIZE)
		return n;
	if (skb_linearize(r->skb) || sroce_walk_start(&r->walk, r->skb, pos))
		return -ENOMEM;
	return sroce_walk_map(&r->walk, r->part, SROCE_RX_PARTS, len);
}

/* Fill in the header that a UD receiver finds before the payload: that of this packet */
static void sroce_rx_grh(struct sroce_skb_rx *r)
{
	if (!sroce_rx_is(r, RDMA_NETWORK_IPV4)) {
		memcpy(r->info.grh, &r->ip6, sizeof(r->ip6));
		return;
	}
	if (r->train)
		ip_send_check(&r->ip4);
	memcpy(r->info.grh + 20, &r->ip4, sizeof(r->ip4));
}

static bool sroce_rx_decode(struct sroce_skb_rx *r, const u8 *hdr, u32 hlen,
			    u32 len)
{
	struct sroce_train *t = &r->rx.t;
	int skip = sroce_packet_decode(t, hdr, hlen, len);

	if (skip < 0) {
		sroce_rx_count(r, SROCE_CNT_RX_MALFORMED);
		return false;
	}
	t->bi = (struct bvec_iter){ .bi_size = t->bi.bi_size };
	t->bv = r->bv;
	r->part += sroce_bvec_cut(r->part, skip, t->bi.bi_size);
	if (r->ce)
		t->flags |= SROCE_CE;
	if (t->service == SROCE_UD)
		sroce_rx_grh(r);
	r->rx.len = len;
	return true;
}

/* The packet of @len bytes at @pos */
static bool sroce_rx_packet(struct sroce_skb_rx *r, u32 pos, u32 len)
{
	u32 hlen = min_t(u32, len, SROCE_MAX_HDR_LEN);
	const u8 *hdr;

	if (sroce_rx_map(r, pos, len) < 0) {
		/* The position in the buffer is lost, and with it the packets behind */
		r->left = 0;
		sroce_rx_count(r, SROCE_CNT_RX_DISCARDS);
		return false;
	}
	hdr = sroce_rx_header(r, hlen);
	if (!sroce_rx_icrc_ok(r, hdr, len)) {
		sroce_rx_count(r, SROCE_CNT_RX_ICRC_ENCAPSULATED);
		return false;
	}
	return sroce_rx_decode(r, hdr, hlen, len);
}

static bool sroce_rx_len_ok(u32 len)
{
	return len >= SROCE_MIN_PACKET && len <= SROCE_MAX_PACKET && !(len & 3);
}

static u32 sroce_rx_step(struct sroce_skb_rx *r)
{
	u32 len = min(r->stride, r->left);

	r->pos += len;
	r->left -= len;
	r->k++;
	return len;
}

/* Is there a good packet at @pos? If not, what looking at it has cost counts here */
static bool sroce_rx_is_packet(struct sroce_skb_rx *r, u32 pos, u32 len)
{
	if (sroce_rx_len_ok(len)) {
		if (sroce_rx_packet(r, pos, len))
			return true;
		sroce_turn_spend(len + SROCE_TURN_PACKET);
		return false;
	}
	sroce_walk_skip(&r->walk, len);
	sroce_rx_count(r, SROCE_CNT_RX_MALFORMED);
	sroce_turn_spend(SROCE_TURN_PACKET);
	return false;
}

static bool sroce_rx_first(struct sroce_skb_rx *r)
{
	u32 pos, len;

	r->part = r->bv;
	while (r->left) {
		pos = r->pos;
		len = sroce_rx_step(r);
		if (sroce_rx_is_packet(r, pos, len))
			return true;
	}
	return false;
}

/* --- a train -------------------------------------------------------------- */

/*
 * The packet of @len bytes at @r->part, if it goes on with the train. Before its
 * ICRC is known to be right it is only compared with what is expected.
 */
static bool sroce_rx_couple_packet(struct sroce_skb_rx *r, u32 len)
{
	u32 hlen = min_t(u32, len, SROCE_MAX_HDR_LEN);
	const u8 *hdr = sroce_rx_header(r, hlen);
	struct sroce_train next;
	int skip;

	skip = sroce_packet_decode(&next, hdr, hlen, len);
	if (skip < 0 || !sroce_train_goes_on(&r->rx.t, &next) ||
	    !sroce_rx_icrc_ok(r, hdr, len))
		return false;
	sroce_train_couple(&r->rx.t, &next);
	sroce_alike_remember(&r->alike, &next, hdr, skip, len);
	r->part += sroce_bvec_cut(r->part, skip, next.bi.bi_size);
	r->rx.t.bi.bi_size += next.bi.bi_size;
	r->rx.len += len;
	return true;
}

/* Couple the next packet, whatever it is */
static bool sroce_rx_append(struct sroce_skb_rx *r)
{
	struct sroce_walk walk = r->walk;
	u32 len = sroce_rx_step(r);

	if (sroce_rx_len_ok(len) &&
	    sroce_walk_map(&r->walk, r->part, SROCE_RX_PARTS, len) > 0 &&
	    sroce_rx_couple_packet(r, len))
		return true;
	r->walk = walk;
	r->pos -= len;
	r->left += len;
	r->k--;
	return false;
}

/* Is the next packet one that sroce_rx_append_alike() is for? It is at @r->part then */
static bool sroce_rx_next_is_alike(struct sroce_skb_rx *r)
{
	const struct sroce_train *t = &r->rx.t;
	u32 len = r->alike.len;

	return len && len == r->stride && len <= r->left &&
	       sroce_walk_whole(&r->walk, r->part, len) &&
	       sroce_alike_is_next(&r->alike, sroce_rx_header(r, len),
				   sroce_psn_add(t->psn, t->npkts));
}

unsigned int *sroce_rx_alike __read_mostly;

/* The same as sroce_rx_append(), for a packet that looks like the last one */
static bool sroce_rx_append_alike(struct sroce_skb_rx *r)
{
	struct sroce_train *t = &r->rx.t;
	u32 len = r->alike.len;

	r->k++;
	if (!sroce_rx_icrc_ok(r, sroce_rx_header(r, len), len)) {
		r->k--;
		return false;
	}
	sroce_walk_skip(&r->walk, len);
	r->pos += len;
	r->left -= len;
	r->part->bv_offset += SROCE_BTH_LEN;
	r->part->bv_len = t->mtu;
	r->part++;
	t->npkts++;
	t->bi.bi_size += t->mtu;
	r->rx.len += len;
	if (unlikely(sroce_rx_alike))
		(*sroce_rx_alike)++;
	return true;
}

/* Couple the next packet, or return false: it is looked at by itself then */
static bool sroce_rx_append_next(struct sroce_skb_rx *r)
{
	return sroce_rx_next_is_alike(r) ? sroce_rx_append_alike(r) :
					   sroce_rx_append(r);
}

/*
 * Couple the packets behind the current one that go on with its message. The receiver has
 * one train then, as its sender had, and looks QP, key and memory up once.
 */
static void sroce_rx_make_train(struct sroce_skb_rx *r)
{
	struct sroce_train *t = &r->rx.t;
	const struct bio_vec *last = r->bv + SROCE_RX_COUPLED;

	r->alike.len = 0;
	while (r->left && !(t->flags & SROCE_END) && r->part <= last)
		if (!sroce_rx_append_next(r))
			break;
}

static bool sroce_rx_next(struct sroce_rx *rx)
{
	struct sroce_skb_rx *r = container_of(rx, struct sroce_skb_rx, rx);

	if (!sroce_rx_first(r))
		return false;
	r->first_fixed_id = r->fixed_id;
	r->first_id = r->id;
	sroce_rx_make_train(r);
	rx->packets += rx->t.npkts;
	rx->bytes += rx->len;
	return true;
}

/* --- the headers in front ------------------------------------------------- */

static bool sroce_rx_ipv4(struct sroce_skb_rx *r)
{
	const struct iphdr *ip = &r->ip4;

	r->ip4 = *ip_hdr(r->skb);
	if (ip->ihl != 5 || ip_is_fragment(ip) ||
	    ntohs(ip->tot_len) > r->skb->len)
		return false;
	r->id = ntohs(ip->id);
	r->pos = sizeof(*ip);
	r->left = ntohs(ip->tot_len);
	r->ce = INET_ECN_is_ce(ip->tos);
	r->info.network_hdr_type = RDMA_NETWORK_IPV4;
	ipv6_addr_set_v4mapped(ip->saddr, (struct in6_addr *)&r->info.sgid);
	ipv6_addr_set_v4mapped(ip->daddr, (struct in6_addr *)&r->info.dgid);
	return true;
}

static bool sroce_rx_ipv6(struct sroce_skb_rx *r)
{
	const struct ipv6hdr *ip = &r->ip6;

	r->ip6 = *ipv6_hdr(r->skb);
	/* Behind extension headers the ICRC would be of something else */
	if (ip->nexthdr != IPPROTO_UDP ||
	    sizeof(*ip) + ntohs(ip->payload_len) > r->skb->len)
		return false;
	r->pos = sizeof(*ip);
	r->left = sizeof(*ip) + ntohs(ip->payload_len);
	r->ce = INET_ECN_is_ce(ipv6_get_dsfield(ip));
	r->info.network_hdr_type = RDMA_NETWORK_IPV6;
	memcpy(&r->info.sgid, &ip->saddr, sizeof(ip->saddr));
	memcpy(&r->info.dgid, &ip->daddr, sizeof(ip->daddr));
	return true;
}

/* Leaves @r->pos and @r->left at what is behind the GRH; padding of the frame is not */
static bool sroce_rx_v1(struct sroce_skb_rx *r)
{
	const struct ipv6hdr *grh = &r->ip6;

	r->ip6 = *ipv6_hdr(r->skb);
	if (grh->version != 6 || grh->nexthdr != SROCE_GRH_NEXT_HDR ||
	    ntohs(grh->payload_len) < SROCE_MIN_PACKET ||
	    sizeof(*grh) + ntohs(grh->payload_len) > r->skb->len)
		return false;
	r->pos = sizeof(*grh);
	r->left = ntohs(grh->payload_len);
	r->info.network_hdr_type = RDMA_NETWORK_ROCE_V1;
	memcpy(&r->info.sgid, &grh->saddr, sizeof(grh->saddr));
	memcpy(&r->info.dgid, &grh->daddr, sizeof(grh->daddr));
	return true;
}

/* Leaves @r->pos and @r->left at what is behind the UDP header */
static bool sroce_rx_udp(struct sroce_skb_rx *r)
{
	u32 hdrs = r->pos + sizeof(r->udp);

	if (r->left < hdrs ||
	    skb_copy_bits(r->skb, r->pos, &r->udp, sizeof(r->udp)) ||
	    ntohs(r->udp.len) != r->left - r->pos)
		return false;
	r->left -= hdrs;
	r->pos = hdrs;
	return true;
}

static bool sroce_rx_headers(struct sroce_skb_rx *r)
{
	bool ok;

	if (r->skb->protocol == htons(ETH_P_IBOE))
		return sroce_rx_v1(r);
	ok = ip_hdr(r->skb)->version == 4 ? sroce_rx_ipv4(r) :
					    sroce_rx_ipv6(r);
	return ok && sroce_rx_udp(r);
}

/* UFO has a gso_size as well, but is one packet */
static u32 sroce_rx_stride(const struct sroce_skb_rx *r)
{
	const struct skb_shared_info *info = skb_shinfo(r->skb);

	if (skb_is_gso(r->skb) && (info->gso_type & SKB_GSO_UDP_L4))
		return info->gso_size;
	return r->left;
}

/* The netdev whose VLAN counts; within this host that of the destination address */
static struct net_device *sroce_rx_netdev(const struct sroce_skb_rx *r,
					  struct net *net)
{
	struct net_device *dev = r->skb->dev;
	struct net_device *owner = NULL;

	if (sroce_netdev_is_inside(dev))
		owner = sroce_netdev_of_own(net, (struct in6_addr *)
					    r->info.dgid.raw, dev);
	return owner ?: dev;
}

static void sroce_rx_link(struct sroce_skb_rx *r, struct net *net)
{
	const struct sk_buff *skb = r->skb;
	struct sroce_rx_info *info = &r->info;

	info->looped = skb->pkt_type == PACKET_LOOPBACK;
	info->link = sroce_netdev_is_inside(skb->dev) ? 0 :
		     sroce_netdev_link(net, r->port, skb->dev);
	info->from_ifindex = skb->dev->ifindex;
	info->vlan_id = sroce_netdev_vlan_id(sroce_rx_netdev(r, net));
	/* The netdev took the tag off and left its priority, mapped */
	if (is_vlan_dev(skb->dev))
		info->sl = skb->priority & 7;
	if (skb->dev->type != ARPHRD_ETHER || !skb_mac_header_was_set(skb) ||
	    skb_mac_header_len(skb) < ETH_HLEN)
		return;
	info->has_smac = true;
	ether_addr_copy(info->smac, eth_hdr(skb)->h_source);
}

/*
 * All packets but the last one have the same length. Return: false if there is not so much in
 * the buffer any more: what it was counted with is not believed a second time.
 */
static bool sroce_rx_go_to(struct sroce_skb_rx *r,
			   const struct sroce_rx_place *place)
{
	u32 len = place->packets * r->stride;

	r->rx.spread = place->spread;
	if (!place->packets)
		return true;
	if (len >= r->left)
		return false;
	r->pos += len;
	r->left -= len;
	r->k = place->packets;
	r->id = place->id;
	r->fixed_id = place->fixed_id;
	return true;
}

/* The current train, and what is behind it, is for later */
static void sroce_rx_leave(struct sroce_skb_rx *r, struct sroce_rx_place *place)
{
	r->rx.packets -= r->rx.t.npkts;
	r->rx.bytes -= r->rx.len;
	*place = (struct sroce_rx_place){
		.packets = r->k - r->rx.t.npkts,
		.fixed_id = r->first_fixed_id,
		.id = r->first_id,
		.spread = r->rx.spread,
	};
}

/*
 * ifindex is that of the device, not of the netdev the packet came through (lo,
 * a VLAN): the transport knows netdevs only as names of devices.
 */
static bool sroce_rx_start(struct sroce_skb_rx *r, struct net *net,
			   const struct sroce_rx_place *place)
{
	if (!sroce_rx_headers(r)) {
		sroce_rx_count(r, SROCE_CNT_RX_MALFORMED);
		return false;
	}
	r->stride = sroce_rx_stride(r);
	r->train = r->stride < r->left;
	if (r->left > r->stride * SROCE_RX_MOST_PACKETS ||
	    !sroce_rx_go_to(r, place)) {
		sroce_rx_count(r, SROCE_CNT_RX_MALFORMED);
		return false;
	}
	if (sroce_walk_start(&r->walk, r->skb, r->pos)) {
		sroce_rx_count(r, SROCE_CNT_RX_DISCARDS);
		return false;
	}
	r->info.net_cookie = net->net_cookie;
	r->info.ifindex = r->port->ifindex;
	sroce_rx_link(r, net);
	r->rx.info = &r->info;
	r->rx.next = sroce_rx_next;
	return true;
}

/* --- the buffer ----------------------------------------------------------- */

static struct sroce_qp *sroce_rx_qp(const struct sroce_skb_rx *r)
{
	if (r->rx.t.dqpn == SROCE_QPN_GSI)
		return sroce_qp_find_gsi(r->port);
	return sroce_qp_find(r->rx.t.dqpn);
}

/* What came in memory from the reserve for freeing memory must not wait */
static bool sroce_rx_may_stop(const struct sroce_skb_rx *r)
{
	return !skb_pfmemalloc(r->skb);
}

/* The packet that some members of a group have got may not be the same any more */
static void sroce_rx_spread_anew(struct sroce_skb_rx *r,
				 const struct sroce_rx_place *place)
{
	if (r->k - r->rx.t.npkts == place->packets)
		return;
	r->rx.spread.served = 0;
	r->rx.spread.own = false;
}

/* Give the current packet to all members of the group */
static bool sroce_rx_deliver_group(struct sroce_skb_rx *r)
{
	if (!r->rx.spread.served)
		sroce_rx_count(r, SROCE_CNT_RX_MCAST_PACKETS);
	/* Counts the work for the ICRC; copies count when members take them */
	sroce_turn_spend(r->rx.len);
	do {
		r->stop = !sroce_receive_group(r->port, &r->rx);
	} while (unlikely(r->stop && !sroce_rx_may_stop(r)));
	return !r->stop && sroce_rx_next(&r->rx);
}

/*
 * May QP 1 have the current packet? If not now, the buffer waits, if it begins with that: all
 * its packets have one sender.
 */
static bool sroce_rx_gsi_hears(struct sroce_skb_rx *r)
{
	enum sroce_gsi_verdict verdict =
		sroce_gsi_judge(dev_net(r->skb->dev), r->port, r->skb);

	/* A route and a neighbour are looked for */
	sroce_turn_spend(SROCE_TURN_TRAIN);
	if (verdict == SROCE_GSI_HEAR)
		return true;
	sroce_turn_spend(r->rx.len + r->rx.t.npkts * SROCE_TURN_PACKET);
	r->wait = verdict == SROCE_GSI_WAIT && r->k == r->rx.t.npkts;
	if (!r->wait)
		sroce_rx_count(r, SROCE_CNT_RX_DISCARDS);
	return false;
}

/* Give the current packet, and those after it for the same QP, to the QP */
static bool sroce_rx_deliver(struct sroce_skb_rx *r)
{
	struct sroce_qp *qp;
	bool more;

	if (unlikely(r->rx.t.dqpn == SROCE_QPN_GSI) && !sroce_rx_gsi_hears(r))
		return !r->wait && sroce_rx_next(&r->rx);
	qp = sroce_rx_qp(r);
	if (!qp) {
		sroce_rx_count(r, SROCE_CNT_RX_NO_QP);
		sroce_turn_spend(r->rx.len +
				 r->rx.t.npkts * SROCE_TURN_PACKET);
		return sroce_rx_next(&r->rx);
	}
	more = sroce_receive(qp, &r->rx);
	sroce_qp_put(qp);
	return more;
}

/*
 * A peer chooses for how many QPs the packets of a buffer are, and how much each of them
 * is to do: an ACK may be for thousands of work requests.
 */
static void sroce_rx_some(struct sroce_skb_rx *r, struct sroce_rx_place *place)
{
	struct sroce_counters __percpu *c = r->port->counters;
	bool more = sroce_rx_next(&r->rx);

	if (more)
		sroce_rx_spread_anew(r, place);
	while (more && !r->stop) {
		more = r->group ? sroce_rx_deliver_group(r) :
				  sroce_rx_deliver(r);
		r->stop |= more && sroce_turn_overdue() && sroce_rx_may_stop(r);
	}
	if (unlikely(r->stop))
		sroce_rx_leave(r, place);
	if (!r->rx.packets || r->wait)
		return;
	if (!r->stop)
		sroce_count(c, SROCE_CNT_RX_TRAINS, 1);
	sroce_count(c, SROCE_CNT_RX_PACKETS, r->rx.packets);
	sroce_count(c, SROCE_CNT_RX_BYTES, r->rx.bytes);
}

static bool sroce_rx_is_group(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IBOE))
		return sroce_is_group(&ipv6_hdr(skb)->daddr);
	if (ip_hdr(skb)->version == 4)
		return ipv4_is_multicast(ip_hdr(skb)->daddr);
	return ipv6_addr_is_multicast(&ipv6_hdr(skb)->daddr);
}

/*
 * Is it a broadcast, or a multicast frame with the IP address of a host? Neither is RoCE
 */
static bool sroce_rx_wrong_cast(const struct sk_buff *skb)
{
	switch (skb->pkt_type) {
	case PACKET_HOST:
	case PACKET_LOOPBACK:
		return skb->protocol == htons(ETH_P_IP) &&
		       ipv4_is_lbcast(ip_hdr(skb)->daddr);
	case PACKET_MULTICAST:
		return !sroce_rx_is_group(skb);
	default:
		return true;
	}
}

bool sroce_net_receive(struct net *net, struct sroce_netport *port,
		       struct sk_buff *skb, struct sroce_rx_place *place)
{
	struct bio_vec bv[SROCE_RX_BVECS];
	struct sroce_skb_rx r = { .skb = skb, .port = port, .bv = bv };

	/*
	 * Whatever short-circuits transmission to reception on one CPU comes
	 * here with a QP's lock held, and is dropped.
	 */
	r.group = sroce_rx_is_group(skb);
	sroce_turn_spend(SROCE_TURN_TRAIN);
	if (sroce_rx_wrong_cast(skb) || sroce_sending())
		sroce_rx_count(&r, SROCE_CNT_RX_DISCARDS);
	else if (sroce_rx_start(&r, net, place))
		sroce_rx_some(&r, place);
	if (unlikely(r.stop))
		return false;
	if (unlikely(r.wait))
		sroce_gsi_wait(net, port, skb);
	else
		consume_skb(skb);
	return true;
}
