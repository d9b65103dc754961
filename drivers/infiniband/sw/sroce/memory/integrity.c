// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions with protection information: where their bytes are, and what becomes of the tuples
 * (dif.c) between memory and wire. Only gather.c comes here, with ranges that are about to
 * be sent or have been placed.
 *
 * The tuples on the wire have memory of their own (@wire), so that what is sent or placed
 * are pages, as of any other region, whatever has to be made, changed or left out. Between
 * there and memory they go block by block.
 *
 * What leaves: the tuple of a block is made when any byte of it is about to leave, from the
 * block in memory. Packets that are sent again have it made again, which gives the same.
 *
 * What comes: a block is complete when all its bytes have come, however packets have cut it.
 * The bytes of a message come in order, but one block may be in two messages, and these in
 * any order: so of each block there is known from where to where it is there. Data that is
 * placed anew begins that anew at the first byte of the block; somewhere in the middle it is
 * a packet that was placed twice, and the block stays complete.
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "memory/integrity.h"
#include "memory/mr.h"

/* --- lists of pieces ----------------------------------------------------------------- */

bool sroce_pieces_are_thin(const struct sroce_pieces *l)
{
	u32 first, last;

	if (l->n <= SROCE_MR_GAP_FREE)
		return false;
	for (last = SROCE_MR_GAP_RUN - 1; last < l->n; last++) {
		first = last + 1 - SROCE_MR_GAP_RUN;
		if (l->piece[last].end - l->piece[first].begin <
		    SROCE_MR_GAP_BYTES)
			return true;
	}
	return false;
}

static bool sroce_pieces_append(struct sroce_pieces *l, u8 *addr, u32 begin,
				u32 end)
{
	if (l->n == l->max)
		return false;
	l->piece[l->n++] = (struct sroce_piece){
		.addr = addr,
		.begin = begin,
		.end = end,
	};
	return true;
}

bool sroce_pieces_add(struct sroce_pieces *l, void *addr, u32 len)
{
	u32 begin = sroce_pieces_bytes(l);
	struct sroce_piece *last;
	u32 end;

	if (!len)
		return true;
	if (check_add_overflow(begin, len, &end))
		return false;
	if (!l->n)
		return sroce_pieces_append(l, addr, begin, end);
	last = &l->piece[l->n - 1];
	if (last->addr + (last->end - last->begin) != addr)
		return sroce_pieces_append(l, addr, begin, end);
	last->end = end;
	return true;
}

static void sroce_pieces_copy(struct sroce_pieces *to,
			      const struct sroce_pieces *from)
{
	memcpy(to->piece, from->piece, from->n * sizeof(*from->piece));
	to->n = from->n;
}

/**
 * struct sroce_pieces_at - a place in a list of pieces
 * @l: list
 * @i: piece
 * @off: bytes before the place; it is in the piece
 */
struct sroce_pieces_at {
	const struct sroce_pieces *l;
	u32 i;
	u32 off;
};

static struct sroce_pieces_at sroce_pieces_seek(const struct sroce_pieces *l,
						u32 off)
{
	u32 low = 0, high = l->n;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (l->piece[mid].end <= off)
			low = mid + 1;
		else
			high = mid;
	}
	return (struct sroce_pieces_at){ .l = l, .i = low, .off = off };
}

/* What is there in one piece, *len at the most; the place is behind it then. Or NULL */
static u8 *sroce_pieces_next(struct sroce_pieces_at *at, u32 *len)
{
	const struct sroce_piece *p = &at->l->piece[at->i];
	u8 *addr;

	if (at->i >= at->l->n)
		return NULL;
	addr = p->addr + (at->off - p->begin);
	*len = min(*len, p->end - at->off);
	at->off += *len;
	if (at->off == p->end)
		at->i++;
	return addr;
}

static void sroce_pieces_read(const struct sroce_pieces *l, u32 off, void *to,
			      u32 len)
{
	struct sroce_pieces_at at = sroce_pieces_seek(l, off);
	u8 *from;
	u32 n;

	for (; len; len -= n, to += n) {
		n = len;
		from = sroce_pieces_next(&at, &n);
		if (!from)
			return;
		memcpy(to, from, n);
	}
}

