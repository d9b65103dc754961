// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the verbs test programs share (vt.h): results, random numbers, devices, queue
 * pairs, completions and events, and the connection between two of them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vt.h"

void vt_die(int status, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

int vt_failures;
const char *const *vt_rxe_deviates;

static bool rxe_is_known_for(const char *name)
{
	const char *const *part;

	for (part = vt_rxe_deviates; part && *part; part++)
		if (strstr(name, *part))
			return vt_is_rxe();
	return false;
}

void vt_check(bool ok, const char *fmt, ...)
{
	char name[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	if (!ok && rxe_is_known_for(name)) {
		printf("skip: %s [rxe is known for it\n", name);
	} else {
		printf("%s: %s\n", ok ? "ok" : "WRONG", name);
		vt_failures += !ok;
	}
	fflush(stdout);
}

long vt_pinned(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

void vt_be_nobody(unsigned long memlock)
{
	struct rlimit limit = { memlock, memlock };
	const int nobody = 65534;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setresgid(nobody, nobody, nobody) || setresuid(nobody, nobody, nobody))
		vt_die(VT_SETUP, "cannot be nobody: %s", strerror(errno));
}

void vt_in_child(const char *what, void (*fn)(void *arg), void *arg)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		vt_failures = 0;
		fn(arg);
		fflush(stdout);
		_exit(vt_failures ? VT_WRONG : VT_OK);
	}
	waitpid(pid, &status, 0);
	vt_check(WIFEXITED(status) && WEXITSTATUS(status) == VT_OK, "%s: %#x", what, status);
}

bool vt_is_rxe(void)
{
	const char *driver = getenv("DRIVER");

	return driver && !strcmp(driver, "rxe");
}

double vt_now(void)
{
	struct timespec ts;

	/* On user mode Linux it is a system call, and one that may meet a fault (the selftest "faults") */
	while (clock_gettime(CLOCK_MONOTONIC, &ts))
		;
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* --- random numbers ------------------------------------------------------- */

/* the finalizer of splitmix64 */
uint64_t vt_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

uint64_t vt_rand(struct vt_rng *rng)
{
	return vt_mix(rng->state++);
}

uint32_t vt_below(struct vt_rng *rng, uint32_t n)
{
	return n ? vt_rand(rng) % n : 0;
}

void vt_pattern(void *buf, uint64_t key, size_t pos, size_t len)
{
	uint8_t *p = buf;

	while (len) {
		uint64_t word = htole64(vt_mix(key ^ (pos / 8)));
		size_t skip = pos % 8, n = min(8 - skip, len);

		memcpy(p, (uint8_t *)&word + skip, n);
		p += n;
		pos += n;
		len -= n;
	}
}

/* --- device ----------------------------------------------------------------- */

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int i, n;

	list = ibv_get_device_list(&n);
	if (!list)
		vt_die(VT_SETUP, "no RDMA devices: %s", strerror(errno));
	for (i = 0; i < n; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (i == n)
		vt_die(VT_SETUP, "no RDMA device %s among %d", name ? name : "", n);
	ctx = ibv_open_device(list[i]);
	if (!ctx)
		vt_die(VT_SETUP, "open %s: %s", ibv_get_device_name(list[i]), strerror(errno));
	ibv_free_device_list(list);
	return ctx;
}

static bool is_v4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw);
}

union ibv_gid vt_gid_of_ip(const char *ip)
{
	union ibv_gid gid = {};

	if (inet_pton(AF_INET, ip, gid.raw + 12) == 1)
		gid.raw[10] = gid.raw[11] = 0xff;
	else if (inet_pton(AF_INET6, ip, gid.raw) != 1)
		vt_die(VT_SETUP, "not an address: %s", ip);
	return gid;
}

bool vt_is_roce_v1(void)
{
	const char *roce = getenv("ROCE");

	return roce && !strcmp(roce, "v1");
}

/* how well a table entry suits when nothing was asked for; 0: not at all */
static int gid_rank(const struct ibv_gid_entry *e)
{
	if (e->gid_type != (vt_is_roce_v1() ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2))
		return 0;
	if (is_v4(&e->gid))
		return 3;
	return IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)e->gid.raw) ? 1 : 2;
}

