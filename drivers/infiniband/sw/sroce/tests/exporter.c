// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who has a dma-buf, for tests.
 */
#include <kunit/test.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

#include "tests/exporter.h"
#include "tests/memory_world.h"

static int exporter_attach(struct dma_buf *buf, struct dma_buf_attachment *at)
{
	struct exporter *x = buf->priv;

	x->attached++;
	return 0;
}

static void exporter_detach(struct dma_buf *buf, struct dma_buf_attachment *at)
{
	struct exporter *x = buf->priv;

	x->attached--;
}

/* Nobody may ask for addresses of a bus */
static struct sg_table *exporter_map(struct dma_buf_attachment *at,
				     enum dma_data_direction dir)
{
	struct exporter *x = at->dmabuf->priv;

	KUNIT_FAIL(x->test, "asked for a scatter list");
	return ERR_PTR(-EIO);
}

static void exporter_unmap(struct dma_buf_attachment *at, struct sg_table *sgt,
			   enum dma_data_direction dir)
{
}

static void exporter_release(struct dma_buf *buf)
{
	struct exporter *x = buf->priv;

	complete(&x->released);
}

/* Whoever is attached is told, and the copy is under way. Context: reservation lock held */
static int exporter_move(struct exporter *x)
{
	int err;

	dma_buf_invalidate_mappings(x->buf);
	if (!x->moved)
		return 0;
	err = dma_resv_reserve_fences(x->buf->resv, 1);
	if (!err)
		dma_resv_add_fence(x->buf->resv, x->moved, DMA_RESV_USAGE_KERNEL);
	return err;
}

static int exporter_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *x = buf->priv;

	x->users++;
	x->dir = dir;
	if (x->moves) {
		dma_resv_lock(buf->resv, NULL);
		dma_buf_invalidate_mappings(buf);
		dma_resv_unlock(buf->resv);
	}
	return 0;
}

static int exporter_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *x = buf->priv;

	x->users--;
	return 0;
}

static int exporter_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *x = buf->priv;
	int err = x->moves ? exporter_move(x) : 0;
	void *at;

	if (err)
		return err;
	at = vmap(x->pages, EXPORTER_PAGES, VM_MAP, PAGE_KERNEL);
	if (!at)
		return -ENOMEM;
	if (x->iomem)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)at);
	else
		iosys_map_set_vaddr(map, at);
	x->maps++;
	x->most_maps = max(x->most_maps, x->maps);
	return 0;
}

static void exporter_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *x = buf->priv;

	vunmap(map->vaddr);
	x->maps--;
}

static int exporter_pin(struct dma_buf_attachment *at)
{
	return 0;
}

static void exporter_unpin(struct dma_buf_attachment *at)
{
}

#define EXPORTER_OPS							\
	.attach = exporter_attach,					\
	.detach = exporter_detach,					\
	.map_dma_buf = exporter_map,					\
	.unmap_dma_buf = exporter_unmap,				\
	.release = exporter_release,					\
	.begin_cpu_access = exporter_begin,				\
	.end_cpu_access = exporter_end

const struct dma_buf_ops exporter_still = {
	EXPORTER_OPS,
	.vmap = exporter_vmap,
	.vunmap = exporter_vunmap,
};

const struct dma_buf_ops exporter_moving = {
	EXPORTER_OPS,
	.pin = exporter_pin,
	.unpin = exporter_unpin,
	.vmap = exporter_vmap,
	.vunmap = exporter_vunmap,
};

const struct dma_buf_ops exporter_device = {
	EXPORTER_OPS,
	.pin = exporter_pin,
	.unpin = exporter_unpin,
};

void exporter_create(struct kunit *test, struct exporter *x, const struct dma_buf_ops *ops,
		     int flags, struct page **pages)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	*x = (struct exporter){ .test = test };
	x->ibdev = kunit_kzalloc(test, sizeof(*x->ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, x->ibdev);
	init_completion(&x->released);
	memcpy(x->pages, pages, sizeof(x->pages));
	info.exp_name = "udmabuf";
	info.ops = ops;
	info.size = EXPORTER_BYTES;
	info.flags = flags;
	info.priv = x;
	x->buf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(x->buf));
}

void exporter_exit(struct exporter *x)
{
	struct kunit *test = x->test;

	KUNIT_EXPECT_EQ(test, x->maps, 0);
	KUNIT_EXPECT_EQ(test, x->users, 0);
	KUNIT_EXPECT_EQ(test, x->attached, 0);
	dma_buf_put(x->buf);
	/* A kernel thread's last fput() is put off */
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&x->released, 30 * HZ));
}

void exporter_take_back(struct exporter *x)
{
	dma_resv_lock(x->buf->resv, NULL);
	dma_buf_invalidate_mappings(x->buf);
	dma_resv_unlock(x->buf->resv);
}

static int taker_thread(void *arg)
{
	struct taker *t = arg;

	exporter_take_back(t->x);
	complete(&t->done);
	return 0;
}

void taker_begin(struct taker *t)
{
	struct task_struct *task;

	init_completion(&t->done);
	task = kthread_create(taker_thread, t, "sroce_taker");
	KUNIT_ASSERT_FALSE(t->x->test, IS_ERR(task));
	run_here(task);
}
