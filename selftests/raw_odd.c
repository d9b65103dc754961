// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * raw_odd: what is asked for of work queues, their tables and queue pairs that no library would ask for, and what lives
 * when its device goes.
 *
 *	raw_odd -d DEVICE -i IP [-s]
 *
 * With -s it says "# ready" when all of them are there, and lets go of them when it has read a line. Otherwise it
 * wants to be run in the network namespace of the device.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "uverbs.h"
#include "vt.h"

static struct vt_dev dev;
static struct ibv_cq *cq;

/* --- methods --------------------------------------------------------------------- */

struct method {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[16];
};

static struct ib_uverbs_attr *add(struct method *m, uint16_t id, uint32_t len, uint64_t data)
{
	struct ib_uverbs_attr *a = &m->attr[m->hdr.num_attrs++];

	*a = (struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
	return a;
}

/* 0 or an errno */
static int call(struct method *m, uint16_t object, uint16_t method)
{
	m->hdr.object_id = object;
	m->hdr.method_id = method;
	m->hdr.driver_id = SROCE_DRIVER_ID;
	m->hdr.length = sizeof(m->hdr) + m->hdr.num_attrs * sizeof(m->attr[0]);
	return ioctl(dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, m) ? errno : 0;
}

/* A doorbell of our own, beside the library's */
static int doorbell(void)
{
	struct sroce_query_context_resp resp = { .doorbell_fd = -1 };
	struct method m = {};
	uint32_t vectors;
	uint64_t support;
	int rc;

	add(&m, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, sizeof(vectors), (uintptr_t)&vectors);
	add(&m, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, sizeof(support), (uintptr_t)&support);
	add(&m, SROCE_ATTR_QUERY_CONTEXT_RESP, sizeof(resp), (uintptr_t)&resp);
	rc = call(&m, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
	if (rc)
		vt_die(VT_SETUP, "query context: %s", strerror(rc));
	return resp.doorbell_fd;
}

struct own_wq {
	uint32_t handle, number;
	struct sroce_create_wq_resp resp;
};

static int create_wq(struct own_wq *wq, const uint32_t *cq_handle)
{
	struct method m = {};
	uint32_t max[2];
	int rc;

	add(&m, UVERBS_ATTR_CREATE_WQ_HANDLE, 0, 0);
	add(&m, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, 0, dev.pd->handle);
	add(&m, UVERBS_ATTR_CREATE_WQ_TYPE, 8, IBV_WQT_RQ);
	add(&m, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, 8, 0);
	add(&m, UVERBS_ATTR_CREATE_WQ_MAX_WR, 4, 4);
	add(&m, UVERBS_ATTR_CREATE_WQ_MAX_SGE, 4, 1);
	add(&m, UVERBS_ATTR_CREATE_WQ_FLAGS, 4, 0);
	if (cq_handle)
		add(&m, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, 0, *cq_handle);
	add(&m, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4, (uintptr_t)&max[0]);
	add(&m, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, 4, (uintptr_t)&max[1]);
	add(&m, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4, (uintptr_t)&wq->number);
	add(&m, UVERBS_ATTR_UHW_IN, sizeof(struct sroce_create_wq_req), 0);
	add(&m, UVERBS_ATTR_UHW_OUT, sizeof(wq->resp), (uintptr_t)&wq->resp);
	rc = call(&m, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	wq->handle = m.attr[0].data;
	return rc;
}

/* --- work queues ------------------------------------------------------------------ */

static struct ibv_wq *new_wq(void)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = dev.pd, .cq = cq };
	struct ibv_wq *wq = ibv_create_wq(dev.ctx, &attr);

	if (!wq)
		vt_die(errno == EPERM ? VT_SETUP : VT_WRONG, "work queue: %s", strerror(errno));
	return wq;
}

static struct ibv_rwq_ind_table *new_table(struct ibv_wq *wq)
{
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(dev.ctx, &attr);

