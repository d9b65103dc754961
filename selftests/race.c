// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * race: a process that rings the doorbells of queue pairs, from several processors at
 * once, while it takes away what they work with: the rings of their completion queues, by
 * resizing these, and the queue pairs themselves. The doorbell is used as any process may
 * use it, without the library. The kernel's log is the judge.
 *
 *	race -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] [-s]
 *
 * The ones who ring are processes of their own that have inherited the doorbell: threads
 * share a processor in user mode Linux.
 */
#include <dirent.h>
#include <errno.h>
#include <rdma/sroce-abi.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define RINGERS 2
#define DOORBELLS 8

/* shared with the ringers */
static struct {
	volatile uint32_t qpn[2];
	volatile unsigned long rung[RINGERS];
} *shared;

static int doorbell[DOORBELLS];
static int n_doorbells;
static pid_t ringer[RINGERS];
static struct ibv_mr *mr[2];

/* files without a name, one for each open of the device */
static void find_doorbells(void)
{
	char name[64], path[300];
	struct dirent *entry;
	DIR *dir;
	int len;

	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir)) && n_doorbells < DOORBELLS) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		len = readlink(path, name, sizeof(name) - 1);
		name[max(len, 0)] = 0;
		if (strstr(name, "[sroce-doorbell]"))
			doorbell[n_doorbells++] = atoi(entry->d_name);
	}
	if (!n_doorbells)
		vt_die(VT_SETUP, "no doorbell");
	closedir(dir);
}

static void ring_for_ever(int number)
{
	int i;

	for (;;) {
		for (i = 0; i < 2 * n_doorbells; i++)
			if (!ioctl(doorbell[i / 2], SROCE_IOC_DOORBELL, shared->qpn[i % 2]))
				shared->rung[number]++;
	}
}

static void start_ringers(void)
{
	int i;

	shared->qpn[0] = a.qp->qp_num;
	shared->qpn[1] = b.qp->qp_num;
	for (i = 0; i < RINGERS; i++) {
		shared->rung[i] = 0;
		ringer[i] = fork();
		if (!ringer[i])
			ring_for_ever(i);
		if (ringer[i] < 0)
			vt_die(VT_SETUP, "fork: %s", strerror(errno));
	}
}

/* how often they have reached a queue pair; 0 when one could not, or did not end */
static unsigned long stop_ringers(void)
{
	unsigned long sum = 0;
	bool ok = true;
	int i, status;

	for (i = 0; i < RINGERS; i++) {
		kill(ringer[i], SIGKILL);
		ok &= waitpid(ringer[i], &status, 0) == ringer[i] && shared->rung[i];
		sum += shared->rung[i];
	}
	return ok ? sum : 0;
}

/* a stream of small messages: what the kernel lets gather */
static bool stream(int n)
{
	while (n--)
		if (post_op(&a, n, IBV_WR_RDMA_WRITE, local(mr[0]), 8, remote(mr[1])))
			return false;
	return true;
}

static bool completed(int n)
{
	struct ibv_wc wc;

	while (n--)
		if (!poll_one(a.send_cq, &wc, 10) || wc.status)
			return false;
	return true;
}

static void resized(double seconds)
{
	double end = vt_now() + seconds;
	unsigned long resizes = 0, rung;
	bool ok = true;

	ends_fresh(IBV_QPT_RC);
	start_ringers();
	while (vt_now() < end && ok) {
		/* of one page and of several: they are other kinds of memory */
		ok = stream(12) && !ibv_resize_cq(a.send_cq, resizes % 3 ? 30 : 200) &&
		     !ibv_resize_cq(a.recv_cq, resizes % 2 ? 20 : 300) && completed(12);
		resizes++;
	}
	rung = stop_ringers();
	printf("# %lu resizes, %lu doorbells\n", 2 * resizes, rung);
	vt_check(ok, "completion queues are resized while doorbells ring: every message completes");
	vt_check(rung, "the doorbells were heard");
	ends_stop();
}

static void destroyed(double seconds)
{
	double end = vt_now() + seconds;
	unsigned long pairs = 0, rung;
	bool ok = true;

	ends_fresh(IBV_QPT_RC);
	start_ringers();
	while (vt_now() < end && ok) {
		ok = stream(12);
		/* for a moment, while what was posted gathers, or is sent */
		usleep(pairs % 64);
		ends_fresh(IBV_QPT_RC);
		shared->qpn[0] = a.qp->qp_num;
		shared->qpn[1] = b.qp->qp_num;
		pairs++;
	}
	rung = stop_ringers();
	printf("# %lu pairs, %lu doorbells\n", pairs, rung);
	vt_check(ok && pairs > 10, "queue pairs are destroyed while their doorbells ring");
	vt_check(rung, "the doorbells were heard");
	ends_fresh(IBV_QPT_RC);
	vt_check(stream(8) && completed(8), "new queue pairs work afterwards");
	ends_stop();
}

int main(int argc, char **argv)
{
	double seconds;

	ends_open(argc, argv);
	seconds = ends_short ? 3 : 20;
	if (vt_is_rxe())
		vt_die(VT_SKIP, "rdma_rxe has no doorbell");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		vt_die(VT_SETUP, "mmap: %s", strerror(errno));
	mr[0] = vt_mr(a.dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	mr[1] = vt_mr(b.dev, 4096, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	find_doorbells();
	resized(seconds);
	destroyed(seconds);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
