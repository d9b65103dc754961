// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Unreliable datagrams, and QP 1, which is one with a fixed Q_Key. Each
 * message is one packet, complete when it was handed to the network, or taken by a
 * QP of this host.
 *
 * Anybody who knows the Q_Key may send one, so nothing in a datagram changes more
 * than the receive work request that it fills: one that does not fit is dropped and
 * counted, and the work request waits for the next.
 *
 * requester.c comes here in place of requester_train.c, receive.c in place of responder.c.
 */
#include "memory/copy.h"
#include "path.h"
#include "transport/ah.h"
#include "transport/datagram.h"
#include "transport/gather.h"
#include "transport/internal.h"
#include "transport/notify.h"
#include "transport/pace.h"
#include "transport/receive.h"
#include "transport/responder_recv.h"
#include "transport/send.h"

#define SROCE_GRH_BYTES 40

/* All messages to QP 1 have this length (IBA 13.4.2) */
#define SROCE_MAD_BYTES 256

/* Q_Key of QP 1 (IBA 10.2.5) */
#define SROCE_GSI_QKEY 0x80010000

/* Looks at a shared receive queue from which others take what was looked at */
#define SROCE_SRQ_TRIES 8

static u32 sroce_datagram_own_qkey(const struct sroce_qp *qp)
{
	return qp->type == IB_QPT_GSI ? SROCE_GSI_QKEY : qp->attr.qkey;
}

/* With the top bit set the QP's own Q_Key goes out instead (IBA 10.2.5) */
static u32 sroce_datagram_send_qkey(const struct sroce_qp *qp, u32 qkey)
{
	return qkey & BIT(31) ? sroce_datagram_own_qkey(qp) : qkey;
}

/* QP 1 is in every partition: the kernel says in which it talks */
static u16 sroce_datagram_send_pkey(const struct sroce_qp *qp,
				    const struct sroce_swqe *slot)
{
	if (qp->type != IB_QPT_GSI)
		return sroce_qp_pkey(qp);
	return READ_ONCE(qp->port->pkeys[slot->wqe.ud.pkey_index]);
}

/*
 * The length was checked when the work request was fetched. The port's MTU may be
 * smaller by now: a datagram that does not fit any more is lost on its way, like
 * any other packet, and not cut short.
 */
static void sroce_datagram_train(struct sroce_qp *qp, struct sroce_train *t,
				 const struct sroce_swqe *slot)
{
	*t = (struct sroce_train){
		.op = SROCE_OP_SEND,
		.service = SROCE_UD,
		.flags = SROCE_START | SROCE_END,
		.pkey = sroce_datagram_send_pkey(qp, slot),
		.mtu = slot->length,
		.dqpn = slot->wqe.ud.remote_qpn & SROCE_QPN_MASK,
		.psn = qp->req.send_psn,
		.npkts = 1,
		.qkey = sroce_datagram_send_qkey(qp, slot->wqe.ud.remote_qkey),
		.sqpn = qp->qpn,
	};
	if (slot->wqe.opcode == SROCE_WR_SEND_IMM) {
		t->flags |= SROCE_IMM;
		t->imm = slot->wqe.imm_data;
	}
	if (slot->wqe.flags & SROCE_SEND_SOLICITED)
		t->flags |= SROCE_SOLICITED;
}

bool sroce_datagram_send(struct sroce_qp *qp, struct sroce_tx *tx,
			 struct sroce_swqe *slot)
{
	struct sroce_gather *g;
	struct sroce_path *path;
	struct sroce_train t;
	u32 len = slot->length;
	int err = 0;

	slot->state = SROCE_SWQE_DONE;
	path = sroce_ah_path(qp->port, slot->wqe.ud.ahn, qp->pd);
	if (!path) {
		slot->status = IB_WC_LOC_QP_OP_ERR;
		return true;
	}
	g = sroce_gather_begin(&qp->req.half);
	g->swqe = slot;
	if (len)
		err = sroce_gather_send(g, slot, 0, &len, 0);
	if (err == -EAGAIN) {
		slot->state = SROCE_SWQE_READY;
	} else if (err) {
		slot->status = IB_WC_LOC_PROT_ERR;
	} else {
		sroce_datagram_train(qp, &t, slot);
		sroce_gather_train(g, &t, len);
		sroce_requester_pace(&qp->req, &t);
		sroce_send_train(&qp->req.half, tx, path, &t, g);
		qp->req.send_psn = sroce_psn_add(qp->req.send_psn, 1);
		/* Nothing will ever be acknowledged */
		WRITE_ONCE(qp->req.una_psn, qp->req.send_psn);
		WRITE_ONCE(qp->req.next_psn, qp->req.send_psn);
	}
	sroce_gather_end(g);
	return slot->state == SROCE_SWQE_DONE;
}

