/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The pages of a piece of a message, in use while it is sent or copied to.
 *
 * Where memory is on demand its pages may be missing. Whoever gathers need not know:
 * then they are being brought in already, and the answer is to wait. In that case
 * nothing may be changed, and the same is done again when the half runs.
 */
#ifndef SROCE_TRANSPORT_GATHER_H
#define SROCE_TRANSPORT_GATHER_H

#include "compat.h"
#include "memory/integrity.h"
#include "memory/users.h"
#include "transport/qp.h"

/* A train has at most this many packets and bytes; the window is larger */
#define SROCE_TRAIN_PACKETS 64
#define SROCE_TRAIN_BYTES (256 * 1024)

/*
 * Enough for SROCE_TRAIN_BYTES in SROCE_MAX_SGE elements: each may begin with
 * the last byte of a page and end with the first one of another.
 */
#define SROCE_TRAIN_BVECS (SROCE_TRAIN_BYTES / 4096 + 2 * SROCE_MAX_SGE)

/* ... and for a packet with tuples of protection information between pieces of data */
#define SROCE_GATHER_BVECS (SROCE_TRAIN_BVECS + 2 * SROCE_PACKET_TUPLES)

/* Lists with regions that have protection information have one of them, as far as is known */
#define SROCE_GATHER_SIGS 4

/**
 * struct sroce_gathered_sig - a range of a region with protection information
 * @mr: region, used
 * @off: its first byte on the wire, counted from the region's first
 * @at: bytes gathered before it
 * @len: bytes
 */
struct sroce_gathered_sig {
	struct sroce_mr *mr;
	u32 off;
	u32 at;
	u32 len;
};

/**
 * struct sroce_gather - pages of a piece of a message, in use while it is sent
 * @lock: a processor has one buffer; a lock only where those who have bottom halves
 *	off can be preempted. Taken with a half's lock held, outside all of those
 *	that copying and sending take
 * @half: whose they are
 * @uses: regions they belong to
 * @swqe: work request that completes when nobody looks at the pages any more; NULL
 *	for one that an ACK completes
 * @nbv: entries of @bv
 * @len: bytes in @bv
 * @placed: bytes that were copied to @bv; set by who has copied them
 * @ahead: bytes that will be wanted of the range that is being gathered, or of what its list
 *	has behind it in the same element
 * @least: where pages are missing, or @bv is full, the caller is content with whole
 *	packets, so many bytes at least; U32_MAX when it needs all. Its own to set, after
 *	sroce_gather_begin()
 * @inlined: the data is in the work request itself
 * @on_demand: some of @uses are on demand: we are a reader, which keeps their pages
 *	in place
 * @special: memory that wants more than to be let go of in the end: on demand, or with
 *	protection information
 * @bv: the pages
 * @nsigs: entries of @sig; of interest with @special only
 * @sig: ranges of regions with protection information that are going to be copied to
 *
 * Everybody writes all that is before @bv, for each train. So it has one cache line together
 * with the first page (on PREEMPT_RT, where @lock is a lock, it has two), and nothing is to come
 * before @bv that few need.
 */
struct sroce_gather {
	local_lock_t lock; /* see above */
	struct sroce_half *half;
	struct sroce_mr_uses *uses;
	struct sroce_swqe *swqe;
	unsigned int nbv;
	u32 len;
	u32 placed;
	u32 ahead;
	u32 least;
	bool inlined;
	bool on_demand;
	bool special;
	struct bio_vec bv[SROCE_GATHER_BVECS];
	u32 nsigs;
	struct sroce_gathered_sig sig[SROCE_GATHER_SIGS];
};

/**
 * sroce_gather_begin() - this CPU's gather buffer, empty
 * @half: requester or responder that is going to gather; it is its QP's keys that
 *	count, and it waits when pages are missing
 *
 * Context: @half's lock held; one user at a time, which calls nothing between begin
 * and end that could gather again.
 */
struct sroce_gather *sroce_gather_begin(struct sroce_half *half);

/* All that was gathered may go; what was placed (@g->placed) is checked first, if it is to be */
void sroce_gather_end(struct sroce_gather *g);

/**
 * sroce_gather_rkey() - add a range of a region
 * @g: buffer
 * @rkey: R_Key that the peer has named
 * @access: rights needed
 * @va: first byte
 * @len: bytes, not 0; where @g->least allows it, cut to what could be gathered
 * @ahead: bytes that the message will want from there on, as far as is known
 *
 * Return: 0; -EAGAIN when pages are being brought in: the half runs again; or another
 * errno when there is nothing to wait for: of sroce_mr_use() when the key must not be
 * used, -EFAULT when the pages cannot be had, -ENOSPC when they do not fit.
 */
int sroce_gather_rkey(struct sroce_gather *g, u32 rkey, int access, u64 va,
		      u32 *len, u32 ahead);

