/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * "Receiver not ready": how long the peer is to wait, which an RNR NAK names by a
 * code of five bits (IBA 9.7.5.2.8).
 */
#ifndef SROCE_TRANSPORT_RNR_H
#define SROCE_TRANSPORT_RNR_H

#include <linux/types.h>

/* The delay that a code stands for, in ns. Higher bits are ignored. */
u64 sroce_rnr_ns(u8 code);

/**
 * sroce_rnr_at_least() - the code of a delay that is long enough
 * @code: of the shortest delay that may be named
 * @ns: another one; more than 655 ms cannot be named
 *
 * Return: the code of the shortest delay that is as long as both.
 */
u8 sroce_rnr_at_least(u8 code, u64 ns);

#endif
