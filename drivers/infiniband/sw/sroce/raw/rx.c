// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Frames that a netdev has received, and that its host has sent, on their way to the flows.
 *
 * The way in is that of a packet socket: a tap, which sees each frame before anybody else
 * and takes it from nobody, also when a flow says that it is dropped. So the host's own
 * protocols (RoCE is one) do not notice. The tap is there as long as there are flows, and
 * hears of what the host sends only as long as somebody wants all.
 *
 * What a queue pair sends is offered to the flows of others on the same device, as the
 * switch in a network card does: a packet socket would see it there as well.
 *
 * A flow is for frames as they are on the wire. What the stack has coupled is cut up, and
 * a checksum that was left to the hardware is filled in, in a copy of the headers, and
 * only for a frame that a flow is for. The others cost a look at their headers.
 *
 * No frame is received from within the transport, whose locks may be held there: it waits
 * for a worker, together with those behind it. So do frames that come when the turn of
 * their CPU is overdue (turn.h), and what is to be cut up for so many that it takes a turn
 * of its own or more. Those from the wire and those from one queue pair to another share the
 * worker, and come before what the host sends, which is for those who look on.
 */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/skbuff.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>

#include "compat.h"
#include "counters.h"
#include "netport.h"
#include "raw/internal.h"
#include "sending.h"
#include "turn.h"

/* Frames that the worker receives without a break */
#define SROCE_RAW_LATER_BATCH 16
/*
 * Frames that one buffer may stand for: it is cut up in one go. TCP makes 46 of 64 KiB for
 * Ethernet's MTU, and 1820 with the shortest segments that a peer may ask for
 * (tcp_min_snd_mss, less a time stamp): it must not be able to hide them. It makes more only
 * of what goes together with selective ACKs, to a peer that has asked for such segments and
 * has got thousands at once.
 */
#define SROCE_RAW_MOST_PARTS 2048
/* Copies of those that are made at once. Of more, the worker makes some in each turn */
#define SROCE_RAW_AT_ONCE 128

/**
 * struct sroce_raw_seen - what a buffer is
 * @f: its headers
 * @found: flows that it is for
 * @sums_ok: somebody says that its checksums are right
 */
struct sroce_raw_seen {
	struct sroce_frame f;
	struct sroce_flows_found found;
	bool sums_ok;
};

static void sroce_raw_lost(const struct sroce_raw *raw)
{
	sroce_count(raw->port->counters, SROCE_CNT_RX_DISCARDS, 1);
}

/* --- a frame ---------------------------------------------------------------- */

/* Where the frame begins, before skb->data or there */
static int sroce_raw_begin(const struct sk_buff *skb)
{
	return skb_mac_header(skb) - skb->data;
}

static u32 sroce_raw_len(const struct sk_buff *skb)
{
	return skb->len - sroce_raw_begin(skb);
}

/* Look at the headers. False: it is too short for a frame, or nobody can read it. */
static bool sroce_raw_look(const struct sk_buff *skb, struct sroce_frame *f)
{
	u8 buffer[SROCE_FRAME_HEAD];
	u32 len = min_t(u32, sroce_raw_len(skb), sizeof(buffer));
	const u8 *head;

	if (!skb_mac_header_was_set(skb) || sroce_raw_begin(skb) > 0 ||
	    len < ETH_HLEN || !skb_frags_readable(skb))
		return false;
	head = skb_header_pointer(skb, sroce_raw_begin(skb), len, buffer);
	if (!head)
		return false;
	sroce_frame_parse(f, head, len, skb_is_gso(skb));
	if (skb_vlan_tag_present(skb))
		sroce_frame_set_vlan(f, skb_vlan_tag_get(skb));
	return true;
}

