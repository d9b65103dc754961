// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qpstate: the state machine of queue pairs, what may be posted when, flushing,
 * draining, asynchronous events, and for every kind of error the status, the
 * side, the event and the state that the protocol asks for.
 *
 *	qpstate -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * Without -D both ends are on one device.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "ends.h"

#define ROOM 65536

/* memory that may not be written, and memory that is no peer's business; the two ends' own allows everything */
static struct ibv_mr *read_only_a, *read_only_b, *private_b;

/* what b's queue pair allows; changed by single tests */
static int access_of_b;

/* parts of the names of results where rdma_rxe 7.2 is known to differ */
static const char *const rxe_deviates[] = {
	"every transition", "P_Key index 200", "path MTU 0", "max_dest_rd_atomic 255",
	"an unknown opcode", "an inline READ", "after refused requests", "a list with a bad request",
	"the request before it", "the request after it", "SQD: no event", "SQD to RTS", "COMM_EST",
	"FETCH_ADD, not aligned", "event invalid request", "SEND longer", "SEND of many packets longer",
	"SEND to a receive", "SEND with a bad local key", "WRITE from one byte too far",
	"rnr_retry 7", "until there is a receive", "retry_cnt 7", "UD: ", NULL
};

/* --- ends ---------------------------------------------------------------------------- */

/* a fresh pair, in RESET */
static void fresh(enum ibv_qp_type type)
{
	ends_make(type);
	ends_how = (struct vt_conn){
		.mtu = IBV_MTU_1024, .rd_atomic = 4, .timeout = 12, .retry_cnt = 3, .rnr_retry = 3,
		.min_rnr_timer = 1,
	};
	access_of_b = VT_REMOTE_ACCESS;
}

static void rtr(struct end *e, struct end *peer)
{
	struct vt_conn c = ends_how;

	c.peer = (struct vt_addr){ .qpn = peer->qp->qp_num, .psn = 0xfffffe, .gid = peer->dev->gid };
	if (vt_to_init(e->qp, e == &b ? access_of_b : VT_REMOTE_ACCESS) || vt_to_rtr(e->qp, e->dev, &c))
		vt_die(VT_SETUP, "qp to RTR: %s", strerror(errno));
}

static void rts(struct end *e)
{
	struct vt_conn c = ends_how;

	c.sq_psn = 0xfffffe;
	if (vt_to_rts(e->qp, &c))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
}

static void connected(void)
{
	rtr(&a, &b);
	rtr(&b, &a);
	rts(&a);
	rts(&b);
}

/* --- work ------------------------------------------------------------------------------ */

/* a request of @len bytes from our memory (or into it) to the start of the peer's */
static struct ibv_send_wr request(struct end *e, struct end *peer, struct ibv_sge *sge, uint64_t id,
				  enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_send_wr wr = vt_request(sge, id, opcode);

	*sge = (struct ibv_sge){ (uintptr_t)e->mr->addr, len, e->mr->lkey };
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->mr->addr;
		wr.wr.atomic.rkey = peer->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->mr->addr;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return wr;
}

static int post_simple(struct end *e, struct end *peer, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(e, peer, &sge, id, opcode, len);

	return post_wr(e, &wr);
}

/* the next completion is of @id with @status */
static bool completes(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status, char *got, size_t size)
{
	struct ibv_wc wc;

	if (!poll_one(cq, &wc, 5)) {
		snprintf(got, size, "no completion");
		return false;
	}
	snprintf(got, size, "%lu: %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return wc.wr_id == id && wc.status == status;
}

static bool state_is(struct end *e, enum ibv_qp_state state, double seconds)
{
	double end = vt_now() + seconds;

	do
		if (vt_state(e->qp) == state)
			return true;
	while (vt_now() < end);
	return false;
}

static void expect_state(const char *what, struct end *e, enum ibv_qp_state state)
{
	bool ok = state_is(e, state, 1);

	vt_check(ok, "%s: state %s (wanted %s)", what, vt_state_name(vt_state(e->qp)), vt_state_name(state));
}

/* --- transitions --------------------------------------------------------------------------- */

enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR, STATES };

/* IBA 10.3.1; SQE is entered only by the device */
static const bool legal[STATES][STATES] = {
	[RESET] = { [RESET] = true, [INIT] = true },
	[INIT] = { [RESET] = true, [INIT] = true, [RTR] = true, [ERR] = true },
	[RTR] = { [RESET] = true, [RTS] = true, [ERR] = true },
	[RTS] = { [RESET] = true, [RTS] = true, [SQD] = true, [ERR] = true },
	[SQD] = { [RESET] = true, [RTS] = true, [SQD] = true, [ERR] = true },
	[ERR] = { [RESET] = true, [ERR] = true },
};

