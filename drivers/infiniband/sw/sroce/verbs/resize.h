/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The ring that a queue of a process is going to move to. It is made and mapped
 * before the queue moves, so a process that has no room for it still has its queue.
 */
#ifndef SROCE_VERBS_RESIZE_H
#define SROCE_VERBS_RESIZE_H

#include <linux/mutex.h>

#include "memory/ring.h"

struct sroce_mmap;
struct sroce_ucontext;

/**
 * struct sroce_successor - ring that a queue may move to
 * @ring: ring
 * @map: its mapping; NULL when there is none
 *
 * A lock of the queue's object, which serialises resizing, protects it.
 */
struct sroce_successor {
	struct sroce_ring ring;
	struct sroce_mmap *map;
};

/**
 * sroce_successor_make() - make a ring, and let the process map it
 * @s: filled in
 * @uctx: context that may map it
 * @entries: wanted number
 * @entry_size: bytes an entry needs
 * @info: filled in, for the answer to user space
 *
 * Context: process.
 * Return: 0, or a negative errno and nothing to drop.
 */
int sroce_successor_make(struct sroce_successor *s, struct sroce_ucontext *uctx,
			 u32 entries, u32 entry_size,
			 struct sroce_ring_info *info);

/**
 * sroce_successor_follows() - may a queue move to its new ring?
 * @s: of the queue, with a ring
 * @ring: the queue's own
 *
 * Another process that has the file of the device may not take a queue along to a ring that
 * is its own. Context: of the process that asks for it, with the lock held.
 */
bool sroce_successor_follows(const struct sroce_successor *s,
			     const struct sroce_ring *ring);

/**
 * sroce_successor_replace() - another ring is the one that a queue may move to
 * @s: of the queue; what it held is dropped
 * @lock: protects @s
 * @with: takes its place
 *
 * Context: process.
 */
void sroce_successor_replace(struct sroce_successor *s, struct mutex *lock,
			     struct sroce_successor *with);

/**
 * sroce_successor_finish() - let a queue move to its new ring, or stay
 * @s: of the queue
 * @lock: protects @s
 * @step: SROCE_RESIZE_MOVE or SROCE_RESIZE_CANCEL
 * @move: moves the queue, with @lock held, and leaves in @s the ring that it does
 *	not use (any more)
 *
 * Context: process.
 * Return: 0; -EINVAL when there is no ring to move to; -EOPNOTSUPP for any other
 * step; or what @move says.
 */
int sroce_successor_finish(struct sroce_successor *s, struct mutex *lock,
			   u32 step, int (*move)(struct sroce_successor *s));

/* Free a ring that no queue moves to, or has moved from. NULLs are fine. */
void sroce_successor_drop(struct sroce_successor *s);

/* The queue is destroyed: neither that ring nor its own, @map, is mapped any more */
void sroce_successor_end(struct sroce_successor *s, struct sroce_mmap *map);

#endif
