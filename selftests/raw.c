// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * raw: raw packets. Frames of every kind go from one device to the other; what each flow takes, tells and counts, what
 * checksums, tags and cut TCP packets look like when they come, which work queue a hash chooses, and what is refused.
 *
 *	raw -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] [-s]
 *
 * With -s: what of queues and flows is left when the peer's netdev has moved to another network namespace, after
 * "# ready" was said and before a line was read.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw_parts.h"

static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };

static struct vt_dev devs[2];
static struct vt_dev *from, *to;

/* --- sending -------------------------------------------------------------------- */

static struct queue out;
static struct ibv_mr *source;

static int send_wr(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_poll_cq_attr attr = {};
	double end = vt_now() + 10;
	int status;

	wr->wr_id = SLOTS;
	if (ibv_post_send(out.qp, wr, &bad))
		vt_die(VT_WRONG, "post send: %s", strerror(errno));
	while (ibv_start_poll(out.cq, &attr)) {
		if (vt_now() > end)
			vt_die(VT_STALLED, "no completion of a send");
		usleep(50);
	}
	status = out.cq->status;
	ibv_end_poll(out.cq);
	return status;
}

static int send_bytes(uint32_t len, unsigned int flags)
{
	struct ibv_sge sge[2] = { { (uintptr_t)source->addr, min(len, 20u), source->lkey },
				  { (uintptr_t)source->addr + 20, len - min(len, 20u), source->lkey } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2, .send_flags = flags };

	return send_wr(&wr);
}

static int send_frame(const struct frame *f, unsigned int flags)
{
	memcpy(source->addr, f->data, f->len);
	return send_bytes(f->len, flags);
}

static bool same(struct queue *q, const struct frame *f, const char *what)
{
	struct got g;

	if (!next(q, &g, 5)) {
		vt_check(false, "%s: it comes", what);
		return false;
	}
	vt_check(!g.status && g.len == f->len && !memcmp(g.data, f->data, f->len), "%s: %u bytes of %u, %s", what,
		 g.len, f->len, ibv_wc_status_str(g.status));
	return !g.status;
}

/* --- tests ------------------------------------------------------------------------- */

static void sizes(void)
{
	static const uint32_t lengths[] = { 14, 60, 61, 255, 1024, 1025, 1514 };
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	struct ibv_flow *f;
	struct queue q;
	struct frame e;
	char what[40];
	size_t i;

	queue_open(&q, to, 0);
	spec_eth(&r, mac_b, -1, TYPE);
	f = flow(&q, &r);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		eth(&e, mac_b, -1, TYPE);
		pad(&e, lengths[i] - e.len, i);
		snprintf(what, sizeof(what), "a frame of %u bytes", lengths[i]);
		vt_check(send_frame(&e, 0) == IBV_WC_SUCCESS, "%s: sent", what);
		same(&q, &e, what);
	}
	eth(&e, mac_b, -1, TYPE + 1);
	pad(&e, 46, 1);
	send_frame(&e, 0);
	eth(&e, mac_a, -1, TYPE);
	pad(&e, 46, 1);
	send_frame(&e, 0);
	vt_check(nothing(&q), "frames of another type and for another address do not come");
	end_flow(f);
	eth(&e, mac_b, -1, TYPE);
	pad(&e, 46, 1);
	send_frame(&e, 0);
	vt_check(nothing(&q), "without a flow nothing comes");
	queue_close(&q);
}

/* One of a kind comes, and one that differs in what the flow looks at does not */
static void one_kind(const char *what, struct rule *r, const struct frame *right, const struct frame *wrong)
{
	struct ibv_flow *f;
	struct queue q;

	queue_open(&q, to, 0);
	f = flow(&q, r);
	send_frame(wrong, 0);
	send_frame(right, 0);
	same(&q, right, what);
	vt_check(nothing(&q), "%s: nothing else", what);
	end_flow(f);
	queue_close(&q);
}

