/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs: their life. Their queues are in sq.c, wr.c and rq.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sroce.h"
#include "sroce-abi.h"

static const uint32_t supported_mask = IBV_QP_INIT_ATTR_PD |
				       IBV_QP_INIT_ATTR_XRCD |
				       IBV_QP_INIT_ATTR_CREATE_FLAGS |
				       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

static const uint32_t raw_mask = IBV_QP_INIT_ATTR_PD |
				 IBV_QP_INIT_ATTR_CREATE_FLAGS |
				 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
				 IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
				 IBV_QP_INIT_ATTR_IND_TABLE |
				 IBV_QP_INIT_ATTR_RX_HASH;

static bool is_raw(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->qp_type == IBV_QPT_RAW_PACKET;
}

static uint32_t create_flags(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ?
	       attr->create_flags : 0;
}

/* A table of work queues, and how they share the packets, come together */
static int check_raw(const struct ibv_context *ctx,
		     const struct ibv_qp_init_attr_ex *attr)
{
	bool table = attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE;
	bool hash = attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH;

	if (!(to_sctx((struct ibv_context *)ctx)->caps & SROCE_CAP_RAW_PACKET) ||
	    create_flags(attr) & ~IBV_QP_CREATE_CVLAN_STRIPPING)
		return EOPNOTSUPP;
	/* Work queues say themselves what they do with tags */
	if (table && create_flags(attr))
		return EOPNOTSUPP;
	if (table != hash)
		return EINVAL;
	if (hash && attr->rx_hash_conf.rx_hash_key_len != SROCE_RX_HASH_KEY_LEN)
		return EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER &&
	    attr->max_tso_header > SROCE_MAX_TSO_HEADER)
		return EINVAL;
	return 0;
}

static int check_attr(const struct ibv_context *ctx,
		      const struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (!check_comp_mask(attr->comp_mask,
			     is_raw(attr) ? raw_mask : supported_mask))
		return EOPNOTSUPP;
	if (is_raw(attr)) {
		err = check_raw(ctx, attr);
		if (err)
			return err;
	} else if (create_flags(attr) & ~IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) {
		return EOPNOTSUPP;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return sroce_wr_check_ops(attr->qp_type, attr->send_ops_flags);
	return 0;
}

static struct ibv_pd *pd_of(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
}

/* An atomic write of ibv_wr_* carries its eight bytes inline. */
static void reserve_inline(struct ibv_qp_init_attr_ex *attr)
{
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE) &&
	    attr->cap.max_inline_data < sizeof(uint64_t))
		attr->cap.max_inline_data = sizeof(uint64_t);
}

/* The headers of a packet that is to be cut are in the request, behind the elements */
static void reserve_header(struct ibv_qp_init_attr_ex *attr)
{
	uint32_t room;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) ||
	    !attr->max_tso_header)
		return;
	room = attr->cap.max_send_sge * sizeof(struct sroce_sge) +
	       attr->max_tso_header;
	if (attr->cap.max_inline_data < room)
		attr->cap.max_inline_data = room;
}

static int init_queues(struct sroce_qp *qp, struct ibv_context *ctx,
		       const struct ibv_qp_init_attr_ex *attr,
		       const struct sroce_create_qp_resp *resp)
{
	/* Whoever polls posts to a QP with tag matching, whoever uses that */
	bool needs_locks = sroce_pd_needs_locks(pd_of(attr)) ||
			   sroce_tags_of(attr->srq);
	struct sroce_ring ring;
	int err;

	err = sroce_sq_init(&qp->sq, ctx, &resp->sq, attr, needs_locks);
	if (err)
		return err;

	sroce_ring_share(&ring, &qp->sq.ring, &resp->rq);
	err = sroce_rq_init(&qp->rq, &ring, attr->cap.max_recv_sge,
			    needs_locks);
	if (err)
		sroce_sq_fini(&qp->sq);
	return err;
}

/* No flag is set, and libibverbs does not take the mask bit here. */
static int cmd_create_qp(struct ibv_context *ctx, struct sroce_qp *qp,
			 struct ibv_qp_init_attr_ex *attr,
			 struct sroce_create_qp_resp *drv_resp)
{
	struct sroce_cmd_create_qp_resp resp = {};
	struct sroce_cmd_create_qp cmd = {};
	int err;

