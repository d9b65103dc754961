// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What becomes of a request that cannot be carried out, or not yet: refused for ever,
 * "receiver not ready", or to come again.
 *
 * Whoever carries requests out (responder_place.c, responder_read.c) and who looks at
 * their order (responder.c) comes here. The consumer is told at once; for the peer
 * one NAK is owed, which responder_reply.c sends when all READ responses before it
 * have left. It then moves the QP to ERR when the request was refused for ever.
 */
#include "transport/gap.h"
#include "transport/internal.h"
#include "transport/patience.h"
#include "transport/responder_place.h"
#include "transport/responder_recv.h"
#include "transport/responder_verdict.h"
#include "transport/rnr.h"

/*
 * So often the same pages are brought in for a request, and are gone again when the peer
 * has sent it once more, before the peer is told to wait: it may count what it is asked
 * for as retries, of which it has seven at most.
 */
#define SROCE_AGAIN_MOST 3

void sroce_responder_refuse(struct sroce_qp *qp, u8 syndrome,
			    enum ib_wc_status status)
{
	struct sroce_responder *resp = &qp->resp;

	sroce_responder_owe_nak(resp, syndrome);
	resp->ack.fatal = true;
	if (syndrome == SROCE_NAK_REM_ACCESS)
		sroce_qp_count(qp, SROCE_CNT_RESP_REMOTE_ACCESS_ERRORS, 1);
	if (status == IB_WC_LOC_LEN_ERR)
		sroce_qp_count(qp, SROCE_CNT_RESP_LOCAL_LENGTH_ERROR, 1);
	if (resp->msg.have_wqe)
		sroce_recv_fail(qp, status);
	else
		sroce_qp_event(qp, syndrome == SROCE_NAK_REM_ACCESS ?
			       IB_EVENT_QP_ACCESS_ERR : IB_EVENT_QP_REQ_ERR);
}

void sroce_responder_ask_again(struct sroce_responder *resp)
{
	sroce_gap_begin(&resp->ack.gap, resp->epsn);
	sroce_responder_owe_nak(resp, SROCE_NAK_PSN_SEQ);
	resp->ack.nak_sent = true;
}

void sroce_responder_refuse_request(struct sroce_qp *qp)
{
	sroce_responder_refuse(qp, SROCE_NAK_INV_REQ, IB_WC_REM_INV_REQ_ERR);
}

void sroce_responder_refuse_access(struct sroce_qp *qp)
{
	sroce_responder_refuse(qp, SROCE_NAK_REM_ACCESS, IB_WC_LOC_ACCESS_ERR);
}

void sroce_responder_not_ready(struct sroce_qp *qp, const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;

	if (sroce_patience_begin(qp, t->psn))
		return;
	sroce_qp_count(qp, SROCE_CNT_OUT_OF_BUFFER, 1);
	sroce_responder_owe_nak(resp, sroce_responder_rnr(qp));
	resp->ack.rnr_sent = true;
	sroce_gap_begin(&resp->ack.gap, t->psn);
}

u8 sroce_responder_rnr_pages(const struct sroce_qp *qp, u64 missing)
{
	return SROCE_AETH_RNR |
	       sroce_rnr_at_least(qp->attr.min_rnr_timer,
				  max(missing, sroce_patience_limit_ns(qp)));
}

bool sroce_responder_may_tell(const struct sroce_qp *qp)
{
	return qp->attr.rnr_retry || qp->xrcd ||
	       sroce_qp_state(qp) == IB_QPS_RTR;
}

/*
 * Is the request at @psn, which misses pages, met for the first time? Pages that came after
 * the peer was told to wait, and are gone when it is back, are the first ones once more:
 * while a process loses them again and again, only a peer that is asked as soon as they
 * are there finds them.
 */
static bool sroce_verdict_begins(struct sroce_fault *f, u32 psn)
{
	bool again = f->fresh && f->same;
	bool back = f->fresh && f->told;

	f->fresh = false;
	f->told = false;
	if (!f->since || f->psn != psn) {
		f->again = 0;
		return true;
	}
	if (again && f->again < U8_MAX)
		f->again++;
	return back;
}

/*
 * Is the peer to be told that pages are missing? At first it is not: most are there before
 * a peer becomes impatient. Who hears nothing for long uses up its retries, though, when
 * swap brings pages slowly, or takes them away again each time.
 */
static bool sroce_verdict_stalls(struct sroce_qp *qp, u32 psn, u64 now)
{
	struct sroce_fault *f = &qp->resp.half.fault;

	if (sroce_verdict_begins(f, psn)) {
		f->since = now;
		f->psn = psn;
		return false;
	}
	f->told = sroce_responder_may_tell(qp) &&
		  (f->again >= SROCE_AGAIN_MOST ||
		   now >= f->since + sroce_patience_limit_ns(qp));
	return f->told;
}

void sroce_responder_await_pages(struct sroce_qp *qp,
				 const struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_fault *f = &resp->half.fault;
	u64 now = ktime_get_ns();
	bool stalls = sroce_verdict_stalls(qp, t->psn, now);

	resp->ack.rnr_sent = true;
	sroce_gap_begin(&resp->ack.gap, t->psn);
	sroce_place_awaits(&resp->msg, t);
	/* One that comes again this soon was repeated by the network, or is a probe */
	f->waiting = !stalls;
	if (stalls)
		sroce_responder_owe_nak(resp, sroce_responder_rnr_pages(qp, now - f->since));
}

/* Is an RNR NAK owed, which waits for READ responses before it? */
static bool sroce_verdict_owes_rnr(const struct sroce_responder *resp)
{
	return resp->ack.state == SROCE_ACK_NAK &&
	       (resp->ack.syndrome & SROCE_AETH_KIND) == SROCE_AETH_RNR;
}

void sroce_responder_pages_come(struct sroce_responder *resp)
{
	struct sroce_fault *f = &resp->half.fault;
	bool asks = f->waiting || (f->told && sroce_verdict_owes_rnr(resp));

	f->waiting = false;
	if (asks && !resp->ack.fatal)
		sroce_responder_owe_nak(resp, SROCE_NAK_PSN_SEQ);
}
