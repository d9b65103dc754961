// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two QPs that talk to each other while somebody sends hostile packets to both,
 * and the checks of what they may never do.
 */
#include <linux/delay.h>

#include "compat.h"
#include "tests/fuzz_pen.h"
#include "transport/fault.h"

/* --- trouble --------------------------------------------------------------- */

static void to_rts_again(struct pen_side *ps)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };

	side_modify(ps->s, &attr, IB_QP_STATE);
}

static void trouble(struct pen *pen)
{
	struct pen_side *ps = &pen->side[fuzz_below(&pen->f->rnd, 2)];

	switch (fuzz_below(&pen->f->rnd, 32)) {
	case 0:
		if (side_state(ps->s) == IB_QPS_RTS)
			side_to_sqd(ps->s, true);
		else if (side_state(ps->s) == IB_QPS_SQD ||
			 side_state(ps->s) == IB_QPS_SQE)
			to_rts_again(ps);
		break;
	case 1:
		side_to_error(ps->s);
		break;
	case 2 ... 8:
		pen_lose_pages(pen, ps);
		break;
	case 9 ... 10:
		side_grow_old(ps->s);
		break;
	case 11 ... 16:
		side_ask(ps->s);
		break;
	default:
		side_expire(ps->s);
	}
}

/*
 * Whoever waits for an answer has a timer, or somebody who is about to run; and
 * nobody waits for what was never sent.
 */
static void check_waits(struct pen *pen, struct pen_side *ps)
{
	struct sroce_qp *qp = ps->s->qp;
	struct sroce_requester *req = &qp->req;
	bool alive, acked, in_flight;
	u32 outstanding;

	if (!qp->kind->acked || qp->state != IB_QPS_RTS)
		return;
	spin_lock_bh(&req->half.lock);
	alive = req->deadline || req->half.queued || req->half.starved ||
		req->half.fault.waiting || sroce_fault_is_running(&req->half);
	in_flight = req->una_psn != req->send_psn || req->rnr_wait;
	acked = sroce_psn_diff(req->una_psn, req->next_psn) <= 0;
	outstanding = req->rd_outstanding;
	spin_unlock_bh(&req->half.lock);
	pen_check(pen, alive || !in_flight, "packets in flight without a timer",
		  req->una_psn, req->send_psn);
	pen_check(pen, acked, "more is acknowledged than was sent",
		  req->una_psn, req->next_psn);
	pen_check(pen, in_flight || !outstanding,
		  "READs outstanding and nothing in flight", outstanding, 0);
}

static bool expire(struct pen *pen)
{
	bool first = fuzz_one_in(&pen->f->rnd, 2);

	return side_ask(pen->side[first].s) || side_ask(pen->side[!first].s) ||
	       side_expire(pen->side[first].s) || side_expire(pen->side[!first].s);
}

/* --- lives ----------------------------------------------------------------- */

static bool is_quiet(const struct pen *pen)
{
	int i;

	for (i = 0; i < 2; i++)
		if (pen->side[i].posted != pen->side[i].done || pen->side[i].reads)
			return false;
	return true;
}

static void keep_receiving(struct pen *pen)
{
	struct pen_side *ps;
	int i;

	for (i = 0; i < 2; i++) {
		ps = &pen->side[i];
		pen_read_tagged(pen, ps);
		if (pen_receives(ps) && side_state(ps->s) != IB_QPS_RESET &&
		    side_state(ps->s) != IB_QPS_ERR &&
		    ps->recvs - ps->seen < PEN_DEPTH)
			pen_post_recv(pen, ps);
	}
}

/*
 * Two QPs whose PSNs the attacker has moved apart tell each other about the gap
 * again and again. Time does not pass here by itself, so it ends by the packets
 * being lost, and then by retries.
 */
static bool talk(struct pen *pen, u32 *turns)
{
	if (++*turns < 500)
		return pen_deliver(pen, false) | pen_poll(pen);
	fake_net_purge(&pen->p->net);
	*turns = 0;
	return false;
}

/* Everything completes by itself, with success or an error */
static void drain(struct pen *pen)
{
	u32 idle = 0, expired = 0, turns = 0;
	int i;

	for (i = 0; i < 2; i++)
		if (side_state(pen->side[i].s) == IB_QPS_SQD)
			to_rts_again(&pen->side[i]);
	while (!is_quiet(pen) && !pen->f->failed) {
		keep_receiving(pen);
		if (talk(pen, &turns)) {
			idle = 0;
		} else if (!pair_paced(pen->p) && expire(pen)) {
			expired++;
			pen_check(pen, expired < 2000, "never ends", expired, 0);
			/* Whoever brings pages in needs the processor */
			if (pen->kind->demand)
				usleep_range(20, 50);
		} else {
			/* Pages come, a tasklet is to go on, or a rate holds */
			usleep_range(20, 50);
			idle++;
			pen_check(pen, idle < 5000, "hangs", pen->side[0].done,
				  pen->side[1].done);
		}
	}
}

