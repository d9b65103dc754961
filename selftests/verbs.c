// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * verbs: what a device offers around the data path: fields of extended completion queues, moderation, time, domains
 * and allocators, partitions, counters of queue pairs, resource details, flow labels; and what it refuses.
 *
 *	verbs -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

#define ROOM 4096

static struct ibv_mr *from, *to;

/* --- a pair whose every attribute can be changed before it is connected -------------------------------- */

struct side {
	struct vt_dev *dev;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t depth;
	uint16_t pkey_index;
	uint32_t flow_label;
};

static struct side *client, *server;

static struct side *side_of(struct vt_dev *dev)
{
	struct side *s = calloc(1, sizeof(*s));

	s->dev = dev;
	s->pd = dev->pd;
	s->depth = 64;
	return s;
}

static struct ibv_qp *side_qp(struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = type,
		.cap = { .max_send_wr = s->depth, .max_recv_wr = s->depth, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp)
		vt_die(VT_SETUP, "create qp: %s", strerror(errno));
	return s->qp;
}

static int side_init(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.pkey_index = s->pkey_index,
		.qp_access_flags = VT_REMOTE_ACCESS,
		.qkey = VT_QKEY,
	};
	int last = s->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	return ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last);
}

static struct ibv_ah_attr address(const struct side *s, const struct side *peer)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer->dev->gid, .sgid_index = s->dev->gid_index, .hop_limit = 64,
			 .flow_label = s->flow_label },
	};
}

static void side_connect(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = address(s, peer),
	};
	struct vt_conn conn = { .rd_atomic = 4, .timeout = 8, .retry_cnt = 3, .rnr_retry = 7 };

	if (ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
	    vt_to_rts(s->qp, &conn))
		vt_die(VT_SETUP, "connect: %s", strerror(errno));
}

static void pair_connect(void)
{
	if (side_init(client) || side_init(server))
		vt_die(VT_SETUP, "qp to INIT: %s", strerror(errno));
	side_connect(client, server);
	side_connect(server, client);
}

/* two queue pairs with the completion queues that their sides have */
static void pair_begin(enum ibv_qp_type type)
{
	side_qp(client, type);
	side_qp(server, type);
	pair_connect();
}

static void pair_end(void)
{
	if (ibv_destroy_qp(client->qp) || ibv_destroy_qp(server->qp))
		vt_check(false, "the pair can be destroyed");
}

static void cqs_begin(struct ibv_comp_channel *channel)
{
	client->cq = vt_create_cq(client->dev, 256);
	server->cq = vt_create_channel_cq(server->dev, 256, channel, 0);
}

static void cqs_end(void)
{
	if (ibv_destroy_cq(client->cq) || ibv_destroy_cq(server->cq))
		vt_check(false, "the completion queues can be destroyed");
}

static int send_from(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)from->addr, len, from->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0xcafe0000 + id),
	};

	return ibv_post_send(qp, &wr, &bad);
}

static int recv_at(struct ibv_qp *qp, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)to->addr, ROOM, to->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(qp, &wr, &bad);
}

/* one message; its status at the sender */
static enum ibv_wc_status message(void)
{
	struct ibv_wc wc;

	if (recv_at(server->qp, 1) || send_from(client->qp, 2, IBV_WR_SEND, 64) ||
	    !poll_one(client->cq, &wc, 10))
		vt_die(VT_WRONG, "WRONG: a message is neither sent nor refused");
	return wc.status;
}

static bool message_arrives(void)
{
	struct ibv_wc wc;

	return message() == IBV_WC_SUCCESS && poll_one(server->cq, &wc, 5) && wc.status == IBV_WC_SUCCESS;
}

/* --- many small queue pairs: the rings of several are in one page ---------------------------------------------- */

#define SMALL 16

static struct ibv_qp *small[SMALL][2];

static void small_begin(int i)
{
	pair_begin(IBV_QPT_RC);
	small[i][0] = client->qp;
	small[i][1] = server->qp;
}

static void small_end(int i)
{
	client->qp = small[i][0];
	server->qp = small[i][1];
	pair_end();
	small[i][0] = NULL;
}

/* over each that is there in turn, so often that every ring begins anew; the data is the pair's own */
static bool small_talk(void)
{
	uint8_t want[64];
	int i, turn;

	for (turn = 0; turn < 20; turn++) {
		for (i = 0; i < SMALL; i++) {
			if (!small[i][0])
				continue;
			client->qp = small[i][0];
			server->qp = small[i][1];
			vt_pattern(from->addr, turn * SMALL + i, 0, sizeof(want));
			vt_pattern(want, turn * SMALL + i, 0, sizeof(want));
			if (!message_arrives() || memcmp(to->addr, want, sizeof(want)))
				return false;
		}
	}
	return true;
}

static void small_queues(void)
{
	uint32_t depth = client->depth;
	int i;

	cqs_begin(NULL);
	client->depth = 4;
	server->depth = 4;
	for (i = 0; i < SMALL; i++)
		small_begin(i);
	vt_check(small_talk(), "small queues: %d pairs talk in turn", SMALL);
	for (i = 0; i < SMALL; i += 2)
		small_end(i);
	vt_check(small_talk(), "small queues: half of them have gone, the others talk");
	for (i = 0; i < SMALL; i += 2)
		small_begin(i);
	vt_check(small_talk(), "small queues: new ones have come");
	for (i = 0; i < SMALL; i++)
		small_end(i);
	client->depth = depth;
	server->depth = depth;
	cqs_end();
}

