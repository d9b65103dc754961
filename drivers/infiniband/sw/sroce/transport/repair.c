// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the peer misses is sent again, and no more than that.
 *
 * IBA knows one answer to a gap: a NAK that names the first missing PSN, after which a
 * requester sends everything again (retransmit.c). A responder that has kept what came
 * behind the gap (hold.c) has all of that twice. So a requester sends only a part again
 * and then goes on where it was. Nothing on the wire says whether the peer keeps
 * anything, but the next answer does: it is about something behind that part, if the
 * rest was kept.
 *
 * If it is not, the gap was larger, or the peer keeps nothing. Then twice as much is sent
 * again, and after some of those in vain the peer is one that keeps nothing. How large
 * gaps are, a packet or a buffer of many, depends on the network: the part becomes
 * smaller whenever it was enough.
 *
 * Only SENDs and RDMA WRITEs are left out. With a READ or an atomic in flight, whose
 * responses are in the order of the requests, everything is sent again.
 */
#include "transport/internal.h"
#include "transport/repair.h"
#include "transport/requester.h"
#include "transport/retransmit.h"

/* Packets that are sent again for the first gap, and at most */
#define SROCE_REPAIR_FIRST 8
#define SROCE_REPAIR_MOST 256

/* So often in a row more was missing: the peer keeps nothing */
#define SROCE_REPAIR_VAIN_MOST 8

void sroce_repair_reset(struct sroce_requester *req)
{
	req->repair = (struct sroce_repair){ .size = SROCE_REPAIR_FIRST };
}

static bool sroce_repair_may(const struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;

	/* What was sent again is missing again, or is being sent again now */
	if (req->repair.active ||
	    (req->recovering && req->recover == req->una_psn))
		return false;
	return READ_ONCE(qp->port->recovery.selective_repeat_en) &&
	       req->repair.vain < SROCE_REPAIR_VAIN_MOST && !req->rd_outstanding;
}

void sroce_repair_begin(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_repair *r = &req->repair;
	u32 send = req->send, psn = req->send_psn;
	u32 sent = sroce_requester_outstanding(req);
	bool may = sroce_repair_may(qp);
	/* Something is to be left that tells whether that was enough */
	u32 n = min(r->size, sent / 2);

	sroce_requester_rewind(qp);
	r->expected = false;
	if (!may || !n)
		return;
	if (!sroce_repair_is_known_loss(req))
		r->lost_until = req->next_psn;
	r->lossy = true;
	r->active = true;
	r->end = sroce_psn_add(req->una_psn, n);
	r->send = send;
	r->send_psn = psn;
}

void sroce_repair_go_on(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_repair *r = &req->repair;

	if (sroce_psn_diff(req->send_psn, r->end) < 0)
		return;
	r->active = false;
	/* ACKs may have come further meanwhile */
	if (sroce_psn_diff(r->send_psn, req->send_psn) <= 0)
		return;
	r->asked = true;
	req->send = r->send;
	req->send_psn = r->send_psn;
	/* When an ACK was faster than what was to be sent again nothing was in flight before */
	sroce_requester_arm(qp);
}

bool sroce_repair_answered(struct sroce_qp *qp, bool nak)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_repair *r = &req->repair;
	s32 further = sroce_psn_diff(req->una_psn, r->end);

	if (further < 0)
		return false;
	r->asked = false;
	if (further > 0) {
		r->vain = 0;
		r->size = max(r->size - max(r->size / 8, 1), 1);
		return false;
	}
	r->vain++;
	r->size = min(2 * r->size, SROCE_REPAIR_MOST);
	/* After an ACK it may be that nothing else comes, or a NAK that says what we know */
	if (nak)
		return false;
	sroce_requester_go_back(qp);
	r->expected = true;
	return true;
}

bool sroce_repair_is_known_loss(const struct sroce_requester *req)
{
	return req->repair.lossy &&
	       sroce_psn_diff(req->una_psn, req->repair.lost_until) < 0;
}
