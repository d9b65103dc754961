// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * dmabuf: regions of dma-bufs (ibv_reg_dmabuf_mr()), those of udmabuf and of the system heap: what is refused, every operation
 * with one at either end, and buffers, regions and processes that go in every order.
 *
 *	dmabuf -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * @a asks, @b owns the memory that is asked for. As root: what counts in a limit is asked for by a child who is nobody.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define ROOM (64 * 1024)
#define BUF (4 * ROOM)
/* the region begins in the middle of a page, and its addresses are others than those of the buffer */
#define SKIP 5000
#define IOVA (0x100000000000ull + SKIP)

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS)

/* memory of the requester, which is always good */
static struct ibv_mr *mine;

/* a buffer, and what is in it as this process sees it */
struct buf {
	int fd;
	char *mem;
};

static int new_fd(int memfd, size_t bytes)
{
	struct udmabuf_create create = { .memfd = memfd, .flags = UDMABUF_FLAGS_CLOEXEC, .size = bytes };
	int dev = open("/dev/udmabuf", O_RDWR);
	int fd;

	if (dev < 0)
		vt_die(VT_SKIP, "no udmabuf");
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	close(dev);
	if (fd < 0)
		vt_die(VT_SETUP, "udmabuf: %s", strerror(errno));
	return fd;
}

static struct buf new_buf(size_t bytes)
{
	int memfd = memfd_create("dmabuf", MFD_ALLOW_SEALING);
	struct buf buf;

	if (memfd < 0 || ftruncate(memfd, bytes) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		vt_die(VT_SETUP, "memfd: %s", strerror(errno));
	buf.mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (buf.mem == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	buf.fd = new_fd(memfd, bytes);
	close(memfd);
	return buf;
}

static void free_buf(struct buf *buf)
{
	munmap(buf->mem, BUF);
	close(buf->fd);
}

static struct ibv_mr *reg(struct end *e, const struct buf *buf)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(e->dev->pd, SKIP, ROOM, IOVA, buf->fd, RIGHTS);

	if (!mr)
		vt_die(VT_WRONG, "WRONG: reg dmabuf mr: %s", strerror(errno));
	return mr;
}

/* --- what is refused ------------------------------------------------------------------------------- */

static void refused(const char *what, int fd, uint64_t offset, size_t length, uint64_t iova, int access, int wanted)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(b.dev->pd, offset, length, iova, fd, access);
	vt_check(!mr && errno == wanted, "%s is refused: %s", what, mr ? "done" : strerror(errno));
	if (mr)
		ibv_dereg_mr(mr);
}

static void refusals(void)
{
	struct buf buf = new_buf(BUF);
	struct ibv_mr *mr;
	int null = open("/dev/null", O_RDWR);

	refused("a file that is no dma-buf", null, 0, 4096, 0, RIGHTS, EINVAL);
	refused("no file", 12345, 0, 4096, 0, RIGHTS, EBADF);
	refused("nothing", buf.fd, 0, 0, 0, RIGHTS, EINVAL);
	refused("a byte more than there is", buf.fd, 0, BUF + 1, 0, RIGHTS, EINVAL);
	refused("a byte behind the end", buf.fd, BUF, 1, 0, RIGHTS, EINVAL);
	refused("an offset that wraps", buf.fd, UINT64_MAX - 4095, 8192, 0, RIGHTS, EINVAL);
	refused("all that there could be", buf.fd, 0, SIZE_MAX, 0, RIGHTS, EINVAL);
	refused("addresses that wrap", buf.fd, 0, 8192, UINT64_MAX - 4095, RIGHTS, EINVAL);
	refused("an address that lies otherwise in its page", buf.fd, 0, 4096, 8, RIGHTS, EINVAL);
	refused("remote write without local write", buf.fd, 0, 4096, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refused("a region on demand", buf.fd, 0, 4096, 0, RIGHTS | IBV_ACCESS_ON_DEMAND, EINVAL);
	refused("a region for windows", buf.fd, 0, 4096, 0, RIGHTS | IBV_ACCESS_MW_BIND, EINVAL);
	mr = reg(&b, &buf);
	vt_check(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), "it is not registered again");
	vt_check(!ibv_dereg_mr(mr), "it goes");
	close(null);
	free_buf(&buf);
}

