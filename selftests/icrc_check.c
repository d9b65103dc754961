// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * icrc_check: an independent receiver. Looks at every RoCE packet that arrives on
 * a netdev: lengths, checksums, ICRC, header bits, pad bytes, sequence of opcodes
 * and of packet sequence numbers. A packet that stands for several (GSO) is split
 * as a network card would do it.
 *
 *	icrc_check -i NETDEV -t SECONDS [-M PATH_MTU] [-g] [-m] [-1] [-C TCLASS] [-V VLAN] [-P PCP]
 *
 * Stops after SECONDS, or at SIGTERM. -g: refuse GSO packets (the sender must have
 * split them). -m: do not insist on MigReq (rdma_rxe never sets it). -1: all packets must
 * be of RoCE v1, and each be for this netdev's MAC address or a group's. -C, -V, -P:
 * every packet must have this traffic class, VLAN tag, and priority in the tag.
 *
 * In the last line, gaps: how often the IPv4 identification of a connection did not go on
 * with the next one; ports: UDP source ports of datagrams to other queue pairs than QP 1.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vt.h"
#include "wire.h"


static bool refuse_gso, ignore_migreq, only_v1;
static uint32_t path_mtu;
/* -1: any */
static int want_tclass = -1, want_vlan = -1, want_pcp = -1;
static volatile sig_atomic_t stop;

static unsigned long v1_packets;
static unsigned long packets, bytes, trains, longest, resent, errors, requests, responses, gaps, ports;

