// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Start and end of the module, and the link type of "rdma link add".
 */
#include <linux/module.h>
#include <rdma/rdma_netlink.h>

#include "device.h"
#include "net/net.h"
#include "raw/raw.h"
#include "transport/qp.h"
#include "turn.h"
#include "txq.h"
#include "wire/icrc.h"

static struct rdma_link_ops sroce_link_ops = {
	.type = "sroce",
	.newlink = sroce_device_add,
};

static int __init sroce_init(void)
{
	int err;

	err = sroce_icrc_init();
	if (err)
		return err;
	err = sroce_turn_init();
	if (err)
		goto err_icrc;
	err = sroce_txq_init();
	if (err)
		goto err_turn;
	err = sroce_net_init();
	if (err)
		goto err_txq;
	err = sroce_transport_init();
	if (err)
		goto err_net;
	err = sroce_device_init();
	if (err)
		goto err_transport;
	rdma_link_register(&sroce_link_ops);
	return 0;

err_transport:
	sroce_transport_exit();
err_net:
	sroce_net_exit();
err_txq:
	sroce_txq_exit();
err_turn:
	sroce_turn_exit();
err_icrc:
	sroce_icrc_exit();
	return err;
}

/*
 * First no device can be made, then there is none, then no packet arrives. QPs go after
 * that: a packet that was being handled may have held one. Packets that are still in
 * queues of the stack hold nothing of this module.
 */
static void __exit sroce_exit(void)
{
	rdma_link_unregister(&sroce_link_ops);
	sroce_device_exit();
	sroce_net_exit();
	sroce_raw_exit();
	sroce_transport_exit();
	sroce_txq_exit();
	sroce_turn_exit();
	sroce_icrc_exit();
}

module_init(sroce_init);
module_exit(sroce_exit);

MODULE_DESCRIPTION("Soft-RoCE with packet trains");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("sroce");
/* Kernels before 6.14 have the fast CRC in modules that no symbol leads to */
MODULE_SOFTDEP("pre: crypto-crc32");
