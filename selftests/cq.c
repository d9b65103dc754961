// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * cq: completion queues: polling, events of both kinds, resizing with traffic on,
 * many queues on one channel, several threads, overflow, and what a queue pair leaves that ends.
 *
 *	cq -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "vt.h"

#define DEPTH 64

static struct vt_dev devs[2];
static struct vt_dev *peer_dev;
static struct ibv_mr *mr[2];

/* --- a connected pair ------------------------------------------------------------- */

static void to_rts(struct ibv_qp *qp, struct vt_dev *dev, struct ibv_qp *other, struct vt_dev *other_dev)
{
	struct vt_conn conn = {
		.peer = { .qpn = other->qp_num, .psn = 7, .gid = other_dev->gid },
		.sq_psn = 7, .mtu = IBV_MTU_1024, .rd_atomic = 4, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1,
	};

	if (vt_bring_up(qp, dev, VT_REMOTE_ACCESS, &conn))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
}

static void connect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	to_rts(a, &devs[0], b, peer_dev);
	to_rts(b, peer_dev, a, &devs[0]);
}

static int post_send(struct ibv_qp *qp, uint64_t id, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)mr[0]->addr, 8, mr[0]->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags,
	};

	return ibv_post_send(qp, &wr, &bad);
}

static int post_recv(struct ibv_qp *qp, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)mr[1]->addr, 64, mr[1]->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(qp, &wr, &bad);
}

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (poll_one(cq, &wc, 0.02))
		;
}

/* --- events ------------------------------------------------------------------------------ */

static struct ibv_comp_channel *channel;
static struct ibv_cq *scq, *rcq;
static struct ibv_qp *qa, *qb;

static void begin(int depth)
{
	channel = ibv_create_comp_channel(peer_dev->ctx);
	scq = vt_create_cq(&devs[0], DEPTH);
	rcq = vt_create_channel_cq(peer_dev, depth, channel, 0);
	qa = vt_new_qp(&devs[0], IBV_QPT_RC, scq, DEPTH, DEPTH);
	qb = vt_new_qp(peer_dev, IBV_QPT_RC, rcq, DEPTH, DEPTH);
	connect_pair(qa, qb);
}

static void end(void)
{
	if (ibv_destroy_qp(qa) || ibv_destroy_qp(qb) || ibv_destroy_cq(scq) || ibv_destroy_cq(rcq) ||
	    ibv_destroy_comp_channel(channel))
		vt_check(false, "everything can be destroyed");
}

/* one message from a to b */
static void message(unsigned int flags)
{
	struct ibv_wc wc;

	post_recv(qb, 1);
	post_send(qa, 2, IBV_SEND_SIGNALED | flags);
	if (!poll_one(scq, &wc, 5) || wc.status)
		vt_die(VT_WRONG, "WRONG: a message does not get through");
}

static void events(void)
{
	begin(DEPTH);
	message(0);
	vt_check(!vt_cq_event(channel, 0.05), "not armed: no event");
	ibv_req_notify_cq(rcq, 0);
	vt_check(!vt_cq_event(channel, 0.05), "armed, and an old completion in the queue: no event");
	message(0);
	vt_check(vt_cq_event(channel, 2) == rcq, "armed, a new completion: an event");
	message(0);
	vt_check(!vt_cq_event(channel, 0.05), "an event disarms");
	drain(rcq);
	ibv_req_notify_cq(rcq, 0);
	ibv_req_notify_cq(rcq, 0);
	message(0);
	message(0);
	vt_check(vt_cq_event(channel, 2) == rcq, "armed twice: an event");
	vt_check(!vt_cq_event(channel, 0.05), "and only one");
	drain(rcq);
	ibv_req_notify_cq(rcq, 1);
	message(0);
	vt_check(!vt_cq_event(channel, 0.05), "armed for solicited ones, an ordinary message: no event");
	message(IBV_SEND_SOLICITED);
	vt_check(vt_cq_event(channel, 2) == rcq, "armed for solicited ones, a solicited message: an event");
	drain(rcq);
	ibv_req_notify_cq(rcq, 1);
	ibv_req_notify_cq(rcq, 0);
	message(0);
	vt_check(vt_cq_event(channel, 2) == rcq, "armed for solicited ones, then for all: an event");
	drain(rcq);
	ibv_req_notify_cq(rcq, 0);
	ibv_req_notify_cq(rcq, 1);
	message(0);
	vt_check(vt_cq_event(channel, 2) == rcq, "armed for all, then for solicited ones: still for all");
	drain(rcq);
	ibv_req_notify_cq(rcq, 1);
	post_recv(qb, 9);
	vt_to_state(qb, IBV_QPS_ERR);
	vt_check(vt_cq_event(channel, 2) == rcq, "armed for solicited ones, a completion in error: an event");
	end();
}