static void wrong(const struct bth *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void wrong(const struct bth *b, const char *fmt, ...)
{
	va_list ap;

	if (++errors > 10)
		return;
	printf("WRONG packet %lu", packets);
	if (b)
		printf(" (opcode %02x qp %06x psn %06x)", b->opcode, b->qpn, b->psn);
	printf(": ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* --- flows: what comes next from one sender to one queue pair -------------------- */

struct flow {
	uint8_t saddr[16], daddr[16];
	uint32_t qpn;
	bool response, used;
	/* the next PSN, once one was seen, and the one after all that were sent */
	bool known;
	uint32_t psn, fresh;
	/* inside a message: M_SEND, M_WRITE or M_READ_RESPONSE */
	uint32_t open;
	/* UDP source port, and the next IPv4 identification; 0 and -1 before the first packet */
	uint16_t sport;
	int32_t id;
};

static struct flow *find_flow(const uint8_t *saddr, const uint8_t *daddr, uint32_t qpn, bool response)
{
	static struct flow flows[4096];
	uint64_t h = vt_mix(qpn * 2 + response + saddr[3] * 0x10000ull + saddr[15]);
	struct flow *f;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(flows); i++) {
		f = &flows[(h + i) % ARRAY_SIZE(flows)];
		if (!f->used)
			break;
		if (f->qpn == qpn && f->response == response && !memcmp(f->saddr, saddr, 16) &&
		    !memcmp(f->daddr, daddr, 16))
			return f;
	}
	memcpy(f->saddr, saddr, 16);
	memcpy(f->daddr, daddr, 16);
	f->qpn = qpn;
	f->response = response;
	f->used = true;
	f->id = -1;
	return f;
}

/* FIRST and ONLY begin a message, MIDDLE and LAST go on with it; @judge: it is known what came before */
static void check_order(struct flow *f, const struct bth *b, uint32_t flags, bool judge)
{
	uint32_t kind = flags & (M_SEND | M_WRITE | M_READ_RESPONSE);

	if (judge && flags & (M_FIRST | M_ONLY) && f->open)
		wrong(b, "a new message inside another");
	if (judge && flags & (M_MIDDLE | M_LAST) && f->open != kind)
		wrong(b, "middle or end of a message that is not open");
	f->open = flags & (M_FIRST | M_MIDDLE) ? kind : 0;
}

static void check_request(struct flow *f, const struct bth *b, uint32_t flags, const uint8_t *ext)
{
	uint32_t n = 1;
	int32_t ahead;

	requests++;
	if (flags & M_READ && path_mtu)
		n = max(1u, (get32(ext + 12) + path_mtu - 1) / path_mtu);
	ahead = f->known ? psn_diff(b->psn, f->psn) : 0;
	/* What is sent again begins anywhere in a message, and leaves out what an ACK has come for meanwhile */
	resent += ahead < 0;
	if (ahead > 0 && psn_diff(b->psn, f->fresh) > 0)
		wrong(b, "psn %d ahead of the last request's", ahead);
	check_order(f, b, flags, f->known && (!ahead || psn_diff(b->psn, f->fresh) > 0));
	f->psn = (b->psn + n) & 0xffffff;
	if (!f->known || psn_diff(f->psn, f->fresh) > 0)
		f->fresh = f->psn;
	f->known = !(flags & M_READ) || path_mtu;
}

static void check_response(struct flow *f, const struct bth *b, uint32_t flags)
{
	int32_t ahead = f->known ? psn_diff(b->psn, f->psn) : 0;

	responses++;
	if (flags & (M_MIDDLE | M_LAST) && f->known && !resent && ahead)
		wrong(b, "READ response %d away from the one before", ahead);
	check_order(f, b, flags, f->known && !resent);
	f->known = true;
	f->psn = (b->psn + 1) & 0xffffff;
}

/* requests and responses of a queue pair share its identifications */
static void check_id(struct flow *f, uint16_t id)
{
	gaps += f->id >= 0 && f->id != id;
	f->id = (id + 1) & 0xffff;
}

/* What goes from one queue pair to another stays in order only if it has one port. QP 1 talks for many. */
static void check_datagram(const uint8_t *saddr, const uint8_t *daddr, const struct bth *b, uint32_t from, uint16_t sport)
{
	static bool seen[65536];
	struct flow *f;

	if (b->qpn == 1)
		return;
	f = find_flow(saddr, daddr, vt_mix((uint64_t)b->qpn << 32 | from), true);
	if (f->sport && f->sport != sport)
		wrong(b, "UDP source port %u, before %u", sport, f->sport);
	f->sport = sport;
	ports += !seen[sport];
	seen[sport] = true;
}

/* --- one packet ------------------------------------------------------------------- */

static void check_lengths(const struct bth *b, uint32_t flags, size_t payload)
{
	if (payload < b->pad || (payload & 3)) {
		wrong(b, "payload of %zu bytes with pad %u", payload, b->pad);
		return;
	}
	payload -= b->pad;
	if (flags & M_NO_PAYLOAD ? payload : payload > 4096)
		wrong(b, "%zu bytes of payload", payload);
	if (b->opcode >= 0x60)
		return;
	if (flags & (M_FIRST | M_MIDDLE) && path_mtu && payload != path_mtu)
		wrong(b, "%zu bytes instead of a path MTU", payload);
	if (flags & (M_FIRST | M_MIDDLE) && (payload < 256 || payload & (payload - 1)))
		wrong(b, "%zu bytes are no path MTU", payload);
	if (flags & M_LAST && !payload)
		wrong(b, "an empty last packet");
	if (flags & (M_LAST | M_ONLY) && path_mtu && payload > path_mtu)
		wrong(b, "%zu bytes in a last or only packet", payload);
}

/* A notification of congestion has no place in the order, a BTH of its own, and 16 bytes for nothing */
static void check_notification(const struct bth *b, const uint8_t *roce, size_t len)
{
	size_t i;

	if (b->tver || b->resv != 0x40 || b->pkey != 0xffff || b->migreq || b->solicited || b->ackreq || b->psn)
		wrong(b, "a notification with tver %u, reserved bits %02x, pkey %04x, or a flag", b->tver, b->resv, b->pkey);
	if (len != BTH_LEN + 16 || b->pad)
		wrong(b, "a notification of %zu bytes", len);
	for (i = BTH_LEN; i < len; i++)
		if (roce[i])
			wrong(b, "byte %02x in a notification", roce[i]);
}

/* @roce: from the BTH to before the ICRC; @id: the identification, -1 for none */
static void check_roce(const uint8_t *saddr, const uint8_t *daddr, uint16_t sport, int32_t id, const uint8_t *roce,
		       size_t len)
{
	struct bth b = bth_get(roce);
	uint32_t flags = wire_opcode(b.opcode);
	uint32_t ext = wire_ext_len(flags);
	uint32_t i;

	if (!flags) {
		wrong(&b, "unknown opcode");
		return;
	}
	if (b.opcode == 0x81) {
		check_notification(&b, roce, len);
		return;
	}
	if (b.tver || b.resv || b.pkey != 0xffff)
		wrong(&b, "tver %u, reserved bits %02x, pkey %04x", b.tver, b.resv, b.pkey);
	if (!b.migreq && !ignore_migreq)
		wrong(&b, "MigReq is not set");
	if (len < BTH_LEN + ext) {
		wrong(&b, "%zu bytes are too short for its headers", len);
		return;
	}
	check_lengths(&b, flags, len - BTH_LEN - ext);
	for (i = 1; i <= b.pad; i++)
		if (roce[len - i])
			wrong(&b, "pad byte %02x", roce[len - i]);
	if (flags & H_DETH)
		check_datagram(saddr, daddr, &b, get32(roce + BTH_LEN + 4), sport);
	if (b.opcode >= 0x60)
		return;
	if (id >= 0)
		check_id(find_flow(saddr, daddr, b.qpn, false), id);
	if (flags & M_RESPONSE)
		check_response(find_flow(saddr, daddr, b.qpn, true), &b, flags);
	else
		check_request(find_flow(saddr, daddr, b.qpn, false), &b, flags, roce + BTH_LEN);
}

/* an IP packet of @len bytes, headers as they are on the wire; @no_sum: the card would fill in the UDP checksum */
static void check_packet(const uint8_t *l3, size_t len, bool no_sum)
{
	bool v6 = l3[0] >> 4 == 6;
	size_t ip = v6 ? 40 : 20, total = v6 ? 40u + get16(l3 + 4) : get16(l3 + 2);
	const uint8_t *udp = l3 + ip;
	uint8_t icrc[4], saddr[16] = {}, daddr[16] = {};

	packets++;
	bytes += len;
	if (want_tclass >= 0 && (v6 ? get16(l3) >> 4 & 0xff : l3[1]) != want_tclass)
		wrong(NULL, "traffic class %02x", v6 ? get16(l3) >> 4 & 0xff : l3[1]);
	if (total > len || total < ip + UDP_LEN + BTH_LEN + ICRC_LEN) {
		wrong(NULL, "IP length %zu in a packet of %zu", total, len);
		return;
	}
	if (!v6 && (wire_ip_sum(l3, 20) != 0xffff || !(l3[6] & 0x40)))
		wrong(NULL, "IPv4 checksum or DF bit");
	if (get16(udp + 4) != total - ip)
		wrong(NULL, "UDP length %u in %zu bytes", get16(udp + 4), total - ip);
	if (get16(udp) < 0xc000)
		wrong(NULL, "UDP source port %u", get16(udp));
	if (get16(udp + 6) && !no_sum) {
		/* the pseudo header */
		uint32_t sum = wire_ip_sum(l3 + (v6 ? 8 : 12), v6 ? 32 : 8) + IPPROTO_UDP + (total - ip) +
			       wire_ip_sum(udp, total - ip);

		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		if (sum != 0xffff)
			wrong(NULL, "UDP checksum %04x", get16(udp + 6));
	}
	wire_icrc(l3, total - ICRC_LEN, icrc);
	if (memcmp(icrc, l3 + total - ICRC_LEN, ICRC_LEN)) {
		struct bth b = bth_get(udp + UDP_LEN);

		wrong(&b, "ICRC %08x, not %08x, IP length %zu, id %u", get32(l3 + total - 4),
		      get32(icrc), total, v6 ? 0 : get16(l3 + 4));
	}
	memcpy(saddr, l3 + (v6 ? 8 : 12), v6 ? 16 : 4);
	memcpy(daddr, l3 + (v6 ? 24 : 16), v6 ? 16 : 4);
	check_roce(saddr, daddr, get16(udp), v6 ? -1 : get16(l3 + 4), udp + UDP_LEN,
		   total - ip - UDP_LEN - ICRC_LEN);
}

/* a GRH and what follows it; nothing fills in anything */
static void check_v1(const uint8_t *grh, size_t len)
{
	size_t total = 40 + get16(grh + 4);
	uint8_t icrc[4];

	packets++;
	v1_packets++;
	bytes += len;
	if (want_tclass >= 0 && (get16(grh) >> 4 & 0xff) != want_tclass)
		wrong(NULL, "traffic class %02x", get16(grh) >> 4 & 0xff);
	if (grh[0] >> 4 != 6 || grh[6] != GRH_NEXT_HDR || !grh[7])
		wrong(NULL, "GRH version %u, next header %02x, hop limit %u", grh[0] >> 4, grh[6], grh[7]);
	/* none is so short that it would be filled up */
	if (total != len || total < 40 + BTH_LEN + ICRC_LEN) {
		wrong(NULL, "GRH length %zu in a packet of %zu", total, len);
		return;
	}
	wire_icrc(grh, total - ICRC_LEN, icrc);
	if (memcmp(icrc, grh + total - ICRC_LEN, ICRC_LEN)) {
		struct bth b = bth_get(grh + 40);

		wrong(&b, "ICRC %08x, not %08x", get32(grh + total - 4), get32(icrc));
	}
	check_roce(grh + 8, grh + 24, 0xc000, -1, grh + 40, total - 40 - ICRC_LEN);
}

/* split a train as UDP segmentation does: lengths of each packet, ids counting up */
static void check_train(const uint8_t *l3, size_t len, size_t size)
{
	bool v6 = l3[0] >> 4 == 6;
	size_t head = (v6 ? 40 : 20) + UDP_LEN, at, n;
	static uint8_t packet[65536];
	unsigned long count = 0;

	trains++;
	if (refuse_gso)
		wrong(NULL, "a train of %zu bytes on a device that takes none", len);
	for (at = head; at < len; at += n, count++) {
		n = min(size, len - at);
		memcpy(packet, l3, head);
		memcpy(packet + head, l3 + at, n);
		put16(packet + head - 4, UDP_LEN + n);
		if (v6) {
			put16(packet + 4, UDP_LEN + n);
		} else {
			put16(packet + 2, head + n);
			put16(packet + 4, get16(l3 + 4) + count);
			put16(packet + 10, 0);
			put16(packet + 10, ~wire_ip_sum(packet, 20));
		}
		check_packet(packet, head + n, true);
	}
	longest = max(longest, count);
}

static bool is_v1(const uint8_t *frame, size_t len)
{
	return len >= ETH_LEN + 40 && get16(frame + 12) == ETH_P_ROCE_V1;
}

static bool is_roce(const uint8_t *frame, size_t len)
{
	const uint8_t *l3 = frame + ETH_LEN;

	if (len < ETH_LEN + 20 + UDP_LEN)
		return false;
	if (get16(frame + 12) == ETH_P_IP)
		return l3[0] == 0x45 && l3[9] == IPPROTO_UDP && get16(l3 + 22) == ROCE_PORT;
	return get16(frame + 12) == ETH_P_IPV6 && len >= ETH_LEN + 48 && l3[6] == IPPROTO_UDP &&
	       get16(l3 + 42) == ROCE_PORT;
}

/* --- capture ---------------------------------------------------------------------- */

static void on_signal(int sig)
{
	stop = 1;
}

static int open_capture(const char *netdev)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), one = 1, space = 256 << 20;
	struct timeval tv = { .tv_usec = 100000 };

	addr.sll_ifindex = if_nametoindex(netdev);
	if (fd < 0 || !addr.sll_ifindex)
		vt_die(VT_SETUP, "%s: %s", netdev, strerror(errno));
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &space, sizeof(space)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		vt_die(VT_SETUP, "capture on %s: %s", netdev, strerror(errno));
	return fd;
}

