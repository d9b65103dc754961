// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: what ib_core calls. How they are emptied is in
 * transport/srq.c.
 */
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "lock.h"
#include "verbs/compat.h"
#include "verbs/limits.h"
#include "verbs/mmap.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

static int sroce_srq_check_attr(struct ib_device *ibdev,
				const struct ib_srq_init_attr *init, bool user)
{
	const struct ib_srq_attr *attr = &init->attr;

	/* ib_core carries no tags for the kernel */
	if (init->srq_type != IB_SRQT_BASIC && init->srq_type != IB_SRQT_XRC &&
	    (init->srq_type != IB_SRQT_TM || !user)) {
		ibdev_dbg(ibdev, "create_srq: type %d\n", init->srq_type);
		return -EOPNOTSUPP;
	}
	if (init->srq_type == IB_SRQT_TM &&
	    (!init->ext.tag_matching.max_num_tags ||
	     init->ext.tag_matching.max_num_tags > SROCE_MAX_NUM_TAGS)) {
		ibdev_dbg(ibdev, "create_srq: %u tags\n",
			  init->ext.tag_matching.max_num_tags);
		return -EINVAL;
	}
	/* srq_limit is not looked at: creating has no use for it, and many leave it unset */
	if (!attr->max_wr || attr->max_wr > SROCE_MAX_SRQ_WR ||
	    attr->max_sge > SROCE_MAX_SGE) {
		ibdev_dbg(ibdev, "create_srq: %u entries of %u\n",
			  attr->max_wr, attr->max_sge);
		return -EINVAL;
	}
	return 0;
}

static u32 sroce_srq_entry_size(u32 max_sge)
{
	return sizeof(struct sroce_recv_wqe) +
	       max_sge * sizeof(struct sroce_sge);
}

static int sroce_srq_init(struct sroce_srq *srq, struct sroce_device *dev,
			  struct ib_srq_init_attr *init)
{
	/*
	 * A work request of no elements takes a message of no bytes. What a QP takes may be
	 * a tagged buffer
	 */
	u32 least = init->srq_type == IB_SRQT_TM ? SROCE_MAX_TAG_SGE : 1;
	struct ib_srq_attr *attr = &init->attr;
	int err;

	srq->port = &dev->port;
	sroce_lock_init(&srq->lock, srq->user);
	srq->max_sge = max(attr->max_sge, least);
	err = sroce_ring_alloc(&srq->ring, attr->max_wr,
			       sroce_srq_entry_size(srq->max_sge), srq->user);
	if (err)
		return err;
	attr->max_wr = sroce_ring_entries(&srq->ring);
	attr->max_sge = srq->max_sge;
	return 0;
}

static int sroce_srq_user_map(struct sroce_srq_obj *obj, struct ib_udata *udata)
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

/*
 * What its type has in addition. Packets may name one of XRC from here on; nobody knows the
 * number before the process
 */
static int sroce_srq_init_type(struct sroce_srq *srq,
			       const struct ib_srq_init_attr *init)
{
	int err;

	if (init->srq_type == IB_SRQT_TM)
		return sroce_srq_match_tags(srq, to_sroce_cq(init->ext.cq),
					    init->ext.tag_matching.max_num_tags);
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
	sroce_srq_end_tags(srq);
	sroce_ring_free(&srq->ring);
}

static int sroce_srq_make(struct sroce_srq_obj *obj, struct sroce_device *dev,
			  struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	int err;

	mutex_init(&obj->lock);
	obj->srq.user = udata;
	err = sroce_srq_init(&obj->srq, dev, init);
	if (err)
		return err;
	err = sroce_srq_init_type(&obj->srq, init);
	if (err) {
		sroce_ring_free(&obj->srq.ring);
		return err;
	}
	if (udata)
		err = sroce_srq_user_map(obj, udata);
	if (err)
		sroce_srq_end(&obj->srq);
	return err;
}

int sroce_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibsrq->device);
	int err;

	err = sroce_srq_check_attr(ibsrq->device, init, udata);
	if (!err)
		err = sroce_udata_check_reserved(ibsrq->device, udata,
						 "create_srq");
	if (!err)
		err = sroce_quota_take(dev, SROCE_OBJECT_SRQ, udata);
	if (err)
		return err;
	err = sroce_srq_make(to_sroce_srq_obj(ibsrq), dev, init, udata);
	if (err)
		sroce_quota_give(dev, SROCE_OBJECT_SRQ);
	return err;
}