/* Kernels of these have CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU */
static bool devices_may_be_incoherent(void)
{
	struct utsname name;

	return !uname(&name) && !strcmp(name.machine, "aarch64");
}

/* with such a kernel no buffer is taken */
static void nothing_else(void)
{
	struct buf buf = new_buf(BUF);

	refused("a buffer, where devices need not be coherent", buf.fd, SKIP, ROOM, IOVA, RIGHTS, EOPNOTSUPP);
	free_buf(&buf);
}

static bool all_zero(const char *p, size_t n)
{
	while (n && !*p++)
		n--;
	return !n;
}

/* --- operations ---------------------------------------------------------------------------------------- */

/* bytes from @from on are @data, and all others what they were */
static void holds(const char *what, const struct buf *buf, const char *data, size_t from, size_t len)
{
	size_t i, others = 0;

	for (i = 0; i < BUF; i++)
		others += (i < from || i >= from + len) && buf->mem[i];
	vt_check(!others && !memcmp(buf->mem + from, data, len), "%s: the right bytes, and %zu others", what, others);
}

static void asked_by_peer(void)
{
	struct buf buf = new_buf(BUF);
	struct ibv_mr *mr = reg(&b, &buf);
	uint64_t sum = 7, *result = mine->addr;
	static char data[ROOM];

	ends_fresh(IBV_QPT_RC);
	vt_pattern(data, 2, 0, ROOM);
	memcpy(mine->addr, data, ROOM);
	expect_op("a WRITE of all of it", &a, IBV_WR_RDMA_WRITE, local(mine), ROOM, (struct place){ IOVA, mr->rkey },
		  IBV_WC_SUCCESS);
	holds("a WRITE", &buf, data, SKIP, ROOM);
	memset(mine->addr, 0, ROOM);
	expect_op("a READ of 9999 bytes", &a, IBV_WR_RDMA_READ, local(mine), 9999,
		  (struct place){ IOVA + 4321, mr->rkey }, IBV_WC_SUCCESS);
	vt_check(!memcmp(mine->addr, data + 4321, 9999), "a READ: the right bytes");
	memcpy(buf.mem + SKIP + 800, &sum, sizeof(sum));
	expect_op("FETCH AND ADD", &a, IBV_WR_ATOMIC_FETCH_AND_ADD, local(mine), 8,
		  (struct place){ IOVA + 800, mr->rkey }, IBV_WC_SUCCESS);
	memcpy(&sum, buf.mem + SKIP + 800, sizeof(sum));
	vt_check(*result == 7 && sum == 8, "FETCH AND ADD: %lu, %lu", (unsigned long)*result, (unsigned long)sum);
	expect_op("a WRITE of a byte behind it", &a, IBV_WR_RDMA_WRITE, local(mine), 1,
		  (struct place){ IOVA + ROOM, mr->rkey }, IBV_WC_REM_ACCESS_ERR);
	ends_stop();
	ibv_dereg_mr(mr);
	free_buf(&buf);
}

/* as source and sink of its owner's requests, and where messages are received */
static void used_by_owner(void)
{
	struct buf from = new_buf(BUF), to = new_buf(BUF);
	struct ibv_mr *source = reg(&a, &from), *sink = reg(&b, &to);
	static char data[ROOM];

	vt_pattern(data, 3, 0, ROOM);
	memcpy(from.mem + SKIP, data, ROOM);
	ends_fresh(IBV_QPT_RC);
	post_recv(&b, 1, (struct place){ IOVA, sink->lkey }, ROOM);
	expect_op("a SEND from one to the other", &a, IBV_WR_SEND, (struct place){ IOVA, source->lkey }, ROOM,
		  (struct place){}, IBV_WC_SUCCESS);
	expect_wc("received", b.recv_cq, 1, IBV_WC_SUCCESS);
	holds("a SEND", &to, data, SKIP, ROOM);
	memset(from.mem, 0, BUF);
	expect_op("a READ from one to the other", &a, IBV_WR_RDMA_READ, (struct place){ IOVA, source->lkey }, ROOM,
		  (struct place){ IOVA, sink->rkey }, IBV_WC_SUCCESS);
	holds("a READ into it", &from, data, SKIP, ROOM);
	ends_stop();
	ibv_dereg_mr(source);
	ibv_dereg_mr(sink);
	free_buf(&from);
	free_buf(&to);
}

