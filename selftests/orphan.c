// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * orphan: a process that has everything open when its device goes.
 *
 *	orphan -d DEVICE -i IP COMMAND [ARGUMENT...]
 *
 * COMMAND removes the device, with work requests posted and with one thread that posts all the time.
 * Then the event has to come, whatever was posted has to complete, every call has to fail with a
 * clean error, and everything can be destroyed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vt.h"

/* more than the driver flushes at a time */
#define DEPTH 512
#define WAIT_S 20
/* queue pairs that are destroyed before the busy one, which takes a while */
#define OTHERS 200

static struct vt_dev dev;
static struct ibv_mr *mr;

struct queue {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct queue make_queue(struct ibv_comp_channel *channel)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct queue q;

	q.cq = vt_create_channel_cq(&dev, 2 * DEPTH, channel, 0);
	init.send_cq = q.cq;
	init.recv_cq = q.cq;
	q.qp = vt_create_qp(&dev, &init);
	return q;
}

/* to itself */
static void connect_queue(struct queue *q)
{
	struct vt_conn conn = {
		.peer = { .qpn = q->qp->qp_num, .psn = 7, .gid = dev.gid },
		.sq_psn = 7, .mtu = IBV_MTU_1024, .rd_atomic = 4, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 20,
	};

	if (vt_bring_up(q->qp, &dev, VT_REMOTE_ACCESS, &conn))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
}

static int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 8, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.rdma = { (uintptr_t)mr->addr, mr->rkey },
	};

	return ibv_post_send(qp, &wr, &bad);
}

static int post_recv(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 8, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(qp, &wr, &bad);
}

static void make_others(struct ibv_qp **others, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int i;

	for (i = 0; i < OTHERS; i++)
		others[i] = vt_create_qp(&dev, &init);
}

static void check_destroy_others(struct ibv_qp **others)
{
	int i, failed = 0;

	for (i = 0; i < OTHERS; i++)
		failed += !!ibv_destroy_qp(others[i]);
	vt_check(!failed, "all others can be destroyed (%d cannot)", failed);
}

/* --- one that never stops ------------------------------------------------------------ */

static struct queue busy;
static int busy_error;

static void *keep_busy(void *arg)
{
	double end;
	struct ibv_wc wc;
	int posted = 0;

	while (!busy_error) {
		if (posted < DEPTH / 2) {
			busy_error = post(busy.qp, IBV_WR_RDMA_WRITE);
			posted += !busy_error;
		}
		if (ibv_poll_cq(busy.cq, 1, &wc) == 1)
			posted--;
	}
	/* what is still to come, and nothing that was refused */
	for (end = vt_now() + 1; vt_now() < end;)
		if (ibv_poll_cq(busy.cq, 1, &wc) == 1)
			posted--;
	vt_check(busy_error == EIO, "who is just posting gets EIO (%d)", busy_error);
	vt_check(!posted, "and all its completions (%d lack)", posted);
	return NULL;
}

/* --- what the others see ----------------------------------------------------------------- */

static void check_fatal_event(void)
{
	struct pollfd p = { .fd = dev.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event = {};
	bool fatal = false;

	while (!fatal && poll(&p, 1, WAIT_S * 1000) == 1 && !ibv_get_async_event(dev.ctx, &event)) {
		fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&event);
	}
	vt_check(fatal, "IBV_EVENT_DEVICE_FATAL comes");
}

static void check_flushed(struct ibv_cq *cq, int posted)
{
	struct ibv_wc wc;
	int wrong = 0;

	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		wrong += wc.status != IBV_WC_WR_FLUSH_ERR;
		posted--;
	}
	vt_check(!wrong, "what was waiting is flushed (%d have another status)", wrong);
	vt_check(!posted, "all of it (%d lack)", posted);
}

/* no call may succeed, nor fail with anything that blames the caller */
static void check_calls(struct queue *q)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	void *p;

	vt_check(post(busy.qp, IBV_WR_RDMA_WRITE) == EIO, "a send fails with EIO");
	vt_check(post_recv(q->qp) == EIO, "a receive fails with EIO");
	vt_check(vt_to_state(q->qp, IBV_QPS_RESET) == EIO, "modify fails with EIO");
	vt_check(ibv_query_device(dev.ctx, &attr) == EIO, "query device fails with EIO");
	vt_check(ibv_query_port(dev.ctx, 1, &port) == EIO, "query port fails with EIO");
	p = ibv_alloc_pd(dev.ctx);
	vt_check(!p && errno == EIO, "alloc pd fails with EIO");
	p = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	vt_check(!p && errno == EIO, "create cq fails with EIO");
	p = ibv_reg_mr(dev.pd, mr->addr, 64, 0);
	vt_check(!p && errno == EIO, "reg mr fails with EIO");
}

/* an event may be left in it; after that there is an end, not silence */
static void check_channel(struct ibv_comp_channel *channel)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	int rc = 0;

	while (!rc && poll(&p, 1, WAIT_S * 1000) == 1) {
		rc = ibv_get_cq_event(channel, &cq, &context);
		if (!rc)
			ibv_ack_cq_events(cq, 1);
	}
	vt_check(rc && errno == EIO, "who waits for a completion event is woken with EIO");
}

static void check_destroy(struct queue *q, const char *name)
{
	int qp = ibv_destroy_qp(q->qp), cq = ibv_destroy_cq(q->cq);

	vt_check(!qp && !cq, "queues of %s can be destroyed (%d, %d)", name, qp, cq);
}

static int run(char **argv)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *ip = NULL;
	struct ibv_comp_channel *channel;
	struct ibv_qp *others[OTHERS];
	struct queue silent;
	pthread_t thread;
	int c, i;

	while ((c = getopt(argc, argv, "+d:i:")) != -1) {
		if (c == 'd')
			name = optarg;
		else if (c == 'i')
			ip = optarg;
		else
			return VT_SETUP;
	}
	if (optind == argc)
		vt_die(VT_SETUP, "orphan -d DEVICE -i IP COMMAND...");

	vt_open(&dev, name, ip, -1);
	fcntl(dev.ctx->async_fd, F_SETFL, O_NONBLOCK);
	mr = vt_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	channel = ibv_create_comp_channel(dev.ctx);
	/* the kernel destroys what was made last first */
	busy = make_queue(NULL);
	connect_queue(&busy);
	silent = make_queue(channel);
	make_others(others, silent.cq);
	/* receives that nothing will ever arrive for */
	if (vt_to_init(silent.qp, VT_REMOTE_ACCESS))
		vt_die(VT_SETUP, "qp to INIT: %s", strerror(errno));
	for (i = 0; i < DEPTH; i++)
		if (post_recv(silent.qp))
			vt_die(VT_SETUP, "post recv %d", i);
	ibv_req_notify_cq(silent.cq, 0);
	pthread_create(&thread, NULL, keep_busy, NULL);
	usleep(200000);

	vt_check(!run(argv + optind), "%s succeeds with the device open", argv[optind]);
	check_fatal_event();
	pthread_join(thread, NULL);
	check_flushed(silent.cq, DEPTH);
	check_calls(&silent);
	check_channel(channel);
	check_destroy_others(others);
	check_destroy(&busy, "the busy one");
	check_destroy(&silent, "the silent one");
	vt_check(!ibv_destroy_comp_channel(channel), "the channel can be destroyed");
	vt_mr_free(mr);
	vt_close(&dev);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
