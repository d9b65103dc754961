/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of this directory call of each other.
 */
#ifndef SROCE_TRANSPORT_INTERNAL_H
#define SROCE_TRANSPORT_INTERNAL_H

#include "compat.h"
#include "transport/qp.h"

/* A train has at most this many packets, and SROCE_TRAIN_BYTES; the window is larger */
#define SROCE_TRAIN_PACKETS 64
/* ... and a longer message waits rather than send fewer than this */
#define SROCE_TRAIN_STUMP 8

/* PSNs of 2 GiB in the smallest packets: half of all there are */
#define SROCE_MAX_NPSN BIT(23)

/* Trains that one half sends before it lets others run */
#define SROCE_SEND_BUDGET 16

/* Work requests that one half flushes before it lets others run */
#define SROCE_FLUSH_BUDGET 256

/* Bytes of one QP in the stack's queues; more where the window is larger */
#define SROCE_TXQ_BYTES (2 * 1024 * 1024)

/* Trains from QPs of this host that may wait in an inbox */
#define SROCE_INBOX_MAX 8192

/* How many packets the network may bring a packet forward or back */
#define SROCE_REORDERING 16

/* A packet was seen that tells of a gap before it */
static inline void sroce_gap_begin(struct sroce_gap *gap, u32 psn)
{
	gap->first = psn;
	gap->high = psn;
}

/**
 * sroce_gap_again() - see whether a gap was left by a repeated stream too
 * @gap: what was seen of the first stream
 * @psn: of a packet that is still not the missing one
 *
 * The rest of a stream in which a packet is missing must not be answered
 * again, even when it is out of order. But the stream begins anew with the
 * missing packet; PSNs that fall back to the beginning tell that it was lost again.
 *
 * Return: true when the stream has begun anew.
 */
static inline bool sroce_gap_again(struct sroce_gap *gap, u32 psn)
{
	if (sroce_psn_diff(psn, gap->first) <= 0 ||
	    sroce_psn_diff(gap->high, psn) > SROCE_REORDERING) {
		sroce_gap_begin(gap, psn);
		return true;
	}
	if (sroce_psn_diff(psn, gap->high) > 0)
		gap->high = psn;
	return false;
}

/* --- run.c ---------------------------------------------------------------- */

/**
 * sroce_half_queue() - have a half run soon on this CPU
 * @half: requester or responder of a QP the caller holds
 *
 * For callers that come through sroce_run_pending() before they turn bottom
 * halves on again. Context: bottom halves off.
 */
void sroce_half_queue(struct sroce_half *half);

/* The same from anywhere: a tasklet runs it. Context: any. */
void sroce_half_kick(struct sroce_half *half);

/* Have a completion queue's handler called, once no lock is held */
void sroce_cq_queue(struct sroce_cq *cq);

/**
 * sroce_run_pending() - run what was queued on this CPU
 *
 * Context: bottom halves off, no lock of a QP or completion queue held.
 */
void sroce_run_pending(void);

/* Have a tasklet do that, when there is something. Context: bottom halves off. */
void sroce_run_soon(void);

/*
 * Lock a half, run it, unlock, run what that queued; for a kernel user's QP
 * without completion handlers, which are called by a tasklet: the caller may be
 * in one of the user's calls. Context: BHs may be on.
 */
void sroce_half_run(struct sroce_half *half);

/*
 * The same for the doorbell of a process, which goes on for some turns with what the
 * first one leaves. Context: process, no locks held.
 */
void sroce_half_run_on(struct sroce_half *half);

/* Run here what is on the list of a CPU, as when that goes off-line. For tests. */
void sroce_run_for(unsigned int cpu);

/* Module start */
void sroce_runqs_start(void);
/* Module end: no QP is left, and nobody queues anything */
void sroce_runqs_stop(void);

struct sroce_gather;

/* --- fault.c -------------------------------------------------------------- */

/**
 * sroce_fault_gather() - bring in the pages that a gather has missed
 * @half: whose gather
 * @g: buffer, after -EAGAIN; to be ended after this
 * @ahead: bytes that will be wanted from there on, as far as is known
 *
 * The half runs again when that is done or has failed, and finds the answer
 * when it gathers once more.
 *
 * Context: @half's lock held.
 * Return: -EAGAIN, or -EFAULT when the pages could not be brought in: the
 * access is an error.
 */
