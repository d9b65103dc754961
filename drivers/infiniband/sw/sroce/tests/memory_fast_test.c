// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions that are registered by work requests: what may be in one, and an invalidation
 * that waits for whoever copies.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/scatterlist.h>

#include "memory/internal.h"
#include "memory/mr.h"
#include "tests/memory_world.h"
#include "verbs/verbs.h"

static void fast_register(struct kunit *test)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096);
	u32 old = mr->key, key = mr->key ^ 0x5a;

	KUNIT_EXPECT_EQ(test, check_key(test, old, &w->pd.ibpd, 0, 0, 8), -EINVAL);
	/* not valid yet: nothing to invalidate */
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, old, &w->pd.ibpd, &w->qp, false),
			-EINVAL);

	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->other_pd.ibpd, key, access),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key ^ 0x100, access),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key, IB_ACCESS_REMOTE_WRITE),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key, IB_ACCESS_REMOTE_ATOMIC),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key, access | BIT(15)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key, access | IB_ACCESS_ON_DEMAND),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, 0, 0, 8), -EINVAL);

	/* the consumer may choose another address after mapping (xprtrdma) */
	mr->ibmr.iova = 0x500000000;
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key, access), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, access, 0x500000000, 8),
			0);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, 0, 0, 8), -ERANGE);
	KUNIT_EXPECT_EQ(test, check_key(test, old, &w->pd.ibpd, 0, 0x500000000, 8),
			-EINVAL);
	/* valid already */
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key, access),
			-EINVAL);
}

/* As initiators map: in units of 4 KiB where pages are larger, which here are a quarter */
static void fast_register_in_parts(struct kunit *test)
{
	const u32 unit = PAGE_SIZE / 4, skew = 100;
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096);
	u8 *page = page_address(w->pages[0]);
	struct scatterlist sg[2];
	struct bio_vec bv[2];
	u32 done;

	mr->staged = kunit_kcalloc(test, mr->max_blocks, sizeof(*mr->staged), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr->staged);
	sg_init_table(sg, 2);
	/* From the middle of the second quarter to the end of the third, and the first one */
	sg_set_buf(&sg[0], page + unit + skew, 2 * unit - skew);
	sg_set_buf(&sg[1], page, unit);
	sg[0].dma_address = (uintptr_t)sg_virt(&sg[0]);
	sg[1].dma_address = (uintptr_t)sg_virt(&sg[1]);
	sg_dma_len(&sg[0]) = sg[0].length;
	sg_dma_len(&sg[1]) = sg[1].length;
	mr->ibmr.page_size = unit;
	KUNIT_EXPECT_EQ(test, 2, sroce_ib_map_mr_sg(&mr->ibmr, sg, 2, NULL));
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_register(mr, &w->pd.ibpd, mr->key,
						   IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_EQ(test, 3 * unit - skew, mr->length);
	KUNIT_EXPECT_EQ(test, 2, sroce_mr_bvecs(mr, mr->iova, mr->length, bv, 2, &done));
	KUNIT_EXPECT_EQ(test, done, mr->length);
	KUNIT_EXPECT_PTR_EQ(test, bvec_virt(&bv[0]), (void *)(page + unit + skew));
	KUNIT_EXPECT_EQ(test, bv[0].bv_len, 2 * unit - skew);
	KUNIT_EXPECT_PTR_EQ(test, bvec_virt(&bv[1]), (void *)page);
	mr->staged = NULL;
}

/* --- gaps ------------------------------------------------------------------------ */

#define GAP_BLOCKS 6

/* A region of blocks that have any length and begin anywhere */
static struct sroce_mr *gap_mr(struct kunit *test)
{
	struct sroce_mr *mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096);

	mr->staged = kunit_kcalloc(test, mr->max_blocks, sizeof(*mr->staged), GFP_KERNEL);
	mr->ends = kunit_kcalloc(test, 2 * mr->max_blocks, sizeof(*mr->ends), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr->staged);
	KUNIT_ASSERT_NOT_NULL(test, mr->ends);
	mr->ibmr.page_size = SZ_4K;
	return mr;
}

static void gap_element(struct scatterlist *sg, void *at, unsigned int len)
{
	sg_set_buf(sg, at, len);
	sg->dma_address = (uintptr_t)at;
	sg_dma_len(sg) = len;
}

