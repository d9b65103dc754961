// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * dm: device memory (ibv_alloc_dm()): what is refused, copies to and from it, regions on it at either end of every
 * operation, what it counts as, and how another process takes over the device's file and what is on it (ibv_import_*()).
 *
 *	dm -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * @a asks, @b owns the memory that is asked for. As root: what counts in a limit is asked for by a child who is nobody.
 */
#include <errno.h>
#include <unistd.h>

#include "ends.h"

#define ROOM (64 * 1024)

#define ZERO_BASED (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS | IBV_ACCESS_ZERO_BASED)

/* memory of the requester, which is always good */
static struct ibv_mr *mine;

static struct ibv_dm *try_dm(struct ibv_context *ctx, size_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = { .length = length, .log_align_req = log_align };

	errno = 0;
	return ibv_alloc_dm(ctx, &attr);
}

static struct ibv_dm *new_dm(struct end *e, size_t length)
{
	struct ibv_dm *dm = try_dm(e->dev->ctx, length, 0);

	if (!dm)
		vt_die(VT_WRONG, "WRONG: alloc dm: %s", strerror(errno));
	return dm;
}

static void free_dm(struct ibv_dm *dm)
{
	int rc = ibv_free_dm(dm);

	if (rc)
		vt_die(VT_WRONG, "WRONG: free dm: %s", strerror(rc));
}

static struct ibv_mr *reg(struct end *e, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(e->dev->pd, dm, offset, length, ZERO_BASED);

	if (!mr)
		vt_die(VT_WRONG, "WRONG: reg dm mr: %s", strerror(errno));
	return mr;
}

/* --- what is refused ------------------------------------------------------------------------------- */

static void refused(const char *what, size_t length, uint32_t log_align, int wanted)
{
	struct ibv_dm *dm = try_dm(b.dev->ctx, length, log_align);

	vt_check(!dm && errno == wanted, "%s is refused: %s", what, dm ? "done" : strerror(errno));
	if (dm)
		ibv_free_dm(dm);
}

static void not_registered(const char *what, struct ibv_dm *dm, uint64_t offset, size_t length, int access,
			   int wanted)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dm_mr(b.dev->pd, dm, offset, length, access);
	vt_check(!mr && errno == wanted, "%s is refused: %s", what, mr ? "done" : strerror(errno));
	if (mr)
		ibv_dereg_mr(mr);
}

static void refusals(void)
{
	struct ibv_alloc_dm_attr unknown = { .length = 4096, .comp_mask = 1 };
	struct ibv_device_attr_ex attr;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	if (ibv_query_device_ex(b.dev->ctx, NULL, &attr))
		vt_die(VT_SETUP, "query device");
	vt_check(attr.max_dm_size, "the device says how much: %lu bytes", (unsigned long)attr.max_dm_size);
	refused("nothing", 0, 0, EINVAL);
	refused("a byte more than that", attr.max_dm_size + 1, 0, EINVAL);
	refused("all that there could be", SIZE_MAX, 0, EINVAL);
	refused("an alignment of two pages", 4096, __builtin_ctzl(sysconf(_SC_PAGESIZE)) + 1, EINVAL);
	refused("an alignment of 2^32 and more", 4096, UINT32_MAX, EINVAL);
	dm = ibv_alloc_dm(b.dev->ctx, &unknown);
	vt_check(!dm && errno == EOPNOTSUPP, "an unknown attribute is refused: %s", dm ? "done" : strerror(errno));

	dm = try_dm(b.dev->ctx, 6000, 12);
	vt_check(dm, "6000 bytes at a page: %s", dm ? "done" : strerror(errno));
	if (!dm)
		return;
	not_registered("a region that is not zero-based", dm, 0, 6000, ZERO_BASED & ~IBV_ACCESS_ZERO_BASED, EINVAL);
	not_registered("a region that goes on behind the end", dm, 1, 6000, ZERO_BASED, EINVAL);
	not_registered("a region behind the end", dm, 6001, 1, ZERO_BASED, EINVAL);
	not_registered("a region that wraps", dm, 8, SIZE_MAX, ZERO_BASED, EINVAL);
	not_registered("a region on demand", dm, 0, 6000, ZERO_BASED | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
	not_registered("a region for windows", dm, 0, 6000, ZERO_BASED | IBV_ACCESS_MW_BIND, EOPNOTSUPP);
	not_registered("remote write without local write", dm, 0, 6000,
		       IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE, EINVAL);
	mr = reg(&b, dm, 0, 6000);
	vt_check(ibv_free_dm(dm) == EBUSY, "memory that has a region is not freed");
	vt_check(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ZERO_BASED),
		 "its region is not registered again");
	vt_check(!ibv_dereg_mr(mr), "its region goes");
	free_dm(dm);
}

