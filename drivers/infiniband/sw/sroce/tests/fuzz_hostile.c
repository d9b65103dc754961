// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What arrives: the packets of the two ends, some of them changed on the way, and
 * those of an attacker who knows all their numbers.
 */
#include "compat.h"
#include "tests/fuzz_pen.h"
#include "transport/requester.h"

#define HIGH_BITS 0x8080808080808080ULL

/* --- what an attacker knows --------------------------------------------------- */

static void aim_keys(struct pen_side *ps, struct fuzz_aim *aim)
{
	const struct sroce_mr *mr;
	u32 last;
	int i;

	for (i = 0; i < PEN_REGIONS; i++) {
		mr = ps->mr[i];
		if (!mr || !mr->length)
			continue;
		aim->keys[aim->nkeys++] = (struct fuzz_key){
			.key = mr->key,
			.len = mr->length,
			.iova = mr->iova,
		};
	}
	aim->inv = ps->mr[PEN_FAST]->key;
	aim->words = aim->keys[PEN_WORDS];
	/* More often what would work: the last one is protected memory, where there is some */
	last = aim->nkeys - 1;
	while (aim->nkeys < FUZZ_KEYS) {
		aim->keys[aim->nkeys] = aim->keys[ps->sig && aim->nkeys % 2 ? last : PEN_OPEN];
		aim->nkeys++;
	}
}

/* What the oldest request without an answer waits for */
static void aim_wait(const struct sroce_qp *qp, struct fuzz_aim *aim)
{
	const struct sroce_requester *req = &qp->req;
	const struct sroce_swqe *slot;
	u32 done, i;

	aim->una = req->una_psn;
	aim->next = req->next_psn;
	aim->waits_for = SROCE_OP_SEND;
	for (i = req->ring.index; i != req->fetched; i++) {
		slot = sroce_swqe_at(req, i);
		if (slot->state != SROCE_SWQE_SENT ||
		    !sroce_swqe_has_response(slot))
			continue;
		aim->waits_for = slot->op == SROCE_OP_FETCH_ADD ?
				 SROCE_OP_CMP_SWAP : SROCE_OP_READ;
		aim->read_psn = sroce_psn_diff(aim->una, slot->first_psn) > 0 ?
				aim->una : slot->first_psn;
		done = (aim->read_psn - slot->first_psn) * qp->mtu;
		aim->read_len = slot->op == SROCE_OP_READ &&
				done < slot->length ? slot->length - done : 0;
		return;
	}
}

/* Might a QP go on with such a packet now? @aim: NULL: at any time */
static bool might_take(const struct pen *pen, const struct pen_side *ps,
		       const struct fuzz_aim *aim, enum sroce_op op)
{
	if (op == SROCE_OP_NOTIFY)
		return pen->kind->config.obeys;
	if (!sroce_op_is_response(op))
		return pen_receives(ps);
	if (!pen_sends(ps) || !ps->s->qp->kind->acked)
		return false;
	return !aim || op == SROCE_OP_ACK ||
	       (op == SROCE_OP_READ_RESP) == (aim->waits_for == SROCE_OP_READ);
}

/* The opcodes of a QP's service, and the one that is of none */
#define OPCODES 33

static u8 opcode_of(const struct pen_side *ps, u32 i)
{
	return i == OPCODES - 1 ? sroce_opcode_find(SROCE_CNP, SROCE_OP_NOTIFY, 0) :
				  ps->s->qp->kind->service << 5 | i;
}

/*
 * From the @first one on, an opcode of which no packet was @taken so far, though this QP might,
 * or none was refused. Return: 0 for none
 */
static u8 find_rare(const struct pen *pen, const struct pen_side *ps,
		    const struct fuzz_aim *aim, bool taken, u32 first)
{
	const u64 *before = taken ? pen->f->taken_before : pen->f->refused_before;
	const u64 *now = taken ? pen->f->taken : pen->f->refused;
	enum sroce_op op;
	u8 opcode;
	u32 i;

	for (i = first; i < first + OPCODES; i++) {
		opcode = opcode_of(ps, i % OPCODES);
		op = sroce_opcode_info(opcode)->op;
		if (op != SROCE_OP_NONE && !before[opcode] && !now[opcode] &&
		    (!taken || might_take(pen, ps, aim, op)))
			return opcode;
	}
	return 0;
}

