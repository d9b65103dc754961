// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ops: what verify does not do, between two processes whose devices need not be
 * alike: unreliable connections, shared receive queues, memory windows, ATOMIC
 * WRITE and multicast. Every byte and every completion is checked, on both sides.
 *
 *	ops -d DEVICE -i IP -g GROUP [-o TEXT]         answers
 *	ops -d DEVICE -i IP -g GROUP [-o TEXT] HOST    asks, and prints the results
 *
 * -o: only cases with this in their names (on both sides alike).
 *
 * Both go through the same table of cases (at the end) and meet after each
 * step, where either hears whether the other is content. Environment: DRIVER=rxe
 * where the device is of rdma_rxe, SLOW as in lib.sh.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vt.h"

#define PORT 18620
#define ROOM (512 * 1024)
#define DEPTH 64
#define MAX_QPS 2
#define BLANK 0xa5

/* where in memory: messages at its start, the message that follows a WRITE at its end, windows in the middle */
#define MARK (ROOM - 64)
#define MARK_LEN 8
#define OPEN 5000
#define OPEN_LEN 20000

struct test {
	const char *name;
	bool (*run)(const struct test *t);
	enum ibv_wr_opcode opcode;
	enum ibv_mw_type window;
	enum ibv_qp_type type;
	bool srq;
	/* what rdma_rxe is known to do otherwise when it answers */
	const char *rxe;
};

/* told to the other side at each step */
struct word {
	uint32_t ok, value;
	char why[160];
};

struct hello {
	uint32_t qpn[MAX_QPS];
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey;
	uint32_t rxe;
};

static struct vt_dev dev;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *mr;
static uint8_t *mem, want[ROOM];
static struct hello peer;
static struct word mine, theirs;
static bool asks;
static int ctl;
static union ibv_gid group;

/* of the case at hand */
static struct ibv_qp *qps[MAX_QPS];
static struct ibv_srq *srq;
static struct ibv_mw *mw;

/* --- the other side ---------------------------------------------------------------- */

/* the reason why this side is not content; false, so that it can be returned */
static bool no(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(mine.why, sizeof(mine.why), fmt, ap);
	va_end(ap);
	return false;
}

/* wait for the other side; are both content? @value: something for it to know, which is then in theirs.value */
static bool tell(bool ok, uint32_t value)
{
	mine.ok = ok;
	mine.value = value;
	vt_ctl_swap(ctl, &mine, &theirs, sizeof(mine));
	return mine.ok && theirs.ok;
}

static bool meet(bool ok)
{
	return tell(ok, 0);
}

/* --- objects ------------------------------------------------------------------------ */

static void forget(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

/* the window first: rdma_rxe does not free a queue pair that still has one */
static void stop(void)
{
	int i, rc = 0;

	if (mw)
		rc = ibv_dealloc_mw(mw);
	mw = NULL;
	for (i = 0; i < MAX_QPS; i++) {
		if (qps[i])
			rc |= ibv_destroy_qp(qps[i]);
		qps[i] = NULL;
	}
	if (srq)
		rc |= ibv_destroy_srq(srq);
	srq = NULL;
	if (rc)
		vt_die(VT_WRONG, "tear-down: %s", strerror(rc));
	forget(send_cq);
	forget(recv_cq);
}

static uint64_t ops_of(enum ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type != IBV_QPT_UD)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (type == IBV_QPT_RC)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE |
		       IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
	return ops;
}

static struct ibv_qp *qp_with_ops(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.srq = srq,
		.qp_type = type,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = 8 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev.pd,
		.send_ops_flags = ops_of(type),
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev.ctx, &init);

	if (!qp)
		vt_die(VT_SETUP, "create qp: %s", strerror(errno));
	if (vt_to_init(qp, VT_REMOTE_ACCESS))
		vt_die(VT_SETUP, "qp to INIT: %s", strerror(errno));
	return qp;
}

static void connect_qp(int i, enum ibv_mtu mtu)
{
	struct vt_conn c = {
		.mtu = mtu, .rd_atomic = 8, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 18,
		.sq_psn = 0xfffff0,
		.peer = { .qpn = peer.qpn[i], .psn = 0xfffff0, .gid = peer.gid },
	};

	if (vt_to_rtr(qps[i], &dev, &c) || vt_to_rts(qps[i], &c))
		vt_die(VT_SETUP, "connect: %s", strerror(errno));
}

