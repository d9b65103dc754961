// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Bringing pages of memory on demand in: for whom, how many at once, and who waits.
 *
 * A page may be a long time coming, or not come at all: it may belong to a file
 * system in user space that does not answer, or be awaited from a userfaultfd that
 * nobody reads. So nobody but those who want such a page may have to wait for it:
 *
 * - Each process has SROCE_PAGER_SLOTS faults under way and its own queue for more.
 *   All processes of a user have SROCE_USER_SLOTS together: see workers.h.
 * - A fault holds what it needs until it ends, and nothing else: the table of the
 *   region's pages, but neither the region, nor a QP, nor the device. When these go,
 *   those who wait are told so, and the fault is left to itself.
 * - Advice is less than a fault: it waits for all of them, and has few of the slots.
 * - A fault keeps the process's memory: with it the mappings of its rings, and with
 *   those the file that the end of the process would close. Therefore faults that
 *   nobody but they themselves keep the memory for are broken off.
 *
 * Not every wait can be broken off (a file system may not allow it). What is left of
 * a process then is its memory and what it had of our device, until that page comes
 * or the device goes.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "memory/implicit.h"
#include "memory/odp_table.h"
#include "memory/pager.h"
#include "memory/workers.h"

/* How often we look whether there is still a process behind its faults */
#define PAGER_WATCH HZ

/* Wants that are taken off under one hold of the lock when their region is going */
#define PAGER_BATCH 64

/* Pause before a fault that has not come about is begun again: time for others to let go */
#define PAGER_PAUSE_MS 20

/* That it finds no memory is no error for about a second: others are being killed for it */
#define PAGER_NO_MEMORY (MSEC_PER_SEC / PAGER_PAUSE_MS)

/**
 * struct sroce_pager_slot - a fault under way
 * @work: does it
 * @pager: process
 * @odp: region's pages, held; NULL: the slot is free
 * @want: whoever waits; NULL: nobody does any more
 * @at: what is wanted, as in struct sroce_want, which may be gone
 * @len: likewise
 * @ahead: likewise
 * @how: likewise
 * @hint: likewise
 * @task: worker, while its wait may be broken off and it may keep the process's memory
 */
struct sroce_pager_slot {
	struct work_struct work;
	struct sroce_pager *pager;
	struct sroce_odp *odp;
	struct sroce_want *want;
	u64 at;
	u64 len;
	u64 ahead;
	enum sroce_odp_fault how;
	bool hint;
	struct task_struct *task;
};

/**
 * struct sroce_pager - faults of one process
 * @node: in sroce_pagers
 * @refs: regions on demand; under sroce_pagers_mutex
 * @mm: the process's memory
 * @workers: of the user who has made it
 * @turn: to have one of them
 * @advices: that nobody waits for
 * @tables: of implicit regions, beyond those that each has of its own
 * @lock: for all below; with bottom halves off, taken inside the lock of a QP's half
 * @queue: wants that wait for a slot
 * @hints: likewise, those that are advice
 * @hint_slots: slots that have such
 * @watch: looks whether nothing but faults keeps the process's memory
 * @ending: tables that have yet to end
 * @n_ending: those, and the one that is being ended
 * @end: ends them, as long as there are any
 * @settled: for who waits until there are none
 * @slots: faults
 */
struct sroce_pager {
	struct list_head node;
	unsigned int refs;
	struct mm_struct *mm;
	struct sroce_workers *workers;
	struct sroce_worker_turn turn;
	atomic_t advices;
	atomic_t tables;
	spinlock_t lock; /* see above */
	struct list_head queue;
	struct list_head hints;
	unsigned int hint_slots;
	struct delayed_work watch;
	struct list_head ending;
	unsigned int n_ending;
	struct work_struct end;
	wait_queue_head_t settled;
	struct sroce_pager_slot slots[SROCE_PAGER_SLOTS];
};

static DEFINE_MUTEX(sroce_pagers_mutex);
static LIST_HEAD(sroce_pagers);

