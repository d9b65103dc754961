// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A network that tries everything: packets with a right ICRC and anything else
 * wrong, to QPs of every kind in every state, as buffers of every layout, into
 * sroce_net_receive(); in some rounds into sroce_net_input(), on two CPUs and
 * when their turn is overdue. Datagrams for QP 1 are heard all, or, in turn, as
 * net/gsi.c says, who asks for the way back to their sender. The module
 * parameters say how many, and from which seed:
 *
 *	insmod sroce.ko fuzz_packets=100000000 fuzz_seed=1
 */
#include <linux/etherdevice.h>
#include <linux/if.h>
#include <linux/mman.h>
#include <linux/moduleparam.h>
#include <linux/net.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <net/arp.h>
#include <net/neighbour.h>

#include "compat.h"
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

/* Tuples are in memory only; and others are on the wire, too */
static const struct sig_case protected_memory = {
	SIG_CRC, SIG_NONE, 1, 512, 12, false, SIG_CHECK_ALL
};

static const struct sig_case protected_wire = {
	SIG_CSUM, SIG_CRC, 1, 520, 11, true, SIG_CHECK_ALL
};

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
	{ .name = "RC, tags", .config = { .mtu = IB_MTU_256, .tags = PEN_TAGS } },
	{ .name = "RC, tags, IPv6, on demand", .ipv6 = true, .demand = true,
	  .config = { .mtu = IB_MTU_1024, .tags = PEN_TAGS, .plain = true,
		      .probes = true } },
	{ .name = "RC, protected memory", .sig = &protected_memory,
	  .config = { .mtu = IB_MTU_1024 } },
	{ .name = "RC, protected wire", .sig = &protected_wire,
	  .config = { .mtu = IB_MTU_256, .plain = true } },
	{ .name = "calm RC, tags", .calm = true,
	  .config = { .mtu = IB_MTU_256, .tags = PEN_TAGS } },
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
static struct net_device *there;
static int ifindex;	/* of the hall, while @there has its place */

/* Over all rounds */
static u64 hits[ARRAY_SIZE(kinds)][256];
static u64 lives[ARRAY_SIZE(kinds)];
static u64 datagrams, datagrams_got;
static u64 packets, buffers, trains, in_parts, kept, slowed;
static u64 taken[256], refused[256];
static u64 matches[2], protected[2];
static u64 got_there, mads_got, mads_answered;

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

/* --- whom QP 1 hears ------------------------------------------------------- */

static enum sroce_gsi_verdict (*judge)(struct net *net,
				       const struct sroce_netport *port,
				       struct sk_buff *skb);

/* How often each was said */
static atomic_t verdicts[SROCE_GSI_DROP + 1];

/* Nobody has the addresses that packets come from, so QP 1 would hear none of them */
static enum sroce_gsi_verdict hear_all(struct net *net,
				       const struct sroce_netport *port,
				       struct sk_buff *skb)
{
	return SROCE_GSI_HEAR;
}

static enum sroce_gsi_verdict ask(struct net *net, const struct sroce_netport *port,
				  struct sk_buff *skb)
{
	enum sroce_gsi_verdict verdict = judge(net, port, skb);

	atomic_inc(&verdicts[verdict]);
	return verdict;
}

/* From here on whoever asks is the real one, and there is something that it finds */
static void ask_for_way(bool really)
{
	hall.there = really ? there : NULL;
	WRITE_ONCE(sroce_gsi_judge, really ? ask : hear_all);
}

static netdev_tx_t lose(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops lossy = { .ndo_start_xmit = lose };

/* What "ip address add" would do; there is no other call for modules */
static int set_ipv4(const struct net_device *ndev, unsigned int what, u32 ipv4)
{
	struct sockaddr_in *in;
	struct ifreq ifr = {};
	unsigned long at;
	struct socket *sock;
	int err;

	strscpy(ifr.ifr_name, ndev->name, sizeof(ifr.ifr_name));
	in = (struct sockaddr_in *)&ifr.ifr_addr;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(ipv4);
	at = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
		     MAP_ANONYMOUS | MAP_PRIVATE, 0);
	if (IS_ERR_VALUE(at))
		return at;
	err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, 0, &sock);
	if (err)
		goto unmap;
	err = copy_to_user((void __user *)at, &ifr, sizeof(ifr)) ? -EFAULT :
	      sock->ops->ioctl(sock, what, at);
	sock_release(sock);