/* --- copies ------------------------------------------------------------------------------------------ */

static void copies(void)
{
	struct ibv_dm *dm = new_dm(&b, 6000);
	char data[6000], back[6000], zero[6000] = {};

	vt_check(!ibv_memcpy_from_dm(back, dm, 0, 6000) && !memcmp(back, zero, 6000), "new memory is zeroed");
	vt_pattern(data, 1, 0, sizeof(data));
	vt_check(!ibv_memcpy_to_dm(dm, 0, data, 6000) && !ibv_memcpy_from_dm(back, dm, 0, 6000) &&
		 !memcmp(back, data, 6000), "all of it, there and back");
	vt_check(!ibv_memcpy_to_dm(dm, 4092, zero, 8) && !ibv_memcpy_from_dm(back, dm, 0, 6000) &&
		 !memcmp(back, data, 4092) && !memcmp(back + 4092, zero, 8) &&
		 !memcmp(back + 4100, data + 4100, 1900), "eight bytes across a page, and no other");
	vt_check(ibv_memcpy_to_dm(dm, 4, data, 6000) && ibv_memcpy_from_dm(back, dm, 6004, 0) &&
		 ibv_memcpy_to_dm(dm, 8, data, SIZE_MAX - 3) && ibv_memcpy_from_dm(back, dm, UINT64_MAX - 3, 4),
		 "copies beyond the end are refused");
	vt_check(ibv_memcpy_to_dm(dm, 2, data, 4) && ibv_memcpy_from_dm(back, dm, 4, 6), "parts of words are refused");
	vt_check(!ibv_memcpy_to_dm(dm, 6000, data, 0), "nothing, at the end");
	free_dm(dm);
}

/* --- regions ------------------------------------------------------------------------------------------ */

/* bytes from @from to @to of @dm are @data, and those around them what they were */
static void holds(const char *what, struct ibv_dm *dm, const char *data, size_t from, size_t to)
{
	static char all[2 * ROOM];
	size_t i, others = 0;

	if (ibv_memcpy_from_dm(all, dm, 0, sizeof(all)))
		vt_die(VT_WRONG, "WRONG: memcpy from dm");
	for (i = 0; i < sizeof(all); i++)
		others += (i < from || i >= to) && all[i];
	vt_check(!others && !memcmp(all + from, data, to - from), "%s: the right bytes, and %zu others", what, others);
}

