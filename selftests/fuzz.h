/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * fuzz: what the files of fuzz_verbs share.
 *
 * A warden starts some workers, processes of two users with several threads each, which share their objects by
 * inherited files and by the board: memory that all of them see. Each thread takes its decisions from a generator of
 * its own, whose seed comes from the run's; what the others do meanwhile cannot be repeated.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdatomic.h>
#include <sys/types.h>

#include "uverbs.h"
#include "vt.h"

#define FZ_DEVS 2
#define FZ_USERS 2
/* workers of each user, and threads of each worker */
#define FZ_PROCS 2
#define FZ_THREADS 3
#define FZ_BEATS (FZ_USERS * FZ_PROCS * FZ_THREADS)
/* each user's own, and those that both have */
#define FZ_OWN (FZ_USERS * FZ_DEVS)
#define FZ_CTXS (FZ_OWN + FZ_DEVS)
/* objects of one kind in one context */
#define FZ_SLOTS 24

/* --- objects ----------------------------------------------------------------- */

enum fz_kind {
	FZ_NONE, FZ_PD, FZ_CQ, FZ_QP, FZ_SRQ, FZ_AH, FZ_MR, FZ_MW, FZ_XRCD, FZ_CHANNEL, FZ_ASYNC, FZ_COUNTERS, FZ_DM,
	FZ_WQ, FZ_TABLE, FZ_FLOW,
	FZ_KINDS
};

/* Everybody writes these without a lock: what is read may be half of one object and half of another */
struct fz_obj {
	/* 0: free; 1: being filled in; else which one it is, never the same twice */
	_Atomic uint32_t life;
	/* or the file, of a channel */
	uint32_t handle;
	/* of a QP or shared receive queue; of an address handle; R_Key of a window */
	uint32_t number;
	/* L_Key and R_Key are the same number here */
	uint64_t start, length, iova;
	/* rights of a region */
	uint32_t access;
	/* of a QP, shared receive queue or window; of an address handle, the device it leads to, or FZ_DEVS */
	uint32_t type;
	/* handle of its domain, where it has one; of a QP, elements of a send and inline bytes */
	uint32_t pd, sges, inlined;
	/* a QP of raw packets that has work queues for its own */
	bool shares;
	/*
	 * a QP: whom it was connected to last, and whether it was in RTS after that; a window: who was asked to bind it last, and
	 * whether nobody was asked to invalidate it since
	 */
	struct fz_obj *peer;
	bool ready;
	struct sroce_ring_info ring[2];
	/* a queue that is being resized: the other ring, and whether that one is the queue's and ring[0] the new one */
	struct sroce_ring_info next;
	bool early;
};

struct fz_ctx {
	int fd, doorbell, dev;
	struct fz_obj obj[FZ_KINDS][FZ_SLOTS];
};

/* --- the board ---------------------------------------------------------------- */

struct fz_dev {
	char name[64], path[64];
	uint8_t gid[16];
	uint8_t gid_index;
	/* what nobody has a right to: keys and QPs of the warden's own */
	uint32_t victim_key, victim_qpn[2];
	uint64_t victim_addr;
};

#define FZ_TRACE 24
#define FZ_RESIZE_STEPS 4

/* Kinds of memory that were mapped, and what was done to memory and its regions, as far as the kernel has said that it was done */
#define FZ_DEEDS(X) \
	X(shared) X(file) X(secret) X(fuse) X(dmabuf) X(none) X(hugetlb) X(ring) X(userfaultfd) X(munmap) \
	X(madvise) X(pageout) X(mremap) X(mprotect) X(mlock) X(hole) X(truncate) X(fork) X(rereg)
#define FZ_DEED(name) FZ_DID_##name,
enum fz_deed { FZ_DEEDS(FZ_DEED) FZ_DEEDS_END };

/* entries of a table of commands or methods, at most; types of QPs are below */
#define FZ_CALLS_MOST 64
#define FZ_TYPES 16

struct fz_call {
	const char *what;
	uint64_t arg;
	int64_t result;
};

