// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles, and paths from the address vectors of these and of QPs. What the
 * transport finds by number is in transport/ah.c.
 */
#include <rdma/ib_cache.h>

#include "net/net.h"
#include "transport/ah.h"
#include "verbs/compat.h"
#include "verbs/limits.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

int sroce_ah_check_attr(struct ib_device *ibdev,
			const struct rdma_ah_attr *attr)
{
	const struct ib_gid_attr *sgid = attr->grh.sgid_attr;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE ||
	    !(attr->ah_flags & IB_AH_GRH) || !sgid) {
		ibdev_dbg(ibdev, "address vector without GRH\n");
		return -EINVAL;
	}
	if (sgid->device != ibdev || attr->port_num != SROCE_PORT ||
	    attr->sl > 15) {
		ibdev_dbg(ibdev, "address vector of another port or SL\n");
		return -EINVAL;
	}
	return 0;
}

static int sroce_ah_set_path(struct sroce_path *path, struct sroce_device *dev,
			     const struct rdma_ah_attr *attr, u32 lqpn,
			     u32 rqpn)
{
	struct net_device *ndev;
	int err;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr->grh.sgid_attr);
	/* the GID has just gone: through another netdev nothing may leave */
	err = IS_ERR(ndev) ? PTR_ERR(ndev) :
	      sroce_path_set(path, &dev->port.net, ndev, attr, lqpn, rqpn);
	rcu_read_unlock();
	return err;
}

struct sroce_path *sroce_ah_make_path(struct sroce_device *dev,
				      const struct rdma_ah_attr *attr, u32 lqpn,
				      u32 rqpn, gfp_t gfp)
{
	struct sroce_path *path = sroce_path_alloc(gfp);
	int err;

	if (!path)
		return ERR_PTR(-ENOMEM);
	err = sroce_ah_set_path(path, dev, attr, lqpn, rqpn);
	if (!err)
		return path;
	if (err == -EOPNOTSUPP)
		ibdev_dbg(&dev->ibdev,
			  "GID %u is of another network namespace\n",
			  attr->grh.sgid_attr->index);
	sroce_path_put(path);
	return ERR_PTR(err);
}

static void sroce_ah_remember(struct sroce_ah *ah,
			      const struct rdma_ah_attr *attr)
{
	ah->attr = *attr;
	ah->attr.grh.sgid_attr = NULL;
}

static int sroce_ah_respond(struct sroce_ah *ah, struct ib_udata *udata)
{
	struct sroce_create_ah_resp resp = { .ahn = ah->ahn };

	return udata ? ib_respond_udata(udata, resp) : 0;
}

static int sroce_ah_make(struct sroce_ah *ah, struct rdma_ah_init_attr *init,
			 struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ?
		    GFP_KERNEL_ACCOUNT : GFP_ATOMIC;
	struct sroce_device *dev = to_sroce_device(ah->ibah.device);
	struct sroce_path *path;
	struct sroce_ah_entry *e;
	int err;

	path = sroce_ah_make_path(dev, init->ah_attr, 0, 0, gfp);
	if (IS_ERR(path))
		return PTR_ERR(path);
	e = sroce_ah_add(&dev->port, ah->ibah.pd, path, gfp);
	if (IS_ERR(e)) {
		sroce_path_put(path);
		return PTR_ERR(e);
	}
	ah->entry = e;
	ah->ahn = e->ahn;
	sroce_ah_remember(ah, init->ah_attr);
	err = sroce_ah_respond(ah, udata);
	if (err)
		sroce_ah_remove(&dev->port, e);
	return err;
}

int sroce_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		       struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibah->device);
	int err;

	err = ib_is_udata_in_empty(udata);
	if (!err)
		err = sroce_ah_check_attr(ibah->device, init->ah_attr);
	if (!err)
		err = sroce_quota_take(dev, SROCE_OBJECT_AH, udata);
	if (err)
		return err;
	err = sroce_ah_make(to_sroce_ah(ibah), init, udata);
	if (err)
		sroce_quota_give(dev, SROCE_OBJECT_AH);
	return err;
}

/* The new path takes the old one's number */
int sroce_ib_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct sroce_device *dev = to_sroce_device(ibah->device);
	struct sroce_ah *ah = to_sroce_ah(ibah);
	struct sroce_path *path;
	struct sroce_ah_entry *e;
	int err;

	err = sroce_ah_check_attr(ibah->device, attr);
	if (err)
		return err;
	path = sroce_ah_make_path(dev, attr, 0, 0, GFP_ATOMIC);
	if (IS_ERR(path))
		return PTR_ERR(path);
	e = sroce_ah_replace(&dev->port, ah->entry, path);
	if (IS_ERR(e)) {
		sroce_path_put(path);
		return PTR_ERR(e);
	}
	ah->entry = e;
	sroce_ah_remember(ah, attr);
	return 0;
}

int sroce_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_sroce_ah(ibah)->attr;
	return 0;
}

int sroce_ib_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct sroce_device *dev = to_sroce_device(ibah->device);

	sroce_ah_remove(&dev->port, to_sroce_ah(ibah)->entry);
	sroce_quota_give(dev, SROCE_OBJECT_AH);
	return 0;
}

u32 sroce_ah_number(struct ib_ah *ibah)
{
	return to_sroce_ah(ibah)->ahn;
}
