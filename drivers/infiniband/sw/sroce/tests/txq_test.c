// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a QP has in the stack's queues: who is told that there is room, and what is
 * left when the QP goes first.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/smp.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "txq.h"

#define LEN 1000

static void note_room(void *owner)
{
	(*(int *)owner)++;
}

static struct sroce_txq_pool pool, other_pool;

static int txq_init(struct kunit *test)
{
	sroce_txq_pool_init(&pool);
	sroce_txq_pool_init(&other_pool);
	return 0;
}

static void txq_exit(struct kunit *test)
{
	sroce_txq_pool_end(&pool);
	sroce_txq_pool_end(&other_pool);
	KUNIT_EXPECT_EQ(test, pool.bytes + other_pool.bytes, 0);
}

static struct sroce_txq *make_txq(struct kunit *test, int *called)
{
	struct sroce_txq *txq = sroce_txq_alloc(&pool, note_room, called);

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
	/* The device does not wait for it either */
	sroce_txq_pool_end(&pool);
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

/* --- what all have --------------------------------------------------------------- */

#define STEP SZ_64K

/* So much is there for all devices but those that others have just now */
static unsigned long there_is(int steps)
{
	unsigned long before = sroce_txq_all.most;

	WRITE_ONCE(sroce_txq_all.most,
		   atomic_long_read(&sroce_txq_all.bytes) + steps * STEP);
	return before;
}

/* A buffer that makes it @want bytes. Return: 0 or -ENOBUFS, and then it is gone. */
static int fill_bytes(struct kunit *test, struct sroce_txq *txq, int want)
{
	struct sk_buff *skb = alloc_skb(LEN, GFP_KERNEL);
	int bytes = want - skb->truesize - sroce_txq_bytes(txq);
	int err;

	refcount_add(bytes, &txq->sk->sk_wmem_alloc);
	err = sroce_txq_charge(skb, txq);
	if (err)
		WARN_ON(refcount_sub_and_test(bytes, &txq->sk->sk_wmem_alloc));
	else
		refcount_add(skb->truesize, &txq->sk->sk_wmem_alloc);
	kfree_skb(skb);
	return err;
}

static int fill(struct kunit *test, struct sroce_txq *txq, int steps)
{
	return fill_bytes(test, txq, steps * STEP);
}

static void empty(struct sock *sk)
{
	WARN_ON(refcount_sub_and_test(sk_wmem_alloc_get(sk),
				      &sk->sk_wmem_alloc));
}

/* Time passes, so that it is worth while to look again */
static void later(void)
{
	pool.looked = jiffies - 1;
	other_pool.looked = jiffies - 1;
}

/* What the first packets of an account are is not the pool's */
#define FREE SZ_4K

static void txq_all_have_an_end(struct kunit *test)
{
	int called = 0;
	struct sroce_txq *txq[2] = { make_txq(test, &called),
				     make_txq(test, &called) };
	struct sroce_txq *other = sroce_txq_alloc(&other_pool, note_room,
						  &called);
	unsigned long before = there_is(8);

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, fill(test, txq[0], 3), 0);
	KUNIT_EXPECT_EQ(test, fill(test, txq[1], 1), 0);
	/* No device gets more than half, so that there is some for others */
	KUNIT_EXPECT_EQ(test, fill(test, txq[1], 2), -ENOBUFS);
	later();
	KUNIT_EXPECT_EQ(test, fill(test, txq[0], 4), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, fill(test, other, 2), 0);
	KUNIT_EXPECT_EQ(test, fill(test, other, 3), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, pool.bytes, 4 * STEP - 2 * FREE);
	/* What the stack has freed is found again */
	empty(txq[0]->sk);
	later();
	KUNIT_EXPECT_EQ(test, fill(test, txq[1], 3), 0);
	KUNIT_EXPECT_EQ(test, pool.bytes, 3 * STEP - FREE);
	empty(txq[1]->sk);
	empty(other->sk);
	sroce_txq_free(txq[0]);
	sroce_txq_free(txq[1]);
	sroce_txq_free(other);
	WRITE_ONCE(sroce_txq_all.most, before);
}

