/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs: the object, its two halves, and what the verbs may do with it.
 *
 * A QP has a requester half (send queue; sends requests, takes responses) and a
 * responder half (receive queue; takes requests, sends responses). Each has its
 * own lock, so both directions run at once. Lock order: requester, responder,
 * completion queue. See Documentation/architecture.md.
 */
#ifndef SROCE_TRANSPORT_QP_H
#define SROCE_TRANSPORT_QP_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>

#include "memory/odp.h"
#include "memory/pinned.h"
#include "memory/ring.h"
#include "timer.h"
#include "transport/cq.h"
#include "transport/events.h"
#include "transport/port.h"
#include "transport/seam.h"
#include "transport/srq.h"
#include "transport/uncharged.h"
#include "wire/train.h"

#define SROCE_MAX_RD_ATOMIC 128

/* Multicast groups of a device, and QPs in one of them */
#define SROCE_MAX_GROUPS 8192
/* Groups that are kept for the kernel and for processes with CAP_SYS_RESOURCE */
#define SROCE_RESERVED_GROUPS (SROCE_MAX_GROUPS / 8)
#define SROCE_MAX_GROUP_QPS 1024

struct sroce_qp;

/**
 * struct sroce_fault_place - where pages were missing
 * @va: first byte
 * @key: of their region; 0: nowhere
 * @write: they are to be written to
 */
struct sroce_fault_place {
	u64 va;
	u32 key;
	bool write;
};

/**
 * struct sroce_fault - pages being brought in for a half of a QP
 * @want: which pages; in use while @running
 * @place: where they are, or were the last time
 * @failed: pages there could not be had, and the next access to them is an error. Whatever
 *	else misses pages before that does not change it.
 * @running: process context is at it
 * @waiting: the half has something to do when it has ended: send the READ
 *	again whose response found no page, or ask the peer for its request
 * @same: they are those that were brought in last
 * @fresh: the responder: this was begun since it has looked
 * @told: likewise: the peer was told to wait with the request at @psn
 * @again: likewise: so often that request has found the same pages gone again
 * @psn: the responder: of the request that was the last to wait for pages
 * @since: the responder: when that request has met the first of them, in ns; 0: none
 *	has yet
 */
struct sroce_fault {
	struct sroce_want want;
	struct sroce_fault_place place;
	struct sroce_fault_place failed;
	bool running;
	bool waiting;
	bool same;
	bool fresh;
	bool told;
	u8 again;
	u32 psn;
	u64 since;
};

/**
 * struct sroce_qp_kind - what a type of QP is
 * @service: of its packets
 * @acked: requests are acknowledged, and sent again when they are not
 * @receives: it has a receive queue, its own or a shared one
 * @train_flags: that every request has
 * @posts: a bit for each SROCE_WR_x that may be posted
 * @kernel_posts: likewise, by kernel users only
 * @raw: Ethernet frames instead of packets of RoCE
 * @tags: it receives from a shared receive queue that matches tags
 */
struct sroce_qp_kind {
	u8 service;
	bool acked;
	bool receives;
	bool raw;
	bool tags;
	u16 train_flags;
	u64 posts;
	u64 kernel_posts;
};

/**
 * struct sroce_half - what requester and responder have in common
 * @node: on a CPU's run list
 * @kicked: or on its way there, from any context
 * @queued: one of these two is in use
 * @inbox_lock: protects @inbox and @inbox_lent; innermost
 * @inbox_len: number of all in @inbox
 * @inbox: trains from QPs of this host, in order
 * @inbox_lent: those of them that point to their sender's memory
 * @lock: bottom halves off; protects the half
 * @starved: waits until less of the QP is in the stack
 * @stalled: has waited in vain: what it sends meanwhile is lost
 * @sent_on: CPU in whose queue of the stack its newest packets may be; nr_cpu_ids: none
 * @sent_at: when that was, in jiffies
 * @sent_bytes: what it has sent to the network while congestion control was on, as
 *	sroce_pace_bytes() counts; wraps
 * @qp: the QP
 * @run: handle the inbox, then send; called with @lock held; true when there
 *	is more to do
 * @fault: pages that it waits for
 *
 * Whoever has something for the half writes the first part, whoever runs it the rest.
 */
struct sroce_half {
	union {
		struct list_head node;
		struct llist_node kicked;
	};
	unsigned long queued;
	spinlock_t inbox_lock;
	u32 inbox_len;
	struct list_head inbox;
	struct list_head inbox_lent;
	spinlock_t lock ____cacheline_aligned_in_smp;
	bool starved;
	bool stalled;
	unsigned int sent_on;
	unsigned long sent_at;
	unsigned long sent_bytes;
	struct sroce_qp *qp;
	bool (*run)(struct sroce_half *half);
	struct sroce_fault fault;
} ____cacheline_aligned_in_smp;

/**
 * struct sroce_gap - where a stream of packets with one missing was seen
 * @first: PSN of the packet that told of the gap
 * @high: highest PSN since
 */
struct sroce_gap {
	u32 first;
	u32 high;
};

/* How far a send work request has come */
enum sroce_swqe_state {
	SROCE_SWQE_READY,	/* fetched, nothing sent */
	SROCE_SWQE_SENT,	/* its first packet has left */
	SROCE_SWQE_QUIET,	/* key invalidated, its last users not gone */
	SROCE_SWQE_DONE,	/* waits for earlier ones to complete */
};

