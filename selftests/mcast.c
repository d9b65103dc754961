// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mcast: datagrams to a multicast group, between three hosts.
 *
 *	mcast -g GROUP [-c COMMAND] -d DEVICE -i IP -d DEVICE -i IP -d DEVICE -i IP
 *
 * All three devices in one process: RDMA devices are visible in all namespaces.
 * COMMAND is to succeed while the second host is a member of the group, and to
 * fail once it is not.
 */
#include <errno.h>
#include <unistd.h>

#include "vt.h"

#define HOSTS 3
#define PER_HOST 3
#define DEPTH 128
#define ROOM 4096
#define GRH 40
#define MULTICAST_QPN 0xffffff

struct member {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	/* attached, and how many messages are expected and have come */
	bool in;
	int wanted, got, wrong;
};

static struct vt_dev devs[HOSTS];
static struct member members[HOSTS][PER_HOST];
static struct ibv_ah *ahs[HOSTS];
static union ibv_gid group;
static const char *command;
static uint32_t messages;

#define for_each_member(h, m) \
	for (int h = 0; h < HOSTS; h++) \
		for (struct member *m = members[h]; m < members[h] + PER_HOST; m++)

static void make_member(struct vt_dev *dev, struct member *m)
{
	m->cq = vt_create_cq(dev, 2 * DEPTH);
	m->mr = vt_mr(dev, DEPTH * ROOM, IBV_ACCESS_LOCAL_WRITE);
	m->qp = vt_create_ud_qp(dev, m->cq, m->cq, DEPTH);
}

static void post_recv(struct member *m, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)m->mr->addr + slot * ROOM, ROOM, m->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(m->qp, &wr, &bad))
		vt_die(VT_SETUP, "post recv: %s", strerror(errno));
}

static bool attach(struct member *m)
{
	m->in = !ibv_attach_mcast(m->qp, &group, 0);
	return m->in;
}

static bool detach(struct member *m)
{
	m->in = false;
	return !ibv_detach_mcast(m->qp, &group, 0);
}

/* --- traffic ------------------------------------------------------------------------- */

/* every message has a length and contents of its own; the first bytes are its number */
static uint32_t message(uint8_t *buf, uint32_t number)
{
	uint32_t len = 8 + number * 37 % 900;

	vt_pattern(buf, number, 0, len);
	memcpy(buf, &number, sizeof(number));
	return len;
}

static void take(struct member *m, const struct ibv_wc *wc, uint32_t from)
{
	uint8_t want[ROOM], *got = (uint8_t *)m->mr->addr + wc->wr_id * ROOM + GRH;
	uint32_t number, len;

	memcpy(&number, got, sizeof(number));
	len = message(want, number);
	if (wc->status || wc->byte_len != len + GRH || wc->src_qp != from || !(wc->wc_flags & IBV_WC_GRH) ||
	    memcmp(got, want, len))
		m->wrong++;
	m->got++;
	post_recv(m, wc->wr_id);
}

static void poll_member(struct member *m, uint32_t from)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(m->cq, 1, &wc) > 0)
		if (wc.opcode & IBV_WC_RECV || wc.status)
			take(m, &wc, from);
}

static bool all_have(void)
{
	for_each_member(h, m)
		if (m->got < m->wanted)
			return false;
	return true;
}

/* until all that was wanted is there, and a little longer for what was not */
static void poll_all(uint32_t from)
{
	double end = vt_now() + 5, quiet = 0;

	while (vt_now() < end && (!quiet || vt_now() < quiet)) {
		for_each_member(h, m)
			poll_member(m, from);
		if (!quiet && all_have())
			quiet = vt_now() + 0.1;
	}
}

static void send_one(int host, uint32_t number)
{
	struct member *m = &members[host][0];
	struct ibv_sge sge = { .addr = (uintptr_t)m->mr->addr + (DEPTH - 1) * ROOM, .lkey = m->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ahs[host], .remote_qpn = MULTICAST_QPN, .remote_qkey = VT_QKEY },
	};

	sge.length = message((uint8_t *)(uintptr_t)sge.addr, number);
	if (ibv_post_send(m->qp, &wr, &bad))
		vt_die(VT_WRONG, "post send: %s", strerror(errno));
}

