// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * foreign: a process that connects a queue pair of its own to one that is somebody else's peer.
 *
 *	foreign -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER OTHER_IP OTHER_IP_OF_PEER]
 *
 * @a is the victim and @b the peer that it is connected to, on one device or on two hosts. The stranger is a process
 * of its own, of a user without rights, who has been told everything: number, PSN, address and key. What it sends
 * with that between two hosts is the peer's as far as the victim can see, and that is shown, too: without it what
 * does not arrive would prove nothing.
 *
 * Between two hosts the victim's is one that holds nothing behind a gap (selective_repeat_en 0). With HELD in the
 * environment it is one that does, and only that is tried.
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define NOBODY 65534
#define LEN 512
#define ROOM 4096
/* what ends.c begins with */
#define PSN 0xfffffe

static double slow = 1;

/* --- the stranger -------------------------------------------------------------------------------------- */

struct order {
	char device[64], ip[64];
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	uint32_t qpn, psn, rkey;
	union ibv_gid gid;
	uint64_t addr;
};

struct report {
	/* -1: no completion */
	int status;
	/* its memory is as before */
	bool unchanged;
};

enum { STRANGERS = 7, TRUE_PEERS = 8, VICTIMS = 9 };

static bool holds(const void *p, uint64_t key)
{
	uint8_t wanted[LEN];

	vt_pattern(wanted, key, 0, LEN);
	return !memcmp(p, wanted, LEN);
}

static struct ibv_qp *approach(struct vt_dev *dev, struct ibv_cq *cq, const struct order *o)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = o->type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	/* the answers go to somebody else, so it need not wait for long */
	const struct vt_conn c = {
		.peer = { .qpn = o->qpn, .psn = 1, .gid = o->gid },
		.sq_psn = o->psn, .mtu = IBV_MTU_1024, .rd_atomic = 1, .timeout = 10, .retry_cnt = 1,
	};
	struct ibv_qp *qp = vt_create_qp(dev, &init);

	if (vt_bring_up(qp, dev, 0, &c))
		vt_die(VT_SETUP, "stranger's queue pair: %s", strerror(errno));
	return qp;
}

static struct report obey(const struct order *o)
{
	struct report r = { .status = -1 };
	struct ibv_wc wc;
	struct ibv_mr *mr;
	struct vt_dev dev;
	struct end e = {};

	vt_open(&dev, o->device, o->ip, -1);
	mr = vt_mr(&dev, LEN, IBV_ACCESS_LOCAL_WRITE);
	vt_pattern(mr->addr, STRANGERS, 0, LEN);
	e.send_cq = vt_create_cq(&dev, 8);
	e.qp = approach(&dev, e.send_cq, o);
	if (post_op(&e, 1, o->opcode, local(mr), LEN, (struct place){ o->addr, o->rkey }))
		vt_die(VT_SETUP, "stranger's request: %s", strerror(errno));
	if (poll_one(e.send_cq, &wc, 20 * slow))
		r.status = wc.status;
	r.unchanged = holds(mr->addr, STRANGERS);
	if (ibv_destroy_qp(e.qp) || ibv_destroy_cq(e.send_cq))
		vt_die(VT_WRONG, "stranger: destroy: %s", strerror(errno));
	vt_mr_free(mr);
	vt_close(&dev);
	return r;
}

static int stranger_fd;

static void be_stranger(int fd)
{
	struct report r;
	struct order o;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		vt_die(VT_SETUP, "cannot be nobody: %s", strerror(errno));
	/* which a change of the user has switched off */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &o, sizeof(o)) == sizeof(o)) {
		r = obey(&o);
		if (write(fd, &r, sizeof(r)) != sizeof(r))
			break;
	}
	_exit(0);
}

static void start_stranger(void)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		vt_die(VT_SETUP, "socketpair: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		vt_die(VT_SETUP, "fork: %s", strerror(errno));
	if (!pid) {
		close(fds[0]);
		be_stranger(fds[1]);
	}
	close(fds[1]);
	stranger_fd = fds[0];
}

/* --- the victim and its peer --------------------------------------------------------------------------- */

/* The victim's: the first half for receives, the second half open to its peer */
static struct ibv_mr *room, *peers;

static uint8_t *received(void)
{
	return room->addr;
}

static uint8_t *opened(void)
{
	return (uint8_t *)room->addr + ROOM / 2;
}

static void fresh(enum ibv_qp_type type)
{
	ends_fresh(type);
	vt_pattern(received(), VICTIMS, 0, LEN);
	vt_pattern(opened(), VICTIMS, 0, LEN);
	if (post_recv(&a, 1, local(room), LEN))
		vt_die(VT_SETUP, "post receive: %s", strerror(errno));
}

static bool unchanged(void)
{
	return holds(received(), VICTIMS) && holds(opened(), VICTIMS);
}

static bool untouched(void)
{
	struct ibv_wc wc;

	return !poll_one(a.recv_cq, &wc, 0) && unchanged();
}

