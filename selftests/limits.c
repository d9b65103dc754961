// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * limits: what a process may have of a device, and where it counts.
 *
 *	limits -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * As root; what must be refused is asked for by children who are nobody. Each child has the device open for itself.
 */
#define _GNU_SOURCE /* setresuid() */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uverbs.h"
#include "vt.h"

#define PAGE 4096ul
/* what nobody may pin here */
#define MEMLOCK (1 << 20)
/* of protection domains, see Documentation/limits.md */
#define DOMAINS 65536

static char **arguments;
static int n_arguments;
static struct vt_dev dev;

static void open_device(void)
{
	struct vt_dev devs[2];

	optind = 1;
	vt_open_hosts(n_arguments, arguments, devs, NULL);
	dev = devs[0];
}

/* pages that count as pinned by this process */
static long pinned(void)
{
	return vt_pinned() * 1024 / (long)PAGE;
}

/* --- children ------------------------------------------------------------------ */

static pid_t start(void (*fn)(void), bool nobody)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	vt_failures = 0;
	if (nobody)
		vt_be_nobody(MEMLOCK);
	fn();
	fflush(stdout);
	_exit(vt_failures ? VT_WRONG : VT_OK);
}

static void end(const char *what, pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	/* what is wrong the child has said; that it has died, it has not */
	vt_failures += WIFEXITED(status) && WEXITSTATUS(status) == VT_WRONG;
	if (!WIFEXITED(status) || WEXITSTATUS(status) > VT_WRONG)
		vt_check(false, "%s: came to its end (status %#x)", what, status);
}

static void run(const char *what, void (*fn)(void), bool nobody)
{
	end(what, start(fn, nobody));
}

/* --- rings count as pinned until their memory is freed ---------------------------- */

static uint32_t a_cq(int fd, uint32_t entries, struct sroce_ring_info *info)
{
	struct sroce_create_cq_req in = {};
	struct sroce_create_cq_resp out = {};
	uint32_t handle;
	int rc = uv_create_cq(fd, entries, &in, sizeof(in), &handle, &out, sizeof(out));

	if (rc)
		vt_die(VT_WRONG, "WRONG: cq of %u entries: %s", entries, strerror(rc));
	*info = out.ring;
	return handle;
}

/* by the command @number, whose parts have these lengths */
static void destroy(int fd, const char *what, uint32_t number, const void *cmd, size_t len, size_t resp_len)
{
	uint64_t resp[4];
	int rc = uv_issue(fd, &(struct uv_command){ number, cmd, len, NULL, 0, resp, resp_len, NULL, 0 });

	if (rc)
		vt_die(VT_WRONG, "WRONG: destroy %s: %s", what, strerror(rc));
}

static void destroy_cq(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_cq cmd = { .cq_handle = handle };

	destroy(fd, "cq", IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), sizeof(struct ib_uverbs_destroy_cq_resp));
}

static void destroy_qp(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = handle };

	destroy(fd, "qp", IB_USER_VERBS_CMD_DESTROY_QP, &cmd, sizeof(cmd), sizeof(struct ib_uverbs_destroy_qp_resp));
}

static uint32_t a_qp(struct uv_context *c, uint32_t cq, uint32_t depth, uint32_t sges, struct sroce_create_qp_resp *out)
{
	struct sroce_create_qp_req in = {};
	struct ib_uverbs_create_qp_resp resp;
	struct ib_uverbs_create_qp cmd;
	int rc;

	uv_qp_command(&cmd, c->pd, cq, IB_UVERBS_QPT_RC);
	cmd.max_send_wr = cmd.max_recv_wr = depth;
	cmd.max_send_sge = cmd.max_recv_sge = sges;
	rc = uv_create_qp(c->fd, &cmd, &in, sizeof(in), &resp, out, sizeof(*out));
	if (rc)
		vt_die(VT_WRONG, "WRONG: qp with %u requests: %s", depth, strerror(rc));
	return resp.qp_handle;
}

static struct uv_context raw_context(void)
{
	char path[300];

	if (!uv_path(ibv_get_device_name(dev.ctx->device), path, sizeof(path)))
		vt_die(VT_SETUP, "no character device");
	return uv_open(path);
}

