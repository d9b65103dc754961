// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * memory: registration, re-registration and windows; what a key allows and what it does not.
 *
 *	memory -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * @a asks, @b owns the memory that is asked for.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define ROOM (64 * 1024)

#define ALL (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS)

/* memory of the requester, which is always good, and two pieces of the responder */
static struct ibv_mr *mine;
static char *one, *two;

static char *room(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	return p;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, length, access);

	if (!mr)
		vt_die(VT_SETUP, "reg mr: %s", strerror(errno));
	return mr;
}

static void dereg(struct ibv_mr *mr)
{
	int rc = ibv_dereg_mr(mr);

	if (rc)
		vt_die(VT_WRONG, "WRONG: dereg mr: %s", strerror(rc));
}

/* --- registration ---------------------------------------------------------------------- */

static void refused(const char *what, void *addr, size_t length, int access, int wanted)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(b.dev->pd, addr, length, access);
	vt_check(!mr && errno == wanted, "%s is refused: %s", what, mr ? "done" : strerror(errno));
	if (mr)
		ibv_dereg_mr(mr);
}

/* Kernels before 6.2 do not know of it */
static bool kernel_flushes(void)
{
	struct ibv_mr *mr = ibv_reg_mr(b.dev->pd, one, ROOM, ALL | IBV_ACCESS_FLUSH_GLOBAL);

	if (!mr && errno == EINVAL)
		return false;
	if (mr)
		ibv_dereg_mr(mr);
	return true;
}

static void registration(void)
{
	char *read_only = room(ROOM);
	struct ibv_mr *mr;

	mprotect(read_only, ROOM, PROT_READ);
	refused("a region of no bytes", one, 0, ALL, EINVAL);
	refused("remote write without local write", one, ROOM, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refused("remote atomic without local write", one, ROOM, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	/* a process of 32 bits cannot name one that wraps in a kernel of 64, but there is no memory above its own */
	refused("a region that wraps", one, SIZE_MAX - 100, ALL, sizeof(size_t) < sizeof(uint64_t) ? EFAULT : EINVAL);
	refused("memory whose FLUSH is to last", one, ROOM, ALL | IBV_ACCESS_FLUSH_PERSISTENT,
		kernel_flushes() ? EOPNOTSUPP : EINVAL);
	refused("memory that is not there", (void *)4096, 4096, ALL, EFAULT);
	refused("writing to memory that is read-only", read_only, ROOM, ALL, EFAULT);
	mr = ibv_reg_mr(b.dev->pd, read_only, ROOM, IBV_ACCESS_REMOTE_READ);
	vt_check(mr, "reading from memory that is read-only");
	if (mr) {
		ends_fresh(IBV_QPT_RC);
		expect_op("a READ of it", &a, IBV_WR_RDMA_READ, local(mine), ROOM, remote(mr), IBV_WC_SUCCESS);
		dereg(mr);
	}
	mr = ibv_reg_mr(b.dev->pd, one + 1, 1, ALL | IBV_ACCESS_RELAXED_ORDERING);
	vt_check(mr, "one byte, relaxed ordering");
	if (mr) {
		ends_fresh(IBV_QPT_RC);
		*(char *)mine->addr = 'x';
		expect_op("a WRITE of it", &a, IBV_WR_RDMA_WRITE, local(mine), 1, remote(mr), IBV_WC_SUCCESS);
		vt_check(!one[0] && one[1] == 'x' && !one[2], "one byte: that one, no other");
		expect_op("a WRITE of two", &a, IBV_WR_RDMA_WRITE, local(mine), 2, remote(mr),
			  IBV_WC_REM_ACCESS_ERR);
		dereg(mr);
	}
	ends_stop();
	munmap(read_only, ROOM);
	memset(one, 0, ROOM);
}

/* work requests name the memory by an address of their own */
static void own_address(uint64_t iova, const char *what)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(b.dev->pd, one, ROOM, iova, ALL);
	struct place at;
	char name[80];

	snprintf(name, sizeof(name), "iova %s", what);
	vt_check(mr, "%s: %s", name, mr ? "registered" : strerror(errno));
	if (!mr)
		return;
	ends_fresh(IBV_QPT_RC);
	at = (struct place){ iova + 5000, mr->rkey };
	vt_pattern(mine->addr, iova, 0, 10000);
	expect_op(name, &a, IBV_WR_RDMA_WRITE, local(mine), 10000, at, IBV_WC_SUCCESS);
	vt_check(!memcmp(one + 5000, mine->addr, 10000) && !one[4999] && !one[15000], "%s: the right bytes", name);
	at.addr = iova + ROOM - 8;
	expect_op(name, &a, IBV_WR_RDMA_WRITE, local(mine), 8, at, IBV_WC_SUCCESS);
	post_recv(&b, 1, (struct place){ iova, mr->lkey }, ROOM);
	expect_op(name, &a, IBV_WR_SEND, local(mine), 9999, at, IBV_WC_SUCCESS);
	expect_wc("a receive there", b.recv_cq, 1, IBV_WC_SUCCESS);
	expect_op("its real address", &a, IBV_WR_RDMA_WRITE, local(mine), 8,
		  (struct place){ (uintptr_t)one, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	ends_stop();
	dereg(mr);
	memset(one, 0, ROOM);
}

/* --- re-registration -------------------------------------------------------------------- */

static bool rereg(const char *what, struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access)
{
	int rc = ibv_rereg_mr(mr, flags, pd, addr, length, access);

	vt_check(!rc, "%s: %d", what, rc);
	return !rc;
}

/* the library's code for "the kernel said no" */
static void not_rereg(const char *what, struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		      size_t length, int access, int wanted)
{
	int rc = ibv_rereg_mr(mr, flags, pd, addr, length, access);

	vt_check(rc == wanted, "%s is refused: %d (wanted %d)", what, rc, wanted);
}

static void write_works(const char *what, struct ibv_mr *mr, char *memory, size_t length)
{
	ends_fresh(IBV_QPT_RC);
	memset(one, 0, ROOM);
	memset(two, 0, ROOM);
	vt_pattern(mine->addr, length, 0, length);
	if (expect_op(what, &a, IBV_WR_RDMA_WRITE, local(mine), length, remote(mr), IBV_WC_SUCCESS))
		vt_check(!memcmp(memory, mine->addr, length), "%s: the right bytes", what);
}

static void op_fails(const char *what, enum ibv_wr_opcode opcode, struct ibv_mr *mr, uint32_t length)
{
	ends_fresh(IBV_QPT_RC);
	expect_op(what, &a, opcode, local(mine), length, remote(mr), IBV_WC_REM_ACCESS_ERR);
}

static void rereg_access(void)
{
	const int flag = IBV_REREG_MR_CHANGE_ACCESS;
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, ALL);
	uint32_t rkey = mr->rkey, lkey = mr->lkey;

	write_works("before", mr, one, ROOM);
	rereg("access: read only", mr, flag, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ);
	vt_check(mr->rkey == rkey && mr->lkey == lkey, "access: the keys stay");
	op_fails("a WRITE, read only", IBV_WR_RDMA_WRITE, mr, 8);
	op_fails("an atomic, read only", IBV_WR_ATOMIC_FETCH_AND_ADD, mr, 8);
	ends_fresh(IBV_QPT_RC);
	expect_op("a READ, read only", &a, IBV_WR_RDMA_READ, local(mine), ROOM, remote(mr), IBV_WC_SUCCESS);
	rereg("access: all", mr, flag, NULL, NULL, 0, ALL);
	write_works("access: all", mr, one, ROOM);
	not_rereg("access without local write", mr, flag, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE,
		  IBV_REREG_MR_ERR_CMD);
	write_works("after a refused one", mr, one, ROOM);
	dereg(mr);

	/* from memory that was pinned for reading to memory that is written to */
	mr = reg(b.dev->pd, one, ROOM, IBV_ACCESS_REMOTE_READ);
	rereg("access: pinned for reading, then all", mr, flag, NULL, NULL, 0, ALL);
	write_works("access: pinned for reading, then all", mr, one, ROOM);
	dereg(mr);
}

static void rereg_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(b.dev->ctx);
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, ALL);

	rereg("PD", mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0);
	op_fails("a WRITE, foreign PD", IBV_WR_RDMA_WRITE, mr, 8);
	vt_check(ibv_dealloc_pd(pd) == EBUSY, "PD: in use by the region");
	rereg("PD: the same again", mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0);
	rereg("PD: back", mr, IBV_REREG_MR_CHANGE_PD, b.dev->pd, NULL, 0, 0);
	write_works("PD: back", mr, one, ROOM);
	vt_check(!ibv_dealloc_pd(pd), "PD: not in use any more");
	dereg(mr);
}

