/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider's objects and what its files offer to each other.
 */
#ifndef SROCE_H
#define SROCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ccan/list.h>
#include <infiniband/driver.h>
#include <util/util.h>

#include "compat.h"
#include "lock.h"
#include "ring.h"

struct sroce_context {
	struct verbs_context vctx;
	int doorbell_fd;
	uint64_t caps;		/* SROCE_CAP_* of the kernel */
};

/* A thread domain: its objects are used by one thread at a time */
struct sroce_td {
	struct ibv_td td;
	atomic_uint users;
};

/* A protection domain, or a parent domain standing for one */
struct sroce_pd {
	struct ibv_pd pd;
	/*
	 * One for the application, and one for each user here. An imported domain may
	 * go before those, and then its memory is freed with the last one
	 */
	atomic_uint refs;
	struct sroce_pd *contained;	/* of a parent domain */
	struct sroce_td *td;		/* of a parent domain, may be NULL */

	/* of a parent domain, NULL where the application has none */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *alloc_context;
};

/* What an application's allocator is told that the memory is for; see sroce(7) */
enum sroce_resource {
	SROCE_RESOURCE_QP = 1,
	SROCE_RESOURCE_CQ = 2,
	SROCE_RESOURCE_SRQ = 3,
};

/* Whose memory an object is in, filled in by sroce_pd_alloc() */
struct sroce_origin {
	struct sroce_pd *pd;	/* NULL: malloc() */
	enum sroce_resource resource;
};

struct sroce_ah {
	struct ibv_ah ah;
	uint32_t ahn;
};

enum { SROCE_MATCHING = 256 };

/* Tag matching: QPs that receive from queues completing in one completion queue */
struct sroce_matching {
	struct sroce_lock lock;		/* see tags.c */
	struct list_head by_number[SROCE_MATCHING];
	struct list_head waiting;	/* those of them that a rendezvous waits for */
	_Atomic(uint32_t) nwaiting;	/* how many these are */
	struct list_head ringing;	/* those of them whose doorbell is to be rung */
	/*
	 * Under the completion queue's lock: completions that a batch has taken since
	 * doorbells wait for its end, 0: none do
	 */
	uint32_t unrung;
};

struct sroce_cq {
	struct verbs_cq vcq;
	struct sroce_origin origin;
	struct sroce_ring ring;
	struct sroce_lock lock;
	/* the arm word against a resize, which replaces the ring under it */
	struct sroce_lock arm_lock;
	uint32_t cons;		/* next entry to poll */
	uint32_t prod;		/* the kernel's index as last seen */
	uint32_t freed;		/* the value of cons the kernel knows */
	struct sroce_cqe *cqe;	/* of an extended CQ: the current completion */
	atomic_uint users;	/* queues that have completions here */
	/* a QP whose requests the kernel lets gather, 0: none that we know */
	_Atomic(uint32_t) gathering;
	_Atomic(struct sroce_matching *) matching;	/* NULL: no tag matching */
};

struct sroce_rq {
	struct sroce_ring ring;
	struct sroce_lock lock;
	uint32_t prod;
	uint32_t cons;		/* the kernel's index as last seen */
	uint32_t max_sge;
};

/* A rendezvous that was matched, and that its QP had no room for */
struct sroce_rndv {
	struct list_node node;	/* of @qp's */
	uint64_t tag;
	uint32_t app_ctx;
	uint32_t handle;
	struct sroce_qp *qp;	/* NULL: there is none */
};

struct sroce_srq {
	struct verbs_srq vsrq;
	struct sroce_origin origin;
	struct sroce_rq rq;
	uint32_t srqn;
	/* tag matching */
	uint32_t max_ops;
	uint32_t max_tags;
	struct sroce_rndv *rndv;	/* one for each tagged buffer */
	/*
	 * Unexpected messages whose completions were forgotten with their QP: the kernel
	 * counts them, and the application cannot
	 */
	_Atomic(uint32_t) unseen;
	/* QPs of tag matching that the provider has not let go of, when the kernel has */
	atomic_uint users;
};

