// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * badcm: messages of connection managers that nobody should send, about connections that there are.
 *
 *	badcm -l -s IP                                the host that they are sent to
 *	badcm -i NETDEV -s OUR_IP -x OTHER_IP -D TARGET_IP -M TARGET_MAC -S OUR_MAC [-n COUNT] [-r SEED]
 *
 * The second one makes connections to the first, some of which are never answered, and listens to
 * what the connection managers of the two hosts say. So it knows their ids. Then it sends
 * COUNT messages of every kind in every state, with right and with wrong ids, as they were, changed or cut
 * short, from its own address and from another one, single and in trains. Of connections that shall survive it
 * sends nothing that ends one: a connection manager believes whoever knows the ids, and the numbers of the
 * queue pairs (Documentation/security.md).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vt.h"
#include "wire.h"

/* connections that are to survive; that never answers; that accepts everybody */
enum { PORT_GOOD = 7470, PORT_MUTE, PORT_OPEN, PORTS = 3 };

#define GOOD 6
#define WAITING 3
#define MAD_LEN 256
/* most connections that a port has at a time */
#define SERVED 64
#define RECVS 16

enum {
	CM_REQ = 0x10, CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP,
	CM_LAP, CM_APR, CM_KINDS = CM_APR - CM_REQ + 1,
};

/* where a message has what */
enum {
	AT_ATTRIBUTE = 16, AT_LOCAL = 24, AT_REMOTE = 28, AT_BODY = 32,
	AT_REQ_SERVICE_PORT = 38, AT_REQ_GUID = 40, AT_REQ_QPN = 56, AT_DREQ_QPN = 32,
};

/* --- the host that they are sent to ---------------------------------------------------- */

static int served[PORTS];

static void end_served(struct rdma_cm_id *id)
{
	intptr_t port = (intptr_t)id->context;

	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	served[port]--;
}

static int accept_it(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ibv_recv_wr wr = {}, *bad;
	int i;

	if (rdma_create_qp(id, NULL, &init))
		return -1;
	for (i = 0; i < RECVS; i++)
		if (ibv_post_recv(id->qp, &wr, &bad))
			return -1;
	return rdma_accept(id, &param);
}

/* @id is a new one, of the port that its context says */
static void requested(struct rdma_cm_id *id)
{
	intptr_t port = (intptr_t)id->context;

	if (served[port]++ >= SERVED)
		rdma_reject(id, NULL, 0);
	else if (port == PORT_MUTE - PORT_GOOD || !accept_it(id))
		return;
	end_served(id);
}

static void serve(const char *ip)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *event;
	enum rdma_cm_event_type what;
	intptr_t i;

	inet_pton(AF_INET, ip, &addr.sin_addr);
	for (i = 0; i < PORTS; i++) {
		addr.sin_port = htons(PORT_GOOD + i);
		if (!channel || rdma_create_id(channel, &listener, (void *)i, RDMA_PS_TCP) ||
		    rdma_bind_addr(listener, (struct sockaddr *)&addr) || rdma_listen(listener, 128))
			vt_die(VT_SETUP, "listen: %s", strerror(errno));
	}
	printf("ready\n");
	fflush(stdout);
	while (!rdma_get_cm_event(channel, &event)) {
		what = event->event;
		id = event->id;
		rdma_ack_cm_event(event);
		switch (what) {
		case RDMA_CM_EVENT_CONNECT_REQUEST: requested(id); break;
		case RDMA_CM_EVENT_ESTABLISHED: break;
		default: end_served(id);
		}
	}
	vt_die(VT_SETUP, "events: %s", strerror(errno));
}

/* --- our connections --------------------------------------------------------------------- */

struct connection {
	struct rdma_cm_id *id;
	uint32_t qpn;
	/* what was seen of it */
	uint8_t req[MAD_LEN], rep[MAD_LEN], rtu[MAD_LEN];
	bool has_req, has_rep, has_rtu;
};