/* one channel for many queues: each event names its own */
static void one_channel(void)
{
	struct ibv_cq *cqs[8];
	struct ibv_qp *as[8], *bs[8];
	bool good = true;
	struct ibv_wc wc;
	int i;

	begin(DEPTH);
	for (i = 0; i < 8; i++) {
		cqs[i] = vt_create_channel_cq(peer_dev, 16, channel, 0);
		as[i] = vt_new_qp(&devs[0], IBV_QPT_RC, scq, DEPTH, DEPTH);
		bs[i] = vt_new_qp(peer_dev, IBV_QPT_RC, cqs[i], DEPTH, DEPTH);
		connect_pair(as[i], bs[i]);
		ibv_req_notify_cq(cqs[i], 0);
	}
	for (i = 0; i < 8; i++) {
		int k = i * 5 % 8;

		post_recv(bs[k], k);
		post_send(as[k], k, IBV_SEND_SIGNALED);
		good &= vt_cq_event(channel, 2) == cqs[k] && poll_one(cqs[k], &wc, 1) && wc.wr_id == (uint64_t)k;
	}
	vt_check(good, "eight queues on one channel: each event is of the right one");
	for (i = 0; i < 8; i++)
		if (ibv_destroy_qp(as[i]) || ibv_destroy_qp(bs[i]) || ibv_destroy_cq(cqs[i]))
			vt_check(false, "eight queues can be destroyed");
	end();
}

/* --- event-driven traffic: no wake-up may be lost ------------------------------------------- */

static void *sender(void *unused)
{
	struct ibv_wc wc;
	int i, done = 0;

	for (i = 0; i < 5000; i++) {
		while (i - done >= 32)
			if (poll_one(scq, &wc, 10))
				done++;
			else
				return "stuck";
		if (post_send(qa, i, IBV_SEND_SIGNALED))
			return "post";
		if (!(i % 7))
			usleep(i % 50);
	}
	return NULL;
}

static void no_lost_wakeup(void)
{
	int got = 0, posted, lost = 0;
	struct ibv_wc wc[16];
	pthread_t thread;
	void *how;

	begin(DEPTH);
	for (posted = 0; posted < DEPTH; posted++)
		post_recv(qb, posted);
	pthread_create(&thread, NULL, sender, NULL);
	while (got < 5000 && !lost) {
		int i, n;

		ibv_req_notify_cq(rcq, 0);
		n = ibv_poll_cq(rcq, 16, wc);
		if (!n) {
			/* nothing there after arming: the next one must wake us */
			lost = vt_cq_event(channel, 5) != rcq;
			continue;
		}
		for (i = 0; i < n; i++, got++) {
			if (wc[i].status || wc[i].wr_id != (uint64_t)got)
				vt_die(VT_WRONG, "WRONG: receive %d: %s", got, ibv_wc_status_str(wc[i].status));
			if (posted < 5000 + DEPTH)
				post_recv(qb, posted++);
		}
	}
	pthread_join(thread, &how);
	printf("# %d messages by events\n", got);
	vt_check(!lost && !how, "5000 messages by events: no wake-up is lost");
	end();
}

/* --- resizing ---------------------------------------------------------------------------------- */

static volatile bool stop;
static unsigned long resizes, resize_errors;

static void *resizer(void *unused)
{
	struct vt_rng rng = { 42 };

	while (!stop) {
		/* never smaller than what may be in it */
		if (ibv_resize_cq(rcq, DEPTH + vt_below(&rng, 2000)))
			resize_errors++;
		resizes++;
		usleep(200);
	}
	return NULL;
}

