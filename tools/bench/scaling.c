// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pairs of queue pairs, of which everybody has his own, or one for all of them.
 *
 *	scaling [-t] [-r] [-m] [-c] [-u] [-q QPS] [-l PROCESSORS] WORKERS SECONDS BYTES TO IP FROM IP
 *
 * A worker is a process (with -t a thread), pinned to one of the first PROCESSORS in turn. It writes messages of BYTES over QPS
 * queue pairs, 1 without -q, from device FROM to device TO. The queue pairs at the other end belong to one process, which sleeps.
 *
 * Nothing is shared by default: everybody has, at both ends, a context, a protection domain, a region and a completion queue of
 * his own. With
 *
 * -r	all targets are in one region
 * -m	writes have an immediate: the process at the other end wakes up and takes completions
 * -c	all targets have one completion queue (to be of any use, with -m)
 * -t	workers share a context and a protection domain, and of their ends what -r and -c say of the others
 * -u	datagrams instead of writes, over one address handle for all threads; nobody receives them
 *
 * Prints "rate NUMBER", messages per second of all; "least PART", what the slowest has of a fair share; "messages NUMBER".
 * There is the traffic and little else between two instructions that do nothing (marker()): what watches the processors from
 * outside can see them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vt.h"

enum { MOST_WORKERS = 64, MOST_QPS = 64, DEPTH = 128, BURST = 16, WARM_UP = 16, IDLE_POLLS = 64 };

static struct {
	bool threads, one_region, immediate, one_cq, datagrams;
	int qps, processors, workers;
	double seconds;
	size_t bytes;
	const char *to, *to_ip, *from, *from_ip;
} how = { .qps = 1 };

/* One end of the queue pairs of a worker */
struct end {
	struct vt_dev dev;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct ibv_ah *ah;
	struct ibv_qp *qp[MOST_QPS];
	/* of the region */
	uint64_t part;
};

static struct end sources[MOST_WORKERS], targets[MOST_WORKERS];

/* What a worker and the process with the targets tell each other: memory of both */
struct worker {
	/* by the worker: its queue pairs are there, it can begin, it has ended */
	atomic_bool made, ready, ended;
	uint32_t qpn[MOST_QPS];
	uint64_t messages;
	double seconds;
	/* by the other process */
	uint32_t target_qpn[MOST_QPS], rkey;
	uint64_t remote_addr;
	/* of a completion queue that is shared, anybody takes what is his */
	alignas(128) atomic_int credit[MOST_QPS];
	atomic_ullong finished;
};

static struct shared {
	atomic_bool connected, go, stop;
	alignas(128) struct worker workers[MOST_WORKERS];
} *shared;

static pid_t children[MOST_WORKERS];

static void usage(void)
{
	vt_die(VT_SETUP, "arguments: [-t] [-r] [-m] [-c] [-u] [-q QPS] [-l PROCESSORS] WORKERS SECONDS BYTES TO IP FROM IP");
}

static void parse(int argc, char **argv)
{
	int c;

	how.processors = sysconf(_SC_NPROCESSORS_ONLN);
	while ((c = getopt(argc, argv, "trmcuq:l:")) != -1) {
		switch (c) {
		case 't': how.threads = true; break;
		case 'r': how.one_region = true; break;
		case 'm': how.immediate = true; break;
		case 'c': how.one_cq = true; break;
		case 'u': how.datagrams = true; break;
		case 'q': how.qps = atoi(optarg); break;
		case 'l': how.processors = atoi(optarg); break;
		default: usage();
		}
	}
	argv += optind;
	if (argc - optind != 7)
		usage();
	how.workers = atoi(argv[0]);
	how.seconds = atof(argv[1]);
	how.bytes = atoi(argv[2]);
	how.to = argv[3], how.to_ip = argv[4], how.from = argv[5], how.from_ip = argv[6];
	if (how.workers < 1 || how.workers > MOST_WORKERS || how.qps < 1 || how.qps > MOST_QPS || how.processors < 1 ||
	    how.seconds <= 0 || !how.bytes)
		usage();
}

