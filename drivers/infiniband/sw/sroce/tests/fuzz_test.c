// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A network that tries everything: packets with a right ICRC and anything else
 * wrong, to QPs of every kind in every state, as buffers of every layout, into
 * sroce_net_receive(); in some rounds into sroce_net_input(), on two CPUs and when their
 * turn is overdue. The module parameters say how many, and from which seed:
 *
 *	insmod sroce.ko fuzz_packets=100000000 fuzz_seed=1
 */
#include <linux/etherdevice.h>
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>

#include "net/backlog.h"
#include "net/gsi.h"
#include "net/net.h"
#include "tests/fuzz_datagram.h"
#include "tests/fuzz_pen.h"

ulong fuzz_packets;
module_param(fuzz_packets, ulong, 0444);
MODULE_PARM_DESC(fuzz_packets, "Unit tests: hostile packets to send; 0: a few");

ulong fuzz_seed;
module_param(fuzz_seed, ulong, 0444);
MODULE_PARM_DESC(fuzz_seed, "Unit tests: seed of the first round; 0: any");

/* Packets of one round, whose QPs and memory are all its own; a few seconds */
#define ROUND (IS_ENABLED(CONFIG_KASAN) ? 100000 : 1000000)

/* One short round where nobody has said how many */
static u64 round_packets(void)
{
	return fuzz_packets ? ROUND : ROUND / 10;
}

static const struct pen_kind kinds[] = {
	{ .name = "RC", .config = { .mtu = IB_MTU_1024, .plain = true } },
	{ .name = "RC, IPv6, SRQ", .ipv6 = true,
	  .config = { .mtu = IB_MTU_256, .srq = true, .probes = true } },
	{ .name = "RC, on demand", .demand = true,
	  .config = { .mtu = IB_MTU_4096 } },
	{ .name = "RC, RoCE v1", .v1 = true, .config = { .mtu = IB_MTU_1024 } },
	{ .name = "RC, few retries",
	  .config = { .mtu = IB_MTU_256, .retry = 1, .rnr_retry = 1,
		      .plain = true } },
	{ .name = "RC, small window",
	  .config = { .mtu = IB_MTU_256, .window = 4, .rd_atomic = 1, .probes = true } },
	{ .name = "RC, slows down",
	  .config = { .mtu = IB_MTU_1024, .obeys = true, .probes = true } },
	{ .name = "UC", .config = { .type = IB_QPT_UC, .mtu = IB_MTU_256 } },
	{ .name = "UC, SRQ, on demand", .demand = true,
	  .config = { .type = IB_QPT_UC, .mtu = IB_MTU_1024, .srq = true } },
	{ .name = "UC, RoCE v1, IPv6", .v1 = true, .ipv6 = true,
	  .config = { .type = IB_QPT_UC, .mtu = IB_MTU_256 } },
	{ .name = "XRC",
	  .config = { .type = IB_QPT_XRC_INI, .mtu = IB_MTU_256,
		      .plain = true } },
	{ .name = "XRC, IPv6", .ipv6 = true,
	  .config = { .type = IB_QPT_XRC_INI, .mtu = IB_MTU_4096,
		      .obeys = true, .probes = true } },
	{ .name = "calm RC", .calm = true,
	  .config = { .mtu = IB_MTU_1024, .probes = true } },
	{ .name = "calm RC, RoCE v1", .calm = true, .v1 = true, .ipv6 = true,
	  .config = { .mtu = IB_MTU_1024 } },
	{ .name = "calm RC, go-back-N", .calm = true,
	  .config = { .mtu = IB_MTU_1024, .plain = true } },
	{ .name = "calm RC, slows down", .calm = true,
	  .config = { .mtu = IB_MTU_1024, .obeys = true } },
	{ .name = "calm UC", .calm = true,
	  .config = { .type = IB_QPT_UC, .mtu = IB_MTU_256, .obeys = true } },
	{ .name = "calm XRC", .calm = true, .ipv6 = true,
	  .config = { .type = IB_QPT_XRC_INI, .mtu = IB_MTU_1024 } },
};

static struct pen pens[ARRAY_SIZE(kinds)];
static struct hall hall;

