// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * badpackets: packets that nobody should send, to UDP port 4791.
 *
 *	badpackets -i NETDEV -s OUR_IP -D TARGET_IP -M TARGET_MAC -S OUR_MAC -c HOST [-n COUNT] [-r SEED]
 *		[-q QPN]... [-g]
 *
 * First, one by one, packets with a single fault in them: what the protocol says must
 * happen to the queue pair, and which answer comes back; with -g also several in one
 * buffer, as GRO puts them together. Then COUNT runt, oversized,
 * random and mutated ones; with -q also to those queue pairs, from addresses that are
 * not their peer's. badpackets_target runs on HOST.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "badpackets.h"
#include "vt.h"
#include "wire.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

static int ctl, raw_fd, answer_fd, udp_fd, gso_fd;
static struct wire_path path;
static struct sockaddr_storage target_addr;
static struct bp_report target;
static struct vt_rng rng;
static uint32_t victims[64], n_victims;
static int failures;
static unsigned long sent, bad_icrc;
/* of the answer that answer() has found last */
static uint32_t answer_psn, answer_msn;

/* --- target ---------------------------------------------------------------------- */

static void ask(enum bp_command command)
{
	struct bp_request req = { .command = command }, ignored;
	struct bp_report none = {};

	vt_ctl_swap(ctl, &req, &ignored, sizeof(req));
	vt_ctl_swap(ctl, &none, &target, sizeof(target));
	if (!target.intact)
		vt_die(VT_WRONG, "WRONG: the target's memory was changed where nobody may write");
}

/* --- sending ---------------------------------------------------------------------- */

static void send_frame(const uint8_t *frame, size_t len)
{
	ssize_t n;

	while ((n = send(raw_fd, frame, len, 0)) < 0 && (errno == ENOBUFS || errno == EAGAIN))
		usleep(1000);
	/* the netdev refuses what is shorter than an Ethernet header or longer than its MTU */
	sent += n > 0;
}

/* --- packets with one fault --------------------------------------------------------- */

/* a packet to the target's RC queue pair, perfect but for what a case changes in it */
struct packet {
	struct wire_path path;
	struct bth bth;
	uint8_t ext[64];
	uint32_t ext_len;
	uint32_t payload;
	/* instead of the same byte over and over */
	const uint8_t *data;
	uint8_t pad_byte;
	/* bytes cut off before the ICRC */
	uint32_t cut;
	bool break_icrc, ip_options, longer_udp;
	/* IPv4: in fragments of as many bytes */
	uint32_t fragment;
};

/* what is put together again is a list of buffers, and has the headers of a packet that never was in pieces */
static void send_fragments(uint8_t *frame, size_t n, uint32_t piece)
{
	const size_t head = ETH_LEN + 20, all = n - head;
	uint8_t part[2048], *ip = part + ETH_LEN;
	size_t at, len;

	frame[ETH_LEN + 6] = 0;
	wire_fix_up(frame, n);
	memcpy(part, frame, head);
	for (at = 0; at < all; at += len) {
		len = min(all - at, (size_t)piece);
		put16(ip + 2, 20 + len);
		put16(ip + 6, at / 8 | (at + len < all ? 0x2000 : 0));
		put16(ip + 10, 0);
		put16(ip + 10, ~wire_ip_sum(ip, 20));
		memcpy(part + head, frame + head + at, len);
		send_frame(part, head + len);
	}
}

static void send_packet(const struct packet *p)
{
	uint8_t roce[8192], frame[9000], *l3 = frame + ETH_LEN;
	size_t len = 0, n;

	bth_put(roce, &p->bth);
	len += BTH_LEN;
	memcpy(roce + len, p->ext, p->ext_len);
	len += p->ext_len;
	memset(roce + len, 0x77, p->payload);
	if (p->data)
		memcpy(roce + len, p->data, p->payload);
	len += p->payload;
	memset(roce + len, p->pad_byte, -p->payload & 3);
	len += -p->payload & 3;
	len -= p->cut;
	n = wire_frame(frame, &p->path, roce, len);
	if (p->fragment && !p->path.v6) {
		send_fragments(frame, n, p->fragment);
		return;
	}
	if (p->break_icrc)
		frame[n - 1] ^= 0x10;
	if (p->longer_udp) {
		put16(l3 + (p->path.v6 ? 40 : 20) + 4, get16(l3 + (p->path.v6 ? 40 : 20) + 4) + 4);
		wire_fix_up(frame, n);
	}
	if (p->ip_options) {
		memmove(l3 + 24, l3 + 20, n - ETH_LEN - 20);
		memset(l3 + 20, 1, 4);
		l3[0] = 0x46;
		put16(l3 + 2, get16(l3 + 2) + 4);
		put16(l3 + 10, 0);
		put16(l3 + 10, ~wire_ip_sum(l3, 24));
		n += 4;
	}
	send_frame(frame, n);
}

