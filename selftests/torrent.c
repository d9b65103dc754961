// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * torrent: raw packets of which many copies are made. One process sends frames as fast as they go, another one receives
 * them by as many flows as it is told, into one queue pair that always has receives.
 *
 *	torrent -d DEVICE -i IP -D DEVICE_OF_PEER -I IP_OF_PEER -f FLOWS [-m MSS] [-l BYTES] [-s SHAPES] [-t SECONDS] [-a]
 *
 * With an MSS it sends TCP packets of BYTES that are to be cut, without plain frames of BYTES. Of the flows, 16 say just the
 * same, the next 16 do not trap, and the last 16 are sniffers: of no kind there may be more. SHAPES flows besides look at
 * frames that do not come. With -a the sender waits until all copies of a packet have come before it sends the next, and none
 * may be missing; without, it does not care how many are lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vt.h"

enum { EACH = 16, CLASSES = 3, DEPTH = 8192, BATCH = 256, SLOT = 9216, HEADER = 54, MOST = 64000 };

static const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 0xa };
static const uint8_t mac_b[6] = { 2, 0, 0, 0, 0, 0xb };

static struct {
	unsigned int flows, mss, bytes, shapes;
	double seconds;
	bool all;
} opt = { .flows = 12, .bytes = 60000, .seconds = 2 };

/* What both processes see */
static struct {
	volatile uint64_t copies, packets;
	volatile bool end;
} *shared;

static struct vt_dev devs[2];

/* --- queue pairs -------------------------------------------------------------------- */

static struct ibv_qp *open_qp(struct vt_dev *dev, struct ibv_cq *cq, uint32_t sends, uint32_t recvs)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1, .pd = dev->pd,
		.cap = { .max_send_wr = sends, .max_recv_wr = recvs, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER, .max_tso_header = 128,
	};
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp_ex(dev->ctx, &attr);

	if (!qp)
		vt_die(VT_SETUP, "queue pair: %s", strerror(errno));
	if (ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PORT))
		vt_die(VT_WRONG, "to INIT: %s", strerror(errno));
	for (to.qp_state = IBV_QPS_RTR; to.qp_state <= IBV_QPS_RTS; to.qp_state++)
		if (ibv_modify_qp(qp, &to, IBV_QP_STATE))
			vt_die(VT_WRONG, "to RTS: %s", strerror(errno));
	return qp;
}

/* --- flows ---------------------------------------------------------------------------- */

struct rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
} __attribute__((packed, aligned(8)));

static void add_flow(struct ibv_qp *qp, enum ibv_flow_attr_type type, uint16_t priority, uint32_t flags, const uint8_t *dst)
{
	struct rule r = {
		.attr = { .type = type, .priority = priority, .port = 1, .flags = flags, .size = sizeof(r.attr) },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth) },
	};

	if (dst) {
		r.attr.num_of_specs = 1;
		r.attr.size = sizeof(r);
		memcpy(r.eth.val.dst_mac, dst, 6);
		memset(r.eth.mask.dst_mac, 0xff, 6);
	}
	if (!ibv_create_flow(qp, &r.attr))
		vt_die(VT_WRONG, "create a flow: %s", strerror(errno));
}

static void add_flows(struct ibv_qp *qp)
{
	const uint8_t nobody[6] = { 2, 0, 0, 0, 0, 0xc };
	unsigned int i;

	/* Those that nothing is for come first */
	for (i = 0; i < opt.shapes; i++)
		add_flow(qp, IBV_FLOW_ATTR_NORMAL, i, 0, nobody);
	for (i = 0; i < opt.flows; i++) {
		switch (i / EACH) {
		case 0:
			add_flow(qp, IBV_FLOW_ATTR_NORMAL, opt.shapes + 1, 0, mac_b);
			break;
		case 1:
			add_flow(qp, IBV_FLOW_ATTR_NORMAL, opt.shapes, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, mac_b);
			break;
		default:
			add_flow(qp, IBV_FLOW_ATTR_SNIFFER, 0, 0, NULL);
		}
	}
}

/* --- receiving -------------------------------------------------------------------------- */

static void give(struct ibv_qp *qp, const struct ibv_mr *mr, int n)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, SLOT, mr->lkey };
	struct ibv_recv_wr wr[BATCH], *bad;
	int i, rc;

	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){ .next = i + 1 < n ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1 };
	rc = ibv_post_recv(qp, wr, &bad);
	if (rc)
		vt_die(VT_WRONG, "post receives: %s", strerror(rc));
}

/* One of ours, and not what the host itself says to its neighbours, which sniffers see as well */
static bool is_ours(const struct ibv_wc *wc)
{
	unsigned int least = opt.mss ? HEADER + opt.bytes % opt.mss : opt.bytes;

	return wc->byte_len == least || (opt.mss && wc->byte_len == HEADER + opt.mss);
}

