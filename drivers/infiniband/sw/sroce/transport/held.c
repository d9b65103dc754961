// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Trains that are kept until what is before them has come, in a tree by PSN.
 *
 * The memory is the kernel's, and nobody is charged for it: the network decides how
 * much it is. Therefore it has a bound for each half of a QP, and everybody a share
 * (uncharged.c). What has waited for one to two seconds is not worth its memory any more.
 *
 * hold.c keeps requests here, early.c responses.
 */
#include <linux/slab.h>

#include "compat.h"
#include "memory/copy.h"
#include "transport/held.h"
#include "transport/internal.h"
#include "transport/uncharged.h"
#include "turn.h"

/* Trains that a half may hold, and bytes of memory: as much as a sender has in flight (window.c) */
#define SROCE_HELD_TRAINS 2048
#define SROCE_HELD_BYTES SZ_16M

/*
 * So many packets ahead of the one that is expected is too far in any case. It is the most
 * PSNs that a stranger's packet may hit.
 */
#define SROCE_HELD_AHEAD_MOST 16384

struct sroce_uncharged sroce_held_memory;

static bool sroce_held_admits(struct sroce_held_trains *held, u32 bytes)
{
	return held->n < SROCE_HELD_TRAINS &&
	       held->memory.bytes + bytes <= SROCE_HELD_BYTES &&
	       sroce_uncharged_admits(&held->memory, bytes);
}

/* Not from the reserves: drivers fill their rings with these, and this can be lost */
#define SROCE_HELD_GFP (GFP_NOWAIT | __GFP_NOWARN)

void sroce_held_free(struct sroce_held *h)
{
	if (h->t.bv)
		kfree(bvec_virt(&h->bv));
	kfree(h);
}

/* Return: false without memory */
static bool sroce_held_copy(struct sroce_held *h, const struct sroce_train *t)
{
	u32 len = t->bi.bi_size;
	struct bvec_iter si = t->bi;
	void *data;

	if (!len)
		return true;
	data = kmalloc(len, SROCE_HELD_GFP);
	if (!data)
		return false;
	sroce_bvec_read(data, t->bv, &si, len);
	bvec_set_virt(&h->bv, data, len);
	h->t.bv = &h->bv;
	h->t.bi = (struct bvec_iter){ .bi_size = len };
	return true;
}

static struct sroce_held *sroce_held_make(const struct sroce_train *t)
{
	struct sroce_held *h = kmalloc(sizeof(*h), SROCE_HELD_GFP);

	if (!h)
		return NULL;
	h->looked = false;
	h->t = *t;
	h->t.bv = NULL;
	if (sroce_held_copy(h, t))
		return h;
	kfree(h);
	return NULL;
}

/**
 * struct sroce_held_place - where in the tree a train belongs
 * @link: to be set to it
 * @parent: node that has @link
 * @before: the one before it, or NULL
 * @first: there is none before it
 */
struct sroce_held_place {
	struct rb_node **link;
	struct rb_node *parent;
	struct sroce_held *before;
	bool first;
};

static void sroce_held_find(struct sroce_held_trains *held, u32 psn,
			    struct sroce_held_place *place)
{
	struct sroce_held *h;

	*place = (struct sroce_held_place){
		.link = &held->root.rb_root.rb_node,
		.first = true,
	};
	while (*place->link) {
		place->parent = *place->link;
		h = rb_entry(place->parent, struct sroce_held, node);
		if (sroce_psn_diff(psn, h->t.psn) < 0) {
			place->link = &place->parent->rb_left;
			continue;
		}
		place->link = &place->parent->rb_right;
		place->before = h;
		place->first = false;
	}
}

/*
 * Leave of a train what is not held yet, and find its place
 * Return: false when nothing is left
 */
static bool sroce_held_trim(struct sroce_held_trains *held, struct sroce_train *t,
			    struct sroce_held_place *place)
{
	s32 over;

	for (;;) {
		sroce_held_find(held, t->psn, place);
		if (!place->before)
			return true;
		over = sroce_psn_diff(sroce_held_end(place->before), t->psn);
		if (over <= 0)
			return true;
		if (over >= (s32)t->npkts)
			return false;
		sroce_train_trim(t, over);
	}
}

static bool sroce_held_insert(struct sroce_held_trains *held,
			      const struct sroce_train *t,
			      const struct sroce_held_place *place)
{
	u32 bytes = kmalloc_size_roundup(sizeof(struct sroce_held)) +
		    kmalloc_size_roundup(t->bi.bi_size);
	struct sroce_held *h = NULL;

	if (sroce_held_admits(held, bytes))
		h = sroce_held_make(t);
	if (!h)
		return false;
	h->bytes = bytes;
	rb_link_node(&h->node, place->parent, place->link);
	rb_insert_color_cached(&h->node, &held->root, place->first);
	held->n++;
	sroce_uncharged_add(&held->memory, bytes);
	return true;
}

/* So many packets ahead is too far: what is between would not fit */
static s32 sroce_held_ahead(const struct sroce_qp *qp)
{
	return min(SROCE_HELD_BYTES / qp->mtu, SROCE_HELD_AHEAD_MOST);
}

enum sroce_held_how sroce_held_add(struct sroce_qp *qp, struct sroce_held_trains *held,
				   struct sroce_train *t, u32 expected)
{
	struct sroce_held_place place;
	u32 psn = t->psn;

	if (!sroce_held_trim(held, t, &place))
		return SROCE_HELD_ALREADY;
	if (sroce_psn_diff(psn, expected) > sroce_held_ahead(qp) ||
	    !sroce_held_insert(held, t, &place))
		return SROCE_HELD_NO_ROOM;
	sroce_qp_count(qp, SROCE_CNT_RX_HELD, t->npkts);
	return t->psn == psn ? SROCE_HELD_WHOLE : SROCE_HELD_PART;
}

void sroce_held_remove(struct sroce_held_trains *held, struct sroce_held *h)
{
	rb_erase_cached(&h->node, &held->root);
	held->n--;
	sroce_uncharged_add(&held->memory, -(long)h->bytes);
}

/* What is dropped comes again: the peer is asked for it, or its timer sees to that */
static void sroce_held_drop(struct sroce_qp *qp, struct sroce_held_trains *held,
			    struct sroce_held *h)
{
	sroce_turn_spend(SROCE_TURN_CQE);
	sroce_held_remove(held, h);
	sroce_qp_count(qp, SROCE_CNT_RX_HELD_DROPS, h->t.npkts);
	sroce_held_free(h);
}

bool sroce_held_drop_old(struct sroce_qp *qp, struct sroce_held_trains *held)
{
	struct rb_node *node = rb_first_cached(&held->root);
	struct sroce_held *h;
	bool dropped = false;

	while (node) {
		h = rb_entry(node, struct sroce_held, node);
		node = rb_next(node);
		if (h->looked) {
			sroce_held_drop(qp, held, h);
			dropped = true;
		} else {
			h->looked = true;
		}
	}
	return dropped;
}

void sroce_held_clear(struct sroce_qp *qp, struct sroce_held_trains *held)
{
	struct sroce_held *h;

	while ((h = sroce_held_first(held)))
		sroce_held_drop(qp, held, h);
}

void sroce_held_init(struct sroce_held_trains *held, struct sroce_qp *qp)
{
	sroce_uncharged_part_init(&held->memory, &sroce_held_memory,
				  &qp->port->held, qp);
	held->root = RB_ROOT_CACHED;
}

void __init sroce_held_start(void)
{
	sroce_uncharged_start(&sroce_held_memory);
}