/* attributes that must be given for a transition */
static int required(enum ibv_qp_type type, int from, int to)
{
	bool rc = type == IBV_QPT_RC;

	if (to == INIT)
		return from == INIT ? 0 : IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(rc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY);
	if (to == RTR)
		return rc ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
	if (to == RTS && from == RTR)
		return rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC : IBV_QP_SQ_PSN;
	return 0;
}

static struct ibv_qp_attr good_attr(int to)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.qkey = VT_QKEY,
		.qp_access_flags = VT_REMOTE_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = b.qp->qp_num,
		.rq_psn = 0xabcdef,
		.sq_psn = 0x123456,
		.max_dest_rd_atomic = 3,
		.max_rd_atomic = 5,
		.min_rnr_timer = 7,
		.timeout = 11,
		.retry_cnt = 6,
		.rnr_retry = 5,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.sl = 0,
			.grh = { .dgid = b.dev->gid, .sgid_index = a.dev->gid_index, .hop_limit = 33,
				 .traffic_class = 0x20, .flow_label = 0x12345 },
		},
	};

	return attr;
}

static int modify(int from, int to)
{
	struct ibv_qp_attr attr = good_attr(to);

	return ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | required(a.qp->qp_type, from, to));
}

static const int way[] = { RESET, INIT, RTR, RTS, SQD };

/* bring a.qp to a state, by the shortest way */
static void bring_to(enum ibv_qp_type type, int state)
{
	int i, last = state == ERR ? INIT : state;

	fresh(type);
	for (i = 1; i < (int)ARRAY_SIZE(way) && way[i] <= last; i++)
		if (modify(way[i - 1], way[i]))
			vt_die(VT_WRONG, "WRONG: %s to %s: %s", vt_state_name(way[i - 1]),
			       vt_state_name(way[i]), strerror(errno));
	if (state == ERR && modify(INIT, ERR))
		vt_die(VT_WRONG, "WRONG: INIT to ERR: %s", strerror(errno));
}

static void transitions(enum ibv_qp_type type, const char *name)
{
	int from, to, rc, wrongs = 0;

	for (from = RESET; from < STATES; from++) {
		for (to = RESET; to < STATES && from != SQE; to++) {
			bring_to(type, from);
			rc = modify(from, to);
			/* the library may say ENOSYS or EINVAL, but never yes */
			if (legal[from][to] ? rc || vt_state(a.qp) != (enum ibv_qp_state)to :
			    !rc || vt_state(a.qp) != (enum ibv_qp_state)from) {
				printf("# %s: %s to %s: %s, now %s\n", name, vt_state_name(from), vt_state_name(to),
				       rc ? strerror(rc) : "done", vt_state_name(vt_state(a.qp)));
				wrongs++;
			}
		}
	}
	vt_check(!wrongs, "%s: every transition is done or refused as it should be (%d wrong)", name, wrongs);
}

static void attributes(enum ibv_qp_type type, const char *name)
{
	int step, bit, need, rc, from, to, wrongs = 0;
	struct ibv_qp_attr attr;

	for (step = 1; step < 4; step++) {
		from = way[step - 1];
		to = way[step];
		need = required(type, from, to);
		for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
			/* each required one left out; one that has no business here put in */
			bool extra = bit == IBV_QP_CAP || bit == (type == IBV_QPT_RC ? IBV_QP_QKEY : IBV_QP_TIMEOUT);

			if (!(need & bit) && !extra)
				continue;
			bring_to(type, from);
			attr = good_attr(to);
			rc = ibv_modify_qp(a.qp, &attr, (IBV_QP_STATE | need) ^ bit);
			if (!rc || vt_state(a.qp) != (enum ibv_qp_state)from) {
				printf("# %s: %s to %s %s attribute %#x: %s\n", name, vt_state_name(from),
				       vt_state_name(to), extra ? "with" : "without", bit, rc ? strerror(rc) : "done");
				wrongs++;
			}
		}
	}
	vt_check(!wrongs, "%s: required attributes are required, foreign ones refused (%d wrong)", name, wrongs);
}

/* a transition of a.qp, which is in @from, with attributes that are good until a test changes one */
struct step {
	int from, to;
	struct ibv_qp_attr attr;
};

static void good_step(struct step *s, int from, int to)
{
	bring_to(IBV_QPT_RC, from);
	s->from = from;
	s->to = to;
	s->attr = good_attr(to);
}

