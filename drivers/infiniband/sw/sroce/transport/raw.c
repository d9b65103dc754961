// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packets: Ethernet frames that a process writes and reads itself. Each work request
 * is one frame, complete when the network has taken it. What a frame may be, and whose
 * frames a queue receives, raw/ knows.
 *
 * A frame comes from anybody, so it changes no more than the receive work request that it
 * fills: one that does not fit is dropped and counted, and the work request waits for the
 * next.
 *
 * requester.c comes here in place of datagram.c, and raw/ with what it has received.
 */
#include "memory/copy.h"
#include "transport/gather.h"
#include "transport/internal.h"
#include "transport/pace.h"
#include "transport/raw.h"
#include "transport/responder_recv.h"
#include "transport/run.h"
#include "transport/send.h"
#include "turn.h"

/* --- out -------------------------------------------------------------------- */

/* The rate limit counts a frame as it does a datagram */
static void sroce_raw_pace(struct sroce_qp *qp, u32 len)
{
	const struct sroce_train t = {
		.op = SROCE_OP_SEND,
		.service = SROCE_UD,
		.flags = SROCE_START | SROCE_END,
		.npkts = 1,
		.mtu = len,
		.bi.bi_size = len,
	};

	sroce_requester_pace(&qp->req, &t);
}

/* The headers of a packet that is to be cut are in the entry, behind the elements */
static const void *sroce_raw_header(const struct sroce_swqe *slot)
{
	return slot->inline_data + slot->wqe.num_sge * sizeof(struct sroce_sge);
}

static int sroce_raw_give(struct sroce_qp *qp, const struct sroce_swqe *slot,
			  const struct sroce_gather *g, u32 len)
{
	const struct sroce_send_wqe *wqe = &slot->wqe;
	struct sroce_raw_tx tx = {
		.bv = g->bv,
		.len = len,
		.csum = wqe->flags & SROCE_SEND_IP_CSUM,
		.vlan = wqe->flags & SROCE_SEND_VLAN,
		.vlan_tci = wqe->raw.vlan_tci,
		.net_cookie = qp->net_cookie,
		.owner = qp->owner,
	};

	if (wqe->opcode == SROCE_WR_TSO) {
		tx.header = sroce_raw_header(slot);
		tx.header_len = wqe->raw.header_len;
		tx.mss = wqe->raw.mss;
	}
	sroce_raw_pace(qp, tx.header_len + len);
	return sroce_send_raw(&qp->req.half, &tx);
}

static enum ib_wc_status sroce_raw_status(int err)
{
	switch (err) {
	case 0:
		return IB_WC_SUCCESS;
	case -EMSGSIZE:
		return IB_WC_LOC_LEN_ERR;
	default:
		return IB_WC_LOC_QP_OP_ERR;
	}
}

bool sroce_raw_send(struct sroce_qp *qp, struct sroce_swqe *slot)
{
	struct sroce_gather *g = sroce_gather_begin(&qp->req.half);
	u32 len = slot->length;
	int err = 0;

	slot->state = SROCE_SWQE_DONE;
	if (len)
		err = sroce_gather_send(g, slot, 0, &len, 0);
	if (err == -EAGAIN)
		slot->state = SROCE_SWQE_READY;
	else if (err)
		slot->status = IB_WC_LOC_PROT_ERR;
	else
		slot->status = sroce_raw_status(sroce_raw_give(qp, slot, g,
							       len));
	sroce_gather_end(g);
	return slot->state == SROCE_SWQE_DONE;
}

/* --- in --------------------------------------------------------------------- */

/*
 * Is the consumer told of the tag? That of a provider (0x88a8) stays where it was: nothing
 * in the completion would say that it is one
 */
static bool sroce_raw_strips(const struct sroce_qp *qp,
			     const struct sroce_raw_rx *rx)
{
	return qp->strip_vlan && rx->has_vlan &&
	       get_unaligned_be16(rx->head + SROCE_RAW_ADDRESSES) == 0x8100;
}

static u32 sroce_raw_head_len(const struct sroce_qp *qp,
			      const struct sroce_raw_rx *rx)
{
	return rx->has_vlan && !sroce_raw_strips(qp, rx) ?
	       SROCE_RAW_ADDRESSES + SROCE_RAW_VLAN : SROCE_RAW_ADDRESSES;
}

