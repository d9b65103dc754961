// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * woken: completion events that wake many. One message each goes to many queue pairs,
 * whose completion queues share a channel, and many epoll sets watch that.
 *
 *	woken -d DEVICE -i IP [-s] [TIMES]
 */
#include <sys/epoll.h>
#include <unistd.h>

#include "vt.h"

#define RECEIVERS 256
#define SETS 900
#define ROOM 64

static struct vt_dev dev;
static struct ibv_comp_channel *channel;
static struct ibv_mr *mr;
static struct ibv_qp *sender;
static struct ibv_cq *sent;
static struct receiver {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
} receivers[RECEIVERS];

static void watch(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int i, set;

	for (i = 0; i < SETS; i++) {
		set = epoll_create1(0);
		if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, channel->fd, &event))
			vt_die(VT_SETUP, "an epoll set");
	}
}

static void make(void)
{
	struct receiver *r;

	channel = ibv_create_comp_channel(dev.ctx);
	if (!channel)
		vt_die(VT_SETUP, "no channel");
	mr = vt_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	sent = vt_create_cq(&dev, 2 * RECEIVERS);
	sender = vt_create_ud_qp(&dev, sent, sent, RECEIVERS);
	for (r = receivers; r < receivers + RECEIVERS; r++) {
		r->cq = vt_create_channel_cq(&dev, 4, channel, 0);
		r->qp = vt_create_ud_qp(&dev, r->cq, r->cq, 1);
	}
}

static void ready(struct receiver *r)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr + 1024, 40 + ROOM, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	if (ibv_req_notify_cq(r->cq, 0) || ibv_post_recv(r->qp, &wr, &bad))
		vt_die(VT_SETUP, "a receiver");
}

/* to all of them, with one doorbell */
static void send_all(struct ibv_ah *ah)
{
	static struct ibv_send_wr wr[RECEIVERS];
	struct ibv_sge sge = { (uintptr_t)mr->addr, ROOM, mr->lkey };
	struct ibv_send_wr *bad;
	int i;

	for (i = 0; i < RECEIVERS; i++) {
		wr[i] = vt_request(&sge, i, IBV_WR_SEND);
		wr[i].wr.ud.ah = ah;
		wr[i].wr.ud.remote_qpn = receivers[i].qp->qp_num;
		wr[i].wr.ud.remote_qkey = VT_QKEY;
		wr[i].next = i + 1 < RECEIVERS ? wr + i + 1 : NULL;
	}
	if (ibv_post_send(sender, wr, &bad))
		vt_die(VT_WRONG, "post send");
}

/* each queue has one event, and one message */
static bool all_come(void)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < RECEIVERS; i++) {
		cq = vt_cq_event(channel, 10);
		if (!cq || !poll_one(cq, &wc, 10) || wc.status)
			return false;
	}
	for (i = 0; i < RECEIVERS; i++)
		if (!poll_one(sent, &wc, 10) || wc.status)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct vt_dev devs[2];
	struct ibv_ah *ah;
	struct receiver *r;
	bool less = false, ok = true;
	int i, times;

	vt_open_hosts(argc, argv, devs, &less);
	times = optind < argc ? atoi(argv[optind]) : less ? 20 : 100;
	dev = devs[0];
	make();
	watch();
	ah = vt_ah(&dev, &dev.gid);
	for (i = 0; i < times && ok; i++) {
		for (r = receivers; r < receivers + RECEIVERS; r++)
			ready(r);
		send_all(ah);
		ok = all_come();
	}
	vt_check(ok, "each of %d receivers is told of its message, while %d watch", RECEIVERS, SETS);
	return vt_failures ? VT_WRONG : VT_OK;
}
