// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * odp: memory on demand. Every operation from and to pages that are not there, at any offset and length; memory
 * that goes away, comes back, is forked, dropped and swapped out under traffic; and advice on it.
 *
 *	odp -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] [-s]
 *
 * With REGIONS=implicit in the environment the regions are implicit ones, of all memory. As root.
 *
 * @a asks, @b answers; each has a region on demand and a pinned one.
 */
#define _GNU_SOURCE /* setresuid() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

/* of the machine's, 64 KiB at the most */
static size_t page_size;

#define PAGE page_size
#define ROOM (1024 * 1024)

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

#define ALL (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS)
#define DEMAND (ALL | IBV_ACCESS_ON_DEMAND)

/* on demand, and pinned */
struct side {
	char *memory;
	struct ibv_mr *mr, *pinned;
};

static struct side mine, theirs;

static void *map_at(void *addr, size_t size)
{
	void *p = mmap(addr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0),
		       -1, 0);

	if (p == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	return p;
}

/* regions are implicit ones, of all memory */
static bool implicit;

static struct ibv_mr *all_memory(struct end *e, int access)
{
	return ibv_reg_mr(e->dev->pd, NULL, SIZE_MAX, access);
}

static struct ibv_mr *demand_with(struct end *e, void *addr, size_t size, int access)
{
	struct ibv_mr *mr = implicit ? all_memory(e, access) : ibv_reg_mr(e->dev->pd, addr, size, access);

	/* what is named is relative to that, see at() */
	if (mr)
		mr->addr = addr;
	return mr;
}

static struct ibv_mr *demand(struct end *e, void *addr, size_t size)
{
	return demand_with(e, addr, size, DEMAND);
}

static void make_side(struct side *s, struct end *e)
{
	s->memory = map_at(NULL, ROOM);
	s->mr = demand(e, s->memory, ROOM);
	if (!s->mr)
		vt_die(VT_WRONG, "WRONG: reg mr on demand: %s", strerror(errno));
	s->pinned = vt_mr(e->dev, ROOM, ALL);
}

static struct place at(struct ibv_mr *mr, size_t offset)
{
	return (struct place){ (uintptr_t)mr->addr + offset, mr->rkey };
}

/* the pages go; what is read next is zeros */
static void drop(struct side *s)
{
	if (madvise(s->memory, ROOM, MADV_DONTNEED))
		vt_die(VT_SETUP, "madvise: %s", strerror(errno));
}

static void fresh(void)
{
	ends_fresh(IBV_QPT_RC);
}

/* --- every operation, cold -------------------------------------------------------------- */

static struct range {
	size_t offset, len;
} ranges[10];

static void find_ranges(void)
{
	const struct range all[] = {
		{ 0, 1 }, { 0, PAGE }, { PAGE - 1, 1 }, { PAGE - 1, 2 }, { 1, PAGE }, { 7, 3 * PAGE }, { PAGE, 65536 },
		{ 123, 300000 }, { 0, ROOM }, { ROOM - 1, 1 },
	};

	_Static_assert(sizeof(all) == sizeof(ranges), "as many as there is room for");
	memcpy(ranges, all, sizeof(ranges));
}

/*
 * On UML what another processor changes in this process's page tables takes effect with its next system call; who
 * only polls would go on seeing the page that the device's write has replaced. Everywhere else no call is made.
 */
static bool late_page_tables;

static void find_page_tables(void)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		late_page_tables |= strstr(line, "User Mode Linux") != NULL;
	if (f)
		fclose(f);
	if (late_page_tables)
		printf("# UML: a system call before each look at memory\n");
}

static bool same(const char *p, const char *q, size_t len, size_t offset, const char *name)
{
	size_t i;

	if (late_page_tables)
		sched_yield();
	for (i = 0; i < len && p[i] == q[i]; i++)
		;
	if (i < len)
		printf("# %s: %zu bytes at %zu differ from byte %zu on\n", name, len, offset, i);
	return i == len;
}

/* WRITE or READ of one range, from @from to @to, one of which is the peer's */
static bool moves(enum ibv_wr_opcode opcode, struct ibv_mr *local_mr, struct ibv_mr *remote_mr, size_t offset,
		  size_t len)
{
	char *from = opcode == IBV_WR_RDMA_READ ? remote_mr->addr : local_mr->addr;
	char *to = opcode == IBV_WR_RDMA_READ ? local_mr->addr : remote_mr->addr;
	struct ibv_wc wc;

	vt_pattern(from + offset, len + offset, offset, len);
	if (post_op(&a, 1, opcode, at(local_mr, offset), len, at(remote_mr, offset)) ||
	    !poll_one(a.send_cq, &wc, 10) || wc.status != IBV_WC_SUCCESS) {
		printf("# %zu bytes at %zu: %s\n", len, offset, ibv_wc_status_str(wc.status));
		return false;
	}
	return same(from + offset, to + offset, len, offset, "it");
}

static void rdma(const char *what, enum ibv_wr_opcode opcode, struct ibv_mr *local_mr, struct ibv_mr *remote_mr)
{
	size_t i;
	int bad = 0;

	fresh();
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		drop(&mine);
		drop(&theirs);
		bad += !moves(opcode, local_mr, remote_mr, ranges[i].offset, ranges[i].len);
	}
	vt_check(!bad, "%s (%d of %zu ranges wrong)", what, bad, i);
}

static void send_recv(const char *what, struct ibv_mr *from, struct ibv_mr *to)
{
	struct ibv_wc wc;
	int bad = 0;
	size_t i;

	fresh();
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		size_t offset = ranges[i].offset, len = ranges[i].len;

		drop(&mine);
		drop(&theirs);
		vt_pattern((char *)from->addr + offset, len, offset, len);
		post_recv(&b, 2, at(to, offset), len);
		if (post_op(&a, 1, IBV_WR_SEND, at(from, offset), len, at(to, offset)) ||
		    !poll_one(a.send_cq, &wc, 10) || wc.status != IBV_WC_SUCCESS ||
		    !poll_one(b.recv_cq, &wc, 10) || wc.status != IBV_WC_SUCCESS || wc.byte_len != len ||
		    !same((char *)from->addr + offset, (char *)to->addr + offset, len, offset, what)) {
			printf("# %s, %zu bytes at %zu: %s\n", what, len, offset, ibv_wc_status_str(wc.status));
			bad++;
		}
	}
	vt_check(!bad, "%s (%d of %zu ranges wrong)", what, bad, i);
}

