/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Receive work requests of a QP: those who place messages (responder_place.c, uc.c,
 * datagram.c) take one and complete it.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_RECV_H
#define SROCE_TRANSPORT_RESPONDER_RECV_H

#include "transport/qp.h"

/**
 * sroce_recv_take_for() - take the next receive work request into resp->msg.wqe
 * @qp: QP
 * @len: bytes of a message that must fit, or the work request stays where it is
 *
 * Context: responder lock held.
 * Return: 0, -ENOENT when there is none, -EMSGSIZE when it is too short, -EINVAL
 * when it is malformed (it is taken then all the same).
 */
int sroce_recv_take_for(struct sroce_qp *qp, u32 len);

/* Take the next receive work request, however short it is */
static inline int sroce_recv_take(struct sroce_qp *qp)
{
	return sroce_recv_take_for(qp, 0);
}

/**
 * sroce_recv_take_tagged() - take the receive work request for a message that may match
 * @qp: QP with tag matching; @qp->tag is the message
 *
 * Context: responder lock held.
 * Return: as sroce_recv_take_for().
 */
int sroce_recv_take_tagged(struct sroce_qp *qp);

/**
 * sroce_recv_look_for() - look at the next receive work request
 * @qp: QP that has taken none
 * @len: as for sroce_recv_take_for()
 *
 * One of a queue that is shared is everybody's until sroce_recv_claim(); one of the
 * QP's own is taken.
 *
 * Context: responder lock held.
 * Return: as sroce_recv_take_for().
 */
int sroce_recv_look_for(struct sroce_qp *qp, u32 len);

/*
 * Take what was looked at; false when another QP has, and this one is to look again.
 * Sets resp->msg.srq_limit where sroce_recv_take_for() raises the event.
 */
bool sroce_recv_claim(struct sroce_qp *qp);

/* Complete the receive work request taken; @cqe has all but wr_id and qpn */
void sroce_recv_complete(struct sroce_qp *qp, struct sroce_cqe *cqe,
			 bool solicited);

/* Complete the receive work request taken, with an error */
void sroce_recv_fail(struct sroce_qp *qp, enum ib_wc_status status);

/* The message that ends with @t is complete, and has a receive work request */
void sroce_recv_complete_message(struct sroce_qp *qp,
				 const struct sroce_train *t, u8 opcode,
				 u32 len);

#endif