	attr->comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	err = ibv_cmd_create_qp_ex(ctx, &qp->vqp, attr, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	*drv_resp = resp.drv_payload;
	return err;
}

static void write_hash(struct sroce_create_qp_req *req,
		       const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *conf = &attr->rx_hash_conf;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH))
		return;
	req->rx_hash_function = conf->rx_hash_function;
	req->rx_hash_key_len = conf->rx_hash_key_len;
	req->rx_hash_fields = conf->rx_hash_fields_mask;
	memcpy(req->rx_hash_key, conf->rx_hash_key, conf->rx_hash_key_len);
}

static int cmd_create_qp_flags(struct ibv_context *ctx, struct sroce_qp *qp,
			       struct ibv_qp_init_attr_ex *attr,
			       struct sroce_create_qp_resp *drv_resp)
{
	struct sroce_cmd_create_qp_flags_resp resp = {};
	struct sroce_cmd_create_qp_flags cmd = {};
	int err;

	write_hash(&cmd.drv_payload, attr);
	err = ibv_cmd_create_qp_ex2(ctx, &qp->vqp, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	*drv_resp = resp.drv_payload;
	return err;
}

static int create_qp(struct ibv_context *ctx, struct sroce_qp *qp,
		     struct ibv_qp_init_attr_ex *attr)
{
	struct sroce_create_qp_resp resp;
	int err;

	reserve_inline(attr);
	reserve_header(attr);
	sroce_tags_reserve(attr);
	/* The younger command knows what the other one does not */
	if (create_flags(attr) || is_raw(attr))
		err = cmd_create_qp_flags(ctx, qp, attr, &resp);
	else
		err = cmd_create_qp(ctx, qp, attr, &resp);
	if (err)
		return err;

	err = init_queues(qp, ctx, attr, &resp);
	if (err) {
		ibv_cmd_destroy_qp(&qp->vqp.qp);
		return err;
	}

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		sroce_wr_init(qp, attr->send_ops_flags);
	sroce_cq_get(qp->vqp.qp.send_cq);
	sroce_cq_get(qp->vqp.qp.recv_cq);
	if (!sroce_tags_of(attr->srq))
		return 0;
	sroce_tags_hide(attr->srq, &attr->cap);
	sroce_sq_keep(&qp->sq);
	qp->sq.tags = true;
	atomic_fetch_add(&to_ssrq(attr->srq)->users, 1);
	qp->match_cq = to_scq(to_ssrq(attr->srq)->vsrq.cq);
	sroce_cq_get(&qp->match_cq->vcq.cq);
	sroce_tags_join(qp);
	return 0;
}

struct ibv_qp *sroce_create_qp_ex(struct ibv_context *ctx,
				  struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex wanted = *attr;
	struct sroce_origin origin;
	struct sroce_qp *qp;
	int err;

	err = check_attr(ctx, attr);
	if (err) {
		errno = err;
		return NULL;
	}

	qp = sroce_pd_alloc(pd_of(attr), sizeof(*qp), SROCE_RESOURCE_QP,
			    &origin);
	if (!qp)
		return NULL;
	qp->origin = origin;

	err = create_qp(ctx, qp, &wanted);
	if (err) {
		sroce_pd_free(qp, &origin);
		errno = err;
		return NULL;
	}

	attr->cap = wanted.cap;
	return &qp->vqp.qp;
}

struct ibv_qp *sroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = sroce_create_qp_ex(pd->context, &attr_ex);
	if (qp)
		attr->cap = attr_ex.cap;
	return qp;
}

