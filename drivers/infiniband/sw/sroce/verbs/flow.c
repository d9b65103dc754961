// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flows of raw packets, and counters of what they have seen: what ib_core calls. What a
 * consumer says of headers becomes fields and a mask here; raw/ finds the frames.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>

#include "raw/raw.h"
#include "verbs/compat.h"
#include "verbs/quota.h"
#include "verbs/verbs.h"

/* --- headers ---------------------------------------------------------------- */

/* The frame has such a header, whatever the fields of it are */
static void sroce_flow_wants(struct sroce_flow_rule *rule, u8 has)
{
	rule->key.has |= has;
	rule->mask.has |= has;
}

static void sroce_flow_eth_part(struct sroce_flow_key *key,
				const struct ib_flow_eth_filter *f)
{
	ether_addr_copy(key->dmac, f->dst_mac);
	ether_addr_copy(key->smac, f->src_mac);
	key->type = f->ether_type;
	key->tci = f->vlan_tag;
}

static void sroce_flow_eth(struct sroce_flow_rule *rule,
			   const struct ib_flow_spec_eth *spec)
{
	sroce_flow_eth_part(&rule->key, &spec->val);
	sroce_flow_eth_part(&rule->mask, &spec->mask);
	if (spec->mask.vlan_tag)
		sroce_flow_wants(rule, SROCE_HAS_VLAN);
}

static void sroce_flow_ipv4_part(struct sroce_flow_key *key,
				 const struct ib_flow_ipv4_filter *f)
{
	key->saddr[3] = f->src_ip;
	key->daddr[3] = f->dst_ip;
	key->proto = f->proto;
	key->tos = f->tos;
	key->ttl = f->ttl;
	key->ip_flags = f->flags;
}

static void sroce_flow_ipv4(struct sroce_flow_rule *rule,
			    const struct ib_flow_spec_ipv4 *spec)
{
	sroce_flow_ipv4_part(&rule->key, &spec->val);
	sroce_flow_ipv4_part(&rule->mask, &spec->mask);
	sroce_flow_wants(rule, SROCE_HAS_IPV4);
}

static void sroce_flow_ipv6_part(struct sroce_flow_key *key,
				 const struct ib_flow_ipv6_filter *f)
{
	memcpy(key->saddr, f->src_ip, sizeof(key->saddr));
	memcpy(key->daddr, f->dst_ip, sizeof(key->daddr));
	key->label = f->flow_label;
	key->proto = f->next_hdr;
	key->tos = f->traffic_class;
	key->ttl = f->hop_limit;
}

static void sroce_flow_ipv6(struct sroce_flow_rule *rule,
			    const struct ib_flow_spec_ipv6 *spec)
{
	sroce_flow_ipv6_part(&rule->key, &spec->val);
	sroce_flow_ipv6_part(&rule->mask, &spec->mask);
	sroce_flow_wants(rule, SROCE_HAS_IPV6);
}

static void sroce_flow_ports(struct sroce_flow_rule *rule,
			     const struct ib_flow_spec_tcp_udp *spec)
{
	rule->key.sport = spec->val.src_port;
	rule->key.dport = spec->val.dst_port;
	rule->mask.sport = spec->mask.src_port;
	rule->mask.dport = spec->mask.dst_port;
	sroce_flow_wants(rule, spec->type == IB_FLOW_SPEC_TCP ?
			       SROCE_HAS_TCP : SROCE_HAS_UDP);
}

/* --- what a flow consists of ------------------------------------------------ */

/* A bit for each kind of part: none comes twice, and of each layer there is one */
enum sroce_flow_part {
	SROCE_PART_ETH = 1 << 0,
	SROCE_PART_IP = 1 << 1,
	SROCE_PART_PORTS = 1 << 2,
	SROCE_PART_TAG = 1 << 3,
	SROCE_PART_DROP = 1 << 4,
	SROCE_PART_COUNT = 1 << 5,
	SROCE_PART_HEADERS = SROCE_PART_ETH | SROCE_PART_IP | SROCE_PART_PORTS,
};

static int sroce_flow_header(struct sroce_flow_rule *rule,
			     const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		sroce_flow_eth(rule, &spec->eth);
		return SROCE_PART_ETH;
	case IB_FLOW_SPEC_IPV4:
		sroce_flow_ipv4(rule, &spec->ipv4);
		return SROCE_PART_IP;
	case IB_FLOW_SPEC_IPV6:
		sroce_flow_ipv6(rule, &spec->ipv6);
		return SROCE_PART_IP;
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP:
		sroce_flow_ports(rule, &spec->tcp_udp);
		return SROCE_PART_PORTS;
	default:
		/* tunnels, what is inside of them, ESP, MPLS, InfiniBand */
		return -EOPNOTSUPP;
	}
}

static int sroce_flow_part(struct sroce_flow_rule *rule,
			   const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ACTION_TAG:
		rule->tag = spec->flow_tag.tag_id;
		return SROCE_PART_TAG;
	case IB_FLOW_SPEC_ACTION_DROP:
		rule->drop = true;
		return SROCE_PART_DROP;
	case IB_FLOW_SPEC_ACTION_COUNT:
		rule->counts = container_of(spec->flow_count.counters,
					    struct sroce_counters_obj,
					    ibcounters)->counts;
		return SROCE_PART_COUNT;
	default:
		return sroce_flow_header(rule, spec);
	}
}

