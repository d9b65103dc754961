// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive side scaling as network cards have it, and "ethtool -x" shows it: the Toeplitz
 * hash of addresses and ports, of which the low bits choose an entry of a table.
 *
 * The hash is linear: what a half byte of the input adds to it depends on its value and its
 * place only, so it is looked up, instead of shifting the key for each bit.
 *
 * A frame is hashed by those of its fields that were asked for, in the order of the header:
 * addresses, then ports. One that has none of them is for the first entry. A fragment has no
 * ports, so that all of a datagram go the same way only where ports were not asked for.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "compat.h"
#include "raw/rss.h"
#include "transport/seam.h"

/**
 * struct sroce_rss - a table of work queues
 * @toeplitz: key
 * @fields: SROCE_RX_HASH_*
 * @n: entries, a power of two
 * @rcu: freed after a grace period
 * @wqs: entries, each held
 */
struct sroce_rss {
	struct sroce_toeplitz toeplitz;
	u64 fields;
	u32 n;
	struct rcu_head rcu;
	struct sroce_qp *wqs[];
};

/* --- hash ------------------------------------------------------------------- */

/* The 32 bits of the key from bit @bit on; behind its end are zeros */
static u32 sroce_toeplitz_window(const u8 *key, u32 bit)
{
	u64 bits = 0;
	u32 i;

	for (i = 0; i < 8; i++)
		bits = bits << 8 | (bit / 8 + i < SROCE_RX_HASH_KEY_LEN ?
				    key[bit / 8 + i] : 0);
	return bits << bit % 8 >> 32;
}

static u32 sroce_toeplitz_part(const u8 *key, u32 place, u32 value)
{
	u32 hash = 0;
	u32 bit;

	for (bit = 0; bit < 4; bit++)
		if (value & 8 >> bit)
			hash ^= sroce_toeplitz_window(key, place * 4 + bit);
	return hash;
}

void sroce_toeplitz_init(struct sroce_toeplitz *t, const u8 *key)
{
	u32 place, value;

	for (place = 0; place < ARRAY_SIZE(t->part); place++)
		for (value = 0; value < 16; value++)
			t->part[place][value] = sroce_toeplitz_part(key, place,
								    value);
}

u32 sroce_toeplitz_hash(const struct sroce_toeplitz *t, const u8 *data, u32 len)
{
	u32 hash = 0;
	u32 i;

	for (i = 0; i < len; i++)
		hash ^= t->part[2 * i][data[i] >> 4] ^
			t->part[2 * i + 1][data[i] & 15];
	return hash;
}

/* --- input ------------------------------------------------------------------ */

struct sroce_rss_input {
	u8 data[SROCE_RSS_INPUT];
	u32 len;
};

static void sroce_rss_add(struct sroce_rss_input *in, bool wanted,
			  const void *data, u32 len)
{
	if (!wanted)
		return;
	memcpy(in->data + in->len, data, len);
	in->len += len;
}

static void sroce_rss_addresses(struct sroce_rss_input *in, u64 fields,
				const struct sroce_flow_key *key)
{
	if (key->has & SROCE_HAS_IPV4) {
		sroce_rss_add(in, fields & SROCE_RX_HASH_SRC_IPV4,
			      &key->saddr[3], sizeof(key->saddr[3]));
		sroce_rss_add(in, fields & SROCE_RX_HASH_DST_IPV4,
			      &key->daddr[3], sizeof(key->daddr[3]));
	} else if (key->has & SROCE_HAS_IPV6) {
		sroce_rss_add(in, fields & SROCE_RX_HASH_SRC_IPV6, key->saddr,
			      sizeof(key->saddr));
		sroce_rss_add(in, fields & SROCE_RX_HASH_DST_IPV6, key->daddr,
			      sizeof(key->daddr));
	}
}

static void sroce_rss_ports(struct sroce_rss_input *in, u64 fields,
			    const struct sroce_flow_key *key)
{
	u64 src = 0, dst = 0;

	if (key->has & SROCE_HAS_TCP) {
		src = SROCE_RX_HASH_SRC_PORT_TCP;
		dst = SROCE_RX_HASH_DST_PORT_TCP;
	} else if (key->has & SROCE_HAS_UDP) {
		src = SROCE_RX_HASH_SRC_PORT_UDP;
		dst = SROCE_RX_HASH_DST_PORT_UDP;
	}
	sroce_rss_add(in, fields & src, &key->sport, sizeof(key->sport));
	sroce_rss_add(in, fields & dst, &key->dport, sizeof(key->dport));
}

u32 sroce_rss_hash(const struct sroce_rss *rss,
		   const struct sroce_flow_key *key)
{
	struct sroce_rss_input in = {};

	sroce_rss_addresses(&in, rss->fields, key);
	sroce_rss_ports(&in, rss->fields, key);
	return sroce_toeplitz_hash(&rss->toeplitz, in.data, in.len);
}

/* --- table ------------------------------------------------------------------ */

struct sroce_qp *sroce_rss_select(const struct sroce_rss *rss,
				  const struct sroce_flow_key *key)
{
	return rss->wqs[sroce_rss_hash(rss, key) & (rss->n - 1)];
}

size_t sroce_rss_bytes(u32 n)
{
	const struct sroce_rss *rss = NULL;

	return struct_size(rss, wqs, n);
}

struct sroce_rss *sroce_rss_create(u64 fields, const u8 *key, u32 n)
{
	struct sroce_rss *rss = kvzalloc(sroce_rss_bytes(n),
					 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	if (!rss)
		return NULL;
	sroce_toeplitz_init(&rss->toeplitz, key);
	rss->fields = fields;
	rss->n = n;
	return rss;
}

void sroce_rss_set(struct sroce_rss *rss, u32 i, struct sroce_qp *wq)
{
	sroce_qp_hold(wq);
	rss->wqs[i] = wq;
}

static void sroce_rss_free_rcu(struct rcu_head *rcu)
{
	struct sroce_rss *rss = container_of(rcu, struct sroce_rss, rcu);
	u32 i;

	for (i = 0; i < rss->n; i++)
		if (rss->wqs[i])
			sroce_qp_put(rss->wqs[i]);
	kvfree(rss);
}

void sroce_rss_free(struct sroce_rss *rss)
{
	if (rss)
		call_rcu(&rss->rcu, sroce_rss_free_rcu);
}
