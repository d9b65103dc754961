// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The write interface of uverbs: every command, with values that make sense most of the time, and in shapes that are
 * right most of the time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "fuzz.h"

/* --- what a command is made of -------------------------------------------------- */

struct fz_field {
	uint16_t offset, size;
	enum fz_what what;
	uint32_t arg;
};

struct fz_verb {
	const char *name;
	uint32_t number;
	/* the core's part and the driver's, each way */
	uint16_t in, out, driver_in, driver_out;
	enum fz_kind makes, ends;
	uint8_t weight;
	const struct fz_field *fields;
	/* what one field has to do with another */
	void (*tie)(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver);
};

#define AT(s, f) offsetof(struct s, f), sizeof(((struct s *)0)->f)

static const uint8_t qp_types[] = {
	IB_UVERBS_QPT_RC, IB_UVERBS_QPT_RC, IB_UVERBS_QPT_RC, IB_UVERBS_QPT_UC, IB_UVERBS_QPT_UD,
	IB_UVERBS_QPT_XRC_INI, IB_UVERBS_QPT_XRC_TGT, IB_UVERBS_QPT_RAW_PACKET,
};

/* --- ties ------------------------------------------------------------------------ */

/* Something large only if nobody else has it: the machine is not what is tested */
static uint32_t depth(struct fz_thread *t)
{
	static const uint32_t limits[] = { 0, 4096, 32767, 32768, 32769, 65536, 4194303, 4194304, 4194305, 0xffffffff };

	if (fz_once(t, 64) && !atomic_exchange(&board->large, true))
		return limits[fz_below(t, ARRAY_SIZE(limits))];
	return 1 + fz_below(t, fz_once(t, 4) ? 1000 : 60);
}

static void tie_channel(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_create_cq *cmd = core;
	struct sroce_create_cq_req *req = driver;
	struct fz_obj *o = fz_once(t, 2) ? fz_some(t, c, FZ_CHANNEL) : NULL;

	cmd->comp_channel = o ? (int)o->handle : -1;
	cmd->comp_vector = fz_below(t, 2);
	req->flags = fz_below(t, 2);
}

static void tie_channel_ex(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_ex_create_cq *cmd = core;
	struct fz_obj *o = fz_once(t, 2) ? fz_some(t, c, FZ_CHANNEL) : NULL;

	cmd->comp_channel = o ? (int)o->handle : -1;
}

/* The legacy command and the extended one agree in this part but for its place */
static void tie_qp_at(struct fz_thread *t, struct fz_ctx *c, struct ib_uverbs_ex_create_qp *cmd)
{
	cmd->qp_type = qp_types[fz_below(t, ARRAY_SIZE(qp_types))];
	cmd->max_send_sge = 1 + fz_below(t, 4);
	cmd->max_recv_sge = 1 + fz_below(t, 4);
	if (cmd->qp_type == IB_UVERBS_QPT_XRC_TGT)
		cmd->pd_handle = fz_handle(t, c, FZ_XRCD);
	if (cmd->qp_type == IB_UVERBS_QPT_XRC_TGT || cmd->qp_type == IB_UVERBS_QPT_XRC_INI)
		cmd->is_srq = 0;
	if (fz_once(t, 3))
		cmd->recv_cq_handle = cmd->send_cq_handle;
}

static void tie_qp_ex(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_ex_create_qp *cmd = core;

	tie_qp_at(t, c, core);
	if (fz_some(t, c, FZ_TABLE) ? fz_once(t, 2) : !fz_once(t, 16))
		return;
	cmd->comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
	cmd->rwq_ind_tbl_handle = fz_handle(t, c, FZ_TABLE);
	cmd->qp_type = IB_UVERBS_QPT_RAW_PACKET;
	cmd->create_flags = 0;
	cmd->is_srq = 0;
	cmd->max_send_wr = fz_once(t, 16);
	cmd->max_recv_wr = fz_once(t, 16);
	cmd->max_recv_sge = 0;
	fz_hash(t, driver);
}

static void tie_flow(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	fz_flow(t, c, core);
}

static void tie_table(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	fz_table(t, c, core);
}

/* a state where it can go, as often as not */
static void tie_modify_wq(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_ex_modify_wq *cmd = core;

	cmd->attr_mask = fz_once(t, 8) ? fz_below(t, 8) : IBV_WQ_ATTR_STATE;
	cmd->wq_state = fz_once(t, 3) ? fz_below(t, 3) : IBV_WQS_RDY;
	cmd->curr_wq_state = fz_below(t, 3);
	if (!fz_once(t, 4))
		return;
	cmd->attr_mask |= IBV_WQ_ATTR_FLAGS;
	cmd->flags = fz_below(t, 2);
	cmd->flags_mask = 1;
}

static void tie_qp(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_create_qp *cmd = core;
	struct ib_uverbs_ex_create_qp ex;

	memcpy(&ex, &cmd->user_handle, sizeof(*cmd) - offsetof(struct ib_uverbs_create_qp, user_handle));
	tie_qp_at(t, c, &ex);
	memcpy(&cmd->user_handle, &ex, sizeof(*cmd) - offsetof(struct ib_uverbs_create_qp, user_handle));
}

static void tie_open_qp(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_open_qp *cmd = core;
	struct fz_obj *o = fz_anyone(t, FZ_QP);

	cmd->qpn = o ? o->number : fz_below(t, 1 << 24);
	cmd->qp_type = IB_UVERBS_QPT_XRC_TGT;
}

static void tie_modify(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_modify_qp *cmd = core;
	struct fz_obj *o = fz_some(t, c, FZ_QP), *peer = fz_anyone(t, FZ_QP);
	struct uv_route to = { .gid_index = board->dev[c->dev].gid_index, .psn = fz_below(t, 1 << 24),
			       .dest_qpn = peer ? peer->number : 1, .mtu = 1 + fz_below(t, 5) };
	uint8_t type = IB_UVERBS_QPT_RC;

	memcpy(to.dgid, board->dev[fz_below(t, board->ndevs)].gid, 16);
	if (o)
		type = o->type;
	uv_modify_command(cmd, o ? o->handle : 0, type, fz_below(t, 7), &to);
	if (fz_once(t, 4)) {
		cmd->attr_mask |= 1u << fz_below(t, 26);
		cmd->qkey = fz_once(t, 2) ? 0x80010000 : VT_QKEY;
		cmd->en_sqd_async_notify = fz_below(t, 2);
		cmd->rnr_retry = fz_once(t, 2) ? 7 : fz_below(t, 8);
		cmd->retry_cnt = fz_below(t, 8);
		cmd->timeout = fz_below(t, 20);
		cmd->max_rd_atomic = fz_below(t, 20);
		cmd->max_dest_rd_atomic = fz_below(t, 20);
		cmd->min_rnr_timer = fz_below(t, 32);
		cmd->qp_access_flags = fz_below(t, 16);
	}
}

static void tie_region(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_reg_mr *cmd = core;

	fz_some_range(t, (uint64_t *)&cmd->start, (uint64_t *)&cmd->length);
	cmd->hca_va = fz_once(t, 8) ? fz_rand(t) << 12 | (cmd->start & 4095) : cmd->start;
	if (fz_once(t, 12)) {
		cmd->start = 0;
		cmd->length = ~0ull;
		cmd->hca_va = 0;
		cmd->access_flags |= IBV_ACCESS_ON_DEMAND;
	}
	if (fz_never_comes(cmd->start))
		cmd->access_flags |= IBV_ACCESS_ON_DEMAND;
}

static void tie_region_again(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_rereg_mr *cmd = core;

	fz_some_range(t, (uint64_t *)&cmd->start, (uint64_t *)&cmd->length);
	if (fz_once(t, 12)) {
		cmd->start = 0;
		cmd->length = ~0ull;
		cmd->flags |= 5;
		cmd->access_flags |= IBV_ACCESS_ON_DEMAND;
	}
	cmd->hca_va = cmd->start;
	if (fz_never_comes(cmd->start)) {
		cmd->flags |= 5;
		cmd->access_flags |= IBV_ACCESS_ON_DEMAND;
	}
}

