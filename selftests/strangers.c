// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * strangers: what somebody can send who knows no more than a host's addresses, and how long rdma_cm takes meanwhile.
 *
 *	strangers -i NETDEV -M MAC -D ADDRESS -s SOURCE -k get|unknown|req [-1] [-n COUNT] [-e] [-t SECONDS] [-w SECONDS]
 *
 * Sends COUNT MADs to queue pair 1: GETs of PerfMgt (ClassPortInfo), GETs of a class that nobody has, or CM's REQs for a
 * service that nobody offers. -1: in frames of RoCE v1, the addresses being IPv6 ones. -e: each from another address, SOURCE being the first of them. -t: then one more each 100 ms for
 * so long. -w: waits for as many answers, so long at most. Prints "sent" after the first COUNT, and at the end how
 * many answers have come.
 *
 *	strangers -i NETDEV -M MAC -D ADDRESS -s SOURCE -k pmtu -m MTU -P PEER
 *
 * Sends ICMP messages which say that packets from ADDRESS to PEER are too big for a link of that MTU.
 *
 *	strangers -l ADDRESS...                     takes rdma_cm's connections
 *	strangers -c [-n COUNT] [-w SECONDS] ADDRESS
 *
 * Makes connections, one after the other, and prints how long the slowest took; ends when one takes SECONDS.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vt.h"
#include "wire.h"

#define PORT "7480"
#define GRH_LEN 40
#define MAD_LEN 256
#define DETH_LEN 8
#define QP1_QKEY 0x80010000

enum { CLASS_PERF = 4, CLASS_CM = 7, CLASS_UNKNOWN = 0x2f };
enum { METHOD_GET = 1, METHOD_SEND = 3, METHOD_GET_RESP = 0x81 };
enum { ATTR_CLASS_PORT_INFO = 1, ATTR_REQ = 0x10, ATTR_REJ = 0x12 };

/* where a MAD, and a REQ, has what */
enum {
	AT_CLASS = 1, AT_CLASS_VERSION, AT_METHOD, AT_TID = 8, AT_ATTRIBUTE = 16, AT_LOCAL = 24, AT_SERVICE = 32,
	AT_GUID = 40, AT_QPN = 56,
};

/* of ours, so that answers are told from others */
#define TID 0x57a26e25

static struct wire_path path;
static bool v1;
static int fd;

/* --- MADs ---------------------------------------------------------------------------------- */

static void make_mad(uint8_t *mad, uint8_t class, uint32_t n)
{
	memset(mad, 0, MAD_LEN);
	mad[0] = 1;
	mad[AT_CLASS] = class;
	mad[AT_CLASS_VERSION] = class == CLASS_CM ? 2 : 1;
	mad[AT_METHOD] = class == CLASS_CM ? METHOD_SEND : METHOD_GET;
	put32(mad + AT_TID, TID);
	put32(mad + AT_TID + 4, n);
	put16(mad + AT_ATTRIBUTE, class == CLASS_CM ? ATTR_REQ : ATTR_CLASS_PORT_INFO);
	if (class != CLASS_CM)
		return;
	put32(mad + AT_LOCAL, 0x10000 + n);
	/* TCP port 9 of rdma_cm */
	put64(mad + AT_SERVICE, 0x01060009);
	put64(mad + AT_GUID, 0x5700000000000000 + n);
	put24(mad + AT_QPN, 0x1000 + n);
}

static void send_frame(const uint8_t *frame, size_t len)
{
	while (send(fd, frame, len, 0) < 0)
		if (errno != ENOBUFS && errno != EAGAIN)
			vt_die(VT_SETUP, "send: %s", strerror(errno));
		else
			usleep(1000);
}

/* a frame of RoCE v1 around @roce (@len bytes); its length */
static size_t v1_frame(uint8_t *frame, const struct wire_path *from, const void *roce, size_t len)
{
	uint8_t *grh = frame + ETH_LEN;

	memcpy(frame, from->dmac, 6);
	memcpy(frame + 6, from->smac, 6);
	put16(frame + 12, ETH_P_ROCE_V1);
	memset(grh, 0, GRH_LEN);
	grh[0] = 0x60;
	put16(grh + 4, len + ICRC_LEN);
	grh[6] = GRH_NEXT_HDR;
	grh[7] = 64;
	memcpy(grh + 8, from->saddr, 16);
	memcpy(grh + 24, from->daddr, 16);
	memcpy(grh + GRH_LEN, roce, len);
	wire_icrc(grh, GRH_LEN + len, grh + GRH_LEN + len);
	return ETH_LEN + GRH_LEN + len + ICRC_LEN;
}

