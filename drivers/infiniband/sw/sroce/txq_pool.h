/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Between an account (txq.c) and the pool of its device (txq_pool.c), nobody else's */
#ifndef SROCE_TXQ_POOL_H
#define SROCE_TXQ_POOL_H

#include <linux/types.h>

struct sroce_txq;
struct sroce_txq_pool;

/* Module start */
void sroce_txq_pools_init(void);

/**
 * sroce_txq_pool_join() - a new account
 * @pool: of its device
 * @txq: with its socket, to which nothing has been charged
 *
 * Context: process.
 */
void sroce_txq_pool_join(struct sroce_txq_pool *pool, struct sroce_txq *txq);

/**
 * sroce_txq_pool_leave() - the QP of an account goes
 * @txq: account, which nothing is charged to any more; freed when its packets are
 *
 * What it has there counts until that is so. Context: process.
 */
void sroce_txq_pool_leave(struct sroce_txq *txq);

/**
 * sroce_txq_pool_grow() - may an account have more there than was granted?
 * @txq: account
 * @bytes: in all
 *
 * Context: bottom halves may be off; not hard interrupts.
 * Return: false when there is no more, for all or for the device.
 */
bool sroce_txq_pool_grow(struct sroce_txq *txq, int bytes);

#endif
