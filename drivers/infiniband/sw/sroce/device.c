// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One RDMA device per netdev.
 *
 * A device ends in one of three ways: "rdma link del", its netdev is
 * unregistered (which the end of a network namespace does to most), or the
 * module is removed. All come to ib_core, which first takes the device from its
 * users without waiting for any of them, and then calls sroce_device_free().
 *
 * When the netdev moves to another network namespace, the device receives
 * there from then on; the paths it had are cut. Who may open the device is
 * another question, and ib_core's ("rdma dev set netns").
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/uverbs_ioctl.h>

#include "device.h"
#include "net/net.h"
#include "raw/raw.h"
#include "transport/ah.h"
#include "verbs/limits.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

static bool sroce_roce_v1;
module_param_named(roce_v1, sroce_roce_v1, bool, 0644);
MODULE_PARM_DESC(roce_v1,
		 "Speak RoCE v1 besides RoCE v2: GIDs of both types; read when a device is made, of Ethernet netdevs (default: N)");

/* --- end -------------------------------------------------------------------- */

/* The netdev goes last, because whoever asks for the port's state looks at it */
void sroce_device_free(struct ib_device *ibdev)
{
	struct sroce_device *dev = to_sroce_device(ibdev);

	sroce_addresses_end(dev);
	sroce_raw_destroy(dev->port.net.raw);
	if (dev->attached)
		sroce_net_detach(dev->net, &dev->port.net);
	sroce_ah_table_destroy(&dev->port);
	sroce_mr_table_destroy(&dev->port.mrs);
	sroce_txq_pool_end(&dev->port.queued);
	sroce_bound_destroy(dev);
	sroce_quota_end(dev);
	free_percpu(dev->port.net.counters);
	put_device(ibdev->dev.parent);
	netdev_put(dev->ndev, &dev->ndev_tracker);
}

/* --- beginning ---------------------------------------------------------------- */

/*
 * From the MAC address where there is one. The GUID stays the same when that
 * changes: to the consumers it would be another device.
 */
static __be64 sroce_device_guid(const struct net_device *ndev)
{
	u8 mac[ETH_ALEN];
	__be64 guid;

	if (ndev->addr_len == ETH_ALEN && is_valid_ether_addr(ndev->dev_addr))
		ether_addr_copy(mac, ndev->dev_addr);
	else
		eth_random_addr(mac);
	addrconf_addr_eui48((u8 *)&guid, mac);
	return guid;
}

static u32 sroce_device_mtu(const struct net_device *ndev)
{
	return ib_mtu_enum_to_int(max(iboe_get_mtu(ndev->mtu), IB_MTU_256));
}

/* Note the netdev's namespace and index. Context: RTNL held, not attached. */
static void sroce_device_locate(struct sroce_device *dev)
{
	dev->net = dev_net(dev->ndev);
	WRITE_ONCE(dev->port.net.net_cookie, dev->net->net_cookie);
	WRITE_ONCE(dev->port.net.ifindex, dev->ndev->ifindex);
}

static void sroce_port_setup(struct sroce_device *dev)
{
	struct sroce_port *port = &dev->port;

	port->xmit = &sroce_net_xmit_ops;
	port->raw_xmit = sroce_raw_xmit;
	port->ibdev = &dev->ibdev;
	port->mtu = sroce_device_mtu(dev->ndev);
	port->pkeys[0] = SROCE_DEFAULT_PKEY;
	sroce_congestion_setup(dev);
	sroce_recovery_setup(dev);
	sroce_mr_table_init(&port->mrs);
	sroce_txq_pool_init(&port->queued);
	sroce_ah_table_init(port);
}

static void sroce_ibdev_setup(struct sroce_device *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	/*
	 * The card, where the netdev has one: "device" in sysfs and the NUMA
	 * node. Messages name it for as long as there is a device.
	 */
	ibdev->dev.parent = get_device(dev->ndev->dev.parent);
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	/* CPUs by number, see struct sroce_cq */
	ibdev->num_comp_vectors = nr_cpu_ids;
	ibdev->local_dma_lkey = SROCE_LOCAL_DMA_LKEY;
	ibdev->node_guid = sroce_device_guid(dev->ndev);
	strscpy(ibdev->node_desc, "sroce", sizeof(ibdev->node_desc));
	ib_set_device_ops(ibdev, &sroce_device_ops);
	if (IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS))
		ibdev->driver_def = sroce_uapi_defs;
}

