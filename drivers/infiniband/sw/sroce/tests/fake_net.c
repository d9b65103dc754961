// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A network in memory, in the place of net/, that loses, repeats and reorders what
 * the tests want it to.
 */
#include <linux/slab.h>
#include <linux/smp.h>
#include <net/sock.h>

#include "compat.h"
#include "memory/copy.h"
#include "tests/fake_net.h"
#include "transport/qp.h"

/* Packets that may be coupled to one train */
#define FAKE_TRAIN 8

struct fake_rx {
	struct sroce_rx rx;
	struct sroce_rx_info info;
	struct fake_net *net;
	const struct fake_path *path;
	struct fake_packet *p[FAKE_TRAIN];
	struct bio_vec bv[FAKE_TRAIN];
	u32 n;
	u32 left;
};

/* --- sending ------------------------------------------------------------- */

static struct fake_packet *fake_packet_alloc(struct fake_path *path, u32 len)
{
	struct fake_packet *p = kzalloc(sizeof(*p) + len, GFP_ATOMIC);

	if (!p)
		return NULL;
	p->path = path;
	sroce_path_get(&path->path);
	p->len = len;
	return p;
}

void fake_packet_free(struct fake_packet *p)
{
	struct sk_buff skb;

	/* A buffer's destructor looks at nothing else in it */
	skb.sk = p->payer;
	skb.truesize = p->charge;
	if (p->payer)
		sock_wfree(&skb);
	sroce_path_put(&p->path->path);
	kfree(p);
}

static void fake_packet_charge(struct fake_packet *p, struct sroce_txq *txq)
{
	p->payer = txq->sk;
	p->charge = p->len;
	fake_txq_take(txq, p->charge);
}

void fake_txq_take(struct sroce_txq *txq, u32 bytes)
{
	refcount_add(bytes, &txq->sk->sk_wmem_alloc);
}

void fake_txq_give(struct sroce_txq *txq, u32 bytes)
{
	WARN_ON(refcount_sub_and_test(bytes, &txq->sk->sk_wmem_alloc));
}

u32 fake_txq_fill(struct sroce_txq *txq)
{
	u32 bytes = 2 * txq->sk->sk_sndbuf;

	fake_txq_take(txq, bytes);
	return bytes;
}

/* Payload of packet @k, taken from the position @si in the train's pages */
static struct fake_packet *fake_packet_make(struct fake_path *path,
					    const struct sroce_train *t, u32 k,
					    struct bvec_iter *si)
{
	u32 len = sroce_train_payload(t, k);
	u32 hdr = sroce_train_hdr_len(t, k);
	struct fake_packet *p;

	p = fake_packet_alloc(path, hdr + ALIGN(len, 4) + SROCE_ICRC_LEN);
	if (!p)
		return NULL;
	sroce_train_encode(t, k, p->data);
	if (len)
		sroce_bvec_read(p->data + hdr, t->bv, si, len);
	if (sroce_packet_decode(&p->t, p->data, p->len, p->len) == hdr) {
		/* What is in no header of RoCE */
		p->t.flags |= t->flags & (SROCE_ECT | SROCE_CE);
		p->marked = t->flags & SROCE_CE;
		return p;
	}
	WARN_ONCE(1, "packet cannot be decoded\n");
	fake_packet_free(p);
	return NULL;
}

static void fake_net_log(struct fake_net *net, const struct fake_packet *p)
{
	net->log[net->sent++ % FAKE_NET_LOG] = (struct fake_log){
		.path = p->path,
		.cpu = smp_processor_id(),
		.op = p->t.op,
		.pkey = p->t.pkey,
		.dqpn = p->t.dqpn,
		.flags = p->t.flags,
		.syndrome = p->t.syndrome,
		.psn = p->t.psn,
		.len = p->t.bi.bi_size,
		.msn = p->t.msn,
	};
}

static void fake_net_queue(struct fake_net *net, struct fake_packet *p)
{
	spin_lock_bh(&net->lock);
	fake_net_log(net, p);
	list_add_tail(&p->node, &net->queue);
	spin_unlock_bh(&net->lock);
}

static void fake_net_send(struct sroce_tx *tx, struct sroce_path *path,
			  const struct sroce_train *t, struct sroce_txq *txq)
{
	struct fake_path *fake = container_of(path, struct fake_path, path);
	struct bvec_iter si = t->bi;
	struct fake_packet *p;
	u32 k;

	if (!tx->open) {
		tx->open = fake->net;
		atomic_inc(&fake->net->open);
	}
	for (k = 0; k < t->npkts; k++) {
		p = fake_packet_make(fake, t, k, &si);
		if (!p)
			return;
		fake_packet_charge(p, txq);
		fake_net_queue(fake->net, p);
	}
	WARN_ONCE(si.bi_size, "payload is left of a train\n");
}

static void fake_net_flush(struct sroce_tx *tx)
{
	struct fake_net *net = tx->open;

	if (net)
		atomic_dec(&net->open);
	tx->open = NULL;
}

