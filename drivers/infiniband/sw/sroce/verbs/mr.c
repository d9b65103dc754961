// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions: what ib_core calls. What a key means is in memory/mr.c.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "memory/dmabuf.h"
#include "memory/integrity.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/odp.h"
#include "verbs/compat.h"
#include "verbs/limits.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

#define SROCE_ACCESS_ON_DEMAND						\
	(IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) ? IB_ACCESS_ON_DEMAND : 0)

#define SROCE_MR_ACCESS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_HUGETLB |	\
	 IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_OPTIONAL |			\
	 SROCE_ACCESS_ON_DEMAND)

struct sroce_mr *sroce_reg_alloc_mr(struct ib_pd *ibpd, enum sroce_mr_kind kind,
				    u32 max_blocks, bool user)
{
	struct sroce_device *dev = to_sroce_device(ibpd->device);
	struct sroce_mr *mr;
	int err;

	err = sroce_quota_take(dev, SROCE_OBJECT_MR, user);
	if (err)
		return ERR_PTR(err);
	mr = sroce_mr_alloc(&dev->port.mrs, ibpd, kind, max_blocks);
	if (IS_ERR(mr))
		sroce_quota_give(dev, SROCE_OBJECT_MR);
	return mr;
}

struct ib_mr *sroce_ib_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct sroce_mr *mr;

	mr = sroce_reg_alloc_mr(ibpd, SROCE_MR_DMA, 0, false);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->access = access;
	sroce_mr_publish(mr);
	return &mr->ibmr;
}

/*
 * The largest block that both the memory and the addresses are made of; a page where the two are
 * not alike
 */
static unsigned long sroce_mr_block(struct ib_umem *umem, u64 virt)
{
	return ib_umem_find_best_pgsz(umem,
				      (SROCE_MAX_MR_BLOCK - PAGE_SIZE) |
				      SROCE_MAX_MR_BLOCK, virt);
}

/**
 * struct sroce_reg - what a process registers
 * @ibpd: protection domain
 * @start: address in the process
 * @length: bytes
 * @virt: address as it asks work requests to name it
 * @access: IB_ACCESS_* rights
 * @old: region whose key the new one takes over, or NULL
 */
struct sroce_reg {
	struct ib_pd *ibpd;
	u64 start;
	u64 length;
	u64 virt;
	int access;
	const struct sroce_mr *old;
};

static struct sroce_reg sroce_reg_of(struct ib_pd *ibpd, u64 start, u64 length,
				     u64 virt, int access)
{
	return (struct sroce_reg){
		.ibpd = ibpd,
		.start = start,
		.length = length,
		.virt = virt,
		.access = access,
	};
}

static u64 sroce_reg_iova(const struct sroce_reg *reg)
{
	return reg->access & IB_ZERO_BASED ? 0 : reg->virt;
}

/* All of the process's memory: what libibverbs makes of NULL and SIZE_MAX */
static bool sroce_reg_is_implicit(const struct sroce_reg *reg)
{
	return reg->access & IB_ACCESS_ON_DEMAND && !reg->start &&
	       reg->length == U64_MAX && !sroce_reg_iova(reg);
}

static int sroce_reg_check(const struct sroce_reg *reg, struct ib_dmah *dmah)
{
	u64 last;

	if (dmah || reg->access & ~SROCE_MR_ACCESS) {
		ibdev_dbg(reg->ibpd->device, "reg_mr: access %#x\n",
			  reg->access);
		return -EOPNOTSUPP;
	}
	if (sroce_reg_is_implicit(reg))
		return 0;
	if (!reg->length || reg->length > SROCE_MAX_MR_SIZE ||
	    check_add_overflow(sroce_reg_iova(reg), reg->length - 1, &last)) {
		ibdev_dbg(reg->ibpd->device, "reg_mr: %#llx bytes at %#llx\n",
			  reg->length, reg->virt);
		return -EINVAL;
	}
	return 0;
}

static struct sroce_mr *sroce_reg_alloc(const struct sroce_reg *reg,
					enum sroce_mr_kind kind, size_t n)
{
	if (reg->old)
		return sroce_mr_alloc_heir(reg->old, reg->ibpd, kind, n);
	return sroce_reg_alloc_mr(reg->ibpd, kind, n, true);
}