/* The hardware has summed up the whole packet: is what it says right for TCP or UDP? */
static bool sroce_raw_complete_ok(const struct sk_buff *skb,
				  const struct sroce_frame *f)
{
	int off = sroce_raw_begin(skb) + f->transport;
	u32 len = skb->len - off;
	__wsum sum;

	/* What it has summed up begins at skb->data */
	if (off < 0 || off > skb_headlen(skb))
		return false;
	sum = csum_sub(skb->csum, csum_partial(skb->data, off, 0));
	if (f->key.has & SROCE_HAS_IPV4)
		return !csum_tcpudp_magic(f->key.saddr[3], f->key.daddr[3], len,
					  f->key.proto, sum);
	return !csum_ipv6_magic((const struct in6_addr *)f->key.saddr,
				(const struct in6_addr *)f->key.daddr, len,
				f->key.proto, sum);
}

static bool sroce_raw_ip_sum_ok(const struct sk_buff *skb,
				const struct sroce_frame *f)
{
	u8 buffer[60];
	const struct iphdr *ip;
	int off = sroce_raw_begin(skb) + f->network;

	if (!(f->key.has & SROCE_HAS_IPV4))
		return f->key.has & SROCE_HAS_IPV6;
	ip = skb_header_pointer(skb, off, sizeof(*ip), buffer);
	if (!ip)
		return false;
	ip = skb_header_pointer(skb, off, ip->ihl * 4, buffer);
	/* The parser has looked at its length, in bytes that may be another copy */
	return ip && ip->ihl >= 5 && !ip_fast_csum(ip, ip->ihl);
}

/* Does somebody say that the checksums are right? Nobody is asked to work them out. */
static bool sroce_raw_sums_ok(const struct sk_buff *skb,
			      const struct sroce_frame *f)
{
	if (!f->transport || !sroce_raw_ip_sum_ok(skb, f))
		return false;
	switch (skb->ip_summed) {
	case CHECKSUM_UNNECESSARY:
	case CHECKSUM_PARTIAL:
		return true;
	case CHECKSUM_COMPLETE:
		return sroce_raw_complete_ok(skb, f);
	default:
		return false;
	}
}

/* --- to the queues ---------------------------------------------------------- */

/* The whole of a plain buffer, and as many entries as that may take */
#define SROCE_RAW_BVECS (MAX_SKB_FRAGS + 1)

/* Bytes of the buffer from @off on, counted from the beginning of the frame */
static bool sroce_raw_map(const struct sk_buff *skb, u32 off,
			  struct bio_vec *bv)
{
	const u8 *begin = skb_mac_header(skb) + off;
	u32 linear = skb_tail_pointer(skb) - begin;
	const skb_frag_t *frag;
	int i;

	if (skb_tail_pointer(skb) < begin)
		return false;
	bvec_set_page(bv++, virt_to_page(begin), linear, offset_in_page(begin));
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		frag = &skb_shinfo(skb)->frags[i];
		bvec_set_page(bv++, skb_frag_page(frag), skb_frag_size(frag),
			      skb_frag_off(frag));
	}
	return true;
}

/* The tag of a buffer, from beside its bytes or among them. Return: bytes to skip for it */
static u32 sroce_raw_take_vlan(const struct sk_buff *skb,
			       const struct sroce_frame *f,
			       struct sroce_raw_rx *rx)
{
	u8 *tag = rx->head + SROCE_RAW_ADDRESSES;
	__be16 type;

	if (!(f->key.has & SROCE_HAS_VLAN))
		return 0;
	rx->has_vlan = true;
	rx->vlan_tci = ntohs(f->key.tci);
	if (!skb_vlan_tag_present(skb)) {
		memcpy(tag, skb_mac_header(skb) + SROCE_RAW_ADDRESSES,
		       SROCE_RAW_VLAN);
		return SROCE_RAW_VLAN;
	}
	type = skb->vlan_proto;
	memcpy(tag, &type, sizeof(type));
	memcpy(tag + sizeof(type), &f->key.tci, sizeof(f->key.tci));
	return 0;
}

/* As it is on the wire, wherever its tag is */
static u32 sroce_raw_wire_len(const struct sroce_raw_rx *rx)
{
	return SROCE_RAW_ADDRESSES + (rx->has_vlan ? SROCE_RAW_VLAN : 0) +
	       rx->len;
}

static void sroce_raw_give_flow(const struct sroce_flow *flow,
				const struct sroce_frame *f,
				struct sroce_raw_rx *rx)
{
	struct sroce_flow_counts *counts = flow->rule.counts;

