// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that are never made, because the sender's path ends at a QP of this host:
 * what their receiver would have seen of them.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "path.h"

static void sroce_path_grh_ipv4(const struct sroce_path *path, u16 len,
				struct iphdr *ip)
{
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = path->tclass;
	ip->tot_len = htons(sizeof(*ip) + len);
	ip->frag_off = htons(IP_DF);
	ip->ttl = path->hop_limit;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = sroce_gid_ipv4(&path->sgid);
	ip->daddr = sroce_gid_ipv4(&path->dgid);
	ip_send_check(ip);
}

/* Of IPv6, or the GRH of RoCE v1, which looks the same */
static void sroce_path_grh_ipv6(const struct sroce_path *path, u16 len,
				u8 nexthdr, struct ipv6hdr *ip)
{
	ip6_flow_hdr(ip, path->tclass, htonl(path->flow_label));
	ip->payload_len = htons(len);
	ip->nexthdr = nexthdr;
	ip->hop_limit = path->hop_limit;
	ip->saddr = *sroce_gid_addr(&path->sgid);
	ip->daddr = *sroce_gid_addr(&path->dgid);
}

void sroce_path_rx_info(const struct sroce_path *path, u32 len,
			struct sroce_rx_info *info)
{
	u16 udp_len = sizeof(struct udphdr) + len;

	memset(info, 0, sizeof(*info));
	info->sgid = path->sgid;
	info->dgid = path->dgid;
	info->net_cookie = path->net_cookie;
	info->ifindex = READ_ONCE(path->direct_ifindex);
	info->vlan_id = path->direct_vlan_id;
	info->network_hdr_type = path->network_type;
	switch (path->network_type) {
	case RDMA_NETWORK_IPV4:
		sroce_path_grh_ipv4(path, udp_len,
				    (struct iphdr *)(info->grh + 20));
		break;
	case RDMA_NETWORK_IPV6:
		sroce_path_grh_ipv6(path, udp_len, IPPROTO_UDP,
				    (struct ipv6hdr *)info->grh);
		break;
	case RDMA_NETWORK_ROCE_V1:
		sroce_path_grh_ipv6(path, len, SROCE_GRH_NEXT_HDR,
				    (struct ipv6hdr *)info->grh);
		break;
	}
}
