// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who pays for packet buffers in qdiscs and NICs.
 *
 * skb_shinfo()->destructor_arg is the one place that stays with a buffer and
 * its destructor on the way down: skb->cb belongs to each layer in turn,
 * skb->sk must be a socket, and a reallocated head takes the shared info along.
 * Clones and GSO segments get no destructor; the buffer that has it is freed
 * once. The charge is remembered, because truesize changes on the way.
 */
#include <linux/delay.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "compat.h"
#include "net/internal.h"

struct sroce_charge {
	struct sroce_txq *txq;
	u32 bytes;
};

/* Sum over the CPUs: buffers whose destructor has not run */
static DEFINE_PER_CPU(atomic_long_t, sroce_charged);

static void sroce_discharge(struct sk_buff *skb)
{
	struct sroce_charge *c = skb_shinfo(skb)->destructor_arg;

	c->txq->done(c->txq, c->bytes);
	kfree(c);
	atomic_long_dec(raw_cpu_ptr(&sroce_charged));
}

int sroce_charge(struct sk_buff *skb, struct sroce_txq *txq)
{
	struct sroce_charge *c;

	c = kmalloc_obj(*c, GFP_ATOMIC | __GFP_NOWARN);
	if (!c)
		return -ENOMEM;
	c->txq = txq;
	c->bytes = skb->truesize;
	txq->hold(txq);
	atomic_add(c->bytes, &txq->bytes);
	atomic_long_inc(raw_cpu_ptr(&sroce_charged));
	skb_shinfo(skb)->destructor_arg = c;
	skb->destructor = sroce_discharge;
	return 0;
}

/* Only ever counts down while this runs, so a sum of zero is the truth */
static bool sroce_charge_any(void)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += atomic_long_read(&per_cpu(sroce_charged, cpu));
	return sum;
}

void sroce_charge_drain(void)
{
	unsigned int turn = 0;

	while (sroce_charge_any()) {
		if (turn++ % 512 == 511)
			pr_notice("sroce: waiting for packets stuck in a queue\n");
		msleep(20);
	}
	/* The last destructor may be in its last instructions */
	synchronize_rcu();
}
