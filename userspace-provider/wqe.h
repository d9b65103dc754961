/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How a send work request is written: one function per part of it, shared by
 * ibv_post_send() and ibv_wr_*.
 *
 * The kernel refuses reserved fields that are not zero, so wqe_begin() clears
 * the whole header; the others fill in what they know about.
 *
 * Until wqe_end() the header is in our own memory. Whoever else writes to the
 * ring changes what the kernel is asked for, and no length that we rely on.
 */
#ifndef SROCE_WQE_H
#define SROCE_WQE_H

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sroce.h"

/* Scatter/gather elements are copied, not converted. */
static_assert(sizeof(struct sroce_sge) == sizeof(struct ibv_sge) &&
	      offsetof(struct sroce_sge, addr) ==
			offsetof(struct ibv_sge, addr) &&
	      offsetof(struct sroce_sge, length) ==
			offsetof(struct ibv_sge, length) &&
	      offsetof(struct sroce_sge, lkey) ==
			offsetof(struct ibv_sge, lkey),
	      "struct ibv_sge is not struct sroce_sge");

/* So are opcodes and flags. */
static_assert((int)SROCE_WR_RDMA_WRITE == (int)IBV_WR_RDMA_WRITE &&
	      (int)SROCE_WR_SEND_IMM == (int)IBV_WR_SEND_WITH_IMM &&
	      (int)SROCE_WR_FETCH_ADD == (int)IBV_WR_ATOMIC_FETCH_AND_ADD &&
	      (int)SROCE_WR_LOCAL_INV == (int)IBV_WR_LOCAL_INV &&
	      (int)SROCE_WR_BIND_MW == (int)IBV_WR_BIND_MW &&
	      (int)SROCE_WR_SEND_INV == (int)IBV_WR_SEND_WITH_INV &&
	      (int)SROCE_WR_TSO == (int)IBV_WR_TSO &&
	      (int)SROCE_WR_FLUSH == (int)IBV_WR_FLUSH &&
	      (int)SROCE_WR_ATOMIC_WRITE == (int)IBV_WR_ATOMIC_WRITE,
	      "enum ibv_wr_opcode is not SROCE_WR_x");
static_assert((int)SROCE_SEND_FENCE == (int)IBV_SEND_FENCE &&
	      (int)SROCE_SEND_SIGNALED == (int)IBV_SEND_SIGNALED &&
	      (int)SROCE_SEND_SOLICITED == (int)IBV_SEND_SOLICITED &&
	      (int)SROCE_SEND_INLINE == (int)IBV_SEND_INLINE &&
	      (int)SROCE_SEND_IP_CSUM == (int)IBV_SEND_IP_CSUM,
	      "enum ibv_send_flags is not SROCE_SEND_x");

/* What a type of QP may post: a bit for each SROCE_WR_x */
enum {
	SROCE_OPS_UD = 1 << SROCE_WR_SEND | 1 << SROCE_WR_SEND_IMM,
	SROCE_OPS_UC = SROCE_OPS_UD |
		       1 << SROCE_WR_RDMA_WRITE | 1 << SROCE_WR_RDMA_WRITE_IMM |
		       1 << SROCE_WR_LOCAL_INV | 1 << SROCE_WR_BIND_MW,
	SROCE_OPS_RC = SROCE_OPS_UC | 1 << SROCE_WR_SEND_INV |
		       1 << SROCE_WR_RDMA_READ |
		       1 << SROCE_WR_CMP_SWAP | 1 << SROCE_WR_FETCH_ADD |
		       1 << SROCE_WR_FLUSH | 1 << SROCE_WR_ATOMIC_WRITE,

	SROCE_OPS_RAW = 1 << SROCE_WR_SEND | 1 << SROCE_WR_TSO,

	/* those whose data may be in the request itself */
	SROCE_OPS_INLINE = 1 << SROCE_WR_SEND | 1 << SROCE_WR_SEND_IMM |
			   1 << SROCE_WR_SEND_INV |
			   1 << SROCE_WR_RDMA_WRITE |
			   1 << SROCE_WR_RDMA_WRITE_IMM |
			   1 << SROCE_WR_ATOMIC_WRITE,

	/* those which have no data */
	SROCE_OPS_NO_DATA = 1 << SROCE_WR_LOCAL_INV | 1 << SROCE_WR_BIND_MW |
			    1 << SROCE_WR_FLUSH,
};

static inline uint32_t sroce_ops_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return SROCE_OPS_RC;
	case IBV_QPT_UC:
		return SROCE_OPS_UC;
	case IBV_QPT_UD:
		return SROCE_OPS_UD;
	case IBV_QPT_RAW_PACKET:
		return SROCE_OPS_RAW;
	default:
		return 0;
	}
}

