/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The driver is written against the newest kernel; everything that bends an
 * older one (from 6.1 on) to it is here, and nowhere else is a version tested.
 */
#ifndef SROCE_COMPAT_H
#define SROCE_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

/*
 * sroce_crc32() - crc32_le() by the processor's own instructions
 * @engine: from sroce_crc32_engine(), which may be NULL
 */
#include <linux/crc32.h>
#include <linux/err.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
/* crc32_le() is a table on most of them; the crypto API has the fast code */
#include <crypto/hash.h>

static inline struct crypto_shash *sroce_crc32_engine(void)
{
	struct crypto_shash *engine = crypto_alloc_shash("crc32", 0, 0);

	if (!IS_ERR(engine) && crypto_shash_descsize(engine) != sizeof(u32)) {
		crypto_free_shash(engine);
		return ERR_PTR(-ENODEV);
	}
	return engine;
}

static inline void sroce_crc32_engine_put(struct crypto_shash *engine)
{
	crypto_free_shash(engine);
}

static inline u32 sroce_crc32(struct crypto_shash *engine, u32 crc,
			      const void *p, size_t len)
{
	/* The state of a "crc32" hash is the plain CRC, not complemented */
	struct {
		struct shash_desc desc;
		u32 crc;
	} state;

	/* Below this the fast code falls back to crc32_le() itself */
	if (len < 64)
		return crc32_le(crc, p, len);

	state.desc.tfm = engine;
	*(u32 *)shash_desc_ctx(&state.desc) = crc;
	crypto_shash_update(&state.desc, p, len);
	return *(u32 *)shash_desc_ctx(&state.desc);
}
#else
struct crypto_shash;

static inline struct crypto_shash *sroce_crc32_engine(void)
{
	return NULL;
}

static inline void sroce_crc32_engine_put(struct crypto_shash *engine)
{
}

static inline u32 sroce_crc32(struct crypto_shash *engine, u32 crc,
			      const void *p, size_t len)
{
	return crc32_le(crc, p, len);
}
#endif

/*
 * net/
 */
#include <linux/netdevice.h>
#include <linux/skbuff.h>

/* udp_tunnel functions take a socket or, in new kernels, its sock */
#define sroce_tunnel_sock(s)						\
	__builtin_choose_expr(__same_type(udp_tunnel_sock_release,	\
					  void (struct sock *)),	\
			      (s)->sk, (s))

/* Typed allocation; the flags are always given here */
#ifndef kmalloc_obj
#define kmalloc_obj(obj, gfp) kmalloc(sizeof(obj), gfp)
#endif
#ifndef kzalloc_obj
#define kzalloc_obj(obj, gfp) kzalloc(sizeof(obj), gfp)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline unsigned int
netif_get_gso_max_size(const struct net_device *dev, const struct sk_buff *skb)
{
	return READ_ONCE(dev->gso_max_size);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
/* No device memory in packets yet */
static inline bool skb_frags_readable(const struct sk_buff *skb)
{
	return true;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define IB_ACCESS_FLUSH_GLOBAL BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT BIT(9)
#define IB_DEVICE_FLUSH_GLOBAL BIT_ULL(38)
#define IB_DEVICE_ATOMIC_WRITE BIT_ULL(40)
#define IB_WC_FLUSH 8
#define IB_WC_ATOMIC_WRITE 9
#endif

/*
 * memory/
 */
/* local_lock.h of 6.12-rt wants it in front */
#include <linux/spinlock.h>
#include <linux/local_lock.h>
#include <linux/mm.h>

/* Where they are missing, who has bottom halves off has the processor to itself */
#ifndef local_lock_nested_bh
#define local_lock_nested_bh(lock) __acquire(lock)
#define local_unlock_nested_bh(lock) __release(lock)
#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
/* These do not tell sparse what they do */
#undef local_lock_nested_bh
#undef local_unlock_nested_bh
#define local_lock_nested_bh(lock) \
	do { __local_lock_nested_bh(lock); __acquire(lock); } while (0)
#define local_unlock_nested_bh(lock) \
	do { __release(lock); __local_unlock_nested_bh(lock); } while (0)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define get_user_pages_remote(mm, start, nr_pages, flags, pages, locked) \
	get_user_pages_remote(mm, start, nr_pages, flags, pages, NULL, locked)
#endif

/*
 * transport/
 */
#include <linux/bvec.h>
#include <linux/hrtimer.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void bvec_set_virt(struct bio_vec *bv, void *virt,
				 unsigned int len)
{
	bvec_set_page(bv, virt_to_page(virt), len, offset_in_page(virt));
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/*
 * verbs/
 */
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define IB_ODP_SUPPORT_FLUSH BIT(6)
#define IB_ODP_SUPPORT_ATOMIC_WRITE BIT(7)
#endif

#ifndef kvzalloc_objs
#define kvzalloc_objs(obj, n, gfp) kvcalloc(n, sizeof(obj), gfp)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* create_cq: the udata alone, not yet the whole bundle */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
int sroce_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs);

static inline int sroce_op_create_cq(struct ib_cq *ibcq,
				     const struct ib_cq_init_attr *attr,
				     struct ib_udata *udata)
{
	struct uverbs_attr_bundle *attrs = NULL;

	if (udata)
		attrs = rdma_udata_to_uverbs_attr_bundle(udata);
	return sroce_create_cq(ibcq, attr, attrs);
}
#else
#define sroce_op_create_cq sroce_create_cq
#endif

/* Details of shared receive queues in "rdma resource" */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define SROCE_OPS_FILL_SRQ
#else
#define SROCE_OPS_FILL_SRQ .fill_res_srq_entry = sroce_fill_res_srq_entry,
#endif

/* A QP's counters: no port yet, and no room for the driver in a counter */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
int sroce_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp,
			  u32 port);
