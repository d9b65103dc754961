/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks that kernel users may come to with interrupts off.
 *
 * Nothing of this driver runs in hard interrupt context, so keeping softirqs
 * away is enough; but bottom halves cannot be turned on again while interrupts
 * are off, and need not be turned off then either.
 */
#ifndef SROCE_LOCK_H
#define SROCE_LOCK_H

#include <linux/bottom_half.h>
#include <linux/irqflags.h>
#include <linux/spinlock.h>

static inline void sroce_lock(spinlock_t *lock) __acquires(lock)
{
	if (irqs_disabled())
		spin_lock(lock);
	else
		spin_lock_bh(lock);
}

static inline void sroce_unlock(spinlock_t *lock) __releases(lock)
{
	if (irqs_disabled())
		spin_unlock(lock);
	else
		spin_unlock_bh(lock);
}

#endif
