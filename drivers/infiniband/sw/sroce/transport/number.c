// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * QP numbers, by which doorbells, packets and senders of this host find a QP.
 *
 * A peer must not be able to guess the number of somebody else's QP from its
 * own (ReDMArk, USENIX Security 2021, vulnerability V5), but a table by random
 * numbers is mostly holes: each QP would have a node of the tree for itself.
 * So QPs are counted, and the count is scrambled by a secret permutation of the
 * 24 bit numbers (a Feistel network of four rounds).
 */
#include <linux/random.h>
#include <linux/xarray.h>

#include "transport/number.h"

#define SROCE_ROUNDS 4
#define SROCE_HALF_BITS 12
#define SROCE_HALF_MASK (BIT(SROCE_HALF_BITS) - 1)

/* All QPs but QP 1, by their count (sroce_qpn_to_index()) */
static DEFINE_XARRAY_ALLOC(sroce_qps);
static u32 sroce_qps_next;

static u32 sroce_secret[SROCE_ROUNDS] __ro_after_init;

/* The round function: of a product the upper bits depend on all bits of the factors */
static u32 sroce_qpn_round(u32 half, int i)
{
	return (half + 1) * sroce_secret[i] >> (32 - SROCE_HALF_BITS);
}

u32 sroce_qpn_from_index(u32 index)
{
	u32 left = index >> SROCE_HALF_BITS, right = index & SROCE_HALF_MASK;
	int i;

	for (i = 0; i < SROCE_ROUNDS; i++) {
		left ^= sroce_qpn_round(right, i);
		swap(left, right);
	}
	return left << SROCE_HALF_BITS | right;
}

u32 sroce_qpn_to_index(u32 qpn)
{
	u32 left = qpn >> SROCE_HALF_BITS, right = qpn & SROCE_HALF_MASK;
	int i;

	for (i = SROCE_ROUNDS - 1; i >= 0; i--) {
		swap(left, right);
		left ^= sroce_qpn_round(right, i);
	}
	return left << SROCE_HALF_BITS | right;
}

static struct sroce_qp *sroce_qp_get_at(u32 index)
{
	struct sroce_qp *qp;

	rcu_read_lock();
	qp = xa_load(&sroce_qps, index);
	if (qp && !refcount_inc_not_zero(&qp->refs))
		qp = NULL;
	rcu_read_unlock();
	return qp;
}

struct sroce_qp *sroce_qp_find(u32 qpn)
{
	if (qpn > SROCE_QPN_MASK)
		return NULL;
	return sroce_qp_get_at(sroce_qpn_to_index(qpn));
}

struct sroce_qp *sroce_qp_find_next(unsigned long *index)
{
	struct sroce_qp *qp;

	while (xa_find(&sroce_qps, index, SROCE_QPN_MASK, XA_PRESENT)) {
		/* Looked up once more, because nothing holds the entry */
		qp = sroce_qp_get_at((*index)++);
		if (qp)
			return qp;
	}
	return NULL;
}

int sroce_qp_add_number(struct sroce_qp *qp)
{
	u32 index;
	int err;

	err = xa_alloc_cyclic(&sroce_qps, &index, qp,
			      XA_LIMIT(0, SROCE_QPN_MASK), &sroce_qps_next,
			      GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	qp->qpn = sroce_qpn_from_index(index);
	return 0;
}

void sroce_qp_remove_number(struct sroce_qp *qp)
{
	xa_erase(&sroce_qps, sroce_qpn_to_index(qp->qpn));
}

/* No other QP gets the numbers of QP 0, QP 1 and multicast */
static int sroce_numbers_reserve(void)
{
	static const u32 special[] = { 0, SROCE_QPN_GSI, SROCE_QPN_MULTICAST };
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(special) && !err; i++)
		err = xa_reserve(&sroce_qps, sroce_qpn_to_index(special[i]),
				 GFP_KERNEL);
	return err;
}

int __init sroce_numbers_start(void)
{
	int err;

	get_random_bytes(sroce_secret, sizeof(sroce_secret));
	err = sroce_numbers_reserve();
	if (err)
		sroce_numbers_stop();
	return err;
}

void sroce_numbers_stop(void)
{
	xa_destroy(&sroce_qps);
}
