// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * fuzz_verbs: processes of two users that try everything at once.
 *
 *	fuzz_verbs -d DEVICE -i IP [-D DEVICE -I IP] [-s SEED] [-t SECONDS] [-w PATIENCE] [-e END] [-x ROLE]... [-n|-N] [-f] [-1] [-v]
 *	fuzz_verbs -g		its generator, see fuzz_verbs.seeds
 *
 * For SECONDS all commands of uverbs, their rings and the memory of their regions, from several threads of several
 * processes, one half root's and one half uid 65534's, with objects of their own, of each other and of nobody. END says
 * how they come to their end: "stop", "kill" or "some" (killed one after the other), or the seed does. -x leaves out
 * what one kind of step does, -N has some memory whose pages never come, -n none, -f leaves files as long as they are,
 * without holes, -1 has one worker with one thread only, -v prints each call.
 *
 * The kernel's log is the judge. Here it is enough that no call takes longer than PATIENCE seconds, that everybody dies
 * who is killed, and that memory which nobody had a right to does not change.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define NOBODY 65534
struct fz_board *board;

static double seconds = 5, patience = 10;
static bool single;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* --- calls that are watched, memory that may not be there ------------------------------ */

void fz_begin(struct fz_thread *t, const char *what, uint64_t arg)
{
	struct fz_call *c = &t->beat->trace[t->beat->calls % FZ_TRACE];

	*c = (struct fz_call){ what, arg, 1 };
	atomic_store_explicit(&t->beat->since, now_ns(), memory_order_relaxed);
}

void fz_end(struct fz_thread *t, int64_t result)
{
	struct fz_call *c = &t->beat->trace[t->beat->calls % FZ_TRACE];

	c->result = result;
	if (board->verbose)
		fprintf(stderr, "%d %s %#lx: %ld\n", (int)(t->beat - board->beat), c->what, (unsigned long)c->arg,
			(long)result);
	t->beat->calls++;
	atomic_store_explicit(&t->beat->since, 0, memory_order_relaxed);
}

static __thread sigjmp_buf *escape;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	if (escape)
		siglongjmp(*escape, 1);
	/* not one of those that are expected: die of it */
	signal(sig, SIG_DFL);
}

bool fz_try(void (*fn)(void *arg), void *arg)
{
	sigjmp_buf env;
	bool ok = false;

	if (!sigsetjmp(env, 0)) {
		escape = &env;
		fn(arg);
		ok = true;
	}
	escape = NULL;
	return ok;
}

struct copy {
	void *to;
	const void *from;
	size_t len;
};

static void copy(void *arg)
{
	struct copy *c = arg;

	memcpy(c->to, c->from, c->len);
}

bool fz_copy(void *to, const void *from, size_t len)
{
	struct copy c = { to, from, len };

	return fz_try(copy, &c);
}

/* --- threads ---------------------------------------------------------------------------- */

static const struct role {
	const char *name;
	void (*step)(struct fz_thread *t);
	uint32_t weight;
} roles[] = {
	{ "command", fz_command_step, 5 },
	{ "method", fz_method_step, 3 },
	{ "connect", fz_connect_step, 8 },
	{ "post", fz_post_step, 12 },
	{ "scribble", fz_scribble_step, 4 },
	{ "consume", fz_consume_step, 4 },
	{ "memory", fz_memory_step, 4 },
	{ "raw", fz_raw_step, 4 },
	{ "babble", fz_babble_step, 1 },
};

static const struct role *some_role(struct fz_thread *t)
{
	uint32_t i, at, sum = 0;

	for (i = 0; i < ARRAY_SIZE(roles); i++)
		sum += board->roles & 1u << i ? roles[i].weight : 0;
	at = fz_below(t, sum);
	for (i = 0;; i++) {
		if (!(board->roles & 1u << i))
			continue;
		if (at < roles[i].weight)
			return &roles[i];
		at -= roles[i].weight;
	}
}