static void sroce_device_setup(struct sroce_device *dev,
			       struct net_device *ndev)
{
	dev->ndev = ndev;
	netdev_hold(ndev, &dev->ndev_tracker, GFP_KERNEL);
	sroce_device_locate(dev);
	dev->port.net.roce_v1 = READ_ONCE(sroce_roce_v1) &&
				ndev->type == ARPHRD_ETHER;
	dev->link_up = sroce_link_up(ndev);
	sroce_addresses_setup(dev);
	mutex_init(&dev->pkey_lock);
	sroce_bound_init(dev);
	sroce_port_setup(dev);
	sroce_ibdev_setup(dev);
}

static int sroce_device_check_netdev(struct net_device *ndev)
{
	struct ib_device *ibdev;

	/* the core gives such a device no GIDs; the lower one serves the VLAN */
	if (is_vlan_dev(ndev)) {
		netdev_err(ndev, "sroce: RDMA for a VLAN is with the device below, %s: its RDMA device has the VLAN's GIDs\n",
			   vlan_dev_real_dev(ndev)->name);
		return -EOPNOTSUPP;
	}
	switch (ndev->type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
	case ARPHRD_NONE:
		break;
	default:
		netdev_err(ndev, "sroce: not an Ethernet-like device\n");
		return -EOPNOTSUPP;
	}
	if (ndev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	ibdev = ib_device_get_by_netdev(ndev, SROCE_RDMA_DRIVER);
	if (!ibdev)
		return 0;
	netdev_err(ndev, "sroce: has the RDMA device %s already\n",
		   dev_name(&ibdev->dev));
	ib_device_put(ibdev);
	return -EEXIST;
}

/*
 * Under RTNL: the netdev can neither be unregistered nor leave its namespace.
 * When this fails and has set @made, the caller frees that by ib_dealloc_device(),
 * which undoes everything, and without RTNL: it takes a lock under which ib_core
 * takes RTNL.
 */
static int sroce_device_make(struct net_device *ndev,
			     struct sroce_device **made)
{
	struct sroce_device *dev;
	int err;

	err = sroce_device_check_netdev(ndev);
	if (err)
		return err;
	dev = ib_alloc_device_with_net(sroce_device, ibdev, dev_net(ndev));
	if (!dev)
		return -ENOMEM;
	*made = dev;
	dev->port.net.counters = sroce_counters_alloc();
	if (!dev->port.net.counters)
		return -ENOMEM;
	sroce_device_setup(dev, ndev);
	dev->port.net.raw = sroce_raw_create(ndev, &dev->port.net);
	if (!dev->port.net.raw)
		return -ENOMEM;
	return ib_device_set_netdev(&dev->ibdev, ndev, SROCE_PORT);
}

static int sroce_device_attach(struct sroce_device *dev)
{
	struct netlink_ext_ack extack = {};
	int err;

	err = sroce_net_attach(dev->net, &dev->port.net, &extack);
	if (err) {
		netdev_err(dev->ndev, "%s (%d)\n",
			   extack._msg ?: "sroce: no way into the network",
			   err);
		return err;
	}
	dev->attached = true;
	sroce_raw_attach(dev->port.net.raw);
	return 0;
}

static void sroce_device_leave(struct sroce_device *dev)
{
	sroce_raw_detach(dev->port.net.raw);
	if (dev->attached)
		sroce_net_detach(dev->net, &dev->port.net);
	dev->attached = false;
}

/* Be in the network namespace that the netdev is in. Under RTNL */
static void sroce_device_follow(struct sroce_device *dev)
{
	if (dev->attached && net_eq(dev->net, dev_net(dev->ndev)))
		return;
	sroce_device_leave(dev);
	sroce_device_locate(dev);
	/* the device cannot listen there: better none than a deaf one */
	if (sroce_device_attach(dev))
		ib_unregister_device_queued(&dev->ibdev);
}

/* The netdev is being unregistered, and wants to be left alone */
static void sroce_device_lose_netdev(struct sroce_device *dev)
{
	sroce_raw_detach(dev->port.net.raw);
	ib_unregister_device_queued(&dev->ibdev);
}

static void sroce_device_dispatch(struct sroce_device *dev,
				  enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = type,
		.element.port_num = SROCE_PORT,
	};

	ib_dispatch_event(&event);
}

static void sroce_link_changed(struct sroce_device *dev)
{
	bool up = sroce_link_up(dev->ndev);

	if (up == dev->link_up)
		return;
	dev->link_up = up;
	if (!up)
		atomic_inc(&dev->link_downed);
	if (!sroce_core_reports_port_state(dev->ndev))
		sroce_device_dispatch(dev, up ? IB_EVENT_PORT_ACTIVE :
						IB_EVENT_PORT_ERR);
}

static void sroce_device_update(struct sroce_device *dev)
{
	if (dev->ndev->reg_state == NETREG_REGISTERED)
		sroce_device_follow(dev);
	else
		sroce_device_lose_netdev(dev);
	if (!sroce_raw_possible(dev->port.net.raw))
		sroce_raw_detach(dev->port.net.raw);
	WRITE_ONCE(dev->port.mtu, sroce_device_mtu(dev->ndev));
	sroce_link_changed(dev);
}

