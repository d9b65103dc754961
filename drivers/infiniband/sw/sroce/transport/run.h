/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which half of a QP runs next on this CPU, and for how long: every entry into the
 * transport (doorbell, packet, timer) ends there.
 */
#ifndef SROCE_TRANSPORT_RUN_H
#define SROCE_TRANSPORT_RUN_H

#include "transport/qp.h"

/* Trains that one half sends before it lets others run */
#define SROCE_SEND_BUDGET 16

/* Work requests that one half flushes before it lets others run */
#define SROCE_FLUSH_BUDGET 256

/**
 * sroce_half_queue() - have a half run soon on this CPU
 * @half: requester or responder of a QP the caller holds
 *
 * For callers that come through sroce_run_pending() before they turn bottom
 * halves on again, as functions of timers do. Context: bottom halves off.
 */
void sroce_half_queue(struct sroce_half *half);

/* The same from anywhere: a tasklet runs it. Context: any. */
void sroce_half_kick(struct sroce_half *half);

/*
 * Have a completion queue's handler called, once no lock is held. It goes on this CPU's list,
 * or on that of the queue's vector: for callers that come through sroce_run_pending() or
 * sroce_run_soon() before they turn bottom halves on again. Context: bottom halves off.
 */
void sroce_cq_queue(struct sroce_cq *cq);

/**
 * sroce_run_pending() - run what was queued on this CPU
 *
 * Context: bottom halves off, no lock of a QP or completion queue held.
 */
void sroce_run_pending(void);

/*
 * Have a tasklet do that, when there is something: halves or completion handlers. For calls of
 * a process that queue something and run nothing. Context: bottom halves off.
 */
void sroce_run_soon(void);

/*
 * Lock a half, run it, unlock, run what that queued; for a kernel user's QP
 * without completion handlers, which are called by a tasklet: the caller may be
 * in one of the user's calls. It is run later, and perhaps on another CPU, when the
 * turn is over or what it sends from here would overtake what it has sent there: see
 * sroce_half_run_here(). Context: BHs may be on.
 */
void sroce_half_run(struct sroce_half *half);

/**
 * sroce_half_run_here() - run a half, and not where it has sent before
 * @half: requester or responder of a QP the caller holds
 * @owes: has it something to send? It is asked with the half's lock held; as long as
 *	that is so, what it has sent elsewhere is waited for, but for some milliseconds
 *	only. NULL: it has not, or nobody minds the order
 *
 * For those who need what it does by the time that they go on.
 *
 * Context: process, no locks held.
 */
void sroce_half_run_here(struct sroce_half *half,
			 bool (*owes)(const struct sroce_half *half));

/*
 * The same for the doorbell of a process, which goes on for some turns with what the
 * first one leaves. Context: process, no locks held.
 */
void sroce_half_run_doorbell(struct sroce_half *half);

/* Run here what is on the list of a CPU, as when that goes off-line. For tests. */
void sroce_run_for_cpu(unsigned int cpu);

/* Module start */
void sroce_runqs_start(void);
/* Module end: no QP is left, and nobody queues anything */
void sroce_runqs_stop(void);

#endif