/**
 * struct sroce_swqe - the kernel's own copy of a send work request
 * @state: progress
 * @op: wire operation, SROCE_OP_NONE for a local one
 * @first_psn: PSN of its first packet, once sent
 * @npsn: PSNs it takes
 * @length: bytes of the message
 * @chunk: READ: PSNs that one request asks for
 * @lent: its trains in inboxes, when no ACK will tell that they have been taken
 * @status: why it cannot be sent, an ib_wc_status; the QP fails when all
 *	earlier ones are complete
 * @user: a process has written it
 * @inline_data: in the ring, of SROCE_SEND_INLINE
 * @wqe: validated copy of the header
 * @sge: copy of the elements, as many as the QP may have
 */
struct sroce_swqe {
	u8 state;
	u8 op;
	u8 status;
	bool user;
	u32 first_psn;
	u32 npsn;
	u32 length;
	u32 chunk;
	atomic_t lent;
	const void *inline_data;
	struct sroce_send_wqe wqe;
	struct sroce_sge sge[];
};

/**
 * struct sroce_rtt - the round trip to the peer (see rtt.c)
 * @at: when the packet before @psn was sent, in ns; 0: no measurement under way
 * @srtt: smoothed round trip, in ns; 0: not measured yet
 * @rttvar: its mean deviation, in ns
 * @min: shortest of the last seconds while the window was in use, in ns
 * @min_next: shortest such one since @min_since, in ns
 * @min_since: in jiffies
 * @sampled: when the newest measurement ended, in jiffies
 * @psn: an ACK up to here ends the measurement under way
 */
struct sroce_rtt {
	u64 at;
	u64 srtt;
	u64 rttvar;
	u64 min;
	u64 min_next;
	unsigned long min_since;
	unsigned long sampled;
	u32 psn;
};

/* So many round trips tell whether there is a queue that stays */
#define SROCE_QUEUEING_LAST 4

/**
 * struct sroce_queueing - what round trips tell of queues on the way (see queueing.c)
 * @last: the newest ones of a window in use, in ns, each in its turn; 0: none yet
 * @full: longest of those at which packets were lost, slowly forgotten, in ns; 0: none yet
 * @turn: where the newest one is
 */
struct sroce_queueing {
	u64 last[SROCE_QUEUEING_LAST];
	u64 full;
	u8 turn;
};

/**
 * struct sroce_trial - whether a larger window makes a stream faster (see trial.c)
 * @tried: when it was given up to make it larger, in jiffies, if @vain says so
 * @una: what was acknowledged when the measurement under way began
 * @speed: what has arrived in a time when that was most, in packets per 2^26 ns
 * @paid: the window then
 * @vain: round trips since, in which it was made larger
 */
struct sroce_trial {
	unsigned long tried;
	u32 una;
	u32 speed;
	u32 paid;
	u8 vain;
};

/**
 * struct sroce_pacer - a rate that is kept to (see pace.c)
 * @rate: bytes per second; 0: as fast as can be
 * @train_us: how long a train takes at that rate, if it is more than a packet
 * @next: when the next train may leave, in ns
 * @wake: when whoever waits for that is to look again; 0: nobody waits
 */
struct sroce_pacer {
	u64 rate;
	u32 train_us;
	u64 next;
	u64 wake;
};

/**
 * struct sroce_growth - what the window's size depends on (see window.c)
 * @min: shortest round trip seen while the window was in use, in ns
 * @part: bytes by which the window has grown, and which are no packet yet
 * @silent: ACK timeouts in a row
 * @blind: losses since the newest round trip that counts
 * @doubled: the window was, because of it
 * @used: it is in use: the measurement under way counts for it
 * @again: that is of packets that are sent again
 * @probed: and what it waits for was asked after
 * @limited: it has kept the requester from sending since that began
 * @lossy: packets were lost on this path
 */
struct sroce_growth {
	u64 min;
	u32 part;
	u8 silent;
	u8 blind;
	bool doubled;
	bool used;
	bool again;
	bool probed;
	bool limited;
	bool lossy;
};

/**
 * struct sroce_repair - what the peer misses is sent again, and no more (see repair.c)
 * @active: the send cursor is in front of @end
 * @asked: it went back to @send_psn, and no answer shows yet whether that was enough
 * @expected: a NAK for what is sent again may still come
 * @lossy: what was in flight at a gap is not through: @lost_until is valid
 * @tries: parts that were sent again for this loss, and were not enough
 * @vain: losses in a row for which one was not enough
 * @size: packets that are sent again for a gap
 * @end: PSN behind the part that was sent again last
 * @send: ring index where the cursor goes on
 * @send_psn: PSN where it goes on
 * @lost_until: gaps before this PSN are of the same loss
 */
struct sroce_repair {
	bool active;
	bool asked;
	bool expected;
	bool lossy;
	u32 tries;
	u32 vain;
	u32 size;
	u32 end;
	u32 send;
	u32 send_psn;
	u32 lost_until;
};

