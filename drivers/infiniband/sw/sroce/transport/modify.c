// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * State changes that the consumer asks for. Which are legal was checked before
 * (ib_modify_qp_is_ok()) by verbs/qp.c, which comes here; here they take effect, under
 * both locks.
 */
#include <linux/nospec.h>

#include "path.h"
#include "transport/ack_delay.h"
#include "transport/answers.h"
#include "transport/batch.h"
#include "transport/congestion.h"
#include "transport/direct.h"
#include "transport/early.h"
#include "transport/fault.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/lateness.h"
#include "transport/pace.h"
#include "transport/probe.h"
#include "transport/repair.h"
#include "transport/responder.h"
#include "transport/responder_tag.h"
#include "transport/run.h"
#include "transport/trace.h"
#include "transport/window.h"

/*
 * What a modification needs, allocated before the locks are taken; afterwards what it has
 * replaced, to be freed when they are dropped; and the peer that the QP had
 */
struct sroce_modify {
	struct sroce_path *path;
	struct sroce_resp_answers answers;
	u32 peer;
};

static int sroce_modify_alloc(struct sroce_modify *m,
			      const struct ib_qp_attr *attr, int mask,
			      bool user)
{
	if (!(mask & IB_QP_MAX_DEST_RD_ATOMIC))
		return 0;
	return sroce_answers_alloc(&m->answers, attr->max_dest_rd_atomic, user);
}

static void sroce_modify_free(struct sroce_modify *m)
{
	sroce_path_put(m->path);
	sroce_answers_free(&m->answers);
}

static void sroce_modify_set_rights(struct sroce_qp_attr *to,
				    const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = array_index_nospec(attr->pkey_index,
						    SROCE_PKEYS);
	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = attr->qkey;
	/* Senders of this host read it without a lock (sroce_direct_listens()) */
	if (mask & IB_QP_DEST_QPN)
		WRITE_ONCE(to->dest_qp_num, attr->dest_qp_num & SROCE_QPN_MASK);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
}

static void sroce_modify_set_retries(struct sroce_qp_attr *to,
				     const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
}

static void sroce_modify_set_rate(struct sroce_qp *qp, u32 kbit)
{
	qp->attr.rate_limit = kbit;
	sroce_pace_set(&qp->req.pace, kbit * 125ULL);
}

static void sroce_modify_set_psns(struct sroce_qp *qp,
				  const struct ib_qp_attr *attr, int mask)
{
	struct sroce_requester *req = &qp->req;
	u32 psn;

	if (mask & IB_QP_SQ_PSN) {
		psn = attr->sq_psn & SROCE_PSN_MASK;
		req->send_psn = psn;
		WRITE_ONCE(req->next_psn, psn);
		WRITE_ONCE(req->una_psn, psn);
		req->retries = qp->attr.retry_cnt;
		req->rnr_retries = qp->attr.rnr_retry;
	}
	if (mask & IB_QP_RQ_PSN) {
		qp->resp.epsn = attr->rq_psn & SROCE_PSN_MASK;
		qp->resp.ack.end = qp->resp.epsn;
	}
}

/* Another path, or one used in another way: what was measured is not of it */
static void sroce_modify_forget_path(struct sroce_qp *qp)
{
	if (qp->mtu)
		sroce_window_init(qp);
	sroce_repair_reset(&qp->req);
	sroce_lateness_reset(&qp->req.early.lateness);
	sroce_lateness_reset(&qp->resp.hold.lateness);
	sroce_congestion_reset(qp);
}

static void sroce_modify_set_mtu(struct sroce_qp *qp,
				 const struct ib_qp_attr *attr)
{
	qp->attr.path_mtu = attr->path_mtu;
	qp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	sroce_modify_forget_path(qp);
}