static void tie_shared(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct ib_uverbs_create_xsrq *cmd = core;

	cmd->srq_type = fz_once(t, 4) ? fz_below(t, 4) : fz_once(t, 2) ? IB_UVERBS_SRQT_TM : IB_UVERBS_SRQT_XRC;
	cmd->max_num_tags = fz_once(t, 4) ? fz_below(t, 1100) : 8;
}

static void tie_resize(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	struct sroce_resize_cq_req *req = driver;

	req->step = fz_resize_step(t);
}

/* A size of its own, or the limit, and seldom both */
static void tie_resize_shared(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	static __thread struct sroce_modify_srq_resp nowhere;
	struct ib_uverbs_modify_srq *cmd = core;
	struct sroce_modify_srq_req *req = driver;
	void *buffer = fz_once(t, 4) ? fz_some_buffer(t, sizeof(nowhere)) : NULL;

	req->resp_addr = (uintptr_t)(buffer ? buffer : &nowhere);
	if (!(cmd->attr_mask & 1))
		return;
	req->step = fz_resize_step(t);
	if (!fz_once(t, 8))
		cmd->attr_mask = 1;
}

/* The extended command has a rate, in kbit/s, and a burst */
static void tie_modify_ex(struct fz_thread *t, struct fz_ctx *c, void *core, void *driver)
{
	static const uint32_t rates[] = { 0, 1, 63, 64, 1000, 1000000, 100000000, 0xffffffff };
	struct ib_uverbs_ex_modify_qp *cmd = core;

	tie_modify(t, c, &cmd->base, driver);
	if (fz_once(t, 2))
		return;
	cmd->base.attr_mask |= IBV_QP_RATE_LIMIT;
	cmd->rate_limit = fz_once(t, 4) ? fz_rand(t) : rates[fz_below(t, ARRAY_SIZE(rates))];
}

/* --- the commands ------------------------------------------------------------------ */

static const struct fz_field f_none[] = { { 0 } };
static const struct fz_field f_port[] = { { AT(ib_uverbs_query_port, port_num), W_BELOW, 3 }, { 0 } };
static const struct fz_field f_pd[] = { { AT(ib_uverbs_dealloc_pd, pd_handle), W_HANDLE, FZ_PD }, { 0 } };
static const struct fz_field f_open_xrcd[] = {
	{ AT(ib_uverbs_open_xrcd, fd), W_FILE }, { AT(ib_uverbs_open_xrcd, oflags), W_BITS, 0300 }, { 0 }
};
static const struct fz_field f_xrcd[] = { { AT(ib_uverbs_close_xrcd, xrcd_handle), W_HANDLE, FZ_XRCD }, { 0 } };
static const struct fz_field f_reg[] = {
	{ AT(ib_uverbs_reg_mr, pd_handle), W_HANDLE, FZ_PD }, { AT(ib_uverbs_reg_mr, access_flags), W_ACCESS }, { 0 }
};
static const struct fz_field f_rereg[] = {
	{ AT(ib_uverbs_rereg_mr, mr_handle), W_HANDLE, FZ_MR }, { AT(ib_uverbs_rereg_mr, flags), W_BELOW, 8 },
	{ AT(ib_uverbs_rereg_mr, pd_handle), W_HANDLE, FZ_PD }, { AT(ib_uverbs_rereg_mr, access_flags), W_ACCESS }, { 0 }
};
static const struct fz_field f_mr[] = { { AT(ib_uverbs_dereg_mr, mr_handle), W_HANDLE, FZ_MR }, { 0 } };
static const struct fz_field f_alloc_mw[] = {
	{ AT(ib_uverbs_alloc_mw, pd_handle), W_HANDLE, FZ_PD }, { AT(ib_uverbs_alloc_mw, mw_type), W_BELOW, 3 }, { 0 }
};
static const struct fz_field f_mw[] = { { AT(ib_uverbs_dealloc_mw, mw_handle), W_HANDLE, FZ_MW }, { 0 } };
static const struct fz_field f_create_cq[] = { { AT(ib_uverbs_create_cq, cqe), W_DEPTH }, { 0 } };
static const struct fz_field f_ex_create_cq[] = {
	{ AT(ib_uverbs_ex_create_cq, cqe), W_DEPTH }, { AT(ib_uverbs_ex_create_cq, comp_vector), W_BELOW, 2 },
	{ AT(ib_uverbs_ex_create_cq, flags), W_BITS, 3 }, { 0 }
};
static const struct fz_field f_resize_cq[] = {
	{ AT(ib_uverbs_resize_cq, cq_handle), W_HANDLE, FZ_CQ }, { AT(ib_uverbs_resize_cq, cqe), W_DEPTH }, { 0 }
};
static const struct fz_field f_modify_cq[] = {
	{ AT(ib_uverbs_ex_modify_cq, cq_handle), W_HANDLE, FZ_CQ }, { AT(ib_uverbs_ex_modify_cq, attr_mask), W_BELOW, 2 },
	{ AT(ib_uverbs_ex_modify_cq, attr), W_RANDOM }, { 0 }
};
static const struct fz_field f_poll_cq[] = {
	{ AT(ib_uverbs_poll_cq, cq_handle), W_HANDLE, FZ_CQ }, { AT(ib_uverbs_poll_cq, ne), W_BELOW, 8 }, { 0 }
};
static const struct fz_field f_notify_cq[] = { { AT(ib_uverbs_req_notify_cq, cq_handle), W_HANDLE, FZ_CQ }, { 0 } };
static const struct fz_field f_cq[] = { { AT(ib_uverbs_destroy_cq, cq_handle), W_HANDLE, FZ_CQ }, { 0 } };
static const struct fz_field f_create_qp[] = {
	{ AT(ib_uverbs_create_qp, pd_handle), W_HANDLE, FZ_PD },
	{ AT(ib_uverbs_create_qp, send_cq_handle), W_HANDLE, FZ_CQ },
	{ AT(ib_uverbs_create_qp, recv_cq_handle), W_HANDLE, FZ_CQ },
	{ AT(ib_uverbs_create_qp, srq_handle), W_HANDLE, FZ_SRQ },
	{ AT(ib_uverbs_create_qp, max_send_wr), W_DEPTH }, { AT(ib_uverbs_create_qp, max_recv_wr), W_DEPTH },
	{ AT(ib_uverbs_create_qp, max_inline_data), W_BELOW, 200 }, { AT(ib_uverbs_create_qp, sq_sig_all), W_BELOW, 2 },
	{ AT(ib_uverbs_create_qp, is_srq), W_BELOW, 2 }, { 0 }
};
static const struct fz_field f_ex_create_qp[] = {
	{ AT(ib_uverbs_ex_create_qp, pd_handle), W_HANDLE, FZ_PD },
	{ AT(ib_uverbs_ex_create_qp, send_cq_handle), W_HANDLE, FZ_CQ },
	{ AT(ib_uverbs_ex_create_qp, recv_cq_handle), W_HANDLE, FZ_CQ },
	{ AT(ib_uverbs_ex_create_qp, srq_handle), W_HANDLE, FZ_SRQ },
	{ AT(ib_uverbs_ex_create_qp, max_send_wr), W_DEPTH }, { AT(ib_uverbs_ex_create_qp, max_recv_wr), W_DEPTH },
	{ AT(ib_uverbs_ex_create_qp, is_srq), W_BELOW, 2 },
	{ AT(ib_uverbs_ex_create_qp, create_flags), W_BITS, 0x202 }, { 0 }
};
static const struct fz_field f_open_qp[] = { { AT(ib_uverbs_open_qp, pd_handle), W_HANDLE, FZ_XRCD }, { 0 } };
static const struct fz_field f_query_qp[] = {
	{ AT(ib_uverbs_query_qp, qp_handle), W_HANDLE, FZ_QP }, { AT(ib_uverbs_query_qp, attr_mask), W_RANDOM }, { 0 }
};
static const struct fz_field f_qp[] = { { AT(ib_uverbs_destroy_qp, qp_handle), W_HANDLE, FZ_QP }, { 0 } };
static const struct fz_field f_post[] = {
	{ AT(ib_uverbs_post_send, qp_handle), W_HANDLE, FZ_QP }, { AT(ib_uverbs_post_send, wr_count), W_BELOW, 3 },
	{ AT(ib_uverbs_post_send, wqe_size), W_BELOW, 200 }, { 0 }
};
static const struct fz_field f_post_srq[] = {
	{ AT(ib_uverbs_post_srq_recv, srq_handle), W_HANDLE, FZ_SRQ }, { AT(ib_uverbs_post_srq_recv, wr_count), W_BELOW, 3 },
	{ AT(ib_uverbs_post_srq_recv, wqe_size), W_BELOW, 200 }, { 0 }
};
static const struct fz_field f_create_ah[] = {
	{ AT(ib_uverbs_create_ah, pd_handle), W_HANDLE, FZ_PD }, { AT(ib_uverbs_create_ah, attr), W_ROUTE }, { 0 }
};
static const struct fz_field f_ah[] = { { AT(ib_uverbs_destroy_ah, ah_handle), W_HANDLE, FZ_AH }, { 0 } };
static const struct fz_field f_mcast[] = {
	{ AT(ib_uverbs_attach_mcast, gid), W_GROUP }, { AT(ib_uverbs_attach_mcast, qp_handle), W_HANDLE, FZ_QP }, { 0 }
};
static const struct fz_field f_create_srq[] = {
	{ AT(ib_uverbs_create_srq, pd_handle), W_HANDLE, FZ_PD }, { AT(ib_uverbs_create_srq, max_wr), W_DEPTH },
	{ AT(ib_uverbs_create_srq, max_sge), W_SGES }, { AT(ib_uverbs_create_srq, srq_limit), W_BELOW, 3 }, { 0 }
};
static const struct fz_field f_create_xsrq[] = {
	{ AT(ib_uverbs_create_xsrq, pd_handle), W_HANDLE, FZ_PD }, { AT(ib_uverbs_create_xsrq, max_wr), W_DEPTH },
	{ AT(ib_uverbs_create_xsrq, max_sge), W_SGES }, { AT(ib_uverbs_create_xsrq, srq_limit), W_BELOW, 3 },
	{ AT(ib_uverbs_create_xsrq, xrcd_handle), W_HANDLE, FZ_XRCD },
	{ AT(ib_uverbs_create_xsrq, cq_handle), W_HANDLE, FZ_CQ }, { 0 }
};
static const struct fz_field f_modify_srq[] = {
	{ AT(ib_uverbs_modify_srq, srq_handle), W_HANDLE, FZ_SRQ }, { AT(ib_uverbs_modify_srq, attr_mask), W_BELOW, 4 },
	{ AT(ib_uverbs_modify_srq, max_wr), W_DEPTH }, { AT(ib_uverbs_modify_srq, srq_limit), W_BELOW, 20 }, { 0 }
};
static const struct fz_field f_query_srq[] = { { AT(ib_uverbs_query_srq, srq_handle), W_HANDLE, FZ_SRQ }, { 0 } };
static const struct fz_field f_srq[] = { { AT(ib_uverbs_destroy_srq, srq_handle), W_HANDLE, FZ_SRQ }, { 0 } };
static const struct fz_field f_flow[] = { { AT(ib_uverbs_destroy_flow, flow_handle), W_HANDLE, FZ_FLOW }, { 0 } };
static const struct fz_field f_create_wq[] = {
	{ AT(ib_uverbs_ex_create_wq, wq_type), W_ZERO }, { AT(ib_uverbs_ex_create_wq, pd_handle), W_HANDLE, FZ_PD },
	{ AT(ib_uverbs_ex_create_wq, cq_handle), W_HANDLE, FZ_CQ }, { AT(ib_uverbs_ex_create_wq, max_wr), W_DEPTH },
	{ AT(ib_uverbs_ex_create_wq, max_sge), W_SGES }, { AT(ib_uverbs_ex_create_wq, create_flags), W_BITS, 1 }, { 0 }
};
static const struct fz_field f_modify_wq[] = {
	{ AT(ib_uverbs_ex_modify_wq, wq_handle), W_HANDLE, FZ_WQ }, { 0 }
};
static const struct fz_field f_wq[] = { { AT(ib_uverbs_ex_destroy_wq, wq_handle), W_HANDLE, FZ_WQ }, { 0 } };
static const struct fz_field f_table[] = {
	{ AT(ib_uverbs_ex_destroy_rwq_ind_table, ind_tbl_handle), W_HANDLE, FZ_TABLE }, { 0 }
};

