/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tag matching on shared receive queues.
 *
 * The kernel has the list of tagged buffers, and matches. What is done here is to hand it
 * operations on the list, and to begin a rendezvous that it has matched: a READ, and behind
 * it the message that tells the peer, posted to the QP that the request has come to.
 * They are posted when the completion of the match is polled. The send queue has entries of
 * their own for some of them, which the application is not told of: it may count on those
 * that it has asked for, whatever a peer begins. Where these are taken, or the queue's lock
 * is held (by this thread, maybe, in the middle of ibv_wr_start()), the rendezvous waits.
 *
 * Nobody may poll again before something completes, so whatever ends the wait has to try
 * again. Entries are free, at the latest, when the READ behind them is complete, and its
 * completion is one that is polled, which begins with that. And whoever drops the lock of a
 * send queue looks whether something waits. It must not wait for the completion queue's
 * lock, which its own thread may hold, in the middle of a batch of ibv_start_poll(): where
 * it does not get that it says so (@rndv_retry), and whoever has that lock looks when it
 * has dropped it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/array_size.h>
#include <infiniband/cmd_write.h>
#include <infiniband/tm_types.h>

#include "cq.h"
#include "sroce-abi.h"
#include "wqe.h"

static_assert((int)SROCE_TAG_ADD == (int)IBV_WR_TAG_ADD &&
	      (int)SROCE_TAG_DEL == (int)IBV_WR_TAG_DEL &&
	      (int)SROCE_TAG_SYNC == (int)IBV_WR_TAG_SYNC &&
	      (int)SROCE_TAG_SIGNALED == (int)IBV_OPS_SIGNALED &&
	      (int)SROCE_TAG_SYNCS == (int)IBV_OPS_TM_SYNC,
	      "SROCE_TAG_x are not those of struct ibv_ops_wr");
static_assert((int)SROCE_WC_TAG_ADD == (int)IBV_WC_TM_ADD &&
	      (int)SROCE_WC_TAG_DEL == (int)IBV_WC_TM_DEL &&
	      (int)SROCE_WC_TAG_SYNC == (int)IBV_WC_TM_SYNC &&
	      (int)SROCE_WC_TAG_RECV == (int)IBV_WC_TM_RECV &&
	      (int)SROCE_WC_NO_TAG == (int)IBV_WC_TM_NO_TAG &&
	      (int)SROCE_WC_STATUS_TAG == (int)IBV_WC_TM_ERR,
	      "enum ibv_wc_opcode is not SROCE_WC_x");

/* Entries of a send queue that the application does not know of */
enum { TAGS_SEND_WR = SROCE_RNDV_MOST * SROCE_RNDV_WQES };

/* Part of a handle that tells buffers apart that there are at the same time */
enum { TAGS_INDEX_MASK = 0xffff };

bool sroce_tags_of(const struct ibv_srq *srq)
{
	return srq && container_of(srq, struct sroce_srq, vsrq.srq)->vsrq.srq_type ==
		      IBV_SRQT_TM;
}

/* --- the queue --- */

int sroce_tags_check_srq(struct ibv_context *ctx,
			 const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
				IBV_SRQ_INIT_ATTR_TM;
	struct ibv_device_attr_ex device = {};
	int err;

	if (!(to_sctx(ctx)->caps & SROCE_CAP_TAG_MATCHING))
		return EOPNOTSUPP;
	if ((attr->comp_mask & needed) != needed || !attr->tm_cap.max_num_tags)
		return EINVAL;
	err = ibv_query_device_ex(ctx, NULL, &device);
	if (err)
		return err;
	/* It is here that operations are counted; the kernel counts tags */
	if (attr->tm_cap.max_ops > device.tm_caps.max_ops)
		return EINVAL;
	/* What it has to tell does not fit into struct ibv_wc */
	return to_scq(attr->cq)->vcq.cq_ex.start_poll ? 0 : EINVAL;
}

