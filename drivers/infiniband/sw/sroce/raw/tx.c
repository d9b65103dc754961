// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Frames that a process sends. They take the way of a packet socket's, through the queue
 * discipline and what the administrator has put in front of that, and what a packet socket
 * may not send is refused here: frames without a header, or longer than the netdev's MTU.
 *
 * Checksums and the cutting of a long TCP packet are left to the netdev, or to the stack
 * where that cannot do it, as packet sockets have them (PACKET_VNET_HDR). The same function
 * of the kernel checks what the process has asked for.
 *
 * All is copied first, so that the process cannot change what was looked at.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/virtio_net.h>
#include <net/checksum.h>
#include <net/ip6_checksum.h>

#include "compat.h"
#include "counters.h"
#include "memory/copy.h"
#include "netport.h"
#include "raw/internal.h"
#include "sending.h"
#include "txq.h"

/* Frames up to this size are in one piece; of longer ones the headers are */
#define SROCE_RAW_LINEAR 1024
/* The shortest part that a TCP packet may be cut into: a thousand of them at most */
#define SROCE_RAW_LEAST_MSS 64

/* --- copy ------------------------------------------------------------------- */

static u32 sroce_raw_tx_len(const struct sroce_raw_tx *tx)
{
	return tx->header_len + tx->len;
}

static struct sk_buff *sroce_raw_alloc(const struct net_device *ndev, u32 len)
{
	u32 linear = len > SROCE_RAW_LINEAR ? SROCE_MAX_TSO_HEADER +
					      SROCE_FRAME_HEAD : len;
	u32 room = LL_RESERVED_SPACE(ndev);
	struct sk_buff *skb;
	int err;

	skb = alloc_skb_with_frags(room + linear + ndev->needed_tailroom,
				   len - linear, PAGE_ALLOC_COSTLY_ORDER, &err,
				   GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, room);
	skb_put(skb, linear);
	skb->data_len = len - linear;
	skb->len += skb->data_len;
	return skb;
}

static void sroce_raw_fill(struct sk_buff *skb, const struct sroce_raw_tx *tx)
{
	struct bvec_iter si = { .bi_size = tx->len };
	skb_frag_t *frag;
	int i;

	if (tx->header_len)
		memcpy(skb->data, tx->header, tx->header_len);
	sroce_bvec_read(skb->data + tx->header_len, tx->bv, &si,
			skb_headlen(skb) - tx->header_len);
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		frag = &skb_shinfo(skb)->frags[i];
		sroce_bvec_read(skb_frag_address(frag), tx->bv, &si,
				skb_frag_size(frag));
	}
}

/* --- checksums -------------------------------------------------------------- */

/* Bytes from the TCP or UDP header to the end of the IP packet; 0: it does not fit */
static u32 sroce_raw_l4_len(const struct sk_buff *skb,
			    const struct sroce_frame *f)
{
	u32 head = f->transport - f->network;
	u32 len;

	if (f->key.has & SROCE_HAS_IPV4)
		len = ntohs(((struct iphdr *)(skb->data + f->network))->tot_len);
	else
		len = ntohs(((struct ipv6hdr *)(skb->data + f->network))
			    ->payload_len) + sizeof(struct ipv6hdr);
	if (len < head + 8 || len > skb->len - f->network)
		return 0;
	return len - head;
}

/* What the addresses and the length add to the checksum, where that is */
static void sroce_raw_pseudo(struct sk_buff *skb, const struct sroce_frame *f,
			     u32 len, __sum16 *sum)
{
	if (f->key.has & SROCE_HAS_IPV4)
		*sum = ~csum_tcpudp_magic(f->key.saddr[3], f->key.daddr[3], len,
					  f->key.proto, 0);
	else
		*sum = ~csum_ipv6_magic((struct in6_addr *)f->key.saddr,
					(struct in6_addr *)f->key.daddr, len,
					f->key.proto, 0);
}

static u32 sroce_raw_sum_offset(const struct sroce_frame *f)
{
	return f->key.has & SROCE_HAS_TCP ? offsetof(struct tcphdr, check) :
					    offsetof(struct udphdr, check);
}

static void sroce_raw_ip_sum(struct sk_buff *skb, const struct sroce_frame *f)
{
	struct iphdr *ip = (struct iphdr *)(skb->data + f->network);

	if (!(f->key.has & SROCE_HAS_IPV4))
		return;
	ip->check = 0;
	ip->check = ip_fast_csum(ip, ip->ihl);
}