static void receive(void)
{
	struct ibv_cq *cq = vt_create_cq(&devs[1], DEPTH);
	struct ibv_mr *mr = vt_mr(&devs[1], SLOT, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = open_qp(&devs[1], cq, 1, DEPTH);
	struct ibv_wc wc[BATCH];
	double end;
	int i, n;

	for (i = 0; i < DEPTH; i += BATCH)
		give(qp, mr, BATCH);
	add_flows(qp);
	puts("# ready");
	fflush(stdout);
	/* For a moment longer, until what was sent has come */
	for (end = 0; !end || vt_now() < end;) {
		if (shared->end && !end)
			end = vt_now() + 0.5;
		n = ibv_poll_cq(cq, BATCH, wc);
		for (i = 0; i < n; i++) {
			if (wc[i].status)
				vt_die(VT_WRONG, "receive: %s", ibv_wc_status_str(wc[i].status));
			shared->copies += is_ours(&wc[i]);
		}
		if (n > 0)
			give(qp, mr, n);
	}
}

/* --- sending ------------------------------------------------------------------------------ */

static void put16(uint8_t *to, unsigned int value)
{
	to[0] = value >> 8;
	to[1] = value;
}

static void make_header(uint8_t *h)
{
	memset(h, 0, HEADER);
	memcpy(h, mac_b, 6);
	memcpy(h + 6, mac_a, 6);
	put16(h + 12, opt.mss ? ETH_P_IP : 0x88b5);
	if (!opt.mss)
		return;
	h[14] = 0x45;
	put16(h + 16, 40);
	h[22] = 64;
	h[23] = IPPROTO_TCP;
	h[26] = h[30] = 10;
	h[29] = 1;
	h[33] = 2;
	put16(h + 34, 7);
	put16(h + 36, 7);
	h[46] = 0x50;
	h[47] = 0x10;
}

static uint64_t copies_of_one(void)
{
	return opt.flows * (uint64_t)(opt.mss ? (opt.bytes + opt.mss - 1) / opt.mss : 1);
}

static void wait_for_copies(void)
{
	double end = vt_now() + 30;

	while (shared->copies < shared->packets * copies_of_one())
		if (vt_now() > end)
			break;
}

static void send_frames(void)
{
	struct ibv_cq *cq = vt_create_cq(&devs[0], 64);
	struct ibv_mr *mr = vt_mr(&devs[0], MOST + HEADER, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = open_qp(&devs[0], cq, 32, 1);
	struct ibv_sge sge = { (uintptr_t)mr->addr, opt.bytes, mr->lkey };
	struct ibv_send_wr wr = { .opcode = opt.mss ? IBV_WR_TSO : IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	uint8_t header[HEADER];
	double end = vt_now() + opt.seconds;
	struct ibv_wc wc;

	make_header(header);
	memset(mr->addr, 0x33, MOST);
	if (!opt.mss)
		memcpy(mr->addr, header, HEADER);
	wr.tso.hdr = header;
	wr.tso.hdr_sz = HEADER;
	wr.tso.mss = opt.mss;
	while (vt_now() < end) {
		if (ibv_post_send(qp, &wr, &bad))
			vt_die(VT_WRONG, "post send: %s", strerror(errno));
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		if (wc.status)
			vt_die(VT_WRONG, "send: %s", ibv_wc_status_str(wc.status));
		shared->packets++;
		if (opt.all)
			wait_for_copies();
	}
}

static void report(void)
{
	uint64_t sent = shared->packets * copies_of_one();

	printf("# %llu packets, each %llu copies: %llu of %llu have come\n", (unsigned long long)shared->packets,
	       (unsigned long long)copies_of_one(), (unsigned long long)shared->copies, (unsigned long long)sent);
	if (!shared->copies || (opt.all && shared->copies != sent))
		vt_die(VT_WRONG, "copies are missing");
}

/* --- main ----------------------------------------------------------------------------------- */

static void options(int argc, char **argv)
{
	const char *dev[2] = {}, *ip[2] = {};
	int c;

	while ((c = getopt(argc, argv, "d:i:D:I:f:m:l:s:t:a")) != -1) {
		switch (c) {
		case 'd': dev[0] = optarg; break;
		case 'i': ip[0] = optarg; break;
		case 'D': dev[1] = optarg; break;
		case 'I': ip[1] = optarg; break;
		case 'f': opt.flows = atoi(optarg); break;
		case 'm': opt.mss = atoi(optarg); break;
		case 'l': opt.bytes = atoi(optarg); break;
		case 's': opt.shapes = atoi(optarg); break;
		case 't': opt.seconds = atof(optarg); break;
		case 'a': opt.all = true; break;
		default: vt_die(VT_SETUP, "bad option");
		}
	}
	if (!dev[0] || !dev[1] || opt.flows < 1 || opt.flows > EACH * CLASSES || opt.bytes < HEADER || opt.bytes > MOST)
		vt_die(VT_SETUP, "torrent -d DEVICE -i IP -D DEVICE -I IP -f FLOWS [-m MSS] [-l BYTES] [-s SHAPES] [-t SECONDS] [-a]");
	vt_open(&devs[0], dev[0], ip[0], -1);
	vt_open(&devs[1], dev[1], ip[1], -1);
}

int main(int argc, char **argv)
{
	int status = 0, ready[2];
	pid_t receiver;
	char byte;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(ready))
		vt_die(VT_SETUP, "no memory");
	receiver = fork();
	if (!receiver) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], STDOUT_FILENO);
		options(argc, argv);
		receive();
		_exit(VT_OK);
	}
	options(argc, argv);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		vt_die(VT_SETUP, "nobody receives");
	send_frames();
	shared->end = true;
	waitpid(receiver, &status, 0);
	if (status)
		vt_die(VT_WRONG, "the receiver: status %#x", status);
	report();
	return VT_OK;
}
