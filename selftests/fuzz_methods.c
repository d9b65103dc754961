// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ioctl interface of uverbs: methods with attributes of which some lack, come twice, or are not what they should
 * be; and plain noise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "fuzz.h"

/* --- what a method is made of ------------------------------------------------------ */

enum fz_form {
	A_END,
	A_IN, /* up to 8 bytes, in the attribute itself */
	A_OUT, /* @len bytes */
	A_OLD, /* handle or file of kind @arg */
	A_NEW, /* the same, made by the method */
	A_CAP, /* ib_uverbs_qp_cap; with @arg, of a QP that has no queues of its own */
	A_ADVICE, /* pieces of regions */
	A_REGION, /* an address, its length, and a second address: three attributes with the ids in @arg */
	A_PART, /* of device memory, from an offset on; the length has the id @arg */
	A_LENT, /* the same of a dma-buf, and an address for it: two attributes with the ids in @arg */
	A_TAGS, /* operations on tagged buffers */
	A_HASH, /* the driver's part of a QP with a table: how it shares frames */
};

struct fz_attr {
	uint16_t id;
	enum fz_form form;
	/* 0: as often as not */
	bool needed;
	uint16_t len;
	enum fz_what what;
	uint32_t arg;
};

struct fz_method {
	const char *name;
	uint16_t object, method;
	/* of the driver, each way */
	uint8_t driver_in, driver_out;
	enum fz_kind makes, ends;
	const struct fz_attr *attrs;
};

#define HANDLE(id, kind) { id, A_OLD, true, 0, W_HANDLE, kind }
#define PERHAPS(id, kind) { id, A_OLD, false, 0, W_HANDLE, kind }
#define MAKES(id, kind) { id, A_NEW, true, 0, W_ZERO, kind }
#define IN(id, len, what, arg) { id, A_IN, true, len, what, arg }
#define OUT(id, len) { id, A_OUT, true, len }
#define ENDS(id, kind) { HANDLE(id, kind), { 0 } }

