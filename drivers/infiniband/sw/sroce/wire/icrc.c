// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/string.h>
#include <linux/udp.h>

#include "compat.h"
#include "wire/icrc.h"
#include "wire/train.h"

/* CRC state after the eight bytes of ones that stand for the missing LRH */
#define ICRC_SEED 0xdebb20e3

#define BTH_MASKED_BYTE 4	/* FECN, BECN and six reserved bits */

static struct crypto_shash *engine __ro_after_init;

static inline u32 crc32_of(u32 crc, const void *data, size_t len)
{
	return sroce_crc32(engine, crc, data, len);
}

u32 sroce_icrc_ipv4(const struct iphdr *ip, const struct udphdr *udp)
{
	struct {
		struct iphdr ip;
		struct udphdr udp;
	} masked = { .ip = *ip, .udp = *udp };

	masked.ip.tos = 0xff;
	masked.ip.ttl = 0xff;
	masked.ip.check = CSUM_MANGLED_0;
	masked.udp.check = CSUM_MANGLED_0;

	return crc32_of(ICRC_SEED, &masked, sizeof(masked));
}

/* Traffic class and flow label: all of the first word but the version */
static void mask_ipv6(struct ipv6hdr *ip)
{
	*(__be32 *)ip |= htonl(0x0fffffff);
	ip->hop_limit = 0xff;
}

u32 sroce_icrc_ipv6(const struct ipv6hdr *ip, const struct udphdr *udp)
{
	struct {
		struct ipv6hdr ip;
		struct udphdr udp;
	} masked = { .ip = *ip, .udp = *udp };

	mask_ipv6(&masked.ip);
	masked.udp.check = CSUM_MANGLED_0;

	return crc32_of(ICRC_SEED, &masked, sizeof(masked));
}

u32 sroce_icrc_grh(const struct ipv6hdr *grh)
{
	struct ipv6hdr masked = *grh;

	mask_ipv6(&masked);

	return crc32_of(ICRC_SEED, &masked, sizeof(masked));
}

u32 sroce_icrc_bth(u32 crc, const void *bth, u32 len)
{
	u8 masked[SROCE_BTH_LEN];

	memcpy(masked, bth, sizeof(masked));
	masked[BTH_MASKED_BYTE] = 0xff;
	crc = crc32_of(crc, masked, sizeof(masked));

	/* Most packets are in the middle of a message and have only a BTH */
	if (len == SROCE_BTH_LEN)
		return crc;
	return crc32_of(crc, bth + SROCE_BTH_LEN, len - SROCE_BTH_LEN);
}

u32 sroce_icrc_data(u32 crc, const void *data, size_t len)
{
	return crc32_of(crc, data, len);
}

int sroce_icrc_init(void)
{
	engine = sroce_crc32_engine();
	return PTR_ERR_OR_ZERO(engine);
}

void sroce_icrc_exit(void)
{
	sroce_crc32_engine_put(engine);
}
