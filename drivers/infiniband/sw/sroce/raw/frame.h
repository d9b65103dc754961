/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What flows and hashes look at of an Ethernet frame.
 */
#ifndef SROCE_RAW_FRAME_H
#define SROCE_RAW_FRAME_H

#include <linux/if_ether.h>
#include <linux/types.h>

/* Most bytes of a frame that anybody looks at: addresses, a tag, IP with options, TCP */
#define SROCE_FRAME_HEAD 128

/* sroce_flow_key.has: what a frame is */
enum {
	SROCE_HAS_VLAN = 1 << 0,
	SROCE_HAS_IPV4 = 1 << 1,
	SROCE_HAS_IPV6 = 1 << 2,
	SROCE_HAS_TCP = 1 << 3,
	SROCE_HAS_UDP = 1 << 4,
};

/* sroce_flow_key.ip_flags; the numbers are those of enum ib_ipv4_flags */
enum {
	SROCE_IP_DONT_FRAG = 1 << 1,
	SROCE_IP_MORE_FRAG = 1 << 2,
};

/**
 * struct sroce_flow_key - fields of a frame, or which of them a flow looks at
 * @dmac: destination
 * @smac: source
 * @type: EtherType, behind a VLAN tag
 * @tci: VLAN tag
 * @saddr: IP source; of IPv4 in the last word
 * @daddr: IP destination, likewise
 * @label: IPv6 flow label
 * @proto: IPv4 protocol, or first next header of IPv6
 * @tos: IPv4 type of service, or traffic class
 * @ttl: IPv4 time to live, or hop limit
 * @ip_flags: SROCE_IP_*
 * @sport: source port
 * @dport: destination port
 * @has: SROCE_HAS_*: what of the above there is; the rest is 0
 * @zero: 0
 *
 * Compared word by word: no padding.
 */
struct sroce_flow_key {
	u8 dmac[ETH_ALEN];
	u8 smac[ETH_ALEN];
	__be16 type;
	__be16 tci;
	__be32 saddr[4];
	__be32 daddr[4];
	__be32 label;
	u8 proto;
	u8 tos;
	u8 ttl;
	u8 ip_flags;
	__be16 sport;
	__be16 dport;
	u8 has;
	u8 zero[3];
} __aligned(8);

#define SROCE_FLOW_KEY_WORDS (sizeof(struct sroce_flow_key) / sizeof(u64))

/**
 * struct sroce_frame - a frame that was looked at
 * @key: its fields
 * @network: where its IP header begins; 0: it has none
 * @transport: where its TCP or UDP header begins; 0: it has none, or is a fragment
 */
struct sroce_frame {
	struct sroce_flow_key key;
	u16 network;
	u16 transport;
};

/**
 * sroce_frame_parse() - look at the beginning of a frame
 * @f: filled in
 * @head: its bytes, from the destination address on; not to change meanwhile
 * @len: how many of them are at @head, SROCE_FRAME_HEAD at least unless it is shorter
 * @coupled: it stands for several, and may be longer than what IPv4 can say
 *
 * A header that is cut short or contradicts itself is none.
 */
void sroce_frame_parse(struct sroce_frame *f, const u8 *head, u32 len,
		       bool coupled);

/* The VLAN tag of a frame is not in its bytes, but beside them */
static inline void sroce_frame_set_vlan(struct sroce_frame *f, u16 tci)
{
	f->key.tci = htons(tci);
	f->key.has |= SROCE_HAS_VLAN;
}

#endif
