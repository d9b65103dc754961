// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Trains between two QPs of this host: no packet, no ICRC, one copy from the
 * sender's memory to the receiver's.
 *
 * send.c comes here with a train, and it is the receiving half that goes on, when
 * run.c comes to it.
 *
 * A packet does not say which QP has sent it, so between hosts a connected QP has
 * to believe whoever writes from its peer's address. Here it is known, and a connected
 * QP takes trains of the QP only that it is connected to.
 *
 * A train is put into the inbox of the receiving half while the sender's lock
 * is held, so that the order is kept, and is taken out when the receiver runs.
 * Until then it holds the memory regions that it points into, so that they cannot be
 * deregistered.
 *
 * But who is told that a message has been sent, or was flushed, reuses its memory
 * while the region stays. So the sender counts the trains that point to memory: it
 * has lent that until the receiver has taken them. That takes no longer than softirqs
 * do, whatever the receiver's process does or does not, but for requests that wait
 * for a receive (patience.c); these are given back, untaken, soon after their sender
 * or somebody who deregisters memory has begun to wait for them. A work request
 * without an ACK, which nothing else says has arrived, completes when its own trains
 * have been taken; and none is returned by force (failure, flush, reset, destroy)
 * before all of them have.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory/copy.h"
#include "memory/pd.h"
#include "path.h"
#include "transport/direct.h"
#include "transport/gather.h"
#include "transport/inbox.h"
#include "transport/internal.h"
#include "transport/patience.h"
#include "transport/run.h"
#include "turn.h"

/* Payloads up to this are copied into the parcel: cheaper than holding pages */
#define SROCE_PARCEL_COPY 256

/**
 * struct sroce_parcel - a train in an inbox
 * @node: in the inbox
 * @lent: in the inbox's list of those that point to their sender's memory
 * @path: of the sender, held; NULL: it came from the network
 * @lender: QP whose memory @t points to; NULL when the payload is in @copy
 * @swqe: work request of @lender that completes when the train has been taken; NULL
 *	for one that an ACK completes
 * @sqpn: QP that has sent it, where @path is set
 * @kept: bytes that it takes, if it came from the network
 * @t: the train
 * @copy: describes the payload when that is behind this struct
 * @npinned: entries of @bv whose pages are kept by this parcel
 * @nmrs: entries of @mrs
 * @mrs: regions that @bv points into, held
 * @bv: the payload, or what describes it
 */
struct sroce_parcel {
	struct list_head node;
	struct list_head lent;
	struct sroce_path *path;
	struct sroce_qp *lender;
	struct sroce_swqe *swqe;
	u32 sqpn;
	u32 kept;
	struct sroce_train t;
	struct bio_vec copy;
	u32 npinned;
	u32 nmrs;
	struct sroce_mr **mrs;
	struct bio_vec bv[];
};

struct sroce_train *sroce_parcel_train(struct sroce_parcel *p)
{
	return &p->t;
}

struct sroce_path *sroce_parcel_path(struct sroce_parcel *p)
{
	return p->path;
}

u32 sroce_parcel_kept(const struct sroce_parcel *p)
{
	return p->kept;
}

u32 sroce_parcel_cost(const struct sroce_parcel *p)
{
	return p->t.bi.bi_size + SROCE_TURN_TRAIN;
}

bool sroce_parcel_from_peer(const struct sroce_qp *qp,
			    const struct sroce_parcel *p)
{
	return sroce_qp_is_datagram(qp) || p->sqpn == qp->attr.dest_qp_num;
}

static bool sroce_lender_ended(const struct sroce_qp *lender)
{
	enum ib_qp_state state = sroce_qp_state(lender);

	return READ_ONCE(lender->dead) || state == IB_QPS_ERR ||
	       state == IB_QPS_RESET;
}

