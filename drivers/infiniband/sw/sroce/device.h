/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One RDMA device with one port on top of one netdev.
 */
#ifndef SROCE_DEVICE_H
#define SROCE_DEVICE_H

#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>

#include "compat.h"
#include "counters.h"
#include "transport/port.h"

/* The kernel's list of driver numbers does not have it */
#define SROCE_RDMA_DRIVER ((__force enum rdma_driver_id)SROCE_DRIVER_ID)

/* Kinds of objects whose number per device is limited (verbs/quota.h) */
enum sroce_object {
	SROCE_OBJECT_PD,
	SROCE_OBJECT_XRCD,
	SROCE_OBJECT_CQ,
	SROCE_OBJECT_SRQ,
	SROCE_OBJECT_QP,
	SROCE_OBJECT_MR,
	SROCE_OBJECT_MW,
	SROCE_OBJECT_AH,
	SROCE_OBJECT_DM,
	SROCE_OBJECT_IND_TABLE,
	SROCE_OBJECT_COUNTERS,
	SROCE_OBJECTS
};

/**
 * struct sroce_device - one RDMA device
 * @ibdev: what ib_core knows
 * @port: what the transport knows
 * @ndev: netdev, held until the device is gone, also after it was unregistered
 * @ndev_tracker: of that hold
 * @net: network namespace that @port is attached in; not to be looked at, it
 *	may be gone when the netdev has left it. Once the device is registered,
 *	this and @attached change under RTNL
 * @attached: the network layer was told of @port
 * @gid_work: has the core look at the netdev's addresses again
 * @gids_next: jiffies before which it does not do so again
 * @address_gone: bit 0: an address was removed since @gid_work ran last
 * @objects: how many of each kind there are
 * @pkey_lock: serialises those who change the P_Key table
 * @bound: counters that QPs were bound to, by the number of the rdma_counter
 * @bound_lock: for ending these counters, reading them and adding them up; protects
 *	@bound_past. Taken inside ib_core's lock of a counter
 * @bound_past: sums of those that are gone
 * @abandoned: bit 0: its processes' QPs are flushed, because it goes away
 * @link_up: the link state that was reported last
 * @link_downed: how often the link went down
 */
struct sroce_device {
	struct ib_device ibdev;
	struct sroce_port port;
	struct net_device *ndev;
	netdevice_tracker ndev_tracker;
	struct net *net;
	bool attached;
	struct delayed_work gid_work;
	unsigned long gids_next;
	unsigned long address_gone;
	atomic_t objects[SROCE_OBJECTS];
	struct mutex pkey_lock; /* see above */
	struct xarray bound;
	struct mutex bound_lock; /* see above */
	u64 bound_past[SROCE_CNT_NUM];
	unsigned long abandoned;
	bool link_up;
	atomic_t link_downed;
};

static inline struct sroce_device *to_sroce_device(struct ib_device *ibdev)
{
	return container_of(ibdev, struct sroce_device, ibdev);
}

/**
 * sroce_device_add() - make a device on top of a netdev and register it
 * @name: its name
 * @ndev: netdev, held by the caller
 *
 * Context: process, no RTNL.
 * Return: 0 or a negative errno; nothing is left behind on failure.
 */
int sroce_device_add(const char *name, struct net_device *ndev);

/**
 * sroce_device_free() - the end of a device
 * @ibdev: device, which nothing of ib_core uses any more
 *
 * Context: process; ib_core's operation dealloc_driver.
 */
void sroce_device_free(struct ib_device *ibdev);

/* --- going.c: is ib_core taking it away? --------------------------------------- */

/**
 * sroce_device_going() - is ib_core taking the device from its processes?
 * @ibdev: device
 *
 * To be asked when an object is destroyed. ib_core destroys them one by one and
 * tells the driver about the whole context last; where the first one goes,
 * all QPs are flushed, so that neither process nor peer takes what follows for
 * an error of its own.
 *
 * Context: process.
 */
bool sroce_device_going(struct ib_device *ibdev);

/**
 * sroce_device_awaited() - may somebody be waiting to take the device away?
 * @ibdev: device, which a call of a process holds
 *
 * Context: any. It is also true while any network namespace ends, for a moment.
 */
bool sroce_device_awaited(struct ib_device *ibdev);

/* --- addresses.c: GIDs that ib_core leaves alone ---------------------------- */

/* For a new device */
void sroce_addresses_setup(struct sroce_device *dev);
/* Look for addresses that a netdev's device has no GID of yet. Context: any. */
void sroce_addresses_check(struct net_device *ndev);
/* The device ends, and nothing holds it any more */
void sroce_addresses_end(struct sroce_device *dev);
/* Module start and end: what follows addresses */
/* Jiffies until the netdev's addresses may be looked at again. Context: any */
unsigned long sroce_addresses_delay(const struct sroce_device *dev);
int sroce_addresses_init(void);
void sroce_addresses_exit(void);

/* Module start and end: what follows netdevs and network namespaces */
int sroce_device_init(void);
void sroce_device_exit(void);

#endif
