// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls of applications that make something other than connections: contexts and what another process imports of them,
 * device memory, dma-bufs, all addresses at once, raw packets, and XRC.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults.h"
#include "uverbs.h"

/* --- contexts --------------------------------------------------------------------------- */

static char path[300];
static int file, doorbell;

/*
 * With the command and not with the method that a library calls: to Linux 7.2 at least, that one forgets a reference to
 * the task when no context comes of it, whatever the driver.
 */
static int make_context(void)
{
	struct sroce_alloc_ucontext_resp resp = { .doorbell_fd = -1 };
	struct sroce_alloc_ucontext_req req = {};
	int err;

	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return errno;
	err = uv_get_context(file, &req, sizeof(req), &resp, sizeof(resp));
	doorbell = resp.doorbell_fd;
	if (err)
		close(file);
	return err;
}

/* A file is closed, whatever closing it says. */
static int undo_context(void)
{
	close(doorbell);
	close(file);
	return 0;
}

/* what a process asks for that has this one's file */
static int take_over(void)
{
	struct sroce_query_context_resp resp = { .doorbell_fd = -1 };
	uint64_t support;
	uint32_t vectors;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[3];
	} r = {
		.hdr = { .length = sizeof(r), .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_QUERY_CONTEXT,
			 .num_attrs = 3, .driver_id = SROCE_DRIVER_ID },
		.attr = {
			{ UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, sizeof(vectors), 0, {}, { (uintptr_t)&vectors } },
			{ UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, sizeof(support), 0, {}, { (uintptr_t)&support } },
			{ SROCE_ATTR_QUERY_CONTEXT_RESP, sizeof(resp), UVERBS_ATTR_F_MANDATORY, {}, { (uintptr_t)&resp } },
		},
	};

	if (ioctl(devs[0].ctx->cmd_fd, RDMA_VERBS_IOCTL, &r))
		return errno;
	doorbell = resp.doorbell_fd;
	return 0;
}

static int undo_take_over(void)
{
	close(doorbell);
	return 0;
}

/* --- device memory ----------------------------------------------------------------------- */

#define DM_SIZE 100000

static struct ibv_dm *dm, *whole_dm;

static int make_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_SIZE };

	dm = ibv_alloc_dm(devs[0].ctx, &attr);
	return made(dm);
}

static int undo_dm(void) { return ibv_free_dm(dm); }

static int make_dm_mr(void)
{
	mr = ibv_reg_dm_mr(devs[0].pd, whole_dm, 4000, DM_SIZE - 4000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	return made(mr);
}

/* --- memory of others ----------------------------------------------------------------------- */

static int buffer = -1;

static void open_buffer(void)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	if (dev < 0)
		return;
	create.memfd = memfd_create("faults", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (ftruncate(create.memfd, SIZE) || fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		vt_die(VT_SETUP, "memfd: %s", strerror(errno));
	buffer = ioctl(dev, UDMABUF_CREATE, &create);
	close(create.memfd);
	close(dev);
}

static int make_dmabuf_mr(void)
{
	mr = ibv_reg_dmabuf_mr(devs[0].pd, 5000, SIZE - 5000, 5000, buffer, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	return made(mr);
}

static int make_implicit_mr(void)
{
	mr = ibv_reg_mr(devs[0].pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	return made(mr);
}

/* a piece of it is brought, and has a table then */
static int use_implicit_mr(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, SIZE, 0 };
	int err = make_implicit_mr();

	if (err)
		return err;
	sge.lkey = mr->lkey;
	err = ibv_advise_mr(devs[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	if (err)
		undo_mr();
	return err;
}

/* --- what another process has made ------------------------------------------------------------ */

static struct ibv_context *imported;
/* of this one the kernel is not told */
static struct ibv_pd *imported_pd;
static struct ibv_mr *whole_mr;

static void open_imported(void)
{
	imported = ibv_import_device(dup(devs[0].ctx->cmd_fd));
	imported_pd = imported ? ibv_import_pd(imported, devs[0].pd->handle) : NULL;
	if (!imported_pd)
		vt_die(VT_SETUP, "import: %s", strerror(errno));
}

static int import_dm(void)
{
	struct ibv_dm *other = ibv_import_dm(imported, whole_dm->handle);

	if (other)
		ibv_unimport_dm(other);
	return made(other);
}

static int import_mr(void)
{
	struct ibv_mr *other = ibv_import_mr(imported_pd, whole_mr->handle);

	if (other)
		ibv_unimport_mr(other);
	return made(other);
}

/* --- raw packets ----------------------------------------------------------------------------- */

static struct ibv_wq *wq, *ready_wq;
static struct ibv_rwq_ind_table *table, *whole_table;
static struct ibv_counters *counters, *whole_counters;
static struct ibv_qp *raw_qp;
static struct ibv_flow *flow, *counting_flow;

static int to_wq_state(enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

static int make_wq(void)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 100, .max_sge = 2, .pd = devs[0].pd, .cq = a.recv_cq };

	wq = ibv_create_wq(devs[0].ctx, &attr);
	return made(wq);
}

static int undo_wq(void) { return ibv_destroy_wq(wq); }

static int change_wq(void)
{
	int err = make_wq();

	if (err)
		return err;
	err = to_wq_state(IBV_WQS_RDY) ?: to_wq_state(IBV_WQS_ERR) ?: to_wq_state(IBV_WQS_RESET);
	if (err)
		undo_wq();
	return err;
}

static int make_table(void)
{
	struct ibv_wq *wqs[4] = { ready_wq, ready_wq, ready_wq, ready_wq };
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = 2, .ind_tbl = wqs };

	table = ibv_create_rwq_ind_table(devs[0].ctx, &attr);
	return made(table);
}

static int undo_table(void) { return ibv_destroy_rwq_ind_table(table); }

static int make_rss_qp(void)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = devs[0].pd, .rwq_ind_tbl = whole_table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, IBV_RX_HASH_SRC_IPV4 },
	};

	qp = ibv_create_qp_ex(devs[0].ctx, &attr);
	return made(qp);
}

