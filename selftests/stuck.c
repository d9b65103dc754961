// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * stuck: memory on demand whose pages do not come, because somebody else does not answer. Whoever wants them waits,
 * and nobody but him.
 *
 *	stuck -d DEVICE -i IP HOW		dereg, destroy, reset, advice; neighbours meanwhile
 *	stuck -d DEVICE -i IP HOW hold		waits to be killed, when it is stuck; says "stuck PID FOLDER": who does
 *						not answer, and where its file system is
 *
 * HOW is
 *	uffd	a userfaultfd that nobody reads
 *	fuse	a file system in user space that answers no READ, with readahead: the wait can be broken off
 *	single	likewise, without readahead: the wait ends with the file system only
 * and, with hold only, what does not end because there is so much of it:
 *	empty	advice on what is there of a large region in which nothing is
 *	present	advice to bring in what is there already, again and again
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define PAGE 4096
/* pages that do not come, in one mapping */
#define PAGES 32
#define DEMAND (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS | IBV_ACCESS_ON_DEMAND)

/* nothing here may take longer, but for what waits for the page */
static double soon(void)
{
	const char *slow = getenv("SLOW");

	return 4 * (slow ? atof(slow) : 1);
}

/* --- who does not answer --------------------------------------------------------------- */

static pid_t server;
static char mountpoint[] = "/tmp/sroce-stuck.XXXXXX";
static bool mounted;

static void stop_server(void)
{
	if (mounted)
		umount2(mountpoint, MNT_DETACH);
	if (server) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
		rmdir(mountpoint);
	}
	server = 0;
	mounted = false;
}

/* Keeps what it has inherited open */
static pid_t idle_process(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, 0);
		for (;;)
			pause();
	}
	return pid;
}

static void *map_uffd(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *p;

	if (fd < 0)
		vt_die(VT_SKIP, "no userfaultfd: %s", strerror(errno));
	p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uintptr_t)p;
	reg.range.len = PAGES * PAGE;
	if (p == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		vt_die(VT_SETUP, "userfaultfd: %s", strerror(errno));
	/* it does not end with us */
	server = idle_process();
	close(fd);
	return p;
}

struct fuse_answer {
	struct fuse_out_header head;
	union {
		struct fuse_init_out init;
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		char page[PAGE];
	};
};

/* A file of which only the first part is ever read: more than a registration asks for at a time */
#define ANSWERED 256
#define HALF (2 * ANSWERED)
static size_t pages = PAGES;

static void fuse_file(struct fuse_attr *attr, bool root)
{
	attr->ino = root ? FUSE_ROOT_ID : 2;
	attr->mode = root ? S_IFDIR | 0755 : S_IFREG | 0644;
	attr->size = root ? 0 : pages * PAGE;
	attr->nlink = 1;
	attr->blksize = PAGE;
}

/* The length of the answer; -1: none, ever */
static int fuse_say(const struct fuse_in_header *in, struct fuse_answer *out)
{
	const struct fuse_read_in *read = (void *)(in + 1);

	switch (in->opcode) {
	case FUSE_INIT:
		out->init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = PAGE,
						    .max_readahead = PAGES * PAGE, .flags = FUSE_ASYNC_READ };
		return sizeof(out->init);
	case FUSE_LOOKUP:
		out->entry = (struct fuse_entry_out){ .nodeid = 2, .entry_valid = 1000, .attr_valid = 1000 };
		fuse_file(&out->entry.attr, false);
		return sizeof(out->entry);
	case FUSE_GETATTR:
		out->attr = (struct fuse_attr_out){ .attr_valid = 1000 };
		fuse_file(&out->attr.attr, in->nodeid == FUSE_ROOT_ID);
		return sizeof(out->attr);
	case FUSE_OPEN:
		out->open = (struct fuse_open_out){ .fh = 1 };
		return sizeof(out->open);
	case FUSE_READ:
		return pages == HALF && read->offset < ANSWERED * PAGE && read->size == PAGE ? PAGE : -1;
	case FUSE_INTERRUPT:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return -1;
	default:
		out->head.error = -ENOSYS;
		return 0;
	}
}

