// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * silent_slow: who waits for something else as well when the peer falls silent: for the time of the next packet, by a
 * rate limit or by congestion, or for a packet that is missing. Both waits have to come to an end.
 */
#include <errno.h>

#include "silent.h"

#define ROOM (64 * 1024)
#define PACKET 1024

/* kbit/s, of packets of 1068 bytes: one in 85 ms */
#define RATE 100
#define PACKET_TIME ((PACKET + 44) * 8 / (RATE * 1e3))

static struct ibv_mr *from, *to;

static void write_to(uint32_t len)
{
	int err = post_op(&a, 1, IBV_WR_RDMA_WRITE, local(from), len, remote(to));

	if (err)
		vt_die(VT_WRONG, "WRONG: post: %s", strerror(err));
}

static void works(const char *what)
{
	struct ibv_wc wc;

	write_to(100);
	if (!poll_one(a.send_cq, &wc, 10 * slow) || wc.status)
		vt_die(VT_WRONG, "WRONG: %s: does not work while the peer answers", what);
}

static void connected(uint8_t timeout, uint8_t retry_cnt)
{
	network("SPEAK");
	ends_how.timeout = timeout;
	ends_how.retry_cnt = retry_cnt;
	ends_fresh(IBV_QPT_RC);
}

/*
 * All requests that were posted end, the first one for want of answers, not before @least seconds have passed and not
 * after @most, on a machine that is in time
 */
static void is_given_up(const char *what, int posted, double start, double least, double most)
{
	int n, status = -1, flushed = 0;
	struct ibv_wc wc;
	double took;

	if (poll_one(a.send_cq, &wc, 2 * most + slow))
		status = wc.status;
	took = vt_now() - start;
	for (n = 1; n < posted && poll_one(a.send_cq, &wc, slow); n++)
		flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
	vt_check(status == IBV_WC_RETRY_EXC_ERR && took > 0.95 * least && took < 2 * most + slow,
		 "%s: %s after %.3f s, expected after %.3f to %.3f s", what,
		 status < 0 ? "nothing" : ibv_wc_status_str(status), took, least, most);
	vt_check(flushed == posted - 1 && vt_state(a.qp) == IBV_QPS_ERR, "%s: all others end with it: %d of %d", what, flushed,
		 posted - 1);
}

/* --- less than a packet in a timeout ---------------------------------------------------------------- */

/* Each time that something is sent again may have to wait for the time of a packet */
static double patience_at(double packet_time, uint8_t timeout, uint8_t retry_cnt)
{
	return patience(timeout, retry_cnt) + (retry_cnt + 2) * packet_time;
}

/* The timeouts are 17, 34 and 67 ms: in none of them the rate has time for a packet */
static void by_rate_limit(const char *what, uint32_t len)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = RATE };
	double start;
	int err;

	connected(12, 3);
	works(what);
	err = ibv_modify_qp_rate_limit(a.qp, &rate);
	if (err)
		vt_die(VT_WRONG, "WRONG: %s: rate limit: %s", what, strerror(err));
	network("SILENCE");
	start = vt_now();
	write_to(len);
	is_given_up(what, 1, start, patience(12, 3), patience_at(PACKET_TIME, 12, 3));
}

/* Until congestion leaves a packet in 10 ms or so; false when it does not come to that */
static bool slow_down(void)
{
	double start = vt_now(), begun;
	struct ibv_wc wc;

	while (vt_now() < start + 10 * slow) {
		begun = vt_now();
		write_to(8 * PACKET);
		if (!poll_one(a.send_cq, &wc, 10 * slow) || wc.status)
			return false;
		if (vt_now() - begun > 0.05)
			return true;
	}
	return false;
}

/*
 * All packets of ours get there with a mark, and the peer tells us so. A timeout is shorter than the time of a packet, but so
 * that a machine that is busy keeps to all of them together while the peer answers.
 */
static void by_congestion(void)
{
	static const char what[] = "slow for congestion, then silent";
	const uint8_t timeout = slow > 1 ? 13 : 11, retry_cnt = 7;
	long before = vt_counter(a.dev, "rp_cnp_handled"), told;
	double start;
	bool slowed;

	connected(timeout, retry_cnt);
	works(what);
	network("MARK");
	slowed = slow_down();
	told = vt_counter(a.dev, "rp_cnp_handled") - before;
	vt_check(slowed && told > 0, "%s: it has slowed down, and was told %ld times", what, told);
	network("SILENCE");
	start = vt_now();
	write_to(16 * PACKET);
	is_given_up(what, 1, start, patience(timeout, retry_cnt), patience_at(0.01, timeout, retry_cnt));
}

/* --- a packet that is missing ------------------------------------------------------------------------- */

/* How many messages, of eight packets each, wait behind the one that is missing */
#define BEHIND 8

/* what the peer's device has counted beyond @before; waits for as many as @least */
static long counted(const char *counter, long before, long least)
{
	double start = vt_now();
	long n;

	do
		n = vt_counter(b.dev, counter) - before;
	while (n < least && vt_now() < start + 5 * slow);
	return n;
}

/* The peer holds what is behind a hole, and says so, but nothing gets here any more */
static void hold_behind_hole(const char *what)
{
	long before = vt_counter(b.dev, "rx_held_packets"), n;
	int i;

	network("HOLE");
	write_to(100);
	for (i = 0; i < BEHIND; i++)
		write_to(8 * PACKET);
	/* not all, perhaps: the window may be too small for that */
	n = counted("rx_held_packets", before, BEHIND);
	vt_check(n >= BEHIND, "%s: %ld packets are held behind it", what, n);
}

static void hole_stays(void)
{
	static const char what[] = "a hole that stays";
	long before = vt_counter(b.dev, "rx_held_dropped_packets"), n;
	double start;

	/* a quarter of a second and more for each timeout, so that all have arrived */
	connected(16, 1);
	works(what);
	start = vt_now();
	hold_behind_hole(what);
	is_given_up(what, BEHIND + 1, start, patience(16, 1), patience(16, 1) + slow);
	/* two seconds after they came; nobody tells the peer that there will be no more */
	n = counted("rx_held_dropped_packets", before, BEHIND);
	vt_check(n >= BEHIND && vt_now() - start > 1.9, "%s: what was held is dropped, but not at once: %ld packets", what,
		 n);
	vt_check(vt_state(b.qp) == IBV_QPS_RTS, "%s: the responder is as it was", what);
}

static void hole_is_destroyed(void)
{
	static const char what[] = "a hole, and the responder is destroyed";
	double start;
	int err;

	connected(16, 7);
	works(what);
	hold_behind_hole(what);
	start = vt_now();
	err = ibv_destroy_qp(b.qp);
	b.qp = NULL;
	if (!err)
		err = ibv_dereg_mr(to);
	vt_check(!err && vt_now() - start < 1.5 * slow, "%s: at once, with its memory: %.3f s", what, vt_now() - start);
	to = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
}

void silent_slow(void)
{
	from = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	to = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	by_rate_limit("less than a packet in a timeout, and one packet", PACKET);
	by_rate_limit("less than a packet in a timeout, and 16 packets", 16 * PACKET);
	by_congestion();
	hole_stays();
	hole_is_destroyed();
	ends_stop();
	vt_mr_free(from);
	vt_mr_free(to);
}
