// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * raw_may: who may have raw packets. A process that may do all opens the device and makes what is needed for the rest; a child
 * of it goes to a user namespace, and asks for a queue pair, a work queue and a flow.
 *
 *	raw_may -d DEVICE -i IP [-u PID] [-n] [-c] [-r] [-m]
 *
 * -u: to the user namespace of that process; -n: then to a new one in that; -c: and without CAP_NET_RAW there. All is
 * granted, or with -r refused with EPERM.
 *
 * -m: the child sends a frame of type 0x88b5, says "# listening", and hears what others send to IP, of which one frame has 597
 * bytes. Then it says "# ready", and the netdev moves to a namespace where it may nothing, before a line is read. It does not
 * hear a frame of 819 bytes then, and another one that it sends is lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "raw_parts.h"

enum { BEFORE = 597, AFTER = 819 };

static struct vt_dev dev;
static struct queue parents;
static const char *user_of;
static bool nested, without, refused, moves;

static void go_there(void)
{
	char path[64];
	int fd;

	if (user_of) {
		snprintf(path, sizeof(path), "/proc/%s/ns/user", user_of);
		fd = open(path, O_RDONLY);
		if (fd < 0 || setns(fd, CLONE_NEWUSER))
			vt_die(VT_SETUP, "%s: %s", path, strerror(errno));
		close(fd);
	}
	if (nested && unshare(CLONE_NEWUSER))
		vt_die(VT_SETUP, "a user namespace: %s", strerror(errno));
	if (without)
		drop_net_raw();
}

static void is(const char *what, bool there)
{
	int error = there ? 0 : errno;

	vt_check(error == (refused ? EPERM : 0), "%s: %s", what, strerror(error));
}

/* The flow is of the parent's queue pair: whoever has no queue pair of his own may have got one from somebody else */
static void ask(void)
{
	struct rule r = rule(IBV_FLOW_ATTR_SNIFFER, 0, 0);
	struct ibv_cq *cq = vt_create_cq(&dev, 16);
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = dev.pd, .cq = cq };
	struct ibv_flow *f;
	struct ibv_qp *qp;
	struct ibv_wq *wq;

	qp = make_qp(&dev, cq, 0, 0);
	is("a queue pair", qp);
	wq = ibv_create_wq(dev.ctx, &init);
	is("a work queue", wq);
	f = ibv_create_flow(parents.qp, &r.attr);
	is("a flow", f);
	if ((f && ibv_destroy_flow(f)) || (qp && ibv_destroy_qp(qp)) || (wq && ibv_destroy_wq(wq)))
		vt_die(VT_WRONG, "destroy: %s", strerror(errno));
}

/* A frame for nobody */
static void send_one(struct queue *q)
{
	struct ibv_sge sge = { (uintptr_t)q->mr->addr, 60, q->mr->lkey };
	struct ibv_send_wr *bad, wr = vt_request(&sge, SLOTS, IBV_WR_SEND);
	struct got g = {};
	struct frame f;

	eth(&f, mac_b, -1, TYPE);
	pad(&f, 46, 1);
	memcpy(q->mr->addr, f.data, f.len);
	if (ibv_post_send(q->qp, &wr, &bad) || !next(q, &g, 5))
		vt_die(VT_WRONG, "no completion of a frame");
	vt_check(!g.status, "a frame is sent: %s", ibv_wc_status_str(g.status));
}

static bool comes(struct queue *q, uint32_t len, double seconds)
{
	struct got g;

	while (next(q, &g, seconds))
		if (!g.status && g.len == len)
			return true;
	return false;
}

static void deaf(void)
{
	struct rule r = rule(IBV_FLOW_ATTR_SNIFFER, 0, 0);
	struct queue q, out;
	struct ibv_flow *f;

	queue_open(&q, &dev, 0);
	queue_open(&out, &dev, 0);
	f = flow(&q, &r);
	send_one(&out);
	puts("# listening");
	fflush(stdout);
	vt_check(comes(&q, BEFORE, 30), "what others send comes");
	puts("# ready");
	fflush(stdout);
	getchar();
	vt_check(!comes(&q, AFTER, 1), "and does not when the netdev has moved away");
	refused = true;
	is("another flow", ibv_create_flow(q.qp, &r.attr));
	is("another queue pair", make_qp(&dev, ibv_cq_ex_to_cq(q.cq), 0, 0));
	send_one(&out);
	end_flow(f);
	queue_close(&q);
	queue_close(&out);
}

static void child(void *arg)
{
	go_there();
	if (moves)
		deaf();
	else
		ask();
}

int main(int argc, char **argv)
{
	const char *name = NULL, *ip = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "d:i:u:ncrm")) != -1) {
		switch (opt) {
		case 'd': name = optarg; break;
		case 'i': ip = optarg; break;
		case 'u': user_of = optarg; break;
		case 'n': nested = true; break;
		case 'c': without = true; break;
		case 'r': refused = true; break;
		case 'm': moves = true; break;
		default: vt_die(VT_SETUP, "see the head of raw_may.c");
		}
	}
	vt_open(&dev, name, ip, -1);
	queue_open(&parents, &dev, 0);
	vt_in_child(moves ? "what it hears" : "what it gets", child, NULL);
	queue_close(&parents);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
