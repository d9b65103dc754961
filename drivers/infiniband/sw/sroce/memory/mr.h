/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory regions: from a key and an address to pages. Every use of a key goes
 * through sroce_mr_use() (memory/users.h), also in the middle of a message.
 */
#ifndef SROCE_MEMORY_MR_H
#define SROCE_MEMORY_MR_H

#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "memory/pinned.h"

struct sroce_dmabuf;
struct sroce_integrity;
struct sroce_odp;

/*
 * The key of all kernel memory that kernel users have for their own side. Its
 * index is 0, which no region has.
 */
#define SROCE_LOCAL_DMA_LKEY 0xff

/*
 * A region with gaps may have so many blocks, whatever their lengths: whoever gathers a packet
 * takes that many. Where there are more, so many in a row have the bytes of a packet, which is
 * in one more at most then, from the middle of a block.
 */
#define SROCE_MR_GAP_FREE 128
#define SROCE_MR_GAP_RUN 126
#define SROCE_MR_GAP_BYTES 4096

/* In this order: sroce_mr_use() asks of few of them more than of the others */
enum sroce_mr_kind {
	SROCE_MR_DMA,		/* all kernel memory, kernel users only */
	SROCE_MR_WINDOW,	/* part of another region, see memory/mw.h */
	SROCE_MR_ON_DEMAND,	/* user memory that is not pinned, see memory/odp.h */
	SROCE_MR_USER,		/* pinned user pages */
	SROCE_MR_FAST_REG,	/* pages set by ib_map_mr_sg() and REG_MR */
};

/**
 * struct sroce_mr_table - keys of one device
 * @xa: index (key >> 8) to struct sroce_mr; indices are random (ReDMArk V1)
 */
struct sroce_mr_table {
	struct xarray xa;
};

/**
 * struct sroce_mw_list - windows that are bound to one region, or through one QP
 * @lock: of the list; taken with bottom halves off, inside that of a window
 * @list: the windows, by @in_bound or by @in_owned of each
 */
struct sroce_mw_list {
	spinlock_t lock; /* of the list */
	struct list_head list;
};

/**
 * struct sroce_mr - one memory region
 * @ibmr: what ib_core knows; its lkey and rkey are both the key
 * @rcu: readers may look at a region that is being freed
 * @users: 1 for being registered, and who holds the region, or uses it and is counted
 *	(memory/users.h)
 * @idle: completed when @users falls to 0
 * @table: where the key is registered
 * @kind: how it is backed
 * @valid: a fast-register region answers only between REG_MR and invalidate
 * @replaced: its key is that of another region now, and it has no users
 * @revoked: its memory was taken away: its key is kept, and leads to nothing
 * @recalled: somebody waits for its users to let go of it
 * @gone: no key leads to it, and nobody may begin to use it
 * @type2: window: its type
 * @going: window: it is being freed, and is not to be bound any more
 * @key: whole key: random index << 8, and the consumer's byte
 * @access: IB_ACCESS_* rights
 * @iova: address of the first byte as work requests name it
 * @length: bytes
 * @offset: bytes before the first one in @blocks[0], or in @odp; 0 with @ends
 * @block_shift: log2 of the bytes of each block
 * @nr_blocks: entries of @blocks in use
 * @max_blocks: entries of @blocks
 * @blocks: naturally aligned pieces of the kernel's own mapping. They are one page or
 *	more, or less than one: initiators register in units of 4 KiB.
 * @staged: fast-register: blocks that ib_map_mr_sg() has set, @max_blocks
 *	entries; belongs to verbs/mr.c
 * @nr_staged: entries of @staged in use
 * @ends: fast-register with gaps, otherwise NULL: how many bytes there are up to the end
 *	of each block, which may be of any length; @max_blocks entries, and behind these
 *	as many for @staged. Belongs to verbs/mr.c, too
 * @umem: pinned user memory, or NULL
 * @odp: memory on demand, or NULL; of a window its region's
 * @sig: fast-register with protection information (memory/integrity.h), otherwise NULL;
 *	belongs to the caller. Such a region has no @blocks
 * @dmabuf: dma-buf that its pages are of, or NULL
 * @pinned: of a region on device memory: counts @blocks, as the memory counts once for all
 *	of its regions; belongs to the caller, too
 * @windows: windows bound to it, and those about to be; negative: none may be
 *	any more
 * @bound: the windows bound to it
 * @parent: window: region that it is bound to; its @blocks or @odp are that one's
 * @in_bound: window: its place in @bound of @parent
 * @owner: window of type 2: what the QP has bound that it was bound through
 * @in_owned: window of type 2: its place in @owner
 * @lock: window or fast-register: serialises whoever changes it; taken with bottom
 *	halves off
 * @seq: changes with @blocks and @ends of a region with gaps: the end of one life's block
 *	is not that of the next one's
 *
 * Consumers call ib_map_mr_sg() for the next use of a region while the one
 * before is still registered and its invalidation only queued. What it sets is
 * therefore kept apart, in @staged and in the iova, length and page_size of
 * @ibmr, until REG_MR takes it over (sroce_mr_take_staged()).
 *
 * A process may have very many. Without lockdep and the like one has 512 bytes at most, on all
 * kernels up to 7.3 but those of 7.x with PREEMPT_RT: with one byte more each would take 1024
 * of kmalloc()'s.
 */
