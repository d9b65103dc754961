// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * lend: two processes that have one file of the device, which one of them, the owner, has opened,
 * and the other one has imported with what the owner has there (ibv_import_*()). The owner ends:
 * killed, under traffic as well, or as it becomes another program. Memory that is the kernel's or
 * is pinned stays for the other one; memory on demand ends with the process that it belongs to.
 * And either takes away what the other one uses.
 *
 *	lend -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] [COMMAND...]
 *
 * With COMMAND, which removes the owner's device, only that is tried; with OWNER=dead in the
 * environment when the owner was killed before.
 *
 * @a asks; @b is the queue pair of the process that has imported, in the owner's domain.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define ROOM (64 * 1024)
#define ALL (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS)

enum kind { PINNED, DEVICE_MEMORY, DMABUF, DEMAND, IMPLICIT, KINDS };

static const char *const names[KINDS] = {
	"pinned memory", "device memory", "a dma-buf", "memory on demand", "all memory",
};

/* a region of the owner's; without a key it has none of this kind */
struct region {
	uint64_t addr;
	uint32_t handle, key;
};

/* what the owner tells of what it has */
struct lent {
	uint32_t pd, spare_pd, dm, spare_dm;
	struct region of[KINDS];
};

/* --- the owner ------------------------------------------------------------------------------- */

static struct {
	struct vt_dev dev;
	struct ibv_pd *spare_pd;
	struct ibv_dm *spare_dm;
	struct ibv_mr *pinned;
} own;

static char *filled(enum kind kind)
{
	char *p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	vt_pattern(p, kind, 0, ROOM);
	return p;
}

static struct region region_of(struct ibv_mr *mr, void *addr)
{
	if (!mr)
		vt_die(VT_WRONG, "WRONG: the owner's regions: %s", strerror(errno));
	return (struct region){ (uintptr_t)addr, mr->handle, mr->lkey };
}

static struct ibv_dm *new_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = ROOM };
	struct ibv_dm *dm = ibv_alloc_dm(own.dev.ctx, &attr);

	if (!dm)
		vt_die(VT_WRONG, "WRONG: alloc dm: %s", strerror(errno));
	return dm;
}

static struct region device_memory(struct ibv_dm *dm)
{
	char *data = filled(DEVICE_MEMORY);

	ibv_memcpy_to_dm(dm, 0, data, ROOM);
	munmap(data, ROOM);
	return region_of(ibv_reg_dm_mr(own.dev.pd, dm, 0, ROOM, ALL | IBV_ACCESS_ZERO_BASED), NULL);
}

/* Not on every kernel; and not where devices need not be coherent */
static struct region dmabuf(void)
{
	struct udmabuf_create create = { .size = ROOM };
	int memfd = memfd_create("lend", MFD_ALLOW_SEALING), dev = open("/dev/udmabuf", O_RDWR), fd;
	char *data = filled(DMABUF);
	struct ibv_mr *mr;

	create.memfd = memfd;
	if (dev < 0 || write(memfd, data, ROOM) != ROOM || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return (struct region){};
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	mr = fd < 0 ? NULL : ibv_reg_dmabuf_mr(own.dev.pd, 0, ROOM, 0, fd, ALL);
	return mr ? region_of(mr, NULL) : (struct region){};
}

/* In a parent domain, as an application with threads may have it */
static struct ibv_mr *pinned(char *memory)
{
	struct ibv_parent_domain_init_attr attr = { .pd = own.dev.pd };
	struct ibv_pd *parent = ibv_alloc_parent_domain(own.dev.ctx, &attr);

	return parent ? ibv_reg_mr(parent, memory, ROOM, ALL) : NULL;
}

static struct lent lend(void)
{
	char *memory = filled(PINNED), *demand = filled(DEMAND), *all = filled(IMPLICIT);
	struct ibv_pd *pd = own.dev.pd;
	struct ibv_dm *dm = new_dm();
	struct lent lent = {};

