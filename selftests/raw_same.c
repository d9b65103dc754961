// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * raw_same: a packet socket as the measure of raw packets.
 *
 *	raw_same -d DEVICE -i IP -n NAMESPACE [-s]
 *
 * The namespace is that of the device's netdev, veth0. (It is not started there, where sysfs has no counters.)
 * A sniffer and a packet socket hear at the same time, from when "# ready" was said until a line is read. Between an echo request
 * of 375 bytes and one of 376 they have to hear the same frames, as often. Checksums and segmentation are not to be left to
 * the netdev, for what both are shown of such frames is not yet what leaves.
 *
 * With -s: both send frames of all lengths up to those that are too long, and what one may the other one may.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <unistd.h>

#include "raw_parts.h"

enum { FIRST = 375, LAST = 376, FRAMES = 100000, SHOWN = 48, TAG = 4, MTU = 1500 };

static struct vt_dev dev;
static int fd;

static void socket_open(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, room = 64 << 20;

	fd = socket(AF_PACKET, SOCK_RAW, 0);
	at.sll_ifindex = if_nametoindex("veth0");
	if (fd < 0 || !at.sll_ifindex || setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)))
		vt_die(VT_SETUP, "packet socket: %s", strerror(errno));
}

/* --- what is heard ---------------------------------------------------------------- */

struct seen {
	uint64_t hash;
	uint32_t len;
	uint8_t head[SHOWN];
};

/* What has to be among them, or less is compared than is said */
enum kind { TAGGED, TO_GROUPS, FOR_OTHERS, FRAGMENTS, IPV6, TCP, ROCE, RAW, KINDS };

static const char *const kinds[KINDS] = {
	"with a VLAN tag", "to groups", "for somebody else", "that are fragments", "of IPv6", "of TCP", "of RoCE",
	"that are raw packets",
};

/* Of one listener, between the two that are marks */
struct heard {
	struct seen *frames;
	uint32_t n, of_kind[KINDS];
	bool begun, ended;
};

static bool is_mark(const uint8_t *data, uint32_t len, uint32_t wanted)
{
	/* IPv4, ICMP, echo request */
	return len == wanted && data[12] == 8 && !data[13] && data[23] == 1 && data[34] == 8;
}

static void count(struct heard *h, const uint8_t *data)
{
	static const uint8_t others[6] = { 2, 0, 0, 0, 0x77, 0x77 };
	uint16_t type = data[12] << 8 | data[13];

	h->of_kind[TAGGED] += type == 0x8100;
	h->of_kind[TO_GROUPS] += data[0] & 1;
	h->of_kind[FOR_OTHERS] += !memcmp(data, others, 6);
	h->of_kind[FRAGMENTS] += type == 0x0800 && data[20] & 0x20;
	h->of_kind[IPV6] += type == 0x86dd;
	h->of_kind[TCP] += type == 0x0800 && data[23] == 6;
	h->of_kind[ROCE] += type == 0x0800 && data[23] == 17 && (data[36] << 8 | data[37]) == 4791;
	h->of_kind[RAW] += !memcmp(data, mac_b, 6);
}

static void hear(struct heard *h, const uint8_t *data, uint32_t len)
{
	struct seen *s = &h->frames[h->n];
	uint32_t i;

	if (is_mark(data, len, LAST))
		h->ended = true;
	if (h->begun && !h->ended && h->n < FRAMES) {
		*s = (struct seen){ .len = len, .hash = len };
		for (i = 0; i < len; i++)
			s->hash = (s->hash ^ data[i]) * 0x100000001b3ull;
		memcpy(s->head, data, min(len, (uint32_t)SHOWN));
		h->n++;
		if (len >= 42)
			count(h, data);
	}
	if (is_mark(data, len, FIRST))
		h->begun = true;
}

/* The tag that the kernel has taken off is put back */
static uint32_t tag_back(struct msghdr *msg, uint8_t *frame, uint32_t len)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct tpacket_auxdata aux = {};
	uint16_t tag[2];

	if (c && c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
		return len;
	memmove(frame + 12 + TAG, frame + 12, len - 12);
	tag[0] = htons(aux.tp_vlan_tpid);
	tag[1] = htons(aux.tp_vlan_tci);
	memcpy(frame + 12, tag, sizeof(tag));
	return len + TAG;
}

static bool socket_hears(struct heard *h)
{
	static uint8_t frame[70000];
	char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct iovec iov = { frame, sizeof(frame) - TAG };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t len = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (len < 14)
		return false;
	hear(h, frame, tag_back(&msg, frame, len));
	return true;
}

static bool sniffer_hears(struct queue *q, struct heard *h)
{
	struct got g;

	if (!next(q, &g, 0))
		return false;
	if (g.status)
		vt_die(VT_WRONG, "the sniffer: %s", ibv_wc_status_str(g.status));
	hear(h, g.data, g.len);
	return true;
}