static void rings_count(void)
{
	long before, pages = 1 + 1024 * sizeof(struct sroce_cqe) / PAGE;
	struct sroce_ring_info info;
	struct uv_context c;
	struct uv_ring ring;
	uint32_t cq;

	open_device();
	c = raw_context();
	before = pinned();
	cq = a_cq(c.fd, 1024, &info);
	vt_check(pinned() == before + pages, "a completion queue counts as pinned memory (%ld pages of %ld)",
		 pinned() - before, pages);
	destroy_cq(c.fd, cq);
	vt_check(pinned() == before, "a destroyed one does not (%ld pages)", pinned() - before);

	cq = a_cq(c.fd, 1024, &info);
	ring = uv_map_ring(c.fd, &info);
	destroy_cq(c.fd, cq);
	vt_check(pinned() == before + pages, "one that is destroyed and still mapped does (%ld pages)", pinned() - before);
	munmap(ring.base, info.mmap_len / 2);
	((volatile uint8_t *)ring.base)[info.mmap_len - 1] = 1;
	vt_check(pinned() == before + pages, "also while a part of it is mapped (%ld pages)", pinned() - before);
	munmap(ring.base, info.mmap_len);
	vt_check(pinned() == before, "and not once it is unmapped (%ld pages)", pinned() - before);

	a_cq(c.fd, 1024, &info);
	ring = uv_map_ring(c.fd, &info);
	uv_close(&c);
	((volatile uint8_t *)ring.base)[info.mmap_len - 1] = 1;
	vt_check(pinned() == before + pages, "what is mapped counts when the device is closed (%ld pages)",
		 pinned() - before);
	munmap(ring.base, info.mmap_len);
	vt_check(pinned() == before, "and not once it is unmapped (%ld pages)", pinned() - before);
}

static void queue_pairs_count(void)
{
	struct sroce_create_qp_resp out;
	struct sroce_ring_info info;
	struct uv_context c;
	uint32_t cq, qps[16];
	long before, now;
	size_t i;

	open_device();
	c = raw_context();
	cq = a_cq(c.fd, 16, &info);
	before = pinned();
	qps[0] = a_qp(&c, cq, 1024, 4, &out);
	now = pinned() - before;
	/* the rings, and the kernel's copy of each send request */
	vt_check(now >= (long)(out.sq.mmap_len + 1024 * sizeof(struct sroce_send_wqe)) / (long)PAGE,
		 "a queue pair's rings and what the kernel has beside them count (%ld pages)", now);
	destroy_qp(c.fd, qps[0]);
	vt_check(pinned() == before, "not those of a destroyed one (%ld pages)", pinned() - before);

	for (i = 0; i < ARRAY_SIZE(qps); i++)
		qps[i] = a_qp(&c, cq, 1, 1, &out);
	now = pinned() - before;
	vt_check(now >= 1 && now <= 4, "16 small queue pairs share pages (%ld)", now);
	for (i = 0; i < ARRAY_SIZE(qps); i++)
		destroy_qp(c.fd, qps[i]);
	/* new ones come from the page that is left */
	vt_check(pinned() <= before + 1, "not when they are destroyed (%ld pages)", pinned() - before);
	uv_close(&c);
}

/* --- what is above RLIMIT_MEMLOCK is refused -------------------------------------------- */

static void too_much_cq(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, dev.attr.max_cqe, NULL, NULL, 0);

	vt_check(!cq && errno == ENOMEM, "a completion queue of %d entries is refused: %s", dev.attr.max_cqe,
		 cq ? "taken" : strerror(errno));
	cq = ibv_create_cq(dev.ctx, 1000, NULL, NULL, 0);
	vt_check(cq, "one of 1000 is not");
	if (!cq)
		return;
	errno = ibv_resize_cq(cq, dev.attr.max_cqe);
	vt_check(errno == ENOMEM, "it cannot grow to that: %s", strerror(errno));
	vt_check(!ibv_resize_cq(cq, 2000), "but to 2000");
	vt_check(!ibv_destroy_cq(cq), "and is destroyed");
}

