// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two connected QPs for the transport's tests, and a consumer's part: post, poll,
 * wait.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "lock.h"
#include "tests/transport_pair.h"
#include "transport/ah.h"
#include "transport/held.h"
#include "transport/hold.h"
#include "transport/patience.h"
#include "transport/run.h"
#include "turn.h"

/* As the driver has them */
static struct sroce_turn_limits pair_turn_limits;

/* --- data ---------------------------------------------------------------- */

static u8 side_byte(u32 i, u32 seed)
{
	u32 x = (i + seed * 7919) * 2654435761U;

	return x >> 24 ^ x >> 13;
}

void side_fill(struct side *s, u32 off, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		s->mem[off + i] = side_byte(i, seed);
}

bool side_filled(struct side *s, u32 off, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (s->mem[off + i] != side_byte(i, seed))
			return false;
	return true;
}

/* --- states -------------------------------------------------------------- */

void side_modify(struct side *s, struct ib_qp_attr *attr, int mask)
{
	struct sroce_path *path = NULL;

	if (mask & IB_QP_AV)
		path = sroce_path_get(&s->path.path);
	KUNIT_ASSERT_EQ(s->pair->test,
			sroce_qp_modify(s->qp, attr, mask, path), 0);
}

static void side_to_state(struct side *s, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	side_modify(s, &attr, IB_QP_STATE);
}

void side_to_error(struct side *s)
{
	side_to_state(s, IB_QPS_ERR);
}

void side_to_reset(struct side *s)
{
	side_to_state(s, IB_QPS_RESET);
}

void pair_reconnect(struct pair *p)
{
	struct side *a = &p->side[0], *b = &p->side[1];

	side_to_reset(a);
	side_to_reset(b);
	side_to_init(a);
	side_to_init(b);
	side_to_rtr(a);
	side_to_rtr(b);
	side_to_rts(a);
	side_to_rts(b);
}

void side_to_sqd(struct side *s, bool notify)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_SQD,
		.en_sqd_async_notify = notify,
	};

	side_modify(s, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY);
}

u32 side_first_psn(const struct side *s)
{
	return s->pair->config.psn + 0x1000 * (s - s->pair->side);
}

void side_to_init(struct side *s)
{
	int access = s->pair->config.access;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access < 0 ? 0 : access,
	};

	side_modify(s, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			      IB_QP_ACCESS_FLAGS);
}

void side_to_rtr(struct side *s)
{
	const struct pair_config *c = &s->pair->config;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = c->mtu,
		.dest_qp_num = pair_peer(s)->qp->qpn,
		.rq_psn = side_first_psn(pair_peer(s)),
		.max_dest_rd_atomic = c->rd_atomic,
	};

	side_modify(s, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			      IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			      IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (c->window)
		s->qp->req.window = c->window;
}

void side_to_rts(struct side *s)
{
	const struct pair_config *c = &s->pair->config;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = c->timeout,
		.retry_cnt = max(c->retry, 0),
		.rnr_retry = max(c->rnr_retry, 0),
		.sq_psn = side_first_psn(s),
		.max_rd_atomic = c->rd_atomic,
	};

	side_modify(s, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			      IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			      IB_QP_MAX_QP_RD_ATOMIC);
}

/* --- making -------------------------------------------------------------- */

static void side_event(struct ib_event *event, void *arg)
{
	struct side *s = arg;

	if (event->event < ARRAY_SIZE(s->events))
		atomic_inc(&s->events[event->event]);
}

static void side_notify(struct ib_cq *ibcq, void *arg)
{
	struct side *s = arg;

	atomic_inc(&s->notified);
}

const struct sroce_congestion pair_congestion = {
	.rp_enable = 1,
	.rp_initial_alpha_value = 1023,
	.rp_dce_tcp_g = 960,
	.rp_dce_tcp_rtt = 55,
	.rp_rate_reduce_monitor_period = 50,
	.rp_min_dec_fac = 50,
	.rp_time_reset = 300,
	.rp_threshold = 5,
	.rp_ai_rate = 5,
	.rp_hai_rate = 50,
};