/* the last one of @good is not meant to survive */
static struct connection good[GOOD + 1], waiting[WAITING];
static pid_t waiters[WAITING];
static const char *target_ip;

static int connect_to(int port, struct rdma_cm_id **id)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = RECVS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	char service[8];
	int err;

	snprintf(service, sizeof(service), "%d", port);
	if (rdma_getaddrinfo(target_ip, service, &hints, &res))
		return -1;
	err = rdma_create_ep(id, res, NULL, &init);
	rdma_freeaddrinfo(res);
	return err ? err : rdma_connect(*id, &param);
}

static void make_connections(void)
{
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i <= GOOD; i++) {
		if (connect_to(PORT_GOOD, &good[i].id))
			vt_die(VT_SETUP, "connect: %s", strerror(errno));
		good[i].qpn = good[i].id->qp->qp_num;
	}
	for (i = 0; i < WAITING; i++) {
		waiters[i] = fork();
		if (!waiters[i]) {
			connect_to(PORT_MUTE, &id);
			pause();
		}
	}
}

/* a message arrives at the other end's queue pair */
static bool works(struct connection *c)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	double end = vt_now() + 30;
	struct ibv_wc wc;
	int n = 0;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		return false;
	while (!n && vt_now() < end)
		n = ibv_poll_cq(c->id->send_cq, 1, &wc);
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

/* --- what is said ------------------------------------------------------------------------ */

static struct wire_path path;
static uint8_t other_ip[16];
static int fd, train_fd;
static struct vt_rng rng;

/* what a message is about, as far as its connection manager knows */
enum { ABOUT_NOBODY, ABOUT_HALF, ABOUT_LIVE, ABOUT_WAITING, ABOUT_NEW, REPEATED, ABOUTS };

#define KIND(k) (1 << ((k) - CM_REQ))
#define ALL_KINDS ((1 << CM_KINDS) - 1)

/* the kinds of messages that are sent about each; the rest would end what is to survive */
static const struct {
	const char *name;
	uint32_t kinds;
} abouts[ABOUTS] = {
	[ABOUT_NOBODY] = { "nobody", ALL_KINDS },
	[ABOUT_HALF] = { "a live one, ids half right", ALL_KINDS & ~KIND(CM_REQ) },
	[ABOUT_LIVE] = { "a live one", ALL_KINDS & ~(KIND(CM_REQ) | KIND(CM_REJ)) },
	[ABOUT_WAITING] = { "one that is not answered", ALL_KINDS },
	[ABOUT_NEW] = { "a new one", KIND(CM_REQ) },
	[REPEATED] = { "a live one, repeated", KIND(CM_REQ) | KIND(CM_REP) | KIND(CM_RTU) },
};

static unsigned long answers[CM_KINDS], sent[ABOUTS][CM_KINDS], trains;

/* the message in a frame, and who has sent it; NULL for anything else */
static const uint8_t *message_of(const uint8_t *frame, ssize_t len, bool *ours)
{
	const uint8_t *ip = frame + ETH_LEN, *bth = ip + 20 + UDP_LEN, *mad = bth + BTH_LEN + 8;

	if (len < ETH_LEN + 20 + UDP_LEN + BTH_LEN + 8 + MAD_LEN || get16(frame + 12) != ETH_P_IP || ip[0] != 0x45 ||
	    ip[9] != IPPROTO_UDP || get16(ip + 22) != ROCE_PORT || get24(bth + 5) != 1 || mad[1] != 7)
		return NULL;
	*ours = !memcmp(ip + 12, path.saddr, 4);
	return mad;
}