static void atomics(void)
{
	uint64_t *there = (uint64_t *)(theirs.memory + PAGE - 8), *here = (uint64_t *)(mine.memory + 2 * PAGE);
	struct place from = at(mine.mr, 2 * PAGE), to = at(theirs.mr, PAGE - 8);

	fresh();
	drop(&mine);
	drop(&theirs);
	expect_op("FETCH_ADD, all cold", &a, IBV_WR_ATOMIC_FETCH_AND_ADD, from, 8, to, IBV_WC_SUCCESS);
	vt_check(*there == 1 && *here == 0, "FETCH_ADD: %lu, was %lu", (unsigned long)*there, (unsigned long)*here);
	*there = 41;
	drop(&mine);
	expect_op("FETCH_ADD, its sink cold", &a, IBV_WR_ATOMIC_FETCH_AND_ADD, from, 8, to, IBV_WC_SUCCESS);
	vt_check(*there == 42 && *here == 41, "FETCH_ADD, done once: %lu, was %lu", (unsigned long)*there,
		 (unsigned long)*here);
	drop(&mine);
	*here = 0x1122334455667788;
	drop(&theirs);
	expect_op("ATOMIC WRITE, cold", &a, IBV_WR_ATOMIC_WRITE, from, 8, to, IBV_WC_SUCCESS);
	vt_check(*there == 0x1122334455667788, "ATOMIC WRITE: %lx", (unsigned long)*there);
}

static void shared_receives(void)
{
	a.srq = vt_create_srq(a.dev, ENDS_DEPTH, 4);
	b.srq = vt_create_srq(b.dev, ENDS_DEPTH, 4);
	send_recv("SEND to a shared receive queue", mine.mr, theirs.mr);
	ends_stop();
	ibv_destroy_srq(a.srq);
	ibv_destroy_srq(b.srq);
	a.srq = b.srq = NULL;
}

static void datagrams(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	int i, bad = 0;

	ends_datagrams(&wr);
	for (i = 0; i < 20; i++) {
		drop(&mine);
		vt_pattern(mine.memory + PAGE - 96, i, 0, 500);
		sge = (struct ibv_sge){ (uintptr_t)mine.memory + PAGE - 96, 500, mine.mr->lkey };
		post_recv(&b, 2, local(theirs.pinned), 600);
		if (post_wr(&a, &wr) || !poll_one(a.send_cq, &wc, 5) || wc.status != IBV_WC_SUCCESS ||
		    !poll_one(b.recv_cq, &wc, 5) || wc.status != IBV_WC_SUCCESS ||
		    memcmp((char *)theirs.pinned->addr + 40, mine.memory + PAGE - 96, 500))
			bad++;
	}
	vt_check(!bad, "UD: sent from cold pages (%d of %d wrong)", bad, i);
	/* into cold pages: the first may be lost, but not the receive */
	drop(&theirs);
	post_recv(&b, 3, at(theirs.mr, 100), 600);
	for (i = 0; i < 10; i++) {
		post_wr(&a, &wr);
		poll_one(a.send_cq, &wc, 5);
		if (poll_one(b.recv_cq, &wc, 0.2))
			break;
	}
	vt_check(i < 10 && wc.status == IBV_WC_SUCCESS && wc.wr_id == 3 &&
		 !memcmp(theirs.memory + 140, mine.memory + PAGE - 96, 500), "UD: received into cold pages, after %d lost", i);
	ibv_destroy_ah(wr.wr.ud.ah);
	ends_stop();
}

/* --- memory that is not there, or is not ours to write -------------------------------------- */

static void gone(void)
{
	fresh();
	munmap(theirs.memory + 8 * PAGE, 2 * PAGE);
	expect_op("WRITE up to unmapped memory", &a, IBV_WR_RDMA_WRITE, at(mine.mr, 0), PAGE, at(theirs.mr, 7 * PAGE),
		  IBV_WC_SUCCESS);
	expect_op("WRITE into it", &a, IBV_WR_RDMA_WRITE, at(mine.mr, 0), PAGE + 1, at(theirs.mr, 7 * PAGE),
		  IBV_WC_REM_ACCESS_ERR);
	/* before something of ours is mapped there */
	mprotect(map_at(theirs.memory + 8 * PAGE, 2 * PAGE), 2 * PAGE, PROT_NONE);
	fresh();
	expect_op("READ of it", &a, IBV_WR_RDMA_READ, at(mine.mr, 0), 8, at(theirs.mr, 9 * PAGE), IBV_WC_REM_ACCESS_ERR);
	fresh();
	expect_op("atomic on it", &a, IBV_WR_ATOMIC_FETCH_AND_ADD, at(mine.mr, 0), 8, at(theirs.mr, 9 * PAGE),
		  IBV_WC_REM_ACCESS_ERR);
	fresh();
	post_recv(&b, 2, at(theirs.mr, 7 * PAGE), 3 * PAGE);
	expect_op("SEND to it", &a, IBV_WR_SEND, at(mine.mr, 0), 3 * PAGE, at(theirs.mr, 0), IBV_WC_REM_OP_ERR);
	expect_wc("the receive there", b.recv_cq, 2, IBV_WC_LOC_PROT_ERR);
	fresh();
	expect_op("WRITE from it", &b, IBV_WR_RDMA_WRITE, at(theirs.mr, 8 * PAGE), 8, at(mine.mr, 0),
		  IBV_WC_LOC_PROT_ERR);
	fresh();
	expect_op("READ into it", &b, IBV_WR_RDMA_READ, at(theirs.mr, 8 * PAGE), 8, at(mine.mr, 0),
		  IBV_WC_LOC_PROT_ERR);
	fresh();
	expect_op("atomic answered into it", &b, IBV_WR_ATOMIC_FETCH_AND_ADD, at(theirs.mr, 8 * PAGE), 8,
		  at(mine.mr, 0), IBV_WC_LOC_PROT_ERR);
	map_at(theirs.memory + 8 * PAGE, 2 * PAGE);
	fresh();
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.mr, theirs.mr, 7 * PAGE, 3 * PAGE), "mapped again: WRITE");
	vt_check(moves(IBV_WR_RDMA_READ, mine.mr, theirs.mr, 7 * PAGE, 3 * PAGE), "mapped again: READ");

	mprotect(theirs.memory, 4 * PAGE, PROT_READ);
	expect_op("READ of memory that is read-only", &a, IBV_WR_RDMA_READ, at(mine.mr, 0), PAGE, at(theirs.mr, 0),
		  IBV_WC_SUCCESS);
	expect_op("WRITE to it", &a, IBV_WR_RDMA_WRITE, at(mine.mr, 0), PAGE, at(theirs.mr, 0), IBV_WC_REM_ACCESS_ERR);
	mprotect(theirs.memory, 4 * PAGE, PROT_READ | PROT_WRITE);
	fresh();
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.mr, theirs.mr, 0, 4 * PAGE), "and writable again");
}