static void rereg_translation(void)
{
	const int flag = IBV_REREG_MR_CHANGE_TRANSLATION;
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, ALL);
	char *gone = room(ROOM);

	munmap(gone, ROOM);
	rereg("translation", mr, flag, NULL, two, ROOM / 2, 0);
	vt_check(mr->addr == two && mr->length == ROOM / 2, "translation: what the library says");
	write_works("translation", mr, two, ROOM / 2);
	op_fails("a byte too many", IBV_WR_RDMA_WRITE, mr, ROOM / 2 + 1);
	ends_fresh(IBV_QPT_RC);
	expect_op("the old address", &a, IBV_WR_RDMA_WRITE, local(mine), 8,
		  (struct place){ (uintptr_t)one, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	rereg("translation: inside a page", mr, flag, NULL, two + 100, 5000, 0);
	write_works("translation: inside a page", mr, two + 100, 5000);
	not_rereg("a translation to nothing", mr, flag, NULL, gone, ROOM, 0, IBV_REREG_MR_ERR_CMD);
	not_rereg("a translation of no bytes", mr, flag, NULL, one, 0, 0, IBV_REREG_MR_ERR_INPUT);
	/* The region is as it was, although the manual promises less */
	mr->addr = two + 100;
	write_works("after a refused translation", mr, two + 100, 5000);
	dereg(mr);
}

static void rereg_together(void)
{
	const int all = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
	struct ibv_pd *pd = ibv_alloc_pd(b.dev->ctx);
	struct ibv_mr *mr = reg(pd, one, ROOM, 0);

	not_rereg("no flag", mr, 0, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_CMD);
	not_rereg("an unknown flag", mr, 8, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT);
	rereg("all together", mr, all, b.dev->pd, two + 8, ROOM - 8, ALL);
	write_works("all together", mr, two + 8, ROOM - 8);
	rereg("zero-based", mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL | IBV_ACCESS_ZERO_BASED);
	ends_fresh(IBV_QPT_RC);
	memset(two, 0, ROOM);
	*(char *)mine->addr = 'z';
	expect_op("zero-based", &a, IBV_WR_RDMA_WRITE, local(mine), 1, (struct place){ 3, mr->rkey },
		  IBV_WC_SUCCESS);
	vt_check(two[11] == 'z', "zero-based: the right byte");
	rereg("by address again", mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL);
	write_works("by address again", mr, two + 8, ROOM - 8);
	vt_check(!ibv_dealloc_pd(pd), "all together: the old PD is free");
	dereg(mr);
}

/* What the kernel says to a child that re-registers the region: 0, or its errno */
static int by_child(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		memset(one, 'C', ROOM);
		errno = 0;
		_exit(ibv_rereg_mr(mr, flags, pd, addr, length, access) ? errno ?: EPROTO : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		vt_die(VT_SETUP, "child: %#x, %s", status, strerror(errno));
	return WEXITSTATUS(status);
}

static void child_refused(const char *what, struct ibv_mr *mr, int access)
{
	int err = by_child(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access);

	vt_check(err == EINVAL, "%s by a child is refused: %s", what, strerror(err));
}

/* Its memory is ours still, and not what the child has at that address */
static void reads_ours(const char *what, struct ibv_mr *mr)
{
	ends_fresh(IBV_QPT_RC);
	memset(mine->addr, 0, ROOM);
	vt_pattern(one, 77, 0, ROOM);
	if (expect_op(what, &a, IBV_WR_RDMA_READ, local(mine), ROOM, remote(mr), IBV_WC_SUCCESS))
		vt_check(!memcmp(mine->addr, one, ROOM), "%s: our bytes", what);
}

/*
 * A child has the device file, and memory of its own at our addresses. Where pages are looked up anew it would be
 * its own that the region got, under our key.
 */
static void rereg_by_child(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, IBV_ACCESS_REMOTE_READ);
	struct ibv_pd *pd = ibv_alloc_pd(b.dev->ctx);

	child_refused("access: pinned for reading, then all", mr, ALL);
	op_fails("a WRITE after that", IBV_WR_RDMA_WRITE, mr, 8);
	reads_ours("a READ after that", mr);
	rereg("access: the same by ourselves", mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL);
	write_works("access: the same by ourselves", mr, one, ROOM);

	/* the pages stay as they are: a child may do that */
	vt_check(!by_child(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ),
		 "access: less by a child");
	op_fails("a WRITE with less", IBV_WR_RDMA_WRITE, mr, 8);
	reads_ours("a READ with less", mr);
	vt_check(!by_child(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), "PD by a child");
	vt_check(!by_child(mr, IBV_REREG_MR_CHANGE_PD, b.dev->pd, NULL, 0, 0), "PD: back by a child");
	reads_ours("a READ with another's PD and back", mr);
	/* who names an address means their own */
	vt_check(!by_child(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL, one, ROOM, ALL),
		 "translation by a child");
	memset(one, 0, ROOM);
	ends_fresh(IBV_QPT_RC);
	vt_pattern(mine->addr, 3, 0, ROOM);
	expect_op("a WRITE to the child's", &a, IBV_WR_RDMA_WRITE, local(mine), ROOM, remote(mr), IBV_WC_SUCCESS);
	vt_check(!one[0] && !memcmp(one, one + 1, ROOM - 1), "a WRITE to the child's: not ours");
	dereg(mr);
	vt_check(!ibv_dealloc_pd(pd), "PD: not in use by a region of a child's");
}

static void rereg_on_demand_by_child(void)
{
	struct ibv_mr *mr = ibv_reg_mr(b.dev->pd, one, ROOM, ALL | IBV_ACCESS_ON_DEMAND);

	if (!mr) {
		printf("skip: memory on demand and a child [%s]\n", strerror(errno));
		return;
	}
	child_refused("on demand: less access", mr, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	write_works("on demand, after that", mr, one, ROOM);
	child_refused("on demand, then pinned", mr, ALL);
	write_works("on demand, then pinned", mr, one, ROOM);
	reads_ours("on demand, then pinned", mr);
	rereg("on demand, then pinned by ourselves", mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL);
	child_refused("pinned, then on demand", mr, ALL | IBV_ACCESS_ON_DEMAND);
	reads_ours("pinned, then on demand", mr);
	dereg(mr);
}

/* How many completions are bad; *first is the first of all */
static int bad_ones(const struct ibv_wc *wc, int n, enum ibv_wc_status *first)
{
	int i, bad = 0;

	for (i = 0; i < n; i++) {
		bad += wc[i].status != IBV_WC_SUCCESS;
		*first = *first ?: wc[i].status;
	}
	return bad;
}

/* Traffic never meets a key that is not there: 200 changes under READs and WRITEs */
static void rereg_traffic(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, ALL);
	enum ibv_wc_status first = IBV_WC_SUCCESS;
	int i, n, errors = 0, done = 0, posted = 0;
	struct ibv_wc wc[ENDS_DEPTH];

	ends_fresh(IBV_QPT_RC);
	for (i = 0; i < 200; i++) {
		for (; posted - done < ENDS_DEPTH; posted++)
			if (post_op(&a, posted, posted % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, local(mine),
				    30000, remote(mr)))
				break;
		if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 ALL | (i % 2 ? IBV_ACCESS_MW_BIND : 0)))
			errors++;
		n = ibv_poll_cq(a.send_cq, ENDS_DEPTH, wc);
		errors += bad_ones(wc, n, &first);
		done += max(n, 0);
	}
	for (; done < posted && poll_one(a.send_cq, wc, 5); done++)
		errors += bad_ones(wc, 1, &first);
	vt_check(!errors && done == posted, "re-registered under traffic: %d errors (%s), %d of %d done", errors,
		 ibv_wc_status_str(first), done, posted);
	ends_stop();
	dereg(mr);
}

