// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hostile: a process that lies to the kernel. It talks to /dev/infiniband/uverbsN and
 * to the shared rings by itself, without any library.
 *
 *	hostile -u /dev/infiniband/uverbsN -g GID_INDEX -G GID [-t SECONDS] [-s SEED] [-q QPN]...
 *
 * First structures, sizes, handles and mappings that must be refused; then for SECONDS
 * rings full of nonsense, written by several threads while the kernel reads them, and
 * doorbells for all queue pairs given with -q, which are other processes'. The kernel's
 * log is the judge of the second part; here it is enough that memory which was never
 * registered does not change, and that a new context works afterwards.
 */
#define _GNU_SOURCE /* mremap(), unshare() */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uverbs.h"
#include "vt.h"

static const char *uverbs;
static int gid_index;
static uint8_t gid[16];
static uint32_t others[64], n_others;

/* --- structures that are wrong ------------------------------------------------------------------ */

static void bad_context(const char *what, const void *in, size_t in_len, size_t out_len, bool must_fail)
{
	struct sroce_alloc_ucontext_resp out[4];
	int fd = open(uverbs, O_RDWR), rc;

	rc = uv_get_context(fd, in, in_len, out, out_len);
	vt_check(!must_fail || rc, "context, %s: %s", what, rc ? strerror(rc) : "taken");
	/* and again, properly: a refusal leaves nothing behind */
	if (rc) {
		struct sroce_alloc_ucontext_req req = {};

		rc = uv_get_context(fd, &req, sizeof(req), out, sizeof(out[0]));
		vt_check(!rc, "context, after %s: %s", what, rc ? strerror(rc) : "works");
	}
	close(fd);
}

static void contexts(void)
{
	struct sroce_alloc_ucontext_req reserved = { .reserved = 1 }, good = {};
	uint8_t longer[64] = {};

	bad_context("reserved is not zero", &reserved, sizeof(reserved), sizeof(struct sroce_alloc_ucontext_resp), true);
	bad_context("no driver data", NULL, 0, sizeof(struct sroce_alloc_ucontext_resp), false);
	bad_context("half of the driver data", &good, 4, sizeof(struct sroce_alloc_ucontext_resp), false);
	bad_context("longer, zeros", longer, sizeof(longer), sizeof(struct sroce_alloc_ucontext_resp), false);
	longer[60] = 1;
	bad_context("longer, not zero", longer, sizeof(longer), sizeof(struct sroce_alloc_ucontext_resp), true);
	bad_context("no room for the answer", &good, sizeof(good), 0, false);
	bad_context("little room for the answer", &good, sizeof(good), 4, false);
}

static void completion_queues(struct uv_context *c)
{
	static const uint32_t sizes[] = { 0, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000001 };
	struct sroce_create_cq_req good = {}, reserved = { .reserved = 1 }, flags = { .flags = 0x80000000 };
	struct sroce_create_cq_resp out;
	uint8_t longer[64] = { [50] = 1 };
	uint32_t handle;
	size_t i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		rc = uv_create_cq(c->fd, sizes[i], &good, sizeof(good), &handle, &out, sizeof(out));
		vt_check(rc, "cq of %#x entries: %s", sizes[i], rc ? strerror(rc) : "taken");
	}
	rc = uv_create_cq(c->fd, 16, &reserved, sizeof(reserved), &handle, &out, sizeof(out));
	vt_check(rc, "cq, reserved is not zero: %s", rc ? strerror(rc) : "taken");
	rc = uv_create_cq(c->fd, 16, &flags, sizeof(flags), &handle, &out, sizeof(out));
	vt_check(rc, "cq, unknown flags: %s", rc ? strerror(rc) : "taken");
	rc = uv_create_cq(c->fd, 16, (void *)longer, sizeof(longer), &handle, &out, sizeof(out));
	vt_check(rc, "cq, longer and not zero: %s", rc ? strerror(rc) : "taken");
	/* an answer that has no room may not leave a queue behind that nobody can map */
	rc = uv_create_cq(c->fd, 16, &good, sizeof(good), &handle, &out, 8);
	vt_check(true, "cq, little room for the answer: %s", rc ? strerror(rc) : "taken");
	rc = uv_create_cq(c->fd, 16, &good, sizeof(good), &handle, &out, sizeof(out));
	vt_check(!rc, "cq, a good one: %s", rc ? strerror(rc) : "works");
}

/* --- queues that are resized in the wrong order --------------------------------------------------- */