/* @n messages from a host; exactly those who are in get them */
static void traffic(const char *what, int host, int n)
{
	bool ok = true;
	int i;

	for_each_member(h, m) {
		m->wanted = m->in ? n : 0;
		m->got = 0;
		m->wrong = 0;
	}
	for (i = 0; i < n; i++) {
		send_one(host, messages++);
		/* the message is read from its place when it is sent */
		poll_member(&members[host][0], members[host][0].qp->qp_num);
	}
	poll_all(members[host][0].qp->qp_num);
	for_each_member(h, m) {
		if (m->got == m->wanted && !m->wrong)
			continue;
		printf("# host %d queue pair %d: %d of %d, %d wrong\n", h, (int)(m - members[h]), m->got, m->wanted,
		       m->wrong);
		ok = false;
	}
	vt_check(ok, "%s", what);
}

/* a switch that snoops has to hear of it first */
static void is_member(bool yes)
{
	int tries = 50;

	if (!command)
		return;
	while (!system(command) != yes && --tries)
		usleep(100000);
	vt_check(tries, "the netdev is %s member of the group", yes ? "a" : "no");
}

/* --- cases ----------------------------------------------------------------------------- */

static void refusals(void)
{
	union ibv_gid unicast = devs[0].gid;
	struct member *m = &members[0][0];

	vt_check(ibv_attach_mcast(m->qp, &unicast, 0), "attach to an address that is no group is refused");
	vt_check(ibv_detach_mcast(m->qp, &group, 0), "detach of what is not attached is refused");
	vt_check(attach(m) && attach(m), "attach twice is as good as once");
	vt_check(ibv_attach_mcast(m->qp, &group, 0xc002) == EEXIST, "attach with another LID is refused");
	vt_check(detach(m), "detach");
}

static void cases(void)
{
	struct member (*h)[PER_HOST] = members;

	traffic("nobody is a member", 0, 5);
	is_member(false);
	vt_check(attach(&h[1][0]) && attach(&h[1][1]) && attach(&h[2][0]), "attach");
	is_member(true);
	traffic("one message to two hosts", 0, 1);
	traffic("many messages to two hosts", 0, 60);
	vt_check(attach(&h[0][0]) && attach(&h[0][1]), "attach on the sender's host");
	usleep(500000);
	traffic("to members on the sender's host as well, itself included", 0, 60);
	traffic("from another member", 1, 60);
	vt_check(detach(&h[1][0]), "detach one of two on a host");
	is_member(true);
	traffic("the other one goes on", 0, 20);
	vt_check(detach(&h[1][1]), "detach the last one on a host");
	is_member(false);
	traffic("its host gets no more", 0, 20);
	vt_check(attach(&h[1][2]), "attach another one");
	is_member(true);
	traffic("which gets them", 2, 20);
	if (ibv_destroy_qp(h[1][2].qp) != EBUSY)
		vt_check(false, "a member is not destroyed");
}

static void open_all(const char *const *device, const char *const *ip)
{
	int h;

	for (h = 0; h < HOSTS; h++) {
		if (!device[h] || !ip[h])
			vt_die(VT_SETUP, "three devices");
		vt_open(&devs[h], device[h], ip[h], -1);
		ahs[h] = vt_ah(&devs[h], &group);
		if (!ahs[h])
			vt_die(VT_WRONG, "address handle: %s", strerror(errno));
	}
	for_each_member(k, m) {
		make_member(&devs[k], m);
		/* the last place is for sending */
		for (h = 0; h < DEPTH - 1; h++)
			post_recv(m, h);
	}
}

int main(int argc, char **argv)
{
	const char *device[HOSTS] = {}, *ip[HOSTS] = {};
	int c, nd = 0, ni = 0;

	while ((c = getopt(argc, argv, "g:c:d:i:")) != -1) {
		if (c == 'g')
			group = vt_gid_of_ip(optarg);
		else if (c == 'c')
			command = optarg;
		else if (c == 'd' && nd < HOSTS)
			device[nd++] = optarg;
		else if (c == 'i' && ni < HOSTS)
			ip[ni++] = optarg;
		else
			vt_die(VT_SETUP, "see the top of mcast.c");
	}
	open_all(device, ip);
	refusals();
	cases();
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