static void kinds(void)
{
	struct frame right, wrong;
	struct rule r;

	r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	spec_ipv4(&r, 0x0a620002);
	udp_frame(&right, -1, 1, 2);
	eth(&wrong, mac_b, -1, 0x0800);
	ipv4(&wrong, 17, 0x0a620001, 0x0a620003, 8);
	udp(&wrong, 1, 2, 0);
	one_kind("IPv4", &r, &right, &wrong);

	r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	spec_ipv6(&r, "fd98::2");
	eth(&right, mac_b, -1, 0x86dd);
	ipv6(&right, 17, "fd98::1", "fd98::2", 8);
	udp(&right, 1, 2, 0);
	eth(&wrong, mac_b, -1, 0x86dd);
	ipv6(&wrong, 17, "fd98::1", "fd98::3", 8);
	udp(&wrong, 1, 2, 0);
	one_kind("IPv6", &r, &right, &wrong);

	r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	spec_port(&r, IBV_FLOW_SPEC_TCP, 80);
	eth(&right, mac_b, -1, 0x0800);
	ipv4(&right, 6, 0x0a620001, 0x0a620002, 20);
	tcp(&right, 1, 80, 1);
	udp_frame(&wrong, -1, 1, 80);
	one_kind("TCP", &r, &right, &wrong);

	r = port_rule(0, 0, 80);
	udp_frame(&right, -1, 1, 80);
	udp_frame(&wrong, -1, 80, 1);
	one_kind("UDP", &r, &right, &wrong);

	r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	spec_eth(&r, mac_b, 5, 0x0800);
	udp_frame(&right, 5, 1, 2);
	udp_frame(&wrong, 6, 1, 2);
	one_kind("a VLAN", &r, &right, &wrong);

	/* A fragment has no ports, whatever stands where they were */
	r = port_rule(0, 0, 80);
	udp_frame(&right, -1, 1, 80);
	wrong = right;
	wrong.data[14 + 7] = 1;
	one_kind("no fragment", &r, &right, &wrong);
}

static void vlans(void)
{
	struct rule r = port_rule(0, 0, 7);
	struct queue strip, keep;
	struct ibv_flow *f[2];
	struct frame e, bare;
	struct got g = {};

	queue_open(&strip, to, IBV_QP_CREATE_CVLAN_STRIPPING);
	queue_open(&keep, to, 0);
	f[0] = flow(&strip, &r);
	f[1] = flow(&keep, &r);
	udp_frame(&e, 0x6005, 1, 7);
	udp_frame(&bare, -1, 1, 7);
	send_frame(&e, 0);
	same(&keep, &e, "two flows that say the same: a frame with its tag");
	next(&strip, &g, 5);
	vt_check(g.len == bare.len && !memcmp(g.data, bare.data, bare.len) && g.vlan == 0x6005,
		 "the tag in the completion: %#x, %u bytes of %u", g.vlan, g.len, bare.len);
	end_flow(f[0]);
	end_flow(f[1]);
	queue_close(&strip);
	queue_close(&keep);
}

static void priorities(void)
{
	struct queue first, second;
	struct ibv_flow *f[2];
	struct rule r;
	struct frame e;

	udp_frame(&e, -1, 1, 9);
	queue_open(&first, to, 0);
	queue_open(&second, to, 0);

	r = rule(IBV_FLOW_ATTR_NORMAL, 5, 0);
	spec_eth(&r, mac_b, -1, 0);
	f[0] = flow(&second, &r);
	r = port_rule(1, 0, 9);
	f[1] = flow(&first, &r);
	send_frame(&e, 0);
	same(&first, &e, "the lower priority takes it");
	vt_check(nothing(&second), "the higher one does not see it");
	end_flow(f[1]);
	send_frame(&e, 0);
	same(&second, &e, "the higher one, alone");

	r = port_rule(1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, 9);
	f[1] = flow(&first, &r);
	send_frame(&e, 0);
	same(&first, &e, "a flow that does not trap sees it");
	same(&second, &e, "and so does the next");
	end_flow(f[1]);

	r = port_rule(1, 0, 9);
	spec_drop(&r);
	f[1] = flow(&first, &r);
	send_frame(&e, 0);
	vt_check(nothing(&first) && nothing(&second), "a flow that drops");
	end_flow(f[1]);
	end_flow(f[0]);
	queue_close(&first);
	queue_close(&second);
}

static void defaults(void)
{
	struct rule all = rule(IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0), groups = rule(IBV_FLOW_ATTR_MC_DEFAULT, 0, 0);
	struct rule sniffer = rule(IBV_FLOW_ATTR_SNIFFER, 0, 0);
	struct queue q[3];
	struct ibv_flow *f[3];
	struct frame e, m;
	struct got g = {};
	bool seen[2] = {};
	int i;

	for (i = 0; i < 3; i++)
		queue_open(&q[i], to, 0);
	f[0] = flow(&q[0], &all);
	f[1] = flow(&q[1], &groups);
	f[2] = flow(&q[2], &sniffer);
	eth(&e, mac_b, -1, TYPE);
	pad(&e, 46, 1);
	eth(&m, group, -1, TYPE);
	pad(&m, 46, 2);
	send_frame(&e, 0);
	send_frame(&m, 0);
	/* The host's own may be among them */
	for (i = 0; i < 20 && !(seen[0] && seen[1]) && next(&q[2], &g, 5); i++) {
		seen[0] |= g.len == e.len && !memcmp(g.data, e.data, e.len);
		seen[1] |= g.len == m.len && !memcmp(g.data, m.data, m.len);
	}
	vt_check(seen[0] && seen[1], "a sniffer sees both");
	g = (struct got){};
	for (i = 0; i < 20 && next(&q[0], &g, 5); i++)
		if (g.len == e.len && !memcmp(g.data, e.data, e.len))
			break;
	vt_check(g.data && !memcmp(g.data, e.data, e.len), "the default takes what nobody else does");
	g = (struct got){};
	for (i = 0; i < 20 && next(&q[1], &g, 5); i++)
		if (g.len == m.len && !memcmp(g.data, m.data, m.len))
			break;
	vt_check(g.data && !memcmp(g.data, m.data, m.len), "the default for groups takes a group's");
	for (i = 0; i < 3; i++) {
		end_flow(f[i]);
		queue_close(&q[i]);
	}
}