static void gap_list(struct kunit *test, struct scatterlist *sg)
{
	static const struct { unsigned int offset, len; } blocks[GAP_BLOCKS] = {
		{ 100, 1000 }, { 3, 1 }, { 512, 0 }, { 4095, 1 }, { 0, 4096 }, { 77, 1234 },
	};
	struct memory_world *w = test->priv;
	int i;

	sg_init_table(sg, GAP_BLOCKS);
	for (i = 0; i < GAP_BLOCKS; i++)
		gap_element(&sg[i], page_address(w->pages[i]) + blocks[i].offset, blocks[i].len);
}

/* Where the byte of an offset is, told by the list itself */
static void *gap_at(const struct scatterlist *sg, u64 offset)
{
	for (; offset >= sg->length; sg++)
		offset -= sg->length;
	return sg_virt((struct scatterlist *)sg) + offset;
}

static void gap_expect(struct kunit *test, const struct sroce_mr *mr,
		       const struct scatterlist *sg, u64 first, u64 offset, u32 len)
{
	struct bio_vec bv[GAP_BLOCKS];
	u32 done, sum = 0, at;
	unsigned int n, i;

	n = sroce_mr_bvecs(mr, mr->iova + offset, len, bv, GAP_BLOCKS, &done);
	KUNIT_EXPECT_EQ(test, done, len);
	for (i = 0; i < n; i++)
		for (at = 0; at < bv[i].bv_len; at++, sum++)
			if (bvec_virt(&bv[i]) + at != gap_at(sg, first + offset + sum))
				break;
	KUNIT_EXPECT_EQ_MSG(test, sum, len, "%u bytes at %llu", len, offset);
}

static void fast_gaps(struct kunit *test)
{
	const u32 total = 1000 + 1 + 1 + 4096 + 1234;
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = gap_mr(test);
	struct scatterlist sg[GAP_BLOCKS];
	static const u32 at[] = { 0, 1, 500, 999, 1000, 1001, 1002, 1003, 5097, 5098, 6331 };
	unsigned int i, skip = 10;
	struct bio_vec bv[2];
	u32 done;

	gap_list(test, sg);
	KUNIT_EXPECT_EQ(test, GAP_BLOCKS, sroce_ib_map_mr_sg(&mr->ibmr, sg, GAP_BLOCKS, NULL));
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_register(mr, &w->pd.ibpd, mr->key,
						   IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_EQ(test, total, mr->length);
	KUNIT_EXPECT_EQ(test, mr->iova, sg_dma_address(&sg[0]));
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		gap_expect(test, mr, sg, 0, at[i], 1);
		gap_expect(test, mr, sg, 0, at[i], total - at[i]);
		if (at[i] + 1200 < total)
			gap_expect(test, mr, sg, 0, at[i], 1200);
	}
	/* no more than there is room for */
	KUNIT_EXPECT_EQ(test, 2, sroce_mr_bvecs(mr, mr->iova, total, bv, 2, &done));
	KUNIT_EXPECT_EQ(test, 1001, done);
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_bvecs(mr, mr->iova + total, 1, bv, 2, &done));
	KUNIT_EXPECT_EQ(test, 0, done);
	KUNIT_EXPECT_EQ(test, -ERANGE, check_key(test, mr->key, &w->pd.ibpd, IB_ACCESS_REMOTE_READ,
						 mr->iova, total + 1));

	/* the next one is mapped while this one is in use; it begins within an element */
	KUNIT_EXPECT_EQ(test, 2, sroce_ib_map_mr_sg(&mr->ibmr, sg + 4, 2, &skip));
	KUNIT_EXPECT_EQ(test, 0, skip);
	gap_expect(test, mr, sg, 0, 0, total);
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_invalidate(&w->table, mr->key, &w->pd.ibpd, &w->qp,
						     true));
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_register(mr, &w->pd.ibpd, mr->key,
						   IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_EQ(test, 4096 - 10 + 1234, mr->length);
	gap_expect(test, mr, sg + 4, 10, 0, 4096 - 10 + 1234);
	mr->staged = NULL;
	mr->ends = NULL;
}

