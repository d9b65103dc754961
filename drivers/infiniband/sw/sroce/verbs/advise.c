// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Advice on memory on demand: bring pages in before they are asked for.
 *
 * Pages may never come, and threads of the process that unmap memory keep whoever looks
 * for those that are there waiting. So it is the process's pager that does either, a piece at
 * a time, and holds no region meanwhile: who deregisters one waits for nobody's pages.
 *
 * What the caller does not wait for costs others: memory, and the time of workers that
 * belong to nobody. There are SROCE_PAGER_HINTS of it at a time, and each ends after
 * SROCE_PREFETCH_LIMIT: the rest of what was advised comes when it is asked for.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "device.h"
#include "memory/mr.h"
#include "memory/odp.h"
#include "memory/users.h"
#include "verbs/verbs.h"

/* Bytes of one piece: other faults of the process take their turn in between */
#define SROCE_PREFETCH_STEP SZ_256K

/*
 * A caller that waits gives up when one piece takes longer. It does so, too, when all
 * pieces together take longer and somebody may be waiting to take the device away: the
 * device cannot go during a call.
 */
#define SROCE_PREFETCH_PATIENCE (5 * HZ)

/* No advice goes on for longer */
#define SROCE_PREFETCH_LIMIT (30 * HZ)

/* Time after which a caller that waits looks again whether to give up */
#define SROCE_PREFETCH_LOOK (HZ / 10)

/**
 * struct sroce_prefetch - ranges to bring in
 * @want: piece under way
 * @ibdev: device
 * @began: jiffies
 * @done: the piece has ended, for who waits
 * @err: of that
 * @i: range of the next piece
 * @n: entries of @range
 * @range: what is left of each: pages of a region, held; first byte; bytes
 */
struct sroce_prefetch {
	struct sroce_want want;
	struct ib_device *ibdev;
	unsigned long began;
	struct completion done;
	int err;
	u32 i;
	u32 n;
	struct {
		struct sroce_odp *odp;
		u64 at;
		u32 len;
	} range[];
};

static int sroce_prefetch_check(const struct sroce_mr *mr,
				const struct ib_sge *sge,
				bool write)
{
	/* Pairs with sroce_mr_publish(): the rest belongs to this life */
	if (!smp_load_acquire(&mr->valid) || READ_ONCE(mr->key) != sge->lkey)
		return -ENOENT;
	if (mr->kind != SROCE_MR_ON_DEMAND)
		return -EINVAL;
	if (write && !ib_access_writable(mr->access))
		return -EPERM;
	if (sge->length > mr->length ||
	    sge->addr - mr->iova > mr->length - sge->length)
		return -EFAULT;
	return 0;
}

/*
 * The region of an element, held. Keys of other domains are as good as unknown: nobody may find
 * out which there are.
 */
static struct sroce_mr *sroce_prefetch_get(struct ib_pd *ibpd,
					   const struct ib_sge *sge, bool write)
{
	struct sroce_mr_table *mrs = &to_sroce_device(ibpd->device)->port.mrs;
	struct sroce_mr *mr = sroce_mr_find(mrs, sge->lkey, ibpd);
	int err;

	if (!mr)
		return ERR_PTR(-ENOENT);
	err = sroce_prefetch_check(mr, sge, write);
	if (!err)
		return mr;
	sroce_mr_put(mr);
	return ERR_PTR(err);
}

static void sroce_prefetch_free(struct sroce_prefetch *p)
{
	while (p->n)
		sroce_odp_put(p->range[--p->n].odp);
	kvfree(p);
}

static int sroce_prefetch_add(struct sroce_prefetch *p, struct ib_pd *ibpd,
			      const struct ib_sge *sge, bool write)
{
	struct sroce_mr *mr = sroce_prefetch_get(ibpd, sge, write);

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	sroce_odp_hold(mr->odp);
	p->range[p->n].odp = mr->odp;
	p->range[p->n].at = mr->offset + (sge->addr - mr->iova);
	p->range[p->n++].len = sge->length;
	sroce_mr_put(mr);
	return 0;
}

static struct sroce_prefetch *sroce_prefetch_make(struct ib_pd *ibpd,
						  const struct ib_sge *sge,
						  u32 n, bool write)
{
	struct sroce_prefetch *p = kvzalloc(struct_size(p, range, n),
					    GFP_KERNEL_ACCOUNT);
	int err = 0;

	if (!p)
		return ERR_PTR(-ENOMEM);
	p->ibdev = ibpd->device;
	p->began = jiffies;
	p->want.how = write ? SROCE_ODP_WRITE : SROCE_ODP_READ;
	p->want.hint = true;
	init_completion(&p->done);
	while (!err && p->n < n)
		err = sroce_prefetch_add(p, ibpd, sge++, write);
	if (!err)
		return p;
	sroce_prefetch_free(p);
	return ERR_PTR(err);
}

