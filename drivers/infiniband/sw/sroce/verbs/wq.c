// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work queues, which are receive queues of raw packets, and tables of them: what ib_core
 * calls. A table says which of its queues there are; the hash that chooses one of them
 * comes with the queue pair that is made of it (verbs/qp.c).
 *
 * To the transport a work queue is a QP that posts nothing.
 */
#include <linux/slab.h>

#include "raw/raw.h"
#include "verbs/compat.h"
#include "verbs/doorbell.h"
#include "verbs/limits.h"
#include "verbs/mmap.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

/* --- create ----------------------------------------------------------------- */

static int sroce_wq_check_init(struct ib_device *ibdev,
			       const struct ib_wq_init_attr *init)
{
	if (init->wq_type != IB_WQT_RQ ||
	    init->create_flags & ~IB_WQ_FLAGS_CVLAN_STRIPPING) {
		ibdev_dbg(ibdev, "create_wq: type %d, flags %#x\n",
			  init->wq_type, init->create_flags);
		return -EOPNOTSUPP;
	}
	/* ib_core takes a request that names none, and hands on the error of that */
	if (IS_ERR_OR_NULL(init->cq) || init->max_wr > SROCE_MAX_QP_WR ||
	    init->max_sge > SROCE_MAX_SGE) {
		ibdev_dbg(ibdev, "create_wq: %u of %u\n", init->max_wr,
			  init->max_sge);
		return -EINVAL;
	}
	return 0;
}

static void sroce_wq_init_qp(const struct ib_wq_init_attr *init,
			     struct ib_qp_init_attr *to)
{
	*to = (struct ib_qp_init_attr){
		.qp_type = IB_QPT_RAW_PACKET,
		.recv_cq = init->cq,
		.cap.max_recv_wr = init->max_wr,
		.cap.max_recv_sge = init->max_sge,
	};
	if (init->create_flags & IB_WQ_FLAGS_CVLAN_STRIPPING)
		to->create_flags = IB_QP_CREATE_CVLAN_STRIPPING;
}

static int sroce_wq_user_map(struct sroce_wq_obj *obj, struct ib_udata *udata)
{
	struct sroce_create_wq_resp resp = {};
	struct sroce_ring_info sq;
	struct sroce_mmap *map;
	int err;

	map = sroce_mmap_add_pair(sroce_udata_context(udata),
				  &obj->qp->req.ring, &obj->qp->resp.ring, &sq,
				  &resp.rq);
	if (IS_ERR(map))
		return PTR_ERR(map);
	obj->map = map;
	err = ib_respond_udata(udata, resp);
	if (err)
		sroce_mmap_remove(map);
	return err;
}

static int sroce_wq_make(struct sroce_wq_obj *obj, struct ib_pd *ibpd,
			 struct ib_wq_init_attr *init, struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibpd->device);
	struct sroce_ucontext *uctx = sroce_udata_context(udata);
	struct ib_qp_init_attr qp_init;
	int err;

	mutex_init(&obj->lock);
	sroce_wq_init_qp(init, &qp_init);
	obj->shadow.device = ibpd->device;
	obj->shadow.pd = ibpd;
	obj->shadow.qp_type = IB_QPT_RAW_PACKET;
	obj->qp = sroce_qp_create(&dev->port, &obj->shadow, &qp_init,
				  uctx->doorbell, &uctx->pool);
	if (IS_ERR(obj->qp))
		return PTR_ERR(obj->qp);
	obj->shadow.qp_num = obj->qp->qpn;
	obj->ibwq.wq_num = obj->qp->qpn;
	obj->ibwq.state = IB_WQS_RESET;
	init->max_wr = qp_init.cap.max_recv_wr;
	init->max_sge = qp_init.cap.max_recv_sge;
	err = sroce_wq_user_map(obj, udata);
	if (err)
		sroce_qp_destroy(obj->qp);
	return err;
}

static struct sroce_wq_obj *sroce_wq_create(struct ib_pd *ibpd,
					    struct ib_wq_init_attr *init,
					    struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibpd->device);
	struct sroce_wq_obj *obj;
	int err;

	err = sroce_quota_take(dev, SROCE_OBJECT_QP, true);
	if (err)
		return ERR_PTR(err);
	obj = kzalloc_obj(*obj, GFP_KERNEL_ACCOUNT);
	err = obj ? sroce_wq_make(obj, ibpd, init, udata) : -ENOMEM;
	if (!err)
		return obj;
	kfree(obj);
	sroce_quota_give(dev, SROCE_OBJECT_QP);
	return ERR_PTR(err);
}

struct ib_wq *sroce_ib_create_wq(struct ib_pd *ibpd,
				 struct ib_wq_init_attr *init,
				 struct ib_udata *udata)
{
	struct ib_device *ibdev = ibpd->device;
	struct sroce_wq_obj *obj;
	u64 net_cookie;
	int err;