static int to_raw_state(struct ibv_qp *raw, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	return ibv_modify_qp(raw, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

static int make_raw_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = a.send_cq, .recv_cq = a.recv_cq, .qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1,
		.cap = { .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 128 },
	};
	int err;

	qp = ibv_create_qp(devs[0].pd, &attr);
	if (!qp)
		return errno ?: EIO;
	err = to_raw_state(qp, IBV_QPS_INIT) ?: to_raw_state(qp, IBV_QPS_RTR) ?: to_raw_state(qp, IBV_QPS_RTS);
	if (err)
		undo_qp();
	return err;
}

static int flow_to(uint8_t last)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 2, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			 .val.dst_mac = { 2, 0, 0, 0, 0, last }, .mask.dst_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(rule.count), .counters = whole_counters },
	};

	flow = ibv_create_flow(raw_qp, &rule.attr);
	return made(flow);
}

static int make_flow(void) { return flow_to(0x77); }
static int undo_flow(void) { return ibv_destroy_flow(flow); }

static int make_counters(void)
{
	struct ibv_counters_init_attr attr = {};

	counters = ibv_create_counters(devs[0].ctx, &attr);
	return made(counters);
}

static int undo_counters(void) { return ibv_destroy_counters(counters); }

static int count_packets(struct ibv_counters *c)
{
	struct ibv_counter_attach_attr attr = { .counter_desc = IBV_COUNTER_PACKETS };

	return ibv_attach_counters_point_flow(c, &attr, NULL);
}

static int read_counters(void)
{
	uint64_t packets;

	return ibv_read_counters(whole_counters, &packets, 1, IBV_READ_COUNTERS_ATTR_PREFER_CACHED);
}

/* What finds no memory is lost, as on any wire */
static int send_frame(void)
{
	uint8_t frame[100] = { 2, 0, 0, 0, 0, 0x78, 2, 0, 0, 0, 0, 0x79, 0x88, 0xb5 };
	struct ibv_sge sge = { (uintptr_t)frame, sizeof(frame), 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE };
	struct ibv_wc wc = {};
	int err = ibv_post_send(raw_qp, &wr, &bad);

	if (err)
		return err;
	if (!poll_one(a.send_cq, &wc, 20))
		return ETIMEDOUT;
	return wc.status ? 1000 + wc.status : 0;
}