static bool sroce_prefetch_has_more(struct sroce_prefetch *p)
{
	while (p->i < p->n && !p->range[p->i].len)
		p->i++;
	return p->i < p->n;
}

/*
 * Begin the next piece.
 * Return: 0; -ENODATA after the last one, -ETIMEDOUT, or -ESHUTDOWN.
 */
static int sroce_prefetch_step(struct sroce_prefetch *p)
{
	if (!sroce_prefetch_has_more(p))
		return -ENODATA;
	if (time_after(jiffies, p->began + SROCE_PREFETCH_LIMIT))
		return -ETIMEDOUT;
	p->want.odp = p->range[p->i].odp;
	p->want.at = p->range[p->i].at;
	p->want.len = min_t(u32, p->range[p->i].len, SROCE_PREFETCH_STEP);
	p->range[p->i].at += p->want.len;
	p->range[p->i].len -= p->want.len;
	return sroce_want_submit(&p->want);
}

/* --- nobody waits ------------------------------------------------------------- */

/* End advice that nobody waits for: it was counted at the pager of its first range */
static void sroce_prefetch_end(struct sroce_prefetch *p)
{
	sroce_hint_end(p->range[0].odp);
	sroce_prefetch_free(p);
}

static void sroce_prefetch_next(struct sroce_want *want, int err)
{
	struct sroce_prefetch *p = container_of(want, struct sroce_prefetch,
						want);

	if (err || sroce_prefetch_step(p))
		sroce_prefetch_end(p);
}

static int sroce_prefetch_leave(struct sroce_prefetch *p)
{
	int err;

	if (!p->n || !sroce_hint_begin(p->range[0].odp)) {
		err = p->n ? -EAGAIN : 0;
		sroce_prefetch_free(p);
		return err;
	}
	p->want.done = sroce_prefetch_next;
	err = sroce_prefetch_step(p);
	if (err)
		sroce_prefetch_end(p);
	return err == -ENODATA ? 0 : err;
}

/* --- the caller waits ------------------------------------------------------------ */

static void sroce_prefetch_done(struct sroce_want *want, int err)
{
	struct sroce_prefetch *p = container_of(want, struct sroce_prefetch,
						want);

	p->err = err;
	complete(&p->done);
}

static bool sroce_prefetch_late(const struct sroce_prefetch *p,
				unsigned long piece)
{
	return time_after(jiffies, piece + SROCE_PREFETCH_PATIENCE) ||
	       time_after(jiffies, p->began + SROCE_PREFETCH_LIMIT) ||
	       (time_after(jiffies, p->began + SROCE_PREFETCH_PATIENCE) &&
		sroce_device_awaited(p->ibdev));
}

static int sroce_prefetch_wait(struct sroce_prefetch *p)
{
	unsigned long began = jiffies;
	long left;

	do {
		left = wait_for_completion_killable_timeout(&p->done,
							    SROCE_PREFETCH_LOOK);
	} while (!left && !sroce_prefetch_late(p, began));
	if (left > 0)
		return p->err;
	/* Too late to cancel: sroce_prefetch_done() is being called */
	if (!sroce_want_cancel(&p->want))
		wait_for_completion(&p->done);
	return left ?: -ETIMEDOUT;
}

static int sroce_prefetch_flush(struct sroce_prefetch *p)
{
	int err;

	p->want.done = sroce_prefetch_done;
	do {
		err = sroce_prefetch_step(p);
		if (!err)
			err = sroce_prefetch_wait(p);
		/* It is too late for the next piece, if there is one */
		if (!err && sroce_prefetch_has_more(p) &&
		    sroce_prefetch_late(p, jiffies))
			err = -ETIMEDOUT;
	} while (!err);
	sroce_prefetch_free(p);
	return err == -ENODATA ? 0 : err;
}

int sroce_ib_advise_mr(struct ib_pd *ibpd,
		       enum ib_uverbs_advise_mr_advice advice, u32 flags,
		       struct ib_sge *sg_list, u32 num_sge,
		       struct uverbs_attr_bundle *attrs)
{
	bool wait = flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH;
	struct sroce_prefetch *p;
	int err;

	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	p = sroce_prefetch_make(ibpd, sg_list, num_sge, advice ==
				IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	if (IS_ERR(p))
		return PTR_ERR(p);
	if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return wait ? sroce_prefetch_flush(p) : sroce_prefetch_leave(p);
	p->want.how = SROCE_ODP_LOOK;
	err = sroce_prefetch_flush(p);
	return err == -ETIMEDOUT && !wait ? 0 : err;
}