/* A shift of one kind of work, and then another: so there is much of each at a time */
static void shift(struct fz_thread *t)
{
	const struct role *r = some_role(t);
	uint32_t n = 1 + fz_below(t, fz_once(t, 4) ? 200 : 20);

	t->wild = fz_once(t, 12) ? 128 : fz_once(t, 8) ? 24 : fz_once(t, 2) ? 0 : 6;
	while (n-- && !atomic_load_explicit(&board->stop, memory_order_relaxed)) {
		r->step(t);
		t->beat->steps++;
	}
}

static void *thread(void *arg)
{
	struct fz_thread *t = arg;
	uint32_t i;

	t->beat->pid = getpid();
	t->beat->tid = syscall(SYS_gettid);
	for (i = 0; i < 2; i++)
		fz_furnish(t, fz_some_ctx(t));
	while (!atomic_load(&board->stop))
		shift(t);
	fz_memory_end(t);
	return NULL;
}

/* --- workers ---------------------------------------------------------------------------- */

static void become_nobody(void)
{
	struct rlimit some = { 64 << 20, 64 << 20 };

	setrlimit(RLIMIT_MEMLOCK, &some);
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		vt_die(VT_SETUP, "cannot be uid %d: %s", NOBODY, strerror(errno));
	/* with which /proc shows it to the warden only, who is root */
	prctl(PR_SET_DUMPABLE, 1);
}

static void handle_faults(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
}

/* The lowest files are taken, so that those which come and go have other numbers than those which do not */
static void take_low_files(void)
{
	int fd = open("/dev/null", O_RDONLY);

	while (fd >= 0 && fd < FZ_LOW_FILES)
		fd = dup(fd);
	close(fd);
}

static void open_context(struct fz_ctx *c)
{
	struct uv_context u = uv_open(board->dev[c->dev].path);

	/* what a sibling inherits has the same numbers there */
	fcntl(u.fd, F_SETFD, 0);
	fcntl(u.doorbell, F_SETFD, 0);
	c->fd = u.fd;
	c->doorbell = u.doorbell;
}

