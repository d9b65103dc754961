// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory on demand whose pages are missing: a half of a QP that meets it stops
 * where it is, process context brings the pages in, and the half runs again.
 *
 * Nothing was changed when a half stops, so it simply does the same again. It
 * may find the pages gone once more, or that they cannot be had: that is
 * remembered until the access is tried again, and is its error then.
 */
#include <linux/workqueue.h>

#include "memory/odp.h"
#include "transport/internal.h"

static struct workqueue_struct *sroce_fault_wq;

static int sroce_fault_carry_out(const struct sroce_fault *f)
{
	enum sroce_odp_fault how = f->miss.write ? SROCE_ODP_WRITE :
						   SROCE_ODP_READ;
	int err = -EFAULT;

	/* What is only likely to be wanted may not be there */
	if (f->ahead > f->miss.len)
		err = sroce_odp_fault(f->miss.mr, f->miss.va, f->ahead, how);
	if (err)
		err = sroce_odp_fault(f->miss.mr, f->miss.va, f->miss.len, how);
	return err;
}

static void sroce_fault_work(struct work_struct *work)
{
	struct sroce_fault *f = container_of(work, struct sroce_fault, work);
	struct sroce_half *half = container_of(f, struct sroce_half, fault);
	struct sroce_qp *qp = half->qp;
	int err;

	err = sroce_fault_carry_out(f);
	sroce_mr_put(f->miss.mr);
	spin_lock_bh(&half->lock);
	/* A region that is going: its key tells, or is another one's */
	f->state = err && err != -ESHUTDOWN ? SROCE_FAULT_FAILED :
					      SROCE_FAULT_NONE;
	spin_unlock_bh(&half->lock);
	sroce_half_run(half);
	sroce_qp_put(qp);
}

static bool sroce_fault_same(const struct sroce_fault *f,
			     const struct sroce_miss *miss)
{
	return f->key == miss->mr->key && f->miss.va == miss->va &&
	       f->miss.write == miss->write;
}

/* Takes over the hold on the region when it starts */
static int sroce_fault_start(struct sroce_half *half, struct sroce_miss *miss,
			     u32 ahead)
{
	struct sroce_fault *f = &half->fault;

	if (f->state == SROCE_FAULT_RUNNING)
		return -EAGAIN;
	if (f->state == SROCE_FAULT_FAILED && sroce_fault_same(f, miss)) {
		f->state = SROCE_FAULT_NONE;
		return -EFAULT;
	}
	sroce_qp_count(half->qp, SROCE_CNT_PAGE_FAULTS, 1);
	f->state = SROCE_FAULT_RUNNING;
	f->met = false;
	f->miss = *miss;
	f->key = miss->mr->key;
	f->ahead = ahead;
	miss->mr = NULL;
	sroce_qp_hold(half->qp);
	queue_work(sroce_fault_wq, &f->work);
	return -EAGAIN;
}

int sroce_fault_gather(struct sroce_half *half, struct sroce_gather *g,
		       u32 ahead)
{
	return sroce_fault_start(half, &g->miss, ahead);
}

int sroce_fault_enter(struct sroce_half *half, struct sroce_mr *mr, u64 va)
{
	struct sroce_miss miss = {
		.mr = mr,
		.va = va,
		.len = sizeof(u64),
		.write = true,
	};
	int err;

	if (likely(mr->kind != SROCE_MR_ON_DEMAND) ||
	    !sroce_odp_begin(mr, va, sizeof(u64), true))
		return 0;
	sroce_mr_hold(mr);
	err = sroce_fault_start(half, &miss, 0);
	if (miss.mr)
		sroce_mr_put(mr);
	return err;
}

void sroce_fault_leave(struct sroce_mr *mr)
{
	if (unlikely(mr->kind == SROCE_MR_ON_DEMAND))
		sroce_odp_end(mr);
}

void sroce_fault_reset(struct sroce_half *half)
{
	half->fault.waiting = false;
	if (half->fault.state == SROCE_FAULT_FAILED)
		half->fault.state = SROCE_FAULT_NONE;
}

void sroce_fault_init(struct sroce_half *half)
{
	INIT_WORK(&half->fault.work, sroce_fault_work);
}

void sroce_faults_queue(struct work_struct *work)
{
	queue_work(sroce_fault_wq, work);
}

int sroce_faults_start(void)
{
	sroce_fault_wq = alloc_workqueue("sroce_fault", WQ_UNBOUND, 0);
	return sroce_fault_wq ? 0 : -ENOMEM;
}

void sroce_faults_stop(void)
{
	destroy_workqueue(sroce_fault_wq);
}