static void fuse_serve(int fd)
{
	static char buffer[FUSE_MIN_READ_BUFFER + PAGES * PAGE];
	const struct fuse_in_header *in = (void *)buffer;
	static struct fuse_answer out;
	int len;

	for (;;) {
		if (read(fd, buffer, sizeof(buffer)) < 0) {
			if (errno == ENODEV)
				_exit(0);
			continue;
		}
		memset(&out, 0, sizeof(out));
		out.head.unique = in->unique;
		len = fuse_say(in, &out);
		if (len < 0)
			continue;
		out.head.len = sizeof(out.head) + len;
		if (write(fd, &out, out.head.len) < 0)
			_exit(1);
	}
}

/* Without readahead a page is waited for by whoever touches it, and that cannot be broken off */
static void *map_fuse(bool readahead)
{
	int prot = PROT_READ | (pages == HALF ? 0 : PROT_WRITE);
	int fd = open("/dev/fuse", O_RDWR), file;
	char options[100], path[100];
	void *p;

	if (fd < 0)
		vt_die(VT_SKIP, "no FUSE: %s", strerror(errno));
	if (!mkdtemp(mountpoint))
		vt_die(VT_SETUP, "mkdtemp: %s", strerror(errno));
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("stuck", mountpoint, "fuse", MS_NOSUID | MS_NODEV, options))
		vt_die(VT_SETUP, "mount: %s", strerror(errno));
	mounted = true;
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, 0);
		fuse_serve(fd);
	}
	close(fd);
	snprintf(path, sizeof(path), "%s/page", mountpoint);
	file = open(path, O_RDWR);
	if (file < 0)
		vt_die(VT_SETUP, "%s: %s", path, strerror(errno));
	p = mmap(NULL, pages * PAGE, prot, pages == HALF ? MAP_PRIVATE : MAP_SHARED, file, 0);
	if (p == MAP_FAILED || (!readahead && madvise(p, pages * PAGE, MADV_RANDOM)))
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	close(file);
	return p;
}

static void *map_stuck(const char *how)
{
	if (!strcmp(how, "uffd"))
		return map_uffd();
	if (!strcmp(how, "half"))
		pages = HALF;
	return map_fuse(!strcmp(how, "fuse"));
}

/* --- too much advice ------------------------------------------------------------------- */

static bool is_vast(const char *how)
{
	return !strcmp(how, "empty") || !strcmp(how, "present") || !strcmp(how, "lost");
}

/* Never returns: waits for one advice after the other, each as large as it can be */
static void advise_vast(const char *how)
{
	static struct ibv_sge sge[4095];
	bool empty = !strcmp(how, "empty");
	size_t size = empty ? 1UL << 30 : 1UL << 26;
	void *p = mmap(NULL, size, empty ? PROT_NONE : PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (empty ? MAP_NORESERVE : MAP_POPULATE), -1, 0);
	struct ibv_mr *vast = p == MAP_FAILED ? NULL : ibv_reg_mr(b.dev->pd, p, size, DEMAND);
	size_t i;

	if (!vast)
		vt_die(VT_SETUP, "a large region: %s", strerror(errno));
	for (i = 0; i < ARRAY_SIZE(sge); i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)p, size, vast->lkey };
	printf("stuck\n");
	fflush(stdout);
	for (;;)
		if (ibv_advise_mr(b.dev->pd, empty ? IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT :
				  IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, sge, ARRAY_SIZE(sge)) == EIO)
			pause();
}

/* --- memory that is always being lost ------------------------------------------------------ */

#define LOSERS 8

static void *loser(void *hole)
{
	for (;;)
		madvise(hole, 1UL << 30, MADV_DONTNEED);
	return NULL;
}

/*
 * Never returns: threads do without the same hole of one region again and again, so that there is no moment in which
 * none of them does, and the main one asks which pages of another region are there
 */
static void lose_vast(void)
{
	size_t size = (1UL << 30) + PAGE;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *q = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *vast = p == MAP_FAILED ? NULL : ibv_reg_mr(b.dev->pd, p, size, DEMAND);
	struct ibv_mr *small = q == MAP_FAILED ? NULL : ibv_reg_mr(b.dev->pd, q, PAGE, DEMAND);
	struct ibv_sge sge = { (uintptr_t)p + size - PAGE, PAGE };
	pthread_t thread;
	int i;

	if (!vast || !small)
		vt_die(VT_SETUP, "two regions: %s", strerror(errno));
	sge.lkey = vast->lkey;
	if (ibv_advise_mr(b.dev->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1))
		vt_die(VT_SETUP, "advise: %s", strerror(errno));
	for (i = 0; i < LOSERS; i++)
		pthread_create(&thread, NULL, loser, p);
	usleep(100000);
	printf("stuck\n");
	fflush(stdout);
	sge = (struct ibv_sge){ (uintptr_t)q, PAGE, small->lkey };
	for (;;)
		if (ibv_advise_mr(b.dev->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, &sge,
				  1) == EIO)
			pause();
}