static void side_make_port(struct side *s, int number)
{
	struct kunit *test = s->pair->test;

	s->port.xmit = &fake_net_xmit_ops;
	sroce_mr_table_init(&s->port.mrs);
	sroce_txq_pool_init(&s->port.queued);
	sroce_ah_table_init(&s->port);
	s->port.net.counters = alloc_percpu(struct sroce_counters);
	KUNIT_ASSERT_TRUE(test, !!s->port.net.counters);
	s->port.net.net_cookie = FAKE_NET_COOKIE;
	s->port.net.ifindex = 1000 + number;
	s->port.mtu = 4096;
	s->port.pkeys[0] = 0xffff;
	s->port.recovery.selective_repeat_en = !s->pair->config.plain;
	s->port.recovery.adp_retrans_en = s->pair->config.probes;
	if (s->pair->config.obeys) {
		s->port.net.congestion = pair_congestion;
		s->port.net.congestion.rp_min_rate = 1000;
	}
}

static void side_make_memory(struct side *s)
{
	struct kunit *test = s->pair->test;

	/* As any memory that a process may have: each of its pages can be held */
	s->mem = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP,
					PAIR_MEM_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, s->mem);
	s->mr = sroce_mr_alloc(&s->port.mrs, &s->pd, SROCE_MR_DMA, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->mr));
	s->mr->access = PAIR_ALL_ACCESS;
	sroce_mr_publish(s->mr);
}

static void side_make_cq(struct side *s, struct sroce_cq *cq)
{
	cq->ibcq.comp_handler = side_notify;
	cq->ibcq.event_handler = side_event;
	cq->ibcq.cq_context = s;
	KUNIT_ASSERT_EQ(s->pair->test, 0,
			sroce_cq_init(cq, &s->port, s->pair->config.cq_depth));
}

static void side_make_srq(struct side *s)
{
	struct sroce_srq *srq = &s->srq;

	srq->ibsrq.pd = &s->pd;
	srq->ibsrq.event_handler = side_event;
	srq->ibsrq.srq_context = s;
	srq->port = &s->port;
	/* Only processes have tags. The memory of these tests is the kernel's, so @user is false */
	sroce_lock_init(&srq->lock, srq->user || s->pair->config.tags);
	srq->max_sge = 4;
	KUNIT_ASSERT_EQ(s->pair->test, 0,
			sroce_ring_alloc(&srq->ring, s->pair->config.depth,
					 sizeof(struct sroce_recv_wqe) +
					 4 * sizeof(struct sroce_sge), false));
	if (!s->pair->config.tags)
		return;
	srq->ibsrq.srq_type = IB_SRQT_TM;
	KUNIT_ASSERT_EQ(s->pair->test, 0,
			sroce_srq_match_tags(srq, &s->rcq, s->pair->config.tags));
}

static bool side_is_xrc(const struct side *s)
{
	return s->pair->config.type == IB_QPT_XRC_INI;
}

/* An initiator's peer is a target */
static enum ib_qp_type side_type(const struct side *s)
{
	if (side_is_xrc(s) && s != s->pair->side)
		return IB_QPT_XRC_TGT;
	return s->pair->config.type;
}

/* Which work requests are for the target comes with each message */
static void side_publish_srq(struct side *s)
{
	s->srq.xrcd = &s->xrcd;
	s->srq.cq = &s->rcq;
	KUNIT_ASSERT_EQ(s->pair->test, 0, sroce_srq_publish(&s->srq));
}

/* Where ib_core keeps who has opened a target: nobody */
static void side_make_handles(struct side *s)
{
	struct kunit *test = s->pair->test;
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	spin_lock_init(&ibdev->qp_open_list_lock);
	s->ibqp.device = ibdev;
	INIT_LIST_HEAD(&s->ibqp.open_list);
}

