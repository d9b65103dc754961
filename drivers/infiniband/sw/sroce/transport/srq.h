/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues as the transport empties them. What ib_core calls is
 * in verbs/srq.c.
 */
#ifndef SROCE_TRANSPORT_SRQ_H
#define SROCE_TRANSPORT_SRQ_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "memory/ring.h"
#include "transport/events.h"
#include "transport/recv_ring.h"
#include "transport/tags.h"

struct sroce_cq;
struct sroce_port;
struct sroce_srq;

/**
 * struct sroce_srq_entry - where the number of an XRC queue leads
 * @rcu: freed after a grace period, which the queue itself need not wait for: a
 *	process may end thousands of them
 * @srq: queue, as long as @users is not 0
 * @xrcd: its domain
 * @id: no other queue ever has or had it; a number may be given again
 * @users: 1 and one for each packet that is using it
 */
struct sroce_srq_entry {
	struct rcu_head rcu;
	struct sroce_srq *srq;
	const struct ib_xrcd *xrcd;
	u64 id;
	refcount_t users;
};

/**
 * struct sroce_srq - shared receive queue
 * @ibsrq: what ib_core knows
 * @port: device
 * @lock: protects all below; taken by sroce_lock() with @user
 * @ring: work requests
 * @max_sge: scatter elements of a work request
 * @limit: raise IB_EVENT_SRQ_LIMIT_REACHED when fewer are left; 0: not armed
 * @user: a process owns the producer index
 * @prod: kernel producer's index, when not @user
 * @events: that may wait to be read
 * @xrcd: XRC: its domain; NULL for other queues
 * @cq: XRC and tag matching: where its work requests complete
 * @srqn: XRC: number by which requests name it
 * @entry: XRC: what its number leads to
 * @idle: completed when nobody uses it any more
 * @tags: tag matching: its buffers, NULL for other queues; and all that its QPs receive
 *	completes in @cq
 */
struct sroce_srq {
	struct ib_srq ibsrq;
	struct sroce_port *port;
	spinlock_t lock;
	struct sroce_ring ring;
	u32 max_sge;
	u32 limit;
	bool user;
	u32 prod;
	struct sroce_events events;
	const struct ib_xrcd *xrcd;
	struct sroce_cq *cq;
	u32 srqn;
	struct sroce_srq_entry *entry;
	struct completion idle;
	struct sroce_tags *tags;
};

static inline struct sroce_srq *to_sroce_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct sroce_srq, ibsrq);
}

/**
 * sroce_srq_take() - take one work request
 * @srq: queue
 * @wqe: filled in with the header and as many elements as the ring's stride has room for
 * @len: bytes that it must have room for, or it stays where it is
 *
 * Raises the limit event when it is due. The elements are a private copy, but
 * num_sge is unchecked.
 *
 * Context: bottom halves off.
 * Return: 0, -ENOENT when there was none, or -EMSGSIZE when it is too short.
 */
int sroce_srq_take(struct sroce_srq *srq, struct sroce_recv_wqe *wqe, u32 len);

/**
 * sroce_srq_look() - look at the next work request, and leave it where it is
 * @srq: queue
 * @wqe: as for sroce_srq_take()
 * @len: likewise
 * @index: set to its place, for sroce_srq_claim()
 *
 * Context: bottom halves off.
 * Return: as sroce_srq_take().
 */
int sroce_srq_look(struct sroce_srq *srq, struct sroce_recv_wqe *wqe, u32 len,
		   u32 *index);

/**
 * sroce_srq_claim() - take the work request that was looked at
 * @srq: queue
 * @index: its place
 * @limit: set to whether the limit event is due
 *
 * Context: bottom halves off.
 * Return: false when somebody else has taken it: look again.
 */
bool sroce_srq_claim(struct sroce_srq *srq, u32 index, bool *limit);

/**
 * sroce_srq_publish() - let packets find an XRC queue by its number
 * @srq: queue; @srq->xrcd and @srq->cq are set
 *
 * Context: process.
 * Return: 0 with @srq->srqn set, or a negative errno.
 */
int sroce_srq_publish(struct sroce_srq *srq);

/* End that: waits for packets that have found the queue. Context: process, may sleep. */
void sroce_srq_unpublish(struct sroce_srq *srq);

/**
 * sroce_srq_get() - find an XRC queue
 * @srqn: number
 * @xrcd: domain that it must belong to
 *
 * Context: bottom halves off, until after sroce_srq_put().
 * Return: the queue, or NULL.
 */
struct sroce_srq *sroce_srq_get(u32 srqn, const struct ib_xrcd *xrcd);
void sroce_srq_put(struct sroce_srq *srq);

/**
 * sroce_srq_match_tags() - let messages to a new queue be matched
 * @srq: a process's queue
 * @cq: where its work requests complete
 * @max: tagged buffers
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int sroce_srq_match_tags(struct sroce_srq *srq, struct sroce_cq *cq, u32 max);

/* End that, or nothing. Context: process; no QP uses the queue. */
void sroce_srq_end_tags(struct sroce_srq *srq);

/**
 * sroce_srq_tag_op() - carry out one operation on the list of tagged buffers
 * @srq: queue with tag matching
 * @op: operation, a private copy
 * @handle: set to that of a buffer that is added
 *
 * Its completion, if it has one, comes before any that follows from it. Where there is no
 * room for that in the completion queue the operation is refused, and no queue overruns.
 *
 * Context: process.
 * Return: 0; -EINVAL for an operation that makes no sense; -ENOMEM when the list or the
 * completion queue is full.
 */
int sroce_srq_tag_op(struct sroce_srq *srq, const struct sroce_tag_op *op, u32 *handle);

/**
 * sroce_srq_take_tagged() - take the work request for a message that may match
 * @srq: queue with tag matching
 * @qpn: QP that the message has come to
 * @wqe: as for sroce_srq_take(); for a rendezvous that was matched only the wr_id
 * @m: the message, as it was read; @m->matched and what depends on it is filled in
 *
 * A rendezvous whose data is longer than the buffer takes that, and is not reserved:
 * @m->handle is 0.
 *
 * Context: bottom halves off.
 * Return: 0, or -ENOENT when nothing matches and there is no ordinary receive.
 */
int sroce_srq_take_tagged(struct sroce_srq *srq, u32 qpn, struct sroce_recv_wqe *wqe,
			  struct sroce_tag_msg *m);

/**
 * sroce_srq_untake_tagged() - a message that has taken a work request does not complete
 * @srq: queue
 * @qpn: QP that the message has come to
 * @m: the message
 *
 * It was not unexpected, as the process counts; or nobody is going to read the data of
 * the rendezvous that it began. What was taken stays taken.
 *
 * Context: softirq or process.
 */
void sroce_srq_untake_tagged(struct sroce_srq *srq, u32 qpn, const struct sroce_tag_msg *m);

/* sroce_tags_claim() and sroce_tags_forget() with the lock. Context: softirq or process. */
bool sroce_srq_claim_tag(struct sroce_srq *srq, u32 handle, u32 qpn, struct sroce_tag *t);
void sroce_srq_forget_tags(struct sroce_srq *srq, u32 qpn);

/* Raise the limit event. Context: no lock held. */
void sroce_srq_limit_event(struct sroce_srq *srq);

#endif
