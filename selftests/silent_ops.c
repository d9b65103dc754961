// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * silent_ops: every operation of every type of connected queue pair, each on a connection of its own: that it works
 * while the peer answers, how it ends when the peer is silent, and after how many timeouts, and that destroying does
 * not wait for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "silent.h"

#define WORD 8
#define ROOM 4096

/* rdma-core before 47 has no FLUSH */
#ifdef HAVE_IBV_WR_FLUSH
#define FLUSH IBV_QP_EX_WITH_FLUSH
#define FLUSH_ACCESS IBV_ACCESS_FLUSH_GLOBAL
#else
#define FLUSH 0
#define FLUSH_ACCESS 0
#endif

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS | FLUSH_ACCESS)

#define UNRELIABLE (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | \
		    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define RELIABLE (UNRELIABLE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE | FLUSH)

static const struct op {
	const char *name;
	uint64_t flag;
	/* bytes of our memory that it reads or writes */
	uint32_t len;
} ops[] = {
	{ "SEND", IBV_QP_EX_WITH_SEND, WORD },
	{ "SEND with immediate", IBV_QP_EX_WITH_SEND_WITH_IMM, WORD },
	{ "WRITE", IBV_QP_EX_WITH_RDMA_WRITE, WORD },
	{ "WRITE with immediate", IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, WORD },
	{ "READ", IBV_QP_EX_WITH_RDMA_READ, WORD },
	{ "CMP_SWAP", IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, WORD },
	{ "FETCH_ADD", IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, WORD },
	{ "ATOMIC WRITE", IBV_QP_EX_WITH_ATOMIC_WRITE, 0 },
	{ "FLUSH", FLUSH, 0 },
};

#define OPS ARRAY_SIZE(ops)

static const struct kind {
	const char *name;
	enum ibv_qp_type asker, answerer;
	uint64_t flags;
} kinds[] = {
	{ "RC", IBV_QPT_RC, IBV_QPT_RC, RELIABLE },
	{ "XRC", IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, RELIABLE },
	{ "UC", IBV_QPT_UC, IBV_QPT_UC, UNRELIABLE },
};

static bool is_xrc(const struct kind *k)
{
	return k->asker == IBV_QPT_XRC_SEND;
}

/* --- connections --------------------------------------------------------------------------------- */

/* one for each operation that the type has, and all receives in one queue */
static struct ibv_qp *asker[OPS], *answerer[OPS];
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static uint32_t srqn;
static struct ibv_mr *from, *to;

static void open_xrcd(void)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};

	xrcd = ibv_open_xrcd(b.dev->ctx, &init);
	if (!xrcd)
		vt_die(VT_SETUP, "open xrcd: %s", strerror(errno));
}

static void make_srq(const struct kind *k)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4 * OPS, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = is_xrc(k) ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = b.dev->pd,
	};

	if (is_xrc(k)) {
		open_xrcd();
		init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.xrcd = xrcd;
		init.cq = b.recv_cq;
	}
	srq = ibv_create_srq_ex(b.dev->ctx, &init);
	if (!srq || (is_xrc(k) && ibv_get_srq_num(srq, &srqn)))
		vt_die(VT_SETUP, "create srq: %s", strerror(errno));
}

static void post_receives(void)
{
	struct ibv_sge sge = { (uintptr_t)to->addr + ROOM / 2, WORD, to->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	unsigned int i;

	for (i = 0; i < OPS; i++)
		if (ibv_post_srq_recv(srq, &wr, &bad))
			vt_die(VT_SETUP, "post receive: %s", strerror(errno));
}

static struct ibv_qp *make_asker(const struct kind *k)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = k->asker,
		.send_cq = a.send_cq,
		.recv_cq = a.recv_cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = is_xrc(k) ? 0 : 1, .max_send_sge = 1,
			 .max_recv_sge = is_xrc(k) ? 0 : 1, .max_inline_data = WORD },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = a.dev->pd,
		.send_ops_flags = k->flags,
	};

	return ibv_create_qp_ex(a.dev->ctx, &init);
}

static struct ibv_qp *make_answerer(const struct kind *k)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = k->answerer,
		.comp_mask = is_xrc(k) ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
	};

	if (is_xrc(k)) {
		init.xrcd = xrcd;
	} else {
		init.pd = b.dev->pd;
		init.send_cq = b.send_cq;
		init.recv_cq = b.recv_cq;
		init.srq = srq;
		init.cap.max_send_wr = 1;
		init.cap.max_send_sge = 1;
	}
	return ibv_create_qp_ex(b.dev->ctx, &init);
}