/**
 * struct sroce_sgl - scatter/gather list of a work request
 * @sge: private copy of its elements
 * @n: their number
 * @user: a process has written them, so that the reserved key is a key like others
 * @pd: protection domain that their keys are of: that of the queue
 */
struct sroce_sgl {
	const struct sroce_sge *sge;
	u32 n;
	bool user;
	const struct ib_pd *pd;
};

/* The list of a send work request that was fetched */
static inline struct sroce_sgl sroce_sgl_of_send(const struct sroce_qp *qp,
						 const struct sroce_swqe *slot)
{
	return (struct sroce_sgl){
		.sge = slot->sge,
		.n = slot->wqe.num_sge,
		.user = slot->user,
		.pd = qp->pd,
	};
}

/* The list of the receive work request that was taken */
static inline struct sroce_sgl sroce_sgl_of_recv(const struct sroce_qp *qp)
{
	const struct sroce_responder *resp = &qp->resp;

	return (struct sroce_sgl){
		.sge = (const struct sroce_sge *)(resp->msg.wqe + 1),
		.n = resp->msg.wqe->num_sge,
		.user = resp->msg.wqe_user,
		.pd = qp->srq ? qp->srq->ibsrq.pd : qp->pd,
	};
}

/**
 * sroce_gather_sges() - add a piece of a scatter/gather list
 * @g: buffer
 * @l: list
 * @access: rights needed
 * @off: bytes of the list to skip
 * @len: bytes to add, as in sroce_gather_rkey(); the list has as many after @off
 * @ahead: bytes that the message will want, these included
 *
 * Return: as sroce_gather_rkey(), or -EMSGSIZE when the list is shorter.
 */
int sroce_gather_sges(struct sroce_gather *g, const struct sroce_sgl *l,
		      int access, u32 off, u32 *len, u32 ahead);

/**
 * sroce_gather_send() - add a piece of what a send work request sends
 * @g: buffer of its requester
 * @slot: work request, whose data may be inline
 * @off: bytes of the message to skip
 * @len: bytes to add, as in sroce_gather_rkey(); the message has as many after @off
 * @ahead: bytes that the message will want, these included
 *
 * Return: as sroce_gather_rkey().
 */
int sroce_gather_send(struct sroce_gather *g, struct sroce_swqe *slot, u32 off,
		      u32 *len, u32 ahead);

/**
 * sroce_gather_sink() - add a piece of where the response to a work request goes
 * @g: buffer of its requester
 * @slot: READ or atomic; all of its data will be wanted
 * @off: bytes of the data to skip
 * @len: bytes to add, as in sroce_gather_rkey(); the data has as many after @off
 *
 * Return: as sroce_gather_rkey().
 */
int sroce_gather_sink(struct sroce_gather *g, const struct sroce_swqe *slot,
		      u32 off, u32 *len);

/**
 * sroce_rkey_check() - may the peer name this range?
 * @qp: QP that the key was sent to
 * @rkey: key
 * @access: remote rights needed
 * @va: first byte
 * @len: bytes, not 0
 *
 * Nobody is going to touch the memory by this: whoever does asks again.
 *
 * Context: any.
 * Return: 0, or an errno of sroce_mr_use().
 */
int sroce_rkey_check(const struct sroce_qp *qp, u32 rkey, int access, u64 va,
		     u64 len);

/* The same for the region as a whole: no bounds are checked */
int sroce_rkey_check_whole(const struct sroce_qp *qp, u32 rkey, int access);

/**
 * struct sroce_word - the 8 bytes that an atomic is about to change
 * @uses: has their region
 * @mr: region, with the bytes in place
 */
struct sroce_word {
	struct sroce_mr_uses *uses;
	struct sroce_mr *mr;
};

/**
 * sroce_word_begin() - use the region of an atomic
 * @w: filled in
 * @half: responder
 * @rkey: key that the peer has named
 * @access: remote rights needed
 * @va: first byte
 *
 * Nothing of the gather buffer is used: bytes are changed through their region.
 *
 * Context: @half's lock held, nothing being gathered; on success until sroce_word_end().
 * Return: 0, or an errno of sroce_gather_rkey().
 */
int sroce_word_begin(struct sroce_word *w, struct sroce_half *half, u32 rkey,
		     int access, u64 va);
void sroce_word_end(struct sroce_word *w);

/* Let a train carry the first @len gathered bytes */
static inline void sroce_gather_train(const struct sroce_gather *g,
				      struct sroce_train *t, u32 len)
{
	t->bv = g->bv;
	t->bi = (struct bvec_iter){ .bi_size = len };
}

/* Module begin and end. Context: no QP */
int sroce_gathers_start(void);
void sroce_gathers_stop(void);

#endif
