// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tag matching: the list of tagged buffers of a shared receive queue.
 *
 * The list is the kernel's. Messages are matched in softirq, by the responder, before
 * their first byte is placed: so what matches lands in its buffer at once, as in a receive
 * of its own, and the process has no say in what a list in its memory would look like in
 * the middle of that. A change of the list is a call (verbs/tags.c), which is complete
 * when it returns.
 *
 * A message is compared with each entry, from the first that was added on, which is the
 * order that MPI asks for. There are SROCE_MAX_NUM_TAGS entries at most, and a CPU's turn
 * counts those that were looked at. Of an entry only its key is looked at, so the keys lie
 * close together.
 *
 * What nothing matches goes to an ordinary receive, and the process looks for a match
 * itself. Until it has done so, a buffer that it adds may be meant for that message: so
 * both count such messages, and nothing matches buffers that were added while the counts
 * differed. They are the last ones of the list, @dormant is the first of them. The kernel
 * counts a message when it begins: a buffer that is added before it ends may be for it, and
 * must not be taken by the next one. The process counts what completes. So a message that
 * ends in any other way is taken out of the count again.
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "compat.h"
#include "transport/tags.h"

/* A handle is the number of an entry, and above it how often that was in use */
#define SROCE_TAG_INDEX_BITS 16

static bool sroce_tags_alloc(struct sroce_tags *tags, u32 max)
{
	if (sroce_pinned_charge(&tags->pinned, max * (sizeof(*tags->keys) +
						      sizeof(*tags->tags))))
		return false;
	tags->keys = kvcalloc(max, sizeof(*tags->keys), SROCE_GFP_CHOSEN);
	tags->tags = kvcalloc(max, sizeof(*tags->tags), SROCE_GFP_CHOSEN);
	return tags->keys && tags->tags;
}

struct sroce_tags *sroce_tags_create(u32 max)
{
	struct sroce_tags *tags = kzalloc_obj(*tags, GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!tags)
		return NULL;
	if (!sroce_tags_alloc(tags, max)) {
		sroce_tags_free(tags);
		return NULL;
	}
	tags->max = max;
	tags->first = SROCE_TAG_NONE;
	tags->last = SROCE_TAG_NONE;
	tags->dormant = SROCE_TAG_NONE;
	for (i = 0; i < max; i++)
		tags->keys[i].next = i + 1 < max ? i + 1 : SROCE_TAG_NONE;
	return tags;
}

void sroce_tags_free(struct sroce_tags *tags)
{
	if (!tags)
		return;
	kvfree(tags->keys);
	kvfree(tags->tags);
	sroce_pinned_uncharge(&tags->pinned);
	kfree(tags);
}

static u32 sroce_tags_handle(const struct sroce_tags *tags, u16 i)
{
	return tags->tags[i].uses << SROCE_TAG_INDEX_BITS | i;
}

/* The entry of a handle, which a process may have made up; NULL when it has another one */
static struct sroce_tag *sroce_tags_find(const struct sroce_tags *tags,
					 u32 handle)
{
	u32 i = handle & (BIT(SROCE_TAG_INDEX_BITS) - 1);

	if (i >= tags->max)
		return NULL;
	i = array_index_nospec(i, tags->max);
	return sroce_tags_handle(tags, i) == handle ? &tags->tags[i] : NULL;
}

/* Into the list, as its last one */
static void sroce_tags_append(struct sroce_tags *tags, u16 i)
{
	struct sroce_tag_key *key = &tags->keys[i];

	key->next = SROCE_TAG_NONE;
	key->prev = tags->last;
	if (tags->last == SROCE_TAG_NONE)
		tags->first = i;
	else
		tags->keys[tags->last].next = i;
	tags->last = i;
	if (tags->dormant == SROCE_TAG_NONE && tags->handled != tags->unexpected)
		tags->dormant = i;
}

static void sroce_tags_unlink(struct sroce_tags *tags, u16 i)
{
	const struct sroce_tag_key *key = &tags->keys[i];

	if (tags->dormant == i)
		tags->dormant = key->next;
	if (key->prev == SROCE_TAG_NONE)
		tags->first = key->next;
	else
		tags->keys[key->prev].next = key->next;
	if (key->next == SROCE_TAG_NONE)
		tags->last = key->prev;
	else
		tags->keys[key->next].prev = key->prev;
}

