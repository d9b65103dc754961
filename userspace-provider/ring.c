/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Map and unmap rings.
 */
#include <errno.h>
#include <sys/mman.h>

#include <infiniband/driver.h>

#include "ring.h"

int sroce_ring_map(struct sroce_ring *ring, struct ibv_context *ctx,
		   const struct sroce_ring_info *info)
{
	void *base;
	int err;

	*ring = (struct sroce_ring){};
	if (!info->entries)
		return 0;

	base = mmap(NULL, info->mmap_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		    ctx->cmd_fd, info->mmap_offset);
	if (base == MAP_FAILED)
		return errno;

	/* A forked child has no business with the parent's queues. */
	err = ibv_dontfork_range(base, info->mmap_len);
	if (err) {
		munmap(base, info->mmap_len);
		return err;
	}

	ring->hdr = base;
	ring->entries = (uint8_t *)base + SROCE_RING_ENTRIES_OFFSET;
	ring->map_len = info->mmap_len;
	ring->nr_entries = info->entries;
	ring->stride = info->stride;
	return 0;
}

void sroce_ring_unmap(struct sroce_ring *ring)
{
	if (!ring->hdr)
		return;

	ibv_dofork_range(ring->hdr, ring->map_len);
	munmap(ring->hdr, ring->map_len);
	*ring = (struct sroce_ring){};
}
