/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The objects of the verbs as ib_core allocates them, and the operations that
 * it calls: sroce_ib_NAME() is its operation NAME (ops.c). Each group of
 * functions is in the file of the same name.
 */
#ifndef SROCE_VERBS_VERBS_H
#define SROCE_VERBS_VERBS_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "device.h"
#include "memory/pd.h"
#include "memory/pinned.h"
#include "transport/cq.h"
#include "transport/qp.h"
#include "transport/srq.h"
#include "verbs/resize.h"

struct ib_dmah;
struct uapi_definition;
struct sroce_doorbell;
struct sroce_mmap;
struct sroce_ah_entry;
struct sroce_mr;
struct sroce_rss;

/* ops.c: for ib_core */
extern const struct ib_device_ops sroce_device_ops;
/* ... and what ib_uverbs does not have of itself (sroce-abi.h) */
extern const struct uapi_definition sroce_uapi_defs[];

/**
 * struct sroce_ucontext - one open of the device by a process
 * @ibuc: what ib_core knows
 * @doorbell: what the doorbell file and the QPs point to; lives on as long as
 *	the file is open
 * @file: the doorbell file, for mappings
 * @pool: the rings of its QPs
 */
struct sroce_ucontext {
	struct ib_ucontext ibuc;
	struct sroce_doorbell *doorbell;
	struct file *file;
	struct sroce_ring_pool pool;
};

struct sroce_xrcd {
	struct ib_xrcd ibxrcd;
};

/**
 * struct sroce_ah - address handle
 * @ibah: what ib_core knows
 * @entry: what the transport finds by number; outlives this struct by a grace
 *	period, and is replaced when the handle is changed
 * @ahn: its number, for senders, who may not look at an entry that is replaced
 * @attr: address vector, for query; without a reference to the GID
 */
struct sroce_ah {
	struct ib_ah ibah;
	struct sroce_ah_entry *entry;
	u32 ahn;
	struct rdma_ah_attr attr;
};

/**
 * struct sroce_mw_obj - memory window
 * @ibmw: what ib_core knows
 * @mw: what its key finds; outlives this struct by a grace period
 */
struct sroce_mw_obj {
	struct ib_mw ibmw;
	struct sroce_mr *mw;
};

/**
 * struct sroce_cq_obj - completion queue
 * @cq: the transport's part
 * @lock: serialises resizing, protects the rest
 * @map: mapping of the ring, for user queues
 * @next: ring that it is going to move to
 */
struct sroce_cq_obj {
	struct sroce_cq cq;
	struct mutex lock; /* see above */
	struct sroce_mmap *map;
	struct sroce_successor next;
};

/**
 * struct sroce_srq_obj - shared receive queue
 * @srq: the transport's part
 * @lock: serialises resizing, protects the rest
 * @map: mapping of the ring, for user queues
 * @next: ring that it is going to move to
 */
struct sroce_srq_obj {
	struct sroce_srq srq;
	struct mutex lock; /* see above */
	struct sroce_mmap *map;
	struct sroce_successor next;
};

/**
 * struct sroce_qp_obj - queue pair
 * @ibqp: what ib_core knows
 * @qp: the transport's part, which may outlive this struct; NULL once it was
 *	destroyed, because old kernels go on asking for it a little longer
 * @lock: serialises modify, groups and destroy; ib_core lets a process call
 *	them from several threads at once. It is held for as long as memory or RTNL
 *	are waited for
 * @asked_lock: keeps @qp for whoever asks what it is, which may be somebody else ("rdma
 *	resource"): nobody waits who holds it. Taken in @lock
 * @map: mapping of both queues, for user queues
 * @rss: raw packets: work queues that it has in place of its own
 * @rss_pinned: counts the memory of @rss
 * @mcasts: multicast groups it is attached to, under @lock
 * @nmcasts: their number
 */
struct sroce_qp_obj {
	struct ib_qp ibqp;
	struct sroce_qp *qp;
	struct mutex lock; /* see above */
	struct mutex asked_lock; /* see above */
	struct sroce_mmap *map;
	struct sroce_rss *rss;
	struct sroce_pinned rss_pinned;
	struct list_head mcasts;
	u32 nmcasts;
};

