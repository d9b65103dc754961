// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory on demand of one side of a pair.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>

#include "memory/odp.h"
#include "tests/side_demand.h"
#include "tests/transport_pair.h"

struct sroce_mr *side_demand_create(struct side *s, u64 bytes, u64 skew)
{
	struct kunit *test = s->pair->test;
	struct sroce_mr *mr;
	unsigned long start;

	start = kunit_vm_mmap(test, NULL, 0, bytes, PROT_READ | PROT_WRITE,
			      MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, start, 0);
	mr = sroce_mr_alloc(&s->port.mrs, &s->pd, SROCE_MR_ON_DEMAND, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mr->odp = sroce_odp_create(start + skew, bytes - skew);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr->odp);
	mr->offset = sroce_odp_offset(mr->odp);
	mr->iova = start + skew;
	mr->length = bytes - skew;
	mr->access = PAIR_MR_ACCESS;
	sroce_mr_publish(mr);
	return mr;
}

void side_demand_free(struct sroce_mr *mr)
{
	struct sroce_odp *odp = mr->odp;

	sroce_mr_free(mr);
	sroce_odp_destroy(odp, true);
}
