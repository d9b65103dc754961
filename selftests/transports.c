// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * transports: unreliable connections, shared receive queues and extended
 * reliable connections: what arrives, what is dropped, and which completion,
 * event and state an error leaves; and that no queue leads into the kernel.
 *
 *	transports -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * Without -D both ends are on one device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "ends.h"

#define ROOM (1 << 20)
#define DEPTH 64

/* XRC: the domain on b's host, and the number of the queue that a's requests name */
static struct ibv_xrcd *xrcd;
static uint32_t remote_srqn;

/* --- ends -------------------------------------------------------------------------- */

/* the pair, and what b had for it */
static void unmake(void)
{
	ends_stop();
	if (b.srq && ibv_destroy_srq(b.srq))
		vt_die(VT_WRONG, "destroy srq: %s", strerror(errno));
	b.srq = NULL;
	if (xrcd && ibv_close_xrcd(xrcd))
		vt_die(VT_WRONG, "close xrcd: %s", strerror(errno));
	xrcd = NULL;
}

/* a fresh pair in RTS; b receives from a shared queue of that many entries, 0: from its own */
static void fresh(enum ibv_qp_type type, uint32_t srq_entries)
{
	unmake();
	if (srq_entries)
		b.srq = vt_create_srq(b.dev, srq_entries, 4);
	ends_fresh(type);
}

/* --- work --------------------------------------------------------------------------- */

static int try_recv(struct end *e, uint64_t id, uint32_t off, uint32_t len)
{
	return post_recv(e, id, (struct place){ (uintptr_t)e->mr->addr + off, e->mr->lkey }, len);
}

static void recv_into(struct end *e, uint64_t id, uint32_t off, uint32_t len)
{
	if (try_recv(e, id, off, len))
		vt_die(VT_SETUP, "post recv: %s", strerror(errno));
}

static struct ibv_send_wr request(struct ibv_sge *sge, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_send_wr wr = vt_request(sge, id, opcode);

	wr.imm_data = htonl(id);
	wr.wr.rdma.remote_addr = (uintptr_t)b.mr->addr;
	wr.wr.rdma.rkey = b.mr->rkey;
	wr.qp_type.xrc.remote_srqn = remote_srqn;
	*sge = (struct ibv_sge){ (uintptr_t)a.mr->addr, len, a.mr->lkey };
	vt_pattern(a.mr->addr, id, 0, len);
	return wr;
}

/* from a to the start of b's memory */
static int post(uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = request(&sge, id, opcode, len);

	return ibv_post_send(a.qp, &wr, &bad);
}

static bool completes(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status, struct ibv_wc *wc)
{
	return poll_one(cq, wc, 5) && wc->wr_id == id && wc->status == status;
}

static bool arrived(uint64_t id, uint32_t len)
{
	static uint8_t want[ROOM];

	vt_pattern(want, id, 0, len);
	return !memcmp(want, b.mr->addr, len);
}

/* sent, and received as work request @recv_id */
static bool passes(uint64_t id, uint64_t recv_id, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_wc wc;

	return !post(id, opcode, len) && completes(a.send_cq, id, IBV_WC_SUCCESS, &wc) &&
	       completes(b.recv_cq, recv_id, IBV_WC_SUCCESS, &wc) && wc.byte_len == len &&
	       wc.qp_num == b.qp->qp_num && arrived(id, len) &&
	       (!(wc.wc_flags & IBV_WC_WITH_IMM) || ntohl(wc.imm_data) == (uint32_t)id);
}

/* --- unreliable connections ------------------------------------------------------------ */

