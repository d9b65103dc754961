// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder's answers to READs and atomics: two circles. One has the answers that
 * are to be sent, in the order of their requests; responder_reply.c takes them from
 * there. The other keeps the last ones, as many as the peer may have outstanding, for
 * duplicates (responder_dup.c).
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "transport/answers.h"

/* The process pays for its answers as for memory that it has pinned */
static int sroce_answers_pin(struct sroce_resp_answers *a)
{
	return sroce_pinned_charge(&a->pinned, a->nres * sizeof(*a->res) +
					       a->njobs * sizeof(*a->jobs));
}

int sroce_answers_alloc(struct sroce_resp_answers *a, u32 depth, bool user)
{
	/*
	 * One more than the peer may have outstanding: the newest duplicate. What is agreed
	 * on counts as the power of two above it, because that is what rdma_rxe makes of it.
	 */
	a->nres = roundup_pow_of_two(max(depth, 1U)) + 1;
	/*
	 * Answers to duplicates may wait beside answers to new requests. The
	 * indices of this circle run through all 32 bits.
	 */
	a->njobs = roundup_pow_of_two(2 * a->nres);
	if (user && sroce_answers_pin(a))
		return -ENOMEM;
	a->res = kcalloc(a->nres, sizeof(*a->res), GFP_KERNEL_ACCOUNT);
	a->jobs = kcalloc(a->njobs, sizeof(*a->jobs), GFP_KERNEL_ACCOUNT);
	if (a->res && a->jobs)
		return 0;
	sroce_answers_free(a);
	return -ENOMEM;
}

void sroce_answers_free(struct sroce_resp_answers *a)
{
	kfree(a->res);
	kfree(a->jobs);
	sroce_pinned_uncharge(&a->pinned);
}

void sroce_answers_reset(struct sroce_resp_answers *a)
{
	a->res_next = 0;
	a->job_head = 0;
	a->job_tail = 0;
	if (a->res)
		memset(a->res, 0, a->nres * sizeof(*a->res));
}

static struct sroce_rd_job *sroce_answers_job(const struct sroce_resp_answers *a,
					      u32 i)
{
	return &a->jobs[i % a->njobs];
}

/* The @n-th kept before the next one */
static struct sroce_rd_res *sroce_answers_kept(const struct sroce_resp_answers *a,
					       u32 n)
{
	return &a->res[(a->res_next + a->nres - n) % a->nres];
}

void sroce_answers_exchange(struct sroce_resp_answers *a,
			    struct sroce_resp_answers *other)
{
	u32 n = min(a->nres, other->nres);
	u32 i;

	/* The newest ones, oldest first */
	for (i = 0; i < n; i++)
		other->res[i] = *sroce_answers_kept(a, n - i);
	other->res_next = n % other->nres;
	for (i = a->job_head; i != a->job_tail; i++)
		*sroce_answers_job(other, i) = *sroce_answers_job(a, i);
	other->job_head = a->job_head;
	other->job_tail = a->job_tail;
	swap(*a, *other);
}

static bool sroce_answers_push(struct sroce_resp_answers *a,
			       const struct sroce_rd_res *res)
{
	if (!sroce_answers_room(a))
		return false;
	*sroce_answers_job(a, a->job_tail++) =
		(struct sroce_rd_job){ .res = *res };
	return true;
}

bool sroce_answers_add(struct sroce_resp_answers *a,
		       const struct sroce_rd_res *res)
{
	if (!sroce_answers_push(a, res))
		return false;
	a->res[a->res_next] = *res;
	a->res_next = (a->res_next + 1) % a->nres;
	return true;
}

/* Place of the first answer to be sent that begins at @psn or later */
static u32 sroce_answers_place(const struct sroce_resp_answers *a, u32 psn)
{
	u32 i = a->job_tail;

	while (i != a->job_head &&
	       sroce_psn_diff(sroce_answers_job(a, i - 1)->res.psn, psn) >= 0)
		i--;
	return i;
}

/* READs may be of half the PSNs there are, which sroce_psn_diff() cannot tell from none */
static bool sroce_answers_overlap(const struct sroce_rd_res *a,
				  const struct sroce_rd_res *b)
{
	return ((a->psn - b->psn) & SROCE_PSN_MASK) < b->npsn ||
	       ((b->psn - a->psn) & SROCE_PSN_MASK) < a->npsn;
}

void sroce_answers_repeat(struct sroce_resp_answers *a,
			  const struct sroce_rd_res *res)
{
	u32 place = sroce_answers_place(a, sroce_psn_add(res->psn, res->npsn));
	struct sroce_rd_job job = { .res = *res, .repeated = true };
	const struct sroce_rd_job *old;
	u32 i;

	if (place != a->job_head &&
	    sroce_answers_overlap(&sroce_answers_job(a, place - 1)->res, res)) {
		old = sroce_answers_job(a, --place);
		job.pressed = true;
		job.since = old->since;
		/* Nothing of it has left yet: it is the first answer still */
		job.repeated = old->repeated || old->sent;
	} else {
		if (!sroce_answers_room(a))
			return;
		for (i = a->job_tail++; i != place; i--)
			*sroce_answers_job(a, i) = *sroce_answers_job(a, i - 1);
	}
	*sroce_answers_job(a, place) = job;
}

/*
 * The newest is looked at first: PSNs come round, and an older entry with the same one
 * may be from the last time
 */
struct sroce_rd_res *sroce_answers_find(struct sroce_resp_answers *a, u32 psn)
{
	struct sroce_rd_res *res;
	u32 i;

	for (i = 1; i <= a->nres; i++) {
		res = sroce_answers_kept(a, i);
		if (res->op != SROCE_OP_NONE &&
		    ((psn - res->psn) & SROCE_PSN_MASK) < res->npsn)
			return res;
	}
	return NULL;
}