static void sroce_reg_describe(const struct sroce_reg *reg,
			       struct sroce_mr *mr)
{
	mr->access = reg->access;
	mr->iova = sroce_reg_iova(reg);
	mr->length = reg->length;
	/* ib_core does so for a new region, but not for one re-registered */
	mr->ibmr.iova = reg->virt;
	mr->ibmr.length = reg->length;
}

/* A region of pages that are pinned; the umem becomes its own on success */
static struct sroce_mr *sroce_reg_umem(const struct sroce_reg *reg,
				       struct ib_umem *umem)
{
	/* either address has the same offset in its page as the memory */
	u64 virt = reg->access & IB_ZERO_BASED ? reg->start : reg->virt;
	unsigned long block = sroce_mr_block(umem, virt);
	struct sroce_mr *mr;

	if (!block) {
		ibdev_dbg(reg->ibpd->device, "reg_mr: no page size for %#llx\n",
			  virt);
		return ERR_PTR(-EINVAL);
	}
	mr = sroce_reg_alloc(reg, SROCE_MR_USER,
			     ib_umem_num_dma_blocks(umem, block));
	if (IS_ERR(mr))
		return mr;
	mr->umem = umem;
	mr->block_shift = ilog2(block);
	sroce_reg_describe(reg, mr);
	sroce_mr_set_blocks(mr);
	return mr;
}

static struct sroce_mr *sroce_reg_pinned(const struct sroce_reg *reg)
{
	struct ib_device *ibdev = reg->ibpd->device;
	struct ib_umem *umem;
	struct sroce_mr *mr;

	if (IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		umem = sroce_pin(ibdev, reg->start, reg->length, reg->access);
	else
		umem = ib_umem_get_va(ibdev, reg->start, reg->length,
				      reg->access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = sroce_reg_umem(reg, umem);
	if (IS_ERR(mr))
		ib_umem_release(umem);
	return mr;
}

static struct sroce_mr *sroce_reg_on_demand(const struct sroce_reg *reg)
{
	struct sroce_odp *odp;
	struct sroce_mr *mr;

	if (sroce_reg_is_implicit(reg))
		odp = sroce_odp_create_implicit();
	else
		odp = sroce_odp_create(reg->start, reg->length);
	if (IS_ERR(odp))
		return ERR_CAST(odp);
	mr = sroce_reg_alloc(reg, SROCE_MR_ON_DEMAND, 0);
	if (IS_ERR(mr)) {
		sroce_odp_destroy(odp, false);
		return mr;
	}
	mr->odp = odp;
	mr->offset = sroce_odp_offset(odp);
	sroce_reg_describe(reg, mr);
	return mr;
}

static struct sroce_mr *sroce_reg_new(const struct sroce_reg *reg)
{
	return reg->access & IB_ACCESS_ON_DEMAND ? sroce_reg_on_demand(reg) :
						   sroce_reg_pinned(reg);
}

struct ib_mr *sroce_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				   u64 virt_addr, int access,
				   struct ib_dmah *dmah, struct ib_udata *udata)
{
	struct sroce_reg reg = sroce_reg_of(ibpd, start, length, virt_addr,
					    access);
	struct sroce_mr *mr;
	int err;

	err = ib_no_udata_io(udata);
	if (!err)
		err = sroce_reg_check(&reg, dmah);
	if (err)
		return ERR_PTR(err);
	mr = sroce_reg_new(&reg);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	sroce_mr_publish(mr);
	return &mr->ibmr;
}

/* --- re-registration ---------------------------------------------------------- */

/* Take over from the old region what the process does not change */
static void sroce_rereg_merge(struct sroce_reg *reg, const struct sroce_mr *old,
			      int flags)
{
	if (!(flags & IB_MR_REREG_TRANS)) {
		reg->start = old->odp ? sroce_odp_start(old->odp) :
					old->umem->address;
		reg->length = old->length;
		reg->virt = old->ibmr.iova;
	}
	if (!(flags & IB_MR_REREG_ACCESS))
		reg->access = old->access;
	reg->old = old;
}

/* May pages stay pinned as they are? */
static bool sroce_rereg_same_pages(const struct sroce_reg *reg,
				   const struct sroce_mr *old, int flags)
{
	return old->umem && !(flags & IB_MR_REREG_TRANS) &&
	       !(reg->access & IB_ACCESS_ON_DEMAND) &&
	       (old->umem->writable || !ib_access_writable(reg->access));
}

/*
 * Memory that is looked up anew is the caller's: a process that shares the
 * device file with the one that registered would get its own instead.
 */
static bool sroce_rereg_is_ours(const struct sroce_mr *old)
{
	return old->odp ? sroce_odp_is_ours(old->odp) :
			  old->umem->owning_mm == current->mm;
}

/*
 * A region with the new properties takes the place of the old one under its
 * key, between two uses of it. Whatever fails before that leaves the old one
 * as it is. The old one is then ib_core's to deregister.
 */
struct ib_mr *sroce_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				     u64 length, u64 virt_addr, int access,
				     struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct sroce_mr *old = to_sroce_mr(ibmr);
	struct sroce_reg reg = sroce_reg_of(ibpd, start, length, virt_addr,
					    access);
	struct sroce_mr *mr;
	bool same;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	if (!old->umem && !old->odp)
		return ERR_PTR(-EINVAL);
	sroce_rereg_merge(&reg, old, flags);
	err = sroce_reg_check(&reg, NULL);
	if (err)
		return ERR_PTR(err);