static void sroce_pieces_write(const struct sroce_pieces *l, u32 off,
			       const void *from, u32 len)
{
	struct sroce_pieces_at at = sroce_pieces_seek(l, off);
	u8 *to;
	u32 n;

	for (; len; len -= n, from += n) {
		n = len;
		to = sroce_pieces_next(&at, &n);
		if (!to)
			return;
		memcpy(to, from, n);
	}
}

/* --- life ------------------------------------------------------------------------------ */

/* Blocks of which there may be so many: as small as they can be, in pieces of 4 KiB */
static u32 sroce_integrity_blocks(u32 max_data)
{
	return max_data * (SZ_4K / SROCE_BLOCK_LEAST);
}

/* Bytes of all tables of a region */
static size_t sroce_tables_bytes(u32 max_data, u32 max_meta)
{
	size_t blocks = sroce_integrity_blocks(max_data);
	size_t pieces = 2 * ((size_t)max_data + max_meta);

	return blocks * (sizeof(struct sroce_pi) + sizeof(struct sroce_cover)) +
	       pieces * sizeof(struct sroce_piece);
}

/*
 * Storage has one region for each request that it may have under way, so the tables are not
 * to take the next power of two, each, as kmalloc() has it: they are pages in a row, none of
 * them more than needed. Where there are not so many in a row, in vmalloc memory: nobody is
 * to move other pages for a hundred of these.
 */
static void *sroce_tables_alloc(size_t bytes)
{
	const gfp_t gfp = GFP_KERNEL & ~__GFP_DIRECT_RECLAIM;
	void *tables = alloc_pages_exact(bytes,
					 gfp | __GFP_ZERO | __GFP_NOWARN);

	return tables ?: vzalloc(bytes);
}

static void sroce_tables_free(void *tables, size_t bytes)
{
	if (is_vmalloc_addr(tables))
		vfree(tables);
	else
		free_pages_exact(tables, bytes);
}

/* Give a list room for @max pieces. Return: what is behind them */
static void *sroce_pieces_place(struct sroce_pieces *l, void *at, u32 max)
{
	l->piece = at;
	l->max = max;
	return l->piece + max;
}

/* Tuples come first, so that none is on two pages; lists that follow are aligned all the same */
static void sroce_tables_place(struct sroce_integrity *sig, void *tables,
			       u32 max_data, u32 max_meta)
{
	void *at;

	BUILD_BUG_ON(PAGE_SIZE % sizeof(struct sroce_pi));
	BUILD_BUG_ON(sizeof(struct sroce_pi) % __alignof__(struct sroce_piece));
	sig->wire = tables;
	at = sig->wire + sig->max_blocks;
	at = sroce_pieces_place(&sig->now.data, at, max_data);
	at = sroce_pieces_place(&sig->now.meta, at, max_meta);
	at = sroce_pieces_place(&sig->next.data, at, max_data);
	at = sroce_pieces_place(&sig->next.meta, at, max_meta);
	sig->cover = at;
}

struct sroce_integrity *sroce_integrity_alloc(u32 max_data, u32 max_meta)
{
	struct sroce_integrity *sig = kzalloc(sizeof(*sig), GFP_KERNEL);
	void *tables;

	if (!sig)
		return NULL;
	tables = sroce_tables_alloc(sroce_tables_bytes(max_data, max_meta));
	if (!tables) {
		kfree(sig);
		return NULL;
	}
	spin_lock_init(&sig->lock);
	sig->max_blocks = sroce_integrity_blocks(max_data);
	sroce_tables_place(sig, tables, max_data, max_meta);
	return sig;
}

void sroce_integrity_free(struct sroce_integrity *sig)
{
	if (!sig)
		return;
	sroce_tables_free(sig->wire, sroce_tables_bytes(sig->now.data.max,
							sig->now.meta.max));
	kfree(sig);
}

/* --- what is to be done ---------------------------------------------------------------- */

/* A domain's protection information, NULL where it has none */
static const struct ib_t10_dif_domain *
sroce_domain_dif(const struct ib_sig_domain *domain)
{
	return domain->sig_type == IB_SIG_TYPE_T10_DIF ? &domain->sig.dif : NULL;
}

