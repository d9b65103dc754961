/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * READs, atomics and FLUSH: what responder.c has carried out.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_READ_H
#define SROCE_TRANSPORT_RESPONDER_READ_H

#include "transport/qp.h"

/**
 * sroce_responder_execute_read() - take a READ
 * @qp: QP of a type that is acknowledged
 * @t: request; the next in order, and between two messages
 *
 * Queues the answer, and keeps it for duplicates. Where something is wrong the
 * verdict says so (see responder_verdict.h). A request that is more than was agreed
 * on is dropped.
 *
 * Context: responder lock held.
 */
void sroce_responder_execute_read(struct sroce_qp *qp, struct sroce_train *t);

/*
 * Likewise, and carry it out: a compare and swap, or a fetch and add. The verdict may
 * also be that the page is being brought in.
 */
void sroce_responder_execute_atomic(struct sroce_qp *qp, struct sroce_train *t);

/* ... an ATOMIC WRITE (IBA A19) */
void sroce_responder_execute_atomic_write(struct sroce_qp *qp,
					  struct sroce_train *t);

/* ... a FLUSH (IBA A19), which waits for no page */
void sroce_responder_execute_flush(struct sroce_qp *qp, struct sroce_train *t);

#endif