/* one step for a completion queue, or for a shared receive queue; the ring it answers with */
static int resize(struct uv_context *c, bool shared, uint32_t handle, uint32_t entries, uint32_t step, uint32_t reserved,
		  struct sroce_ring_info *ring)
{
	struct ib_uverbs_modify_srq srq = { .srq_handle = handle, .attr_mask = IBV_SRQ_MAX_WR, .max_wr = entries };
	struct sroce_modify_srq_req srq_in = { (uintptr_t)ring, step, reserved };
	struct ib_uverbs_resize_cq cq = { .cq_handle = handle, .cqe = entries };
	struct sroce_resize_cq_req cq_in = { step, reserved };
	struct ib_uverbs_resize_cq_resp resp;

	if (shared)
		return uv_issue(c->fd, &(struct uv_command){
			IB_USER_VERBS_CMD_MODIFY_SRQ, &srq, sizeof(srq), &srq_in, sizeof(srq_in) });
	return uv_issue(c->fd, &(struct uv_command){
		IB_USER_VERBS_CMD_RESIZE_CQ, &cq, sizeof(cq), &cq_in, sizeof(cq_in), &resp, sizeof(resp),
		ring, sizeof(*ring) });
}

static bool can_map(struct uv_context *c, const struct sroce_ring_info *ring)
{
	void *p = mmap(NULL, ring->mmap_len, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, ring->mmap_offset);

	if (p == MAP_FAILED)
		return false;
	munmap(p, ring->mmap_len);
	return true;
}

static void resizing(struct uv_context *c, const char *what, bool shared, uint32_t handle)
{
	struct sroce_ring_info first = {}, second = {}, none = {};

#define STEP(entries, step, reserved, ring) resize(c, shared, handle, entries, step, reserved, ring)
	vt_check(STEP(32, SROCE_RESIZE_MOVE, 0, &none), "%s, resize: a move to nowhere is refused", what);
	vt_check(!STEP(32, SROCE_RESIZE_CANCEL, 0, &none), "%s, resize: nothing to give up is given up", what);
	vt_check(STEP(32, 4, 0, &none), "%s, resize: an unknown step is refused", what);
	vt_check(STEP(32, 0, 0, &none), "%s, resize: no step at all is refused", what);
	vt_check(STEP(32, SROCE_RESIZE_PREPARE, 1, &none), "%s, resize: reserved is not zero: refused", what);
	vt_check(STEP(0xffffffff, SROCE_RESIZE_PREPARE, 0, &none), "%s, resize: too many are refused", what);
	if (shared) {
		vt_check(STEP(32, SROCE_RESIZE_PREPARE, 0, (void *)8), "%s, resize: nowhere to answer to: refused", what);
		vt_check(STEP(32, SROCE_RESIZE_MOVE, 0, &none), "%s, resize: and then there is nowhere to move to", what);
	}
	vt_check(!STEP(32, SROCE_RESIZE_PREPARE, 0, &first) && can_map(c, &first), "%s, resize: prepared", what);
	vt_check(!STEP(64, SROCE_RESIZE_PREPARE, 0, &second) && can_map(c, &second), "%s, resize: prepared again", what);
	vt_check(!can_map(c, &first), "%s, resize: the first ring is gone", what);
	vt_check(!STEP(64, SROCE_RESIZE_CANCEL, 0, &none) && !can_map(c, &second), "%s, resize: so is one given up", what);
	vt_check(STEP(64, SROCE_RESIZE_MOVE, 0, &none), "%s, resize: and nothing moves there", what);
	vt_check(!STEP(32, SROCE_RESIZE_PREPARE, 0, &first) && !STEP(32, SROCE_RESIZE_MOVE, 0, &none),
		 "%s, resize: moved", what);
	vt_check(STEP(32, SROCE_RESIZE_MOVE, 0, &none) && can_map(c, &first), "%s, resize: but once", what);
#undef STEP
}

static void resizes(struct uv_context *c)
{
	struct ib_uverbs_create_srq cmd = { .pd_handle = c->pd, .max_wr = 16, .max_sge = 1 };
	struct sroce_create_srq_req srq_in = {};
	struct ib_uverbs_create_srq_resp resp;
	struct sroce_create_srq_resp srq_out;
	struct sroce_create_cq_req cq_in = {};
	struct sroce_create_cq_resp cq_out;
	uint32_t cq;

	if (uv_create_cq(c->fd, 16, &cq_in, sizeof(cq_in), &cq, &cq_out, sizeof(cq_out)) ||
	    uv_issue(c->fd, &(struct uv_command){
		    IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), &srq_in, sizeof(srq_in), &resp, sizeof(resp),
		    &srq_out, sizeof(srq_out) }))
		vt_die(VT_SETUP, "no queues to resize");
	resizing(c, "cq", false, cq);
	resizing(c, "srq", true, resp.srq_handle);
}

