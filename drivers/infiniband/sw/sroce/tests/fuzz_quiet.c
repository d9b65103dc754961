// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that must not be noticed: whoever sends them, they are dropped, counted
 * and not answered, and change nothing (IBA 9.6.1).
 */
#include "compat.h"
#include "tests/fuzz_pen.h"

struct quiet {
	const char *name;
	/* Counts each such packet; -1: none does */
	int counter;
	/* False: there is no such packet for this QP */
	bool (*make)(struct pen *pen, const struct fuzz_aim *aim,
		     struct fuzz_packet *p, struct fuzz_envelope *env);
};

static bool quiet_icrc(struct pen *pen, const struct fuzz_aim *aim,
		       struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->bad_icrc = true;
	return true;
}

static bool quiet_version(struct pen *pen, const struct fuzz_aim *aim,
			  struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->version = 1 + fuzz_below(&pen->f->rnd, 15);
	return true;
}

static bool quiet_opcode(struct pen *pen, const struct fuzz_aim *aim,
			 struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->opcode = prandom_u32_state(&pen->f->rnd);
	return sroce_opcode_info(p->opcode)->op == SROCE_OP_NONE;
}

static bool quiet_length(struct pen *pen, const struct fuzz_aim *aim,
			 struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->stretch = 1 + fuzz_below(&pen->f->rnd, 3);
	return true;
}

/* Its headers have no end */
static bool quiet_short(struct pen *pen, const struct fuzz_aim *aim,
			struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->payload = 0;
	p->stretch = -4;
	return true;
}

static bool quiet_qpn(struct pen *pen, const struct fuzz_aim *aim,
		      struct fuzz_packet *p, struct fuzz_envelope *env)
{
	struct sroce_qp *qp;

	p->dqpn = prandom_u32_state(&pen->f->rnd) & SROCE_QPN_MASK;
	qp = sroce_qp_find(p->dqpn);
	if (qp)
		sroce_qp_put(qp);
	return !qp && p->dqpn != SROCE_QPN_GSI;
}

static bool quiet_service(struct pen *pen, const struct fuzz_aim *aim,
			  struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->opcode = prandom_u32_state(&pen->f->rnd);
	p->payload = 64;
	return p->opcode >> 5 != aim->service &&
	       sroce_opcode_info(p->opcode)->op != SROCE_OP_NONE &&
	       sroce_opcode_info(p->opcode)->op != SROCE_OP_NOTIFY;
}

static bool quiet_notify(struct pen *pen, const struct fuzz_aim *aim,
			 struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->opcode = sroce_opcode_find(SROCE_CNP, SROCE_OP_NOTIFY, 0);
	/* Its reserved bytes may be anything */
	p->payload = SROCE_CNP_LEN;
	return true;
}

static bool quiet_address(struct pen *pen, const struct fuzz_aim *aim,
			  struct fuzz_packet *p, struct fuzz_envelope *env)
{
	env->src.raw[12 + fuzz_below(&pen->f->rnd, 4)] ^= 0x10;
	return true;
}

/* The right addresses in a packet of the other version (A17, CA17-41) */
static bool quiet_encapsulation(struct pen *pen, const struct fuzz_aim *aim,
				struct fuzz_packet *p, struct fuzz_envelope *env)
{
	env->v1 = !env->v1;
	return true;
}

static bool quiet_pkey(struct pen *pen, const struct fuzz_aim *aim,
		       struct fuzz_packet *p, struct fuzz_envelope *env)
{
	p->pkey = fuzz_below(&pen->f->rnd, 0x7fff);
	return true;
}

/* An ACK of long ago, or of what was never sent */
static bool quiet_ghost(struct pen *pen, const struct fuzz_aim *aim,
			struct fuzz_packet *p, struct fuzz_envelope *env)
{
	int opcode = sroce_opcode_find(aim->service, SROCE_OP_ACK, 0);

	if (opcode < 0 || !aim->waits_for)
		return false;
	p->opcode = opcode;
	p->payload = 0;
	p->psn = fuzz_one_in(&pen->f->rnd, 2) ?
		 aim->una - 2 - fuzz_below(&pen->f->rnd, 1000) :
		 aim->next + fuzz_below(&pen->f->rnd, 1000);
	return true;
}

static bool quiet_syndrome(struct pen *pen, const struct fuzz_aim *aim,
			   struct fuzz_packet *p, struct fuzz_envelope *env)
{
	static const u8 reserved[] = { 0x40, 0x80, 0xa0, 0xc0, 0xe0 };

