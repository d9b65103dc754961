/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a copy of memory costs that is as cold as that of a benchmark, which has one buffer at each end:
 *
 *	memcpy BYTES
 *
 * prints MB/s (10^6 bytes). The kernel copies with "rep movsb" where the processor does that well, and so does this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void copy(void *to, const void *from, size_t size)
{
#ifdef __x86_64__
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
#else
	memcpy(to, from, size);
	__asm__ volatile("" : : : "memory");
#endif
}

int main(int argc, char **argv)
{
	size_t size = argc == 2 ? atoll(argv[1]) : 0, rounds = 0;
	char *from = malloc(size), *to = malloc(size);
	double start, end;

	if (!size || !from || !to)
		return 2;
	memset(from, 1, size);
	memset(to, 2, size);
	start = now();
	do {
		copy(to, from, size);
		rounds++;
		end = now();
	} while (end < start + 0.5);
	printf("%.0f\n", (double)size * rounds / (end - start) / 1e6);
	return 0;
}