static void learn(const uint8_t *mad, bool ours)
{
	uint16_t kind = get16(mad + AT_ATTRIBUTE);
	struct connection *c;
	int i;

	if (kind < CM_REQ || kind > CM_APR)
		return;
	answers[kind - CM_REQ] += !ours;
	for (i = 0; i < GOOD + 1 + WAITING; i++) {
		c = i <= GOOD ? &good[i] : &waiting[i - GOOD - 1];
		if (kind == CM_REQ && ours && !c->has_req &&
		    (i > GOOD ? get16(mad + AT_REQ_SERVICE_PORT) == PORT_MUTE : get24(mad + AT_REQ_QPN) == c->qpn)) {
			memcpy(c->req, mad, MAD_LEN);
			c->has_req = true;
			return;
		}
		if (!c->has_req)
			continue;
		if (kind == CM_REQ && ours && !memcmp(mad + AT_LOCAL, c->req + AT_LOCAL, 4))
			return;
		if (kind == CM_REP && !ours && !memcmp(mad + AT_REMOTE, c->req + AT_LOCAL, 4)) {
			memcpy(c->rep, mad, MAD_LEN);
			c->has_rep = true;
		} else if (kind == CM_RTU && ours && !memcmp(mad + AT_LOCAL, c->req + AT_LOCAL, 4)) {
			memcpy(c->rtu, mad, MAD_LEN);
			c->has_rtu = true;
		}
	}
}

static void listen_to_them(void)
{
	uint8_t frame[2048];
	const uint8_t *mad;
	ssize_t n;
	bool ours;

	while ((n = recv(fd, frame, sizeof(frame), MSG_DONTWAIT)) > 0) {
		mad = message_of(frame, n, &ours);
		if (mad)
			learn(mad, ours);
	}
}

static bool know_all(void)
{
	int i;

	for (i = 0; i <= GOOD; i++)
		if (!good[i].has_rtu || !good[i].has_rep)
			return false;
	for (i = 0; i < WAITING; i++)
		if (!waiting[i].has_req)
			return false;
	return true;
}

/* --- what nobody should say ------------------------------------------------------------- */

static void random_bytes(uint8_t *p, size_t len)
{
	while (len--)
		*p++ = vt_rand(&rng);
}

#define DATAGRAM_LEN (BTH_LEN + 8 + MAD_LEN)

/* a message as a datagram for queue pair 1: its length, without the ICRC */
static size_t put_datagram(uint8_t roce[DATAGRAM_LEN], const uint8_t *mad, size_t len)
{
	struct bth bth = { .opcode = 0x64, .migreq = true, .pkey = 0xffff, .qpn = 1, .pad = -len & 3 };

	bth.psn = vt_rand(&rng) & 0xffffff;
	bth_put(roce, &bth);
	put32(roce + BTH_LEN, 0x80010000);
	put32(roce + BTH_LEN + 4, 1);
	memcpy(roce + BTH_LEN + 8, mad, len);
	memset(roce + BTH_LEN + 8 + len, 0, bth.pad);
	return BTH_LEN + 8 + len + bth.pad;
}

static void send_all(int to, const void *frame, size_t n)
{
	while (send(to, frame, n, 0) < 0 && (errno == ENOBUFS || errno == EAGAIN))
		usleep(1000);
}

static struct wire_path path_from(bool from_other)
{
	struct wire_path from = path;

	if (from_other)
		memcpy(from.saddr, other_ip, 4);
	return from;
}

static void send_mad(const uint8_t *mad, size_t len, bool from_other)
{
	struct wire_path from = path_from(from_other);
	uint8_t roce[DATAGRAM_LEN], frame[1024];

	send_all(fd, frame, wire_frame(frame, &from, roce, put_datagram(roce, mad, len)));
}

#define TRAIN 16

/* whole messages in one buffer that has one header; the identification counts on from packet to packet */
static void send_train(const uint8_t mads[][MAD_LEN], unsigned int n, bool from_other)
{
	struct wire_path from = path_from(from_other);
	struct wire_train train = {};
	uint8_t roce[DATAGRAM_LEN];
	unsigned int i;
	size_t len = 0;

	from.ip_id = vt_rand(&rng);
	for (i = 0; i < n; i++, from.ip_id++)
		len = wire_train_add(&train, &from, roce, put_datagram(roce, mads[i], MAD_LEN));
	send_all(train_fd, &train, len);
	trains++;
}

