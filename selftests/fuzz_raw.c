// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packets: flows, tables of work queues, and frames of which most have headers that make sense. Those who lack the
 * right to it are refused all of it, and have what others have made in the contexts that all share.
 */
#include <arpa/inet.h>

#include "fuzz.h"

/* --- flows ------------------------------------------------------------------------ */

struct parts {
	struct ib_uverbs_flow_attr *attr;
	uint8_t *at;
	uint32_t room;
};

static void part(struct parts *p, uint32_t type, const void *body, uint32_t len)
{
	struct ib_uverbs_flow_spec_hdr hdr = { .type = type, .size = sizeof(hdr) + len };

	if (p->room < hdr.size)
		return;
	memcpy(p->at, &hdr, sizeof(hdr));
	memcpy(p->at + sizeof(hdr), body, len);
	p->at += hdr.size;
	p->room -= hdr.size;
	p->attr->size += hdr.size;
	p->attr->num_of_specs++;
}

/* value and mask, in which little matters or nothing, so that some frames are right */
static void fields(struct fz_thread *t, struct parts *p, uint32_t type, uint32_t len)
{
	bool matters = fz_once(t, 2);
	uint8_t both[96] = {};
	uint32_t i;

	for (i = 0; i < len; i++) {
		if (!matters || !fz_once(t, 16))
			continue;
		both[i] = fz_rand(t);
		both[len + i] = fz_once(t, 2) ? 0xff : 1 << fz_below(t, 8);
	}
	part(p, type, both, 2 * len);
}

static void headers(struct fz_thread *t, struct parts *p)
{
	if (fz_once(t, 3))
		fields(t, p, IBV_FLOW_SPEC_ETH, sizeof(struct ib_uverbs_flow_eth_filter));
	if (fz_once(t, 3))
		fields(t, p, IBV_FLOW_SPEC_IPV4, sizeof(struct ib_uverbs_flow_ipv4_filter));
	else if (fz_once(t, 3))
		fields(t, p, IBV_FLOW_SPEC_IPV6, sizeof(struct ib_uverbs_flow_ipv6_filter));
	if (fz_once(t, 3))
		fields(t, p, fz_once(t, 2) ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP,
		       sizeof(struct ib_uverbs_flow_tcp_udp_filter));
	if (fz_once(t, 32))
		fields(t, p, fz_rand(t) & 0x1fff, fz_below(t, 12) * 4);
}

static void actions(struct fz_thread *t, struct fz_ctx *c, struct parts *p)
{
	uint32_t word[2] = { fz_rand(t) };

	if (fz_once(t, 4))
		part(p, IBV_FLOW_SPEC_ACTION_TAG, word, sizeof(word));
	if (fz_once(t, 8))
		part(p, IBV_FLOW_SPEC_ACTION_DROP, word, 0);
	if (!fz_once(t, 4))
		return;
	word[0] = fz_handle(t, c, FZ_COUNTERS);
	part(p, IBV_FLOW_SPEC_ACTION_COUNT, word, sizeof(word));
}

struct fz_obj *fz_some_raw(struct fz_thread *t, struct fz_ctx *c)
{
	struct fz_obj *o = NULL;
	int tries = 20;

	while (tries-- && (!o || o->type != IB_UVERBS_QPT_RAW_PACKET))
		o = fz_some(t, c, FZ_QP);
	return o;
}

void fz_flow(struct fz_thread *t, struct fz_ctx *c, void *create_flow)
{
	struct ib_uverbs_create_flow *cmd = create_flow;
	struct parts p = { &cmd->flow_attr, (uint8_t *)(cmd + 1), FZ_FLOW_PARTS };
	struct fz_obj *o = fz_once(t, 16) ? NULL : fz_some_raw(t, c);

	cmd->qp_handle = o ? o->handle : fz_handle(t, c, FZ_QP);
	cmd->flow_attr.type = fz_once(t, 4) ? fz_below(t, 5) : IBV_FLOW_ATTR_NORMAL;
	cmd->flow_attr.priority = fz_below(t, fz_once(t, 8) ? 65536 : 4);
	cmd->flow_attr.port = fz_once(t, 16) ? fz_below(t, 3) : 1;
	cmd->flow_attr.flags = fz_once(t, 4) ? fz_below(t, 8) : 0;
	if (!cmd->flow_attr.type || fz_once(t, 8))
		headers(t, &p);
	actions(t, c, &p);
	if (fz_below(t, 256) >= t->wild / 2)
		return;
	switch (fz_below(t, 4)) {
	case 0: cmd->flow_attr.size = fz_borderline(t, cmd->flow_attr.size); break;
	case 1: cmd->flow_attr.num_of_specs = fz_borderline(t, cmd->flow_attr.num_of_specs); break;
	default: ((uint8_t *)cmd)[fz_below(t, sizeof(*cmd) + FZ_FLOW_PARTS)] = fz_rand(t);
	}
}

/* --- work queues ------------------------------------------------------------------- */

void fz_table(struct fz_thread *t, struct fz_ctx *c, void *create_table)
{
	struct ib_uverbs_ex_create_rwq_ind_table *cmd = create_table;
	uint32_t i;

	cmd->log_ind_tbl_size = fz_below(t, 256) < t->wild / 4 ? fz_below(t, 16) : fz_below(t, 4);
	for (i = 0; i < 1u << min(cmd->log_ind_tbl_size, 3u); i++)
		cmd->wq_handles[i] = fz_handle(t, c, FZ_WQ);
}