/* the step, with one bad attribute, is refused; after that it is a good one again */
static void bad_value(const char *what, struct step *s)
{
	int rc = ibv_modify_qp(a.qp, &s->attr, IBV_QP_STATE | required(IBV_QPT_RC, s->from, s->to));

	vt_check(rc && vt_state(a.qp) == (enum ibv_qp_state)s->from, "%s is refused: %s", what,
	      rc ? strerror(rc) : "done");
	good_step(s, s->from, s->to);
}

static void bad_values(void)
{
	struct step s;

#define BAD_VALUE(what, field, value) \
	do { \
		s.attr.field = value; \
		bad_value(what, &s); \
	} while (0)
	good_step(&s, RESET, INIT);
	BAD_VALUE("port 2", port_num, 2);
	BAD_VALUE("P_Key index 200", pkey_index, 200);
	good_step(&s, INIT, RTR);
	BAD_VALUE("path MTU 0", path_mtu, 0);
	BAD_VALUE("path MTU 6", path_mtu, 6);
	BAD_VALUE("an empty GID index", ah_attr.grh.sgid_index, 250);
	BAD_VALUE("a path without a GRH", ah_attr.is_global, 0);
	BAD_VALUE("max_dest_rd_atomic 255", max_dest_rd_atomic, 255);
	good_step(&s, RTR, RTS);
	BAD_VALUE("max_rd_atomic 255", max_rd_atomic, 255);
}

static void query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got, set;
	int rc;

	bring_to(IBV_QPT_RC, RTS);
	set = good_attr(RTS);
	rc = ibv_query_qp(a.qp, &got, 2 * IBV_QP_DEST_QPN - 1, &init);
	if (rc)
		vt_die(VT_WRONG, "WRONG: query qp: %s", strerror(rc));
	vt_check(got.path_mtu == set.path_mtu && got.dest_qp_num == set.dest_qp_num && got.rq_psn == set.rq_psn &&
	      got.sq_psn == set.sq_psn && got.max_rd_atomic >= set.max_rd_atomic &&
	      got.max_dest_rd_atomic >= set.max_dest_rd_atomic && got.min_rnr_timer == set.min_rnr_timer &&
	      got.timeout == set.timeout && got.retry_cnt == set.retry_cnt && got.rnr_retry == set.rnr_retry &&
	      got.port_num == 1 && got.qp_access_flags == set.qp_access_flags,
	      "a query tells what was set: mtu %d qpn %x rq_psn %x sq_psn %x rd %d/%d rnr_timer %d timeout %d retry %d rnr %d access %x",
	      got.path_mtu, got.dest_qp_num, got.rq_psn, got.sq_psn, got.max_rd_atomic, got.max_dest_rd_atomic,
	      got.min_rnr_timer, got.timeout, got.retry_cnt, got.rnr_retry, got.qp_access_flags);
	vt_check(!memcmp(&got.ah_attr.grh.dgid, &set.ah_attr.grh.dgid, 16) && got.ah_attr.is_global &&
	      got.ah_attr.grh.sgid_index == set.ah_attr.grh.sgid_index &&
	      got.ah_attr.grh.traffic_class == set.ah_attr.grh.traffic_class &&
	      got.ah_attr.grh.flow_label == set.ah_attr.grh.flow_label,
	      "a query tells the path: sgid %d tclass %x flow label %x hop limit %d", got.ah_attr.grh.sgid_index,
	      got.ah_attr.grh.traffic_class, got.ah_attr.grh.flow_label, got.ah_attr.grh.hop_limit);
	vt_check(init.cap.max_send_wr >= ENDS_DEPTH && init.cap.max_recv_wr >= ENDS_DEPTH &&
	      init.cap.max_send_sge >= 4 && init.cap.max_inline_data >= 64, "a query tells the sizes: %u %u %u %u", init.cap.max_send_wr,
	      init.cap.max_recv_wr, init.cap.max_send_sge, init.cap.max_inline_data);
}

/* --- posting ---------------------------------------------------------------------------------- */