/* Seen by whoever counts what happens in between; to the processor it is nothing */
static void marker(bool begin)
{
#ifdef __x86_64__
	if (begin)
		__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x01, 0xce, 0x0c, 0x5c" : : : "memory");
	else
		__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x02, 0xce, 0x0c, 0x5c" : : : "memory");
#else
	(void)begin;
#endif
}

/* --- the ends --- */

/*
 * @end gets what it needs on device @name. With @together it has the context of @first, the first worker's, and of the other
 * things what all are to share.
 */
static void make_end(struct end *end, struct end *first, bool together, const char *name, const char *ip)
{
	bool one_region = together && how.one_region, one_cq = together && how.one_cq, other = end != first;

	if (other && together)
		end->dev = first->dev;
	else
		vt_open(&end->dev, name, ip, -1);
	if (other && one_region)
		end->mr = first->mr;
	else
		end->mr = vt_mr(&end->dev, how.bytes * (one_region ? how.workers : 1),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	/* of a region that is shared, everybody has a part */
	end->part = (uintptr_t)end->mr->addr + (one_region ? (end - first) * how.bytes : 0);
	if (other && one_cq) {
		end->cq = first->cq;
		end->channel = first->channel;
		return;
	}
	end->channel = ibv_create_comp_channel(end->dev.ctx);
	if (!end->channel || fcntl(end->channel->fd, F_SETFL, O_NONBLOCK))
		vt_die(VT_SETUP, "completion channel: %s", strerror(errno));
	end->cq = vt_create_channel_cq(&end->dev, min(end->dev.attr.max_cqe, how.qps * DEPTH * (one_cq ? how.workers : 1)),
				       end->channel, 0);
}

static void make_qps(struct end *end, uint32_t *qpn, int sends, int recvs)
{
	for (int q = 0; q < how.qps; q++) {
		if (how.datagrams)
			end->qp[q] = vt_create_ud_qp(&end->dev, end->cq, end->cq, DEPTH);
		else
			end->qp[q] = vt_new_qp(&end->dev, IBV_QPT_RC, end->cq, sends, recvs);
		qpn[q] = end->qp[q]->qp_num;
	}
}

static void connect_qps(struct end *end, const uint32_t *qpn, const char *ip)
{
	struct vt_conn c = {
		.peer = { .gid = vt_gid_of_ip(ip) }, .mtu = end->dev.port.active_mtu,
		.rd_atomic = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1,
	};

	for (int q = 0; q < how.qps && !how.datagrams; q++) {
		int err;

		c.peer.qpn = qpn[q];
		err = vt_bring_up(end->qp[q], &end->dev, VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE, &c);
		if (err)
			vt_die(VT_SETUP, "qp to RTS: %s", strerror(err));
	}
}

/* --- workers --- */

static void post(int i, int q)
{
	struct worker *w = &shared->workers[i];
	struct end *end = &sources[i];
	struct ibv_sge sge = { .addr = end->part, .length = how.bytes, .lkey = end->mr->lkey };
	struct ibv_send_wr *bad, wr = vt_request(&sge, i * MOST_QPS + q, IBV_WR_RDMA_WRITE);
	int err;

	if (how.datagrams) {
		wr.opcode = IBV_WR_SEND;
		wr.wr.ud.ah = end->ah;
		wr.wr.ud.remote_qpn = w->target_qpn[q];
		wr.wr.ud.remote_qkey = VT_QKEY;
	} else {
		if (how.immediate)
			wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.rdma.remote_addr = w->remote_addr;
		wr.wr.rdma.rkey = w->rkey;
	}
	atomic_fetch_sub(&w->credit[q], 1);
	err = ibv_post_send(end->qp[q], &wr, &bad);
	if (err)
		vt_die(VT_WRONG, "post: %s", strerror(err));
}

/* Return: how many completions there were, of whomever */
static int take(struct ibv_cq *cq)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(cq, ARRAY_SIZE(wc), wc);

	if (n < 0)
		vt_die(VT_WRONG, "poll failed");
	for (int k = 0; k < n; k++) {
		struct worker *w = &shared->workers[wc[k].wr_id / MOST_QPS];

		if (wc[k].status)
			vt_die(VT_WRONG, "completion: %s", ibv_wc_status_str(wc[k].status));
		atomic_fetch_add(&w->credit[wc[k].wr_id % MOST_QPS], 1);
		atomic_fetch_add(&w->finished, 1);
	}
	return n;
}

