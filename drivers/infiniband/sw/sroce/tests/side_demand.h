/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory on demand of one side of a pair: for the tests of transport/ whose messages
 * meet pages that are missing.
 */
#ifndef SROCE_TESTS_SIDE_DEMAND_H
#define SROCE_TESTS_SIDE_DEMAND_H

#include <linux/types.h>

struct side;
struct sroce_mr;

/*
 * A region on demand, with a key and PAIR_MR_ACCESS, of memory that the test's process
 * maps anew: no page is there. It begins @skew bytes behind the mapping of @bytes.
 */
struct sroce_mr *side_demand_create(struct side *s, u64 bytes, u64 skew);
void side_demand_free(struct sroce_mr *mr);

#endif
