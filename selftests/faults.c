// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * faults: every call of an application meets a kernel that runs out of memory, or cannot reach the
 * application's, at one place after the other.
 *
 *	faults [-n MOST] [-s SEED] -d DEVICE -i IP -D DEVICE_OF_PEER -I IP_OF_PEER
 *	faults [-n MOST] [-s SEED] -l NAME -N NETDEV
 *	faults [-n MOST] [-s SEED] -m MODULE
 *
 * /proc/thread-self/fail-nth counts the places of a call at which the kernel may be made to fail
 * (CONFIG_FAULT_INJECTION; faults.sh switches them on). Each call is made once for each of them, or where there are
 * more than MOST (100), for the first and the last ones and others chosen by SEED; so is what undoes it. A call that fails must have
 * met its fault, must leave nothing behind and must succeed when it is made again; a call that succeeds all the
 * same must have done its work. With -l the calls are those of "rdma link add" and "del", changes of the netdev below, and its
 * removal, with a device on it. With -m they are the module's, a file, which comes and goes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults.h"

static unsigned int most = 100;
static struct vt_rng rng;

/* --- the fault ------------------------------------------------------------------------------------ */

/* more places than any call has */
#define FAR 10000000u

static int fail_nth;

static void arm(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	if (pwrite(fail_nth, text, strlen(text), 0) < 0 && n)
		vt_die(VT_SETUP, "fail-nth: %s", strerror(errno));
}

/* how many places are still to come before the one that fails; 0: it was met */
static unsigned int disarm(void)
{
	char text[16] = {};
	unsigned int left = 1;

	/* Reading has places of its own, after which there is nothing left either. */
	if (pread(fail_nth, text, sizeof(text) - 1, 0) > 0)
		left = strtoul(text, NULL, 10);
	arm(0);
	return left;
}

/* --- one call after the other ------------------------------------------------------------------------ */

struct tally {
	unsigned int places, failed, survived;
};

static unsigned int places_of(int (*call)(void), int *err)
{
	unsigned int left;

	arm(FAR);
	*err = call();
	left = disarm();
	return FAR - left;
}

/*
 * The place to fail at next: all in turn, or half of them the first ones, a quarter the last ones, where the answer is,
 * and the rest chosen. How many there are changes a little from call to call.
 */
static unsigned int next_place(unsigned int i, unsigned int places)
{
	unsigned int last = most * 3 / 4;

	if (places + 2 <= most || i < most / 2)
		return i + 1;
	return i < last ? 1 + vt_below(&rng, places + 2) : places + 2 - (i - last);
}

/*
 * The number that the eighth file from now on gets: another one when somebody who failed has left one open, or taken its
 * number only, or has closed one too many.
 */
static int eighth_file(void)
{
	int fd[8], i;

	for (i = 0; i < 8; i++)
		fd[i] = dup(fail_nth);
	for (i = 0; i < 8; i++)
		close(fd[i]);
	return fd[7];
}

static bool try_make(const struct call *c, unsigned int n, struct tally *t)
{
	int err, files = eighth_file();
	unsigned int left;

	arm(n);
	err = c->make();
	left = disarm();
	if (err && eighth_file() != files)
		vt_check(false, "%s: fails at place %u and leaves a file open", c->name, n);
	if (err && (left || c->sure)) {
		vt_check(false, "%s: fails %s: %d (%s)", c->name, left ? "without a fault" : "for a fault", err,
			 strerror(err));
		return false;
	}
	t->failed += !!err;
	t->survived += !err && !left;
	if (!err && c->undo)
		err = c->undo();
	else
		err = 0;
	if (err)
		vt_check(false, "%s: made at place %u and cannot be undone: %s", c->name, n, strerror(err));
	else if (c->after && (err = c->after()))
		vt_check(false, "%s: made at place %u, and what comes after: %s", c->name, n, strerror(err));
	return !err;
}

static bool try_undo(const struct call *c, unsigned int n, struct tally *t)
{
	unsigned int left;
	int err = c->make();

	if (err) {
		vt_check(false, "%s: fails without a fault: %s", c->name, strerror(err));
		return false;
	}
	arm(n);
	err = c->undo();
	left = disarm();
	if (err && left) {
		vt_check(false, "undo %s: fails without a fault: %s", c->name, strerror(err));
		return false;
	}
	t->failed += !!err;
	t->survived += !err && !left;
	/* Whoever gives an object back gets rid of it, however little memory there is. */
	if (err == ENOMEM && !c->undo_takes)
		vt_check(false, "undo %s: fails for want of memory, at place %u", c->name, n);
	/* The answer may have been what was lost: then the object is gone already. */
	if (err)
		c->undo();
	return true;
}