static void side_make_qp(struct side *s)
{
	const struct pair_config *c = &s->pair->config;
	struct ib_qp_init_attr init = {
		.qp_type = side_type(s),
		.sq_sig_type = c->sig_all ? IB_SIGNAL_ALL_WR :
					    IB_SIGNAL_REQ_WR,
		.send_cq = &s->scq.ibcq,
		.recv_cq = &s->rcq.ibcq,
		.srq = c->srq && !side_is_xrc(s) ? &s->srq.ibsrq : NULL,
		.cap = {
			.max_send_wr = c->depth,
			.max_recv_wr = c->depth,
			.max_send_sge = SROCE_MAX_SGE,
			.max_recv_sge = SROCE_MAX_SGE,
			.max_inline_data = SROCE_MAX_INLINE,
		},
	};
	struct sroce_qp *qp;

	s->ibqp.pd = &s->pd;
	if (init.qp_type == IB_QPT_XRC_TGT) {
		side_make_handles(s);
		init.xrcd = &s->xrcd;
		init.send_cq = NULL;
		init.recv_cq = NULL;
		s->ibqp.pd = NULL;
	}
	s->ibqp.qp_type = init.qp_type;
	s->ibqp.event_handler = side_event;
	s->ibqp.qp_context = s;
	qp = sroce_qp_create(&s->port, &s->ibqp, &init, NULL, NULL);
	KUNIT_ASSERT_FALSE(s->pair->test, IS_ERR(qp));
	s->qp = qp;
	s->ibqp.qp_num = qp->qpn;
}

struct sroce_qp *side_another_qp(struct side *s, struct ib_qp *ibqp,
				 struct ib_qp_init_attr *init)
{
	struct kunit *test = s->pair->test;
	struct sroce_qp *qp;

	if (!ibqp)
		ibqp = kunit_kzalloc(test, sizeof(*ibqp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ibqp);
	ibqp->pd = &s->pd;
	ibqp->qp_type = init->qp_type;
	init->send_cq = &s->scq.ibcq;
	init->recv_cq = &s->rcq.ibcq;
	qp = sroce_qp_create(&s->port, ibqp, init, NULL, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(qp));
	ibqp->qp_num = qp->qpn;
	return qp;
}

/* Only the test's loop lets an ACK be late that waits for a request */
static void side_stop_ack_timer(struct side *s)
{
	struct sroce_ack_delay *d = &s->qp->resp.ack.delay;

	d->armed = true;
	sroce_timer_delete_sync(&d->timer);
}

static void no_look(struct sroce_timer *timer)
{
}

/* As if a timer had fired */
static void call(void (*func)(struct sroce_timer *timer), struct sroce_timer *timer)
{
	local_bh_disable();
	sroce_turn_begin(false);
	func(timer);
	sroce_run_pending();
	sroce_turn_end();
	local_bh_enable();
}

/* What the timer of a request that waits for a receive would call */
static void (*look)(struct sroce_timer *timer);

/* Only the test's loop looks again whether there is a receive */
static void side_stop_looks(struct side *s)
{
	struct sroce_timer *timer = &s->qp->resp.patience.timer;

	look = timer->func;
	timer->func = no_look;
}

/* What the timer of what is held would call, and what only the test's loop calls */
static void (*look_held)(struct sroce_timer *timer);

static void side_stop_hold(struct side *s)
{
	struct sroce_timer *timer = &s->qp->resp.hold.timer;

	look_held = timer->func;
	timer->func = no_look;
}

/* Let the timer find that a moment has come, which it does when that is not 0 */
static bool side_hold_time(struct side *s, u64 *moment)
{
	bool due;

	if (!s->qp)
		return false;
	spin_lock_bh(&s->qp->resp.half.lock);
	due = *moment;
	if (due)
		*moment = 1;
	spin_unlock_bh(&s->qp->resp.half.lock);
	if (!due)
		return false;
	side_look_held(s);
	return true;
}

bool side_ask(struct side *s)
{
	return side_hold_time(s, &s->qp->resp.hold.ask_at);
}

bool side_ask_again(struct side *s)
{
	struct sroce_requester *req;
	u8 asked;
	bool due;

	if (!s->qp)
		return false;
	req = &s->qp->req;
	spin_lock_bh(&req->half.lock);
	due = req->ask_due;
	asked = req->asked;
	if (due)
		req->ask_at = 1;
	spin_unlock_bh(&req->half.lock);
	if (due)
		call(req->timer.func, &req->timer);
	/* It may have been put off, for a moment and not in the test's time */
	if (due && req->ask_due && req->asked == asked)
		fsleep(1100);
	return due;
}

void side_look_held(struct side *s)
{
	call(look_held, &s->qp->resp.hold.timer);
}

bool side_grow_old(struct side *s)
{
	struct sroce_hold *hold = &s->qp->resp.hold;

	if (hold->held.n && !hold->look_at)
		side_look_held(s);
	return side_hold_time(s, &hold->look_at);
}

bool side_look(struct side *s)
{
	if (!s->qp || s->qp->resp.patience.state != SROCE_RESP_WAITS)
		return false;
	call(look, &s->qp->resp.patience.timer);
	return true;
}

static bool pair_look(struct fake_net *net)
{
	struct pair *p = container_of(net, struct pair, net);

	return side_look(&p->side[0]) | side_look(&p->side[1]);
}

/* One address handle, to the peer */
static void side_make_ah(struct side *s)
{
	struct kunit *test = s->pair->test;

	s->ah = sroce_ah_add(&s->port, &s->pd, sroce_path_get(&s->path.path),
			     GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->ah));
	KUNIT_ASSERT_EQ(test, PAIR_AHN, s->ah->ahn);
}

