// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that wait for their turn. The stack takes some 300 buffers of up to 64 KiB
 * from a netdev before it lets anything else run, and we check and copy every byte of
 * them: in a row that is longer than bottom halves may be off. Buffers that arrive
 * when the turn of their CPU is overdue (turn.h) wait for a worker.
 *
 * They wait by flow and not by CPU, because a sender may move while they do. What
 * comes later goes behind them, wherever it comes, and only one at a time takes from a
 * list: its worker, or the next softirq that brings something for it and has time.
 * So nothing is overtaken. The rest of a buffer, whose first packets have taken all the
 * time, goes in front of the list. What waits has a bound, in each list and in all of them;
 * beyond that packets are lost, as in the queues of the stack.
 *
 * What waits is orphaned and holds its netdev only. The device is looked for again
 * when it is taken, so that none is kept from going.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/udp.h>
#include <linux/workqueue.h>
#include <net/dst.h>
#include <net/ipv6.h>

#include "counters.h"
#include "net/backlog.h"
#include "net/net.h"
#include "net/receive.h"
#include "net/socket.h"
#include "sending.h"
#include "turn.h"

#define SROCE_BACKLOG_BITS 6
#define SROCE_BACKLOGS BIT(SROCE_BACKLOG_BITS)

/*
 * Memory of the buffers in all lists: a part of that of the machine, but enough for
 * some windows. A list has no part of its own: it grows as long as it has no more than
 * all of them leave free. So one flow alone may have half, and however many lists
 * somebody else fills, as much is free for the next one as each of those has.
 */
#define SROCE_BACKLOG_MOST SZ_256M
#define SROCE_BACKLOG_LEAST SZ_16M
#define SROCE_BACKLOG_OF_RAM 32

/*
 * Most buffers in a list: small ones are many in little memory, and searching takes time
 */
#define SROCE_BACKLOG_BUFFERS 4096

/**
 * struct sroce_backlog - a list of flows
 * @list: its lock protects all, with bottom halves off
 * @bytes: memory of the buffers in @list
 * @busy: somebody takes from it, and may have one at hand
 * @work: takes from it
 */
struct sroce_backlog {
	struct sk_buff_head list;
	u32 bytes;
	bool busy;
	struct work_struct work;
} ____cacheline_aligned_in_smp;

/**
 * struct sroce_backlog_cb - in the buffer meanwhile
 * @net_cookie: of the namespace that it came to; the netdev may go to another one
 * @place: how far it was received
 */
struct sroce_backlog_cb {
	u64 net_cookie;
	struct sroce_rx_place place;
};

static struct sroce_backlog sroce_backlogs[SROCE_BACKLOGS];

/*
 * Secret of the hash that says in which list a flow waits. Who knows it could choose
 * flows that wait in the same list as somebody else's.
 */
static u32 sroce_backlog_seed __read_mostly;

/* Most memory of the buffers in all lists */
static u32 sroce_backlog_most __read_mostly;

/*
 * Memory of all that is in lists or being taken from them. It is 0 nearly always, and
 * then nobody looks at the lists.
 */
static struct {
	atomic_t bytes;
} sroce_backlog_all ____cacheline_aligned_in_smp;

static struct sroce_backlog_cb *sroce_backlog_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct sroce_backlog_cb) > sizeof(skb->cb));
	return (struct sroce_backlog_cb *)skb->cb;
}

/*
 * What tells flows of a host apart: the UDP port that most QPs have alone, or in RoCE v1,
 * which has none, the number of the QP that it is for
 */
static u32 sroce_backlog_flow(const struct sk_buff *skb, unsigned int off,
			      bool v1)
{
	__be32 words[2];
	const __be32 *w;

	w = skb_header_pointer(skb, off, sizeof(words), words);
	if (!w)
		return 0;
	return v1 ? ntohl(w[1]) & 0xffffff : ntohl(w[0]) >> 16;
}

/* The list of a buffer's flow */
static struct sroce_backlog *sroce_backlog_of(const struct sk_buff *skb)
{
	bool v1 = skb->protocol == htons(ETH_P_IBOE);
	u32 off = sizeof(struct iphdr);
	u32 key;

	if (v1 || ip_hdr(skb)->version == 6) {
		off = sizeof(struct ipv6hdr);
		/* Whoever has a network chooses most of an address: it is hashed with the secret */
		key = __ipv6_addr_jhash(&ipv6_hdr(skb)->saddr, sroce_backlog_seed);
	} else {
		key = (__force u32)ip_hdr(skb)->saddr;
	}
	key = jhash_2words(key, sroce_backlog_flow(skb, off, v1),
			   sroce_backlog_seed);
	return &sroce_backlogs[key >> (32 - SROCE_BACKLOG_BITS)];
}

/* --- buffers that have to wait ----------------------------------------------- */

void sroce_backlog_strip(struct sk_buff *skb)
{
	skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	skb_ext_reset(skb);
}

static void sroce_backlog_detach(struct net *net, struct sk_buff *skb,
				 const struct sroce_rx_place *place)
{
	sroce_backlog_strip(skb);
	*sroce_backlog_cb(skb) = (struct sroce_backlog_cb){
		.net_cookie = net->net_cookie,
		.place = *place,
	};
}

