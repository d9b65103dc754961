// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the responder sends: READ responses and atomic results in the order of
 * their requests, then one ACK or NAK for everything that came meanwhile, so
 * that no ACK overtakes a READ response (IBA 9.7.5.1).
 *
 * The other files of the responder only write down what is owed. The half comes here
 * when it has taken its requests (responder.c); trains go on to send.c.
 */
#include "transport/ack_delay.h"
#include "transport/answers.h"
#include "transport/congestion.h"
#include "transport/gather.h"
#include "transport/hold.h"
#include "transport/internal.h"
#include "transport/patience.h"
#include "transport/responder.h"
#include "transport/responder_reply.h"
#include "transport/responder_verdict.h"
#include "transport/run.h"
#include "transport/send.h"
#include "transport/xrc.h"
#include "turn.h"

static void sroce_reply_init(struct sroce_qp *qp, struct sroce_train *t,
			     enum sroce_op op, u32 psn)
{
	*t = (struct sroce_train){
		.op = op,
		.service = qp->kind->service,
		.flags = SROCE_START | SROCE_END,
		.pkey = sroce_qp_pkey(qp),
		.mtu = qp->mtu,
		.dqpn = qp->attr.dest_qp_num,
		.psn = psn,
		.npkts = 1,
		.syndrome = SROCE_AETH_ACK_UNLIMITED,
		.msn = qp->resp.msn,
	};
}

/* A value, or, for FLUSH and ATOMIC WRITE, a READ response without data */
static void sroce_reply_single(struct sroce_qp *qp, struct sroce_tx *tx,
			       const struct sroce_rd_res *res)
{
	bool value = res->op == SROCE_OP_CMP_SWAP ||
		     res->op == SROCE_OP_FETCH_ADD;
	struct sroce_train t;

	sroce_reply_init(qp, &t, value ? SROCE_OP_ATOMIC_ACK :
			 SROCE_OP_READ_RESP, res->psn);
	t.compare = res->orig;
	sroce_send_train(&qp->resp.half, tx, qp->path, &t, NULL);
}

/* 0, -EAGAIN when pages are being brought in, or another errno */
static int sroce_reply_read_data(struct sroce_qp *qp, struct sroce_tx *tx,
				 struct sroce_rd_job *job)
{
	const struct sroce_rd_res *res = &job->res;
	u32 most = min3(res->npsn - job->sent, (u32)SROCE_TRAIN_PACKETS,
			(u32)SROCE_TRAIN_BYTES / qp->mtu);
	u32 n = sroce_congestion_room(qp, most);
	u32 off = job->sent * qp->mtu;
	u32 wanted = min(res->len - off, n * qp->mtu);
	u32 len = wanted;
	struct sroce_gather *g = sroce_gather_begin(&qp->resp.half);
	struct sroce_train t;
	int err = 0;

	g->least = qp->mtu;
	if (len)
		err = sroce_gather_rkey(g, res->rkey, IB_ACCESS_REMOTE_READ,
					res->va + off, &len, res->len - off);
	if (!err) {
		if (unlikely(len != wanted))
			n = len / qp->mtu;
		sroce_reply_init(qp, &t, SROCE_OP_READ_RESP,
				 sroce_psn_add(res->psn, job->sent));
		t.npkts = n;
		if (job->sent)
			t.flags &= ~SROCE_START;
		if (job->sent + n != res->npsn)
			t.flags &= ~SROCE_END;
		sroce_gather_train(g, &t, len);
		sroce_send_train(&qp->resp.half, tx, qp->path, &t, g);
		job->sent += n;
		job->pressed = false;
		job->since = 0;
	}
	sroce_gather_end(g);
	return err;
}

/*
 * One train of a READ. The key is checked again for each: the region may be
 * gone since the request was taken.
 */
static int sroce_reply_read(struct sroce_qp *qp, struct sroce_tx *tx,
			    struct sroce_rd_job *job)
{
	int err;

	if (!qp->xrcd)
		return sroce_reply_read_data(qp, tx, job);
	if (!sroce_xrc_borrow(qp, job->res.srqn))
		return -EINVAL;
	err = sroce_reply_read_data(qp, tx, job);
	sroce_xrc_return(qp);
	return err;
}

/*
 * The region of a READ under way has gone: refuse the rest of it. A repeated
 * READ is not worth an error: it may be an old packet, and who asked for it
 * may have given the region up long ago.
 */
