/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The commands of libibverbs with sroce's own data behind them. What that
 * data is, is said in rdma/sroce-abi.h, the kernel's header.
 */
#ifndef SROCE_ABI_H
#define SROCE_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/sroce-abi.h>
#include <kernel-abi/sroce-abi.h>

DECLARE_DRV_CMD(sroce_cmd_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		sroce_alloc_ucontext_req, sroce_alloc_ucontext_resp);
DECLARE_DRV_CMD(sroce_cmd_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		sroce_create_cq_req, sroce_create_cq_resp);
DECLARE_DRV_CMD(sroce_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		sroce_resize_cq_req, sroce_resize_cq_resp);
DECLARE_DRV_CMD(sroce_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP,
		sroce_create_qp_req, sroce_create_qp_resp);
/* The same, where there are creation flags */
DECLARE_DRV_CMD(sroce_cmd_create_qp_flags, IB_USER_VERBS_EX_CMD_CREATE_QP,
		sroce_create_qp_req, sroce_create_qp_resp);
DECLARE_DRV_CMD(sroce_cmd_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		sroce_create_wq_req, sroce_create_wq_resp);
DECLARE_DRV_CMD(sroce_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		sroce_create_srq_req, sroce_create_srq_resp);
DECLARE_DRV_CMD(sroce_cmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, sroce_create_ah_resp);

/* This command has no response of the driver's: the request says where to. */
struct sroce_cmd_modify_srq {
	struct ibv_modify_srq ibv_cmd;
	struct sroce_modify_srq_req drv_payload;
};

#endif
