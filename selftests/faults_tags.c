// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls of applications that match tags: queues, buffers that are added and removed, and messages that are matched, with
 * their data or with the address of these. @a sends, @b has the queue.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/tm_types.h>

#include "faults.h"

#define TAGS 1000
#define OPS 64

/*
 * Of the queue that carries messages, and of those that meet faults. Where it was the answer of destroying such a
 * queue that failed, the queue has gone, and the library still counts it: its completion queue stays as long as the process.
 */
static struct ibv_cq_ex *tag_cq, *other_cq;
static struct ibv_srq *tag_srq, *other_srq;
static struct ibv_mr *source, *target;
/* another one each time: a buffer stays when the answer to who added it was lost, and must not match what comes later */
static uint64_t tag;
static uint32_t handle;

static int make_queue(struct ibv_srq **queue, struct ibv_cq_ex *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 64, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_TM,
		.pd = devs[1].pd,
		.cq = ibv_cq_ex_to_cq(cq),
		.tm_cap = { .max_num_tags = TAGS, .max_ops = OPS },
	};

	*queue = ibv_create_srq_ex(devs[1].ctx, &attr);
	return made(*queue);
}

static int make_tag_srq(void) { return make_queue(&other_srq, other_cq); }
static int undo_tag_srq(void) { return ibv_destroy_srq(other_srq); }

/* --- buffers ---------------------------------------------------------------------------------- */

static int change(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad;

	return ibv_post_srq_ops(tag_srq, wr, &bad);
}

static int add_tag(void)
{
	struct ibv_sge sge = { (uintptr_t)target->addr, SIZE, target->lkey };
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD,
		.tm.add = { .recv_wr_id = ++tag, .sg_list = &sge, .num_sge = 1, .tag = tag, .mask = ~0ull },
	};
	int err = change(&wr);

	handle = wr.tm.handle;
	return err;
}

static int remove_tag(void)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_DEL, .tm.handle = handle };

	return change(&wr);
}

/* --- messages --------------------------------------------------------------------------------- */

/* the next completion of the queue is of the buffer added last */
static int matched(void)
{
	struct ibv_poll_cq_attr attr = {};
	double end = vt_now() + 20;
	int err;

	while (ibv_start_poll(tag_cq, &attr))
		if (vt_now() > end)
			return ETIMEDOUT;
	err = tag_cq->status ? 1000 + tag_cq->status : tag_cq->wr_id == tag ? 0 : ENOMSG;
	ibv_end_poll(tag_cq);
	return err;
}

static int sent(uint32_t len)
{
	struct ibv_wc wc = {};
	int err = post_op(&a, 1, IBV_WR_SEND, local(source), len, local(source));

	if (err)
		return err;
	if (!poll_one(a.send_cq, &wc, 20) || wc.status)
		return wc.status ? 1000 + wc.status : ETIMEDOUT;
	return 0;
}

static void begin_message(uint8_t opcode)
{
	struct ibv_tmh *head = source->addr;

	memset(target->addr, 0, SIZE);
	vt_pattern(source->addr, tag, 0, SIZE);
	*head = (struct ibv_tmh){ .opcode = opcode, .tag = htobe64(tag) };
}

static int carry_tagged(void)
{
	uint32_t head = sizeof(struct ibv_tmh);
	int err = add_tag();

	if (err)
		return err;
	begin_message(IBV_TMH_EAGER);
	err = sent(SIZE) ?: matched();
	if (err)
		return err;
	return memcmp(target->addr, (char *)source->addr + head, SIZE - head) ? EBADMSG : 0;
}

/* The data are read from where the message says, and its sender is told then, in a receive of its own */
static int carry_rendezvous(void)
{
	uint32_t head = sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh), len = SIZE - 4096;
	struct ibv_rvh *where;
	struct ibv_wc wc = {};
	int err = add_tag();

	if (err)
		return err;
	begin_message(IBV_TMH_RNDV);
	where = (void *)((char *)source->addr + sizeof(struct ibv_tmh));
	*where = (struct ibv_rvh){
		.va = htobe64((uintptr_t)source->addr + 4096), .rkey = htobe32(source->rkey), .len = htobe32(len),
	};
	err = post_recv(&a, 2, (struct place){ (uintptr_t)source->addr + 2048, source->lkey }, 2048) ?: sent(head);
	/* that it was matched, and that the data are there */
	err = err ?: matched() ?: matched();
	if (err)
		return err;
	if (!poll_one(a.recv_cq, &wc, 20) || wc.status)
		return wc.status ? 1000 + wc.status : ETIMEDOUT;
	return memcmp(target->addr, (char *)source->addr + 4096, len) ? EBADMSG : 0;
}

const struct call tag_calls[] = {
	{ "queue with tags", make_tag_srq, undo_tag_srq },
	{ "tag, added and removed", add_tag, remove_tag, .undo_takes = true },
	{ "tagged message", carry_tagged },
	{ "tagged message, rendezvous", carry_rendezvous },
	{ 0 },
};

void tags_begin(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 512, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO };

	source = vt_mr(a.dev, SIZE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	target = vt_mr(b.dev, SIZE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	tag_cq = ibv_create_cq_ex(devs[1].ctx, &attr);
	other_cq = ibv_create_cq_ex(devs[1].ctx, &attr);
	if (!tag_cq || !other_cq || make_queue(&tag_srq, tag_cq))
		vt_die(VT_SETUP, "queue with tags: %s", strerror(errno));
	b.srq = tag_srq;
	ends_fresh(IBV_QPT_RC);
}

static void goes(const char *what, int err)
{
	vt_check(!err, "the %s goes%s%s", what, err ? ": " : "", err ? strerror(err) : "");
}

void tags_end(void)
{
	ends_stop();
	b.srq = NULL;
	goes("queue with tags", ibv_destroy_srq(tag_srq));
	goes("completion queue of that", ibv_destroy_cq(ibv_cq_ex_to_cq(tag_cq)));
	goes("memory of messages", ibv_dereg_mr(source) ?: ibv_dereg_mr(target));
	ends_fresh(IBV_QPT_RC);
}