/* Memory that even the kernel must not, or cannot, read: as if it were not there */
static void refused(const char *what, void *p)
{
	struct ibv_mr *mr = demand(&b, p, PAGE);
	struct ibv_sge sge = { (uintptr_t)p, PAGE, mr ? mr->lkey : 0 };
	char name[100];

	if (!mr) {
		vt_check(false, "%s: reg mr: %s", what, strerror(errno));
		return;
	}
	/* what is there must not be found either */
	ibv_advise_mr(b.dev->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	fresh();
	snprintf(name, sizeof(name), "READ of %s", what);
	expect_op(name, &a, IBV_WR_RDMA_READ, at(mine.mr, 0), 8, at(mr, 0), IBV_WC_REM_ACCESS_ERR);
	fresh();
	snprintf(name, sizeof(name), "WRITE to %s", what);
	expect_op(name, &a, IBV_WR_RDMA_WRITE, at(mine.mr, 0), 8, at(mr, 0), IBV_WC_REM_ACCESS_ERR);
	fresh();
	snprintf(name, sizeof(name), "atomic on %s", what);
	expect_op(name, &a, IBV_WR_ATOMIC_FETCH_AND_ADD, at(mine.mr, 0), 8, at(mr, 0), IBV_WC_REM_ACCESS_ERR);
	fresh();
	snprintf(name, sizeof(name), "WRITE from %s", what);
	expect_op(name, &b, IBV_WR_RDMA_WRITE, at(mr, 0), 8, at(mine.mr, 0), IBV_WC_LOC_PROT_ERR);
	ends_stop();
	ibv_dereg_mr(mr);
}

static void secret_memory(void)
{
	int fd = syscall(SYS_memfd_secret, 0);
	char *p;

	if (fd < 0) {
		printf("skip: secret memory [memfd_secret: %s\n", strerror(errno));
		return;
	}
	p = ftruncate(fd, PAGE) ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		vt_die(VT_SETUP, "secret memory: %s", strerror(errno));
	refused("secret memory, cold", p);
	p[0] = 1;
	refused("secret memory", p);
	munmap(p, PAGE);
	close(fd);
}

/* What the kernel has put there that has no page of its own */
static void special_memory(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start = 0;
	char line[300];

	while (f && fgets(line, sizeof(line), f) && !strstr(line, "[vvar"))
		;
	if (!f || !strstr(line, "[vvar") || sscanf(line, "%lx-", &start) != 1)
		printf("skip: memory without pages [no vvar here\n");
	else
		refused("memory without pages", (void *)start);
	if (f)
		fclose(f);
}

/* A peer's WRITE to a page whose address has a tag, which arm64 ignores; @there: such a thing is taken for the page */
static void written_tagged(struct ibv_mr *mr, void *p, bool there)
{
	struct place tagged = { (uintptr_t)p | 1ull << 56, mr->rkey };

	fresh();
	expect_op("WRITE to an address with a tag", &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 8, tagged,
		  there ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
}

/* Pages that were found at an address with a tag are lost with the memory, too */
static void tagged_memory(void)
{
#ifdef __aarch64__
	bool there = !implicit;
#else
	bool there = false;
#endif
	char *p = map_at(NULL, PAGE);
	struct ibv_mr *mr = implicit ? demand(&b, p, PAGE) :
		ibv_reg_mr(b.dev->pd, (void *)((uintptr_t)p | 1ull << 56), PAGE, DEMAND);

	if (!mr)
		vt_die(VT_WRONG, "WRONG: reg mr of an address with a tag: %s", strerror(errno));
	p[0] = 1;
	written_tagged(mr, p, there);
	/* Not unmapped: something else might be mapped there */
	if (mprotect(p, PAGE, PROT_NONE))
		vt_die(VT_SETUP, "mprotect: %s", strerror(errno));
	written_tagged(mr, p, false);
	munmap(p, PAGE);
	ends_stop();
	ibv_dereg_mr(mr);
}

/* After a fork the pages are the child's as well: the parent's are what counts */
static void forked(void)
{
	int i, status, bad = 0;
	int go[2];
	pid_t child;
	char c;

	fresh();
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.mr, theirs.mr, 0, ROOM), "before a fork");
	if (pipe(go))
		vt_die(VT_SETUP, "pipe: %s", strerror(errno));
	child = fork();
	if (!child) {
		/* what was there at the fork stays for the child */
		unsigned char sum[2] = {};

		for (i = 0; i < ROOM; i++)
			sum[0] += theirs.memory[i];
		if (read(go[0], &c, 1) != 1)
			_exit(2);
		for (i = 0; i < ROOM; i++)
			sum[1] += theirs.memory[i];
		_exit(sum[0] != sum[1]);
	}
	for (i = 0; i < 5; i++) {
		/* our own store breaks the sharing, or the peer's WRITE does */
		bad += !moves(IBV_WR_RDMA_READ, mine.mr, theirs.mr, i * 1000, 100000);
		bad += !moves(IBV_WR_RDMA_WRITE, mine.mr, theirs.mr, i * 1000 + 500000, 100000);
	}
	if (write(go[1], "x", 1) != 1 || waitpid(child, &status, 0) != child)
		vt_die(VT_SETUP, "child: %s", strerror(errno));
	vt_check(!bad, "after a fork: the parent's memory (%d of %d wrong)", bad, 2 * i);
	vt_check(WIFEXITED(status) && !WEXITSTATUS(status), "after a fork: not the child's (%d)", status);
	close(go[0]);
	close(go[1]);
}

