// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of every kind under the regions: it is mapped anew, taken away, forked, protected, dropped, swapped out, and
 * some of its pages are brought by somebody who takes his time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "fuzz.h"

/* Newer than the headers of some systems */
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

#define PAGE ((size_t)4096)
/* from one zone to the next; what nobody registers follows the zone at once */
#define STEP (2 * FZ_ZONE)
#define CANARY ((size_t)64 * 1024)
#define CANARY_BYTE 0xc5

static uint8_t *space;
/* of this worker: files behind zones, and the one for missing pages */
static int files[6] = { -1, -1, -1, -1, -1, -1 }, missing = -1;
/* what each of them is, as far as this kernel has it */
static const enum fz_deed kind_of_file[] = {
	FZ_DID_file, FZ_DID_file, FZ_DID_secret, FZ_DID_fuse, FZ_DID_dmabuf, FZ_DID_file,
};

static void did(struct fz_thread *t, enum fz_deed deed, bool done)
{
	t->beat->did[deed] += done;
}

static uint8_t *zone(uint32_t i)
{
	return space + i * STEP;
}

/* those that may be touched */
static uint8_t *some_zone(struct fz_thread *t)
{
	return zone(fz_below(t, FZ_ZONES - (board->some_never ? FZ_NEVER : 0)));
}

bool fz_never_comes(uint64_t start)
{
	return board->some_never && start - (uintptr_t)zone(FZ_ZONES - FZ_NEVER) < FZ_NEVER * STEP;
}

int fz_memfd_secret(void)
{
	return syscall(SYS_memfd_secret, 0);
}

