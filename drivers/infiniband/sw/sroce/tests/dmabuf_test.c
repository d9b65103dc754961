// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions of dma-bufs: which buffers may be one, where their bytes are, and what happens
 * when the exporter takes one back.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "memory/dmabuf.h"
#include "memory/users.h"
#include "tests/exporter.h"
#include "tests/memory_world.h"

#define BUF_IOVA (0x40000000 + 100)

static void exporter_init(struct kunit *test, struct exporter *x,
			  const struct dma_buf_ops *ops, int flags)
{
	struct memory_world *w = test->priv;
	struct page *pages[EXPORTER_PAGES];
	int i;

	/* In an order in which they are not contiguous */
	for (i = 0; i < EXPORTER_PAGES; i++)
		pages[i] = w->pages[EXPORTER_PAGES - 1 - i];
	exporter_create(test, x, ops, flags, pages);
}

static struct sroce_mr *buf_mr(struct exporter *x, u64 offset, u64 length)
{
	struct kunit *test = x->test;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, BUF_IOVA, 0, 8);

	mr->dmabuf = sroce_dmabuf_create(x->ibdev, x->buf, true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr->dmabuf));
	KUNIT_ASSERT_EQ(test, 0, sroce_dmabuf_set_blocks(mr, offset, length));
	mr->length = length;
	mr->access = IB_ACCESS_LOCAL_WRITE;
	return mr;
}

static void buf_mr_free(struct sroce_mr *mr)
{
	struct sroce_dmabuf *d = mr->dmabuf;

	sroce_dmabuf_leave(d);
	sroce_mr_free(mr);
	sroce_dmabuf_destroy(d);
}

/* --- what there is ------------------------------------------------------------------ */

static void dmabuf_bytes(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct exporter x;
	struct sroce_mr *mr;
	u64 i;

	exporter_init(test, &x, &exporter_still, O_RDWR);
	mr = buf_mr(&x, PAGE_SIZE + 100, 5 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(mr));
	KUNIT_EXPECT_EQ(test, x.maps, 1);
	KUNIT_EXPECT_EQ(test, x.users, 1);
	KUNIT_EXPECT_EQ(test, x.dir, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, mr->offset, 100);
	KUNIT_EXPECT_EQ(test, mr->nr_blocks, 6);
	for (i = 0; i < 5 * PAGE_SIZE; i += 50)
		if (byte_at(mr, BUF_IOVA + i) !=
		    page_address(x.pages[1 + (100 + i) / PAGE_SIZE]) +
		    (100 + i) % PAGE_SIZE)
			break;
	KUNIT_EXPECT_GE(test, i, 5 * PAGE_SIZE);
	expect_ranges(test, mr);
	KUNIT_EXPECT_EQ(test, 0, check_key(test, mr->key, &w->pd.ibpd,
					   IB_ACCESS_LOCAL_WRITE, BUF_IOVA,
					   5 * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, -ERANGE, check_key(test, mr->key, &w->pd.ibpd, 0,
						 BUF_IOVA, 5 * PAGE_SIZE + 1));
	buf_mr_free(mr);
	/* whoever has the memory is told that it may have been written to */
	for (i = 0; i < EXPORTER_PAGES; i++)
		KUNIT_EXPECT_EQ(test, i >= 1 && i <= 6, PageDirty(x.pages[i]));
	exporter_exit(&x);
}

/* Two regions have one mapping */
static void dmabuf_twice(struct kunit *test)
{
	struct sroce_mr *one, *two;
	struct exporter x;

	exporter_init(test, &x, &exporter_moving, O_RDWR);
	one = buf_mr(&x, 0, 8);
	two = buf_mr(&x, PAGE_SIZE, 8);
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(one));
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(two));
	KUNIT_EXPECT_EQ(test, x.most_maps, 1);
	KUNIT_EXPECT_EQ(test, x.attached, 2);
	buf_mr_free(one);
	KUNIT_EXPECT_EQ(test, x.maps, 1);
	buf_mr_free(two);
	exporter_exit(&x);
}