static void choose_gid(struct vt_dev *dev, const char *ip, int gid_index)
{
	union ibv_gid wanted = {};
	struct ibv_gid_entry e;
	int i, rank, best = 0;

	if (ip)
		wanted = vt_gid_of_ip(ip);
	for (i = 0; i < dev->port.gid_tbl_len; i++) {
		if (gid_index >= 0 && i != gid_index)
			continue;
		if (ibv_query_gid_ex(dev->ctx, 1, i, &e, 0))
			continue;
		rank = gid_rank(&e);
		if (ip && memcmp(&e.gid, &wanted, sizeof(wanted)))
			rank = 0;
		if (rank > best) {
			best = rank;
			dev->gid = e.gid;
			dev->gid_index = i;
		}
	}
	if (!best)
		vt_die(VT_SETUP, "no RoCE %s GID for %s", vt_is_roce_v1() ? "v1" : "v2", ip ? ip : "any address");
}

void vt_open(struct vt_dev *dev, const char *name, const char *ip, int gid_index)
{
	dev->ctx = open_by_name(name);
	if (ibv_query_device(dev->ctx, &dev->attr))
		vt_die(VT_SETUP, "query device: %s", strerror(errno));
	if (ibv_query_port(dev->ctx, 1, &dev->port))
		vt_die(VT_SETUP, "query port: %s", strerror(errno));
	if (dev->port.state != IBV_PORT_ACTIVE)
		vt_die(VT_SETUP, "port is not active");
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd)
		vt_die(VT_SETUP, "alloc pd: %s", strerror(errno));
	choose_gid(dev, ip, gid_index);
}

int vt_open_hosts(int argc, char **argv, struct vt_dev devs[2], bool *less)
{
	const char *device[2] = {}, *ip[2] = {};
	int c, n;

	while ((c = getopt(argc, argv, less ? "d:i:D:I:s" : "d:i:D:I:")) != -1) {
		switch (c) {
		case 'd': device[0] = optarg; break;
		case 'i': ip[0] = optarg; break;
		case 'D': device[1] = optarg; break;
		case 'I': ip[1] = optarg; break;
		case 's': *less = true; break;
		default: vt_die(VT_SETUP, "arguments: -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]%s",
				less ? " [-s]" : "");
		}
	}
	n = device[1] ? 2 : 1;
	for (c = 0; c < n; c++) {
		vt_open(&devs[c], device[c], ip[c], -1);
		fcntl(devs[c].ctx->async_fd, F_SETFL, O_NONBLOCK);
	}
	return n;
}

void vt_close(struct vt_dev *dev)
{
	if (ibv_dealloc_pd(dev->pd))
		vt_die(VT_WRONG, "dealloc pd: %s", strerror(errno));
	if (ibv_close_device(dev->ctx))
		vt_die(VT_WRONG, "close device: %s", strerror(errno));
}

long vt_counter(struct vt_dev *dev, const char *name)
{
	char path[256];
	long n = -1;
	FILE *f;

	usleep(100000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(dev->ctx->device), name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &n) != 1)
		vt_die(VT_SETUP, "%s: %s", path, strerror(errno));
	fclose(f);
	return n;
}

const char *vt_rdma(const char *fmt, ...)
{
	static char out[256 * 1024];
	char command[256];
	size_t n = 0;
	va_list ap;
	FILE *f;

	strcpy(command, "rdma ");
	va_start(ap, fmt);
	vsnprintf(command + 5, sizeof(command) - 16, fmt, ap);
	va_end(ap);
	strcat(command, " 2>&1");
	f = popen(command, "r");
	if (!f)
		vt_die(VT_SETUP, "popen: %s", strerror(errno));
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = 0;
	if (pclose(f)) {
		printf("# %s: %.200s\n", command, out);
		out[0] = 0;
	}
	return out;
}

long long vt_shown(const char *list, const char *wanted, const char *name)
{
	const char *start = strstr(list, wanted), *end, *value;
	char field[64];

	if (!start)
		return -1;
	end = strchr(start, '}');
	while (start > list && *start != '{')
		start--;
	snprintf(field, sizeof(field), "\"%s\":", name);
	value = strstr(start, field);
	return value && (!end || value < end) ? atoll(value + strlen(field)) : -1;
}

struct ibv_mr *vt_mr(struct vt_dev *dev, size_t size, int access)
{
	struct ibv_mr *mr;
	void *buf = NULL;

	if (posix_memalign(&buf, 4096, size))
		vt_die(VT_SETUP, "no memory");
	memset(buf, 0, size);
	mr = ibv_reg_mr(dev->pd, buf, size, access);
	if (!mr)
		vt_die(VT_SETUP, "reg mr of %zu bytes: %s", size, strerror(errno));
	return mr;
}

