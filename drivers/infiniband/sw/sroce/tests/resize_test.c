// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queues of processes that are resized: however much is in them, others get the
 * processor in between, and there is an end, also where there is always more in them.
 */
#include <kunit/test.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/preempt.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "lock.h"
#include "memory/ring.h"
#include "verbs/verbs.h"

/* What may be copied without letting softirqs run */
#define MOST SZ_128K

/**
 * struct guest - a softirq of this CPU, again and again, while a queue moves
 * @tasklet: it
 * @mem: memory of the queue in the beginning, held
 * @done: not any more
 */
struct guest {
	struct tasklet_struct tasklet;
	struct sroce_ring_mem *mem;
	bool done;
};

/* Whoever turns bottom halves on has it run, if anybody may then */
static void guest_begin(struct guest *g, struct sroce_ring_mem *mem,
			void (*run)(struct tasklet_struct *t))
{
	g->mem = mem;
	sroce_ring_mem_get(mem);
	tasklet_setup(&g->tasklet, run);
	migrate_disable();
	tasklet_schedule(&g->tasklet);
}

static void guest_end(struct guest *g)
{
	WRITE_ONCE(g->done, true);
	tasklet_kill(&g->tasklet);
	migrate_enable();
	sroce_ring_mem_put(g->mem);
}

/**
 * struct witness - sees a queue move
 * @guest: runs meanwhile
 * @ring: where the queue is in the beginning
 * @first: index of the first entry that is going to be copied
 * @n: number of those
 * @times: how often it ran
 *
 * It writes the number of its run into all entries, as the process may that has mapped
 * them. Entries that have the same number afterwards were copied without a break.
 */
struct witness {
	struct guest guest;
	struct sroce_ring ring;
	u32 first;
	u32 n;
	u64 times;
};

static void witness_run(struct tasklet_struct *t)
{
	struct witness *w = container_of(t, struct witness, guest.tasklet);
	u32 i;

	w->times++;
	/* wr_id comes first, in completions and in work requests */
	for (i = 0; i < w->n; i++)
		*(u64 *)sroce_ring_entry(&w->ring, w->first + i) = w->times;
	if (!READ_ONCE(w->guest.done))
		tasklet_schedule(t);
}

static void witness_begin(struct witness *w, const struct sroce_ring *ring,
			  u32 first, u32 n)
{
	BUILD_BUG_ON(offsetof(struct sroce_cqe, wr_id));
	BUILD_BUG_ON(offsetof(struct sroce_recv_wqe, wr_id));
	*w = (struct witness){ .ring = *ring, .first = first, .n = n };
	guest_begin(&w->guest, ring->mem, witness_run);
}

/* The most entries in a row that were copied without a break, in bytes */
static size_t longest(const struct witness *w, const struct sroce_ring *ring)
{
	u64 last = 0, times;
	u32 i, n = 0, most = 0;

	for (i = 0; i < w->n; i++) {
		times = *(u64 *)sroce_ring_entry(ring, w->first + i);
		n = times == last ? n + 1 : 1;
		last = times;
		most = max(most, n);
	}
	return (size_t)most * ring->stride;
}

/* A CQ that has @n entries, and another ring for it with as many */
static struct sroce_cq *cq_of_process(struct kunit *test, u32 n,
				      struct sroce_ring *next)
{
	struct sroce_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->user = true;
	KUNIT_ASSERT_EQ(test, 0, sroce_cq_init(cq, NULL, n));
	KUNIT_ASSERT_EQ(test, 0, sroce_ring_alloc(next, n, sizeof(struct sroce_cqe), true));
	return cq;
}

/* A process that says that it has consumed nothing since its last ring-full */
static void resize_cq_of_process(struct kunit *test)
{
	struct sroce_ring ring = {};
	struct witness w;
	struct sroce_cq *cq;
	u32 n = SZ_16K;
	int err;

	cq = cq_of_process(test, n, &ring);
	cq->ring.index = 100;
	cq->ring.hdr->cons = 100 - n;
	witness_begin(&w, &cq->ring, 100 - n, n);
	err = sroce_cq_resize(cq, &ring);
	guest_end(&w.guest);
	KUNIT_EXPECT_EQ(test, 0, err);
	KUNIT_EXPECT_LE(test, longest(&w, &cq->ring), MOST);
	sroce_ring_free(&ring);
	sroce_cq_cleanup(cq);
}