/* new queue pairs, connected; with @shared, two that receive from one queue */
static void fresh(enum ibv_qp_type type, enum ibv_mtu mtu, bool shared)
{
	struct hello me = { .gid = dev.gid, .addr = (uintptr_t)mem, .rkey = mr->rkey, .rxe = vt_is_rxe() };
	int i, n = shared ? MAX_QPS : 1;

	stop();
	if (shared)
		srq = vt_create_srq(&dev, DEPTH, 1);
	for (i = 0; i < n; i++) {
		qps[i] = qp_with_ops(type);
		me.qpn[i] = qps[i]->qp_num;
	}
	vt_ctl_swap(ctl, &me, &peer, sizeof(me));
	for (i = 0; i < n; i++)
		connect_qp(i, mtu);
	memset(mem, BLANK, ROOM);
	meet(true);
}

/* --- requests and completions --------------------------------------------------------- */

struct place {
	uint64_t addr;
	uint32_t key;
};

/* in the other side's memory */
static struct place there(uint32_t offset)
{
	return (struct place){ peer.addr + offset, peer.rkey };
}

static struct place through(uint32_t key, uint32_t offset)
{
	return (struct place){ peer.addr + offset, key };
}

struct request {
	enum ibv_wr_opcode opcode;
	/* our memory */
	uint32_t offset, len;
	struct place to;
	/* immediate, or the key to invalidate */
	uint32_t imm;
	uint64_t operand, swap;
	struct ibv_ah *ah;
};

static bool post(int i, const struct request *r)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(qps[i]);
	int rc;

	ibv_wr_start(qp);
	qp->wr_id = r->imm;
	qp->wr_flags = IBV_SEND_SIGNALED;
	switch (r->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, htonl(r->imm));
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, r->imm);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, r->to.key, r->to.addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, r->to.key, r->to.addr, htonl(r->imm));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, r->to.key, r->to.addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, r->to.key, r->to.addr, r->operand, r->swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, r->to.key, r->to.addr, r->operand);
		break;
	case IBV_WR_ATOMIC_WRITE:
		ibv_wr_atomic_write(qp, r->to.key, r->to.addr, mem + r->offset);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, r->imm);
		break;
	default:
		vt_die(VT_SETUP, "no request %d", r->opcode);
	}
	if (r->ah)
		ibv_wr_set_ud_addr(qp, r->ah, 0xffffff, VT_QKEY);
	if (r->len)
		ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)mem + r->offset, r->len);
	rc = ibv_wr_complete(qp);
	return !rc || no("post: %s", strerror(rc));
}

static void receive(uint64_t id, uint32_t offset, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)mem + offset, len, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = len > 0 };

	if (srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qps[0], &wr, &bad))
		vt_die(VT_SETUP, "post recv: %s", strerror(errno));
}

static double slow(double seconds)
{
	const char *factor = getenv("SLOW");

	return seconds * (factor ? max(1.0, atof(factor)) : 1);
}

static bool poll_for(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	double end = vt_now() + slow(seconds);

	do {
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return true;
		usleep(100);
	} while (vt_now() < end);
	return false;
}

/* the next request to complete does so with @status */
static bool completes_with(enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	if (!poll_for(send_cq, &wc, 15))
		return no("no completion");
	if (wc.status != status)
		return no("completed with %s, not %s", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	return status || wc.opcode == opcode || no("completed as opcode %d, not %d", wc.opcode, opcode);
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE: return IBV_WC_ATOMIC_WRITE;
	case IBV_WR_LOCAL_INV: return IBV_WC_LOCAL_INV;
	default: return IBV_WC_SEND;
	}
}

static bool done(const struct request *r)
{
	return post(0, r) && completes_with(IBV_WC_SUCCESS, wc_opcode(r->opcode));
}

/* refused by the other side */
static bool refused(const struct request *r, enum ibv_wc_status status)
{
	return post(0, r) && completes_with(status, 0);
}

/* after a request that was refused; the state follows the completion at once, or soon */
static bool in_error(void)
{
	double end = vt_now() + slow(5);

	while (vt_state(qps[0]) != IBV_QPS_ERR)
		if (vt_now() > end)
			return no("state %s, not ERR", vt_state_name(vt_state(qps[0])));
	return true;
}

/* all of our memory is blank but for what is in @want */
static void wanted_blank(void)
{
	memset(want, BLANK, ROOM);
}