/* However many look on, somebody else's flow gets its frame */
static void sniffers(void)
{
	struct rule see = rule(IBV_FLOW_ATTR_SNIFFER, 0, 0), pass = port_rule(0, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, 10);
	struct rule take = port_rule(1, 0, 10);
	struct ibv_flow *f[2][16], *last;
	struct queue many, one;
	struct frame e;
	int i;

	queue_open(&many, to, 0);
	queue_open(&one, to, 0);
	for (i = 0; i < 16; i++) {
		f[0][i] = flow(&many, &see);
		f[1][i] = flow(&many, &pass);
	}
	last = flow(&one, &take);
	udp_frame(&e, -1, 1, 10);
	send_frame(&e, 0);
	same(&one, &e, "a flow behind many that look on");
	for (i = 0; i < 16; i++) {
		end_flow(f[0][i]);
		end_flow(f[1][i]);
	}
	end_flow(last);
	queue_close(&many);
	queue_close(&one);
}

static void checksums(void)
{
	struct rule r = port_rule(0, 0, 11);
	struct ibv_flow *f;
	struct queue q;
	struct frame e;
	struct got g = {};

	queue_open(&q, to, 0);
	f = flow(&q, &r);
	udp_frame(&e, -1, 1, 11);
	vt_check(send_frame(&e, IBV_SEND_IP_CSUM) == IBV_WC_SUCCESS, "checksums: sent");
	vt_check(next(&q, &g, 5) && g.len == e.len && sums_right(g.data, g.len), "checksums are filled in");
	vt_check(g.flags & IBV_WC_IP_CSUM_OK, "and said to be right");
	send_frame(&e, 0);
	vt_check(next(&q, &g, 5) && !(g.flags & IBV_WC_IP_CSUM_OK) && !memcmp(g.data, e.data, e.len),
		 "without being asked for they are not");
	/* An IP header that is longer than the frame */
	e.data[17] = 200;
	vt_check(send_frame(&e, IBV_SEND_IP_CSUM) == IBV_WC_LOC_QP_OP_ERR, "a length that is a lie is refused");
	end_flow(f);
	queue_close(&q);
}

static void out_again(void)
{
	struct got g;

	if (to_state(out.qp, IBV_QPS_RESET))
		vt_die(VT_WRONG, "to RESET: %s", strerror(errno));
	bring_up(out.qp);
	while (next(&out, &g, 0))
		;
}

enum { BYTES = 30000, MSS = 1000 };

/* What is to be cut, and the flow for it */
static struct rule tso_begin(struct ibv_send_wr *wr, struct ibv_sge *sge, struct frame *head, uint16_t mss)
{
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);

	spec_eth(&r, mac_b, -1, 0x0800);
	spec_ipv4(&r, 0x0a620002);
	spec_port(&r, IBV_FLOW_SPEC_TCP, 12);
	eth(head, mac_b, -1, 0x0800);
	ipv4(head, 6, 0x0a620001, 0x0a620002, 20);
	tcp(head, 1, 12, 1000);
	vt_pattern(source->addr, 3, 0, BYTES);
	*sge = (struct ibv_sge){ (uintptr_t)source->addr, BYTES, source->lkey };
	*wr = (struct ibv_send_wr){ .opcode = IBV_WR_TSO, .sg_list = sge, .num_sge = 1 };
	wr->tso.hdr = head->data;
	wr->tso.hdr_sz = head->len;
	wr->tso.mss = mss;
	return r;
}

/* What was cut is complete, each packet with its header */
static void tso_arrives(struct queue *q, const struct frame *head, const char *what)
{
	uint8_t expected[BYTES];
	bool right = true;
	uint32_t n = 0;
	struct got g;

	vt_pattern(expected, 3, 0, BYTES);
	while (n < BYTES && next(q, &g, 5)) {
		right &= g.len == head->len + MSS && sums_right(g.data, g.len) &&
			 ntohl(*(uint32_t *)(g.data + 38)) == 1000 + n &&
			 !memcmp(g.data + head->len, expected + n, MSS);
		n += g.len - head->len;
	}
	vt_check(n == BYTES && right, "%s: %u bytes in right packets", what, n);
}

