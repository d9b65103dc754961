// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * bh_off: who kept bottom halves off. What happens is remembered in a trace instance of its own,
 * where what is new takes the place of what is old: nothing that is too much for it can spoil the
 * measure. Of one stretch it tells the events of interrupts one by one, those of the driver and of
 * the network in between by their number, the longest time in which nothing was told and between
 * which events that was, and for how long each kind of softirq has run.
 *
 * Where the kernel can look behind an interrupt, each beat of bh_off.c has the stack of what it has
 * interrupted: a profile. User mode Linux cannot, and looks at each word of the stack for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bh_off.h"
#include "vt.h"

#define WHO TRACEFS "/instances/sroce_bh_off_who"
#define BUFFER_KIB "16384"
#define BEAT_EVENT "hrtimer_expire_entry"
/* lines of one stretch, and frames of one stack */
#define LINES 120
#define FRAMES 12

static bool there, stacks;

static bool is_user_mode(void)
{
	char line[256];
	bool is = false;
	FILE *f = fopen("/proc/cpuinfo", "re");

	while (f && fgets(line, sizeof(line), f))
		is |= !!strstr(line, "User Mode Linux");
	if (f)
		fclose(f);
	return is;
}

void bh_who_begin(void)
{
	static const char *const events[] = {
		"sroce",
		"irq/softirq_raise", "irq/softirq_entry", "irq/softirq_exit",
		"timer/" BEAT_EVENT, "timer/timer_expire_entry", "sched/sched_switch",
		"net/netif_receive_skb", "net/net_dev_queue", "workqueue/workqueue_execute_start",
	};
	char file[128];
	size_t i;

	rmdir(WHO);
	there = !mkdir(WHO, 0700) && bh_put(WHO, "tracing_on", "0") &&
		bh_put(WHO, "trace_clock", "mono") && bh_put(WHO, "buffer_size_kb", BUFFER_KIB);
	/* not every kernel has all of them */
	for (i = 0; there && i < ARRAY_SIZE(events); i++) {
		snprintf(file, sizeof(file), "events/%s/enable", events[i]);
		bh_put(WHO, file, "1");
	}
	/* of interrupts that have found a softirq, or bottom halves off */
	stacks = there && !is_user_mode() &&
		 bh_put(WHO, "events/timer/" BEAT_EVENT "/trigger",
			"stacktrace if common_flags & 0x10 || common_preempt_count & 0xff00");
	if (there)
		bh_put(WHO, "tracing_on", "1");
}

void bh_who_stop(void)
{
	if (there)
		bh_put(WHO, "tracing_on", "0");
}

void bh_who_end(void)
{
	if (stacks)
		bh_put(WHO, "events/timer/" BEAT_EVENT "/trigger", "!stacktrace");
	if (there)
		bh_put(WHO, "events/enable", "0");
	if (there && rmdir(WHO))
		vt_die(VT_WRONG, "the trace events stay: %s", strerror(errno));
}

/* --- a stretch ----------------------------------------------------------------------------- */

/* what has happened between two events of interrupts, by name */
static struct {
	char name[32];
	unsigned int n;
	unsigned long bytes;
} counted[32];
static unsigned int nlines;

static void count(const struct bh_event *e)
{
	const char *bytes = strstr(e->text, " bytes=");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counted) - 1 && counted[i].n && strcmp(counted[i].name, e->name);
	     i++)
		;
	memcpy(counted[i].name, e->name, sizeof(counted[i].name));
	counted[i].n++;
	counted[i].bytes += bytes ? strtoul(bytes + 7, NULL, 10) : 0;
}

static void tell_counted(void)
{
	unsigned int i;

	if (counted[0].n && nlines++ < LINES) {
		printf("#       ");
		for (i = 0; i < ARRAY_SIZE(counted) && counted[i].n; i++)
			printf(counted[i].bytes ? " %u %s (%lu bytes)" : " %u %s", counted[i].n,
			       counted[i].name, counted[i].bytes);
		puts("");
	}
	memset(counted, 0, sizeof(counted));
}