	if (counts) {
		atomic64_inc(&counts->packets);
		atomic64_add(sroce_raw_wire_len(rx), &counts->bytes);
	}
	if (flow->rule.drop)
		return;
	rx->tag = flow->rule.tag;
	sroce_raw_receive(flow->rule.rss ? sroce_rss_select(flow->rule.rss,
							    &f->key) :
					   flow->rule.qp, rx);
}

/* A buffer that is one frame, in one piece */
static void sroce_raw_give(const struct sroce_raw *raw,
			   const struct sk_buff *skb,
			   const struct sroce_raw_seen *seen)
{
	const struct sroce_flows_found *found = &seen->found;
	struct bio_vec bv[SROCE_RAW_BVECS];
	struct sroce_raw_rx rx = {
		.bv = bv,
		.csum_ok = seen->sums_ok,
		.net_cookie = raw->net_cookie,
	};
	u32 skip = SROCE_RAW_ADDRESSES;
	u32 i;

	/* What is copied here was looked at, and is linear or made so */
	if (skb_headlen(skb) - sroce_raw_begin(skb) < ETH_HLEN + VLAN_HLEN &&
	    skb_is_nonlinear(skb)) {
		sroce_raw_lost(raw);
		return;
	}
	memcpy(rx.head, skb_mac_header(skb), SROCE_RAW_ADDRESSES);
	skip += sroce_raw_take_vlan(skb, &seen->f, &rx);
	if (!sroce_raw_map(skb, skip, bv))
		return;
	rx.len = sroce_raw_len(skb) - skip;
	for (i = 0; i < found->n; i++)
		sroce_raw_give_flow(found->flow[i], &seen->f, &rx);
}

/* --- what is more than a frame ---------------------------------------------- */

/* Is a buffer one frame already, as it is on the wire, with nothing left to be done? */
static bool sroce_raw_is_plain(const struct sk_buff *skb)
{
	return !skb_is_gso(skb) && skb->ip_summed != CHECKSUM_PARTIAL &&
	       !skb_has_frag_list(skb) &&
	       (!skb_is_nonlinear(skb) ||
		skb_headlen(skb) - sroce_raw_begin(skb) >=
		ETH_HLEN + VLAN_HLEN);
}

/* A copy that begins with the frame, and whose headers may be changed */
static struct sk_buff *sroce_raw_copy_of(struct sk_buff *skb)
{
	struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC);

	if (!copy)
		return NULL;
	/* A clone has the headers' place to itself as far as pushing goes */
	__skb_push(copy, -sroce_raw_begin(copy));
	skb_reset_mac_header(copy);
	if (!skb_has_frag_list(copy) || skb_is_gso(copy))
		return copy;
	if (!skb_linearize(copy))
		return copy;
	kfree_skb(copy);
	return NULL;
}

/* How many frames a coupled buffer stands for, more or less */
static u32 sroce_raw_nparts(const struct sk_buff *skb)
{
	u32 size = skb_shinfo(skb)->gso_size;
	const struct sk_buff *part;
	u32 n = 1;

	if (size != GSO_BY_FRAGS)
		return DIV_ROUND_UP(skb->len, size);
	skb_walk_frags(skb, part)
		n++;
	return n;
}

/* How many copies are to be made of a buffer, more or less */
static u32 sroce_raw_copies(const struct sk_buff *skb, u32 flows)
{
	return skb_is_gso(skb) ? sroce_raw_nparts(skb) * flows : flows;
}

/* Are there too many of those to make them at once? */
static bool sroce_raw_is_much(const struct sk_buff *skb, u32 flows)
{
	return skb_is_gso(skb) &&
	       sroce_raw_copies(skb, flows) > SROCE_RAW_AT_ONCE;
}

/*
 * Would no sender make such parts? Beside all options TCP has that many bytes, and so has a
 * fragment of IP; UDP's parts may have less, but are few. GRO couples what is shorter, as it
 * came from the wire. So it is about those only whom the stack does not trust: packet
 * sockets, taps and guests.
 */