/* It stays until the completion queue goes. Returns an errno. */
static int init_matching(struct sroce_cq *cq)
{
	struct sroce_matching *m = calloc(1, sizeof(*m));
	unsigned int i;

	if (!m)
		return ENOMEM;
	for (i = 0; i < SROCE_MATCHING; i++)
		list_head_init(&m->by_number[i]);
	list_head_init(&m->waiting);
	list_head_init(&m->ringing);
	/*
	 * Its application may have promised to poll it from one thread (single-threaded
	 * queues, thread domains), and not to create queue pairs or to post there
	 */
	sroce_lock_need(&cq->lock);
	sroce_lock(&cq->lock);
	if (cq->matching)
		free(m);
	else
		cq->matching = m;
	sroce_unlock(&cq->lock);
	return 0;
}

int sroce_tags_init_srq(struct sroce_srq *srq,
			const struct ibv_srq_init_attr_ex *attr)
{
	int err;

	err = init_matching(to_scq(attr->cq));
	if (err)
		return err;
	srq->max_tags = attr->tm_cap.max_num_tags;
	srq->max_ops = attr->tm_cap.max_ops;
	srq->rndv = calloc(srq->max_tags, sizeof(*srq->rndv));
	if (!srq->rndv)
		return ENOMEM;
	sroce_cq_get(attr->cq);
	sroce_cq_ex_match_tags(&to_scq(attr->cq)->vcq.cq_ex);
	return 0;
}

void sroce_tags_fini_srq(struct sroce_srq *srq)
{
	if (!srq->rndv)
		return;
	sroce_cq_put(srq->vsrq.cq);
	free(srq->rndv);
}

/* --- operations on the list --- */

static int write_op(const struct sroce_srq *srq, struct sroce_tag_op *op,
		    const struct ibv_ops_wr *wr)
{
	const int flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;

	if (wr->flags & ~flags)
		return EINVAL;
	*op = (struct sroce_tag_op){
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->flags,
	};
	if (wr->flags & IBV_OPS_TM_SYNC)
		op->unexpected_cnt = (uint16_t)(wr->tm.unexpected_cnt +
						atomic_load(&srq->unseen));
	switch (wr->opcode) {
	case IBV_WR_TAG_ADD:
		/* Compared as unsigned, a negative number is too large as well. */
		if ((uint32_t)wr->tm.add.num_sge > SROCE_MAX_TAG_SGE)
			return EINVAL;
		op->recv_wr_id = wr->tm.add.recv_wr_id;
		op->tag = wr->tm.add.tag;
		op->mask = wr->tm.add.mask;
		op->num_sge = wr->tm.add.num_sge;
		if (op->num_sge)
			memcpy(op->sge, wr->tm.add.sg_list,
			       op->num_sge * sizeof(op->sge[0]));
		return 0;
	case IBV_WR_TAG_DEL:
		op->handle = wr->tm.handle;
		return 0;
	case IBV_WR_TAG_SYNC:
		return 0;
	default:
		return EINVAL;
	}
}

/* Returns an errno when the call has failed, and done nothing */
static int call_ops(struct ibv_srq *srq, const struct sroce_tag_op *ops,
		    uint32_t n, struct sroce_tag_ops_resp *resp)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_SRQ, SROCE_METHOD_SRQ_TAGS,
			       3);

	fill_attr_in_obj(cmdb, SROCE_ATTR_SRQ_TAGS_HANDLE, srq->handle);
	fill_attr_in(cmdb, SROCE_ATTR_SRQ_TAGS_OPS, ops, n * sizeof(*ops));
	fill_attr_out_ptr(cmdb, SROCE_ATTR_SRQ_TAGS_RESP, resp);
	return execute_ioctl(srq->context, cmdb) ? errno : 0;
}

/*
 * Carry out operations from *@wr on, and move that on behind them: @n of them at most, and
 * as many as one call takes. Returns an errno.
 */
