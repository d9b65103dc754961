// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions of dma-bufs: the pages of a buffer that another driver has, and what happens when
 * that takes it back (memory/dmabuf.h). Asked when such a region is made and freed; a
 * message finds its pages in the table that every pinned region has.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/iosys-map.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pfn.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "memory/dmabuf.h"
#include "memory/mr.h"
#include "memory/pinned.h"

MODULE_IMPORT_NS("DMA_BUF");

/*
 * Somebody who writes to a buffer, a GPU, say, may take long. A registration that waits
 * keeps the device from going, so it does not wait for longer.
 */
#define SROCE_DMABUF_PATIENCE (5 * HZ)

/* Pages looked up before others may run */
#define DMABUF_BATCH 4096

/**
 * struct sroce_dmabuf - a dma-buf that a region has
 * @ibdev: device, for what is said about it
 * @buf: buffer, held
 * @attach: the exporter knows us by it
 * @dir: what the region may do
 * @map: the kernel's mapping of the buffer; clear when there is none
 * @first: first page of the region in that
 * @nr: pages of the region
 * @mr: region to end when it is taken back; under the buffer's reservation lock
 * @taken_back: it was; likewise
 * @unmap: lets go of the mapping then: the exporter holds the lock that this takes
 * @pinned: counts the buffer as memory that the process has pinned
 */
struct sroce_dmabuf {
	struct ib_device *ibdev;
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	enum dma_data_direction dir;
	struct iosys_map map;
	void *first;
	u32 nr;
	struct sroce_mr *mr;
	bool taken_back;
	struct work_struct unmap;
	struct sroce_pinned pinned;
};

/* --- taken back ------------------------------------------------------------------ */

/* Behind an address of the exporter's mapping */
static struct page *sroce_dmabuf_page(const void *at)
{
	if (is_vmalloc_addr(at))
		return vmalloc_to_page(at);
	return virt_addr_valid(at) ? virt_to_page(at) : NULL;
}

/*
 * No page table knows of what we have written, and memory of a file that nobody has marked
 * is dropped when memory is short. What was taken back its exporter has looked after.
 */
static void sroce_dmabuf_set_dirty(struct sroce_dmabuf *d)
{
	void *at = d->first;
	u32 i;

	if (d->dir != DMA_BIDIRECTIONAL || d->taken_back)
		return;
	for (i = 0; i < d->nr; i++, at += PAGE_SIZE) {
		set_page_dirty_lock(sroce_dmabuf_page(at));
		cond_resched();
	}
}

static void sroce_dmabuf_vunmap(struct sroce_dmabuf *d)
{
	if (iosys_map_is_null(&d->map))
		return;
	sroce_dmabuf_set_dirty(d);
	dma_buf_vunmap_unlocked(d->buf, &d->map);
	iosys_map_clear(&d->map);
}

static void sroce_dmabuf_unmap_work(struct work_struct *work)
{
	sroce_dmabuf_vunmap(container_of(work, struct sroce_dmabuf, unmap));
}

/*
 * The exporter moves the buffer although it is mapped, or takes it back. A region is not
 * given new pages: no exporter is known that moves what is mapped for processors.
 *
 * Context: the buffer's reservation lock held. Copies that are under way are waited for.
 */
static void sroce_dmabuf_invalidate(struct dma_buf_attachment *attach)
{
	struct sroce_dmabuf *d = attach->importer_priv;

	d->taken_back = true;
	if (!d->mr)
		return;
	sroce_mr_revoke(d->mr);
	d->mr = NULL;
	schedule_work(&d->unmap);
}

/* By position: the second one had another name in older kernels */
static const struct dma_buf_attach_ops sroce_dmabuf_attach_ops = {
	false, sroce_dmabuf_invalidate
};

/* --- making and ending -------------------------------------------------------------- */

/*
 * Exporters that were tried: udmabuf, and the heap of ordinary memory. Both have cached
 * pages of the kernel's. Of others some have a vmap() that always fails, of which dma-buf
 * warns in the log, so that no process may have one called; some map write-combined.
 */