void vt_mr_free(struct ibv_mr *mr)
{
	void *buf = mr->addr;

	if (ibv_dereg_mr(mr))
		vt_die(VT_WRONG, "dereg mr: %s", strerror(errno));
	free(buf);
}

/* --- queue pairs ------------------------------------------------------------ */

int vt_to_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = VT_QKEY,
		.qp_access_flags = access,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int vt_to_rtr(struct ibv_qp *qp, struct vt_dev *dev, const struct vt_conn *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = c->mtu,
		.dest_qp_num = c->peer.qpn,
		.rq_psn = c->peer.psn,
		.max_dest_rd_atomic = c->rd_atomic,
		.min_rnr_timer = c->min_rnr_timer,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.sl = c->sl,
			.grh = {
				.dgid = c->peer.gid,
				.sgid_index = dev->gid_index,
				.hop_limit = 64,
				.traffic_class = c->tclass,
			},
		},
	};

	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

int vt_to_rts(struct ibv_qp *qp, const struct vt_conn *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = c->sq_psn,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.max_rd_atomic = c->rd_atomic,
	};

	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &attr, mask);
}

int vt_bring_up(struct ibv_qp *qp, struct vt_dev *dev, int access, const struct vt_conn *c)
{
	return vt_to_init(qp, access) ?: vt_to_rtr(qp, dev, c) ?: vt_to_rts(qp, c);
}

int vt_to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state vt_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		return IBV_QPS_UNKNOWN;
	return attr.qp_state;
}

const char *vt_state_name(enum ibv_qp_state state)
{
	static const char *const names[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

struct ibv_ah *vt_ah(struct vt_dev *dev, const union ibv_gid *dgid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.sl = dev->sl,
		.grh = {
			.dgid = *dgid,
			.sgid_index = dev->gid_index,
			.hop_limit = 64,
			.traffic_class = dev->tclass,
		},
	};

	return ibv_create_ah(dev->pd, &attr);
}

struct ibv_cq *vt_create_channel_cq(struct vt_dev *dev, int entries, struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, entries, NULL, channel, vector);

	if (!cq)
		vt_die(VT_SETUP, "create cq: %s", strerror(errno));
	return cq;
}

struct ibv_cq *vt_create_cq(struct vt_dev *dev, int entries)
{
	return vt_create_channel_cq(dev, entries, NULL, 0);
}

struct ibv_srq *vt_create_srq(struct vt_dev *dev, uint32_t entries, uint32_t sges)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = entries, .max_sge = sges } };
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &init);

	if (!srq)
		vt_die(VT_SETUP, "create srq: %s", strerror(errno));
	return srq;
}

struct ibv_qp *vt_create_qp(struct vt_dev *dev, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = ibv_create_qp(dev->pd, init);

	if (!qp)
		vt_die(VT_SETUP, "create qp: %s", strerror(errno));
	return qp;
}

struct ibv_qp *vt_new_qp(struct vt_dev *dev, enum ibv_qp_type type, struct ibv_cq *cq, uint32_t sends, uint32_t recvs)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { .max_send_wr = sends, .max_recv_wr = recvs, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return vt_create_qp(dev, &init);
}

struct ibv_qp *vt_create_ud_qp(struct vt_dev *dev, struct ibv_cq *send_cq, struct ibv_cq *recv_cq, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	const struct vt_conn c = { .sq_psn = 1 };
	struct ibv_qp *qp = vt_create_qp(dev, &init);

	if (vt_bring_up(qp, dev, 0, &c))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
	return qp;
}

bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	double end = vt_now() + seconds;

	do
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return true;
	while (vt_now() < end);
	return false;
}

bool vt_silent(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	return !poll_one(cq, &wc, 0.05);
}

void vt_drain_cq(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

struct ibv_cq *vt_cq_event(struct ibv_comp_channel *channel, double seconds)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, seconds * 1000) != 1 || ibv_get_cq_event(channel, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

bool vt_async_event(struct vt_dev *dev, struct ibv_async_event *event, double seconds)
{
	double end = vt_now() + seconds;

	do {
		if (!ibv_get_async_event(dev->ctx, event)) {
			ibv_ack_async_event(event);
			return true;
		}
		usleep(1000);
	} while (vt_now() < end);
	return false;
}

bool vt_event_comes(struct vt_dev *dev, enum ibv_event_type type, const struct ibv_qp *qp, double seconds)
{
	struct ibv_async_event event;
	double end = vt_now() + seconds;

	while (vt_async_event(dev, &event, max(0.0, end - vt_now())))
		if (event.event_type == type && (!qp || event.element.qp == qp))
			return true;
	return false;
}

void vt_drain_events(struct vt_dev *dev)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(dev->ctx, &event))
		ibv_ack_async_event(&event);
}

