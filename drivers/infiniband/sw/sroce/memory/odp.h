/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Regions on demand: memory of a process that is not pinned.
 *
 * The data path runs in softirq and may neither wait for a page nor walk page
 * tables. So such a region has a table of the pages that are known to be
 * mapped. Who copies holds the table's lock for reading and finds all pages
 * there, or asks process context to bring them in (sroce_odp_fault()) and comes
 * again. When the process loses a page, its kernel says so before the page is
 * given to anybody else: the entry goes, under the lock for writing, so
 * whatever was copied before is in the page, and nothing is copied after.
 */
#ifndef SROCE_MEMORY_ODP_H
#define SROCE_MEMORY_ODP_H

#include "memory/mr.h"

struct ib_umem_odp;

/* What sroce_odp_fault() is to do */
enum sroce_odp_fault {
	SROCE_ODP_READ,		/* bring pages in */
	SROCE_ODP_WRITE,	/* likewise, for writing */
	SROCE_ODP_SNAPSHOT,	/* find those that are there */
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
/**
 * sroce_odp_create() - follow a range of the calling process's memory
 * @ibdev: device
 * @start: address
 * @length: bytes, not 0
 * @access: IB_ACCESS_* rights
 *
 * Context: process.
 * Return: what goes into sroce_mr.odp, or an ERR_PTR.
 */
struct sroce_odp *sroce_odp_create(struct ib_device *ibdev, u64 start,
				   u64 length, int access);

/* Nobody uses the region any more. Context: process, may sleep. */
void sroce_odp_destroy(struct sroce_odp *odp);

/* Address in the process that it was made for, and whether by the caller */
u64 sroce_odp_start(const struct sroce_odp *odp);
bool sroce_odp_is_ours(const struct sroce_odp *odp);

/* Bytes from the beginning of the first page to that of the region */
u64 sroce_odp_offset(const struct sroce_odp *odp);

/**
 * sroce_odp_begin() - keep the pages of a range where they are
 * @mr: held region on demand; the range was checked by sroce_mr_get()
 * @va: first byte
 * @len: bytes
 * @write: to be written to
 *
 * May be called again before sroce_odp_end(), for this region or another.
 *
 * Context: bottom halves off until sroce_odp_end().
 * Return: 0, or -EAGAIN (and nothing to end) when a page is missing.
 */
int sroce_odp_begin(const struct sroce_mr *mr, u64 va, u64 len, bool write);
void sroce_odp_end(const struct sroce_mr *mr);

/* sroce_mr_bvecs() of a region on demand, between begin and end */
unsigned int sroce_odp_bvecs(const struct sroce_mr *mr, u64 va, u32 len,
			     struct bio_vec *bv, unsigned int max, u32 *done);

/**
 * sroce_odp_fault() - bring pages in
 * @mr: held region on demand
 * @va: first byte, in bounds
 * @len: bytes; what is behind the region's end is ignored
 * @how: what to do
 *
 * A page may be gone again when this returns.
 *
 * Context: process, may sleep; any process.
 * Return: 0, -EFAULT and the like when the memory is not there or the process
 * has ended, -ESHUTDOWN when the region is being freed.
 */
int sroce_odp_fault(const struct sroce_mr *mr, u64 va, u64 len,
		    enum sroce_odp_fault how);
#else
static inline struct sroce_odp *
sroce_odp_create(struct ib_device *ibdev, u64 start, u64 length, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void sroce_odp_destroy(struct sroce_odp *odp)
{
}

static inline u64 sroce_odp_start(const struct sroce_odp *odp)
{
	return 0;
}

static inline bool sroce_odp_is_ours(const struct sroce_odp *odp)
{
	return false;
}

static inline u64 sroce_odp_offset(const struct sroce_odp *odp)
{
	return 0;
}

static inline int sroce_odp_begin(const struct sroce_mr *mr, u64 va, u64 len,
				  bool write)
{
	return -EFAULT;
}

static inline void sroce_odp_end(const struct sroce_mr *mr)
{
}

static inline unsigned int
sroce_odp_bvecs(const struct sroce_mr *mr, u64 va, u32 len, struct bio_vec *bv,
		unsigned int max, u32 *done)
{
	*done = 0;
	return 0;
}

static inline int sroce_odp_fault(const struct sroce_mr *mr, u64 va, u64 len,
				  enum sroce_odp_fault how)
{
	return -EFAULT;
}
#endif

#endif
