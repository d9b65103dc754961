// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who hands a packet to the network stack marks that in a variable of the CPU, so that who
 * receives knows whether it is called from there (sending.h).
 */
#include "sending.h"

DEFINE_PER_CPU(struct sroce_sending, sroce_sendings) = {
	.lock = INIT_LOCAL_LOCK(lock),
};
