// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What "rdma resource show ... -dd" tells beyond what the core knows. The
 * values are a glance at something that moves; nothing is locked for them, and nothing
 * is decided by them: so whoever writes them need not know of it (sroce_glance()).
 */
#include <linux/capability.h>
#include <linux/math64.h>
#include <linux/user_namespace.h>
#include <net/netlink.h>
#include <rdma/restrack.h>
#include <uapi/rdma/rdma_netlink.h>

#include "memory/mr.h"
#include "memory/odp.h"
#include "txq.h"
#include "verbs/verbs.h"

/* Whoever tells of races is not to tell of this one: see above */
#define sroce_glance(value) data_race(value)

/*
 * Close the nest that an object's details are in. Where they did not fit (@err),
 * none of them is told; where the nest itself did not, it is NULL.
 */
static int sroce_restrack_end(struct sk_buff *msg, struct nlattr *nest, int err)
{
	if (!nest)
		return -EMSGSIZE;
	if (err) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}

static int sroce_restrack_put_ring(struct sk_buff *msg, const char *entries,
				   const char *index,
				   const struct sroce_ring *ring)
{
	return rdma_nl_put_driver_u32(msg, entries,
				      sroce_glance(sroce_ring_entries(ring))) ?:
	       rdma_nl_put_driver_u32(msg, index, sroce_glance(ring->index));
}

/* As the core shows keys: to whoever may change the network */
bool sroce_restrack_may_see_psns(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_NET_ADMIN);
}

static int sroce_restrack_put_psns(struct sk_buff *msg,
				   const struct sroce_qp *qp)
{
	if (!sroce_restrack_may_see_psns())
		return 0;
	return rdma_nl_put_driver_u32_hex(msg, "sq_next_psn",
					  sroce_glance(qp->req.next_psn)) ?:
	       rdma_nl_put_driver_u32_hex(msg, "sq_una_psn",
					  sroce_glance(qp->req.una_psn)) ?:
	       rdma_nl_put_driver_u32_hex(msg, "rq_epsn",
					  sroce_glance(qp->resp.epsn));
}

static int sroce_restrack_put_requester(struct sk_buff *msg,
					const struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;

	return sroce_restrack_put_ring(msg, "sq_entries", "sq_done",
				       &req->ring) ?:
	       rdma_nl_put_driver_u32(msg, "sq_fetched",
				      sroce_glance(req->fetched)) ?:
	       rdma_nl_put_driver_u32(msg, "sq_window",
				      sroce_glance(req->window)) ?:
	       rdma_nl_put_driver_u32(msg, "sq_rd_atomic",
				      sroce_glance(req->rd_outstanding)) ?:
	       rdma_nl_put_driver_u32(msg, "sq_retries_left",
				      sroce_glance(req->retries)) ?:
	       rdma_nl_put_driver_u32(msg, "sq_rnr_wait",
				      sroce_glance(req->rnr_wait)) ?:
	       rdma_nl_put_driver_u32(msg, "sq_rate_limit_kbps",
				      sroce_glance(qp->attr.rate_limit)) ?:
	       rdma_nl_put_driver_u32(msg, "sq_unsent_bytes",
				      sroce_txq_bytes(qp->txq));
}

/* Does the peer tell of marked packets? */
static const char *sroce_restrack_peer(enum sroce_ecn_peer peer)
{
	switch (peer) {
	case SROCE_ECN_ASKED:
		return "asked";
	case SROCE_ECN_TELLS:
		return "tells";
	case SROCE_ECN_SILENT:
		return "silent";
	default:
		return "unknown";
	}
}

/* What congestion leaves to the QP: a rate of 0 means that there is none */
static int sroce_restrack_put_congestion(struct sk_buff *msg,
					 const struct sroce_qp *qp)
{
	const struct sroce_reaction *r = &qp->congestion.reaction;
	bool limited = READ_ONCE(qp->congested);
	u64 rate = limited ? sroce_glance(r->rate) : 0;
	u64 target = limited ? sroce_glance(r->target) : 0;
	u64 alpha = limited ? sroce_glance(r->alpha) : 0;
	enum sroce_ecn_peer peer = sroce_glance(qp->congestion.ecn.peer);

	return rdma_nl_put_driver_u64(msg, "cc_rate_kbps",
				      div_u64(rate, 125)) ?:
	       rdma_nl_put_driver_u64(msg, "cc_target_kbps",
				      div_u64(target, 125)) ?:
	       rdma_nl_put_driver_u64(msg, "cc_alpha_permille",
				      alpha * 1000 / SROCE_ALPHA_ONE) ?:
	       rdma_nl_put_driver_u64(msg, "cc_srtt_ns",
				      sroce_glance(qp->req.rtt.srtt)) ?:
	       rdma_nl_put_driver_string(msg, "cc_peer",
					 sroce_restrack_peer(peer));
}

static int sroce_restrack_put_responder(struct sk_buff *msg,
					const struct sroce_qp *qp)
{
	const struct sroce_responder *resp = &qp->resp;
	int err = 0;

	if (!qp->srq)
		err = sroce_restrack_put_ring(msg, "rq_entries", "rq_taken",
					      &resp->ring);
	return err ?:
	       rdma_nl_put_driver_u32_hex(msg, "rq_msn",
					  sroce_glance(resp->msn)) ?:
	       rdma_nl_put_driver_u32(msg, "rq_nak_sent",
				      sroce_glance(resp->ack.nak_sent)) ?:
	       rdma_nl_put_driver_u32(msg, "rq_rnr_sent",
				      sroce_glance(resp->ack.rnr_sent));
}