/* Rendezvous that one queue pair may have under way; and entries that each takes */
enum { SROCE_RNDV_MOST = 8, SROCE_RNDV_WQES = 2 };

struct sroce_sq {
	struct sroce_ring ring;
	struct sroce_lock lock;
	uint32_t prod;
	uint32_t cons;		/* the kernel's index as last seen */
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t ops;		/* a bit for each SROCE_WR_x this QP may post */
	uint32_t flags;		/* IBV_SEND_x that its requests may have */
	bool sig_all;
	bool tags;		/* rendezvous are posted here, too */
	/*
	 * Tag matching: how many of the entries that the ring has beside the
	 * application's are free for rendezvous, and where those that are not end
	 */
	uint8_t kept;
	uint8_t rndvs;		/* under way */
	uint8_t first_rndv;
	uint32_t rndv_end[SROCE_RNDV_MOST];

	/*
	 * The request that is being written. Its data goes to its entry of the
	 * ring, which others may have mapped, the rest only once it is complete
	 */
	struct sroce_send_wqe wqe;
	uint8_t *entry;		/* NULL: there is none, or it is an error */

	/* ibv_wr_*: what was built since wr_start */
	uint32_t next;		/* prod once the batch is posted */
	int err;		/* the first thing that went wrong */
};

/* A receive queue of raw packets, for a table of such */
struct sroce_wq {
	struct ibv_wq wq;
	struct sroce_rq rq;
};

/* Where an application wants the counts of its flows */
struct sroce_counter_place {
	enum ibv_counter_description desc;
	uint32_t index;
};

enum { SROCE_COUNTER_PLACES = 64 };

struct sroce_counters {
	struct verbs_counters vcounters;
	struct sroce_lock lock;
	struct sroce_counter_place places[SROCE_COUNTER_PLACES];
	unsigned int nplaces;
	unsigned int flows;		/* that count in it */
};

struct sroce_flow {
	struct ibv_flow flow;
	struct sroce_counters *counters;	/* or NULL */
};

struct sroce_qp {
	struct verbs_qp vqp;
	struct sroce_origin origin;
	struct sroce_sq sq;
	struct sroce_rq rq;
	/*
	 * Tag matching, under the lock of @match_cq's struct sroce_matching. The shared
	 * receive queue's, NULL: it has no such queue
	 */
	struct sroce_cq *match_cq;
	struct list_node matching;	/* of @match_cq */
	struct list_head rndvs;		/* those that wait */
	struct list_node waiting;	/* of @match_cq, if there are any */
	struct list_node ringing;	/* likewise, if @rings */
	bool rings;
	bool rndv_paused;		/* they all wait */
	atomic_bool rndv_held;		/* they wait for whoever has the send queue's lock */
};

static inline struct sroce_context *to_sctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct sroce_context, vctx.context);
}

static inline struct sroce_pd *to_spd(struct ibv_pd *pd)
{
	return container_of(pd, struct sroce_pd, pd);
}

static inline struct sroce_td *to_std(struct ibv_td *td)
{
	return container_of(td, struct sroce_td, td);
}

static inline struct sroce_ah *to_sah(struct ibv_ah *ah)
{
	return container_of(ah, struct sroce_ah, ah);
}

static inline struct sroce_cq *to_scq(struct ibv_cq *cq)
{
	return container_of(cq, struct sroce_cq, vcq.cq);
}

static inline struct sroce_cq *to_scq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct sroce_cq, vcq.cq_ex);
}

static inline struct sroce_srq *to_ssrq(struct ibv_srq *srq)
{
	return container_of(srq, struct sroce_srq, vsrq.srq);
}

static inline struct sroce_qp *to_sqp(struct ibv_qp *qp)
{
	return container_of(qp, struct sroce_qp, vqp.qp);
}

