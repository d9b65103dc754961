// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The pages of a piece of a message, from the keys that name them, in a buffer of
 * the processor: it is too large for the stack.
 */
#include <linux/percpu.h>

#include "memory/odp.h"
#include "transport/gather.h"

static DEFINE_PER_CPU(struct sroce_gather, sroce_gathers) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

struct sroce_gather *sroce_gather_begin(void)
{
	struct sroce_gather *g;

	local_lock_nested_bh(&sroce_gathers.lock);
	g = this_cpu_ptr(&sroce_gathers);
	g->nbv = 0;
	g->nmrs = 0;
	g->len = 0;
	g->inlined = false;
	g->swqe = NULL;
	g->on_demand = false;
	/* It stays locked, which sparse has no words for */
	__release(&sroce_gathers.lock);
	return g;
}

static void sroce_gather_end_on_demand(struct sroce_gather *g)
{
	sroce_odp_leave();
	if (g->miss.mr)
		sroce_mr_put(g->miss.mr);
	g->miss.mr = NULL;
}

void sroce_gather_end(struct sroce_gather *g)
{
	if (unlikely(g->on_demand))
		sroce_gather_end_on_demand(g);
	while (g->nmrs)
		sroce_mr_put(g->mrs[--g->nmrs]);
	__acquire(&sroce_gathers.lock);
	local_unlock_nested_bh(&sroce_gathers.lock);
}

/* The hold on a region that is not there passes to @g->miss */
static int sroce_gather_begin_on_demand(struct sroce_gather *g,
					struct sroce_mr *mr, int access,
					u64 va, u32 len)
{
	bool write = access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);

	if (!g->on_demand)
		sroce_odp_enter();
	g->on_demand = true;
	if (sroce_odp_present(mr, va, len, write))
		return 0;
	g->miss = (struct sroce_miss){
		.mr = mr,
		.va = va,
		.len = len,
		.write = write,
	};
	return -EAGAIN;
}

/* Add a range of a region that was found by its key, and is held for us */
static int sroce_gather_mr(struct sroce_gather *g, struct sroce_mr *mr,
			   int access, u64 va, u32 len)
{
	u32 done;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	if (unlikely(mr->kind == SROCE_MR_ON_DEMAND) &&
	    sroce_gather_begin_on_demand(g, mr, access, va, len))
		return -EAGAIN;
	g->mrs[g->nmrs++] = mr;
	g->nbv += sroce_mr_bvecs(mr, va, len, g->bv + g->nbv,
				 ARRAY_SIZE(g->bv) - g->nbv, &done);
	g->len += done;
	return done == len ? 0 : -ENOSPC;
}

int sroce_gather_key(struct sroce_gather *g, struct sroce_qp *qp, u32 key,
		     int access, u64 va, u32 len)
{
	if (g->nmrs == ARRAY_SIZE(g->mrs))
		return -ENOSPC;
	return sroce_gather_mr(g, sroce_rkey_get(qp, key, access, va, len),
			       access, va, len);
}

static int sroce_gather_kernel(struct sroce_gather *g, u64 va, u32 len)
{
	u32 done;

	g->nbv += sroce_kernel_bvecs(va, len, g->bv + g->nbv,
				     ARRAY_SIZE(g->bv) - g->nbv, &done);
	g->len += done;
	return done == len ? 0 : -ENOSPC;
}

/*
 * The reserved key needs no look-up: all memory that the kernel has. It is one
 * only where the kernel itself has written it; whose QP carries it out does not
 * matter.
 */
static int sroce_gather_sge(struct sroce_gather *g, struct sroce_qp *qp,
			    const struct sroce_sgl *l, u32 lkey, int access,
			    u64 va, u32 len)
{
	struct sroce_mr *mr;

	if (lkey == SROCE_LOCAL_DMA_LKEY && !l->user)
		return sroce_gather_kernel(g, va, len);
	if (g->nmrs == ARRAY_SIZE(g->mrs))
		return -ENOSPC;
	mr = sroce_mr_get(&qp->port->mrs, lkey, l->pd, access, va, len);
	return sroce_gather_mr(g, sroce_rkey_check(qp, mr), access, va, len);
}

int sroce_gather_sges(struct sroce_gather *g, struct sroce_qp *qp,
		      const struct sroce_sgl *l, int access, u32 off, u32 len)
{
	const struct sroce_sge *sge = l->sge;
	u32 n = l->n;
	u32 part;
	int err;

	for (; n && len; n--, sge++) {
		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = min(sge->length - off, len);
		err = sroce_gather_sge(g, qp, l, sge->lkey, access,
				       sge->addr + off, part);
		if (err)
			return err;
		len -= part;
		off = 0;
	}
	return 0;
}
