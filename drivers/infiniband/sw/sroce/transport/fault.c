// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory on demand whose pages are missing: a half of a QP that meets it stops
 * where it is, process context brings the pages in, and the half runs again.
 *
 * Nothing was changed when a half stops, so it simply does the same again. It
 * may find the pages gone once more, or that they cannot be had: that is
 * remembered until the access is tried again, and is its error then.
 *
 * While it waits, a half holds nothing that others may have to wait for: not the
 * region, which can be deregistered meanwhile. A QP that is reset or destroyed
 * does not wait any more.
 *
 * gather.c comes here; memory/pager.c has the pages brought.
 */
#include "memory/odp.h"
#include "transport/fault.h"
#include "transport/internal.h"
#include "transport/run.h"
#include "transport/trace.h"

static void sroce_fault_done(struct sroce_want *want, int err)
{
	struct sroce_fault *f = container_of(want, struct sroce_fault, want);
	struct sroce_half *half = container_of(f, struct sroce_half, fault);
	struct sroce_qp *qp = half->qp;

	spin_lock_bh(&half->lock);
	/*
	 * -ESHUTDOWN: the region is going, which is no failure of the page. The next
	 * look-up of the key fails, or finds another region.
	 */
	if (err && err != -ESHUTDOWN)
		f->failed = f->place;
	f->running = false;
	spin_unlock_bh(&half->lock);
	sroce_half_run(half);
	sroce_qp_put(qp);
}

static bool sroce_fault_is_at(const struct sroce_fault_place *place,
			      const struct sroce_miss *miss)
{
	return place->key == miss->mr->key && place->va == miss->va &&
	       place->write == miss->write;
}

/* In any case the half runs again: at once where the region is going */
static void sroce_fault_wait(struct sroce_half *half,
			     const struct sroce_miss *miss)
{
	struct sroce_fault *f = &half->fault;

	f->same = sroce_fault_is_at(&f->place, miss);
	f->fresh = true;
	f->running = true;
	f->place = (struct sroce_fault_place){
		.va = miss->va,
		.key = miss->mr->key,
		.write = miss->write,
	};
	sroce_qp_get(half->qp);
	if (!sroce_want_pages(&f->want, miss->mr, miss->va, miss->len,
			      miss->ahead,
			      miss->write ? SROCE_ODP_WRITE : SROCE_ODP_READ))
		return;
	f->running = false;
	sroce_half_kick(half);
	sroce_qp_put(half->qp);
}

int sroce_fault_start(struct sroce_half *half, const struct sroce_miss *miss)
{
	struct sroce_fault *f = &half->fault;

	if (f->running)
		return -EAGAIN;
	if (unlikely(sroce_fault_is_at(&f->failed, miss))) {
		f->failed.key = 0;
		return -EFAULT;
	}
	sroce_qp_count(half->qp, SROCE_CNT_PAGE_FAULTS, 1);
	trace_sroce_page_fault(half->qp, half == &half->qp->resp.half,
			       miss->va, miss->len, miss->write);
	sroce_fault_wait(half, miss);
	return -EAGAIN;
}

void sroce_fault_failed_before(struct sroce_half *half, const struct sroce_miss *miss)
{
	struct sroce_fault *f = &half->fault;

	if (sroce_fault_is_at(&f->failed, miss))
		f->failed.key = 0;
}

void sroce_fault_reset(struct sroce_half *half)
{
	struct sroce_fault *f = &half->fault;

	f->waiting = false;
	f->place.key = 0;
	f->failed.key = 0;
	sroce_fault_forget(half);
	if (f->running) {
		/* Too late: sroce_fault_done() is being called, and ends it */
		if (!sroce_want_cancel(&f->want))
			return;
		sroce_qp_put(half->qp);
	}
	f->running = false;
}

void sroce_fault_init(struct sroce_half *half)
{
	half->fault.want.done = sroce_fault_done;
}