static void side_make(struct pair *p, int number)
{
	struct side *s = &p->side[number];

	s->pair = p;
	side_make_port(s, number);
	side_make_memory(s);
	side_make_cq(s, &s->scq);
	side_make_cq(s, &s->rcq);
	if (p->config.srq)
		side_make_srq(s);
	if (side_is_xrc(s))
		side_publish_srq(s);
	side_make_qp(s);
	side_stop_ack_timer(s);
	side_stop_looks(s);
	side_stop_hold(s);
	fake_path_init(&s->path, &p->net, &s->port, 1 + number, 2 - number);
	if (p->config.direct)
		s->path.path.direct_ifindex = 1000 + !number;
	s->path.path.direct_vlan_id = 0xffff;
	side_make_ah(s);
}

static void pair_fill_config(struct pair_config *c)
{
	c->type = c->type ?: IB_QPT_RC;
	c->srq = c->srq || c->tags || c->type == IB_QPT_XRC_INI;
	c->mtu = c->mtu ?: IB_MTU_1024;
	c->depth = c->depth ?: 64;
	c->cq_depth = c->cq_depth ?: 4 * c->depth;
	c->psn = c->psn ?: 0x123456;
	c->rd_atomic = c->rd_atomic ?: 8;
	c->retry = c->retry ?: 7;
	c->rnr_retry = c->rnr_retry ?: 7;
	c->timeout = c->timeout ?: 20;
	c->access = c->access ?: PAIR_ALL_ACCESS;
	c->seed = c->seed ?: 1;
}

struct pair *pair_create(struct kunit *test, const struct pair_config *config)
{
	struct pair *p = kvzalloc(sizeof(*p), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	test->priv = p;
	p->test = test;
	/* What is done when a call returns does not depend on the machine */
	pair_turn_limits = sroce_turn_limits;
	sroce_turn_limits.bytes = SZ_256M;
	sroce_turn_limits.ns = U64_MAX;
	p->config = *config;
	pair_fill_config(&p->config);
	p->mtu = ib_mtu_enum_to_int(p->config.mtu);
	fake_net_init(&p->net, p->config.seed);
	p->net.batch = p->config.batch ?: p->net.batch;
	p->net.idle = pair_look;
	for (i = 0; i < 2; i++)
		side_make(p, i);
	for (i = 0; i < 2; i++) {
		side_to_init(&p->side[i]);
		side_to_rtr(&p->side[i]);
	}
	for (i = 0; i < 2; i++)
		side_to_rts(&p->side[i]);
	return p;
}

/* --- ending -------------------------------------------------------------- */

static void side_destroy_qp(struct side *s)
{
	if (s->qp)
		sroce_qp_destroy(s->qp);
	s->qp = NULL;
}

static void side_destroy(struct side *s)
{
	if (s->scq.port)
		sroce_cq_cleanup(&s->scq);
	if (s->rcq.port)
		sroce_cq_cleanup(&s->rcq);
	if (s->srq.xrcd)
		sroce_srq_unpublish(&s->srq);
	sroce_srq_end_tags(&s->srq);
	sroce_ring_free(&s->srq.ring);
	if (!IS_ERR_OR_NULL(s->mr))
		sroce_mr_free(s->mr);
	if (s->pair) {
		sroce_ah_table_destroy(&s->port);
		sroce_mr_table_destroy(&s->port.mrs);
		sroce_txq_pool_end(&s->port.queued);
	}
	free_percpu(s->port.net.counters);
	free_pages((unsigned long)s->mem, PAIR_MEM_ORDER);
	/* Whoever sent on the path has let go of it */
	if (s->path.net)
		KUNIT_EXPECT_EQ(s->pair->test, 1,
				refcount_read(&s->path.path.refs));
}

/* Address handles let go of their paths after a grace period */
static void pair_remove_ahs(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		if (!IS_ERR_OR_NULL(p->side[i].ah))
			sroce_ah_remove(&p->side[i].port, p->side[i].ah);
	rcu_barrier();
}

void pair_exit(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	if (!p)
		return;
	test->priv = NULL;
	/* What waits for a receive is lent by the other side */
	while (pair_look(&p->net))
		;
	sroce_turn_limits = pair_turn_limits;
	for (i = 0; i < 2; i++)
		side_destroy_qp(&p->side[i]);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&p->net.open));
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_waiting_memory.bytes));
	KUNIT_EXPECT_EQ(test, 0, atomic_long_read(&sroce_held_memory.bytes));
	/* Packets outlive QPs */
	fake_net_purge(&p->net);
	pair_remove_ahs(p);
	for (i = 0; i < 2; i++)
		side_destroy(&p->side[i]);
	kvfree(p);
}

