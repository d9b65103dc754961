// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where work runs: doorbells of processes, what is left of a QP for who still holds
 * it, and queues that are resized.
 */
#include "lock.h"
#include "tests/transport_pair.h"

/* --- doorbells ----------------------------------------------------------- */

/* As a process posts: RDMA WRITEs of nothing, without a doorbell */
static void post_quietly(struct side *s, u32 n)
{
	struct sroce_ring *r = &s->qp->req.ring;
	u32 prod = r->hdr->prod;
	struct sroce_send_wqe *wqe;
	u32 i;

	for (i = 0; i < n; i++) {
		wqe = sroce_ring_entry(r, prod + i);
		*wqe = (struct sroce_send_wqe){
			.opcode = SROCE_WR_RDMA_WRITE,
			.flags = SROCE_SEND_SIGNALED,
		};
	}
	/* Pairs with sroce_ring_pending() */
	smp_store_release(&r->hdr->prod, prod + n);
}

/*
 * A pair whose first side is a process that begins a batch, which only it ends. The
 * rings of its completion queues could be gone any moment (a resize): the doorbell
 * must not look there.
 */
static struct pair *batching(struct kunit *test)
{
	struct pair_config c = { .depth = 64 };
	struct pair *p = pair_create(test, &c);
	struct side *s = &p->side[0];
	struct sroce_ring_hdr *scq = s->scq.ring.hdr;
	struct sroce_ring_hdr *rcq = s->rcq.ring.hdr;

	s->qp->user = true;
	post_quietly(s, 32);
	s->scq.ring.hdr = NULL;
	s->rcq.ring.hdr = NULL;
	/* The timer would fire on this CPU */
	local_bh_disable();
	sroce_qp_doorbell(s->qp);
	hrtimer_try_to_cancel(&s->qp->req.batch.timer);
	local_bh_enable();
	s->scq.ring.hdr = scq;
	s->rcq.ring.hdr = rcq;
	KUNIT_ASSERT_TRUE(test, s->qp->req.batch.waiting);
	return p;
}

/* Who rings may have found the QP just before it is destroyed */
static void doorbell_of_dead(struct kunit *test)
{
	struct pair *p = batching(test);
	struct side *a = &p->side[0];
	struct sroce_qp *qp = a->qp;

	sroce_qp_hold(qp);
	a->qp = NULL;
	sroce_qp_destroy(qp);
	KUNIT_EXPECT_TRUE(test, qp->dead);
	sroce_qp_doorbell(qp);
	sroce_qp_doorbell(qp);
	sroce_qp_put(qp);
}

/* A doorbell ends the wait for more, and the work is done then */
static void doorbell_ends_batch(struct kunit *test)
{
	struct pair *p = batching(test);
	struct side *a = &p->side[0];
	struct ib_wc wc;
	int n;

	sroce_qp_doorbell(a->qp);
	KUNIT_EXPECT_TRUE(test, pair_wait(p, &a->scq, 32));
	for (n = 0; side_poll(&a->scq, &wc); n++)
		KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, 32, n);
	a->qp->user = false;
}

/* --- queues that are resized --------------------------------------------- */

/* What lies in a queue of a process that does not look */
static void fill_cq(struct side *s, u32 first, u32 n)
{
	struct sroce_cq *cq = &s->scq;
	struct sroce_cqe *cqe;
	u32 i;

	cq->ring.index = first + n;
	cq->cons = first;
	for (i = first; i != first + n; i++) {
		cqe = sroce_ring_entry(&cq->ring, i);
		*cqe = (struct sroce_cqe){ .wr_id = i, .qpn = 1 };
	}
}

static int resize(struct side *s, u32 entries)
{
	struct sroce_ring ring = {};
	int err;

	err = sroce_ring_alloc(&ring, entries, sizeof(struct sroce_cqe), false);
	if (err)
		return err;
	err = sroce_cq_resize(&s->scq, &ring);
	sroce_ring_free(&ring);
	return err;
}

/* Nothing is lost of what is moved in parts, wherever the indices are */
static void resize_in_parts(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 8192 };
	struct side *s = &pair_create(test, &c)->side[0];
	u32 first = U32_MAX - 3000;
	struct ib_wc wc;
	u32 i;

	fill_cq(s, first, 7000);
	KUNIT_EXPECT_EQ(test, -EINVAL, resize(s, 4096));
	KUNIT_EXPECT_EQ(test, 0, resize(s, 16384));
	KUNIT_EXPECT_EQ(test, 0, resize(s, 8192));
	for (i = 0; i < 7000; i++) {
		KUNIT_ASSERT_TRUE(test, side_poll(&s->scq, &wc));
		KUNIT_ASSERT_EQ(test, first + i, wc.wr_id);
	}
	side_expect_none(s);
}

/* A process may say anything about what it has consumed */
static void resize_for_liar(struct kunit *test)
{
	struct pair_config c = { .cq_depth = 8192 };
	struct side *s = &pair_create(test, &c)->side[0];
	struct sroce_cq *cq = &s->scq;

	cq->user = true;
	/* The kind of lock belongs to the kind of queue */
	sroce_lock_init(&cq->lock, true);
	fill_cq(s, 0, 100);
	cq->ring.hdr->cons = 101;
	KUNIT_EXPECT_EQ(test, -EINVAL, resize(s, 16384));
	cq->ring.hdr->cons = 100 - 8193;
	KUNIT_EXPECT_EQ(test, -EINVAL, resize(s, 16384));
	cq->ring.hdr->cons = 100 - 8192;
	KUNIT_EXPECT_EQ(test, 0, resize(s, 16384));
	KUNIT_EXPECT_EQ(test, 100, cq->ring.index);
	KUNIT_EXPECT_EQ(test, 100 - 8192, cq->ring.hdr->cons);
	cq->user = false;
	sroce_lock_init(&cq->lock, false);
	cq->cons = cq->ring.index;
}

static struct kunit_case run_cases[] = {
	KUNIT_CASE(doorbell_of_dead),
	KUNIT_CASE(doorbell_ends_batch),
	KUNIT_CASE(resize_in_parts),
	KUNIT_CASE(resize_for_liar),
	{}
};

static struct kunit_suite run_suite = {
	.name = "sroce_transport_run",
	.exit = pair_exit,
	.test_cases = run_cases,
};

kunit_test_suite(run_suite);