	own.spare_pd = ibv_alloc_pd(own.dev.ctx);
	own.spare_dm = new_dm();
	own.pinned = pinned(memory);
	lent.pd = pd->handle;
	lent.spare_pd = own.spare_pd->handle;
	lent.dm = dm->handle;
	lent.spare_dm = own.spare_dm->handle;
	lent.of[PINNED] = region_of(own.pinned, memory);
	lent.of[DEVICE_MEMORY] = device_memory(dm);
	lent.of[DMABUF] = dmabuf();
	lent.of[DEMAND] = region_of(ibv_reg_mr(pd, demand, ROOM, ALL | IBV_ACCESS_ON_DEMAND),
				    demand);
	lent.of[IMPLICIT] = region_of(ibv_reg_mr(pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND),
				      all);
	return lent;
}

static void give(int to, struct lent lent, int file)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &lent, sizeof(lent) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &file, sizeof(int));
	if (sendmsg(to, &msg, 0) != sizeof(lent))
		vt_die(VT_GONE, "the other process is gone");
}

enum { EXEC, FREE_PD, FREE_DM, FREE_REGION, CLOSE };

static int obey(int what)
{
	switch (what) {
	case EXEC:
		execlp("sleep", "sleep", "1000", NULL);
		return errno;
	case FREE_PD:
		return ibv_dealloc_pd(own.spare_pd);
	case FREE_DM:
		return ibv_free_dm(own.spare_dm);
	case FREE_REGION:
		return ibv_dereg_mr(own.pinned);
	default:
		return ibv_close_device(own.dev.ctx) ? errno : 0;
	}
}

/* Does what it is told, and tells the error */
static void be_owner(int fd, const struct vt_dev *dev)
{
	int what, rc;

	vt_open(&own.dev, ibv_get_device_name(dev->ctx->device), NULL, dev->gid_index);
	give(fd, lend(), own.dev.ctx->cmd_fd);
	while (read(fd, &what, sizeof(what)) == sizeof(what)) {
		rc = obey(what);
		if (write(fd, &rc, sizeof(rc)) != sizeof(rc))
			break;
	}
	_exit(0);
}

/* --- who has imported ------------------------------------------------------------------------ */

/* of the requester: what it sends, and behind that what it gets */
static struct ibv_mr *mine;

/* the device of @b as this process has opened it itself, and its queues there */
static struct end at_home;

static struct {
	pid_t owner;
	int fd;
	struct lent lent;
	struct vt_dev dev;
	struct ibv_dm *dm;
	/* what is in each region: the number of its pattern */
	uint64_t holds[KINDS];
	/* before it was there */
	long pinned;
	char resources[4096];
} guest;

static const char *resources(void)
{
	return vt_rdma("-j resource show %s", ibv_get_device_name(at_home.dev->ctx->device));
}

static int take(int from, struct lent *lent)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { lent, sizeof(*lent) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int file;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != sizeof(*lent) || !CMSG_FIRSTHDR(&msg))
		vt_die(VT_WRONG, "WRONG: the owner has nothing");
	memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return file;
}

static void start_owner(void)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		vt_die(VT_SETUP, "socket pair: %s", strerror(errno));
	fflush(stdout);
	guest.owner = fork();
	if (!guest.owner) {
		close(fd[0]);
		be_owner(fd[1], at_home.dev);
	}
	close(fd[1]);
	guest.fd = fd[0];
}

/* @b becomes a queue pair of the imported domain */
static void import(void)
{
	size_t i;

	snprintf(guest.resources, sizeof(guest.resources), "%s", resources());
	if (!strstr(guest.resources, "\"mr\":"))
		vt_die(VT_SETUP, "no resources: %s", guest.resources);
	guest.pinned = vt_pinned();
	start_owner();
	guest.dev = *at_home.dev;
	guest.dev.ctx = ibv_import_device(take(guest.fd, &guest.lent));
	if (!guest.dev.ctx)
		vt_die(VT_WRONG, "WRONG: import device: %s", strerror(errno));
	fcntl(guest.dev.ctx->async_fd, F_SETFL, O_NONBLOCK);
	guest.dev.pd = ibv_import_pd(guest.dev.ctx, guest.lent.pd);
	guest.dm = ibv_import_dm(guest.dev.ctx, guest.lent.dm);
	if (!guest.dev.pd || !guest.dm)
		vt_die(VT_WRONG, "WRONG: import: %s", strerror(errno));
	for (i = 0; i < KINDS; i++)
		guest.holds[i] = i;
	b.dev = &guest.dev;
	b.send_cq = vt_create_cq(&guest.dev, 4 * ends_depth);
	b.recv_cq = vt_create_cq(&guest.dev, 4 * ends_depth);
}