struct sroce_mr {
	struct ib_mr ibmr;
	struct rcu_head rcu;
	refcount_t users;
	struct completion idle;
	struct sroce_mr_table *table;
	enum sroce_mr_kind kind;
	bool valid;
	bool replaced;
	bool revoked;
	bool recalled;
	bool gone;
	bool type2;
	bool going;
	u32 key;
	int access;
	u64 iova;
	u64 length;
	u64 offset;
	u8 block_shift;
	u32 nr_blocks;
	u32 max_blocks;
	u32 nr_staged;
	void **blocks;
	void **staged;
	u64 *ends;
	struct ib_umem *umem;
	struct sroce_odp *odp;
	struct sroce_integrity *sig;
	struct sroce_dmabuf *dmabuf;
	struct sroce_pinned pinned;
	atomic_t windows;
	struct sroce_mw_list bound;
	struct sroce_mr *parent;
	struct list_head in_bound;
	struct sroce_mw_list *owner;
	struct list_head in_owned;
	spinlock_t lock;
	seqcount_spinlock_t seq;
};

static inline struct sroce_mr *to_sroce_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct sroce_mr, ibmr);
}

/* Have those who gather to do more than to name its pages? Asked in one look */
static inline bool sroce_mr_is_special(const struct sroce_mr *mr)
{
	return (unsigned long)mr->odp | (unsigned long)mr->sig;
}

void sroce_mr_table_init(struct sroce_mr_table *table);
/* All regions must be gone */
void sroce_mr_table_destroy(struct sroce_mr_table *table);

/**
 * sroce_mr_alloc() - make a region and give it a key
 * @table: keys of the device
 * @pd: protection domain
 * @kind: backing
 * @max_blocks: entries of its table of blocks, 0 for a kind without
 *
 * The region is registered but not valid; the caller fills it in and calls
 * sroce_mr_publish(). One of all kernel memory has its bounds already.
 *
 * Context: process.
 * Return: the region, ERR_PTR(-ENOMEM), or ERR_PTR(-ENOSPC) without a free key.
 */
struct sroce_mr *sroce_mr_alloc(struct sroce_mr_table *table, struct ib_pd *pd,
				enum sroce_mr_kind kind, u32 max_blocks);

/**
 * sroce_mr_alloc_heir() - make a region that is to take another one's key
 * @old: region in use
 * @pd: protection domain
 * @kind: backing
 * @max_blocks: entries of its table of blocks
 *
 * Nobody finds it before sroce_mr_replace(); it can be freed until then.
 *
 * Context: process.
 * Return: the region, or ERR_PTR(-ENOMEM).
 */
struct sroce_mr *sroce_mr_alloc_heir(const struct sroce_mr *old,
				     struct ib_pd *pd, enum sroce_mr_kind kind,
				     u32 max_blocks);

/**
 * sroce_mr_replace() - let a key name another region, at once
 * @old: region that has the key
 * @heir: filled-in region from sroce_mr_alloc_heir()
 *
 * Each use of the key meets the one or the other. On return nobody uses @old
 * any more; it remains to be freed.
 *
 * Context: process, may sleep.
 */
