// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receives that are posted in hard interrupts, as a target whose disk has completed a
 * request does: to shared receive queues and to QPs, and what such locks mean for the
 * queues of processes.
 */
#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mman.h>
#include <linux/resource.h>

#include "device.h"
#include "tests/transport_pair.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

#define SRC 0
#define DST 65536
#define LEN 10
#define RECEIVES 300

/* On a machine that may be slow, and stand still */
#define LONG (60 * HZ)

/**
 * struct interrupts - a hard interrupt, so many times
 * @timer: it
 * @s: whose QP or shared receive queue
 * @each: what it does; by its return value, was it done?
 * @left: how often it is still to be done
 */
struct interrupts {
	struct hrtimer timer;
	struct side *s;
	bool (*each)(struct side *s);
	atomic_t left;
};

static enum hrtimer_restart interrupted(struct hrtimer *timer)
{
	struct interrupts *in = container_of(timer, struct interrupts, timer);

	if (in->each(in->s) && atomic_dec_and_test(&in->left))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, us_to_ktime(30));
	return HRTIMER_RESTART;
}

static struct interrupts *interrupts_begin(struct kunit *test, struct side *s,
					   bool (*each)(struct side *s), int n)
{
	struct interrupts *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, in);
	in->s = s;
	in->each = each;
	atomic_set(&in->left, n);
	hrtimer_setup(&in->timer, interrupted, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&in->timer, us_to_ktime(30), HRTIMER_MODE_REL_HARD);
	return in;
}

static void interrupts_end(struct kunit *test, struct interrupts *in)
{
	unsigned long end = jiffies + LONG;

	while (atomic_read(&in->left) && time_before(jiffies, end))
		usleep_range(50, 100);
	hrtimer_cancel(&in->timer);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&in->left));
}

/* As a kernel user does, whatever the queue */
static bool post_recv(struct side *s)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)s->mem + DST, .length = LEN, .lkey = s->mr->key,
	};
	struct ib_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	if (s->pair->config.srq)
		return !sroce_ib_post_srq_recv(&s->srq.ibsrq, &wr, &bad);
	return !sroce_qp_post_recv(s->qp, &wr, &bad);
}

static bool post_send(struct side *s)
{
	struct work w;

	return !side_try_post(s, work_send(s, &w, 1, SRC, LEN));
}

static u32 poll_all(struct kunit *test, struct sroce_cq *cq)
{
	struct ib_wc wc;
	u32 n = 0;

	for (; side_poll(cq, &wc); n++)
		KUNIT_ASSERT_EQ(test, IB_WC_SUCCESS, wc.status);
	return n;
}

/* An interrupt posts receives, and its user does as well, while messages take them */
static void post_both(struct kunit *test, bool srq)
{
	struct pair_config c = { .direct = true, .srq = srq };
	struct pair *p = pair_create(test, &c);
	struct side *a = &p->side[0], *b = &p->side[1];
	struct interrupts *in = interrupts_begin(test, b, post_recv, RECEIVES);
	unsigned long end = jiffies + LONG;
	u32 posted = 0, sent = 0, received = 0, i;

	for (i = 1; received < 2 * RECEIVES && time_before(jiffies, end); i++) {
		if (posted < RECEIVES && post_recv(b))
			posted++;
		/* Never more than there are receives for, nor than the queues take */
		if (sent < posted + RECEIVES - atomic_read(&in->left) &&
		    post_send(a))
			sent++;
		poll_all(test, &a->scq);
		received += poll_all(test, &b->rcq);
		/* Others, the tasklet among them, want the processor as well */
		if (!(i % 16))
			usleep_range(50, 100);
	}
	interrupts_end(test, in);
	KUNIT_EXPECT_EQ(test, RECEIVES, posted);
	KUNIT_EXPECT_EQ(test, 2 * RECEIVES, received);
}

static void recv_posted_in_interrupts(struct kunit *test)
{
	post_both(test, false);
}

static void srq_posted_in_interrupts(struct kunit *test)
{
	post_both(test, true);
}

/* --- locks ------------------------------------------------------------------- */

static struct sroce_srq_obj *srq_make(struct kunit *test, struct sroce_device *dev,
				      struct ib_udata *udata, int expect)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = SROCE_MAX_SRQ_WR, .max_sge = SROCE_MAX_SGE },
	};
	struct sroce_srq_obj *obj = kunit_kzalloc(test, sizeof(*obj), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, obj);
	obj->srq.ibsrq.device = &dev->ibdev;
	KUNIT_ASSERT_EQ(test, expect, sroce_ib_create_srq(&obj->srq.ibsrq, &init, udata));
	return obj;
}

/*
 * Only a process that has opened the device can have a mapping of a queue. This one
 * has no right to so much memory either; the queue that it does not get has its lock.
 */
static struct sroce_srq_obj *srq_of_process(struct kunit *test, struct sroce_device *dev)
{
	struct cred *cred = prepare_creds();
	struct ib_udata udata = { .inlen = sizeof(struct sroce_create_srq_req) };
	const struct cred *mine;
	struct sroce_srq_obj *obj;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	udata.inbuf = (void __user *)kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
						   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	atomic64_add(rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT, &current->mm->pinned_vm);
	mine = override_creds(cred);
	obj = srq_make(test, dev, &udata, -ENOMEM);
	revert_creds(mine);
	put_cred(cred);
	return obj;
}

struct in_interrupt {
	struct hrtimer timer;
	struct ib_srq *ibsrq;
	int err;
	bool done;
};

static enum hrtimer_restart post_in_interrupt(struct hrtimer *timer)
{
	struct in_interrupt *in = container_of(timer, struct in_interrupt, timer);
	const struct ib_recv_wr *bad, wr = {};

	in->err = sroce_ib_post_srq_recv(in->ibsrq, &wr, &bad);
	WRITE_ONCE(in->done, true);
	return HRTIMER_NORESTART;
}

/* Interrupts take the locks of kernel users' queues, and never those of processes' */
static void srq_locks_of_two_kinds(struct kunit *test)
{
	struct sroce_srq_obj *of_kernel, *of_process;
	struct sroce_device *dev;
	struct ib_srq_attr attr;
	struct in_interrupt *in;

	if (!IS_ENABLED(CONFIG_LOCKDEP))
		kunit_skip(test, "needs lockdep");
	dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, dev && in);
	of_process = srq_of_process(test, dev);
	of_kernel = srq_make(test, dev, NULL, 0);
	in->ibsrq = &of_kernel->srq.ibsrq;
	sroce_ib_query_srq(&of_process->srq.ibsrq, &attr);
	sroce_ib_query_srq(in->ibsrq, &attr);
	hrtimer_setup(&in->timer, post_in_interrupt, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&in->timer, us_to_ktime(30), HRTIMER_MODE_REL_HARD);
	while (!READ_ONCE(in->done))
		usleep_range(50, 100);
	hrtimer_cancel(&in->timer);
	KUNIT_EXPECT_EQ(test, 0, in->err);
	/* It goes off with the first complaint */
	KUNIT_EXPECT_TRUE(test, debug_locks);
	sroce_ib_destroy_srq(in->ibsrq, NULL);
}

static struct kunit_case interrupt_cases[] = {
	KUNIT_CASE(recv_posted_in_interrupts),
	KUNIT_CASE(srq_posted_in_interrupts),
	KUNIT_CASE(srq_locks_of_two_kinds),
	{}
};

static struct kunit_suite interrupt_suite = {
	.name = "sroce_interrupt",
	.exit = pair_exit,
	.test_cases = interrupt_cases,
};

kunit_test_suite(interrupt_suite);