/* --- windows -------------------------------------------------------------------------------- */

#define BINDABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define MW_ALL VT_REMOTE_ACCESS

static struct ibv_mw *window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(b.dev->pd, type);

	if (!mw)
		vt_die(VT_WRONG, "WRONG: alloc mw: %s", strerror(errno));
	return mw;
}

static void free_window(struct ibv_mw *mw)
{
	int rc = ibv_dealloc_mw(mw);

	if (rc)
		vt_die(VT_WRONG, "WRONG: dealloc mw: %s", strerror(rc));
}

/* a bind by the responder, of either type; the status it completes with */
static enum ibv_wc_status bind(struct ibv_mw *mw, struct ibv_mr *mr, char *addr, uint64_t length, unsigned int access)
{
	struct ibv_mw_bind_info info = {
		.mr = mr, .addr = (uintptr_t)addr, .length = length, .mw_access_flags = access,
	};
	struct ibv_mw_bind one_bind = { .wr_id = 77, .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr wr = {
		.wr_id = 77, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = info },
	};
	struct ibv_wc wc;
	int rc = EINVAL;

	/* what the library refuses by itself is for the kernel to refuse as well */
	if (mw->type == IBV_MW_TYPE_1)
		rc = ibv_bind_mw(b.qp, mw, &one_bind);
	if (rc)
		rc = post_wr(&b, &wr);
	if (rc)
		vt_die(VT_WRONG, "WRONG: post a bind: %s", strerror(rc));
	if (mw->type == IBV_MW_TYPE_2)
		mw->rkey = wr.bind_mw.rkey;
	if (!poll_one(b.send_cq, &wc, 5) || wc.wr_id != 77)
		vt_die(VT_WRONG, "WRONG: a bind does not complete");
	if (wc.status == IBV_WC_SUCCESS && wc.opcode != IBV_WC_BIND_MW)
		vt_check(false, "the opcode of a bind's completion: %d", wc.opcode);
	return wc.status;
}

