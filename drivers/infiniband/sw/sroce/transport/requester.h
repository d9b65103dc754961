/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The requester's engine, and what the files beside it ask of the send queue.
 */
#ifndef SROCE_TRANSPORT_REQUESTER_H
#define SROCE_TRANSPORT_REQUESTER_H

#include "transport/qp.h"

/*
 * Of a message that takes more than one train, a part with fewer packets than this
 * waits
 */
#define SROCE_TRAIN_STUMP 8

/*
 * Work requests that a QP may have begun and not completed. What one ACK completes is
 * completed at once, with bottom halves off, and a peer may keep its ACKs back.
 */
#define SROCE_BEGUN_MOST 2048

/* PSNs of 2 GiB in the smallest packets: half of all there are */
#define SROCE_MAX_NPSN BIT(23)

/* What the engine is to do after a step, in which it has looked at one work request */
enum sroce_step {
	SROCE_STEP_ON,		/* go on */
	SROCE_STEP_WAIT,	/* an ACK, response or timer will come */
	SROCE_STEP_IDLE,	/* nothing is posted */
};

/* Packets sent and not acknowledged */
static inline u32 sroce_requester_outstanding(const struct sroce_requester *req)
{
	return (req->send_psn - req->una_psn) & SROCE_PSN_MASK;
}

/* Would less be left of the window than a train is to have, with @out packets in flight? */
static inline bool sroce_requester_window_ends(const struct sroce_requester *req,
					       u32 out)
{
	return out + min(SROCE_TRAIN_STUMP, max(req->window / 2, 1U)) > req->window;
}

/* Work requests that were fetched and have not completed */
static inline u32 sroce_requester_begun(const struct sroce_requester *req)
{
	return req->fetched - req->ring.index;
}

static inline struct sroce_swqe *
sroce_swqe_at(const struct sroce_requester *req, u32 index)
{
	return req->slots + (size_t)(index & req->ring.mask) * req->slot_size;
}

static inline bool sroce_swqe_has_response(const struct sroce_swqe *slot)
{
	return slot->op >= SROCE_OP_READ && slot->op <= SROCE_OP_ATOMIC_WRITE;
}

/* PSNs of a READ from its packet @k to the end of the request that asks for that */
static inline u32 sroce_swqe_chunk_rest(const struct sroce_swqe *slot, u32 k)
{
	return min(slot->chunk - k % slot->chunk, slot->npsn - k);
}

/* PSN after the last one of a work request that was sent */
static inline u32 sroce_swqe_end(const struct sroce_swqe *slot)
{
	return sroce_psn_add(slot->first_psn, slot->npsn);
}

/**
 * sroce_swqe_offset() - where a PSN is, as seen from a work request
 * @slot: work request that was sent and has not completed
 * @psn: PSN
 *
 * A message may take half of all PSNs, and as many as a window are in flight behind it:
 * so far from its first one sroce_psn_diff() would find what is behind to be before. Here
 * what is before is a quarter of them.
 *
 * Context: requester lock held.
 * Return: PSNs from the first one of @slot to @psn; less than 0: @psn is before it.
 */
static inline s32 sroce_swqe_offset(const struct sroce_swqe *slot, u32 psn)
{
	u32 k = (psn - slot->first_psn) & SROCE_PSN_MASK;

	return k < SROCE_MAX_NPSN * 3 / 2 ? k : k - 2 * SROCE_MAX_NPSN;
}

/* sroce_half.run of the requester */
bool sroce_requester_run(struct sroce_half *half);

#endif
