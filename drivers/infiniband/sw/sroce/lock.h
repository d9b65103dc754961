/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks that the fast verbs of kernel users take: posting, polling, arming. These
 * may be called from anywhere, hard interrupts included (a target whose disk has
 * just completed a request posts the answer from there). What only processes use
 * does not pay for that.
 */
#ifndef SROCE_LOCK_H
#define SROCE_LOCK_H

#include <linux/bottom_half.h>
#include <linux/irqflags.h>
#include <linux/spinlock.h>

/*
 * Two lines, so that lockdep sees two classes of locks: those of processes' queues and
 * those of kernel users'. To lockdep a class is one lock. Hard interrupts take the
 * second kind, so that it would complain of the first, which is held while they are on.
 */
#define sroce_lock_init(lock, user) do {				\
	if (user)							\
		spin_lock_init(lock);					\
	else								\
		spin_lock_init(lock);					\
} while (0)

/**
 * sroce_lock() - take a lock of a queue
 * @lock: lock
 * @user: the queue is a process's, so that keeping softirqs away is enough
 *
 * Return: what sroce_unlock() wants back.
 */
static inline unsigned long sroce_lock(spinlock_t *lock, bool user)
	__acquires(lock)
{
	unsigned long flags = 0;

	if (user)
		spin_lock_bh(lock);
	else
		spin_lock_irqsave(lock, flags);
	return flags;
}

static inline void sroce_unlock(spinlock_t *lock, bool user,
				unsigned long flags) __releases(lock)
{
	if (user)
		spin_unlock_bh(lock);
	else
		spin_unlock_irqrestore(lock, flags);
}

#endif