/* ids of nobody */
static void strange_ids(uint8_t *mad)
{
	put32(mad + AT_LOCAL, vt_below(&rng, 2) ? vt_below(&rng, 64) : vt_rand(&rng));
	put32(mad + AT_REMOTE, vt_below(&rng, 2) ? vt_below(&rng, 64) : vt_rand(&rng));
}

/*
 * A request to be connected, like the one of @c but by a stranger: it neither repeats that one nor is about
 * the same queue pair, which would end the connection as a stale one.
 */
static void stranger_asks(uint8_t *mad, const struct connection *c)
{
	memcpy(mad, c->req, MAD_LEN);
	strange_ids(mad);
	random_bytes(mad + AT_REQ_GUID, 8);
	put24(mad + AT_REQ_QPN, vt_rand(&rng));
	put16(mad + AT_REQ_SERVICE_PORT, PORT_MUTE + vt_below(&rng, 3));
}

/*
 * About a connection that shall survive, with both ids right: whatever does not end it. That are all but a REJ;
 * a REQ, which is refused in the name of these ids; and a DREQ for its queue pair.
 */
static void about_survivor(uint8_t *mad, const struct connection *c)
{
	static const uint8_t kinds[] = {
		CM_MRA, CM_REP, CM_RTU, CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP, CM_LAP, CM_APR,
	};
	uint16_t kind = kinds[vt_below(&rng, ARRAY_SIZE(kinds))];

	random_bytes(mad + AT_BODY, MAD_LEN - AT_BODY);
	if (kind == CM_REP)
		memcpy(mad, c->rep, MAD_LEN);
	put16(mad + AT_ATTRIBUTE, kind);
	put32(mad + AT_LOCAL, get32(c->req + AT_LOCAL));
	put32(mad + AT_REMOTE, get32(c->rep + AT_LOCAL));
	if (kind == CM_DREQ && get24(mad + AT_DREQ_QPN) == get24(c->rep + 36))
		mad[AT_DREQ_QPN] ^= 0x80;
	/* SIDR: a request id, and no connection */
	if (kind == CM_SIDR_REQ || kind == CM_SIDR_REP)
		strange_ids(mad);
}

/* About one that may end: everything */
static void about_waiting(uint8_t *mad, const struct connection *c)
{
	if (vt_below(&rng, 2))
		memcpy(mad, c->req, MAD_LEN);
	else
		random_bytes(mad + AT_BODY, MAD_LEN - AT_BODY);
	put16(mad + AT_ATTRIBUTE, CM_REQ + vt_below(&rng, CM_KINDS));
	strange_ids(mad);
	if (vt_below(&rng, 4))
		put32(mad + AT_LOCAL, get32(c->req + AT_LOCAL));
}

/* One id is right, and the other is not, or they are the wrong way round */
static void half_right(uint8_t *mad, const struct connection *c)
{
	uint16_t kind = CM_REQ + vt_below(&rng, CM_KINDS);

	random_bytes(mad + AT_BODY, MAD_LEN - AT_BODY);
	/* with the one id that it has it would be a duplicate, or refused */
	if (kind == CM_REQ)
		kind = CM_REJ;
	put16(mad + AT_ATTRIBUTE, kind);
	strange_ids(mad);
	switch (vt_below(&rng, 3)) {
	case 0:
		put32(mad + AT_LOCAL, get32(c->req + AT_LOCAL));
		put32(mad + AT_REMOTE, get32(c->rep + AT_LOCAL) ^ (1 + vt_below(&rng, 0xffff)));
		break;
	case 1:
		put32(mad + AT_LOCAL, get32(c->req + AT_LOCAL) ^ (1 + vt_below(&rng, 0xffff)));
		put32(mad + AT_REMOTE, get32(c->rep + AT_LOCAL));
		break;
	case 2:
		put32(mad + AT_LOCAL, get32(c->rep + AT_LOCAL));
		put32(mad + AT_REMOTE, get32(c->req + AT_LOCAL));
		break;
	}
}