/* --- extended completion queues ------------------------------------------------------------------------------- */

#define EVERY_FIELD (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_CVLAN | \
		     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct ibv_cq_ex *make_cq_ex(struct vt_dev *dev, int cqe, uint64_t fields, uint32_t flags)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = cqe,
		.wc_flags = fields,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};

	return ibv_create_cq_ex(dev->ctx, &init);
}

static bool start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};
	double end = vt_now() + 5;

	while (ibv_start_poll(cq, &attr))
		if (vt_now() > end)
			return false;
	return true;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t raw_clock(struct vt_dev *dev)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (ibv_query_rt_values_ex(dev->ctx, &values) || values.comp_mask != IBV_VALUES_MASK_RAW_CLOCK)
		return 0;
	return values.raw_clock.tv_sec * 1000000000ull + values.raw_clock.tv_nsec;
}

static void device_time(void)
{
	struct ibv_device_attr_ex attr = {};
	uint64_t before, raw, after;

	before = clock_ns(CLOCK_MONOTONIC);
	raw = raw_clock(client->dev);
	after = clock_ns(CLOCK_MONOTONIC);
	vt_check(before <= raw && raw <= after, "the raw clock is CLOCK_MONOTONIC in nanoseconds");
	vt_check(!ibv_query_device_ex(client->dev->ctx, NULL, &attr) && attr.hca_core_clock == 1000000 &&
		 attr.completion_timestamp_mask == UINT64_MAX, "the device's clock: 1 GHz, 64 bits");
	vt_check(attr.cq_mod_caps.max_cq_count == UINT16_MAX && attr.cq_mod_caps.max_cq_period == UINT16_MAX,
		 "the device says how far completion queues can be moderated");
}

static void fields_of_rc(void)
{
	uint64_t raw[2], wall[2], ts, wc_wall;
	struct ibv_cq_ex *cq = make_cq_ex(server->dev, 16, EVERY_FIELD, 0);

	if (!cq)
		vt_die(VT_WRONG, "WRONG: cq with every field: %s", strerror(errno));
	client->cq = vt_create_cq(client->dev, 16);
	server->cq = ibv_cq_ex_to_cq(cq);
	pair_begin(IBV_QPT_RC);
	recv_at(server->qp, 7);
	raw[0] = raw_clock(server->dev);
	wall[0] = clock_ns(CLOCK_REALTIME);
	send_from(client->qp, 8, IBV_WR_SEND_WITH_IMM, 100);
	if (!start_poll(cq))
		vt_die(VT_WRONG, "WRONG: nothing is received");
	raw[1] = raw_clock(server->dev);
	wall[1] = clock_ns(CLOCK_REALTIME);
	vt_check(cq->wr_id == 7 && cq->status == IBV_WC_SUCCESS, "extended: work request and status");
	vt_check(ibv_wc_read_opcode(cq) == IBV_WC_RECV && !ibv_wc_read_vendor_err(cq), "extended: opcode");
	vt_check(ibv_wc_read_byte_len(cq) == 100, "extended: length");
	vt_check(ibv_wc_read_imm_data(cq) == htobe32(0xcafe0008) && ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM,
		 "extended: immediate data and flags");
	vt_check(ibv_wc_read_qp_num(cq) == server->qp->qp_num, "extended: number of the queue pair");
	vt_check(!ibv_wc_read_slid(cq) && !ibv_wc_read_sl(cq) && !ibv_wc_read_dlid_path_bits(cq),
		 "extended: no LIDs, service level 0");
	ts = ibv_wc_read_completion_ts(cq);
	vt_check(raw[0] <= ts && ts <= raw[1], "extended: raw time lies between sending and polling");
	wc_wall = ibv_wc_read_completion_wallclock_ns(cq);
	/* made of three readings of two clocks */
	vt_check(wall[0] <= wc_wall + 1000000 && wc_wall <= wall[1] + 1000000,
		 "extended: wall clock lies between sending and polling");
	vt_check(ibv_next_poll(cq) == ENOENT, "extended: there is no second completion");
	ibv_end_poll(cq);
	pair_end();
	cqs_end();
}