bool pen_has_rare(const struct pen *pen)
{
	int i;

	for (i = 0; i < 2; i++)
		if (find_rare(pen, &pen->side[i], NULL, true, 0) ||
		    find_rare(pen, &pen->side[i], NULL, false, 0))
			return true;
	return false;
}

/* Every other time what is rare, if this QP can have it */
static void aim_rare(struct pen *pen, const struct pen_side *ps, struct fuzz_aim *aim)
{
	struct fuzz *f = pen->f;
	u32 first = fuzz_below(&f->rnd, OPCODES);

	if (!f->taken_before || fuzz_one_in(&f->rnd, 2))
		return;
	aim->wanted = find_rare(pen, ps, aim, true, first);
	if (!aim->wanted)
		aim->unwanted = find_rare(pen, ps, aim, false, first);
}

struct fuzz_aim pen_aim(struct pen *pen, struct pen_side *ps)
{
	const struct sroce_qp *qp = ps->s->qp;
	struct fuzz_aim aim = {
		.service = qp->kind->service,
		.qpn = qp->qpn,
		.mtu = pen->p->mtu,
		.epsn = qp->resp.epsn,
		.srqn = ps->s->srq.srqn,
		.tags = pen->kind->config.tags,
	};

	memcpy(aim.strangers, pen->f->strangers, sizeof(aim.strangers));
	aim_keys(ps, &aim);
	if (aim.tags)
		aim.lent = pen_lent(pen, pen_other(pen, ps));
	if (pen_sends(ps))
		aim_wait(qp, &aim);
	return aim;
}

/* --- packets of the two ---------------------------------------------------- */

/* No response may carry a byte that nobody may read */
static void check_leak(struct pen *pen, const struct fuzz_packet *p)
{
	u32 i;

	if (sroce_opcode_info(p->opcode)->op != SROCE_OP_READ_RESP)
		return;
	/* Tuples are not secret, and are any bytes */
	if (pen->kind->sig && pen->kind->sig->wire != SIG_NONE)
		return;
	for (i = 0; i + 8 <= p->payload; i += 8)
		if (get_unaligned((u64 *)(p->data + i)) & HIGH_BITS)
			break;
	for (; i < p->payload; i++)
		pen_check(pen, !(p->data[i] & 0x80), "a secret was told", i,
			  p->payload);
}

struct fuzz_envelope pen_envelope(const struct fake_path *path)
{
	return (struct fuzz_envelope){
		.src = path->path.sgid,
		.dst = path->path.dgid,
		.pkt_type = PACKET_HOST,
		.v1 = path->path.network_type == RDMA_NETWORK_ROCE_V1,
	};
}

/* Return: false when it is lost */
static bool forward(struct pen *pen, struct fake_packet *p, bool faults)
{
	struct fuzz *f = pen->f;
	struct fuzz_packet parsed;
	struct fuzz_aim aim;
	u32 len;

	fuzz_packet_parse(&parsed, p->data, p->len);
	check_leak(pen, &parsed);
	if (!faults || !fuzz_one_in(&f->rnd, 16))
		return fuzz_train_add(&f->train, p->data, p->len, false);
	if (fuzz_one_in(&f->rnd, 4))
		return false;
	aim = pen_aim(pen, &pen->side[p->path == &pen->side[0].s->path]);
	fuzz_mutate(&f->rnd, &aim, &parsed);
	pen->hits[parsed.opcode]++;
	len = fuzz_packet_encode(&parsed, f->bytes);
	return fuzz_train_add(&f->train, f->bytes, len, parsed.bad_icrc);
}

/* --- what has become of a packet --------------------------------------------- */