static void uc_messages(void)
{
	static const uint32_t sizes[] = { 0, 1, 1023, 1024, 1025, 65536, 300001 };
	static const struct {
		enum ibv_wr_opcode opcode;
		const char *name;
	} ops[] = {
		{ IBV_WR_SEND, "SEND" },
		{ IBV_WR_SEND_WITH_IMM, "SEND with immediate" },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, "WRITE with immediate" },
	};
	unsigned int i, k;
	struct ibv_wc wc;
	bool ok;

	fresh(IBV_QPT_UC, 0);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		for (k = 0, ok = true; ok && k < ARRAY_SIZE(sizes); k++) {
			recv_into(&b, k, 0, ops[i].opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : sizes[k]);
			ok = passes(10 * i + k + 1, k, ops[i].opcode, sizes[k]);
		}
		vt_check(ok, "UC: %s of every size", ops[i].name);
	}
	ok = !post(77, IBV_WR_RDMA_WRITE, 300001) && completes(a.send_cq, 77, IBV_WC_SUCCESS, &wc);
	/* behind it comes a message that says so */
	recv_into(&b, 1, ROOM - 8, 8);
	ok = ok && !post(78, IBV_WR_SEND, 8) && completes(b.recv_cq, 1, IBV_WC_SUCCESS, &wc);
	vt_pattern(a.mr->addr, 77, 0, 300001);
	vt_check(ok && arrived(77, 300001), "UC: WRITE");
}

/* sent as far as the sender knows; then nothing has come of it, and the next message passes */
static void uc_dropped(const char *what)
{
	struct ibv_wc wc;

	vt_check(completes(a.send_cq, 5, IBV_WC_SUCCESS, &wc), "UC: %s: the sender does not notice", what);
	vt_check(vt_silent(b.recv_cq), "UC: %s: the receiver does not either", what);
	vt_check(vt_state(a.qp) == IBV_QPS_RTS && vt_state(b.qp) == IBV_QPS_RTS, "UC: %s: both stay in RTS", what);
	recv_into(&b, 2, 0, 5000);
	vt_check(passes(6, 1, IBV_WR_SEND, 5000), "UC: %s: the next message passes", what);
}

static void uc_drops(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr;

	fresh(IBV_QPT_UC, 0);
	recv_into(&b, 1, 0, 5000);
	post(5, IBV_WR_SEND, 5001);
	uc_dropped("a SEND longer than the receive");

	fresh(IBV_QPT_UC, 0);
	post(5, IBV_WR_SEND, 5000);
	/* it must have been there before there is a receive */
	vt_check(vt_silent(b.recv_cq), "UC: a SEND to no receive");
	recv_into(&b, 1, 0, 5000);
	uc_dropped("a SEND to no receive");

	fresh(IBV_QPT_UC, 0);
	recv_into(&b, 1, 0, 5000);
	memset(b.mr->addr, 0, ROOM);
	wr = request(&sge, 5, IBV_WR_RDMA_WRITE, 5000);
	wr.wr.rdma.rkey ^= 0xff00;
	ibv_post_send(a.qp, &wr, &bad);
	uc_dropped("a WRITE with a wrong key");

	fresh(IBV_QPT_UC, 0);
	recv_into(&b, 1, 0, 5000);
	wr = request(&sge, 5, IBV_WR_RDMA_WRITE_WITH_IMM, 5000);
	wr.wr.rdma.remote_addr += ROOM - 4999;
	ibv_post_send(a.qp, &wr, &bad);
	uc_dropped("a WRITE over the end");
}

