// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * verify: reliable connections under random load, where every completion and
 * every byte of memory is checked, on both sides.
 *
 *	verify -d DEVICE [-i IP]                  the server, takes all options from the client
 *	verify -d DEVICE [-i IP] [OPTIONS] HOST   the client
 *
 * Work goes in rounds: both sides compute the same plan (plan.c), prepare their
 * memory, meet at a barrier, post everything, wait for all completions, meet
 * again, and compare memory with the plan. SIGUSR1 to the client: no more rounds
 * than this one. Exit statuses are those of vt.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plan.h"

#define MAX_QPS 64
#define MAX_BATCH 128

/* the client's wishes; sent to the server as it is */
struct cfg {
	struct plan_cfg plan;
	uint32_t iters;
	uint32_t qps;
	/* 0: a different one for each queue pair */
	uint32_t mtu;
	uint32_t rd_atomic;
	uint32_t timeout, retry_cnt, rnr_retry;
	uint32_t sl, tclass;
	/* only the client requests */
	uint32_t one_way;
	/* receives are posted late, so that there are RNR NAKs */
	uint32_t rnr;
	/* no IBV_SEND_FENCE (rdma_rxe loses its way with it) */
	uint32_t no_fence;
	/* wait in the kernel for completions */
	uint32_t events;
	uint32_t stall_s;
};

#define CFG_LAYOUT "84"

struct area {
	struct ibv_mr *mr;
	/* the same memory, registered once more: a message spans two keys */
	struct ibv_mr *mr2;
	uint8_t *want;
};

/* one queue pair and what it does in this round */
struct link {
	struct ibv_qp *qp;
	uint32_t mtu, max_inline;
	/* what we request, and what the peer requests of us */
	struct plan mine, theirs;
	struct area local, remote;
	struct ibv_mw *mw;
	uint32_t mw_rkey;
	/* where the peer's memory for our requests is */
	uint64_t peer_addr, peer_count_addr;
	uint32_t peer_rkey, peer_count_rkey, peer_mw_rkey;
	uint32_t posted, completed, received;
};

/* exchanged once for each queue pair */
struct hello {
	struct vt_addr addr;
	uint64_t remote_addr, count_addr;
	uint32_t remote_rkey, count_rkey;
};

#define HELLO_LAYOUT "441884"

/* exchanged at each barrier */
struct barrier {
	uint32_t round, stop;
	uint32_t mw_rkey[MAX_QPS];
};

static struct cfg cfg = {
	.plan = { .seed = 1, .kinds = (1 << OP_KINDS) - 1, .size_max = 1 << 20, .batch = 48, .sges = 32 },
	.iters = 10,
	.qps = 4,
	.rd_atomic = 16,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.stall_s = 20,
};

static const char *device, *ip, *host;
static int gid_index = -1;
static uint16_t port = 18600;
static double seconds;
static bool client, show_qps, sabotage;
static volatile sig_atomic_t enough;

static struct vt_dev dev;
static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq, *recv_cq;
static struct link links[MAX_QPS];
static int ctl;
static uint32_t round_nr;

/* the counter that OP_COUNT of all the peer's queue pairs increments, and room for our results */
static struct ibv_mr *count_mr;
static uint64_t counts_made;

static uint64_t total_msgs[OP_KINDS], total_bytes;

/* --- set-up ------------------------------------------------------------------- */