static void too_much_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = dev.attr.max_srq_wr, .max_sge = dev.attr.max_srq_sge } };
	struct ibv_srq_attr attr = { .max_wr = dev.attr.max_srq_wr };
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &init);

	vt_check(!srq && errno == ENOMEM, "a shared receive queue of the largest size is refused: %s",
		 srq ? "taken" : strerror(errno));
	init.attr.max_wr = 100;
	srq = ibv_create_srq(dev.pd, &init);
	vt_check(srq, "one of 100 is not");
	if (!srq)
		return;
	errno = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	vt_check(errno == ENOMEM, "it cannot grow to that: %s", strerror(errno));
	vt_check(!ibv_destroy_srq(srq), "and is destroyed");
}

static void too_much_qp(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 100, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = dev.attr.max_qp_wr, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &init);

	vt_check(!qp && errno == ENOMEM, "a queue pair of %d requests is refused: %s", dev.attr.max_qp_wr,
		 qp ? "taken" : strerror(errno));
	init.cap.max_send_wr = 100;
	qp = ibv_create_qp(dev.pd, &init);
	vt_check(qp, "one of 100 is not");
	if (qp)
		ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
}

/* the limit is for all of them together */
static void too_many(void)
{
	struct ibv_cq *cqs[1 + MEMLOCK / PAGE];
	size_t n = 0;

	while (n < ARRAY_SIZE(cqs) && (cqs[n] = ibv_create_cq(dev.ctx, 1, NULL, NULL, 0)))
		n++;
	vt_check(n > 10 && n < ARRAY_SIZE(cqs) && errno == ENOMEM, "%zu completion queues, no more: %s", n, strerror(errno));
	vt_check(pinned() <= (long)(MEMLOCK / PAGE), "all that is pinned is within the limit (%ld pages)", pinned());
	while (n--)
		ibv_destroy_cq(cqs[n]);
}

/* each page of memory has to look at all that it is in when it goes: even a small region counts */
static void too_many_on_demand(void)
{
	struct ibv_mr *mrs[2 * MEMLOCK / PAGE];
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t n = 0;

	while (n < ARRAY_SIZE(mrs) && (mrs[n] = ibv_reg_mr(dev.pd, page, PAGE, IBV_ACCESS_ON_DEMAND)))
		n++;
	vt_check(n > 10 && n <= MEMLOCK / PAGE && errno == ENOMEM, "%zu regions on demand, no more: %s", n, strerror(errno));
	while (n--)
		ibv_dereg_mr(mrs[n]);
	munmap(page, PAGE);
}

static void memlock(void)
{
	long before;

	open_device();
	before = pinned();
	too_much_cq();
	too_much_srq();
	too_much_qp();
	too_many();
	too_many_on_demand();
	vt_check(pinned() <= before + 1, "nothing is pinned by what is gone (%ld pages)", pinned() - before);
	vt_close(&dev);
}

/* --- numbers of objects ------------------------------------------------------------------- */

static int go[2];

/* all that nobody can have; holds them until the pipe is closed */
static void take_domains(void)
{
	struct ibv_pd **pds = calloc(DOMAINS, sizeof(*pds));
	char c = 0;
	int n = 0;

	close(go[0]);
	open_device();
	while (n < DOMAINS && (pds[n] = ibv_alloc_pd(dev.ctx)))
		n++;
	vt_check(n > DOMAINS / 2 && n < DOMAINS && errno == ENOSPC, "%d protection domains, no more: %s", n,
		 strerror(errno));
	if (write(go[1], &c, 1) != 1 || read(go[1], &c, 1) < 0)
		vt_check(false, "the parent is there");
	while (n--)
		ibv_dealloc_pd(pds[n]);
	vt_close(&dev);
}

static void root_has_some(void)
{
	struct ibv_pd *pd;

	open_device();
	pd = ibv_alloc_pd(dev.ctx);
	vt_check(pd, "root gets one when nobody has all that it can have");
	if (pd)
		ibv_dealloc_pd(pd);
	vt_close(&dev);
}

static void domains(void)
{
	pid_t taker;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, go))
		vt_die(VT_SETUP, "socketpair: %s", strerror(errno));
	taker = start(take_domains, true);
	close(go[1]);
	if (read(go[0], &c, 1) == 1)
		run("root beside nobody", root_has_some, false);
	close(go[0]);
	end("protection domains", taker);
}

/* --- fork ------------------------------------------------------------------------------------ */

