// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SENDs to a QP whose shared receive queue matches tags (ibv_create_srq_ex()).
 *
 * Such a message begins with a header (infiniband/tm_types.h): 16 bytes with an opcode and
 * the tag. responder_place.c hands its first train on to here. The header is read, the
 * list of the queue looked up (srq.c, tags.c), and then:
 *
 *	eager, matched		the buffer is the message's receive. The header is left out
 *	eager, not matched	an ordinary receive, header and all; counted, see tags.c
 *	rendezvous, matched	nothing is placed. The buffer is kept for a READ
 *	rendezvous, not matched	as eager
 *	anything else		an ordinary receive, header and all
 *
 * From the second packet on there is nothing special until the completion.
 *
 * The READ of a rendezvous wants room in the send queue, and something to wait for it with:
 * that is the process's. So the completion of the match tells it a handle, and its library
 * posts SROCE_WR_TAG_READ with that, and behind it, fenced, the message that tells the
 * peer: when the application polls, not before. What is read, and to where, stays here
 * (struct sroce_tag), so that neither side has to believe anything. The end of that READ is
 * the second completion of the receive (requester_complete.c).
 */
#include "memory/copy.h"
#include "transport/gather.h"
#include "transport/internal.h"
#include "transport/responder_place.h"
#include "transport/responder_recv.h"
#include "transport/responder_tag.h"
#include "transport/responder_verdict.h"

/* The opcodes of enum ibv_tmh_op that have a tag */
enum {
	SROCE_TMH_RNDV = 1,
	SROCE_TMH_EAGER = 3,
};

/* The request of a rendezvous is one packet, and not longer than was promised */
static int sroce_tag_read_rndv(struct sroce_tag_msg *m, const u8 *rvh,
			       const struct sroce_train *t)
{
	if (!(t->flags & SROCE_END) || t->npkts > 1 ||
	    t->bi.bi_size < SROCE_TMH_LEN + SROCE_RVH_LEN ||
	    t->bi.bi_size > SROCE_MAX_RNDV_HEADER)
		return -EBADMSG;
	m->rndv = true;
	m->va = get_unaligned_be64(rvh);
	m->rkey = get_unaligned_be32(rvh + 8);
	m->len = get_unaligned_be32(rvh + 12);
	return 0;
}

int sroce_tag_read(struct sroce_tag_msg *m, const struct sroce_train *t)
{
	u32 len = min_t(u32, t->bi.bi_size, SROCE_TMH_LEN + SROCE_RVH_LEN);
	u8 raw[SROCE_TMH_LEN + SROCE_RVH_LEN];
	struct bvec_iter si = t->bi;

	memset(m, 0, sizeof(*m));
	if (len < SROCE_TMH_LEN)
		return 0;
	sroce_bvec_read(raw, t->bv, &si, len);
	memcpy(m->raw, raw, sizeof(m->raw));
	m->head = SROCE_TMH_LEN;
	m->tagged = raw[0] == SROCE_TMH_EAGER || raw[0] == SROCE_TMH_RNDV;
	m->app_ctx = get_unaligned_be32(raw + 4);
	m->tag = get_unaligned_be64(raw + 8);
	return raw[0] == SROCE_TMH_RNDV ?
	       sroce_tag_read_rndv(m, raw + SROCE_TMH_LEN, t) : 0;
}

/* The header that was looked at, in front of the rest. Return: as sroce_place_sges(). */
static int sroce_tag_place_header(struct sroce_qp *qp)
{
	struct sroce_gather *g = sroce_gather_begin(&qp->resp.half);
	struct sroce_resp_msg *msg = &qp->resp.msg;
	struct sroce_sgl l = sroce_sgl_of_recv(qp);
	u32 len = qp->tag.head;
	struct bvec_iter di = { .bi_size = len };
	int err;

	g->least = U32_MAX;
	err = sroce_gather_sges(g, &l, IB_ACCESS_LOCAL_WRITE, 0, &len, 0);
	if (!err) {
		sroce_bvec_write(g->bv, &di, qp->tag.raw, len);
		msg->recv_off = len;
	}
	sroce_gather_end(g);
	return err;
}

/* Bytes of the header that its buffer does not get */
static u32 sroce_tag_left_out(const struct sroce_qp *qp)
{
	return qp->tag.matched ? qp->tag.head : 0;
}

/* Place the first packet. Return: as sroce_place_sges(), with nothing placed */
static int sroce_tag_place(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;
	int err = 0;

	msg->recv_off = 0;
	bvec_iter_advance(t->bv, &t->bi, qp->tag.head);
	if (qp->tag.head && !qp->tag.matched)
		err = sroce_tag_place_header(qp);
	if (!err && t->bi.bi_size)
		err = sroce_place_sges(qp, t, qp->mtu);
	if (err)
		msg->recv_off = 0;
	return err;
}

/* The first packet is not placed: not yet, or never */
static void sroce_tag_not_placed(struct sroce_qp *qp, const struct sroce_train *t,
				 int err)
{
	struct sroce_train rest = *t;

	if (err != -EAGAIN) {
		sroce_responder_refuse(qp, SROCE_NAK_REM_OP,
				       IB_WC_LOC_PROT_ERR);
		return;
	}
	/* What of it the buffer is to get */
	bvec_iter_advance(rest.bv, &rest.bi, sroce_tag_left_out(qp));
	sroce_responder_await_pages(qp, &rest);
}

