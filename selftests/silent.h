/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* silent: what its parts share. The two ends are those of ends.h, each on a host of its own. */
#ifndef SILENT_H
#define SILENT_H

#include "ends.h"

/* how many times slower than usual this machine is */
extern double slow;

/*
 * run the command that the environment has under the name @how: SILENCE; SPEAK; HOLE, the packet of the first host that begins with
 * the second PSN of ends.h is lost, however often it is sent, and all that the second host says; MARK, all packets of the first
 * host meet congestion. SPEAK ends all of them.
 */
void network(const char *how);

/* seconds until a requester with these attributes gives a silent peer up */
double patience(uint8_t timeout, uint8_t retry_cnt);

/* every operation of every type of connected queue pair; leaves the network silent */
void silent_ops(void);

/* requesters that are slower than their timeouts, and responders that hold requests; leaves the network silent */
void silent_slow(void);

#endif
