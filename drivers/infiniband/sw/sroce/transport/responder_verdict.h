/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What becomes of a request: accepted, refused for ever, or to come again. The
 * answer that it makes owed leaves when the half runs (responder_reply.h).
 */
#ifndef SROCE_TRANSPORT_RESPONDER_VERDICT_H
#define SROCE_TRANSPORT_RESPONDER_VERDICT_H

#include "transport/qp.h"

/* Owe the peer a NAK, instead of what was owed before. Context: responder lock held. */
static inline void sroce_responder_owe_nak(struct sroce_responder *resp,
					   u8 syndrome)
{
	resp->ack.state = SROCE_ACK_NAK;
	resp->ack.syndrome = syndrome;
}

/* An ACK that says nothing new does not become one that does when PSNs come round */
#define SROCE_ACK_OLD 0x400000U

/*
 * An ACK is never about a READ or atomic, which its response acknowledges: rdma_rxe would
 * take that for the answer, and complete it without data.
 */
static inline void sroce_responder_note_end(struct sroce_responder *resp, u8 op)
{
	if (op == SROCE_OP_SEND || op == SROCE_OP_WRITE)
		resp->ack.end = resp->epsn;
	else if (((resp->epsn - resp->ack.end) & SROCE_PSN_MASK) > SROCE_ACK_OLD)
		resp->ack.end = sroce_psn_add(resp->epsn, -SROCE_ACK_OLD);
}

/**
 * sroce_responder_accept() - a request was carried out
 * @qp: QP of a type that is acknowledged
 * @t: train
 * @npsn: PSNs that it takes: its packets, or those of its response
 *
 * On the path of every request, and so inline. Context: responder lock held.
 */
static inline void sroce_responder_accept(struct sroce_qp *qp,
					  const struct sroce_train *t, u32 npsn)
{
	struct sroce_responder *resp = &qp->resp;

	resp->epsn = sroce_psn_add(resp->epsn, npsn);
	sroce_responder_note_end(resp, t->op);
	if (t->flags & SROCE_END)
		resp->msn = (resp->msn + 1) & SROCE_PSN_MASK;
	if (t->flags & SROCE_ACKREQ)
		resp->ack.state = SROCE_ACK_OWED;
}

/**
 * sroce_responder_refuse() - refuse a request that cannot be carried out
 * @qp: QP of a type that is acknowledged
 * @syndrome: of the NAK: a SROCE_NAK_x that ends the connection
 * @status: for the receive work request in use
 *
 * NAK, and ERR once that has left; no other request is taken until then. The
 * receive work request in use, if any, says why; otherwise an event does
 * (IBA 9.9.3, C9-222.1).
 *
 * Context: responder lock held.
 */
void sroce_responder_refuse(struct sroce_qp *qp, u8 syndrome,
			    enum ib_wc_status status);

/* NAK a request that is invalid; the QP goes to ERR */
void sroce_responder_refuse_request(struct sroce_qp *qp);

/* NAK a request whose key must not be used so; the QP goes to ERR */
void sroce_responder_refuse_access(struct sroce_qp *qp);

/**
 * sroce_responder_not_ready() - a request finds no receive work request
 * @qp: QP
 * @t: request
 *
 * It waits for one for a moment (patience.h); then the peer is told, by an RNR NAK,
 * and what comes behind it is dropped.
 *
 * Context: responder lock held.
 */
void sroce_responder_not_ready(struct sroce_qp *qp,
			       const struct sroce_train *t);

/* "Receiver not ready": the syndrome, with the time that the peer is to wait */
static inline u8 sroce_responder_rnr(const struct sroce_qp *qp)
{
	return SROCE_AETH_RNR | (qp->attr.min_rnr_timer & 0x1f);
}

/**
 * sroce_responder_rnr_pages() - the same, where pages are missing
 * @qp: QP
 * @missing: since so many ns
 *
 * A peer counts how often it is told, while it is the process here that says how often
 * pages are missing. So it is to wait as long again as it had to.
 *
 * Return: syndrome
 */
u8 sroce_responder_rnr_pages(const struct sroce_qp *qp, u64 missing);

/**
 * sroce_responder_may_tell() - may the peer be told that pages are missing?
 * @qp: QP
 *
 * To whom a receiver has to be ready (rnr_retry 0) the connection would be lost by that,
 * and by silence perhaps not. What the peer has set is not known. Both sides often set
 * the same, so ours says it, if it was set: in RTR, and for an XRC target, it was not.
 */
bool sroce_responder_may_tell(const struct sroce_qp *qp);

/**
 * sroce_responder_await_pages() - the pages of a request are being brought in
 * @qp: QP, whose half has met -EAGAIN (fault.h)
 * @t: request
 *
 * It is dropped, as is what comes behind it. When the pages are there the peer is asked
 * for it (sroce_responder_pages_come()). If it sends it again before,
 * sroce_patience_limit_ns() or more after the first time, or finds the same pages gone
 * several times, it is told to wait, and is not asked.
 *
 * Context: responder lock held.
 */
void sroce_responder_await_pages(struct sroce_qp *qp,
				 const struct sroce_train *t);

/*
 * The awaited pages are there, or will be an error: the peer is asked for its request, if it
 * was not told to wait. Context: responder lock held.
 */
void sroce_responder_pages_come(struct sroce_responder *resp);

/* The expected request was lost: NAK, and drop what is still under way behind it */
void sroce_responder_ask_again(struct sroce_responder *resp);

#endif
