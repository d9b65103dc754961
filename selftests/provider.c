// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * provider: what the provider has to be right about by itself: memory that it shares, and that somebody else writes to
 * while it works there; calls of two threads; arguments that the kernel never sees.
 *
 *	provider -d DEVICE -i IP
 *
 * Who writes to the rings, too, is a handler of page faults: it comes just where the provider is in the middle of
 * something.
 */
#define _GNU_SOURCE /* syscall(), MAP_ANONYMOUS */
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/sroce-abi.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uverbs.h"
#include "vt.h"

static struct vt_dev dev;
static size_t page;

/* --- page faults ----------------------------------------------------------------- */

static void (*on_fault)(uint8_t *addr);

static void fault(int sig, siginfo_t *info, void *context)
{
	if (!on_fault) {
		signal(SIGSEGV, SIG_DFL);
		return;
	}
	on_fault(info->si_addr);
}

static void protect(void *from, void *to, int prot)
{
	if (mprotect(from, (uint8_t *)to - (uint8_t *)from, prot))
		vt_die(VT_SETUP, "mprotect: %s", strerror(errno));
}

static void allow(void *from, void *to)
{
	protect(from, to, PROT_READ | PROT_WRITE);
}

/* where @at is, if that is free */
static uint8_t *new_page(void *at)
{
	void *p = mmap(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	return p;
}

/* --- the place of inline data -------------------------------------------------------- */

#define DEPTH 64
#define INLINE 256
#define PIECE 64
/* wr_id of requests that are to be found in the ring */
#define MARK 0x6d61726b6d61726bull

/* a queue pair that talks to itself, and where the next request will be */
static struct {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *first;
	size_t stride;
	unsigned int posted;
} v;

/* what the first piece is in, and what is written to if the position is believed */
static uint8_t *gate, *canary;

static struct ibv_qp *self(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .sq_sig_all = 1, .pd = dev.pd,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 4, .max_send_sge = 4, .max_recv_sge = 1,
			 .max_inline_data = INLINE },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct vt_conn conn = {
		.peer = { .psn = 7, .gid = dev.gid }, .sq_psn = 7, .mtu = IBV_MTU_1024, .rd_atomic = 4,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 20,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev.ctx, &init);

	if (!qp)
		vt_die(VT_SETUP, "create qp: %s", strerror(errno));
	conn.peer.qpn = qp->qp_num;
	if (vt_bring_up(qp, &dev, VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE, &conn))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
	return qp;
}

static bool completes(void)
{
	struct ibv_wc wc;

	v.posted++;
	return poll_one(v.cq, &wc, 10) && !wc.status;
}

/* where two requests have come to lie */
static void find_entries(struct uv_mapping ring)
{
	struct ibv_send_wr *bad, wr = { .wr_id = MARK, .opcode = IBV_WR_RDMA_WRITE };
	uint64_t *at, *found[2] = {};
	size_t n = 0;
	int i;

	for (i = 0; i < 2; i++)
		if (ibv_post_send(v.qp, &wr, &bad) || !completes())
			vt_die(VT_WRONG, "WRONG: an empty WRITE");
	for (at = (uint64_t *)ring.start; (uint8_t *)at < ring.end && n < 2; at++)
		if (*at == MARK)
			found[n++] = at;
	if (n != 2)
		vt_die(VT_SETUP, "%zu requests in the ring", n);
	v.first = (uint8_t *)found[0];
	v.stride = (uint8_t *)found[1] - v.first;
}

/* A position is added, so it leads to what is above, and no further than this */
static uint8_t *page_above(const uint8_t *from)
{
	uint64_t far;
	uint8_t *at;

	for (far = 1 << 20; far < 1ull << 31; far += far / 4) {
		at = new_page((void *)(((uintptr_t)from + far) & -page));
		if (at > from && (uint64_t)(at - from) < UINT32_MAX)
			return at;
		munmap(at, page);
	}
	vt_die(VT_SETUP, "no place above the ring");
}

static void victim(void)
{
	struct uv_mapping before[UV_MAPPINGS];
	size_t n;

	v.cq = vt_create_cq(&dev, DEPTH);
	v.mr = vt_mr(&dev, 2 * PIECE, VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE);
	n = uv_mappings(before);
	v.qp = self(v.cq);
	find_entries(uv_new_mapping(before, n));
	canary = page_above(v.first + DEPTH * v.stride);
	gate = new_page(NULL);
}