static const struct fz_attr a_none[] = { { 0 } };
static const struct fz_attr a_port[] = {
	IN(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, W_BELOW, 3), OUT(UVERBS_ATTR_QUERY_PORT_RESP, 56), { 0 }
};
static const struct fz_attr a_handles[] = {
	IN(UVERBS_ATTR_INFO_OBJECT_ID, 8, W_BELOW, 24), OUT(UVERBS_ATTR_INFO_TOTAL_HANDLES, 4),
	OUT(UVERBS_ATTR_INFO_HANDLES_LIST, 64), { 0 }
};
static const struct fz_attr a_query_context[] = {
	OUT(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4), OUT(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8),
	OUT(SROCE_ATTR_QUERY_CONTEXT_RESP, sizeof(struct sroce_query_context_resp)), { 0 }
};
static const struct fz_attr a_alloc_dm[] = {
	MAKES(UVERBS_ATTR_ALLOC_DM_HANDLE, FZ_DM), IN(UVERBS_ATTR_ALLOC_DM_LENGTH, 8, W_BELOW, 1 << 17),
	IN(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, W_BELOW, 14), { 0 }
};
static const struct fz_attr a_query_dm[] = {
	HANDLE(SROCE_ATTR_QUERY_DM_HANDLE, FZ_DM), OUT(SROCE_ATTR_QUERY_DM_RESP, sizeof(struct sroce_query_dm_resp)), { 0 }
};
static const struct fz_attr a_reg_dm[] = {
	MAKES(UVERBS_ATTR_REG_DM_MR_HANDLE, FZ_MR), HANDLE(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, FZ_DM),
	HANDLE(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, FZ_PD),
	{ UVERBS_ATTR_REG_DM_MR_OFFSET, A_PART, true, 8, W_ZERO, UVERBS_ATTR_REG_DM_MR_LENGTH },
	IN(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, 4, W_DM_ACCESS, 0), OUT(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, 4),
	OUT(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, 4), { 0 }
};
static const struct fz_attr a_gid_table[] = {
	IN(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, W_BELOW, 80), IN(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, W_ZERO, 0),
	OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 240), OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8), { 0 }
};
static const struct fz_attr a_gid[] = {
	IN(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 8, W_BELOW, 3), IN(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 8, W_BELOW, 12),
	IN(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, W_ZERO, 0), OUT(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 32), { 0 }
};
static const struct fz_attr a_async[] = { MAKES(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, FZ_ASYNC), { 0 } };
static const struct fz_attr a_create_cq[] = {
	MAKES(UVERBS_ATTR_CREATE_CQ_HANDLE, FZ_CQ), IN(UVERBS_ATTR_CREATE_CQ_CQE, 4, W_DEPTH, 0),
	IN(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, W_RANDOM, 0), PERHAPS(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, FZ_CHANNEL),
	IN(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, W_BELOW, 2), IN(UVERBS_ATTR_CREATE_CQ_FLAGS, 4, W_BITS, 3),
	OUT(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4), PERHAPS(UVERBS_ATTR_CREATE_CQ_EVENT_FD, FZ_ASYNC), { 0 }
};
static const struct fz_attr a_destroy_cq[] = {
	HANDLE(UVERBS_ATTR_DESTROY_CQ_HANDLE, FZ_CQ), OUT(UVERBS_ATTR_DESTROY_CQ_RESP, 8), { 0 }
};
static const struct fz_attr a_create_qp[] = {
	MAKES(UVERBS_ATTR_CREATE_QP_HANDLE, FZ_QP), PERHAPS(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, FZ_XRCD),
	PERHAPS(UVERBS_ATTR_CREATE_QP_PD_HANDLE, FZ_PD), PERHAPS(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, FZ_SRQ),
	HANDLE(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, FZ_CQ), HANDLE(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, FZ_CQ),
	IN(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, W_RANDOM, 0), { UVERBS_ATTR_CREATE_QP_CAP, A_CAP, true, 20 },
	IN(UVERBS_ATTR_CREATE_QP_TYPE, 8, W_QP_TYPE, 0), IN(UVERBS_ATTR_CREATE_QP_FLAGS, 4, W_BITS, 2),
	PERHAPS(UVERBS_ATTR_CREATE_QP_EVENT_FD, FZ_ASYNC), OUT(UVERBS_ATTR_CREATE_QP_RESP_CAP, 20),
	OUT(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4), { 0 }
};
static const struct fz_attr a_destroy_qp[] = {
	HANDLE(UVERBS_ATTR_DESTROY_QP_HANDLE, FZ_QP), OUT(UVERBS_ATTR_DESTROY_QP_RESP, 4), { 0 }
};
static const struct fz_attr a_create_shares[] = {
	MAKES(UVERBS_ATTR_CREATE_QP_HANDLE, FZ_QP), HANDLE(UVERBS_ATTR_CREATE_QP_PD_HANDLE, FZ_PD),
	HANDLE(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, FZ_TABLE), PERHAPS(UVERBS_ATTR_CREATE_QP_EVENT_FD, FZ_ASYNC),
	IN(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, W_RANDOM, 0), { UVERBS_ATTR_CREATE_QP_CAP, A_CAP, true, 20, W_ZERO, 1 },
	IN(UVERBS_ATTR_CREATE_QP_TYPE, 8, W_RAW, 0), IN(UVERBS_ATTR_CREATE_QP_FLAGS, 4, W_ZERO, 0),
	{ UVERBS_ATTR_UHW_IN, A_HASH, true }, OUT(UVERBS_ATTR_CREATE_QP_RESP_CAP, 20),
	OUT(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4), { 0 }
};
/* without a completion queue as often as with one */
static const struct fz_attr a_create_wq[] = {
	MAKES(UVERBS_ATTR_CREATE_WQ_HANDLE, FZ_WQ), HANDLE(UVERBS_ATTR_CREATE_WQ_PD_HANDLE, FZ_PD),
	PERHAPS(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, FZ_CQ), IN(UVERBS_ATTR_CREATE_WQ_USER_HANDLE, 8, W_RANDOM, 0),
	IN(UVERBS_ATTR_CREATE_WQ_TYPE, 8, W_ZERO, 0), PERHAPS(UVERBS_ATTR_CREATE_WQ_EVENT_FD, FZ_ASYNC),
	IN(UVERBS_ATTR_CREATE_WQ_MAX_WR, 4, W_DEPTH, 0), IN(UVERBS_ATTR_CREATE_WQ_MAX_SGE, 4, W_SGES, 0),
	IN(UVERBS_ATTR_CREATE_WQ_FLAGS, 4, W_BITS, 1), OUT(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4),
	OUT(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, 4), OUT(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4), { 0 }
};
static const struct fz_attr a_destroy_wq[] = {
	HANDLE(UVERBS_ATTR_DESTROY_WQ_HANDLE, FZ_WQ), OUT(UVERBS_ATTR_DESTROY_WQ_RESP, 4), { 0 }
};
static const struct fz_attr a_read_counters[] = {
	HANDLE(UVERBS_ATTR_READ_COUNTERS_HANDLE, FZ_COUNTERS), OUT(UVERBS_ATTR_READ_COUNTERS_BUFF, 24),
	IN(UVERBS_ATTR_READ_COUNTERS_FLAGS, 4, W_BITS, 1), { 0 }
};
static const struct fz_attr a_create_srq[] = {
	MAKES(UVERBS_ATTR_CREATE_SRQ_HANDLE, FZ_SRQ), HANDLE(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, FZ_PD),
	IN(UVERBS_ATTR_CREATE_SRQ_TYPE, 8, W_BELOW, 3), IN(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, W_RANDOM, 0),
	IN(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, W_DEPTH, 0), IN(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, W_SGES, 0),
	IN(UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, W_BELOW, 3), PERHAPS(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, FZ_XRCD),
	PERHAPS(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, FZ_CQ), PERHAPS(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, FZ_ASYNC),
	IN(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, 4, W_BELOW, 1100), OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4), OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4),
	OUT(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4), { 0 }
};
static const struct fz_attr a_tags[] = {
	HANDLE(SROCE_ATTR_SRQ_TAGS_HANDLE, FZ_SRQ),
	{ SROCE_ATTR_SRQ_TAGS_OPS, A_TAGS, true, 2 * sizeof(struct sroce_tag_op) },
	OUT(SROCE_ATTR_SRQ_TAGS_RESP, sizeof(struct sroce_tag_ops_resp)), { 0 }
};
static const struct fz_attr a_destroy_srq[] = {
	HANDLE(UVERBS_ATTR_DESTROY_SRQ_HANDLE, FZ_SRQ), OUT(UVERBS_ATTR_DESTROY_SRQ_RESP, 4), { 0 }
};
static const struct fz_attr a_advise[] = {
	HANDLE(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, FZ_PD), IN(UVERBS_ATTR_ADVISE_MR_ADVICE, 8, W_BELOW, 4),
	IN(UVERBS_ATTR_ADVISE_MR_FLAGS, 4, W_BELOW, 2), { UVERBS_ATTR_ADVISE_MR_SGE_LIST, A_ADVICE, true, 64 }, { 0 }
};
static const struct fz_attr a_query_mr[] = {
	HANDLE(UVERBS_ATTR_QUERY_MR_HANDLE, FZ_MR), OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4),
	OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4), OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8),
	OUT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8), { 0 }
};
static const struct fz_attr a_dmabuf[] = {
	MAKES(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, FZ_MR), HANDLE(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, FZ_PD),
	{ UVERBS_ATTR_REG_DMABUF_MR_OFFSET, A_LENT, true, 8, W_ZERO,
	  UVERBS_ATTR_REG_DMABUF_MR_LENGTH << 8 | UVERBS_ATTR_REG_DMABUF_MR_IOVA },
	IN(UVERBS_ATTR_REG_DMABUF_MR_FD, 4, W_BUFFER, 0),
	IN(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, W_ACCESS, 0), OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4),
	OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4), { 0 }
};
/* newer than the headers of some systems: by number, as for the method below */
static const struct fz_attr a_reg_mr[] = {
	MAKES(0, FZ_MR), HANDLE(1, FZ_PD), { 4, A_REGION, true, 8, W_ZERO, 5 << 8 | 3 }, IN(6, 4, W_ACCESS, 0),
	OUT(9, 4), OUT(10, 4), { 0 }
};
static const struct fz_attr a_create_counters[] = { MAKES(UVERBS_ATTR_CREATE_COUNTERS_HANDLE, FZ_COUNTERS), { 0 } };
static const struct fz_attr e_pd[] = ENDS(UVERBS_ATTR_DESTROY_PD_HANDLE, FZ_PD);
static const struct fz_attr e_mr[] = ENDS(UVERBS_ATTR_DESTROY_MR_HANDLE, FZ_MR);
static const struct fz_attr e_mw[] = ENDS(UVERBS_ATTR_DESTROY_MW_HANDLE, FZ_MW);
static const struct fz_attr e_ah[] = ENDS(UVERBS_ATTR_DESTROY_AH_HANDLE, FZ_AH);
static const struct fz_attr e_xrcd[] = ENDS(UVERBS_ATTR_DESTROY_XRCD_HANDLE, FZ_XRCD);
static const struct fz_attr e_dm[] = ENDS(UVERBS_ATTR_FREE_DM_HANDLE, FZ_DM);
static const struct fz_attr e_flow[] = ENDS(UVERBS_ATTR_DESTROY_FLOW_HANDLE, FZ_FLOW);
static const struct fz_attr e_table[] = ENDS(UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, FZ_TABLE);
static const struct fz_attr e_counters[] = ENDS(UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, FZ_COUNTERS);

