// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RoCE v2 packets as bytes (wire.h): what is known of each opcode, headers, checksums and whole frames. For
 * wire_vectors, which checks the driver's vectors with it, icrc_check, which looks at what was captured, replay_frames,
 * and those that make packets of their own: badpackets, forge and badcm.
 */
#include <string.h>

#include "wire.h"

/* --- opcodes --------------------------------------------------------------- */

static const uint32_t rc_opcodes[32] = {
	[0x00] = M_SEND | M_FIRST,
	[0x01] = M_SEND | M_MIDDLE,
	[0x02] = M_SEND | M_LAST,
	[0x03] = M_SEND | M_LAST | H_IMM,
	[0x04] = M_SEND | M_ONLY,
	[0x05] = M_SEND | M_ONLY | H_IMM,
	[0x06] = M_WRITE | M_FIRST | H_RETH,
	[0x07] = M_WRITE | M_MIDDLE,
	[0x08] = M_WRITE | M_LAST,
	[0x09] = M_WRITE | M_LAST | H_IMM,
	[0x0a] = M_WRITE | M_ONLY | H_RETH,
	[0x0b] = M_WRITE | M_ONLY | H_RETH | H_IMM,
	[0x0c] = M_READ | M_ONLY | H_RETH | M_NO_PAYLOAD,
	[0x0d] = M_READ_RESPONSE | M_RESPONSE | M_FIRST | H_AETH,
	[0x0e] = M_READ_RESPONSE | M_RESPONSE | M_MIDDLE,
	[0x0f] = M_READ_RESPONSE | M_RESPONSE | M_LAST | H_AETH,
	[0x10] = M_READ_RESPONSE | M_RESPONSE | M_ONLY | H_AETH,
	[0x11] = M_RESPONSE | M_ONLY | H_AETH | M_NO_PAYLOAD,
	[0x12] = M_RESPONSE | M_ONLY | H_AETH | H_ATOMICACK | M_NO_PAYLOAD,
	[0x13] = M_ONLY | H_ATOMIC | M_NO_PAYLOAD,
	[0x14] = M_ONLY | H_ATOMIC | M_NO_PAYLOAD,
	[0x16] = M_SEND | M_LAST | H_IETH,
	[0x17] = M_SEND | M_ONLY | H_IETH,
};

uint32_t wire_opcode(uint8_t opcode)
{
	if (opcode < 32)
		return rc_opcodes[opcode] ? rc_opcodes[opcode] | M_KNOWN : 0;
	if (opcode == 0x64)
		return M_SEND | M_ONLY | H_DETH | M_KNOWN;
	if (opcode == 0x65)
		return M_SEND | M_ONLY | H_DETH | H_IMM | M_KNOWN;
	if (opcode == 0x81)
		return M_ONLY | H_CNP | M_NO_PAYLOAD | M_KNOWN;
	return 0;
}

uint32_t wire_ext_len(uint32_t flags)
{
	return (flags & H_DETH ? 8 : 0) + (flags & H_RETH ? 16 : 0) + (flags & H_AETH ? 4 : 0) +
	       (flags & H_ATOMIC ? 28 : 0) + (flags & H_ATOMICACK ? 8 : 0) +
	       (flags & H_IMM ? 4 : 0) + (flags & H_IETH ? 4 : 0) + (flags & H_CNP ? 16 : 0);
}

/* --- base transport header -------------------------------------------------- */

void bth_put(uint8_t *p, const struct bth *b)
{
	p[0] = b->opcode;
	p[1] = b->solicited << 7 | b->migreq << 6 | (b->pad & 3) << 4 | (b->tver & 15);
	put16(p + 2, b->pkey);
	p[4] = b->resv;
	put24(p + 5, b->qpn);
	p[8] = b->ackreq << 7;
	put24(p + 9, b->psn);
}

struct bth bth_get(const uint8_t *p)
{
	struct bth b = {
		.opcode = p[0],
		.solicited = p[1] >> 7,
		.migreq = p[1] >> 6 & 1,
		.pad = p[1] >> 4 & 3,
		.tver = p[1] & 15,
		.pkey = get16(p + 2),
		.resv = p[4] | (p[8] & 0x7f),
		.qpn = get24(p + 5),
		.ackreq = p[8] >> 7,
		.psn = get24(p + 9),
	};

	return b;
}

/* --- checksums ------------------------------------------------------------------ */

