// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The bound of what all QPs have in the stack's queues: whoever has a netdev of its own can
 * have its queue discipline keep packets for ever, and nobody is charged for their memory.
 *
 * As the kernel frees packets without a word to us, an account has some of its device's pool
 * granted before it needs that, and keeps it until somebody looks at what is really there:
 * whoever wants more once the pool is crowded, and a worker once a second, so that what an
 * idle device has is found, too. The accounts of QPs that have gone before their packets
 * are looked at likewise.
 *
 * A bound that serves whoever comes first would be a way to stop others, so
 * - no device gets more than all others have left;
 * - an account is full when it has a 32nd of what its device has left (as a switch
 *   shares its buffer: Choudhury and Hahne, "Dynamic queue length thresholds for
 *   shared-memory packet switches", 1998): n who want all they can get leave for one more
 *   as much as they have each. Who is full waits, and loses nothing;
 * - the first packets of an account, which may be an ACK or a message of a connection
 *   manager, ask nobody. That is less than the memory that the QP itself is charged for.
 */
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "turn.h"
#include "txq.h"
#include "txq_pool.h"

/* Granted at a time; where little is left, pages */
#define SROCE_TXQ_STEP SZ_64K
#define SROCE_TXQ_SMALL_STEP SZ_4K
/*
 * What an account may have without asking; with what part of what its device has left it is
 * full, but not with less than a train: one that is larger is called when that is gone
 */
#define SROCE_TXQ_FREE SZ_4K
#define SROCE_TXQ_SHARE 32
#define SROCE_TXQ_SHARE_LEAST SZ_8K
/* With less than that little is left */
#define SROCE_TXQ_SHARE_SMALL SZ_256K
/* Of all devices together: this part of the machine's memory, at least and at most so much */
#define SROCE_TXQ_OF_RAM 16
#define SROCE_TXQ_ALL_LEAST SZ_64M
#define SROCE_TXQ_ALL_MOST SZ_2G
/*
 * A device is crowded when it has this part of what is left, which is more than a busy link
 * needs; and whoever wants more looks at accounts first when it has this part
 */
#define SROCE_TXQ_CROWD 16
#define SROCE_TXQ_MUCH 2
/* Accounts that are looked at then; when there is no more; by the worker */
#define SROCE_TXQ_LOOKS 2
#define SROCE_TXQ_LOOKS_MOST 64
#define SROCE_TXQ_LOOKS_WORKER 4096
/* A look, in bytes moved: two cache lines that nobody else has near */
#define SROCE_TXQ_LOOK SZ_1K

struct sroce_txq_all sroce_txq_all;

/* Context of all that follows: the lock of the pool held */
static long sroce_txq_left(void)
{
	return (long)READ_ONCE(sroce_txq_all.most) -
	       atomic_long_read(&sroce_txq_all.bytes);
}

/* What a device can still get, so that it has no more than all have left */
static long sroce_txq_pool_room(const struct sroce_txq_pool *pool)
{
	return sroce_txq_left() - (long)pool->bytes;
}

/*
 * What senders read for each train. They find it changed seldom: the share is a power of
 * two.
 */
static void sroce_txq_pool_tell(struct sroce_txq_pool *pool)
{
	long room = sroce_txq_pool_room(pool);
	int share = SROCE_TXQ_SHARE_LEAST;
	bool crowded;

	if (room / SROCE_TXQ_SHARE > SROCE_TXQ_SHARE_LEAST)
		share = rounddown_pow_of_two(min(room / SROCE_TXQ_SHARE,
						 (long)SZ_1G));
	if (share != pool->share)
		WRITE_ONCE(pool->share, share);
	crowded = (long)pool->bytes > sroce_txq_left() / SROCE_TXQ_CROWD;
	if (crowded != pool->crowded)
		WRITE_ONCE(pool->crowded, crowded);
	/* A share that was small for others' sake is to grow again, too */
	if ((crowded || (pool->bytes && share < SROCE_TXQ_SHARE_SMALL)) &&
	    !delayed_work_pending(&pool->tidy))
		schedule_delayed_work(&pool->tidy, HZ);
}

static void sroce_txq_grant(struct sroce_txq *txq, int granted)
{
	struct sroce_txq_pool *pool = txq->pool;
	int more = granted - txq->granted;

	WRITE_ONCE(txq->granted, granted);
	pool->bytes += more;
	atomic_long_add(more, &sroce_txq_all.bytes);
	if (granted <= txq->free)
		list_del_init(&txq->node);
	else if (list_empty(&txq->node))
		list_add_tail(&txq->node, &pool->using);
}

static int sroce_txq_pool_step(const struct sroce_txq_pool *pool)
{
	return pool->share < SROCE_TXQ_SHARE_SMALL ? SROCE_TXQ_SMALL_STEP :
						     SROCE_TXQ_STEP;
}

/* How much is really there? What a sender has charged just now, and not asked for, may be more. */
static void sroce_txq_look(struct sroce_txq *txq)
{
	int used = round_up(sroce_txq_bytes(txq),
			    sroce_txq_pool_step(txq->pool));

	list_move_tail(&txq->node, &txq->pool->using);
	if (used < txq->granted)
		sroce_txq_grant(txq, max(used, txq->free));
}

/* Nobody sends on it any more, so that it is right to the byte; nothing may be left */
static void sroce_txq_look_behind(struct sroce_txq *txq)
{
	int used = round_up(sroce_txq_bytes(txq), SROCE_TXQ_SMALL_STEP);

	sroce_txq_grant(txq, used);
	if (used) {
		list_move_tail(&txq->node, &txq->pool->left);
		return;
	}
	sock_put(txq->sk);
	/* Somebody who is freeing a packet may still look at the wait queue */
	kfree_rcu(txq, rcu);
}

/* At @most of a list, each once, those first that have not been looked at for longest */
static void sroce_txq_look_at(struct list_head *list, int most,
			      void (*look)(struct sroce_txq *txq))
{
	const struct list_head *last = list->prev, *node;

	while (most-- && !list_empty(list)) {
		node = list->next;
		look(list_first_entry(list, struct sroce_txq, node));
		if (node == last)
			return;
	}
}

static void sroce_txq_pool_look(struct sroce_txq_pool *pool, int most)
{
	sroce_txq_look_at(&pool->left, most, sroce_txq_look_behind);
	sroce_txq_look_at(&pool->using, most, sroce_txq_look);
	sroce_txq_pool_tell(pool);
}

static bool sroce_txq_take(struct sroce_txq *txq, int bytes)
{
	struct sroce_txq_pool *pool = txq->pool;
	int granted = round_up(bytes, sroce_txq_pool_step(pool));

	/* Somebody else's look has come between, or the other half has taken it */
	if (granted <= txq->granted)
		return true;
	if (granted - txq->granted > sroce_txq_pool_room(pool))
		return false;
	sroce_txq_grant(txq, granted);
	sroce_txq_pool_tell(pool);
	return true;
}

/* When there is no more, all have to look for some: but not each at every packet */
static bool sroce_txq_take_after_look(struct sroce_txq *txq, int bytes)
{
	struct sroce_txq_pool *pool = txq->pool;

	if (!time_after(jiffies, pool->looked))
		return false;
	sroce_turn_spend(SROCE_TXQ_LOOK * 2 * SROCE_TXQ_LOOKS_MOST);
	sroce_txq_pool_look(pool, SROCE_TXQ_LOOKS_MOST);
	if (sroce_txq_take(txq, bytes))
		return true;
	pool->looked = jiffies;
	return false;
}

bool sroce_txq_pool_grow(struct sroce_txq *txq, int bytes)
{
	struct sroce_txq_pool *pool = txq->pool;
	bool ok;

	spin_lock_bh(&pool->lock);
	/* Before there is need, whoever sends in bursts would ask for the same again and again */
	if ((long)pool->bytes > sroce_txq_left() / SROCE_TXQ_MUCH) {
		sroce_turn_spend(SROCE_TXQ_LOOK * 2 * SROCE_TXQ_LOOKS);
		sroce_txq_pool_look(pool, SROCE_TXQ_LOOKS);
	}
	ok = sroce_txq_take(txq, bytes) ||
	     sroce_txq_take_after_look(txq, bytes);
	spin_unlock_bh(&pool->lock);
	return ok;
}

void sroce_txq_pool_join(struct sroce_txq_pool *pool, struct sroce_txq *txq)
{
	txq->pool = pool;
	INIT_LIST_HEAD(&txq->node);
	spin_lock_bh(&pool->lock);
	/* Who comes and goes, and leaves packets behind each time, is not to have it each time */
	if (sroce_txq_pool_room(pool) > 0)
		txq->free = SROCE_TXQ_FREE;
	txq->granted = txq->free;
	spin_unlock_bh(&pool->lock);
}

void sroce_txq_pool_leave(struct sroce_txq *txq)
{
	struct sroce_txq_pool *pool = txq->pool;

	spin_lock_bh(&pool->lock);
	txq->granted -= txq->free;
	txq->free = 0;
	sroce_txq_look_behind(txq);
	sroce_txq_pool_look(pool, SROCE_TXQ_LOOKS);
	spin_unlock_bh(&pool->lock);
}

/* Once a second: of a device that does not send nobody wants more, and so nobody would look */
static void sroce_txq_pool_tidy(struct work_struct *work)
{
	struct sroce_txq_pool *pool =
		container_of(work, struct sroce_txq_pool, tidy.work);
	int looks;

	for (looks = 0; looks < SROCE_TXQ_LOOKS_WORKER;
	     looks += SROCE_TXQ_LOOKS_MOST) {
		spin_lock_bh(&pool->lock);
		sroce_txq_pool_look(pool, SROCE_TXQ_LOOKS_MOST);
		spin_unlock_bh(&pool->lock);
		cond_resched();
	}
}

void sroce_txq_pool_init(struct sroce_txq_pool *pool)
{
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->using);
	INIT_LIST_HEAD(&pool->left);
	INIT_DELAYED_WORK(&pool->tidy, sroce_txq_pool_tidy);
	pool->bytes = 0;
	pool->share = SROCE_TXQ_SHARE_LEAST;
	pool->crowded = false;
	pool->looked = jiffies - 1;
	spin_lock_bh(&pool->lock);
	sroce_txq_pool_tell(pool);
	spin_unlock_bh(&pool->lock);
}

void sroce_txq_pool_end(struct sroce_txq_pool *pool)
{
	struct sroce_txq *txq, *next;

	cancel_delayed_work_sync(&pool->tidy);
	list_for_each_entry_safe(txq, next, &pool->left, node) {
		sroce_txq_grant(txq, 0);
		sock_put(txq->sk);
		kfree_rcu(txq, rcu);
	}
}

void sroce_txq_pools_init(void)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;

	sroce_txq_all.most = clamp_t(u64, ram / SROCE_TXQ_OF_RAM,
				     SROCE_TXQ_ALL_LEAST, SROCE_TXQ_ALL_MOST);
}