static void sroce_tags_release(struct sroce_tags *tags, u16 i)
{
	tags->tags[i].state = SROCE_TAG_FREE;
	tags->keys[i].next = tags->free;
	tags->free = i;
}

void sroce_tags_sync(struct sroce_tags *tags, u16 handled)
{
	tags->handled = handled;
	if (handled == tags->unexpected)
		tags->dormant = SROCE_TAG_NONE;
}

u32 sroce_tags_add(struct sroce_tags *tags, const struct sroce_tag_op *op)
{
	u16 i = tags->free;
	struct sroce_tag *t = &tags->tags[i];

	tags->free = tags->keys[i].next;
	tags->keys[i].tag = op->tag & op->mask;
	tags->keys[i].mask = op->mask;
	t->state = SROCE_TAG_LISTED;
	/* 0 is no handle */
	t->uses = (t->uses + 1) & (BIT(32 - SROCE_TAG_INDEX_BITS) - 1) ?: 1;
	t->wr_id = op->recv_wr_id;
	t->num_sge = op->num_sge;
	memcpy(t->sge, op->sge, op->num_sge * sizeof(t->sge[0]));
	sroce_tags_append(tags, i);
	return sroce_tags_handle(tags, i);
}

bool sroce_tags_has(const struct sroce_tags *tags, u32 handle)
{
	const struct sroce_tag *t = sroce_tags_find(tags, handle);

	return t && t->state == SROCE_TAG_LISTED;
}

void sroce_tags_del(struct sroce_tags *tags, u32 handle)
{
	u16 i = sroce_tags_find(tags, handle) - tags->tags;

	sroce_tags_unlink(tags, i);
	sroce_tags_release(tags, i);
}

u16 sroce_tags_match(const struct sroce_tags *tags, u64 tag, u32 *looked)
{
	const struct sroce_tag_key *key;
	u16 i;

	*looked = 0;
	for (i = tags->first; i != tags->dormant; i = key->next) {
		key = &tags->keys[i];
		++*looked;
		if ((tag & key->mask) == key->tag)
			return i;
	}
	return SROCE_TAG_NONE;
}

u32 sroce_tags_room(const struct sroce_tags *tags, u16 i)
{
	const struct sroce_tag *t = &tags->tags[i];
	u64 sum = 0;
	u32 n;

	for (n = 0; n < t->num_sge; n++)
		sum += t->sge[n].length;
	return min_t(u64, sum, U32_MAX);
}

void sroce_tags_take(struct sroce_tags *tags, u16 i, struct sroce_recv_wqe *wqe)
{
	const struct sroce_tag *t = &tags->tags[i];

	wqe->wr_id = t->wr_id;
	wqe->num_sge = t->num_sge;
	wqe->reserved = 0;
	memcpy(wqe + 1, t->sge, t->num_sge * sizeof(t->sge[0]));
	sroce_tags_unlink(tags, i);
	sroce_tags_release(tags, i);
}

u32 sroce_tags_reserve(struct sroce_tags *tags, u16 i, const struct sroce_tag *from)
{
	struct sroce_tag *t = &tags->tags[i];

	sroce_tags_unlink(tags, i);
	t->state = SROCE_TAG_MATCHED;
	t->va = from->va;
	t->rkey = from->rkey;
	t->len = from->len;
	t->qpn = from->qpn;
	return sroce_tags_handle(tags, i);
}

bool sroce_tags_claim(struct sroce_tags *tags, u32 handle, u32 qpn, struct sroce_tag *to)
{
	const struct sroce_tag *t = sroce_tags_find(tags, handle);

	if (!t || t->state != SROCE_TAG_MATCHED || t->qpn != qpn)
		return false;
	*to = *t;
	sroce_tags_release(tags, t - tags->tags);
	return true;
}

void sroce_tags_forget(struct sroce_tags *tags, u32 qpn)
{
	u32 i;

	for (i = 0; i < tags->max; i++)
		if (tags->tags[i].state == SROCE_TAG_MATCHED &&
		    tags->tags[i].qpn == qpn)
			sroce_tags_release(tags, i);
}

bool sroce_tags_unexpected(struct sroce_tags *tags)
{
	tags->unexpected++;
	return (u16)(tags->unexpected - tags->handled) > SROCE_TAG_SYNC_LATE;
}

void sroce_tags_uncount(struct sroce_tags *tags)
{
	tags->unexpected--;
	sroce_tags_sync(tags, tags->handled);
}