	same = sroce_rereg_same_pages(&reg, old, flags);
	if (!same && !(flags & IB_MR_REREG_TRANS) && !sroce_rereg_is_ours(old))
		return ERR_PTR(-EINVAL);
	if (!sroce_mr_seal(old))
		return ERR_PTR(-EBUSY);

	mr = same ? sroce_reg_umem(&reg, old->umem) : sroce_reg_new(&reg);
	if (IS_ERR(mr)) {
		sroce_mr_unseal(old);
		return ERR_CAST(mr);
	}
	sroce_mr_replace(old, mr);
	if (same)
		old->umem = NULL;
	return &mr->ibmr;
}

/* --- fast registration ---------------------------------------------------------- */

static int sroce_alloc_mr_check(struct ib_device *ibdev, enum ib_mr_type type,
				u32 max_num_sg)
{
	if (type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS) {
		ibdev_dbg(ibdev, "alloc_mr: type %d\n", type);
		return -EOPNOTSUPP;
	}
	if (!max_num_sg || max_num_sg > SROCE_MAX_FRWR_PAGES) {
		ibdev_dbg(ibdev, "alloc_mr: %u pages\n", max_num_sg);
		return -EINVAL;
	}
	return 0;
}

static void sroce_staged_free(void **staged, u64 *ends)
{
	kvfree(staged);
	kvfree(ends);
}

struct ib_mr *sroce_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
				u32 max_num_sg)
{
	struct sroce_mr *mr;
	u64 *ends = NULL;
	void **staged;
	int err;

	err = sroce_alloc_mr_check(ibpd->device, type, max_num_sg);
	if (err)
		return ERR_PTR(err);
	staged = kvzalloc_objs(*staged, max_num_sg, GFP_KERNEL);
	if (type == IB_MR_TYPE_SG_GAPS)
		ends = kvzalloc_objs(*ends, 2 * max_num_sg, GFP_KERNEL);
	if (!staged || (type == IB_MR_TYPE_SG_GAPS && !ends)) {
		sroce_staged_free(staged, ends);
		return ERR_PTR(-ENOMEM);
	}
	mr = sroce_reg_alloc_mr(ibpd, SROCE_MR_FAST_REG, max_num_sg, false);
	if (IS_ERR(mr)) {
		sroce_staged_free(staged, ends);
		return ERR_CAST(mr);
	}
	mr->staged = staged;
	mr->ends = ends;
	/* for a REG_MR without ib_map_mr_sg(): no pages, whatever their size */
	mr->ibmr.page_size = PAGE_SIZE;
	return &mr->ibmr;
}

static int sroce_mr_stage_block(struct ib_mr *ibmr, u64 addr)
{
	struct sroce_mr *mr = to_sroce_mr(ibmr);

	if (mr->nr_staged == mr->max_blocks)
		return -ENOMEM;
	/* DMA addresses of this device are kernel addresses */
	mr->staged[mr->nr_staged++] = (void *)(uintptr_t)addr;
	return 0;
}

/* Have the blocks before @n, of which the last one ends at @end, too few bytes for so many? */
static bool sroce_mr_run_is_thin(const struct sroce_mr *mr, u32 n, u64 end)
{
	const u64 *ends = mr->ends + mr->max_blocks;
	u64 before = n > SROCE_MR_GAP_RUN ? ends[n - SROCE_MR_GAP_RUN - 1] : 0;

	return end - before < SROCE_MR_GAP_BYTES;
}