static void touch(volatile uint32_t *p)
{
	*p = *p + 1;
}

static void not_inherited(void)
{
	struct sroce_ring_info info;
	struct uv_context c;
	struct uv_ring ring;
	int status = 0;
	pid_t pid;

	open_device();
	c = raw_context();
	a_cq(c.fd, 64, &info);
	ring = uv_map_ring(c.fd, &info);
	touch(&ring.hdr->cons);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		touch(&ring.hdr->cons);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	vt_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a child has no rings (status %#x)", status);
	vt_check(ring.hdr->cons == 1, "the parent's are its own");
	uv_close(&c);
}

/* --- another process with the same file of the device ------------------------------------------------ */

static int try_map(int fd, const struct sroce_ring_info *info)
{
	void *p = mmap(NULL, info->mmap_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, info->mmap_offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, info->mmap_len);
	return 0;
}

/* in the rings */
#define MARK 0xa5

/* what a process has made, and what another one tries to get */
struct other {
	struct uv_context c;
	uint32_t cq;
	struct sroce_ring_info cq_info, qp_info;
};

/* Small queue pairs share pages */
static void own_page(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct uv_mapping before[UV_MAPPINGS], ring;
	size_t n = uv_mappings(before);
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	vt_check(qp, "another process makes a queue pair: %s", qp ? "done" : strerror(errno));
	if (!qp)
		return;
	ring = uv_new_mapping(before, n);
	vt_check(!memchr(ring.start, MARK, ring.end - ring.start), "there is nothing of somebody else's in its page");
}

/* as if it were one of this process */
static int resize_other(struct ibv_cq *cq, uint32_t handle)
{
	uint32_t own = cq->handle;
	int rc;

	cq->handle = handle;
	rc = ibv_resize_cq(cq, 128);
	cq->handle = own;
	return rc;
}

static void other_process(void *arg)
{
	const struct other *o = arg;
	/* with the library, because commands that are written to the file are its owner's only */
	struct ibv_context *ctx = ibv_import_device(dup(o->c.fd));
	struct ibv_pd *pd = ctx ? ibv_import_pd(ctx, o->c.pd) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 64, NULL, NULL, 0) : NULL;
	int rc;

	vt_check(pd && cq, "another process imports a domain, and makes a completion queue: %s", strerror(errno));
	if (!pd || !cq)
		return;

	rc = try_map(o->c.fd, &o->cq_info);
	vt_check(rc == EACCES, "another process does not get a completion queue's ring: %s", strerror(rc));
	rc = try_map(o->c.fd, &o->qp_info);
	vt_check(rc == EACCES, "another process does not get a queue pair's rings: %s", strerror(rc));
	rc = resize_other(cq, o->cq);
	vt_check(rc == EACCES, "nor does a queue move to a ring that is another process's: %s", strerror(rc));
	vt_check(!ibv_resize_cq(cq, 128), "it resizes its own");
	own_page(pd, cq);
}

/* Of two processes that come one after the other, the second may have its memory at the address where the first had */
static void not_shared(void)
{
	struct sroce_create_qp_resp out;
	struct uv_ring ring;
	struct other o;

	open_device();
	o.c = raw_context();
	o.cq = a_cq(o.c.fd, 64, &o.cq_info);
	a_qp(&o.c, o.cq, 1, 1, &out);
	o.qp_info = out.sq;
	ring = uv_map_ring(o.c.fd, &out.sq);
	memset(uv_entry(&ring, 0), MARK, 16);
	vt_in_child("another process", other_process, &o);
	vt_in_child("the next one", other_process, &o);
	vt_check(!try_map(o.c.fd, &o.cq_info) && !try_map(o.c.fd, &o.qp_info), "who has made them gets them again");
	uv_close(&o.c);
}

/* --- events that nobody reads -------------------------------------------------------------------- */

/* how many of them may wait, of one object */
#define UNREAD 8
#define ROUNDS 1000

/* a queue pair that talks to itself */
static struct ibv_qp *self(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct vt_conn conn = {
		.peer = { .psn = 7, .gid = dev.gid }, .sq_psn = 7, .mtu = IBV_MTU_1024, .rd_atomic = 4,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 20,
	};
	struct ibv_qp *qp = vt_create_qp(&dev, &init);

	conn.peer.qpn = qp->qp_num;
	if (vt_bring_up(qp, &dev, VT_REMOTE_ACCESS, &conn))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
	return qp;
}

