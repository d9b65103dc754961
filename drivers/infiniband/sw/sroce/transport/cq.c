// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: the end of a message's way on either side, where
 * requester_complete.c and responder_recv.c add an entry.
 *
 * For a process the ring is the interface: it moves cons and the arm word (ring
 * header flags) itself. For kernel users both are private and the same kind of ring
 * holds the entries, each with its QP.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "lock.h"
#include "transport/cq.h"
#include "transport/run.h"
#include "turn.h"

static void sroce_cq_held_enough(struct sroce_timer *timer);

/*
 * What the ring of a kernel user holds. It wants the QP itself, whose address no
 * process may learn: none can map such a ring.
 */
struct sroce_kernel_cqe {
	struct sroce_cqe cqe;
	struct ib_qp *ibqp;
};

int sroce_cq_init(struct sroce_cq *cq, struct sroce_port *port, u32 entries)
{
	sroce_timer_init(&cq->mod_timer, sroce_cq_held_enough);
	cq->port = port;
	sroce_lock_init(&cq->lock, cq->user);
	refcount_set(&cq->users, 1);
	init_completion(&cq->idle);
	return sroce_ring_alloc(&cq->ring, entries,
				cq->user ? sizeof(struct sroce_cqe) :
					   sizeof(struct sroce_kernel_cqe),
				cq->user);
}

void sroce_cq_cleanup(struct sroce_cq *cq)
{
	/* Nobody adds completions any more, so nobody starts the timer again */
	sroce_timer_delete_sync(&cq->mod_timer);
	if (!refcount_dec_and_test(&cq->users))
		wait_for_completion(&cq->idle);
	sroce_ring_free(&cq->ring);
}

/* The consumer's index; a process may have written anything there */
static u32 sroce_cq_cons(const struct sroce_cq *cq)
{
	/*
	 * Pairs with a consumer that has read the entries before it: what overwrites
	 * them depends on this load, and so stays behind it without a barrier
	 */
	return cq->user ? READ_ONCE(cq->ring.hdr->cons) : cq->cons;
}

static bool sroce_cq_room(struct sroce_cq *cq)
{
	u32 cons = sroce_cq_cons(cq);

	WRITE_ONCE(cq->seen, cons);
	return cq->ring.index - cons <= cq->ring.mask;
}

/*
 * A queue on its way to a new ring. The completions between the consumer's index and
 * ours are copied to the same indices, a part at a time, because there may be millions.
 * Nobody takes the old ring away meanwhile, and an entry of it is overwritten only when
 * it has been consumed. @first is the consumer's index at the beginning, @next what to
 * copy next, @parts how many were copied.
 */
struct sroce_cq_move {
	struct sroce_ring ring;
	u32 first;
	u32 next;
	u32 parts;
};

/* Completions that are copied, or looked at, under the lock: 64 KiB */
#define SROCE_CQ_PART 1024

static void sroce_cq_copy(const struct sroce_cq *cq, struct sroce_cq_move *m,
			  u32 n)
{
	for (; n; n--, m->next++)
		memcpy(sroce_ring_entry(&m->ring, m->next),
		       sroce_ring_entry(&cq->ring, m->next), cq->ring.stride);
}

/* The consumer's index; if a process has moved it back, the one that it had at first */
static u32 sroce_cq_move_cons(const struct sroce_cq *cq,
			      const struct sroce_cq_move *m)
{
	u32 cons = sroce_cq_cons(cq);

	return cons - m->first > cq->ring.index - m->first ? m->first : cons;
}

/* How much is left to copy? Not what has been consumed meanwhile. Context: the lock held */
static u32 sroce_cq_move_left(const struct sroce_cq *cq, struct sroce_cq_move *m)
{
	u32 cons = sroce_cq_move_cons(cq, m);

	if (cons - m->first > m->next - m->first)
		m->next = cons;
	return cq->ring.index - m->next;
}

/* Context: the lock held */
static int sroce_cq_move_begin(const struct sroce_cq *cq,
			       struct sroce_cq_move *m)
{
	m->first = sroce_cq_cons(cq);
	m->next = m->first;
	return cq->ring.index - m->first > sroce_ring_entries(&m->ring) ||
	       cq->ring.index - m->first > sroce_ring_entries(&cq->ring) ?
	       -EINVAL : 0;
}

