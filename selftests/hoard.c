// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hoard: a process that takes as much of one kind of object as it gets, or of several, one of each in turn.
 *
 *	hoard -d DEVICE -i IP [-t SECONDS] KIND...
 *
 * KIND is one of those in the table at the end. Prints how many it has got and why there
 * were no more, then waits for the end of its standard input, so that somebody can see
 * what that costs the machine.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, memfd_create() */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vt.h"

static struct vt_dev dev;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_comp_channel *channel;
static struct ibv_cq *tag_cq;
static struct ibv_mr *tagged;
static uint32_t tags_most;

/* The largest that there is room for: half of @size when it is refused, and so on */
static bool take_largest(bool (*take)(size_t size), size_t *size)
{
	while (*size && !take(*size))
		*size /= 2;
	return *size;
}

static bool cq_of_size(size_t cqe)
{
	return ibv_create_cq(dev.ctx, cqe, NULL, NULL, 0);
}

static bool take_cq(void)
{
	static size_t cqe;

	cqe = cqe ?: (size_t)dev.attr.max_cqe;
	return take_largest(cq_of_size, &cqe);
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

static bool full_qp_of_size(size_t wr)
{
	return qp_of_size(wr, dev.attr.max_sge, 1024);
}

static bool take_qp(void)
{
	static size_t wr;

	wr = wr ?: (size_t)dev.attr.max_qp_wr;
	return take_largest(full_qp_of_size, &wr);
}

static bool take_small_qp(void)
{
	return qp_of_size(1, 1, 0);
}

static bool srq_of_size(size_t wr)
{
	struct ibv_srq_init_attr init = { .attr = { wr, dev.attr.max_srq_sge, 0 } };

	return ibv_create_srq(dev.pd, &init);
}

static bool take_srq(void)
{
	static size_t wr;

	wr = wr ?: (size_t)dev.attr.max_srq_wr;
	return take_largest(srq_of_size, &wr);
}

/* address space that is never touched: all that it takes is the table of its pages */
static bool on_demand_of_size(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (p == MAP_FAILED)
		return false;
	if (ibv_reg_mr(dev.pd, p, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND))
		return true;
	err = errno;
	munmap(p, len);
	errno = err;
	return false;
}

static bool take_on_demand(void)
{
	static size_t len;

	len = len ?: (size_t)1 << (sizeof(len) > 4 ? 36 : 30);
	return take_largest(on_demand_of_size, &len);
}

/* a shared queue with as many tagged buffers as it can have */
static bool take_tags(void)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { 1, 1, 0 }, .srq_type = IBV_SRQT_TM, .pd = dev.pd, .cq = tag_cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.tm_cap = { .max_num_tags = tags_most, .max_ops = tags_most },
	};
	struct ibv_sge sge = { (uintptr_t)tagged->addr, 1, tagged->lkey };
	struct ibv_ops_wr *ops = calloc(tags_most, sizeof(*ops)), *bad;
	struct ibv_srq *queue = ops ? ibv_create_srq_ex(dev.ctx, &init) : NULL;
	uint32_t i;

	for (i = 0; queue && i < tags_most; i++)
		ops[i] = (struct ibv_ops_wr){
			.next = i + 1 < tags_most ? &ops[i + 1] : NULL, .opcode = IBV_WR_TAG_ADD,
			.tm.add = { .num_sge = 1, .sg_list = &sge, .tag = i, .mask = ~0ULL },
		};
	if (queue)
		errno = ibv_post_srq_ops(queue, ops, &bad);
	free(ops);
	return queue && !errno;
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

/* --- device memory ----------------------------------------------------------- */

static struct ibv_dm *dm_of_size(size_t len)
{
	struct ibv_alloc_dm_attr attr = { .length = len };

	return ibv_alloc_dm(dev.ctx, &attr);
}

static bool dm_fits(size_t len)
{
	return dm_of_size(len);
}

static bool take_dm(void)
{
	static size_t len;

	len = len ?: (size_t)64 << 20;
	return take_largest(dm_fits, &len);
}

static bool take_small_dm(void)
{
	return dm_of_size(1);
}

