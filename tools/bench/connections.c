// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What connections cost: pairs of RC QPs between two devices (or with themselves on one), all of one process.
 *
 *	connections -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] PAIRS SECONDS BYTES
 *
 * Prints, one a line, "name value": memory per QP that the kernel took (bytes), QPs made and connected per second, RDMA
 * WRITEs of BYTES per second over one of the QPs, and in turn over all of them; for each of these "window-NAME FROM-TO", when
 * the middle half of it was, in seconds since 1970. With 0 SECONDS it prints the first two,
 * and keeps its QPs, idle, until it is killed.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "vt.h"

enum { DEPTH = 8, WINDOW = 256 };

static struct vt_dev devs[2];
static struct ibv_cq *cq[2];
static struct ibv_mr *mr[2];
static unsigned int size;

/* a number of /proc/meminfo or /proc/self/status, in bytes */
static long long proc_kb(const char *path, const char *name)
{
	char line[128];
	long long kb = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		vt_die(VT_SETUP, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			kb = atoll(line + strlen(name) + 1);
	fclose(f);
	return kb * 1024;
}

/*
 * All memory that is in use, but for the page cache and what this process has allocated for itself. The pages of a queue
 * that is mapped are the kernel's, which has allocated them.
 */
static long long kernel_memory(void)
{
	static const char *const not[] = { "MemFree", "Buffers", "Cached" };
	long long used = proc_kb("/proc/meminfo", "MemTotal");

	for (size_t i = 0; i < ARRAY_SIZE(not); i++)
		used -= proc_kb("/proc/meminfo", not[i]);
	return used - proc_kb("/proc/self/status", "RssAnon");
}

static struct ibv_qp *idle_qp(int end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq[end],
		.recv_cq = cq[end],
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(devs[end].pd, &init);

	if (!qp)
		vt_die(VT_WRONG, "create qp: %s", strerror(errno));
	return qp;
}

static void connect_qp(struct ibv_qp *qp, int end, const struct ibv_qp *peer, int peer_end)
{
	struct vt_conn c = {
		.peer = { .qpn = peer->qp_num, .gid = devs[peer_end].gid },
		.mtu = devs[end].port.active_mtu,
		.rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
	};

	if (vt_to_init(qp, VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE) || vt_to_rtr(qp, &devs[end], &c) ||
	    vt_to_rts(qp, &c))
		vt_die(VT_WRONG, "modify qp: %s", strerror(errno));
}

static void post(struct ibv_qp *qp, int peer_end)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mr[0]->addr, .length = size, .lkey = mr[0]->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)mr[peer_end]->addr, .rkey = mr[peer_end]->rkey },
	};
	int err = ibv_post_send(qp, &wr, &bad);

	if (err)
		vt_die(VT_WRONG, "post: %s", strerror(err));
}

static int poll_some(void)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq[0], 16, wc);

	for (int i = 0; i < n; i++)
		if (wc[i].status)
			vt_die(VT_WRONG, "completion: %s", ibv_wc_status_str(wc[i].status));
	if (n < 0)
		vt_die(VT_WRONG, "poll failed");
	return n;
}

static void tell_window(const char *name, double seconds)
{
	struct timespec t;
	double now;

	clock_gettime(CLOCK_REALTIME, &t);
	now = t.tv_sec + t.tv_nsec / 1e9;
	printf("window-%s %.6f-%.6f\n", name, now + seconds / 4, now + seconds * 3 / 4);
}

/* messages per second, sent over the first @n QPs in turn, each of which has at most DEPTH under way */
static double rate(struct ibv_qp **qp, int n, double seconds, int peer_end)
{
	uint64_t posted = 0, done = 0;
	unsigned int window = min(WINDOW, n * DEPTH);
	double start = vt_now(), stop = start + seconds, now = start;

	while (now < stop || done < posted) {
		for (int burst = 0; burst < 16 && now < stop && posted - done < window; burst++)
			post(qp[posted++ % n], peer_end);
		done += poll_some();
		now = vt_now();
	}
	return done / (now - start);
}

int main(int argc, char **argv)
{
	int peer_end = vt_open_hosts(argc, argv, devs, NULL) - 1;
	int pairs = optind + 3 == argc ? atoi(argv[optind]) : 0;
	double seconds = pairs > 0 ? atof(argv[optind + 1]) : -1, start, made;
	struct ibv_qp **qp, **peer;
	long long before;

	size = seconds >= 0 ? atoi(argv[optind + 2]) : 0;
	if (!size)
		vt_die(VT_SETUP, "arguments: -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] PAIRS SECONDS BYTES");
	for (int end = 0; end <= peer_end; end++) {
		cq[end] = ibv_create_cq(devs[end].ctx, 2 * WINDOW, NULL, NULL, 0);
		if (!cq[end])
			vt_die(VT_SETUP, "create cq: %s", strerror(errno));
		mr[end] = vt_mr(&devs[end], max(4096U, size), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	}
	qp = calloc(pairs, sizeof(*qp));
	peer = calloc(pairs, sizeof(*peer));
	if (!qp || !peer)
		vt_die(VT_SETUP, "no memory");
	before = kernel_memory();
	start = vt_now();
	for (int i = 0; i < pairs; i++) {
		qp[i] = idle_qp(0);
		peer[i] = idle_qp(peer_end);
		connect_qp(qp[i], 0, peer[i], peer_end);
		connect_qp(peer[i], peer_end, qp[i], 0);
	}
	made = vt_now();
	printf("memory %.0f\n", (double)(kernel_memory() - before) / (2 * pairs));
	printf("connect %.0f\n", 2 * pairs / (made - start));
	fflush(stdout);
	while (!seconds)
		pause();
	tell_window("rate-one", seconds);
	printf("rate-one %.2f\n", rate(qp, 1, seconds, peer_end));
	tell_window("rate-all", seconds);
	printf("rate-all %.2f\n", rate(qp, pairs, seconds, peer_end));
	fflush(stdout);
	start = vt_now();
	for (int i = 0; i < pairs; i++)
		if (ibv_destroy_qp(qp[i]) || ibv_destroy_qp(peer[i]))
			vt_die(VT_WRONG, "destroy qp: %s", strerror(errno));
	printf("destroy %.0f\n", 2 * pairs / (vt_now() - start));
	return 0;
}