/* QPs that go and leave their packets behind, one after the other */
static void txq_left_behind(struct kunit *test)
{
	struct sroce_txq *txq;
	struct sock *sk[3];
	int called = 0, i;
	unsigned long before = there_is(8);

	for (i = 0; i < ARRAY_SIZE(sk); i++) {
		txq = make_txq(test, &called);
		sk[i] = txq->sk;
		later();
		KUNIT_EXPECT_EQ(test, fill(test, txq, 2), i < 2 ? 0 : -ENOBUFS);
		if (i < 2)
			sroce_txq_free(txq);
	}
	KUNIT_EXPECT_EQ(test, pool.bytes, 4 * STEP);
	destructed = false;
	sk[0]->sk_destruct = note_destruct;
	empty(sk[0]);
	later();
	KUNIT_EXPECT_EQ(test, fill(test, txq, 2), 0);
	rcu_barrier();
	KUNIT_EXPECT_TRUE(test, destructed);
	empty(sk[1]);
	empty(sk[2]);
	sroce_txq_free(txq);
	KUNIT_EXPECT_EQ(test, pool.bytes, 0);
	WRITE_ONCE(sroce_txq_all.most, before);
}

/*
 * What was charged while somebody looked, or by both halves at once, may be more than was
 * granted. It counts when the QP goes, at the latest.
 */
static void txq_counted_late(struct kunit *test)
{
	int called = 0;
	struct sroce_txq *txq = make_txq(test, &called);
	struct sock *sk = txq->sk;

	refcount_add(2 * STEP, &sk->sk_wmem_alloc);
	KUNIT_EXPECT_EQ(test, pool.bytes, 0);
	sroce_txq_free(txq);
	KUNIT_EXPECT_EQ(test, pool.bytes, 2 * STEP);
	empty(sk);
	/* The next one finds that it has gone */
	sroce_txq_free(make_txq(test, &called));
	KUNIT_EXPECT_EQ(test, pool.bytes, 0);
}

/*
 * The first packets, which may be an ACK, ask nobody: also when others have taken all. But
 * who comes and goes then, and leaves them behind each time, gets none.
 */
static void txq_first_are_free(struct kunit *test)
{
	int called = 0, i, made = 0;
	struct sroce_txq *all = make_txq(test, &called);
	struct sroce_txq *txq = make_txq(test, &called);
	unsigned long before = there_is(4);
	struct sock *sk[64];

	KUNIT_EXPECT_EQ(test, fill_bytes(test, all, 2 * STEP + FREE), 0);
	KUNIT_EXPECT_EQ(test, fill_bytes(test, txq, FREE), 0);
	KUNIT_EXPECT_EQ(test, fill_bytes(test, txq, FREE + 1500), -ENOBUFS);
	empty(txq->sk);
	sroce_txq_free(txq);
	for (i = 0; i < ARRAY_SIZE(sk); i++) {
		txq = make_txq(test, &called);
		later();
		if (!fill_bytes(test, txq, FREE))
			sk[made++] = txq->sk;
		sroce_txq_free(txq);
	}
	KUNIT_EXPECT_LE(test, made, 1);
	while (made)
		empty(sk[--made]);
	empty(all->sk);
	sroce_txq_free(all);
	WRITE_ONCE(sroce_txq_all.most, before);
}

/* Where little is left small ones count as what they are, and not as a large one each */
static void txq_small_ones(struct kunit *test)
{
	struct sroce_txq *txq[48];
	int called = 0, i, good = 0;
	unsigned long before = there_is(16);

	for (i = 0; i < ARRAY_SIZE(txq); i++) {
		txq[i] = make_txq(test, &called);
		later();
		good += !fill_bytes(test, txq[i], FREE + SZ_4K);
	}
	KUNIT_EXPECT_EQ(test, good, ARRAY_SIZE(txq));
	KUNIT_EXPECT_LE(test, pool.bytes, 8 * STEP);
	for (i = 0; i < ARRAY_SIZE(txq); i++) {
		empty(txq[i]->sk);
		sroce_txq_free(txq[i]);
	}
	WRITE_ONCE(sroce_txq_all.most, before);
}

