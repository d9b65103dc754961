// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: what ib_core calls. Everything that a consumer says is checked
 * here; transport/ carries it out.
 */
#include <rdma/ib_addr.h>

#include "memory/dif.h"
#include "path.h"
#include "raw/raw.h"
#include "verbs/compat.h"
#include "verbs/doorbell.h"
#include "verbs/limits.h"
#include "verbs/mmap.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

/* --- create ----------------------------------------------------------------- */

/* QP 1 is the kernel's; ib_core itself makes XRC targets, for processes */
static int sroce_qp_check_type(struct ib_device *ibdev,
			       const struct ib_qp_init_attr *init, bool user)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
	case IB_QPT_XRC_INI:
		return 0;
	case IB_QPT_RAW_PACKET:
		return user ? 0 : -EOPNOTSUPP;
	case IB_QPT_XRC_TGT:
		return init->xrcd ? 0 : -EINVAL;
	case IB_QPT_GSI:
		if (!user && init->port_num == SROCE_PORT)
			return 0;
		return -EINVAL;
	default:
		ibdev_dbg(ibdev, "create_qp: type %d\n", init->qp_type);
		return -EOPNOTSUPP;
	}
}

/* Completion queues and SRQ: XRC targets take those of each request */
static bool sroce_qp_queues_given(const struct ib_qp_init_attr *init)
{
	switch (init->qp_type) {
	case IB_QPT_XRC_TGT:
		return !init->srq;
	case IB_QPT_XRC_INI:
		return init->send_cq && !init->srq;
	case IB_QPT_RAW_PACKET:
		/* Work queues do what queues of its own would: it has none */
		if (init->rwq_ind_tbl)
			return !init->send_cq && !init->recv_cq && !init->srq;
		return init->send_cq && init->recv_cq && !init->srq;
	default:
		return init->send_cq && init->recv_cq;
	}
}

static u32 sroce_qp_known_flags(const struct ib_qp_init_attr *init, bool user)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
		return SROCE_HAS_DIF && !user ? IB_QP_CREATE_INTEGRITY_EN : 0;
	case IB_QPT_UD:
		return IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	case IB_QPT_RAW_PACKET:
		/* Work queues say themselves what they do with tags */
		return init->rwq_ind_tbl ? 0 : IB_QP_CREATE_CVLAN_STRIPPING;
	default:
		return 0;
	}
}

