/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Taking entries from a completion queue's ring, for both ways of polling.
 * All of it wants the queue's lock.
 */
#ifndef SROCE_CQ_H
#define SROCE_CQ_H

#include "sroce.h"

/*
 * What is in the ring behind @cons? More entries than it has room for are none: the
 * memory does not mean anything any more.
 */
static inline uint32_t cq_produced(const struct sroce_cq *cq, uint32_t cons)
{
	uint32_t prod = sroce_load_index(&cq->ring.hdr->prod);

	return prod - cons > cq->ring.nr_entries ? cons : prod;
}

static inline bool cq_has_entries(struct sroce_cq *cq)
{
	if (cq->cons == cq->prod)
		cq->prod = cq_produced(cq, cq->cons);
	return cq->cons != cq->prod;
}

/*
 * The kernel lets the requests of this QP gather for a moment, which should end
 * when the application waits. One QP is remembered for each completion queue;
 * for others the kernel's timer does it.
 */
static inline void cq_note_gathering(struct ibv_qp *qp)
{
	struct sroce_cq *cq = to_scq(qp->send_cq);

	atomic_store_explicit(&cq->gathering, qp->qp_num,
			      memory_order_relaxed);
}

/* For an application that has found nothing: it waits, so nobody else should */
static inline void cq_end_gathering(struct sroce_cq *cq)
{
	uint32_t qp_num;

	if (!atomic_load_explicit(&cq->gathering, memory_order_relaxed))
		return;
	qp_num = atomic_exchange_explicit(&cq->gathering, 0,
					  memory_order_relaxed);
	/* That the QP is gone meanwhile is no news to anybody */
	if (qp_num)
		sroce_ring_doorbell(cq->vcq.cq.context, qp_num);
}

/* The entry stays ours until cq_free_entries(). NULL when there is none. */
static inline struct sroce_cqe *cq_next_entry(struct sroce_cq *cq)
{
	return cq_has_entries(cq) ?
	       sroce_ring_entry(&cq->ring, cq->cons++) : NULL;
}

/* Give the entries that were taken back to the kernel */
static inline void cq_free_entries(struct sroce_cq *cq)
{
	if (cq->freed == cq->cons)
		return;

	cq->freed = cq->cons;
	sroce_store_index(&cq->ring.hdr->cons, cq->cons);
}

/* Status and opcodes are those of struct ibv_wc, flags are almost. */
static inline unsigned int cqe_wc_flags(const struct sroce_cqe *cqe)
{
	unsigned int flags = 0;

	if (cqe->flags & SROCE_CQE_GRH)
		flags |= IBV_WC_GRH;
	if (cqe->flags & SROCE_CQE_IMM)
		flags |= IBV_WC_WITH_IMM;
	if (cqe->flags & SROCE_CQE_INV)
		flags |= IBV_WC_WITH_INV;
	if (cqe->flags & SROCE_CQE_IP_CSUM_OK)
		flags |= IBV_WC_IP_CSUM_OK;
	return flags;
}

/*
 * The priority that came with a datagram, or where none came, what carried it (RoCE
 * v1, or which IP version): a completion has to tell (IBA A17.4.5.1), struct ibv_wc has no
 * place for it, and ConnectX does it here, above the eight priorities that there
 * are on Ethernet. UCX before 1.19 looks here for the length of the address.
 */
enum { SL_ROCE_V1 = 8 + 0, SL_IPV6 = 8 + 1, SL_IPV4 = 8 + 2 };

static inline uint8_t cqe_sl(const struct sroce_cqe *cqe)
{
	if (!(cqe->flags & SROCE_CQE_NETWORK_HDR) || cqe->sl)
		return cqe->sl;
	switch (cqe->network_hdr_type) {
	case SROCE_NETWORK_ROCE_V1:
		return SL_ROCE_V1;
	case SROCE_NETWORK_IPV4:
		return SL_IPV4;
	default:
		return SL_IPV6;
	}
}

#endif