static const struct fz_method methods[] = {
	{ "query port", UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 0, 0, 0, 0, a_port },
	{ "list handles", UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, 0, 0, 0, 0, a_handles },
	{ "query context", UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 0, 0, 0, 0, a_query_context },
	{ "query gids", UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, 0, 0, 0, 0, a_gid_table },
	{ "query gid", UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, 0, 0, 0, 0, a_gid },
	{ "make event file", UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, 0, 0, FZ_ASYNC, 0, a_async },
	{ "create cq", UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, 8, sizeof(struct sroce_create_cq_resp), FZ_CQ, 0,
	  a_create_cq },
	{ "destroy cq", UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, 0, 0, 0, FZ_CQ, a_destroy_cq },
	{ "create qp", UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, 8, sizeof(struct sroce_create_qp_resp), FZ_QP, 0,
	  a_create_qp },
	{ "destroy qp", UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, 0, 0, 0, FZ_QP, a_destroy_qp },
	{ "create srq", UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, 8, sizeof(struct sroce_create_srq_resp), FZ_SRQ, 0,
	  a_create_srq },
	{ "change tags", UVERBS_OBJECT_SRQ, SROCE_METHOD_SRQ_TAGS, 0, 0, 0, 0, a_tags },
	{ "change tags", UVERBS_OBJECT_SRQ, SROCE_METHOD_SRQ_TAGS, 0, 0, 0, 0, a_tags },
	{ "destroy srq", UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, 0, 0, 0, FZ_SRQ, a_destroy_srq },
	{ "advise mr", UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, 0, 0, 0, 0, a_advise },
	{ "advise mr", UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, 0, 0, 0, 0, a_advise },
	{ "query mr", UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, 0, 0, 0, 0, a_query_mr },
	{ "reg dma-buf", UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, 0, 0, FZ_MR, 0, a_dmabuf },
	{ "reg mr", UVERBS_OBJECT_MR, 5, 0, 0, FZ_MR, 0, a_reg_mr },
	{ "alloc dm", UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 0, 0, FZ_DM, 0, a_alloc_dm },
	{ "query dm", UVERBS_OBJECT_DM, SROCE_METHOD_DM_QUERY, 0, 0, 0, 0, a_query_dm },
	{ "reg dm mr", UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, 0, 0, FZ_MR, 0, a_reg_dm },
	{ "reg dm mr", UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, 0, 0, FZ_MR, 0, a_reg_dm },
	{ "free dm", UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, 0, 0, 0, FZ_DM, e_dm },
	{ "create counters", UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, 0, 0, FZ_COUNTERS, 0,
	  a_create_counters },
	{ "destroy counters", UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, 0, 0, 0, FZ_COUNTERS, e_counters },
	{ "read counters", UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, 0, 0, 0, 0, a_read_counters },
	{ "create qp of a table", UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, 0, sizeof(struct sroce_create_qp_resp), FZ_QP, 0,
	  a_create_shares },
	{ "create wq", UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, sizeof(struct sroce_create_wq_req),
	  sizeof(struct sroce_create_wq_resp), FZ_WQ, 0, a_create_wq },
	{ "destroy wq", UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, 0, 0, 0, FZ_WQ, a_destroy_wq },
	{ "destroy table", UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY, 0, 0, 0, FZ_TABLE, e_table },
	{ "destroy flow", UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, 0, 0, 0, FZ_FLOW, e_flow },
	{ "dealloc pd", UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, 0, 0, 0, FZ_PD, e_pd },
	{ "dereg mr", UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, 0, 0, 0, FZ_MR, e_mr },
	{ "dealloc mw", UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, 0, 0, 0, FZ_MW, e_mw },
	{ "destroy ah", UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, 0, 0, 0, FZ_AH, e_ah },
	{ "close xrcd", UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, 0, 0, 0, FZ_XRCD, e_xrcd },
	{ "no method", UVERBS_OBJECT_MR, 9, 0, 0, 0, 0, a_none },
};

