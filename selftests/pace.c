// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pace: rate limits of queue pairs: what is told of them, what is refused, and that
 * messages keep to them.
 *
 *	pace -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 */
#include <errno.h>

#include "ends.h"

#define MESSAGE (256 << 10)

/* Bytes that a packet of 1024 has beside its payload: IPv4, UDP, BTH, ICRC */
#define HEADERS 44

static struct ibv_mr *source, *sink;
static struct ibv_device_attr_ex attr;

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

/* WRITE until so much is done; kbit/s, as the network has it */
static double write_rate(size_t bytes, const char *what)
{
	double begin = vt_now();
	uint64_t id, messages = bytes / MESSAGE;
	struct ibv_wc wc = {};

	for (id = 0; id < messages; id++) {
		post_op(&a, id, IBV_WR_RDMA_WRITE, local(source), MESSAGE, remote(sink));
		if (id >= 2 && (!poll_one(a.send_cq, &wc, 30) || wc.status))
			break;
	}
	while (wc.status == IBV_WC_SUCCESS && wc.wr_id + 1 < messages)
		if (!poll_one(a.send_cq, &wc, 30))
			break;
	vt_check(wc.wr_id + 1 == messages && !wc.status, "%s: written: %s", what, ibv_wc_status_str(wc.status));
	return bytes / 1024. * (1024 + HEADERS) * 8 / 1000 / (vt_now() - begin);
}

/*
 * Never faster than it may be, but for the first train and a millisecond. How much slower depends on how late
 * timers are on this machine.
 */
static void keeps(const char *what, uint32_t kbit, size_t bytes)
{
	int rc = set_rate(kbit);
	double got;

	vt_check(!rc, "%s: %u kbit/s: %s", what, kbit, rc ? strerror(rc) : "set");
	got = write_rate(bytes, what);
	vt_check(got < kbit * 1.03, "%s: %.0f of %u kbit/s", what, got, kbit);
}

static void rates(enum ibv_qp_type type, const char *what)
{
	double limited, all;

	ends_fresh(type);
	keeps(what, 40000, 1 << 20);
	keeps(what, 200000, 4 << 20);
	limited = write_rate(4 << 20, what);
	vt_check(!set_rate(0), "%s: no limit any more", what);
	all = write_rate(4 << 20, what);
	vt_check(all > limited, "%s: faster without (%.0f and %.0f kbit/s)", what, all, limited);
	/* Who is destroyed does not wait: this would take minutes */
	set_rate(attr.packet_pacing_caps.qp_rate_limit_min);
	post_op(&a, 1, IBV_WR_RDMA_WRITE, local(source), MESSAGE, remote(sink));
	limited = vt_now();
	ends_stop();
	vt_check(vt_now() - limited < 5, "%s: destroyed while it waits, in %.1f s", what, vt_now() - limited);
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
	got = write_rate(1 << 20, "with a state");
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
	ends_open(argc, argv);
	if (ibv_query_device_ex(a.dev->ctx, NULL, &attr))
		vt_die(VT_SETUP, "query device: %s", strerror(errno));
	source = vt_mr(a.dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	sink = vt_mr(b.dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	limits();
	by_modify();
	rates(IBV_QPT_RC, "RC");
	rates(IBV_QPT_UC, "UC");
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