static int sroce_qp_check_queues(struct ib_device *ibdev,
				 const struct ib_qp_init_attr *init,
				 bool user)
{
	u32 known = sroce_qp_known_flags(init, user);

	if (init->create_flags & ~known ||
	    (init->rwq_ind_tbl && init->qp_type != IB_QPT_RAW_PACKET)) {
		ibdev_dbg(ibdev, "create_qp: flags %#x\n", init->create_flags);
		return -EOPNOTSUPP;
	}
	if (!sroce_qp_queues_given(init)) {
		ibdev_dbg(ibdev, "create_qp: wrong queues\n");
		return -EINVAL;
	}
	if (init->srq && init->srq->srq_type != IB_SRQT_BASIC &&
	    (init->srq->srq_type != IB_SRQT_TM || init->qp_type != IB_QPT_RC)) {
		ibdev_dbg(ibdev, "create_qp: type %d with an SRQ of type %d\n",
			  init->qp_type, init->srq->srq_type);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int sroce_qp_check_cap(struct ib_device *ibdev,
			      const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (cap->max_send_wr > SROCE_MAX_QP_WR ||
	    cap->max_send_sge > SROCE_MAX_SGE ||
	    cap->max_inline_data > SROCE_MAX_INLINE) {
		ibdev_dbg(ibdev, "create_qp: send %u of %u, inline %u\n",
			  cap->max_send_wr, cap->max_send_sge,
			  cap->max_inline_data);
		return -EINVAL;
	}
	if (!init->srq && (cap->max_recv_wr > SROCE_MAX_QP_WR ||
			   cap->max_recv_sge > SROCE_MAX_SGE)) {
		ibdev_dbg(ibdev, "create_qp: receive %u of %u\n",
			  cap->max_recv_wr, cap->max_recv_sge);
		return -EINVAL;
	}
	return 0;
}

/* A tagged buffer may be filled by a SEND or by the QP's own READ: in one domain */
static int sroce_qp_check_tags(const struct ib_qp *ibqp,
			       const struct ib_qp_init_attr *init)
{
	if (!init->srq || init->srq->srq_type != IB_SRQT_TM ||
	    init->srq->pd == ibqp->pd)
		return 0;
	ibdev_dbg(ibqp->device, "create_qp: tag matching in another domain\n");
	return -EINVAL;
}

static int sroce_qp_check_init(struct ib_device *ibdev,
			       const struct ib_qp_init_attr *init,
			       struct ib_udata *udata)
{
	int err;

	err = sroce_qp_check_type(ibdev, init, udata);
	if (!err)
		err = sroce_qp_check_queues(ibdev, init, udata);
	if (!err)
		err = sroce_qp_check_cap(ibdev, init);
	return err;
}

/* --- work queues in place of its own ------------------------------------------ */

#define SROCE_RX_HASH_FIELDS						\
	(SROCE_RX_HASH_SRC_IPV4 | SROCE_RX_HASH_DST_IPV4 |		\
	 SROCE_RX_HASH_SRC_IPV6 | SROCE_RX_HASH_DST_IPV6 |		\
	 SROCE_RX_HASH_SRC_PORT_TCP | SROCE_RX_HASH_DST_PORT_TCP |	\
	 SROCE_RX_HASH_SRC_PORT_UDP | SROCE_RX_HASH_DST_PORT_UDP)

/* A queue pair that has queues says nothing of how others share its packets */
static bool sroce_qp_no_hash(const struct sroce_create_qp_req *req)
{
	return !req->rx_hash_fields && !req->rx_hash_function &&
	       !req->rx_hash_key_len &&
	       !memchr_inv(req->rx_hash_key, 0, sizeof(req->rx_hash_key));
}

static int sroce_qp_check_hash(const struct sroce_create_qp_req *req)
{
	if (req->rx_hash_fields & ~(u64)SROCE_RX_HASH_FIELDS ||
	    req->rx_hash_function != SROCE_RX_HASH_TOEPLITZ)
		return -EOPNOTSUPP;
	return req->rx_hash_key_len == SROCE_RX_HASH_KEY_LEN ? 0 : -EINVAL;
}

static int sroce_qp_read_req(struct ib_device *ibdev,
			     const struct ib_qp_init_attr *init,
			     struct ib_udata *udata,
			     struct sroce_create_qp_req *req)
{
	int err;

	memset(req, 0, sizeof(*req));
	if (!udata)
		return 0;
	err = ib_copy_validate_udata_in(udata, *req, reserved);
	if (err)
		return err;
	if (req->reserved ||
	    memchr_inv(req->reserved1, 0, sizeof(req->reserved1)) ||
	    (!init->rwq_ind_tbl && !sroce_qp_no_hash(req))) {
		ibdev_dbg(ibdev, "create_qp: unknown request\n");
		return -EOPNOTSUPP;
	}
	return init->rwq_ind_tbl ? sroce_qp_check_hash(req) : 0;
}

static int sroce_qp_make_rss(struct sroce_qp_obj *obj,
			     const struct ib_rwq_ind_table *table,
			     const struct sroce_create_qp_req *req)
{
	u32 n = 1U << table->log_ind_tbl_size;
	u32 i;

	if (sroce_pinned_charge(&obj->rss_pinned, sroce_rss_bytes(n)))
		return -ENOMEM;
	obj->rss = sroce_rss_create(req->rx_hash_fields, req->rx_hash_key, n);
	if (!obj->rss)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		sroce_rss_set(obj->rss, i, to_sroce_wq(table->ind_tbl[i])->qp);
	return 0;
}

static void sroce_qp_end_rss(struct sroce_qp_obj *obj)
{
	sroce_rss_free(obj->rss);
	sroce_pinned_uncharge(&obj->rss_pinned);
}

/* --- the object ----------------------------------------------------------------- */

static void sroce_qp_unmap(struct sroce_qp_obj *obj)
{
	sroce_mmap_remove(obj->map);
	obj->map = NULL;
}

static int sroce_qp_map_rings(struct sroce_qp_obj *obj,
			      struct sroce_ucontext *uctx,
			      struct sroce_create_qp_resp *resp)
{
	bool receives = obj->qp->kind->receives && !obj->qp->srq;
	struct sroce_mmap *map;

	/* Nobody has anything to write there, nor can do so: they are in no pool */
	if (!receives && !obj->qp->kind->posts)
		return 0;
	map = sroce_mmap_add_pair(uctx, &obj->qp->req.ring, &obj->qp->resp.ring,
				  &resp->sq, receives ? &resp->rq : NULL);
	if (IS_ERR(map))
		return PTR_ERR(map);
	obj->map = map;
	return 0;
}

static int sroce_qp_user_map(struct sroce_qp_obj *obj, struct ib_udata *udata)
{
	struct sroce_create_qp_resp resp = {
		.max_inline = obj->qp->max_inline,
	};
	int err;

	err = sroce_qp_map_rings(obj, sroce_udata_context(udata), &resp);
	if (!err)
		err = ib_respond_udata(udata, resp);
	if (err)
		sroce_qp_unmap(obj);
	return err;
}

static int sroce_qp_complete(struct sroce_qp_obj *obj,
			     const struct ib_qp_init_attr *init,
			     const struct sroce_create_qp_req *req,
			     struct ib_udata *udata)
{
	int err = 0;

	if (init->rwq_ind_tbl)
		err = sroce_qp_make_rss(obj, init->rwq_ind_tbl, req);
	if (!err)
		err = sroce_qp_user_map(obj, udata);
	if (!err)
		return 0;
	sroce_qp_end_rss(obj);
	sroce_qp_destroy(obj->qp);
	return err;
}

static int sroce_qp_make(struct sroce_qp_obj *obj, struct sroce_device *dev,
			 struct ib_qp_init_attr *init,
			 const struct sroce_create_qp_req *req,
			 struct ib_udata *udata)
{
	struct sroce_ucontext *uctx = sroce_udata_context(udata);
	struct ib_qp *ibqp = &obj->ibqp;

	mutex_init(&obj->lock);
	mutex_init(&obj->asked_lock);
	INIT_LIST_HEAD(&obj->mcasts);
	obj->qp = sroce_qp_create(&dev->port, ibqp, init,
				  uctx ? uctx->doorbell : NULL,
				  uctx ? &uctx->pool : NULL);
	if (IS_ERR(obj->qp))
		return PTR_ERR(obj->qp);
	ibqp->qp_num = obj->qp->qpn;
	return udata ? sroce_qp_complete(obj, init, req, udata) : 0;
}

int sroce_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		       struct ib_udata *udata)
{
	/* ib_core makes XRC targets itself, for processes */
	bool user = udata || init->qp_type == IB_QPT_XRC_TGT;
	struct sroce_device *dev = to_sroce_device(ibqp->device);
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	struct sroce_create_qp_req req;
	u64 net_cookie = 0;
	int err;

	err = sroce_qp_check_init(ibqp->device, init, udata);
	if (!err)
		err = sroce_qp_check_tags(ibqp, init);
	if (!err && init->qp_type == IB_QPT_RAW_PACKET)
		err = sroce_raw_allowed(dev->port.net.raw, &net_cookie);
	if (!err)
		err = sroce_qp_read_req(ibqp->device, init, udata, &req);
	if (!err)
		err = sroce_quota_take(dev, SROCE_OBJECT_QP, user);
	if (err)
		return err;
	err = sroce_qp_make(obj, dev, init, &req, udata);
	if (err) {
		sroce_quota_give(dev, SROCE_OBJECT_QP);
		return err;
	}
	/* It is in RESET, and stays there before ib_core knows of it */
	obj->qp->net_cookie = net_cookie;
	return 0;
}

int sroce_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	struct sroce_qp *qp;

	sroce_qp_unmap(obj);
	mutex_lock(&obj->lock);
	sroce_mcast_del_all(obj);
	qp = obj->qp;
	mutex_lock(&obj->asked_lock);
	obj->qp = NULL;
	mutex_unlock(&obj->asked_lock);
	mutex_unlock(&obj->lock);
	if (sroce_device_going(ibqp->device) && qp->user) {
		sroce_qp_flush(qp);
		/* From now on doorbells fail: nobody shall wait for what is posted */
		if (qp->owner)
			sroce_doorbell_shut(qp->owner);
	}
	sroce_qp_destroy(qp);
	sroce_qp_end_rss(obj);
	sroce_quota_give(to_sroce_device(ibqp->device), SROCE_OBJECT_QP);
	return 0;
}