/* what a peer does to it; the region begins in the middle of a page */
static void asked_by_peer(void)
{
	const size_t offset = 5000;
	struct ibv_dm *dm = new_dm(&b, 2 * ROOM);
	struct ibv_mr *mr = reg(&b, dm, offset, ROOM);
	uint64_t sum = 7, *result = mine->addr;
	static char data[ROOM];

	ends_fresh(IBV_QPT_RC);
	vt_pattern(data, 2, 0, ROOM);
	memcpy(mine->addr, data, ROOM);
	expect_op("a WRITE of all of it", &a, IBV_WR_RDMA_WRITE, local(mine), ROOM, (struct place){ 0, mr->rkey },
		  IBV_WC_SUCCESS);
	holds("a WRITE", dm, data, offset, offset + ROOM);
	memset(mine->addr, 0, ROOM);
	expect_op("a READ of 9999 bytes", &a, IBV_WR_RDMA_READ, local(mine), 9999, (struct place){ 4321, mr->rkey },
		  IBV_WC_SUCCESS);
	vt_check(!memcmp(mine->addr, data + 4321, 9999), "a READ: the right bytes");
	ibv_memcpy_to_dm(dm, offset + 800, &sum, sizeof(sum));
	expect_op("FETCH AND ADD", &a, IBV_WR_ATOMIC_FETCH_AND_ADD, local(mine), 8, (struct place){ 800, mr->rkey },
		  IBV_WC_SUCCESS);
	vt_check(*result == 7, "FETCH AND ADD: what was there");
	ibv_memcpy_from_dm(&sum, dm, offset + 800, sizeof(sum));
	vt_check(sum == 8, "FETCH AND ADD: %lu", (unsigned long)sum);
	expect_op("a WRITE of a byte behind it", &a, IBV_WR_RDMA_WRITE, local(mine), 1,
		  (struct place){ ROOM, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	ends_stop();
	ibv_dereg_mr(mr);
	free_dm(dm);
}

/* a region of nothing is one all the same */
static void of_nothing(void)
{
	struct ibv_dm *dm = new_dm(&b, 4096);
	struct ibv_mr *mr = reg(&b, dm, 0, 0);

	ends_fresh(IBV_QPT_RC);
	expect_op("a region of nothing: a WRITE of nothing", &a, IBV_WR_RDMA_WRITE, local(mine), 0,
		  (struct place){ 0, mr->rkey }, IBV_WC_SUCCESS);
	expect_op("a region of nothing: a WRITE of a byte", &a, IBV_WR_RDMA_WRITE, local(mine), 1,
		  (struct place){ 0, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	ends_stop();
	ibv_dereg_mr(mr);
	free_dm(dm);
}

/* as source and sink of its owner's requests, and where messages are received */
static void used_by_owner(void)
{
	struct ibv_dm *from = new_dm(&a, 2 * ROOM), *to = new_dm(&b, 2 * ROOM);
	struct ibv_mr *source = reg(&a, from, 0, ROOM), *sink = reg(&b, to, ROOM / 2, ROOM);
	static char data[ROOM];

	vt_pattern(data, 3, 0, ROOM);
	ibv_memcpy_to_dm(from, 0, data, ROOM);
	ends_fresh(IBV_QPT_RC);
	post_recv(&b, 1, (struct place){ 0, sink->lkey }, ROOM);
	expect_op("a SEND from one to the other", &a, IBV_WR_SEND, (struct place){ 0, source->lkey }, ROOM,
		  (struct place){}, IBV_WC_SUCCESS);
	expect_wc("received", b.recv_cq, 1, IBV_WC_SUCCESS);
	holds("a SEND", to, data, ROOM / 2, ROOM / 2 + ROOM);
	ibv_memcpy_to_dm(from, 0, memset(mine->addr, 0, ROOM), ROOM);
	expect_op("a READ from one to the other", &a, IBV_WR_RDMA_READ, (struct place){ 0, source->lkey }, ROOM,
		  (struct place){ 0, sink->rkey }, IBV_WC_SUCCESS);
	holds("a READ into it", from, data, 0, ROOM);
	expect_op("a SEND of a byte behind it", &a, IBV_WR_SEND, (struct place){ ROOM, source->lkey }, 1,
		  (struct place){}, IBV_WC_LOC_PROT_ERR);
	ends_stop();
	ibv_dereg_mr(source);
	ibv_dereg_mr(sink);
	free_dm(from);
	free_dm(to);
}

/* --- another process ---------------------------------------------------------------------------------- */

/* What it needs to know; of a region the key, too, which must be the same */
struct handles {
	uint32_t pd, dm, mr, lkey;
};

/* the new owner's own queue pair, which it connects to itself, moves what is in the memory */
static void loops(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_mr *mr)
{
	struct vt_dev dev = *b.dev;
	struct ibv_sge from = { 0, 100, mr->lkey }, to = { 4000, 100, mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct vt_conn how = ends_how;
	struct ibv_send_wr *bad, send;
	struct ibv_wc wc[2] = {};
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	dev.ctx = ctx;
	dev.pd = pd;
	cq = vt_create_cq(&dev, 10);
	qp = vt_new_qp(&dev, IBV_QPT_RC, cq, 4, 4);
	how.peer = (struct vt_addr){ qp->qp_num, 1, dev.gid };
	how.sq_psn = 1;
	send = vt_request(&from, 1, IBV_WR_SEND);
	vt_check(!vt_bring_up(qp, &dev, 0, &how), "imported: a queue pair of its own");
	vt_check(!ibv_post_recv(qp, &recv, &bad_recv) && !ibv_post_send(qp, &send, &bad) && poll_one(cq, &wc[0], 10) &&
		 poll_one(cq, &wc[1], 10) && !wc[0].status && !wc[1].status, "imported: it sends to itself");
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
}

static void takes_over(void *arg)
{
	const struct handles *h = arg;
	struct ibv_context *ctx = ibv_import_device(dup(b.dev->ctx->cmd_fd));
	struct ibv_pd *pd = ctx ? ibv_import_pd(ctx, h->pd) : NULL;
	struct ibv_dm *dm = ctx ? ibv_import_dm(ctx, h->dm) : NULL;
	struct ibv_mr *mr = pd ? ibv_import_mr(pd, h->mr) : NULL, known = { .lkey = h->lkey, .length = 6000 };
	char data[6000];

	/* rdma-core asks the kernel for a length of sizeof(size_t), which the kernel does not have */
	if (!mr && sizeof(size_t) < sizeof(uint64_t) && errno == EINVAL)
		mr = &known;
	vt_check(ctx && pd && dm && mr, "a device, a domain, memory and a region are imported: %s", strerror(errno));
	if (!ctx || !pd || !dm || !mr)
		return;
	vt_check(mr->lkey == h->lkey && mr->length == 6000, "imported: the region's key, and %zu bytes", mr->length);
	vt_pattern(data, 5, 0, sizeof(data));
	vt_check(!ibv_memcpy_to_dm(dm, 0, data, 6000) && ibv_memcpy_to_dm(dm, 4, data, 6000), "imported: copies");
	loops(ctx, pd, mr);
	errno = 0;
	vt_check(!ibv_import_dm(ctx, 12345) && errno == ENOENT, "a handle that nobody has: %s", strerror(errno));
	vt_check(!ibv_import_dm(ctx, h->pd) || h->pd == h->dm, "a domain's handle is none of memory");
	if (mr != &known)
		ibv_unimport_mr(mr);
	ibv_unimport_dm(dm);
	ibv_unimport_pd(pd);
	vt_check(!ibv_close_device(ctx), "imported: closed");
}

/* a file of the device, twice open: the same context, and what is on it */
static void shared(void)
{
	struct ibv_dm *dm = new_dm(&b, 6000);
	struct ibv_mr *mr = reg(&b, dm, 0, 6000);
	struct handles h = { b.dev->pd->handle, dm->handle, mr->handle, mr->lkey };
	char data[6000], seen[6000];

	vt_in_child("another process", takes_over, &h);
	vt_pattern(data, 5, 0, sizeof(data));
	memcpy(data + 4000, data, 100);
	vt_check(!ibv_memcpy_from_dm(seen, dm, 0, 6000) && !memcmp(seen, data, 6000), "what it has left is here");
	vt_check(!ibv_dereg_mr(mr), "the region goes");
	free_dm(dm);
}

/* --- what it counts as --------------------------------------------------------------------------------- */

/* All regions are of the same memory, and each has a table of its pages */
static void many_regions(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_dm *dm = try_dm(ctx, 65536, 0);
	struct ibv_mr *mr[256];
	size_t n = 0;

	if (!pd || !dm)
		vt_die(VT_WRONG, "64 KiB: %s", strerror(errno));
	while (n < ARRAY_SIZE(mr) &&
	       (mr[n] = ibv_reg_dm_mr(pd, dm, 0, 65536, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)))
		n++;
	vt_check(n && n <= 240 && errno == ENOMEM, "of 1 MiB and 64 KiB of memory, %zu regions are left: %s", n,
		 strerror(errno));
	while (n)
		ibv_dereg_mr(mr[--n]);
	vt_check(!ibv_free_dm(dm), "they are given back");
}

static void as_nobody(void *arg)
{
	struct ibv_context *ctx = ibv_open_device(b.dev->ctx->device);
	struct ibv_dm *dm;

	if (!ctx)
		vt_die(VT_SETUP, "no device: %s", strerror(errno));
	vt_be_nobody(1 << 20);
	many_regions(ctx);
	dm = try_dm(ctx, (1 << 20) + 1, 0);
	vt_check(!dm && errno == ENOMEM, "more than RLIMIT_MEMLOCK is refused: %s", dm ? "done" : strerror(errno));
	vt_check(try_dm(ctx, 1 << 20, 0), "as much as RLIMIT_MEMLOCK is not");
	vt_check(!try_dm(ctx, 1, 0) && errno == ENOMEM, "then a byte more is");
	/* It ends with all that it has. */
}

static void limits(void)
{
	long before = vt_pinned(), after;
	struct ibv_dm *dm = new_dm(&b, 1 << 20);

	after = vt_pinned();
	vt_check(after - before == 1024, "1 MiB is pinned memory: %ld KiB", after - before);
	free_dm(dm);
	vt_check(vt_pinned() == before, "and is given back");
	vt_in_child("RLIMIT_MEMLOCK", as_nobody, NULL);
}

int main(int argc, char **argv)
{
	ends_open(argc, argv);
	mine = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	refusals();
	copies();
	asked_by_peer();
	of_nothing();
	used_by_owner();
	shared();
	limits();
	ends_stop();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
