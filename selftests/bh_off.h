/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the two files of bh_off share: how long (bh_off.c), and what happened meanwhile
 * (bh_off_who.c). */
#ifndef BH_OFF_H
#define BH_OFF_H

#include <stdbool.h>

#define TRACEFS "/sys/kernel/tracing"

/* Seconds: from one interrupt to the next, and by how much it may be late on a processor that is
 * there */
#define BH_BEAT 250e-6
#define BH_LATE 100e-6

/* One event of a trace, as tracefs writes it: "COMM-PID [CPU] FLAGS SECONDS: EVENT: ..." */
struct bh_event {
	unsigned int cpu;
	char flags[16], name[32];
	double at;
	/* in the line: who it was, up to the blank, and what the event says */
	const char *task, *text;
};

/* false: the line is none */
bool bh_event_read(struct bh_event *e, const char *line);
/* into a file of a trace instance */
bool bh_put(const char *instance, const char *file, const char *value);

/* Remember from now on what happens; until now; tell what happened on a processor in that time;
 * forget */
void bh_who_begin(void);
void bh_who_stop(void);
void bh_who_tell(int cpu, double from, double to);
void bh_who_end(void);

#endif