	if (!quiet_ghost(pen, aim, p, env))
		return false;
	p->psn = aim->una;
	p->syndrome = reserved[fuzz_below(&pen->f->rnd, ARRAY_SIZE(reserved))] |
		      fuzz_below(&pen->f->rnd, 32);
	return true;
}

static const struct quiet quiets[] = {
	{ "wrong ICRC", SROCE_CNT_RX_ICRC_ENCAPSULATED, quiet_icrc },
	{ "version", SROCE_CNT_RX_MALFORMED, quiet_version },
	{ "reserved opcode", SROCE_CNT_RX_MALFORMED, quiet_opcode },
	{ "length", SROCE_CNT_RX_MALFORMED, quiet_length },
	{ "too short", SROCE_CNT_RX_MALFORMED, quiet_short },
	{ "no QP", SROCE_CNT_RX_NO_QP, quiet_qpn },
	{ "other service", SROCE_CNT_RX_DISCARDS, quiet_service },
	{ "congestion", SROCE_CNT_RP_CNP_IGNORED, quiet_notify },
	{ "other address", SROCE_CNT_RX_WRONG_PATH, quiet_address },
	{ "other version of RoCE", SROCE_CNT_RX_WRONG_PATH, quiet_encapsulation },
	{ "other partition", SROCE_CNT_RX_BAD_PKEY, quiet_pkey },
	{ "ghost", -1, quiet_ghost },
	{ "reserved syndrome", -1, quiet_syndrome },
};

static u64 drops(const struct pen_side *ps)
{
	return side_count(ps->s, SROCE_CNT_RX_ICRC_ENCAPSULATED) +
	       side_count(ps->s, SROCE_CNT_RX_MALFORMED) +
	       side_count(ps->s, SROCE_CNT_RX_NO_QP) +
	       side_count(ps->s, SROCE_CNT_RX_DISCARDS) +
	       side_count(ps->s, SROCE_CNT_RP_CNP_IGNORED) +
	       side_count(ps->s, SROCE_CNT_RX_WRONG_PATH) +
	       side_count(ps->s, SROCE_CNT_RX_BAD_PKEY) +
	       side_count(ps->s, SROCE_CNT_RX_BAD_QKEY);
}

/*
 * Whoever waits for the time of a train looks at the clock with each packet that comes, and may
 * send: in any pen, as on a slow machine round trips are those of a long path
 */
static void forget_sent(struct pen_shape *shape)
{
	shape->word[PEN_SHAPE_NEXT] = 0;
	shape->word[PEN_SHAPE_READS] = 0;
}

/* It arrives, changes nothing, is answered by nothing, and is counted once */
static void pass_unnoticed(struct pen *pen, struct pen_side *ps,
			   const struct quiet *q,
			   const struct fuzz_envelope *env)
{
	struct fuzz *f = pen->f;
	u64 counted, dropped = drops(ps);
	struct pen_shape before, after;
	bool waits;

	counted = q->counter < 0 ? 0 : side_count(ps->s, q->counter);
	local_bh_disable();
	waits = ps->s->qp->req.pace.wake;
	before = pen_shape_of(ps);
	f->packets += fuzz_send(&f->stage, &ps->s->port, env, &f->train);
	after = pen_shape_of(ps);
	local_bh_enable();
	if (waits) {
		forget_sent(&before);
		forget_sent(&after);
	}
	pen_check(pen, !memcmp(&before, &after, sizeof(before)), q->name,
		  before.state[0], pen_shape_differs(&before, &after));
	dropped = drops(ps) - dropped;
	pen_check(pen, dropped == (q->counter >= 0), q->name, 1000, dropped);
	if (q->counter >= 0)
		pen_check(pen, side_count(ps->s, q->counter) == counted + 1,
			  q->name, 2000, counted);
}

void pen_annoy(struct pen *pen)
{
	struct fuzz *f = pen->f;
	struct pen_side *ps = &pen->side[fuzz_below(&f->rnd, 2)];
	const struct quiet *q = &quiets[fuzz_below(&f->rnd, ARRAY_SIZE(quiets))];
	struct fuzz_envelope env = pen_envelope(&pen_other(pen, ps)->s->path);
	struct fuzz_aim aim = pen_aim(pen, ps);
	struct fuzz_packet *p = f->p;

	/* One that would be taken, if it were not for that fault */
	fuzz_send_only(&f->rnd, &aim, p);
	if (!q->make(pen, &aim, p, &env))
		return;
	pen_load(pen, ps, p, 1);
	if (q->make == quiet_notify && pen->kind->config.obeys)
		f->packets += fuzz_send(&f->stage, &ps->s->port, &env, &f->train);
	else
		pass_unnoticed(pen, ps, q, &env);
}