/*
 * Is there room: has the list, with the buffer, no more than all lists leave free? (A
 * "dynamic threshold" of switches that share memory: Choudhury and Hahne, 1998.)
 * Memory from the reserve for freeing memory must not wait in a list.
 * The rest of a buffer has had its place, and there is one at a time in each list.
 */
static bool sroce_backlog_admit(struct sroce_backlog *b,
				const struct sk_buff *skb, bool rest)
{
	u32 all;

	if (skb_pfmemalloc(skb) ||
	    (!rest && skb_queue_len(&b->list) >= SROCE_BACKLOG_BUFFERS))
		return false;
	all = atomic_add_return(skb->truesize, &sroce_backlog_all.bytes);
	if (rest || all + b->bytes + skb->truesize <= sroce_backlog_most)
		return true;
	atomic_sub(skb->truesize, &sroce_backlog_all.bytes);
	return false;
}

static bool sroce_backlog_push(struct sroce_backlog *b, struct sk_buff *skb,
			       bool first)
{
	bool ok;

	spin_lock(&b->list.lock);
	ok = sroce_backlog_admit(b, skb, first);
	if (ok) {
		dev_hold(skb->dev);
		b->bytes += skb->truesize;
		if (first)
			__skb_queue_head(&b->list, skb);
		else
			__skb_queue_tail(&b->list, skb);
	}
	spin_unlock(&b->list.lock);
	return ok;
}

/* Return: whether it waits; otherwise it is lost */
static bool sroce_backlog_put(struct sroce_backlog *b, struct net *net,
			      struct sroce_netport *port, struct sk_buff *skb,
			      const struct sroce_rx_place *place)
{
	bool rest = place->packets || place->spread.served;

	sroce_backlog_detach(net, skb, place);
	if (sroce_backlog_push(b, skb, rest))
		return true;
	sroce_count(port->counters, SROCE_CNT_RX_DISCARDS, 1);
	kfree_skb(skb);
	return false;
}

/* Receive a buffer from @place on, as far as there is time */
static void sroce_backlog_begin(struct net *net, struct sroce_netport *port,
				struct sk_buff *skb, struct sroce_rx_place place)
{
	struct sroce_backlog *b;

	if (likely(sroce_net_receive(net, port, skb, &place)))
		return;
	b = sroce_backlog_of(skb);
	if (sroce_backlog_put(b, net, port, skb, &place))
		queue_work(sroce_turn_wq, &b->work);
}

/* --- buffers that leave their list ------------------------------------------- */

static bool sroce_backlog_claim(struct sroce_backlog *b)
{
	bool ours;

	spin_lock(&b->list.lock);
	ours = !b->busy && !skb_queue_empty(&b->list);
	if (ours)
		b->busy = true;
	spin_unlock(&b->list.lock);
	return ours;
}

/* The next buffer, or NULL when there is none, or no time: the list is given back then */
static struct sk_buff *sroce_backlog_next(struct sroce_backlog *b, bool over)
{
	struct sk_buff *skb = NULL;

	spin_lock(&b->list.lock);
	if (!over)
		skb = __skb_dequeue(&b->list);
	if (skb)
		b->bytes -= skb->truesize;
	else
		b->busy = false;
	spin_unlock(&b->list.lock);
	return skb;
}

static void sroce_backlog_receive(struct sk_buff *skb,
				  struct sroce_rx_place place)
{
	struct net *net = dev_net(skb->dev);
	struct sroce_netport *port = NULL;

	if (sroce_backlog_cb(skb)->net_cookie == net->net_cookie)
		port = sroce_port_of_packet(net, skb);
	if (port)
		sroce_backlog_begin(net, port, skb, place);
	else
		kfree_skb(skb);
}

/*
 * Receives a buffer that has waited. Tests see here which ones come out, in which order
 */
void (*sroce_backlog_sink)(struct sk_buff *skb,
			   struct sroce_rx_place place) = sroce_backlog_receive;

u32 sroce_backlog_bytes(void)
{
	return atomic_read_acquire(&sroce_backlog_all.bytes);
}

/* Receive a buffer that has left its list. Return: bytes that this counts as, at least */
static u32 sroce_backlog_take(struct sk_buff *skb)
{
	u32 size = skb->truesize, cost = skb->len + SROCE_TURN_TRAIN;
	struct net_device *dev = skb->dev;

	sroce_turn_spend(SROCE_TURN_TRAIN);
	rcu_read_lock();
	sroce_backlog_sink(skb, sroce_backlog_cb(skb)->place);
	rcu_read_unlock();
	dev_put(dev);
	/* From here on the flow's next buffer may be received where it arrives */
	atomic_sub_return_release(size, &sroce_backlog_all.bytes);
	return cost;
}

/*
 * Take from a list until the turn is over. (On PREEMPT_RT other tasks of the CPU may
 * begin the turn anew, so @cost ends it, too.) If somebody else is busy with the list
 * already, that one will see what was pushed, or queue the worker for it.
 */