static bool of_interrupts(const struct bh_event *e)
{
	return !strncmp(e->name, "softirq", 7) || !strcmp(e->name, BEAT_EVENT) ||
	       !strcmp(e->name, "timer_expire_entry") || !strcmp(e->name, "sched_switch");
}

/* "vec=3 [action=NET_RX]" of two that follow each other is the time of that softirq */
static struct {
	char action[16];
	double took;
} kinds[16];

static void time_softirq(const struct bh_event *e)
{
	static double began;
	unsigned int vec;
	char action[16];

	if (sscanf(e->text, "vec=%u [action=%15[^]]", &vec, action) != 2 ||
	    vec >= ARRAY_SIZE(kinds))
		return;
	if (!strcmp(e->name, "softirq_entry"))
		began = e->at;
	if (strcmp(e->name, "softirq_exit") || !began)
		return;
	memcpy(kinds[vec].action, action, sizeof(action));
	kinds[vec].took += e->at - began;
	began = 0;
}

static void tell_event(const struct bh_event *e, double from)
{
	static double beat;

	if (!of_interrupts(e)) {
		count(e);
		return;
	}
	/* many timers are due at once where the processor was away */
	if (!strcmp(e->name, BEAT_EVENT)) {
		if (e->at - beat < 100e-6)
			return;
		beat = e->at;
	}
	tell_counted();
	if (nlines++ < LINES)
		printf("#   %+6.0f us %s %.*s %s: %.100s\n", (e->at - from) * 1e6, e->flags,
		       (int)strcspn(e->task, " "), e->task, e->name, e->text);
	time_softirq(e);
}

/*
 * The longest time without an event of those in which the processor was there, and what was before
 * and behind it; all the others
 */
static struct {
	double took, at, away;
	char before[160], behind[160];
} gap;

static void look_for_gap(const struct bh_event *e, const struct bh_event *last, const char *said)
{
	double took = last->at ? e->at - last->at : 0;

	if (took > BH_BEAT + BH_LATE)
		gap.away += took;
	else if (took > gap.took) {
		gap.took = took;
		gap.at = last->at;
		snprintf(gap.before, sizeof(gap.before), "%s: %.100s", last->name, said);
		snprintf(gap.behind, sizeof(gap.behind), "%s: %.100s", e->name, e->text);
	}
}

static void tell_sums(double from)
{
	unsigned int i;

	tell_counted();
	if (nlines > LINES)
		printf("#   and %u lines more\n", nlines - LINES);
	printf("#   softirqs:");
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].took)
			printf(" %s %.0f us", kinds[i].action, kinds[i].took * 1e6);
	printf(", of which the processor was away for %.0f us\n", gap.away * 1e6);
	printf("#   it was there, and nothing was told, for %.0f us at the longest, from %+.0f us on,\n"
	       "#   between %s and %s\n",
	       gap.took * 1e6, (gap.at - from) * 1e6, gap.before, gap.behind);
}

/* " => FUNCTION" is of the stack of the event before */
static bool tell_frame(const char *line, unsigned int *frames)
{
	const char *at = strstr(line, " => ");

	if (!at || at - line > 8)
		return false;
	if ((*frames)++ < FRAMES && nlines++ < LINES)
		printf("#           %s\n", at);
	return true;
}

void bh_who_tell(int cpu, double from, double to)
{
	struct bh_event e = {}, last = {};
	char path[256], line[512], said[101] = "";
	unsigned int frames = FRAMES;
	FILE *f;

	snprintf(path, sizeof(path), WHO "/per_cpu/cpu%d/trace", cpu);
	f = there ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (tell_frame(line, &frames) || !bh_event_read(&e, line) || e.at < from - 1e-6 ||
		    e.at > to + 1e-6)
			continue;
		frames = !strcmp(e.name, BEAT_EVENT) ? 0 : FRAMES;
		look_for_gap(&e, &last, said);
		tell_event(&e, from);
		snprintf(said, sizeof(said), "%s", e.text);
		last = e;
	}
	if (f)
		fclose(f);
	if (last.at)
		tell_sums(from);
	else
		printf("#   what happened is not known any more\n");
}
