/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completion queues. Polling and arming are memory accesses, never system
 * calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "sroce-abi.h"

static void fill_wc(struct ibv_wc *wc, const struct sroce_cqe *cqe)
{
	*wc = (struct ibv_wc){
		.wr_id = cqe->wr_id,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.imm_data = cqe->imm_data,
		.qp_num = cqe->qpn,
		.src_qp = cqe->src_qp,
		.wc_flags = cqe_wc_flags(cqe),
		.pkey_index = cqe->pkey_index,
		.sl = cqe_sl(cqe),
	};
}

int sroce_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct sroce_cq *cq = to_scq(ibcq);
	struct sroce_cqe *cqe;
	int n;

	sroce_lock(&cq->lock);
	for (n = 0; n < num_entries; n++) {
		cqe = cq_next_entry(cq);
		if (!cqe)
			break;
		fill_wc(&wc[n], cqe);
	}
	cq_free_entries(cq);
	sroce_unlock(&cq->lock);
	if (!n)
		cq_end_gathering(cq);
	return n;
}

/*
 * The weaker request must not replace the stronger one of someone else. Under
 * the lock nobody but the kernel changes the word, and that only to idle.
 */
static void arm(struct sroce_ring_hdr *hdr, bool solicited_only)
{
	if (!solicited_only)
		sroce_store_flags(&hdr->flags, SROCE_CQ_ARM_ANY);
	else if (sroce_load_flags(&hdr->flags) == SROCE_CQ_IDLE)
		sroce_store_flags(&hdr->flags, SROCE_CQ_ARM_SOLICITED);
}

/*
 * Not under the CQ's lock: an application may arm in the middle of a batch of
 * ibv_start_poll(), which holds it.
 */
int sroce_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct sroce_cq *cq = to_scq(ibcq);

	sroce_lock(&cq->arm_lock);
	arm(cq->ring.hdr, solicited_only);
	sroce_unlock(&cq->arm_lock);

	/* The application polls once more now, and must not see the past. */
	sroce_full_barrier();
	return 0;
}

/*
 * Take the completions of a QP out of those from @cons to @prod. The others close up, in
 * their order, towards @prod: what was not polled yet is ours to write. Returns where
 * they begin then.
 */
static uint32_t take_out(struct sroce_cq *cq, uint32_t cons, uint32_t prod,
			 uint32_t qp_num, uint32_t *unexpected)
{
	uint32_t from = prod, to = prod;
	struct sroce_cqe *cqe;

	while (from != cons) {
		cqe = sroce_ring_entry(&cq->ring, --from);
		if (cqe->qpn == qp_num)
			*unexpected += sroce_tags_is_unexpected(cqe);
		else if (--to != from)
			memcpy(sroce_ring_entry(&cq->ring, to), cqe,
			       sizeof(*cqe));
	}
	return to;
}

/* In the middle of a batch, what that has taken is freed when it ends, with all behind it */
static void skip_to(struct sroce_cq *cq, uint32_t cons, uint32_t prod)
{
	bool batch = cq->freed != cq->cons;

	cq->cons = cons;
	cq->prod = prod;
	if (!batch)
		cq_free_entries(cq);
}

/*
 * An application that counts what may complete does not count these any more, so their
 * places have to be free now, or the kernel would find the queue full. Where none are
 * there, nothing is written: a queue without locks may be polled meanwhile by somebody
 * who takes only that for a use of it.
 */
uint32_t sroce_cq_forget_qp(struct ibv_cq *ibcq, uint32_t qp_num)
{
	struct sroce_cq *cq = to_scq(ibcq);
	uint32_t unexpected = 0;
	uint32_t cons, prod, to;

	sroce_lock(&cq->lock);
	cons = cq->cons;
	prod = cq_produced(cq, cons);
	to = take_out(cq, cons, prod, qp_num, &unexpected);
	if (to != cons)
		skip_to(cq, to, prod);
	sroce_unlock(&cq->lock);
	return unexpected;
}

/* --- life --- */

void sroce_cq_get(struct ibv_cq *cq)
{
	if (cq)
		atomic_fetch_add(&to_scq(cq)->users, 1);
}

void sroce_cq_put(struct ibv_cq *cq)
{
	if (cq)
		atomic_fetch_sub(&to_scq(cq)->users, 1);
}

static const uint64_t timestamp_flags =
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

static const uint64_t supported_wc_flags =
	IBV_WC_STANDARD_FLAGS |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |
	IBV_WC_EX_WITH_CVLAN |
	IBV_WC_EX_WITH_FLOW_TAG |
	IBV_WC_EX_WITH_TM_INFO;

static int check_attr(const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t masks = IBV_CQ_INIT_ATTR_MASK_FLAGS |
			       IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
			       IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

	if (!check_comp_mask(attr->comp_mask, masks) ||
	    !check_comp_mask(attr->wc_flags, supported_wc_flags))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    !check_comp_mask(attr->flags, flags))
		return EOPNOTSUPP;
	return 0;
}

static struct ibv_pd *pd_of(const struct ibv_cq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ?
	       attr->parent_domain : NULL;
}

static bool needs_locks(const struct ibv_cq_init_attr_ex *attr)
{
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return false;
	return sroce_pd_needs_locks(pd_of(attr));
}

