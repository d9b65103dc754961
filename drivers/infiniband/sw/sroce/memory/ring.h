/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rings: the queues of the user ABI. One side of each ring may be a hostile
 * process, so the index that this side owns is kept privately, the other
 * one's is only ever used modulo the size, and entries are copied out before
 * they are looked at.
 */
#ifndef SROCE_MEMORY_RING_H
#define SROCE_MEMORY_RING_H

#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <asm/barrier.h>
#include <rdma/sroce-abi.h>

#include "memory/pinned.h"

/**
 * struct sroce_ring_mem - memory that rings are in, or a process's device memory, whole
 *	pages
 * @refs: one for each queue that is in it, for each mapping of a process, and for
 *	the pool
 * @addr: the first page
 * @len: bytes
 * @pinned: whose it is; counts until the memory is freed, so also while nothing
 *	but a mapping holds it
 */
struct sroce_ring_mem {
	struct kref refs;
	void *addr;
	size_t len;
	struct sroce_pinned pinned;
};

/**
 * struct sroce_ring - one shared queue
 * @hdr: shared header; page aligned, but for one from a pool
 * @mask: number of entries - 1
 * @stride: bytes from one entry to the next
 * @index: private copy of the index that the kernel owns: what it has
 *	produced (completion queue) or consumed (send and receive queues)
 * @len: bytes, a multiple of 64
 * @mem: what it is in, held; NULL in the second ring of a pair
 */
struct sroce_ring {
	struct sroce_ring_hdr *hdr;
	u32 mask;
	u32 stride;
	u32 index;
	size_t len;
	struct sroce_ring_mem *mem;
};

/**
 * struct sroce_ring_pool - a page of which small rings get a piece each
 * @lock: protects the rest
 * @mem: the page, held here and by each ring that is in it
 * @used: bytes given away; what a ring leaves is not given to another one
 *
 * A pool belongs to one open of the device, and a page to one process: who may map one
 * of its rings may map all that are in the page. Where several processes make queues
 * through the same open, each that comes begins a page of its own.
 */
struct sroce_ring_pool {
	struct mutex lock; /* see above */
	struct sroce_ring_mem *mem;
	u32 used;
};

/* A new pool is empty */
static inline void sroce_ring_pool_init(struct sroce_ring_pool *pool)
{
	mutex_init(&pool->lock);
	pool->mem = NULL;
	pool->used = 0;
}

/* No ring will be put into the pool any more; those that are in it stay */
void sroce_ring_pool_drop(struct sroce_ring_pool *pool);

/**
 * sroce_ring_alloc() - make a ring
 * @r: ring, zeroed by the caller
 * @entries: wanted number, rounded up to a power of two; at least 1
 * @entry_size: bytes an entry needs, rounded up to 16
 * @user: for the calling process, whose limit of pinned memory it counts in
 *
 * The memory is zeroed, accounted to the caller's memory cgroup, and consists of
 * whole pages, which may be mapped to user space (sroce_ring_page()).
 *
 * Context: process.
 * Return: 0, -EINVAL when the size overflows, or -ENOMEM.
 */
int sroce_ring_alloc(struct sroce_ring *r, u32 entries, u32 entry_size,
		     bool user);

/**
 * sroce_ring_shape() - say how large a ring of sroce_ring_alloc_pair() will be
 * @r: ring, zeroed by the caller
 * @entries: as for sroce_ring_alloc()
 * @entry_size: likewise
 *
 * Return: 0, or -EINVAL when the size overflows.
 */
int sroce_ring_shape(struct sroce_ring *r, u32 entries, u32 entry_size);

/**
 * sroce_ring_alloc_pair() - make two rings in one piece of memory
 * @a: ring with a shape
 * @b: the same, directly behind @a; or a zeroed one, which is not made
 * @pool: of the calling process, or NULL when no process will map them
 * @user: they are made for a process, and count as memory that it has pinned
 *
 * Most queue pairs are small: several of them fit into one page.
 *
 * Context: process.
 * Return: 0, -EINVAL when the size overflows, or -ENOMEM.
 */