/**
 * struct sroce_far - losses on a long path (see far.c)
 * @pace: spreads the window over a round trip
 * @full: window at which losses were dense, slowly forgotten; 0: none yet
 * @span: packets that were sent again for a gap of this loss, or are to be for the first one
 * @first: PSN of the first gap of the loss
 * @gaps: that the peer has told of behind that
 * @told: PSN of the newest of them
 * @dense: they are close to each other
 * @whole: because of that all is to be sent again, once
 * @late: what was missing at the first one came by itself
 * @used: the window was, when the loss began
 * @before: window then
 * @sure: it is to be seen whether that is so
 * @lost_at: when the peer has told of it, in ns
 * @resent: packets were sent again
 * @again: if so, PSN behind the newest of them
 * @from: where the part begins that was sent again last
 * @began: when that began, in ns
 * @behind: PSN behind the newest train of it
 * @last: when that was sent
 */
struct sroce_far {
	struct sroce_pacer pace;
	u32 full;
	u32 span;
	u32 first;
	u32 gaps;
	u32 told;
	bool dense;
	bool whole;
	bool late;
	bool sure;
	bool used;
	u32 before;
	bool resent;
	u64 lost_at;
	u32 again;
	u32 from;
	u64 began;
	u32 behind;
	u64 last;
};

/**
 * struct sroce_batch - whether a process posts a stream (see batch.c)
 * @timer: ends the wait for more
 * @waiting: @timer is going to fire
 * @average: posts between two looks at the completion queues
 * @mark: producer index at the last look
 * @consumed: what the process had consumed then
 * @last_len: bytes of the newest message fetched
 */
struct sroce_batch {
	struct sroce_timer timer;
	bool waiting;
	u32 average;
	u32 mark;
	u32 consumed;
	u32 last_len;
};

/* sroce_reaction.alpha when all packets meet congestion */
#define SROCE_ALPHA_ONE 65536

/**
 * struct sroce_reaction - the rate that congestion leaves to a QP (see reaction.c)
 * @limited: there is one: @rate. Read without a lock as well
 * @alpha: how much congestion there is, as a share of SROCE_ALPHA_ONE: what a cut takes
 *	twice of
 * @stage: how often the rate has risen since it was cut
 * @rate: bytes per second
 * @target: what @rate was before the cut, and is to become more than
 * @speed: what the QP sends, bytes per second
 * @cut_at: when the rate was cut, in ns, as all times here
 * @cut_sent: bytes that the QP had sent then, of a count that wraps
 * @cut_psn: and the PSN that was to be sent next
 * @cut_flies: what was in flight then is not all acknowledged
 * @decay_at: when @alpha became less
 * @stage_at: when the rate has risen
 * @used_at: when the QP was about to send something
 * @mark_at: when the QP had sent @mark_sent; 0: nobody has looked
 * @mark_sent: bytes, of a count that wraps
 */
struct sroce_reaction {
	bool limited;
	u32 alpha;
	u32 stage;
	u64 rate;
	u64 target;
	u64 speed;
	u64 cut_at;
	unsigned long cut_sent;
	u32 cut_psn;
	bool cut_flies;
	u64 decay_at;
	u64 stage_at;
	u64 used_at;
	u64 mark_at;
	unsigned long mark_sent;
};

/* The halves of a QP */
enum sroce_side {
	SROCE_REQUESTER,
	SROCE_RESPONDER,
};

/**
 * struct sroce_probe - the end of what is in flight is asked after (see probe.c)
 * @at: when; 0: not any more
 * @wait: ns that this is after what was last sent
 * @psn: PSN after the newest one, when the wait began
 * @back: the cursor has gone back to the last packet, which was not sent yet
 */
struct sroce_probe {
	u64 at;
	u64 wait;
	u32 psn;
	bool back;
};

/* What is known of whether a peer tells when packets arrive marked (see ecn.c) */
enum sroce_ecn_peer {
	SROCE_ECN_UNKNOWN,
	SROCE_ECN_ASKED,
	SROCE_ECN_TELLS,
	SROCE_ECN_SILENT,
};

/**
 * struct sroce_ecn - whether packets of a QP may be marked (see ecn.c)
 * @peer: enum sroce_ecn_peer; written under the lock of struct sroce_qp_congestion
 * @asked: how often the peer was
 * @asked_at: when it was asked last, in ns
 * @asked_sent: bytes that the QP had sent then, of a count that wraps
 */
struct sroce_ecn {
	u8 peer;
	u8 asked;
	u64 asked_at;
	unsigned long asked_sent;
};

/**
 * struct sroce_qp_congestion - what congestion does to a QP (see congestion.c)
 * @lock: innermost; both halves send at one rate. Only taken as long as there is one, and
 *	when there is news of congestion
 * @ecn: may packets be marked?
 * @reaction: the rate
 * @pace: keeps to it
 * @last: half that has sent last
 * @waits: halves that were told to wait, and have not looked since
 * @timer: has the responder run when the next READ response may leave
 */
struct sroce_qp_congestion {
	spinlock_t lock; /* see above */
	struct sroce_ecn ecn;
	struct sroce_reaction reaction;
	struct sroce_pacer pace;
	enum sroce_side last;
	bool waits[2];
	struct sroce_timer timer;
};

/**
 * struct sroce_held_trains - trains that are kept until what is before them has come (held.c)
 * @root: by PSN
 * @n: their number
 * @memory: that they take
 */