/* one step of the state: no initial or final complement */
uint32_t wire_crc32(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[256];
	const uint8_t *p = data;
	uint32_t i, k, c;

	if (!table[1])
		for (i = 0; i < 256; i++) {
			for (c = i, k = 0; k < 8; k++)
				c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
			table[i] = c;
		}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

void wire_icrc(const uint8_t *l3, size_t len, uint8_t icrc[4])
{
	uint8_t head[40 + UDP_LEN + BTH_LEN];
	bool v6 = l3[0] >> 4 == 6, v1 = v6 && l3[6] == GRH_NEXT_HDR;
	size_t udp = v6 ? 40 : 20, bth = udp + (v1 ? 0 : UDP_LEN), headers = bth + BTH_LEN;
	uint32_t crc = 0xffffffff;

	memset(icrc, 0xff, 4);
	crc = wire_crc32(crc, icrc, 4);
	crc = wire_crc32(crc, icrc, 4);
	memcpy(head, l3, headers);
	if (v6) {
		head[0] |= 0x0f;
		head[1] = head[2] = head[3] = 0xff;
		head[7] = 0xff;
	} else {
		head[1] = head[8] = head[10] = head[11] = 0xff;
	}
	if (!v1)
		head[udp + 6] = head[udp + 7] = 0xff;
	head[bth + 4] = 0xff;
	crc = wire_crc32(crc, head, headers);
	crc = ~wire_crc32(crc, l3 + headers, len - headers);
	icrc[0] = crc;
	icrc[1] = crc >> 8;
	icrc[2] = crc >> 16;
	icrc[3] = crc >> 24;
}

/* the ones' complement sum: 0xffff over a header with a correct checksum */
uint16_t wire_ip_sum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (; len > 1; p += 2, len -= 2)
		sum += get16(p);
	if (len)
		sum += *p << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* --- frames ----------------------------------------------------------------------- */

static size_t put_ip(uint8_t *p, const struct wire_path *path, size_t udp_len)
{
	if (path->v6) {
		memset(p, 0, 40);
		p[0] = 0x60;
		put16(p + 4, udp_len);
		p[6] = IPPROTO_UDP;
		p[7] = 64;
		memcpy(p + 8, path->saddr, 16);
		memcpy(p + 24, path->daddr, 16);
		return 40;
	}
	memset(p, 0, 20);
	p[0] = 0x45;
	put16(p + 2, 20 + udp_len);
	put16(p + 4, path->ip_id);
	p[6] = 0x40;
	p[8] = 64;
	p[9] = IPPROTO_UDP;
	memcpy(p + 12, path->saddr, 4);
	memcpy(p + 16, path->daddr, 4);
	put16(p + 10, ~wire_ip_sum(p, 20));
	return 20;
}

size_t wire_frame(uint8_t *frame, const struct wire_path *path, const void *roce, size_t len)
{
	uint8_t *l3 = frame + ETH_LEN, *p = l3;

	memcpy(frame, path->dmac, 6);
	memcpy(frame + 6, path->smac, 6);
	put16(frame + 12, path->v6 ? 0x86dd : 0x0800);
	p += put_ip(p, path, UDP_LEN + len + ICRC_LEN);
	put16(p, path->sport);
	put16(p + 2, ROCE_PORT);
	put16(p + 4, UDP_LEN + len + ICRC_LEN);
	put16(p + 6, 0);
	p += UDP_LEN;
	memcpy(p, roce, len);
	p += len;
	/* without a whole BTH there is no ICRC either */
	if (len >= BTH_LEN)
		wire_icrc(l3, p - l3, p);
	else
		memset(p, 0, ICRC_LEN);
	return p + ICRC_LEN - frame;
}

size_t wire_train_add(struct wire_train *train, const struct wire_path *path, const void *roce, size_t len)
{
	const size_t headers = ETH_LEN + 20 + UDP_LEN, size = len + ICRC_LEN, before = headers + train->packets * size;
	uint8_t one[sizeof(train->frame)], *l3 = train->frame + ETH_LEN, *udp = l3 + 20;
	size_t all = before + size;

	if (all > sizeof(train->frame))
		return 0;
	wire_frame(one, path, roce, len);
	if (!train->packets++)
		memcpy(train->frame, one, headers);
	memcpy(train->frame + before, one + headers, size);
	train->v = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.gso_size = size,
		.hdr_len = headers,
		.csum_start = udp - train->frame,
		.csum_offset = 6,
	};
	put16(l3 + 2, all - ETH_LEN);
	put16(udp + 4, all - ETH_LEN - 20);
	put16(l3 + 10, 0);
	put16(l3 + 10, ~wire_ip_sum(l3, 20));
	return sizeof(train->v) + all;
}

bool wire_fix_up(uint8_t *frame, size_t len)
{
	uint8_t *l3 = frame + ETH_LEN;
	bool v6 = l3[0] >> 4 == 6;

	if (len < ETH_LEN + (v6 ? 40 : 20) + UDP_LEN + BTH_LEN + ICRC_LEN)
		return false;
	if (!v6) {
		put16(l3 + 10, 0);
		put16(l3 + 10, ~wire_ip_sum(l3, 20));
	}
	wire_icrc(l3, len - ETH_LEN - ICRC_LEN, frame + len - ICRC_LEN);
	return true;
}
