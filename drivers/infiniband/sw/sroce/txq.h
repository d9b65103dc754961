/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The account of what a QP has in the stack's queues, in bytes of packet buffers.
 * The transport makes it and stops sending when it is full; the network layer
 * charges it for each buffer.
 */
#ifndef SROCE_TXQ_H
#define SROCE_TXQ_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct sk_buff;
struct sock;
struct sroce_counters;

/**
 * struct sroce_txq_pool - what all QPs of a device have in the stack's queues
 * @share: bytes with which an account is full; read for each train
 * @crowded: much is there, so that what a buffer keeps from others is to count
 * @lock: all of it, and @granted, @free and @node of the accounts; bottom halves off
 * @using: accounts to which something is granted, those looked at last behind the others
 * @left: likewise, of QPs that are gone, and whose packets may be there still
 * @bytes: granted to them all
 * @looked: when it was last looked for some in vain, in jiffies
 * @tidy: looks at accounts, while it is crowded
 */
struct sroce_txq_pool {
	int share;
	bool crowded;
	spinlock_t lock ____cacheline_aligned_in_smp; /* see above */
	struct list_head using;
	struct list_head left;
	unsigned long bytes;
	unsigned long looked;
	struct delayed_work tidy;
};

/**
 * struct sroce_txq - what a QP has in the stack's queues
 * @sk: what its packets are charged to; they may outlive everything else here
 * @counters: where they are counted
 * @pool: of the device
 * @limit: bytes with which it is full, if the pool's share is not less
 * @granted: bytes that it may have there without asking the pool again
 * @free: of these, what is not the pool's
 * @node: in a list of @pool
 * @room: called when the stack has freed enough, if somebody waits for that
 * @owner: its argument
 * @wait: in @wq as long as somebody waits
 * @rcu: freed after a grace period
 * @wq: of @sk
 */
struct sroce_txq {
	struct sock *sk;
	struct sroce_counters __percpu *counters;
	struct sroce_txq_pool *pool;
	int limit;
	int granted;
	int free;
	struct list_head node;
	void (*room)(void *owner);
	void *owner;
	wait_queue_entry_t wait;
	struct rcu_head rcu;
	struct socket_wq wq;
};

/* The pool of a new device */
void sroce_txq_pool_init(struct sroce_txq_pool *pool);

/* The device ends: no account is left; packets are not waited for. Context: process. */
void sroce_txq_pool_end(struct sroce_txq_pool *pool);

/**
 * sroce_txq_alloc() - make an account
 * @pool: of the QP's device
 * @room: called when less than half of the limit is used again, if somebody
 *	waits for that; in any context, with interrupts off
 * @owner: its argument
 *
 * Context: process; charged to its memory cgroup.
 * Return: the account, with the kernel's default limit, or NULL.
 */
struct sroce_txq *sroce_txq_alloc(struct sroce_txq_pool *pool,
				  void (*room)(void *owner), void *owner);

/*
 * Nothing is sent on it any more. On return @room is not called any more either;
 * packets are not waited for. NULL is fine. Context: any.
 */
void sroce_txq_free(struct sroce_txq *txq);

/* How many bytes may be there before sroce_txq_full() */
void sroce_txq_set_limit(struct sroce_txq *txq, int bytes);

/* Where its packets are counted. Context: nobody is sending. */
void sroce_txq_count_in(struct sroce_txq *txq,
			struct sroce_counters __percpu *counters);

/* Bytes of packet buffers that the stack has not freed */
int sroce_txq_bytes(const struct sroce_txq *txq);

/*
 * Is it time to stop sending? With its limit, or its share of what the device has left; the
 * latter is not for who waits for no room (INT_MAX). Context: any.
 */
bool sroce_txq_full(const struct sroce_txq *txq);

/*
 * Has its device so much in the stack's queues that what a buffer keeps others from using, as
 * a piece of a page does, is to be charged as well? Context: any.
 */
bool sroce_txq_is_crowded(const struct sroce_txq *txq);

/**
 * sroce_txq_wait() - be called when there is room
 * @txq: account
 *
 * Context: any.
 * Return: false when there is room now, that is, when less than half of the limit
 * is used.
 */
bool sroce_txq_wait(struct sroce_txq *txq);

/**
 * sroce_txq_charge() - charge a buffer for as long as the stack has it
 * @skb: complete buffer without owner; its size is not changed any more but by
 *	the stack
 * @txq: who pays
 *
 * Context: any.
 * Return: 0, or -ENOBUFS when the QP has far more there than it may, or all of its
 * device have too much: to be dropped.
 */
int sroce_txq_charge(struct sk_buff *skb, struct sroce_txq *txq);

/*
 * sroce_stack_passed() - has the stack's queue of a CPU let go of all that was in it?
 * @cpu: possible CPU
 *
 * What is sent to a netdev of this host (loopback, veth) lies in the queue of the CPU
 * that sent it, and one by one the receivers get it there. Who has sent something there
 * and then sends from another CPU is overtaken by himself, unless this says yes: what he
 * sent before has reached its receivers or a queue that all CPUs share. Receive Flow
 * Steering has such a rule for flows that it moves (Documentation/networking/scaling.rst
 * of the kernel), and asks for the flow's last packet; this one waits for everybody's.
 *
 * A pointer, for unit tests. Context: any; what was sent before is ordered before the
 * call, for instance by a lock.
 */
extern bool (*sroce_stack_passed)(unsigned int cpu);

/**
 * struct sroce_txq_all - what all devices have in the stack's queues
 * @most: bytes that may be granted. Tests change it
 * @bytes: granted
 */
struct sroce_txq_all {
	unsigned long most;
	atomic_long_t bytes;
};

extern struct sroce_txq_all sroce_txq_all;

/*
 * Who sends, for ip_local_out(): a socket that goes by the netdev's MTU alone. It is not that
 * of the account, so that rules for the sockets of a process do not see it as one of those.
 */
struct sock *sroce_txq_sender(void);

/* Module start. Return: 0 or a negative errno. */
int sroce_txq_init(void);
/* Module end: no account is left, but maybe packets that were charged */
void sroce_txq_exit(void);

#endif
