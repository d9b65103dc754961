/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memberships of netdevs in multicast groups: module start and end. (What a QP joins
 * is in net/net.h.)
 */
#ifndef SROCE_NET_GROUP_H
#define SROCE_NET_GROUP_H

#include <linux/types.h>

struct in6_addr;

/* Memberships follow their netdevs from here on. Return: 0 or a negative errno. */
int sroce_joins_init(void);
/* Module end: no netdev is member of a group for a device any more */
void sroce_joins_exit(void);

/* The MAC address of a group, of ETH_ALEN bytes */
void sroce_group_mac(const struct in6_addr *group, u8 *mac);

#endif