void fz_memory_reserve(void)
{
	uint32_t i;

	space = mmap(NULL, (FZ_ZONES + 1) * STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		vt_die(VT_SETUP, "no room for memory: %s", strerror(errno));
	/* for huge pages */
	space = (uint8_t *)(((uintptr_t)space + FZ_ZONE - 1) & ~(FZ_ZONE - 1));
	for (i = 0; i < FZ_ZONES; i++) {
		mmap(zone(i), FZ_ZONE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		mmap(zone(i) + FZ_ZONE, CANARY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		memset(zone(i) + FZ_ZONE, CANARY_BYTE, CANARY);
	}
}

bool fz_memory_intact(void)
{
	size_t at, first, last, changed;
	bool intact = true;
	uint32_t i;

	for (i = 0; i < FZ_ZONES; i++) {
		for (at = 0, changed = 0; at < CANARY; at++) {
			if (zone(i)[FZ_ZONE + at] == CANARY_BYTE)
				continue;
			first = changed++ ? first : at;
			last = at;
		}
		if (!changed)
			continue;
		printf("# behind zone %u at %p: %zu bytes changed, from %zu (now %#x) to %zu\n", i, zone(i) + FZ_ZONE,
		       changed, first, zone(i)[FZ_ZONE + first], last);
		intact = false;
	}
	return intact;
}

/* --- pieces of it ------------------------------------------------------------------- */

void fz_some_range(struct fz_thread *t, uint64_t *start, uint64_t *length)
{
	uint64_t at = fz_once(t, 2) ? fz_below(t, FZ_ZONE) & ~(PAGE - 1) : fz_below(t, FZ_ZONE);
	uint64_t len = fz_once(t, 16) ? FZ_ZONE : 1 + fz_below(t, fz_once(t, 2) ? 200000 : 20000);

	if (len == FZ_ZONE)
		at = 0;
	*start = (uintptr_t)zone(fz_below(t, FZ_ZONES)) + at;
	*length = min(len, FZ_ZONE - at);
}

void fz_spare_canaries(uint64_t *start, uint64_t *length)
{
	uint32_t i;

	for (i = 0; i < FZ_ZONES; i++) {
		uint64_t from = (uintptr_t)zone(i) + FZ_ZONE, to = from + CANARY;

		if (*start >= from && *start < to)
			*start -= CANARY;
		if (*start < from && from - *start < *length)
			*length = from - *start;
	}
}

void *fz_some_buffer(struct fz_thread *t, size_t len)
{
	uint32_t at = fz_once(t, 2) ? fz_below(t, FZ_ZONE - len) : PAGE * (1 + fz_below(t, FZ_ZONE / PAGE - 8)) - len / 2;

	return some_zone(t) + (at & ~7u);
}

/* whole pages of one zone */
static uint8_t *some_pages(struct fz_thread *t, size_t *len)
{
	uint32_t n = FZ_ZONE / PAGE, first = fz_once(t, 3) ? 0 : fz_below(t, n);

	*len = PAGE * (fz_once(t, 3) ? n - first : 1 + fz_below(t, min(n - first, 64u)));
	return some_zone(t) + first * PAGE;
}

/* --- kinds of memory ------------------------------------------------------------------ */

static bool map_again(struct fz_thread *t, uint8_t *at, size_t len, int prot, int flags, int fd)
{
	return !FZ_CALL(t, "mmap", flags, mmap(at, len, prot, flags | MAP_FIXED, fd, 0) == MAP_FAILED ? -errno : 0);
}

static void register_missing(struct fz_thread *t, uint8_t *at, size_t len)
{
	struct uffdio_register reg = { .range = { (uintptr_t)at, len }, .mode = UFFDIO_REGISTER_MODE_MISSING };

	/* its pages go, so that there is something that is missing */
	map_again(t, at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	did(t, FZ_DID_userfaultfd,
	    !FZ_CALL(t, "userfaultfd register", reg.range.start, ioctl(missing, UFFDIO_REGISTER, &reg) ? -errno : 0));
}

/* the rings of a queue as memory of a region */
static void map_ring(struct fz_thread *t, uint8_t *at)
{
	struct fz_ctx *c = fz_some_ctx(t);
	struct fz_obj *o = fz_some(t, c, fz_once(t, 2) ? FZ_CQ : FZ_QP);
	struct sroce_ring_info ring = o ? o->ring[0] : (struct sroce_ring_info){};

	if (ring.mmap_len && ring.mmap_len <= FZ_ZONE)
		did(t, FZ_DID_ring, !FZ_CALL(t, "mmap of a ring", ring.mmap_offset,
					     mmap(at, ring.mmap_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, c->fd,
						  ring.mmap_offset) == MAP_FAILED ? -errno : 0));
}

/* There is nothing for a moment, in which others may want it, and then fresh memory: nobody else's may come to be there */
static void unmap(struct fz_thread *t, uint8_t *at)
{
	did(t, FZ_DID_munmap, !FZ_CALL(t, "munmap", (uintptr_t)at, munmap(at, FZ_ZONE) ? -errno : 0));
	map_again(t, at, FZ_ZONE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void change_kind(struct fz_thread *t)
{
	static const struct {
		enum fz_deed deed;
		int prot, flags;
	} kinds[] = {
		{ FZ_DID_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS },
		/* of a file */
		{ FZ_DEEDS_END, PROT_READ | PROT_WRITE, MAP_SHARED },
		{ FZ_DEEDS_END, PROT_READ | PROT_WRITE, MAP_PRIVATE },
		{ FZ_DEEDS_END, PROT_READ, MAP_SHARED },
		{ FZ_DID_none, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS },
		{ FZ_DID_hugetlb, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB },
	};
	uint8_t *at = some_zone(t);
	uint32_t file = fz_below(t, ARRAY_SIZE(files)), kind = fz_below(t, 12);
	enum fz_deed deed;
	bool done;

	if (kind < ARRAY_SIZE(kinds)) {
		deed = kinds[kind].deed == FZ_DEEDS_END ? kind_of_file[file] : kinds[kind].deed;
		done = map_again(t, at, FZ_ZONE, kinds[kind].prot, kinds[kind].flags,
				 kinds[kind].flags & MAP_ANONYMOUS ? -1 : files[file]);
		did(t, deed, done);
		return;
	}
	switch (kind) {
	case 6: map_ring(t, at); break;
	case 7: register_missing(t, at, FZ_ZONE); break;
	case 8: unmap(t, at); break;
	default: map_again(t, at, FZ_ZONE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	}
}

/* --- what can be done to it ------------------------------------------------------------- */

static void advise(struct fz_thread *t)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK, MADV_MERGEABLE,
		MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_WIPEONFORK, MADV_KEEPONFORK, 20 /* COLD */, 21 /* PAGEOUT */,
		21, 21, 22 /* POPULATE_READ */, 23 /* POPULATE_WRITE */, 24 /* DONTNEED_LOCKED */, 25 /* COLLAPSE */,
		102 /* GUARD_INSTALL */, 103 /* GUARD_REMOVE */,
	};
	int advice = advices[fz_below(t, ARRAY_SIZE(advices))];
	size_t len;
	uint8_t *at = some_pages(t, &len);

	if (advice == MADV_REMOVE && board->whole_files)
		return;
	did(t, advice == 21 ? FZ_DID_pageout : FZ_DID_madvise,
	    !FZ_CALL(t, "madvise", advice, madvise(at, len, advice) ? -errno : 0));
}

static void move(struct fz_thread *t)
{
	size_t len;
	uint8_t *from = some_pages(t, &len), *to = some_zone(t);

	if (to + len <= from || from + len <= to)
		did(t, FZ_DID_mremap,
		    !FZ_CALL(t, "mremap", len, mremap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED ?
			     -errno : 0));
}

static void protect(struct fz_thread *t)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE };
	size_t len;
	uint8_t *at = some_pages(t, &len);

	did(t, FZ_DID_mprotect,
	    !FZ_CALL(t, "mprotect", len, mprotect(at, len, prots[fz_below(t, ARRAY_SIZE(prots))]) ? -errno : 0));
}

static void lock(struct fz_thread *t)
{
	size_t len;
	uint8_t *at = some_pages(t, &len);

	if (fz_once(t, 2))
		did(t, FZ_DID_mlock, !FZ_CALL(t, "mlock", len, mlock(at, min(len, (size_t)65536)) ? -errno : 0));
	else
		FZ_CALL(t, "munlock", len, munlock(at, len) ? -errno : 0);
}

static void shrink_file(struct fz_thread *t)
{
	int fd = files[fz_below(t, ARRAY_SIZE(files))];
	off_t at = (off_t)fz_below(t, FZ_ZONE / PAGE) * PAGE;
	bool shorter = fz_once(t, 2);

	if (board->whole_files)
		return;
	if (shorter)
		did(t, FZ_DID_truncate, !FZ_CALL(t, "ftruncate", at, ftruncate(fd, at) ? -errno : 0));
	else
		did(t, FZ_DID_hole, !FZ_CALL(t, "punch hole", at, fallocate(fd, 3, at, 65536) ? -errno : 0));
	FZ_CALL(t, "ftruncate", FZ_ZONE, ftruncate(fd, FZ_ZONE) ? -errno : 0);
}

/* Whoever says that he reads or writes the dma-buf, or has done so */
static void sync_buffer(struct fz_thread *t)
{
	struct dma_buf_sync sync = { .flags = fz_below(t, fz_once(t, 8) ? 256 : 8) };

	FZ_CALL(t, "sync of a dma-buf", sync.flags, ioctl(board->buffer, DMA_BUF_IOCTL_SYNC, &sync) ? -errno : 0);
}

static void touch(void *arg)
{
	struct fz_thread *t = arg;
	uint8_t *at = some_zone(t) + fz_below(t, FZ_ZONE);
	volatile uint8_t *byte = at;

	*byte = fz_once(t, 2) ? *byte : (uint8_t)fz_rand(t);
}

/* --- a child, which has all of it for a moment ------------------------------------------- */

static void child(struct fz_thread *t)
{
	static struct fz_beat unwatched;
	uint32_t i, n = fz_below(t, 30);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t->beat = &unwatched;
	for (i = 0; i < n; i++) {
		switch (fz_below(t, 6)) {
		case 0: fz_post_step(t); break;
		case 1: fz_scribble_step(t); break;
		case 2: fz_command_step(t); break;
		case 3: advise(t); break;
		default: fz_try(touch, t);
		}
	}
	_exit(0);
}

static void fork_step(struct fz_thread *t)
{
	int status = 0;
	pid_t pid;

	fz_begin(t, "fork", 0);
	pid = fork();
	if (!pid)
		child(t);
	fz_end(t, pid);
	did(t, FZ_DID_fork, pid > 0);
	if (pid > 0 && fz_once(t, 4))
		kill(pid, SIGKILL);
	if (pid > 0)
		FZ_CALL(t, "wait for a child", pid, waitpid(pid, &status, 0));
	t->beat->crashed += WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
}

/* --- a process that lives in a glass house ------------------------------------------------ */

/*
 * All of its memory may be written to by whoever finds the key of its region, and so it depends on nothing there: it
 * sleeps. What it shares with the others, and is not for anybody, it gives up before. The zones are where the others
 * have theirs, so requests that make sense go there.
 */
static void live_in_glass(struct fz_thread *t)
{
	static struct fz_beat unwatched;
	uint32_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t->beat = &unwatched;
	for (i = 0; i < FZ_ZONES; i++)
		munmap(zone(i) + FZ_ZONE, CANARY);
	if (!fz_register_all(t))
		_exit(0);
	atomic_fetch_add(&board->houses, 1);
	munmap(board, sizeof(*board));
	for (;;)
		pause();
}

/* of this worker, whose first thread makes it and ends it */
static pid_t house;

static void end_house(struct fz_thread *t)
{
	int status;

	kill(house, SIGKILL);
	/* whatever it died of */
	FZ_CALL(t, "wait for a house of glass", house, waitpid(house, &status, 0));
	house = 0;
}

static void house_step(struct fz_thread *t)
{
	if ((t->beat - board->beat) % FZ_THREADS)
		return;
	if (house > 0) {
		if (fz_once(t, 4))
			end_house(t);
		return;
	}
	fz_begin(t, "fork", 0);
	house = fork();
	if (!house)
		live_in_glass(t);
	fz_end(t, house);
}

void fz_memory_end(struct fz_thread *t)
{
	if (house > 0 && !((t->beat - board->beat) % FZ_THREADS))
		end_house(t);
}

/* --- who brings missing pages --------------------------------------------------------------- */

/* The same for all of a zone: a fault that is not answered would stop those who touch it themselves, too */
static void answer(struct vt_rng *rng, int process, uint64_t at)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));
	struct uffdio_copy copy = { .dst = at & ~(uint64_t)(PAGE - 1), .src = (uintptr_t)page, .len = PAGE };
	struct uffdio_zeropage zero = { .range = { copy.dst, PAGE } };
	int rc;

	usleep(vt_below(rng, 3) ? vt_below(rng, 300) : vt_below(rng, 30000));
	if (!vt_below(rng, 2))
		rc = ioctl(missing, UFFDIO_ZEROPAGE, &zero);
	else
		rc = ioctl(missing, UFFDIO_COPY, &copy);
	board->brought[process] = (struct fz_call){ "a page brought", at, rc ? -errno : 0 };
	/* whoever is in the way of that has brought it already */
	ioctl(missing, UFFDIO_WAKE, &zero.range);
	board->answers[process]++;
}