#define CMD(name) #name, IB_USER_VERBS_CMD_##name
#define EXTENDED(name) (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##name)
#define EX(name) "EX_" #name, EXTENDED(name)
#define LEN(s) sizeof(struct ib_uverbs_##s)

static const struct fz_verb verbs[] = {
	{ CMD(QUERY_DEVICE), LEN(query_device), LEN(query_device_resp), 0, 0, 0, 0, 1, f_none },
	{ CMD(QUERY_PORT), LEN(query_port), LEN(query_port_resp), 0, 0, 0, 0, 1, f_port },
	{ CMD(GET_CONTEXT), LEN(get_context), LEN(get_context_resp), 8, 16, 0, 0, 1, f_none },
	{ CMD(ALLOC_PD), LEN(alloc_pd), LEN(alloc_pd_resp), 0, 0, FZ_PD, 0, 2, f_none },
	{ CMD(DEALLOC_PD), LEN(dealloc_pd), 0, 0, 0, 0, FZ_PD, 2, f_pd },
	{ CMD(OPEN_XRCD), LEN(open_xrcd), LEN(open_xrcd_resp), 0, 0, FZ_XRCD, 0, 2, f_open_xrcd },
	{ CMD(CLOSE_XRCD), LEN(close_xrcd), 0, 0, 0, 0, FZ_XRCD, 2, f_xrcd },
	{ CMD(REG_MR), LEN(reg_mr), sizeof(uint32_t) * 3, 0, 0, FZ_MR, 0, 8, f_reg, tie_region },
	{ CMD(REREG_MR), LEN(rereg_mr), LEN(rereg_mr_resp), 0, 0, 0, 0, 8, f_rereg, tie_region_again },
	{ CMD(DEREG_MR), LEN(dereg_mr), 0, 0, 0, 0, FZ_MR, 7, f_mr },
	{ CMD(ALLOC_MW), LEN(alloc_mw), LEN(alloc_mw_resp), 0, 0, FZ_MW, 0, 4, f_alloc_mw },
	{ CMD(DEALLOC_MW), LEN(dealloc_mw), 0, 0, 0, 0, FZ_MW, 4, f_mw },
	{ CMD(CREATE_COMP_CHANNEL), LEN(create_comp_channel), LEN(create_comp_channel_resp), 0, 0, FZ_CHANNEL, 0, 2,
	  f_none },
	{ CMD(CREATE_CQ), LEN(create_cq), LEN(create_cq_resp), sizeof(struct sroce_create_cq_req),
	  sizeof(struct sroce_create_cq_resp), FZ_CQ, 0, 4, f_create_cq, tie_channel },
	{ CMD(RESIZE_CQ), LEN(resize_cq), LEN(resize_cq_resp), sizeof(struct sroce_resize_cq_req),
	  sizeof(struct sroce_resize_cq_resp), 0, 0, 8, f_resize_cq, tie_resize },
	{ CMD(DESTROY_CQ), LEN(destroy_cq), LEN(destroy_cq_resp), 0, 0, 0, FZ_CQ, 4, f_cq },
	{ CMD(POLL_CQ), LEN(poll_cq), LEN(poll_cq_resp), 0, 0, 0, 0, 1, f_poll_cq },
	{ CMD(REQ_NOTIFY_CQ), LEN(req_notify_cq), 0, 0, 0, 0, 0, 1, f_notify_cq },
	{ CMD(CREATE_QP), LEN(create_qp), LEN(create_qp_resp), sizeof(struct sroce_create_qp_req),
	  sizeof(struct sroce_create_qp_resp), FZ_QP, 0, 6, f_create_qp, tie_qp },
	{ CMD(QUERY_QP), LEN(query_qp), LEN(query_qp_resp), 0, 0, 0, 0, 2, f_query_qp },
	{ CMD(MODIFY_QP), LEN(modify_qp), 0, 0, 0, 0, 0, 12, f_none, tie_modify },
	{ CMD(DESTROY_QP), LEN(destroy_qp), LEN(destroy_qp_resp), 0, 0, 0, FZ_QP, 6, f_qp },
	{ CMD(OPEN_QP), LEN(open_qp), LEN(create_qp_resp), 0, 0, FZ_QP, 0, 3, f_open_qp, tie_open_qp },
	{ CMD(POST_SEND), LEN(post_send), LEN(post_send_resp), 0, 0, 0, 0, 1, f_post },
	{ CMD(POST_RECV), LEN(post_recv), LEN(post_recv_resp), 0, 0, 0, 0, 1, f_post },
	{ CMD(POST_SRQ_RECV), LEN(post_srq_recv), LEN(post_srq_recv_resp), 0, 0, 0, 0, 1, f_post_srq },
	{ CMD(CREATE_AH), LEN(create_ah), sizeof(uint32_t), 0, sizeof(struct sroce_create_ah_resp), FZ_AH, 0, 4,
	  f_create_ah },
	{ CMD(DESTROY_AH), LEN(destroy_ah), 0, 0, 0, 0, FZ_AH, 4, f_ah },
	{ CMD(ATTACH_MCAST), LEN(attach_mcast), 0, 0, 0, 0, 0, 3, f_mcast },
	{ CMD(DETACH_MCAST), LEN(detach_mcast), 0, 0, 0, 0, 0, 3, f_mcast },
	{ CMD(CREATE_SRQ), LEN(create_srq), sizeof(uint32_t) * 4, sizeof(struct sroce_create_srq_req),
	  sizeof(struct sroce_create_srq_resp), FZ_SRQ, 0, 3, f_create_srq },
	{ CMD(CREATE_XSRQ), LEN(create_xsrq), sizeof(uint32_t) * 4, sizeof(struct sroce_create_srq_req),
	  sizeof(struct sroce_create_srq_resp), FZ_SRQ, 0, 4, f_create_xsrq, tie_shared },
	{ CMD(MODIFY_SRQ), LEN(modify_srq), 0, sizeof(struct sroce_modify_srq_req), 0, 0, 0, 6, f_modify_srq,
	  tie_resize_shared },
	{ CMD(QUERY_SRQ), LEN(query_srq), LEN(query_srq_resp), 0, 0, 0, 0, 2, f_query_srq },
	{ CMD(DESTROY_SRQ), LEN(destroy_srq), LEN(destroy_srq_resp), 0, 0, 0, FZ_SRQ, 5, f_srq },
	{ EX(QUERY_DEVICE), LEN(ex_query_device), LEN(ex_query_device_resp), 0, 0, 0, 0, 1, f_none },
	{ EX(CREATE_CQ), LEN(ex_create_cq), LEN(ex_create_cq_resp), sizeof(struct sroce_create_cq_req),
	  sizeof(struct sroce_create_cq_resp), FZ_CQ, 0, 3, f_ex_create_cq, tie_channel_ex },
	{ EX(CREATE_QP), LEN(ex_create_qp), LEN(ex_create_qp_resp), sizeof(struct sroce_create_qp_req),
	  sizeof(struct sroce_create_qp_resp), FZ_QP, 0, 4, f_ex_create_qp, tie_qp_ex },
	{ EX(MODIFY_QP), LEN(ex_modify_qp), LEN(ex_modify_qp_resp), 0, 0, 0, 0, 4, f_none, tie_modify_ex },
	{ EX(MODIFY_CQ), LEN(ex_modify_cq), 0, 0, 0, 0, 0, 2, f_modify_cq },
	{ EX(CREATE_FLOW), LEN(create_flow) + FZ_FLOW_PARTS, LEN(create_flow_resp), 0, 0, FZ_FLOW, 0, 6, f_none, tie_flow },
	{ EX(DESTROY_FLOW), LEN(destroy_flow), 0, 0, 0, 0, FZ_FLOW, 5, f_flow },
	{ EX(CREATE_WQ), LEN(ex_create_wq), LEN(ex_create_wq_resp), sizeof(struct sroce_create_wq_req),
	  sizeof(struct sroce_create_wq_resp), FZ_WQ, 0, 5, f_create_wq },
	{ EX(MODIFY_WQ), LEN(ex_modify_wq), 0, 0, 0, 0, 0, 6, f_modify_wq, tie_modify_wq },
	{ EX(DESTROY_WQ), LEN(ex_destroy_wq), LEN(ex_destroy_wq_resp), 0, 0, 0, FZ_WQ, 4, f_wq },
	{ EX(CREATE_RWQ_IND_TBL), LEN(ex_create_rwq_ind_table) + 8 * sizeof(uint32_t), LEN(ex_create_rwq_ind_table_resp),
	  0, 0, FZ_TABLE, 0, 4, f_none, tie_table },
	{ EX(DESTROY_RWQ_IND_TBL), LEN(ex_destroy_rwq_ind_table), 0, 0, 0, 0, FZ_TABLE, 3, f_table },
};