/* --- work requests ------------------------------------------------------- */

struct work *work_init(struct work *w, u8 opcode, u64 wr_id)
{
	memset(w, 0, sizeof(*w));
	w->wqe.opcode = opcode;
	w->wqe.wr_id = wr_id;
	w->wqe.flags = SROCE_SEND_SIGNALED;
	return w;
}

void work_local(struct side *s, struct work *w, u32 off, u32 len)
{
	w->sge[w->wqe.num_sge++] = (struct sroce_sge){
		.addr = (uintptr_t)s->mem + off,
		.length = len,
		.lkey = s->mr->key,
	};
}

void work_remote(struct side *s, struct work *w, u32 off)
{
	struct side *peer = pair_peer(s);
	u8 op = w->wqe.opcode;

	/* The receiver says where it goes */
	if (op == SROCE_WR_SEND || op == SROCE_WR_SEND_IMM ||
	    op == SROCE_WR_SEND_INV)
		return;
	w->wqe.rdma.remote_addr = (uintptr_t)peer->mem + off;
	w->wqe.rdma.rkey = peer->mr->key;
}

void work_atomic(struct side *s, struct work *w, u32 off, u64 compare_add,
		 u64 swap)
{
	struct side *peer = pair_peer(s);

	w->wqe.atomic.remote_addr = (uintptr_t)peer->mem + off;
	w->wqe.atomic.rkey = peer->mr->key;
	w->wqe.atomic.compare_add = compare_add;
	w->wqe.atomic.swap = swap;
}

struct work *work_rdma(struct side *s, struct work *w, u8 opcode, u64 wr_id,
		       u32 local, u32 remote, u32 len)
{
	work_init(w, opcode, wr_id);
	/* These have neither */
	if (opcode == SROCE_WR_LOCAL_INV || opcode == SROCE_WR_BIND_MW ||
	    opcode == SROCE_WR_REG_MR)
		return w;
	work_local(s, w, local, len);
	work_remote(s, w, remote);
	return w;
}

struct work *work_send(struct side *s, struct work *w, u64 wr_id, u32 local,
		       u32 len)
{
	work_init(w, SROCE_WR_SEND, wr_id);
	work_local(s, w, local, len);
	return w;
}

static int work_fill(struct sroce_qp *qp, struct sroce_send_wqe *wqe,
		     const struct ib_send_wr *wr)
{
	const struct work *w = container_of(wr, struct work, wr);

	*wqe = w->wqe;
	if (w->wqe.flags & SROCE_SEND_INLINE)
		memcpy(wqe + 1, w->inline_data,
		       min_t(u32, w->wqe.inline_len, qp->max_inline));
	else
		memcpy(wqe + 1, w->sge,
		       min_t(u32, w->wqe.num_sge, qp->max_send_sge) *
		       sizeof(w->sge[0]));
	return 0;
}