static bool as_wanted(void)
{
	uint32_t at;

	for (at = 0; at < ROOM; at++)
		if (mem[at] != want[at])
			return no("byte %u is %02x, not %02x", at, mem[at], want[at]);
	return true;
}

/* a receive completion of the message that says so itself */
static bool received(const struct ibv_wc *wc, enum ibv_wr_opcode opcode, uint32_t qpn, uint32_t len, uint32_t imm)
{
	bool write = opcode == IBV_WR_RDMA_WRITE_WITH_IMM, has_imm = write || opcode == IBV_WR_SEND_WITH_IMM;

	if (wc->status)
		return no("received with %s", ibv_wc_status_str(wc->status));
	if (wc->opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return no("received as opcode %d", wc->opcode);
	if (wc->qp_num != qpn || wc->byte_len != len)
		return no("received by %u, not %u; %u bytes, not %u", wc->qp_num, qpn, wc->byte_len, len);
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != has_imm)
		return no("received with flags %#x", wc->wc_flags);
	return !has_imm || ntohl(wc->imm_data) == imm || no("immediate %#x, not %#x", ntohl(wc->imm_data), imm);
}

/* --- messages ---------------------------------------------------------------------------- */

/* nobody hears of a WRITE: behind it comes a message that says so */
static bool send_message(int i, enum ibv_wr_opcode opcode, uint32_t len, uint32_t key)
{
	struct request r = { .opcode = opcode, .len = len, .to = there(0), .imm = key };
	struct request mark = { .opcode = IBV_WR_SEND, .offset = MARK, .len = MARK_LEN };

	vt_pattern(mem, key, 0, len);
	vt_pattern(mem + MARK, key, 0, MARK_LEN);
	return post(i, &r) && completes_with(IBV_WC_SUCCESS, wc_opcode(opcode)) &&
	       (opcode != IBV_WR_RDMA_WRITE || (post(i, &mark) && completes_with(IBV_WC_SUCCESS, IBV_WC_SEND)));
}

static void expect_message(enum ibv_wr_opcode opcode, uint32_t len, uint32_t key)
{
	memset(mem, BLANK, ROOM);
	wanted_blank();
	vt_pattern(want, key, 0, len);
	if (opcode == IBV_WR_RDMA_WRITE) {
		vt_pattern(want + MARK, key, 0, MARK_LEN);
		receive(key, MARK, MARK_LEN);
	} else {
		receive(key, 0, opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : len);
	}
}

static bool take_message(int i, enum ibv_wr_opcode opcode, uint32_t len, uint32_t key)
{
	struct ibv_wc wc;

	if (!poll_for(recv_cq, &wc, 15))
		return no("%u bytes: nothing received", len);
	if (wc.wr_id != key)
		return no("receive %lu, not %u", (unsigned long)wc.wr_id, key);
	if (opcode == IBV_WR_RDMA_WRITE)
		len = MARK_LEN;
	return received(&wc, opcode, qps[i]->qp_num, len, key) && as_wanted();
}

static bool messages(const struct test *t)
{
	static const uint32_t sizes[] = { 0, 1, 1023, 1024, 1025, 4096, 4097, 65536, 300001 };
	static const enum ibv_mtu mtus[] = { IBV_MTU_1024, IBV_MTU_4096 };
	unsigned int m, k;

	for (m = 0; m < ARRAY_SIZE(mtus); m++) {
		fresh(t->type, mtus[m], t->srq);
		for (k = 0; k < ARRAY_SIZE(sizes); k++) {
			int i = t->srq ? k % MAX_QPS : 0;
			uint32_t key = 100 * m + k + 1;

			if (!asks)
				expect_message(t->opcode, sizes[k], key);
			meet(true);
			if (!meet(asks ? send_message(i, t->opcode, sizes[k], key) :
					 take_message(i, t->opcode, sizes[k], key)))
				return false;
		}
	}
	return true;
}

/* --- shared receive queues ------------------------------------------------------------------ */

static uint32_t burst_len(uint32_t number)
{
	return 1 + number * 61 % 4096;
}

static bool send_burst(void)
{
	struct request r = { .opcode = IBV_WR_SEND_WITH_IMM };
	bool ok = true;

	for (r.imm = 0; ok && r.imm < DEPTH; r.imm++) {
		r.offset = r.imm * 4096;
		r.len = burst_len(r.imm);
		vt_pattern(mem + r.offset, r.imm, 0, r.len);
		ok = post(r.imm % MAX_QPS, &r);
	}
	for (r.imm = 0; ok && r.imm < DEPTH; r.imm++)
		ok = completes_with(IBV_WC_SUCCESS, IBV_WC_SEND);
	return ok;
}

