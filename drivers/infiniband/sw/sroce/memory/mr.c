// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions: keys, the checks of every access, and the pages behind an
 * address. On the way of every message that has a payload, wherever it is gathered
 * or placed.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_umem.h>

#include "memory/copy.h"
#include "memory/integrity.h"
#include "memory/internal.h"
#include "memory/mw.h"
#include "memory/odp.h"
#include "memory/pinned.h"
#include "memory/users.h"

/* Rights that REG_MR may give a fast-register region */
#define REGISTER_ACCESS (IB_ACCESS_LOCAL_WRITE | SROCE_REMOTE_ACCESS | \
			 IB_ACCESS_MW_BIND | IB_ACCESS_OPTIONAL)
/* ... if it has protection information */
#define REGISTER_SIG_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
			     IB_ACCESS_REMOTE_WRITE | IB_ACCESS_OPTIONAL)

void sroce_mr_table_init(struct sroce_mr_table *table)
{
	xa_init_flags(&table->xa, XA_FLAGS_ACCOUNT);
}

void sroce_mr_table_destroy(struct sroce_mr_table *table)
{
	WARN_ON(!xa_empty(&table->xa));
	xa_destroy(&table->xa);
}

/* Index 0 is never used, so that a small or forgotten number is no key */
static u32 sroce_mr_random_key(void)
{
	u32 key;

	do {
		key = get_random_u32();
	} while (!(key >> SROCE_KEY_INDEX_SHIFT));
	return key;
}

/*
 * At most a quarter of the 2^24 indices is in use (verbs/limits.h), so that all tries
 * find an index in use with a probability of 2^-128.
 */
int sroce_mr_insert(struct sroce_mr *mr, u32 (*choose)(void))
{
	int tries = SROCE_KEY_TRIES;
	int err;

	do {
		mr->key = choose();
		mr->ibmr.lkey = mr->key;
		mr->ibmr.rkey = mr->key;
		err = xa_insert(&mr->table->xa,
				mr->key >> SROCE_KEY_INDEX_SHIFT, mr,
				GFP_KERNEL);
	} while (err == -EBUSY && --tries);
	return err == -EBUSY ? -ENOSPC : err;
}

static struct sroce_mr *sroce_mr_zalloc(enum sroce_mr_kind kind, u32 max_blocks)
{
	struct sroce_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);

	if (!mr)
		return NULL;

	if (kind == SROCE_MR_DMA) {
		mr->length = U64_MAX;
		return mr;
	}

	if (kind == SROCE_MR_WINDOW || kind == SROCE_MR_ON_DEMAND)
		return mr;
	mr->max_blocks = max_blocks;
	mr->blocks = kvcalloc(max_blocks, sizeof(*mr->blocks), SROCE_GFP_CHOSEN);
	if (!mr->blocks) {
		kfree(mr);
		return NULL;
	}
	return mr;
}

static struct sroce_mr *sroce_mr_make(struct sroce_mr_table *table,
				      struct ib_pd *pd, enum sroce_mr_kind kind,
				      u32 max_blocks)
{
	struct sroce_mr *mr = sroce_mr_zalloc(kind, max_blocks);

	if (!mr)
		return NULL;

	refcount_set(&mr->users, 1);
	init_completion(&mr->idle);
	spin_lock_init(&mr->lock);
	seqcount_spinlock_init(&mr->seq, &mr->lock);
	sroce_mw_list_init(&mr->bound);
	mr->table = table;
	mr->kind = kind;
	mr->block_shift = PAGE_SHIFT;
	mr->ibmr.pd = pd;
	return mr;
}

struct sroce_mr *sroce_mr_alloc(struct sroce_mr_table *table, struct ib_pd *pd,
				enum sroce_mr_kind kind, u32 max_blocks)
{
	struct sroce_mr *mr = sroce_mr_make(table, pd, kind, max_blocks);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = sroce_mr_insert(mr, sroce_mr_random_key);
	if (err) {
		kvfree(mr->blocks);
		kfree(mr);
		return ERR_PTR(err);
	}
	return mr;
}

