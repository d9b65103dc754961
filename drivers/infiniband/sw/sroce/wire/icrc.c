// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The invariant CRC of packets. Made by net/ when a train is sent, checked when
 * one arrives and before a byte of it is placed in memory.
 */
#include <linux/crc32poly.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/swab.h>
#include <linux/udp.h>

#include "compat.h"
#include "wire/icrc.h"
#include "wire/train.h"

/* CRC state after the eight bytes of ones that stand for the missing LRH */
#define ICRC_SEED 0xdebb20e3

#define BTH_MASKED_BYTE 4	/* FECN, BECN and six reserved bits */

static struct crypto_shash *sroce_icrc_engine __ro_after_init;

static inline u32 sroce_icrc_crc32(u32 crc, const void *data, size_t len)
{
	return sroce_crc32(sroce_icrc_engine, crc, data, len);
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

	return sroce_icrc_crc32(ICRC_SEED, &masked, sizeof(masked));
}

/* What a byte of the identification contributes to the CRC, by its place and value */
static u32 sroce_id_table[2][256] __ro_after_init;

u32 sroce_icrc_change_id(u32 crc, u16 change)
{
	return crc ^ sroce_id_table[0][change >> 8] ^
	       sroce_id_table[1][change & 0xff];
}

static void sroce_icrc_fill_id_table(void)
{
	u8 headers[sizeof(struct iphdr) + sizeof(struct udphdr)] = {};
	int place, value;

	for (place = 0; place < 2; place++) {
		u8 *byte = headers + offsetof(struct iphdr, id) + place;

		for (value = 0; value < 256; value++) {
			*byte = value;
			sroce_id_table[place][value] =
				sroce_icrc_crc32(0, headers, sizeof(headers));
		}
		*byte = 0;
	}
}

/* Bytes of the headers behind the identification, and itself */
#define BEHIND_ID (sizeof(struct iphdr) + sizeof(struct udphdr) - \
		   offsetof(struct iphdr, id))

/* x^-(8 * 2^i) modulo the polynomial: multiplying by it undoes 2^i bytes of zeros */
static u32 sroce_back_table[13] __ro_after_init;

/* The product of two polynomials modulo that of the CRC; the highest bit is x^0 */
static u32 sroce_icrc_multiply(u32 a, u32 b)
{
	u32 product = 0;

	for (; a; a <<= 1) {
		if (a & BIT(31))
			product ^= b;
		b = b & 1 ? b >> 1 ^ CRC32_POLY_LE : b >> 1;
	}
	return product;
}

/* The state from which @len bytes of zeros lead to @crc */
static u32 sroce_icrc_back_bytes(u32 crc, u32 len)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sroce_back_table); i++)
		if (len >> i & 1)
			crc = sroce_icrc_multiply(sroce_back_table[i], crc);
	return crc;
}

/*
 * A CRC is linear: @diff is what the identification alone would have contributed,
 * followed by zeros for all bytes behind it. Going back over those zeros leaves the two
 * bytes themselves, in the lower half of the state, if the rest of the packet is right.
 */
bool sroce_icrc_find_id(u32 diff, u32 len, u16 *change)
{
	u32 state = sroce_icrc_back_bytes(diff, BEHIND_ID + len);

	*change = swab16(state);
	return !(state >> 16);
}

static void sroce_icrc_mask_ipv6(struct ipv6hdr *ip)
{
	/* Traffic class and flow label: all of the first word but the version */
	*(__be32 *)ip |= htonl(0x0fffffff);
	ip->hop_limit = 0xff;
}

u32 sroce_icrc_grh(const struct ipv6hdr *grh)
{
	struct ipv6hdr masked = *grh;

	sroce_icrc_mask_ipv6(&masked);
	return sroce_icrc_crc32(ICRC_SEED, &masked, sizeof(masked));
}

u32 sroce_icrc_ipv6(const struct ipv6hdr *ip, const struct udphdr *udp)
{
	struct {
		struct ipv6hdr ip;
		struct udphdr udp;
	} masked = { .ip = *ip, .udp = *udp };

	sroce_icrc_mask_ipv6(&masked.ip);
	masked.udp.check = CSUM_MANGLED_0;

	return sroce_icrc_crc32(ICRC_SEED, &masked, sizeof(masked));
}

/*
 * By the value of the byte of the BTH that is masked: the change of the state in front
 * of the BTH that does to the CRC what this value does
 */
static u32 sroce_mask_table[256] __ro_after_init;

/* The state from which @bits bits of zeros lead to @crc */
static u32 sroce_icrc_back_bits(u32 crc, int bits)
{
	while (bits--)
		crc = crc & BIT(31) ? (crc ^ CRC32_POLY_LE) << 1 | 1 : crc << 1;
	return crc;
}

static void sroce_icrc_fill_back_table(void)
{
	int i;

	sroce_back_table[0] = sroce_icrc_back_bits(BIT(31), 8);
	for (i = 1; i < ARRAY_SIZE(sroce_back_table); i++)
		sroce_back_table[i] =
			sroce_icrc_multiply(sroce_back_table[i - 1],
					    sroce_back_table[i - 1]);
}

static void sroce_icrc_fill_mask_table(void)
{
	int value;

	for (value = 0; value < 256; value++)
		sroce_mask_table[value] =
			sroce_icrc_back_bits(value, 8 * BTH_MASKED_BYTE);
}

/*
 * Instead of a copy with the byte masked, the state is changed such that the
 * byte as it is has the same effect: one run over the whole packet.
 */
u32 sroce_icrc_bth(u32 crc, const void *bth, u32 len)
{
	u8 change = 0xff ^ ((const u8 *)bth)[BTH_MASKED_BYTE];

	return sroce_icrc_crc32(crc ^ sroce_mask_table[change], bth, len);
}

u32 sroce_icrc_data(u32 crc, const void *data, size_t len)
{
	return sroce_icrc_crc32(crc, data, len);
}

int __init sroce_icrc_init(void)
{
	sroce_icrc_engine = sroce_crc32_engine();
	if (IS_ERR(sroce_icrc_engine))
		return PTR_ERR(sroce_icrc_engine);
	sroce_icrc_fill_id_table();
	sroce_icrc_fill_mask_table();
	sroce_icrc_fill_back_table();
	return 0;
}

void sroce_icrc_exit(void)
{
	sroce_crc32_engine_put(sroce_icrc_engine);
}