static void bad_qp(struct uv_context *c, const char *what, const struct ib_uverbs_create_qp *cmd)
{
	struct sroce_create_qp_req in = {};
	struct ib_uverbs_create_qp_resp resp;
	struct sroce_create_qp_resp out;
	int rc = uv_create_qp(c->fd, cmd, &in, sizeof(in), &resp, &out, sizeof(out));

	vt_check(rc, "qp, %s: %s", what, rc ? strerror(rc) : "taken");
}

static void queue_pairs(struct uv_context *c)
{
	struct sroce_create_cq_req cq_in = {};
	struct sroce_create_cq_resp cq_out;
	struct sroce_create_qp_req reserved = { .reserved = ~0ull };
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_create_qp_resp resp;
	struct sroce_create_qp_resp out;
	uint32_t cq;
	int rc;

	uv_create_cq(c->fd, 16, &cq_in, sizeof(cq_in), &cq, &cq_out, sizeof(cq_out));
#define BAD_QP(what, field, value) \
	do { \
		uv_qp_command(&cmd, c->pd, cq, IB_UVERBS_QPT_RC); \
		cmd.field = value; \
		bad_qp(c, what, &cmd); \
	} while (0)
	BAD_QP("2^32 - 1 sends", max_send_wr, 0xffffffff);
	BAD_QP("2^31 sends", max_send_wr, 0x80000000);
	BAD_QP("2^32 - 1 receives", max_recv_wr, 0xffffffff);
	BAD_QP("2^28 receives", max_recv_wr, 0x10000000);
	BAD_QP("2^32 - 1 elements of a send", max_send_sge, 0xffffffff);
	BAD_QP("33 elements of a send", max_send_sge, 33);
	BAD_QP("2^32 - 1 elements of a receive", max_recv_sge, 0xffffffff);
	BAD_QP("2^32 - 1 inline bytes", max_inline_data, 0xffffffff);
	BAD_QP("type 99", qp_type, 99);
	BAD_QP("type GSI", qp_type, 1);
	BAD_QP("no such pd", pd_handle, 99999);
	BAD_QP("no such send cq", send_cq_handle, 99999);
	BAD_QP("no such receive cq", recv_cq_handle, 99999);
	BAD_QP("a pd as its cq", send_cq_handle, c->pd);
	uv_qp_command(&cmd, c->pd, cq, IB_UVERBS_QPT_RC);
	rc = uv_create_qp(c->fd, &cmd, &reserved, sizeof(reserved), &resp, &out, sizeof(out));
	vt_check(rc, "qp, reserved is not zero: %s", rc ? strerror(rc) : "taken");
	rc = uv_create_qp(c->fd, &cmd, NULL, 0, &resp, &out, 16);
	vt_check(true, "qp, little room for the answer: %s", rc ? strerror(rc) : "taken");
}

