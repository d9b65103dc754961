// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions with protection information: what ib_core calls. What becomes of the bytes is in
 * memory/integrity.c. They are for kernel users only, as fast registration is.
 */
#include <linux/err.h>
#include <linux/scatterlist.h>

#include "memory/integrity.h"
#include "memory/mr.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

struct ib_mr *sroce_ib_alloc_mr_integrity(struct ib_pd *ibpd,
					  u32 max_num_data_sg,
					  u32 max_num_meta_sg)
{
	struct sroce_integrity *sig;
	struct sroce_mr *mr;

	if (!SROCE_HAS_DIF)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_data_sg || max_num_data_sg > SROCE_MAX_FRWR_PAGES ||
	    max_num_meta_sg > SROCE_MAX_FRWR_PAGES) {
		ibdev_dbg(ibpd->device, "alloc_mr_integrity: %u and %u pages\n",
			  max_num_data_sg, max_num_meta_sg);
		return ERR_PTR(-EINVAL);
	}
	sig = sroce_integrity_alloc(max_num_data_sg, max_num_meta_sg);
	if (!sig)
		return ERR_PTR(-ENOMEM);
	mr = sroce_reg_alloc_mr(ibpd, SROCE_MR_FAST_REG, 0, false);
	if (IS_ERR(mr)) {
		sroce_integrity_free(sig);
		return ERR_CAST(mr);
	}
	mr->sig = sig;
	return &mr->ibmr;
}

/* All of a list, or nothing: what is left out of a list of blocks is a list of other blocks */
static int sroce_sig_map(struct sroce_pieces *l, struct scatterlist *sgl,
			 int nents, const unsigned int *offset)
{
	unsigned int skip = offset ? *offset : 0;
	struct scatterlist *sg;
	int i;

	if (nents < 0 || (nents && skip > sg_dma_len(sgl)))
		return -EINVAL;
	for_each_sg(sgl, sg, nents, i) {
		/* DMA addresses of this device are kernel addresses */
		void *addr = (void *)(uintptr_t)sg_dma_address(sg);

		if (!sroce_pieces_add(l, addr + skip, sg_dma_len(sg) - skip))
			return -ENOMEM;
		skip = 0;
	}
	return 0;
}

/*
 * What is mapped is the memory; what it is on the wire, and how long that is, is known when
 * the registration is posted. Its bytes have no addresses but their own, from 0.
 */
int sroce_ib_map_mr_sg_pi(struct ib_mr *ibmr, struct scatterlist *data_sg,
			  int data_sg_nents, unsigned int *data_sg_offset,
			  struct scatterlist *meta_sg, int meta_sg_nents,
			  unsigned int *meta_sg_offset)
{
	struct sroce_integrity *sig = to_sroce_mr(ibmr)->sig;
	struct sroce_plan *next = &sig->next;
	int err;

	sroce_pieces_reset(sig, &next->data);
	sroce_pieces_reset(sig, &next->meta);
	err = sroce_sig_map(&next->data, data_sg, data_sg_nents,
			    data_sg_offset) ?:
	      sroce_sig_map(&next->meta, meta_sg, meta_sg_nents,
			    meta_sg_offset);
	if (!err && sroce_pieces_are_thin(&next->data))
		err = -ENOMEM;
	if (err) {
		ibdev_dbg(ibmr->device, "map_mr_sg_pi: %d and %d pieces: %d\n",
			  data_sg_nents, meta_sg_nents, err);
		return err;
	}
	ibmr->iova = 0;
	ibmr->length = (u64)sroce_pieces_bytes(&next->data) +
		       sroce_pieces_bytes(&next->meta);
	ibmr->sig_attrs->meta_length = sroce_pieces_bytes(&next->meta);
	return 0;
}

int sroce_ib_check_mr_status(struct ib_mr *ibmr, u32 check_mask,
			     struct ib_mr_status *status)
{
	struct sroce_mr *mr = to_sroce_mr(ibmr);

	if (check_mask & ~IB_MR_CHECK_SIG_STATUS ||
	    (check_mask && !mr->sig)) {
		ibdev_dbg(ibmr->device, "check_mr_status: mask %#x\n",
			  check_mask);
		return -EINVAL;
	}
	status->fail_status = 0;
	if (check_mask && sroce_integrity_status(mr, &status->sig_err))
		status->fail_status = IB_MR_CHECK_SIG_STATUS;
	return 0;
}