/* the @n'th, with @each from the address that is so many behind the first */
static void send_mad(uint8_t class, uint32_t n, bool each)
{
	struct bth bth = { .opcode = 0x64, .migreq = true, .pkey = 0xffff, .qpn = 1, .psn = n };
	uint8_t roce[BTH_LEN + DETH_LEN + MAD_LEN], frame[ETH_LEN + 40 + UDP_LEN + sizeof(roce) + ICRC_LEN];
	struct wire_path from = path;
	uint8_t *last = from.saddr + (path.v6 ? 14 : 2);

	if (each)
		put16(last, get16(last) + n);
	bth_put(roce, &bth);
	put32(roce + BTH_LEN, QP1_QKEY);
	put32(roce + BTH_LEN + 4, 1);
	make_mad(roce + BTH_LEN + DETH_LEN, class, n);
	send_frame(frame, v1 ? v1_frame(frame, &from, roce, sizeof(roce)) :
			       wire_frame(frame, &from, roce, sizeof(roce)));
}

/* does a frame bring the answer to one of ours? */
static bool is_answer(const uint8_t *frame, ssize_t len, uint8_t class)
{
	size_t ip_len = path.v6 ? 40 : 20, addr_len = path.v6 ? 16 : 4, udp_len = v1 ? 0 : UDP_LEN;
	const uint8_t *ip = frame + ETH_LEN, *saddr = ip + (path.v6 ? 8 : 12), *udp = ip + ip_len;
	const uint8_t *mad = udp + udp_len + BTH_LEN + DETH_LEN;
	uint16_t type = v1 ? ETH_P_ROCE_V1 : path.v6 ? ETH_P_IPV6 : ETH_P_IP;

	if (len < (ssize_t)(ETH_LEN + ip_len + udp_len + BTH_LEN + DETH_LEN + MAD_LEN) || get16(frame + 12) != type ||
	    ip[path.v6 ? 6 : 9] != (v1 ? GRH_NEXT_HDR : IPPROTO_UDP) ||
	    memcmp(saddr, path.daddr, addr_len) || memcmp(saddr + addr_len, path.saddr, addr_len) ||
	    (!v1 && get16(udp + 2) != ROCE_PORT) || mad[AT_CLASS] != class || get32(mad + AT_TID) != TID)
		return false;
	if (class == CLASS_CM)
		return get16(mad + AT_ATTRIBUTE) == ATTR_REJ;
	return mad[AT_METHOD] == METHOD_GET_RESP;
}

static unsigned long count_answers(uint8_t class)
{
	unsigned long n = 0;
	uint8_t frame[2048];
	ssize_t len;

	while ((len = recv(fd, frame, sizeof(frame), MSG_DONTWAIT)) > 0)
		n += is_answer(frame, len, class);
	return n;
}

static void send_mads(uint8_t class, unsigned long count, bool each, double seconds, double patience)
{
	unsigned long i, answers = 0;
	double end;

	for (i = 0; i < count; i++) {
		send_mad(class, i, each);
		/* queue pair 1 has some hundred receives */
		if (i % 32 == 31)
			usleep(2000);
	}
	printf("sent\n");
	fflush(stdout);
	for (end = vt_now() + seconds; vt_now() < end; usleep(100000))
		send_mad(class, i++, each);
	for (end = vt_now() + patience;; usleep(1000)) {
		answers += count_answers(class);
		if (answers >= i || vt_now() >= end)
			break;
	}
	printf("%lu of %lu answered\n", answers, i);
}

/* --- ICMP ---------------------------------------------------------------------------------- */

/* an IPv4 header; its length */
static size_t put_ip4(uint8_t *p, const uint8_t *from, const uint8_t *to, uint8_t protocol, size_t len)
{
	memset(p, 0, 20);
	p[0] = 0x45;
	put16(p + 2, 20 + len);
	p[6] = 0x40;
	p[8] = 64;
	p[9] = protocol;
	memcpy(p + 12, from, 4);
	memcpy(p + 16, to, 4);
	put16(p + 10, ~wire_ip_sum(p, 20));
	return 20;
}