static void regions(struct uv_context *c)
{
	static const struct {
		const char *what;
		uint64_t start, length, va;
		uint32_t access;
	} cases[] = {
		{ "of no bytes", 0x100000, 0, 0x100000, 1 },
		{ "of all memory", 0, ~0ull, 0, 1 },
		{ "over the end of the address space", 0xffffffffffffe000ull, 0x4000, 0xffffffffffffe000ull, 1 },
		{ "of the kernel's memory", 0xffff800000000000ull, 0x1000, 0xffff800000000000ull, 1 },
		{ "of what is not mapped", 0x1000, 0x1000, 0x1000, 1 },
		{ "half of which is not mapped", 1, 1ull << 40, 1, 1 },
		{ "with remote but not local write", 0x400000, 0x1000, 0x400000, 2 },
		{ "with unknown access", 0x400000, 0x1000, 0x400000, 0x80000 },
		{ "2^63 bytes long", 0x400000, 1ull << 63, 0x400000, 1 },
		{ "whose other address ends beyond 2^64", 0, 0x10000, 0xffffffffffff8000ull, 1 },
	};
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_dereg_mr dereg = { .mr_handle = 0 };
	static uint8_t room[0x10000] __attribute__((aligned(4096)));
	size_t i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		rc = uv_reg_mr(c->fd, c->pd, cases[i].start ? cases[i].start : (uintptr_t)room, cases[i].length,
			    cases[i].va, cases[i].access, &resp);
		vt_check(rc, "mr %s: %s", cases[i].what, rc ? strerror(rc) : "taken");
	}
	rc = uv_reg_mr(c->fd, 99999, (uintptr_t)room, 100, (uintptr_t)room, 1, &resp);
	vt_check(rc, "mr in a pd that is not there: %s", rc ? strerror(rc) : "taken");
	rc = uv_reg_mr(c->fd, c->pd, (uintptr_t)room, sizeof(room), (uintptr_t)room, 1, &resp);
	vt_check(!rc, "mr, a good one: %s", rc ? strerror(rc) : "works");
	dereg.mr_handle = resp.mr_handle;
	for (i = 0; i < 2; i++) {
		rc = uv_issue(c->fd, &(struct uv_command){
			IB_USER_VERBS_CMD_DEREG_MR, &dereg, sizeof(dereg), NULL, 0, NULL, 0, NULL, 0 });
		vt_check(!rc == !i, "mr, deregistered for the %s time: %s", i ? "second" : "first",
		      rc ? strerror(rc) : "done");
	}
}

/* --- mappings ----------------------------------------------------------------------------------- */

static bool maps(int fd, uint64_t offset, size_t len, int prot, int flags)
{
	void *p = mmap(NULL, len, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return false;
	munmap(p, len);
	return true;
}

static void mappings(struct uv_context *c)
{
	struct sroce_create_cq_req in = {};
	struct sroce_create_cq_resp out;
	struct ib_uverbs_destroy_cq destroy = {};
	struct ib_uverbs_destroy_cq_resp gone;
	volatile uint32_t *ring;
	struct vt_rng rng = { 1 };
	uint64_t offset;
	uint32_t cq;
	size_t len;
	int i, taken = 0;
	pid_t child;

	uv_create_cq(c->fd, 64, &in, sizeof(in), &cq, &out, sizeof(out));
	offset = out.ring.mmap_offset;
	len = out.ring.mmap_len;
	vt_check(maps(c->fd, offset, len, PROT_READ | PROT_WRITE, MAP_SHARED), "mmap of a ring as it is told");
	vt_check(!maps(c->fd, offset, len + 4096, PROT_READ | PROT_WRITE, MAP_SHARED), "mmap of one page more is refused");
	vt_check(!maps(c->fd, offset, len + (1 << 30), PROT_READ | PROT_WRITE, MAP_SHARED), "mmap of a GiB more is refused");
	vt_check(!maps(c->fd, offset + 4096, len, PROT_READ | PROT_WRITE, MAP_SHARED), "mmap from its second page is refused");
	for (i = 0; i < 5000; i++)
		taken += maps(c->fd, (vt_rand(&rng) & 0xffffffffffull) << 12, 4096 << vt_below(&rng, 10),
			      PROT_READ | PROT_WRITE, MAP_SHARED);
	vt_check(!taken, "mmap of 5000 random places is refused (%d taken)", taken);
	ring = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, offset);
	if (ring == MAP_FAILED)
		return;
	/* a child has it as well, or not; both must be safe */
	child = fork();
	if (!child) {
		ring[0] = 7;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	vt_check(mremap((void *)ring, len, len + 65536, MREMAP_MAYMOVE) == MAP_FAILED, "a mapping cannot be made longer");
	destroy.cq_handle = cq;
	i = uv_issue(c->fd, &(struct uv_command){
		IB_USER_VERBS_CMD_DESTROY_CQ, &destroy, sizeof(destroy), NULL, 0, &gone, sizeof(gone), NULL, 0 });
	vt_check(!i, "a cq is destroyed while it is mapped: %s", i ? strerror(i) : "done");
	/* still ours to write to, whoever had the memory before or after */
	for (i = 0; i < (int)len / 4; i++)
		ring[i] = 0xdeadbeef;
	vt_check(!maps(c->fd, offset, len, PROT_READ | PROT_WRITE, MAP_SHARED), "mmap of a destroyed cq is refused");
	munmap((void *)ring, len);
}

/* --- doorbells ------------------------------------------------------------------------------------- */

static void doorbells(struct uv_context *c)
{
	struct vt_rng rng = { 2 };
	struct uv_context other;
	char buf[64];
	int i, bad = 0, fd;

	if (c->doorbell < 0)
		return;
	for (i = 0; i < 20000; i++)
		if (!ioctl(c->doorbell, SROCE_IOC_DOORBELL, vt_rand(&rng)))
			bad++;
	vt_check(!bad, "doorbells for 20000 random queue pairs fail (%d did not)", bad);
	for (i = 0, bad = 0; i < 20000; i++)
		if (!ioctl(c->doorbell, vt_rand(&rng), buf))
			bad++;
	/* the kernel's own, on every file: FIONBIO and FIOASYNC and their like are not ours to judge */
	vt_check(bad < 20, "20000 random ioctls fail (%d did not)", bad);
	for (i = 0, bad = 0; i < (int)n_others; i++)
		if (!ioctl(c->doorbell, SROCE_IOC_DOORBELL, others[i]))
			bad++;
	vt_check(!bad, "doorbells for other processes' queue pairs fail (%d of %u did not)", bad, n_others);
	vt_check(read(c->doorbell, buf, 64) < 0, "a doorbell cannot be read");
	vt_check(write(c->doorbell, buf, 64) < 0, "a doorbell cannot be written");
	vt_check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, c->doorbell, 0) == MAP_FAILED, "a doorbell cannot be mapped");
	/* it outlives its context */
	other = uv_open(uverbs);
	fd = dup(other.doorbell);
	uv_close(&other);
	vt_check(ioctl(fd, SROCE_IOC_DOORBELL, 0x123456) < 0, "a doorbell whose context is closed fails: %s", strerror(errno));
	close(fd);
}

