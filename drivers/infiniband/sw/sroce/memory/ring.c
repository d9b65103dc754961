// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "memory/ring.h"

#define STRIDE_ALIGN 16U

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

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return NULL;

	for (i = 0; i < n; i++) {
		pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
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

/* Bytes of the mapping, 0 when that does not fit into an int */
static size_t ring_len(u32 entries, u32 stride)
{
	size_t len;

	if (check_mul_overflow((size_t)entries, (size_t)stride, &len) ||
	    len > INT_MAX - SROCE_RING_ENTRIES_OFFSET - PAGE_SIZE)
		return 0;
	return PAGE_ALIGN(len + SROCE_RING_ENTRIES_OFFSET);
}

int sroce_ring_alloc(struct sroce_ring *r, u32 entries, u32 entry_size)
{
	if (!entries || entries > INT_MAX || entry_size > INT_MAX)
		return -EINVAL;

	entries = roundup_pow_of_two(entries);
	r->stride = ALIGN(max(entry_size, STRIDE_ALIGN), STRIDE_ALIGN);
	r->mask = entries - 1;
	r->index = 0;
	r->len = ring_len(entries, r->stride);
	if (!r->len)
		return -EINVAL;

	r->hdr = alloc_accounted(r->len);
	return r->hdr ? 0 : -ENOMEM;
}

void sroce_ring_free(struct sroce_ring *r)
{
	vfree(r->hdr);
	r->hdr = NULL;
}