static int sroce_domain_check(const struct ib_sig_domain *domain)
{
	const struct ib_t10_dif_domain *dif = &domain->sig.dif;

	if (domain->sig_type == IB_SIG_TYPE_NONE)
		return 0;
	if (domain->sig_type != IB_SIG_TYPE_T10_DIF ||
	    (dif->bg_type != IB_T10DIF_CRC && dif->bg_type != IB_T10DIF_CSUM))
		return -EOPNOTSUPP;
	if (dif->pi_interval < SROCE_BLOCK_LEAST ||
	    dif->pi_interval > SROCE_BLOCK_MOST || dif->pi_interval % 8)
		return -EOPNOTSUPP;
	return 0;
}

/* Bytes of data of a block, 0 where there are no blocks, -EINVAL when the domains disagree */
static int sroce_attrs_interval(const struct ib_sig_attrs *attrs)
{
	const struct ib_t10_dif_domain *mem = sroce_domain_dif(&attrs->mem);
	const struct ib_t10_dif_domain *wire = sroce_domain_dif(&attrs->wire);

	if (mem && wire && mem->pi_interval != wire->pi_interval)
		return -EINVAL;
	if (mem)
		return mem->pi_interval;
	return wire ? wire->pi_interval : 0;
}

static int sroce_plan_blocks(struct sroce_plan *plan, u32 max_blocks)
{
	u32 bytes = sroce_pieces_bytes(&plan->data);
	int interval = sroce_attrs_interval(&plan->attrs);

	if (interval < 0 || !bytes)
		return -EINVAL;
	/* Without blocks all of it is one, so that nobody divides by 0 */
	plan->interval = interval ?: bytes;
	plan->stride = plan->interval;
	if (sroce_domain_dif(&plan->attrs.wire))
		plan->stride += sizeof(struct sroce_pi);
	plan->blocks = interval ? bytes / interval : 0;
	if (bytes % plan->interval || plan->blocks > max_blocks)
		return -EINVAL;
	if (sroce_domain_dif(&plan->attrs.mem) &&
	    sroce_pieces_bytes(&plan->meta) / sizeof(struct sroce_pi) <
	    plan->blocks)
		return -EINVAL;
	plan->length = interval ? plan->blocks * plan->stride : bytes;
	return 0;
}

int sroce_integrity_prepare(struct sroce_integrity *sig,
			    const struct ib_sig_attrs *attrs)
{
	struct sroce_plan *plan = &sig->next;
	int err;

	sig->ready = false;
	plan->attrs = *attrs;
	err = sroce_domain_check(&attrs->mem) ?: sroce_domain_check(&attrs->wire);
	if (!err)
		err = sroce_plan_blocks(plan, sig->max_blocks);
	sig->ready = !err;
	return err;
}

static void sroce_plan_copy(struct sroce_plan *to, const struct sroce_plan *from)
{
	to->attrs = from->attrs;
	sroce_pieces_copy(&to->data, &from->data);
	sroce_pieces_copy(&to->meta, &from->meta);
	to->interval = from->interval;
	to->stride = from->stride;
	to->length = from->length;
}

/* What may be known of the region: nothing yet, of so many blocks */
static void sroce_integrity_know(struct sroce_integrity *sig, u32 blocks)
{
	unsigned long flags;

	spin_lock_irqsave(&sig->lock, flags);
	sig->now.blocks = blocks;
	sig->failed = false;
	spin_unlock_irqrestore(&sig->lock, flags);
}

/*
 * A copy, because a consumer may register the same memory once more. Nobody else is here but
 * who asks what became of the life before. He finds no blocks meanwhile, so that the lock,
 * with interrupts off, is not held for all of that.
 */
u32 sroce_integrity_take(struct sroce_integrity *sig)
{
	sroce_integrity_know(sig, 0);
	sroce_plan_copy(&sig->now, &sig->next);
	memset(sig->cover, 0, sig->next.blocks * sizeof(*sig->cover));
	sroce_integrity_know(sig, sig->next.blocks);
	return sig->now.length;
}

