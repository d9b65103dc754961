// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * bh_off: for how long bottom halves are off at a stretch, from "# ready" until a line was read, as the kernel's own trace
 * events tell: somebody asks for a softirq (irq:softirq_raise), and it begins and ends (irq:softirq_entry, irq:softirq_exit).
 * That wants neither a tracer of latencies, which few kernels have, nor the driver.
 *
 * So that somebody asks, whatever a processor is busy with, each has a TCP connection to itself whose packets are paced:
 * an interrupt asks for the softirq that sends the next one, about once in a millisecond.
 *
 * A stretch begins where a softirq is asked for, by a process that has bottom halves off or by an interrupt, or where one
 * begins. It ends with the last softirq of a pass over those that were asked for by then; what is asked for meanwhile is
 * for the next pass, which is a stretch of its own: whether there is one at once, or the scheduler comes first, the kernel
 * decides. Where a processor is given to another task bottom halves are on.
 *
 * The last line is "bh_off: US". A machine below may let something else run in place of a processor at any time, and does not
 * tell, which makes some stretches longer. So the time of each processor is cut into windows. A window is busy when bottom
 * halves were off for a quarter of it, as far as is known, and of the longest stretch of each busy window it is the least:
 * what a load does again and again is in all of them. It is 0 when hardly any window is busy.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vt.h"

#define TRACEFS "/sys/kernel/tracing"
#define INSTANCE TRACEFS "/instances/sroce_bh_off"
#define BUFFER_KIB "24576"
#define MOST_WINDOWS 16384
#define BUSY 0.25
/* With fewer busy windows, what makes them busy may be the machine below */
#define FEW 0.1
/* Of the connections: what is sent at once is what may be in a millisecond, or two segments */
#define RATE 400000u
#define SEGMENT 200

/* Seconds */
#define WINDOW 0.02

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

static void beats_begin(void)
{
	int cpu, cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (cpu = 0; cpu < cpus; cpu++)
		if (!fork())
			beat(cpu);
}

/* --- tracefs ---------------------------------------------------------------------------- */

static bool try_put(const char *file, const char *value)
{
	char path[256];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), INSTANCE "/%s", file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return ok;
}

static void put(const char *file, const char *value)
{
	if (!try_put(file, value))
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
	put("events/sched/sched_switch/enable", "1");
	put("events/sched/sched_waking/filter", "comm ~ \"ksoftirqd*\"");
	put("events/sched/sched_waking/enable", "1");
	put("tracing_on", "1");
}

/* --- what a processor did ------------------------------------------------------------------- */

static struct cpu {
	bool open;
	unsigned int asked, pass;	/* softirqs asked for; those of this pass that have not begun */
	bool running;	/* a pass */
	double began;	/* the stretch */
	double window;	/* the end of it */
	double longest, sum;	/* in it */
} cpus[CPUS];

static double maxima[MOST_WINDOWS];
static unsigned int nmaxima, nwindows, nlost;
static unsigned long nstretches, nlong[2];
static double most;

static void window_ends(struct cpu *c)
{
	nwindows++;
	if (c->sum >= BUSY * WINDOW && nmaxima < MOST_WINDOWS)
		maxima[nmaxima++] = c->longest;
	c->longest = 0;
	c->sum = 0;
}

static void stretch(struct cpu *c, double now)
{
	double took = now - c->began;

	if (now >= c->window) {
		window_ends(c);
		c->window = now + WINDOW;
	}
	c->longest = max(c->longest, took);
	c->sum += took;
	most = max(most, took);
	nstretches++;
	nlong[0] += took > 1e-3;
	nlong[1] += took > 2e-3;
}

static void stretch_begins(struct cpu *c, double now)
{
	if (c->open)
		return;
	c->open = true;
	c->began = now;
}

/* Bottom halves are on */
static void stretch_is_over(struct cpu *c)
{
	c->open = false;
	c->running = false;
}

/* @off: by somebody who has them off, or by an interrupt */
static void raised(struct cpu *c, unsigned int vec, bool off, double now)
{
	c->asked |= 1u << vec;
	if (off)
		stretch_begins(c, now);
}

static void entered(struct cpu *c, unsigned int vec, double now)
{
	if (!c->running || !(c->pass & 1u << vec)) {
		/* A pass that follows another one */
		if (c->running)
			c->began = now;
		c->pass = c->asked | 1u << vec;
		c->asked = 0;
	}
	stretch_begins(c, now);
	c->running = true;
	c->pass &= ~(1u << vec);
}

static void left(struct cpu *c, double now)
{
	if (!c->open || !c->running || c->pass)
		return;
	stretch(c, now);
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

/* "COMM-PID [CPU] FLAGS SECONDS: EVENT: ..." */
static void event(char *line)
{
	char *at = strstr(line, " ["), flags[16], name[32];
	unsigned int cpu, vec;
	double now;
	int n = 0;

	while (at && sscanf(at, " [%u] %15s %lf: %31[^:]: %n", &cpu, flags, &now, name, &n) != 4)
		at = strstr(at + 1, " [");
	if (!at || cpu >= CPUS) {
		nlost += !!strstr(line, "LOST");
		return;
	}
	if (!strcmp(name, "sched_switch") || !strcmp(name, "sched_waking")) {
		stretch_is_over(&cpus[cpu]);
		return;
	}
	if (sscanf(at + n, "vec=%u", &vec) != 1 || vec > 31)
		return;
	if (!strcmp(name, "softirq_raise"))
		raised(&cpus[cpu], vec, has_them_off(flags), now);
	else if (!strcmp(name, "softirq_entry"))
		entered(&cpus[cpu], vec, now);
	else if (!strcmp(name, "softirq_exit"))
		left(&cpus[cpu], now);
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
	window_ends(&cpus[cpu]);
	fclose(f);
}

static int by_size(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

static void report(void)
{
	int i;

	for (i = 0; i < CPUS; i++)
		read_cpu(i);
	if (!nstretches)
		vt_die(VT_WRONG, "no stretch was seen");
	qsort(maxima, nmaxima, sizeof(*maxima), by_size);
	printf("# %lu stretches, %lu of them over 1 ms, %lu over 2, one of %.0f us", nstretches, nlong[0], nlong[1], most * 1e6);
	printf("; %u of %u windows are busy", nmaxima, nwindows);
	if (nmaxima)
		printf(": least %.0f, a quarter %.0f, half %.0f us", maxima[0] * 1e6, maxima[nmaxima / 4] * 1e6,
		       maxima[nmaxima / 2] * 1e6);
	printf("; events were lost %u times\n", nlost);
	printf("bh_off: %.0f\n", nmaxima >= FEW * nwindows ? maxima[0] * 1e6 : 0);
}

int main(void)
{
	beats_begin();
	trace_begin();
	puts("# ready");
	fflush(stdout);
	getchar();
	put("tracing_on", "0");
	report();
	put("events/enable", "0");
	if (rmdir(INSTANCE))
		vt_die(VT_WRONG, "the trace events stay: %s", strerror(errno));
	return VT_OK;
}