/* the first piece is being copied: say that all of the way to the canary is behind us */
static void move_position(uint8_t *addr)
{
	uint8_t *entry = v.first + v.posted * v.stride;
	struct sroce_send_wqe *wqe = (struct sroce_send_wqe *)entry;

	if (addr < gate || addr >= gate + page) {
		on_fault = NULL;
		return;
	}
	*(volatile uint32_t *)&wqe->inline_len = canary - (uint8_t *)(wqe + 1);
	allow(gate, gate + page);
}

static int post_list(const uint8_t *second)
{
	struct ibv_sge sges[2] = {
		{ .addr = (uintptr_t)gate, .length = PIECE }, { .addr = (uintptr_t)second, .length = PIECE },
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = sges, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE,
		.wr.rdma = { .remote_addr = (uintptr_t)v.mr->addr, .rkey = v.mr->rkey },
	};

	return ibv_post_send(v.qp, &wr, &bad);
}

static int build_list(const uint8_t *second)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(v.qp);
	struct ibv_data_buf pieces[2] = { { gate, PIECE }, { (void *)second, PIECE } };

	ibv_wr_start(qp);
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, v.mr->rkey, (uintptr_t)v.mr->addr);
	ibv_wr_set_inline_data_list(qp, 2, pieces);
	return ibv_wr_complete(qp);
}

static void list(const char *what, int (*post)(const uint8_t *second))
{
	uint8_t data[2 * PIECE], untouched[2 * PIECE];
	int rc;

	vt_pattern(data, v.posted, 0, sizeof(data));
	memcpy(gate, data, PIECE);
	memset(canary, 0xc5, page);
	memset(untouched, 0xc5, sizeof(untouched));
	memset(v.mr->addr, 0, 2 * PIECE);
	protect(gate, gate + page, PROT_NONE);
	on_fault = move_position;
	rc = post(data + PIECE);
	on_fault = NULL;
	vt_check(!rc && completes(), "%s whose position somebody else changes: posted and completed (%d)", what, rc);
	vt_check(!memcmp(canary, untouched, sizeof(untouched)), "%s: nothing outside the ring is written", what);
	vt_check(!memcmp(v.mr->addr, data, sizeof(data)), "%s: the right bytes arrive", what);
}

static void inline_lists(void)
{
	victim();
	list("an inline list", post_list);
	list("an inline list of ibv_wr_*", build_list);
	ibv_destroy_qp(v.qp);
	ibv_destroy_cq(v.cq);
	vt_mr_free(v.mr);
}

/* --- completions without end ------------------------------------------------------------ */

#define ENTRIES 1024
#define ENOUGH 50

static struct {
	struct uv_mapping ring;
	struct sroce_ring_hdr *hdr;
	uint8_t *entries, *middle;
	int faults;
} p;

/* Whoever looks at another half of the ring finds that more have come */
static void refill(uint8_t *addr)
{
	if (addr < p.ring.start || addr >= p.ring.end) {
		on_fault = NULL;
		return;
	}
	allow(p.ring.start, p.ring.end);
	if (p.faults++ >= ENOUGH)
		return;
	if (addr < p.entries)
		p.hdr->prod += ENTRIES;
	/* the next look at the indices, or at the second half of the entries, leads here again */
	if (addr >= p.middle)
		protect(p.ring.start, p.middle, PROT_NONE);
	else
		protect(p.middle, p.ring.end, PROT_NONE);
}