static void dmabuf_refused(struct kunit *test)
{
	struct sroce_dmabuf *d;
	struct exporter x;

	exporter_init(test, &x, &exporter_device, O_RDWR);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, false)));
	exporter_exit(&x);

	exporter_init(test, &x, &exporter_still, O_RDWR);
	x.iomem = true;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, true)));
	KUNIT_EXPECT_EQ(test, x.most_maps, 1);
	exporter_exit(&x);

	exporter_init(test, &x, &exporter_still, O_RDWR);
	x.buf->exp_name = "sroce_test";
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, true)));
	KUNIT_EXPECT_EQ(test, x.most_maps, 0);
	exporter_exit(&x);

	exporter_init(test, &x, &exporter_still, O_WRONLY);
	KUNIT_EXPECT_EQ(test, -EACCES,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, true)));
	exporter_exit(&x);

	exporter_init(test, &x, &exporter_still, O_RDONLY);
	KUNIT_EXPECT_EQ(test, -EACCES,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, true)));
	d = sroce_dmabuf_create(x.ibdev, x.buf, false);
	KUNIT_EXPECT_FALSE(test, IS_ERR(d));
	KUNIT_EXPECT_EQ(test, x.dir, DMA_FROM_DEVICE);
	if (!IS_ERR(d))
		sroce_dmabuf_destroy(d);
	exporter_exit(&x);
}

/* The kernel's own pages, and what has none, may be mapped by an exporter, but not by us */
static void dmabuf_not_memory(struct kunit *test)
{
	struct sroce_mr *mr = new_mr(test, SROCE_MR_USER, BUF_IOVA, 0, 8);
	struct exporter x;

	exporter_init(test, &x, &exporter_still, O_RDWR);
	x.pages[3] = ZERO_PAGE(0);
	mr->dmabuf = sroce_dmabuf_create(x.ibdev, x.buf, true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr->dmabuf));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, sroce_dmabuf_set_blocks(mr, 0, 4 * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_set_blocks(mr, 0, 3 * PAGE_SIZE));
	buf_mr_free(mr);
	exporter_exit(&x);
}

/* --- somebody writes and does not end ------------------------------------------------ */

static const char *fence_name(struct dma_fence *fence)
{
	return "sroce_test";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

static DEFINE_SPINLOCK(fence_lock);

static struct dma_fence *new_fence(struct kunit *test)
{
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fence);
	dma_fence_init(fence, &fence_ops, &fence_lock, dma_fence_context_alloc(1), 1);
	return fence;
}

static void dmabuf_awaits_writer(struct kunit *test)
{
	struct dma_fence *fence = new_fence(test);
	struct sroce_dmabuf *d;
	struct exporter x;

	exporter_init(test, &x, &exporter_still, O_RDWR);
	dma_resv_lock(x.buf->resv, NULL);
	KUNIT_EXPECT_EQ(test, 0, dma_resv_reserve_fences(x.buf->resv, 1));
	dma_resv_add_fence(x.buf->resv, fence, DMA_RESV_USAGE_WRITE);
	dma_resv_unlock(x.buf->resv);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, false)));
	KUNIT_EXPECT_EQ(test, x.most_maps, 0);
	dma_fence_signal(fence);
	d = sroce_dmabuf_create(x.ibdev, x.buf, false);
	KUNIT_EXPECT_FALSE(test, IS_ERR(d));
	if (!IS_ERR(d))
		sroce_dmabuf_destroy(d);
	exporter_exit(&x);
	dma_fence_put(fence);
}

/* It goes to where processors reach it before we have it: no reason to refuse it */
static void dmabuf_moves_first(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr;
	struct exporter x;

	exporter_init(test, &x, &exporter_moving, O_RDWR);
	x.moves = true;
	mr = buf_mr(&x, 0, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(mr));
	KUNIT_EXPECT_EQ(test, 0, check_key(test, mr->key, &w->pd.ibpd, 0, BUF_IOVA, 1));
	buf_mr_free(mr);
	x.moved = new_fence(test);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, true)));
	KUNIT_EXPECT_EQ(test, x.maps, 0);
	dma_fence_signal(x.moved);
	dma_fence_put(x.moved);
	exporter_exit(&x);
}