static void page_forever(uint64_t seed, int process, pid_t warden)
{
	struct pollfd p = { .fd = missing, .events = POLLIN };
	struct vt_rng rng = { seed };
	struct uffd_msg msg;

	/* it must outlive the worker, but nothing of that may live as long as this does */
	dup2(missing, 3);
	missing = p.fd = 3;
	close_range(4, ~0u, 0);
	while (kill(warden, 0) == 0 || errno == EPERM) {
		if (poll(&p, 1, 1000) > 0 && p.revents & (POLLERR | POLLHUP))
			break;
		while (read(missing, &msg, sizeof(msg)) == sizeof(msg))
			if (msg.event == UFFD_EVENT_PAGEFAULT && !fz_never_comes(msg.arg.pagefault.address))
				answer(&rng, process, msg.arg.pagefault.address);
	}
	_exit(0);
}

static void start_pager(struct fz_thread *t)
{
	struct uffdio_api api = { .api = UFFD_API };
	pid_t warden = getppid(), pid;

	missing = board->missing_dev < 0 ? -1 : ioctl(board->missing_dev, USERFAULTFD_IOC_NEW, O_NONBLOCK | O_CLOEXEC);
	if (missing < 0)
		missing = syscall(SYS_userfaultfd, O_NONBLOCK | O_CLOEXEC);
	if (missing < 0 || ioctl(missing, UFFDIO_API, &api))
		return;
	pid = fork();
	if (!pid)
		page_forever(fz_rand(t), t->process, warden);
	board->pager[t->process] = pid;
}

