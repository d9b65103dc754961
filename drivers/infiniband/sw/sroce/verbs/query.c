// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the device and its port are able to do, and how the link is.
 */
#include <linux/ethtool.h>
#include <linux/moduleparam.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "memory/dif.h"
#include "raw/raw.h"
#include "transport/ah.h"
#include "verbs/compat.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

/* Not 0, and no vendor's number: programs can recognise the device by it */
#define SROCE_VENDOR_ID 0x73726f

static bool sroce_t10_pi;
module_param_named(t10_pi, sroce_t10_pi, bool, 0644);
MODULE_PARM_DESC(t10_pi,
		 "Tell storage of protection information (T10-PI), for which an iSER target takes memory with each connection, and an NVMe-oF host with each I/O queue; read when a device is made (default: N)");

/* --- device ---------------------------------------------------------------- */

static void sroce_query_objects(struct ib_device_attr *attr)
{
	attr->max_qp = SROCE_MAX_QP;
	attr->max_cq = SROCE_MAX_CQ;
	attr->max_srq = SROCE_MAX_SRQ;
	attr->max_pd = SROCE_MAX_PD;
	attr->max_ah = SROCE_MAX_AH;
	attr->max_mr = SROCE_MAX_MR;
	attr->max_mw = SROCE_MAX_MW;
	attr->max_mcast_grp = SROCE_MAX_GROUPS;
	attr->max_mcast_qp_attach = SROCE_MAX_GROUP_QPS;
	attr->max_total_mcast_qp_attach =
		SROCE_MAX_GROUPS * SROCE_MAX_GROUP_QPS;
	attr->max_pkeys = SROCE_PKEYS;
}

static void sroce_query_sizes(struct ib_device_attr *attr)
{
	attr->max_mr_size = SROCE_MAX_MR_SIZE;
	/* every power of two from a page on */
	attr->page_size_cap = ~(u64)(PAGE_SIZE - 1);
	attr->max_dm_size = SROCE_MAX_DM_SIZE;
	attr->max_qp_wr = SROCE_MAX_QP_WR;
	attr->max_srq_wr = SROCE_MAX_SRQ_WR;
	attr->max_cqe = SROCE_MAX_CQE;
	attr->max_send_sge = SROCE_MAX_SGE;
	attr->max_recv_sge = SROCE_MAX_SGE;
	attr->max_sge_rd = SROCE_MAX_SGE;
	attr->max_srq_sge = SROCE_MAX_SGE;
	attr->max_sgl_rd = SROCE_MAX_SGE;
	attr->max_fast_reg_page_list_len = SROCE_MAX_FRWR_PAGES;
	attr->max_pi_fast_reg_page_list_len = SROCE_MAX_FRWR_PAGES;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
}

static void sroce_query_abilities(struct ib_device_attr *attr)
{
	attr->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR |
				 IB_DEVICE_BAD_QKEY_CNTR |
				 IB_DEVICE_CURR_QP_STATE_MOD |
				 IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_SRQ_RESIZE |
				 IB_DEVICE_XRC |
				 IB_DEVICE_FLUSH_GLOBAL |
				 IB_DEVICE_ATOMIC_WRITE |
				 IB_DEVICE_MEM_WINDOW |
				 IB_DEVICE_MEM_WINDOW_TYPE_2B |
				 IB_DEVICE_MEM_MGT_EXTENSIONS;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY |
				 IBK_ALLOW_USER_UNREG |
				 IBK_SG_GAPS_REG |
				 IBK_BLOCK_MULTICAST_LOOPBACK;
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->masked_atomic_cap = IB_ATOMIC_NONE;
	attr->max_qp_rd_atom = SROCE_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = SROCE_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = SROCE_MAX_QP * SROCE_MAX_RD_ATOMIC;
	/* 4.096 us * 2^15: what a busy host may take to answer */
	attr->local_ca_ack_delay = 15;
	/* completions are stamped with nanoseconds of CLOCK_MONOTONIC */
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = NSEC_PER_MSEC;
}

/*
 * iSER's target makes 128 signature regions for each connection of a device that has them,
 * before it knows who that is; NVMe-oF's host makes one for each request of each I/O queue,
 * before it knows whether the disk has protection information. So a device has them where
 * somebody wants them.
 */
static void sroce_query_integrity(struct ib_device_attr *attr)
{
	if (!SROCE_HAS_DIF || !READ_ONCE(sroce_t10_pi))
		return;
	attr->kernel_cap_flags |= IBK_INTEGRITY_HANDOVER;
	attr->sig_prot_cap = IB_PROT_T10DIF_TYPE_1 | IB_PROT_T10DIF_TYPE_2 |
			     IB_PROT_T10DIF_TYPE_3;
	attr->sig_guard_cap = IB_GUARD_T10DIF_CRC | IB_GUARD_T10DIF_CSUM;
}

/*
 * Without acknowledgments messages are received into memory on demand as well,
 * but what comes before the pages do is lost.
 */