static void posting(void)
{
	static const struct {
		int state;
		bool recv, send;
	} table[] = {
		{ RESET, false, false }, { INIT, true, false }, { RTR, true, false },
		{ RTS, true, true }, { SQD, true, true }, { ERR, true, true },
	};
	size_t i;
	int r, s;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		bring_to(IBV_QPT_RC, table[i].state);
		r = post_recv(&a, 1, local(a.mr), 100);
		s = post_simple(&a, &b, 2, IBV_WR_SEND, 8);
		vt_check(!r == table[i].recv && !s == table[i].send, "post in %s: recv %s, send %s",
		      vt_state_name(table[i].state), r ? strerror(r) : "taken", s ? strerror(s) : "taken");
	}
	expect_wc("a receive posted in ERR is flushed", a.recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_wc("a send posted in ERR is flushed", a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
}

static void bad_posts(void)
{
	struct ibv_sge sges[5];
	struct ibv_send_wr list[3], wr, *bad;
	struct ibv_sge sge;
	int rc, i;

	fresh(IBV_QPT_RC);
	connected();
	wr = request(&a, &b, &sge, 1, IBV_WR_SEND, 8);
	for (i = 0; i < 5; i++)
		sges[i] = sge;
	wr.sg_list = sges;
	wr.num_sge = 40;
	vt_check(post_wr(&a, &wr), "too many elements are refused");
	wr = request(&a, &b, &sge, 1, IBV_WR_RDMA_WRITE, 60000);
	wr.send_flags |= IBV_SEND_INLINE;
	vt_check(post_wr(&a, &wr), "too much inline data is refused");
	wr = request(&a, &b, &sge, 1, 77, 8);
	vt_check(post_wr(&a, &wr), "an unknown opcode is refused");
	wr = request(&a, &b, &sge, 1, IBV_WR_RDMA_READ, 8);
	wr.send_flags |= IBV_SEND_INLINE;
	vt_check(post_wr(&a, &wr), "an inline READ is refused");
	expect_state("after refused requests", &a, IBV_QPS_RTS);
	/* the good one before a bad one is sent */
	post_recv(&b, 1, local(b.mr), 100);
	list[0] = request(&a, &b, &sge, 10, IBV_WR_SEND, 8);
	list[1] = request(&a, &b, &sge, 11, 77, 8);
	list[2] = request(&a, &b, &sge, 12, IBV_WR_SEND, 8);
	list[0].next = &list[1];
	list[1].next = &list[2];
	bad = NULL;
	rc = ibv_post_send(a.qp, list, &bad);
	vt_check(rc && bad == &list[1], "a list with a bad request: %s, bad_wr is number %d", strerror(rc),
	      bad ? (int)(bad - list) : -1);
	expect_wc("the request before it is sent", a.send_cq, 10, IBV_WC_SUCCESS);
	vt_check(vt_silent(a.send_cq), "the request after it is not");
	/* as many as were asked for, at least, and an end to it */
	fresh(IBV_QPT_RC);
	connected();
	vt_to_state(a.qp, IBV_QPS_SQD);
	for (i = 0; i < 100000 && !post_simple(&a, &b, i, IBV_WR_SEND, 8); i++)
		;
	vt_check(i >= ENDS_DEPTH && i < 100000, "a full send queue refuses more: after %d", i);
	for (i = 0; i < 100000 && !post_recv(&a, i, local(a.mr), 100); i++)
		;
	vt_check(i >= ENDS_DEPTH && i < 100000, "a full receive queue refuses more: after %d", i);
}

/* --- flushing and draining ---------------------------------------------------------------------- */

static void flush_order(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	char got[80];
	uint64_t i;
	bool ok;

	fresh(IBV_QPT_RC);
	connected();
	for (i = 0; i < 6; i++)
		post_recv(&a, 100 + i, local(a.mr), 100);
	/* number 3 fails; the others are unsignaled, which must not matter after that */
	for (i = 0; i < 8; i++) {
		wr = request(&a, &b, &sge, i, IBV_WR_RDMA_WRITE, 64);
		if (i == 3)
			wr.wr.rdma.rkey ^= 0xff00;
		wr.send_flags = i == 1 ? IBV_SEND_SIGNALED : 0;
		post_wr(&a, &wr);
	}
	expect_wc("flush: before the error, signaled", a.send_cq, 1, IBV_WC_SUCCESS);
	expect_wc("flush: the error itself, unsignaled", a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
	for (ok = true, i = 4; i < 8 && ok; i++)
		ok = completes(a.send_cq, i, IBV_WC_WR_FLUSH_ERR, got, sizeof(got));
	vt_check(ok, "flush: all behind it, in order: last %s", got);
	for (ok = true, i = 0; i < 6 && ok; i++)
		ok = completes(a.recv_cq, 100 + i, IBV_WC_WR_FLUSH_ERR, got, sizeof(got));
	vt_check(ok, "flush: all receives, in order: last %s", got);
	vt_check(vt_silent(a.send_cq) && vt_silent(a.recv_cq), "flush: nothing twice");
	/* by hand, in the middle of nothing */
	fresh(IBV_QPT_RC);
	connected();
	for (i = 0; i < 4; i++)
		post_recv(&a, i, local(a.mr), 100);
	vt_to_state(a.qp, IBV_QPS_ERR);
	for (ok = true, i = 0; i < 4 && ok; i++)
		ok = completes(a.recv_cq, i, IBV_WC_WR_FLUSH_ERR, got, sizeof(got));
	vt_check(ok, "modify to ERR flushes receives: last %s", got);
	vt_to_state(a.qp, IBV_QPS_RESET);
	vt_to_state(b.qp, IBV_QPS_RESET);
	connected();
	post_recv(&b, 1, local(b.mr), 100);
	post_simple(&a, &b, 2, IBV_WR_SEND, 8);
	expect_wc("ERR, RESET, RTS: works again, sender", a.send_cq, 2, IBV_WC_SUCCESS);
	expect_wc("ERR, RESET, RTS: works again, receiver", b.recv_cq, 1, IBV_WC_SUCCESS);
}

static void reset_forgets(void)
{
	uint64_t i;

	fresh(IBV_QPT_RC);
	connected();
	for (i = 0; i < 4; i++)
		post_recv(&a, i, local(a.mr), 100);
	vt_to_state(a.qp, IBV_QPS_RESET);
	vt_check(vt_silent(a.recv_cq), "RESET drops receives without completions");
	rtr(&a, &b);
	vt_check(vt_silent(a.recv_cq), "and they are not there afterwards");
	post_recv(&a, 77, local(a.mr), 100);
	rts(&a);
	post_simple(&b, &a, 1, IBV_WR_SEND, 8);
	expect_wc("the first receive after RESET is used", a.recv_cq, 77, IBV_WC_SUCCESS);
}

static void draining(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_qp_init_attr init;
	uint64_t i;

	fresh(IBV_QPT_RC);
	connected();
	for (i = 0; i < 4; i++)
		post_simple(&a, &b, i, IBV_WR_RDMA_WRITE, 8192);
	if (ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY))
		vt_check(false, "RTS to SQD: %s", strerror(errno));
	vt_check(vt_event_comes(a.dev, IBV_EVENT_SQ_DRAINED, a.qp, 5), "SQD: SQ_DRAINED is announced");
	expect_state("SQD", &a, IBV_QPS_SQD);
	ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init);
	vt_check(!attr.sq_draining, "SQD: drained, says a query");
	/* those not begun are held back, and so is what is posted now */
	vt_drain_cq(a.send_cq);
	post_simple(&a, &b, 50, IBV_WR_RDMA_WRITE, 8);
	vt_check(vt_silent(a.send_cq), "SQD: a new request waits");
	post_recv(&a, 60, local(a.mr), 100);
	post_simple(&b, &a, 61, IBV_WR_SEND, 8);
	expect_wc("SQD: the receive side goes on", a.recv_cq, 60, IBV_WC_SUCCESS);
	vt_to_state(a.qp, IBV_QPS_RTS);
	for (i = 0; i < 5; i++) {
		struct ibv_wc wc;

		if (!poll_one(a.send_cq, &wc, 2) || wc.status || wc.wr_id == 50)
			break;
	}
	fresh(IBV_QPT_RC);
	connected();
	vt_to_state(a.qp, IBV_QPS_SQD);
	post_simple(&a, &b, 50, IBV_WR_RDMA_WRITE, 8);
	vt_check(vt_silent(a.send_cq), "SQD: a request in an empty queue waits");
	vt_check(!vt_event_comes(a.dev, IBV_EVENT_SQ_DRAINED, a.qp, 0.1), "SQD: no event when none was asked for");
	vt_to_state(a.qp, IBV_QPS_RTS);
	expect_wc("SQD to RTS: it goes on", a.send_cq, 50, IBV_WC_SUCCESS);
}