struct sroce_held_trains {
	struct rb_root_cached root;
	u32 n;
	struct sroce_uncharged_part memory;
};

/**
 * struct sroce_lateness - how late packets are that were overtaken (lateness.c)
 * @wait: how long a missing one is waited for before it is asked for, in ns
 * @took: how long one took that was asked for, of a loss the longest, in ns
 * @psn: and which that was, if @asked
 * @asked: a duplicate of it would tell that it was only late
 * @newest: it is of the newest loss
 * @vain: gaps in a row that were waited for in vain
 */
struct sroce_lateness {
	u64 wait;
	u64 took;
	u32 psn;
	bool asked;
	bool newest;
	u8 vain;
};

/**
 * struct sroce_early - responses that have come before one that is missing (early.c)
 * @open: something is missing, and has been asked for again or will be
 * @told: answers have come too early: @first is the oldest that is remembered as long as
 *	something before it is missing, @high the newest
 * @acked: an answer about @ack_psn has told that all before @ack_end has arrived, which lies
 *	behind what is missing
 * @partly: of what was missing when that began to be @told something has come
 * @armed: @timer runs
 * @repeats: how often something before @again was sent again, SROCE_EARLY_REPEATS_MOST: or more
 * @held: the responses
 * @timer: for looks at what is too old
 * @opened_at: when something was seen that was sent after what is missing, in ns
 * @asked_at: when it was asked for, in ns
 * @first_at: when @first came, in ns
 * @high_at: likewise @high
 * @lateness: for how long late ones are waited for
 * @psn: which is missing
 * @first: see @told
 * @high: likewise
 * @from: PSN that the last restart went back to
 * @from_at: when that was, in ns
 * @again: see @repeats
 * @ack_psn: see @acked
 * @ack_end: likewise
 */
struct sroce_early {
	bool open;
	bool told;
	bool acked;
	bool partly;
	bool armed;
	u8 repeats;
	struct sroce_held_trains held;
	struct sroce_timer timer;
	u64 opened_at;
	u64 asked_at;
	u64 first_at;
	u64 high_at;
	u64 from_at;
	struct sroce_lateness lateness;
	u32 psn;
	u32 first;
	u32 high;
	u32 from;
	u32 again;
	u32 ack_psn;
	u32 ack_end;
};

/**
 * struct sroce_requester - send queue and its engine
 * @half: lock, inbox
 * @ring: work requests as posted
 * @slots: private copies, one for each ring entry
 * @slot_size: bytes of one
 * @fetched: ring index of the next work request to copy
 * @send: ring index of the work request to send from
 * @reads: ring index before which no READ or atomic waits for its responses
 * @send_psn: PSN to send next, of the work request @send when that was begun
 * @next_psn: PSN after the newest one ever sent
 * @una_psn: oldest PSN neither acknowledged nor received
 * @rd_outstanding: READs and atomics sent and not answered
 * @window: most PSNs outstanding
 * @rtt: round trip to the peer
 * @growth: what @window depends on
 * @retries: left before the QP gives up
 * @rnr_retries: likewise for receiver-not-ready
 * @rnr_naks: answers "not ready" in a row
 * @rnr_wait: sending stops until the timer fires
 * @recover: PSN that the last restart went back to; @recovering tells if valid
 * @recovering: a restart took place and @recover was not answered yet
 * @retried: when a retry was counted last
 * @queued: bytes that were in queues of this host when it waited for room last, for as long as
 *	a timeout
 * @repair: the part of it that is sent again
 * @far: how much that is on a long path, and what losses tell there
 * @probe: when the end of it is asked after
 * @gap: responses of the stream before the restart, which may still arrive
 * @early: responses that wait for others
 * @asked: restarts since @una_psn last moved because a response was lost
 * @ask_at: when the next one may be, in ns
 * @ask_due: it was told to be lost before that, and so there will be one
 * @deadline: when the oldest unacknowledged packet times out; 0: nothing does
 * @timer: retransmission, or end of the RNR wait; and for @pace and @ask_at
 * @pace: rate limit it keeps to, and when the next train may leave
 * @batch: doorbells that need not be answered at once
 * @failed: the oldest work request has failed, and completes when nothing is lent
 * @key_looks: so often the work request that ends a key, or registers a region with
 *	protection information, has found somebody using the region
 * @drained_event: raise IB_EVENT_SQ_DRAINED when the queue has drained
 * @draining: in SQD and not drained yet
 * @pinned: whose pinned memory @slots are
 * @post_lock: serialises kernel posters; taken by sroce_lock()
 * @posted: kernel posters' producer index
 */
struct sroce_requester {
	struct sroce_half half;
	struct sroce_ring ring;
	void *slots;
	u32 slot_size;
	u32 fetched;
	u32 send;
	u32 reads;
	u32 send_psn;
	u32 next_psn;
	u32 una_psn;
	u32 rd_outstanding;
	u32 window;
	struct sroce_rtt rtt;
	struct sroce_growth growth;
	struct sroce_queueing queueing;
	struct sroce_trial trial;
	u8 retries;
	u8 rnr_retries;
	u8 rnr_naks;
	u8 key_looks;
	bool rnr_wait;
	bool recovering;
	bool failed;
	bool drained_event;
	bool draining;
	u8 asked;
	bool ask_due;
	u32 recover;
	struct sroce_repair repair;
	struct sroce_far far;
	struct sroce_probe probe;
	struct sroce_gap gap;
	struct sroce_early early;
	u64 ask_at;
	u64 retried;
	int queued;
	u64 deadline;
	struct sroce_timer timer;
	struct sroce_pacer pace;
	struct sroce_batch batch;
	struct sroce_pinned pinned;
	spinlock_t post_lock ____cacheline_aligned_in_smp;
	u32 posted;
};

