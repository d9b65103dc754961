/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QP numbers: what a packet names its QP by.
 */
#ifndef SROCE_TRANSPORT_NUMBER_H
#define SROCE_TRANSPORT_NUMBER_H

#include "transport/qp.h"

/* The permutation of 24 bit numbers behind QP numbers, and back */
u32 sroce_qpn_from_index(u32 index);
u32 sroce_qpn_to_index(u32 qpn);

/**
 * sroce_number_take() - keep the next count whose number a QP may have
 * @next: the count to begin at; moved on
 * @index: the count; nothing is found there
 *
 * Context: process.
 * Return: 0, -EBUSY when all are taken, or -ENOMEM.
 */
int sroce_number_take(u32 *next, u32 *index);

/* A count is free. Context: process. */
void sroce_number_give(u32 index);

/**
 * sroce_qp_add_number() - give a QP a number and put it into the table
 * @qp: QP, complete: packets for it are handled from here on
 *
 * Context: process.
 * Return: 0, -ENOSPC when there are 2^24 QPs, or -ENOMEM.
 */
int sroce_qp_add_number(struct sroce_qp *qp);

/* Take a QP out of the table. Context: process. */
void sroce_qp_remove_number(struct sroce_qp *qp);

/**
 * sroce_qp_find_next() - go through all QPs
 * @index: position, 0 at first; moved on
 *
 * Context: any.
 * Return: a QP, held, or NULL at the end.
 */
struct sroce_qp *sroce_qp_find_next(unsigned long *index);

void sroce_numbers_start(void);
void sroce_numbers_stop(void);

#endif
