// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of a device's flows, and how a frame finds those that it is for.
 *
 * Flows that look at the same fields of the same priority are one shape: to find those of a
 * frame takes one look-up, however many there are. So a frame costs as many look-ups as
 * there are shapes, and of these there are few.
 */
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat.h"
#include "raw/flow.h"
#include "transport/seam.h"

#define SROCE_FLOW_BUCKETS (SROCE_FLOWS_MOST / 4)

/* --- counts ----------------------------------------------------------------- */

struct sroce_flow_counts *sroce_flow_counts_alloc(void)
{
	struct sroce_flow_counts *c = kzalloc_obj(*c, GFP_KERNEL_ACCOUNT);

	if (c)
		kref_init(&c->refs);
	return c;
}

static void sroce_flow_counts_free(struct kref *refs)
{
	kfree(container_of(refs, struct sroce_flow_counts, refs));
}

void sroce_flow_counts_put(struct sroce_flow_counts *c)
{
	if (c)
		kref_put(&c->refs, sroce_flow_counts_free);
}

/* --- flows ------------------------------------------------------------------ */

int sroce_flow_prepare(struct sroce_flow *flow)
{
	if (flow->rule.type != SROCE_FLOW_NORMAL)
		return 0;
	flow->spare = kzalloc_obj(*flow->spare, GFP_KERNEL_ACCOUNT);
	return flow->spare ? 0 : -ENOMEM;
}

struct sroce_flow *sroce_flow_alloc(const struct sroce_flow_rule *rule)
{
	struct sroce_flow *flow = kzalloc_obj(*flow, GFP_KERNEL_ACCOUNT);

	if (!flow)
		return NULL;
	flow->rule = *rule;
	if (sroce_flow_prepare(flow)) {
		kfree(flow);
		return NULL;
	}
	sroce_qp_hold(rule->qp);
	if (rule->counts)
		kref_get(&rule->counts->refs);
	return flow;
}

static void sroce_flow_free_rcu(struct rcu_head *rcu)
{
	struct sroce_flow *flow = container_of(rcu, struct sroce_flow, rcu);

	sroce_flow_counts_put(flow->rule.counts);
	sroce_qp_put(flow->rule.qp);
	kfree(flow);
}

void sroce_flow_free(struct sroce_flow *flow)
{
	if (!flow)
		return;
	kfree(flow->spare);
	call_rcu(&flow->rcu, sroce_flow_free_rcu);
}

/* --- keys ------------------------------------------------------------------- */

static void sroce_flow_key_mask(struct sroce_flow_key *to,
				const struct sroce_flow_key *key,
				const struct sroce_flow_key *mask)
{
	const u64 *k = (const u64 *)key, *m = (const u64 *)mask;
	u64 *t = (u64 *)to;
	u32 i;

	for (i = 0; i < SROCE_FLOW_KEY_WORDS; i++)
		t[i] = k[i] & m[i];
}

static struct hlist_head *
sroce_flow_bucket(const struct sroce_flow_table *t,
		  const struct sroce_flow_shape *shape,
		  const struct sroce_flow_key *masked)
{
	u32 hash = hsiphash(masked, sizeof(*masked), &t->secret);

	return &t->buckets[(hash ^ shape->salt) & (SROCE_FLOW_BUCKETS - 1)];
}

/* --- shapes ----------------------------------------------------------------- */

/* How many there may be, with or without what is kept for the administrator */
static u32 sroce_flow_most(u32 most, bool last)
{
	return last ? most : most - most / SROCE_FLOW_RESERVED;
}

static struct sroce_flow_shape *
sroce_flow_shape_find(const struct sroce_flow_table *t,
		      const struct sroce_flow_rule *rule)
{
	struct sroce_flow_shape *shape;

	list_for_each_entry(shape, &t->shapes, node)
		if (shape->priority == rule->priority &&
		    !memcmp(&shape->mask, &rule->mask, sizeof(shape->mask)))
			return shape;
	return NULL;
}

