// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a QP has in the stack's queues: who is told that there is room, and what is
 * left when the QP goes first.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/smp.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "txq.h"

#define LEN 1000

static void note_room(void *owner)
{
	(*(int *)owner)++;
}

static struct sroce_txq *make_txq(struct kunit *test, int *called)
{
	struct sroce_txq *txq = sroce_txq_alloc(note_room, called);

	KUNIT_ASSERT_TRUE(test, !!txq);
	return txq;
}

static struct sk_buff *charged(struct kunit *test, struct sroce_txq *txq)
{
	struct sk_buff *skb = alloc_skb(LEN, GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, !!skb);
	KUNIT_EXPECT_EQ(test, 0, sroce_txq_charge(skb, txq));
	return skb;
}

static void txq_room(struct kunit *test)
{
	struct sk_buff *skb[4], *clone;
	int called = 0, i;
	struct sroce_txq *txq = make_txq(test, &called);

	KUNIT_EXPECT_EQ(test, 0, sroce_txq_bytes(txq));
	KUNIT_EXPECT_FALSE(test, sroce_txq_wait(txq));
	for (i = 0; i < 4; i++)
		skb[i] = charged(test, txq);
	sroce_txq_set_limit(txq, 3 * skb[0]->truesize);
	KUNIT_EXPECT_TRUE(test, sroce_txq_full(txq));
	KUNIT_EXPECT_TRUE(test, sroce_txq_wait(txq));
	/* A second one is no second call */
	KUNIT_EXPECT_TRUE(test, sroce_txq_wait(txq));
	clone = skb_clone(skb[0], GFP_KERNEL);
	kfree_skb(clone);
	kfree_skb(skb[0]);
	KUNIT_EXPECT_FALSE(test, sroce_txq_full(txq));
	KUNIT_EXPECT_EQ(test, 0, called);
	for (i = 1; i < 4; i++)
		kfree_skb(skb[i]);
	KUNIT_EXPECT_EQ(test, 1, called);
	KUNIT_EXPECT_EQ(test, 0, sroce_txq_bytes(txq));
	sroce_txq_free(txq);
}

static bool destructed;

static void note_destruct(struct sock *sk)
{
	destructed = true;
}

/* It is freed, and who waited for room is not there any more */
static void txq_outlives(struct kunit *test)
{
	int called = 0;
	struct sroce_txq *txq = make_txq(test, &called);
	struct sock *sk = txq->sk;
	struct sk_buff *skb = charged(test, txq);

	destructed = false;
	sroce_txq_set_limit(txq, skb->truesize);
	sk->sk_destruct = note_destruct;
	KUNIT_EXPECT_TRUE(test, sroce_txq_wait(txq));
	sroce_txq_free(txq);
	rcu_barrier();
	KUNIT_EXPECT_FALSE(test, destructed);
	kfree_skb(skb);
	rcu_barrier();
	KUNIT_EXPECT_TRUE(test, destructed);
	KUNIT_EXPECT_EQ(test, 0, called);
}

/* Who waits for nothing, as QP 1 does, meets an end as well */
static void txq_most(struct kunit *test)
{
	const int most = 128 * 1024 * 1024 + 1;
	int called = 0;
	struct sroce_txq *txq = make_txq(test, &called);
	struct sk_buff *skb = alloc_skb(LEN, GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, !!skb);
	sroce_txq_set_limit(txq, INT_MAX);
	refcount_add(most, &txq->sk->sk_wmem_alloc);
	KUNIT_EXPECT_FALSE(test, sroce_txq_full(txq));
	KUNIT_EXPECT_EQ(test, -ENOBUFS, sroce_txq_charge(skb, txq));
	KUNIT_EXPECT_EQ(test, most, sroce_txq_bytes(txq));
	kfree_skb(skb);
	WARN_ON(refcount_sub_and_test(most, &txq->sk->sk_wmem_alloc));
	sroce_txq_free(txq);
}

/* A packet that nobody wants, on the loopback device, which is up */
static struct sk_buff *unwanted(struct kunit *test)
{
	struct sk_buff *skb = alloc_skb(LEN, GFP_KERNEL);
	int err;

	KUNIT_ASSERT_TRUE(test, !!skb);
	rtnl_lock();
	err = dev_open(init_net.loopback_dev, NULL);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, 0, err);
	skb_put_zero(skb, ETH_ZLEN);
	skb->dev = init_net.loopback_dev;
	skb->protocol = eth_type_trans(skb, skb->dev);
	return skb;
}

/* Something is in the stack's queue of this CPU until its softirq has run */
static void stack_queue_passes(struct kunit *test)
{
	struct sk_buff *skb = unwanted(test);
	bool before, after;
	unsigned int cpu;
	int patience = 1000;

	migrate_disable();
	cpu = smp_processor_id();
	local_bh_disable();
	netif_rx(skb);
	before = sroce_stack_passed(cpu);
	local_bh_enable();
	/* A kernel thread may have to do what the softirq has left */
	while (!(after = sroce_stack_passed(cpu)) && --patience)
		usleep_range(1000, 2000);
	migrate_enable();
	KUNIT_EXPECT_FALSE(test, before);
	KUNIT_EXPECT_TRUE(test, after);
}

static struct kunit_case txq_cases[] = {
	KUNIT_CASE(stack_queue_passes),
	KUNIT_CASE(txq_room),
	KUNIT_CASE(txq_outlives),
	KUNIT_CASE(txq_most),
	{}
};

static struct kunit_suite txq_suite = {
	.name = "sroce_txq",
	.test_cases = txq_cases,
};

kunit_test_suite(txq_suite);