static int sroce_raw_copy(struct sroce_qp *qp, const struct sroce_raw_rx *rx,
			  u32 head)
{
	struct sroce_gather *g = sroce_gather_begin(&qp->resp.half);
	struct bvec_iter di = { .bi_size = head + rx->len };
	struct bvec_iter si = { .bi_size = rx->len };
	struct sroce_sgl l = sroce_sgl_of_recv(qp);
	u32 len = head + rx->len;
	int err;

	err = sroce_gather_sges(g, &l, IB_ACCESS_LOCAL_WRITE, 0, &len, 0);
	if (!err) {
		sroce_bvec_write(g->bv, &di, rx->head, head);
		sroce_bvec_copy(g->bv, &di, rx->bv, &si, rx->len);
	}
	sroce_gather_end(g);
	return err;
}

/*
 * Return: a negative errno when the frame is dropped, or an ib_wc_status. When pages are
 * missing the work request stays taken: they will be there for the next frame.
 */
static int sroce_raw_place(struct sroce_qp *qp, const struct sroce_raw_rx *rx,
			   u32 head)
{
	struct sroce_resp_msg *msg = &qp->resp.msg;
	u32 len = head + rx->len;
	int err;

	if (!msg->have_wqe)
		err = sroce_recv_take_for(qp, len);
	else
		err = len > msg->recv_len ? -EMSGSIZE : 0;
	if (err == -EINVAL)
		return IB_WC_LOC_QP_OP_ERR;
	if (err)
		return err;
	err = sroce_raw_copy(qp, rx, head);
	if (err == -EAGAIN)
		return err;
	return err ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS;
}

static void sroce_raw_complete(struct sroce_qp *qp,
			       const struct sroce_raw_rx *rx, u32 head,
			       enum ib_wc_status status)
{
	struct sroce_cqe cqe = {
		.status = status,
		.opcode = IB_WC_RECV,
		.byte_len = head + rx->len,
		.flow_tag = rx->tag,
	};

	if (rx->csum_ok)
		cqe.flags |= SROCE_CQE_IP_CSUM_OK;
	if (sroce_raw_strips(qp, rx)) {
		cqe.flags |= SROCE_CQE_VLAN;
		cqe.vlan_id = rx->vlan_tci;
	}
	sroce_recv_complete(qp, &cqe, false);
}

static void sroce_raw_take(struct sroce_qp *qp, const struct sroce_raw_rx *rx)
{
	u32 head = sroce_raw_head_len(qp, rx);
	int status;

	if (!sroce_qp_hears(qp) || rx->net_cookie != qp->net_cookie) {
		sroce_qp_count(qp, SROCE_CNT_RX_DISCARDS, 1);
		return;
	}
	status = sroce_raw_place(qp, rx, head);
	if (status < 0) {
		sroce_qp_count(qp, status == -EMSGSIZE ?
			       SROCE_CNT_RESP_LOCAL_LENGTH_ERROR :
			       SROCE_CNT_OUT_OF_BUFFER, 1);
		return;
	}
	sroce_raw_complete(qp, rx, head, status);
	/* The error is in what the QP's own consumer has posted (IBA 10.10.2.2) */
	if (status != IB_WC_SUCCESS)
		sroce_qp_error(qp);
}

void sroce_qp_strip_vlan(struct sroce_qp *qp, bool strip)
{
	spin_lock_bh(&qp->resp.half.lock);
	qp->strip_vlan = strip;
	spin_unlock_bh(&qp->resp.half.lock);
}

void sroce_raw_receive(struct sroce_qp *qp, const struct sroce_raw_rx *rx)
{
	bool fresh = !softirq_count();

	local_bh_disable();
	sroce_turn_begin(fresh);
	sroce_turn_spend(rx->len + SROCE_TURN_PACKET);
	spin_lock(&qp->resp.half.lock);
	if (!qp->dead)
		sroce_raw_take(qp, rx);
	spin_unlock(&qp->resp.half.lock);
	sroce_run_pending();
	sroce_turn_end();
	local_bh_enable();
}
