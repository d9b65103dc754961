// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * frames: frames of RoCE v1's type from somebody who has read the standard, but not to keep it.
 *
 *	frames -i NETDEV -m MAC -a GID -n NUMBER [-q QPN] [-s SEED]
 *
 * Sends NUMBER of them to MAC, a broadcast or a group: with GRHs and BTHs that are right but for a field, cut short,
 * filled up, coupled (as GSO frames, which nobody makes), or random. GID is the receiver's address, QPN a queue pair of
 * its host; ICRCs are right where there is room for one. Prints the seed, with which it does the same again.
 *
 *	frames -i NETDEV -m MAC -a GID -n NUMBER -q QPN -S GID [-c] [-g] [-2]
 *
 * Datagrams of 64 bytes instead, each of which "stray" would count, if it were not for what the options say: from the
 * address GID (-S) to the address GID (-a); -c: for the unreliable connection with queue pair QPN; -g: as GSO frames;
 * -2: of RoCE v2 over IPv6.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "vt.h"
#include "wire.h"


#define GRH_LEN 40
#define MOST 1400

static uint8_t mac[6];
static union ibv_gid gid, from;
static bool connected, coupled, v2;
static uint32_t qpn = 0x11;
static uint64_t rnd;

static uint32_t any(uint32_t below)
{
	rnd = rnd * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (rnd >> 33) % below : 0;
}

/* a frame that would be taken, of a datagram or a reliable connection; its length */
static size_t right(uint8_t *f, size_t payload)
{
	static const uint8_t opcodes[] = { 0x04, 0x0a, 0x0c, 0x11, 0x13, 0x24, 0x64, 0x65, 0x81, 0xa4 };
	struct bth b = {
		.opcode = opcodes[any(sizeof(opcodes))],
		.migreq = true,
		.pkey = 0xffff,
		.qpn = any(4) ? qpn : any(3),
		.psn = any(1 << 24),
	};
	uint8_t *grh = f + ETH_LEN;
	size_t i, len = BTH_LEN + 28 + (payload & ~3u) + ICRC_LEN;

	memcpy(f, mac, 6);
	memcpy(f + 6, (uint8_t[]){ 2, 0, 0, 0, 0x47, 0x11 }, 6);
	put16(f + 12, ETH_P_ROCE_V1);
	memset(grh, 0, GRH_LEN);
	grh[0] = 0x60;
	put16(grh + 4, len);
	grh[6] = GRH_NEXT_HDR;
	grh[7] = 64;
	memcpy(grh + 8, &gid, 16);
	grh[23] ^= any(256);
	memcpy(grh + 24, &gid, 16);
	bth_put(grh + GRH_LEN, &b);
	for (i = BTH_LEN; i < len; i++)
		grh[GRH_LEN + i] = any(256);
	return ETH_LEN + GRH_LEN + len;
}

static void seal(uint8_t *f, size_t len)
{
	uint8_t *grh = f + ETH_LEN;

	if (len >= ETH_LEN + GRH_LEN + BTH_LEN + ICRC_LEN)
		wire_icrc(grh, len - ETH_LEN - ICRC_LEN, f + len - ICRC_LEN);
}

/* something is wrong, before the ICRC is computed or after; the frame's length */
static size_t spoil(uint8_t *f, size_t len)
{
	uint8_t *grh = f + ETH_LEN;

	switch (any(10)) {
	case 0:
		grh[any(8)] = any(256);
		break;
	case 1:
		put16(grh + 4, any(65536));
		break;
	case 2:
		grh[24 + any(16)] ^= 1 << any(8);
		break;
	case 3:
		grh[GRH_LEN + any(BTH_LEN)] = any(256);
		break;
	case 4:
		memset(f, 0xff, 6);
		break;
	case 5:
		/* a group's address */
		f[0] = f[1] = 0x33;
		grh[24] = 0xff;
		break;
	case 6:
		return ETH_LEN + any(len - ETH_LEN);
	case 7:
		return len + any(64);
	case 8:
		len = ETH_LEN + any(MOST);
		for (size_t i = 12 + 2; i < len; i++)
			f[i] = any(256);
		return len;
	}
	seal(f, len);
	if (!any(4))
		f[ETH_LEN + any(len - ETH_LEN)] ^= 1 << any(8);
	return len;
}

/* BTH and what is behind it: a datagram, or a message of an unreliable connection */
static size_t message(uint8_t *p, uint32_t psn)
{
	const struct bth b = {
		.opcode = connected ? 0x24 : 0x64,
		.migreq = true,
		.pkey = 0xffff,
		.qpn = qpn,
		.psn = psn,
	};

	memset(p, 0, BTH_LEN + 8 + 64 + ICRC_LEN);
	bth_put(p, &b);
	if (connected)
		return BTH_LEN + 64;
	put32(p + BTH_LEN, VT_QKEY);
	put32(p + BTH_LEN + 4, 0x4711);
	return BTH_LEN + 8 + 64;
}