/* arm, and let a message complete: an event */
static bool one_event(struct ibv_qp *qp)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };
	double end = vt_now() + 10;
	struct ibv_wc wc;
	int n = 0;

	if (ibv_req_notify_cq(qp->send_cq, 0) || ibv_post_send(qp, &wr, &bad))
		return false;
	while (!n && vt_now() < end)
		n = ibv_poll_cq(qp->send_cq, 1, &wc);
	return n == 1 && !wc.status;
}

static int read_events(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;
	int n = 0;

	/* the handler may be called a moment after the completion is seen */
	usleep(100000);
	while (!ibv_get_cq_event(channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		n++;
	}
	return n;
}

static bool next_event(struct ibv_comp_channel *channel)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, 10000) != 1 || ibv_get_cq_event(channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void unread_completions(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 16, NULL, channel, 0);
	struct ibv_qp *qp = self(cq);
	int i, n = 0;

	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < ROUNDS && one_event(qp); i++)
		;
	vt_check(i == ROUNDS, "%d messages with an armed queue complete", i);
	n = read_events(channel);
	vt_check(n >= 1 && n <= UNREAD, "%d events of a completion queue wait to be read", n);
	for (i = 0; i < 2 * UNREAD && one_event(qp) && next_event(channel); i++)
		;
	vt_check(i == 2 * UNREAD, "%d more, each of which is read, come", i);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(channel);
}

static int read_async_events(void)
{
	struct ibv_async_event event;
	int n = 0;

	while (!ibv_get_async_event(dev.ctx, &event)) {
		n += event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED;
		ibv_ack_async_event(&event);
	}
	return n;
}

static void unread_async(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &init);
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	int i, n;

	/* with fewer left than that, the limit is reached at once */
	for (i = 0; i < ROUNDS && !ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT); i++)
		;
	n = read_async_events();
	vt_check(i == ROUNDS && n >= 1 && n <= UNREAD, "of %d asynchronous events %d wait to be read", i, n);
	for (i = 0; i < 2 * UNREAD && !ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) && read_async_events() == 1; i++)
		;
	vt_check(i == 2 * UNREAD, "%d more, each of which is read, come", i);
	ibv_destroy_srq(srq);
}

/* --- of a target of XRC, which ib_core makes without saying for whom --- */

struct xrc {
	struct ibv_xrcd *domain;
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
};

static struct ibv_qp *xrc_qp(const struct xrc *x, bool target)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = target ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND,
		.comp_mask = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = target ? NULL : dev.pd,
		.xrcd = target ? x->domain : NULL,
		.send_cq = target ? NULL : x->cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev.ctx, &init);

	if (!qp)
		vt_die(VT_SETUP, "create XRC qp: %s", strerror(errno));
	return qp;
}

static void xrc_connect(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct vt_conn conn = {
		.peer = { .qpn = peer->qp_num, .psn = 7, .gid = dev.gid }, .sq_psn = 7, .mtu = IBV_MTU_1024,
		.rd_atomic = 4, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 20,
	};

	if (vt_to_state(qp, IBV_QPS_RESET) || vt_to_init(qp, VT_REMOTE_ACCESS) || vt_to_rtr(qp, &dev, &conn) ||
	    (qp->qp_type == IBV_QPT_XRC_SEND && vt_to_rts(qp, &conn)))
		vt_die(VT_SETUP, "XRC qp to its state: %s", strerror(errno));
}

/* The target gets a request for a queue that is none: an event that it talks, and one that it does not like that */
static bool two_events(const struct xrc *x)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };
	double end = vt_now() + 10;
	struct ibv_wc wc;
	int n = 0;

	xrc_connect(x->to, x->from);
	xrc_connect(x->from, x->to);
	if (ibv_post_send(x->from, &wr, &bad))
		return false;
	while (!n && vt_now() < end)
		n = ibv_poll_cq(x->cq, 1, &wc);
	return n == 1 && wc.status == IBV_WC_REM_INV_REQ_ERR;
}

