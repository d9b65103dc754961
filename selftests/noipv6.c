// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * noipv6: on a host without IPv6, address handles for IPv6 addresses of each kind from each of the device's GIDs, and a
 * datagram to each: an errno, or a datagram that goes nowhere.
 *
 *	noipv6 -d DEVICE -i IP
 */
#include <arpa/inet.h>
#include <errno.h>

#include "vt.h"

static const char *const peers[] = { "ff0e::98", "ff05::98", "ff02::98", "fe80::98", "2001:db8::98", "fd98::2", "::1" };

static struct vt_dev devs[2];
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

static struct ibv_ah *handle(const char *peer, int gid_index)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .sgid_index = gid_index, .hop_limit = 64 },
	};

	if (inet_pton(AF_INET6, peer, &attr.grh.dgid) != 1)
		vt_die(VT_SETUP, "no address: %s", peer);
	return ibv_create_ah(devs[0].pd, &attr);
}

static void send_to(struct ibv_ah *ah, const char *peer, int gid_index)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 100, mr->lkey };
	struct ibv_send_wr *bad, wr = vt_request(&sge, gid_index, IBV_WR_SEND);
	struct ibv_wc wc;
	int err;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = peer[0] == 'f' && peer[1] == 'f' ? 0xffffff : 0x98;
	wr.wr.ud.remote_qkey = VT_QKEY;
	err = ibv_post_send(qp, &wr, &bad);
	if (!err && !poll_one(cq, &wc, 10))
		err = ETIMEDOUT;
	vt_check(!err, "a datagram to %s from GID %d: %s", peer, gid_index, err ? strerror(err) : ibv_wc_status_str(wc.status));
}

static void try(const char *peer, int gid_index)
{
	struct ibv_ah *ah = handle(peer, gid_index);

	if (!ah) {
		vt_check(errno, "no handle for %s from GID %d: %s", peer, gid_index, strerror(errno));
		return;
	}
	send_to(ah, peer, gid_index);
	ibv_destroy_ah(ah);
}

int main(int argc, char **argv)
{
	struct ibv_gid_entry gids[16];
	ssize_t n;

	vt_open_hosts(argc, argv, devs, NULL);
	cq = vt_create_cq(&devs[0], 16);
	qp = vt_create_ud_qp(&devs[0], cq, cq, 4);
	mr = vt_mr(&devs[0], 4096, IBV_ACCESS_LOCAL_WRITE);
	n = ibv_query_gid_table(devs[0].ctx, gids, ARRAY_SIZE(gids), 0);
	vt_check(n > 1, "the device has GIDs (%zd)", n);
	for (ssize_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(peers); k++)
			try(peers[k], gids[i].gid_index);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