/* --- regions ----------------------------------------------------------------------------- */

static char *stuck;
static struct ibv_mr *mr, *mine;

static struct place at(struct ibv_mr *to, size_t offset)
{
	return (struct place){ (uintptr_t)to->addr + offset, to->rkey };
}

static void make_regions(void)
{
	mr = ibv_reg_mr(b.dev->pd, stuck, PAGES * PAGE, DEMAND);
	if (!mr)
		vt_die(VT_WRONG, "WRONG: reg mr: %s", strerror(errno));
	mine = vt_mr(a.dev, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);
}

/* A WRITE that does not complete, because its page does not come */
static bool begin(unsigned int page)
{
	struct ibv_wc wc;

	ends_fresh(IBV_QPT_RC);
	if (post_op(&a, 1, IBV_WR_RDMA_WRITE, at(mine, 0), 8, at(mr, page * PAGE)))
		vt_die(VT_SETUP, "post: %s", strerror(errno));
	if (!poll_one(a.send_cq, &wc, 0.3))
		return true;
	printf("# page %u: %s\n", page, ibv_wc_status_str(wc.status));
	return false;
}

static int advise(unsigned int page, uint32_t flags)
{
	struct ibv_sge sge = { (uintptr_t)stuck + page * PAGE, PAGE, mr->lkey };

	return ibv_advise_mr(b.dev->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flags, &sge, 1);
}

/* The caller waits, but not for good */
static void advise_and_wait(unsigned int page)
{
	double start = vt_now();
	int rc = advise(page, IBV_ADVISE_MR_FLAG_FLUSH);

	vt_check(rc == ETIMEDOUT && vt_now() - start < 3 * soon(), "advice, and waiting: %s, %.1f s",
		 rc ? strerror(rc) : "done", vt_now() - start);
}

/* Nobody waits: a few are taken on, and then no more, however often it is tried */
static void advise_crowd(void)
{
	unsigned int i, taken = 0, refused = 0, n = 20000;

	for (i = 0; i < n; i++) {
		int rc = advise(8 + i % (PAGES - 8), 0);

		taken += !rc;
		refused += rc == EAGAIN;
	}
	vt_check(taken && taken <= 16 && taken + refused == n, "advice on %u pages: %u taken, %u refused", n, taken,
		 refused);
}

/* --- neighbours -------------------------------------------------------------------------- */

static int neighbour_works(int argc, char **argv)
{
	struct ibv_mr *cold, *pinned;
	int i;

	optind = 1;
	/* what it says is not ours */
	if (!freopen("/dev/null", "w", stdout))
		return 1;
	vt_failures = 0;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	ends_open(argc, argv);
	pinned = vt_mr(a.dev, PAGES * PAGE, DEMAND & ~IBV_ACCESS_ON_DEMAND);
	cold = ibv_reg_mr(b.dev->pd, mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			  PAGES * PAGE, DEMAND);
	if (!cold)
		return 1;
	ends_fresh(IBV_QPT_RC);
	for (i = 0; i < PAGES; i++) {
		memset(pinned->addr, i + 1, PAGE);
		expect_op("WRITE", &a, IBV_WR_RDMA_WRITE, at(pinned, 0), PAGE, at(cold, i * PAGE), IBV_WC_SUCCESS);
		if (vt_failures || ((char *)cold->addr)[i * PAGE] != i + 1)
			return 1;
	}
	return 0;
}

/* Another process's memory on demand is as good as ever */
static void neighbour(const char *when, int argc, char **argv)
{
	double start = vt_now(), end = start + 3 * soon();
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(neighbour_works(argc, argv));
	while (waitpid(child, &status, WNOHANG) == 0 && vt_now() < end)
		usleep(20000);
	if (status == -1)
		kill(child, SIGKILL);
	vt_check(status == 0, "%s: another process (status %d, %.1f s)", when, status, vt_now() - start);
}

/* --- what must not wait --------------------------------------------------------------------- */

static void took(const char *what, double start, bool ok)
{
	vt_check(ok && vt_now() - start < soon(), "%s, %.1f s", what, vt_now() - start);
}