static void bound(const char *what, struct ibv_mw *mw, struct ibv_mr *mr, char *addr, uint64_t length,
		  unsigned int access)
{
	enum ibv_wc_status status = bind(mw, mr, addr, length, access);

	vt_check(status == IBV_WC_SUCCESS, "%s: bound: %s", what, ibv_wc_status_str(status));
}

static void not_bound(const char *what, struct ibv_mw *mw, struct ibv_mr *mr, char *addr, uint64_t length,
		      unsigned int access)
{
	enum ibv_wc_status status;

	ends_fresh(IBV_QPT_RC);
	status = bind(mw, mr, addr, length, access);
	vt_check(status == IBV_WC_MW_BIND_ERR && vt_state(b.qp) == IBV_QPS_ERR, "%s: %s, %s", what,
		 ibv_wc_status_str(status), vt_state_name(vt_state(b.qp)));
	ends_fresh(IBV_QPT_RC);
}

static struct place in_window(const struct ibv_mw *mw, const char *addr)
{
	return (struct place){ (uintptr_t)addr, mw->rkey };
}

static void window_bind_rules(enum ibv_mw_type type)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, BINDABLE);
	struct ibv_mr *closed = reg(b.dev->pd, two, ROOM, ALL);
	struct ibv_mr *unwritable = reg(b.dev->pd, two, ROOM, IBV_ACCESS_MW_BIND);
	struct ibv_pd *pd = ibv_alloc_pd(b.dev->ctx);
	struct ibv_mr *foreign = reg(pd, two, ROOM, BINDABLE);
	struct ibv_mw *foreign_mw = ibv_alloc_mw(pd, type);
	struct ibv_mr *zero = reg(b.dev->pd, two, ROOM, BINDABLE | IBV_ACCESS_ZERO_BASED);
	struct ibv_mw *mw = window(type);

	not_bound("to a region without the bind right", mw, closed, two, 8, IBV_ACCESS_REMOTE_READ);
	not_bound("writable, to a region without local write", mw, unwritable, two, 8, IBV_ACCESS_REMOTE_WRITE);
	not_bound("atomic, to a region without local write", mw, unwritable, two, 8, IBV_ACCESS_REMOTE_ATOMIC);
	not_bound("to a region of another PD", mw, foreign, two, 8, IBV_ACCESS_REMOTE_READ);
	not_bound("a window of another PD", foreign_mw, mr, one, 8, IBV_ACCESS_REMOTE_READ);
	not_bound("to a zero-based region", mw, zero, NULL, 8, IBV_ACCESS_REMOTE_READ);
	not_bound("a byte too far", mw, mr, one, ROOM + 1, MW_ALL);
	not_bound("a byte too early", mw, mr, one - 1, 8, MW_ALL);
	not_bound("around the end of all addresses", mw, mr, one + 8, -16, MW_ALL);
	not_bound("with a local right that there is none", mw, mr, one, 8, IBV_ACCESS_MW_BIND);
	if (type == IBV_MW_TYPE_1)
		not_bound("zero-based, type 1", mw, mr, one, 8, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
	else
		not_bound("of no bytes, type 2", mw, mr, one, 0, 0);
	bound("read only, to a region without local write", mw, unwritable, two, 8, IBV_ACCESS_REMOTE_READ);
	free_window(mw);
	free_window(foreign_mw);
	dereg(mr);
	dereg(closed);
	dereg(unwritable);
	dereg(zero);
	dereg(foreign);
	ibv_dealloc_pd(pd);
}

static void in_window_fails(const char *what, enum ibv_wr_opcode opcode, struct place at, uint32_t length)
{
	expect_op(what, &a, opcode, local(mine), length, at, IBV_WC_REM_ACCESS_ERR);
}

/* A window is for peers: as the memory of its owner's own requests it is refused */
static void window_as_lkey(enum ibv_mw_type type, struct ibv_mw *mw, struct ibv_mr *mr, char *start)
{
	ends_fresh(IBV_QPT_RC);
	if (type == IBV_MW_TYPE_2)
		bound("for use as L_Key", mw, mr, start, 20000, MW_ALL);
	expect_op("a window's key as L_Key", &b, IBV_WR_RDMA_WRITE, in_window(mw, start), 8, remote(mine),
		  IBV_WC_LOC_PROT_ERR);
	ends_fresh(IBV_QPT_RC);
	if (type == IBV_MW_TYPE_2)
		bound("for a receive", mw, mr, start, 20000, MW_ALL);
	post_recv(&b, 5, in_window(mw, start), 100);
	expect_op("a SEND into it", &a, IBV_WR_SEND, local(mine), 8, in_window(mw, start), IBV_WC_REM_OP_ERR);
	expect_wc("a receive into it", b.recv_cq, 5, IBV_WC_LOC_PROT_ERR);
}