static int sroce_flow_parts(struct sroce_flow_rule *rule,
			    const struct ib_flow_attr *attr)
{
	const union ib_flow_spec *spec = attr->flows;
	u32 parts = 0;
	int part, i;

	for (i = 0; i < attr->num_of_specs; i++) {
		part = sroce_flow_part(rule, spec);
		if (part < 0)
			return part;
		if (parts & part)
			return -EINVAL;
		parts |= part;
		spec = (const void *)spec + spec->size;
	}
	/* Those that are for all frames do not look at any */
	if (rule->type != SROCE_FLOW_NORMAL && parts & SROCE_PART_HEADERS)
		return -EINVAL;
	return 0;
}

static int sroce_flow_type(struct sroce_flow_rule *rule,
			   const struct ib_flow_attr *attr)
{
	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		rule->type = SROCE_FLOW_NORMAL;
		break;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		rule->type = SROCE_FLOW_DEFAULT;
		break;
	case IB_FLOW_ATTR_MC_DEFAULT:
		rule->type = SROCE_FLOW_MULTICAST;
		break;
	case IB_FLOW_ATTR_SNIFFER:
		rule->type = SROCE_FLOW_SNIFFER;
		break;
	default:
		return -EINVAL;
	}
	return attr->flags & ~(u32)IB_FLOW_ATTR_FLAGS_DONT_TRAP ? -EOPNOTSUPP : 0;
}

static int sroce_flow_rule(struct sroce_flow_rule *rule,
			   const struct sroce_qp_obj *obj,
			   const struct ib_flow_attr *attr)
{
	int err;

	*rule = (struct sroce_flow_rule){
		.priority = attr->priority,
		.dont_trap = attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP,
		.qp = obj->qp,
		.rss = obj->rss,
		.owner = obj->qp->owner,
	};
	err = sroce_flow_type(rule, attr);
	return err ?: sroce_flow_parts(rule, attr);
}

/* --- flows ------------------------------------------------------------------ */

static int sroce_flow_make(struct sroce_flow_obj *flow,
			   struct sroce_qp_obj *obj,
			   const struct ib_flow_attr *attr)
{
	struct sroce_device *dev = to_sroce_device(obj->ibqp.device);
	struct sroce_flow_rule rule;
	int err;

	err = sroce_flow_rule(&rule, obj, attr);
	if (err) {
		ibdev_dbg(&dev->ibdev, "create_flow: type %d, flags %#x: %d\n",
			  attr->type, attr->flags, err);
		return err;
	}
	flow->flow = sroce_raw_add_flow(dev->port.net.raw, &rule,
					obj->qp->net_cookie);
	return PTR_ERR_OR_ZERO(flow->flow);
}

struct ib_flow *sroce_ib_create_flow(struct ib_qp *ibqp,
				     struct ib_flow_attr *attr,
				     struct ib_udata *udata)
{
	struct sroce_flow_obj *flow;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	/* ib_core lets datagram QPs through, which have no use for it on Ethernet */
	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return ERR_PTR(-EOPNOTSUPP);
	flow = kzalloc_obj(*flow, GFP_KERNEL_ACCOUNT);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	err = sroce_flow_make(flow, to_sroce_qp_obj(ibqp), attr);
	if (!err)
		return &flow->ibflow;
	kfree(flow);
	return ERR_PTR(err);
}

int sroce_ib_destroy_flow(struct ib_flow *ibflow)
{
	struct sroce_flow_obj *flow = container_of(ibflow,
						   struct sroce_flow_obj,
						   ibflow);

	sroce_raw_del_flow(to_sroce_device(ibflow->device)->port.net.raw,
			   flow->flow);
	kfree(flow);
	return 0;
}

/* --- counters --------------------------------------------------------------- */

static struct sroce_counters_obj *to_sroce_counters(struct ib_counters *ibcounters)
{
	return container_of(ibcounters, struct sroce_counters_obj, ibcounters);
}

int sroce_ib_create_counters(struct ib_counters *ibcounters,
			     struct uverbs_attr_bundle *attrs)
{
	struct sroce_device *dev = to_sroce_device(ibcounters->device);
	struct sroce_counters_obj *obj = to_sroce_counters(ibcounters);
	int err;

	err = sroce_quota_take(dev, SROCE_OBJECT_COUNTERS, true);
	if (err)
		return err;
	obj->counts = sroce_flow_counts_alloc();
	if (obj->counts)
		return 0;
	sroce_quota_give(dev, SROCE_OBJECT_COUNTERS);
	return -ENOMEM;
}

int sroce_ib_destroy_counters(struct ib_counters *ibcounters)
{
	sroce_flow_counts_put(to_sroce_counters(ibcounters)->counts);
	sroce_quota_give(to_sroce_device(ibcounters->device),
			 SROCE_OBJECT_COUNTERS);
	return 0;
}

/* Whoever has asked for more gets zeros */
int sroce_ib_read_counters(struct ib_counters *ibcounters,
			   struct ib_counters_read_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	struct sroce_flow_counts *counts = to_sroce_counters(ibcounters)->counts;

	if (attr->ncounters > SROCE_FLOW_PACKETS)
		attr->counters_buff[SROCE_FLOW_PACKETS] =
			atomic64_read(&counts->packets);
	if (attr->ncounters > SROCE_FLOW_BYTES)
		attr->counters_buff[SROCE_FLOW_BYTES] =
			atomic64_read(&counts->bytes);
	return 0;
}