/* those of each queue pair in the order in which they were sent; each takes a receive of its own */
static bool take_burst(void)
{
	uint32_t i, q, number, next[MAX_QPS] = { 0, 1 };
	bool taken[DEPTH] = {};
	struct ibv_wc wc;

	wanted_blank();
	for (i = 0; i < DEPTH; i++) {
		if (!poll_for(recv_cq, &wc, 15))
			return no("%u received", i);
		if (wc.wr_id >= DEPTH || taken[wc.wr_id])
			return no("receive %lu twice", (unsigned long)wc.wr_id);
		taken[wc.wr_id] = true;
		q = wc.qp_num != qps[0]->qp_num;
		number = next[q];
		next[q] += MAX_QPS;
		if (!received(&wc, IBV_WR_SEND_WITH_IMM, qps[q]->qp_num, burst_len(number), number))
			return false;
		vt_pattern(want + wc.wr_id * 4096, number, 0, burst_len(number));
	}
	return as_wanted();
}

static bool srq_burst(const struct test *t)
{
	uint32_t i;

	fresh(IBV_QPT_RC, IBV_MTU_1024, true);
	for (i = 0; !asks && i < DEPTH; i++)
		receive(i, i * 4096, 4096);
	meet(true);
	return meet(asks ? send_burst() : take_burst());
}

static bool srq_late(const struct test *t)
{
	fresh(IBV_QPT_RC, IBV_MTU_1024, true);
	meet(true);
	if (asks)
		return meet(send_message(0, IBV_WR_SEND, 5000, 9));
	usleep(20000);
	expect_message(IBV_WR_SEND, 5000, 9);
	return meet(take_message(0, IBV_WR_SEND, 5000, 9));
}

/* --- memory windows ---------------------------------------------------------------------------- */

static bool bind_window(uint32_t offset, uint32_t len, unsigned int access)
{
	struct ibv_mw_bind_info info = {
		.mr = mr, .addr = (uintptr_t)mem + offset, .length = len, .mw_access_flags = access,
	};
	struct ibv_mw_bind one = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(qps[0]);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	int rc;

	if (mw->type == IBV_MW_TYPE_1) {
		rc = ibv_bind_mw(qps[0], mw, &one);
	} else {
		ibv_wr_start(qp);
		qp->wr_id = 1;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_bind_mw(qp, mw, rkey, &info);
		rc = ibv_wr_complete(qp);
		mw->rkey = rkey;
	}
	if (rc)
		return no("post a bind: %s", strerror(rc));
	return completes_with(IBV_WC_SUCCESS, IBV_WC_BIND_MW);
}

/* the key is another one after each bind */
static bool tell_window(uint32_t offset, uint32_t len, unsigned int access)
{
	bool ok = bind_window(offset, len, access);

	return tell(ok, mw->rkey);
}

/* the other side's window over [OPEN, OPEN + OPEN_LEN) of its memory, as theirs.value for the one that asks */
static bool open_window(enum ibv_mw_type type, unsigned int access)
{
	fresh(IBV_QPT_RC, IBV_MTU_1024, false);
	if (asks)
		return meet(true);
	mw = ibv_alloc_mw(dev.pd, type);
	if (!mw)
		vt_die(VT_WRONG, "alloc mw: %s", strerror(errno));
	wanted_blank();
	return tell_window(OPEN, OPEN_LEN, access);
}

static bool read_back(uint32_t key)
{
	struct request r = { .opcode = IBV_WR_RDMA_READ, .len = 9000, .to = through(key, OPEN + 1000) };

	wanted_blank();
	vt_pattern(want, key, 1000, r.len);
	memset(mem, BLANK, ROOM);
	return done(&r) && as_wanted();
}

static bool add(uint32_t key, uint32_t offset, uint64_t operand, uint64_t old)
{
	struct request r = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .to = through(key, offset),
			     .operand = operand };
	uint64_t got;

	if (!done(&r))
		return false;
	memcpy(&got, mem, 8);
	return got == old || no("an atomic returned %#lx, not %#lx", (unsigned long)got, (unsigned long)old);
}

