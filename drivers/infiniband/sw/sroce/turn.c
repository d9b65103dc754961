// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How long a CPU may be at work for QPs before others get it: turn.h says what a
 * turn is. On the way of every message: a doorbell and a packet that arrives begin
 * a turn, and what is done for them is spent from it.
 */
#include <linux/interrupt.h>
#include <linux/jump_label.h>
#include <linux/kernel_stat.h>
#include <linux/module.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "turn.h"

/* About half a millisecond of copies and ICRCs */
#define SROCE_TURN_BYTES SZ_4M
#define SROCE_TURN_NS NSEC_PER_MSEC

/* Bytes between two looks at the clock */
#define SROCE_TURN_LOOK SZ_64K

/* Bytes of a doorbell at whose end nobody looks: a message or two */
#define SROCE_TURN_SHORT SZ_16K

struct sroce_turn_limits sroce_turn_limits = {
	.bytes = SROCE_TURN_BYTES,
	.ns = SROCE_TURN_NS,
	.gap = 20 * NSEC_PER_USEC,
};

DEFINE_PER_CPU(struct sroce_turn, sroce_turns);

struct workqueue_struct *sroce_turn_wq;
struct workqueue_struct *sroce_turn_cpu_wq;

/*
 * Disks may be behind the QPs. If it may, a worker runs on any CPU: on the one that is
 * busy somebody may be polling for what it does, with real-time priority.
 */
int __init sroce_turn_init(void)
{
	sroce_turn_wq = alloc_workqueue("sroce_turn",
					WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!sroce_turn_wq)
		return -ENOMEM;
	sroce_turn_cpu_wq = alloc_workqueue("sroce_turn_cpu",
					    WQ_PERCPU | WQ_MEM_RECLAIM, 0);
	if (sroce_turn_cpu_wq)
		return 0;
	destroy_workqueue(sroce_turn_wq);
	return -ENOMEM;
}

void sroce_turn_exit(void)
{
	destroy_workqueue(sroce_turn_cpu_wq);
	destroy_workqueue(sroce_turn_wq);
}

/* --- the longest turn -------------------------------------------------------- */

static DEFINE_STATIC_KEY_FALSE(sroce_turn_watched);

/*
 * Has a new pass over the softirqs begun? Between two passes the kernel lets others have
 * the CPU, so what is measured ends with a pass. In one pass the network's softirq runs
 * once, and then that of the tasklets once; the first pass belongs to the stretch that a
 * process has begun, if one has.
 */
static bool sroce_turn_watch_passed(struct sroce_turn_watch *w)
{
	int cpu = smp_processor_id();
	u32 net_rx = kstat_softirqs_cpu(NET_RX_SOFTIRQ, cpu);
	u32 tasklets = kstat_softirqs_cpu(TASKLET_SOFTIRQ, cpu);
	bool passed;

	if (!in_serving_softirq())
		return false;
	passed = w->softirq &&
		 (net_rx != w->net_rx || tasklets - w->tasklets > 1);
	if (passed || !w->softirq) {
		w->softirq = true;
		w->net_rx = net_rx;
		w->tasklets = tasklets;
	}
	return passed;
}

static void sroce_turn_watch_here(struct sroce_turn_watch *w, bool fresh,
				  u64 now)
{
	bool left = fresh || now - w->left > READ_ONCE(sroce_turn_limits.gap);

	if (left)
		w->softirq = false;
	if (sroce_turn_watch_passed(w) || left)
		WRITE_ONCE(w->began, now);
}

/* Whoever measures looks at @longest and @largest meanwhile, and resets them and @began */
static void sroce_turn_watch_left(struct sroce_turn_watch *w, u64 now)
{
	u64 lasted = now - READ_ONCE(w->began);

	w->left = now;
	if (lasted > READ_ONCE(w->longest))
		WRITE_ONCE(w->longest, lasted);
}

static void sroce_turn_watch_end(struct sroce_turn *turn)
{
	struct sroce_turn_watch *w = &turn->watch;

	sroce_turn_watch_left(w, ktime_get_mono_fast_ns());
	if (turn->spent > READ_ONCE(w->largest))
		WRITE_ONCE(w->largest, turn->spent);
}

static int sroce_turn_watch_set(const char *val, const struct kernel_param *kp)
{
	struct sroce_turn_watch *w;
	bool on;
	int err;
	int cpu;

	err = kstrtobool(val, &on);
	if (err)
		return err;
	/* A turn that is under way may still write: whoever reads may reset again */
	for_each_possible_cpu(cpu) {
		w = &per_cpu_ptr(&sroce_turns, cpu)->watch;
		WRITE_ONCE(w->began, ktime_get_mono_fast_ns());
		WRITE_ONCE(w->longest, 0);
		WRITE_ONCE(w->largest, 0);
	}
	if (on)
		static_branch_enable(&sroce_turn_watched);
	else
		static_branch_disable(&sroce_turn_watched);
	return 0;
}

static int sroce_turn_longest_get(char *buf, const struct kernel_param *kp)
{
	u64 most = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		most = max(most, READ_ONCE(per_cpu(sroce_turns, cpu).watch.longest));
	return sysfs_emit(buf, "%llu\n", div_u64(most, NSEC_PER_USEC));
}

static int sroce_turn_largest_get(char *buf, const struct kernel_param *kp)
{
	unsigned long most = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		most = max(most, READ_ONCE(per_cpu(sroce_turns, cpu).watch.largest));
	return sysfs_emit(buf, "%lu\n", most);
}

