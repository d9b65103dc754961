/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory that a queue shares with the kernel: a header with the two indices
 * and one word of flags, then the entries.
 *
 * The indices run freely through all 32 bits. Each side keeps its own index
 * in private memory and only ever stores it here; what it reads here is the
 * other side's index.
 */
#ifndef SROCE_RING_H
#define SROCE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/sroce-abi.h>

struct ibv_context;

struct sroce_ring {
	struct sroce_ring_hdr *hdr;
	uint8_t *entries;
	void *map;		/* where its mapping begins */
	size_t map_len;		/* 0: in another ring's mapping */
	uint32_t nr_entries;	/* 0: this queue does not exist */
	uint32_t stride;
};

/* Returns an errno. A ring of no entries is mapped to nothing. */
int sroce_ring_map(struct sroce_ring *ring, struct ibv_context *ctx,
		   const struct sroce_ring_info *info);
/* A ring in the mapping of another one, which has to stay longer */
void sroce_ring_share(struct sroce_ring *ring, const struct sroce_ring *first,
		      const struct sroce_ring_info *info);
void sroce_ring_unmap(struct sroce_ring *ring);

static inline void *sroce_ring_entry(const struct sroce_ring *ring,
				     uint32_t index)
{
	uint32_t nr = index & (ring->nr_entries - 1);

	return ring->entries + (size_t)nr * ring->stride;
}

/* The other side's index: what it has written (or freed) before is visible */
static inline uint32_t sroce_load_index(const __u32 *index)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)index,
				    memory_order_acquire);
}

/*
 * Of the entries from @from up to @next, how many the kernel has taken: they
 * complete, even where the doorbell failed because the device is gone.
 */
static inline uint32_t sroce_ring_taken(const struct sroce_ring *ring,
					uint32_t from, uint32_t next)
{
	uint32_t cons = sroce_load_index(&ring->hdr->cons);

	/* What others have posted behind may have been taken, too */
	if ((int32_t)(cons - next) >= 0)
		return next - from;
	/* Behind @from it looks very large. */
	return cons - from <= next - from ? cons - from : 0;
}

/*
 * Of a ring that we fill: is there a free entry at @next? @cons is the kernel's
 * index as last seen. Only where the ring looks full is the kernel's cache line
 * looked at.
 */
static inline bool sroce_ring_has_room(const struct sroce_ring *ring,
				       uint32_t *cons, uint32_t next)
{
	if (next - *cons < ring->nr_entries)
		return true;

	*cons = sroce_load_index(&ring->hdr->cons);
	return next - *cons < ring->nr_entries;
}

/* Of a ring that we fill: both indices, as the kernel has left them */
static inline void sroce_ring_restart(const struct sroce_ring *ring,
				      uint32_t *prod, uint32_t *cons)
{
	if (!ring->nr_entries)
		return;

	*prod = sroce_load_index(&ring->hdr->prod);
	*cons = sroce_load_index(&ring->hdr->cons);
}

/* Our index: what we have written (or read) before comes first */
static inline void sroce_store_index(__u32 *index, uint32_t value)
{
	atomic_store_explicit((_Atomic(uint32_t) *)index, value,
			      memory_order_release);
}

static inline uint32_t sroce_load_flags(const __u32 *flags)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)flags,
				    memory_order_relaxed);
}

static inline void sroce_store_flags(__u32 *flags, uint32_t value)
{
	atomic_store_explicit((_Atomic(uint32_t) *)flags, value,
			      memory_order_relaxed);
}

/*
 * Between storing our half of a handshake and looking at the other side's:
 * whichever side comes second sees the first.
 */
static inline void sroce_full_barrier(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Of a ring that we fill: the kernel may have all entries before @next. Returns
 * its flags, as they are once it can see these entries.
 */
static inline uint32_t sroce_ring_publish(const struct sroce_ring *ring,
					  uint32_t *prod, uint32_t next)
{
	*prod = next;
	sroce_store_index(&ring->hdr->prod, next);
	sroce_full_barrier();
	return sroce_load_flags(&ring->hdr->flags);
}

#endif
