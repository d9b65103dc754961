// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions: what ib_core calls. What a key means is in memory/mr.c.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "memory/mr.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

#define SROCE_MR_ACCESS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_HUGETLB |	\
	 IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_OPTIONAL)

static struct sroce_mr_table *sroce_pd_mrs(struct ib_pd *ibpd)
{
	return &to_sroce_device(ibpd->device)->port.mrs;
}

struct ib_mr *sroce_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct sroce_mr *mr;

	mr = sroce_mr_alloc(sroce_pd_mrs(ibpd), ibpd, SROCE_MR_DMA, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->access = access;
	mr->iova = 0;
	mr->length = U64_MAX;
	sroce_mr_publish(mr);
	return &mr->ibmr;
}

static int sroce_check_reg(struct ib_device *ibdev, u64 length, u64 iova,
			   int access, struct ib_dmah *dmah)
{
	u64 last;

	if (dmah || access & ~SROCE_MR_ACCESS) {
		ibdev_dbg(ibdev, "reg_mr: access %#x\n", access);
		return -EOPNOTSUPP;
	}
	if (!length || check_add_overflow(iova, length - 1, &last)) {
		ibdev_dbg(ibdev, "reg_mr: %#llx bytes at %#llx\n", length,
			  iova);
		return -EINVAL;
	}
	return 0;
}

/*
 * The largest block that both the memory and the addresses are made of. With
 * zero-based addresses, or where the two are not alike, it is a page.
 */
static unsigned long sroce_mr_block(struct ib_umem *umem, u64 virt)
{
	return ib_umem_find_best_pgsz(umem,
				      (SROCE_MAX_MR_BLOCK - PAGE_SIZE) |
				      SROCE_MAX_MR_BLOCK, virt);
}

/* @virt has the same offset in a page as the memory; it decides on the blocks */
static struct sroce_mr *sroce_mr_from_umem(struct ib_pd *ibpd,
					   struct ib_umem *umem, u64 virt)
{
	unsigned long block = sroce_mr_block(umem, virt);
	struct sroce_mr *mr;
	size_t n;

	if (!block) {
		ibdev_dbg(ibpd->device, "reg_mr: no page size for %#llx\n",
			  virt);
		return ERR_PTR(-EINVAL);
	}
	n = ib_umem_num_dma_blocks(umem, block);
	if (n > SROCE_MAX_MR_BLOCKS) {
		ibdev_dbg(ibpd->device, "reg_mr: %zu blocks\n", n);
		return ERR_PTR(-ENOMEM);
	}
	mr = sroce_mr_alloc(sroce_pd_mrs(ibpd), ibpd, SROCE_MR_USER, n);
	if (IS_ERR(mr))
		return mr;
	mr->umem = umem;
	mr->page_shift = ilog2(block);
	return mr;
}

struct ib_mr *sroce_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 virt_addr, int access,
				struct ib_dmah *dmah, struct ib_udata *udata)
{
	u64 iova = access & IB_ZERO_BASED ? 0 : virt_addr;
	u64 virt = access & IB_ZERO_BASED ? start : virt_addr;
	struct ib_umem *umem;
	struct sroce_mr *mr;
	int err;

	err = ib_no_udata_io(udata);
	if (!err)
		err = sroce_check_reg(ibpd->device, length, iova, access, dmah);
	if (err)
		return ERR_PTR(err);
	umem = ib_umem_get_va(ibpd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = sroce_mr_from_umem(ibpd, umem, virt);
	if (IS_ERR(mr)) {
		ib_umem_release(umem);
		return ERR_CAST(mr);
	}
	mr->access = access;
	mr->iova = iova;
	mr->length = length;
	sroce_mr_set_pages(mr);
	sroce_mr_publish(mr);
	return &mr->ibmr;
}

struct ib_mr *sroce_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg)
{
	struct page **staged;
	struct sroce_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG) {
		ibdev_dbg(ibpd->device, "alloc_mr: type %d\n", type);
		return ERR_PTR(-EOPNOTSUPP);
	}
	if (!max_num_sg || max_num_sg > SROCE_MAX_FRWR_PAGES) {
		ibdev_dbg(ibpd->device, "alloc_mr: %u pages\n", max_num_sg);
		return ERR_PTR(-EINVAL);
	}
	staged = kvzalloc_objs(*staged, max_num_sg, GFP_KERNEL);
	if (!staged)
		return ERR_PTR(-ENOMEM);
	mr = sroce_mr_alloc(sroce_pd_mrs(ibpd), ibpd, SROCE_MR_FAST_REG,
			    max_num_sg);
	if (IS_ERR(mr)) {
		kvfree(staged);
		return ERR_CAST(mr);
	}
	mr->staged = staged;
	/* for a REG_MR without ib_map_mr_sg(): no pages, whatever their size */
	mr->ibmr.page_size = PAGE_SIZE;
	return &mr->ibmr;
}

static int sroce_mr_stage_page(struct ib_mr *ibmr, u64 addr)
{
	struct sroce_mr *mr = to_sroce_mr(ibmr);

	if (mr->nr_staged == mr->max_pages)
		return -ENOMEM;
	/* DMA addresses of this device are kernel addresses */
	mr->staged[mr->nr_staged++] = virt_to_page((void *)(uintptr_t)addr);
	return 0;
}

int sroce_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		    unsigned int *sg_offset)
{
	struct sroce_mr *mr = to_sroce_mr(ibmr);

	if (!mr->staged || ibmr->page_size < PAGE_SIZE ||
	    !is_power_of_2(ibmr->page_size)) {
		ibdev_dbg(ibmr->device, "map_mr_sg: pages of %u bytes\n",
			  ibmr->page_size);
		return -EINVAL;
	}
	mr->nr_staged = 0;
	return ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset,
			      sroce_mr_stage_page);
}

int sroce_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct sroce_mr *mr = to_sroce_mr(ibmr);
	struct page **staged = mr->staged;
	struct ib_umem *umem = mr->umem;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	sroce_device_going(ibmr->device);
	/* nobody touches the memory after this */
	sroce_mr_free(mr);
	kvfree(staged);
	ib_umem_release(umem);
	return 0;
}
