/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Is this CPU handing a packet to the network stack?
 *
 * It does so with the lock of a queue pair held and with its table of regions in use. What
 * short-circuits transmission to reception on one CPU (tc mirred, before Linux 6.8) brings
 * a packet back to the driver from within: it must not be received then.
 */
#ifndef SROCE_SENDING_H
#define SROCE_SENDING_H

#include <linux/interrupt.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/local_lock.h>

#include "compat.h"

struct net_device;
struct sk_buff;

/**
 * struct sroce_sending - what a CPU hands to the stack
 * @lock: one buffer at a time; a lock only where those who have bottom halves off
 *	can be preempted. Taken with a half's lock held, outside all of the stack's
 * @task: who does; NULL: nobody
 */
struct sroce_sending {
	local_lock_t lock; /* see above */
	struct task_struct *task;
};

DECLARE_PER_CPU(struct sroce_sending, sroce_sendings);

/* Around the call of the stack. Context: bottom halves off; a half's lock may be held. */
static inline void sroce_sending_begin(void)
{
	local_lock_nested_bh(&sroce_sendings.lock);
	__this_cpu_write(sroce_sendings.task, current);
}

static inline void sroce_sending_end(void)
{
	__this_cpu_write(sroce_sendings.task, NULL);
	local_unlock_nested_bh(&sroce_sendings.lock);
}

/* Was this called by the stack that is called in between? Context: bottom halves off. */
static inline bool sroce_sending(void)
{
	/* On PREEMPT_RT it may be a task that was preempted */
	return __this_cpu_read(sroce_sendings.task) == current;
}

/**
 * sroce_sending_spend() - count what the stack does for a buffer (turn.h)
 * @skb: about to be sent, its GSO type and size set
 * @dev: through which
 * @packets: that it holds
 *
 * Each packet that is cut off before it comes to the netdev goes through the stack by itself.
 *
 * Context: bottom halves off.
 */
void sroce_sending_spend(const struct sk_buff *skb,
			 const struct net_device *dev, u32 packets);

#endif
