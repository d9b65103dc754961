/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The way of a train out of a half: to the network, or to a QP of this host; and
 * whether the half has to wait until there is room for more.
 */
#ifndef SROCE_TRANSPORT_SEND_H
#define SROCE_TRANSPORT_SEND_H

#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/smp.h>

#include "transport/qp.h"
#include "txq.h"

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

/**
 * sroce_send_raw() - send an Ethernet frame
 * @half: requester
 * @tx: frame
 *
 * Context: @half's lock held.
 * Return: as struct sroce_port has it.
 */
int sroce_send_raw(struct sroce_half *half, const struct sroce_raw_tx *tx);

/* After the last train of a run: send what @tx still holds. Context: @half's lock held. */
void sroce_send_flush(struct sroce_half *half, struct sroce_tx *tx);

/* So long, in jiffies, a half keeps to the CPU where it has sent. Tests change it. */
extern unsigned long sroce_send_patience;

/**
 * sroce_send_allowed() - may a half send from this CPU?
 * @half: that is about to be run
 *
 * Not while packets that it has sent may be in the stack's queue of another CPU: what it
 * sends from here would overtake them. When they have been there for
 * sroce_send_patience, they may as well be lost.
 *
 * Context: bottom halves off, @half's lock held; without it the answer is a hint.
 */
static inline bool sroce_send_allowed(const struct sroce_half *half)
{
	unsigned int cpu = READ_ONCE(half->sent_on);

	return likely(cpu == smp_processor_id()) || cpu >= nr_cpu_ids ||
	       sroce_stack_passed(cpu) ||
	       time_after(jiffies,
			  READ_ONCE(half->sent_at) + sroce_send_patience);
}

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