static bool window_access(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_RDMA_WRITE, .len = OPEN_LEN };
	uint64_t old;
	bool ok;

	if (!open_window(t->window, VT_REMOTE_ACCESS))
		return false;
	if (!asks) {
		vt_pattern(want + OPEN, mw->rkey, 0, OPEN_LEN);
		meet(true);
		if (!meet(as_wanted()))
			return false;
		meet(true);
		memcpy(&old, want + OPEN + 8, 8);
		old += 77;
		memcpy(want + OPEN + 8, &old, 8);
		return meet(as_wanted());
	}
	r.to = through(theirs.value, OPEN);
	vt_pattern(mem, r.to.key, 0, OPEN_LEN);
	ok = done(&r);
	meet(true);
	if (!meet(ok))
		return false;
	vt_pattern(&old, r.to.key, 8, 8);
	ok = read_back(r.to.key) && add(r.to.key, OPEN + 8, 77, old);
	meet(true);
	return meet(ok);
}

/* the last step of those that end with an error: the one that asks sees it, the other side's memory does not */
static bool ends_refused(struct request *r, enum ibv_wc_status status)
{
	if (!meet(!asks || refused(r, status)))
		return false;
	return meet(in_error() && (asks || as_wanted()));
}

static bool window_bounds(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_RDMA_WRITE, .len = OPEN_LEN + 1 };

	if (!open_window(t->window, VT_REMOTE_ACCESS))
		return false;
	r.to = through(theirs.value, OPEN);
	return ends_refused(&r, IBV_WC_REM_ACCESS_ERR);
}

static bool window_rights(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_RDMA_READ, .len = 8 };

	if (!open_window(t->window, IBV_ACCESS_REMOTE_READ))
		return false;
	r.to = through(theirs.value, OPEN);
	if (!meet(!asks || done(&r)))
		return false;
	r.opcode = IBV_WR_RDMA_WRITE;
	return ends_refused(&r, IBV_WC_REM_ACCESS_ERR);
}

/* The window moves: its new key is good for the new place, and the key before it for nothing */
static bool moved_window(uint32_t old)
{
	struct request r = { .opcode = IBV_WR_RDMA_WRITE, .len = 1000 };

	if (!(asks ? meet(true) : tell_window(2 * OPEN, 1000, VT_REMOTE_ACCESS)))
		return false;
	if (asks) {
		vt_pattern(mem, 5, 0, r.len);
		r.to = through(theirs.value, 2 * OPEN);
	}
	if (!meet(!asks || done(&r)))
		return false;
	vt_pattern(want + 2 * OPEN, 5, 0, r.len);
	r.to = through(old, OPEN);
	return ends_refused(&r, IBV_WC_REM_ACCESS_ERR);
}

static bool window_moves(const struct test *t)
{
	return open_window(t->window, VT_REMOTE_ACCESS) && moved_window(theirs.value);
}

static bool told_of_invalidation(void)
{
	/* rxe hands out the kernel's number of this flag (ib_verbs.h), which is another one */
	unsigned int flag = vt_is_rxe() ? 1 << 2 : IBV_WC_WITH_INV;
	struct ibv_wc wc;

	if (!poll_for(recv_cq, &wc, 15))
		return no("nothing received");
	if (!(wc.wc_flags & flag) || wc.invalidated_rkey != mw->rkey)
		return no("flags %#x, key %#x, not %#x", wc.wc_flags, wc.invalidated_rkey, mw->rkey);
	return received(&wc, IBV_WR_SEND, qps[0]->qp_num, 100, 0) && as_wanted();
}

static bool window_remote_inv(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_SEND_WITH_INV, .len = 100 };

	if (!open_window(t->window, VT_REMOTE_ACCESS))
		return false;
	r.imm = theirs.value;
	if (asks) {
		vt_pattern(mem, 3, 0, r.len);
	} else {
		vt_pattern(want, 3, 0, r.len);
		receive(1, 0, r.len);
	}
	meet(true);
	if (!meet(asks ? done(&r) : told_of_invalidation()))
		return false;
	return moved_window(r.imm);
}

static bool window_local_inv(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_RDMA_READ, .len = 8 };
	struct request inv = { .opcode = IBV_WR_LOCAL_INV };
	uint32_t key;

	if (!open_window(t->window, VT_REMOTE_ACCESS))
		return false;
	key = theirs.value;
	if (!asks)
		inv.imm = mw->rkey;
	if (!meet(asks || done(&inv)))
		return false;
	r.to = through(key, OPEN);
	return ends_refused(&r, IBV_WC_REM_ACCESS_ERR);
}