int sroce_ring_alloc_pair(struct sroce_ring *a, struct sroce_ring *b,
			  struct sroce_ring_pool *pool, bool user);

/* Free what sroce_ring_alloc_pair() has made, or has not */
void sroce_ring_free_pair(struct sroce_ring *a, struct sroce_ring *b);

/**
 * sroce_ring_mem_alloc() - memory that a process may map
 * @len: bytes, whole pages
 * @user: for the calling process, whose limit of pinned memory it counts in
 *
 * Zeroed, and accounted to the caller's memory cgroup.
 *
 * Context: process.
 * Return: the memory, held once, or NULL.
 */
struct sroce_ring_mem *sroce_ring_mem_alloc(size_t len, bool user);

/**
 * sroce_ring_mem_is_of() - is it memory that this process has made?
 * @mem: memory
 * @mm: of the process; of a thread of the kernel NULL
 *
 * The memory holds what it is compared with, so no other process gets that address.
 * After fork() or exec() a process is another one.
 */
static inline bool sroce_ring_mem_is_of(const struct sroce_ring_mem *mem,
					const struct mm_struct *mm)
{
	return mem->pinned.mm == mm;
}

/* The page that is @off bytes from the beginning */
struct page *sroce_ring_page(const struct sroce_ring_mem *mem, size_t off);

static inline void sroce_ring_mem_get(struct sroce_ring_mem *mem)
{
	kref_get(&mem->refs);
}

/* Context: process, may sleep */
void sroce_ring_mem_put(struct sroce_ring_mem *mem);

/* Bytes from the beginning of the page that a ring begins in */
static inline u32 sroce_ring_start(const struct sroce_ring *r)
{
	return offset_in_page(r->hdr);
}

/**
 * sroce_ring_free() - drop the kernel's hold on a ring
 * @r: ring; one that was never allocated is fine
 *
 * What a process still has mapped lives until it unmaps it, and counts as its
 * pinned memory until then.
 */
void sroce_ring_free(struct sroce_ring *r);

/**
 * sroce_ring_reset() - as new: nothing produced, nothing consumed
 * @r: ring
 */
static inline void sroce_ring_reset(struct sroce_ring *r)
{
	WRITE_ONCE(r->index, 0);
	WRITE_ONCE(r->hdr->cons, 0);
	WRITE_ONCE(r->hdr->prod, 0);
	WRITE_ONCE(r->hdr->flags, 0);
}

static inline u32 sroce_ring_entries(const struct sroce_ring *r)
{
	return r->mask + 1;
}

static inline void *sroce_ring_entry(const struct sroce_ring *r, u32 index)
{
	return (void *)r->hdr + SROCE_RING_ENTRIES_OFFSET +
	       (size_t)(index & r->mask) * r->stride;
}

/**
 * sroce_ring_pending() - entries that the other side has produced
 * @r: a ring that the kernel consumes
 *
 * Pairs with the producer's release store of prod.
 *
 * Return: number of entries from @r->index on, 0 also when the producer's index
 * makes no sense: one store of a liar must not keep the kernel busy with four
 * billion stale entries.
 */
static inline u32 sroce_ring_pending(const struct sroce_ring *r)
{
	u32 pending = READ_ONCE(r->hdr->prod) - r->index;

	/* Pairs with the producer: the entries are read after the index */
	smp_rmb();
	return pending > r->mask + 1 ? 0 : pending;
}

/* Tell the other side how far this one has come */
static inline void sroce_ring_produced(struct sroce_ring *r, u32 n)
{
	u32 index = r->index + n;

	WRITE_ONCE(r->index, index);
	/* Pairs with the consumer: the entries are there before the index */
	smp_wmb();
	WRITE_ONCE(r->hdr->prod, index);
}

static inline void sroce_ring_consumed(struct sroce_ring *r, u32 n)
{
	u32 index = r->index + n;

	WRITE_ONCE(r->index, index);
	/* Pairs with the producer: the entries were read before the index */
	smp_store_release(&r->hdr->cons, index);
}

#endif