static void tso(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct frame head;
	struct rule r = tso_begin(&wr, &sge, &head, MSS);
	struct ibv_flow *f;
	struct queue q;

	queue_open(&q, to, 0);
	f = flow(&q, &r);
	vt_check(send_wr(&wr) == IBV_WC_SUCCESS, "TSO: sent");
	tso_arrives(&q, &head, "TSO");
	head.data[23] = 17;
	vt_check(send_wr(&wr) == IBV_WC_LOC_QP_OP_ERR, "TSO of what is not TCP is refused");
	out_again();
	head.data[23] = 6;
	wr.tso.mss = 2000;
	vt_check(send_wr(&wr) == IBV_WC_LOC_LEN_ERR, "TSO into packets that are longer than the MTU is refused");
	out_again();
	end_flow(f);
	queue_close(&q);
}

/* A frame, and one that is to be cut, in one list of ibv_wr_*() */
static int post_extended(struct ibv_qp_ex *qp, const struct frame *e, struct ibv_send_wr *tso)
{
	ibv_wr_start(qp);
	qp->wr_id = SLOTS;
	qp->wr_flags = IBV_SEND_IP_CSUM;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, (void *)e->data, e->len);
	qp->wr_id = SLOTS + 1;
	qp->wr_flags = 0;
	ibv_wr_send_tso(qp, tso->tso.hdr, tso->tso.hdr_sz, tso->tso.mss);
	ibv_wr_set_sge(qp, tso->sg_list->lkey, tso->sg_list->addr, tso->sg_list->length);
	return ibv_wr_complete(qp);
}

static void extended(void)
{
	struct rule udp_rule = port_rule(0, 0, 11), tcp_rule;
	struct ibv_flow *flows[2];
	struct queue sender, q[2];
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct frame head, e;
	struct got g = {};
	int i, rc;

	tcp_rule = tso_begin(&wr, &sge, &head, MSS);
	queue_begin(&sender, from);
	sender.qp = make_qp(from, ibv_cq_ex_to_cq(sender.cq), 0, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
	if (!sender.qp)
		vt_die(VT_WRONG, "queue pair for ibv_wr_send_tso: %s", strerror(errno));
	bring_up(sender.qp);
	for (i = 0; i < 2; i++)
		queue_open(&q[i], to, 0);
	flows[0] = flow(&q[0], &udp_rule);
	flows[1] = flow(&q[1], &tcp_rule);
	udp_frame(&e, -1, 1, 11);
	rc = post_extended(ibv_qp_to_qp_ex(sender.qp), &e, &wr);
	vt_check(!rc, "ibv_wr_send, ibv_wr_send_tso: posted: %s", strerror(rc));
	vt_check(next(&q[0], &g, 5) && g.len == e.len && sums_right(g.data, g.len), "ibv_wr_send: with its checksums");
	tso_arrives(&q[1], &head, "ibv_wr_send_tso");
	for (i = 0; i < 2; i++) {
		end_flow(flows[i]);
		queue_close(&q[i]);
	}
	queue_close(&sender);
}

/* Copies as they come: as many of each part as there are flows, until one was lost because there was no receive */
static uint32_t parts_for_many(struct queue *q, const struct frame *head, uint32_t flows, bool *right)
{
	uint32_t n, seq, last = 0;
	struct got g;

	*right = true;
	for (n = 0; next(q, &g, n ? 0.3 : 5); n++) {
		seq = ntohl(*(uint32_t *)(g.data + 38)) - 1000;
		*right &= !g.status && g.len <= head->len + 64 && seq >= last && sums_right(g.data, g.len);
		*right &= n >= SLOTS || seq == n / flows * 64;
		last = seq;
	}
	return n;
}

/* Parts are copied for each flow; of more than a few copies a worker makes some at a time, and there is an end of them */
static void tso_for_many(void)
{
	enum { FLOWS = 12 };
	struct ibv_flow *f[FLOWS];
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct frame head;
	struct rule r = tso_begin(&wr, &sge, &head, 64);
	struct queue q;
	uint32_t n;
	bool right;
	long before;
	int i;

	queue_open(&q, to, 0);
	for (i = 0; i < FLOWS; i++)
		f[i] = flow(&q, &r);
	before = vt_counter(to, "rx_discarded_packets");
	vt_check(send_wr(&wr) == IBV_WC_SUCCESS, "TSO for %d flows: sent", FLOWS);
	n = parts_for_many(&q, &head, FLOWS, &right);
	vt_check(n >= SLOTS && right, "TSO: of %d parts for %d flows %u come, in their order", BYTES / 64, FLOWS, n);
	before = vt_counter(to, "rx_discarded_packets") - before;
	vt_check(!before, "and none of the rest is discarded but for want of a receive (%ld)", before);
	for (i = 0; i < FLOWS; i++)
		end_flow(f[i]);
	queue_close(&q);
}

static void tags(void)
{
	struct ibv_counters_init_attr init = {};
	struct ibv_counter_attach_attr packets = { .counter_desc = IBV_COUNTER_PACKETS, .index = 1 };
	struct ibv_counter_attach_attr bytes = { .counter_desc = IBV_COUNTER_BYTES, .index = 0 };
	struct ibv_counters *counters = ibv_create_counters(to->ctx, &init);
	struct rule r = port_rule(0, 0, 13);
	uint64_t values[3] = { 1, 1, 1 };
	struct ibv_flow *f;
	struct queue q;
	struct frame e;
	struct got g = {};

	if (!counters)
		vt_die(VT_WRONG, "counters: %s", strerror(errno));
	vt_check(!ibv_attach_counters_point_flow(counters, &packets, NULL) &&
		 !ibv_attach_counters_point_flow(counters, &bytes, NULL), "counters: places");
	queue_open(&q, to, 0);
	spec_tag(&r, 0x12345678);
	spec_count(&r, counters);
	f = flow(&q, &r);
	udp_frame(&e, -1, 1, 13);
	send_frame(&e, 0);
	next(&q, &g, 5);
	vt_check(g.tag == 0x12345678, "the tag of a flow: %#x", g.tag);
	send_frame(&e, 0);
	next(&q, &g, 5);
	vt_check(!ibv_read_counters(counters, values, 3, 0), "counters are read");
	vt_check(values[1] == 2 && values[0] == 2 * e.len && !values[2],
		 "counters: %llu packets, %llu bytes", (long long)values[1], (long long)values[0]);
	vt_check(ibv_destroy_counters(counters) == EBUSY, "counters in use are not destroyed");
	end_flow(f);
	vt_check(!ibv_destroy_counters(counters), "counters out of use are");
	queue_close(&q);
}

/* --- work queues --------------------------------------------------------------------- */

static uint8_t key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca,
	0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b,
	0xbe, 0xac, 0x01, 0xfa,
};

