/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The way of a train out of a half: to the network, or to a QP of this host; and
 * whether the half has to wait until there is room for more.
 */
#ifndef SROCE_TRANSPORT_SEND_H
#define SROCE_TRANSPORT_SEND_H

#include "transport/qp.h"

struct sroce_gather;

/**
 * sroce_send_train() - send one train to the network or to a QP of this host
 * @half: sender
 * @tx: coupling buffer of this run
 * @path: where to
 * @t: train; its payload is in @g
 * @g: pages of the payload, or NULL when there is none
 *
 * Context: @half's lock held.
 */
void sroce_send_train(struct sroce_half *half, struct sroce_tx *tx,
		      struct sroce_path *path, struct sroce_train *t,
		      struct sroce_gather *g);

/* A half that waits for room looks for it. Context: @half's lock held. */
void sroce_half_look_for_room(struct sroce_half *half);

/* For each run of a half: look for room if it waits for that. Context: its lock held. */
static inline void sroce_half_unstarve(struct sroce_half *half)
{
	if (unlikely(half->starved))
		sroce_half_look_for_room(half);
}

/* For sroce_txq_alloc(): there is room again for a QP, @owner */
void sroce_send_room(void *owner);

#endif