/* The receiving half of an XRC connection: it has no queues of its own. */
struct ibv_qp *sroce_open_qp(struct ibv_context *ctx,
			     struct ibv_qp_open_attr *attr)
{
	const struct sroce_create_qp_resp no_queues = {};
	const struct ibv_qp_init_attr_ex no_attr = {
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ib_uverbs_create_qp_resp resp;
	struct ibv_open_qp cmd;
	struct sroce_qp *qp;
	int err;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	err = ibv_cmd_open_qp(ctx, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto free_qp;

	err = init_queues(qp, ctx, &no_attr, &no_queues);
	if (err)
		goto destroy_qp;
	return &qp->vqp.qp;

destroy_qp:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
free_qp:
	free(qp);
	errno = err;
	return NULL;
}

/* Any of the queues may be that of tag matching */
static void forget_completions(struct ibv_qp *qp)
{
	struct sroce_cq *match_cq = to_sqp(qp)->match_cq;
	uint32_t unexpected = 0;

	if (qp->send_cq)
		unexpected = sroce_cq_forget_qp(qp->send_cq, qp->qp_num);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		unexpected += sroce_cq_forget_qp(qp->recv_cq, qp->qp_num);
	if (!match_cq)
		return;
	unexpected += sroce_cq_forget_qp(&match_cq->vcq.cq, qp->qp_num);
	atomic_fetch_add(&to_ssrq(qp->srq)->unseen, unexpected);
}

/* The command that knows a rate limit is a younger one */
static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	struct ibv_modify_qp_ex cmd_ex = {};
	struct ibv_modify_qp cmd = {};

	if (mask & IBV_QP_RATE_LIMIT)
		return ibv_cmd_modify_qp_ex(qp, attr, mask, &cmd_ex,
					    sizeof(cmd_ex), &resp, sizeof(resp));
	return ibv_cmd_modify_qp(qp, attr, mask, &cmd, sizeof(cmd));
}

/* How long a burst is follows from the rate: it cannot be chosen */
int sroce_modify_qp_rate_limit(struct ibv_qp *qp,
			       struct ibv_qp_rate_limit_attr *rate)
{
	struct ibv_qp_attr attr = { .rate_limit = rate->rate_limit };

	if (rate->max_burst_sz || rate->typical_pkt_sz || rate->comp_mask)
		return EOPNOTSUPP;
	return modify_qp(qp, &attr, IBV_QP_RATE_LIMIT);
}

int sroce_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	bool reset = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
	int err;

	/* Nobody who polls may post to a ring that is about to be as new */
	if (reset)
		sroce_tags_pause(to_sqp(qp), true);
	err = modify_qp(qp, attr, mask);
	if (reset && !err) {
		forget_completions(qp);
		sroce_tags_forget(to_sqp(qp));
		sroce_sq_restart(&to_sqp(qp)->sq);
		sroce_rq_restart(&to_sqp(qp)->rq);
	}
	if (reset)
		sroce_tags_pause(to_sqp(qp), false);
	return err;
}

int sroce_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;
	int err;

	err = ibv_cmd_query_qp(qp, attr, mask, init_attr, &cmd, sizeof(cmd));
	if (err)
		return err;
	sroce_tags_hide(qp->srq, &attr->cap);
	sroce_tags_hide(qp->srq, &init_attr->cap);
	return 0;
}

int sroce_destroy_qp(struct ibv_qp *ibqp)
{
	struct sroce_qp *qp = to_sqp(ibqp);
	int err;

	sroce_tags_pause(qp, true);
	err = ibv_cmd_destroy_qp(ibqp);
	if (err) {
		sroce_tags_pause(qp, false);
		return err;
	}

	/* From here on the kernel adds none. */
	forget_completions(ibqp);
	sroce_tags_leave(qp);
	if (qp->match_cq) {
		sroce_cq_put(&qp->match_cq->vcq.cq);
		atomic_fetch_sub(&to_ssrq(ibqp->srq)->users, 1);
	}
	sroce_cq_put(ibqp->send_cq);
	sroce_cq_put(ibqp->recv_cq);
	sroce_rq_fini(&qp->rq);
	sroce_sq_fini(&qp->sq);
	sroce_pd_free(qp, &qp->origin);
	return 0;
}

int sroce_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad)
{
	struct sroce_qp *qp = to_sqp(ibqp);

	/* With a shared receive queue there is nowhere to post to. */
	if (ibqp->state == IBV_QPS_RESET || !qp->rq.ring.nr_entries) {
		*bad = wr;
		return EINVAL;
	}
	return sroce_rq_post_ring(&qp->rq, ibqp->context, ibqp->qp_num, wr, bad);
}
