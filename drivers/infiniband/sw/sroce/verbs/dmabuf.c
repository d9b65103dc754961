// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions of dma-bufs: what ib_core calls. How their memory is got at is in
 * memory/dmabuf.c.
 */
#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pfn.h>

#include "memory/dmabuf.h"
#include "memory/mr.h"
#include "verbs/compat.h"
#include "verbs/limits.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

#define SROCE_DMABUF_ACCESS						\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_OPTIONAL)

/**
 * struct sroce_dmabuf_reg - what a process registers
 * @ibpd: protection domain
 * @offset: first byte in the buffer
 * @length: bytes
 * @virt: address as work requests name it
 * @access: IB_ACCESS_* rights
 */
struct sroce_dmabuf_reg {
	struct ib_pd *ibpd;
	u64 offset;
	u64 length;
	u64 virt;
	int access;
};

static int sroce_dmabuf_reg_check(const struct sroce_dmabuf_reg *reg,
				  struct ib_dmah *dmah)
{
	u64 last;

	if (dmah || reg->access & ~SROCE_DMABUF_ACCESS) {
		ibdev_dbg(reg->ibpd->device, "reg_dmabuf_mr: access %#x\n",
			  reg->access);
		return -EOPNOTSUPP;
	}
	if (!reg->length || reg->length > SROCE_MAX_MR_SIZE ||
	    check_add_overflow(reg->virt, reg->length - 1, &last)) {
		ibdev_dbg(reg->ibpd->device,
			  "reg_dmabuf_mr: %#llx bytes at %#llx\n",
			  reg->length, reg->virt);
		return -EINVAL;
	}
	return 0;
}

static int sroce_dmabuf_reg_in_bounds(const struct sroce_dmabuf_reg *reg,
				      const struct dma_buf *buf)
{
	if (reg->length <= buf->size && reg->offset <= buf->size - reg->length)
		return 0;
	ibdev_dbg(reg->ibpd->device,
		  "reg_dmabuf_mr: %#llx bytes at %#llx of %#zx\n", reg->length,
		  reg->offset, buf->size);
	return -EINVAL;
}

static int sroce_dmabuf_reg_fill(const struct sroce_dmabuf_reg *reg,
				 struct sroce_mr *mr)
{
	int err = sroce_dmabuf_set_blocks(mr, reg->offset, reg->length);

	if (err)
		return err;
	mr->access = reg->access;
	mr->iova = reg->virt;
	mr->length = reg->length;
	mr->ibmr.iova = reg->virt;
	mr->ibmr.length = reg->length;
	return sroce_dmabuf_publish(mr);
}

static struct sroce_mr *sroce_dmabuf_reg_mr(const struct sroce_dmabuf_reg *reg,
					    struct sroce_dmabuf *d)
{
	u32 n = PFN_UP(offset_in_page(reg->offset) + reg->length);
	struct sroce_mr *mr;
	int err;

	mr = sroce_reg_alloc_mr(reg->ibpd, SROCE_MR_USER, n, true);
	if (IS_ERR(mr))
		return mr;
	mr->dmabuf = d;
	err = sroce_dmabuf_reg_fill(reg, mr);
	if (!err)
		return mr;
	sroce_mr_free(mr);
	sroce_quota_give(to_sroce_device(reg->ibpd->device), SROCE_OBJECT_MR);
	return ERR_PTR(err);
}

static struct sroce_mr *sroce_dmabuf_reg_buf(const struct sroce_dmabuf_reg *reg,
					     struct dma_buf *buf)
{
	struct sroce_dmabuf *d;
	struct sroce_mr *mr;
	int err;

	err = sroce_dmabuf_reg_in_bounds(reg, buf);
	if (err)
		return ERR_PTR(err);
	d = sroce_dmabuf_create(reg->ibpd->device, buf,
				ib_access_writable(reg->access));
	if (IS_ERR(d))
		return ERR_CAST(d);
	mr = sroce_dmabuf_reg_mr(reg, d);
	if (IS_ERR(mr))
		sroce_dmabuf_destroy(d);
	return mr;
}

/* ib_core has compared the offsets of @offset and @virt_addr in their pages */
struct ib_mr *sroce_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
					  u64 length, u64 virt_addr, int fd,
					  int access, struct ib_dmah *dmah,
					  struct uverbs_attr_bundle *attrs)
{
	const struct sroce_dmabuf_reg reg = {
		.ibpd = ibpd,
		.offset = offset,
		.length = length,
		.virt = virt_addr,
		.access = access,
	};
	struct dma_buf *buf;
	struct sroce_mr *mr;
	int err;

	err = sroce_dmabuf_reg_check(&reg, dmah);
	if (err)
		return ERR_PTR(err);
	buf = dma_buf_get(fd);
	if (IS_ERR(buf))
		return ERR_CAST(buf);
	mr = sroce_dmabuf_reg_buf(&reg, buf);
	dma_buf_put(buf);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ibmr;
}
