/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests of the send queue, copied and checked.
 */
#ifndef SROCE_TRANSPORT_REQUESTER_FETCH_H
#define SROCE_TRANSPORT_REQUESTER_FETCH_H

#include "transport/qp.h"

/**
 * struct sroce_wr_kind - what a posted operation is
 * @op: wire operation, SROCE_OP_NONE for a local one
 * @wc: opcode of its completion
 * @flags: of the last packet
 * @args: bytes of its arguments in sroce_send_wqe.room
 * @word: it has imm_data or invalidate_rkey
 */
struct sroce_wr_kind {
	u8 op;
	u8 wc;
	u16 flags;
	u8 args;
	bool word;
};

/* By SROCE_WR_x of a work request that was fetched and has no error */
extern const struct sroce_wr_kind sroce_wr_table[];

/**
 * sroce_requester_fetch() - copy and check the next posted work request
 * @qp: QP
 *
 * Context: requester lock held.
 * Return: the copy, whose @status says whether it can be carried out; NULL when
 * nothing is posted.
 */
struct sroce_swqe *sroce_requester_fetch(struct sroce_qp *qp);

#endif
