/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Is this CPU handing a packet to the network stack?
 *
 * It does so with the lock of a queue pair held and with its table of regions in use. What
 * short-circuits transmission to reception on one CPU (tc mirred, before Linux 6.8) brings
 * a packet back to the driver from within: it must not be received then.
 */
#ifndef SROCE_SENDING_H
#define SROCE_SENDING_H

#include <linux/types.h>

/* Around the call of the stack. Context: bottom halves off; a half's lock may be held. */
void sroce_sending_begin(void);
void sroce_sending_end(void);

/* Was this called by the stack that is called in between? Context: bottom halves off. */
bool sroce_sending(void);

#endif
