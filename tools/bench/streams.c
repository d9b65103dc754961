// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Streams of RDMA WRITEs, or READs, from several devices to one, all of one process that sleeps as long as there is no
 * completion: in the lab, timers are late beside a process that polls, and the shaper between the devices needs them.
 *
 *	streams [-n STREAMS] [-b BYTES] [-d DEPTH] [-t TIMEOUT] [-r] [-p] [-j] SECONDS TO IP FROM IP [FROM IP]...
 *
 * The streams, 1 without -n, come from the devices in turn; each has DEPTH messages of BYTES under way, 128 of 64 KiB if
 * nothing else is said. With -r the one device READs from the others: data goes the same way. With -p there is one more
 * connection, from the first device, which has one message of 64 bytes under way. With -j the streams, with 8 messages each,
 * join one after the other, SECONDS apart, and when all are there they leave in the same order. TIMEOUT is the ACK timeout as
 * verbs count it, 14 without, as perftest has it.
 *
 * Prints, one a line, in MB/s of 10^6 bytes: "started" at once; then "rate STREAM MB/s", or "died STREAM STATUS"; "second NUMBER
 * STREAM MB/s", of each whole second; "window FROM-TO", when the middle half was, in seconds since 1970; with -p "ping
 * PERCENTILE us", for 50, 99 and 100; with -j "phase NUMBER STREAM MB/s" for each that is there then, of the time from 200 ms
 * after somebody has joined or left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "vt.h"

enum { MOST_DEVICES = 16, MOST_STREAMS = 256, MOST_PINGS = 1 << 20 };
/* Messages under way, and posted between two looks for completions */
enum { JOIN_DEPTH = 8, BURST = 4, PING_BYTES = 64 };
enum { MOST_JOINS = 16, MOST_PHASES = 2 * MOST_JOINS - 1, MOST_SECONDS = 600 };
/* After which a stream that has joined or left is to have had its effect */
static const double settled = 0.2;

struct stream {
	struct ibv_qp *qp, *peer;
	int poster, target;
	uint64_t bytes;
	uint32_t flying;
	bool ping;
	enum ibv_wc_status died;
};

static struct {
	int n, timeout;
	uint32_t bytes, depth;
	double seconds;
	bool read, ping, join;
} how = { .n = 1, .timeout = 14, .bytes = 65536, .depth = 128 };

static struct vt_dev devs[1 + MOST_DEVICES];
static struct ibv_mr *mr[1 + MOST_DEVICES];
static struct ibv_cq *cq[1 + MOST_DEVICES];
static struct ibv_comp_channel *channel[1 + MOST_DEVICES];
static int nr_devs;

static struct stream streams[MOST_STREAMS + 1];
static uint64_t phase_bytes[MOST_PHASES][MOST_JOINS];
static uint64_t second_bytes[MOST_SECONDS][MOST_STREAMS];
static double ping_sent, *pings;
static int nr_pings;
/* of a clock that nobody sets, and of the one that others tell the time by */
static double start, start_of_day;

static void usage(void)
{
	vt_die(VT_SETUP, "arguments: [-n STREAMS] [-b BYTES] [-d DEPTH] [-t TIMEOUT] [-r] [-p] [-j] SECONDS TO IP FROM IP [FROM IP]...");
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "n:b:d:t:rpj")) != -1) {
		switch (c) {
		case 'n': how.n = atoi(optarg); break;
		case 'b': how.bytes = atoi(optarg); break;
		case 'd': how.depth = atoi(optarg); break;
		case 't': how.timeout = atoi(optarg); break;
		case 'r': how.read = true; break;
		case 'p': how.ping = true; break;
		case 'j': how.join = true; break;
		default: usage();
		}
	}
	if (argc - optind < 5 || (argc - optind) % 2 == 0 || how.n < 0 || how.n > MOST_STREAMS || !how.bytes || !how.depth)
		usage();
	if (how.join)
		how.depth = JOIN_DEPTH;
	how.seconds = atof(argv[optind]);
	if (how.seconds <= 0 || (how.join && (how.n > MOST_JOINS || how.seconds <= 2 * settled)))
		usage();
	for (optind++; optind < argc && nr_devs <= MOST_DEVICES; optind += 2)
		vt_open(&devs[nr_devs++], argv[optind], argv[optind + 1], -1);
}

