/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two connected QPs that talk to each other while somebody who knows all their
 * numbers sends packets to both. What they may never do, whatever he sends, is
 * checked all the time: touch memory that no key of theirs allows, tell what nobody
 * may read, complete a work request twice, out of order or never.
 */
#ifndef SROCE_TESTS_FUZZ_PEN_H
#define SROCE_TESTS_FUZZ_PEN_H

#include "tests/fuzz.h"
#include "tests/sig_region.h"
#include "tests/transport_pair.h"

#define PEN_DEPTH 16
#define PEN_MESSAGES (4 * PEN_DEPTH)

/* Regions of each side, with different rights */
enum pen_region {
	PEN_OPEN,	/* to be read, written and flushed */
	PEN_READ,	/* to be read only, up to the end of the address space */
	PEN_WRITE,
	PEN_WORDS,	/* atomics only */
	PEN_SECRET,	/* no remote rights */
	PEN_FOREIGN,	/* every right, of another protection domain */
	PEN_FAST,	/* a fast-register region that comes and goes */
	PEN_PARENT,	/* no remote rights, but windows */
	PEN_WINDOW,	/* to a part of it */
	PEN_DEMAND,	/* memory on demand, whose pages come and go */
	PEN_SIG,	/* with protection information, registered anew for each life */
	PEN_REGIONS
};

/**
 * struct pen_kind - which QPs
 * @name: for messages
 * @config: see pair_create()
 * @ipv6: addresses are IPv6
 * @v1: packets are of RoCE v1
 * @demand: with a region on demand
 * @sig: with a region that is protected like this; NULL: without
 * @calm: nobody sends what could pass for the peer's packets, so all must be as
 *	if nobody was there
 */
struct pen_kind {
	const char *name;
	struct pair_config config;
	bool ipv6;
	bool v1;
	bool demand;
	const struct sig_case *sig;
	bool calm;
};

/*
 * A send work request that was posted. To a QP that matches tags a message has a header in
 * front: @head bytes, with its opcode in @tmh; and a rendezvous has @lent bytes of data.
 * @local_sig, @remote_sig: which end of it is PEN_SIG.
 */
struct pen_op {
	u8 opcode;
	bool local_sig;
	bool remote_sig;
	u8 tmh;
	u8 head;
	u32 lent;
	u32 len;
	u32 seed;
	u64 expect;
};

#define PEN_TAGS 8
/* Its work request; those above belong to no buffer */
#define PEN_TAGGED BIT_ULL(32)
#define PEN_TAG_NONE (PEN_TAGGED | PEN_TAGS)
/* Of the operation that deletes it */
#define PEN_TAG_DEL BIT_ULL(33)

enum pen_tag_state {
	PEN_TAG_FREE,
	PEN_TAG_LISTED,		/* messages may match it */
	PEN_TAG_MATCHED,	/* a rendezvous has, whose READ is to be posted */
	PEN_TAG_READING,
};

/**
 * struct pen_tag - a tagged buffer
 * @state: what has become of it, as far as its process knows
 * @handle: of the buffer; once a rendezvous has matched it, for the READ
 * @tag: what a message must have
 * @mask: of that
 * @len: bytes it has room for
 * @data: bytes of a rendezvous
 */
struct pen_tag {
	enum pen_tag_state state;
	u32 handle;
	u64 tag;
	u64 mask;
	u32 len;
	u32 data;
};

/**
 * struct pen_side - one of the two ends
 * @s: the end
 * @mr: its regions, NULL for those it does not have
 * @demand: address of the memory behind PEN_DEMAND
 * @ops: send work requests under way, by number
 * @posted: send work requests posted
 * @done: completed
 * @recv_len: room of receive work requests, by number
 * @recvs: posted
 * @seen: completed
 * @messages: calm: what is to arrive here, by number
 * @promised: of those sent
 * @arrived: of those arrived
 * @sig: PEN_SIG
 * @tags: tagged buffers
 * @reads: READs of rendezvous posted, and not completed
 * @unexpected: messages with a tag that nothing has matched
 * @told: the queue knows of all of these
 * @sum: calm: what the peer's word must be before the next addition
 */
struct pen_side {
	struct side *s;
	struct sroce_mr *mr[PEN_REGIONS];
	unsigned long demand;
	struct pen_op ops[PEN_DEPTH];
	u32 posted;
	u32 done;
	u32 recv_len[PEN_DEPTH];
	u32 recvs;
	u32 seen;
	struct pen_op messages[PEN_MESSAGES];
	u32 promised;
	u32 arrived;
	struct sig_region *sig;
	struct pen_tag tags[PEN_TAGS];
	u32 reads;
	u16 unexpected;
	bool told;
	u64 sum;
};

/**
 * struct pen - a pair under attack
 * @f: who runs it
 * @kind: what it is
 * @p: the pair
 * @calm: see struct pen_kind; for a while also when the kind is not
 * @side: its ends
 * @lives: connections so far
 * @steps: until the next one
 * @hits: packets by opcode, those of the attack only
 * @matches: messages and rendezvous that were matched
 * @protected: work requests that have moved data from or to PEN_SIG, the own one and the
 *	peer's, where requests of the attacker's that came alone and were taken count, too
 */
struct pen {
	struct fuzz *f;
	const struct pen_kind *kind;
	struct pair *p;
	bool calm;
	struct pen_side side[2];
	u32 lives;
	u32 steps;
	u64 hits[256];
	u64 matches[2];
	u64 protected[2];
};

/* The size of messages, and of the memory for one with what is behind it */
#define PEN_MESSAGE 0x2000
#define PEN_SLOT 0x2400
/* All memory that is in no use, and that no peer may see */
#define PEN_CANARY 0xc5

