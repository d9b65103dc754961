/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * wire: RoCE packets as bytes, written from the protocol and not from the
 * driver, so that the two check each other.
 */
#ifndef WIRE_H
#define WIRE_H

#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_PORT 4791
#define ETH_LEN 14
#define UDP_LEN 8
#define BTH_LEN 12
#define ICRC_LEN 4
/* RoCE v1: EtherType, and what the GRH says that comes behind it */
#define ETH_P_ROCE_V1 0x8915
#define GRH_NEXT_HDR 0x1b

/* what an opcode brings with it */
enum {
	H_DETH = 1 << 0, /* 8 bytes */
	H_RETH = 1 << 1, /* 16 */
	H_AETH = 1 << 2, /* 4 */
	H_ATOMIC = 1 << 3, /* 28 */
	H_ATOMICACK = 1 << 4, /* 8 */
	H_IMM = 1 << 5, /* 4 */
	H_IETH = 1 << 6, /* 4 */
	H_CNP = 1 << 7, /* 16 reserved bytes */
	/* its place in a message */
	M_FIRST = 1 << 8,
	M_MIDDLE = 1 << 9,
	M_LAST = 1 << 10,
	M_ONLY = 1 << 11,
	M_ANY = M_FIRST | M_MIDDLE | M_LAST | M_ONLY,
	M_RESPONSE = 1 << 12,
	M_NO_PAYLOAD = 1 << 13,
	M_SEND = 1 << 14,
	M_WRITE = 1 << 15,
	M_READ_RESPONSE = 1 << 16,
	M_READ = 1 << 17,
	M_KNOWN = 1 << 18,
};

/* of RC and UD and of the CNP; 0 for all others */
uint32_t wire_opcode(uint8_t opcode);
/* bytes of all headers after the BTH */
uint32_t wire_ext_len(uint32_t opcode_flags);

struct bth {
	uint8_t opcode;
	bool solicited, migreq;
	uint8_t pad, tver;
	uint16_t pkey;
	uint8_t resv;
	uint32_t qpn;
	bool ackreq;
	uint32_t psn;
};

void bth_put(uint8_t *p, const struct bth *b);
struct bth bth_get(const uint8_t *p);

uint32_t wire_crc32(uint32_t crc, const void *data, size_t len);

/* the ICRC, as its four bytes on the wire, of the packet at @l3 that is @len bytes long without it */
void wire_icrc(const uint8_t *l3, size_t len, uint8_t icrc[4]);

uint16_t wire_ip_sum(const uint8_t *p, size_t len);

/* two ends of a path */
struct wire_path {
	uint8_t smac[6], dmac[6];
	bool v6;
	/* IPv4 in the first four bytes */
	uint8_t saddr[16], daddr[16];
	uint16_t sport;
	uint16_t ip_id;
};

/*
 * A whole frame around @roce (BTH..pad, @len bytes): Ethernet, IP, UDP, and
 * the ICRC behind it. The length of the frame.
 */
size_t wire_frame(uint8_t *frame, const struct wire_path *path, const void *roce, size_t len);

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/*
 * Packets of one length in one buffer that has one header (IPv4), as a packet socket with PACKET_VNET_HDR takes it: the bytes
 * from @v on. All zero at first.
 */
struct wire_train {
	struct virtio_net_hdr v;
	uint8_t frame[ETH_LEN + 20 + UDP_LEN + 8192];
	unsigned int packets;
};

/* One packet more around @roce (@len bytes), sent as @path says: the length of the buffer; 0 if there is no room for it */
size_t wire_train_add(struct wire_train *train, const struct wire_path *path, const void *roce, size_t len);

/* compute IP checksum and ICRC again after a frame was changed; false if it is too short for that */
bool wire_fix_up(uint8_t *frame, size_t len);

static inline uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static inline uint32_t get24(const uint8_t *p)
{
	return p[0] << 16 | p[1] << 8 | p[2];
}

static inline uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | get24(p + 1);
}

static inline void put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline void put24(uint8_t *p, uint32_t v)
{
	p[0] = v >> 16;
	put16(p + 1, v);
}

static inline void put32(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	put24(p + 1, v);
}

static inline void put64(uint8_t *p, uint64_t v)
{
	put32(p, v >> 32);
	put32(p + 4, v);
}

/* a - b in the arithmetic of 24-bit packet sequence numbers */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