/* Work requests that are copied at a time: up to 64 KiB */
#define SROCE_SRQ_PART 128

static void sroce_srq_resize_copy(const struct sroce_srq *srq,
				  struct sroce_ring *to, u32 *at, u32 n)
{
	for (; n; n--, (*at)++)
		memcpy(sroce_ring_entry(to, *at),
		       sroce_ring_entry(&srq->ring, *at), srq->ring.stride);
}

/*
 * Put @to in the place of the ring, with what is waiting in it at the same indices,
 * of which all before @at is there already; @to becomes the old ring.
 *
 * Context: the lock held.
 * Return: 0, -EINVAL when that does not fit, -EAGAIN when too much is left to copy.
 */
static int sroce_srq_resize_swap(struct sroce_srq *srq, struct sroce_ring *to,
				 u32 *at)
{
	struct sroce_ring *ring = &srq->ring;
	u32 n = sroce_ring_pending(ring);
	u32 end = ring->index + n;

	if (n > sroce_ring_entries(to) || srq->limit > sroce_ring_entries(to))
		return -EINVAL;
	/*
	 * What was copied has been consumed meanwhile, or a process has moved its index
	 * back: begin with the first entry that waits
	 */
	if (end - *at > n)
		*at = ring->index;
	if (end - *at > SROCE_SRQ_PART)
		return -EAGAIN;
	sroce_srq_resize_copy(srq, to, at, end - *at);
	to->index = ring->index;
	to->hdr->cons = ring->index;
	/* Pairs with a producer that maps it: what is there comes first */
	smp_store_release(&to->hdr->prod, end);
	swap(*ring, *to);
	return 0;
}

/* Parts copied before a process that keeps posting meanwhile gets EBUSY */
#define SROCE_SRQ_MOVE_PARTS (4 * SROCE_MAX_SRQ_WR / SROCE_SRQ_PART)

/*
 * Move the queue to the ring in @next, which has the old one then, or still the new one
 * after an error. Context: @obj->lock held.
 */
static int sroce_srq_resize_move(struct sroce_srq_obj *obj,
				 struct sroce_successor *next)
{
	struct sroce_srq *srq = &obj->srq;
	u32 at = READ_ONCE(srq->ring.index);
	unsigned long irq;
	u32 part;
	int err;

	for (part = 0;; part++) {
		irq = sroce_lock(&srq->lock, srq->user);
		err = sroce_srq_resize_swap(srq, &next->ring, &at);
		sroce_unlock(&srq->lock, srq->user, irq);
		if (err != -EAGAIN)
			break;
		if (part > SROCE_SRQ_MOVE_PARTS)
			return -EBUSY;
		if (fatal_signal_pending(current))
			return -EINTR;
		/* Without the lock: entries that are posted do not change place */
		sroce_srq_resize_copy(srq, &next->ring, &at, SROCE_SRQ_PART);
		cond_resched();
	}
	if (!err)
		swap(obj->map, next->map);
	return err;
}

/* For sroce_successor_finish() */
static int sroce_srq_resize_move_next(struct sroce_successor *next)
{
	struct sroce_srq_obj *obj = container_of(next, struct sroce_srq_obj, next);

	if (!sroce_successor_follows(next, &obj->srq.ring))
		return -EACCES;
	return sroce_srq_resize_move(obj, next);
}

/* Resize a kernel user's queue, in one step. Context: @obj->lock held. */
static int sroce_srq_resize(struct sroce_srq_obj *obj, u32 max_wr)
{
	struct sroce_successor next = {};
	int err;

	err = sroce_ring_alloc(&next.ring, max_wr,
			       sroce_srq_entry_size(obj->srq.max_sge), false);
	if (err)
		return err;
	err = sroce_srq_resize_move(obj, &next);
	sroce_ring_free(&next.ring);
	return err;
}

