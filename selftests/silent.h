/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* silent: what its parts share. The two ends are those of ends.h, each on a host of its own. */
#ifndef SILENT_H
#define SILENT_H

#include "ends.h"

/* how many times slower than usual this machine is */
extern double slow;

/* run the command that the environment has under the name @how: SILENCE or SPEAK */
void network(const char *how);

/* seconds until a requester with these attributes gives a silent peer up */
double patience(uint8_t timeout, uint8_t retry_cnt);

/* every operation of every type of connected queue pair; leaves the network silent */
void silent_ops(void);

#endif
