// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who hands a packet to the network stack marks that in a variable of the CPU, so that who
 * receives knows whether it is called from there (sending.h).
 */
#include <linux/preempt.h>
#include <linux/local_lock.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#include "compat.h"
#include "sending.h"

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

static DEFINE_PER_CPU(struct sroce_sending, sroce_sendings) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

void sroce_sending_begin(void)
{
	local_lock_nested_bh(&sroce_sendings.lock);
	__this_cpu_write(sroce_sendings.task, current);
}

void sroce_sending_end(void)
{
	__this_cpu_write(sroce_sendings.task, NULL);
	local_unlock_nested_bh(&sroce_sendings.lock);
}

bool sroce_sending(void)
{
	/* On PREEMPT_RT it may be a task that was preempted */
	return __this_cpu_read(sroce_sendings.task) == current;
}
