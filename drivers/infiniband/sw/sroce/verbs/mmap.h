/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rings in the address space of a process. A mapping holds the pages, so it
 * stays harmless when the queue or the whole device is gone.
 */
#ifndef SROCE_VERBS_MMAP_H
#define SROCE_VERBS_MMAP_H

#include <linux/types.h>
#include <rdma/sroce-abi.h>

struct ib_ucontext;
struct rdma_user_mmap_entry;
struct sroce_mmap;
struct sroce_ring;
struct sroce_ring_mem;
struct sroce_ucontext;
struct vm_area_struct;

/**
 * sroce_mmap_add() - let the process that has made a ring map it
 * @uctx: context that it is mapped through
 * @ring: ring
 * @info: filled in, for the answer to user space
 *
 * Context: process.
 * Return: the mapping, or ERR_PTR(-ENOMEM).
 */
struct sroce_mmap *sroce_mmap_add(struct sroce_ucontext *uctx,
				  const struct sroce_ring *ring,
				  struct sroce_ring_info *info);

/**
 * sroce_mmap_add_pair() - one mapping for two rings
 * @uctx: context that they are mapped through
 * @a: first of a pair, see sroce_ring_alloc_pair()
 * @b: second of the pair, or zeroed
 * @a_info: filled in, for the answer to user space
 * @b_info: likewise; NULL when the process may not know of @b
 *
 * Return: the mapping, or ERR_PTR(-ENOMEM).
 */
struct sroce_mmap *sroce_mmap_add_pair(struct sroce_ucontext *uctx,
				       const struct sroce_ring *a,
				       const struct sroce_ring *b,
				       struct sroce_ring_info *a_info,
				       struct sroce_ring_info *b_info);

/**
 * sroce_mmap_add_mem() - let processes map memory that is no ring
 * @uctx: context that it is mapped through, by everybody who has its file
 * @mem: memory, held by the caller until sroce_mmap_remove()
 * @offset: set to where, for mmap()
 *
 * Context: process.
 * Return: the mapping, or ERR_PTR(-ENOMEM).
 */
struct sroce_mmap *sroce_mmap_add_mem(struct sroce_ucontext *uctx,
				      struct sroce_ring_mem *mem, u64 *offset);

/**
 * sroce_mmap_remove() - nothing more is mapped
 * @map: mapping; NULL is fine
 *
 * On return the ring may be freed. Mappings that exist keep their pages.
 */
void sroce_mmap_remove(struct sroce_mmap *map);

/* Operations of ib_core: map a ring; free an entry of the table of offsets */
int sroce_ib_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void sroce_ib_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