static void end_owner(void)
{
	kill(guest.owner, SIGKILL);
	if (waitpid(guest.owner, NULL, 0) != guest.owner)
		vt_die(VT_SETUP, "wait: %s", strerror(errno));
}

/* What is ours goes, in whatever state the device and the owner are */
static bool let_go(void)
{
	int rc;

	ends_stop();
	rc = ibv_destroy_cq(b.send_cq) ?: ibv_destroy_cq(b.recv_cq);
	b = at_home;
	ibv_unimport_dm(guest.dm);
	ibv_unimport_pd(guest.dev.pd);
	rc = ibv_close_device(guest.dev.ctx) ?: rc;
	close(guest.fd);
	return !rc;
}

/* Everything that the two of them had goes with the file */
static void leave(const char *what)
{
	double end = vt_now() + 10;
	bool gone = let_go();
	bool nothing;

	do
		nothing = !strcmp(resources(), guest.resources) && vt_pinned() == guest.pinned;
	while (!nothing && vt_now() < end);
	if (!nothing)
		printf("# had %s, has %s, %ld KiB more are pinned\n", guest.resources,
		       resources(), vt_pinned() - guest.pinned);
	vt_check(gone && nothing, "%s: then we close, and nothing is left", what);
}

static int tell_owner(int what)
{
	int rc;

	if (write(guest.fd, &what, sizeof(what)) != sizeof(what) ||
	    read(guest.fd, &rc, sizeof(rc)) != sizeof(rc))
		vt_die(VT_WRONG, "WRONG: the owner is gone");
	return rc;
}

/* --- regions --------------------------------------------------------------------------------- */

static struct place in(enum kind kind)
{
	return (struct place){ guest.lent.of[kind].addr, guest.lent.of[kind].key };
}

static struct place got(void)
{
	return (struct place){ (uintptr_t)mine->addr + ROOM, mine->lkey };
}

static bool is_there(enum kind kind)
{
	return guest.lent.of[kind].key;
}

static bool ends_with_owner(enum kind kind)
{
	return kind == DEMAND || kind == IMPLICIT;
}

static enum ibv_wc_status done(struct end *e)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	poll_one(e->send_cq, &wc, 10);
	return wc.status;
}

static enum ibv_wc_status asks(enum ibv_wr_opcode opcode, enum kind kind)
{
	post_op(&a, 1, opcode, opcode == IBV_WR_RDMA_READ ? got() : local(mine), ROOM, in(kind));
	return done(&a);
}

/* What has come is what the region holds */
static bool right(enum kind kind)
{
	static char wanted[ROOM];

	vt_pattern(wanted, guest.holds[kind], 0, ROOM);
	return !memcmp((char *)mine->addr + ROOM, wanted, ROOM);
}

static bool reads(enum kind kind)
{
	memset((char *)mine->addr + ROOM, 0, ROOM);
	return asks(IBV_WR_RDMA_READ, kind) == IBV_WC_SUCCESS && right(kind);
}

static bool writes(enum kind kind)
{
	guest.holds[kind] += KINDS;
	vt_pattern(mine->addr, guest.holds[kind], 0, ROOM);
	return asks(IBV_WR_RDMA_WRITE, kind) == IBV_WC_SUCCESS;
}

/* Our own queue pair takes it as its local memory */
static enum ibv_wc_status sends_from(enum kind kind)
{
	memset((char *)mine->addr + ROOM, 0, ROOM);
	post_op(&b, 2, IBV_WR_RDMA_WRITE, in(kind), ROOM, got());
	return done(&b);
}

static const char *well(bool ok)
{
	return ok ? "good" : "wrong";
}

