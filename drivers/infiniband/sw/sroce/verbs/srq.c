// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: what ib_core calls. How they are emptied is in
 * transport/srq.c.
 */
#include <linux/mutex.h>
#include <linux/uaccess.h>

#include "lock.h"
#include "verbs/limits.h"
#include "verbs/mmap.h"
#include "verbs/verbs.h"

static int sroce_check_srq_attr(struct ib_device *ibdev,
				const struct ib_srq_init_attr *init, bool user)
{
	const struct ib_srq_attr *attr = &init->attr;

	/* In the kernel nobody uses XRC */
	if (init->srq_type != IB_SRQT_BASIC &&
	    (init->srq_type != IB_SRQT_XRC || !user)) {
		ibdev_dbg(ibdev, "create_srq: type %d\n", init->srq_type);
		return -EOPNOTSUPP;
	}
	if (!attr->max_wr || attr->max_wr > SROCE_MAX_SRQ_WR ||
	    attr->max_sge > SROCE_MAX_SGE ||
	    attr->srq_limit > attr->max_wr) {
		ibdev_dbg(ibdev, "create_srq: %u entries of %u, limit %u\n",
			  attr->max_wr, attr->max_sge, attr->srq_limit);
		return -EINVAL;
	}
	return 0;
}

static int sroce_check_srq_req(struct ib_udata *udata)
{
	struct sroce_create_srq_req req;
	int err;

	if (!udata)
		return 0;
	err = ib_copy_validate_udata_in(udata, req, reserved);
	if (err)
		return err;
	return req.reserved ? -EOPNOTSUPP : 0;
}

static u32 sroce_srq_entry_size(u32 max_sge)
{
	return sizeof(struct sroce_recv_wqe) +
	       max_sge * sizeof(struct sroce_sge);
}

static int sroce_srq_init(struct sroce_srq *srq, struct sroce_device *dev,
			  struct ib_srq_attr *attr)
{
	int err;

	srq->port = &dev->port;
	spin_lock_init(&srq->lock);
	/* a work request of no elements takes a message of no bytes */
	srq->max_sge = max(attr->max_sge, 1U);
	srq->limit = attr->srq_limit;
	err = sroce_ring_alloc(&srq->ring, attr->max_wr,
			       sroce_srq_entry_size(srq->max_sge));
	if (err)
		return err;
	attr->max_wr = sroce_ring_entries(&srq->ring);
	attr->max_sge = srq->max_sge;
	return 0;
}

static int sroce_user_srq_map(struct sroce_srq_obj *obj, struct ib_udata *udata)
{
	struct sroce_create_srq_resp resp = { .srqn = obj->srq.srqn };
	int err;

	obj->map = sroce_mmap_add(sroce_udata_context(udata), &obj->srq.ring,
				  &resp.ring);
	if (IS_ERR(obj->map))
		return PTR_ERR(obj->map);
	err = ib_respond_udata(udata, resp);
	if (err)
		sroce_mmap_remove(obj->map);
	return err;
}

/* Nobody names it before its number is known: that it has no mapping yet is fine */
static int sroce_srq_init_xrc(struct sroce_srq *srq,
			      const struct ib_srq_init_attr *init)
{
	int err;

	if (init->srq_type != IB_SRQT_XRC)
		return 0;
	srq->xrcd = init->ext.xrc.xrcd;
	srq->cq = to_sroce_cq(init->ext.cq);
	err = sroce_srq_publish(srq);
	srq->ibsrq.ext.xrc.srq_num = srq->srqn;
	return err;
}

static void sroce_srq_end(struct sroce_srq *srq)
{
	if (srq->xrcd)
		sroce_srq_unpublish(srq);
	sroce_ring_free(&srq->ring);
}

int sroce_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibsrq->device);
	struct sroce_srq_obj *obj = to_sroce_srq_obj(ibsrq);
	int err;

	err = sroce_check_srq_attr(ibsrq->device, init, udata);
	if (!err)
		err = sroce_check_srq_req(udata);
	if (err)
		return err;
	mutex_init(&obj->lock);
	obj->srq.user = udata;
	err = sroce_srq_init(&obj->srq, dev, &init->attr);
	if (err)
		return err;
	err = sroce_srq_init_xrc(&obj->srq, init);
	if (err) {
		sroce_ring_free(&obj->srq.ring);
		return err;
	}
	if (udata)
		err = sroce_user_srq_map(obj, udata);
	if (err)
		sroce_srq_end(&obj->srq);
	return err;
}

/*
 * Put @to in the place of the ring, with what is waiting in it at the same
 * indices; @to becomes the old ring.
 */
static int sroce_srq_swap(struct sroce_srq *srq, struct sroce_ring *to)
{
	struct sroce_ring *ring = &srq->ring;
	u32 i, n = sroce_ring_pending(ring);

	if (n > sroce_ring_entries(to) || srq->limit > sroce_ring_entries(to))
		return -EINVAL;
	for (i = ring->index; i != ring->index + n; i++)
		memcpy(sroce_ring_entry(to, i), sroce_ring_entry(ring, i),
		       ring->stride);
	to->index = ring->index;
	to->hdr->cons = ring->index;
	/* Pairs with a producer that maps it: what is there comes first */
	smp_store_release(&to->hdr->prod, ring->index + n);
	swap(*ring, *to);
	return 0;
}