/* --- a fault ----------------------------------------------------------------- */

static int sroce_pager_slot_bring(const struct sroce_pager_slot *slot)
{
	int err = -EFAULT;

	/* First with what will be wanted next, if there is such memory */
	if (slot->ahead > slot->len)
		err = sroce_odp_bring(slot->odp, slot->at, slot->ahead,
				      slot->how, slot->hint);
	if (err && err != -EINTR)
		err = sroce_odp_bring(slot->odp, slot->at, slot->len,
				      slot->how, slot->hint);
	return err;
}

/*
 * From here on a fatal signal that sroce_pager_slot_break_off() sends ends a wait.
 * Return: false when nobody waits for these pages, and it is not to begin.
 */
static bool sroce_pager_slot_open(struct sroce_pager_slot *slot)
{
	bool wanted;

	allow_kernel_signal(SIGKILL);
	spin_lock_bh(&slot->pager->lock);
	wanted = slot->want;
	if (wanted)
		slot->task = current;
	spin_unlock_bh(&slot->pager->lock);
	if (!wanted)
		disallow_signal(SIGKILL);
	return wanted;
}

/* End of what sroce_pager_slot_open() began; a signal that came too late is forgotten */
static void sroce_pager_slot_shut(struct sroce_pager_slot *slot)
{
	spin_lock_bh(&slot->pager->lock);
	slot->task = NULL;
	spin_unlock_bh(&slot->pager->lock);
	disallow_signal(SIGKILL);
}

/* Context: the pager's lock held */
static void sroce_pager_slot_break_off(struct sroce_pager_slot *slot)
{
	if (slot->task)
		send_sig(SIGKILL, slot->task, 1);
}

static void sroce_pager_start(struct sroce_pager *pager);

static void sroce_pager_slot_end(struct sroce_pager_slot *slot, int err)
{
	struct sroce_pager *pager = slot->pager;
	struct sroce_odp *odp = slot->odp;
	struct sroce_want *want;

	spin_lock_bh(&pager->lock);
	want = slot->want;
	if (want) {
		want->pending = false;
		list_del(&want->mate);
	}
	slot->want = NULL;
	slot->odp = NULL;
	pager->hint_slots -= slot->hint;
	sroce_worker_give(pager->workers);
	sroce_pager_start(pager);
	spin_unlock_bh(&pager->lock);
	if (want)
		want->done(want, err);
	/* The slot goes with it if this was the process's last region */
	sroce_odp_put(odp);
}

static void sroce_pager_slot_work(struct work_struct *work)
{
	struct sroce_pager_slot *slot = container_of(work,
						     struct sroce_pager_slot,
						     work);
	unsigned int tries = PAGER_NO_MEMORY;
	bool again = true;
	int err = -EINTR;

	while (again && sroce_pager_slot_open(slot)) {
		err = sroce_pager_slot_bring(slot);
		sroce_pager_slot_shut(slot);
		again = err == -EINTR || (err == -ENOMEM && tries--);
		if (again)
			msleep(PAGER_PAUSE_MS);
	}
	sroce_pager_slot_end(slot, err);
}

/* --- the queue of a process ----------------------------------------------------- */

static struct sroce_pager_slot *
sroce_pager_unused_slot(struct sroce_pager *pager)
{
	unsigned int i;

	for (i = 0; i < SROCE_PAGER_SLOTS; i++)
		if (!pager->slots[i].odp)
			return &pager->slots[i];
	return NULL;
}

/* The want whose turn it is, or NULL. Context: the pager's lock held. */
static struct sroce_want *sroce_pager_next(struct sroce_pager *pager)
{
	struct sroce_want *want;

	want = list_first_entry_or_null(&pager->queue, struct sroce_want, node);
	if (want || pager->hint_slots == SROCE_PAGER_HINT_SLOTS)
		return want;
	return list_first_entry_or_null(&pager->hints, struct sroce_want, node);
}