/* a request with a 4-byte payload, in sequence */
static struct packet request(uint8_t opcode)
{
	uint32_t flags = wire_opcode(opcode & 0x1f);
	struct packet p = {
		.path = path,
		.bth = { .opcode = opcode, .migreq = true, .pkey = 0xffff, .qpn = target.rc_qpn,
			 .ackreq = true, .psn = BP_PSN },
		.ext_len = wire_ext_len(flags),
		.payload = flags & M_NO_PAYLOAD ? 0 : 4,
	};

	if (flags & (H_RETH | H_ATOMIC)) {
		put64(p.ext, target.addr);
		put32(p.ext + 8, target.rkey);
	}
	if (flags & H_RETH)
		put32(p.ext + 12, flags & M_READ ? 64 : 4);
	return p;
}

static struct packet datagram(void)
{
	struct packet p = request(0x64);

	p.bth.qpn = target.ud_qpn;
	p.ext_len = 8;
	put32(p.ext, BP_QKEY);
	put32(p.ext + 4, 7);
	p.payload = 4;
	return p;
}

/* to the queue pair of connection managers; with 256 bytes it is one of theirs */
static struct packet mad(uint32_t len)
{
	struct packet p = datagram();

	p.bth.qpn = 1;
	put32(p.ext, 0x80010000);
	put32(p.ext + 4, 1);
	p.payload = len;
	p.bth.pad = -len & 3;
	return p;
}

/*
 * the syndrome of the AETH that comes back within @seconds; -1 for silence: the time is over
 * (this machine may have stood still meanwhile) and there is nothing in the socket
 */
static int answer(double seconds)
{
	const ssize_t least = (path.v6 ? 40 : 20) + ETH_LEN + UDP_LEN + BTH_LEN + 4 + ICRC_LEN;
	double end = vt_now() + seconds;
	uint8_t buf[2048];
	ssize_t n;

	for (;;) {
		const uint8_t *udp = buf + ETH_LEN + (path.v6 ? 40 : 20);
		bool late = vt_now() >= end;
		struct bth b;

		n = recv(answer_fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0 && late)
			return -1;
		if (n < 0)
			usleep(500);
		if (n < least)
			continue;
		b = bth_get(udp + UDP_LEN);
		if (get16(buf + 12) != (path.v6 ? ETH_P_IPV6 : ETH_P_IP) ||
		    get16(udp + 2) != ROCE_PORT || b.qpn != BP_PEER_QPN || !(wire_opcode(b.opcode) & H_AETH))
			continue;
		answer_psn = b.psn;
		answer_msn = get24(udp + UDP_LEN + BTH_LEN + 1);
		return udp[UDP_LEN + BTH_LEN];
	}
}

static void forget_answers(void)
{
	while (recv(answer_fd, &(char){ 0 }, 1, MSG_DONTWAIT) > 0)
		;
}

/* the target as it was in the beginning, and no answer left to anything that was before */
static void start_again(void)
{
	ask(BP_RESET);
	/* the reset's own flushed or late completions are nobody's */
	ask(BP_QUERY);
	forget_answers();
}

enum {
	SILENCE = -1,
	ACK = 0x00, /* and any credits */
	NAK_SEQUENCE = 0x60,
	NAK_INVALID = 0x61,
	NAK_ACCESS = 0x62,
};

