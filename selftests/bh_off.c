// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * bh_off: for how long bottom halves are off at a stretch, from "# ready" until a line was read, as the kernel's own trace
 * events tell: somebody asks for a softirq (irq:softirq_raise), and it begins and ends (irq:softirq_entry, irq:softirq_exit).
 * That wants neither a tracer of latencies, which few kernels have, nor the driver.
 *
 * So that somebody asks, whatever a processor is busy with, each has a TCP connection to itself whose packets are paced:
 * an interrupt asks for the softirq that sends the next one, about once in 500 us.
 *
 * A stretch begins where a softirq is asked for, by a process that has bottom halves off or by an interrupt, or where one
 * begins. It ends with the last softirq of a pass over those that were asked for by then; what is asked for meanwhile is
 * for the next pass, which is a stretch of its own: whether there is one at once, or the scheduler comes first, the kernel
 * decides. Where a processor is given to another task, or an interrupt finds them so, bottom halves are on. What a process did with
 * bottom halves off before somebody asked is not seen: that is up to 500 us, another time each time, and so of what
 * happens again and again the longest is seen nearly whole. (That many interrupts in a row find them off says nothing:
 * they may have been on between these.)
 *
 * A machine below may let something else run in place of a processor at any time, and does not tell. That time is not this
 * kernel's, and is left out: each processor has a timer that is due every 250 us (BEAT), and its interrupt is one of the
 * events (timer:hrtimer_expire_entry). A processor that can be interrupted has an event in each such time, give or take what an
 * interrupt may be late (LATE). So of two events that are no further apart all of the time between them was the processor's
 * own; of two that are, none or as much as that. This makes two times of each stretch: what the processor has surely
 * worked, and what it has worked at most.
 *
 * A processor that works with its interrupts off looks as if it were not there, too. So what is missing is told as well, and how
 * it is in stretches and between them: the machine below does not care.
 *
 * bh_off US tells of the longest stretch what happened in it (bh_off_who.c), if that has surely taken longer.
 *
 * The last line is "bh_off: SURE MOST AWAY": of all stretches the longest by either time, and the longest time in one in which the
 * processor was not there, in us. Nothing is told where events were lost, where there were none, or where the processor was
 * away for so long that the timers were not set again before they were due.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <math.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bh_off.h"
#include "vt.h"

#define INSTANCE TRACEFS "/instances/sroce_bh_off"
#define BUFFER_KIB "24576"
/* Of the connections: what is sent at once is what may be in a millisecond, or two segments: here, these each 500 us */
#define RATE 800000u
#define SEGMENT 200

#define BEAT BH_BEAT
#define LATE BH_LATE
/* So many are due in turn, in BEATS * BEAT seconds, half of which may pass before somebody makes them due again */
#define BEATS 8000
#define BATCH 1000

enum { CPUS = 64 };

/* --- somebody who asks -------------------------------------------------------------------- */

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void lo_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		vt_die(VT_SETUP, "no network of our own: %s", strerror(errno));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		vt_die(VT_SETUP, "no network of our own: %s", strerror(errno));
	close(fd);
}

/* The two ends of a TCP connection */
static void connected(int fd[2])
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int segment = SEGMENT, on = 1;
	const unsigned int rate = RATE;
	socklen_t len = sizeof(sin);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd[0], IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (setsockopt(fd[0], SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) ||
	    bind(l, (struct sockaddr *)&sin, len) || getsockname(l, (struct sockaddr *)&sin, &len) || listen(l, 1) ||
	    connect(fd[0], (struct sockaddr *)&sin, len))
		vt_die(VT_SETUP, "no connection: %s", strerror(errno));
	fd[1] = accept(l, NULL, NULL);
	close(l);
}

static void beat(int cpu)
{
	char bytes[4096] = {};
	int fd[2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	lo_up();
	connected(fd);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(fd[1], bytes, sizeof(bytes)) > 0)
			;
		_exit(0);
	}
	while (write(fd[0], bytes, sizeof(bytes)) > 0)
		;
	_exit(0);
}

/* --- interrupts --------------------------------------------------------------------------- */

