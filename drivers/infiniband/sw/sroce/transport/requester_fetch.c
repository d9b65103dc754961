// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests of the send queue: from the ring to the kernel's own copies.
 *
 * requester.c comes here when it has begun everything that it has. What a process has
 * written is checked here, once, in the copy; whoever is handed that believes it.
 */
#include <linux/nospec.h>

#include "transport/internal.h"
#include "transport/requester.h"
#include "transport/requester_fetch.h"

/* Flags that a work request may have */
#define SROCE_WR_FLAGS (SROCE_SEND_FENCE | SROCE_SEND_SIGNALED | \
			SROCE_SEND_SOLICITED | SROCE_SEND_INLINE)
/* ... and one of raw packets in addition */
#define SROCE_WR_RAW_FLAGS (SROCE_SEND_IP_CSUM | SROCE_SEND_VLAN)

/* Arguments of an operation that are not its data: bytes of sroce_send_wqe.room */
#define SROCE_ARGS(field) sizeof_field(struct sroce_send_wqe, field)
#define SROCE_ARGS_END(field, last)					\
	(offsetofend(struct sroce_send_wqe, field.last) -		\
	 offsetof(struct sroce_send_wqe, room))
#define SROCE_ARGS_RDMA SROCE_ARGS_END(rdma, rkey)
#define SROCE_ARGS_ATOMIC SROCE_ARGS_END(atomic, rkey)

const struct sroce_wr_kind sroce_wr_table[] = {
	[SROCE_WR_RDMA_WRITE] = { SROCE_OP_WRITE, IB_WC_RDMA_WRITE, 0,
				  SROCE_ARGS_RDMA },
	[SROCE_WR_RDMA_WRITE_IMM] = { SROCE_OP_WRITE, IB_WC_RDMA_WRITE,
				      SROCE_IMM, SROCE_ARGS_RDMA, true },
	[SROCE_WR_SEND] = { SROCE_OP_SEND, IB_WC_SEND },
	[SROCE_WR_SEND_IMM] = { SROCE_OP_SEND, IB_WC_SEND, SROCE_IMM, 0, true },
	[SROCE_WR_RDMA_READ] = { SROCE_OP_READ, IB_WC_RDMA_READ, 0,
				 SROCE_ARGS_RDMA },
	[SROCE_WR_CMP_SWAP] = { SROCE_OP_CMP_SWAP, IB_WC_COMP_SWAP, 0,
				SROCE_ARGS_ATOMIC },
	[SROCE_WR_FETCH_ADD] = { SROCE_OP_FETCH_ADD, IB_WC_FETCH_ADD, 0,
				 SROCE_ARGS_ATOMIC },
	[SROCE_WR_LOCAL_INV] = { SROCE_OP_NONE, IB_WC_LOCAL_INV, 0, 0, true },
	[SROCE_WR_BIND_MW] = { SROCE_OP_NONE, IB_WC_BIND_MW, 0,
			       SROCE_ARGS(bind) },
	[SROCE_WR_SEND_INV] = { SROCE_OP_SEND, IB_WC_SEND, SROCE_INV, 0, true },
	/* The headers are in front of the data, and so of no operation of their own */
	[SROCE_WR_TSO] = { SROCE_OP_SEND, IB_WC_LSO },
	[SROCE_WR_FLUSH] = { SROCE_OP_FLUSH, IB_WC_FLUSH, 0,
			     SROCE_ARGS_END(flush, selectivity) },
	[SROCE_WR_ATOMIC_WRITE] = { SROCE_OP_ATOMIC_WRITE, IB_WC_ATOMIC_WRITE,
				    0, SROCE_ARGS_RDMA },
	/* The READ of a rendezvous, which is the end of a receive */
	[SROCE_WR_TAG_READ] = { SROCE_OP_READ, SROCE_WC_TAG_RECV, 0,
				SROCE_ARGS_END(tag, handle) },
	[SROCE_WR_TAG_FIN] = { SROCE_OP_SEND, IB_WC_SEND },
	[SROCE_WR_REG_MR] = { SROCE_OP_NONE, IB_WC_REG_MR, 0, SROCE_ARGS(reg) },
};

