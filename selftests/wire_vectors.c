// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * wire_vectors: the tests' own ICRC against frames with known ones; those with a
 * tag of the maker were captured from ConnectX hardware. And against all that others
 * have captured (captured.h).
 */
#include <stdio.h>
#include <string.h>

#include "replay_frames.h"
#include "wire.h"

static const struct {
	const char *name, *hex;
} vectors[] = {
	{ "IPv4 SEND_ONLY, pad 3",
	  "0200000000020200000000010800456a0034123440004011a417c0000201c0000202c12312b70020000004f0ffff"
	  "00000012800000ff68656c6c6f0000009c3fc482" },
	{ "IPv4 ACK",
	  "020000000001020000000002080045680030000140004011b650c0000202c0000201c12312b7001c00001140ffff"
	  "00000011000000ff1f000001b295398b" },
	{ "IPv6 WRITE_ONLY_IMM with a UDP checksum",
	  "02000000000202000000000186dd66a123450034114020010db800000000000000000000000120010db800000000"
	  "0000000000000002fedc12b700345c430b40ffff00abcdef80fffffe00007f001234500000001a2b00000008dead"
	  "beef0001020304050607ec7c49ce" },
	{ "IPv4 READ_REQUEST",
	  "02000000000202000000000108004500003c000640004011b6a7c0000201c0000202c12312b7002800000c40ffff"
	  "0000001280fffffe000000000001000000000155000030012e82207a" },
	{ "IPv4 COMPARE_SWAP",
	  "020000000002020000000001080045000048000840004011b699c0000201c0000202c12312b7003400001340ffff"
	  "000000128000000800000000000100080000015511111111222222223333333344444444c2884b8d" },
	{ "ConnectX-4 CNP",
	  "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff"
	  "40000118000000000000000000000000000000000000000082fd002a" },
};

static size_t unhex(uint8_t *out, const char *hex)
{
	size_t n = 0;
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		out[n++] = byte;
	return n;
}

/* how many of the packets are not what they say: ICRC, IPv4 checksum, length */
static unsigned int wrong_captured(const char *name, const struct captured *c, size_t n)
{
	unsigned int wrong = 0;
	struct packet p;
	size_t i;

	for (i = 0; i < n; i++) {
		p = packet_captured(&c[i]);
		if (packet_icrc_ok(&p) && wire_ip_sum(p.bytes, IP4_LEN) == 0xffff && get16(p.bytes + 2) == p.len)
			continue;
		printf("WRONG %s %zu\n", name, i);
		wrong++;
	}
	printf("%zu packets of %s\n", n, name);
	return wrong;
}

#define WRONG_CAPTURED(x) wrong_captured(#x, x, sizeof(x) / sizeof(x[0]))

int main(void)
{
	uint8_t frame[256], icrc[4];
	size_t i, len;
	int bad = 0;

	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		len = unhex(frame, vectors[i].hex);
		wire_icrc(frame + ETH_LEN, len - ETH_LEN - ICRC_LEN, icrc);
		if (memcmp(icrc, frame + len - ICRC_LEN, ICRC_LEN)) {
			printf("WRONG %s: %02x%02x%02x%02x\n", vectors[i].name, icrc[0], icrc[1],
			       icrc[2], icrc[3]);
			bad = 1;
		}
	}
	printf("%zu vectors\n", i);
	if (WRONG_CAPTURED(huawei) + WRONG_CAPTURED(connectx) + WRONG_CAPTURED(connectx4) + WRONG_CAPTURED(notification))
		bad = 1;
	return bad;
}
