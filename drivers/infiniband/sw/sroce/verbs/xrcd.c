// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC domains: nothing but what target QPs and shared receive queues have in
 * common. ib_core counts both, and knows which file a domain belongs to.
 */
#include "verbs/verbs.h"

int sroce_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return ib_no_udata_io(udata);
}

int sroce_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return ib_no_udata_io(udata);
}