static void works(const char *what, enum kind kind)
{
	bool had, took, sent;

	ends_fresh(IBV_QPT_RC);
	had = reads(kind);
	took = writes(kind) && reads(kind);
	sent = sends_from(kind) == IBV_WC_SUCCESS && right(kind);
	vt_check(had && took && sent, "%s: %s: a READ: %s, a WRITE: %s, sent from it: %s", what,
		 names[kind], well(had), well(took), well(sent));
}

static void fails(const char *what, enum kind kind)
{
	enum ibv_wc_status had, took, sent;

	ends_fresh(IBV_QPT_RC);
	had = asks(IBV_WR_RDMA_READ, kind);
	ends_fresh(IBV_QPT_RC);
	took = asks(IBV_WR_RDMA_WRITE, kind);
	ends_fresh(IBV_QPT_RC);
	sent = sends_from(kind);
	vt_check(had == IBV_WC_REM_ACCESS_ERR && took == IBV_WC_REM_ACCESS_ERR &&
		 sent == IBV_WC_LOC_PROT_ERR, "%s: %s: a READ: %s, a WRITE: %s, sent from it: %s",
		 what, names[kind], ibv_wc_status_str(had), ibv_wc_status_str(took),
		 ibv_wc_status_str(sent));
}

/* Device memory is mapped into our own process, too */
static void copies(const char *what)
{
	static char wanted[ROOM], seen[ROOM];

	vt_pattern(wanted, guest.holds[DEVICE_MEMORY], 0, ROOM);
	vt_check(!ibv_memcpy_from_dm(seen, guest.dm, 0, ROOM) && !memcmp(seen, wanted, ROOM),
		 "%s: device memory is copied", what);
	guest.holds[DEVICE_MEMORY] += KINDS;
	vt_pattern(wanted, guest.holds[DEVICE_MEMORY], 0, ROOM);
	ibv_memcpy_to_dm(guest.dm, 0, wanted, ROOM);
}

/*
 * As if it were ours. An imported one would not do: libibverbs itself refuses to register it
 * again, and in a process of 32 bits to import it.
 */
static struct ibv_mr *as_ours(enum kind kind)
{
	/* with what libibverbs has behind it, which is 0 for an ordinary one */
	struct ibv_mr *mr = calloc(1, sizeof(*mr) + 64);

	*mr = (struct ibv_mr){ .context = guest.dev.ctx, .pd = guest.dev.pd, .length = ROOM,
			       .handle = guest.lent.of[kind].handle };
	return mr;
}

static void not_rereg(const char *what, const char *how, struct ibv_mr *mr, int access)
{
	int rc;

	errno = 0;
	rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access);
	vt_check(rc == IBV_REREG_MR_ERR_CMD && errno == EINVAL, "%s: %s is refused: %d, %s", what,
		 how, rc, strerror(errno));
}

/* Whose pages would have to be looked up in the memory of a process that is gone, or in ours */
static void not_looked_up(const char *what)
{
	struct ibv_mr *mr = as_ours(PINNED), *demand = as_ours(DEMAND);

	not_rereg(what, "its region, then on demand,", mr, ALL | IBV_ACCESS_ON_DEMAND);
	not_rereg(what, "its region on demand, then pinned,", demand, ALL);
	not_rereg(what, "its region on demand, with less access,", demand,
		  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	vt_check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_REMOTE_READ), "%s: its region, with less access", what);
	ends_fresh(IBV_QPT_RC);
	vt_check(reads(PINNED) && asks(IBV_WR_RDMA_WRITE, PINNED) == IBV_WC_REM_ACCESS_ERR,
		 "%s: its region, with less access: a READ and no WRITE", what);
	free(mr);
	free(demand);
}

static void judge(const char *what)
{
	enum kind kind;
	long pinned;

	ends_stop();
	pinned = vt_pinned();
	for (kind = 0; kind < KINDS; kind++)
		if (!is_there(kind))
			printf("skip: %s: %s [this kernel has none\n", what, names[kind]);
		else if (ends_with_owner(kind))
			fails(what, kind);
		else
			works(what, kind);
	copies(what);
	works(what, DEVICE_MEMORY);
	not_looked_up(what);
	ends_stop();
	vt_check(vt_pinned() == pinned, "%s: nothing of it is pinned by us: %ld KiB", what,
		 vt_pinned() - pinned);
}

