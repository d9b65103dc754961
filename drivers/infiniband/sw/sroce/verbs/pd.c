// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains. They are only compared by address, so there is nothing
 * to set up.
 */
#include "verbs/verbs.h"

int sroce_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return ib_no_udata_io(udata);
}

int sroce_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return ib_no_udata_io(udata);
}
