// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * kinds: every operation on memory of each kind of page (ordinary ones, transparent huge ones, huge
 * ones), that is pinned or on demand, and that requests name by its address, from zero on, or by
 * addresses of their own. The region begins in the middle of a huge page and ends in the next one.
 *
 *	kinds -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * @a asks, @b owns the memory. As root.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_HUGEPAGE */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

#define HUGE_PAGE (2ul << 20)
#define SIZE (2 * HUGE_PAGE)
/* where the region begins in that, and where in the region the second huge page does */
#define START (HUGE_PAGE / 2 + 5000)
#define LENGTH HUGE_PAGE
#define BORDER (HUGE_PAGE - START)

#define ALL (IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS)

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

/* --- memory ----------------------------------------------------------------------------------- */

enum page { ORDINARY, TRANSPARENT, HUGE_ONES };
enum way { PINNED, DEMAND, DEMAND_HUGE };
enum naming { BY_ADDRESS, ZERO_BASED, ELSEWHERE, ELSEWHERE_IN_PAGE };

static const char *const pages[] = { "ordinary pages", "transparent huge pages", "huge pages" };
static const char *const ways[] = { "pinned", "on demand", "on demand, as of huge pages" };
static const char *const namings[] = {
	"by address", "from zero on", "by other addresses",
	"by addresses that lie otherwise in a huge page",
};

/* all of the memory, and the region in it: its first byte, and the name of that */
static struct {
	char *all, *start;
	uint64_t name;
	struct ibv_mr *mr;
} region;

/* of the requester: what it sends, and behind that what it gets */
#define ROOM (256 * 1024)
static struct ibv_mr *mine;

static char *get(void)
{
	return (char *)mine->addr + ROOM;
}