static void fake_path_free(struct sroce_path *path)
{
	kfree(container_of(path, struct fake_path, path));
}

static struct sroce_path *fake_net_path_back(struct sroce_netport *port,
					     const struct sroce_rx_info *info)
{
	struct fake_path *path = kzalloc(sizeof(*path), GFP_ATOMIC);

	if (!path)
		return NULL;
	fake_path_init(path, container_of(info, struct fake_rx, info)->net,
		       to_sroce_port(port), info->dgid.raw[15],
		       info->sgid.raw[15]);
	path->path.release = fake_path_free;
	return &path->path;
}

const struct sroce_xmit_ops fake_net_xmit_ops = {
	.send = fake_net_send,
	.flush = fake_net_flush,
	.path_back = fake_net_path_back,
};

bool fake_net_inject(struct fake_path *path, const struct sroce_train *t)
{
	struct bvec_iter si = t->bi;
	struct fake_packet *p;
	u32 k;

	for (k = 0; k < t->npkts; k++) {
		p = fake_packet_make(path, t, k, &si);
		if (!p)
			return false;
		fake_net_queue(path->net, p);
	}
	return true;
}

/* --- what happens on the way --------------------------------------------- */

static bool fake_net_chance(struct fake_net *net, u32 per_mille)
{
	return !net->calm && per_mille &&
	       prandom_u32_state(&net->rnd) % 1000 < per_mille;
}

/* One of the first few; so a packet can be overtaken several times */
static struct fake_packet *fake_net_pick(struct fake_net *net)
{
	struct fake_packet *p;
	u32 skip = 0;

	if (fake_net_chance(net, net->swap))
		skip = 1 + prandom_u32_state(&net->rnd) % 7;
	list_for_each_entry(p, &net->queue, node)
		if (!skip-- || list_is_last(&p->node, &net->queue))
			return p;
	return NULL;
}

static enum fake_verdict fake_net_judge(struct fake_net *net,
					struct fake_packet *p)
{
	enum fake_verdict verdict = FAKE_PASS;

	if (p->judged)
		return FAKE_PASS;
	p->judged = true;
	if (net->filter)
		verdict = net->filter(net, p);
	if (verdict == FAKE_PASS && fake_net_chance(net, net->drop))
		verdict = FAKE_DROP;
	if (verdict == FAKE_PASS && fake_net_chance(net, net->twice))
		verdict = FAKE_TWICE;
	return verdict;
}

static void fake_net_again(struct fake_net *net, const struct fake_packet *p)
{
	struct fake_packet *copy = fake_packet_alloc(p->path, p->len);

	if (!copy)
		return;
	copy->t = p->t;
	copy->judged = true;
	memcpy(copy->data, p->data, p->len);
	spin_lock_bh(&net->lock);
	list_add_tail(&copy->node, &net->queue);
	spin_unlock_bh(&net->lock);
}

/* The next packet that arrives; NULL when none is there */
static struct fake_packet *fake_net_take(struct fake_net *net)
{
	struct fake_packet *p;

	for (;;) {
		spin_lock_bh(&net->lock);
		p = fake_net_pick(net);
		if (p)
			list_del(&p->node);
		spin_unlock_bh(&net->lock);
		if (!p)
			return NULL;

		switch (fake_net_judge(net, p)) {
		case FAKE_MARK:
			p->marked = true;
			return p;
		case FAKE_TWICE:
			fake_net_again(net, p);
			fallthrough;
		case FAKE_PASS:
			return p;
		case FAKE_DROP:
			fake_packet_free(p);
			break;
		case FAKE_HOLD:
			list_add_tail(&p->node, &net->held);
			break;
		}
	}
}

struct fake_packet *fake_net_next(struct fake_net *net,
				  const struct fake_path *path)
{
	struct fake_packet *p;

	spin_lock_bh(&net->lock);
	p = list_first_entry_or_null(&net->queue, struct fake_packet, node);
	if (p && path && p->path != path)
		p = NULL;
	if (p)
		list_del(&p->node);
	spin_unlock_bh(&net->lock);
	return p;
}

/* --- receiving ----------------------------------------------------------- */

static void fake_net_put_back(struct fake_net *net, struct fake_packet *p)
{
	spin_lock_bh(&net->lock);
	list_add(&p->node, &net->queue);
	spin_unlock_bh(&net->lock);
}

/* The next one of the same buffer. The other direction is another buffer. */
static struct fake_packet *fake_rx_take(struct fake_rx *f)
{
	struct fake_packet *p = NULL;

	if (f->left && --f->left)
		p = fake_net_take(f->net);
	if (!p || p->path == f->path)
		return p;
	fake_net_put_back(f->net, p);
	f->left = 0;
	return NULL;
}

static void fake_rx_decode(struct fake_rx *f, struct fake_packet *p,
			   struct sroce_train *t)
{
	int hdr;