static inline struct sroce_qp *to_sqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct sroce_qp, vqp.qp_ex);
}

/* sroce.c */

/* Make the kernel look at this QP's queues now. Returns an errno. */
int sroce_doorbell(struct ibv_qp *qp);
int sroce_ring_doorbell(struct ibv_context *ctx, uint32_t qp_num);

/* dm.c */
struct ibv_dm *sroce_alloc_dm(struct ibv_context *ctx,
			      struct ibv_alloc_dm_attr *attr);
struct ibv_dm *sroce_import_dm(struct ibv_context *ctx, uint32_t handle);
void sroce_unimport_dm(struct ibv_dm *dm);
int sroce_free_dm(struct ibv_dm *dm);
struct ibv_mr *sroce_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			       uint64_t offset, size_t length,
			       unsigned int access);

/* verbs.c */

struct ibv_pd *sroce_alloc_pd(struct ibv_context *ctx);
struct ibv_pd *sroce_import_pd(struct ibv_context *ctx, uint32_t handle);
void sroce_unimport_pd(struct ibv_pd *pd);
int sroce_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *sroce_alloc_td(struct ibv_context *ctx,
			      struct ibv_td_init_attr *attr);
int sroce_dealloc_td(struct ibv_td *td);
struct ibv_pd *
sroce_alloc_parent_domain(struct ibv_context *ctx,
			  struct ibv_parent_domain_init_attr *attr);

/* Must objects made in this domain be locked? True for NULL. */
bool sroce_pd_needs_locks(struct ibv_pd *pd);

/*
 * Zeroed memory for an object in this domain, which may be NULL, from the
 * application's allocator if it has one there. NULL, and errno, when there is
 * none. @origin is to be copied into the object, for sroce_pd_free().
 */
void *sroce_pd_alloc(struct ibv_pd *pd, size_t size,
		     enum sroce_resource resource, struct sroce_origin *origin);
void sroce_pd_free(void *ptr, const struct sroce_origin *origin);

struct ibv_mr *sroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access);
struct ibv_mr *sroce_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				   size_t length, uint64_t iova, int fd,
				   int access);
struct ibv_mr *sroce_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *sroce_import_mr(struct ibv_pd *pd, uint32_t handle);
void sroce_unimport_mr(struct ibv_mr *mr);
int sroce_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		   void *addr, size_t length, int access);
int sroce_dereg_mr(struct verbs_mr *vmr);

struct ibv_mw *sroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sroce_dealloc_mw(struct ibv_mw *mw);

struct ibv_ah *sroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sroce_destroy_ah(struct ibv_ah *ah);

struct ibv_xrcd *sroce_open_xrcd(struct ibv_context *ctx,
				 struct ibv_xrcd_init_attr *attr);
int sroce_close_xrcd(struct ibv_xrcd *xrcd);

/* cq.c */

struct ibv_cq *sroce_create_cq(struct ibv_context *ctx, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector);
struct ibv_cq_ex *sroce_create_cq_ex(struct ibv_context *ctx,
				     struct ibv_cq_init_attr_ex *attr);
int sroce_destroy_cq(struct ibv_cq *cq);
int sroce_resize_cq(struct ibv_cq *cq, int cqe);
int sroce_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int sroce_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int sroce_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/*
 * Completions of this QP that were not polled yet shall never be. Returns how many of them
 * were of messages that no tag has matched.
 */
uint32_t sroce_cq_forget_qp(struct ibv_cq *cq, uint32_t qp_num);

/*
 * From here to sroce_cq_put() the queue cannot be destroyed. The kernel lets go of it
 * before a QP's owner does, who has to go through its completions then. NULL is fine.
 */
void sroce_cq_get(struct ibv_cq *cq);
void sroce_cq_put(struct ibv_cq *cq);

