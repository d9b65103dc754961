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
 * again, a few times; then everything is. A peer of which this is true at one loss after
 * the other is one that keeps nothing, and is tried again only now and then. How large
 * gaps are, a packet or a buffer of many, depends on the network: the part becomes
 * smaller whenever it was enough. It is two packets at least: if the first is lost
 * again, the peer can tell by the second one.
 *
 * (Where the path is long, and there are many gaps in a flight, the part is larger: far.c.)
 *
 * Only SENDs and RDMA WRITEs are left out. With anything in flight that has a response of
 * its own (READ, atomic, FLUSH), and these are in the order of the requests, everything is
 * sent again.
 *
 * retransmit.c comes here with each gap that is told of, requester.c before each train,
 * and requester_response.c with what the peer answers.
 */
#include "transport/far.h"
#include "transport/internal.h"
#include "transport/queueing.h"
#include "transport/repair.h"
#include "transport/requester.h"
#include "transport/retransmit.h"
#include "transport/window.h"

/* Packets that are sent again for the first gap, and at most */
#define SROCE_REPAIR_FIRST 8
#define SROCE_REPAIR_MOST 256
/* ... and at least */
#define SROCE_REPAIR_LEAST 2

/* Parts that are sent again for one loss, each in vain, before everything is */
#define SROCE_REPAIR_TRIES 4

/* So many losses in a row for which none was enough: the peer keeps nothing */
#define SROCE_REPAIR_VAIN_MOST 8
/* ... and is tried again after so many more: it may only have been out of memory */
#define SROCE_REPAIR_VAIN_REST 64

void sroce_repair_reset(struct sroce_requester *req)
{
	req->repair = (struct sroce_repair){ .size = SROCE_REPAIR_FIRST };
}

bool sroce_repair_may(const struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;

	/* What was sent again is missing again, or is being sent again now (far.c knows better) */
	if (!sroce_queueing_path_is_long(req) &&
	    (req->repair.active ||
	     (req->recovering && req->recover == req->una_psn)))
		return false;
	/*
	 * On a long path the part that is sent for a gap grows until it is all that is missing: to
	 * give up before would cost half of the window for each gap that is left
	 */
	return READ_ONCE(qp->port->recovery.selective_repeat_en) &&
	       req->repair.vain < SROCE_REPAIR_VAIN_MOST &&
	       (sroce_queueing_path_is_long(req) ||
		req->repair.tries < SROCE_REPAIR_TRIES) && !req->rd_outstanding;
}

/*
 * Everything is sent again. With a peer that keeps nothing such losses are counted, until
 * a part is tried again.
 */
static void sroce_repair_count_whole(struct sroce_repair *r)
{
	if (r->vain < SROCE_REPAIR_VAIN_MOST)
		return;
	r->vain++;
	if (r->vain == SROCE_REPAIR_VAIN_MOST + SROCE_REPAIR_VAIN_REST)
		r->vain = SROCE_REPAIR_VAIN_MOST - 1;
}

/* A first gap: others before the end of what is in flight belong to the same loss */
static void sroce_repair_new_loss(struct sroce_requester *req, u32 sent)
{
	req->repair.lossy = true;
	req->repair.lost_until = req->next_psn;
	sroce_far_new_loss(req, sent);
}

/* Packets that are sent again for a gap, with @sent in flight */
static u32 sroce_repair_part(const struct sroce_requester *req, u32 sent)
{
	if (sroce_queueing_path_is_long(req))
		return sroce_far_part(req, req->repair.size, sent);
	/* Something is to be left that tells whether that was enough */
	return min(req->repair.size, sent / 2);
}

/*
 * Put the cursor back, for all or a part, and note in @r where it goes on. If a part is being sent
 * again already, that is where it was before.
 * Return: packets in flight before that
 */
static u32 sroce_repair_go_back(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_repair *r = &req->repair;

	if (!r->active || sroce_psn_diff(r->send_psn, req->send_psn) < 0) {
		r->send = req->send;
		r->send_psn = req->send_psn;
	}
	sroce_requester_rewind(qp);
	return (r->send_psn - req->una_psn) & SROCE_PSN_MASK;
}

void sroce_repair_begin(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_repair *r = &req->repair;
	bool may = sroce_repair_may(qp);
	u32 end = r->end, sent = sroce_repair_go_back(qp), n;

	if (may && r->lossy && sroce_queueing_path_is_long(req))
		sroce_far_next_gap(qp, end);
	n = sroce_repair_part(req, sent);
	if (!may || n < SROCE_REPAIR_LEAST) {
		sroce_far_all_again(req);
		sroce_repair_count_whole(r);
		return;
	}
	if (!r->lossy)
		sroce_repair_new_loss(req, sent);
	r->active = true;
	r->end = sroce_psn_add(req->una_psn, n);
	sroce_far_part_begins(req);
	sroce_window_repairs(req, sroce_psn_add(req->una_psn, min(n, r->size)), sent);
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
	/* ACKs may have come for all of the part, and nothing being in flight no timer runs */
	sroce_requester_arm(qp);
}

void sroce_repair_loss_goes_on(struct sroce_qp *qp)
{
	struct sroce_repair *r = &qp->req.repair;

	if (sroce_queueing_path_is_long(&qp->req))
		sroce_far_progress(qp);
	if (sroce_psn_diff(qp->req.una_psn, r->lost_until) < 0)
		return;
	r->lossy = false;
	r->tries = 0;
}

static void sroce_repair_was_enough(struct sroce_repair *r)
{
	r->tries = 0;
	r->vain = 0;
	r->size = max(r->size - max(r->size / 8, 1), SROCE_REPAIR_LEAST);
}

static void sroce_repair_was_not_enough(struct sroce_repair *r)
{
	if (!r->tries++)
		r->vain++;
	r->size = min(2 * r->size, SROCE_REPAIR_MOST);
}

bool sroce_repair_answered(struct sroce_qp *qp, u8 kind)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_repair *r = &req->repair;
	s32 further = sroce_psn_diff(req->una_psn, r->end);

	if (further < 0)
		return false;
	r->asked = false;
	/* A receiver that is not ready has dropped what it kept: no word on whether it had */
	if (kind == SROCE_AETH_RNR)
		return false;
	if (further > 0) {
		sroce_repair_was_enough(r);
		return false;
	}
	sroce_repair_was_not_enough(r);
	/* Behind an ACK maybe no NAK follows; one that does says nothing new (@expected) */
	if (kind == SROCE_AETH_NAK)
		return false;
	sroce_requester_go_back(qp);
	r->expected = true;
	return true;
}

bool sroce_repair_goes_on(const struct sroce_qp *qp)
{
	return qp->req.repair.lossy && sroce_repair_may(qp);
}