/* the sign of life of one thread */
struct fz_beat {
	pid_t pid, tid;
	/* what it is in and since when, in nanoseconds; 0: nothing that could last */
	_Atomic uint64_t since;
	/* the last calls */
	struct fz_call trace[FZ_TRACE];
	uint32_t calls;
	/* statistics */
	uint64_t steps, good, refused, posted, rung, failed, crashed;
	/* each command and method: how often it was carried out */
	uint64_t commands[FZ_CALLS_MOST], methods[FZ_CALLS_MOST];
	/* each method: how often it was asked for, and how often the answer was that there is no such thing */
	uint64_t asked[FZ_CALLS_MOST], unknown[FZ_CALLS_MOST];
	/* completions on queues that nobody scribbles on, by opcode and by the type of their QP */
	uint64_t completed[256], types[FZ_TYPES];
	/* steps of resizing that were carried out, and changes of a rate */
	uint64_t resized[FZ_RESIZE_STEPS], paced;
	/* objects by kind, those of which are QPs with work queues, and frames that were received */
	uint64_t made[FZ_KINDS], shares, frames;
	/* regions of all addresses, those of dma-bufs and of device memory */
	uint64_t implicit, lent, devices;
	/* those that may be flushed, which not every kernel has */
	uint64_t flushable;
	/* work requests that can be carried out, as far as is known */
	uint64_t calm;
	uint64_t did[FZ_DEEDS_END];
};

struct fz_board {
	uint64_t seed;
	_Atomic bool stop;
	_Atomic uint32_t lives;
	/* who may have something large */
	_Atomic bool large;
	/* processes of which everything could be written to */
	_Atomic uint32_t houses;
	int ndevs;
	/* files: for domains of XRC; the device that makes those for missing pages; of pages that come late, and never */
	int xrc_file, missing_dev, late, never;
	/* a dma-buf, and the file whose memory it is, or -1 */
	int buffer, buffer_file;
	/* some memory is never brought: the last zones, which are only registered on demand and never touched */
	bool some_never;
	/* files stay as long as they are, and get no holes */
	bool whole_files;
	/* the kernel knows memfd_secret() */
	bool have_secret;
	bool verbose;
	uint32_t roles;
	struct fz_dev dev[FZ_DEVS];
	struct fz_ctx ctx[FZ_CTXS];
	struct fz_beat beat[FZ_BEATS];
	/* how often missing pages of each worker were brought, the last of them, and what the kernel said */
	struct fz_call brought[FZ_USERS * FZ_PROCS];
	uint32_t answers[FZ_USERS * FZ_PROCS];
	/* who answers missing pages, for each worker, and of the file system; killed last */
	pid_t pager[FZ_USERS * FZ_PROCS], file_system;
};

extern struct fz_board *board;

/* in a worker, files below are kept, those above come and go */
#define FZ_LOW_FILES 100

/* --- threads ------------------------------------------------------------------- */

struct fz_thread {
	struct vt_rng rng;
	int user, process;
	struct fz_beat *beat;
	/* of 256 values, how many are not what they should be */
	uint32_t wild;
};

static inline uint32_t fz_below(struct fz_thread *t, uint32_t n)
{
	return vt_below(&t->rng, n);
}

static inline uint64_t fz_rand(struct fz_thread *t)
{
	return vt_rand(&t->rng);
}

/* true once in @n */
static inline bool fz_once(struct fz_thread *t, uint32_t n)
{
	return !vt_below(&t->rng, n);
}

/* Around everything that goes to the kernel: the warden sees who does not come back */
void fz_begin(struct fz_thread *t, const char *what, uint64_t arg);
void fz_end(struct fz_thread *t, int64_t result);

#define FZ_CALL(t, what, arg, call) \
	({ \
		int64_t result_; \
		fz_begin(t, what, arg); \
		result_ = (call); \
		fz_end(t, result_); \
		result_; \
	})

/* Run @fn, which may touch memory that is not there. False: it did, and was left at that point. */
bool fz_try(void (*fn)(void *arg), void *arg);
/* likewise, memcpy() */
bool fz_copy(void *to, const void *from, size_t len);

/* --- fuzz_objects.c ------------------------------------------------------------- */