/* What is left out is told; nothing is cut */
static void fast_gaps_full(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = gap_mr(test);
	struct scatterlist sg[MAX_PAGES + 2];
	unsigned int too_far = 65;
	int i;

	sg_init_table(sg, ARRAY_SIZE(sg));
	for (i = 0; i < ARRAY_SIZE(sg); i++)
		gap_element(&sg[i], page_address(w->pages[i % MAX_PAGES]) + i, 64);
	KUNIT_EXPECT_EQ(test, MAX_PAGES, sroce_ib_map_mr_sg(&mr->ibmr, sg, ARRAY_SIZE(sg), NULL));
	KUNIT_EXPECT_EQ(test, MAX_PAGES * 64, mr->ibmr.length);
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_ib_map_mr_sg(&mr->ibmr, sg, 1, &too_far));
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_ib_map_mr_sg(&mr->ibmr, sg, 0, NULL));
	mr->staged = NULL;
	mr->ends = NULL;
}

/**
 * struct gap_reader - who uses a region that its owner registers anew
 * @mr: region
 * @stop: the end
 * @turns: looks at it
 * @wrong: a block had the length of another one
 */
struct gap_reader {
	struct sroce_mr *mr;
	bool stop;
	unsigned long turns;
	unsigned long wrong;
};

static int gap_reader_thread(void *arg)
{
	struct gap_reader *r = arg;
	struct bio_vec bv[8];
	unsigned int n;
	u32 done;

	for (; !READ_ONCE(r->stop); r->turns++) {
		cond_resched();
		local_bh_disable();
		n = sroce_mr_bvecs(r->mr, 0x1000, 64, bv, ARRAY_SIZE(bv), &done);
		while (n--)
			r->wrong += bv[n].bv_offset + bv[n].bv_len > PAGE_SIZE;
		local_bh_enable();
	}
	return 0;
}

/* Elements of whole pages, or what is at the end of each page */
static void gap_again(struct kunit *test, struct sroce_mr *mr, bool whole)
{
	struct memory_world *w = test->priv;
	struct scatterlist sg[8];
	int i;

	sg_init_table(sg, 8);
	for (i = 0; i < 8; i++)
		gap_element(&sg[i], page_address(w->pages[i]) + (whole ? 0 : PAGE_SIZE - 16),
			    whole ? PAGE_SIZE : 16);
	KUNIT_EXPECT_EQ(test, 8, sroce_ib_map_mr_sg(&mr->ibmr, sg, 8, NULL));
	mr->ibmr.iova = 0x1000;
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_register(mr, &w->pd.ibpd, mr->key, 0));
	udelay(1);
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_invalidate(&w->table, mr->key, &w->pd.ibpd, &w->qp,
						     false));
}

/* Its owner does not wait until nobody uses it any more */
static void fast_gaps_changed_in_use(struct kunit *test)
{
	struct gap_reader r = { .mr = gap_mr(test) };
	unsigned long end = jiffies + HZ;
	struct task_struct *task;
	unsigned int i;

	task = kthread_create(gap_reader_thread, &r, "sroce_reader");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	for (i = 0; time_before(jiffies, end) || !READ_ONCE(r.turns); i++) {
		gap_again(test, r.mr, i & 1);
		cond_resched();
	}
	WRITE_ONCE(r.stop, true);
	kthread_stop_put(task);
	KUNIT_EXPECT_EQ(test, 0, r.wrong);
	r.mr->staged = NULL;
	r.mr->ends = NULL;
}

#define THIN 300

/* How many of @n elements are taken, of which the first @first have @len bytes, others @rest */
static int gap_lengths(struct kunit *test, struct sroce_mr *mr, struct scatterlist *sg, int n,
		       int first, unsigned int len, unsigned int rest)
{
	struct memory_world *w = test->priv;
	int i;

	sg_init_table(sg, n);
	for (i = 0; i < n; i++)
		gap_element(&sg[i], page_address(w->pages[i % MAX_PAGES]),
			    i < first ? len : rest);
	return sroce_ib_map_mr_sg(&mr->ibmr, sg, n, NULL);
}

static int gap_thin(struct kunit *test, struct sroce_mr *mr, struct scatterlist *sg, int n,
		    int thick, unsigned int len)
{
	return gap_lengths(test, mr, sg, n, thick, 4096, len);
}

static int gap_thin_then(struct kunit *test, struct sroce_mr *mr, struct scatterlist *sg, int thin,
			 unsigned int len, unsigned int rest)
{
	return gap_lengths(test, mr, sg, THIN, thin, len, rest);
}