void fz_hash(struct fz_thread *t, struct sroce_create_qp_req *req)
{
	uint32_t i;

	req->rx_hash_function = SROCE_RX_HASH_TOEPLITZ;
	req->rx_hash_key_len = SROCE_RX_HASH_KEY_LEN;
	req->rx_hash_fields = fz_below(t, 256);
	for (i = 0; i < SROCE_RX_HASH_KEY_LEN; i++)
		req->rx_hash_key[i] = fz_rand(t);
	if (fz_below(t, 256) < t->wild / 4)
		((uint8_t *)req)[fz_below(t, 24)] = fz_rand(t);
}

/* --- frames ------------------------------------------------------------------------ */

struct frame {
	uint8_t data[96];
	uint32_t len;
};

static void put(struct frame *f, const void *data, uint32_t len)
{
	memcpy(f->data + f->len, data, len);
	f->len += len;
}

static void put16(struct frame *f, uint16_t value)
{
	value = htons(value);
	put(f, &value, sizeof(value));
}

static void ethernet(struct fz_thread *t, struct frame *f, uint16_t type)
{
	static const uint8_t to[4][6] = { { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 }, { 1, 0, 0x5e, 1, 2, 3 },
					  { 255, 255, 255, 255, 255, 255 } };

	put(f, to[fz_below(t, 4)], 6);
	put(f, to[fz_below(t, 2)], 6);
	if (fz_once(t, 4)) {
		put16(f, fz_once(t, 4) ? 0x88a8 : 0x8100);
		put16(f, fz_rand(t));
	}
	put16(f, type);
}

/* Between addresses that are nobody's: what others have is not for us to disturb */
static void internet(struct fz_thread *t, struct frame *f, bool v6, uint8_t proto, uint16_t len)
{
	uint8_t four[20] = { 0x45, 0, (20 + len) >> 8, 20 + len, 0, 0, 0, 0, 64, proto, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2 };
	uint8_t six[40] = { 0x60, 0, 0, 0, len >> 8, len, proto, 64, 0x20, 1, 0xd, 0xb8 };

	four[fz_once(t, 2) ? 15 : 19] = fz_rand(t);
	memcpy(six + 24, six + 8, 4);
	six[fz_once(t, 2) ? 23 : 39] = fz_rand(t);
	if (fz_once(t, 16))
		four[6] = 0x20;
	put(f, v6 ? six : four, v6 ? sizeof(six) : sizeof(four));
}

static void transport(struct fz_thread *t, struct frame *f, bool tcp, uint16_t payload)
{
	static const uint8_t rest[16] = { [8] = 0x50, 0x10, 0x10 };

	put16(f, 1000 + fz_below(t, 16));
	put16(f, 2000 + fz_below(t, 16));
	if (tcp) {
		put(f, rest, sizeof(rest));
	} else {
		put16(f, 8 + payload);
		put16(f, 0);
	}
}

static void some_frame(struct fz_thread *t, struct frame *f, bool tcp, uint32_t payload)
{
	bool v6 = fz_once(t, 3);

	f->len = 0;
	if (!tcp && fz_once(t, 8)) {
		ethernet(t, f, 0x88b5);
		return;
	}
	ethernet(t, f, v6 ? 0x86dd : 0x0800);
	internet(t, f, v6, tcp ? 6 : 17, payload + (tcp ? 20 : 8));
	transport(t, f, tcp, payload);
}

void fz_frame(struct fz_thread *t, const struct fz_obj *o, struct sroce_send_wqe *w, uint8_t *list, uint32_t room)
{
	bool tso = fz_once(t, 3), list_too = tso && fz_once(t, 2);
	struct frame f;

	memset(w->room, 0, sizeof(w->room));
	w->opcode = tso ? SROCE_WR_TSO : SROCE_WR_SEND;
	w->imm_data = 0;
	w->remote_srqn = 0;
	w->flags = fz_below(t, 8) & ~SROCE_SEND_INLINE;
	w->inline_len = 0;
	if (fz_once(t, 2))
		w->flags |= SROCE_SEND_IP_CSUM;
	if (fz_once(t, 8)) {
		w->flags |= SROCE_SEND_VLAN;
		w->raw.vlan_tci = fz_rand(t);
	}
	some_frame(t, &f, tso || fz_once(t, 2), 0);
	if (fz_below(t, 256) < t->wild)
		f.data[fz_below(t, f.len)] = fz_rand(t);
	if (tso) {
		w->num_sge = list_too ? 1 + fz_below(t, 2) : 0;
		/* whatever is wrong with it is the end of a queue pair */
		w->raw.mss = fz_once(t, 64) ? fz_rand(t) : 64 + fz_below(t, 1300);
		w->raw.header_len = fz_once(t, 64) ? fz_below(t, 300) : f.len;
	} else if (fz_once(t, 2)) {
		w->flags |= SROCE_SEND_INLINE;
		w->num_sge = 0;
		w->inline_len = min(f.len, max(o->inlined, 60u));
	} else {
		/* whatever is in memory */
		return;
	}
	if (w->num_sge * sizeof(struct sroce_sge) + f.len <= room)
		memcpy(list + w->num_sge * sizeof(struct sroce_sge), f.data, f.len);
	if (fz_below(t, 256) < t->wild / 4)
		((uint8_t *)w)[fz_below(t, sizeof(*w))] = fz_rand(t);
}