struct ibv_send_wr vt_request(struct ibv_sge *sge, uint64_t id, enum ibv_wr_opcode opcode)
{
	return (struct ibv_send_wr){
		.wr_id = id,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

/* --- control connection ----------------------------------------------------- */

static int ctl_ready(int fd, int timeout_s)
{
	struct timeval tv = { .tv_sec = timeout_s };
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* A kernel that has no memory at the moment says that the address is in use */
/* For IPv4 and IPv6, if the kernel has both */
static int ctl_socket(sa_family_t *family)
{
	int fd, zero = 0;

	*family = AF_INET6;
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		return fd;
	}
	*family = AF_INET;
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int ctl_listen(int fd, sa_family_t family, uint16_t port)
{
	/* The family and the port are at the same place in both */
	struct sockaddr_in6 any = { .sin6_family = family, .sin6_port = htons(port) };
	socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(any);
	double end = vt_now() + 5;
	bool bound = false;

	do {
		bound = bound || !bind(fd, (struct sockaddr *)&any, len);
		if (bound && !listen(fd, 1))
			return 0;
		usleep(50000);
	} while (vt_now() < end);
	return -1;
}

int vt_ctl_accept(uint16_t port, int timeout_s)
{
	int fd, conn, one = 1;
	sa_family_t family;

	fd = ctl_ready(ctl_socket(&family), timeout_s);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ctl_listen(fd, family, port))
		vt_die(VT_SETUP, "listen on TCP port %u: %s", port, strerror(errno));
	conn = accept(fd, NULL, NULL);
	if (conn < 0)
		vt_die(VT_SETUP, "nobody connected: %s", strerror(errno));
	close(fd);
	return ctl_ready(conn, timeout_s);
}

int vt_ctl_connect(const char *host, uint16_t port, int timeout_s)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	double end = vt_now() + timeout_s;
	char service[8];
	int fd, rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &ai);
	if (rc)
		vt_die(VT_SETUP, "%s: %s", host, gai_strerror(rc));
	/* the server may not be listening yet */
	do {
		fd = socket(ai->ai_family, SOCK_STREAM, 0);
		rc = connect(fd, ai->ai_addr, ai->ai_addrlen);
		if (!rc)
			break;
		close(fd);
		usleep(50000);
	} while (vt_now() < end);
	freeaddrinfo(ai);
	if (rc)
		vt_die(VT_SETUP, "connect to %s port %u: %s", host, port, strerror(errno));
	return ctl_ready(fd, timeout_s);
}

void vt_ctl_swap(int fd, const void *out, void *in, size_t len)
{
	uint8_t *p = in;
	ssize_t n;

	if (send(fd, out, len, MSG_NOSIGNAL) != (ssize_t)len)
		vt_die(VT_GONE, "control connection: %s", strerror(errno));
	for (; len; p += n, len -= n) {
		do
			n = recv(fd, p, len, 0);
		while (n < 0 && errno == EINTR);
		if (n > 0)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			/* whoever hangs says so itself; one whose network went cannot */
			vt_die(VT_GONE, "the peer is silent");
		vt_die(VT_GONE, "the peer closed the control connection");
	}
}

static void swap_number(uint8_t *p, size_t size)
{
	size_t i;

	for (i = 0; i < size / 2; i++) {
		uint8_t byte = p[i];

		p[i] = p[size - 1 - i];
		p[size - 1 - i] = byte;
	}
}

/* from this machine's order to little-endian, or the other way */
static void little_endian(uint8_t *p, size_t len, const char *layout)
{
	const uint8_t *end = p + len;
	size_t size;

	if (htole32(1) == 1)
		return;
	for (; p < end; p += size) {
		size = *layout == '1' ? sizeof(union ibv_gid) : (size_t)(*layout - '0');
		if (*layout != '1')
			swap_number(p, size);
		if (layout[1])
			layout++;
	}
}

void vt_ctl_swap_numbers(int fd, const void *out, void *in, size_t len, const char *layout)
{
	uint8_t message[512];

	if (len > sizeof(message))
		vt_die(VT_SETUP, "a message of %zu bytes", len);
	memcpy(message, out, len);
	little_endian(message, len, layout);
	vt_ctl_swap(fd, message, in, len);
	little_endian(in, len, layout);
}

void vt_enter_netns(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		vt_die(VT_SETUP, "namespace %s: %s", name, strerror(errno));
	close(fd);
}