struct sroce_mr *sroce_mr_alloc_heir(const struct sroce_mr *old,
				     struct ib_pd *pd, enum sroce_mr_kind kind,
				     u32 max_blocks)
{
	struct sroce_mr *mr = sroce_mr_make(old->table, pd, kind, max_blocks);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->key = old->key;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	return mr;
}

void sroce_mr_publish(struct sroce_mr *mr)
{
	/* Pairs with sroce_mr_check_use() */
	smp_store_release(&mr->valid, true);
}

/*
 * Let the region's key lead to @heir; NULL: to nothing. Nothing happens when the key
 * leads to another region already.
 */
static void sroce_mr_pass_key(struct sroce_mr *mr, struct sroce_mr *heir)
{
	xa_cmpxchg(&mr->table->xa, mr->key >> SROCE_KEY_INDEX_SHIFT, mr, heir,
		   GFP_KERNEL);
}

/*
 * Context: no key leads to the region any more. A half of a QP that waits for one of its
 * pages is no user.
 */
static void sroce_mr_end_all_use(struct sroce_mr *mr)
{
	/* A window has that of its region, which stays */
	if (mr->odp && mr->kind != SROCE_MR_WINDOW)
		sroce_odp_close(mr->odp);
	sroce_mr_await_users(mr);
}

void sroce_mr_replace(struct sroce_mr *old, struct sroce_mr *heir)
{
	sroce_mr_publish(heir);
	sroce_mr_pass_key(old, heir);
	old->replaced = true;
	sroce_mr_end_all_use(old);
}

/* That of a region that was revoked leads to nothing already, but is nobody else's */
static void sroce_mr_give_key(struct sroce_mr *mr)
{
	if (mr->revoked)
		xa_release(&mr->table->xa, mr->key >> SROCE_KEY_INDEX_SHIFT);
	else
		sroce_mr_pass_key(mr, NULL);
}

void sroce_mr_free(struct sroce_mr *mr)
{
	if (mr->kind == SROCE_MR_WINDOW)
		sroce_mw_close(mr);
	if (!mr->replaced) {
		sroce_mr_give_key(mr);
		sroce_mr_end_all_use(mr);
	}
	if (mr->kind == SROCE_MR_WINDOW)
		sroce_mw_unbind(mr);
	kvfree(mr->blocks);
	/*
	 * Who has looked the region up before it lost its key still looks at it, and
	 * who has found a window in a list takes its @lock
	 */
	kfree_rcu(mr, rcu);
}

/*
 * The registration goes on. The key leads to nothing from here on: who looks it up again and
 * again would be a user again and again, and who waits here may hold a lock of another
 * driver's.
 */
void sroce_mr_revoke(struct sroce_mr *mr)
{
	WRITE_ONCE(mr->valid, false);
	mr->revoked = true;
	xa_cmpxchg(&mr->table->xa, mr->key >> SROCE_KEY_INDEX_SHIFT, mr,
		   XA_ZERO_ENTRY, GFP_NOWAIT);
	sroce_mr_await_other_users(mr);
}

/* A peer may name any address: only those with memory behind must be touched */
static bool sroce_mr_is_linear(u64 va, u64 len)
{
	/* Memory comes in sections no smaller than this */
	const u64 step = SZ_2M;
	u64 last = va + len - 1;

	for (; va < last && last - va > step; va += step)
		if (!virt_addr_valid((void *)(uintptr_t)va))
			return false;
	return virt_addr_valid((void *)(uintptr_t)va) &&
	       virt_addr_valid((void *)(uintptr_t)last);
}

static int sroce_mr_check_special(const struct sroce_mr *mr, int access, u64 va,
				  u64 len)
{
	/* A window is for peers; it has no L_Key */
	if (mr->kind == SROCE_MR_WINDOW)
		return access & ~IB_ACCESS_LOCAL_WRITE ? 0 : -EINVAL;
	if (access & SROCE_REMOTE_ACCESS && !sroce_mr_is_linear(va, len))
		return -ERANGE;
	return 0;
}

