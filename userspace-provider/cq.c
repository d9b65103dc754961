/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completion queues. Polling and arming are memory accesses, never system
 * calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "sroce.h"
#include "sroce-abi.h"

/*
 * Written over the QP number of a completion that nobody shall see any more.
 * The entries between the two indices are ours to write; numbers of QPs have
 * 24 bits.
 */
static const uint32_t nobodys_qpn = UINT32_MAX;

/* The kernel's status and opcodes are those of struct ibv_wc. */
static unsigned int flags_of(const struct sroce_cqe *cqe)
{
	unsigned int flags = 0;

	if (cqe->flags & SROCE_CQE_GRH)
		flags |= IBV_WC_GRH;
	if (cqe->flags & SROCE_CQE_IMM)
		flags |= IBV_WC_WITH_IMM;
	if (cqe->flags & SROCE_CQE_INV)
		flags |= IBV_WC_WITH_INV;
	return flags;
}

/* --- the ring --- */

/*
 * Look for news. More entries than the ring has are no news: this is what is
 * read once the device is gone and its memory was taken away.
 */
static bool has_entries(struct sroce_cq *cq)
{
	if (cq->cons != cq->prod)
		return true;

	cq->prod = sroce_load_index(&cq->ring.hdr->prod);
	if (cq->prod - cq->cons > cq->ring.nr_entries)
		cq->prod = cq->cons;
	return cq->cons != cq->prod;
}

/* The entry stays ours until free_entries() */
static struct sroce_cqe *next_entry(struct sroce_cq *cq)
{
	struct sroce_cqe *cqe;

	while (has_entries(cq)) {
		cqe = sroce_ring_entry(&cq->ring, cq->cons++);
		if (cqe->qpn != nobodys_qpn)
			return cqe;
	}
	return NULL;
}

/* Give all entries before @index back to the kernel */
static void free_entries(struct sroce_cq *cq, uint32_t index)
{
	if (index == cq->freed)
		return;

	cq->freed = index;
	sroce_store_index(&cq->ring.hdr->cons, index);
}

/* The indices are the kernel's, in a new ring */
static void load_indices(struct sroce_cq *cq)
{
	cq->cons = sroce_load_index(&cq->ring.hdr->cons);
	cq->prod = cq->cons;
	cq->freed = cq->cons;
}

void sroce_cq_forget_qp(struct ibv_cq *ibcq, uint32_t qp_num)
{
	struct sroce_cq *cq = to_scq(ibcq);
	struct sroce_cqe *cqe;
	uint32_t index, prod;

	sroce_lock(&cq->lock);
	prod = sroce_load_index(&cq->ring.hdr->prod);
	if (prod - cq->cons > cq->ring.nr_entries)
		prod = cq->cons;
	for (index = cq->cons; index != prod; index++) {
		cqe = sroce_ring_entry(&cq->ring, index);
		if (cqe->qpn == qp_num)
			cqe->qpn = nobodys_qpn;
	}
	sroce_unlock(&cq->lock);
}

/* --- ibv_poll_cq(), ibv_req_notify_cq() --- */

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
		.wc_flags = flags_of(cqe),
		.pkey_index = cqe->pkey_index,
		.sl = cqe->sl,
	};
}

int sroce_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct sroce_cq *cq = to_scq(ibcq);
	struct sroce_cqe *cqe;
	int n;

	sroce_lock(&cq->lock);
	for (n = 0; n < num_entries; n++) {
		cqe = next_entry(cq);
		if (!cqe)
			break;
		fill_wc(&wc[n], cqe);
	}
	free_entries(cq, cq->cons);
	sroce_unlock(&cq->lock);
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

/* --- extended CQ: ibv_start_poll() and friends --- */

static int take_entry(struct sroce_cq *cq)
{
	struct ibv_cq_ex *cq_ex = &cq->vcq.cq_ex;

	cq->cqe = next_entry(cq);
	if (!cq->cqe)
		return ENOENT;

	cq_ex->wr_id = cq->cqe->wr_id;
	cq_ex->status = cq->cqe->status;
	return 0;
}

static void sroce_end_poll(struct ibv_cq_ex *cq_ex)
{
	struct sroce_cq *cq = to_scq_ex(cq_ex);

	free_entries(cq, cq->cons);
	sroce_unlock(&cq->lock);
}

