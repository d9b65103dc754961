// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups: which QPs of a device get the datagrams for a group.
 *
 * net/receive.c comes here with each packet for a group, verbs/mcast.c with QPs that
 * join and leave.
 *
 * Packets look a group up under RCU. Whoever attaches or detaches holds one
 * mutex for all devices: it is rare.
 */
#include <linux/capability.h>
#include <linux/jhash.h>
#include <linux/mutex.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "compat.h"
#include "counters.h"
#include "path.h"
#include "transport/group.h"
#include "turn.h"

/**
 * struct sroce_group - one group of a device
 * @node: in the device's table
 * @rcu: freed after a grace period
 * @mgid: its address
 * @members: struct sroce_group_member, by their numbers
 * @nmembers: how many there are
 * @last: number of the last one that came
 */
struct sroce_group {
	struct hlist_node node;
	struct rcu_head rcu;
	union ib_gid mgid;
	struct list_head members;
	u32 nmembers;
	u64 last;
};

/**
 * struct sroce_group_member - a QP in a group
 * @node: in the group
 * @of_qp: in the QP's own list
 * @rcu: freed after a grace period
 * @group: the group
 * @qp: the QP, which ends its attachments before itself
 * @number: greater than those of all who were there before
 */
struct sroce_group_member {
	struct list_head node;
	struct list_head of_qp;
	struct rcu_head rcu;
	struct sroce_group *group;
	struct sroce_qp *qp;
	u64 number;
};

static DEFINE_MUTEX(sroce_groups_mutex);

/* A process chooses addresses; with the secret it cannot choose those of one bucket */
static struct hlist_head *sroce_group_bucket(struct sroce_port *port,
					     const union ib_gid *mgid)
{
	static u32 secret __read_mostly;
	u32 hash;

	get_random_once(&secret, sizeof(secret));
	hash = jhash(mgid->raw, sizeof(mgid->raw), secret);
	return &port->groups[hash % SROCE_GROUP_BUCKETS];
}

/* Context: RCU, or the mutex held */
static struct sroce_group *sroce_group_find(struct sroce_port *port,
					    const union ib_gid *mgid)
{
	struct sroce_group *group;

	hlist_for_each_entry_rcu(group, sroce_group_bucket(port, mgid), node,
				 lockdep_is_held(&sroce_groups_mutex))
		if (!memcmp(&group->mgid, mgid, sizeof(*mgid)))
			return group;
	return NULL;
}

static struct sroce_group_member *
sroce_group_find_member(struct sroce_qp *qp, const union ib_gid *mgid)
{
	struct sroce_group_member *a;

	list_for_each_entry(a, &qp->groups, of_qp)
		if (!memcmp(&a->group->mgid, mgid, sizeof(*mgid)))
			return a;
	return NULL;
}

static struct sroce_group *sroce_group_alloc(const union ib_gid *mgid)
{
	struct sroce_group *group = kzalloc_obj(*group, GFP_KERNEL_ACCOUNT);

	if (!group)
		return NULL;
	group->mgid = *mgid;
	INIT_LIST_HEAD(&group->members);
	return group;
}

/* May one more group be made? The last ones are not for just any process */
static bool sroce_group_may_add(const struct sroce_qp *qp)
{
	u32 used = qp->port->ngroups;

	if (used < SROCE_MAX_GROUPS - SROCE_RESERVED_GROUPS)
		return true;
	return used < SROCE_MAX_GROUPS &&
	       (!qp->user || capable(CAP_SYS_RESOURCE));
}

static int sroce_group_add(struct sroce_qp *qp, struct sroce_group *group)
{
	struct sroce_port *port = qp->port;

	if (!sroce_group_may_add(qp))
		return -ENOSPC;
	hlist_add_head_rcu(&group->node,
			   sroce_group_bucket(port, &group->mgid));
	port->ngroups++;
	return 0;
}

static void sroce_group_drop(struct sroce_port *port, struct sroce_group *group)
{
	if (group->nmembers)
		return;
	hlist_del_rcu(&group->node);
	port->ngroups--;
	kfree_rcu(group, rcu);
}

static void sroce_group_enter(struct sroce_group_member *a, struct sroce_qp *qp,
			      struct sroce_group *group)
{
	a->qp = qp;
	a->group = group;
	WRITE_ONCE(group->nmembers, group->nmembers + 1);
	list_add(&a->of_qp, &qp->groups);
	a->number = group->last + 1;
	list_add_tail_rcu(&a->node, &group->members);
	WRITE_ONCE(group->last, a->number);
}

static void sroce_group_leave(struct sroce_group_member *a)
{
	struct sroce_group *group = a->group;

	list_del_rcu(&a->node);
	list_del(&a->of_qp);
	WRITE_ONCE(group->nmembers, group->nmembers - 1);
	sroce_group_drop(a->qp->port, group);
	kfree_rcu(a, rcu);
}

/*
 * On success @a is used; and, where the device did not have the group yet, *@fresh, which
 * is NULL then. What is left is the caller's to free.
 */
static int sroce_group_attach_locked(struct sroce_qp *qp,
				     struct sroce_group_member *a,
				     struct sroce_group **fresh)
{
	const union ib_gid *mgid = &(*fresh)->mgid;
	struct sroce_group *group = sroce_group_find(qp->port, mgid);
	int err;

	if (sroce_group_find_member(qp, mgid))
		return -EEXIST;
	if (group && group->nmembers >= SROCE_MAX_GROUP_QPS)
		return -ENOSPC;
	if (!group) {
		err = sroce_group_add(qp, *fresh);
		if (err)
			return err;
		swap(group, *fresh);
	}
	sroce_group_enter(a, qp, group);
	return 0;
}