const char *fz_method_name(uint32_t i)
{
	_Static_assert(ARRAY_SIZE(methods) <= FZ_CALLS_MOST, "methods");
	return i < ARRAY_SIZE(methods) ? methods[i].name : NULL;
}

/* --- a request ------------------------------------------------------------------------ */

#define ATTRS 24

struct request {
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[ATTRS];
	} r;
	uint32_t n;
	/* what is too long for an attribute */
	uint64_t in[32], out[64];
	uint32_t out_len;
	struct sroce_create_qp_req hash;
	bool shares;
	/* where the answers are, counted in attributes and bytes of @out */
	int made, driver, number;
	uint64_t start, length, iova;
	uint32_t pd, access;
	/* for answers that are longer than what is there for them */
	uint8_t slack[4096];
};

static struct ib_uverbs_attr *add(struct request *q, uint16_t id, uint32_t len, uint64_t data)
{
	struct ib_uverbs_attr *a = &q->r.attr[q->n++];

	*a = (struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
	return a;
}

/* room in @out */
static uint64_t out(struct request *q, uint32_t len)
{
	uint64_t at = (uintptr_t)q->out + q->out_len;

	q->out_len += (len + 7) & ~7;
	return at;
}

static void add_cap(struct fz_thread *t, struct request *q, const struct fz_attr *a)
{
	uint32_t cap[5] = { fz_value(t, NULL, W_DEPTH, 0), fz_value(t, NULL, W_DEPTH, 0), 1 + fz_below(t, 4),
			    1 + fz_below(t, 4), fz_below(t, 200) };

	if (a->arg) {
		cap[0] = fz_once(t, 16);
		cap[1] = 0;
		cap[3] = 0;
	}
	memcpy(q->in, cap, sizeof(cap));
	add(q, a->id, sizeof(cap), (uintptr_t)fz_elsewhere(t, q->in, sizeof(cap)));
}

static void add_advice(struct fz_thread *t, struct fz_ctx *c, struct request *q, uint16_t id)
{
	struct ib_uverbs_sge sge[4] = {};
	uint32_t i, n = 1 + fz_below(t, 4);
	uint64_t start, length;
	struct fz_obj *o;

	for (i = 0; i < n; i++) {
		o = fz_once(t, 16) ? fz_anyone(t, FZ_MR) : fz_some(t, c, FZ_MR);
		/* whoever asks to wait for a page would */
		if (!o)
			continue;
		fz_part_of(t, o, &start, &length);
		if (fz_never_comes(o->start) || fz_never_comes(start))
			continue;
		sge[i].addr = start + fz_below(t, length);
		sge[i].length = fz_below(t, length);
		sge[i].lkey = o->number;
	}
	memcpy(q->in, sge, sizeof(sge));
	add(q, id, n * sizeof(sge[0]), (uintptr_t)fz_elsewhere(t, q->in, sizeof(sge)));
}

/* Few tags and few entries, so that something matches, and is deleted, now and then */
static void some_tag_op(struct fz_thread *t, struct fz_ctx *c, struct sroce_tag_op *op)
{
	struct fz_obj *o = fz_some(t, c, FZ_MR);
	uint64_t start, length;

	op->opcode = fz_below(t, fz_once(t, 8) ? 4 : 3);
	op->flags = fz_below(t, 4);
	op->unexpected_cnt = op->flags & SROCE_TAG_SYNCS ? fz_below(t, 8) : 0;
	if (op->opcode == SROCE_TAG_DEL)
		op->handle = (1 + fz_below(t, 4)) << 16 | fz_below(t, 4);
	if (op->opcode != SROCE_TAG_ADD)
		return;
	op->tag = fz_below(t, 4);
	op->mask = fz_below(t, 8);
	op->recv_wr_id = fz_rand(t);
	if (!o)
		return;
	fz_part_of(t, o, &start, &length);
	op->num_sge = 1;
	op->sge[0].addr = start;
	op->sge[0].length = length;
	op->sge[0].lkey = o->number;
}

static void add_tags(struct fz_thread *t, struct fz_ctx *c, struct request *q, uint16_t id)
{
	struct sroce_tag_op ops[2] = {};
	uint32_t n = 1 + fz_below(t, 2);

	some_tag_op(t, c, &ops[0]);
	some_tag_op(t, c, &ops[1]);
	memcpy(q->in, ops, sizeof(ops));
	add(q, id, n * sizeof(ops[0]), (uintptr_t)fz_elsewhere(t, q->in, sizeof(ops)));
}

static void add_region(struct fz_thread *t, struct request *q, const struct fz_attr *a)
{
	do
		fz_some_range(t, &q->start, &q->length);
	while (fz_never_comes(q->start));
	if (fz_once(t, 8)) {
		q->start = 0;
		q->length = ~0ull;
	}
	q->iova = q->start;
	add(q, a->id, 8, q->start);
	add(q, a->arg >> 8, 8, q->length);
	add(q, a->arg & 0xff, 8, q->iova);
}

static void add_part(struct fz_thread *t, struct request *q, const struct fz_attr *a)
{
	q->length = 1 + fz_below(t, 1 << 16);
	add(q, a->id, 8, fz_once(t, 2) ? 0 : fz_below(t, 1 << 16));
	add(q, a->arg, 8, q->length);
}

static void add_lent(struct fz_thread *t, struct request *q, const struct fz_attr *a)
{
	uint64_t offset = fz_below(t, fz_once(t, 4) ? FZ_BUFFER : 65536);

	q->length = fz_once(t, 8) ? FZ_BUFFER - offset : 1 + fz_below(t, 1 << 16);
	q->iova = (uint64_t)fz_below(t, 1 << 20) << 20 | (offset & 4095);
	add(q, a->id, 8, offset);
	add(q, a->arg >> 8, 8, q->length);
	add(q, a->arg & 0xff, 8, q->iova);
}

static void add_value(struct fz_thread *t, struct fz_ctx *c, struct request *q, const struct fz_attr *a)
{
	uint64_t v = fz_value(t, c, a->what, a->arg) & (a->len < 8 ? (1ull << 8 * a->len) - 1 : ~0ull);

	if (a->what == W_ACCESS || a->what == W_DM_ACCESS) {
		/* all addresses only on demand */
		if (fz_is_implicit(q->start, q->length))
			v = (v & ~FZ_WRITES) | IBV_ACCESS_ON_DEMAND;
		q->access = v;
	}
	add(q, a->id, a->len, v);
}

static void add_attr(struct fz_thread *t, struct fz_ctx *c, struct request *q, const struct fz_attr *a)
{
	switch (a->form) {
	case A_IN:
		add_value(t, c, q, a);
		break;
	case A_OUT:
		/* the last number of an answer is the one that counts */
		q->number = q->out_len;
		add(q, a->id, a->len, out(q, a->len));
		break;
	case A_OLD:
		add(q, a->id, 0, fz_handle(t, c, a->arg));
		if (a->arg == FZ_PD)
			q->pd = q->r.attr[q->n - 1].data;
		break;
	case A_NEW:
		q->made = q->n;
		add(q, a->id, 0, 0);
		break;
	case A_CAP:
		add_cap(t, q, a);
		break;
	case A_ADVICE:
		add_advice(t, c, q, a->id);
		break;
	case A_TAGS:
		add_tags(t, c, q, a->id);
		break;
	case A_PART:
		add_part(t, q, a);
		break;
	case A_LENT:
		add_lent(t, q, a);
		break;
	case A_HASH:
		fz_hash(t, &q->hash);
		add(q, a->id, sizeof(q->hash), (uintptr_t)fz_elsewhere(t, &q->hash, sizeof(q->hash)));
		q->shares = true;
		break;
	default:
		add_region(t, q, a);
	}
}

static bool is_ours(const struct request *q, uint64_t at)
{
	return at - (uintptr_t)q < sizeof(*q);
}

static void spoil(struct fz_thread *t, struct request *q)
{
	struct ib_uverbs_attr *a = &q->r.attr[fz_below(t, max(q->n, 1u))];
	void *buffer;

	switch (fz_below(t, 9)) {
	case 0: a->attr_id = fz_below(t, 24) | (fz_once(t, 4) ? 0x1000 : 0); break;
	case 1: a->len = fz_borderline(t, a->len) & 2047; break;
	case 2: a->data = is_ours(q, a->data) ? fz_bad_pointer(t) : fz_borderline(t, a->data); break;
	case 3: a->flags = fz_rand(t); break;
	case 4: a->attr_data.reserved = fz_rand(t); break;
	case 5: q->r.attr[q->n] = *a; q->n++; break;
	case 6: q->n -= q->n > 0; break;
	case 7: q->r.hdr.reserved1 = fz_below(t, 2); q->r.hdr.reserved2 = fz_below(t, 2); break;
	default:
		buffer = fz_some_buffer(t, 256);
		a->data = buffer ? (uintptr_t)buffer : a->data;
	}
}

/* Whichever attribute is the address and whichever the length, now, and the rights */
static void spare_others(struct request *q)
{
	struct ib_uverbs_attr *addr = NULL, *len = NULL;
	uint32_t i;

	for (i = 0; i < q->n; i++) {
		addr = q->r.attr[i].attr_id == 4 ? &q->r.attr[i] : addr;
		len = q->r.attr[i].attr_id == 5 ? &q->r.attr[i] : len;
	}
	if (!addr || !len)
		return;
	if (!fz_is_implicit(addr->data, len->data)) {
		fz_spare_canaries((uint64_t *)&addr->data, (uint64_t *)&len->data);
		return;
	}
	for (i = 0; i < q->n; i++)
		if (q->r.attr[i].attr_id == 6)
			q->r.attr[i].data &= ~(uint64_t)FZ_WRITES;
}

static void build(struct fz_thread *t, struct fz_ctx *c, const struct fz_method *m, struct request *q)
{
	const struct fz_attr *a;

	memset(q, 0, sizeof(*q));
	q->made = -1;
	q->r.hdr.object_id = m->object;
	q->r.hdr.method_id = m->method;
	q->r.hdr.driver_id = SROCE_DRIVER_ID;
	for (a = m->attrs; a->form; a++)
		if (a->needed || fz_once(t, 2))
			add_attr(t, c, q, a);
	if (m->driver_in)
		add(q, UVERBS_ATTR_UHW_IN, m->driver_in, 0);
	q->driver = q->out_len;
	if (m->driver_out)
		add(q, UVERBS_ATTR_UHW_OUT, m->driver_out, out(q, m->driver_out));
}

static void remember(struct fz_thread *t, struct fz_ctx *c, const struct fz_method *m, const struct request *q)
{
	struct fz_obj o = { .handle = q->r.attr[q->made].data, .start = q->start, .length = q->length,
			    .iova = q->access & IBV_ACCESS_ZERO_BASED ? 0 : q->iova, .shares = q->shares, .pd = q->pd,
			    .access = q->access };

	if (q->shares)
		o.type = IB_UVERBS_QPT_RAW_PACKET;
	t->beat->implicit += m->attrs == a_reg_mr && fz_is_implicit(q->start, q->length);
	t->beat->lent += m->attrs == a_dmabuf;
	t->beat->devices += m->attrs == a_reg_dm;
	memcpy(&o.number, (const uint8_t *)q->out + q->number, 4);
	if (m->driver_out)
		fz_describe_rings(&o, m->makes, (const uint8_t *)q->out + q->driver);
	fz_made(t, c, m->makes, &o);
}

void fz_method_step(struct fz_thread *t)
{
	const struct fz_method *m = &methods[fz_below(t, ARRAY_SIZE(methods))];
	struct fz_ctx *c = fz_some_ctx(t);
	bool spoilt = fz_below(t, 256) < t->wild;
	struct request q;
	int rc;

	build(t, c, m, &q);
	if (spoilt)
		spoil(t, &q);
	q.r.hdr.num_attrs = q.n;
	q.r.hdr.length = sizeof(q.r.hdr) + q.n * sizeof(q.r.attr[0]);
	if (m->attrs == a_reg_mr && spoilt)
		spare_others(&q);
	if (spoilt && fz_once(t, 8))
		q.r.hdr.length += 8;
	rc = FZ_CALL(t, m->name, q.n ? q.r.attr[0].data : 0, ioctl(c->fd, RDMA_VERBS_IOCTL, &q.r) ? -errno : 0);
	*(rc ? &t->beat->refused : &t->beat->good) += 1;
	t->beat->methods[m - methods] += !rc;
	t->beat->asked[m - methods]++;
	t->beat->unknown[m - methods] += rc == -EPROTONOSUPPORT;
	if (!rc && m->makes && !spoilt && q.made >= 0)
		remember(t, c, m, &q);
	if (!rc && m->ends)
		fz_drop(c, m->ends, q.r.attr[0].data);
	if (rc && m->makes)
		atomic_store(&board->large, false);
	if (!rc && !spoilt && m->attrs == a_query_context)
		close(((const struct sroce_query_context_resp *)((const uint8_t *)q.out + q.number))->doorbell_fd);
}

/* --- noise ------------------------------------------------------------------------------ */

static void babble_write(struct fz_thread *t, int fd, uint64_t *buf, uint32_t words)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)buf;

	hdr->command = fz_below(t, 64) | (fz_once(t, 8) ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
	hdr->in_words = 2 + fz_below(t, words - 4);
	hdr->out_words = fz_below(t, 32);
	buf[1] = (uintptr_t)(buf + words / 2);
	FZ_CALL(t, "random command", hdr->command, write(fd, buf, hdr->in_words * 4));
}

