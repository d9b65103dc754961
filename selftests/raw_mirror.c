// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * raw_mirror: frames of RoCE that a queue pair of raw packets sends to its own host. For a rule of the administrator's that
 * has what a netdev sends received there as well, on the spot: the sender has a lock then, which the receiver might want.
 *
 *	raw_mirror -d DEVICE -i IP -D PEER -I IP
 *
 * In the network namespace of the first device, whose netdev is veth0. They are for its queue pair itself, for one that is
 * connected to the peer (from whose address they claim to be), and for queue pair 1.
 */
#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vt.h"
#include "wire.h"

#define PSN 1000

static struct vt_dev devs[2];
static struct ibv_cq *cq[2];
static struct ibv_qp *raw, *qp[2];
static struct ibv_mr *source, *sink;
static struct wire_path path;

static void own_mac(uint8_t *mac)
{
	struct ifreq req = { .ifr_name = "veth0" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (ioctl(fd, SIOCGIFHWADDR, &req))
		vt_die(VT_SETUP, "veth0: %s", strerror(errno));
	memcpy(mac, req.ifr_hwaddr.sa_data, 6);
	close(fd);
}

static void connect_end(int i)
{
	struct vt_conn c = {
		.peer = { qp[!i]->qp_num, PSN, devs[!i].gid }, .sq_psn = PSN, .mtu = IBV_MTU_1024,
		.rd_atomic = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
	};
	int err = vt_bring_up(qp[i], &devs[i], VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE, &c);

	if (err)
		vt_die(VT_SETUP, "connect: %s", strerror(err));
}

static int raw_up(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	return ibv_modify_qp(raw, &attr, IBV_QP_STATE | IBV_QP_PORT) ?: vt_to_state(raw, IBV_QPS_RTR) ?:
	       vt_to_state(raw, IBV_QPS_RTS);
}

static void setup(void)
{
	int i, err;

	own_mac(path.dmac);
	memcpy(path.smac, (uint8_t[]){ 2, 0, 0, 0, 0x47, 0x11 }, 6);
	memcpy(path.saddr, devs[1].gid.raw + 12, 4);
	memcpy(path.daddr, devs[0].gid.raw + 12, 4);
	path.sport = 0xc711;
	for (i = 0; i < 2; i++) {
		cq[i] = vt_create_cq(&devs[i], 16);
		qp[i] = vt_new_qp(&devs[i], IBV_QPT_RC, cq[i], 4, 4);
	}
	connect_end(0);
	connect_end(1);
	raw = vt_new_qp(&devs[0], IBV_QPT_RAW_PACKET, cq[0], 4, 4);
	err = raw_up();
	if (err)
		vt_die(VT_SETUP, "raw packets: %s", strerror(err));
	source = vt_mr(&devs[0], 4096, IBV_ACCESS_LOCAL_WRITE);
	sink = vt_mr(&devs[1], 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

/* A packet with a right ICRC, and nothing but zeros behind its first header */
static size_t make(uint8_t *frame, uint8_t opcode, uint32_t qpn)
{
	struct bth b = { .opcode = opcode, .pkey = 0xffff, .qpn = qpn, .psn = PSN, .ackreq = opcode < 0xd };
	uint8_t roce[BTH_LEN + 128] = {};

	bth_put(roce, &b);
	return wire_frame(frame, &path, roce, BTH_LEN + wire_ext_len(wire_opcode(opcode)));
}

static bool sent(uint8_t opcode, uint32_t qpn)
{
	struct ibv_sge sge = { (uintptr_t)source->addr, make(source->addr, opcode, qpn), source->lkey };
	struct ibv_send_wr *bad, wr = vt_request(&sge, 1, IBV_WR_SEND);
	struct ibv_wc wc = {};

	return !ibv_post_send(raw, &wr, &bad) && poll_one(cq[0], &wc, 5) && !wc.status;
}

static bool carries(void)
{
	struct ibv_sge sge = { (uintptr_t)source->addr, 4096, source->lkey };
	struct ibv_send_wr *bad, wr = vt_request(&sge, 2, IBV_WR_RDMA_WRITE);
	struct ibv_wc wc = {};

	vt_pattern(source->addr, 3, 0, 4096);
	wr.wr.rdma.remote_addr = (uintptr_t)sink->addr;
	wr.wr.rdma.rkey = sink->rkey;
	return !ibv_post_send(qp[0], &wr, &bad) && poll_one(cq[0], &wc, 10) && !wc.status &&
	       !memcmp(source->addr, sink->addr, 4096);
}

int main(int argc, char **argv)
{
	/* An ACK, the answer to a READ, what takes a receive, what wants a key, and a notification */
	static const uint8_t opcodes[] = { 0x11, 0x10, 0x04, 0x0a, 0x0c, 0x64, 0x81 };
	uint32_t to[3];
	int n = vt_open_hosts(argc, argv, devs, NULL), wrong = 0;
	size_t i, k;

	if (n != 2)
		vt_die(VT_SETUP, "two devices are wanted");
	setup();
	to[0] = raw->qp_num;
	to[1] = qp[0]->qp_num;
	to[2] = 1;
	for (i = 0; i < ARRAY_SIZE(to); i++)
		for (k = 0; k < ARRAY_SIZE(opcodes); k++)
			wrong += !sent(opcodes[k], to[i]);
	vt_check(!wrong, "%zu frames are sent, %d are not", ARRAY_SIZE(to) * ARRAY_SIZE(opcodes), wrong);
	vt_check(carries(), "a connection goes on");
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