static void uc_errors(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr;

	fresh(IBV_QPT_UC, 0);
	wr = request(&sge, 1, IBV_WR_RDMA_READ, 8);
	vt_check(ibv_post_send(a.qp, &wr, &bad), "UC: a READ is refused");
	wr = request(&sge, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	vt_check(ibv_post_send(a.qp, &wr, &bad), "UC: an atomic is refused");

	wr = request(&sge, 2, IBV_WR_SEND, 8);
	sge.lkey ^= 0xff00;
	ibv_post_send(a.qp, &wr, &bad);
	expect_wc("UC: a bad local key", a.send_cq, 2, IBV_WC_LOC_PROT_ERR);
	vt_check(vt_state(a.qp) == IBV_QPS_SQE, "UC: a bad local key: state %s (wanted SQE)",
		 vt_state_name(vt_state(a.qp)));
	vt_check(!vt_to_state(a.qp, IBV_QPS_RTS), "UC: SQE to RTS");
	recv_into(&b, 3, 0, 100);
	vt_check(passes(3, 3, IBV_WR_SEND, 100), "UC: after SQE it sends again");

	sge = (struct ibv_sge){ (uintptr_t)b.mr->addr, 100, b.mr->lkey ^ 0xff00 };
	ibv_post_recv(b.qp, &(struct ibv_recv_wr){ .wr_id = 4, .sg_list = &sge, .num_sge = 1 },
		      &(struct ibv_recv_wr *){ NULL });
	post(4, IBV_WR_SEND, 100);
	expect_wc("UC: a receive with a bad key", b.recv_cq, 4, IBV_WC_LOC_PROT_ERR);
	vt_check(vt_state(b.qp) == IBV_QPS_ERR, "UC: a receive with a bad key: state %s (wanted ERR)",
		 vt_state_name(vt_state(b.qp)));
}

static void uc_with_srq(void)
{
	fresh(IBV_QPT_UC, 16);
	recv_into(&b, 1, 0, 5000);
	recv_into(&b, 2, 0, 5000);
	vt_check(passes(1, 1, IBV_WR_SEND, 5000), "UC: from a shared receive queue");
	post(5, IBV_WR_SEND, 5001);
	expect_wc("UC: a SEND longer than the shared receive", b.recv_cq, 2, IBV_WC_LOC_LEN_ERR);
	recv_into(&b, 3, 0, 5000);
	vt_check(completes(a.send_cq, 5, IBV_WC_SUCCESS, &(struct ibv_wc){}) &&
		 passes(6, 3, IBV_WR_SEND, 5000), "UC: and the next message passes");
}

/* --- shared receive queues ---------------------------------------------------------------- */

static bool set_limit(uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return !ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT);
}

static uint32_t limit_of(struct ibv_srq *srq)
{
	struct ibv_srq_attr attr;

	return ibv_query_srq(srq, &attr) ? ~0U : attr.srq_limit;
}

/* ibv_create_srq() is not to look at what many leave as it is */
static void srq_limit_unset(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1, .srq_limit = ~0U } };
	struct ibv_srq *srq = ibv_create_srq(b.dev->pd, &init);

	vt_check(srq && !limit_of(srq), "SRQ: none is armed when it is made, whatever srq_limit is");
	if (srq)
		ibv_destroy_srq(srq);
}

static void srq_limit(void)
{
	uint64_t i;

	srq_limit_unset();
	fresh(IBV_QPT_RC, 16);
	for (i = 0; i < 10; i++)
		recv_into(&b, i, 0, 1000);
	vt_check(set_limit(5) && limit_of(b.srq) == 5, "SRQ: a limit is armed");
	for (i = 0; i < 5; i++)
		passes(i + 1, i, IBV_WR_SEND, 1000);
	vt_check(!vt_event_comes(b.dev, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, 0.05), "SRQ: at the limit there is no event");
	passes(6, 5, IBV_WR_SEND, 1000);
	vt_check(vt_event_comes(b.dev, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, 2), "SRQ: below the limit there is one");
	vt_check(limit_of(b.srq) == 0, "SRQ: the event disarms the limit");
	passes(7, 6, IBV_WR_SEND, 1000);
	vt_check(!vt_event_comes(b.dev, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, 0.05), "SRQ: and does not come again");
	vt_check(set_limit(8) && vt_event_comes(b.dev, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, 2),
		 "SRQ: armed with fewer than the limit, the event comes at once");
	vt_check(!set_limit(1000), "SRQ: no limit above the size");
}

static void srq_last_wqe(void)
{
	fresh(IBV_QPT_RC, 16);
	recv_into(&b, 1, 0, 1000);
	vt_to_state(b.qp, IBV_QPS_ERR);
	vt_check(vt_event_comes(b.dev, IBV_EVENT_QP_LAST_WQE_REACHED, NULL, 2), "SRQ: last work request reached");
	vt_check(vt_silent(b.recv_cq), "SRQ: its work requests are not flushed");
	/* the shared queue stays */
	ends_fresh(IBV_QPT_RC);
	vt_check(passes(2, 1, IBV_WR_SEND, 1000), "SRQ: another queue pair takes them");
}

