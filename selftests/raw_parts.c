// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the tests of raw packets share (raw_parts.h).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw_parts.h"

const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 0xa };
const uint8_t mac_b[6] = { 2, 0, 0, 0, 0, 0xb };

/* --- queues ------------------------------------------------------------------- */

void give_back(struct queue *q, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)q->mr->addr + slot * SLOT, SLOT, q->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	int rc = q->wq ? ibv_post_wq_recv(q->wq, &wr, &bad) : ibv_post_recv(q->qp, &wr, &bad);

	if (rc)
		vt_die(VT_WRONG, "post receive: %s", strerror(rc));
}

void queue_begin(struct queue *q, struct vt_dev *dev)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4 * SLOTS,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_CVLAN |
			    IBV_WC_EX_WITH_FLOW_TAG,
	};

	memset(q, 0, sizeof(*q));
	q->cq = ibv_create_cq_ex(dev->ctx, &attr);
	if (!q->cq)
		vt_die(VT_WRONG, "completion queue: %s", strerror(errno));
	q->looked_at = NULL;
	q->mr = vt_mr(dev, SLOTS * SLOT, IBV_ACCESS_LOCAL_WRITE);
}

int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

void bring_up(struct ibv_qp *qp)
{
	if (to_state(qp, IBV_QPS_INIT) || to_state(qp, IBV_QPS_RTR) || to_state(qp, IBV_QPS_RTS))
		vt_die(VT_WRONG, "to RTS: %s", strerror(errno));
}

struct ibv_qp *make_qp(struct vt_dev *dev, struct ibv_cq *cq, uint32_t flags, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1,
		.cap = { .max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 2, .max_recv_sge = 1,
			 .max_inline_data = 128 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		.pd = dev->pd, .create_flags = flags, .max_tso_header = 128, .send_ops_flags = send_ops,
	};

	if (send_ops)
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	return ibv_create_qp_ex(dev->ctx, &attr);
}

void queue_open(struct queue *q, struct vt_dev *dev, uint32_t flags)
{
	int i;

	queue_begin(q, dev);
	q->qp = make_qp(dev, ibv_cq_ex_to_cq(q->cq), flags, 0);
	if (!q->qp)
		vt_die(errno == EPERM ? VT_SETUP : VT_WRONG, "queue pair: %s", strerror(errno));
	bring_up(q->qp);
	for (i = 0; i < SLOTS; i++)
		give_back(q, i);
}

void queue_close(struct queue *q)
{
	if ((q->qp && ibv_destroy_qp(q->qp)) || (q->wq && ibv_destroy_wq(q->wq)) ||
	    ibv_destroy_cq(ibv_cq_ex_to_cq(q->cq)))
		vt_die(VT_WRONG, "destroy a queue: %s", strerror(errno));
	vt_mr_free(q->mr);
}

bool next(struct queue *q, struct got *g, double seconds)
{
	struct ibv_poll_cq_attr attr = {};
	double end = vt_now() + seconds;
	uint64_t slot;

	if (q->looked_at) {
		give_back(q, (q->looked_at - (uint8_t *)q->mr->addr) / SLOT);
		q->looked_at = NULL;
	}
	while (ibv_start_poll(q->cq, &attr)) {
		if (vt_now() > end)
			return false;
		usleep(200);
	}
	*g = (struct got){
		.status = q->cq->status, .len = ibv_wc_read_byte_len(q->cq), .tag = ibv_wc_read_flow_tag(q->cq),
		.qpn = ibv_wc_read_qp_num(q->cq), .flags = ibv_wc_read_wc_flags(q->cq),
		.vlan = ibv_wc_read_cvlan(q->cq),
	};
	slot = q->cq->wr_id;
	ibv_end_poll(q->cq);
	if (slot < SLOTS) {
		g->data = (uint8_t *)q->mr->addr + slot * SLOT;
		if (!g->status)
			q->looked_at = g->data;
	}
	return true;
}

bool nothing(struct queue *q)
{
	struct got g;

	return !next(q, &g, 0.3);
}

/* --- rights --------------------------------------------------------------------- */

void drop_net_raw(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		vt_die(VT_SETUP, "capget: %s", strerror(errno));
	caps[0].effective &= ~(1u << CAP_NET_RAW);
	if (syscall(SYS_capset, &head, caps))
		vt_die(VT_SETUP, "capset: %s", strerror(errno));
}

/* --- frames -------------------------------------------------------------------- */

void put(struct frame *f, const void *data, uint32_t len)
{
	memcpy(f->data + f->len, data, len);
	f->len += len;
}

static void put16(struct frame *f, uint16_t value)
{
	uint16_t be = htons(value);

	put(f, &be, sizeof(be));
}

void eth(struct frame *f, const uint8_t *dst, int vlan, uint16_t type)
{
	f->len = 0;
	put(f, dst, 6);
	put(f, mac_a, 6);
	if (vlan >= 0) {
		put16(f, 0x8100);
		put16(f, vlan);
	}
	put16(f, type);
}

void ipv4(struct frame *f, uint8_t proto, uint32_t src, uint32_t dst, uint16_t payload)
{
	const uint8_t head[12] = { 0x45, 0, (20 + payload) >> 8, 20 + payload, 0, 7, 0x40, 0, 64, proto };
	uint32_t addresses[2] = { htonl(src), htonl(dst) };

	put(f, head, sizeof(head));
	put(f, addresses, sizeof(addresses));
}