/* What has arrived but for its ACKs, too */
static void drain_calm(struct pen *pen)
{
	u32 turns = 0;

	drain(pen);
	while (talk(pen, &turns))
		;
	pen_check(pen, pen->side[0].arrived == pen->side[0].promised,
		  "message lost", pen->side[0].arrived, pen->side[0].promised);
	pen_check(pen, pen->side[1].arrived == pen->side[1].promised,
		  "message lost", pen->side[1].arrived, pen->side[1].promised);
}

static void flush(struct pen *pen)
{
	u32 tries = 0;
	int i;

	for (i = 0; i < 2; i++)
		side_to_error(pen->side[i].s);
	while (!pen->f->failed && !(pen_is_flushed(&pen->side[0]) &&
				    pen_is_flushed(&pen->side[1]))) {
		if (pen_poll(pen))
			continue;
		usleep_range(20, 50);
		pen_check(pen, ++tries < 5000, "is not flushed",
			  pen->side[0].recvs - pen->side[0].seen,
		      pen->side[1].recvs - pen->side[1].seen);
	}
}

/* Reset has dropped what was posted, and a shared queue is emptied here */
static void forget(struct pen *pen, struct pen_side *ps)
{
	struct {
		struct sroce_recv_wqe wqe;
		struct sroce_sge sge[4];
	} one;

	local_bh_disable();
	while (pen_recvs_left(ps))
		sroce_srq_take(&ps->s->srq, &one.wqe, 0);
	local_bh_enable();
	while (ps->done != ps->posted)
		memset(ps->s->mem + pen_local_slot(ps->done++), PEN_CANARY, PEN_MESSAGE);
	while (ps->recvs != ps->seen)
		memset(ps->s->mem + pen_recv_slot(ps->seen++), PEN_CANARY, PEN_MESSAGE);
	ps->arrived = ps->promised;
	pen_forget_tags(pen, ps);
}

static void end_life(struct pen *pen)
{
	struct rnd_state *rnd = &pen->f->rnd;
	int i;

	if (pen->calm)
		drain_calm(pen);
	else if (!fuzz_one_in(rnd, 4))
		drain(pen);
	if (!fuzz_one_in(rnd, 8))
		flush(pen);
	for (i = 0; i < 2 && !pen->f->failed; i++)
		side_to_reset(pen->side[i].s);
	pen_poll(pen);
	fake_net_purge(&pen->p->net);
	for (i = 0; i < 2; i++) {
		forget(pen, &pen->side[i]);
		if (!(pen->lives % 16))
			pen_check_memory(pen, &pen->side[i]);
	}
}

static void begin_life(struct pen *pen)
{
	struct rnd_state *rnd = &pen->f->rnd;
	struct sroce_mr *fast;
	int i;

	pen->lives++;
	pen->steps = 20 + fuzz_below(rnd, 400);
	pen->p->config.psn = fuzz_one_in(rnd, 2) ? prandom_u32_state(rnd) :
						   0xfffff0;
	for (i = 0; i < 2; i++) {
		pen->side[i].sum = pen_word(&pen->side[!i]);
		fast = pen->side[i].mr[PEN_FAST];
		sroce_mr_register(fast, fast->ibmr.pd, fast->key, PEN_RW);
		pen_renew_sig(&pen->side[i]);
		side_to_init(pen->side[i].s);
		side_to_rtr(pen->side[i].s);
	}
	for (i = 0; i < 2; i++)
		side_to_rts(pen->side[i].s);
}

/* One of them does not get as far */
static void begin_odd_life(struct pen *pen)
{
	struct pen_side *ps = &pen->side[fuzz_below(&pen->f->rnd, 2)];

	begin_life(pen);
	pen->steps = 40;
	switch (fuzz_below(&pen->f->rnd, 5)) {
	case 0:
		side_to_reset(ps->s);
		forget(pen, ps);
		break;
	case 1:
		side_to_reset(ps->s);
		forget(pen, ps);
		side_to_init(ps->s);
		break;
	case 2:
		side_to_reset(ps->s);
		forget(pen, ps);
		side_to_init(ps->s);
		side_to_rtr(ps->s);
		break;
	case 3:
		side_to_sqd(ps->s, false);
		break;
	default:
		side_to_error(ps->s);
	}
}