static int init_locks(struct sroce_cq *cq, bool needed)
{
	int err;

	err = sroce_lock_init(&cq->lock, needed);
	if (err)
		return err;

	err = sroce_lock_init(&cq->arm_lock, needed);
	if (err)
		sroce_lock_destroy(&cq->lock);
	return err;
}

static void destroy_locks(struct sroce_cq *cq)
{
	sroce_lock_destroy(&cq->arm_lock);
	sroce_lock_destroy(&cq->lock);
}

/* The indices are the kernel's, in a new ring */
static void load_indices(struct sroce_cq *cq)
{
	cq->cons = sroce_load_index(&cq->ring.hdr->cons);
	cq->prod = cq->cons;
	cq->freed = cq->cons;
}

static int create_ring(struct ibv_context *ctx, struct sroce_cq *cq,
		       const struct ibv_cq_init_attr_ex *attr)
{
	struct sroce_cmd_create_cq_resp resp = {};
	struct sroce_cmd_create_cq cmd = {};
	int err;

	if (attr->wc_flags & timestamp_flags)
		cmd.flags |= SROCE_CREATE_CQ_TIMESTAMP;

	err = ibv_cmd_create_cq_ex(ctx, attr, &cq->vcq, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp),
				   0);
	if (err)
		return err;

	err = sroce_ring_map(&cq->ring, ctx, &resp.ring);
	if (err) {
		ibv_cmd_destroy_cq(&cq->vcq.cq);
		return err;
	}

	load_indices(cq);
	return 0;
}

static struct sroce_cq *create_cq(struct ibv_context *ctx,
				  const struct ibv_cq_init_attr_ex *attr)
{
	struct sroce_origin origin;
	struct sroce_cq *cq;
	int err;

	cq = sroce_pd_alloc(pd_of(attr), sizeof(*cq), SROCE_RESOURCE_CQ,
			    &origin);
	if (!cq)
		return NULL;
	cq->origin = origin;

	err = init_locks(cq, needs_locks(attr));
	if (err)
		goto free_cq;

	err = create_ring(ctx, cq, attr);
	if (err)
		goto destroy_locks;
	return cq;

destroy_locks:
	destroy_locks(cq);
free_cq:
	sroce_pd_free(cq, &origin);
	errno = err;
	return NULL;
}

struct ibv_cq *sroce_create_cq(struct ibv_context *ctx, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct sroce_cq *cq;

	cq = create_cq(ctx, &attr);
	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *sroce_create_cq_ex(struct ibv_context *ctx,
				     struct ibv_cq_init_attr_ex *attr)
{
	struct sroce_cq *cq;
	int err;

	err = check_attr(attr);
	if (err) {
		errno = err;
		return NULL;
	}

	cq = create_cq(ctx, attr);
	if (!cq)
		return NULL;

	sroce_cq_ex_init(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int sroce_destroy_cq(struct ibv_cq *ibcq)
{
	struct sroce_cq *cq = to_scq(ibcq);
	int err;

	if (atomic_load(&cq->users))
		return EBUSY;
	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return err;

	sroce_ring_unmap(&cq->ring);
	destroy_locks(cq);
	sroce_tags_fini_cq(cq);
	sroce_pd_free(cq, &cq->origin);
	return 0;
}

int sroce_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(cq, attr, &cmd, sizeof(cmd));
}

static int cmd_resize_cq(struct ibv_cq *cq, int cqe, uint32_t step,
			 struct sroce_ring_info *info)
{
	struct sroce_cmd_resize_cq cmd = { .drv_payload.step = step };
	struct sroce_cmd_resize_cq_resp resp = {};
	int err;

	err = ibv_cmd_resize_cq(cq, cqe, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	*info = resp.ring;
	return err;
}

/*
 * The call may fail after the queue has moved, when the answer cannot be stored:
 * then the old ring's arm word tells.
 */
static int move_ring(struct sroce_cq *cq, const struct sroce_ring *to)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	struct sroce_ring_info info;
	int err;

	err = cmd_resize_cq(ibcq, to->nr_entries, SROCE_RESIZE_MOVE, &info);
	if (!err ||
	    sroce_load_flags(&cq->ring.hdr->flags) != SROCE_CQ_MOVED)
		return err;
	ibcq->cqe = to->nr_entries;
	return 0;
}

/*
 * The new ring is mapped before the queue moves there, so whatever fails, the
 * queue goes on with the ring that it has. The kernel takes the completions that
 * were not polled yet along, to the same indices, and the arm word.
 */
static int replace_ring(struct sroce_cq *cq, int cqe)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	struct sroce_ring_info info;
	struct sroce_ring ring;
	int err;

	err = cmd_resize_cq(ibcq, cqe, SROCE_RESIZE_PREPARE, &info);
	if (err)
		return err;

	err = sroce_ring_map(&ring, ibcq->context, &info);
	if (err) {
		cmd_resize_cq(ibcq, cqe, SROCE_RESIZE_CANCEL, &info);
		return err;
	}

	err = move_ring(cq, &ring);
	if (err) {
		sroce_ring_unmap(&ring);
		return err;
	}

	sroce_ring_unmap(&cq->ring);
	cq->ring = ring;
	load_indices(cq);
	return 0;
}

int sroce_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct sroce_cq *cq = to_scq(ibcq);
	int err;

	sroce_lock(&cq->lock);
	sroce_lock(&cq->arm_lock);
	err = replace_ring(cq, cqe);
	sroce_unlock(&cq->arm_lock);
	sroce_unlock(&cq->lock);
	return err;
}
