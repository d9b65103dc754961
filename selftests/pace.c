// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pace: rate limits of queue pairs: what is told of them, what is refused, and that
 * messages keep to them, whatever the transport.
 *
 *	pace -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 */
#include <errno.h>

#include "ends.h"

#define MESSAGE (256 << 10)

/* A message of datagrams is so many of that size, posted at once: there are machines where a doorbell takes 100 microseconds */
#define DATAGRAM 1024
#define DATAGRAMS 16

/* So many times slower than its limit may a QP be where timers are late */
#define LATE 3.

/* Bytes that a packet of 1024 has beside its payload: IPv4, UDP, BTH, ICRC; and more of them with XRC and datagrams */
#define HEADERS 44
#define XRCETH 4
#define DETH 8

static struct ibv_mr *source, *sink;
static struct ibv_device_attr_ex attr;
/* SLOW: this machine is so many times slower than usual, and so its timers are later */
static double slow = 1;

/* Of XRC, the number of the queue that requests name; of datagrams, where they go to */
static uint32_t remote_srqn;
static struct ibv_send_wr datagram;

static int set_rate(uint32_t kbit)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = kbit };

	return ibv_modify_qp_rate_limit(a.qp, &rate);
}

static void refused(const char *what, struct ibv_qp_rate_limit_attr rate, int wanted)
{
	int rc = ibv_modify_qp_rate_limit(a.qp, &rate);

	vt_check(rc == wanted, "%s: %s", what, rc ? strerror(rc) : "taken");
}

static int post_datagrams(uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)source->addr, DATAGRAM, source->lkey };
	struct ibv_send_wr wr[DATAGRAMS];
	int i;

	for (i = 0; i < DATAGRAMS; i++) {
		bool last = i == DATAGRAMS - 1;

		wr[i] = datagram;
		wr[i].wr_id = id;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].send_flags = last ? IBV_SEND_SIGNALED : 0;
		wr[i].next = last ? NULL : wr + i + 1;
	}
	return post_wr(&a, wr);
}

static int post_message(enum ibv_qp_type type, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)source->addr, MESSAGE, source->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };

	if (type == IBV_QPT_UD)
		return post_datagrams(id);
	wr.wr.rdma.remote_addr = (uintptr_t)sink->addr;
	wr.wr.rdma.rkey = sink->rkey;
	wr.qp_type.xrc.remote_srqn = remote_srqn;
	return post_wr(&a, &wr);
}

static unsigned int headers(enum ibv_qp_type type)
{
	return HEADERS + (type == IBV_QPT_UD ? DETH : type == IBV_QPT_XRC_SEND ? XRCETH : 0);
}

/* WRITE, or send datagrams, a few at a time, until so much is done; kbit/s, as the network has it */
static double rate_of(enum ibv_qp_type type, size_t bytes, const char *what)
{
	bool ud = type == IBV_QPT_UD;
	uint64_t messages = bytes / (ud ? DATAGRAMS * DATAGRAM : MESSAGE), id;
	uint64_t ahead = ud ? ends_depth / DATAGRAMS - 1 : 2;
	double begin = vt_now();
	struct ibv_wc wc = {};

	for (id = 0; id < messages; id++) {
		if (post_message(type, id) || (id >= ahead && (!poll_one(a.send_cq, &wc, 30) || wc.status)))
			break;
	}
	while (wc.status == IBV_WC_SUCCESS && wc.wr_id + 1 < messages)
		if (!poll_one(a.send_cq, &wc, 30))
			break;
	vt_check(wc.wr_id + 1 == messages && !wc.status, "%s: %s: %s", what, ud ? "sent" : "written", ibv_wc_status_str(wc.status));
	return bytes / 1024. * (1024 + headers(type)) * 8 / 1000 / (vt_now() - begin);
}

/*
 * Never faster than it may be, but for the first train and a millisecond; and not so slow that it is something else that
 * holds it up. How much slower it is depends on how late timers are on this machine: a few milliseconds each, and a late
 * one is made up for by a millisecond at most. @all is what this machine can do where nothing limits it.
 */
static void keeps(enum ibv_qp_type type, const char *what, uint32_t kbit, size_t bytes, double all)
{
	double least = (all < kbit ? all : kbit) / LATE / slow, got;
	int rc = set_rate(kbit);

	vt_check(!rc, "%s: %u kbit/s: %s", what, kbit, rc ? strerror(rc) : "set");
	got = rate_of(type, bytes, what);
	vt_check(got < kbit * 1.03, "%s: no faster: %.0f of %u kbit/s", what, got, kbit);
	vt_check(got > least, "%s: nor much slower: %.0f of %u kbit/s, %.0f without a limit", what, got, kbit, all);
}

