/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * XRC targets: around the responder, a shared receive queue to use.
 */
#ifndef SROCE_TRANSPORT_XRC_H
#define SROCE_TRANSPORT_XRC_H

#include "transport/qp.h"

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

/**
 * sroce_xrc_borrow_again() - use the queue of the message that has begun
 * @qp: XRC target
 *
 * Context: as for sroce_xrc_borrow().
 * Return: false when that queue has gone, whoever has its number now.
 */
bool sroce_xrc_borrow_again(struct sroce_qp *qp);

/* Carry out a request of an XRC target that is the next in order */
void sroce_xrc_execute(struct sroce_qp *qp, struct sroce_train *t);

/* In ERR: complete the receive work request in use */
void sroce_xrc_flush(struct sroce_qp *qp);

#endif