/* Rights and bounds are its own, neither more nor less than those of the region */
static void window_access(enum ibv_mw_type type)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, BINDABLE);
	struct ibv_mw *mw = window(type);
	char *start = one + 5000;

	ends_fresh(IBV_QPT_RC);
	in_window_fails("a window never bound", IBV_WR_RDMA_READ, in_window(mw, start), 8);

	ends_fresh(IBV_QPT_RC);
	bound("all rights", mw, mr, start, 20000, MW_ALL);
	memset(one, 0, ROOM);
	vt_pattern(mine->addr, type, 0, 20000);
	expect_op("a WRITE to all of it", &a, IBV_WR_RDMA_WRITE, local(mine), 20000, in_window(mw, start),
		  IBV_WC_SUCCESS);
	vt_check(!memcmp(start, mine->addr, 20000) && !start[-1] && !start[20000], "the right bytes");
	memset(mine->addr, 0, ROOM);
	expect_op("a READ from inside", &a, IBV_WR_RDMA_READ, local(mine), 9000, in_window(mw, start + 1000),
		  IBV_WC_SUCCESS);
	vt_check(!memcmp(mine->addr, start + 1000, 9000), "the right bytes");
	expect_op("an atomic", &a, IBV_WR_ATOMIC_FETCH_AND_ADD, local(mine), 8, in_window(mw, start + 8),
		  IBV_WC_SUCCESS);
	in_window_fails("a byte before it", IBV_WR_RDMA_WRITE, in_window(mw, start - 1), 8);

	ends_fresh(IBV_QPT_RC);
	if (type == IBV_MW_TYPE_2)
		bound("again, of a QP that is gone", mw, mr, start, 20000, MW_ALL);
	in_window_fails("a byte behind it", IBV_WR_RDMA_WRITE, in_window(mw, start), 20001);
	vt_check(!start[20000], "nothing was written there");
	ends_fresh(IBV_QPT_RC);
	in_window_fails("the region's own key gives nothing", IBV_WR_RDMA_READ,
			(struct place){ (uintptr_t)start, mr->rkey }, 8);
	ends_fresh(IBV_QPT_RC);
	bound("to read", mw, mr, start, 20000, IBV_ACCESS_REMOTE_READ);
	expect_op("a READ", &a, IBV_WR_RDMA_READ, local(mine), 8, in_window(mw, start), IBV_WC_SUCCESS);
	in_window_fails("a WRITE without the right", IBV_WR_RDMA_WRITE, in_window(mw, start), 8);

	window_as_lkey(type, mw, mr, start);
	ends_stop();
	free_window(mw);
	dereg(mr);
}

static void window_type1(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, BINDABLE);
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	struct place old;
	uint32_t rkey;

	ends_fresh(IBV_QPT_RC);
	bound("type 1", mw, mr, one, 100, MW_ALL);
	old = in_window(mw, one);
	rkey = mw->rkey;
	bound("type 1, bound again", mw, mr, one + 100, 100, MW_ALL);
	vt_check(mw->rkey != rkey && mw->rkey >> 8 == rkey >> 8, "type 1: another key each time");
	expect_op("the new key", &a, IBV_WR_RDMA_WRITE, local(mine), 100, in_window(mw, one + 100), IBV_WC_SUCCESS);
	in_window_fails("the key before it", IBV_WR_RDMA_WRITE, old, 8);
	vt_check(ibv_dereg_mr(mr) == EBUSY, "a region with a window stays");
	vt_check(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, BINDABLE) == IBV_REREG_MR_ERR_CMD,
		 "and is not re-registered");

	/* any QP of the PD may use it, also one made later */
	ends_fresh(IBV_QPT_RC);
	expect_op("type 1, another QP", &a, IBV_WR_RDMA_READ, local(mine), 100, in_window(mw, one + 100),
		  IBV_WC_SUCCESS);
	expect_op("type 1, LOCAL_INV", &b, IBV_WR_LOCAL_INV, local(mine), 0, in_window(mw, one + 100),
		  IBV_WC_LOC_QP_OP_ERR);
	ends_fresh(IBV_QPT_RC);
	post_recv(&b, 6, local(mr), ROOM);
	expect_op("type 1, remote invalidate", &a, IBV_WR_SEND_WITH_INV, local(mine), 8, in_window(mw, one + 100),
		  IBV_WC_REM_ACCESS_ERR);
	ends_fresh(IBV_QPT_RC);
	bound("type 1, to nothing", mw, NULL, NULL, 0, 0);
	in_window_fails("type 1, bound to nothing", IBV_WR_RDMA_READ, in_window(mw, one + 100), 8);
	dereg(mr);
	free_window(mw);
}