static void run_threads(int user, int process)
{
	int i, n = single ? 1 : FZ_THREADS;
	struct fz_thread t[FZ_THREADS] = {};
	pthread_t threads[FZ_THREADS];

	for (i = 0; i < n; i++) {
		t[i].rng.state = vt_mix(board->seed ^ vt_mix(1 + process * FZ_THREADS + i));
		t[i].user = user;
		t[i].process = process;
		t[i].beat = &board->beat[process * FZ_THREADS + i];
		if (!i)
			fz_memory_start(&t[0]);
	}
	take_low_files();
	for (i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, thread, &t[i]);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

/* The first of a user opens the devices, and the others inherit that */
static void work(int user, int first_file)
{
	pid_t warden = getppid(), siblings[FZ_PROCS] = {};
	bool failed = false;
	int i, status;

	close_range(3, first_file - 1, 0);
	if (user)
		become_nobody();
	handle_faults();
	for (i = 0; i < board->ndevs; i++)
		open_context(&board->ctx[user * FZ_DEVS + i]);
	for (i = 1; i < (single ? 1 : FZ_PROCS); i++) {
		siblings[i] = fork();
		if (siblings[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_threads(user, user * FZ_PROCS + i);
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != warden)
		_exit(1);
	run_threads(user, user * FZ_PROCS);
	/* they die with this process */
	for (i = 1; i < FZ_PROCS; i++)
		if (siblings[i] > 0 && waitpid(siblings[i], &status, 0) > 0)
			failed |= WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
	_exit(failed ? VT_WRONG : 0);
}

/* --- the victim: what nobody else has a right to -------------------------------------------- */

#define VICTIM 65536

struct victim {
	struct vt_dev dev;
	struct ibv_mr *mr, *probe;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
};

static struct victim victims[FZ_DEVS];

static void victim_qps(struct victim *v)
{
	struct vt_conn conn = { .mtu = IBV_MTU_1024, .rd_atomic = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				.min_rnr_timer = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	int i;

	v->cq = ibv_create_cq(v->dev.ctx, 8, NULL, NULL, 0);
	init.send_cq = v->cq;
	init.recv_cq = v->cq;
	for (i = 0; i < 2; i++) {
		v->qp[i] = v->cq ? ibv_create_qp(v->dev.pd, &init) : NULL;
		if (!v->qp[i])
			vt_die(VT_SETUP, "the victim's queue pair: %s", strerror(errno));
	}
	for (i = 0; i < 2; i++) {
		conn.peer = (struct vt_addr){ .qpn = v->qp[!i]->qp_num, .psn = 77, .gid = v->dev.gid };
		conn.sq_psn = 77;
		if (vt_to_init(v->qp[i], VT_REMOTE_ACCESS) || vt_to_rtr(v->qp[i], &v->dev, &conn) ||
		    vt_to_rts(v->qp[i], &conn))
			vt_die(VT_SETUP, "the victim's queue pair to RTS");
	}
}

static void make_victim(struct victim *v, struct fz_dev *dev, const char *ip)
{
	vt_open(&v->dev, dev->name, ip, -1);
	v->mr = vt_mr(&v->dev, VICTIM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS | IBV_ACCESS_MW_BIND);
	v->probe = vt_mr(&v->dev, 4096, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	vt_pattern(v->mr->addr, 1, 0, VICTIM);
	victim_qps(v);
	memcpy(dev->gid, v->dev.gid.raw, 16);
	dev->gid_index = v->dev.gid_index;
	dev->victim_key = v->mr->rkey;
	dev->victim_addr = (uintptr_t)v->mr->addr;
	dev->victim_qpn[0] = v->qp[0]->qp_num;
	dev->victim_qpn[1] = v->qp[1]->qp_num;
	if (!uv_path(dev->name, dev->path, sizeof(dev->path)))
		vt_die(VT_SETUP, "no character device of %s", dev->name);
}

/* of a device that is still there */
static bool victim_works(struct victim *v)
{
	struct ibv_sge sge = { (uintptr_t)v->probe->addr, 64, v->probe->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { (uintptr_t)v->probe->addr + 1024, v->probe->rkey } };
	double end = vt_now() + patience;
	struct ibv_wc wc;

	if (ibv_post_send(v->qp[0], &wr, &bad))
		return false;
	while (vt_now() < end)
		if (ibv_poll_cq(v->cq, 1, &wc) == 1)
			return wc.status == IBV_WC_SUCCESS;
	return false;
}

static void check_victim(struct victim *v, const struct fz_dev *dev)
{
	static uint8_t right[VICTIM];
	struct ibv_device_attr attr;

	vt_pattern(right, 1, 0, VICTIM);
	vt_check(!memcmp(v->mr->addr, right, VICTIM), "%s: memory that only its owner had a key for did not change",
		 dev->name);
	if (!ibv_query_device(v->dev.ctx, &attr))
		vt_check(victim_works(v), "%s: its queue pairs go on working", dev->name);
}

/* --- the warden ------------------------------------------------------------------------------ */

static pid_t leaders[FZ_USERS];

static void print_file(const char *dir, const char *name)
{
	char path[128], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		printf("#   %s: %s%s", name, line, strchr(line, '\n') ? "" : "\n");
	fclose(f);
}

static void print_process(const char *pid)
{
	char dir[64], task[352];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%.20s/task", pid);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(task, sizeof(task), "%s/%s", dir, e->d_name);
		printf("# thread %s of process %s\n", e->d_name, pid);
		print_file(task, "wchan");
		print_file(task, "stack");
	}
	if (d)
		closedir(d);
}

/* where everybody of this program is: who hangs may be waiting for another one */
static void print_processes(void)
{
	DIR *d = opendir("/proc");
	char path[300], comm[32];
	struct dirent *e;
	FILE *f;

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = atoi(e->d_name) == getpid() ? NULL : fopen(path, "re");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strncmp(comm, "fuzz_verbs", 10))
			print_process(e->d_name);
		fclose(f);
	}
	if (d)
		closedir(d);
}

static void print_trace(const struct fz_beat *b)
{
	uint32_t i, from = b->calls < FZ_TRACE ? 0 : b->calls - FZ_TRACE + 1;

	for (i = from; i <= b->calls; i++)
		printf("#   %s %#lx: %ld\n", b->trace[i % FZ_TRACE].what ?: "-", (unsigned long)b->trace[i % FZ_TRACE].arg,
		       (long)b->trace[i % FZ_TRACE].result);
}

/* what those have done last who have not come to their end */
static void print_living(void)
{
	int i;

	for (i = 0; i < FZ_BEATS; i++) {
		struct fz_beat *b = &board->beat[i];

		if (!b->pid || syscall(SYS_tgkill, b->pid, b->tid, 0))
			continue;
		printf("# thread %d (%d of process %d), %lu steps, %s; its last calls:\n", i, b->tid, b->pid,
		       (unsigned long)b->steps, atomic_load(&b->since) ? "in a call" : "in none");
		print_trace(b);
	}
	for (i = 0; i < FZ_USERS * FZ_PROCS; i++)
		printf("# pager %d of worker %d: %u pages, in the end %#lx: %ld\n", board->pager[i], i, board->answers[i],
		       (unsigned long)board->brought[i].arg, (long)board->brought[i].result);
}

/* Is there a call that has taken too long? Said once. */
static bool stuck(void)
{
	uint64_t limit = patience * 1e9, since, now = now_ns();
	int i;

	for (i = 0; i < FZ_BEATS; i++) {
		since = atomic_load(&board->beat[i].since);
		if (!since || now < since + limit)
			continue;
		/* one that was killed in it is not in it any more */
		if (syscall(SYS_tgkill, board->beat[i].pid, board->beat[i].tid, 0))
			continue;
		printf("# thread %d: in one call for %.1f s; its last ones:\n", i, (now - since) / 1e9);
		print_trace(&board->beat[i]);
		print_processes();
		return true;
	}
	return false;
}

static bool there(pid_t pid)
{
	return pid > 0 && !kill(pid, 0);
}

/* Is one of the workers there still? A death that nobody has ordered is a fault */
static bool reap(bool ordered)
{
	bool alive = false;
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (WIFSIGNALED(status) && !(ordered && WTERMSIG(status) == SIGKILL))
			vt_check(false, "worker %d died of signal %d", pid, WTERMSIG(status));
		else if (WIFEXITED(status) && WEXITSTATUS(status) && WEXITSTATUS(status) != VT_SETUP)
			vt_check(false, "worker %d ended with status %d", pid, WEXITSTATUS(status));
	}
	for (i = 0; i < FZ_USERS; i++)
		alive |= there(leaders[i]);
	for (i = 0; i < FZ_BEATS; i++)
		alive |= there(board->beat[i].pid);
	return alive;
}

static void kill_all(void)
{
	int i;

	for (i = 0; i < FZ_USERS; i++)
		if (leaders[i] > 0)
			kill(leaders[i], SIGKILL);
	for (i = 0; i < FZ_BEATS; i++)
		if (board->beat[i].pid)
			kill(board->beat[i].pid, SIGKILL);
}

static void kill_one(uint32_t which)
{
	pid_t pid = board->beat[which % FZ_BEATS].pid;

	if (pid)
		kill(pid, SIGKILL);
}

/* everybody has to be gone soon */
static void end_workers(bool killed)
{
	double end = vt_now() + 2 * patience;
	bool hang = false;

	atomic_store(&board->stop, true);
	if (killed)
		kill_all();
	while (reap(killed) && vt_now() < end && !hang) {
		hang = stuck();
		usleep(10000);
	}
	if (reap(killed) && !killed) {
		vt_check(false, "workers come to their end when they are asked to");
		print_living();
		print_processes();
		kill_all();
		for (end = vt_now() + 2 * patience; reap(true) && vt_now() < end;)
			usleep(10000);
	}
	if (reap(true)) {
		vt_check(false, "workers that were killed are gone");
		print_processes();
	}
}

static void kill_pagers(void)
{
	int i;

	for (i = 0; i < FZ_USERS * FZ_PROCS; i++)
		if (board->pager[i] > 0)
			kill(board->pager[i], SIGKILL);
	if (board->file_system > 0)
		kill(board->file_system, SIGKILL);
}

static void watch(const char *how)
{
	double start = vt_now(), end = start + seconds, next = start + seconds / 8;
	bool some = !strcmp(how, "some"), hang = false, killed = some || !strcmp(how, "kill");
	struct vt_rng rng = { vt_mix(board->seed + 7) };

	while (vt_now() < end && !hang && reap(some)) {
		hang = stuck();
		if (some && vt_now() > next) {
			kill_one(vt_rand(&rng));
			next += seconds / 8;
		}
		usleep(50000);
	}
	vt_check(!hang, "no call takes longer than %g seconds", patience);
	end_workers(killed || hang);
	kill_pagers();
}

/* "# memory: NAME=TIMES ...", of secret memory only where this kernel knows it */
static void tell_deeds(const struct fz_beat *sum)
{
#define NAME(name) #name,
	static const char *const names[] = { FZ_DEEDS(NAME) };
	int i;

	printf("# memory:");
	for (i = 0; i < FZ_DEEDS_END; i++)
		if (i != FZ_DID_secret || board->have_secret)
			printf(" %s=%lu", names[i], (unsigned long)sum->did[i]);
	puts("");
}

/* "# WHAT: NAME=TIMES ...", with no blanks in the names, without what this kernel does not have */
static void tell_calls(const char *what, const char *(*name)(uint32_t i), const uint64_t *times, const bool *lacking)
{
	const char *at;
	uint32_t i;

	printf("# %s:", what);
	for (i = 0; name(i); i++) {
		if (lacking[i])
			continue;
		putchar(' ');
		for (at = name(i); *at; at++)
			putchar(*at == ' ' ? '_' : *at);
		printf("=%lu", (unsigned long)times[i]);
	}
	puts("");
}

/* Of flushing only where this kernel has regions for it */
static void tell_completed(const struct fz_beat *sum)
{
	static const char *const opcodes[256] = {
		[IBV_WC_SEND] = "send", [IBV_WC_RDMA_WRITE] = "write", [IBV_WC_RDMA_READ] = "read", [IBV_WC_COMP_SWAP] = "swap",
		[IBV_WC_FETCH_ADD] = "add", [IBV_WC_BIND_MW] = "bind", [IBV_WC_LOCAL_INV] = "invalidate", [IBV_WC_TSO] = "tso",
		[8] = "flush", [9] = "atomic_write", [IBV_WC_RECV] = "recv", [IBV_WC_RECV_RDMA_WITH_IMM] = "recv_write",
		[IBV_WC_TM_RECV] = "tag_recv", [IBV_WC_TM_NO_TAG] = "no_tag",
	};
	static const char *const types[FZ_TYPES] = {
		[IB_UVERBS_QPT_RC] = "RC", [IB_UVERBS_QPT_UC] = "UC", [IB_UVERBS_QPT_UD] = "UD", [IB_UVERBS_QPT_RAW_PACKET] = "raw",
		[IB_UVERBS_QPT_XRC_INI] = "XRC_INI", [IB_UVERBS_QPT_XRC_TGT] = "XRC_TGT",
	};
	int i;

	printf("# completed:");
	for (i = 0; i < 256; i++)
		if (opcodes[i] && (i != 8 || sum->flushable))
			printf(" %s=%lu", opcodes[i], (unsigned long)sum->completed[i]);
	for (i = 0; i < FZ_TYPES; i++)
		if (types[i])
			printf(" %s=%lu", types[i], (unsigned long)sum->types[i]);
	puts("");
}

static void tell_commands_and_methods(const struct fz_beat *sum)
{
	bool lacking[FZ_CALLS_MOST] = {};
	uint32_t i;

	tell_calls("commands", fz_command_name, sum->commands, lacking);
	/* A method that is known is told so, too, when its attributes are not: but not each time */
	for (i = 0; i < FZ_CALLS_MOST; i++)
		lacking[i] = sum->unknown[i] && sum->unknown[i] == sum->asked[i];
	tell_calls("methods", fz_method_name, sum->methods, lacking);
}

static void summary(void)
{
	struct fz_beat sum = {};
	uint64_t completed = 0;
	int i, j;

	for (i = 0; i < FZ_BEATS; i++) {
		struct fz_beat *b = &board->beat[i];

		sum.steps += b->steps;
		sum.good += b->good;
		sum.refused += b->refused;
		sum.posted += b->posted;
		sum.calm += b->calm;
		sum.rung += b->rung;
		sum.failed += b->failed;
		sum.crashed += b->crashed;
		for (j = 0; j < 256; j++)
			sum.completed[j] += b->completed[j];
		for (j = 0; j < FZ_TYPES; j++)
			sum.types[j] += b->types[j];
		for (j = 0; j < FZ_CALLS_MOST; j++) {
			sum.commands[j] += b->commands[j];
			sum.methods[j] += b->methods[j];
			sum.asked[j] += b->asked[j];
			sum.unknown[j] += b->unknown[j];
		}
		sum.flushable += b->flushable;
		for (j = 0; j < FZ_RESIZE_STEPS; j++)
			sum.resized[j] += b->resized[j];
		sum.paced += b->paced;
		for (j = 0; j < FZ_KINDS; j++)
			sum.made[j] += b->made[j];
		sum.shares += b->shares;
		sum.frames += b->frames;
		sum.implicit += b->implicit;
		sum.lent += b->lent;
		sum.devices += b->devices;
		for (j = 0; j < FZ_DEEDS_END; j++)
			sum.did[j] += b->did[j];
	}
	for (j = 0; j < 256; j++)
		completed += sum.completed[j];
	printf("# %lu steps, %lu commands carried out, %lu refused, %lu work requests (%lu calm), %lu doorbells, %lu completed, %lu failed\n",
	       (unsigned long)sum.steps, (unsigned long)sum.good, (unsigned long)sum.refused, (unsigned long)sum.posted, (unsigned long)sum.calm,
	       (unsigned long)sum.rung, (unsigned long)completed, (unsigned long)sum.failed);
	printf("# %lu rings prepared, %lu moved to, %lu given up; %lu rates\n",
	       (unsigned long)sum.resized[SROCE_RESIZE_PREPARE], (unsigned long)sum.resized[SROCE_RESIZE_MOVE],
	       (unsigned long)sum.resized[SROCE_RESIZE_CANCEL], (unsigned long)sum.paced);
	printf("# %lu work queues, %lu tables, %lu queue pairs of such, %lu flows, %lu frames received\n",
	       (unsigned long)sum.made[FZ_WQ], (unsigned long)sum.made[FZ_TABLE], (unsigned long)sum.shares,
	       (unsigned long)sum.made[FZ_FLOW], (unsigned long)sum.frames);
	printf("# %lu regions of all addresses, %lu of a dma-buf, %lu of device memory; %u processes open to all\n",
	       (unsigned long)sum.implicit, (unsigned long)sum.lent, (unsigned long)sum.devices, atomic_load(&board->houses));
	tell_deeds(&sum);
	tell_commands_and_methods(&sum);
	tell_completed(&sum);
	vt_check(!sum.crashed, "no child of a worker has crashed");
	vt_check(sum.good > 20 && sum.posted > 20, "there was something to do for the kernel");
}

static void find_secret(void)
{
	int fd = fz_memfd_secret();

	board->have_secret = fd >= 0 || errno != ENOSYS;
	if (fd >= 0)
		close(fd);
}

static void open_buffer(void)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = FZ_BUFFER };
	struct dma_buf_sync access = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	/* without it the file is there all the same, for memory */
	board->buffer_file = memfd_create("buffer", MFD_ALLOW_SEALING);
	if (ftruncate(board->buffer_file, FZ_BUFFER) || fcntl(board->buffer_file, F_ADD_SEALS, F_SEAL_SHRINK))
		vt_die(VT_SETUP, "memfd: %s", strerror(errno));
	create.memfd = board->buffer_file;
	board->buffer = ioctl(dev, UDMABUF_CREATE, &create);
	close(dev);
	/* Of the first who begin to access it, two at once make a list each, and udmabuf forgets one: Documentation/security.md */
	ioctl(board->buffer, DMA_BUF_IOCTL_SYNC, &access);
	access.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	ioctl(board->buffer, DMA_BUF_IOCTL_SYNC, &access);
}