static void calm_step(struct pen *pen)
{
	u32 what = fuzz_below(&pen->f->rnd, 64);

	if (what < 20)
		pen_post_some(pen);
	else if (what < 44)
		pen_deliver(pen, false);
	else if (what < 63)
		pen_annoy(pen);
	else if (pen->side[0].s->qp->req.retries > 3 &&
		 pen->side[1].s->qp->req.retries > 3)
		expire(pen);
	pen_poll(pen);
}

/* A connection after all that: nothing of what happened before disturbs it */
static void prove(struct pen *pen)
{
	u32 i;

	pen->calm = true;
	pen_clear_tags(pen, &pen->side[0]);
	pen_clear_tags(pen, &pen->side[1]);
	for (i = 0; i < 60 && !pen->f->failed; i++)
		calm_step(pen);
	drain_calm(pen);
	pen->calm = pen->kind->calm;
}

static void next_life(struct pen *pen)
{
	end_life(pen);
	if (pen->f->failed)
		return;
	if (!pen->calm && fuzz_one_in(&pen->f->rnd, 6)) {
		begin_odd_life(pen);
		return;
	}
	begin_life(pen);
	if (fuzz_one_in(&pen->f->rnd, 8))
		prove(pen);
}

static void wild_step(struct pen *pen)
{
	u32 what = fuzz_below(&pen->f->rnd, 64);

	if (what < 12)
		pen_post_some(pen);
	else if (what < 28)
		pen_deliver(pen, true);
	else if (what < 62)
		pen_attack(pen);
	else
		trouble(pen);
	pen_poll(pen);
	check_waits(pen, &pen->side[0]);
	check_waits(pen, &pen->side[1]);
	if (side_state(pen->side[0].s) == IB_QPS_ERR ||
	    side_state(pen->side[1].s) == IB_QPS_ERR)
		pen->steps = min(pen->steps, 6U);
}

void pen_step(struct pen *pen)
{
	if (pen->calm)
		calm_step(pen);
	else
		wild_step(pen);
	if (!pen->f->failed && !--pen->steps)
		next_life(pen);
}

void pen_settle(struct pen *pen)
{
	if (pen->f->failed)
		return;
	end_life(pen);
	if (pen->f->failed)
		return;
	begin_life(pen);
	prove(pen);
}

/* --- making and ending ----------------------------------------------------- */

static void set_addresses(struct pen *pen, u8 number)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct side *s = pen->side[i].s;
		struct sroce_path *path = &s->path.path;

		s->port.net.net_cookie = init_net.net_cookie;
		path->net_cookie = init_net.net_cookie;
		/* What is meant for one pen must not fit another */
		path->sgid.raw[14] = number;
		path->dgid.raw[14] = number;
		if (pen->kind->v1)
			path->network_type = RDMA_NETWORK_ROCE_V1;
		if (!pen->kind->ipv6)
			continue;
		if (!pen->kind->v1)
			path->network_type = RDMA_NETWORK_IPV6;
		path->sgid.raw[0] = 0xfd;
		path->dgid.raw[0] = 0xfd;
	}
}

void pen_open(struct pen *pen, struct fuzz *f, const struct pen_kind *kind,
	      u8 number)
{
	struct pair_config config = kind->config;
	int i;

	memset(pen, 0, sizeof(*pen));
	pen->f = f;
	pen->kind = kind;
	pen->calm = kind->calm;
	config.sig_all = true;
	config.depth = PEN_DEPTH;
	config.rd_atomic = config.rd_atomic ?: 4;
	/* No timer fires by itself */
	config.timeout = 31;
	pen->p = pair_create(f->test, &config);
	for (i = 0; i < 2; i++) {
		pen->side[i].s = &pen->p->side[i];
		pen_make_memory(&pen->side[i]);
		pen_make_regions(pen, &pen->side[i]);
	}
	set_addresses(pen, number);
	for (i = 0; i < 2; i++)
		side_to_reset(pen->side[i].s);
	begin_life(pen);
}

void pen_leave(struct pen *pen)
{
	if (!pen->f->failed)
		end_life(pen);
}

void pen_close(struct pen *pen)
{
	int i;

	for (i = 0; i < 2; i++) {
		pen_check_memory(pen, &pen->side[i]);
		pen_end_regions(pen, &pen->side[i]);
		pen->f->slowed += side_count(pen->side[i].s, SROCE_CNT_RP_CNP_HANDLED);
	}
	pen->f->test->priv = pen->p;
	pair_exit(pen->f->test);
}