static void repeat(uint8_t *mad, const struct connection *c)
{
	memcpy(mad, vt_below(&rng, 2) ? c->req : vt_below(&rng, 2) ? c->rtu : c->rep, MAD_LEN);
}

static void nonsense(uint8_t *mad)
{
	random_bytes(mad + AT_BODY, MAD_LEN - AT_BODY);
	put16(mad + AT_ATTRIBUTE, CM_REQ + vt_below(&rng, CM_KINDS));
	strange_ids(mad);
	if (!vt_below(&rng, 4))
		random_bytes(mad, 24);
}

/* any message that may be sent; what it is about */
static int make_message(uint8_t *mad)
{
	const struct connection *c = &good[vt_below(&rng, GOOD)];

	memset(mad, 0, MAD_LEN);
	memcpy(mad, (uint8_t[]){ 1, 7, 2, 3 }, 4);
	random_bytes(mad + 8, 8);
	switch (vt_below(&rng, 8)) {
	default: nonsense(mad); return ABOUT_NOBODY;
	case 1: half_right(mad, c); return ABOUT_HALF;
	case 2: case 3: about_survivor(mad, c); return ABOUT_LIVE;
	case 4: case 5: about_waiting(mad, &waiting[vt_below(&rng, WAITING)]); return ABOUT_WAITING;
	case 6: stranger_asks(mad, c); return ABOUT_NEW;
	case 7: repeat(mad, c); return REPEATED;
	}
}

static void shape(uint8_t *mad)
{
	int about = make_message(mad);
	uint32_t kind;

	/* what is not there any more is zero */
	if (!vt_below(&rng, 16))
		memset(mad + AT_BODY, 0, MAD_LEN - AT_BODY);
	kind = get16(mad + AT_ATTRIBUTE) - CM_REQ;
	if (kind < CM_KINDS)
		sent[about][kind]++;
}

/* One message, or a train of them: how many */
static unsigned int shoot(void)
{
	uint8_t mads[TRAIN][MAD_LEN];
	unsigned int i, n = vt_below(&rng, 8) ? 1 : 2 + vt_below(&rng, TRAIN - 1);
	bool from_other = vt_below(&rng, 2);

	for (i = 0; i < n; i++)
		shape(mads[i]);
	if (n > 1)
		send_train(mads, n, from_other);
	else /* or the datagram is too short */
		send_mad(mads[0], vt_below(&rng, 32) ? MAD_LEN : vt_below(&rng, MAD_LEN), from_other);
	return n;
}

/* --- afterwards ---------------------------------------------------------------------------- */

static int failures;

static void verdict(bool ok, const char *what, unsigned int n)
{
	printf("%s: %s: %u\n", ok ? "ok" : "WRONG", what, n);
	failures += !ok;
}

static void check_survivors(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < GOOD; i++)
		n += works(&good[i]);
	verdict(n == GOOD, "connections that nobody has ended work", n);
}

static void check_new_ones(void)
{
	struct connection c = {};
	unsigned int n;

	for (n = 0; n < 3; n++)
		if (connect_to(PORT_GOOD, &c.id) || !works(&c))
			break;
	verdict(n == 3, "new connections work", n);
}

/* the kernel's connection manager does not ask where a message comes from */
static void end_one(struct connection *c)
{
	uint8_t mad[MAD_LEN] = { 1, 7, 2, 3 };

	put16(mad + AT_ATTRIBUTE, CM_REJ);
	put32(mad + AT_LOCAL, get32(c->req + AT_LOCAL));
	put32(mad + AT_REMOTE, get32(c->rep + AT_LOCAL));
	/* none of the messages that make a connection; the consumer's wish */
	mad[AT_BODY] = 0x80;
	put16(mad + AT_BODY + 2, 28);
	send_mad(mad, MAD_LEN, true);
	usleep(500000);
	printf("# a REJ with both ids, from another address, %s\n",
	       works(c) ? "does not end a connection" : "ends a connection: so does the kernel's ib_cm");
}