/* --- taken back -------------------------------------------------------------------------- */

static void dmabuf_taken_back(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr, *late;
	struct exporter x;
	int tries;

	exporter_init(test, &x, &exporter_moving, O_RDWR);
	mr = buf_mr(&x, 0, PAGE_SIZE);
	late = buf_mr(&x, 0, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(mr));
	exporter_take_back(&x);
	KUNIT_EXPECT_EQ(test, -EINVAL, check_key(test, mr->key, &w->pd.ibpd, 0, BUF_IOVA, 1));
	/* one that was not registered yet is not registered any more */
	KUNIT_EXPECT_EQ(test, -ENODEV, sroce_dmabuf_publish(late));
	KUNIT_EXPECT_EQ(test, -EINVAL, check_key(test, late->key, &w->pd.ibpd, 0, BUF_IOVA,
						 1));
	buf_mr_free(late);
	/* the exporter need not wait for the process to deregister */
	for (tries = 0; READ_ONCE(x.maps) && tries < 1000; tries++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, x.maps, 0);
	/* its key is nobody else's */
	KUNIT_EXPECT_EQ(test, -EBUSY, xa_insert(&w->table.xa, mr->key >> 8, mr, GFP_KERNEL));
	exporter_take_back(&x);
	buf_mr_free(mr);
	exporter_exit(&x);
}

static void expect_taken(struct kunit *test, struct taker *t)
{
	struct memory_world *w = test->priv;

	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&t->done, 30 * HZ));
	KUNIT_EXPECT_EQ(test, atomic_read(&w->pd.recalls), 0);
}

/* Whoever copies goes on until it has copied, and the exporter waits for it */
static void dmabuf_taken_back_in_use(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct copier copier = { .va = BUF_IOVA };
	struct sroce_mr *mr;
	struct exporter x;
	struct taker t = { .x = &x };

	if (num_online_cpus() < 2)
		kunit_skip(test, "one processor");
	exporter_init(test, &x, &exporter_moving, O_RDWR);
	mr = buf_mr(&x, 0, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(mr));
	copier_begin(test, &copier, mr->key);
	taker_begin(&t);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&t.done, HZ / 10));
	KUNIT_EXPECT_PTR_EQ(test, mr, copier.mr);
	KUNIT_EXPECT_EQ(test, x.maps, 1);
	/* he is in nobody's count, and nobody finds the region after him */
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&mr->users));
	KUNIT_EXPECT_EQ(test, -EINVAL, check_key(test, mr->key, &w->pd.ibpd, 0, BUF_IOVA, 1));
	copier_end(&copier);
	expect_taken(test, &t);
	buf_mr_free(mr);
	exporter_exit(&x);
}

/* The same for who holds it for longer: a train in an inbox */
static void dmabuf_taken_back_while_held(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr, *user;
	struct exporter x;
	struct taker t = { .x = &x };

	exporter_init(test, &x, &exporter_moving, O_RDWR);
	mr = buf_mr(&x, 0, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(mr));
	user = sroce_mr_find(&w->table, mr->key, mr->ibmr.pd);
	KUNIT_ASSERT_PTR_EQ(test, mr, user);
	taker_begin(&t);
	while (READ_ONCE(mr->valid))
		cond_resched();
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&t.done, HZ / 10));
	KUNIT_EXPECT_EQ(test, x.maps, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->pd.recalls), 1);
	/* nobody becomes a user any more, not even to be told that it is invalid */
	KUNIT_EXPECT_PTR_EQ(test, NULL, sroce_mr_find(&w->table, mr->key, mr->ibmr.pd));
	sroce_mr_put(user);
	expect_taken(test, &t);
	buf_mr_free(mr);
	exporter_exit(&x);
}

/* --- many at once ------------------------------------------------------------------------- */

/**
 * struct reader - who copies while regions come and go, and are taken back
 * @w: world
 * @key: of the region that there is, or 0
 * @stop: the end
 * @hits: it had the region
 */