/* all of the same memory, which is half of what may be locked */
static bool take_dm_mr(void)
{
	static struct ibv_dm *dm;
	static size_t len;
	struct rlimit lock;

	if (!dm) {
		getrlimit(RLIMIT_MEMLOCK, &lock);
		len = min(lock.rlim_cur / 2, (rlim_t)64 << 20);
		dm = dm_of_size(len);
	}
	return dm && ibv_reg_dm_mr(dev.pd, dm, 0, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
}

/* --- buffers of others' -------------------------------------------------------- */

/* a file of memory as a dma-buf, or -1 */
static int udmabuf(size_t len)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = len };
	int fd, udmabuf_dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int memfd = memfd_create("hoard", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	create.memfd = memfd;
	if (ftruncate(memfd, len) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = -1;
	else
		fd = ioctl(udmabuf_dev, UDMABUF_CREATE, &create);
	close(memfd);
	close(udmabuf_dev);
	return fd;
}

/* which only its region holds then */
static bool take_dmabuf(void)
{
	int fd = udmabuf(65536);
	bool taken = fd >= 0 && ibv_reg_dmabuf_mr(dev.pd, 0, 65536, 0, fd, IBV_ACCESS_LOCAL_WRITE);
	int err = errno;

	close(fd);
	errno = err;
	return taken;
}

static bool take_dmabuf_mr(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = udmabuf(4096);
	return fd >= 0 && ibv_reg_dmabuf_mr(dev.pd, 0, 4096, 0, fd, IBV_ACCESS_LOCAL_WRITE);
}

/* --- all addresses --------------------------------------------------------------- */

/* as Documentation/limits.md has it, where pages have 4 KiB: of what there is a table, and how many tables a region has */
#define PIECE ((size_t)8 << 20)
#define OWN_PIECES 64
/* more than there are tables for, and few enough that the process's own page tables are small */
#define PIECES 1024

static struct ibv_mr *implicit_mr(void)
{
	return ibv_reg_mr(dev.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

/* one page of a piece of memory that is never written to */
static bool use_piece(struct ibv_mr *mr, uint32_t i)
{
	static char *space;
	struct ibv_sge sge = { .length = 1, .lkey = mr->lkey };

	if (!space)
		space = mmap(NULL, PIECES * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		return false;
	sge.addr = (uintptr_t)space + i % PIECES * PIECE;
	errno = ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	return !errno;
}

static bool take_implicit(void)
{
	struct ibv_mr *mr = implicit_mr();
	uint32_t i;

	for (i = 0; mr && i < OWN_PIECES; i++)
		if (!use_piece(mr, i))
			return false;
	return mr;
}

static bool take_piece(void)
{
	static struct ibv_mr *mr;
	static uint32_t i;

	if (!mr)
		mr = implicit_mr();
	return mr && use_piece(mr, i++);
}

/* --- raw packets, for which it takes CAP_NET_RAW ---------------------------------------- */

static struct ibv_wq *wq_of_size(uint32_t wr, uint32_t sge)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = wr, .max_sge = sge, .pd = dev.pd, .cq = cq };

	return ibv_create_wq(dev.ctx, &init);
}

static bool full_wq_of_size(size_t wr)
{
	return wq_of_size(wr, dev.attr.max_sge);
}

static bool take_wq(void)
{
	static size_t wr;

	wr = wr ?: (size_t)dev.attr.max_qp_wr;
	return take_largest(full_wq_of_size, &wr);
}

static bool take_small_wq(void)
{
	return wq_of_size(1, 1);
}

/* of one work queue, as often as it fits */
static struct ibv_rwq_ind_table *table(void)
{
	static struct ibv_wq *wqs[512];
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 9, .ind_tbl = wqs };
	uint32_t i;

	if (!wqs[0])
		wqs[0] = wq_of_size(1, 1);
	for (i = 1; i < ARRAY_SIZE(wqs); i++)
		wqs[i] = wqs[0];
	return wqs[0] ? ibv_create_rwq_ind_table(dev.ctx, &init) : NULL;
}

static bool take_table(void)
{
	return table();
}

static bool take_rss(void)
{
	static struct ibv_rwq_ind_table *all;
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, IBV_RX_HASH_SRC_IPV4 },
	};

	if (!all)
		all = table();
	init.rwq_ind_tbl = all;
	return all && ibv_create_qp_ex(dev.ctx, &init);
}

static struct ibv_qp *raw_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1, 0 },
	};

	return ibv_create_qp(dev.pd, &init);
}

/* the 65536 ports of one address after another */
static bool take_flow(void)
{
	static struct ibv_qp *qp;
	static uint32_t n;
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_ipv4_ext ip;
		struct ibv_flow_spec_tcp_udp udp;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 2, .port = 1 },
		.ip = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(rule.ip), .val.dst_ip = htonl(0x0a000000 + (n >> 16)),
			.mask.dst_ip = 0xffffffff },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(rule.udp), .val.dst_port = htons(n), .mask.dst_port = 0xffff },
	};

	if (!qp)
		qp = raw_qp();
	n++;
	return qp && ibv_create_flow(qp, &rule.attr);
}