void ipv6(struct frame *f, uint8_t proto, const char *src, const char *dst, uint16_t payload)
{
	const uint8_t head[8] = { 0x60, 0, 0, 0, payload >> 8, payload, proto, 64 };
	uint8_t a[32];

	inet_pton(AF_INET6, src, a);
	inet_pton(AF_INET6, dst, a + 16);
	put(f, head, sizeof(head));
	put(f, a, sizeof(a));
}

void udp(struct frame *f, uint16_t sport, uint16_t dport, uint16_t payload)
{
	put16(f, sport);
	put16(f, dport);
	put16(f, 8 + payload);
	put16(f, 0);
}

void tcp(struct frame *f, uint16_t sport, uint16_t dport, uint32_t seq)
{
	const uint8_t rest[8] = { 0x50, 0x10, 0x10, 0 };
	uint32_t words[2] = { htonl(seq), 0 };

	put16(f, sport);
	put16(f, dport);
	put(f, words, sizeof(words));
	put(f, rest, sizeof(rest));
}

void pad(struct frame *f, uint32_t n, uint64_t key)
{
	vt_pattern(f->data + f->len, key, 0, n);
	f->len += n;
}

void udp_frame(struct frame *f, int vlan, uint16_t sport, uint16_t dport)
{
	eth(f, mac_b, vlan, 0x0800);
	ipv4(f, 17, 0x0a620001, 0x0a620002, 8 + 50);
	udp(f, sport, dport, 50);
	pad(f, 50, sport);
}

/* --- checksums ------------------------------------------------------------------ */

static uint32_t sum(const uint8_t *data, uint32_t len, uint32_t start)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		start += data[i] << 8 | data[i + 1];
	if (len & 1)
		start += data[len - 1] << 8;
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return start;
}

bool sums_right(const uint8_t *data, uint32_t len)
{
	uint32_t l4 = len - 34;

	return sum(data + 14, 20, 0) == 0xffff && sum(data + 34, l4, sum(data + 26, 8, data[23] + l4)) == 0xffff;
}

/* --- flows ------------------------------------------------------------------------ */

struct rule rule(enum ibv_flow_attr_type type, uint16_t priority, uint32_t flags)
{
	return (struct rule){ .attr = { .type = type, .priority = priority, .port = 1, .flags = flags,
					.size = sizeof(struct ibv_flow_attr) } };
}

static void spec(struct rule *r, const void *data, size_t len)
{
	memcpy(r->specs + r->len, data, len);
	r->len += len;
	r->attr.num_of_specs++;
	r->attr.size += len;
}

void spec_eth(struct rule *r, const uint8_t *dst, int vlan, uint16_t type)
{
	struct ibv_flow_spec_eth s = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(s) };

	if (dst) {
		memcpy(s.val.dst_mac, dst, 6);
		memset(s.mask.dst_mac, 0xff, 6);
	}
	if (vlan >= 0) {
		s.val.vlan_tag = htons(vlan);
		s.mask.vlan_tag = htons(0xfff);
	}
	if (type) {
		s.val.ether_type = htons(type);
		s.mask.ether_type = 0xffff;
	}
	spec(r, &s, sizeof(s));
}

void spec_ipv4(struct rule *r, uint32_t dst)
{
	struct ibv_flow_spec_ipv4_ext s = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(s) };

	s.val.dst_ip = htonl(dst);
	s.mask.dst_ip = dst ? 0xffffffff : 0;
	spec(r, &s, sizeof(s));
}

void spec_ipv6(struct rule *r, const char *dst)
{
	struct ibv_flow_spec_ipv6 s = { .type = IBV_FLOW_SPEC_IPV6, .size = sizeof(s) };

	inet_pton(AF_INET6, dst, s.val.dst_ip);
	memset(s.mask.dst_ip, 0xff, 16);
	spec(r, &s, sizeof(s));
}

void spec_port(struct rule *r, enum ibv_flow_spec_type type, uint16_t dport)
{
	struct ibv_flow_spec_tcp_udp s = { .type = type, .size = sizeof(s) };

	s.val.dst_port = htons(dport);
	s.mask.dst_port = dport ? 0xffff : 0;
	spec(r, &s, sizeof(s));
}

void spec_tag(struct rule *r, uint32_t tag)
{
	struct ibv_flow_spec_action_tag s = { .type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(s), .tag_id = tag };

	spec(r, &s, sizeof(s));
}

void spec_drop(struct rule *r)
{
	struct ibv_flow_spec_action_drop s = { .type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(s) };

	spec(r, &s, sizeof(s));
}

void spec_count(struct rule *r, struct ibv_counters *counters)
{
	struct ibv_flow_spec_counter_action s = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(s),
						  .counters = counters };

	spec(r, &s, sizeof(s));
}

struct ibv_flow *flow(struct queue *q, struct rule *r)
{
	struct ibv_flow *f = ibv_create_flow(q->qp, &r->attr);

	if (!f)
		vt_die(VT_WRONG, "create a flow: %s", strerror(errno));
	return f;
}

void end_flow(struct ibv_flow *f)
{
	if (ibv_destroy_flow(f))
		vt_die(VT_WRONG, "destroy a flow: %s", strerror(errno));
}

struct rule port_rule(uint16_t priority, uint32_t flags, uint16_t dport)
{
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, priority, flags);

	spec_eth(&r, mac_b, -1, 0x0800);
	spec_ipv4(&r, 0x0a620002);
	spec_port(&r, IBV_FLOW_SPEC_UDP, dport);
	return r;
}