static void comm_est(void)
{
	fresh(IBV_QPT_RC);
	rtr(&a, &b);
	rtr(&b, &a);
	rts(&a);
	post_recv(&b, 1, local(b.mr), 100);
	post_simple(&a, &b, 2, IBV_WR_SEND, 8);
	expect_wc("a SEND to a queue pair in RTR is received", b.recv_cq, 1, IBV_WC_SUCCESS);
	expect_wc("and acknowledged", a.send_cq, 2, IBV_WC_SUCCESS);
	vt_check(vt_event_comes(b.dev, IBV_EVENT_COMM_EST, b.qp, 2), "COMM_EST for a packet in RTR");
}

/* --- errors between the two --------------------------------------------------------------------- */

/* what an error must look like from both sides */
struct outcome {
	enum ibv_wc_status requester;
	enum ibv_qp_state requester_state, responder_state;
	/* the status of the responder's receive 1; 0: it is flushed, or not touched */
	enum ibv_wc_status responder;
	/* at the responder; COMM_EST stands for none */
	enum ibv_event_type event;
};

#define NO_EVENT IBV_EVENT_COMM_EST

static void expect_error(const char *what, struct ibv_send_wr *wr, struct outcome o)
{
	char name[128];
	int rc = post_wr(&a, wr);

	if (rc) {
		vt_check(false, "%s: post: %s", what, strerror(rc));
		return;
	}
	snprintf(name, sizeof(name), "%s: requester", what);
	expect_wc(name, a.send_cq, wr->wr_id, o.requester);
	expect_state(name, &a, o.requester_state);
	snprintf(name, sizeof(name), "%s: responder", what);
	if (o.responder)
		expect_wc(name, b.recv_cq, 1, o.responder);
	expect_state(name, &b, o.responder_state);
	if (o.event != NO_EVENT)
		vt_check(vt_event_comes(b.dev, o.event, b.qp, 2), "%s: event %s", name, ibv_event_type_str(o.event));
}