#define PEN_RW (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
		IB_ACCESS_REMOTE_WRITE)

static inline struct pen_side *pen_other(struct pen *pen, struct pen_side *ps)
{
	return &pen->side[ps == pen->side];
}

static inline bool pen_sends(const struct pen_side *ps)
{
	return ps->s->qp->type != IB_QPT_XRC_TGT;
}

static inline bool pen_receives(const struct pen_side *ps)
{
	return ps->s->qp->type != IB_QPT_XRC_INI;
}

static inline void pen_check(struct pen *pen, bool ok, const char *what, u64 a,
			     u64 b)
{
	fuzz_check(pen->f, ok, pen->kind->name, what, a, b);
}

/* --- fuzz_memory.c --------------------------------------------------------- */

/* Bytes below 0x80 that differ from place to place and from one @seed to the next */
void pen_fill(struct pen_side *ps, u32 off, u32 len, u32 seed);
bool pen_filled(struct pen_side *ps, u32 off, u32 len, u32 seed);
/* ... there is only what comes behind @from bytes, a multiple of 4 */
bool pen_filled_from(struct pen_side *ps, u32 off, u32 len, u32 seed, u32 from);

/* Where the data of a work request is, by its number: of a send, of a receive, and
 * of what a send reads or writes at the peer
 */
u32 pen_local_slot(u32 number);
u32 pen_recv_slot(u32 number);
u32 pen_open_slot(u32 number);
u32 pen_tag_slot(u32 i);

/* Nothing was written behind the part of a slot that may be */
void pen_check_slot(struct pen *pen, struct pen_side *ps, u32 off, u32 used);

/* Nothing was written where nobody may write */
void pen_check_memory(struct pen *pen, struct pen_side *ps);

/* The word that the peer adds to */
u64 pen_word(const struct pen_side *ps);

/* The part of PEN_PARENT that PEN_WINDOW is bound to, as its addresses */
u64 pen_window_addr(const struct pen_side *ps);
u32 pen_window_len(void);

void pen_make_memory(struct pen_side *ps);
void pen_make_regions(struct pen *pen, struct pen_side *ps);
void pen_end_regions(struct pen *pen, struct pen_side *ps);

/* Register what is protected anew */
void pen_renew_sig(struct pen_side *ps);

/* Is all of it as in PEN_READ? */
bool pen_is_readable(struct pen_side *ps, u32 off, u32 len);

/* The process gives a page on demand back, and gets a new one when that is touched */
void pen_lose_pages(struct pen *pen, struct pen_side *ps);

/* --- fuzz_traffic.c -------------------------------------------------------- */

void pen_post_recv(struct pen *pen, struct pen_side *ps);

/* Post something at one of the ends */
void pen_post_some(struct pen *pen);

/* Look at what has completed; false when nothing has */
bool pen_poll(struct pen *pen);

/* Post the READs of rendezvous that have matched */
void pen_read_tagged(struct pen *pen, struct pen_side *ps);

/* Delete all tagged buffers, and tell the truth of what has matched none; in a calm pen */
void pen_clear_tags(struct pen *pen, struct pen_side *ps);

/* What a side lends to be read by a rendezvous: in a calm pen what never changes */
struct fuzz_key pen_lent(struct pen *pen, struct pen_side *ps);

/* The QP is in RESET, and all that has completed was looked at */
void pen_forget_tags(struct pen *pen, struct pen_side *ps);

/* Receives that are left in a shared queue */
u32 pen_recvs_left(const struct pen_side *ps);

/* Has all that was posted completed? */
bool pen_is_flushed(const struct pen_side *ps);

/* --- fuzz_hostile.c, fuzz_quiet.c ------------------------------------------ */

/* All that a packet could change of a QP; which words what is sent changes, too */
#define PEN_SHAPE_NEXT 7
#define PEN_SHAPE_READS 9
#define PEN_SHAPE_WORDS 11

struct pen_shape {
	u32 word[PEN_SHAPE_WORDS];
	u8 state[5];
};

/* For messages: the first word that differs; PEN_SHAPE_WORDS when none does */
static inline u32 pen_shape_differs(const struct pen_shape *a, const struct pen_shape *b)
{
	u32 i = 0;

	while (i < PEN_SHAPE_WORDS && a->word[i] == b->word[i])
		i++;
	return i;
}

struct pen_shape pen_shape_of(const struct pen_side *ps);

struct fuzz_aim pen_aim(struct pen *pen, struct pen_side *ps);
struct fuzz_envelope pen_envelope(const struct fake_path *path);

/* Put made-up packets into the train, as many as there is room for */
void pen_load(struct pen *pen, struct pen_side *ps, const struct fuzz_packet *p,
	      u32 n);

/* Let the next few packets of the two arrive, or what becomes of them on the way */
bool pen_deliver(struct pen *pen, bool faults);

/* Is something missing that one of its QPs might go on with, or should not? */
bool pen_has_rare(const struct pen *pen);

/* Send one of the two something */
void pen_attack(struct pen *pen);

/* Send one of the two something that must not be noticed */
void pen_annoy(struct pen *pen);

/* --- fuzz_pen.c ------------------------------------------------------------ */

/* @number: its own, it is part of the addresses */
void pen_open(struct pen *pen, struct fuzz *f, const struct pen_kind *kind,
	      u8 number);

/* Its connection ends; and it ends, when all others have left: nothing may be left behind */
void pen_leave(struct pen *pen);
void pen_close(struct pen *pen);

/* Some packets, posts, time or trouble more */
void pen_step(struct pen *pen);

/* Nobody attacks any more: all that was posted completes, and a new connection works */
void pen_settle(struct pen *pen);

#endif
