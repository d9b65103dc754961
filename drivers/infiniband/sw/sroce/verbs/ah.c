// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles. Work requests name them by number, so that the same ring
 * format serves processes and the kernel, and a number is checked at each use:
 * it may have been destroyed, or belong to somebody else.
 *
 * ib_core frees struct sroce_ah as soon as destroy returns, while a sender may
 * be looking it up. What is looked up is therefore a separate object, freed
 * after a grace period.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/ib_cache.h>

#include "net/net.h"
#include "verbs/compat.h"
#include "verbs/limits.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

/**
 * struct sroce_ah_entry - an address handle as the transport finds it
 * @rcu: freed after a grace period
 * @pd: protection domain
 * @path: where it leads; its first reference belongs to the entry
 * @ahn: number
 */
struct sroce_ah_entry {
	struct rcu_head rcu;
	const struct ib_pd *pd;
	struct sroce_path *path;
	u32 ahn;
};

void sroce_ah_table_init(struct sroce_device *dev)
{
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ |
		      XA_FLAGS_ACCOUNT);
}

void sroce_ah_table_destroy(struct sroce_device *dev)
{
	WARN_ON_ONCE(!xa_empty(&dev->ahs));
	xa_destroy(&dev->ahs);
}

int sroce_check_ah_attr(struct ib_device *ibdev,
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
	if (sgid->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP) {
		ibdev_dbg(ibdev, "GID %u is not of RoCE v2\n", sgid->index);
		return -EINVAL;
	}
	return 0;
}

static int sroce_set_path(struct sroce_path *path, struct sroce_device *dev,
			  const struct rdma_ah_attr *attr, u32 lqpn, u32 rqpn)
{
	struct net_device *ndev;
	int err;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr->grh.sgid_attr);
	/* the GID has just gone: through another netdev nothing may leave */
	err = IS_ERR(ndev) ? PTR_ERR(ndev) :
	      sroce_path_set(path, &dev->port, ndev, attr, lqpn, rqpn);
	rcu_read_unlock();
	return err;
}

struct sroce_path *sroce_make_path(struct sroce_device *dev,
				   const struct rdma_ah_attr *attr, u32 lqpn,
				   u32 rqpn, gfp_t gfp)
{
	struct sroce_path *path = sroce_path_alloc(gfp);
	int err;

	if (!path)
		return ERR_PTR(-ENOMEM);
	err = sroce_set_path(path, dev, attr, lqpn, rqpn);
	if (!err)
		return path;
	if (err == -EOPNOTSUPP)
		ibdev_dbg(&dev->ibdev,
			  "GID %u is of another network namespace\n",
			  attr->grh.sgid_attr->index);
	sroce_path_put(path);
	return ERR_PTR(err);
}

static struct sroce_ah_entry *sroce_ah_entry_new(struct sroce_device *dev,
						 const struct ib_pd *pd,
						 const struct rdma_ah_attr *attr,
						 gfp_t gfp)
{
	struct sroce_ah_entry *e = kzalloc_obj(*e, gfp);
	struct sroce_path *path;

	if (!e)
		return ERR_PTR(-ENOMEM);
	path = sroce_make_path(dev, attr, 0, 0, gfp);
	if (IS_ERR(path)) {
		kfree(e);
		return ERR_CAST(path);
	}
	e->pd = pd;
	e->path = path;
	return e;
}

/* Nobody finds the entry any more, but somebody may have found it just now */
static void sroce_ah_entry_drop(struct sroce_ah_entry *e)
{
	sroce_path_put(e->path);
	kfree_rcu(e, rcu);
}

/* Callers may have interrupts off */
static int sroce_ah_insert(struct sroce_device *dev, struct sroce_ah_entry *e,
			   gfp_t gfp)
{
	unsigned long flags;
	int err;

	xa_lock_irqsave(&dev->ahs, flags);
	err = __xa_alloc(&dev->ahs, &e->ahn, e, XA_LIMIT(1, SROCE_MAX_AH), gfp);
	xa_unlock_irqrestore(&dev->ahs, flags);
	return err == -EBUSY ? -ENOSPC : err;
}

