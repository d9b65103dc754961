// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * silent: the peer does not answer, and every wait ends when it should.
 *
 *	silent -d DEVICE -i IP -D DEVICE_OF_PEER -I IP_OF_PEER
 *
 * The environment has the commands that SILENCE the network between the two, let it SPEAK again, and more (silent.h), and in
 * SLOW how many times slower than usual the machine is.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "silent.h"

#define ROOM (8 * 1024 * 1024)

static struct ibv_mr *from, *to;
double slow = 1;

void network(const char *how)
{
	const char *command = getenv(how);

	if (!command || system(command))
		vt_die(VT_SETUP, "%s does not work: %s", how, command ?: "not set");
}

/*
 * How long it takes until nothing is tried any more: the local ACK timeout, at least 4 ms, then twice and for
 * all others four times as long (limits.md; IBA 9.7.6.1.3 allows T to 4T for each).
 */
double patience(uint8_t timeout, uint8_t retry_cnt)
{
	double t = max(4.096e-6 * (1u << timeout), 0.004), sum = 0;
	int i;

	for (i = 0; i <= retry_cnt; i++)
		sum += t * (1 << min(i, 2));
	return sum;
}

/* A machine that is busy may be late, but nothing comes early. (How often something was sent: silent_ops.c.) */
static bool in_time(double took, double expected)
{
	return took > 0.95 * expected && took < 2 * expected + slow;
}

static void fresh(uint8_t timeout, uint8_t retry_cnt)
{
	ends_how.timeout = timeout;
	ends_how.retry_cnt = retry_cnt;
	ends_fresh(IBV_QPT_RC);
}

static void post(enum ibv_wr_opcode opcode, uint32_t len)
{
	int err = post_op(&a, 1, opcode, local(from), len, remote(to));

	if (err)
		vt_die(VT_WRONG, "WRONG: post: %s", strerror(err));
}

/* the next completion of the requester within twice the time that it may take; -1: none */
static int completed(double expected)
{
	struct ibv_wc wc;

	return poll_one(a.send_cq, &wc, 2 * expected + slow) ? (int)wc.status : -1;
}

static void ends_with(const char *what, enum ibv_wc_status status, double start, double expected)
{
	int got = completed(expected);
	double took = vt_now() - start;

	vt_check(got == (int)status && in_time(took, expected), "%s: %s after %.3f s, expected after %.3f s", what,
		 got < 0 ? "nothing" : ibv_wc_status_str(got), took, expected);
}

/* every kind of request, every number of retries, some timeouts */
static void never_answered(void)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		uint32_t len;
	} ops[] = {
		{ "SEND", IBV_WR_SEND, 100 },
		{ "WRITE of 1 MiB", IBV_WR_RDMA_WRITE, 1 << 20 },
		{ "READ", IBV_WR_RDMA_READ, 100 },
		{ "READ of 1 MiB", IBV_WR_RDMA_READ, 1 << 20 },
		{ "FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
	};
	static const struct { uint8_t timeout, retry_cnt; } how[] = {
		{ 1, 0 }, { 10, 7 }, { 12, 3 }, { 14, 0 }, { 14, 1 }, { 14, 2 }, { 15, 7 },
	};
	char name[100];
	unsigned int i;
	double start;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		fresh(12, 3);
		start = vt_now();
		post(ops[i].opcode, ops[i].len);
		ends_with(ops[i].name, IBV_WC_RETRY_EXC_ERR, start, patience(12, 3));
	}
	for (i = 0; i < ARRAY_SIZE(how); i++) {
		fresh(how[i].timeout, how[i].retry_cnt);
		snprintf(name, sizeof(name), "timeout %u, %u retries", how[i].timeout, how[i].retry_cnt);
		start = vt_now();
		post(IBV_WR_RDMA_WRITE, 100);
		ends_with(name, IBV_WC_RETRY_EXC_ERR, start, patience(how[i].timeout, how[i].retry_cnt));
	}
}