/* Elements of which a packet would be in more than are gathered at once are left out */
static void fast_gaps_thin(struct kunit *test)
{
	struct sroce_mr *mr = gap_mr(test);
	u32 max_blocks = mr->max_blocks;
	struct scatterlist *sg;

	sg = kunit_kcalloc(test, THIN, sizeof(*sg), GFP_KERNEL);
	mr->staged = kunit_kcalloc(test, THIN, sizeof(*mr->staged), GFP_KERNEL);
	mr->ends = kunit_kcalloc(test, 2 * THIN, sizeof(*mr->ends), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sg);
	KUNIT_ASSERT_NOT_NULL(test, mr->staged);
	KUNIT_ASSERT_NOT_NULL(test, mr->ends);
	mr->max_blocks = THIN;
	KUNIT_EXPECT_EQ(test, THIN, gap_thin(test, mr, sg, THIN, 0, 33));
	/* A short list is gathered at once, and initiators do not get over one that is refused */
	KUNIT_EXPECT_EQ(test, SROCE_MR_GAP_FREE,
			gap_thin(test, mr, sg, SROCE_MR_GAP_FREE, 0, 1));
	KUNIT_EXPECT_EQ(test, SROCE_MR_GAP_FREE, gap_thin(test, mr, sg, THIN, 0, 32));
	KUNIT_EXPECT_EQ(test, SROCE_MR_GAP_FREE, mr->nr_staged);
	/* Of the first ones a packet would be in too many, if not of the last ones */
	KUNIT_EXPECT_EQ(test, SROCE_MR_GAP_FREE,
			gap_thin_then(test, mr, sg, SROCE_MR_GAP_FREE, 1, 4096));
	KUNIT_EXPECT_EQ(test, 100 + SROCE_MR_GAP_RUN - 1,
			gap_thin(test, mr, sg, THIN, 100, 1));
	mr->max_blocks = max_blocks;
	mr->staged = NULL;
	mr->ends = NULL;
}

/* An atomic on a word whose bytes are in blocks of their own */
static void fast_gaps_atomic(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = gap_mr(test);
	struct scatterlist sg[8];
	u64 value = 0;
	int i;

	sg_init_table(sg, 8);
	for (i = 0; i < 8; i++)
		gap_element(&sg[i], page_address(w->pages[i]) + 3 * i, 1);
	KUNIT_EXPECT_EQ(test, 8, sroce_ib_map_mr_sg(&mr->ibmr, sg, 8, NULL));
	mr->ibmr.iova = 0x1000;
	KUNIT_EXPECT_EQ(test, 0, sroce_mr_register(mr, &w->pd.ibpd, mr->key, 0));
	KUNIT_EXPECT_TRUE(test, sroce_mr_atomic_write(mr, 0x1000, 0x1122334455667788));
	KUNIT_EXPECT_TRUE(test, sroce_mr_atomic(mr, 0x1000, false, 0, 1, &value));
	KUNIT_EXPECT_EQ(test, 0x1122334455667788, value);
	for (i = 0; i < 8; i++)
		((u8 *)&value)[i] = *(u8 *)sg_virt(&sg[i]);
	KUNIT_EXPECT_EQ(test, 0x1122334455667789, value);
	mr->staged = NULL;
	mr->ends = NULL;
}

static void fast_invalidate(struct kunit *test)
{
	const int access = IB_ACCESS_REMOTE_READ;
	struct memory_world *w = test->priv;
	struct sroce_mr *mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096);
	u32 key = mr->key;

	KUNIT_ASSERT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key, access), 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 1, &w->pd.ibpd, &w->qp, false),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 0x100, &w->pd.ibpd, &w->qp,
						  false), -EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key, &w->other_pd.ibpd, &w->qp, false),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, access, 0, 8), 0);

	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key, &w->pd.ibpd, &w->qp, true),
			0);
	KUNIT_EXPECT_EQ(test, check_key(test, key, &w->pd.ibpd, access, 0, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key, &w->pd.ibpd, &w->qp, true),
			-EINVAL);

	/* again, without a right for the peer */
	KUNIT_EXPECT_EQ(test, sroce_mr_register(mr, &w->pd.ibpd, key ^ 0xff, 0), 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 0xff, &w->pd.ibpd, &w->qp, true),
			-EACCES);
	KUNIT_EXPECT_EQ(test, check_key(test, key ^ 0xff, &w->pd.ibpd, 0, 0, 8), 0);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, key ^ 0xff, &w->pd.ibpd, &w->qp,
						  false), 0);
	KUNIT_EXPECT_EQ(test, check_key(test, key ^ 0xff, &w->pd.ibpd, 0, 0, 8), -EINVAL);
}

