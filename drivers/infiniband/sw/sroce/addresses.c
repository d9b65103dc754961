// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Addresses of netdevs that are not Ethernet: lo, and tun, which has no MAC
 * address. ib_core makes GIDs of those that are there when a device is
 * registered, but of what changes later only on Ethernet (roce_gid_mgmt.c).
 */
#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>

#include "compat.h"
#include "device.h"
#include "verbs/limits.h"

/*
 * The core looks at all netdevs of the host for that, under RTNL. Who may change addresses
 * in a container has that done no more often than so.
 */
#define GID_INTERVAL (HZ / 10)

static void sroce_gid_work(struct work_struct *work)
{
	struct sroce_device *dev = container_of(to_delayed_work(work),
						struct sroce_device, gid_work);

	/* It is going: whoever takes it away waits for its holds, and then for this work */
	if (!ib_device_try_get(&dev->ibdev))
		return;
	/* What changes meanwhile is for the next look, which is not to follow at once */
	WRITE_ONCE(dev->gids_next, jiffies + GID_INTERVAL);
	/*
	 * ib_core can only delete all GIDs of a netdev. Those whose address is
	 * still there come back with the rescan.
	 */
	if (test_and_clear_bit(0, &dev->address_gone))
		sroce_core_del_gids(&dev->ibdev, SROCE_PORT, dev->ndev);
	rdma_roce_rescan_device(&dev->ibdev);
	WRITE_ONCE(dev->gids_next, jiffies + GID_INTERVAL);
	ib_device_put(&dev->ibdev);
}

void sroce_addresses_setup(struct sroce_device *dev)
{
	INIT_DELAYED_WORK(&dev->gid_work, sroce_gid_work);
	dev->gids_next = jiffies;
}

void sroce_addresses_end(struct sroce_device *dev)
{
	cancel_delayed_work_sync(&dev->gid_work);
}

unsigned long sroce_addresses_delay(const struct sroce_device *dev)
{
	unsigned long next = READ_ONCE(dev->gids_next), now = jiffies;

	/* Jiffies wrap: what is further away than it can be has long passed */
	return next - now <= GID_INTERVAL ? next - now : 0;
}

/*
 * Work that waits does not hold the device: events that come without a pause would hold it
 * for ever.
 */
static void sroce_addresses_changed(struct sroce_device *dev,
				    unsigned long event)
{
	if (event == NETDEV_DOWN)
		set_bit(0, &dev->address_gone);
	schedule_delayed_work(&dev->gid_work, sroce_addresses_delay(dev));
	ib_device_put(&dev->ibdev);
}

static int sroce_address_event(struct net_device *ndev, unsigned long event)
{
	struct ib_device *ibdev;

	if (ndev->type == ARPHRD_ETHER)
		return NOTIFY_DONE;
	ibdev = ib_device_get_by_netdev(ndev, SROCE_RDMA_DRIVER);
	if (ibdev)
		sroce_addresses_changed(to_sroce_device(ibdev), event);
	return NOTIFY_DONE;
}

void sroce_addresses_check(struct net_device *ndev)
{
	sroce_address_event(ndev, NETDEV_UP);
}

static int sroce_inetaddr_event(struct notifier_block *nb, unsigned long event,
				void *ptr)
{
	const struct in_ifaddr *ifa = ptr;

	return sroce_address_event(ifa->ifa_dev->dev, event);
}

static int sroce_inet6addr_event(struct notifier_block *nb, unsigned long event,
				 void *ptr)
{
	const struct inet6_ifaddr *ifa = ptr;

	return sroce_address_event(ifa->idev->dev, event);
}

static struct notifier_block sroce_inetaddr_notifier = {
	.notifier_call = sroce_inetaddr_event,
};

static struct notifier_block sroce_inet6addr_notifier = {
	.notifier_call = sroce_inet6addr_event,
};

int sroce_addresses_init(void)
{
	int err;

	err = register_inetaddr_notifier(&sroce_inetaddr_notifier);
	if (err || !IS_ENABLED(CONFIG_IPV6))
		return err;
	err = register_inet6addr_notifier(&sroce_inet6addr_notifier);
	if (err)
		unregister_inetaddr_notifier(&sroce_inetaddr_notifier);
	return err;
}

void sroce_addresses_exit(void)
{
	if (IS_ENABLED(CONFIG_IPV6))
		unregister_inet6addr_notifier(&sroce_inet6addr_notifier);
	unregister_inetaddr_notifier(&sroce_inetaddr_notifier);
}
