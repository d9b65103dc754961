// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: what ib_core calls. They are bound by the send queue, see
 * memory/mw.c.
 */
#include "memory/mw.h"
#include "verbs/compat.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

int sroce_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibmw->device);
	struct sroce_mr *mw;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2) {
		ibdev_dbg(ibmw->device, "alloc_mw: type %d\n", ibmw->type);
		return -EINVAL;
	}
	err = sroce_quota_take(dev, SROCE_OBJECT_MW, udata);
	if (err)
		return err;
	mw = sroce_mw_alloc(&dev->port.mrs, ibmw->pd,
			    ibmw->type == IB_MW_TYPE_2);
	if (IS_ERR(mw)) {
		sroce_quota_give(dev, SROCE_OBJECT_MW);
		return PTR_ERR(mw);
	}
	to_sroce_mw_obj(ibmw)->mw = mw;
	ibmw->rkey = mw->key;
	return 0;
}

int sroce_ib_dealloc_mw(struct ib_mw *ibmw)
{
	sroce_device_going(ibmw->device);
	sroce_mr_free(to_sroce_mw_obj(ibmw)->mw);
	sroce_quota_give(to_sroce_device(ibmw->device), SROCE_OBJECT_MW);
	return 0;
}