static void open_raw(void)
{
	int err;

	if (make_wq() || to_wq_state(IBV_WQS_RDY))
		vt_die(VT_SETUP, "work queue: %s", strerror(errno));
	ready_wq = wq;
	if (make_table() || make_counters())
		vt_die(VT_SETUP, "table, counters: %s", strerror(errno));
	whole_table = table;
	whole_counters = counters;
	err = count_packets(whole_counters) ?: make_raw_qp();
	if (err)
		vt_die(VT_SETUP, "counters, queue pair: %s", strerror(err));
	raw_qp = qp;
	/* Only those of a flow are read */
	if (flow_to(0x76))
		vt_die(VT_SETUP, "flow: %s", strerror(errno));
	counting_flow = flow;
}

static void close_raw(void)
{
	vt_check(!ibv_destroy_flow(counting_flow) && !ibv_destroy_qp(raw_qp) && !ibv_destroy_counters(whole_counters) &&
		 !ibv_destroy_rwq_ind_table(whole_table) && !ibv_destroy_wq(ready_wq), "raw packets: all of it goes");
}

/* --- rates, XRC ------------------------------------------------------------------------------- */

static int limit_rate(void)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000000 };
	int err = connect_qp();

	if (err)
		return err;
	err = ibv_modify_qp_rate_limit(qp, &rate);
	if (err)
		undo_qp();
	return err;
}

static struct ibv_xrcd *whole_xrcd;
static struct ibv_srq *xrc_srq;

static void open_xrc(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};

	whole_xrcd = ibv_open_xrcd(devs[0].ctx, &attr);
	if (!whole_xrcd)
		vt_die(VT_SETUP, "XRC domain: %s", strerror(errno));
}

static int make_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 64, .max_sge = 2 }, .srq_type = IBV_SRQT_XRC, .pd = devs[0].pd, .xrcd = whole_xrcd,
		.cq = a.recv_cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
	};

	xrc_srq = ibv_create_srq_ex(devs[0].ctx, &attr);
	return made(xrc_srq);
}

static int undo_xrc_srq(void) { return ibv_destroy_srq(xrc_srq); }

/*
 * Not the receiving queue pairs of the domain: ib_core counts it as in use for ever when it finds no memory in a moment of
 * their creation (Documentation/upstream/core-xrc-target-count.patch; with that none of their 70 places leaves anything).
 */

/* --------------------------------------------------------------------------------------------- */

const struct call object_calls[] = {
	{ "context", make_context, undo_context },
	{ "context, taken over", take_over, undo_take_over },
	{ "device memory", make_dm, undo_dm },
	{ "region on device memory", make_dm_mr, undo_mr },
	{ "region of a dma-buf", make_dmabuf_mr, undo_mr },
	{ "implicit region", make_implicit_mr, undo_mr },
	{ "implicit region, prefetched", use_implicit_mr, undo_mr },
	{ "device memory, imported", import_dm },
	{ "region, imported", import_mr },
	{ "work queue", make_wq, undo_wq },
	{ "work queue, ready, in error and reset", change_wq, undo_wq },
	{ "table of work queues", make_table, undo_table },
	{ "queue pair with a table", make_rss_qp, undo_qp },
	{ "queue pair for raw packets", make_raw_qp, undo_qp },
	{ "flow", make_flow, undo_flow },
	{ "counters", make_counters, undo_counters },
	{ "counters, read", read_counters },
	{ "frame", send_frame, .sure = true },
	{ "queue pair with a rate", limit_rate, undo_qp },
	{ "XRC shared receive queue", make_xrc_srq, undo_xrc_srq },
	{ 0 },
};

bool objects_have(const struct call *c)
{
	return c->make != make_dmabuf_mr || buffer >= 0;
}

void objects_begin(void)
{
	if (!uv_path(ibv_get_device_name(devs[0].ctx->device), path, sizeof(path)))
		vt_die(VT_SETUP, "no character device");
	if (make_dm())
		vt_die(VT_SETUP, "device memory: %s", strerror(errno));
	whole_dm = dm;
	if (make_dm_mr())
		vt_die(VT_SETUP, "region on device memory: %s", strerror(errno));
	whole_mr = mr;
	open_buffer();
	open_imported();
	open_raw();
	open_xrc();
}

void objects_end(void)
{
	close_raw();
	ibv_unimport_pd(imported_pd);
	vt_check(!ibv_close_device(imported) && !ibv_dereg_mr(whole_mr) && !ibv_free_dm(whole_dm) &&
		 !ibv_close_xrcd(whole_xrcd), "what was imported goes, and what that was");
	close(buffer);
}
