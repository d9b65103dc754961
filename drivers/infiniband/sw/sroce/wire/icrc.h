/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The invariant CRC (IBA 7.8.1, annex A17.3.3): CRC-32 of Ethernet over the
 * packet with every field that a router may change replaced by ones.
 */
#ifndef SROCE_WIRE_ICRC_H
#define SROCE_WIRE_ICRC_H

#include <linux/init.h>
#include <linux/types.h>

struct iphdr;
struct ipv6hdr;
struct udphdr;

/**
 * sroce_icrc_ipv4() - CRC state after the masked IPv4 and UDP headers
 * @ip: header without options; tot_len and id as they will be on the wire
 * @udp: ports and length as they will be on the wire
 *
 * Return: running state for sroce_icrc_bth().
 */
u32 sroce_icrc_ipv4(const struct iphdr *ip, const struct udphdr *udp);

/**
 * sroce_icrc_change_id() - CRC state for another identification
 * @crc: from sroce_icrc_ipv4()
 * @change: the two identifications' bits that differ, in host order
 *
 * Packets of a train have the same headers but for the identification, and
 * a CRC is linear: what a change of it does is the same for every header.
 *
 * Return: what sroce_icrc_ipv4() would say.
 */
u32 sroce_icrc_change_id(u32 crc, u16 change);

/**
 * sroce_icrc_find_id() - is the identification all that is wrong with an ICRC?
 * @diff: the ICRC that was computed with some identification, and the one that the
 *	packet has, exclusive or
 * @len: bytes between UDP header and ICRC
 * @change: the bits of the identification that must have been others, in host order
 *
 * One of 65536 packets that are damaged in some other way is mistaken for one.
 *
 * Return: true when another identification explains it.
 */
bool sroce_icrc_find_id(u32 diff, u32 len, u16 *change);

/**
 * sroce_icrc_ipv6() - CRC state after the masked IPv6 and UDP headers
 * @ip: header; payload_len as it will be on the wire
 * @udp: ports and length as they will be on the wire
 *
 * Return: running state for sroce_icrc_bth().
 */
u32 sroce_icrc_ipv6(const struct ipv6hdr *ip, const struct udphdr *udp);

/**
 * sroce_icrc_grh() - CRC state after the masked GRH of RoCE v1
 * @grh: header; IBA 8.3 gives it the fields of an IPv6 header
 *
 * Return: running state for sroce_icrc_bth().
 */
u32 sroce_icrc_grh(const struct ipv6hdr *grh);

/**
 * sroce_icrc_bth() - continue over the masked BTH and what follows
 * @crc: state so far
 * @bth: BTH and extended headers
 * @len: bytes at @bth, at least SROCE_BTH_LEN
 *
 * Return: running state for sroce_icrc_data() or sroce_icrc_final().
 */
u32 sroce_icrc_bth(u32 crc, const void *bth, u32 len);

/**
 * sroce_icrc_data() - continue over payload and pad
 * @crc: state so far
 * @data: bytes
 * @len: their number
 */
u32 sroce_icrc_data(u32 crc, const void *data, size_t len);

/**
 * sroce_icrc_final() - the ICRC as its four bytes stand on the wire
 * @crc: state after the last pad byte
 */
static inline __le32 sroce_icrc_final(u32 crc)
{
	return cpu_to_le32(~crc);
}

/**
 * sroce_icrc_init() - make the CRC engine ready
 *
 * Context: process. Kernels from 6.14 on need nothing; older ones get the
 * crypto API's accelerated crc32 (see compat.h).
 * Return: 0 or a negative errno.
 */
int __init sroce_icrc_init(void);
void sroce_icrc_exit(void);

#endif