void sroce_mr_replace(struct sroce_mr *old, struct sroce_mr *heir);

/* Make a filled-in region answer: orders the fields before @valid */
void sroce_mr_publish(struct sroce_mr *mr);

/**
 * sroce_mr_free() - unregister a region, wait for its users, free it
 * @mr: region; pages are not unpinned (@mr->umem, @mr->odp, @mr->sig, @mr->dmabuf and
 *	@mr->pinned belong to the caller)
 *
 * A region is used only for the time of a copy, or held while a train waits to
 * be taken by a QP of this host, which is told to give it back (memory/pd.h); no wait
 * is on a packet, a peer or a page, nor on whoever uses other regions. On return
 * nobody touches the region's memory any more, and the struct is freed after
 * a grace period.
 *
 * Context: process, may sleep.
 */
void sroce_mr_free(struct sroce_mr *mr);

/**
 * sroce_mr_revoke() - take the memory of a region away
 * @mr: region that is not being freed, and has no windows
 *
 * Its key fails from here on, and nobody gets it before the region is freed. On return
 * nobody uses its memory any more; who is waited for is as in sroce_mr_free().
 *
 * Context: process, may sleep.
 */
void sroce_mr_revoke(struct sroce_mr *mr);

/**
 * sroce_mr_look() - check a key, of whose memory nothing is going to be touched
 * @table: keys of the device
 * @key: L_Key or R_Key
 * @pd: protection domain of the QP that uses it
 * @access: rights needed, IB_ACCESS_*; 0 for local read
 * @va: first byte
 * @len: bytes, not 0
 *
 * Context: RCU; outside of it the region may be gone.
 * Return: as sroce_mr_use().
 */
struct sroce_mr *sroce_mr_look(struct sroce_mr_table *table, u32 key,
			       const struct ib_pd *pd, int access, u64 va,
			       u64 len);

/* The same for the region as a whole: no bounds are checked */
struct sroce_mr *sroce_mr_look_whole(struct sroce_mr_table *table, u32 key,
				     const struct ib_pd *pd, int access);

/**
 * sroce_mr_serves() - may this QP use what it has found?
 * @mr: region that is used, held or looked at
 * @owned: what the QP has bound
 *
 * A window of type 2 belongs to one QP (type 2B: and to the PD).
 */
static inline bool sroce_mr_serves(const struct sroce_mr *mr,
				   const struct sroce_mw_list *owned)
{
	return mr->kind != SROCE_MR_WINDOW || !mr->type2 ||
	       READ_ONCE(mr->owner) == owned;
}

/**
 * sroce_mr_bvecs() - the pages behind a range
 * @mr: region that is used or held; the range was checked, and in a region
 *	on demand sroce_odp_present() has found it there
 * @va: first byte
 * @len: bytes
 * @bv: filled in
 * @max: entries at @bv
 * @done: set to the number of bytes described; less than @len when @max
 *	entries did not suffice, or when the region was invalidated and mapped
 *	anew behind the user's back
 *
 * Physically contiguous pages share an entry.
 *
 * Context: any.
 * Return: entries used; 0 when nothing is there (any more): an access error.
 */
unsigned int sroce_mr_bvecs(const struct sroce_mr *mr, u64 va, u32 len,
			    struct bio_vec *bv, unsigned int max, u32 *done);

/**
 * sroce_mr_kernel_bvecs() - describe a range of the kernel's own addresses
 * @va: first byte
 * @len: bytes, at least one
 * @bv: entries to fill
 * @max: room in @bv
 * @done: set to the number of bytes described; less than @len when @max
 *	entries did not suffice
 *
 * Context: any.
 * Return: entries used.
 */
unsigned int sroce_mr_kernel_bvecs(u64 va, u32 len, struct bio_vec *bv,
				   unsigned int max, u32 *done);

/**
 * sroce_mr_set_blocks() - take the memory of a pinned user region
 * @mr: SROCE_MR_USER with @umem, @iova, @length and @block_shift set and
 *	room for all its blocks
 *
 * Sets @offset, @nr_blocks and @blocks from the umem's scatter list.
 */
void sroce_mr_set_blocks(struct sroce_mr *mr);