/**
 * struct sroce_wq_obj - work queue: a receive queue of raw packets
 * @ibwq: what ib_core knows
 * @shadow: what the transport takes for the QP that it completes for
 * @qp: the transport's part, which may outlive this struct
 * @lock: serialises modify
 * @map: mapping of the queue
 */
struct sroce_wq_obj {
	struct ib_wq ibwq;
	struct ib_qp shadow;
	struct sroce_qp *qp;
	struct mutex lock; /* see above */
	struct sroce_mmap *map;
};

struct sroce_ind_table {
	struct ib_rwq_ind_table ibtable;
};

/**
 * struct sroce_flow_obj - flow of raw packets
 * @ibflow: what ib_core knows
 * @flow: the rest
 */
struct sroce_flow_obj {
	struct ib_flow ibflow;
	struct sroce_flow *flow;
};

/**
 * struct sroce_counters_obj - what flows have seen
 * @ibcounters: what ib_core knows
 * @counts: the numbers
 */
struct sroce_counters_obj {
	struct ib_counters ibcounters;
	struct sroce_flow_counts *counts;
};

static inline struct sroce_ucontext *to_sroce_ucontext(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct sroce_ucontext, ibuc);
}

static inline struct sroce_ah *to_sroce_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct sroce_ah, ibah);
}

static inline struct sroce_mw_obj *to_sroce_mw_obj(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct sroce_mw_obj, ibmw);
}

static inline struct sroce_cq_obj *to_sroce_cq_obj(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct sroce_cq_obj, cq.ibcq);
}

static inline struct sroce_srq_obj *to_sroce_srq_obj(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct sroce_srq_obj, srq.ibsrq);
}

static inline struct sroce_qp_obj *to_sroce_qp_obj(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct sroce_qp_obj, ibqp);
}

static inline struct sroce_wq_obj *to_sroce_wq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct sroce_wq_obj, ibwq);
}

/* The context of a call from user space; NULL for one from the kernel */
static inline struct sroce_ucontext *sroce_udata_context(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct sroce_ucontext, ibuc);
}

/* ucontext.c */
int sroce_ib_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
int sroce_ib_query_ucontext(struct ib_ucontext *ibuc,
			    struct uverbs_attr_bundle *attrs);
extern const struct uapi_definition sroce_ucontext_defs[];
void sroce_ib_dealloc_ucontext(struct ib_ucontext *ibuc);
void sroce_ib_disassociate_ucontext(struct ib_ucontext *ibuc);

/**
 * sroce_udata_check_reserved() - refuse what a later version of the ABI may ask for
 * @ibdev: device
 * @udata: of a call whose request has a reserved field and nothing else; NULL: a kernel
 *	user's
 * @call: name for the debug message
 *
 * Return: 0, -EOPNOTSUPP, or what ib_copy_validate_udata_in() says.
 */
int sroce_udata_check_reserved(struct ib_device *ibdev, struct ib_udata *udata,
			       const char *call);

/* pd.c */
int sroce_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int sroce_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* xrcd.c */
int sroce_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int sroce_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* ah.c */
int sroce_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		       struct ib_udata *udata);
int sroce_ib_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int sroce_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int sroce_ib_destroy_ah(struct ib_ah *ibah, u32 flags);
/* Number of an address handle, for work requests of the kernel */
u32 sroce_ah_number(struct ib_ah *ibah);

/**
 * sroce_ah_check_attr() - check an address vector that ib_core has filled in
 * @ibdev: device
 * @attr: address vector
 *
 * Return: 0, or -EINVAL when it is not one of RoCE v2 from this device.
 */
int sroce_ah_check_attr(struct ib_device *ibdev,
			const struct rdma_ah_attr *attr);

/**
 * sroce_ah_make_path() - make a path from a checked address vector
 * @dev: device
 * @attr: address vector
 * @lqpn: local QP number, 0 for an address handle
 * @rqpn: remote QP number, likewise
 * @gfp: how to get the memory; one for a process is charged to it
 *
 * A GID that belongs to a VLAN on top of the netdev leaves through that one.
 *
 * Context: any.
 * Return: the path with one reference, or an ERR_PTR.
 */
struct sroce_path *sroce_ah_make_path(struct sroce_device *dev,
				      const struct rdma_ah_attr *attr, u32 lqpn,
				      u32 rqpn, gfp_t gfp);