int sroce_mr_check_range(const struct sroce_mr *mr, int access, u64 va, u64 len)
{
	u64 length = READ_ONCE(mr->length);

	/* Below the first byte the difference wraps to more than any length */
	if (len > length || va - READ_ONCE(mr->iova) > length - len)
		return -ERANGE;
	if (unlikely(mr->kind <= SROCE_MR_WINDOW))
		return sroce_mr_check_special(mr, access, va, len);
	return 0;
}

static int sroce_mr_check_use(const struct sroce_mr *mr, u32 key,
			      const struct ib_pd *pd, int access)
{
	if (!READ_ONCE(mr->valid))
		return -EINVAL;
	/* Pairs with sroce_mr_publish(): the key, too, belongs to this life */
	smp_rmb();
	if (READ_ONCE(mr->key) != key || mr->ibmr.pd != pd)
		return -EINVAL;
	return access & ~READ_ONCE(mr->access) ? -EACCES : 0;
}

int sroce_mr_check(const struct sroce_mr *mr, u32 key, const struct ib_pd *pd,
		   int access, u64 va, u64 len)
{
	int err = sroce_mr_check_use(mr, key, pd, access);

	return unlikely(err) ? err : sroce_mr_check_range(mr, access, va, len);
}

struct sroce_mr *sroce_mr_look_whole(struct sroce_mr_table *table, u32 key,
				     const struct ib_pd *pd, int access)
{
	struct sroce_mr *mr = xa_load(&table->xa, key >> SROCE_KEY_INDEX_SHIFT);
	int err;

	if (!mr)
		return ERR_PTR(-EINVAL);
	err = sroce_mr_check_use(mr, key, pd, access);
	return unlikely(err) ? ERR_PTR(err) : mr;
}

struct sroce_mr *sroce_mr_look(struct sroce_mr_table *table, u32 key,
			       const struct ib_pd *pd, int access, u64 va,
			       u64 len)
{
	struct sroce_mr *mr = sroce_mr_look_whole(table, key, pd, access);
	int err;

	if (IS_ERR(mr))
		return mr;
	err = sroce_mr_check_range(mr, access, va, len);
	return unlikely(err) ? ERR_PTR(err) : mr;
}

/*
 * @offset counts from the start of the first block. A fast-register region may
 * change while it is read, when its owner invalidates it under a peer's hands:
 * what is read then is the peer's loss, but never outside its table.
 */
static unsigned int sroce_mr_block_bvecs(const struct sroce_mr *mr, u64 offset,
					 u32 len, struct bio_vec *bv,
					 unsigned int max, u32 *done)
{
	const u8 shift = READ_ONCE(mr->block_shift);
	const u64 size = 1ULL << shift;
	unsigned long block = offset >> shift;
	u64 start = offset & (size - 1);
	u32 nr_blocks = READ_ONCE(mr->nr_blocks);
	void *next = NULL;	/* behind the last entry */
	unsigned int n = 0;
	u32 left = len;

	if (block < nr_blocks)
		block = array_index_nospec(block, nr_blocks);
	while (left && block < READ_ONCE(mr->nr_blocks)) {
		void *at = READ_ONCE(mr->blocks[block++]) + start;
		u32 chunk = min_t(u64, left, size - start);

		if (n && at == next) {
			bv[n - 1].bv_len += chunk;
		} else {
			if (n == max)
				break;
			bvec_set_virt(&bv[n++], at, chunk);
		}
		next = at + chunk;
		start = 0;
		left -= chunk;
	}

	*done = len - left;
	return n;
}

/* The block that a byte is in; @nr when it is in none */
static u32 sroce_mr_gap_block(const struct sroce_mr *mr, u64 offset, u32 nr)
{
	u32 first = 0, behind = nr;

	while (first < behind) {
		u32 middle = first + (behind - first) / 2;

		if (READ_ONCE(mr->ends[middle]) <= offset)
			first = middle + 1;
		else
			behind = middle;
	}
	return first;
}