static void tell(const char *undo, const char *name, const struct tally *t)
{
	vt_check(true, "%s%s", undo, name);
	printf("# %s%s: %u places, failed at %u, went on at %u\n", undo, name, t->places, t->failed, t->survived);
	fflush(stdout);
}

static bool meet_faults(const struct call *c)
{
	struct tally make = {}, undo = {};
	unsigned int i;
	int err;

	make.places = places_of(c->make, &err);
	if (err) {
		vt_check(false, "%s: %s", c->name, strerror(err));
		return false;
	}
	if (c->undo)
		undo.places = places_of(c->undo, &err);
	for (i = 0; i < min(make.places + 2, most); i++)
		if (!try_make(c, next_place(i, make.places), &make))
			return false;
	tell("", c->name, &make);
	for (i = 0; c->undo && i < min(undo.places + 2, most); i++)
		if (!try_undo(c, next_place(i, undo.places), &undo))
			return false;
	if (c->undo)
		tell("undo ", c->name, &undo);
	return true;
}

/* --- what applications call ----------------------------------------------------------------------------- */

struct vt_dev devs[2];
void *memory;
struct ibv_mr *mr;
struct ibv_qp *qp;

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_comp_channel *channel;
static struct ibv_mr *from, *to;
static struct ibv_mw *mw;
static struct ibv_srq *srq;
static struct ibv_ah *ah;
static struct ibv_xrcd *xrcd;

static int make_pd(void)
{
	pd = ibv_alloc_pd(devs[0].ctx);
	return made(pd);
}

static int undo_pd(void) { return ibv_dealloc_pd(pd); }

static int make_channel(void)
{
	channel = ibv_create_comp_channel(devs[0].ctx);
	return made(channel);
}

static int undo_channel(void)
{
	struct ibv_comp_channel *old = channel;

	channel = NULL;
	return ibv_destroy_comp_channel(old);
}

static int make_cq(void)
{
	cq = ibv_create_cq(devs[0].ctx, 100, NULL, channel, 0);
	return made(cq);
}

static int undo_cq(void) { return ibv_destroy_cq(cq); }

static int make_cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};

	cq_ex = ibv_create_cq_ex(devs[0].ctx, &attr);
	return made(cq_ex);
}

static int undo_cq_ex(void) { return ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)); }

/* Of a queue that is used: see carry(). With always as many entries it has as many places, and all are tried. */
static int resize_cq(void) { return ibv_resize_cq(a.send_cq, 100); }

static int make_mr(void)
{
	mr = ibv_reg_mr(devs[0].pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	return made(mr);
}

static int make_mr_on_demand(void)
{
	mr = ibv_reg_mr(devs[0].pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS | IBV_ACCESS_ON_DEMAND);
	return made(mr);
}

int undo_mr(void) { return ibv_dereg_mr(mr); }

/* A region that could not be changed may be as it was or without a translation: dereg must work. */
static int change_mr(void)
{
	int err = make_mr();

	if (!err) {
		err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
				   (char *)memory + 4096, SIZE / 2, IBV_ACCESS_LOCAL_WRITE) ? errno ?: EIO : 0;
		if (err)
			undo_mr();
	}
	return err;
}

static int advise_mr(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, SIZE, 0 };
	int err = make_mr_on_demand();

	if (!err) {
		sge.lkey = mr->lkey;
		/* which nothing locked may lose */
		munlock(memory, SIZE);
		madvise(memory, SIZE, MADV_DONTNEED);
		err = ibv_advise_mr(devs[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
		if (err)
			undo_mr();
	}
	return err;
}

static int make_mw(void)
{
	mw = ibv_alloc_mw(devs[0].pd, IBV_MW_TYPE_2);
	return made(mw);
}

static int undo_mw(void) { return ibv_dealloc_mw(mw); }

static int make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 64, .max_sge = 2 } };

	srq = ibv_create_srq(devs[0].pd, &attr);
	return made(srq);
}

static int undo_srq(void) { return ibv_destroy_srq(srq); }