/* A message of @e, whose memory has @key, arrives in the victim's receive */
static bool takes(uint64_t key)
{
	struct ibv_wc wc;

	return poll_one(a.recv_cq, &wc, 20 * slow) && wc.status == IBV_WC_SUCCESS && wc.byte_len == LEN &&
	       holds(received(), key);
}

static bool peer_is_heard(void)
{
	struct ibv_wc wc;

	vt_pattern(peers->addr, TRUE_PEERS, 0, LEN);
	return !post_op(&b, 2, IBV_WR_SEND, local(peers), LEN, (struct place){}) &&
	       poll_one(b.send_cq, &wc, 20 * slow) && wc.status == IBV_WC_SUCCESS && takes(TRUE_PEERS);
}

/* What the one who sends knows best: everything */
static struct order order(struct end *from, const char *ip, enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	struct order o = {
		.type = type, .opcode = opcode, .qpn = a.qp->qp_num, .psn = PSN, .rkey = room->rkey,
		.gid = a.dev->gid, .addr = (uintptr_t)opened(),
	};

	snprintf(o.device, sizeof(o.device), "%s", ibv_get_device_name(from->dev->ctx->device));
	snprintf(o.ip, sizeof(o.ip), "%s", ip);
	return o;
}

static struct report ask(const struct order *o)
{
	struct report r;

	if (write(stranger_fd, o, sizeof(*o)) != sizeof(*o) || read(stranger_fd, &r, sizeof(r)) != sizeof(r))
		vt_die(VT_SETUP, "the stranger is gone");
	return r;
}

/* The stranger is told that nothing came back, or, where nothing comes back to anybody, nothing */
static bool unheard(const struct order *o, const struct report *r)
{
	return r->unchanged && r->status == (o->type == IBV_QPT_UC ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
}

static const char *type_name(enum ibv_qp_type type)
{
	return type == IBV_QPT_UC ? "UC" : "RC";
}

static const char *op_name(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND: return "SEND";
	case IBV_WR_RDMA_WRITE: return "WRITE";
	default: return "READ";
	}
}

/* by how much the counter of the victim's host has grown, as soon as it has */
static long counted(const char *counter, long before)
{
	double end = vt_now() + 20 * slow;
	long n;

	do
		n = vt_counter(a.dev, counter) - before;
	while (!n && vt_now() < end);
	return n;
}

/*
 * Nothing of it arrives, the victim's peer does not notice, and it is counted under @counter at the victim's host,
 * unless that is NULL
 */
static void is_refused(const char *what, const struct order *o, const char *counter)
{
	long before = counter ? vt_counter(a.dev, counter) : 0, n = 0;
	struct report r = ask(o);
	bool same, heard;

	if (counter)
		n = counted(counter, before);
	same = untouched();
	heard = peer_is_heard();
	vt_check(same && unheard(o, &r), "%s: %s %s: nothing arrives (%s)", what, type_name(o->type),
		 op_name(o->opcode), r.status < 0 ? "no completion" : ibv_wc_status_str(r.status));
	vt_check(heard && holds(opened(), VICTIMS), "%s: %s %s: the peer is heard afterwards", what, type_name(o->type),
		 op_name(o->opcode));
	if (counter)
		vt_check(n > 0, "%s: %s %s: %s +%ld", what, type_name(o->type), op_name(o->opcode), counter, n);
}

/* --- what is and what is not possible ------------------------------------------------------------------- */

static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

/* From the victim's own host, whose sroce knows who sends */
static void same_host(const char *what, const char *ip)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };
	struct order o;
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (k = 0; k < ARRAY_SIZE(opcodes); k++) {
			if (types[i] == IBV_QPT_UC && opcodes[k] == IBV_WR_RDMA_READ)
				continue;
			fresh(types[i]);
			o = order(&a, ip, types[i], opcodes[k]);
			is_refused(what, &o, "rx_wrong_path_packets");
		}
	}
}

/* RC: one packet number beside the one that is expected is as far off as any */
static void guessed(const char *ip)
{
	struct order o;
	unsigned int k;

	for (k = 0; k < ARRAY_SIZE(opcodes) - 1; k++) {
		fresh(IBV_QPT_RC);
		o = order(&b, ip, IBV_QPT_RC, opcodes[k]);
		o.psn = PSN + 1;
		is_refused("peer's host, next PSN", &o, NULL);
		fresh(IBV_QPT_RC);
		o = order(&b, ip, IBV_QPT_RC, opcodes[k]);
		o.psn = PSN - 1;
		is_refused("peer's host, last PSN", &o, NULL);
	}
}

/*
 * A PSN behind the one that is expected waits for its turn, which comes after a message of the peer's, unless that took
 * longer than anything waits. The peer's next one counts as repeated then, as behind one with the right PSN.
 */
