// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Hostile packets that wait for their turn in net/backlog.c, on several CPUs at
 * once.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "net/backlog.h"
#include "net/net.h"
#include "net/receive.h"
#include "tests/fuzz_wait.h"

/* More than all that a buffer can cause: no QP leaves anything for later */
#define TURN SZ_256M

/* Of a buffer that comes on another CPU: nobody knows which is the next one then */
#define ANY_ORDER BIT(31)

/* A sink has no other way to it; one round at a time */
static struct fuzz_wait *waiting;

u32 fuzz_receive(struct sroce_netport *port, struct sk_buff *skb,
		 struct sroce_rx_place place)
{
	u32 parts = 1;

	while (!sroce_net_receive(&init_net, port, skb, &place))
		parts++;
	return parts;
}

static u32 find_port(struct fuzz_wait *w, struct sroce_port *port)
{
	u32 i;

	for (i = 0; i < w->nports; i++)
		if (w->ports[i] == port)
			return i;
	if (WARN_ON(i == FUZZ_PORTS))
		return 0;
	w->ports[w->nports++] = port;
	return i;
}

static u32 find_flow(struct fuzz_wait *w, struct sroce_port *port,
		     const union ib_gid *src)
{
	bool ipv4 = ipv6_addr_v4mapped((const struct in6_addr *)src);

	return (find_port(w, port) * 2 + ipv4) * 256 + src->raw[15];
}

/*
 * One CPU at a time takes from a flow. What a worker gives a QP to do, it does at once;
 * but often it has no time for another buffer then.
 */
static void sink(struct sk_buff *skb, struct sroce_rx_place place)
{
	u32 flow = skb->mark & ~ANY_ORDER, number = skb->priority;
	struct fuzz_wait *w = waiting;

	atomic_inc(&w->kept);
	if (!(skb->mark & ANY_ORDER) && !place.packets) {
		if ((s32)(number - w->last[flow]) <= 0)
			atomic_inc(&w->disorder);
		w->last[flow] = number;
	}
	fuzz_receive(&w->ports[flow / 512]->net, skb, place);
	if (number % 4 == 0)
		sroce_turn_spend(TURN);
}

static void take(struct fuzz_wait *w, struct sk_buff *skb, bool overdue)
{
	struct sroce_port *port = w->ports[(skb->mark & ~ANY_ORDER) / 512];

	local_bh_disable();
	rcu_read_lock();
	sroce_turn_begin(true);
	if (overdue)
		sroce_turn_spend(2 * TURN);
	sroce_net_input(&init_net, &port->net, skb);
	sroce_turn_end();
	/* The softirqs that follow have a turn of their own */
	sroce_turn_begin(true);
	sroce_turn_end();
	rcu_read_unlock();
	local_bh_enable();
}

void fuzz_wait_send(struct fuzz_wait *w, struct sroce_port *port,
		    const union ib_gid *src, struct sk_buff *skb, bool overdue)
{
	skb->mark = find_flow(w, port, src);
	/* Of RoCE v1 each QP that is sent to is a flow of its own */
	if (skb->protocol == htons(ETH_P_IBOE))
		skb->mark |= ANY_ORDER;
	skb->priority = ++w->number;
	take(w, skb, overdue);
}

/* --- the other CPU ----------------------------------------------------------- */

void fuzz_wait_echo(struct fuzz_wait *w, struct sroce_port *port,
		    const union ib_gid *src, struct sk_buff *skb)
{
	skb->mark = find_flow(w, port, src) | ANY_ORDER;
	skb->priority = ++w->number;
	atomic_inc(&w->echoing);
	skb_queue_tail(&w->echoes, skb);
	wake_up(&w->wake);
}

static int echo(void *arg)
{
	struct fuzz_wait *w = arg;
	struct sk_buff *skb;

	while (!kthread_should_stop()) {
		wait_event_idle(w->wake, !skb_queue_empty_lockless(&w->echoes) ||
				kthread_should_stop());
		while ((skb = skb_dequeue(&w->echoes))) {
			take(w, skb, skb->priority % 2);
			atomic_dec_return_release(&w->echoing);
		}
	}
	return 0;
}

static bool begin_echoes(struct fuzz_wait *w, unsigned int cpu)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, cpu);

	w->task = kthread_create(echo, w, "sroce_fuzz");
	if (IS_ERR(w->task))
		return false;
	kthread_bind(w->task, other < nr_cpu_ids ? other : cpu);
	wake_up_process(w->task);
	return true;
}

/* --- begin and end ----------------------------------------------------------- */

static bool is_settled(struct fuzz_wait *w)
{
	return !atomic_read_acquire(&w->echoing) && !sroce_backlog_bytes();
}

bool fuzz_wait_settle(struct fuzz_wait *w)
{
	unsigned long end = jiffies + 120 * HZ;

	while (!is_settled(w)) {
		if (time_after(jiffies, end))
			return false;
		flush_workqueue(sroce_turn_wq);
		cond_resched();
	}
	return true;
}

struct fuzz_wait *fuzz_wait_begin(unsigned int cpu)
{
	struct fuzz_wait *w = vzalloc(sizeof(*w));

	if (!w)
		return NULL;
	skb_queue_head_init(&w->echoes);
	init_waitqueue_head(&w->wake);
	if (!begin_echoes(w, cpu)) {
		vfree(w);
		return NULL;
	}
	waiting = w;
	w->sink = sroce_backlog_sink;
	sroce_backlog_sink = sink;
	w->limits = sroce_turn_limits;
	sroce_turn_limits = (struct sroce_turn_limits){
		.bytes = TURN,
		.ns = 1000 * NSEC_PER_SEC,
	};
	return w;
}

void fuzz_wait_end(struct fuzz_wait *w)
{
	kthread_stop(w->task);
	skb_queue_purge(&w->echoes);
	sroce_backlogs_forget(NULL);
	/* A worker may have one at hand */
	flush_workqueue(sroce_turn_wq);
	sroce_turn_limits = w->limits;
	sroce_backlog_sink = w->sink;
	waiting = NULL;
	vfree(w);
}
