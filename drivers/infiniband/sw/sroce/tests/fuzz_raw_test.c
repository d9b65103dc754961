// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Frames that try everything, for flows of every kind: headers that lie, tags beside and
 * among the bytes, in buffers of every layout, coupled by every means, with whatever is said
 * of checksums, from the wire and from the host, when they may be received at once and when
 * they must wait. What may be so is what the stack itself keeps to: the addresses are in one
 * piece, a checksum that is to be filled in is, too, and a list of coupled buffers is one
 * that GRO makes.
 *
 * Whoever else has the buffer finds it as it was. Queue pairs complete receives of their own
 * only, write nothing behind what they say, and a sniffer gets each plain frame as it was on
 * the wire. The seeds are those of fuzz_test.c.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/checksum.h>

#include "raw/internal.h"
#include "tests/fuzz.h"
#include "tests/transport_pair.h"
#include "turn.h"

/* Frames of one round, and one frame for so many packets of the others' */
#define ROUND (IS_ENABLED(CONFIG_KASAN) ? 20000 : 100000)
#define SHARE 64
#define A_FEW (IS_ENABLED(CONFIG_KASAN) ? 3000 : 15000)

enum { QPS = 4, SLOTS = 8, FLOWS = 24, LONGEST = 61440 };

/* The first queue pair is the sniffer's, whose slots any frame fits */
#define SLOT_LEN (PAIR_MEM / (QPS * SLOTS))
static_assert(SLOT_LEN >= LONGEST + 64);

#define FILLING 0xa5

/**
 * struct fuzz_raw - a round
 * @test: whose
 * @rnd: decides everything
 * @seed: of @rnd
 * @failed: something was wrong: the round ends
 * @pair: its first side is the device
 * @ndev: its netdev
 * @raw: its frames
 * @ibqp: what ib_core would know of @qp
 * @qp: queue pairs of raw packets
 * @posted: bytes of the receives that each has in its slots; 0: none there
 * @rss: a table of all of them
 * @flow: NULL: none in this place
 * @sniffer: a flow of the first queue pair's
 * @broken: the frame is not what it was made as
 * @len: bytes of the frame
 * @wire_len: of the frame as it was on the wire
 * @frames: so far
 * @got: completions
 * @exact: of those, plain frames that the sniffer has got
 * @coupled: frames that were coupled
 * @parts: completions of those
 * @bytes: the frame
 * @wire: as it was on the wire
 * @after: of the buffer, when it has been received
 */
struct fuzz_raw {
	struct kunit *test;
	struct rnd_state rnd;
	u64 seed;
	bool failed;
	struct pair *pair;
	struct net_device *ndev;
	struct sroce_raw *raw;
	struct ib_qp ibqp[QPS];
	struct sroce_qp *qp[QPS];
	u32 posted[QPS][SLOTS];
	struct sroce_rss *rss;
	struct sroce_flow *flow[FLOWS];
	struct sroce_flow *sniffer;
	bool broken;
	u32 len;
	u32 wire_len;
	u64 frames;
	u64 got;
	u64 exact;
	u64 coupled;
	u64 parts;
	u8 bytes[LONGEST];
	u8 wire[LONGEST + VLAN_HLEN];
	u8 after[LONGEST];
};

static u64 frames, got, exact, coupled, parts;

static u32 below(struct fuzz_raw *f, u32 n)
{
	return fuzz_below(&f->rnd, n);
}

static bool one_in(struct fuzz_raw *f, u32 n)
{
	return fuzz_one_in(&f->rnd, n);
}

static void check(struct fuzz_raw *f, bool ok, const char *what, u64 a, u64 b)
{
	if (ok || f->failed)
		return;
	f->failed = true;
	KUNIT_FAIL(f->test, "seed %llu, frame %llu: %s (%llu, %llu)", f->seed,
		   f->frames, what, a, b);
}

/* --- queue pairs ------------------------------------------------------------------ */

static struct side *device(struct fuzz_raw *f)
{
	return &f->pair->side[0];
}

static u32 slot_at(u32 qp, u32 slot)
{
	return (qp * SLOTS + slot) * SLOT_LEN;
}