/* mr.c */
struct ib_mr *sroce_ib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *sroce_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				   u64 virt_addr, int access,
				   struct ib_dmah *dmah,
				   struct ib_udata *udata);
struct ib_mr *sroce_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				     u64 length, u64 virt_addr, int access,
				     struct ib_pd *ibpd,
				     struct ib_udata *udata);
struct ib_mr *sroce_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
				u32 max_num_sg);
int sroce_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		       unsigned int *sg_offset);
int sroce_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/**
 * sroce_reg_alloc_mr() - a region with a key of its own
 * @ibpd: protection domain
 * @kind: how it will be backed
 * @max_blocks: entries of its table of blocks, 0 for a kind without
 * @user: a process makes it
 *
 * It counts among the device's regions until sroce_ib_dereg_mr(). The caller fills it in
 * and then calls sroce_mr_publish().
 *
 * Context: process.
 * Return: the region, or an ERR_PTR: -ENOSPC, -ENOMEM.
 */
struct sroce_mr *sroce_reg_alloc_mr(struct ib_pd *ibpd, enum sroce_mr_kind kind,
				    u32 max_blocks, bool user);

/* integrity.c */
struct ib_mr *sroce_ib_alloc_mr_integrity(struct ib_pd *ibpd,
					  u32 max_num_data_sg,
					  u32 max_num_meta_sg);
int sroce_ib_map_mr_sg_pi(struct ib_mr *ibmr, struct scatterlist *data_sg,
			  int data_sg_nents, unsigned int *data_sg_offset,
			  struct scatterlist *meta_sg, int meta_sg_nents,
			  unsigned int *meta_sg_offset);
int sroce_ib_check_mr_status(struct ib_mr *ibmr, u32 check_mask,
			     struct ib_mr_status *status);

/* dmabuf.c */
struct ib_mr *sroce_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
					  u64 length, u64 virt_addr, int fd,
					  int access, struct ib_dmah *dmah,
					  struct uverbs_attr_bundle *attrs);

/* dm.c */
struct ib_dm *sroce_ib_alloc_dm(struct ib_device *ibdev,
				struct ib_ucontext *ibuc,
				struct ib_dm_alloc_attr *attr,
				struct uverbs_attr_bundle *attrs);
int sroce_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *sroce_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				 struct ib_dm_mr_attr *attr,
				 struct uverbs_attr_bundle *attrs);
extern const struct uapi_definition sroce_dm_defs[];

/* tags.c */
extern const struct uapi_definition sroce_tags_defs[];

/* advise.c */
int sroce_ib_advise_mr(struct ib_pd *ibpd,
		       enum ib_uverbs_advise_mr_advice advice, u32 flags,
		       struct ib_sge *sg_list, u32 num_sge,
		       struct uverbs_attr_bundle *attrs);

/* pin.c */
/**
 * sroce_pin() - pin memory of the calling process
 * @ibdev: device, which the call holds
 * @start: address in the process
 * @length: bytes, not 0
 * @access: IB_ACCESS_* rights that a region of it will have
 *
 * Wants memory on demand (CONFIG_INFINIBAND_ON_DEMAND_PAGING), whose workers bring pages in.
 * What ib_umem_get() does, but for pages that do not come: the wait for them ends with the
 * process, and when somebody wants to take the device away.
 *
 * Context: process.
 * Return: what ib_umem_release() ends; otherwise an ERR_PTR: -ENOMEM (also above
 * RLIMIT_MEMLOCK), -EPERM when nothing may be locked, -EFAULT for addresses without memory
 * that can be pinned, -EIO when the device is to go, -EINTR.
 */
struct ib_umem *sroce_pin(struct ib_device *ibdev, u64 start, u64 length,
			  int access);

/* mw.c */
int sroce_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int sroce_ib_dealloc_mw(struct ib_mw *ibmw);

/* cq.c */
int sroce_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct uverbs_attr_bundle *attrs);
int sroce_ib_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe,
			    struct ib_udata *udata);
int sroce_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int sroce_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int sroce_ib_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int sroce_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* srq.c */
int sroce_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			struct ib_udata *udata);
int sroce_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, struct ib_udata *udata);
int sroce_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int sroce_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int sroce_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad_wr);

