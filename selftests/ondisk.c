// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ondisk: a process whose memory on demand is on a disk.
 *
 *	DISK=FILE ondisk -d DEVICE -i IP
 *
 * Registers SIZE bytes of the file on demand and has a peer read them all, so that the
 * device brings them in, as none of them is in memory. Compares them with the file and
 * prints "read BYTES in N ms".
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

#define PIECE (1ul << 20)
#define PIECES 16ul
#define SIZE (PIECE * PIECES)

static void *map_disk(const char *file)
{
	int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		vt_die(VT_SETUP, "DISK: %s", file ? strerror(errno) : "not set");
	at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	/* Nothing is read ahead: each page is asked for */
	if (at == MAP_FAILED || madvise(at, SIZE, MADV_RANDOM))
		vt_die(VT_SETUP, "%s: %s", file, strerror(errno));
	close(fd);
	return at;
}

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static void read_piece(struct ibv_mr *mr, struct ibv_mr *sink, unsigned long i)
{
	struct place from = remote(mr);
	struct ibv_wc wc;

	from.addr += i * PIECE;
	if (post_op(&a, i, IBV_WR_RDMA_READ, local(sink), PIECE, from) || !poll_one(a.send_cq, &wc, 60) || wc.status)
		vt_die(VT_WRONG, "WRONG: READ %lu", i);
	if (memcmp(sink->addr, (char *)mr->addr + i * PIECE, PIECE))
		vt_die(VT_WRONG, "WRONG: bytes of READ %lu", i);
}

int main(int argc, char **argv)
{
	struct ibv_mr *sink, *mr;
	uint64_t begin;
	unsigned long i;
	void *at;

	ends_open(argc, argv);
	sink = vt_mr(a.dev, PIECE, IBV_ACCESS_LOCAL_WRITE);
	at = map_disk(getenv("DISK"));
	mr = ibv_reg_mr(b.dev->pd, at, SIZE, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		vt_die(errno == EOPNOTSUPP ? VT_SKIP : VT_SETUP, "region on demand: %s", strerror(errno));
	ends_fresh(IBV_QPT_RC);
	begin = milliseconds();
	for (i = 0; i < PIECES; i++)
		read_piece(mr, sink, i);
	printf("read %lu in %lu ms\n", SIZE, (unsigned long)(milliseconds() - begin));
	return VT_OK;
}