/* The end of a queue pair takes its completions out of the queue, for which it goes through all that are there */
static void completions(void)
{
	struct uv_mapping before[UV_MAPPINGS];
	size_t n = uv_mappings(before);
	struct ibv_cq *cq = vt_create_cq(&dev, ENTRIES);
	struct ibv_qp *qp;
	int rc;

	p.ring = uv_new_mapping(before, n);
	p.hdr = (void *)p.ring.start;
	p.entries = p.ring.start + SROCE_RING_ENTRIES_OFFSET;
	p.middle = p.ring.start + (p.ring.end - p.ring.start) / page / 2 * page;
	qp = vt_new_qp(&dev, IBV_QPT_RC, cq, 4, 4);
	/* all of a new ring is of none */
	p.hdr->prod = ENTRIES;
	protect(p.middle, p.ring.end, PROT_NONE);
	on_fault = refill;
	rc = ibv_destroy_qp(qp);
	on_fault = NULL;
	allow(p.ring.start, p.ring.end);
	vt_check(!rc && p.faults && p.faults < 10, "the end of a queue pair goes through its completion queue once (%d)",
		 p.faults);
	ibv_destroy_cq(cq);
}

/* --- between two threads ------------------------------------------------------------------ */

/* what another thread does when the kernel has done what was asked for, and before the provider goes on */
static void (*meanwhile)(void);

/* libibverbs calls this one */
int ioctl(int fd, unsigned long request, ...)
{
	void (*other)(void) = meanwhile;
	va_list args;
	void *arg;
	long rc;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	rc = syscall(SYS_ioctl, fd, request, arg);
	if (other && request == RDMA_VERBS_IOCTL && !rc) {
		meanwhile = NULL;
		other();
	}
	return rc;
}

static struct ibv_cq *shared_cq;
static int destroyed;

static void destroy_shared_cq(void)
{
	destroyed = ibv_destroy_cq(shared_cq);
}

static void destroyed_meanwhile(void)
{
	struct ibv_qp *qp;

	shared_cq = vt_create_cq(&dev, 16);
	qp = vt_new_qp(&dev, IBV_QPT_RC, shared_cq, 4, 4);
	vt_check(ibv_destroy_cq(shared_cq) == EBUSY, "a completion queue of a queue pair is not destroyed");
	destroyed = -1;
	meanwhile = destroy_shared_cq;
	vt_check(!ibv_destroy_qp(qp), "the queue pair is");
	vt_check(destroyed == EBUSY, "nor is it while the provider still uses it: %s",
		 destroyed < 0 ? "not tried" : strerror(destroyed));
	if (destroyed)
		vt_check(!ibv_destroy_cq(shared_cq), "and then it is");
}

static struct ibv_srq *tagged_srq;

static void destroy_tagged_srq(void)
{
	destroyed = ibv_destroy_srq(tagged_srq);
}

/* What its queue pair has not been told of yet is counted in the shared receive queue */
static void tagged_destroyed_meanwhile(void)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_TM,
		.pd = dev.pd,
		.cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(dev.ctx, &cq_attr)),
		.tm_cap = { .max_num_tags = 4, .max_ops = 4 },
	};
	struct ibv_qp_init_attr init = {
		.send_cq = attr.cq,
		.recv_cq = attr.cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct ibv_qp *qp;

	tagged_srq = ibv_create_srq_ex(dev.ctx, &attr);
	if (!tagged_srq)
		vt_die(VT_WRONG, "WRONG: create a queue with tags: %s", strerror(errno));
	init.srq = tagged_srq;
	qp = vt_create_qp(&dev, &init);
	destroyed = -1;
	meanwhile = destroy_tagged_srq;
	vt_check(!ibv_destroy_qp(qp), "a queue pair with tag matching is destroyed");
	vt_check(destroyed == EBUSY, "its shared receive queue is not while the provider still uses it: %s",
		 destroyed < 0 ? "not tried" : strerror(destroyed));
	if (destroyed)
		vt_check(!ibv_destroy_srq(tagged_srq), "and then it is");
	ibv_destroy_cq(attr.cq);
}

/* --- arguments -------------------------------------------------------------------------------- */

static void srq_refuses(const char *what, struct ibv_srq *srq, int mask, uint32_t size, uint32_t limit)
{
	struct ibv_srq_attr attr = { .max_wr = size, .srq_limit = limit };
	int rc = ibv_modify_srq(srq, &attr, mask);

	vt_check(rc == EINVAL, "shared receive queue: %s is refused: %s", what, strerror(rc));
	vt_check(!ibv_query_srq(srq, &attr) && attr.max_wr == 16 && attr.srq_limit == 0,
		 "after %s it is what it was (%u, %u)", what, attr.max_wr, attr.srq_limit);
}