/* Return: a shape for the flow and others, from sroce_flow_prepare(), or NULL: too many */
static struct sroce_flow_shape *
sroce_flow_shape_make(struct sroce_flow_table *t, struct sroce_flow *flow,
		      bool last)
{
	const struct sroce_flow_rule *rule = &flow->rule;
	struct sroce_flow_shape *shape = flow->spare, *next;

	if (!shape || t->nshapes >= sroce_flow_most(SROCE_FLOW_SHAPES, last))
		return NULL;
	flow->spare = NULL;
	shape->priority = rule->priority;
	shape->mask = rule->mask;
	shape->salt = get_random_u32();
	list_for_each_entry(next, &t->shapes, node)
		if (next->priority > shape->priority)
			break;
	/* In front of that one, or at the end */
	list_add_tail_rcu(&shape->node, &next->node);
	WRITE_ONCE(t->nshapes, t->nshapes + 1);
	return shape;
}

static void sroce_flow_shape_put(struct sroce_flow_table *t,
				 struct sroce_flow_shape *shape)
{
	if (shape->flows)
		return;
	list_del_rcu(&shape->node);
	WRITE_ONCE(t->nshapes, t->nshapes - 1);
	kfree_rcu(shape, rcu);
}

/* --- table ------------------------------------------------------------------ */

void sroce_flow_table_init(struct sroce_flow_table *t)
{
	int i;

	memset(t, 0, sizeof(*t));
	INIT_LIST_HEAD(&t->shapes);
	for (i = 0; i < SROCE_FLOW_TYPES; i++)
		INIT_LIST_HEAD(&t->others[i]);
	get_random_bytes(&t->secret, sizeof(t->secret));
}

void sroce_flow_table_end(struct sroce_flow_table *t)
{
	kvfree(t->buckets);
	t->buckets = NULL;
}

/*
 * The buckets are all flows', and so nobody's in particular. They are there before the
 * first flow of any type, which has the tap put up: so whoever comes from the tap has them,
 * and the first shape need not publish them.
 */
static int sroce_flow_table_begin(struct sroce_flow_table *t)
{
	struct hlist_head *buckets;

	if (t->buckets)
		return 0;
	buckets = kvcalloc(SROCE_FLOW_BUCKETS, sizeof(*buckets), GFP_KERNEL);
	if (!buckets)
		return -ENOMEM;
	t->buckets = buckets;
	return 0;
}

static bool sroce_flow_same(const struct sroce_flow *flow,
			    const struct sroce_flow_shape *shape,
			    const struct sroce_flow_key *masked)
{
	return flow->shape == shape &&
	       !memcmp(&flow->rule.key, masked, sizeof(*masked));
}

/* Put a flow into its bucket, behind those that are there: the older one comes first */
static int sroce_flow_hash(struct sroce_flow_table *t, struct sroce_flow *flow,
			   bool last)
{
	struct sroce_flow_key *key = &flow->rule.key;
	struct hlist_head *bucket = sroce_flow_bucket(t, flow->shape, key);
	struct sroce_flow *other;
	u32 same = 0;

	hlist_for_each_entry(other, bucket, hash)
		same += sroce_flow_same(other, flow->shape, key);
	if (same >= sroce_flow_most(SROCE_FLOW_COPIES, last))
		return -ENOSPC;
	hlist_add_tail_rcu(&flow->hash, bucket);
	flow->shape->flows++;
	return 0;
}

static int sroce_flow_table_add_normal(struct sroce_flow_table *t,
				       struct sroce_flow *flow, bool last)
{
	struct sroce_flow_shape *shape;
	int err;

	sroce_flow_key_mask(&flow->rule.key, &flow->rule.key, &flow->rule.mask);
	shape = sroce_flow_shape_find(t, &flow->rule) ?:
		sroce_flow_shape_make(t, flow, last);
	if (!shape)
		return -ENOSPC;
	flow->shape = shape;
	err = sroce_flow_hash(t, flow, last);
	if (err)
		sroce_flow_shape_put(t, shape);
	return err;
}

static int sroce_flow_table_add_other(struct sroce_flow_table *t,
				      struct sroce_flow *flow, bool last)
{
	enum sroce_flow_type type = flow->rule.type;

