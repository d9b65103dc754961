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
 * again. The entries of a rendezvous are free, at the latest, when the READ of the next one
 * is complete: as long as others wait there is one, and its completion is polled. And
 * whoever drops the lock of a send queue looks whether somebody has found it held.
 *
 * All of this has a lock of its own, which the completion queue's does not do for: that one
 * is held in the middle of a batch of ibv_start_poll(), as long as the application likes,
 * which may make queue pairs there and post. Nobody who holds ours waits for another lock,
 * or makes a system call; it is taken inside the completion queue's.
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

/* Completions that a batch takes before a doorbell does not wait for its end any more */
enum { TAGS_UNRUNG = 16 };

/* Queue pairs that whoever finds nothing looks at */
enum { TAGS_TRIES = 16 };

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

static struct sroce_matching *new_matching(void)
{
	struct sroce_matching *m = calloc(1, sizeof(*m));
	unsigned int i;

	if (!m)
		return NULL;
	if (sroce_lock_init(&m->lock, true)) {
		free(m);
		return NULL;
	}
	for (i = 0; i < SROCE_MATCHING; i++)
		list_head_init(&m->by_number[i]);
	list_head_init(&m->waiting);
	list_head_init(&m->ringing);
	return m;
}

static void free_matching(struct sroce_matching *m)
{
	sroce_lock_destroy(&m->lock);
	free(m);
}

/* NULL as long as the completion queue has had no shared receive queue with tag matching */
static struct sroce_matching *matching_of(struct sroce_cq *cq)
{
	return atomic_load_explicit(&cq->matching, memory_order_acquire);
}

/* It stays until the completion queue goes. Returns an errno. */
static int init_matching(struct sroce_cq *cq)
{
	struct sroce_matching *none = NULL;
	struct sroce_matching *m;

	if (matching_of(cq))
		return 0;
	m = new_matching();
	if (!m)
		return ENOMEM;
	/* Somebody else may do the same at this moment */
	if (!atomic_compare_exchange_strong(&cq->matching, &none, m))
		free_matching(m);
	return 0;
}