/* Have TCP's or UDP's checksum filled in. False: the IP header's length is wrong. */
static bool sroce_raw_set_sums(struct sk_buff *skb, const struct sroce_frame *f,
			       struct virtio_net_hdr *h)
{
	bool le = virtio_legacy_is_little_endian();
	u32 off = sroce_raw_sum_offset(f);
	u32 len;

	if (f->network)
		sroce_raw_ip_sum(skb, f);
	if (!f->transport)
		return true;
	len = sroce_raw_l4_len(skb, f);
	if (!len)
		return false;
	sroce_raw_pseudo(skb, f, len,
			 (__sum16 *)(skb->data + f->transport + off));
	h->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h->csum_start = __cpu_to_virtio16(le, f->transport);
	h->csum_offset = __cpu_to_virtio16(le, off);
	return true;
}

/* --- a TCP packet that is to be cut ----------------------------------------- */

static void sroce_raw_set_ip_len(struct sk_buff *skb,
				 const struct sroce_frame *f)
{
	u32 len = skb->len - f->network;
	void *ip = skb->data + f->network;

	if (f->key.has & SROCE_HAS_IPV4)
		((struct iphdr *)ip)->tot_len = htons(len);
	else
		((struct ipv6hdr *)ip)->payload_len =
			htons(len - sizeof(struct ipv6hdr));
}

static int sroce_raw_set_tso(struct sk_buff *skb, const struct sroce_frame *f,
			     const struct sroce_raw_tx *tx,
			     struct virtio_net_hdr *h)
{
	bool le = virtio_legacy_is_little_endian();
	struct tcphdr *th;
	u32 head;

	if (!(f->key.has & SROCE_HAS_TCP) || tx->mss < SROCE_RAW_LEAST_MSS)
		return -EINVAL;
	th = (struct tcphdr *)(skb->data + f->transport);
	head = f->transport + th->doff * 4;
	if (th->doff < 5 || head != tx->header_len)
		return -EINVAL;
	if (skb->len - f->network > SROCE_MAX_TSO ||
	    tx->mss > READ_ONCE(skb->dev->mtu) ||
	    head - f->network + tx->mss > READ_ONCE(skb->dev->mtu))
		return -EMSGSIZE;
	sroce_raw_set_ip_len(skb, f);
	h->gso_type = f->key.has & SROCE_HAS_IPV4 ? VIRTIO_NET_HDR_GSO_TCPV4 :
						    VIRTIO_NET_HDR_GSO_TCPV6;
	h->gso_size = __cpu_to_virtio16(le, tx->mss);
	h->hdr_len = __cpu_to_virtio16(le, head);
	return 0;
}

/* --- a frame ---------------------------------------------------------------- */

/* A tag in the frame may be on top of what the netdev's MTU allows */
static u32 sroce_raw_most(const struct net_device *ndev, bool tagged)
{
	return READ_ONCE(ndev->mtu) + ndev->hard_header_len +
	       (tagged ? VLAN_HLEN : 0);
}

static void sroce_raw_set_headers(struct sk_buff *skb,
				  const struct sroce_frame *f)
{
	skb_reset_mac_header(skb);
	skb->protocol = eth_hdr(skb)->h_proto;
	skb_set_network_header(skb, f->network ?: ETH_HLEN);
	if (f->transport)
		skb_set_transport_header(skb, f->transport);
	else
		skb_probe_transport_header(skb);
}

/* What the process has asked for, in the form that the kernel has a check for */
static int sroce_raw_offload(struct sk_buff *skb, const struct sroce_frame *f,
			     const struct sroce_raw_tx *tx)
{
	struct virtio_net_hdr h = {};
	int err;

	if (tx->header_len) {
		err = sroce_raw_set_tso(skb, f, tx, &h);
		if (err)
			return err;
	}
	if ((tx->csum || tx->header_len) && !sroce_raw_set_sums(skb, f, &h))
		return -EINVAL;
	return virtio_net_hdr_to_skb(skb, &h, virtio_legacy_is_little_endian());
}

/* One tag may be on top of the MTU, and the one that is yet to be put there always is */
static bool sroce_raw_too_long(const struct sk_buff *skb,
			       const struct sroce_raw_tx *tx)
{
	bool tagged = !tx->vlan && eth_hdr(skb)->h_proto == htons(ETH_P_8021Q);

	return !tx->header_len && skb->len > sroce_raw_most(skb->dev, tagged);
}

