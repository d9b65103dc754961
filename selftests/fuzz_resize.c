// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queues that are resized: the steps in any order, rings that are mapped and written to before the queue has moved
 * there and after it has left them, and which ring an object has by then.
 */
#define _GNU_SOURCE
#include <string.h>

#include "fuzz.h"

uint32_t fz_resize_step(struct fz_thread *t)
{
	/* a ring that nothing moves to is worth less than one that has moved */
	static const uint32_t steps[] = { SROCE_RESIZE_PREPARE, SROCE_RESIZE_PREPARE, SROCE_RESIZE_PREPARE,
					  SROCE_RESIZE_MOVE, SROCE_RESIZE_MOVE, SROCE_RESIZE_MOVE, SROCE_RESIZE_CANCEL };

	return fz_once(t, 16) ? fz_below(t, 6) : steps[fz_below(t, ARRAY_SIZE(steps))];
}

/* It is to be mapped anew */
static void swap_rings(struct fz_obj *o)
{
	struct sroce_ring_info ring = o->ring[0];

	o->ring[0] = o->next;
	o->next = ring;
	atomic_store(&o->life, atomic_fetch_add(&board->lives, 1) + 2);
}

/* The new ring may be looked at and written to from now on, or when it is the queue's */
static void prepared(struct fz_thread *t, struct fz_obj *o, const struct sroce_ring_info *ring)
{
	if (o->early)
		swap_rings(o);
	o->next = *ring;
	o->early = fz_once(t, 2);
	if (o->early)
		swap_rings(o);
}

static void finished(struct fz_obj *o, bool moved)
{
	if (!o->next.entries)
		return;
	if (o->early != moved)
		swap_rings(o);
	o->early = false;
	memset(&o->next, 0, sizeof(o->next));
}

static struct fz_obj *which(struct fz_ctx *c, enum fz_kind kind, uint32_t handle)
{
	struct fz_obj *o;

	for (o = c->obj[kind]; o < c->obj[kind] + FZ_SLOTS; o++)
		if (atomic_load(&o->life) > 1 && o->handle == handle)
			return o;
	return NULL;
}

void fz_resized(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, uint32_t handle, uint32_t step, const void *answer)
{
	struct fz_obj *o = which(c, kind, handle);
	struct sroce_ring_info ring;

	if (step < FZ_RESIZE_STEPS)
		t->beat->resized[step]++;
	if (!o)
		return;
	if (step != SROCE_RESIZE_PREPARE) {
		finished(o, step == SROCE_RESIZE_MOVE);
		return;
	}
	if (!fz_copy(&ring, answer, sizeof(ring)))
		return;
	prepared(t, o, &ring);
	if (ring.mmap_len <= 1 << 20)
		return;
	fz_destroy(t, c, kind, handle);
	atomic_store(&board->large, false);
}