static const struct kernel_param_ops sroce_longest_ops = {
	.set = sroce_turn_watch_set,
	.get = sroce_turn_longest_get,
};

static const struct kernel_param_ops sroce_largest_ops = {
	.set = sroce_turn_watch_set,
	.get = sroce_turn_largest_get,
};

module_param_cb(longest_turn, &sroce_longest_ops, NULL, 0644);
MODULE_PARM_DESC(longest_turn, "us from the start of a process's part, or of a pass over the softirqs, to the end of what was done in it, at most; write 1 to begin to measure, 0 to end");
module_param_cb(largest_turn, &sroce_largest_ops, NULL, 0644);
MODULE_PARM_DESC(largest_turn, "bytes, and what counts as such, that were moved meanwhile; as longest_turn");

/* --- the turn of this CPU ---------------------------------------------------- */

bool sroce_turn_is_long(void)
{
	return sroce_turn_spent() > READ_ONCE(sroce_turn_limits.bytes) / 4;
}

/* A CPU that is handed packets without a pause gets a new turn after so long */
static u64 sroce_turn_most_ns(void)
{
	return 4 * READ_ONCE(sroce_turn_limits.ns);
}

static bool sroce_turn_was_left(const struct sroce_turn *turn, u64 now)
{
	return now - turn->seen > READ_ONCE(sroce_turn_limits.gap) ||
	       now - turn->began >= sroce_turn_most_ns();
}

/*
 * On PREEMPT_RT other tasks of the CPU come in between, and a turn is the task's that
 * began one last: what others have spent, who may not run again as long as this one
 * does, must not keep it from its work. All else may be a bit wrong there.
 */
static bool sroce_turn_is_mine(const struct sroce_turn *turn)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) || turn->task == current;
}

static bool sroce_turn_is_nested(struct sroce_turn *turn)
{
	if (!sroce_turn_is_mine(turn)) {
		turn->task = current;
		turn->depth = 0;
	}
	return turn->depth++;
}

static bool sroce_turn_was_nested(struct sroce_turn *turn)
{
	if (!sroce_turn_is_mine(turn) || --turn->depth)
		return true;
	turn->task = NULL;
	return false;
}

/*
 * The clock was looked at. Has the turn lasted too long? Then it is made to look as if its
 * bytes were used up, and the clock is not asked again.
 */
static bool sroce_turn_is_late(struct sroce_turn *turn, u64 now)
{
	turn->looked = turn->spent;
	turn->seen = now;
	if (now - turn->began < READ_ONCE(sroce_turn_limits.ns))
		return false;
	turn->spent = max(turn->spent, READ_ONCE(sroce_turn_limits.bytes));
	return true;
}

static bool sroce_turn_look(struct sroce_turn *turn)
{
	return sroce_turn_is_late(turn, ktime_get_mono_fast_ns());
}

void sroce_turn_begin(bool fresh)
{
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);
	u64 now;

	if (sroce_turn_is_nested(turn))
		return;
	now = ktime_get_mono_fast_ns();
	if (static_branch_unlikely(&sroce_turn_watched))
		sroce_turn_watch_here(&turn->watch, fresh, now);
	turn->fresh = fresh;
	turn->limit = READ_ONCE(sroce_turn_limits.bytes) / (fresh ? 2 : 1);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) && !fresh &&
	    !sroce_turn_was_left(turn, now)) {
		sroce_turn_is_late(turn, now);
		return;
	}
	turn->spent = 0;
	turn->looked = 0;
	turn->handlers = 0;
	turn->began = now;
	turn->seen = now;
}

/*
 * Softirqs must not take what has cost time for a pause, whatever it was. What follows a
 * short doorbell may be a new turn: that does no harm.
 */
void sroce_turn_end(void)
{
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);

	if (sroce_turn_was_nested(turn))
		return;
	if (!turn->fresh || turn->handlers ||
	    turn->spent - turn->looked >= SROCE_TURN_SHORT)
		sroce_turn_look(turn);
	if (static_branch_unlikely(&sroce_turn_watched))
		sroce_turn_watch_end(turn);
}

bool sroce_turn_over(void)
{
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);

	if (turn->spent >= turn->limit)
		return true;
	return turn->spent - turn->looked >= SROCE_TURN_LOOK &&
	       sroce_turn_look(turn);
}

bool sroce_turn_may_notify(void)
{
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);

	return !turn->handlers++ || !sroce_turn_look(turn);
}

/*
 * Packets were put aside. That is no pause, so the turn goes on, and its stretch as
 * well.
 */
static void sroce_turn_goes_on(struct sroce_turn *turn, u64 now)
{
	struct sroce_turn_watch *w = &turn->watch;

	turn->seen = now;
	if (!static_branch_unlikely(&sroce_turn_watched))
		return;
	sroce_turn_watch_here(w, false, now);
	sroce_turn_watch_left(w, now);
}

bool sroce_turn_overdue(void)
{
	const struct sroce_turn_limits *limits = &sroce_turn_limits;
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);
	bool inside = turn->depth && sroce_turn_is_mine(turn);
	u64 now;

	if (likely(turn->spent < READ_ONCE(limits->bytes)))
		return false;
	now = ktime_get_mono_fast_ns();
	if (!inside && sroce_turn_was_left(turn, now))
		return false;
	if (turn->spent < 2 * READ_ONCE(limits->bytes) &&
	    now - turn->began < READ_ONCE(limits->ns) / 2 * 3)
		return false;
	sroce_turn_goes_on(turn, now);
	return true;
}
