// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "memory/ring.h"

#define STRIDE_ALIGN 16U
#define RING_ALIGN 64U

static void free_pages_array(struct page **pages, size_t n)
{
	while (n)
		__free_page(pages[--n]);
	kvfree(pages);
}

static struct page **alloc_pages_array(size_t n)
{
	struct page **pages;
	size_t i;

	pages = kvmalloc_array(n, sizeof(*pages), SROCE_GFP_CHOSEN);
	if (!pages)
		return NULL;

	for (i = 0; i < n; i++) {
		pages[i] = alloc_page(SROCE_GFP_CHOSEN | __GFP_ZERO);
		if (!pages[i]) {
			free_pages_array(pages, i);
			return NULL;
		}
	}
	return pages;
}

/* vmalloc_user() with accounting, which it has no variant for */
static void *alloc_accounted(size_t len)
{
	size_t n = len >> PAGE_SHIFT;
	struct page **pages = alloc_pages_array(n);
	void *addr;

	if (!pages)
		return NULL;

	/* From here on vfree() frees the pages and their array */
	addr = vmap(pages, n, VM_USERMAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (!addr)
		free_pages_array(pages, n);
	return addr;
}

/* A single page needs no mapping of the kernel's */
static void *alloc_memory(size_t len)
{
	if (len > PAGE_SIZE)
		return alloc_accounted(len);
	return (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
}

static void free_memory(void *addr)
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

static struct sroce_ring_mem *mem_alloc(size_t len, bool user)
{
	struct sroce_ring_mem *mem = kzalloc_obj(*mem, GFP_KERNEL_ACCOUNT);

	if (!mem)
		return NULL;
	kref_init(&mem->refs);
	mem->len = len;
	if (user && sroce_pin(&mem->pinned, len))
		goto free;
	mem->addr = alloc_memory(len);
	if (mem->addr)
		return mem;
	sroce_unpin(&mem->pinned);
free:
	kfree(mem);
	return NULL;
}

static void mem_free(struct kref *refs)
{
	struct sroce_ring_mem *mem = container_of(refs, struct sroce_ring_mem,
						  refs);

	free_memory(mem->addr);
	sroce_unpin(&mem->pinned);
	kfree(mem);
}

void sroce_ring_mem_put(struct sroce_ring_mem *mem)
{
	kref_put(&mem->refs, mem_free);
}

static int pool_refill(struct sroce_ring_pool *pool)
{
	struct sroce_ring_mem *mem = mem_alloc(PAGE_SIZE, true);

	if (!mem)
		return -ENOMEM;
	sroce_ring_pool_drop(pool);
	pool->mem = mem;
	pool->used = 0;
	return 0;
}

static int pool_alloc(struct sroce_ring_pool *pool, struct sroce_ring *r,
		      size_t len)
{
	int err = 0;

	mutex_lock(&pool->lock);
	if (!pool->mem || len > PAGE_SIZE - pool->used)
		err = pool_refill(pool);
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

static int own_alloc(struct sroce_ring *r, size_t len, bool user)
{
	r->mem = mem_alloc(PAGE_ALIGN(len), user);
	if (!r->mem)
		return -ENOMEM;
	r->hdr = r->mem->addr;
	return 0;
}

/* --- rings -------------------------------------------------------------------- */

/* Bytes, 0 when that does not fit into an int */
static size_t ring_len(u32 entries, u32 stride)
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
	r->len = ring_len(entries, r->stride);
	return r->len ? 0 : -EINVAL;
}

static int alloc_pair(struct sroce_ring *a, struct sroce_ring *b,
		      struct sroce_ring_pool *pool, bool user)
{
	size_t len = a->len + b->len;
	int err;

	if (len > INT_MAX - PAGE_SIZE)
		return -EINVAL;
	/* A larger one would leave the rest of a page to nobody */
	if (pool && len <= PAGE_SIZE / 2)
		err = pool_alloc(pool, a, len);
	else
		err = own_alloc(a, len, user);
	if (!err && b->len)
		b->hdr = (void *)a->hdr + a->len;
	return err;
}

int sroce_ring_alloc_pair(struct sroce_ring *a, struct sroce_ring *b,
			  struct sroce_ring_pool *pool, bool user)
{
	return alloc_pair(a, b, pool, user);
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
	return err ?: alloc_pair(r, &none, NULL, user);
}

void sroce_ring_free(struct sroce_ring *r)
{
	struct sroce_ring none = {};

	sroce_ring_free_pair(r, &none);
}