static int sroce_start_poll(struct ibv_cq_ex *cq_ex,
			    struct ibv_poll_cq_attr *attr)
{
	struct sroce_cq *cq = to_scq_ex(cq_ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;

	sroce_lock(&cq->lock);
	err = take_entry(cq);
	/* An application calls ibv_end_poll() only after success. */
	if (err)
		sroce_end_poll(cq_ex);
	return err;
}

static int sroce_next_poll(struct ibv_cq_ex *cq_ex)
{
	struct sroce_cq *cq = to_scq_ex(cq_ex);

	/*
	 * A batch may never end under load: let the kernel have the entries
	 * that were read before it runs out of them.
	 */
	if (cq->cons - cq->freed >= cq->ring.nr_entries / 2)
		free_entries(cq, cq->cons);
	return take_entry(cq);
}

static enum ibv_wc_opcode sroce_read_opcode(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->opcode;
}

static uint32_t sroce_read_vendor_err(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->vendor_err;
}

static unsigned int sroce_read_wc_flags(struct ibv_cq_ex *cq_ex)
{
	return flags_of(to_scq_ex(cq_ex)->cqe);
}

static uint32_t sroce_read_byte_len(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->byte_len;
}

/* Also read by ibv_wc_read_invalidated_rkey(): the two are one word. */
static __be32 sroce_read_imm_data(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->imm_data;
}

static uint32_t sroce_read_qp_num(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->qpn;
}

static uint32_t sroce_read_src_qp(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->src_qp;
}

/* There are no LIDs on Ethernet. */
static uint32_t sroce_read_slid(struct ibv_cq_ex *cq_ex)
{
	return 0;
}

static uint8_t sroce_read_dlid_path_bits(struct ibv_cq_ex *cq_ex)
{
	return 0;
}

static uint8_t sroce_read_sl(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->sl;
}

static uint16_t sroce_read_cvlan(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->vlan_id;
}

/* Raw time is CLOCK_MONOTONIC in nanoseconds; see sroce_query_rt_values() */
static uint64_t sroce_read_completion_ts(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->timestamp;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static uint64_t sroce_read_wallclock(struct ibv_cq_ex *cq_ex)
{
	uint64_t age = clock_ns(CLOCK_MONOTONIC) -
		       to_scq_ex(cq_ex)->cqe->timestamp;

	return clock_ns(CLOCK_REALTIME) - age;
}

static void set_readers(struct ibv_cq_ex *cq_ex, uint64_t wc_flags)
{
	cq_ex->start_poll = sroce_start_poll;
	cq_ex->next_poll = sroce_next_poll;
	cq_ex->end_poll = sroce_end_poll;
	cq_ex->read_opcode = sroce_read_opcode;
	cq_ex->read_vendor_err = sroce_read_vendor_err;
	cq_ex->read_wc_flags = sroce_read_wc_flags;

	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq_ex->read_byte_len = sroce_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq_ex->read_imm_data = sroce_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq_ex->read_qp_num = sroce_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq_ex->read_src_qp = sroce_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq_ex->read_slid = sroce_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq_ex->read_sl = sroce_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq_ex->read_dlid_path_bits = sroce_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq_ex->read_completion_ts = sroce_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq_ex->read_completion_wallclock_ns = sroce_read_wallclock;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		cq_ex->read_cvlan = sroce_read_cvlan;
}

/* --- life --- */

static const uint64_t timestamp_flags =
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

static const uint64_t supported_wc_flags =
	IBV_WC_STANDARD_FLAGS |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |
	IBV_WC_EX_WITH_CVLAN;

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

static bool needs_locks(const struct ibv_cq_init_attr_ex *attr)
{
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return false;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		return sroce_pd_needs_locks(attr->parent_domain);
	return true;
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
	struct sroce_cq *cq;
	int err;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

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
	free(cq);
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

	set_readers(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int sroce_destroy_cq(struct ibv_cq *ibcq)
{
	struct sroce_cq *cq = to_scq(ibcq);
	int err;

	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return err;

	sroce_ring_unmap(&cq->ring);
	destroy_locks(cq);
	free(cq);
	return 0;
}

/*
 * The kernel moves the completions that were not polled yet to a new ring, to
 * the same indices, and the arm word with them; then it is up to us to follow.
 */
static int replace_ring(struct sroce_cq *cq, int cqe)
{
	struct sroce_cmd_resize_cq_resp resp = {};
	struct ibv_cq *ibcq = &cq->vcq.cq;
	struct sroce_cmd_resize_cq cmd = {};
	struct sroce_ring ring;
	int err;

	err = ibv_cmd_resize_cq(ibcq, cqe, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (err)
		return err;

	err = sroce_ring_map(&ring, ibcq->context, &resp.ring);
	if (err)
		return err;

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