static bool sroce_raw_is_absurd(const struct sk_buff *skb)
{
	const struct skb_shared_info *si = skb_shinfo(skb);

	return si->gso_size < TCP_MIN_GSO_SIZE &&
	       (si->gso_type & (SKB_GSO_DODGY | SKB_GSO_UDP_L4)) ==
	       SKB_GSO_DODGY;
}

/* Coupled, and nobody has looked at the checksum: nothing that the stack makes, either */
static bool sroce_raw_may_cut(const struct sk_buff *skb)
{
	return skb->ip_summed != CHECKSUM_NONE && !sroce_raw_is_absurd(skb) &&
	       sroce_raw_nparts(skb) <= SROCE_RAW_MOST_PARTS;
}

static void sroce_raw_give_part(const struct sroce_raw *raw,
				struct sk_buff *skb,
				const struct sroce_raw_seen *seen)
{
	skb_mark_not_on_list(skb);
	if (skb_has_frag_list(skb) && skb_linearize(skb))
		sroce_raw_lost(raw);
	else
		sroce_raw_give(raw, skb, seen);
	consume_skb(skb);
}

/*
 * Cut up what is coupled. The checksums of the parts are worked out with that, which the
 * kernel begins in the headers of the whole: they are to be ours alone. Return: the parts,
 * or NULL when they are lost.
 */
static struct sk_buff *sroce_raw_cut(const struct sroce_raw *raw,
				     struct sk_buff *skb)
{
	struct sk_buff *parts = NULL;

	if (sroce_raw_may_cut(skb) && !skb_cow_head(skb, 0)) {
		sroce_turn_spend(skb->len +
				 sroce_raw_nparts(skb) * SROCE_TURN_PACKET);
		parts = __skb_gso_segment(skb, NETIF_F_SG, false);
	}
	if (!IS_ERR_OR_NULL(parts))
		return parts;
	sroce_raw_lost(raw);
	return NULL;
}

/* All in one go; there are few */
static void sroce_raw_give_parts(const struct sroce_raw *raw,
				 struct sk_buff *parts,
				 const struct sroce_raw_seen *seen)
{
	struct sk_buff *skb, *next;

	skb_list_walk_safe(parts, skb, next)
		sroce_raw_give_part(raw, skb, seen);
}

/* As a netdev that can do nothing would be given it. SCTP has a sum of another kind. */
static bool sroce_raw_complete(struct sk_buff *skb)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL &&
	    skb_csum_hwoffload_help(skb, 0))
		return false;
	return pskb_may_pull(skb, min_t(u32, skb->len, SROCE_FRAME_HEAD));
}

static void sroce_raw_give_copy(const struct sroce_raw *raw,
				struct sk_buff *skb,
				const struct sroce_raw_seen *seen)
{
	struct sk_buff *copy = sroce_raw_copy_of(skb);

	if (!copy) {
		sroce_raw_lost(raw);
		return;
	}
	if (skb_is_gso(copy))
		sroce_raw_give_parts(raw, sroce_raw_cut(raw, copy), seen);
	else if (!sroce_raw_complete(copy))
		sroce_raw_lost(raw);
	else
		sroce_raw_give(raw, copy, seen);
	consume_skb(copy);
}

/* --- a buffer --------------------------------------------------------------- */

static void sroce_raw_find(const struct sroce_raw *raw,
			   const struct sroce_frame *f, enum sroce_raw_way way,
			   const void *owner, struct sroce_flows_found *found)
{
	sroce_turn_spend(READ_ONCE(raw->table.nshapes) * SROCE_TURN_LOOKUP);
	memset(found->of, 0, sizeof(found->of));
	found->n = 0;
	if (way != SROCE_RAW_LOOP)
		sroce_flow_sniffers(&raw->table, found);
	if (way != SROCE_RAW_OUT)
		sroce_flow_match(&raw->table, &f->key, owner, found);
}