static void post(struct fuzz_raw *f, u32 qp, u32 slot)
{
	u32 len = qp && one_in(f, 2) ? 1 + below(f, 2048) : SLOT_LEN - 64;
	const struct ib_recv_wr *bad;
	struct recv r;

	memset(device(f)->mem + slot_at(qp, slot), FILLING, SLOT_LEN);
	recv_init(&r, device(f), qp * SLOTS + slot, slot_at(qp, slot), len);
	check(f, !sroce_qp_post_recv(f->qp[qp], &r.wr, &bad), "no receive", qp,
	      slot);
	f->posted[qp][slot] = len;
}

static void to_state(struct fuzz_raw *f, u32 qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	check(f, !sroce_qp_modify(f->qp[qp], &attr, IB_QP_STATE, NULL),
	      "no state", qp, state);
}

static void bring_up(struct fuzz_raw *f, u32 qp)
{
	u32 slot;

	to_state(f, qp, IB_QPS_INIT);
	to_state(f, qp, IB_QPS_RTR);
	if (one_in(f, 2))
		to_state(f, qp, IB_QPS_RTS);
	for (slot = 0; slot < SLOTS; slot++)
		post(f, qp, slot);
}

static void open_qp(struct fuzz_raw *f, u32 qp)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RAW_PACKET,
		.cap = { .max_recv_wr = SLOTS, .max_recv_sge = 1,
			 .max_send_wr = 1, .max_send_sge = 1 },
	};

	f->qp[qp] = side_another_qp(device(f), &f->ibqp[qp], &init);
	f->qp[qp]->net_cookie = device(f)->port.net.net_cookie;
	bring_up(f, qp);
}

/* --- completions ------------------------------------------------------------------- */

static bool is_filling(const u8 *from, u32 len)
{
	return !len || (from[0] == FILLING && !memcmp(from, from + 1, len - 1));
}

/* Bytes of a receive that was completed; 0 if it was not with success */
static u32 check_completion(struct fuzz_raw *f, const struct ib_wc *wc)
{
	u32 qp = wc->wr_id / SLOTS, slot = wc->wr_id % SLOTS;
	const u8 *mem = device(f)->mem + slot_at(qp, slot);
	u32 posted = f->posted[qp][slot];

	check(f, qp < QPS && wc->qp == &f->ibqp[qp] && posted,
	      "a completion of nothing", wc->wr_id, wc->status);
	if (f->failed)
		return 0;
	f->posted[qp][slot] = 0;
	if (wc->status)
		return 0;
	check(f, wc->byte_len <= posted, "more bytes than there is room for",
	      wc->byte_len, posted);
	check(f, f->failed ||
	      is_filling(mem + wc->byte_len, SLOT_LEN - wc->byte_len),
	      "bytes behind the frame", qp, wc->byte_len);
	f->got++;
	return wc->byte_len;
}

static bool is_wire(struct fuzz_raw *f, const struct ib_wc *wc)
{
	const u8 *mem = device(f)->mem + slot_at(0, wc->wr_id % SLOTS);

	return wc->byte_len == f->wire_len &&
	       !memcmp(mem, f->wire, f->wire_len);
}

/* Return: how many the sniffer has got; @right: that were as on the wire */
static u32 reap(struct fuzz_raw *f, u32 *right)
{
	u32 n = 0, qp;
	struct ib_wc wc;

	while (!f->failed && side_poll(&device(f)->rcq, &wc)) {
		qp = wc.wr_id / SLOTS;
		if (!check_completion(f, &wc))
			continue;
		n += !qp;
		*right += !qp && is_wire(f, &wc);
		post(f, qp, wc.wr_id % SLOTS);
	}
	return n;
}

/* Somebody else resets one of them, or has it hear nothing */
static void disturb(struct fuzz_raw *f)
{
	u32 qp = 1 + below(f, QPS - 1), right = 0;

	sroce_qp_strip_vlan(f->qp[qp], one_in(f, 2));
	if (one_in(f, 2))
		to_state(f, qp, IB_QPS_ERR);
	reap(f, &right);
	to_state(f, qp, IB_QPS_RESET);
	memset(f->posted[qp], 0, sizeof(f->posted[qp]));
	bring_up(f, qp);
}

/* --- flows ------------------------------------------------------------------------- */

/* What frames and flows say, so that they meet */
static void some_mac(struct fuzz_raw *f, u8 *mac)
{
	static const u8 macs[][ETH_ALEN] = {
		{ 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 },
		{ 1, 0, 0x5e, 1, 2, 3 }, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};

	memcpy(mac, macs[below(f, ARRAY_SIZE(macs))], ETH_ALEN);
}