/* --- ATOMIC WRITE ---------------------------------------------------------------------------------- */

#define PLACES 64

/* every third word of the other side's memory */
static uint32_t place_of(uint32_t i)
{
	return 24 * i + 8;
}

static bool atomic_writes(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_ATOMIC_WRITE };
	bool ok = true;
	uint32_t i;

	fresh(IBV_QPT_RC, IBV_MTU_1024, false);
	wanted_blank();
	for (i = 0; i < PLACES; i++) {
		vt_pattern(mem + 8 * i, i, 0, asks ? 8 : 0);
		vt_pattern(want + place_of(i), i, 0, 8);
	}
	for (i = 0; ok && asks && i < PLACES; i++) {
		r.offset = 8 * i;
		r.to = there(place_of(i));
		ok = post(0, &r);
	}
	for (i = 0; ok && asks && i < PLACES; i++)
		ok = completes_with(IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
	meet(true);
	return meet(ok && (asks || as_wanted()));
}

/* write, add to it, swap it, read it: each finds what the one before has left */
static bool chain(uint32_t place, uint64_t value)
{
	struct request w = { .opcode = IBV_WR_ATOMIC_WRITE, .offset = 64, .to = there(place) };
	struct request add = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .offset = 0, .len = 8, .to = there(place),
			       .operand = 3 };
	struct request cas = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .offset = 8, .len = 8, .to = there(place),
			       .operand = value + 3, .swap = ~value };
	struct request get = { .opcode = IBV_WR_RDMA_READ, .offset = 16, .len = 8, .to = there(place) };
	uint64_t got[3];

	memcpy(mem + 64, &value, 8);
	if (!post(0, &w) || !post(0, &add) || !post(0, &cas) || !post(0, &get) ||
	    !completes_with(IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE) ||
	    !completes_with(IBV_WC_SUCCESS, IBV_WC_FETCH_ADD) ||
	    !completes_with(IBV_WC_SUCCESS, IBV_WC_COMP_SWAP) ||
	    !completes_with(IBV_WC_SUCCESS, IBV_WC_RDMA_READ))
		return false;
	memcpy(got, mem, sizeof(got));
	if (got[0] != value || got[1] != value + 3 || got[2] != ~value)
		return no("after %#lx: %#lx %#lx %#lx", (unsigned long)value, (unsigned long)got[0],
			  (unsigned long)got[1], (unsigned long)got[2]);
	return true;
}

static bool atomic_chain(const struct test *t)
{
	uint64_t value, last;
	bool ok = true;
	uint32_t i;

	fresh(IBV_QPT_RC, IBV_MTU_1024, false);
	wanted_blank();
	for (i = 0; i < PLACES; i++) {
		value = vt_mix(i);
		last = ~value;
		memcpy(want + place_of(i), &last, 8);
		ok = ok && (!asks || chain(place_of(i), value));
	}
	meet(true);
	return meet(ok && (asks || as_wanted()));
}

static bool atomic_unaligned(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_ATOMIC_WRITE };

	fresh(IBV_QPT_RC, IBV_MTU_1024, false);
	wanted_blank();
	r.to = there(4);
	return ends_refused(&r, IBV_WC_REM_INV_REQ_ERR);
}

/* to memory that may only be read */
static bool atomic_rights(const struct test *t)
{
	struct request r = { .opcode = IBV_WR_ATOMIC_WRITE };
	struct ibv_mr *readable = ibv_reg_mr(dev.pd, mem, ROOM, IBV_ACCESS_REMOTE_READ);
	bool ok;

	if (!readable)
		vt_die(VT_SETUP, "reg mr: %s", strerror(errno));
	fresh(IBV_QPT_RC, IBV_MTU_1024, false);
	wanted_blank();
	tell(true, readable->rkey);
	r.to = through(theirs.value, 8);
	ok = ends_refused(&r, IBV_WC_REM_ACCESS_ERR);
	ibv_dereg_mr(readable);
	return ok;
}

/* --- multicast ---------------------------------------------------------------------------------------- */

#define GRH 40
#define DATAGRAMS 20

static uint32_t datagram_len(uint32_t number)
{
	return number * 53 % 1000;
}