/* Zones that are only ever registered on demand: so whoever waits for them is not in a call of his own */
static void take_away(struct fz_thread *t)
{
	uint32_t i;

	for (i = FZ_ZONES - FZ_NEVER; i < FZ_ZONES; i++) {
		if (board->never >= 0 && (missing < 0 || i & 1))
			did(t, FZ_DID_fuse, map_again(t, zone(i), FZ_ZONE, PROT_READ | PROT_WRITE, MAP_SHARED, board->never));
		else
			register_missing(t, zone(i), FZ_ZONE);
	}
}

void fz_memory_start(struct fz_thread *t)
{
	char path[] = "/tmp/fuzz_verbs.XXXXXX";

	files[0] = memfd_create("fuzz", 0);
	files[1] = mkstemp(path);
	unlink(path);
	files[2] = fz_memfd_secret();
	if (files[2] < 0)
		files[2] = open("/dev/zero", O_RDWR);
	ftruncate(files[0], FZ_ZONE);
	ftruncate(files[1], FZ_ZONE);
	ftruncate(files[2], FZ_ZONE);
	files[3] = board->late;
	files[4] = board->buffer;
	files[5] = board->buffer_file;
	start_pager(t);
	if (board->some_never)
		take_away(t);
}

void fz_memory_step(struct fz_thread *t)
{
	switch (fz_below(t, 64)) {
	case 0: fork_step(t); break;
	case 1 ... 4: change_kind(t); break;
	case 5 ... 15: advise(t); break;
	case 16 ... 18: move(t); break;
	case 19 ... 22: protect(t); break;
	case 23 ... 24: shrink_file(t); break;
	case 25: lock(t); break;
	case 26: sync_buffer(t); break;
	case 27 ... 29: house_step(t); break;
	default: fz_try(touch, t);
	}
}
