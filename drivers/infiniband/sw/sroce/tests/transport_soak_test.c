// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Thousands of operations in both directions at once, at random, over a network
 * that loses, repeats and reorders. Each has memory of its own while it is
 * under way, so that all data is verified, and atomics are counted.
 */
#include "compat.h"
#include "tests/transport_pair.h"

#define SOAK_DEPTH 16

/* Each side's memory: its own buffers, the peer's targets, receives, words */
#define SOAK_SLOT 0x8000
#define SOAK_GUARD 8
#define SOAK_MAX (SOAK_SLOT - 2 * SOAK_GUARD)
#define SOAK_LOCAL 0
#define SOAK_TARGET (SOAK_LOCAL + SOAK_DEPTH * SOAK_SLOT)
#define SOAK_RECV (SOAK_TARGET + SOAK_DEPTH * SOAK_SLOT)
#define SOAK_WORDS (SOAK_RECV + SOAK_DEPTH * SOAK_SLOT)

struct soak_way {
	const char *name;
	bool direct;
	u32 per_mille;	/* lost, as many repeated, as many overtaken */
	u32 ops;	/* of each side, with each MTU */
};

static const struct soak_way soak_ways[] = {
	{ "direct", true, 0, 2000 },
	{ "loss 0 %", false, 0, 2000 },
	{ "loss 1 %", false, 10, 2000 },
	{ "loss 10 %", false, 100, 1000 },
	{ "loss 30 %", false, 300, 500 },
};