/* --- under traffic ------------------------------------------------------------------------------- */

static atomic_bool stop;
static atomic_ulong turns;
static int advice;

static void *disturb(void *arg)
{
	struct vt_rng rng = { 7 };
	char *memory = arg;

	while (!stop) {
		size_t first = vt_below(&rng, ROOM / PAGE), n = 1 + vt_below(&rng, 64);

		n = min(n, ROOM / PAGE - first);
		if (advice >= 0)
			madvise(memory + first * PAGE, n * PAGE, advice);
		else
			map_at(memory + first * PAGE, n * PAGE);
		turns++;
		if (advice != MADV_PAGEOUT)
			sched_yield();
	}
	return NULL;
}

/* What has kept a queue pair from getting on, where something failed */
static void print_troubles(struct end *e)
{
	static const char *const names[] = {
		"odp_page_faults", "local_ack_timeout_err", "packet_seq_err", "rnr_nak_retry_err", "duplicate_request",
		"resp_remote_access_errors",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("# %s: %s %ld\n", ibv_get_device_name(e->dev->ctx->device), names[i],
		       vt_counter(e->dev, names[i]));
}

/* The next completion: of which round and operation? */
static bool succeeds(int round, const char *op)
{
	struct ibv_wc wc;

	if (!poll_one(a.send_cq, &wc, 20))
		printf("# round %d: %s: nothing in 20 s\n", round, op);
	else if (wc.status != IBV_WC_SUCCESS)
		printf("# round %d: %s: %s\n", round, op, ibv_wc_status_str(wc.status));
	else
		return true;
	return false;
}

/*
 * WRITEs and READs of all of it while somebody takes pages away. With @keeps what is there stays, so it has to be
 * right afterwards; without it nothing may fail all the same.
 */
static void traffic(const char *what, int how, bool keeps)
{
	int i, bad = 0, wrong = 0, rounds = ends_short ? 40 : 400;
	pthread_t thread;

	fresh();
	stop = false;
	turns = 0;
	advice = how;
	drop(&theirs);
	if (pthread_create(&thread, NULL, disturb, theirs.memory))
		vt_die(VT_SETUP, "no thread");
	for (i = 0; i < rounds; i++) {
		size_t offset = i * 97 % 5000, len = ROOM - offset - i * 31 % 5000;

		vt_pattern((char *)mine.pinned->addr + offset, i, 0, len);
		post_op(&a, 1, IBV_WR_RDMA_WRITE, at(mine.pinned, offset), len, at(theirs.mr, offset));
		memset(mine.memory, 0, ROOM);
		post_op(&a, 2, IBV_WR_RDMA_READ, at(mine.mr, offset), len, at(theirs.mr, offset));
		bad += !succeeds(i, "WRITE");
		bad += !succeeds(i, "READ");
		if (bad)
			break;
		if (keeps)
			wrong += memcmp(mine.memory + offset, (char *)mine.pinned->addr + offset, len) ||
				 memcmp(theirs.memory + offset, (char *)mine.pinned->addr + offset, len);
	}
	stop = true;
	pthread_join(thread, NULL);
	if (bad) {
		print_troubles(&a);
		print_troubles(&b);
	}
	vt_check(!bad && !wrong, "%s (%lu times): %d failed, %d of %d rounds wrong", what, (unsigned long)turns, bad,
		 wrong, i);
}

/* A region that is deregistered while its pages are being asked for */
static void deregistered(void)
{
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int i, n, bad = 0;

	for (i = 0; i < 20; i++) {
		drop(&theirs);
		mr = demand(&b, theirs.memory, ROOM);
		fresh();
		for (n = 0; n < 4; n++)
			post_op(&a, n, n % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, local(mine.pinned), ROOM, at(mr, 0));
		usleep(i * 50);
		bad += ibv_dereg_mr(mr) != 0;
		for (n = 0; n < 4; n++)
			bad += !poll_one(a.send_cq, &wc, 10) ||
			       (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR &&
				wc.status != IBV_WC_WR_FLUSH_ERR);
	}
	vt_check(!bad, "deregistered under traffic (%d wrong)", bad);
	ends_stop();
}

/* queue pairs that are destroyed while they wait for pages */
static void destroyed(void)
{
	int i, n;

	for (i = 0; i < 20; i++) {
		drop(&mine);
		drop(&theirs);
		fresh();
		for (n = 0; n < 4; n++)
			post_op(&a, n, n % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, at(mine.mr, 0), ROOM, at(theirs.mr, 0));
		usleep(i * 20);
	}
	ends_stop();
	fresh();
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.mr, theirs.mr, 0, ROOM), "queue pairs destroyed while they waited");
	ends_stop();
}

/* --- registration and advice ------------------------------------------------------------------------ */