/* the others of the queue are flushed with it */
static void full_queue(void)
{
	struct ibv_wc wc;
	int i, n = 0;

	fresh(12, 1);
	for (i = 0; i < ENDS_DEPTH; i++)
		post(IBV_WR_RDMA_WRITE, 4096);
	for (i = 0; i < ENDS_DEPTH && poll_one(a.send_cq, &wc, 2 + slow); i++)
		n += wc.status == (i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
	vt_check(n == ENDS_DEPTH, "a full queue: all %d end", n);
}

/* silence, while something goes on here */
static pid_t silence_soon(void)
{
	pid_t child = fork();

	if (!child) {
		usleep(20000);
		execl("/bin/sh", "sh", "-c", getenv("SILENCE"), NULL);
		_exit(1);
	}
	return child;
}

/* not ready, perhaps more than once, then silent: a delay and then the timeouts */
static void not_ready(void)
{
	const double delay = 0.16384;
	double start, end, silent;
	long before;
	int status;

	ends_how.min_rnr_timer = 28;
	fresh(12, 2);
	before = vt_counter(b.dev, "out_of_buffer");
	start = vt_now();
	post(IBV_WR_SEND, 100);
	while (vt_counter(b.dev, "out_of_buffer") == before && vt_now() < start + 10 * slow)
		;
	network("SILENCE");
	silent = vt_now();
	status = completed(1);
	end = vt_now();
	vt_check(status == IBV_WC_RETRY_EXC_ERR && end - start > 0.95 * (delay + patience(12, 2)) &&
		 end - silent < 2 * (delay + patience(12, 2)) + slow, "not ready and then silent: %s after %.3f s",
		 status < 0 ? "nothing" : ibv_wc_status_str(status), end - start);
	ends_how.min_rnr_timer = 1;
}

/* one that has answered: the time begins with the last answer */
static void falls_silent(void)
{
	double start;
	pid_t child;
	int status;

	network("SPEAK");
	fresh(14, 2);
	post(IBV_WR_RDMA_WRITE, 100);
	vt_check(completed(1) == IBV_WC_SUCCESS, "while it answers: works");
	network("SILENCE");
	start = vt_now();
	post(IBV_WR_RDMA_WRITE, 100);
	ends_with("falls silent between two requests", IBV_WC_RETRY_EXC_ERR, start, patience(14, 2));

	network("SPEAK");
	fresh(12, 3);
	post(IBV_WR_RDMA_READ, ROOM);
	child = silence_soon();
	/* always one of each on the way, until there is silence */
	do {
		start = vt_now();
		post(IBV_WR_RDMA_WRITE, ROOM);
		post(IBV_WR_RDMA_READ, ROOM);
		status = completed(5);
		if (status == IBV_WC_SUCCESS)
			status = completed(5);
	} while (status == IBV_WC_SUCCESS);
	if (waitpid(child, NULL, 0) != child)
		vt_die(VT_SETUP, "waitpid: %s", strerror(errno));
	vt_check(status == IBV_WC_RETRY_EXC_ERR && vt_now() - start < 1.2 * patience(12, 3) + 2 * slow,
		 "falls silent in the middle of long messages: %s after %.3f s",
		 status < 0 ? "nothing" : ibv_wc_status_str(status), vt_now() - start);

	network("SPEAK");
	not_ready();
}

static void must_be_quick(const char *what, double start, int err)
{
	vt_check(!err && vt_now() - start < 3 * slow, "%s: %.3f s", what, vt_now() - start);
}

/* a timeout of 0 waits for ever, and nobody else has to */
static void for_ever(void)
{
	double start;
	int i;

	fresh(0, 7);
	post(IBV_WR_RDMA_WRITE, 100);
	vt_check(completed(0.5) == -1, "timeout 0 waits for ever");
	start = vt_now();
	must_be_quick("timeout 0: to the error state", start, vt_to_state(a.qp, IBV_QPS_ERR));
	vt_check(completed(0.1) == IBV_WC_WR_FLUSH_ERR, "timeout 0: and it is flushed");

	for (i = 0; i < 3; i++) {
		fresh(i == 1 ? 31 : 0, 7);
		post(i == 2 ? IBV_WR_RDMA_READ : IBV_WR_SEND, ROOM);
		if (i == 2)
			vt_to_state(a.qp, IBV_QPS_SQD);
		start = vt_now();
		must_be_quick(i == 2 ? "draining for ever: destroyed" : i ? "timeout 31: destroyed" : "timeout 0: destroyed",
			      start, ibv_destroy_qp(a.qp));
		a.qp = NULL;
		start = vt_now();
		must_be_quick("and its memory is free", start, ibv_dereg_mr(from));
		from = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	}
}

/* all at once, as when a link fails that many use */
static void many(void)
{
	enum { QPS = 200 };
	static struct ibv_qp *qps[QPS];
	double start, expected = patience(13, 2);
	struct ibv_wc wc;
	int i, n = 0;

	ends_how.timeout = 13;
	ends_how.retry_cnt = 2;
	for (i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = a.send_cq, .recv_cq = a.recv_cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		};
		struct vt_conn how = ends_how;

		how.peer = (struct vt_addr){ b.qp->qp_num, 1, b.dev->gid };
		qps[i] = vt_create_qp(a.dev, &init);
		if (vt_bring_up(qps[i], a.dev, 0, &how))
			vt_die(VT_SETUP, "queue pair %d: %s", i, strerror(errno));
	}
	if (ibv_resize_cq(a.send_cq, QPS + 10))
		vt_die(VT_SETUP, "resize cq: %s", strerror(errno));
	start = vt_now();
	for (i = 0; i < QPS; i++) {
		struct ibv_sge sge = { (uintptr_t)from->addr, 4096, from->lkey };
		struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
						.send_flags = IBV_SEND_SIGNALED };

		if (ibv_post_send(qps[i], &wr, &bad))
			vt_die(VT_WRONG, "WRONG: post %d", i);
	}
	while (n < QPS && poll_one(a.send_cq, &wc, 2 * expected + slow))
		n += wc.status == IBV_WC_RETRY_EXC_ERR;
	vt_check(n == QPS && in_time(vt_now() - start, expected), "%d queue pairs at once: %d ended after %.3f s", QPS, n,
		 vt_now() - start);
	for (i = 0; i < QPS; i++)
		ibv_destroy_qp(qps[i]);
}

int main(int argc, char **argv)
{
	if (getenv("SLOW"))
		slow = atof(getenv("SLOW"));
	ends_open(argc, argv);
	from = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	to = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	network("SILENCE");
	never_answered();
	full_queue();
	many();
	for_ever();
	if (!vt_is_rxe()) {
		silent_ops();
		silent_slow();
	}
	falls_silent();
	network("SPEAK");
	fresh(14, 7);
	post(IBV_WR_RDMA_WRITE, ROOM);
	vt_check(completed(5) == IBV_WC_SUCCESS, "and with a peer that speaks all is well");
	ends_stop();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
