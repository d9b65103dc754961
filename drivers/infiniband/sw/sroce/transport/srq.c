// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/internal.h"

void sroce_srq_limit_event(struct sroce_srq *srq)
{
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = &srq->ibsrq,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

bool sroce_srq_take(struct sroce_srq *srq, struct sroce_recv_wqe *wqe)
{
	bool limit = false;
	u32 pending;

	spin_lock(&srq->lock);
	pending = sroce_ring_pending(&srq->ring);
	if (pending) {
		memcpy(wqe, sroce_ring_entry(&srq->ring, srq->ring.index),
		       srq->ring.stride);
		sroce_ring_consumed(&srq->ring, 1);
		limit = pending - 1 < srq->limit;
		if (limit)
			srq->limit = 0;
	}
	spin_unlock(&srq->lock);
	if (limit)
		sroce_srq_limit_event(srq);
	return pending;
}

int sroce_rq_write(struct sroce_ring *ring, u32 index, u32 max_sge,
		   const struct ib_recv_wr *wr)
{
	struct sroce_recv_wqe *wqe = sroce_ring_entry(ring, index);
	struct sroce_sge *sge = (struct sroce_sge *)(wqe + 1);
	int i;

	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++)
		sge[i] = (struct sroce_sge){
			.addr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	return 0;
}