/* This command has no response of the driver's: the request says where to */
static int sroce_srq_resize_prepare(struct sroce_srq_obj *obj, u32 max_wr,
				    struct sroce_ucontext *uctx, u64 resp_addr)
{
	struct sroce_modify_srq_resp resp = {};
	struct sroce_successor next;
	int err;

	err = sroce_successor_make(&next, uctx, max_wr,
				   sroce_srq_entry_size(obj->srq.max_sge),
				   &resp.ring);
	if (err)
		return err;
	if (copy_to_user(u64_to_user_ptr(resp_addr), &resp, sizeof(resp))) {
		sroce_successor_drop(&next);
		return -EFAULT;
	}
	sroce_successor_replace(&obj->next, &obj->lock, &next);
	return 0;
}

/* Arm the limit. When fewer are left already the event is raised at once */
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

static int sroce_srq_check_modify(struct ib_device *ibdev,
				  const struct ib_srq_attr *attr,
				  enum ib_srq_attr_mask mask)
{
	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR &&
	    (!attr->max_wr || attr->max_wr > SROCE_MAX_SRQ_WR)) {
		ibdev_dbg(ibdev, "modify_srq: %u entries\n", attr->max_wr);
		return -EINVAL;
	}
	return 0;
}

/* Change what needs no steps: the limit, and the size of a kernel user's queue */
static int sroce_srq_change(struct sroce_srq_obj *obj,
			    const struct ib_srq_attr *attr,
			    enum ib_srq_attr_mask mask)
{
	int err = 0;

	mutex_lock(&obj->lock);
	if (mask & IB_SRQ_MAX_WR)
		err = sroce_srq_resize(obj, attr->max_wr);
	if (!err && mask & IB_SRQ_LIMIT)
		err = sroce_srq_set_limit(&obj->srq, attr->srq_limit);
	mutex_unlock(&obj->lock);
	return err;
}

/* A process resizes in steps, and does nothing else with the same command */
static int sroce_srq_check_modify_req(struct ib_udata *udata,
				      enum ib_srq_attr_mask mask,
				      struct sroce_modify_srq_req *req)
{
	int err = 0;

	if (!udata)
		return 0;
	if (udata->inlen)
		err = ib_copy_validate_udata_in(udata, *req, reserved);
	if (err)
		return err;
	if (req->reserved || req->step > SROCE_RESIZE_CANCEL)
		return -EOPNOTSUPP;
	if (req->step)
		return mask == IB_SRQ_MAX_WR ? 0 : -EINVAL;
	return mask & IB_SRQ_MAX_WR ? -EINVAL : 0;
}

int sroce_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct sroce_srq_obj *obj = to_sroce_srq_obj(ibsrq);
	struct sroce_modify_srq_req req = {};
	int err;

	err = sroce_srq_check_modify(ibsrq->device, attr, mask);
	if (!err)
		err = sroce_srq_check_modify_req(udata, mask, &req);
	if (err)
		return err;
	if (!req.step)
		return sroce_srq_change(obj, attr, mask);
	if (req.step == SROCE_RESIZE_PREPARE)
		return sroce_srq_resize_prepare(obj, attr->max_wr,
						sroce_udata_context(udata),
						req.resp_addr);
	return sroce_successor_finish(&obj->next, &obj->lock, req.step,
				      sroce_srq_resize_move_next);
}

int sroce_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
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

/* No QP uses the queue any more: ib_core counts those that do */
int sroce_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct sroce_srq_obj *obj = to_sroce_srq_obj(ibsrq);

	sroce_successor_end(&obj->next, obj->map);
	sroce_srq_end(&obj->srq);
	sroce_quota_give(to_sroce_device(ibsrq->device), SROCE_OBJECT_SRQ);
	return 0;
}

static int sroce_srq_post_one(struct sroce_srq *srq,
			      const struct ib_recv_wr *wr)
{
	int err;

	if (srq->prod - srq->ring.index > srq->ring.mask)
		return -ENOMEM;
	err = sroce_recv_ring_write(&srq->ring, srq->prod, srq->max_sge, wr);
	if (err)
		return err;
	/* Pairs with sroce_ring_pending() */
	smp_store_release(&srq->ring.hdr->prod, ++srq->prod);
	return 0;
}

int sroce_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
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