/* a context that this thread has a file of */
struct fz_ctx *fz_some_ctx(struct fz_thread *t);
/* a living object, or NULL; the second: of whatever context */
struct fz_obj *fz_some(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind);
struct fz_obj *fz_anyone(struct fz_thread *t, enum fz_kind kind);
/* one of a domain, if it is found soon; else any */
struct fz_obj *fz_some_of(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, uint32_t pd);
/* whose it is */
struct fz_ctx *fz_ctx_of(const struct fz_obj *o);
/* has this thread a file of its context? */
bool fz_is_mine(const struct fz_thread *t, const struct fz_obj *o);
/* a handle: of such an object nearly always, or one that looks like it */
uint32_t fz_handle(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind);
/* remember an object: false when there are too many of its kind */
bool fz_add(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, const struct fz_obj *o);
/* forget it */
void fz_drop(struct fz_ctx *c, enum fz_kind kind, uint32_t handle);

/* A value that is none: 0, the largest, one too many, a bit too few, ... */
uint64_t fz_borderline(struct fz_thread *t, uint64_t good);
/* An address where nothing can be written, of the kernel's or of nobody */
uint64_t fz_bad_pointer(struct fz_thread *t);

/* Space for the rings, before anybody is started */
void fz_rings_reserve(void);
/* A ring of an object in this process' memory, mapped when it is not yet; NULL where that fails */
struct sroce_ring_hdr *fz_ring(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, struct fz_obj *o, int which);
uint8_t *fz_ring_entry(const struct sroce_ring_hdr *hdr, const struct fz_obj *o, int which, uint32_t i);

/*
 * Addresses of a region. Of one that has all addresses a piece of a zone, another one each time: what else there is in a
 * process is not for others.
 */
void fz_part_of(struct fz_thread *t, const struct fz_obj *mr, uint64_t *iova, uint64_t *length);
static inline bool fz_is_implicit(uint64_t start, uint64_t length)
{
	return !start && length == ~0ull;
}

/* what such a region may not allow, because work requests come to be at random: writing to all that a process has */
#define FZ_WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* --- fuzz_commands.c ------------------------------------------------------------ */

/* what a value stands for */
enum fz_what {
	W_END,
	W_ZERO,
	W_HANDLE, /* of kind @arg */
	W_BELOW, /* a small number, below @arg */
	W_BITS, /* some of the bits of @arg, or none */
	W_DEPTH, /* entries of a queue */
	W_SGES,
	W_QP_TYPE, W_RAW,
	W_ACCESS, W_DM_ACCESS,
	W_FILE, /* a file for a domain of XRC, or none */
	W_BUFFER, /* a dma-buf */
	W_GROUP, /* a multicast address */
	W_ROUTE, /* a global route, with its is_global and port where the structure has them */
	W_RANDOM,
};

/* one that makes sense; not of groups and routes, which are too long */
uint64_t fz_value(struct fz_thread *t, struct fz_ctx *c, enum fz_what what, uint32_t arg);
/* a request is sometimes in memory that others change at the same time, or that goes away */
const void *fz_elsewhere(struct fz_thread *t, const void *request, size_t len);
/* the driver's part of an answer */
void fz_describe_rings(struct fz_obj *o, enum fz_kind kind, const uint8_t *driver);

/* their names in turn, and NULL after the last; one may come twice */
const char *fz_command_name(uint32_t i);
const char *fz_method_name(uint32_t i);

/* IBV_ACCESS_FLUSH_GLOBAL, newer than the headers of some systems */
#define FZ_ACCESS_FLUSH (1u << 8)

/* one command of the write interface, as it is or through the other one */
void fz_command_step(struct fz_thread *t);
/* flows, work queues and what they hang on to, and frames through them */
void fz_raw_step(struct fz_thread *t);
/* what a context needs to be of use, and QPs that are connected to each other */
void fz_furnish(struct fz_thread *t, struct fz_ctx *c);
void fz_connect_step(struct fz_thread *t);
/* a region of all addresses that allows everything, for a process that nobody depends on; false: refused */
bool fz_register_all(struct fz_thread *t);
/* The answer to a command that has made @o; it becomes part of the context, or is destroyed at once */
void fz_made(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, struct fz_obj *o);
/* destroy what has this handle; an errno */
int fz_destroy(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, uint32_t handle);

