/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two QPs of two devices, connected through a fake network or directly, and
 * what a consumer does with them: post, poll, wait.
 */
#ifndef SROCE_TESTS_TRANSPORT_PAIR_H
#define SROCE_TESTS_TRANSPORT_PAIR_H

#include <kunit/test.h>

#include "compat.h"
#include "memory/pd.h"
#include "tests/fake_net.h"
#include "transport/internal.h"
#include "transport/qp.h"

/* Number of each side's address handle, which leads to the other one */
#define PAIR_AHN 1

#define PAIR_MEM_ORDER 9
#define PAIR_MEM (PAGE_SIZE << PAIR_MEM_ORDER)

#define PAIR_MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
			IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define PAIR_ALL_ACCESS (PAIR_MR_ACCESS | IB_ACCESS_FLUSH_GLOBAL)

struct pair;

/**
 * struct side - one of the two hosts
 * @pair: both
 * @port: its device
 * @domain: protection domain of @qp and @mr
 * @pd: the same, as ib_core knows it
 * @other_domain: another one
 * @other_pd: the same, as ib_core knows it
 * @ibqp: what ib_core would know
 * @scq: completions of the send queue
 * @rcq: completions of the receive queue
 * @srq: shared receive queue, when the pair was made with one
 * @xrcd: XRC domain of @qp and @srq
 * @qp: the QP
 * @path: to the other side
 * @ah: address handle for that, PAIR_AHN
 * @mem: PAIR_MEM bytes
 * @mr: all of the kernel's memory, every right
 * @events: how often each event of the QP, its queues or SRQ was raised
 * @notified: how often a completion handler was called
 */
struct side {
	struct pair *pair;
	struct sroce_port port;
	union {
		struct sroce_pd domain;
		struct ib_pd pd;
	};
	union {
		struct sroce_pd other_domain;
		struct ib_pd other_pd;
	};
	struct ib_qp ibqp;
	struct sroce_cq scq;
	struct sroce_cq rcq;
	struct sroce_srq srq;
	struct ib_xrcd xrcd;
	struct sroce_qp *qp;
	struct fake_path path;
	struct sroce_ah_entry *ah;
	u8 *mem;
	struct sroce_mr *mr;
	atomic_t events[IB_EVENT_WQ_FATAL + 1];
	atomic_t notified;
};

/**
 * struct pair_config - how to make a pair; 0 stands for the usual
 * @type: of both QPs (IB_QPT_RC); IB_QPT_XRC_INI: side 1 is its target
 * @direct: no network between them
 * @sig_all: every send completes with a completion
 * @srq: both use a shared receive queue
 * @tags: both have as many tagged buffers at most, in such a queue
 * @mtu: path MTU (IB_MTU_1024)
 * @depth: entries of every queue (64)
 * @cq_depth: entries of the completion queues (4 * @depth)
 * @psn: first PSN of side 0; that of side 1 is a bit more (0x123456)
 * @rd_atomic: READs and atomics outstanding (8)
 * @retry: retry count (7); -1 for 0
 * @rnr_retry: receiver-not-ready retry count (7); -1 for 0
 * @timeout: local ACK timeout (20: none but the test's loop ever expires)
 * @access: rights of the QPs (all); -1 for none
 * @window: PSNs outstanding (what the driver chooses)
 * @seed: of the network's chances
 * @batch: most packets that arrive together (8)
 * @plain: both recover from loss by go-back-N
 * @probes: both ask after a tail that may be lost
 * @obeys: both slow down when told, to 1 Gbit/s at the least
 */
struct pair_config {
	enum ib_qp_type type;
	bool direct;
	bool sig_all;
	bool srq;
	u32 tags;
	enum ib_mtu mtu;
	u32 depth;
	u32 cq_depth;
	u32 psn;
	u32 rd_atomic;
	int retry;
	int rnr_retry;
	u8 timeout;
	int access;
	u32 window;
	u64 seed;
	u32 batch;
	bool plain;
	bool probes;
	bool obeys;
};

/**
 * struct pair - the two sides
 * @test: whose
 * @net: between them
 * @side: host a is 0, host b is 1
 * @config: with nothing left out
 * @mtu: bytes of a packet
 * @expired: how often a timer was made to fire
 */
