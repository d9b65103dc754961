/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The responder: requests of a connected QP, from receive.c to memory and
 * completions.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_H
#define SROCE_TRANSPORT_RESPONDER_H

#include "transport/qp.h"

/**
 * sroce_responder_request() - take one request of a connected QP
 * @qp: QP
 * @t: request
 *
 * Context: responder lock held. The caller runs sroce_responder_reply()
 * afterwards.
 */
void sroce_responder_request(struct sroce_qp *qp, struct sroce_train *t);

/* sroce_half.run of the responder */
bool sroce_responder_run(struct sroce_half *half);

/**
 * sroce_recv_take_for() - take the next receive work request into resp->wqe
 * @qp: QP
 * @len: bytes of a message that must fit, or the work request stays where it is
 *
 * Context: responder lock held.
 * Return: 0, -ENOENT when there is none, -EMSGSIZE when it is too short, -EINVAL
 * when it is malformed (it is taken then all the same).
 */
int sroce_recv_take_for(struct sroce_qp *qp, u32 len);

/* Likewise, however short it is */
static inline int sroce_recv_take(struct sroce_qp *qp)
{
	return sroce_recv_take_for(qp, 0);
}

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
 * Sets resp->srq_limit where sroce_recv_take_for() raises the event.
 */
bool sroce_recv_claim(struct sroce_qp *qp);

/* Complete the receive work request taken; @cqe has all but wr_id and qpn */
void sroce_recv_complete(struct sroce_qp *qp, struct sroce_cqe *cqe,
			 bool solicited);

/* Carry out a request that is the next in order */
void sroce_execute(struct sroce_qp *qp, struct sroce_train *t);

/* What the QP waits for was lost: NAK, and drop what is still under way */
void sroce_ask_again(struct sroce_responder *resp);

/* NAK a request that is invalid; the QP goes to ERR */
void sroce_refuse_request(struct sroce_qp *qp);

/* Complete the receive work request taken, with an error */
void sroce_recv_fail(struct sroce_qp *qp, enum ib_wc_status status);

/* Does its state let the QP take requests? */
bool sroce_takes_requests(const struct sroce_qp *qp);

/* A request has come: raise IB_EVENT_COMM_EST when that is news */
void sroce_established(struct sroce_qp *qp);

/* Does the train go on with the current message, or begin one between two? */
bool sroce_sequence_ok(const struct sroce_responder *resp,
		       const struct sroce_train *t);

/* Has every packet of the train the length that its place asks for? */
bool sroce_length_ok(const struct sroce_qp *qp, const struct sroce_train *t);

/* Is the payload what the RETH of an RDMA WRITE has announced? */
bool sroce_write_length_ok(const struct sroce_responder *resp,
			   const struct sroce_train *t);

/**
 * sroce_write_begin() - begin an RDMA WRITE
 * @qp: QP
 * @t: its first train
 * @check: bytes of the range to check now: all of it, or none when the caller is
 *	going to place all of it, which checks as well
 *
 * Context: responder lock held.
 * Return: 0; -EBADMSG when the QP does not take such a request; an errno of
 * sroce_mr_get() when the key must not be used.
 */
int sroce_write_begin(struct sroce_qp *qp, const struct sroce_train *t,
		      u32 check);

/*
 * A train of an RDMA WRITE is in place. What counts, or tells somebody, is done here
 * and not before: a train whose pages are missing comes again, or never.
 */
void sroce_write_taken(struct sroce_qp *qp, const struct sroce_train *t);

/* Copy payload to the receive work request taken, or to the region of a WRITE */
int sroce_place_sges(struct sroce_qp *qp, struct sroce_train *t);
int sroce_place_rkey(struct sroce_qp *qp, struct sroce_train *t);

/* The message that ends with @t is complete, and has a receive work request */
void sroce_message_received(struct sroce_qp *qp, const struct sroce_train *t,
			    u8 opcode, u32 len);

/* Forget the message in progress and every queued answer */
void sroce_responder_reset(struct sroce_responder *resp);

#endif
