// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hoard: a process that takes as much of one kind of object as it gets.
 *
 *	hoard -d DEVICE -i IP [-t SECONDS] KIND
 *
 * KIND is one of those in the table at the end. Prints how many it has got and why there
 * were no more, then waits for the end of its standard input, so that somebody can see
 * what that costs the machine.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <errno.h>
#include <getopt.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vt.h"

static struct vt_dev dev;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_comp_channel *channel;

static bool take_cq(void)
{
	return ibv_create_cq(dev.ctx, dev.attr.max_cqe, NULL, NULL, 0);
}

static bool take_small_cq(void)
{
	return ibv_create_cq(dev.ctx, 1, NULL, NULL, 0);
}

static struct ibv_qp *qp_of_size(uint32_t wr, uint32_t sge, uint32_t inline_data)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { wr, wr, sge, sge, inline_data },
	};

	return ibv_create_qp(dev.pd, &init);
}

static bool take_qp(void)
{
	return qp_of_size(dev.attr.max_qp_wr, dev.attr.max_sge, 1024);
}

static bool take_small_qp(void)
{
	return qp_of_size(1, 1, 0);
}

static bool take_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { dev.attr.max_srq_wr, dev.attr.max_srq_sge, 0 } };

	return ibv_create_srq(dev.pd, &init);
}

/* address space that is never touched: all that it takes is the table of its pages */
static bool take_on_demand(void)
{
	size_t len = (size_t)1 << (sizeof(len) > 4 ? 36 : 30);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED && ibv_reg_mr(dev.pd, p, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

static bool take_mr(void)
{
	size_t len = 1 << 20;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && ibv_reg_mr(dev.pd, p, len, IBV_ACCESS_LOCAL_WRITE);
}

static bool take_mw(void)
{
	return ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
}

static bool take_ah(void)
{
	return vt_ah(&dev, &dev.gid);
}

static bool take_pd(void)
{
	return ibv_alloc_pd(dev.ctx);
}

static bool take_group(void)
{
	static struct ibv_qp *qp;
	static uint32_t n;
	union ibv_gid gid = { .raw = { 0xff, 0x0e } };

	if (!qp || n % 512 == 0) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 },
		};

		qp = ibv_create_qp(dev.pd, &init);
		if (!qp || vt_to_init(qp, 0))
			return false;
	}
	memcpy(gid.raw + 12, &n, sizeof(n));
	n++;
	errno = ibv_attach_mcast(qp, &gid, 0);
	return !errno;
}

/* each event that nobody reads lies in a list of the kernel's */
static bool take_event(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 1 };

	/* nothing is posted: the limit is reached with the first look at the queue, or at once */
	errno = ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
	return !errno;
}

static const struct {
	const char *name;
	bool (*take)(void);
} kinds[] = {
	{ "cq", take_cq }, { "small_cq", take_small_cq }, { "qp", take_qp }, { "small_qp", take_small_qp },
	{ "srq", take_srq }, { "on_demand", take_on_demand }, { "mr", take_mr }, { "mw", take_mw },
	{ "ah", take_ah }, { "pd", take_pd }, { "group", take_group }, { "event", take_event },
};

static void set_up(const char *device, const char *ip)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 1, 1, 0 } };

	vt_open(&dev, device, ip, -1);
	channel = ibv_create_comp_channel(dev.ctx);
	cq = ibv_create_cq(dev.ctx, 1, NULL, channel, 0);
	srq = ibv_create_srq(dev.pd, &srq_init);
	if (!channel || !cq || !srq)
		vt_die(VT_SETUP, "set-up: %s", strerror(errno));
}

static void hoard(const char *name, bool (*take)(void), double seconds)
{
	double end = vt_now() + seconds;
	unsigned long n = 0;

	errno = 0;
	while (vt_now() < end && take())
		n++;
	printf("%s: %lu, then %s\n", name, n, vt_now() < end ? strerror(errno) : "no time");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL;
	double seconds = 5;
	char byte;
	size_t i;
	int c;

	while ((c = getopt(argc, argv, "d:i:t:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'i': ip = optarg; break;
		case 't': seconds = atof(optarg); break;
		default: vt_die(VT_SETUP, "see the top of hoard.c");
		}
	}
	set_up(device, ip);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (optind < argc && !strcmp(argv[optind], kinds[i].name))
			break;
	if (i == ARRAY_SIZE(kinds))
		vt_die(VT_SETUP, "which kind?");
	hoard(kinds[i].name, kinds[i].take, seconds);
	while (read(0, &byte, 1) > 0)
		;
	return VT_OK;
}