static bool sroce_dmabuf_is_known(const struct dma_buf *buf)
{
	static const char *const names[] = { "udmabuf", "system" };

	return match_string(names, ARRAY_SIZE(names), buf->exp_name) >= 0;
}

/*
 * Where a device may see other data than the processor's caches have, memory is coherent
 * for one or the other at a time, and a region would be for both. Also the kernel's
 * mapping may have other attributes there than the one that we copy through.
 */
static int sroce_dmabuf_check(struct ib_device *ibdev,
			      const struct dma_buf *buf, bool write)
{
	if (IS_ENABLED(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU)) {
		ibdev_dbg(ibdev, "dma-buf: devices may not be coherent here\n");
		return -EOPNOTSUPP;
	}
	if (!sroce_dmabuf_is_known(buf) || !buf->ops->vmap) {
		ibdev_dbg(ibdev, "dma-buf of %s: was not tried\n",
			  buf->exp_name);
		return -EOPNOTSUPP;
	}
	/* Whatever its rights, a region is read from for its owner's requests */
	if (!(buf->file->f_mode & FMODE_READ) ||
	    (write && !(buf->file->f_mode & FMODE_WRITE))) {
		ibdev_dbg(ibdev, "dma-buf: not open for reading, or writing\n");
		return -EACCES;
	}
	return 0;
}

/*
 * Only an exporter that can move buffers is told how to reach us. To others older kernels
 * would give the scatter list at once, for which there is no DMA here.
 */
static int sroce_dmabuf_attach(struct sroce_dmabuf *d)
{
	const struct dma_buf_attach_ops *ops = NULL;

	if (d->buf->ops->pin)
		ops = &sroce_dmabuf_attach_ops;
	d->attach = dma_buf_dynamic_attach(d->buf, &d->ibdev->dev, ops, d);
	return PTR_ERR_OR_ZERO(d->attach);
}

/* dma_buf_begin_cpu_access() would wait for as long as it takes */
static int sroce_dmabuf_await_writers(struct sroce_dmabuf *d)
{
	bool write = d->dir == DMA_BIDIRECTIONAL;
	long left = dma_resv_wait_timeout(d->buf->resv,
					  dma_resv_usage_rw(write), true,
					  SROCE_DMABUF_PATIENCE);

	if (!left)
		return -ETIMEDOUT;
	return left < 0 ? left : 0;
}

static int sroce_dmabuf_check_map(const struct sroce_dmabuf *d)
{
	if (d->map.is_iomem || offset_in_page(d->map.vaddr)) {
		ibdev_dbg(d->ibdev, "dma-buf of %s: memory of a device\n",
			  d->buf->exp_name);
		return -EOPNOTSUPP;
	}
	return 0;
}

/*
 * The exporter may move the buffer to where processors reach it, until it is mapped, and
 * tells everybody who is attached. What has been until now is not for us: we have no page
 * of it yet.
 */
static int sroce_dmabuf_vmap(struct sroce_dmabuf *d)
{
	int err;

	sroce_vmap_lock(d->buf);
	err = dma_buf_vmap(d->buf, &d->map);
	d->taken_back = false;
	sroce_vmap_unlock(d->buf);
	return err;
}

/* A move leaves a fence of its own: the data is there when that is signalled */
static int sroce_dmabuf_map(struct sroce_dmabuf *d)
{
	int err = sroce_dmabuf_await_writers(d);

	if (!err)
		err = dma_buf_begin_cpu_access(d->buf, d->dir);
	if (err)
		return err;
	err = sroce_dmabuf_vmap(d);
	if (!err)
		err = sroce_dmabuf_check_map(d);
	if (!err)
		err = sroce_dmabuf_await_writers(d);
	if (err) {
		sroce_dmabuf_vunmap(d);
		dma_buf_end_cpu_access(d->buf, d->dir);
	}
	return err;
}

