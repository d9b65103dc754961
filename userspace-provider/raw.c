/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Raw packets, beside their queue pairs: work queues and tables of them, flows, and
 * counters of flows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sroce.h"
#include "sroce-abi.h"

static struct sroce_wq *to_swq(struct ibv_wq *wq)
{
	return container_of(wq, struct sroce_wq, wq);
}

static struct sroce_counters *to_scounters(struct ibv_counters *counters)
{
	return container_of(counters, struct sroce_counters,
			    vcounters.counters);
}

/* --- work queues --- */

static int post_wq_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad)
{
	if (ibwq->state == IBV_WQS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	/* The kernel flushes what is posted to a queue that has failed */
	return sroce_rq_post_ring(&to_swq(ibwq)->rq, ibwq->context,
				  ibwq->wq_num, wr, bad);
}

static int create_wq(struct ibv_context *ctx, struct sroce_wq *wq,
		     struct ibv_wq_init_attr *attr)
{
	struct sroce_cmd_create_wq_resp resp = {};
	struct sroce_cmd_create_wq cmd = {};
	int err;

	err = ibv_cmd_create_wq(ctx, attr, &wq->wq, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (err)
		return err;
	err = sroce_rq_map(&wq->rq, ctx, &resp.drv_payload.rq, attr->max_sge,
			   sroce_pd_needs_locks(attr->pd));
	if (err) {
		ibv_cmd_destroy_wq(&wq->wq);
		return err;
	}
	wq->wq.post_recv = post_wq_recv;
	sroce_cq_get(wq->wq.cq);
	return 0;
}

struct ibv_wq *sroce_create_wq(struct ibv_context *ctx,
			       struct ibv_wq_init_attr *attr)
{
	struct sroce_wq *wq;
	int err;

	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return NULL;
	err = create_wq(ctx, wq, attr);
	if (!err)
		return &wq->wq;
	free(wq);
	errno = err;
	return NULL;
}

int sroce_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	struct ibv_modify_wq cmd = {};
	int err;

	err = ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));
	if (err)
		return err;
	if ((attr->attr_mask & IBV_WQ_ATTR_STATE) &&
	    attr->wq_state == IBV_WQS_RESET) {
		sroce_cq_forget_qp(ibwq->cq, ibwq->wq_num);
		sroce_rq_restart(&to_swq(ibwq)->rq);
	}
	return 0;
}

int sroce_destroy_wq(struct ibv_wq *ibwq)
{
	struct sroce_wq *wq = to_swq(ibwq);
	int err;

	err = ibv_cmd_destroy_wq(ibwq);
	if (err)
		return err;
	sroce_cq_forget_qp(ibwq->cq, ibwq->wq_num);
	sroce_cq_put(ibwq->cq);
	sroce_rq_fini(&wq->rq);
	free(wq);
	return 0;
}

struct ibv_rwq_ind_table *
sroce_create_rwq_ind_table(struct ibv_context *ctx,
			   struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int err;

	/* rdma-core has a copy of all of it on the stack before the kernel says no */
	if (attr->log_ind_tbl_size > SROCE_MAX_LOG_IND_TABLE) {
		errno = EINVAL;
		return NULL;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	err = ibv_cmd_create_rwq_ind_table(ctx, attr, table, &resp,
					   sizeof(resp));
	if (!err)
		return table;
	free(table);
	errno = err;
	return NULL;
}

int sroce_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int err;

	err = ibv_cmd_destroy_rwq_ind_table(table);
	if (!err)
		free(table);
	return err;
}

/* --- flows --- */

/* Its counters, of which the kernel takes no more than one */
static struct sroce_counters *counters_of(const struct ibv_flow_attr *attr)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	const struct ibv_flow_spec *spec;
	int i;

	for (i = 0; i < attr->num_of_specs; i++) {
		spec = (const void *)at;
		if (spec->hdr.type == IBV_FLOW_SPEC_ACTION_COUNT)
			return to_scounters(spec->flow_count.counters);
		at += spec->hdr.size;
	}
	return NULL;
}

static void count_flow(struct sroce_counters *counters, int n)
{
	if (!counters)
		return;
	sroce_lock(&counters->lock);
	counters->flows += n;
	sroce_unlock(&counters->lock);
}

