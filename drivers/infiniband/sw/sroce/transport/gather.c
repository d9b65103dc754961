// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The pages of a piece of a message, from the keys that name them, in a buffer of
 * the processor: it is too large for the stack.
 *
 * requester_train.c and datagram.c come here for what they send, the responder's
 * files and requester_response.c for where data goes. Who finds pages of memory on
 * demand missing goes on to fault.c by itself, so that nobody else has to.
 */
#include <linux/percpu.h>

#include "memory/copy.h"
#include "memory/odp.h"
#include "transport/fault.h"
#include "transport/gather.h"
#include "turn.h"

static DEFINE_PER_CPU_ALIGNED(struct sroce_gather, sroce_gathers) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

struct sroce_gather *sroce_gather_begin(struct sroce_half *half)
{
	struct sroce_gather *g;

	local_lock_nested_bh(&sroce_gathers.lock);
	g = this_cpu_ptr(&sroce_gathers);
	g->half = half;
	g->uses = sroce_mr_uses_begin();
	g->swqe = NULL;
	g->nbv = 0;
	g->len = 0;
	g->placed = 0;
	g->least = U32_MAX;
	g->inlined = false;
	g->on_demand = false;
	g->special = false;
	/* The lock is kept until the end, for which sparse has no annotation */
	__release(&sroce_gathers.lock);
	return g;
}

/* What was gathered for a copy that did not come about, or for its first bytes only, counts so */
static void sroce_gather_end_sig(const struct sroce_gather *g,
				 const struct sroce_gathered_sig *sig)
{
	u32 len;

	if (sig->at >= g->placed)
		return;
	len = min(sig->len, g->placed - sig->at);
	sroce_turn_spend(sroce_integrity_placed(sig->mr, sig->off, len));
}

static void sroce_gather_end_special(struct sroce_gather *g)
{
	u32 i;

	for (i = 0; i < g->nsigs; i++)
		sroce_gather_end_sig(g, &g->sig[i]);
	if (g->on_demand)
		sroce_odp_leave();
}

/* The first that is special */
static void sroce_gather_is_special(struct sroce_gather *g)
{
	if (!g->special)
		g->nsigs = 0;
	g->special = true;
}

void sroce_gather_end(struct sroce_gather *g)
{
	if (unlikely(g->special))
		sroce_gather_end_special(g);
	sroce_mr_uses_end(g->uses);
	__acquire(&sroce_gathers.lock);
	local_unlock_nested_bh(&sroce_gathers.lock);
}

/*
 * Keep the pages of a region on demand in place, or have them brought in: whoever
 * deregisters the region does not have to wait for that. Where the first of them are
 * there, and enough for the caller, *len is cut to these: who is content with a few gets
 * on even while the process loses some again and again.
 */
static int sroce_gather_demand(struct sroce_gather *g, struct sroce_mr *mr,
			       int access, u64 va, u32 *len)
{
	const struct sroce_miss miss = {
		.mr = mr,
		.va = va,
		.len = *len,
		.ahead = g->ahead,
		.write = access & (IB_ACCESS_LOCAL_WRITE |
				   IB_ACCESS_REMOTE_WRITE),
	};
	u32 there;

	if (!g->on_demand)
		sroce_odp_enter();
	g->on_demand = true;
	sroce_gather_is_special(g);
	there = sroce_odp_present(mr, va, *len, miss.write);
	/* Not all there is to the access is there: if it cannot be had, that is remembered */
	if (there < *len && g->len + there < g->least)
		return sroce_fault_start(g->half, &miss);
	if (there)
		sroce_fault_is_over(g->half, &miss);
	if (likely(there == *len))
		return 0;
	*len = there;
	return there ? 0 : -ENOSPC;
}

/* Remember a range that is going to be copied to */
static void sroce_gather_sig_sink(struct sroce_gather *g, struct sroce_mr *mr,
				  u32 off, u32 len)
{
	g->sig[g->nsigs++] = (struct sroce_gathered_sig){
		.mr = mr,
		.off = off,
		.at = g->len,
		.len = len,
	};
}

/*
 * Add a range of a region with protection information. Its bytes may be in more pieces than
 * there is room for, or there are too many such ranges, in which case less is gathered. So
 * only for who is content with that: whoever sends, but datagrams, and whoever receives with
 * ACKs, but atomics. Guards are work as copying is: what is summed up counts, because a peer
 * may ask for one byte of a block.
 */