static int sroce_raw_finish(struct sk_buff *skb, const struct sroce_raw_tx *tx)
{
	struct sroce_frame f;
	int err;

	sroce_frame_parse(&f, skb->data,
			  min_t(u32, skb_headlen(skb), SROCE_FRAME_HEAD),
			  tx->header_len);
	if (sroce_raw_too_long(skb, tx))
		return -EMSGSIZE;
	sroce_raw_set_headers(skb, &f);
	err = sroce_raw_offload(skb, &f, tx);
	if (!err && tx->vlan)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), tx->vlan_tci);
	return err;
}

/* Return: the frame, or an ERR_PTR: -ENOMEM, or of what is wrong with it */
static struct sk_buff *sroce_raw_build(struct net_device *ndev,
				       const struct sroce_raw_tx *tx)
{
	u32 len = sroce_raw_tx_len(tx);
	struct sk_buff *skb;
	int err;

	/* Some netdevs have more in front of the IP header than Ethernet has */
	if (len < max_t(u32, ETH_HLEN, ndev->hard_header_len))
		return ERR_PTR(-EINVAL);
	if (!tx->header_len && len > sroce_raw_most(ndev, true))
		return ERR_PTR(-EMSGSIZE);
	skb = sroce_raw_alloc(ndev, len);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	sroce_raw_fill(skb, tx);
	skb->dev = ndev;
	skb_reset_mac_header(skb);
	err = sroce_raw_finish(skb, tx);
	if (!err)
		return skb;
	kfree_skb(skb);
	return ERR_PTR(err);
}

/* --- out -------------------------------------------------------------------- */

/* How many flows here want it? The loopback shows to everybody what it sends */
static u32 sroce_raw_loops(const struct sroce_raw *raw,
			   const struct sk_buff *skb, const void *owner)
{
	/* Pairs with sroce_raw_hook(): the table is there */
	if (!smp_load_acquire(&raw->hooked) ||
	    raw->ndev->flags & IFF_LOOPBACK)
		return 0;
	return sroce_raw_wanted(raw, skb, owner);
}

/* Frames that it may be cut up into */
static u32 sroce_raw_nparts(const struct sroce_raw_tx *tx)
{
	return tx->header_len ? DIV_ROUND_UP(tx->len, tx->mss) : 1;
}

static int sroce_raw_transmit(struct sroce_raw *raw, struct sk_buff *skb,
			      const struct sroce_raw_tx *tx)
{
	u32 flows = sroce_raw_loops(raw, skb, tx->owner);
	struct sk_buff *copy = NULL;
	int err;

	sroce_sending_spend(skb, raw->ndev, sroce_raw_nparts(tx));
	if (unlikely(flows))
		copy = skb_clone(skb, GFP_ATOMIC);
	sroce_sending_begin();
	/* The macro looks at its argument twice */
	err = dev_queue_xmit(skb);
	sroce_sending_end();
	err = net_xmit_eval(err);
	if (copy && !err)
		sroce_raw_loop(raw, copy, tx->owner, flows);
	else
		kfree_skb(copy);
	return err;
}

/* Return: 0, or a negative errno; -ENOBUFS and -ENOMEM: it is lost */
static int sroce_raw_send_one(struct sroce_raw *raw,
			      const struct sroce_raw_tx *tx,
			      struct sroce_txq *txq)
{
	struct sk_buff *skb;
	int err;

	skb = sroce_raw_build(raw->ndev, tx);
	if (IS_ERR(skb))
		return PTR_ERR(skb);
	err = sroce_txq_charge(skb, txq);
	if (err) {
		kfree_skb(skb);
		return err;
	}
	return sroce_raw_transmit(raw, skb, tx) ? -ENOBUFS : 0;
}

static bool sroce_raw_may_send(const struct sroce_raw *raw,
			       const struct sroce_raw_tx *tx)
{
	/* Pairs with sroce_raw_attach(): where it is open, the cookie is that of now */
	return smp_load_acquire(&raw->open) &&
	       raw->net_cookie == tx->net_cookie &&
	       raw->ndev->flags & IFF_UP;
}

int sroce_raw_xmit(struct sroce_netport *port, const struct sroce_raw_tx *tx,
		   struct sroce_txq *txq)
{
	int err = -ENOBUFS;

	rcu_read_lock();
	if (sroce_raw_may_send(port->raw, tx))
		err = sroce_raw_send_one(port->raw, tx, txq);
	rcu_read_unlock();
	if (err == -EMSGSIZE || err == -EINVAL)
		return err;
	if (err)
		sroce_count(txq->counters, SROCE_CNT_TX_DROPS, 1);
	return 0;
}