int sroce_fault_gather(struct sroce_half *half, struct sroce_gather *g,
		       u32 ahead);

/**
 * sroce_fault_enter() - keep 8 bytes of a region in place
 * @half: who wants to change them
 * @mr: held region
 * @va: address, in bounds
 *
 * Until sroce_fault_leave(); a region that is not on demand needs nothing.
 *
 * Return: 0, or as sroce_fault_gather() with nothing to leave.
 */
int sroce_fault_enter(struct sroce_half *half, struct sroce_mr *mr, u64 va);
void sroce_fault_leave(struct sroce_mr *mr);

/*
 * A QP is reset or destroyed: it waits for no page any more, whoever has that.
 * Context: @half's lock held; the caller holds the QP.
 */
void sroce_fault_reset(struct sroce_half *half);

void sroce_fault_init(struct sroce_half *half);

static inline bool sroce_faulting(const struct sroce_half *half)
{
	return half->fault.state == SROCE_FAULT_RUNNING;
}

/* --- direct.c ------------------------------------------------------------- */

/**
 * sroce_send_train() - send one train to the network or to a QP of this host
 * @half: sender
 * @tx: coupling buffer of this run
 * @path: where to
 * @t: train; its payload is in @g
 * @g: pages of the payload, or NULL when there is none
 *
 * Context: @half's lock held.
 */
void sroce_send_train(struct sroce_half *half, struct sroce_tx *tx,
		      struct sroce_path *path, struct sroce_train *t,
		      struct sroce_gather *g);

/*
 * Do trains in inboxes point to memory that the QP has sent from? In ERR and SQE
 * both halves run when the last one has been taken.
 */
static inline bool sroce_has_lent(const struct sroce_qp *qp)
{
	return atomic_read_acquire(&qp->lent);
}

/* A QP has been reset, or is dead: wait until none does. Context: process. */
void sroce_wait_lent(struct sroce_qp *qp);

/* See whether there is buffer space again. Context: @half's lock held. */
void sroce_half_unstarve(struct sroce_half *half);

struct sroce_parcel;

/* Next train of an inbox, or NULL. Context: @half's lock held. */
struct sroce_parcel *sroce_inbox_next(struct sroce_half *half);
struct sroce_train *sroce_parcel_train(struct sroce_parcel *p);
/* NULL: it came from the network */
struct sroce_path *sroce_parcel_path(struct sroce_parcel *p);
/* What sroce_inbox_keep() returned for it; 0: it came from a QP of this host */
u32 sroce_parcel_kept(const struct sroce_parcel *p);
/* What it counts as in a turn: see turn.h */
u32 sroce_parcel_cost(const struct sroce_parcel *p);
/* Has the QP that @qp is connected to sent it? Of a datagram that is no question */
bool sroce_parcel_from_peer(const struct sroce_qp *qp,
			    const struct sroce_parcel *p);
void sroce_parcel_free(struct sroce_parcel *p);

/**
 * sroce_inbox_keep() - copy a train from the network into an inbox
 * @half: responder
 * @t: train; the QP takes it, whoever has sent it
 * @room: bytes of memory it may take
 *
 * Context: @half's lock held.
 * Return: bytes it takes, 0 when there is no room or no memory.
 */
u32 sroce_inbox_keep(struct sroce_half *half, const struct sroce_train *t,
		     u32 room);

/* What sroce_inbox_next() gave is next again. Context: @half's lock held. */
void sroce_inbox_return(struct sroce_half *half, struct sroce_parcel *p);

/* Forget what waits for a half of a QP that is dead. Context: process. */
void sroce_half_purge(struct sroce_half *half);

/* Likewise, a part of it. Context: bottom halves off. Return: true when there is more. */
bool sroce_half_purge_some(struct sroce_half *half);

/* --- number.c: QP numbers ------------------------------------------------- */

/* The permutation of 24 bit numbers behind QP numbers, and back */
u32 sroce_qpn_of(u32 index);
u32 sroce_qpn_index(u32 qpn);