static int sroce_dmabuf_open(struct sroce_dmabuf *d)
{
	int err = sroce_pinned_charge(&d->pinned, d->buf->size);

	if (err)
		return err;
	err = sroce_dmabuf_attach(d);
	if (err)
		goto uncharge;
	err = sroce_dmabuf_map(d);
	if (!err)
		return 0;
	/* Whoever has taken it back meanwhile has queued nothing: there is no region */
	dma_buf_detach(d->buf, d->attach);
uncharge:
	sroce_pinned_uncharge(&d->pinned);
	return err;
}

struct sroce_dmabuf *sroce_dmabuf_create(struct ib_device *ibdev,
					 struct dma_buf *buf, bool write)
{
	struct sroce_dmabuf *d;
	int err;

	err = sroce_dmabuf_check(ibdev, buf, write);
	if (err)
		return ERR_PTR(err);
	d = kzalloc_obj(*d, GFP_KERNEL_ACCOUNT);
	if (!d)
		return ERR_PTR(-ENOMEM);
	INIT_WORK(&d->unmap, sroce_dmabuf_unmap_work);
	/* As the device of the buffer sees it: what is read here comes from there */
	d->dir = write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	d->ibdev = ibdev;
	d->buf = buf;
	err = sroce_dmabuf_open(d);
	if (err) {
		kfree(d);
		return ERR_PTR(err);
	}
	get_dma_buf(buf);
	return d;
}

int sroce_dmabuf_publish(struct sroce_mr *mr)
{
	struct sroce_dmabuf *d = mr->dmabuf;
	int err = -ENODEV;

	dma_resv_lock(d->buf->resv, NULL);
	if (!d->taken_back) {
		d->mr = mr;
		sroce_mr_publish(mr);
		err = 0;
	}
	dma_resv_unlock(d->buf->resv);
	return err;
}

void sroce_dmabuf_leave(struct sroce_dmabuf *d)
{
	dma_resv_lock(d->buf->resv, NULL);
	d->mr = NULL;
	dma_resv_unlock(d->buf->resv);
}

/*
 * Since sroce_dmabuf_leave() nobody queues the work any more. The exporter hears of the end
 * of a use while it knows the user.
 */
void sroce_dmabuf_destroy(struct sroce_dmabuf *d)
{
	flush_work(&d->unmap);
	sroce_dmabuf_vunmap(d);
	dma_buf_end_cpu_access(d->buf, d->dir);
	dma_buf_detach(d->buf, d->attach);
	dma_buf_put(d->buf);
	sroce_pinned_uncharge(&d->pinned);
	kfree(d);
}

/* --- pages ----------------------------------------------------------------------------- */

/*
 * A page at an address of the exporter's mapping, where the kernel has it mapped itself; or
 * NULL. Not all that has a struct page is memory (firmware's, holes), and memory that is
 * secret is mapped nowhere: so look.
 */
static void *sroce_dmabuf_direct(const void *at)
{
	struct page *page = sroce_dmabuf_page(at);
	void *direct;
	u8 byte;

	if (!page || !pfn_valid(PHYS_PFN(page_to_phys(page))) ||
	    is_zone_device_page(page) || PageReserved(page))
		return NULL;
	direct = page_address(page);
	if (!direct || copy_from_kernel_nofault(&byte, direct, sizeof(byte)))
		return NULL;
	return direct;
}

int sroce_dmabuf_set_blocks(struct sroce_mr *mr, u64 offset, u64 length)
{
	struct sroce_dmabuf *d = mr->dmabuf;
	u64 start = offset_in_page(offset);
	void *at = d->map.vaddr + (offset - start);
	u32 n = PFN_UP(start + length);
	u32 i;

	for (i = 0; i < n; i++, at += PAGE_SIZE) {
		mr->blocks[i] = sroce_dmabuf_direct(at);
		if (!mr->blocks[i]) {
			ibdev_dbg(d->ibdev, "dma-buf of %s: not ordinary memory\n",
				  d->buf->exp_name);
			return -EOPNOTSUPP;
		}
		if (!(i % DMABUF_BATCH))
			cond_resched();
	}
	d->first = d->map.vaddr + (offset - start);
	d->nr = n;
	mr->nr_blocks = n;
	mr->offset = start;
	return 0;
}