static bool has_mw(void)
{
	return dev.attr.device_cap_flags &
	       (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

/* what both devices can do */
static void negotiate(void)
{
	struct cfg offer = cfg, peer;

	vt_ctl_swap_numbers(ctl, &offer, &peer, sizeof(cfg), CFG_LAYOUT);
	if (!client)
		cfg = peer;
	peer.plan.sges = dev.attr.max_sge;
	peer.rd_atomic = min(dev.attr.max_qp_rd_atom, dev.attr.max_qp_init_rd_atom);
	peer.plan.kinds = has_mw() ? ~0u : ~(1u << OP_SEND_INV);
	peer.mtu = 128 << dev.port.active_mtu;
	offer = peer;
	vt_ctl_swap_numbers(ctl, &offer, &peer, sizeof(cfg), CFG_LAYOUT);
	cfg.plan.sges = min(cfg.plan.sges, min(offer.plan.sges, peer.plan.sges));
	cfg.rd_atomic = min(cfg.rd_atomic, min(offer.rd_atomic, peer.rd_atomic));
	cfg.plan.kinds &= offer.plan.kinds & peer.plan.kinds;
	if (!cfg.plan.kinds)
		vt_die(VT_SKIP, "the devices offer none of these operations");
	cfg.mtu = cfg.mtu ? min(cfg.mtu, min(offer.mtu, peer.mtu)) : 0;
	offer.mtu = min(offer.mtu, peer.mtu);
	for (uint32_t i = 0; i < cfg.qps; i++)
		links[i].mtu = cfg.mtu ? cfg.mtu : max(256u, offer.mtu >> (i % 5));
}

static struct ibv_cq *make_cq(void)
{
	return vt_create_channel_cq(&dev, cfg.qps * (cfg.plan.batch + 2), channel, 0);
}

static void link_qp(struct link *l)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = cfg.plan.batch + 2,
			.max_recv_wr = cfg.plan.batch + 2,
			.max_send_sge = cfg.plan.sges,
			.max_recv_sge = cfg.plan.sges,
			.max_inline_data = 256,
		},
	};

	l->qp = vt_create_qp(&dev, &init);
	l->max_inline = init.cap.max_inline_data;
	if (vt_to_init(l->qp, VT_REMOTE_ACCESS))
		vt_die(VT_SETUP, "qp to INIT: %s", strerror(errno));
}

static void make_area(struct area *a)
{
	uint32_t size = plan_area(&cfg.plan);
	int access = IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS;

	if (cfg.plan.kinds & (1 << OP_SEND_INV))
		access |= IBV_ACCESS_MW_BIND;
	a->mr = vt_mr(&dev, size, access);
	a->mr2 = ibv_reg_mr(dev.pd, a->mr->addr, size, IBV_ACCESS_LOCAL_WRITE);
	a->want = malloc(size);
	if (!a->mr2 || !a->want)
		vt_die(VT_SETUP, "area of %u bytes: %s", size, strerror(errno));
}

static void connect_link(struct link *l)
{
	struct hello hello = {
		.addr = { .qpn = l->qp->qp_num, .psn = vt_mix(l->qp->qp_num + time(NULL)) & 0xffffff,
			  .gid = dev.gid },
		.remote_addr = (uintptr_t)l->remote.mr->addr,
		.remote_rkey = l->remote.mr->rkey,
		.count_addr = (uintptr_t)count_mr->addr,
		.count_rkey = count_mr->rkey,
	};
	struct vt_conn conn = {
		.sq_psn = hello.addr.psn,
		.mtu = IBV_MTU_256 + __builtin_ctz(l->mtu / 256),
		.rd_atomic = cfg.rd_atomic,
		.timeout = cfg.timeout,
		.retry_cnt = cfg.retry_cnt,
		.rnr_retry = cfg.rnr_retry,
		.min_rnr_timer = 12,
		.sl = cfg.sl,
		.tclass = cfg.tclass,
	};
	struct hello peer;

	vt_ctl_swap_numbers(ctl, &hello, &peer, sizeof(hello), HELLO_LAYOUT);
	conn.peer = peer.addr;
	l->peer_addr = peer.remote_addr;
	l->peer_rkey = peer.remote_rkey;
	l->peer_count_addr = peer.count_addr;
	l->peer_count_rkey = peer.count_rkey;
	if (vt_to_rtr(l->qp, &dev, &conn) || vt_to_rts(l->qp, &conn))
		vt_die(VT_SETUP, "connect qp: %s", strerror(errno));
	if (show_qps)
		printf("qp %u psn %u peer %u psn %u mtu %u\n", l->qp->qp_num, hello.addr.psn,
		       peer.addr.qpn, peer.addr.psn, l->mtu);
}