/* Until @stop is set, or so many messages; then until all of them are done. Return: how many that were */
static uint64_t traffic(int i, atomic_bool *stop, uint64_t most)
{
	struct worker *w = &shared->workers[i];
	uint64_t posted = 0, before = atomic_load(&w->finished);
	int idle = 0;

	while (posted < most && !atomic_load_explicit(stop, memory_order_relaxed)) {
		for (int q = 0; q < how.qps; q++)
			for (int n = 0; n < BURST && posted < most && atomic_load(&w->credit[q]) > 0; n++, posted++)
				post(i, q);
		idle = take(sources[i].cq) ? 0 : idle + 1;
		/* There may be more of us than processors */
		if (idle && idle % IDLE_POLLS == 0)
			sched_yield();
	}
	while (atomic_load(&w->finished) - before < posted)
		if (!take(sources[i].cq))
			sched_yield();
	return posted;
}

static void wait_for(atomic_bool *what)
{
	while (!atomic_load(what))
		usleep(1000);
}

static void pin(int i)
{
	cpu_set_t where;

	CPU_ZERO(&where);
	CPU_SET(i % how.processors, &where);
	if (sched_setaffinity(0, sizeof(where), &where))
		vt_die(VT_SETUP, "processor %d: %s", i % how.processors, strerror(errno));
}

static void work(int i)
{
	static atomic_bool never;
	struct worker *w = &shared->workers[i];
	struct end *end = &sources[i];
	double start;

	pin(i);
	make_qps(end, w->qpn, DEPTH, 1);
	for (int q = 0; q < how.qps; q++)
		atomic_store(&w->credit[q], DEPTH);
	atomic_store(&w->made, true);
	wait_for(&shared->connected);
	connect_qps(end, w->target_qpn, how.to_ip);
	traffic(i, &never, WARM_UP * how.qps);
	atomic_store(&w->ready, true);
	wait_for(&shared->go);
	start = vt_now();
	w->messages = traffic(i, &shared->stop, UINT64_MAX);
	w->seconds = vt_now() - start;
	atomic_store(&w->ended, true);
}

/* Of threads one after the other, because of what they share */
static void prepare(int i)
{
	struct end *end = &sources[i];

	make_end(end, &sources[how.threads ? 0 : i], how.threads, how.from, how.from_ip);
	if (how.datagrams) {
		union ibv_gid to = vt_gid_of_ip(how.to_ip);

		end->ah = how.threads && i ? sources[0].ah : vt_ah(&end->dev, &to);
		if (!end->ah)
			vt_die(VT_SETUP, "address handle: %s", strerror(errno));
	}
}

static void *thread(void *i)
{
	work((intptr_t)i);
	return NULL;
}

static void start_worker(int i)
{
	pthread_t id;

	if (how.threads) {
		prepare(i);
		if (pthread_create(&id, NULL, thread, (void *)(intptr_t)i))
			vt_die(VT_SETUP, "no thread");
		return;
	}
	children[i] = fork();
	if (children[i] < 0)
		vt_die(VT_SETUP, "fork: %s", strerror(errno));
	if (!children[i]) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prepare(i);
		work(i);
		fflush(stdout);
		_exit(0);
	}
}

/* --- the process that has the targets --- */

/* A process that is gone before it has ended would be waited for without an end */
static void still_there(int i)
{
	if (children[i] && waitpid(children[i], NULL, WNOHANG) == children[i] && !atomic_load(&shared->workers[i].ended))
		vt_die(VT_WRONG, "worker %d is gone", i);
}

