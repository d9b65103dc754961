/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A region with protection information for the tests: memory in odd pieces, what is to be in
 * it, and what is to be on the wire. Tuples are computed here by other means than the
 * driver's.
 */
#ifndef SROCE_TESTS_SIG_REGION_H
#define SROCE_TESTS_SIG_REGION_H

#include <kunit/test.h>

#include "memory/dif.h"
#include "memory/integrity.h"
#include "memory/mr.h"

#define SIG_REF 0x1234fff8	/* the lowest byte of the reference tag overflows soon */
#define SIG_APP 0x5aa5
#define SIG_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
		    IB_ACCESS_REMOTE_WRITE)

/* What a domain has */
enum sig_side {
	SIG_NONE,
	SIG_CRC,
	SIG_CSUM,
};

/**
 * struct sig_case - what a region is
 * @mem: what memory has
 * @wire: what the wire has
 * @type: of T10-PI: 1 and 2 have reference tags that count, 3 has one that does not
 * @interval: bytes of a block
 * @blocks: their number
 * @retag: the tags on the wire are others
 * @mask: what is checked
 */
struct sig_case {
	enum sig_side mem;
	enum sig_side wire;
	int type;
	u32 interval;
	u32 blocks;
	bool retag;
	u8 mask;
};

/**
 * struct sig_region - the region, and what belongs to it
 * @test: whose
 * @c: what it is
 * @attrs: likewise, for the driver
 * @mr: region; its key is registered
 * @plain: data in one piece, as it is to be
 * @data: where data is, with gaps
 * @meta: likewise tuples in memory
 * @scattered: each tuple is a piece of its own
 * @wire: room for all bytes on the wire
 * @mem_pi: the tuple of each block of @plain in memory, as it is to be
 * @wire_pi: ... and on the wire
 */
struct sig_region {
	struct kunit *test;
	struct sig_case c;
	struct ib_sig_attrs attrs;
	struct sroce_mr *mr;
	u8 *plain;
	u8 *data;
	u8 *meta;
	bool scattered;
	u8 *wire;
	struct sroce_pi *mem_pi;
	struct sroce_pi *wire_pi;
};

#define SIG_CHECK_ALL (IB_SIG_CHECK_GUARD | IB_SIG_CHECK_APPTAG | \
		       IB_SIG_CHECK_REFTAG)

/* A region of a table of keys; sig_free() ends it. Fails the test when it cannot */
struct sig_region *sig_new(struct kunit *test, struct sroce_mr_table *table,
			   struct ib_pd *pd, const struct sig_case *c);
void sig_free(struct sig_region *r);

/* End its registration, and begin another one of the same memory. Return: as the driver */
int sig_register(struct sig_region *r);

/* As sig_register(), by what the verbs map: each tuple is a piece, beside no other one */
int sig_scatter_tuples(struct sig_region *r);

static inline u32 sig_data_bytes(const struct sig_region *r)
{
	return r->c.interval * r->c.blocks;
}

/* Bytes on the wire */
u32 sig_wire_bytes(const struct sig_region *r);

/* Data that differs from one @seed to the next, not yet in memory */
void sig_fill(struct sig_region *r, u32 seed);

/* The same for data of one byte */
void sig_fill_byte(struct sig_region *r, u8 byte);

/* The tuple that a block is to have in a domain */
struct sroce_pi sig_tuple(const struct sig_region *r,
			  const struct ib_sig_domain *domain, u32 block);

/* All bytes on the wire, as they are to be */
void sig_make_wire(const struct sig_region *r, u8 *wire);

/* Where the tuple of a block is in them; NULL: there is none */
struct sroce_pi *sig_wire_tuple(const struct sig_region *r, u8 *wire, u32 block);

/* Fill all memory, with what is between the pieces; is that still what is there? */
void sig_fill_gaps(struct sig_region *r, u8 byte);
bool sig_gaps_are(const struct sig_region *r, u8 byte);

/* Put data and right tuples into memory; with @junk something else */
void sig_to_memory(struct sig_region *r, bool junk);
void sig_write_tuple(struct sig_region *r, u32 block, const struct sroce_pi *pi);
struct sroce_pi sig_read_tuple(const struct sig_region *r, u32 block);

/* Is memory as it is to be: data, and tuples if it has them? */
bool sig_memory_is_right(const struct sig_region *r);

/* Flip bits of one byte of a block's data in memory */
void sig_damage(struct sig_region *r, u32 block, u32 byte);

#endif
