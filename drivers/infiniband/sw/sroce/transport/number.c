// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * QP numbers, by which doorbells, packets and senders of this host find a QP.
 *
 * A peer must not be able to guess the number of somebody else's QP from its
 * own (ReDMArk, USENIX Security 2021, vulnerability V5), but a table by random
 * numbers is mostly holes: each QP would have a node of the tree for itself.
 * So QPs are counted, and the count is scrambled by a secret permutation of the
 * 24 bit numbers: a Feistel network of four rounds, each with a table of random numbers
 * for its function, which whoever knows numbers of his own learns little of.
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

static u16 sroce_secret[SROCE_ROUNDS][BIT(SROCE_HALF_BITS)] __ro_after_init;

static u32 sroce_qpn_round(u32 half, int i)
{
	/* A process may name any number, and the CPU go on before that has been checked */
	return sroce_secret[i][half & SROCE_HALF_MASK] & SROCE_HALF_MASK;
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

/* No QP gets the numbers of QP 0, QP 1 and multicast */
static bool sroce_qpn_is_special(u32 qpn)
{
	return qpn == 0 || qpn == SROCE_QPN_GSI || qpn == SROCE_QPN_MULTICAST;
}

/*
 * A count whose number is special is kept when it is met, and not from the beginning:
 * such counts are large, and would make the tree as high as it can be for every look-up.
 */
int sroce_number_take(u32 *next, u32 *index)
{
	int err;

	do {
		err = xa_alloc_cyclic(&sroce_qps, index, NULL,
				      XA_LIMIT(0, SROCE_QPN_MASK), next,
				      GFP_KERNEL_ACCOUNT);
	} while (err >= 0 && sroce_qpn_is_special(sroce_qpn_from_index(*index)));
	return err < 0 ? err : 0;
}

void sroce_number_give(u32 index)
{
	xa_erase(&sroce_qps, index);
}

int sroce_qp_add_number(struct sroce_qp *qp)
{
	u32 index;
	int err;

	err = sroce_number_take(&sroce_qps_next, &index);
	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	qp->qpn = sroce_qpn_from_index(index);
	/* In the place of what has been taken, for which no memory is needed */
	xa_store(&sroce_qps, index, qp, GFP_KERNEL_ACCOUNT);
	return 0;
}

void sroce_qp_remove_number(struct sroce_qp *qp)
{
	sroce_number_give(sroce_qpn_to_index(qp->qpn));
}

void __init sroce_numbers_start(void)
{
	get_random_bytes(sroce_secret, sizeof(sroce_secret));
}

void sroce_numbers_stop(void)
{
	xa_destroy(&sroce_qps);
}