/* Over all rounds */
static u64 hits[ARRAY_SIZE(kinds)][256];
static u64 lives[ARRAY_SIZE(kinds)];
static u64 datagrams, datagrams_got;
static u64 packets, buffers, trains, in_parts, kept, slowed;

void fuzz_fail(struct fuzz *f, const char *who, const char *what, u64 a, u64 b)
{
	u32 i = f->nlog > FUZZ_LOG ? f->nlog - FUZZ_LOG : 0;

	f->failed = true;
	KUNIT_FAIL(f->test, "seed %llu, packet %llu: %s: %s (%llu, %llu)",
		   f->seed, f->packets, who, what, a, b);
	for (; i != f->nlog; i++) {
		const struct fuzz_log *l = &f->log[i % FUZZ_LOG];
		const struct fuzz_packet *p = &l->p;

		kunit_info(f->test,
			   "%s %u in %u: op %02x psn %06x qp %06x len %u%+d rkey %08x va %llx+%x aeth %02x/%06x srq %06x tail %08x ver %u pad %u pkey %04x\n",
			   l->pen, l->side, l->state, p->opcode,
			   p->psn & SROCE_PSN_MASK, p->dqpn, p->payload,
			   p->stretch, p->rkey, p->va, p->dma_len, p->syndrome,
			   p->msn, p->srqn, p->tail, p->version, p->pad,
			   p->pkey);
	}
}

static void find_strangers(struct fuzz *f)
{
	int i;

	for (i = 0; i < FUZZ_STRANGERS; i++)
		f->strangers[i] = pens[fuzz_below(&f->rnd, ARRAY_SIZE(pens))]
				  .side[i & 1].s->qp->qpn;
}

static void check_waiting(struct fuzz *f)
{
	struct fuzz_wait *w = f->stage.wait;

	fuzz_check(f, !f->stage.stuck, "waiting", "what waits is not taken",
		   sroce_backlog_bytes(), 0);
	fuzz_check(f, !w || !atomic_read(&w->disorder), "waiting",
		   "taken out of order", w ? atomic_read(&w->disorder) : 0, 0);
}

static void run(struct fuzz *f, u64 most)
{
	u32 i, turn = 0;

	while (f->packets < most && !f->failed) {
		struct pen *pen = &pens[fuzz_below(&f->rnd, ARRAY_SIZE(pens))];

		for (i = 0; i < 8 && !f->failed; i++)
			pen_step(pen);
		for (i = 0; i < 2 && !f->failed; i++)
			hall_step(&hall);
		check_waiting(f);
		if (!(++turn % 256))
			find_strangers(f);
		cond_resched();
	}
	for (i = 0; i < ARRAY_SIZE(pens); i++)
		pen_settle(&pens[i]);
	if (!f->failed)
		hall_prove(&hall);
	check_waiting(f);
}

static void add_up(const struct fuzz *f)
{
	u32 i, op;

	packets += f->packets;
	slowed += f->slowed;
	buffers += f->stage.buffers;
	trains += f->stage.trains;
	in_parts += f->stage.in_parts;
	datagrams_got += hall.got;
	for (op = 0; op < 256; op++)
		datagrams += hall.hits[op];
	for (i = 0; i < ARRAY_SIZE(pens); i++) {
		lives[i] += pens[i].lives;
		for (op = 0; op < 256; op++)
			hits[i][op] += pens[i].hits[op];
	}
}

static void begin_waiting(struct fuzz *f)
{
	f->stage.wait = fuzz_wait_begin(raw_smp_processor_id());
	KUNIT_ASSERT_NOT_NULL(f->test, f->stage.wait);
}

static void end_waiting(struct fuzz *f)
{
	struct fuzz_wait *w = f->stage.wait;

	if (!w)
		return;
	kept += atomic_read(&w->kept);
	fuzz_check(f, atomic_read(&w->kept), "waiting", "nothing waited", 0, 0);
	fuzz_wait_end(w);
	fuzz_check(f, !sroce_backlog_bytes(), "waiting", "memory is left",
		   sroce_backlog_bytes(), 0);
}

static enum sroce_gsi_verdict (*judge)(struct net *net,
				       const struct sroce_netport *port,
				       struct sk_buff *skb);