/* Compares as unsigned: an opcode out of range is in no set */
static inline bool sroce_op_in(uint32_t opcode, uint32_t ops)
{
	return opcode < 32 && (ops >> opcode & 1);
}

/* The request that will be entry number @index of the ring */
static inline void wqe_begin(struct sroce_sq *sq, uint32_t index,
			     uint64_t wr_id, uint8_t opcode, uint16_t flags)
{
	sq->entry = sroce_ring_entry(&sq->ring, index);
	memset(&sq->wqe, 0, sizeof(sq->wqe));
	sq->wqe.wr_id = wr_id;
	sq->wqe.opcode = opcode;
	sq->wqe.flags = flags;
}

/* Into the ring with it, if there is one */
static inline void wqe_end(struct sroce_sq *sq)
{
	if (sq->entry)
		memcpy(sq->entry, &sq->wqe, sizeof(sq->wqe));
	sq->entry = NULL;
}

/* Where its elements or inline data are */
static inline uint8_t *wqe_data(const struct sroce_sq *sq)
{
	return sq->entry + sizeof(sq->wqe);
}

static inline void wqe_rdma(struct sroce_send_wqe *wqe, uint32_t rkey,
			    uint64_t remote_addr)
{
	wqe->rdma.remote_addr = remote_addr;
	wqe->rdma.rkey = rkey;
}

static inline void wqe_atomic(struct sroce_send_wqe *wqe, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare_add,
			      uint64_t swap)
{
	wqe->atomic.remote_addr = remote_addr;
	wqe->atomic.compare_add = compare_add;
	wqe->atomic.swap = swap;
	wqe->atomic.rkey = rkey;
}

static inline void wqe_flush(struct sroce_send_wqe *wqe, uint32_t rkey,
			     uint64_t remote_addr, uint64_t length,
			     uint32_t placement, uint32_t selectivity)
{
	wqe->flush.remote_addr = remote_addr;
	wqe->flush.length = length;
	wqe->flush.rkey = rkey;
	wqe->flush.placement = placement;
	wqe->flush.selectivity = selectivity;
}

/* A window may be bound to nothing: no region, no length. */
static inline void wqe_bind(struct sroce_send_wqe *wqe, struct ibv_mw *mw,
			    uint32_t new_rkey,
			    const struct ibv_mw_bind_info *info)
{
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind.mw_rkey = mw->rkey;
	wqe->bind.new_rkey = new_rkey;
	wqe->bind.access = info->mw_access_flags;
}

static inline void wqe_ud(struct sroce_send_wqe *wqe, struct ibv_ah *ah,
			  uint32_t remote_qpn, uint32_t remote_qkey)
{
	wqe->ud.ahn = to_sah(ah)->ahn;
	wqe->ud.remote_qpn = remote_qpn;
	wqe->ud.remote_qkey = remote_qkey;
}

/*
 * The headers of a packet that is to be cut. Their place is behind the elements, which
 * wqe_sges() makes room for. Returns an errno.
 */
static inline int wqe_tso(struct sroce_sq *sq, const void *header,
			  uint16_t length, uint16_t mss)
{
	if (!length || length > SROCE_MAX_TSO_HEADER || length > sq->max_inline)
		return EINVAL;

	sq->wqe.raw.mss = mss;
	sq->wqe.raw.header_len = length;
	memcpy(wqe_data(sq), header, length);
	return 0;
}

static inline int wqe_shift_header(struct sroce_sq *sq, size_t room)
{
	size_t length = sq->wqe.raw.header_len;

	if (room + length > sq->max_inline)
		return EINVAL;
	memmove(wqe_data(sq) + room, wqe_data(sq), length);
	return 0;
}

/* Both ways to attach data return an errno. */
static inline int wqe_sges(struct sroce_sq *sq, const struct ibv_sge *sge,
			   size_t num_sge)
{
	if (num_sge > sq->max_sge)
		return EINVAL;
	if (sq->wqe.opcode == SROCE_WR_TSO &&
	    wqe_shift_header(sq, num_sge * sizeof(*sge)))
		return EINVAL;

	sq->wqe.num_sge = num_sge;
	if (num_sge)
		memcpy(wqe_data(sq), sge, num_sge * sizeof(*sge));
	return 0;
}

/* One call for each piece; the caller has set SROCE_SEND_INLINE. */
static inline int wqe_append_inline(struct sroce_sq *sq, const void *data,
				    size_t length)
{
	uint32_t position = sq->wqe.inline_len;

	if (length > sq->max_inline - position)
		return EINVAL;

	sq->wqe.inline_len = position + length;
	if (length)
		memcpy(wqe_data(sq) + position, data, length);
	return 0;
}

#endif