static __be16 some_type(struct fuzz_raw *f)
{
	static const u16 types[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_ARP,
				     ETH_P_8021Q, ETH_P_8021AD, ETH_P_IBOE };

	return htons(one_in(f, 16) ? below(f, 65536) :
		     one_in(f, 4) ? types[below(f, ARRAY_SIZE(types))] :
				    types[below(f, 2)]);
}

static u8 some_proto(struct fuzz_raw *f)
{
	static const u8 protos[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_TCP,
				     IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_ICMP };

	return protos[below(f, ARRAY_SIZE(protos))];
}

static void some_key(struct fuzz_raw *f, struct sroce_flow_rule *rule)
{
	struct sroce_flow_key *key = &rule->key, *mask = &rule->mask;

	if (one_in(f, 2)) {
		some_mac(f, key->dmac);
		memset(mask->dmac, 0xff, ETH_ALEN);
	}
	if (one_in(f, 3)) {
		key->type = some_type(f);
		mask->type = htons(0xffff);
	}
	if (one_in(f, 4)) {
		key->has = below(f, 32);
		mask->has = below(f, 32);
	}
	if (one_in(f, 4)) {
		key->tci = htons(below(f, 4));
		mask->tci = htons(0xfff);
	}
	if (one_in(f, 3)) {
		key->proto = some_proto(f);
		mask->proto = 0xff;
		key->dport = htons(below(f, 3));
		mask->dport = htons(0xffff);
	}
}

static void add_flow(struct fuzz_raw *f, struct sroce_flow **flow,
		     struct sroce_flow_rule *rule)
{
	*flow = sroce_flow_alloc(rule);
	KUNIT_ASSERT_NOT_NULL(f->test, *flow);
	if (!sroce_flow_table_add(&f->raw->table, *flow, true))
		return;
	sroce_flow_free(*flow);
	*flow = NULL;
}

static void del_flow(struct fuzz_raw *f, struct sroce_flow **flow)
{
	if (*flow)
		sroce_flow_table_del(&f->raw->table, *flow);
	sroce_flow_free(*flow);
	*flow = NULL;
}

static void change_flow(struct fuzz_raw *f, u32 i)
{
	struct sroce_flow_rule rule = {
		.type = one_in(f, 2) ? SROCE_FLOW_NORMAL :
				       below(f, SROCE_FLOW_TYPES),
		.priority = below(f, 4),
		.tag = below(f, 65536),
		.drop = one_in(f, 16),
		.dont_trap = one_in(f, 3),
		/* The first is for the sniffer alone */
		.qp = f->qp[1 + below(f, QPS - 1)],
		.rss = one_in(f, 4) ? f->rss : NULL,
	};

	del_flow(f, &f->flow[i]);
	if (one_in(f, 4))
		return;
	if (rule.type == SROCE_FLOW_NORMAL)
		some_key(f, &rule);
	rule.counts = one_in(f, 2) ? sroce_flow_counts_alloc() : NULL;
	add_flow(f, &f->flow[i], &rule);
	sroce_flow_counts_put(rule.counts);
}

/* --- frames ------------------------------------------------------------------------ */

/* Right at first, and then something is not */
static void break_header(struct fuzz_raw *f, u8 *header, u32 len)
{
	u32 n = one_in(f, 4) ? 1 + below(f, 2) : 0;

	f->broken |= n;
	while (n--)
		header[below(f, len)] = below(f, 256);
}

static u32 make_l4(struct fuzz_raw *f, u8 *to, u8 proto, u32 len)
{
	struct tcphdr *th = (struct tcphdr *)to;
	struct udphdr *uh = (struct udphdr *)to;
	u32 size = proto == IPPROTO_TCP ? sizeof(*th) : sizeof(*uh);

	memset(to, 0, size);
	uh->source = htons(below(f, 3));
	uh->dest = htons(below(f, 3));
	if (proto == IPPROTO_TCP)
		th->doff = 5;
	else
		uh->len = htons(size + len);
	break_header(f, to, size);
	return size;
}