/* cq_ex.c: what ibv_start_poll() and its kin call, as far as asked for */
void sroce_cq_ex_init(struct ibv_cq_ex *cq, uint64_t wc_flags);
/* From now on completions of tag matching may come */
void sroce_cq_ex_match_tags(struct ibv_cq_ex *cq);

/* tags.c: tag matching */

/* Returns an errno */
int sroce_tags_check_srq(struct ibv_context *ctx,
			 const struct ibv_srq_init_attr_ex *attr);
int sroce_tags_init_srq(struct sroce_srq *srq,
			const struct ibv_srq_init_attr_ex *attr);
void sroce_tags_fini_srq(struct sroce_srq *srq);
void sroce_tags_fini_cq(struct sroce_cq *cq);
int sroce_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr,
		       struct ibv_ops_wr **bad);

/* A message with a tag that matches nothing: the application and the kernel count these */
static inline bool sroce_tags_is_unexpected(const struct sroce_cqe *cqe)
{
	return cqe->opcode == SROCE_WC_TAG_RECV &&
	       cqe->status == IBV_WC_SUCCESS &&
	       !(cqe->flags & (SROCE_CQE_TAG_MATCH | SROCE_CQE_TAG_DATA));
}

/* Has it, or would it have, a shared receive queue with tag matching? */
bool sroce_tags_of(const struct ibv_srq *srq);
/*
 * What the kernel is asked for has room for what is posted here, and what the application
 * is told of that is what is its own
 */
void sroce_tags_reserve(struct ibv_qp_init_attr_ex *attr);
void sroce_tags_hide(const struct ibv_srq *srq, struct ibv_qp_cap *cap);
/*
 * From the first to the second a QP takes part: a rendezvous that was matched for it is
 * begun when the completion of that is polled.
 */
void sroce_tags_join(struct sroce_qp *qp);
void sroce_tags_leave(struct sroce_qp *qp);
/*
 * The QP is about to be reset or destroyed: what is matched for it waits. When that has
 * failed, the QP goes on with all of it; and what is forgotten is so only afterwards.
 */
void sroce_tags_pause(struct sroce_qp *qp, bool pause);
void sroce_tags_forget(struct sroce_qp *qp);

/*
 * Under the queue's lock, in a batch of ibv_start_poll(): a completion was taken, none was
 * there, or the next one is going to be
 */
void sroce_tags_polled(struct sroce_cq *cq);
void sroce_tags_found_nothing(struct sroce_cq *cq);
void sroce_tags_next(struct sroce_cq *cq);
/* Drop that lock, and have the kernel begin what was posted under it */
void sroce_tags_end_poll(struct sroce_cq *cq);
/*
 * The lock of the send queue of a QP with tag matching was dropped by who posts. True when
 * something was posted behind that, and the doorbell is to be rung for it.
 */
bool sroce_tags_sq_unlocked(struct sroce_qp *qp);

/* rq.c: receive queues, of a QP or shared */

/* The ring passes to the queue on success. */
int sroce_rq_init(struct sroce_rq *rq, const struct sroce_ring *ring,
		  uint32_t max_sge, bool needs_lock);
/* The same with a ring that is mapped for it, by what the kernel has told */
int sroce_rq_map(struct sroce_rq *rq, struct ibv_context *ctx,
		 const struct sroce_ring_info *info, uint32_t max_sge,
		 bool needs_lock);
void sroce_rq_fini(struct sroce_rq *rq);

/* The kernel has emptied the queue and may have moved the indices */
void sroce_rq_restart(struct sroce_rq *rq);

/* What became of a list: the entries that it has, and the kernel's flags then */
struct sroce_posted {
	uint32_t begin;
	uint32_t next;
	uint32_t flags;
};

/*
 * Post a list. Returns an errno and names the first request that was not
 * posted in @bad.
 */
int sroce_rq_post(struct sroce_rq *rq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad, struct sroce_posted *posted);
/* The same for a queue that a doorbell rings, which has failed then */
int sroce_rq_post_ring(struct sroce_rq *rq, struct ibv_context *ctx,
		       uint32_t number, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad);