static void sroce_pager_slot_begin(struct sroce_pager_slot *slot,
				   struct sroce_want *want)
{
	list_del(&want->node);
	want->slot = slot;
	slot->want = want;
	slot->odp = want->odp;
	sroce_odp_hold(slot->odp);
	slot->at = want->at;
	slot->len = want->len;
	slot->ahead = want->ahead;
	slot->how = want->how;
	slot->hint = want->hint;
	slot->pager->hint_slots += slot->hint;
	sroce_worker_run(slot->pager->workers, &slot->work);
}

/*
 * Begin as much as there are slots for; when there is no worker to be had, we are
 * called again. Context: the pager's lock held.
 */
static void sroce_pager_start(struct sroce_pager *pager)
{
	struct sroce_pager_slot *slot;
	struct sroce_want *want;

	while ((want = sroce_pager_next(pager)) &&
	       (slot = sroce_pager_unused_slot(pager))) {
		if (!sroce_worker_take(pager->workers, &pager->turn))
			return;
		sroce_pager_slot_begin(slot, want);
		schedule_delayed_work(&pager->watch, PAGER_WATCH);
	}
	sroce_worker_leave(pager->workers, &pager->turn);
}

static void sroce_pager_kick(struct work_struct *work)
{
	struct sroce_pager *pager = container_of(work, struct sroce_pager,
						 turn.kick);

	spin_lock_bh(&pager->lock);
	sroce_pager_start(pager);
	spin_unlock_bh(&pager->lock);
}

/* Context: the pager's lock held */
static bool sroce_pager_is_alone(const struct sroce_pager *pager)
{
	unsigned int i, n = 0;

	for (i = 0; i < SROCE_PAGER_SLOTS; i++)
		if (pager->slots[i].task)
			n++;
	/* Each fault holds mm_users once, or will: a wrong answer does no harm */
	return n && atomic_read(&pager->mm->mm_users) <= n;
}

static void sroce_pager_watch(struct work_struct *work)
{
	struct sroce_pager *pager = container_of(to_delayed_work(work),
						 struct sroce_pager, watch);
	bool busy = false;
	unsigned int i;
	bool alone;

	spin_lock_bh(&pager->lock);
	alone = sroce_pager_is_alone(pager);
	for (i = 0; i < SROCE_PAGER_SLOTS; i++) {
		busy |= !!pager->slots[i].odp;
		if (alone)
			sroce_pager_slot_break_off(&pager->slots[i]);
	}
	if (busy)
		schedule_delayed_work(&pager->watch, PAGER_WATCH);
	spin_unlock_bh(&pager->lock);
}

/* Nobody waits for the pages of a want any more. Context: the pager's lock held. */
static void sroce_want_detach(struct sroce_want *want)
{
	want->pending = false;
	list_del(&want->mate);
	if (want->slot) {
		want->slot->want = NULL;
		sroce_pager_slot_break_off(want->slot);
	} else {
		list_del(&want->node);
	}
}

int sroce_want_submit(struct sroce_want *want)
{
	struct sroce_pager *pager = want->odp->pager;
	int err = -ESHUTDOWN;

	spin_lock_bh(&pager->lock);
	if (!want->odp->closing) {
		want->pending = true;
		want->slot = NULL;
		list_add_tail(&want->node, want->hint ? &pager->hints :
							&pager->queue);
		list_add_tail(&want->mate, &want->odp->wants);
		sroce_pager_start(pager);
		err = 0;
	}
	spin_unlock_bh(&pager->lock);
	return err;
}

int sroce_want_pages(struct sroce_want *want, const struct sroce_mr *mr, u64 va,
		     u64 len, u64 ahead, enum sroce_odp_fault how)
{
	u64 off = va - mr->iova;

	want->odp = mr->odp;
	want->at = mr->offset + off;
	want->len = len;
	want->ahead = min3(ahead, mr->length - off, (u64)SROCE_PAGER_AHEAD);
	want->how = how;
	want->hint = false;
	return sroce_want_submit(want);
}