/* The path of a connected QP; the network tells such QPs apart by their source port */
static int sroce_restrack_put_path(struct sk_buff *msg, struct sroce_qp *qp)
{
	__be16 sport;
	u8 tclass;

	if (!sroce_qp_query_path(qp, &sport, &tclass))
		return 0;
	return rdma_nl_put_driver_u32(msg, "udp_sport", ntohs(sport)) ?:
	       rdma_nl_put_driver_u32_hex(msg, "traffic_class", tclass);
}

static int sroce_restrack_put_qp(struct sk_buff *msg, struct sroce_qp *qp)
{
	return rdma_nl_put_driver_u32(msg, "path_mtu", sroce_glance(qp->mtu)) ?:
	       rdma_nl_put_driver_u32_hex(msg, "pkey",
					  sroce_glance(sroce_qp_pkey(qp))) ?:
	       sroce_restrack_put_path(msg, qp) ?:
	       sroce_restrack_put_psns(msg, qp) ?:
	       sroce_restrack_put_requester(msg, qp) ?:
	       sroce_restrack_put_responder(msg, qp) ?:
	       sroce_restrack_put_congestion(msg, qp);
}

int sroce_ib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	struct sroce_qp_obj *obj = to_sroce_qp_obj(ibqp);
	int err = 0;

	mutex_lock(&obj->asked_lock);
	if (nest && obj->qp)
		err = sroce_restrack_put_qp(msg, obj->qp);
	mutex_unlock(&obj->asked_lock);
	return sroce_restrack_end(msg, nest, err);
}

static int sroce_restrack_put_cq(struct sk_buff *msg, const struct sroce_cq *cq)
{
	u32 count = sroce_glance(cq->mod_count);

	return sroce_restrack_put_ring(msg, "entries", "produced", &cq->ring) ?:
	       rdma_nl_put_driver_u32(msg, "user", cq->user) ?:
	       rdma_nl_put_driver_u32(msg, "timestamps", cq->timestamp) ?:
	       rdma_nl_put_driver_u32(msg, "overrun", sroce_glance(cq->overrun)) ?:
	       rdma_nl_put_driver_u32(msg, "comp_vector", cq->vector) ?:
	       rdma_nl_put_driver_u32(msg, "moderation_count", count) ?:
	       rdma_nl_put_driver_u32(msg, "moderation_us",
				      count ? sroce_glance(cq->mod_period) : 0);
}

int sroce_ib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int err = 0;

	if (nest)
		err = sroce_restrack_put_cq(msg, to_sroce_cq(ibcq));
	return sroce_restrack_end(msg, nest, err);
}

static int sroce_restrack_put_srq(struct sk_buff *msg,
				  const struct sroce_srq *srq)
{
	return sroce_restrack_put_ring(msg, "entries", "taken", &srq->ring) ?:
	       rdma_nl_put_driver_u32(msg, "user", srq->user) ?:
	       rdma_nl_put_driver_u32(msg, "max_sge", srq->max_sge) ?:
	       rdma_nl_put_driver_u32(msg, "limit", sroce_glance(srq->limit));
}

int sroce_ib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int err = 0;

	if (nest)
		err = sroce_restrack_put_srq(msg, to_sroce_srq(ibsrq));
	return sroce_restrack_end(msg, nest, err);
}

static const char *const sroce_mr_kinds[] = {
	[SROCE_MR_DMA] = "dma",
	[SROCE_MR_ON_DEMAND] = "on-demand",
	[SROCE_MR_USER] = "user",
	[SROCE_MR_FAST_REG] = "fast-reg",
};

static const char *sroce_restrack_mr_kind(const struct sroce_mr *mr)
{
	if (mr->dmabuf)
		return "dma-buf";
	if (mr->sig)
		return "integrity";
	if (mr->odp && sroce_odp_is_implicit(mr->odp))
		return "implicit";
	return sroce_mr_kinds[mr->kind];
}

static int sroce_restrack_put_odp(struct sk_buff *msg,
				  const struct sroce_odp *odp)
{
	struct sroce_odp_counts counts;

	if (!odp)
		return 0;
	sroce_odp_count(odp, &counts);
	return rdma_nl_put_driver_u32(msg, "tables", counts.tables) ?:
	       rdma_nl_put_driver_u64(msg, "evictions", counts.evictions);
}

static int sroce_restrack_put_mr(struct sk_buff *msg, const struct sroce_mr *mr)
{
	return rdma_nl_put_driver_string(msg, "kind",
					 sroce_restrack_mr_kind(mr)) ?:
	       rdma_nl_put_driver_u32(msg, "valid", sroce_glance(mr->valid)) ?:
	       rdma_nl_put_driver_u32_hex(msg, "access",
					  sroce_glance(mr->access)) ?:
	       rdma_nl_put_driver_u32(msg, "blocks",
				      sroce_glance(mr->nr_blocks)) ?:
	       rdma_nl_put_driver_u64(msg, "block_size",
				      1ULL << sroce_glance(mr->block_shift)) ?:
	       sroce_restrack_put_odp(msg, mr->odp);
}

int sroce_ib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int err = 0;

	if (nest)
		err = sroce_restrack_put_mr(msg, to_sroce_mr(ibmr));
	return sroce_restrack_end(msg, nest, err);
}

/* Of a region on demand; others have none. The names are those that tools know */
int sroce_ib_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct sroce_mr *mr = to_sroce_mr(ibmr);
	struct sroce_odp_counts counts;
	struct nlattr *nest;
	int err;

	if (!mr->odp)
		return 0;
	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!nest)
		return -EMSGSIZE;
	sroce_odp_count(mr->odp, &counts);
	err = rdma_nl_stat_hwcounter_entry(msg, "page_faults", counts.faults) ?:
	      rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					   counts.invalidations) ?:
	      rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					   counts.prefetches);
	return sroce_restrack_end(msg, nest, err);
}
