// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/jump_label.h>
#include <linux/module.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "turn.h"

/* About half a millisecond of copies and ICRCs */
#define SROCE_TURN_BYTES SZ_4M
#define SROCE_TURN_NS NSEC_PER_MSEC

/* Bytes between two looks at the clock: few messages pay for one */
#define SROCE_TURN_LOOK SZ_64K

/*
 * Softirqs follow each other within this, or something else has run in between. What
 * is taken for the same turn wrongly is carried on by a worker.
 */
#define SROCE_TURN_GAP_NS (20 * NSEC_PER_USEC)

struct sroce_turn_limits sroce_turn_limits = {
	.bytes = SROCE_TURN_BYTES,
	.ns = SROCE_TURN_NS,
};

DEFINE_PER_CPU(struct sroce_turn, sroce_turns);

struct workqueue_struct *sroce_turn_wq;

int __init sroce_turn_init(void)
{
	/*
	 * Disks may be behind the QPs. The worker may run on any CPU: on the one that is
	 * busy somebody may be polling for what it does, with real-time priority.
	 */
	sroce_turn_wq = alloc_workqueue("sroce_turn",
					WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return sroce_turn_wq ? 0 : -ENOMEM;
}

void sroce_turn_exit(void)
{
	destroy_workqueue(sroce_turn_wq);
}

/* --- the longest one --------------------------------------------------------- */

static DEFINE_STATIC_KEY_FALSE(sroce_turn_watched);

static void sroce_watch_begin(struct sroce_turn *turn, bool fresh)
{
	u64 now = ktime_get_mono_fast_ns();

	if (fresh || now - turn->watch.left > SROCE_TURN_GAP_NS)
		turn->watch.began = now;
}

static void sroce_watch_end(struct sroce_turn *turn)
{
	struct sroce_turn_watch *w = &turn->watch;

	w->left = ktime_get_mono_fast_ns();
	w->longest = max(w->longest, w->left - w->began);
	w->largest = max(w->largest, turn->spent);
}

static int sroce_watch_set(const char *val, const struct kernel_param *kp)
{
	struct sroce_turn_watch *w;
	bool on;
	int err;
	int cpu;

	err = kstrtobool(val, &on);
	if (err)
		return err;
	/* A turn of now may get in between: whoever wants to know looks again */
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

static int sroce_longest_get(char *buf, const struct kernel_param *kp)
{
	u64 most = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		most = max(most, READ_ONCE(per_cpu(sroce_turns, cpu).watch.longest));
	return sysfs_emit(buf, "%llu\n", div_u64(most, NSEC_PER_USEC));
}

static int sroce_largest_get(char *buf, const struct kernel_param *kp)
{
	unsigned long most = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		most = max(most, READ_ONCE(per_cpu(sroce_turns, cpu).watch.largest));
	return sysfs_emit(buf, "%lu\n", most);
}

static const struct kernel_param_ops sroce_longest_ops = {
	.set = sroce_watch_set,
	.get = sroce_longest_get,
};

static const struct kernel_param_ops sroce_largest_ops = {
	.set = sroce_watch_set,
	.get = sroce_largest_get,
};

module_param_cb(longest_turn, &sroce_longest_ops, NULL, 0644);
MODULE_PARM_DESC(longest_turn, "us that bottom halves were off at a stretch, at most; write 1 to begin to measure, 0 to end");
module_param_cb(largest_turn, &sroce_largest_ops, NULL, 0644);
MODULE_PARM_DESC(largest_turn, "bytes, and what counts as such, that were moved meanwhile; as longest_turn");

/* --- this one ---------------------------------------------------------------- */

bool sroce_turn_is_long(void)
{
	return sroce_turn_spent() > READ_ONCE(sroce_turn_limits.bytes) / 4;
}

/* Short turns need no clock: that they were several makes no difference */
static bool sroce_turn_has_clock(const struct sroce_turn *turn)
{
	return turn->began || sroce_turn_is_long();
}

static bool sroce_turn_was_left(const struct sroce_turn *turn)
{
	return sroce_turn_has_clock(turn) &&
	       ktime_get_mono_fast_ns() - turn->left > SROCE_TURN_GAP_NS;
}

/*
 * On PREEMPT_RT other tasks of the CPU come in between, and a turn is the task's that
 * began one last: what others have spent, who may not run again as long as this one
 * does, must not keep it from its work. All else may be a bit wrong there.
 */
static bool sroce_turn_is_nested(struct sroce_turn *turn)
{
	struct task_struct *task = turn->task;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		return turn->depth++;
	turn->task = current;
	return task == current;
}

static bool sroce_turn_was_nested(struct sroce_turn *turn)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		return --turn->depth;
	turn->task = NULL;
	return false;
}

void sroce_turn_begin(bool fresh)
{
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);

	if (sroce_turn_is_nested(turn))
		return;
	if (static_branch_unlikely(&sroce_turn_watched))
		sroce_watch_begin(turn, fresh);
	turn->limit = READ_ONCE(sroce_turn_limits.bytes) / (fresh ? 2 : 1);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) &&
	    likely(!fresh && !sroce_turn_was_left(turn)))
		return;
	turn->spent = 0;
	turn->looked = 0;
	turn->began = 0;
}

void sroce_turn_end(void)
{
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);

	if (sroce_turn_was_nested(turn))
		return;
	if (sroce_turn_has_clock(turn))
		turn->left = ktime_get_mono_fast_ns();
	if (static_branch_unlikely(&sroce_turn_watched))
		sroce_watch_end(turn);
}

/* Time is over: that stays so for the rest of the turn, without looking again */
static bool sroce_turn_late(struct sroce_turn *turn)
{
	u64 now = ktime_get_mono_fast_ns();

	turn->looked = turn->spent;
	turn->began = turn->began ?: now;
	if (now - turn->began < READ_ONCE(sroce_turn_limits.ns))
		return false;
	turn->spent = max(turn->spent, READ_ONCE(sroce_turn_limits.bytes));
	return true;
}

bool sroce_turn_over(void)
{
	struct sroce_turn *turn = this_cpu_ptr(&sroce_turns);

	if (turn->spent >= turn->limit)
		return true;
	return turn->spent - turn->looked >= SROCE_TURN_LOOK &&
	       sroce_turn_late(turn);
}