/* --- rings of nonsense ------------------------------------------------------------------------------ */

#define MEMORY (1 << 20)

struct target {
	uint32_t handle, qpn;
	struct uv_ring sq, rq;
};

static struct uv_context ctx;
/* pairs: RC, UD, UC */
#define NQPS 6
static const uint8_t types[NQPS / 2] = { IB_UVERBS_QPT_RC, IB_UVERBS_QPT_UD, IB_UVERBS_QPT_UC };
static struct target qps[NQPS];
static struct uv_ring cq_ring;
/* guard, registered, guard */
static uint8_t *memory;
static uint32_t lkey, rkey;
static volatile bool stop;
static uint64_t seed;
static unsigned long posted, rung, revived;

/* 0-1 are connected to each other, and so on */
static struct uv_route route(int i)
{
	struct uv_route r = { .gid_index = gid_index, .dest_qpn = qps[i ^ 1].qpn, .psn = 5, .mtu = IBV_MTU_1024 };

	memcpy(r.dgid, gid, 16);
	return r;
}

static int revive(int i)
{
	struct uv_route r = route(i);

	return uv_connect(ctx.fd, qps[i].handle, types[i / 2], &r);
}

/* to any state, with nothing else said */
static void disturb(int i, uint8_t state)
{
	struct ib_uverbs_modify_qp cmd = { .qp_handle = qps[i].handle, .attr_mask = IBV_QP_STATE, .qp_state = state };

	uv_issue(ctx.fd, &(struct uv_command){
		IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), NULL, 0, NULL, 0, NULL, 0 });
}

static void build_targets(void)
{
	struct sroce_create_cq_req cq_in = {};
	struct sroce_create_cq_resp cq_out;
	struct sroce_create_qp_req qp_in = {};
	struct ib_uverbs_reg_mr_resp mr;
	uint32_t cq;
	int i, rc;

	ctx = uv_open(uverbs);
	memory = aligned_alloc(4096, 3 * MEMORY);
	memset(memory, 0xc5, 3 * MEMORY);
	rc = uv_reg_mr(ctx.fd, ctx.pd, (uintptr_t)memory + MEMORY, MEMORY, (uintptr_t)memory + MEMORY, 15, &mr);
	if (rc || uv_create_cq(ctx.fd, 1024, &cq_in, sizeof(cq_in), &cq, &cq_out, sizeof(cq_out)))
		vt_die(VT_SETUP, "set-up: %s", strerror(rc));
	lkey = mr.lkey;
	rkey = mr.rkey;
	cq_ring = uv_map_ring(ctx.fd, &cq_out.ring);
	for (i = 0; i < NQPS; i++) {
		struct ib_uverbs_create_qp cmd;
		struct ib_uverbs_create_qp_resp resp;
		struct sroce_create_qp_resp out;

		uv_qp_command(&cmd, ctx.pd, cq, types[i / 2]);
		/* small ones, whose rings share a page with each other's, are connected to large ones */
		if (i & 1)
			cmd.max_send_wr = cmd.max_recv_wr = 4;
		rc = uv_create_qp(ctx.fd, &cmd, &qp_in, sizeof(qp_in), &resp, &out, sizeof(out));
		if (rc)
			vt_die(VT_SETUP, "create qp: %s", strerror(rc));
		qps[i] = (struct target){ resp.qp_handle, resp.qpn, uv_map_ring(ctx.fd, &out.sq),
					  uv_map_ring(ctx.fd, &out.rq) };
	}
	for (i = 0; i < NQPS; i++) {
		rc = revive(i);
		if (rc)
			vt_die(VT_SETUP, "qp %d to RTS: %s", i, strerror(rc));
	}
}