/* --- fuzz_resize.c -------------------------------------------------------------- */

/* one of the steps of resizing a queue, mostly */
uint32_t fz_resize_step(struct fz_thread *t);
/* that step was carried out for the queue with this handle; the driver's answer, to the first one */
void fz_resized(struct fz_thread *t, struct fz_ctx *c, enum fz_kind kind, uint32_t handle, uint32_t step,
		const void *answer);

/* --- fuzz_methods.c ------------------------------------------------------------- */

/* one method of the ioctl interface */
void fz_method_step(struct fz_thread *t);
/* random bytes for both interfaces, in a context that is nobody's */
void fz_babble_step(struct fz_thread *t);

/* --- fuzz_raw.c ----------------------------------------------------------------- */

/* a QP, nearly always of raw packets, or NULL */
struct fz_obj *fz_some_raw(struct fz_thread *t, struct fz_ctx *c);
/* a flow's fields, and how much room for its parts there is; nearly always of a QP of raw packets */
#define FZ_FLOW_PARTS 256
void fz_flow(struct fz_thread *t, struct fz_ctx *c, void *create_flow);
/* which work queues a table has: 2^3 at most */
void fz_table(struct fz_thread *t, struct fz_ctx *c, void *create_table);
/* how a QP shares frames between work queues */
void fz_hash(struct fz_thread *t, struct sroce_create_qp_req *req);
/* A work request of raw packets. What of it is not in memory is written behind the @room bytes of @list. */
void fz_frame(struct fz_thread *t, const struct fz_obj *o, struct sroce_send_wqe *w, uint8_t *list, uint32_t room);

/* --- fuzz_rings.c --------------------------------------------------------------- */

void fz_post_step(struct fz_thread *t);
void fz_scribble_step(struct fz_thread *t);
/* take completions away, arm, read events, ring doorbells */
void fz_consume_step(struct fz_thread *t);

/* fill the receive queue of a QP, or a work queue, as far as there is room */
void fz_stock(struct fz_thread *t, enum fz_kind kind, struct fz_obj *o);
/* post to a QP's send queue, and ring */
void fz_send(struct fz_thread *t, struct fz_obj *o);

/* --- fuzz_calm.c ---------------------------------------------------------------- */

/* Is this queue spared? Not from being destroyed, modified or resized. */
bool fz_calm(const struct fz_obj *o);
/* A work request that can be carried out, and its list of up to four; false: the objects for it were not found */
bool fz_calm_send(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, struct sroce_send_wqe *w,
		  struct sroce_sge *sge);
bool fz_calm_recv(struct fz_thread *t, struct fz_ctx *c, const struct fz_obj *o, struct sroce_recv_wqe *w,
		  struct sroce_sge *sge);

/* --- fuzz_memory.c -------------------------------------------------------------- */

#define FZ_ZONES 24
/* of these, those whose pages never come */
#define FZ_NEVER 2
#define FZ_ZONE ((size_t)2 << 20)
/* bytes of the dma-buf */
#define FZ_BUFFER FZ_ZONE

/* Zones at the same address in every worker, each followed by memory that nobody ever registers */
void fz_memory_reserve(void);
/* memfd_secret(0) */
int fz_memfd_secret(void);
/* in each worker, before its threads */
void fz_memory_start(struct fz_thread *t);
void fz_memory_step(struct fz_thread *t);
/* by each thread in the end, if it comes to that */
void fz_memory_end(struct fz_thread *t);
/* a piece of a zone, somewhere in it and of any length */
void fz_some_range(struct fz_thread *t, uint64_t *start, uint64_t *length);
bool fz_never_comes(uint64_t start);
/* whatever is going to be registered must end before what nobody ever registers */
void fz_spare_canaries(uint64_t *start, uint64_t *length);
/* a piece of a zone, too, for what the kernel reads or writes in a call; NULL when there is none at the moment */
void *fz_some_buffer(struct fz_thread *t, size_t len);
/* Did anything change that must not? Says what. */
bool fz_memory_intact(void);

/* --- fuzz_fuse.c ---------------------------------------------------------------- */

/* Who serves the files, which are -1 where there is no such file system; 0 or a process */
pid_t fz_fuse_start(int *late, int *never);

#endif