/* --- modify ------------------------------------------------------------------ */

static int sroce_qp_check_transition(struct sroce_qp_obj *obj,
				     const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state is = READ_ONCE(obj->qp->state);
	enum ib_qp_state cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : is;
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;

	if (cur != is) {
		ibdev_dbg(obj->ibqp.device, "QP %#x: in state %d, not %d\n",
			  obj->ibqp.qp_num, is, cur);
		return -EINVAL;
	}
	/* To kernels before 7.2 a rate limit is for raw packets; ours fits every transition */
	if (!ib_modify_qp_is_ok(cur, next, obj->ibqp.qp_type,
				mask & ~IB_QP_RATE_LIMIT)) {
		ibdev_dbg(obj->ibqp.device,
			  "QP %#x: no way from state %d to %d with %#x\n",
			  obj->ibqp.qp_num, cur, next, mask);
		return -EINVAL;
	}
	return 0;
}

static int sroce_qp_check_not_supported(struct ib_device *ibdev, int mask)
{
	/* a resize, and a second path */
	if (mask & (IB_QP_CAP | IB_QP_ALT_PATH)) {
		ibdev_dbg(ibdev, "modify_qp: mask %#x\n", mask);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* One attribute has a bit in the mask and may not be above a limit */
static int sroce_qp_check_max(struct ib_device *ibdev, int mask, int bit,
			      const char *name, u32 value, u32 max)
{
	if (!(mask & bit) || value <= max)
		return 0;
	ibdev_dbg(ibdev, "modify_qp: %s %u is above %u\n", name, value, max);
	return -EINVAL;
}

static int sroce_qp_check_ranges(struct ib_device *ibdev,
				 const struct ib_qp_attr *a, int mask)
{
	return sroce_qp_check_max(ibdev, mask, IB_QP_MAX_QP_RD_ATOMIC,
				  "max_rd_atomic", a->max_rd_atomic,
				  SROCE_MAX_RD_ATOMIC) ?:
	       sroce_qp_check_max(ibdev, mask, IB_QP_MAX_DEST_RD_ATOMIC,
				  "max_dest_rd_atomic", a->max_dest_rd_atomic,
				  SROCE_MAX_RD_ATOMIC) ?:
	       sroce_qp_check_max(ibdev, mask, IB_QP_TIMEOUT, "timeout",
				  a->timeout, SROCE_MAX_TIMEOUT) ?:
	       sroce_qp_check_max(ibdev, mask, IB_QP_RETRY_CNT, "retry_cnt",
				  a->retry_cnt, SROCE_MAX_RETRY) ?:
	       sroce_qp_check_max(ibdev, mask, IB_QP_RNR_RETRY, "rnr_retry",
				  a->rnr_retry, SROCE_MAX_RETRY) ?:
	       sroce_qp_check_max(ibdev, mask, IB_QP_MIN_RNR_TIMER,
				  "min_rnr_timer", a->min_rnr_timer,
				  SROCE_MAX_RNR_TIMER) ?:
	       sroce_qp_check_max(ibdev, mask, IB_QP_DEST_QPN, "dest_qp_num",
				  a->dest_qp_num, SROCE_QPN_MASK) ?:
	       sroce_qp_check_max(ibdev, mask, IB_QP_PATH_MIG_STATE,
				  "path_mig_state", a->path_mig_state,
				  IB_MIG_MIGRATED);
}

/* The entry must be there and hold a valid P_Key (IBA 11.2.5.2) */
static int sroce_qp_check_pkey_index(struct ib_device *ibdev,
				     const struct ib_qp_attr *attr, int mask)
{
	u16 pkey;

	if (!(mask & IB_QP_PKEY_INDEX))
		return 0;
	if (!sroce_ib_query_pkey(ibdev, SROCE_PORT, attr->pkey_index, &pkey) &&
	    pkey & SROCE_PKEY_BASE)
		return 0;
	ibdev_dbg(ibdev, "modify_qp: pkey_index %u\n", attr->pkey_index);
	return -EINVAL;
}

static int sroce_qp_check_rate(struct ib_device *ibdev,
			       const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_RATE_LIMIT && attr->rate_limit &&
	    attr->rate_limit < SROCE_MIN_RATE_LIMIT) {
		ibdev_dbg(ibdev, "modify_qp: rate limit %u kbit/s\n",
			  attr->rate_limit);
		return -EINVAL;
	}
	return 0;
}

static int sroce_qp_check_port(struct ib_device *ibdev,
			       const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != SROCE_PORT) {
		ibdev_dbg(ibdev, "modify_qp: port %u\n", attr->port_num);
		return -EINVAL;
	}
	return 0;
}