static uint32_t toeplitz(const uint8_t *data, int len)
{
	uint32_t hash = 0, window = key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3];
	int bit;

	for (bit = 0; bit < len * 8; bit++) {
		if (data[bit / 8] >> (7 - bit % 8) & 1)
			hash ^= window;
		window = window << 1 | (key[4 + bit / 8] >> (7 - bit % 8) & 1);
	}
	return hash;
}

static void wq_open(struct queue *q, struct vt_dev *dev)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = SLOTS, .max_sge = 1, .pd = dev->pd };
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	int i;

	queue_begin(q, dev);
	attr.cq = ibv_cq_ex_to_cq(q->cq);
	q->wq = ibv_create_wq(dev->ctx, &attr);
	if (!q->wq)
		vt_die(VT_WRONG, "work queue: %s", strerror(errno));
	if (ibv_modify_wq(q->wq, &ready))
		vt_die(VT_WRONG, "work queue: to ready");
	for (i = 0; i < SLOTS; i++)
		give_back(q, i);
}

/* From the error that it is in to ready, with all that it had */
static void wq_again(struct queue *q)
{
	struct ibv_wq_attr reset = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET };
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct got g;
	int i;

	if (ibv_modify_wq(q->wq, &reset))
		vt_die(VT_WRONG, "work queue: to reset");
	q->looked_at = NULL;
	while (next(q, &g, 0))
		;
	if (ibv_modify_wq(q->wq, &ready))
		vt_die(VT_WRONG, "work queue: to ready again");
	for (i = 0; i < SLOTS; i++)
		give_back(q, i);
}

#define HASH_IPV4 (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define HASH_IPV6 (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define HASH_TCP (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define HASH_UDP (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

static struct ibv_qp *rss_qp(struct vt_dev *dev, struct ibv_rwq_ind_table *table, uint8_t len,
			     uint64_t fields)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev->pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, len, key, fields },
	};

	return ibv_create_qp_ex(dev->ctx, &attr);
}

#define WQS 4
#define ENTRIES 8

/* Frames of one kind, and what of them is hashed */
struct hashed {
	const char *what;
	uint64_t fields;
	bool v6, tcp;
	int vlan;
};

static const struct hashed hashed[] = {
	{ "IPv4 and TCP", HASH_IPV4 | HASH_TCP, false, true, -1 },
	{ "IPv4 and UDP, with a VLAN tag", HASH_IPV4 | HASH_UDP, false, false, 5 },
	{ "IPv6 and TCP", HASH_IPV6 | HASH_TCP, true, true, -1 },
	{ "IPv6 and UDP", HASH_IPV6 | HASH_UDP, true, false, -1 },
	{ "addresses only", HASH_IPV4, false, true, -1 },
	{ "ports only", HASH_TCP, false, true, -1 },
	{ "where it is from", IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_PORT_UDP, false, false, -1 },
	{ "where it goes to", IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_DST_PORT_TCP, true, true, -1 },
	{ "IPv4 and ports of TCP, which UDP has none of", HASH_IPV4 | HASH_TCP, false, false, -1 },
	{ "all that there is", HASH_IPV4 | HASH_IPV6 | HASH_TCP | HASH_UDP, true, true, -1 },
};

