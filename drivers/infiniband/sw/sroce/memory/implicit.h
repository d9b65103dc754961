/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Implicit regions: all of a process's memory on demand, whatever it maps, now or later.
 *
 * One table of all addresses would be larger than any memory, and one notifier would have
 * every fault tried again whenever the process maps or unmaps anything. So there is a table
 * for each piece of SROCE_IMPLICIT_BYTES that messages have met, with a notifier of its own.
 *
 * A peer may name any address, so there is an end to the tables: a region has
 * SROCE_IMPLICIT_OWN, which count as pinned memory from its beginning. What goes beyond
 * counts as well, a table at a time, and is SROCE_IMPLICIT_MOST of a process. When there is
 * no more to be had, the table that was used the longest time ago gives way.
 */
#ifndef SROCE_MEMORY_IMPLICIT_H
#define SROCE_MEMORY_IMPLICIT_H

#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "memory/odp.h"

/* 2048 pages of 8 bytes each: four pages, or one where pages are large */
#define SROCE_IMPLICIT_PAGES 2048UL
#define SROCE_IMPLICIT_BYTES (SROCE_IMPLICIT_PAGES * PAGE_SIZE)

/*
 * So many a region has in any case. One packet may be from 32 places, each of them at the
 * border of two tables.
 */
#define SROCE_IMPLICIT_OWN 64

/* More than those, of all regions of a process: 64 GiB where pages have 4 KiB */
#define SROCE_IMPLICIT_MOST 8192

struct sroce_implicit;

/**
 * sroce_implicit_create() - make a region an implicit one
 * @odp: region of the calling process; has neither tables nor what counts them
 *
 * Context: process.
 * Return: 0 with @odp->implicit set; -ENOMEM or -EAGAIN with that set or not.
 */
int sroce_implicit_create(struct sroce_odp *odp);

/* Let go of all tables, and have no more. Context: process, may sleep */
void sroce_implicit_close(struct sroce_implicit *im);

/* A table that it has had has ended: there is room for another one. Context: process */
void sroce_implicit_table_ended(struct sroce_implicit *im);

/* Nobody uses it any more, it was closed, and its tables have ended. Context: process */
void sroce_implicit_free(struct sroce_odp *odp);

/* How many tables there are, at a glance */
unsigned int sroce_implicit_tables(const struct sroce_implicit *im);

/* sroce_odp_present() and sroce_odp_bvecs(); @at is an address of the process */
u64 sroce_implicit_present(struct sroce_implicit *im, u64 at, u64 len,
			   bool write);
unsigned int sroce_implicit_bvecs(struct sroce_implicit *im, u64 at, u32 len,
				  struct bio_vec *bv, unsigned int max,
				  u32 *done);

/* sroce_odp_table_bring() and sroce_odp_table_look(), which make the tables that it takes */
int sroce_implicit_bring(struct sroce_odp *odp, u64 at, u64 len,
			 enum sroce_odp_fault how, atomic64_t *count);
int sroce_implicit_look(struct sroce_odp *odp, u64 at, u64 len,
			unsigned long until);

#endif