static void registered(void)
{
	struct ibv_mr *mr;

	fresh();
	mr = ibv_reg_mr_iova(b.dev->pd, theirs.memory + 100, ROOM - 100, 0x7000000064, DEMAND);
	vt_check(mr, "an address of its own");
	if (mr) {
		drop(&theirs);
		memset(mine.pinned->addr, 7, 5000);
		expect_op("WRITE there", &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 5000,
			  (struct place){ 0x7000000064 + 4000, mr->rkey }, IBV_WC_SUCCESS);
		vt_check(theirs.memory[4100] == 7 && theirs.memory[9099] == 7 && !theirs.memory[4099] &&
			 !theirs.memory[9100], "the right bytes");
		expect_op("a byte too far", &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 2,
			  (struct place){ 0x7000000064 + ROOM - 101, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
		ibv_dereg_mr(mr);
	}
	fresh();
	mr = ibv_reg_mr(b.dev->pd, theirs.memory, ROOM, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	expect_op("WRITE without the right", &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 8, at(mr, 0),
		  IBV_WC_REM_ACCESS_ERR);
	vt_check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, DEMAND), "re-registered: access");
	fresh();
	drop(&theirs);
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, mr, 10, 50000), "and then it works");
	vt_check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL), "re-registered: pinned");
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, mr, 10, 50000), "pinned now");
	vt_check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, DEMAND), "re-registered: on demand again");
	drop(&theirs);
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, mr, 10, 50000), "on demand again");
	ibv_dereg_mr(mr);
	mr = ibv_reg_mr(b.dev->pd, theirs.memory, 0, DEMAND);
	vt_check(!mr, "no memory at all is refused: %s", mr ? "done" : strerror(errno));
#if SIZE_MAX > UINT32_MAX /* otherwise there is not too much */
	mr = ibv_reg_mr(b.dev->pd, theirs.memory, 1UL << 46, DEMAND);
	vt_check(!mr, "too much of it is refused: %s", mr ? "done" : strerror(errno));
#endif
}

static void advised(const char *what, enum ib_uverbs_advise_mr_advice how, uint32_t flags, struct ibv_mr *mr,
		    struct ibv_pd *pd, uint64_t addr, uint32_t len, int wanted)
{
	struct ibv_sge sge = { addr, len, mr->lkey };
	int rc = ibv_advise_mr(pd, how, flags, &sge, 1);

	vt_check(rc == wanted, "advice: %s: %s", what, rc ? strerror(rc) : "done");
}

static unsigned long faults(struct end *e)
{
	unsigned long n = 0;
	char path[200];
	FILE *f;

	/* the counters are read at most every 10 ms */
	usleep(20000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/odp_page_faults",
		 ibv_get_device_name(e->dev->ctx->device));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

static void advice_taken(void)
{
	const int sync = IBV_ADVISE_MR_FLAG_FLUSH;
	uint64_t start = (uintptr_t)theirs.memory;
	unsigned long before;
	int i;

	drop(&theirs);
	advised("to read, now", IBV_ADVISE_MR_ADVICE_PREFETCH, sync, theirs.mr, b.dev->pd, start, ROOM, 0);
	advised("to write, now", IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, sync, theirs.mr, b.dev->pd, start + 1, ROOM - 1, 0);
	before = faults(&b);
	fresh();
	/* nothing has taken the pages away since, unless the machine is short of memory */
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, theirs.mr, 0, ROOM) && faults(&b) == before,
		 "advice: pages are there without a fault");
	drop(&theirs);
	memset(theirs.memory, 1, ROOM);
	advised("what is there, now", IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, sync, theirs.mr, b.dev->pd, start, ROOM, 0);
	before = faults(&b);
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, theirs.mr, 0, ROOM) && faults(&b) == before,
		 "advice: and those that were there without a fault");
	for (i = 0; i < 3; i++) {
		drop(&theirs);
		advised("some time", i, 0, theirs.mr, b.dev->pd, start, ROOM, 0);
		vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, theirs.mr, 0, ROOM), "advice: and used at once");
	}
}

static void advice_refused(void)
{
	const int read_only = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND, sync = IBV_ADVISE_MR_FLAG_FLUSH;
	uint64_t start = (uintptr_t)theirs.memory;
	struct ibv_mr *mr = ibv_reg_mr(b.dev->pd, theirs.memory, ROOM, read_only);
	struct ibv_pd *pd = ibv_alloc_pd(b.dev->ctx);
	struct ibv_mr unknown = { .lkey = theirs.mr->lkey ^ 0x80 };

	advised("of no bytes", IBV_ADVISE_MR_ADVICE_PREFETCH, sync, theirs.mr, b.dev->pd, start, 0, 0);
	advised("an unknown one", 9, sync, theirs.mr, b.dev->pd, start, 8, EOPNOTSUPP);
	advised("an unknown key", IBV_ADVISE_MR_ADVICE_PREFETCH, sync, &unknown, b.dev->pd, start, 8, ENOENT);
	advised("pinned memory", IBV_ADVISE_MR_ADVICE_PREFETCH, sync, theirs.pinned, b.dev->pd,
		(uintptr_t)theirs.pinned->addr, 8, EINVAL);
	/* what keys there are in another PD is not to be seen: as an unknown one, whatever else is wrong */
	advised("another PD", IBV_ADVISE_MR_ADVICE_PREFETCH, 0, theirs.mr, pd, start, 8, ENOENT);
	advised("another PD, pinned memory", IBV_ADVISE_MR_ADVICE_PREFETCH, 0, theirs.pinned, pd,
		(uintptr_t)theirs.pinned->addr, 8, ENOENT);
	advised("another PD, to write what is for reading", IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, mr, pd, start, 8,
		ENOENT);
	advised("another PD, out of bounds", IBV_ADVISE_MR_ADVICE_PREFETCH, 0, theirs.mr, pd, start + 1, ROOM, ENOENT);
	advised("to write what is for reading", IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, mr, b.dev->pd, start, 8, EPERM);
	advised("out of bounds", IBV_ADVISE_MR_ADVICE_PREFETCH, 0, theirs.mr, b.dev->pd, start + 1, ROOM, EFAULT);
	munmap(theirs.memory + PAGE, PAGE);
	advised("memory that is gone", IBV_ADVISE_MR_ADVICE_PREFETCH, sync, theirs.mr, b.dev->pd, start, ROOM, EFAULT);
	advised("the same, without bringing it in", IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, sync, theirs.mr, b.dev->pd,
		start, PAGE, 0);
	map_at(theirs.memory + PAGE, PAGE);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
}