static struct ibv_send_wr begin(struct ibv_sge *sge, enum ibv_wr_opcode opcode, uint32_t len)
{
	fresh(IBV_QPT_RC);
	connected();
	return request(&a, &b, sge, 7, opcode, len);
}

static const struct outcome access_error = {
	IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, IBV_QPS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR,
};
static const struct outcome invalid_request = {
	IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, IBV_QPS_ERR, 0, IBV_EVENT_QP_REQ_ERR,
};
static const struct outcome local_protection = {
	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, IBV_QPS_RTS, 0, NO_EVENT,
};

static void remote_errors(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = begin(&sge, IBV_WR_RDMA_WRITE, 64);
	wr.wr.rdma.rkey ^= 0xff00;
	expect_error("WRITE, no such key", &wr, access_error);
	wr = begin(&sge, IBV_WR_RDMA_WRITE, 64);
	wr.wr.rdma.remote_addr += ROOM - 63;
	expect_error("WRITE, one byte too far", &wr, access_error);
	wr = begin(&sge, IBV_WR_RDMA_WRITE, 5000);
	wr.wr.rdma.remote_addr += ROOM - 4999;
	memset(b.mr->addr, 0x11, ROOM);
	memset(a.mr->addr, 0x22, ROOM);
	expect_error("long WRITE, one byte too far", &wr, access_error);
	vt_check(((uint8_t *)b.mr->addr)[ROOM - 4999] == 0x11, "and not one byte of it was written");
	wr = begin(&sge, IBV_WR_RDMA_WRITE, 64);
	wr.wr.rdma.rkey = read_only_b->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)read_only_b->addr;
	expect_error("WRITE to a region for reading", &wr, access_error);
	wr = begin(&sge, IBV_WR_RDMA_READ, 64);
	wr.wr.rdma.rkey = private_b->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)private_b->addr;
	expect_error("READ from a region for nobody", &wr, access_error);
	wr = begin(&sge, IBV_WR_RDMA_READ, 64);
	wr.wr.rdma.remote_addr -= 1;
	expect_error("READ, one byte before", &wr, access_error);
	wr = begin(&sge, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	wr.wr.atomic.rkey = read_only_b->rkey;
	wr.wr.atomic.remote_addr = (uintptr_t)read_only_b->addr;
	expect_error("FETCH_ADD to a region for reading", &wr, access_error);
	wr = begin(&sge, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	wr.wr.atomic.remote_addr += 4;
	expect_error("FETCH_ADD, not aligned", &wr, invalid_request);
	wr = begin(&sge, IBV_WR_RDMA_WRITE, 0);
	wr.wr.rdma.rkey ^= 0xff00;
	post_wr(&a, &wr);
	expect_wc("WRITE of nothing needs no key", a.send_cq, 7, IBV_WC_SUCCESS);
}

/* the queue pair of the responder does not let in one kind of request */
static void queue_access(const char *what, enum ibv_wr_opcode opcode, int access)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	fresh(IBV_QPT_RC);
	access_of_b = access;
	connected();
	wr = request(&a, &b, &sge, 7, opcode, 8);
	expect_error(what, &wr, invalid_request);
}

