/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The driver is written against the newest kernel; everything that bends an
 * older one (from 6.1 on) to it is here, and nowhere else is a version tested.
 */
#ifndef SROCE_COMPAT_H
#define SROCE_COMPAT_H

#include <linux/version.h>

/*
 * net/
 */
#include <linux/netdevice.h>
#include <linux/skbuff.h>

/* udp_tunnel functions take a socket or, in new kernels, its sock */
#define sroce_tunnel_sock(sock)						\
	_Generic(&udp_tunnel_sock_release,				\
		 void (*)(struct socket *): (sock),			\
		 default: (sock)->sk)

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

#endif