static void fields_of_ud(void)
{
	struct ibv_cq_ex *cq = make_cq_ex(server->dev, 16, EVERY_FIELD, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	struct ibv_sge sge = { (uintptr_t)from->addr, 50, from->lkey };
	struct ibv_ah_attr attr;
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	if (!cq)
		vt_die(VT_WRONG, "WRONG: single-threaded cq: %s", strerror(errno));
	client->cq = vt_create_cq(client->dev, 16);
	server->cq = ibv_cq_ex_to_cq(cq);
	side_qp(client, IBV_QPT_UD);
	side_qp(server, IBV_QPT_UD);
	if (side_init(client) || side_init(server) || vt_to_state(client->qp, IBV_QPS_RTR) ||
	    vt_to_rts(client->qp, &(struct vt_conn){}) || vt_to_state(server->qp, IBV_QPS_RTR))
		vt_die(VT_SETUP, "UD: %s", strerror(errno));
	recv_at(server->qp, 3);
	attr = address(client, server);
	wr.wr.ud.ah = ibv_create_ah(client->dev->pd, &attr);
	wr.wr.ud.remote_qpn = server->qp->qp_num;
	wr.wr.ud.remote_qkey = VT_QKEY;
	if (!wr.wr.ud.ah || ibv_post_send(client->qp, &wr, &bad) || !start_poll(cq))
		vt_die(VT_WRONG, "WRONG: no datagram is received");
	vt_check(cq->wr_id == 3 && cq->status == IBV_WC_SUCCESS && ibv_wc_read_byte_len(cq) == 90 &&
		 ibv_wc_read_wc_flags(cq) == IBV_WC_GRH, "extended, UD: length with the 40 bytes, and their flag");
	vt_check(ibv_wc_read_src_qp(cq) == client->qp->qp_num, "extended, UD: source queue pair");
	vt_check(!ibv_wc_read_cvlan(cq), "extended, UD: no VLAN");
	/* as ConnectX says it, see abi.md */
	vt_check(ibv_wc_read_sl(cq) == 10, "extended, UD: no service level, but that it came over IPv4");
	ibv_end_poll(cq);
	ibv_destroy_ah(wr.wr.ud.ah);
	pair_end();
	cqs_end();
}

static void fields_refused(void)
{
	struct ibv_cq_ex *cq;

	/* for raw packets */
	cq = make_cq_ex(client->dev, 16, IBV_WC_EX_WITH_FLOW_TAG, 0);
	vt_check(cq && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), "extended: a flow tag is taken");
	/* for shared receive queues with tag matching (tm.c) */
	cq = make_cq_ex(client->dev, 16, IBV_WC_EX_WITH_TM_INFO, 0);
	vt_check(cq && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), "extended: tag matching is taken");
	errno = 0;
	cq = make_cq_ex(client->dev, 16, 0, 1u << 7);
	vt_check(!cq && errno == EOPNOTSUPP, "extended: an unknown flag is refused");
}

/* no time is taken where nobody has asked for it */
static void no_time(void)
{
	struct ibv_cq_ex *cq = make_cq_ex(server->dev, 16, IBV_WC_STANDARD_FLAGS, 0);

	vt_check(cq && !cq->read_completion_ts && !cq->read_completion_wallclock_ns && !cq->read_cvlan,
		 "extended: fields that were not asked for are not there");
	if (cq)
		ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

static bool event_of(struct vt_dev *dev, enum ibv_event_type type, double seconds)
{
	double end = vt_now() + seconds;
	struct ibv_async_event event;
	bool found;

	do {
		if (ibv_get_async_event(dev->ctx, &event)) {
			usleep(1000);
			continue;
		}
		found = event.event_type == type;
		ibv_ack_async_event(&event);
		if (found)
			return true;
	} while (vt_now() < end);
	return false;
}

static void ignored_overrun(void)
{
	struct ibv_cq_ex *cq = make_cq_ex(server->dev, 4, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	struct ibv_wc wc;
	bool sent = true;
	int i, n;

	if (!cq)
		vt_die(VT_WRONG, "WRONG: cq that ignores overruns: %s", strerror(errno));
	client->cq = vt_create_cq(client->dev, 64);
	server->cq = ibv_cq_ex_to_cq(cq);
	pair_begin(IBV_QPT_RC);
	for (i = 0; i < 40; i++)
		recv_at(server->qp, i);
	for (i = 0; i < 20; i++)
		sent &= !send_from(client->qp, i, IBV_WR_SEND, 8) && poll_one(client->cq, &wc, 5) && !wc.status;
	vt_check(sent, "ignored overrun: all messages are acknowledged");
	vt_check(!event_of(server->dev, IBV_EVENT_CQ_ERR, 0.1) && vt_state(server->qp) == IBV_QPS_RTS,
		 "ignored overrun: no event, and the queue pair goes on");
	for (n = 0; ibv_poll_cq(server->cq, 1, &wc) == 1; n++)
		if (wc.wr_id != (uint64_t)n || wc.status)
			break;
	vt_check(n >= 4 && n < 20 && n == server->cq->cqe, "ignored overrun: the first completions are intact");
	send_from(client->qp, 99, IBV_WR_SEND, 8);
	vt_check(poll_one(server->cq, &wc, 5) && wc.wr_id == 20 && !wc.status,
		 "ignored overrun: once there is room, completions come again");
	pair_end();
	cqs_end();
}

/* --- moderation, vectors ------------------------------------------------------------------------------------------ */

static struct ibv_comp_channel *channel;

static int moderate(uint16_t count, uint16_t us)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { count, us } };

	return ibv_modify_cq(server->cq, &attr);
}

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 1)
		;
}

#define PERIOD_US 65535
#define PERIOD (PERIOD_US / 1e6)

/*
 * @n messages, and whether an event comes within half the period: 1 or 0; -1 when the machine was too slow for
 * this to mean anything.
 */
static int early_event(int n)
{
	double start;
	bool came;

	drain(server->cq);
	ibv_req_notify_cq(server->cq, 0);
	start = vt_now();
	while (n--)
		if (message() != IBV_WC_SUCCESS)
			return 0;
	came = vt_cq_event(channel, PERIOD / 4);
	if (vt_now() - start > PERIOD * 3 / 4) {
		if (!came)
			vt_cq_event(channel, 2);
		return -1;
	}
	return came;
}

static int early_event_patient(int n)
{
	int how, tries = 20;

	while ((how = early_event(n)) < 0 && --tries)
		;
	return how;
}