static u32 make_ipv4(struct fuzz_raw *f, u8 *to, u8 proto, u32 len)
{
	struct iphdr *ip = (struct iphdr *)to;
	u32 size = one_in(f, 4) ? 4 * (5 + below(f, 11)) : sizeof(*ip);

	memset(to, 0, size);
	*ip = (struct iphdr){
		.version = 4, .ihl = size / 4, .ttl = 64, .protocol = proto,
		.tot_len = htons(size + len),
		.saddr = htonl(0x0a000001), .daddr = htonl(0x0a000002),
	};
	if (one_in(f, 2))
		ip->check = ip_fast_csum(ip, ip->ihl);
	break_header(f, to, sizeof(*ip));
	return size;
}

static u32 make_ipv6(struct fuzz_raw *f, u8 *to, u8 proto, u32 len)
{
	struct ipv6hdr *ip = (struct ipv6hdr *)to;

	*ip = (struct ipv6hdr){
		.version = 6, .hop_limit = 64, .nexthdr = proto,
		.payload_len = htons(len),
	};
	ip->daddr.s6_addr[15] = 1;
	break_header(f, to, sizeof(*ip));
	return sizeof(*ip);
}

/* What was made of a frame, for those who say something of it */
struct made {
	bool ipv4;
	u8 proto;
	u32 network;
	u32 transport;
	u32 payload;
};

static u32 some_payload(struct fuzz_raw *f)
{
	switch (below(f, 8)) {
	case 0:
		return below(f, 8);
	case 1:
		return below(f, LONGEST - 512);
	case 2:
		return below(f, 9000);
	default:
		return below(f, 1500);
	}
}

static void make_frame(struct fuzz_raw *f, struct made *m)
{
	u32 payload = some_payload(f), at = 2 * ETH_ALEN, i;
	__be16 type = some_type(f);

	*m = (struct made){ .proto = some_proto(f) };
	f->broken = false;
	some_mac(f, f->bytes);
	some_mac(f, f->bytes + ETH_ALEN);
	for (i = one_in(f, 4) ? 1 + below(f, 2) : 0; i; i--) {
		put_unaligned_be16(one_in(f, 2) ? ETH_P_8021Q : ETH_P_8021AD,
				   f->bytes + at);
		put_unaligned_be16(below(f, 4), f->bytes + at + 2);
		at += VLAN_HLEN;
	}
	put_unaligned(type, (__be16 *)(f->bytes + at));
	at += 2;
	m->network = at;
	m->ipv4 = type == htons(ETH_P_IP);
	if (m->ipv4)
		at += make_ipv4(f, f->bytes + at, m->proto, payload + 20);
	else
		at += make_ipv6(f, f->bytes + at, m->proto, payload + 20);
	m->transport = at;
	at += make_l4(f, f->bytes + at, m->proto, payload);
	m->payload = at;
	memset(f->bytes + at, below(f, 256), payload);
	f->len = at + payload;
	/* Cut short somewhere */
	f->broken |= one_in(f, 16);
	if (f->broken && one_in(f, 4))
		f->len = 1 + below(f, f->len);
}

/* Would GRO couple such? */
static bool may_be_grown(const struct fuzz_raw *f, const struct made *m)
{
	__be16 type = get_unaligned((__be16 *)(f->bytes + m->network - 2));

	return !f->broken && (m->ipv4 || type == htons(ETH_P_IPV6)) &&
	       (m->proto == IPPROTO_TCP || m->proto == IPPROTO_UDP);
}

/* --- buffers ----------------------------------------------------------------------- */

/* As the stack has it: the addresses and the type are in one piece, if they are there at all */
static struct sk_buff *lay_out(struct fuzz_raw *f)
{
	u32 head = min(f->len, ETH_HLEN + below(f, 160));
	u32 layout = below(f, 8);
	struct sk_buff *skb;
	bool ok = true;

	if (layout < 3)
		head = f->len;
	else if (layout < 6)
		head = max(head, f->len - min(f->len, FUZZ_PARTS * (u32)PAGE_SIZE));
	skb = fuzz_linear(f->bytes, head);
	if (!skb)
		return NULL;
	if (head < f->len)
		ok = layout < 6 ?
		     fuzz_add_frags(&f->rnd, skb, f->bytes + head,
				    f->len - head, FUZZ_PARTS) :
		     fuzz_add_list(&f->rnd, skb, f->bytes + head,
				   f->len - head);
	if (ok)
		return skb;
	kfree_skb(skb);
	return NULL;
}

