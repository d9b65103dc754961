/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completion queues as the transport fills them. What ib_core calls is in
 * verbs/cq.c.
 */
#ifndef SROCE_TRANSPORT_CQ_H
#define SROCE_TRANSPORT_CQ_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>

#include "memory/ring.h"
#include "timer.h"
#include "transport/events.h"

struct sroce_port;

/*
 * Whether the handler is to be called. It is never by two CPUs at once, as users in the kernel may
 * expect (Documentation/infiniband/core_locking.rst); while it is, the queue may be armed again.
 */
enum sroce_cq_calling {
	SROCE_CQ_SILENT,
	SROCE_CQ_QUEUED,
	SROCE_CQ_CALLED,
	SROCE_CQ_CALLED_AGAIN,
};

/**
 * struct sroce_cq - completion queue
 * @ibcq: what ib_core knows; its cqe field is the usable size
 * @port: device
 * @lock: protects all below; taken by sroce_lock() with @user, innermost
 * @ring: completions in the form of the user ABI; behind each, for kernel users, its QP
 * @user: a process owns the consumer index and the arm word in @ring
 * @timestamp: completions carry the time
 * @ignore_overrun: a completion that does not fit is nobody's error
 * @vector: the CPU that calls the handler, if it is online and not isolated; 0, which is what
 *	consumers without a wish ask for: the one that adds the completion, where
 *	the event comes soonest
 * @overrun: a completion did not fit; nothing is added any more
 * @seen: the consumer's index when the newest completion was added; batch.c, which does
 *	not take the lock, tells by it whether the queue is being looked at
 * @cons: kernel consumer's index, when not @user
 * @armed: kernel consumer's arm word (SROCE_CQ_*), when not @user
 * @mod_count: completions that one event is for; 0: every one has its own
 * @mod_period: microseconds that an event waits for @mod_count at most
 * @mod_held: completions that have been waiting
 * @mod_timer: ends that wait
 * @events: completion events that may wait to be read
 * @notify: on a CPU's list of queues whose handler is to be called
 * @calling: enum sroce_cq_calling; under @lock
 * @users: 1 and one for each CPU list that holds it
 * @idle: completed when @users falls to 0
 */
struct sroce_cq {
	struct ib_cq ibcq;
	struct sroce_port *port;
	spinlock_t lock;
	struct sroce_ring ring;
	bool user;
	bool timestamp;
	bool ignore_overrun;
	bool overrun;
	u32 vector;
	u32 seen;
	u32 cons;
	u32 armed;
	u16 mod_count;
	u16 mod_period;
	u16 mod_held;
	struct sroce_timer mod_timer;
	struct sroce_events events;
	struct list_head notify;
	u8 calling;
	refcount_t users;
	struct completion idle;
};

static inline struct sroce_cq *to_sroce_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct sroce_cq, ibcq);
}

/**
 * sroce_cq_init() - make a completion queue
 * @cq: zeroed but for @cq->ibcq, @cq->vector and the flags that creation sets
 * @port: device
 * @entries: wanted size
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int sroce_cq_init(struct sroce_cq *cq, struct sroce_port *port, u32 entries);

/**
 * sroce_cq_cleanup() - end a completion queue that no QP uses any more
 * @cq: queue
 *
 * Waits for a completion handler that is being called, so it must not be
 * called from one.
 *
 * Context: process, may sleep.
 */
void sroce_cq_cleanup(struct sroce_cq *cq);

/**
 * sroce_cq_resize() - move the outstanding completions into another ring
 * @cq: queue
 * @ring: new ring with entries of the same size, which a process may have mapped
 *	already; becomes the old one
 *
 * Nothing is lost under traffic: completions keep their order and the new ring
 * starts with the consumer's index of the old one.
 *
 * Context: process, may sleep; serialised by the caller.
 * Return: 0; or, with nothing changed, -EINVAL when more completions are outstanding
 * than the new ring has entries, -EBUSY when they come faster than they are copied, or
 * -EINTR after a fatal signal.
 */
int sroce_cq_resize(struct sroce_cq *cq, struct sroce_ring *ring);

/**
 * sroce_cq_add() - add one completion
 * @cq: queue
 * @ibqp: QP whose work request completes
 * @cqe: the rest of its contents, zero where there is none; QP number and timestamp
 *	are filled in here
 * @solicited: the sender asked for an event, or the status is an error
 *
 * When the queue is armed its handler is called after the caller has dropped
 * all its locks, or when enough completions have come (sroce_cq_moderate()).
 * When the queue is full, an IB_EVENT_CQ_ERR is raised once and the completion is
 * lost; only lost, if that is what the consumer has asked for.
 *
 * Context: bottom halves off.
 * Return: false when the queue has overrun: the QP must go to ERR.
 */
bool sroce_cq_add(struct sroce_cq *cq, struct ib_qp *ibqp,
		  struct sroce_cqe *cqe, bool solicited);

/**
 * sroce_cq_add_op() - add the completion of what was done for no QP
 * @cq: a process's queue
 * @cqe: as for sroce_cq_add()
 *
 * One that does not fit is not added, and the queue does not overrun.
 *
 * Context: bottom halves off; the caller has the handler called (run.h).
 * Return: false when it does not fit, unless the consumer does not mind.
 */
bool sroce_cq_add_op(struct sroce_cq *cq, struct sroce_cqe *cqe);

/* The handler is about to be called (run.h). Context: bottom halves off */
void sroce_cq_handler_begins(struct sroce_cq *cq);

/* It has returned. Return: true when it is to be called once more. Context: as above */
bool sroce_cq_handler_ends(struct sroce_cq *cq);

/**
 * sroce_cq_moderate() - let one event stand for several completions
 * @cq: queue
 * @count: how many
 * @period: microseconds after which it comes all the same
 *
 * With a count below 2, or no period, each event comes at once. So does, in any
 * case, that for a completion in error.
 *
 * Context: process.
 */
void sroce_cq_moderate(struct sroce_cq *cq, u16 count, u16 period);

/**
 * sroce_cq_poll() - take completions, for kernel users
 * @cq: queue with !@cq->user
 * @n: most to take
 * @wc: filled in
 *
 * Context: any.
 * Return: number taken.
 */
int sroce_cq_poll(struct sroce_cq *cq, int n, struct ib_wc *wc);

/**
 * sroce_cq_arm() - ask for an event, for kernel users
 * @cq: queue with !@cq->user
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP, and IB_CQ_REPORT_MISSED_EVENTS
 *
 * Context: any.
 * Return: 1 when completions are there already and the caller wanted to know.
 */
int sroce_cq_arm(struct sroce_cq *cq, enum ib_cq_notify_flags flags);

/**
 * sroce_cq_forget() - drop the completions of a QP
 * @cq: queue with !@cq->user
 * @ibqp: QP in RESET, or dead: it adds no others
 *
 * They keep their places until the queue is polled, which has its time already, as they have
 * raised an event; and users whose QPs share a queue mostly drain them first (ib_drain_qp()),
 * so that nothing is left here. Of a process's queue its provider gives the places back.
 *
 * Context: process, may sleep.
 */
void sroce_cq_forget(struct sroce_cq *cq, const struct ib_qp *ibqp);

#endif