/**
 * sroce_qp_number() - give a QP a number and put it into the table
 * @qp: QP, complete: packets for it are handled from here on
 *
 * Context: process.
 * Return: 0, -ENOSPC when there are 2^24 QPs, or -ENOMEM.
 */
int sroce_qp_number(struct sroce_qp *qp);

/* Take a QP out of the table. Context: process. */
void sroce_qp_unnumber(struct sroce_qp *qp);

/**
 * sroce_qp_find_next() - go through all QPs
 * @index: position, 0 at first; moved on
 *
 * Context: any.
 * Return: a QP, held, or NULL at the end.
 */
struct sroce_qp *sroce_qp_find_next(unsigned long *index);

int sroce_numbers_start(void);
void sroce_numbers_stop(void);

/* --- receive.c ------------------------------------------------------------ */

/* Take one train of a QP of this host. Context: the half's lock held. */
void sroce_receive_parcel(struct sroce_qp *qp, struct sroce_parcel *p);

/* Index of the first P_Key of the table that matches, or -1 */
int sroce_pkey_index(const struct sroce_port *port, u16 pkey);

/* --- qp.c ----------------------------------------------------------------- */

/* Where QPs are allocated; module start. Return: 0 or -ENOMEM. */
int sroce_qps_start(void);
/* No QP is left, and none that waits to be freed */
void sroce_qps_stop(void);

static inline void sroce_qp_hold(struct sroce_qp *qp)
{
	refcount_inc(&qp->refs);
}

/**
 * sroce_qp_error() - move a QP to ERR; both halves flush their queues soon
 * @qp: QP in any state
 *
 * Context: bottom halves off; either half's lock may be held.
 */
void sroce_qp_error(struct sroce_qp *qp);

/*
 * Likewise, because a completion was lost: with an event, once, however many
 * more will be lost while the queues are flushed.
 */
void sroce_qp_fatal(struct sroce_qp *qp);

/* The send side of a datagram QP failed: SQE, the receive side goes on */
void sroce_qp_send_error(struct sroce_qp *qp);

/* Of a kernel user's queues, who must not see the QP there any more */
void sroce_qp_forget_completions(struct sroce_qp *qp);

/* Raise an affiliated asynchronous event. Context: a half's lock held. */
void sroce_qp_event(struct sroce_qp *qp, enum ib_event_type type);

static inline enum ib_qp_state sroce_qp_state(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->state);
}

static inline bool sroce_qp_is_datagram(const struct sroce_qp *qp)
{
	return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
}

/* Context: the lock of one of its halves held */
static inline void sroce_qp_count(struct sroce_qp *qp, enum sroce_counter id,
				  u64 n)
{
	sroce_count(qp->counters, id, n);
}

/* --- kind.c ------------------------------------------------------------------ */

/* The row of a type that sroce_qp_create() takes */
const struct sroce_qp_kind *sroce_qp_kind(enum ib_qp_type type);

/* --- requester.c ----------------------------------------------------------- */

/* Packets sent and not acknowledged */
static inline u32 sroce_requester_outstanding(const struct sroce_requester *req)
{
	return (req->send_psn - req->una_psn) & SROCE_PSN_MASK;
}

static inline struct sroce_swqe *sroce_slot(const struct sroce_requester *req,
					    u32 index)
{
	return req->slots + (size_t)(index & req->ring.mask) * req->slot_size;
}

static inline bool sroce_swqe_has_response(const struct sroce_swqe *slot)
{
	return slot->op >= SROCE_OP_READ && slot->op <= SROCE_OP_ATOMIC_WRITE;
}

/* PSNs of a READ from its packet @k to the end of the request that asks for that */
static inline u32 sroce_chunk_rest(const struct sroce_swqe *slot, u32 k)
{
	return min(slot->chunk - k % slot->chunk, slot->npsn - k);
}

/* PSN after the last one of a work request that was sent */
static inline u32 sroce_swqe_end(const struct sroce_swqe *slot)
{
	return sroce_psn_add(slot->first_psn, slot->npsn);
}

/* sroce_half.run of the requester */
bool sroce_requester_run(struct sroce_half *half);