	/* Fields of headers that a packet does not have must not be used */
	memset(t, 0xa5, sizeof(*t));
	t->bi = (struct bvec_iter){};
	hdr = sroce_packet_decode(t, p->data, p->len, p->len);
	bvec_set_virt(&f->bv[f->n], p->data + hdr, t->bi.bi_size);
	if (p->marked)
		t->flags |= SROCE_CE;
	f->p[f->n] = p;
}

static bool fake_rx_couple(struct fake_rx *f)
{
	struct fake_packet *p = fake_rx_take(f);
	struct sroce_train next;

	if (!p)
		return false;
	fake_rx_decode(f, p, &next);
	/* Nor does the stack couple packets with different IP headers */
	if (!sroce_train_goes_on(&f->rx.t, &next) ||
	    (f->rx.t.flags ^ next.flags) & SROCE_CE) {
		fake_net_put_back(f->net, p);
		f->left++;
		return false;
	}
	sroce_train_couple(&f->rx.t, &next);
	f->rx.t.bi.bi_size += next.bi.bi_size;
	f->n++;
	return true;
}

/* Half of the time what follows is coupled to it */
static void fake_rx_load(struct fake_rx *f, struct fake_packet *p)
{
	u32 n = prandom_u32_state(&f->net->rnd) % (2 * FAKE_TRAIN);

	f->n = 0;
	fake_rx_decode(f, p, &f->rx.t);
	f->rx.t.bv = f->bv;
	f->n = 1;
	while (f->n < min_t(u32, n, FAKE_TRAIN) && fake_rx_couple(f))
		;
}

static bool fake_rx_next(struct sroce_rx *rx)
{
	struct fake_rx *f = container_of(rx, struct fake_rx, rx);
	struct fake_packet *next;

	while (f->n)
		fake_packet_free(f->p[--f->n]);
	next = fake_rx_take(f);
	if (next)
		fake_rx_load(f, next);
	return next;
}

static void fake_rx_info_init(struct sroce_rx_info *info,
			      const struct sroce_path *path)
{
	*info = (struct sroce_rx_info){
		.sgid = path->sgid,
		.dgid = path->dgid,
		.net_cookie = FAKE_NET_COOKIE,
		.network_hdr_type = path->network_type,
		.vlan_id = 0xffff,
	};
}

static void fake_rx_receive(struct fake_rx *f)
{
	struct sroce_qp *qp;
	bool more = true;

	while (more) {
		qp = sroce_qp_find(f->rx.t.dqpn);
		if (qp) {
			more = sroce_receive(qp, &f->rx);
			sroce_qp_put(qp);
		} else {
			more = fake_rx_next(&f->rx);
		}
	}
}

bool fake_net_deliver(struct fake_net *net)
{
	struct fake_rx f = {
		.rx.info = &f.info,
		.rx.next = fake_rx_next,
		.net = net,
	};
	struct fake_packet *first = fake_net_take(net);

	if (!first)
		return fake_net_idle(net);
	f.path = first->path;
	f.left = net->batch ? 1 + prandom_u32_state(&net->rnd) % net->batch : 1;
	fake_rx_info_init(&f.info, &f.path->path);
	fake_rx_load(&f, first);
	fake_rx_receive(&f);
	return true;
}

void fake_net_settle(struct fake_net *net)
{
	while (fake_net_deliver(net))
		cond_resched();
}

void fake_net_release(struct fake_net *net)
{
	spin_lock_bh(&net->lock);
	list_splice_init(&net->held, &net->queue);
	spin_unlock_bh(&net->lock);
}

/* --- making and ending --------------------------------------------------- */

void fake_net_init(struct fake_net *net, u64 seed)
{
	spin_lock_init(&net->lock);
	INIT_LIST_HEAD(&net->queue);
	INIT_LIST_HEAD(&net->held);
	prandom_seed_state(&net->rnd, seed);
	net->batch = 8;
}

void fake_net_purge(struct fake_net *net)
{
	struct fake_packet *p, *next;
	LIST_HEAD(all);

	spin_lock_bh(&net->lock);
	list_splice_init(&net->held, &all);
	list_splice_init(&net->queue, &all);
	spin_unlock_bh(&net->lock);
	list_for_each_entry_safe(p, next, &all, node)
		fake_packet_free(p);
}

static void fake_gid(union ib_gid *gid, u8 number)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = 0xff;
	gid->raw[11] = 0xff;
	gid->raw[12] = 10;
	gid->raw[15] = number;
}

void fake_path_init(struct fake_path *path, struct fake_net *net,
		    struct sroce_port *port, u8 from, u8 to)
{
	/* One reference is never given back: the path is part of the test */
	refcount_set(&path->path.refs, 1);
	path->path.port = &port->net;
	path->path.net_cookie = FAKE_NET_COOKIE;
	path->path.ifindex = port->net.ifindex;
	path->path.network_type = RDMA_NETWORK_IPV4;
	path->path.hop_limit = 64;
	spin_lock_init(&path->path.lock);
	fake_gid(&path->path.sgid, from);
	fake_gid(&path->path.dgid, to);
	path->net = net;
}