static void resizing(void)
{
	struct ibv_wc wc;
	pthread_t sending, thread;
	int i, posted, got = 0;
	void *how;

	begin(DEPTH);
	for (i = 0; i < 10; i++)
		post_recv(qb, i);
	for (i = 0; i < 10; i++) {
		post_send(qa, i, IBV_SEND_SIGNALED);
		poll_one(scq, &wc, 5);
	}
	i = ibv_resize_cq(rcq, 500);
	if (i) {
		printf("skip: resize [%s\n", strerror(i));
		return;
	}
	vt_check(rcq->cqe >= 500, "resize to 500");
	vt_check(ibv_resize_cq(rcq, 5), "resize to fewer than are in it is refused");
	for (i = 0; i < 10 && poll_one(rcq, &wc, 1) && wc.wr_id == (uint64_t)i; i++)
		;
	vt_check(i == 10, "the completions that were in it are there, in order");
	vt_check(ibv_resize_cq(rcq, 0x7fffffff), "resize to 2^31 - 1 is refused");
	vt_check(ibv_resize_cq(rcq, 0), "resize to 0 is refused");
	for (posted = 0; posted < DEPTH; posted++)
		post_recv(qb, posted);
	pthread_create(&thread, NULL, resizer, NULL);
	pthread_create(&sending, NULL, sender, NULL);
	while (got < 5000 && poll_one(rcq, &wc, 5) && !wc.status && wc.wr_id == (uint64_t)got) {
		got++;
		if (posted < 5000)
			post_recv(qb, posted++);
	}
	stop = true;
	pthread_join(thread, NULL);
	pthread_join(sending, &how);
	printf("# %d messages, %lu resizes, %lu refused\n", got, resizes, resize_errors);
	vt_check(got == 5000 && !how, "resized under traffic: every completion once, in order");
	vt_check(!resize_errors && resizes > 3, "resized under traffic: never refused");
	end();
}

/* --- many threads poll ---------------------------------------------------------------------------- */

static unsigned char seen[5000];
static volatile int total;

static void *poller(void *unused)
{
	double end_time = vt_now() + 60;
	struct ibv_wc wc;

	while (total < 5000 && vt_now() < end_time) {
		if (ibv_poll_cq(rcq, 1, &wc) != 1)
			continue;
		__atomic_fetch_add(&seen[wc.wr_id], 1, __ATOMIC_RELAXED);
		if (wc.wr_id + DEPTH < 5000)
			post_recv(qb, wc.wr_id + DEPTH);
		__atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
		/* however slow: something comes */
		end_time = vt_now() + 60;
	}
	return NULL;
}

static void pollers(void)
{
	pthread_t sending, threads[3];
	double start = vt_now();
	bool once = true;
	void *how;
	int i;

	begin(DEPTH);
	for (i = 0; i < DEPTH; i++)
		post_recv(qb, i);
	pthread_create(&sending, NULL, sender, NULL);
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, poller, NULL);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	pthread_join(sending, &how);
	for (i = 0; i < 5000; i++)
		once &= seen[i] == 1;
	printf("# %d of 5000 in %.1f s%s%s\n", total, vt_now() - start,
	       how ? ", sender: " : "", how ? (char *)how : "");
	vt_check(once && !how, "three threads poll and post: every completion once");
	end();
}

/* --- overflow --------------------------------------------------------------------------------------- */

static void overflow(void)
{
	struct ibv_async_event event;
	bool told = false;
	struct ibv_wc wc;
	int i, n = 0;
	double until;

	begin(1);
	/* the queue may be larger than was asked for, never smaller */
	for (i = 0; i < DEPTH; i++)
		post_recv(qb, i);
	for (i = 0; i < DEPTH; i++)
		post_send(qa, i, 0);
	for (until = vt_now() + 2; vt_now() < until && !told; usleep(1000))
		if (!ibv_get_async_event(peer_dev->ctx, &event)) {
			told = event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == rcq;
			ibv_ack_async_event(&event);
		}
	vt_check(told, "overflow: CQ_ERR is announced");
	for (until = vt_now() + 2; vt_state(qb) != IBV_QPS_ERR && vt_now() < until;)
		;
	vt_check(vt_state(qb) == IBV_QPS_ERR, "overflow: the queue pair is in error");
	/* what was in it is not overwritten */
	while (n < rcq->cqe && ibv_poll_cq(rcq, 1, &wc) == 1 && wc.wr_id == (uint64_t)n && !wc.status)
		n++;
	printf("# %d of %d entries were used\n", n, rcq->cqe);
	vt_check(n > 0 && n <= rcq->cqe, "overflow: the first completions are intact");
	end();
}