/* --- values ------------------------------------------------------------------------ */

/* Regions that are changed from afar nearly always; on demand as often as not; few that nobody may touch */
static uint32_t access_flags(struct fz_thread *t)
{
	uint32_t access = fz_once(t, 4) ? fz_below(t, 16) : 15;

	access |= fz_once(t, 2) ? IBV_ACCESS_ON_DEMAND : 0;
	access |= fz_once(t, 3) ? IBV_ACCESS_MW_BIND : 0;
	access |= fz_once(t, 4) ? FZ_ACCESS_FLUSH : 0;
	if (fz_once(t, 16))
		access |= fz_once(t, 2) ? IBV_ACCESS_ZERO_BASED : 1u << fz_below(t, 32);
	return access;
}

static uint32_t some_file(struct fz_thread *t)
{
	return fz_once(t, 3) ? (uint32_t)-1 : fz_once(t, 8) ? fz_below(t, 40) : (uint32_t)board->xrc_file;
}

static uint32_t some_buffer(struct fz_thread *t)
{
	return fz_once(t, 16) ? some_file(t) : (uint32_t)board->buffer;
}

static void write_group(struct fz_thread *t, uint8_t *at)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 239, 1, 2 }, v6[16] = { 0xff, 0x12, 0x60, 0x1b };

	memcpy(at, fz_once(t, 2) ? v4 : v6, 16);
	at[15] = fz_below(t, 4);
	if (fz_once(t, 16))
		at[fz_below(t, 16)] = fz_rand(t);
}

static void write_route(struct fz_thread *t, struct fz_ctx *c, void *at)
{
	struct ib_uverbs_ah_attr *attr = at;

	attr->grh.sgid_index = fz_once(t, 16) ? fz_rand(t) : board->dev[c->dev].gid_index;
	attr->grh.hop_limit = 64;
	attr->grh.flow_label = fz_once(t, 4) ? fz_rand(t) : 0;
	attr->is_global = 1;
	attr->port_num = 1;
	attr->sl = fz_below(t, 8);
	if (fz_once(t, 4))
		write_group(t, attr->grh.dgid);
	else
		memcpy(attr->grh.dgid, board->dev[fz_below(t, board->ndevs)].gid, 16);
}

uint64_t fz_value(struct fz_thread *t, struct fz_ctx *c, enum fz_what what, uint32_t arg)
{
	switch (what) {
	case W_ZERO: return 0;
	case W_HANDLE: return fz_handle(t, c, arg);
	case W_BELOW: return fz_below(t, arg);
	case W_BITS: return fz_once(t, 2) ? fz_rand(t) & arg : 0;
	case W_DEPTH: return depth(t);
	case W_QP_TYPE: return qp_types[fz_below(t, ARRAY_SIZE(qp_types))];
	case W_RAW: return IB_UVERBS_QPT_RAW_PACKET;
	case W_SGES: return 1 + fz_below(t, 4);
	case W_ACCESS: return access_flags(t);
	case W_DM_ACCESS:
		return (access_flags(t) & ~(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND)) |
		       (fz_once(t, 8) ? 0 : IBV_ACCESS_ZERO_BASED);
	case W_FILE: return some_file(t);
	case W_BUFFER: return some_buffer(t);
	default: return fz_rand(t);
	}
}

