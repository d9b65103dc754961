// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * replay: queue pairs in the place of RDMA NICs whose packets others have captured (captured.h).
 *
 *	replay -d DEVICE -h NAMESPACE -n OTHER_NAMESPACE -i NETDEV -M MAC CASE
 *
 * DEVICE is that of the host NAMESPACE. The other end of each dialogue is played at NETDEV of the other namespace, the host
 * beside it; MAC is that of DEVICE's netdev. Both hosts have the addresses that were captured. (Only the first namespace, in
 * which this is called, has the counters in its sysfs.) CASE is
 *	a	what came to the addresses that are ends "a" of the dialogues
 *	b	the same with their ends "b"
 *
 * First the driver judges the ICRC of each packet that came to this end, as it was captured, and of the same with a bit
 * changed. The queue pairs that these were for do not exist here, and their numbers cannot be chosen. For what follows
 * packets are for a queue pair of ours, with a new ICRC, and otherwise as captured. Our queue pair posts
 * what the captured one has posted, gets the answers that that one has got, and has to send what that one has sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "replay_frames.h"
#include "vt.h"

/* of a message, and of messages at a time */
#define ROOM 4096
#define MESSAGES 64
#define GSI 1

static const char *device;
static double slow = 1;

static double patience(void)
{
	return 10 * slow;
}

/* --- the other end ------------------------------------------------------------------------------------------ */

static uint8_t our_mac[6], their_mac[6];
static int wire = -1;

static void open_wire(const char *netdev)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	struct ifreq req = {};

	addr.sll_ifindex = if_nametoindex(netdev);
	wire = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
	if (wire < 0 || bind(wire, (struct sockaddr *)&addr, sizeof(addr)))
		vt_die(VT_SETUP, "raw socket on %s: %s", netdev, strerror(errno));
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", netdev);
	if (ioctl(wire, SIOCGIFHWADDR, &req))
		vt_die(VT_SETUP, "MAC address of %s: %s", netdev, strerror(errno));
	memcpy(their_mac, req.ifr_hwaddr.sa_data, 6);
}

static void say(const struct packet *p)
{
	uint8_t frame[ETH_LEN + PACKET_MOST];

	memcpy(frame, our_mac, 6);
	memcpy(frame + 6, their_mac, 6);
	put16(frame + 12, ETH_P_IP);
	memcpy(frame + ETH_LEN, p->bytes, p->len);
	if (send(wire, frame, ETH_LEN + p->len, 0) != (ssize_t)(ETH_LEN + p->len))
		vt_die(VT_SETUP, "send: %s", strerror(errno));
}

/* the next packet of RoCE from @ip; for queue pair 1 (@mad) or for any other */
static bool hear(struct packet *p, const uint8_t *ip, bool mad)
{
	struct pollfd ready = { .fd = wire, .events = POLLIN };
	double end = vt_now() + patience();
	uint8_t frame[65536];
	ssize_t n;

	while (vt_now() < end) {
		if (poll(&ready, 1, 10) <= 0)
			continue;
		n = recv(wire, frame, sizeof(frame), 0);
		if (n < ETH_LEN + IP4_LEN + UDP_LEN + BTH_LEN + ICRC_LEN || n > ETH_LEN + PACKET_MOST ||
		    memcmp(frame + ETH_LEN + 12, ip, 4) || frame[ETH_LEN + 9] != IPPROTO_UDP ||
		    get16(frame + ETH_LEN + IP4_LEN + 2) != ROCE_PORT)
			continue;
		/* a short frame may be filled up */
		p->len = min((size_t)get16(frame + ETH_LEN + 2), (size_t)n - ETH_LEN);
		memcpy(p->bytes, frame + ETH_LEN, p->len);
		if ((bth_get(packet_bth(p)).qpn == GSI) == mad)
			return true;
	}
	return false;
}

/* --- dialogues ------------------------------------------------------------------------------------------------ */

struct dialogue {
	const char *name;
	const struct captured *packets;
	unsigned int count;
	/* of the ends: "a", "b" */
	const char *address[2];
};

#define DIALOGUE(x) .packets = x, .count = ARRAY_SIZE(x)