/*
 * The notifier cannot find a device before it is registered, so what happened
 * to the netdev until then is made up for here. The device may be gone already.
 */
static void sroce_device_catch_up(struct net_device *ndev)
{
	struct ib_device *ibdev;

	rtnl_lock();
	ibdev = ib_device_get_by_netdev(ndev, SROCE_RDMA_DRIVER);
	if (ibdev) {
		sroce_device_update(to_sroce_device(ibdev));
		ib_device_put(ibdev);
	}
	rtnl_unlock();
	sroce_addresses_check(ndev);
}

static int sroce_device_register(struct sroce_device *dev, const char *name,
				 struct net_device *ndev)
{
	int err;

	err = sroce_device_attach(dev);
	if (!err) {
		ib_mark_name_assigned_by_user(&dev->ibdev);
		err = ib_register_device(&dev->ibdev, name, NULL);
	}
	if (err)
		ib_dealloc_device(&dev->ibdev);
	else
		sroce_device_catch_up(ndev);
	/* ib_core says ENFILE when the name is in use */
	return err == -ENFILE ? -EEXIST : err;
}

/* Two at a time would both find that the netdev has no device yet */
static DEFINE_MUTEX(sroce_add_lock);

int sroce_device_add(const char *name, struct net_device *ndev)
{
	struct sroce_device *dev = NULL;
	struct net *net;
	int err;

	mutex_lock(&sroce_add_lock);
	rtnl_lock();
	/* held until the notifier sees the netdev leave this namespace */
	net = maybe_get_net(dev_net(ndev));
	err = net ? sroce_device_make(ndev, &dev) : -ENODEV;
	rtnl_unlock();
	if (!err)
		err = sroce_device_register(dev, name, ndev);
	else if (dev)
		ib_dealloc_device(&dev->ibdev);
	if (net)
		put_net(net);
	mutex_unlock(&sroce_add_lock);
	return err;
}

/* --- following the netdev --------------------------------------------------------- */

static void sroce_device_reopen_raw(struct sroce_device *dev)
{
	if (dev->attached)
		sroce_raw_attach(dev->port.net.raw);
}

/*
 * GIDs follow addresses in the core; QPs keep their path MTU, and what does not
 * fit any more is lost, as it would be on a wire.
 */
static void sroce_netdev_changed(struct sroce_device *dev, unsigned long event)
{
	switch (event) {
	case NETDEV_PRE_TYPE_CHANGE:
		/* Its filter would not find an Ethernet address again; the flows end */
		sroce_raw_detach(dev->port.net.raw);
		break;
	case NETDEV_POST_TYPE_CHANGE:
		sroce_device_reopen_raw(dev);
		break;
	case NETDEV_UP:
		/* Somebody may have been against another type */
		sroce_device_reopen_raw(dev);
		fallthrough;
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		sroce_link_changed(dev);
		break;
	case NETDEV_CHANGEMTU:
		WRITE_ONCE(dev->port.mtu, sroce_device_mtu(dev->ndev));
		break;
	case NETDEV_UNREGISTER:
		/* of one that only moves to another namespace, too */
		if (dev->ndev->reg_state == NETREG_REGISTERED)
			sroce_device_leave(dev);
		else
			sroce_device_lose_netdev(dev);
		break;
	case NETDEV_REGISTER:
		sroce_device_follow(dev);
		break;
	}
}

static int sroce_netdev_event(struct notifier_block *nb, unsigned long event,
			      void *ptr)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct ib_device *ibdev;

	ibdev = ib_device_get_by_netdev(ndev, SROCE_RDMA_DRIVER);
	if (ibdev) {
		sroce_netdev_changed(to_sroce_device(ibdev), event);
		ib_device_put(ibdev);
	}
	return NOTIFY_DONE;
}

static struct notifier_block sroce_netdev_notifier = {
	.notifier_call = sroce_netdev_event,
};

int sroce_device_init(void)
{
	int err;

	err = sroce_addresses_init();
	if (err)
		return err;
	err = register_netdevice_notifier(&sroce_netdev_notifier);
	if (err)
		sroce_addresses_exit();
	return err;
}

/* Context: no device can be added any more. Returns when the last one has gone. */
void sroce_device_exit(void)
{
	/*
	 * A notifier that is unregistered is told that every netdev goes. Kernel users of
	 * the devices have to go first, while they can still write back and say goodbye.
	 */
	ib_unregister_driver(SROCE_RDMA_DRIVER);
	unregister_netdevice_notifier(&sroce_netdev_notifier);
	sroce_addresses_exit();
}