struct pen_shape pen_shape_of(const struct pen_side *ps)
{
	const struct sroce_qp *qp = ps->s->qp;
	const struct sroce_responder *resp = &qp->resp;
	const struct sroce_requester *req = &qp->req;

	return (struct pen_shape){
		.word = {
			resp->epsn, resp->msn, resp->msg.recv_off, resp->answers.job_tail,
			resp->answers.res_next, resp->ring.index, req->una_psn,
			req->next_psn, req->ring.index, req->rd_outstanding,
			req->retries,
		},
		.state = { qp->state, resp->msg.state, resp->ack.state, resp->ack.fatal,
			   resp->msg.have_wqe },
	};
}

/* The first words of a shape that a request moves, and those that a response does */
static const struct {
	u8 first;
	u8 n;
} moves[] = { { 0, 3 }, { 6, 1 } };

/*
 * Has the QP gone on with it? A request is the next one, and may be refused all the same;
 * a response acknowledges something.
 */
static bool was_taken(const struct pen_shape *before, const struct pen_shape *after,
		      bool response)
{
	return memcmp(before->word + moves[response].first,
		      after->word + moves[response].first,
		      moves[response].n * sizeof(u32)) &&
	       before->state[0] == after->state[0] && !after->state[3];
}

/*
 * Of a packet that came alone it can be told. @p: it, if it is the attacker's. @heeded:
 * notifications so far
 */
static void note(struct pen *pen, struct pen_side *ps, u8 opcode, const struct fuzz_packet *p,
		 const struct pen_shape *before, const struct pen_shape *after, u64 heeded)
{
	enum sroce_op op = sroce_opcode_info(opcode)->op;
	bool taken = was_taken(before, after, sroce_op_is_response(op));

	if (op == SROCE_OP_NOTIFY)
		taken = side_count(ps->s, SROCE_CNT_RP_CNP_HANDLED) != heeded;
	if (taken)
		pen->f->taken[opcode]++;
	else
		pen->f->refused[opcode]++;
	if (taken && p && ps->sig && sroce_opcode_info(opcode)->flags & SROCE_RETH &&
	    p->rkey == ps->sig->mr->key)
		pen->protected[1]++;
}

/* Send what is in the train; @p: see note(). Return: packets that the driver got. */
static u32 send_watched(struct pen *pen, struct pen_side *ps, const struct fuzz_envelope *env,
			const struct fuzz_packet *p)
{
	struct fuzz *f = pen->f;
	bool alone = f->train.n == 1 && f->train.len >= SROCE_BTH_LEN && !f->stage.wait;
	u64 heeded = side_count(ps->s, SROCE_CNT_RP_CNP_HANDLED);
	struct pen_shape before, after;
	u8 opcode = f->train.bytes[0];
	u32 n;

	if (alone)
		local_bh_disable();
	before = pen_shape_of(ps);
	n = fuzz_send(&f->stage, &ps->s->port, env, &f->train);
	after = pen_shape_of(ps);
	if (alone) {
		local_bh_enable();
		note(pen, ps, opcode, p, &before, &after, heeded);
	}
	f->packets += n;
	return n;
}

/* The next few that go the same way; false when there is none */
bool pen_deliver(struct pen *pen, bool faults)
{
	struct fake_net *net = &pen->p->net;
	u32 n = 1 + fuzz_below(&pen->f->rnd, 24);
	const struct fake_path *path = NULL;
	struct fuzz_envelope env;
	struct fake_packet *p;
	u32 to;

	while (n-- && pen->f->train.len < FUZZ_TRAIN_BYTES - FUZZ_PACKET_LEN) {
		p = fake_net_next(net, path);
		if (!p)
			break;
		path = p->path;
		forward(pen, p, faults);
		fake_packet_free(p);
	}
	if (!path)
		return fake_net_idle(net);
	to = path == &pen->side[0].s->path;
	env = pen_envelope(path);
	env.faults = faults;
	send_watched(pen, &pen->side[to], &env, NULL);
	return true;
}

/* --- packets of the attacker ----------------------------------------------- */