/* Each field is another one in each frame */
static void hashed_frame(struct frame *f, const struct hashed *h, int i)
{
	const uint16_t sport = 1000 + 37 * i, dport = 14 + 11 * i;
	char src[32], dst[32];

	eth(f, mac_b, h->vlan, h->v6 ? 0x86dd : 0x0800);
	snprintf(src, sizeof(src), "fd98::%x", 0x100 + 7 * i);
	snprintf(dst, sizeof(dst), "fd98::%x", 0x200 + 13 * i);
	if (h->v6)
		ipv6(f, h->tcp ? 6 : 17, src, dst, h->tcp ? 70 : 58);
	else
		ipv4(f, h->tcp ? 6 : 17, 0x0a620101 + 5 * i, 0x0a620202 + 3 * i, h->tcp ? 70 : 58);
	if (h->tcp)
		tcp(f, sport, dport, i);
	else
		udp(f, sport, dport, 50);
	pad(f, 50, i);
}

/* As other NICs and the kernel's own documents have it: addresses before ports, source first */
static uint32_t hash_of(const struct frame *f, const struct hashed *h)
{
	const uint8_t *ip = f->data + (h->vlan < 0 ? 14 : 18);
	const int size = h->v6 ? 16 : 4;
	const uint8_t *address = ip + (h->v6 ? 8 : 12), *port = address + 2 * size;
	struct frame in = {};

	if (h->fields & (h->v6 ? IBV_RX_HASH_SRC_IPV6 : IBV_RX_HASH_SRC_IPV4))
		put(&in, address, size);
	if (h->fields & (h->v6 ? IBV_RX_HASH_DST_IPV6 : IBV_RX_HASH_DST_IPV4))
		put(&in, address + size, size);
	if (h->fields & (h->tcp ? IBV_RX_HASH_SRC_PORT_TCP : IBV_RX_HASH_SRC_PORT_UDP))
		put(&in, port, 2);
	if (h->fields & (h->tcp ? IBV_RX_HASH_DST_PORT_TCP : IBV_RX_HASH_DST_PORT_UDP))
		put(&in, port + 2, 2);
	return toeplitz(in.data, in.len);
}

static void rss_fields(struct ibv_rwq_ind_table *table, struct queue *wqs, const struct hashed *h)
{
	enum { FRAMES = 12 };
	struct queue front = { .qp = rss_qp(to, table, 40, h->fields) };
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	uint32_t hash, used = 0;
	struct ibv_flow *f;
	struct got g = {};
	struct frame e;
	int i, right = 0;

	if (!front.qp)
		vt_die(VT_WRONG, "queue pair with a table: %s", strerror(errno));
	spec_eth(&r, mac_b, h->vlan, h->v6 ? 0x86dd : 0x0800);
	f = flow(&front, &r);
	for (i = 0; i < FRAMES; i++) {
		hashed_frame(&e, h, i);
		send_frame(&e, 0);
		hash = hash_of(&e, h) % ENTRIES % WQS;
		used |= 1 << hash;
		right += next(&wqs[hash], &g, 2) && g.len == e.len && !memcmp(g.data, e.data, e.len);
	}
	vt_check(right == FRAMES && used & (used - 1), "hashed by %s: %d of %d", h->what, right,
		 FRAMES);
	end_flow(f);
	ibv_destroy_qp(front.qp);
}