static const struct dialogue dialogues[] = {
	{ "Huawei", DIALOGUE(huawei), { "192.168.70.6", "192.168.70.4" } },
	{ "ConnectX", DIALOGUE(connectx), { "192.170.1.50", "192.170.1.2" } },
	{ "ConnectX-4 Lx", DIALOGUE(connectx4), { "192.168.250.117", "192.168.250.114" } },
	{ "notification", DIALOGUE(notification), { "10.0.18.1", "10.0.17.1" } },
};
enum { HUAWEI, CONNECTX, CONNECTX4, NOTIFICATION };

static bool is_answer(struct packet *p)
{
	return wire_opcode(packet_bth(p)[0]) & M_RESPONSE;
}

static uint32_t place(struct packet *p)
{
	return wire_opcode(packet_bth(p)[0]) & M_ANY;
}

/* --- the driver's judgement of ICRCs ------------------------------------------------------------------------- */

static const char icrc_counter[] = "rx_icrc_encapsulated", no_qp_counter[] = "rx_no_qp_packets";

static long grown(struct vt_dev *dev, const char *counter, long before, long wanted)
{
	double end = vt_now() + patience();
	long n;

	do
		n = vt_counter(dev, counter) - before;
	while (n < wanted && vt_now() < end);
	return n;
}

/* all that was for this end, but for what queue pair 1 would answer; how many that are */
static unsigned int say_all(const struct dialogue *d, char end, uint8_t change)
{
	unsigned int i, n = 0;
	struct packet p;

	for (i = 0; i < d->count; i++) {
		p = packet_captured(&d->packets[i]);
		if (d->packets[i].from == end || bth_get(packet_bth(&p)).qpn == GSI)
			continue;
		p.bytes[p.len - ICRC_LEN - 1] ^= change;
		say(&p);
		n++;
	}
	return n;
}

static void judge_icrcs(const struct dialogue *d, char end)
{
	struct vt_dev dev;
	long icrc, no_qp, wrong, right;
	unsigned int n;

	vt_open(&dev, device, d->address[end - 'a'], -1);
	icrc = vt_counter(&dev, icrc_counter);
	no_qp = vt_counter(&dev, no_qp_counter);
	n = say_all(d, end, 0);
	if (n) {
		right = grown(&dev, no_qp_counter, no_qp, n);
		wrong = vt_counter(&dev, icrc_counter) - icrc;
		vt_check(right == (long)n && !wrong, "%s, to %c: the driver finds the ICRC right in %ld packets of %u as captured, "
			 "and wrong in %ld", d->name, end, right, n, wrong);
		say_all(d, end, 0x04);
		wrong = grown(&dev, icrc_counter, icrc, n);
		vt_check(wrong == (long)n && vt_counter(&dev, no_qp_counter) - no_qp == right,
			 "%s, to %c: with a bit changed it finds %ld of %u wrong", d->name, end, wrong, n);
	}
	vt_close(&dev);
}

/* --- our end ---------------------------------------------------------------------------------------------------- */

static struct end {
	struct vt_dev dev;
	/* in the order of the wire */
	uint8_t ip[4];
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *sent, *received;
	unsigned int posted, completed, taken;
	/* of the messages that were posted, the last one's PSN */
	uint32_t last_psn[MESSAGES];
} e;

static void post_receives(void)
{
	struct ibv_recv_wr *bad, wr;
	struct ibv_sge sge;
	int i;

	for (i = 0; i < MESSAGES; i++) {
		sge = (struct ibv_sge){ (uintptr_t)e.received->addr + i * ROOM, ROOM, e.received->lkey };
		wr = (struct ibv_recv_wr){ .wr_id = i, .sg_list = &sge, .num_sge = 1 };
		if (ibv_post_recv(e.qp, &wr, &bad))
			vt_die(VT_SETUP, "post receive: %s", strerror(errno));
	}
}

/* with the device that is open */
static void make_end(const char *address)
{
	inet_pton(AF_INET, address, e.ip);
	e.send_cq = vt_create_cq(&e.dev, MESSAGES);
	e.recv_cq = vt_create_cq(&e.dev, MESSAGES);
	e.sent = vt_mr(&e.dev, MESSAGES * ROOM, IBV_ACCESS_LOCAL_WRITE);
	e.received = vt_mr(&e.dev, MESSAGES * ROOM, IBV_ACCESS_LOCAL_WRITE);
}