/* --- where bytes are --------------------------------------------------------------------- */

/* The index of a block that a peer has chosen: in bounds also where a check is only guessed */
static u32 sroce_block_nospec(const struct sroce_integrity *sig, u32 block)
{
	return array_index_nospec(block, sig->max_blocks);
}

/* Where a byte of a tuple is that lies so far behind the data of its block */
static u8 *sroce_tuple_byte(const struct sroce_integrity *sig, u32 block, u32 in)
{
	return (u8 *)&sig->wire[sroce_block_nospec(sig, block)] + in;
}

/**
 * struct sroce_describer - a page vector that is being filled in
 * @bv: entries
 * @n: so many are
 * @max: room for so many
 * @behind: behind the last one, where it is memory that neighbours may join
 */
struct sroce_describer {
	struct bio_vec *bv;
	unsigned int n;
	unsigned int max;
	u8 *behind;
};

static bool sroce_describe_data(struct sroce_describer *d, u8 *addr, u32 len)
{
	if (d->n && d->behind == addr) {
		d->bv[d->n - 1].bv_len += len;
	} else {
		if (d->n == d->max)
			return false;
		bvec_set_page(&d->bv[d->n++], virt_to_page(addr), len,
			      offset_in_page(addr));
	}
	d->behind = addr + len;
	return true;
}

/* A tuple is in one page, and the table of tuples may be vmalloc memory */
static bool sroce_describe_tuple(struct sroce_describer *d, u8 *addr, u32 len)
{
	struct page *page = is_vmalloc_addr(addr) ? vmalloc_to_page(addr) :
						    virt_to_page(addr);

	if (d->n == d->max)
		return false;
	bvec_set_page(&d->bv[d->n++], page, len, offset_in_page(addr));
	d->behind = NULL;
	return true;
}

unsigned int sroce_integrity_bvecs(const struct sroce_integrity *sig, u32 off,
				   u32 len, struct bio_vec *bv,
				   unsigned int max, u32 *done)
{
	const struct sroce_plan *plan = &sig->now;
	struct sroce_describer d = { .bv = bv, .max = max };
	u32 block = off / plan->stride, in = off % plan->stride;
	struct sroce_pieces_at at = sroce_pieces_seek(&plan->data,
		block * plan->interval + min(in, plan->interval));
	u32 left, n;
	u8 *addr;

	for (left = len; left; left -= n) {
		if (in < plan->interval) {
			n = min(left, plan->interval - in);
			addr = sroce_pieces_next(&at, &n);
			if (!addr || !sroce_describe_data(&d, addr, n))
				break;
		} else {
			n = min(left, plan->stride - in);
			addr = sroce_tuple_byte(sig, block, in - plan->interval);
			if (!sroce_describe_tuple(&d, addr, n))
				break;
		}
		in += n;
		if (in == plan->stride) {
			in = 0;
			block++;
		}
	}
	*done = len - left;
	return d.n;
}

/* --- one block --------------------------------------------------------------------------- */

/* *work counts the bytes that were looked at */
static __be16 sroce_block_guard(const struct sroce_plan *plan,
				const struct ib_t10_dif_domain *dif, u32 block,
				u32 *work)
{
	struct sroce_pieces_at at = sroce_pieces_seek(&plan->data,
						      block * plan->interval);
	u32 left = plan->interval, n;
	struct sroce_guard g;
	u8 *addr;

	*work += plan->interval;
	sroce_guard_begin(&g, dif);
	for (; left; left -= n) {
		n = left;
		addr = sroce_pieces_next(&at, &n);
		if (!addr)
			break;
		sroce_guard_add(&g, addr, n);
	}
	return sroce_guard_end(&g);
}

/*
 * The lowest block that has one is told of: which that is does not depend on repetitions.
 * Context: lock held
 */
static void sroce_block_note(struct sroce_mr *mr, u32 block,
			     struct ib_sig_err *err)
{
	struct sroce_integrity *sig = mr->sig;

	err->key = mr->key;
	/* As if there were tuples on the wire, whether there are or not: consumers divide */
	err->sig_err_offset = (u64)block *
			      (sig->now.interval + sizeof(struct sroce_pi));
	if (!sig->failed || err->sig_err_offset < sig->err.sig_err_offset)
		sig->err = *err;
	sig->failed = true;
}