bool sroce_want_cancel(struct sroce_want *want)
{
	struct sroce_pager *pager = want->odp->pager;
	bool pending;

	spin_lock_bh(&pager->lock);
	pending = want->pending;
	if (pending)
		sroce_want_detach(want);
	spin_unlock_bh(&pager->lock);
	return pending;
}

/*
 * Some that want pages of a region; detached, and from now on nobody else does.
 * Return: false when there are no more.
 */
static bool sroce_pager_detach(struct sroce_odp *odp, struct list_head *gone)
{
	struct sroce_pager *pager = odp->pager;
	struct sroce_want *want;
	unsigned int n;

	spin_lock_bh(&pager->lock);
	WRITE_ONCE(odp->closing, true);
	for (n = 0; n < PAGER_BATCH && !list_empty(&odp->wants); n++) {
		want = list_first_entry(&odp->wants, struct sroce_want, mate);
		sroce_want_detach(want);
		list_add_tail(&want->node, gone);
	}
	spin_unlock_bh(&pager->lock);
	return n;
}

void sroce_pager_close(struct sroce_odp *odp)
{
	struct sroce_want *want, *next;
	LIST_HEAD(gone);

	while (sroce_pager_detach(odp, &gone)) {
		list_for_each_entry_safe(want, next, &gone, node)
			want->done(want, -ESHUTDOWN);
		INIT_LIST_HEAD(&gone);
		cond_resched();
	}
}

bool sroce_hint_begin(struct sroce_odp *odp)
{
	return atomic_add_unless(&odp->pager->advices, 1, SROCE_PAGER_HINTS);
}

void sroce_hint_end(struct sroce_odp *odp)
{
	atomic_dec(&odp->pager->advices);
}

bool sroce_pager_table_begin(struct sroce_pager *pager)
{
	return atomic_add_unless(&pager->tables, 1, SROCE_IMPLICIT_MOST);
}

void sroce_pager_tables_end(struct sroce_pager *pager, unsigned int n)
{
	atomic_sub(n, &pager->tables);
}

/* --- tables that end ------------------------------------------------------------------ */

/* Context: there is one. Return: are there more? */
static bool sroce_pager_end_first(struct sroce_pager *pager)
{
	struct sroce_odp_table *table;
	bool more;

	spin_lock_bh(&pager->lock);
	table = list_first_entry(&pager->ending, struct sroce_odp_table, node);
	list_del(&table->node);
	spin_unlock_bh(&pager->lock);
	sroce_odp_table_end(table);
	spin_lock_bh(&pager->lock);
	WRITE_ONCE(pager->n_ending, pager->n_ending - 1);
	more = pager->n_ending;
	spin_unlock_bh(&pager->lock);
	return more;
}

static void sroce_pager_end_work(struct work_struct *work)
{
	struct sroce_pager *pager = container_of(work, struct sroce_pager, end);

	/* The last table may be the process's last: its pager would go with it, and the module */
	__module_get(THIS_MODULE);
	sroce_pager_hold(pager);
	while (sroce_pager_end_first(pager))
		cond_resched();
	wake_up_all(&pager->settled);
	sroce_pager_put(pager);
	module_put(THIS_MODULE);
}

void sroce_pager_end_table(struct sroce_pager *pager,
			   struct sroce_odp_table *table)
{
	bool first;

	spin_lock_bh(&pager->lock);
	list_add_tail(&table->node, &pager->ending);
	first = !pager->n_ending;
	WRITE_ONCE(pager->n_ending, pager->n_ending + 1);
	/* With the lock held: once another one could end the table, the pager may be gone */
	if (first)
		sroce_worker_end(pager->workers, &pager->end);
	spin_unlock_bh(&pager->lock);
}

bool sroce_pager_is_ending(const struct sroce_pager *pager)
{
	return READ_ONCE(pager->n_ending);
}

bool sroce_pager_is_behind(const struct sroce_pager *pager)
{
	return READ_ONCE(pager->n_ending) >= SROCE_PAGER_ENDING;
}