static void open_end(const struct dialogue *d, char end)
{
	const char *address = d->address[end - 'a'];

	memset(&e, 0, sizeof(e));
	vt_open(&e.dev, device, address, -1);
	make_end(address);
}

static void close_end(void)
{
	if ((e.qp && ibv_destroy_qp(e.qp)) || ibv_destroy_cq(e.send_cq) || ibv_destroy_cq(e.recv_cq))
		vt_die(VT_WRONG, "destroy: %s", strerror(errno));
	vt_mr_free(e.sent);
	vt_mr_free(e.received);
	vt_close(&e.dev);
}

/* a queue pair that believes to talk to the captured one; nothing is sent again while somebody looks */
static void connect_end(const char *peer, uint32_t qpn, uint32_t sq_psn, uint32_t rq_psn)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.send_cq, .recv_cq = e.recv_cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct vt_conn c = {
		.peer = { .qpn = qpn, .psn = rq_psn, .gid = vt_gid_of_ip(peer) },
		.sq_psn = sq_psn, .mtu = IBV_MTU_1024, .rd_atomic = 1, .timeout = 24, .retry_cnt = 7, .rnr_retry = 7,
	};

	e.qp = vt_create_qp(&e.dev, &init);
	if (vt_bring_up(e.qp, &e.dev, 0, &c))
		vt_die(VT_SETUP, "queue pair: %s", strerror(errno));
	post_receives();
}

static void post_message(struct ibv_sge sge, bool has_imm, uint32_t imm, uint32_t last_psn)
{
	struct ibv_send_wr *bad, wr = vt_request(&sge, e.posted, has_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);

	wr.imm_data = htonl(imm);
	e.last_psn[e.posted++] = last_psn;
	if (ibv_post_send(e.qp, &wr, &bad))
		vt_die(VT_WRONG, "post: %s", strerror(errno));
}

/* Everything up to @psn completes by now, and nothing else */
static bool completes_to(uint32_t psn)
{
	struct ibv_wc wc;

	for (; e.completed < e.posted && psn_diff(psn, e.last_psn[e.completed]) >= 0; e.completed++)
		if (!poll_one(e.send_cq, &wc, patience()) || wc.status || wc.wr_id != e.completed)
			return false;
	return !ibv_poll_cq(e.send_cq, 1, &wc);
}

/* --- messages of a dialogue ------------------------------------------------------------------------------------ */

struct message {
	uint8_t data[ROOM];
	uint32_t len, last_psn, imm;
	bool has_imm;
};

/* the message whose first packet is number @i: all packets of the same end but answers, to its last one */
static struct message message_at(const struct dialogue *d, unsigned int i)
{
	char from = d->packets[i].from;
	struct message m = {};
	struct packet p;

	for (; i < d->count; i++) {
		p = packet_captured(&d->packets[i]);
		if (d->packets[i].from != from || is_answer(&p))
			continue;
		memcpy(m.data + m.len, packet_payload(&p), packet_payload_len(&p));
		m.len += packet_payload_len(&p) - bth_get(packet_bth(&p)).pad;
		if (place(&p) & (M_LAST | M_ONLY))
			break;
	}
	m.last_psn = bth_get(packet_bth(&p)).psn;
	m.has_imm = wire_opcode(packet_bth(&p)[0]) & H_IMM;
	m.imm = m.has_imm ? get32(packet_bth(&p) + BTH_LEN) : 0;
	return m;
}

static void post_captured(const struct message *m)
{
	uint8_t *buf = (uint8_t *)e.sent->addr + e.posted * ROOM;

	memcpy(buf, m->data, m->len);
	post_message((struct ibv_sge){ (uintptr_t)buf, m->len, e.sent->lkey }, m->has_imm, m->imm, m->last_psn);
}

static bool arrives(const struct message *m)
{
	const uint8_t *buf = (uint8_t *)e.received->addr + e.taken * ROOM;
	struct ibv_wc wc;

	return poll_one(e.recv_cq, &wc, patience()) && !wc.status && wc.wr_id == e.taken++ && wc.byte_len == m->len &&
	       !!(wc.wc_flags & IBV_WC_WITH_IMM) == m->has_imm && (!m->has_imm || ntohl(wc.imm_data) == m->imm) &&
	       !memcmp(buf, m->data, m->len);
}

/* --- a whole dialogue ------------------------------------------------------------------------------------------ */