/**
 * struct registrar - who registers a region for its next life
 * @w: world
 * @mr: region
 * @key: its next key
 * @here: it has begun
 * @go: it may register
 * @goes: it has seen that
 * @done: it has registered
 * @err: what came of it
 */
struct registrar {
	struct memory_world *w;
	struct sroce_mr *mr;
	u32 key;
	struct completion here;
	bool go, goes;
	struct completion done;
	int err;
};

static int registrar_thread(void *arg)
{
	struct registrar *r = arg;

	complete(&r->here);
	while (!READ_ONCE(r->go))
		cpu_relax();
	WRITE_ONCE(r->goes, true);
	r->err = sroce_mr_register(r->mr, &r->w->pd.ibpd, r->key,
				   IB_ACCESS_REMOTE_READ);
	complete(&r->done);
	return 0;
}

/*
 * A peer invalidates the key of a region's last life while the region is registered
 * for the next. Had it seen the old key, and then the new life, it would end that: so
 * there is no new life as long as it looks.
 */
static void fast_register_waits(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct registrar r = {
		.w = w,
		.mr = new_mr(test, SROCE_MR_FAST_REG, 0, 0, 4096),
	};
	u32 old = r.mr->key;
	struct task_struct *task;
	bool valid;
	int i;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two processors");
	r.key = old ^ 1;
	init_completion(&r.here);
	init_completion(&r.done);
	KUNIT_ASSERT_EQ(test, 0, sroce_mr_register(r.mr, &w->pd.ibpd, old,
						   IB_ACCESS_REMOTE_READ));
	KUNIT_ASSERT_EQ(test, 0, sroce_mr_invalidate(&w->table, old, &w->pd.ibpd,
						     &w->qp, true));
	task = kthread_create(registrar_thread, &r, "sroce_registrar");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	wait_for_completion(&r.here);
	/* as the peer's invalidation does it */
	spin_lock_bh(&r.mr->lock);
	WRITE_ONCE(r.go, true);
	/* Its processor may be a thread of another machine, which has others to run */
	for (i = 0; i < 1000 && !READ_ONCE(r.goes); i++)
		mdelay(1);
	mdelay(20);
	valid = READ_ONCE(r.mr->valid);
	spin_unlock_bh(&r.mr->lock);
	KUNIT_EXPECT_FALSE(test, valid);
	wait_for_completion(&r.done);
	kthread_stop_put(task);
	KUNIT_EXPECT_EQ(test, r.err, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, sroce_mr_invalidate(&w->table, old, &w->pd.ibpd,
							   &w->qp, true));
	KUNIT_EXPECT_EQ(test, check_key(test, r.key, &w->pd.ibpd, IB_ACCESS_REMOTE_READ, 0,
					8), 0);
}

/* Neither is possible with a region of another kind */
static void fast_other_kinds(struct kunit *test)
{
	struct memory_world *w = test->priv;
	struct sroce_mr *user = new_user_mr(test, IB_ACCESS_REMOTE_READ, 0, 0, 8);
	struct sroce_mr *fresh = new_mr(test, SROCE_MR_USER, 0, 0, 8);
	struct sroce_mr *dma = new_dma_mr(test, IB_ACCESS_REMOTE_READ);

	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, user->key, &w->pd.ibpd, &w->qp, true),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_invalidate(&w->table, dma->key, &w->pd.ibpd, &w->qp, false),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, sroce_mr_register(fresh, &w->pd.ibpd, fresh->key, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, check_key(test, user->key, &w->pd.ibpd, 0, 0, 8), 0);
}

static struct kunit_case fast_cases[] = {
	KUNIT_CASE(fast_register),
	KUNIT_CASE(fast_register_in_parts),
	KUNIT_CASE(fast_gaps),
	KUNIT_CASE(fast_gaps_full),
	KUNIT_CASE(fast_gaps_changed_in_use),
	KUNIT_CASE(fast_gaps_thin),
	KUNIT_CASE(fast_gaps_atomic),
	KUNIT_CASE(fast_invalidate),
	KUNIT_CASE(fast_register_waits),
	KUNIT_CASE(fast_other_kinds),
	{}
};

static struct kunit_suite fast_suite = {
	.name = "sroce_memory_fast",
	.init = memory_world_init,
	.exit = memory_world_exit,
	.test_cases = fast_cases,
};

kunit_test_suite(fast_suite);
