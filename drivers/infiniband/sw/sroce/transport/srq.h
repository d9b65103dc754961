/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues as the transport empties them. What ib_core calls is
 * in verbs/srq.c.
 */
#ifndef SROCE_TRANSPORT_SRQ_H
#define SROCE_TRANSPORT_SRQ_H

#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "memory/ring.h"

struct sroce_port;

/**
 * struct sroce_srq - shared receive queue
 * @ibsrq: what ib_core knows
 * @port: device
 * @lock: protects all below; taken by sroce_lock()
 * @ring: work requests
 * @max_sge: scatter elements of a work request
 * @limit: raise IB_EVENT_SRQ_LIMIT_REACHED when fewer are left; 0: not armed
 * @user: a process owns the producer index
 * @prod: kernel producer's index, when not @user
 */
struct sroce_srq {
	struct ib_srq ibsrq;
	struct sroce_port *port;
	spinlock_t lock;
	struct sroce_ring ring;
	u32 max_sge;
	u32 limit;
	bool user;
	u32 prod;
};

static inline struct sroce_srq *to_sroce_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct sroce_srq, ibsrq);
}

/**
 * sroce_srq_take() - take one work request
 * @srq: queue
 * @wqe: filled in with the header and as many elements as the ring's stride has room for
 *
 * Raises the limit event when it is due. The elements are a private copy, but
 * num_sge is unchecked.
 *
 * Context: bottom halves off.
 * Return: true when there was one.
 */
bool sroce_srq_take(struct sroce_srq *srq, struct sroce_recv_wqe *wqe);

/* Raise the limit event. Context: no lock held. */
void sroce_srq_limit_event(struct sroce_srq *srq);

/**
 * sroce_rq_write() - put one receive work request into a ring, for kernel users
 * @ring: ring of a receive queue or shared receive queue
 * @index: where
 * @max_sge: elements the queue was made for
 * @wr: work request
 *
 * Context: the queue's lock held.
 * Return: 0, or -EINVAL for too many elements.
 */
int sroce_rq_write(struct sroce_ring *ring, u32 index, u32 max_sge,
		   const struct ib_recv_wr *wr);

#endif