/* srq.c */

struct ibv_srq *sroce_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *attr);
struct ibv_srq *sroce_create_srq_ex(struct ibv_context *ctx,
				    struct ibv_srq_init_attr_ex *attr);
int sroce_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int sroce_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int sroce_destroy_srq(struct ibv_srq *srq);
int sroce_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int sroce_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad);

/* qp.c */

struct ibv_qp *sroce_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr);
struct ibv_qp *sroce_create_qp_ex(struct ibv_context *ctx,
				  struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *sroce_open_qp(struct ibv_context *ctx,
			     struct ibv_qp_open_attr *attr);
int sroce_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int sroce_modify_qp_rate_limit(struct ibv_qp *qp,
			       struct ibv_qp_rate_limit_attr *rate);
int sroce_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init_attr);
int sroce_destroy_qp(struct ibv_qp *qp);
int sroce_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad);

/* raw.c: what there is for raw packets beside queue pairs */

struct ibv_wq *sroce_create_wq(struct ibv_context *ctx,
			       struct ibv_wq_init_attr *attr);
int sroce_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int sroce_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *
sroce_create_rwq_ind_table(struct ibv_context *ctx,
			   struct ibv_rwq_ind_table_init_attr *attr);
int sroce_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
struct ibv_flow *sroce_create_flow(struct ibv_qp *qp,
				   struct ibv_flow_attr *attr);
int sroce_destroy_flow(struct ibv_flow *flow);
struct ibv_counters *
sroce_create_counters(struct ibv_context *ctx,
		      struct ibv_counters_init_attr *attr);
int sroce_destroy_counters(struct ibv_counters *counters);
int sroce_attach_counters(struct ibv_counters *counters,
			  struct ibv_counter_attach_attr *attr,
			  struct ibv_flow *flow);
int sroce_read_counters(struct ibv_counters *counters, uint64_t *values,
			uint32_t n, uint32_t flags);

/* sq.c: send queues */

int sroce_sq_init(struct sroce_sq *sq, struct ibv_context *ctx,
		  const struct sroce_ring_info *info,
		  const struct ibv_qp_init_attr_ex *attr, bool needs_lock);
void sroce_sq_fini(struct sroce_sq *sq);

/*
 * Keep entries for rendezvous: the ring is to have them beside those that the application
 * has asked for. And look how far the kernel is: @kept always goes with @cons, or an
 * entry of a rendezvous could be taken twice. Under the lock.
 */
void sroce_sq_keep(struct sroce_sq *sq);
void sroce_sq_look(struct sroce_sq *sq);

/* Is there a free entry at @next for the application? Under the lock. */
static inline bool sroce_sq_has_room(struct sroce_sq *sq, uint32_t next)
{
	if (next + sq->kept - sq->cons < sq->ring.nr_entries)
		return true;

	sroce_sq_look(sq);
	return next + sq->kept - sq->cons < sq->ring.nr_entries;
}

/* The kernel has emptied the queue and may have moved the indices */
void sroce_sq_restart(struct sroce_sq *sq);

/* May this QP's state take send requests at all? */
bool sroce_qp_may_send(struct ibv_qp *qp);

/*
 * Hand everything before @next to the kernel, under the lock. When this
 * returns true the caller rings the doorbell, after dropping the lock.
 */
bool sroce_sq_publish(struct sroce_qp *qp, uint32_t next);

int sroce_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad);
int sroce_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		  struct ibv_mw_bind *bind);

/* wr.c: ibv_wr_* */

/* Returns EOPNOTSUPP if this type of QP cannot do one of the operations */
int sroce_wr_check_ops(enum ibv_qp_type type, uint64_t send_ops_flags);
void sroce_wr_init(struct sroce_qp *qp, uint64_t send_ops_flags);

#endif