/*
 * A process that is being killed does not go on copying. A queue that would be filled as
 * fast as it is copied might keep its device for ever.
 */
static void resize_cq_is_killed(struct kunit *test)
{
	struct sroce_ring ring = {};
	struct sroce_ring_hdr *hdr;
	struct sroce_cq *cq;
	u32 n = SZ_16K;

	cq = cq_of_process(test, n, &ring);
	cq->ring.index = n;
	hdr = cq->ring.hdr;
	allow_kernel_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
	KUNIT_EXPECT_EQ(test, -EINTR, sroce_cq_resize(cq, &ring));
	disallow_signal(SIGKILL);
	KUNIT_EXPECT_PTR_EQ(test, hdr, cq->ring.hdr);
	KUNIT_EXPECT_EQ(test, 0, sroce_cq_resize(cq, &ring));
	KUNIT_EXPECT_PTR_NE(test, hdr, cq->ring.hdr);
	sroce_ring_free(&ring);
	sroce_cq_cleanup(cq);
}

/* Whoever does not get the answer knows from the arm word, which goes along */
static void resize_cq_tells(struct kunit *test)
{
	struct sroce_ring ring = {};
	struct sroce_cq *cq = cq_of_process(test, SZ_16, &ring);

	cq->ring.hdr->flags = SROCE_CQ_ARM_SOLICITED;
	KUNIT_EXPECT_EQ(test, 0, sroce_cq_resize(cq, &ring));
	KUNIT_EXPECT_EQ(test, SROCE_CQ_MOVED, ring.hdr->flags);
	KUNIT_EXPECT_EQ(test, SROCE_CQ_ARM_SOLICITED, cq->ring.hdr->flags);
	sroce_ring_free(&ring);
	sroce_cq_cleanup(cq);
}

/* --- queues that are filled as fast as they are copied ---------------------------- */

/**
 * struct filler - keeps a queue full
 * @guest: runs meanwhile
 * @lock: of the queue
 * @ring: of the queue
 * @theirs: the process's index in its memory in the beginning
 * @part: so much is consumed and added each time, which is what is copied at a time
 * @until: in jiffies: should the resize have no end, this has
 */
struct filler {
	struct guest guest;
	spinlock_t *lock;
	struct sroce_ring *ring;
	u32 *theirs;
	u32 part;
	unsigned long until;
};

static void filler_run(struct tasklet_struct *t)
{
	struct filler *f = container_of(t, struct filler, guest.tasklet);

	spin_lock(f->lock);
	f->ring->index += f->part;
	WRITE_ONCE(*f->theirs, *f->theirs + f->part);
	spin_unlock(f->lock);
	if (!READ_ONCE(f->guest.done) && time_before(jiffies, f->until))
		tasklet_schedule(t);
}

/* The resize turns bottom halves on after each part, and then it runs */
static void filler_begin(struct filler *f, spinlock_t *lock, struct sroce_ring *ring,
			 u32 *theirs, u32 part)
{
	*f = (struct filler){
		.lock = lock,
		.ring = ring,
		.theirs = theirs,
		.part = part,
		.until = jiffies + 20 * HZ,
	};
	guest_begin(&f->guest, ring->mem, filler_run);
}

/* The queue stays where it is, and can be resized later, when it is not filled any more */
static void resize_cq_that_is_filled(struct kunit *test)
{
	struct sroce_ring ring = {};
	struct sroce_ring_hdr *hdr;
	struct sroce_cq *cq;
	struct filler f;
	u32 n = SZ_16K;
	int err;

	cq = cq_of_process(test, n, &ring);
	cq->ring.index = n;
	hdr = cq->ring.hdr;
	filler_begin(&f, &cq->lock, &cq->ring, &hdr->cons, 1024);
	err = sroce_cq_resize(cq, &ring);
	guest_end(&f.guest);
	KUNIT_EXPECT_EQ(test, -EBUSY, err);
	KUNIT_EXPECT_PTR_EQ(test, hdr, cq->ring.hdr);
	KUNIT_EXPECT_EQ(test, n, cq->ring.index - hdr->cons);
	KUNIT_EXPECT_EQ(test, 0, sroce_cq_resize(cq, &ring));
	KUNIT_EXPECT_PTR_NE(test, hdr, cq->ring.hdr);
	KUNIT_EXPECT_EQ(test, n, cq->ring.index - cq->ring.hdr->cons);
	sroce_ring_free(&ring);
	sroce_cq_cleanup(cq);
}