/**
 * sroce_requester_retire() - complete what is done at the head of the queue
 * @qp: QP
 *
 * Everything before @una_psn is acknowledged. Completes in order, in the end
 * also a work request that failed locally.
 *
 * Context: requester lock held.
 */
void sroce_requester_retire(struct sroce_qp *qp);

/* Fail the work request at the head; the QP goes to ERR, or only to SQE */
void sroce_requester_fail(struct sroce_qp *qp, enum ib_wc_status status);

/* --- requester_response.c -------------------------------------------------- */

/**
 * sroce_requester_response() - take one response
 * @qp: connected QP
 * @t: response
 *
 * Context: requester lock held. The caller runs the engine afterwards.
 */
void sroce_requester_response(struct sroce_qp *qp, struct sroce_train *t);

/* --- retransmit.c ----------------------------------------------------------- */

/**
 * sroce_requester_restart() - go back to the oldest unacknowledged PSN
 * @qp: QP
 * @why: counter of the reason
 *
 * Takes one from the retry count, but not for every one of a burst of NAKs; when
 * that is used up the QP fails. Does nothing while the QP waits for a receiver
 * that is not ready.
 *
 * Context: requester lock held.
 */
void sroce_requester_restart(struct sroce_qp *qp, enum sroce_counter why);

/* Put the send cursor to @una_psn, without counting a retry */
void sroce_requester_rewind(struct sroce_qp *qp);

/* A response made progress: reload the retry counts and the timer */
void sroce_requester_progress(struct sroce_qp *qp);

/*
 * Something is in flight, or waits until the queues below have room: see that the
 * timer runs
 */
void sroce_requester_arm(struct sroce_qp *qp);

/* Stop sending for the time an RNR NAK asks for */
void sroce_requester_rnr_wait(struct sroce_qp *qp, u8 code);

void sroce_requester_timer_init(struct sroce_requester *req);

/* --- window.c ------------------------------------------------------------ */

/* A new path: start over */
void sroce_window_init(struct sroce_qp *qp);

/* Packets up to @send_psn were sent for the first time */
void sroce_window_sent(struct sroce_requester *req);

/* @una_psn moved */
void sroce_window_acked(struct sroce_qp *qp);

/* Packets have to be sent again */
void sroce_window_lost(struct sroce_qp *qp);

/* The window is what keeps the requester from sending */
static inline void sroce_window_full(struct sroce_requester *req)
{
	req->rtt.limited = true;
}

/* --- batch.c ------------------------------------------------------------ */

void sroce_batch_init(struct sroce_requester *req);

/* --- ack_delay.c ---------------------------------------------------------- */

/**
 * sroce_ack_hold() - may the ACK that is owed wait for a request to go with?
 * @qp: QP
 *
 * For some milliseconds at most; and only that of a kernel user.
 *
 * Context: responder lock held; everything before the ACK has left.
 * Return: true when it is not to be sent now.
 */
bool sroce_ack_hold(struct sroce_qp *qp);

/* The peer repeats a request: it is not to wait for its ACK */
static inline void sroce_ack_hurry(struct sroce_responder *resp)
{
	resp->delay.turns = 0;
}

void __sroce_ack_ride(struct sroce_qp *qp, struct sroce_tx *tx);

/**
 * sroce_ack_ride() - a request was sent: let the ACK that waits go with it
 * @qp: QP
 * @tx: coupling buffer of the run that has sent the request
 *
 * Context: requester lock held, not the responder's.
 */
static inline void sroce_ack_ride(struct sroce_qp *qp, struct sroce_tx *tx)
{
	/* One that is missed leaves with the next request, or when it is late */
	if (READ_ONCE(qp->resp.delay.messages))
		__sroce_ack_ride(qp, tx);
}

/**
 * sroce_ack_settle() - send the ACK that waits, and let no other wait
 * @qp: QP that ends, or is reset
 *
 * Whoever has seen a message may end the QP. The peer must know by then.
 *
 * Context: process.
 */
void sroce_ack_settle(struct sroce_qp *qp);

/* A new connection: nothing is known. Context: responder lock held. */
void sroce_ack_reset(struct sroce_ack_delay *d);

void sroce_ack_delay_init(struct sroce_ack_delay *d);

