// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rings in the address space of a process.
 *
 * Destroying a queue may race with mmap() of its ring: whoever knows an offset
 * can call it at any time. The core keeps the entry while it is in use, but not
 * what is behind it, so each entry has a lock under which pages are inserted
 * and under which the ring is taken away.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "memory/ring.h"
#include "verbs/mmap.h"
#include "verbs/verbs.h"

/**
 * struct sroce_mmap - one ring that may be mapped
 * @entry: in the core's table of offsets
 * @lock: protects @mem; taken with the mmap lock held
 * @mem: the ring's pages, NULL when there is nothing to map
 * @len: its bytes
 */
struct sroce_mmap {
	struct rdma_user_mmap_entry entry;
	struct mutex lock; /* see above */
	void *mem;
	size_t len;
};

static struct sroce_mmap *sroce_mmap_new(struct sroce_ucontext *uctx,
					 size_t len)
{
	struct sroce_mmap *map;
	int err;

	map = kzalloc_obj(*map, GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	mutex_init(&map->lock);
	map->len = PAGE_ALIGN(len);
	err = rdma_user_mmap_entry_insert(&uctx->ibuc, &map->entry, map->len);
	if (err) {
		kfree(map);
		return ERR_PTR(err);
	}
	return map;
}

static void sroce_mmap_info(struct sroce_mmap *map, u32 entries, u32 stride,
			    u32 start, struct sroce_ring_info *info)
{
	*info = (struct sroce_ring_info){
		.mmap_offset = rdma_user_mmap_get_offset(&map->entry),
		.mmap_len = map->len,
		.entries = entries,
		.stride = stride,
		.start = start,
	};
}

struct sroce_mmap *sroce_mmap_reserve(struct sroce_ucontext *uctx, u32 entries,
				      u32 stride, struct sroce_ring_info *info)
{
	size_t len = SROCE_RING_ENTRIES_OFFSET + (size_t)entries * stride;
	struct sroce_mmap *map = sroce_mmap_new(uctx, len);

	if (!IS_ERR(map))
		sroce_mmap_info(map, entries, stride, 0, info);
	return map;
}

static void sroce_mmap_set(struct sroce_mmap *map, void *mem)
{
	mutex_lock(&map->lock);
	map->mem = mem;
	mutex_unlock(&map->lock);
}

void sroce_mmap_open(struct sroce_mmap *map, const struct sroce_ring *ring)
{
	if (!WARN_ON_ONCE(PAGE_ALIGN(ring->len) != map->len))
		sroce_mmap_set(map, ring->hdr);
}

struct sroce_mmap *sroce_mmap_add_pair(struct sroce_ucontext *uctx,
				       const struct sroce_ring *a,
				       const struct sroce_ring *b,
				       struct sroce_ring_info *a_info,
				       struct sroce_ring_info *b_info)
{
	u32 start = sroce_ring_start(a);
	struct sroce_mmap *map;

	map = sroce_mmap_new(uctx, start + a->len + b->len);
	if (IS_ERR(map))
		return map;
	sroce_mmap_info(map, sroce_ring_entries(a), a->stride, start, a_info);
	if (b_info)
		sroce_mmap_info(map, sroce_ring_entries(b), b->stride,
				start + a->len, b_info);
	sroce_mmap_set(map, (void *)a->hdr - start);
	return map;
}

struct sroce_mmap *sroce_mmap_add(struct sroce_ucontext *uctx,
				  const struct sroce_ring *ring,
				  struct sroce_ring_info *info)
{
	const struct sroce_ring none = {};

	return sroce_mmap_add_pair(uctx, ring, &none, info, NULL);
}

void sroce_mmap_remove(struct sroce_mmap *map)
{
	if (!map)
		return;
	sroce_mmap_set(map, NULL);
	rdma_user_mmap_entry_remove(&map->entry);
}

void sroce_mmap_free(struct rdma_user_mmap_entry *entry)
{
	kfree(container_of(entry, struct sroce_mmap, entry));
}

/* Page by page: works for every kind of memory, and holds the pages */
static int sroce_mmap_pages(struct sroce_mmap *map, struct vm_area_struct *vma)
{
	size_t off;
	int err;

	if (!map->mem)
		return -EINVAL;
	for (off = 0; off < map->len; off += PAGE_SIZE) {
		err = vm_insert_page(vma, vma->vm_start + off,
				     sroce_ring_page(map->mem, off));
		if (err)
			return err;
	}
	return 0;
}

int sroce_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct sroce_mmap *map;
	int err;

	entry = rdma_user_mmap_entry_get(ibuc, vma);
	if (!entry) {
		ibdev_dbg(ibuc->device, "mmap: no ring at page %#lx\n",
			  vma->vm_pgoff);
		return -EINVAL;
	}
	map = container_of(entry, struct sroce_mmap, entry);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	mutex_lock(&map->lock);
	err = sroce_mmap_pages(map, vma);
	mutex_unlock(&map->lock);
	rdma_user_mmap_entry_put(entry);
	return err;
}
