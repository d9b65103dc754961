/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Regions with protection information (IB_MR_TYPE_INTEGRITY): of kernel users, for storage.
 * Data and protection information are apart in memory, or there is only data, and on the
 * wire each block is followed by its tuple, or there are none. Their bytes on the wire are
 * not their bytes in memory, so who gathers has to know (transport/gather.c). A region is
 * of the kind SROCE_MR_FAST_REG, and has @sig.
 */
#ifndef SROCE_MEMORY_INTEGRITY_H
#define SROCE_MEMORY_INTEGRITY_H

#include <linux/bvec.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/signature.h>

#include "memory/dif.h"
#include "memory/mr.h"

/* Bytes of a block of data, a multiple of 8 in between */
#define SROCE_BLOCK_LEAST 512
#define SROCE_BLOCK_MOST 4224

/*
 * Data is in as many pieces as that of a region with gaps may be (SROCE_MR_GAP_FREE), and a
 * tuple is a piece more and parts another one. Whoever gathers has room for those of a
 * packet, where one element of a list has all of it.
 */
#define SROCE_PACKET_TUPLES (SROCE_MR_GAP_BYTES / SROCE_BLOCK_LEAST + 1)
#define SROCE_PACKET_PIECES (SROCE_MR_GAP_FREE + 2 * SROCE_PACKET_TUPLES)

/**
 * struct sroce_piece - a piece of memory in a list of them
 * @addr: its first byte, in the kernel's own mapping
 * @begin: bytes in the pieces before it
 * @end: ... with its own
 */
struct sroce_piece {
	u8 *addr;
	u32 begin;
	u32 end;
};

/**
 * struct sroce_pieces - memory in pieces
 * @piece: pieces, none of which is empty
 * @n: their number
 * @max: room for so many
 */
struct sroce_pieces {
	struct sroce_piece *piece;
	u32 n;
	u32 max;
};

/* Bytes of all pieces */
static inline u32 sroce_pieces_bytes(const struct sroce_pieces *l)
{
	return l->n ? l->piece[l->n - 1].end : 0;
}

/**
 * struct sroce_plan - what a region is between its registration and the next one
 * @attrs: domains and what is to be checked
 * @data: blocks of data
 * @meta: their protection information in memory; of no interest where that has none
 * @blocks: their number; 0 where neither side has protection information
 * @interval: bytes of data of a block
 * @stride: bytes of a block on the wire
 * @length: bytes of all on the wire
 */
struct sroce_plan {
	struct ib_sig_attrs attrs;
	struct sroce_pieces data;
	struct sroce_pieces meta;
	u32 blocks;
	u32 interval;
	u32 stride;
	u32 length;
};

/**
 * struct sroce_cover - bytes of a block on the wire that have been placed
 * @from: first of them
 * @to: behind the last of them: 0 before any was, the stride when all were
 */
struct sroce_cover {
	u16 from;
	u16 to;
};

/**
 * struct sroce_integrity - what a region with protection information has in addition
 * @now: what it is, since its registration; nobody changes it as long as somebody uses the
 *	region
 * @next: what it is to be at its next registration: belongs to whoever maps and posts
 * @ready: @next is complete
 * @max_blocks: entries of @wire and @cover
 * @wire: the tuple of each block as it is on the wire. The memory of all tables of the region
 *	begins here
 * @lock: of what follows, and of @now.blocks: while there are none nobody looks at @cover and
 *	at the stride, which therefore may change without it. Taken in any context
 * @cover: what has been placed of each block
 * @failed: a check has failed since the last registration, or since somebody asked
 * @err: of the failed ones the one in the lowest block
 */
struct sroce_integrity {
	struct sroce_plan now;
	struct sroce_plan next;
	bool ready;
	u32 max_blocks;
	struct sroce_pi *wire;
	spinlock_t lock; /* see above */
	struct sroce_cover *cover;
	bool failed;
	struct ib_sig_err err;
};

/**
 * sroce_integrity_alloc() - what a region needs in addition
 * @max_data: pieces of data that it is to have room for, and 4 KiB of data for each
 * @max_meta: pieces of protection information
 *
 * That is about 160 bytes for a piece of both. The caller has bounded the numbers.
 *
 * Context: process.
 * Return: that, for @sig of a region, or NULL without memory.
 */