/* the kernel has taken the tag off, and tells what it was */
static void check_tag(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct tpacket_auxdata aux = {};
	int vlan = 0, pcp = 0;

	if (c && c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	if (aux.tp_status & TP_STATUS_VLAN_VALID) {
		vlan = aux.tp_vlan_tci & 0xfff;
		pcp = aux.tp_vlan_tci >> 13;
	}
	if ((want_vlan >= 0 && vlan != want_vlan) || (want_pcp >= 0 && pcp != want_pcp))
		wrong(NULL, "VLAN %d priority %d", vlan, pcp);
}

static void capture_one(int fd)
{
	static uint8_t buf[sizeof(struct virtio_net_hdr) + 262144];
	struct virtio_net_hdr *vnet = (void *)buf;
	char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct sockaddr_ll from;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	const uint8_t *frame = buf + sizeof(*vnet);
	ssize_t len;

	len = recvmsg(fd, &msg, 0);
	len -= sizeof(*vnet);
	if (len < 0 || from.sll_pkttype == PACKET_OUTGOING || (!is_roce(frame, len) && !is_v1(frame, len)))
		return;
	check_tag(&msg);
	if (is_v1(frame, len)) {
		if (from.sll_pkttype != PACKET_HOST && from.sll_pkttype != PACKET_MULTICAST)
			wrong(NULL, "a frame of type %u, for somebody else", from.sll_pkttype);
		if (vnet->gso_type != VIRTIO_NET_HDR_GSO_NONE || vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
			wrong(NULL, "RoCE v1 with GSO type %u, flags %x", vnet->gso_type, vnet->flags);
		check_v1(frame + ETH_LEN, len - ETH_LEN);
		return;
	}
	if (only_v1)
		wrong(NULL, "a packet of RoCE v2");
	if (vnet->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		check_packet(frame + ETH_LEN, len - ETH_LEN, vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM);
	else if ((vnet->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == VIRTIO_NET_HDR_GSO_UDP_L4)
		check_train(frame + ETH_LEN, len - ETH_LEN, vnet->gso_size);
	else
		wrong(NULL, "GSO type %u", vnet->gso_type);
}

int main(int argc, char **argv)
{
	struct tpacket_stats stats = {};
	socklen_t len = sizeof(stats);
	const char *netdev = NULL;
	double seconds = 10, end;
	int c, fd;

	while ((c = getopt(argc, argv, "i:t:M:gm1C:V:P:")) != -1) {
		switch (c) {
		case 'i': netdev = optarg; break;
		case 't': seconds = atof(optarg); break;
		case 'M': path_mtu = atoi(optarg); break;
		case 'g': refuse_gso = true; break;
		case 'm': ignore_migreq = true; break;
		case '1': only_v1 = true; break;
		case 'C': want_tclass = strtol(optarg, NULL, 0); break;
		case 'V': want_vlan = atoi(optarg); break;
		case 'P': want_pcp = atoi(optarg); break;
		default: vt_die(VT_SETUP, "see the top of icrc_check.c");
		}
	}
	fd = open_capture(netdev);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	printf("capturing on %s\n", netdev);
	fflush(stdout);
	for (end = vt_now() + seconds; !stop && vt_now() < end;)
		capture_one(fd);
	/* what is still in the socket's buffer */
	for (c = 0; c < 1000000 && recv(fd, &(char){ 0 }, 1, MSG_PEEK | MSG_DONTWAIT) > 0; c++)
		capture_one(fd);
	getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len);
	printf("packets=%lu bytes=%lu trains=%lu longest=%lu requests=%lu responses=%lu resent=%lu gaps=%lu ports=%lu v1=%lu missed=%u errors=%lu\n",
	       packets, bytes, trains, longest, requests, responses, resent, gaps, ports, v1_packets, stats.tp_drops, errors);
	if (errors)
		return VT_WRONG;
	if (stats.tp_drops)
		vt_die(VT_STALLED, "the capture missed %u packets", stats.tp_drops);
	return packets ? VT_OK : VT_SETUP;
}