static void write_field(struct fz_thread *t, struct fz_ctx *c, const struct fz_field *f, uint8_t *core)
{
	uint64_t v;
	size_t i;

	if (f->what == W_GROUP) {
		write_group(t, core + f->offset);
	} else if (f->what == W_ROUTE) {
		write_route(t, c, core + f->offset);
	} else {
		v = fz_value(t, c, f->what, f->arg);
		memcpy(core + f->offset, &v, min((size_t)f->size, sizeof(v)));
		for (i = sizeof(v); i < f->size; i++)
			core[f->offset + i] = fz_rand(t);
	}
}

/* one field, or whatever is at some place, becomes something else */
static void spoil(struct fz_thread *t, const struct fz_verb *v, uint8_t *core)
{
	uint32_t n = 0, at, size;
	uint64_t was = 0;

	while (v->fields[n].what)
		n++;
	if (n && fz_once(t, 2)) {
		n = fz_below(t, n);
		at = v->fields[n].offset;
		size = min(v->fields[n].size, 8u);
	} else {
		at = fz_below(t, max(v->in / 4u, 1u)) * 4;
		size = 4;
	}
	memcpy(&was, core + at, size);
	was = fz_borderline(t, was);
	memcpy(core + at, &was, size);
}

/* --- shapes -------------------------------------------------------------------------- */

#define BODY 512

const char *fz_command_name(uint32_t i)
{
	_Static_assert(ARRAY_SIZE(verbs) <= FZ_CALLS_MOST, "commands");
	return i < ARRAY_SIZE(verbs) ? verbs[i].name : NULL;
}

struct shot {
	const struct fz_verb *verb;
	struct fz_ctx *ctx;
	uint8_t core[BODY], driver[BODY], answer[BODY];
	/* what is said about them */
	uint32_t in, driver_in, out, driver_out;
	/* where the answer is wanted */
	uint64_t response;
};

static void fill(struct fz_thread *t, struct shot *s, struct fz_ctx *c, const struct fz_verb *v)
{
	const struct fz_field *f;

	memset(s, 0, sizeof(*s));
	s->verb = v;
	s->ctx = c;
	s->in = v->in;
	s->driver_in = v->driver_in;
	s->out = v->out;
	s->driver_out = v->driver_out;
	s->response = (uintptr_t)s->answer;
	for (f = v->fields; f->what; f++)
		write_field(t, c, f, s->core);
	if (v->tie)
		v->tie(t, c, s->core, s->driver);
}

static void spoil_length(struct fz_thread *t, uint32_t *len)
{
	switch (fz_below(t, 4)) {
	case 0: *len = 0; break;
	case 1: *len += 8; break;
	case 2: *len -= min(*len, 4u << fz_below(t, 2)); break;
	default: *len = fz_below(t, BODY / 8) * 8;
	}
	*len = min(*len, (uint32_t)BODY);
}

/* Most are reserved and zero; one is an address */
static void spoil_driver(struct fz_thread *t, struct shot *s)
{
	struct sroce_modify_srq_req *req = (void *)s->driver;

	if (s->verb->number == IB_USER_VERBS_CMD_MODIFY_SRQ)
		req->resp_addr = fz_bad_pointer(t);
	else
		s->driver[fz_below(t, 16)] ^= 1 << fz_below(t, 8);
}

static void spoil_shape(struct fz_thread *t, struct shot *s)
{
	void *buffer;

	switch (fz_below(t, 8)) {
	case 0: spoil_length(t, &s->in); break;
	case 1: spoil_length(t, &s->out); break;
	case 2: spoil_length(t, &s->driver_in); break;
	case 3: spoil_length(t, &s->driver_out); break;
	case 4: spoil_driver(t, s); break;
	case 5: s->response = fz_bad_pointer(t); break;
	default:
		buffer = fz_some_buffer(t, BODY);
		s->response = buffer ? (uintptr_t)buffer : s->response;
	}
	if (s->out + s->driver_out > BODY)
		s->driver_out = 0;
}

/* --- issuing ------------------------------------------------------------------------- */

const void *fz_elsewhere(struct fz_thread *t, const void *request, size_t len)
{
	void *buffer;

	if (fz_below(t, 256) < 256 - t->wild / 4)
		return request;
	buffer = fz_some_buffer(t, len);
	return buffer && fz_copy(buffer, request, len) ? buffer : request;
}

static size_t put(uint8_t *at, const void *from, size_t len)
{
	memcpy(at, from, len);
	return len;
}

static int by_write(struct fz_thread *t, struct shot *s)
{
	bool ex = s->verb->number & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	struct ib_uverbs_cmd_hdr hdr = { .command = s->verb->number };
	struct ib_uverbs_ex_cmd_hdr ex_hdr = {
		.response = s->out + s->driver_out ? s->response : 0,
		.provider_in_words = s->driver_in / 8,
		.provider_out_words = s->driver_out / 8,
	};
	uint8_t request[2 * BODY + sizeof(hdr) + sizeof(ex_hdr)];
	size_t len = 0;

	if (ex) {
		hdr.in_words = s->in / 8;
		hdr.out_words = s->out / 8;
		len += put(request, &hdr, sizeof(hdr));
		len += put(request + len, &ex_hdr, sizeof(ex_hdr));
	} else {
		hdr.in_words = (sizeof(hdr) + s->in + s->driver_in) / 4;
		hdr.out_words = (s->out + s->driver_out) / 4;
		len += put(request, &hdr, sizeof(hdr));
		if (s->verb->out)
			memcpy(s->core, &s->response, sizeof(s->response));
	}
	len += put(request + len, s->core, s->in);
	len += put(request + len, s->driver, s->driver_in);
	return FZ_CALL(t, s->verb->name, *(uint32_t *)(s->core + (s->verb->out ? 8 : 0)),
		       write(s->ctx->fd, fz_elsewhere(t, request, len), len) == (ssize_t)len ? 0 : -errno);
}

static struct ib_uverbs_attr pointer(uint16_t id, const void *p, uint32_t len)
{
	struct ib_uverbs_attr a = { .attr_id = id, .len = len, .data = (uintptr_t)p };

	/* what is that short is in the attribute itself */
	if (len <= 8) {
		a.data = 0;
		memcpy(&a.data, p, len);
	}
	return a;
}

static int by_ioctl(struct fz_thread *t, struct shot *s)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[5];
	} r = { .hdr = { .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INVOKE_WRITE,
			 .driver_id = SROCE_DRIVER_ID } };
	int n = 0;

	r.attr[n++] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_WRITE_CMD, .len = 8, .data = s->verb->number };
	r.attr[n++] = pointer(UVERBS_ATTR_CORE_IN, fz_elsewhere(t, s->core, s->in), s->in);
	if (s->out)
		r.attr[n++] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_CORE_OUT, .len = s->out,
						       .data = s->response };
	if (s->driver_in)
		r.attr[n++] = pointer(UVERBS_ATTR_UHW_IN, s->driver, s->driver_in);
	if (s->driver_out)
		r.attr[n++] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_UHW_OUT, .len = s->driver_out,
						       .data = s->response + s->out };
	r.hdr.num_attrs = n;
	r.hdr.length = sizeof(r.hdr) + n * sizeof(r.attr[0]);
	return FZ_CALL(t, s->verb->name, *(uint32_t *)(s->core + (s->verb->out ? 8 : 0)),
		       ioctl(s->ctx->fd, RDMA_VERBS_IOCTL, &r) ? -errno : 0);
}

