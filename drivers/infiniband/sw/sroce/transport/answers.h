/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The responder's answers to READs, atomics, ATOMIC WRITE and FLUSH: those that are
 * still to be sent, and the last ones, kept for duplicates.
 *
 * All functions: the responder's lock is held, but for alloc and free.
 */
#ifndef SROCE_TRANSPORT_ANSWERS_H
#define SROCE_TRANSPORT_ANSWERS_H

#include "transport/qp.h"

/**
 * sroce_answers_alloc() - make room for answers
 * @a: zeroed
 * @depth: READs and atomics that the peer may have outstanding
 * @user: it is a process's, whose pinned memory it counts as
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int sroce_answers_alloc(struct sroce_resp_answers *a, u32 depth, bool user);

/* Zeroed ones may be freed as well. Context: process. */
void sroce_answers_free(struct sroce_resp_answers *a);

/* Nothing is to be sent, nothing was answered */
void sroce_answers_reset(struct sroce_resp_answers *a);

/**
 * sroce_answers_fit() - may @to take over from @from?
 * @from: answers in use
 * @to: others
 *
 * Return: false when more are to be sent than @to has room for.
 */
static inline bool sroce_answers_fit(const struct sroce_resp_answers *from,
				     const struct sroce_resp_answers *to)
{
	return from->job_tail - from->job_head <= to->njobs;
}

/**
 * sroce_answers_exchange() - other room, the same answers
 * @a: answers in use
 * @other: empty ones that they fit in; afterwards those that were in use, to be freed
 *
 * The responder goes on while the number of READs and atomics is changed (SQD): what
 * it still has to answer, and what the peer may ask for once more, moves along.
 */
void sroce_answers_exchange(struct sroce_resp_answers *a,
			    struct sroce_resp_answers *other);

/* Is there room for one more to be sent? */
static inline bool sroce_answers_room(const struct sroce_resp_answers *a)
{
	return a->job_tail - a->job_head < a->njobs;
}

/* Is none left to be sent? */
static inline bool sroce_answers_all_sent(const struct sroce_resp_answers *a)
{
	return a->job_head == a->job_tail;
}

/* The next one to send, when not all have left */
static inline struct sroce_rd_job *
sroce_answers_next(const struct sroce_resp_answers *a)
{
	return &a->jobs[a->job_head % a->njobs];
}

/* The next one has left, or is not to be sent: go on to the one behind it */
static inline void sroce_answers_sent(struct sroce_resp_answers *a)
{
	a->job_head++;
}

/* None of those that have not left will be sent */
static inline void sroce_answers_drop(struct sroce_resp_answers *a)
{
	a->job_head = a->job_tail;
}

/* Have an answer sent, and keep it for duplicates; false: no room */
bool sroce_answers_add(struct sroce_resp_answers *a,
		       const struct sroce_rd_res *res);

/*
 * Have an answer sent once more, because the peer asks for it again: before those
 * to later requests, and instead of the same one when that has not left yet.
 */
void sroce_answers_repeat(struct sroce_resp_answers *a,
			  const struct sroce_rd_res *res);

/* The answer that was kept for a PSN, or NULL */
struct sroce_rd_res *sroce_answers_find(struct sroce_resp_answers *a, u32 psn);

#endif