/* Context: the lock held, and little left to copy */
static int sroce_cq_move_end(struct sroce_cq *cq, struct sroce_cq_move *m)
{
	u32 cons = sroce_cq_move_cons(cq, m);

	if (cq->ring.index - cons > sroce_ring_entries(&m->ring))
		return -EINVAL;
	sroce_cq_copy(cq, m, cq->ring.index - m->next);
	m->ring.index = cq->ring.index;
	m->ring.hdr->prod = cq->ring.index;
	m->ring.hdr->cons = cons;
	m->ring.hdr->flags = xchg(&cq->ring.hdr->flags, SROCE_CQ_MOVED);
	swap(cq->ring, m->ring);
	return 0;
}

/*
 * Another part, without the lock. The device cannot go during a call, and a process that
 * is seldom given the processor may be kept from catching up by what others complete: so
 * there is an end after as many parts as four queues like this one have.
 */
static int sroce_cq_move_part(const struct sroce_cq *cq, struct sroce_cq_move *m)
{
	if (m->parts++ > sroce_ring_entries(&cq->ring) / SROCE_CQ_PART * 4)
		return -EBUSY;
	if (fatal_signal_pending(current))
		return -EINTR;
	sroce_cq_copy(cq, m, SROCE_CQ_PART);
	cond_resched();
	return 0;
}

static int sroce_cq_do_move(struct sroce_cq *cq, struct sroce_cq_move *m)
{
	unsigned long irq;
	int err;

	irq = sroce_lock(&cq->lock, cq->user);
	err = sroce_cq_move_begin(cq, m);
	while (!err && sroce_cq_move_left(cq, m) > SROCE_CQ_PART) {
		sroce_unlock(&cq->lock, cq->user, irq);
		err = sroce_cq_move_part(cq, m);
		irq = sroce_lock(&cq->lock, cq->user);
	}
	if (!err)
		err = sroce_cq_move_end(cq, m);
	sroce_unlock(&cq->lock, cq->user, irq);
	return err;
}

int sroce_cq_resize(struct sroce_cq *cq, struct sroce_ring *ring)
{
	struct sroce_cq_move m = { .ring = *ring };
	int err = sroce_cq_do_move(cq, &m);

	*ring = m.ring;
	return err;
}

/* --- events ------------------------------------------------------------------- */

static u32 *sroce_cq_arm_word(struct sroce_cq *cq)
{
	return cq->user ? &cq->ring.hdr->flags : &cq->armed;
}

static bool sroce_cq_is_armed(struct sroce_cq *cq, bool solicited)
{
	u32 armed;

	/* The application arms, then reads prod; we store prod, then read its word */
	smp_mb();
	armed = READ_ONCE(*sroce_cq_arm_word(cq));
	return armed != SROCE_CQ_IDLE &&
	       (armed != SROCE_CQ_ARM_SOLICITED || solicited);
}

/*
 * Disarm the queue. True when its handler is to be called, and is not going to be
 * already: then the queue is held until it was.
 */
static bool sroce_cq_notify(struct sroce_cq *cq)
{
	if (xchg(sroce_cq_arm_word(cq), SROCE_CQ_IDLE) == SROCE_CQ_IDLE)
		return false;
	if (cq->calling == SROCE_CQ_CALLED)
		cq->calling = SROCE_CQ_CALLED_AGAIN;
	if (cq->calling != SROCE_CQ_SILENT)
		return false;
	cq->calling = SROCE_CQ_QUEUED;
	refcount_inc(&cq->users);
	return true;
}

void sroce_cq_handler_begins(struct sroce_cq *cq)
{
	unsigned long irq = sroce_lock(&cq->lock, cq->user);

	cq->calling = SROCE_CQ_CALLED;
	sroce_unlock(&cq->lock, cq->user, irq);
}

bool sroce_cq_handler_ends(struct sroce_cq *cq)
{
	unsigned long irq = sroce_lock(&cq->lock, cq->user);
	bool again = cq->calling == SROCE_CQ_CALLED_AGAIN;

	cq->calling = again ? SROCE_CQ_QUEUED : SROCE_CQ_SILENT;
	sroce_unlock(&cq->lock, cq->user, irq);
	return again;
}