static void sroce_reply_read_broken(struct sroce_qp *qp,
				    const struct sroce_rd_job *job)
{
	struct sroce_responder *resp = &qp->resp;

	if (job->repeated) {
		sroce_answers_sent(&resp->answers);
		return;
	}
	resp->epsn = sroce_psn_add(job->res.psn, job->sent);
	resp->ack.state = SROCE_ACK_NAK;
	resp->ack.syndrome = SROCE_NAK_REM_ACCESS;
	sroce_answers_drop(&resp->answers);
	sroce_qp_count(qp, SROCE_CNT_RESP_REMOTE_ACCESS_ERRORS, 1);
	/* Only once: a later request may have been refused already */
	if (!resp->ack.fatal)
		sroce_qp_event(qp, IB_EVENT_QP_ACCESS_ERR);
	resp->ack.fatal = true;
}

/*
 * Does the peer ask for a READ from its first packet on? In the middle of one it is not
 * told to wait: the rdma_rxe of kernels from before 2023 expects nothing but responses
 * there, and would complete the READ with success.
 */
static bool sroce_reply_is_first(struct sroce_responder *resp,
				 const struct sroce_rd_job *job)
{
	const struct sroce_rd_res *kept =
		sroce_answers_find(&resp->answers, job->res.psn);

	return kept && kept->psn == job->res.psn;
}

/*
 * Pages of a READ are being brought in. A peer that asks again because it has heard
 * nothing for long is told to wait: it may be told so of a READ as well (IBA 9.7.5.2.8),
 * and would use up its retries otherwise. One that asks again soon is a network that
 * repeats packets, which is no reason later either.
 */
static void sroce_reply_stalled(struct sroce_qp *qp, struct sroce_tx *tx,
				struct sroce_rd_job *job)
{
	u64 now = ktime_get_ns();
	bool pressed = job->pressed;
	struct sroce_train t;

	job->pressed = false;
	job->since = job->since ?: now;
	if (!pressed || now < job->since + sroce_patience_limit_ns(qp) ||
	    !sroce_responder_may_tell(qp) ||
	    !sroce_reply_is_first(&qp->resp, job))
		return;
	sroce_reply_init(qp, &t, SROCE_OP_ACK, job->res.psn);
	t.syndrome = sroce_responder_rnr_pages(qp, now - job->since);
	sroce_send_train(&qp->resp.half, tx, qp->path, &t, NULL);
}

/* False: nothing can be sent before pages are there */
static bool sroce_reply_job(struct sroce_qp *qp, struct sroce_tx *tx)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_job *job = sroce_answers_next(&resp->answers);
	int err;

	if (job->res.op != SROCE_OP_READ) {
		sroce_reply_single(qp, tx, &job->res);
		sroce_answers_sent(&resp->answers);
		return true;
	}
	err = sroce_reply_read(qp, tx, job);
	if (err == -EAGAIN) {
		sroce_reply_stalled(qp, tx, job);
		return false;
	}
	if (err)
		sroce_reply_read_broken(qp, job);
	else if (job->sent == job->res.npsn)
		sroce_answers_sent(&resp->answers);
	return true;
}

void sroce_reply_ack(struct sroce_qp *qp, struct sroce_half *half,
		     struct sroce_tx *tx)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_train t;

	sroce_reply_init(qp, &t, SROCE_OP_ACK, resp->epsn);
	if (resp->ack.state == SROCE_ACK_NAK)
		t.syndrome = resp->ack.syndrome;
	else
		t.psn = sroce_psn_add(resp->ack.end, -1);
	resp->ack.state = SROCE_ACK_NONE;
	resp->ack.delay.acked = resp->epsn;
	sroce_send_train(half, tx, qp->path, &t, NULL);
}

/*
 * An ACK may wait for a request to go with, or until it is known whether it is to be a
 * NAK; a NAK does not wait
 */
static bool sroce_reply_ack_due(struct sroce_qp *qp)
{
	switch (qp->resp.ack.state) {
	case SROCE_ACK_NAK:
		return true;
	case SROCE_ACK_OWED:
		return !sroce_hold_keeps_ack(&qp->resp) && !sroce_ack_hold(qp);
	default:
		return false;
	}
}

bool sroce_responder_reply(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	unsigned long begin = sroce_turn_spent();
	int budget = SROCE_SEND_BUDGET;
	struct sroce_tx tx = {};
	bool on = true;
	bool idle;

	if (!qp->kind->acked)
		return false;
	while (!sroce_answers_all_sent(&resp->answers) && !resp->half.starved &&
	       on && budget-- && !sroce_turn_half_over(begin) &&
	       sroce_qp_takes_requests(qp))
		on = sroce_congestion_may_reply(qp) && sroce_reply_job(qp, &tx);
	idle = sroce_answers_all_sent(&resp->answers);
	if (idle && sroce_reply_ack_due(qp))
		sroce_reply_ack(qp, &resp->half, &tx);
	sroce_send_flush(&qp->resp.half, &tx);
	if (idle && resp->ack.fatal)
		sroce_qp_error(qp);
	return !idle && !resp->half.starved && on;
}