static void rss(void)
{
	enum { FRAMES = 24 };
	struct ibv_wq_attr fail = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_ERR };
	struct ibv_wq *entries[ENTRIES];
	struct ibv_rwq_ind_table_init_attr table_attr = { .log_ind_tbl_size = 3, .ind_tbl = entries };
	struct ibv_rwq_ind_table *table;
	struct queue wqs[WQS], front = {};
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	struct ibv_flow *f;
	uint32_t hash, used = 0;
	struct frame e;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};
	struct got g = {};
	int i, right = 0;

	for (i = 0; i < WQS; i++)
		wq_open(&wqs[i], to);
	for (i = 0; i < ENTRIES; i++)
		entries[i] = wqs[i % WQS].wq;
	table = ibv_create_rwq_ind_table(to->ctx, &table_attr);
	if (!table)
		vt_die(VT_WRONG, "table: %s", strerror(errno));
	vt_check(!rss_qp(to, table, 20, HASH_IPV4) && errno == EINVAL,
		 "a key that is too short is refused");
	vt_check(!rss_qp(to, table, 40, HASH_IPV4 | IBV_RX_HASH_INNER) && errno == EOPNOTSUPP,
		 "a hash of inner headers is refused");
	front.qp = rss_qp(to, table, 40, HASH_IPV4 | HASH_UDP);
	if (!front.qp)
		vt_die(VT_WRONG, "queue pair with a table: %s", strerror(errno));
	vt_check(!ibv_query_qp(front.qp, &attr, IBV_QP_CAP, &init) && !attr.cap.max_send_wr && !attr.cap.max_recv_wr,
		 "a queue pair with a table has no queues: %u and %u", attr.cap.max_send_wr, attr.cap.max_recv_wr);
	vt_check(ibv_destroy_wq(wqs[0].wq) == EBUSY, "a work queue in a table is not destroyed");
	spec_eth(&r, mac_b, -1, 0x0800);
	f = flow(&front, &r);
	for (i = 0; i < FRAMES; i++) {
		udp_frame(&e, -1, 1000 + 37 * i, 14);
		send_frame(&e, 0);
		hash = toeplitz(e.data + 26, 12);
		used |= 1 << hash % WQS;
		right += next(&wqs[hash % ENTRIES % WQS], &g, 2) && g.len == e.len &&
			 !memcmp(g.data, e.data, e.len) && g.qpn == entries[hash % ENTRIES]->wq_num;
	}
	vt_check(right == FRAMES, "each frame is in the work queue that its hash says: %d of %d", right, FRAMES);
	vt_check(used & (used - 1), "these are several");
	vt_check(!ibv_modify_wq(wqs[0].wq, &fail) && next(&wqs[0], &g, 5) && g.status == IBV_WC_WR_FLUSH_ERR,
		 "a work queue that fails is flushed");
	wq_again(&wqs[0]);
	for (i = 0; toeplitz(e.data + 26, 12) % WQS; i++)
		udp_frame(&e, -1, 2000 + i, 14);
	send_frame(&e, 0);
	same(&wqs[0], &e, "and begins anew");
	/* It has none of the fields that are hashed */
	eth(&e, mac_b, -1, 0x0800);
	pad(&e, 46, 3);
	send_frame(&e, 0);
	same(&wqs[0], &e, "a frame without those fields is the first entry's");
	end_flow(f);
	for (i = 0; i < (int)ARRAY_SIZE(hashed); i++)
		rss_fields(table, wqs, &hashed[i]);
	if (ibv_destroy_qp(front.qp) || ibv_destroy_rwq_ind_table(table))
		vt_die(VT_WRONG, "destroy: %s", strerror(errno));
	for (i = 0; i < WQS; i++)
		queue_close(&wqs[i]);
}

/* --- what is refused ------------------------------------------------------------------- */

static void lengths(void)
{
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	struct ibv_recv_wr *bad, wr = { .wr_id = 1, .num_sge = 1 };
	struct ibv_sge sge;
	struct ibv_flow *f;
	struct queue q;
	struct frame e;
	struct got g = {};

	vt_check(send_bytes(1519, 0) == IBV_WC_LOC_LEN_ERR, "a frame that is longer than the MTU is refused");
	out_again();
	vt_check(send_bytes(13, 0) == IBV_WC_LOC_QP_OP_ERR, "a frame without a header is refused");
	out_again();

	/* What does not fit is lost, and the queue lives */
	queue_begin(&q, to);
	q.qp = make_qp(to, ibv_cq_ex_to_cq(q.cq), 0, 0);
	bring_up(q.qp);
	sge = (struct ibv_sge){ (uintptr_t)q.mr->addr, 100, q.mr->lkey };
	wr.sg_list = &sge;
	ibv_post_recv(q.qp, &wr, &bad);
	spec_eth(&r, mac_b, -1, TYPE);
	f = flow(&q, &r);
	eth(&e, mac_b, -1, TYPE);
	pad(&e, 200, 1);
	send_frame(&e, 0);
	vt_check(nothing(&q), "a frame that does not fit is lost");
	e.len = 100;
	send_frame(&e, 0);
	vt_check(next(&q, &g, 5) && !g.status && g.len == 100, "the next one is not");
	end_flow(f);
	queue_close(&q);
}

/* In a child, which has the queue pair of its parent */
static int unprivileged(struct queue *q)
{
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = to->pd,
				       .cq = ibv_cq_ex_to_cq(q->cq) };
	struct rule r = rule(IBV_FLOW_ATTR_SNIFFER, 0, 0);

	drop_net_raw();
	if (make_qp(to, ibv_cq_ex_to_cq(q->cq), 0, 0) || errno != EPERM)
		return 1;
	if (ibv_create_flow(q->qp, &r.attr) || errno != EPERM)
		return 2;
	return ibv_create_wq(to->ctx, &wq) || errno != EPERM ? 3 : 0;
}

static void privileges(void)
{
	struct queue q;
	int status;
	pid_t child;

	queue_open(&q, to, 0);
	child = fork();
	if (!child)
		_exit(unprivileged(&q));
	waitpid(child, &status, 0);
	vt_check(WIFEXITED(status) && !WEXITSTATUS(status), "without CAP_NET_RAW all is refused: %#x", status);
	queue_close(&q);
}

static void refused(const char *what, struct queue *q, struct rule r, int wanted)
{
	struct ibv_flow *f = ibv_create_flow(q->qp, &r.attr);

	vt_check(!f && errno == wanted, "%s: %s", what, f ? "taken" : strerror(errno));
	if (f)
		end_flow(f);
}