/* Is the buffer a frame that somebody wants? Context: RCU */
static bool sroce_raw_see(const struct sroce_raw *raw,
			  const struct sk_buff *skb, enum sroce_raw_way way,
			  const void *owner, struct sroce_raw_seen *seen)
{
	if (!READ_ONCE(raw->open) || !sroce_raw_look(skb, &seen->f))
		return false;
	sroce_raw_find(raw, &seen->f, way, owner, &seen->found);
	return seen->found.n;
}

/* Context: RCU, bottom halves off, not from within the transport */
static void sroce_raw_take(const struct sroce_raw *raw, struct sk_buff *skb,
			   struct sroce_raw_seen *seen)
{
	seen->sums_ok = sroce_raw_sums_ok(skb, &seen->f);
	if (sroce_raw_is_plain(skb))
		sroce_raw_give(raw, skb, seen);
	else
		sroce_raw_give_copy(raw, skb, seen);
}

/* --- later ------------------------------------------------------------------ */

/* The buffer is ours alone. What cannot be cut up takes no place from what can */
static void sroce_raw_wait(struct sroce_raw *raw, struct sk_buff *skb,
			   const struct sroce_raw_cb *cb)
{
	if ((!skb_is_gso(skb) || sroce_raw_may_cut(skb)) &&
	    sroce_raw_later_put(&raw->later, skb, cb)) {
		queue_work(sroce_turn_wq, &raw->work);
		return;
	}
	sroce_raw_lost(raw);
	kfree_skb(skb);
}

/* Go on with the frame that was cut up last. Return: somebody wants what is left of it */
static bool sroce_raw_work_some_parts(struct sroce_raw *raw)
{
	struct sroce_raw_rest *rest = &raw->rest;
	struct sroce_raw_seen seen = { .f = rest->f, .sums_ok = rest->sums_ok };
	struct sk_buff *skb;

	if (!READ_ONCE(raw->open))
		return false;
	/* Flows may have come and gone since the last turn */
	sroce_raw_find(raw, &seen.f, rest->cb.way, rest->cb.owner,
		       &seen.found);
	while (seen.found.n && rest->parts && !sroce_turn_over()) {
		skb = rest->parts;
		rest->parts = skb->next;
		sroce_raw_give_part(raw, skb, &seen);
	}
	return seen.found.n && rest->parts;
}

static void sroce_raw_work_parts(struct sroce_raw *raw)
{
	struct sroce_raw_rest *rest = &raw->rest;

	if (sroce_raw_work_some_parts(raw))
		return;
	kfree_skb_list(rest->parts);
	rest->parts = NULL;
	sroce_raw_later_done(&raw->later, &rest->cb);
}

/* The parts of a frame are received from the next call of the above on */
static void sroce_raw_work_cut(struct sroce_raw *raw, struct sk_buff *skb,
			       const struct sroce_raw_seen *seen)
{
	struct sk_buff *copy = sroce_raw_copy_of(skb);

	if (!copy) {
		sroce_raw_lost(raw);
		return;
	}
	raw->rest.f = seen->f;
	raw->rest.sums_ok = sroce_raw_sums_ok(skb, &seen->f);
	raw->rest.parts = sroce_raw_cut(raw, copy);
	consume_skb(copy);
}

static bool sroce_raw_work_one(struct sroce_raw *raw)
{
	struct sroce_raw_rest *rest = &raw->rest;
	struct sroce_raw_seen seen;
	struct sk_buff *skb;

	if (rest->parts) {
		sroce_raw_work_parts(raw);
		return true;
	}
	skb = sroce_raw_later_next(&raw->later, &rest->cb);
	if (!skb)
		return false;
	if (sroce_raw_see(raw, skb, rest->cb.way, rest->cb.owner, &seen)) {
		if (sroce_raw_is_much(skb, seen.found.n))
			sroce_raw_work_cut(raw, skb, &seen);
		else
			sroce_raw_take(raw, skb, &seen);
	}
	consume_skb(skb);
	if (!rest->parts)
		sroce_raw_later_done(&raw->later, &rest->cb);
	return true;
}