static void expect(const char *name, enum ibv_qp_state state, uint32_t rc, uint32_t ud, int syndrome)
{
	int got = answer(syndrome == SILENCE ? 0.1 : 2);

	if (got >= 0 && !(got & 0xe0))
		got = ACK;
	ask(BP_QUERY);
	printf("%s: %s: %s, %u+%u received, answer %d\n",
	       target.state == state && target.rc_received == rc && target.ud_received == ud &&
	       got == syndrome ? "ok" : "WRONG", name, vt_state_name(target.state),
	       target.rc_received, target.ud_received, got);
	if (target.state != state || target.rc_received != rc || target.ud_received != ud || got != syndrome) {
		printf("  wanted: %s, %u+%u received, answer %d\n", vt_state_name(state), rc, ud, syndrome);
		if (got >= 0)
			printf("  the answer has PSN 0x%06x and MSN %u\n", answer_psn, answer_msn);
		failures++;
	}
	/* whatever anybody sends to it */
	if (target.ud_state != IBV_QPS_RTS)
		vt_die(VT_WRONG, "WRONG: %s: the UD queue pair is in %s", name, vt_state_name(target.ud_state));
	start_again();
}

static void dropped(const char *name, const struct packet *p)
{
	send_packet(p);
	expect(name, IBV_QPS_RTS, 0, 0, SILENCE);
}

static void refused(const char *name, const struct packet *p, int syndrome)
{
	send_packet(p);
	expect(name, IBV_QPS_ERR, 0, 0, syndrome);
}

/* --- packets that were coupled --------------------------------------------------------- */

#define COUPLED 3

/*
 * A SEND of full packets in one buffer that has one header. Each packet's ICRC is that of
 * the identification it was sent with.
 */
static bool send_coupled(const uint16_t *ids)
{
	struct wire_path from = path;
	struct wire_train train = {};
	uint8_t roce[BTH_LEN + BP_MTU];
	size_t len = 0;
	int k;

	memset(roce, 0x77, sizeof(roce));
	for (k = 0; k < COUPLED; k++) {
		/* SEND FIRST, MIDDLE, LAST */
		struct packet p = request(k);

		p.bth.psn += k;
		p.bth.ackreq = k == COUPLED - 1;
		bth_put(roce, &p.bth);
		from.ip_id = ids[k];
		len = wire_train_add(&train, &from, roce, sizeof(roce));
	}
	return send(gso_fd, &train, len, 0) == (ssize_t)len;
}

