// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Print the rate of this machine's time stamp counter, which is that of an emulated one too */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(void)
{
	struct timespec pause = { .tv_nsec = 200000000 };
	unsigned long long tsc = __rdtsc();
	double start = now();

	nanosleep(&pause, NULL);
	printf("%.0f\n", (__rdtsc() - tsc) / (now() - start) / 1e3);
	return 0;
}