/* --- the owner ends -------------------------------------------------------------------------- */

static void killed(void)
{
	enum kind kind;

	import();
	for (kind = 0; kind < KINDS; kind++)
		if (is_there(kind))
			works("owner alive", kind);
	end_owner();
	judge("owner killed");
	leave("owner killed");
}

static void executed(void)
{
	int what = EXEC, rc;

	import();
	/* The socket is closed when another program begins */
	if (write(guest.fd, &what, sizeof(what)) != sizeof(what) || read(guest.fd, &rc, sizeof(rc)))
		vt_die(VT_SETUP, "no exec()");
	judge("owner is another program");
	leave("owner is another program");
	end_owner();
}

static void closed(void)
{
	enum kind kind;

	import();
	vt_check(!tell_owner(CLOSE), "owner closes its device");
	/* It lives, and so does its memory */
	for (kind = 0; kind < KINDS; kind++)
		if (is_there(kind))
			works("owner has closed", kind);
	end_owner();
	leave("owner has closed");
}

#define BEFORE 20
#define AFTER 100

/* A kind of memory that stays: nothing fails, and no byte is wrong */
static void killed_meanwhile(enum kind kind)
{
	int i, bad = 0;

	import();
	if (!is_there(kind)) {
		printf("skip: owner killed under traffic: %s [this kernel has none\n", names[kind]);
	} else {
		ends_fresh(IBV_QPT_RC);
		for (i = 0; i < BEFORE + AFTER; i++) {
			bad += !writes(kind) || !reads(kind);
			if (i == BEFORE)
				kill(guest.owner, SIGKILL);
		}
		vt_check(!bad, "owner killed under traffic: %s: %d of %d wrong", names[kind], bad,
			 i);
	}
	end_owner();
	leave("owner killed under traffic");
}

/* One that ends: then requests fail as they have to, and what was posted completes */
static void taken_meanwhile(enum kind kind)
{
	enum ibv_wc_status status, first = IBV_WC_SUCCESS;
	int i, n, good = 0, wrong = 0;
	double end;

	import();
	ends_fresh(IBV_QPT_RC);
	end = vt_now() + 20;
	for (i = 0; !first && vt_now() < end; i++) {
		for (n = 0; n < 8; n++)
			post_op(&a, n, n % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				n % 2 ? got() : local(mine), ROOM, in(kind));
		if (i == 2)
			kill(guest.owner, SIGKILL);
		for (n = 0; n < 8; n++) {
			status = done(&a);
			good += !status;
			wrong += first && status != IBV_WC_WR_FLUSH_ERR;
			first = first ?: status;
		}
	}
	vt_check(first == IBV_WC_REM_ACCESS_ERR && !wrong,
		 "owner killed under traffic: %s: %d done, then %s", names[kind], good,
		 ibv_wc_status_str(first));
	end_owner();
	leave("owner killed under traffic");
}

/* --- either takes away what the other one uses ------------------------------------------------ */

static void domain_in_use(void)
{
	struct ibv_pd *pd = ibv_import_pd(guest.dev.ctx, guest.lent.spare_pd);
	static char memory[4096];
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), ALL);
	int rc;

	vt_check(mr, "a region of ours in the owner's domain: %s", mr ? "done" : strerror(errno));
	if (!mr)
		return;
	rc = tell_owner(FREE_PD);
	vt_check(rc == EBUSY, "then the owner keeps its domain: %s", strerror(rc));
	vt_check(!ibv_dereg_mr(mr) && !tell_owner(FREE_PD), "without it that goes");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), ALL);
	vt_check(!mr, "and has no region any more: %s", mr ? "done" : strerror(errno));
	ibv_unimport_pd(pd);
}

