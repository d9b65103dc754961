// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains. There is nothing to set up: all is 0 (memory/pd.h).
 */
#include "verbs/compat.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

int sroce_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	return err ?: sroce_quota_take(to_sroce_device(ibpd->device),
				       SROCE_OBJECT_PD, udata);
}

/*
 * Whatever destroys an object does not look at the driver data: when the answer
 * to the command that made the object cannot be written, ib_core has it undone
 * with that command's data, and takes every refusal for a driver that fails.
 */
int sroce_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	sroce_quota_give(to_sroce_device(ibpd->device), SROCE_OBJECT_PD);
	return 0;
}