/* the frame of RoCE v2 around it */
static size_t exact_v2(uint8_t *f, uint32_t psn)
{
	struct wire_path path = { .smac = { 2, 0, 0, 0, 0x47, 0x11 }, .v6 = true, .sport = 0xc711 };
	uint8_t roce[BTH_LEN + 8 + 64 + ICRC_LEN];
	size_t len = message(roce, psn);

	memcpy(path.dmac, mac, 6);
	memcpy(path.saddr, &from, 16);
	memcpy(path.daddr, &gid, 16);
	return wire_frame(f, &path, roce, len);
}

/* that of RoCE v1 */
static size_t exact_v1(uint8_t *f, uint32_t psn)
{
	uint8_t *grh = f + ETH_LEN;
	size_t len = message(grh + GRH_LEN, psn);

	memset(f, 0, ETH_LEN + GRH_LEN);
	memcpy(f, mac, 6);
	memcpy(f + 6, (uint8_t[]){ 2, 0, 0, 0, 0x47, 0x11 }, 6);
	put16(f + 12, ETH_P_ROCE_V1);
	grh[0] = 0x60;
	grh[6] = GRH_NEXT_HDR;
	grh[7] = 64;
	memcpy(grh + 8, &from, 16);
	memcpy(grh + 24, &gid, 16);
	put16(grh + 4, len + ICRC_LEN);
	len += ETH_LEN + GRH_LEN + ICRC_LEN;
	seal(f, len);
	return len;
}

static int send_exact(int fd, uint8_t *buf, unsigned long n)
{
	struct virtio_net_hdr *vnet = (void *)buf;
	uint8_t *f = buf + sizeof(*vnet);
	unsigned long i, sent = 0;
	size_t len;

	for (i = 0; i < n; i++) {
		memset(vnet, 0, sizeof(*vnet));
		len = v2 ? exact_v2(f, i) : exact_v1(f, i);
		if (coupled) {
			vnet->gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
			vnet->gso_size = len - ETH_LEN - GRH_LEN - 4;
			vnet->hdr_len = ETH_LEN + GRH_LEN;
		}
		sent += write(fd, buf, sizeof(*vnet) + len) > 0;
	}
	printf("%lu of %lu datagrams sent\n", sent, n);
	return sent == n || coupled ? VT_OK : VT_WRONG;
}

static int open_packet(const char *netdev)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	addr.sll_ifindex = if_nametoindex(netdev);
	if (fd < 0 || !addr.sll_ifindex || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		vt_die(VT_SETUP, "%s: %s", netdev, strerror(errno));
	return fd;
}

int main(int argc, char **argv)
{
	static uint8_t buf[sizeof(struct virtio_net_hdr) + 2 * MOST];
	struct virtio_net_hdr *vnet = (void *)buf;
	uint8_t *f = buf + sizeof(*vnet);
	unsigned long i, n = 1000, sent = 0, seed = time(NULL);
	const char *netdev = NULL;
	bool source = false;
	size_t len;
	int c, fd;

	while ((c = getopt(argc, argv, "i:m:a:n:q:s:S:cg2")) != -1) {
		switch (c) {
		case 'i': netdev = optarg; break;
		case 'm':
			if (sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4,
				   mac + 5) != 6)
				vt_die(VT_SETUP, "not a MAC address: %s", optarg);
			break;
		case 'a': gid = vt_gid_of_ip(optarg); break;
		case 'n': n = strtoul(optarg, NULL, 0); break;
		case 'q': qpn = strtoul(optarg, NULL, 0); break;
		case 'S':
			from = vt_gid_of_ip(optarg);
			source = true;
			break;
		case 'c': connected = true; break;
		case 'g': coupled = true; break;
		case '2': v2 = true; break;
		case 's': seed = strtoul(optarg, NULL, 0); break;
		default: vt_die(VT_SETUP, "see the top of frames.c");
		}
	}
	rnd = seed;
	fd = open_packet(netdev);
	if (source)
		return send_exact(fd, buf, n);
	for (i = 0; i < n; i++) {
		memset(vnet, 0, sizeof(*vnet));
		len = right(f, any(MOST - 200));
		seal(f, len);
		if (any(4))
			len = spoil(f, len);
		/* as one frame that stands for several */
		if (!any(16)) {
			vnet->gso_type = any(2) ? VIRTIO_NET_HDR_GSO_UDP_L4 : VIRTIO_NET_HDR_GSO_TCPV6;
			vnet->gso_size = 1 + any(600);
			vnet->hdr_len = ETH_LEN + GRH_LEN;
		}
		/* the stack refuses some of them */
		sent += write(fd, buf, sizeof(*vnet) + len) > 0;
	}
	printf("seed %lu: %lu of %lu frames sent\n", seed, sent, n);
	return sent > n / 2 ? VT_OK : VT_WRONG;
}
