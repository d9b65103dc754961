/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Copies between page vectors. All memory is directly mapped (64BIT), so a
 * bio_vec may span several physically contiguous pages.
 */
#ifndef SROCE_MEMORY_COPY_H
#define SROCE_MEMORY_COPY_H

#include <linux/bvec.h>
#include <linux/types.h>

/**
 * sroce_bvec_copy() - copy from one page vector to another
 * @dst: destination vector
 * @di: its position, advanced by @len
 * @src: source vector
 * @si: its position, advanced by @len
 * @len: bytes; both sides must have as many left
 *
 * Context: any. The two must not overlap, except that equal ranges of user
 * memory (a message to oneself) may be copied onto themselves.
 */
void sroce_bvec_copy(const struct bio_vec *dst, struct bvec_iter *di,
		     const struct bio_vec *src, struct bvec_iter *si, u32 len);

/**
 * sroce_bvec_read() - copy from a page vector to linear memory
 * @dst: destination
 * @src: source vector
 * @si: its position, advanced by @len
 * @len: bytes; the source must have as many left
 */
void sroce_bvec_read(void *dst, const struct bio_vec *src,
		     struct bvec_iter *si, u32 len);

/**
 * sroce_bvec_write() - copy from linear memory to a page vector
 * @dst: destination vector
 * @di: its position, advanced by @len
 * @src: source
 * @len: bytes; the destination must have as many left
 */
void sroce_bvec_write(const struct bio_vec *dst, struct bvec_iter *di,
		      const void *src, u32 len);

/**
 * sroce_bvec_cut() - leave out what is in front of and behind some bytes
 * @bv: page vector, changed in place
 * @skip: bytes in front
 * @len: bytes to keep; it has as many behind those
 *
 * Return: its entries.
 */
unsigned int sroce_bvec_cut(struct bio_vec *bv, u32 skip, u32 len);

/**
 * sroce_bvec_pin() - keep pages, whatever becomes of what they belong to
 * @bv: page vector
 * @n: its entries
 *
 * They may be read until sroce_bvec_unpin(), and must not be written to.
 */
void sroce_bvec_pin(const struct bio_vec *bv, unsigned int n);
void sroce_bvec_unpin(const struct bio_vec *bv, unsigned int n);

/**
 * sroce_bvec_from_virt() - describe kernel memory as a page vector
 * @bv: filled in
 * @max: entries at @bv
 * @ptr: directly mapped or vmalloc memory
 * @len: bytes
 *
 * Return: entries used; what did not fit into @max entries is left out, the
 * caller compares lengths where that can happen.
 */
unsigned int sroce_bvec_from_virt(struct bio_vec *bv, unsigned int max,
				  const void *ptr, size_t len);

#endif