/* A packet must fit the netdev: there is no fragmentation (A17) */
static int sroce_qp_check_path_mtu(struct sroce_device *dev,
				   const struct ib_qp_attr *attr, int mask)
{
	enum ib_mtu active = iboe_get_mtu(READ_ONCE(dev->ndev->mtu));

	if (!(mask & IB_QP_PATH_MTU))
		return 0;
	if (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096 ||
	    attr->path_mtu > active) {
		ibdev_dbg(&dev->ibdev, "modify_qp: path MTU %d, port has %d\n",
			  attr->path_mtu, active);
		return -EINVAL;
	}
	return 0;
}

#define SROCE_QP_ACCESS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_MW_BIND | IB_ACCESS_ON_DEMAND |			\
	 IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT |		\
	 IB_ACCESS_OPTIONAL)

static int sroce_qp_check_access(struct ib_device *ibdev,
				 const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS &&
	    attr->qp_access_flags & ~SROCE_QP_ACCESS) {
		ibdev_dbg(ibdev, "modify_qp: access flags %#x\n",
			  attr->qp_access_flags);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int sroce_qp_check_modify(struct sroce_qp_obj *obj,
				 const struct ib_qp_attr *attr, int mask)
{
	struct sroce_device *dev = to_sroce_device(obj->ibqp.device);
	struct ib_device *ibdev = &dev->ibdev;
	int err;

	err = sroce_qp_check_not_supported(ibdev, mask);
	if (!err)
		err = sroce_qp_check_transition(obj, attr, mask);
	if (!err)
		err = sroce_qp_check_ranges(ibdev, attr, mask);
	if (!err)
		err = sroce_qp_check_pkey_index(ibdev, attr, mask);
	if (!err)
		err = sroce_qp_check_port(ibdev, attr, mask);
	if (!err)
		err = sroce_qp_check_path_mtu(dev, attr, mask);
	if (!err)
		err = sroce_qp_check_access(ibdev, attr, mask);
	if (!err)
		err = sroce_qp_check_rate(ibdev, attr, mask);
	if (!err && mask & IB_QP_AV)
		err = sroce_ah_check_attr(ibdev, &attr->ah_attr);
	return err;
}

static struct sroce_path *sroce_qp_make_path(struct sroce_qp_obj *obj,
					     const struct ib_qp_attr *attr,
					     int mask)
{
	u32 rqpn = mask & IB_QP_DEST_QPN ? attr->dest_qp_num :
					   obj->qp->attr.dest_qp_num;

	return sroce_ah_make_path(to_sroce_device(obj->ibqp.device),
				  &attr->ah_attr, obj->qp->qpn, rqpn,
				  GFP_KERNEL_ACCOUNT);
}

static int sroce_qp_do_modify(struct sroce_qp_obj *obj,
			      const struct ib_qp_attr *attr, int mask)
{
	struct sroce_path *path = NULL;
	int err;

	if (mask & IB_QP_AV) {
		path = sroce_qp_make_path(obj, attr, mask);
		if (IS_ERR(path))
			return PTR_ERR(path);
	}
	err = sroce_qp_modify(obj->qp, attr, mask, path);
	if (err)
		sroce_path_put(path);
	return err;
}

int sroce_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		       struct ib_udata *udata)
{
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	/* It has no queues that a state could be of; its flows do not ask for one */
	if (obj->rss)
		return -EOPNOTSUPP;
	mutex_lock(&obj->lock);
	err = sroce_qp_check_modify(obj, attr, mask);
	if (!err)
		err = sroce_qp_do_modify(obj, attr, mask);
	mutex_unlock(&obj->lock);
	return err;
}

