/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The device: which one is ours, opening it, and what it can do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/cmd_write.h>

#include "sroce.h"
#include "sroce-abi.h"

int sroce_ring_doorbell(struct ibv_context *ctx, uint32_t qp_num)
{
	int fd = to_sctx(ctx)->doorbell_fd;

	return ioctl(fd, SROCE_IOC_DOORBELL, (unsigned long)qp_num) ? errno : 0;
}

int sroce_doorbell(struct ibv_qp *qp)
{
	return sroce_ring_doorbell(qp->context, qp->qp_num);
}

/* --- queries --- */

/* What of raw packets the kernel's answer has no place for */
static void query_raw(struct ibv_device_attr_ex *attr)
{
	attr->tso_caps.max_tso = SROCE_MAX_TSO;
	attr->tso_caps.supported_qpts = 1 << IBV_QPT_RAW_PACKET;
	attr->rss_caps.rx_hash_fields_mask =
		IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
		IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 |
		IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP |
		IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
	attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	attr->packet_pacing_caps.supported_qpts |= 1 << IBV_QPT_RAW_PACKET;
}

static int sroce_query_device_ex(struct ibv_context *ctx,
				 const struct ibv_query_device_ex_input *input,
				 struct ibv_device_attr_ex *attr,
				 size_t attr_size)
{
	struct ibv_packet_pacing_caps *pacing = &attr->packet_pacing_caps;
	int err;

	err = ibv_cmd_query_device_any(ctx, input, attr, attr_size, NULL,
				       NULL);
	if (err || attr_size < offsetof(struct ibv_device_attr_ex,
					packet_pacing_caps) + sizeof(*pacing))
		return err;
	pacing->qp_rate_limit_min = SROCE_MIN_RATE_LIMIT;
	pacing->qp_rate_limit_max = UINT32_MAX;
	pacing->supported_qpts = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC |
				 1 << IBV_QPT_UD | 1 << IBV_QPT_XRC_SEND;
	/* The kernel does not say so of netdevs that have no Ethernet frames */
	if (attr->orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING)
		query_raw(attr);
	return 0;
}

static int sroce_query_port(struct ibv_context *ctx, uint8_t port,
			    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ctx, port, attr, &cmd, sizeof(cmd));
}

/*
 * The raw clock is the one of completion timestamps: CLOCK_MONOTONIC counted
 * in nanoseconds. Applications expect one number of ticks, in tv_nsec; with
 * tv_sec 0 it is also right for those that add up both. On 32 bits that number does
 * not fit, and there it is right for the latter only.
 */
static int sroce_query_rt_values(struct ibv_context *ctx,
				 struct ibv_values_ex *values)
{
	uint32_t wanted = values->comp_mask;
	struct timespec now;

	values->comp_mask = 0;
	if (!(wanted & IBV_VALUES_MASK_RAW_CLOCK))
		return 0;

	if (clock_gettime(CLOCK_MONOTONIC, &now))
		return errno;

	values->raw_clock = now;
	if (sizeof(now.tv_nsec) >= sizeof(uint64_t)) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec += now.tv_sec * 1000000000LL;
	}
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

/* --- context --- */

static void sroce_free_context(struct ibv_context *ctx);

static const struct verbs_context_ops context_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = sroce_alloc_dm,
	.alloc_mw = sroce_alloc_mw,
	.alloc_null_mr = sroce_alloc_null_mr,
	.alloc_parent_domain = sroce_alloc_parent_domain,
	.alloc_pd = sroce_alloc_pd,
	.alloc_td = sroce_alloc_td,
	.attach_counters_point_flow = sroce_attach_counters,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = sroce_bind_mw,
	.close_xrcd = sroce_close_xrcd,
	.create_ah = sroce_create_ah,
	.create_counters = sroce_create_counters,
	.create_cq = sroce_create_cq,
	.create_cq_ex = sroce_create_cq_ex,
	.create_flow = sroce_create_flow,
	.create_qp = sroce_create_qp,
	.create_qp_ex = sroce_create_qp_ex,
	.create_rwq_ind_table = sroce_create_rwq_ind_table,
	.create_srq = sroce_create_srq,
	.create_srq_ex = sroce_create_srq_ex,
	.create_wq = sroce_create_wq,
	.dealloc_mw = sroce_dealloc_mw,
	.dealloc_pd = sroce_dealloc_pd,
	.dealloc_td = sroce_dealloc_td,
	.dereg_mr = sroce_dereg_mr,
	.destroy_ah = sroce_destroy_ah,
	.destroy_counters = sroce_destroy_counters,
	.destroy_cq = sroce_destroy_cq,
	.destroy_flow = sroce_destroy_flow,
	.destroy_qp = sroce_destroy_qp,
	.destroy_rwq_ind_table = sroce_destroy_rwq_ind_table,
	.destroy_srq = sroce_destroy_srq,
	.destroy_wq = sroce_destroy_wq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = sroce_free_context,
	.free_dm = sroce_free_dm,
	.get_srq_num = sroce_get_srq_num,
	.import_dm = sroce_import_dm,
	.import_mr = sroce_import_mr,
	.import_pd = sroce_import_pd,
	.modify_cq = sroce_modify_cq,
	.modify_qp = sroce_modify_qp,
	.modify_qp_rate_limit = sroce_modify_qp_rate_limit,
	.modify_srq = sroce_modify_srq,
	.modify_wq = sroce_modify_wq,
	.open_qp = sroce_open_qp,
	.open_xrcd = sroce_open_xrcd,
	.poll_cq = sroce_poll_cq,
	.post_recv = sroce_post_recv,
	.post_send = sroce_post_send,
	.post_srq_ops = sroce_post_srq_ops,
	.post_srq_recv = sroce_post_srq_recv,
	.query_device_ex = sroce_query_device_ex,
	.query_port = sroce_query_port,
	SROCE_OP_PORT_SPEED
	.query_qp = sroce_query_qp,
	.query_rt_values = sroce_query_rt_values,
	.query_srq = sroce_query_srq,
	.read_counters = sroce_read_counters,
	.reg_dm_mr = sroce_reg_dm_mr,
	.reg_dmabuf_mr = sroce_reg_dmabuf_mr,
	.reg_mr = sroce_reg_mr,
	.req_notify_cq = sroce_req_notify_cq,
	.rereg_mr = sroce_rereg_mr,
	.resize_cq = sroce_resize_cq,
	.unimport_dm = sroce_unimport_dm,
	.unimport_mr = sroce_unimport_mr,
	.unimport_pd = sroce_unimport_pd,
};