struct sroce_integrity *sroce_integrity_alloc(u32 max_data, u32 max_meta);

/* Nobody uses the region any more. @sig may be NULL */
void sroce_integrity_free(struct sroce_integrity *sig);

/* Begin a list of pieces anew: @sig->next.data or .meta */
static inline void sroce_pieces_reset(struct sroce_integrity *sig,
				      struct sroce_pieces *l)
{
	sig->ready = false;
	l->n = 0;
}

/* Add one; neighbours become one piece. Return: false when there is no room */
bool sroce_pieces_add(struct sroce_pieces *l, void *addr, u32 len);

/*
 * Is there a packet whose data is in more pieces than whoever gathers has room for? To ask
 * of a whole list of data, once. Tuples may be as scattered as they like: what is gathered
 * of them is in @wire of the region.
 */
bool sroce_pieces_are_thin(const struct sroce_pieces *l);

/**
 * sroce_integrity_prepare() - say what is to be done with the lists of the next registration
 * @sig: the region's
 * @attrs: domains and checks
 *
 * Context: any; whoever has mapped the lists.
 * Return: 0; -EINVAL when the lists do not have what @attrs asks for, or -EOPNOTSUPP.
 */
int sroce_integrity_prepare(struct sroce_integrity *sig,
			    const struct ib_sig_attrs *attrs);

/**
 * sroce_integrity_take() - the next registration begins
 * @sig: the region's, with @ready; nobody uses the region
 *
 * Return: bytes of the region on the wire.
 */
u32 sroce_integrity_take(struct sroce_integrity *sig);

/**
 * sroce_integrity_bvecs() - the bytes of a range as they are on the wire
 * @sig: of a region that is used or held
 * @off: first byte, which counts from the region's first
 * @len: bytes, within its bounds
 * @bv: filled in
 * @max: entries at @bv
 * @done: set to the number of bytes described; less than @len when @max entries did not
 *	suffice
 *
 * Data is where it is in memory, tuples are in @sig->wire: there they are before they leave
 * (sroce_integrity_leave()), and from there on they go on (sroce_integrity_placed()).
 *
 * Context: any.
 * Return: entries used.
 */
unsigned int sroce_integrity_bvecs(const struct sroce_integrity *sig, u32 off,
				   u32 len, struct bio_vec *bv,
				   unsigned int max, u32 *done);

/**
 * sroce_integrity_leave() - a range is about to be sent
 * @mr: region that is used
 * @off: first byte on the wire
 * @len: bytes, not 0
 *
 * Tuples that are in it are made, and blocks that end in it are checked. When it is sent
 * again, the same is done to the same effect.
 *
 * Context: any, for longer than a copy of the data takes.
 * Return: bytes that were summed up for it: each block whole, and twice when its guard
 * changes its type, however few of its bytes are in the range.
 */
u32 sroce_integrity_leave(struct sroce_mr *mr, u32 off, u32 len);

/**
 * sroce_integrity_placed() - a range has been copied to where sroce_integrity_bvecs() said
 * @mr: region that is used
 * @off: first byte on the wire
 * @len: bytes, not 0
 *
 * Blocks of which all bytes have come are checked, and their tuples go to memory.
 *
 * Context: as sroce_integrity_leave().
 * Return: as sroce_integrity_leave().
 */
u32 sroce_integrity_placed(struct sroce_mr *mr, u32 off, u32 len);

/**
 * sroce_integrity_status() - has something been wrong since the registration?
 * @mr: region, whether it is still registered or not
 * @err: set if so
 *
 * Says so once: of all that was wrong up to now the lowest block is told of, and the others
 * are forgotten with it.
 *
 * When the registration has ended, a block of which only a part has come is wrong, too: its
 * guard is reported, with no values. Consumers let a registration end once they know that
 * all has come, before they ask (NVMe-oF by themselves, an iSER target for its initiator). As
 * long as it is valid they may ask because all has come, or of a request whose connection has
 * gone in the middle: to call that a wrong guard would hide from multipath that it was the
 * path.
 *
 * Context: any.
 */
bool sroce_integrity_status(struct sroce_mr *mr, struct ib_sig_err *err);

#endif
