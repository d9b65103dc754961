// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The headers of an Ethernet frame, as flows and hashes want them. Whoever has sent it
 * may have written anything there; a header counts only when all of it is there.
 *
 * Extension headers of IPv6 are not followed: a frame that has some has no ports.
 */
#include <linux/if_vlan.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip.h>

#include "compat.h"
#include "raw/frame.h"

static_assert(sizeof(struct sroce_flow_key) == 64);

static void sroce_frame_ports(struct sroce_frame *f, const u8 *head, u32 len,
			      u32 off)
{
	bool tcp = f->key.proto == IPPROTO_TCP;
	u32 size = tcp ? sizeof(struct tcphdr) : sizeof(struct udphdr);

	if ((!tcp && f->key.proto != IPPROTO_UDP) || len < off + size)
		return;
	f->transport = off;
	f->key.has |= tcp ? SROCE_HAS_TCP : SROCE_HAS_UDP;
	/* Both begin with the ports */
	memcpy(&f->key.sport, head + off, sizeof(f->key.sport));
	memcpy(&f->key.dport, head + off + 2, sizeof(f->key.dport));
}

static u8 sroce_frame_ip_flags(__be16 frag_off)
{
	return (frag_off & htons(IP_DF) ? SROCE_IP_DONT_FRAG : 0) |
	       (frag_off & htons(IP_MF) ? SROCE_IP_MORE_FRAG : 0);
}

static void sroce_frame_ipv4(struct sroce_frame *f, const u8 *head, u32 len,
			     u32 off, bool coupled)
{
	struct iphdr ip;

	if (len < off + sizeof(ip))
		return;
	memcpy(&ip, head + off, sizeof(ip));
	if (ip.version != 4 || ip.ihl < 5 || len < off + ip.ihl * 4 ||
	    (!coupled && ntohs(ip.tot_len) < ip.ihl * 4))
		return;
	f->network = off;
	f->key.has |= SROCE_HAS_IPV4;
	f->key.saddr[3] = ip.saddr;
	f->key.daddr[3] = ip.daddr;
	f->key.proto = ip.protocol;
	f->key.tos = ip.tos;
	f->key.ttl = ip.ttl;
	f->key.ip_flags = sroce_frame_ip_flags(ip.frag_off);
	if (!(ip.frag_off & htons(IP_MF | IP_OFFSET)))
		sroce_frame_ports(f, head, len, off + ip.ihl * 4);
}

static void sroce_frame_ipv6(struct sroce_frame *f, const u8 *head, u32 len,
			     u32 off)
{
	struct ipv6hdr ip;
	__be32 word;

	if (len < off + sizeof(ip))
		return;
	memcpy(&ip, head + off, sizeof(ip));
	memcpy(&word, head + off, sizeof(word));
	if (ip.version != 6)
		return;
	f->network = off;
	f->key.has |= SROCE_HAS_IPV6;
	memcpy(f->key.saddr, &ip.saddr, sizeof(f->key.saddr));
	memcpy(f->key.daddr, &ip.daddr, sizeof(f->key.daddr));
	f->key.label = word & htonl(0x000fffff);
	f->key.tos = ntohl(word) >> 20;
	f->key.proto = ip.nexthdr;
	f->key.ttl = ip.hop_limit;
	sroce_frame_ports(f, head, len, off + sizeof(ip));
}

static bool sroce_frame_is_tag(__be16 type)
{
	return type == htons(ETH_P_8021Q) || type == htons(ETH_P_8021AD);
}

void sroce_frame_parse(struct sroce_frame *f, const u8 *head, u32 len,
		       bool coupled)
{
	u32 off = ETH_HLEN;

	memset(f, 0, sizeof(*f));
	if (len < ETH_HLEN)
		return;
	memcpy(f->key.dmac, head, ETH_ALEN);
	memcpy(f->key.smac, head + ETH_ALEN, ETH_ALEN);
	memcpy(&f->key.type, head + off - 2, sizeof(f->key.type));
	if (sroce_frame_is_tag(f->key.type) && len >= off + VLAN_HLEN) {
		f->key.has |= SROCE_HAS_VLAN;
		memcpy(&f->key.tci, head + off, sizeof(f->key.tci));
		off += VLAN_HLEN;
		memcpy(&f->key.type, head + off - 2, sizeof(f->key.type));
	}
	if (f->key.type == htons(ETH_P_IP))
		sroce_frame_ipv4(f, head, len, off, coupled);
	else if (f->key.type == htons(ETH_P_IPV6))
		sroce_frame_ipv6(f, head, len, off);
}