static void window_type2(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, BINDABLE);
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_wc wc;

	ends_fresh(IBV_QPT_RC);
	bound("type 2", mw, mr, one, 100, MW_ALL | IBV_ACCESS_ZERO_BASED);
	expect_op("zero-based", &a, IBV_WR_RDMA_WRITE, local(mine), 100, (struct place){ 0, mw->rkey },
		  IBV_WC_SUCCESS);
	vt_check(bind(mw, mr, one, 100, MW_ALL) == IBV_WC_MW_BIND_ERR, "type 2, not bound twice");

	/* bound through a QP that is gone: free again, and no longer in the region's way */
	ends_fresh(IBV_QPT_RC);
	bound("type 2, through a new QP", mw, mr, one, 100, MW_ALL);
	expect_op("type 2, LOCAL_INV", &b, IBV_WR_LOCAL_INV, local(mine), 0, in_window(mw, one), IBV_WC_SUCCESS);
	expect_op("type 2, LOCAL_INV of a free one", &b, IBV_WR_LOCAL_INV, local(mine), 0, in_window(mw, one),
		  IBV_WC_LOC_QP_OP_ERR);
	ends_fresh(IBV_QPT_RC);
	in_window_fails("type 2, invalidated", IBV_WR_RDMA_READ, in_window(mw, one), 8);

	ends_fresh(IBV_QPT_RC);
	bound("type 2, for the peer to invalidate", mw, mr, one, 100, MW_ALL);
	post_recv(&b, 9, local(mr), ROOM);
	expect_op("type 2, remote invalidate", &a, IBV_WR_SEND_WITH_INV, local(mine), 8, in_window(mw, one),
		  IBV_WC_SUCCESS);
	vt_check(poll_one(b.recv_cq, &wc, 5) && wc.status == IBV_WC_SUCCESS && wc.wc_flags & IBV_WC_WITH_INV &&
		 wc.invalidated_rkey == mw->rkey, "type 2: the receive tells the key");
	in_window_fails("type 2, invalidated by the peer", IBV_WR_RDMA_READ, in_window(mw, one), 8);

	/* the window of one QP is not that of another, on the same PD */
	ends_fresh(IBV_QPT_RC);
	vt_check(bind(mw, mr, one, 100, MW_ALL) == IBV_WC_SUCCESS, "type 2, bound through the responder");
	if (a.dev == b.dev)
		expect_op("type 2, LOCAL_INV through the other QP", &a, IBV_WR_LOCAL_INV, local(mine), 0,
			  in_window(mw, one), IBV_WC_LOC_QP_OP_ERR);
	ends_fresh(IBV_QPT_RC);
	in_window_fails("type 2, bound through a QP that is gone", IBV_WR_RDMA_READ, in_window(mw, one), 8);
	dereg(mr);
	free_window(mw);
}

/* The owner of a window is another QP of the same PD */
static void window_other_qp(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, BINDABLE);
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_qp *first[2];

	ends_fresh(IBV_QPT_RC);
	bound("type 2, first QP", mw, mr, one, 100, MW_ALL);
	first[0] = a.qp;
	first[1] = b.qp;
	a.qp = b.qp = NULL;
	ends_fresh(IBV_QPT_RC);
	in_window_fails("type 2, used through another QP", IBV_WR_RDMA_READ, in_window(mw, one), 8);
	ends_fresh(IBV_QPT_RC);
	post_recv(&b, 9, local(mr), ROOM);
	in_window_fails("type 2, invalidated through another QP", IBV_WR_SEND_WITH_INV, in_window(mw, one), 8);
	ends_stop();
	a.qp = first[0];
	b.qp = first[1];
	expect_op("type 2, used through its own", &a, IBV_WR_RDMA_READ, local(mine), 8, in_window(mw, one),
		  IBV_WC_SUCCESS);
	ends_stop();
	free_window(mw);
	dereg(mr);
}

/* A bind waits for READs before it with a fence; what comes after it finds it done */
static void window_order(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, BINDABLE);
	struct ibv_mr *all = reg(b.dev->pd, one, ROOM, ALL);
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {
		.wr_id = 2, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = { .mr = mr, .addr = (uintptr_t)one, .length = ROOM,
					    .mw_access_flags = MW_ALL } },
	};

	ends_fresh(IBV_QPT_RC);
	post_recv(&a, 7, local(mine), ROOM);
	post_op(&b, 1, IBV_WR_RDMA_READ, local(all), ROOM, remote(mine));
	post_wr(&b, &wr);
	post_op(&b, 3, IBV_WR_SEND, local(all), 8, remote(mine));
	expect_wc("the READ before a bind", b.send_cq, 1, IBV_WC_SUCCESS);
	expect_wc("the bind, fenced", b.send_cq, 2, IBV_WC_SUCCESS);
	expect_wc("the SEND behind it", b.send_cq, 3, IBV_WC_SUCCESS);
	expect_wc("which brings the key", a.recv_cq, 7, IBV_WC_SUCCESS);
	expect_op("and it is good", &a, IBV_WR_RDMA_WRITE, local(mine), ROOM,
		  (struct place){ (uintptr_t)one, wr.bind_mw.rkey }, IBV_WC_SUCCESS);
	ends_stop();
	free_window(mw);
	dereg(mr);
	dereg(all);
}

/* Bound and unbound under a peer's hands: its WRITEs reach the window's memory or nothing */
static void window_traffic(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, BINDABLE);
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct place key;
	struct ibv_wc wc;
	int i, n, refused = 0, wrong = 0;

	memset(mine->addr, 0xff, ROOM);
	for (i = 0; i < 60; i++) {
		ends_fresh(IBV_QPT_RC);
		memset(one, 0, ROOM);
		wrong += bind(mw, mr, one, ROOM, MW_ALL) != IBV_WC_SUCCESS;
		key = in_window(mw, one);
		for (n = 0; n < 8; n++)
			post_op(&a, n, IBV_WR_RDMA_WRITE, local(mine), ROOM, key);
		/* LOCAL_INV is complete when nobody writes any more */
		post_op(&b, 99, IBV_WR_LOCAL_INV, local(mine), 0, key);
		wrong += !poll_one(b.send_cq, &wc, 5) || wc.status != IBV_WC_SUCCESS;
		memset(one, 0, ROOM);
		for (n = 0; n < 8; n++) {
			wrong += !poll_one(a.send_cq, &wc, 5);
			refused += wc.status == IBV_WC_REM_ACCESS_ERR;
			wrong += wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR &&
				 wc.status != IBV_WC_WR_FLUSH_ERR;
		}
		for (n = 0; n < ROOM; n++)
			wrong += one[n] != 0;
	}
	vt_check(!wrong, "invalidated under traffic: %d wrong, %d of 60 refused", wrong, refused);
	ends_stop();
	free_window(mw);
	dereg(mr);
}

static void windows(void)
{
	if (!(b.dev->attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B)) {
		printf("skip: windows [not offered]\n");
		return;
	}
	window_bind_rules(IBV_MW_TYPE_1);
	window_bind_rules(IBV_MW_TYPE_2);
	window_access(IBV_MW_TYPE_1);
	window_access(IBV_MW_TYPE_2);
	window_type1();
	window_type2();
	window_other_qp();
	window_order();
	window_traffic();
}