static bool take_counters(void)
{
	struct ibv_counters_init_attr init = {};

	return ibv_create_counters(dev.ctx, &init);
}

/* --- XRC ------------------------------------------------------------------------------- */

static struct ibv_xrcd *xrc_domain(void)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(dev.ctx, &init);
}

static bool take_xrcd(void)
{
	return xrc_domain();
}

static bool take_xrc_srq(void)
{
	static struct ibv_xrcd *xrcd;
	struct ibv_srq_init_attr_ex init = {
		.attr = { 1, 1, 0 }, .srq_type = IBV_SRQT_XRC, .pd = dev.pd, .cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
	};

	if (!xrcd)
		xrcd = xrc_domain();
	init.xrcd = xrcd;
	return xrcd && ibv_create_srq_ex(dev.ctx, &init);
}

static bool take_xrc_target(void)
{
	static struct ibv_xrcd *xrcd;
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	if (!xrcd)
		xrcd = xrc_domain();
	init.xrcd = xrcd;
	return xrcd && ibv_create_qp_ex(dev.ctx, &init);
}

/* --------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	bool (*take)(void);
} kinds[] = {
	{ "cq", take_cq }, { "small_cq", take_small_cq }, { "qp", take_qp }, { "small_qp", take_small_qp },
	{ "srq", take_srq }, { "tags", take_tags }, { "on_demand", take_on_demand }, { "mr", take_mr }, { "mw", take_mw },
	{ "ah", take_ah }, { "pd", take_pd }, { "group", take_group }, { "event", take_event },
	{ "dm", take_dm }, { "small_dm", take_small_dm }, { "dm_mr", take_dm_mr },
	{ "dmabuf", take_dmabuf }, { "dmabuf_mr", take_dmabuf_mr }, { "implicit", take_implicit }, { "piece", take_piece },
	{ "wq", take_wq }, { "small_wq", take_small_wq }, { "table", take_table }, { "rss", take_rss },
	{ "flow", take_flow }, { "counters", take_counters },
	{ "xrcd", take_xrcd }, { "xrc_srq", take_xrc_srq }, { "xrc_target", take_xrc_target },
};

static void set_up(const char *device, const char *ip)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 1, 1, 0 } };
	struct ibv_cq_init_attr_ex cq_init = {
		.cqe = 1, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};
	struct ibv_device_attr_ex attr = {};
	struct ibv_cq_ex *cq_ex;

	vt_open(&dev, device, ip, -1);
	channel = ibv_create_comp_channel(dev.ctx);
	cq = ibv_create_cq(dev.ctx, 1, NULL, channel, 0);
	srq = ibv_create_srq(dev.pd, &srq_init);
	if (!channel || !cq || !srq)
		vt_die(VT_SETUP, "set-up: %s", strerror(errno));
	cq_ex = ibv_create_cq_ex(dev.ctx, &cq_init);
	if (!cq_ex)
		vt_die(VT_SETUP, "set-up: %s", strerror(errno));
	tag_cq = ibv_cq_ex_to_cq(cq_ex);
	tagged = vt_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	ibv_query_device_ex(dev.ctx, NULL, &attr);
	tags_most = attr.tm_caps.max_num_tags;
}

/* which kind that is, as a place in the table */
static size_t kind(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return i;
	vt_die(VT_SETUP, "which kind is %s?", name);
}

/* One of each kind in turn, until there is none of any; what the last refusal was */
static void hoard(const char *name, char **names, int wanted, double seconds)
{
	double end = vt_now() + seconds;
	unsigned long n = 0;
	int i, left = wanted, err = 0;
	size_t which[ARRAY_SIZE(kinds)];

	for (i = 0; i < wanted; i++)
		which[i] = kind(names[i]);
	for (i = 0; left && vt_now() < end; i = (i + 1) % left) {
		errno = 0;
		if (kinds[which[i]].take()) {
			n++;
			continue;
		}
		err = errno;
		which[i] = which[--left];
		if (!left)
			break;
		i += left - 1;
	}
	printf("%s: %lu, then %s\n", name, n, left ? "no time" : strerror(err));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL;
	double seconds = 5;
	char byte;
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
	if (optind == argc || argc - optind > (int)ARRAY_SIZE(kinds))
		vt_die(VT_SETUP, "which kinds?");
	hoard(optind + 1 == argc ? argv[optind] : "together", argv + optind, argc - optind, seconds);
	while (read(0, &byte, 1) > 0)
		;
	return VT_OK;
}