static void srq_as_a_whole(void)
{
	struct ibv_srq *srq = vt_create_srq(&dev, 16, 1);
	struct ibv_srq_attr attr = { .max_wr = 64, .srq_limit = 40 };
	struct ibv_recv_wr *bad, wr = {};
	int i;

	srq_refuses("a limit above the new size", srq, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 64, 65);
	srq_refuses("something unknown beside the size", srq, IBV_SRQ_MAX_WR | 1 << 8, 64, 0);
	srq_refuses("something unknown alone", srq, 1 << 8, 64, 0);
	srq_refuses("a limit above the size", srq, IBV_SRQ_LIMIT, 64, 17);
	srq_refuses("a size of nothing", srq, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 0, 0);
	vt_check(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), "a new size");
	for (i = 0; i < 50 && !ibv_post_srq_recv(srq, &wr, &bad); i++)
		;
	attr.max_wr = 128;
	vt_check(i == 50 && !ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), "a size and a limit");
	vt_check(!ibv_query_srq(srq, &attr) && attr.max_wr == 128 && attr.srq_limit == 40, "it has both (%u, %u)",
		 attr.max_wr, attr.srq_limit);
	ibv_destroy_srq(srq);
}

static bool srq_posts(struct ibv_srq *srq, int n)
{
	struct ibv_recv_wr *bad, wr = {};

	while (n && !ibv_post_srq_recv(srq, &wr, &bad))
		n--;
	return !n;
}

/*
 * A limit that is armed is never above what waits, so it is never what a new size is refused for that the same call gives
 * a new limit: either the limit has been reached, or what waits does not fit
 */
static void srq_limit_replaced(void)
{
	struct ibv_srq *srq = vt_create_srq(&dev, 1024, 1);
	struct ibv_srq_attr attr = { .srq_limit = 500 };
	int rc;

	vt_check(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) && vt_event_comes(&dev, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, 1),
		 "a limit of 500 in a queue of 1024 with none: it is reached");
	attr.max_wr = 256;
	attr.srq_limit = 100;
	rc = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	vt_check(!rc, "a size below the old limit with a new limit: %s", strerror(rc));
	vt_check(vt_event_comes(&dev, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, 1), "the new limit is reached, too");
	attr = (struct ibv_srq_attr){ .max_wr = 1024, .srq_limit = 200 };
	vt_check(srq_posts(srq, 200) && !ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
		 "a limit of 200 in a queue of 1024 with 200");
	attr = (struct ibv_srq_attr){ .max_wr = 128, .srq_limit = 100 };
	rc = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	vt_check(rc == EINVAL, "a size below what waits is refused: %s", strerror(rc));
	vt_check(!ibv_query_srq(srq, &attr) && attr.max_wr == 1024 && attr.srq_limit == 200,
		 "the queue is what it was (%u, %u)", attr.max_wr, attr.srq_limit);
	attr = (struct ibv_srq_attr){ .max_wr = 256, .srq_limit = 100 };
	rc = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	vt_check(!rc && !ibv_query_srq(srq, &attr) && attr.max_wr == 256 && attr.srq_limit == 100,
		 "one above what waits is not: %s (%u, %u)", strerror(rc), attr.max_wr, attr.srq_limit);
	vt_drain_events(&dev);
	ibv_destroy_srq(srq);
}

static void large_table(void *arg)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = *(uint32_t *)arg };
	struct ibv_rwq_ind_table *table;
	struct ibv_wq none = {};
	size_t i, n = 1 << 22;

	attr.ind_tbl = calloc(n, sizeof(*attr.ind_tbl));
	for (i = 0; i < n; i++)
		attr.ind_tbl[i] = &none;
	errno = 0;
	table = ibv_create_rwq_ind_table(dev.ctx, &attr);
	vt_check(!table && errno == EINVAL, "a table of 2^%u work queues is refused: %s", attr.log_ind_tbl_size,
		 table ? "done" : strerror(errno));
	free(attr.ind_tbl);
}

static void large_tables(void)
{
	uint32_t logs[] = { SROCE_MAX_LOG_IND_TABLE + 1, 22, 31, 32, UINT32_MAX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(logs); i++)
		vt_in_child("a table of work queues", large_table, &logs[i]);
}

