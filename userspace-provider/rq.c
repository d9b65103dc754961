/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive queues: a QP's own and the shared ones. Posting never needs a
 * system call by itself; the kernel looks when a message arrives.
 */
#include <errno.h>
#include <string.h>

#include "sroce.h"

int sroce_rq_init(struct sroce_rq *rq, const struct sroce_ring *ring,
		  uint32_t max_sge, bool needs_lock)
{
	int err;

	err = sroce_lock_init(&rq->lock, needs_lock);
	if (err)
		return err;

	rq->ring = *ring;
	rq->max_sge = max_sge;
	sroce_rq_restart(rq);
	return 0;
}

int sroce_rq_map(struct sroce_rq *rq, struct ibv_context *ctx,
		 const struct sroce_ring_info *info, uint32_t max_sge,
		 bool needs_lock)
{
	struct sroce_ring ring;
	int err;

	err = sroce_ring_map(&ring, ctx, info);
	if (err)
		return err;
	err = sroce_rq_init(rq, &ring, max_sge, needs_lock);
	if (err)
		sroce_ring_unmap(&ring);
	return err;
}

void sroce_rq_fini(struct sroce_rq *rq)
{
	sroce_ring_unmap(&rq->ring);
	sroce_lock_destroy(&rq->lock);
}

void sroce_rq_restart(struct sroce_rq *rq)
{
	sroce_lock(&rq->lock);
	sroce_ring_restart(&rq->ring, &rq->prod, &rq->cons);
	sroce_unlock(&rq->lock);
}

static int write_request(const struct sroce_rq *rq, struct sroce_recv_wqe *wqe,
			 const struct ibv_recv_wr *wr)
{
	/* Compared as unsigned, a negative number is too large as well. */
	if ((uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;

	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	wqe->reserved = 0;
	if (wr->num_sge)
		memcpy(wqe + 1, wr->sg_list,
		       wr->num_sge * sizeof(*wr->sg_list));
	return 0;
}

int sroce_rq_post(struct sroce_rq *rq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad, struct sroce_posted *posted)
{
	uint32_t next;
	int err = 0;

	sroce_lock(&rq->lock);
	posted->begin = rq->prod;
	for (next = rq->prod; wr; wr = wr->next, next++) {
		if (!sroce_ring_has_room(&rq->ring, &rq->cons, next))
			err = ENOMEM;
		else
			err = write_request(rq, sroce_ring_entry(&rq->ring,
								 next), wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	posted->next = next;
	posted->flags = next == rq->prod ? 0 :
			sroce_ring_publish(&rq->ring, &rq->prod, next);
	sroce_unlock(&rq->lock);
	return err;
}

int sroce_rq_post_ring(struct sroce_rq *rq, struct ibv_context *ctx,
		       uint32_t number, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad)
{
	struct ibv_recv_wr *first = wr;
	struct sroce_posted posted;
	uint32_t taken;
	int lost;
	int err;

	err = sroce_rq_post(rq, wr, bad, &posted);
	if (!(posted.flags & SROCE_RQ_DOORBELL))
		return err;
	lost = sroce_ring_doorbell(ctx, number);
	if (!lost)
		return err;

	/* The device is gone, and with it what was not taken before. */
	taken = sroce_ring_taken(&rq->ring, posted.begin, posted.next);
	if (taken == posted.next - posted.begin)
		return err;
	while (taken--)
		first = first->next;
	*bad = first;
	return lost;
}