int side_try_post(struct side *s, struct work *w)
{
	const struct ib_send_wr *bad;

	if (!w->wqe.remote_srqn)
		w->wqe.remote_srqn = pair_peer(s)->srq.srqn;
	return sroce_qp_post_send(s->qp, &w->wr, &bad, work_fill);
}

void side_post(struct side *s, struct work *w)
{
	KUNIT_ASSERT_EQ(s->pair->test, side_try_post(s, w), 0);
}

int srq_try_recv(struct sroce_srq *srq, const struct ib_recv_wr *wr)
{
	int err;

	err = sroce_recv_ring_write(&srq->ring, srq->prod, srq->max_sge, wr);
	if (!err)
		/* As any poster: the entry is there before the index */
		smp_store_release(&srq->ring.hdr->prod, ++srq->prod);
	return err;
}

int side_try_recv(struct side *s, const struct ib_recv_wr *wr)
{
	const struct ib_recv_wr *bad;

	if (s->pair->config.srq)
		return srq_try_recv(&s->srq, wr);
	return sroce_qp_post_recv(s->qp, wr, &bad);
}

const struct ib_recv_wr *recv_init(struct recv *r, struct side *s, u64 wr_id,
				   u32 off, u32 len)
{
	r->sge = (struct ib_sge){
		.addr = (uintptr_t)s->mem + off,
		.length = len,
		.lkey = s->mr->key,
	};
	r->wr = (struct ib_recv_wr){
		.wr_id = wr_id,
		.sg_list = &r->sge,
		.num_sge = 1,
	};
	return &r->wr;
}

void side_recv(struct side *s, u64 wr_id, u32 off, u32 len)
{
	struct recv r;

	KUNIT_ASSERT_EQ(s->pair->test,
			side_try_recv(s, recv_init(&r, s, wr_id, off, len)), 0);
}

/* --- time ---------------------------------------------------------------- */

/* What the requester's timer would do */
static void side_fire(struct side *s)
{
	struct sroce_timer *timer = &s->qp->req.timer;

	call(timer->func, timer);
}

/* Makes the deadline pass */
bool side_expire(struct side *s)
{
	struct sroce_requester *req = &s->qp->req;
	bool due;

	/* It may stand for a rate alone, which has to come all the same */
	if (!READ_ONCE(req->deadline))
		return false;
	sroce_timer_delete_sync(&req->timer);
	spin_lock_bh(&req->half.lock);
	due = req->deadline;
	if (due)
		req->deadline = 1;
	spin_unlock_bh(&req->half.lock);
	if (!due)
		return false;
	s->pair->expired++;
	side_fire(s);
	return true;
}

bool side_probe(struct side *s)
{
	struct sroce_requester *req = &s->qp->req;

	if (!READ_ONCE(req->probe.at) || !READ_ONCE(req->deadline))
		return false;
	sroce_timer_delete_sync(&req->timer);
	spin_lock_bh(&req->half.lock);
	req->probe.at = min(req->probe.at, 1);
	spin_unlock_bh(&req->half.lock);
	/* As if so much time had passed for the peer, too */
	WRITE_ONCE(pair_peer(s)->qp->resp.hold.answered_at, 0);
	side_fire(s);
	return true;
}

bool side_holds_ack(const struct side *s)
{
	const struct sroce_ack_delay *d = &s->qp->resp.ack.delay;

	return d->state == SROCE_ACK_HELD || d->state == SROCE_ACK_AGED;
}

static bool side_expire_ack(struct side *s)
{
	struct sroce_ack_delay *d = &s->qp->resp.ack.delay;

	if (!side_holds_ack(s))
		return false;
	call(d->timer.func, &d->timer);
	side_stop_ack_timer(s);
	return true;
}

static u64 side_deadline(struct side *s)
{
	return READ_ONCE(s->qp->req.deadline) ?: U64_MAX;
}

/*
 * Where a rate holds, its timer may have fired: the half is on a CPU's list, or at work,
 * and what it sends is there in a moment
 */
static bool side_goes_on(struct side *s)
{
	bool paced = READ_ONCE(s->qp->congested) || s->qp->req.pace.rate;
	int looks;

	for (looks = 0; looks < 100 && paced; looks++) {
		fsleep(100);
		if (READ_ONCE(s->qp->req.pace.wake) ||
		    fake_net_deliver(&s->pair->net))
			return true;
	}
	return false;
}

