/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Types of QPs: what sets one apart from the others.
 */
#ifndef SROCE_TRANSPORT_KIND_H
#define SROCE_TRANSPORT_KIND_H

#include "transport/qp.h"

/* What is about to be made by sroce_qp_create() */
const struct sroce_qp_kind *sroce_qp_kind(const struct ib_qp_init_attr *init);

#endif
