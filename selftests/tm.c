// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * tm: tag matching on shared receive queues (ibv_create_srq_ex(), ibv_post_srq_ops()): what matches and in which order,
 * what does not, synchronization, rendezvous with their data, events, batches, errors, limits, and objects that go.
 *
 *	tm -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER]
 *
 * @a sends, with ordinary queues; @b receives from a queue with tag matching. As root: what counts in a limit is asked for
 * by a child who is nobody.
 */
#define _GNU_SOURCE /* sched_getcpu() */
#include <endian.h>
#include <errno.h>
#include <infiniband/tm_types.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/sroce-abi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"
#include "uverbs.h"

#define ROOM (4 << 20)
#define TAGS 64
#define OPS 128
#define RECVS 64
#define CTX 0x1badcafe
#define ALL_BITS UINT64_MAX
#define HEAD ((uint32_t)sizeof(struct ibv_tmh))

static struct ibv_cq_ex *tm_cq;
static struct ibv_comp_channel *tm_channel; /* of the next one; NULL: none */
static struct ibv_tm_caps caps;
static struct ibv_mr *from, *to; /* of a and of b */

/* --- objects --------------------------------------------------------------------------------------- */

static struct ibv_cq_ex *new_cq(struct vt_dev *dev, int entries)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = entries,
		.channel = tm_channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};

	return ibv_create_cq_ex(dev->ctx, &attr);
}

static struct ibv_srq *try_srq(struct vt_dev *dev, struct ibv_cq *cq, uint32_t tags, uint32_t ops)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = RECVS, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM |
			     (cq ? IBV_SRQ_INIT_ATTR_CQ : 0),
		.srq_type = IBV_SRQT_TM,
		.pd = dev->pd,
		.cq = cq,
		.tm_cap = { .max_num_tags = tags, .max_ops = ops },
	};

	errno = 0;
	return ibv_create_srq_ex(dev->ctx, &attr);
}

static struct ibv_cq *tm_plain(void)
{
	return ibv_cq_ex_to_cq(tm_cq);
}

static void tm_end(void)
{
	ends_stop();
	if (b.srq && ibv_destroy_srq(b.srq))
		vt_die(VT_WRONG, "WRONG: destroy srq: %s", strerror(errno));
	b.srq = NULL;
	if (tm_cq && ibv_destroy_cq(tm_plain()))
		vt_die(VT_WRONG, "WRONG: destroy cq: %s", strerror(errno));
	tm_cq = NULL;
}

/* A new queue, a pair that is connected, and @recvs ordinary receives of 64 KiB, numbered from 0 */
static void fresh(uint32_t recvs)
{
	uint32_t i;

	tm_end();
	tm_cq = new_cq(b.dev, 512);
	if (!tm_cq)
		vt_die(VT_WRONG, "WRONG: create cq: %s", strerror(errno));
	b.srq = try_srq(b.dev, tm_plain(), TAGS, OPS);
	if (!b.srq)
		vt_die(VT_WRONG, "WRONG: create srq: %s", strerror(errno));
	ends_fresh(IBV_QPT_RC);
	for (i = 0; i < recvs; i++)
		if (post_recv(&b, i, (struct place){ (uintptr_t)to->addr + ROOM / 2 + i * 65536 % (ROOM / 2), to->lkey }, 65536))
			vt_die(VT_WRONG, "WRONG: post receive");
}

/* --- operations on the list ------------------------------------------------------------------------ */

static struct ibv_ops_wr op_add(struct ibv_sge *sge, uint64_t tag, uint64_t mask, uint64_t id)
{
	return (struct ibv_ops_wr){
		.wr_id = id + 10000,
		.opcode = IBV_WR_TAG_ADD,
		.flags = IBV_OPS_SIGNALED,
		.tm.add = { .recv_wr_id = id, .sg_list = sge, .num_sge = 1, .tag = tag, .mask = mask },
	};
}

static struct ibv_ops_wr op_del(uint32_t handle)
{
	return (struct ibv_ops_wr){
		.wr_id = 20000,
		.opcode = IBV_WR_TAG_DEL,
		.flags = IBV_OPS_SIGNALED,
		.tm.handle = handle,
	};
}

static int post_op_wr(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;

	return ibv_post_srq_ops(b.srq, wr, &bad);
}

struct got {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t len;
	uint64_t tag;
	uint32_t priv;
};

static bool poll_tm(struct got *got, double seconds)
{
	struct ibv_poll_cq_attr attr = {};
	double end = vt_now() + seconds;
	struct ibv_wc_tm_info info;

	while (ibv_start_poll(tm_cq, &attr))
		if (vt_now() > end)
			return false;
	ibv_wc_read_tm_info(tm_cq, &info);
	*got = (struct got){
		.wr_id = tm_cq->wr_id,
		.status = tm_cq->status,
		.opcode = ibv_wc_read_opcode(tm_cq),
		.flags = ibv_wc_read_wc_flags(tm_cq),
		.len = ibv_wc_read_byte_len(tm_cq),
		.tag = info.tag,
		.priv = info.priv,
	};
	ibv_end_poll(tm_cq);
	return true;
}

/* The next completion is this one; its @status counts for what else there is */
static struct got expect(const char *what, uint64_t id, enum ibv_wc_opcode opcode, unsigned int flags,
			 enum ibv_wc_status status)
{
	struct got got = {};

	if (!poll_tm(&got, 10)) {
		vt_check(false, "%s: no completion", what);
		return got;
	}
	vt_check(got.wr_id == id && got.status == status && (status || (got.opcode == opcode && got.flags == flags)),
		 "%s: %lu: %s, opcode %d, flags %#x (wanted %lu: %s, %d, %#x)", what, (unsigned long)got.wr_id,
		 ibv_wc_status_str(got.status), got.opcode, got.flags, (unsigned long)id, ibv_wc_status_str(status),
		 opcode, flags);
	return got;
}

static void nothing(const char *what)
{
	struct got got;

	vt_check(!poll_tm(&got, 0.05), "%s: no completion", what);
}

/* Add a buffer at @off of what b has, without a completion; its handle */
static uint32_t add(uint64_t tag, uint64_t mask, uint64_t id, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)to->addr + off, len, to->lkey };
	struct ibv_ops_wr wr = op_add(&sge, tag, mask, id);
	int rc;

	wr.flags = 0;
	rc = post_op_wr(&wr);
	if (rc)
		vt_check(false, "a buffer is added: %s", strerror(rc));
	return wr.tm.handle;
}

static void post_sync(uint32_t count)
{
	struct ibv_ops_wr wr = {
		.wr_id = 30000,
		.opcode = IBV_WR_TAG_SYNC,
		.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
		.tm.unexpected_cnt = count,
	};
	int rc = post_op_wr(&wr);

	if (rc)
		vt_check(false, "sync: %s", strerror(rc));
}

static void sync_to(uint32_t count, unsigned int flags)
{
	post_sync(count);
	expect("sync", 30000, IBV_WC_TM_SYNC, flags, IBV_WC_SUCCESS);
}

/* --- messages ---------------------------------------------------------------------------------------- */

static const unsigned int matched = IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID;

static void write_head(uint8_t opcode, uint64_t tag)
{
	struct ibv_tmh *h = from->addr;

	*h = (struct ibv_tmh){ .opcode = opcode, .app_ctx = htobe32(CTX), .tag = htobe64(tag) };
}

static void send_raw(uint32_t len)
{
	int rc = post_op(&a, 1, IBV_WR_SEND, local(from), len, local(from));

	if (rc)
		vt_die(VT_WRONG, "WRONG: post send: %s", strerror(rc));
}

static void send_sized(uint8_t opcode, uint64_t tag, uint32_t len, uint64_t key)
{
	write_head(opcode, tag);
	vt_pattern((char *)from->addr + HEAD, key, 0, len);
	send_raw(HEAD + len);
}