static int post_part(struct ibv_srq *srq, struct ibv_ops_wr **wr, uint32_t n)
{
	struct sroce_tag_op ops[SROCE_TAG_OPS];
	struct sroce_tag_ops_resp resp = {};
	struct ibv_ops_wr *next = *wr;
	uint32_t count = 0;
	int refused = 0;
	uint32_t i;
	int err;

	for (; next && count < n && count < SROCE_TAG_OPS; next = next->next) {
		refused = write_op(to_ssrq(srq), &ops[count], next);
		if (refused)
			break;
		count++;
	}
	err = count ? call_ops(srq, ops, count, &resp) : 0;
	if (err)
		return err;
	for (i = 0; i < resp.done; i++, *wr = (*wr)->next)
		if ((*wr)->opcode == IBV_WR_TAG_ADD)
			(*wr)->tm.handle = resp.handles[i];
	return resp.done < count ? -resp.err : refused;
}

/* Each operation is complete when this returns, so a list has as many as may be under way */
int sroce_post_srq_ops(struct ibv_srq *ibsrq, struct ibv_ops_wr *wr,
		       struct ibv_ops_wr **bad)
{
	uint32_t left = to_ssrq(ibsrq)->max_ops;
	struct ibv_ops_wr *begin;
	int err = 0;

	if (!sroce_tags_of(ibsrq)) {
		*bad = wr;
		return EINVAL;
	}
	while (wr && !err) {
		begin = wr;
		err = left ? post_part(ibsrq, &wr, left) : ENOMEM;
		for (; begin != wr; begin = begin->next)
			left--;
	}
	if (err)
		*bad = wr;
	return err;
}

/* --- rendezvous --- */

void sroce_tags_reserve(struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_cap *cap = &attr->cap;

	if (!sroce_tags_of(attr->srq))
		return;
	/* An entry that has room for the elements has it for a header, too */
	if (cap->max_send_sge < SROCE_MAX_TAG_SGE)
		cap->max_send_sge = SROCE_MAX_TAG_SGE;
	/* What is more than the kernel has stays so */
	if (cap->max_send_wr <= UINT32_MAX - TAGS_SEND_WR)
		cap->max_send_wr += TAGS_SEND_WR;
}

void sroce_tags_hide(const struct ibv_srq *srq, struct ibv_qp_cap *cap)
{
	if (sroce_tags_of(srq) && cap->max_send_wr >= TAGS_SEND_WR)
		cap->max_send_wr -= TAGS_SEND_WR;
}

static struct list_head *bucket_of(struct sroce_cq *cq, uint32_t qp_num)
{
	return &cq->matching->by_number[qp_num % SROCE_MATCHING];
}

void sroce_tags_join(struct sroce_qp *qp)
{
	struct sroce_cq *cq = qp->match_cq;

	if (!cq)
		return;
	sroce_lock(&cq->lock);
	/* In front of one that has just gone, and had its number */
	list_add(bucket_of(cq, qp->vqp.qp.qp_num), &qp->matching);
	sroce_tags_unlock(cq);
}

void sroce_tags_pause(struct sroce_qp *qp, bool pause)
{
	struct sroce_cq *cq = qp->match_cq;

	if (!cq)
		return;
	sroce_lock(&cq->lock);
	qp->rndv_paused = pause;
	if (!pause)
		sroce_tags_retry(cq);
	sroce_tags_unlock(cq);
}

/* Under the completion queue's lock */
static void forget_rndv(struct sroce_qp *qp)
{
	struct sroce_srq *srq = to_ssrq(qp->vqp.qp.srq);
	uint32_t i;

	for (i = 0; i < srq->max_tags && qp->rndv_waits; i++)
		if (srq->rndv[i].qp == qp)
			srq->rndv[i].qp = NULL;
	if (qp->rndv_waits)
		list_del(&qp->waiting);
	qp->rndv_waits = 0;
}

void sroce_tags_forget(struct sroce_qp *qp)
{
	struct sroce_cq *cq = qp->match_cq;

	if (!cq)
		return;
	sroce_lock(&cq->lock);
	forget_rndv(qp);
	sroce_tags_unlock(cq);
}

