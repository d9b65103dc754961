// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * charge: a process whose page tables are made by the device.
 *
 *	charge -d DEVICE -i IP
 *
 * Registers SIZE bytes that it never touches on demand, and reads a little of each
 * piece that has a page table of its own, which costs the machine nothing but that
 * table. Prints "tables KIB", those of this process, then waits for the end of its
 * standard input, so that somebody can see whom they are charged to.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

#define PIECE (2ul << 20)
#define PIECES 1024ul
#define SIZE (PIECE * PIECES)

static long tables(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPTE: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

static struct ibv_mr *untouched(void)
{
	void *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr;

	/* which a kernel without huge pages does not know */
	if (at == MAP_FAILED || (madvise(at, SIZE, MADV_NOHUGEPAGE) && errno != EINVAL))
		vt_die(VT_SETUP, "memory: %s", strerror(errno));
	mr = ibv_reg_mr(b.dev->pd, at, SIZE, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		vt_die(errno == EOPNOTSUPP ? VT_SKIP : VT_SETUP, "region on demand: %s", strerror(errno));
	return mr;
}

int main(int argc, char **argv)
{
	struct ibv_mr *sink, *mr;
	struct place from;
	struct ibv_wc wc;
	uint64_t i;
	long before;

	ends_open(argc, argv);
	sink = vt_mr(a.dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	mr = untouched();
	before = tables();
	ends_fresh(IBV_QPT_RC);
	for (i = 0; i < PIECES; i++) {
		from = remote(mr);
		from.addr += i * PIECE;
		if (post_op(&a, i, IBV_WR_RDMA_READ, local(sink), 8, from) || !poll_one(a.send_cq, &wc, 30) ||
		    wc.status)
			vt_die(VT_WRONG, "WRONG: READ %lu", (unsigned long)i);
	}
	if (tables() < before + 4 * (long)PIECES)
		vt_die(VT_WRONG, "WRONG: %ld KiB of page tables, %ld before", tables(), before);
	printf("tables %ld\n", tables());
	fflush(stdout);
	while (getchar() != EOF)
		;
	return VT_OK;
}
