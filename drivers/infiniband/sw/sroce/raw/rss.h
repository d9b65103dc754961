/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive side scaling: which of several work queues a frame is for.
 */
#ifndef SROCE_RAW_RSS_H
#define SROCE_RAW_RSS_H

#include <linux/types.h>
#include <rdma/sroce-abi.h>

#include "raw/frame.h"

struct sroce_qp;
struct sroce_rss;

/* Bytes that are hashed at most: two IPv6 addresses and two ports */
#define SROCE_RSS_INPUT 36

/**
 * struct sroce_toeplitz - a key, prepared
 * @part: what each half byte of the input adds to the hash, in the input's order
 */
struct sroce_toeplitz {
	u32 part[SROCE_RSS_INPUT * 2][16];
};

/* Prepare a key of SROCE_RX_HASH_KEY_LEN bytes */
void sroce_toeplitz_init(struct sroce_toeplitz *t, const u8 *key);

/* The hash of @len bytes, SROCE_RSS_INPUT at most */
u32 sroce_toeplitz_hash(const struct sroce_toeplitz *t, const u8 *data,
			u32 len);

/* Memory of a table of so many entries */
size_t sroce_rss_bytes(u32 n);

/**
 * sroce_rss_create() - make a table of work queues
 * @fields: SROCE_RX_HASH_*, of what a frame has
 * @key: of the hash, SROCE_RX_HASH_KEY_LEN bytes
 * @n: entries of the table, a power of two
 *
 * The caller fills it by sroce_rss_set().
 *
 * Context: process.
 * Return: the table, or NULL.
 */
struct sroce_rss *sroce_rss_create(u64 fields, const u8 *key, u32 n);

/* Let a work queue, which the table will hold, be entry @i. Context: nobody uses it yet. */
void sroce_rss_set(struct sroce_rss *rss, u32 i, struct sroce_qp *wq);

/* No flow leads to it any more; who has found it under RCU goes on. NULL is fine. */
void sroce_rss_free(struct sroce_rss *rss);

/* What a frame is hashed to. Context: RCU. */
u32 sroce_rss_hash(const struct sroce_rss *rss,
		   const struct sroce_flow_key *key);

/* The work queue of a frame. Context: RCU. */
struct sroce_qp *sroce_rss_select(const struct sroce_rss *rss,
				  const struct sroce_flow_key *key);

#endif
