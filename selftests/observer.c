// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * observer: somebody in the middle of a cable, who sees every packet, and does what he was told to some.
 *
 *	observer -a NETDEV -b NETDEV [-r RULE]...
 *
 * Hands on what comes in by one of the two netdevs to the other, until SIGTERM, and tells then what it was. The hosts
 * behind them have to send packets one by one and with checksums (ethtool -K NETDEV gso off tso off tx off).
 *
 * A rule is ACTION:FROM:WHAT:FIRST[-LAST][:PACKETS], as "drop:a:request:5":
 *	ACTION	drop, mark (congestion experienced), delay (so many PACKETS of that side overtake it), repeat, corrupt (its ICRC
 *		is wrong then, and all other checksums right)
 *	FROM	a or b: the netdev that it came in by
 *	WHAT	request (SEND, WRITE), new or resent (a request whose PSN was not there before, or was), read (READ
 *		request), atomic, response (to a READ), result (of an atomic), ack, nak (sequence error), rnr, cnp
 *	FIRST	of these, from this side, counted from 1, with all that are sent again
 *
 * Prints a line for each packet of a reliable connection, and for each notification of congestion:
 *	MICROSECONDS FROM WHAT PLACE QPN PSN BYTES ACKREQ SYNDROME MSN ECN ACTION
 * PLACE is first, middle, last or only. BYTES are of payload, or what a READ request asks for; what a packet does not
 * have is "-". The last line is "# packets=N lost=N coupled=N broken=N": lost here, larger than the MTU, with a wrong
 * ICRC. The time is when the kernel got it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "vt.h"
#include "wire.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define FRAME 16384
#define MOST (1 << 20)
#define WAITING 4096

enum what { REQUEST, NEW, RESENT, READ, ATOMIC, RESPONSE, RESULT, ACK, NAK, RNR, CNP, WHATS };
static const char *const whats[] = {
	"request", "new", "resent", "read", "atomic", "response", "result", "ack", "nak", "rnr", "cnp",
};

enum action { PASS, DROP, MARK, DELAY, REPEAT, CORRUPT, ACTIONS };
static const char *const actions[] = { "pass", "drop", "mark", "delay", "repeat", "corrupt" };

struct rule {
	enum action action;
	int side;
	enum what what;
	unsigned int first, last, overtake;
};

/* a packet that was seen */
struct seen {
	uint64_t ns;
	uint8_t side, what, opcode, syndrome, ecn, action;
	bool ackreq;
	uint32_t qpn, psn, bytes, msn;
};

/* a packet that waits until others have overtaken it, or nothing comes any more */
struct late {
	unsigned int overtake;
	int from;
	uint32_t len;
	uint8_t *frame;
};

static struct rule rules[64];
static int nr_rules;
static struct seen *trace;
static uint32_t nr_seen, coupled, broken;
static struct late waiting[WAITING];
static int nr_waiting;
static unsigned int counts[2][WHATS];
/* the highest PSN of requests, from each side; there is one connection at a time */
static uint32_t newest[2];
static bool any_newest[2];
static int socks[2] = { -1, -1 };
static unsigned int mtu;
static volatile sig_atomic_t enough;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* --- rules ------------------------------------------------------------------ */

static int one_of(const char *const names[], int n, const char *name)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	vt_die(VT_SETUP, "observer: no '%s'", name);
}

static void parse_rule(char *text)
{
	char *action = strsep(&text, ":"), *side = strsep(&text, ":"), *what = strsep(&text, ":");
	char *range = strsep(&text, ":"), *last;
	struct rule *r = &rules[nr_rules++];

	if (nr_rules > 60 || !range)
		vt_die(VT_SETUP, "observer: a rule is ACTION:FROM:WHAT:FIRST[-LAST][:PACKETS]");
	r->action = one_of(actions, ACTIONS, action);
	r->side = *side == 'b';
	r->what = one_of(whats, WHATS, what);
	r->first = strtoul(range, &last, 10);
	r->last = *last == '-' ? strtoul(last + 1, NULL, 10) : r->first;
	r->overtake = text ? strtoul(text, NULL, 10) : 1;
}

static const struct rule *rule_about(int side, enum what what, unsigned int number)
{
	int i;

	for (i = 0; i < nr_rules; i++)
		if (rules[i].side == side && rules[i].what == what && number >= rules[i].first && number <= rules[i].last)
			return &rules[i];
	return NULL;
}

/* count it, and find what is to be done with it */
static const struct rule *rule_for(const struct seen *s)
{
	const struct rule *rule = rule_about(s->side, s->what, ++counts[s->side][s->what]);
	enum what kind = RESENT;

	if (s->what != REQUEST)
		return rule;
	if (!any_newest[s->side] || psn_diff(s->psn, newest[s->side]) > 0) {
		kind = NEW;
		newest[s->side] = s->psn;
	}
	any_newest[s->side] = true;
	return rule_about(s->side, kind, ++counts[s->side][kind]) ?: rule;
}

/* --- packets ---------------------------------------------------------------- */