static void coupled(void)
{
	static const struct {
		const char *name;
		uint16_t ids[COUPLED];
		bool good;
	} cases[] = {
		{ "identifications count up", { 100, 101, 102 }, true },
		{ "... around their end", { 0xffff, 0, 1 }, true },
		{ "all have the same one", { 100, 100, 100 }, true },
		{ "a gap before the second", { 100, 149, 150 }, true },
		{ "a gap before the third", { 100, 101, 149 }, true },
		{ "backwards", { 100, 60, 61 }, true },
		{ "the same one, and then another", { 100, 100, 160 }, true },
		{ "one that cannot be meant", { 100, 101, 6000 }, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char name[64];

		snprintf(name, sizeof(name), "coupled: %s", cases[i].name);
		if (!send_coupled(cases[i].ids)) {
			printf("skip: %s [no such buffers from a packet socket: %s\n", name, strerror(errno));
			continue;
		}
		expect(name, IBV_QPS_RTS, cases[i].good, 0, cases[i].good ? ACK : SILENCE);
		bad_icrc += !cases[i].good;
	}
}

/* the sender's own test: its packets are good ones where nothing is broken in them */
static void good_ones(void)
{
	struct packet p = request(0x04);

	send_packet(&p);
	expect("a good SEND is received", IBV_QPS_RTS, 1, 0, ACK);
	p = request(0x0a);
	send_packet(&p);
	answer(2);
	ask(BP_QUERY);
	printf("%s: a good WRITE is executed\n", target.first == 0x77 ? "ok" : "WRONG");
	failures += target.first != 0x77;
	start_again();
	p = request(0x0c);
	send_packet(&p);
	expect("a good READ is answered", IBV_QPS_RTS, 0, 0, ACK);
	p = request(0x14);
	send_packet(&p);
	expect("a good FETCH_ADD is answered", IBV_QPS_RTS, 0, 0, ACK);
	p = datagram();
	send_packet(&p);
	expect("a good datagram is received", IBV_QPS_RTS, 0, 1, SILENCE);
	p = request(0x04);
	p.path.sport = 0;
	send_packet(&p);
	expect("any UDP source port is accepted", IBV_QPS_RTS, 1, 0, ACK);
	p = request(0x04);
	p.payload = BP_MTU;
	p.fragment = 200;
	p.path.ip_id = 4711;
	send_packet(&p);
	expect("a full packet is received, of IPv4 in fragments", IBV_QPS_RTS, 1, 0, ACK);
	p = request(0x04);
	p.bth.migreq = false;
	send_packet(&p);
	expect("MigReq 0 is accepted", IBV_QPS_RTS, 1, 0, ACK);
	p = request(0x04);
	p.bth.resv = 0x3f;
	send_packet(&p);
	expect("reserved bits are ignored", IBV_QPS_RTS, 1, 0, ACK);
}

static void bad_headers(void)
{
	struct packet p;

	p = request(0x04);
	p.break_icrc = true;
	dropped("wrong ICRC", &p);
	bad_icrc++;
	p = request(0x04);
	p.bth.tver = 1;
	dropped("TVer 1", &p);
	p = request(0x04);
	p.bth.pkey = 0x1234;
	dropped("another partition", &p);
	p = request(0x04);
	p.bth.qpn ^= 0x800000;
	dropped("no such queue pair", &p);
}

static void strangers(void)
{
	static const struct {
		const char *name;
		uint8_t opcode;
	} cases[] = {
		{ "SEND from another address", 0x04 },
		{ "WRITE from another address", 0x0a },
		{ "wrong opcode from another address", 0x01 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet p = request(cases[i].opcode);

		p.path.saddr[p.path.v6 ? 15 : 3] ^= 0x40;
		dropped(cases[i].name, &p);
	}
}

static void other_services(void)
{
	struct packet p;

	p = request(0x24);
	dropped("UC opcode to an RC queue pair", &p);
	p = datagram();
	p.bth.qpn = target.rc_qpn;
	dropped("datagram to an RC queue pair", &p);
	p = request(0x04);
	p.bth.qpn = target.ud_qpn;
	dropped("RC SEND to a UD queue pair", &p);
	p = datagram();
	put32(p.ext, BP_QKEY ^ 1);
	dropped("datagram with another Q_Key", &p);
	p = datagram();
	p.payload = BP_ROOM;
	dropped("datagram longer than the receive, with its 40 bytes", &p);
}

static void bad_mads(void)
{
	static const struct {
		const char *name;
		uint32_t len;
	} cases[] = {
		{ "datagram of no bytes to QP 1", 0 },
		{ "datagram to QP 1 shorter than a MAD", 255 },
		{ "datagram to QP 1 longer than a MAD", 257 },
		{ "datagram to QP 1 as long as can be", BP_ROOM },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet p = mad(cases[i].len);

		dropped(cases[i].name, &p);
	}
}

/* parts of messages, and answers, that mean nothing to anybody */
static void stray_packets(void)
{
	struct packet p;

	p = request(0x0a);
	p.payload = 0;
	p.cut = 8;
	dropped("cut in the middle of its RETH", &p);
	p = request(0x11);
	p.bth.psn = BP_PSN + 5;
	dropped("ACK of something never sent", &p);
	p = request(0x0d);
	p.payload = BP_MTU;
	dropped("READ response that nobody asked for", &p);
	p = request(0x12);
	dropped("atomic response that nobody asked for", &p);
	p = request(0x81);
	p.ext_len = 16;
	p.payload = 0;
	p.bth.migreq = false;
	p.bth.resv = 0x40;
	dropped("CNP", &p);
	p = request(0x04);
	p.longer_udp = true;
	dropped("UDP length beyond the packet", &p);
	if (!path.v6) {
		p = request(0x04);
		p.ip_options = true;
		dropped("IPv4 options", &p);
	}
}

static void silent_drops(void)
{
	bad_headers();
	strangers();
	other_services();
	bad_mads();
	stray_packets();
}

static void sequence(void)
{
	struct packet p = request(0x04);

	p.bth.psn = (BP_PSN + 1) & 0xffffff;
	send_packet(&p);
	expect("one PSN too far", IBV_QPS_RTS, 0, 0, NAK_SEQUENCE);
	p.bth.psn = BP_PSN - 1;
	send_packet(&p);
	expect("a duplicate SEND is acknowledged, not received", IBV_QPS_RTS, 0, 0, ACK);
	p = request(0x0a);
	p.bth.psn = BP_PSN - 1;
	send_packet(&p);
	answer(2);
	ask(BP_QUERY);
	printf("%s: a duplicate WRITE is not executed\n", target.first != 0x77 ? "ok" : "WRONG");
	failures += target.first == 0x77;
	start_again();
	p = request(0x0a);
	p.bth.psn = BP_PSN - 1;
	put32(p.ext + 8, target.rkey ^ 0xff00);
	send_packet(&p);
	expect("a duplicate with a wrong key does no harm", IBV_QPS_RTS, 0, 0, ACK);
}

/* not the next part of a message, or not as long as such a part is */
static void wrong_parts(void)
{
	static const struct {
		const char *name;
		uint8_t opcode;
		uint32_t payload;
	} cases[] = {
		{ "SEND_MIDDLE without FIRST", 0x01, BP_MTU },
		{ "WRITE_LAST without FIRST", 0x08, 4 },
		{ "SEND_FIRST shorter than the path MTU", 0x00, BP_MTU - 4 },
		{ "SEND_ONLY longer than the path MTU", 0x04, BP_MTU + 4 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet p = request(cases[i].opcode);

		p.payload = cases[i].payload;
		refused(cases[i].name, &p, NAK_INVALID);
	}
}

/* requests that name memory: an address, a key, and (but for atomics) a length */
static void wrong_memory(void)
{
	const uint64_t addr = target.addr;
	const uint32_t rkey = target.rkey;
	const struct {
		const char *name;
		uint8_t opcode;
		uint64_t addr;
		uint32_t rkey, len, payload;
		int syndrome;
	} cases[] = {
		{ "WRITE_ONLY shorter than it says", 0x0a, addr, rkey, 8, 4, NAK_INVALID },
		{ "WRITE_ONLY longer than it says", 0x0a, addr, rkey, 3, 4, NAK_INVALID },
		{ "WRITE with a wrong key", 0x0a, addr, rkey ^ 0xff00, 4, 4, NAK_ACCESS },
		{ "WRITE over the end of the region", 0x0a, addr + BP_ROOM - 2, rkey, 4, 4, NAK_ACCESS },
		{ "WRITE before the region", 0x0a, addr - 1, rkey, 4, 4, NAK_ACCESS },
		{ "WRITE to an address that wraps", 0x0a, 0xfffffffffffffffeull, rkey, 4, 4, NAK_ACCESS },
		{ "WRITE_FIRST of more than the region", 0x06, addr, rkey, BP_ROOM + 1, BP_MTU, NAK_ACCESS },
		{ "READ of more than the region", 0x0c, addr, rkey, BP_ROOM + 1, 0, NAK_ACCESS },
		{ "FETCH_ADD to an odd address", 0x14, addr + 4, rkey, 0, 0, NAK_INVALID },
		{ "COMPARE_SWAP with a wrong key", 0x13, addr, rkey + 1, 0, 0, NAK_ACCESS },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet p = request(cases[i].opcode);

		put64(p.ext, cases[i].addr);
		put32(p.ext + 8, cases[i].rkey);
		if (cases[i].len)
			put32(p.ext + 12, cases[i].len);
		p.payload = cases[i].payload;
		refused(cases[i].name, &p, cases[i].syndrome);
	}
}

static void errors(void)
{
	wrong_parts();
	wrong_memory();
}

/* --- the flood ---------------------------------------------------------------------- */

static void random_bytes(uint8_t *p, size_t len)
{
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t v = vt_rand(&rng);

		memcpy(p, &v, 8);
	}
	while (len--)
		*p++ = vt_rand(&rng);
}

static size_t some_length(size_t most)
{
	switch (vt_below(&rng, 4)) {
	case 0: return vt_below(&rng, 64);
	case 1: return vt_below(&rng, 300);
	default: return vt_below(&rng, most + 1);
	}
}

/* nothing but a UDP header in front of noise: runts as well */
static void send_noise(void)
{
	uint8_t roce[4096], frame[4300];
	size_t len = some_length(sizeof(roce)), n;

	random_bytes(roce, len);
	if (vt_below(&rng, 2) && len >= 8)
		put24(roce + 5, target.rc_qpn);
	n = wire_frame(frame, &path, roce, len);
	/* the four bytes of ICRC are not always there, nor right */
	switch (vt_below(&rng, 3)) {
	case 0:
		n -= min(n, (size_t)vt_below(&rng, 8));
		break;
	case 1:
		random_bytes(frame + n - 4, 4);
		break;
	}
	send_frame(frame, n);
}

/* a valid packet with a few bytes changed; the ICRC is right again, so that it gets far */
static void send_mutant(void)
{
	static const uint8_t opcodes[] = {
		0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
		0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x1c, 0x1d, 0x15, 0x1f,
	};
	struct packet p = request(opcodes[vt_below(&rng, ARRAY_SIZE(opcodes))]);
	uint32_t changes = vt_below(&rng, 4);
	uint8_t *ext = p.ext;

	p.bth.psn = (BP_PSN + vt_below(&rng, 8) - 2) & 0xffffff;
	p.bth.solicited = vt_below(&rng, 2);
	p.bth.pad = vt_below(&rng, 16) ? 0 : vt_below(&rng, 4);
	p.payload = vt_below(&rng, 3) ? vt_below(&rng, 9) : vt_below(&rng, BP_MTU + 100);
	if (!vt_below(&rng, 3))
		p.payload = BP_MTU;
	while (changes--) {
		switch (vt_below(&rng, 10)) {
		case 0: p.bth.opcode = vt_rand(&rng); break;
		case 1: p.bth.pkey = vt_rand(&rng); break;
		case 2: p.bth.psn = vt_rand(&rng) & 0xffffff; break;
		case 3: p.bth.tver = vt_rand(&rng); break;
		case 4: p.bth.qpn = vt_below(&rng, 2) ? target.ud_qpn : 1; break;
		case 5: put32(ext + 12, vt_rand(&rng)); break;
		case 6: put32(ext + 8, target.rkey + vt_below(&rng, 3) - 1); break;
		case 7: put64(ext, target.addr + vt_below(&rng, 2 * BP_ROOM) - BP_ROOM); break;
		case 8: p.ext_len = vt_below(&rng, sizeof(p.ext) + 1); break;
		case 9: p.path.saddr[p.path.v6 ? 15 : 3] = 3 + vt_below(&rng, 250); break;
		}
	}
	p.cut = vt_below(&rng, 8) ? 0 : min(p.payload, vt_below(&rng, 64));
	p.break_icrc = !vt_below(&rng, 8);
	p.longer_udp = !vt_below(&rng, 64);
	p.path.ip_id = vt_rand(&rng);
	p.fragment = vt_below(&rng, 16) || p.break_icrc ? 0 : 8 * (1 + vt_below(&rng, 160));
	/* an IPv4 or IPv6 host looks no further when its own lengths are wrong */
	bad_icrc += p.break_icrc && !p.longer_udp;
	send_packet(&p);
}

/* a datagram, also to the connection manager's queue pair, with noise inside */
static void send_datagram(void)
{
	struct packet p = vt_below(&rng, 2) ? mad(0) : datagram();

	p.payload = vt_below(&rng, 4) ? vt_below(&rng, 600) : vt_below(&rng, BP_ROOM + 1);
	p.bth.pad = vt_below(&rng, 4);
	p.bth.opcode = 0x64 + vt_below(&rng, 2);
	send_packet(&p);
}

/* what connection managers say to each other, of connections that there are not */
static void send_mad(void)
{
	uint8_t bytes[256];
	struct packet p = mad(sizeof(bytes));

	random_bytes(bytes, sizeof(bytes));
	bytes[0] = 1;
	bytes[1] = vt_below(&rng, 16) ? 0x07 : vt_rand(&rng);
	bytes[2] = 2;
	bytes[3] = vt_below(&rng, 8) ? 0x03 : vt_rand(&rng);
	put16(bytes + 4, 0);
	/* REQ to APR, and some that are not defined */
	put16(bytes + 16, 0x10 + vt_below(&rng, 14));
	put32(bytes + 20, 0);
	/* communication ids of both ends: some that somebody may have had, or none */
	put32(bytes + 24, vt_below(&rng, 2) ? vt_below(&rng, 64) : vt_rand(&rng));
	put32(bytes + 28, vt_below(&rng, 2) ? vt_below(&rng, 64) : vt_rand(&rng));
	p.data = bytes;
	send_packet(&p);
}

/* a live connection's queue pair, a correct packet, but not from its peer */
static void send_to_victim(void)
{
	static const uint8_t opcodes[] = { 0x01, 0x04, 0x0a, 0x0c, 0x11, 0x12, 0x10, 0x14 };
	struct packet p = request(opcodes[vt_below(&rng, ARRAY_SIZE(opcodes))]);

	if (!n_victims)
		return send_mutant();
	p.bth.qpn = victims[vt_below(&rng, n_victims)];
	p.bth.psn = vt_rand(&rng) & 0xffffff;
	/* a NAK would kill a connection that believed it */
	if (p.bth.opcode == 0x11)
		p.ext[0] = 0x60 + vt_below(&rng, 4);
	p.path.saddr[p.path.v6 ? 15 : 3] = 3 + vt_below(&rng, 250);
	send_packet(&p);
}

/* through a socket: a train of bad packets, or a datagram of 60 KB in fragments */
static void send_large(void)
{
	static uint8_t buf[61440];
	size_t len = 1 + vt_below(&rng, sizeof(buf) - 1), at;
	int size = vt_below(&rng, 2) ? 64 + vt_below(&rng, 1300) : 0;
	struct packet p = request(vt_below(&rng, 0x18));

	/* at most 64 (128) segments */
	if (size)
		len = min(len, (size_t)size * 60);
	random_bytes(buf, len);
	for (at = 0; size && at + BTH_LEN + 64 < len; at += size) {
		p.bth.psn = (BP_PSN + at / size) & 0xffffff;
		bth_put(buf + at, &p.bth);
		memcpy(buf + at + BTH_LEN, p.ext, 28);
	}
	setsockopt(udp_fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
	if (sendto(udp_fd, buf, len, 0, (struct sockaddr *)&target_addr, path.v6 ?
		   sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) > 0)
		sent += size ? (len + size - 1) / size : 1;
}

/* too short to have a header, or with lengths that lie */
static void send_broken_ip(void)
{
	uint8_t frame[2048];
	struct packet p = request(0x04);
	uint8_t roce[256];
	size_t n;

	bth_put(roce, &p.bth);
	random_bytes(roce + BTH_LEN, sizeof(roce) - BTH_LEN);
	n = wire_frame(frame, &path, roce, BTH_LEN + vt_below(&rng, 200));
	switch (vt_below(&rng, 4)) {
	case 0:
		n = ETH_LEN + vt_below(&rng, n - ETH_LEN + 1);
		break;
	case 1:
		put16(frame + ETH_LEN + (path.v6 ? 4 : 2), vt_rand(&rng));
		wire_fix_up(frame, n);
		break;
	case 2:
		put16(frame + ETH_LEN + (path.v6 ? 40 : 20) + 4, vt_below(&rng, 80));
		wire_fix_up(frame, n);
		break;
	case 3: /* longer than it says: padding that Ethernet put there */
		memset(frame + n, 0xdd, 64);
		n += 1 + vt_below(&rng, 63);
		break;
	}
	send_frame(frame, n);
}

static void flood(unsigned long count)
{
	unsigned long start = sent, next_query = 500, resets = 0;

	while (sent - start < count) {
		switch (vt_below(&rng, 16)) {
		case 0: case 1: case 2: send_noise(); break;
		case 3: case 4: send_broken_ip(); break;
		case 5: vt_below(&rng, 2) ? send_mad() : send_datagram(); break;
		case 6: case 7: case 8: send_to_victim(); break;
		case 9: if (!vt_below(&rng, 8)) send_large(); break;
		default: send_mutant(); break;
		}
		/* back to RTS, so that the packets find a living queue pair again */
		if (sent - start >= next_query) {
			ask(BP_QUERY);
			if (target.state != IBV_QPS_RTS) {
				ask(BP_RESET);
				resets++;
			}
			next_query += 100;
		}
	}
	printf("flood: %lu packets, %lu times the queue pair had to be brought back\n", sent - start, resets);
	if (count && !resets)
		vt_die(VT_WRONG, "WRONG: no packet ever got through to the queue pair: this tested nothing");
}

/* --- set-up ------------------------------------------------------------------------- */

static void parse_mac(uint8_t *mac, const char *text)
{
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) != 6)
		vt_die(VT_SETUP, "not a MAC address: %s", text);
}

static void parse_ip(uint8_t *to, const char *text)
{
	path.v6 = inet_pton(AF_INET6, text, to) == 1;
	if (!path.v6 && inet_pton(AF_INET, text, to) != 1)
		vt_die(VT_SETUP, "not an address: %s", text);
}

static int packet_socket(const char *netdev, uint16_t protocol)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	addr.sll_ifindex = if_nametoindex(netdev);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		vt_die(VT_SETUP, "raw socket on %s: %s", netdev, strerror(errno));
	return fd;
}