static void device_memory_in_use(void)
{
	struct ibv_dm *dm = ibv_import_dm(guest.dev.ctx, guest.lent.spare_dm);
	char data[64] = "here", seen[64] = "";
	struct ibv_mr *mr = NULL;
	int rc;

	if (dm)
		mr = ibv_reg_dm_mr(guest.dev.pd, dm, 0, ROOM, ALL | IBV_ACCESS_ZERO_BASED);
	vt_check(mr, "a region of ours on the owner's device memory: %s",
		 mr ? "done" : strerror(errno));
	if (!mr)
		return;
	rc = tell_owner(FREE_DM);
	vt_check(rc == EBUSY, "then the owner keeps that memory: %s", strerror(rc));
	vt_check(!ibv_dereg_mr(mr) && !tell_owner(FREE_DM), "without it that goes");
	/* It was mapped here before, and stays as long as it is */
	vt_check(!ibv_memcpy_to_dm(dm, 0, data, 64) && !ibv_memcpy_from_dm(seen, dm, 0, 64) &&
		 !memcmp(data, seen, 64), "what we have mapped of it is there");
	vt_check(!ibv_import_dm(guest.dev.ctx, guest.lent.spare_dm), "and is imported no more");
	ibv_unimport_dm(dm);
}

static void region_goes(void)
{
	struct ibv_mr *mr = as_ours(PINNED);
	enum ibv_wc_status status;
	int rc;

	ends_fresh(IBV_QPT_RC);
	vt_check(reads(PINNED), "a region that we end: a READ before");
	vt_check(!ibv_dereg_mr(mr), "a region that we end: it ends");
	status = asks(IBV_WR_RDMA_READ, PINNED);
	vt_check(status == IBV_WC_REM_ACCESS_ERR, "a region that we end: a READ: %s",
		 ibv_wc_status_str(status));
	rc = tell_owner(FREE_REGION);
	vt_check(rc, "a region that we end: the owner has none any more: %s", strerror(rc));
}

static void taken_away(void)
{
	import();
	domain_in_use();
	device_memory_in_use();
	region_goes();
	end_owner();
	leave("taken away");
}

/* --- the device goes -------------------------------------------------------------------------- */

/* Who has the file: an owner and we, and (@alone) we only */
static void device_goes(char **command, bool alone)
{
	const char *what = alone ? "device gone, without an owner" : "device gone";
	static char memory[4096];
	int status, err;
	pid_t pid;

	import();
	ends_fresh(IBV_QPT_RC);
	post_recv(&b, 1, in(PINNED), ROOM);
	if (alone)
		end_owner();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execvp(command[0], command);
		_exit(127);
	}
	vt_check(waitpid(pid, &status, 0) == pid && !status, "%s: it goes: %#x", what, status);
	vt_check(vt_event_comes(&guest.dev, IBV_EVENT_DEVICE_FATAL, NULL, 10), "%s: we are told",
		 what);
	err = ibv_reg_mr(guest.dev.pd, memory, sizeof(memory), ALL) ? 0 : errno;
	vt_check(err == EIO, "%s: no region any more: %s", what, strerror(err));
	err = ibv_import_dm(guest.dev.ctx, guest.lent.dm) ? 0 : errno;
	vt_check(err == EIO, "%s: nothing is imported any more: %s", what, strerror(err));
	if (!alone) {
		vt_check(!tell_owner(FREE_DM) && !tell_owner(FREE_PD) && !tell_owner(FREE_REGION),
			 "%s: the owner frees what it had", what);
		vt_check(!tell_owner(CLOSE), "%s: the owner closes it", what);
		end_owner();
	}
	vt_check(let_go(), "%s: what is ours goes", what);
}

static void owner_ends(void)
{
	killed();
	executed();
	closed();
	killed_meanwhile(PINNED);
	killed_meanwhile(DEVICE_MEMORY);
	killed_meanwhile(DMABUF);
	taken_meanwhile(DEMAND);
	taken_meanwhile(IMPLICIT);
	taken_away();
}

int main(int argc, char **argv)
{
	bool alone = getenv("OWNER") && !strcmp(getenv("OWNER"), "dead");

	setvbuf(stdout, NULL, _IOLBF, 0);
	ends_how.timeout = 14;
	ends_open(argc, argv);
	at_home = b;
	mine = vt_mr(a.dev, 2 * ROOM, ALL);
	if (argv[optind])
		device_goes(argv + optind, alone);
	else
		owner_ends();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