static void moderation(void)
{
	int how;

	channel = ibv_create_comp_channel(server->dev->ctx);
	cqs_begin(channel);
	pair_begin(IBV_QPT_RC);
	vt_check(early_event_patient(1) != 0, "not moderated: one message, an event");
	vt_check(!moderate(4, PERIOD_US), "moderation: 4 messages, or 65 ms");
	how = early_event_patient(3);
	if (how < 0) {
		printf("skip: moderation [too slow a machine\n");
	} else {
		vt_check(how == 0, "moderated: three messages, no event yet");
		vt_check(vt_cq_event(channel, 5), "moderated: it comes when the time is over");
		how = early_event_patient(4);
		vt_check(how != 0, "moderated: four messages, an event at once");
		vt_check(!vt_cq_event(channel, 2 * PERIOD), "moderated: and only one");
	}
	early_event(2);
	vt_cq_event(channel, 1);
	drain(server->cq);
	ibv_req_notify_cq(server->cq, 0);
	recv_at(server->qp, 5);
	vt_to_state(server->qp, IBV_QPS_ERR);
	vt_check(vt_cq_event(channel, 5), "moderated: a completion in error, an event");
	pair_end();
	pair_begin(IBV_QPT_RC);
	drain(client->cq);
	vt_check(!moderate(200, PERIOD_US), "moderation is changed");
	drain(server->cq);
	ibv_req_notify_cq(server->cq, 0);
	message();
	vt_check(!moderate(0, 0), "moderation is switched off");
	vt_check(vt_cq_event(channel, 5), "what had waited comes then");
	vt_check(early_event_patient(1) != 0, "not moderated any more: one message, an event");
	vt_check(!moderate(16, 0) && early_event_patient(1) != 0, "moderation without a time: none");
	vt_check(!moderate(1, PERIOD_US) && early_event_patient(1) != 0, "moderation of single completions: none");
	/* a queue that goes while its event waits */
	moderate(100, PERIOD_US);
	drain(server->cq);
	ibv_req_notify_cq(server->cq, 0);
	message();
	pair_end();
	cqs_end();
	ibv_destroy_comp_channel(channel);
}

static void vectors(void)
{
	int v, n = server->dev->ctx->num_comp_vectors, good = 0;

	vt_check(n >= 1 && n >= sysconf(_SC_NPROCESSORS_ONLN), "there is a completion vector for each CPU: %d", n);
	channel = ibv_create_comp_channel(server->dev->ctx);
	client->cq = vt_create_cq(client->dev, 64);
	for (v = 0; v < min(n, 64); v++) {
		server->cq = vt_create_channel_cq(server->dev, 64, channel, v);
		pair_begin(IBV_QPT_RC);
		ibv_req_notify_cq(server->cq, 0);
		good += message() == IBV_WC_SUCCESS && vt_cq_event(channel, 5);
		/* the handler may be under way to its CPU when the queue goes */
		ibv_req_notify_cq(server->cq, 0);
		message();
		pair_end();
		ibv_destroy_cq(server->cq);
	}
	vt_check(good == min(n, 64), "an event comes by every vector");
	ibv_destroy_cq(client->cq);
	ibv_destroy_comp_channel(channel);
}

/* --- domains ----------------------------------------------------------------------------------------------------------- */

static struct {
	int allocs, frees, bad;
	struct ibv_pd *pd;
	void *place[8];
	uint64_t type[8];
	bool none, standard;
} given;

static void *allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	void *p = NULL;

	if (given.none)
		return NULL;
	if (given.standard)
		return IBV_ALLOCATOR_USE_DEFAULT;
	given.bad += context != &given || pd != given.pd || given.allocs == 8;
	if (given.bad || posix_memalign(&p, alignment, size))
		return NULL;
	memset(p, 0xa5, size);
	given.place[given.allocs] = p;
	given.type[given.allocs++] = type;
	return p;
}

static void release(struct ibv_pd *pd, void *context, void *p, uint64_t type)
{
	int i;

	for (i = 0; i < given.allocs && given.place[i] != p; i++)
		;
	given.bad += context != &given || pd != given.pd || i == given.allocs || given.type[i] != type;
	given.frees++;
	free(p);
}

static struct ibv_pd *parent_domain(struct ibv_td *td, uint32_t mask)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = server->dev->pd,
		.td = td,
		.comp_mask = mask,
		.alloc = allocate,
		.free = release,
		.pd_context = &given,
	};

	return ibv_alloc_parent_domain(server->dev->ctx, &attr);
}

/* What an allocator may do with a queue pair: have no memory, see it refused, or leave it to the provider */
static void allocators(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr qp_init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = server->cq,
		.recv_cq = server->cq,
		.cap.max_send_wr = 1 << 30,
	};
	struct ibv_qp *qp;

	given.none = true;
	errno = 0;
	vt_check(!ibv_create_srq(pd, &srq_init) && errno == ENOMEM, "an allocator that has no memory: ENOMEM");
	given.none = false;
	vt_check(!ibv_create_qp(pd, &qp_init) && given.allocs == 4 && given.frees == 1 && !given.bad,
		 "memory of a queue pair that the device refuses goes back");
	given.standard = true;
	qp_init.cap.max_send_wr = 1;
	qp_init.cap.max_send_sge = 1;
	qp = ibv_create_qp(pd, &qp_init);
	vt_check(qp && !ibv_destroy_qp(qp) && given.frees == 1, "an allocator that leaves it to the provider");
}