static void odd_flows(void)
{
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	struct ibv_flow *f[16];
	struct queue q;
	int i;

	queue_open(&q, to, 0);
	refused("a flow of what leaves", &q, rule(IBV_FLOW_ATTR_NORMAL, 0, IBV_FLOW_ATTR_FLAGS_EGRESS), EOPNOTSUPP);
	r = rule(IBV_FLOW_ATTR_SNIFFER, 0, 0);
	spec_eth(&r, mac_b, -1, 0);
	refused("a sniffer that chooses", &q, r, EINVAL);
	r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);
	spec_eth(&r, mac_b, -1, 0);
	spec_eth(&r, mac_a, -1, 0);
	refused("two addresses", &q, r, EINVAL);
	r = port_rule(0, 0, 15);
	for (i = 0; i < 16; i++)
		f[i] = flow(&q, &r);
	refused("more flows that say the same", &q, r, ENOSPC);
	vt_check(ibv_destroy_qp(q.qp) == EBUSY, "a queue pair with flows is not destroyed");
	for (i = 0; i < 16; i++)
		end_flow(f[i]);
	queue_close(&q);
}

/* --- a netdev that moves ---------------------------------------------------------------- */

static struct rule type_rule(const uint8_t *dst, uint16_t type)
{
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);

	spec_eth(&r, dst, -1, type);
	return r;
}

/* The peer's queue pair sends to us */
static bool hears(struct queue *in, struct queue *peer, const char *what, bool wanted)
{
	struct queue keep = out;
	struct ibv_mr *ours = source;
	struct got g = {};
	struct frame e;
	int status;

	eth(&e, mac_a, -1, TYPE + 1);
	pad(&e, 46, 5);
	out = *peer;
	source = peer->mr;
	status = send_frame(&e, 0);
	out = keep;
	source = ours;
	vt_check(status == IBV_WC_SUCCESS && next(in, &g, wanted ? 5 : 0.3) == wanted, "%s", what);
	return wanted;
}

/* One that sends only: its memory is where what it sends is */
static void sender_open(struct queue *q, struct vt_dev *dev)
{
	queue_begin(q, dev);
	q->qp = make_qp(dev, ibv_cq_ex_to_cq(q->cq), 0, 0);
	if (!q->qp)
		vt_die(VT_WRONG, "queue pair: %s", strerror(errno));
	bring_up(q->qp);
}

static void moves(void)
{
	struct rule r = type_rule(mac_b, TYPE), back = type_rule(mac_a, TYPE + 1);
	struct queue q, in, mute, anew;
	struct ibv_flow *f[3];
	struct frame e;

	queue_open(&q, to, 0);
	queue_open(&in, from, 0);
	sender_open(&mute, to);
	f[0] = flow(&q, &r);
	f[1] = flow(&in, &back);
	eth(&e, mac_b, -1, TYPE);
	pad(&e, 46, 4);
	send_frame(&e, 0);
	same(&q, &e, "before its netdev moves a queue hears");
	hears(&in, &mute, "and is heard", true);
	puts("# ready");
	fflush(stdout);
	getchar();
	send_frame(&e, 0);
	vt_check(nothing(&q), "afterwards it is deaf");
	hears(&in, &mute, "and mute", false);
	vt_check(!ibv_create_flow(q.qp, &r.attr) && errno == ENODEV, "and has no more flows");
	queue_open(&anew, to, 0);
	f[2] = flow(&anew, &r);
	send_frame(&e, 0);
	same(&anew, &e, "a new one hears");
	end_flow(f[0]);
	end_flow(f[1]);
	end_flow(f[2]);
	queue_close(&q);
	queue_close(&in);
	queue_close(&mute);
	queue_close(&anew);
}

static void all(void)
{
	sizes();
	kinds();
	vlans();
	priorities();
	defaults();
	sniffers();
	checksums();
	out_again();
	tso();
	extended();
	tso_for_many();
	tags();
	rss();
	lengths();
	odd_flows();
	privileges();
}

int main(int argc, char **argv)
{
	struct ibv_device_attr_ex attr;
	bool moving = false;
	int n = vt_open_hosts(argc, argv, devs, &moving);

	from = &devs[0];
	to = &devs[n - 1];
	if (ibv_query_device_ex(from->ctx, NULL, &attr))
		vt_die(VT_SETUP, "query device: %s", strerror(errno));
	vt_check(attr.rss_caps.supported_qpts & 1 << IBV_QPT_RAW_PACKET && attr.tso_caps.max_tso &&
		 attr.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, "the device says what it can do");
	source = vt_mr(from, 65536, IBV_ACCESS_LOCAL_WRITE);
	queue_open(&out, from, 0);
	if (moving)
		moves();
	else
		all();
	queue_close(&out);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