static void connect_to(struct ibv_qp *qp, struct vt_dev *dev, struct ibv_qp *peer, struct vt_dev *peer_dev)
{
	struct vt_conn c = ends_how;

	c.peer = (struct vt_addr){ .qpn = peer->qp_num, .psn = 0xfffffe, .gid = peer_dev->gid };
	c.sq_psn = 0xfffffe;
	if (vt_bring_up(qp, dev, VT_REMOTE_ACCESS | FLUSH_ACCESS, &c))
		vt_die(VT_SETUP, "connect: %s", strerror(errno));
}

static void connect_all(const struct kind *k, uint8_t timeout, uint8_t retry_cnt)
{
	unsigned int i;

	ends_how.timeout = timeout;
	ends_how.retry_cnt = retry_cnt;
	from = vt_mr(a.dev, ROOM, ACCESS);
	to = vt_mr(b.dev, ROOM, ACCESS);
	make_srq(k);
	post_receives();
	for (i = 0; i < OPS; i++) {
		if (!(ops[i].flag & k->flags))
			continue;
		asker[i] = make_asker(k);
		answerer[i] = make_answerer(k);
		if (!asker[i] || !answerer[i])
			vt_die(VT_SETUP, "%s queue pair: %s", k->name, strerror(errno));
		connect_to(asker[i], a.dev, answerer[i], b.dev);
		connect_to(answerer[i], b.dev, asker[i], a.dev);
	}
}

static int destroy(struct ibv_qp **qp)
{
	int err = *qp ? ibv_destroy_qp(*qp) : 0;

	*qp = NULL;
	return err;
}

static bool destroy_all(void)
{
	struct ibv_wc wc;
	unsigned int i;
	int err = 0;

	vt_drain_events(a.dev);
	vt_drain_events(b.dev);
	for (i = 0; i < OPS; i++)
		err |= destroy(&asker[i]) | destroy(&answerer[i]);
	err |= ibv_destroy_srq(srq);
	if (xrcd)
		err |= ibv_close_xrcd(xrcd);
	xrcd = NULL;
	while (ibv_poll_cq(a.send_cq, 1, &wc) > 0 || ibv_poll_cq(b.recv_cq, 1, &wc) > 0)
		;
	vt_mr_free(from);
	vt_mr_free(to);
	return !err;
}

/* --- requests ------------------------------------------------------------------------------------ */

/* The word of the peer's memory that the operation is about; each has its own */
static uint64_t theirs(unsigned int i)
{
	return (uintptr_t)to->addr + i * WORD;
}

static void build(struct ibv_qp_ex *qp, unsigned int i)
{
	const uint64_t word = 1;

	switch (ops[i].flag) {
	case IBV_QP_EX_WITH_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_QP_EX_WITH_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, 1);
		break;
	case IBV_QP_EX_WITH_RDMA_WRITE:
		ibv_wr_rdma_write(qp, to->rkey, theirs(i));
		break;
	case IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, to->rkey, theirs(i), 1);
		break;
	case IBV_QP_EX_WITH_RDMA_READ:
		ibv_wr_rdma_read(qp, to->rkey, theirs(i));
		break;
	case IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, to->rkey, theirs(i), *(uint64_t *)(uintptr_t)theirs(i), 2);
		break;
	case IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, to->rkey, theirs(i), 1);
		break;
	case IBV_QP_EX_WITH_ATOMIC_WRITE:
		ibv_wr_atomic_write(qp, to->rkey, theirs(i), &word);
		break;
#ifdef HAVE_IBV_WR_FLUSH
	case IBV_QP_EX_WITH_FLUSH:
		ibv_wr_flush(qp, to->rkey, theirs(i), WORD, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		break;
#endif
	}
}

static void post(const struct kind *k, unsigned int i, uint64_t id)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(asker[i]);
	int err;

	ibv_wr_start(qp);
	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	build(qp, i);
	if (is_xrc(k))
		ibv_wr_set_xrc_srqn(qp, srqn);
	if (ops[i].len)
		ibv_wr_set_sge(qp, from->lkey, (uintptr_t)from->addr + i * WORD, ops[i].len);
	err = ibv_wr_complete(qp);
	if (err)
		vt_die(VT_WRONG, "WRONG: %s: %s: post: %s", k->name, ops[i].name, strerror(err));
}

