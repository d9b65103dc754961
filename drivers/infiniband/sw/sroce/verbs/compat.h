/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What ib_core asks of a driver's operations, and offers them, in older kernels:
 * what compat.h is for the rest. Only files of verbs/ include it.
 */
#ifndef SROCE_VERBS_COMPAT_H
#define SROCE_VERBS_COMPAT_H

#include <linux/container_of.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "verbs/verbs.h"

/* What an operation is made of: the function that is of its type */
#define SROCE_OP_TYPE(op) typeof_member(const struct ib_device_ops, op)
#define SROCE_OP(op, ours, older)					\
	__builtin_choose_expr(__same_type(SROCE_OP_TYPE(op), &(ours)),	\
			      ours, older)

#ifndef SROCE_HAVE_IB_ODP_SUPPORT_FLUSH
#define IB_ODP_SUPPORT_FLUSH BIT(6)
#define IB_ODP_SUPPORT_ATOMIC_WRITE BIT(7)
#endif

#ifndef kvzalloc_objs
#define kvzalloc_objs(obj, n, gfp) kvcalloc(n, sizeof(obj), gfp)
#endif

#ifndef SROCE_HAVE_vm_flags_set
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* create_cq: the udata alone, not yet the whole bundle */
static inline int sroce_older_create_cq(struct ib_cq *ibcq,
					const struct ib_cq_init_attr *attr,
					struct ib_udata *udata)
{
	struct uverbs_attr_bundle *attrs = NULL;

	if (udata)
		attrs = rdma_udata_to_uverbs_attr_bundle(udata);
	return sroce_ib_create_cq(ibcq, attr, attrs);
}

#define sroce_compat_create_cq						\
	SROCE_OP(create_cq, sroce_ib_create_cq, sroce_older_create_cq)

/* Details of shared receive queues in "rdma resource" */
#ifndef SROCE_HAVE_fill_res_srq_entry
#define SROCE_OPS_FILL_SRQ
#else
#define SROCE_OPS_FILL_SRQ .fill_res_srq_entry = sroce_ib_fill_res_srq_entry,
#endif

/* The speed of a port as a number, and not as a lane's speed and how many there are */
#ifndef SROCE_HAVE_query_port_speed
#define SROCE_OPS_PORT_SPEED
#else
#define SROCE_OPS_PORT_SPEED .query_port_speed = sroce_ib_query_port_speed,
#endif

/* A QP's counters: no port yet */
static inline int sroce_older_counter_bind_qp(struct rdma_counter *counter,
					      struct ib_qp *ibqp)
{
	return sroce_ib_counter_bind_qp(counter, ibqp, ibqp->port);
}

static inline int sroce_older_counter_unbind_qp(struct ib_qp *ibqp)
{
	return sroce_ib_counter_unbind_qp(ibqp, ibqp->port);
}

#define sroce_compat_counter_bind_qp					\
	SROCE_OP(counter_bind_qp, sroce_ib_counter_bind_qp,		\
		 sroce_older_counter_bind_qp)
#define sroce_compat_counter_unbind_qp					\
	SROCE_OP(counter_unbind_qp, sroce_ib_counter_unbind_qp,		\
		 sroce_older_counter_unbind_qp)

/* And no room for the driver in a counter */
#ifndef SROCE_HAVE_counter_init
#define SROCE_OPS_COUNTER
#else
struct sroce_rdma_counter {
	struct rdma_counter counter;
};

static inline void sroce_ib_counter_init(struct rdma_counter *counter)
{
}

#define SROCE_OPS_COUNTER						\
	.counter_init = sroce_ib_counter_init,				\
	INIT_RDMA_OBJ_SIZE(rdma_counter, sroce_rdma_counter, counter),
#endif

/* reg_user_mr: no DMA handle yet */
static inline struct ib_mr *
sroce_older_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			u64 virt_addr, int access, struct ib_udata *udata)
{
	return sroce_ib_reg_user_mr(ibpd, start, length, virt_addr, access,
				    NULL, udata);
}

#define sroce_compat_reg_user_mr					\
	SROCE_OP(reg_user_mr, sroce_ib_reg_user_mr,			\
		 sroce_older_reg_user_mr)

/* reg_user_mr_dmabuf: likewise, and before that the udata alone */
static inline struct ib_mr *
sroce_older_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
			       u64 virt_addr, int fd, int access,
			       struct uverbs_attr_bundle *attrs)
{
	return sroce_ib_reg_user_mr_dmabuf(ibpd, offset, length, virt_addr, fd,
					   access, NULL, attrs);
}

static inline struct ib_mr *
sroce_oldest_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
				u64 virt_addr, int fd, int access,
				struct ib_udata *udata)
{
	return sroce_ib_reg_user_mr_dmabuf(ibpd, offset, length, virt_addr, fd,
					   access, NULL, NULL);
}

#define sroce_compat_reg_user_mr_dmabuf					\
	SROCE_OP(reg_user_mr_dmabuf, sroce_ib_reg_user_mr_dmabuf,	\
		 SROCE_OP(reg_user_mr_dmabuf,				\
			  sroce_older_reg_user_mr_dmabuf,		\
			  sroce_oldest_reg_user_mr_dmabuf))

/*
 * The helpers that check what a process sent and bound what it gets back, the
 * flag that says that a driver uses them everywhere, and the resize operation
 * that is not for kernel queues any more
 */
#ifndef ib_respond_udata
#define SROCE_OPS_ROBUST_UDATA

#define resize_user_cq resize_cq

static inline int sroce_compat_resize_user_cq(struct ib_cq *ibcq, int cqe,
					      struct ib_udata *udata)
{
	return cqe > 0 ? sroce_ib_resize_user_cq(ibcq, cqe, udata) : -EINVAL;
}

static inline int sroce_copy_validate_udata_in(struct ib_udata *udata,
					       void *req, size_t size,
					       size_t min_size)
{
	int err;

	if (udata->inlen < min_size)
		return -EINVAL;
	err = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return err == -E2BIG ? -EOPNOTSUPP : err;
}

#define ib_copy_validate_udata_in(udata, req, end_member)		\
	sroce_copy_validate_udata_in(udata, &(req), sizeof(req),	\
				     offsetofend(typeof(req), end_member))

static inline int sroce_respond_udata(struct ib_udata *udata, const void *resp,
				      size_t size)
{
	size_t n = min(size, udata->outlen);

	if (copy_to_user(udata->outbuf, resp, n) ||
	    clear_user(udata->outbuf + n, udata->outlen - n))
		return -EFAULT;
	return 0;
}

#define ib_respond_udata(udata, resp)					\
	sroce_respond_udata(udata, &(resp), sizeof(resp))

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	if (!udata || !udata->inlen)
		return 0;
	return sroce_copy_validate_udata_in(udata, NULL, 0, 0);
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	int err = ib_is_udata_in_empty(udata);

	if (err || !udata || !udata->outlen)
		return err;
	return clear_user(udata->outbuf, udata->outlen) ? -EFAULT : 0;
}

static inline struct ib_umem *ib_umem_get_va(struct ib_device *device,
					     unsigned long addr, size_t size,
					     int access)
{
	return ib_umem_get(device, addr, size, access);
}
#else
#define SROCE_OPS_ROBUST_UDATA .uverbs_robust_udata = true,
#define sroce_compat_resize_user_cq sroce_ib_resize_user_cq
#endif

#endif
