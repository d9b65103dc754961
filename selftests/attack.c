// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * attack: a process that makes as much work for the kernel as it can, until it is killed.
 *
 *	attack -d DEVICE -i IP [-p PEER_IP] HOW
 *
 * HOW: "faults", WRITEs to memory on demand that is thrown away before each, by four pairs of queue pairs; "events", SENDs
 * with an event for each, a channel and a thread for each of eight pairs; "connections", requests to be
 * connected to a port of PEER_IP where nobody listens, from eight threads. Every second it prints how many there were.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vt.h"

#define LEN (256 * 1024)
#define DEPTH 16
/* nobody's */
#define PORT 7499

static struct vt_dev dev;
static const char *peer_ip;
static atomic_ulong done;

/* two queue pairs that are each other's peer */
struct duo {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
};

static void connect_duo(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct vt_conn c = {
		.peer = { .qpn = peer->qp_num, .psn = 1, .gid = dev.gid },
		.sq_psn = 1, .mtu = IBV_MTU_4096, .rd_atomic = 1, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1,
	};

	if (vt_bring_up(qp, &dev, VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE, &c))
		vt_die(VT_SETUP, "connect: %s", strerror(errno));
}

static void make_duo(struct duo *d, bool events)
{
	d->channel = events ? ibv_create_comp_channel(dev.ctx) : NULL;
	d->cq = vt_create_channel_cq(&dev, 4 * DEPTH, d->channel, 0);
	d->from = vt_new_qp(&dev, IBV_QPT_RC, d->cq, DEPTH, DEPTH);
	d->to = vt_new_qp(&dev, IBV_QPT_RC, d->cq, DEPTH, DEPTH);
	connect_duo(d->from, d->to);
	connect_duo(d->to, d->from);
}

static void await_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		;
	if (wc.status)
		vt_die(VT_WRONG, "completion: %s", ibv_wc_status_str(wc.status));
	atomic_fetch_add(&done, 1);
}

/* each WRITE finds pages missing at both ends */
static void *faults(void *unused)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct duo d;
	char *p = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	make_duo(&d, false);
	mr = p == MAP_FAILED ? NULL : ibv_reg_mr(dev.pd, p, 2 * LEN, VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (!mr)
		vt_die(VT_SETUP, "memory on demand: %s", strerror(errno));
	sge = (struct ibv_sge){ (uintptr_t)p, LEN, mr->lkey };
	wr = vt_request(&sge, 0, IBV_WR_RDMA_WRITE);
	wr.wr.rdma.remote_addr = (uintptr_t)p + LEN;
	wr.wr.rdma.rkey = mr->rkey;
	for (;;) {
		madvise(p, 2 * LEN, MADV_DONTNEED);
		if (ibv_post_send(d.from, &wr, &bad))
			vt_die(VT_WRONG, "post: %s", strerror(errno));
		await_one(d.cq);
	}
}

static void *events(void *unused)
{
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED }, *bad;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct duo d;
	void *context;
	int left;

	make_duo(&d, true);
	for (;;) {
		ibv_req_notify_cq(d.cq, 0);
		if (ibv_post_recv(d.to, &recv, &bad_recv) || ibv_post_send(d.from, &wr, &bad))
			vt_die(VT_WRONG, "post: %s", strerror(errno));
		if (ibv_get_cq_event(d.channel, &cq, &context))
			vt_die(VT_WRONG, "event: %s", strerror(errno));
		ibv_ack_cq_events(cq, 1);
		/* of the SEND and of the receive */
		for (left = 2; left;)
			left -= ibv_poll_cq(d.cq, 1, &wc) > 0;
		atomic_fetch_add(&done, 1);
	}
}

static bool comes(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;
	bool right;

	if (rdma_get_cm_event(channel, &event))
		return false;
	right = event->event == wanted;
	rdma_ack_cm_event(event);
	return right;
}

/* a request to be connected goes out; the answer to it is no */
static bool ask(struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_conn_param param = { .qp_num = 0x123456, .rnr_retry_count = 7, .retry_count = 7 };

	inet_pton(AF_INET, peer_ip, &addr.sin_addr);
	return !rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 2000) && comes(channel, RDMA_CM_EVENT_ADDR_RESOLVED) &&
	       !rdma_resolve_route(id, 2000) && comes(channel, RDMA_CM_EVENT_ROUTE_RESOLVED) &&
	       !rdma_connect(id, &param) && comes(channel, RDMA_CM_EVENT_REJECTED);
}

static void *connections(void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	for (;;) {
		if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
			vt_die(VT_SETUP, "rdma_cm: %s", strerror(errno));
		if (ask(channel, id))
			atomic_fetch_add(&done, 1);
		rdma_destroy_id(id);
	}
}

static const struct {
	const char *name;
	void *(*attack)(void *unused);
	int threads;
} hows[] = { { "faults", faults, 4 }, { "events", events, 8 }, { "connections", connections, 8 } };

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL;
	pthread_t thread;
	size_t i;
	int c;

	while ((c = getopt(argc, argv, "d:i:p:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'i': ip = optarg; break;
		case 'p': peer_ip = optarg; break;
		default: vt_die(VT_SETUP, "see the top of attack.c");
		}
	}
	for (i = 0; i < ARRAY_SIZE(hows); i++)
		if (optind < argc && !strcmp(argv[optind], hows[i].name))
			break;
	if (i == ARRAY_SIZE(hows) || (hows[i].attack == connections && !peer_ip))
		vt_die(VT_SETUP, "see the top of attack.c");
	vt_open(&dev, device, ip, -1);
	for (c = 0; c < hows[i].threads; c++)
		if (pthread_create(&thread, NULL, hows[i].attack, NULL))
			vt_die(VT_SETUP, "thread: %s", strerror(errno));
	for (;;) {
		sleep(1);
		printf("%lu\n", (unsigned long)atomic_load(&done));
		fflush(stdout);
	}
}