static void bad_domains(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = server->dev->pd,
		.alloc = allocate,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
	};

	errno = 0;
	vt_check(!ibv_alloc_parent_domain(server->dev->ctx, &attr) && errno == EINVAL,
		 "an allocator without its counterpart is refused");
	attr.alloc = NULL;
	attr.comp_mask = 1 << 9;
	errno = 0;
	vt_check(!ibv_alloc_parent_domain(server->dev->ctx, &attr) && errno == EOPNOTSUPP,
		 "a parent domain of an unknown kind is refused");
}

static void domains(void)
{
	const uint32_t all = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cq_init = { .cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_td_init_attr td_init = {};
	struct ibv_srq *srq;
	struct ibv_td *td;
	struct ibv_pd *pd;

	td = ibv_alloc_td(server->dev->ctx, &td_init);
	pd = td ? parent_domain(td, all) : NULL;
	if (!pd)
		vt_die(VT_WRONG, "WRONG: parent domain: %s", strerror(errno));
	given.pd = pd;
	vt_check(ibv_dealloc_td(td) == EBUSY, "a thread domain that is used stays");
	client->cq = vt_create_cq(client->dev, 16);
	cq_init.parent_domain = pd;
	server->cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(server->dev->ctx, &cq_init));
	server->pd = pd;
	pair_begin(IBV_QPT_RC);
	srq = ibv_create_srq(pd, &srq_init);
	vt_check(srq && given.allocs == 3 && !given.bad,
		 "the allocator places a queue pair, a completion queue and a shared receive queue");
	vt_check(message_arrives(), "a message arrives in the parent domain");
	vt_check(ibv_dealloc_pd(pd) == EBUSY, "a parent domain that is used stays");
	allocators(pd);
	pair_end();
	ibv_destroy_srq(srq);
	cqs_end();
	vt_check(given.frees == 4 && !given.bad, "all memory has gone back to where it came from");
	vt_check(!ibv_dealloc_pd(pd) && !ibv_dealloc_td(td), "the domains end");
	server->pd = server->dev->pd;
	bad_domains();
}

/* --- what the kernel says of a device ------------------------------------------------------------------------------------ */

static void port_file(const struct vt_dev *dev, const char *name, char path[512])
{
	snprintf(path, 512, "%s/ports/1/%s", dev->ctx->device->ibdev_path, name);
}

/* an errno */
static int port_write(const struct vt_dev *dev, const char *name, const char *text)
{
	char path[512];
	int fd, err = 0;

	port_file(dev, name, path);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

static unsigned long long port_counter(const struct vt_dev *dev, const char *name)
{
	unsigned long long n = 0;
	char path[512], file[64];
	FILE *f;

	snprintf(file, sizeof(file), "hw_counters/%s", name);
	port_file(dev, file, path);
	/* what was read less than 10 ms ago is not read again */
	usleep(20000);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &n) != 1)
		vt_die(VT_SETUP, "no counter %s", path);
	fclose(f);
	return n;
}