/* As GRO does: the first buffer has the headers, each further one just the next part */
static struct sk_buff *lay_out_gro(struct fuzz_raw *f, const struct made *m,
				   u32 size)
{
	u32 at = min(f->len, m->payload + size);
	struct sk_buff *skb = fuzz_linear(f->bytes, at), **next;
	u32 n;

	if (!skb)
		return NULL;
	next = &skb_shinfo(skb)->frag_list;
	for (; at < f->len; at += n) {
		n = min(size, f->len - at);
		*next = fuzz_linear(f->bytes + at, n);
		if (!*next)
			break;
		skb->data_len += n;
		skb->len += n;
		skb->truesize += (*next)->truesize;
		next = &(*next)->next;
	}
	return skb;
}

static u32 some_gso_type(struct fuzz_raw *f, const struct made *m,
			 bool gro)
{
	static const u32 types[] = { SKB_GSO_TCPV4, SKB_GSO_TCPV6,
				     SKB_GSO_UDP_L4, SKB_GSO_UDP, SKB_GSO_SCTP };
	static const u32 more[] = { SKB_GSO_DODGY, SKB_GSO_TCP_ECN,
				    SKB_GSO_TCP_FIXEDID, SKB_GSO_PARTIAL };
	u32 type = m->proto == IPPROTO_UDP ? SKB_GSO_UDP_L4 :
		   m->ipv4 ? SKB_GSO_TCPV4 : SKB_GSO_TCPV6;

	if (!gro && one_in(f, 6))
		type = types[below(f, ARRAY_SIZE(types))];
	if (one_in(f, 4))
		type |= more[below(f, ARRAY_SIZE(more))];
	return type;
}

static u32 some_gso_size(struct fuzz_raw *f)
{
	switch (below(f, 8)) {
	case 0:
		return 1 + below(f, 64);
	case 1:
		return 1 + below(f, LONGEST);
	default:
		return 64 + below(f, 1400);
	}
}

static void say_sums(struct fuzz_raw *f, struct sk_buff *skb,
		     const struct made *m)
{
	u32 off = m->proto == IPPROTO_TCP ? offsetof(struct tcphdr, check) :
					    offsetof(struct udphdr, check);

	skb->ip_summed = below(f, 4);
	if (skb->ip_summed == CHECKSUM_COMPLETE)
		skb->csum = (__force __wsum)prandom_u32_state(&f->rnd);
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return;
	if (m->transport + off + 2 > skb_headlen(skb)) {
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		return;
	}
	skb->csum_start = skb_headroom(skb) + m->transport;
	skb->csum_offset = off;
}

/* Return: a frame in a buffer that begins with it; @gso: coupled */
static struct sk_buff *make_buffer(struct fuzz_raw *f, struct made *m,
				   bool *gso)
{
	u32 size = some_gso_size(f);
	struct sk_buff *skb;
	bool gro;

	*gso = f->len > m->payload + 1 && one_in(f, 3);
	gro = *gso && may_be_grown(f, m) && one_in(f, 2);
	skb = gro ? lay_out_gro(f, m, size) : lay_out(f);
	if (!skb)
		return NULL;
	/* Nobody says of any other list that it is to be cut */
	if (!gro && skb_has_frag_list(skb))
		*gso = false;
	say_sums(f, skb, m);
	if (!*gso)
		return skb;
	skb_shinfo(skb)->gso_size = size;
	skb_shinfo(skb)->gso_type = some_gso_type(f, m, gro);
	skb_shinfo(skb)->gso_segs = one_in(f, 4) ? below(f, 65536) :
				    DIV_ROUND_UP(f->len - m->payload, size);
	return skb;
}

/* As it was on the wire: a tag that is beside the bytes is in front of those among them */
static void make_wire(struct fuzz_raw *f, const struct sk_buff *skb)
{
	u32 at = 2 * ETH_ALEN;

	memcpy(f->wire, f->bytes, f->len);
	f->wire_len = f->len;
	if (!skb_vlan_tag_present(skb) || f->len < ETH_HLEN)
		return;
	memmove(f->wire + at + VLAN_HLEN, f->bytes + at, f->len - at);
	put_unaligned(skb->vlan_proto, (__be16 *)(f->wire + at));
	put_unaligned_be16(skb_vlan_tag_get(skb), f->wire + at + 2);
	f->wire_len += VLAN_HLEN;
}