static void sroce_query_on_demand(struct ib_device_attr *attr)
{
	const u32 acked = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_SRQ_RECV |
			  IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
			  IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_FLUSH |
			  IB_ODP_SUPPORT_ATOMIC_WRITE;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		return;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = acked |
							IB_ODP_SUPPORT_RECV;
	attr->odp_caps.per_transport_caps.xrc_odp_caps = acked;
	attr->odp_caps.per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	attr->odp_caps.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

static void sroce_query_raw(struct ib_device_attr *attr)
{
	attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING |
				  IB_DEVICE_RAW_IP_CSUM;
	attr->raw_packet_caps = IB_RAW_PACKET_CAP_CVLAN_STRIPPING |
				IB_RAW_PACKET_CAP_IP_CSUM;
	attr->max_raw_ethy_qp = SROCE_MAX_QP;
	attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
	attr->rss_caps.max_rwq_indirection_tables = SROCE_MAX_IND_TABLE;
	attr->rss_caps.max_rwq_indirection_table_size =
		BIT(SROCE_MAX_LOG_IND_TABLE);
	attr->max_wq_type_rq = SROCE_MAX_QP;
}

static void sroce_query_tags(struct ib_tm_caps *caps)
{
	caps->max_rndv_hdr_size = SROCE_MAX_RNDV_HEADER;
	caps->max_num_tags = SROCE_MAX_NUM_TAGS;
	caps->flags = IB_TM_CAP_RNDV_RC;
	caps->max_ops = SROCE_MAX_TAG_OPS;
	caps->max_sge = SROCE_MAX_TAG_SGE;
}

int sroce_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			  struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = SROCE_VENDOR_ID;
	sroce_query_objects(attr);
	sroce_query_sizes(attr);
	sroce_query_abilities(attr);
	sroce_query_on_demand(attr);
	sroce_query_tags(&attr->tm_caps);
	sroce_query_integrity(attr);
	if (sroce_raw_possible(to_sroce_device(ibdev)->port.net.raw))
		sroce_query_raw(attr);
	return 0;
}

int sroce_ib_modify_device(struct ib_device *ibdev, int mask,
			   struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc,
		       sizeof(ibdev->node_desc));
	return 0;
}

/* There is no firmware: the number is that of the user ABI */
void sroce_ib_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%d.0.0", SROCE_ABI_VERSION);
}

/* --- port ------------------------------------------------------------------ */

bool sroce_link_up(const struct net_device *ndev)
{
	return netif_running(ndev) && netif_carrier_ok(ndev);
}

static void sroce_query_link(const struct net_device *ndev,
			     struct ib_port_attr *attr)
{
	if (sroce_link_up(ndev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
		return;
	}
	attr->state = IB_PORT_DOWN;
	attr->phys_state = netif_running(ndev) ? IB_PORT_PHYS_STATE_POLLING :
						 IB_PORT_PHYS_STATE_DISABLED;
}

/*
 * The core asks ethtool and complains in the log when a netdev has no answer,
 * as the loopback has none. Then 10 Gb/s are as good as any number.
 */
static void sroce_query_speed(struct sroce_device *dev,
			      struct ib_port_attr *attr)
{
	const struct ethtool_ops *ops = dev->ndev->ethtool_ops;

	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_SDR;
	if (ops && ops->get_link_ksettings)
		ib_get_eth_speed(&dev->ibdev, SROCE_PORT, &attr->active_speed,
				 &attr->active_width);
}

static u16 sroce_query_counter(struct sroce_device *dev, enum sroce_counter id)
{
	return min_t(u64, sroce_port_count(dev, id), U16_MAX);
}

int sroce_ib_query_port(struct ib_device *ibdev, u32 port,
			struct ib_port_attr *attr)
{
	struct sroce_device *dev = to_sroce_device(ibdev);
	unsigned int mtu = READ_ONCE(dev->ndev->mtu);

	if (port != SROCE_PORT)
		return -EINVAL;
	sroce_query_link(dev->ndev, attr);
	sroce_query_speed(dev, attr);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = max(iboe_get_mtu(mtu), IB_MTU_256);
	attr->phys_mtu = mtu;
	attr->gid_tbl_len = SROCE_GID_TABLE_LEN;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = SROCE_MAX_MSG_SIZE;
	attr->pkey_tbl_len = SROCE_PKEYS;
	attr->max_vl_num = 1;
	attr->bad_pkey_cntr = sroce_query_counter(dev, SROCE_CNT_RX_BAD_PKEY);
	attr->qkey_viol_cntr = sroce_query_counter(dev, SROCE_CNT_RX_BAD_QKEY);
	return 0;
}

/*
 * In steps of 100 Mb/s, as the netdev has it and not as lanes of InfiniBand could have it.
 * Where that is unknown: what ib_get_eth_speed() takes then, or sroce_query_speed().
 */
int sroce_ib_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct net_device *ndev = to_sroce_device(ibdev)->ndev;
	struct ethtool_link_ksettings link = {};
	u32 mbit = SPEED_10000;

	if (port != SROCE_PORT)
		return -EINVAL;
	rtnl_lock();
	/* What is below it may be gone then, and ethtool does not look */
	if (ndev->reg_state != NETREG_REGISTERED) {
		rtnl_unlock();
		return -ENODEV;
	}
	if (ndev->ethtool_ops && ndev->ethtool_ops->get_link_ksettings) {
		mbit = SPEED_1000;
		if (!__ethtool_get_link_ksettings(ndev, &link) &&
		    link.base.speed != (u32)SPEED_UNKNOWN)
			mbit = link.base.speed;
	}
	rtnl_unlock();
	*speed = mbit / 100;
	return 0;
}

enum rdma_link_layer sroce_ib_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

int sroce_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
				struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	if (to_sroce_device(ibdev)->port.net.roce_v1)
		immutable->core_cap_flags |= RDMA_CORE_PORT_IBA_ROCE;
	immutable->gid_tbl_len = SROCE_GID_TABLE_LEN;
	immutable->pkey_tbl_len = SROCE_PKEYS;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}