/* --- a region of nothing --------------------------------------------------------------------- */

static void null_region(void)
{
	struct ibv_mr *nothing = ibv_alloc_null_mr(a.dev->pd), *theirs = ibv_alloc_null_mr(b.dev->pd);
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, ALL);
	struct place nowhere, anywhere = { 0x123456789abc, 0 };
	static const char zero[ROOM];
	struct ibv_pd *pd;

	vt_check(nothing && theirs, "a null region: %s", nothing && theirs ? "made" : strerror(errno));
	if (!nothing || !theirs)
		return;
	nowhere = (struct place){ 0, nothing->lkey };
	anywhere.key = theirs->lkey;
	ends_fresh(IBV_QPT_RC);
	vt_pattern(one, 3, 0, ROOM);
	vt_pattern(mine->addr, 4, 0, ROOM);
	expect_op("null region: a READ into it", &a, IBV_WR_RDMA_READ, nowhere, ROOM, remote(mr), IBV_WC_SUCCESS);
	post_recv(&b, 1, anywhere, ROOM);
	expect_op("null region: a SEND", &a, IBV_WR_SEND, local(mine), ROOM, nowhere, IBV_WC_SUCCESS);
	expect_wc("null region: received into it", b.recv_cq, 1, IBV_WC_SUCCESS);
	expect_op("null region: a WRITE from it", &a, IBV_WR_RDMA_WRITE, nowhere, ROOM, remote(mr), IBV_WC_SUCCESS);
	vt_check(!memcmp(one, zero, ROOM), "null region: zeros have come");
	expect_op("null region: a WRITE to it", &a, IBV_WR_RDMA_WRITE, local(mine), 8,
		  (struct place){ 0, nothing->lkey }, IBV_WC_REM_ACCESS_ERR);
	ends_stop();
	dereg(nothing);
	dereg(theirs);
	dereg(mr);
	pd = ibv_alloc_pd(a.dev->ctx);
	nothing = ibv_alloc_null_mr(pd);
	vt_check(nothing && ibv_dealloc_pd(pd) == EBUSY, "null region: its domain stays");
	dereg(nothing);
	vt_check(!ibv_dealloc_pd(pd), "null region: and goes");
}

/* --- FLUSH ------------------------------------------------------------------------------------ */

#ifdef HAVE_IBV_WR_FLUSH

#define FLUSHABLE (ALL | IBV_ACCESS_FLUSH_GLOBAL)

/* The responder's queue pair from now on allows this, too */
static int allow(int access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .qp_access_flags = VT_REMOTE_ACCESS | access };

	return ibv_modify_qp(b.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
}

/* A new pair, of which the requester can ask for FLUSH, and the responder allows @access of it */
static void fresh_flush(int access)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = a.send_cq,
		.recv_cq = a.recv_cq,
		.cap = { .max_send_wr = ENDS_DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = a.dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE,
	};

	ends_stop();
	a.qp = ibv_create_qp_ex(a.dev->ctx, &init);
	b.qp = vt_new_qp(b.dev, IBV_QPT_RC, b.send_cq, ENDS_DEPTH, ENDS_DEPTH);
	if (!a.qp)
		vt_die(VT_WRONG, "WRONG: a queue pair with FLUSH: %s", strerror(errno));
	ends_connect();
	if (access && allow(access))
		vt_die(VT_WRONG, "WRONG: a queue pair that allows FLUSH");
}

static enum ibv_wc_status flush(struct place at, size_t len, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(a.qp);
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	ibv_wr_start(qp);
	qp->wr_id = 5;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, at.key, at.addr, len, type, level);
	if (!ibv_wr_complete(qp))
		poll_one(a.send_cq, &wc, 10);
	return wc.status;
}

static void flushed(const char *what, struct place at, size_t len, uint8_t type, uint8_t level,
		    enum ibv_wc_status wanted)
{
	enum ibv_wc_status status = flush(at, len, type, level);

	vt_check(status == wanted, "FLUSH: %s: %s (wanted %s)", what, ibv_wc_status_str(status),
		 ibv_wc_status_str(wanted));
	if (wanted != IBV_WC_SUCCESS)
		fresh_flush(IBV_ACCESS_FLUSH_GLOBAL);
}

/* What is asked for, of a region that allows what can be allowed */
static void flush_types(struct ibv_mr *mr)
{
	const int global = IBV_FLUSH_GLOBAL, persistent = IBV_FLUSH_PERSISTENT;
	const int range = IBV_FLUSH_RANGE, all = IBV_FLUSH_MR;
	const enum ibv_wc_status ok = IBV_WC_SUCCESS, local_err = IBV_WC_LOC_QP_OP_ERR;
	const enum ibv_wc_status invalid = IBV_WC_REM_INV_REQ_ERR, denied = IBV_WC_REM_ACCESS_ERR;
	struct place nowhere = { 0, mr->rkey }, end = { (uintptr_t)one + 1, mr->rkey };

	fresh_flush(IBV_ACCESS_FLUSH_GLOBAL);
	flushed("global, a range", remote(mr), ROOM, global, range, ok);
	flushed("global, no bytes", remote(mr), 0, global, range, ok);
	flushed("global, the whole region", nowhere, 0, global, all, ok);
	flushed("global, a byte too far", end, ROOM, global, range, denied);
	flushed("persistent, a range", remote(mr), ROOM, persistent, range, invalid);
	flushed("persistent, the whole region", nowhere, 0, persistent, all, invalid);
	flushed("global and persistent", remote(mr), ROOM, global | persistent, range, invalid);
	flushed("of no type", remote(mr), ROOM, 0, range, invalid);
	flushed("of a reserved type", remote(mr), ROOM, global | 4, range, invalid);
	flushed("of a type without a bit", remote(mr), ROOM, global | 16, range, local_err);
	flushed("of a reserved level", remote(mr), ROOM, global, 2, invalid);
	flushed("of a level without a bit", remote(mr), ROOM, global, 4, local_err);
}