static int sroce_gather_sig(struct sroce_gather *g, struct sroce_mr *mr,
			    int access, u64 va, u32 len)
{
	u32 off = va - mr->iova;
	u32 done;

	if (g->least == U32_MAX)
		return -EINVAL;
	sroce_gather_is_special(g);
	if (g->nsigs == ARRAY_SIZE(g->sig))
		return -ENOSPC;
	g->nbv += sroce_integrity_bvecs(mr->sig, off, len, g->bv + g->nbv,
					ARRAY_SIZE(g->bv) - g->nbv, &done);
	if (access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		sroce_gather_sig_sink(g, mr, off, done);
	else if (done)
		sroce_turn_spend(sroce_integrity_leave(mr, off, done));
	g->len += done;
	return done == len ? 0 : -ENOSPC;
}

/* Add a range of a region that was found by its key, and is among @g->uses */
static int sroce_gather_mr(struct sroce_gather *g, struct sroce_mr *mr,
			   int access, u64 va, u32 len)
{
	u32 there = len;
	u32 done;
	int err;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	if (unlikely(sroce_mr_is_special(mr))) {
		if (mr->sig)
			return sroce_gather_sig(g, mr, access, va, len);
		err = sroce_gather_demand(g, mr, access, va, &there);
		if (err)
			return err;
	}
	g->nbv += sroce_mr_bvecs(mr, va, there, g->bv + g->nbv,
				 ARRAY_SIZE(g->bv) - g->nbv, &done);
	g->len += done;
	return done == len ? 0 : -ENOSPC;
}

/* Whole packets do where not all could be gathered, and the caller is content with some */
static int sroce_gather_cut(const struct sroce_gather *g, int err, u32 *len)
{
	if (likely(err != -ENOSPC) || g->least == U32_MAX)
		return err;
	*len = round_down(g->len, g->half->qp->mtu);
	return *len ? 0 : err;
}

/*
 * May this QP use the region that an L_Key or R_Key was found to name? What is found is
 * handed on: @mr, maybe an ERR_PTR, or ERR_PTR(-EINVAL).
 */
static struct sroce_mr *sroce_key_check(const struct sroce_qp *qp,
					struct sroce_mr *mr)
{
	if (IS_ERR(mr) || likely(sroce_mr_serves(mr, &qp->windows)))
		return mr;
	return ERR_PTR(-EINVAL);
}

/* Use the region of a key that the peer has named */
static struct sroce_mr *sroce_rkey_use(struct sroce_mr_uses *uses,
				       const struct sroce_qp *qp, u32 rkey,
				       int access, u64 va, u64 len)
{
	return sroce_key_check(qp, sroce_mr_use(uses, &qp->port->mrs, rkey,
						qp->pd, access, va, len));
}

int sroce_rkey_check(const struct sroce_qp *qp, u32 rkey, int access, u64 va,
		     u64 len)
{
	struct sroce_mr *mr;

	rcu_read_lock();
	mr = sroce_key_check(qp, sroce_mr_look(&qp->port->mrs, rkey, qp->pd,
					       access, va, len));
	rcu_read_unlock();
	return PTR_ERR_OR_ZERO(mr);
}

int sroce_rkey_check_whole(const struct sroce_qp *qp, u32 rkey, int access)
{
	struct sroce_mr *mr;

	rcu_read_lock();
	mr = sroce_key_check(qp, sroce_mr_look_whole(&qp->port->mrs, rkey,
						     qp->pd, access));
	rcu_read_unlock();
	return PTR_ERR_OR_ZERO(mr);
}

int sroce_gather_rkey(struct sroce_gather *g, u32 rkey, int access, u64 va,
		      u32 *len, u32 ahead)
{
	struct sroce_mr *mr = sroce_rkey_use(g->uses, g->half->qp, rkey, access,
					     va, *len);

	g->ahead = ahead;
	return sroce_gather_cut(g, sroce_gather_mr(g, mr, access, va, *len),
				len);
}

/* What is at the reserved keys of index 0: see sroce_gather_sge() */
static struct page *sroce_null_source, *sroce_null_sink;

int __init sroce_gathers_start(void)
{
	/* What everybody writes, and the first page, are a cache line's */
	BUILD_BUG_ON(offsetof(struct sroce_gather, bv[1]) -
		     offsetof(struct sroce_gather, half) > 64);
	BUILD_BUG_ON(SROCE_MR_USES < SROCE_MAX_SGE);
	BUILD_BUG_ON(SROCE_TRAIN_BVECS < SROCE_MR_GAP_FREE);
	BUILD_BUG_ON(SROCE_TRAIN_BVECS < SROCE_MR_GAP_RUN + 1);
	BUILD_BUG_ON(SROCE_GATHER_BVECS < SROCE_PACKET_PIECES);
	BUILD_BUG_ON(SROCE_MR_GAP_BYTES < ib_mtu_enum_to_int(IB_MTU_4096));
	sroce_null_source = alloc_page(GFP_KERNEL | __GFP_ZERO);
	sroce_null_sink = alloc_page(GFP_KERNEL);
	if (sroce_null_source && sroce_null_sink)
		return 0;
	sroce_gathers_stop();
	return -ENOMEM;
}

void sroce_gathers_stop(void)
{
	if (sroce_null_source)
		__free_page(sroce_null_source);
	if (sroce_null_sink)
		__free_page(sroce_null_sink);
}

/* One page again and again. What is written to the sink nobody ever reads. */
static int sroce_gather_null(struct sroce_gather *g, int access, u32 len)
{
	struct page *page = access ? sroce_null_sink : sroce_null_source;
	u32 part;

	while (len && g->nbv < ARRAY_SIZE(g->bv)) {
		part = min_t(u32, len, PAGE_SIZE);
		bvec_set_page(&g->bv[g->nbv++], page, part, 0);
		g->len += part;
		len -= part;
	}
	return len ? -ENOSPC : 0;
}

static int sroce_gather_kernel(struct sroce_gather *g, u64 va, u32 len)
{
	u32 done;

	g->nbv += sroce_mr_kernel_bvecs(va, len, g->bv + g->nbv,
					ARRAY_SIZE(g->bv) - g->nbv, &done);
	g->len += done;
	return done == len ? 0 : -ENOSPC;
}

/*
 * Two reserved keys need no look-up. One is for nothing at all. The other is for all
 * memory that the kernel has, and is a key only where the kernel itself has written it;
 * whose QP carries it out does not matter.
 */
static int sroce_gather_sge(struct sroce_gather *g, const struct sroce_sgl *l,
			    u32 lkey, int access, u64 va, u32 len)
{
	struct sroce_qp *qp = g->half->qp;
	struct sroce_mr *mr;

	if (lkey <= SROCE_LOCAL_DMA_LKEY) {
		if (lkey == SROCE_NULL_LKEY)
			return sroce_gather_null(g, access, len);
		if (lkey == SROCE_LOCAL_DMA_LKEY && !l->user)
			return sroce_gather_kernel(g, va, len);
	}
	mr = sroce_mr_use(g->uses, &qp->port->mrs, lkey, l->pd, access, va, len);
	return sroce_gather_mr(g, sroce_key_check(qp, mr), access, va, len);
}

/*
 * What follows in the message lies in other elements, whose pages are looked for when it is
 * their turn: behind an element is memory that nobody has named.
 */
static int sroce_gather_list(struct sroce_gather *g, const struct sroce_sgl *l,
			     int access, u32 off, u32 len, u32 ahead)
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
		g->ahead = min(sge->length - off, ahead);
		err = sroce_gather_sge(g, l, sge->lkey, access,
				       sge->addr + off, part);
		if (err)
			return err;
		len -= part;
		off = 0;
	}
	/* What the list has no room for would land in pages of an earlier user of @g */
	return len ? -EMSGSIZE : 0;
}

