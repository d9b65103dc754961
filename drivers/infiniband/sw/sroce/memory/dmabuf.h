/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Regions of dma-bufs: memory that another driver has, and has given to the process as a
 * file (ibv_reg_dmabuf_mr()).
 *
 * Such memory is meant for devices. This one has no DMA and copies with the processor, so
 * it asks for what dma-bufs have for processors, a mapping of the kernel's
 * (dma_buf_vmap()). While there is one the exporter does not move the buffer. It may take
 * it back; then the region's key fails from there on. Only exporters that were tried are
 * asked: what a mapping is for processors, and that it can be had, is each one's matter.
 *
 * What is not used, and why: the scatter list of an attachment, whose pages do not belong
 * to who imports it, and whose addresses are those of a bus.
 */
#ifndef SROCE_MEMORY_DMABUF_H
#define SROCE_MEMORY_DMABUF_H

#include <linux/types.h>

struct dma_buf;
struct ib_device;
struct sroce_dmabuf;
struct sroce_mr;

/**
 * sroce_dmabuf_create() - get at the memory of a dma-buf
 * @ibdev: who asks, as exporters see it
 * @buf: buffer; a hold of its own is taken
 * @write: it is to be written to
 *
 * The whole buffer counts as memory that the calling process has pinned: it stays for as
 * long as this does.
 *
 * Context: process, may sleep; waits for whoever uses the buffer in a way that
 * ours does not go with for five seconds at most.
 * Return: what goes into sroce_mr.dmabuf, or an ERR_PTR: -EOPNOTSUPP when its memory is not
 * for processors or its exporter was not tried, -EACCES when the file is not open for
 * reading, or not for writing, -ETIMEDOUT when somebody goes on using it, -EINTR or
 * -ERESTARTSYS after a signal, -ENOMEM above RLIMIT_MEMLOCK, or what the exporter says.
 */
struct sroce_dmabuf *sroce_dmabuf_create(struct ib_device *ibdev,
					 struct dma_buf *buf, bool write);

/**
 * sroce_dmabuf_set_blocks() - take a part of it as the memory of a region
 * @mr: SROCE_MR_USER with @dmabuf, and room for as many pages
 * @offset: first byte in the buffer
 * @length: bytes, not 0; the buffer has as many
 *
 * Context: process, may sleep.
 * Return: 0, or -EOPNOTSUPP when there are pages among it that the kernel has not mapped
 * itself, or that are not ordinary memory.
 */
int sroce_dmabuf_set_blocks(struct sroce_mr *mr, u64 offset, u64 length);

/**
 * sroce_dmabuf_publish() - let a filled-in region answer, until the buffer is taken back
 * @mr: region with @dmabuf
 *
 * Context: process, may sleep.
 * Return: 0, or -ENODEV when it has been taken back already.
 */
int sroce_dmabuf_publish(struct sroce_mr *mr);

/* The region is going to be freed: nobody comes to it from the buffer any more. May sleep */
void sroce_dmabuf_leave(struct sroce_dmabuf *d);

/* The region is no more, or there was none. Context: process, may sleep */
void sroce_dmabuf_destroy(struct sroce_dmabuf *d);

#endif
