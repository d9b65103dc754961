// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive work requests in the ring of a queue: responder_recv.c and srq.c take them,
 * post.c and verbs/srq.c put those of kernel users there. (A process writes its own.)
 */
#include "transport/recv_ring.h"

int sroce_recv_ring_look(const struct sroce_ring *ring,
			 struct sroce_recv_wqe *wqe, u32 max_sge, u32 len)
{
	if (!sroce_ring_pending(ring))
		return -ENOENT;
	memcpy(wqe, sroce_ring_entry(ring, ring->index), ring->stride);
	if (len && sroce_recv_room(wqe, max_sge) < len)
		return -EMSGSIZE;
	return 0;
}

int sroce_recv_ring_take(struct sroce_ring *ring, struct sroce_recv_wqe *wqe,
			 u32 max_sge, u32 len)
{
	int err = sroce_recv_ring_look(ring, wqe, max_sge, len);

	if (!err)
		sroce_ring_consumed(ring, 1);
	return err;
}

int sroce_recv_ring_write(struct sroce_ring *ring, u32 index, u32 max_sge,
			  const struct ib_recv_wr *wr)
{
	struct sroce_recv_wqe *wqe = sroce_ring_entry(ring, index);
	struct sroce_sge *sge = (struct sroce_sge *)(wqe + 1);
	int i;

	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	wqe->reserved = 0;
	for (i = 0; i < wr->num_sge; i++)
		sge[i] = (struct sroce_sge){
			.addr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	return 0;
}