static void sroce_tag_place_only(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_train packet = *t;
	int err = sroce_tag_place(qp, &packet);

	if (err)
		sroce_tag_not_placed(qp, t, err);
	else if (!(t->flags & SROCE_INV) || sroce_place_invalidated(qp, t))
		sroce_place_send_done(qp, t);
}

/* The header is in the first packet: that goes by itself, the rest as if it came after it */
static void sroce_tag_place_first(struct sroce_qp *qp, struct sroce_train *t)
{
	struct sroce_train first = *t;
	int err;

	first.npkts = 1;
	first.flags &= SROCE_START;
	first.bi.bi_size = qp->mtu;
	err = sroce_tag_place(qp, &first);
	if (err) {
		sroce_tag_not_placed(qp, t, err);
		return;
	}
	sroce_place_send_done(qp, &first);
	t->flags &= ~SROCE_START;
	t->psn = sroce_psn_add(t->psn, 1);
	t->npkts--;
	bvec_iter_advance(t->bv, &t->bi, qp->mtu);
	sroce_responder_execute_send(qp, t);
}

/* Does the receive that was taken have room for what is there of the message? */
static bool sroce_tag_fits(const struct sroce_qp *qp, const struct sroce_train *t)
{
	const struct sroce_tag_msg *m = &qp->tag;

	if (m->rndv && m->matched)
		return m->handle;
	if (t->bi.bi_size < m->head)
		return false;
	return t->bi.bi_size - sroce_tag_left_out(qp) <= qp->resp.msg.recv_len;
}

/* A rendezvous has its buffer, but nothing is in it yet */
static void sroce_tag_rendezvous(struct sroce_qp *qp, struct sroce_train *t)
{
	if (!(t->flags & SROCE_INV) || sroce_place_invalidated(qp, t))
		sroce_place_send_done(qp, t);
}

/*
 * A message has come before, and waits for pages or for a region that it invalidates: is
 * this the one that has the receive? It has been matched by its header, which was in a
 * packet of its own then, so a peer may have sent another one in its place; or the
 * receive is that of an RDMA WRITE with immediate data, and @qp->tag of an older message.
 */
static bool sroce_tag_is_same(const struct sroce_qp *qp, const struct sroce_train *t)
{
	const struct sroce_tag_msg *was = &qp->tag;
	struct sroce_tag_msg m;

	if (!qp->resp.msg.wqe_tagged || sroce_tag_read(&m, t))
		return false;
	return m.head == was->head && !memcmp(m.raw, was->raw, sizeof(m.raw)) &&
	       m.va == was->va && m.rkey == was->rkey && m.len == was->len;
}

/* Return: 0 with a receive, an errno of sroce_recv_take_tagged(), or -EBADMSG */
static int sroce_tag_take(struct sroce_qp *qp, const struct sroce_train *t)
{
	if (qp->resp.msg.have_wqe)
		return sroce_tag_is_same(qp, t) ? 0 : -EBADMSG;
	return sroce_tag_read(&qp->tag, t) ?: sroce_recv_take_tagged(qp);
}

void sroce_responder_begin_tagged(struct sroce_qp *qp, struct sroce_train *t)
{
	int err = sroce_tag_take(qp, t);

	if (err)
		sroce_place_no_receive(qp, t, err);
	else if (!sroce_tag_fits(qp, t))
		sroce_responder_refuse(qp, SROCE_NAK_INV_REQ,
				       IB_WC_LOC_LEN_ERR);
	else if (qp->tag.rndv && qp->tag.matched)
		sroce_tag_rendezvous(qp, t);
	else if (t->npkts > 1)
		sroce_tag_place_first(qp, t);
	else
		sroce_tag_place_only(qp, t);
}

static void sroce_tag_fill_match(const struct sroce_tag_msg *m,
				 struct sroce_cqe *cqe)
{
	cqe->flags = SROCE_CQE_TAG_MATCH;
	cqe->tm.tag = m->tag;
	cqe->tm.app_ctx = m->app_ctx;
	if (m->rndv) {
		cqe->tag_handle = m->handle;
		cqe->byte_len = m->len;
	} else {
		cqe->flags |= SROCE_CQE_TAG_DATA;
	}
}

void sroce_responder_complete_tagged(struct sroce_qp *qp, const struct sroce_train *t)
{
	const struct sroce_tag_msg *m = &qp->tag;
	struct sroce_cqe cqe = {
		.opcode = m->tagged ? SROCE_WC_TAG_RECV : SROCE_WC_NO_TAG,
		.byte_len = qp->resp.msg.recv_off,
	};

	if (m->matched)
		sroce_tag_fill_match(m, &cqe);
	if (m->late)
		cqe.flags |= SROCE_CQE_TAG_SYNC_REQ;
	if (t->flags & SROCE_IMM) {
		cqe.flags |= SROCE_CQE_IMM;
		cqe.imm_data = t->imm;
	} else if (t->flags & SROCE_INV) {
		cqe.flags |= SROCE_CQE_INV;
		cqe.invalidate_rkey = t->inv_rkey;
	}
	sroce_recv_complete(qp, &cqe, t->flags & SROCE_SOLICITED);
}

void sroce_responder_drop_tagged(struct sroce_qp *qp)
{
	const struct sroce_resp_msg *msg = &qp->resp.msg;

	if (msg->have_wqe && msg->wqe_tagged)
		sroce_srq_untake_tagged(qp->srq, qp->qpn, &qp->tag);
}

void sroce_responder_forget_tags(struct sroce_qp *qp)
{
	if (!qp->kind->tags)
		return;
	sroce_responder_drop_tagged(qp);
	sroce_srq_forget_tags(qp->srq, qp->qpn);
}
