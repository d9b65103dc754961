/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of this directory share about keys and rights.
 */
#ifndef SROCE_MEMORY_INTERNAL_H
#define SROCE_MEMORY_INTERNAL_H

#include "compat.h"
#include "memory/mr.h"

#define SROCE_KEY_BYTE 0xff		/* the part of a key that consumers choose */
#define SROCE_KEY_INDEX_SHIFT 8
#define SROCE_KEY_TRIES 64

#define SROCE_REMOTE_ACCESS (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
			     IB_ACCESS_REMOTE_ATOMIC)
/* Remote rights that change memory: they need the local write right, too (C10-74) */
#define SROCE_REMOTE_CHANGE (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/**
 * sroce_mr_insert() - give a region a key that nobody has
 * @mr: region; its table is set
 * @choose: a random key
 *
 * Context: process.
 * Return: 0, -ENOSPC when no free one was found, -ENOMEM.
 */
int sroce_mr_insert(struct sroce_mr *mr, u32 (*choose)(void));

/* All checks of sroce_mr_use(); 0 or its errno */
int sroce_mr_check(const struct sroce_mr *mr, u32 key, const struct ib_pd *pd,
		   int access, u64 va, u64 len);

/* The bounds of a region, without wrapping near 2^64; 0, -ERANGE or -EINVAL */
int sroce_mr_check_range(const struct sroce_mr *mr, int access, u64 va,
			 u64 len);

#endif