/* RESET: as after create, but for the attributes of the queues themselves */
static void sroce_modify_reset(struct sroce_qp *qp, struct sroce_modify *m)
{
	struct sroce_requester *req = &qp->req;

	req->posted = 0;
	req->fetched = 0;
	req->send = 0;
	req->reads = 0;
	req->rd_outstanding = 0;
	req->rnr_wait = false;
	sroce_fault_reset(&req->half);
	req->rnr_naks = 0;
	req->asked = 0;
	req->ask_at = 0;
	req->ask_due = false;
	sroce_early_reset(qp);
	req->key_looks = 0;
	req->recovering = false;
	sroce_repair_reset(req);
	req->retried = 0;
	req->draining = false;
	req->failed = false;
	req->deadline = 0;
	sroce_probe_cancel(req);
	sroce_pace_set(&req->pace, 0);
	sroce_congestion_reset(qp);
	sroce_batch_reset(req);
	sroce_ring_reset(&req->ring);
	qp->resp.posted = 0;
	if (!qp->srq)
		sroce_ring_reset(&qp->resp.ring);
	sroce_responder_forget_tags(qp);
	sroce_responder_reset(&qp->resp);
	swap(qp->path, m->path);
	m->peer = qp->attr.dest_qp_num;
	memset(&qp->attr, 0, sizeof(qp->attr));
}

static void sroce_modify_enter_state(struct sroce_qp *qp,
				     const struct ib_qp_attr *attr, int mask,
				     struct sroce_modify *m)
{
	enum ib_qp_state from, to = attr->qp_state;

	spin_lock(&qp->state_lock);
	from = qp->state;
	WRITE_ONCE(qp->state, to);
	spin_unlock(&qp->state_lock);
	trace_sroce_qp_state(qp, from, to);

	switch (to) {
	case IB_QPS_RESET:
		sroce_modify_reset(qp, m);
		break;
	case IB_QPS_RTS:
		qp->req.draining = false;
		break;
	case IB_QPS_SQD:
		/* SQD to SQD only changes attributes: it does not begin to drain again */
		if (from == IB_QPS_SQD)
			break;
		qp->req.draining = true;
		/* Each modification that wants the event asks for it */
		qp->req.drained_event = mask & IB_QP_EN_SQD_ASYNC_NOTIFY &&
					attr->en_sqd_async_notify;
		break;
	default:
		break;
	}
}

static void sroce_modify_apply(struct sroce_qp *qp,
			       const struct ib_qp_attr *attr, int mask,
			       struct sroce_modify *m)
{
	if (mask & IB_QP_AV) {
		qp->attr.ah_attr = attr->ah_attr;
		/* No reference to the GID is held here */
		qp->attr.ah_attr.grh.sgid_attr = NULL;
		swap(qp->path, m->path);
		sroce_modify_forget_path(qp);
	}
	if (mask & IB_QP_PATH_MTU)
		sroce_modify_set_mtu(qp, attr);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		sroce_answers_exchange(&qp->resp.answers, &m->answers);
	sroce_modify_set_rights(&qp->attr, attr, mask);
	sroce_modify_set_retries(&qp->attr, attr, mask);
	sroce_modify_set_psns(qp, attr, mask);
	if (mask & IB_QP_RATE_LIMIT)
		sroce_modify_set_rate(qp, attr->rate_limit);
	if (mask & IB_QP_STATE)
		sroce_modify_enter_state(qp, attr, mask, m);
}

/* Is the transition legal still? An error may have moved the QP since it was checked */
static bool sroce_modify_still_legal(const struct sroce_qp *qp,
				     const struct ib_qp_attr *attr, int mask)
{
	if (!(mask & IB_QP_STATE) || attr->qp_state == IB_QPS_RESET ||
	    attr->qp_state == IB_QPS_ERR)
		return true;
	if (sroce_qp_state(qp) == IB_QPS_SQE)
		return attr->qp_state == IB_QPS_RTS;
	return sroce_qp_state(qp) != IB_QPS_ERR;
}

/*
 * Nothing of its life before is in the inbox when the QP is connected again. A run drops
 * as much as a turn has time for, and nothing comes after that.
 */
static void sroce_modify_drop_inbox(struct sroce_half *half)
{
	u32 runs = SROCE_INBOX_MAX;

	do {
		sroce_half_run_here(half, NULL);
		cond_resched();
	} while (--runs && READ_ONCE(half->inbox_len));
}