static void sroce_block_failed(struct sroce_mr *mr, u32 block,
			       struct ib_sig_err *err)
{
	unsigned long flags;

	spin_lock_irqsave(&mr->sig->lock, flags);
	sroce_block_note(mr, block, err);
	spin_unlock_irqrestore(&mr->sig->lock, flags);
}

/*
 * A guard of another type is as wrong as the one that it takes the place of: who only looks
 * at what arrives must not find a block right that was not.
 */
static __be16 sroce_block_new_guard(const struct sroce_plan *plan,
				    const struct ib_t10_dif_domain *to,
				    u32 block, __be16 right, __be16 found,
				    u32 *work)
{
	return sroce_block_guard(plan, to, block, work) ^ right ^ found;
}

/* Check a tuple, and set @out, if there is a domain that it goes to */
static void sroce_block_pass(struct sroce_mr *mr, u32 block,
			     const struct ib_t10_dif_domain *from,
			     const struct ib_t10_dif_domain *to,
			     const struct sroce_pi *in, struct sroce_pi *out,
			     u32 *work)
{
	const struct sroce_plan *plan = &mr->sig->now;
	bool same = !to || sroce_dif_same_guard(from, to);
	u8 mask = plan->attrs.check_mask;
	struct ib_sig_err err = {};
	__be16 guard = in->guard;

	/* Nobody has written the block: that is not to be lost on the way */
	if (sroce_dif_is_escaped(from, in)) {
		*out = *in;
		return;
	}
	if (sroce_dif_checks_guard(mask) || !same)
		guard = sroce_block_guard(plan, from, block, work);
	if (!sroce_dif_check(from, mask, in, guard, block, &err))
		sroce_block_failed(mr, block, &err);
	if (!to)
		return;
	sroce_dif_pass(from, to, block, in, out);
	out->guard = same ? in->guard :
		     sroce_block_new_guard(plan, to, block, guard, in->guard,
					   work);
}

static void sroce_block_make(const struct sroce_plan *plan, u32 block,
			     const struct ib_t10_dif_domain *to,
			     struct sroce_pi *out, u32 *work)
{
	sroce_dif_make(to, sroce_block_guard(plan, to, block, work), block, out);
}

static void sroce_block_leaves(struct sroce_mr *mr, u32 block, u32 *work)
{
	struct sroce_integrity *sig = mr->sig;
	const struct sroce_plan *plan = &sig->now;
	const struct ib_t10_dif_domain *mem = sroce_domain_dif(&plan->attrs.mem);
	const struct ib_t10_dif_domain *wire = sroce_domain_dif(&plan->attrs.wire);
	struct sroce_pi in = {}, out = {};

	if (mem) {
		sroce_pieces_read(&plan->meta, block * sizeof(in), &in,
				  sizeof(in));
		sroce_block_pass(mr, block, mem, wire, &in, &out, work);
	} else if (wire) {
		sroce_block_make(plan, block, wire, &out, work);
	}
	if (wire)
		sig->wire[block] = out;
}

static void sroce_block_is_there(struct sroce_mr *mr, u32 block, u32 *work)
{
	struct sroce_integrity *sig = mr->sig;
	const struct sroce_plan *plan = &sig->now;
	const struct ib_t10_dif_domain *mem = sroce_domain_dif(&plan->attrs.mem);
	const struct ib_t10_dif_domain *wire = sroce_domain_dif(&plan->attrs.wire);
	struct sroce_pi in = sig->wire[block], out = {};

	if (wire)
		sroce_block_pass(mr, block, wire, mem, &in, &out, work);
	else if (mem)
		sroce_block_make(plan, block, mem, &out, work);
	if (mem)
		sroce_pieces_write(&plan->meta, block * sizeof(out), &out,
				   sizeof(out));
}

/* --- ranges ------------------------------------------------------------------------------ */

/* Offset in a block from which on a range has to have a byte for the block to be looked at */
static u32 sroce_block_matters_from(const struct sroce_plan *plan)
{
	return plan->stride > plan->interval ? plan->interval : plan->stride - 1;
}