static void babble_ioctl(struct fz_thread *t, int fd, uint64_t *buf, uint32_t words)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)buf;
	uint32_t i;

	hdr->num_attrs = fz_below(t, 8);
	hdr->length = sizeof(*hdr) + hdr->num_attrs * sizeof(struct ib_uverbs_attr);
	hdr->object_id = fz_below(t, 32);
	hdr->method_id = fz_below(t, 16);
	/* ib_core 7.2 forgets a reference to the task when there is a context already: not our leak */
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_GET_CONTEXT)
		return;
	hdr->reserved1 = 0;
	hdr->reserved2 = 0;
	hdr->driver_id = SROCE_DRIVER_ID;
	for (i = 0; i < hdr->num_attrs; i++) {
		hdr->attrs[i].attr_id = fz_below(t, 24) | (fz_once(t, 8) ? 0x1000 : 0);
		hdr->attrs[i].len = fz_once(t, 4) ? fz_below(t, 256) : 8;
		hdr->attrs[i].flags = fz_below(t, 2);
		if (hdr->attrs[i].len > 8)
			hdr->attrs[i].data = (uintptr_t)(buf + words / 2);
	}
	FZ_CALL(t, "random method", hdr->object_id << 16 | hdr->method_id, ioctl(fd, RDMA_VERBS_IOCTL, hdr));
}

void fz_babble_step(struct fz_thread *t)
{
	struct sroce_alloc_ucontext_resp resp = { .doorbell_fd = -1 };
	struct sroce_alloc_ucontext_req req = {};
	uint64_t buf[128];
	uint32_t i, j;
	int fd;

	fd = open(board->dev[fz_below(t, board->ndevs)].path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	/* with a context or without one */
	if (!fz_once(t, 4) && !uv_get_context(fd, &req, sizeof(req), &resp, sizeof(resp)))
		close(resp.doorbell_fd);
	for (i = 0; i < 50; i++) {
		for (j = 0; j < ARRAY_SIZE(buf); j++)
			buf[j] = fz_below(t, 3) ? fz_rand(t) : fz_below(t, 8);
		if (fz_once(t, 2))
			babble_write(t, fd, buf, ARRAY_SIZE(buf));
		else
			babble_ioctl(t, fd, buf, ARRAY_SIZE(buf));
	}
	FZ_CALL(t, "close", fd, close(fd));
}