static uint64_t some_address(struct vt_rng *rng)
{
	switch (vt_below(rng, 8)) {
	case 0: return vt_rand(rng);
	case 1: return ~0ull - vt_below(rng, 4096);
	case 2: return (uintptr_t)memory + vt_below(rng, 3 * MEMORY);
	case 3: return 0xffffffff80000000ull + vt_below(rng, 1 << 24);
	default: return (uintptr_t)memory + MEMORY + vt_below(rng, MEMORY);
	}
}

static uint32_t some_length(struct vt_rng *rng)
{
	switch (vt_below(rng, 8)) {
	case 0: return vt_rand(rng);
	case 1: return 0;
	case 2: return 0x80000000;
	case 3: return MEMORY;
	default: return vt_below(rng, 5000);
	}
}

static uint32_t some_key(struct vt_rng *rng, uint32_t good)
{
	switch (vt_below(rng, 12)) {
	case 0: return vt_rand(rng);
	case 1: return good ^ 1u << vt_below(rng, 32);
	case 2: return 0xff; /* that of kernel users */
	default: return good;
	}
}

/* a work request with a reasonable shape and one or another lie in it */
static void write_send(uint8_t *at, struct vt_rng *rng, uint32_t stride)
{
	static const uint8_t opcodes[] = { 0, 1, 2, 3, 4, 5, 6, 0, 2, 4, 7, 8, 9, 14, 15, 32 };
	struct sroce_send_wqe w = {
		.wr_id = vt_rand(rng),
		.opcode = vt_below(rng, 16) ? opcodes[vt_below(rng, ARRAY_SIZE(opcodes))] : vt_rand(rng),
		.num_sge = vt_below(rng, 8) ? vt_below(rng, 5) : vt_rand(rng),
		.flags = vt_below(rng, 8) ? vt_below(rng, 8) : vt_rand(rng),
		.imm_data = vt_rand(rng),
		.reserved = vt_below(rng, 32) ? 0 : vt_rand(rng),
		.rdma = { .remote_addr = some_address(rng), .rkey = some_key(rng, rkey) },
	};
	uint32_t at_sge = sizeof(w), i;

	if (vt_below(rng, 4) == 0) {
		w.flags |= SROCE_SEND_INLINE;
		w.num_sge = 0;
		w.inline_len = vt_below(rng, 4) ? vt_below(rng, 65) : vt_rand(rng);
	}
	if (w.opcode == 5 || w.opcode == 6) {
		w.atomic.remote_addr = some_address(rng) & ~(vt_below(rng, 8) ? 7ull : 0);
		w.atomic.rkey = some_key(rng, rkey);
	}
	if (!vt_below(rng, 3)) {
		w.ud.ahn = vt_rand(rng);
		w.ud.remote_qpn = qps[2 + vt_below(rng, 2)].qpn;
	}
	memcpy(at, &w, min((size_t)stride, sizeof(w)));
	for (i = 0; i < 4 && at_sge + sizeof(struct sroce_sge) <= stride; i++, at_sge += sizeof(struct sroce_sge)) {
		struct sroce_sge sge = { some_address(rng), some_length(rng), some_key(rng, lkey) };

		memcpy(at + at_sge, &sge, sizeof(sge));
	}
}

static void write_recv(uint8_t *at, struct vt_rng *rng, uint32_t stride)
{
	struct sroce_recv_wqe w = { .wr_id = vt_rand(rng), .num_sge = vt_below(rng, 8) ? 1 : vt_rand(rng) };
	struct sroce_sge sge = { some_address(rng), some_length(rng), some_key(rng, lkey) };

	memcpy(at, &w, sizeof(w));
	if (stride >= sizeof(w) + sizeof(sge))
		memcpy(at + sizeof(w), &sge, sizeof(sge));
}

