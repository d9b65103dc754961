/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * SENDs and RDMA WRITEs: what responder.c has carried out, and the steps of it that
 * uc.c takes as well.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_PLACE_H
#define SROCE_TRANSPORT_RESPONDER_PLACE_H

#include "transport/qp.h"

/**
 * sroce_responder_execute_send() - carry out a train of a SEND
 * @qp: QP of a type that is acknowledged
 * @t: train; the next in order, and its opcode fits the message in progress
 *
 * Takes a receive work request when the message begins, and completes it when it
 * ends. Where something is wrong, or not there yet, the verdict says so (see
 * responder_verdict.h) and nothing is accepted.
 *
 * Context: responder lock held.
 */
void sroce_responder_execute_send(struct sroce_qp *qp, struct sroce_train *t);

/* Carry out a train of an RDMA WRITE; only immediate data takes a receive work request */
void sroce_responder_execute_write(struct sroce_qp *qp, struct sroce_train *t);

/**
 * sroce_place_awaits() - a request waits for pages
 * @msg: message that it belongs to
 * @t: request
 *
 * What of it sroce_place_misses_more() is to look for is noted. Context: responder lock
 * held.
 */
void sroce_place_awaits(struct sroce_resp_msg *msg,
			const struct sroce_train *t);

/**
 * sroce_place_misses_more() - does the SEND that waits for pages miss others?
 * @qp: QP; what it has missed was brought in
 *
 * The elements of its receive work request may lie anywhere, and fault.c has one range
 * brought in at a time. The peer is asked for a train once, and not for each of them: it
 * may count that as retries. A packet's pages are enough, as when it is placed.
 *
 * Context: responder lock held.
 * Return: true when others are being brought in: once for each element at most.
 */
bool sroce_place_misses_more(struct sroce_qp *qp);

/* Has every packet of the train the length that its place asks for? */
bool sroce_place_length_ok(const struct sroce_qp *qp,
			   const struct sroce_train *t);

/* Is the payload what the RETH of an RDMA WRITE has announced? */
bool sroce_place_write_length_ok(const struct sroce_responder *resp,
				 const struct sroce_train *t);

/**
 * sroce_place_write_begin() - begin an RDMA WRITE
 * @qp: QP
 * @t: its first train
 * @check: bytes of the range to check now: all of it, or none when the caller is
 *	going to place all of it, which checks as well
 *
 * Context: responder lock held.
 * Return: 0; -EBADMSG when the QP does not take such a request; an errno of
 * sroce_mr_use() when the key must not be used.
 */
int sroce_place_write_begin(struct sroce_qp *qp, const struct sroce_train *t,
			    u32 check);

/*
 * A train of an RDMA WRITE is in place. What counts, or tells somebody, is done here
 * and not before: a train whose pages are missing comes again, or never.
 */
void sroce_place_write_done(struct sroce_qp *qp, const struct sroce_train *t);

/**
 * sroce_place_sges() - copy the payload of a SEND to the receive work request taken
 * @qp: QP
 * @t: train; @t->bi is then what was not copied of it
 * @least: bytes that will do when pages are missing, at least an MTU, as @least in
 *	struct sroce_gather; what is copied then is whole packets
 *
 * Context: responder lock held.
 * Return: 0, or an errno of sroce_gather_rkey(), with nothing copied.
 */
int sroce_place_sges(struct sroce_qp *qp, struct sroce_train *t, u32 least);

/*
 * What becomes of a train that needs a receive work request, which could not be taken
 * (@err: of sroce_recv_take(), or -EBADMSG: it makes no sense)
 */
void sroce_place_no_receive(struct sroce_qp *qp, struct sroce_train *t, int err);

/**
 * sroce_place_invalidated() - a SEND is in place that invalidates a key
 * @qp: QP
 * @t: its last train
 *
 * While the region is still being copied to or from the message is not complete: the peer
 * is asked for this train again, which is placed again, in whatever pieces it comes then.
 * The key is invalidated once.
 *
 * Context: responder lock held.
 * Return: false when that is so, or the key is not to be invalidated, which was refused.
 */
bool sroce_place_invalidated(struct sroce_qp *qp, const struct sroce_train *t);

/* A train of a SEND is in place: it is accepted, and the message complete at its end */
void sroce_place_send_done(struct sroce_qp *qp, struct sroce_train *t);

/* As sroce_place_sges(): the payload of an RDMA WRITE to the region that it names */
int sroce_place_rkey(struct sroce_qp *qp, struct sroce_train *t, u32 least);

#endif