/* Context: to be done again when @mr->seq has changed meanwhile */
static unsigned int sroce_mr_gap_try(const struct sroce_mr *mr, u64 offset,
				     u32 len, struct bio_vec *bv,
				     unsigned int max, u32 *done)
{
	u32 nr = min(READ_ONCE(mr->nr_blocks), mr->max_blocks);
	u32 block = sroce_mr_gap_block(mr, offset, nr);
	unsigned int n = 0;
	u32 left = len;

	for (; left && n < max && block < nr; block++) {
		u32 i = array_index_nospec(block, nr);
		u64 begin = i ? READ_ONCE(mr->ends[i - 1]) : 0;
		u64 end = READ_ONCE(mr->ends[i]);
		u32 chunk = min_t(u64, left, end - offset);

		/* Only where its owner changes it under a peer's hands */
		if (end <= offset || offset < begin)
			break;
		bvec_set_virt(&bv[n++], READ_ONCE(mr->blocks[i]) + (offset - begin),
			      chunk);
		offset += chunk;
		left -= chunk;
	}

	*done = len - left;
	return n;
}

/*
 * As sroce_mr_block_bvecs(), where blocks have any length; @offset is from the first byte.
 * What the owner changes meanwhile is the peer's loss here, too, but a block of one list
 * must not get the length of a block of another.
 */
static unsigned int sroce_mr_gap_bvecs(const struct sroce_mr *mr, u64 offset,
				       u32 len, struct bio_vec *bv,
				       unsigned int max, u32 *done)
{
	unsigned int seq, n;

	do {
		seq = read_seqcount_begin(&mr->seq);
		n = sroce_mr_gap_try(mr, offset, len, bv, max, done);
	} while (read_seqcount_retry(&mr->seq, seq));
	return n;
}

unsigned int sroce_mr_kernel_bvecs(u64 va, u32 len, struct bio_vec *bv,
				   unsigned int max, u32 *done)
{
	unsigned int i, n;

	n = sroce_bvec_from_virt(bv, max, (void *)(uintptr_t)va, len);
	for (*done = 0, i = 0; i < n; i++)
		*done += bv[i].bv_len;
	return n;
}

unsigned int sroce_mr_bvecs(const struct sroce_mr *mr, u64 va, u32 len,
			    struct bio_vec *bv, unsigned int max, u32 *done)
{
	if (mr->kind == SROCE_MR_DMA)
		return sroce_mr_kernel_bvecs(va, len, bv, max, done);
	if (unlikely(mr->odp))
		return sroce_odp_bvecs(mr, va, len, bv, max, done);
	if (mr->ends)
		return sroce_mr_gap_bvecs(mr, va - READ_ONCE(mr->iova), len, bv,
					  max, done);
	return sroce_mr_block_bvecs(mr, va - READ_ONCE(mr->iova) +
				    READ_ONCE(mr->offset), len, bv, max, done);
}

void sroce_mr_set_blocks(struct sroce_mr *mr)
{
	const u64 size = 1ULL << mr->block_shift;
	struct sg_table *sgt = &mr->umem->sgt_append.sgt;
	struct scatterlist *sg;
	u32 n = 0;
	int i;

	mr->offset = ib_umem_dma_offset(mr->umem, size);
	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 end = sg_dma_address(sg) + sg_dma_len(sg);
		/* Only the first may begin inside a block; any other one that
		 * does goes on where its predecessor ended, in the same block.
		 */
		u64 addr = i ? ALIGN((u64)sg_dma_address(sg), size) :
			       ALIGN_DOWN((u64)sg_dma_address(sg), size);

		/* Our devices have no DMA: such an address is the kernel's own */
		for (; addr < end && n < mr->max_blocks; addr += size)
			mr->blocks[n++] = (void *)(uintptr_t)addr;
	}
	mr->nr_blocks = n;

	if (WARN_ON_ONCE(((u64)n << mr->block_shift) - mr->offset < mr->length))
		mr->length = 0;
}