/* --- queue pairs that end with completions that nobody has polled ------------------------------------- */

#define HALF (DEPTH / 2)

/* a second pair, whose receives complete in the same queue */
static struct ibv_qp *qc, *qd;

static bool send_one(struct ibv_qp *from, struct ibv_qp *to, uint64_t id)
{
	struct ibv_wc wc;

	return !post_recv(to, id) && !post_send(from, id, IBV_SEND_SIGNALED) && poll_one(scq, &wc, 5) && !wc.status;
}

/* messages of both pairs, in turns, which fill the queue */
static bool fill_in_turns(void)
{
	bool good = true;
	int i;

	for (i = 0; i < HALF; i++)
		good &= send_one(qa, qb, i) && send_one(qc, qd, DEPTH + i);
	return good;
}

/* receives of @qp, from @id on, are what the queue has next */
static bool received(const struct ibv_qp *qp, uint64_t id)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < HALF; i++)
		if (ibv_poll_cq(rcq, 1, &wc) != 1 || wc.status || wc.qp_num != qp->qp_num || wc.wr_id != id + i)
			return false;
	return true;
}

static void connect_again(void)
{
	if (vt_to_state(qa, IBV_QPS_RESET) || vt_to_state(qb, IBV_QPS_RESET))
		vt_die(VT_WRONG, "WRONG: qp to RESET");
	connect_pair(qa, qb);
}

static void exchange_receiver(void)
{
	if (ibv_destroy_qp(qb) || vt_to_state(qa, IBV_QPS_RESET))
		vt_die(VT_WRONG, "WRONG: the queue pair is not destroyed");
	qb = vt_new_qp(peer_dev, IBV_QPT_RC, rcq, DEPTH, DEPTH);
	connect_pair(qa, qb);
}

/* The queue is full of flushed receives, which are gone with the receiver's end: there is room for as many again */
static void flushed(const char *what, void (*recycle)(void))
{
	bool good = true;
	struct ibv_wc wc;
	int i;

	begin(DEPTH);
	for (i = 0; i < DEPTH; i++)
		post_recv(qb, i);
	vt_to_state(qb, IBV_QPS_ERR);
	recycle();
	for (i = 0; i < DEPTH; i++)
		good &= send_one(qa, qb, DEPTH + i);
	for (i = 0; i < DEPTH; i++)
		good &= poll_one(rcq, &wc, 1) && !wc.status && wc.wr_id == (uint64_t)DEPTH + i;
	vt_check(good && vt_silent(rcq), "%s, with a queue full of its flushed receives: as many fit again", what);
	vt_check(!vt_event_comes(peer_dev, IBV_EVENT_CQ_ERR, NULL, 0.05), "%s: no CQ_ERR", what);
	end();
}

static void begin_two(void)
{
	begin(DEPTH);
	qc = vt_new_qp(&devs[0], IBV_QPT_RC, scq, DEPTH, DEPTH);
	qd = vt_new_qp(peer_dev, IBV_QPT_RC, rcq, DEPTH, DEPTH);
	connect_pair(qc, qd);
}

static void end_two(void)
{
	if (ibv_destroy_qp(qc) || ibv_destroy_qp(qd))
		vt_check(false, "the second pair can be destroyed");
	end();
}

/* Those of another queue pair lie in between, and stay */
static void flushed_between(const char *what, void (*recycle)(void))
{
	bool good;
	int i;

	begin_two();
	vt_check(fill_in_turns(), "%s between those of another one: the queue is full", what);
	recycle();
	for (i = 0, good = true; i < HALF; i++)
		good &= send_one(qa, qb, 2 * DEPTH + i);
	vt_check(good, "%s between those of another one: as many fit again", what);
	good = received(qd, DEPTH);
	vt_check(good, "%s between those of another one: these are there, in order", what);
	good = received(qb, 2 * DEPTH);
	vt_check(good && vt_silent(rcq), "%s between those of another one: then the new ones, and no others", what);
	vt_check(!vt_event_comes(peer_dev, IBV_EVENT_CQ_ERR, NULL, 0.05), "%s between those of another one: no CQ_ERR",
		 what);
	end_two();
}