static struct sroce_srq_obj *srq_of_process(struct kunit *test, u32 n, u32 max_sge)
{
	struct sroce_srq_obj *obj = kunit_kzalloc(test, sizeof(*obj), GFP_KERNEL);
	struct sroce_srq *srq;

	KUNIT_ASSERT_NOT_NULL(test, obj);
	srq = &obj->srq;
	mutex_init(&obj->lock);
	sroce_lock_init(&srq->lock, true);
	srq->user = true;
	srq->max_sge = max_sge;
	KUNIT_ASSERT_EQ(test, 0, sroce_ring_alloc(&srq->ring, n,
						  sizeof(struct sroce_recv_wqe) +
						  max_sge * sizeof(struct sroce_sge), true));
	srq->ring.hdr->prod = n;
	return obj;
}

static void resize_srq_that_is_filled(struct kunit *test)
{
	struct ib_srq_attr attr = { .max_wr = SZ_8K };
	struct sroce_srq *srq = &srq_of_process(test, SZ_4K, 1)->srq;
	struct sroce_ring_hdr *hdr = srq->ring.hdr;
	struct filler f;
	int err;

	filler_begin(&f, &srq->lock, &srq->ring, &hdr->prod, 128);
	err = sroce_ib_modify_srq(&srq->ibsrq, &attr, IB_SRQ_MAX_WR, NULL);
	guest_end(&f.guest);
	KUNIT_EXPECT_EQ(test, -EBUSY, err);
	KUNIT_EXPECT_PTR_EQ(test, hdr, srq->ring.hdr);
	KUNIT_EXPECT_EQ(test, SZ_4K, sroce_ring_pending(&srq->ring));
	err = sroce_ib_modify_srq(&srq->ibsrq, &attr, IB_SRQ_MAX_WR, NULL);
	KUNIT_EXPECT_EQ(test, 0, err);
	KUNIT_EXPECT_EQ(test, SZ_8K, sroce_ring_entries(&srq->ring));
	KUNIT_EXPECT_EQ(test, SZ_4K, sroce_ring_pending(&srq->ring));
	sroce_ring_free(&srq->ring);
}

/* As the first one, by a full queue. That nothing is to be mapped makes no difference here */
static void resize_srq_of_process(struct kunit *test)
{
	struct ib_srq_attr attr = { .max_wr = SZ_8K };
	struct sroce_srq *srq = &srq_of_process(test, SZ_4K, SROCE_MAX_SGE - 1)->srq;
	struct witness w;
	int err;

	witness_begin(&w, &srq->ring, 0, SZ_4K);
	err = sroce_ib_modify_srq(&srq->ibsrq, &attr, IB_SRQ_MAX_WR, NULL);
	guest_end(&w.guest);
	KUNIT_EXPECT_EQ(test, 0, err);
	KUNIT_EXPECT_EQ(test, SZ_8K, sroce_ring_entries(&srq->ring));
	KUNIT_EXPECT_LE(test, longest(&w, &srq->ring), MOST);
	sroce_ring_free(&srq->ring);
}

static struct kunit_case resize_cases[] = {
	KUNIT_CASE(resize_cq_of_process),
	KUNIT_CASE(resize_cq_is_killed),
	KUNIT_CASE(resize_cq_tells),
	KUNIT_CASE(resize_cq_that_is_filled),
	KUNIT_CASE(resize_srq_that_is_filled),
	KUNIT_CASE(resize_srq_of_process),
	{}
};

static struct kunit_suite resize_suite = {
	.name = "sroce_resize",
	.test_cases = resize_cases,
};

kunit_test_suite(resize_suite);
