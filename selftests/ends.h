/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ends: two connected queue pairs in one process, for programs that test one
 * rule after the other: post, then say which completion is wanted where.
 */
#ifndef ENDS_H
#define ENDS_H

#include "vt.h"

#define ENDS_DEPTH 16
/* work requests of each queue, four times as many completions; to be changed before ends_open() */
extern uint32_t ends_depth;

struct end {
	struct vt_dev *dev;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* set before ends_fresh(): receives come from here */
	struct ibv_mr *mr; /* the program's own */
};

/* the requester and the responder of most tests; on one device, or on two */
extern struct end a, b;

/* how the next pair is connected; ends_fresh() does not change it */
extern struct vt_conn ends_how;

/* -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] [-s] (less), with completion queues and no queue pairs */
void ends_open(int argc, char **argv);
extern bool ends_short;

/* a new pair, in RESET */
void ends_make(enum ibv_qp_type type);
/* from RESET to RTS, everything remote allowed */
void ends_connect(void);
/* a new pair in RTS */
void ends_fresh(enum ibv_qp_type type);
/* a new pair for datagrams, and where those of a's go to b; the address handle is the caller's */
void ends_datagrams(struct ibv_send_wr *wr);
/* for XRC: a domain; a queue of it, and its number; and a pair whose b is the target and has such a queue, b.srq */
struct ibv_xrcd *ends_open_xrcd(struct ibv_context *ctx, int fd, int flags);
struct ibv_srq *ends_xrc_srq(struct ibv_xrcd *domain, struct ibv_pd *pd, struct ibv_cq *cq, uint32_t *number);
struct ibv_xrcd *ends_fresh_xrc(int fd, uint32_t *number);
/* destroy the pair and forget its completions and events */
void ends_stop(void);

/* a place in memory with the key that reaches it */
struct place {
	uint64_t addr;
	uint32_t key;
};

static inline struct place local(const struct ibv_mr *mr)
{
	return (struct place){ (uintptr_t)mr->addr, mr->lkey };
}

static inline struct place remote(const struct ibv_mr *mr)
{
	return (struct place){ (uintptr_t)mr->addr, mr->rkey };
}

/* one signaled request; a SEND_WITH_INV invalidates to.key. An errno. */
int post_op(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, struct place from, uint32_t len,
	    struct place to);
/* any request at all, from end @e */
int post_wr(struct end *e, struct ibv_send_wr *wr);
int post_recv(struct end *e, uint64_t id, struct place to, uint32_t len);

/* the next completion is of @id with @status; counted by vt_check() under the name @what */
bool expect_wc(const char *what, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);
/* post_op() and expect_wc() */
bool expect_op(const char *what, struct end *e, enum ibv_wr_opcode opcode, struct place from, uint32_t len,
	       struct place to, enum ibv_wc_status status);

#endif
