// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets of a train whose headers are the same but for the PSN: see alike.h. The
 * sender's side: net/xmit.c asks how many there are, net/pack.c makes them.
 */
#include <linux/string.h>

#include "wire/alike.h"

#define BTH_PSN_OFFSET 8

u32 sroce_train_alike(const struct sroce_train *t, u32 k)
{
	u32 end = t->npkts;

	if (!k && t->flags & SROCE_START)
		return 1;
	/* The last one may have flags that others have not, and be shorter */
	if (t->flags & SROCE_TRAIN_TAIL || t->bi.bi_size != end * t->mtu)
		end--;
	return end > k ? end - k : 1;
}

void sroce_alike_encode(const struct sroce_train *t, u32 k, const void *before,
			u32 hdr_len, void *buf)
{
	memcpy(buf, before, hdr_len);
	/* No more than the PSN: only the last packet of a train asks for an ACK */
	put_unaligned_be32(sroce_psn_add(t->psn, k), buf + BTH_PSN_OFFSET);
}
