// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups: what ib_core calls. Each membership joins the group on the
 * netdev, where memberships are counted.
 */
#include <linux/slab.h>

#include "net/net.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

/**
 * struct sroce_mcast - a QP's membership
 * @node: in the QP's list
 * @mgid: the group
 * @join: the netdev's membership
 */
struct sroce_mcast {
	struct list_head node;
	union ib_gid mgid;
	struct sroce_join *join;
};

static struct sroce_mcast *sroce_mcast_find(struct sroce_qp_obj *obj,
					    const union ib_gid *mgid)
{
	struct sroce_mcast *m;

	list_for_each_entry(m, &obj->mcasts, node)
		if (!memcmp(&m->mgid, mgid, sizeof(*mgid)))
			return m;
	return NULL;
}

static int sroce_mcast_begin(struct sroce_qp_obj *obj, struct sroce_mcast *m)
{
	struct sroce_device *dev = to_sroce_device(obj->ibqp.device);
	int err;

	m->join = sroce_net_join(dev->ndev, &m->mgid,
				 dev->port.net.roce_v1);
	if (IS_ERR(m->join)) {
		ibdev_dbg(&dev->ibdev, "attach_mcast: %pI6c: %ld\n",
			  m->mgid.raw, PTR_ERR(m->join));
		return PTR_ERR(m->join);
	}
	err = sroce_group_attach(obj->qp, &m->mgid);
	if (err)
		sroce_net_leave(m->join);
	return err;
}

static int sroce_mcast_add(struct sroce_qp_obj *obj, const union ib_gid *mgid)
{
	struct sroce_mcast *m;
	int err;

	/*
	 * ib_core counts each attach that succeeds, until as many detaches have, and lets
	 * no QP go before. A process is not told: to attach twice is as good as once
	 * (IBA 11.3.1), and uverbs asks only for a group that the QP is not in, or
	 * that has another LID, which means nothing here.
	 */
	if (sroce_mcast_find(obj, mgid))
		return -EEXIST;
	if (obj->nmcasts >= SROCE_MAX_QP_GROUPS)
		return -ENOSPC;
	m = kzalloc_obj(*m, GFP_KERNEL_ACCOUNT);
	if (!m)
		return -ENOMEM;
	m->mgid = *mgid;
	err = sroce_mcast_begin(obj, m);
	if (err) {
		kfree(m);
		return err;
	}
	list_add(&m->node, &obj->mcasts);
	obj->nmcasts++;
	return 0;
}

static void sroce_mcast_del(struct sroce_qp_obj *obj, struct sroce_mcast *m)
{
	list_del(&m->node);
	obj->nmcasts--;
	sroce_group_detach(obj->qp, &m->mgid);
	sroce_net_leave(m->join);
	kfree(m);
}

/* ib_core has seen to it that the address is a group's and the QP's type UD */
int sroce_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 lid)
{
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	int err;

	mutex_lock(&obj->lock);
	err = sroce_mcast_add(obj, mgid);
	mutex_unlock(&obj->lock);
	return err;
}

int sroce_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 lid)
{
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	struct sroce_mcast *m;

	mutex_lock(&obj->lock);
	m = sroce_mcast_find(obj, mgid);
	if (m)
		sroce_mcast_del(obj, m);
	mutex_unlock(&obj->lock);
	return m ? 0 : -EINVAL;
}

void sroce_mcast_del_all(struct sroce_qp_obj *obj)
{
	struct sroce_mcast *m, *next;

	list_for_each_entry_safe(m, next, &obj->mcasts, node)
		sroce_mcast_del(obj, m);
}
