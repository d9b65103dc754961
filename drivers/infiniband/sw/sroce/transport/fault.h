/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory on demand whose pages are missing: how a half of a QP, requester or
 * responder, asks for them and waits.
 */
#ifndef SROCE_TRANSPORT_FAULT_H
#define SROCE_TRANSPORT_FAULT_H

#include "transport/qp.h"

struct sroce_gather;

/**
 * sroce_fault_gather() - bring in the pages that a gather has missed
 * @half: whose gather
 * @g: buffer, after -EAGAIN; to be ended after this
 * @ahead: bytes that will be wanted from there on, as far as is known
 *
 * The half runs again when that is done or has failed, and finds the answer
 * when it gathers once more.
 *
 * Context: @half's lock held.
 * Return: -EAGAIN, or -EFAULT when the pages could not be brought in: the
 * access is an error.
 */
int sroce_fault_gather(struct sroce_half *half, struct sroce_gather *g,
		       u32 ahead);

/**
 * sroce_fault_enter() - keep 8 bytes of a region in place
 * @half: who wants to change them
 * @mr: held region
 * @va: address, in bounds
 *
 * Until sroce_fault_leave(); a region that is not on demand needs nothing.
 *
 * Return: 0, or as sroce_fault_gather() with nothing to leave.
 */
int sroce_fault_enter(struct sroce_half *half, struct sroce_mr *mr, u64 va);
void sroce_fault_leave(struct sroce_mr *mr);

/*
 * A QP is reset or destroyed: it waits for no page any more, whoever has that.
 * Context: @half's lock held; the caller holds the QP.
 */
void sroce_fault_reset(struct sroce_half *half);

void sroce_fault_init(struct sroce_half *half);

static inline bool sroce_faulting(const struct sroce_half *half)
{
	return half->fault.state == SROCE_FAULT_RUNNING;
}

#endif
