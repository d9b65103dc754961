/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Protection domains: which regions belong to which queues. They are only compared
 * by address.
 */
#ifndef SROCE_MEMORY_PD_H
#define SROCE_MEMORY_PD_H

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>

/**
 * struct sroce_pd - a protection domain
 * @ibpd: what ib_core knows
 * @recalls: who waits for users of a region of this domain
 */
struct sroce_pd {
	struct ib_pd ibpd;
	atomic_t recalls;
};

static inline struct sroce_pd *to_sroce_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct sroce_pd, ibpd);
}

/**
 * sroce_pd_recalled() - does somebody wait for users of a region to let go of it?
 * @ibpd: protection domain of the region; NULL: that of no region
 *
 * A train that waits at a QP of this host, for something that its process has to do,
 * holds regions of the sender's, and should not wait on when one of them is wanted
 * (@recalled of struct sroce_mr). This tells whether it is worth looking.
 *
 * Context: any. Whoever begins to wait is seen soon, and not at once.
 */
static inline bool sroce_pd_recalled(struct ib_pd *ibpd)
{
	return ibpd && atomic_read(&to_sroce_pd(ibpd)->recalls);
}

#endif