	if (t->nothers[type] >= sroce_flow_most(SROCE_FLOW_COPIES, last))
		return -ENOSPC;
	t->nothers[type]++;
	list_add_tail_rcu(&flow->other, &t->others[type]);
	return 0;
}

int sroce_flow_table_add(struct sroce_flow_table *t, struct sroce_flow *flow,
			 bool last)
{
	int err;

	if (t->flows >= sroce_flow_most(SROCE_FLOWS_MOST, last))
		return -ENOSPC;
	err = sroce_flow_table_begin(t);
	if (err)
		return err;
	if (flow->rule.type == SROCE_FLOW_NORMAL)
		err = sroce_flow_table_add_normal(t, flow, last);
	else
		err = sroce_flow_table_add_other(t, flow, last);
	if (err)
		return err;
	flow->listed = true;
	t->flows++;
	kfree(flow->spare);
	flow->spare = NULL;
	return 0;
}

void sroce_flow_table_del(struct sroce_flow_table *t, struct sroce_flow *flow)
{
	if (!flow->listed)
		return;
	flow->listed = false;
	t->flows--;
	if (flow->rule.type != SROCE_FLOW_NORMAL) {
		t->nothers[flow->rule.type]--;
		list_del_rcu(&flow->other);
		return;
	}
	hlist_del_rcu(&flow->hash);
	flow->shape->flows--;
	sroce_flow_shape_put(t, flow->shape);
}

/* --- look-up ---------------------------------------------------------------- */

static enum sroce_flow_class sroce_flow_class(const struct sroce_flow *flow)
{
	if (flow->rule.type == SROCE_FLOW_SNIFFER)
		return SROCE_FLOW_SEES;
	return flow->rule.dont_trap ? SROCE_FLOW_PASSES : SROCE_FLOW_TAKES;
}

static bool sroce_flow_found(struct sroce_flows_found *found,
			     struct sroce_flow *flow, const void *sender)
{
	u8 *of = &found->of[sroce_flow_class(flow)];

	if (sender && flow->rule.owner == sender)
		return false;
	if (*of < SROCE_FLOW_COPIES) {
		found->flow[found->n++] = flow;
		++*of;
	}
	return true;
}

/* Return: a flow has taken the frame */
static bool sroce_flow_match_list(const struct list_head *list,
				  const void *sender,
				  struct sroce_flows_found *found)
{
	struct sroce_flow *flow;
	bool taken = false;

	list_for_each_entry_rcu(flow, list, other)
		taken |= sroce_flow_found(found, flow, sender);
	return taken;
}

void sroce_flow_sniffers(const struct sroce_flow_table *t,
			 struct sroce_flows_found *found)
{
	sroce_flow_match_list(&t->others[SROCE_FLOW_SNIFFER], NULL, found);
}

static bool sroce_flow_match_shape(const struct sroce_flow_table *t,
				   const struct sroce_flow_shape *shape,
				   const struct sroce_flow_key *key,
				   const void *sender,
				   struct sroce_flows_found *found)
{
	struct sroce_flow_key masked;
	struct sroce_flow *flow;
	bool taken = false;

	sroce_flow_key_mask(&masked, key, &shape->mask);
	hlist_for_each_entry_rcu(flow, sroce_flow_bucket(t, shape, &masked),
				 hash) {
		if (sroce_flow_same(flow, shape, &masked) &&
		    sroce_flow_found(found, flow, sender))
			taken |= !flow->rule.dont_trap;
	}
	return taken;
}

void sroce_flow_match(const struct sroce_flow_table *t,
		      const struct sroce_flow_key *key, const void *sender,
		      struct sroce_flows_found *found)
{
	struct sroce_flow_shape *shape;

	list_for_each_entry_rcu(shape, &t->shapes, node)
		if (sroce_flow_match_shape(t, shape, key, sender, found))
			return;
	if (is_multicast_ether_addr(key->dmac) &&
	    sroce_flow_match_list(&t->others[SROCE_FLOW_MULTICAST], sender,
				  found))
		return;
	sroce_flow_match_list(&t->others[SROCE_FLOW_DEFAULT], sender, found);
}
