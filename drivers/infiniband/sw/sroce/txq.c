// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who pays for packet buffers in qdiscs and NICs: a socket for each QP. And whether the
 * queue that the stack has for each CPU is empty.
 *
 * A buffer may hang in a queue for as long as it likes, longer than its QP, its
 * device and this module. So nothing that is needed to free it may be the
 * module's: its destructor is the kernel's own for packets of sockets, and what
 * that counts in is a socket of the kernel, in no table and bound to nothing,
 * which goes with the last of its packets. Who waits for room is in the socket's
 * wait queue, and once taken out, under the queue's lock, is not called any more.
 *
 * It is also what the stack knows: GSO gives each segment its part of the
 * charge, GRO adds them up again, and fq does not orphan what has a socket.
 *
 * The sockets are in the first network namespace, which is always there. Where
 * else the stack asks for a packet's socket it does not take it for its own, so
 * that a packet there is one without a socket. (But a program of BPF on a route that says
 * BPF_LWT_REROUTE has it routed in the socket's namespace.)
 *
 * They say that packets go by the netdev's MTU alone. What a router, or somebody who says he
 * is one, tells of a smaller one on the path is of no use: a path MTU of RoCE is agreed upon
 * by both ends, and a packet that does not fit would only be lost here instead of there.
 *
 * What all of them have there has a bound, too: txq_pool.c.
 *
 * net/pack.c charges each buffer, transport/send.c asks for room and waits for it.
 */
#include <linux/cpumask.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "compat.h"
#include "txq.h"
#include "txq_pool.h"

/* Bytes that any QP may have there; for QP 1, which waits for no room, the only limit */
#define SROCE_TXQ_MOST (128 * 1024 * 1024)

/*
 * A socket made as the kernel makes its own; those of the QPs are made like it. Where there
 * is IPv6 it is of that, and so has what IPv6 looks for in the socket of a packet.
 */
static struct socket *sroce_txq_model;

static int sroce_txq_woken(wait_queue_entry_t *wait, unsigned int mode,
			   int flags, void *key)
{
	struct sroce_txq *txq = container_of(wait, struct sroce_txq, wait);

	list_del_init(&wait->entry);
	txq->room(txq->owner);
	return 0;
}

/* Nobody else knows the socket yet */
static void sroce_txq_ignore_path_mtu(struct sock *sk)
{
	inet_sk(sk)->pmtudisc = IP_PMTUDISC_INTERFACE;
#if IS_ENABLED(CONFIG_IPV6)
	if (inet_sk(sk)->pinet6)
		inet_sk(sk)->pinet6->pmtudisc = IPV6_PMTUDISC_INTERFACE;
#endif
}

/* Where the part for IPv6 is, every socket of the protocol has it */
static void sroce_txq_set_ipv6(struct sock *sk, const struct sock *model)
{
#if IS_ENABLED(CONFIG_IPV6)
	const void *part = inet_sk(model)->pinet6;

	if (part)
		inet_sk(sk)->pinet6 = (void *)sk + (part - (const void *)model);
#endif
}

/*
 * Security modules look at the label of a packet's socket: that of the model,
 * which belongs to the kernel, and not that of the process whose QP it is.
 */
static struct sock *sroce_txq_sock_alloc(void)
{
	struct sock *model = sroce_txq_model->sk;
	struct sock *sk;

	sk = sk_alloc(&init_net, PF_INET, GFP_KERNEL, model->sk_prot_creator,
		      1);
	if (!sk)
		return NULL;
	sock_init_data(NULL, sk);
	sk->sk_type = model->sk_type;
	sk->sk_protocol = model->sk_protocol;
	security_sk_clone(model, sk);
	sroce_txq_set_ipv6(sk, model);
	sroce_txq_ignore_path_mtu(sk);
	sock_set_flag(sk, SOCK_RCU_FREE);
	return sk;
}

/* --- an account ------------------------------------------------------------------ */

struct sroce_txq *sroce_txq_alloc(struct sroce_txq_pool *pool,
				  void (*room)(void *owner), void *owner)
{
	struct sroce_txq *txq = kzalloc_obj(*txq, GFP_KERNEL_ACCOUNT);

	if (!txq)
		return NULL;
	txq->sk = sroce_txq_sock_alloc();
	if (!txq->sk) {
		kfree(txq);
		return NULL;
	}
	txq->limit = READ_ONCE(txq->sk->sk_sndbuf);
	sroce_txq_pool_join(pool, txq);
	txq->room = room;
	txq->owner = owner;
	init_waitqueue_head(&txq->wq.wait);
	init_waitqueue_func_entry(&txq->wait, sroce_txq_woken);
	INIT_LIST_HEAD(&txq->wait.entry);
	RCU_INIT_POINTER(txq->sk->sk_wq, &txq->wq);
	return txq;
}

void sroce_txq_free(struct sroce_txq *txq)
{
	unsigned long flags;

	if (!txq)
		return;
	spin_lock_irqsave(&txq->wq.wait.lock, flags);
	list_del_init(&txq->wait.entry);
	spin_unlock_irqrestore(&txq->wq.wait.lock, flags);
	RCU_INIT_POINTER(txq->sk->sk_wq, NULL);
	sroce_txq_pool_leave(txq);
}

void sroce_txq_set_limit(struct sroce_txq *txq, int bytes)
{
	WRITE_ONCE(txq->limit, bytes);
	WRITE_ONCE(txq->sk->sk_sndbuf, bytes);
}

void sroce_txq_count_in(struct sroce_txq *txq,
			struct sroce_counters __percpu *counters)
{
	txq->counters = counters;
}

int sroce_txq_bytes(const struct sroce_txq *txq)
{
	return sk_wmem_alloc_get(txq->sk);
}

/*
 * The pool's share is a limit, too, for all who wait. The kernel calls when less than half
 * of that is used which stands in the socket.
 */
static int sroce_txq_limit(const struct sroce_txq *txq)
{
	int limit = READ_ONCE(txq->limit);

	return limit == INT_MAX ? limit : min(limit, READ_ONCE(txq->pool->share));
}

bool sroce_txq_full(const struct sroce_txq *txq)
{
	int limit = sroce_txq_limit(txq);

	if (unlikely(READ_ONCE(txq->sk->sk_sndbuf) != limit))
		WRITE_ONCE(txq->sk->sk_sndbuf, limit);
	return sroce_txq_bytes(txq) > limit;
}

bool sroce_txq_is_crowded(const struct sroce_txq *txq)
{
	return READ_ONCE(txq->pool->crowded);
}

bool sroce_txq_wait(struct sroce_txq *txq)
{
	unsigned long flags;

	if (sock_writeable(txq->sk))
		return false;
	spin_lock_irqsave(&txq->wq.wait.lock, flags);
	if (list_empty(&txq->wait.entry))
		__add_wait_queue(&txq->wq.wait, &txq->wait);
	spin_unlock_irqrestore(&txq->wq.wait.lock, flags);
	/* Freeing a packet lowers the account, then looks at the queue */
	smp_mb();
	return !sock_writeable(txq->sk);
}

int sroce_txq_charge(struct sk_buff *skb, struct sroce_txq *txq)
{
	int bytes = sroce_txq_bytes(txq) + skb->truesize;

	if (unlikely(bytes > READ_ONCE(txq->granted)) &&
	    (bytes > SROCE_TXQ_MOST || !sroce_txq_pool_grow(txq, bytes)))
		return -ENOBUFS;
	skb_set_owner_w(skb, txq->sk);
	return 0;
}

/*
 * The queue's bit is set before anything is put into it and cleared when the last one
 * has been received. The queue of a CPU that has gone is moved by the kernel, soon. Some
 * tunnels (VXLAN, Geneve) have queues of their own behind this one: not seen here.
 */
static bool sroce_stack_queue_passed(unsigned int cpu)
{
	const struct napi_struct *backlog = &per_cpu(softnet_data, cpu).backlog;

	/* The stack writes it without marking that, when all have been received */
	return !(data_race(smp_load_acquire(&backlog->state)) & NAPIF_STATE_SCHED) ||
	       !cpu_online(cpu);
}

bool (*sroce_stack_passed)(unsigned int cpu) __read_mostly = sroce_stack_queue_passed;

struct sock *sroce_txq_sender(void)
{
	return sroce_txq_model->sk;
}

int sroce_txq_init(void)
{
	int family = ipv6_mod_enabled() ? AF_INET6 : AF_INET;
	int err;

	sroce_txq_pools_init();
	err = sock_create_kern(&init_net, family, SOCK_DGRAM, IPPROTO_UDP,
			       &sroce_txq_model);
	if (!err)
		sroce_txq_ignore_path_mtu(sroce_txq_model->sk);
	return err;
}

void sroce_txq_exit(void)
{
	sock_release(sroce_txq_model);
}