/*
 * rdma_rxe tells the netdev, but not the network: with it, that is for rdma_cm to do. Without rdma_cm the host must
 * become a member by another way, or its stack drops what comes. Until the socket is closed.
 */
static int join_for_rxe(void)
{
	const struct in6_addr *addr = (const struct in6_addr *)group.raw;
	struct ibv_gid_entry e;
	struct group_req req = {};
	bool v4 = IN6_IS_ADDR_V4MAPPED(addr);
	int fd;

	if (!vt_is_rxe())
		return -1;
	fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
	if (v4)
		memcpy(&req.gr_group, &(struct sockaddr_in){ .sin_family = AF_INET,
			.sin_addr.s_addr = addr->s6_addr32[3] }, sizeof(struct sockaddr_in));
	else
		memcpy(&req.gr_group, &(struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = *addr },
		       sizeof(struct sockaddr_in6));
	if (fd < 0 || ibv_query_gid_ex(dev.ctx, 1, dev.gid_index, &e, 0))
		vt_die(VT_SETUP, "socket: %s", strerror(errno));
	req.gr_interface = e.ndev_ifindex;
	if (setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &req, sizeof(req)))
		vt_die(VT_SETUP, "join: %s", strerror(errno));
	return fd;
}

static bool send_datagram(struct ibv_ah *ah, uint32_t number)
{
	struct request r = { .opcode = IBV_WR_SEND_WITH_IMM, .len = datagram_len(number), .imm = number, .ah = ah };

	vt_pattern(mem, number, 0, r.len);
	return done(&r);
}

enum { LOST, CAME, WRONG };

/* One that comes twice, because it was sent twice, is let pass. */
static uint32_t take_datagram(uint32_t number, double seconds)
{
	uint32_t len = datagram_len(number);
	struct ibv_wc wc;

	do {
		if (!poll_for(recv_cq, &wc, seconds))
			return LOST;
		receive(wc.wr_id, wc.wr_id * 4096, 4096);
	} while (!wc.status && ntohl(wc.imm_data) < number);
	vt_pattern(want, number, 0, len);
	if (!received(&wc, IBV_WR_SEND_WITH_IMM, qps[0]->qp_num, len + GRH, number))
		return WRONG;
	if (!(wc.wc_flags & IBV_WC_GRH) || wc.src_qp != peer.qpn[0])
		no("flags %#x, from %u, not %u", wc.wc_flags, wc.src_qp, peer.qpn[0]);
	else if (memcmp(mem + wc.wr_id * 4096 + GRH, want, len))
		no("datagram %u of %u bytes: wrong data", number, len);
	else
		return CAME;
	return WRONG;
}

/* A datagram may be lost, on a machine that is busy; three in a row may not */
static bool one_datagram(struct ibv_ah *ah, uint32_t number)
{
	uint32_t came;
	int tries;

	for (tries = 0; tries < 3; tries++) {
		came = asks ? LOST : take_datagram(number, 1);
		if (!tell(asks ? send_datagram(ah, number) : came != WRONG, came))
			return false;
		if (max(came, theirs.value) == CAME)
			return true;
		if (asks)
			printf("# datagram %u was lost\n", number);
	}
	return no("datagram %u was lost %d times", number, tries);
}

static bool multicast(const struct test *t)
{
	struct ibv_ah *ah = NULL;
	bool ok = true;
	uint32_t i;
	int fd = -1;

	fresh(IBV_QPT_UD, 0, false);
	if (asks) {
		ah = vt_ah(&dev, &group);
		ok = ah || no("address handle: %s", strerror(errno));
	} else {
		for (i = 0; i < DEPTH; i++)
			receive(i, i * 4096, 4096);
		fd = join_for_rxe();
		ok = !ibv_attach_mcast(qps[0], &group, 0) || no("attach: %s", strerror(errno));
	}
	ok = meet(ok);
	for (i = 1; ok && i <= DATAGRAMS; i++)
		ok = one_datagram(ah, i);
	/* not a member any more */
	if (!asks && ibv_detach_mcast(qps[0], &group, 0))
		ok = no("detach: %s", strerror(errno));
	if (meet(ok)) {
		if (asks)
			ok = send_datagram(ah, i);
		else if (take_datagram(i, 0.2) != LOST)
			ok = no("a datagram came after the detach");
		ok = meet(ok);
	}
	if (fd >= 0)
		close(fd);
	if (ah)
		ibv_destroy_ah(ah);
	return ok;
}

/* --- all of it --------------------------------------------------------------------------------------------- */