/* Is there a packet for which one more block would be one too many (SROCE_MR_GAP_FREE)? */
static bool sroce_mr_stage_is_thin(const struct sroce_mr *mr, u32 len)
{
	const u64 *ends = mr->ends + mr->max_blocks;
	u32 n = mr->nr_staged + 1, i;

	if (n <= SROCE_MR_GAP_FREE)
		return false;
	/* What the first blocks were free to do before they are not any more */
	if (n == SROCE_MR_GAP_FREE + 1)
		for (i = SROCE_MR_GAP_RUN; i < n; i++)
			if (sroce_mr_run_is_thin(mr, i, ends[i - 1]))
				return true;
	return sroce_mr_run_is_thin(mr, n, mr->ibmr.length + len);
}

/* An element of a list with gaps is a block. Return: false when there is no room */
static bool sroce_mr_stage_element(struct sroce_mr *mr, u64 addr, u32 len)
{
	if (!len)
		return true;
	if (sroce_mr_stage_is_thin(mr, len) ||
	    sroce_mr_stage_block(&mr->ibmr, addr))
		return false;
	mr->ibmr.length += len;
	mr->ends[mr->max_blocks + mr->nr_staged - 1] = mr->ibmr.length;
	return true;
}

/*
 * As ib_sg_to_pages() does where there are no gaps: how many elements fit is returned, and
 * none that does is cut.
 */
static int sroce_mr_stage_list(struct sroce_mr *mr, struct scatterlist *sgl,
			       int sg_nents, unsigned int *sg_offset)
{
	unsigned int skip = sg_offset ? *sg_offset : 0;
	struct scatterlist *sg;
	int i;

	if (sg_nents <= 0 || skip > sg_dma_len(sgl))
		return -EINVAL;
	mr->ibmr.iova = sg_dma_address(sgl) + skip;
	mr->ibmr.length = 0;
	for_each_sg(sgl, sg, sg_nents, i) {
		if (!sroce_mr_stage_element(mr, sg_dma_address(sg) + skip,
					    sg_dma_len(sg) - skip))
			break;
		skip = 0;
	}
	if (sg_offset)
		*sg_offset = 0;
	return i;
}

int sroce_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		       unsigned int *sg_offset)
{
	struct sroce_mr *mr = to_sroce_mr(ibmr);

	if (!mr->staged || ibmr->page_size < SROCE_MIN_FRWR_BLOCK ||
	    !is_power_of_2(ibmr->page_size)) {
		ibdev_dbg(ibmr->device, "map_mr_sg: blocks of %u bytes\n",
			  ibmr->page_size);
		return -EINVAL;
	}
	mr->nr_staged = 0;
	if (mr->ends)
		return sroce_mr_stage_list(mr, sg, sg_nents, sg_offset);
	return ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset,
			      sroce_mr_stage_block);
}

int sroce_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibmr->device);
	struct sroce_mr *mr = to_sroce_mr(ibmr);
	void **staged = mr->staged;
	u64 *ends = mr->ends;
	struct ib_umem *umem = mr->umem;
	struct sroce_odp *odp = mr->odp;
	struct sroce_dmabuf *dmabuf = mr->dmabuf;
	struct sroce_integrity *sig = mr->sig;
	struct sroce_pinned pinned = mr->pinned;
	/* After re-registration the key is the new region's, and counts there */
	bool replaced = mr->replaced;

	sroce_device_going(ibmr->device);
	if (!replaced && !sroce_mr_seal(mr))
		return -EBUSY;
	if (dmabuf)
		sroce_dmabuf_leave(dmabuf);
	/* nobody touches the memory after this */
	sroce_mr_free(mr);
	if (!replaced)
		sroce_quota_give(dev, SROCE_OBJECT_MR);
	sroce_staged_free(staged, ends);
	sroce_integrity_free(sig);
	sroce_pinned_uncharge(&pinned);
	ib_umem_release(umem);
	if (odp)
		sroce_odp_destroy(odp, !sroce_device_awaited(&dev->ibdev));
	if (dmabuf)
		sroce_dmabuf_destroy(dmabuf);
	return 0;
}
