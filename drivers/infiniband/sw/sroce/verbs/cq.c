// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: what ib_core calls. How they are filled is in
 * transport/cq.c.
 */
#include <linux/mutex.h>
#include <linux/nospec.h>

#include "verbs/compat.h"
#include "verbs/limits.h"
#include "verbs/mmap.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

#define SROCE_CQ_FLAGS							\
	(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |			\
	 IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)

static bool sroce_kernel_vectors;
module_param_named(kernel_vectors, sroce_kernel_vectors, bool, 0644);
MODULE_PARM_DESC(kernel_vectors,
		 "Completions of the kernel's own users (NVMe-oF, iSER and the like) on the processors that they ask for; read when a completion queue is made (default: N)");

static int sroce_cq_check_attr(struct ib_device *ibdev,
			       const struct ib_cq_init_attr *attr)
{
	if (attr->flags & ~SROCE_CQ_FLAGS) {
		ibdev_dbg(ibdev, "create_cq: flags %#x\n", attr->flags);
		return -EOPNOTSUPP;
	}
	if (!attr->cqe || attr->cqe > SROCE_MAX_CQE ||
	    attr->comp_vector >= ibdev->num_comp_vectors) {
		ibdev_dbg(ibdev, "create_cq: %u entries, vector %u\n",
			  attr->cqe, attr->comp_vector);
		return -EINVAL;
	}
	return 0;
}

static int sroce_cq_user_flags(struct sroce_cq *cq, struct ib_udata *udata)
{
	struct sroce_create_cq_req req;
	int err;

	err = ib_copy_validate_udata_in(udata, req, reserved);
	if (err)
		return err;
	if (req.reserved || req.flags & ~SROCE_CREATE_CQ_TIMESTAMP) {
		ibdev_dbg(cq->ibcq.device, "create_cq: unknown request\n");
		return -EOPNOTSUPP;
	}
	if (req.flags & SROCE_CREATE_CQ_TIMESTAMP)
		cq->timestamp = true;
	return 0;
}

static int sroce_cq_user_map(struct sroce_cq_obj *obj,
			     struct sroce_ucontext *uctx,
			     struct ib_udata *udata)
{
	struct sroce_create_cq_resp resp = {};
	int err;

	obj->map = sroce_mmap_add(uctx, &obj->cq.ring, &resp.ring);
	if (IS_ERR(obj->map))
		return PTR_ERR(obj->map);
	err = ib_respond_udata(udata, resp);
	if (err)
		sroce_mmap_remove(obj->map);
	return err;
}

/*
 * ib_core spreads the queues of kernel users over the vectors without being asked, and to
 * interrupt another CPU costs something: so for them it is the administrator who decides
 */
static u32 sroce_cq_vector(const struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			   struct ib_udata *udata)
{
	if (!udata && !READ_ONCE(sroce_kernel_vectors))
		return 0;
	return array_index_nospec(attr->comp_vector, ibcq->device->num_comp_vectors);
}

static int sroce_cq_make(struct sroce_cq_obj *obj,
			 const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata)
{
	struct sroce_cq *cq = &obj->cq;
	struct ib_cq *ibcq = &cq->ibcq;
	int err;

	mutex_init(&obj->lock);
	cq->user = udata;
	cq->timestamp = attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	cq->ignore_overrun = attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	cq->vector = sroce_cq_vector(ibcq, attr, udata);
	if (udata) {
		err = sroce_cq_user_flags(cq, udata);
		if (err)
			return err;
	}
	err = sroce_cq_init(cq, &to_sroce_device(ibcq->device)->port,
			    attr->cqe);
	if (err)
		return err;
	ibcq->cqe = sroce_ring_entries(&cq->ring);
	if (!udata)
		return 0;
	err = sroce_cq_user_map(obj, sroce_udata_context(udata), udata);
	if (err)
		sroce_cq_cleanup(cq);
	return err;
}

int sroce_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct sroce_device *dev = to_sroce_device(ibcq->device);
	int err;

	err = sroce_cq_check_attr(ibcq->device, attr);
	if (!err)
		err = sroce_quota_take(dev, SROCE_OBJECT_CQ, udata);
	if (err)
		return err;
	err = sroce_cq_make(to_sroce_cq_obj(ibcq), attr, udata);
	if (err)
		sroce_quota_give(dev, SROCE_OBJECT_CQ);
	return err;
}

static int sroce_cq_resize_prepare(struct sroce_cq_obj *obj, u32 entries,
				   struct ib_udata *udata)
{
	struct sroce_resize_cq_resp resp = {};
	struct sroce_successor next;
	int err;

	err = sroce_successor_make(&next, sroce_udata_context(udata), entries,
				   sizeof(struct sroce_cqe), &resp.ring);
	if (err)
		return err;
	err = ib_respond_udata(udata, resp);
	if (err)
		sroce_successor_drop(&next);
	else
		sroce_successor_replace(&obj->next, &obj->lock, &next);
	return err;
}

/* For sroce_successor_finish() */
static int sroce_cq_resize_move(struct sroce_successor *next)
{
	struct sroce_cq_obj *obj = container_of(next, struct sroce_cq_obj, next);
	int err;

	if (!sroce_successor_follows(next, &obj->cq.ring))
		return -EACCES;
	err = sroce_cq_resize(&obj->cq, &next->ring);
	if (err)
		return err;
	swap(obj->map, next->map);
	obj->cq.ibcq.cqe = sroce_ring_entries(&obj->cq.ring);
	return 0;
}

int sroce_ib_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe,
			    struct ib_udata *udata)
{
	struct sroce_cq_obj *obj = to_sroce_cq_obj(ibcq);
	struct sroce_resize_cq_req req;
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	err = ib_copy_validate_udata_in(udata, req, reserved);
	if (err)
		return err;
	if (req.reserved)
		return -EOPNOTSUPP;
	if (!cqe || cqe > SROCE_MAX_CQE) {
		ibdev_dbg(ibcq->device, "resize_cq: %u entries\n", cqe);
		return -EINVAL;
	}
	if (req.step == SROCE_RESIZE_PREPARE)
		return sroce_cq_resize_prepare(obj, cqe, udata);
	return sroce_successor_finish(&obj->next, &obj->lock, req.step,
				      sroce_cq_resize_move);
}

int sroce_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	sroce_cq_moderate(to_sroce_cq(ibcq), count, period);
	return 0;
}

int sroce_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct sroce_cq_obj *obj = to_sroce_cq_obj(ibcq);

	sroce_successor_end(&obj->next, obj->map);
	sroce_cq_cleanup(&obj->cq);
	sroce_quota_give(to_sroce_device(ibcq->device), SROCE_OBJECT_CQ);
	return 0;
}

/* A process polls and arms its queues in its own memory */
int sroce_ib_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct sroce_cq *cq = to_sroce_cq(ibcq);

	if (cq->user)
		return -EOPNOTSUPP;
	return sroce_cq_poll(cq, n, wc);
}

int sroce_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct sroce_cq *cq = to_sroce_cq(ibcq);

	if (cq->user)
		return -EOPNOTSUPP;
	return sroce_cq_arm(cq, flags);
}
