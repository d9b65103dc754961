// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * unready: many connections of this host to itself, each with a SEND that no receive is there for. Every one of them is
 * tried again and again, at first after 10 us, for as long as the program runs.
 *
 * It says "# all sent" when they are.
 *
 *	unready -d DEVICE -i IP [-n CONNECTIONS] [-t SECONDS]
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "vt.h"

#define MESSAGE 8

static struct vt_dev dev;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

static struct ibv_qp *small_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return vt_create_qp(&dev, &init);
}

static int connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct vt_conn c = {
		.peer = { .qpn = peer->qp_num, .psn = 1, .gid = dev.gid },
		.sq_psn = 1,
		.mtu = IBV_MTU_1024,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
	};

	return vt_bring_up(qp, &dev, 0, &c);
}

static struct ibv_qp *connection(void)
{
	struct ibv_qp *sender = small_qp(), *receiver = small_qp();

	if (connect_qp(receiver, sender) || connect_qp(sender, receiver))
		vt_die(VT_SETUP, "connection: %s", strerror(errno));
	return sender;
}

static void send_one(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, MESSAGE, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	int err = ibv_post_send(qp, &wr, &bad);

	if (err)
		vt_die(VT_WRONG, "WRONG: post: %s", strerror(err));
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL;
	int c, i, n = 1000, seconds = 2;
	struct ibv_qp **qps;
	struct ibv_wc wc;

	while ((c = getopt(argc, argv, "d:i:n:t:")) != -1)
		if (c == 'd')
			device = optarg;
		else if (c == 'i')
			ip = optarg;
		else if (c == 'n')
			n = atoi(optarg);
		else if (c == 't')
			seconds = atoi(optarg);
	vt_open(&dev, device, ip, -1);
	cq = vt_create_cq(&dev, 4096);
	mr = vt_mr(&dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	qps = calloc(n, sizeof(*qps));
	if (!qps)
		vt_die(VT_SETUP, "no memory");
	for (i = 0; i < n; i++)
		qps[i] = connection();
	for (i = 0; i < n; i++)
		send_one(qps[i]);
	puts("# all sent");
	fflush(stdout);
	sleep(seconds);
	/* None may have been given up */
	if (ibv_poll_cq(cq, 1, &wc))
		vt_die(VT_WRONG, "WRONG: completion with status %s", ibv_wc_status_str(wc.status));
	return 0;
}