static void start_workers(void)
{
	/* the files up to here are the victim's */
	int i, first = open("/dev/null", O_RDONLY);

	board->xrc_file = memfd_create("xrc", 0);
	find_secret();
	open_buffer();
	board->missing_dev = open("/dev/userfaultfd", O_RDWR);
	board->file_system = fz_fuse_start(&board->late, &board->never);
	for (i = 0; i < board->ndevs; i++)
		open_context(&board->ctx[FZ_OWN + i]);
	for (i = 0; i < (single ? 1 : FZ_USERS); i++) {
		leaders[i] = fork();
		if (!leaders[i])
			work(i, first);
	}
	/* the workers' contexts are to go with them */
	close_range(first, ~0u, 0);
}

static void prepare(const char *const *ip)
{
	int i;

	fz_rings_reserve();
	fz_memory_reserve();
	for (i = 0; i < FZ_CTXS; i++) {
		board->ctx[i].fd = -1;
		board->ctx[i].doorbell = -1;
		board->ctx[i].dev = i % FZ_DEVS;
	}
	for (i = 0; i < board->ndevs; i++)
		make_victim(&victims[i], &board->dev[i], ip[i]);
}

static void leave_out(const char *role)
{
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(roles); i++)
		if (!strcmp(roles[i].name, role))
			board->roles &= ~(1u << i);
}