int sroce_gather_sges(struct sroce_gather *g, const struct sroce_sgl *l,
		      int access, u32 off, u32 *len, u32 ahead)
{
	return sroce_gather_cut(g, sroce_gather_list(g, l, access, off, *len,
						     ahead), len);
}

/* Inline data is read from the ring, where it stays until the work request completes */
int sroce_gather_send(struct sroce_gather *g, struct sroce_swqe *slot, u32 off,
		      u32 *len, u32 ahead)
{
	struct sroce_sgl l = sroce_sgl_of_send(g->half->qp, slot);

	if (!(slot->wqe.flags & SROCE_SEND_INLINE))
		return sroce_gather_sges(g, &l, 0, off, len, ahead);
	g->nbv = sroce_bvec_from_virt(g->bv, ARRAY_SIZE(g->bv),
				      slot->inline_data + off, *len);
	g->inlined = true;
	g->len = *len;
	return 0;
}

int sroce_gather_sink(struct sroce_gather *g, const struct sroce_swqe *slot,
		      u32 off, u32 *len)
{
	struct sroce_sgl l = sroce_sgl_of_send(g->half->qp, slot);

	return sroce_gather_sges(g, &l, IB_ACCESS_LOCAL_WRITE, off, len,
				 slot->length - off);
}

/* As sroce_gather_demand(), for whoever has no buffer */
static int sroce_word_demand(struct sroce_half *half, struct sroce_mr *mr,
			     u64 va)
{
	const struct sroce_miss miss = {
		.mr = mr,
		.va = va,
		.len = sizeof(u64),
		.write = true,
	};

	sroce_odp_enter();
	if (sroce_odp_present(mr, va, sizeof(u64), true) == sizeof(u64)) {
		sroce_fault_is_over(half, &miss);
		return 0;
	}
	sroce_odp_leave();
	return sroce_fault_start(half, &miss);
}

int sroce_word_begin(struct sroce_word *w, struct sroce_half *half, u32 rkey,
		     int access, u64 va)
{
	int err;

	w->uses = sroce_mr_uses_begin();
	w->mr = sroce_rkey_use(w->uses, half->qp, rkey, access, va, sizeof(u64));
	err = PTR_ERR_OR_ZERO(w->mr);
	if (!err && unlikely(w->mr->odp))
		err = sroce_word_demand(half, w->mr, va);
	if (err)
		sroce_mr_uses_end(w->uses);
	return err;
}

void sroce_word_end(struct sroce_word *w)
{
	if (unlikely(w->mr->odp))
		sroce_odp_leave();
	sroce_mr_uses_end(w->uses);
}