	if (!table)
		vt_die(VT_WRONG, "table: %s", strerror(errno));
	return table;
}

static struct ibv_qp *new_qp(struct ibv_rwq_ind_table *table, uint32_t flags)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd, .rwq_ind_tbl = table, .create_flags = flags,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, IBV_RX_HASH_SRC_IPV4 },
	};

	return ibv_create_qp_ex(dev.ctx, &attr);
}

static int wq_to(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

static void without_cq(void)
{
	struct own_wq wq;

	vt_check(create_wq(&wq, NULL) == EINVAL, "a work queue without a completion queue is refused");
}

static void wq_states(void)
{
	struct ibv_wq_attr flags = { .attr_mask = IBV_WQ_ATTR_FLAGS, .flags = IBV_WQ_FLAGS_CVLAN_STRIPPING,
				     .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING };
	struct ibv_wq_attr from = { .attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
				    .curr_wq_state = IBV_WQS_RDY, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq = new_wq();

	vt_check(wq_to(wq, IBV_WQS_ERR) == EINVAL, "a new work queue has nothing to fail with");
	vt_check(ibv_modify_wq(wq, &from) == EINVAL, "and is not where it is said to be");
	vt_check(!wq_to(wq, IBV_WQS_RDY) && !wq_to(wq, IBV_WQS_ERR), "it goes to ready, and to error");
	vt_check(wq_to(wq, IBV_WQS_RDY) == EINVAL, "from there not back at once");
	vt_check(!wq_to(wq, IBV_WQS_RESET) && !wq_to(wq, IBV_WQS_RDY), "but by way of reset");
	vt_check(!ibv_modify_wq(wq, &flags), "tags can be stripped from now on");
	flags.flags_mask = IBV_WQ_FLAGS_DELAY_DROP;
	vt_check(ibv_modify_wq(wq, &flags) == EOPNOTSUPP, "nothing else can be changed");
	if (ibv_destroy_wq(wq))
		vt_die(VT_WRONG, "destroy a work queue");
}

/* --- a queue pair of a table --------------------------------------------------------- */

static int qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

/*
 * Rings of small queues share a page, which whoever has one of them may write to: also what
 * would be an index of a queue that he has not.
 */
static void scribble(const struct own_wq *wq)
{
	size_t len = wq->resp.rq.mmap_len, at;
	uint8_t *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, dev.ctx->cmd_fd, wq->resp.rq.mmap_offset);

	if (page == MAP_FAILED)
		vt_die(VT_WRONG, "mmap: %s", strerror(errno));
	for (at = 0; at < len; at += 64)
		*(uint32_t *)(page + at) = 1;
	munmap(page, len);
}

struct all {
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
	struct ibv_counters *counters;
	struct own_wq before, behind;
};

static void make_all(struct all *a)
{
	/* Nothing is between them, whatever the one with an address would like */
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = { .type = IBV_FLOW_ATTR_ALL_DEFAULT, .num_of_specs = 1, .port = 1,
			  .size = sizeof(rule.attr) + sizeof(rule.count) },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(rule.count) },
	};
	struct ibv_counters_init_attr none = {};

	a->wq = new_wq();
	a->table = new_table(a->wq);
	if (create_wq(&a->before, &cq->handle))
		vt_die(VT_WRONG, "a work queue by ioctl");
	a->qp = new_qp(a->table, 0);
	if (!a->qp || create_wq(&a->behind, &cq->handle))
		vt_die(VT_WRONG, "queue pair of a table: %s", strerror(errno));
	a->counters = ibv_create_counters(dev.ctx, &none);
	rule.count.counters = a->counters;
	a->flow = a->counters ? ibv_create_flow(a->qp, &rule.attr) : NULL;
	if (!a->flow)
		vt_die(VT_WRONG, "flow: %s", strerror(errno));
}

/* Does the device hear of the frames of the network namespace that this process is in? */
static bool tapped(void)
{
	FILE *f = fopen("/proc/self/net/ptype", "re");
	bool found = false;
	char line[256];

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "sroce_raw_tap");
	if (f)
		fclose(f);
	return found;
}