static const char *name_of(const struct vt_dev *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

/* --- partitions ---------------------------------------------------------------------------------------------------------------- */

static uint16_t pkey_at(struct vt_dev *dev, int index)
{
	__be16 pkey;

	return ibv_query_pkey(dev->ctx, 1, index, &pkey) ? 0 : be16toh(pkey);
}

static bool pkeys(const char *table)
{
	return !port_write(client->dev, "pkey_table", table) &&
	       (server->dev == client->dev || !port_write(server->dev, "pkey_table", table));
}

/* do queue pairs with these two entries hear each other? */
static void partition(const char *what, int of_client, int of_server, bool wanted)
{
	unsigned long long bad = port_counter(server->dev, "rx_bad_pkey_packets");
	enum ibv_wc_status status;

	cqs_begin(NULL);
	client->pkey_index = of_client;
	server->pkey_index = of_server;
	pair_begin(IBV_QPT_RC);
	status = message();
	vt_check(status == (wanted ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR), "partitions: %s: %s", what,
		 ibv_wc_status_str(status));
	bad = port_counter(server->dev, "rx_bad_pkey_packets") - bad;
	vt_check(wanted ? !bad : bad > 0, "partitions: %s: %s", what, wanted ? "none is counted as bad" :
		 "packets are counted as bad");
	pair_end();
	cqs_end();
	client->pkey_index = 0;
	server->pkey_index = 0;
}

static void partitions_change(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	cqs_begin(NULL);
	client->pkey_index = 1;
	server->pkey_index = 1;
	pair_begin(IBV_QPT_RC);
	vt_check(message_arrives() && !ibv_query_qp(client->qp, &attr, IBV_QP_PKEY_INDEX, &init) &&
		 attr.pkey_index == 1, "partitions: a queue pair says which entry it uses");
	vt_check(pkeys("0xffff 0x8009"), "partitions: the table changes");
	vt_check(message_arrives(), "partitions: both sides follow");
	if (server->dev != client->dev) {
		port_write(server->dev, "pkey_table", "0xffff 0x800a");
		vt_check(message() == IBV_WC_RETRY_EXC_ERR, "partitions: what only one side follows ends the connection");
	}
	pair_end();
	cqs_end();
	client->pkey_index = 0;
	server->pkey_index = 0;
}

static void partitions_refused(void)
{
	char many[17 * 7 + 1] = "";
	int i;

	for (i = 0; i < 17; i++)
		strcat(many, "0xffff ");
	vt_check(port_write(client->dev, "pkey_table", "0x8001") == EINVAL, "partitions: no default P_Key: EINVAL");
	vt_check(port_write(client->dev, "pkey_table", "\n") == EINVAL, "partitions: an empty table: EINVAL");
	vt_check(port_write(client->dev, "pkey_table", "0xffff 0x10000") == ERANGE, "partitions: 17 bits: ERANGE");
	vt_check(port_write(client->dev, "pkey_table", "0xffff full") == EINVAL, "partitions: no number: EINVAL");
	vt_check(port_write(client->dev, "pkey_table", many) == ENOSPC, "partitions: one too many: ENOSPC");
	vt_check(pkey_at(client->dev, 0) == 0xffff && !pkey_at(client->dev, 1), "partitions: the table is unchanged");
	cqs_begin(NULL);
	side_qp(client, IBV_QPT_RC);
	client->pkey_index = 1;
	vt_check(side_init(client) == EINVAL, "partitions: an empty entry: EINVAL");
	client->pkey_index = 16;
	vt_check(side_init(client) == EINVAL, "partitions: an entry that is not there: EINVAL");
	client->pkey_index = 0;
	ibv_destroy_qp(client->qp);
	cqs_end();
}

static void partitions(void)
{
	struct ibv_port_attr port;

	vt_check(!ibv_query_port(client->dev->ctx, 1, &port) && port.pkey_tbl_len == 16 &&
		 pkey_at(client->dev, 0) == 0xffff && !pkey_at(client->dev, 15),
		 "partitions: 16 entries, the default P_Key first");
	partitions_refused();
	event_of(client->dev, IBV_EVENT_PKEY_CHANGE, 0);
	vt_check(pkeys("0xffff 0x8005 0x0005\n0x0006 0x8007 0x7fff"), "partitions: a table is written");
	vt_check(event_of(client->dev, IBV_EVENT_PKEY_CHANGE, 2), "partitions: IBV_EVENT_PKEY_CHANGE");
	vt_check(pkey_at(client->dev, 1) == 0x8005 && pkey_at(client->dev, 5) == 0x7fff &&
		 ibv_get_pkey_index(client->dev->ctx, 1, htobe16(0x8007)) == 4, "partitions: and read back");
	partition("full and full", 1, 1, true);
	partition("full and limited", 1, 2, true);
	partition("limited and full", 2, 1, true);
	partition("limited and limited", 2, 2, false);
	partition("the default one, full and limited", 0, 5, true);
	partition("the default one, limited and limited", 5, 5, false);
	partition("two partitions", 1, 4, false);
	partition("one of them the default", 0, 1, false);
	partitions_change();
	vt_check(pkeys("0xffff") && !pkey_at(client->dev, 1), "partitions: the default table again");
}

/* --- counters of queue pairs -------------------------------------------------------------------------------------------------------- */

/* does the list of numbers after "lqpn": have this one? */
static bool lists_qp(const char *counter, const char *end, uint32_t qpn)
{
	const char *p = strstr(counter, "\"lqpn\":[");
	char *next;

	if (!p || p >= end)
		return false;
	for (p += 7; *p == '[' || *p == ','; p = next)
		if (strtoul(p + 1, &next, 10) == qpn)
			return true;
	return false;
}

/* of the counters that have queue pair @qpn (0: all of them): their number in @found, and the sum of @name */
static long long qp_counter(const struct vt_dev *dev, uint32_t qpn, const char *name, int *found)
{
	const char *p, *end, *value, *list = vt_rdma("-j statistic qp show link %s/1", name_of(dev));
	char wanted[64];
	long long sum = 0;
	int n = 0;

	snprintf(wanted, sizeof(wanted), "\"%s\":", name);
	for (p = strchr(list, '{'); p; p = strchr(end, '{')) {
		end = strchr(p, '}');
		if (!end)
			break;
		if (!strstr(p, "\"cntn\"") || (qpn && !lists_qp(p, end, qpn)))
			continue;
		n++;
		value = strstr(p, wanted);
		if (value && value < end)
			sum += atoll(value + strlen(wanted));
	}
	if (found)
		*found = n;
	return sum;
}

/* packets that the device has sent, by whatever way */
static unsigned long long sent_by(const struct vt_dev *dev)
{
	return port_counter(dev, "rdma_tx_packets") + port_counter(dev, "direct_packets");
}

static long long qp_sent(const struct vt_dev *dev, uint32_t qpn)
{
	return qp_counter(dev, qpn, "rdma_tx_packets", NULL) + qp_counter(dev, qpn, "direct_packets", NULL);
}

static void counters_manual(void)
{
	unsigned long long before, bytes;
	bool through_net = server->dev != client->dev;
	int found;

	cqs_begin(NULL);
	pair_begin(IBV_QPT_RC);
	message_arrives();
	vt_rdma("statistic qp bind link %s/1 lqpn %u", name_of(client->dev), client->qp->qp_num);
	qp_counter(client->dev, client->qp->qp_num, "", &found);
	vt_check(found == 1, "counters: a queue pair is bound to one");
	vt_check(qp_sent(client->dev, client->qp->qp_num) == 0, "counters: it begins with 0");
	before = sent_by(client->dev);
	bytes = port_counter(client->dev, "rdma_rx_bytes");
	for (found = 0; found < 10; found++)
		message_arrives();
	vt_check(qp_sent(client->dev, client->qp->qp_num) == 10, "counters: ten messages are ten packets");
	found = sent_by(client->dev) - before;
	vt_check(found == (through_net ? 10 : 20), "counters: the port has these as well: %d", found);
	if (through_net) {
		found = qp_counter(client->dev, client->qp->qp_num, "rdma_rx_packets", NULL);
		vt_check(found >= 1 && found <= 10, "counters: ACKs are received: %d", found);
		bytes = port_counter(client->dev, "rdma_rx_bytes") - bytes;
		vt_check(qp_counter(client->dev, client->qp->qp_num, "rdma_rx_bytes", NULL) == (long long)bytes,
			 "counters: their bytes are all that the port has received");
	}
	before = sent_by(client->dev);
	vt_rdma("statistic qp unbind link %s/1 cntn 1 lqpn %u", name_of(client->dev), client->qp->qp_num);
	qp_counter(client->dev, client->qp->qp_num, "", &found);
	vt_check(!found, "counters: unbound again");
	vt_check(sent_by(client->dev) == before, "counters: the port has not lost anything");
	message_arrives();
	vt_check(sent_by(client->dev) > before, "counters: the port counts it again");
	vt_rdma("statistic qp bind link %s/1 lqpn %u", name_of(client->dev), client->qp->qp_num);
	message_arrives();
	before = sent_by(client->dev);
	/* a queue pair that goes takes its counter along */
	pair_end();
	qp_counter(client->dev, 0, "", &found);
	vt_check(!found && sent_by(client->dev) == before, "counters: a bound queue pair ends, the port keeps the sum");
	cqs_end();
}

static void counters_auto(void)
{
	struct ibv_qp *first[2], *second;
	int found;

	vt_check(!strlen(vt_rdma("statistic qp set link %s/1 auto type on", name_of(client->dev))),
		 "counters: one for each type of queue pair");
	cqs_begin(NULL);
	pair_begin(IBV_QPT_RC);
	message_arrives();
	first[0] = client->qp;
	first[1] = server->qp;
	pair_begin(IBV_QPT_RC);
	message_arrives();
	second = client->qp;
	qp_counter(client->dev, second->qp_num, "", &found);
	vt_check(found == 1, "counters: a new queue pair has one by itself");
	qp_counter(client->dev, 0, "", &found);
	vt_check(found == 1, "counters: and shares it with others of its type");
	vt_check(qp_sent(client->dev, second->qp_num) >= 2, "counters: which count together");
	pair_end();
	ibv_destroy_qp(first[0]);
	ibv_destroy_qp(first[1]);
	cqs_end();
	qp_counter(client->dev, 0, "", &found);
	vt_check(!found, "counters: the last one takes it away");
	vt_rdma("statistic qp set link %s/1 auto off", name_of(client->dev));
}

static void counters(void)
{
	if (!strstr(vt_rdma("statistic qp mode"), name_of(client->dev))) {
		printf("skip: counters of queue pairs [this rdma does not show them\n");
		return;
	}
	counters_manual();
	counters_auto();
}

/* --- details of resources --------------------------------------------------------------------------------------------------------------- */

static void has_details(const char *object, const char *const *names)
{
	const char *out = vt_rdma("-dd -jp resource show %s %s %s", object, strcmp(object, "qp") ? "dev" : "link",
			       name_of(server->dev));

	for (; *names; names++)
		vt_check(strstr(out, *names), "resource show %s has %s", object, *names);
}

static void resources(void)
{
	static const char *const of_qp[] = { "drv_sq_entries", "drv_sq_next_psn", "drv_rq_epsn", "drv_path_mtu",
					     "drv_pkey", "drv_udp_sport", NULL };
	static const char *const of_cq[] = { "drv_entries", "drv_produced", "drv_comp_vector",
					     "drv_moderation_count", NULL };
	static const char *const of_mr[] = { "drv_kind", "drv_blocks", NULL };
	static const char *const of_srq[] = { "drv_entries", "drv_taken", "drv_limit", NULL };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(server->dev->pd, &srq_init);
	struct ibv_mr *mr;

	cqs_begin(NULL);
	pair_begin(IBV_QPT_RC);
	has_details("qp", of_qp);
	has_details("cq", of_cq);
	has_details("mr", of_mr);
	mr = ibv_reg_mr(server->dev->pd, to->addr, ROOM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (mr) {
		vt_check(strstr(vt_rdma("-dd -jp resource show mr dev %s", name_of(server->dev)), "on-demand"),
			 "resource show mr knows memory on demand");
		vt_check(strstr(vt_rdma("-jp statistic show mr"), "page_faults"),
			 "statistic show mr counts its page faults");
		ibv_dereg_mr(mr);
	}
	mr = ibv_reg_mr(server->dev->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (mr) {
		vt_check(strstr(vt_rdma("-dd -jp resource show mr dev %s", name_of(server->dev)), "drv_tables"),
			 "resource show mr knows the tables of an implicit region");
		ibv_dereg_mr(mr);
	}
	/* kernels before 6.7 do not ask the driver about these */
	if (srq && strstr(vt_rdma("-dd -jp resource show srq dev %s", name_of(server->dev)), "drv_"))
		has_details("srq", of_srq);
	else
		printf("skip: resource show srq [this kernel shows no details\n");
	pair_end();
	cqs_end();
	ibv_destroy_srq(srq);
}

/* --- paths --------------------------------------------------------------------------------------------------------------------------------- */

/* as the annex has it: the upper six bits of the label are folded into the lower fourteen */
static unsigned int port_of_label(uint32_t label)
{
	return 0xc000 | ((label & 0x3fff) ^ ((label & 0xfc000) >> 14));
}

static void source_port_is(const char *what, unsigned int port)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "\"drv_udp_sport\": %u", port);
	vt_check(strstr(vt_rdma("-dd -jp resource show qp link %s lqpn %u", name_of(client->dev), client->qp->qp_num), wanted),
		 "%s: UDP source port %u", what, port);
}

/* verbs.sh looks for packets from the port of the second label */
#define LABEL 0x12345
#define LABEL_LATER 0xabcde

static void flow_labels(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct ibv_qp_init_attr init;

	cqs_begin(NULL);
	client->flow_label = LABEL;
	pair_begin(IBV_QPT_RC);
	source_port_is("flow label", port_of_label(LABEL));
	vt_check(message_arrives(), "flow label: a message arrives");
	client->flow_label = LABEL_LATER;
	if (ibv_modify_qp(client->qp, &attr, IBV_QP_STATE))
		vt_die(VT_WRONG, "WRONG: to SQD: %s", strerror(errno));
	attr.ah_attr = address(client, server);
	attr.cur_qp_state = IBV_QPS_SQD;
	vt_check(!ibv_modify_qp(client->qp, &attr, IBV_QP_STATE | IBV_QP_AV),
		 "flow label: it can be changed while the send queue is drained");
	attr.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(client->qp, &attr, IBV_QP_STATE);
	source_port_is("flow label, changed", port_of_label(LABEL_LATER));
	vt_check(message_arrives(), "flow label, changed: a message arrives");
	vt_check(!ibv_query_qp(client->qp, &attr, IBV_QP_AV, &init) && attr.ah_attr.grh.flow_label == LABEL_LATER,
		 "flow label: query tells it");
	pair_end();
	cqs_end();
	client->flow_label = 0;
}

/* ib_core allows them on InfiniBand only */
static void no_alternate_path(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 3, .rnr_retry = 7, .max_rd_atomic = 1,
		.alt_port_num = 1, .alt_timeout = 12,
	};
	const int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC;
	int rc;

	cqs_begin(NULL);
	pair_begin(IBV_QPT_RC);
	attr.alt_ah_attr = address(client, server);
	vt_check(!(client->dev->attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG),
		 "alternate paths are not advertised");
	rc = ibv_modify_qp(client->qp, &attr, IBV_QP_ALT_PATH);
	vt_check(rc == EINVAL || rc == EOPNOTSUPP, "an alternate path is refused: %s", strerror(rc));
	attr.path_mig_state = IBV_MIG_REARM;
	rc = ibv_modify_qp(client->qp, &attr, IBV_QP_PATH_MIG_STATE);
	vt_check(rc == EINVAL, "arming it is refused: %s", strerror(rc));
	attr.path_mig_state = IBV_MIG_MIGRATED;
	rc = ibv_modify_qp(client->qp, &attr, IBV_QP_PATH_MIG_STATE);
	vt_check(!rc, "the only state there is, migrated, is accepted: %s", strerror(rc));
	vt_check(message_arrives(), "and the queue pair goes on");
	vt_to_state(client->qp, IBV_QPS_RESET);
	side_init(client);
	rc = ibv_modify_qp(client->qp, &attr, rts | IBV_QP_ALT_PATH);
	vt_check(rc && vt_state(client->qp) == IBV_QPS_INIT, "nor does it come along with a transition");
	pair_end();
	cqs_end();
}

