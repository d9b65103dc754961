// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The memory of rings: how it is shaped, made, counted and freed. What moves their
 * indices, on the way of every message, is in the header.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "memory/ring.h"

#define STRIDE_ALIGN 16U
#define RING_ALIGN 64U

static void sroce_ring_free_pages(struct page **pages, size_t n)
{
	while (n)
		__free_page(pages[--n]);
	kvfree(pages);
}

static struct page **sroce_ring_alloc_pages(size_t n)
{
	struct page **pages;
	size_t i;

	pages = kvmalloc_array(n, sizeof(*pages), SROCE_GFP_CHOSEN);
	if (!pages)
		return NULL;

	for (i = 0; i < n; i++) {
		pages[i] = alloc_page(SROCE_GFP_CHOSEN | __GFP_ZERO);
		if (!pages[i]) {
			sroce_ring_free_pages(pages, i);
			return NULL;
		}
	}
	return pages;
}

/* vmalloc_user() with accounting, which it has no variant for */
static void *sroce_ring_alloc_accounted(size_t len)
{
	size_t n = len >> PAGE_SHIFT;
	struct page **pages = sroce_ring_alloc_pages(n);
	void *addr;

	if (!pages)
		return NULL;

	/* From here on vfree() frees the pages and their array */
	addr = vmap(pages, n, VM_USERMAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (!addr)
		sroce_ring_free_pages(pages, n);
	return addr;
}

/* A single page needs no mapping of the kernel's */
static void *sroce_ring_alloc_memory(size_t len)
{
	if (len > PAGE_SIZE)
		return sroce_ring_alloc_accounted(len);
	return (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
}

static void sroce_ring_free_memory(void *addr)
{
	if (is_vmalloc_addr(addr))
		vfree(addr);
	else
		free_page((unsigned long)addr);
}

struct page *sroce_ring_page(const struct sroce_ring_mem *mem, size_t off)
{
	return is_vmalloc_addr(mem->addr) ? vmalloc_to_page(mem->addr + off) :
					    virt_to_page(mem->addr + off);
}

/* --- who holds it ------------------------------------------------------------ */

struct sroce_ring_mem *sroce_ring_mem_alloc(size_t len, bool user)
{
	struct sroce_ring_mem *mem = kzalloc_obj(*mem, GFP_KERNEL_ACCOUNT);

	if (!mem)
		return NULL;
	kref_init(&mem->refs);
	mem->len = len;
	if (user && sroce_pinned_charge(&mem->pinned, len))
		goto free;
	mem->addr = sroce_ring_alloc_memory(len);
	if (mem->addr)
		return mem;
	sroce_pinned_uncharge(&mem->pinned);
free:
	kfree(mem);
	return NULL;
}

static void sroce_ring_mem_free(struct kref *refs)
{
	struct sroce_ring_mem *mem = container_of(refs, struct sroce_ring_mem,
						  refs);

	sroce_ring_free_memory(mem->addr);
	sroce_pinned_uncharge(&mem->pinned);
	kfree(mem);
}

void sroce_ring_mem_put(struct sroce_ring_mem *mem)
{
	kref_put(&mem->refs, sroce_ring_mem_free);
}

static int sroce_ring_pool_refill(struct sroce_ring_pool *pool)
{
	struct sroce_ring_mem *mem = sroce_ring_mem_alloc(PAGE_SIZE, true);

	if (!mem)
		return -ENOMEM;
	sroce_ring_pool_drop(pool);
	pool->mem = mem;
	pool->used = 0;
	return 0;
}

/* Not where the page is another process's, which could map what is added */
static bool sroce_ring_pool_has_room(const struct sroce_ring_pool *pool,
				     size_t len)
{
	return pool->mem && sroce_ring_mem_is_of(pool->mem, current->mm) &&
	       len <= PAGE_SIZE - pool->used;
}

static int sroce_ring_pool_alloc(struct sroce_ring_pool *pool,
				 struct sroce_ring *r, size_t len)
{
	int err = 0;

	mutex_lock(&pool->lock);
	if (!sroce_ring_pool_has_room(pool, len))
		err = sroce_ring_pool_refill(pool);
	if (!err) {
		r->mem = pool->mem;
		sroce_ring_mem_get(r->mem);
		r->hdr = r->mem->addr + pool->used;
		pool->used += len;
	}
	mutex_unlock(&pool->lock);
	return err;
}

void sroce_ring_pool_drop(struct sroce_ring_pool *pool)
{
	if (pool->mem)
		sroce_ring_mem_put(pool->mem);
	pool->mem = NULL;
}

static int sroce_ring_own_alloc(struct sroce_ring *r, size_t len, bool user)
{
	r->mem = sroce_ring_mem_alloc(PAGE_ALIGN(len), user);
	if (!r->mem)
		return -ENOMEM;
	r->hdr = r->mem->addr;
	return 0;
}

/* --- rings -------------------------------------------------------------------- */

/* Bytes, 0 when that does not fit into an int */
static size_t sroce_ring_len(u32 entries, u32 stride)
{
	size_t len;

	if (check_mul_overflow((size_t)entries, (size_t)stride, &len) ||
	    len > INT_MAX - SROCE_RING_ENTRIES_OFFSET - PAGE_SIZE)
		return 0;
	return ALIGN(len + SROCE_RING_ENTRIES_OFFSET, RING_ALIGN);
}

int sroce_ring_shape(struct sroce_ring *r, u32 entries, u32 entry_size)
{
	if (!entries || entries > INT_MAX || entry_size > INT_MAX)
		return -EINVAL;

	entries = roundup_pow_of_two(entries);
	r->stride = ALIGN(max(entry_size, STRIDE_ALIGN), STRIDE_ALIGN);
	r->mask = entries - 1;
	r->index = 0;
	r->len = sroce_ring_len(entries, r->stride);
	return r->len ? 0 : -EINVAL;
}

int sroce_ring_alloc_pair(struct sroce_ring *a, struct sroce_ring *b,
			  struct sroce_ring_pool *pool, bool user)
{
	size_t len = a->len + b->len;
	int err;

	if (len > INT_MAX - PAGE_SIZE)
		return -EINVAL;
	/* Behind a larger pair hardly any other would fit into the page */
	if (pool && len <= PAGE_SIZE / 2)
		err = sroce_ring_pool_alloc(pool, a, len);
	else
		err = sroce_ring_own_alloc(a, len, user);
	if (!err && b->len)
		b->hdr = (void *)a->hdr + a->len;
	return err;
}

void sroce_ring_free_pair(struct sroce_ring *a, struct sroce_ring *b)
{
	if (a->mem)
		sroce_ring_mem_put(a->mem);
	a->mem = NULL;
	a->hdr = NULL;
	b->hdr = NULL;
}

int sroce_ring_alloc(struct sroce_ring *r, u32 entries, u32 entry_size,
		     bool user)
{
	struct sroce_ring none = {};
	int err;

	err = sroce_ring_shape(r, entries, entry_size);
	return err ?: sroce_ring_alloc_pair(r, &none, NULL, user);
}

void sroce_ring_free(struct sroce_ring *r)
{
	struct sroce_ring none = {};

	sroce_ring_free_pair(r, &none);
}
