// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * failing: in front of libc (LD_PRELOAD) it has some calls of RDMA devices meet a kernel that runs out of memory, or cannot
 * reach the caller's (see faults.c, which does so at each place of each call; this is for programs that know nothing of it).
 *
 * FAILING_ONE_IN=N: one call in so many; FAILING_SEED=SEED; FAILING_TALLY=FILE gets a byte for each fault that was met.
 *
 * Calls are ioctl()s of a uverbs device, doorbells among them. Nothing else fails: user mode Linux does not survive that
 * what a page fault needs is not there. Nor does the creation of a receiving queue pair of XRC, after whose failure ib_core counts
 * the domain as in use for ever, with a warning (Documentation/security.md).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/sroce-abi.h>

#include "vt.h"

/* Most calls have fewer places at which they can fail */
#define PLACES 60

static unsigned int one_in;
static int tally = -1;
static _Atomic uint64_t calls;
static uint64_t seed;

static __attribute__((constructor)) void begin(void)
{
	const char *text = getenv("FAILING_ONE_IN");

	one_in = text ? atoi(text) : 0;
	text = getenv("FAILING_SEED");
	seed = text ? strtoull(text, NULL, 0) : 1;
	text = getenv("FAILING_TALLY");
	if (text)
		tally = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static bool is_xrc_target(unsigned long request, const struct ib_uverbs_ioctl_hdr *hdr)
{
	unsigned int i;

	if (request != RDMA_VERBS_IOCTL || hdr->object_id != UVERBS_OBJECT_QP || hdr->method_id != UVERBS_METHOD_QP_CREATE)
		return false;
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == UVERBS_ATTR_CREATE_QP_TYPE)
			return hdr->attrs[i].data == IB_UVERBS_QPT_XRC_TGT;
	return false;
}

/* This thread's, for one call: -1 where there is none, or this call is to be left alone */
static int open_fault(unsigned long request, void *arg, uint64_t choice)
{
	char text[16];
	int fd;

	if (!one_in || choice % one_in || is_xrc_target(request, arg) ||
	    (_IOC_TYPE(request) != RDMA_IOCTL_MAGIC && _IOC_TYPE(request) != SROCE_IOC_MAGIC))
		return -1;
	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	snprintf(text, sizeof(text), "%u", 1 + (unsigned int)(choice / one_in % PLACES));
	if (fd >= 0 && pwrite(fd, text, strlen(text), 0) > 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Reading and writing it have places of their own: what fails there was to come, and does not again */
static void close_fault(int fd)
{
	char left[16] = {};
	bool met = pread(fd, left, sizeof(left) - 1, 0) > 0 && !strtoul(left, NULL, 10);

	if (pwrite(fd, "0", 1, 0) < 0 && pwrite(fd, "0", 1, 0) < 0)
		abort();
	close(fd);
	if (met && tally >= 0 && write(tally, "x", 1) < 0)
		abort();
}

int ioctl(int fd, unsigned long request, ...)
{
	int fault, result, err;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	fault = open_fault(request, arg, vt_mix(seed + atomic_fetch_add(&calls, 1)));
	result = syscall(SYS_ioctl, fd, request, arg);
	err = errno;
	if (fault >= 0)
		close_fault(fault);
	errno = err;
	return result;
}
