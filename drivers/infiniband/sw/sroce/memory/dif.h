/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Protection information of one block, after T10 (SBC, "DIF"): what is expected of it, and
 * what it becomes where it is made or changed. Nothing here knows where the bytes are.
 */
#ifndef SROCE_MEMORY_DIF_H
#define SROCE_MEMORY_DIF_H

#include <linux/types.h>
#include <rdma/signature.h>

/* Protection information of a block, as it lies behind it or apart from it */
struct sroce_pi {
	__be16 guard;	/* checksum: of the type CSUM its bytes are as IP has them */
	__be16 app;
	__be32 ref;
};

/* The kernel's CRC is there; otherwise nothing of this is offered */
#define SROCE_HAS_DIF IS_REACHABLE(CONFIG_CRC_T10DIF)

/**
 * struct sroce_guard - a checksum under way
 * @type: which
 * @crc: up to here
 * @sum: the same of the other type, of 16-bit words as they are in memory, not folded
 * @len: bytes so far
 */
struct sroce_guard {
	enum ib_t10_dif_bg_type type;
	u16 crc;
	u32 sum;
	u32 len;
};

void sroce_guard_begin(struct sroce_guard *g,
		       const struct ib_t10_dif_domain *dif);
/* Any number of bytes, fewer than 2^16 times */
void sroce_guard_add(struct sroce_guard *g, const void *data, u32 len);
__be16 sroce_guard_end(const struct sroce_guard *g);

/**
 * sroce_dif_is_escaped() - does the block say of itself that it is not to be checked?
 * @dif: domain that the tuple is of
 * @pi: tuple
 *
 * With an application tag of all ones, if the domain says so; with a reference tag of all
 * ones; where the domain asks for both (type 3), with both.
 */
bool sroce_dif_is_escaped(const struct ib_t10_dif_domain *dif,
			  const struct sroce_pi *pi);

/* Does the mask (IB_SIG_CHECK_*, a bit for each byte) have a byte of the guard? */
static inline bool sroce_dif_checks_guard(u8 mask)
{
	return mask & IB_SIG_CHECK_GUARD;
}

/**
 * sroce_dif_check() - compare a tuple with what it is to be
 * @dif: domain that it is of
 * @mask: bytes that count, the highest bit for the first
 * @pi: tuple, not escaped
 * @guard: what the data has; of no interest where @mask has no byte of it
 * @block: number of the block, from 0
 * @err: on failure: type, expected and actual value
 *
 * Return: false when something differs; the guard comes before the reference tag, that
 * before the application tag.
 */
bool sroce_dif_check(const struct ib_t10_dif_domain *dif, u8 mask,
		     const struct sroce_pi *pi, __be16 guard, u32 block,
		     struct ib_sig_err *err);

/* Make the tuple of a block whose data has @guard */
void sroce_dif_make(const struct ib_t10_dif_domain *dif, __be16 guard,
		    u32 block, struct sroce_pi *pi);

/* Is the guard of a block the same in both domains? */
static inline bool sroce_dif_same_guard(const struct ib_t10_dif_domain *a,
					const struct ib_t10_dif_domain *b)
{
	return a->bg_type == b->bg_type && a->bg == b->bg;
}

/**
 * sroce_dif_pass() - the tuple of a block in the other domain
 * @from: domain that it is of
 * @to: the other one
 * @block: number of the block, from 0
 * @in: tuple, not escaped
 * @out: set, but for its guard
 *
 * A tag that both domains have alike goes through as it is, whatever it is.
 */
void sroce_dif_pass(const struct ib_t10_dif_domain *from,
		    const struct ib_t10_dif_domain *to, u32 block,
		    const struct sroce_pi *in, struct sroce_pi *out);

#endif