/* qp.c */
int sroce_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		       struct ib_udata *udata);
int sroce_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		       struct ib_udata *udata);
int sroce_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_qp_init_attr *init);
int sroce_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* wq.c */
struct ib_wq *sroce_ib_create_wq(struct ib_pd *ibpd,
				 struct ib_wq_init_attr *init,
				 struct ib_udata *udata);
int sroce_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		       struct ib_udata *udata);
int sroce_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int sroce_ib_create_rwq_ind_table(struct ib_rwq_ind_table *table,
				  struct ib_rwq_ind_table_init_attr *init,
				  struct ib_udata *udata);
int sroce_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *table);

/* flow.c */
struct ib_flow *sroce_ib_create_flow(struct ib_qp *ibqp,
				     struct ib_flow_attr *attr,
				     struct ib_udata *udata);
int sroce_ib_destroy_flow(struct ib_flow *ibflow);
int sroce_ib_create_counters(struct ib_counters *ibcounters,
			     struct uverbs_attr_bundle *attrs);
int sroce_ib_destroy_counters(struct ib_counters *ibcounters);
int sroce_ib_read_counters(struct ib_counters *ibcounters,
			   struct ib_counters_read_attr *attr,
			   struct uverbs_attr_bundle *attrs);

/* mcast.c */
int sroce_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 lid);
int sroce_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 lid);
/* A QP ends. Context: process, the QP's lock held. */
void sroce_mcast_del_all(struct sroce_qp_obj *obj);

/* wr.c */
int sroce_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		       const struct ib_send_wr **bad_wr);
int sroce_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);

/* query.c */
bool sroce_link_up(const struct net_device *ndev);
int sroce_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			  struct ib_udata *udata);
int sroce_ib_query_port(struct ib_device *ibdev, u32 port,
			struct ib_port_attr *attr);
int sroce_ib_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed);
enum rdma_link_layer sroce_ib_get_link_layer(struct ib_device *ibdev, u32 port);
int sroce_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
				struct ib_port_immutable *immutable);
int sroce_ib_modify_device(struct ib_device *ibdev, int mask,
			   struct ib_device_modify *modify);
void sroce_ib_get_dev_fw_str(struct ib_device *ibdev, char *str);

/* congestion.c */
extern const struct attribute_group sroce_congestion_group;
/* What a new device does about congestion. Context: nobody uses it yet. */
void sroce_congestion_setup(struct sroce_device *dev);

/* recovery.c */
extern const struct attribute_group sroce_recovery_group;
/* How a new device recovers from loss. Context: nobody uses it yet. */
void sroce_recovery_setup(struct sroce_device *dev);

/* qos.c */
extern const struct attribute_group sroce_qos_group;

/* pkey.c */
extern const struct attribute_group sroce_pkey_group;
int sroce_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			u16 *pkey);

/* restrack.c */
/* May the caller see PSNs, with which it could forge packets? Context: process. */
bool sroce_restrack_may_see_psns(void);
int sroce_ib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int sroce_ib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int sroce_ib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int sroce_ib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int sroce_ib_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);

/* stats.c */
struct rdma_hw_stats *sroce_ib_alloc_hw_port_stats(struct ib_device *ibdev,
						   u32 port);
int sroce_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			  u32 port, int index);
void sroce_bound_init(struct sroce_device *dev);
void sroce_bound_destroy(struct sroce_device *dev);
struct rdma_hw_stats *
sroce_ib_counter_alloc_stats(struct rdma_counter *counter);
int sroce_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp,
			     u32 port);
int sroce_ib_counter_unbind_qp(struct ib_qp *ibqp, u32 port);
int sroce_ib_counter_dealloc(struct rdma_counter *counter);
int sroce_ib_counter_update_stats(struct rdma_counter *counter);

/*
 * One counter, of the port and of all QPs with counters of their own. Context: process.
 */
u64 sroce_port_count(struct sroce_device *dev, enum sroce_counter id);

/* pma.c */
int sroce_ib_process_mad(struct ib_device *ibdev, int flags, u32 port,
			 const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			 const struct ib_mad *in, struct ib_mad *out,
			 size_t *out_size, u16 *out_pkey_index);

#endif