/**
 * struct sroce_rd_res - a READ or atomic that the peer may ask for again
 * @op: what it was; SROCE_OP_NONE: unused
 * @psn: first PSN of the response
 * @npsn: PSNs of the response
 * @end: what an ACK was about when it was carried out (struct sroce_resp_ack)
 * @srqn: READ: shared receive queue that the request named (XRC)
 * @va: READ: address
 * @rkey: READ: key
 * @len: READ: bytes
 * @orig: atomic: value before
 */
struct sroce_rd_res {
	u8 op;
	u32 psn;
	u32 npsn;
	u32 end;
	u32 srqn;
	u32 rkey;
	u32 len;
	u64 va;
	u64 orig;
};

/**
 * struct sroce_rd_job - responses on their way out
 * @res: what to answer with
 * @sent: packets already sent
 * @repeated: the peer has asked for it before
 * @pressed: it has asked for the next packet again, and was not told anything yet
 * @since: when pages of the next packet were missing first, in ns; 0: they were not
 */
struct sroce_rd_job {
	struct sroce_rd_res res;
	u32 sent;
	bool repeated;
	bool pressed;
	u64 since;
};

/* Where in a message the responder is: what the next request in order goes on with */
enum sroce_resp_state {
	SROCE_RESP_IDLE,	/* between messages */
	SROCE_RESP_SEND,	/* in a SEND */
	SROCE_RESP_WRITE,	/* in an RDMA WRITE */
};

/* Which answer is owed once all READ responses have left */
enum sroce_ack_state {
	SROCE_ACK_NONE,
	SROCE_ACK_OWED,
	SROCE_ACK_NAK,		/* @syndrome says which */
};

/* An ACK that could wait for a request of ours: see ack_delay.c */
enum sroce_ack_delay_state {
	SROCE_ACK_PROMPT,	/* none is held back */
	SROCE_ACK_HELD,		/* one is */
	SROCE_ACK_AGED,		/* ... and the timer has met it once */
	SROCE_ACK_LATE,		/* ... or twice: it is to be sent now */
	SROCE_ACK_OFF,		/* the QP ends: none will be held back */
};

/**
 * struct sroce_ack_delay - whether an ACK waits for a request to go with
 * @timer: for the request that does not come
 * @armed: @timer is going to fire
 * @state: of the ACK owed
 * @messages: that an ACK was owed for since our last request, up to a few
 * @acked: PSN after the newest one acknowledged
 * @turns: how many more messages were answered by a request of ours than were not
 * @wanted: as many of them before an ACK is held back
 * @rides: ACKs held that went with a request, since the last that did not
 */
struct sroce_ack_delay {
	struct sroce_timer timer;
	bool armed;
	u8 state;
	u8 messages;
	u16 turns;
	u16 wanted;
	u16 rides;
	u32 acked;
};

/* Whether a request waits for a receive: see patience.c */
enum sroce_resp_wait {
	SROCE_RESP_READY,	/* none does */
	SROCE_RESP_WAITS,	/* it is in the inbox, what comes goes behind it */
	SROCE_RESP_LOOKS,	/* the inbox is to be tried again */
};

/**
 * struct sroce_patience - a request that waits for a receive
 * @timer: tries again
 * @state: an enum sroce_resp_wait, of the request at the head of the inbox
 * @waited: ns that the request with @psn has waited, when @timer fires
 * @psn: first PSN of that request
 * @kept: bytes that the network's trains take in the inbox
 * @memory: of the inbox, among that of all QPs
 * @lost: one was not kept
 */
struct sroce_patience {
	struct sroce_timer timer;
	u64 waited;
	u32 psn;
	u32 kept;
	u8 state;
	bool lost;
	struct sroce_uncharged_part memory;
};

/**
 * struct sroce_hold - requests that have come before one that is missing (see hold.c)
 * @held: them
 * @timer: for @ask_at and @look_at
 * @wake: when @timer is going to fire, in ns; 0: it is not
 * @ask_at: when the peer is to be asked for what is missing, in ns; 0: it was, or
 *	nothing is missing
 * @look_at: when what was there at the last look is dropped
 * @opened_at: when the gap was seen, in ns
 * @answered_at: when the peer was asked last, in ns
 * @newest: last PSN of the newest train that came too early
 * @lateness: for how long late ones are waited for
 * @open: something is missing, that the peer was or will be asked for
 * @repairing: and a part of it has come already
 * @answer: the answer does not wait for the rest of it any longer
 * @lost: not all that has come since could be held
 * @data: the newest request that was carried out was a SEND or RDMA WRITE
 */
struct sroce_hold {
	struct sroce_held_trains held;
	struct sroce_timer timer;
	u64 wake;
	u64 ask_at;
	u64 look_at;
	u64 opened_at;
	u64 answered_at;
	struct sroce_lateness lateness;
	u32 newest;
	bool open;
	bool repairing;
	bool answer;
	bool lost;
	bool data;
};

