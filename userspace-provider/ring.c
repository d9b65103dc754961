/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Map and unmap rings.
 */
#include <errno.h>
#include <sys/mman.h>

#include <infiniband/driver.h>

#include "ring.h"

static void place(struct sroce_ring *ring, void *base,
		  const struct sroce_ring_info *info)
{
	uint8_t *hdr = (uint8_t *)base + info->start;

	ring->map = base;
	ring->hdr = (struct sroce_ring_hdr *)hdr;
	ring->entries = hdr + SROCE_RING_ENTRIES_OFFSET;
	ring->nr_entries = info->entries;
	ring->stride = info->stride;
}

int sroce_ring_map(struct sroce_ring *ring, struct ibv_context *ctx,
		   const struct sroce_ring_info *info)
{
	void *base;

	*ring = (struct sroce_ring){};
	if (!info->entries)
		return 0;

	base = mmap(NULL, info->mmap_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		    ctx->cmd_fd, info->mmap_offset);
	if (base == MAP_FAILED)
		return errno;

	place(ring, base, info);
	ring->map_len = info->mmap_len;
	return 0;
}

void sroce_ring_share(struct sroce_ring *ring, const struct sroce_ring *first,
		      const struct sroce_ring_info *info)
{
	*ring = (struct sroce_ring){};
	if (info->entries)
		place(ring, first->map, info);
}

void sroce_ring_unmap(struct sroce_ring *ring)
{
	if (!ring->map_len)
		return;

	munmap(ring->map, ring->map_len);
	*ring = (struct sroce_ring){};
}