static void log_packet(struct pen *pen, struct pen_side *ps,
		       const struct fuzz_packet *p)
{
	struct fuzz *f = pen->f;

	f->log[f->nlog++ % FUZZ_LOG] = (struct fuzz_log){
		.pen = pen->kind->name,
		.side = ps - pen->side,
		.state = side_state(ps->s),
		.p = *p,
	};
}

void pen_load(struct pen *pen, struct pen_side *ps,
	      const struct fuzz_packet *p, u32 n)
{
	struct fuzz *f = pen->f;
	u32 len;

	for (; n; n--, p++) {
		len = fuzz_packet_encode(p, f->bytes);
		if (!len || !fuzz_train_add(&f->train, f->bytes, len, p->bad_icrc))
			break;
		pen->hits[p->opcode]++;
		log_packet(pen, ps, p);
	}
}

static bool is_deaf(const struct pen_side *ps)
{
	enum ib_qp_state state = side_state(ps->s);

	return state == IB_QPS_RESET || state == IB_QPS_INIT ||
	       (state == IB_QPS_ERR && pen_is_flushed(ps));
}

/* Every packet is counted, as good or as bad */
static u64 arrived(const struct pen_side *ps)
{
	return side_count(ps->s, SROCE_CNT_RX_PACKETS) +
	       side_count(ps->s, SROCE_CNT_RX_ICRC_ENCAPSULATED) +
	       side_count(ps->s, SROCE_CNT_RX_MALFORMED);
}

/* Send some of what was made up, which must change nothing where nobody listens */
static void attack_with(struct pen *pen, struct pen_side *ps, const struct fuzz_envelope *env,
			const struct fuzz_packet *p, u32 n)
{
	struct fuzz *f = pen->f;
	/* A page that comes late ends the work of who waited for it, meanwhile */
	bool deaf = is_deaf(ps) && !(f->stage.wait && pen->kind->demand);
	struct pen_shape before, after;
	u64 count = arrived(ps);

	pen_load(pen, ps, p, n);
	/* What waits is received by others */
	if (!f->stage.wait)
		local_bh_disable();
	before = pen_shape_of(ps);
	n = send_watched(pen, ps, env, p);
	after = pen_shape_of(ps);
	if (!f->stage.wait)
		local_bh_enable();
	count = arrived(ps) - count;
	pen_check(pen, env->faults || count == n, "packets and counters differ", n, count);
	pen_check(pen, !deaf || !memcmp(&before, &after, sizeof(before)),
		  "a QP that must not listen has changed", before.state[0],
		  after.state[0]);
}

static void attack_one_by_one(struct pen *pen, struct pen_side *ps,
			      const struct fuzz_envelope *env, u32 n)
{
	struct fuzz *f = pen->f;
	u32 i;

	for (i = 0; i < n && !f->failed; i++)
		attack_with(pen, ps, env, &f->p[i], 1);
}

void pen_attack(struct pen *pen)
{
	struct fuzz *f = pen->f;
	struct pen_side *ps = &pen->side[fuzz_below(&f->rnd, 2)];
	struct fuzz_envelope env = pen_envelope(&pen_other(pen, ps)->s->path);
	struct fuzz_aim aim = pen_aim(pen, ps);
	u32 n;

	aim_rare(pen, ps, &aim);
	n = fuzz_attack(&f->rnd, &aim, f->p);
	if (aim.wanted || aim.unwanted) {
		attack_one_by_one(pen, ps, &env, n);
		return;
	}
	env.faults = fuzz_one_in(&f->rnd, 2);
	if (fuzz_one_in(&f->rnd, 64))
		env.src.raw[15] ^= 1 << fuzz_below(&f->rnd, 8);
	if (env.faults && fuzz_one_in(&f->rnd, 32))
		env.pkt_type = fuzz_below(&f->rnd, 8);
	if (fuzz_one_in(&f->rnd, 4))
		attack_one_by_one(pen, ps, &env, n);
	else
		attack_with(pen, ps, &env, f->p, n);
}