static int open_context(struct sroce_context *ctx)
{
	struct sroce_cmd_get_context_resp resp = { .doorbell_fd = -1 };
	struct sroce_cmd_get_context cmd = {};
	int err;

	err = ibv_cmd_get_context(&ctx->vctx, &cmd.ibv_cmd, sizeof(cmd),
				  &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;

	/* There is no other way to make the kernel look at a send queue. */
	if (!(resp.caps & SROCE_CAP_DOORBELL_FD))
		return EOPNOTSUPP;

	ctx->doorbell_fd = resp.doorbell_fd;
	ctx->caps = resp.caps;
	return 0;
}

/* Another process has opened it: @ctx has its file */
static int take_over_context(struct sroce_context *ctx)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DEVICE,
			       UVERBS_METHOD_QUERY_CONTEXT, 1);
	struct sroce_query_context_resp resp = { .doorbell_fd = -1 };

	fill_attr_out_ptr(cmdb, SROCE_ATTR_QUERY_CONTEXT_RESP, &resp);
	if (ibv_cmd_query_context(&ctx->vctx.context, cmdb))
		return errno;
	ctx->doorbell_fd = resp.doorbell_fd;
	ctx->caps = resp.caps;
	return 0;
}

static struct verbs_context *
init_context(struct ibv_device *device, int cmd_fd,
	     int (*open)(struct sroce_context *ctx))
{
	struct sroce_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   SROCE_DRIVER_ID);
	if (!ctx)
		return NULL;

	err = open(ctx);
	if (err) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = err;
		return NULL;
	}

	verbs_set_ops(&ctx->vctx, &context_ops);
	return &ctx->vctx;
}

static struct verbs_context *sroce_alloc_context(struct ibv_device *device,
						 int cmd_fd,
						 void *private_data)
{
	return init_context(device, cmd_fd, open_context);
}

static struct verbs_context *sroce_import_context(struct ibv_device *device,
						  int cmd_fd)
{
	return init_context(device, cmd_fd, take_over_context);
}

static void sroce_free_context(struct ibv_context *ibctx)
{
	struct sroce_context *ctx = to_sctx(ibctx);

	close(ctx->doorbell_fd);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

/* --- device --- */

/*
 * Netlink says who drives a device; where it does not answer (an old kernel,
 * a sandbox without netlink) the driver's own attribute in sysfs does. The
 * device's name says nothing: anybody may change it.
 */
static bool sroce_match_device(struct verbs_sysfs_dev *dev)
{
	char type[16];

	if (dev->match)
		return true;
	if (dev->driver_id != RDMA_DRIVER_UNKNOWN)
		return false;
	return ibv_read_ibdev_sysfs_file(type, sizeof(type), dev,
					 "hca_type") > 0 &&
	       !strcmp(type, "sroce");
}

static struct verbs_device *sroce_alloc_device(struct verbs_sysfs_dev *dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void sroce_uninit_device(struct verbs_device *device)
{
	free(device);
}

static const struct verbs_match_ent match_table[] = {
	VERBS_DRIVER_ID(SROCE_DRIVER_ID),
	{},
};

static const struct verbs_device_ops sroce_dev_ops = {
	.name = "sroce",
	.match_min_abi_version = SROCE_ABI_VERSION,
	.match_max_abi_version = SROCE_ABI_VERSION,
	.match_table = match_table,
	.match_device = sroce_match_device,
	.alloc_device = sroce_alloc_device,
	.uninit_device = sroce_uninit_device,
	.alloc_context = sroce_alloc_context,
	.import_context = sroce_import_context,
};
PROVIDER_DRIVER(sroce, sroce_dev_ops);