/* Does somebody wait to deregister a region that the parcel holds? */
static bool sroce_parcel_recalled(const struct sroce_parcel *p)
{
	u32 i;

	for (i = 0; i < p->nmrs; i++)
		if (READ_ONCE(p->mrs[i]->recalled))
			return true;
	return false;
}

static void sroce_parcel_lend(struct sroce_parcel *p, struct sroce_qp *qp,
			      struct sroce_swqe *swqe)
{
	atomic_inc(&qp->lent);
	if (swqe)
		atomic_inc(&swqe->lent);
	p->lender = qp;
	p->swqe = swqe;
}

/* The QP has lent nothing any more: in ERR and SQE both halves wait for that to flush */
static void sroce_qp_all_given_back(struct sroce_qp *qp)
{
	enum ib_qp_state state = sroce_qp_state(qp);

	if (state != IB_QPS_ERR && state != IB_QPS_SQE)
		return;
	/* sroce_qp_destroy(), which waits for this, may have been the last holder */
	if (!refcount_inc_not_zero(&qp->refs))
		return;
	sroce_half_queue(&qp->req.half);
	sroce_half_queue(&qp->resp.half);
	sroce_qp_put(qp);
}

/*
 * Nobody holds the lender for the train: whoever destroys it waits for the count,
 * and frees it after a grace period. What was read from its memory comes before the
 * counts, which are full barriers, and so before what the owner does with it.
 */
static void sroce_parcel_give_back(struct sroce_parcel *p)
{
	struct sroce_qp *qp = p->lender;

	rcu_read_lock();
	if (p->swqe && atomic_dec_and_test(&p->swqe->lent))
		sroce_half_queue(&qp->req.half);
	if (atomic_dec_and_test(&qp->lent))
		sroce_qp_all_given_back(qp);
	rcu_read_unlock();
}

/*
 * Have the peer look now at what this QP has lent it. A request that waits for a receive
 * there is looked at once per millisecond, and a process that ends may have thousands of
 * QPs. (A connected QP lends to its peer only.)
 */
static void sroce_qp_recall_lent(struct sroce_qp *qp, u32 qpn)
{
	struct sroce_qp *peer;

	if (sroce_qp_is_datagram(qp))
		return;
	peer = sroce_qp_find(qpn);
	if (!peer)
		return;
	sroce_patience_look(&peer->resp);
	sroce_qp_put(peer);
}

void sroce_qp_wait_lent(struct sroce_qp *qp, u32 peer)
{
	while (sroce_qp_has_lent(qp)) {
		sroce_qp_recall_lent(qp, peer);
		if (sroce_qp_has_lent(qp))
			usleep_range(10, 100);
	}
}

void sroce_parcel_free(struct sroce_parcel *p)
{
	if (p->lender)
		sroce_parcel_give_back(p);
	if (unlikely(p->npinned))
		sroce_bvec_unpin(p->bv, p->npinned);
	while (p->nmrs)
		sroce_mr_put(p->mrs[--p->nmrs]);
	sroce_path_put(p->path);
	kfree(p);
}

static struct sroce_parcel *sroce_parcel_copy(const struct sroce_train *t)
{
	u32 len = t->bi.bi_size;
	struct bvec_iter si = t->bi;
	struct sroce_parcel *p;

	p = kmalloc(sizeof(*p) + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!p)
		return NULL;
	p->t = *t;
	p->lender = NULL;
	p->kept = 0;
	p->npinned = 0;
	p->nmrs = 0;
	if (len) {
		sroce_bvec_read(p->bv, t->bv, &si, len);
		bvec_set_virt(&p->copy, p->bv, len);
		p->t.bv = &p->copy;
		p->t.bi = (struct bvec_iter){ .bi_size = len };
	}
	return p;
}

