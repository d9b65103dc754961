/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Trains that are kept until what is before them has come: requests (hold.c) and responses
 * (early.c). Context of all functions here: the lock of the half held.
 */
#ifndef SROCE_TRANSPORT_HELD_H
#define SROCE_TRANSPORT_HELD_H

#include <linux/bvec.h>

#include "transport/qp.h"

/* What all QPs hold */
extern struct sroce_uncharged sroce_held_memory;

/* What has been there at two looks is given up */
#define SROCE_HELD_LOOK_NS ((u64)NSEC_PER_SEC)

/**
 * struct sroce_held - a train that is kept
 * @node: in a tree of them
 * @bytes: of memory that it counts as
 * @looked: it was there at the last look
 * @t: train
 * @bv: its payload, in memory of its own: what is a power of two would take twice as much
 *	together with all this
 */
struct sroce_held {
	struct rb_node node;
	u32 bytes;
	bool looked;
	struct sroce_train t;
	struct bio_vec bv;
};

/* How much of a train is kept now that was not before, in this order */
enum sroce_held_how {
	SROCE_HELD_ALREADY,	/* nothing: all of it was */
	SROCE_HELD_NO_ROOM,	/* nothing: there is no memory for it, or it is too far ahead */
	SROCE_HELD_PART,
	SROCE_HELD_WHOLE,
};

/* May a QP keep anything? An administrator can switch that off */
static inline bool sroce_held_is_on(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->port->recovery.selective_repeat_en);
}

/* The first one by PSN, or NULL */
static inline struct sroce_held *sroce_held_first(const struct sroce_held_trains *held)
{
	struct rb_node *node = rb_first_cached(&held->root);

	return node ? rb_entry(node, struct sroce_held, node) : NULL;
}

/* PSN behind a train */
static inline u32 sroce_held_end(const struct sroce_held *h)
{
	return sroce_psn_add(h->t.psn, h->t.npkts);
}

/* Is what comes next, at @expected, among them? */
static inline bool sroce_held_ready(const struct sroce_held_trains *held, u32 expected)
{
	const struct sroce_held *h = sroce_held_first(held);

	return h && sroce_psn_diff(h->t.psn, expected) <= 0;
}

/**
 * sroce_held_add() - keep a train
 * @qp: QP
 * @held: trains of one of its halves
 * @t: train; what is kept already is cut off
 * @expected: PSN that comes next
 *
 * A train between others that leaves a part on either side of one of them is kept only in part:
 * the rest comes again.
 *
 * Return: how much of it.
 */
enum sroce_held_how sroce_held_add(struct sroce_qp *qp, struct sroce_held_trains *held,
				   struct sroce_train *t, u32 expected);

/* Take one out, which the caller frees */
void sroce_held_remove(struct sroce_held_trains *held, struct sroce_held *h);
void sroce_held_free(struct sroce_held *h);

/* Drop what was there at the last look. Return: whether anything was */
bool sroce_held_drop_old(struct sroce_qp *qp, struct sroce_held_trains *held);

/* Drop all */
void sroce_held_clear(struct sroce_qp *qp, struct sroce_held_trains *held);

void sroce_held_init(struct sroce_held_trains *held, struct sroce_qp *qp);

/* Module start */
void sroce_held_start(void);

#endif