static void unread_of_target(void)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};
	struct xrc x = { .domain = ibv_open_xrcd(dev.ctx, &init), .cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0) };
	struct ibv_async_event event;
	int i, n = 0;

	if (!x.domain || !x.cq)
		vt_die(VT_SETUP, "XRC domain or cq: %s", strerror(errno));
	x.from = xrc_qp(&x, false);
	x.to = xrc_qp(&x, true);
	for (i = 0; i < 3 * UNREAD && two_events(&x); i++)
		;
	while (!ibv_get_async_event(dev.ctx, &event)) {
		n++;
		ibv_ack_async_event(&event);
	}
	vt_check(i == 3 * UNREAD && n >= 1 && n <= UNREAD, "of %d events of an XRC target %d wait to be read", 2 * i, n);
	ibv_destroy_qp(x.from);
	ibv_destroy_qp(x.to);
	ibv_destroy_cq(x.cq);
	ibv_close_xrcd(x.domain);
}

static void unread(void)
{
	open_device();
	unread_completions();
	unread_async();
	unread_of_target();
	vt_close(&dev);
}

/* --- a queue that cannot grow stays as it is ------------------------------------------------------- */

/* address space for a little, not for @bytes more */
static void no_room_for(size_t bytes)
{
	struct rlimit limit;
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%ld", &pages) != 1)
		vt_die(VT_SETUP, "no /proc/self/statm");
	fclose(f);
	limit.rlim_cur = limit.rlim_max = pages * PAGE + bytes / 2;
	if (setrlimit(RLIMIT_AS, &limit))
		vt_die(VT_SETUP, "setrlimit: %s", strerror(errno));
}

static void cq_has_no_room(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = self(cq);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_wc wc = {};
	int i;

	for (wr.wr_id = 0; wr.wr_id < 4; wr.wr_id++)
		vt_check(!ibv_post_send(qp, &wr, &bad), "a message before");
	usleep(100000);
	errno = ibv_resize_cq(cq, dev.attr.max_cqe);
	vt_check(errno == ENOMEM, "a completion queue that has no room to grow: %s", strerror(errno));
	vt_check(cq->cqe == 16, "it has the size it had (%d)", cq->cqe);
	for (i = 0; i < 4 && ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == (uint64_t)i && !wc.status; i++)
		;
	vt_check(i == 4, "what was in it is still there, in order (%d of 4)", i);
	for (i = 0; i < 100 && one_event(qp); i++)
		;
	vt_check(i == 100, "it goes on (%d of 100)", i);
	vt_check(!ibv_resize_cq(cq, 100) && one_event(qp), "it can grow a little");
	ibv_destroy_qp(qp);
	vt_check(!ibv_destroy_cq(cq), "and be destroyed");
}

static int post_to(struct ibv_srq *srq, uint64_t id)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = id };

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static void srq_has_no_room(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = dev.attr.max_srq_sge } };
	struct ibv_srq_attr attr = { .max_wr = dev.attr.max_srq_wr };
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &init);
	int i;

	for (i = 0; i < 8; i++)
		vt_check(!post_to(srq, i), "a receive before");
	errno = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	vt_check(errno == ENOMEM, "a shared receive queue that has no room to grow: %s", strerror(errno));
	while (i < 100 && !post_to(srq, i))
		i++;
	vt_check(i == 16, "it has the size it had (%d)", i);
	attr.max_wr = 32;
	vt_check(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), "it can grow a little");
	while (i < 100 && !post_to(srq, i))
		i++;
	vt_check(i == 32, "and has that size (%d)", i);
	vt_check(!ibv_query_srq(srq, &attr) && attr.max_wr == 32, "as the kernel says");
	ibv_destroy_srq(srq);
}

static void no_room(void)
{
	open_device();
	/* of the two the smaller one: 32768 times 32 elements */
	no_room_for(16 << 20);
	cq_has_no_room();
	srq_has_no_room();
	vt_close(&dev);
}

int main(int argc, char **argv)
{
	arguments = argv;
	n_arguments = argc;
	run("rings", rings_count, false);
	run("queue pairs", queue_pairs_count, false);
	run("RLIMIT_MEMLOCK", memlock, true);
	run("fork", not_inherited, false);
	run("another process", not_shared, false);
	run("events", unread, false);
	run("no room", no_room, false);
	domains();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