static int resize(uint32_t entries, uint32_t *got)
{
	struct ibv_srq_attr attr = { .max_wr = entries };
	int rc = ibv_modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR);

	if (!rc && !ibv_query_srq(b.srq, &attr))
		*got = attr.max_wr;
	return rc;
}

static void srq_resize(void)
{
	uint32_t size = 0;
	uint64_t i, n;
	bool ok = true;

	fresh(IBV_QPT_RC, 16);
	for (i = 0; i < 16; i++)
		recv_into(&b, i, 0, 1000);
	vt_check(try_recv(&b, 99, 0, 1000) == ENOMEM, "SRQ: a full queue takes no more");
	vt_check(resize(8, &size), "SRQ: it does not become smaller than what is in it");
	vt_check(!resize(64, &size) && size >= 64, "SRQ: resized to %u", size);
	for (; i < 64; i++)
		recv_into(&b, i, 0, 1000);
	for (n = 0; n < i; n++)
		ok &= passes(n + 1, n, IBV_WR_SEND, 1000);
	vt_check(ok, "SRQ: nothing lost by the resize, nothing out of order");
	vt_check(!resize(4, &size) && size < 16, "SRQ: resized to %u", size);
	recv_into(&b, 5, 0, 1000);
	vt_check(passes(1, 5, IBV_WR_SEND, 1000), "SRQ: still in use");
	vt_check(resize(1 << 30, &size), "SRQ: no size beyond all bounds");
}

