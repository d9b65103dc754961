// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * trickle: a receiver of this host that posts a receive now and then, and never keeps up with its sender. The messages
 * that wait for it lie in the sender's memory. Nobody who wants that back waits until the receiver has come to them.
 *
 *	trickle -d DEVICE -i IP [hold]
 *
 * hold: say "waits", and stay until killed. SLOW: how many times slower than usual the machine is.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "vt.h"

/* two packets each, so that some 500 fit into the first window: 256 KiB of whole packets */
#define MESSAGE 512
#define MESSAGES 1024
/* often enough that the device does not lose patience */
#define TRICKLE_US 10000
/* with those that were there at once */
#define RECEIVES (2 * MESSAGES)

static struct vt_dev dev;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *sender, *receiver;
static struct ibv_mr *from, *to;
static double slow = 1;

/* --- the receiver -------------------------------------------------------------------- */

static pthread_t thread;
static volatile bool over;
static volatile int trickled;

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)to->addr, MESSAGE, to->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	ibv_post_recv(receiver, &wr, &bad);
}

static void *trickle(void *arg)
{
	while (!over) {
		post_receive();
		trickled++;
		usleep(TRICKLE_US);
	}
	return NULL;
}

/* --- both ------------------------------------------------------------------------------ */

static struct ibv_qp *signalling_qp(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = MESSAGES, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return vt_create_qp(&dev, &init);
}

static int connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct vt_conn c = {
		.peer = { .qpn = peer->qp_num, .psn = 1, .gid = dev.gid },
		.sq_psn = 1,
		.mtu = IBV_MTU_256,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
	};

	return vt_bring_up(qp, &dev, 0, &c);
}

static void post_sends(void)
{
	struct ibv_sge sge = { (uintptr_t)from->addr, MESSAGE, from->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	int i, err;

	for (i = 0; i < MESSAGES; i++) {
		err = ibv_post_send(sender, &wr, &bad);
		if (err)
			vt_die(VT_WRONG, "WRONG: post: %s", strerror(err));
	}
}

/* How many sends have completed, the first with a wrong status in @status; waits until there are @n */
static int completed(int n, double seconds, enum ibv_wc_status *status)
{
	double end = vt_now() + seconds;
	struct ibv_wc wc;
	int done = 0, got;

	*status = IBV_WC_SUCCESS;
	do {
		got = ibv_poll_cq(send_cq, 1, &wc);
		if (got < 0)
			vt_die(VT_WRONG, "WRONG: poll");
		if (got && wc.status && !*status)
			*status = wc.status;
		done += got;
		if (!got)
			usleep(1000);
	} while (done < n && vt_now() < end);
	return done;
}

/* The receiver trickles, and all but a few messages wait for it; returns how many do not */
static int begin(void)
{
	enum ibv_wc_status status;
	int done;

	from = vt_mr(&dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	send_cq = vt_create_cq(&dev, MESSAGES);
	recv_cq = vt_create_cq(&dev, RECEIVES);
	sender = signalling_qp(send_cq);
	receiver = signalling_qp(recv_cq);
	if (connect_qp(receiver, sender) || connect_qp(sender, receiver))
		vt_die(VT_SETUP, "queue pair: %s", strerror(errno));
	over = false;
	if (pthread_create(&thread, NULL, trickle, NULL))
		vt_die(VT_SETUP, "thread: %s", strerror(errno));
	post_sends();
	done = completed(MESSAGES, 0.1, &status);
	if (status)
		vt_die(VT_WRONG, "WRONG: completion with status %d", status);
	return done;
}

static void end(void)
{
	over = true;
	pthread_join(thread, NULL);
	if (sender)
		ibv_destroy_qp(sender);
	ibv_destroy_qp(receiver);
	ibv_destroy_cq(send_cq);
	ibv_destroy_cq(recv_cq);
	if (from)
		vt_mr_free(from);
}

/* --- what must not wait ------------------------------------------------------------------- */

/* How many receives there have been until something was done tells more than the time does */
struct since {
	double at;
	int trickled;
};

static struct since now(void)
{
	return (struct since){ vt_now(), trickled };
}

static void soon(const char *what, struct since since, int err, int before)
{
	double took = vt_now() - since.at;
	int receives = trickled - since.trickled;

	vt_check(!err && receives < MESSAGES / 4 && took < 5 * slow,
		 "%s: %s, %.3f s, %d receives; %d of %d messages were received before", what,
		 err ? strerror(err) : "done", took, receives, before, MESSAGES);
}

static void fails(void)
{
	enum ibv_wc_status status;
	int before = begin(), done;
	struct since start = now();

	vt_to_state(sender, IBV_QPS_ERR);
	done = before + completed(MESSAGES - before, 30 * slow, &status);
	soon("a queue pair in ERR has completed everything", start, done < MESSAGES ? ETIME : 0, before);
	vt_check(status == IBV_WC_WR_FLUSH_ERR, "what was not received was flushed: %s", ibv_wc_status_str(status));
	end();
}

static void is_reset(void)
{
	int before = begin();
	struct since start = now();

	soon("a queue pair is reset", start, vt_to_state(sender, IBV_QPS_RESET), before);
	end();
}

static void is_destroyed(void)
{
	int before = begin();
	struct since start = now();

	soon("a queue pair is destroyed", start, ibv_destroy_qp(sender), before);
	sender = NULL;
	end();
}

/* Its owner asks for trouble: the sender finds a key that is not valid */
static void is_deregistered(void)
{
	int before = begin(), done;
	enum ibv_wc_status status;
	void *memory = from->addr;
	struct since start = now();

	soon("a region is deregistered", start, ibv_dereg_mr(from), before);
	from = NULL;
	done = before + completed(MESSAGES - before, 30 * slow, &status);
	vt_check(done == MESSAGES && status == IBV_WC_LOC_PROT_ERR, "then its sender fails: %d completions, %s", done,
		 ibv_wc_status_str(status));
	end();
	free(memory);
}

/* Another region of the domain is nobody's business: the receiver gets everything, if slowly */
static void is_another(void)
{
	struct ibv_mr *other = vt_mr(&dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	enum ibv_wc_status status;
	int before = begin(), i;

	vt_mr_free(other);
	for (i = 0; i < MESSAGES; i++)
		post_receive();
	i = before + completed(MESSAGES - before, 30 * slow, &status);
	vt_check(i == MESSAGES && !status, "another region is deregistered: %d messages arrive, %s", i,
		 ibv_wc_status_str(status));
	end();
}

static void hold(void)
{
	begin();
	puts("waits");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct vt_dev devs[2];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("SLOW"))
		slow = atof(getenv("SLOW"));
	if (vt_open_hosts(argc, argv, devs, NULL) != 1)
		vt_die(VT_SETUP, "see the top of trickle.c");
	dev = devs[0];
	to = vt_mr(&dev, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	if (!strcmp(argv[argc - 1], "hold"))
		hold();
	fails();
	is_reset();
	is_destroyed();
	is_deregistered();
	is_another();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