/* Does a side wait for the time that its rate gives it? Then it has come */
static bool side_paced(struct side *s)
{
	u64 wake = READ_ONCE(s->qp->req.pace.wake);
	u64 now = ktime_get_ns();

	if (!wake)
		return side_goes_on(s);
	if (now < wake)
		fsleep(div_u64(wake - now, NSEC_PER_USEC) + 1);
	/* The timer's own softirq may be a little later */
	fsleep(10);
	return true;
}

/* Likewise for READ responses */
static bool side_reply_paced(struct side *s)
{
	if (!sroce_timer_is_set(&s->qp->congestion.timer))
		return false;
	fsleep(50);
	return true;
}

bool pair_paced(struct pair *p)
{
	return side_paced(&p->side[0]) || side_paced(&p->side[1]) ||
	       side_reply_paced(&p->side[0]) || side_reply_paced(&p->side[1]);
}

bool pair_step(struct pair *p)
{
	struct side *first = &p->side[0];

	if (fake_net_deliver(&p->net))
		return true;
	/* A run that used up its budget goes on in a tasklet */
	usleep_range(10, 50);
	if (fake_net_deliver(&p->net))
		return true;
	if (side_expire_ack(&p->side[0]) || side_expire_ack(&p->side[1]))
		return true;
	if (side_ask(&p->side[0]) || side_ask(&p->side[1]))
		return true;
	if (side_ask_again(&p->side[0]) || side_ask_again(&p->side[1]))
		return true;
	if (pair_paced(p))
		return true;
	/* A real timer may have sent something since we looked: then nobody waits in vain */
	if (fake_net_deliver(&p->net))
		return true;
	if (side_probe(&p->side[0]) || side_probe(&p->side[1]))
		return true;
	if (side_deadline(&p->side[1]) < side_deadline(first))
		first = &p->side[1];
	return side_expire(first);
}

static u32 pair_completions(struct sroce_cq *cq)
{
	return READ_ONCE(cq->ring.index) - READ_ONCE(cq->cons);
}

bool pair_wait(struct pair *p, struct sroce_cq *cq, u32 n)
{
	int steps = 1000000;

	while (pair_completions(cq) < n) {
		if (!--steps || !pair_step(p))
			return pair_completions(cq) >= n;
		cond_resched();
	}
	return true;
}

void pair_settle(struct pair *p)
{
	int steps = 100000;

	while (pair_step(p) && --steps)
		cond_resched();
	KUNIT_EXPECT_GT(p->test, steps, 0);
}

void pair_deliver(struct pair *p)
{
	fake_net_settle(&p->net);
	usleep_range(10, 50);
	fake_net_settle(&p->net);
}

/* --- completions --------------------------------------------------------- */

bool side_poll(struct sroce_cq *cq, struct ib_wc *wc)
{
	return sroce_cq_poll(cq, 1, wc) == 1;
}

bool side_poll_cqe(struct sroce_cq *cq, struct sroce_cqe *cqe)
{
	unsigned long irq = sroce_lock(&cq->lock, cq->user);
	bool got = cq->cons != cq->ring.index;

	if (got)
		memcpy(cqe, sroce_ring_entry(&cq->ring, cq->cons++), sizeof(*cqe));
	sroce_unlock(&cq->lock, cq->user, irq);
	return got;
}

void side_expect(struct side *s, struct sroce_cq *cq, u64 wr_id,
		 enum ib_wc_status status, struct ib_wc *wc)
{
	struct kunit *test = s->pair->test;

	KUNIT_ASSERT_TRUE_MSG(test, pair_wait(s->pair, cq, 1),
			      "no completion of %llu", wr_id);
	KUNIT_ASSERT_TRUE(test, side_poll(cq, wc));
	KUNIT_EXPECT_EQ(test, wc->wr_id, wr_id);
	KUNIT_EXPECT_EQ_MSG(test, wc->status, status, "wr_id %llu", wr_id);
	KUNIT_EXPECT_PTR_EQ(test, wc->qp, &s->ibqp);
}

