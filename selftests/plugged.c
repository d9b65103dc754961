// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * plugged: a queue discipline below the device keeps every packet. Nobody waits for it for ever.
 *
 *	plugged -d DEVICE -i IP -D DEVICE_OF_PEER -I IP_OF_PEER HOW
 *
 * PLUG in the environment is the command that puts the queue discipline under DEVICE. SLOW: how many times slower than
 * usual the machine is. HOW is
 *	verbs	requests end, and what is destroyed does not wait
 *	flood	datagrams of 64 MiB
 *	crowd	datagrams of a 16th of the machine's memory, of queue pairs that go, one after the other
 *	hold	requests, responses and datagrams hang; says "plugged", and stays until it is killed
 */
#include <errno.h>
#include <unistd.h>

#include "ends.h"

#define ROOM (1 << 20)
#define DATAGRAM 4096
#define DATAGRAMS 64

static struct ibv_mr *from, *to;
static double slow = 1;

static void plug(void)
{
	const char *command = getenv("PLUG");

	if (!command || system(command))
		vt_die(VT_SETUP, "PLUG does not work: %s", command ?: "not set");
}

/* A pair that has spoken already: the peer's hardware address is known when the queue is plugged */
static void connected(uint8_t timeout)
{
	ends_how.timeout = timeout;
	ends_how.retry_cnt = 2;
	ends_fresh(IBV_QPT_RC);
	expect_op("before", &a, IBV_WR_RDMA_WRITE, local(from), 100, remote(to), IBV_WC_SUCCESS);
	if (vt_failures)
		exit(VT_WRONG);
}

/* --- datagrams ------------------------------------------------------------------------------ */

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_ah *ah;

static void make_queues(void)
{
	cq = vt_create_cq(a.dev, 2 * DATAGRAMS);
	qp = vt_create_ud_qp(a.dev, cq, cq, DATAGRAMS);
}

static void make_sender(void)
{
	make_queues();
	ah = vt_ah(a.dev, &b.dev->gid);
	if (!ah)
		vt_die(VT_SETUP, "create ah: %s", strerror(errno));
}

/* As many as the queue takes; to nobody */
static void post_datagrams(void)
{
	struct ibv_sge sge = { (uintptr_t)from->addr, DATAGRAM, from->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = 0xfffff0, .remote_qkey = VT_QKEY },
	};
	int i;

	for (i = 0; i < DATAGRAMS; i++)
		if (ibv_post_send(qp, &wr, &bad))
			vt_die(VT_WRONG, "WRONG: post: %s", strerror(errno));
}

static void flood(void)
{
	int i, rounds = (64 << 20) / (DATAGRAMS * DATAGRAM), done = 0;
	struct ibv_wc wc;

	plug();
	for (i = 0; i < rounds; i++) {
		int n = 0;

		post_datagrams();
		while (n < DATAGRAMS && poll_one(cq, &wc, 10 * slow) && !wc.status)
			n++;
		done += n;
		if (n < DATAGRAMS)
			break;
	}
	vt_check(done == rounds * DATAGRAMS, "datagrams are sent or lost: %d of %d", done, rounds * DATAGRAMS);
}

/* Each leaves behind what it has sent; the address handle is older, as a question for the peer would hang, too */
static void crowd(void)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 16;
	uint64_t rounds = bytes / (DATAGRAMS * DATAGRAM), i;
	struct ibv_wc wc;
	double start = vt_now();
	int n = DATAGRAMS;

	plug();
	/* When little is left each waits for a quarter of a second before it loses the rest: then it is enough */
	for (i = 0; i < rounds && n == DATAGRAMS && (i < 32 || vt_now() - start < 20 * slow); i++) {
		post_datagrams();
		for (n = 0; n < DATAGRAMS && poll_one(cq, &wc, 10 * slow) && !wc.status; n++)
			;
		if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq))
			vt_die(VT_WRONG, "WRONG: destroy: %s", strerror(errno));
		make_queues();
	}
	vt_check(n == DATAGRAMS, "%llu queue pairs have come and gone, of %llu", (unsigned long long)i, (unsigned long long)rounds);
}

/* --- what must not wait ------------------------------------------------------------------------ */

static void soon(const char *what, double start, int err)
{
	vt_check(!err && vt_now() - start < 5 * slow, "%s: %s, %.1f s", what, err ? strerror(err) : "done",
		 vt_now() - start);
}

static void verbs(void)
{
	double start;

	connected(12);
	plug();
	expect_op("a WRITE ends", &a, IBV_WR_RDMA_WRITE, local(from), ROOM, remote(to), IBV_WC_RETRY_EXC_ERR);
	post_datagrams();
	start = vt_now();
	soon("a queue pair with datagrams is destroyed", start, ibv_destroy_qp(qp));
	start = vt_now();
	soon("their address handle, too", start, ibv_destroy_ah(ah));
	start = vt_now();
	ends_stop();
	soon("the connected ones, too", start, 0);
	start = vt_now();
	soon("and the memory is free", start, ibv_dereg_mr(from));
	from = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
}

/* Without timeouts everything is still there when it is to go */
static void hold(void)
{
	connected(0);
	plug();
	if (post_op(&b, 1, IBV_WR_RDMA_READ, local(to), ROOM, remote(from)) ||
	    post_op(&a, 2, IBV_WR_RDMA_WRITE, local(from), ROOM, remote(to)))
		vt_die(VT_WRONG, "WRONG: post");
	post_datagrams();
	printf("plugged\n");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } hows[] = {
		{ "verbs", verbs }, { "flood", flood }, { "crowd", crowd }, { "hold", hold },
	};
	const char *how = argc > 1 ? argv[argc - 1] : "";
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("SLOW"))
		slow = atof(getenv("SLOW"));
	for (i = 0; i < ARRAY_SIZE(hows) && strcmp(how, hows[i].name); i++)
		;
	if (i == ARRAY_SIZE(hows))
		vt_die(VT_SETUP, "usage: plugged -d DEVICE -i IP -D DEVICE_OF_PEER -I IP_OF_PEER verbs|flood|crowd|hold");
	argv[argc - 1] = NULL;
	ends_open(argc - 1, argv);
	from = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	to = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	make_sender();
	hows[i].run();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