/* What the stack has noted when it comes to the taps */
static void address(struct fuzz_raw *f, struct sk_buff *skb,
		    const struct made *m, bool out)
{
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, min_t(u32, ETH_HLEN, skb_headlen(skb)));
	if (m->transport <= skb_headlen(skb))
		skb_set_transport_header(skb, m->transport);
	else
		skb_reset_transport_header(skb);
	skb->protocol = f->len >= ETH_HLEN ? eth_hdr(skb)->h_proto : 0;
	skb_reset_mac_len(skb);
	if (one_in(f, 4))
		__vlan_hwaccel_put_tag(skb, htons(one_in(f, 2) ? ETH_P_8021Q :
						  ETH_P_8021AD), below(f, 4));
	skb->dev = f->ndev;
	skb->pkt_type = out ? PACKET_OUTGOING : below(f, PACKET_OTHERHOST + 1);
	if (!out && f->len >= ETH_HLEN)
		__skb_pull(skb, ETH_HLEN);
}

/* --- into the driver ---------------------------------------------------------------- */

static void receive(struct fuzz_raw *f, struct sk_buff *skb)
{
	u32 when = below(f, 8);

	local_bh_disable();
	rcu_read_lock();
	/* From within the transport; and when a turn is overdue */
	if (when < 2)
		sroce_turn_begin(false);
	if (when == 1)
		sroce_turn_spend(2 * sroce_turn_limits.bytes);
	f->raw->hook.func(skb, f->ndev, &f->raw->hook, f->ndev);
	if (when < 2)
		sroce_turn_end();
	rcu_read_unlock();
	local_bh_enable();
}

/* The worker has received what waited */
static void settle(struct fuzz_raw *f)
{
	flush_work(&f->raw->work);
	check(f, !sroce_raw_later_waits(&f->raw->later) && !f->raw->rest.parts,
	      "frames wait for nobody", f->raw->later.received.bytes, 0);
	check(f, !f->raw->later.received.bytes && !f->raw->later.sent.bytes &&
	      !f->raw->later.received.copies && !f->raw->later.sent.copies,
	      "what has waited counts still", f->raw->later.received.copies,
	      f->raw->later.sent.copies);
}

/* Somebody else has the buffer as well: it is as it was */
static void check_untouched(struct fuzz_raw *f, struct sk_buff *skb,
			    const struct sk_buff *as_it_was)
{
	int begin = skb_mac_header(skb) - skb->data;

	check(f, skb->len == as_it_was->len &&
	      skb->data_len == as_it_was->data_len &&
	      skb->ip_summed == as_it_was->ip_summed &&
	      skb->vlan_all == as_it_was->vlan_all, "the buffer has changed",
	      skb->len, as_it_was->len);
	if (f->failed)
		return;
	check(f, !skb_copy_bits(skb, begin, f->after, f->len) &&
	      !memcmp(f->after, f->bytes, f->len), "its bytes have changed",
	      f->len, 0);
}

static void count(struct fuzz_raw *f, bool gso, u32 sniffed, u64 before)
{
	f->frames++;
	f->coupled += gso;
	if (gso)
		f->parts += f->got - before;
	else
		f->exact += sniffed;
}

static void step(struct fuzz_raw *f)
{
	bool out = one_in(f, 4), gso, whole;
	u32 sniffed, right = 0;
	struct sk_buff *skb, *other = NULL, as_it_was;
	u64 before = f->got;
	struct made m;

	make_frame(f, &m);
	skb = make_buffer(f, &m, &gso);
	if (!skb)
		return;
	address(f, skb, &m, out);
	make_wire(f, skb);
	whole = !gso && skb->ip_summed != CHECKSUM_PARTIAL &&
		f->len >= ETH_HLEN && f->sniffer;
	if (one_in(f, 2)) {
		other = skb_get(skb);
		memcpy(&as_it_was, skb, sizeof(as_it_was));
	}
	receive(f, skb);
	settle(f);
	if (other && !f->failed)
		check_untouched(f, other, &as_it_was);
	consume_skb(other);
	sniffed = reap(f, &right);
	check(f, !whole || (sniffed == 1 && right == 1),
	      "a sniffer has not got a plain frame as it was", sniffed, right);
	count(f, gso, right, before);
}

