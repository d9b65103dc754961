// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A region with protection information for the tests (sig_region.h).
 */
#include <linux/err.h>
#include <linux/scatterlist.h>
#include <linux/string.h>

#include "memory/users.h"
#include "tests/sig_region.h"
#include "verbs/verbs.h"

#define MAX_PIECES 320
#define GAP 48

/* Lengths of pieces, again and again; tuples are cut, too */
static const u32 data_piece[] = { 700, 512, 24, 4096, 1333, 8, 903 };
static const u32 meta_piece[] = { 5, 8, 13, 64, 1 };
static const u32 whole_tuple[] = { sizeof(struct sroce_pi) };

/* --- by other means ---------------------------------------------------------------- */

static u16 slow_crc(const u8 *p, u32 len)
{
	u16 crc = 0;
	int bit;

	while (len--) {
		crc ^= *p++ << 8;
		for (bit = 0; bit < 8; bit++)
			crc = crc << 1 ^ (crc & 0x8000 ? 0x8bb7 : 0);
	}
	return crc;
}

static u16 slow_checksum(const u8 *p, u32 len)
{
	u32 sum = 0, i;

	for (i = 0; i < len; i += 2)
		sum += p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static struct sroce_pi make_tuple(const struct sig_region *r,
				  const struct ib_sig_domain *domain, u32 block)
{
	const struct ib_t10_dif_domain *dif = &domain->sig.dif;
	const u8 *data = r->plain + block * r->c.interval;
	u16 guard = dif->bg_type == IB_T10DIF_CRC ?
		    slow_crc(data, r->c.interval) :
		    slow_checksum(data, r->c.interval);

	return (struct sroce_pi){
		.guard = cpu_to_be16(guard),
		.app = cpu_to_be16(dif->app_tag),
		.ref = cpu_to_be32(dif->ref_tag + (r->c.type == 3 ? 0 : block)),
	};
}

struct sroce_pi sig_tuple(const struct sig_region *r,
			  const struct ib_sig_domain *domain, u32 block)
{
	return domain == &r->attrs.mem ? r->mem_pi[block] : r->wire_pi[block];
}

/* --- memory in pieces ---------------------------------------------------------------- */

/* Copy between memory in pieces and memory in one piece */
static void pieces_move(u8 *mem, const u32 *piece, u32 n, u32 off, u8 *lin,
			u32 len, bool in)
{
	u32 begin = 0, i, k;

	for (i = 0; len; i++) {
		u32 end = begin + piece[i % n];

		for (k = max(begin, off); k < end && len; k++, off++, len--) {
			u8 *at = mem + k + i * GAP;

			if (in)
				*at = *lin++;
			else
				*lin++ = *at;
		}
		begin = end;
	}
}

static void data_move(const struct sig_region *r, u32 off, u8 *lin, u32 len, bool in)
{
	pieces_move(r->data, data_piece, ARRAY_SIZE(data_piece), off, lin, len, in);
}

static void meta_move(const struct sig_region *r, u32 block, struct sroce_pi *pi, bool in)
{
	pieces_move(r->meta, r->scattered ? whole_tuple : meta_piece,
		    r->scattered ? ARRAY_SIZE(whole_tuple) : ARRAY_SIZE(meta_piece),
		    block * sizeof(*pi), (u8 *)pi, sizeof(*pi), in);
}

static void pieces_map(struct sig_region *r, struct sroce_pieces *l, u8 *mem,
		       const u32 *piece, u32 n, u32 len)
{
	u32 off = 0, i, part;

	sroce_pieces_reset(r->mr->sig, l);
	for (i = 0; off < len; i++, off += part) {
		part = min(piece[i % n], len - off);
		KUNIT_ASSERT_TRUE(r->test, sroce_pieces_add(l, mem + off + i * GAP, part));
	}
}

/* As pieces_map() places them. Return: elements of @sg in use */
static u32 pieces_list(struct sig_region *r, struct scatterlist *sg, u8 *mem,
		       const u32 *piece, u32 n, u32 len)
{
	u32 off = 0, i, part;

	sg_init_table(sg, MAX_PIECES);
	for (i = 0; off < len; i++, off += part) {
		KUNIT_ASSERT_LT(r->test, i, MAX_PIECES);
		part = min(piece[i % n], len - off);
		sg_dma_address(&sg[i]) = (uintptr_t)(mem + off + i * GAP);
		sg_dma_len(&sg[i]) = part;
	}
	return i;
}

static u8 *room(struct sig_region *r, u32 bytes)
{
	u8 *mem = kunit_kzalloc(r->test, bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(r->test, mem);
	return mem;
}

/* --- the region ------------------------------------------------------------------------ */

static void set_domain(struct ib_sig_domain *d, enum sig_side side,
		       const struct sig_case *c, bool retag)
{
	if (side == SIG_NONE)
		return;
	d->sig_type = IB_SIG_TYPE_T10_DIF;
	d->sig.dif = (struct ib_t10_dif_domain){
		.bg_type = side == SIG_CRC ? IB_T10DIF_CRC : IB_T10DIF_CSUM,
		.pi_interval = c->interval,
		.app_tag = SIG_APP + retag,
		.ref_tag = SIG_REF + retag * 0x1000,
		.ref_remap = c->type != 3,
		.app_escape = true,
		.ref_escape = c->type == 3,
		.apptag_check_mask = 0xffff,
	};
}

int sig_register(struct sig_region *r)
{
	struct sroce_mr *mr = r->mr;
	int err;

	if (mr->valid) {
		err = sroce_mr_invalidate(mr->table, mr->key, mr->ibmr.pd, NULL, false);
		KUNIT_ASSERT_EQ(r->test, err, 0);
	}
	err = sroce_integrity_prepare(mr->sig, &r->attrs);
	return err ?: sroce_mr_register(mr, mr->ibmr.pd, mr->key ^ 1, SIG_ACCESS);
}

struct sig_region *sig_new(struct kunit *test, struct sroce_mr_table *table,
			   struct ib_pd *pd, const struct sig_case *c)
{
	struct sig_region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 bytes = c->interval * c->blocks;
	u32 meta = c->blocks * sizeof(struct sroce_pi);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->test = test;
	r->c = *c;
	r->attrs.check_mask = c->mask;
	set_domain(&r->attrs.mem, c->mem, c, false);
	set_domain(&r->attrs.wire, c->wire, c, c->retag);
	r->plain = room(r, bytes);
	r->data = room(r, bytes + MAX_PIECES * GAP);
	r->meta = room(r, meta + MAX_PIECES * GAP);
	r->wire = room(r, bytes + meta);
	r->mem_pi = (struct sroce_pi *)room(r, meta);
	r->wire_pi = (struct sroce_pi *)room(r, meta);
	r->mr = sroce_mr_alloc(table, pd, SROCE_MR_FAST_REG, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(r->mr));
	r->mr->sig = sroce_integrity_alloc(MAX_PIECES, MAX_PIECES);
	KUNIT_ASSERT_NOT_NULL(test, r->mr->sig);
	pieces_map(r, &r->mr->sig->next.data, r->data, data_piece,
		   ARRAY_SIZE(data_piece), bytes);
	pieces_map(r, &r->mr->sig->next.meta, r->meta, meta_piece,
		   ARRAY_SIZE(meta_piece), meta);
	KUNIT_ASSERT_EQ(test, sig_register(r), 0);
	KUNIT_ASSERT_EQ(test, r->mr->length, sig_wire_bytes(r));
	return r;
}

void sig_free(struct sig_region *r)
{
	struct sroce_integrity *sig = r->mr->sig;

	sroce_mr_free(r->mr);
	sroce_integrity_free(sig);
	kunit_kfree(r->test, r->wire_pi);
	kunit_kfree(r->test, r->mem_pi);
	kunit_kfree(r->test, r->wire);
	kunit_kfree(r->test, r->meta);
	kunit_kfree(r->test, r->data);
	kunit_kfree(r->test, r->plain);
	kunit_kfree(r->test, r);
}

int sig_scatter_tuples(struct sig_region *r)
{
	struct scatterlist *sg = (struct scatterlist *)room(r, 2 * MAX_PIECES * sizeof(*sg));
	u32 meta = r->c.blocks * sizeof(struct sroce_pi), n, m;
	int err;

	n = pieces_list(r, sg, r->data, data_piece, ARRAY_SIZE(data_piece), sig_data_bytes(r));
	m = pieces_list(r, sg + MAX_PIECES, r->meta, whole_tuple, ARRAY_SIZE(whole_tuple), meta);
	r->scattered = true;
	r->mr->ibmr.sig_attrs = &r->attrs;
	err = sroce_ib_map_mr_sg_pi(&r->mr->ibmr, sg, n, NULL, sg + MAX_PIECES, m, NULL);
	kunit_kfree(r->test, sg);
	return err ?: sig_register(r);
}

/* --- contents ---------------------------------------------------------------------------- */

static u32 stride(const struct sig_region *r)
{
	return r->c.interval + (r->c.wire == SIG_NONE ? 0 : sizeof(struct sroce_pi));
}

u32 sig_wire_bytes(const struct sig_region *r)
{
	return r->c.blocks * stride(r);
}

static void make_tuples(struct sig_region *r)
{
	u32 i;

	for (i = 0; i < r->c.blocks; i++) {
		r->mem_pi[i] = make_tuple(r, &r->attrs.mem, i);
		r->wire_pi[i] = make_tuple(r, &r->attrs.wire, i);
	}
}

void sig_fill(struct sig_region *r, u32 seed)
{
	u32 i;

	for (i = 0; i < sig_data_bytes(r); i++) {
		seed = seed * 1103515245 + 12345;
		r->plain[i] = seed >> 16;
	}
	make_tuples(r);
}

void sig_fill_byte(struct sig_region *r, u8 byte)
{
	memset(r->plain, byte, sig_data_bytes(r));
	make_tuples(r);
}

struct sroce_pi *sig_wire_tuple(const struct sig_region *r, u8 *wire, u32 block)
{
	return r->c.wire == SIG_NONE ? NULL :
	       (struct sroce_pi *)(wire + block * stride(r) + r->c.interval);
}

void sig_make_wire(const struct sig_region *r, u8 *wire)
{
	struct sroce_pi *pi, tuple;
	u32 i;

	for (i = 0; i < r->c.blocks; i++) {
		memcpy(wire + i * stride(r), r->plain + i * r->c.interval, r->c.interval);
		pi = sig_wire_tuple(r, wire, i);
		if (!pi)
			continue;
		tuple = sig_tuple(r, &r->attrs.wire, i);
		memcpy(pi, &tuple, sizeof(tuple));
	}
}

void sig_write_tuple(struct sig_region *r, u32 block, const struct sroce_pi *pi)
{
	struct sroce_pi copy = *pi;

	meta_move(r, block, &copy, true);
}

struct sroce_pi sig_read_tuple(const struct sig_region *r, u32 block)
{
	struct sroce_pi pi;

	meta_move(r, block, &pi, false);
	return pi;
}

void sig_to_memory(struct sig_region *r, bool junk)
{
	struct sroce_pi pi;
	u32 i;

	if (junk) {
		memset(r->data, 0xdb, sig_data_bytes(r) + MAX_PIECES * GAP);
		memset(r->meta, 0xbd, r->c.blocks * sizeof(pi) + MAX_PIECES * GAP);
		return;
	}
	data_move(r, 0, r->plain, sig_data_bytes(r), true);
	for (i = 0; i < r->c.blocks; i++) {
		pi = sig_tuple(r, &r->attrs.mem, i);
		sig_write_tuple(r, i, &pi);
	}
}

void sig_fill_gaps(struct sig_region *r, u8 byte)
{
	memset(r->data, byte, sig_data_bytes(r) + MAX_PIECES * GAP);
	memset(r->meta, byte, r->c.blocks * sizeof(struct sroce_pi) + MAX_PIECES * GAP);
}

/* @bytes of memory in pieces, and all that was allocated behind them */
static bool gaps_are(const u8 *mem, const u32 *piece, u32 n, u32 bytes, u8 byte)
{
	const u8 *end = mem + bytes + MAX_PIECES * GAP;
	u32 i;

	for (i = 0; bytes; i++) {
		mem += min(piece[i % n], bytes);
		bytes -= min(piece[i % n], bytes);
		if (memchr_inv(mem, byte, bytes ? GAP : end - mem))
			return false;
		mem += GAP;
	}
	return true;
}

bool sig_gaps_are(const struct sig_region *r, u8 byte)
{
	return gaps_are(r->data, data_piece, ARRAY_SIZE(data_piece), sig_data_bytes(r), byte) &&
	       gaps_are(r->meta, r->scattered ? whole_tuple : meta_piece,
			r->scattered ? ARRAY_SIZE(whole_tuple) : ARRAY_SIZE(meta_piece),
			r->c.blocks * sizeof(struct sroce_pi), byte);
}

static bool meta_is_right(const struct sig_region *r)
{
	struct sroce_pi pi, right;
	u32 i;

	for (i = 0; i < r->c.blocks; i++) {
		pi = sig_read_tuple(r, i);
		right = sig_tuple(r, &r->attrs.mem, i);
		if (memcmp(&pi, &right, sizeof(pi)))
			return false;
	}
	return true;
}

bool sig_memory_is_right(const struct sig_region *r)
{
	u32 bytes = sig_data_bytes(r);
	u8 *data = kunit_kzalloc(r->test, bytes, GFP_KERNEL);
	bool right;

	KUNIT_ASSERT_NOT_NULL(r->test, data);
	data_move(r, 0, data, bytes, false);
	right = !memcmp(data, r->plain, bytes) &&
		(r->c.mem == SIG_NONE || meta_is_right(r));
	kunit_kfree(r->test, data);
	return right;
}

void sig_damage(struct sig_region *r, u32 block, u32 byte)
{
	u32 at = block * r->c.interval + byte;
	u8 value;

	data_move(r, at, &value, 1, false);
	value ^= 0x21;
	data_move(r, at, &value, 1, true);
}