static void sleep_until(uint64_t ns)
{
	struct timespec at = { ns / 1000000000, ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Of those who make timers due, a zero from each that is ready, and something else from one that cannot or comes too late */
static int ready[2];

static void give_up(void)
{
	_exit(write(ready[1], "x", 1) != 1);
}

/*
 * Timers of io_uring, of which one call makes many due. That they were due nobody needs to hear, so nobody is woken for it
 * (IORING_SETUP_DEFER_TASKRUN).
 */
static struct {
	int fd;
	uint8_t *ring;
	struct io_uring_params p;
	struct io_uring_sqe *sqes;
} uring;

static void uring_open(void)
{
	const int prot = PROT_READ | PROT_WRITE;
	size_t size;

	uring.p.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
	uring.p.cq_entries = 2 * BEATS;
	uring.fd = syscall(SYS_io_uring_setup, BATCH, &uring.p);
	if (uring.fd < 0)
		give_up();
	size = max(uring.p.sq_off.array + uring.p.sq_entries * sizeof(uint32_t),
		   uring.p.cq_off.cqes + uring.p.cq_entries * sizeof(struct io_uring_cqe));
	uring.ring = mmap(NULL, size, prot, MAP_SHARED | MAP_POPULATE, uring.fd, IORING_OFF_SQ_RING);
	uring.sqes = mmap(NULL, uring.p.sq_entries * sizeof(*uring.sqes), prot, MAP_SHARED | MAP_POPULATE, uring.fd,
			  IORING_OFF_SQES);
	if (uring.ring == MAP_FAILED || uring.sqes == MAP_FAILED)
		give_up();
}

static _Atomic uint32_t *uring_word(uint32_t offset)
{
	return (_Atomic uint32_t *)(uring.ring + offset);
}

/* BATCH more of them, from @ns on */
static void make_due(uint64_t ns)
{
	static struct __kernel_timespec due[BATCH];
	uint32_t tail = *uring_word(uring.p.sq_off.tail), i, at;

	for (i = 0; i < BATCH; i++, ns += BEAT * 1e9) {
		at = (tail + i) & (uring.p.sq_entries - 1);
		due[i] = (struct __kernel_timespec){ ns / 1000000000, ns % 1000000000 };
		uring.sqes[at] = (struct io_uring_sqe){
			.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (uintptr_t)&due[i], .len = 1,
			.timeout_flags = IORING_TIMEOUT_ABS,
		};
		((uint32_t *)(uring.ring + uring.p.sq_off.array))[at] = at;
	}
	atomic_store(uring_word(uring.p.sq_off.tail), tail + BATCH);
	/* those that were due are forgotten */
	if (syscall(SYS_io_uring_enter, uring.fd, BATCH, 0, IORING_ENTER_GETEVENTS, NULL, 0) != BATCH)
		give_up();
	atomic_store(uring_word(uring.p.cq_off.head), atomic_load(uring_word(uring.p.cq_off.tail)));
}

/* Timers are the processor's on which they were set, so each has a process of its own that nobody but a softirq keeps from running */
static void interrupt(int cpu)
{
	const struct sched_param first = { .sched_priority = 50 };
	uint64_t due;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		give_up();
	uring_open();
	due = vt_now() * 1e9 + 0.1e9;
	for (i = 0; i < BEATS; i += BATCH, due += BEAT * 1e9 * BATCH)
		make_due(due);
	if (write(ready[1], "", 1) != 1)
		give_up();
	for (;; due += BEAT * 1e9 * BATCH) {
		/* more, when half of all were due */
		sleep_until(due - BEAT * 1e9 * (BEATS / 2));
		if (due < vt_now() * 1e9)
			give_up();
		make_due(due);
	}
}

static void beats_begin(void)
{
	int cpu, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char byte;

	if (pipe(ready))
		vt_die(VT_SETUP, "pipe: %s", strerror(errno));
	for (cpu = 0; cpu < cpus; cpu++) {
		if (!fork())
			beat(cpu);
		if (!fork())
			interrupt(cpu);
	}
	for (cpu = 0; cpu < cpus; cpu++)
		if (read(ready[0], &byte, 1) != 1 || byte)
			vt_die(VT_SKIP, "no trace events: no timers of io_uring to tell a processor's time by");
}

/* Did all of them come in time? */
static bool beats_were_due(void)
{
	char byte;

	fcntl(ready[0], F_SETFL, O_NONBLOCK);
	return read(ready[0], &byte, 1) < 0 && errno == EAGAIN;
}

/* --- tracefs ---------------------------------------------------------------------------- */

bool bh_put(const char *instance, const char *file, const char *value)
{
	char path[256];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return ok;
}

static void put(const char *file, const char *value)
{
	if (!bh_put(INSTANCE, file, value))
		vt_die(VT_SKIP, "no trace events: %s: %s", file, strerror(errno));
}

static void trace_begin(void)
{
	mount("tracefs", TRACEFS, "tracefs", 0, NULL);
	rmdir(INSTANCE);
	if (mkdir(INSTANCE, 0700))
		vt_die(VT_SKIP, "no trace events: %s", strerror(errno));
	put("tracing_on", "0");
	put("trace_clock", "mono");
	put("buffer_size_kb", BUFFER_KIB);
	/* What is lost is the end of a run that was too long */
	put("options/overwrite", "0");
	put("events/irq/softirq_raise/enable", "1");
	put("events/irq/softirq_entry/enable", "1");
	put("events/irq/softirq_exit/enable", "1");
	put("events/timer/hrtimer_expire_entry/enable", "1");
	put("events/sched/sched_switch/enable", "1");
	put("events/sched/sched_waking/filter", "comm ~ \"ksoftirqd*\"");
	put("events/sched/sched_waking/enable", "1");
	put("tracing_on", "1");
}

/* --- what a processor did ------------------------------------------------------------------- */

/* What was missing, in stretches or between them */
struct away {
	unsigned long times;
	double sum, longest;
	double there;	/* what was not missing */
};

struct own {
	double sure, most;
};

static struct cpu {
	bool open;
	unsigned int asked, pass;	/* softirqs asked for; those of this pass that have not begun */
	bool running;	/* a pass */
	double last;	/* the event before, on the clock */
	/* the processor's own, now and at the event before */
	struct own time, before;
	struct own began;	/* the stretch */
	double began_at;	/* on the clock */
	double away;	/* in it */
} cpus[CPUS];

static struct away inside, between;
static unsigned long nstretches, nlong[2], nlost;
static double surest, most, most_away;
/* the longest of all: whose, and when */
static struct {
	int cpu;
	double from, to;
} longest;
static bool flags_tell;

/* The processor's own time goes on to the event at @now */
static void passes(struct cpu *c, double now)
{
	struct away *a = c->open ? &inside : &between;
	double took = c->last ? now - c->last : 0, own = min(took, BEAT + LATE);

	c->last = now;
	c->before = c->time;
	c->time.most += own;
	if (took == own) {
		c->time.sure += own;
		a->there += own;
		return;
	}
	a->times++;
	a->sum += took - own;
	a->longest = max(a->longest, took - own);
	c->away += took - own;
}

static void stretch(const struct cpu *c, struct own end)
{
	double took = end.sure - c->began.sure;

	if (took > surest) {
		surest = took;
		longest.cpu = c - cpus;
		longest.from = c->began_at;
		longest.to = c->last;
	}
	most = max(most, end.most - c->began.most);
	most_away = max(most_away, c->away);
	nstretches++;
	nlong[0] += took > 1e-3;
	nlong[1] += took > 2e-3;
}

static void stretch_is_new(struct cpu *c)
{
	c->began = c->time;
	c->began_at = c->last;
	c->away = 0;
}

static void stretch_begins(struct cpu *c)
{
	if (c->open)
		return;
	c->open = true;
	stretch_is_new(c);
}

/* Bottom halves are on */
static void stretch_is_over(struct cpu *c)
{
	c->open = false;
	c->running = false;
}

/*
 * An interrupt has found bottom halves on: no stretch goes on, and what had been asked for was left to a thread. The flags
 * tell only since kernel 6.2 that a process has them off.
 */
static void found_on(struct cpu *c)
{
	if (!c->open || !flags_tell)
		return;
	stretch(c, (struct own){ .sure = c->before.sure, .most = c->time.most });
	stretch_is_over(c);
}

/* @off: by somebody who has them off, or by an interrupt */
static void raised(struct cpu *c, unsigned int vec, bool off)
{
	c->asked |= 1u << vec;
	if (off)
		stretch_begins(c);
}

static void entered(struct cpu *c, unsigned int vec)
{
	if (!c->running || !(c->pass & 1u << vec)) {
		/* A pass that follows another one */
		if (c->running)
			stretch_is_new(c);
		c->pass = c->asked | 1u << vec;
		c->asked = 0;
	}
	stretch_begins(c);
	c->running = true;
	c->pass &= ~(1u << vec);
}

static void left(struct cpu *c)
{
	if (!c->open || !c->running || c->pass)
		return;
	stretch(c, c->time);
	if (!c->asked)
		stretch_is_over(c);
}

/* --- reading ------------------------------------------------------------------------------- */

/*
 * The first flag says what is off, interrupts or (since kernel 6.2) bottom halves, too; the third one in which kind of
 * interrupt it was
 */
static bool has_them_off(const char *flags)
{
	return strlen(flags) > 2 && (strchr("Db", flags[0]) || strchr("hHsZz", flags[2]));
}

bool bh_event_read(struct bh_event *e, const char *line)
{
	const char *at = strstr(line, " [");
	int n = 0;

	/* a name may have that in it, too */
	while (at && sscanf(at, " [%u] %15s %lf: %31[^:]: %n", &e->cpu, e->flags, &e->at, e->name, &n) != 4)
		at = strstr(at + 1, " [");
	if (!at)
		return false;
	e->task = line + strspn(line, " ");
	e->text = at + n;
	return true;
}

static void event(const char *line)
{
	struct bh_event e;
	unsigned int vec;
	struct cpu *c;

	if (!bh_event_read(&e, line) || e.cpu >= CPUS) {
		nlost += !!strstr(line, "LOST");
		return;
	}
	c = &cpus[e.cpu];
	flags_tell |= !!strchr("Db", e.flags[0]);
	passes(c, e.at);
	if (!strcmp(e.name, "hrtimer_expire_entry")) {
		if (!strchr("Db", e.flags[0]) && !strchr("HsZz", e.flags[2]))
			found_on(c);
		return;
	}
	if (!strcmp(e.name, "sched_switch") || !strcmp(e.name, "sched_waking")) {
		stretch_is_over(c);
		return;
	}
	if (sscanf(e.text, "vec=%u", &vec) != 1 || vec > 31)
		return;
	if (!strcmp(e.name, "softirq_raise"))
		raised(c, vec, has_them_off(e.flags));
	else if (!strcmp(e.name, "softirq_entry"))
		entered(c, vec);
	else if (!strcmp(e.name, "softirq_exit"))
		left(c);
}

/* events of a processor for which there was no room */
static unsigned long dropped(int cpu)
{
	unsigned long n, sum = 0;
	char path[256], line[128];
	FILE *f;

	snprintf(path, sizeof(path), INSTANCE "/per_cpu/cpu%d/stats", cpu);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "overrun: %lu", &n) == 1 || sscanf(line, "commit overrun: %lu", &n) == 1 ||
		    sscanf(line, "dropped events: %lu", &n) == 1)
			sum += n;
	if (f)
		fclose(f);
	return sum;
}