/* a buffer of the system heap, whose file is open as @mode says */
static int heap_fd(int heap, int mode)
{
	struct dma_heap_allocation_data alloc = { .len = BUF, .fd_flags = O_CLOEXEC | mode };

	if (ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &alloc))
		vt_die(VT_SETUP, "system heap: %s", strerror(errno));
	return alloc.fd;
}

static void for_reading(int heap)
{
	int fd = heap_fd(heap, O_RDONLY);
	struct ibv_mr *mr;

	refused("writing through a file that is for reading", fd, 0, 4096, 0, RIGHTS, EACCES);
	mr = ibv_reg_dmabuf_mr(b.dev->pd, 0, 4096, 0, fd, IBV_ACCESS_REMOTE_READ);
	vt_check(mr, "reading through it is not: %s", strerror(errno));
	close(fd);
	if (!mr)
		return;
	ends_fresh(IBV_QPT_RC);
	memset(mine->addr, 0xff, 101);
	expect_op("a READ", &a, IBV_WR_RDMA_READ, local(mine), 100, (struct place){ 0, mr->rkey }, IBV_WC_SUCCESS);
	vt_check(all_zero(mine->addr, 100) && ((char *)mine->addr)[100], "the right bytes: of a new buffer, zeros");
	expect_op("a WRITE", &a, IBV_WR_RDMA_WRITE, local(mine), 100, (struct place){ 0, mr->rkey },
		  IBV_WC_REM_ACCESS_ERR);
	ends_stop();
	ibv_dereg_mr(mr);
}

static void for_writing(int heap)
{
	int fd = heap_fd(heap, O_WRONLY);

	refused("a region of a file that is for writing", fd, 0, 4096, 0, RIGHTS, EACCES);
	refused("reading through a file that is for writing", fd, 0, 4096, 0, IBV_ACCESS_REMOTE_READ, EACCES);
	close(fd);
}

static void for_both(int heap)
{
	struct buf buf = { .fd = heap_fd(heap, O_RDWR) };
	static char data[ROOM];
	struct ibv_mr *mr;

	buf.mem = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_SHARED, buf.fd, 0);
	if (buf.mem == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	mr = reg(&b, &buf);
	ends_fresh(IBV_QPT_RC);
	vt_pattern(data, 5, 0, ROOM);
	memcpy(mine->addr, data, ROOM);
	expect_op("a WRITE to a buffer of the system heap", &a, IBV_WR_RDMA_WRITE, local(mine), ROOM,
		  (struct place){ IOVA, mr->rkey }, IBV_WC_SUCCESS);
	holds("a WRITE to a buffer of the system heap", &buf, data, SKIP, ROOM);
	ends_stop();
	ibv_dereg_mr(mr);
	free_buf(&buf);
}

/* what a file is open for is what its region may do */
static void heaps(void)
{
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);

	if (heap < 0) {
		printf("# no system heap: %s\n", strerror(errno));
		return;
	}
	for_reading(heap);
	for_writing(heap);
	for_both(heap);
	close(heap);
}

/* --- what goes first ----------------------------------------------------------------------------------- */