static int resize_srq(void)
{
	struct ibv_srq_attr attr = { .max_wr = 500 };
	int err = make_srq();

	if (!err) {
		err = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
		if (err)
			undo_srq();
	}
	return err;
}

static int make_qp_of(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = a.send_cq, .recv_cq = a.recv_cq, .qp_type = type,
		.cap = { .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64 },
	};

	qp = ibv_create_qp(devs[0].pd, &attr);
	return made(qp);
}

static int make_rc_qp(void) { return make_qp_of(IBV_QPT_RC); }
static int make_ud_qp(void) { return make_qp_of(IBV_QPT_UD); }
int undo_qp(void) { return ibv_destroy_qp(qp); }

/* to the other host's queue pair, which does not matter */
static struct vt_conn peer(void)
{
	struct vt_conn how = ends_how;

	how.peer = (struct vt_addr){ b.qp->qp_num, 1, devs[1].gid };
	return how;
}

int connect_qp(void)
{
	struct vt_conn how = peer();
	int err = make_rc_qp();

	if (err)
		return err;
	err = vt_bring_up(qp, &devs[0], VT_REMOTE_ACCESS, &how);
	if (err)
		undo_qp();
	return err;
}

static int qp_to_error(void)
{
	int err = connect_qp();

	if (!err) {
		err = vt_to_state(qp, IBV_QPS_ERR) ?: vt_to_state(qp, IBV_QPS_RESET);
		if (err)
			undo_qp();
	}
	return err;
}

static int query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_device_attr_ex ex;
	struct ibv_gid_entry gids[8];
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;

	if (ibv_query_port(devs[0].ctx, 1, &port) || ibv_query_device_ex(devs[0].ctx, NULL, &ex))
		return errno ?: EIO;
	if (ibv_query_gid_table(devs[0].ctx, gids, ARRAY_SIZE(gids), 0) < 0)
		return EIO;
	return ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init);
}

static int make_ah(void)
{
	ah = vt_ah(&devs[0], &devs[1].gid);
	return made(ah);
}

static int undo_ah(void) { return ibv_destroy_ah(ah); }

static union ibv_gid group;

static int make_member(void)
{
	int err = make_ud_qp();

	if (!err) {
		err = vt_to_init(qp, 0) ?: ibv_attach_mcast(qp, &group, 0);
		if (err)
			undo_qp();
	}
	return err;
}

static int undo_member(void)
{
	int err = ibv_detach_mcast(qp, &group, 0);

	/* what has failed may have been the answer */
	return undo_qp() ?: (err == EINVAL ? 0 : err);
}

static int make_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};

	xrcd = ibv_open_xrcd(devs[0].ctx, &attr);
	return made(xrcd);
}

static int undo_xrcd(void) { return ibv_close_xrcd(xrcd); }

/*
 * Requests of a connected queue pair: what is lost on the way is sent again, and so a fault is never seen here. Data
 * is compared.
 */
static int carry(enum ibv_wr_opcode opcode)
{
	/* both ways between the requester's memory and the other host's */
	void *source = opcode == IBV_WR_RDMA_READ ? to->addr : from->addr;
	void *target = opcode == IBV_WR_RDMA_READ ? from->addr : to->addr;
	struct ibv_wc wc = {};
	int err;

	vt_pattern(source, vt_rand(&rng), 0, SIZE);
	memset(target, 0, SIZE);
	if (opcode == IBV_WR_SEND) {
		err = post_recv(&b, 2, local(to), SIZE);
		if (err)
			return err;
	}
	err = post_op(&a, 1, opcode, local(from), SIZE, remote(to));
	if (err)
		return err;
	if (!poll_one(a.send_cq, &wc, 20) || wc.status)
		return wc.status ? 1000 + wc.status : ETIMEDOUT;
	if (opcode == IBV_WR_SEND && (!poll_one(b.recv_cq, &wc, 20) || wc.status))
		return wc.status ? 1000 + wc.status : ETIMEDOUT;
	return memcmp(source, target, SIZE) ? EBADMSG : 0;
}

static int carry_send(void) { return carry(IBV_WR_SEND); }
static int carry_write(void) { return carry(IBV_WR_RDMA_WRITE); }
static int carry_read(void) { return carry(IBV_WR_RDMA_READ); }