/* --- patience.c ----------------------------------------------------------- */

/**
 * sroce_patience_begin() - may a request wait for a receive work request?
 * @qp: QP that has none
 * @psn: first PSN of the request
 *
 * Whoever has brought the request puts it back into the inbox, where it is tried
 * again soon: sroce_inbox_return() or sroce_patience_keep().
 *
 * Context: responder lock held.
 * Return: false when it has waited long enough: the peer is to be told.
 */
bool sroce_patience_begin(struct sroce_qp *qp, u32 psn);

/* Keep a train from the network while one waits. Context: responder lock held. */
void sroce_patience_keep(struct sroce_qp *qp, const struct sroce_train *t);

/* The inbox is empty, and nothing waits. Context: responder lock held. */
void sroce_patience_over(struct sroce_qp *qp);

/* A new connection: nothing waits. Context: responder lock held. */
void sroce_patience_reset(struct sroce_responder *resp);

void sroce_patience_init(struct sroce_responder *resp);

/* --- responder.c ------------------------------------------------------------ */

/**
 * sroce_responder_request() - take one request of a connected QP
 * @qp: QP
 * @t: request
 *
 * Context: responder lock held. The caller runs sroce_responder_reply()
 * afterwards.
 */
void sroce_responder_request(struct sroce_qp *qp, struct sroce_train *t);

/* sroce_half.run of the responder */
bool sroce_responder_run(struct sroce_half *half);

/**
 * sroce_recv_take_for() - take the next receive work request into resp->wqe
 * @qp: QP
 * @len: bytes of a message that must fit, or the work request stays where it is
 *
 * Context: responder lock held.
 * Return: 0, -ENOENT when there is none, -EMSGSIZE when it is too short, -EINVAL
 * when it is malformed (it is taken then all the same).
 */
int sroce_recv_take_for(struct sroce_qp *qp, u32 len);

/* Likewise, however short it is */
static inline int sroce_recv_take(struct sroce_qp *qp)
{
	return sroce_recv_take_for(qp, 0);
}

/**
 * sroce_recv_look_for() - look at the next receive work request
 * @qp: QP that has taken none
 * @len: as for sroce_recv_take_for()
 *
 * One of a queue that is shared is everybody's until sroce_recv_claim(); one of the
 * QP's own is taken.
 *
 * Context: responder lock held.
 * Return: as sroce_recv_take_for().
 */
int sroce_recv_look_for(struct sroce_qp *qp, u32 len);

/*
 * Take what was looked at; false when another QP has, and this one is to look again.
 * Sets resp->srq_limit where sroce_recv_take_for() raises the event.
 */
bool sroce_recv_claim(struct sroce_qp *qp);

/* Complete the receive work request taken; @cqe has all but wr_id and qpn */
void sroce_recv_complete(struct sroce_qp *qp, struct sroce_cqe *cqe,
			 bool solicited);

/* Carry out a request that is the next in order */
void sroce_execute(struct sroce_qp *qp, struct sroce_train *t);

/* What the QP waits for was lost: NAK, and drop what is still under way */
void sroce_ask_again(struct sroce_responder *resp);

/* NAK a request that is invalid; the QP goes to ERR */
void sroce_refuse_request(struct sroce_qp *qp);

/* Complete the receive work request taken, with an error */
void sroce_recv_fail(struct sroce_qp *qp, enum ib_wc_status status);

/* Does its state let the QP take requests? */
bool sroce_takes_requests(const struct sroce_qp *qp);

/* A request has come: raise IB_EVENT_COMM_EST when that is news */
void sroce_established(struct sroce_qp *qp);

/* Does the train go on with the current message, or begin one between two? */
bool sroce_sequence_ok(const struct sroce_responder *resp,
		       const struct sroce_train *t);

/* Has every packet of the train the length that its place asks for? */
bool sroce_length_ok(const struct sroce_qp *qp, const struct sroce_train *t);

/* Is the payload what the RETH of an RDMA WRITE has announced? */
bool sroce_write_length_ok(const struct sroce_responder *resp,
			   const struct sroce_train *t);