/* Nobody has the addresses that packets come from, so QP 1 would hear none of them */
static enum sroce_gsi_verdict hear_all(struct net *net,
				       const struct sroce_netport *port,
				       struct sk_buff *skb)
{
	return SROCE_GSI_HEAR;
}

static void do_round(struct kunit *test, u64 most, bool waiting)
{
	u64 round = *(const u64 *)test->param_value;
	struct fuzz *f = vzalloc(sizeof(*f));
	int i, refs;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->seed = (fuzz_seed ?: get_random_u32()) + round;
	prandom_seed_state(&f->rnd, f->seed);
	f->stage.rnd = &f->rnd;
	f->stage.ndev = alloc_etherdev(0);
	f->ibdev = kunit_kzalloc(test, sizeof(*f->ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->stage.ndev);
	KUNIT_ASSERT_NOT_NULL(test, f->ibdev);
	refs = netdev_refcnt_read(f->stage.ndev);
	/* Nothing happens behind the back of whoever compares states */
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	if (!current->mm)
		KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	if (waiting)
		begin_waiting(f);
	for (i = 0; i < ARRAY_SIZE(pens); i++)
		pen_open(&pens[i], f, &kinds[i], i);
	memset(&hall, 0, sizeof(hall));
	hall_open(&hall, f);
	find_strangers(f);
	run(f, most);
	for (i = 0; i < ARRAY_SIZE(pens); i++)
		pen_close(&pens[i]);
	hall_close(&hall);
	end_waiting(f);
	add_up(f);
	kunit_info(test, "seed %llu: %llu packets\n", f->seed, f->packets);
	fuzz_check(f, netdev_refcnt_read(f->stage.ndev) == refs, "waiting",
		   "a netdev is held", netdev_refcnt_read(f->stage.ndev), refs);
	free_netdev(f->stage.ndev);
	vfree(f);
}

static void fuzz_round(struct kunit *test)
{
	do_round(test, round_packets(), false);
	KUNIT_EXPECT_NE(test, 0, slowed);
}

/* Each of them is slower, too */
static void fuzz_waiting_round(struct kunit *test)
{
	do_round(test, round_packets() / 8, true);
}

/* So many rounds that there are enough packets */
static const void *fuzz_rounds(struct kunit *test, const void *prev, char *desc)
{
	static u64 round;
	u64 wanted = max_t(u64, DIV_ROUND_UP(fuzz_packets, ROUND), 1);

	round = prev ? round + 1 : 0;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%llu packets", packets);
	return round < wanted ? &round : NULL;
}

static void fuzz_report(struct kunit_suite *suite)
{
	u32 i, op, n;
	u64 sum;

	pr_info("sroce: fuzz: %llu packets in %llu buffers, %llu of them trains, %llu in parts\n",
		packets, buffers, trains, in_parts);
	pr_info("sroce: fuzz: %llu buffers had to wait, %llu notifications slowed somebody down\n",
		kept, slowed);
	pr_info("sroce: fuzz: %llu datagrams, %llu of them received\n",
		datagrams, datagrams_got);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (n = 0, sum = 0, op = 0; op < 256; op++) {
			n += !!hits[i][op];
			sum += hits[i][op];
		}
		pr_info("sroce: fuzz: %s: %llu connections, %llu packets of %u opcodes from the attacker\n",
			kinds[i].name, lives[i], sum, n);
	}
}

static int fuzz_begin(struct kunit_suite *suite)
{
	judge = sroce_gsi_judge;
	sroce_gsi_judge = hear_all;
	return 0;
}

static void fuzz_end(struct kunit_suite *suite)
{
	sroce_gsi_judge = judge;
	fuzz_report(suite);
}

static struct kunit_case fuzz_cases[] = {
	KUNIT_CASE_PARAM_ATTR(fuzz_round, fuzz_rounds,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE_PARAM_ATTR(fuzz_waiting_round, fuzz_rounds,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite fuzz_suite = {
	.name = "sroce_fuzz",
	.suite_init = fuzz_begin,
	.suite_exit = fuzz_end,
	.test_cases = fuzz_cases,
};

kunit_test_suite(fuzz_suite);