static void queue_errors(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	queue_access("WRITE, queue pair without REMOTE_WRITE", IBV_WR_RDMA_WRITE,
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	queue_access("READ, queue pair without REMOTE_READ", IBV_WR_RDMA_READ,
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	queue_access("FETCH_ADD, queue pair without REMOTE_ATOMIC", IBV_WR_ATOMIC_FETCH_AND_ADD,
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	/* a receive that the message does not fit into */
	wr = begin(&sge, IBV_WR_SEND, 200);
	post_recv(&b, 1, local(b.mr), 100);
	expect_error("SEND longer than the receive", &wr, (struct outcome){
		IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, IBV_QPS_ERR,
		IBV_WC_LOC_LEN_ERR, NO_EVENT });
	wr = begin(&sge, IBV_WR_SEND, 5000);
	post_recv(&b, 1, local(b.mr), 4000);
	expect_error("SEND of many packets longer than the receive", &wr, (struct outcome){
		IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, IBV_QPS_ERR,
		IBV_WC_LOC_LEN_ERR, NO_EVENT });
	wr = begin(&sge, IBV_WR_SEND, 64);
	post_recv(&b, 1, (struct place){ (uintptr_t)b.mr->addr, b.mr->lkey ^ 0xff00 }, 100);
	expect_error("SEND to a receive with a bad key", &wr, (struct outcome){
		IBV_WC_REM_OP_ERR, IBV_QPS_ERR, IBV_QPS_ERR, IBV_WC_LOC_PROT_ERR, NO_EVENT });
	wr = begin(&sge, IBV_WR_SEND, 64);
	post_recv(&b, 1, local(read_only_b), 100);
	expect_error("SEND to a receive in memory for reading", &wr, (struct outcome){
		IBV_WC_REM_OP_ERR, IBV_QPS_ERR, IBV_QPS_ERR, IBV_WC_LOC_PROT_ERR, NO_EVENT });
}

/* With it kernel users name all memory; to a process it is nobody's key */
#define KERNELS_KEY 0xff

static void kernels_key(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = begin(&sge, IBV_WR_SEND, 64);
	sge.lkey = KERNELS_KEY;
	post_recv(&b, 1, local(b.mr), 100);
	expect_error("SEND with the kernel's local key", &wr, local_protection);
	wr = begin(&sge, IBV_WR_RDMA_READ, 64);
	sge.lkey = KERNELS_KEY;
	expect_error("READ into the kernel's local key", &wr, local_protection);
	wr = begin(&sge, IBV_WR_SEND, 64);
	post_recv(&b, 1, (struct place){ (uintptr_t)b.mr->addr, KERNELS_KEY }, 100);
	expect_error("SEND to a receive with the kernel's local key", &wr, (struct outcome){
		IBV_WC_REM_OP_ERR, IBV_QPS_ERR, IBV_QPS_ERR, IBV_WC_LOC_PROT_ERR, NO_EVENT });
	wr = begin(&sge, IBV_WR_RDMA_WRITE, 64);
	wr.wr.rdma.rkey = KERNELS_KEY;
	expect_error("WRITE with the kernel's local key", &wr, (struct outcome){
		IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, IBV_QPS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR });
}

static void local_errors(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = begin(&sge, IBV_WR_SEND, 64);
	sge.lkey ^= 0xff00;
	post_recv(&b, 1, local(b.mr), 100);
	expect_error("SEND with a bad local key", &wr, local_protection);
	vt_check(vt_silent(b.recv_cq), "and nothing arrives");
	wr = begin(&sge, IBV_WR_RDMA_WRITE, 64);
	sge.addr += ROOM - 63;
	expect_error("WRITE from one byte too far", &wr, local_protection);
	wr = begin(&sge, IBV_WR_RDMA_READ, 64);
	sge.lkey = read_only_a->lkey;
	sge.addr = (uintptr_t)read_only_a->addr;
	expect_error("READ into memory for reading", &wr, local_protection);
	wr = begin(&sge, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	sge.lkey ^= 0xff00;
	expect_error("FETCH_ADD with a bad local key", &wr, local_protection);
}

static void retries(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	double start;

	wr = begin(&sge, IBV_WR_SEND, 64);
	expect_error("SEND without a receive, rnr_retry 3", &wr, (struct outcome){
		IBV_WC_RNR_RETRY_EXC_ERR, IBV_QPS_ERR, IBV_QPS_RTS, 0, NO_EVENT });
	fresh(IBV_QPT_RC);
	ends_how.rnr_retry = 7;
	connected();
	wr = request(&a, &b, &sge, 7, IBV_WR_SEND, 64);
	post_wr(&a, &wr);
	usleep(300000);
	vt_check(vt_silent(a.send_cq), "rnr_retry 7 goes on for ever");
	post_recv(&b, 1, local(b.mr), 100);
	expect_wc("until there is a receive", a.send_cq, 7, IBV_WC_SUCCESS);
	wr = begin(&sge, IBV_WR_RDMA_WRITE, 64);
	vt_to_state(b.qp, IBV_QPS_RESET);
	start = vt_now();
	expect_error("nobody answers, retry_cnt 3, timeout 12", &wr, (struct outcome){
		IBV_WC_RETRY_EXC_ERR, IBV_QPS_ERR, IBV_QPS_RESET, 0, NO_EVENT });
	/* IBTA allows 1 to 4 times 4 * 16.8 ms; schedulers are coarse here */
	vt_check(vt_now() - start > 0.04, "and not too early: %.3f s", vt_now() - start);
	fresh(IBV_QPT_RC);
	ends_how.retry_cnt = 7;
	connected();
	vt_to_state(b.qp, IBV_QPS_RESET);
	wr = request(&a, &b, &sge, 7, IBV_WR_RDMA_READ, 64);
	expect_error("retry_cnt 7 means seven", &wr, (struct outcome){
		IBV_WC_RETRY_EXC_ERR, IBV_QPS_ERR, IBV_QPS_RESET, 0, NO_EVENT });
}

/* --- datagrams -------------------------------------------------------------------------------------- */

static void datagram_errors(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	int rc;

	fresh(IBV_QPT_UD);
	connected();
	ah = vt_ah(a.dev, &b.dev->gid);
	if (!ah)
		vt_die(VT_SETUP, "create ah: %s", strerror(errno));
	wr = request(&a, &b, &sge, 7, IBV_WR_RDMA_WRITE, 8);
	vt_check(post_wr(&a, &wr), "UD: a WRITE is refused");
	wr = request(&a, &b, &sge, 7, IBV_WR_SEND, ROOM);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	wr.wr.ud.remote_qkey = VT_QKEY;
	rc = post_wr(&a, &wr);
	if (rc)
		vt_check(true, "UD: longer than the MTU: post: %s", strerror(rc));
	else
		expect_wc("UD: longer than the MTU", a.send_cq, 7, IBV_WC_LOC_LEN_ERR);
	fresh(IBV_QPT_UD);
	connected();
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	sge.length = 64;
	sge.lkey ^= 0xff00;
	post_recv(&a, 1, local(a.mr), 200);
	post_wr(&a, &wr);
	expect_wc("UD: a bad local key", a.send_cq, 7, IBV_WC_LOC_PROT_ERR);
	expect_state("UD: a bad local key", &a, IBV_QPS_SQE);
	sge.lkey = a.mr->lkey;
	wr.wr_id = 8;
	post_wr(&a, &wr);
	expect_wc("UD: posted in SQE, flushed", a.send_cq, 8, IBV_WC_WR_FLUSH_ERR);
	vt_check(vt_silent(a.recv_cq), "UD: in SQE receives are left alone");
	rc = vt_to_state(a.qp, IBV_QPS_RTS);
	vt_check(!rc, "UD: SQE to RTS: %s", rc ? strerror(rc) : "done");
	post_recv(&b, 2, local(b.mr), 200);
	wr.wr_id = 9;
	post_wr(&a, &wr);
	expect_wc("UD: after SQE it sends again", a.send_cq, 9, IBV_WC_SUCCESS);
	expect_wc("UD: and it arrives", b.recv_cq, 2, IBV_WC_SUCCESS);
	ibv_destroy_ah(ah);
}

int main(int argc, char **argv)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS;

	vt_rxe_deviates = rxe_deviates;
	ends_open(argc, argv);
	a.mr = vt_mr(a.dev, ROOM, all);
	b.mr = vt_mr(b.dev, ROOM, all);
	read_only_a = vt_mr(a.dev, ROOM, IBV_ACCESS_REMOTE_READ);
	read_only_b = vt_mr(b.dev, ROOM, IBV_ACCESS_REMOTE_READ);
	private_b = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE);
	transitions(IBV_QPT_RC, "RC");
	transitions(IBV_QPT_UD, "UD");
	attributes(IBV_QPT_RC, "RC");
	attributes(IBV_QPT_UD, "UD");
	bad_values();
	query();
	posting();
	bad_posts();
	flush_order();
	reset_forgets();
	draining();
	comm_est();
	remote_errors();
	queue_errors();
	local_errors();
	kernels_key();
	retries();
	datagram_errors();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