unmap:
	vm_munmap(at, PAGE_SIZE);
	return err;
}

/* Every other host of the network has answered once, and the others never will */
static void know_neighbours(struct kunit *test)
{
	static const u8 mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };
	struct neighbour *n;
	__be32 ipv4;
	u32 i;

	for (i = 2; i < 255; i += 2) {
		ipv4 = htonl((HALL_ADDRESS & ~0xff) | i);
		n = __neigh_lookup(&arp_tbl, &ipv4, there, 1);
		KUNIT_ASSERT_NOT_NULL(test, n);
		neigh_update(n, mac, NUD_PERMANENT,
			     NEIGH_UPDATE_F_OVERRIDE | NEIGH_UPDATE_F_ADMIN, 0);
		neigh_release(n);
	}
}

/* A netdev with the address that datagrams are sent to */
static void make_there(struct kunit *test)
{
	int err;

	there = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(test, there);
	there->netdev_ops = &lossy;
	eth_hw_addr_random(there);
	strscpy(there->name, "sroce_fuzz%d", sizeof(there->name));
	KUNIT_ASSERT_EQ(test, register_netdev(there), 0);
	KUNIT_EXPECT_EQ(test, set_ipv4(there, SIOCSIFADDR, HALL_ADDRESS), 0);
	KUNIT_EXPECT_EQ(test, set_ipv4(there, SIOCSIFNETMASK, 0xffffff00), 0);
	rtnl_lock();
	err = dev_open(there, NULL);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, err, 0);
	know_neighbours(test);
	ifindex = hall.s->port.net.ifindex;
	hall.s->port.net.ifindex = there->ifindex;
}

/* What waits for a neighbour (net/gsi.c) holds it for a second */
static void end_there(void)
{
	hall.s->port.net.ifindex = ifindex;
	unregister_netdev(there);
	free_netdev(there);
	there = NULL;
}

/* --- a round --------------------------------------------------------------- */

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

/* Any; mostly one that can have what is rare, when that is to come */
static struct pen *some_pen(struct fuzz *f)
{
	struct pen *pen;
	u32 tries = 16;

	do {
		pen = &pens[fuzz_below(&f->rnd, ARRAY_SIZE(pens))];
	} while (f->taken_before && (pen->kind->calm || !pen_has_rare(pen)) && --tries);
	return pen;
}