/* As much as it may before it waits, in steps of a train. Return: what it has then. */
static int send_until_full(struct kunit *test, struct sroce_txq *txq)
{
	while (!sroce_txq_full(txq)) {
		if (fill_bytes(test, txq, sroce_txq_bytes(txq) + STEP)) {
			KUNIT_FAIL(test, "lost with %d bytes there",
				   sroce_txq_bytes(txq));
			break;
		}
	}
	return sroce_txq_bytes(txq);
}

/*
 * Many that want all they can get: each is full, and so waits, before the pool has nothing
 * left, and one more gets as much as each of them. Nobody's packet is lost for it.
 */
static void txq_shares(struct kunit *test)
{
	struct sroce_txq *txq[25];
	unsigned long before = there_is(1024);	/* 64 MiB */
	int called = 0, i, round, bytes = 0;

	for (i = 0; i < ARRAY_SIZE(txq); i++) {
		txq[i] = make_txq(test, &called);
		sroce_txq_set_limit(txq[i], SZ_16M);
	}
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 24; i++)
			bytes = send_until_full(test, txq[i]);
	}
	KUNIT_EXPECT_LT(test, pool.bytes, 512 * STEP);
	bytes = send_until_full(test, txq[24]);
	kunit_info(test, "24 have %lu, the next one %d\n", pool.bytes, bytes);
	KUNIT_EXPECT_GE(test, bytes, (int)SZ_256K);
	/* Who waits is called when its own are gone, whatever the others have */
	KUNIT_EXPECT_TRUE(test, sroce_txq_wait(txq[24]));
	for (i = 0; i < ARRAY_SIZE(txq); i++) {
		empty(txq[i]->sk);
		KUNIT_EXPECT_FALSE(test, sroce_txq_wait(txq[i]));
		sroce_txq_free(txq[i]);
	}
	WRITE_ONCE(sroce_txq_all.most, before);
}

/* What a device has that sends no more is found without anybody who wants it */
static void txq_idle_gives_back(struct kunit *test)
{
	int called = 0, tries = 150;
	struct sroce_txq *txq = make_txq(test, &called);
	unsigned long before = there_is(32);

	KUNIT_EXPECT_EQ(test, fill(test, txq, 8), 0);
	KUNIT_EXPECT_TRUE(test, sroce_txq_is_crowded(txq));
	empty(txq->sk);
	while (READ_ONCE(pool.bytes) && tries--)
		msleep(20);
	KUNIT_EXPECT_EQ(test, pool.bytes, 0);
	KUNIT_EXPECT_FALSE(test, sroce_txq_is_crowded(txq));
	sroce_txq_free(txq);
	WRITE_ONCE(sroce_txq_all.most, before);
}

/* --- buffers that GRO merges -------------------------------------------------- */

#define HEADERS (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr))
#define DATAGRAM (HEADERS + LEN)

/* All in a head of its own: the second one hangs at the first afterwards */
static struct sk_buff *merge_linear(struct net_device *dev)
{
	struct sk_buff *skb = alloc_skb(DATAGRAM, GFP_KERNEL);

	if (skb)
		skb_put_zero(skb, DATAGRAM);
	return skb;
}

/* The head is a piece of a page, which the first one takes over */
static struct sk_buff *merge_page_head(struct net_device *dev)
{
	struct sk_buff *skb = netdev_alloc_skb(dev, DATAGRAM);

	if (skb)
		skb_put_zero(skb, DATAGRAM);
	return skb;
}

/* Only the payload is in a page */
static struct sk_buff *merge_fragment(struct net_device *dev)
{
	struct sk_buff *skb = alloc_skb(HEADERS, GFP_KERNEL);
	struct page *page = alloc_page(GFP_KERNEL);

	if (!skb || !page) {
		kfree_skb(skb);
		if (page)
			__free_page(page);
		return NULL;
	}
	skb_put_zero(skb, HEADERS);
	skb_add_rx_frag(skb, 0, page, 0, LEN, PAGE_SIZE);
	return skb;
}

static const struct merge {
	const char *name;
	struct sk_buff *(*make)(struct net_device *dev);
	gro_result_t result;
} merges[] = {
	{ "linear", merge_linear, GRO_MERGED },
	{ "head in a page", merge_page_head, GRO_MERGED_FREE },
	{ "payload in a page", merge_fragment, GRO_MERGED_FREE },
};