static const struct test tests[] = {
	{ "UC: SEND, 0 to 300001 bytes", messages, .type = IBV_QPT_UC, .opcode = IBV_WR_SEND },
	{ "UC: SEND with immediate", messages, .type = IBV_QPT_UC, .opcode = IBV_WR_SEND_WITH_IMM },
	{ "UC: WRITE", messages, .type = IBV_QPT_UC, .opcode = IBV_WR_RDMA_WRITE },
	{ "UC: WRITE with immediate", messages, .type = IBV_QPT_UC, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "SRQ: SEND to two queue pairs", messages, .type = IBV_QPT_RC, .srq = true, .opcode = IBV_WR_SEND },
	{ "SRQ: SEND with immediate", messages, .type = IBV_QPT_RC, .srq = true, .opcode = IBV_WR_SEND_WITH_IMM },
	{ "SRQ: WRITE with immediate", messages, .type = IBV_QPT_RC, .srq = true,
	  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "SRQ: 64 messages at once", srq_burst },
	{ "SRQ: a SEND before there is a receive", srq_late },
	{ "window type 1: WRITE, READ and FETCH_ADD through its key", window_access, .window = IBV_MW_TYPE_1 },
	{ "window type 1: a byte beyond its bounds", window_bounds, .window = IBV_MW_TYPE_1,
	  .rxe = "rdma_rxe looks at the region's bounds" },
	{ "window type 1: a WRITE without the right", window_rights, .window = IBV_MW_TYPE_1 },
	{ "window type 1: bound again", window_moves, .window = IBV_MW_TYPE_1 },
	{ "window type 2: WRITE, READ and FETCH_ADD through its key", window_access, .window = IBV_MW_TYPE_2 },
	{ "window type 2: a byte beyond its bounds", window_bounds, .window = IBV_MW_TYPE_2,
	  .rxe = "rdma_rxe looks at the region's bounds" },
	{ "window type 2: a WRITE without the right", window_rights, .window = IBV_MW_TYPE_2 },
	{ "window type 2: remote invalidate, and bound again", window_remote_inv, .window = IBV_MW_TYPE_2 },
	{ "window type 2: after a local invalidate", window_local_inv, .window = IBV_MW_TYPE_2 },
	{ "ATOMIC WRITE: 64 words", atomic_writes },
	{ "ATOMIC WRITE, FETCH_ADD, CMP_SWAP and READ of one word", atomic_chain },
	{ "ATOMIC WRITE: half a word off", atomic_unaligned },
	{ "ATOMIC WRITE without the right", atomic_rights },
	{ "multicast: 20 datagrams, none after the detach", multicast },
};

static void run(const struct test *t)
{
	bool ok;

	mine.why[0] = '\0';
	ok = t->run(t);
	if (asks && !ok && t->rxe && peer.rxe) {
		printf("skip: %s [%s\n", t->name, t->rxe);
	} else if (asks) {
		vt_check(ok, "%s", t->name);
		if (!ok)
			printf("who asks: %s; who answers: %s\n", mine.why, theirs.why);
	}
	stop();
	meet(true);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL, *only = "";
	unsigned int i;
	int c;

	while ((c = getopt(argc, argv, "d:i:g:o:")) != -1) {
		if (c == 'd')
			device = optarg;
		else if (c == 'i')
			ip = optarg;
		else if (c == 'g')
			group = vt_gid_of_ip(optarg);
		else if (c == 'o')
			only = optarg;
		else
			vt_die(VT_SETUP, "see the top of ops.c");
	}
	asks = optind < argc;
	vt_open(&dev, device, ip, -1);
	ctl = asks ? vt_ctl_connect(argv[optind], PORT, slow(30)) : vt_ctl_accept(PORT, slow(30));
	send_cq = vt_create_cq(&dev, 4 * DEPTH);
	recv_cq = vt_create_cq(&dev, 4 * DEPTH);
	mr = vt_mr(&dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS | IBV_ACCESS_MW_BIND);
	mem = mr->addr;
	for (i = 0; i < ARRAY_SIZE(tests); i++)
		if (strstr(tests[i].name, only))
			run(&tests[i]);
	vt_mr_free(mr);
	if (ibv_destroy_cq(send_cq) || ibv_destroy_cq(recv_cq))
		vt_die(VT_WRONG, "destroy cq: %s", strerror(errno));
	vt_close(&dev);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
