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
 * that a packet there is one without a socket.
 *
 * What all of them have there has a bound, too: whoever has a netdev of its own can have
 * its queue discipline keep packets for ever, and nobody is charged for their memory. As
 * the kernel frees them without a word to us, an account has some of a pool granted before
 * it needs that, and keeps it until the pool runs short and looks at what is really there:
 * also at the accounts of QPs that have gone before their packets.
 *
 * net/pack.c charges each buffer, transport/send.c asks for room and waits for it.
 */
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/sock.h>

#include "compat.h"
#include "txq.h"

/* Bytes that any QP may have there; for QP 1, which waits for no room, the only limit */
#define SROCE_TXQ_MOST (128 * 1024 * 1024)

/* Granted at a time */
#define SROCE_TXQ_STEP SZ_64K
/* Of all devices together: this part of the machine's memory, at least and at most so much */
#define SROCE_TXQ_OF_RAM 16
#define SROCE_TXQ_ALL_LEAST SZ_64M
#define SROCE_TXQ_ALL_MOST SZ_2G
/*
 * Accounts that are looked at whenever one wants more, once a device has so many times less
 * than is left; and when there is no more
 */
#define SROCE_TXQ_MUCH 2
#define SROCE_TXQ_LOOKS 2
#define SROCE_TXQ_LOOKS_MOST 64

struct sroce_txq_all sroce_txq_all;

/* A socket made as the kernel makes its own; those of the QPs are made like it */
static struct socket *sroce_txq_model;

static int sroce_txq_woken(wait_queue_entry_t *wait, unsigned int mode,
			   int flags, void *key)
{
	struct sroce_txq *txq = container_of(wait, struct sroce_txq, wait);

	list_del_init(&wait->entry);
	txq->room(txq->owner);
	return 0;
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
	sock_set_flag(sk, SOCK_RCU_FREE);
	return sk;
}

/* --- what all have --------------------------------------------------------------- */

/* Context: @pool->lock held, as for all of these */
static void sroce_txq_give_back(struct sroce_txq *txq, int keep)
{
	int bytes = txq->granted - keep;

	if (bytes > 0) {
		WRITE_ONCE(txq->granted, keep);
		txq->pool->bytes -= bytes;
		atomic_long_sub(bytes, &sroce_txq_all.bytes);
	}
	if (!txq->granted)
		list_del_init(&txq->node);
}

static void sroce_txq_let_go(struct sroce_txq *txq)
{
	sock_put(txq->sk);
	/* Somebody who is freeing a packet may still look at the wait queue */
	kfree_rcu(txq, rcu);
}

static int sroce_txq_used(const struct sroce_txq *txq)
{
	return round_up(sroce_txq_bytes(txq), SROCE_TXQ_STEP);
}

/* How much is really there? Of an account whose QP is gone nothing may be left. */
static void sroce_txq_look(struct sroce_txq *txq, struct list_head *list)
{
	list_move_tail(&txq->node, list);
	sroce_txq_give_back(txq, sroce_txq_used(txq));
	if (!txq->granted && list == &txq->pool->left)
		sroce_txq_let_go(txq);
}

static void sroce_txq_look_at(struct sroce_txq_pool *pool,
			      struct list_head *list, int most)
{
	struct sroce_txq *txq;

	while (most-- && !list_empty(list)) {
		txq = list_first_entry(list, struct sroce_txq, node);
		sroce_txq_look(txq, list);
	}
}

/* Each of them may give back as much as is wanted, or nothing */
static void sroce_txq_collect(struct sroce_txq_pool *pool, int looks)
{
	sroce_txq_look_at(pool, &pool->left, looks);
	sroce_txq_look_at(pool, &pool->using, looks);
}

static long sroce_txq_left(void)
{
	return (long)READ_ONCE(sroce_txq_all.most) -
	       atomic_long_read(&sroce_txq_all.bytes);
}

/* No device gets more than the others have left: so none can use up all */
static bool sroce_txq_take(struct sroce_txq *txq, int granted)
{
	struct sroce_txq_pool *pool = txq->pool;
	int more = granted - txq->granted;

	if ((long)pool->bytes + more > sroce_txq_left())
		return false;
	if (!txq->granted)
		list_add_tail(&txq->node, &pool->using);
	pool->bytes += more;
	atomic_long_add(more, &sroce_txq_all.bytes);
	WRITE_ONCE(txq->granted, granted);
	return true;
}

/* May a QP have so many bytes there? */
static bool sroce_txq_grow(struct sroce_txq *txq, int bytes)
{
	struct sroce_txq_pool *pool = txq->pool;
	int granted = round_up(bytes, SROCE_TXQ_STEP);
	unsigned long flags;
	bool ok;

	if (bytes > SROCE_TXQ_MOST)
		return false;
	spin_lock_irqsave(&pool->lock, flags);
	/* Before there is need, whoever sends in bursts would ask for the same again and again */
	if ((long)pool->bytes > sroce_txq_left() / SROCE_TXQ_MUCH)
		sroce_txq_collect(pool, SROCE_TXQ_LOOKS);
	ok = granted <= txq->granted || sroce_txq_take(txq, granted);
	if (!ok) {
		sroce_txq_collect(pool, SROCE_TXQ_LOOKS_MOST);
		ok = sroce_txq_take(txq, granted);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return ok;
}

/* A QP goes. What it has there counts until it has left. */
static void sroce_txq_leave(struct sroce_txq *txq)
{
	struct sroce_txq_pool *pool = txq->pool;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	sroce_txq_look(txq, &pool->left);
	sroce_txq_look_at(pool, &pool->left, SROCE_TXQ_LOOKS);
	spin_unlock_irqrestore(&pool->lock, flags);
}

void sroce_txq_pool_init(struct sroce_txq_pool *pool)
{
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->using);
	INIT_LIST_HEAD(&pool->left);
	pool->bytes = 0;
}

void sroce_txq_pool_end(struct sroce_txq_pool *pool)
{
	struct sroce_txq *txq, *next;

	list_for_each_entry_safe(txq, next, &pool->left, node) {
		sroce_txq_give_back(txq, 0);
		sroce_txq_let_go(txq);
	}
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
	txq->pool = pool;
	INIT_LIST_HEAD(&txq->node);
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
	sroce_txq_leave(txq);
}

void sroce_txq_set_limit(struct sroce_txq *txq, int bytes)
{
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

bool sroce_txq_full(const struct sroce_txq *txq)
{
	return sroce_txq_bytes(txq) > READ_ONCE(txq->sk->sk_sndbuf);
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
	    !sroce_txq_grow(txq, bytes))
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

int sroce_txq_init(void)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;

	sroce_txq_all.most = clamp_t(u64, ram / SROCE_TXQ_OF_RAM,
				     SROCE_TXQ_ALL_LEAST, SROCE_TXQ_ALL_MOST);
	return sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP,
				&sroce_txq_model);
}

void sroce_txq_exit(void)
{
	sock_release(sroce_txq_model);
}