static void held(const char *ip)
{
	struct order o;
	struct report r;
	bool waits, arrives;

	fresh(IBV_QPT_RC);
	o = order(&b, ip, IBV_QPT_RC, IBV_WR_RDMA_WRITE);
	o.psn = PSN + 1;
	r = ask(&o);
	waits = untouched() && unheard(&o, &r);
	vt_check(waits, "peer's host, next PSN, held: RC WRITE: nothing arrives (%s)", ibv_wc_status_str(r.status));
	vt_pattern(peers->addr, TRUE_PEERS, 0, LEN);
	arrives = !post_op(&b, 2, IBV_WR_SEND, local(peers), LEN, (struct place){}) && takes(TRUE_PEERS);
	vt_check(arrives, "peer's host, next PSN, held: RC WRITE: the peer's message arrives");
	usleep(100000);
	vt_check(holds(opened(), STRANGERS) || holds(opened(), VICTIMS), "peer's host, next PSN, held: RC WRITE: %s in its turn",
		 holds(opened(), STRANGERS) ? "carried out" : "dropped, and not carried out");
}

/* The right numbers, but not from the peer's address, or not of its service */
static void not_the_peer(const char *ip, const char *other, const char *others_peer)
{
	struct order o;
	unsigned int k;

	for (k = 0; k < ARRAY_SIZE(opcodes); k++) {
		fresh(IBV_QPT_RC);
		o = order(&b, others_peer, IBV_QPT_RC, opcodes[k]);
		o.gid = vt_gid_of_ip(other);
		is_refused("peer's host, another address", &o, "rx_wrong_path_packets");
	}
	fresh(IBV_QPT_RC);
	o = order(&b, ip, IBV_QPT_UC, IBV_WR_SEND);
	is_refused("peer's host, to an RC queue pair", &o, "rx_discarded_packets");
}

static bool becomes(const uint8_t *p, uint64_t key)
{
	double end = vt_now() + 20 * slow;

	while (!holds(p, key)) {
		if (vt_now() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* Who knows everything speaks for the peer, but hears nothing, and gets no further than the peer would */
static void known(const char *ip)
{
	struct report r;
	struct order o;

	fresh(IBV_QPT_RC);
	o = order(&b, ip, IBV_QPT_RC, IBV_WR_SEND);
	r = ask(&o);
	vt_check(takes(STRANGERS) && unheard(&o, &r), "peer's host, right PSN: RC SEND: taken for the peer's (%s)",
		 ibv_wc_status_str(r.status));
	fresh(IBV_QPT_RC);
	o = order(&b, ip, IBV_QPT_RC, IBV_WR_RDMA_WRITE);
	r = ask(&o);
	vt_check(becomes(opened(), STRANGERS) && unheard(&o, &r),
		 "peer's host, right PSN: RC WRITE: taken for the peer's (%s)", ibv_wc_status_str(r.status));
	fresh(IBV_QPT_RC);
	o = order(&b, ip, IBV_QPT_RC, IBV_WR_RDMA_READ);
	r = ask(&o);
	vt_check(untouched() && unheard(&o, &r), "peer's host, right PSN: RC READ: brings it no byte (%s)",
		 ibv_wc_status_str(r.status));
	fresh(IBV_QPT_RC);
	o = order(&b, ip, IBV_QPT_RC, IBV_WR_RDMA_WRITE);
	o.rkey ^= 1;
	r = ask(&o);
	/* only that the connection ends, as with a mistake of the peer's */
	vt_check(unchanged() && unheard(&o, &r), "peer's host, right PSN, wrong key: RC WRITE: nothing is written (%s)",
		 ibv_wc_status_str(r.status));
	fresh(IBV_QPT_UC);
	o = order(&b, ip, IBV_QPT_UC, IBV_WR_RDMA_WRITE);
	o.psn = PSN ^ 0x555555;
	r = ask(&o);
	vt_check(becomes(opened(), STRANGERS), "peer's host, any PSN: UC WRITE: taken for the peer's");
}

int main(int argc, char **argv)
{
	const char *ip = NULL, *peer_ip = NULL;
	int i;

	for (i = 1; i + 1 < argc; i++) {
		if (!strcmp(argv[i], "-i"))
			ip = argv[i + 1];
		if (!strcmp(argv[i], "-I"))
			peer_ip = argv[i + 1];
	}
	if (getenv("SLOW"))
		slow = atof(getenv("SLOW"));
	start_stranger();
	/* a peer that is heard has all the time that it needs */
	ends_how.timeout = 16;
	ends_open(argc, argv);
	room = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	peers = vt_mr(b.dev, LEN, IBV_ACCESS_LOCAL_WRITE);
	if (peer_ip && getenv("HELD")) {
		held(peer_ip);
		ends_stop();
		printf("%d wrong\n", vt_failures);
		return vt_failures ? VT_WRONG : VT_OK;
	}
	same_host(peer_ip ? "victim's host" : "host of both", ip);
	if (peer_ip) {
		if (optind + 2 != argc)
			vt_die(VT_SETUP, "see the top of foreign.c");
		guessed(peer_ip);
		not_the_peer(peer_ip, argv[optind], argv[optind + 1]);
		known(peer_ip);
	}
	ends_stop();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