/* what was seen of one kind of our packets */
struct seen {
	unsigned int packets;
	bool missed, bad_icrc;
	uint32_t differences;
};

struct play {
	const struct dialogue *d;
	char end;
	uint32_t qpn;
	struct seen requests, answers;
	/* of the peer */
	unsigned int requests_taken, messages_taken, answers_taken;
	bool wrong_message, wrong_completion;
	/* captured answers of our end: that were compared already; that the NIC has sent without being asked */
	unsigned int compared_to, unasked;
};

/* Our next packet, beside the captured one of number @i */
static void compare(struct play *p, struct seen *s, unsigned int i)
{
	struct packet theirs = packet_captured(&p->d->packets[i]), ours;
	uint32_t differences;

	if (s->missed)
		return;
	if (!hear(&ours, e.ip, false)) {
		printf("# packet %u: nothing comes\n", i);
		s->missed = true;
		return;
	}
	s->packets++;
	s->bad_icrc |= !packet_icrc_ok(&ours) || wire_ip_sum(ours.bytes, IP4_LEN) != 0xffff;
	differences = packet_differences(&theirs, &ours);
	if (differences & ~s->differences)
		printf("# packet %u differs in: %s\n", i, packet_field_names(differences & ~s->differences));
	s->differences |= differences;
}

/* The answer of our end to request number @i; those before it that nobody has asked for are counted */
static void compare_answer(struct play *p, unsigned int i, uint32_t psn)
{
	struct packet c;

	for (i = max(i + 1, p->compared_to); i < p->d->count; i++) {
		c = packet_captured(&p->d->packets[i]);
		if (p->d->packets[i].from != p->end || !is_answer(&c))
			continue;
		if (bth_get(packet_bth(&c)).psn == psn)
			break;
		p->unasked++;
	}
	p->compared_to = i + 1;
	if (i < p->d->count)
		compare(p, &p->answers, i);
}

/* A packet of the peer's; who has sent it waits for the answer where it asks for one */
static void inject(struct play *p, unsigned int i)
{
	struct packet c = packet_captured(&p->d->packets[i]);
	uint32_t psn = bth_get(packet_bth(&c)).psn;
	static unsigned int first;
	struct message m;

	packet_readdress(&c, p->qpn);
	say(&c);
	if (is_answer(&c)) {
		p->answers_taken++;
		p->wrong_completion |= !completes_to(psn);
		return;
	}
	p->requests_taken++;
	if (place(&c) & (M_FIRST | M_ONLY))
		first = i;
	if (bth_get(packet_bth(&c)).ackreq)
		compare_answer(p, i, psn);
	if (place(&c) & (M_LAST | M_ONLY)) {
		m = message_at(p->d, first);
		p->wrong_message |= !arrives(&m);
		p->messages_taken++;
	}
}

static void send_ours(struct play *p, unsigned int i)
{
	struct packet c = packet_captured(&p->d->packets[i]);
	struct message m;

	if (is_answer(&c))
		return;
	if (place(&c) & (M_FIRST | M_ONLY)) {
		m = message_at(p->d, i);
		post_captured(&m);
	}
	compare(p, &p->requests, i);
}

/* the number and the PSN of the first request of an end */
static void first_request(const struct dialogue *d, char end, uint32_t *qpn, uint32_t *psn)
{
	struct packet c;
	unsigned int i;

	for (i = 0; i < d->count; i++) {
		c = packet_captured(&d->packets[i]);
		if (d->packets[i].from == end && !is_answer(&c))
			break;
	}
	*qpn = bth_get(packet_bth(&c)).qpn;
	*psn = bth_get(packet_bth(&c)).psn;
}

/*
 * What sroce sends otherwise. To all: an identification that counts, a source port that is a hash and not the number of
 * the queue pair, and a UDP checksum, which NICs leave 0. An ACK tells of no credits, and queues must not mark it (ECN).
 */
#define ALWAYS (1u << F_IP_ID | 1u << F_SPORT | 1u << F_UDP_SUM)
#define ANSWERS (ALWAYS | 1u << F_TOS | 1u << F_CREDITS)
/* Huawei's has a bit in the reserved byte of each request, and once it wants an ACK for the first packet of a message */
#define HUAWEI_REQUESTS (ALWAYS | 1u << F_RESERVED)