/* The next completion is of @id; its status, or -1 for none or another one's */
static int completed(uint64_t id)
{
	struct ibv_wc wc;

	if (!poll_one(a.send_cq, &wc, 10 * slow) || wc.wr_id != id)
		return -1;
	return wc.status;
}

static const char *name_of(int status)
{
	return status < 0 ? "nothing" : ibv_wc_status_str(status);
}

static long timeouts(void)
{
	return vt_counter(a.dev, "local_ack_timeout_err");
}

/* --- what is shown --------------------------------------------------------------------------------- */

#define TIMEOUT 12
#define RETRIES 3

/* With time enough for any machine */
static void answered(const struct kind *k)
{
	unsigned int i;
	int status;

	network("SPEAK");
	connect_all(k, 16, 7);
	for (i = 0; i < OPS; i++) {
		if (!asker[i])
			continue;
		post(k, i, i);
		status = completed(i);
		vt_check(status == IBV_WC_SUCCESS, "%s: %s: while the peer answers: %s", k->name, ops[i].name,
			 name_of(status));
	}
	vt_check(destroy_all(), "%s: what has worked can be destroyed", k->name);
}

/*
 * One request and one behind it. How many timeouts it takes does not depend on how busy this machine is, and no
 * machine is early; how late it is has a wide limit.
 */
static void is_given_up(const struct kind *k, unsigned int i)
{
	long before = timeouts(), n;
	double expected = patience(TIMEOUT, RETRIES), start = vt_now(), took;
	int status, behind;

	post(k, i, 1);
	post(k, i, 2);
	status = completed(1);
	took = vt_now() - start;
	behind = completed(2);
	n = timeouts() - before;
	vt_check(status == IBV_WC_RETRY_EXC_ERR && took > 0.95 * expected && took < 10 * expected + 3 * slow,
		 "%s: %s: %s after %.3f s, expected after %.3f s", k->name, ops[i].name, name_of(status), took, expected);
	vt_check(n == RETRIES + 1, "%s: %s: %ld timeouts, expected %d", k->name, ops[i].name, n, RETRIES + 1);
	vt_check(behind == IBV_WC_WR_FLUSH_ERR && vt_state(asker[i]) == IBV_QPS_ERR,
		 "%s: %s: what is behind it: %s, the queue pair is in state %s", k->name, ops[i].name, name_of(behind),
		 vt_state_name(vt_state(asker[i])));
}

/* Nobody waits for an answer: that it has left is all that there is to tell */
static void is_lost(const struct kind *k, unsigned int i)
{
	int status;

	post(k, i, 1);
	status = completed(1);
	vt_check(status == IBV_WC_SUCCESS && vt_state(asker[i]) == IBV_QPS_RTS, "%s: %s: %s", k->name, ops[i].name,
		 name_of(status));
}

static void unanswered(const struct kind *k)
{
	static uint8_t ours[ROOM], others[ROOM];
	unsigned int i;

	network("SILENCE");
	connect_all(k, TIMEOUT, RETRIES);
	vt_pattern(from->addr, 1, 0, ROOM);
	vt_pattern(to->addr, 2, 0, ROOM);
	memcpy(ours, from->addr, ROOM);
	memcpy(others, to->addr, ROOM);
	for (i = 0; i < OPS; i++)
		if (asker[i] && k->asker == IBV_QPT_UC)
			is_lost(k, i);
		else if (asker[i])
			is_given_up(k, i);
	vt_check(!memcmp(ours, from->addr, ROOM) && !memcmp(others, to->addr, ROOM),
		 "%s: no byte has changed on either side", k->name);
	vt_check(destroy_all(), "%s: what has failed can be destroyed", k->name);
}

/* With a timeout of 0, so that whoever waits for the end waits for good */
static void destroyed(const struct kind *k)
{
	struct ibv_wc wc;
	unsigned int i;
	double start;
	bool ok;

	connect_all(k, 0, 7);
	for (i = 0; i < OPS; i++)
		if (asker[i])
			post(k, i, i);
	vt_check(!poll_one(a.send_cq, &wc, 0.3), "%s: without a timeout nothing ends", k->name);
	start = vt_now();
	ok = destroy_all();
	vt_check(ok && vt_now() - start < 5 * slow, "%s: one of each outstanding: destroyed, with their memory: %.3f s",
		 k->name, vt_now() - start);
}

void silent_ops(void)
{
	unsigned int i;

	ends_stop();
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		answered(&kinds[i]);
		unanswered(&kinds[i]);
	}
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].flags == RELIABLE)
			destroyed(&kinds[i]);
}