/* The first is refused on a file that somebody of other rights has opened */
static int issue(struct fz_thread *t, struct shot *s)
{
	bool foreign = s->ctx >= &board->ctx[FZ_OWN] && t->user;
	int rc = fz_once(t, 2) && !foreign ? by_write(t, s) : by_ioctl(t, s);

	if (rc) {
		t->beat->refused++;
		return rc;
	}
	t->beat->good++;
	/* not one of those that only destroy or connect */
	if (s->verb >= verbs && s->verb < verbs + ARRAY_SIZE(verbs))
		t->beat->commands[s->verb - verbs]++;
	return 0;
}

/* --- what became of it ------------------------------------------------------------------ */

static const struct {
	uint32_t number, in, out;
	uint32_t handle_at;
} enders[FZ_KINDS] = {
	[FZ_PD] = { IB_USER_VERBS_CMD_DEALLOC_PD, LEN(dealloc_pd) },
	[FZ_CQ] = { IB_USER_VERBS_CMD_DESTROY_CQ, LEN(destroy_cq), LEN(destroy_cq_resp), 8 },
	[FZ_QP] = { IB_USER_VERBS_CMD_DESTROY_QP, LEN(destroy_qp), LEN(destroy_qp_resp), 8 },
	[FZ_SRQ] = { IB_USER_VERBS_CMD_DESTROY_SRQ, LEN(destroy_srq), LEN(destroy_srq_resp), 8 },
	[FZ_AH] = { IB_USER_VERBS_CMD_DESTROY_AH, LEN(destroy_ah) },
	[FZ_MR] = { IB_USER_VERBS_CMD_DEREG_MR, LEN(dereg_mr) },
	[FZ_MW] = { IB_USER_VERBS_CMD_DEALLOC_MW, LEN(dealloc_mw) },
	[FZ_XRCD] = { IB_USER_VERBS_CMD_CLOSE_XRCD, LEN(close_xrcd) },
	[FZ_WQ] = { EXTENDED(DESTROY_WQ), LEN(ex_destroy_wq), LEN(ex_destroy_wq_resp), 4 },
	[FZ_TABLE] = { EXTENDED(DESTROY_RWQ_IND_TBL), LEN(ex_destroy_rwq_ind_table), 0, 4 },
	[FZ_FLOW] = { EXTENDED(DESTROY_FLOW), LEN(destroy_flow), 0, 4 },
};

int fz_destroy(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, uint32_t handle)
{
	struct fz_verb v = { "destroy", enders[kind].number, enders[kind].in, enders[kind].out, .fields = f_none };
	struct shot s;
	int rc;

	if (kind == FZ_CHANNEL || kind == FZ_ASYNC)
		return close(handle);
	if (!v.number)
		return -ENOENT;
	fill(t, &s, c, &v);
	memcpy(s.core + enders[kind].handle_at, &handle, 4);
	rc = issue(t, &s);
	if (rc != -EBUSY)
		fz_drop(c, kind, handle);
	return rc;
}

void fz_made(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, struct fz_obj *o)
{
	/*
	 * At once: another thread may close a file and get this one by the same number, between what it does to the one
	 * and to the other.
	 */
	if (kind == FZ_CHANNEL || kind == FZ_ASYNC)
		fcntl(o->handle, F_SETFL, O_NONBLOCK);
	t->beat->made[kind]++;
	t->beat->shares += o->shares;
	if (!fz_add(t, c, kind, o))
		fz_destroy(t, c, kind, o->handle);
	/* who has asked for something large has it no longer than this */
	if (o->ring[0].mmap_len > 1 << 20 || o->ring[1].mmap_len > 1 << 20) {
		fz_destroy(t, c, kind, o->handle);
		atomic_store(&board->large, false);
	}
}

void fz_describe_rings(struct fz_obj *o, enum fz_kind kind, const uint8_t *driver)
{
	const struct sroce_create_qp_resp *qp = (const void *)driver;

	switch (kind) {
	case FZ_QP:
		o->ring[0] = qp->sq;
		o->ring[1] = qp->rq;
		break;
	case FZ_CQ:
	case FZ_SRQ:
	case FZ_WQ:
		memcpy(&o->ring[0], driver, sizeof(o->ring[0]));
		break;
	case FZ_AH:
		memcpy(&o->number, driver, 4);
		break;
	default:
		break;
	}
}

/* There are three requests for one */
static void describe_qp(struct fz_obj *o, const struct shot *s)
{
	const struct ib_uverbs_ex_create_qp *ex = (const void *)s->core;
	const struct ib_uverbs_create_qp *cmd = (const void *)s->core;

	if (s->verb->number == IB_USER_VERBS_CMD_CREATE_QP) {
		o->type = cmd->qp_type;
		o->pd = cmd->pd_handle;
		o->sges = cmd->max_send_sge;
		o->inlined = cmd->max_inline_data;
	} else if (s->verb->number == IB_USER_VERBS_CMD_OPEN_QP) {
		o->type = IB_UVERBS_QPT_XRC_TGT;
	} else {
		o->type = ex->qp_type;
		o->pd = ex->pd_handle;
		o->sges = ex->max_send_sge;
		o->shares = ex->comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
	}
}

static uint32_t device_of(const uint8_t *gid)
{
	uint32_t i;

	for (i = 0; i < FZ_DEVS && memcmp(board->dev[i].gid, gid, 16); i++)
		;
	return i;
}

static void describe(struct fz_thread *t, struct fz_obj *o, const struct shot *s)
{
	const uint32_t *answer = (const uint32_t *)s->answer;
	const struct ib_uverbs_reg_mr *reg = (const void *)s->core;

	memset(o, 0, sizeof(*o));
	o->handle = answer[0];
	switch (s->verb->makes) {
	case FZ_AH:
		o->pd = ((const struct ib_uverbs_create_ah *)s->core)->pd_handle;
		o->type = device_of(((const struct ib_uverbs_create_ah *)s->core)->attr.grh.dgid);
		break;
	case FZ_MR:
		o->number = answer[1];
		o->pd = reg->pd_handle;
		o->start = reg->start;
		o->length = reg->length;
		o->iova = reg->access_flags & IBV_ACCESS_ZERO_BASED ? 0 : reg->hca_va;
		o->access = reg->access_flags;
		t->beat->implicit += fz_is_implicit(o->start, o->length);
		t->beat->flushable += !!(o->access & FZ_ACCESS_FLUSH);
		break;
	case FZ_QP:
		o->number = answer[1];
		describe_qp(o, s);
		break;
	case FZ_MW:
		o->number = answer[1];
		o->pd = ((const struct ib_uverbs_alloc_mw *)s->core)->pd_handle;
		o->type = ((const struct ib_uverbs_alloc_mw *)s->core)->mw_type;
		break;
	case FZ_WQ:
		o->handle = answer[2];
		o->number = answer[5];
		o->pd = ((const struct ib_uverbs_ex_create_wq *)s->core)->pd_handle;
		break;
	case FZ_TABLE:
		o->handle = answer[2];
		break;
	case FZ_FLOW:
		o->handle = answer[1];
		break;
	case FZ_SRQ:
		o->number = answer[3];
		o->pd = s->verb->number == IB_USER_VERBS_CMD_CREATE_SRQ ?
			((const struct ib_uverbs_create_srq *)s->core)->pd_handle :
			((const struct ib_uverbs_create_xsrq *)s->core)->pd_handle;
		if (s->verb->number == IB_USER_VERBS_CMD_CREATE_XSRQ)
			o->type = ((const struct ib_uverbs_create_xsrq *)s->core)->srq_type;
		break;
	default:
		break;
	}
	if (s->driver_out >= s->verb->driver_out && s->verb->driver_out)
		fz_describe_rings(o, s->verb->makes, s->answer + s->out);
}

static void moved(struct fz_ctx *c, const struct ib_uverbs_rereg_mr *cmd)
{
	struct fz_obj *o;

	for (o = c->obj[FZ_MR]; o < c->obj[FZ_MR] + FZ_SLOTS; o++) {
		if (o->handle != cmd->mr_handle)
			continue;
		if (cmd->flags & 2)
			o->pd = cmd->pd_handle;
		if (cmd->flags & 4)
			o->access = cmd->access_flags;
		if (!(cmd->flags & 1))
			continue;
		o->start = cmd->start;
		o->length = cmd->length;
		o->iova = cmd->hca_va;
	}
}