/**
 * sroce_write_begin() - begin an RDMA WRITE
 * @qp: QP
 * @t: its first train
 * @check: bytes of the range to check now: all of it, or none when the caller is
 *	going to place all of it, which checks as well
 *
 * Context: responder lock held.
 * Return: 0; -EBADMSG when the QP does not take such a request; an errno of
 * sroce_mr_get() when the key must not be used.
 */
int sroce_write_begin(struct sroce_qp *qp, const struct sroce_train *t,
		      u32 check);

/*
 * A train of an RDMA WRITE is in place. What counts, or tells somebody, is done here
 * and not before: a train whose pages are missing comes again, or never.
 */
void sroce_write_taken(struct sroce_qp *qp, const struct sroce_train *t);

/* Copy payload to the receive work request taken, or to the region of a WRITE */
int sroce_place_sges(struct sroce_qp *qp, struct sroce_train *t);
int sroce_place_rkey(struct sroce_qp *qp, struct sroce_train *t);

/* The message that ends with @t is complete, and has a receive work request */
void sroce_message_received(struct sroce_qp *qp, const struct sroce_train *t,
			    u8 opcode, u32 len);

/* Forget the message in progress and every queued answer */
void sroce_responder_reset(struct sroce_responder *resp);

/* --- responder_reply.c ------------------------------------------------------- */

/**
 * sroce_responder_reply() - send READ responses, then the ACK or NAK owed
 * @qp: QP
 *
 * Context: responder lock held.
 * Return: true when the budget ran out before the work did.
 */
bool sroce_responder_reply(struct sroce_qp *qp);

/* Send the ACK or NAK owed, on behalf of @half. Context: responder lock held. */
void sroce_reply_ack(struct sroce_qp *qp, struct sroce_half *half,
		     struct sroce_tx *tx);

/* Queue the answer to a READ or atomic; false when there is no room */
bool sroce_job_push(struct sroce_responder *resp,
		    const struct sroce_rd_res *res);

bool sroce_job_room(const struct sroce_responder *resp);

/* Has every response to a READ or atomic left? */
static inline bool sroce_replied(const struct sroce_responder *resp)
{
	return resp->job_head == resp->job_tail;
}

/*
 * Queue an answer once more, because the peer asks for it again: before those
 * to later requests, and instead of the same one when that has not left yet.
 */
void sroce_job_repeat(struct sroce_responder *resp,
		      const struct sroce_rd_res *res);

/* --- group.c ----------------------------------------------------------------- */

/*
 * Deliveries to members of groups that one buffer of the network may cause; its first
 * datagram is delivered to all of them. Tests change it.
 */
extern u32 sroce_group_deliveries;

/* A QP ends: it is in no group any more. Context: process, may sleep. */
void sroce_group_detach_all(struct sroce_qp *qp);

/* --- uc.c -------------------------------------------------------------------- */

/* Take one request of an unreliable connection. Context: responder lock held. */
void sroce_uc_request(struct sroce_qp *qp, struct sroce_train *t);

/* --- xrc.c ------------------------------------------------------------------- */

/**
 * sroce_xrc_borrow() - use a shared receive queue, and what belongs to it
 * @qp: XRC target
 * @srqn: number of the queue
 *
 * Context: responder lock held, until after sroce_xrc_return().
 * Return: false when there is no such queue in the QP's domain.
 */
bool sroce_xrc_borrow(struct sroce_qp *qp, u32 srqn);
void sroce_xrc_return(struct sroce_qp *qp);

/* Carry out a request of an XRC target that is the next in order */
void sroce_xrc_execute(struct sroce_qp *qp, struct sroce_train *t);

/* In ERR: complete the receive work request in use */
void sroce_xrc_flush(struct sroce_qp *qp);

/* --- datagram.c -------------------------------------------------------------- */

/*
 * Send one UD work request; sets its state and status. False when it has to
 * wait for the pages of its data.
 */
bool sroce_datagram_send(struct sroce_qp *qp, struct sroce_tx *tx,
			 struct sroce_swqe *slot);

/* Take one UD packet. Context: responder lock held. */
void sroce_datagram_receive(struct sroce_qp *qp, struct sroce_train *t,
			    const struct sroce_rx_info *info);

#endif