/* True when the event is to wait for more completions */
static bool sroce_cq_hold(struct sroce_cq *cq)
{
	if (++cq->mod_held >= cq->mod_count) {
		cq->mod_held = 0;
		/* Where the timer has just fired, it finds that @mod_held is 0 */
		sroce_timer_delete(&cq->mod_timer);
		return false;
	}
	if (cq->mod_held == 1)
		sroce_timer_start(&cq->mod_timer,
				  ktime_get_ns() + cq->mod_period * NSEC_PER_USEC);
	return true;
}

static bool sroce_cq_store(struct sroce_cq *cq, struct ib_qp *ibqp,
			   const struct sroce_cqe *cqe, bool solicited)
{
	void *entry = sroce_ring_entry(&cq->ring, cq->ring.index);

	memcpy(entry, cqe, sizeof(*cqe));
	if (!cq->user)
		((struct sroce_kernel_cqe *)entry)->ibqp = ibqp;
	sroce_ring_produced(&cq->ring, 1);
	if (!sroce_cq_is_armed(cq, solicited))
		return false;
	if (cq->mod_count && cqe->status == IB_WC_SUCCESS && sroce_cq_hold(cq))
		return false;
	return sroce_cq_notify(cq);
}

static void sroce_cq_held_enough(struct sroce_timer *timer)
{
	struct sroce_cq *cq = container_of(timer, struct sroce_cq, mod_timer);
	bool notify = false;
	unsigned long irq;

	irq = sroce_lock(&cq->lock, cq->user);
	if (cq->mod_held) {
		cq->mod_held = 0;
		notify = sroce_cq_notify(cq);
	}
	sroce_unlock(&cq->lock, cq->user, irq);
	if (notify)
		sroce_cq_queue(cq);
}

void sroce_cq_moderate(struct sroce_cq *cq, u16 count, u16 period)
{
	unsigned long irq = sroce_lock(&cq->lock, cq->user);

	cq->mod_count = count > 1 && period ? count : 0;
	cq->mod_period = period;
	/* Completions that wait by the old rule are announced at once */
	if (cq->mod_held)
		sroce_timer_start(&cq->mod_timer, 0);
	sroce_unlock(&cq->lock, cq->user, irq);
}

