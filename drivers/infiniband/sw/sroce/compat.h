/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The driver is written against the newest kernel; everything that bends an
 * older one (from 6.1 on) to it is here, and in verbs/compat.h. What a kernel
 * has is told by its headers (SROCE_HAVE_x: see Makefile) and not by its version,
 * because kernels of distributions and of stable series have some of what is newer.
 */
#ifndef SROCE_COMPAT_H
#define SROCE_COMPAT_H

#ifdef SROCE_HAVE_get_unaligned_be32
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

/*
 * sroce_crc32() - crc32_le() by the processor's own instructions
 * @engine: from sroce_crc32_engine(), which may be NULL
 */
#include <linux/crc32.h>
#include <linux/err.h>

#ifndef CRC32_LE_OPTIMIZATION
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
#include <linux/netfilter.h>
#include <linux/skbuff.h>

/*
 * Early releases of 6.1 and 6.6 cannot confirm what connection tracking has made
 * of a packet: it makes that anew for every packet
 */
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
static inline int sroce_ct_confirm(const struct nf_ct_hook *hook,
				   struct sk_buff *skb)
{
#ifdef SROCE_HAVE_confirm
	return hook->confirm(skb);
#else
	return NF_ACCEPT;
#endif
}
#endif

/*
 * udp_tunnel functions take a socket or, in new kernels, its sock. They did not change
 * together: some kernels have only the first with a sock
 */
#define sroce_tunnel_setup_sock(s)					\
	__builtin_choose_expr(__same_type(setup_udp_tunnel_sock,	\
			void (struct net *, struct socket *,		\
			      struct udp_tunnel_sock_cfg *)),		\
			      (s), (s)->sk)
#define sroce_tunnel_release_sock(s)					\
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

/* In older kernels linux/netdevice.h has it */
#ifdef SROCE_HAVE___skb_gso_segment
#include <net/gso.h>
#endif

#ifndef SROCE_HAVE_netif_get_gso_max_size
static inline unsigned int
netif_get_gso_max_size(const struct net_device *dev, const struct sk_buff *skb)
{
	return READ_ONCE(dev->gso_max_size);
}
#endif

#ifndef SROCE_HAVE_skb_frags_readable
/* No device memory in packets yet */
static inline bool skb_frags_readable(const struct sk_buff *skb)
{
	return true;
}
#endif

#ifndef SROCE_HAVE_IB_ACCESS_FLUSH_GLOBAL
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
#include <linux/version.h>

/* Where they are missing, who has bottom halves off has the processor to itself */
#ifndef local_lock_nested_bh
#define local_lock_nested_bh(lock) __acquire(lock)
#define local_unlock_nested_bh(lock) __release(lock)
#elif defined(__CHECKER__) && !defined(CONFIG_PREEMPT_RT) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
/* These do not tell sparse what they do; those of PREEMPT_RT, which are spinlocks, do */
#undef local_lock_nested_bh
#undef local_unlock_nested_bh
#define local_lock_nested_bh(lock) \
	do { __local_lock_nested_bh(lock); __acquire(lock); } while (0)
#define local_unlock_nested_bh(lock) \
	do { __release(lock); __local_unlock_nested_bh(lock); } while (0)
#endif

/*
 * Whoever maps a dma-buf holds its reservation lock. Once that was left to the exporter:
 * nothing of ours may be held then
 */
#ifdef SROCE_HAVE_dma_buf_vmap_unlocked
#define sroce_vmap_lock(buf) dma_resv_lock((buf)->resv, NULL)
#define sroce_vmap_unlock(buf) dma_resv_unlock((buf)->resv)
#else
#define sroce_vmap_lock(buf) do { } while (0)
#define sroce_vmap_unlock(buf) do { } while (0)
#define dma_buf_vunmap_unlocked dma_buf_vunmap
#endif

/* As newer kernels have it: the name was not a string */
#include <linux/module.h>
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns) MODULE_INFO(import_ns, ns)

#ifdef SROCE_GUP_VMAS
#include <linux/mm.h>

#define get_user_pages_remote(mm, start, nr_pages, flags, pages, locked) \
	get_user_pages_remote(mm, start, nr_pages, flags, pages, NULL, locked)
#define pin_user_pages(start, nr_pages, flags, pages) \
	pin_user_pages(start, nr_pages, flags, pages, NULL)

/*
 * Whoever pinned another process's memory for long could not let go of its lock meanwhile: first
 * all is brought in, and then pinned for long, without a wait, what is still there
 */
static inline long sroce_pin_remote(struct mm_struct *mm, unsigned long start,
				    unsigned long nr_pages, unsigned int flags,
				    struct page **pages, int *locked)
{
	unsigned int tries = 16;
	long got;

	do {
		got = pin_user_pages_remote(mm, start, nr_pages,
					    flags & ~FOLL_LONGTERM, pages, NULL,
					    locked);
		if (got <= 0)
			return got;
		unpin_user_pages(pages, got);
		if (!*locked && mmap_read_lock_killable(mm))
			return -EINTR;
		*locked = 1;
		got = pin_user_pages_remote(mm, start, got,
					    flags | FOLL_NOFAULT, pages, NULL,
					    NULL);
	} while (got == -EFAULT && --tries);
	return got;
}

#define pin_user_pages_remote sroce_pin_remote
#endif

/* Memory that is pinned for reading was not copied before its process wrote to it */
#ifdef SROCE_GUP_VMAS
#define SROCE_PIN_READ (FOLL_WRITE | FOLL_FORCE)
#else
#define SROCE_PIN_READ 0
#endif

/*
 * transport/
 */
#include <linux/bvec.h>
#include <linux/hrtimer.h>

#ifndef SROCE_HAVE_bvec_set_virt
static inline void bvec_set_virt(struct bio_vec *bv, void *virt,
				 unsigned int len)
{
	bvec_set_page(bv, virt_to_page(virt), len, offset_in_page(virt));
}
#endif

#ifndef SROCE_HAVE_hrtimer_setup
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
 * Devices
 */
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>

/* The events for netdev up, down and carrier come from the core */
#ifndef SROCE_HAVE_report_port_event
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
#ifndef SROCE_HAVE_roce_del_all_netdev_gids
static inline void sroce_core_del_gids(struct ib_device *ibdev, u32 port,
				       struct net_device *ndev)
{
}
#else
#define sroce_core_del_gids roce_del_all_netdev_gids
#endif

#ifndef SROCE_HAVE_ib_mark_name_assigned_by_user
static inline void ib_mark_name_assigned_by_user(struct ib_device *ibdev)
{
}
#endif

/* What a workqueue is there without WQ_UNBOUND; some have the flag, and ignore it */
#ifndef SROCE_HAVE_WQ_PERCPU
#define WQ_PERCPU 0
#endif

#ifndef ib_alloc_device_with_net
#define ib_alloc_device_with_net(drv_struct, member, net)	\
	((void)(net), ib_alloc_device(drv_struct, member))
#endif

#endif