/* An address that is a multiple of a huge page's size; NULL: there is no such memory */
static char *map_pages(enum page page)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p, *start;

	if (page == HUGE_ONES) {
		flags |= MAP_HUGETLB | MAP_HUGE_2MB;
		p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	p = mmap(NULL, SIZE + HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	start = (char *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	munmap(p, start - p);
	munmap(start + SIZE, p + HUGE_PAGE - start);
	/* a kernel that knows no transparent ones says so for both */
	if (madvise(start, SIZE, page == ORDINARY ? MADV_NOHUGEPAGE : MADV_HUGEPAGE) &&
	    page == TRANSPARENT) {
		munmap(start, SIZE);
		return NULL;
	}
	return start;
}

static uint64_t first_name(enum naming naming)
{
	const uint64_t elsewhere = 0x100000000000ull + START;

	switch (naming) {
	case BY_ADDRESS:
		return (uintptr_t)region.start;
	case ZERO_BASED:
		return 0;
	case ELSEWHERE:
		return elsewhere;
	default:
		return elsewhere + 65536;
	}
}

static bool make_region(enum naming naming, enum way way)
{
	int access = ALL | (naming == ZERO_BASED ? IBV_ACCESS_ZERO_BASED : 0) |
		     (way != PINNED ? IBV_ACCESS_ON_DEMAND : 0) |
		     (way == DEMAND_HUGE ? IBV_ACCESS_HUGETLB : 0);

	region.start = region.all + START;
	region.name = first_name(naming);
	region.mr = ibv_reg_mr_iova(b.dev->pd, region.start, LENGTH,
				    naming == ZERO_BASED ? (uintptr_t)region.start : region.name,
				    access);
	return region.mr;
}

static struct place at(uint64_t offset)
{
	return (struct place){ region.name + offset, region.mr->rkey };
}

/* --- operations ------------------------------------------------------------------------------- */

/*
 * What is there is what is wanted. On user mode Linux a process sees what became of its page
 * tables after its next system call.
 */
static bool same(const char *what, size_t offset, const char *p, const char *wanted, size_t len)
{
	sched_yield();
	if (!memcmp(p, wanted, len))
		return true;
	printf("# %s: %zu bytes at %zu are wrong\n", what, len, offset);
	return false;
}

static bool done(const char *what, size_t offset, struct ibv_cq *cq)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	poll_one(cq, &wc, 10);
	if (wc.status)
		printf("# %s at %zu: %s\n", what, offset, ibv_wc_status_str(wc.status));
	return !wc.status;
}

static void new_bytes(void *p, size_t len)
{
	static uint64_t key;

	vt_pattern(p, ++key, 0, len);
}

/* The bytes around are what they were */
static bool writes(size_t offset, size_t len)
{
	char before = region.start[offset - 1], behind = region.start[offset + len];

	new_bytes(mine->addr, len);
	post_op(&a, 1, IBV_WR_RDMA_WRITE, local(mine), len, at(offset));
	return done("WRITE", offset, a.send_cq) &&
	       same("WRITE", offset, region.start + offset, mine->addr, len) &&
	       region.start[offset - 1] == before && region.start[offset + len] == behind;
}

static bool reads(size_t offset, size_t len)
{
	new_bytes(region.start + offset, len);
	post_op(&a, 1, IBV_WR_RDMA_READ, (struct place){ (uintptr_t)get(), mine->lkey }, len,
		at(offset));
	return done("READ", offset, a.send_cq) &&
	       same("READ", offset, get(), region.start + offset, len);
}

/* The owner's own requests take it as their memory */
static bool sends_from(size_t offset, size_t len)
{
	new_bytes(region.start + offset, len);
	post_op(&b, 1, IBV_WR_RDMA_WRITE, at(offset), len,
		(struct place){ (uintptr_t)get(), mine->rkey });
	return done("WRITE from it", offset, b.send_cq) &&
	       same("WRITE from it", offset, get(), region.start + offset, len);
}

static bool reads_into(size_t offset, size_t len)
{
	new_bytes(mine->addr, len);
	post_op(&b, 1, IBV_WR_RDMA_READ, at(offset), len, remote(mine));
	return done("READ into it", offset, b.send_cq) &&
	       same("READ into it", offset, region.start + offset, mine->addr, len);
}

static bool receives(size_t offset, size_t len)
{
	new_bytes(mine->addr, len);
	post_recv(&b, 2, at(offset), len);
	post_op(&a, 1, IBV_WR_SEND, local(mine), len, at(offset));
	return done("SEND", offset, a.send_cq) && done("receive", offset, b.recv_cq) &&
	       same("receive", offset, region.start + offset, mine->addr, len);
}

static bool adds(size_t offset)
{
	uint64_t *there = (uint64_t *)(region.start + offset);

	*there = 41;
	post_op(&a, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, local(mine), 8, at(offset));
	if (!done("FETCH_ADD", offset, a.send_cq))
		return false;
	sched_yield();
	return *there == 42 && *(uint64_t *)mine->addr == 41;
}

static bool stores(size_t offset)
{
	new_bytes(mine->addr, 8);
	post_op(&a, 1, IBV_WR_ATOMIC_WRITE, local(mine), 8, at(offset));
	return done("ATOMIC WRITE", offset, a.send_cq) &&
	       same("ATOMIC WRITE", offset, region.start + offset, mine->addr, 8);
}

static const struct {
	size_t offset, len;
} places[] = {
	{ 1, 3000 }, { BORDER - 1500, 3000 }, { BORDER - 100001, 200000 }, { BORDER, 1 },
	{ LENGTH - 3001, 3000 },
};

static bool everywhere(bool (*op)(size_t offset, size_t len))
{
	bool good = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++)
		good = op(places[i].offset, places[i].len) && good;
	return good;
}

static bool connected(void)
{
	bool good;

	ends_fresh(IBV_QPT_RC);
	good = everywhere(writes);
	good = everywhere(reads) && good;
	good = everywhere(sends_from) && good;
	good = everywhere(reads_into) && good;
	good = everywhere(receives) && good;
	good = adds(0) && adds(BORDER - 8) && adds(BORDER) && adds(LENGTH - 8) && good;
	return stores(BORDER - 8) && stores(BORDER) && good;
}

static bool shared_receives(void)
{
	bool good;

	ends_stop();
	b.srq = vt_create_srq(b.dev, ENDS_DEPTH, 1);
	ends_fresh(IBV_QPT_RC);
	good = receives(BORDER - 1500, 3000);
	ends_stop();
	ibv_destroy_srq(b.srq);
	b.srq = NULL;
	return good;
}