int main(int argc, char **argv)
{
	static const char *const ends[] = { "stop", "kill", "kill", "some" };
	const char *ip[FZ_DEVS] = {}, *how = NULL;
	int opt, i, never = -1;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		vt_die(VT_SETUP, "no board: %s", strerror(errno));
	setvbuf(stdout, NULL, _IONBF, 0);
	board->roles = ~0u;
	board->seed = time(NULL);
	while ((opt = getopt(argc, argv, "d:i:D:I:s:t:w:e:x:nNf1vg")) != -1) {
		switch (opt) {
		case 'd': snprintf(board->dev[0].name, 64, "%s", optarg); break;
		case 'D': snprintf(board->dev[1].name, 64, "%s", optarg); break;
		case 'i': ip[0] = optarg; break;
		case 'I': ip[1] = optarg; break;
		case 's': board->seed = strtoull(optarg, NULL, 0); break;
		case 't': seconds = atof(optarg); break;
		case 'w': patience = atof(optarg); break;
		case 'e': how = optarg; break;
		case 'x': leave_out(optarg); break;
		case 'n': never = 0; break;
		case 'N': never = 1; break;
		case 'f': board->whole_files = true; break;
		case '1': single = true; break;
		case 'v': board->verbose = true; break;
		case 'g': puts(GENERATOR); return VT_OK;
		default: vt_die(VT_SETUP, "see the top of fuzz_verbs.c");
		}
	}
	board->ndevs = board->dev[1].name[0] ? 2 : 1;
	how = how ? how : ends[vt_mix(board->seed) % ARRAY_SIZE(ends)];
	if (never < 0)
		never = !(vt_mix(board->seed + 1) & 3);
	board->some_never = never;
	printf("# seed %lu, end: %s%s\n", (unsigned long)board->seed, how, never ? ", some memory never comes" : "");
	/* orphans of workers that were killed, too */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prepare(ip);
	start_workers();
	puts("# begun");
	watch(how);
	summary();
	vt_check(fz_memory_intact(), "memory that nobody has registered did not change");
	for (i = 0; i < board->ndevs; i++)
		check_victim(&victims[i], &board->dev[i]);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