/* --- query ------------------------------------------------------------------- */

static void sroce_qp_query_cap(const struct sroce_qp *qp, struct ib_qp_cap *cap)
{
	/* There is a ring, of one entry, where nobody posts, too */
	cap->max_send_wr = qp->kind->posts ? sroce_ring_entries(&qp->req.ring) : 0;
	cap->max_send_sge = qp->max_send_sge;
	cap->max_inline_data = qp->max_inline;
	if (qp->srq || !qp->kind->receives) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	} else {
		cap->max_recv_wr = sroce_ring_entries(&qp->resp.ring);
		cap->max_recv_sge = qp->max_recv_sge;
	}
}

static void sroce_qp_query_init(struct sroce_qp_obj *obj,
				struct ib_qp_init_attr *init)
{
	const struct ib_qp *ibqp = &obj->ibqp;

	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->sq_sig_type = obj->qp->sig_all ? IB_SIGNAL_ALL_WR :
					       IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	init->port_num = SROCE_PORT;
}

/*
 * "rdma resource" asks for nothing in particular, on behalf of anybody, and shows
 * these: with them a packet from this host could be made to look like the QP's own.
 */
static void sroce_qp_query_hide(struct ib_qp_attr *attr)
{
	attr->dest_qp_num = 0;
	attr->sq_psn = 0;
	attr->rq_psn = 0;
}

/* In older kernels the netlink dump of QPs may still ask for a destroyed one */
int sroce_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_qp_init_attr *init)
{
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	int err = -ENODEV;

	mutex_lock(&obj->asked_lock);
	if (obj->qp) {
		sroce_qp_query(obj->qp, attr);
		sroce_qp_query_cap(obj->qp, &attr->cap);
		sroce_qp_query_init(obj, init);
		init->cap = attr->cap;
		if (!mask && !sroce_restrack_may_see_psns())
			sroce_qp_query_hide(attr);
		err = 0;
	}
	mutex_unlock(&obj->asked_lock);
	return err;
}