static void read_cpu(int cpu)
{
	char path[256], line[512];
	FILE *f;

	snprintf(path, sizeof(path), INSTANCE "/per_cpu/cpu%d/trace", cpu);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (line[0] != '#')
			event(line);
	fclose(f);
	nlost += dropped(cpu);
}

static void tell_away(const char *where, const struct away *a)
{
	printf("# %s: %.0f ms, and away %lu times, for %.0f ms, %.0f us at the longest\n", where, a->there * 1e3, a->times, a->sum * 1e3,
	       a->longest * 1e6);
}

static void report(double bound)
{
	int i;

	for (i = 0; i < CPUS; i++)
		read_cpu(i);
	if (!nstretches)
		vt_die(VT_WRONG, "no stretch was seen");
	if (nlost)
		vt_die(VT_WRONG, "events were lost: %lu", nlost);
	if (!beats_were_due())
		vt_die(VT_WRONG, "too slow a machine: no interrupts to tell its time by");
	printf("# %lu stretches, %lu of them surely over 1 ms, %lu over 2, one of %.0f us and perhaps one of %.0f\n", nstretches,
	       nlong[0], nlong[1], surest * 1e6, most * 1e6);
	tell_away("in stretches", &inside);
	tell_away("between them", &between);
	if (surest > bound) {
		printf("# in the longest, of %.0f us, on processor %d at %.6f s:\n", surest * 1e6, longest.cpu, longest.from);
		bh_who_tell(longest.cpu, longest.from, longest.to);
	}
	printf("bh_off: %.0f %.0f %.0f\n", surest * 1e6, most * 1e6, most_away * 1e6);
}

int main(int argc, char **argv)
{
	beats_begin();
	bh_who_begin();
	trace_begin();
	puts("# ready");
	fflush(stdout);
	getchar();
	put("tracing_on", "0");
	bh_who_stop();
	report(argc > 1 ? atof(argv[1]) / 1e6 : HUGE_VAL);
	bh_who_end();
	put("events/enable", "0");
	if (rmdir(INSTANCE))
		vt_die(VT_WRONG, "the trace events stay: %s", strerror(errno));
	return VT_OK;
}