/* --- an imported domain that goes before what is in it ------------------------------------------ */

/* Who frees memory gets the next piece of that size; 16 to 256 bytes are all that there are here */
#define SIZES 16
#define PIECES 4

static void fill(uint8_t *pieces[SIZES][PIECES])
{
	size_t i, j;

	for (i = 0; i < SIZES; i++)
		for (j = 0; j < PIECES; j++)
			pieces[i][j] = memset(malloc(16 * (i + 1)), 0x5a, 16 * (i + 1));
}

static size_t changed(uint8_t *pieces[SIZES][PIECES])
{
	size_t i, j, k, n = 0;

	for (i = 0; i < SIZES; i++)
		for (j = 0; j < PIECES; j++) {
			for (k = 0; k < 16 * (i + 1); k++)
				n += pieces[i][j][k] != 0x5a;
			free(pieces[i][j]);
		}
	return n;
}

static void domain_first(const char *what, bool parent)
{
	struct ibv_pd *pd = ibv_import_pd(dev.ctx, dev.pd->handle);
	struct ibv_parent_domain_init_attr attr = { .pd = pd };
	struct ibv_pd *above = pd && parent ? ibv_alloc_parent_domain(dev.ctx, &attr) : NULL;
	struct ibv_mr *mr = pd && !parent ? ibv_alloc_null_mr(pd) : NULL;
	uint8_t *pieces[SIZES][PIECES];

	if (!above && !mr)
		vt_die(VT_WRONG, "WRONG: %s of an imported domain: %s", what, strerror(errno));
	ibv_unimport_pd(pd);
	fill(pieces);
	vt_check(parent ? !ibv_dealloc_pd(above) : !ibv_dereg_mr(mr), "%s of an imported domain that is gone goes", what);
	vt_check(!changed(pieces), "%s: it writes to no memory that was freed", what);
}

static void imported(void)
{
	struct ibv_pd *pd = ibv_import_pd(dev.ctx, dev.pd->handle);

	vt_check(pd, "a domain is imported");
	if (pd)
		ibv_unimport_pd(pd);
	domain_first("a null region", false);
	domain_first("a parent domain", true);
}

/*
 * What a queue pair can do is what it was asked for. Of FLUSH and ATOMIC WRITE librpma finds that out by looking for the
 * functions, and makes another request of a FLUSH for which there is none.
 */
static void has_builders(const char *what, uint64_t flags, bool has)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC, .send_cq = v.cq, .recv_cq = v.cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = dev.pd, .send_ops_flags = flags,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev.ctx, &init);
	struct ibv_qp_ex *ex;

	if (!qp)
		vt_die(VT_SETUP, "create qp: %s", strerror(errno));
	ex = ibv_qp_to_qp_ex(qp);
	vt_check(ex && ex->wr_rdma_write, "%s: a function for WRITE", what);
	vt_check(ex && !ex->wr_atomic_write == !has, "%s: %s function for ATOMIC WRITE", what, has ? "a" : "no");
#ifdef HAVE_IBV_WR_FLUSH
	vt_check(ex && !ex->wr_flush == !has, "%s: %s function for FLUSH", what, has ? "a" : "no");
#endif
	ibv_destroy_qp(qp);
}

static void builders(void)
{
	uint64_t flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE;

#ifdef HAVE_IBV_WR_FLUSH
	flags |= IBV_QP_EX_WITH_FLUSH;
#endif
	v.cq = vt_create_cq(&dev, 4);
	has_builders("a queue pair that asks for WRITE", IBV_QP_EX_WITH_RDMA_WRITE, false);
	has_builders("a queue pair that asks for all of them", flags, true);
	ibv_destroy_cq(v.cq);
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
	struct vt_dev devs[2];

	page = sysconf(_SC_PAGESIZE);
	vt_open_hosts(argc, argv, devs, NULL);
	dev = devs[0];
	sigaction(SIGSEGV, &act, NULL);
	inline_lists();
	completions();
	builders();
	srq_as_a_whole();
	srq_limit_replaced();
	large_tables();
	imported();
	destroyed_meanwhile();
	tagged_destroyed_meanwhile();
	vt_close(&dev);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