static struct sroce_parcel *sroce_parcel_refer(struct sroce_qp *from,
					       const struct sroce_train *t,
					       const struct sroce_gather *g)
{
	struct sroce_parcel *p;
	u32 i;

	p = kmalloc(sizeof(*p) + g->nbv * sizeof(p->bv[0]) +
		    g->uses->n * sizeof(p->mrs[0]), GFP_ATOMIC | __GFP_NOWARN);
	if (!p)
		return NULL;
	p->t = *t;
	p->kept = 0;
	sroce_parcel_lend(p, from, g->swqe);
	memcpy(p->bv, g->bv, g->nbv * sizeof(g->bv[0]));
	p->t.bv = p->bv;
	/* Memory on demand stays in place only while it is being gathered */
	p->npinned = g->on_demand ? g->nbv : 0;
	if (unlikely(p->npinned))
		sroce_bvec_pin(p->bv, p->npinned);
	p->mrs = (struct sroce_mr **)&p->bv[g->nbv];
	p->nmrs = g->uses->n;
	for (i = 0; i < p->nmrs; i++) {
		p->mrs[i] = g->uses->mr[i];
		sroce_mr_hold(p->mrs[i]);
	}
	return p;
}

/* Inline data is in the work request, which may be reused before delivery */
static struct sroce_parcel *sroce_parcel_make(struct sroce_qp *from,
					      const struct sroce_train *t,
					      const struct sroce_gather *g)
{
	if (!g || g->inlined || t->bi.bi_size <= SROCE_PARCEL_COPY)
		return sroce_parcel_copy(t);
	return sroce_parcel_refer(from, t, g);
}

/*
 * Does a QP listen to this one? Whoever is not the peer must not fill its inbox. It
 * may connect to another one meanwhile, so it asks again when it takes a train out.
 */
static bool sroce_direct_listens(u32 sqpn, const struct sroce_qp *peer)
{
	return sroce_qp_is_datagram(peer) ||
	       READ_ONCE(peer->attr.dest_qp_num) == sqpn;
}

/*
 * Asked with the lock held, so that what a QP was sent before it was connected to
 * another one is not behind what that one has sent.
 */
static bool sroce_inbox_admits(const struct sroce_half *half,
			       const struct sroce_parcel *p)
{
	return half->inbox_len < SROCE_INBOX_MAX &&
	       (!p->path || sroce_direct_listens(p->sqpn, half->qp));
}

static bool sroce_inbox_put(struct sroce_half *half, struct sroce_parcel *p)
{
	bool ok;

	spin_lock(&half->inbox_lock);
	ok = sroce_inbox_admits(half, p);
	if (ok) {
		list_add_tail(&p->node, &half->inbox);
		if (p->lender)
			list_add_tail(&p->lent, &half->inbox_lent);
		half->inbox_len++;
	}
	spin_unlock(&half->inbox_lock);
	return ok;
}

struct sroce_parcel *sroce_inbox_take(struct sroce_half *half)
{
	struct sroce_parcel *p;

	spin_lock(&half->inbox_lock);
	p = list_first_entry_or_null(&half->inbox, struct sroce_parcel, node);
	if (p) {
		list_del(&p->node);
		if (p->lender)
			list_del(&p->lent);
		half->inbox_len--;
	}
	spin_unlock(&half->inbox_lock);
	return p;
}

u32 sroce_inbox_keep(struct sroce_half *half, const struct sroce_train *t,
		     u32 room)
{
	u32 bytes = sizeof(struct sroce_parcel) + t->bi.bi_size;
	struct sroce_parcel *p = NULL;

	if (bytes <= room)
		p = sroce_parcel_copy(t);
	if (!p)
		return 0;
	p->path = NULL;
	p->kept = bytes;
	if (sroce_inbox_put(half, p))
		return bytes;
	sroce_parcel_free(p);
	return 0;
}

void sroce_inbox_return(struct sroce_half *half, struct sroce_parcel *p)
{
	spin_lock(&half->inbox_lock);
	list_add(&p->node, &half->inbox);
	if (p->lender)
		list_add(&p->lent, &half->inbox_lent);
	half->inbox_len++;
	spin_unlock(&half->inbox_lock);
}

