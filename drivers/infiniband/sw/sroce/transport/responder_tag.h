/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * SENDs to a QP whose shared receive queue matches tags: their beginning and their end.
 */
#ifndef SROCE_TRANSPORT_RESPONDER_TAG_H
#define SROCE_TRANSPORT_RESPONDER_TAG_H

#include "transport/qp.h"

/**
 * sroce_tag_read() - what are the first bytes of a message?
 * @m: filled in, but for what matching tells
 * @t: train that begins it
 *
 * Return: 0, or -EBADMSG when it wants a rendezvous that nobody can take part in.
 */
int sroce_tag_read(struct sroce_tag_msg *m, const struct sroce_train *t);

/**
 * sroce_responder_begin_tagged() - carry out the first train of a SEND
 * @qp: QP with @qp->kind->tags
 * @t: train; the next in order, as for sroce_responder_execute_send()
 *
 * Takes the buffer that the message matches, or an ordinary receive, and places the first
 * packet without, or with, the header. The rest is for sroce_responder_execute_send().
 *
 * Context: responder lock held.
 */
void sroce_responder_begin_tagged(struct sroce_qp *qp, struct sroce_train *t);

/* The SEND that ends with @t is complete, and has a receive work request */
void sroce_responder_complete_tagged(struct sroce_qp *qp, const struct sroce_train *t);

/*
 * The message that has the receive, if it is a tagged one, is not going to complete: what
 * it was counted as is undone. For the receive itself see sroce_recv_fail().
 */
void sroce_responder_drop_tagged(struct sroce_qp *qp);

/*
 * The QP begins anew, or has ended: the message that has a receive is dropped, and buffers
 * of rendezvous that it was asked for, and that it will not read, are free. Context:
 * process, or the QP's locks held.
 */
void sroce_responder_forget_tags(struct sroce_qp *qp);

#endif