static bool sroce_wr_known(const struct sroce_qp *qp,
			   const struct sroce_swqe *slot)
{
	u64 posts = qp->kind->posts | (slot->user ? 0 : qp->kind->kernel_posts);
	u8 opcode = slot->wqe.opcode;

	return opcode < 64 && (posts >> opcode & 1);
}

static u32 sroce_wr_args(const struct sroce_qp *qp, u8 opcode)
{
	if (qp->kind->raw)
		return SROCE_ARGS(raw);
	if (!sroce_qp_is_datagram(qp))
		return sroce_wr_table[opcode].args;
	return qp->type == IB_QPT_GSI ? SROCE_ARGS(ud) :
					SROCE_ARGS_END(ud, remote_qkey);
}

/*
 * Flags that nobody knows, reserved fields, and arguments of other operations: what
 * is refused today can get a meaning tomorrow (sroce-abi.h).
 */
static bool sroce_wr_reserved(const struct sroce_qp *qp,
			      const struct sroce_send_wqe *wqe)
{
	u32 flags = SROCE_WR_FLAGS | (qp->kind->raw ? SROCE_WR_RAW_FLAGS : 0);
	u32 rest = wqe->reserved | wqe->reserved2;
	const u32 *arg = (const u32 *)wqe->room;
	u32 i;

	for (i = sroce_wr_args(qp, wqe->opcode) / sizeof(*arg);
	     i < sizeof(wqe->room) / sizeof(*arg); i++)
		rest |= arg[i];
	if (!(wqe->flags & SROCE_SEND_INLINE))
		rest |= wqe->inline_len;
	if (!sroce_wr_table[wqe->opcode].word)
		rest |= wqe->invalidate_rkey;
	if (qp->kind->service != SROCE_XRC)
		rest |= wqe->remote_srqn;
	return rest || wqe->flags & ~flags;
}

/* Bytes of the message, or more than 2^31 when the list is too long */
static u64 sroce_swqe_length(const struct sroce_swqe *slot)
{
	u64 sum = 0;
	int i;

	if (slot->wqe.flags & SROCE_SEND_INLINE)
		return slot->wqe.inline_len;
	for (i = 0; i < slot->wqe.num_sge; i++)
		sum += slot->sge[i].length;
	return sum;
}

/*
 * The READ of a rendezvous that was matched: from where, and to where, has been known
 * since. The process says which one, and that there is room in its send queue.
 */
static u8 sroce_swqe_tag_read(const struct sroce_qp *qp, struct sroce_swqe *slot)
{
	struct sroce_send_wqe *wqe = &slot->wqe;
	struct sroce_tag t;

	/* All elements have been counted as far as there is room for them */
	if (wqe->num_sge || qp->max_send_sge < SROCE_MAX_TAG_SGE ||
	    !sroce_srq_claim_tag(qp->srq, wqe->tag.handle, qp->qpn, &t))
		return IB_WC_LOC_QP_OP_ERR;
	wqe->flags |= SROCE_SEND_SIGNALED;
	wqe->wr_id = t.wr_id;
	wqe->rdma.remote_addr = t.va;
	wqe->rdma.rkey = t.rkey;
	wqe->num_sge = t.num_sge;
	memcpy(slot->sge, t.sge, t.num_sge * sizeof(t.sge[0]));
	slot->length = t.len;
	return t.len > 1U << 31 ? IB_WC_LOC_LEN_ERR : IB_WC_SUCCESS;
}

/* Is the data of the work request what its operation needs? */
static u8 sroce_swqe_check_op(const struct sroce_qp *qp, struct sroce_swqe *slot)
{
	bool is_inline = slot->wqe.flags & SROCE_SEND_INLINE;

	switch (slot->op) {
	case SROCE_OP_NONE:
		return is_inline || slot->wqe.num_sge ? IB_WC_LOC_QP_OP_ERR :
							IB_WC_SUCCESS;
	case SROCE_OP_READ:
		if (is_inline)
			return IB_WC_LOC_QP_OP_ERR;
		return slot->wqe.opcode == SROCE_WR_TAG_READ ?
		       sroce_swqe_tag_read(qp, slot) : IB_WC_SUCCESS;
	case SROCE_OP_CMP_SWAP:
	case SROCE_OP_FETCH_ADD:
		if (is_inline)
			return IB_WC_LOC_QP_OP_ERR;
		fallthrough;
	case SROCE_OP_ATOMIC_WRITE:
		return slot->length == 8 ? IB_WC_SUCCESS : IB_WC_LOC_LEN_ERR;
	case SROCE_OP_FLUSH:
		if (!sroce_feth_fits(slot->wqe.flush.placement,
				     slot->wqe.flush.selectivity))
			return IB_WC_LOC_QP_OP_ERR;
		if (slot->wqe.flush.length > U32_MAX)
			return IB_WC_LOC_LEN_ERR;
		return slot->length ? IB_WC_LOC_LEN_ERR : IB_WC_SUCCESS;
	default:
		return IB_WC_SUCCESS;
	}
}