/**
 * sroce_mr_invalidate() - make the key of a fast-register region or of a
 * window of type 2 fail
 * @table: keys of the device
 * @key: key to invalidate
 * @pd: protection domain of the QP
 * @owned: what the QP has bound; a window must be among it
 * @remote: asked for by the peer (SEND with invalidate), so the region must
 *	have been registered with a remote right
 *
 * Context: any.
 * Return: 0, -EINVAL when the key is unknown, foreign, not valid, or that of
 * something else, -EACCES when the peer had no right to it.
 */
int sroce_mr_invalidate(struct sroce_mr_table *table, u32 key,
			const struct ib_pd *pd,
			const struct sroce_mw_list *owned, bool remote);

/**
 * sroce_mr_take_staged() - take over what ib_map_mr_sg() has set
 * @mr: fast-register region that is not valid
 *
 * A copy, because a consumer may register the same pages once more. The
 * address is read now: consumers change its upper bits after mapping. A peer that has
 * looked the key up before it was invalidated may be reading what is written here.
 *
 * Context: @mr->lock held.
 */
static inline void sroce_mr_take_staged(struct sroce_mr *mr)
{
	WRITE_ONCE(mr->iova, mr->ibmr.iova);
	/* a region made without verbs/mr.c (unit tests) has its blocks already */
	if (!mr->staged)
		return;
	write_seqcount_begin(&mr->seq);
	memcpy(mr->blocks, mr->staged, mr->nr_staged * sizeof(*mr->blocks));
	WRITE_ONCE(mr->nr_blocks, mr->nr_staged);
	if (mr->ends)
		memcpy(mr->ends, mr->ends + mr->max_blocks,
		       mr->nr_staged * sizeof(*mr->ends));
	write_seqcount_end(&mr->seq);
	WRITE_ONCE(mr->length, mr->ibmr.length);
	if (mr->ends) {
		WRITE_ONCE(mr->offset, 0);
		return;
	}
	WRITE_ONCE(mr->block_shift, ilog2(mr->ibmr.page_size));
	WRITE_ONCE(mr->offset, mr->iova & (mr->ibmr.page_size - 1));
}

/**
 * sroce_mr_quiet() - is an invalidated region still being copied to or from?
 * @table: keys of the device
 * @key: key that sroce_mr_invalidate() has made fail
 * @pd: domain of the QP that has done so
 *
 * Whoever asked for the invalidation may free the memory when it is told, so
 * it is not told before this is true. It becomes true by itself: users are
 * copies on other CPUs and trains waiting in an inbox.
 *
 * Context: any.
 */
bool sroce_mr_quiet(struct sroce_mr_table *table, u32 key, const struct ib_pd *pd);

/**
 * sroce_mr_register() - carry out a REG_MR work request
 * @mr: region
 * @pd: protection domain of the QP
 * @key: new key; may differ from the old one in its low byte only
 * @access: rights, IB_ACCESS_*; a remote write or atomic right needs the local
 *	write right (C10-74)
 *
 * One with protection information has no atomics and no windows: a word of it may be in two
 * places. What its bytes are must not change as long as somebody copies who has found it
 * valid before.
 *
 * Context: any.
 * Return: 0; -EINVAL when the region is valid already, foreign, of another kind, nothing
 * was mapped that fits, or the key or rights are not allowed; -EAGAIN when it has
 * protection information and somebody uses it still.
 */
int sroce_mr_register(struct sroce_mr *mr, const struct ib_pd *pd, u32 key,
		      int access);

/**
 * sroce_mr_atomic() - carry out one atomic operation on 8 bytes
 * @mr: region that is used or held; @va is in bounds and 8-byte aligned
 * @va: address
 * @cas: compare and swap; otherwise add
 * @compare: value to compare with
 * @swap_add: value to store or to add
 * @old: set to the value before
 *
 * Atomic also against the CPUs of this host (IB_ATOMIC_GLOB), unless the memory
 * is not 8-byte aligned although @va is.
 *
 * Return: false when the memory is not there (any more): an access error.
 */
bool sroce_mr_atomic(const struct sroce_mr *mr, u64 va, bool cas, u64 compare,
		     u64 swap_add, u64 *old);

/* Store 8 bytes at once (ATOMIC WRITE); they are not swapped. Return: likewise */
bool sroce_mr_atomic_write(const struct sroce_mr *mr, u64 va, u64 value);

#endif