static void sroce_cq_overrun(struct sroce_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->ibcq,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

bool sroce_cq_add(struct sroce_cq *cq, struct ib_qp *ibqp,
		  struct sroce_cqe *cqe, bool solicited)
{
	bool overran = false;
	bool notify = false;
	unsigned long irq;
	bool ok = false;

	sroce_turn_spend(SROCE_TURN_CQE);
	cqe->qpn = ibqp->qp_num;
	cqe->timestamp = cq->timestamp ? ktime_get_ns() : 0;
	irq = sroce_lock(&cq->lock, cq->user);
	if (!cq->overrun && sroce_cq_room(cq)) {
		notify = sroce_cq_store(cq, ibqp, cqe, solicited);
		ok = true;
	} else if (cq->ignore_overrun) {
		ok = true;
	} else if (!cq->overrun) {
		cq->overrun = true;
		overran = true;
	}
	sroce_unlock(&cq->lock, cq->user, irq);
	if (notify)
		sroce_cq_queue(cq);
	if (overran)
		sroce_cq_overrun(cq);
	return ok;
}

bool sroce_cq_add_op(struct sroce_cq *cq, struct sroce_cqe *cqe)
{
	bool notify = false;
	unsigned long irq;
	bool room;

	cqe->qpn = SROCE_QPN_NONE;
	cqe->timestamp = cq->timestamp ? ktime_get_ns() : 0;
	irq = sroce_lock(&cq->lock, cq->user);
	room = !cq->overrun && sroce_cq_room(cq);
	if (room)
		notify = sroce_cq_store(cq, NULL, cqe, cqe->status != IB_WC_SUCCESS);
	sroce_unlock(&cq->lock, cq->user, irq);
	if (notify)
		sroce_cq_queue(cq);
	return room || cq->ignore_overrun;
}

/* --- kernel users --------------------------------------------------------------- */

/* The ABI's flags are numbered as user space does, where INV is another bit */
static int sroce_cq_wc_flags(u32 flags)
{
	return (flags & (SROCE_CQE_GRH | SROCE_CQE_IMM | SROCE_CQE_SMAC |
			 SROCE_CQE_VLAN | SROCE_CQE_NETWORK_HDR)) |
	       (flags & SROCE_CQE_INV ? IB_WC_WITH_INVALIDATE : 0);
}

static_assert(SROCE_NETWORK_ROCE_V1 == (int)RDMA_NETWORK_ROCE_V1);
static_assert(SROCE_NETWORK_IPV4 == (int)RDMA_NETWORK_IPV4);
static_assert(SROCE_NETWORK_IPV6 == (int)RDMA_NETWORK_IPV6);

/* Numbers of the ABI's opcodes are those of ib_wc_opcode */
static void sroce_cq_fill_wc(const struct sroce_kernel_cqe *entry,
			     struct ib_wc *wc)
{
	const struct sroce_cqe *cqe = &entry->cqe;

	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->qp = entry->ibqp;
	if (cqe->flags & SROCE_CQE_INV)
		wc->ex.invalidate_rkey = cqe->invalidate_rkey;
	else
		wc->ex.imm_data = cqe->imm_data;
	wc->src_qp = cqe->src_qp;
	wc->slid = 0;
	wc->wc_flags = sroce_cq_wc_flags(cqe->flags);
	wc->pkey_index = cqe->pkey_index;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
	wc->port_num = 1;
	memcpy(wc->smac, cqe->smac, sizeof(wc->smac));
	wc->vlan_id = cqe->vlan_id;
	wc->network_hdr_type = cqe->network_hdr_type;
}

int sroce_cq_poll(struct sroce_cq *cq, int n, struct ib_wc *wc)
{
	const struct sroce_kernel_cqe *entry;
	unsigned long irq;
	int got = 0;

	irq = sroce_lock(&cq->lock, cq->user);
	while (got < n && cq->cons != cq->ring.index) {
		entry = sroce_ring_entry(&cq->ring, cq->cons++);
		/* qpn 0: the QP is gone */
		if (entry->cqe.qpn)
			sroce_cq_fill_wc(entry, &wc[got++]);
	}
	sroce_unlock(&cq->lock, cq->user, irq);
	return got;
}

int sroce_cq_arm(struct sroce_cq *cq, enum ib_cq_notify_flags flags)
{
	u32 want = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
		   SROCE_CQ_ARM_SOLICITED : SROCE_CQ_ARM_ANY;
	unsigned long irq;
	int missed;

	irq = sroce_lock(&cq->lock, cq->user);
	cq->armed = max(cq->armed, want);
	missed = (flags & IB_CQ_REPORT_MISSED_EVENTS) &&
		 cq->cons != cq->ring.index;
	sroce_unlock(&cq->lock, cq->user, irq);
	return missed;
}

/*
 * Look at some entries from *@i on, and move that on. Context: the lock held.
 * Return: true when there are more before @end.
 */
static bool sroce_cq_forget_part(struct sroce_cq *cq, const struct ib_qp *ibqp,
				 u32 *i, u32 end)
{
	struct sroce_cqe *cqe;
	u32 n;

	if ((s32)(cq->cons - *i) > 0)
		*i = cq->cons;
	for (n = 0; n < SROCE_CQ_PART && (s32)(end - *i) > 0; n++, (*i)++) {
		cqe = sroce_ring_entry(&cq->ring, *i);
		if (cqe->qpn == ibqp->qp_num)
			cqe->qpn = 0;
	}
	return (s32)(end - *i) > 0;
}

void sroce_cq_forget(struct sroce_cq *cq, const struct ib_qp *ibqp)
{
	unsigned long irq;
	bool more;
	u32 i, end;

	irq = sroce_lock(&cq->lock, cq->user);
	i = cq->cons;
	end = cq->ring.index;
	sroce_unlock(&cq->lock, cq->user, irq);
	do {
		irq = sroce_lock(&cq->lock, cq->user);
		more = sroce_cq_forget_part(cq, ibqp, &i, end);
		sroce_unlock(&cq->lock, cq->user, irq);
		cond_resched();
	} while (more);
}