static enum what what_is(uint32_t flags, uint8_t opcode, uint8_t syndrome)
{
	if (flags & H_CNP)
		return CNP;
	if (opcode == 0x13 || opcode == 0x14)
		return ATOMIC;
	if (flags & M_READ)
		return READ;
	if (flags & M_READ_RESPONSE)
		return RESPONSE;
	if (!(flags & M_RESPONSE))
		return REQUEST;
	if (flags & H_ATOMICACK)
		return RESULT;
	if ((syndrome & 0x60) == 0x20)
		return RNR;
	return (syndrome & 0x60) == 0x60 ? NAK : ACK;
}

/* the BTH of a RoCE packet of a reliable connection, or of a notification; NULL for whatever else */
static uint8_t *bth_of(uint8_t *frame, uint32_t len, uint32_t *end)
{
	uint8_t *l3 = frame + ETH_LEN, *udp;
	uint16_t type = get16(frame + 12);

	if (type == ETHERTYPE_IP && len >= ETH_LEN + 20 + UDP_LEN && l3[0] == 0x45 && l3[9] == IPPROTO_UDP) {
		udp = l3 + 20;
		*end = ETH_LEN + get16(l3 + 2);
	} else if (type == ETHERTYPE_IPV6 && len >= ETH_LEN + 40 + UDP_LEN && l3[6] == IPPROTO_UDP) {
		udp = l3 + 40;
		*end = ETH_LEN + 40 + get16(l3 + 4);
	} else {
		return NULL;
	}
	if (get16(udp + 2) != ROCE_PORT || *end > len || udp + UDP_LEN + BTH_LEN + ICRC_LEN > frame + *end)
		return NULL;
	return udp[UDP_LEN] < 0x20 || udp[UDP_LEN] == 0x81 ? udp + UDP_LEN : NULL;
}

static uint8_t ecn_of(const uint8_t *frame)
{
	return get16(frame + 12) == ETHERTYPE_IP ? frame[ETH_LEN + 1] & 3 : frame[ETH_LEN + 1] >> 4 & 3;
}

/* as a switch does it; the ICRC does not cover these bits */
static void set_congestion_experienced(uint8_t *frame, uint32_t len)
{
	if (get16(frame + 12) == ETHERTYPE_IP)
		frame[ETH_LEN + 1] |= 3;
	else
		frame[ETH_LEN + 1] |= 0x30;
	wire_fix_up(frame, len);
}

/* by its last byte; over IPv4 without a checksum of UDP's, which is optional there and would be wrong, too */
static void corrupt(uint8_t *frame, uint32_t end)
{
	frame[end - ICRC_LEN - 1] ^= 1;
	if (get16(frame + 12) == ETHERTYPE_IP)
		put16(frame + ETH_LEN + 20 + 6, 0);
}

static void look_at_icrc(const uint8_t *frame, uint32_t end)
{
	uint8_t icrc[ICRC_LEN];

	wire_icrc(frame + ETH_LEN, end - ETH_LEN - ICRC_LEN, icrc);
	broken += !!memcmp(icrc, frame + end - ICRC_LEN, ICRC_LEN);
}

/* keep what is to be told of it */
static struct seen *see(const uint8_t *frame, const uint8_t *bth, uint32_t end, int side, uint64_t ns)
{
	struct bth b = bth_get(bth);
	uint32_t flags = wire_opcode(b.opcode);
	const uint8_t *ext = bth + BTH_LEN, *aeth = ext;
	struct seen *s = &trace[nr_seen];

	if (nr_seen == MOST || bth + BTH_LEN + wire_ext_len(flags) + ICRC_LEN > frame + end)
		return NULL;
	nr_seen++;
	s->ns = ns;
	s->side = side;
	s->opcode = b.opcode;
	s->qpn = b.qpn;
	s->psn = b.psn;
	s->ackreq = b.ackreq;
	s->ecn = ecn_of(frame);
	if (flags & H_AETH) {
		s->syndrome = aeth[0];
		s->msn = get24(aeth + 1);
	}
	s->what = what_is(flags, b.opcode, s->syndrome);
	s->bytes = s->what == READ ? get32(ext + 12) : end - (bth - frame) - BTH_LEN - wire_ext_len(flags) - ICRC_LEN - b.pad;
	return s;
}

static void hand_on(const uint8_t *frame, uint32_t len, int to)
{
	while (send(socks[to], frame, len, 0) < 0)
		if (errno != ENOBUFS && errno != EINTR)
			return;
}

static void hand_on_later(const uint8_t *frame, uint32_t len, int from, unsigned int overtake)
{
	struct late *l = &waiting[nr_waiting];

	if (nr_waiting == WAITING)
		vt_die(VT_SETUP, "observer: too many wait");
	nr_waiting++;
	*l = (struct late){ .overtake = overtake, .from = from, .len = len, .frame = malloc(len) };
	memcpy(l->frame, frame, len);
}

/* another packet from a side was handed on; -1: nothing comes any more */
static void overtaken(int from)
{
	int i;

	for (i = 0; i < nr_waiting; i++) {
		if (from >= 0 && (waiting[i].from != from || --waiting[i].overtake))
			continue;
		hand_on(waiting[i].frame, waiting[i].len, !waiting[i].from);
		free(waiting[i].frame);
		waiting[i--] = waiting[--nr_waiting];
	}
}

