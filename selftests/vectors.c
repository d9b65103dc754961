// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * vectors: messages whose completions raise events by one vector.
 *
 *	vectors -d DEVICE -i IP VECTOR MESSAGES
 *
 * All on CPU 0, one message after the other, each with an event. Which CPU has had to do with
 * them is for whoever has called this to see.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "ends.h"

static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		vt_die(VT_SETUP, "cannot run on CPU 0");
}

/* The completions of receives go by that vector */
static struct ibv_comp_channel *channel_of(int vector)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(b.dev->ctx);

	if (!channel || ibv_destroy_cq(b.recv_cq))
		vt_die(VT_SETUP, "no channel");
	b.recv_cq = vt_create_channel_cq(b.dev, 64, channel, vector);
	return channel;
}

int main(int argc, char **argv)
{
	int vector = atoi(argv[argc - 2]), n = atoi(argv[argc - 1]), i;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr;

	if (argc < 4)
		vt_die(VT_SETUP, "see the top of vectors.c");
	pin();
	ends_open(argc - 2, argv);
	channel = channel_of(vector);
	mr = vt_mr(a.dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	ends_fresh(IBV_QPT_RC);
	for (i = 0; i < n; i++) {
		struct ibv_wc wc;

		ibv_req_notify_cq(b.recv_cq, 0);
		post_recv(&b, i, local(mr), 64);
		post_op(&a, i, IBV_WR_SEND, local(mr), 64, local(mr));
		if (vt_cq_event(channel, 5) != b.recv_cq || !poll_one(b.recv_cq, &wc, 5) || wc.status ||
		    !poll_one(a.send_cq, &wc, 5) || wc.status)
			vt_die(VT_WRONG, "WRONG: message %d", i);
	}
	ends_stop();
	return VT_OK;
}