/* @wanted has ALWAYS in it; one packet's numbers may be the same by chance */
static void conclude(const struct seen *s, const char *what, const struct play *p, uint32_t wanted)
{
	vt_check(s->packets && !s->missed && !s->bad_icrc && (s->differences | ALWAYS) == wanted,
		 "%s, as %c: %u %s are those captured, ICRCs right, but for: %s", p->d->name, p->end, s->packets, what,
		 packet_field_names(s->differences));
}

static void play(const struct dialogue *d, char end, uint32_t request_differences, uint32_t answer_differences)
{
	struct play p = { .d = d, .end = end };
	uint32_t peer_qpn, sq_psn, own_qpn, rq_psn;
	unsigned int i;

	open_end(d, end);
	first_request(d, end, &peer_qpn, &sq_psn);
	first_request(d, 'a' + 'b' - end, &own_qpn, &rq_psn);
	connect_end(d->address['b' - end], peer_qpn, sq_psn, rq_psn);
	p.qpn = e.qp->qp_num;
	for (i = 0; i < d->count; i++)
		if (d->packets[i].from == end)
			send_ours(&p, i);
		else
			inject(&p, i);
	vt_check(p.messages_taken && !p.wrong_message, "%s, as %c: %u captured requests are taken as %u messages: data, length, "
		 "immediate data", d->name, end, p.requests_taken, p.messages_taken);
	printf("# %s, as %c: %u answers more, to packets that ask for none, were captured\n", d->name, end, p.unasked);
	conclude(&p.answers, "answers to them", &p, answer_differences);
	conclude(&p.requests, "requests", &p, request_differences);
	vt_check(p.answers_taken && !p.wrong_completion && e.completed == e.posted,
		 "%s, as %c: %u captured answers complete %u messages, none before its time", d->name, end, p.answers_taken,
		 e.completed);
	close_end();
}

/* --- ConnectX and an FPGA ------------------------------------------------------------------------------------- */

/* what was captured, and, of the host's requests, what is not there */
enum { C_REQ, C_RTU, C_SEND, C_ACK_2, C_ACK_4 };
/* the messages that these two ACKs are for; the numbers say so, what they were is not there */
#define ASKED 4

static struct packet connectx_packet(unsigned int i)
{
	return packet_captured(&connectx[i]);
}

/* A SEND of some bytes, from the FPGA, with a header like that of the host's ACK @ack */
static struct packet invented_request(struct packet *ack, uint32_t psn, bool ackreq)
{
	const struct bth bth = { .opcode = 0x04, .migreq = true, .pkey = 0xffff, .qpn = e.qp->qp_num, .ackreq = ackreq,
				 .psn = psn };
	struct packet p = { .len = IP4_LEN + UDP_LEN + BTH_LEN + 16 + ICRC_LEN };
	uint8_t *ip = p.bytes;

	memcpy(ip, ack->bytes, IP4_LEN + UDP_LEN);
	memcpy(ip + 12, ack->bytes + 16, 4);
	memcpy(ip + 16, ack->bytes + 12, 4);
	put16(ip + 2, p.len);
	put16(ip + 10, 0);
	put16(ip + 10, ~wire_ip_sum(ip, IP4_LEN));
	put16(ip + IP4_LEN + 4, p.len - IP4_LEN);
	bth_put(packet_bth(&p), &bth);
	packet_seal(&p);
	return p;
}

/* In the place of the host: the SEND that it has sent, and its two ACKs for requests that are ours */
static void as_connectx(uint32_t request_differences, uint32_t answer_differences)
{
	struct play p = { .d = &dialogues[CONNECTX], .end = 'b' };
	struct packet send = connectx_packet(C_SEND), ack = connectx_packet(C_ACK_2), q;
	uint32_t psn = bth_get(packet_bth(&ack)).psn - 1;
	int i;

	open_end(p.d, p.end);
	connect_end(p.d->address[0], bth_get(packet_bth(&send)).qpn, bth_get(packet_bth(&send)).psn, psn);
	send_ours(&p, C_SEND);
	conclude(&p.requests, "request", &p, request_differences);
	for (i = 0; i < ASKED; i++) {
		q = invented_request(&ack, psn + i, i & 1);
		say(&q);
		if (i & 1)
			compare(&p, &p.answers, i == 1 ? C_ACK_2 : C_ACK_4);
	}
	conclude(&p.answers, "ACKs for requests that were not captured", &p, answer_differences);
	close_end();
}