static void sent(enum ibv_wc_status status)
{
	struct ibv_wc wc = {};

	if (!poll_one(a.send_cq, &wc, 10) || wc.status != status)
		vt_check(false, "the send: %s, wanted %s", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

static bool is_pattern(const void *at, uint64_t key, uint32_t len)
{
	void *good = malloc(len + 1);
	bool same;

	vt_pattern(good, key, 0, len);
	same = !memcmp(at, good, len);
	free(good);
	return same;
}

/* ... after a while */
static bool has_pattern(const void *at, uint64_t key, uint32_t len)
{
	double end = vt_now() + 10;

	while (!is_pattern(at, key, len))
		if (vt_now() > end)
			return false;
	return true;
}

static uint8_t *at(uint32_t off)
{
	return (uint8_t *)to->addr + off;
}

/* Of ordinary receive number @i */
static uint8_t *at_recv(uint32_t i)
{
	return at(ROOM / 2 + i * 65536 % (ROOM / 2));
}

/* --- what is refused ------------------------------------------------------------------------------- */

static void srq_refused(const char *what, struct ibv_cq *cq, uint32_t tags, uint32_t ops, int wanted)
{
	struct ibv_srq *srq = try_srq(b.dev, cq, tags, ops);
	int err = errno;

	vt_check(!srq && err == wanted, "%s: %s", what, srq ? "a queue" : strerror(err));
	if (srq)
		ibv_destroy_srq(srq);
}

static void create_refused(void)
{
	tm_cq = new_cq(b.dev, 16);
	srq_refused("refused: no completion queue", NULL, 1, 1, EINVAL);
	srq_refused("refused: a completion queue that is not extended", b.recv_cq, 1, 1, EINVAL);
	srq_refused("refused: no tags", tm_plain(), 0, 1, EINVAL);
	srq_refused("refused: too many tags", tm_plain(), caps.max_num_tags + 1, 1, EINVAL);
	srq_refused("refused: as many as can be", tm_plain(), UINT32_MAX, 1, EINVAL);
	srq_refused("refused: too many operations", tm_plain(), 1, caps.max_ops + 1, EINVAL);
	b.srq = try_srq(b.dev, tm_plain(), caps.max_num_tags, caps.max_ops);
	vt_check(b.srq, "the most that there may be: %s", strerror(errno));
	tm_end();
}

static void qp_refused(const char *what, enum ibv_qp_type type, struct ibv_pd *pd, int wanted)
{
	struct ibv_qp_init_attr init = {
		.send_cq = b.send_cq,
		.recv_cq = b.recv_cq,
		.srq = b.srq,
		.qp_type = type,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(pd, &init);
	vt_check(!qp && errno == wanted, "%s: %s", what, qp ? "a queue pair" : strerror(errno));
	if (qp)
		ibv_destroy_qp(qp);
}

static void qps_refused(void)
{
	struct ibv_pd *other = ibv_alloc_pd(b.dev->ctx);

	fresh(0);
	qp_refused("refused: unreliable connection", IBV_QPT_UC, b.dev->pd, EOPNOTSUPP);
	qp_refused("refused: datagrams", IBV_QPT_UD, b.dev->pd, EOPNOTSUPP);
	qp_refused("refused: another domain", IBV_QPT_RC, other, EINVAL);
	ibv_dealloc_pd(other);
}

static void op_refused(const char *what, struct ibv_ops_wr wr, int wanted)
{
	struct ibv_ops_wr *bad = NULL;
	int rc = ibv_post_srq_ops(b.srq, &wr, &bad);

	vt_check(rc == wanted && bad == &wr, "refused: %s: %s", what, strerror(rc));
}

static void ops_refused(void)
{
	struct ibv_sge sge[8] = { { (uintptr_t)to->addr, 64, to->lkey } };
	struct ibv_ops_wr good = op_add(sge, 1, ALL_BITS, 1), wr, list[3], *bad;
	struct ibv_srq *plain = vt_create_srq(b.dev, 4, 1);
	int rc;

	fresh(0);
	wr = good;
	wr.opcode = 3;
	op_refused("an unknown operation", wr, EINVAL);
	wr = good;
	wr.flags = 1 << 2;
	op_refused("an unknown flag", wr, EINVAL);
	wr = good;
	wr.tm.add.num_sge = caps.max_sge + 1;
	op_refused("too many elements", wr, EINVAL);
	wr.tm.add.num_sge = -1;
	op_refused("a negative number of elements", wr, EINVAL);
	rc = ibv_post_srq_ops(plain, &good, &bad);
	vt_check(rc == EINVAL && bad == &good, "refused: a queue without tags: %s", strerror(rc));
	ibv_destroy_srq(plain);
	nothing("what was refused");

	/* the good ones in front of it are carried out */
	for (rc = 0; rc < 3; rc++) {
		list[rc] = op_add(sge, 1, ALL_BITS, rc);
		list[rc].next = rc < 2 ? &list[rc + 1] : NULL;
	}
	list[1].opcode = 7;
	rc = post_op_wr(list);
	vt_check(rc == EINVAL, "a list with a bad one: %s", strerror(rc));
	expect("the one before it", 10000, IBV_WC_TM_ADD, 0, IBV_WC_SUCCESS);
	nothing("the ones behind it");
}

/* As many buffers as were asked for, and as many operations in a list */
static void limits_hold(void)
{
	struct ibv_sge sge = { (uintptr_t)to->addr, 64, to->lkey };
	static struct ibv_ops_wr list[OPS + 1];
	struct ibv_ops_wr *bad = NULL;
	int i, rc;

	fresh(0);
	for (i = 0; i <= OPS; i++) {
		list[i] = op_add(&sge, i, ALL_BITS, i);
		list[i].flags = 0;
		list[i].next = i < OPS ? &list[i + 1] : NULL;
	}
	rc = ibv_post_srq_ops(b.srq, list, &bad);
	vt_check(rc == ENOMEM && bad == &list[TAGS], "more buffers than there may be: %s", strerror(rc));
	for (i = 0; i <= OPS; i++)
		list[i].opcode = IBV_WR_TAG_SYNC;
	rc = ibv_post_srq_ops(b.srq, list, &bad);
	vt_check(rc == ENOMEM && bad == &list[OPS], "more operations than there may be: %s", strerror(rc));
	for (i = 0; i < TAGS; i++) {
		struct ibv_ops_wr wr = op_del(list[i].tm.handle);

		wr.flags = 0;
		rc = rc == ENOMEM ? post_op_wr(&wr) : rc ?: post_op_wr(&wr);
	}
	vt_check(!rc, "all of them go: %s", strerror(rc));
	add(1, ALL_BITS, 1, 0, 64);
}

/* --- what matches ------------------------------------------------------------------------------------ */

static const uint32_t lengths[] = { 0, 1, 1008, 1009, 2032, 4096, 65536, 1000003 };

static void expected(void)
{
	struct got got;
	uint32_t i, len;

	fresh(1);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		memset(at(0), 0xee, len + 9);
		add(i, ALL_BITS, 100 + i, 8, len);
		send_sized(IBV_TMH_EAGER, i, len, i);
		got = expect("expected", 100 + i, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
		vt_check(got.len == len && got.tag == i && got.priv == CTX && is_pattern(at(8), i, len) &&
			 at(0)[7] == 0xee && at(8)[len] == 0xee, "expected: %u bytes without a header", len);
		sent(IBV_WC_SUCCESS);
	}
}

/* A buffer of several pieces */
static void expected_in_pieces(void)
{
	struct ibv_sge sge[4] = {
		{ (uintptr_t)at(0), 5, to->lkey }, { (uintptr_t)at(5), 1000, to->lkey },
		{ (uintptr_t)at(1005), 0, to->lkey }, { (uintptr_t)at(1005), 4000, to->lkey },
	};
	struct ibv_ops_wr wr = op_add(sge, 9, ALL_BITS, 7);

	fresh(0);
	wr.tm.add.num_sge = 4;
	vt_check(!post_op_wr(&wr), "a buffer of four pieces is added");
	expect("four pieces", 10007, IBV_WC_TM_ADD, 0, IBV_WC_SUCCESS);
	send_sized(IBV_TMH_EAGER, 9, 5005, 3);
	expect("four pieces", 7, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	vt_check(is_pattern(at(0), 3, 5005), "four pieces: data");
	sent(IBV_WC_SUCCESS);
}

static void order(void)
{
	static const struct {
		uint64_t tag, mask, id;
	} entries[] = {
		{ 0x10, 0xf0, 1 }, { 0x12, ALL_BITS, 2 }, { 0x21, 0xff, 3 }, { 0, 0, 4 }, { 0x21, 0xff, 5 },
		/* what is outside of the mask does not count */
		{ 0xff31, 0x00ff, 6 },
	}, sends[] = {
		{ 0x12, 0, 1 }, { 0x12, 0, 2 }, { 0xab21, 0, 3 }, { 0x21, 0, 4 }, { 0x21, 0, 5 }, { 0x31, 0, 6 },
	};
	uint32_t i;

	fresh(0);
	for (i = 0; i < ARRAY_SIZE(entries); i++)
		add(entries[i].tag, entries[i].mask, entries[i].id, 0, 64);
	for (i = 0; i < ARRAY_SIZE(sends); i++) {
		send_sized(IBV_TMH_EAGER, sends[i].tag, 8, i);
		expect("order and masks", sends[i].id, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
		sent(IBV_WC_SUCCESS);
	}
}

static void unexpected(void)
{
	uint32_t i, len, n = 0;
	struct got got;

	fresh(32);
	add(1000, ALL_BITS, 500, 0, 64);
	for (i = 0; i < 5; i++, n++) {
		len = lengths[i];
		send_sized(IBV_TMH_EAGER, i, len, i);
		got = expect("unexpected", n, IBV_WC_TM_RECV, 0, IBV_WC_SUCCESS);
		vt_check(got.len == HEAD + len && !memcmp(at_recv(n), from->addr, HEAD + len) && !got.tag,
			 "unexpected: %u bytes and a header", len);
		sent(IBV_WC_SUCCESS);
	}
	for (i = 0; i < 2; i++, n++) {
		send_sized(i ? IBV_TMH_FIN : IBV_TMH_NO_TAG, 1000, 100, i);
		got = expect("no tag", n, IBV_WC_TM_NO_TAG, 0, IBV_WC_SUCCESS);
		vt_check(got.len == HEAD + 100 && !memcmp(at_recv(n), from->addr, HEAD + 100), "no tag: data");
		sent(IBV_WC_SUCCESS);
	}
	send_raw(3);
	got = expect("shorter than a header", n++, IBV_WC_TM_NO_TAG, 0, IBV_WC_SUCCESS);
	vt_check(got.len == 3, "shorter than a header: %u bytes", got.len);
	sent(IBV_WC_SUCCESS);
	sync_to(4, IBV_WC_TM_SYNC_REQ);
	sync_to(5, 0);
	send_sized(IBV_TMH_EAGER, 1000, 64, 1);
	expect("the one that was there from the beginning", 500, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
}

/* A buffer that is added while a message waits with the process is matched after synchronization only */
static void out_of_step(void)
{
	struct ibv_sge sge = { (uintptr_t)to->addr, 64, to->lkey };
	struct ibv_ops_wr wr = op_add(&sge, 7, ALL_BITS, 70);

	fresh(8);
	send_sized(IBV_TMH_EAGER, 7, 8, 1);
	expect("first", 0, IBV_WC_TM_RECV, 0, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
	vt_check(!post_op_wr(&wr), "a buffer is added too late");
	expect("too late", 10070, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ, IBV_WC_SUCCESS);
	send_sized(IBV_TMH_EAGER, 7, 8, 2);
	expect("second", 1, IBV_WC_TM_RECV, 0, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
	/* with the count an addition says that all is handled, and is matched itself */
	wr = op_add(&sge, 8, ALL_BITS, 80);
	wr.flags |= IBV_OPS_TM_SYNC;
	wr.tm.unexpected_cnt = 2;
	vt_check(!post_op_wr(&wr), "another one with the count");
	expect("with the count", 10080, IBV_WC_TM_ADD, 0, IBV_WC_SUCCESS);
	send_sized(IBV_TMH_EAGER, 8, 8, 3);
	expect("in step", 80, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
	send_sized(IBV_TMH_EAGER, 7, 8, 4);
	expect("in step", 70, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
}

static void deletes(void)
{
	uint32_t first, second;
	struct ibv_ops_wr wr;

	fresh(4);
	first = add(1, ALL_BITS, 1, 0, 64);
	second = add(1, ALL_BITS, 2, 0, 64);
	wr = op_del(first);
	vt_check(first != second && !post_op_wr(&wr), "a buffer is deleted");
	expect("delete", 20000, IBV_WC_TM_DEL, 0, IBV_WC_SUCCESS);
	post_op_wr(&wr);
	expect("delete twice", 20000, IBV_WC_TM_DEL, 0, IBV_WC_TM_ERR);
	send_sized(IBV_TMH_EAGER, 1, 8, 1);
	expect("the other one", 2, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
	/* its place is in use again, but the handle is another one */
	add(1, ALL_BITS, 3, 0, 64);
	add(1, ALL_BITS, 4, 0, 64);
	wr = op_del(second);
	post_op_wr(&wr);
	expect("delete what was matched", 20000, IBV_WC_TM_DEL, 0, IBV_WC_TM_ERR);
	wr.tm.handle = 0xdeadbeef;
	post_op_wr(&wr);
	expect("delete what never was", 20000, IBV_WC_TM_DEL, 0, IBV_WC_TM_ERR);
	send_sized(IBV_TMH_EAGER, 1, 8, 1);
	expect("those that came later are there", 3, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
}

/* --- rendezvous ---------------------------------------------------------------------------------------- */

#define DATA (ROOM / 2)

/* Ask for a rendezvous about @len bytes at @off of what a has */
static void ask(uint64_t tag, uint32_t off, uint32_t len, uint32_t key, uint32_t extra)
{
	struct ibv_rvh *rvh = (void *)((char *)from->addr + HEAD);

	write_head(IBV_TMH_RNDV, tag);
	*rvh = (struct ibv_rvh){
		.va = htobe64((uintptr_t)from->addr + off),
		.rkey = htobe32(key),
		.len = htobe32(len),
	};
	send_raw(HEAD + sizeof(*rvh) + extra);
}

static void peer_takes_fin(uint64_t tag, uint32_t off)
{
	const struct ibv_tmh *h = (void *)((char *)from->addr + off);
	struct ibv_wc wc = {};

	vt_check(poll_one(a.recv_cq, &wc, 10) && wc.status == IBV_WC_SUCCESS && wc.byte_len == HEAD &&
		 h->opcode == IBV_TMH_FIN && be64toh(h->tag) == tag && be32toh(h->app_ctx) == CTX,
		 "rendezvous: the peer learns of its end: %s, %u bytes", ibv_wc_status_str(wc.status), wc.byte_len);
}

static void rendezvous(void)
{
	struct got got;
	uint32_t i, len;

	fresh(1);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
		vt_pattern((char *)from->addr + DATA, 77 + i, 0, len);
		memset(at(0), 0, len + 1);
		add(i, ALL_BITS, 100 + i, 0, len + 5);
		ask(i, DATA, len, from->rkey, i % 2 ? caps.max_rndv_hdr_size - 32 : 0);
		got = expect("rendezvous: match", 100 + i, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
		vt_check(got.tag == i && got.priv == CTX, "rendezvous: its tag");
		got = expect("rendezvous: data", 100 + i, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
		vt_check(got.len == len && is_pattern(at(0), 77 + i, len), "rendezvous: %u bytes", len);
		sent(IBV_WC_SUCCESS);
		peer_takes_fin(i, 4096);
	}
	vt_check(vt_silent(b.send_cq), "rendezvous: the send queue's completions are the application's");
}

/* One that nothing matches is the application's, header and all */
static void rendezvous_unexpected(void)
{
	fresh(4);
	ask(5, DATA, 100, from->rkey, 32);
	expect("rendezvous: unexpected", 0, IBV_WC_TM_RECV, 0, IBV_WC_SUCCESS);
	vt_check(!memcmp(at_recv(0), from->addr, 64), "rendezvous: unexpected: its header");
	sent(IBV_WC_SUCCESS);
	sync_to(1, 0);
}

/* More at a time than the receiver's send queue has room for */
static void rendezvous_many(void)
{
	enum { MANY = 60 };
	uint32_t i, matches = 0, data = 0;
	struct got got;
	bool ok = true;

	fresh(1);
	ends_how.rd_atomic = 4;
	vt_pattern((char *)from->addr + DATA, 5, 0, MANY * 4096);
	for (i = 0; i < MANY; i++)
		add(i, ALL_BITS, i, i * 4096, 4096);
	/* The header is one: a message is done when it was sent */
	for (i = 0; i < MANY; i++) {
		if (i % 8 == 0)
			for (matches = 0; matches < 8; matches++)
				post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
		ask(i, DATA + i * 4096, 4096, from->rkey, 0);
		sent(IBV_WC_SUCCESS);
		vt_drain_cq(a.recv_cq);
	}
	for (matches = 0; matches + data < 2 * MANY && poll_tm(&got, 10);) {
		ok = ok && got.status == IBV_WC_SUCCESS;
		matches += got.flags == IBV_WC_TM_MATCH;
		data += got.flags == IBV_WC_TM_DATA_VALID;
		for (i = 0; i < 2; i++)
			post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
		vt_drain_cq(a.recv_cq);
	}
	vt_check(ok && matches == MANY && data == MANY && is_pattern(at(0), 5, MANY * 4096),
		 "many rendezvous: %u matches, %u with data", matches, data);
}

/* Its send queue is posted to by ibv_wr_start() and its kin */
static struct ibv_qp_ex *fresh_ex(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = b.send_cq,
		.recv_cq = b.recv_cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = b.dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};

	fresh(1);
	if (ibv_destroy_qp(b.qp))
		vt_die(VT_WRONG, "WRONG: destroy qp");
	init.srq = b.srq;
	b.qp = ibv_create_qp_ex(b.dev->ctx, &init);
	if (!b.qp)
		vt_die(VT_WRONG, "WRONG: create qp: %s", strerror(errno));
	vt_to_state(a.qp, IBV_QPS_RESET);
	ends_connect();
	post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
	post_recv(&a, 2, (struct place){ (uintptr_t)from->addr + 8192, from->lkey }, 64);
	return ibv_qp_to_qp_ex(b.qp);
}

/* A poll in the middle of ibv_wr_start() and ibv_wr_complete() */
static void rendezvous_in_a_batch(void)
{
	struct ibv_qp_ex *ex = fresh_ex();

	memset(at(0), 0, 4096);
	vt_pattern((char *)from->addr + DATA, 6, 0, 4096);
	add(5, ALL_BITS, 50, 0, 4096);
	ask(5, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	ibv_wr_start(ex);
	ex->wr_id = 99;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, to->lkey, (uintptr_t)at(ROOM / 2), 16);
	expect("in a batch: match", 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	vt_check(!ibv_wr_complete(ex), "in a batch: the batch is posted");
	/* Nothing has completed that anybody could be told of: nobody polls before the data is there */
	vt_check(has_pattern(at(0), 6, 4096), "in a batch: the bytes are there without a poll");
	expect_wc("in a batch: what it has sent", b.send_cq, 99, IBV_WC_SUCCESS);
	expect("in a batch: data", 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
	vt_check(is_pattern(at(0), 6, 4096), "in a batch: the bytes");
	vt_check(vt_silent(b.send_cq), "in a batch: each work request has one completion, and no others are there");
}

/* A reset that fails leaves the queue pair as it was, and what it has been asked for */
static void reset_fails(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_ex *ex = fresh_ex();
	int rc;

	vt_pattern((char *)from->addr + DATA, 7, 0, 4096);
	add(5, ALL_BITS, 50, 0, 4096);
	ask(5, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	ibv_wr_start(ex);
	expect("a reset that fails: match", 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	rc = ibv_modify_qp(b.qp, &attr, IBV_QP_STATE | IBV_QP_PORT);
	vt_check(rc == EINVAL, "a reset that fails: %s", strerror(rc));
	ibv_wr_abort(ex);
	expect("a reset that fails: data", 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
	vt_check(is_pattern(at(0), 7, 4096), "a reset that fails: the bytes");
}

/* Poll until all of @n rendezvous have been matched, and then until all have their data */
static void take_rendezvous(uint32_t n, uint32_t *matches, uint32_t *data, bool wait_for_data)
{
	struct got got;

	while ((*matches < n || (wait_for_data && *data < n)) && poll_tm(&got, 10)) {
		if (got.status)
			vt_check(false, "rendezvous: %s", ibv_wc_status_str(got.status));
		*matches += got.flags == IBV_WC_TM_MATCH;
		*data += got.flags == IBV_WC_TM_DATA_VALID;
	}
}

/* The peer takes what b sends, until b has so many completions of its own */
static void peer_takes(uint32_t n)
{
	double end = vt_now() + 10;
	struct ibv_wc wc;
	uint32_t done = 0, i;

	for (i = 0; i < ENDS_DEPTH; i++)
		post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
	while (done < n && vt_now() < end) {
		while (poll_one(a.recv_cq, &wc, 0))
			post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
		done += poll_one(b.send_cq, &wc, 0) && wc.status == IBV_WC_SUCCESS;
	}
	vt_check(done == n, "own entries: %u of %u are done", done, n);
}

/*
 * Rendezvous that do not end, because the peer has no receive for the message that ends them, take nothing of the send
 * queue that the application was promised
 */
static void own_entries(void)
{
	enum { MANY = 12 };
	uint32_t i, depth, matches = 0, data = 0;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int rc = 0;

	fresh(1);
	rc = ibv_query_qp(b.qp, &attr, IBV_QP_CAP, &init);
	depth = init.cap.max_send_wr;
	vt_check(!rc && depth >= ENDS_DEPTH && attr.cap.max_send_wr == depth, "own entries: %u", depth);
	vt_pattern((char *)from->addr + DATA, 9, 0, MANY * 4096);
	for (i = 0; i < MANY; i++) {
		add(i, ALL_BITS, i, i * 4096, 4096);
		ask(i, DATA + i * 4096, 4096, from->rkey, 0);
		sent(IBV_WC_SUCCESS);
	}
	take_rendezvous(MANY, &matches, &data, false);
	for (i = 0; i < depth && !rc; i++)
		rc = post_op(&b, i, IBV_WR_SEND, local(to), 4, local(to));
	vt_check(!rc, "own entries: %u of %u are posted: %s", i, depth, strerror(rc));
	rc = post_op(&b, i, IBV_WR_SEND, local(to), 4, local(to));
	vt_check(rc == ENOMEM, "own entries: and not one more: %s", strerror(rc));
	peer_takes(depth);
	vt_drain_cq(a.recv_cq);
	for (i = 0; i < ENDS_DEPTH; i++)
		post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
	take_rendezvous(MANY, &matches, &data, true);
	vt_check(matches == MANY && data == MANY && is_pattern(at(0), 9, MANY * 4096),
		 "own entries: %u rendezvous, %u with data", matches, data);
	/* All of them are free again */
	for (i = 0, rc = 0; i < depth && !rc; i++)
		rc = post_op(&b, i, IBV_WR_SEND, local(to), 4, local(to));
	vt_check(!rc, "own entries: %u of %u afterwards: %s", i, depth, strerror(rc));
}

/* Two pairs with one queue: the first one is put aside, and @a and @b are the second */
static struct end aside_a, aside_b;

static void second_pair(void)
{
	aside_a = a;
	aside_b = b;
	a.qp = NULL;
	b.qp = NULL;
	ends_fresh(IBV_QPT_RC);
}

static void swap_pairs(void)
{
	struct end other_a = aside_a, other_b = aside_b;

	aside_a = a;
	aside_b = b;
	a = other_a;
	b = other_b;
}

static void end_pairs(void)
{
	ends_stop();
	if (ibv_destroy_qp(aside_a.qp) || ibv_destroy_qp(aside_b.qp))
		vt_die(VT_WRONG, "WRONG: destroy qp: %s", strerror(errno));
}

static void take_fins(uint32_t n)
{
	while (n--)
		post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
}

/* A rendezvous of @a and @b from its beginning to its end, its data at @off on both sides */
static void whole_rendezvous(const char *what, uint64_t tag, uint32_t off)
{
	take_fins(1);
	vt_pattern((char *)from->addr + DATA + off, tag, 0, 4096);
	add(tag, ALL_BITS, tag, off, 4096);
	ask(tag, DATA + off, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	expect(what, tag, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	expect(what, tag, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
	vt_check(is_pattern(at(off), tag, 4096), "%s: the bytes", what);
	peer_takes_fin(tag, 4096);
}

/*
 * The kernel has reset a queue pair that a rendezvous waits for, and its owner's call has not returned: the buffer is free
 * by then, and another queue pair has a rendezvous with it
 */
static void buffer_given_again(void)
{
	struct ibv_qp_ex *ex = fresh_ex();
	uint32_t first, second;
	int rc;

	second_pair();
	swap_pairs();
	first = add(1, ALL_BITS, 1, 0, 4096);
	ask(1, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	ibv_wr_start(ex);
	expect("a buffer given again: match", 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	rc = uv_modify(b.dev->ctx->cmd_fd, b.qp->handle, IB_UVERBS_QPT_RC, IBV_QPS_RESET, &(struct uv_route){});
	vt_check(!rc, "a buffer given again: reset: %s", strerror(rc));

	swap_pairs();
	take_fins(1);
	vt_pattern((char *)from->addr + DATA + 4096, 2, 0, 4096);
	second = add(2, ALL_BITS, 2, 4096, 4096);
	vt_check((first & 0xffff) == (second & 0xffff), "a buffer given again: %#x, %#x", first, second);
	ask(2, DATA + 4096, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	expect("a buffer given again: another match", 2, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	expect("a buffer given again: its data", 2, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
	vt_check(is_pattern(at(4096), 2, 4096), "a buffer given again: the bytes");
	peer_takes_fin(2, 4096);

	/* The one that was reset begins anew */
	swap_pairs();
	ibv_wr_abort(ex);
	rc = vt_to_state(b.qp, IBV_QPS_RESET) ?: vt_to_state(a.qp, IBV_QPS_RESET);
	vt_check(!rc, "a buffer given again: reset twice: %s", strerror(rc));
	ends_connect();
	whole_rendezvous("a buffer given again: begun anew", 3, 8192);
	swap_pairs();
	whole_rendezvous("a buffer given again: the other one", 4, 12288);
	end_pairs();
}

/* Data comes while a batch goes on that it was matched in */
static void batch_goes_on(void)
{
	struct ibv_poll_cq_attr attr = {};
	uint32_t i;
	int rc;

	fresh(1);
	take_fins(1);
	memset(at(0), 0, 4096);
	vt_pattern((char *)from->addr + DATA, 6, 0, 4096);
	add(5, ALL_BITS, 50, 0, 4096);
	ask(5, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	for (i = 0; i < 40; i++)
		post_sync(0);
	rc = ibv_start_poll(tm_cq, &attr);
	vt_check(!rc && tm_cq->wr_id == 50, "a batch goes on: match: %s", strerror(rc));
	for (i = 0; i < 40 && !ibv_next_poll(tm_cq); i++)
		;
	vt_check(i == 40 && has_pattern(at(0), 6, 4096), "a batch goes on: the bytes are there behind %u others", i);
	ibv_end_poll(tm_cq);
	expect("a batch goes on: data", 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
	peer_takes_fin(5, 4096);
}

/* In the middle of a batch of its completion queue: an application that answers a message by making a queue pair */
static void made_in_a_batch(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_qp_init_attr init = {
		.send_cq = b.send_cq,
		.recv_cq = b.recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	int rc;

	fresh(1);
	init.srq = b.srq;
	post_sync(0);
	rc = ibv_start_poll(tm_cq, &attr);
	vt_check(!rc, "made in a batch: %s", strerror(rc));
	/* Whoever waits for himself here is killed */
	alarm(60);
	qp = ibv_create_qp(b.dev->pd, &init);
	srq = try_srq(b.dev, tm_plain(), 4, 4);
	alarm(0);
	if (!qp || !srq)
		vt_die(VT_WRONG, "WRONG: made in a batch: %s", strerror(errno));
	ibv_end_poll(tm_cq);
	rc = ibv_destroy_qp(qp) ?: ibv_destroy_srq(srq);
	vt_check(!rc, "made in a batch: both go: %s", strerror(rc));
	whole_rendezvous("made in a batch: the queue works", 1, 0);
}

enum { REST, WORK, END };

struct poller {
	atomic_int wanted, is;
	atomic_uint polls;
};

static void *poll_all_the_time(void *arg)
{
	struct poller *p = arg;
	struct ibv_wc wc;
	int wanted;

	while ((wanted = atomic_load(&p->wanted)) != END) {
		atomic_store(&p->is, wanted);
		if (wanted == REST) {
			usleep(50);
			continue;
		}
		ibv_poll_cq(tm_plain(), 1, &wc);
		atomic_fetch_add(&p->polls, 1);
	}
	return NULL;
}

/* It rests, or is at it, and was interrupted anywhere if there is but one processor */
static void have_poller(struct poller *p, int what)
{
	unsigned int polls = atomic_load(&p->polls);

	atomic_store(&p->wanted, what);
	do {
		usleep(200);
	} while (atomic_load(&p->is) != what || (what == WORK && atomic_load(&p->polls) == polls));
}

/*
 * Another thread polls at the moment when the send queue that a rendezvous waits for is free, by ibv_poll_cq(): nobody else
 * is going to poll before the data is there
 */
static void polled_elsewhere(void)
{
	struct ibv_qp_ex *ex = fresh_ex();
	struct poller p = {};
	pthread_t thread;
	struct got got;
	bool ok = true;
	uint32_t i;

	if (pthread_create(&thread, NULL, poll_all_the_time, &p))
		vt_die(VT_SETUP, "thread: %s", strerror(errno));
	for (i = 0; i < 12 && ok; i++) {
		vt_pattern((char *)from->addr + DATA, i, 0, 4096);
		add(i, ALL_BITS, i, 0, 4096);
		ask(i, DATA, 4096, from->rkey, 0);
		sent(IBV_WC_SUCCESS);
		ibv_wr_start(ex);
		expect("polled elsewhere: match", i, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
		have_poller(&p, WORK);
		ibv_wr_abort(ex);
		ok = has_pattern(at(0), i, 4096);
		have_poller(&p, REST);
		/* Its completion has been taken by either */
		poll_tm(&got, 0);
		take_fins(1);
		vt_drain_cq(a.recv_cq);
	}
	have_poller(&p, REST);
	atomic_store(&p.wanted, END);
	pthread_join(thread, NULL);
	vt_check(ok, "polled elsewhere: the bytes are there, %u times, beside %u polls", i, atomic_load(&p.polls));
}

/* Poll until nothing comes any more for a moment; data of buffers below @split, and of the others */
static void poll_data(uint32_t split, uint32_t *below, uint32_t *others)
{
	struct got got;

	while (poll_tm(&got, 0.5)) {
		if (got.status)
			vt_check(false, "waiting pairs: %s", ibv_wc_status_str(got.status));
		*below += got.flags == IBV_WC_TM_DATA_VALID && got.wr_id < split;
		*others += got.flags == IBV_WC_TM_DATA_VALID && got.wr_id >= split;
	}
}

/* More rendezvous than there is room for, of two queue pairs: neither waits for the other one's peer */
static void waiting_pairs(void)
{
	enum { MANY = 12 };
	uint32_t first = 0, second = 0, i;

	fresh(1);
	second_pair();
	vt_pattern((char *)from->addr + DATA, 4, 0, 2 * MANY * 4096);
	for (i = 0; i < 2 * MANY; i++) {
		if (i % MANY == 0)
			swap_pairs();
		add(i, ALL_BITS, i, i * 4096, 4096);
		ask(i, DATA + i * 4096, 4096, from->rkey, 0);
		sent(IBV_WC_SUCCESS);
	}
	poll_data(MANY, &first, &second);
	vt_check(first < MANY && second < MANY, "waiting pairs: %u and %u go on without a receive", first, second);
	take_fins(MANY);
	poll_data(MANY, &first, &second);
	vt_check(first < MANY && second == MANY, "waiting pairs: %u and all of %u", first, second);
	swap_pairs();
	take_fins(MANY);
	poll_data(MANY, &first, &second);
	vt_check(first == MANY && is_pattern(at(0), 4, 2 * MANY * 4096), "waiting pairs: %u and their bytes", first);
	end_pairs();
}

/* The completions that would begin the next ones are polled by ibv_poll_cq(): a poll that finds nothing begins them */
static void begun_by_an_empty_poll(void)
{
	enum { MANY = 12 };
	uint32_t matches = 0, data = 0, plain = 0, i;
	struct ibv_wc wc;

	fresh(1);
	vt_pattern((char *)from->addr + DATA, 3, 0, MANY * 4096);
	for (i = 0; i < MANY; i++) {
		add(i, ALL_BITS, i, i * 4096, 4096);
		ask(i, DATA + i * 4096, 4096, from->rkey, 0);
		sent(IBV_WC_SUCCESS);
	}
	take_rendezvous(MANY, &matches, &data, false);
	take_fins(MANY);
	while (poll_one(tm_plain(), &wc, 0.5))
		plain++;
	vt_check(data + plain < MANY, "an empty poll: %u are not begun without it", data + plain);
	matches = MANY - plain;
	take_rendezvous(MANY - plain, &matches, &data, true);
	vt_check(data + plain == MANY && is_pattern(at(0), 3, MANY * 4096), "an empty poll: it begins the others: %u", data);
}

/* --- events --------------------------------------------------------------------------------------------- */

static void event_is(bool wanted, const char *what)
{
	struct ibv_cq *cq = vt_cq_event(tm_channel, wanted ? 2 : 0.05);

	vt_check(cq == (wanted ? tm_plain() : NULL), "events: %s", what);
}

/* Of operations on the list as of messages, on a processor that has nothing else to do for the device */
static void events(void)
{
	cpu_set_t before, here;
	uint32_t i;

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
	tm_end();
	tm_channel = ibv_create_comp_channel(b.dev->ctx);
	if (!tm_channel)
		vt_die(VT_WRONG, "WRONG: create channel: %s", strerror(errno));
	fresh(2);
	usleep(100000);
	for (i = 0; i < 2; i++) {
		ibv_req_notify_cq(tm_plain(), 0);
		post_sync(0);
		event_is(true, "an operation has one");
		ibv_req_notify_cq(tm_plain(), 0);
		send_sized(IBV_TMH_NO_TAG, 1, 8, 1);
		event_is(true, "a message behind it has one");
		expect("events", 30000, IBV_WC_TM_SYNC, 0, IBV_WC_SUCCESS);
		expect("events", i, IBV_WC_TM_NO_TAG, 0, IBV_WC_SUCCESS);
		sent(IBV_WC_SUCCESS);
	}
	post_sync(0);
	event_is(false, "nobody has asked for one");
	/* It goes with an event that nobody has taken */
	ibv_req_notify_cq(tm_plain(), 0);
	post_sync(0);
	tm_end();
	ibv_destroy_comp_channel(tm_channel);
	tm_channel = NULL;
	sched_setaffinity(0, sizeof(before), &before);
}

/* --- errors --------------------------------------------------------------------------------------------- */

static void too_long(void)
{
	fresh(1);
	add(5, ALL_BITS, 50, 0, 63);
	send_sized(IBV_TMH_EAGER, 5, 64, 1);
	expect("longer than the buffer", 50, 0, 0, IBV_WC_LOC_LEN_ERR);
	sent(IBV_WC_REM_INV_REQ_ERR);
	fresh(1);
	add(5, ALL_BITS, 50, 0, 5000);
	send_sized(IBV_TMH_EAGER, 5, 5001, 1);
	expect("longer in its last packet", 50, 0, 0, IBV_WC_LOC_LEN_ERR);
	sent(IBV_WC_REM_INV_REQ_ERR);
	fresh(1);
	add(5, ALL_BITS, 50, 0, 63);
	ask(5, DATA, 64, from->rkey, 0);
	expect("rendezvous longer than the buffer", 50, 0, 0, IBV_WC_LOC_LEN_ERR);
	sent(IBV_WC_REM_INV_REQ_ERR);
	fresh(1);
	add(5, ALL_BITS, 50, 0, 64);
	ask(5, DATA, 64, from->rkey, caps.max_rndv_hdr_size - 31);
	sent(IBV_WC_REM_INV_REQ_ERR);
	nothing("rendezvous with more behind its header than there may be");
}

/* Of the buffer, and of what a rendezvous names */
static void rights(void)
{
	struct ibv_mr *read_only = vt_mr(b.dev, 4096, 0), *secret = vt_mr(a.dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)read_only->addr, 64, read_only->lkey };
	struct ibv_ops_wr wr = op_add(&sge, 5, ALL_BITS, 50);

	fresh(1);
	wr.flags = 0;
	post_op_wr(&wr);
	send_sized(IBV_TMH_EAGER, 5, 64, 1);
	expect("a buffer that may not be written", 50, 0, 0, IBV_WC_LOC_PROT_ERR);
	sent(IBV_WC_REM_OP_ERR);

	fresh(1);
	post_op_wr(&wr);
	ask(5, DATA, 64, from->rkey, 0);
	expect("the same by a rendezvous", 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	expect("the same by a rendezvous", 50, 0, 0, IBV_WC_LOC_PROT_ERR);
	sent(IBV_WC_SUCCESS);

	fresh(1);
	add(5, ALL_BITS, 50, 0, 64);
	ask(5, DATA, 64, secret->rkey, 0);
	expect("data that may not be read", 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	expect("data that may not be read", 50, 0, 0, IBV_WC_REM_ACCESS_ERR);
	sent(IBV_WC_SUCCESS);
	vt_check(vt_silent(b.send_cq), "nobody hears of a message that was never sent");
	tm_end();
	vt_mr_free(read_only);
	vt_mr_free(secret);
}

/* --- memory on demand --------------------------------------------------------------------------------- */

/* Pages are missing each time: before the header, before the rest, and before what a rendezvous reads */
static void on_demand(void)
{
	struct ibv_device_attr_ex attr = {};
	struct ibv_mr *pinned = to;
	uint32_t i, len;
	void *mem;

	if (ibv_query_device_ex(b.dev->ctx, NULL, &attr) || !(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		return;
	mem = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = ibv_reg_mr(b.dev->pd, mem, ROOM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (mem == MAP_FAILED || !to)
		vt_die(VT_WRONG, "WRONG: memory on demand: %s", strerror(errno));
	fresh(8);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		madvise(mem, ROOM, MADV_DONTNEED);
		add(i, ALL_BITS, 100 + i, 4090, len);
		send_sized(IBV_TMH_EAGER, i, len, i);
		expect("on demand: expected", 100 + i, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
		vt_check(is_pattern(at(4090), i, len), "on demand: expected: %u bytes", len);
		sent(IBV_WC_SUCCESS);

		post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
		vt_pattern((char *)from->addr + DATA, 77 + i, 0, len);
		madvise(mem, ROOM, MADV_DONTNEED);
		add(i, ALL_BITS, 100 + i, 4090, len);
		ask(i, DATA, len, from->rkey, 0);
		expect("on demand: match", 100 + i, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
		expect("on demand: data", 100 + i, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
		vt_check(is_pattern(at(4090), 77 + i, len), "on demand: rendezvous: %u bytes", len);
		sent(IBV_WC_SUCCESS);
		peer_takes_fin(i, 4096);
	}
	for (i = 0; i < 6; i++) {
		madvise(mem, ROOM, MADV_DONTNEED);
		send_sized(IBV_TMH_EAGER, 1, lengths[i], i);
		expect("on demand: unexpected", i, IBV_WC_TM_RECV, 0, IBV_WC_SUCCESS);
		vt_check(!memcmp(at_recv(i), from->addr, HEAD + lengths[i]), "on demand: unexpected: %u bytes", lengths[i]);
		sent(IBV_WC_SUCCESS);
	}
	tm_end();
	ibv_dereg_mr(to);
	munmap(mem, ROOM);
	to = pinned;
}

/* --- what the library never says ---------------------------------------------------------------------- */

static int call(uint32_t handle, const void *ops, uint32_t ops_len, void *resp, uint32_t resp_len)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_SRQ,
			.method_id = SROCE_METHOD_SRQ_TAGS,
			.num_attrs = 3,
			.driver_id = SROCE_DRIVER_ID,
		},
		.attrs = {
			{ .attr_id = SROCE_ATTR_SRQ_TAGS_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
			{ .attr_id = SROCE_ATTR_SRQ_TAGS_OPS, .flags = UVERBS_ATTR_F_MANDATORY, .len = ops_len,
			  .data = (uintptr_t)ops },
			{ .attr_id = SROCE_ATTR_SRQ_TAGS_RESP, .flags = UVERBS_ATTR_F_MANDATORY, .len = resp_len,
			  .data = (uintptr_t)resp },
		},
	};

	return ioctl(b.dev->ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

static void hostile(void)
{
	static struct sroce_tag_op ops[SROCE_TAG_OPS + 1];
	static const size_t fields[] = {
		offsetof(struct sroce_tag_op, handle), offsetof(struct sroce_tag_op, unexpected_cnt),
		offsetof(struct sroce_tag_op, reserved), offsetof(struct sroce_tag_op, sge),
		offsetof(struct sroce_tag_op, sge) + sizeof(ops[0].sge) - 4,
	};
	struct ibv_srq *plain = vt_create_srq(b.dev, 4, 1);
	struct sroce_tag_ops_resp resp;
	uint32_t handle;
	size_t i;
	int rc;

	fresh(1);
	handle = b.srq->handle;
	rc = call(handle, ops, sizeof(ops), &resp, sizeof(resp));
	vt_check(rc == EINVAL, "hostile: too many operations: %s", strerror(rc));
	rc = call(handle, ops, sizeof(ops[0]) - 8, &resp, sizeof(resp));
	vt_check(rc == EINVAL || rc == ENOSPC, "hostile: less than one: %s", strerror(rc));
	rc = call(handle, ops, sizeof(ops[0]) + 8, &resp, sizeof(resp));
	vt_check(rc == EINVAL, "hostile: one and a bit: %s", strerror(rc));
	rc = call(handle, ops, sizeof(ops[0]), &resp, 4);
	vt_check(rc == EINVAL || rc == ENOSPC, "hostile: no room for the answer: %s", strerror(rc));
	rc = call(handle, (void *)8, 2 * sizeof(ops[0]), &resp, sizeof(resp));
	vt_check(rc == EFAULT, "hostile: operations that are not there: %s", strerror(rc));
	rc = call(plain->handle, ops, sizeof(ops[0]), &resp, sizeof(resp));
	vt_check(rc == EINVAL, "hostile: a queue without tags: %s", strerror(rc));
	rc = call(0xffffff, ops, sizeof(ops[0]), &resp, sizeof(resp));
	vt_check(rc == ENOENT, "hostile: no queue at all: %s", strerror(rc));
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		memset(ops, 0, sizeof(ops));
		ops[1] = ops[0];
		*((uint8_t *)&ops[1] + fields[i]) = 1;
		rc = call(handle, ops, 2 * sizeof(ops[0]), &resp, sizeof(resp));
		vt_check(!rc && resp.done == 1 && resp.err == -EINVAL, "hostile: byte %zu: %u done, %d", fields[i],
			 resp.done, resp.err);
	}
	ibv_destroy_srq(plain);
}

/* --- what counts ------------------------------------------------------------------------------------------ */

static void nobody(void *arg)
{
	struct ibv_srq *srq;

	vt_be_nobody(64 << 10);
	srq = try_srq(b.dev, tm_plain(), caps.max_num_tags, 1);
	vt_check(!srq && errno == ENOMEM, "counts: more than RLIMIT_MEMLOCK: %s", srq ? "a queue" : strerror(errno));
}

static void counts(void)
{
	long before, with;

	tm_end();
	tm_cq = new_cq(b.dev, 16);
	before = vt_pinned();
	b.srq = try_srq(b.dev, tm_plain(), caps.max_num_tags, 1);
	with = vt_pinned();
	/* 128 bytes for each, and the ring */
	vt_check(b.srq && with - before >= (long)caps.max_num_tags * 128 / 1024, "counts: %ld KiB", with - before);
	ibv_destroy_srq(b.srq);
	b.srq = NULL;
	vt_check(vt_pinned() == before, "counts: and not any more");
	vt_in_child("counts: nobody has a limit", nobody, NULL);
	tm_end();
}

/* --- objects that go ----------------------------------------------------------------------------------- */

static void lifetimes(void)
{
	struct got got;
	uint32_t i;
	int rc;

	fresh(4);
	rc = ibv_destroy_srq(b.srq);
	vt_check(rc == EBUSY, "a queue that a queue pair has stays: %s", strerror(rc));
	rc = ibv_destroy_cq(tm_plain());
	vt_check(rc == EBUSY, "its completion queue stays: %s", strerror(rc));

	/* matches that nobody polls: what they keep is free when the queue pair is as new */
	for (i = 0; i < TAGS; i++) {
		add(1, ALL_BITS, i, 0, 4096);
		ask(1, DATA, 4096, from->rkey, 0);
		sent(IBV_WC_SUCCESS);
	}
	rc = vt_to_state(b.qp, IBV_QPS_RESET);
	vt_check(!rc && !poll_tm(&got, 0), "reset: completions of the queue pair are gone");
	vt_to_state(a.qp, IBV_QPS_RESET);
	ends_connect();
	for (i = 0; i < TAGS; i++)
		add(1, ALL_BITS, i, 0, 4096);
	send_sized(IBV_TMH_EAGER, 1, 8, 1);
	expect("reset: the queue works", 0, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);

	/* the queue pair goes, its buffers stay: they are the queue's */
	ask(1, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	ends_fresh(IBV_QPT_RC);
	vt_check(!poll_tm(&got, 0.01), "destroy: completions of the queue pair are gone");
	send_sized(IBV_TMH_EAGER, 1, 8, 1);
	expect("destroy: the buffers are there", 2, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);

	/* a rendezvous of a queue pair that has failed ends with an error */
	ask(1, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	vt_to_state(b.qp, IBV_QPS_ERR);
	expect("failed: match", 3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	expect("failed: its READ is flushed", 3, 0, 0, IBV_WC_WR_FLUSH_ERR);
	vt_check(vt_silent(b.send_cq), "failed: nothing else is");
}

/* Messages that nothing has matched, and whose completions nobody has seen: they do not count */
static void forgotten(bool destroy)
{
	const char *how = destroy ? "destroyed" : "reset";

	fresh(4);
	add(1, ALL_BITS, 1, 0, 64);
	send_sized(IBV_TMH_EAGER, 5, 8, 1);
	sent(IBV_WC_SUCCESS);
	expect("forgotten: one that is seen", 0, IBV_WC_TM_RECV, 0, IBV_WC_SUCCESS);
	send_sized(IBV_TMH_EAGER, 5, 8, 1);
	sent(IBV_WC_SUCCESS);
	send_sized(IBV_TMH_NO_TAG, 5, 8, 1);
	sent(IBV_WC_SUCCESS);
	send_sized(IBV_TMH_EAGER, 1, 8, 1);
	sent(IBV_WC_SUCCESS);
	if (destroy) {
		ends_fresh(IBV_QPT_RC);
	} else {
		vt_to_state(b.qp, IBV_QPS_RESET);
		vt_to_state(a.qp, IBV_QPS_RESET);
		ends_connect();
	}
	nothing(how);
	sync_to(1, 0);
	add(5, ALL_BITS, 50, 0, 64);
	send_sized(IBV_TMH_EAGER, 5, 8, 2);
	expect(how, 50, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	sent(IBV_WC_SUCCESS);
}

/* Several queue pairs with one queue: each rendezvous is read from its own peer */
static void two_pairs(void)
{
	struct got got;

	fresh(1);
	take_fins(1);
	second_pair();
	take_fins(1);
	vt_pattern((char *)from->addr + DATA, 8, 0, 8192);
	add(1, ALL_BITS, 1, 0, 4096);
	add(2, ALL_BITS, 2, 4096, 4096);
	ask(2, DATA + 4096, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	swap_pairs();
	ask(1, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	while (poll_tm(&got, 0.5))
		if (got.status)
			vt_check(false, "two pairs: %s", ibv_wc_status_str(got.status));
	vt_check(is_pattern(at(0), 8, 8192), "two pairs: data of both");
	end_pairs();
}

/* --- two processes ------------------------------------------------------------------------------------- */

struct names {
	const char *device, *ip;
};

/* The receiver: @fd is where it tells its number, and is told that of its peer */
static void receiver(const struct names *n, int fd)
{
	struct vt_conn c = ends_how;
	struct vt_dev dev = {};
	uint32_t qpn;

	vt_open(&dev, n->device, n->ip, -1);
	b.dev = &dev;
	b.send_cq = vt_create_cq(&dev, 64);
	to = vt_mr(&dev, ROOM, IBV_ACCESS_LOCAL_WRITE);
	tm_cq = new_cq(&dev, 64);
	b.srq = try_srq(&dev, tm_plain(), 8, 8);
	if (!b.srq)
		vt_die(VT_WRONG, "WRONG: create srq: %s", strerror(errno));
	b.recv_cq = b.send_cq;
	b.qp = vt_create_qp(&dev, &(struct ibv_qp_init_attr){
		.send_cq = b.send_cq, .recv_cq = b.recv_cq, .srq = b.srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	});
	add(1, ALL_BITS, 1, 0, 4096);
	add(2, ALL_BITS, 2, 4096, 100000);
	if (write(fd, &b.qp->qp_num, 4) != 4 || write(fd, &dev.gid, 16) != 16 || read(fd, &qpn, 4) != 4 ||
	    read(fd, &c.peer.gid, 16) != 16)
		vt_die(VT_GONE, "the peer is gone");
	c.peer.qpn = qpn;
	c.peer.psn = 0xfffffe;
	c.sq_psn = 0xfffffe;
	if (vt_bring_up(b.qp, &dev, VT_REMOTE_ACCESS, &c))
		vt_die(VT_WRONG, "WRONG: connect qp: %s", strerror(errno));
	if (write(fd, "", 1) != 1)
		vt_die(VT_GONE, "the peer is gone");
	expect("another process: eager", 1, IBV_WC_TM_RECV, matched, IBV_WC_SUCCESS);
	vt_check(is_pattern(at(0), 1, 4096), "another process: data");
	expect("another process: match", 2, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS);
	expect("another process: data", 2, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, IBV_WC_SUCCESS);
	vt_check(is_pattern(at(4096), 2, 100000), "another process: data that it has read");
	/* Until it is killed it has a buffer that a rendezvous waits for */
	add(3, ALL_BITS, 3, 0, 4096);
	if (write(fd, vt_failures ? "!" : "", 1) != 1)
		vt_die(VT_GONE, "the peer is gone");
	pause();
}

static void tell_receiver(int fd)
{
	struct vt_conn c = ends_how;
	char word;

	c.sq_psn = 0xfffffe;
	c.peer.psn = 0xfffffe;
	if (read(fd, &c.peer.qpn, 4) != 4 || read(fd, &c.peer.gid, 16) != 16 || write(fd, &a.qp->qp_num, 4) != 4 ||
	    write(fd, &a.dev->gid, 16) != 16 || vt_bring_up(a.qp, a.dev, VT_REMOTE_ACCESS, &c) || read(fd, &word, 1) != 1)
		vt_die(VT_WRONG, "WRONG: connect to the other process");
}

static void two_processes(int fd, pid_t pid)
{
	struct ibv_wc wc = {};
	char word = '?';

	a.qp = vt_new_qp(a.dev, IBV_QPT_RC, a.send_cq, 16, 16);
	tell_receiver(fd);
	post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
	send_sized(IBV_TMH_EAGER, 1, 4096, 1);
	sent(IBV_WC_SUCCESS);
	post_recv(&a, 1, (struct place){ (uintptr_t)from->addr + 4096, from->lkey }, 64);
	vt_pattern((char *)from->addr + DATA, 2, 0, 100000);
	ask(2, DATA, 100000, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	vt_check(read(fd, &word, 1) == 1 && !word, "another process has what was sent");
	vt_check(poll_one(a.send_cq, &wc, 10) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV,
		 "another process: the end of the rendezvous");
	ask(3, DATA, 4096, from->rkey, 0);
	sent(IBV_WC_SUCCESS);
	kill(pid, SIGKILL);
	vt_check(waitpid(pid, NULL, 0) == pid, "another process is killed in the middle of a rendezvous");
	if (ibv_destroy_qp(a.qp))
		vt_die(VT_WRONG, "WRONG: destroy qp: %s", strerror(errno));
	a.qp = NULL;
	vt_drain_cq(a.send_cq);
}

/* --- main --------------------------------------------------------------------------------------------------- */

static void get_caps(struct vt_dev *dev)
{
	struct ibv_device_attr_ex attr = {};
	int rc = ibv_query_device_ex(dev->ctx, NULL, &attr);

	caps = attr.tm_caps;
	if (!rc && !(caps.flags & IBV_TM_CAP_RC))
		vt_die(VT_SKIP, "no tag matching");
	vt_check(!rc && caps.max_num_tags >= TAGS && caps.max_ops >= OPS && caps.max_sge && caps.max_rndv_hdr_size >= 32,
		 "the device has tag matching: %u tags, %u operations, %u elements, %u bytes", caps.max_num_tags,
		 caps.max_ops, caps.max_sge, caps.max_rndv_hdr_size);
}

/* The last -d and -i, -D and -I: the receiver's device */
static struct names names_of(int argc, char **argv)
{
	struct names n = {};
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "-d") || !strcmp(argv[i], "-D"))
			n.device = argv[i + 1];
		if (!strcmp(argv[i], "-i") || !strcmp(argv[i], "-I"))
			n.ip = argv[i + 1];
	}
	return n;
}

int main(int argc, char **argv)
{
	struct names n = names_of(argc, argv);
	int fd[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		vt_die(VT_SETUP, "socket pair: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		close(fd[0]);
		receiver(&n, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	ends_open(argc, argv);
	get_caps(b.dev);
	from = vt_mr(a.dev, ROOM, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	to = vt_mr(b.dev, ROOM, IBV_ACCESS_LOCAL_WRITE);
	two_processes(fd[0], pid);
	create_refused();
	qps_refused();
	ops_refused();
	limits_hold();
	expected();
	expected_in_pieces();
	order();
	unexpected();
	out_of_step();
	deletes();
	rendezvous();
	rendezvous_unexpected();
	rendezvous_many();
	rendezvous_in_a_batch();
	reset_fails();
	own_entries();
	buffer_given_again();
	batch_goes_on();
	polled_elsewhere();
	waiting_pairs();
	begun_by_an_empty_poll();
	events();
	made_in_a_batch();
	too_long();
	rights();
	on_demand();
	hostile();
	counts();
	lifetimes();
	forgotten(false);
	forgotten(true);
	two_pairs();
	tm_end();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