/*
 * A frame has a tag only where it says so, and headers of its own only where it is to be
 * cut. They are in the entry, behind the elements.
 */
static bool sroce_swqe_raw_ok(const struct sroce_qp *qp,
			      const struct sroce_send_wqe *wqe)
{
	if (!(wqe->flags & SROCE_SEND_VLAN) && wqe->raw.vlan_tci)
		return false;
	if (wqe->opcode != SROCE_WR_TSO)
		return !wqe->raw.mss && !wqe->raw.header_len;
	return !(wqe->flags & SROCE_SEND_INLINE) && wqe->raw.header_len &&
	       wqe->raw.header_len <= SROCE_MAX_TSO_HEADER &&
	       wqe->raw.header_len + wqe->num_sge * sizeof(struct sroce_sge) <=
	       qp->max_inline;
}

/* Bytes that a work request may have; the network says what a frame may */
static u32 sroce_swqe_most(const struct sroce_qp *qp)
{
	if (qp->kind->raw)
		return SROCE_RAW_FRAME_MOST;
	return sroce_qp_is_datagram(qp) ? READ_ONCE(qp->port->mtu) : 1U << 31;
}

static u8 sroce_swqe_check(struct sroce_qp *qp, struct sroce_swqe *slot)
{
	struct sroce_send_wqe *wqe = &slot->wqe;
	u64 len;

	if (!sroce_wr_known(qp, slot))
		return IB_WC_LOC_QP_OP_ERR;
	wqe->opcode = array_index_nospec(wqe->opcode,
					 ARRAY_SIZE(sroce_wr_table));
	if (sroce_wr_reserved(qp, wqe) || wqe->num_sge > qp->max_send_sge ||
	    ((wqe->flags & SROCE_SEND_INLINE) &&
	     (wqe->num_sge || wqe->inline_len > qp->max_inline)))
		return IB_WC_LOC_QP_OP_ERR;
	wqe->num_sge = array_index_nospec(wqe->num_sge, qp->max_send_sge + 1);
	if (qp->kind->raw && !sroce_swqe_raw_ok(qp, wqe))
		return IB_WC_LOC_QP_OP_ERR;
	slot->op = sroce_wr_table[wqe->opcode].op;

	len = sroce_swqe_length(slot);
	if (len > sroce_swqe_most(qp))
		return IB_WC_LOC_LEN_ERR;
	slot->length = len;
	return sroce_swqe_check_op(qp, slot);
}

/*
 * Copy the next posted work request. The entry may change under us when a
 * process owns it, so only the copy is looked at. Inline data stays where it is:
 * it means nothing to us, and a process that changes it sends something else.
 */
struct sroce_swqe *sroce_requester_fetch(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 ahead = req->fetched - req->ring.index;
	const struct sroce_send_wqe *entry;
	struct sroce_swqe *slot;

	if (sroce_ring_pending(&req->ring) <= ahead)
		return NULL;
	entry = sroce_ring_entry(&req->ring, req->fetched);
	slot = sroce_swqe_at(req, req->fetched);
	slot->wqe = *entry;
	/* From here on the compiler must not look at the entry instead of the copy */
	barrier();
	slot->user = qp->user;
	slot->inline_data = entry + 1;
	memcpy(slot->sge, entry + 1, sizeof(slot->sge[0]) *
	       min_t(u32, slot->wqe.num_sge, qp->max_send_sge));
	req->fetched++;
	slot->state = SROCE_SWQE_READY;
	slot->op = SROCE_OP_NONE;
	slot->length = 0;
	slot->npsn = 0;
	slot->status = sroce_swqe_check(qp, slot);
	req->batch.last_len = slot->length;
	return slot;
}
