/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The list of tagged buffers of a shared receive queue: which one a message matches.
 * All of it wants the queue's lock (srq.c).
 */
#ifndef SROCE_TRANSPORT_TAGS_H
#define SROCE_TRANSPORT_TAGS_H

#include <linux/types.h>
#include <rdma/sroce-abi.h>

#include "memory/pinned.h"

/* No entry */
#define SROCE_TAG_NONE U16_MAX

/* So far behind a process may be with its count before every message asks for it */
#define SROCE_TAG_SYNC_LATE 0x3fff

enum sroce_tag_state {
	SROCE_TAG_FREE,
	SROCE_TAG_LISTED,	/* messages may match it */
	SROCE_TAG_MATCHED,	/* a rendezvous has, whose READ was not fetched yet */
};

/**
 * struct sroce_tag_key - what of an entry every message that comes is compared with
 * @tag: bits that a message must have
 * @mask: which bits count
 * @next: entry that was added after this one; of a free one: another free one
 * @prev: entry that was added before this one
 */
struct sroce_tag_key {
	u64 tag;
	u64 mask;
	u16 next;
	u16 prev;
};

/**
 * struct sroce_tag - the rest of an entry
 * @wr_id: of the receive
 * @va: a rendezvous: where the data is at the peer
 * @rkey: likewise, its key
 * @len: likewise, its length
 * @qpn: likewise, QP that it has come to
 * @uses: how often the entry was in use: the upper bits of its handle
 * @state: an enum sroce_tag_state
 * @num_sge: elements in use
 * @sge: the buffer
 */
struct sroce_tag {
	u64 wr_id;
	u64 va;
	u32 rkey;
	u32 len;
	u32 qpn;
	u32 uses;
	u8 state;
	u8 num_sge;
	struct sroce_sge sge[SROCE_MAX_TAG_SGE];
};

/**
 * struct sroce_tags - tagged buffers of one queue
 * @keys: @max of them
 * @tags: likewise
 * @max: entries
 * @first: of the list, the one that was added first
 * @last: of the list
 * @dormant: the first of those that nothing matches before the next synchronization,
 *	which are the last ones of the list
 * @free: a free entry, the head of a list of them
 * @unexpected: messages with a tag that nothing has matched, modulo 2^16
 * @handled: as many of them the process is known to have handled
 * @pinned: whose pinned memory this is
 */
struct sroce_tags {
	struct sroce_tag_key *keys;
	struct sroce_tag *tags;
	u32 max;
	u16 first;
	u16 last;
	u16 dormant;
	u16 free;
	u16 unexpected;
	u16 handled;
	struct sroce_pinned pinned;
};

/* Bytes of the header that messages begin with: opcode, 3 reserved, context, tag */
#define SROCE_TMH_LEN 16
/* ... and of what is behind it in one that begins a rendezvous: address, key, length */
#define SROCE_RVH_LEN 16

/**
 * struct sroce_tag_msg - a message, as its first bytes have it
 * @tag: tag
 * @va: a rendezvous: where the data is
 * @app_ctx: what is for the process
 * @rkey: a rendezvous: key of the data
 * @len: a rendezvous: bytes of the data
 * @handle: a rendezvous that was matched: handle of the buffer
 * @tagged: it has a tag, and may match
 * @rndv: it begins a rendezvous
 * @matched: it has the buffer that it matches; otherwise an ordinary receive
 * @late: the process is to be told that it is late with its count
 * @head: bytes in @raw
 * @raw: the header. The sender may be a process of this host, which changes what it
 *	sends meanwhile: who receives it gets what was looked at, and not what is there
 *	by then. A message that comes again must have the same.
 */
struct sroce_tag_msg {
	u64 tag;
	u64 va;
	u32 app_ctx;
	u32 rkey;
	u32 len;
	u32 handle;
	bool tagged;
	bool rndv;
	bool matched;
	bool late;
	u8 head;
	u8 raw[SROCE_TMH_LEN];
};

/**
 * sroce_tags_create() - make an empty list
 * @max: entries, below SROCE_TAG_NONE
 *
 * Charged to the memory cgroup of the caller, and to the memory that it may pin.
 *
 * Context: process.
 * Return: the list or NULL.
 */
struct sroce_tags *sroce_tags_create(u32 max);
void sroce_tags_free(struct sroce_tags *tags);

static inline bool sroce_tags_full(const struct sroce_tags *tags)
{
	return tags->free == SROCE_TAG_NONE;
}

/* What @handled is going to be when the operation was carried out */
static inline u16 sroce_tags_handled_by(const struct sroce_tags *tags,
					const struct sroce_tag_op *op)
{
	return op->flags & SROCE_TAG_SYNCS ? op->unexpected_cnt : tags->handled;
}

/* The process has handled so many. In step again, every entry may be matched. */
void sroce_tags_sync(struct sroce_tags *tags, u16 handled);

/**
 * sroce_tags_add() - add a buffer at the end of the list
 * @tags: list that is not full
 * @op: what was checked, with SROCE_MAX_TAG_SGE elements at most
 *
 * While the process has not handled all messages that nothing has matched, nothing
 * matches a new buffer: one of those messages may be meant for it.
 *
 * Return: its handle, not 0.
 */
u32 sroce_tags_add(struct sroce_tags *tags, const struct sroce_tag_op *op);

/* Is there a buffer of this handle that nothing has matched yet? */
bool sroce_tags_has(const struct sroce_tags *tags, u32 handle);

/* Take such a buffer out of the list */
void sroce_tags_del(struct sroce_tags *tags, u32 handle);

/**
 * sroce_tags_match() - find the buffer for a message
 * @tags: list
 * @tag: of the message
 * @looked: set to how many entries were looked at
 *
 * Return: of those that match, the one that was added first; or SROCE_TAG_NONE.
 */
u16 sroce_tags_match(const struct sroce_tags *tags, u64 tag, u32 *looked);

/* Bytes that a buffer has, at most U32_MAX */
u32 sroce_tags_room(const struct sroce_tags *tags, u16 i);

/* The buffer of a message that has all its data: it is free, once @wqe has it */
void sroce_tags_take(struct sroce_tags *tags, u16 i, struct sroce_recv_wqe *wqe);

/**
 * sroce_tags_reserve() - the buffer of a rendezvous is kept for its READ
 * @tags: list
 * @i: entry in the list
 * @t: where the data is: va, rkey, len, qpn
 *
 * Return: its handle.
 */
u32 sroce_tags_reserve(struct sroce_tags *tags, u16 i, const struct sroce_tag *t);

/**
 * sroce_tags_claim() - the READ of a rendezvous begins: its buffer is free
 * @tags: list
 * @handle: that the process has named
 * @qpn: QP that it has posted the READ to
 * @t: filled in
 *
 * Return: false when this is no rendezvous that has come to this QP.
 */
bool sroce_tags_claim(struct sroce_tags *tags, u32 handle, u32 qpn, struct sroce_tag *t);

/* The QP is as new, or gone: nobody will read what it was asked to */
void sroce_tags_forget(struct sroce_tags *tags, u32 qpn);

/*
 * One more message with a tag that nothing matches. Return: is the process so late with
 * its count that it is to be told?
 */
bool sroce_tags_unexpected(struct sroce_tags *tags);

/* One of them has failed: the process never hears of it, and counts one less */
void sroce_tags_uncount(struct sroce_tags *tags);

#endif
