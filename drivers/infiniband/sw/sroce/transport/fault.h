/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory on demand whose pages are missing: how a half of a QP, requester or
 * responder, has them brought in and waits. It is gather.h that finds them missing.
 */
#ifndef SROCE_TRANSPORT_FAULT_H
#define SROCE_TRANSPORT_FAULT_H

#include "transport/qp.h"

/**
 * struct sroce_miss - pages of memory on demand that were not there
 * @mr: region, held by the caller
 * @va: first byte
 * @len: bytes that are needed at once
 * @ahead: bytes that will be wanted from @va on, as far as is known
 * @write: to be written to
 */
struct sroce_miss {
	struct sroce_mr *mr;
	u64 va;
	u32 len;
	u32 ahead;
	bool write;
};

/**
 * sroce_fault_start() - bring in pages that a half has missed
 * @half: who has missed them
 * @miss: what; not needed afterwards
 *
 * The half runs again when they are there, or cannot be had, and finds out which
 * when it looks for them once more. While it waits for some it wants no others, and
 * what it wants again does not count again.
 *
 * Context: @half's lock held.
 * Return: -EAGAIN, or -EFAULT when the pages could not be brought in: the
 * access is an error.
 */
int sroce_fault_start(struct sroce_half *half, const struct sroce_miss *miss);

/*
 * A QP is reset or destroyed: it waits for no page any more, whoever has that.
 * Context: @half's lock held; the caller holds the QP.
 */
void sroce_fault_reset(struct sroce_half *half);

void sroce_fault_init(struct sroce_half *half);

/* sroce_fault_is_over() of a half whose pages could not be had once */
void sroce_fault_failed_before(struct sroce_half *half, const struct sroce_miss *miss);

/*
 * What a half looks for is there, whoever has brought it in. When it is missing again some day,
 * that has nothing to do with a failure of before. Context: @half's lock held.
 */
static inline void sroce_fault_is_over(struct sroce_half *half, const struct sroce_miss *miss)
{
	if (unlikely(half->fault.failed.key))
		sroce_fault_failed_before(half, miss);
}

/* The request that was the last to wait for pages was carried out, or is no more */
static inline void sroce_fault_forget(struct sroce_half *half)
{
	half->fault.since = 0;
	half->fault.told = false;
}

static inline bool sroce_fault_is_running(const struct sroce_half *half)
{
	return half->fault.running;
}

#endif