/* messages come while the queue changes its size */
static void srq_resize_under_traffic(void)
{
	uint64_t posted = 0, sent = 0, received = 0;
	uint32_t size = 0;
	struct ibv_wc wc = {};
	bool ok = true;

	fresh(IBV_QPT_RC, 64);
	while (ok && received < 2000) {
		while (posted < 2000 && posted - received < 32)
			recv_into(&b, posted++, 0, 64);
		while (sent < 2000 && sent - received < 40 && !post(sent, IBV_WR_SEND, 64))
			sent++;
		if (received % 100 == 0)
			ok = !resize(received % 200 ? 64 : 256, &size);
		ok = ok && completes(b.recv_cq, received++, IBV_WC_SUCCESS, &wc);
		vt_drain_cq(a.send_cq);
	}
	vt_check(ok, "SRQ: 2000 messages while it is resized 20 times (%lu posted, %lu sent, %lu passed, last %lu: %s)",
		 (unsigned long)posted, (unsigned long)sent, (unsigned long)received,
		 (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
}

/* one queue, many queue pairs of two kinds */
static void srq_shared(void)
{
	struct ibv_qp *from[4], *to[4];
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr;
	struct ibv_wc wc;
	uint64_t i;
	bool ok = true;

	fresh(IBV_QPT_RC, 64);
	from[0] = a.qp, to[0] = b.qp;
	for (i = 1; i < 4; i++) {
		/* those before stay */
		a.qp = b.qp = NULL;
		ends_fresh(IBV_QPT_RC);
		from[i] = a.qp, to[i] = b.qp;
	}
	for (i = 0; i < 40; i++)
		recv_into(&b, i, i * 2000, 2000);
	for (i = 0; ok && i < 40; i++) {
		wr = request(&sge, i, IBV_WR_SEND, 2000);
		ok = !ibv_post_send(from[i % 4], &wr, &bad) && completes(b.recv_cq, i, IBV_WC_SUCCESS, &wc) &&
		     wc.qp_num == to[i % 4]->qp_num;
		ok = ok && !memcmp(b.mr->addr + i * 2000, a.mr->addr, 2000) &&
		     completes(a.send_cq, i, IBV_WC_SUCCESS, &wc);
	}
	vt_check(ok, "SRQ: four queue pairs take turns");
	for (i = 1; i < 4; i++)
		if (ibv_destroy_qp(from[i]) || ibv_destroy_qp(to[i]))
			vt_die(VT_WRONG, "destroy qp");
	a.qp = from[0], b.qp = to[0];
	vt_check(ibv_destroy_srq(b.srq) == EBUSY, "SRQ: not destroyed while a queue pair uses it");
}

/* a queue of another domain than the connection's: its elements name memory of its own */
static void srq_domain(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_mr *mr, *own = b.mr;
	struct ibv_pd *pd;

	if (vt_is_rxe()) {
		printf("skip: SRQ: domains [rdma_rxe asks the queue pair's\n");
		return;
	}
	unmake();
	pd = ibv_alloc_pd(b.dev->ctx);
	mr = ibv_reg_mr(pd, own->addr, ROOM, IBV_ACCESS_LOCAL_WRITE);
	b.srq = ibv_create_srq(pd, &init);
	if (!mr || !b.srq)
		vt_die(VT_SETUP, "create srq: %s", strerror(errno));
	ends_fresh(IBV_QPT_RC);
	b.mr = mr;
	recv_into(&b, 1, 0, 1000);
	vt_check(passes(1, 1, IBV_WR_SEND, 1000), "SRQ: keys are of the queue's domain");
	b.mr = own;
	recv_into(&b, 2, 0, 1000);
	post(2, IBV_WR_SEND, 1000);
	expect_wc("SRQ: and not of the queue pair's", b.recv_cq, 2, IBV_WC_LOC_PROT_ERR);
	unmake();
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
		vt_die(VT_WRONG, "dealloc pd: %s", strerror(errno));
}

static void srq_datagrams(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	uint64_t i;
	bool ok = true;

	fresh(IBV_QPT_UD, 16);
	ah = vt_ah(a.dev, &b.dev->gid);
	for (i = 0; i < 10; i++)
		recv_into(&b, i, 0, 1040);
	ok = set_limit(3);
	for (i = 0; ok && i < 10; i++) {
		wr = request(&sge, i, IBV_WR_SEND, 1000);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b.qp->qp_num;
		wr.wr.ud.remote_qkey = VT_QKEY;
		ok = !ibv_post_send(a.qp, &wr, &bad) && completes(b.recv_cq, i, IBV_WC_SUCCESS, &wc) &&
		     wc.byte_len == 1040 && wc.src_qp == a.qp->qp_num &&
		     !memcmp(b.mr->addr + 40, a.mr->addr, 1000);
	}
	vt_check(ok, "SRQ: datagrams");
	vt_check(vt_event_comes(b.dev, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, 2), "SRQ: datagrams come to the limit, too");
	ibv_destroy_ah(ah);
}

/* --- datagrams ---------------------------------------------------------------------- */

/* What waits for longer than its address handle is there does not go to where the next handle leads */
static void datagram_without_handle(void)
{
	struct ibv_cq *send_cq = vt_create_cq(a.dev, 16), *recv_cq = vt_create_cq(b.dev, 16);
	struct ibv_qp *from = vt_create_ud_qp(a.dev, send_cq, send_cq, 8);
	struct ibv_qp *to = vt_create_ud_qp(b.dev, recv_cq, recv_cq, 8);
	struct ibv_ah *old = vt_ah(a.dev, &b.dev->gid), *next;
	struct ibv_sge in = { (uintptr_t)b.mr->addr, 1024, b.mr->lkey }, out;
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &in, .num_sge = 1 };
	struct ibv_send_wr *bad, wr = request(&out, 1, IBV_WR_SEND, 100);
	struct ibv_wc wc;

	wr.wr.ud.ah = old;
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = VT_QKEY;
	vt_check(!ibv_post_recv(to, &recv, &bad_recv) && !vt_to_state(from, IBV_QPS_SQD) &&
		 !ibv_post_send(from, &wr, &bad), "a datagram waits in SQD");
	ibv_destroy_ah(old);
	next = vt_ah(a.dev, &b.dev->gid);
	vt_check(next && !vt_to_state(from, IBV_QPS_RTS) && poll_one(send_cq, &wc, 5) &&
		 wc.status == IBV_WC_LOC_QP_OP_ERR,
		 "UD: the handle is gone when it is sent, and another one is there: LOC_QP_OP_ERR");
	vt_check(vt_silent(recv_cq), "UD: and nothing arrives");
	if (ibv_destroy_ah(next) || ibv_destroy_qp(from) || ibv_destroy_qp(to) || ibv_destroy_cq(send_cq) ||
	    ibv_destroy_cq(recv_cq))
		vt_check(false, "UD: everything can be destroyed");
}

static void ud_handle_that_is_gone(void)
{
	if (vt_is_rxe()) {
		printf("skip: UD: an address handle that is gone [the rule is of sroce\n");
		return;
	}
	datagram_without_handle();
}

/* --- extended reliable connections ---------------------------------------------------------- */

/* a sends, b is the target and has a queue */
static void fresh_xrc(int fd)
{
	unmake();
	xrcd = ends_fresh_xrc(fd, &remote_srqn);
}

static void xrc_messages(void)
{
	static const uint32_t sizes[] = { 0, 1, 1023, 1024, 1025, 65536, 300001 };
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr;
	struct ibv_wc wc;
	unsigned int k;
	bool ok = true;

	fresh_xrc(-1);
	for (k = 0; ok && k < ARRAY_SIZE(sizes); k++) {
		recv_into(&b, k, 0, sizes[k]);
		ok = passes(k + 1, k, IBV_WR_SEND, sizes[k]);
	}
	vt_check(ok, "XRC: SEND of every size");
	for (k = 0; ok && k < ARRAY_SIZE(sizes); k++) {
		recv_into(&b, k, 0, 0);
		ok = passes(k + 10, k, IBV_WR_RDMA_WRITE_WITH_IMM, sizes[k]);
	}
	vt_check(ok, "XRC: WRITE with immediate of every size");
	vt_pattern(b.mr->addr, 99, 0, 300001);
	wr = request(&sge, 1, IBV_WR_RDMA_READ, 300001);
	vt_check(!ibv_post_send(a.qp, &wr, &bad) && completes(a.send_cq, 1, IBV_WC_SUCCESS, &wc) &&
		 !memcmp(a.mr->addr, b.mr->addr, 300001), "XRC: READ");
	wr = request(&sge, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)b.mr->addr;
	wr.wr.atomic.rkey = b.mr->rkey;
	wr.wr.atomic.compare_add = 2;
	*(uint64_t *)b.mr->addr = 40;
	vt_check(!ibv_post_send(a.qp, &wr, &bad) && completes(a.send_cq, 2, IBV_WC_SUCCESS, &wc) &&
		 *(uint64_t *)a.mr->addr == 40 && *(uint64_t *)b.mr->addr == 42, "XRC: atomic");
}

static void xrc_two_queues(void)
{
	struct ibv_cq *cq = ibv_create_cq(b.dev->ctx, DEPTH, NULL, NULL, 0);
	uint32_t first, second;
	struct ibv_srq *other, *own;
	struct ibv_wc wc;
	bool ok;

	fresh_xrc(-1);
	first = remote_srqn;
	own = b.srq;
	other = ends_xrc_srq(xrcd, b.dev->pd, cq, &second);
	recv_into(&b, 1, 0, 100);
	b.srq = other;
	recv_into(&b, 2, 0, 100);
	b.srq = own;
	ok = passes(1, 1, IBV_WR_SEND, 100);
	remote_srqn = second;
	ok = ok && !post(2, IBV_WR_SEND, 100) && completes(cq, 2, IBV_WC_SUCCESS, &wc) && arrived(2, 100) &&
	     completes(a.send_cq, 2, IBV_WC_SUCCESS, &wc);
	vt_check(ok, "XRC: two queues, one connection");
	vt_check(!ibv_destroy_srq(other), "XRC: a queue is destroyed while the connection lives");
	recv_into(&b, 3, 0, 100);
	remote_srqn = first;
	vt_check(passes(3, 3, IBV_WR_SEND, 100), "XRC: the other one goes on");
	remote_srqn = second;
	post(4, IBV_WR_SEND, 100);
	expect_wc("XRC: to a queue that is gone", a.send_cq, 4, IBV_WC_REM_INV_REQ_ERR);
	vt_check(vt_event_comes(b.dev, IBV_EVENT_QP_REQ_ERR, NULL, 2), "XRC: event invalid request");
	vt_check(vt_state(b.qp) == IBV_QPS_ERR, "XRC: the target is in state %s (wanted ERR)",
		 vt_state_name(vt_state(b.qp)));
	ibv_destroy_cq(cq);
}

/* a region of another protection domain than the queue's */
static void xrc_keys(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(b.dev->ctx);
	struct ibv_srq *other;

	fresh_xrc(-1);
	other = ends_xrc_srq(xrcd, pd, b.recv_cq, &remote_srqn);
	post(1, IBV_WR_RDMA_WRITE, 100);
	expect_wc("XRC: a key of another domain than the queue's", a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	vt_check(vt_event_comes(b.dev, IBV_EVENT_QP_ACCESS_ERR, NULL, 2), "XRC: event access error");
	if (ibv_destroy_srq(other) || ibv_dealloc_pd(pd))
		vt_die(VT_WRONG, "destroy");
}

/* a message of 1000 bytes, to a queue that has none yet and to completion queue @cq */
static bool xrc_passes(struct ibv_srq *srq, struct ibv_cq *cq, struct ibv_recv_wr *wr, uint64_t id)
{
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;

	ibv_post_srq_recv(srq, wr, &bad);
	return !post(id, IBV_WR_SEND, 1000) && completes(cq, wr->wr_id, IBV_WC_SUCCESS, &wc) && arrived(id, 1000) &&
	       completes(a.send_cq, id, IBV_WC_SUCCESS, &wc);
}

/* two openers of one file share the domain; the second has the queue, the first the connection */
static void xrc_shared(void)
{
	char path[] = "/tmp/xrcd.XXXXXX";
	struct ibv_qp_open_attr open_attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	int fd = mkstemp(path);
	struct ibv_context *ctx = ibv_open_device(b.dev->ctx->device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, b.mr->addr, ROOM, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)b.mr->addr, .length = 1000, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };
	struct ibv_xrcd *domain;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	vt_check(!ends_open_xrcd(ctx, fd, 0), "XRC: a domain nobody has made is not there");
	fresh_xrc(fd);
	vt_check(!ends_open_xrcd(ctx, fd, O_CREAT | O_EXCL), "XRC: a domain that exists is not made again");
	domain = ends_open_xrcd(ctx, fd, 0);
	vt_check(domain, "XRC: two openers of a domain");
	if (!domain)
		return;
	srq = ends_xrc_srq(domain, pd, cq, &remote_srqn);
	vt_check(xrc_passes(srq, cq, &wr, 1), "XRC: a queue of the second opener");
	open_attr.qp_num = b.qp->qp_num;
	open_attr.xrcd = domain;
	qp = ibv_open_qp(ctx, &open_attr);
	vt_check(qp && qp->qp_num == b.qp->qp_num, "XRC: the second opens the connection");
	/* it now holds it */
	if (ibv_destroy_qp(b.qp))
		vt_die(VT_WRONG, "destroy qp");
	b.qp = NULL;
	vt_check(xrc_passes(srq, cq, &wr, 2), "XRC: which the first may leave");
	vt_check(ibv_close_xrcd(domain), "XRC: a domain in use is not closed");
	if ((qp && ibv_destroy_qp(qp)) || ibv_destroy_srq(srq) || ibv_close_xrcd(domain))
		vt_die(VT_WRONG, "destroy: %s", strerror(errno));
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	unlink(path);
	close(fd);
}

static void xrc_refusals(void)
{
	struct ibv_sge sge = {};
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge };
	struct ibv_send_wr *bad, wr;

	fresh_xrc(-1);
	wr = request(&sge, 1, IBV_WR_SEND, 8);
	vt_check(ibv_post_send(b.qp, &wr, &bad), "XRC: a target does not send");
	vt_check(ibv_post_recv(b.qp, &recv, &bad_recv) && ibv_post_recv(a.qp, &recv, &bad_recv),
		 "XRC: neither has a receive queue");
	vt_check(ibv_close_xrcd(xrcd), "XRC: a domain in use is not closed, without a file");
}