static void queue_pairs(void)
{
	struct ibv_mr *other = ibv_reg_mr(b.dev->pd, mine->addr, mine->length, DEMAND);
	struct vt_conn c = ends_how;
	double start;

	vt_check(begin(0), "a WRITE waits");
	start = vt_now();
	ends_stop();
	took("its queue pairs are destroyed", start, true);
	vt_check(begin(1), "another one waits");
	start = vt_now();
	took("its queue pair is reset", start, !vt_to_state(b.qp, IBV_QPS_RESET));
	/* the same queue pair has another life, and other pages */
	vt_to_state(a.qp, IBV_QPS_RESET);
	c.peer = (struct vt_addr){ .qpn = b.qp->qp_num, .psn = 1, .gid = b.dev->gid };
	c.sq_psn = 1;
	if (vt_bring_up(a.qp, a.dev, VT_REMOTE_ACCESS, &c))
		vt_die(VT_SETUP, "connect: %s", strerror(errno));
	c.peer = (struct vt_addr){ .qpn = a.qp->qp_num, .psn = 1, .gid = a.dev->gid };
	if (vt_bring_up(b.qp, b.dev, VT_REMOTE_ACCESS, &c))
		vt_die(VT_SETUP, "connect: %s", strerror(errno));
	expect_op("... and then used with other memory", &a, IBV_WR_RDMA_WRITE, at(mine, 0), 8, at(other, PAGE),
		  IBV_WC_SUCCESS);
	ends_stop();
	ibv_dereg_mr(other);
}

static void regions(int argc, char **argv)
{
	struct ibv_mr *first = mr;
	double start;

	vt_check(begin(2), "a WRITE waits");
	neighbour("while one page is awaited", argc, argv);
	advise_crowd();
	neighbour("while many are", argc, argv);
	start = vt_now();
	took("the region is deregistered", start, !ibv_dereg_mr(first));
	expect_wc("and the WRITE fails", a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ends_stop();
}

static void reregistered(void)
{
	double start;
	int rc;

	vt_check(begin(3), "a WRITE waits");
	start = vt_now();
	rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mine->addr, mine->length, 0);
	took("the region is re-registered", start, !rc);
	ends_stop();
	ibv_dereg_mr(mr);
}

/* Says what holds, for the script */
static void say_stuck(void)
{
	printf("stuck %d %s\n", server, mounted ? mountpoint : "");
	fflush(stdout);
}

/* --- a registration that waits --------------------------------------------------------------- */

static void *registers(void *done)
{
	struct ibv_mr *pinned = ibv_reg_mr(b.dev->pd, stuck, pages * PAGE, 0);

	printf("registered: %s\n", pinned ? "all of it" : strerror(errno));
	__atomic_store_n((bool *)done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Never returns: a thread of ours pins pages that do not come, and has its answer only when it is told why not */
static void pin(void)
{
	static bool done;
	pthread_t thread;

	pthread_create(&thread, NULL, registers, &done);
	sleep(1);
	if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		vt_die(VT_WRONG, "WRONG: it did not wait");
	say_stuck();
	for (;;)
		pause();
}

static void hold(void)
{
	vt_check(begin(0), "a WRITE waits");
	if (vt_failures)
		exit(VT_WRONG);
	say_stuck();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *how;
	bool pinned;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 1; i < argc && argv[i][0] == '-'; i += 2)
		;
	how = i < argc ? argv[i] : "";
	pinned = !strncmp(how, "pinned-", 7);
	how += pinned ? 7 : 0;
	if (strcmp(how, "uffd") && strcmp(how, "fuse") && strcmp(how, "single") && !(pinned && !strcmp(how, "half")) &&
	    !is_vast(how))
		vt_die(VT_SETUP, "usage: stuck -d DEVICE -i IP [pinned-]uffd|fuse|single|empty|present|lost|pinned-half [hold]");
	if (is_vast(how)) {
		argv[i] = NULL;
		ends_open(i, argv);
		if (!strcmp(how, "lost"))
			lose_vast();
		advise_vast(how);
	}
	atexit(stop_server);
	stuck = map_stuck(how);
	argv[i] = NULL;
	ends_open(i, argv);
	if (pinned)
		pin();
	make_regions();
	if (i + 1 < argc)
		hold();
	queue_pairs();
	regions(i, argv);
	make_regions();
	advise_and_wait(6);
	reregistered();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
