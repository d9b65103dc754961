/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The end of what was sent is asked after when no answer comes for about two round
 * trips.
 */
#ifndef SROCE_TRANSPORT_PROBE_H
#define SROCE_TRANSPORT_PROBE_H

#include "transport/qp.h"

/* sroce_probe_arm() where it is switched on */
u64 sroce_probe_plan(struct sroce_qp *qp, u64 now);

/**
 * sroce_probe_arm() - the wait for an answer begins
 * @qp: QP with something in flight
 * @now: in ns
 *
 * Context: requester lock held.
 * Return: when the timer is to fire for it; U64_MAX: not at all.
 */
static inline u64 sroce_probe_arm(struct sroce_qp *qp, u64 now)
{
	qp->req.probe.at = 0;
	if (!READ_ONCE(qp->port->recovery.adp_retrans_en))
		return U64_MAX;
	return sroce_probe_plan(qp, now);
}

/* What is in flight is about to be sent again, or was acknowledged. Context: as above */
static inline void sroce_probe_cancel(struct sroce_requester *req)
{
	req->probe.at = 0;
	req->probe.back = false;
}

/**
 * sroce_probe_look() - the timer has fired
 * @qp: QP whose deadline has not passed
 * @now: in ns
 *
 * When it is time, the cursor goes back to the last packet, and the requester runs soon.
 *
 * Context: requester lock held.
 * Return: when the timer is to fire again for this; U64_MAX: not at all.
 */
u64 sroce_probe_look(struct sroce_qp *qp, u64 now);

#endif