/**
 * struct sroce_resp_msg - the message that the responder is in, and its receive
 * @state: place in it, an enum sroce_resp_state
 * @have_wqe: @wqe holds its receive work request
 * @wqe_user: a process has written @wqe
 * @srq_limit: the limit event of the shared receive queue is to be raised
 * @wqe: private copy, with room for max_recv_sge elements
 * @recv_len: bytes its elements have together
 * @recv_off: bytes of the current SEND placed so far
 * @awaited: bytes behind those whose pages are being brought in; 0: nothing of a SEND
 * @looks: elements that others may be missing for
 * @inv_wait: key that the current SEND has invalidated, 0 for none: the message
 *	is not complete before its region is no longer in use
 * @srqn: XRC: shared receive queue of the message
 * @srq_id: XRC: that queue's id, by which it differs from a later one of the same number
 * @srq_index: place in the shared receive queue of what sroce_recv_look_for() saw
 * @wqe_tagged: while @have_wqe: it was taken for the SEND that the QP's @tag describes
 */
struct sroce_resp_msg {
	u8 state;
	bool have_wqe;
	bool wqe_user;
	bool srq_limit;
	u32 recv_len;
	struct sroce_recv_wqe *wqe;
	u32 recv_off;
	u32 awaited;
	u32 looks;
	u32 inv_wait;
	u32 srqn;
	u64 srq_id;
	u32 srq_index;
	bool wqe_tagged;
};

/**
 * struct sroce_resp_write - where the RDMA WRITE that the responder is in goes on
 * @va: next address
 * @rkey: key
 * @left: bytes to come
 * @len: bytes of the whole message
 */
struct sroce_resp_write {
	u64 va;
	u32 rkey;
	u32 left;
	u32 len;
};

/**
 * struct sroce_resp_ack - what the peer is owed, and what it was told last
 * @state: answer owed, an enum sroce_ack_state
 * @syndrome: of a NAK owed
 * @fatal: the QP goes to ERR once the NAK owed has left; no request is taken
 *	any more
 * @end: PSN behind the newest SEND or RDMA WRITE that was carried out: what an ACK is about
 * @nak_sent: a gap was reported and the PSN expected has not come since
 * @rnr_sent: likewise for receiver-not-ready
 * @gap: requests seen since the gap was reported
 * @delay: whether an ACK waits for a request to go with
 */
struct sroce_resp_ack {
	u8 state;
	u8 syndrome;
	bool fatal;
	bool nak_sent;
	bool rnr_sent;
	u32 end;
	struct sroce_gap gap;
	struct sroce_ack_delay delay;
};

/**
 * struct sroce_resp_answers - answers to READs, atomics and the like
 * @res: the last ones, for duplicates, a circle of @nres
 * @nres: entries of @res
 * @res_next: next entry to use
 * @jobs: those to send, a circle of @njobs
 * @njobs: entries of @jobs, a power of two
 * @job_head: next to send
 * @job_tail: next to fill
 * @pinned: whose pinned memory @res and @jobs are
 */
struct sroce_resp_answers {
	struct sroce_rd_res *res;
	u32 nres;
	u32 res_next;
	struct sroce_rd_job *jobs;
	u32 njobs;
	u32 job_head;
	u32 job_tail;
	struct sroce_pinned pinned;
};

/**
 * struct sroce_responder - receive queue and its engine
 * @half: lock, inbox
 * @ring: work requests; unused with @qp->srq
 * @epsn: PSN expected next
 * @msn: messages completed, modulo 2^24
 * @comm_est: IB_EVENT_COMM_EST was raised
 * @last_wqe: IB_EVENT_QP_LAST_WQE_REACHED was raised
 * @msg: the current message
 * @write: where it goes on when it is an RDMA WRITE
 * @ack: what the peer is owed
 * @answers: to its READs and atomics
 * @patience: the wait for a receive
 * @hold: what has come too early
 * @post_lock: serialises kernel posters; taken by sroce_lock()
 * @posted: kernel posters' producer index
 */
struct sroce_responder {
	struct sroce_half half;
	struct sroce_ring ring;
	u32 epsn;
	u32 msn;
	bool comm_est;
	bool last_wqe;
	struct sroce_resp_msg msg;
	struct sroce_resp_write write;
	struct sroce_resp_ack ack;
	struct sroce_resp_answers answers;
	struct sroce_patience patience;
	struct sroce_hold hold;
	spinlock_t post_lock ____cacheline_aligned_in_smp;
	u32 posted;
};

/* Senders that a datagram QP tells apart when it tells them of congestion */
#define SROCE_NOTIFY_PEERS 8

/**
 * struct sroce_notify - whom a QP has told of congestion (notify.c)
 * @at: when, in us; 0: never. Of datagram QPs each is for all senders of one hash
 *
 * Both halves write it, without a lock: one of two at once may tell once too often.
 */
struct sroce_notify {
	u32 at[SROCE_NOTIFY_PEERS];
};