void sroce_tags_leave(struct sroce_qp *qp)
{
	struct sroce_cq *cq = qp->match_cq;

	if (!cq)
		return;
	sroce_lock(&cq->lock);
	forget_rndv(qp);
	list_del(&qp->matching);
	if (qp->rings)
		list_del(&qp->ringing);
	sroce_tags_unlock(cq);
}

static void write_read(struct sroce_sq *sq, const struct sroce_rndv *rndv)
{
	wqe_begin(sq, sq->prod, 0, SROCE_WR_TAG_READ, SROCE_SEND_SIGNALED);
	sq->wqe.tag.handle = rndv->handle;
	wqe_end(sq);
}

/* The peer may do with its memory what it likes then: not before the READ is complete */
static void write_fin(struct sroce_sq *sq, const struct sroce_rndv *rndv)
{
	const struct ibv_tmh tmh = {
		.opcode = IBV_TMH_FIN,
		.app_ctx = htobe32(rndv->app_ctx),
		.tag = htobe64(rndv->tag),
	};

	wqe_begin(sq, sq->prod + 1, 0, SROCE_WR_TAG_FIN,
		  SROCE_SEND_FENCE | SROCE_SEND_INLINE);
	/* There is room: see sroce_tags_reserve() */
	wqe_append_inline(sq, &tmh, sizeof(tmh));
	wqe_end(sq);
}

static void note_rndv(struct sroce_sq *sq)
{
	uint8_t i = (sq->first_rndv + sq->rndvs++) % SROCE_RNDV_MOST;

	sq->rndv_end[i] = sq->prod + SROCE_RNDV_WQES;
	sq->kept -= SROCE_RNDV_WQES;
}

/* Under the completion queue's lock */
static void note_doorbell(struct sroce_qp *qp)
{
	if (qp->rings)
		return;
	qp->rings = true;
	list_add_tail(&qp->match_cq->matching->ringing, &qp->ringing);
}

/* False when it is to be tried again */
static bool begin_rndv(struct sroce_qp *qp, const struct sroce_rndv *rndv)
{
	struct sroce_sq *sq = &qp->sq;
	bool room;

	if (qp->rndv_paused || !sroce_trylock(&sq->lock))
		return false;
	sroce_sq_look(sq);
	/* There is, but for memory that may say anything: see sroce_ring_pending() */
	room = sq->rndvs < SROCE_RNDV_MOST &&
	       sq->prod + 1 - sq->cons < sq->ring.nr_entries;
	if (room) {
		write_read(sq, rndv);
		write_fin(sq, rndv);
		note_rndv(sq);
		if (sroce_sq_publish(qp, sq->prod + SROCE_RNDV_WQES))
			note_doorbell(qp);
	}
	sroce_unlock(&sq->lock);
	return room;
}

static struct sroce_qp *find_qp(struct sroce_cq *cq, uint32_t qp_num)
{
	struct sroce_qp *qp;

	list_for_each(bucket_of(cq, qp_num), qp, matching)
		if (qp->vqp.qp.qp_num == qp_num)
			return qp;
	return NULL;
}

/*
 * NULL when there is no place. Memory that the kernel writes to may say anything by now:
 * see sroce_ring_pending()
 */
static struct sroce_rndv *wait_rndv(const struct sroce_rndv *rndv)
{
	struct sroce_qp *qp = rndv->qp;
	struct sroce_srq *srq = to_ssrq(qp->vqp.qp.srq);
	uint32_t i = rndv->handle & TAGS_INDEX_MASK;

	if (i >= srq->max_tags || srq->rndv[i].qp)
		return NULL;
	srq->rndv[i] = *rndv;
	if (!qp->rndv_waits++)
		list_add_tail(&qp->match_cq->matching->waiting, &qp->waiting);
	return &srq->rndv[i];
}

static bool try_rndv(struct sroce_rndv *rndv)
{
	struct sroce_qp *qp = rndv->qp;

	if (!begin_rndv(qp, rndv))
		return false;
	rndv->qp = NULL;
	if (!--qp->rndv_waits)
		list_del(&qp->waiting);
	return true;
}