/* --- what the kernel tells of each region ----------------------------------------------- */

static const char *name_of(const struct end *e)
{
	return ibv_get_device_name(e->dev->ctx->device);
}

/* The number that "rdma" knows a region by */
static long long number_of(const struct end *e, const struct ibv_mr *mr)
{
	char wanted[40];

	snprintf(wanted, sizeof(wanted), "\"lkey\":\"%x\"", mr->lkey);
	return vt_shown(vt_rdma("-j resource show mr dev %s", name_of(e)), wanted, "mrn");
}

/* What "rdma statistic" tells of it under that name; -1: nothing */
static long long told(const struct end *e, long long number, const char *name)
{
	char wanted[100];

	snprintf(wanted, sizeof(wanted), "\"ifname\":\"%s\",\"mrn\":%lld,", name_of(e), number);
	return vt_shown(vt_rdma("-j statistic show mr"), wanted, name);
}

/* It is there, with nothing to tell but its number */
static bool tells_nothing(const struct end *e, long long number)
{
	char wanted[100];

	snprintf(wanted, sizeof(wanted), "\"ifname\":\"%s\",\"mrn\":%lld}", name_of(e), number);
	return strstr(vt_rdma("-j statistic show mr"), wanted);
}

/*
 * @pages were needed, and each counts once. One that the kernel has taken away meanwhile,
 * because it wants memory, may have been needed once more.
 */
static void counted(const char *what, const struct end *e, long long number, const char *name,
		    long long pages)
{
	long long n = told(e, number, name), lost = told(e, number, "page_invalidations");

	vt_check(n >= pages && n <= pages + lost, "statistics: %s: %s %lld (wanted %lld), %lld lost",
		 what, name, n, pages, lost);
}

static void nothing_counted(const char *what, const struct end *e, long long number)
{
	long long faults = told(e, number, "page_faults");
	long long lost = told(e, number, "page_invalidations");
	long long prefetched = told(e, number, "page_prefetch");

	vt_check(!faults && !lost && !prefetched,
		 "statistics: %s: %lld faults, %lld lost, %lld prefetched", what, faults, lost,
		 prefetched);
}

/* Pages that messages bring in: two whole ones, and of their neighbours a byte each */
static void faults_counted(struct ibv_mr *mr, long long number)
{
	const size_t offset = PAGE - 1, len = 2 * PAGE + 2;
	struct ibv_mr *sink = demand(&a, mine.memory, ROOM);

	fresh();
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, mr, offset, len),
		 "statistics: a WRITE to four cold pages");
	counted("a WRITE to cold pages", &b, number, "page_faults", 4);
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, mr, offset, len),
		 "statistics: a WRITE to the same");
	counted("a WRITE to the same", &b, number, "page_faults", 4);
	drop(&mine);
	vt_check(moves(IBV_WR_RDMA_READ, sink, theirs.pinned, offset, len),
		 "statistics: a READ into cold pages");
	counted("a READ into cold pages", &a, number_of(&a, sink), "page_faults", 4);
	ends_stop();
	ibv_dereg_mr(sink);
}

static void advised_counted(const char *what, enum ib_uverbs_advise_mr_advice how,
			    struct ibv_mr *mr, long long number, size_t offset, long long pages)
{
	advised(what, how, IBV_ADVISE_MR_FLAG_FLUSH, mr, b.dev->pd,
		(uintptr_t)theirs.memory + offset, 6 * PAGE, 0);
	counted(what, &b, number, "page_prefetch", pages);
}

/* Pages that advice brings in, or finds */
static void advice_counted(struct ibv_mr *mr, long long number)
{
	const size_t offset = 8 * PAGE;

	advised_counted("of six cold pages", IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, mr, number,
			offset, 6);
	advised_counted("of five of these and a cold one", IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, mr,
			number, offset + PAGE, 7);
	drop(&theirs);
	memset(theirs.memory + offset, 1, 6 * PAGE);
	advised_counted("of six that are there", IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, mr, number,
			offset, 13);
	counted("all that advice", &b, number, "page_faults", 4);
}

static void statistics(void)
{
	struct ibv_mr *mr = demand(&b, theirs.memory, ROOM);
	struct ibv_mr *other = demand(&b, theirs.memory, ROOM);
	long long number = number_of(&b, mr), others = number_of(&b, other), lost;
	long long pinned = number_of(&b, theirs.pinned);

	vt_check(number >= 0 && others >= 0 && number != others,
		 "statistics: regions number %lld and %lld", number, others);
	nothing_counted("a new region", &b, number);
	drop(&theirs);
	faults_counted(mr, number);
	drop(&theirs);
	lost = told(&b, number, "page_invalidations");
	vt_check(lost >= 4, "statistics: pages that were dropped: page_invalidations %lld", lost);
	advice_counted(mr, number);
	nothing_counted("another region of that memory", &b, others);
	vt_check(tells_nothing(&b, pinned), "statistics: a pinned region, number %lld, has none",
		 pinned);
	ibv_dereg_mr(mr);
	vt_check(told(&b, number, "page_faults") < 0 && !tells_nothing(&b, number) &&
		 !told(&b, others, "page_faults"),
		 "statistics: a region that is gone has none, and the other one has");
	ibv_dereg_mr(other);
}

/* --- windows ---------------------------------------------------------------------------------------- */

static bool bind(struct ibv_mw *mw, struct ibv_mr *mr, char *addr, uint64_t length)
{
	struct ibv_mw_bind_info info = {
		.mr = mr, .addr = (uintptr_t)addr, .length = length, .mw_access_flags = VT_REMOTE_ACCESS,
	};
	struct ibv_mw_bind one_bind = { .wr_id = 77, .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr wr = {
		.wr_id = 77, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = info },
	};
	struct ibv_wc wc;

	if (mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(b.qp, mw, &one_bind) : post_wr(&b, &wr))
		return false;
	if (mw->type == IBV_MW_TYPE_2)
		mw->rkey = wr.bind_mw.rkey;
	return poll_one(b.send_cq, &wc, 5) && wc.wr_id == 77 && wc.status == IBV_WC_SUCCESS;
}