struct reader {
	struct memory_world *w;
	u32 key;
	bool stop;
	unsigned long hits;
};

static int reader_thread(void *arg)
{
	struct reader *r = arg;
	struct sroce_mr_uses *u;
	struct bio_vec bv;
	struct sroce_mr *mr;
	u32 done;

	while (!READ_ONCE(r->stop)) {
		cond_resched();
		local_bh_disable();
		u = sroce_mr_uses_begin();
		mr = sroce_mr_use(u, &r->w->table, READ_ONCE(r->key), &r->w->pd.ibpd,
				  IB_ACCESS_LOCAL_WRITE, BUF_IOVA, 64);
		if (!IS_ERR(mr)) {
			if (sroce_mr_bvecs(mr, BUF_IOVA, 64, &bv, 1, &done) == 1)
				memset(bvec_virt(&bv), 0x55, bv.bv_len);
			r->hits++;
		}
		sroce_mr_uses_end(u);
		local_bh_enable();
	}
	return 0;
}

static void dmabuf_race(struct kunit *test)
{
	struct reader r = { .w = test->priv };
	struct task_struct *task;
	struct sroce_mr *mr;
	struct exporter x;
	int i;

	exporter_init(test, &x, &exporter_moving, O_RDWR);
	task = kthread_create(reader_thread, &r, "sroce_reader");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	for (i = 0; i < 200; i++) {
		mr = buf_mr(&x, 0, PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, 0, sroce_dmabuf_publish(mr));
		WRITE_ONCE(r.key, mr->key);
		if (i % 8)
			usleep_range(10, 100);
		if (i & 1) {
			exporter_take_back(&x);
			/* nobody writes any more: not what the exporter does with it */
			memset(page_address(x.pages[0]), i, 64);
			usleep_range(10, 50);
			KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(page_address(x.pages[0]), i,
								   64));
		}
		buf_mr_free(mr);
	}
	WRITE_ONCE(r.stop, true);
	kthread_stop_put(task);
	KUNIT_EXPECT_GT(test, r.hits, 0);
	exporter_exit(&x);
}

/* --- where there are none -------------------------------------------------------------- */

/* Devices may see other data than processors do there: nobody's buffer is taken */
static void dmabuf_incoherent(struct kunit *test)
{
	struct exporter x;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU))
		kunit_skip(test, "devices are coherent here");
	exporter_init(test, &x, &exporter_still, O_RDWR);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			PTR_ERR_OR_ZERO(sroce_dmabuf_create(x.ibdev, x.buf, true)));
	KUNIT_EXPECT_EQ(test, x.most_maps, 0);
	exporter_exit(&x);
}

/* memory_world_exit() also comes after a test that was skipped */
static int dmabuf_init(struct kunit *test)
{
	int err = memory_world_init(test);

	if (!err && IS_ENABLED(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU))
		kunit_skip(test, "devices may not be coherent here");
	return err;
}

static struct kunit_case dmabuf_nowhere_cases[] = {
	KUNIT_CASE(dmabuf_incoherent),
	{}
};

static struct kunit_suite dmabuf_nowhere_suite = {
	.name = "sroce_memory_dmabuf_incoherent",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = dmabuf_nowhere_cases,
};

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(dmabuf_bytes),
	KUNIT_CASE(dmabuf_twice),
	KUNIT_CASE(dmabuf_refused),
	KUNIT_CASE(dmabuf_not_memory),
	KUNIT_CASE(dmabuf_awaits_writer),
	KUNIT_CASE(dmabuf_moves_first),
	KUNIT_CASE(dmabuf_taken_back),
	KUNIT_CASE(dmabuf_taken_back_in_use),
	KUNIT_CASE(dmabuf_taken_back_while_held),
	KUNIT_CASE(dmabuf_race),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "sroce_memory_dmabuf",
	.init = dmabuf_init,
	.exit = memory_world_exit,
	.test_cases = dmabuf_cases,
};

kunit_test_suites(&dmabuf_suite, &dmabuf_nowhere_suite);
