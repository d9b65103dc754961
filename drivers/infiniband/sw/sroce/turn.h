/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How long a CPU may be at work for QPs before others get it.
 *
 * A turn is what is done with bottom halves off without a break: a doorbell and the
 * softirqs that follow it, or the softirqs that follow an interrupt. It is measured
 * in bytes, because these are the same on a slow and on a busy machine, and in
 * time. Each kind of work that moves no bytes counts as some.
 */
#ifndef SROCE_TURN_H
#define SROCE_TURN_H

#include <linux/percpu.h>
#include <linux/sizes.h>

struct workqueue_struct;

/* Bytes that one half moves, either way, before it lets others run */
#define SROCE_HALF_BYTES SZ_256K

/* Work that moves no bytes counts as so many, which take about as long to be moved */
#define SROCE_TURN_RUN SZ_4K		/* a half that is run */
#define SROCE_TURN_TRAIN SZ_1K		/* a train sent, or a buffer, either way */
#define SROCE_TURN_PACKET 512		/* each packet that arrives in one */
#define SROCE_TURN_CQE 256		/* a completion */
#define SROCE_TURN_REGION 64		/* a region of a train that waits, looked at */
#define SROCE_TURN_LOOKUP 64		/* flows of one shape looked for */
#define SROCE_TURN_TAG 32		/* a tagged buffer that a message is compared with */

/**
 * struct sroce_turn_watch - what module parameters tell of the longest stretches
 * @began: when this one began
 * @left: when the transport was left last
 * @softirq: this one has come to softirqs
 * @net_rx: how often the network's receive softirq had run on this CPU by then
 * @tasklets: likewise the softirq of the tasklets
 * @longest: in ns
 * @largest: turn, in bytes
 */
struct sroce_turn_watch {
	u64 began;
	u64 left;
	bool softirq;
	u32 net_rx;
	u32 tasklets;
	u64 longest;
	unsigned long largest;
};

/**
 * struct sroce_turn - the turn of a CPU; written by it, with bottom halves off
 * @spent: bytes so far
 * @limit: bytes that it may have
 * @looked: @spent at the last look at the clock
 * @began: when it began
 * @seen: the last look at the clock: when the transport was left, or something was made
 *	to wait for it; after a short doorbell when it was entered
 * @handlers: completion handlers that were called, or would have been
 * @fresh: it was entered last from where bottom halves were on
 * @depth: entries into the transport that have not been left: a completion handler
 *	posts, and a packet finds its way back
 * @task: on PREEMPT_RT: whose @depth it is, who has entered it last
 * @watch: only while somebody measures
 */
struct sroce_turn {
	unsigned long spent;
	unsigned long limit;
	unsigned long looked;
	u64 began;
	u64 seen;
	u32 handlers;
	bool fresh;
	u32 depth;
	struct task_struct *task;
	struct sroce_turn_watch watch;
};

DECLARE_PER_CPU(struct sroce_turn, sroce_turns);

/* Workers that go on with what the turns of a CPU have left: on any, and on that one */
extern struct workqueue_struct *sroce_turn_wq;
extern struct workqueue_struct *sroce_turn_cpu_wq;

/* Module start; module end: nobody queues anything. Return: 0 or -ENOMEM. */
int sroce_turn_init(void);
void sroce_turn_exit(void);

/**
 * struct sroce_turn_limits - how long a turn may be
 * @bytes: of a turn; half of them for what a process begins, because softirqs follow
 * @ns: of a turn
 * @gap: ns within which softirqs follow each other, or something else has run in
 *	between. If it is too large, turns that are apart count as one, and a worker goes
 *	on with them; if too small, each buffer begins a turn.
 *
 * Tests change them: what they do is to be the same on any machine.
 */
struct sroce_turn_limits {
	unsigned long bytes;
	u64 ns;
	u64 gap;
};

extern struct sroce_turn_limits sroce_turn_limits;

/* Count work that is about to be done. Context: bottom halves off. */
static inline void sroce_turn_spend(u32 bytes)
{
	__this_cpu_add(sroce_turns.spent, bytes);
}

/* Bytes that this CPU's turn has spent so far. Context: bottom halves off. */
static inline unsigned long sroce_turn_spent(void)
{
	return __this_cpu_read(sroce_turns.spent);
}

/**
 * sroce_turn_begin() - the transport is entered
 * @fresh: from where bottom halves were on: nothing went before
 *
 * Context: bottom halves off, until after sroce_turn_end().
 */
void sroce_turn_begin(bool fresh);

/**
 * sroce_turn_over() - is it for others to run now?
 *
 * Then what can wait stays on the run list; see run.c for who goes on with it.
 *
 * Context: bottom halves off.
 */
bool sroce_turn_over(void);

/*
 * Has a half done enough that had found sroce_turn_spent() at @begin? Not before it has
 * done something.
 */
static inline bool sroce_turn_half_over(unsigned long begin)
{
	unsigned long done = sroce_turn_spent() - begin;

	return done && (done >= SROCE_HALF_BYTES || sroce_turn_over());
}

/**
 * sroce_turn_may_notify() - may a completion handler be called?
 *
 * Whose it is waits for that: so while there is time, also when the turn's bytes are used
 * up. How long a handler takes is up to a process, so the clock is asked for each but
 * the first one of a turn.
 *
 * Context: bottom halves off.
 */
bool sroce_turn_may_notify(void);

/**
 * sroce_turn_overdue() - must even what has arrived wait?
 *
 * A peer's window is under way when a turn ends, and is taken all the same, unless
 * the turn has had as much again by then, or half as long again. Asked before the
 * transport is entered. What is made to wait does not end the turn: softirqs that do
 * nothing else follow each other as closely as before.
 *
 * Context: bottom halves off.
 */
bool sroce_turn_overdue(void);

/*
 * Is the transport being entered from within? Then the caller may hold the lock of a QP.
 * On PREEMPT_RT it may be another task that is. Context: bottom halves off.
 */
static inline bool sroce_turn_nested(void)
{
	return __this_cpu_read(sroce_turns.depth);
}

/* Has it been so long that the next one may not be far from its end? */
bool sroce_turn_is_long(void);

/* The transport is left. Context: bottom halves off. */
void sroce_turn_end(void);

#endif
