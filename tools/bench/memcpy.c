/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What one copy of the buffers of a benchmark costs: MB/s of 64 KiB memcpy()
 * between buffers that together are larger than a second-level cache.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 65536, BUFFERS = 128, ROUNDS = 20000 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(void)
{
	char *from = malloc(SIZE * BUFFERS), *to = malloc(SIZE * BUFFERS);
	double start;
	size_t i;

	if (!from || !to)
		return 1;
	memset(from, 1, SIZE * BUFFERS);
	memset(to, 2, SIZE * BUFFERS);
	start = now();
	for (i = 0; i < ROUNDS; i++) {
		memcpy(to + i % BUFFERS * SIZE, from + i % BUFFERS * SIZE, SIZE);
		__asm__ volatile("" ::: "memory");
	}
	printf("%.0f\n", (double)SIZE * ROUNDS / (now() - start) / 1048576);
	return 0;
}
