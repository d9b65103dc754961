// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Advice on memory on demand: bring pages in before they are asked for.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "memory/mr.h"
#include "memory/odp.h"
#include "verbs/verbs.h"

/**
 * struct sroce_prefetch - ranges to bring in
 * @work: does it, when nobody waits
 * @how: what to do
 * @n: entries of @range
 * @range: each with its region, held
 */
struct sroce_prefetch {
	struct work_struct work;
	enum sroce_odp_fault how;
	u32 n;
	struct {
		struct sroce_mr *mr;
		u64 va;
		u32 len;
	} range[];
};

static int sroce_prefetch_check(const struct sroce_mr *mr,
				const struct ib_pd *ibpd,
				const struct ib_sge *sge,
				enum sroce_odp_fault how)
{
	if (!READ_ONCE(mr->valid) || mr->key != sge->lkey)
		return -ENOENT;
	if (mr->kind != SROCE_MR_ON_DEMAND)
		return -EINVAL;
	if (mr->ibmr.pd != ibpd)
		return -EPERM;
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

static void sroce_prefetch_free(struct sroce_prefetch *p)
{
	while (p->n)
		sroce_mr_put(p->range[--p->n].mr);
	kvfree(p);
}

static struct sroce_prefetch *sroce_prefetch_make(struct ib_pd *ibpd,
						  const struct ib_sge *sge,
						  u32 n,
						  enum sroce_odp_fault how)
{
	struct sroce_prefetch *p = kvzalloc(struct_size(p, range, n),
					    GFP_KERNEL_ACCOUNT);
	struct sroce_mr *mr;

	if (!p)
		return ERR_PTR(-ENOMEM);
	p->how = how;
	for (; p->n < n; p->n++, sge++) {
		mr = sroce_prefetch_get(ibpd, sge, how);
		if (IS_ERR(mr)) {
			sroce_prefetch_free(p);
			return ERR_CAST(mr);
		}
		p->range[p->n].mr = mr;
		p->range[p->n].va = sge->addr;
		p->range[p->n].len = sge->length;
	}
	return p;
}

static int sroce_prefetch_run(struct sroce_prefetch *p)
{
	int err = 0;
	u32 i;

	for (i = 0; i < p->n && !err; i++)
		err = sroce_odp_fault(p->range[i].mr, p->range[i].va,
				      p->range[i].len, p->how);
	sroce_prefetch_free(p);
	return err;
}

static void sroce_prefetch_work(struct work_struct *work)
{
	sroce_prefetch_run(container_of(work, struct sroce_prefetch, work));
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
	if (flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return sroce_prefetch_run(p);
	INIT_WORK(&p->work, sroce_prefetch_work);
	sroce_faults_queue(&p->work);
	return 0;
}