void sroce_tags_fini_cq(struct sroce_cq *cq)
{
	if (matching_of(cq))
		free_matching(matching_of(cq));
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

static struct list_head *bucket_of(struct sroce_matching *m, uint32_t qp_num)
{
	return &m->by_number[qp_num % SROCE_MATCHING];
}

void sroce_tags_join(struct sroce_qp *qp)
{
	struct sroce_matching *m;

	if (!qp->match_cq)
		return;
	m = matching_of(qp->match_cq);
	list_head_init(&qp->rndvs);
	sroce_lock(&m->lock);
	/* In front of one that has just gone, and had its number */
	list_add(bucket_of(m, qp->vqp.qp.qp_num), &qp->matching);
	sroce_unlock(&m->lock);
}

/* From here on it waits. All that have @m from here to take_ringing() want its lock. */
static void add_rndv(struct sroce_matching *m, struct sroce_qp *qp,
		     struct sroce_rndv *rndv)
{
	if (list_empty(&qp->rndvs)) {
		list_add_tail(&m->waiting, &qp->waiting);
		atomic_fetch_add_explicit(&m->nwaiting, 1, memory_order_relaxed);
	}
	list_add_tail(&qp->rndvs, &rndv->node);
	rndv->qp = qp;
}

/* It does not wait any more */
static void drop_rndv(struct sroce_matching *m, struct sroce_rndv *rndv)
{
	struct sroce_qp *qp = rndv->qp;

	list_del(&rndv->node);
	rndv->qp = NULL;
	if (!list_empty(&qp->rndvs))
		return;
	list_del(&qp->waiting);
	atomic_fetch_sub_explicit(&m->nwaiting, 1, memory_order_relaxed);
}

static struct sroce_rndv *first_rndv(struct sroce_qp *qp)
{
	return list_top(&qp->rndvs, struct sroce_rndv, node);
}

static void forget_rndvs(struct sroce_matching *m, struct sroce_qp *qp)
{
	while (first_rndv(qp))
		drop_rndv(m, first_rndv(qp));
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

static void note_doorbell(struct sroce_matching *m, struct sroce_qp *qp)
{
	if (qp->rings)
		return;
	qp->rings = true;
	list_add_tail(&m->ringing, &qp->ringing);
}

/*
 * False where somebody else has it, who looks at @rndv_held when he has dropped it: he sees
 * what is written here, or we get the lock after all
 */
static bool trylock_sq(struct sroce_qp *qp)
{
	if (sroce_trylock(&qp->sq.lock))
		return true;
	atomic_store(&qp->rndv_held, true);
	/* Pairs with sroce_tags_sq_unlocked() */
	sroce_full_barrier();
	return sroce_trylock(&qp->sq.lock);
}

/* False when it is to be tried again */
static bool begin_rndv(struct sroce_matching *m, struct sroce_qp *qp,
		       const struct sroce_rndv *rndv)
{
	struct sroce_sq *sq = &qp->sq;
	bool room;

	if (qp->rndv_paused || !trylock_sq(qp))
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
			note_doorbell(m, qp);
	}
	sroce_unlock(&sq->lock);
	return room;
}

/* Begin what waits for a queue pair, one after the other, as long as it can be */
static void begin_rndvs(struct sroce_matching *m, struct sroce_qp *qp)
{
	struct sroce_rndv *rndv;

	for (rndv = first_rndv(qp); rndv && begin_rndv(m, qp, rndv);
	     rndv = first_rndv(qp))
		drop_rndv(m, rndv);
}

static struct sroce_qp *find_qp(struct sroce_matching *m, uint32_t qp_num)
{
	struct sroce_qp *qp;

	list_for_each(bucket_of(m, qp_num), qp, matching)
		if (qp->vqp.qp.qp_num == qp_num)
			return qp;
	return NULL;
}

/*
 * The place of a rendezvous is that of its buffer. Where another one has it, that one is
 * void: its queue pair is being reset or destroyed, of which the kernel has done its part
 * and given the buffer to somebody else, and its owner has not done his yet.
 */
static void add_match(struct sroce_matching *m, struct sroce_qp *qp,
		      const struct sroce_cqe *cqe)
{
	struct sroce_srq *srq = to_ssrq(qp->vqp.qp.srq);
	uint32_t handle = cqe->tag_handle;
	uint32_t i = handle & TAGS_INDEX_MASK;
	struct sroce_rndv *rndv;

	/* Memory that the kernel writes to may say anything: see sroce_ring_pending() */
	if (i >= srq->max_tags)
		return;
	rndv = &srq->rndv[i];
	if (rndv->qp)
		drop_rndv(m, rndv);
	rndv->tag = cqe->tm.tag;
	rndv->app_ctx = cqe->tm.app_ctx;
	rndv->handle = handle;
	add_rndv(m, qp, rndv);
}

/* Queue pairs whose doorbell is to be rung, @most of them. Returns how many. */
static unsigned int take_ringing(struct sroce_matching *m, uint32_t *numbers,
				 unsigned int most)
{
	struct sroce_qp *qp;
	unsigned int n;

	for (n = 0; n < most; n++) {
		qp = list_pop(&m->ringing, struct sroce_qp, ringing);
		if (!qp)
			break;
		qp->rings = false;
		numbers[n] = qp->vqp.qp.qp_num;
	}
	return n;
}

/*
 * A doorbell is a system call, from within which the kernel sends: nobody is to wait for
 * the lock of what is matched meanwhile. (In the middle of a batch others wait for that of
 * the completion queue, as they do for as long as the batch takes: had we dropped it,
 * somebody else's batch could begin before ours is over.) By number, for a QP may be gone
 * then, which is no news to anybody.
 */
static void ring_doorbells(struct sroce_cq *cq)
{
	struct sroce_matching *m = matching_of(cq);
	uint32_t numbers[16];
	unsigned int i, n;

	do {
		sroce_lock(&m->lock);
		n = take_ringing(m, numbers, ARRAY_SIZE(numbers));
		sroce_unlock(&m->lock);
		for (i = 0; i < n; i++)
			sroce_ring_doorbell(cq->vcq.cq.context, numbers[i]);
	} while (n == ARRAY_SIZE(numbers));
}

/* Has the caller to ring for this one? What others have put off they ring for themselves */
static bool take_own_ringing(struct sroce_qp *qp)
{
	if (!qp->rings)
		return false;
	list_del(&qp->ringing);
	qp->rings = false;
	return true;
}

/* --- when it waits, and goes on --- */

void sroce_tags_pause(struct sroce_qp *qp, bool pause)
{
	struct sroce_matching *m;
	bool rings;

	if (!qp->match_cq)
		return;
	m = matching_of(qp->match_cq);
	sroce_lock(&m->lock);
	qp->rndv_paused = pause;
	begin_rndvs(m, qp);
	rings = take_own_ringing(qp);
	sroce_unlock(&m->lock);
	if (rings)
		sroce_ring_doorbell(qp->vqp.qp.context, qp->vqp.qp.qp_num);
}

void sroce_tags_forget(struct sroce_qp *qp)
{
	struct sroce_matching *m;

	if (!qp->match_cq)
		return;
	m = matching_of(qp->match_cq);
	sroce_lock(&m->lock);
	forget_rndvs(m, qp);
	sroce_unlock(&m->lock);
}

void sroce_tags_leave(struct sroce_qp *qp)
{
	struct sroce_matching *m;

	if (!qp->match_cq)
		return;
	m = matching_of(qp->match_cq);
	sroce_lock(&m->lock);
	forget_rndvs(m, qp);
	list_del(&qp->matching);
	take_own_ringing(qp);
	sroce_unlock(&m->lock);
}

bool sroce_tags_sq_unlocked(struct sroce_qp *qp)
{
	struct sroce_matching *m;
	bool rings;

	/* Pairs with trylock_sq() */
	sroce_full_barrier();
	if (!atomic_load_explicit(&qp->rndv_held, memory_order_relaxed))
		return false;
	m = matching_of(qp->match_cq);
	sroce_lock(&m->lock);
	atomic_store_explicit(&qp->rndv_held, false, memory_order_relaxed);
	begin_rndvs(m, qp);
	rings = take_own_ringing(qp);
	sroce_unlock(&m->lock);
	return rings;
}

/* --- polling --- */

/* Without the lock: only whoever polls adds to it, and he knows of what he has added */
static uint32_t nr_waiting(struct sroce_matching *m)
{
	return atomic_load_explicit(&m->nwaiting, memory_order_relaxed);
}

static bool is_rndv_match(const struct sroce_cqe *cqe)
{
	const uint32_t mask = SROCE_CQE_TAG_MATCH | SROCE_CQE_TAG_DATA;

	return (cqe->flags & mask) == SROCE_CQE_TAG_MATCH &&
	       cqe->status == IBV_WC_SUCCESS;
}

/* The doorbells wait for the end of the batch, unless that does not come */
static void put_off_ringing(struct sroce_matching *m)
{
	if (!list_empty(&m->ringing) && !m->unrung)
		m->unrung = 1;
}

void sroce_tags_polled(struct sroce_cq *cq)
{
	struct sroce_matching *m = matching_of(cq);
	const struct sroce_cqe *cqe = cq->cqe;
	bool match = is_rndv_match(cqe);
	struct sroce_qp *qp;

	if (!match && !nr_waiting(m))
		return;
	sroce_lock(&m->lock);
	qp = find_qp(m, cqe->qpn);
	if (qp && match)
		add_match(m, qp, cqe);
	if (qp)
		begin_rndvs(m, qp);
	put_off_ringing(m);
	sroce_unlock(&m->lock);
}

/*
 * An application that has found nothing may go to sleep now. What it was to poll for those
 * that wait may have gone past us (ibv_poll_cq(), a queue that ignores overruns). A few at a
 * time, for a peer can have a queue pair wait, and it is its peers that would be slowed down.
 */
void sroce_tags_found_nothing(struct sroce_cq *cq)
{
	struct sroce_matching *m = matching_of(cq);
	struct sroce_qp *qp;
	uint32_t left;

	if (!nr_waiting(m))
		return;
	sroce_lock(&m->lock);
	left = nr_waiting(m);
	if (left > TAGS_TRIES)
		left = TAGS_TRIES;
	for (; left; left--) {
		qp = list_pop(&m->waiting, struct sroce_qp, waiting);
		list_add_tail(&m->waiting, &qp->waiting);
		begin_rndvs(m, qp);
	}
	put_off_ringing(m);
	sroce_unlock(&m->lock);
}

void sroce_tags_next(struct sroce_cq *cq)
{
	struct sroce_matching *m = matching_of(cq);

	if (!m->unrung || m->unrung++ < TAGS_UNRUNG)
		return;
	m->unrung = 0;
	ring_doorbells(cq);
}

void sroce_tags_end_poll(struct sroce_cq *cq)
{
	struct sroce_matching *m = matching_of(cq);
	bool rings = m->unrung;

	m->unrung = 0;
	sroce_unlock(&cq->lock);
	if (rings)
		ring_doorbells(cq);
}
