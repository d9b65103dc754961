/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues.
 */
#include <errno.h>

#include "sroce.h"
#include "sroce-abi.h"

static struct ibv_pd *pd_of(const struct ibv_srq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL;
}

static int create_srq(struct ibv_context *ctx, struct sroce_srq *srq,
		      struct ibv_srq_init_attr_ex *attr)
{
	struct sroce_cmd_create_srq_resp resp = {};
	struct sroce_cmd_create_srq cmd = {};
	int err;

	err = ibv_cmd_create_srq_ex(ctx, &srq->vsrq, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;

	err = sroce_rq_map(&srq->rq, ctx, &resp.ring, attr->attr.max_sge,
			   sroce_pd_needs_locks(pd_of(attr)));
	if (err) {
		ibv_cmd_destroy_srq(&srq->vsrq.srq);
		return err;
	}

	srq->srqn = resp.srqn;
	if (!sroce_tags_of(&srq->vsrq.srq))
		return 0;
	err = sroce_tags_init_srq(srq, attr);
	if (err) {
		ibv_cmd_destroy_srq(&srq->vsrq.srq);
		sroce_rq_fini(&srq->rq);
	}
	return err;
}

static int check_kind(struct ibv_context *ctx,
		      const struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return 0;
	switch (attr->srq_type) {
	case IBV_SRQT_BASIC:
	case IBV_SRQT_XRC:
		return 0;
	case IBV_SRQT_TM:
		return sroce_tags_check_srq(ctx, attr);
	default:
		return EOPNOTSUPP;
	}
}

struct ibv_srq *sroce_create_srq_ex(struct ibv_context *ctx,
				    struct ibv_srq_init_attr_ex *attr)
{
	struct sroce_origin origin;
	struct sroce_srq *srq;
	int err;

	err = check_kind(ctx, attr);
	if (err) {
		errno = err;
		return NULL;
	}

	srq = sroce_pd_alloc(pd_of(attr), sizeof(*srq), SROCE_RESOURCE_SRQ,
			     &origin);
	if (!srq)
		return NULL;
	srq->origin = origin;

	err = create_srq(ctx, srq, attr);
	if (err) {
		sroce_pd_free(srq, &origin);
		errno = err;
		return NULL;
	}

	/* libibverbs does this for ibv_create_srq() only. */
	srq->vsrq.srq.pd = attr->pd;
	srq->vsrq.srq.srq_context = attr->srq_context;
	return &srq->vsrq.srq;
}

struct ibv_srq *sroce_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct ibv_srq *srq;

	srq = sroce_create_srq_ex(pd->context, &attr_ex);
	if (srq)
		attr->attr = attr_ex.attr;
	return srq;
}

static int cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
			  int mask, uint32_t step, struct sroce_ring_info *info)
{
	struct sroce_modify_srq_resp resp = {};
	struct sroce_cmd_modify_srq cmd = {
		.drv_payload = {
			.resp_addr = (uintptr_t)&resp,
			.step = step,
		},
	};
	int err;

	err = ibv_cmd_modify_srq(srq, attr, mask, &cmd.ibv_cmd, sizeof(cmd));
	*info = resp.ring;
	return err;
}

/*
 * The new ring is mapped before the queue moves there, so whatever fails, the
 * queue goes on with the ring that it has. What was posted moves along, to the
 * same indices, and nothing is posted meanwhile: the queue's lock is held.
 */
static int resize(struct sroce_rq *rq, struct ibv_srq *srq,
		  struct ibv_srq_attr *attr)
{
	struct sroce_ring_info info;
	struct sroce_ring ring;
	int err;

	err = cmd_modify_srq(srq, attr, IBV_SRQ_MAX_WR, SROCE_RESIZE_PREPARE,
			     &info);
	if (err)
		return err;

	err = sroce_ring_map(&ring, srq->context, &info);
	if (err) {
		cmd_modify_srq(srq, attr, IBV_SRQ_MAX_WR, SROCE_RESIZE_CANCEL,
			       &info);
		return err;
	}

	err = cmd_modify_srq(srq, attr, IBV_SRQ_MAX_WR, SROCE_RESIZE_MOVE,
			     &info);
	if (err) {
		sroce_ring_unmap(&ring);
		return err;
	}

	sroce_ring_unmap(&rq->ring);
	rq->ring = ring;
	rq->cons = sroce_load_index(&ring.hdr->cons);
	return 0;
}

/*
 * What the kernel would say to the second of two commands: when a call fails nothing
 * is modified. Sizes are rounded up, so a limit above the one asked for might do.
 */
static bool fits_together(const struct ibv_srq_attr *attr, int mask)
{
	const int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;

	if (mask & ~both)
		return false;
	return mask != both || attr->srq_limit <= attr->max_wr;
}

int sroce_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct sroce_rq *rq = &to_ssrq(ibsrq)->rq;
	struct sroce_ring_info info;
	int err = 0;

	if (!fits_together(attr, mask))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		sroce_lock(&rq->lock);
		err = resize(rq, ibsrq, attr);
		sroce_unlock(&rq->lock);
	}
	mask &= ~IBV_SRQ_MAX_WR;
	if (!err && mask)
		err = cmd_modify_srq(ibsrq, attr, mask, 0, &info);
	return err;
}

int sroce_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

int sroce_destroy_srq(struct ibv_srq *ibsrq)
{
	struct sroce_srq *srq = to_ssrq(ibsrq);
	int err;

	if (atomic_load(&srq->users))
		return EBUSY;
	err = ibv_cmd_destroy_srq(ibsrq);
	if (err)
		return err;

	sroce_tags_fini_srq(srq);
	sroce_rq_fini(&srq->rq);
	sroce_pd_free(srq, &srq->origin);
	return 0;
}

int sroce_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	if (to_ssrq(srq)->vsrq.srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP;

	*srq_num = to_ssrq(srq)->srqn;
	return 0;
}

int sroce_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad)
{
	struct sroce_posted posted;

	return sroce_rq_post(&to_ssrq(srq)->rq, wr, bad, &posted);
}