/* Either end may refuse by what it allows */
static void flush_rights(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, FLUSHABLE);
	struct ibv_mr *closed = reg(b.dev->pd, two, ROOM, ALL);
	enum ibv_wc_status status = IBV_WC_REM_ACCESS_ERR;
	int rc;

	flush_types(mr);
	flushed("a region without the right", remote(closed), 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
		IBV_WC_REM_ACCESS_ERR);
	flushed("a region without the right, all of it", remote(closed), 8, IBV_FLUSH_GLOBAL,
		IBV_FLUSH_MR, IBV_WC_REM_ACCESS_ERR);
	fresh_flush(0);
	flushed("a queue pair without the right", remote(mr), 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
		IBV_WC_REM_INV_REQ_ERR);
	/* A queue pair may allow what no region does, or be refused that */
	rc = allow(IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT);
	if (!rc)
		status = flush(remote(mr), 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	vt_check(status == IBV_WC_REM_ACCESS_ERR,
		 "FLUSH: a queue pair with the right to persistence: %s, then: %s", strerror(rc),
		 ibv_wc_status_str(status));
	ends_stop();
	dereg(mr);
	dereg(closed);
}

static void flush_all(const char *what, struct place at, uint32_t key)
{
	char name[80];

	fresh_flush(IBV_ACCESS_FLUSH_GLOBAL);
	snprintf(name, sizeof(name), "%s, a range", what);
	flushed(name, at, 4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_SUCCESS);
	snprintf(name, sizeof(name), "%s, the whole region", what);
	flushed(name, (struct place){ 0, key }, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, IBV_WC_SUCCESS);
	snprintf(name, sizeof(name), "%s, persistent", what);
	flushed(name, at, 4096, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, IBV_WC_REM_INV_REQ_ERR);
}

static void flush_device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 8192 };
	const int access = FLUSHABLE | IBV_ACCESS_ZERO_BASED;
	struct ibv_dm *dm = ibv_alloc_dm(b.dev->ctx, &attr);
	struct ibv_mr *mr;

	if (!dm) {
		printf("skip: FLUSH: device memory [%s\n", strerror(errno));
		return;
	}
	mr = ibv_reg_dm_mr(b.dev->pd, dm, 0, 8192, access);
	vt_check(mr, "FLUSH: device memory with the right: %s", mr ? "done" : strerror(errno));
	if (mr)
		flush_all("device memory", (struct place){ 0, mr->rkey }, mr->rkey);
	ends_stop();
	if (mr)
		dereg(mr);
	mr = ibv_reg_dm_mr(b.dev->pd, dm, 0, 8192, access | IBV_ACCESS_FLUSH_PERSISTENT);
	vt_check(!mr, "FLUSH: device memory that lasts is refused: %s",
		 mr ? "done" : strerror(errno));
	ibv_free_dm(dm);
}

static void flush_on_demand(void)
{
	struct ibv_mr *mr = ibv_reg_mr(b.dev->pd, one, ROOM, FLUSHABLE | IBV_ACCESS_ON_DEMAND);

	if (!mr) {
		printf("skip: FLUSH: memory on demand [%s\n", strerror(errno));
		return;
	}
	refused("FLUSH: memory on demand that lasts", one, ROOM,
		ALL | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP);
	flush_all("memory on demand", remote(mr), mr->rkey);
	ends_stop();
	dereg(mr);
}

/* A window gives the right if it was bound with it, and its region has it */
static void flush_window(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, FLUSHABLE | IBV_ACCESS_MW_BIND);
	struct ibv_mr *closed = reg(b.dev->pd, two, ROOM, BINDABLE);
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);

	fresh_flush(IBV_ACCESS_FLUSH_GLOBAL);
	bound("FLUSH: a window with the right", mw, mr, one, 8192, MW_ALL | IBV_ACCESS_FLUSH_GLOBAL);
	flushed("a window", in_window(mw, one), 8192, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
		IBV_WC_SUCCESS);
	flushed("behind a window", in_window(mw, one), 8193, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
		IBV_WC_REM_ACCESS_ERR);
	bound("FLUSH: a window without the right", mw, mr, one, 8192, MW_ALL);
	flushed("a window without the right", in_window(mw, one), 8, IBV_FLUSH_GLOBAL,
		IBV_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR);
	not_bound("FLUSH: a window with the right, of a region without", mw, closed, two, 8,
		  IBV_ACCESS_FLUSH_GLOBAL);
	not_bound("FLUSH: a window that lasts", mw, mr, one, 8, IBV_ACCESS_FLUSH_PERSISTENT);
	ends_stop();
	free_window(mw);
	dereg(mr);
	dereg(closed);
}

static void flushes(void)
{
	if (vt_is_rxe()) {
		printf("skip: FLUSH [rxe's packets have a wrong ICRC\n");
		return;
	}
	if (!kernel_flushes()) {
		printf("skip: FLUSH [the kernel has none\n");
		return;
	}
	flush_rights();
	flush_device_memory();
	flush_on_demand();
	flush_window();
}

#else

static void flushes(void)
{
	printf("skip: FLUSH [this libibverbs has none\n");
}

#endif

int main(int argc, char **argv)
{
	ends_open(argc, argv);
	mine = vt_mr(a.dev, ROOM, ALL);
	one = room(ROOM);
	two = room(ROOM);
	registration();
	/* at the same place of a page as the memory, however large pages are */
	own_address(0x123456780000, "elsewhere");
	own_address(0, "0");
	rereg_access();
	rereg_pd();
	rereg_translation();
	rereg_together();
	rereg_by_child();
	rereg_on_demand_by_child();
	rereg_traffic();
	windows();
	null_region();
	flushes();
	ends_stop();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