/* A turn of its own. Return: there may be more */
static bool sroce_raw_work_some(struct sroce_raw *raw)
{
	int budget = SROCE_RAW_LATER_BATCH;
	bool more;

	local_bh_disable();
	rcu_read_lock();
	sroce_turn_begin(true);
	do {
		more = sroce_raw_work_one(raw);
	} while (more && --budget && !sroce_turn_over());
	sroce_turn_end();
	rcu_read_unlock();
	local_bh_enable();
	return more;
}

static void sroce_raw_work(struct work_struct *work)
{
	struct sroce_raw *raw = container_of(work, struct sroce_raw, work);

	while (sroce_raw_work_some(raw))
		cond_resched();
}

void sroce_raw_loop(struct sroce_raw *raw, struct sk_buff *skb,
		    const void *owner, u32 flows)
{
	struct sroce_raw_cb cb = {
		.owner = owner,
		.copies = sroce_raw_copies(skb, flows),
		.way = SROCE_RAW_LOOP,
	};

	sroce_raw_wait(raw, skb, &cb);
}

/* --- the tap ---------------------------------------------------------------- */

/*
 * What was received and waits is not overtaken. On PREEMPT_RT the turn of a task that sends
 * may have been taken for that of another one, which has ended.
 */
static bool sroce_raw_must_wait(const struct sroce_raw *raw,
				const struct sk_buff *skb,
				const struct sroce_raw_seen *seen)
{
	return sroce_turn_nested() || sroce_sending() ||
	       sroce_raw_later_waits(&raw->later) ||
	       sroce_raw_is_much(skb, seen->found.n) || sroce_turn_overdue();
}

u32 sroce_raw_wanted(const struct sroce_raw *raw, const struct sk_buff *skb,
		     const void *owner)
{
	struct sroce_raw_seen seen;

	return sroce_raw_see(raw, skb, SROCE_RAW_LOOP, owner, &seen) ?
		       seen.found.n : 0;
}

static int sroce_raw_tap(struct sk_buff *skb, struct net_device *dev,
			 struct packet_type *pt, struct net_device *orig_dev)
{
	struct sroce_raw *raw = container_of(pt, struct sroce_raw, hook);
	bool out = skb->pkt_type == PACKET_OUTGOING;
	struct sroce_raw_cb cb = { .way = out ? SROCE_RAW_OUT : SROCE_RAW_IN };
	struct sroce_raw_seen seen;

	/* What nobody wants takes no place from what somebody does */
	if (skb->pkt_type == PACKET_LOOPBACK ||
	    !sroce_raw_see(raw, skb, cb.way, NULL, &seen)) {
		consume_skb(skb);
		return NET_RX_SUCCESS;
	}
	if (!out && !sroce_raw_must_wait(raw, skb, &seen)) {
		sroce_raw_take(raw, skb, &seen);
		consume_skb(skb);
		return NET_RX_SUCCESS;
	}
	cb.copies = sroce_raw_copies(skb, seen.found.n);
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (skb)
		sroce_raw_wait(raw, skb, &cb);
	return NET_RX_SUCCESS;
}

void sroce_raw_rx_init(struct sroce_raw *raw)
{
	sroce_raw_later_init(&raw->later);
	INIT_WORK(&raw->work, sroce_raw_work);
	raw->hook = (struct packet_type){
		.type = htons(ETH_P_ALL),
		.dev = raw->ndev,
		.func = sroce_raw_tap,
		.ignore_outgoing = true,
	};
}

void sroce_raw_hook(struct sroce_raw *raw)
{
	if (raw->hooked)
		return;
	/* Pairs with sroce_raw_loops(): the table is there */
	smp_store_release(&raw->hooked, true);
	dev_add_pack(&raw->hook);
}

void sroce_raw_unhook(struct sroce_raw *raw)
{
	if (!raw->hooked)
		return;
	WRITE_ONCE(raw->hooked, false);
	/*
	 * Waits for those who are in the tap, and for those who have found @hooked in their
	 * RCU read section and are about to have a frame wait
	 */
	dev_remove_pack(&raw->hook);
	/* The worker need not receive what is for nobody any more */
	sroce_raw_later_purge(&raw->later);
	cancel_work_sync(&raw->work);
}