/**
 * struct sroce_qp_attr - what modify has set, as struct ib_qp_attr has it
 * @dest_qp_num: the peer's QPN
 * @qkey: Q_Key, for datagrams
 * @qp_access_flags: what the peer may do, IB_ACCESS_REMOTE_*
 * @rate_limit: of what it sends, in kbit/s; 0 for none
 * @pkey_index: of the P_Key
 * @max_rd_atomic: READs and atomics that may be outstanding
 * @max_dest_rd_atomic: likewise the peer's
 * @timeout: local ACK timeout, 4.096 us * 2^n; 0 for none
 * @retry_cnt: retries
 * @rnr_retry: retries after receiver-not-ready; 7: for ever
 * @min_rnr_timer: how long the peer is to wait then (IBA 9.7.5.2.8)
 * @port_num: 0 before INIT
 * @path_mtu: an enum ib_mtu
 * @ah_attr: the path, for query; without a reference to the GID
 */
struct sroce_qp_attr {
	u32 dest_qp_num;
	u32 qkey;
	u32 qp_access_flags;
	u32 rate_limit;
	u16 pkey_index;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 min_rnr_timer;
	u8 port_num;
	u8 path_mtu;
	struct rdma_ah_attr ah_attr;
};

/**
 * struct sroce_qp - queue pair
 * @kind: what @type means
 * @port: device
 * @counters: where it counts, the port's or those it is bound to; written under
 *	both locks
 * @pd: protection domain; of an XRC target that of the queue it uses now
 * @path: to the peer, for connected QPs
 * @txq: what it has in the stack's queues
 * @scq: completion queue of the send queue
 * @rcq: completion queue of the receive queue; with tag matching @srq's
 * @srq: shared receive queue, or NULL; @rcq, @srq and @pd of an XRC target are
 *	set while it handles a packet (xrc.c)
 * @xrcd: XRC target: its domain; NULL for other types
 * @ibqp: what ib_core knows; not to be touched once @dead. Of a work queue a stand-in, with
 *	device, protection domain, type and number, and nobody who wants to hear of events
 * @owner: user context whose doorbell may ring it
 * @qpn: number
 * @mtu: path MTU in bytes
 * @type: IB_QPT_x
 * @user: it is a process's, also where ib_core has made it (XRC target): so are the
 *	queues of its own, and it is flushed when the device goes. It does not say who
 *	has written a receive work request, which may come from somebody else's queue
 * @sig_all: every work request completes
 * @block_self: what it sends to its groups does not come back to it
 * @dead: destroyed: written under both locks, nobody starts anything any more
 * @congested: there is a rate in @congestion; written under its lock
 * @strip_vlan: raw packets: the tag is told in the completion, and not in the packet
 * @state: IB_QPS_*, written under @state_lock
 * @max_send_sge: elements of a send work request
 * @max_recv_sge: elements of a receive work request
 * @max_inline: inline bytes of a send work request
 * @attr: what modify has set (timeouts, retry counts, access flags, ...)
 * @req: requester
 * @resp: responder
 * @refs: memory only; a QP that is @dead may still be referenced
 * @lent: trains in inboxes that point to memory it has sent from (direct.c)
 * @state_lock: innermost
 * @events: that may wait to be read
 * @notify: whom it has told of congestion
 * @congestion: what it was told itself, and the rate that it keeps to since
 * @groups: multicast groups it is attached to (group.c)
 * @windows: of type 2, bound through it
 * @tag: with @kind->tags: the message that the responder is in
 * @net_cookie: raw packets: network namespace in which the process was allowed to make it
 *	(verbs/). When the device goes to another one, it is as if its cable had been pulled
 * @rcu: freed after a grace period
 *
 * What each packet reads and what is written seldom comes first; then each half, whose
 * own lines two CPUs may work with at once; then what others write: who looks the QP up,
 * and peers of this host.
 */
struct sroce_qp {
	const struct sroce_qp_kind *kind;
	struct sroce_port *port;
	struct sroce_counters __percpu *counters;
	struct ib_pd *pd;
	struct sroce_path *path;
	struct sroce_txq *txq;
	struct sroce_cq *scq;
	struct sroce_cq *rcq;
	struct sroce_srq *srq;
	const struct ib_xrcd *xrcd;
	struct ib_qp *ibqp;
	void *owner;
	u32 qpn;
	u32 mtu;
	u8 type;
	bool user;
	bool sig_all;
	bool block_self;
	bool dead;
	bool congested;
	bool strip_vlan;
	enum ib_qp_state state;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_inline;
	struct sroce_qp_attr attr;
	struct sroce_requester req;
	struct sroce_responder resp;
	refcount_t refs ____cacheline_aligned_in_smp;
	atomic_t lent;
	spinlock_t state_lock;
	struct sroce_events events;
	struct sroce_notify notify;
	struct sroce_qp_congestion congestion;
	struct list_head groups;
	struct sroce_mw_list windows;
	struct sroce_tag_msg tag;
	u64 net_cookie;
	struct rcu_head rcu;
};

static inline bool sroce_qp_is_datagram(const struct sroce_qp *qp)
{
	return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
}

/* The P_Key of what it sends, and which it receives with */
static inline u16 sroce_qp_pkey(const struct sroce_qp *qp)
{
	return READ_ONCE(qp->port->pkeys[qp->attr.pkey_index]);
}

