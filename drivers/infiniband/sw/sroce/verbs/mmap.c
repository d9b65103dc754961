// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rings, and device memory, in the address space of a process.
 *
 * Destroying a queue may race with mmap() of its ring: whoever knows an offset
 * can call it at any time. The core keeps the entry while it is in use, but not
 * what is behind it, so each entry has a lock under which pages are inserted
 * and under which the ring is taken away.
 *
 * A ring is for the process that has made it, and for no other that has the file of the
 * device, too: what its owner reads there he believes, identifiers of completions, which
 * often are addresses, among it. Device memory is for all of them.
 *
 * A mapping holds the memory, which counts as the process's until it is gone. What
 * is called when a mapping ends is in this module, so the module must not end
 * before: mappings are therefore of the doorbell's file, which holds it. (The file
 * of the device does not, and would be kept open by a mapping after close().)
 */
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "memory/ring.h"
#include "verbs/compat.h"
#include "verbs/mmap.h"
#include "verbs/verbs.h"

/**
 * struct sroce_mmap - one ring, or one piece of device memory, that may be mapped
 * @entry: in the core's table of offsets
 * @lock: protects @mem; taken with the mmap lock held
 * @mem: what the ring is in, NULL when there is nothing to map
 * @len: its bytes
 * @shared: it is for everybody who has the file of the device
 */
struct sroce_mmap {
	struct rdma_user_mmap_entry entry;
	struct mutex lock; /* see above */
	struct sroce_ring_mem *mem;
	size_t len;
	bool shared;
};

static struct sroce_mmap *sroce_mmap_new(struct sroce_ucontext *uctx,
					 size_t len, bool shared)
{
	struct sroce_mmap *map;
	int err;

	map = kzalloc_obj(*map, GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	mutex_init(&map->lock);
	map->len = len;
	map->shared = shared;
	err = rdma_user_mmap_entry_insert(&uctx->ibuc, &map->entry, map->len);
	if (err) {
		kfree(map);
		return ERR_PTR(err);
	}
	return map;
}

static void sroce_mmap_info(struct sroce_mmap *map,
			    const struct sroce_ring *ring, u32 start,
			    struct sroce_ring_info *info)
{
	*info = (struct sroce_ring_info){
		.mmap_offset = rdma_user_mmap_get_offset(&map->entry),
		.mmap_len = map->len,
		.entries = sroce_ring_entries(ring),
		.stride = ring->stride,
		.start = start,
	};
}

static void sroce_mmap_set(struct sroce_mmap *map, struct sroce_ring_mem *mem)
{
	mutex_lock(&map->lock);
	map->mem = mem;
	mutex_unlock(&map->lock);
}

struct sroce_mmap *sroce_mmap_add_pair(struct sroce_ucontext *uctx,
				       const struct sroce_ring *a,
				       const struct sroce_ring *b,
				       struct sroce_ring_info *a_info,
				       struct sroce_ring_info *b_info)
{
	u32 start = sroce_ring_start(a);
	struct sroce_mmap *map;

	map = sroce_mmap_new(uctx, a->mem->len, false);
	if (IS_ERR(map))
		return map;
	sroce_mmap_info(map, a, start, a_info);
	if (b_info)
		sroce_mmap_info(map, b, start + a->len, b_info);
	sroce_mmap_set(map, a->mem);
	return map;
}

struct sroce_mmap *sroce_mmap_add(struct sroce_ucontext *uctx,
				  const struct sroce_ring *ring,
				  struct sroce_ring_info *info)
{
	const struct sroce_ring none = {};

	return sroce_mmap_add_pair(uctx, ring, &none, info, NULL);
}

struct sroce_mmap *sroce_mmap_add_mem(struct sroce_ucontext *uctx,
				      struct sroce_ring_mem *mem, u64 *offset)
{
	struct sroce_mmap *map = sroce_mmap_new(uctx, mem->len, true);

	if (IS_ERR(map))
		return map;
	*offset = rdma_user_mmap_get_offset(&map->entry);
	sroce_mmap_set(map, mem);
	return map;
}

void sroce_mmap_remove(struct sroce_mmap *map)
{
	if (!map)
		return;
	sroce_mmap_set(map, NULL);
	rdma_user_mmap_entry_remove(&map->entry);
}

void sroce_ib_mmap_free(struct rdma_user_mmap_entry *entry)
{
	kfree(container_of(entry, struct sroce_mmap, entry));
}

/* --- mappings ----------------------------------------------------------------- */

/* One more mapping of the same memory: one was split, or moves to another address */
static void sroce_vma_open(struct vm_area_struct *vma)
{
	sroce_ring_mem_get(vma->vm_private_data);
}

static void sroce_vma_close(struct vm_area_struct *vma)
{
	sroce_ring_mem_put(vma->vm_private_data);
}

static const struct vm_operations_struct sroce_vm_ops = {
	.open = sroce_vma_open,
	.close = sroce_vma_close,
};

/* Page by page: works for every kind of memory */
static int sroce_mmap_pages(const struct sroce_ring_mem *mem,
			    struct vm_area_struct *vma)
{
	size_t off;
	int err;

	for (off = 0; off < mem->len; off += PAGE_SIZE) {
		err = vm_insert_page(vma, vma->vm_start + off,
				     sroce_ring_page(mem, off));
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

static int sroce_mmap_ring(struct sroce_mmap *map, struct vm_area_struct *vma,
			   struct file *file)
{
	int err;

	if (!map->mem)
		return -EINVAL;
	if (!map->shared && !sroce_ring_mem_is_of(map->mem, vma->vm_mm))
		return -EACCES;
	err = sroce_mmap_pages(map->mem, vma);
	if (err)
		return err;
	sroce_ring_mem_get(map->mem);
	vma->vm_private_data = map->mem;
	vma->vm_ops = &sroce_vm_ops;
	vma_set_file(vma, file);
	return 0;
}

/* A child of fork() inherits none, and cannot map one again */
int sroce_ib_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
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
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	mutex_lock(&map->lock);
	err = sroce_mmap_ring(map, vma, to_sroce_ucontext(ibuc)->file);
	mutex_unlock(&map->lock);
	rdma_user_mmap_entry_put(entry);
	return err;
}