/* --- queue pairs --- */

static void make_device(int i)
{
	mr[i] = vt_mr(&devs[i], how.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	channel[i] = ibv_create_comp_channel(devs[i].ctx);
	if (!channel[i] || fcntl(channel[i]->fd, F_SETFL, O_NONBLOCK))
		vt_die(VT_SETUP, "completion channel: %s", strerror(errno));
	cq[i] = vt_create_channel_cq(&devs[i], min(devs[i].attr.max_cqe, (how.n + 1) * (int)how.depth), channel[i], 0);
}

static void bring_up(struct ibv_qp *qp, int end, const struct ibv_qp *peer, int peer_end)
{
	struct vt_conn c = {
		.peer = { .qpn = peer->qp_num, .gid = devs[peer_end].gid },
		.mtu = min(devs[end].port.active_mtu, devs[peer_end].port.active_mtu),
		.rd_atomic = how.read ? min(devs[end].attr.max_qp_rd_atom, 16) : 1,
		.timeout = how.timeout, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
	};
	int err = vt_bring_up(qp, &devs[end], VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE, &c);

	if (err)
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(err));
}

static void make_stream(int i)
{
	struct stream *s = &streams[i];

	int from;

	s->ping = i == how.n;
	from = s->ping ? 1 : 1 + i % (nr_devs - 1);
	s->poster = how.read && !s->ping ? 0 : from;
	s->target = from - s->poster;
	s->qp = vt_new_qp(&devs[s->poster], IBV_QPT_RC, cq[s->poster], how.depth, 1);
	s->peer = vt_new_qp(&devs[s->target], IBV_QPT_RC, cq[s->target], 1, 1);
	bring_up(s->qp, s->poster, s->peer, s->target);
	bring_up(s->peer, s->target, s->qp, s->poster);
}

static int nr_streams(void)
{
	return how.n + how.ping;
}

/* --- phases: all of it is one, but where streams join and leave --- */

static int nr_phases(void)
{
	return how.join ? 2 * how.n - 1 : 1;
}

static bool is_there(int stream, int phase)
{
	return !how.join || (stream <= phase && phase < stream + how.n);
}

static void count(int stream, double now)
{
	int phase = (int)(now / how.seconds);

	if (phase >= nr_phases())
		return;
	streams[stream].bytes += how.bytes;
	if ((int)now < MOST_SECONDS)
		second_bytes[(int)now][stream] += how.bytes;
	if (how.join && now - phase * how.seconds >= settled)
		phase_bytes[phase][stream] += how.bytes;
}

/* --- traffic --- */

static void post(int i)
{
	struct stream *s = &streams[i];
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr[s->poster]->addr,
		.length = s->ping ? PING_BYTES : how.bytes,
		.lkey = mr[s->poster]->lkey,
	};
	struct ibv_send_wr *bad, wr = vt_request(&sge, i, how.read && !s->ping ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
	int err;

	wr.wr.rdma.remote_addr = (uintptr_t)mr[s->target]->addr;
	wr.wr.rdma.rkey = mr[s->target]->rkey;
	if (s->ping)
		ping_sent = vt_now();
	err = ibv_post_send(s->qp, &wr, &bad);
	if (err)
		vt_die(VT_WRONG, "post: %s", strerror(err));
	s->flying++;
}

/*
 * Post what the streams have room for, or a part of that: completions are looked for in between.
 * Return: whether there is room for more.
 */
static bool post_some(double now)
{
	bool more = false;

	for (int i = 0; i < nr_streams(); i++) {
		struct stream *s = &streams[i];
		uint32_t room = s->ping ? 1 : how.depth;

		if (s->died || (!s->ping && !is_there(i, (int)(now / how.seconds))))
			continue;
		for (int burst = 0; burst < BURST && s->flying < room; burst++)
			post(i);
		more |= s->flying < room;
	}
	return more;
}