void side_expect_none(struct side *s)
{
	struct ib_wc wc;

	KUNIT_EXPECT_FALSE_MSG(s->pair->test, side_poll(&s->scq, &wc),
			       "send %llu, status %d", wc.wr_id, wc.status);
	KUNIT_EXPECT_FALSE_MSG(s->pair->test, side_poll(&s->rcq, &wc),
			       "recv %llu, status %d", wc.wr_id, wc.status);
}

/* --- packets ------------------------------------------------------------- */

static bool rule_applies(const struct rule *r, const struct fake_packet *p)
{
	return p->path == &r->from->path && p->t.op == r->op &&
	       (!r->by_psn || p->t.psn == r->psn);
}

static enum fake_verdict rules_filter(struct fake_net *net,
				      const struct fake_packet *p)
{
	struct rule *r;

	for (r = net->arg; r->from; r++) {
		if (!rule_applies(r, p) || (r->count && r->hits == r->count))
			continue;
		if (r->skip) {
			r->skip--;
			continue;
		}
		r->hits++;
		return r->verdict;
	}
	return FAKE_PASS;
}

struct rule rule_psn(struct side *from, u8 op, u32 psn, u32 count,
		     enum fake_verdict verdict)
{
	return (struct rule){
		.from = from,
		.op = op,
		.psn = psn & SROCE_PSN_MASK,
		.by_psn = true,
		.count = count,
		.verdict = verdict,
	};
}

struct rule rule_nth(struct side *from, u8 op, u32 skip, u32 count,
		     enum fake_verdict verdict)
{
	return (struct rule){
		.from = from,
		.op = op,
		.skip = skip,
		.count = count,
		.verdict = verdict,
	};
}

void pair_rules(struct pair *p, struct rule *rules)
{
	p->net.arg = rules;
	p->net.filter = rules ? rules_filter : NULL;
}

const struct fake_log *side_sent_nth(struct side *s, u8 op, int syndrome, u32 n)
{
	struct fake_net *net = &s->pair->net;
	u32 i = net->sent > FAKE_NET_LOG ? net->sent - FAKE_NET_LOG : 0;
	const struct fake_log *l;

	for (; i != net->sent; i++) {
		l = &net->log[i % FAKE_NET_LOG];
		if (l->path == &s->path && l->op == op &&
		    (syndrome < 0 || l->syndrome == syndrome) && !n--)
			return l;
	}
	return NULL;
}

u32 side_sent(struct side *s, u8 op, int syndrome)
{
	u32 n = 0;

	while (side_sent_nth(s, op, syndrome, n))
		n++;
	return n;
}

struct sroce_train side_train(struct side *from, u8 op, u32 psn)
{
	return (struct sroce_train){
		.op = op,
		.service = from->qp->kind->service,
		.flags = SROCE_START | SROCE_END | from->qp->kind->train_flags,
		.pkey = 0xffff,
		.mtu = from->pair->mtu,
		.dqpn = pair_peer(from)->qp->qpn,
		.psn = psn & SROCE_PSN_MASK,
		.npkts = 1,
		.rkey = pair_peer(from)->mr->key,
		.va = (uintptr_t)pair_peer(from)->mem,
		.srqn = pair_peer(from)->srq.srqn,
	};
}

void side_inject(struct side *from, const struct sroce_train *t)
{
	KUNIT_ASSERT_TRUE(from->pair->test, fake_net_inject(&from->path, t));
}

void side_inject_ack(struct side *from, u8 syndrome, u32 psn)
{
	struct sroce_train t = side_train(from, SROCE_OP_ACK, psn);

	t.flags = SROCE_START | SROCE_END;
	t.syndrome = syndrome;
	side_inject(from, &t);
}

/* --- a message that most tests are about ------------------------------------ */

void side_write(struct side *s, u64 id, u32 len)
{
	struct work w;

	side_fill(s, SIDE_FROM, len, id);
	side_post(s, work_rdma(s, &w, SROCE_WR_RDMA_WRITE, id, SIDE_FROM, SIDE_TO, len));
}

void side_expect_written(struct side *s, u64 id, u32 len)
{
	side_expect_send(s, id, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(s->pair->test, side_filled(pair_peer(s), SIDE_TO, len, id));
}