struct ibv_flow *sroce_create_flow(struct ibv_qp *qp,
				   struct ibv_flow_attr *attr)
{
	struct sroce_flow *flow;
	int err;

	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	err = ibv_cmd_create_flow(qp, &flow->flow, attr, NULL, 0);
	if (!err) {
		flow->counters = counters_of(attr);
		count_flow(flow->counters, 1);
		return &flow->flow;
	}
	free(flow);
	errno = err;
	return NULL;
}

int sroce_destroy_flow(struct ibv_flow *ibflow)
{
	struct sroce_flow *flow = container_of(ibflow, struct sroce_flow, flow);
	int err;

	/* As soon as the kernel has let go of them another thread may destroy the counters */
	count_flow(flow->counters, -1);
	err = ibv_cmd_destroy_flow(ibflow);
	if (err)
		count_flow(flow->counters, 1);
	else
		free(flow);
	return err;
}

/* --- counters --- */

struct ibv_counters *sroce_create_counters(struct ibv_context *ctx,
					   struct ibv_counters_init_attr *attr)
{
	struct sroce_counters *counters;
	int err;

	counters = calloc(1, sizeof(*counters));
	if (!counters)
		return NULL;
	err = sroce_lock_init(&counters->lock, true);
	if (err)
		goto free_counters;
	err = ibv_cmd_create_counters(ctx, attr, &counters->vcounters, NULL);
	if (!err)
		return &counters->vcounters.counters;
	sroce_lock_destroy(&counters->lock);
free_counters:
	free(counters);
	errno = err;
	return NULL;
}

int sroce_destroy_counters(struct ibv_counters *ibcounters)
{
	struct sroce_counters *counters = to_scounters(ibcounters);
	int err;

	err = ibv_cmd_destroy_counters(&counters->vcounters);
	if (err)
		return err;
	sroce_lock_destroy(&counters->lock);
	free(counters);
	return 0;
}

/*
 * The kernel counts everything there is; what is said here is where it shall be seen. A
 * flow takes its counters when it is made, and no others later; nor do their places change
 * as long as there is one.
 */
int sroce_attach_counters(struct ibv_counters *ibcounters,
			  struct ibv_counter_attach_attr *attr,
			  struct ibv_flow *flow)
{
	struct sroce_counters *counters = to_scounters(ibcounters);
	int err = 0;

	if (flow || attr->comp_mask ||
	    (attr->counter_desc != IBV_COUNTER_PACKETS &&
	     attr->counter_desc != IBV_COUNTER_BYTES))
		return EOPNOTSUPP;
	sroce_lock(&counters->lock);
	if (counters->flows)
		err = EBUSY;
	else if (counters->nplaces < SROCE_COUNTER_PLACES)
		counters->places[counters->nplaces++] =
			(struct sroce_counter_place){
				.desc = attr->counter_desc,
				.index = attr->index,
			};
	else
		err = ENOMEM;
	sroce_unlock(&counters->lock);
	return err;
}

static int place_counts(struct sroce_counters *counters,
			const uint64_t *counts, uint64_t *values, uint32_t n)
{
	const struct sroce_counter_place *place;
	unsigned int i;

	for (i = 0; i < counters->nplaces; i++)
		if (counters->places[i].index >= n)
			return EINVAL;
	memset(values, 0, n * sizeof(*values));
	for (i = 0; i < counters->nplaces; i++) {
		place = &counters->places[i];
		values[place->index] += place->desc == IBV_COUNTER_PACKETS ?
					counts[SROCE_FLOW_PACKETS] :
					counts[SROCE_FLOW_BYTES];
	}
	return 0;
}

int sroce_read_counters(struct ibv_counters *ibcounters, uint64_t *values,
			uint32_t n, uint32_t flags)
{
	struct sroce_counters *counters = to_scounters(ibcounters);
	uint64_t counts[SROCE_FLOW_COUNTS] = {};
	int err;

	err = ibv_cmd_read_counters(&counters->vcounters, counts,
				    SROCE_FLOW_COUNTS, flags, NULL);
	if (err)
		return err;
	sroce_lock(&counters->lock);
	err = place_counts(counters, counts, values, n);
	sroce_unlock(&counters->lock);
	return err;
}
