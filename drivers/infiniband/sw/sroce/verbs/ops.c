// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The operations that ib_core calls: the way in of everything but doorbells.
 */
#include <linux/module.h>
#include <rdma/uverbs_ioctl.h>

#include "verbs/compat.h"
#include "verbs/mmap.h"
#include "verbs/verbs.h"

/* In sysfs, beside what ib_core has of a port */
static const struct attribute_group *sroce_port_groups[] = {
	&sroce_pkey_group,
	&sroce_congestion_group,
	&sroce_recovery_group,
	&sroce_qos_group,
	NULL
};

const struct ib_device_ops sroce_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = SROCE_RDMA_DRIVER,
	.uverbs_abi_ver = SROCE_ABI_VERSION,
	SROCE_OPS_ROBUST_UDATA

	.advise_mr = sroce_ib_advise_mr,
	.alloc_dm = sroce_ib_alloc_dm,
	.alloc_hw_port_stats = sroce_ib_alloc_hw_port_stats,
	.alloc_mr = sroce_ib_alloc_mr,
	.alloc_mr_integrity = sroce_ib_alloc_mr_integrity,
	.alloc_mw = sroce_ib_alloc_mw,
	.alloc_pd = sroce_ib_alloc_pd,
	.alloc_ucontext = sroce_ib_alloc_ucontext,
	.alloc_xrcd = sroce_ib_alloc_xrcd,
	.attach_mcast = sroce_ib_attach_mcast,
	.check_mr_status = sroce_ib_check_mr_status,
	SROCE_OPS_COUNTER
	.counter_alloc_stats = sroce_ib_counter_alloc_stats,
	.counter_bind_qp = sroce_compat_counter_bind_qp,
	.counter_dealloc = sroce_ib_counter_dealloc,
	.counter_unbind_qp = sroce_compat_counter_unbind_qp,
	.counter_update_stats = sroce_ib_counter_update_stats,
	.create_ah = sroce_ib_create_ah,
	.create_counters = sroce_ib_create_counters,
	.create_cq = sroce_compat_create_cq,
	.create_flow = sroce_ib_create_flow,
	.create_qp = sroce_ib_create_qp,
	.create_rwq_ind_table = sroce_ib_create_rwq_ind_table,
	.create_srq = sroce_ib_create_srq,
	.create_user_ah = sroce_ib_create_ah,
	.create_wq = sroce_ib_create_wq,
	.dealloc_dm = sroce_ib_dealloc_dm,
	.dealloc_driver = sroce_device_free,
	.dealloc_mw = sroce_ib_dealloc_mw,
	.dealloc_pd = sroce_ib_dealloc_pd,
	.dealloc_ucontext = sroce_ib_dealloc_ucontext,
	.dealloc_xrcd = sroce_ib_dealloc_xrcd,
	.dereg_mr = sroce_ib_dereg_mr,
	.destroy_ah = sroce_ib_destroy_ah,
	.destroy_counters = sroce_ib_destroy_counters,
	.destroy_cq = sroce_ib_destroy_cq,
	.destroy_flow = sroce_ib_destroy_flow,
	.destroy_qp = sroce_ib_destroy_qp,
	.destroy_rwq_ind_table = sroce_ib_destroy_rwq_ind_table,
	.destroy_srq = sroce_ib_destroy_srq,
	.destroy_wq = sroce_ib_destroy_wq,
	.detach_mcast = sroce_ib_detach_mcast,
	.disassociate_ucontext = sroce_ib_disassociate_ucontext,
	.fill_res_cq_entry = sroce_ib_fill_res_cq_entry,
	.fill_res_mr_entry = sroce_ib_fill_res_mr_entry,
	.fill_res_qp_entry = sroce_ib_fill_res_qp_entry,
	SROCE_OPS_FILL_SRQ
	.fill_stat_mr_entry = sroce_ib_fill_stat_mr_entry,
	.get_dev_fw_str = sroce_ib_get_dev_fw_str,
	.get_dma_mr = sroce_ib_get_dma_mr,
	.get_hw_stats = sroce_ib_get_hw_stats,
	.get_link_layer = sroce_ib_get_link_layer,
	.get_port_immutable = sroce_ib_get_port_immutable,
	.map_mr_sg = sroce_ib_map_mr_sg,
	.map_mr_sg_pi = sroce_ib_map_mr_sg_pi,
	.mmap = sroce_ib_mmap,
	.mmap_free = sroce_ib_mmap_free,
	.modify_ah = sroce_ib_modify_ah,
	.modify_cq = sroce_ib_modify_cq,
	.modify_device = sroce_ib_modify_device,
	.modify_qp = sroce_ib_modify_qp,
	.modify_srq = sroce_ib_modify_srq,
	.modify_wq = sroce_ib_modify_wq,
	.poll_cq = sroce_ib_poll_cq,
	.port_groups = sroce_port_groups,
	.post_recv = sroce_ib_post_recv,
	.post_send = sroce_ib_post_send,
	.post_srq_recv = sroce_ib_post_srq_recv,
	.process_mad = sroce_ib_process_mad,
	.query_ah = sroce_ib_query_ah,
	.query_device = sroce_ib_query_device,
	.query_pkey = sroce_ib_query_pkey,
	.query_port = sroce_ib_query_port,
	SROCE_OPS_PORT_SPEED
	.query_qp = sroce_ib_query_qp,
	.query_srq = sroce_ib_query_srq,
	.query_ucontext = sroce_ib_query_ucontext,
	.read_counters = sroce_ib_read_counters,
	.reg_dm_mr = sroce_ib_reg_dm_mr,
	.reg_user_mr = sroce_compat_reg_user_mr,
	.reg_user_mr_dmabuf = sroce_compat_reg_user_mr_dmabuf,
	.req_notify_cq = sroce_ib_req_notify_cq,
	.rereg_user_mr = sroce_ib_rereg_user_mr,
	.resize_user_cq = sroce_compat_resize_user_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, sroce_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_counters, sroce_counters_obj, ibcounters),
	INIT_RDMA_OBJ_SIZE(ib_cq, sroce_cq_obj, cq.ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, sroce_mw_obj, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, sroce_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, sroce_qp_obj, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, sroce_ind_table, ibtable),
	INIT_RDMA_OBJ_SIZE(ib_srq, sroce_srq_obj, srq.ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, sroce_ucontext, ibuc),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, sroce_xrcd, ibxrcd),
};

const struct uapi_definition sroce_uapi_defs[] = {
	UAPI_DEF_CHAIN(sroce_ucontext_defs),
	UAPI_DEF_CHAIN(sroce_dm_defs),
	UAPI_DEF_CHAIN(sroce_tags_defs),
	{}
};