static void take(uint8_t *frame, uint32_t len, int side, uint64_t ns)
{
	uint32_t end;
	uint8_t *bth = bth_of(frame, len, &end);
	const struct rule *rule = NULL;
	struct seen *s = NULL;

	if (len > mtu + ETH_LEN)
		coupled++;
	if (bth) {
		look_at_icrc(frame, end);
		s = see(frame, bth, end, side, ns);
	}
	if (s) {
		rule = rule_for(s);
		s->action = rule ? rule->action : PASS;
	}
	switch (rule ? rule->action : PASS) {
	case DROP:
		return;
	case MARK:
		set_congestion_experienced(frame, len);
		break;
	case CORRUPT:
		corrupt(frame, end);
		break;
	case DELAY:
		hand_on_later(frame, len, side, rule->overtake);
		return;
	case REPEAT:
		hand_on(frame, len, !side);
		break;
	default:
		break;
	}
	hand_on(frame, len, !side);
	if (s)
		overtaken(side);
}

/* one packet, if there is any */
static bool take_from(int side)
{
	static uint8_t frame[FRAME];
	char control[256];
	struct iovec iov = { frame, sizeof(frame) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	uint64_t ns = now_ns();
	struct cmsghdr *c;
	struct timespec t;
	ssize_t len = recvmsg(socks[side], &msg, MSG_DONTWAIT | MSG_TRUNC);

	if (len < 0)
		return false;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&t, CMSG_DATA(c), sizeof(t));
			ns = t.tv_sec * 1000000000ull + t.tv_nsec;
		}
	if (len > FRAME)
		coupled++;
	else
		take(frame, len, side, ns);
	return true;
}

/* --- the cable -------------------------------------------------------------- */

static int tap(const char *netdev)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(netdev) };
	int sock = socket(AF_PACKET, SOCK_RAW, 0), one = 1, room = 256 << 20;
	struct packet_mreq all = { .mr_ifindex = addr.sll_ifindex, .mr_type = PACKET_MR_PROMISC };
	struct ifreq ifr = {};

	strncpy(ifr.ifr_name, netdev, IFNAMSIZ - 1);
	if (sock < 0 || setsockopt(sock, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(sock, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) ||
	    bind(sock, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(sock, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) || ioctl(sock, SIOCGIFMTU, &ifr))
		vt_die(VT_SETUP, "observer: %s: %s", netdev, strerror(errno));
	mtu = ifr.ifr_mtu;
	return sock;
}

static unsigned int lost(int sock)
{
	struct tpacket_stats stats = {};
	socklen_t len = sizeof(stats);

	getsockopt(sock, SOL_PACKET, PACKET_STATISTICS, &stats, &len);
	return stats.tp_drops;
}

static void stop(int sig)
{
	enough = 1;
}

static void run(void)
{
	struct pollfd fds[2] = { { .fd = socks[0], .events = POLLIN }, { .fd = socks[1], .events = POLLIN } };
	bool some;

	while (!enough) {
		if (!poll(fds, 2, 50))
			overtaken(-1);
		do {
			some = take_from(0);
			some |= take_from(1);
		} while (some && !enough);
	}
}

static void tell_number(const char *sep, bool has, uint32_t number)
{
	if (has)
		printf("%s%u", sep, number);
	else
		printf("%s-", sep);
}

static void tell(const struct seen *s)
{
	uint32_t flags = wire_opcode(s->opcode);
	const char *place = flags & M_FIRST ? "first" : flags & M_MIDDLE ? "middle" : flags & M_LAST ? "last" : "only";

	printf("%llu %c %s %s %u %u %u %u", (unsigned long long)(s->ns - trace[0].ns) / 1000, 'a' + s->side, whats[s->what],
	       place, s->qpn, s->psn, s->bytes, s->ackreq);
	tell_number(" ", flags & H_AETH, s->syndrome);
	tell_number(" ", flags & H_AETH, s->msn);
	printf(" %u %s\n", s->ecn, actions[s->action]);
}

int main(int argc, char **argv)
{
	uint32_t i;
	int c;

	while ((c = getopt(argc, argv, "a:b:r:")) != -1) {
		switch (c) {
		case 'a': socks[0] = tap(optarg); break;
		case 'b': socks[1] = tap(optarg); break;
		case 'r': parse_rule(optarg); break;
		default: vt_die(VT_SETUP, "observer -a NETDEV -b NETDEV [-r ACTION:FROM:WHAT:FIRST[-LAST][:PACKETS]]...");
		}
	}
	trace = calloc(MOST, sizeof(*trace));
	if (socks[0] < 0 || socks[1] < 0 || !trace)
		vt_die(VT_SETUP, "observer: two netdevs, and memory");
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	printf("# watching\n");
	fflush(stdout);
	run();
	for (i = 0; i < nr_seen; i++)
		tell(&trace[i]);
	printf("# packets=%u lost=%u coupled=%u broken=%u\n", nr_seen, lost(socks[0]) + lost(socks[1]), coupled, broken);
	return 0;
}