static void sroce_ah_erase(struct sroce_device *dev, u32 ahn)
{
	unsigned long flags;

	xa_lock_irqsave(&dev->ahs, flags);
	__xa_erase(&dev->ahs, ahn);
	xa_unlock_irqrestore(&dev->ahs, flags);
}

static void sroce_ah_remember(struct sroce_ah *ah,
			      const struct rdma_ah_attr *attr)
{
	ah->attr = *attr;
	ah->attr.grh.sgid_attr = NULL;
}

static int sroce_ah_respond(struct sroce_ah *ah, struct ib_udata *udata)
{
	struct sroce_create_ah_resp resp = { .ahn = ah->entry->ahn };

	return udata ? ib_respond_udata(udata, resp) : 0;
}

static int sroce_ah_make(struct sroce_ah *ah, struct rdma_ah_init_attr *init,
			 struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ?
		    GFP_KERNEL_ACCOUNT : GFP_ATOMIC;
	struct sroce_device *dev = to_sroce_device(ah->ibah.device);
	struct sroce_ah_entry *e;
	int err;

	e = sroce_ah_entry_new(dev, ah->ibah.pd, init->ah_attr, gfp);
	if (IS_ERR(e))
		return PTR_ERR(e);
	err = sroce_ah_insert(dev, e, gfp);
	if (err)
		goto err_entry;
	ah->entry = e;
	sroce_ah_remember(ah, init->ah_attr);
	err = sroce_ah_respond(ah, udata);
	if (err)
		goto err_erase;
	return 0;

err_erase:
	sroce_ah_erase(dev, e->ahn);
err_entry:
	sroce_ah_entry_drop(e);
	return err;
}

int sroce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata)
{
	struct sroce_device *dev = to_sroce_device(ibah->device);
	int err;

	err = ib_is_udata_in_empty(udata);
	if (!err)
		err = sroce_check_ah_attr(ibah->device, init->ah_attr);
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
int sroce_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct sroce_device *dev = to_sroce_device(ibah->device);
	struct sroce_ah *ah = to_sroce_ah(ibah);
	struct sroce_ah_entry *old = ah->entry;
	struct sroce_ah_entry *e;
	unsigned long flags;
	int err;

	err = sroce_check_ah_attr(ibah->device, attr);
	if (err)
		return err;
	e = sroce_ah_entry_new(dev, ibah->pd, attr, GFP_ATOMIC);
	if (IS_ERR(e))
		return PTR_ERR(e);
	e->ahn = old->ahn;
	xa_lock_irqsave(&dev->ahs, flags);
	/* there is an entry, so nothing has to be allocated */
	__xa_store(&dev->ahs, e->ahn, e, GFP_ATOMIC);
	xa_unlock_irqrestore(&dev->ahs, flags);
	ah->entry = e;
	sroce_ah_remember(ah, attr);
	sroce_ah_entry_drop(old);
	return 0;
}

int sroce_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_sroce_ah(ibah)->attr;
	return 0;
}

int sroce_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct sroce_ah_entry *e = to_sroce_ah(ibah)->entry;

	sroce_ah_erase(to_sroce_device(ibah->device), e->ahn);
	sroce_ah_entry_drop(e);
	sroce_quota_give(to_sroce_device(ibah->device), SROCE_OBJECT_AH);
	return 0;
}

u32 sroce_ah_number(struct ib_ah *ibah)
{
	return to_sroce_ah(ibah)->entry->ahn;
}

struct sroce_path *sroce_ah_path(struct sroce_port *port, u32 ahn,
				 const struct ib_pd *pd)
{
	struct sroce_device *dev = sroce_port_device(port);
	struct sroce_path *path = NULL;
	struct sroce_ah_entry *e;

	rcu_read_lock();
	e = xa_load(&dev->ahs, ahn);
	if (e && e->pd == pd && refcount_inc_not_zero(&e->path->refs))
		path = e->path;
	rcu_read_unlock();
	return path;
}
