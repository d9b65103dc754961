/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A spin lock that costs one predictable branch where the application has
 * promised to use an object from one thread at a time.
 */
#ifndef SROCE_LOCK_H
#define SROCE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct sroce_lock {
	pthread_spinlock_t spin;
	bool needed;
};

/* Returns an errno, as pthread_spin_init() does */
static inline int sroce_lock_init(struct sroce_lock *lock, bool needed)
{
	lock->needed = needed;
	return pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
}

static inline void sroce_lock_destroy(struct sroce_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void sroce_lock(struct sroce_lock *lock)
{
	if (lock->needed)
		pthread_spin_lock(&lock->spin);
}

/* False where it is held, also by the caller itself; true where it is not needed */
static inline bool sroce_trylock(struct sroce_lock *lock)
{
	return !lock->needed || !pthread_spin_trylock(&lock->spin);
}

static inline void sroce_unlock(struct sroce_lock *lock)
{
	if (lock->needed)
		pthread_spin_unlock(&lock->spin);
}

#endif
