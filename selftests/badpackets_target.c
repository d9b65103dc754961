// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * badpackets_target: an RC and a UD queue pair for badpackets to shoot at.
 *
 *	badpackets_target -d DEVICE -i IP -p IP_OF_PEER
 */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "badpackets.h"
#include "vt.h"

#define RECVS 64
#define SLOT (BP_ROOM + 4096)
#define CANARY 0xc5

static struct vt_dev dev;
static struct ibv_cq *cq;
static struct ibv_qp *rc, *ud;
static union ibv_gid peer;
static struct ibv_mr *recv_mr, *open_mr;
static uint8_t *memory;
static uint32_t rc_received, ud_received;

static void connect_qp(struct ibv_qp *qp)
{
	struct vt_conn conn = {
		.peer = { .qpn = BP_PEER_QPN, .psn = BP_PSN, .gid = peer },
		.mtu = IBV_MTU_1024,
		.rd_atomic = 4,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	if (vt_bring_up(qp, &dev, VT_REMOTE_ACCESS, &conn))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
}

static void post(struct ibv_qp *qp, uint32_t n)
{
	struct ibv_sge sge = { (uintptr_t)recv_mr->addr + n * SLOT, BP_ROOM, recv_mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };
	int rc = ibv_post_recv(qp, &wr, &bad);

	if (rc)
		vt_die(VT_WRONG, "post recv: %s", strerror(rc));
}

/* receives 0 .. RECVS - 1 are the RC queue pair's */
static void post_all(struct ibv_qp *qp)
{
	uint32_t i;

	for (i = 0; i < RECVS; i++)
		post(qp, qp == rc ? i : RECVS + i);
}

static void poll_cq(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0) {
		bool is_rc = wc.wr_id < RECVS;

		if (wc.status == IBV_WC_SUCCESS) {
			rc_received += is_rc;
			ud_received += !is_rc;
		}
		/* in error everything is flushed until the next reset */
		if (!is_rc || wc.status == IBV_WC_SUCCESS)
			post(is_rc ? rc : ud, wc.wr_id);
	}
}

static void reset(void)
{
	poll_cq();
	if (vt_to_state(rc, IBV_QPS_RESET))
		vt_die(VT_WRONG, "qp to RESET: %s", strerror(errno));
	poll_cq();
	rc_received = 0;
	memset(memory, 0, BP_ROOM);
	connect_qp(rc);
	post_all(rc);
}

static bool is_canary(const uint8_t *p, size_t len)
{
	while (len--)
		if (*p++ != CANARY)
			return false;
	return true;
}

static bool intact(void)
{
	const uint8_t *p = recv_mr->addr;
	uint32_t i;

	for (i = 0; i < 2 * RECVS; i++)
		if (!is_canary(p + i * SLOT + BP_ROOM, SLOT - BP_ROOM))
			return false;
	return is_canary(memory - BP_ROOM, BP_ROOM) && is_canary(memory + BP_ROOM, BP_ROOM);
}

static void make_memory(void)
{
	recv_mr = vt_mr(&dev, 2 * RECVS * SLOT, IBV_ACCESS_LOCAL_WRITE);
	memset(recv_mr->addr, CANARY, 2 * RECVS * SLOT);
	/* open to the peer: the middle of three pieces */
	memory = malloc(3 * BP_ROOM);
	memset(memory, CANARY, 3 * BP_ROOM);
	memory += BP_ROOM;
	open_mr = ibv_reg_mr(dev.pd, memory, BP_ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
}

static struct bp_report report_now(void)
{
	return (struct bp_report){
		.rc_qpn = rc->qp_num,
		.ud_qpn = ud->qp_num,
		.state = vt_state(rc),
		.ud_state = vt_state(ud),
		.rc_received = rc_received,
		.ud_received = ud_received,
		.rkey = open_mr->rkey,
		.addr = (uintptr_t)memory,
		.intact = intact(),
		.first = memory[0],
	};
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL, *peer_ip = NULL;
	struct bp_request none = {}, req;
	struct bp_report report, ignored;
	int c, ctl;

	while ((c = getopt(argc, argv, "d:i:p:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'i': ip = optarg; break;
		case 'p': peer_ip = optarg; break;
		default: vt_die(VT_SETUP, "see the top of badpackets_target.c");
		}
	}
	vt_open(&dev, device, ip, -1);
	peer = vt_gid_of_ip(peer_ip);
	cq = vt_create_cq(&dev, 8 * RECVS);
	make_memory();
	if (!open_mr)
		vt_die(VT_SETUP, "set-up: %s", strerror(errno));
	rc = vt_new_qp(&dev, IBV_QPT_RC, cq, 8, RECVS);
	ud = vt_new_qp(&dev, IBV_QPT_UD, cq, 8, RECVS);
	connect_qp(rc);
	connect_qp(ud);
	post_all(rc);
	post_all(ud);
	printf("ready\n");
	fflush(stdout);
	ctl = vt_ctl_accept(BP_PORT, 120);
	for (;;) {
		vt_ctl_swap(ctl, &none, &req, sizeof(req));
		if (req.command == BP_RESET)
			reset();
		poll_cq();
		report = report_now();
		rc_received = ud_received = 0;
		vt_ctl_swap(ctl, &report, &ignored, sizeof(report));
		if (req.command == BP_END)
			return report.intact ? VT_OK : VT_WRONG;
	}
}