static size_t put_ip6(uint8_t *p, const uint8_t *from, const uint8_t *to, uint8_t protocol, size_t len)
{
	memset(p, 0, 40);
	p[0] = 0x60;
	put16(p + 4, len);
	p[6] = protocol;
	p[7] = 64;
	memcpy(p + 8, from, 16);
	memcpy(p + 24, to, 16);
	return 40;
}

/* of a message of ICMPv6 behind its header */
static uint16_t icmp6_sum(const uint8_t *ip, size_t len)
{
	uint8_t pseudo[40 + 128];

	memcpy(pseudo, ip + 8, 32);
	put32(pseudo + 32, len);
	put32(pseudo + 36, IPPROTO_ICMPV6);
	memcpy(pseudo + 40, ip + 40, len);
	return ~wire_ip_sum(pseudo, 40 + len);
}

/* what is quoted: the first eight bytes of an echo reply, or of a RoCE packet */
static void put_quote(uint8_t *p, uint8_t protocol, size_t len)
{
	memset(p, 0, 8);
	if (protocol == IPPROTO_ICMPV6)
		p[0] = 129;
	if (protocol != IPPROTO_UDP)
		return;
	put16(p, ROCE_PORT);
	put16(p + 2, ROCE_PORT);
	put16(p + 4, len);
}

/* "too big" about a packet of @protocol from path.daddr to @peer */
static void send_too_big(const uint8_t *peer, uint8_t protocol, uint32_t mtu)
{
	uint8_t frame[ETH_LEN + 40 + 8 + 40 + 8], *ip = frame + ETH_LEN, *icmp, *quote;
	/* of the packet that was too big */
	size_t big = 4096, len = 8 + (path.v6 ? 40 : 20) + 8;

	memcpy(frame, path.dmac, 6);
	memcpy(frame + 6, path.smac, 6);
	put16(frame + 12, path.v6 ? ETH_P_IPV6 : ETH_P_IP);
	if (path.v6)
		icmp = ip + put_ip6(ip, path.saddr, path.daddr, IPPROTO_ICMPV6, len);
	else
		icmp = ip + put_ip4(ip, path.saddr, path.daddr, IPPROTO_ICMP, len);
	memset(icmp, 0, 8);
	icmp[0] = path.v6 ? 2 : 3;
	icmp[1] = path.v6 ? 0 : 4;
	put32(icmp + 4, mtu);
	quote = icmp + 8;
	if (path.v6)
		quote += put_ip6(quote, path.daddr, peer, protocol, big);
	else
		quote += put_ip4(quote, path.daddr, peer, protocol, big);
	put_quote(quote, protocol, big);
	put16(icmp + 2, path.v6 ? icmp6_sum(ip, len) : (uint16_t)~wire_ip_sum(icmp, len));
	send_frame(frame, icmp + len - frame);
}

/* --- connections ----------------------------------------------------------------------------- */

static struct ibv_qp_init_attr qp_init = {
	.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
};
static struct rdma_conn_param conn_param = { .rnr_retry_count = 7, .retry_count = 7 };

static void requested(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = qp_init;

	if (rdma_create_qp(id, NULL, &init) || rdma_accept(id, &conn_param))
		vt_die(VT_WRONG, "accept: %s", strerror(errno));
}

static void ended(struct rdma_cm_id *id)
{
	/* one that listens has none, and ends with its device */
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static void listen_at(struct rdma_event_channel *channel, const char *ip)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE }, *res;
	struct rdma_cm_id *id;

	if (!channel || rdma_getaddrinfo(ip, PORT, &hints, &res) || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, res->ai_src_addr) || rdma_listen(id, 16))
		vt_die(VT_SETUP, "listen at %s: %s", ip, strerror(errno));
	rdma_freeaddrinfo(res);
}

static void serve(char **ips)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	enum rdma_cm_event_type what;
	struct rdma_cm_id *id;

	for (; *ips; ips++)
		listen_at(channel, *ips);
	printf("ready\n");
	fflush(stdout);
	while (!rdma_get_cm_event(channel, &event)) {
		what = event->event;
		id = event->id;
		rdma_ack_cm_event(event);
		switch (what) {
		case RDMA_CM_EVENT_CONNECT_REQUEST: requested(id); break;
		case RDMA_CM_EVENT_ESTABLISHED: case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
		default: ended(id);
		}
	}
	vt_die(VT_SETUP, "events: %s", strerror(errno));
}

