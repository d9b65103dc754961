/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The ring of a receive queue, shared or not.
 */
#ifndef SROCE_TRANSPORT_RECV_RING_H
#define SROCE_TRANSPORT_RECV_RING_H

#include <linux/nospec.h>
#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>

#include "memory/ring.h"

/**
 * sroce_recv_room() - bytes that the elements of a receive work request have
 * @wqe: private copy
 * @max_sge: elements that its queue was made for
 *
 * Return: bytes, at most U32_MAX; that, too, when it has more elements than it may,
 * which is for whoever takes it to find.
 */
static inline u32 sroce_recv_room(const struct sroce_recv_wqe *wqe, u32 max_sge)
{
	const struct sroce_sge *sge = (const struct sroce_sge *)(wqe + 1);
	u32 n = wqe->num_sge;
	u64 sum = 0;

	if (n > max_sge)
		return U32_MAX;
	n = array_index_nospec(n, max_sge + 1);
	while (n--)
		sum += sge++->length;
	return min_t(u64, sum, U32_MAX);
}

/**
 * sroce_recv_ring_look() - copy the first work request of a ring, and leave it there
 * @ring: receive queue, or ring of a shared one whose lock is held
 * @wqe: filled in with the header and as many elements as @ring's stride has room for
 * @max_sge: elements that the queue was made for
 * @len: bytes that it must have room for
 *
 * Return: 0, -ENOENT when there was none, or -EMSGSIZE when it is too short.
 */
int sroce_recv_ring_look(const struct sroce_ring *ring,
			 struct sroce_recv_wqe *wqe, u32 max_sge, u32 len);

/**
 * sroce_recv_ring_take() - take the first work request of a ring
 * @ring: as sroce_recv_ring_look() has it
 * @wqe: likewise
 * @max_sge: likewise
 * @len: likewise; one that is too short stays where it is
 *
 * Return: as sroce_recv_ring_look().
 */
int sroce_recv_ring_take(struct sroce_ring *ring, struct sroce_recv_wqe *wqe,
			 u32 max_sge, u32 len);

/**
 * sroce_recv_ring_write() - put one receive work request into a ring, for kernel users
 * @ring: ring of a receive queue or shared receive queue
 * @index: where
 * @max_sge: elements the queue was made for
 * @wr: work request
 *
 * Context: the queue's lock held.
 * Return: 0, or -EINVAL for too many elements.
 */
int sroce_recv_ring_write(struct sroce_ring *ring, u32 index, u32 max_sge,
			  const struct ib_recv_wr *wr);

#endif