static void sroce_backlog_drain(struct sroce_backlog *b)
{
	unsigned long cost = 0, most = READ_ONCE(sroce_turn_limits.bytes);
	struct sk_buff *skb;

	if (!sroce_backlog_claim(b))
		return;
	while ((skb = sroce_backlog_next(b, sroce_turn_over() || cost > most)))
		cost += sroce_backlog_take(skb);
	if (!skb_queue_empty_lockless(&b->list))
		queue_work(sroce_turn_wq, &b->work);
}

static void sroce_backlog_work(struct work_struct *work)
{
	local_bh_disable();
	sroce_turn_begin(true);
	sroce_backlog_drain(container_of(work, struct sroce_backlog, work));
	sroce_turn_end();
	local_bh_enable();
}

/* --- buffers that arrive ------------------------------------------------------ */

/* Has an earlier buffer of this list not been received yet? */
static bool sroce_backlog_is_behind(struct sroce_backlog *b)
{
	bool behind;

	if (!sroce_backlog_bytes())
		return false;
	spin_lock(&b->list.lock);
	behind = b->busy || !skb_queue_empty(&b->list);
	spin_unlock(&b->list.lock);
	return behind;
}

/*
 * Let a buffer wait if the turn is overdue, or something of its flow waits already.
 * Return: false when it is to be received now; otherwise it is dealt with.
 */
static bool sroce_backlog_keep(struct net *net, struct sroce_netport *port,
			       struct sk_buff *skb)
{
	struct sroce_backlog *b = sroce_backlog_of(skb);
	bool overdue = sroce_turn_overdue();

	if (!overdue && !sroce_backlog_is_behind(b))
		return false;
	if (!sroce_backlog_put(b, net, port, skb, &(struct sroce_rx_place){}))
		return true;
	if (overdue) {
		queue_work(sroce_turn_wq, &b->work);
		return true;
	}
	sroce_turn_begin(false);
	sroce_backlog_drain(b);
	sroce_turn_end();
	return true;
}

void sroce_net_input(struct net *net, struct sroce_netport *port,
		     struct sk_buff *skb)
{
	if (unlikely(atomic_read(&sroce_backlog_all.bytes) ||
		     sroce_turn_overdue()) &&
	    !sroce_sending() && sroce_backlog_keep(net, port, skb))
		return;
	sroce_turn_begin(false);
	sroce_backlog_begin(net, port, skb, (struct sroce_rx_place){});
	sroce_turn_end();
}

/* --- netdevs that go --------------------------------------------------------- */

/* Bottom halves are off only while the list is searched */
static void sroce_backlog_forget(struct sroce_backlog *b,
				 const struct net_device *dev)
{
	struct sk_buff *skb, *next;
	struct sk_buff_head gone;
	struct net_device *held;

	__skb_queue_head_init(&gone);
	spin_lock_bh(&b->list.lock);
	skb_queue_walk_safe(&b->list, skb, next) {
		if (dev && skb->dev != dev)
			continue;
		b->bytes -= skb->truesize;
		__skb_unlink(skb, &b->list);
		__skb_queue_tail(&gone, skb);
	}
	spin_unlock_bh(&b->list.lock);
	while ((skb = __skb_dequeue(&gone))) {
		held = skb->dev;
		atomic_sub(skb->truesize, &sroce_backlog_all.bytes);
		kfree_skb(skb);
		dev_put(held);
		cond_resched();
	}
}

void sroce_backlogs_forget(const struct net_device *dev)
{
	int i;

	for (i = 0; i < SROCE_BACKLOGS; i++)
		sroce_backlog_forget(&sroce_backlogs[i], dev);
}

static int sroce_backlog_event(struct notifier_block *nb, unsigned long event,
			       void *ptr)
{
	/* By then the stack takes nothing more from the netdev */
	if (event == NETDEV_UNREGISTER)
		sroce_backlogs_forget(netdev_notifier_info_to_dev(ptr));
	return NOTIFY_DONE;
}

static struct notifier_block sroce_backlog_notifier = {
	.notifier_call = sroce_backlog_event,
};

int sroce_backlog_init(void)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;
	struct sroce_backlog *b;

	sroce_backlog_most = clamp_t(u64, ram / SROCE_BACKLOG_OF_RAM,
				     SROCE_BACKLOG_LEAST, SROCE_BACKLOG_MOST);
	sroce_backlog_seed = get_random_u32();
	for (b = sroce_backlogs; b < sroce_backlogs + SROCE_BACKLOGS; b++) {
		skb_queue_head_init(&b->list);
		INIT_WORK(&b->work, sroce_backlog_work);
	}
	return register_netdevice_notifier(&sroce_backlog_notifier);
}

void sroce_backlog_exit(void)
{
	struct sroce_backlog *b;

	unregister_netdevice_notifier(&sroce_backlog_notifier);
	for (b = sroce_backlogs; b < sroce_backlogs + SROCE_BACKLOGS; b++)
		cancel_work_sync(&b->work);
	sroce_backlogs_forget(NULL);
}