/* What is gone does not count */
static void resized_afterwards(void)
{
	begin_two();
	if (!fill_in_turns())
		vt_die(VT_WRONG, "WRONG: the queue cannot be filled");
	connect_again();
	vt_check(ibv_resize_cq(rcq, HALF - 1) == 0 && rcq->cqe == HALF,
		 "after RESET the queue is resized to what the other queue pair has in it");
	vt_check(ibv_resize_cq(rcq, HALF / 2), "and not to less");
	vt_check(received(qd, DEPTH) && vt_silent(rcq), "resized after RESET: the other one's completions are there, in order");
	end_two();
}

/* A queue of one thread has no locks, so a queue pair may end in the middle of a batch */
static void in_a_batch(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = DEPTH, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_poll_cq_attr poll = {};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(peer_dev->ctx, &attr);
	bool good;
	int i;

	if (!cq) {
		printf("skip: the end of a queue pair in a batch [%s\n", strerror(errno));
		return;
	}
	begin(DEPTH);
	if (ibv_destroy_qp(qb) || ibv_destroy_cq(rcq))
		vt_check(false, "the first queue can be destroyed");
	rcq = ibv_cq_ex_to_cq(cq);
	qb = vt_new_qp(peer_dev, IBV_QPT_RC, rcq, DEPTH, DEPTH);
	qc = vt_new_qp(&devs[0], IBV_QPT_RC, scq, DEPTH, DEPTH);
	qd = vt_new_qp(peer_dev, IBV_QPT_RC, rcq, DEPTH, DEPTH);
	connect_again();
	connect_pair(qc, qd);
	good = fill_in_turns() && !ibv_start_poll(cq, &poll) && cq->wr_id == 0;
	vt_check(good, "a batch begins with a completion of a queue pair");
	if (!good)
		vt_die(VT_WRONG, "WRONG: there is no batch");
	connect_again();
	vt_check(cq->wr_id == 0 && cq->status == IBV_WC_SUCCESS && ibv_wc_read_qp_num(cq) == qb->qp_num,
		 "the queue pair is reset in the batch: the completion can still be read");
	for (i = 0; i < HALF && !ibv_next_poll(cq) && cq->wr_id == (uint64_t)DEPTH + i; i++)
		good &= cq->status == IBV_WC_SUCCESS && ibv_wc_read_qp_num(cq) == qd->qp_num;
	vt_check(good && i == HALF, "the batch goes on with all of the other one, in order");
	vt_check(ibv_next_poll(cq) == ENOENT, "and nothing of that one");
	ibv_end_poll(cq);
	good = fill_in_turns();
	vt_check(good && !vt_event_comes(peer_dev, IBV_EVENT_CQ_ERR, NULL, 0.05), "after the batch all of the queue is free");
	end_two();
}

static void unpolled(void)
{
	if (vt_is_rxe()) {
		printf("skip: completions of queue pairs that are gone [rdma_rxe leaves them to be polled\n");
		return;
	}
	flushed("RESET", connect_again);
	flushed("destroyed", exchange_receiver);
	flushed_between("RESET", connect_again);
	flushed_between("destroyed", exchange_receiver);
	resized_afterwards();
	in_a_batch();
}

static void creation(void)
{
	struct ibv_cq *cq;

	cq = ibv_create_cq(devs[0].ctx, devs[0].attr.max_cqe, NULL, NULL, 0);
	vt_check(cq && cq->cqe >= devs[0].attr.max_cqe, "as many entries as the device says");
	if (cq)
		ibv_destroy_cq(cq);
	vt_check(!ibv_create_cq(devs[0].ctx, devs[0].attr.max_cqe + 1, NULL, NULL, 0), "one more is refused");
	vt_check(!ibv_create_cq(devs[0].ctx, 0, NULL, NULL, 0), "none is refused");
	vt_check(!ibv_create_cq(devs[0].ctx, 16, NULL, NULL, 1000), "a completion vector that is not there is refused");
}

/* rxe wakes nobody */
static const char *const rxe_deviates[] = { "a completion in error: an event", NULL };

int main(int argc, char **argv)
{
	peer_dev = &devs[vt_open_hosts(argc, argv, devs, NULL) - 1];
	vt_rxe_deviates = rxe_deviates;
	mr[0] = vt_mr(&devs[0], 4096, IBV_ACCESS_LOCAL_WRITE);
	mr[1] = vt_mr(peer_dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	creation();
	events();
	one_channel();
	no_lost_wakeup();
	pollers();
	resizing();
	overflow();
	unpolled();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
