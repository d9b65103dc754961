/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Trains that wait for a half of a QP: from QPs of this host, and those of the
 * network that are kept while a request waits. The half takes them when it runs.
 */
#ifndef SROCE_TRANSPORT_INBOX_H
#define SROCE_TRANSPORT_INBOX_H

#include "transport/qp.h"

/* Trains from QPs of this host that may wait in an inbox */
#define SROCE_INBOX_MAX 8192

struct sroce_parcel;

/* Take the first train. Only for sroce_inbox_next(), which has seen that there is one */
struct sroce_parcel *sroce_inbox_take(struct sroce_half *half);

/*
 * Next train of an inbox, or NULL. Each half that runs asks; one whose peer is not of
 * this host never finds any. Context: @half's lock held.
 */
static inline struct sroce_parcel *sroce_inbox_next(struct sroce_half *half)
{
	return list_empty(&half->inbox) ? NULL : sroce_inbox_take(half);
}

struct sroce_train *sroce_parcel_train(struct sroce_parcel *p);
/* NULL: it came from the network */
struct sroce_path *sroce_parcel_path(struct sroce_parcel *p);
/* Bytes, as sroce_inbox_keep() returned them; 0: it came from a QP of this host */
u32 sroce_parcel_kept(const struct sroce_parcel *p);
/* Bytes that a train counts as in a turn: see turn.h */
u32 sroce_parcel_cost(const struct sroce_parcel *p);
/* Was it sent by the QP that @qp is connected to? For a datagram QP always true */
bool sroce_parcel_from_peer(const struct sroce_qp *qp,
			    const struct sroce_parcel *p);
void sroce_parcel_free(struct sroce_parcel *p);

/**
 * sroce_inbox_keep() - copy a train from the network into an inbox
 * @half: responder
 * @t: train; the QP takes it, whoever has sent it
 * @room: bytes of memory it may take
 *
 * Context: @half's lock held.
 * Return: bytes it takes, 0 when there is no room or no memory.
 */
u32 sroce_inbox_keep(struct sroce_half *half, const struct sroce_train *t,
		     u32 room);

/* Put back what sroce_inbox_next() gave, as the next one. Context: @half's lock held. */
void sroce_inbox_return(struct sroce_half *half, struct sroce_parcel *p);

/**
 * sroce_inbox_recalled() - does a sender want back what it has lent to an inbox?
 * @half: responder
 * @p: what sroce_inbox_next() gave
 *
 * It does when its QP has failed, was reset or is being destroyed, or when somebody
 * waits to deregister a region that something in the inbox points to. A connected QP
 * has one sender, so one train tells of its QP.
 *
 * Context: @half's lock held.
 */
bool sroce_inbox_recalled(struct sroce_half *half, const struct sroce_parcel *p);

/* Forget what waits for a half of a QP that is dead. Context: process. */
void sroce_half_purge(struct sroce_half *half);

/* Likewise a part of it, with bottom halves off. Return: true when there is more. */
bool sroce_half_purge_some(struct sroce_half *half);

#endif