/**
 * sroce_qp_create() - make a QP in state RESET
 * @port: device
 * @ibqp: for callbacks and completions; ib_core has filled in nothing but
 *	device, pd and qp_type
 * @init: as given to ib_create_qp(); caps were checked and are updated to
 *	what was granted; completion queues and SRQ are of this device
 * @owner: user context whose doorbell may ring it; NULL for a kernel user
 * @pool: that context's, for its rings; NULL for a kernel user
 *
 * The type is IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_GSI, IB_QPT_XRC_INI,
 * IB_QPT_XRC_TGT or IB_QPT_RAW_PACKET. One of raw packets without a send queue's
 * completions is a work queue; one that has a table of such has no queues at all. The QP is
 * in the number table and answers sroce_qp_find() from
 * here on (and drops all packets in RESET).
 *
 * Context: process.
 * Return: the QP with one reference, or an ERR_PTR.
 */
struct sroce_qp *sroce_qp_create(struct sroce_port *port, struct ib_qp *ibqp,
				 struct ib_qp_init_attr *init, void *owner,
				 struct sroce_ring_pool *pool);

/**
 * sroce_qp_flush() - move a QP to ERR and complete what its rings hold
 * @qp: QP
 *
 * The caller holds it; it may be destroyed meanwhile.
 *
 * Context: process.
 */
void sroce_qp_flush(struct sroce_qp *qp);

/**
 * sroce_port_abandon() - flush all QPs of processes
 * @port: port that goes away
 *
 * For the time in which objects are destroyed in no order that a peer, or the
 * process, could make sense of: a region that is gone before the QP that uses
 * it is nobody's error.
 *
 * Context: process.
 */
void sroce_port_abandon(struct sroce_port *port);

/**
 * sroce_qp_destroy() - end a QP and drop the creator's reference
 * @qp: QP
 *
 * On return nothing touches its rings, completion queues, SRQ, PD or @ibqp. It waits
 * for no packet: those still in some qdisc hold a socket of the kernel only (txq.c).
 *
 * Context: process, may sleep.
 */
void sroce_qp_destroy(struct sroce_qp *qp);

/**
 * sroce_qp_modify() - carry out a state change that was found legal
 * @qp: QP
 * @attr: new attributes
 * @mask: which of them; ib_modify_qp_is_ok() and the device's limits were checked
 * @path: new path when IB_QP_AV is in @mask; its reference passes to the QP
 *	on success
 *
 * Context: process, may sleep. ib_core serialises callers per QP.
 * Return: 0, or -EINVAL, -ENOMEM with the QP unchanged.
 */
int sroce_qp_modify(struct sroce_qp *qp, const struct ib_qp_attr *attr,
		    int mask, struct sroce_path *path);

/**
 * sroce_group_attach() - let a datagram QP receive what is sent to a group
 * @qp: QP
 * @mgid: address of the group; IPv4 is v4-mapped
 *
 * Context: process, may sleep.
 * Return: 0, -EEXIST when it does already, -ENOSPC for too many, -ENOMEM.
 */
int sroce_group_attach(struct sroce_qp *qp, const union ib_gid *mgid);

/* Return: 0, or -EINVAL when it was not attached. Context: process. */
int sroce_group_detach(struct sroce_qp *qp, const union ib_gid *mgid);

/* Raw packets: are tags told in the completion from now on, or left in the frame? */
void sroce_qp_strip_vlan(struct sroce_qp *qp, bool strip);

/**
 * sroce_qp_count_in() - say where a QP counts
 * @qp: QP
 * @counters: the port's, which it begins with, or others
 *
 * On return it does not count in the old ones any more.
 *
 * Context: process.
 */
void sroce_qp_count_in(struct sroce_qp *qp,
		       struct sroce_counters __percpu *counters);

/* Fill in what ib_query_qp() reports, except the address vector */
void sroce_qp_query(struct sroce_qp *qp, struct ib_qp_attr *attr);

/**
 * sroce_qp_query_path() - how packets of a connected QP look to the network
 * @qp: QP
 * @sport: UDP source port
 * @tclass: traffic class
 *
 * Return: has it a path?
 */
bool sroce_qp_query_path(struct sroce_qp *qp, __be16 *sport, u8 *tclass);

/**
 * sroce_qp_post_send() - post a list of work requests, for kernel users
 * @qp: QP with !@qp->user
 * @wr: list
 * @bad_wr: set to the first one that was not taken
 * @fill: translate one work request into a ring entry
 *
 * Those before a bad one are posted and sent.
 *
 * Context: any, also with interrupts off (then sending starts in a tasklet).
 * Return: 0, -EINVAL for a bad request or state, -ENOMEM when the queue is full.
 */
int sroce_qp_post_send(struct sroce_qp *qp, const struct ib_send_wr *wr,
		       const struct ib_send_wr **bad_wr,
		       int (*fill)(struct sroce_qp *qp,
				   struct sroce_send_wqe *wqe,
				   const struct ib_send_wr *wr));

/* The same for the receive queue */
int sroce_qp_post_recv(struct sroce_qp *qp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);

/**
 * sroce_qp_doorbell() - look at the send queue, and at the receive queue of a
 * QP in error
 * @qp: QP
 *
 * Context: process, no locks held.
 */
void sroce_qp_doorbell(struct sroce_qp *qp);

/* Module start and end */
int sroce_transport_init(void);
void sroce_transport_exit(void);

#endif
