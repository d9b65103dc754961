// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How late packets are that were overtaken.
 *
 * What is asked for at once and was only late comes twice. Whoever has seen that asks later from
 * then on: in about twice the time that it took, and no later than in two milliseconds. That
 * becomes shorter by and by as long as packets take less. When what is missing does not come by
 * itself so many times in a row, it is asked for at once again.
 *
 * hold.c has this of requests, early.c of responses.
 */
#include "transport/internal.h"
#include "transport/lateness.h"

static void sroce_lateness_learn(struct sroce_qp *qp, struct sroce_lateness *l, u64 took, u64 least)
{
	sroce_qp_count(qp, SROCE_CNT_RX_REORDERED, 1);
	l->vain = 0;
	l->wait = min(max(2 * took, least), SROCE_LATE_MOST_NS);
}

void sroce_lateness_by_itself(struct sroce_qp *qp, struct sroce_lateness *l, u64 took)
{
	sroce_lateness_learn(qp, l, took, l->wait - l->wait / 16);
}

void sroce_lateness_rest(struct sroce_lateness *l, u64 took)
{
	l->vain = 0;
	l->wait = min(max(2 * took, l->wait), SROCE_LATE_MOST_NS);
}

void sroce_lateness_asked(struct sroce_lateness *l, u32 psn, u64 took)
{
	if (l->asked && l->newest && took <= l->took)
		return;
	l->asked = true;
	l->newest = true;
	l->psn = psn;
	l->took = took;
}

void sroce_lateness_asked_in_vain(struct sroce_qp *qp, struct sroce_lateness *l)
{
	l->asked = false;
	/* So late that to wait for such a packet would cost more than to ask for it */
	if (l->took < SROCE_LATE_MOST_NS)
		sroce_lateness_learn(qp, l, l->took, l->wait);
}

void sroce_lateness_in_vain(struct sroce_lateness *l)
{
	if (++l->vain < SROCE_LATE_VAIN_MOST)
		return;
	l->wait = 0;
	l->vain = 0;
}