void sroce_tags_polled(struct sroce_cq *cq)
{
	const uint32_t mask = SROCE_CQE_TAG_MATCH | SROCE_CQE_TAG_DATA;
	const struct sroce_cqe *cqe = cq->cqe;
	struct sroce_rndv *waits;
	struct sroce_rndv rndv;
	struct sroce_qp *qp;

	if ((cqe->flags & mask) != SROCE_CQE_TAG_MATCH ||
	    cqe->status != IBV_WC_SUCCESS)
		return;
	qp = find_qp(cq, cqe->qpn);
	if (!qp)
		return;
	rndv = (struct sroce_rndv){
		.tag = cqe->tm.tag,
		.app_ctx = cqe->tm.app_ctx,
		.handle = cqe->tag_handle,
		.qp = qp,
	};
	waits = wait_rndv(&rndv);
	if (!waits)
		return;
	/* Pairs with sroce_tags_sq_unlocked() */
	sroce_full_barrier();
	try_rndv(waits);
}

static void retry_qp(struct sroce_qp *qp)
{
	struct sroce_srq *srq = to_ssrq(qp->vqp.qp.srq);
	struct sroce_rndv *rndv;

	for (rndv = srq->rndv; qp->rndv_waits && rndv < srq->rndv + srq->max_tags; rndv++)
		if (rndv->qp == qp && !try_rndv(rndv))
			return;
}

void sroce_tags_retry(struct sroce_cq *cq)
{
	struct sroce_qp *qp, *next;

	if (!cq->matching)
		return;
	list_for_each_safe(&cq->matching->waiting, qp, next, waiting)
		retry_qp(qp);
}

/* Queue pairs whose doorbell is to be rung, @most of them. Returns how many. */
static unsigned int take_ringing(struct sroce_cq *cq, uint32_t *numbers,
				 unsigned int most)
{
	struct sroce_qp *qp;
	unsigned int n = 0;

	while (cq->matching && n < most) {
		qp = list_pop(&cq->matching->ringing, struct sroce_qp, ringing);
		if (!qp)
			break;
		qp->rings = false;
		numbers[n++] = qp->vqp.qp.qp_num;
	}
	return n;
}

/*
 * A doorbell is a system call, from within which the kernel sends: nobody is to wait for
 * the lock meanwhile. By number, for a QP may be gone then, which is no news to anybody.
 */
static void unlock_and_ring(struct sroce_cq *cq)
{
	uint32_t numbers[16];
	unsigned int i, n;

	n = take_ringing(cq, numbers, ARRAY_SIZE(numbers));
	sroce_unlock(&cq->lock);
	while (n) {
		for (i = 0; i < n; i++)
			sroce_ring_doorbell(cq->vcq.cq.context, numbers[i]);
		if (n < ARRAY_SIZE(numbers))
			return;
		sroce_lock(&cq->lock);
		n = take_ringing(cq, numbers, ARRAY_SIZE(numbers));
		sroce_unlock(&cq->lock);
	}
}

/* Each of them has said so after it had dropped the lock that was in the way */
static void retry_unlocked(struct sroce_cq *cq)
{
	while (atomic_load(&cq->rndv_retry) && sroce_trylock(&cq->lock)) {
		atomic_store(&cq->rndv_retry, false);
		sroce_tags_retry(cq);
		unlock_and_ring(cq);
		sroce_full_barrier();
	}
}

void sroce_tags_unlock(struct sroce_cq *cq)
{
	unlock_and_ring(cq);
	sroce_full_barrier();
	retry_unlocked(cq);
}

void sroce_tags_sq_unlocked(struct sroce_qp *qp)
{
	struct sroce_cq *cq = qp->match_cq;

	/* Pairs with sroce_tags_polled(): it finds the lock free, or we see what waits */
	sroce_full_barrier();
	if (!atomic_load_explicit(&qp->rndv_waits, memory_order_relaxed))
		return;
	/* Pairs with those in retry_unlocked() and before it */
	atomic_store(&cq->rndv_retry, true);
	sroce_full_barrier();
	retry_unlocked(cq);
}