static void sroce_modify_state_entered(struct sroce_qp *qp, enum ib_qp_state to,
				       u32 peer)
{
	/*
	 * Queues flush, go on, or notice that they have drained. In RESET the halves drop
	 * the trains in their inboxes, before we wait for the memory that this QP has
	 * lent. The sender of these trains may be reset at the same time and waits for
	 * them; and it may be this QP, which can be connected to itself.
	 */
	if (to != IB_QPS_RESET) {
		sroce_half_run(&qp->req.half);
		sroce_half_run(&qp->resp.half);
		return;
	}
	sroce_modify_drop_inbox(&qp->req.half);
	sroce_modify_drop_inbox(&qp->resp.half);
	sroce_qp_wait_lent(qp, peer);
	sroce_qp_forget_completions(qp);
}

/*
 * The connection ends. What has come counts: what the peer is owed for it leaves before the QP
 * is in its new state, and in ERR answers that are in the inbox do not come too late.
 */
static void sroce_modify_settle(struct sroce_qp *qp, enum ib_qp_state to)
{
	if (to == IB_QPS_RESET)
		sroce_ack_settle(qp);
	if (to != IB_QPS_ERR)
		return;
	sroce_ack_settle_once(qp);
	if (READ_ONCE(qp->req.half.inbox_len) || READ_ONCE(qp->req.early.held.n))
		sroce_half_run(&qp->req.half);
}

int sroce_qp_modify(struct sroce_qp *qp, const struct ib_qp_attr *attr,
		    int mask, struct sroce_path *path)
{
	struct sroce_modify m = { .path = path };
	int err;

	err = sroce_modify_alloc(&m, attr, mask, qp->user);
	if (err)
		return err;

	if (mask & IB_QP_STATE)
		sroce_modify_settle(qp, attr->qp_state);
	spin_lock_bh(&qp->req.half.lock);
	spin_lock(&qp->resp.half.lock);
	if (!qp->dead && sroce_modify_still_legal(qp, attr, mask) &&
	    (!(mask & IB_QP_MAX_DEST_RD_ATOMIC) ||
	     sroce_answers_fit(&qp->resp.answers, &m.answers)))
		sroce_modify_apply(qp, attr, mask, &m);
	else
		err = -EINVAL;
	spin_unlock(&qp->resp.half.lock);
	spin_unlock_bh(&qp->req.half.lock);

	/* On failure the path stays the caller's */
	if (err)
		m.path = NULL;
	sroce_modify_free(&m);
	if (err)
		return err;
	if (mask & IB_QP_STATE)
		sroce_modify_state_entered(qp, attr->qp_state, m.peer);
	else if (mask & IB_QP_RATE_LIMIT) /* what waits at the old rate looks again */
		sroce_half_run(&qp->req.half);
	return 0;
}

void sroce_qp_query(struct sroce_qp *qp, struct ib_qp_attr *attr)
{
	const struct sroce_qp_attr *set = &qp->attr;
	enum ib_qp_state state;

	spin_lock_bh(&qp->req.half.lock);
	spin_lock(&qp->resp.half.lock);
	/* An error takes neither of the locks */
	state = sroce_qp_state(qp);
	*attr = (struct ib_qp_attr){
		.qp_state = state,
		.cur_qp_state = state,
		.path_mtu = set->path_mtu,
		.qkey = set->qkey,
		.rq_psn = qp->resp.epsn,
		.sq_psn = qp->req.next_psn,
		.dest_qp_num = set->dest_qp_num,
		.qp_access_flags = set->qp_access_flags,
		.ah_attr = set->ah_attr,
		.pkey_index = set->pkey_index,
		.sq_draining = qp->req.draining,
		.max_rd_atomic = set->max_rd_atomic,
		.max_dest_rd_atomic = set->max_dest_rd_atomic,
		.min_rnr_timer = set->min_rnr_timer,
		.port_num = set->port_num,
		.timeout = set->timeout,
		.retry_cnt = set->retry_cnt,
		.rnr_retry = set->rnr_retry,
		.rate_limit = set->rate_limit,
	};
	spin_unlock(&qp->resp.half.lock);
	spin_unlock_bh(&qp->req.half.lock);
}

bool sroce_qp_query_path(struct sroce_qp *qp, __be16 *sport, u8 *tclass)
{
	const struct sroce_path *path;

	/* Either half keeps the path */
	spin_lock_bh(&qp->req.half.lock);
	path = qp->path;
	if (path) {
		*sport = path->sport;
		*tclass = path->tclass;
	}
	spin_unlock_bh(&qp->req.half.lock);
	return path;
}