/* nothing but packets to the queue pair that the target believes to talk to */
static void only_answers(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ETH_LEN + (path.v6 ? 40 : 20) + UDP_LEN + 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BP_PEER_QPN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 65535),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { ARRAY_SIZE(code), code };

	if (setsockopt(answer_fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		vt_die(VT_SETUP, "filter: %s", strerror(errno));
	/* what came before the filter may have filled the socket: the first answer would be lost */
	forget_answers();
}

static void open_sockets(const char *netdev)
{
	int one = 1;
	struct sockaddr_in *in = (void *)&target_addr;
	struct sockaddr_in6 *in6 = (void *)&target_addr;

	raw_fd = packet_socket(netdev, 0);
	gso_fd = packet_socket(netdev, 0);
	if (setsockopt(gso_fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		vt_die(VT_SETUP, "PACKET_VNET_HDR: %s", strerror(errno));
	answer_fd = packet_socket(netdev, ETH_P_ALL);
	only_answers();
	udp_fd = socket(path.v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	if (path.v6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(ROCE_PORT);
		memcpy(&in6->sin6_addr, path.daddr, 16);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(ROCE_PORT);
		memcpy(&in->sin_addr, path.daddr, 4);
	}
}

/*
 * On a busy machine packets of the flood may still wait for their turn in the driver when the
 * target has been asked for a reset, which is not in that queue. So a WRITE that none of them
 * looks like goes after them: they are all in front of it. What they do to the queue pair in
 * between may have it dropped; the next one is not.
 */
static void await_flood(void)
{
	static const uint8_t last_bytes[4] = { 0x5a, 0x5a, 0x5a, 0x5a };
	double end = vt_now() + 60;
	struct packet p;

	do {
		if (vt_now() > end)
			vt_die(VT_WRONG, "WRONG: no WRITE was executed for a minute after the flood");
		start_again();
		p = request(0x0a);
		p.data = last_bytes;
		send_packet(&p);
		answer(2);
		ask(BP_QUERY);
	} while (target.first != last_bytes[0]);
}

/* after all that was wrong: what is right goes as before */
static void all_right_again(void)
{
	/* let the last ones arrive */
	usleep(500000);
	ask(BP_RESET);
	while (answer(0.3) >= 0)
		;
	await_flood();
	start_again();
	good_ones();
}

int main(int argc, char **argv)
{
	const char *netdev = NULL, *host = NULL;
	unsigned long count = 10000;
	bool couple = false;
	int c;

	path.sport = 0xc123;
	while ((c = getopt(argc, argv, "i:s:D:M:S:c:n:r:q:g")) != -1) {
		switch (c) {
		case 'i': netdev = optarg; break;
		case 's': parse_ip(path.saddr, optarg); break;
		case 'D': parse_ip(path.daddr, optarg); break;
		case 'M': parse_mac(path.dmac, optarg); break;
		case 'S': parse_mac(path.smac, optarg); break;
		case 'c': host = optarg; break;
		case 'g': couple = true; break;
		case 'n': count = strtoul(optarg, NULL, 0); break;
		case 'r': rng.state = vt_mix(strtoull(optarg, NULL, 0)); break;
		case 'q':
			if (n_victims < ARRAY_SIZE(victims))
				victims[n_victims++] = strtoul(optarg, NULL, 0);
			break;
		default: vt_die(VT_SETUP, "see the top of badpackets.c");
		}
	}
	open_sockets(netdev);
	ctl = vt_ctl_connect(host, BP_PORT, 30);
	start_again();
	good_ones();
	silent_drops();
	sequence();
	errors();
	if (couple && !path.v6)
		coupled();
	printf("%d of the single faults went wrong\n", failures);
	fflush(stdout);
	flood(count);
	all_right_again();
	printf("bad_icrc=%lu sent=%lu failures=%d\n", bad_icrc, sent, failures);
	ask(BP_END);
	return failures ? VT_WRONG : VT_OK;
}