static void merge_name(const struct merge *m, char *desc)
{
	strscpy(desc, m->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(merge, merges, merge_name);

/* UDP over IPv4, of one flow, charged, as it comes to the other end of a veth */
static struct sk_buff *merge_datagram(struct kunit *test, struct net_device *dev,
				      struct sroce_txq *txq, u16 id)
{
	const struct merge *m = test->param_value;
	struct sk_buff *skb = m->make(dev);
	struct udphdr *udp;
	struct iphdr *ip;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	ip = (struct iphdr *)(skb->data + ETH_HLEN);
	udp = (struct udphdr *)(ip + 1);
	((struct ethhdr *)skb->data)->h_proto = htons(ETH_P_IP);
	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.tot_len = htons(DATAGRAM - ETH_HLEN),
		.id = htons(id),
		.frag_off = htons(IP_DF),
		.protocol = IPPROTO_UDP,
		.saddr = htonl(0x0a4d0001),
		.daddr = htonl(0x0a4d0002),
	};
	ip->check = ip_fast_csum(ip, ip->ihl);
	*udp = (struct udphdr){
		.source = htons(0xc123),
		.dest = htons(9),
		.len = htons(sizeof(*udp) + LEN),
		/* which nobody looks at */
		.check = CSUM_MANGLED_0,
	};
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	KUNIT_EXPECT_EQ(test, 0, sroce_txq_charge(skb, txq));
	skb->protocol = eth_type_trans(skb, dev);
	skb_prepare_for_gro(skb);
	return skb;
}

static int no_poll(struct napi_struct *napi, int budget)
{
	return 0;
}

/*
 * GRO takes the destructor of a buffer away that it hangs at another one, and charges
 * that for both. So a destructor that remembers what its buffer was charged would leave
 * some for ever, and the QP would wait for room for ever.
 */
static void txq_merged(struct kunit *test)
{
	const struct merge *m = test->param_value;
	struct net_device *dev = alloc_etherdev(0);
	gro_result_t held, merged;
	struct napi_struct *napi;
	struct sk_buff *skb[2];
	struct sroce_txq *txq;
	int called = 0, first;

	napi = kunit_kzalloc(test, sizeof(*napi), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, napi);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->features |= NETIF_F_GRO | NETIF_F_GRO_UDP_FWD;
	netif_napi_add(dev, napi, no_poll);
	txq = make_txq(test, &called);
	skb[0] = merge_datagram(test, dev, txq, 1);
	first = sroce_txq_bytes(txq);
	skb[1] = merge_datagram(test, dev, txq, 2);
	sroce_txq_set_limit(txq, first);
	KUNIT_EXPECT_TRUE(test, sroce_txq_wait(txq));
	local_bh_disable();
	held = napi_gro_receive(napi, skb[0]);
	merged = napi_gro_receive(napi, skb[1]);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, GRO_HELD, held);
	KUNIT_EXPECT_EQ(test, m->result, merged);
	KUNIT_EXPECT_GE(test, sroce_txq_bytes(txq), first + LEN);
	KUNIT_EXPECT_EQ(test, 0, called);
	/* What was held is freed */
	netif_napi_del(napi);
	KUNIT_EXPECT_EQ(test, 0, sroce_txq_bytes(txq));
	KUNIT_EXPECT_EQ(test, 1, called);
	sroce_txq_free(txq);
	free_netdev(dev);
}

/* --- the queue of a CPU --------------------------------------------------------- */

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
	KUNIT_CASE(txq_all_have_an_end),
	KUNIT_CASE(txq_left_behind),
	KUNIT_CASE(txq_counted_late),
	KUNIT_CASE(txq_first_are_free),
	KUNIT_CASE(txq_small_ones),
	KUNIT_CASE(txq_shares),
	KUNIT_CASE(txq_idle_gives_back),
	KUNIT_CASE_PARAM(txq_merged, merge_gen_params),
	{}
};

static struct kunit_suite txq_suite = {
	.name = "sroce_txq",
	.init = txq_init,
	.exit = txq_exit,
	.test_cases = txq_cases,
};

kunit_test_suite(txq_suite);