static void run(struct fuzz *f, u64 most)
{
	u32 i, turn = 0;

	while (f->packets < most && !f->failed) {
		struct pen *pen = some_pen(f);

		for (i = 0; i < 8 && !f->failed; i++)
			pen_step(pen);
		for (i = 0; i < 2 && !f->failed; i++)
			hall_step(&hall);
		check_waiting(f);
		if (!(++turn % 256))
			find_strangers(f);
		if (!(turn % 64))
			ask_for_way(!hall.there);
		cond_resched();
	}
	ask_for_way(false);
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
	got_there += hall.got_there;
	mads_got += hall.mads_got;
	mads_answered += hall.answered;
	for (op = 0; op < 256; op++) {
		datagrams += hall.hits[op];
		taken[op] += f->taken[op];
		refused[op] += f->refused[op];
	}
	for (i = 0; i < ARRAY_SIZE(pens); i++) {
		lives[i] += pens[i].lives;
		matches[0] += pens[i].matches[0];
		matches[1] += pens[i].matches[1];
		protected[0] += pens[i].protected[0];
		protected[1] += pens[i].protected[1];
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

/* @rare: what was missing in the rounds before is to come */
static void do_round(struct kunit *test, u64 round, u64 most, bool waiting, bool rare)
{
	struct fuzz *f = vzalloc(sizeof(*f));
	int i, refs;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->seed = (fuzz_seed ?: get_random_u32()) + round;
	prandom_seed_state(&f->rnd, f->seed);
	f->taken_before = rare ? taken : NULL;
	f->refused_before = rare ? refused : NULL;
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
	make_there(test);
	find_strangers(f);
	run(f, most);
	end_there();
	for (i = 0; i < ARRAY_SIZE(pens); i++)
		pen_leave(&pens[i]);
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
	do_round(test, *(const u64 *)test->param_value, round_packets(), false, false);
	KUNIT_EXPECT_NE(test, 0, slowed);
}

/* Each of them is slower, too */
static void fuzz_waiting_round(struct kunit *test)
{
	do_round(test, *(const u64 *)test->param_value, round_packets() / 8, true, false);
}

/* --- all that may happen ---------------------------------------------------- */

/*
 * For so long there are more short rounds when something rare has not come by then: whoever
 * loads the module waits for all of a case, and the kernel complains of who waits for a minute
 */
#define MORE_TIME (45 * HZ)

/* @of: what became of packets; how many opcodes are not among them? */
static u32 missing(const u64 *of, u32 *last)
{
	u32 op, n = 0;

	for (op = 0; op < 256; op++) {
		if (sroce_opcode_info(op)->op == SROCE_OP_NONE || of[op])
			continue;
		*last = op;
		n++;
	}
	return n;
}

/* Each way to match, to have protected memory, and to be heard by QP 1 or not */
static bool ways_are_missing(void)
{
	return !matches[0] || !matches[1] || !protected[0] || !protected[1] || !got_there ||
	       !mads_got || !mads_answered || !atomic_read(&verdicts[SROCE_GSI_HEAR]) ||
	       !atomic_read(&verdicts[SROCE_GSI_WAIT]) ||
	       !atomic_read(&verdicts[SROCE_GSI_DROP]);
}

static void expect_ways(struct kunit *test)
{
	KUNIT_EXPECT_NE(test, 0, matches[0]);
	KUNIT_EXPECT_NE(test, 0, matches[1]);
	KUNIT_EXPECT_NE(test, 0, protected[0]);
	KUNIT_EXPECT_NE(test, 0, protected[1]);
	KUNIT_EXPECT_NE(test, 0, atomic_read(&verdicts[SROCE_GSI_HEAR]));
	KUNIT_EXPECT_NE(test, 0, atomic_read(&verdicts[SROCE_GSI_WAIT]));
	KUNIT_EXPECT_NE(test, 0, atomic_read(&verdicts[SROCE_GSI_DROP]));
	KUNIT_EXPECT_NE(test, 0, got_there);
	KUNIT_EXPECT_NE(test, 0, mads_got);
	KUNIT_EXPECT_NE(test, 0, mads_answered);
}

/*
 * Of each opcode there is, some QP has gone on with a packet that came alone, and some QP
 * has not, or has ended with an error; and everything else that is rare has happened. In
 * the rounds more, right packets of the opcodes come that nobody has gone on with.
 */
static void fuzz_opcodes(struct kunit *test)
{
	unsigned long end = jiffies + MORE_TIME;
	u32 more, t, r, op = 0;

	for (more = 0; time_before(jiffies, end) && test->status == KUNIT_SUCCESS; more++) {
		t = missing(taken, &op);
		r = missing(refused, &op);
		if (!t && !r && !ways_are_missing())
			break;
		kunit_info(test, "%u opcodes were not taken, %u not refused, one is %02x\n",
			   t, r, op);
		do_round(test, 1000000 + more, ROUND / 10, false, true);
	}
	KUNIT_EXPECT_EQ_MSG(test, 0, missing(taken, &op), "%02x was never taken", op);
	KUNIT_EXPECT_EQ_MSG(test, 0, missing(refused, &op), "%02x was never refused", op);
	expect_ways(test);
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
	pr_info("sroce: fuzz: %llu datagrams, %llu of them received; %llu messages and %llu rendezvous matched\n",
		datagrams, datagrams_got, matches[0], matches[1]);
	pr_info("sroce: fuzz: protected memory: %llu transfers of the own one, %llu of the peer's\n",
		protected[0], protected[1]);
	pr_info("sroce: fuzz: QP 1: %d heard, %d waited, %d dropped by net/gsi.c; %llu MADs received, %llu answered\n",
		atomic_read(&verdicts[SROCE_GSI_HEAR]), atomic_read(&verdicts[SROCE_GSI_WAIT]),
		atomic_read(&verdicts[SROCE_GSI_DROP]), mads_got, mads_answered);
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
	/* Last: it looks at what the others have done */
	KUNIT_CASE_SLOW(fuzz_opcodes),
	{}
};

static struct kunit_suite fuzz_suite = {
	.name = "sroce_fuzz",
	.suite_init = fuzz_begin,
	.suite_exit = fuzz_end,
	.test_cases = fuzz_cases,
};

kunit_test_suite(fuzz_suite);