/* To take the tap away takes a grace period under RTNL, whose number no process is to choose */
static void tap_of_last_flow(struct all *a)
{
	int tenths;

	vt_check(tapped(), "as long as there is a flow, the device hears of frames");
	if (ibv_destroy_flow(a->flow))
		vt_die(VT_WRONG, "destroy a flow: %s", strerror(errno));
	vt_check(tapped(), "the end of the last one waits for nobody");
	for (tenths = 0; tenths < 100 && tapped(); tenths++)
		usleep(100000);
	vt_check(tenths < 100, "a while later it hears of none any more");
	a->flow = NULL;
}

static void end_all(struct all *a)
{
	if ((a->flow && ibv_destroy_flow(a->flow)) || ibv_destroy_counters(a->counters) || ibv_destroy_qp(a->qp) ||
	    ibv_destroy_rwq_ind_table(a->table) || ibv_destroy_wq(a->wq))
		vt_die(VT_WRONG, "destroy: %s", strerror(errno));
}

static void qp_of_table(struct all *a)
{
	struct ibv_counter_attach_attr place = { .counter_desc = IBV_COUNTER_PACKETS };
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QPS_RESET };
	int bell = doorbell(), refused = 0;
	struct ibv_qp *qp;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(states); i++)
		refused += qp_to(a->qp, states[i]) == EOPNOTSUPP;
	vt_check(refused == (int)ARRAY_SIZE(states), "a queue pair of a table has no states");
	vt_check(!ioctl(bell, SROCE_IOC_DOORBELL, a->qp->qp_num), "its doorbell has nothing to say");
	scribble(&a->before);
	scribble(&a->behind);
	vt_check(!ioctl(bell, SROCE_IOC_DOORBELL, a->qp->qp_num) && !ioctl(bell, SROCE_IOC_DOORBELL, a->behind.number),
		 "nor has what was written behind its back");
	vt_check(ibv_destroy_rwq_ind_table(a->table) == EBUSY, "a table in use is not destroyed");
	vt_check(ibv_destroy_wq(a->wq) == EBUSY, "nor is a work queue");
	qp = new_qp(a->table, IBV_QP_CREATE_CVLAN_STRIPPING);
	vt_check(!qp && errno == EOPNOTSUPP, "tags are its work queues' business");
	vt_check(ibv_attach_counters_point_flow(a->counters, &place, NULL) == EBUSY,
		 "where counters are seen does not change while there are flows");
	close(bell);
}

/* --- flags of raw packets in requests of others --------------------------------------- */

static void foreign_flag(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .pd = dev.pd, .sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev.ctx, &attr);
	struct ibv_ah *ah = vt_ah(&dev, &dev.gid);
	struct vt_conn conn = { .sq_psn = 1 };
	struct ibv_qp_ex *ex = qp ? ibv_qp_to_qp_ex(qp) : NULL;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	uint8_t data[16] = {};
	int rc;

	if (!ex || !ah || vt_bring_up(qp, &dev, 0, &conn))
		vt_die(VT_WRONG, "a queue pair for datagrams: %s", strerror(errno));
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, qp->qp_num, VT_QKEY);
	ibv_wr_set_inline_data(ex, data, sizeof(data));
	rc = ibv_wr_complete(ex);
	poll_one(cq, &wc, 5);
	vt_check(!rc && !wc.status, "of IBV_SEND_IP_CSUM queue pairs for datagrams take no notice: %s", ibv_wc_status_str(wc.status));
	if (ibv_destroy_qp(qp) || ibv_destroy_ah(ah))
		vt_die(VT_WRONG, "destroy: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct vt_dev devs[2];
	bool stays = false;
	struct all a = {};

	vt_open_hosts(argc, argv, devs, &stays);
	dev = devs[0];
	cq = vt_create_cq(&dev, 64);
	without_cq();
	wq_states();
	foreign_flag();
	make_all(&a);
	qp_of_table(&a);
	if (stays) {
		puts("# ready");
		fflush(stdout);
		getchar();
	} else {
		tap_of_last_flow(&a);
	}
	end_all(&a);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