static void done(const struct ibv_wc *wc, double now)
{
	struct stream *s = &streams[wc->wr_id];

	s->flying--;
	if (wc->status) {
		if (!s->died)
			s->died = wc->status;
		return;
	}
	if (s->ping) {
		if (nr_pings < MOST_PINGS)
			pings[nr_pings++] = (now - (ping_sent - start)) * 1e6;
		return;
	}
	/* What is on its way when the time is up does not count */
	count(wc->wr_id, now);
}

static void take(int dev)
{
	struct ibv_wc wc[64];
	struct ibv_cq *ready;
	void *context;
	int n;

	while (!ibv_get_cq_event(channel[dev], &ready, &context))
		ibv_ack_cq_events(ready, 1);
	ibv_req_notify_cq(cq[dev], 0);
	while ((n = ibv_poll_cq(cq[dev], ARRAY_SIZE(wc), wc)) > 0)
		for (int i = 0; i < n; i++)
			done(&wc[i], vt_now() - start);
}

/* Sleep until there is a completion, or that long */
static void take_all(double seconds)
{
	struct pollfd fds[1 + MOST_DEVICES];

	for (int i = 0; i < nr_devs; i++)
		fds[i] = (struct pollfd){ .fd = channel[i]->fd, .events = POLLIN };
	poll(fds, nr_devs, seconds > 0 ? (int)(seconds * 1000) + 1 : 0);
	for (int i = 0; i < nr_devs; i++)
		if (fds[i].revents)
			take(i);
}

static double time_of_day(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void run(void)
{
	double now = 0, end = nr_phases() * how.seconds;

	for (int i = 0; i < nr_devs; i++)
		ibv_req_notify_cq(cq[i], 0);
	start = vt_now();
	start_of_day = time_of_day();
	printf("started\n");
	fflush(stdout);
	while (now < end) {
		take_all(post_some(now) ? 0 : min(end - now, settled));
		now = vt_now() - start;
	}
}

/* --- results --- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void tell_stream(int i)
{
	const struct stream *s = &streams[i];

	if (s->died)
		printf("died %d %s\n", i, ibv_wc_status_str(s->died));
	else
		printf("rate %d %.3f\n", i, s->bytes / (how.seconds * (how.join ? how.n : 1)) / 1e6);
}

static void tell_seconds(void)
{
	for (int second = 0; second < min((int)how.seconds, MOST_SECONDS) && !how.join; second++)
		for (int i = 0; i < how.n; i++)
			printf("second %d %d %.3f\n", second, i, second_bytes[second][i] / 1e6);
}

static void tell_window(void)
{
	double all = nr_phases() * how.seconds;

	printf("window %.6f-%.6f\n", start_of_day + all / 4, start_of_day + all * 3 / 4);
}

static void tell_phases(void)
{
	for (int phase = 0; phase < nr_phases(); phase++)
		for (int i = 0; i < how.n; i++)
			if (is_there(i, phase))
				printf("phase %d %d %.3f\n", phase, i, phase_bytes[phase][i] / (how.seconds - settled) / 1e6);
}

static void tell_pings(void)
{
	static const int percentiles[] = { 50, 99, 100 };

	qsort(pings, nr_pings, sizeof(*pings), compare);
	for (size_t i = 0; nr_pings && i < ARRAY_SIZE(percentiles); i++)
		printf("ping %d %.1f\n", percentiles[i], pings[(size_t)(nr_pings - 1) * percentiles[i] / 100]);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	pings = malloc(MOST_PINGS * sizeof(*pings));
	if (!pings)
		vt_die(VT_SETUP, "no memory");
	for (int i = 0; i < nr_devs; i++)
		make_device(i);
	for (int i = 0; i < nr_streams(); i++)
		make_stream(i);
	run();
	for (int i = 0; i < how.n; i++)
		tell_stream(i);
	tell_seconds();
	tell_window();
	if (how.ping)
		tell_pings();
	if (how.join)
		tell_phases();
	return 0;
}