/* As ends_datagrams() has it, but as many at a time as pass while a timer is late */
static void fresh_datagrams(void)
{
	ends_datagrams(&datagram);
	if (ibv_destroy_qp(a.qp))
		vt_die(VT_WRONG, "destroy qp: %s", strerror(errno));
	a.qp = vt_create_ud_qp(a.dev, a.send_cq, a.recv_cq, ends_depth);
}

static void rates(enum ibv_qp_type type, const char *what)
{
	struct ibv_xrcd *xrcd = NULL;
	double limited, all;

	if (type == IBV_QPT_UD)
		fresh_datagrams();
	else if (type == IBV_QPT_XRC_SEND)
		xrcd = ends_fresh_xrc(-1, &remote_srqn);
	else
		ends_fresh(type);
	all = rate_of(type, 4 << 20, what);
	keeps(type, what, 200000, 4 << 20, all);
	keeps(type, what, 40000, 1 << 20, all);
	limited = rate_of(type, 4 << 20, what);
	vt_check(!set_rate(0), "%s: no limit any more", what);
	all = rate_of(type, 4 << 20, what);
	vt_check(all > limited, "%s: faster without (%.0f and %.0f kbit/s)", what, all, limited);
	/* Who is destroyed does not wait: this would take minutes */
	set_rate(attr.packet_pacing_caps.qp_rate_limit_min);
	post_message(type, 1);
	limited = vt_now();
	ends_stop();
	vt_check(vt_now() - limited < 5, "%s: destroyed while it waits, in %.1f s", what, vt_now() - limited);
	if (datagram.wr.ud.ah)
		ibv_destroy_ah(datagram.wr.ud.ah);
	datagram.wr.ud.ah = NULL;
	if (xrcd && (ibv_destroy_srq(b.srq) || ibv_close_xrcd(xrcd)))
		vt_die(VT_WRONG, "destroy: %s", strerror(errno));
	b.srq = NULL;
}

/* A limit can be given with the way to RTS as well, as ibv_modify_qp() has it */
static void by_modify(void)
{
	struct ibv_qp_attr qp = { .qp_state = IBV_QPS_RTS, .rate_limit = 40000 };
	double got;
	int rc;

	ends_fresh(IBV_QPT_RC);
	rc = ibv_modify_qp(a.qp, &qp, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
	vt_check(!rc, "with a state: %s", rc ? strerror(rc) : "set");
	got = rate_of(IBV_QPT_RC, 1 << 20, "with a state");
	vt_check(got < 40000 * 1.03, "with a state: %.0f of 40000 kbit/s", got);
}

static void limits(void)
{
	const struct ibv_packet_pacing_caps *caps = &attr.packet_pacing_caps;
	uint32_t least = caps->qp_rate_limit_min;

	vt_check(least && caps->qp_rate_limit_max > 100000000 && caps->supported_qpts & 1 << IBV_QPT_RC,
		 "device: %u to %u kbit/s, types %#x", least, caps->qp_rate_limit_max, caps->supported_qpts);
	ends_fresh(IBV_QPT_RC);
	refused("the least rate", (struct ibv_qp_rate_limit_attr){ .rate_limit = least }, 0);
	refused("the largest rate", (struct ibv_qp_rate_limit_attr){ .rate_limit = caps->qp_rate_limit_max }, 0);
	refused("less than the least rate", (struct ibv_qp_rate_limit_attr){ .rate_limit = least - 1 }, EINVAL);
	refused("a length of bursts", (struct ibv_qp_rate_limit_attr){ .rate_limit = 40000, .max_burst_sz = 4096 },
		EOPNOTSUPP);
	refused("an unknown attribute", (struct ibv_qp_rate_limit_attr){ .rate_limit = 40000, .comp_mask = 1 },
		EOPNOTSUPP);
}

int main(int argc, char **argv)
{
	if (getenv("SLOW"))
		slow = atof(getenv("SLOW"));
	ends_depth = 256;
	ends_open(argc, argv);
	if (ibv_query_device_ex(a.dev->ctx, NULL, &attr))
		vt_die(VT_SETUP, "query device: %s", strerror(errno));
	source = vt_mr(a.dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	sink = vt_mr(b.dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	limits();
	by_modify();
	rates(IBV_QPT_RC, "RC");
	rates(IBV_QPT_UC, "UC");
	rates(IBV_QPT_XRC_SEND, "XRC");
	rates(IBV_QPT_UD, "UD");
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
