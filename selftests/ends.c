// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The two connected queue pairs of ends.h: making them, posting to them, and judging
 * what completes.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "ends.h"

struct end a, b;
struct vt_conn ends_how = {
	.mtu = IBV_MTU_1024,
	.rd_atomic = 4,
	.timeout = 12,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 1,
};
bool ends_short;
uint32_t ends_depth = ENDS_DEPTH;

static struct vt_dev devs[2];

static void make_end(struct end *e, struct vt_dev *dev)
{
	e->dev = dev;
	e->send_cq = vt_create_cq(dev, 4 * ends_depth);
	e->recv_cq = vt_create_cq(dev, 4 * ends_depth);
}

void ends_open(int argc, char **argv)
{
	int hosts = vt_open_hosts(argc, argv, devs, &ends_short);

	make_end(&a, &devs[0]);
	make_end(&b, &devs[hosts - 1]);
}

static void forget(struct end *e)
{
	if (e->qp && ibv_destroy_qp(e->qp))
		vt_die(VT_WRONG, "WRONG: destroy qp: %s", strerror(errno));
	e->qp = NULL;
	vt_drain_cq(e->send_cq);
	vt_drain_cq(e->recv_cq);
	vt_drain_events(e->dev);
}

void ends_stop(void)
{
	/* events of a queue pair must be fetched before it can be destroyed */
	vt_drain_events(a.dev);
	vt_drain_events(b.dev);
	forget(&a);
	forget(&b);
}

void ends_datagrams(struct ibv_send_wr *wr)
{
	ends_stop();
	a.qp = vt_create_ud_qp(a.dev, a.send_cq, a.recv_cq, 4);
	b.qp = vt_create_ud_qp(b.dev, b.send_cq, b.recv_cq, 4);
	wr->wr.ud.ah = vt_ah(a.dev, &b.dev->gid);
	wr->wr.ud.remote_qpn = b.qp->qp_num;
	wr->wr.ud.remote_qkey = VT_QKEY;
}

static void end_qp(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->send_cq,
		.recv_cq = e->recv_cq,
		.srq = e->srq,
		.qp_type = type,
		.cap = { .max_send_wr = ends_depth, .max_recv_wr = ends_depth, .max_send_sge = 4,
			 .max_recv_sge = 4, .max_inline_data = 64 },
	};

	e->qp = vt_create_qp(e->dev, &init);
}

static void connect_to(struct end *e, const struct end *peer)
{
	struct vt_conn c = ends_how;

	c.peer = (struct vt_addr){ .qpn = peer->qp->qp_num, .psn = 0xfffffe, .gid = peer->dev->gid };
	c.sq_psn = 0xfffffe;
	if (vt_bring_up(e->qp, e->dev, VT_REMOTE_ACCESS, &c))
		vt_die(VT_SETUP, "connect qp: %s", strerror(errno));
}

void ends_make(enum ibv_qp_type type)
{
	ends_stop();
	end_qp(&a, type);
	end_qp(&b, type);
}

void ends_connect(void)
{
	connect_to(&a, &b);
	connect_to(&b, &a);
}

void ends_fresh(enum ibv_qp_type type)
{
	ends_make(type);
	ends_connect();
}

struct ibv_xrcd *ends_open_xrcd(struct ibv_context *ctx, int fd, int flags)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = flags,
	};

	return ibv_open_xrcd(ctx, &init);
}

struct ibv_srq *ends_xrc_srq(struct ibv_xrcd *domain, struct ibv_pd *pd, struct ibv_cq *cq, uint32_t *number)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = ends_depth, .max_sge = 4 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = domain,
		.cq = cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(pd->context, &init);

	if (!srq || ibv_get_srq_num(srq, number))
		vt_die(VT_WRONG, "create XRC srq: %s", strerror(errno));
	return srq;
}

static struct ibv_qp *xrc_qp(struct end *e, struct ibv_xrcd *target)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = target ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND,
		.comp_mask = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.send_cq = target ? NULL : e->send_cq,
		.pd = target ? NULL : e->dev->pd,
		.xrcd = target,
		.cap = { .max_send_wr = target ? 0 : ends_depth, .max_send_sge = target ? 0 : 4 },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e->dev->ctx, &init);

	if (!qp)
		vt_die(VT_WRONG, "create XRC qp: %s", strerror(errno));
	return qp;
}

struct ibv_xrcd *ends_fresh_xrc(int fd, uint32_t *number)
{
	struct ibv_xrcd *xrcd;

	ends_stop();
	xrcd = ends_open_xrcd(b.dev->ctx, fd, O_CREAT);
	if (!xrcd)
		vt_die(VT_WRONG, "open xrcd: %s", strerror(errno));
	b.srq = ends_xrc_srq(xrcd, b.dev->pd, b.recv_cq, number);
	a.qp = xrc_qp(&a, NULL);
	b.qp = xrc_qp(&b, xrcd);
	ends_connect();
	return xrcd;
}

int post_wr(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, wr, &bad);
}

int post_op(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, struct place from, uint32_t len,
	    struct place to)
{
	struct ibv_sge sge = { from.addr, len, from.key };
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = opcode != IBV_WR_LOCAL_INV,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	switch (opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wr.wr.atomic.remote_addr = to.addr;
		wr.wr.atomic.rkey = to.key;
		wr.wr.atomic.compare_add = 1;
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr.invalidate_rkey = to.key;
		break;
	default:
		wr.wr.rdma.remote_addr = to.addr;
		wr.wr.rdma.rkey = to.key;
	}
	return post_wr(e, &wr);
}

int post_recv(struct end *e, uint64_t id, struct place to, uint32_t len)
{
	struct ibv_sge sge = { to.addr, len, to.key };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	if (e->srq)
		return ibv_post_srq_recv(e->srq, &wr, &bad);
	return ibv_post_recv(e->qp, &wr, &bad);
}

bool expect_wc(const char *what, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	bool ok;

	if (!poll_one(cq, &wc, 10)) {
		vt_check(false, "%s: no completion", what);
		return false;
	}
	ok = wc.wr_id == id && wc.status == status;
	vt_check(ok, "%s: %lu: %s (wanted %lu: %s)", what, (unsigned long)wc.wr_id,
		 ibv_wc_status_str(wc.status), (unsigned long)id, ibv_wc_status_str(status));
	return ok;
}

bool expect_op(const char *what, struct end *e, enum ibv_wr_opcode opcode, struct place from, uint32_t len,
	       struct place to, enum ibv_wc_status status)
{
	static uint64_t id = 1000;
	int rc = post_op(e, ++id, opcode, from, len, to);

	if (rc) {
		vt_check(false, "%s: post: %s", what, strerror(rc));
		return false;
	}
	return expect_wc(what, e->send_cq, id, status);
}
