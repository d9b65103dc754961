// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The address handles of a device, by number. A number is checked at each use: it may
 * have been destroyed, or belong to somebody else.
 *
 * ib_core frees its own object as soon as destroy returns, while a sender may be
 * looking the number up. What is found is therefore a separate object, freed, with its
 * reference to the path, after a grace period: senders have bottom halves off, and need
 * no reference of their own.
 */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "compat.h"
#include "path.h"
#include "transport/ah.h"
#include "transport/port.h"

/*
 * A number is a place in the table, and above that a turn, which changes with each handle
 * that is made: a place is soon taken again, and a work request that still waits must not
 * find another handle there than the one it was posted with.
 */
#define SROCE_AH_PLACE_BITS 21
#define SROCE_AH_PLACE_MASK GENMASK(SROCE_AH_PLACE_BITS - 1, 0)

static_assert(SROCE_MAX_AH <= SROCE_AH_PLACE_MASK);

void sroce_ah_table_init(struct sroce_port *port)
{
	xa_init_flags(&port->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ |
		      XA_FLAGS_ACCOUNT);
}

void sroce_ah_table_destroy(struct sroce_port *port)
{
	WARN_ON_ONCE(!xa_empty(&port->ahs));
	xa_destroy(&port->ahs);
}

static struct sroce_ah_entry *sroce_ah_entry_new(const struct ib_pd *pd,
						 struct sroce_path *path,
						 gfp_t gfp)
{
	struct sroce_ah_entry *e = kzalloc_obj(*e, gfp);

	if (!e)
		return NULL;
	e->pd = pd;
	e->path = path;
	return e;
}

static void sroce_ah_entry_free(struct rcu_head *rcu)
{
	struct sroce_ah_entry *e = container_of(rcu, struct sroce_ah_entry, rcu);

	sroce_path_put(e->path);
	kfree(e);
}

/* Nobody finds the entry any more, but somebody may have found it just now */
static void sroce_ah_entry_drop(struct sroce_ah_entry *e)
{
	call_rcu(&e->rcu, sroce_ah_entry_free);
}

/* Callers may have interrupts off */
static int sroce_ah_insert(struct sroce_port *port, struct sroce_ah_entry *e,
			   gfp_t gfp)
{
	unsigned long flags;
	u32 place;
	int err;

	xa_lock_irqsave(&port->ahs, flags);
	/* It is found by its turn, so that comes first */
	e->turn = port->ah_turn++ & (U32_MAX >> SROCE_AH_PLACE_BITS);
	err = __xa_alloc(&port->ahs, &place, e, XA_LIMIT(1, SROCE_MAX_AH),
			 gfp);
	xa_unlock_irqrestore(&port->ahs, flags);
	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	e->ahn = e->turn << SROCE_AH_PLACE_BITS | place;
	return 0;
}

struct sroce_ah_entry *sroce_ah_add(struct sroce_port *port,
				    const struct ib_pd *pd,
				    struct sroce_path *path, gfp_t gfp)
{
	struct sroce_ah_entry *e = sroce_ah_entry_new(pd, path, gfp);
	int err;

	if (!e)
		return ERR_PTR(-ENOMEM);
	err = sroce_ah_insert(port, e, gfp);
	if (!err)
		return e;
	/* Nobody has found the entry, so no grace period is needed */
	kfree(e);
	return ERR_PTR(err);
}

struct sroce_ah_entry *sroce_ah_replace(struct sroce_port *port,
					struct sroce_ah_entry *old,
					struct sroce_path *path)
{
	struct sroce_ah_entry *e = sroce_ah_entry_new(old->pd, path,
						      GFP_ATOMIC);
	unsigned long flags;

	if (!e)
		return ERR_PTR(-ENOMEM);
	e->ahn = old->ahn;
	e->turn = old->turn;
	xa_lock_irqsave(&port->ahs, flags);
	/* There is an entry, so nothing has to be allocated */
	__xa_store(&port->ahs, e->ahn & SROCE_AH_PLACE_MASK, e, GFP_ATOMIC);
	xa_unlock_irqrestore(&port->ahs, flags);
	sroce_ah_entry_drop(old);
	return e;
}

void sroce_ah_remove(struct sroce_port *port, struct sroce_ah_entry *e)
{
	unsigned long flags;

	xa_lock_irqsave(&port->ahs, flags);
	__xa_erase(&port->ahs, e->ahn & SROCE_AH_PLACE_MASK);
	xa_unlock_irqrestore(&port->ahs, flags);
	sroce_ah_entry_drop(e);
}

struct sroce_path *sroce_ah_path(struct sroce_port *port, u32 ahn,
				 const struct ib_pd *pd)
{
	struct sroce_ah_entry *e;
	struct sroce_path *path;

	rcu_read_lock();
	e = xa_load(&port->ahs, ahn & SROCE_AH_PLACE_MASK);
	path = e && e->pd == pd && e->turn == ahn >> SROCE_AH_PLACE_BITS ?
	       e->path : NULL;
	rcu_read_unlock();
	return path;
}