int sroce_counter_unbind_qp(struct ib_qp *ibqp, u32 port);

static inline int sroce_op_counter_bind_qp(struct rdma_counter *counter,
					   struct ib_qp *ibqp)
{
	return sroce_counter_bind_qp(counter, ibqp, ibqp->port);
}

static inline int sroce_op_counter_unbind_qp(struct ib_qp *ibqp)
{
	return sroce_counter_unbind_qp(ibqp, ibqp->port);
}

#define SROCE_OPS_COUNTER
#else
struct sroce_rdma_counter {
	struct rdma_counter counter;
};

static inline void sroce_counter_init(struct rdma_counter *counter)
{
}

#define sroce_op_counter_bind_qp sroce_counter_bind_qp
#define sroce_op_counter_unbind_qp sroce_counter_unbind_qp
#define SROCE_OPS_COUNTER						\
	.counter_init = sroce_counter_init,				\
	INIT_RDMA_OBJ_SIZE(rdma_counter, sroce_rdma_counter, counter),
#endif

/* The events for netdev up, down and carrier come from the core */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
static inline bool sroce_core_reports_port_state(struct net_device *ndev)
{
	return false;
}
#else
static inline bool sroce_core_reports_port_state(struct net_device *ndev)
{
	return !netif_is_lag_master(ndev) && !netif_is_lag_port(ndev);
}
#endif

/* Before, the GID of an address that was removed stays until the netdev goes */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
static inline void sroce_core_del_gids(struct ib_device *ibdev, u32 port,
				       struct net_device *ndev)
{
}
#else
#define sroce_core_del_gids roce_del_all_netdev_gids
#endif

/* The kernel has no such question for modules */
#include <linux/mutex.h>
#include <linux/sched.h>

static inline bool sroce_mutex_is_mine(const struct mutex *lock)
{
#ifdef CONFIG_PREEMPT_RT
	unsigned long owner = (unsigned long)READ_ONCE(lock->rtmutex.owner);
#else
	unsigned long owner = atomic_long_read(&lock->owner);
#endif

	/* The low bits are flags */
	return (owner & ~7UL) == (unsigned long)current;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static inline void ib_mark_name_assigned_by_user(struct ib_device *ibdev)
{
}
#endif

/* reg_user_mr: no DMA handle yet */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
struct ib_dmah;
struct ib_mr *sroce_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 virt_addr, int access,
				struct ib_dmah *dmah, struct ib_udata *udata);

static inline struct ib_mr *
sroce_op_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
		     int access, struct ib_udata *udata)
{
	return sroce_reg_user_mr(ibpd, start, length, virt_addr, access, NULL,
				 udata);
}
#else
#define sroce_op_reg_user_mr sroce_reg_user_mr
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define ib_alloc_device_with_net(drv_struct, member, net)	\
	((void)(net), ib_alloc_device(drv_struct, member))
#endif

/*
 * The helpers that check what a process sent and bound what it gets back, the
 * flag that says that a driver uses them everywhere, and the resize operation
 * that is not for kernel queues any more
 */
#ifndef ib_respond_udata
#define SROCE_OPS_ROBUST_UDATA

#define resize_user_cq resize_cq

int sroce_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe,
			 struct ib_udata *udata);

static inline int sroce_op_resize_user_cq(struct ib_cq *ibcq, int cqe,
					  struct ib_udata *udata)
{
	return cqe > 0 ? sroce_resize_user_cq(ibcq, cqe, udata) : -EINVAL;
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
#define sroce_op_resize_user_cq sroce_resize_user_cq
#endif

#endif