static void report(void)
{
	unsigned int n = 0, missing = 0;
	int i, k;

	printf("# kind: came back:");
	for (k = 0; k < CM_KINDS; k++) {
		printf(" %#x:%lu", CM_REQ + k, answers[k]);
		n += answers[k];
	}
	printf("\n");
	/* a REP for each connection is not an answer to any of these */
	verdict(n > 2 * (GOOD + 1), "messages came back, so that some have arrived", n);
	for (i = 0; i < ABOUTS; i++) {
		printf("# sent about %s:", abouts[i].name);
		for (k = 0; k < CM_KINDS; k++) {
			if (sent[i][k])
				printf(" %#x:%lu", CM_REQ + k, sent[i][k]);
			missing += abouts[i].kinds >> k & 1 && !sent[i][k];
		}
		printf("\n");
	}
	verdict(!missing, "kinds of messages that were not sent in a state that they can be sent in", missing);
	printf("# trains: %lu\n", trains);
}

/* --- set-up ----------------------------------------------------------------------------------- */

static void parse_mac(uint8_t *mac, const char *text)
{
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) != 6)
		vt_die(VT_SETUP, "not a MAC address: %s", text);
}

static void open_socket(const char *netdev)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int size = 4 << 20, one = 1;

	fd = socket(AF_PACKET, SOCK_RAW, 0);
	addr.sll_ifindex = if_nametoindex(netdev);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		vt_die(VT_SETUP, "raw socket on %s: %s", netdev, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	/* hears nothing */
	train_fd = socket(AF_PACKET, SOCK_RAW, 0);
	addr.sll_protocol = 0;
	if (train_fd < 0 || bind(train_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(train_fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		vt_die(VT_SETUP, "raw socket for trains: %s", strerror(errno));
}

static void attack(unsigned long count)
{
	double end = vt_now() + 30;
	unsigned int n, i, burst = 0;

	make_connections();
	while (listen_to_them(), !know_all())
		if (usleep(1000), vt_now() > end)
			vt_die(VT_SETUP, "not everything was seen that the connection managers said");
	while (count > 0) {
		n = min(shoot(), count);
		count -= n;
		burst += n;
		/* QP 1 has some hundred receives */
		if (burst >= 32) {
			burst = 0;
			usleep(2000);
			listen_to_them();
		}
	}
	usleep(500000);
	listen_to_them();
	report();
	check_survivors();
	check_new_ones();
	end_one(&good[GOOD]);
	for (i = 0; i < WAITING; i++) {
		kill(waiters[i], SIGKILL);
		waitpid(waiters[i], NULL, 0);
	}
}

int main(int argc, char **argv)
{
	const char *netdev = NULL, *ip = NULL;
	unsigned long count = 5000;
	bool server = false;
	int c;

	path.sport = 0xc123;
	while ((c = getopt(argc, argv, "li:s:x:D:M:S:n:r:")) != -1) {
		switch (c) {
		case 'l': server = true; break;
		case 'i': netdev = optarg; break;
		case 's': ip = optarg; break;
		case 'x': inet_pton(AF_INET, optarg, other_ip); break;
		case 'D': target_ip = optarg; break;
		case 'M': parse_mac(path.dmac, optarg); break;
		case 'S': parse_mac(path.smac, optarg); break;
		case 'n': count = strtoul(optarg, NULL, 0); break;
		case 'r': rng.state = vt_mix(strtoull(optarg, NULL, 0)); break;
		default: vt_die(VT_SETUP, "see the top of badcm.c");
		}
	}
	if (!ip || inet_pton(AF_INET, ip, path.saddr) != 1)
		vt_die(VT_SETUP, "see the top of badcm.c");
	if (server)
		serve(ip);
	if (!netdev || !target_ip || inet_pton(AF_INET, target_ip, path.daddr) != 1)
		vt_die(VT_SETUP, "see the top of badcm.c");
	open_socket(netdev);
	attack(count);
	printf("%d wrong\n", failures);
	return failures ? VT_WRONG : VT_OK;
}
