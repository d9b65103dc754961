/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Events that a process does not read. ib_core keeps each in memory that is
 * charged to nobody until it is read, however many there are, and a process can
 * make as many as it likes: its completion queues are armed in its own memory.
 */
#ifndef SROCE_TRANSPORT_EVENTS_H
#define SROCE_TRANSPORT_EVENTS_H

#include <linux/list.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

/*
 * Events of one object that may wait to be read, completion or asynchronous ones: with the
 * 96 bytes of each and as many objects as a process may have it must not come to much
 */
#define SROCE_MAX_UNREAD 8

/**
 * enum sroce_events_list - is ib_core's list of unread events where we think it is?
 * @SROCE_EVENTS_FRESH: to be found out with the first event
 * @SROCE_EVENTS_FOUND: yes
 * @SROCE_EVENTS_ELSEWHERE: no
 */
enum sroce_events_list {
	SROCE_EVENTS_FRESH,
	SROCE_EVENTS_FOUND,
	SROCE_EVENTS_ELSEWHERE,
};

/**
 * struct sroce_events - the events of one object that may wait to be read
 * @raised: since the process was last seen to have read all. Several processors may
 *	raise events at once; each may let one more pass then, which does no harm.
 * @list: enum sroce_events_list
 */
struct sroce_events {
	unsigned int raised;
	int list;
};

/**
 * sroce_events_may_wait() - may one more event be raised?
 * @e: those that were
 * @unread: ib_core's list of those that were not read yet; it changes meanwhile, and
 *	only the head is looked at
 *
 * Return: false when many were raised since the list was seen empty, and it is not.
 */
bool sroce_events_may_wait(struct sroce_events *e,
			   const struct list_head *unread);

/**
 * sroce_events_may_raise_cq() - may a completion queue's handler be called?
 * @e: of its completion events
 * @cq: queue
 *
 * Not when many of its events wait to be read, and one still does: whoever reads that
 * one looks at the queue and finds what a later event would tell.
 *
 * Context: any.
 */
bool sroce_events_may_raise_cq(struct sroce_events *e, const struct ib_cq *cq);

/**
 * sroce_events_may_raise_async() - may an object raise an asynchronous event?
 * @e: of its asynchronous events
 * @uobject: @uobject of the QP or shared receive queue; NULL: it is the kernel's
 *
 * Context: any.
 */
bool sroce_events_may_raise_async(struct sroce_events *e, const void *uobject);

/**
 * sroce_events_may_raise_target() - may an XRC target raise an asynchronous event?
 * @e: of its asynchronous events
 * @real: the QP that ib_core has made, which has no uobject. Those who have opened it
 *	have handles with one each, and of these one, the maker's, gets the events.
 *
 * Context: any.
 */
bool sroce_events_may_raise_target(struct sroce_events *e, struct ib_qp *real);

#endif
