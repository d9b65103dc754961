/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Who has a dma-buf, for tests, and takes it back while others use it.
 */
#ifndef SROCE_TESTS_EXPORTER_H
#define SROCE_TESTS_EXPORTER_H

#include <linux/completion.h>
#include <linux/dma-buf.h>
#include <linux/types.h>

struct dma_fence;
struct ib_device;
struct kunit;

#define EXPORTER_PAGES 8
#define EXPORTER_BYTES (EXPORTER_PAGES * PAGE_SIZE)

/**
 * struct exporter - who has a buffer
 * @test: test
 * @ibdev: device that asks for it
 * @pages: memory, in an order in which it is not contiguous
 * @buf: buffer
 * @iomem: the mapping is one of registers
 * @moves: it moves the buffer to where processors reach it when one is going to
 * @moved: left by a move; NULL: none
 * @maps: mappings that there are
 * @most_maps: that there have been at a time
 * @users: between begin_cpu_access() and end_cpu_access()
 * @attached: attachments
 * @released: the buffer is gone
 * @dir: what was asked for last
 */
struct exporter {
	struct kunit *test;
	struct ib_device *ibdev;
	struct page *pages[EXPORTER_PAGES];
	struct dma_buf *buf;
	bool iomem;
	bool moves;
	struct dma_fence *moved;
	int maps;
	int most_maps;
	int users;
	int attached;
	struct completion released;
	enum dma_data_direction dir;
};

/* Memory that stays where it is, as that of udmabuf does */
extern const struct dma_buf_ops exporter_still;
/* A driver that moves buffers, as those of GPUs do */
extern const struct dma_buf_ops exporter_moving;
/* Memory of a device, for devices only */
extern const struct dma_buf_ops exporter_device;

/* A buffer of EXPORTER_PAGES of somebody else's pages, in their order */
void exporter_create(struct kunit *test, struct exporter *x, const struct dma_buf_ops *ops,
		     int flags, struct page **pages);

/* The last hold on the buffer goes; what has become of it */
void exporter_exit(struct exporter *x);

/* Nobody uses the buffer any more on return. May sleep */
void exporter_take_back(struct exporter *x);

/**
 * struct taker - who takes a buffer back while it is used
 * @x: exporter
 * @done: it has it
 */
struct taker {
	struct exporter *x;
	struct completion done;
};

/* It begins on this processor, as soon as the caller sleeps */
void taker_begin(struct taker *t);

#endif