static void *poster(void *arg)
{
	struct vt_rng rng = { vt_mix(seed + (uintptr_t)arg) };

	while (!stop) {
		struct target *t = &qps[vt_below(&rng, NQPS)];
		struct uv_ring *r = vt_below(&rng, 3) ? &t->sq : &t->rq;
		uint32_t n = 1 + vt_below(&rng, 8), prod = __atomic_load_n(&r->hdr->prod, __ATOMIC_ACQUIRE);

		while (n--) {
			if (r == &t->sq)
				write_send(uv_entry(r, prod++), &rng, r->info.stride);
			else
				write_recv(uv_entry(r, prod++), &rng, r->info.stride);
			posted++;
		}
		__atomic_store_n(&r->hdr->prod, prod, __ATOMIC_RELEASE);
		if (!ioctl(ctx.doorbell, SROCE_IOC_DOORBELL, t->qpn))
			rung++;
	}
	return NULL;
}

/* writes where the kernel reads, and where only the kernel should write */
static void *scribbler(void *arg)
{
	struct vt_rng rng = { vt_mix(seed + 100 + (uintptr_t)arg) };
	uint32_t i;

	while (!stop) {
		struct target *t = &qps[vt_below(&rng, NQPS)];
		struct uv_ring *r = vt_below(&rng, 2) ? &t->sq : vt_below(&rng, 2) ? &t->rq : &cq_ring;

		switch (vt_below(&rng, 12)) {
		case 0: r->hdr->prod += 1u << vt_below(&rng, 32); break;
		case 1: r->hdr->prod = vt_rand(&rng); break;
		case 2: r->hdr->cons = vt_rand(&rng); break;
		case 3: r->hdr->flags = vt_rand(&rng); break;
		case 4: r->hdr->prod = r->hdr->cons + r->info.entries + vt_below(&rng, 3) - 1; break;
		case 5: /* the kernel cannot wait for ever on a full queue of completions */
			cq_ring.hdr->cons = cq_ring.hdr->prod;
			break;
		default: /* one byte or word anywhere */
			i = vt_below(&rng, r->info.mmap_len / 8);
			if (vt_below(&rng, 2))
				((uint64_t *)r->base)[i] = vt_rand(&rng);
			else
				((uint8_t *)r->base)[i * 8 + vt_below(&rng, 8)] = vt_rand(&rng);
		}
		if (!vt_below(&rng, 64))
			usleep(10);
	}
	return NULL;
}

/* keeps the queue pairs alive, with work in every state */
static void *reviver(void *unused)
{
	struct vt_rng rng = { vt_mix(seed + 200) };

	while (!stop) {
		int i = vt_below(&rng, NQPS);

		/* the rings' private indices begin at 0 again */
		if (!vt_below(&rng, 4)) {
			qps[i].sq.hdr->prod = qps[i].sq.hdr->cons = 0;
			qps[i].rq.hdr->prod = qps[i].rq.hdr->cons = 0;
		}
		if (!revive(i))
			revived++;
		if (!vt_below(&rng, 8))
			disturb(i, vt_below(&rng, 7));
		usleep(vt_below(&rng, 3000));
	}
	return NULL;
}

/* objects come and go next to all of that, and so do their memory and their numbers */
static void *churner(void *unused)
{
	struct vt_rng rng = { vt_mix(seed + 300) };
	uint8_t *room = aligned_alloc(4096, 65536);

	while (!stop) {
		struct uv_context c = uv_open(uverbs);
		struct ib_uverbs_reg_mr_resp mr;
		struct sroce_create_cq_req in = {};
		struct sroce_create_cq_resp out;
		uint32_t cq;

		uv_reg_mr(c.fd, c.pd, (uintptr_t)room, 65536, (uintptr_t)room, 15, &mr);
		uv_create_cq(c.fd, 1 + vt_below(&rng, 5000), &in, sizeof(in), &cq, &out, sizeof(out));
		if (n_others)
			ioctl(c.doorbell, SROCE_IOC_DOORBELL, others[vt_below(&rng, n_others)]);
		ioctl(c.doorbell, SROCE_IOC_DOORBELL, qps[vt_below(&rng, NQPS)].qpn);
		uv_close(&c);
	}
	return NULL;
}

