/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Module parameters that the data path reads.
 */
#ifndef SROCE_NET_INIT_H
#define SROCE_NET_INIT_H

#include <linux/types.h>

extern bool sroce_direct;
extern bool sroce_gso;

#endif