static const struct call calls[] = {
	{ "protection domain", make_pd, undo_pd },
	{ "completion channel", make_channel, undo_channel },
	{ "completion queue", make_cq, undo_cq },
	{ "extended completion queue", make_cq_ex, undo_cq_ex },
	{ "region", make_mr, undo_mr },
	{ "region on demand", make_mr_on_demand, undo_mr },
	{ "region, registered again", change_mr, undo_mr },
	{ "region, prefetched", advise_mr, undo_mr },
	{ "window", make_mw, undo_mw },
	{ "shared receive queue", make_srq, undo_srq },
	{ "shared receive queue, resized", resize_srq, undo_srq },
	{ "XRC domain", make_xrcd, undo_xrcd },
	{ "queue pair", make_rc_qp, undo_qp },
	{ "UD queue pair", make_ud_qp, undo_qp },
	{ "queue pair, connected", connect_qp, undo_qp },
	{ "queue pair, in error and reset", qp_to_error, undo_qp },
	{ "address handle", make_ah, undo_ah },
	{ "group", make_member, undo_member },
	{ "queries", query },
	{ "SEND", carry_send, .sure = true },
	{ "WRITE", carry_write, .sure = true },
	{ "READ", carry_read, .sure = true },
	{ "completion queue in use, resized", resize_cq, .after = carry_send },
};

/* --- rdma link add, rdma link del ------------------------------------------------------------------------- */

static const char *link_name, *link_netdev;

struct request {
	struct nlmsghdr head;
	char attributes[200];
};

static void put(struct request *r, uint16_t type, const void *value, size_t len)
{
	struct nlattr *at = (void *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));

	at->nla_type = type;
	at->nla_len = NLA_HDRLEN + len;
	memcpy(at + 1, value, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + NLA_ALIGN(at->nla_len);
}

static int nl_open(void)
{
	struct timeval patience = { .tv_sec = 60 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static bool nl_send(int fd, struct request *r, uint16_t command, uint16_t flags)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	r->head.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	r->head.nlmsg_flags = NLM_F_REQUEST | flags;
	return sendto(fd, r, r->head.nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) > 0;
}

/* 0 or an errno */
static int ask(struct request *r, uint16_t command)
{
	struct { struct nlmsghdr head; struct nlmsgerr err; char more[2000]; } answer;
	int fd = nl_open(), err = 0;

	if (fd < 0)
		return errno;
	if (!nl_send(fd, r, command, NLM_F_ACK) || recv(fd, &answer, sizeof(answer), 0) < 0)
		err = errno;
	else if (answer.head.nlmsg_type == NLMSG_ERROR)
		err = -answer.err.error;
	close(fd);
	return err;
}

/* the number of the device of that name in one message of a list, or -1 */
static int index_in(const struct nlmsghdr *head)
{
	const char *at = (const char *)head + NLMSG_HDRLEN, *end = (const char *)head + head->nlmsg_len;
	uint32_t index = 0;
	bool found = false;

	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *nla = (const void *)at;

		if (nla->nla_len < NLA_HDRLEN)
			break;
		if (nla->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
			memcpy(&index, nla + 1, sizeof(index));
		if (nla->nla_type == RDMA_NLDEV_ATTR_DEV_NAME)
			found = !strcmp((const char *)(nla + 1), link_name);
		at += NLA_ALIGN(nla->nla_len);
	}
	return found ? (int)index : -1;
}

/* The device's number, or -1. Not from libibverbs: a device may have come to be without the file of its verbs. */
static int link_index(void)
{
	struct request r = { .head.nlmsg_len = NLMSG_HDRLEN };
	static char answer[65536];
	int fd = nl_open(), found = -1;
	ssize_t len;

	if (fd < 0 || !nl_send(fd, &r, RDMA_NLDEV_CMD_GET, NLM_F_DUMP))
		vt_die(VT_SETUP, "netlink: %s", strerror(errno));
	while ((len = recv(fd, answer, sizeof(answer), 0)) > 0) {
		const struct nlmsghdr *head = (const void *)answer;

		for (; NLMSG_OK(head, len) && head->nlmsg_type != NLMSG_DONE; head = NLMSG_NEXT(head, len))
			if (head->nlmsg_type != NLMSG_ERROR && index_in(head) >= 0)
				found = index_in(head);
		if (NLMSG_OK(head, len))
			break;
	}
	close(fd);
	return found;
}

static uint32_t made_index;

static int make_link(void)
{
	struct request r = { .head.nlmsg_len = NLMSG_HDRLEN };

	put(&r, RDMA_NLDEV_ATTR_DEV_NAME, link_name, strlen(link_name) + 1);
	put(&r, RDMA_NLDEV_ATTR_LINK_TYPE, "sroce", 6);
	put(&r, RDMA_NLDEV_ATTR_NDEV_NAME, link_netdev, strlen(link_netdev) + 1);
	return ask(&r, RDMA_NLDEV_CMD_NEWLINK);
}

static int undo_link(void)
{
	struct request r = { .head.nlmsg_len = NLMSG_HDRLEN };

	put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &made_index, sizeof(made_index));
	return ask(&r, RDMA_NLDEV_CMD_DELLINK);
}

