// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Advice on memory on demand: bring pages in before they are asked for. It goes a
 * piece at a time, by the process's own pager, and holds no region meanwhile: who
 * deregisters one waits for nobody's pages.
 */
#include <linux/completion.h>
#include <linux/mm.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "memory/mr.h"
#include "memory/odp.h"
#include "verbs/verbs.h"

/* Bytes of one piece: other faults of the process take their turn in between */
#define SROCE_PREFETCH_STEP SZ_256K

/*
 * Who waits for the end gives up when a piece takes longer. As long as it is in here
 * the device cannot go, and it may be waiting for a page that never comes.
 */
#define SROCE_PREFETCH_PATIENCE (5 * HZ)

/**
 * struct sroce_prefetch - ranges to bring in
 * @want: piece under way
 * @refs: one for the pieces, one for who waits for the last
 * @done: the last one has ended
 * @err: of the first that failed, after which none begins
 * @steps: pieces that have ended
 * @i: range of the next piece
 * @n: entries of @range
 * @range: what is left of each: pages of a region, held; first byte; bytes
 */
struct sroce_prefetch {
	struct sroce_want want;
	refcount_t refs;
	struct completion done;
	int err;
	unsigned int steps;
	u32 i;
	u32 n;
	struct {
		struct sroce_odp *odp;
		u64 at;
		u32 len;
	} range[];
};

static int sroce_prefetch_check(const struct sroce_mr *mr,
				const struct ib_pd *ibpd,
				const struct ib_sge *sge,
				enum sroce_odp_fault how)
{
	/*
	 * Keys of other domains are as good as unknown: nobody may find out which
	 * there are. Pairs with sroce_mr_publish(): the rest belongs to this life.
	 */
	if (!smp_load_acquire(&mr->valid) || READ_ONCE(mr->key) != sge->lkey ||
	    mr->ibmr.pd != ibpd)
		return -ENOENT;
	if (mr->kind != SROCE_MR_ON_DEMAND)
		return -EINVAL;
	if (how == SROCE_ODP_WRITE && !ib_access_writable(mr->access))
		return -EPERM;
	if (sge->length > mr->length ||
	    sge->addr - mr->iova > mr->length - sge->length)
		return -EFAULT;
	return 0;
}

/* The region of an element, held */
static struct sroce_mr *sroce_prefetch_get(struct ib_pd *ibpd,
					   const struct ib_sge *sge,
					   enum sroce_odp_fault how)
{
	struct sroce_mr_table *mrs = &to_sroce_device(ibpd->device)->port.mrs;
	struct sroce_mr *mr = sroce_mr_find(mrs, sge->lkey);
	int err;

	if (!mr)
		return ERR_PTR(-ENOENT);
	err = sroce_prefetch_check(mr, ibpd, sge, how);
	if (!err)
		return mr;
	sroce_mr_put(mr);
	return ERR_PTR(err);
}

static void sroce_prefetch_put(struct sroce_prefetch *p)
{
	if (!refcount_dec_and_test(&p->refs))
		return;
	while (p->n)
		sroce_odp_put(p->range[--p->n].odp);
	kvfree(p);
}

/* Begin the next piece. Return: 0, -ENODATA after the last one, or -ESHUTDOWN. */
static int sroce_prefetch_step(struct sroce_prefetch *p)
{
	while (p->i < p->n && !p->range[p->i].len)
		p->i++;
	if (p->i == p->n)
		return -ENODATA;
	p->want.odp = p->range[p->i].odp;
	p->want.at = p->range[p->i].at;
	p->want.len = min_t(u32, p->range[p->i].len, SROCE_PREFETCH_STEP);
	p->range[p->i].at += p->want.len;
	p->range[p->i].len -= p->want.len;
	return sroce_want_submit(&p->want);
}

static void sroce_prefetch_done(struct sroce_want *want, int err)
{
	struct sroce_prefetch *p = container_of(want, struct sroce_prefetch,
						want);

	WRITE_ONCE(p->steps, p->steps + 1);
	if (!err)
		err = sroce_prefetch_step(p);
	if (!err)
		return;
	p->err = err == -ENODATA ? 0 : err;
	complete(&p->done);
	sroce_prefetch_put(p);
}

static struct sroce_prefetch *sroce_prefetch_alloc(u32 n,
						   enum sroce_odp_fault how)
{
	struct sroce_prefetch *p = kvzalloc(struct_size(p, range, n),
					    GFP_KERNEL_ACCOUNT);

	if (!p)
		return NULL;
	refcount_set(&p->refs, 1);
	init_completion(&p->done);
	p->want.done = sroce_prefetch_done;
	p->want.how = how;
	return p;
}

static struct sroce_prefetch *sroce_prefetch_make(struct ib_pd *ibpd,
						  const struct ib_sge *sge,
						  u32 n,
						  enum sroce_odp_fault how)
{
	struct sroce_prefetch *p = sroce_prefetch_alloc(n, how);
	struct sroce_mr *mr;

	if (!p)
		return ERR_PTR(-ENOMEM);
	for (; p->n < n; p->n++, sge++) {
		mr = sroce_prefetch_get(ibpd, sge, how);
		if (IS_ERR(mr)) {
			sroce_prefetch_put(p);
			return ERR_CAST(mr);
		}
		sroce_odp_hold(mr->odp);
		p->range[p->n].odp = mr->odp;
		p->range[p->n].at = mr->offset + (sge->addr - mr->iova);
		p->range[p->n].len = sge->length;
		sroce_mr_put(mr);
	}
	return p;
}

static int sroce_prefetch_wait(struct sroce_prefetch *p)
{
	unsigned int steps;
	long left;

	do {
		steps = READ_ONCE(p->steps);
		left = wait_for_completion_killable_timeout(&p->done,
							    SROCE_PREFETCH_PATIENCE);
	} while (!left && steps != READ_ONCE(p->steps));
	if (left > 0)
		return p->err;
	return left ?: -ETIMEDOUT;
}

static int sroce_prefetch_run(struct sroce_prefetch *p, bool wait)
{
	int err;

	/* For the pieces */
	refcount_inc(&p->refs);
	err = sroce_prefetch_step(p);
	if (err)
		sroce_prefetch_put(p);
	else if (wait)
		err = sroce_prefetch_wait(p);
	sroce_prefetch_put(p);
	return err == -ENODATA ? 0 : err;
}

static int sroce_advice(enum ib_uverbs_advise_mr_advice advice)
{
	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		return SROCE_ODP_READ;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		return SROCE_ODP_WRITE;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		return SROCE_ODP_SNAPSHOT;
	default:
		return -EOPNOTSUPP;
	}
}

int sroce_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice,
		    u32 flags, struct ib_sge *sg_list, u32 num_sge,
		    struct uverbs_attr_bundle *attrs)
{
	int how = sroce_advice(advice);
	struct sroce_prefetch *p;

	if (how < 0)
		return how;
	p = sroce_prefetch_make(ibpd, sg_list, num_sge, how);
	if (IS_ERR(p))
		return PTR_ERR(p);
	return sroce_prefetch_run(p, flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
}
