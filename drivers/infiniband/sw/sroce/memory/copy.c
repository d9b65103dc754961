// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies between page vectors: the payload of every message that is placed in
 * memory, or copied from it, goes through here.
 */
#include <linux/bug.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "memory/copy.h"

/* Bytes from the position to the end of its entry, or to that of the iterator */
static u32 sroce_bvec_left(const struct bio_vec *bv, const struct bvec_iter *it)
{
	return mp_bvec_iter_len(bv, *it);
}

static void *sroce_bvec_ptr(const struct bio_vec *bv,
			    const struct bvec_iter *it)
{
	return page_address(mp_bvec_iter_page(bv, *it)) +
	       mp_bvec_iter_offset(bv, *it);
}

void sroce_bvec_copy(const struct bio_vec *dst, struct bvec_iter *di,
		     const struct bio_vec *src, struct bvec_iter *si, u32 len)
{
	if (WARN_ON_ONCE(len > min(di->bi_size, si->bi_size)))
		return;

	while (len) {
		u32 n = min3(len, sroce_bvec_left(dst, di),
			     sroce_bvec_left(src, si));

		memcpy(sroce_bvec_ptr(dst, di), sroce_bvec_ptr(src, si), n);
		bvec_iter_advance_single(dst, di, n);
		bvec_iter_advance_single(src, si, n);
		len -= n;
	}
}

void sroce_bvec_read(void *dst, const struct bio_vec *src,
		     struct bvec_iter *si, u32 len)
{
	if (WARN_ON_ONCE(len > si->bi_size))
		return;

	while (len) {
		u32 n = min(len, sroce_bvec_left(src, si));

		memcpy(dst, sroce_bvec_ptr(src, si), n);
		bvec_iter_advance_single(src, si, n);
		dst += n;
		len -= n;
	}
}

void sroce_bvec_write(const struct bio_vec *dst, struct bvec_iter *di,
		      const void *src, u32 len)
{
	if (WARN_ON_ONCE(len > di->bi_size))
		return;

	while (len) {
		u32 n = min(len, sroce_bvec_left(dst, di));

		memcpy(sroce_bvec_ptr(dst, di), src, n);
		bvec_iter_advance_single(dst, di, n);
		src += n;
		len -= n;
	}
}

unsigned int sroce_bvec_cut(struct bio_vec *bv, u32 skip, u32 len)
{
	const struct bio_vec *from = bv;
	unsigned int n;

	for (; skip >= from->bv_len && len; from++)
		skip -= from->bv_len;
	for (n = 0; len; n++, from++, skip = 0) {
		bv[n].bv_page = from->bv_page;
		bv[n].bv_offset = from->bv_offset + skip;
		bv[n].bv_len = min(from->bv_len - skip, len);
		len -= bv[n].bv_len;
	}
	return n;
}

static unsigned int sroce_bvec_pages(const struct bio_vec *bv)
{
	return DIV_ROUND_UP(bv->bv_offset + bv->bv_len, PAGE_SIZE);
}

void sroce_bvec_pin(const struct bio_vec *bv, unsigned int n)
{
	unsigned int i;

	for (; n; n--, bv++)
		for (i = 0; i < sroce_bvec_pages(bv); i++)
			get_page(bv->bv_page + i);
}

void sroce_bvec_unpin(const struct bio_vec *bv, unsigned int n)
{
	unsigned int i;

	for (; n; n--, bv++)
		for (i = 0; i < sroce_bvec_pages(bv); i++)
			put_page(bv->bv_page + i);
}

/* In pieces, because an entry has 32 bits for its length */
static unsigned int sroce_bvec_from_linear(struct bio_vec *bv, unsigned int max,
					   const void *ptr, size_t len)
{
	unsigned int n;

	for (n = 0; len && n < max; n++) {
		u32 chunk = min_t(size_t, len, SZ_1G);

		bvec_set_page(&bv[n], virt_to_page(ptr), chunk,
			      offset_in_page(ptr));
		ptr += chunk;
		len -= chunk;
	}
	return n;
}

static unsigned int sroce_bvec_from_vmalloc(struct bio_vec *bv,
					    unsigned int max, const void *ptr,
					    size_t len)
{
	unsigned int n;

	for (n = 0; len && n < max; n++) {
		u32 offset = offset_in_page(ptr);
		u32 chunk = min_t(size_t, len, PAGE_SIZE - offset);

		bvec_set_page(&bv[n], vmalloc_to_page(ptr), chunk, offset);
		ptr += chunk;
		len -= chunk;
	}
	return n;
}

unsigned int sroce_bvec_from_virt(struct bio_vec *bv, unsigned int max,
				  const void *ptr, size_t len)
{
	if (unlikely(is_vmalloc_addr(ptr)))
		return sroce_bvec_from_vmalloc(bv, max, ptr, len);
	return sroce_bvec_from_linear(bv, max, ptr, len);
}