	if (!udata)
		return ERR_PTR(-EOPNOTSUPP);
	err = sroce_wq_check_init(ibdev, init);
	if (!err)
		err = sroce_udata_check_reserved(ibdev, udata, "create_wq");
	if (!err)
		err = sroce_raw_allowed(to_sroce_device(ibdev)->port.net.raw,
					&net_cookie);
	if (err)
		return ERR_PTR(err);
	obj = sroce_wq_create(ibpd, init, udata);
	if (IS_ERR(obj))
		return ERR_CAST(obj);
	obj->qp->net_cookie = net_cookie;
	return &obj->ibwq;
}

int sroce_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibwq->device);
	struct sroce_wq_obj *obj = to_sroce_wq(ibwq);

	sroce_mmap_remove(obj->map);
	if (sroce_device_going(ibwq->device)) {
		sroce_qp_flush(obj->qp);
		/* From now on doorbells fail: nobody shall wait for what is posted */
		sroce_doorbell_shut(obj->qp->owner);
	}
	sroce_qp_destroy(obj->qp);
	kfree(obj);
	sroce_quota_give(dev, SROCE_OBJECT_QP);
	return 0;
}

/* --- modify ----------------------------------------------------------------- */

/* It receives, and has nothing to send */
static enum ib_qp_state sroce_wq_qp_state(enum ib_wq_state state)
{
	switch (state) {
	case IB_WQS_RDY:
		return IB_QPS_RTR;
	case IB_WQS_ERR:
		return IB_QPS_ERR;
	default:
		return IB_QPS_RESET;
	}
}

static enum ib_wq_state sroce_wq_state(const struct sroce_qp *qp)
{
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RESET:
		return IB_WQS_RESET;
	case IB_QPS_ERR:
		return IB_WQS_ERR;
	default:
		return IB_WQS_RDY;
	}
}

/* A queue that has failed begins anew, and one that is new has nothing to fail with */
static bool sroce_wq_may_go(enum ib_wq_state from, enum ib_wq_state to)
{
	if (to == IB_WQS_RDY)
		return from != IB_WQS_ERR;
	if (to == IB_WQS_ERR)
		return from != IB_WQS_RESET;
	return true;
}

static int sroce_wq_modify_state(struct sroce_wq_obj *obj,
				 const struct ib_wq_attr *attr, u32 mask)
{
	enum ib_wq_state is = sroce_wq_state(obj->qp);
	struct ib_qp_attr to = {
		.qp_state = sroce_wq_qp_state(attr->wq_state),
	};
	int err;

	if (mask & IB_WQ_CUR_STATE && attr->curr_wq_state != is)
		return -EINVAL;
	if (!(mask & IB_WQ_STATE) || attr->wq_state == is)
		return 0;
	if (!sroce_wq_may_go(is, attr->wq_state))
		return -EINVAL;
	err = sroce_qp_modify(obj->qp, &to, IB_QP_STATE, NULL);
	if (!err)
		obj->ibwq.state = attr->wq_state;
	return err;
}

static int sroce_wq_do_modify(struct sroce_wq_obj *obj,
			      const struct ib_wq_attr *attr, u32 mask)
{
	int err = sroce_wq_modify_state(obj, attr, mask);

	if (!err && mask & IB_WQ_FLAGS && attr->flags_mask)
		sroce_qp_strip_vlan(obj->qp, attr->flags &
				    IB_WQ_FLAGS_CVLAN_STRIPPING);
	return err;
}

int sroce_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		       struct ib_udata *udata)
{
	struct sroce_wq_obj *obj = to_sroce_wq(ibwq);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (mask & IB_WQ_FLAGS &&
	    attr->flags_mask & ~IB_WQ_FLAGS_CVLAN_STRIPPING) {
		ibdev_dbg(ibwq->device, "modify_wq: flags %#x\n",
			  attr->flags_mask);
		return -EOPNOTSUPP;
	}
	mutex_lock(&obj->lock);
	err = sroce_wq_do_modify(obj, attr, mask);
	mutex_unlock(&obj->lock);
	return err;
}

/* --- tables ----------------------------------------------------------------- */

/* ib_core keeps the list of queues, and holds them */
int sroce_ib_create_rwq_ind_table(struct ib_rwq_ind_table *table,
				  struct ib_rwq_ind_table_init_attr *init,
				  struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (init->log_ind_tbl_size > SROCE_MAX_LOG_IND_TABLE) {
		ibdev_dbg(table->device, "create_rwq_ind_table: 2^%u entries\n",
			  init->log_ind_tbl_size);
		return -EINVAL;
	}
	return sroce_quota_take(to_sroce_device(table->device),
				SROCE_OBJECT_IND_TABLE, true);
}

int sroce_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *table)
{
	sroce_quota_give(to_sroce_device(table->device),
			 SROCE_OBJECT_IND_TABLE);
	return 0;
}