u32 sroce_integrity_leave(struct sroce_mr *mr, u32 off, u32 len)
{
	const struct sroce_plan *plan = &mr->sig->now;
	u32 block = off / plan->stride;
	u32 from = sroce_block_matters_from(plan);
	u32 work = 0;

	for (; block < plan->blocks; block++) {
		if (block * plan->stride + from >= off + len)
			break;
		sroce_block_leaves(mr, sroce_block_nospec(mr->sig, block),
				   &work);
	}
	return work;
}

/* Bytes of a block have been placed: is all of it there? Context: lock held */
static bool sroce_cover_add(struct sroce_cover *c, u32 stride, u32 from, u32 to)
{
	bool complete = !c->from && c->to == stride;

	if (complete && from)
		return true;
	if (complete || !c->to || from > c->to || to < c->from) {
		c->from = from;
		c->to = to;
	} else {
		c->from = min_t(u32, c->from, from);
		c->to = max_t(u32, c->to, to);
	}
	return !c->from && c->to == stride;
}

/**
 * struct sroce_blocks - some blocks in a row
 * @first: the first of them
 * @end: behind the last one
 */
struct sroce_blocks {
	u32 first;
	u32 end;
};

/*
 * A range has been placed. Return: blocks of it that are there. Only the first and the last
 * one of a range may be there in part, so these are in a row.
 */
static struct sroce_blocks sroce_blocks_covered(struct sroce_integrity *sig,
						u32 off, u32 len)
{
	const struct sroce_plan *plan = &sig->now;
	u32 block = off / plan->stride, in = off % plan->stride, n;
	struct sroce_blocks there = { .first = block, .end = block };
	unsigned long flags;

	spin_lock_irqsave(&sig->lock, flags);
	for (; len && block < plan->blocks; block++) {
		n = min(len, plan->stride - in);
		if (sroce_cover_add(&sig->cover[sroce_block_nospec(sig, block)],
				    plan->stride, in, in + n))
			there.end = block + 1;
		else if (there.end == there.first)
			there = (struct sroce_blocks){ block + 1, block + 1 };
		len -= n;
		in = 0;
	}
	spin_unlock_irqrestore(&sig->lock, flags);
	return there;
}

u32 sroce_integrity_placed(struct sroce_mr *mr, u32 off, u32 len)
{
	struct sroce_blocks there = sroce_blocks_covered(mr->sig, off, len);
	u32 work = 0;

	for (; there.first < there.end; there.first++)
		sroce_block_is_there(mr, sroce_block_nospec(mr->sig,
							    there.first),
				     &work);
	return work;
}

/* --- what became of it --------------------------------------------------------------------- */

static bool sroce_cover_is_partial(const struct sroce_cover *c, u32 stride)
{
	return c->to && (c->from || c->to != stride);
}

/* Each is noted, and none is found again. Context: lock held */
static void sroce_integrity_note_parts(struct sroce_mr *mr)
{
	struct sroce_integrity *sig = mr->sig;
	u32 i;

	for (i = 0; i < sig->now.blocks; i++) {
		struct ib_sig_err err = { .err_type = IB_SIG_BAD_GUARD };

		if (!sroce_cover_is_partial(&sig->cover[i], sig->now.stride))
			continue;
		sroce_block_note(mr, i, &err);
		sig->cover[i] = (struct sroce_cover){};
	}
}

/*
 * While it is registered, bytes may be on their way, or the connection has gone in the middle
 * of them. Whoever asks then because of that is not to take it for wrong data.
 */
bool sroce_integrity_status(struct sroce_mr *mr, struct ib_sig_err *err)
{
	struct sroce_integrity *sig = mr->sig;
	unsigned long flags;
	bool failed;

	spin_lock_irqsave(&sig->lock, flags);
	if (!READ_ONCE(mr->valid))
		sroce_integrity_note_parts(mr);
	failed = sig->failed;
	if (failed)
		*err = sig->err;
	sig->failed = false;
	spin_unlock_irqrestore(&sig->lock, flags);
	return failed;
}