/* a part of the region, cold, under the window's key; and nothing beside it */
static void through_window(const char *what, struct ibv_mw *mw)
{
	struct place to = { (uintptr_t)theirs.memory + PAGE + 10, mw->rkey };
	char name[80];

	drop(&theirs);
	vt_pattern(mine.pinned->addr, 1, 0, 5 * PAGE);
	snprintf(name, sizeof(name), "%s: WRITE, cold", what);
	expect_op(name, &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 5 * PAGE, to, IBV_WC_SUCCESS);
	vt_check(same(mine.pinned->addr, theirs.memory + PAGE + 10, 5 * PAGE, 0, what) && !theirs.memory[PAGE + 9] &&
		 !theirs.memory[6 * PAGE + 10], "%s: the right bytes", what);
	drop(&theirs);
	snprintf(name, sizeof(name), "%s: READ, cold", what);
	expect_op(name, &a, IBV_WR_RDMA_READ, at(mine.mr, 0), 5 * PAGE, to, IBV_WC_SUCCESS);
	to.addr = (uintptr_t)theirs.memory + 2 * PAGE;
	snprintf(name, sizeof(name), "%s: atomic, cold", what);
	expect_op(name, &a, IBV_WR_ATOMIC_FETCH_AND_ADD, at(mine.mr, 0), 8, to, IBV_WC_SUCCESS);
	to.addr = (uintptr_t)theirs.memory + PAGE + 9;
	snprintf(name, sizeof(name), "%s: a byte before it", what);
	expect_op(name, &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 1, to, IBV_WC_REM_ACCESS_ERR);
}

/* windows that are taken away while their pages are being asked for */
static void windows_go(struct ibv_mr *mr)
{
	struct ibv_mw *mw;
	struct ibv_wc wc;
	int i, n, bad = 0;

	for (i = 0; i < 20; i++) {
		drop(&theirs);
		fresh();
		mw = ibv_alloc_mw(b.dev->pd, IBV_MW_TYPE_2);
		bad += !bind(mw, mr, theirs.memory, ROOM);
		for (n = 0; n < 4; n++)
			post_op(&a, n, n % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, local(mine.pinned), ROOM,
				(struct place){ (uintptr_t)theirs.memory, mw->rkey });
		usleep(i * 50);
		bad += ibv_dealloc_mw(mw) != 0;
		for (n = 0; n < 4; n++)
			bad += !poll_one(a.send_cq, &wc, 10) ||
			       (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR &&
				wc.status != IBV_WC_WR_FLUSH_ERR);
	}
	vt_check(!bad, "windows that go under traffic (%d wrong)", bad);
}

static void windows(void)
{
	struct ibv_mr *mr = demand_with(&b, theirs.memory, ROOM, DEMAND | IBV_ACCESS_MW_BIND);
	static const enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };
	struct ibv_mw *mw;
	char what[20];
	int i;

	vt_check(mr, "a region for windows: %s", mr ? "done" : strerror(errno));
	for (i = 0; mr && i < 2; i++) {
		snprintf(what, sizeof(what), "window of type %d", i + 1);
		mw = ibv_alloc_mw(b.dev->pd, types[i]);
		fresh();
		vt_check(bind(mw, mr, theirs.memory + PAGE + 10, 5 * PAGE), "%s: bound", what);
		through_window(what, mw);
		vt_check(types[i] == IBV_MW_TYPE_2 || ibv_dereg_mr(mr) == EBUSY, "%s: its region stays", what);
		vt_check(!ibv_dealloc_mw(mw), "%s: goes", what);
	}
	if (!mr)
		return;
	windows_go(mr);
	ends_stop();
	vt_check(!ibv_dereg_mr(mr), "the region of windows goes");
}

/* --- all memory at once ----------------------------------------------------------------------------- */

/* as large as what the driver has a table for, which counts as eight bytes for each page, but as a page at the least */
#define PIECE (2048ul * PAGE)
#define PIECES 100
/* tables that every region has */
#define OWN_PIECES 64

static void not_registered(const char *what, void *addr, size_t length, uint64_t iova, int access)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(b.dev->pd, addr, length, iova, access);

	vt_check(!mr && errno == EINVAL, "%s is refused: %s", what, mr ? "done" : strerror(errno));
	if (mr)
		ibv_dereg_mr(mr);
}

