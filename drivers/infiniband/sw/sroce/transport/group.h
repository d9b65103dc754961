/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups: which QPs get a datagram that is for all of them.
 */
#ifndef SROCE_TRANSPORT_GROUP_H
#define SROCE_TRANSPORT_GROUP_H

#include "transport/qp.h"

/*
 * Bytes that one buffer of the network may bring to members of groups, where a small
 * datagram counts as 2 KiB for each of them. Tests change it.
 */
extern u32 sroce_group_most;

/* A QP ends: it is in no group any more. Context: process, may sleep. */
void sroce_group_detach_all(struct sroce_qp *qp);

#endif