struct pair {
	struct kunit *test;
	struct fake_net net;
	struct side side[2];
	struct pair_config config;
	u32 mtu;
	u32 expired;
};

/* A send work request in the form of the ring */
struct work {
	struct ib_send_wr wr;
	struct sroce_send_wqe wqe;
	struct sroce_sge sge[SROCE_MAX_SGE + 1];
	const void *inline_data;
};

/* What an administrator finds who switches congestion control on */
extern const struct sroce_congestion pair_congestion;

/* Make a pair in RTS; it ends with the test. Fails the test when it cannot. */
struct pair *pair_create(struct kunit *test, const struct pair_config *config);

/* kunit_suite.exit: ends what pair_create() made, also of a test that failed */
void pair_exit(struct kunit *test);

static inline struct side *pair_peer(struct side *s)
{
	return &s->pair->side[s == s->pair->side];
}

/* Change state with exactly the attributes of @mask; fails the test */
void side_modify(struct side *s, struct ib_qp_attr *attr, int mask);
void side_to_error(struct side *s);
void side_to_reset(struct side *s);
/* From RESET to INIT, RTR, RTS */
void side_to_init(struct side *s);
void side_to_rtr(struct side *s);
void side_to_rts(struct side *s);
void side_to_sqd(struct side *s, bool notify);
/* Both to RESET, and to RTS again: a new connection */
void pair_reconnect(struct pair *p);

static inline enum ib_qp_state side_state(const struct side *s)
{
	return sroce_qp_state(s->qp);
}

static inline u32 side_events(struct side *s, enum ib_event_type type)
{
	return atomic_read(&s->events[type]);
}

static inline u64 side_count(struct side *s, enum sroce_counter id)
{
	return sroce_counter_read(s->port.net.counters, id);
}

/* --- work requests ------------------------------------------------------- */

/* Local and remote ranges are given by their offset in the sides' memory */
struct work *work_init(struct work *w, u8 opcode, u64 wr_id);
void work_local(struct side *s, struct work *w, u32 off, u32 len);
void work_remote(struct side *s, struct work *w, u32 off);
void work_atomic(struct side *s, struct work *w, u32 off, u64 compare_add,
		 u64 swap);

/* All of it, as far as the operation has that: one local element of @len bytes, signaled */
struct work *work_rdma(struct side *s, struct work *w, u8 opcode, u64 wr_id,
		       u32 local, u32 remote, u32 len);
struct work *work_send(struct side *s, struct work *w, u64 wr_id, u32 local,
		       u32 len);

int side_try_post(struct side *s, struct work *w);
void side_post(struct side *s, struct work *w);

/* A receive work request of one element, given by its offset in the side's memory */
struct recv {
	struct ib_recv_wr wr;
	struct ib_sge sge;
};

const struct ib_recv_wr *recv_init(struct recv *r, struct side *s, u64 wr_id,
				   u32 off, u32 len);

int srq_try_recv(struct sroce_srq *srq, const struct ib_recv_wr *wr);
int side_try_recv(struct side *s, const struct ib_recv_wr *wr);
void side_recv(struct side *s, u64 wr_id, u32 off, u32 len);

/**
 * side_another_qp() - make another QP of a side's host, with the side's queues
 * @s: side
 * @ibqp: what ib_core would know of it, zeroed; NULL: it is of no interest
 * @init: its type, capacities and SRQ; completion queues are filled in
 *
 * Return: the QP, which the test destroys. It has no path.
 */
struct sroce_qp *side_another_qp(struct side *s, struct ib_qp *ibqp,
				 struct ib_qp_init_attr *init);

/* --- completions --------------------------------------------------------- */

/* Take one completion; false when there is none */
bool side_poll(struct sroce_cq *cq, struct ib_wc *wc);

/* The same, as a process finds it */
bool side_poll_cqe(struct sroce_cq *cq, struct sroce_cqe *cqe);

/**
 * pair_wait() - let time pass until a completion queue has completions
 * @p: pair
 * @cq: queue
 * @n: number of completions
 *
 * Delivers packets; when none is under way, the timer that is due first fires.
 * Return: false when nothing happens any more, or never ends.
 */
bool pair_wait(struct pair *p, struct sroce_cq *cq, u32 n);

/* Deliver packets or let a timer fire; false when nothing would ever happen */
bool pair_step(struct pair *p);