/* random bytes as commands of both kinds; they go to a context of their own */
static void *babbler(void *unused)
{
	struct vt_rng rng = { vt_mix(seed + 400) };
	struct uv_context c;
	uint64_t buf[64];
	uint32_t i;

	/* Some commands make files: they shall not use up those of the other threads */
	if (unshare(CLONE_FILES))
		vt_die(VT_SETUP, "unshare: %s", strerror(errno));
	c = uv_open(uverbs);
	while (!stop) {
		for (i = 0; i < ARRAY_SIZE(buf); i++)
			buf[i] = vt_below(&rng, 3) ? vt_rand(&rng) : vt_below(&rng, 8);
		if (vt_below(&rng, 2)) {
			struct ib_uverbs_cmd_hdr *hdr = (void *)buf;

			hdr->command = vt_below(&rng, 64) | (vt_below(&rng, 8) ? 0 : IB_USER_VERBS_CMD_FLAG_EXTENDED);
			hdr->in_words = 2 + vt_below(&rng, 60);
			hdr->out_words = vt_below(&rng, 32);
			buf[1] = (uintptr_t)(buf + 32);
			i = write(c.fd, buf, hdr->in_words * 4);
		} else {
			struct ib_uverbs_ioctl_hdr *hdr = (void *)buf;

			hdr->num_attrs = vt_below(&rng, 8);
			hdr->length = sizeof(*hdr) + hdr->num_attrs * sizeof(struct ib_uverbs_attr);
			hdr->object_id = vt_below(&rng, 32);
			hdr->method_id = vt_below(&rng, 16);
			/* ib_core 7.2 forgets a reference to the task when there is a context already: not our leak */
			if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_GET_CONTEXT)
				continue;
			hdr->reserved1 = 0;
			hdr->reserved2 = 0;
			hdr->driver_id = SROCE_DRIVER_ID;
			for (i = 0; i < hdr->num_attrs; i++) {
				hdr->attrs[i].attr_id = vt_below(&rng, 24) | (vt_below(&rng, 8) ? 0 : 0x1000);
				hdr->attrs[i].len = vt_below(&rng, 4) ? 8 : vt_below(&rng, 256);
				hdr->attrs[i].flags = vt_below(&rng, 2);
				if (hdr->attrs[i].len > 8)
					hdr->attrs[i].data = (uintptr_t)(buf + 40);
			}
			ioctl(c.fd, RDMA_VERBS_IOCTL, hdr);
		}
	}
	return NULL;
}

static bool untouched(const uint8_t *p, size_t len)
{
	while (len--)
		if (*p++ != 0xc5)
			return false;
	return true;
}

static void nonsense(double seconds)
{
	void *(*const roles[])(void *) = { poster, poster, scribbler, reviver, churner, babbler };
	pthread_t threads[ARRAY_SIZE(roles)];
	uintptr_t i;

	build_targets();
	for (i = 0; i < ARRAY_SIZE(roles); i++)
		pthread_create(&threads[i], NULL, roles[i], (void *)i);
	usleep(seconds * 1e6);
	stop = true;
	for (i = 0; i < ARRAY_SIZE(roles); i++)
		pthread_join(threads[i], NULL);
	printf("# %lu work requests, %lu doorbells, %lu times to RTS\n", posted, rung, revived);
	vt_check(posted > 100 && rung > 10 && revived > 2, "there was work for the kernel to look at");
	vt_check(untouched(memory, MEMORY) && untouched(memory + 2 * MEMORY, MEMORY),
	      "memory that is not registered was not written");
	uv_close(&ctx);
	ctx = uv_open(uverbs);
	vt_check(ctx.fd >= 0, "a new context works");
	uv_close(&ctx);
}

int main(int argc, char **argv)
{
	double seconds = 3;
	struct uv_context c;
	int opt;

	while ((opt = getopt(argc, argv, "u:g:G:t:s:q:")) != -1) {
		switch (opt) {
		case 'u': uverbs = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'G':
			if (inet_pton(AF_INET6, optarg, gid) != 1)
				vt_die(VT_SETUP, "not a GID: %s", optarg);
			break;
		case 't': seconds = atof(optarg); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'q':
			if (n_others < ARRAY_SIZE(others))
				others[n_others++] = strtoul(optarg, NULL, 0);
			break;
		default: vt_die(VT_SETUP, "see the top of hostile.c");
		}
	}
	contexts();
	c = uv_open(uverbs);
	completion_queues(&c);
	resizes(&c);
	queue_pairs(&c);
	regions(&c);
	mappings(&c);
	doorbells(&c);
	uv_close(&c);
	if (seconds > 0)
		nonsense(seconds);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
