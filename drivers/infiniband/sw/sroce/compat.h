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

/*
 * transport/
 */
#include <linux/bvec.h>
#include <linux/hrtimer.h>

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

#endif
