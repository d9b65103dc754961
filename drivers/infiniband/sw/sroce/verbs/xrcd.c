// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC domains: nothing but what target QPs and shared receive queues have in
 * common. ib_core counts both, and knows which file a domain belongs to.
 */
#include "verbs/compat.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

int sroce_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	return err ?: sroce_quota_take(to_sroce_device(ibxrcd->device),
				       SROCE_OBJECT_XRCD, udata);
}

int sroce_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	sroce_quota_give(to_sroce_device(ibxrcd->device), SROCE_OBJECT_XRCD);
	return 0;
}