/* Its pages are there by now: otherwise the first one might be lost */
static bool datagrams(void)
{
	const size_t offset = BORDER - 300, len = 500;
	struct ibv_sge sge = { (uintptr_t)mine->addr, len, mine->lkey };
	struct ibv_send_wr wr = vt_request(&sge, 1, IBV_WR_SEND);
	bool good;

	ends_datagrams(&wr);
	new_bytes(mine->addr, len);
	new_bytes(region.start + offset, len + 40);
	post_recv(&b, 2, at(offset), len + 40);
	good = !post_wr(&a, &wr) && done("UD", offset, a.send_cq) &&
	       done("UD receive", offset, b.recv_cq) &&
	       same("UD receive", offset, region.start + offset + 40, mine->addr, len);
	ends_stop();
	ibv_destroy_ah(wr.wr.ud.ah);
	return good;
}

static bool refused(struct place place, size_t len)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	ends_fresh(IBV_QPT_RC);
	post_op(&a, 1, IBV_WR_RDMA_WRITE, local(mine), len, place);
	poll_one(a.send_cq, &wc, 10);
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		printf("# out of bounds: %s\n", ibv_wc_status_str(wc.status));
	return wc.status == IBV_WC_REM_ACCESS_ERR;
}

/* Pages that the process drops are gone for its peers, too */
static bool dropped(void)
{
	static const char zero[3000];

	if (madvise(region.all, SIZE, MADV_DONTNEED))
		return true;
	ends_fresh(IBV_QPT_RC);
	post_op(&a, 1, IBV_WR_RDMA_READ, (struct place){ (uintptr_t)get(), mine->lkey }, 3000,
		at(BORDER - 1500));
	return done("READ after a drop", BORDER, a.send_cq) &&
	       same("what was dropped", BORDER - 1500, get(), zero, 3000);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* As "rdma resource" tells; -1: it does not */
static long long block_size(void)
{
	char wanted[40];

	snprintf(wanted, sizeof(wanted), "\"lkey\":\"%x\"", region.mr->lkey);
	return vt_shown(vt_rdma("-dd -j resource show mr dev %s",
				ibv_get_device_name(b.dev->ctx->device)), wanted, "drv_block_size");
}

/* Blocks are as large as pages where the addresses are like the memory, and smaller where not */
static bool block_fits(enum page page, enum naming naming, long long block)
{
	if (naming == ELSEWHERE_IN_PAGE)
		return block > 0 && block < (long long)HUGE_PAGE;
	return page != HUGE_ONES || block >= (long long)HUGE_PAGE;
}

static bool every_operation(void)
{
	bool good = connected();

	good = shared_receives() && good;
	good = datagrams() && good;
	return refused(at(LENGTH - 1), 2) && refused(at(-1), 1) && good;
}

static void kind(enum page page, enum naming naming, enum way way)
{
	char blocks[40] = "";
	long long block;
	bool good;

	/* Cold, and in page tables in which huge pages have a place */
	region.all = map_pages(page);
	if (!region.all || !make_region(naming, way)) {
		vt_check(false, "%s, %s, %s: %s", pages[page], ways[way], namings[naming],
			 strerror(errno));
		return;
	}
	good = every_operation();
	if (way == PINNED) {
		block = block_size();
		snprintf(blocks, sizeof(blocks), ", in blocks of %lld bytes", block);
		good = block_fits(page, naming, block) && good;
	} else {
		good = dropped() && good;
	}
	ends_stop();
	good = !ibv_dereg_mr(region.mr) && good;
	munmap(region.all, SIZE);
	vt_check(good, "%s, %s, %s: every operation%s", pages[page], ways[way], namings[naming],
		 blocks);
}

static void kinds(enum page page)
{
	char *memory = map_pages(page);
	enum naming naming;
	enum way way;

	if (!memory) {
		printf("skip: %s [%s\n", pages[page], strerror(errno));
		return;
	}
	munmap(memory, SIZE);
	for (naming = BY_ADDRESS; naming <= ELSEWHERE_IN_PAGE; naming++)
		for (way = PINNED; way <= DEMAND_HUGE; way++)
			kind(page, naming, way);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Pages that are missing have to come while the peer tries again */
	ends_how.timeout = 14;
	ends_open(argc, argv);
	mine = vt_mr(a.dev, 2 * ROOM, ALL);
	kinds(ORDINARY);
	kinds(TRANSPARENT);
	kinds(HUGE_ONES);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