bool sroce_pager_settle(struct sroce_pager *pager, unsigned long patience)
{
	return wait_event_killable_timeout(pager->settled,
					   !sroce_pager_is_ending(pager),
					   patience) > 0;
}

/* --- processes ----------------------------------------------------------------------- */

static void sroce_pager_init(struct sroce_pager *pager)
{
	unsigned int i;

	pager->mm = current->mm;
	mmgrab(pager->mm);
	spin_lock_init(&pager->lock);
	INIT_LIST_HEAD(&pager->queue);
	INIT_LIST_HEAD(&pager->hints);
	INIT_DELAYED_WORK(&pager->watch, sroce_pager_watch);
	INIT_LIST_HEAD(&pager->ending);
	INIT_WORK(&pager->end, sroce_pager_end_work);
	init_waitqueue_head(&pager->settled);
	INIT_LIST_HEAD(&pager->turn.node);
	INIT_WORK(&pager->turn.kick, sroce_pager_kick);
	for (i = 0; i < SROCE_PAGER_SLOTS; i++) {
		INIT_WORK(&pager->slots[i].work, sroce_pager_slot_work);
		pager->slots[i].pager = pager;
	}
}

static struct sroce_pager *sroce_pager_new(void)
{
	struct sroce_pager *pager = kzalloc_obj(*pager, GFP_KERNEL_ACCOUNT);
	struct sroce_workers *workers;

	if (!pager)
		return ERR_PTR(-ENOMEM);
	workers = sroce_workers_get();
	if (IS_ERR(workers)) {
		kfree(pager);
		return ERR_CAST(workers);
	}
	pager->workers = workers;
	sroce_pager_init(pager);
	pager->refs = 1;
	return pager;
}

/* Nobody has it, and nothing of it is under way */
static void sroce_pager_free(struct sroce_pager *pager)
{
	mmdrop(pager->mm);
	sroce_workers_put(pager->workers);
	kfree(pager);
}

/* The one that the process has, held; otherwise @fresh becomes it, or NULL is nobody */
static struct sroce_pager *sroce_pager_find(struct sroce_pager *fresh)
{
	struct sroce_pager *pager;

	mutex_lock(&sroce_pagers_mutex);
	list_for_each_entry(pager, &sroce_pagers, node) {
		if (pager->mm == current->mm) {
			pager->refs++;
			goto unlock;
		}
	}
	pager = fresh;
	if (fresh)
		list_add(&fresh->node, &sroce_pagers);
unlock:
	mutex_unlock(&sroce_pagers_mutex);
	return pager;
}

/*
 * Nothing is allocated with the mutex held, which all processes need to go: one that is
 * at the limit of its memory cgroup may have to wait for memory.
 */
struct sroce_pager *sroce_pager_get(void)
{
	struct sroce_pager *pager = sroce_pager_find(NULL);
	struct sroce_pager *fresh;

	if (pager)
		return pager;
	fresh = sroce_pager_new();
	/* Another thread may have made one meanwhile, perhaps the last that there may be */
	if (IS_ERR(fresh))
		return sroce_pager_find(NULL) ?: fresh;
	pager = sroce_pager_find(fresh);
	if (pager != fresh)
		sroce_pager_free(fresh);
	return pager;
}

void sroce_pager_hold(struct sroce_pager *pager)
{
	mutex_lock(&sroce_pagers_mutex);
	pager->refs++;
	mutex_unlock(&sroce_pagers_mutex);
}

void sroce_pager_put(struct sroce_pager *pager)
{
	bool last;

	mutex_lock(&sroce_pagers_mutex);
	last = !--pager->refs;
	if (last)
		list_del(&pager->node);
	mutex_unlock(&sroce_pagers_mutex);
	if (!last)
		return;
	/* From here on nobody queues the kick again */
	sroce_worker_leave(pager->workers, &pager->turn);
	cancel_work_sync(&pager->turn.kick);
	cancel_delayed_work_sync(&pager->watch);
	sroce_pager_free(pager);
}

void sroce_pagers_stop(void)
{
	sroce_workers_stop();
}