/* the region is all that is left of the buffer */
static void buffer_goes_first(void)
{
	struct buf buf = new_buf(BUF);
	struct ibv_mr *mr = reg(&b, &buf);
	char data[1000];

	free_buf(&buf);
	ends_fresh(IBV_QPT_RC);
	vt_pattern(mine->addr, 6, 0, 1000);
	memcpy(data, mine->addr, 1000);
	expect_op("the file is closed: a WRITE", &a, IBV_WR_RDMA_WRITE, local(mine), 1000,
		  (struct place){ IOVA + 3000, mr->rkey }, IBV_WC_SUCCESS);
	memset(mine->addr, 0, 1000);
	expect_op("the file is closed: a READ", &a, IBV_WR_RDMA_READ, local(mine), 1000,
		  (struct place){ IOVA + 3000, mr->rkey }, IBV_WC_SUCCESS);
	vt_check(!memcmp(mine->addr, data, 1000), "the file is closed: the right bytes");
	ibv_dereg_mr(mr);
	expect_op("the region is gone", &a, IBV_WR_RDMA_READ, local(mine), 1, (struct place){ IOVA, mr->rkey },
		  IBV_WC_REM_ACCESS_ERR);
	ends_stop();
}

/* regions come and go under WRITEs; what is written after one has gone goes nowhere */
static void goes_under_traffic(void)
{
	struct buf buf = new_buf(BUF);
	struct ibv_wc wc;
	int i, rounds = ends_short ? 20 : 100, bad = 0, n;
	struct ibv_mr *mr;

	for (i = 0; i < rounds; i++) {
		mr = reg(&b, &buf);
		ends_fresh(IBV_QPT_RC);
		for (n = 0; n < 8; n++)
			post_op(&a, n, IBV_WR_RDMA_WRITE, local(mine), ROOM, (struct place){ IOVA, mr->rkey });
		usleep(i * 10);
		bad += !!ibv_dereg_mr(mr);
		memset(buf.mem, i, BUF);
		for (n = 0; n < 8; n++)
			bad += !poll_one(a.send_cq, &wc, 20) ||
			       (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR &&
				wc.status != IBV_WC_WR_FLUSH_ERR);
		for (n = 0; n < BUF; n++)
			bad += buf.mem[n] != (char)i;
	}
	vt_check(!bad, "regions that go under WRITEs: %d wrong in %d rounds", bad, rounds);
	ends_stop();
	free_buf(&buf);
}

/* --- what it counts as --------------------------------------------------------------------------------- */

static void as_nobody(void *arg)
{
	const struct buf *buf = arg;
	struct ibv_context *ctx = ibv_open_device(b.dev->ctx->device);
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	if (!ctx)
		vt_die(VT_SETUP, "no device: %s", strerror(errno));
	vt_be_nobody(BUF + 4096);
	pd = ibv_alloc_pd(ctx);
	mr = pd ? ibv_reg_dmabuf_mr(pd, 0, 4096, 0, buf->fd, RIGHTS) : NULL;
	vt_check(mr, "a buffer as large as RLIMIT_MEMLOCK");
	vt_check(pd && !ibv_reg_dmabuf_mr(pd, 0, 4096, 0, buf->fd, RIGHTS) && errno == ENOMEM,
		 "no other one: %s", strerror(errno));
	/* It ends with all that it has. */
}

static void limits(void)
{
	struct buf buf = new_buf(BUF);
	long before = vt_pinned(), after;
	struct ibv_mr *mr = reg(&b, &buf);

	after = vt_pinned();
	vt_check(after - before == BUF / 1024, "the whole buffer is pinned memory: %ld KiB", after - before);
	ibv_dereg_mr(mr);
	vt_check(vt_pinned() == before, "and is given back");
	vt_in_child("RLIMIT_MEMLOCK", as_nobody, &buf);
	free_buf(&buf);
}

int main(int argc, char **argv)
{
	ends_open(argc, argv);
	mine = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	if (devices_may_be_incoherent()) {
		nothing_else();
	} else {
		refusals();
		asked_by_peer();
		used_by_owner();
		heaps();
		buffer_goes_first();
		goes_under_traffic();
		limits();
	}
	ends_stop();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
