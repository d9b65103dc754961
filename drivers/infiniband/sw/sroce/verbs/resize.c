// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ring that takes the place of another one when a process resizes a queue,
 * between the call that makes it and the one that moves to it. Used by verbs/cq.c
 * and verbs/srq.c; not on the way of a message.
 */
#include <linux/sched.h>

#include "verbs/mmap.h"
#include "verbs/resize.h"
#include "verbs/verbs.h"

int sroce_successor_make(struct sroce_successor *s, struct sroce_ucontext *uctx,
			 u32 entries, u32 entry_size,
			 struct sroce_ring_info *info)
{
	int err;

	*s = (struct sroce_successor){};
	err = sroce_ring_alloc(&s->ring, entries, entry_size, true);
	if (err)
		return err;
	s->map = sroce_mmap_add(uctx, &s->ring, info);
	if (!IS_ERR(s->map))
		return 0;
	err = PTR_ERR(s->map);
	s->map = NULL;
	sroce_ring_free(&s->ring);
	return err;
}

bool sroce_successor_follows(const struct sroce_successor *s,
			     const struct sroce_ring *ring)
{
	return sroce_ring_mem_is_of(s->ring.mem, current->mm) &&
	       sroce_ring_mem_is_of(ring->mem, current->mm);
}

void sroce_successor_replace(struct sroce_successor *s, struct mutex *lock,
			     struct sroce_successor *with)
{
	mutex_lock(lock);
	swap(*s, *with);
	mutex_unlock(lock);
	sroce_successor_drop(with);
}

int sroce_successor_finish(struct sroce_successor *s, struct mutex *lock,
			   u32 step, int (*move)(struct sroce_successor *s))
{
	int err = 0;

	if (step != SROCE_RESIZE_MOVE && step != SROCE_RESIZE_CANCEL)
		return -EOPNOTSUPP;
	mutex_lock(lock);
	if (step == SROCE_RESIZE_MOVE)
		err = s->map ? move(s) : -EINVAL;
	sroce_successor_drop(s);
	mutex_unlock(lock);
	return err;
}

void sroce_successor_end(struct sroce_successor *s, struct sroce_mmap *map)
{
	sroce_successor_drop(s);
	sroce_mmap_remove(map);
}

void sroce_successor_drop(struct sroce_successor *s)
{
	sroce_mmap_remove(s->map);
	s->map = NULL;
	sroce_ring_free(&s->ring);
}