/* --- memory of the kernel -------------------------------------------------------------------- */

/* the key by which kernel users name all memory */
#define RESERVED_LKEY 0xff

/* that of a variable which /proc shows, if there are symbols: a write to it would be seen, and does no harm */
static uint64_t kernel_address(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	uint64_t addr = 0, found = 0xffff888000100000;
	char name[256];

	while (f && fscanf(f, "%" SCNx64 " %*s %255s%*[^\n]", &addr, name) == 2)
		if (!strcmp(name, "panic_timeout") && addr)
			found = addr;
	if (f)
		fclose(f);
	return found;
}

static int panic_timeout(void)
{
	FILE *f = fopen("/proc/sys/kernel/panic", "r");
	int value = -1;

	if (f && fscanf(f, "%d", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

/* what a peer sends lands where a receive work request says: not in the kernel */
static void kernel_received(const char *what)
{
	struct ibv_sge sge = { kernel_address(), 4, RESERVED_LKEY };
	struct ibv_recv_wr *bad, wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 };
	int before = panic_timeout();

	if (b.srq ? ibv_post_srq_recv(b.srq, &wr, &bad) : ibv_post_recv(b.qp, &wr, &bad))
		vt_die(VT_SETUP, "post recv: %s", strerror(errno));
	post(1, IBV_WR_SEND, 4);
	expect_wc(what, b.recv_cq, 3, IBV_WC_LOC_PROT_ERR);
	vt_check(panic_timeout() == before, "%s: nothing was written", what);
}

static void kernel_sent(const char *what, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr *bad, wr;
	int before = panic_timeout();
	struct ibv_sge sge;

	fresh(IBV_QPT_RC, 0);
	recv_into(&b, 1, 0, 8);
	wr = request(&sge, 1, opcode, 4);
	sge.addr = kernel_address();
	sge.lkey = RESERVED_LKEY;
	ibv_post_send(a.qp, &wr, &bad);
	expect_wc(what, a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	vt_check(panic_timeout() == before && vt_silent(b.recv_cq), "%s: nothing was moved", what);
}

/* by whatever queue a process says it: what the kernel's key opens is the kernel's */
static void kernel_memory(void)
{
	if (vt_is_rxe()) {
		printf("skip: kernel memory [the key is sroce's\n");
		return;
	}
	kernel_sent("kernel memory: sent", IBV_WR_SEND);
	kernel_sent("kernel memory: written to a peer", IBV_WR_RDMA_WRITE);
	kernel_sent("kernel memory: a READ into it", IBV_WR_RDMA_READ);
	fresh(IBV_QPT_RC, 0);
	kernel_received("kernel memory: received into");
	fresh(IBV_QPT_UC, 0);
	kernel_received("kernel memory: received into, UC");
	fresh(IBV_QPT_RC, 16);
	kernel_received("kernel memory: received into, from a shared queue");
	fresh_xrc(-1);
	kernel_received("kernel memory: received into, XRC");
}

static void xrc(void)
{
	if (!(a.dev->attr.device_cap_flags & IBV_DEVICE_XRC)) {
		printf("skip: XRC [the device has none\n");
		return;
	}
	xrc_messages();
	xrc_two_queues();
	xrc_keys();
	xrc_shared();
	xrc_refusals();
}

int main(int argc, char **argv)
{
	ends_depth = DEPTH;
	ends_how.timeout = 14;
	ends_open(argc, argv);
	a.mr = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	b.mr = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	uc_messages();
	uc_drops();
	uc_errors();
	uc_with_srq();
	srq_limit();
	srq_last_wqe();
	srq_resize();
	srq_resize_under_traffic();
	srq_shared();
	srq_domain();
	srq_datagrams();
	ud_handle_that_is_gone();
	xrc();
	kernel_memory();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
