// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * memory: registration and re-registration, what a key allows and what it does not.
 *
 *	memory -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * @a asks, @b owns the memory that is asked for.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static void registration(void)
{
	char *read_only = room(ROOM);
	struct ibv_mr *mr;

	mprotect(read_only, ROOM, PROT_READ);
	refused("a region of no bytes", one, 0, ALL, EINVAL);
	refused("remote write without local write", one, ROOM, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refused("remote atomic without local write", one, ROOM, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	refused("a region that wraps", one, SIZE_MAX - 100, ALL, EINVAL);
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

	not_rereg("no flag", mr, 0, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT);
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

/* Traffic never meets a key that is not there: 200 changes under READs and WRITEs */
static void rereg_traffic(void)
{
	struct ibv_mr *mr = reg(b.dev->pd, one, ROOM, ALL);
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
		for (n = ibv_poll_cq(a.send_cq, ENDS_DEPTH, wc); n > 0; done++)
			errors += wc[--n].status != IBV_WC_SUCCESS;
	}
	while (done < posted && poll_one(a.send_cq, wc, 5)) {
		errors += wc->status != IBV_WC_SUCCESS;
		done++;
	}
	vt_check(!errors && done == posted, "re-registered under traffic: %d errors, %d of %d done", errors, done,
		 posted);
	ends_stop();
	dereg(mr);
}

int main(int argc, char **argv)
{
	ends_open(argc, argv);
	mine = vt_mr(a.dev, ROOM, ALL);
	one = room(ROOM);
	two = room(ROOM);
	registration();
	own_address(0x123456789000, "elsewhere");
	own_address(0, "0");
	rereg_access();
	rereg_pd();
	rereg_translation();
	rereg_together();
	rereg_traffic();
	ends_stop();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
