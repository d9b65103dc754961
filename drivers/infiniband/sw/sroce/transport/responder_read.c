// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that are answered with more than an ACK: READs, atomics, and, after IBA
 * A19, ATOMIC WRITE and FLUSH.
 *
 * responder.c comes here with a request that is the next in order. Atomics are
 * carried out here and now, and their result is the answer; of a READ the answer
 * is which bytes to send, and responder_reply.c looks at the memory when it gets
 * there. answers.c keeps the answers to as many requests as the peer may have
 * outstanding: a duplicate is answered from there (responder_dup.c), so that no
 * atomic is carried out twice.
 */
#include "compat.h"
#include "memory/copy.h"
#include "transport/answers.h"
#include "transport/gather.h"
#include "transport/internal.h"
#include "transport/responder_read.h"
#include "transport/responder_verdict.h"

void sroce_responder_execute_read(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_res res = {
		.op = SROCE_OP_READ,
		.psn = t->psn,
		.npsn = sroce_message_packets(t->dma_len, qp->mtu),
		.end = resp->ack.end,
		.srqn = resp->msg.srqn,
		.va = t->va,
		.rkey = t->rkey,
		.len = t->dma_len,
	};

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) ||
	    !qp->attr.max_dest_rd_atomic || t->dma_len > 1U << 31 ||
	    t->bi.bi_size) {
		sroce_responder_refuse_request(qp);
		return;
	}
	if (t->dma_len &&
	    sroce_rkey_check(qp, t->rkey, IB_ACCESS_REMOTE_READ, t->va,
			     t->dma_len)) {
		sroce_responder_refuse_access(qp);
		return;
	}
	/* The peer has more outstanding than was agreed on, and will ask again */
	if (!sroce_answers_add(&resp->answers, &res))
		return;
	sroce_qp_count(qp, SROCE_CNT_RX_READ_REQUESTS, 1);
	sroce_responder_accept(qp, t, res.npsn);
	resp->ack.state = SROCE_ACK_NONE;
}

/* The 8 bytes, kept in place. Return: false when the request was dealt with */
static bool sroce_responder_atomic_begin(struct sroce_qp *qp,
					 const struct sroce_train *t,
					 int access, struct sroce_word *w)
{
	int err;

	/* The peer has more outstanding than was agreed on, and will ask again */
	if (!sroce_answers_room(&qp->resp.answers))
		return false;
	err = sroce_word_begin(w, &qp->resp.half, t->rkey, access, t->va);
	if (err == -EAGAIN)
		sroce_responder_await_pages(qp, t);
	else if (err)
		sroce_responder_refuse_access(qp);
	return !err;
}

/*
 * Let go of the bytes. Where the atomic was carried out, answer it, and keep the answer for
 * duplicates.
 */
static void sroce_responder_atomic_end(struct sroce_qp *qp,
				       const struct sroce_train *t,
				       struct sroce_word *w, bool done, u64 orig)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_rd_res res = {
		.op = t->op,
		.psn = t->psn,
		.npsn = 1,
		.end = resp->ack.end,
		.orig = orig,
	};

	sroce_word_end(w);
	if (unlikely(!done)) {
		sroce_responder_refuse_access(qp);
		return;
	}
	sroce_answers_add(&resp->answers, &res);
	sroce_qp_count(qp, SROCE_CNT_RX_ATOMIC_REQUESTS, 1);
	sroce_responder_accept(qp, t, 1);
	resp->ack.state = SROCE_ACK_NONE;
}

void sroce_responder_execute_atomic(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_word w;
	u64 orig = 0;
	bool done;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC) ||
	    !qp->attr.max_dest_rd_atomic || t->bi.bi_size || t->va & 7) {
		sroce_responder_refuse_request(qp);
		return;
	}
	if (!sroce_responder_atomic_begin(qp, t, IB_ACCESS_REMOTE_ATOMIC, &w))
		return;
	done = sroce_mr_atomic(w.mr, t->va, t->op == SROCE_OP_CMP_SWAP,
			       t->compare, t->swap_add, &orig);
	sroce_responder_atomic_end(qp, t, &w, done, orig);
}

void sroce_responder_execute_atomic_write(struct sroce_qp *qp,
					  struct sroce_train *t)
{
	struct sroce_word w;
	u64 value;
	bool done;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    !qp->attr.max_dest_rd_atomic || t->dma_len != sizeof(value) ||
	    t->bi.bi_size != sizeof(value) || t->va & 7) {
		sroce_responder_refuse_request(qp);
		return;
	}
	if (!sroce_responder_atomic_begin(qp, t, IB_ACCESS_REMOTE_WRITE, &w))
		return;
	sroce_bvec_read(&value, t->bv, &t->bi, sizeof(value));
	done = sroce_mr_atomic_write(w.mr, t->va, value);
	sroce_responder_atomic_end(qp, t, &w, done, 0);
}

/* Rights that the placement type asks of QP and region; 0: a reserved one */
static int sroce_feth_rights(u32 feth)
{
	u32 plt = feth & SROCE_FETH_PLT;
	int rights = 0;

	if (plt & ~(SROCE_FETH_GLOBAL | SROCE_FETH_PERSISTENT) ||
	    feth & SROCE_FETH_SEL & ~SROCE_FETH_WHOLE_MR)
		return 0;
	if (plt & SROCE_FETH_GLOBAL)
		rights |= IB_ACCESS_FLUSH_GLOBAL;
	if (plt & SROCE_FETH_PERSISTENT)
		rights |= IB_ACCESS_FLUSH_PERSISTENT;
	return rights;
}

/*
 * Whatever was written before is in memory already, where every CPU sees it:
 * global visibility takes a barrier. Persistence is refused when the region is
 * registered.
 */
void sroce_responder_execute_flush(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_responder *resp = &qp->resp;
	int rights = sroce_feth_rights(t->feth);
	struct sroce_rd_res res = {
		.op = t->op,
		.psn = t->psn,
		.npsn = 1,
		.end = resp->ack.end,
	};
	int err;

	if (!rights || (qp->attr.qp_access_flags & rights) != rights ||
	    !qp->attr.max_dest_rd_atomic || t->bi.bi_size) {
		sroce_responder_refuse_request(qp);
		return;
	}
	if (t->feth & SROCE_FETH_WHOLE_MR)
		err = sroce_rkey_check_whole(qp, t->rkey, rights);
	else
		err = sroce_rkey_check(qp, t->rkey, rights, t->va, t->dma_len);
	if (err) {
		sroce_responder_refuse_access(qp);
		return;
	}
	if (sroce_answers_room(&resp->answers)) {
		/* What was placed is visible to all before the answer leaves */
		wmb();
		sroce_answers_add(&resp->answers, &res);
		sroce_responder_accept(qp, t, 1);
		resp->ack.state = SROCE_ACK_NONE;
	}
}
