/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Other versions of rdma-core, and the only place that tests for one. The
 * rest is written for 56.
 */
#ifndef SROCE_COMPAT_H
#define SROCE_COMPAT_H

#include <infiniband/driver.h>

#if SROCE_RDMA_CORE < 45
/* No FLUSH: nobody asks for it, and there is nothing to be called by */
enum {
	IBV_WR_FLUSH = 14,
	IBV_QP_EX_WITH_FLUSH = 1 << 11,
};

#define sroce_set_wr_flush(qp_ex, fn) ((void)(fn))
#else
#define sroce_set_wr_flush(qp_ex, fn) ((qp_ex)->wr_flush = (fn))
#endif

#if SROCE_RDMA_CORE < 54
#define ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr, drv) \
	ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr)
#endif

#if SROCE_RDMA_CORE >= 57
#define ibv_cmd_get_context(ctx, cmd, cmd_len, resp, resp_len) \
	ibv_cmd_get_context(ctx, cmd, cmd_len, NULL, resp, resp_len)
#endif

#if SROCE_RDMA_CORE >= 59
#define ibv_cmd_create_cq_ex(ctx, attr, vcq, cmd, cmd_len, resp, resp_len, fl) \
	ibv_cmd_create_cq_ex(ctx, attr, NULL, vcq, cmd, cmd_len, resp,	       \
			     resp_len, fl)
#endif

/* Whether somebody asks for a port's speed as a number */
#if SROCE_RDMA_CORE >= 62
#define SROCE_OP_PORT_SPEED .query_port_speed = ibv_cmd_query_port_speed,
#else
#define SROCE_OP_PORT_SPEED
#endif

#if SROCE_RDMA_CORE >= 64
#define ibv_cmd_create_qp_ex2(ctx, vqp, attr, cmd, cmd_len, resp, resp_len)   \
	ibv_cmd_create_qp_ex2(ctx, vqp, attr, cmd, cmd_len, resp, resp_len,   \
			      NULL)
#endif

#endif