static void not_ready(struct fz_ctx *c, uint32_t qp)
{
	struct fz_obj *o;

	for (o = c->obj[FZ_QP]; o < c->obj[FZ_QP] + FZ_SLOTS; o++)
		if (o->handle == qp)
			o->ready = false;
}

static void changed(struct fz_thread *t, struct shot *s)
{
	const struct ib_uverbs_modify_srq *srq = (const void *)s->core;
	const struct sroce_modify_srq_req *req = (const void *)s->driver;
	const struct ib_uverbs_resize_cq *cq = (const void *)s->core;
	const struct sroce_resize_cq_req *resize = (const void *)s->driver;
	const struct ib_uverbs_ex_modify_qp *qp = (const void *)s->core;

	switch (s->verb->number) {
	case IB_USER_VERBS_CMD_REREG_MR:
		moved(s->ctx, (const void *)s->core);
		t->beat->did[FZ_DID_rereg]++;
		break;
	case IB_USER_VERBS_CMD_MODIFY_QP:
		not_ready(s->ctx, ((const struct ib_uverbs_modify_qp *)s->core)->qp_handle);
		break;
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		fz_resized(t, s->ctx, FZ_CQ, cq->cq_handle, resize->step, s->answer + s->out);
		break;
	case IB_USER_VERBS_CMD_MODIFY_SRQ:
		if (srq->attr_mask & 1)
			fz_resized(t, s->ctx, FZ_SRQ, srq->srq_handle, req->step, (const void *)(uintptr_t)req->resp_addr);
		break;
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP:
		not_ready(s->ctx, qp->base.qp_handle);
		t->beat->paced += !!(qp->base.attr_mask & IBV_QP_RATE_LIMIT);
		break;
	}
}

static void follow_up(struct fz_thread *t, struct shot *s)
{
	struct fz_obj o;

	if (s->verb->ends)
		fz_drop(s->ctx, s->verb->ends, *(uint32_t *)(s->core + enders[s->verb->ends].handle_at));
	/* an answer that went elsewhere may be anything by now: the object is nobody's until its context goes */
	if (s->response != (uintptr_t)s->answer)
		return;
	if (s->verb->makes) {
		describe(t, &o, s);
		fz_made(t, s->ctx, s->verb->makes, &o);
	} else {
		changed(t, s);
	}
}

/* --- steps ------------------------------------------------------------------------------- */

static const struct fz_verb *some_verb(struct fz_thread *t)
{
	static uint32_t sum;
	uint32_t i, at, all = 0;

	for (i = 0; !sum && i < ARRAY_SIZE(verbs); i++)
		all += verbs[i].weight;
	sum = sum ? sum : all;
	at = fz_below(t, sum);
	for (i = 0; at >= verbs[i].weight; i++)
		at -= verbs[i].weight;
	return &verbs[i];
}

/* What may be registered, and for whom, whatever became of the request */
static void keep_region(uint64_t *start, uint64_t *length, uint32_t *access)
{
	if (fz_is_implicit(*start, *length)) {
		*access &= ~FZ_WRITES;
		return;
	}
	fz_spare_canaries(start, length);
	if (fz_never_comes(*start + *length))
		*access |= IBV_ACCESS_ON_DEMAND;
}

static void keep_region_again(struct fz_thread *t, struct ib_uverbs_rereg_mr *cmd)
{
	/* it cannot be known where a region is whose place stays: it may be one of all addresses */
	if (board->some_never)
		cmd->flags |= 5;
	else if ((cmd->flags & 5) == 4 && fz_once(t, 2))
		cmd->flags |= 1;
	else if ((cmd->flags & 5) == 4)
		cmd->access_flags &= ~FZ_WRITES;
	if (board->some_never)
		cmd->access_flags |= IBV_ACCESS_ON_DEMAND;
	keep_region((uint64_t *)&cmd->start, (uint64_t *)&cmd->length, &cmd->access_flags);
	/* nor may one become that which allows what it has allowed */
	if (fz_is_implicit(cmd->start, cmd->length) || fz_never_comes(cmd->start + cmd->length))
		cmd->flags |= 5;
}

/* and what is not the driver's business */
static void keep_in_bounds(struct fz_thread *t, struct shot *s)
{
	struct ib_uverbs_reg_mr *reg = (void *)s->core;
	struct ib_uverbs_ex_modify_wq *wq = (void *)s->core;

	/* ib_uverbs does not let go of a work queue whose state it does not know (Documentation/upstream) */
	if (s->verb->number == EXTENDED(MODIFY_WQ)) {
		wq->wq_state = min(wq->wq_state, (uint32_t)IBV_WQS_ERR);
		wq->curr_wq_state = min(wq->curr_wq_state, (uint32_t)IBV_WQS_ERR);
	}
	if (s->verb->number == IB_USER_VERBS_CMD_REG_MR)
		keep_region((uint64_t *)&reg->start, (uint64_t *)&reg->length, &reg->access_flags);
	else if (s->verb->number == IB_USER_VERBS_CMD_REREG_MR)
		keep_region_again(t, (void *)s->core);
}

/* Its device is gone; there may be another one of its name by now */
static void open_again(struct fz_thread *t, struct fz_ctx *c)
{
	struct sroce_alloc_ucontext_resp resp;
	struct sroce_alloc_ucontext_req req = {};
	char path[64];
	int fd;

	if (!uv_path(board->dev[c->dev].name, path, sizeof(path)))
		return;
	fd = open(path, O_RDWR);
	if (fd >= 0 && !uv_get_context(fd, &req, sizeof(req), &resp, sizeof(resp))) {
		dup2(fd, c->fd);
		dup2(resp.doorbell_fd, c->doorbell);
		close(resp.doorbell_fd);
	}
	close(fd);
	fz_furnish(t, c);
}

/*
 * ib_uverbs forgets to initialize a lock for the groups of a QP that was opened, whatever the driver
 * (Documentation/upstream): a context has groups, or it opens QPs.
 */
static bool left_out(const struct fz_ctx *c, uint32_t number)
{
	bool groups = (c - board->ctx + board->seed) & 1;

	switch (number) {
	case IB_USER_VERBS_CMD_OPEN_QP: return groups;
	case IB_USER_VERBS_CMD_ATTACH_MCAST:
	case IB_USER_VERBS_CMD_DETACH_MCAST: return !groups;
	default: return false;
	}
}

/*
 * What calm queues need is left alone mostly, or they would be in error nearly all of the time: regions, and the state of a QP.
 * Memory comes and goes below the regions all the same.
 */
static bool spared(struct fz_thread *t, const struct shot *s)
{
	uint32_t i, handle = *(const uint32_t *)(s->core + (s->verb->number == IB_USER_VERBS_CMD_REREG_MR ? 8 : 0));
	const struct ib_uverbs_modify_qp *qp = (const void *)s->core;
	enum fz_kind kind = FZ_MR;

	switch (s->verb->number) {
	case IB_USER_VERBS_CMD_MODIFY_QP:
	case EXTENDED(MODIFY_QP):
		handle = qp->qp_handle;
		kind = FZ_QP;
		break;
	case IB_USER_VERBS_CMD_REREG_MR:
	case IB_USER_VERBS_CMD_DEREG_MR:
		break;
	default:
		return false;
	}
	for (i = 0; i < FZ_SLOTS; i++)
		if (fz_calm(&s->ctx->obj[kind][i]) && s->ctx->obj[kind][i].handle == handle)
			return !fz_once(t, 8);
	return false;
}