/* Not under a fault: what fails on the way back from the kernel has been done all the same. */
static bool link_there(void)
{
	int index = link_index();

	made_index = index;
	return index >= 0;
}

/* What the driver is told of through notifiers; 0 or an errno, which need not be the driver's */
static int change_netdev(unsigned long command, int value)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	struct ifreq r = {};

	if (fd < 0)
		return errno;
	strncpy(r.ifr_name, link_netdev, IFNAMSIZ - 1);
	if (command == SIOCSIFADDR) {
		struct sockaddr_in *sin = (void *)&r.ifr_addr;

		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = htonl(0x0a620700 + value);
	} else if (command == SIOCSIFMTU) {
		r.ifr_mtu = value;
	} else {
		r.ifr_flags = value;
	}
	err = ioctl(fd, command, &r) ? errno : 0;
	close(fd);
	return err;
}

static int change_address(void) { return change_netdev(SIOCSIFADDR, 2 + vt_below(&rng, 200)); }
static int change_mtu(void) { return change_netdev(SIOCSIFMTU, 1000 + vt_below(&rng, 500)); }
static int take_down(void) { return change_netdev(SIOCSIFFLAGS, 0); }
static int take_up(void) { return change_netdev(SIOCSIFFLAGS, IFF_UP); }

static void link_changes(void)
{
	static const struct call changes[] = {
		{ "address", change_address },
		{ "MTU", change_mtu },
		{ "down", take_down, take_up, .undo_takes = true },
	};
	unsigned int i;

	if (make_link() || !link_there())
		vt_die(VT_SETUP, "link add");
	for (i = 0; i < ARRAY_SIZE(changes); i++)
		meet_faults(&changes[i]);
	vt_check(!undo_link(), "link del, after changes of the netdev");
}

static void link_faults(void)
{
	struct tally add = {}, del = {};
	unsigned int i, left;
	int err;

	add.places = places_of(make_link, &err);
	if (err || !link_there())
		vt_die(VT_SETUP, "link add: %s", strerror(err));
	del.places = places_of(undo_link, &err);
	for (i = 0; i < min(add.places + 2, most); i++) {
		arm(next_place(i, add.places));
		err = make_link();
		left = disarm();
		add.failed += !!err;
		add.survived += !err && !left;
		if (err && left)
			vt_die(VT_WRONG, "WRONG: link add fails without a fault: %s", strerror(err));
		if (!link_there()) {
			if (!err)
				vt_die(VT_WRONG, "WRONG: link add has made nothing and says nothing");
			continue;
		}
		arm(next_place(i, del.places));
		err = undo_link();
		left = disarm();
		del.failed += !!err;
		del.survived += !err && !left;
		if (link_there() && undo_link())
			vt_die(VT_WRONG, "WRONG: link del does not");
	}
	tell("", "link add", &add);
	tell("", "link del", &del);
	vt_check(!make_link() && link_there(), "link add, afterwards");
	vt_check(!undo_link() && !link_there(), "link del, afterwards");
}

/* --- ip link del ----------------------------------------------------------------------------------------- */