static void implicit_registered(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_mr *mr;

	if (ibv_query_device_ex(b.dev->ctx, NULL, &attr))
		vt_die(VT_SETUP, "query device");
	vt_check(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT, "implicit: the device says that it can");
	not_registered("implicit: all memory, with other addresses", NULL, SIZE_MAX, PAGE, DEMAND);
	not_registered("implicit: all memory from a page on", (void *)PAGE, SIZE_MAX, PAGE, DEMAND);
	not_registered("implicit: a byte less than all memory", NULL, SIZE_MAX - 1, 0, DEMAND);
	vt_check(!all_memory(&b, ALL), "implicit: all memory, pinned, is refused: %s", strerror(errno));
	mr = all_memory(&b, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	mr->addr = theirs.memory;
	fresh();
	expect_op("implicit: WRITE without the right", &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 8, at(mr, 0),
		  IBV_WC_REM_ACCESS_ERR);
	vt_check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, DEMAND), "implicit: re-registered");
	fresh();
	vt_check(moves(IBV_WR_RDMA_WRITE, mine.pinned, mr, 10, 50000), "implicit: and then it works");
	vt_check(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL), "implicit: pinned it cannot be");
	vt_check(moves(IBV_WR_RDMA_READ, mine.pinned, mr, 10, 50000), "implicit: it is as it was");
	fresh();
	expect_op("implicit: READ of address 0", &a, IBV_WR_RDMA_READ, local(mine.pinned), 8,
		  (struct place){ 0, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	fresh();
	expect_op("implicit: READ of what the kernel has", &a, IBV_WR_RDMA_READ, local(mine.pinned), 8,
		  (struct place){ 1ull << 63, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	fresh();
	expect_op("implicit: WRITE to the last addresses", &a, IBV_WR_RDMA_WRITE, local(mine.pinned), 8,
		  (struct place){ UINT64_MAX - 8, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	ends_stop();
	ibv_dereg_mr(mr);
}

/* bytes at @far, as many as a packet has, to and from memory that is in many pieces, one after the other */
static int far_apart(struct ibv_mr *mr, char *far, int rounds)
{
	int i, bad = 0;

	for (i = 0; i < rounds * PIECES && !bad; i++) {
		/* at the border between two */
		char *p = far + (i % PIECES + 1) * PIECE - 500;
		struct ibv_wc wc;

		vt_pattern(mine.pinned->addr, i, 0, 1000);
		post_op(&a, 1, IBV_WR_RDMA_WRITE, local(mine.pinned), 1000, (struct place){ (uintptr_t)p, mr->rkey });
		post_op(&a, 2, IBV_WR_RDMA_READ, (struct place){ (uintptr_t)mine.pinned->addr + 2000, mine.pinned->lkey },
			1000, (struct place){ (uintptr_t)p, mr->rkey });
		bad += !poll_one(a.send_cq, &wc, 20) || wc.status || !poll_one(a.send_cq, &wc, 20) || wc.status;
		bad += !same(mine.pinned->addr, p, 1000, i, "there") ||
		       !same(mine.pinned->addr, (char *)mine.pinned->addr + 2000, 1000, i, "back");
	}
	return bad;
}

/* A process without rights is told no key: its region is the only implicit one that it has */
static void evicted(void)
{
	const char *list = vt_rdma("-dd -j resource show mr dev %s pid %d", name_of(&b), getpid());
	long long n = vt_shown(list, "\"drv_kind\":\"implicit\"", "drv_evictions");

	vt_check(n > 0, "implicit: tables that gave way to others are counted: %lld", n);
}

struct arguments {
	int c;
	char **v;
};

/* with a little more memory than a region needs at the least, which is its own tables and a few pages */
static void as_nobody(void *arg)
{
	unsigned long least = OWN_PIECES * max(2048 * sizeof(uint64_t), PAGE);
	struct arguments *args = arg;
	struct ibv_mr *mr;
	char *far;

	optind = 1;
	ends_open(args->c, args->v);
	mine.pinned = vt_mr(a.dev, 16384, ALL);
	fresh();
	far = mmap(NULL, (PIECES + 2) * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (far == MAP_FAILED)
		vt_die(VT_SETUP, "no address space: %s", strerror(errno));
	vt_be_nobody(((unsigned long)vt_pinned() << 10) + least + least / 4);
	mr = all_memory(&b, DEMAND);
	vt_check(mr, "implicit: a little of RLIMIT_MEMLOCK does for it: %s", strerror(errno));
	if (mr) {
		vt_check(!far_apart(mr, far, ends_short ? 2 : 10), "implicit: more memory than there are tables");
		evicted();
	}
	vt_check(!all_memory(&b, DEMAND) && errno == ENOMEM, "implicit: and for no other one: %s", strerror(errno));
	/* It ends with all that it has. */
}

static void implicit_limited(int argc, char **argv)
{
	struct arguments args = { argc, argv };

	vt_in_child("implicit: RLIMIT_MEMLOCK", as_nobody, &args);
}

/* a process that ends with everything under way leaves nothing behind */
static void killed(int argc, char **argv)
{
	int i, status;
	pid_t child;

	for (i = 0; i < 3; i++) {
		child = fork();
		if (!child) {
			optind = 1;
			ends_open(argc, argv);
			if (!freopen("/dev/null", "w", stdout))
				_exit(1);
			make_side(&mine, &a);
			make_side(&theirs, &b);
			alarm(0);
			traffic("a process that is to be killed", MADV_DONTNEED, false);
			traffic("a process that is to be killed", MADV_DONTNEED, false);
			pause();
		}
		usleep(300000 + i * 50000);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	vt_check(WIFSIGNALED(status), "killed under traffic");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	page_size = sysconf(_SC_PAGESIZE);
	find_ranges();
	/* As perftest: pages that are missing in the middle of a READ have to come while the peer tries again */
	ends_how.timeout = 14;
	implicit = getenv("REGIONS") && !strcmp(getenv("REGIONS"), "implicit");
	killed(argc, argv);
	if (implicit)
		implicit_limited(argc, argv);
	optind = 1;
	find_page_tables();
	ends_open(argc, argv);
	make_side(&mine, &a);
	make_side(&theirs, &b);
	rdma("WRITE", IBV_WR_RDMA_WRITE, mine.mr, theirs.mr);
	rdma("WRITE from pinned memory", IBV_WR_RDMA_WRITE, mine.pinned, theirs.mr);
	rdma("WRITE to pinned memory", IBV_WR_RDMA_WRITE, mine.mr, theirs.pinned);
	rdma("READ", IBV_WR_RDMA_READ, mine.mr, theirs.mr);
	rdma("READ to pinned memory", IBV_WR_RDMA_READ, mine.pinned, theirs.mr);
	rdma("READ from pinned memory", IBV_WR_RDMA_READ, mine.mr, theirs.pinned);
	send_recv("SEND", mine.mr, theirs.mr);
	send_recv("SEND from pinned memory", mine.pinned, theirs.mr);
	send_recv("SEND to pinned memory", mine.mr, theirs.pinned);
	atomics();
	shared_receives();
	datagrams();
	gone();
	secret_memory();
	special_memory();
	tagged_memory();
	forked();
	windows();
	if (implicit) {
		implicit_registered();
		advice_taken();
	} else {
		registered();
		advice_taken();
		advice_refused();
	}
	statistics();
	traffic("pages dropped under traffic", MADV_DONTNEED, false);
	traffic("memory mapped anew under traffic", -1, false);
	traffic("pages sent to swap under traffic", MADV_PAGEOUT, true);
	deregistered();
	destroyed();
	ends_stop();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
