// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mpi all|two-sided : what MPI programs do, and every byte of it looked at: messages of all sizes in both directions, many
 * at once and of unknown order, with "all" one-sided access, collectives. Says "ok" on the first rank, or what was wrong on
 * any.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (4 << 20)
#define MANY 64
#define WORDS 5000

static int rank, ranks;
static long wrong;

static void check(int right, const char *what, long which)
{
	if (right)
		return;
	if (wrong++ < 5)
		fprintf(stderr, "rank %d: %s, %ld: wrong\n", rank, what, which);
}

/* What @from sends to @to in its turn @n */
static void fill(uint8_t *p, int len, int from, int to, int n)
{
	uint32_t x = from * 7919 + to * 104729 + n * 31 + 1;
	int i;

	for (i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = x >> 24;
	}
}

static int holds(const uint8_t *p, int len, int from, int to, int n)
{
	uint8_t *want = malloc(len + 1);
	int same;

	fill(want, len, from, to, n);
	same = !memcmp(p, want, len);
	free(want);
	return same;
}

/* Each rank with the next one in a ring, at once in both directions: what is sent inline, eagerly, by rendezvous */
static void sizes(void)
{
	static const int around[] = { 0, 1, 7, 64, 1000, 4096, 8191, 65536, 262143, 1 << 20, MOST };
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	uint8_t *out = malloc(MOST), *in = malloc(MOST);
	MPI_Status status;
	int got;
	size_t i;

	for (i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
		fill(out, around[i], rank, next, i);
		memset(in, 0, MOST);
		MPI_Sendrecv(out, around[i], MPI_BYTE, next, i, in, MOST, MPI_BYTE, last, i, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &got);
		check(got == around[i], "length", around[i]);
		check(holds(in, around[i], last, rank, i), "message", around[i]);
	}
	free(out);
	free(in);
}

/* Many under way between all, some of which nobody waits for yet; any source, any order of tags */
static void many(void)
{
	int total = MANY * ranks, len = 3000, i, peer;
	uint8_t *out = malloc((size_t)total * len), *in = malloc((size_t)total * len);
	MPI_Request *reqs = malloc(2 * total * sizeof(*reqs));
	MPI_Status status;

	for (i = 0; i < total; i++) {
		peer = i % ranks;
		fill(out + (size_t)i * len, len, rank, peer, i / ranks);
		MPI_Isend(out + (size_t)i * len, len, MPI_BYTE, peer, i / ranks, MPI_COMM_WORLD, &reqs[i]);
	}
	for (i = total - 1; i >= 0; i--) {
		MPI_Recv(in, len, MPI_BYTE, MPI_ANY_SOURCE, i / ranks, MPI_COMM_WORLD, &status);
		check(holds(in, len, status.MPI_SOURCE, rank, i / ranks), "one of many", i);
	}
	MPI_Waitall(total, reqs, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
	free(reqs);
}

/*
 * Every other element of a vector, and a probe before the message is taken; its tag is none of those above, which one
 * that is not there yet still takes from any source
 */
static void strided(void)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, i, n;
	int32_t *out = calloc(2 * WORDS, sizeof(*out)), *in = calloc(WORDS, sizeof(*in));
	MPI_Datatype every_other;
	MPI_Request req;
	MPI_Status status;

	MPI_Type_vector(WORDS, 1, 2, MPI_INT32_T, &every_other);
	MPI_Type_commit(&every_other);
	for (i = 0; i < 2 * WORDS; i++)
		out[i] = rank * 100000 + i;
	MPI_Isend(out, 1, every_other, next, MANY, MPI_COMM_WORLD, &req);
	MPI_Probe(last, MANY, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_INT32_T, &n);
	check(n == WORDS, "probed length", n);
	MPI_Recv(in, WORDS, MPI_INT32_T, last, MANY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	for (i = 0; i < WORDS; i++)
		check(in[i] == last * 100000 + 2 * i, "strided", i);
	MPI_Type_free(&every_other);
	free(out);
	free(in);
}

/* Windows: put, get, accumulate and compare-and-swap, with fences and with locks */
static void one_sided(void)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, len = 300000, i;
	uint8_t *base, *out = malloc(len), *in = malloc(len);
	int64_t *sum, one = 1, old, zero = 0, mine = rank + 1;
	MPI_Win win, counters;

	MPI_Win_allocate(len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	memset(base, 0, len);
	fill(out, len, rank, next, 77);
	MPI_Win_fence(0, win);
	MPI_Put(out, len, MPI_BYTE, next, 0, len, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check(holds(base, len, last, rank, 77), "put", len);
	MPI_Get(in, len, MPI_BYTE, next, 0, len, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check(holds(in, len, rank, next, 77), "get", len);
	MPI_Win_free(&win);

	MPI_Win_allocate(2 * sizeof(*sum), sizeof(*sum), MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &counters);
	sum[0] = sum[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < 100; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, counters);
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, counters);
		MPI_Win_unlock(0, counters);
	}
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, counters);
	MPI_Compare_and_swap(&mine, &zero, &old, MPI_INT64_T, 0, 1, counters);
	MPI_Win_unlock(0, counters);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, counters);
		check(sum[0] == 100 * ranks, "fetch and add", sum[0]);
		check(sum[1] >= 1 && sum[1] <= ranks, "compare and swap", sum[1]);
		MPI_Win_unlock(0, counters);
	}
	MPI_Win_free(&counters);
	free(out);
	free(in);
}

static void reductions(int n)
{
	int64_t *out = malloc(n * sizeof(*out)), *in = malloc(n * sizeof(*in));
	int i;

	for (i = 0; i < n; i++)
		out[i] = (int64_t)i * (rank + 1);
	MPI_Allreduce(out, in, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		check(in[i] == (int64_t)i * ranks * (ranks + 1) / 2, "allreduce", n);
	MPI_Scan(out, in, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		check(in[i] == (int64_t)i * (rank + 1) * (rank + 2) / 2, "scan", n);
	free(out);
	free(in);
}

static void collectives(int len)
{
	uint8_t *out = malloc((size_t)len * ranks), *in = malloc((size_t)len * ranks);
	int i;

	for (i = 0; i < ranks; i++) {
		if (rank == i)
			fill(in, len, i, 0, 1);
		MPI_Bcast(in, len, MPI_BYTE, i, MPI_COMM_WORLD);
		check(holds(in, len, i, 0, 1), "broadcast", len);
	}
	for (i = 0; i < ranks; i++)
		fill(out + (size_t)i * len, len, rank, i, 2);
	MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < ranks; i++)
		check(holds(in + (size_t)i * len, len, i, rank, 2), "all to all", len);
	fill(out, len, rank, 0, 3);
	MPI_Allgather(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < ranks; i++)
		check(holds(in + (size_t)i * len, len, i, 0, 3), "all gather", len);
	free(out);
	free(in);
	reductions(len / 8 + 1);
}

int main(int argc, char **argv)
{
	long all = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	sizes();
	many();
	strided();
	if (argc > 1 && !strcmp(argv[1], "all"))
		one_sided();
	collectives(8);
	collectives(5000);
	collectives(700000);
	MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (!rank)
		printf("%s: %d ranks, %ld wrong\n", all ? "WRONG" : "ok", ranks, all);
	MPI_Finalize();
	return all != 0;
}
