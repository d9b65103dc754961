// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * idler: a process that has used the network, and then does nothing any more.
 *
 *	idler -d DEVICE -i IP [-g GROUP]... [-p PEER]...
 *
 * It is a member of each GROUP, and has an address handle for each PEER that it has sent a
 * datagram with. Prints "idle" when all of that is done, and stays until it is killed.
 */
#include <errno.h>
#include <unistd.h>

#include "vt.h"

/* nobody's */
#define PEER_QPN 0xfffff0
#define LEN 64

static struct vt_dev dev;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

static void furnish(void)
{
	cq = vt_create_cq(&dev, 16);
	mr = vt_mr(&dev, LEN, IBV_ACCESS_LOCAL_WRITE);
	qp = vt_create_ud_qp(&dev, cq, cq, 8);
}

static void join(const char *name)
{
	union ibv_gid group = vt_gid_of_ip(name);

	if (ibv_attach_mcast(qp, &group, 0))
		vt_die(VT_WRONG, "attach to %s: %s", name, strerror(errno));
}

static void wait_sent(void)
{
	double end = vt_now() + 10;
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		if (vt_now() > end)
			vt_die(VT_STALLED, "the datagram was not sent");
	if (wc.status)
		vt_die(VT_WRONG, "datagram: %s", ibv_wc_status_str(wc.status));
}

static void greet(const char *peer)
{
	union ibv_gid gid = vt_gid_of_ip(peer);
	struct ibv_sge sge = { (uintptr_t)mr->addr, LEN, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = vt_ah(&dev, &gid), .remote_qpn = PEER_QPN, .remote_qkey = VT_QKEY },
	};

	if (!wr.wr.ud.ah || ibv_post_send(qp, &wr, &bad))
		vt_die(VT_WRONG, "datagram to %s: %s", peer, strerror(errno));
	wait_sent();
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL;
	int c;

	while ((c = getopt(argc, argv, "d:i:g:p:")) != -1)
		if (c == 'd')
			device = optarg;
		else if (c == 'i')
			ip = optarg;
	vt_open(&dev, device, ip, -1);
	furnish();
	optind = 1;
	while ((c = getopt(argc, argv, "d:i:g:p:")) != -1)
		if (c == 'g')
			join(optarg);
		else if (c == 'p')
			greet(optarg);
	printf("idle\n");
	fflush(stdout);
	for (;;)
		pause();
}
