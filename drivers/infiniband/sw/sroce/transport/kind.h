/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Types of QPs: what sets one apart from the others.
 */
#ifndef SROCE_TRANSPORT_KIND_H
#define SROCE_TRANSPORT_KIND_H

#include "transport/qp.h"

/* The row of a type that sroce_qp_create() takes */
const struct sroce_qp_kind *sroce_qp_kind(enum ib_qp_type type);

#endif