/* By rtnetlink; 0 or an errno */
static int delete_netdev(void)
{
	struct { struct nlmsghdr head; struct nlmsgerr err; char more[2000]; } answer;
	struct { struct nlmsghdr head; struct ifinfomsg info; } r = {
		.head = { sizeof(r), RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK },
		.info.ifi_index = if_nametoindex(link_netdev),
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err = 0;

	if (fd < 0)
		return errno;
	if (send(fd, &r, sizeof(r), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		err = errno;
	else if (answer.head.nlmsg_type == NLMSG_ERROR)
		err = -answer.err.error;
	close(fd);
	return err;
}

static void make_netdev(void)
{
	char command[200];

	snprintf(command, sizeof(command), "ip link add %s type dummy && ip addr add 10.98.7.1/24 dev %s && ip link set %s up",
		 link_netdev, link_netdev, link_netdev);
	if (!if_nametoindex(link_netdev) && system(command))
		vt_die(VT_SETUP, "no netdev");
	if (make_link() || !link_there())
		vt_die(VT_SETUP, "link add");
}

/* Whoever takes a netdev away takes the device on it */
static void netdev_faults(void)
{
	struct tally t = {};
	unsigned int i, left, place;
	int err;

	make_netdev();
	t.places = places_of(delete_netdev, &err);
	if (err || link_there())
		vt_die(VT_WRONG, "WRONG: the netdev goes: %s", err ? strerror(err) : "without its device");
	for (i = 0; i < min(t.places + 2, most); i++) {
		make_netdev();
		place = next_place(i, t.places);
		arm(place);
		err = delete_netdev();
		left = disarm();
		t.failed += !!err;
		t.survived += !err && !left;
		if (err && left)
			vt_die(VT_WRONG, "WRONG: removing a netdev fails without a fault: %s", strerror(err));
		if (if_nametoindex(link_netdev) && delete_netdev())
			vt_die(VT_WRONG, "WRONG: a netdev does not go");
		if (link_there())
			vt_die(VT_WRONG, "WRONG: a device stays without its netdev, at place %u", place);
	}
	tell("", "netdev removed", &t);
}

/* --- insmod, rmmod ----------------------------------------------------------------------------------------- */

static int module_file;

static int load_module(void) { return syscall(SYS_finit_module, module_file, "", 0) ? errno : 0; }
static int unload_module(void) { return syscall(SYS_delete_module, "sroce", O_NONBLOCK) ? errno : 0; }

static void module_faults(const char *path)
{
	static const struct call module = { "module", load_module, unload_module };

	module_file = open(path, O_RDONLY | O_CLOEXEC);
	if (module_file < 0)
		vt_die(VT_SETUP, "%s: %s", path, strerror(errno));
	meet_faults(&module);
	vt_check(!load_module() && !unload_module(), "the module, afterwards");
}

/* --------------------------------------------------------------------------------------------------------- */

static void verbs_faults(void)
{
	unsigned int i;

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	devs[0] = *a.dev;
	devs[1] = *b.dev;
	group = vt_gid_of_ip("239.98.0.7");
	ends_fresh(IBV_QPT_RC);
	from = vt_mr(a.dev, SIZE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	to = vt_mr(b.dev, SIZE, IBV_ACCESS_LOCAL_WRITE | VT_REMOTE_ACCESS);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		meet_faults(&calls[i]);
	objects_begin();
	for (i = 0; object_calls[i].name; i++)
		if (objects_have(&object_calls[i]))
			meet_faults(&object_calls[i]);
	objects_end();
	tags_begin();
	for (i = 0; tag_calls[i].name; i++)
		meet_faults(&tag_calls[i]);
	tags_end();
	vt_check(!carry_send() && !carry_write() && !carry_read(), "all of it works afterwards");
	ends_stop();
}

int main(int argc, char **argv)
{
	const char *module = NULL;
	uint64_t seed = 1;
	int c, n = 1;

	/* these first: the rest is for ends_open() */
	while (n + 1 < argc && argv[n][0] == '-' && strchr("nslNm", argv[n][1])) {
		c = argv[n][1];
		if (c == 'n')
			most = atoi(argv[n + 1]);
		else if (c == 's')
			seed = strtoull(argv[n + 1], NULL, 0);
		else if (c == 'm')
			module = argv[n + 1];
		else if (c == 'l')
			link_name = argv[n + 1];
		else
			link_netdev = argv[n + 1];
		n += 2;
	}
	rng.state = vt_mix(seed);
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_nth < 0)
		vt_die(VT_SKIP, "this kernel does not fail on demand");
	/*
	 * What a page fault needs is not what is looked for, and user mode Linux does not survive that it lacks it.
	 */
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		vt_die(VT_SETUP, "mlockall: %s", strerror(errno));
	argv[n - 1] = argv[0];
	if (module) {
		module_faults(module);
	} else if (link_name) {
		link_faults();
		link_changes();
		netdev_faults();
	} else {
		ends_open(argc - n + 1, argv + n - 1);
		verbs_faults();
	}
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