static int sroce_datagram_copy(struct sroce_qp *qp, struct sroce_train *t,
			       const struct sroce_rx_info *info)
{
	struct sroce_responder *resp = &qp->resp;
	u32 len = SROCE_GRH_BYTES + t->bi.bi_size;
	struct bvec_iter di = { .bi_size = len };
	struct sroce_gather *g = sroce_gather_begin(&resp->half);
	struct sroce_sgl l = sroce_sgl_of_recv(qp);
	int err;

	err = sroce_gather_sges(g, &l, IB_ACCESS_LOCAL_WRITE, 0, &len, 0);
	if (err != -EAGAIN && !sroce_recv_claim(qp))
		err = -EBUSY;
	if (!err) {
		sroce_bvec_write(g->bv, &di, info->grh, SROCE_GRH_BYTES);
		if (t->bi.bi_size)
			sroce_bvec_copy(g->bv, &di, t->bv, &t->bi, t->bi.bi_size);
	}
	sroce_gather_end(g);
	return err;
}

static void sroce_datagram_complete(struct sroce_qp *qp,
				    const struct sroce_train *t,
				    const struct sroce_rx_info *info, u32 len,
				    enum ib_wc_status status)
{
	struct sroce_cqe cqe = {
		.status = status,
		.opcode = IB_WC_RECV,
		.byte_len = SROCE_GRH_BYTES + len,
		.flags = SROCE_CQE_GRH | SROCE_CQE_NETWORK_HDR,
		.src_qp = t->sqpn,
		.sl = info->sl,
		.network_hdr_type = info->network_hdr_type,
	};

	if (qp->type == IB_QPT_GSI)
		cqe.pkey_index = max(sroce_pkey_index(qp->port, t->pkey), 0);
	if (t->flags & SROCE_IMM) {
		cqe.flags |= SROCE_CQE_IMM;
		cqe.imm_data = t->imm;
	}
	if (info->has_smac) {
		cqe.flags |= SROCE_CQE_SMAC;
		memcpy(cqe.smac, info->smac, sizeof(cqe.smac));
	}
	if (info->vlan_id < 0xffff) {
		cqe.flags |= SROCE_CQE_VLAN;
		cqe.vlan_id = info->vlan_id;
	}
	sroce_recv_complete(qp, &cqe, t->flags & SROCE_SOLICITED);
}

static bool sroce_datagram_wanted(struct sroce_qp *qp,
				  const struct sroce_train *t)
{
	if (t->op != SROCE_OP_SEND || !sroce_qp_hears(qp)) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, 1);
		return false;
	}
	if (t->qkey != sroce_datagram_own_qkey(qp)) {
		sroce_qp_count(qp, SROCE_CNT_RX_BAD_QKEY, 1);
		return false;
	}
	/* A shorter one would leave the rest of an older one in the buffer */
	if (qp->type == IB_QPT_GSI && t->bi.bi_size != SROCE_MAD_BYTES) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, 1);
		return false;
	}
	return true;
}

/*
 * Find a receive work request, and place the datagram there. While pages of it are
 * missing one of a shared queue stays where it is: this QP might never get another
 * datagram, and others may have memory that is there.
 *
 * Return: a negative errno when the datagram is dropped, -EBUSY to try again, or an
 * ib_wc_status.
 */
static int sroce_datagram_place(struct sroce_qp *qp, struct sroce_train *t,
				const struct sroce_rx_info *info)
{
	struct sroce_responder *resp = &qp->resp;
	u32 len = SROCE_GRH_BYTES + t->bi.bi_size;
	int err;

	/* When the last datagram was dropped for missing pages, one is taken already */
	if (!resp->msg.have_wqe)
		err = sroce_recv_look_for(qp, len);
	else
		err = len > resp->msg.recv_len ? -EMSGSIZE : 0;
	if (err == -EINVAL)
		return sroce_recv_claim(qp) ? IB_WC_LOC_QP_OP_ERR : -EBUSY;
	if (err)
		return err;
	err = sroce_datagram_copy(qp, t, info);
	if (err == -EAGAIN || err == -EBUSY)
		return err;
	return err ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS;
}

static void sroce_datagram_dropped(struct sroce_qp *qp, int why)
{
	sroce_qp_count(qp, why == -EMSGSIZE ?
		       SROCE_CNT_RESP_LOCAL_LENGTH_ERROR :
		       SROCE_CNT_OUT_OF_BUFFER, 1);
}

void sroce_datagram_receive(struct sroce_qp *qp, struct sroce_train *t,
			    const struct sroce_rx_info *info)
{
	int tries = SROCE_SRQ_TRIES;
	u32 len = t->bi.bi_size;
	int status;

	if (!sroce_datagram_wanted(qp, t))
		return;
	if (unlikely(t->flags & SROCE_CE))
		sroce_notify_sender(qp, t, info);
	do {
		status = sroce_datagram_place(qp, t, info);
	} while (status == -EBUSY && --tries);
	/* Not earlier: a handler may post, which needs this CPU's gather buffer */
	if (unlikely(qp->resp.msg.srq_limit)) {
		qp->resp.msg.srq_limit = false;
		sroce_srq_limit_event(qp->srq);
	}
	if (status < 0) {
		sroce_datagram_dropped(qp, status);
		return;
	}
	sroce_datagram_complete(qp, t, info, len, status);
	/* The error is in what the QP's own consumer has posted (IBA 10.10.2.2) */
	if (status != IB_WC_SUCCESS)
		sroce_qp_error(qp);
}