static void connect_once(const char *ip)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr init = qp_init;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(ip, PORT, &hints, &res) || rdma_create_ep(&id, res, NULL, &init) || rdma_connect(id, &conn_param))
		vt_die(VT_WRONG, "connect: %s", strerror(errno));
	rdma_freeaddrinfo(res);
}

static void impatient(int signal)
{
	static const char text[] = "no connection: that was all the time there is\n";

	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? VT_SETUP : VT_STALLED);
}

static void connect_to(const char *ip, unsigned long count, double patience)
{
	double start, worst = 0;
	unsigned long i;

	signal(SIGALRM, impatient);
	for (i = 0; i < count; i++) {
		alarm(patience + 0.5);
		start = vt_now();
		connect_once(ip);
		worst = max(worst, vt_now() - start);
	}
	/* they end with this process */
	printf("%lu connections, the slowest took %.0f ms\n", count, worst * 1000);
}

/* --- set-up ---------------------------------------------------------------------------------- */

/* @text as bytes of an address of path's family */
static void parse_ip(uint8_t *ip, const char *text)
{
	if (!text || inet_pton(path.v6 ? AF_INET6 : AF_INET, text, ip) != 1)
		vt_die(VT_SETUP, "not an address: %s", text ?: "none");
}

static void open_socket(const char *netdev)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq ifr = {};
	int size = 4 << 20;

	fd = socket(AF_PACKET, SOCK_RAW, 0);
	addr.sll_ifindex = if_nametoindex(netdev);
	strncpy(ifr.ifr_name, netdev, IFNAMSIZ - 1);
	if (fd < 0 || !addr.sll_ifindex || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || ioctl(fd, SIOCGIFHWADDR, &ifr))
		vt_die(VT_SETUP, "raw socket on %s: %s", netdev, strerror(errno));
	memcpy(path.smac, ifr.ifr_hwaddr.sa_data, 6);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
}

static uint8_t class_of(const char *kind)
{
	if (!strcmp(kind, "get"))
		return CLASS_PERF;
	if (!strcmp(kind, "unknown"))
		return CLASS_UNKNOWN;
	if (!strcmp(kind, "req"))
		return CLASS_CM;
	vt_die(VT_SETUP, "see the top of strangers.c");
}

int main(int argc, char **argv)
{
	const char *netdev = NULL, *to = NULL, *from = NULL, *kind = NULL, *peer = NULL;
	bool server = false, client = false, each = false;
	double seconds = 0, patience = 0;
	unsigned long count = 1;
	uint8_t peer_ip[16];
	uint32_t mtu = 0;
	int c;

	path.sport = 0xc123;
	while ((c = getopt(argc, argv, "lci:M:D:s:k:1n:et:w:m:P:")) != -1) {
		switch (c) {
		case 'l': server = true; break;
		case 'c': client = true; break;
		case 'i': netdev = optarg; break;
		case 'M':
			if (sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", path.dmac, path.dmac + 1, path.dmac + 2,
				   path.dmac + 3, path.dmac + 4, path.dmac + 5) != 6)
				vt_die(VT_SETUP, "not a MAC address: %s", optarg);
			break;
		case 'D': to = optarg; break;
		case 's': from = optarg; break;
		case 'k': kind = optarg; break;
		case '1': v1 = true; break;
		case 'n': count = strtoul(optarg, NULL, 0); break;
		case 'e': each = true; break;
		case 't': seconds = atof(optarg); break;
		case 'w': patience = atof(optarg); break;
		case 'm': mtu = strtoul(optarg, NULL, 0); break;
		case 'P': peer = optarg; break;
		default: vt_die(VT_SETUP, "see the top of strangers.c");
		}
	}
	if (server)
		serve(argv + optind);
	if (client && argv[optind]) {
		connect_to(argv[optind], count, patience);
		return VT_OK;
	}
	if (!netdev || !to || !kind)
		vt_die(VT_SETUP, "see the top of strangers.c");
	open_socket(netdev);
	path.v6 = strchr(to, ':');
	parse_ip(path.daddr, to);
	parse_ip(path.saddr, from);
	if (v1 && !path.v6)
		vt_die(VT_SETUP, "a GID is an IPv6 address");
	if (strcmp(kind, "pmtu")) {
		send_mads(class_of(kind), count, each, seconds, patience);
		return VT_OK;
	}
	parse_ip(peer_ip, peer);
	send_too_big(peer_ip, path.v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP, mtu);
	send_too_big(peer_ip, IPPROTO_UDP, mtu);
	return VT_OK;
}