static bool sroce_inbox_region_recalled(const struct sroce_half *half)
{
	const struct sroce_parcel *p;

	list_for_each_entry(p, &half->inbox_lent, lent) {
		sroce_turn_spend(p->nmrs * SROCE_TURN_REGION);
		if (sroce_parcel_recalled(p))
			return true;
	}
	return false;
}

/* A lender and its protection domain stay as long as it has something lent */
bool sroce_inbox_recalled(struct sroce_half *half, const struct sroce_parcel *p)
{
	const struct sroce_parcel *lent = p;
	bool recalled = false;

	spin_lock(&half->inbox_lock);
	if (!p->lender)
		lent = list_first_entry_or_null(&half->inbox_lent,
						struct sroce_parcel, lent);
	if (lent && sroce_lender_ended(lent->lender))
		recalled = true;
	else if (lent && unlikely(sroce_pd_recalled(lent->lender->pd)))
		recalled = sroce_parcel_recalled(p) ||
			   sroce_inbox_region_recalled(half);
	spin_unlock(&half->inbox_lock);
	return recalled;
}

bool sroce_half_purge_some(struct sroce_half *half)
{
	unsigned long begin = sroce_turn_spent();
	struct sroce_parcel *p;

	while (!sroce_turn_half_over(begin)) {
		p = sroce_inbox_next(half);
		if (!p)
			return false;
		sroce_turn_spend(SROCE_TURN_TRAIN);
		sroce_parcel_free(p);
	}
	return true;
}

void sroce_half_purge(struct sroce_half *half)
{
	bool more;

	do {
		local_bh_disable();
		sroce_turn_begin(true);
		more = sroce_half_purge_some(half);
		sroce_run_soon();
		sroce_turn_end();
		local_bh_enable();
		cond_resched();
	} while (more);
}

/* Is the QP one of the device that has the path's destination address? */
static bool sroce_direct_is_peer(const struct sroce_qp *peer,
				 const struct sroce_path *path)
{
	const struct sroce_netport *net = &peer->port->net;

	return READ_ONCE(net->ifindex) == READ_ONCE(path->direct_ifindex) &&
	       READ_ONCE(net->net_cookie) == path->net_cookie;
}

static void sroce_direct_deliver(struct sroce_qp *from, struct sroce_qp *peer,
				 struct sroce_path *path,
				 const struct sroce_train *t,
				 const struct sroce_gather *g)
{
	struct sroce_half *half = sroce_op_is_response(t->op) ?
				  &peer->req.half : &peer->resp.half;
	struct sroce_parcel *p = sroce_parcel_make(from, t, g);

	if (!p) {
		sroce_qp_count(from, SROCE_CNT_TX_DROPS, t->npkts);
		return;
	}
	p->path = sroce_path_get(path);
	p->sqpn = from->qpn;
	if (!sroce_inbox_put(half, p)) {
		sroce_parcel_free(p);
		sroce_qp_count(from, SROCE_CNT_TX_DROPS, t->npkts);
		return;
	}
	sroce_qp_count(from, SROCE_CNT_DIRECT_PACKETS, t->npkts);
	sroce_qp_count(from, SROCE_CNT_DIRECT_BYTES, t->bi.bi_size);
	sroce_half_queue(half);
}

void sroce_direct_send(struct sroce_qp *from, struct sroce_path *path,
		       const struct sroce_train *t, const struct sroce_gather *g)
{
	struct sroce_qp *peer = sroce_qp_find(t->dqpn);

	if (!peer || !sroce_direct_is_peer(peer, path))
		sroce_qp_count(from, SROCE_CNT_RX_NO_QP, t->npkts);
	else if (!sroce_direct_listens(from->qpn, peer))
		sroce_qp_count(from, SROCE_CNT_RX_WRONG_PATH, t->npkts);
	else
		sroce_direct_deliver(from, peer, path, t, g);
	if (peer)
		sroce_qp_put(peer);
}
