// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory (ibv_alloc_dm()): on a NIC, memory on the card. Here it is memory of the
 * kernel that is made, counted and mapped as that of rings is: pinned memory of the process
 * that asks for it. What it spares an application is the same as on a NIC: pages of its own
 * that have to be pinned, and a fork or madvise() that could take them away.
 *
 * Regions on it are addressed from 0 (ib_core wants that). They keep it: ib_core frees none
 * that has a region. A mapping keeps the memory, but not what it is called by.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/uverbs_types.h>

#include "memory/mr.h"
#include "memory/ring.h"
#include "verbs/limits.h"
#include "verbs/mmap.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

#define UVERBS_MODULE_NAME sroce
#include <rdma/uverbs_named_ioctl.h>

/* Rights of a region on it */
#define SROCE_DM_ACCESS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_FLUSH_GLOBAL | IB_ZERO_BASED | IB_ACCESS_OPTIONAL)

/**
 * struct sroce_dm - device memory
 * @ibdm: what ib_core knows
 * @mem: the memory
 * @map: mapping of it
 * @mmap_offset: where that is, for mmap()
 */
struct sroce_dm {
	struct ib_dm ibdm;
	struct sroce_ring_mem *mem;
	struct sroce_mmap *map;
	u64 mmap_offset;
};

static struct sroce_dm *to_sroce_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct sroce_dm, ibdm);
}

static int sroce_dm_check(struct ib_device *ibdev,
			  const struct ib_dm_alloc_attr *attr)
{
	if (!attr->length || attr->length > SROCE_MAX_DM_SIZE) {
		ibdev_dbg(ibdev, "alloc_dm: %llu bytes\n", attr->length);
		return -EINVAL;
	}
	/* The logarithm of it. Memory begins with a page */
	if (attr->alignment > PAGE_SHIFT) {
		ibdev_dbg(ibdev, "alloc_dm: alignment 2^%u\n", attr->alignment);
		return -EINVAL;
	}
	return 0;
}

static void sroce_dm_free(struct sroce_dm *dm)
{
	sroce_mmap_remove(dm->map);
	sroce_ring_mem_put(dm->mem);
	kfree(dm);
}

static struct sroce_dm *sroce_dm_make(struct sroce_ucontext *uctx, size_t len)
{
	struct sroce_dm *dm = kzalloc_obj(*dm, GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->mem = sroce_ring_mem_alloc(len, true);
	if (!dm->mem)
		goto free;
	dm->map = sroce_mmap_add_mem(uctx, dm->mem, &dm->mmap_offset);
	if (!IS_ERR(dm->map))
		return dm;
	err = PTR_ERR(dm->map);
	sroce_ring_mem_put(dm->mem);
free:
	kfree(dm);
	return ERR_PTR(err);
}

struct ib_dm *sroce_ib_alloc_dm(struct ib_device *ibdev,
				struct ib_ucontext *ibuc,
				struct ib_dm_alloc_attr *attr,
				struct uverbs_attr_bundle *attrs)
{
	struct sroce_device *dev = to_sroce_device(ibdev);
	struct sroce_dm *dm;
	int err;

	err = sroce_dm_check(ibdev, attr);
	if (!err)
		err = sroce_quota_take(dev, SROCE_OBJECT_DM, true);
	if (err)
		return ERR_PTR(err);
	dm = sroce_dm_make(to_sroce_ucontext(ibuc), PAGE_ALIGN(attr->length));
	if (!IS_ERR(dm))
		return &dm->ibdm;
	sroce_quota_give(dev, SROCE_OBJECT_DM);
	return ERR_CAST(dm);
}

int sroce_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct sroce_device *dev = to_sroce_device(ibdm->device);

	sroce_dm_free(to_sroce_dm(ibdm));
	sroce_quota_give(dev, SROCE_OBJECT_DM);
	return 0;
}

/*
 * Any number of regions may be of the same memory, which counts once: so their tables count
 * as well, and each as a page at least.
 */
static struct sroce_mr *sroce_dm_alloc_mr(struct ib_pd *ibpd, u32 pages)
{
	size_t table = pages * sizeof(void *);
	struct sroce_pinned pinned;
	struct sroce_mr *mr;

	if (sroce_pinned_charge(&pinned, max(table, PAGE_SIZE)))
		return ERR_PTR(-ENOMEM);
	mr = sroce_reg_alloc_mr(ibpd, SROCE_MR_USER, pages, true);
	if (IS_ERR(mr))
		sroce_pinned_uncharge(&pinned);
	else
		mr->pinned = pinned;
	return mr;
}

/*
 * ib_core has compared offset and length with the length that was asked for. Nothing at
 * all is registered, too: suites of tests do.
 */
struct ib_mr *sroce_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				 struct ib_dm_mr_attr *attr,
				 struct uverbs_attr_bundle *attrs)
{
	const struct sroce_ring_mem *mem = to_sroce_dm(ibdm)->mem;
	u32 start = offset_in_page(attr->offset);
	struct sroce_mr *mr;
	u32 n, i;

	if (attr->access_flags & ~SROCE_DM_ACCESS) {
		ibdev_dbg(ibpd->device, "reg_dm_mr: access %#x\n",
			  attr->access_flags);
		return ERR_PTR(-EOPNOTSUPP);
	}
	n = PAGE_ALIGN(start + attr->length) >> PAGE_SHIFT;
	mr = sroce_dm_alloc_mr(ibpd, n);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	for (i = 0; i < n; i++)
		mr->blocks[i] = page_address(sroce_ring_page(mem, attr->offset - start +
							     (size_t)i * PAGE_SIZE));
	mr->nr_blocks = n;
	mr->offset = start;
	mr->access = attr->access_flags;
	mr->length = attr->length;
	mr->ibmr.length = attr->length;
	sroce_mr_publish(mr);
	return &mr->ibmr;
}

/* Where the memory may be mapped: for whoever has allocated or imported it */
static int UVERBS_HANDLER(SROCE_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs,
						 SROCE_ATTR_QUERY_DM_HANDLE);
	const struct sroce_dm *dm = to_sroce_dm(ibdm);
	struct sroce_query_dm_resp resp = {
		.mmap_offset = dm->mmap_offset,
		.mmap_len = dm->mem->len,
		.length = ibdm->length,
	};

	return uverbs_copy_to_struct_or_zero(attrs, SROCE_ATTR_QUERY_DM_RESP,
					     &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(SROCE_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(SROCE_ATTR_QUERY_DM_HANDLE,
					    UVERBS_OBJECT_DM, UVERBS_ACCESS_READ,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(SROCE_ATTR_QUERY_DM_RESP,
						UVERBS_ATTR_STRUCT(struct sroce_query_dm_resp,
								   length),
						UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DM,
			      &UVERBS_METHOD(SROCE_METHOD_DM_QUERY));

const struct uapi_definition sroce_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_DM),
	{}
};