/* Wait for a rate: false when none keeps anybody from sending */
bool pair_paced(struct pair *p);

/* Let time pass until nothing would happen any more by itself */
void pair_settle(struct pair *p);

/* Deliver what is under way, but let no timer fire */
void pair_deliver(struct pair *p);

/*
 * A moment has passed: see whether the receive has come that a side's request waits
 * for. False when none waits. It happens by itself when nothing is under way, unless
 * the test has set @net.idle to NULL: then time stands still.
 */
bool side_look(struct side *s);

/*
 * Let a side ask now for what is missing, or give up what it holds; false when it does
 * not wait for that
 */
bool side_ask(struct side *s);
bool side_grow_old(struct side *s);

/* Let a side ask again now for a response that is missing; false when it does not wait for that */
bool side_ask_again(struct side *s);

/* A side looks once at what it holds; what is there at the next look is given up */
void side_look_held(struct side *s);

/* Let the timer of a side fire now; false when nothing is to time out */
bool side_expire(struct side *s);

/* Likewise for a tail that is asked after; false when nothing is */
bool side_probe(struct side *s);

/* Where side_write() writes from and to: not at the beginning of a page */
#define SIDE_FROM 0x1003
#define SIDE_TO 0x80005

/* An RDMA WRITE of what follows from @id, and its end */
void side_write(struct side *s, u64 id, u32 len);
void side_expect_written(struct side *s, u64 id, u32 len);

/* Does a side's ACK wait for a request to go with? */
bool side_holds_ack(const struct side *s);

/* Wait for one completion; it must have this wr_id and status */
void side_expect(struct side *s, struct sroce_cq *cq, u64 wr_id,
		 enum ib_wc_status status, struct ib_wc *wc);

static inline void side_expect_send(struct side *s, u64 wr_id,
				    enum ib_wc_status status)
{
	struct ib_wc wc;

	side_expect(s, &s->scq, wr_id, status, &wc);
}

static inline void side_expect_recv(struct side *s, u64 wr_id,
				    enum ib_wc_status status)
{
	struct ib_wc wc;

	side_expect(s, &s->rcq, wr_id, status, &wc);
}

/* Nothing is left in a side's completion queues */
void side_expect_none(struct side *s);

/* --- packets ------------------------------------------------------------- */

/**
 * struct rule - what shall happen to some of the packets
 * @from: who sends them; NULL ends a list of rules
 * @op: kind of packet
 * @psn: only this one, when @by_psn
 * @by_psn: @psn counts
 * @skip: so many are let through first
 * @count: so many are meant, 0: all
 * @verdict: what happens
 * @hits: how many it happened to
 */
struct rule {
	struct side *from;
	u8 op;
	u32 psn;
	bool by_psn;
	u32 skip;
	u32 count;
	enum fake_verdict verdict;
	u32 hits;
};

/* A rule for the packet with @psn, the first @count times that it is sent; 0: each time */
struct rule rule_psn(struct side *from, u8 op, u32 psn, u32 count,
		     enum fake_verdict verdict);
/* A rule for @count packets after the first @skip; 0: for all of them */
struct rule rule_nth(struct side *from, u8 op, u32 skip, u32 count,
		     enum fake_verdict verdict);

/* Apply a list of rules to packets from now on; NULL: none any more */
void pair_rules(struct pair *p, struct rule *rules);

/* How many packets like this a side has sent; @syndrome < 0: whichever */
u32 side_sent(struct side *s, u8 op, int syndrome);

/* The @n-th of them (from 0), or NULL */
const struct fake_log *side_sent_nth(struct side *s, u8 op, int syndrome,
				     u32 n);

/* An only packet from a side to the other one, for fake_net_inject() */
struct sroce_train side_train(struct side *from, u8 op, u32 psn);
void side_inject(struct side *from, const struct sroce_train *t);

/* The same for an ACK, NAK or RNR NAK */
void side_inject_ack(struct side *from, u8 syndrome, u32 psn);

/* PSN of the first packet that a side sends */
u32 side_first_psn(const struct side *s);

/* --- data ---------------------------------------------------------------- */

/* Bytes that differ from place to place and from one @seed to the next */
void side_fill(struct side *s, u32 off, u32 len, u32 seed);
bool side_filled(struct side *s, u32 off, u32 len, u32 seed);

#endif