static void run(struct fuzz_raw *f, u64 most)
{
	while (f->frames < most && !f->failed) {
		step(f);
		if (one_in(f, 8))
			change_flow(f, below(f, FLOWS));
		if (one_in(f, 256))
			disturb(f);
		if (one_in(f, 512))
			rcu_barrier();
		cond_resched();
	}
}

/* --- a round ------------------------------------------------------------------------- */

static void make_rss(struct fuzz_raw *f)
{
	u8 key[SROCE_RX_HASH_KEY_LEN];
	u32 i;

	prandom_bytes_state(&f->rnd, key, sizeof(key));
	f->rss = sroce_rss_create(SROCE_RX_HASH_SRC_IPV4 |
				  SROCE_RX_HASH_SRC_PORT_TCP |
				  SROCE_RX_HASH_DST_PORT_UDP, key, QPS);
	KUNIT_ASSERT_NOT_NULL(f->test, f->rss);
	for (i = 0; i < QPS; i++)
		sroce_rss_set(f->rss, i, f->qp[i ?: 1]);
}

static void begin(struct fuzz_raw *f)
{
	struct sroce_flow_rule all = { .type = SROCE_FLOW_SNIFFER };
	struct sroce_port *port;
	u32 i;

	f->pair = pair_create(f->test, &(struct pair_config){});
	port = &device(f)->port;
	f->ndev = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(f->test, f->ndev);
	f->raw = sroce_raw_create(f->ndev, &port->net);
	KUNIT_ASSERT_NOT_NULL(f->test, f->raw);
	sroce_raw_attach(f->raw);
	for (i = 0; i < QPS; i++)
		open_qp(f, i);
	make_rss(f);
	all.qp = f->qp[0];
	add_flow(f, &f->sniffer, &all);
}

static void end(struct fuzz_raw *f)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		del_flow(f, &f->flow[i]);
	del_flow(f, &f->sniffer);
	synchronize_rcu();
	rcu_barrier();
	sroce_rss_free(f->rss);
	rcu_barrier();
	flush_work(&f->raw->work);
	sroce_raw_later_purge(&f->raw->later);
	sroce_raw_destroy(f->raw);
	for (i = 0; i < QPS; i++)
		sroce_qp_destroy(f->qp[i]);
	free_netdev(f->ndev);
}

static void add_up(const struct fuzz_raw *f)
{
	frames += f->frames;
	got += f->got;
	exact += f->exact;
	coupled += f->coupled;
	parts += f->parts;
}

static u64 wanted_frames(void)
{
	return fuzz_packets ? DIV_ROUND_UP(fuzz_packets, SHARE) : A_FEW;
}

static void raw_round(struct kunit *test)
{
	u64 round = *(const u64 *)test->param_value;
	struct fuzz_raw *f = vzalloc(sizeof(*f));

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->seed = (fuzz_seed ?: get_random_u32()) + round;
	prandom_seed_state(&f->rnd, f->seed);
	begin(f);
	run(f, min_t(u64, wanted_frames(), ROUND));
	end(f);
	add_up(f);
	kunit_info(test, "seed %llu: %llu frames, %llu copies\n", f->seed,
		   f->frames, f->got);
	KUNIT_EXPECT_GT(test, f->exact, f->frames / 4);
	KUNIT_EXPECT_GT(test, f->parts, f->coupled / 2);
	vfree(f);
}

static const void *raw_rounds(struct kunit *test, const void *prev, char *desc)
{
	static u64 round;

	round = prev ? round + 1 : 0;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%llu frames", frames);
	return round < DIV_ROUND_UP(wanted_frames(), ROUND) ? &round : NULL;
}

static void raw_report(struct kunit_suite *suite)
{
	pr_info("sroce: fuzz: %llu frames, %llu of them coupled; %llu copies, %llu plain ones to a sniffer, %llu parts\n",
		frames, coupled, got, exact, parts);
}

static struct kunit_case fuzz_raw_cases[] = {
	KUNIT_CASE_PARAM_ATTR(raw_round, raw_rounds,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite fuzz_raw_suite = {
	.name = "sroce_fuzz_raw",
	.exit = pair_exit,
	.suite_exit = raw_report,
	.test_cases = fuzz_raw_cases,
};

kunit_test_suite(fuzz_raw_suite);
