// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection information of one block: expected, compared, made. integrity.c comes here
 * for each block of a region that has some.
 */
#include <linux/crc-t10dif.h>
#include <linux/kconfig.h>
#include <linux/limits.h>
#include <linux/swab.h>
#include <asm/byteorder.h>
#include <asm/checksum.h>

#include "memory/dif.h"

/* --- guards ------------------------------------------------------------------------ */

void sroce_guard_begin(struct sroce_guard *g,
		       const struct ib_t10_dif_domain *dif)
{
	g->type = dif->bg_type;
	g->crc = dif->bg;
	g->sum = (__force u16)cpu_to_be16(dif->bg);
	g->len = 0;
}

/* The sum of the words of a piece, which begins in the middle of one when @odd */
static u16 sroce_guard_sum(const void *data, u32 len, bool odd)
{
	u16 sum = ~(__force u16)csum_fold(csum_partial(data, len, 0));

	return odd ? swab16(sum) : sum;
}

void sroce_guard_add(struct sroce_guard *g, const void *data, u32 len)
{
	if (g->type == IB_T10DIF_CSUM)
		g->sum += sroce_guard_sum(data, len, g->len & 1);
	else if (SROCE_HAS_DIF)
		g->crc = crc_t10dif_update(g->crc, data, len);
	g->len += len;
}

__be16 sroce_guard_end(const struct sroce_guard *g)
{
	if (g->type == IB_T10DIF_CSUM)
		return (__force __be16)csum_fold((__force __wsum)g->sum);
	return cpu_to_be16(g->crc);
}

/* --- tuples ------------------------------------------------------------------------ */

static u32 sroce_dif_ref(const struct ib_t10_dif_domain *dif, u32 block)
{
	return dif->ref_remap ? dif->ref_tag + block : dif->ref_tag;
}

bool sroce_dif_is_escaped(const struct ib_t10_dif_domain *dif,
			  const struct sroce_pi *pi)
{
	bool app = pi->app == cpu_to_be16(U16_MAX);
	bool ref = pi->ref == cpu_to_be32(U32_MAX);

	if (!dif->app_escape)
		return dif->ref_escape && ref;
	return app && (ref || !dif->ref_escape);
}

/* The bytes of an integer that the lowest @n bits of a mask name, the highest bit the first */
static u32 sroce_dif_bytes(u8 mask, unsigned int n)
{
	u32 bytes = 0;

	while (n--)
		bytes = bytes << 8 | (mask >> n & 1 ? 0xff : 0);
	return bytes;
}

static bool sroce_dif_differs(enum ib_sig_err_type type, u32 mask, u32 expected,
			      u32 actual, struct ib_sig_err *err)
{
	if (!((expected ^ actual) & mask))
		return false;
	err->err_type = type;
	err->expected = expected;
	err->actual = actual;
	return true;
}

bool sroce_dif_check(const struct ib_t10_dif_domain *dif, u8 mask,
		     const struct sroce_pi *pi, __be16 guard, u32 block,
		     struct ib_sig_err *err)
{
	return !sroce_dif_differs(IB_SIG_BAD_GUARD,
				  sroce_dif_bytes(mask >> 6, 2),
				  be16_to_cpu(guard), be16_to_cpu(pi->guard),
				  err) &&
	       !sroce_dif_differs(IB_SIG_BAD_REFTAG, sroce_dif_bytes(mask, 4),
				  sroce_dif_ref(dif, block),
				  be32_to_cpu(pi->ref), err) &&
	       !sroce_dif_differs(IB_SIG_BAD_APPTAG,
				  sroce_dif_bytes(mask >> 4, 2) &
				  dif->apptag_check_mask, dif->app_tag,
				  be16_to_cpu(pi->app), err);
}

void sroce_dif_make(const struct ib_t10_dif_domain *dif, __be16 guard,
		    u32 block, struct sroce_pi *pi)
{
	pi->guard = guard;
	pi->app = cpu_to_be16(dif->app_tag);
	pi->ref = cpu_to_be32(sroce_dif_ref(dif, block));
}

void sroce_dif_pass(const struct ib_t10_dif_domain *from,
		    const struct ib_t10_dif_domain *to, u32 block,
		    const struct sroce_pi *in, struct sroce_pi *out)
{
	out->app = from->app_tag == to->app_tag ? in->app :
						  cpu_to_be16(to->app_tag);
	out->ref = from->ref_tag == to->ref_tag &&
		   from->ref_remap == to->ref_remap ?
		   in->ref : cpu_to_be32(sroce_dif_ref(to, block));
}
