// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is ib_core taking the device from its users? That is asked where objects are
 * destroyed (verbs/), because the first one that goes has to take all QPs of processes
 * with it.
 *
 * ib_core does not say it. While it takes a device away it holds the device's
 * unregistration_lock, from before the first object goes to the very end, and destroys
 * the objects in the same task. So the owner of that mutex is looked at here, and nowhere
 * else: the kernel has no such question for modules. This file shrinks to a call when
 * ib_core has that of Documentation/upstream/core-device-going.patch.
 *
 * A client of ib_core (ib_register_client()) would be told, but clients are told in the
 * reverse order of their registration: one of this module would come too late where
 * ib_uverbs was loaded after it.
 */
#include <linux/mutex.h>
#include <linux/sched.h>

#include "device.h"
#include "transport/qp.h"

static bool sroce_mutex_is_mine(const struct mutex *lock)
{
#ifdef CONFIG_PREEMPT_RT
	unsigned long owner = (unsigned long)READ_ONCE(lock->rtmutex.owner);
#else
	unsigned long owner = atomic_long_read(&lock->owner);
#endif

	/* The low bits are flags */
	return (owner & ~7UL) == (unsigned long)current;
}

bool sroce_device_going(struct ib_device *ibdev)
{
	struct sroce_device *dev = to_sroce_device(ibdev);

	/* The end of any network namespace holds it, too, for a moment */
	if (!sroce_mutex_is_mine(&ibdev->unregistration_lock))
		return false;
	if (!test_and_set_bit(0, &dev->abandoned))
		sroce_port_abandon(&dev->port);
	return true;
}

bool sroce_device_awaited(struct ib_device *ibdev)
{
	return mutex_is_locked(&ibdev->unregistration_lock);
}
