/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Extended completion queues: ibv_start_poll() and the fields it gives access
 * to. From there to ibv_end_poll() the lock is held.
 */
#include <errno.h>
#include <time.h>

#include "cq.h"

static int take_entry(struct sroce_cq *cq)
{
	struct ibv_cq_ex *cq_ex = &cq->vcq.cq_ex;

	cq->cqe = cq_next_entry(cq);
	if (!cq->cqe)
		return ENOENT;

	cq_ex->wr_id = cq->cqe->wr_id;
	cq_ex->status = cq->cqe->status;
	return 0;
}

static void sroce_end_poll(struct ibv_cq_ex *cq_ex)
{
	struct sroce_cq *cq = to_scq_ex(cq_ex);
	bool waits = !cq->cqe;

	cq_free_entries(cq);
	sroce_unlock(&cq->lock);
	/* A system call, for which others need not wait */
	if (waits)
		cq_end_gathering(cq);
}

static inline int start_poll(struct ibv_cq_ex *cq_ex,
			     struct ibv_poll_cq_attr *attr,
			     int (*take)(struct sroce_cq *cq),
			     void (*end)(struct ibv_cq_ex *cq_ex))
{
	struct sroce_cq *cq = to_scq_ex(cq_ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;

	sroce_lock(&cq->lock);
	err = take(cq);
	/* An application calls ibv_end_poll() only after success. */
	if (err)
		end(cq_ex);
	return err;
}

static inline int next_poll(struct ibv_cq_ex *cq_ex,
			    int (*take)(struct sroce_cq *cq))
{
	struct sroce_cq *cq = to_scq_ex(cq_ex);

	/*
	 * A batch may never end under load: let the kernel have the entries
	 * that were read before it runs out of them.
	 */
	if (cq->cons - cq->freed >= cq->ring.nr_entries / 2)
		cq_free_entries(cq);
	return take(cq);
}

static int sroce_start_poll(struct ibv_cq_ex *cq_ex,
			    struct ibv_poll_cq_attr *attr)
{
	return start_poll(cq_ex, attr, take_entry, sroce_end_poll);
}

static int sroce_next_poll(struct ibv_cq_ex *cq_ex)
{
	return next_poll(cq_ex, take_entry);
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
	return cqe_wc_flags(to_scq_ex(cq_ex)->cqe);
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
	return cqe_sl(to_scq_ex(cq_ex)->cqe);
}

static uint16_t sroce_read_cvlan(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->vlan_id;
}

static uint32_t sroce_read_flow_tag(struct ibv_cq_ex *cq_ex)
{
	return to_scq_ex(cq_ex)->cqe->flow_tag;
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

/* --- tag matching --- */

/* A rendezvous that was matched is begun here: see tags.c */
static int take_tagged_entry(struct sroce_cq *cq)
{
	int err = take_entry(cq);

	if (err)
		sroce_tags_found_nothing(cq);
	else
		sroce_tags_polled(cq);
	return err;
}

static void sroce_end_poll_tagged(struct ibv_cq_ex *cq_ex)
{
	struct sroce_cq *cq = to_scq_ex(cq_ex);
	bool waits = !cq->cqe;

	cq_free_entries(cq);
	sroce_tags_end_poll(cq);
	if (waits)
		cq_end_gathering(cq);
}

static int sroce_start_poll_tagged(struct ibv_cq_ex *cq_ex,
				   struct ibv_poll_cq_attr *attr)
{
	return start_poll(cq_ex, attr, take_tagged_entry,
			  sroce_end_poll_tagged);
}

static int sroce_next_poll_tagged(struct ibv_cq_ex *cq_ex)
{
	sroce_tags_next(to_scq_ex(cq_ex));
	return next_poll(cq_ex, take_tagged_entry);
}

static unsigned int sroce_read_wc_flags_tagged(struct ibv_cq_ex *cq_ex)
{
	const struct sroce_cqe *cqe = to_scq_ex(cq_ex)->cqe;
	unsigned int flags = cqe_wc_flags(cqe);

	if (cqe->flags & SROCE_CQE_TAG_SYNC_REQ)
		flags |= IBV_WC_TM_SYNC_REQ;
	if (cqe->flags & SROCE_CQE_TAG_MATCH)
		flags |= IBV_WC_TM_MATCH;
	if (cqe->flags & SROCE_CQE_TAG_DATA)
		flags |= IBV_WC_TM_DATA_VALID;
	return flags;
}

/* Of a message that has matched. Of another one the buffer has the header */
static void sroce_read_tm_info(struct ibv_cq_ex *cq_ex,
			       struct ibv_wc_tm_info *info)
{
	const struct sroce_cqe *cqe = to_scq_ex(cq_ex)->cqe;
	bool match = cqe->flags & SROCE_CQE_TAG_MATCH;

	info->tag = match ? cqe->tm.tag : 0;
	info->priv = match ? cqe->tm.app_ctx : 0;
}

void sroce_cq_ex_match_tags(struct ibv_cq_ex *cq_ex)
{
	cq_ex->start_poll = sroce_start_poll_tagged;
	cq_ex->next_poll = sroce_next_poll_tagged;
	cq_ex->end_poll = sroce_end_poll_tagged;
	cq_ex->read_wc_flags = sroce_read_wc_flags_tagged;
}

void sroce_cq_ex_init(struct ibv_cq_ex *cq_ex, uint64_t wc_flags)
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
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		cq_ex->read_flow_tag = sroce_read_flow_tag;
	if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
		cq_ex->read_tm_info = sroce_read_tm_info;
}