static void expect(struct ibv_qp *qp, int i, int q)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = i * MOST_QPS + q };
	int err = ibv_post_recv(qp, &wr, &bad);

	if (err)
		vt_die(VT_WRONG, "post recv: %s", strerror(err));
}

static void make_target(int i)
{
	struct worker *w = &shared->workers[i];
	struct end *end = &targets[i];

	make_end(end, &targets[0], how.one_region || how.one_cq, how.to, how.to_ip);
	make_qps(end, w->target_qpn, 1, DEPTH);
	connect_qps(end, w->qpn, how.from_ip);
	w->remote_addr = end->part;
	w->rkey = end->mr->rkey;
	for (int q = 0; how.immediate && q < how.qps; q++)
		for (int n = 0; n < DEPTH; n++)
			expect(end->qp[q], i, q);
	ibv_req_notify_cq(end->cq, 0);
}

/* What has arrived, if it is to be told: everything is expected again at once */
static void serve(struct end *end)
{
	struct ibv_cq *ready;
	struct ibv_wc wc[32];
	void *context;
	int n;

	while (!ibv_get_cq_event(end->channel, &ready, &context))
		ibv_ack_cq_events(ready, 1);
	ibv_req_notify_cq(end->cq, 0);
	while ((n = ibv_poll_cq(end->cq, ARRAY_SIZE(wc), wc)) > 0) {
		for (int k = 0; k < n; k++) {
			int i = wc[k].wr_id / MOST_QPS, q = wc[k].wr_id % MOST_QPS;

			if (wc[k].status)
				vt_die(VT_WRONG, "arrival: %s", ibv_wc_status_str(wc[k].status));
			expect(targets[i].qp[q], i, q);
		}
	}
}

/* Sleep until something has arrived, or that long */
static void serve_all(double seconds)
{
	int n = how.one_cq ? 1 : how.workers;
	struct pollfd fds[MOST_WORKERS];

	for (int i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = targets[i].channel->fd, .events = POLLIN };
	poll(fds, n, seconds * 1000 + 1);
	for (int i = 0; i < n; i++)
		if (fds[i].revents)
			serve(&targets[i]);
}

static bool all_ended(void)
{
	for (int i = 0; i < how.workers; i++) {
		still_there(i);
		if (!atomic_load(&shared->workers[i].ended))
			return false;
	}
	return true;
}

static void all_ready(void)
{
	for (int i = 0; i < how.workers; i++)
		while (!atomic_load(&shared->workers[i].made)) {
			still_there(i);
			usleep(1000);
		}
	for (int i = 0; i < how.workers; i++)
		make_target(i);
	atomic_store(&shared->connected, true);
	for (int i = 0; i < how.workers; i++)
		while (!atomic_load(&shared->workers[i].ready)) {
			still_there(i);
			serve_all(0);
		}
}

static void run(void)
{
	double start, now;

	marker(true);
	atomic_store(&shared->go, true);
	start = now = vt_now();
	while (now < start + how.seconds) {
		serve_all(start + how.seconds - now);
		now = vt_now();
	}
	atomic_store(&shared->stop, true);
	while (!all_ended() && now < start + how.seconds + 20) {
		serve_all(0.001);
		now = vt_now();
	}
	marker(false);
	if (!all_ended())
		vt_die(VT_STALLED, "not all have come to an end");
}

static void tell(void)
{
	double rate, sum = 0, least = 0;
	uint64_t messages = 0;

	for (int i = 0; i < how.workers; i++) {
		const struct worker *w = &shared->workers[i];

		rate = w->messages / w->seconds;
		if (!i || rate < least)
			least = rate;
		sum += rate;
		messages += w->messages;
	}
	printf("rate %.0f\nleast %.2f\nmessages %llu\n", sum, least * how.workers / sum, (unsigned long long)messages);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		vt_die(VT_SETUP, "no memory");
	for (int i = 0; i < how.workers; i++)
		start_worker(i);
	all_ready();
	run();
	tell();
	return 0;
}