/* --- the connection managers ----------------------------------------------------------------------------------- */

enum { CM_REP = 0x13, AT_ATTRIBUTE = 16, AT_LOCAL = 24, AT_REMOTE = 28, REP_QPN = 36, REP_PSN = 44, REQ_SERVICE = 38 };

static uint8_t *mad_of(struct packet *p)
{
	return packet_payload(p);
}

static bool event_comes(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted, struct rdma_cm_event **event)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };

	if (poll(&ready, 1, patience() * 1000) != 1 || rdma_get_cm_event(channel, event))
		return false;
	if ((*event)->event == wanted)
		return true;
	printf("# an event: %s\n", rdma_event_str((*event)->event));
	return false;
}

static struct rdma_cm_id *listen_for(struct packet *req, struct rdma_event_channel *channel)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rdma_cm_id *id;

	memcpy(&addr.sin_addr, req->bytes + 16, 4);
	addr.sin_port = htons(get16(mad_of(req) + REQ_SERVICE));
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, (struct sockaddr *)&addr) ||
	    rdma_listen(id, 1))
		vt_die(VT_SETUP, "listen: %s", strerror(errno));
	return id;
}

static bool accept_with_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.send_cq, .recv_cq = e.recv_cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7 };

	if (rdma_create_qp(id, e.dev.pd, &init))
		return false;
	e.qp = id->qp;
	post_receives();
	return !rdma_accept(id, &param);
}

/* what the connection that came about does: the captured SEND, and the captured ACKs for four requests of ours */
static void use_connection(uint32_t sq_psn, uint32_t rq_psn)
{
	struct packet ack[2] = { connectx_packet(C_ACK_2), connectx_packet(C_ACK_4) }, send = connectx_packet(C_SEND), ours;
	struct message m = message_at(&dialogues[CONNECTX], C_SEND);
	bool ok = true, done[2];
	struct bth bth;
	int i;

	for (i = 0; i < ASKED; i++)
		post_message((struct ibv_sge){ (uintptr_t)e.sent->addr, 64, e.sent->lkey }, false, 0, sq_psn + i);
	for (i = 0; i < ASKED; i++) {
		ok &= hear(&ours, e.ip, false) && packet_icrc_ok(&ours);
		bth = bth_get(packet_bth(&ours));
		ok &= bth.psn == sq_psn + i && bth.qpn == 0x144;
	}
	vt_check(ok, "ConnectX, as a: our requests go to the queue pair and begin with the PSN that its REQ says");
	put24(packet_bth(&send) + 9, rq_psn);
	packet_readdress(&send, e.qp->qp_num);
	say(&send);
	ok = hear(&ours, e.ip, false) && packet_icrc_ok(&ours);
	bth = bth_get(packet_bth(&ours));
	vt_check(ok && bth.opcode == 0x11 && bth.psn == rq_psn && get32(packet_bth(&ours) + BTH_LEN) >> 29 == 0 &&
		 get24(packet_bth(&ours) + BTH_LEN + 1) == 1 && arrives(&m),
		 "ConnectX, as a: its SEND, with the PSN that our REP says, is acknowledged, and arrives");
	for (i = 0; i < 2; i++) {
		packet_readdress(&ack[i], e.qp->qp_num);
		say(&ack[i]);
		done[i] = completes_to(bth_get(packet_bth(&ack[i])).psn) && e.completed == 2u * (i + 1);
	}
	vt_check(done[0] && done[1], "ConnectX, as a: its two ACKs complete two of our requests each");
}