static void soak_way_name(const struct soak_way *way, char *desc)
{
	strscpy(desc, way->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(soak_way, soak_ways, soak_way_name);

/* One operation as it was posted */
struct soak_op {
	u8 opcode;
	bool signaled;
	u32 len;
	u32 seed;
	u64 expect;	/* atomic: value before */
};

/* A SEND or WRITE with immediate that the peer must see */
struct soak_message {
	u8 opcode;
	u32 len;
	u32 seed;
};

/**
 * struct soak_side - what one side has posted and expects
 * @s: the side
 * @rnd: decides
 * @ops: operations under way, by number
 * @posted: operations posted
 * @done: operations known to be complete
 * @messages: sent to this side and not seen yet, a circle
 * @promised: messages sent to this side
 * @seen: messages that arrived
 * @recvs: receives posted
 * @sum: what the word of the peer that is added to should hold
 * @swapped: what the word of the peer that is swapped should hold
 */
struct soak_side {
	struct side *s;
	struct rnd_state *rnd;
	struct soak_op ops[SOAK_DEPTH];
	u32 posted;
	u32 done;
	struct soak_message messages[SOAK_DEPTH];
	u32 promised;
	u32 seen;
	u32 recvs;
	u64 sum;
	u64 swapped;
};

struct soak {
	struct pair *p;
	struct rnd_state rnd;
	struct soak_side side[2];
	u64 seed;
	u32 ops;
	bool failed;
};

static struct soak_side *soak_peer(struct soak *k, struct soak_side *s)
{
	return &k->side[s == k->side];
}

static u32 soak_random(struct soak_side *s, u32 below)
{
	return prandom_u32_state(s->rnd) % below;
}

static u32 soak_off(u32 area, u32 number)
{
	return area + number % SOAK_DEPTH * SOAK_SLOT + SOAK_GUARD;
}

/* Mostly short, often near a border */
static u32 soak_length(struct soak_side *s)
{
	u32 mtu = s->s->pair->mtu;

	switch (soak_random(s, 6)) {
	case 0:
		return soak_random(s, 3);
	case 1:
		return soak_random(s, 300);
	case 2:
		return mtu * (1 + soak_random(s, 4)) - 1 + soak_random(s, 3);
	case 3:
		return soak_random(s, min_t(u32, 64 * mtu, SOAK_MAX));
	default:
		return soak_random(s, 4 * mtu);
	}
}

/* --- posting ------------------------------------------------------------- */

static void soak_guard(struct side *s, u32 off, u32 len)
{
	memset(s->mem + off - SOAK_GUARD, 0xee, SOAK_GUARD);
	memset(s->mem + off + len, 0xee, SOAK_GUARD);
}

static void soak_promise(struct soak *k, struct soak_side *to,
			 const struct soak_op *op)
{
	to->messages[to->promised++ % SOAK_DEPTH] = (struct soak_message){
		.opcode = op->opcode,
		.len = op->len,
		.seed = op->seed,
	};
}

static void soak_build_data(struct soak *k, struct soak_side *s,
			    struct soak_op *op, struct work *w)
{
	struct soak_side *peer = soak_peer(k, s);
	u32 local = soak_off(SOAK_LOCAL, s->posted);
	u32 target = soak_off(SOAK_TARGET, s->posted);

	work_remote(s->s, w, target);
	if (op->opcode == SROCE_WR_RDMA_READ) {
		side_fill(peer->s, target, op->len, op->seed);
		soak_guard(s->s, local, op->len);
	} else {
		side_fill(s->s, local, op->len, op->seed);
		soak_guard(peer->s, target, op->len);
	}
	if (op->len <= SROCE_MAX_INLINE && op->opcode != SROCE_WR_RDMA_READ &&
	    soak_random(s, 2)) {
		w->wqe.flags |= SROCE_SEND_INLINE;
		w->wqe.inline_len = op->len;
		w->inline_data = s->s->mem + local;
	} else {
		u32 cut = op->len ? soak_random(s, op->len) : 0;

		work_local(s->s, w, local, cut);
		work_local(s->s, w, local + cut, op->len - cut);
	}
	if (op->opcode == SROCE_WR_SEND_IMM ||
	    op->opcode == SROCE_WR_RDMA_WRITE_IMM)
		w->wqe.imm_data = cpu_to_be32(op->seed);
	if (op->opcode != SROCE_WR_RDMA_READ &&
	    op->opcode != SROCE_WR_RDMA_WRITE)
		soak_promise(k, peer, op);
}

/* Every operation sees the one before it: they happen in order, and once */
static void soak_build_atomic(struct soak_side *s, struct soak_op *op,
			      struct work *w)
{
	u64 arg = prandom_u32_state(s->rnd);

	op->len = 8;
	work_local(s->s, w, soak_off(SOAK_LOCAL, s->posted), 8);
	soak_guard(s->s, soak_off(SOAK_LOCAL, s->posted), 8);
	if (op->opcode == SROCE_WR_FETCH_ADD) {
		op->expect = s->sum;
		s->sum += arg;
		work_atomic(s->s, w, SOAK_WORDS, arg, 0);
		return;
	}
	op->expect = s->swapped;
	if (soak_random(s, 4)) {
		work_atomic(s->s, w, SOAK_WORDS + 8, s->swapped, arg);
		s->swapped = arg;
	} else {
		work_atomic(s->s, w, SOAK_WORDS + 8, ~s->swapped, arg);
	}
}

static void soak_post(struct soak *k, struct soak_side *s)
{
	static const u8 opcodes[] = {
		SROCE_WR_RDMA_WRITE, SROCE_WR_RDMA_WRITE_IMM, SROCE_WR_SEND,
		SROCE_WR_SEND_IMM, SROCE_WR_RDMA_READ, SROCE_WR_RDMA_READ,
		SROCE_WR_CMP_SWAP, SROCE_WR_FETCH_ADD,
	};
	struct soak_op *op = &s->ops[s->posted % SOAK_DEPTH];
	struct work w;

	op->opcode = opcodes[soak_random(s, ARRAY_SIZE(opcodes))];
	op->len = soak_length(s);
	op->seed = prandom_u32_state(s->rnd);
	/* The queue must not end with ones that nobody hears of */
	op->signaled = s->posted + 1 == k->ops ||
		       s->posted % SOAK_DEPTH == SOAK_DEPTH - 1 ||
		       soak_random(s, 2);
	work_init(&w, op->opcode, s->posted);
	if (!op->signaled)
		w.wqe.flags = 0;
	if (!soak_random(s, 8))
		w.wqe.flags |= SROCE_SEND_FENCE;
	if (op->opcode == SROCE_WR_CMP_SWAP ||
	    op->opcode == SROCE_WR_FETCH_ADD)
		soak_build_atomic(s, op, &w);
	else
		soak_build_data(k, s, op, &w);
	side_post(s->s, &w);
	s->posted++;
}

static void soak_post_recv(struct soak_side *s)
{
	u32 off = soak_off(SOAK_RECV, s->recvs);

	memset(s->s->mem + off - SOAK_GUARD, 0xee, SOAK_SLOT);
	side_recv(s->s, s->recvs, off, SOAK_MAX);
	s->recvs++;
}

/* --- verifying ----------------------------------------------------------- */

static bool soak_guarded(struct side *s, u32 off, u32 len)
{
	u32 i;

	for (i = 0; i < SOAK_GUARD; i++)
		if (s->mem[off - 1 - i] != 0xee || s->mem[off + len + i] != 0xee)
			return false;
	return true;
}

static bool soak_op_right(struct soak *k, struct soak_side *s,
			  const struct soak_op *op, u32 number)
{
	u32 local = soak_off(SOAK_LOCAL, number);
	u32 target = soak_off(SOAK_TARGET, number);
	struct side *peer = soak_peer(k, s)->s;

	switch (op->opcode) {
	case SROCE_WR_RDMA_WRITE:
	case SROCE_WR_RDMA_WRITE_IMM:
		return side_filled(peer, target, op->len, op->seed) &&
		       soak_guarded(peer, target, op->len);
	case SROCE_WR_RDMA_READ:
		return side_filled(s->s, local, op->len, op->seed) &&
		       soak_guarded(s->s, local, op->len);
	case SROCE_WR_CMP_SWAP:
	case SROCE_WR_FETCH_ADD:
		return get_unaligned((u64 *)(s->s->mem + local)) == op->expect &&
		       soak_guarded(s->s, local, 8);
	default:
		return true;
	}
}

static void soak_check(struct soak *k, bool ok, const char *what, u32 number,
		       u32 detail)
{
	if (ok || k->failed)
		return;
	k->failed = true;
	KUNIT_FAIL(k->p->test, "seed %llu: %s, number %u, detail %u", k->seed,
		   what, number, detail);
}

static void soak_sent(struct soak *k, struct soak_side *s,
		      const struct ib_wc *wc)
{
	const struct soak_op *op;

	soak_check(k, wc->status == IB_WC_SUCCESS, "send failed", wc->wr_id,
		   wc->status);
	/* Those before it that were not signaled are complete too */
	while (!k->failed && s->done <= wc->wr_id) {
		op = &s->ops[s->done % SOAK_DEPTH];
		soak_check(k, s->done == wc->wr_id || !op->signaled,
			   "completion lost", s->done, 0);
		soak_check(k, s->done < s->posted, "never posted", s->done, 0);
		soak_check(k, soak_op_right(k, s, op, s->done), "wrong data",
			   s->done, op->opcode);
		s->done++;
	}
	soak_check(k, s->done == wc->wr_id + 1, "completed twice", wc->wr_id,
		   s->done);
}

static void soak_received(struct soak *k, struct soak_side *s,
			  const struct ib_wc *wc)
{
	const struct soak_message *m = &s->messages[s->seen % SOAK_DEPTH];
	bool imm = m->opcode != SROCE_WR_SEND;
	u32 off = soak_off(SOAK_RECV, wc->wr_id);

	soak_check(k, wc->status == IB_WC_SUCCESS, "receive failed", s->seen,
		   wc->status);
	soak_check(k, s->seen != s->promised, "never sent", s->seen, 0);
	soak_check(k, wc->wr_id == s->seen, "receives out of order", s->seen,
		   wc->wr_id);
	soak_check(k, wc->byte_len == m->len, "wrong length", s->seen,
		   wc->byte_len);
	soak_check(k, wc->wc_flags == (imm ? IB_WC_WITH_IMM : 0), "wrong flags",
		   s->seen, wc->wc_flags);
	soak_check(k, !imm || wc->ex.imm_data == cpu_to_be32(m->seed),
		   "wrong immediate", s->seen, 0);
	if (m->opcode == SROCE_WR_RDMA_WRITE_IMM)
		soak_check(k, soak_guarded(s->s, off, 0), "not for here",
			   s->seen, 0);
	else
		soak_check(k, side_filled(s->s, off, m->len, m->seed) &&
			   soak_guarded(s->s, off, m->len), "wrong message",
			   s->seen, m->len);
	s->seen++;
}

/* --- running ------------------------------------------------------------- */

static bool soak_poll(struct soak *k)
{
	bool any = false;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		while (!k->failed && side_poll(&k->side[i].s->scq, &wc)) {
			soak_sent(k, &k->side[i], &wc);
			any = true;
		}
		while (!k->failed && side_poll(&k->side[i].s->rcq, &wc)) {
			soak_received(k, &k->side[i], &wc);
			any = true;
		}
	}
	return any;
}

/* A place is free, here and in what the peer remembers */
static bool soak_may_post(struct soak *k, const struct soak_side *s)
{
	const struct soak_side *peer = soak_peer(k, (struct soak_side *)s);

	return s->posted < k->ops && s->posted - s->done < SOAK_DEPTH &&
	       peer->promised - peer->seen < SOAK_DEPTH;
}

static void soak_feed(struct soak *k)
{
	struct soak_side *s = &k->side[prandom_u32_state(&k->rnd) % 2];

	if (soak_may_post(k, s) && soak_random(s, 2))
		soak_post(k, s);
	if (s->recvs - s->seen < SOAK_DEPTH && !soak_random(s, 3))
		soak_post_recv(s);
}

/* A network that is never calm lets every connection die in the end */
static void soak_have_mercy(struct soak *k)
{
	struct pair *p = k->p;

	bool calm = p->side[0].qp->req.retries < 3 ||
		    p->side[1].qp->req.retries < 3;

	/* Nor must what is under way bring more trouble */
	if (calm && !p->net.calm)
		fake_net_purge(&p->net);
	p->net.calm = calm;
}

static bool soak_finished(const struct soak *k)
{
	return k->side[0].done == k->ops && k->side[1].done == k->ops &&
	       k->side[0].seen == k->side[0].promised &&
	       k->side[1].seen == k->side[1].promised;
}

static void soak_run(struct soak *k)
{
	u32 idle = 0;

	while (!k->failed && !soak_finished(k)) {
		soak_feed(k);
		soak_have_mercy(k);
		if (fake_net_deliver(&k->p->net) || soak_poll(k)) {
			idle = 0;
			continue;
		}
		cond_resched();
		/* Whoever has nothing to do but wait */
		if (++idle % 20)
			continue;
		pair_step(k->p);
		soak_check(k, idle < 20000, "stuck", k->side[0].done,
			   k->side[1].done);
	}
}

static void soak_side_init(struct soak *k, int i)
{
	k->side[i].s = &k->p->side[i];
	k->side[i].rnd = &k->rnd;
}

static void soak_once(struct kunit *test, const struct soak_way *way,
		      struct pair_config *c)
{
	struct soak *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, k);
	c->direct = way->direct;
	c->depth = 2 * SOAK_DEPTH;
	k->p = pair_create(test, c);
	k->p->net.drop = way->per_mille;
	k->p->net.twice = way->per_mille;
	k->p->net.swap = way->per_mille;
	k->seed = c->seed;
	/* That is slow, and there for other bugs */
	k->ops = IS_ENABLED(CONFIG_KASAN) ? way->ops / 10 : way->ops;
	prandom_seed_state(&k->rnd, c->seed);
	for (i = 0; i < 2; i++)
		soak_side_init(k, i);
	soak_run(k);
	for (i = 0; i < 2 && !k->failed; i++) {
		u64 *words = (u64 *)(k->p->side[!i].mem + SOAK_WORDS);

		KUNIT_EXPECT_EQ(test, words[0], k->side[i].sum);
		KUNIT_EXPECT_EQ(test, words[1], k->side[i].swapped);
	}
	pair_exit(test);
}

static void soak(struct kunit *test)
{
	const struct soak_way *way = test->param_value;
	u64 seed = get_random_u32();
	enum ib_mtu mtu;

	for (mtu = IB_MTU_256; mtu <= IB_MTU_4096; mtu++) {
		struct pair_config c = {
			.mtu = mtu,
			.psn = 0xffff00,
			.rd_atomic = 1 + mtu,
			.seed = seed + mtu,
			.window = mtu == IB_MTU_512 ? 16 : 0,
			.plain = mtu == IB_MTU_2048,
			.probes = mtu != IB_MTU_4096,
		};

		kunit_info(test, "%s, seed %llu\n", way->name, c.seed);
		soak_once(test, way, &c);
	}
}

static struct kunit_case soak_cases[] = {
	KUNIT_CASE_PARAM(soak, soak_way_gen_params),
	{}
};

static struct kunit_suite soak_suite = {
	.name = "sroce_transport_soak",
	.exit = pair_exit,
	.test_cases = soak_cases,
};

kunit_test_suite(soak_suite);