/*
 * A copy by the processor promises no order of its bytes, and there are no vendor's options. The answers are those that
 * the library has for a provider that says nothing: what is shown is that they are the right ones, and that whoever asks
 * (librdmacm does) goes on.
 */
static void order_and_options(void)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct ibv_ece ece = { .vendor_id = 1, .options = 1 };
	size_t i;
	int rc;

	cqs_begin(NULL);
	pair_begin(IBV_QPT_RC);
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		vt_check(!ibv_query_qp_data_in_order(client->qp, ops[i], 0) &&
			 !ibv_query_qp_data_in_order(client->qp, ops[i], IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS),
			 "no order within a message is promised (operation %d)", ops[i]);
	rc = ibv_query_ece(client->qp, &ece);
	vt_check(rc == EOPNOTSUPP, "there are no options for connections (ECE): %s", strerror(rc));
	rc = ibv_set_ece(client->qp, &ece);
	vt_check(rc == EOPNOTSUPP, "and none to be set: %s", strerror(rc));
	vt_check(message_arrives(), "the queue pair goes on");
	pair_end();
	cqs_end();
}

int main(int argc, char **argv)
{
	ends_open(argc, argv);
	client = side_of(a.dev);
	server = side_of(b.dev);
	from = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE);
	to = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE);
	small_queues();
	device_time();
	fields_of_rc();
	fields_of_ud();
	fields_refused();
	no_time();
	ignored_overrun();
	moderation();
	vectors();
	domains();
	partitions();
	counters();
	resources();
	flow_labels();
	no_alternate_path();
	order_and_options();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