static int sroce_srq_move(struct sroce_srq_obj *obj, struct sroce_ring *to,
			  struct sroce_mmap *map)
{
	struct sroce_srq *srq = &obj->srq;
	unsigned long irq;
	int err;

	irq = sroce_lock(&srq->lock, srq->user);
	err = sroce_srq_swap(srq, to);
	sroce_unlock(&srq->lock, srq->user, irq);
	if (err)
		return err;
	sroce_mmap_remove(obj->map);
	obj->map = map;
	if (map)
		sroce_mmap_open(map, &obj->srq.ring);
	return 0;
}

/* This command has no response of the driver's: the request says where to */
static int sroce_check_modify_req(struct ib_udata *udata,
				  struct sroce_modify_srq_req *req)
{
	if (!udata || !udata->inlen)
		return 0;
	return ib_copy_validate_udata_in(udata, *req, resp_addr);
}

/* As for a completion queue: the answer first, then nothing may fail */
static int sroce_srq_move_user(struct sroce_srq_obj *obj, struct sroce_ring *to,
			       struct sroce_ucontext *uctx, u64 resp_addr)
{
	struct sroce_modify_srq_resp resp = {};
	struct sroce_mmap *map;
	int err;

	map = sroce_mmap_reserve(uctx, sroce_ring_entries(to), to->stride,
				 &resp.ring);
	if (IS_ERR(map))
		return PTR_ERR(map);
	if (copy_to_user(u64_to_user_ptr(resp_addr), &resp, sizeof(resp)))
		err = -EFAULT;
	else
		err = sroce_srq_move(obj, to, map);
	if (err)
		sroce_mmap_remove(map);
	return err;
}

static int sroce_srq_resize(struct sroce_srq_obj *obj, u32 max_wr,
			    struct sroce_ucontext *uctx, u64 resp_addr)
{
	struct sroce_ring ring = {};
	int err;

	if (!max_wr || max_wr > SROCE_MAX_SRQ_WR) {
		ibdev_dbg(obj->srq.ibsrq.device, "modify_srq: %u entries\n",
			  max_wr);
		return -EINVAL;
	}
	err = sroce_ring_alloc(&ring, max_wr,
			       sroce_srq_entry_size(obj->srq.max_sge));
	if (err)
		return err;
	if (uctx)
		err = sroce_srq_move_user(obj, &ring, uctx, resp_addr);
	else
		err = sroce_srq_move(obj, &ring, NULL);
	/* the old ring, or the new one when it was not taken */
	sroce_ring_free(&ring);
	return err;
}

/* Armed with fewer than the limit left, it is reached at once */
static int sroce_srq_set_limit(struct sroce_srq *srq, u32 limit)
{
	bool reached = false;
	unsigned long irq;
	int err = 0;

	irq = sroce_lock(&srq->lock, srq->user);
	if (limit > sroce_ring_entries(&srq->ring)) {
		err = -EINVAL;
	} else {
		reached = sroce_ring_pending(&srq->ring) < limit;
		srq->limit = reached ? 0 : limit;
	}
	sroce_unlock(&srq->lock, srq->user, irq);
	if (reached)
		sroce_srq_limit_event(srq);
	return err;
}

int sroce_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct sroce_srq_obj *obj = to_sroce_srq_obj(ibsrq);
	struct sroce_modify_srq_req req = {};
	int err;

	err = sroce_check_modify_req(udata, &req);
	if (err)
		return err;
	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	mutex_lock(&obj->lock);
	if (mask & IB_SRQ_MAX_WR)
		err = sroce_srq_resize(obj, attr->max_wr,
				       sroce_udata_context(udata),
				       req.resp_addr);
	if (!err && mask & IB_SRQ_LIMIT)
		err = sroce_srq_set_limit(&obj->srq, attr->srq_limit);
	mutex_unlock(&obj->lock);
	return err;
}

int sroce_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct sroce_srq *srq = to_sroce_srq(ibsrq);
	unsigned long irq;

	irq = sroce_lock(&srq->lock, srq->user);
	attr->max_wr = sroce_ring_entries(&srq->ring);
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	sroce_unlock(&srq->lock, srq->user, irq);
	return 0;
}

/* No QP uses it: ib_core counts them */
int sroce_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct sroce_srq_obj *obj = to_sroce_srq_obj(ibsrq);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	sroce_mmap_remove(obj->map);
	sroce_srq_end(&obj->srq);
	return 0;
}

static int sroce_srq_post_one(struct sroce_srq *srq,
			      const struct ib_recv_wr *wr)
{
	int err;

	if (srq->prod - srq->ring.index > srq->ring.mask)
		return -ENOMEM;
	err = sroce_rq_write(&srq->ring, srq->prod, srq->max_sge, wr);
	if (err)
		return err;
	/* Pairs with sroce_ring_pending() */
	smp_store_release(&srq->ring.hdr->prod, ++srq->prod);
	return 0;
}

int sroce_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr)
{
	struct sroce_srq *srq = to_sroce_srq(ibsrq);
	unsigned long irq;
	int err = 0;

	if (srq->user) {
		*bad_wr = wr;
		return -EOPNOTSUPP;
	}
	irq = sroce_lock(&srq->lock, false);
	for (; wr; wr = wr->next) {
		err = sroce_srq_post_one(srq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	sroce_unlock(&srq->lock, false, irq);
	return err;
}
