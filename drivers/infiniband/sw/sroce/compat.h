/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The driver is written against the newest kernel; everything that bends an
 * older one (from 6.1 on) to it is here, and nowhere else is a version tested.
 */
#ifndef SROCE_COMPAT_H
#define SROCE_COMPAT_H

#include <linux/version.h>

#endif
