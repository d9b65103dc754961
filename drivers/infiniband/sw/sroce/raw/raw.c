// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packets: what a process with CAP_NET_RAW may do with the Ethernet frames of a
 * device's netdev. It sees and sends what a packet socket on that netdev could, and no
 * more; the host's own traffic goes on as if nobody looked.
 *
 *	verbs/flow.c, verbs/wq.c	what ib_core calls
 *	raw.c				begin and end, flows and the netdev's filter
 *	frame.c, flow.c			which flows a frame is for
 *	rss.c				which work queue of several
 *	rx.c				in: a packet tap, as long as there are flows
 *	later.c				frames that wait for a worker
 *	tx.c				out: checks, checksums, dev_queue_xmit()
 *	transport/raw.c			work requests and completions
 *
 * A queue belongs to the network namespace in which it was made. When the netdev leaves
 * that, its flows are taken out of the table, what it sends is lost, and whoever wants more
 * has to be allowed to by the namespace that the netdev is in then.
 *
 * All that is changed is changed under RTNL, because the netdev's filter is.
 */
#include <linux/capability.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "netport.h"
#include "raw/internal.h"

/*
 * The tap outlives the last flow by so much. To take it away means to wait for a grace period
 * under RTNL, and whoever makes and ends one flow again and again does not choose how often.
 */
#define SROCE_RAW_IDLE HZ

/*
 * So many addresses a netdev's filter is told of for flows. For each further one it would go
 * through all that it has, with its lock held: it takes all frames, or all groups, then.
 */
#define SROCE_RAW_FILTER_MOST 64

/* What the netdev's filter is told for a flow */
enum sroce_raw_filter {
	SROCE_RAW_NONE,
	SROCE_RAW_UNICAST,
	SROCE_RAW_GROUP,
	SROCE_RAW_ALL_GROUPS,
	SROCE_RAW_ALL,
};

/* --- the netdev's filter ---------------------------------------------------- */

static enum sroce_raw_filter
sroce_raw_filter_of(const struct net_device *ndev,
		    const struct sroce_flow_rule *rule)
{
	switch (rule->type) {
	case SROCE_FLOW_SNIFFER:
	case SROCE_FLOW_DEFAULT:
		return SROCE_RAW_ALL;
	case SROCE_FLOW_MULTICAST:
		return SROCE_RAW_ALL_GROUPS;
	default:
		break;
	}
	if (!is_broadcast_ether_addr(rule->mask.dmac) ||
	    is_zero_ether_addr(rule->key.dmac) ||
	    is_broadcast_ether_addr(rule->key.dmac) ||
	    ether_addr_equal(rule->key.dmac, ndev->dev_addr))
		return SROCE_RAW_NONE;
	return is_multicast_ether_addr(rule->key.dmac) ? SROCE_RAW_GROUP :
							 SROCE_RAW_UNICAST;
}

static bool sroce_raw_filter_is_address(u8 filter)
{
	return filter == SROCE_RAW_UNICAST || filter == SROCE_RAW_GROUP;
}

/* One filter for all addresses of a kind */
static u8 sroce_raw_filter_coarse(u8 filter)
{
	return filter == SROCE_RAW_GROUP ? SROCE_RAW_ALL_GROUPS : SROCE_RAW_ALL;
}

/* What the netdev does not do, frames that come all the same show */
static int sroce_raw_filter_tell(struct net_device *ndev,
				 const struct sroce_flow *flow)
{
	switch (flow->filter) {
	case SROCE_RAW_UNICAST:
		return dev_uc_add(ndev, flow->rule.key.dmac);
	case SROCE_RAW_GROUP:
		return dev_mc_add(ndev, flow->rule.key.dmac);
	case SROCE_RAW_ALL_GROUPS:
		return dev_set_allmulti(ndev, 1);
	case SROCE_RAW_ALL:
		return dev_set_promiscuity(ndev, 1);
	default:
		return 0;
	}
}

static void sroce_raw_filter_set(struct sroce_raw *raw,
				 struct sroce_flow *flow)
{
	bool address;

	flow->filter = sroce_raw_filter_of(raw->ndev, &flow->rule);
	address = sroce_raw_filter_is_address(flow->filter);
	if (address && raw->naddresses >= SROCE_RAW_FILTER_MOST) {
		flow->filter = sroce_raw_filter_coarse(flow->filter);
		address = false;
	}
	if (sroce_raw_filter_tell(raw->ndev, flow))
		flow->filter = SROCE_RAW_NONE;
	else if (address)
		raw->naddresses++;
}

static void sroce_raw_filter_clear(struct sroce_raw *raw,
				   struct sroce_flow *flow)
{
	struct net_device *ndev = raw->ndev;

	if (sroce_raw_filter_is_address(flow->filter))
		raw->naddresses--;
	switch (flow->filter) {
	case SROCE_RAW_UNICAST:
		dev_uc_del(ndev, flow->rule.key.dmac);
		break;
	case SROCE_RAW_GROUP:
		dev_mc_del(ndev, flow->rule.key.dmac);
		break;
	case SROCE_RAW_ALL_GROUPS:
		dev_set_allmulti(ndev, -1);
		break;
	case SROCE_RAW_ALL:
		dev_set_promiscuity(ndev, -1);
		break;
	}
	flow->filter = SROCE_RAW_NONE;
}

/* --- flows ------------------------------------------------------------------ */