static void set_up(void)
{
	struct link *l;

	vt_open(&dev, device, ip, gid_index);
	fcntl(dev.ctx->async_fd, F_SETFL, O_NONBLOCK);
	ctl = client ? vt_ctl_connect(host, port, cfg.stall_s) : vt_ctl_accept(port, cfg.stall_s);
	negotiate();
	if (cfg.events)
		channel = ibv_create_comp_channel(dev.ctx);
	send_cq = make_cq();
	recv_cq = make_cq();
	/* first the counter, then the results of our own increments */
	count_mr = vt_mr(&dev, 8 * (1 + MAX_QPS * MAX_BATCH), IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	for (l = links; l < links + cfg.qps; l++) {
		link_qp(l);
		make_area(&l->local);
		make_area(&l->remote);
		l->mine.ops = calloc(cfg.plan.batch, sizeof(struct op));
		l->theirs.ops = calloc(cfg.plan.batch, sizeof(struct op));
		if (cfg.plan.kinds & (1 << OP_SEND_INV)) {
			l->mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
			if (!l->mw)
				vt_die(VT_SETUP, "alloc mw: %s", strerror(errno));
			l->mw_rkey = l->mw->rkey;
		}
		connect_link(l);
	}
	fflush(stdout);
}

/* every object can be destroyed: what the kernel counts is balanced */
static void tear_down(void)
{
	struct link *l;
	struct area *a;
	int rc = 0;

	for (l = links; l < links + cfg.qps; l++) {
		rc |= ibv_destroy_qp(l->qp);
		if (l->mw)
			rc |= ibv_dealloc_mw(l->mw);
		for (a = &l->local; a <= &l->remote; a++) {
			rc |= ibv_dereg_mr(a->mr2);
			vt_mr_free(a->mr);
			free(a->want);
		}
		free(l->mine.ops);
		free(l->theirs.ops);
	}
	vt_mr_free(count_mr);
	rc |= ibv_destroy_cq(send_cq) | ibv_destroy_cq(recv_cq);
	if (channel)
		rc |= ibv_destroy_comp_channel(channel);
	if (rc)
		vt_die(VT_WRONG, "tear-down: %s", strerror(rc));
	vt_close(&dev);
}

/* --- posting ------------------------------------------------------------------ */

static void check_async(void)
{
	struct ibv_async_event event;
	char byte;

	if (!recv(ctl, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
		vt_die(VT_GONE, "the peer is gone");
	if (ibv_get_async_event(dev.ctx, &event))
		return;
	ibv_ack_async_event(&event);
	if (event.event_type == IBV_EVENT_DEVICE_FATAL)
		vt_die(VT_GONE, "the device is gone");
	if (event.event_type <= IBV_EVENT_QP_ACCESS_ERR)
		vt_die(VT_WRONG, "WRONG event: %s", ibv_event_type_str(event.event_type));
}

static void post_failed(const char *what, const struct link *l, int rc)
{
	double end = vt_now() + 1;

	/* it may fail because the device is gone: then there is an event that says so */
	while (vt_now() < end) {
		check_async();
		usleep(1000);
	}
	vt_die(VT_WRONG, "post %s on qp %u (%s): %s", what, l->qp->qp_num,
	       vt_state_name(vt_state(l->qp)), strerror(rc));
}

static int sge_list(struct ibv_sge *sge, const struct area *a, uint32_t offset, uint32_t len,
		    uint8_t gap, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		struct piece p = op_piece(offset, len, gap, n, i);

		sge[i].addr = (uintptr_t)a->mr->addr + p.offset;
		sge[i].length = p.len;
		sge[i].lkey = i & 1 ? a->mr2->lkey : a->mr->lkey;
	}
	return n;
}

static uint64_t wr_id(const struct link *l, uint32_t i)
{
	return (uint64_t)(l - links) << 32 | i;
}

static void post_recvs(struct link *l)
{
	struct ibv_sge sge[32];
	struct ibv_recv_wr *bad;
	uint32_t i;
	int rc;

	for (i = 0; i < l->theirs.n; i++) {
		const struct op *op = &l->theirs.ops[i];
		struct ibv_recv_wr wr = { .wr_id = wr_id(l, i), .sg_list = sge };

		if (!op_takes_recv(op))
			continue;
		if (op->kind != OP_WRITE_IMM)
			wr.num_sge = sge_list(sge, &l->remote, op->remote, op->len + op->spare,
					      op->gap, op->remote_sges);
		rc = ibv_post_recv(l->qp, &wr, &bad);
		if (rc)
			post_failed("recv", l, rc);
	}
}

static const enum ibv_wr_opcode wr_opcode[OP_KINDS] = {
	[OP_SEND] = IBV_WR_SEND,
	[OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[OP_SEND_INV] = IBV_WR_SEND_WITH_INV,
	[OP_WRITE] = IBV_WR_RDMA_WRITE,
	[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[OP_READ] = IBV_WR_RDMA_READ,
	[OP_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[OP_FADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[OP_COUNT] = IBV_WR_ATOMIC_FETCH_AND_ADD,
};

static void atomic_wr(struct ibv_send_wr *wr, struct link *l, const struct op *op)
{
	wr->wr.atomic.remote_addr = l->peer_addr + op->remote;
	wr->wr.atomic.rkey = l->peer_rkey;
	wr->wr.atomic.compare_add = op->kind == OP_CAS ? op->compare : op->add;
	wr->wr.atomic.swap = op->swap;
	if (op->kind == OP_COUNT) {
		wr->wr.atomic.remote_addr = l->peer_count_addr;
		wr->wr.atomic.rkey = l->peer_count_rkey;
		wr->wr.atomic.compare_add = 1;
		wr->sg_list->addr = (uintptr_t)count_mr->addr + 8 + 8 * counts_made++;
		wr->sg_list->lkey = count_mr->lkey;
	}
}

static void fill_wr(struct ibv_send_wr *wr, struct ibv_sge *sge, struct link *l, uint32_t i)
{
	const struct op *op = &l->mine.ops[i];

	*wr = (struct ibv_send_wr){
		.wr_id = wr_id(l, i),
		.sg_list = sge,
		.num_sge = sge_list(sge, &l->local, op->local, op->len, op->gap, op->local_sges),
		.opcode = wr_opcode[op->kind],
		.send_flags = (op->signaled ? IBV_SEND_SIGNALED : 0) |
			      (op->solicited ? IBV_SEND_SOLICITED : 0) |
			      (op->fence && !cfg.no_fence ? IBV_SEND_FENCE : 0) |
			      (op_is_inline(op, l->max_inline) ? IBV_SEND_INLINE : 0),
		.imm_data = htonl(op->imm),
	};
	if (op->kind == OP_SEND_INV)
		wr->invalidate_rkey = l->peer_mw_rkey;
	if (op_is_atomic(op)) {
		atomic_wr(wr, l, op);
	} else {
		wr->wr.rdma.remote_addr = l->peer_addr + op->remote;
		wr->wr.rdma.rkey = l->peer_rkey;
	}
}

/* inline data is taken when it is posted: nobody looks at the source any more */
static void scribble(struct ibv_send_wr *wr)
{
	int i;

	if (wr->send_flags & IBV_SEND_INLINE)
		for (i = 0; i < wr->num_sge; i++)
			memset((void *)(uintptr_t)wr->sg_list[i].addr, INLINE_SCRIBBLE,
			       wr->sg_list[i].length);
}

/* the next few messages, as one list */
static void post_some(struct link *l)
{
	struct ibv_send_wr wr[8], *bad;
	struct ibv_sge sge[8][32];
	uint32_t n = 1 + (l->posted + round_nr) % 8, i;
	int rc;

	n = min(n, l->mine.n - l->posted);
	for (i = 0; i < n; i++) {
		fill_wr(&wr[i], sge[i], l, l->posted + i);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	rc = ibv_post_send(l->qp, wr, &bad);
	if (rc)
		post_failed("send", l, rc);
	for (i = 0; i < n; i++)
		scribble(&wr[i]);
	l->posted += n;
}

/* --- completions -------------------------------------------------------------- */

static void wrong(const struct link *l, const struct ibv_wc *wc, const struct op *op,
		  const char *what)
{
	vt_die(VT_WRONG, "WRONG %s: round %u qp %u message %u (%s, %u bytes): opcode %d byte_len %u imm %x flags %x",
	       what, round_nr, l->qp->qp_num, (uint32_t)wc->wr_id, op_names[op->kind], op->len,
	       wc->opcode, wc->byte_len, wc->imm_data, wc->wc_flags);
}

static struct link *link_of(const struct ibv_wc *wc, const char *queue)
{
	struct link *l = &links[wc->wr_id >> 32];

	if (wc->wr_id >> 32 >= cfg.qps || wc->qp_num != l->qp->qp_num)
		vt_die(VT_WRONG, "WRONG %s completion: wr_id %#lx qp %u", queue,
		       (unsigned long)wc->wr_id, wc->qp_num);
	if (wc->status == IBV_WC_SUCCESS)
		return l;
	/* what a peer or device that goes away looks like */
	vt_die(wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR ? VT_GONE : VT_WRONG,
	       "%s completion: %s: round %u qp %u message %u", queue, ibv_wc_status_str(wc->status),
	       round_nr, wc->qp_num, (uint32_t)wc->wr_id);
}

static const enum ibv_wc_opcode wc_opcode[OP_KINDS] = {
	[OP_SEND] = IBV_WC_SEND,
	[OP_SEND_IMM] = IBV_WC_SEND,
	[OP_SEND_INV] = IBV_WC_SEND,
	[OP_WRITE] = IBV_WC_RDMA_WRITE,
	[OP_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[OP_READ] = IBV_WC_RDMA_READ,
	[OP_CAS] = IBV_WC_COMP_SWAP,
	[OP_FADD] = IBV_WC_FETCH_ADD,
	[OP_COUNT] = IBV_WC_FETCH_ADD,
};

static void sent(const struct ibv_wc *wc)
{
	struct link *l = link_of(wc, "send");
	const struct op *op;

	/* unsignaled ones are passed over, in order */
	while (l->completed < l->posted && !l->mine.ops[l->completed].signaled)
		l->completed++;
	op = &l->mine.ops[l->completed];
	if (l->completed >= l->posted || (uint32_t)wc->wr_id != l->completed)
		vt_die(VT_WRONG, "WRONG order: round %u qp %u: completion of message %u instead of %u of %u",
		       round_nr, wc->qp_num, (uint32_t)wc->wr_id, l->completed, l->posted);
	if (wc->opcode != wc_opcode[op->kind])
		wrong(l, wc, op, "opcode");
	if ((op->kind == OP_READ || op_is_atomic(op)) && wc->byte_len != op->len)
		wrong(l, wc, op, "byte_len");
	l->completed++;
}

/* rxe hands out the kernel's number of this flag (ib_verbs.h), which is another one */
static unsigned int wc_with_inv = IBV_WC_WITH_INV;

static void received(const struct ibv_wc *wc)
{
	struct link *l = link_of(wc, "receive");
	const struct op *op;
	bool imm;

	while (l->received < l->theirs.n && !op_takes_recv(&l->theirs.ops[l->received]))
		l->received++;
	op = &l->theirs.ops[l->received];
	if (l->received >= l->theirs.n || (uint32_t)wc->wr_id != l->received)
		vt_die(VT_WRONG, "WRONG order: round %u qp %u: receive of message %u instead of %u of %u",
		       round_nr, wc->qp_num, (uint32_t)wc->wr_id, l->received, l->theirs.n);
	if (wc->opcode != (op->kind == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		wrong(l, wc, op, "opcode");
	if (wc->byte_len != op->len)
		wrong(l, wc, op, "byte_len");
	imm = op->kind == OP_SEND_IMM || op->kind == OP_WRITE_IMM;
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != imm || (imm && wc->imm_data != htonl(op->imm)))
		wrong(l, wc, op, "immediate");
	if (!!(wc->wc_flags & wc_with_inv) != (op->kind == OP_SEND_INV) ||
	    (op->kind == OP_SEND_INV && wc->invalidated_rkey != l->mw_rkey))
		wrong(l, wc, op, "invalidated key");
	l->received++;
}

static int drain(struct ibv_cq *cq, void (*handle)(const struct ibv_wc *))
{
	struct ibv_wc wc[32];
	int i, n;

	n = ibv_poll_cq(cq, ARRAY_SIZE(wc), wc);
	if (n < 0)
		vt_die(VT_WRONG, "poll cq: %d", n);
	for (i = 0; i < n; i++)
		handle(&wc[i]);
	return n;
}

/* sleep until a completion is announced */
static void wait_event(void)
{
	struct pollfd fds[] = {
		{ .fd = channel->fd, .events = POLLIN },
		{ .fd = dev.ctx->async_fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *ctx;

	poll(fds, ARRAY_SIZE(fds), 1000);
	if (!(fds[0].revents & POLLIN))
		return;
	if (!ibv_get_cq_event(channel, &cq, &ctx))
		ibv_ack_cq_events(cq, 1);
}

static int poll_all(void)
{
	return drain(send_cq, sent) + drain(recv_cq, received);
}

/* everything posted has completed, everything expected has arrived */
static bool finished(const struct link *l)
{
	uint32_t received = l->received;

	while (received < l->theirs.n && !op_takes_recv(&l->theirs.ops[received]))
		received++;
	return l->completed == l->mine.n && received == l->theirs.n;
}

static void stalled(void)
{
	struct link *l;

	for (l = links; l < links + cfg.qps; l++)
		if (!finished(l))
			fprintf(stderr, "round %u qp %u (%s): sent %u of %u, received up to %u of %u\n",
				round_nr, l->qp->qp_num, vt_state_name(vt_state(l->qp)),
				l->completed, l->mine.n, l->received, l->theirs.n);
	vt_die(VT_STALLED, "STALLED for %u s", cfg.stall_s);
}

/* --- rounds ------------------------------------------------------------------- */

static void run_traffic(void)
{
	double last = vt_now();
	uint32_t idle = 0, done;
	struct link *l;

	do {
		int n = 0;

		for (l = links; l < links + cfg.qps; l++) {
			if (l->posted < l->mine.n) {
				post_some(l);
				n++;
			}
		}
		n += poll_all();
		if (n) {
			last = vt_now();
			idle = 0;
		} else if (channel) {
			ibv_req_notify_cq(send_cq, 0);
			ibv_req_notify_cq(recv_cq, 0);
			if (!poll_all())
				wait_event();
		}
		if (!(++idle % 256) || channel) {
			check_async();
			if (vt_now() - last > cfg.stall_s)
				stalled();
		}
		for (done = 0, l = links; l < links + cfg.qps; l++)
			done += finished(l);
	} while (done < cfg.qps);
}

/* give the peer a window that it will invalidate */
static void bind_window(struct link *l)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = ~0ull,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = l->mw,
			.rkey = ibv_inc_rkey(l->mw_rkey),
			.bind_info = {
				.mr = l->remote.mr,
				.addr = (uintptr_t)l->remote.mr->addr,
				.length = 64,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
			},
		},
	};
	double end = vt_now() + cfg.stall_s;
	struct ibv_wc wc;
	int rc;

	rc = ibv_post_send(l->qp, &wr, &bad);
	if (rc)
		post_failed("bind", l, rc);
	l->mw_rkey = l->mw->rkey = wr.bind_mw.rkey;
	while (!ibv_poll_cq(send_cq, 1, &wc))
		if (vt_now() > end)
			vt_die(VT_STALLED, "STALLED in bind");
	if (wc.status || wc.opcode != IBV_WC_BIND_MW || wc.wr_id != ~0ull)
		vt_die(wc.status == IBV_WC_WR_FLUSH_ERR ? VT_GONE : VT_WRONG,
		       "WRONG bind completion: %s opcode %d", ibv_wc_status_str(wc.status), wc.opcode);
}

static bool plan_has_inv(const struct plan *plan)
{
	uint32_t i;

	for (i = 0; i < plan->n; i++)
		if (plan->ops[i].kind == OP_SEND_INV)
			return true;
	return false;
}

static void prepare(struct link *l)
{
	uint64_t stream = (uint64_t)round_nr << 16 | (l - links) << 1;

	l->posted = l->completed = l->received = 0;
	l->mine.n = l->theirs.n = 0;
	if (client || !cfg.one_way)
		plan_make(&l->mine, &cfg.plan, stream | client, l->mtu);
	if (!client || !cfg.one_way)
		plan_make(&l->theirs, &cfg.plan, stream | !client, l->mtu);
	plan_local(&l->mine, &cfg.plan, l->max_inline, l->local.mr->addr, l->local.want);
	plan_remote(&l->theirs, &cfg.plan, l->remote.mr->addr, l->remote.want);
	if (plan_has_inv(&l->theirs))
		bind_window(l);
	if (!cfg.rnr)
		post_recvs(l);
}

/* true: go on */
static bool meet(bool stop)
{
	struct barrier mine = { .round = round_nr, .stop = stop }, peer;
	uint32_t i;

	for (i = 0; i < cfg.qps; i++)
		mine.mw_rkey[i] = links[i].mw_rkey;
	vt_ctl_swap_numbers(ctl, &mine, &peer, sizeof(mine), "4");
	if (peer.round != round_nr)
		vt_die(VT_WRONG, "the peer is in round %u, not %u", peer.round, round_nr);
	for (i = 0; i < cfg.qps; i++)
		links[i].peer_mw_rkey = peer.mw_rkey[i];
	return !mine.stop && !peer.stop;
}

static void compare(const struct link *l, const struct area *a, const struct plan *plan, bool local)
{
	const uint8_t *mem = a->mr->addr;
	uint32_t i, at, area = plan_area(&cfg.plan);
	const struct op *op = NULL;

	if (!memcmp(mem, a->want, area))
		return;
	for (at = 0; mem[at] == a->want[at]; at++)
		;
	for (i = 0; i < plan->n; i++)
		if ((local ? plan->ops[i].local : plan->ops[i].remote) <= at)
			op = &plan->ops[i];
	vt_die(VT_WRONG, "WRONG data: round %u qp %u %s byte %u is %02x, not %02x; after the start of %s of %u bytes at %u (%u + %u pieces, gap %u)",
	       round_nr, l->qp->qp_num, local ? "requester" : "responder", at, mem[at], a->want[at],
	       op ? op_names[op->kind] : "nothing", op ? op->len : 0,
	       op ? (local ? op->local : op->remote) : 0, op ? op->local_sges : 0,
	       op ? op->remote_sges : 0, op ? op->gap : 0);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* increments by many queue pairs of one counter: none lost, none twice */
static void compare_counts(void)
{
	uint64_t *counter = count_mr->addr, *results = counter + 1, expected = 0, i;
	struct link *l;

	for (l = links; l < links + cfg.qps; l++)
		for (i = 0; i < l->theirs.n; i++)
			expected += l->theirs.ops[i].kind == OP_COUNT;
	if (*counter != expected)
		vt_die(VT_WRONG, "WRONG counter: round %u: %lu increments made %lu", round_nr,
		       (unsigned long)expected, (unsigned long)*counter);
	qsort(results, counts_made, 8, by_value);
	for (i = 0; i < counts_made; i++)
		if (results[i] != i)
			vt_die(VT_WRONG, "WRONG counter: round %u: result %lu instead of %lu", round_nr,
			       (unsigned long)results[i], (unsigned long)i);
	counts_made = 0;
	*counter = 0;
}

static void account(const struct link *l)
{
	uint32_t i;

	for (i = 0; i < l->mine.n; i++) {
		total_msgs[l->mine.ops[i].kind]++;
		total_bytes += l->mine.ops[i].len;
	}
}

static bool one_round(bool stop)
{
	struct link *l;

	for (l = links; l < links + cfg.qps; l++)
		prepare(l);
	if (!meet(stop))
		return false;
	if (cfg.rnr) {
		usleep(vt_mix(round_nr) % 3000);
		for (l = links; l < links + cfg.qps; l++)
			post_recvs(l);
	}
	run_traffic();
	meet(false);
	/* to see that a single wrong bit, in a place that was chosen at random, is found */
	if (sabotage)
		((uint8_t *)links->remote.mr->addr)[vt_mix(time(NULL)) % plan_area(&cfg.plan)] ^= 1;
	for (l = links; l < links + cfg.qps; l++) {
		compare(l, &l->local, &l->mine, true);
		compare(l, &l->remote, &l->theirs, false);
		account(l);
	}
	compare_counts();
	return true;
}

static void report(double t)
{
	int i;

	printf("verified %u rounds, %u qps, %lu bytes in %.2f s:", round_nr, cfg.qps,
	       (unsigned long)total_bytes, t);
	for (i = 0; i < OP_KINDS; i++)
		if (total_msgs[i])
			printf(" %s=%lu", op_names[i], (unsigned long)total_msgs[i]);
	printf("\n");
}

/* --- command line ------------------------------------------------------------- */

static uint32_t parse_ops(char *list)
{
	uint32_t kinds = 0;
	char *word;
	int i;

	for (word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		for (i = 0; i < OP_KINDS && strcmp(word, op_names[i]); i++)
			;
		if (i == OP_KINDS)
			vt_die(VT_SETUP, "unknown operation %s", word);
		kinds |= 1u << i;
	}
	return kinds;
}

static const struct option options[] = {
	{ "device", 1, NULL, 'd' }, { "ip", 1, NULL, 'i' }, { "gid", 1, NULL, 'x' },
	{ "port", 1, NULL, 'p' }, { "iters", 1, NULL, 'n' }, { "seconds", 1, NULL, 't' },
	{ "seed", 1, NULL, 's' }, { "size-max", 1, NULL, 'm' }, { "ops", 1, NULL, 'o' },
	{ "read-min", 1, NULL, 'l' },
	{ "qps", 1, NULL, 'q' }, { "batch", 1, NULL, 'b' }, { "sges", 1, NULL, 'g' },
	{ "mtu", 1, NULL, 'M' }, { "rd-atomic", 1, NULL, 'a' }, { "timeout", 1, NULL, 'T' },
	{ "sl", 1, NULL, 'L' }, { "tclass", 1, NULL, 'C' },
	{ "retry", 1, NULL, 'R' }, { "rnr-retry", 1, NULL, 'N' }, { "stall", 1, NULL, 'S' },
	{ "one-way", 0, NULL, '1' }, { "rnr", 0, NULL, 'r' }, { "no-fence", 0, NULL, 'F' }, { "events", 0, NULL, 'e' },
	{ "show-qps", 0, NULL, 'v' }, { "sabotage", 0, NULL, 'Z' }, { "help", 0, NULL, 'h' }, {}
};

static void usage(void)
{
	const struct option *o;

	printf("verify [options] [HOST]; without HOST the server, which needs only device, ip or gid, port\n");
	for (o = options; o->name; o++)
		printf("  -%c, --%s%s\n", o->val, o->name, o->has_arg ? " VALUE" : "");
	exit(VT_SETUP);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "d:i:x:p:n:t:s:m:l:o:q:b:g:M:a:T:L:C:R:N:S:1reFvZh", options, NULL)) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'i': ip = optarg; break;
		case 'x': gid_index = atoi(optarg); break;
		case 'p': port = atoi(optarg); break;
		case 'n': cfg.iters = atoi(optarg); break;
		case 't': seconds = atof(optarg); break;
		case 's': cfg.plan.seed = strtoull(optarg, NULL, 0); break;
		case 'm': cfg.plan.size_max = strtoul(optarg, NULL, 0); break;
		case 'l': cfg.plan.read_min = strtoul(optarg, NULL, 0); break;
		case 'o': cfg.plan.kinds = parse_ops(optarg); break;
		case 'q': cfg.qps = atoi(optarg); break;
		case 'b': cfg.plan.batch = atoi(optarg); break;
		case 'g': cfg.plan.sges = atoi(optarg); break;
		case 'M': cfg.mtu = strcmp(optarg, "all") ? atoi(optarg) : 0; break;
		case 'a': cfg.rd_atomic = atoi(optarg); break;
		case 'T': cfg.timeout = atoi(optarg); break;
		case 'L': cfg.sl = atoi(optarg); break;
		case 'C': cfg.tclass = strtoul(optarg, NULL, 0); break;
		case 'R': cfg.retry_cnt = atoi(optarg); break;
		case 'N': cfg.rnr_retry = atoi(optarg); break;
		case 'S': cfg.stall_s = atoi(optarg); break;
		case '1': cfg.one_way = 1; break;
		case 'r': cfg.rnr = 1; break;
		case 'F': cfg.no_fence = 1; break;
		case 'e': cfg.events = 1; break;
		case 'Z': sabotage = true; break;
		case 'v': show_qps = true; break;
		default: usage();
		}
	}
	if (optind < argc) {
		host = argv[optind];
		client = true;
	}
	if (cfg.qps < 1 || cfg.qps > MAX_QPS || cfg.plan.batch < 1 || cfg.plan.batch > MAX_BATCH ||
	    cfg.plan.sges < 1 || cfg.plan.sges > 32)
		usage();
}

static void on_signal(int sig)
{
	enough = 1;
}

int main(int argc, char **argv)
{
	double start;
	bool stop;

	parse(argc, argv);
	signal(SIGUSR1, on_signal);
	if (vt_is_rxe())
		wc_with_inv = 1 << 2;
	set_up();
	start = vt_now();
	do {
		round_nr++;
		stop = client && (enough || (seconds ? vt_now() - start > seconds : round_nr > cfg.iters));
	} while (one_round(stop));
	round_nr--;
	report(vt_now() - start);
	if (!round_nr)
		vt_die(VT_WRONG, "nothing was verified");
	tear_down();
	return VT_OK;
}
