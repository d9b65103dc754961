// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * stray: messages for a queue pair by somebody who only knows its number.
 *
 *	stray -d DEVICE -i IP [-p PEER]            a datagram and an unreliably connected queue pair, which
 *	                                           expect messages from PEER (IP itself); prints their numbers,
 *	                                           and at SIGTERM how many messages each has got
 *	stray -d DEVICE -i IP UD_QPN UC_QPN        from IP to IP, 16 messages to each of them
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "vt.h"

#define MESSAGES 16
#define GRH 40
#define SIZE 64

static struct vt_dev dev;
static union ibv_gid peer_gid;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *mr;
static volatile sig_atomic_t stop;

static struct ibv_qp *stray_qp(enum ibv_qp_type type, uint32_t peer)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq, .recv_cq = recv_cq, .qp_type = type, .sq_sig_all = 1,
		.cap = { .max_send_wr = MESSAGES, .max_recv_wr = 2 * MESSAGES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct vt_conn conn = { .mtu = IBV_MTU_256, .peer = { .qpn = peer, .gid = peer_gid } };
	struct ibv_qp *qp = vt_create_qp(&dev, &init);

	if (vt_bring_up(qp, &dev, 0, &conn))
		vt_die(VT_SETUP, "connect qp: %s", strerror(errno));
	return qp;
}

static void post_recvs(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, GRH + SIZE, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int i;

	for (i = 0; i < 2 * MESSAGES; i++)
		if (ibv_post_recv(qp, &wr, &bad))
			vt_die(VT_SETUP, "post recv: %s", strerror(errno));
}

static void on_signal(int sig)
{
	stop = 1;
}

static void receive(void)
{
	struct ibv_qp *ud = stray_qp(IBV_QPT_UD, 0), *uc = stray_qp(IBV_QPT_UC, 1);
	int got_ud = 0, got_uc = 0;
	struct ibv_wc wc;

	post_recvs(ud);
	post_recvs(uc);
	signal(SIGTERM, on_signal);
	printf("%u %u\n", ud->qp_num, uc->qp_num);
	fflush(stdout);
	while (!stop)
		usleep(10000);
	while (ibv_poll_cq(recv_cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			vt_die(VT_WRONG, "completion: %s", ibv_wc_status_str(wc.status));
		if (wc.qp_num == ud->qp_num)
			got_ud++;
		else
			got_uc++;
	}
	printf("got %d %d\n", got_ud, got_uc);
}

static void send_all(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, SIZE, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;
	int i, n, err = 0;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = VT_QKEY;
	}
	for (i = 0; i < MESSAGES && !err; i++)
		err = ibv_post_send(qp, &wr, &bad);
	if (err)
		vt_die(VT_SETUP, "post send: %s", strerror(err));
	for (i = 0; i < MESSAGES; i += n) {
		n = ibv_poll_cq(send_cq, 1, &wc);
		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			vt_die(VT_WRONG, "completion: %s", ibv_wc_status_str(wc.status));
	}
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL, *peer = NULL;
	struct ibv_ah *ah;
	int c;

	while ((c = getopt(argc, argv, "d:i:p:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'i': ip = optarg; break;
		case 'p': peer = optarg; break;
		default: vt_die(VT_SETUP, "see the top of stray.c");
		}
	}
	if (!device || !ip || (optind < argc && argc - optind != 2))
		vt_die(VT_SETUP, "see the top of stray.c");
	vt_open(&dev, device, ip, -1);
	peer_gid = peer ? vt_gid_of_ip(peer) : dev.gid;
	send_cq = vt_create_cq(&dev, 4 * MESSAGES);
	recv_cq = vt_create_cq(&dev, 4 * MESSAGES);
	mr = vt_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	if (optind == argc) {
		receive();
		return VT_OK;
	}
	ah = vt_ah(&dev, &dev.gid);
	if (!ah)
		vt_die(VT_SETUP, "create ah: %s", strerror(errno));
	send_all(stray_qp(IBV_QPT_UD, 0), ah, atoi(argv[optind]));
	send_all(stray_qp(IBV_QPT_UC, atoi(argv[optind + 1])), NULL, 0);
	/* what was sent is there, or will never be */
	usleep(200000);
	return VT_OK;
}