bool sroce_raw_possible(const struct sroce_raw *raw)
{
	return raw->ndev->type == ARPHRD_ETHER ||
	       raw->ndev->type == ARPHRD_LOOPBACK;
}

static int sroce_raw_check_allowed(const struct sroce_raw *raw)
{
	if (!raw->open)
		return sroce_raw_possible(raw) ? -ENODEV : -EOPNOTSUPP;
	/* On its way to another one: whoever may there may not here */
	if (dev_net(raw->ndev)->net_cookie != raw->net_cookie)
		return -ENODEV;
	return ns_capable(dev_net(raw->ndev)->user_ns, CAP_NET_RAW) ? 0 : -EPERM;
}

int sroce_raw_allowed(struct sroce_raw *raw, u64 *net_cookie)
{
	int err;

	rtnl_lock();
	err = sroce_raw_check_allowed(raw);
	*net_cookie = raw->net_cookie;
	rtnl_unlock();
	return err;
}

/* Sniffers see what the host sends, too, and nobody else wants to be asked for that */
static void sroce_raw_set_outgoing(struct sroce_raw *raw)
{
	WRITE_ONCE(raw->hook.ignore_outgoing,
		   !raw->table.nothers[SROCE_FLOW_SNIFFER]);
}

static int sroce_raw_start_flow(struct sroce_raw *raw, struct sroce_flow *flow,
				u64 net_cookie)
{
	int err;

	err = sroce_raw_check_allowed(raw);
	if (err)
		return err;
	if (net_cookie != raw->net_cookie)
		return -ENODEV;
	err = sroce_flow_table_add(&raw->table, flow, false);
	if (err == -ENOSPC && capable(CAP_SYS_RESOURCE))
		err = sroce_flow_table_add(&raw->table, flow, true);
	if (err)
		return err;
	sroce_raw_filter_set(raw, flow);
	list_add_tail(&flow->device, &raw->flows);
	sroce_raw_set_outgoing(raw);
	sroce_raw_hook(raw);
	return 0;
}

static void sroce_raw_stop_flow(struct sroce_raw *raw, struct sroce_flow *flow)
{
	if (!flow->listed)
		return;
	sroce_raw_filter_clear(raw, flow);
	sroce_flow_table_del(&raw->table, flow);
	list_del_init(&flow->device);
	sroce_raw_set_outgoing(raw);
	if (list_empty(&raw->flows))
		schedule_delayed_work(&raw->idle, SROCE_RAW_IDLE);
}

static void sroce_raw_idle(struct work_struct *work)
{
	struct sroce_raw *raw =
		container_of(work, struct sroce_raw, idle.work);

	rtnl_lock();
	if (list_empty(&raw->flows))
		sroce_raw_unhook(raw);
	rtnl_unlock();
}

struct sroce_flow *sroce_raw_add_flow(struct sroce_raw *raw,
				      const struct sroce_flow_rule *rule,
				      u64 net_cookie)
{
	struct sroce_flow *flow = sroce_flow_alloc(rule);
	int err;

	if (!flow)
		return ERR_PTR(-ENOMEM);
	rtnl_lock();
	err = sroce_raw_start_flow(raw, flow, net_cookie);
	rtnl_unlock();
	if (!err)
		return flow;
	sroce_flow_free(flow);
	return ERR_PTR(err);
}

void sroce_raw_del_flow(struct sroce_raw *raw, struct sroce_flow *flow)
{
	rtnl_lock();
	sroce_raw_stop_flow(raw, flow);
	rtnl_unlock();
	sroce_flow_free(flow);
}

/* --- begin and end ---------------------------------------------------------- */

void sroce_raw_attach(struct sroce_raw *raw)
{
	if (!sroce_raw_possible(raw))
		return;
	raw->net_cookie = raw->port->net_cookie;
	/* Pairs with sroce_raw_may_send(): the cookie is there first */
	smp_store_release(&raw->open, true);
}

void sroce_raw_detach(struct sroce_raw *raw)
{
	struct sroce_flow *flow, *next;

	if (!raw->open)
		return;
	WRITE_ONCE(raw->open, false);
	/* Those who free them find that they are in no list any more */
	list_for_each_entry_safe(flow, next, &raw->flows, device)
		sroce_raw_stop_flow(raw, flow);
	sroce_raw_unhook(raw);
	/* Whoever is sending has ended */
	synchronize_net();
}

struct sroce_raw *sroce_raw_create(struct net_device *ndev,
				   struct sroce_netport *port)
{
	struct sroce_raw *raw = kzalloc_obj(*raw, GFP_KERNEL);

	if (!raw)
		return NULL;
	raw->ndev = ndev;
	raw->port = port;
	INIT_LIST_HEAD(&raw->flows);
	INIT_DELAYED_WORK(&raw->idle, sroce_raw_idle);
	sroce_flow_table_init(&raw->table);
	sroce_raw_rx_init(raw);
	return raw;
}

void sroce_raw_destroy(struct sroce_raw *raw)
{
	if (!raw)
		return;
	rtnl_lock();
	sroce_raw_detach(raw);
	rtnl_unlock();
	cancel_delayed_work_sync(&raw->idle);
	sroce_flow_table_end(&raw->table);
	/* Whoever sends or receives holds a queue, of which there is none any more */
	kfree(raw);
}

void sroce_raw_exit(void)
{
	/* Flows and tables let go of queues, which are freed in the same way */
	rcu_barrier();
}