/* In the place of the FPGA, with rdma_cm: the REQ is exactly as it was captured */
static void connect_to_us(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct packet req = connectx_packet(C_REQ), rtu = connectx_packet(C_RTU), rep = {};
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener, *id;
	bool ok;

	listener = listen_for(&req, channel);
	say(&req);
	ok = event_comes(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &event);
	vt_check(ok && event->param.conn.qp_num == 0x144 && event->param.conn.retry_count == 7,
		 "ConnectX, as a: rdma_cm takes its REQ");
	if (!ok)
		return;
	id = event->id;
	rdma_ack_cm_event(event);
	/* rdma_cm has opened the device for itself */
	memset(&e, 0, sizeof(e));
	e.dev.ctx = id->verbs;
	e.dev.pd = ibv_alloc_pd(id->verbs);
	make_end(dialogues[CONNECTX].address[0]);
	ok = accept_with_qp(id) && hear(&rep, e.ip, true) && get16(mad_of(&rep) + AT_ATTRIBUTE) == CM_REP &&
	     !memcmp(mad_of(&rep) + AT_REMOTE, mad_of(&req) + AT_LOCAL, 4) && get24(mad_of(&rep) + REP_QPN) == id->qp->qp_num;
	vt_check(ok, "ConnectX, as a: our REP is for it");
	memcpy(mad_of(&rtu) + AT_REMOTE, mad_of(&rep) + AT_LOCAL, 4);
	packet_seal(&rtu);
	say(&rtu);
	ok &= event_comes(channel, RDMA_CM_EVENT_ESTABLISHED, &event);
	vt_check(ok, "ConnectX, as a: with its RTU the connection is established");
	if (ok) {
		rdma_ack_cm_event(event);
		use_connection(get24(mad_of(&req) + 68), get24(mad_of(&rep) + REP_PSN));
	}
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
}

/* --- single packets ---------------------------------------------------------------------------------------------- */

static void single_ack(void)
{
	const struct dialogue *d = &dialogues[CONNECTX4];
	struct packet ack = packet_captured(d->packets);
	uint32_t psn = bth_get(packet_bth(&ack)).psn;

	open_end(d, 'a');
	connect_end(d->address[1], 0x1000, psn, 0);
	post_message((struct ibv_sge){ (uintptr_t)e.sent->addr, 64, e.sent->lkey }, false, 0, psn);
	packet_readdress(&ack, e.qp->qp_num);
	hear(&(struct packet){}, e.ip, false);
	say(&ack);
	vt_check(completes_to(psn) && e.completed == 1, "%s, as a: its ACK completes a request of that PSN", d->name);
	close_end();
}

static void single_notification(void)
{
	const struct dialogue *d = &dialogues[NOTIFICATION];
	struct packet cnp = packet_captured(d->packets);
	long before;

	open_end(d, 'a');
	connect_end(d->address[1], 0x1000, 0, 0);
	before = vt_counter(&e.dev, "rp_cnp_handled");
	packet_readdress(&cnp, e.qp->qp_num);
	say(&cnp);
	vt_check(grown(&e.dev, "rp_cnp_handled", before, 1) == 1, "%s, as a: it is handled", d->name);
	close_end();
}

/* --- set-up -------------------------------------------------------------------------------------------------------- */

static void as_a(void)
{
	play(&dialogues[HUAWEI], 'a', HUAWEI_REQUESTS | 1u << F_ACKREQ, ANSWERS);
	connect_to_us();
	single_ack();
	single_notification();
}

static void as_b(void)
{
	play(&dialogues[HUAWEI], 'b', HUAWEI_REQUESTS, ANSWERS);
	as_connectx(ALWAYS, ANSWERS);
}

int main(int argc, char **argv)
{
	const char *ours = NULL, *theirs = NULL, *netdev = NULL, *mac = "";
	unsigned int i;
	int c;

	while ((c = getopt(argc, argv, "d:h:n:i:M:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'h': ours = optarg; break;
		case 'n': theirs = optarg; break;
		case 'i': netdev = optarg; break;
		case 'M': mac = optarg; break;
		default: vt_die(VT_SETUP, "see the top of replay.c");
		}
	}
	if (!device || !ours || !theirs || !netdev || optind + 1 != argc || (strcmp(argv[optind], "a") && strcmp(argv[optind], "b")) ||
	    sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", our_mac, our_mac + 1, our_mac + 2, our_mac + 3, our_mac + 4,
		   our_mac + 5) != 6)
		vt_die(VT_SETUP, "see the top of replay.c");
	if (getenv("SLOW"))
		slow = atof(getenv("SLOW"));
	/* a socket stays in the namespace that it was made in */
	vt_enter_netns(theirs);
	open_wire(netdev);
	vt_enter_netns(ours);
	for (i = 0; i < ARRAY_SIZE(dialogues); i++)
		judge_icrcs(&dialogues[i], *argv[optind]);
	if (*argv[optind] == 'a')
		as_a();
	else
		as_b();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