/*
 * Everything is allocated before the mutex is taken, which all processes need: one that
 * is at the limit of its memory cgroup may have to wait for memory.
 */
int sroce_group_attach(struct sroce_qp *qp, const union ib_gid *mgid)
{
	struct sroce_group_member *a = kzalloc_obj(*a, GFP_KERNEL_ACCOUNT);
	struct sroce_group *group = sroce_group_alloc(mgid);
	int err = -ENOMEM;

	if (a && group) {
		mutex_lock(&sroce_groups_mutex);
		err = sroce_group_attach_locked(qp, a, &group);
		mutex_unlock(&sroce_groups_mutex);
	}
	if (err)
		kfree(a);
	kfree(group);
	return err;
}

int sroce_group_detach(struct sroce_qp *qp, const union ib_gid *mgid)
{
	struct sroce_group_member *a;

	mutex_lock(&sroce_groups_mutex);
	a = sroce_group_find_member(qp, mgid);
	if (a)
		sroce_group_leave(a);
	mutex_unlock(&sroce_groups_mutex);
	return a ? 0 : -EINVAL;
}

void sroce_group_detach_all(struct sroce_qp *qp)
{
	struct sroce_group_member *a, *next;

	if (list_empty(&qp->groups))
		return;
	mutex_lock(&sroce_groups_mutex);
	list_for_each_entry_safe(a, next, &qp->groups, of_qp)
		sroce_group_leave(a);
	mutex_unlock(&sroce_groups_mutex);
}

/* --- receiving ------------------------------------------------------------- */

static bool sroce_group_rx_next(struct sroce_rx *rx)
{
	return false;
}

/*
 * Give one member the packet, as a buffer of its own with the same bytes. False when the
 * QP has counted it with counters of its own, so that the port must not.
 */
static bool sroce_group_deliver(struct sroce_qp *qp, const struct sroce_rx *rx)
{
	struct sroce_rx one = {
		.t = rx->t,
		.info = rx->info,
		.len = rx->len,
		.packets = 1,
		.next = sroce_group_rx_next,
	};

	if (qp->block_self && rx->info->looped && rx->t.sqpn == qp->qpn)
		return true;
	if (!refcount_inc_not_zero(&qp->refs))
		return true;
	sroce_receive(qp, &one);
	sroce_qp_put(qp);
	return one.packets;
}

/* A datagram counts as so many bytes at least for each of its receivers */
#define SROCE_DELIVERY 2048

u32 sroce_group_most __read_mostly = 2 * SROCE_MAX_GROUP_QPS * SROCE_DELIVERY;

/*
 * A buffer has dozens of datagrams, and each of them may have a thousand receivers:
 * with bottom halves off that were tens of milliseconds for a packet of a few
 * kilobytes, which anybody can send. What is too much is lost, as in a queue that is
 * full, and to all members alike; the first one of a buffer never is.
 */
static bool sroce_group_admit(const struct sroce_group *group,
			      struct sroce_rx *rx)
{
	u32 cost = READ_ONCE(group->nmembers) * max(rx->len, SROCE_DELIVERY);
	u32 *delivered = &rx->spread.delivered;

	/* The rest of the members get what the first ones have got */
	if (rx->spread.served)
		return true;
	if (*delivered && *delivered + cost > READ_ONCE(sroce_group_most))
		return false;
	*delivered += cost;
	return true;
}

/*
 * Give a packet to all members, or to some until the turn is overdue: false then. Who comes
 * meanwhile is not for this one, also if it has been there before, so that none gets it twice.
 */
static bool sroce_group_deliver_some(const struct sroce_group *group,
				     struct sroce_rx *rx)
{
	struct sroce_rx_spread *spread = &rx->spread;
	const u64 before = spread->served;
	struct sroce_group_member *a;

	if (!before)
		spread->last = READ_ONCE(group->last);
	list_for_each_entry_rcu(a, &group->members, node) {
		if (a->number <= before)
			continue;
		if (a->number > spread->last)
			break;
		if (spread->served != before && sroce_turn_overdue())
			return false;
		spread->own |= !sroce_group_deliver(a->qp, rx);
		spread->served = a->number;
	}
	return true;
}

/* On to the next packet. A port does not count what a member has counted. */
static void sroce_group_delivered(struct sroce_rx *rx)
{
	if (rx->spread.own) {
		rx->packets--;
		rx->bytes -= rx->len;
	}
	rx->spread.own = false;
	rx->spread.served = 0;
}

bool sroce_receive_group(struct sroce_netport *net, struct sroce_rx *rx)
{
	struct sroce_port *port = to_sroce_port(net);
	struct sroce_group *group;
	bool all = true;

	if (rx->t.dqpn != SROCE_QPN_MULTICAST || rx->t.service != SROCE_UD) {
		sroce_count(net->counters, SROCE_CNT_RX_DISCARDS, 1);
		return true;
	}
	rcu_read_lock();
	group = sroce_group_find(port, &rx->info->dgid);
	if (!group)
		sroce_count(net->counters, SROCE_CNT_RX_NO_QP, 1);
	else if (!sroce_group_admit(group, rx))
		sroce_count(net->counters, SROCE_CNT_RX_DISCARDS, 1);
	else
		all = sroce_group_deliver_some(group, rx);
	rcu_read_unlock();
	if (all)
		sroce_group_delivered(rx);
	return all;
}
