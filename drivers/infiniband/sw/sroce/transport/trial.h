/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whether a larger window makes a stream faster, where nothing is lost.
 */
#ifndef SROCE_TRANSPORT_TRIAL_H
#define SROCE_TRANSPORT_TRIAL_H

#include "transport/qp.h"

/* A round trip begins to be measured. Context: requester lock held, as for all of these. */
static inline void sroce_trial_begin(struct sroce_requester *req)
{
	req->trial.una = req->una_psn;
}

/**
 * sroce_trial_pays() - may the window become larger?
 * @req: requester, whose measured round trip ends now
 * @ns: that round trip, not 0
 *
 * Return: true as long as more has arrived in the same time since it was made larger, or
 * that may still show.
 */
bool sroce_trial_pays(struct sroce_requester *req, u64 ns);

/**
 * sroce_trial_window() - the window that is enough
 * @req: requester, whose window has not become larger in this round trip
 * @least: from where a new trial begins, in packets
 *
 * Return: packets: the present window, or a smaller one, if more was tried in vain.
 */
u32 sroce_trial_window(struct sroce_requester *req, u32 least);

#endif