void fz_command_step(struct fz_thread *t)
{
	struct fz_ctx *c = fz_some_ctx(t);
	struct shot s;
	int rc;

	fill(t, &s, c, some_verb(t));
	if (left_out(c, s.verb->number) || spared(t, &s))
		return;
	if (fz_below(t, 256) < t->wild)
		spoil(t, s.verb, s.core);
	keep_in_bounds(t, &s);
	if (fz_below(t, 256) < t->wild)
		spoil_shape(t, &s);
	rc = issue(t, &s);
	if (!rc)
		follow_up(t, &s);
	if (s.verb->ends && (rc == -ENOENT || rc == -EINVAL))
		fz_drop(c, s.verb->ends, *(uint32_t *)(s.core + enders[s.verb->ends].handle_at));
	if (rc == -EIO && fz_once(t, 64))
		open_again(t, c);
	/* what was to be large was refused */
	if (rc && (s.verb->makes || s.verb->number == IB_USER_VERBS_CMD_RESIZE_CQ))
		atomic_store(&board->large, false);
}

/* a command without any fault in it */
static int plain(struct fz_thread *t, struct fz_ctx *c, uint32_t number)
{
	struct shot s;
	uint32_t i;
	int rc;

	for (i = 0; verbs[i].number != number; i++)
		;
	fill(t, &s, c, &verbs[i]);
	keep_in_bounds(t, &s);
	rc = issue(t, &s);
	if (!rc)
		follow_up(t, &s);
	return rc;
}

bool fz_register_all(struct fz_thread *t)
{
	struct ib_uverbs_reg_mr *cmd;
	struct shot s;
	uint32_t i;

	for (i = 0; verbs[i].number != IB_USER_VERBS_CMD_REG_MR; i++)
		;
	fill(t, &s, fz_some_ctx(t), &verbs[i]);
	cmd = (void *)s.core;
	cmd->start = 0;
	cmd->length = ~0ull;
	cmd->hca_va = 0;
	cmd->access_flags = FZ_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND;
	if (issue(t, &s))
		return false;
	follow_up(t, &s);
	return true;
}

void fz_furnish(struct fz_thread *t, struct fz_ctx *c)
{
	static const uint32_t needed[] = {
		IB_USER_VERBS_CMD_ALLOC_PD, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, IB_USER_VERBS_CMD_OPEN_XRCD,
		IB_USER_VERBS_CMD_CREATE_CQ, IB_USER_VERBS_CMD_CREATE_CQ, IB_USER_VERBS_CMD_REG_MR,
		IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_ALLOC_MW,
		IB_USER_VERBS_CMD_CREATE_SRQ, IB_USER_VERBS_CMD_CREATE_XSRQ, IB_USER_VERBS_CMD_CREATE_AH,
		IB_USER_VERBS_CMD_CREATE_QP, IB_USER_VERBS_CMD_CREATE_QP, IB_USER_VERBS_CMD_CREATE_QP,
		IB_USER_VERBS_CMD_CREATE_QP,
		EXTENDED(CREATE_WQ), EXTENDED(CREATE_WQ), EXTENDED(CREATE_RWQ_IND_TBL), EXTENDED(CREATE_QP),
		EXTENDED(CREATE_FLOW),
	};
	uint32_t wild = t->wild, i;

	t->wild = 0;
	for (i = 0; i < ARRAY_SIZE(needed); i++)
		plain(t, c, needed[i]);
	t->wild = wild;
}

static int to_state(struct fz_thread *t, struct fz_ctx *c, struct fz_obj *o, uint8_t state, const struct uv_route *to)
{
	struct fz_verb v = { "connect", IB_USER_VERBS_CMD_MODIFY_QP, LEN(modify_qp), .fields = f_none };
	struct ib_uverbs_modify_qp *cmd;
	struct shot s;

	fill(t, &s, c, &v);
	cmd = (void *)s.core;
	uv_modify_command(cmd, o->handle, o->type, state, to);
	cmd->timeout = 5 + fz_below(t, 6);
	cmd->retry_cnt = 1 + fz_below(t, 7);
	cmd->rnr_retry = fz_below(t, 8);
	cmd->qp_access_flags = fz_once(t, 8) ? fz_below(t, 16) : 15 | FZ_ACCESS_FLUSH;
	if (fz_below(t, 256) < t->wild / 4)
		spoil(t, &v, s.core);
	return issue(t, &s);
}

static void go(struct fz_thread *t, struct fz_obj *o, struct fz_obj *peer, uint32_t psn, uint32_t mtu)
{
	static const uint8_t states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct fz_ctx *c = fz_ctx_of(o), *d = fz_ctx_of(peer);
	struct uv_route to = { .gid_index = board->dev[c->dev].gid_index, .dest_qpn = peer->number, .psn = psn,
			       .mtu = fz_once(t, 32) ? 1 + fz_below(t, 5) : mtu };
	uint32_t i;
	int rc = 0;

	memcpy(to.dgid, board->dev[d->dev].gid, 16);
	for (i = 0; i < ARRAY_SIZE(states) && !rc; i++)
		rc = to_state(t, c, o, states[i], &to);
	o->peer = peer;
	o->ready = !rc;
	if (o->ready && fz_calm(o))
		fz_stock(t, FZ_QP, o);
}

static bool lives(const struct fz_obj *o)
{
	return o && atomic_load(&o->life) > 1;
}

static bool fit(const struct fz_obj *a, const struct fz_obj *b)
{
	/* a pair that is one stays one: a third would only part them */
	if (b == a->peer)
		return true;
	if (lives(b->peer) && b->peer->peer == b)
		return false;
	if (a->type == IB_UVERBS_QPT_XRC_INI || b->type == IB_UVERBS_QPT_XRC_INI)
		return a->type == IB_UVERBS_QPT_XRC_TGT || b->type == IB_UVERBS_QPT_XRC_TGT;
	return a->type == b->type;
}

/* of any context that this thread has, or somebody else's */
static struct fz_obj *some_peer(struct fz_thread *t, const struct fz_obj *a)
{
	struct fz_ctx *c = fz_once(t, 4) ? &board->ctx[fz_below(t, FZ_CTXS)] : fz_some_ctx(t);
	struct fz_obj *b = fz_some(t, c, FZ_QP);
	int tries = 20;

	while (b && !fit(a, b) && tries--)
		b = fz_some(t, c, FZ_QP);
	return b;
}

void fz_connect_step(struct fz_thread *t)
{
	struct fz_obj *a = fz_some(t, fz_some_ctx(t), FZ_QP), *b;
	uint32_t psn = fz_once(t, 4) ? 0xffffff - fz_below(t, 20) : fz_below(t, 1 << 24);
	uint32_t mtu = 1 + fz_below(t, 5);

	if (!a || (a->ready && !fz_once(t, 3)))
		return;
	b = a->peer;
	if (!lives(b) || fz_once(t, 16))
		b = some_peer(t, a);
	if (!b)
		return;
	go(t, a, b, psn, mtu);
	if (fz_is_mine(t, b))
		go(t, b, a, psn, mtu);
}

/* What raw packets need is much, and each of it is only now and then what another step does */
void fz_raw_step(struct fz_thread *t)
{
	static const uint32_t some[] = {
		EXTENDED(CREATE_WQ), EXTENDED(MODIFY_WQ), EXTENDED(MODIFY_WQ), EXTENDED(MODIFY_WQ), EXTENDED(MODIFY_WQ),
		EXTENDED(CREATE_RWQ_IND_TBL), EXTENDED(CREATE_QP), EXTENDED(CREATE_FLOW), EXTENDED(CREATE_FLOW),
		EXTENDED(CREATE_FLOW), EXTENDED(DESTROY_FLOW), EXTENDED(DESTROY_RWQ_IND_TBL),
	};
	struct fz_ctx *c = fz_some_ctx(t);
	struct fz_obj *o = fz_some_raw(t, c), *wq = fz_some(t, c, FZ_WQ);
	uint32_t wild = t->wild;

	t->wild = 0;
	plain(t, c, some[fz_below(t, ARRAY_SIZE(some))]);
	if (wq)
		fz_stock(t, FZ_WQ, wq);
	if (o && o->type == IB_UVERBS_QPT_RAW_PACKET && !o->shares) {
		if (!o->ready || fz_once(t, 32))
			go(t, o, o, 0, 3);
		fz_stock(t, FZ_QP, o);
		fz_send(t, o);
	}
	t->wild = wild;
}