static int sroce_mr_check_invalidate(const struct sroce_mr *mr,
				     const struct sroce_mw_list *owned,
				     bool remote)
{
	switch (mr->kind) {
	case SROCE_MR_FAST_REG:
		return remote && !(mr->access & SROCE_REMOTE_ACCESS) ?
		       -EACCES : 0;
	case SROCE_MR_WINDOW:
		return mr->type2 && mr->owner == owned ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int sroce_mr_invalidate_locked(struct sroce_mr *mr, u32 key,
				      const struct ib_pd *pd,
				      const struct sroce_mw_list *owned,
				      bool remote)
{
	int err;

	if (READ_ONCE(mr->key) != key || mr->ibmr.pd != pd)
		return -EINVAL;
	/* Pairs with sroce_mr_publish(): what is looked at is of this life */
	if (!smp_load_acquire(&mr->valid))
		return -EINVAL;
	err = sroce_mr_check_invalidate(mr, owned, remote);
	if (err)
		return err;
	WRITE_ONCE(mr->valid, false);
	/* Invalid first, then users are counted; pairs with sroce_mr_try_hold() */
	smp_mb();
	return 0;
}

int sroce_mr_invalidate(struct sroce_mr_table *table, u32 key,
			const struct ib_pd *pd,
			const struct sroce_mw_list *owned, bool remote)
{
	struct sroce_mr *mr;
	int err = -EINVAL;

	rcu_read_lock();
	mr = xa_load(&table->xa, key >> SROCE_KEY_INDEX_SHIFT);
	if (mr) {
		spin_lock_bh(&mr->lock);
		err = sroce_mr_invalidate_locked(mr, key, pd, owned, remote);
		spin_unlock_bh(&mr->lock);
	}
	rcu_read_unlock();
	return err;
}

bool sroce_mr_quiet(struct sroce_mr_table *table, u32 key, const struct ib_pd *pd)
{
	struct sroce_mr *mr = sroce_mr_find(table, key, pd);
	bool quiet;

	if (!mr)
		return true;
	/* Two users are known: the registration and this look-up */
	quiet = refcount_read(&mr->users) <= 2;
	/* Copies of the former users come before what the owner does with the memory */
	smp_mb();
	sroce_mr_put(mr);
	return quiet;
}

/* As sroce_mr_take_staged(), of a region with protection information */
static int sroce_mr_take_integrity(struct sroce_mr *mr)
{
	if (!mr->sig->ready)
		return -EINVAL;
	/* Whoever comes now finds it invalid; who came before is counted (sroce_mr_quiet()) */
	if (refcount_read(&mr->users) > 1)
		return -EAGAIN;
	/* Their copies come before what is changed now */
	smp_mb();
	WRITE_ONCE(mr->iova, mr->ibmr.iova);
	WRITE_ONCE(mr->length, sroce_integrity_take(mr->sig));
	return 0;
}

static int sroce_mr_register_locked(struct sroce_mr *mr, u32 key, int access)
{
	int err = 0;

	if (READ_ONCE(mr->valid) || (key ^ mr->key) & ~SROCE_KEY_BYTE)
		return -EINVAL;
	if (mr->sig)
		err = sroce_mr_take_integrity(mr);
	else
		sroce_mr_take_staged(mr);
	if (err)
		return err;
	WRITE_ONCE(mr->key, key);
	WRITE_ONCE(mr->access, access);
	sroce_mr_publish(mr);
	return 0;
}

/* The lock keeps an invalidation away that has seen the key of the life before */
int sroce_mr_register(struct sroce_mr *mr, const struct ib_pd *pd, u32 key,
		      int access)
{
	int err;

	if (mr->kind != SROCE_MR_FAST_REG || mr->ibmr.pd != pd ||
	    access & ~(mr->sig ? REGISTER_SIG_ACCESS : REGISTER_ACCESS))
		return -EINVAL;
	if (access & SROCE_REMOTE_CHANGE && !(access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	spin_lock_bh(&mr->lock);
	err = sroce_mr_register_locked(mr, key, access);
	spin_unlock_bh(&mr->lock);
	return err;
}

/* The 8 bytes at @va, or NULL when they are not one aligned word of memory */
static void *sroce_mr_atomic_ptr(const struct sroce_mr *mr, u64 va)
{
	struct bio_vec bv;
	void *ptr;
	u32 done;

	sroce_mr_bvecs(mr, va, sizeof(u64), &bv, 1, &done);
	if (done != sizeof(u64))
		return NULL;

	ptr = page_address(bv.bv_page) + bv.bv_offset;
	return IS_ALIGNED((uintptr_t)ptr, sizeof(u64)) ? ptr : NULL;
}

/*
 * The region's iova and its memory differ in the lowest bits: no instruction
 * is atomic there, so these are atomic among themselves only.
 */
static DEFINE_SPINLOCK(sroce_misaligned_lock);

/* Each byte may be in a block of its own, in a region with gaps */
struct sroce_misaligned {
	struct bio_vec bv[sizeof(u64)];
	struct bvec_iter iter;
};

/*
 * Return: false when not all of it is there. The owner of a fast-register region may have
 * changed it under a peer's hands; pages on demand stay for as long as there is a reader.
 */
static bool sroce_misaligned_init(struct sroce_misaligned *m,
				  const struct sroce_mr *mr, u64 va)
{
	m->iter = (struct bvec_iter){};
	sroce_mr_bvecs(mr, va, sizeof(u64), m->bv, ARRAY_SIZE(m->bv),
		       &m->iter.bi_size);
	if (likely(m->iter.bi_size == sizeof(u64)))
		return true;
	WARN_ON_ONCE(mr->odp);
	return false;
}

static void sroce_misaligned_write(const struct sroce_misaligned *m, u64 value)
{
	struct bvec_iter iter = m->iter;

	sroce_bvec_write(m->bv, &iter, &value, iter.bi_size);
}

static bool sroce_misaligned_atomic(const struct sroce_mr *mr, u64 va, bool cas,
				    u64 compare, u64 swap_add, u64 *old)
{
	struct bvec_iter iter;
	struct sroce_misaligned m;
	unsigned long flags;

	if (!sroce_misaligned_init(&m, mr, va))
		return false;
	iter = m.iter;

	spin_lock_irqsave(&sroce_misaligned_lock, flags);
	sroce_bvec_read(old, m.bv, &iter, iter.bi_size);
	if (!cas)
		sroce_misaligned_write(&m, *old + swap_add);
	else if (*old == compare)
		sroce_misaligned_write(&m, swap_add);
	spin_unlock_irqrestore(&sroce_misaligned_lock, flags);

	return true;
}

bool sroce_mr_atomic(const struct sroce_mr *mr, u64 va, bool cas, u64 compare,
		     u64 swap_add, u64 *old)
{
	atomic64_t *ptr = sroce_mr_atomic_ptr(mr, va);

	if (unlikely(!ptr))
		return sroce_misaligned_atomic(mr, va, cas, compare, swap_add,
					       old);
	if (cas)
		*old = atomic64_cmpxchg(ptr, compare, swap_add);
	else
		*old = atomic64_fetch_add(swap_add, ptr);
	return true;
}

bool sroce_mr_atomic_write(const struct sroce_mr *mr, u64 va, u64 value)
{
	u64 *ptr = sroce_mr_atomic_ptr(mr, va);
	struct sroce_misaligned m;

	if (likely(ptr)) {
		/* Who sees the value sees what was written before it (A19) */
		smp_store_release(ptr, value);
		return true;
	}
	if (!sroce_misaligned_init(&m, mr, va))
		return false;
	sroce_misaligned_write(&m, value);
	return true;
}