static int by_hash(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void show(const char *who, const struct seen *s)
{
	uint32_t i;

	printf("# only %s, %u bytes:", who, s->len);
	for (i = 0; i < min(s->len, (uint32_t)SHOWN); i++)
		printf("%s%02x", i % 4 ? "" : " ", s->head[i]);
	puts("");
}

/* How many frames one of them has heard that the other one has not */
static void compare(struct heard *sniffer, struct heard *sock, uint32_t more[2])
{
	uint32_t i = 0, k = 0;
	int order;

	qsort(sniffer->frames, sniffer->n, sizeof(struct seen), by_hash);
	qsort(sock->frames, sock->n, sizeof(struct seen), by_hash);
	while (i < sniffer->n || k < sock->n) {
		order = i == sniffer->n ? 1 : k == sock->n ? -1 : by_hash(&sniffer->frames[i], &sock->frames[k]);
		if (order < 0 && more[0]++ < 4)
			show("the sniffer", &sniffer->frames[i]);
		if (order > 0 && more[1]++ < 4)
			show("the packet socket", &sock->frames[k]);
		i += order <= 0;
		k += order >= 0;
	}
}

static void all_kinds(const struct heard *h)
{
	int i;

	for (i = 0; i < KINDS; i++)
		vt_check(h->of_kind[i], "frames %s: %u", kinds[i], h->of_kind[i]);
}

static long lost(void)
{
	return vt_counter(&dev, "out_of_buffer") + vt_counter(&dev, "rx_discarded_packets");
}

static void listen_on(void)
{
	struct heard sniffer = { calloc(FRAMES, sizeof(struct seen)) }, sock = { calloc(FRAMES, sizeof(struct seen)) };
	struct rule r = rule(IBV_FLOW_ATTR_SNIFFER, 0, 0);
	struct pollfd in = { .fd = 0, .events = POLLIN };
	uint32_t more[2] = {};
	struct ibv_flow *f;
	struct queue q;
	bool busy;
	long n;

	queue_open(&q, &dev, 0);
	f = flow(&q, &r);
	socket_open();
	n = lost();
	puts("# ready");
	fflush(stdout);
	do {
		busy = sniffer_hears(&q, &sniffer);
		busy |= socket_hears(&sock);
	} while (busy || !poll(&in, 1, 1));
	n = lost() - n;
	compare(&sniffer, &sock, more);
	printf("# the sniffer heard %u frames, the packet socket %u; %ld were lost\n", sniffer.n, sock.n, n);
	vt_check(sniffer.ended && sock.ended && sniffer.n > 100 && sock.n < FRAMES, "both heard the marks, and what is between them");
	all_kinds(&sock);
	vt_check(!more[0], "the sniffer hears nothing that the packet socket does not (%u)", more[0]);
	vt_check(more[1] <= n, "nor misses what that hears, but for want of a receive (%u, %ld)", more[1], n);
	end_flow(f);
	queue_close(&q);
}

/* --- what is sent ------------------------------------------------------------------ */

static struct queue out;

static bool socket_may(const struct frame *f)
{
	return send(fd, f->data, f->len, 0) == (ssize_t)f->len;
}

static bool queue_may(const struct frame *f)
{
	struct ibv_sge sge = { (uintptr_t)out.mr->addr, f->len, out.mr->lkey };
	struct ibv_send_wr *bad, wr = vt_request(&sge, SLOTS, IBV_WR_SEND);
	struct got g = {};

	memcpy(out.mr->addr, f->data, f->len);
	if (ibv_post_send(out.qp, &wr, &bad) || !next(&out, &g, 5))
		vt_die(VT_STALLED, "no completion of a send");
	if (!g.status)
		return true;
	/* It is in error, and so it begins anew */
	if (to_state(out.qp, IBV_QPS_RESET))
		vt_die(VT_WRONG, "to RESET: %s", strerror(errno));
	bring_up(out.qp);
	while (next(&out, &g, 0))
		;
	return false;
}

static void lengths(const char *what, int vlan, uint32_t most)
{
	uint32_t len, sent = 0, different = 0, longest = 0;
	bool may[2];
	struct frame f;

	for (len = 1; len <= MTU + 30; len++) {
		eth(&f, mac_b, vlan, TYPE);
		pad(&f, MTU + 30 - f.len, len);
		f.len = len;
		may[0] = queue_may(&f);
		may[1] = socket_may(&f);
		different += may[0] != may[1];
		sent += may[0];
		if (may[0])
			longest = len;
	}
	vt_check(!different, "%s: of %u lengths, %u that only one may send", what, len - 1, different);
	vt_check(longest == most && sent == most - 13, "%s: %u may be sent, up to %u bytes", what, sent, longest);
}

static void send_both(void)
{
	queue_begin(&out, &dev);
	out.qp = make_qp(&dev, ibv_cq_ex_to_cq(out.cq), 0, 0);
	if (!out.qp)
		vt_die(errno == EPERM ? VT_SETUP : VT_WRONG, "queue pair: %s", strerror(errno));
	bring_up(out.qp);
	socket_open();
	lengths("plain frames", -1, MTU + 14);
	lengths("frames with a tag", 5, MTU + 14 + TAG);
	queue_close(&out);
}

int main(int argc, char **argv)
{
	const char *name = NULL, *ip = NULL, *ns = NULL;
	bool sending = false;
	int opt;

	while ((opt = getopt(argc, argv, "d:i:n:s")) != -1) {
		switch (opt) {
		case 'd': name = optarg; break;
		case 'i': ip = optarg; break;
		case 'n': ns = optarg; break;
		case 's': sending = true; break;
		default: vt_die(VT_SETUP, "see the head of raw_same.c");
		}
	}
	if (!ns)
		vt_die(VT_SETUP, "no namespace");
	vt_open(&dev, name, ip, -1);
	vt_enter_netns(ns);
	if (sending)
		send_both();
	else
		listen_on();
	close(fd);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
